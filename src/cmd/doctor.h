/* Parts of `doctor`. */
#ifndef CMD_DOCTOR_H
#define CMD_DOCTOR_H

#include "cmd/command.h"

struct examination {
	struct session *s;
	json_t *findings;
	int bad;
	int repairs,
		local; /* findings that --fix repairs; those that need no change of the queue */
	bool fix;      /* remove stale files now */
	bool clock;    /* the store has checked the clock already */
	int stale, removed;
};

void doctor_note(void *examination, enum check_level level, const char *what, struct str text,
		 struct str fix);
/* Files that pawl wrote and did not rename before its process died. */
void doctor_temporary(struct examination *x);

struct repairs {
	char *backup;
	struct str saved; /* the file with the records that could not be repaired; empty: none */
	size_t n_saved;
};

/* Repairs the queue, under the lock of the whole queue and after a backup. */
enum result doctor_repair(struct session *s, struct repairs *out, struct answer *ans);

#endif

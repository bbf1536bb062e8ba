/* What the commands about many tasks at once share. */
#ifndef CMD_DATA_H
#define CMD_DATA_H

#include "cmd/command.h"
#include "transfer/backup.h"

#define PARAM_FORMAT(command)                                                      \
	LOCAL(command, format, "format", P_CHOICE, .choices = "json jsonl csv md", \
	      .value = "FORMAT", .help = "json, jsonl, csv or md; default: by the name")

/* Opens the queue for a change of this kind: OP_BATCH, OP_HEAVY. */
enum result data_open(struct session *s, unsigned kind, struct answer *ans);
/* The locks that there are, before something ends all of them; and after it, what is saved of them goes. */
struct answer data_locks(struct session *s);
void data_forget(struct session *s, const struct answer *locks);
/* Seen from where the client is. */
char *data_path(const struct session *s, struct str path);
/* "importing: [#####     ] 5,000 of 10,000", at most every tenth of a second. */
struct data_progress {
	struct session *session;
	const char *doing;
	size_t total; /* 0: not known */
	int64_t shown_ms;
};
void data_progress(void *progress, size_t done);
void data_progress_end(struct data_progress *p);
/* What is in the backup, for a queue to take in. */
struct load data_load(struct session *s, struct backup *b, struct data_progress *p);

#endif

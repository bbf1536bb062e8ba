/* Shared parts of the commands that move or change many tasks at once. */
#ifndef CMD_DATA_H
#define CMD_DATA_H

#include "cmd/command.h"
#include "transfer/backup_file.h"

#define PARAM_FORMAT(command)                                                      \
	LOCAL(command, format, "format", P_CHOICE, .choices = "json jsonl csv md", \
	      .value = "FORMAT", .help = "json, jsonl, csv or md (default: by the file's name)")

/* Opens the queue for a change of this kind: OP_BATCH, OP_HEAVY. */
enum result data_open(struct session *s, unsigned kind, struct answer *ans);
/* Lists the locks before a change that ends all of them; afterwards removes their saved tokens. */
struct answer data_locks(struct session *s);
void data_forget(struct session *s, const struct answer *locks);
/* Reads the whole file, or standard input for "-". 0 or -errno. */
int data_read(struct session *s, const char *path, struct str *out);
/* One of `results`, and how a person sees them: {"code","id","title","message"}. */
json_t *data_item(const struct request *rq, const struct answer *ans);
void data_show_items(const struct reply *r, struct view *v);
/* Imports the tasks that another program keeps in this project; and shows the answer. */
enum result import_from(struct session *s, struct str program, struct reply *out);
void import_show(const struct reply *r, struct view *v);
/* The path as seen from the client's folder. */
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
/* The contents of the backup, for a queue to import. */
struct load data_load(struct session *s, struct backup *b, struct data_progress *p);

#endif

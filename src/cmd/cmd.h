/* Shared parts of the commands that move or change many tasks at once. */
#ifndef CMD_CMD_H
#define CMD_CMD_H

#include "base/arena.h"
#include "cmd/command.h"
#include "core/request.h"
#include "format/yaml.h"
#include "proof/proof.h"
#include "transfer/backup_file.h"

#define PARAM_FORMAT(command)                                                      \
	LOCAL(command, format, "format", P_CHOICE, .choices = "json jsonl csv md", \
	      .value = "FORMAT", .help = "json, jsonl, csv or md (default: by the file's name)")

/* Opens the queue for a change of this kind: OP_BATCH or OP_HEAVY. */
enum result data_open(struct session *s, unsigned kind, struct answer *ans);
/* data_locks() lists the locks before a change that ends all of them; data_forget() deletes their
 * saved tokens afterwards. */
struct answer data_locks(struct session *s);
void data_forget(struct session *s, const struct answer *locks);
/* Reads the whole file, or standard input for "-". 0 or -errno. */
int data_read(struct session *s, const char *path, struct str *out);
/* One member of `results`: {"code","id","title","message"}; and the list as people see it. */
json_t *data_item(const struct request *rq, const struct answer *ans);
void data_show_items(const struct reply *r, struct view *v);
/* import_from() imports the tasks that another program keeps in this project; import_show() shows
 * the answer. */
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
/* The name of a new backup: unlike `pawl backup`, a repair and a clear never replace an earlier one. */
enum result data_free_name(struct client *c, char **path, struct answer *ans);
/* The contents of the backup, for a queue to import. */
struct load data_load(struct session *s, struct backup *b, struct data_progress *p);

/* --- doctor ----------------------------------------------------------------------------------- */

/* Parts of `doctor`. */

struct examination {
	struct session *s;
	json_t *findings;
	int bad;
	int repairs,
		local; /* findings that --fix can repair; and how many of them do not change the queue */
	bool fix;      /* remove stale files now */
	bool clock; /* the store has checked the clock already */
	int stale, removed;
};

void doctor_note(void *examination, enum check_level level, const char *what, struct str text,
		 struct str fix);
/* Checks for files that a process wrote and, because it died, never renamed. */
void doctor_temporary(struct examination *x);

struct repairs {
	char *backup;
	struct str saved; /* the file with the records that could not be repaired; empty: none */
	size_t n_saved;
};

/* Repairs the queue, under the lock of the whole queue and after a backup. */
enum result doctor_repair(struct session *s, struct repairs *out, struct answer *ans);

/* --- remove ----------------------------------------------------------------------------------- */

/* Asks a person at a terminal. true: the person agrees, or there is no terminal. */
bool remove_agreed(struct session *s, const struct command *c, struct strs ids);
enum result remove_refuse(struct reply *out);
/* Shows what remove_agreed() asks. false: the reply is no question. */
bool remove_preview(const struct reply *r, struct view *v);

/* --- edit ------------------------------------------------------------------------------------- */

/* edit: opens a text in the person's editor, until it can be applied or the person gives up. */

/* Is there a person at the terminal who can use an editor? */
bool edit_can(const struct session *s);
/* create without a title: the person fills in a form, which starts with the values of the call's
 * options. */
enum result edit_create(struct session *s, struct args *args, struct reply *out);

/* --- fields ----------------------------------------------------------------------------------- */

/* Checks the options of cmd/fields.def. */

/* Refuses delay together with not_before, because both set the same field. Returns NULL, or the
 * reason for a refusal. */
const char *fields_fault(const struct request *rq);

/* --- form ------------------------------------------------------------------------------------- */

/* form: shows a task as a text that a person edits, and finds the changes that the person made. */

struct form {
	struct task task; /* version: the one in the text */
	json_t *lines;    /* {"title": 2}: the line of each key */
	bool titled;      /* the text has a title of its own */
};

/* The text for a task. A new task has no id. */
struct str form_text(const struct task *t, struct arena *a);
/* 0, or -EBADMSG with *fault. extra: the task's own keys, which may stand beside the fields; new
 * ones must be under `extra`. */
int form_read(struct str text, struct str extra, struct form *out, struct yaml_fault *fault,
	      struct arena *a);
void form_free(struct form *f);
/* Adds the differences between two readings to a request of OP_CREATE or OP_UPDATE. false: there
 * are none. It does not add `depends` to an update. */
bool form_changes(const struct form *was, const struct form *is, struct request *rq,
		  struct arena *a);
/* Members of `list` that are not in `others`. */
struct strs form_without(struct strs list, struct strs others, struct arena *a);
/* The line of the field that a message begins with ("title has 600 bytes"); 0: unknown. */
size_t form_line(const struct form *f, struct str message);

/* --- hook input ------------------------------------------------------------------------------- */

/* hook_input: the JSON object that a coding agent writes to the standard input of its hooks. */

struct hook_input {
	struct str session; /* session_id; empty: unknown */
	struct str agent;   /* agent_id of a sub-agent; empty: none */
};

/* Never waits for a terminal, and at most half a second for a program. Input that is too large, or
 * not a JSON object, counts as none. */
struct hook_input hook_input_read(struct arena *a);

/* --- list ------------------------------------------------------------------------------------- */

/* list: parts that the commands that list tasks share. */

/* The call as a person would type it, without its limit and without the option `leave_out`. */
struct str list_command(const struct command *c, const struct args *args, const char *leave_out,
			struct arena *a);
/* Sets out->own for show_tasks(). */
void list_tell(struct session *s, const struct command *c, const struct args *a,
	       struct list_shown shown, struct reply *out);

/* --- overview --------------------------------------------------------------------------------- */

/*
 * overview: the answer to `status` without a task. overview_tell() adds three members to the
 * numbers and the held tasks: the tasks that wait for a person, the agents, and the last hour's
 * work. Text and JSON show all of them.
 */

#define HOUR_MS (60 * 60 * INT64_C(1000))

/* The places of the operator and of the agents, for the view. */
struct overview {
	struct str host, folder; /* this host and this worktree */
	struct str *folders;     /* for each held task, the holder's worktree; empty: unknown */
};

/* The name of a worktree: the last part of its path. */
struct str overview_worktree(struct str folder);
/* out->own: a struct overview. */
void overview_tell(struct session *s, struct reply *out);
/* The holder's state, from the lock of one of its tasks: "working", "blocked", "idle" or "dead". */
const char *overview_state(const struct task *t, int64_t now);

/* --- period ----------------------------------------------------------------------------------- */

/*
 * period: reads the events of a period, for the commands that sum them up. The store selects by
 * time, so the cost depends on the length of the period.
 */

/* The kinds of events that period_worker() needs. */
#define PERIOD_WORK "claimed,review,"

/* Reads the period's events of these kinds (separated by commas), and their tasks, sorted by id.
 * *since: the default if the caller gave no --since. */
enum result period_read(struct session *s, const struct request *rq, const char *kinds,
			int64_t *since, struct answer *out);
/* Reads the tasks that have one of these statuses. */
enum result period_tasks(struct session *s, unsigned statuses, struct answer *out);
/* NULL: the task was removed. */
const struct task *period_task(const struct answer *ans, struct str id);
/* The agent whose work an event ends, even if a reviewer made the event. Empty: the period's log
 * does not show it. */
struct str period_worker(const struct answer *ans, const struct event *e);
/* The local day of `now`, moved by `days`, at this hour. */
int64_t period_day(int64_t now, int days, int hour);

/* --- plan ------------------------------------------------------------------------------------- */

/* create --file: several tasks from a Markdown list. */

/* common: the options of the call, for every task. */
enum result plan_create(struct session *s, const struct request *common, struct str file,
			struct reply *out);

/* --- proof ------------------------------------------------------------------------------------ */

/*
 * proof: gives commands access to the tests of a store, which are in a module.
 */

/* NULL if the module is missing, with the reason in *ans. */
const struct proof_ops *proof_load(struct answer *ans, struct arena *a);
/* Reports that the scratch queue was not removed, and why. */
void proof_warn(struct session *s, const struct torture_plan *p, struct str queue, struct str why,
		struct reply *out);

/* --- within ----------------------------------------------------------------------------------- */

/*
 * within: runs a command's work under a hard time limit, which neither a silent server nor another
 * process's lock can exceed. A child process does the work and is killed when its time is over.
 */

typedef enum result ask_fn(struct session *s, struct answer *ans);

/* false: there was no answer within `ms`. Only the child opens the queue. */
bool run_within(struct session *s, int64_t ms, ask_fn *fn, struct answer *ans);

/* --- guard ------------------------------------------------------------------------------------- */

/* Checks the fences of a push, whose refs are on standard input. LOST_LOCK if one is stale. */
enum result guard_receive(struct session *s, struct reply *out);

#endif

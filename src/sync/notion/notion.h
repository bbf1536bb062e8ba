/* Types and functions that the files of pawl-sync-notion.so share. */
#ifndef SYNC_NOTION_NOTION_H
#define SYNC_NOTION_NOTION_H

#include <jansson.h>

#include "http/http_client.h"
#include "sync/sync.h"

/* --- fields ---------------------------------------------------------------------------------------- */

/* A field of a task that is a property of its page, or the page's text. */
enum notion_field {
	F_TITLE,
	F_BODY,
	F_STATUS,
	F_PRIORITY,
	F_CLASS,
	F_DUE,
	F_PARENT,
	F_RUN,
	F_TOKEN,
	F_EXPIRES,
	F_ASSIGNEE,
	F_REASON,
	F_ACTION,
	F_SUMMARY,
	F_STARTED,
	F_DONE,
	F_ID,
	F_END
};

/* The side that may change a field. */
enum direction {
	BY_PEOPLE, /* both sides; people win a conflict */
	BY_STATUS, /* both sides; a move of the page must be an operation of the queue */
	BY_PAWL    /* the queue alone; an edit on the page is taken back */
};

struct notion_field_info {
	const char *key;  /* its name in the state file and in messages */
	const char *name; /* the property's name; NULL: it is the page's text */
	const char *type;
	enum direction direction;
	bool needed; /* the database must have it */
};
extern const struct notion_field_info notion_fields[F_END];

/* Every field as text, in one form for tasks and pages, so that both can be compared. The hash of a
 * page's text represents it. */
struct values {
	struct str v[F_END];
	bool has[F_END]; /* false: unknown, or not ours to write */
};

/* --- the connection ---------------------------------------------------------------------------------- */

struct notion {
	const struct sync_job *job;
	struct sync_done *done;
	struct answer *ans;  /* the reason for a failure */
	struct arena *arena; /* memory for the whole sync */
	struct http_client *http;
	struct str token;
	int64_t gap_ms, next_at; /* time between requests, and time of the next one */
	int64_t patience_ms;     /* the longest time for a server that does not answer */
	int64_t settle_ms;       /* reads may be this far behind */
	int64_t said_at, began_at;
	bool unknown; /* the last request may have been carried out, although no answer says so */
	int status;   /* HTTP status of Notion's last answer */
	int64_t server_now; /* Notion's clock, by its last answer; 0: unknown */
	size_t later; /* tasks to try again: they changed during the round, or their page is not visible yet */
	/* About the database: */
	struct str sync_token; /* token of the lock @sync */
	int64_t fence;         /* the lock's fence; 0: unknown */
	int64_t renewed_at;
	struct str source, bot, agent_user;
	struct str identity;          /* of the queue; empty: it has none yet */
	struct str owner, owner_text; /* the mark of the database's queue, and the text around it */
	bool marked;                  /* this sync left the mark */
	bool known[F_END];
	const char *names[F_END]; /* of the properties */
};

/* Sends a request to Notion. `body` may be NULL; it is released. once: the request must not be
 * repeated if it may have been carried out; then API_ERROR with `unknown`. SUCCESS: *out is the
 * answer, which the caller releases. */
enum result notion_ask(struct notion *n, const char *method, const char *target, json_t *body,
		       bool once, json_t **out);
enum result notion_open(struct notion *n);
void notion_close(struct notion *n);
enum result notion_fail(struct notion *n, enum result code, struct str message, struct str hint);
void notion_say(struct notion *n, const char *doing, size_t count);
void notion_sleep(int64_t ms);
/* Adds a line about a change, or a warning. */
void notion_change(struct notion *n, struct str task, const char *what, struct str more);
void notion_warn(struct notion *n, struct str text);

/* --- the lock @sync -------------------------------------------------------------------------------- */

/* Takes the lock, and waits for it like any call to the queue. */
enum result notion_sync_lock(struct notion *n);
/* Renews the lock; every request does so. CONFLICT: it was lost. */
enum result notion_renew(struct notion *n);
void notion_leave(struct notion *n);

/* --- the database ------------------------------------------------------------------------------------ */

/* Finds the data source and checks its properties. */
enum result notion_schema(struct notion *n, struct str database);
/* The database's id in a text: an id, or the address of the database. Empty: there is none. */
struct str notion_id(struct arena *a, struct str text);

/* --- its owner ---------------------------------------------------------------------------------------
 * Two queues in one database would take each other's pages for their own. So the first queue leaves its mark in the
 * description of the property 'Pawl ID', and pawl refuses all others. */

/* Reads the mark in the properties of the database. MISCONFIGURED: it is another queue's. */
enum result notion_owner_read(struct notion *n, const json_t *properties);
/* Writes our mark, if there is none. */
enum result notion_own(struct notion *n);
/* Reads the mark again. */
enum result notion_still_own(struct notion *n);
/* Checks the mark again if this sync wrote it, because a queue that began at the same time may have
 * replaced it. */
enum result notion_owned(struct notion *n);

/* --- pages ------------------------------------------------------------------------------------------- */

struct page {
	struct str id;
	struct values is;
	int64_t edited, created; /* Notion's times, which are whole minutes */
	bool by_us, last_by_us;  /* our integration made the page, or the last edit */
	bool trashed;
	struct str parent; /* the page of the parent; empty: none */
	struct str body;   /* the page's text, if body_read */
	bool body_read;
};

/* false: it is not a page. */
bool notion_page_read(struct notion *n, const json_t *o, struct page *p, struct arena *a);
struct str notion_plain(const json_t *rich, struct arena *a);
json_t *notion_rich(struct str text);
/* The beginning of the text, as long as a rich text can be. */
struct str notion_fit(struct str text);
struct str notion_body_hash(struct arena *a, struct str text);
enum result notion_body(struct notion *n, struct page *p, struct arena *a);
enum result notion_get(struct notion *n, struct str id, struct page *p, struct arena *a);
/* Writes these fields; *p becomes the page as Notion returns it. */
enum result notion_patch(struct notion *n, struct page *p, const struct values *v,
			 const bool *which, struct str parent, struct arena *a);
enum result notion_patch_body(struct notion *n, struct page *p, struct str text, struct arena *a);
/* Finds this task's page in Notion's index; *found: it is there. */
enum result notion_find(struct notion *n, struct str task, struct page *p, bool *found,
			struct arena *a);
enum result notion_make(struct notion *n, const struct values *v, struct str parent,
			struct str body, struct page *p, struct arena *a);
enum result notion_trash(struct notion *n, struct str id);
/* Adds a comment. again: only if the page does not have it already. */
enum result notion_comment(struct notion *n, struct str page, struct str text, bool again,
			   struct arena *a);

/* --- the state ----------------------------------------------------------------------------------------
 * For each task the values of both sides after the last sync. It is a file of lines; the last line about a task counts. A
 * line is written after the change that it records: a sync that was killed in between finds both sides alike. */

/* The writes that a sync has begun. It saves them first, so that the next sync does not take them
 * for a person's edits. */
struct doing {
	struct str id;      /* part of the request ids of its calls; empty: nothing was begun */
	int64_t at;         /* wall clock */
	int64_t version;    /* the task's version before */
	struct values push; /* go to the page */
	struct values pull; /* go to the task */
	struct values from; /* the values of the page that `pull` comes from */
};

struct link {
	struct str task, page;
	struct values t, p; /* values of the task and of the page */
	struct values was; /* notion_was(): earlier values of the page, for reads that are behind */
	int64_t at;        /* when these values were recorded (wall clock) */
	int64_t edited;    /* of the page */
	int64_t version;   /* the task's version; -1: check the task again */
	struct str comment; /* ids of the recent comments that were seen */
	int64_t comment_at; /* time of the newest comment */
	struct str foreign; /* token of the lock that represents another program's lock */
	/* "page": a page is being made since `at`, with the values `t`. "task": a task is being
	 * made, with the values `p`. */
	struct str making;
	struct str saying; /* hash of a comment that is being added */
	struct doing doing;
	bool gone;    /* the task or the page does not exist any more */
	size_t place; /* among all links; not stored */
	bool fresh;   /* this round made the link's task; not stored */
	bool touched; /* somebody edited the page; not stored */
	bool refused; /* this page, with the values `p`, cannot become a task */
	bool loose;   /* our last PATCH may hide an edit of the text: read the text again */
};

struct state;
/* Opens the state. If another state was used since the last sync, forgets the status and the values
 * that only pawl writes. */
enum result notion_state_open(struct notion *n, struct state **out);
void notion_state_close(struct state *s);
/* NULL: there is none. */
struct link *notion_link_of_task(struct state *s, struct str task);
struct link *notion_link_of_page(struct state *s, struct str page);
/* Makes an empty link. task: empty if the page is not a task yet. */
struct link *notion_link_new(struct state *s, struct str task, struct str page);
void notion_link_page(struct state *s, struct link *l, struct str page);
void notion_link_task(struct state *s, struct link *l, struct str task);
enum result notion_link_save(struct state *s, struct link *l);
size_t notion_links(struct state *s);
struct link *notion_link_at(struct state *s, size_t i);
/* All pages edited before this time were read. */
int64_t notion_mark(const struct state *s);
enum result notion_mark_set(struct state *s, int64_t edited);
/* The place of the link whose comments come next. */
size_t notion_talk(const struct state *s);
enum result notion_talk_set(struct state *s, size_t place);

/* --- merging ------------------------------------------------------------------------------------------ */

enum field_action {
	D_NONE,
	D_SAME, /* both sides are equal: remember that */
	D_PUSH, /* write the task's value to the page */
	D_PULL, /* write the page's value to the task */
	D_BACK  /* write to the page, because its edit is refused */
};

struct plan {
	enum field_action action[F_END];
	bool clash[F_END]; /* both sides changed it */
};

struct merge {
	const struct link *l;
	const struct values *t, *p;
	bool young;   /* a read may be behind the last sync */
	bool foreign; /* another program holds the page, so the lock's fields are its own */
	struct arena *arena;
};

/* Decides for each field what to do (enum field_action). */
void notion_merge(const struct merge *m, struct plan *out);
/* Adds a value to the list of values that a page had. */
struct str notion_was(struct str list, struct str value, struct arena *a);
/* The operation that leads from one status to another; OP_NONE: people cannot make this move. own:
 * the syncer holds the task for another program. */
enum op notion_move(int64_t from, int64_t to, bool own);

/* --- one task and its page ------------------------------------------------------------------------------ */

struct round {
	struct notion *n;
	struct state *state;
	struct arena *arena; /* memory for one task */
	int64_t now;         /* the store's time */
	json_t *ids;         /* lower-case id -> its place in tasks */
	json_t *made;        /* page -> id of the task that was made from it */
	const struct task *tasks;
	size_t n_tasks;
	bool *seen;
	int64_t began; /* Notion's time; the sync has read all earlier edits */
};

/* One task and its page. */
struct item {
	struct round *r;
	struct notion *n;
	const struct task *t; /* the task's current state */
	struct link *l;
	struct page *p;
	struct values tv;     /* of the task */
	struct values before; /* the page's values, before they were changed here */
	struct plan plan;
	bool young;     /* reads may be behind the last sync */
	bool held;      /* somebody holds the task in the queue */
	bool foreign;   /* another program holds the page */
	bool later;     /* the task changed during the round */
	bool patched;   /* properties were written to the page */
	struct str why; /* the refusals, for a comment on the page */
};

const struct task *notion_task(const struct round *r, struct str id);
void notion_task_values(struct item *x);
/* Calls the queue as the syncer; the answer is in the round's arena. SUCCESS: ans->code is the
 * queue's decision. Otherwise the store failed, or its server refused the token, and the sync
 * ends. */
enum result notion_queue(struct round *r, const struct request *rq, struct answer *ans);
/* Brings a task and its page in step. */
enum result notion_reconcile(struct round *r, const struct task *t, struct link *l, struct page *p);
/* Finds the edits that the queue would refuse, and marks their fields as D_BACK. */
void notion_decide(struct item *x);
/* Makes the page's edits in the queue. A refused edit is taken back on the page. */
enum result notion_pull(struct item *x);
/* Notes the page's edits before notion_pull() makes them in the queue. */
enum result notion_begin_pull(struct item *x);
/* Notes the values before they are written to the page. */
enum result notion_begin_push(struct item *x);
/* For a sync that ended before it noted the end of its writes: the values that it wrote itself
 * count as those of the last sync. */
enum result notion_settle(struct item *x);
/* The parts of notion_pull(), each one call to the queue. */
enum part { PART_FIELDS, PART_PARENT, PART_STATUS, PART_END };
struct str notion_call_id(const struct item *x, enum part part);
bool notion_is_pushed(const struct item *x, enum notion_field f);
/* Remembers the values of both sides, after the action for this field is done. */
void notion_keep(struct item *x, enum notion_field f);
/* Represents another program's lock on the page by a lock in the queue, as long as it is live. */
enum result notion_lock(struct item *x);
/* Is the link so recent that reads may be behind it? */
bool notion_young(const struct notion *n, const struct link *l);
enum result notion_new_task(struct round *r, struct page *p);
enum result notion_new_page(struct round *r, const struct task *t);
/* Completes a link if the sync ended before it noted the page or task that it had made. The values
 * that the sync used show which edits came later. */
void notion_complete(struct state *s, struct link *l, struct str task);
/* Is this still the page that could not become a task? */
bool notion_is_refused(const struct link *l, const struct page *p);
enum result notion_comments(struct round *r, struct link *l);
enum result notion_round(struct notion *n, struct state *s);

enum result notion_run(const struct sync_job *job, struct sync_done *out, struct answer *ans,
		       struct arena *a);

#endif

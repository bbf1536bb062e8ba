/*
 * Checks the event log of a queue against the contract, and against the records of its tasks.
 *
 * It reads one snapshot from its first line to its last, and keeps a trail for each task: the hash of the newest line,
 * and the status, the fence and the lock that follow from the lines. The log is hostile: whatever a line says, the audit
 * reports it and continues. It never guesses: what the log does not show (renewals, other programs' changes, lines that
 * `archive` cut) is no violation.
 *
 *              first line without `prev`             its hash is the next line's `prev`
 *   (OPEN) ---------------------------> (FOLLOWS) <------------------------------------.
 *     ^                                     |  '-----------------------------------------'
 *     |   restoring, restored               |  another `prev`: AUDIT_CHAIN
 *     '-------------------------------------'
 */
#include <stdlib.h>

#include "base/text.h"
#include "base/when.h"
#include "core/lease.h"
#include "core/rules.h"
#include "core/typed.h"
#include "core/validate.h"
#include "format/record_form.h"
#include "format/task_form.h"
#include "proof/check/checker.h"
#include "queue/transfer.h"

#define PROGRESS_LINES 4096
#define RESTORES_MAX 8 /* a backup may contain the lines of earlier restores, and so on */

enum lock_known { LOCK_UNKNOWN, LOCK_HELD, LOCK_NONE };

struct trail {
	unsigned char head[SHORT_HASH_LEN], recorded[SHORT_HASH_LEN];
	int64_t fence, expires, line, at;     /* line, at: number and time of the newest one */
	int64_t record_fence, record_expires; /* record_expires 0: no lock */
	uint32_t restore;                     /* number of the restore before its newest line */
	uint8_t status, record_status;        /* 0: unknown */
	uint8_t lock;                         /* enum lock_known */
	bool known, lowered; /* known: the fence is; lowered: a restore changed its time */
	bool seen, manual, removed, has_record, is_gone, has_chain;
};

struct audit {
	const struct audit_plan *plan;
	struct audit_report *out;
	struct arena *arena; /* of the report */
	struct arena words;  /* keys */
	struct arena text;   /* texts of this line; few are kept */
	struct tally keys;
	struct trail *trails; /* by number in keys */
	size_t room;
	struct trail queue;     /* of the events about the queue as a whole */
	int64_t line;           /* number of the line that is read */
	const struct entry *at; /* the line; NULL: the records are compared */
	int64_t cut, relogged;  /* meta/log_from, meta/relogged */
	uint32_t restore;       /* counts `restoring` and `restored` */
	bool strict;            /* the newest of them was `restored`: chains begin without `prev` */
	int64_t lowered_to;     /* the time of the restore that is read; 0: none */
	unsigned char outer[RESTORES_MAX][SHORT_HASH_LEN];
	size_t n_outer;
};

const char *audit_kind_name(enum audit_kind kind)
{
	static const char *const names[AUDIT_KINDS] = {
		[AUDIT_CHAIN] = "chain", [AUDIT_FENCE] = "fence",   [AUDIT_HOLDERS] = "holders",
		[AUDIT_LOCK] = "lock",   [AUDIT_STATUS] = "status", [AUDIT_RECORD] = "record",
		[AUDIT_LINE] = "line",
	};

	return names[kind];
}

/* --- findings ------------------------------------------------------------------------------------ */

static void audit_find(struct audit *x, enum audit_kind kind, struct str task, struct str text)
{
	struct audit_report *out = x->out;
	struct audit_finding *f;

	if (x->at && x->at->at < x->plan->since)
		return;
	out->violations++;
	out->counts[kind]++;
	if (out->n_findings == AUDIT_SHOWN)
		return;
	out->findings = arena_grow(x->arena, out->findings, out->n_findings, sizeof(*f));
	f = &out->findings[out->n_findings++];
	*f = (struct audit_finding){ .kind = kind,
				     .task = text_line(x->arena, task),
				     .text = arena_str(x->arena, text) };
	if (x->at) {
		f->cursor = text_line(x->arena, x->at->cursor);
		f->line = x->line;
		f->at = x->at->at;
	}
}

static struct str audit_status(int64_t status)
{
	const char *name = status_name(status);

	return str_c(name ? name : "unknown");
}

/* --- trails -------------------------------------------------------------------------------------- */

static struct trail *trail_of(struct audit *x, struct str key)
{
	uint32_t n;

	if (!key.n)
		return &x->queue;
	n = tally_find(&x->keys, key);
	if (!n)
		n = tally_add(&x->keys, arena_str(&x->words, key));
	if (n >= x->room) {
		size_t room = x->room ? x->room * 2 : 64;

		x->trails = mem_grow(x->trails, room * sizeof(*x->trails));
		memset(x->trails + x->room, 0, (room - x->room) * sizeof(*x->trails));
		x->room = room;
	}
	return &x->trails[n];
}

static void trail_doubt(struct trail *t)
{
	t->known = false;
	t->status = 0;
	t->lock = LOCK_UNKNOWN;
}

/* A restore continues the log with lines of another time, so nothing of the earlier lines holds any more. */
static void trail_refresh(const struct audit *x, struct trail *t)
{
	if (t->restore == x->restore)
		return;
	t->restore = x->restore;
	t->seen = t->lowered = t->removed = false;
	trail_doubt(t);
}

/* --- records ------------------------------------------------------------------------------------- */

static void keep_chain(struct trail *t, struct str hash)
{
	t->has_chain = hash.n == SHORT_HASH_LEN;
	if (t->has_chain)
		memcpy(t->recorded, hash.p, SHORT_HASH_LEN);
}

static void keep_task(struct audit *x, const struct record *r, struct str key)
{
	struct arena a = { 0 };
	struct task t = { 0 };
	struct trail *to = trail_of(x, key);

	to->has_record = true;
	if (!task_unpack(arena_str(&a, r->hot), &t, &a)) {
		keep_chain(to, t.chain);
		to->record_fence = t.fence;
		to->record_expires = t.lock.holder.n && !t.lock.foreign ? t.lock.expires_at : 0;
		if (t.status > 0 && t.status < STATUS_END)
			to->record_status = (uint8_t)t.status;
	}
	arena_free(&a);
}

static void keep_gone(struct audit *x, const struct record *r, struct str key)
{
	struct trail *to = trail_of(x, key);

	to->is_gone = true;
	if (!to->has_record) /* an undone removal keeps both records, and the task's has the newest hash */
		keep_chain(to, r->body);
}

static void audit_record(struct audit *x, const struct record *r)
{
	struct arena a = { 0 };
	struct str name = r->key;

	if (str_eq(name, STR("meta/chain")))
		keep_chain(&x->queue, r->hot);
	else if (str_eq(name, STR("meta/log_from")))
		(void)number_valid(r->hot, &x->cut);
	else if (str_eq(name, STR("meta/relogged")))
		(void)number_valid(r->hot, &x->relogged);
	else if (str_starts(name, STR("task/")))
		keep_task(x, r, name);
	else if (str_cut_prefix(&name, STR("lock/")))
		keep_task(x, r, task_key(&a, name));
	else if (str_cut_prefix(&name, STR("gone/")))
		keep_gone(x, r, task_key(&a, name));
	arena_free(&a);
}

/* --- the chain ----------------------------------------------------------------------------------- */

static bool is_one_of(struct str name, const char *const *names)
{
	while (*names && !str_is(name, *names))
		names++;
	return *names;
}

/* Events whose task may have lost its record, and with it the hash. */
static bool may_start(const struct event *ev)
{
	static const char *const names[] = { "created", "imported", "repaired",
					     "removed", "undone",   NULL };

	return is_one_of(ev->name, names);
}

/* A cut may remove some of the old lines that an import added, and the lines that mark a restore. */
static bool may_be_cut(const struct audit *x, const struct trail *t, const struct event *ev)
{
	static const char *const names[] = { "comment", "imported", "updated", NULL };

	return x->cut && x->relogged &&
	       (is_one_of(ev->name, names) ||
		(t->at < x->cut && (!ev->prev.n || x->at->at < x->cut)));
}

static bool audit_continues(const struct trail *t, const struct event *ev)
{
	return ev->prev.n == SHORT_HASH_LEN && !memcmp(ev->prev.p, t->head, SHORT_HASH_LEN);
}

static void check_first(struct audit *x, const struct event *ev)
{
	bool whole = !x->restore || x->strict;

	if (ev->prev.n && whole && !x->cut)
		audit_find(
			x, AUDIT_CHAIN, ev->task,
			STR("lines before this one are missing: it continues a chain that the log does not have"));
}

static void check_next(struct audit *x, struct trail *t, const struct event *ev)
{
	bool starts = !ev->prev.n && may_start(ev);

	if (audit_continues(t, ev) || t->lowered)
		return;
	trail_doubt(t);
	x->out->restarts += starts;
	if (starts || may_be_cut(x, t, ev))
		return;
	audit_find(x, AUDIT_CHAIN, ev->task,
		   arena_printf(&x->text,
				ev->prev.n ? "line %lld does not follow line %lld: that one was "
					     "changed, a line between them was removed, or one of "
					     "them was moved or inserted"
					   : "line %lld does not name line %lld, the one before it",
				(long long)x->line, (long long)t->line));
}

static void audit_follow(struct audit *x, struct trail *t, const struct entry *e,
			 const struct event *ev)
{
	if (t->seen)
		check_next(x, t, ev);
	else
		check_first(x, ev);
	t->seen = true;
	/* a restore lowers a time that is after its own, so the next line has the hash of another time */
	t->lowered = x->lowered_to && e->at >= x->lowered_to;
	t->line = x->line;
	t->at = e->at;
	event_hash(e->data, e->at, t->head);
}

/* --- restores ------------------------------------------------------------------------------------ */

/* The lines from a backup continue other chains. `restored` continues that of `restoring`. */
static bool restore_ends(struct audit *x, const struct event *ev)
{
	size_t i = ev->prev.n == SHORT_HASH_LEN ? x->n_outer : 0;

	while (i && memcmp(ev->prev.p, x->outer[i - 1], SHORT_HASH_LEN) != 0)
		i--;
	x->n_outer = i ? i - 1 : x->n_outer;
	return i;
}

static void restore_begins(struct audit *x, int64_t at)
{
	if (x->n_outer < RESTORES_MAX)
		memcpy(x->outer[x->n_outer++], x->queue.head, SHORT_HASH_LEN);
	x->restore++;
	x->strict = false;
	if (!x->lowered_to)
		x->lowered_to = at;
}

static void audit_queue_line(struct audit *x, const struct entry *e, const struct event *ev)
{
	struct trail *t = &x->queue;

	trail_refresh(x, t);
	if (str_is(ev->name, "restored") && restore_ends(x, ev))
		t->seen = false, x->strict = false;
	audit_follow(x, t, e, ev);
	if (str_is(ev->name, "restoring")) {
		restore_begins(x, e->at);
	} else if (str_is(ev->name, "restored")) {
		x->restore++;
		x->strict = true;
		t->restore = x->restore; /* the queue's own chain continues */
		if (!x->n_outer)
			x->lowered_to = 0;
	}
}

/* --- what the lines say -------------------------------------------------------------------------- */

static void check_status(struct audit *x, struct trail *t, const struct event *ev)
{
	if (!rules_event_fits(ev->name, ev->from, ev->to))
		audit_find(x, AUDIT_STATUS, ev->task,
			   arena_printf(&x->text,
					"no operation moves a task from %s to %s with `%.*s`",
					audit_status(ev->from).p, audit_status(ev->to).p,
					STRF(ev->name)));
	else if (!x->plan->shared && t->status && ev->from && ev->from != t->status)
		audit_find(x, AUDIT_STATUS, ev->task,
			   arena_printf(&x->text, "it moves the task from %s, but the task was %s",
					audit_status(ev->from).p, audit_status(t->status).p));
	if (ev->to)
		t->status = (uint8_t)ev->to;
}

/* Only an acquisition raises the fence. An import, a repair and a new task with an old id may bring a higher one. */
static void check_fence(struct audit *x, struct trail *t, const struct event *ev)
{
	static const char *const bring[] = { "created", "imported", "updated", "repaired",
					     "removed", "undone",   NULL };

	if (str_is(ev->name, "comment"))
		return; /* an imported one has no fence */
	if (t->known && ev->fence < t->fence && !str_is(ev->name, "removed"))
		audit_find(x, AUDIT_FENCE, ev->task,
			   arena_printf(&x->text, "its fence is %lld, after fence %lld",
					(long long)ev->fence, (long long)t->fence));
	else if (t->known && ev->fence > t->fence && !is_one_of(ev->name, bring) &&
		 !x->plan->shared)
		audit_find(x, AUDIT_FENCE, ev->task,
			   arena_printf(&x->text,
					"its fence is %lld, but the last one granted is %lld",
					(long long)ev->fence, (long long)t->fence));
	t->known = ev->fence || !str_is(ev->name, "removed");
	t->fence = ev->fence;
}

/* A claim may take over its caller's manual lock, and keeps its fence. */
static bool takes_over(const struct trail *t, const struct event *ev)
{
	return str_is(ev->name, "claimed") && t->known && ev->fence == t->fence &&
	       (t->lock == LOCK_UNKNOWN || (t->lock == LOCK_HELD && t->manual));
}

static void audit_acquire(struct audit *x, struct trail *t, const struct entry *e,
			  const struct event *ev)
{
	bool over = takes_over(t, ev);

	if (t->known && !over && ev->fence <= t->fence)
		audit_find(x, AUDIT_FENCE, ev->task,
			   arena_printf(&x->text, "it grants fence %lld, after fence %lld",
					(long long)ev->fence, (long long)t->fence));
	if (t->lock == LOCK_HELD && !over && e->at < t->expires && !x->plan->shared)
		audit_find(x, AUDIT_HOLDERS, ev->task,
			   arena_printf(&x->text,
					"it grants fence %lld while fence %lld is live until %s",
					(long long)ev->fence, (long long)t->fence,
					arena_cstr(&x->text, when_text(&x->text, t->expires))));
	x->out->acquisitions += !over && e->at >= x->plan->since && !typed_of(ev->task);
	t->lock = LOCK_HELD;
	t->manual = str_is(ev->name, "locked");
	t->expires = ev->expires;
	t->fence = ev->fence;
	t->known = true;
}

/* Checks an event that only the holder's call can cause. */
static void check_holder(struct audit *x, const struct trail *t, const struct event *ev)
{
	static const char *const own[] = { "done",    "review",   "escalated", "failed",
					   "blocked", "unlocked", NULL };

	if (t->lock == LOCK_NONE && is_one_of(ev->name, own) && !x->plan->shared)
		audit_find(x, AUDIT_LOCK, ev->task,
			   arena_printf(&x->text,
					"`%.*s` needs the task's lock, and nobody held it",
					STRF(ev->name)));
}

static void audit_abandoned(struct audit *x, struct trail *t, const struct entry *e,
			    const struct event *ev)
{
	if (t->lock == LOCK_NONE && !x->plan->shared)
		audit_find(x, AUDIT_LOCK, ev->task,
			   STR("nobody held the task that it calls abandoned"));
	else if (t->lock == LOCK_HELD && e->at < t->expires && !x->plan->shared &&
		 !str_starts(ev->text, STR("process ")))
		audit_find(x, AUDIT_HOLDERS, ev->task,
			   arena_printf(&x->text,
					"it ends the lease of fence %lld before it expired at %s",
					(long long)t->fence,
					arena_cstr(&x->text, when_text(&x->text, t->expires))));
	t->expires = 0;
}

static void end_lock(struct trail *t, const struct event *ev)
{
	static const char *const ends[] = { "released",  "done",    "review",      "approved",
					    "escalated", "failed",  "canceled",    "unblocked",
					    "rework",    "retried", "reopened",    "unlocked",
					    "removed",   "created", "lock_broken", "cleaned_up",
					    "imported",  NULL };

	if (is_one_of(ev->name, ends) ||
	    (str_is(ev->name, "needs_help") && ev->from == IN_PROGRESS))
		t->lock = LOCK_NONE;
	else if (ev->to && !str_is(ev->name, "blocked") && !str_is(ev->name, "needs_help"))
		t->lock = LOCK_UNKNOWN; /* update and undo may end a lock that has expired */
	t->removed = str_is(ev->name, "removed");
	if (t->removed || str_is(ev->name, "imported") || str_is(ev->name, "undone") ||
	    str_is(ev->name, "repaired"))
		t->status = 0;
}

static void audit_step(struct audit *x, struct trail *t, const struct entry *e,
		       const struct event *ev)
{
	static const char *const grants[] = { "claimed", "resumed", "locked", NULL };

	check_status(x, t, ev);
	if (is_one_of(ev->name, grants)) {
		audit_acquire(x, t, e, ev);
		return;
	}
	check_fence(x, t, ev);
	check_holder(x, t, ev);
	if (str_is(ev->name, "abandoned"))
		audit_abandoned(x, t, e, ev);
	end_lock(t, ev);
}

/* --- lines --------------------------------------------------------------------------------------- */

/* NULL: pawl wrote it. */
static const char *line_fault(const struct entry *e, struct event *ev)
{
	struct arena a = { 0 };
	const char *fault = NULL;

	if (event_unpack(e->data, ev)) {
		*ev = (struct event){ 0 };
		return "its bytes are not those of an event";
	}
	fault = event_fault(ev);
	if (!fault && e->at < 0)
		fault = "its time is out of range";
	if (!fault && !str_eq(e->key, ev->task.n ? task_key(&a, ev->task) : STR("")))
		fault = "it stands among the lines of another task";
	arena_free(&a);
	return fault;
}

static void audit_line(struct audit *x, const struct entry *e)
{
	struct event ev;
	struct trail *t;
	const char *fault = line_fault(e, &ev);
	bool counts = e->at >= x->plan->since;

	x->at = e;
	x->line++;
	x->out->lines += counts;
	if (counts && !x->out->from)
		x->out->from = e->at;
	if (fault) {
		audit_find(x, AUDIT_LINE, STR(""),
			   arena_printf(&x->text, "pawl did not write this line: %s", fault));
	} else if (!ev.task.n) {
		audit_queue_line(x, e, &ev);
	} else {
		t = trail_of(x, e->key);
		trail_refresh(x, t);
		audit_follow(x, t, e, &ev);
		audit_step(x, t, e, &ev);
	}
	if (x->plan->progress && x->line % PROGRESS_LINES == 0)
		x->plan->progress(x->plan->ctx, (size_t)x->line);
	x->at = NULL;
	arena_free(&x->text);
}

static int audit_item(void *ctx, const struct item *it)
{
	struct audit *x = ctx;

	if (it->line)
		audit_line(x, &it->entry);
	else
		audit_record(x, &it->rec);
	return x->plan->each ? x->plan->each(x->plan->ctx, it) : 0;
}

/* --- the records against the lines ---------------------------------------------------------------- */

static void compare_chain(struct audit *x, const struct trail *t, struct str task)
{
	if (!t->seen) {
		if (t->has_chain && !x->cut)
			audit_find(
				x, AUDIT_RECORD, task,
				STR("its record names a newest line, but the log has none of its lines"));
		return;
	}
	if (!t->has_chain || memcmp(t->recorded, t->head, SHORT_HASH_LEN) != 0)
		audit_find(
			x, AUDIT_RECORD, task,
			arena_printf(
				&x->text,
				"line %lld is not the newest line that its record names: a line was "
				"changed, or lines after it were removed or inserted",
				(long long)t->line));
}

static void compare_task(struct audit *x, const struct trail *t, struct str task)
{
	bool seen = t->seen && !x->plan->shared;

	if (seen && t->status && t->record_status && t->status != t->record_status)
		audit_find(x, AUDIT_RECORD, task,
			   arena_printf(&x->text, "it is %s, but its lines end with %s",
					audit_status(t->record_status).p,
					audit_status(t->status).p));
	if (seen && t->known && t->fence != t->record_fence)
		audit_find(x, AUDIT_RECORD, task,
			   arena_printf(&x->text,
					"its fence is %lld, but its lines end with fence %lld",
					(long long)t->record_fence, (long long)t->fence));
	if (seen && t->lock == LOCK_NONE && t->record_expires)
		audit_find(x, AUDIT_RECORD, task,
			   arena_printf(
				   &x->text,
				   "it is held under fence %lld, but that lock ended in its lines",
				   (long long)t->record_fence));
}

static void compare_trail(struct audit *x, struct trail *t, struct str key)
{
	struct str task = key;

	trail_refresh(x, t);
	if (x->cut && x->relogged && t->at < x->cut)
		t->seen = false; /* a restore may have come after its lines */
	(void)str_cut_prefix(&task, STR("task/"));
	if (t->has_record || t->is_gone)
		compare_chain(x, t, task);
	else if (t->seen && !t->removed)
		audit_find(x, AUDIT_RECORD, task,
			   STR("the log has its lines, but there is no such task"));
	if (t->has_record)
		compare_task(x, t, task);
	x->out->tasks += t->has_record;
	arena_free(&x->text);
}

static void compare_all(struct audit *x)
{
	for (uint32_t i = 1; i < x->keys.n; i++)
		compare_trail(x, &x->trails[i], x->keys.v[i]);
	if (x->queue.has_chain || x->queue.seen)
		compare_chain(x, &x->queue, STR(""));
}

enum result audit_queue(const struct audit_plan *plan, struct audit_report *out, struct answer *ans,
			struct arena *a)
{
	struct audit x = { .plan = plan, .out = out, .arena = a };
	enum result code;

	*out = (struct audit_report){ 0 };
	code = queue_dump(plan->queue, audit_item, &x, &out->stopped, ans, a);
	if (code == SUCCESS && !out->stopped)
		compare_all(&x);
	tally_free(&x.keys);
	free(x.trails);
	arena_free(&x.words);
	arena_free(&x.text);
	return code;
}

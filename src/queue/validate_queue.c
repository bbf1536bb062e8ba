/* Decides whether a record can be used and which repair it needs. doctor and `doctor --fix` both
 * ask here, so the report and the repair agree. A check runs in one snapshot and reports its
 * findings at the end, so a check that starts again reports nothing twice. */
#include "base/secret.h"
#include "base/text.h"
#include "core/order.h"
#include "core/validate.h"
#include "format/answer_form.h"
#include "format/record_form.h"
#include "format/task_form.h"
#include "format/undo_form.h"
#include "queue/queue_private.h"
#include "queue/remote_queue.h"

#define NAMED 20 /* doctor lists at most this many records of a kind */
#define TRIES 8

struct finding {
	enum check_level level;
	const char *what;
	struct str text, fix;
};

struct examination {
	struct store *store;
	bool locks_only;
	struct arena
		arena; /* owns the findings; they are reported last: the check may start again */
	struct finding *found;
	size_t n_found;
	struct recount record_counts;
	size_t bad, off, lines;
};

static void validate_find(struct examination *x, enum check_level level, const char *what,
			  struct str text, struct str fix)
{
	x->found = arena_grow(&x->arena, x->found, x->n_found, sizeof(*x->found));
	x->found[x->n_found++] = (struct finding){ level, what, arena_str(&x->arena, text),
						   arena_str(&x->arena, fix) };
}

static struct str repair_of(const struct record *r, const struct judgment *j, struct arena *a)
{
	struct str removal = arena_printf(a, "pawl remove %s --force",
					  arena_cstr(a, bad_name(r->key, a)));

	if (j->repair == REPAIR_LEAVE)
		return removal;
	if (j->repair == REPAIR_AWAY || j->repair == REPAIR_TASK)
		return arena_printf(a, CHECK_REPAIRS "%s; to remove it instead: %.*s", j->does,
				    STRF(removal));
	return arena_printf(a, CHECK_REPAIRS "%s", j->does);
}

static void name_bad(struct examination *x, const struct record *r, const struct judgment *j,
		     struct arena *a)
{
	const char *how = j->repair == REPAIR_INDEX ? ":" : " cannot be used:";

	if (x->bad++ < NAMED)
		validate_find(x, CHECK_BAD, "record",
			      arena_printf(a, "%s%s %s", arena_cstr(a, bad_shown(r->key, a)), how,
					   j->fault),
			      repair_of(r, j, a));
}

static int validate_examine(const struct record *r, void *ctx)
{
	struct examination *x = ctx;
	struct arena a = { 0 };
	struct judgment j;

	repair_decide(r, x->locks_only, &j, &a);
	if (j.fault)
		name_bad(x, r, &j, &a);
	arena_free(&a);
	return 0;
}

/* --- counts and links ----------------------------------------------------------------------------------- */

/* A wrong count holds a task back, or offers it too early. A link to a missing task does no harm. */
static int examine_counts(const struct record *r, void *ctx)
{
	struct examination *x = ctx;
	struct arena a = { 0 };
	struct record_counts_fault f;

	if (record_counts_compare(&x->record_counts, r, &f, &a) && x->off++ < NAMED) {
		struct str name = bad_shown(r->key, &a);

		if (f.counts)
			validate_find(
				x, CHECK_BAD, "counts of tasks",
				arena_printf(&a, "%.*s: %.*s", STRF(name), STRF(f.text)),
				STR(CHECK_REPAIRS "count its dependencies and sub-tasks again"));
		if (f.depends.n)
			validate_find(
				x, CHECK_NOTE, "links of tasks",
				arena_printf(&a, "%.*s depends on %s, which does not exist",
					     STRF(name),
					     arena_cstr(&a, bad_shown(f.depends.v[0], &a))),
				STR(CHECK_REPAIRS
				    "remove the dependency; a task that waits for it goes to Needs Help"));
		if (f.parent)
			validate_find(x, CHECK_NOTE, "links of tasks",
				      arena_printf(&a,
						   "%.*s is a sub-task of %s, which does not exist",
						   STRF(name),
						   arena_cstr(&a, bad_shown(r->ix.parent, &a))),
				      STR(CHECK_REPAIRS "make it a task without a parent"));
	}
	arena_free(&a);
	return 0;
}

static int examine_all_counts(struct examination *x)
{
	struct query tasks = { 0 };
	int r;

	if (x->locks_only)
		return 0; /* the tasks belong to another program */
	r = record_counts_take(&x->record_counts, x->store, NULL);
	if (!r)
		r = x->store->ops->scan(x->store, &tasks, examine_counts, x);
	recount_free(&x->record_counts);
	return r;
}

/* --- the whole ---------------------------------------------------------------------------------------------- */

static int examine_line(const struct entry *en, void *ctx)
{
	struct examination *x = ctx;
	struct event ev;

	x->lines += event_of(en, &ev) != 0;
	return 0;
}

static void sum_up(struct examination *x)
{
	struct arena a = { 0 };

	if (!x->bad)
		validate_find(x, CHECK_OK, "record", STR("every record can be used"), STR(""));
	else if (x->bad > NAMED)
		validate_find(x, CHECK_BAD, "record",
			      arena_printf(&a, "%zu more cannot be used", x->bad - NAMED),
			      STR(CHECK_REPAIRS "repair these records, too"));
	if (x->off > NAMED)
		validate_find(x, CHECK_BAD, "counts of tasks",
			      arena_printf(&a, "%zu more tasks have wrong counts or links",
					   x->off - NAMED),
			      STR(CHECK_REPAIRS "repair these tasks, too"));
	if (!x->off && !x->locks_only)
		validate_find(x, CHECK_OK, "counts of tasks",
			      STR("the counts and links of every task are right"), STR(""));
	if (x->lines)
		validate_find(
			x, CHECK_NOTE, "log",
			arena_printf(&a, "%zu lines of the log cannot be used and are left out",
				     x->lines),
			STR("nothing needs them; pawl backup and pawl restore --force remove them permanently"));
	arena_free(&a);
}

static int validate_in_snapshot(void *ctx)
{
	struct examination *x = ctx;
	struct query tasks = { .body = true }, others = { .pick = PICK_OTHERS, .body = true };
	struct entry_query lines = { 0 };
	int r = x->store->ops->scan(x->store, &tasks, validate_examine, x);

	if (!r)
		r = x->store->ops->scan(x->store, &others, validate_examine, x);
	if (!r)
		r = examine_all_counts(x);
	if (!r)
		r = x->store->ops->entries(x->store, &lines, examine_line, x);
	if (!r)
		sum_up(x);
	return r;
}

/* For doctor: examines every record and the log. */
static int validate_records(struct store *s, bool locks_only, check_fn *fn, void *ctx)
{
	int r = STORE_MOVED;

	for (int i = 0; r == STORE_MOVED && i < TRIES; i++) {
		struct examination x = { .store = s, .locks_only = locks_only };

		r = s->ops->snapshot(s, true, validate_in_snapshot, &x);
		for (size_t k = 0; !r && k < x.n_found; k++)
			fn(ctx, x.found[k].level, x.found[k].what, x.found[k].text, x.found[k].fix);
		arena_free(&x.arena);
	}
	return r;
}

struct checking {
	check_fn *fn;
	void *ctx;
	bool damaged;
};

static void pass_on(void *ctx, enum check_level level, const char *what, struct str text,
		    struct str fix)
{
	struct checking *c = ctx;

	c->damaged |= level == CHECK_BAD && !strcmp(what, "integrity");
	c->fn(c->ctx, level, what, text, fix);
}

/* A damaged store must be repaired first, so its records are not checked. */
enum result queue_check(struct queue *q, check_fn *fn, void *ctx, struct answer *ans,
			struct arena *a)
{
	struct checking c = { fn, ctx, false };
	int r;

	if (q->remote)
		return q->far->check(q->remote, fn, ctx, ans, a);
	r = q->store->ops->check(q->store, pass_on, &c);

	if (!r && !c.damaged)
		r = validate_records(q->store, q->config.policy.locks_only, fn, ctx);
	return r ? fault_answer(&q->err, ans, a) : SUCCESS;
}

/* --- decide ----------------------------------------------------------------------------------- */

/* Decides which repair a record needs. */

#define GUARD_KEY STR("meta/guard")

/* A due task may already have been promoted. On a branch of lock files, the store does not offer
 * tasks that others are working on. */
static bool lane_fits(int want, int have, bool locks_only)
{
	return want == have || (want == LANE_LATER && have == LANE_READY) ||
	       (locks_only && have == LANE_NONE);
}

/* Stores filter and sort by the index, so it must agree with the task. */
static bool index_differs(const struct record *r, bool locks_only, struct arena *a)
{
	struct index ix;
	struct task t;

	if (!str_starts(r->key, STR("task/")) || task_of(r, &t, a))
		return false;
	order_index(&t, &ix, a);
	if (lane_fits(ix.lane, r->ix.lane, locks_only))
		ix.lane = r->ix.lane;
	ix.eligible_at = r->ix.eligible_at;
	return !index_eq(&ix, &r->ix);
}

/* --- tasks ------------------------------------------------------------------------------------------ */

static bool id_in_key(struct str key, struct str *id, struct arena *a)
{
	struct str rest = key;

	if (key_fault(key) || !str_cut_prefix(&rest, STR("task/")) || id_fault(rest) ||
	    !str_eq(key, task_key(a, rest)))
		return false;
	*id = arena_str(a, rest);
	return true;
}

static struct str id_of_key(struct str key, struct arena *a)
{
	(void)str_cut_prefix(&key, STR("task/"));
	return arena_str(a, key);
}

/* The index holds some fields of a task whose texts are lost. */
static void fields_from_index(struct task *t, const struct index *ix, struct arena *a)
{
	t->labels = arena_strs(a, ix->labels);
	t->depends = arena_strs(a, ix->depends);
	for (size_t i = 0; i < t->depends.n; i++)
		(void)str_cut_prefix(&t->depends.v[i], STR("task/"));
	if (ix->parent.n)
		t->parent = id_of_key(ix->parent, a);
	t->type = arena_str(a, ix->type);
	t->due = ix->due;
}

/* Could pawl use the task, under its id or a new one? */
static bool decide_usable(const struct task *t, struct arena *a)
{
	struct task probe = *t;

	if (!probe.id.n)
		probe.id = STR("t1");
	return !task_fault(&probe, task_key(a, probe.id), a);
}

/* Can a new id, or the fields in the index, make the task usable again? */
static bool decide_task(const struct record *r, struct judgment *out, struct arena *a)
{
	struct task *t = &out->task;
	struct str id;
	bool keyed = id_in_key(r->key, &id, a);

	if (!r->hot.n || task_unpack(arena_str(a, r->hot), t, a) ||
	    task_unpack(arena_str(a, r->body), t, a))
		return false;
	if (!r->body.n)
		fields_from_index(t, &r->ix, a);
	if (keyed && !str_eq_nocase(t->id, id))
		t->id = id;
	else if (!keyed && id_fault(t->id))
		t->id = STR("");
	if (!r->body.n)
		t->title = title_from(STR(""), t->id.n ? t->id : STR("without texts"));
	out->repair = REPAIR_TASK;
	out->does =
		!r->body.n ? "keep its state and take its fields from the index; its texts are lost"
		: keyed    ? "give it the id in its key"
		: t->id.n  ? "store it under its id, or under a new one if that is taken"
			   : "give it a new id";
	return decide_usable(t, a);
}

/* --- all records ------------------------------------------------------------------------------------- */

static bool decide_number(const struct record *r, struct judgment *out)
{
	if (key_fault(r->key))
		return false;
	out->repair = REPAIR_NUMBER;
	if (str_starts(r->key, STR("gone/"))) {
		out->number = FENCE_UNKNOWN;
		out->does = "set it above every fence that pawl has granted";
	} else if (str_eq(r->key, GUARD_KEY)) {
		out->number = GUARD_ALL;
		out->does = "make the next change check every lock of the whole queue";
	} else if (str_eq(r->key, COUNTER_KEY)) {
		out->repair = REPAIR_COUNTER;
		out->does = "set it again from the ids in use, as pawl id init does";
	} else {
		return false;
	}
	return true;
}

static bool is_like_task(const struct record *r)
{
	return r->ix.status || str_starts(r->key, STR("task/"));
}

void repair_decide(const struct record *r, bool locks_only, struct judgment *out, struct arena *a)
{
	*out = (struct judgment){ .fault = record_fault(r, a) };
	if (!out->fault && index_differs(r, locks_only, a)) {
		out->fault = "its index differs from the task";
		out->does = "write its index again";
		out->repair = REPAIR_INDEX;
	}
	if (!out->fault || out->repair)
		return;
	if (!r->hot.n && !r->body.n) {
		out->repair = REPAIR_LEAVE;
		return;
	}
	if (decide_number(r, out) || (is_like_task(r) && decide_task(r, out, a)))
		return;
	out->repair = REPAIR_AWAY;
	out->does = "move it to a file";
}

/* --- records that cannot be used -------------------------------------------------------------- */

/*
 * Records that cannot be used: they fail the checks of core/validate.h, so pawl did not write them. Other programs can
 * write to a store. pawl omits these records from lists and never offers or changes them. `doctor` lists them, and
 * `remove --force` removes them.
 */

#define SHOWN_COLUMNS 60
#define LARGE (64u << 10)

/* The strings of the task point into the record. */
static const char *decode_in_place(const struct record *r, struct task *out, struct arena *a)
{
	*out = (struct task){ 0 };
	if (r->ix.status && !str_starts(r->key, STR("task/")))
		return "its index is that of a task";
	if (!r->body.n && !r->hot.n)
		return "it is empty or foreign";
	if (!r->body.n && str_starts(r->key, STR("task/")))
		return "its texts are missing, or larger than the limit";
	if (task_unpack(r->hot, out, a) || task_unpack(r->body, out, a))
		return "its bytes are damaged";
	return task_fault(out, r->key, a);
}

static const char *bad_decode(const struct record *r, struct task *out, struct arena *a)
{
	struct record own = *r;

	own.hot = arena_str(a, r->hot);
	own.body = arena_str(a, r->body);
	return decode_in_place(&own, out, a);
}

/* Checks a large record without a copy, because many bad ones would fill the caller's arena. */
static bool bad_and_large(const struct record *r)
{
	struct arena scratch = { 0 };
	struct task t;
	bool bad;

	if (r->hot.n + r->body.n < LARGE)
		return false;
	bad = decode_in_place(r, &t, &scratch) != NULL;
	arena_free(&scratch);
	return bad;
}

int task_of(const struct record *r, struct task *out, struct arena *a)
{
	return bad_and_large(r) || bad_decode(r, out, a) ? BAD : 0;
}

static const char *kept_fault(const struct record *r, struct arena *a)
{
	struct answer ans = { 0 };

	if (answer_unpack(arena_str(a, r->body), &ans, a))
		return "the answer that it keeps is damaged";
	return answer_fault(&ans, a);
}

static const char *undo_record_fault(const struct record *r, struct arena *a)
{
	struct str id = r->key;
	struct undo u = { 0 };

	(void)str_cut(&id, '/');
	if (undo_unpack_head(r->hot, &u, a) || undo_unpack_rest(arena_str(a, r->body), &u, a))
		return "its bytes are damaged";
	return undo_fault(&u, arena_printf(a, "task/%.*s", STRF(id)), a);
}

const char *record_fault(const struct record *r, struct arena *a)
{
	const char *fault = key_fault(r->key);
	struct task t;
	int64_t n;

	if (fault)
		return fault;
	if (str_starts(r->key, STR("task/")) || str_starts(r->key, STR("lock/")))
		return bad_decode(r, &t, a);
	if (str_eq(r->key, IDENTITY_KEY))
		return token_valid(r->hot) ? NULL : "the identity in it is damaged";
	if (str_eq(r->key, CHAIN_KEY))
		return r->hot.n == SHORT_HASH_LEN ? NULL : "the hash in it is damaged";
	if (str_starts(r->key, STR("gone/")) || str_starts(r->key, STR("meta/")))
		return number_valid(r->hot, &n) ? NULL : "its number is damaged";
	if (str_starts(r->key, UNDO_SPACE))
		return undo_record_fault(r, a);
	return str_starts(r->key, STR("request/")) ? kept_fault(r, a) : NULL;
}

struct str bad_name(struct str key, struct arena *a)
{
	struct str id = key;

	if (key_fault(key) || !str_cut_prefix(&id, STR("task/")) || id.p[0] == '@' ||
	    !str_eq(key, task_key(a, id)))
		return bad_handle(a, key); /* no id leads to it */
	return arena_str(a, id);
}

struct str bad_shown(struct str key, struct arena *a)
{
	return text_cut(a, text_line(a, key), SHOWN_COLUMNS);
}

int bad_refuse(struct answer *ans, const struct record *r, struct arena *a)
{
	const char *fault = record_fault(r, a);

	answer_fail(ans, MISCONFIGURED,
		    arena_printf(a, "the record %s cannot be used: %s",
				 arena_cstr(a, bad_shown(r->key, a)),
				 fault ? fault : "it is damaged"),
		    arena_printf(a,
				 "pawl remove %s --force removes it; pawl doctor lists all such "
				 "records",
				 arena_cstr(a, bad_name(r->key, a))));
	return REFUSED;
}

struct str bad_warning(size_t n, struct arena *a)
{
	return arena_printf(a, "%zu record%s cannot be used and %s left out: pawl doctor", n,
			    n == 1 ? "" : "s", n == 1 ? "is" : "are");
}

/* --- by handle ------------------------------------------------------------------------------------ */

struct search {
	struct str handle;
	struct arena *arena;
	struct str key;
};

static int same_handle(const struct record *r, void *ctx)
{
	struct search *x = ctx;
	struct arena scratch = { 0 };
	bool same = str_eq(bad_handle(&scratch, r->key), x->handle);

	arena_free(&scratch);
	if (same)
		x->key = arena_str(x->arena, r->key);
	return same;
}

int bad_find(struct store *s, struct edit *e, struct str handle, struct str *key, struct arena *a)
{
	struct query tasks = { .pick = PICK_ALL }, others = { .pick = PICK_OTHERS };
	const struct query *const all[] = { &tasks, &others };
	struct search x = { .handle = handle, .arena = a };
	int r = 0;

	for (size_t i = 0; !r && !x.key.p && i < 2; i++)
		r = e ? edit_scan(e, all[i], same_handle, &x)
		      : s->ops->scan(s, all[i], same_handle, &x);
	*key = x.key;
	return r < 0 ? r : x.key.p ? 0 : 1;
}

/* --- the log ---------------------------------------------------------------------------------------- */

int event_of(const struct entry *en, struct event *out)
{
	if (event_unpack(en->data, out))
		return BAD;
	out->cursor = en->cursor;
	out->at = en->at;
	return event_fault(out) ? BAD : 0;
}

int event_keep(const struct entry *en, struct event *out, struct arena *a)
{
	struct entry own = *en;

	own.data = arena_str(a, en->data);
	own.cursor = arena_str(a, en->cursor);
	return event_of(&own, out);
}

/* For doctor: examines every record and the log of a queue, and says what `doctor --fix` would do. */
#include "core/validate.h"
#include "queue/mend.h"
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
		arena; /* of the findings, which are told at the end: the exam may begin again */
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
			STR("nothing needs them; pawl backup and pawl restore --force leave them out for good"));
	arena_free(&a);
}

static int examination(void *ctx)
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

		r = s->ops->snapshot(s, true, examination, &x);
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

/* If the store itself is damaged, its records are not checked: the store must be repaired first. */
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

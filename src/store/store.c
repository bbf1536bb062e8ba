/* The parts that all stores share: the meaning of a query, and the reporting of faults. A store may answer a query
 * by an index of its own, but its answer must be the one that query_matches() and query_cmp() define. */
#include <stdarg.h>
#include <stdio.h>

#include "store/store.h"
#include "store/store_tools.h"

/* --- queries -------------------------------------------------------------------------------------- */

#define CMP(a, b) (((a) > (b)) - ((a) < (b)))

int query_cmp(const struct query *q, const struct index *a, const struct index *b)
{
	int c;

	if (q->pick == PICK_ELIGIBLE || q->pick == PICK_WAITING)
		return index_cmp(a, b);
	if (q->pick == PICK_LATER)
		c = CMP(a->eligible_at, b->eligible_at);
	else
		c = CMP(a->created_at, b->created_at);
	return c ? c : index_id_cmp(a->id, b->id);
}

static bool store_picked(const struct query *q, const struct index *ix, int64_t now)
{
	bool due = ix->eligible_at <= now;
	bool timed = ix->lane == LANE_LATER ||
		     (lane_waits(ix->lane) && q->waiting & LANE_BIT(ix->lane));

	switch (q->pick) {
	case PICK_ELIGIBLE:
		return ix->lane == LANE_READY || (timed && due);
	case PICK_LATER:
		return timed && !due;
	case PICK_WAITING:
		return timed ? !due
			     : lane_waits(ix->lane) ||
				       (ix->lane == LANE_NONE && ix->status && ix->holder.n);
	case PICK_OTHERS:
		return ix->status == 0 && !index_gone(ix, now);
	default:
		return ix->status != 0 && !index_gone(ix, now);
	}
}

static bool same_or_any(struct str want, struct str have)
{
	return !want.n || str_eq(want, have);
}

bool query_matches(const struct query *q, const struct index *ix, int64_t now)
{
	return store_picked(q, ix, q->at ? q->at : now) &&
	       (!q->statuses || (q->statuses >> ix->status & 1)) &&
	       (!q->class_rank || q->class_rank == ix->class_rank) && (!q->held || ix->holder.n) &&
	       same_or_any(q->holder, ix->holder) && same_or_any(q->token, ix->token) &&
	       same_or_any(q->type, ix->type) && same_or_any(q->parent, ix->parent) &&
	       (!q->label.n || strs_have(ix->labels, q->label)) &&
	       (!q->depends_on.n || strs_have(ix->depends, q->depends_on));
}

bool query_only_statuses(const struct query *q)
{
	return q->pick == PICK_ALL && !q->class_rank && !q->held && !q->holder.n && !q->token.n &&
	       !q->type.n && !q->label.n && !q->parent.n && !q->depends_on.n;
}

int64_t query_sum(const struct query *q, const int64_t *counts)
{
	int64_t n = 0;

	for (int i = 1; i < STORE_STATUSES; i++)
		if (!q->statuses || (q->statuses >> i & 1))
			n += counts[i];
	return n;
}

struct query query_to_count(const struct query *q)
{
	struct query all = *q;

	all.limit = 0;
	all.body = false;
	all.text = all.after = (struct str){ 0 };
	return all;
}

/* --- faults ------------------------------------------------------------------------------------- */

const char *store_fault_name(int fault)
{
	static const char *const names[] = {
		[-STORE_BUSY] = "busy",
		[-STORE_FULL] = "full",
		[-STORE_READONLY] = "readonly",
		[-STORE_IO] = "io",
		[-STORE_UNREACHABLE] = "unreachable",
		[-STORE_ABSENT] = "absent",
		[-STORE_FOREIGN] = "foreign",
		[-STORE_NEWER] = "newer",
		[-STORE_CORRUPT] = "corrupt",
		[-STORE_UNSUPPORTED] = "unsupported",
		[-STORE_MOVED] = "moved",
		[-STORE_OLDER] = "older",
	};

	return fault < 0 && fault >= STORE_OLDER ? names[-fault] : NULL;
}

int store_fail(const struct store_env *env, int fault, const char *hint, const char *fmt, ...)
{
	struct store_error *err = env->err;
	va_list ap;

	err->fault = fault;
	err->applied = 'n';
	va_start(ap, fmt);
	vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	snprintf(err->hint, sizeof(err->hint), "%s", hint ? hint : "");
	return fault;
}

int store_fail_older(const struct store_env *env, const char *place)
{
	return store_fail(
		env, STORE_OLDER,
		"export the tasks with that pawl (pawl export -o tasks.json) and move the old data "
		"away; then run pawl init and pawl import tasks.json",
		"%s was written by an older pawl (0.1), whose data this version does not read",
		place);
}

int store_may_write(const struct store_env *env, const char *place, bool inside)
{
	if (env->mode == STORE_READ)
		return store_fail(env, STORE_READONLY, NULL, "%s was opened for reading only",
				  place);
	if (inside)
		return store_fail(env, STORE_IO, NULL,
				  "a change must not run inside a scan or another change");
	return 0;
}

static bool plain_word(struct str name)
{
	for (size_t i = 0; i < name.n; i++) {
		unsigned char c = (unsigned char)name.p[i];

		if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') &&
		    !(c && strchr("._/@:-", c)))
			return false;
	}
	return name.n > 0;
}

struct str store_word(struct arena *a, struct str name)
{
	struct buf b = BUF_MAX(4 * name.n + 8);
	struct str out;

	if (plain_word(name))
		return arena_str(a, name);
	buf_addc(&b, '\'');
	for (size_t i = 0; i < name.n; i++) {
		if (name.p[i] == '\'')
			buf_adds(&b, STR("'\\''"));
		else
			buf_addc(&b, name.p[i]);
	}
	buf_addc(&b, '\'');
	out = arena_str(a, str_n(b.p, b.n));
	buf_free(&b);
	return out;
}

/* --- heap ------------------------------------------------------------------------------------- */

/* A binary heap in the order of query_cmp(). Building it takes linear time, so a scan that stops early never
 * sorts the rest. */

static int heap_cmp(const struct heap *h, const void *a, const void *b)
{
	return query_cmp(h->q, (const struct index *)((const char *)a + h->index),
			 (const struct index *)((const char *)b + h->index));
}

static void heap_sink(struct heap *h, size_t i)
{
	for (size_t child; (child = 2 * i + 1) < h->n; i = child) {
		void *item = h->v[i];

		if (child + 1 < h->n && heap_cmp(h, h->v[child + 1], h->v[child]) < 0)
			child++;
		if (heap_cmp(h, item, h->v[child]) <= 0)
			return;
		h->v[i] = h->v[child];
		h->v[child] = item;
	}
}

void heap_order(struct heap *h)
{
	for (size_t i = h->n / 2; i-- > 0;)
		heap_sink(h, i);
}

void *heap_pop(struct heap *h)
{
	void *first = h->v[0];

	h->v[0] = h->v[--h->n];
	heap_sink(h, 0);
	return first;
}

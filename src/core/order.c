/*
 * Decides when a task is eligible and which task comes first. index_cmp() defines the order, and
 * order_key() gives the same order as text. If they differed, a program that sorts by the key would
 * show another order than the one in which the queue offers tasks.
 */
#include "core/order.h"

#include "base/str.h"
#include "base/when.h"
#include "core/lease.h"

static int64_t order_later_of(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* The time from which the lock permits a claim: 0 if no lock prevents it, -1 if the lock never
 * expires. */
static int64_t lock_ends(const struct lock *l)
{
	if (!l->holder.n)
		return 0;
	if (l->foreign && !l->expires_at)
		return -1;
	return l->expires_at;
}

/* Once work has begun, the task no longer waits for its dependencies. It still waits for its
 * sub-tasks, because nobody could complete it before them. */
static bool has_open_deps(const struct task *t)
{
	return t->status == READY && t->open_deps;
}

enum offer order_offer(const struct task *t, int64_t *at)
{
	int64_t ends = lock_ends(&t->lock);

	*at = 0;
	if (ends < 0 || (t->status != READY && t->status != IN_PROGRESS))
		return OFFER_NONE;
	if (t->status == READY)
		*at = order_later_of(ends, t->not_before);
	else
		*at = t->lock.holder.n ? ends : t->free_at;
	if (t->open_subs)
		return has_open_deps(t) ? OFFER_BOTH : OFFER_PARENT;
	if (has_open_deps(t))
		return OFFER_WAITING;
	return *at ? OFFER_LATER : OFFER_NOW;
}

bool order_waits_deps(const struct task *t, const struct policy *p)
{
	return has_open_deps(t) && !p->ignore_depends;
}

bool order_waits_subs(const struct task *t, const struct policy *p)
{
	return t->open_subs && !p->offer_parents;
}

bool order_waits(const struct task *t, const struct policy *p, int64_t now)
{
	int64_t at;

	if (order_offer(t, &at) == OFFER_NONE ||
	    (t->status == IN_PROGRESS && lease_live(&t->lock, now)))
		return false;
	return order_waits_deps(t, p) || order_waits_subs(t, p);
}

unsigned order_waiting(const struct policy *p)
{
	unsigned lanes = 0;

	if (p->ignore_depends)
		lanes |= LANE_BIT(LANE_WAITING);
	if (p->offer_parents)
		lanes |= LANE_BIT(LANE_PARENT);
	return lanes == (LANE_BIT(LANE_WAITING) | LANE_BIT(LANE_PARENT)) ? LANES_WAITING : lanes;
}

static struct str why_later(const struct task *t, int64_t at, int64_t now, struct arena *a)
{
	if (lease_live(&t->lock, now) && t->lock.expires_at == at)
		return arena_printf(a, "held by %.*s for another %s", STRF(t->lock.holder),
				    arena_cstr(a, duration_text(a, at - now)));
	if (t->status == IN_PROGRESS)
		return arena_printf(a, "kept for its last agent for another %s",
				    arena_cstr(a, duration_text(a, at - now)));
	return arena_printf(a, "waits for its not-before time, in %s",
			    arena_cstr(a, duration_text(a, at - now)));
}

static struct str why_waits(const struct task *t, const struct policy *p, struct arena *a)
{
	bool subs = order_waits_subs(t, p);
	struct str open = arena_printf(a, "%lld open sub-task%s", (long long)t->open_subs,
				       t->open_subs == 1 ? "" : "s");

	if (!order_waits_deps(t, p))
		return arena_printf(a, "waits for its %.*s", STRF(open));
	return arena_printf(a, "waits for %lld of its dependencies%s%.*s", (long long)t->open_deps,
			    subs ? " and its " : "", subs ? (int)open.n : 0, open.p);
}

static struct str why_now(const struct task *t)
{
	if (t->status == READY && t->open_deps)
		return STR("ready; its dependencies are ignored");
	if (t->open_subs)
		return STR("offered in spite of its open sub-tasks");
	if (t->status == READY)
		return STR("ready");
	return t->lock.holder.n ? STR("abandoned: its lease expired") : STR("left without a lock");
}

struct str order_why(const struct task *t, const struct policy *p, int64_t now, struct arena *a,
		     bool *eligible)
{
	int64_t at;
	enum offer offer = order_offer(t, &at);

	*eligible = false;
	if (offer == OFFER_NONE && lease_live(&t->lock, now))
		return arena_printf(a, "%s, held by %.*s", status_name(t->status),
				    STRF(t->lock.holder));
	if (offer == OFFER_NONE)
		return arena_printf(a, "its status is %s", status_name(t->status));
	if (order_waits(t, p, now))
		return why_waits(t, p, a);
	if (at > now)
		return why_later(t, at, now, a);
	if (t->status == IN_PROGRESS && p->keep_abandoned)
		return STR("abandoned, and the setting `abandoned` is keep");
	*eligible = true;
	return why_now(t);
}

/* --- the order ----------------------------------------------------------------------------------- */

#define CMP(a, b) (((a) > (b)) - ((a) < (b)))

/* Two ids with equal keys differ only in case, and one queue never contains both. */
int index_id_cmp(struct str a, struct str b)
{
	char x[ID_KEY_MAX], y[ID_KEY_MAX];
	int c = str_cmp(index_id_key(a, x), index_id_key(b, y));

	return c ? c : str_cmp(a, b);
}

/* A task without a due date comes last. */
static int64_t due_rank(const struct index *ix)
{
	return ix->due ? ix->due : INT64_MAX;
}

int index_cmp(const struct index *a, const struct index *b)
{
	int c = CMP(a->class_rank, b->class_rank);

	if (!c)
		c = CMP(b->priority, a->priority);
	if (!c)
		c = CMP(due_rank(a), due_rank(b));
	if (!c)
		c = CMP(a->updated_at, b->updated_at);
	return c ? c : index_id_cmp(a->id, b->id);
}

bool index_eq(const struct index *a, const struct index *b)
{
	return a->lane == b->lane && a->status == b->status && a->class_rank == b->class_rank &&
	       a->priority == b->priority && a->eligible_at == b->eligible_at &&
	       a->updated_at == b->updated_at && a->created_at == b->created_at &&
	       a->due == b->due && str_eq(a->id, b->id) && str_eq(a->holder, b->holder) &&
	       str_eq(a->token, b->token) && str_eq(a->parent, b->parent) &&
	       str_eq(a->type, b->type) && strs_eq(a->labels, b->labels) &&
	       strs_eq(a->depends, b->depends);
}

bool index_gone(const struct index *ix, int64_t now)
{
	return ix->lane == LANE_GOING && ix->eligible_at <= now;
}

static char order_lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* The number of leading digits ('9') or leading zeros ('0'). */
static size_t run_length(struct str s, char most)
{
	size_t n = 0;

	while (n < s.n && is_digit(s.p[n]) && s.p[n] <= most)
		n++;
	return n;
}

/* Writes the number of digits before the digits, because a longer number is larger. That count
 * begins with a digit, so a number sorts among other bytes as its digits would. */
static char *put_number(char *to, struct str digits)
{
	*to++ = (char)('0' + (digits.n < 9 ? digits.n : 9));
	if (digits.n >= 9) {
		*to++ = (char)('0' + digits.n / 100);
		*to++ = (char)('0' + digits.n / 10 % 10);
		*to++ = (char)('0' + digits.n % 10);
	}
	memcpy(to, str_p(digits), digits.n);
	return to + digits.n;
}

struct str index_id_key(struct str id, char out[ID_KEY_MAX])
{
	struct str rest = id;
	bool zeros = false;
	char *to = out;

	if (id.n > ID_MAX)
		return STR("");
	while (rest.n) {
		size_t n = run_length(rest, '9'), skip = run_length(rest, '0');

		if (n)
			to = put_number(to, str_n(rest.p + skip, n - skip));
		else
			*to++ = order_lower(rest.p[0]);
		zeros |= skip > (skip == n); /* 0 alone is a number */
		n += n == 0;
		rest = str_n(rest.p + n, rest.n - n);
	}
	if (zeros) /* a space sorts below every byte of an id; the id after it distinguishes t01 from t001 */
		*to++ = ' ';
	for (size_t i = 0; zeros && i < id.n; i++)
		*to++ = order_lower(id.p[i]);
	return str_n(out, (size_t)(to - out));
}

void order_index(const struct task *t, struct index *out, struct arena *a)
{
	static const int lanes[] = { [OFFER_NONE] = LANE_NONE,     [OFFER_NOW] = LANE_READY,
				     [OFFER_LATER] = LANE_LATER,   [OFFER_WAITING] = LANE_WAITING,
				     [OFFER_PARENT] = LANE_PARENT, [OFFER_BOTH] = LANE_BOTH };
	struct strs depends = { arena_array(a, struct str, t->depends.n), t->depends.n };

	for (size_t i = 0; i < depends.n; i++)
		depends.v[i] = task_key(a, t->depends.v[i]);
	*out = (struct index){
		.status = (int)t->status,
		.class_rank = (int)t->class_rank,
		.priority = (int)t->priority,
		.updated_at = t->updated_at,
		.created_at = t->created_at,
		.due = t->due,
		.id = t->id,
		.holder = t->lock.holder,
		.token = t->lock.token,
		.parent = t->parent.n ? task_key(a, t->parent) : STR(""),
		.type = t->type,
		.labels = t->labels,
		.depends = depends,
	};
	out->lane = lanes[order_offer(t, &out->eligible_at)];
}

#define KEY_TIME_MAX INT64_C(0xffffffffffff) /* 12 digits; every time that pawl accepts is lower */

struct str order_key(const struct task *t, struct arena *a)
{
	char id[ID_KEY_MAX];
	struct str key = index_id_key(t->id, id);

	return arena_printf(a, "%d%04d%012llx%012llx%.*s", (int)t->class_rank,
			    (int)(PRIORITY_MAX - t->priority),
			    (unsigned long long)(t->due ? t->due : KEY_TIME_MAX),
			    (unsigned long long)t->updated_at, STRF(key));
}

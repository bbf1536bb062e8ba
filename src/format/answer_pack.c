/* An answer as bytes, to send it to another process and to keep it for a repeated call. */
#include <errno.h>

#include "format/answer.h"
#include "format/pack.h"
#include "format/event.h"
#include "format/task.h"

enum tag {
	A_CODE = 1,
	A_KIND = 2,
	A_NOW = 3,
	A_MESSAGE = 4,
	A_HINT = 5,
	A_APPLIED = 6,
	A_REPEATED = 7,
	A_EXISTED = 8,
	A_WARNING = 9,
	A_TASK = 10,
	A_NEXT = 11,
	A_HAS_NEXT = 12,
	A_LOCK = 13,
	A_NEXT_LOCK = 14,
	A_TASKS = 15,
	A_TOTAL = 16,
	A_EVENT = 17,
	A_CANDIDATE = 18,
	A_COUNT = 19,
	A_TEXT = 20,
	A_WAIT = 21,
	A_HELD = 22,
	A_BARRED = 23,
	A_QUEUE_ID = 24,
	A_CHANGED = 25,
	A_PAUSED = 26,
	A_CAME_BACK = 27,
	A_FAULT = 28, /* from here on: only in answers for another machine, and only if set */
	A_STANDING = 29,
	A_RELATED = 30,
	A_WAITING = 31,
	A_WAITING_MORE = 32,
	A_ENDED = 33,
	A_ARCHIVED = 34
};

#define NESTED_MAX (64u << 20)
/* A small task is about 40 times larger in memory. Two bytes that stand for an empty one are not from pawl. */
#define GROWTH_MAX 48
#define GROWTH_FREE (64u << 10)
#define MEMORY_MAX (1u << 30)

static void pack_task(struct buf *out, uint8_t tag, const struct task *t)
{
	struct buf b = BUF_MAX(NESTED_MAX);

	task_pack(t, HOT | BODY, &b);
	pack_str(out, tag, buf_str(&b));
	buf_free(&b);
}

static void pack_grant(struct buf *out, uint8_t tag, const struct grant *g)
{
	struct buf b = BUF_MAX(NESTED_MAX);

	pack_str(&b, 1, g->token);
	pack_int(&b, 2, g->fence);
	pack_int(&b, 3, g->expires_at);
	pack_int(&b, 4, g->ttl);
	pack_str(out, tag, buf_str(&b));
	buf_free(&b);
}

#define NOTICE_FIELD 4 /* its tag; a list, behind the slots */

static void pack_notice(struct buf *out, uint8_t tag, const struct notice *n)
{
	struct buf b = BUF_MAX(NESTED_MAX);

	pack_str(&b, 1, n->by);
	pack_str(&b, 2, n->reason);
	pack_int(&b, 3, n->at);
	for (size_t i = 0; i < n->fields.n; i++)
		pack_str(&b, NOTICE_FIELD, n->fields.v[i]);
	pack_str(out, tag, buf_str(&b));
	buf_free(&b);
}

static void pack_event(struct buf *out, const struct event *e)
{
	struct buf b = BUF_MAX(NESTED_MAX);

	event_pack_placed(e, &b);
	pack_str(out, A_EVENT, buf_str(&b));
	buf_free(&b);
}

static void pack_candidate(struct buf *out, const struct candidate *c)
{
	struct buf b = BUF_MAX(NESTED_MAX);

	pack_str(&b, 1, c->id);
	pack_str(&b, 2, c->title);
	pack_str(&b, 3, c->why);
	pack_int(&b, 4, c->eligible);
	pack_int(&b, 5, c->place);
	pack_str(out, A_CANDIDATE, buf_str(&b));
	buf_free(&b);
}

static void pack_scalars(const struct answer *ans, struct buf *out)
{
	pack_int(out, A_CODE, ans->code);
	pack_int(out, A_KIND, ans->kind);
	pack_int(out, A_NOW, ans->now);
	pack_str(out, A_MESSAGE, ans->message);
	pack_str(out, A_HINT, ans->hint);
	pack_int(out, A_APPLIED, ans->applied);
	pack_int(out, A_REPEATED, ans->repeated);
	pack_int(out, A_EXISTED, ans->existed);
	pack_int(out, A_HAS_NEXT, ans->has_next);
	pack_int(out, A_TOTAL, ans->total);
	pack_str(out, A_TEXT, ans->text);
	pack_int(out, A_WAIT, ans->wait_ms);
	pack_int(out, A_HELD, ans->held);
	pack_int(out, A_BARRED, ans->barred);
	pack_str(out, A_QUEUE_ID, ans->queue_id);
}

#define STANDING_ON 3     /* the tag of a list, behind the slots */
#define RELATED_MORE 1    /* one number for each kind of link */
#define RELATED_LINK 2    /* a nested link */
#define RELATED_ATTEMPT 3 /* a nested attempt */

static void pack_standing(struct buf *out, const struct standing *st)
{
	struct buf b = BUF_MAX(NESTED_MAX);

	pack_int(&b, 1, st->waits);
	pack_int(&b, 2, st->more);
	for (size_t i = 0; i < st->on.n; i++)
		pack_str(&b, STANDING_ON, st->on.v[i]);
	pack_str(out, A_STANDING, buf_str(&b));
	buf_free(&b);
}

static void pack_link(struct buf *out, const struct task_link *l)
{
	struct buf b = BUF_MAX(NESTED_MAX);

	pack_int(&b, 1, l->kind);
	pack_str(&b, 2, l->id);
	pack_str(&b, 3, l->title);
	pack_str(&b, 4, l->holder);
	pack_int(&b, 5, l->status);
	pack_str(out, RELATED_LINK, buf_str(&b));
	buf_free(&b);
}

static void pack_attempt(struct buf *out, const struct task_attempt *t)
{
	struct buf b = BUF_MAX(NESTED_MAX);

	pack_str(&b, 1, t->agent);
	pack_str(&b, 2, t->outcome);
	pack_str(&b, 3, t->text);
	pack_int(&b, 4, t->at);
	pack_int(&b, 5, t->ended_at);
	pack_int(&b, 6, t->fence);
	pack_str(out, RELATED_ATTEMPT, buf_str(&b));
	buf_free(&b);
}

static void pack_related(struct buf *out, const struct related *r)
{
	struct buf b = BUF_MAX(NESTED_MAX);

	for (int k = LINK_SUB; k <= LINK_DEPENDENT; k++)
		pack_int(&b, RELATED_MORE, r->more[k]);
	for (size_t i = 0; i < r->n_links; i++)
		pack_link(&b, &r->links[i]);
	for (size_t i = 0; i < r->n_attempts; i++)
		pack_attempt(&b, &r->attempts[i]);
	pack_str(out, A_RELATED, buf_str(&b));
	buf_free(&b);
}

static bool any_archived(const struct answer *ans)
{
	for (int s = BACKLOG; s < STATUS_END; s++)
		if (ans->archived[s])
			return true;
	return false;
}

/* Facts that only the process that read the queue has, unless it answers for another one. */
static void pack_views(const struct answer *ans, struct buf *out)
{
	if (ans->fault.n)
		pack_str(out, A_FAULT, ans->fault);
	for (size_t i = 0; ans->standing && i < ans->n_tasks; i++)
		pack_standing(out, &ans->standing[i]);
	if (ans->related)
		pack_related(out, ans->related);
	if (ans->waiting)
		pack_int(out, A_WAITING, ans->waiting);
	if (ans->waiting_more)
		pack_int(out, A_WAITING_MORE, 1);
	if (ans->ended)
		pack_int(out, A_ENDED, ans->ended);
	for (int s = BACKLOG; any_archived(ans) && s < STATUS_END; s++)
		pack_int(out, A_ARCHIVED, ans->archived[s]);
}

void answer_pack(const struct answer *ans, struct buf *out)
{
	pack_scalars(ans, out);
	for (size_t i = 0; i < ans->warnings.n; i++)
		pack_str(out, A_WARNING, ans->warnings.v[i]);
	if (ans->task)
		pack_task(out, A_TASK, ans->task);
	if (ans->next)
		pack_task(out, A_NEXT, ans->next);
	if (ans->lock)
		pack_grant(out, A_LOCK, ans->lock);
	if (ans->next_lock)
		pack_grant(out, A_NEXT_LOCK, ans->next_lock);
	if (ans->changed)
		pack_notice(out, A_CHANGED, ans->changed);
	if (ans->paused)
		pack_notice(out, A_PAUSED, ans->paused);
	if (ans->came_back)
		pack_notice(out, A_CAME_BACK, ans->came_back);
	for (size_t i = 0; i < ans->n_tasks; i++)
		pack_task(out, A_TASKS, &ans->tasks[i]);
	for (size_t i = 0; i < ans->n_events; i++)
		pack_event(out, &ans->events[i]);
	for (size_t i = 0; i < ans->n_candidates; i++)
		pack_candidate(out, &ans->candidates[i]);
	for (int s = BACKLOG; s < STATUS_END; s++)
		pack_int(out, A_COUNT, ans->counts[s]);
	pack_views(ans, out);
}

/* --- reading --------------------------------------------------------------------------------------- */

/* Would the bytes need far more memory than pawl's own do? size: that of the struct for a tag. */
static bool grows(struct str bytes, size_t (*size)(uint8_t tag))
{
	size_t most = GROWTH_FREE + GROWTH_MAX * bytes.n, sum = 0;
	const size_t limit = most < MEMORY_MAX ? most : MEMORY_MAX;
	struct unpack u = { bytes };
	struct str value;
	uint8_t tag;

	while (sum <= limit && unpack_next(&u, &tag, &value) > 0)
		sum += size(tag);
	return sum > limit;
}

static size_t answer_size(uint8_t tag)
{
	switch (tag) {
	case A_TASK:
	case A_NEXT:
	case A_TASKS:
		return sizeof(struct task);
	case A_EVENT:
		return sizeof(struct event);
	case A_CANDIDATE:
		return sizeof(struct candidate);
	case A_STANDING:
		return sizeof(struct standing);
	default:
		return sizeof(struct str);
	}
}

static size_t related_size(uint8_t tag)
{
	return tag == RELATED_LINK      ? sizeof(struct task_link)
	       : tag == RELATED_ATTEMPT ? sizeof(struct task_attempt)
					: 0;
}

static int unpack_grant(struct str bytes, struct grant **out, struct arena *a)
{
	struct grant *g = arena_new(a, struct grant);
	const struct pack_slot slots[] = {
		{ &g->token, NULL },
		{ NULL, &g->fence },
		{ NULL, &g->expires_at },
		{ NULL, &g->ttl },
	};

	*out = g;
	return unpack_slots(bytes, slots, 4);
}

#define NOTICE_FIELDS_MAX 256 /* a task has fewer: the bytes of a server may say anything */

static int unpack_notice(struct str bytes, struct notice **out, struct arena *a)
{
	struct notice *n = arena_new(a, struct notice);
	const struct pack_slot slots[] = {
		{ &n->by, NULL },
		{ &n->reason, NULL },
		{ NULL, &n->at },
	};
	struct unpack u = { bytes };
	struct str value;
	uint8_t tag;

	*out = n;
	while (unpack_next(&u, &tag, &value) > 0) {
		if (tag != NOTICE_FIELD)
			continue;
		if (n->fields.n == NOTICE_FIELDS_MAX)
			return -EBADMSG;
		n->fields.v = arena_grow(a, n->fields.v, n->fields.n, sizeof(value));
		n->fields.v[n->fields.n++] = value;
	}
	return unpack_slots(bytes, slots, 3);
}

static int unpack_candidate(struct str bytes, struct answer *ans, struct arena *a)
{
	struct candidate *c;

	ans->candidates = arena_grow(a, ans->candidates, ans->n_candidates, sizeof(*c));
	c = &ans->candidates[ans->n_candidates++];
	const struct pack_slot slots[] = {
		{ &c->id, NULL },       { &c->title, NULL }, { &c->why, NULL },
		{ NULL, &c->eligible }, { NULL, &c->place },
	};
	return unpack_slots(bytes, slots, 5);
}

static int unpack_event(struct str bytes, struct answer *ans, struct arena *a)
{
	ans->events = arena_grow(a, ans->events, ans->n_events, sizeof(*ans->events));
	return event_unpack_placed(bytes, &ans->events[ans->n_events++]);
}

static int unpack_task(struct str bytes, struct task **out, struct arena *a)
{
	*out = arena_new(a, struct task);
	return task_unpack(bytes, *out, a);
}

static int unpack_tasks(struct str bytes, struct answer *ans, struct arena *a)
{
	ans->tasks = arena_grow(a, ans->tasks, ans->n_tasks, sizeof(*ans->tasks));
	ans->tasks[ans->n_tasks] = (struct task){ 0 };
	return task_unpack(bytes, &ans->tasks[ans->n_tasks++], a);
}

static int unpack_standing(struct str bytes, struct answer *ans, size_t n, struct arena *a)
{
	int64_t waits = 0, more = 0;
	const struct pack_slot slots[] = { { NULL, &waits }, { NULL, &more } };
	struct unpack u = { bytes };
	struct standing *st;
	struct str value;
	uint8_t tag;

	ans->standing = arena_grow(a, ans->standing, n, sizeof(*st));
	st = &ans->standing[n];
	*st = (struct standing){ 0 };
	while (unpack_next(&u, &tag, &value) > 0) {
		if (tag != STANDING_ON)
			continue;
		st->on.v = arena_grow(a, st->on.v, st->on.n, sizeof(value));
		st->on.v[st->on.n++] = value;
	}
	if (unpack_slots(bytes, slots, 2))
		return -EBADMSG;
	st->waits = waits;
	st->more = more;
	return 0;
}

static int unpack_link(struct str bytes, struct related *r, struct arena *a)
{
	int64_t kind = -1;
	struct task_link *l;

	r->links = arena_grow(a, r->links, r->n_links, sizeof(*l));
	l = &r->links[r->n_links++];
	*l = (struct task_link){ 0 };
	const struct pack_slot slots[] = { { NULL, &kind },
					   { &l->id, NULL },
					   { &l->title, NULL },
					   { &l->holder, NULL },
					   { NULL, &l->status } };
	if (unpack_slots(bytes, slots, 5) || kind < LINK_SUB || kind > LINK_DEPENDENT ||
	    l->status < 0 || l->status >= STATUS_END)
		return -EBADMSG;
	l->kind = (enum link_kind)kind;
	return 0;
}

static int unpack_attempt(struct str bytes, struct related *r, struct arena *a)
{
	struct task_attempt *t;

	r->attempts = arena_grow(a, r->attempts, r->n_attempts, sizeof(*t));
	t = &r->attempts[r->n_attempts++];
	*t = (struct task_attempt){ 0 };
	const struct pack_slot slots[] = { { &t->agent, NULL },    { &t->outcome, NULL },
					   { &t->text, NULL },     { NULL, &t->at },
					   { NULL, &t->ended_at }, { NULL, &t->fence } };
	return unpack_slots(bytes, slots, 6);
}

static int unpack_related(struct str bytes, struct related **out, struct arena *a)
{
	struct related *rel = arena_new(a, struct related);
	struct unpack u = { bytes };
	struct str value;
	int kind = LINK_SUB, r;
	uint8_t tag;

	*rel = (struct related){ 0 };
	*out = rel;
	if (grows(bytes, related_size))
		return -EBADMSG;
	while ((r = unpack_next(&u, &tag, &value)) > 0) {
		if (tag == RELATED_MORE && kind <= LINK_DEPENDENT)
			r = unpack_int(value, &rel->more[kind++]);
		else if (tag == RELATED_LINK)
			r = unpack_link(value, rel, a);
		else if (tag == RELATED_ATTEMPT)
			r = unpack_attempt(value, rel, a);
		if (r < 0)
			break;
	}
	return r;
}

struct unpacking {
	struct answer *ans;
	struct arena *arena;
	int counted, archived;
	size_t standing;
	int64_t code, kind, applied;
};

static int unpack_view(struct unpacking *p, uint8_t tag, struct str value)
{
	struct answer *ans = p->ans;
	int64_t more = 0;
	int r = 0;

	switch (tag) {
	case A_FAULT:
		ans->fault = value;
		return 0;
	case A_STANDING:
		return unpack_standing(value, ans, p->standing++, p->arena);
	case A_RELATED:
		return unpack_related(value, &ans->related, p->arena);
	case A_WAITING:
		return unpack_int(value, &ans->waiting);
	case A_WAITING_MORE:
		r = unpack_int(value, &more);
		ans->waiting_more = more;
		return r;
	case A_ENDED:
		return unpack_int(value, &ans->ended);
	case A_ARCHIVED:
		if (++p->archived >= STATUS_END)
			return -EBADMSG;
		return unpack_int(value, &ans->archived[p->archived]);
	default:
		return 0; /* a field of a newer pawl, or a scalar */
	}
}

static int unpack_nested(struct unpacking *p, uint8_t tag, struct str value)
{
	struct answer *ans = p->ans;

	switch (tag) {
	case A_WARNING:
		ans->warnings.v = arena_grow(p->arena, ans->warnings.v, ans->warnings.n,
					     sizeof(value));
		ans->warnings.v[ans->warnings.n++] = value;
		return 0;
	case A_TASK:
		return unpack_task(value, &ans->task, p->arena);
	case A_NEXT:
		return unpack_task(value, &ans->next, p->arena);
	case A_LOCK:
		return unpack_grant(value, &ans->lock, p->arena);
	case A_NEXT_LOCK:
		return unpack_grant(value, &ans->next_lock, p->arena);
	case A_CHANGED:
		return unpack_notice(value, &ans->changed, p->arena);
	case A_PAUSED:
		return unpack_notice(value, &ans->paused, p->arena);
	case A_CAME_BACK:
		return unpack_notice(value, &ans->came_back, p->arena);
	case A_TASKS:
		return unpack_tasks(value, ans, p->arena);
	case A_EVENT:
		return unpack_event(value, ans, p->arena);
	case A_CANDIDATE:
		return unpack_candidate(value, ans, p->arena);
	case A_COUNT:
		if (++p->counted >= STATUS_END)
			return -EBADMSG;
		return unpack_int(value, &ans->counts[p->counted]);
	default:
		return unpack_view(p, tag, value);
	}
}

static int unpack_scalars(struct str bytes, struct unpacking *p)
{
	struct answer *ans = p->ans;
	struct str other;
	const struct pack_slot slots[A_QUEUE_ID] = {
		[A_CODE - 1] = { NULL, &p->code },
		[A_KIND - 1] = { NULL, &p->kind },
		[A_NOW - 1] = { NULL, &ans->now },
		[A_MESSAGE - 1] = { &ans->message, NULL },
		[A_HINT - 1] = { &ans->hint, NULL },
		[A_APPLIED - 1] = { NULL, &p->applied },
		[A_REPEATED - 1] = { NULL, &ans->repeated },
		[A_EXISTED - 1] = { NULL, &ans->existed },
		[A_WARNING - 1] = { &other, NULL },
		[A_TASK - 1] = { &other, NULL },
		[A_NEXT - 1] = { &other, NULL },
		[A_HAS_NEXT - 1] = { NULL, &ans->has_next },
		[A_LOCK - 1] = { &other, NULL },
		[A_NEXT_LOCK - 1] = { &other, NULL },
		[A_TASKS - 1] = { &other, NULL },
		[A_TOTAL - 1] = { NULL, &ans->total },
		[A_EVENT - 1] = { &other, NULL },
		[A_CANDIDATE - 1] = { &other, NULL },
		[A_COUNT - 1] = { &other, NULL },
		[A_TEXT - 1] = { &ans->text, NULL },
		[A_WAIT - 1] = { NULL, &ans->wait_ms },
		[A_HELD - 1] = { NULL, &ans->held },
		[A_BARRED - 1] = { NULL, &ans->barred },
		[A_QUEUE_ID - 1] = { &ans->queue_id, NULL },
	};

	return unpack_slots(bytes, slots, A_QUEUE_ID);
}

int answer_unpack(struct str bytes, struct answer *out, struct arena *a)
{
	struct unpacking p = { .ans = out, .arena = a, .code = -1 };
	struct unpack u = { bytes };
	struct str value;
	uint8_t tag;
	int r;

	*out = (struct answer){ 0 };
	if (grows(bytes, answer_size) || unpack_scalars(bytes, &p))
		return -EBADMSG;
	while ((r = unpack_next(&u, &tag, &value)) > 0)
		if (unpack_nested(&p, tag, value) < 0)
			return -EBADMSG;
	if (p.standing && p.standing != out->n_tasks) /* one for each task, or none */
		return -EBADMSG;
	if (!result_known(p.code) || p.kind < ANSWER_TASK || p.kind > ANSWER_TYPED || out->now < 0)
		return -EBADMSG;
	out->code = (enum result)p.code;
	out->kind = (enum answer_kind)p.kind;
	out->applied = p.applied == 'n' || p.applied == '?' ? (char)p.applied : '\0';
	return 0;
}

struct answer answer_copy(const struct answer *ans, struct arena *a)
{
	struct buf b = BUF_MAX(SIZE_MAX / 4);
	struct answer out = { 0 };

	answer_pack(ans, &b);
	(void)answer_unpack(arena_str(a, buf_str(&b)), &out, a);
	buf_free(&b);
	return out;
}

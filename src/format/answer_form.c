/* An answer as the JSON object that every face shows, and as bytes for another process or a
 * repeated call. Tags never change their meaning: older versions skip the tags that they do not
 * know. Bytes from a server may be forged, so unpacking checks them. */
#include <errno.h>

#include "base/when.h"
#include "core/order.h"
#include "core/role.h"
#include "core/validate.h"
#include "format/answer_form.h"
#include "format/json.h"
#include "format/record_form.h"
#include "format/task_form.h"

static json_t *grant_json(const struct grant *g, int64_t now, struct arena *a)
{
	json_t *o = json_object();

	json_set_text(o, "token", g->token);
	json_object_set_new(o, "fence", json_integer(g->fence));
	json_set_text(o, "expires_at", when_text(a, g->expires_at));
	json_object_set_new(o, "expires_in",
			    seconds_json(g->expires_at > now ? g->expires_at - now : 0));
	json_object_set_new(o, "ttl", seconds_json(g->ttl));
	return o;
}

static json_t *can_json(int64_t can)
{
	json_t *list = json_array();

	for (int i = 1; i < ACTION_END; i++)
		if ((uint64_t)can & ACTION_BIT(i))
			json_array_append_new(list, json_string(action_name(i)));
	return list;
}

json_t *answer_task_json(const struct answer *ans, const struct task *t, struct arena *a)
{
	const struct allowed *w = ans->allowed;
	json_t *o = task_json(t, ans->now, a);

	if (!ans->n_allowed ||
	    (ans->n_tasks ? t < ans->tasks || t >= ans->tasks + ans->n_tasks : t != ans->task))
		return o;
	w += ans->n_tasks ? t - ans->tasks : 0;
	if (w->position)
		json_object_set_new(o, "position", json_integer(w->position));
	json_set_text(o, "why", w->why);
	json_set_text(o, "order", order_key(t, a));
	json_object_set_new(o, "can", can_json(w->can));
	return o;
}

static size_t task_memory(const struct task *t)
{
	size_t levels;

	return t ? json_values(t->extra, &levels) * JSON_VALUE_MEMORY +
			       (t->labels.n + t->depends.n) * JSON_TEXT_MEMORY
		 : 0;
}

size_t answer_json_memory(const struct answer *ans)
{
	size_t sum = task_memory(ans->task) + task_memory(ans->next);

	for (size_t i = 0; i < ans->n_tasks; i++)
		sum += task_memory(&ans->tasks[i]);
	return sum;
}

static void tasks_json(json_t *o, const char *key, const struct answer *ans, struct arena *a)
{
	json_t *list = json_array();

	for (size_t i = 0; i < ans->n_tasks; i++)
		json_array_append_new(list, answer_task_json(ans, &ans->tasks[i], a));
	json_object_set_new(o, key, list);
}

static void events_json(json_t *o, const char *key, const struct answer *ans, struct arena *a)
{
	json_t *list = json_array();

	for (size_t i = 0; i < ans->n_events; i++)
		json_array_append_new(list, event_json(&ans->events[i], a));
	json_object_set_new(o, key, list);
}

static void locks_json(json_t *o, const struct answer *ans, struct arena *a)
{
	json_t *list = json_array();

	for (size_t i = 0; i < ans->n_tasks; i++) {
		json_t *lock = lock_json(&ans->tasks[i], ans->now, a);

		json_set_text(lock, "task", ans->tasks[i].id);
		json_set_text(lock, "title", ans->tasks[i].title);
		json_object_set_new(lock, "status", json_string(status_name(ans->tasks[i].status)));
		json_array_append_new(list, lock);
	}
	json_object_set_new(o, "locks", list);
}

static void typed_json(json_t *o, const struct answer *ans, struct arena *a)
{
	json_t *list = json_array();

	for (size_t i = 0; i < ans->n_tasks; i++) {
		const struct task *t = &ans->tasks[i];
		json_t *lock = lock_json(t, ans->now, a);

		json_set_text(lock, "lock", t->id);
		json_set_text(lock, "description", t->description);
		json_array_append_new(list, lock);
	}
	json_object_set_new(o, "locks", list);
}

static void candidates_json(json_t *o, const struct answer *ans)
{
	json_t *list = json_array();

	for (size_t i = 0; i < ans->n_candidates; i++) {
		const struct candidate *c = &ans->candidates[i];
		json_t *item = json_object();

		json_set_text(item, "id", c->id);
		json_object_set_new(item, "eligible", json_boolean(c->eligible));
		json_set_text(item, "why", c->why);
		if (c->place)
			json_object_set_new(item, "place", json_integer(c->place));
		json_set_text(item, "title", c->title);
		json_array_append_new(list, item);
	}
	json_object_set_new(o, "candidates", list);
}

static void overview_json(json_t *o, const struct answer *ans, struct arena *a)
{
	json_t *counts = json_object();

	for (int s = BACKLOG; s < STATUS_END; s++)
		json_object_set_new(counts, status_name(s), json_integer(ans->counts[s]));
	json_object_set_new(o, "counts", counts);
	json_object_set_new(o, "waiting", json_integer(ans->waiting));
	json_object_set_new(o, "total", json_integer(ans->total));
	tasks_json(o, "held", ans, a);
	json_object_set_new(o, "held_total", json_integer(ans->held));
}

static void answer_json_counted(json_t *o, size_t n, int64_t total)
{
	json_object_set_new(o, "count", json_integer((json_int_t)n));
	json_object_set_new(o, "total", json_integer(total));
}

static void lock_answer_json(json_t *o, const struct answer *ans, struct arena *a)
{
	json_t *lock = ans->task ? lock_json(ans->task, ans->now, a) : json_null();

	json_object_set_new(o, "locked", json_boolean(json_is_true(json_object_get(lock, "live"))));
	json_object_set_new(o, "lock", lock);
}

static void kind_json(json_t *o, const struct answer *ans, struct arena *a)
{
	switch (ans->kind) {
	case ANSWER_TASK:
		if (ans->n_events && !ans->next)
			events_json(o, "comments", ans, a);
		break;
	case ANSWER_TASKS:
		tasks_json(o, "tasks", ans, a);
		answer_json_counted(o, ans->n_tasks, ans->total);
		break;
	case ANSWER_EVENTS:
		events_json(o, "events", ans, a);
		json_object_set_new(o, "count", json_integer((json_int_t)ans->n_events));
		break;
	case ANSWER_LOCKS:
		locks_json(o, ans, a);
		answer_json_counted(o, ans->n_tasks, ans->total);
		break;
	case ANSWER_LOCK:
		lock_answer_json(o, ans, a);
		break;
	case ANSWER_CANDIDATES:
		candidates_json(o, ans);
		answer_json_counted(o, ans->n_candidates, ans->total);
		break;
	case ANSWER_OVERVIEW:
		overview_json(o, ans, a);
		break;
	case ANSWER_TYPED:
		typed_json(o, ans, a);
		answer_json_counted(o, ans->n_tasks, ans->total);
		break;
	default: /* ANSWER_ID */
		json_set_text(o, "id", ans->text);
	}
}

static void notices_json(json_t *o, const struct answer *ans, struct arena *a)
{
	const struct notice *c = ans->changed, *p = ans->paused, *u = ans->undone;
	json_t *n;

	if (c) {
		json_t *fields = json_array();

		for (size_t i = 0; i < c->fields.n; i++)
			json_array_append_new(fields,
					      json_stringn(c->fields.v[i].p, c->fields.v[i].n));
		n = json_object();
		json_object_set_new(n, "fields", fields);
		json_set_text(n, "by", c->by);
		json_set_text(n, "reason", c->reason);
		json_set_text(n, "at", when_text(a, c->at));
		json_object_set_new(o, "changed", n);
	}
	if (p) {
		n = json_object();
		json_set_text(n, "by", p->by);
		json_set_text(n, "since", when_text(a, p->at));
		json_set_text(n, "reason", p->reason);
		json_object_set_new(o, "paused", n);
	}
	if (u) {
		n = json_object();
		json_set_text(n, "change", u->reason);
		json_set_text(n, "at", when_text(a, u->at));
		json_object_set_new(o, "undone", n);
	}
}

/* Adds the notice to `o`, the object that contains the task. */
static void came_back_json(json_t *o, const struct notice *n, struct arena *a)
{
	json_t *v = json_object();

	json_set_text(v, "event", n->fields.n ? n->fields.v[0] : STR(""));
	json_set_text(v, "by", n->by);
	json_set_text(v, "at", when_text(a, n->at));
	json_set_text(v, "why", n->reason);
	json_object_set_new(o, "came_back", v);
}

static json_t *failure_json(const struct answer *ans, struct arena *a)
{
	json_t *o = json_object(), *error = json_object();

	json_object_set_new(o, "ok", json_false());
	json_object_set_new(error, "code", json_string(result_name(ans->code)));
	json_set_text(error, "message", ans->message);
	json_set_text(error, "hint", ans->hint);
	if (ans->code == API_ERROR)
		json_object_set_new(error, "applied",
				    json_string(ans->applied == '?' ? "unknown" : "no"));
	json_set_text(error, "fault", ans->fault);
	if (ans->barred) /* the longest time to wait before a retry */
		json_object_set_new(error, "wait", seconds_json(ans->wait_ms));
	json_object_set_new(o, "error", error);
	if (ans->task)
		json_object_set_new(o, "task", task_json(ans->task, ans->now, a));
	notices_json(o, ans, a);
	return o;
}

static json_t *next_json(const struct answer *ans, struct arena *a)
{
	json_t *o = json_object();

	json_object_set_new(o, "task", task_json(ans->next, ans->now, a));
	json_object_set_new(o, "lock",
			    ans->next_lock ? grant_json(ans->next_lock, ans->now, a) : json_null());
	if (ans->n_events)
		events_json(o, "comments", ans, a);
	if (ans->came_back)
		came_back_json(o, ans->came_back, a);
	return o;
}

static void holder_json(json_t *o, const struct answer *ans, struct arena *a)
{
	if (ans->lock)
		json_object_set_new(o, "lock", grant_json(ans->lock, ans->now, a));
	if (ans->has_next)
		json_object_set_new(o, "next", ans->next ? next_json(ans, a) : json_null());
	if (ans->came_back && !ans->next)
		came_back_json(o, ans->came_back, a);
}

static void notes_json(json_t *o, const struct answer *ans)
{
	json_t *list;

	if (ans->repeated)
		json_object_set_new(o, "repeated", json_true());
	if (ans->existed)
		json_object_set_new(o, "existed", json_true());
	json_set_text(o, "message", ans->message);
	json_set_text(o, "hint", ans->hint);
	if (ans->wait_ms)
		json_object_set_new(o, "wait", seconds_json(ans->wait_ms));
	if (!ans->warnings.n)
		return;
	list = json_array();
	for (size_t i = 0; i < ans->warnings.n; i++)
		json_array_append_new(list,
				      json_stringn(ans->warnings.v[i].p, ans->warnings.v[i].n));
	json_object_set_new(o, "warnings", list);
}

json_t *answer_json(const struct answer *ans, struct arena *a)
{
	json_t *o;

	if (ans->code != SUCCESS && ans->code != NO_TASKS && ans->code != LOCK_FREE)
		return failure_json(ans, a);
	o = json_object();
	json_object_set_new(o, "ok", json_true());
	json_object_set_new(o, "code", json_string(result_name(ans->code)));
	if (ans->task || ans->code == NO_TASKS)
		json_object_set_new(o, "task",
				    ans->task ? answer_task_json(ans, ans->task, a) : json_null());
	holder_json(o, ans, a);
	kind_json(o, ans, a);
	notices_json(o, ans, a);
	notes_json(o, ans);
	return o;
}

/* --- answer pack ------------------------------------------------------------------------------ */

/* To send one more member, add a row with a new tag. Older versions skip the tag. */

#define ROW(tag, kind, when, type, member, ...)                                           \
	{                                                                                 \
		tag, SHAPE_##kind, SHAPE_##when, .offset = offsetof(struct type, member), \
						 ##__VA_ARGS__                            \
	}

#define G(tag, kind, member) ROW(tag, kind, ALWAYS, grant, member)

static const struct shape_member grant_members[] = {
	G(1, STR, token),
	G(2, INT, fence),
	G(3, INT, expires_at),
	G(4, INT, ttl),
};
static const struct shape grant_shape = SHAPE_OF(grant_members, grant);

#define NOTICE_FIELDS_MAX 256 /* a task has fewer, but a server's bytes are not trusted */
#define N(tag, kind, member, ...) ROW(tag, kind, ALWAYS, notice, member, ##__VA_ARGS__)

static const struct shape_member notice_members[] = {
	N(1, STR, by),
	N(2, STR, reason),
	N(3, INT, at),
	N(4, LIST, fields, .end = NOTICE_FIELDS_MAX),
};
static const struct shape notice_shape = SHAPE_OF(notice_members, notice);

#define C(tag, kind, member) ROW(tag, kind, ALWAYS, candidate, member)

static const struct shape_member candidate_members[] = {
	C(1, STR, id), C(2, STR, title), C(3, STR, why), C(4, INT, eligible), C(5, INT, place),
};
static const struct shape candidate_shape = SHAPE_OF(candidate_members, candidate);

#define S(tag, kind, member) ROW(tag, kind, ALWAYS, standing, member)

static const struct shape_member standing_members[] = {
	S(1, BOOL, waits),
	S(2, BOOL, more),
	S(3, LIST, on),
};
static const struct shape standing_shape = SHAPE_OF(standing_members, standing);

#define W(tag, kind, member) ROW(tag, kind, ALWAYS, allowed, member)

static const struct shape_member allowed_members[] = {
	W(1, INT, can), W(2, INT, holder_can), W(3, INT, position), W(4, STR, why), W(5, INT, live),
};
static const struct shape allowed_shape = SHAPE_OF(allowed_members, allowed);

#define L(tag, kind, member, ...) ROW(tag, kind, ALWAYS, task_link, member, ##__VA_ARGS__)

static const struct shape_member link_members[] = {
	ROW(1, ENUM, NEEDED, task_link, kind, .end = LINK_PARENT + 1),
	L(2, STR, id),
	L(3, STR, title),
	L(4, STR, holder),
	L(5, INT, status, .end = STATUS_END),
};
static const struct shape link_shape = SHAPE_OF(link_members, task_link);

#define T(tag, kind, member) ROW(tag, kind, ALWAYS, task_attempt, member)

static const struct shape_member attempt_members[] = {
	T(1, STR, agent), T(2, STR, outcome),  T(3, STR, text),
	T(4, INT, at),    T(5, INT, ended_at), T(6, INT, fence),
};
static const struct shape attempt_shape = SHAPE_OF(attempt_members, task_attempt);

#define ARRAY_OF(type, length, shape) .count = offsetof(struct type, length), .of = &(shape)
#define R(tag, kind, member, ...) ROW(tag, kind, ALWAYS, related, member, ##__VA_ARGS__)

static const struct shape_member related_members[] = {
	R(1, ROW, more, .end = LINK_DEPENDENT + 1),
	R(2, ARRAY, links, ARRAY_OF(related, n_links, link_shape)),
	R(3, ARRAY, attempts, ARRAY_OF(related, n_attempts, attempt_shape)),
	R(4, ARRAY, history, ARRAY_OF(related, n_history, event_shape)),
};
static const struct shape related_shape = SHAPE_OF(related_members, related);

#define A(tag, kind, when, member, ...) ROW(tag, kind, when, answer, member, ##__VA_ARGS__)
#define ONE(tag, member, shape) A(tag, ONE, SOME, member, .of = &(shape))
#define ARRAY(tag, kind, member, length, shape) \
	A(tag, kind, SOME, member, ARRAY_OF(answer, length, shape))
#define STATUSES .end = STATUS_END - BACKLOG

static const struct shape_member members[] = {
	A(1, ENUM, NEEDED, code),
	A(2, ENUM, ALWAYS, kind, .end = ANSWER_TYPED + 1),
	A(3, INT, ALWAYS, now),
	A(4, STR, ALWAYS, message),
	A(5, STR, ALWAYS, hint),
	A(6, CHAR, ALWAYS, applied),
	A(7, INT, ALWAYS, repeated),
	A(8, INT, ALWAYS, existed),
	A(12, INT, ALWAYS, has_next),
	A(16, INT, ALWAYS, total),
	A(20, STR, ALWAYS, text),
	A(21, INT, ALWAYS, wait_ms),
	A(22, INT, ALWAYS, held),
	A(23, INT, ALWAYS, barred),
	A(24, STR, ALWAYS, queue_id),
	A(9, LIST, SOME, warnings),
	ONE(10, task, task_shape),
	ONE(11, next, task_shape),
	ONE(13, lock, grant_shape),
	ONE(14, next_lock, grant_shape),
	ONE(25, changed, notice_shape),
	ONE(26, paused, notice_shape),
	ONE(27, came_back, notice_shape),
	ONE(36, undone, notice_shape),
	ARRAY(15, ARRAY, tasks, n_tasks, task_shape),
	ARRAY(17, ARRAY, events, n_events, event_shape),
	ARRAY(18, ARRAY, candidates, n_candidates, candidate_shape),
	A(19, ROW, ALWAYS, counts[BACKLOG], STATUSES),
	/* The members below are only in answers for another machine, and only if set. */
	A(28, STR, SOME, fault),
	ARRAY(29, BESIDE, standing, n_tasks, standing_shape),
	ONE(30, related, related_shape),
	A(31, INT, SOME, waiting),
	A(32, BOOL, SOME, waiting_more),
	A(33, INT, SOME, ended),
	A(34, ROW, SOME, archived[BACKLOG], STATUSES),
	ARRAY(35, ARRAY, allowed, n_allowed, allowed_shape),
};
static const struct shape shape = SHAPE_OF(members, answer);

void answer_pack(const struct answer *ans, struct buf *out)
{
	shape_pack(&shape, SHAPE_ALL, ans, out);
}

int answer_unpack(struct str bytes, struct answer *out, struct arena *a)
{
	*out = (struct answer){ 0 };
	if (shape_unpack(&shape, SHAPE_ALL, bytes, out, a) || !result_known(out->code) ||
	    out->now < 0 || (out->n_allowed && out->n_allowed != answer_tasks(out)))
		return -EBADMSG;
	if (out->applied != 'n' && out->applied != '?')
		out->applied = '\0';
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

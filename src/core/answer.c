#include "core/answer.h"

#include <errno.h>

#include "format/pack.h"
#include "base/when.h"
#include "format/task.h"

enum result answer_fail(struct answer *ans, enum result code, struct str message, struct str hint)
{
	ans->code = code;
	ans->message = message;
	ans->hint = hint;
	return code;
}

/* --- the packed form ----------------------------------------------------------------------------- */

enum tag {
	A_CODE = 1,
	A_KIND,
	A_NOW,
	A_MESSAGE,
	A_HINT,
	A_APPLIED,
	A_REPEATED,
	A_EXISTED,
	A_WARNING,
	A_TASK,
	A_NEXT,
	A_HAS_NEXT,
	A_LOCK,
	A_NEXT_LOCK,
	A_TASKS,
	A_TOTAL,
	A_EVENT,
	A_CANDIDATE,
	A_COUNT,
	A_TEXT,
	A_WAIT,
	A_HELD,
	A_BARRED
};

#define NESTED_MAX (64u << 20)

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

static void pack_event(struct buf *out, const struct event *e)
{
	struct buf b = BUF_MAX(NESTED_MAX);

	event_pack(e, &b);
	pack_str(&b, 100, e->cursor);
	pack_int(&b, 101, e->at);
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
	for (size_t i = 0; i < ans->n_tasks; i++)
		pack_task(out, A_TASKS, &ans->tasks[i]);
	for (size_t i = 0; i < ans->n_events; i++)
		pack_event(out, &ans->events[i]);
	for (size_t i = 0; i < ans->n_candidates; i++)
		pack_candidate(out, &ans->candidates[i]);
	for (int s = BACKLOG; s < STATUS_END; s++)
		pack_int(out, A_COUNT, ans->counts[s]);
}

struct slot {
	struct str *text;
	int64_t *number;
};

/* A packed thing whose tags are 1 to n, each a text or a number. */
static int unpack_slots(struct str bytes, const struct slot *slots, size_t n)
{
	struct unpack u = { bytes };
	struct str value;
	uint8_t tag;
	int r;

	while ((r = unpack_next(&u, &tag, &value)) > 0) {
		if (!tag || tag > n)
			continue;
		if (slots[tag - 1].text)
			*slots[tag - 1].text = value;
		else if (unpack_int(value, slots[tag - 1].number))
			return -EBADMSG;
	}
	return r;
}

static int unpack_grant(struct str bytes, struct grant **out, struct arena *a)
{
	struct grant *g = arena_new(a, struct grant);
	const struct slot slots[] = {
		{ &g->token, NULL },
		{ NULL, &g->fence },
		{ NULL, &g->expires_at },
		{ NULL, &g->ttl },
	};

	*out = g;
	return unpack_slots(bytes, slots, 4);
}

static int unpack_candidate(struct str bytes, struct answer *ans, struct arena *a)
{
	struct candidate *c;

	ans->candidates = arena_grow(a, ans->candidates, ans->n_candidates, sizeof(*c));
	c = &ans->candidates[ans->n_candidates++];
	const struct slot slots[] = {
		{ &c->id, NULL },       { &c->title, NULL }, { &c->why, NULL },
		{ NULL, &c->eligible }, { NULL, &c->place },
	};
	return unpack_slots(bytes, slots, 5);
}

static int unpack_event(struct str bytes, struct answer *ans, struct arena *a)
{
	struct event *e;
	struct unpack u = { bytes };
	struct str value;
	uint8_t tag;
	int r;

	ans->events = arena_grow(a, ans->events, ans->n_events, sizeof(*e));
	e = &ans->events[ans->n_events++];
	r = event_unpack(bytes, e);
	while (r >= 0 && (r = unpack_next(&u, &tag, &value)) > 0) {
		if (tag == 100)
			e->cursor = value;
		else if (tag == 101)
			r = unpack_int(value, &e->at);
	}
	return r;
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

struct unpacking {
	struct answer *ans;
	struct arena *arena;
	int counted;
	int64_t code, kind, applied;
};

static int unpack_nested(struct unpacking *p, uint8_t tag, struct str value)
{
	struct answer *ans = p->ans;

	switch (tag) {
	case A_WARNING:
		ans->warnings = arena_append(p->arena, ans->warnings, value);
		return 0;
	case A_TASK:
		return unpack_task(value, &ans->task, p->arena);
	case A_NEXT:
		return unpack_task(value, &ans->next, p->arena);
	case A_LOCK:
		return unpack_grant(value, &ans->lock, p->arena);
	case A_NEXT_LOCK:
		return unpack_grant(value, &ans->next_lock, p->arena);
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
		return 0; /* a newer pawl's, or a scalar */
	}
}

static int unpack_scalars(struct str bytes, struct unpacking *p)
{
	struct answer *ans = p->ans;
	struct str other;
	const struct slot slots[A_BARRED] = {
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
	};

	return unpack_slots(bytes, slots, A_BARRED);
}

int answer_unpack(struct str bytes, struct answer *out, struct arena *a)
{
	struct unpacking p = { out, a, 0, -1, 0, 0 };
	struct unpack u = { bytes };
	struct str value;
	uint8_t tag;
	int r;

	*out = (struct answer){ 0 };
	if (unpack_scalars(bytes, &p))
		return -EBADMSG;
	while ((r = unpack_next(&u, &tag, &value)) > 0)
		if (unpack_nested(&p, tag, value) < 0)
			return -EBADMSG;
	if (!result_known(p.code) || p.kind < ANSWER_TASK || p.kind > ANSWER_TYPED || out->now < 0)
		return -EBADMSG;
	out->code = (enum result)p.code;
	out->kind = (enum answer_kind)p.kind;
	out->applied = (char)p.applied;
	return 0;
}

/* --- JSON ---------------------------------------------------------------------------------------- */

static void set_text(json_t *o, const char *key, struct str s)
{
	if (s.n)
		json_object_set_new(o, key, json_stringn(s.p, s.n));
}

static json_t *seconds(int64_t ms)
{
	return ms % 1000 ? json_real((double)ms / 1000.0) : json_integer(ms / 1000);
}

static json_t *grant_json(const struct grant *g, int64_t now, struct arena *a)
{
	json_t *o = json_object();

	set_text(o, "token", g->token);
	json_object_set_new(o, "fence", json_integer(g->fence));
	set_text(o, "expires_at", when_text(a, g->expires_at));
	json_object_set_new(o, "expires_in",
			    seconds(g->expires_at > now ? g->expires_at - now : 0));
	json_object_set_new(o, "ttl", seconds(g->ttl));
	return o;
}

static void tasks_json(json_t *o, const char *key, const struct answer *ans, struct arena *a)
{
	json_t *list = json_array();

	for (size_t i = 0; i < ans->n_tasks; i++)
		json_array_append_new(list, task_json(&ans->tasks[i], ans->now, a));
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

		set_text(lock, "task", ans->tasks[i].id);
		set_text(lock, "title", ans->tasks[i].title);
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

		set_text(lock, "lock", t->id);
		set_text(lock, "description", t->description);
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

		set_text(item, "id", c->id);
		json_object_set_new(item, "eligible", json_boolean(c->eligible));
		set_text(item, "why", c->why);
		if (c->place)
			json_object_set_new(item, "place", json_integer(c->place));
		set_text(item, "title", c->title);
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
	json_object_set_new(o, "total", json_integer(ans->total));
	tasks_json(o, "held", ans, a);
	json_object_set_new(o, "held_total", json_integer(ans->held));
}

static void counted(json_t *o, size_t n, int64_t total)
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
		counted(o, ans->n_tasks, ans->total);
		break;
	case ANSWER_EVENTS:
		events_json(o, "events", ans, a);
		json_object_set_new(o, "count", json_integer((json_int_t)ans->n_events));
		break;
	case ANSWER_LOCKS:
		locks_json(o, ans, a);
		counted(o, ans->n_tasks, ans->total);
		break;
	case ANSWER_LOCK:
		lock_answer_json(o, ans, a);
		break;
	case ANSWER_CANDIDATES:
		candidates_json(o, ans);
		counted(o, ans->n_candidates, ans->total);
		break;
	case ANSWER_OVERVIEW:
		overview_json(o, ans, a);
		break;
	case ANSWER_TYPED:
		typed_json(o, ans, a);
		counted(o, ans->n_tasks, ans->total);
		break;
	default: /* ANSWER_ID */
		set_text(o, "id", ans->text);
	}
}

static json_t *failure_json(const struct answer *ans, struct arena *a)
{
	json_t *o = json_object(), *error = json_object();

	json_object_set_new(o, "ok", json_false());
	json_object_set_new(error, "code", json_string(result_name(ans->code)));
	set_text(error, "message", ans->message);
	set_text(error, "hint", ans->hint);
	if (ans->code == API_ERROR)
		json_object_set_new(error, "applied",
				    json_string(ans->applied == '?' ? "unknown" : "no"));
	set_text(error, "fault", ans->fault);
	if (ans->barred) /* at most so long */
		json_object_set_new(error, "wait", seconds(ans->wait_ms));
	json_object_set_new(o, "error", error);
	if (ans->task)
		json_object_set_new(o, "task", task_json(ans->task, ans->now, a));
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
	return o;
}

static void holder_json(json_t *o, const struct answer *ans, struct arena *a)
{
	if (ans->lock)
		json_object_set_new(o, "lock", grant_json(ans->lock, ans->now, a));
	if (ans->has_next)
		json_object_set_new(o, "next", ans->next ? next_json(ans, a) : json_null());
}

static void notes_json(json_t *o, const struct answer *ans)
{
	json_t *list;

	if (ans->repeated)
		json_object_set_new(o, "repeated", json_true());
	if (ans->existed)
		json_object_set_new(o, "existed", json_true());
	set_text(o, "message", ans->message);
	set_text(o, "hint", ans->hint);
	if (ans->wait_ms)
		json_object_set_new(o, "wait", seconds(ans->wait_ms));
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
				    ans->task ? task_json(ans->task, ans->now, a) : json_null());
	holder_json(o, ans, a);
	kind_json(o, ans, a);
	notes_json(o, ans);
	return o;
}

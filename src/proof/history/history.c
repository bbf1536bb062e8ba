/* Writes a history. A call's line is written before the call is sent, so a killed process leaves a call without an answer, never
 * an answer without a call. After a failed write nothing more is written. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/os.h"
#include "format/request_form.h"
#include "proof/history/history.h"
#include "proof/history/history_members.h"

struct history {
	int fd, error;
	uint64_t last; /* number of the latest call */
};

static json_t *history_text(struct str s)
{
	return json_stringn(str_p(s), s.n);
}

/* Each line is one write, so a kill tears at most the last line. */
static void history_put(struct history *h, json_t *o)
{
	char *line = json_dumps(o, JSON_COMPACT);
	size_t n = strlen(line);
	ssize_t wrote;

	json_decref(o);
	line[n++] = '\n';
	do
		wrote = h->error ? (ssize_t)n : write(h->fd, line, n);
	while (wrote < 0 && errno == EINTR);
	if (wrote < 0)
		h->error = -errno;
	else if ((size_t)wrote < n)
		h->error = -ENOSPC;
	free(line);
}

static json_t *line_at_now(void)
{
	json_t *o = json_object();

	json_object_set_new(o, "t", json_integer(os_monotonic_ns()));
	return o;
}

json_t *head_json(const struct history_head *head)
{
	json_t *o = json_object(), *policy = json_object();

	json_object_set_new(o, "pawl_history", json_integer(HISTORY_FORMAT));
	members_write(o, head_members, head, NULL);
	members_write(policy, policy_members, &head->policy, NULL);
	json_object_set_new(o, "policy", policy);
	return o;
}

int history_open(struct history **out, const char *path, const struct history_head *head)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600), r;
	struct history *h;

	if (fd < 0)
		return -errno;
	h = mem_alloc(sizeof(*h));
	*h = (struct history){ .fd = fd, .last = head ? 0 : (uint64_t)getpid() << 32 };
	if (head)
		history_put(h, head_json(head));
	if (h->error) {
		r = history_close(h);
		unlink(path);
		return r;
	}
	*out = h;
	return 0;
}

static void set_mark(json_t *o, const char *name, struct str token, struct arena *a)
{
	if (token.n)
		json_object_set_new(o, name, history_text(token_mark(a, token)));
}

uint64_t history_call(struct history *h, struct str agent, const struct request *rq)
{
	struct arena a = { 0 };
	json_t *o = line_at_now(), *request = request_json(rq);

	h->last++;
	set_mark(request, "token", rq->token, &a);
	set_mark(request, "new_token", rq->new_token, &a);
	json_object_set_new(o, "call", json_integer((json_int_t)h->last));
	json_object_set_new(o, "agent", history_text(agent));
	json_object_set_new(o, "pid", json_integer(getpid()));
	json_object_set_new(o, "request", request);
	history_put(h, o);
	arena_free(&a);
	return h->last;
}

static json_t *seen_json(const struct task *t, struct arena *a)
{
	json_t *o, *lock;

	if (!t)
		return json_null();
	o = json_object();
	members_write(o, task_members, t, a);
	if (t->lock.holder.n) {
		lock = json_object();
		members_write(lock, lock_members, t, a);
		json_object_set_new(o, "lock", lock);
	}
	return o;
}

static void set_grant(json_t *o, const char *name, const struct grant *g, struct arena *a)
{
	json_t *grant;

	if (!g)
		return;
	grant = json_object();
	members_write(grant, grant_members, g, a);
	json_object_set_new(o, name, grant);
}

/* A list of tasks is kept only if it shows the tasks that a call changed, such as a cleanup. */
static void set_tasks(json_t *o, const struct answer *ans, struct arena *a)
{
	json_t *list = json_array();

	for (size_t i = 0; i < ans->n_tasks; i++)
		json_array_append_new(list, seen_json(&ans->tasks[i], a));
	json_object_set_new(o, "tasks", list);
}

void history_answer(struct history *h, uint64_t call, const struct answer *ans)
{
	struct arena a = { 0 };
	json_t *o = line_at_now();

	json_object_set_new(o, "answer", json_integer((json_int_t)call));
	members_write(o, answer_members, ans, &a);
	if (ans->task)
		json_object_set_new(o, "task", seen_json(ans->task, &a));
	set_grant(o, "lock", ans->lock, &a);
	if (ans->paused) {
		json_t *paused = json_object();

		members_write(paused, notice_members, ans->paused, &a);
		json_object_set_new(o, "paused", paused);
	}
	if (ans->has_next)
		json_object_set_new(o, "next", seen_json(ans->next, &a));
	set_grant(o, "next_lock", ans->next_lock, &a);
	if (ans->kind == ANSWER_TASKS)
		set_tasks(o, ans, &a);
	history_put(h, o);
	arena_free(&a);
}

void history_event(struct history *h, const char *what, struct str agent, int64_t pid, int64_t ms)
{
	json_t *o = line_at_now();

	json_object_set_new(o, "event", json_string(what));
	if (agent.n)
		json_object_set_new(o, "agent", history_text(agent));
	if (pid)
		json_object_set_new(o, "pid", json_integer(pid));
	if (ms)
		json_object_set_new(o, "ms", json_integer(ms));
	history_put(h, o);
}

void history_final(struct history *h, struct str id, int64_t now, const struct task *t)
{
	struct arena a = { 0 };
	json_t *o = line_at_now();

	json_object_set_new(o, "final", history_text(id));
	json_object_set_new(o, "now", json_integer(now));
	json_object_set_new(o, "task", seen_json(t, &a));
	history_put(h, o);
	arena_free(&a);
}

int history_error(const struct history *h)
{
	return h->error;
}

int history_close(struct history *h)
{
	int r;

	if (!h)
		return 0;
	r = h->error;
	if (close(h->fd) && !r)
		r = -errno;
	free(h);
	return r;
}

/* --- tally ------------------------------------------------------------------------------------ */

/* A hash table with open addressing, at most half full. It borrows the texts, which must outlive it. Number 0 means "none", so
 * the empty text has no number. */

static uint64_t hash_of(struct str s, bool fold)
{
	uint64_t h = UINT64_C(14695981039346656037);

	for (size_t i = 0; i < s.n; i++) {
		unsigned char c = (unsigned char)s.p[i];

		if (fold && c >= 'A' && c <= 'Z')
			c |= 0x20;
		h = (h ^ c) * UINT64_C(1099511628211);
	}
	return h ^ h >> 29;
}

static uint32_t *slot_of(const struct tally *t, struct str s)
{
	uint32_t mask = 2 * t->room - 1, at = (uint32_t)hash_of(s, t->fold) & mask;

	while (t->slots[at] &&
	       !(t->fold ? str_eq_nocase(t->v[t->slots[at]], s) : str_eq(t->v[t->slots[at]], s)))
		at = (at + 1) & mask;
	return &t->slots[at];
}

static void more_room(struct tally *t)
{
	struct tally old = *t;

	t->room = t->room ? 2 * t->room : 32;
	if (t->arena) {
		t->v = arena_array(t->arena, struct str, t->room);
		t->slots = arena_array(t->arena, uint32_t, 2 * (size_t)t->room);
	} else {
		t->v = mem_alloc(t->room * sizeof(*t->v));
		t->slots = mem_alloc(2 * t->room * sizeof(*t->slots));
		memset(t->slots, 0, 2 * t->room * sizeof(*t->slots));
	}
	if (t->n)
		memcpy(t->v, old.v, t->n * sizeof(*t->v));
	else
		t->v[t->n++] = STR("");
	if (!t->arena)
		tally_free(&old);
	for (uint32_t i = 1; i < t->n; i++)
		*slot_of(t, t->v[i]) = i;
}

uint32_t tally_find(const struct tally *t, struct str s)
{
	return t->n && s.n ? *slot_of(t, s) : 0;
}

uint32_t tally_add(struct tally *t, struct str s)
{
	uint32_t found = tally_find(t, s);

	if (found || !s.n)
		return found;
	if (t->n + 1 >= t->room)
		more_room(t);
	t->v[t->n] = s;
	*slot_of(t, s) = t->n;
	return t->n++;
}

void tally_free(struct tally *t)
{
	free(t->v);
	free(t->slots);
	*t = (struct tally){ .fold = t->fold };
}

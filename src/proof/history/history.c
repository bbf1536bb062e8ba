#include "proof/history/history.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/os.h"
#include "proof/history/history_members.h"
#include "format/request_form.h"

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

/* A list of tasks is kept only if it shows what a cleanup changed. */
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

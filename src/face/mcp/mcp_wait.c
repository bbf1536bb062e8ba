/*
 * Calls that wait for work, or for the end of a lock of the whole queue. They are deferred and
 * retried, so that no other call waits for them.
 */
#include "base/os.h"
#include "face/mcp/mcp.h"
#include "format/task_form.h"
#include "queue/queue.h"

#define PROGRESS_MS 5000
#define WAITING_MAX 64

struct waiting {
	struct waiting *next;
	struct mcp_call call; /* this struct owns id and params */
	struct attempts wait;
	int64_t began, progress;
	bool gone;
};

/* Requests in different exchanges may have the same id, because their clients may not know of each
 * other. */
static struct waiting *mcp_wait_find(struct mcp *m, const void *via, const json_t *id)
{
	for (struct waiting *w = m->waiting; w; w = w->next)
		if (w->call.via == via && json_equal(w->call.id, id))
			return w;
	return NULL;
}

static void mcp_wait_report(struct waiting *w)
{
	struct mcp *m = w->call.m;
	json_t *token = json_object_get(json_object_get(w->call.params, "_meta"), "progressToken");
	int64_t now = os_boot_ms();

	w->progress = now + PROGRESS_MS;
	if (!json_is_string(token) && !json_is_number(token))
		return;
	mcp_notify(m, w->call.via, "notifications/progress",
		   json_pack("{s:O, s:o, s:o, s:s}", "progressToken", token, "progress",
			     seconds_json(now - w->began), "total",
			     seconds_json(w->wait.end - w->began), "message",
			     "no task is eligible yet, or the queue is locked; waiting"));
}

bool wait_park(const struct mcp_call *c, int64_t ms, int64_t due)
{
	struct mcp *m = c->m;
	struct waiting *w, **last = &m->waiting;
	size_t n = 0;

	for (; *last; last = &(*last)->next)
		n++;
	/* An answer in a batch must be ready with the others, so it cannot wait. */
	if (m->batch || m->hurried || n >= WAITING_MAX || mcp_wait_find(m, c->via, c->id))
		return false;
	w = mem_alloc(sizeof(*w));
	*w = (struct waiting){ .call = *c, .began = os_boot_ms() };
	attempts_begin(&w->wait, ms);
	attempts_after(&w->wait, due);
	json_incref(w->call.id);
	json_incref(w->call.params);
	*last = w;
	m->checked = os_boot_ms();
	m->changed = true; /* a change may have happened while nobody was watching */
	mcp_wait_report(w);
	return true;
}

static void mcp_wait_sweep(struct mcp *m)
{
	struct waiting **at = &m->waiting, *w;

	while ((w = *at)) {
		if (!w->gone) {
			at = &w->next;
			continue;
		}
		*at = w->next;
		json_decref(w->call.id);
		json_decref(w->call.params);
		free(w);
	}
}

/* Retries the calls. The call that has waited longest comes first. */
void wait_check(struct mcp *m, bool changed)
{
	for (struct waiting *w = m->waiting; w; w = w->next) {
		int64_t now = os_boot_ms(), due = 0;

		if (changed || now >= w->wait.next) {
			w->gone = tools_try(&w->call, w->wait.end - now, &due);
			attempts_after(&w->wait, due);
		}
		if (!w->gone && now >= w->progress)
			mcp_wait_report(w);
	}
	mcp_wait_sweep(m);
}

int64_t wait_next(const struct mcp *m)
{
	int64_t soonest = -1;

	for (const struct waiting *w = m->waiting; w; w = w->next) {
		int64_t at = w->wait.next < w->progress ? w->wait.next : w->progress;
		int64_t left = at > os_boot_ms() ? at - os_boot_ms() : 0;

		if (soonest < 0 || left < soonest)
			soonest = left;
	}
	return soonest;
}

void wait_cancel(struct mcp *m, const json_t *id)
{
	for (struct waiting *w = m->waiting; w; w = w->next)
		w->gone = json_equal(w->call.id, id);
	mcp_wait_sweep(m);
}

bool wait_is_open(const struct mcp *m, const void *via)
{
	const struct waiting *w = m->waiting;

	while (w && w->call.via != via)
		w = w->next;
	return w;
}

void wait_gone(struct mcp *m, const void *via)
{
	for (struct waiting *w = m->waiting; w; w = w->next)
		w->gone = w->call.via == via;
	mcp_wait_sweep(m);
}

void wait_hurry(struct mcp *m)
{
	for (struct waiting *w = m->waiting; w; w = w->next)
		w->wait.end = os_boot_ms();
	wait_check(m, true);
}

void wait_end(struct mcp *m)
{
	for (struct waiting *w = m->waiting; w; w = w->next)
		w->gone = true;
	mcp_wait_sweep(m);
}

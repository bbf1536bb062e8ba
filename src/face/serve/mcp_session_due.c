/*
 * The due work of sessions: renewing locks, waiting calls and subscriptions. Each session gets its
 * share once in a round, and a round may take several batches, so one caller's many sessions do not
 * keep other callers waiting.
 */
#include "base/os.h"
#include "face/serve/mcp_http.h"

#define RETRY_MS 1000

/* A caller that has gone must not get a task. */
static void drop_gone(struct mcp_session *t)
{
	for (struct job *j = t->open, *next; j; j = next) {
		next = j->post->next;
		if (job_is_gone(j)) {
			mcp_gone(&t->m, j);
			mcp_session_hang_up(t, j);
		}
	}
}

static void session_due_check(struct mcp_session *t, bool changed)
{
	int64_t left;

	drop_gone(t);
	if (changed && (t->m.waiting || t->m.subscriptions))
		t->m.changed = true;
	else if (t->due < 0 || t->due > os_boot_ms())
		return;
	/* a revoked token gets no task, and its locks are not renewed */
	if (!serve_login_worker_holds(t->worker, t->hash)) {
		mcp_session_free(t);
		return;
	}
	mcp_session_lend(t);
	left = mcp_tick(&t->m);
	mcp_session_take_back(t);
	t->due = left < 0 ? -1 : os_boot_ms() + left;
}

/* Delays the due work while the store cannot be reached. */
static void put_off(struct mcp_session *t)
{
	drop_gone(t);
	if (t->due >= 0 && t->due < os_boot_ms() + RETRY_MS)
		t->due = os_boot_ms() + RETRY_MS;
}

/* The loop closes a queue only if none of its sessions is in use. */
static void note_use(struct worker *d)
{
	bool used = false;

	for (const struct mcp_session *t = d->mcp_sessions; t; t = t->next)
		used |= t->open || t->m.held || t->m.subscriptions || t->m.waiting;
	d->in_session = used;
}

static void begin_round(struct worker *d)
{
	for (const struct mcp_session *t = d->mcp_sessions; t; t = t->next)
		if (t->untold)
			return; /* the last round is not over */
	for (struct mcp_session *t = d->mcp_sessions; t; t = t->next)
		t->untold = true;
	d->round_changed = d->mcp_sessions_changed;
	d->mcp_sessions_changed = false;
}

/* Does the due work of each session once in a round. A round takes as many batches as it needs, so
 * that one caller's many sessions do not keep other callers waiting. d->untold: the next batch
 * continues the round. */
void mcp_sessions_check(struct worker *d, bool changed)
{
	struct answer ans = { 0 };
	struct arena a = { 0 };
	struct mcp_session *t = d->mcp_sessions, *next;

	d->mcp_sessions_changed |= changed;
	begin_round(d);
	d->batch_began = os_boot_ms();
	for (; t && !worker_share_is_over(d); t = next) {
		next = t->next;
		if (!t->untold)
			continue;
		t->untold = false;
		if (worker_open(d, &ans, &a))
			session_due_check(t, d->round_changed);
		else
			put_off(t);
	}
	d->untold = t || (d->mcp_sessions && d->mcp_sessions_changed);
	arena_free(&a);
	mcp_sessions_sweep(d);
	note_use(d);
}

int64_t mcp_sessions_next(const struct worker *d)
{
	int64_t now = os_boot_ms(), left = -1;

	for (const struct mcp_session *t = d->mcp_sessions; t; t = t->next) {
		int64_t due = t->due > now ? t->due - now : 0;

		if (t->due >= 0 && (left < 0 || due < left))
			left = due;
	}
	return left;
}

bool mcp_sessions_await(const struct worker *d)
{
	for (const struct mcp_session *t = d->mcp_sessions; t; t = t->next)
		if (t->m.waiting || t->m.subscriptions)
			return true;
	return false;
}

void mcp_sessions_drain(struct worker *d)
{
	for (struct mcp_session *t = d->mcp_sessions, *next; t; t = next) {
		next = t->next;
		if (!serve_login_worker_holds(d, t->hash)) {
			mcp_session_free(t);
			continue;
		}
		mcp_session_lend(t);
		wait_hurry(&t->m);
		subscriptions_end(&t->m);
		mcp_session_take_back(t);
		while (t->open)
			mcp_session_hang_up(t, t->open);
	}
}

void mcp_sessions_end(struct worker *d)
{
	while (d->mcp_sessions)
		mcp_session_free(d->mcp_sessions);
}

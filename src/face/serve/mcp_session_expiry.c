/*
 * When an MCP session ends without its client asking: after 10 idle minutes, or because its place is
 * needed. A session that holds a task or has an open answer is not idle.
 */
#include "base/os.h"
#include "face/serve/mcp_http.h"

#define IDLE_MS (INT64_C(10) * 60 * 1000)

static bool mcp_session_is_idle(const struct mcp_session *t, int64_t ms)
{
	int64_t silent = os_boot_ms() - t->m.heard;

	/* a subscription without a stream does not keep its session forever */
	return !t->open && !t->m.held && silent >= (t->m.subscriptions ? IDLE_MS : ms);
}

static size_t mcp_sessions_of(const struct worker *d, const struct meter *caller)
{
	size_t n = 0;

	for (const struct mcp_session *t = d->mcp_sessions; t; t = t->next)
		n += t->caller == caller;
	return n;
}

/* The longest silent session of the caller with the most sessions. NULL: no caller has more
 * sessions than `caller` would have. */
static struct mcp_session *largest_loses(struct worker *d, const struct meter *caller)
{
	size_t most = mcp_sessions_of(d, caller) + 1;
	struct mcp_session *best = NULL;

	for (struct mcp_session *t = d->mcp_sessions; t; t = t->next) {
		size_t n = mcp_sessions_of(d, t->caller);

		if (n > most || (best && n == most && t->m.heard < best->m.heard)) {
			best = t;
			most = n;
		}
	}
	return best;
}

bool mcp_session_make_room(struct worker *d, const struct meter *caller)
{
	struct mcp_session *oldest = NULL;
	int64_t n = 0;

	for (struct mcp_session *t = d->mcp_sessions; t; t = t->next, n++)
		if (mcp_session_is_idle(t, 0) && (!oldest || t->m.heard < oldest->m.heard))
			oldest = t;
	if (n < d->serve->sessions_max)
		return true;
	if (!oldest)
		oldest = largest_loses(d, caller);
	if (oldest)
		mcp_session_free(oldest);
	return oldest;
}

void mcp_sessions_sweep(struct worker *d)
{
	for (struct mcp_session *t = d->mcp_sessions, *next; t; t = next) {
		next = t->next;
		if (mcp_session_is_idle(t, IDLE_MS))
			mcp_session_free(t);
	}
}

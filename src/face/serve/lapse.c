/*
 * Leases that expire. No call reports them, and the store does not wake anybody. So the desk derives them from the locks
 * (queue/expiry.c). A look says when the next lease expires, and the desk looks again then. While somebody streams the
 * events, it also looks soon after each change: a lease lasts at least a second, so the desk knows each one in time.
 */
#include "face/serve/serve.h"

#include "base/os.h"
#include "core/typed.h"

#define POLL_MS 500

int64_t expiry_due(const struct worker *d)
{
	const struct expiries *l = &d->expiries;
	int64_t due = l->next ? l->next : INT64_MAX;

	if (l->stale && d->watched && l->checked + POLL_MS < due)
		due = l->checked + POLL_MS;
	return d->open ? due : INT64_MAX;
}

bool expiry_check(struct worker *d)
{
	struct request rq = { .op = OP_LOG };
	struct expiries *l = &d->expiries;
	struct answer ans = { 0 };
	struct arena a = { 0 };
	bool any = false;

	GIVE(&rq, limit, 1);
	GIVE(&rq, expired_after, l->since);
	queue_call(d->session.client.conn.queue, &rq, &ans, &a);
	l->checked = os_boot_ms();
	l->stale = false;
	l->next = ans.code == SUCCESS && ans.wait_ms ? l->checked + ans.wait_ms : 0;
	if (ans.code == SUCCESS)
		l->since = ans.now;
	for (size_t i = 0; ans.code == SUCCESS && i < ans.n_events; i++) {
		const struct event *e = &ans.events[i];

		if (e->cursor.n) /* of the log */
			continue;
		any = true;
		l->n += !typed_of(e->task);
	}
	arena_free(&a);
	return any;
}

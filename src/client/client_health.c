/*
 * The health of the locks: for `lock health`, and before changes if health.auto is on. A degraded queue gets its stale
 * locks cleaned up, and callers wait at most HURRIED_MS until it has recovered: many waiting callers make it worse.
 */
#include <stdlib.h>
#include <unistd.h>

#include "base/os.h"
#include "client/client.h"

#define STALE_MS (300 * INT64_C(1000))
#define HURRIED_MS 3000

static bool is_stale(const struct client *c, const struct lock *l, int64_t now)
{
	return l->life == LIFE_DEAD ||
	       (l->expires_at && now - l->expires_at >= client_stale_after(c));
}

int64_t client_stale_after(const struct client *c)
{
	return settings_given(&c->conn.settings, "lock.stale_after")
		       ? settings_number(&c->conn.settings, "lock.stale_after")
		       : STALE_MS;
}

static enum result check_locks(struct client *c, enum op op, struct health_facts *facts,
			       struct answer *ans)
{
	struct request rq = { .op = op };

	client_call(c, &rq, ans);
	for (size_t i = 0; i < ans->n_tasks; i++)
		facts->stale += is_stale(c, &ans->tasks[i].lock, ans->now);
	return ans->code;
}

static int64_t load_percent(void)
{
	long processors = sysconf(_SC_NPROCESSORS_ONLN);
	double load[2];

	if (getloadavg(load, 2) < 2)
		return 0;
	return (int64_t)(load[1] * 100 / (double)(processors > 0 ? processors : 1));
}

enum result client_health(struct client *c, struct client_health *out, struct answer *ans)
{
	enum result code = client_open(c, STORE_READ, ans);

	*out = (struct client_health){ .facts.load_percent = load_percent() };
	if (code == SUCCESS)
		code = check_locks(c, OP_LOCKS, &out->facts, ans);
	if (code == SUCCESS)
		code = check_locks(c, OP_TYPED, &out->facts, ans);
	if (code != SUCCESS)
		return code;
	out->counted = queue_health(c->conn.queue, &out->health);
	out->facts.recent_failures = health_recent(&out->health, os_wall_ms());
	out->facts.done = out->health.all.done;
	out->facts.failed = out->health.all.failed;
	return SUCCESS;
}

bool client_health_auto(const struct client *c)
{
	return str_is(settings_text(&c->conn.settings, "health.auto"), "on");
}

int64_t client_hurried(const struct client *c, int64_t timeout_ms)
{
	return c->conn.degraded && timeout_ms > HURRIED_MS ? HURRIED_MS : timeout_ms;
}

/* The call that follows is made in any case, so errors do not matter here. */
void client_watch(struct client *c)
{
	struct request rq = { .op = OP_LOCK_CLEANUP };
	struct client_health *h;
	struct answer ignored = { 0 };
	enum role role = c->self.role;

	if (c->conn.watching || !client_health_auto(c))
		return;
	c->conn.watching = true;
	c->self.role = ROLE_NONE; /* the caller did not ask for it */
	h = arena_new(c->arena, struct client_health);
	c->conn.degraded = client_health(c, h, &ignored) == SUCCESS &&
			   health_score(&h->facts) < HEALTH_DEGRADED;
	if (c->conn.degraded && h->facts.stale)
		client_call(c, &rq, &ignored);
	c->self.role = role;
	c->conn.watching = false;
}

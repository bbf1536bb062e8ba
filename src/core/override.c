/*
 * Changes that an operator makes to a task that another agent holds (--force), and the check of the
 * version that a call expects (--if-version). Each override is logged, and a change over a lock leaves
 * a notice that tells the holder which fields changed.
 */
#include "core/lease.h"
#include "core/rules.h"

bool override_needed(const struct task *t, const struct call *c)
{
	return lease_held(t, c->now) && !lease_owned(&t->lock, c->proof, c->now);
}

bool override_is(const struct task *t, const struct call *c)
{
	return c->rq->force && override_needed(t, c);
}

void override_log(const struct task *t, struct call *c)
{
	call_event(c, t, "overridden", 0,
		   arena_printf(c->arena, "the lock of %.*s: %.*s", STRF(t->lock.holder),
				STRF(c->rq->reason)));
}

void override_note(struct task *t, struct call *c, struct strs fields)
{
	struct notice *o = &t->over;

	if (!o->by.n || !str_eq(o->token, t->lock.token))
		o->fields.n = 0;
	for (size_t i = 0; i < fields.n; i++)
		if (!strs_have(o->fields, fields.v[i]))
			o->fields = arena_append(c->arena, o->fields, fields.v[i]);
	o->by = c->rq->agent;
	o->reason = c->rq->reason;
	o->token = t->lock.token;
	o->at = c->now;
	override_log(t, c);
}

bool override_version(const struct task *t, struct call *c)
{
	if (!HAS(c->rq, if_version) || c->rq->if_version == t->version)
		return true;
	refuse(c, CONFLICT,
	       arena_printf(c->arena, "%.*s has version %lld, not %lld: it has changed since then",
			    STRF(t->id), (long long)t->version, (long long)c->rq->if_version),
	       arena_printf(c->arena,
			    "pawl show %.*s shows the task as it is now; then call again with "
			    "--if-version %lld",
			    STRF(t->id), (long long)t->version));
	return false;
}

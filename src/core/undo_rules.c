/*
 * Decides whether a change can be taken back, and restores the task. The caller's change must be the last one: the task
 * must still be as that change left it, except for comments, counts and heartbeats. A refusal names the agent that changed
 * it since, or the call that leads back from a holder's call.
 */
#include "core/undo_rules.h"

#include "base/text.h"
#include "base/when.h"
#include "core/lease.h"
#include "core/role.h"
#include "core/validate.h"

enum op undo_op(const struct request *rq, int64_t status)
{
	enum op op = rq->op == OP_STATUS ? rules_for_status(status, rq->status) : rq->op;

	return op_flags(op) & OP_UNDOABLE ? op : OP_NONE;
}

struct task undo_compared(const struct task *t)
{
	struct task out = *t;

	out.version = out.open_deps = out.canceled_deps = out.open_subs = 0;
	out.lock.expires_at = out.lock.pid = out.lock.pid_start = out.lock.life = 0;
	out.lock.host = out.lock.boot_id = STR("");
	out.chain = STR(""); /* a comment continues it */
	return out;
}

enum role undo_role(const struct undo *u)
{
	enum role least = role_for_op((enum op)u->op);

	return (enum role)u->role > least ? (enum role)u->role : least;
}

/* --- records ------------------------------------------------------------------------------------- */

static bool is_digest(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if (!memchr("0123456789abcdef", s.p[i], 16))
			return false;
	return s.n == UNDO_DIGEST_LEN;
}

static bool is_time(int64_t ms)
{
	return ms >= 0 && ms <= WHEN_MAX;
}

static bool other_valid(const struct undo_other *o)
{
	return !id_fault(o->id) && is_digest(o->digest) && o->blocker_reason.n <= TEXT_MAX &&
	       text_valid(o->blocker_reason) && o->status > 0 && o->status < STATUS_END &&
	       is_time(o->updated_at) && o->link >= UNDO_NO_LINK && o->link < UNDO_LINK_END;
}

static bool undo_head_valid(const struct undo *u)
{
	return u->op > OP_NONE && u->op < OP_END && op_flags((enum op)u->op) & OP_UNDOABLE &&
	       u->role >= ROLE_NONE && u->role <= ROLE_ADMIN && is_time(u->at) && u->agent.n &&
	       u->agent.n <= NAME_MAX_BYTES && text_valid(u->agent) &&
	       (u->op == OP_REMOVE ? !u->digest.n : is_digest(u->digest));
}

const char *undo_fault(const struct undo *u, struct str key, struct arena *a)
{
	const char *fault;

	if (!undo_head_valid(u))
		return "the change that it describes is damaged";
	if (!u->was)
		return "the task in it is missing";
	fault = task_fault(u->was, key, a);
	if (fault)
		return arena_printf(a, "the task in it: %s", fault).p;
	for (size_t i = 0; i < u->n_others; i++)
		if (u->n_others > UNDO_OTHERS_MAX || !other_valid(&u->others[i]))
			return "another task in it is damaged";
	return NULL;
}

/* --- refusals ------------------------------------------------------------------------------------ */

/* The calls that lead back from an event that undo does not take back. */
static const struct {
	const char *event, *before, *after; /* the hint, around the id */
} reversals[] = {
	{ "claimed", "give it back: pawl release ", "" },
	{ "resumed", "give it back: pawl release ", "" },
	{ "locked", "pawl lock release ", "" },
	{ "unlocked", "pawl lock acquire ", "" },
	{ "released", "pawl claim ", "" },
	{ "done", "pawl reopen ", " --reason TEXT" },
	{ "review", "pawl rework ", " --reason TEXT, which a reviewer may" },
	{ "blocked", "pawl unblock ", "" },
	{ "escalated", "pawl unblock ", "" },
	{ "failed", "pawl retry ", "" },
	{ "created", "pawl remove ", "" },
	{ "undone", "an undo cannot be undone: change ", " again" },
};

static struct str undo_hint(const struct event *last, struct str id, struct arena *a)
{
	for (size_t i = 0; i < sizeof(reversals) / sizeof(*reversals); i++)
		if (str_is(last->name, reversals[i].event))
			return arena_printf(a, "%s%.*s%s", reversals[i].before, STRF(id),
					    reversals[i].after);
	return STR("");
}

/* The caller's own last call on the task left nothing that can be taken back. */
static void refuse_own(struct call *c, struct str id, const struct event *last)
{
	struct str hint = undo_hint(last, id, c->arena);

	if (hint.n)
		refuse(c, MISCONFIGURED,
		       arena_printf(c->arena, "your last call on %.*s (%.*s) cannot be undone",
				    STRF(id), STRF(last->name)),
		       hint);
	else
		refuse(c, MISCONFIGURED,
		       arena_printf(c->arena,
				    "%.*s as it was before your last change (%.*s) is not kept",
				    STRF(id), STRF(last->name)),
		       STR("pawl keeps it for 30 days, and a restore drops it; pawl log shows the change"));
}

/* Who changed the task after the caller's change? */
static void refuse_changed(struct call *c, struct str id, const struct undo *u,
			   const struct event *last)
{
	const char *did = op_words((enum op)u->op, c->arena);
	struct str what = !last ? STR("the log does not say by whom")
				: arena_printf(c->arena, "%.*s: %.*s at %s", STRF(last->agent),
					       STRF(last->name),
					       arena_cstr(c->arena, when_text(c->arena, last->at)));

	refuse(c, CONFLICT,
	       arena_printf(c->arena, "%.*s was changed after your %s (%.*s)", STRF(id), did,
			    STRF(what)),
	       arena_printf(c->arena, "pawl show %.*s shows it as it is now", STRF(id)));
}

static void refuse_foreign(struct call *c, struct str id, const struct event *last)
{
	refuse(c, CONFLICT,
	       arena_printf(c->arena, "the last change of %.*s is not yours (%.*s: %.*s at %s)",
			    STRF(id), STRF(last->agent), STRF(last->name),
			    arena_cstr(c->arena, when_text(c->arena, last->at))),
	       STR("only the agent that made a change can undo it"));
}

static void undo_refuse(struct call *c, struct str id, const struct undo *u,
			const struct undo_facts *f)
{
	bool own = u && str_eq(u->agent, c->rq->agent);

	if (f->last && str_eq(f->last->agent, c->rq->agent))
		refuse_own(c, id, f->last);
	else if (own)
		refuse_changed(c, id, u, f->last);
	else if (f->last)
		refuse_foreign(c, id, f->last);
	else
		refuse(c, MISCONFIGURED,
		       arena_printf(c->arena, "there is no change of %.*s that you could undo",
				    STRF(id)),
		       STR("pawl help undo lists the calls that can be undone"));
}

bool undo_allowed(const struct task *t, const struct undo *u, const struct undo_facts *f,
		  bool removed, struct call *c)
{
	struct task now = *t;

	if (!u || !f->same || !str_eq(u->agent, c->rq->agent)) {
		undo_refuse(c, t->id, u, f);
		return false;
	}
	if (removed)
		now.lock = (struct lock){ 0 }; /* nobody holds a task that is not there */
	return rules_free(&now, c);
}

/* --- effects ------------------------------------------------------------------------------------- */

/* Takes the lock and all that outlives it from the present task: the change may have ended a lock, and its holder was
 * told so. */
static void keep_lock(struct task *t, const struct task *now)
{
	t->lock = now->lock;
	t->run = now->run;
	t->last_holder = now->last_holder;
	t->last_ttl = now->last_ttl;
	t->last_expires_at = now->last_expires_at;
	t->over = now->over;
	/* without a lock, any agent may claim the task at once */
	t->free_at = t->status == IN_PROGRESS && !t->lock.holder.n ? 0 : now->free_at;
}

static struct str undo_words(const struct undo *u, const struct call *c)
{
	const char *did = op_words((enum op)u->op, c->arena);

	return c->rq->reason.n ? arena_printf(c->arena, "%s: %.*s", did, STRF(c->rq->reason))
			       : str_c(did);
}

void undo_apply(struct task *t, const struct undo *u, const struct undo_facts *f, struct call *c)
{
	struct task now = *t;

	if (override_is(t, c)) {
		override_note(t, c, f->fields);
		now.over = t->over;
	}
	*t = *u->was;
	t->id = now.id;
	t->fence = now.fence;
	t->chain = now.chain;
	t->version = now.version + 1;
	t->open_deps = now.open_deps;
	t->canceled_deps = now.canceled_deps;
	t->open_subs = now.open_subs;
	t->parent = now.parent;
	t->depends = now.depends;
	keep_lock(t, &now);
	c->changed = true;
	call_event(c, t, "undone", now.status, undo_words(u, c));
}

void undo_restore(struct task *t, const struct undo *u, int64_t fence)
{
	const struct task none = { .run = STR("") };

	*t = *u->was;
	t->fence = fence > t->fence ? fence : t->fence;
	t->version++;
	t->open_deps = t->canceled_deps = t->open_subs = 0;
	t->parent = STR("");
	t->depends = (struct strs){ 0 };
	t->last = (struct last){ 0 };
	keep_lock(t, &none);
	t->last_holder = u->was->last_holder;
	t->last_ttl = u->was->last_ttl;
}

void undo_other(struct task *t, const struct undo_other *o, struct call *c)
{
	t->status = o->status;
	t->blocker_reason = o->blocker_reason;
	t->updated_at = o->updated_at;
	t->version++;
	c->changed = true;
}

#define UNDO_FINISHED (STATUS_BIT(REVIEW) | STATUS_BIT(DONE) | STATUS_BIT(CANCELED))

/* The statuses decide, not the operation: calls that were made together are kept as one update. */
bool undo_unfinished(const struct task *t, const struct undo *u)
{
	return t->open_subs && UNDO_FINISHED & STATUS_BIT(u->was->status) &&
	       !(UNDO_FINISHED & STATUS_BIT(t->status));
}

bool undo_unapproves(const struct task *t, const struct undo *u)
{
	return t->status == DONE && u->was->status == REVIEW;
}

void undo_refuse_relied(struct call *c, const struct task *t, const struct task *waited)
{
	refuse(c, CONFLICT,
	       arena_printf(c->arena,
			    "%.*s waited for %.*s and was taken after the approval, by %.*s",
			    STRF(waited->id), STRF(t->id), STRF(waited->last_holder)),
	       arena_printf(c->arena, "pawl reopen %.*s --reason TEXT makes it work again",
			    STRF(t->id)));
}

bool undo_relied_on(const struct task *waited, const struct undo *u)
{
	return waited->started_at >= u->at || waited->done_at >= u->at;
}

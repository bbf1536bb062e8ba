#include "core/refuse.h"

#include "base/when.h"
#include "core/lease.h"

void refuse(struct verdict *v, enum result code, struct str message, struct str hint)
{
	v->code = code;
	v->message = message;
	v->hint = hint;
}

/* "Ready, In Progress or Failed" */
static struct str names(unsigned set, struct arena *a)
{
	struct str out = STR("");
	int left = __builtin_popcount(set);

	for (int s = BACKLOG; s < STATUS_END; s++) {
		if (!(set & STATUS_BIT(s)))
			continue;
		out = arena_printf(a, "%.*s%s%s", STRF(out), status_name(s),
				   left > 2    ? ", "
				   : left == 2 ? " or "
					       : "");
		left--;
	}
	return out;
}

static const char *const ways_out[] = {
	[BACKLOG] = "pawl update %.*s --status Ready",
	[READY] = "pawl claim %.*s",
	[IN_PROGRESS] = "pawl claim %.*s, then done, review, block, release or fail",
	[BLOCKED] = "pawl unblock %.*s",
	[NEEDS_HELP] = "pawl unblock %.*s",
	[REVIEW] = "pawl approve %.*s, or pawl rework with a --reason",
	[DONE] = "pawl reopen %.*s --reason TEXT",
	[FAILED] = "pawl retry %.*s",
	[CANCELED] = "pawl reopen %.*s --reason TEXT",
};

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
static struct str way_out(const struct task *t, struct arena *a)
{
	return arena_printf(a, ways_out[t->status], STRF(t->id));
}
#pragma GCC diagnostic pop

void refuse_status(struct verdict *v, const struct call *c, const struct task *t, const char *what,
		   unsigned from)
{
	refuse(v, MISCONFIGURED,
	       arena_printf(c->arena, "%.*s is %s; %s starts from %.*s", STRF(t->id),
			    status_name(t->status), what, STRF(names(from, c->arena))),
	       way_out(t, c->arena));
}

static struct str until(const struct task *t, const struct call *c)
{
	const struct lock *l = &t->lock;

	if (!l->expires_at)
		return STR("until it is removed");
	return arena_printf(c->arena, "until %.*s (in %.*s)",
			    STRF(when_text(c->arena, l->expires_at)),
			    STRF(duration_text(c->arena, l->expires_at - c->now)));
}

void refuse_held(struct verdict *v, const struct call *c, const struct task *t)
{
	refuse(v, CONFLICT,
	       arena_printf(c->arena, "%.*s is held by %.*s since %.*s %.*s", STRF(t->id),
			    STRF(t->lock.holder), STRF(when_text(c->arena, t->lock.acquired_at)),
			    STRF(until(t, c))),
	       arena_printf(
		       c->arena,
		       "pawl next --claim takes another task; pawl lock status %.*s shows this lock",
		       STRF(t->id)));
}

void refuse_lost(struct verdict *v, const struct call *c, const struct task *t)
{
	struct arena *a = c->arena;
	bool same = c->proof.n && str_eq(c->proof, t->lock.token);
	struct str text, hint;

	if (same) {
		text = arena_printf(a, "the lease on %.*s ran out at %.*s", STRF(t->id),
				    STRF(when_text(a, t->lock.expires_at)));
		hint = arena_printf(
			a, "pawl claim %.*s --resume %lld takes it up again, if nobody has",
			STRF(t->id), (long long)t->fence);
	} else if (lease_live(&t->lock, c->now)) {
		text = arena_printf(a, "%s for %.*s, which is held by %.*s %.*s",
				    c->proof.n ? "this token is no longer the one"
					       : "there is no token",
				    STRF(t->id), STRF(t->lock.holder), STRF(until(t, c)));
		hint = STR("pawl next --claim takes another task; a holder passes --token");
	} else {
		text = arena_printf(a, "%s for %.*s, which nobody holds (it is %s)",
				    c->proof.n ? "this token is no longer good"
					       : "there is no token",
				    STRF(t->id), status_name(t->status));
		hint = way_out(t, a);
	}
	refuse(v, LOST_LOCK, text, hint);
}

void refuse_subtasks(struct verdict *v, const struct call *c, const struct task *t)
{
	refuse(v, INCOMPLETE_SUBTASKS,
	       arena_printf(c->arena, "%.*s has %lld open sub-task%s", STRF(t->id),
			    (long long)t->open_subs, t->open_subs == 1 ? "" : "s"),
	       arena_printf(c->arena,
			    "pawl list --parent %.*s shows them; finish or cancel them first",
			    STRF(t->id)));
}

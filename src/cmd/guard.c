/*
 * pawl guard: succeeds only if the caller still holds the task with the fence that it names. A
 * missing token, an expired lease and another fence all count as a lost lock.
 */
#include <stdlib.h>

#include "base/secret.h"
#include "cmd/cmd.h"
#include "cmd/command.h"
#include "core/lease.h"

struct guard_args {
	struct args args;
	int64_t receive;
};

static const struct param params[] = {
	PARAM(id, "ID", P_ID, .flags = P_POSITIONAL, .help = "task to check (default: PAWL_TASK)",
	      .model = "task to check"),
	PARAM(fence, "fence", P_INT, .value = "FENCE", .min = 1,
	      .help = "fence of your claim (default: PAWL_FENCE, if it belongs to this task)",
	      .model = "fence of your claim"),
	LOCAL(guard, receive, "receive", P_FLAG, .flags = P_TERMINAL | P_HERE,
	      .help = "check a push as a git repository's pre-receive hook; PAWL_STORE names the queue"),
	{ 0 }
};

static enum result guard_cmd_run(struct session *s, struct args *a, struct reply *out);
static void guard_cmd_show(const struct reply *r, struct view *v);

const struct command cmd_guard = {
	.name = "guard",
	.group = "work",
	.summary = "check that you still hold a task, in a hook or before a push",
	.detail =
		"The exit code is 0 only if your token is that of the live lock and the fence is the one you gave; "
		"otherwise it is 21. guard changes nothing. The token comes from --token, PAWL_TOKEN or the token that "
		"pawl saved at the claim. --receive is for the hook of a git server: it reads the pushed refs from standard "
		"input. It refuses the push if a branch pawl/ID/FENCE, or a commit with the trailer \"Pawl-Task: ID FENCE\", "
		"names a fence that is stale or cannot be checked.",
	.example = "pawl guard t1\n"
		   "pawl guard t1 --fence 3\n"
		   "PAWL_STORE=https://pawl.example.org pawl guard --receive",
	.see = "heartbeat, claim, lock status, run",
	.model =
		"Check that you still hold a task, for example before a push. Changes nothing. LOST_LOCK: you do "
		"not hold it; stop working on it, call next. " MODEL_NOT_FOUND,
	.params = params,
	.args_size = sizeof(struct guard_args),
	.flags = C_IDEMPOTENT,
	.op = OP_SHOW,
	.fails = FAILS(LOST_LOCK, NOT_FOUND),
	.run = guard_cmd_run,
	.show = guard_cmd_show,
};

static enum result guard_cmd_lost(struct session *s, const struct task *t, struct str why,
				  struct reply *out)
{
	return run_fail(
		LOST_LOCK,
		arena_printf(s->arena, "you do not hold %.*s%.*s", STRF(t->id), STRF(why)),
		STR("stop working on it: another agent may have it; `pawl lock status` shows the holder"),
		out);
}

/* If the store hides token hashes, only a call that the holder alone may make proves the lock. A
 * heartbeat is such a call; it also renews the lease. */
static enum result ask_store(struct session *s, struct str id, struct str token, struct reply *out)
{
	struct request rq = { .op = OP_HEARTBEAT };
	struct answer ans = { 0 };

	GIVE(&rq, id, id);
	GIVE(&rq, token, token);
	client_call(&s->client, &rq, &ans);
	return run_answer(&ans, out);
}

static struct str holder_text(struct session *s, const struct task *t, int64_t now)
{
	if (!t->lock.holder.n)
		return arena_printf(s->arena, ": no agent holds it; it is %s",
				    status_name(t->status));
	if (!lease_live(&t->lock, now))
		return STR(": its lease expired");
	return arena_printf(s->arena, ": %.*s holds it with fence %lld", STRF(t->lock.holder),
			    (long long)t->fence);
}

static enum result guard_cmd_check(struct session *s, const struct answer *found, struct str token,
				   int64_t fence, struct reply *out)
{
	const struct task *t = found->task;

	if (fence && fence != t->fence)
		return guard_cmd_lost(s, t,
				      arena_printf(s->arena,
						   " any more: its fence is %lld, not %lld",
						   (long long)t->fence, (long long)fence),
				      out);
	if (!token.n)
		return guard_cmd_lost(s, t, STR(": there is no saved token for it here"), out);
	if (!lease_live(&t->lock, found->now))
		return guard_cmd_lost(s, t, holder_text(s, t, found->now), out);
	if (!t->lock.token.n)
		return ask_store(s, t->id, token, out);
	if (!lease_owned(&t->lock, token_hash(s->arena, token), found->now))
		return guard_cmd_lost(s, t, holder_text(s, t, found->now), out);
	return run_answer(found, out);
}

/* PAWL_FENCE counts only for the task in PAWL_TASK. false: it is not a number. */
static bool find_fence(const struct args *a, int64_t *fence)
{
	const char *task = getenv("PAWL_TASK"), *text = getenv("PAWL_FENCE");

	*fence = a->rq.fence;
	if (HAS(&a->rq, fence) || !task || !text || !*text || !str_eq_nocase(a->rq.id, str_c(task)))
		return true;
	return str_to_i64(str_c(text), fence) && *fence > 0;
}

/* A repository can lie below somebody's queue, so a server's check asks only the queue that its administrator names. */
static enum result guard_cmd_receive(struct session *s, const struct args *a, struct reply *out)
{
	const char *store = getenv("PAWL_STORE");

	if (HAS(&a->rq, id) || HAS(&a->rq, fence))
		return run_fail(
			USAGE,
			STR("guard --receive takes neither an ID nor a fence: the push names them"),
			STR("PAWL_STORE=URI pawl guard --receive, as the last line of hooks/pre-receive"),
			out);
	if (!s->client.said.store.n && (!store || !*store))
		return run_fail(
			MISCONFIGURED, STR("guard --receive needs the queue's store"),
			STR("set PAWL_STORE in the hook, for example PAWL_STORE=https://pawl.example.org"),
			out);
	return guard_receive(s, out);
}

static enum result guard_cmd_run(struct session *s, struct args *args, struct reply *out)
{
	const struct guard_args *own = (const struct guard_args *)args;
	struct args *a = args;
	const char *task = getenv("PAWL_TASK");
	struct request rq = { .op = OP_SHOW };
	struct answer ans = { 0 };
	struct str token;
	int64_t fence;

	if (own->receive)
		return guard_cmd_receive(s, a, out);

	if (!HAS(&a->rq, id) && (!task || id_fault(str_c(task))))
		return run_fail(USAGE, STR("guard needs a task: give an ID, or set PAWL_TASK"),
				STR("e.g. pawl guard t1"), out);
	if (!HAS(&a->rq, id))
		GIVE(&a->rq, id, str_c(task));
	if (!find_fence(a, &fence))
		return run_fail(USAGE, STR("PAWL_FENCE is not a number, so it is not a fence"),
				STR("`pawl run` sets PAWL_FENCE; you can also give --fence"), out);
	GIVE(&rq, id, a->rq.id);
	client_call(&s->client, &rq, &ans);
	if (ans.code == SUCCESS)
		client_token(&s->client, a->rq.id, a->rq.token, &token, &ans);
	if (ans.code != SUCCESS)
		return run_answer(&ans, out);
	return guard_cmd_check(s, &ans, token, fence, out);
}

static void guard_cmd_show(const struct reply *r, struct view *v)
{
	const struct task *t = r->ans.task;

	if (v->quiet || !t) /* --receive: git shows nothing of a push that it takes */
		return;
	view_data(v, BOLD, t->id);
	view_text(v, PLAIN, " is yours with fence %lld for another %s\n", (long long)t->fence,
		  arena_cstr(v->arena, view_left(v, t->lock.expires_at - r->ans.now)));
}

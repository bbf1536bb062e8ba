/*
 * Packs a call, so that another process can make it for us. Tokens do not leave this process, only their hashes; this
 * process adds the token to the answer again.
 */
#include <errno.h>

#include "base/os.h"
#include "base/secret.h"
#include "core/validate.h"
#include "queue/queue_private.h"
#include "format/answer_form.h"
#include "format/request_form.h"

/* Tags that no argument of a request uses: request_unpack() skips them. */
#define ROW(tag, kind, when, member, ...)                                                \
	{                                                                                \
		tag, SHAPE_##kind, SHAPE_##when, .offset = offsetof(struct act, member), \
						 ##__VA_ARGS__                           \
	}
#define PASS(kind) ROW(203 + TYPED_##kind, STR, SOME, pass[TYPED_##kind])

static const struct shape_member members[] = {
	ROW(200, STR, ALWAYS, call.proof),
	ROW(201, STR, ALWAYS, call.fresh),
	ROW(199, ONE, NEEDED, call.policy, .of = &policy_shape),
	PASS(WRITE),
	PASS(BATCH),
	PASS(CONFIG),
	PASS(MAINTENANCE),
	PASS(SYNC),
};
static const struct shape act_shape = SHAPE_AMONG(members, act, 199);

#define TOKENS (UINT64_C(1) << ARG_token | UINT64_C(1) << ARG_new_token)

static void relay_pack(const struct change *c, struct buf *out)
{
	const struct act *w = c->ctx;
	struct request rq;

	/* The owner must run it if it is not a call, if its role must be checked, or if its answer has a brief, which
	 * seldom fits into a slot. */
	if (c->fn != act_run || w->call.rq->role || w->call.rq->view & VIEW_BRIEF) {
		out->full = true;
		return;
	}
	rq = *w->call.rq;
	shape_pack(&act_shape, SHAPE_ALL, w, out);
	rq.has &= ~TOKENS;
	request_pack(&rq, out);
}

static bool is_hash(struct str s)
{
	return !s.n || s.n == HASH_LEN;
}

/* Hashes are stored in locks, so each must be empty or have the right length. */
static bool relay_hashes(const struct act *w)
{
	for (int k = TYPED_WRITE; k < TYPED_END; k++)
		if (!is_hash(w->pass[k]))
			return false;
	return is_hash(w->call.proof) && is_hash(w->call.fresh);
}

/* Checks the call again: other processes may have changed the bytes. */
static int relay_adopt(struct str bytes, struct change *out, struct arena *a)
{
	struct act *w = arena_new(a, struct act);
	struct request *rq = arena_new(a, struct request);

	if (shape_unpack(&act_shape, SHAPE_ALL, bytes, w, a) || !policy_sane(w->call.policy) ||
	    !relay_hashes(w) || request_unpack(bytes, rq, a))
		return -EBADMSG;
	rq->has &= ~TOKENS;
	rq->token = rq->new_token = STR("");
	if (w->call.fresh.n)
		GIVE(rq, new_token, STR("its owner's"));
	if (op_flags(rq->op) & OP_READS || rq->view & VIEW_BRIEF ||
	    request_fault(rq, w->call.policy, a))
		return -EBADMSG;
	w->call.rq = rq;
	w->ans = arena_new(a, struct answer);
	w->call.arena = a;
	*out = (struct change){ .fn = act_run, .ctx = w };
	return 0;
}

static void relay_report(const struct change *c, struct buf *out)
{
	const struct act *w = c->ctx;

	answer_pack(w->ans, out);
}

static int relay_accept(struct change *c, struct str bytes)
{
	struct act *w = c->ctx;
	struct answer *ans = w->ans;

	w->began_ns = os_monotonic_ns();
	w->handed = true;
	if (answer_unpack(arena_str(w->call.arena, bytes), ans, w->call.arena) ||
	    answer_fault(ans, w->call.arena))
		return -EBADMSG;
	if (ans->lock && ans->lock->token.n)
		ans->lock->token = w->call.rq->new_token;
	if (ans->next_lock && ans->next_lock->token.n)
		ans->next_lock->token = w->call.rq->new_token;
	return 0;
}

static const struct wants *wants(const struct change *c, struct arena *a)
{
	return act_reads(c->ctx, a);
}

const struct relay queue_relay = { relay_pack, relay_adopt, relay_report, wants, relay_accept };

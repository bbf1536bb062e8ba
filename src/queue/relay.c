/*
 * Packs a call, so that another process can make it for us. Tokens do not leave this process, only their hashes; this
 * process adds the token to the answer again.
 */
#include <errno.h>

#include "format/pack.h"
#include "base/os.h"
#include "base/secret.h"
#include "core/check.h"
#include "queue/act.h"
#include "format/answer.h"
#include "format/request.h"

/* Tags that no argument of a request uses. */
enum {
	TAG_PROOF = 200,
	TAG_FRESH = 201,
	TAG_POLICY = 199,
	TAG_PASS = 203 /* plus enum typed */
};

#define TOKENS (UINT64_C(1) << ARG_token | UINT64_C(1) << ARG_new_token)

static void pack(const struct change *c, struct buf *out)
{
	const struct act *w = c->ctx;
	struct request rq;
	size_t at;

	/* The owner must run it if it is not a call, if its role must be checked, or if its answer has a brief, which
	 * seldom fits into a slot. */
	if (c->fn != act_run || w->call.rq->role || w->call.rq->view & VIEW_BRIEF) {
		out->full = true;
		return;
	}
	rq = *w->call.rq;
	pack_str(out, TAG_PROOF, w->call.proof);
	pack_str(out, TAG_FRESH, w->call.fresh);
	at = out->n;
	shape_pack(&policy_shape, SHAPE_ALL, w->call.policy, out);
	pack_wrap(out, TAG_POLICY, at);
	for (int k = TYPED_WRITE; k < TYPED_END; k++)
		if (w->pass[k].n)
			pack_str(out, (uint8_t)(TAG_PASS + k), w->pass[k]);
	rq.has &= ~TOKENS;
	request_pack(&rq, out);
}

static int unpack_own(struct str bytes, struct act *w, struct policy *p, struct arena *a)
{
	struct unpack u = { bytes };
	struct str value;
	bool has_policy = false;
	uint8_t tag;
	int r;

	while ((r = unpack_next(&u, &tag, &value)) > 0) {
		if (tag == TAG_PROOF)
			w->call.proof = value;
		else if (tag == TAG_FRESH)
			w->call.fresh = value;
		else if (tag == TAG_POLICY) {
			has_policy = true;
			if (shape_unpack(&policy_shape, SHAPE_ALL, value, p, a))
				return -EBADMSG;
		} else if (tag > TAG_PASS && tag < TAG_PASS + TYPED_END)
			w->pass[tag - TAG_PASS] = value;
	}
	return r < 0 || !has_policy || !policy_sane(p) ? -EBADMSG : 0;
}

static bool is_hash(struct str s)
{
	return !s.n || s.n == HASH_LEN;
}

/* Hashes are stored in locks, so each must be empty or have the right length. */
static bool hashes(const struct act *w)
{
	for (int k = TYPED_WRITE; k < TYPED_END; k++)
		if (!is_hash(w->pass[k]))
			return false;
	return is_hash(w->call.proof) && is_hash(w->call.fresh);
}

/* Checks the call again: other processes may have changed the bytes. */
static int adopt(struct str bytes, struct change *out, struct arena *a)
{
	struct act *w = arena_new(a, struct act);
	struct policy *p = arena_new(a, struct policy);
	struct request *rq = arena_new(a, struct request);

	if (unpack_own(bytes, w, p, a) || !hashes(w) || request_unpack(bytes, rq, a))
		return -EBADMSG;
	rq->has &= ~TOKENS;
	rq->token = rq->new_token = STR("");
	if (w->call.fresh.n)
		GIVE(rq, new_token, STR("its owner's"));
	if (op_flags(rq->op) & OP_READS || request_fault(rq, p, a))
		return -EBADMSG;
	w->call.policy = p;
	w->call.rq = rq;
	w->ans = arena_new(a, struct answer);
	w->call.arena = a;
	*out = (struct change){ .fn = act_run, .ctx = w };
	return 0;
}

static void report(const struct change *c, struct buf *out)
{
	const struct act *w = c->ctx;

	answer_pack(w->ans, out);
}

static int accept(struct change *c, struct str bytes)
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

const struct relay queue_relay = { pack, adopt, report, wants, accept };

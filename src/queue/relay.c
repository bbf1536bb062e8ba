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
	TAG_POLICY = 202,
	TAG_PASS = 203 /* plus enum typed */
};

#define NUMBERS 8 /* fields of a packed policy */

#define TOKENS (UINT64_C(1) << ARG_token | UINT64_C(1) << ARG_new_token)

static int64_t flags_of(const struct policy *p)
{
	return p->keep_abandoned | p->ignore_depends << 1 | p->claim_creates << 2 |
	       p->untyped << 3 | p->locks_only << 4 | p->offer_parents << 5;
}

/* The order never changes: other versions of pawl read it. */
static void pack_policy(const struct policy *p, struct buf *out)
{
	const int64_t numbers[NUMBERS] = { p->lease,      p->lease_min,     p->lease_max,
					   p->lock_ttl,   p->max_abandoned, flags_of(p),
					   p->warn_after, p->handback };

	for (size_t i = 0; i < NUMBERS; i++)
		pack_int(out, TAG_POLICY, numbers[i]);
}

static void pack(const struct change *c, struct buf *out)
{
	const struct job *j = c->ctx;
	struct request rq;

	if (c->fn != job_run || j->rq->role) {
		out->full =
			true; /* not a call, or one whose role must be checked: its owner must run it */
		return;
	}
	rq = *j->rq;
	pack_str(out, TAG_PROOF, j->proof);
	pack_str(out, TAG_FRESH, j->fresh);
	pack_policy(j->policy, out);
	for (int k = TYPED_WRITE; k < TYPED_END; k++)
		if (j->pass[k].n)
			pack_str(out, (uint8_t)(TAG_PASS + k), j->pass[k]);
	rq.has &= ~TOKENS;
	request_pack(&rq, out);
}

static int unpack_own(struct str bytes, struct job *j, int64_t *numbers)
{
	struct unpack u = { bytes };
	struct str value;
	size_t have = 0;
	uint8_t tag;
	int r;

	while ((r = unpack_next(&u, &tag, &value)) > 0) {
		if (tag == TAG_PROOF)
			j->proof = value;
		else if (tag == TAG_FRESH)
			j->fresh = value;
		else if (tag == TAG_POLICY && have < NUMBERS && unpack_int(value, &numbers[have++]))
			return -EBADMSG;
		else if (tag > TAG_PASS && tag < TAG_PASS + TYPED_END)
			j->pass[tag - TAG_PASS] = value;
	}
	return r < 0 || have < NUMBERS ? -EBADMSG : 0;
}

/* Larger numbers could overflow when the current time is added. */
static bool in_range(const int64_t *numbers)
{
	for (size_t i = 0; i < NUMBERS; i++)
		if (numbers[i] < 0 || numbers[i] > INT64_C(1) << 60)
			return false;
	return true;
}

static bool is_hash(struct str s)
{
	return !s.n || s.n == HASH_LEN;
}

/* Hashes are stored in locks, so each must be empty or have the right length. */
static bool hashes(const struct job *j)
{
	for (int k = TYPED_WRITE; k < TYPED_END; k++)
		if (!is_hash(j->pass[k]))
			return false;
	return is_hash(j->proof) && is_hash(j->fresh);
}

/* Checks the call again: other processes may have changed the bytes. */
static int adopt(struct str bytes, struct change *out, struct arena *a)
{
	struct job *j = arena_new(a, struct job);
	struct policy *p = arena_new(a, struct policy);
	struct request *rq = arena_new(a, struct request);
	int64_t n[NUMBERS] = { 0 };

	if (unpack_own(bytes, j, n) || !in_range(n) || !hashes(j) || request_unpack(bytes, rq, a))
		return -EBADMSG;
	rq->has &= ~TOKENS;
	rq->token = rq->new_token = STR("");
	if (j->fresh.n)
		GIVE(rq, new_token, STR("its owner's"));
	*p = (struct policy){ n[0],          n[1],          n[2],          n[3],
			      n[4],          n[5] & 1,      n[5] >> 1 & 1, n[5] >> 2 & 1,
			      n[5] >> 3 & 1, n[5] >> 4 & 1, n[5] >> 5 & 1, n[6],
			      n[7] };
	if (op_flags(rq->op) & OP_READS || request_fault(rq, p, a))
		return -EBADMSG;
	j->policy = p;
	j->rq = rq;
	j->ans = arena_new(a, struct answer);
	j->arena = a;
	*out = (struct change){ .fn = job_run, .ctx = j };
	return 0;
}

static void report(const struct change *c, struct buf *out)
{
	const struct job *j = c->ctx;

	answer_pack(j->ans, out);
}

static int accept(struct change *c, struct str bytes)
{
	struct job *j = c->ctx;
	struct answer *ans = j->ans;

	j->began_ns = os_monotonic_ns();
	j->handed = true;
	if (answer_unpack(arena_str(j->arena, bytes), ans, j->arena) || answer_fault(ans, j->arena))
		return -EBADMSG;
	if (ans->lock && ans->lock->token.n)
		ans->lock->token = j->rq->new_token;
	if (ans->next_lock && ans->next_lock->token.n)
		ans->next_lock->token = j->rq->new_token;
	return 0;
}

static const struct wants *wants(const struct change *c, struct arena *a)
{
	return job_reads(c->ctx, a);
}

const struct relay queue_relay = { pack, adopt, report, wants, accept };

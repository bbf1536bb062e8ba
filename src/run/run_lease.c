/*
 * Renews the lease of a job. Its deadline is never later than the expiry in the store, so the
 * runner stops the program before another agent can claim the task.
 */

#include "base/os.h"
#include "base/secret.h"
#include "core/lease.h"
#include "run/run_private.h"

/* Begins at the time before the call, so that the lease expires here no later than in the
 * store. The remaining time can be less than the lease's length, because the call may have been
 * a repeat. */
void job_lease(struct job *j, int64_t sent, const struct answer *ans)
{
	int64_t left = ans->lock->expires_at - ans->now;

	j->ttl = ans->lock->ttl;
	j->deadline = sent + left;
	j->renew_at = sent + lease_renew_in(left < j->ttl ? left : j->ttl);
}

bool job_settled(const struct job *j, const struct task *t, struct arena *a)
{
	if (!t || t->fence != j->fence)
		return false;
	return t->status == BLOCKED || (t->last.op > OP_NONE && t->last.op < OP_END &&
					op_flags((enum op)t->last.op) & OP_ENDS &&
					secret_eq(t->last.token, token_hash(a, j->token)));
}

void job_renew(struct runner *r, struct job *j)
{
	struct request rq = job_request(j, OP_HEARTBEAT);
	struct arena scratch = { 0 };
	int64_t sent = os_boot_ms();
	struct answer ans;

	runner_call(r, &rq, &ans, &scratch);
	if (ans.code == SUCCESS && ans.lock)
		job_lease(j, sent, &ans);
	else if (job_settled(j, ans.task, &scratch))
		j->settled = true;
	else if (ans.code != API_ERROR || os_boot_ms() >= j->deadline)
		j->lost = true;
	else
		j->renew_at = os_boot_ms() + (j->ttl / 10 < RETRY_MS ? j->ttl / 10 : RETRY_MS);
	arena_free(&scratch);
}

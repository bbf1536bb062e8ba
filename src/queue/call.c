/* Calls: each change is a job that the store runs, in one commit with others. */
#include "base/os.h"
#include "base/secret.h"
#include "base/when.h"
#include "core/lease.h"
#include "core/role.h"
#include "queue/act.h"
#include "queue/remote.h"

static int dispatch(struct act *w)
{
	if (typed_is(w->rq))
		return do_typed(w);
	switch (w->rq->op) {
	case OP_EMERGENCY_ON:
	case OP_EMERGENCY_OFF:
		return do_emergency(w);
	case OP_PAUSE:
	case OP_RESUME:
		return do_pause(w);
	case OP_CREATE:
		return do_create(w);
	case OP_TAKE:
		return do_take(w);
	case OP_DEPEND:
	case OP_UNDEPEND:
		return do_depend(w);
	case OP_REMOVE:
		return do_remove(w);
	case OP_LOCK_CLEANUP:
		return do_cleanup(w);
	case OP_ARCHIVE:
		return do_archive(w);
	case OP_ID_CLAIM:
		return do_id(w);
	case OP_ID_INIT:
		return do_id_init(w);
	default:
		return do_change(w);
	}
}

/* Turns BAD into a refusal. */
static int refused(struct act *w, int r)
{
	if (r == BAD && w->ans->code == SUCCESS)
		return act_refuse(w, MISCONFIGURED,
				  STR("a record that this call needs cannot be used"),
				  STR("pawl doctor names it and says how to remove it"));
	return r == BAD ? REFUSED : r;
}

/* The edit. The store may run it again, so each run starts from scratch. A refusal can have changes, which are
 * committed: a claim moves a task that was abandoned too often to Needs Help. */
int job_run(struct edit *e, void *ctx)
{
	struct job *j = ctx;
	struct act w = {
		.policy = j->policy,
		.e = e,
		.rq = j->rq,
		.ans = j->ans,
		.arena = j->arena,
		.pass = j->pass,
		.judged = &j->judged,
		.call = { .rq = j->rq,
			  .policy = j->policy,
			  .now = e->now,
			  .proof = j->proof,
			  .fresh = j->fresh,
			  .arena = j->arena },
	};
	int r;

	j->began_ns = os_monotonic_ns();
	*j->ans = (struct answer){ .now = e->now, .put_off = arena_over(j->arena) };
	if (j->ans->put_off)
		return act_refuse(&w, USAGE, STR("the calls of this commit need too much memory"),
				  STR("make fewer calls at once"));
	r = repeat_find(&w);
	if (!r)
		r = guard_check(&w);
	if (r)
		return refused(&w, r);
	r = refused(&w, dispatch(&w));
	if (r < 0 || (r > 0 && !w.keep))
		return r;
	if (!r)
		r = identity_find(&w);
	if (r < 0)
		return r;
	if (!r)
		repeat_keep(&w);
	r = act_flush(&w);
	if (!r) {
		identity_keep(&w);
		guard_tidy(&w);
	}
	return r || w.writes ? r : REFUSED;
}

static struct str hashed(struct arena *a, struct str token)
{
	return token.n ? token_hash(a, token) : token;
}

static struct job job_make(const struct policy *p, const struct request *rq, struct answer *ans,
			   struct arena *a)
{
	return (struct job){ .policy = p,
			     .rq = rq,
			     .proof = hashed(a, rq->token),
			     .fresh = hashed(a, rq->new_token),
			     .ans = ans,
			     .arena = a };
}

enum result role_refuse(enum role have, enum role need, struct answer *ans, struct arena *a)
{
	if (role_allows(have, need))
		return SUCCESS;
	ans->applied = 'n';
	ans->fault = STR("forbidden");
	return answer_fail(
		ans, MISCONFIGURED, role_refusal(have, need, a),
		arena_printf(a, "ask for a token that was made with --role %s", role_name(need)));
}

static bool valid(struct queue *q, const struct request *rq, struct answer *ans, struct arena *a)
{
	const char *fault = request_fault(rq, &q->config.policy, a);

	*ans = (struct answer){ 0 };
	if (op_flags(rq->op) & OP_READS)
		ans->now = queue_now(q); /* job_run() sets the time of a change */
	if (fault)
		answer_fail(ans, USAGE, str_c(fault), STR(""));
	return !fault && role_refuse(rq->role, role_for(rq), ans, a) == SUCCESS;
}

/* The task in the answer, if an earlier agent has worked on it; else NULL. */
static const struct task *came_back(const struct answer *ans)
{
	const struct grant *lock = ans->next ? ans->next_lock : ans->lock;
	const struct task *t = ans->next ? ans->next : ans->task;

	return lock && lock->token.n && t->attempts > 1 ? t : NULL;
}

static void write_all(struct queue *q, struct change *changes, struct job *jobs, size_t n)
{
	int r;

	if (!n)
		return;
	r = q->store->ops->modify(q->store, changes, n);
	for (size_t i = 0; i < n; i++) {
		struct answer *ans = jobs[i].ans;

		jobs[i].ended_ns = os_monotonic_ns();
		jobs[i].failed = r < 0 || changes[i].rc < 0;

		if (jobs[i].failed) {
			*ans = (struct answer){ .now = ans->now };
			fault_answer(&q->err, ans, jobs[i].arena);
		} else if (came_back(ans) && !arena_over(jobs[i].arena)) {
			read_past(q->store, came_back(ans), ans, jobs[i].arena);
		}
	}
}

/* --- waiting for locks of the whole queue ------------------------------------------------------------ */

static int64_t monotonic_ms(void)
{
	return os_monotonic_ns() / 1000000;
}

/* Keeps the jobs that a lock of the whole queue refused, and moves them to the front. */
static size_t keep_barred(struct change *changes, struct job *jobs, size_t n)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++) {
		if (!jobs[i].ans->barred)
			continue;
		jobs[kept] = jobs[i];
		changes[kept] = (struct change){ .fn = job_run,
						 .ctx = &jobs[kept],
						 .wants = changes[i].wants };
		kept++;
	}
	return kept;
}

/* Does the caller hold the lock that refused the job? Then sets j->pass, once. */
static bool has_pass(struct queue *q, struct job *j)
{
	int64_t kind = j->ans->barred;
	struct str token;

	const struct str *own = j->rq ? j->rq->pass : NULL; /* a bulk change has no request */

	if ((!q->config.pass && !own) || j->pass[kind].n)
		return false;
	token = own ? own[kind] : q->config.pass(q->config.pass_ctx, (enum typed)kind, j->arena);
	j->pass[kind] = hashed(j->arena, token);
	return token.n > 0;
}

static bool any_pass(struct queue *q, struct job *jobs, size_t n)
{
	bool any = false;

	for (size_t i = 0; i < n; i++)
		any |= has_pass(q, &jobs[i]);
	return any;
}

/* The time until the lock expires; 0: it is gone. A read does not take the gate. This matters because every commit
 * of the lock's holder wakes us. */
static int64_t held_for(struct queue *q, const struct job *j)
{
	struct arena a = { 0 };
	struct task t;
	int64_t now = queue_now(q), ms = 0;

	if (guard_kind(q->store, (enum typed)j->ans->barred, &t, &a) == 0 &&
	    lease_live(&t.lock, now))
		ms = t.lock.expires_at - now;
	arena_free(&a);
	return ms;
}

/* Waits until the lock is gone, by reads only. false: the timeout is over. */
static bool wait_until_free(struct queue *q, const struct job *j, int64_t deadline)
{
	int64_t left, held;

	while ((left = deadline - monotonic_ms()) > 0 && (held = held_for(q, j)) > 0)
		queue_wait(q, held < left ? held : left);
	return left > 0;
}

static void tell_waited(struct job *jobs, size_t n, int64_t ms)
{
	for (size_t i = 0; i < n; i++) {
		struct answer *ans = jobs[i].ans;

		ans->message = arena_printf(jobs[i].arena, "%.*s; waited %.*s", STRF(ans->message),
					    STRF(duration_text(jobs[i].arena, ms)));
	}
}

bool guard_wait(struct queue *q, struct job *j, int64_t *deadline)
{
	int64_t timeout = q->store->env.opt.timeout_ms;

	if (has_pass(q, j))
		return true;
	if (q->config.impatient)
		return false;
	if (!*deadline) {
		*deadline = monotonic_ms() + timeout;
		queue_wake_fd(q);
	}
	if (wait_until_free(q, j, *deadline))
		return true;
	tell_waited(j, 1, timeout);
	return false;
}

/* A waiting call holds nothing: the refusal has ended its transaction. It opens the wake descriptor before it looks
 * at the lock, so it cannot miss a change in between. */
static void write_in_turn(struct queue *q, struct change *changes, struct job *jobs, size_t n)
{
	int64_t timeout = q->store->env.opt.timeout_ms, deadline = 0, asked = os_monotonic_ns();

	for (;;) {
		write_all(q, changes, jobs, n);
		health_count(q->store, jobs, n, asked);
		n = keep_barred(changes, jobs, n);
		if (!n)
			return;
		if (any_pass(q, jobs, n))
			continue;
		if (q->config.impatient)
			return;
		if (!deadline) {
			deadline = monotonic_ms() + timeout;
			queue_wake_fd(q);
		}
		if (!wait_until_free(q, &jobs[0], deadline)) {
			tell_waited(jobs, n, timeout);
			health_count_failed(q->store, jobs, n, asked);
			return;
		}
	}
}

void queue_call_many(struct queue *q, const struct request *rqs, struct answer *answers, size_t n,
		     struct arena *a)
{
	struct job *jobs = arena_array(a, struct job, n);
	struct change *changes = arena_array(a, struct change, n);
	size_t writes = 0;

	if (q->remote) {
		q->far->call(q->remote, rqs, answers, n, a);
		return;
	}
	for (size_t i = 0; i < n; i++) {
		if (!valid(q, &rqs[i], &answers[i], a))
			continue;
		if (op_flags(rqs[i].op) & OP_READS) {
			queue_read(q->store, &q->config.policy, &rqs[i], &answers[i], a);
			continue;
		}
		jobs[writes] = job_make(&q->config.policy, &rqs[i], &answers[i], a);
		changes[writes] = (struct change){ .fn = job_run,
						   .ctx = &jobs[writes],
						   .wants = job_wants(q, &jobs[writes]) };
		writes++;
	}
	write_in_turn(q, changes, jobs, writes);
}

/* A job of queue_call_all(): its refusal cancels all jobs. */
struct strict_job {
	struct job job;
	bool *refused;
	struct request own;          /* the request, with a parent that has its id only now */
	const struct answer *parent; /* creates the parent; NULL: the request has it already */
};

static int strict_run(struct edit *e, void *ctx)
{
	struct strict_job *s = ctx;
	int r;

	if (s->parent) {
		GIVE(&s->own, parent, s->parent->task->id);
		s->job.rq = &s->own;
	}
	r = job_run(e, &s->job);

	if (r <= 0 || s->job.ans->code == SUCCESS)
		return r;
	*s->refused = true;
	return STORE_UNSUPPORTED;
}

static size_t first_refused(const struct answer *answers, size_t n)
{
	size_t i = 0;

	while (i < n && answers[i].code == SUCCESS)
		i++;
	return i;
}

/* All jobs meet the same locks, so they share the pass. Otherwise each job would cost a separate attempt. */
static bool wait_together(struct queue *q, struct strict_job *jobs, size_t n, size_t bad,
			  int64_t *deadline)
{
	bool again = guard_wait(q, &jobs[bad].job, deadline);

	for (size_t i = 0; again && i < n; i++)
		if (i != bad)
			memcpy(jobs[i].job.pass, jobs[bad].job.pass, sizeof(jobs[i].job.pass));
	return again;
}

size_t queue_call_all(struct queue *q, const struct request *rqs, const size_t *under,
		      struct answer *answers, size_t n, struct arena *a)
{
	struct strict_job *jobs = arena_array(a, struct strict_job, n);
	struct change *changes = arena_array(a, struct change, n);
	int64_t deadline = 0, asked = os_monotonic_ns();
	bool refused;
	size_t bad = 0;
	int r = 0;

	if (q->remote)
		return q->far->call_all(q->remote, rqs, under, answers, n, a);
	for (size_t i = 0; i < n; i++) {
		if (!valid(q, &rqs[i], &answers[i], a))
			return i;
		jobs[i] = (struct strict_job){
			.job = job_make(&q->config.policy, &rqs[i], &answers[i], a),
			.refused = &refused,
			.own = rqs[i],
			.parent = under && under[i] ? &answers[under[i] - 1] : NULL,
		};
		changes[i] = (struct change){ .fn = strict_run,
					      .ctx = &jobs[i],
					      .wants = job_wants(q, &jobs[i].job) };
	}
	do {
		refused = false;
		r = q->store->ops->modify(q->store, changes, n);
		bad = refused ? first_refused(answers, n) : 0;
	} while (refused && answers[bad].barred && wait_together(q, jobs, n, bad, &deadline));
	jobs[bad].job.began_ns = jobs[0].job.began_ns;
	health_count_bulk(q, &jobs[bad].job, HEALTH_BATCH, asked, r < 0 && !refused);
	if (r >= 0)
		return n;
	if (refused)
		return bad;
	answers[0] = (struct answer){ 0 };
	fault_answer(&q->err, &answers[0], a);
	return 0;
}

void queue_call(struct queue *q, const struct request *rq, struct answer *ans, struct arena *a)
{
	queue_call_many(q, rq, ans, 1, a);
}

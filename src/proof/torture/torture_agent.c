/* One agent's process. It puts each change on the board before it sends it, so that its successor can repeat the call if the
 * process is killed, and it learns only from answers. */
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/os.h"
#include "format/request_form.h"
#include "proof/history/history.h"
#include "proof/torture/torture_private.h"

#define REST_MS 50 /* longest pause after a failure */

/* --- the skewed clock ---------------------------------------------------------------------------- */

static const struct mind *whose_clock;

/* The driver changes the skew while the process runs. */
static int64_t skewed_wall(void)
{
	return os_wall_ms() + whose_clock->skew;
}

/* --- learning from answers ----------------------------------------------------------------------- */

static void update_until(struct mind *m)
{
	int64_t until = 0;

	for (int i = 0; i < HOLDS; i++)
		if (!m->holds[i].over && m->holds[i].until > until)
			until = m->holds[i].until;
	m->until = until;
}

static void learn_grant(struct agent *ag, const struct task *t, const struct grant *g, bool fresh)
{
	struct mind *m = ag->mind;
	int task = board_task(ag->board, t->id);
	struct hold *h = &m->holds[m->n_holds % HOLDS];

	if (task < 0 || g->token.n != TOKEN_LEN)
		return;
	board_granted(ag->board, task, g->fence, g->token);
	*h = (struct hold){ .task = task, .fence = g->fence, .until = os_boot_ms() + g->ttl };
	memcpy(h->token, g->token.p, TOKEN_LEN);
	m->n_holds++;
	m->counts.claims += fresh;
}

static void learn_over(struct mind *m, struct str token)
{
	for (int i = 0; i < HOLDS; i++)
		if (str_is(token, m->holds[i].token))
			m->holds[i].over = true;
}

static void learn_status(struct agent *ag, const struct task *t)
{
	int task = t ? board_task(ag->board, t->id) : -1;

	if (task < 0)
		return;
	ag->board->spots[task].status = (int)t->status;
	board_saw(ag->board, t->id);
}

static void learn_gone(struct agent *ag, struct str id)
{
	int task = board_task(ag->board, id);

	if (task >= 0)
		ag->board->spots[task].status = 0;
}

/* Was the call refused because an agent closed the queue, rather than because the store failed? */
static bool kept_out(const struct answer *ans)
{
	return ans->code == API_ERROR && ans->applied == 'n' && !ans->fault.n;
}

/* Learns from a call about a lock of the whole queue. */
static void learn_guard(struct mind *m, const struct request *rq, const struct answer *ans)
{
	bool taken = rq->op == OP_LOCK_ACQUIRE && ans->code == SUCCESS;

	if (taken)
		snprintf(m->closed, sizeof(m->closed), "%.*s", STRF(rq->id));
	if (taken)
		snprintf(m->closed_token, sizeof(m->closed_token), "%.*s", STRF(rq->new_token));
	else if (rq->op == OP_LOCK_RELEASE || ans->code == LOST_LOCK)
		m->closed[0] = '\0';
}

static void torture_agent_learn(struct agent *ag, const struct request *rq,
				const struct answer *ans)
{
	bool done = ans->code == SUCCESS && !ans->repeated;

	ag->mind->kept_out = kept_out(ans);
	if (str_starts(rq->id, STR("@")))
		learn_guard(ag->mind, rq, ans);
	learn_status(ag, ans->task);
	learn_status(ag, ans->next);
	for (size_t i = 0; i < ans->n_tasks; i++)
		learn_status(ag, &ans->tasks[i]);
	if (ans->lock && ans->task)
		learn_grant(ag, ans->task, ans->lock, done);
	if (ans->next_lock && ans->next)
		learn_grant(ag, ans->next, ans->next_lock, done);
	if (ans->code == LOST_LOCK || (done && op_flags(rq->op) & OP_ENDS))
		learn_over(ag->mind, rq->token);
	if (ans->code == NOT_FOUND || (done && rq->op == OP_REMOVE))
		learn_gone(ag, rq->id);
	update_until(ag->mind);
}

/* --- calls ---------------------------------------------------------------------------------------- */

static int64_t torture_agent_micros(void)
{
	return os_monotonic_ns() / 1000;
}

static bool torture_agent_unknown(const struct answer *ans)
{
	return ans->code == API_ERROR && ans->applied == '?';
}

static void torture_agent_count(struct agent *ag, const struct answer *ans, int64_t us,
				bool stopped)
{
	struct counts *c = &ag->mind->counts;

	ag->board->calls++;
	c->calls++;
	c->accepted += ans->code == SUCCESS;
	c->codes[ans->code & (TORTURE_CODES - 1)]++;
	c->lost += torture_agent_unknown(ans);
	c->repeats += ans->repeated != 0;
	if (!stopped && us > c->longest_us)
		c->longest_us = us;
}

/* Records the call before it is sent, so that the successor of a killed process can repeat it. */
static void keep_call(struct mind *m, const struct request *rq)
{
	struct buf b = BUF_MAX(CALL_MAX);

	if (op_flags(rq->op) & OP_READS)
		return;
	m->pending = false;
	request_pack(rq, &b);
	m->call_size = b.full ? 0 : (uint32_t)b.n;
	memcpy(m->call, b.p, m->call_size);
	m->pending = m->call_size > 0;
	buf_free(&b);
}

static void torture_agent_rest(int64_t ms)
{
	struct timespec t = { 0, ms * 1000000 };

	nanosleep(&t, NULL);
}

/* Did the call certainly write something? */
static bool torture_agent_wrote(const struct request *rq, const struct answer *ans)
{
	return ans->code == SUCCESS && !ans->repeated &&
	       (rq->op == OP_DONE || (ans->lock && ans->lock->token.n));
}

/* A failing store gets a pause. After FAILS failures over outage_ms the run gives it up. */
static void note_failure(struct agent *ag, const struct request *rq, const struct answer *ans)
{
	struct board *b = ag->board;
	int failed;

	if (torture_agent_wrote(rq, ans))
		b->failed = 0;
	if (ans->code == SUCCESS || !ans->applied || kept_out(ans) || op_flags(rq->op) & OP_READS)
		return;
	snprintf(ag->mind->failure, sizeof(ag->mind->failure), "%.*s", STRF(ans->message));
	failed = ++b->failed;
	if (failed == 1)
		b->failing_since = os_boot_ms();
	if (failed >= FAILS && os_boot_ms() - b->failing_since >= b->outage_ms)
		b->stop = true;
	torture_agent_rest(failed < REST_MS ? failed : REST_MS);
}

/* Sends the request, records it, and learns from the answer. */
static void agent_send(struct agent *ag, const struct request *rq, struct answer *ans)
{
	struct mind *m = ag->mind;
	int stops = m->stops;
	int64_t start;
	uint64_t call;

	keep_call(m, rq);
	call = history_call(ag->history, ag->name, rq);
	start = torture_agent_micros();
	queue_call(ag->queue, rq, ans, &ag->arena);
	torture_agent_count(ag, ans, torture_agent_micros() - start, m->stops != stops);
	scratch_record(ag->history, call, ans);
	torture_agent_learn(ag, rq, ans);
	note_failure(ag, rq, ans);
	if (!(op_flags(rq->op) & OP_READS))
		m->pending = torture_agent_unknown(ans);
	if (history_error(ag->history)) {
		snprintf(m->trouble, sizeof(m->trouble), "cannot write the history: %s",
			 strerror(-history_error(ag->history)));
		ag->board->stop = true;
	}
}

void agent_insist(struct agent *ag, const struct request *rq, struct answer *ans)
{
	do
		agent_send(ag, rq, ans);
	while (ans->code == API_ERROR && !ag->board->stop);
}

struct request agent_request(struct agent *ag, enum op op, int task)
{
	struct request rq = { .op = op };

	GIVE(&rq, agent, ag->name);
	if (task >= 0)
		GIVE(&rq, id, board_id(ag->board, &ag->arena, task));
	return rq;
}

bool agent_recall(struct agent *ag, struct request *rq)
{
	struct str call = arena_str(&ag->arena, str_n(ag->mind->call, ag->mind->call_size));

	return call.n && request_unpack(call, rq, &ag->arena) == 0;
}

struct hold *agent_hold(struct agent *ag)
{
	struct mind *m = ag->mind;

	for (unsigned i = 1; i <= HOLDS && i <= m->n_holds; i++) {
		struct hold *h = &m->holds[(m->n_holds - i) % HOLDS];

		if (!h->over)
			return h;
	}
	return NULL;
}

/* --- the mix -------------------------------------------------------------------------------------- */

/* Usually repeats the call that got no answer; sometimes repeats an answered call. */
static bool torture_agent_again(struct agent *ag, struct request *rq)
{
	bool wanted = ag->mind->pending ? agent_roll(ag, 8) > 0 : agent_roll(ag, 25) == 0;

	ag->mind->pending = false;
	return wanted && agent_recall(ag, rq);
}

/* Pauses at random, as real agents work between calls. */
static void torture_agent_think(struct agent *ag)
{
	struct timespec t = { 0, 0 };

	if (agent_roll(ag, 3))
		return;
	t.tv_nsec = agent_roll(ag, agent_roll(ag, 20) ? 3000000 : 400000000);
	nanosleep(&t, NULL);
}

static bool goes_on(const struct agent *ag, pid_t driver)
{
	const struct torture_plan *p = ag->plan;

	return !ag->board->stop && getppid() == driver &&
	       (!p->calls || ag->board->calls < p->calls);
}

static void torture_agent_mix(struct agent *ag)
{
	pid_t driver = getppid();

	while (goes_on(ag, driver)) {
		struct request rq;
		struct answer ans;

		if (!torture_agent_again(ag, &rq))
			mix_choose(ag, &rq);
		agent_send(ag, &rq, &ans);
		arena_free(&ag->arena);
		torture_agent_think(ag);
	}
}

/* --- a life --------------------------------------------------------------------------------------- */

/* The store's URI with injected faults: some answers get lost, after the change was made or not.
 * The agent cannot tell which. */
static struct str torture_agent_faulty(struct agent *ag, int life, struct arena *a)
{
	const struct torture_plan *p = ag->plan;
	long long n = p->lost, seed = (long long)(p->seed % 1000000) * 1000 + ag->me + life * 7;
	struct str head = p->uri, tail = STR("");
	struct uri u;

	if (!p->lost)
		return p->uri;
	if (uri_parse(p->uri, &u) == 0 && u.params.n) {
		head.n = (size_t)(u.params.p - 1 - p->uri.p);
		tail = arena_printf(a, "&%s",
				    arena_cstr(a, str_n(u.params.p, p->uri.n - head.n - 1)));
	}
	return arena_printf(
		a, "fault+%.*s?fault=modify:~%lld:lost:%lld&fault=modify:~%lld:unknown:%lld%.*s",
		STRF(head), n, seed, 3 * n, seed + 1, STRF(tail));
}

static bool open_all(struct agent *ag, struct str queue, int life, const char *part,
		     struct arena *a)
{
	struct queue_config config = scratch_config(ag->plan, queue);
	struct answer ans = { 0 };
	int r;

	config.uri = torture_agent_faulty(ag, life, a);
	config.opt.who = arena_printf(a, "torture agent %.*s, pid %ld", STRF(ag->name),
				      (long)getpid());
	config.opt.wall = skewed_wall;
	config.opt.boot = os_boot_ms;
	whose_clock = ag->mind;
	r = history_open(&ag->history, part, NULL);
	if (r) {
		snprintf(ag->mind->trouble, sizeof(ag->mind->trouble), "%s: %s", part,
			 strerror(-r));
		return false;
	}
	if (queue_open(&ag->queue, &config, STORE_WRITE, &ans, a) == SUCCESS)
		return true;
	snprintf(ag->mind->trouble, sizeof(ag->mind->trouble), "%.*s", STRF(ans.message));
	history_close(ag->history);
	return false;
}

int agent_live(const struct torture_plan *plan, struct board *board, struct str queue, int me,
	       int life, const char *part)
{
	struct arena a = { 0 };
	struct agent ag = { .plan = plan,
			    .board = board,
			    .mind = &board->minds[me],
			    .me = me,
			    .name = arena_printf(&a, "a%d", me) };

	if (!open_all(&ag, queue, life, part, &a))
		return 1;
	if (plan->mode == TORTURE_DRAIN)
		race_drain(&ag);
	else if (plan->mode == TORTURE_CLAIMS)
		race_claims(&ag);
	else
		torture_agent_mix(&ag);
	queue_close(ag.queue);
	history_close(ag.history);
	arena_free(&a);
	return ag.mind->trouble[0] != '\0';
}

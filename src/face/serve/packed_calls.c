/*
 * Packed requests in frames (queue/frame.h); the answers come back in the same form and order. The
 * requests of all jobs in a worker's batch are committed together, with the changes of commands
 * (serve_call.c). The server never takes token hashes or a policy from a caller: processes of one machine send
 * them to each other in another encoding (queue/queue_call.c), which the server does not read.
 *
 * A job may have many parts. They are made in order and in pieces, so that one caller can neither keep
 * the worker from the others nor fill the memory with answers:
 *
 *   packed_open()   reads and checks all parts, before the first one is made
 *   packed_run()    commits the next changes, at most SLICE of each job, until their answers take COMMIT_ROOM
 *   packed_go_on()  makes the next reads, until the worker's batch has lasted long enough
 *
 * A job with parts left comes back in the worker's next batch.
 */
#include <stdlib.h>

#include "base/os.h"
#include "face/serve/serve.h"

#define SLICE 256               /* changes of a job in one commit */
#define COMMIT_ROOM (48u << 20) /* memory of the answers of a commit */
#define COMMITS_LARGE \
	5 /* at once: a further one has less room, and the rest of its changes is made later */
#define COMMIT_LEAST (1u << 20)
#define CHANGE_ROOM (2u << 10) /* memory of a change itself, beside that of its answer */
#define BRIEF_ROOM (8u << 20)  /* of an answer: reserved for the brief answers of changes */

/* The parts of a job. Their texts are in its body. */
struct batch {
	struct arena arena;
	struct request *rqs;
	size_t *under;     /* see queue_call_all() */
	struct str *calls; /* ids of changes */
	enum arrival *arrivals;
	size_t n;
	size_t next;  /* the parts before it have their answers in the job */
	size_t taken; /* parts in the commit under way */
	bool resumed; /* some parts were made in an earlier batch of the worker */
	bool full;    /* a read's answer did not fit: there is no room for others */
};

static bool is_packed(const struct job *j)
{
	return j->kind == JOB_PACKED && !j->status;
}

static bool packed_reads(const struct request *rq)
{
	return op_flags(rq->op) & OP_READS;
}

/* Sets the request's caller. The token decides who the caller is; the request cannot. */
static bool packed_sign(struct worker *d, struct job *j, struct request *rq)
{
	struct str agent;
	const char *why;

	if (!caller_agent(d->serve, &j->caller, rq->agent, &agent, &why)) {
		struct arena a = { 0 };

		job_refuse(
			j, 403, MISCONFIGURED, str_c(why),
			arena_printf(
				&a,
				"the token %s is for the agent %s; use that name with --agent or PAWL_AGENT",
				j->caller.name, j->caller.agents),
			"forbidden");
		arena_free(&a);
		return false;
	}
	rq->role = serve_role(d->serve, &j->caller);
	GIVE(rq, agent, agent);
	if (op_flags(rq->op) & OP_TAKES && !HAS(rq, mode))
		GIVE(rq, mode, STR("server"));
	return true;
}

static struct request *make_room(struct batch *b)
{
	struct arena *a = &b->arena;

	b->rqs = arena_grow(a, b->rqs, b->n, sizeof(*b->rqs));
	b->under = arena_grow(a, b->under, b->n, sizeof(*b->under));
	b->calls = arena_grow(a, b->calls, b->n, sizeof(*b->calls));
	b->arrivals = arena_grow(a, b->arrivals, b->n, sizeof(*b->arrivals));
	b->arrivals[b->n] = ARRIVAL_FIRST;
	return &b->rqs[b->n];
}

/* Reads one request into the batch. false: it is refused. */
static bool add_request(struct worker *d, struct job *j, struct str one, struct batch *b)
{
	struct frame_extra *x = arena_new(&b->arena, struct frame_extra);
	struct request *rq = make_room(b);

	if (frame_request_open(one, rq, x, &b->arena) || b->n >= FRAMES_MAX ||
	    (size_t)x->under > b->n) {
		job_refuse(j, 400, USAGE, STR("the packed requests cannot be read"), STR(""), "");
		return false;
	}
	b->arrivals[b->n] = late_check(d->serve->late, rq, x->call, j->attempt);
	if (b->arrivals[b->n] == ARRIVAL_LATE) {
		job_refuse(j, 409, CONFLICT, STR("a later attempt of this call arrived first"),
			   STR(""), "");
		return false;
	}
	rq->pass = x->pass;
	b->calls[b->n] = x->call;
	b->under[b->n] = (size_t)x->under;
	if (!packed_sign(d, j, rq))
		return false;
	b->n++;
	return true;
}

void packed_close(struct job *j)
{
	if (j->batch)
		arena_free(&j->batch->arena);
	free(j->batch);
	j->batch = NULL;
}

/* Reads all parts of the job. false: it is refused. */
static bool packed_open(struct worker *d, struct job *j)
{
	struct str rest = buf_str(&j->body), one;

	if (j->batch)
		return true;
	j->batch = mem_alloc(sizeof(*j->batch));
	*j->batch = (struct batch){ 0 };
	while (rest.n && !j->status) {
		if (!frame_cut(&rest, &one))
			job_refuse(j, 400, USAGE, STR("the packed requests cannot be read"),
				   STR(""), "");
		else
			(void)add_request(d, j, one, j->batch);
	}
	if (!j->status && !j->batch->n)
		job_refuse(j, 400, USAGE, STR("there is no packed request"), STR(""), "");
	return !j->status;
}

/* --- answers ------------------------------------------------------------------------------------ */

const struct command *packed_command(enum op op)
{
	if (op == OP_TAKE)
		return &cmd_next;
	for (size_t i = 0; commands[i]; i++)
		if (commands[i]->op == op && !command_local(commands[i]))
			return commands[i];
	return NULL;
}

/* Does the job change nothing? */
static bool only_reads(const struct job *j)
{
	for (size_t i = 0; i < j->batch->n; i++)
		if (!packed_reads(&j->batch->rqs[i]))
			return false;
	return true;
}

static void add_brief(struct job *j, const struct answer *ans, bool read)
{
	struct answer refusal = { .now = ans->now };
	struct arena a = { 0 };

	if (read)
		answer_too_long(&refusal);
	else
		refusal = answer_brief(ans, &a);
	frame_answer(&j->answer, &refusal);
	arena_free(&a);
}

/* Adds the answer of the next part. */
static void add_answer(struct job *j, const struct answer *full)
{
	struct answer shown = *full, *ans = &shown;
	struct arena own = { 0 };
	struct batch *b = j->batch;
	const struct request *rq = &b->rqs[b->next++];
	const struct command *c = packed_command(rq->op);
	size_t before = j->answer.n, room = answers_room(j);

	redact_answer(&j->worker->serve->session->client, j->caller.role, ans, &own);
	j->answer.max = room < ANSWER_MAX ? room : ANSWER_MAX - BRIEF_ROOM;
	frame_answer(&j->answer, ans);
	if (j->answer.full) {
		if (room < ANSWER_MAX && only_reads(j)) {
			answers_refuse(j);
			arena_free(&own);
			return;
		}
		j->answer.n = before;
		j->answer.full = false;
		j->answer.max = ANSWER_MAX;
		b->full |= packed_reads(rq);
		add_brief(j, ans, packed_reads(rq));
	}
	answers_made(j);
	arena_free(&own);
	if (!j->made)
		j->made = mem_alloc((b->n + 1) * sizeof(*j->made));
	if (c)
		j->made[j->made_n++] = (struct made){ c, ans->code };
	if (b->next < b->n)
		return;
	j->status = 200;
	j->type = FRAME_TYPE;
}

/* Does the caller wait for a task? Then the next attempt reads the request again, because a later
 * attempt of the same request may arrive first. */
static bool packed_waits(struct job *j, const struct answer *ans, bool last)
{
	if (last || j->batch->n != 1 || ans->code != NO_TASKS || !j->parked ||
	    attempts_over(&j->wait))
		return false;
	attempts_after(&j->wait, ans->wait_ms);
	packed_close(j);
	return true;
}

/* --- changes ------------------------------------------------------------------------------------ */

/* The changes that one commit makes. */
struct commit {
	struct request *rqs;
	struct str *calls;
	enum arrival *arrivals;
	struct answer *answers;
	size_t n;
	struct arena arena;
};

static void commit_add(struct commit *c, const struct request *rq, struct str call,
		       enum arrival arrival)
{
	c->rqs = arena_grow(&c->arena, c->rqs, c->n, sizeof(*c->rqs));
	c->calls = arena_grow(&c->arena, c->calls, c->n, sizeof(*c->calls));
	c->arrivals = arena_grow(&c->arena, c->arrivals, c->n, sizeof(*c->arrivals));
	c->rqs[c->n] = *rq;
	c->calls[c->n] = call;
	c->arrivals[c->n++] = arrival;
}

static int64_t now_us(void)
{
	return os_monotonic_ns() / 1000;
}

/* Makes all calls or none. If one is refused, the answers of the others stay empty. */
static void call_all(struct queue *q, struct batch *b, struct answer *answers, struct arena *a)
{
	size_t bad = 0;

	for (size_t i = 0; i < b->n && bad == i; i++)
		bad += !packed_reads(&b->rqs[i]);
	if (bad == b->n)
		bad = queue_call_all(q, b->rqs, b->under, answers, b->n, a);
	else
		answer_fail(&answers[bad], USAGE, STR("a read cannot be part of a commit"),
			    STR(""));
	for (size_t i = 0; bad < b->n && i < b->n; i++)
		if (i != bad)
			answers[i] = (struct answer){ 0 };
}

/* The call got a lock when it first arrived, and somebody else ended that lock; or it ended a lock,
 * and the task was acquired again. A refusal would hide this from the caller. */
static void tell_lost(struct answer *ans)
{
	int64_t now = ans->now;

	*ans = (struct answer){ .now = now };
	answer_fail(ans, API_ERROR,
		    STR("the answer to this call was lost, and its lock has since ended"),
		    STR("to see what you hold: pawl status"));
	ans->applied = '?';
}

static void packed_note(struct worker *d, const struct request *rq, struct str call,
			enum arrival arrival, struct answer *ans)
{
	late_note(d->serve->late, rq, call, ans);
	/* the caller may have made the call only once */
	if (ans->repeated && arrival == ARRIVAL_AGAIN)
		ans->repeated = REPEATED_MAYBE;
	worker_failed(d, ans);
	if (ans->code != SUCCESS && arrival == ARRIVAL_AGAIN &&
	    late_settled(d->serve->late, rq, call))
		tell_lost(ans);
}

static void commit_make(struct worker *d, struct commit *c)
{
	struct client *client = &d->session.client;
	int64_t began = now_us();
	bool large;

	c->answers = arena_array(&c->arena, struct answer, c->n + 1);
	if (!c->n)
		return;
	large = d->serve->commits++ < COMMITS_LARGE;
	c->arena.limit = c->arena.held + c->n * CHANGE_ROOM + (large ? COMMIT_ROOM : COMMIT_LEAST);
	queue_patience(client->conn.queue, client_timeout(client, 0));
	queue_call_many(client->conn.queue, c->rqs, c->answers, c->n, &c->arena);
	counts_commit(d->serve, c->n, now_us() - began);
	for (size_t i = 0; i < c->n; i++)
		if (!c->answers[i].put_off)
			packed_note(d, &c->rqs[i], c->calls[i], c->arrivals[i], &c->answers[i]);
}

static bool is_made(const struct answer *answers, size_t n)
{
	while (n && !answers[n - 1].put_off)
		n--;
	return !n;
}

/* Runs a job whose calls are one commit of their own. */
static void run_alone(struct worker *d, struct job *j)
{
	struct client *client = &d->session.client;
	struct arena a = answers_arena(j, COMMIT_ROOM);
	struct batch *b = j->batch;
	struct answer *answers = arena_array(&a, struct answer, b->n + 1);
	int64_t began = now_us();

	queue_patience(client->conn.queue, client_timeout(client, OP_BATCH));
	call_all(client->conn.queue, b, answers, &a);
	counts_commit(d->serve, b->n, now_us() - began);
	if (a.crowded && !is_made(answers, b->n))
		answers_refuse(j);
	for (size_t i = 0; i < b->n && !j->status; i++) {
		packed_note(d, &b->rqs[i], b->calls[i], b->arrivals[i], &answers[i]);
		add_answer(j, &answers[i]);
	}
	arena_free(&a);
}

/* Refuses a change if a later attempt of it arrived while the job waited. */
static bool is_late(struct worker *d, struct job *j, size_t i)
{
	struct batch *b = j->batch;
	struct answer ans = { 0 };

	if (!b->resumed ||
	    late_check(d->serve->late, &b->rqs[i], b->calls[i], j->attempt) != ARRIVAL_LATE)
		return false;
	answer_fail(&ans, CONFLICT, STR("a later attempt of this call arrived first"), STR(""));
	add_answer(j, &ans);
	return true;
}

/* Adds the job's next changes to the commit. */
static void take_changes(struct worker *d, struct job *j, struct commit *c)
{
	struct batch *b = j->batch;

	b->taken = 0;
	while (b->next < b->n && !packed_reads(&b->rqs[b->next]) && is_late(d, j, b->next))
		;
	for (size_t i = b->next; i < b->n && !packed_reads(&b->rqs[i]) && b->taken < SLICE; i++) {
		commit_add(c, &b->rqs[i], b->calls[i], b->arrivals[i]);
		b->taken++;
	}
	j->tried = b->taken > 0;
}

static void give_answers(struct job *j, struct commit *c, size_t from, bool last)
{
	struct batch *b = j->batch;
	size_t n = b->taken;

	b->taken = 0;
	if (n && packed_waits(j, &c->answers[from], last))
		return;
	for (size_t i = 0; i < n && !c->answers[from + i].put_off; i++)
		add_answer(j, &c->answers[from + i]);
	b->resumed = true;
	j->put_off = !j->status;
}

static void add_command(struct worker *d, struct job *j, struct commit *c, bool last)
{
	const struct request *rq = NULL;

	if (call_joins(j->command) && !job_is_gone(j))
		rq = call_begin(d, j, last);
	if (rq)
		commit_add(c, rq, STR(""), ARRIVAL_FIRST);
}

/* Does the job take time before the commit? */
static bool takes_time(const struct job *j)
{
	return !j->status &&
	       (j->kind == JOB_COMMAND ? call_joins(j->command) : j->kind == JOB_PACKED && j->all);
}

static void take_job(struct worker *d, struct job *j, struct commit *c, bool last)
{
	j->tried = false;
	if (takes_time(j)) {
		if (d->ran && worker_share_is_over(d)) {
			j->tried = j->put_off = true;
			return;
		}
		d->ran = j->payer;
	}
	if (j->kind == JOB_COMMAND && !j->status)
		add_command(d, j, c, last);
	if (!is_packed(j) || !packed_open(d, j))
		return;
	if (j->all) {
		run_alone(d, j);
		j->tried = true;
	} else if (c->n < FRAMES_MAX) {
		take_changes(d, j, c);
	} else {
		j->tried = j->put_off = true;
	}
}

void packed_run(struct worker *d, struct job *list, bool last)
{
	struct commit c = { 0 };
	size_t jobs = 0, k = 0, *from;

	d->ran = NULL; /* the first job is made, however long the batch has lasted */
	for (struct job *j = list; j; j = j->next)
		jobs++;
	from = arena_array(&c.arena, size_t, jobs + 1);
	for (struct job *j = list; j; j = j->next, k++) {
		from[k] = c.n;
		take_job(d, j, &c, last);
	}
	commit_make(d, &c);
	k = 0;
	for (struct job *j = list; j; j = j->next, k++) {
		if (j->asked && c.answers[from[k]].put_off) {
			call_forget(j); /* it is made alone, in this batch */
			j->tried = false;
		} else if (j->asked)
			call_end(d, j, c.answers + from[k], last);
		else if (is_packed(j) && j->batch && j->batch->taken)
			give_answers(j, &c, from[k], last);
	}
	d->serve->commits -= c.n > 0;
	arena_free(&c.arena);
}

/* --- reads -------------------------------------------------------------------------------------- */

/* Makes one read. false: the caller waits. */
static bool read_one(struct worker *d, struct job *j, bool last)
{
	struct arena a = answers_arena(j, READ_ROOM);
	struct answer ans = { 0 };
	bool done;

	if (j->batch->full)
		answer_too_long(&ans);
	else
		queue_call(d->session.client.conn.queue, &j->batch->rqs[j->batch->next], &ans, &a);
	worker_failed(d, &ans);
	done = !packed_waits(j, &ans, last);
	arena_count(&a, a.held < ANSWER_MAX ? a.held : ANSWER_MAX); /* the answer is not longer */
	if (done && a.crowded && only_reads(j))
		answers_refuse(j);
	else if (done)
		add_answer(j, &ans);
	arena_free(&a);
	return done;
}

bool packed_go_on(struct worker *d, struct job *j, bool last)
{
	struct batch *b;

	if (!packed_open(d, j))
		return true;
	b = j->batch;
	if (!packed_reads(&b->rqs[b->next])) { /* a call that waits is retried alone */
		packed_run(d, j, last);
		return j->status != 0;
	}
	while (!j->status && packed_reads(&b->rqs[b->next])) {
		if (!read_one(d, j, last))
			return false;
		if (!j->status && worker_share_is_over(d))
			break;
	}
	b->resumed = true;
	j->put_off = !j->status;
	return j->status != 0;
}

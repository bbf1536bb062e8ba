/*
 * Packed requests in frames (queue/frame.h); the answers come back in the same form and order. The requests of all jobs
 * of a turn are committed together, with the changes of commands (call.c). The server never takes token hashes or a
 * policy from a caller. Processes of one machine send them to each other in another encoding (queue/relay.c), which the
 * server does not read.
 */
#include "face/serve/serve.h"

#include "base/os.h"

struct batch {
	struct request *rqs;
	size_t *under;     /* see queue_call_all() */
	struct str *calls; /* ids of changes */
	enum arrival *arrivals;
	struct answer *answers;
	size_t n;
};

static bool is_packed(const struct job *j)
{
	return j->kind == JOB_PACKED && !j->status;
}

/* Sets the caller of the request: the token decides, not the request itself. */
static bool sign(struct desk *d, struct job *j, struct request *rq)
{
	struct str agent;
	const char *why;

	if (!caller_agent(d->serve, &j->caller, rq->agent, &agent, &why)) {
		struct arena a = { 0 };

		job_refuse(
			j, 403, MISCONFIGURED, str_c(why),
			arena_printf(&a,
				     "the token %s is for the agent %s: --agent NAME or PAWL_AGENT",
				     j->caller.name, j->caller.agents),
			"forbidden");
		arena_free(&a);
		return false;
	}
	rq->role = d->serve->read_only ? ROLE_READER : j->caller.role;
	GIVE(rq, agent, agent);
	if (op_flags(rq->op) & OP_TAKES && !HAS(rq, mode))
		GIVE(rq, mode, STR("server"));
	return true;
}

static struct request *make_room(struct batch *b, struct arena *a)
{
	b->rqs = arena_grow(a, b->rqs, b->n, sizeof(*b->rqs));
	b->under = arena_grow(a, b->under, b->n, sizeof(*b->under));
	b->calls = arena_grow(a, b->calls, b->n, sizeof(*b->calls));
	b->arrivals = arena_grow(a, b->arrivals, b->n, sizeof(*b->arrivals));
	b->arrivals[b->n] = ARRIVAL_FIRST;
	return &b->rqs[b->n];
}

/* Reads one request into the batch. false: it is refused. */
static bool add_request(struct desk *d, struct job *j, struct str one, struct batch *b,
			size_t first, struct arena *a)
{
	struct frame_extra *x = arena_new(a, struct frame_extra);
	size_t room = b->n;
	struct request *rq = make_room(b, a);

	if (frame_request_open(one, rq, x, a) || b->n - first >= FRAMES_MAX ||
	    (size_t)x->under > b->n - first) {
		job_refuse(j, 400, USAGE, STR("the packed requests cannot be read"), STR(""), "");
		return false;
	}
	b->arrivals[room] = late_judge(d->serve->late, rq, x->call, j->attempt);
	if (b->arrivals[room] == ARRIVAL_LATE) {
		job_refuse(j, 409, CONFLICT, STR("this call was made again before it arrived"),
			   STR(""), "");
		return false;
	}
	rq->pass = x->pass;
	b->calls[room] = x->call;
	b->under[room] = (size_t)x->under;
	if (!sign(d, j, rq))
		return false;
	b->n++;
	return true;
}

static bool add_job(struct desk *d, struct job *j, struct batch *b, struct arena *a)
{
	struct str rest = buf_str(&j->body), one;
	size_t first = b->n;

	while (rest.n && !j->status) {
		if (!frame_cut(&rest, &one))
			job_refuse(j, 400, USAGE, STR("the packed requests cannot be read"),
				   STR(""), "");
		else
			(void)add_request(d, j, one, b, first, a);
	}
	if (!j->status && b->n == first)
		job_refuse(j, 400, USAGE, STR("there is no packed request"), STR(""), "");
	if (j->status)
		b->n = first;
	return !j->status;
}

static void add_command(struct desk *d, struct job *j, struct batch *b, bool last, struct arena *a)
{
	const struct request *rq = job_is_gone(j) ? NULL : call_begin(d, j, last);

	if (!rq)
		return;
	*make_room(b, a) = *rq;
	b->under[b->n] = 0;
	b->calls[b->n] = STR("");
	b->n++;
}

const struct command *packed_command(enum op op)
{
	if (op == OP_TAKE)
		return &cmd_next;
	for (size_t i = 0; commands[i]; i++)
		if (commands[i]->op == op && !command_local(commands[i]))
			return commands[i];
	return NULL;
}

static void set_answers(struct job *j, const struct batch *b, size_t from, size_t n,
			struct arena *a)
{
	j->status = 200;
	j->type = FRAME_TYPE;
	j->made = mem_alloc((n + 1) * sizeof(*j->made));
	for (size_t i = from; i < from + n; i++) {
		const struct command *c = packed_command(b->rqs[i].op);

		redact_answer(&j->desk->serve->session->client, j->caller.role, &b->answers[i], a);
		frame_answer(&j->answer, &b->answers[i]);
		if (c)
			j->made[j->made_n++] = (struct made){ c, b->answers[i].code };
	}
}

static bool waits(struct job *j, const struct answer *answers, size_t n, bool last)
{
	int64_t now = os_boot_ms();

	if (last || n != 1 || answers[0].code != NO_TASKS || !j->parked || now >= j->wait_until)
		return false;
	j->due = answers[0].wait_ms > 0 ? now + answers[0].wait_ms : INT64_MAX;
	return true;
}

static int64_t now_us(void)
{
	return os_monotonic_ns() / 1000;
}

static void count(struct desk *d, const struct batch *b, int64_t took_us)
{
	size_t changes = 0;

	for (size_t i = 0; i < b->n; i++)
		changes += !(op_flags(b->rqs[i].op) & OP_READS);
	if (changes)
		counts_commit(d->serve, changes, took_us);
}

/* The answers behind a refused call stay empty: none of the calls was made. */
static void call_all(struct queue *q, struct batch *b, struct arena *a)
{
	size_t bad = 0;

	for (size_t i = 0; i < b->n && bad == i; i++)
		bad += !(op_flags(b->rqs[i].op) & OP_READS);
	if (bad == b->n)
		bad = queue_call_all(q, b->rqs, b->under, b->answers, b->n, a);
	else
		answer_fail(&b->answers[bad], USAGE, STR("a read cannot be part of a commit"),
			    STR(""));
	for (size_t i = 0; bad < b->n && i < b->n; i++)
		if (i != bad)
			b->answers[i] = (struct answer){ 0 };
}

/* The call got a lock when it first arrived, and somebody else ended that lock; or it ended a lock, and the task was
 * acquired again. A refusal would hide this. */
static void tell_lost(struct answer *ans)
{
	int64_t now = ans->now;

	*ans = (struct answer){ .now = now };
	answer_fail(ans, API_ERROR,
		    STR("the answer of this call got lost, and its lock has ended since"),
		    STR("to see what you hold: pawl status"));
	ans->applied = '?';
}

static void call(struct desk *d, struct batch *b, bool all, struct arena *a)
{
	struct client *c = &d->session.client;
	int64_t began = now_us();

	b->answers = arena_array(a, struct answer, b->n + 1);
	memset(b->answers, 0, (b->n + 1) * sizeof(*b->answers));
	if (!b->n)
		return;
	queue_patience(c->queue, client_timeout(c, all ? OP_BATCH : 0));
	if (all)
		call_all(c->queue, b, a);
	else
		queue_call_many(c->queue, b->rqs, b->answers, b->n, a);
	count(d, b, now_us() - began);
	for (size_t i = 0; i < b->n; i++) {
		late_note(d->serve->late, &b->rqs[i], b->calls[i], &b->answers[i]);
		/* the caller may have made the call once */
		if (b->answers[i].repeated && b->arrivals[i] == ARRIVAL_AGAIN)
			b->answers[i].repeated = REPEATED_MAYBE;
		desk_failed(d, &b->answers[i]);
		if (b->answers[i].code != SUCCESS && b->arrivals[i] == ARRIVAL_AGAIN &&
		    late_settled(d->serve->late, &b->rqs[i], b->calls[i]))
			tell_lost(&b->answers[i]);
	}
}

/* A job whose calls are one commit of their own. */
static void run_alone(struct desk *d, struct job *j)
{
	struct batch b = { 0 };
	struct arena a = { 0 };

	if (add_job(d, j, &b, &a)) {
		call(d, &b, true, &a);
		set_answers(j, &b, 0, b.n, &a);
	}
	arena_free(&a);
}

void packed_run(struct desk *d, struct job *list, bool last)
{
	struct batch b = { 0 };
	struct arena a = { 0 };
	size_t jobs = 0, k = 0, *from;

	for (struct job *j = list; j; j = j->next)
		jobs++;
	from = arena_array(&a, size_t, jobs + 1);
	for (struct job *j = list; j; j = j->next, k++) {
		from[k] = b.n;
		j->tried = j->kind == JOB_PACKED;
		if (is_packed(j) && j->all)
			run_alone(d, j);
		else if (is_packed(j))
			(void)add_job(d, j, &b, &a);
		else if (j->kind == JOB_COMMAND && !j->status)
			add_command(d, j, &b, last, &a);
	}
	from[k] = b.n;
	call(d, &b, false, &a);
	k = 0;
	for (struct job *j = list; j; j = j->next, k++) {
		if (j->noted)
			call_end(d, j, b.answers + from[k], last);
		else if (is_packed(j) &&
			 !waits(j, b.answers + from[k], from[k + 1] - from[k], last))
			set_answers(j, &b, from[k], from[k + 1] - from[k], &a);
	}
	arena_free(&a);
}

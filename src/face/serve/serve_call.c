/*
 * One command with JSON arguments, in its worker's thread. If a command consists of a single change, call_begin() only returns
 * that change and does not make it. The worker commits the changes of all callers together (packed_calls.c), and the command
 * interprets the answer (call_end). Every other command runs by itself (call_run). No command may wait, because the worker
 * waits for it.
 */
#include <stdlib.h>

#include "base/os.h"
#include "base/text.h"
#include "cmd/args_json.h"
#include "core/validate.h"
#include "face/serve/mcp_http.h"
#include "face/serve/serve.h"
#include "format/answer_form.h"
#include "format/json.h"

#define JSON_TIMES 2 /* memory of an answer's JSON, as a multiple of the answer's own */
#define JSON_MOST (3 * (size_t)JSON_ROOM) /* of an answer with its JSON */

static bool good_name(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if ((unsigned char)s.p[i] < 0x20 || s.p[i] == 0x7f)
			return false;
	return s.n <= NAME_MAX_BYTES && text_valid(s);
}

/* Takes a name out of the arguments, unless the command itself has an argument with this key.
 * false: it is not a valid name. */
static bool take_name(const struct command *c, json_t *o, const char *key, struct str *name,
		      struct arena *a)
{
	const json_t *value = json_object_get(o, key);

	*name = STR("");
	if (!value || param_find(c->params, str_c(key)))
		return true;
	if (!json_is_string(value) && !json_is_null(value))
		return false;
	*name = arena_str(a, json_get(o, key));
	json_object_del(o, key);
	return good_name(*name);
}

/* Sets the caller: the agent that the token allows, and the run that the caller names. */
static bool find_caller(struct worker *d, struct job *j, json_t *o, struct session *s)
{
	struct str agent, run;
	const char *why;

	if (!take_name(j->command, o, "agent", &agent, s->arena) ||
	    !take_name(j->command, o, "run", &run, s->arena)) {
		job_refuse(j, 400, USAGE,
			   STR("an agent name or a run name must be one line of text"), STR(""),
			   "");
		return false;
	}
	if (!caller_agent(d->serve, &j->caller, agent, &s->client.self.agent, &why)) {
		job_refuse(j, agent.n ? 403 : 400, agent.n ? MISCONFIGURED : USAGE, str_c(why),
			   arena_printf(s->arena, "the token %s is for: %s", j->caller.name,
					j->caller.agents),
			   agent.n ? "forbidden" : "");
		return false;
	}
	s->client.self.run = run;
	return true;
}

static json_t *serve_call_arguments(struct job *j, struct arena *memory)
{
	json_error_t e;
	json_t *o;

	if (!j->body.n)
		return json_object();
	if (!answers_body(j, memory))
		return NULL;
	o = json_loadb(j->body.p, j->body.n, JSON_REJECT_DUPLICATES, &e);
	if (o && json_is_object(o))
		return o;
	json_decref(o);
	job_refuse(j, 400, USAGE, STR("the body is not a JSON object"),
		   STR("send the arguments as an object, such as {\"id\":\"t1\"}"), "");
	return NULL;
}

/* Adds the reply as JSON. false: it does not fit. */
static bool add_reply(struct job *j, const struct reply *r, size_t room, struct arena *a)
{
	json_t *o = command_json(j->command, r, a);

	j->answer.n = 0;
	j->answer.full = false;
	j->answer.max = room;
	json_write(o, &j->answer);
	buf_addc(&j->answer, '\n');
	json_decref(o);
	return !j->answer.full;
}

/* Makes the answer brief. The change was made, so the caller must learn that, and the lock that it
 * got. */
static void set_brief(struct job *j, const struct reply *r, struct arena *a)
{
	struct reply brief = *r;

	brief.ans = answer_brief(&r->ans, a);
	if (add_reply(j, &brief, ANSWER_SHORT, a))
		return;
	j->answer.n = 0; /* still too long: the command adds to struct answer */
	j->answer.full = false;
	if (j->code != SUCCESS) {
		say_error(
			&j->answer, result_name(j->code), arena_cstr(a, r->ans.message),
			"the other parts of the call were made; the whole answer is too long to send",
			"");
		return;
	}
	buf_adds(&j->answer,
		 STR("{\"ok\":true,\"code\":\"SUCCESS\",\"warnings\":[\"the change was made; "
		     "its answer is too long to send\"]}\n"));
}

static void set_answer(struct job *j, const struct reply *r, bool changed, struct arena *a)
{
	size_t room = answers_room(j), json = JSON_TIMES * a->held + answer_json_memory(&r->ans);
	struct answer too_long = { 0 };
	bool fits = a->held + json <= JSON_MOST;

	if (fits)
		arena_count(a, json); /* before it is made */
	j->code = r->ans.code;
	j->status = str_is(r->ans.fault, "forbidden") ? 403 : result_http(j->code);
	if (!fits || a->crowded || !add_reply(j, r, room, a)) {
		if (changed) {
			set_brief(j, r, a);
		} else if (a->crowded || room < ANSWER_MAX) {
			answers_refuse(j);
		} else {
			answer_too_long(&too_long);
			job_fail(j, &too_long);
		}
	}
	answers_made(j);
}

/* Does the call wait for a task? Then this sets the time of the next attempt. */
static bool may_wait(struct job *j, const struct reply *r, int64_t wait, bool last)
{
	if (last || r->ans.code != NO_TASKS || wait <= 0)
		return false;
	if (!j->wait.end)
		attempts_begin(&j->wait, wait < WAIT_MAX_MS ? wait : WAIT_MAX_MS);
	attempts_after(&j->wait, r->ans.wait_ms);
	return j->parked && !attempts_over(&j->wait);
}

/* A command under way. Its texts are in the arena. */
struct asked {
	struct arena arena;
	struct session session;
	struct args *args;
	struct call_state call;
	struct reply reply;
	int64_t wait;
};

/* Reads the arguments. false: the job is refused. */
static bool read_arguments(struct worker *d, struct job *j, struct asked *x)
{
	struct arena memory = answers_arena(j, JSON_ROOM);
	json_t *o = serve_call_arguments(j, &memory);
	const char *fault = NULL;
	bool known;

	x->session = worker_session(d, &j->caller, &x->arena);
	known = o && find_caller(d, j, o, &x->session);
	if (known) {
		x->args = args_new(j->command, &x->arena);
		fault = args_from_json(x->args, j->command, o, ARGS_REMOTE, &x->arena);
	}
	if (fault)
		job_refuse(j, 400, USAGE, str_c(fault), STR("/openapi.json has every argument"),
			   "");
	json_decref(o);
	arena_free(&memory);
	if (!known || fault)
		return false;
	x->wait = x->args->wait;
	x->args->wait = 0; /* the worker waits for the change; the command does not */
	return true;
}

/* Answers the job with the reply. false: the job waits. */
static bool serve_call_answer(struct worker *d, struct job *j, struct asked *x, bool last)
{
	bool waits;

	j->parts = x->session.client.made;
	worker_failed(d, &x->reply.ans);
	waits = may_wait(j, &x->reply, x->wait, last);
	if (!waits)
		set_answer(j, &x->reply, x->session.client.changed, &x->arena);
	reply_free(&x->reply);
	return !waits;
}

bool call_run(struct worker *d, struct job *j, bool last)
{
	struct asked x = { .arena = answers_arena(j, JSON_ROOM) };
	bool done = true;

	if (read_arguments(d, j, &x)) {
		(void)command_run(j->command, &x.session, x.args, &x.reply);
		done = serve_call_answer(d, j, &x, last);
	}
	arena_free(&x.arena);
	return done;
}

/* --- changes that are committed with those of others ------------------------------------------------ */

bool call_joins(const struct command *c)
{
	if (c == &cmd_next)
		return true;
	return c->op && !(op_flags(c->op) & OP_READS) && (!c->run || c->runs) &&
	       c->op != OP_ARCHIVE && c->op != OP_LOCK_CLEANUP; /* these change many tasks */
}

void call_forget(struct job *j)
{
	if (!j->asked)
		return;
	arena_free(&j->asked->arena);
	free(j->asked);
	j->asked = NULL;
}

const struct request *call_begin(struct worker *d, struct job *j, bool last)
{
	struct asked *x = mem_alloc(sizeof(*x));

	*x = (struct asked){ .arena = answers_arena(j, JSON_ROOM) };
	j->asked = x;
	j->tried = true;
	if (!read_arguments(d, j, x)) {
		call_forget(j);
	} else if (!command_is_call(j->command, &x->session, x->args)) {
		call_forget(j);
		j->tried = false;
	} else if (command_ask(j->command, &x->session, x->args, &x->call, &x->reply) != SUCCESS) {
		(void)serve_call_answer(d, j, x, last);
		call_forget(j);
	} else if (op_flags(x->call.rq.op) & OP_READS) {
		queue_call(x->session.client.conn.queue, &x->call.rq, &x->call.ans, &x->arena);
		call_end(d, j, &x->call.ans, last);
	}
	return j->asked ? &j->asked->call.rq : NULL;
}

void call_end(struct worker *d, struct job *j, const struct answer *ans, bool last)
{
	struct asked *x = j->asked;

	x->call.ans = *ans;
	(void)command_tell(j->command, &x->session, x->args, &x->call, &x->reply);
	(void)serve_call_answer(d, j, x, last);
	call_forget(j);
}

/* --- answers ---------------------------------------------------------------------------------- */

/*
 * Answers on their way to callers. A caller that asks for long answers in many queues at once, or
 * does not read them, must not fill the memory. So its meter counts the memory of its answers while
 * the workers make them, and the bytes of long answers until the peer has taken them. Each token
 * has a share of the memory for all answers; the more tokens use theirs, the smaller each share is.
 * A caller without room still gets short answers, and learns the outcome of every change: a long
 * answer to a read is refused, and a long answer to a change is made brief.
 */

#define UNSENT_MAX ANSWER_MAX     /* of long answers: a caller with more has to read them first */
#define MEMORY_ALL (1024u << 20)  /* for the answers of all tokens */
#define MEMORY_TOKEN (192u << 20) /* for one token; one of its answers may exceed it */

#define BEHIND STR("the answers of this token need too much memory now")

struct arena_pool answers_memory(struct arena_pool *whole)
{
	return (struct arena_pool){ .most = whole ? MEMORY_TOKEN : MEMORY_ALL, .whole = whole };
}

struct arena answers_arena(const struct job *j, size_t limit)
{
	return (struct arena){ .limit = limit, .pool = j->payer ? &j->payer->memory : NULL };
}

size_t answers_room(const struct job *j)
{
	const struct meter *m = j->caller.meter;

	return m && m->unsent > UNSENT_MAX ? ANSWER_SHORT : ANSWER_MAX;
}

void answers_made(struct job *j)
{
	struct meter *m = j->caller.meter;
	size_t n = j->answer.n;

	if (!m || n < ANSWER_SHORT || n <= j->unsent)
		return;
	m->unsent += n - j->unsent;
	arena_pool_add(&m->memory, n - j->unsent);
	j->unsent = n;
}

static void answers_forget(struct meter *m, size_t n)
{
	m->unsent -= n;
	arena_pool_drop(&m->memory, n);
}

void answers_drop(struct job *j)
{
	if (j->unsent)
		answers_forget(j->caller.meter, j->unsent);
	j->unsent = 0;
}

void answers_refuse(struct job *j)
{
	answers_drop(j);
	job_refuse(j, 429, API_ERROR, BEHIND,
		   STR("read its earlier answers, or close their connections, and call again"), "");
}

bool answers_body(struct job *j, struct arena *a)
{
	size_t levels, memory = json_values(buf_str(&j->body), &levels) * JSON_VALUE_MEMORY;

	if (memory > a->limit) {
		job_refuse(j, 400, USAGE, STR("the body has too many values"),
			   STR("send them in several calls"), "");
		return false;
	}
	arena_count(a, memory);
	if (a->crowded)
		answers_refuse(j);
	return !j->status;
}

/* --- in the loop --------------------------------------------------------------------------------- */

struct unsent {
	struct meter *caller;
	size_t n;
};

static void was_sent(void *unsent)
{
	struct unsent *u = unsent;

	answers_forget(u->caller, u->n);
	free(u);
}

void answers_send(struct job *j, struct http_headers extra)
{
	struct unsent *u;

	if (!j->unsent) {
		http_reply(j->exchange, j->status, j->answer.n ? j->type : NULL, extra,
			   buf_str(&j->answer));
		return;
	}
	u = mem_alloc(sizeof(*u));
	*u = (struct unsent){ j->caller.meter, j->unsent };
	j->unsent = 0; /* was_sent() subtracts these bytes */
	http_reply_own(j->exchange, j->status, j->type, extra, &j->answer, was_sent, u);
}

static void send_answer(struct serve *s, struct job *j)
{
	static const struct http_header later[] = { { { "Retry-After", 11 }, { "1", 1 } },
						    { { "Cache-Control", 13 },
						      { "no-store", 8 } } };
	bool busy = j->status == 503 || j->status == 429;
	struct http_headers extra = { later + !busy, 1 + (size_t)busy };

	counts_job(s, j);
	if (j->answer.full)
		http_refuse(j->exchange, 500, "the answer is too long: use a limit");
	else
		answers_send(j, extra);
}

void job_charge(struct job *j)
{
	if (j->parts > 1)
		serve_login_charge(j->caller.meter, j->parts - 1);
}

void job_unpark(struct job *j)
{
	if (!j->parked)
		return;
	j->parked = false;
	j->caller.meter->waits--;
	j->worker->serve->counts.waits--;
}

void job_done(void *job)
{
	struct job *j = job;
	struct worker *d = j->worker;
	struct serve *s = d->serve;

	d->jobs--;
	job_unpark(j);
	if (j->kind == JOB_EVENTS) {
		events_done(j);
	} else if (j->kind == JOB_COUNT) {
		metrics_done(j);
	} else if (j->kind == JOB_MCP) {
		endpoint_done(s, j);
	} else {
		job_charge(j);
		if (j->status)
			send_answer(s, j);
		else
			http_drop(j->exchange);
		job_free(j);
	}
	worker_drop_broken(s, d);
}

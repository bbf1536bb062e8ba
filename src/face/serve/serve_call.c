/*
 * One command with JSON arguments, in the thread of its desk. A command that is one change asks first (call_begin); the
 * desk commits the changes of all callers at once (packed.c), and the command tells the answer (call_end). Every other
 * command runs by itself (call_run).
 */
#include "face/serve/serve.h"

#include <stdlib.h>

#include "base/os.h"
#include "base/text.h"
#include "cmd/args_json.h"
#include "format/answer_form.h"
#include "format/json.h"

#define JSON_TIMES 2 /* the memory of the JSON of an answer, by that of the answer */
#define JSON_MOST (3 * (size_t)JSON_ROOM) /* of an answer with its JSON */

static bool good_name(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if ((unsigned char)s.p[i] < 0x20 || s.p[i] == 0x7f)
			return false;
	return s.n <= NAME_MAX_BYTES && text_valid(s);
}

/* Takes a name out of the arguments, unless the command has an argument of that name itself. false: it is not a name. */
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
		job_refuse(j, 400, USAGE, STR("a name of an agent or a run is one line of text"),
			   STR(""), "");
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

/* The change was made, so its caller must learn that, and the lock that it got. */
static void set_brief(struct job *j, const struct reply *r, struct arena *a)
{
	struct reply brief = *r;

	brief.ans = answer_brief(&r->ans, a);
	if (add_reply(j, &brief, ANSWER_SHORT, a))
		return;
	j->answer.n = 0; /* the answer of a command that tells more than struct answer */
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

/* The caller waits for a task: sets when to try again. */
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
	x->args->wait = 0; /* the desk waits, not the command */
	return true;
}

/* Answers the job with the reply. false: it waits. */
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
	       c->op != OP_ARCHIVE && c->op != OP_LOCK_CLEANUP; /* of many tasks */
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

/*
 * One command with JSON arguments, in the thread of its desk. A command makes its change in the middle of its run, so a
 * command whose change is committed with those of others runs twice. The first run notes the change; the second run gets
 * the answer in its place. Only commands with a single change and no other effect do so.
 */
#include "face/serve/serve.h"

#include <stdlib.h>

#include "base/os.h"
#include "base/text.h"
#include "cmd/args_json.h"

#define BRIEF_MAX (64u << 10)

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
static bool find_caller(struct desk *d, struct job *j, json_t *o, struct session *s)
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

static json_t *arguments(struct job *j)
{
	json_error_t e;
	json_t *o;

	if (!j->body.n)
		return json_object();
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
	char *text = json_dumps(o, JSON_COMPACT | JSON_REAL_PRECISION(15));

	j->answer.n = 0;
	j->answer.full = false;
	j->answer.max = room;
	buf_adds(&j->answer, str_c(text));
	buf_addc(&j->answer, '\n');
	free(text);
	json_decref(o);
	return !j->answer.full;
}

/* The change was made, so its caller must learn that, and the lock that it got. */
static void set_brief(struct job *j, const struct reply *r, struct arena *a)
{
	struct reply brief = *r;

	brief.ans = answer_brief(&r->ans, a);
	if (add_reply(j, &brief, BRIEF_MAX, a))
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
	struct answer too_long = { 0 };

	j->code = r->ans.code;
	j->status = str_is(r->ans.fault, "forbidden") ? 403 : result_http(j->code);
	if (!add_reply(j, r, answers_room(j), a)) {
		if (changed) {
			set_brief(j, r, a);
		} else if (answers_behind(j)) {
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
	int64_t now = os_boot_ms();

	if (last || r->ans.code != NO_TASKS || wait <= 0)
		return false;
	if (!j->wait_until)
		j->wait_until = now + (wait < WAIT_MAX_MS ? wait : WAIT_MAX_MS);
	j->due = r->ans.wait_ms > 0 ? now + r->ans.wait_ms : INT64_MAX;
	return j->parked && now < j->wait_until;
}

/* --- changes that are committed with those of others ------------------------------------------------ */

struct noted {
	struct arena arena; /* of the first run, and so of the request */
	struct request rq;
	bool noted;
	const struct answer *ans; /* for the second run */
};

static bool note_change(void *ctx, const struct request *rq, struct answer *ans)
{
	struct noted *x = ctx;

	if (rq->op == OP_LOCK_CLEANUP) /* of client_watch(), before the change */
		return false;
	if (x->ans) {
		*ans = *x->ans;
		return true;
	}
	x->rq = *rq;
	x->noted = true;
	answer_fail(ans, API_ERROR, STR("the change is not made yet"), STR(""));
	return true;
}

bool call_joins(const struct command *c)
{
	return c == &cmd_next || (c->op && !(op_flags(c->op) & OP_READS) && c->op != OP_ARCHIVE &&
				  command_role(c) <= ROLE_REVIEWER);
}

/* --- one run ------------------------------------------------------------------------------------- */

static bool run(struct desk *d, struct job *j, json_t *o, struct session *s, bool last)
{
	struct args *args = args_new(j->command, s->arena);
	const char *fault = args_from_json(args, j->command, o, ARGS_REMOTE, s->arena);
	struct reply reply = { 0 };
	int64_t wait = args->wait;
	bool waits;

	if (fault) {
		job_refuse(j, 400, USAGE, str_c(fault), STR("/openapi.json has every argument"),
			   "");
		return true;
	}
	args->wait = 0; /* the desk waits, not the command */
	(void)command_run(j->command, s, args, &reply);
	j->parts = s->client.made;
	d->session.client.conn.queue =
		s->client.conn.queue; /* the command may have opened it again */
	d->session.client.conn.mode = s->client.conn.mode;
	if (d->session.client.conn.queue)
		queue_pass_ctx(d->session.client.conn.queue, &d->session.client);
	if (j->noted && j->noted->noted && !j->noted->ans) { /* the first run */
		reply_free(&reply);
		return false;
	}
	desk_failed(d, &reply.ans);
	waits = may_wait(j, &reply, wait, last);
	if (!waits)
		set_answer(j, &reply, s->client.changed, s->arena);
	reply_free(&reply);
	return !waits;
}

static bool run_in(struct desk *d, struct job *j, bool last, struct arena *a)
{
	struct session s = desk_session(d, &j->caller, a);
	json_t *o = arguments(j);
	bool done = true;

	if (j->noted) {
		s.client.change = note_change;
		s.client.change_ctx = j->noted;
	}
	if (o && find_caller(d, j, o, &s))
		done = run(d, j, o, &s, last);
	json_decref(o);
	return done;
}

bool call_run(struct desk *d, struct job *j, bool last)
{
	struct arena a = { .limit = JSON_ROOM };
	bool done = run_in(d, j, last, &a);

	arena_free(&a);
	return done;
}

void call_forget(struct job *j)
{
	arena_free(&j->noted->arena);
	free(j->noted);
	j->noted = NULL;
	j->tried = false;
}

const struct request *call_begin(struct desk *d, struct job *j, bool last)
{
	if (!call_joins(j->command))
		return NULL;
	j->noted = mem_alloc(sizeof(*j->noted));
	*j->noted = (struct noted){ .arena.limit = JSON_ROOM };
	j->tried = true;
	(void)run_in(d, j, last, &j->noted->arena);
	if (j->noted->noted)
		return &j->noted->rq;
	call_forget(j);
	j->tried = true;
	return NULL;
}

void call_end(struct desk *d, struct job *j, const struct answer *ans, bool last)
{
	j->noted->ans = ans;
	(void)call_run(d, j, last);
	call_forget(j);
	j->tried = true;
}

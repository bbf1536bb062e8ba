/*
 * The library's face; include/pawl.h is its contract. It calls the same commands as the command
 * line. An arena for each call bounds a handle's memory.
 */
#include <pawl.h>

#include <stdlib.h>

#include "base/os.h"
#include "cmd/args_json.h"
#include "format/task_form.h"

#ifndef PAWL_VERSION
#define PAWL_VERSION "0.2.0-dev"
#endif

#define RESULT(name, exit, http, text) \
	_Static_assert((int)PAWL_##name == (exit), "pawl.h and result.def agree");
#include "core/result.def"
#undef RESULT

struct pawl {
	struct arena arena; /* memory that lives as long as the handle */
	struct session session;
	char *message, *hint;
};

struct pawl_lock {
	char *id, *token;
	int64_t fence, deadline; /* deadline: by os_boot_ms() */
	const struct task *task; /* in `arena`, at the time `now` */
	int64_t now;
	struct arena arena;
	char *text; /* the task as text; NULL: not requested yet */
};

const char *pawl_version(void)
{
	return PAWL_VERSION;
}

const char *pawl_code_name(int code)
{
	static const struct {
		int code;
		const char *name;
	} all[] = {
#define RESULT(name, exit, http, text) { PAWL_##name, #name },
#include "core/result.def"
#undef RESULT
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		if (all[i].code == code)
			return all[i].name;
	return "";
}

static char *lib_copy(struct str s)
{
	char *p = mem_alloc(s.n + 1);

	if (s.n)
		memcpy(p, s.p, s.n);
	p[s.n] = '\0';
	return p;
}

void pawl_free(char *text)
{
	free(text);
}

/* --- opening --------------------------------------------------------------------------------- */

static struct client_options options_of(const struct pawl_options *o, struct arena *a)
{
	struct client_options out = {
		.store = arena_str(a, str_c(o->store)),
		.queue = arena_str(a, str_c(o->queue)),
		.agent = arena_str(a, str_c(o->agent)),
		.run = arena_str(a, str_c(o->run)),
		.dir = arena_str(a, str_c(o->dir)),
	};

	if (o->timeout_ms > 0)
		out.timeout = arena_printf(a, "%lldms", (long long)o->timeout_ms);
	return out;
}

/* Opens the queue for reading if it cannot be opened for writing. */
static enum result open_client(struct pawl *p, const struct pawl_options *o, struct answer *ans)
{
	struct client *c = &p->session.client;
	struct client_options said = options_of(o, &p->arena);
	enum result code = client_init(c, &said, ans, &p->arena);

	if (code != SUCCESS)
		return code;
	code = client_open(c, STORE_WRITE, ans);
	if (code != API_ERROR)
		return code;
	*ans = (struct answer){ 0 };
	return client_open(c, STORE_READ, ans);
}

/* A program that was built with another version of the header passes a struct of another size. */
static struct pawl_options known_options(const struct pawl_options *given)
{
	struct pawl_options own = PAWL_OPTIONS;

	if (given)
		memcpy(&own, given, given->size < sizeof(own) ? given->size : sizeof(own));
	return own;
}

int pawl_open(struct pawl **out, const struct pawl_options *options, char **error)
{
	struct pawl_options own = known_options(options);
	struct pawl *p = mem_alloc(sizeof(*p));
	struct answer ans = { 0 };
	enum result code;

	*p = (struct pawl){ .session.decisions = true };
	*out = NULL;
	if (error)
		*error = NULL;
	code = open_client(p, &own, &ans);
	if (code == SUCCESS) {
		*out = p;
		return PAWL_SUCCESS;
	}
	if (error)
		*error = lib_copy(ans.message);
	pawl_close(p);
	return (int)code;
}

/* Runs the command `init`. It opens the store in order to create it; this handle is closed
 * again. */
static enum result make_queue(const struct pawl_options *o, char **error)
{
	struct arena arena = { 0 };
	struct session s = { .arena = &arena };
	struct reply reply = { 0 };
	enum result code;

	s.client.said = options_of(o, &arena);
	code = command_run(&cmd_init, &s, args_new(&cmd_init, &arena), &reply);
	if (code != SUCCESS && error)
		*error = lib_copy(reply.ans.message);
	reply_free(&reply);
	client_close(&s.client);
	arena_free(&arena);
	return code;
}

int pawl_init(struct pawl **out, const struct pawl_options *options, char **error)
{
	struct pawl_options own = known_options(options);
	enum result code;

	*out = NULL;
	if (error)
		*error = NULL;
	code = make_queue(&own, error);
	return code == SUCCESS ? pawl_open(out, &own, error) : (int)code;
}

void pawl_close(struct pawl *p)
{
	if (!p)
		return;
	client_close(&p->session.client);
	arena_free(&p->arena);
	free(p->message);
	free(p->hint);
	free(p);
}

const char *pawl_message(const struct pawl *p)
{
	return p->message ? p->message : "";
}

const char *pawl_hint(const struct pawl *p)
{
	return p->hint ? p->hint : "";
}

/* --- calling --------------------------------------------------------------------------------- */

/* The call and its result. */
struct called {
	const struct command *command; /* NULL: there is none */
	struct arena arena; /* one for each call, so that a handle does not grow with its calls */
	struct reply reply;
};

static void keep_error(struct pawl *p, const struct reply *r)
{
	free(p->message);
	free(p->hint);
	p->message = p->hint = NULL;
	if (reply_ok(r))
		return;
	if (r->ans.message.n)
		p->message = lib_copy(r->ans.message);
	if (r->ans.hint.n)
		p->hint = lib_copy(r->ans.hint);
}

static void call_free(struct called *x)
{
	reply_free(&x->reply);
	arena_free(&x->arena);
}

static const struct command *find_command(const char *name, struct arena *a)
{
	struct str rest = str_c(name);
	const char *words[2] = { arena_cstr(a, str_cut(&rest, ' ')), arena_cstr(a, rest) };
	size_t n = rest.n ? 2 : 1, used = 0;
	const struct command *c = command_find(words, n, &used);

	return c && used == n && !(c->flags & (C_LOCAL | C_SHELL)) ? c : NULL;
}

/* Reopens a queue that was open only for reading. The store keeps pointers into the arena, so this
 * must be the handle's arena. */
static enum result open_for(struct pawl *p, const struct command *c, struct reply *out)
{
	struct client *client = &p->session.client;
	struct arena *scratch = client->arena;
	struct answer ans = { 0 };
	enum result code;

	if (!(c->flags & C_WRITE))
		return SUCCESS;
	client->arena = &p->arena;
	code = client_open(client, STORE_WRITE, &ans);
	client->arena = scratch;
	return code == SUCCESS ? SUCCESS : run_answer(&ans, out);
}

static enum result lib_run(struct pawl *p, const char *name, const json_t *arguments,
			   struct called *x)
{
	struct session *s = &p->session;
	const struct command *c = find_command(name, s->arena);
	const char *fault;
	struct args *args;
	enum result code;

	x->command = c;
	if (!c)
		return run_fail(USAGE,
				arena_printf(s->arena, "the library has no command '%.60s'", name),
				STR("`pawl help` lists the commands"), &x->reply);
	args = args_new(c, s->arena);
	fault = args_from_json(args, c, arguments, ARGS_PROGRAM, s->arena);
	if (fault)
		return run_fail(
			USAGE, str_c(fault),
			arena_printf(s->arena, "`pawl help %s` shows the parameters", c->name),
			&x->reply);
	code = open_for(p, c, &x->reply);
	return code == SUCCESS ? command_run(c, s, args, &x->reply) : code;
}

static enum result lib_call(struct pawl *p, const char *name, const json_t *arguments,
			    struct called *x)
{
	struct session *s = &p->session;
	enum result code;

	s->arena = s->client.arena = s->client.keyring.arena = &x->arena;
	code = lib_run(p, name, arguments, x);
	s->arena = s->client.arena = s->client.keyring.arena = &p->arena;
	keep_error(p, &x->reply);
	return code;
}

static json_t *lib_load(const char *arguments, json_error_t *e)
{
	json_t *o;

	if (!arguments)
		return json_object();
	o = json_loads(arguments, JSON_REJECT_DUPLICATES, e);
	if (o && !json_is_object(o)) {
		json_decref(o);
		return NULL;
	}
	return o;
}

static enum result lib_refuse(struct pawl *p, const char *text, struct called *x)
{
	run_fail(USAGE, str_c(text), STR(""), &x->reply);
	keep_error(p, &x->reply);
	return USAGE;
}

static enum result call_text(struct pawl *p, const char *name, const char *arguments,
			     struct called *x)
{
	json_error_t e;
	json_t *o;
	enum result code;

	if (!name)
		return lib_refuse(p, "no command was named", x);
	o = lib_load(arguments, &e);
	if (!o)
		return lib_refuse(p, "the arguments are not a JSON object", x);
	code = lib_call(p, name, o, x);
	json_decref(o);
	return code;
}

static char *lib_dump(json_t *o)
{
	char *text = json_dumps(o, JSON_COMPACT | JSON_REAL_PRECISION(15));

	json_decref(o);
	return text;
}

int pawl_call(struct pawl *p, const char *name, const char *arguments, char **answer)
{
	struct called x = { 0 };
	enum result code = call_text(p, name, arguments, &x);

	if (answer)
		*answer = lib_dump(command_json(x.command, &x.reply, &x.arena));
	call_free(&x);
	return (int)code;
}

/* --- locks ----------------------------------------------------------------------------------- */

static void set_lease(struct pawl_lock *l, const struct answer *ans, int64_t sent)
{
	int64_t left = ans->lock ? ans->lock->expires_at - ans->now : 0;

	l->deadline = sent + (left > 0 ? left : 0);
}

static struct pawl_lock *make_lock(struct called *x, int64_t sent)
{
	const struct answer *ans = &x->reply.ans;
	struct pawl_lock *l = mem_alloc(sizeof(*l));

	*l = (struct pawl_lock){
		.id = lib_copy(ans->task->id),
		.token = lib_copy(ans->lock->token),
		.fence = ans->lock->fence,
		.task = ans->task,
		.now = ans->now,
		.arena = x->arena,
	};
	set_lease(l, ans, sent);
	x->arena = (struct arena){ 0 }; /* the lock owns its memory now */
	return l;
}

/* Calls the command with the given arguments and one more. */
static enum result lib_take(struct pawl *p, const char *name, const char *arguments,
			    const char *key, json_t *value, struct pawl_lock **lock)
{
	json_error_t e;
	json_t *o = lib_load(arguments, &e);
	int64_t sent = os_boot_ms();
	struct called x = { 0 };
	enum result code;

	*lock = NULL;
	if (o) {
		json_object_set_new(o, key, value);
		code = lib_call(p, name, o, &x);
	} else {
		json_decref(value);
		code = lib_refuse(p, "the arguments are not a JSON object", &x);
	}
	if (code == SUCCESS)
		*lock = make_lock(&x, sent);
	json_decref(o);
	call_free(&x);
	return code;
}

int pawl_next(struct pawl *p, const char *arguments, struct pawl_lock **out)
{
	return (int)lib_take(p, "next", arguments, "claim", json_true(), out);
}

int pawl_claim(struct pawl *p, const char *id, const char *arguments, struct pawl_lock **out)
{
	return (int)lib_take(p, "claim", arguments, "id", id ? json_string(id) : json_null(), out);
}

const char *pawl_lock_id(const struct pawl_lock *l)
{
	return l->id;
}

const char *pawl_lock_token(const struct pawl_lock *l)
{
	return l->token;
}

int64_t pawl_lock_fence(const struct pawl_lock *l)
{
	return l->fence;
}

const char *pawl_lock_task(const struct pawl_lock *l)
{
	struct pawl_lock *own =
		(struct pawl_lock *)(uintptr_t)l; /* only pawl creates locks, so none is const */

	if (!own->text)
		own->text = lib_dump(task_json(own->task, own->now, &own->arena));
	return own->text;
}

double pawl_lock_left(const struct pawl_lock *l)
{
	int64_t left = l->deadline - os_boot_ms();

	return left > 0 ? (double)left / 1000 : 0;
}

static int lib_holders(struct pawl *p, struct pawl_lock *l, const char *name, const char *key,
		       const char *text)
{
	json_t *o = json_pack("{s:s, s:s}", "id", l->id, "token", l->token);
	struct called x = { 0 };
	int64_t sent = os_boot_ms();
	enum result code;

	if (text)
		json_object_set_new(o, key, json_string(text));
	if (text && !json_object_get(o, key))
		code = lib_refuse(p, "the text is not valid UTF-8", &x);
	else
		code = lib_call(p, name, o, &x);
	if (code == SUCCESS)
		set_lease(l, &x.reply.ans, sent);
	else if (code == LOST_LOCK)
		l->deadline = 0;
	json_decref(o);
	call_free(&x);
	return (int)code;
}

int pawl_heartbeat(struct pawl *p, struct pawl_lock *l)
{
	return lib_holders(p, l, "heartbeat", "", NULL);
}

int pawl_done(struct pawl *p, struct pawl_lock *l, const char *summary)
{
	return lib_holders(p, l, "done", "summary", summary);
}

int pawl_review(struct pawl *p, struct pawl_lock *l, const char *summary)
{
	return lib_holders(p, l, "review", "summary", summary);
}

int pawl_fail(struct pawl *p, struct pawl_lock *l, const char *reason)
{
	return lib_holders(p, l, "fail", "reason", reason);
}

int pawl_release(struct pawl *p, struct pawl_lock *l, const char *reason)
{
	return lib_holders(p, l, "release", "reason", reason);
}

void pawl_lock_free(struct pawl_lock *l)
{
	if (!l)
		return;
	free(l->id);
	free(l->token);
	free(l->text);
	arena_free(&l->arena);
	free(l);
}

/* The face of the library: include/pawl.h has the contract. */
#include <pawl.h>

#include <stdlib.h>

#include "base/os.h"
#include "cmd/args_json.h"

#ifndef PAWL_VERSION
#define PAWL_VERSION "0.1.0"
#endif

#define RESULT(name, exit, http, text) \
	_Static_assert((int)PAWL_##name == (exit), "pawl.h and result.def agree");
#include "core/result.def"
#undef RESULT

struct pawl {
	struct arena arena; /* what lives as long as the handle */
	struct session session;
	char *message, *hint;
};

struct pawl_lock {
	char *id, *token, *task;
	int64_t fence, deadline; /* by our own clock */
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

static char *copy(struct str s)
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

/* One that may only be read is better than none. */
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

int pawl_open(struct pawl **out, const struct pawl_options *options, char **error)
{
	struct pawl_options own = PAWL_OPTIONS;
	struct pawl *p = mem_alloc(sizeof(*p));
	struct answer ans = { 0 };
	enum result code;

	*p = (struct pawl){ 0 };
	*out = NULL;
	if (error)
		*error = NULL;
	if (options)
		memcpy(&own, options, options->size < sizeof(own) ? options->size : sizeof(own));
	code = open_client(p, &own, &ans);
	if (code == SUCCESS) {
		*out = p;
		return PAWL_SUCCESS;
	}
	if (error)
		*error = copy(ans.message);
	pawl_close(p);
	return (int)code;
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

static void keep_error(struct pawl *p, const json_t *answer)
{
	const json_t *error = json_object_get(answer, "error");

	free(p->message);
	free(p->hint);
	p->message = p->hint = NULL;
	if (view_get(error, "message"))
		p->message = copy(str_c(view_get(error, "message")));
	if (view_get(error, "hint"))
		p->hint = copy(str_c(view_get(error, "hint")));
}

static const struct command *find_command(const char *name, struct arena *a)
{
	struct str rest = str_c(name);
	const char *words[2] = { arena_cstr(a, str_cut(&rest, ' ')), arena_cstr(a, rest) };
	size_t n = rest.n ? 2 : 1, used = 0;
	const struct command *c = command_find(words, n, &used);

	return c && used == n && !(c->flags & (C_LOCAL | C_SHELL)) ? c : NULL;
}

/* What was open for reading only: what the store then points to has to last. */
static enum result open_for(struct pawl *p, const struct command *c, json_t **out)
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
	return code == SUCCESS ? SUCCESS : run_answer(&ans, scratch, out);
}

static enum result run(struct pawl *p, const char *name, const json_t *arguments, json_t **out)
{
	struct session *s = &p->session;
	const struct command *c = find_command(name, s->arena);
	const char *fault;
	struct args args = { 0 };
	enum result code;

	if (!c)
		return run_fail(s, USAGE,
				arena_printf(s->arena, "the library has no command '%.60s'", name),
				STR("`pawl help` lists the commands"), out);
	fault = args_from_json(&args, c, arguments, true, s->arena);
	if (fault)
		return run_fail(
			s, USAGE, str_c(fault),
			arena_printf(s->arena, "`pawl help %s` shows the parameters", c->name),
			out);
	code = open_for(p, c, out);
	if (code != SUCCESS)
		return code;
	return c->run ? c->run(s, &args, out) : run_op(s, &args, out);
}

/* In memory of its own: a handle shall not grow with the calls. */
static enum result call(struct pawl *p, const char *name, const json_t *arguments, json_t **out)
{
	struct session *s = &p->session;
	struct arena scratch = { 0 };
	enum result code;

	s->arena = s->client.arena = s->client.keyring.arena = &scratch;
	code = run(p, name, arguments, out);
	s->arena = s->client.arena = s->client.keyring.arena = &p->arena;
	keep_error(p, *out);
	arena_free(&scratch);
	return code;
}

static json_t *load(const char *arguments, json_error_t *e)
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

static enum result refuse(struct pawl *p, const char *text, json_t **out)
{
	struct arena scratch = { 0 };

	p->session.arena = &scratch;
	run_fail(&p->session, USAGE, str_c(text), STR(""), out);
	p->session.arena = &p->arena;
	keep_error(p, *out);
	arena_free(&scratch);
	return USAGE;
}

static enum result call_text(struct pawl *p, const char *name, const char *arguments, json_t **out)
{
	json_error_t e;
	json_t *o;
	enum result code;

	if (!name)
		return refuse(p, "no command was named", out);
	o = load(arguments, &e);
	if (!o)
		return refuse(p, "the arguments are no JSON object", out);
	code = call(p, name, o, out);
	json_decref(o);
	return code;
}

int pawl_call(struct pawl *p, const char *name, const char *arguments, char **answer)
{
	json_t *out = NULL;
	enum result code = call_text(p, name, arguments, &out);

	if (answer)
		*answer = json_dumps(out, JSON_COMPACT | JSON_REAL_PRECISION(15));
	json_decref(out);
	return (int)code;
}

/* --- locks ----------------------------------------------------------------------------------- */

static void set_lease(struct pawl_lock *l, const json_t *lock, int64_t sent)
{
	l->deadline = sent +
		      (int64_t)(json_number_value(json_object_get(lock, "expires_in")) * 1000);
}

static struct pawl_lock *make_lock(const json_t *answer, int64_t sent)
{
	const json_t *lock = json_object_get(answer, "lock"),
		     *task = json_object_get(answer, "task");
	struct pawl_lock *l = mem_alloc(sizeof(*l));

	*l = (struct pawl_lock){
		.id = copy(str_c(view_get(task, "id"))),
		.token = copy(str_c(view_get(lock, "token"))),
		.task = json_dumps(task, JSON_COMPACT | JSON_REAL_PRECISION(15)),
		.fence = view_int(lock, "fence"),
	};
	set_lease(l, lock, sent);
	return l;
}

/* The named arguments, and one more. */
static enum result take(struct pawl *p, const char *name, const char *arguments, const char *key,
			json_t *value, struct pawl_lock **lock)
{
	json_error_t e;
	json_t *o = load(arguments, &e), *out = NULL;
	int64_t sent = os_boot_ms();
	enum result code;

	*lock = NULL;
	if (o) {
		json_object_set_new(o, key, value);
		code = call(p, name, o, &out);
	} else {
		json_decref(value);
		code = refuse(p, "the arguments are no JSON object", &out);
	}
	if (code == SUCCESS)
		*lock = make_lock(out, sent);
	json_decref(o);
	json_decref(out);
	return code;
}

int pawl_next(struct pawl *p, const char *arguments, struct pawl_lock **out)
{
	return (int)take(p, "next", arguments, "claim", json_true(), out);
}

int pawl_claim(struct pawl *p, const char *id, const char *arguments, struct pawl_lock **out)
{
	return (int)take(p, "claim", arguments, "id", id ? json_string(id) : json_null(), out);
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
	return l->task;
}

double pawl_lock_left(const struct pawl_lock *l)
{
	int64_t left = l->deadline - os_boot_ms();

	return left > 0 ? (double)left / 1000 : 0;
}

static int holders(struct pawl *p, struct pawl_lock *l, const char *name, const char *key,
		   const char *text)
{
	json_t *o = json_pack("{s:s, s:s}", "id", l->id, "token", l->token), *out = NULL;
	int64_t sent = os_boot_ms();
	enum result code;

	if (text)
		json_object_set_new(o, key, json_string(text));
	if (text && !json_object_get(o, key))
		code = refuse(p, "the text is not valid UTF-8", &out);
	else
		code = call(p, name, o, &out);
	if (code == SUCCESS)
		set_lease(l, json_object_get(out, "lock"), sent);
	else if (code == LOST_LOCK)
		l->deadline = 0;
	json_decref(o);
	json_decref(out);
	return (int)code;
}

int pawl_heartbeat(struct pawl *p, struct pawl_lock *l)
{
	return holders(p, l, "heartbeat", "", NULL);
}

int pawl_done(struct pawl *p, struct pawl_lock *l, const char *summary)
{
	return holders(p, l, "done", "summary", summary);
}

int pawl_review(struct pawl *p, struct pawl_lock *l, const char *summary)
{
	return holders(p, l, "review", "summary", summary);
}

int pawl_fail(struct pawl *p, struct pawl_lock *l, const char *reason)
{
	return holders(p, l, "fail", "reason", reason);
}

int pawl_release(struct pawl *p, struct pawl_lock *l, const char *reason)
{
	return holders(p, l, "release", "reason", reason);
}

void pawl_lock_free(struct pawl_lock *l)
{
	if (!l)
		return;
	free(l->id);
	free(l->token);
	free(l->task);
	free(l);
}

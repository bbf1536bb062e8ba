/*
 * The worker's part of MCP over HTTP. mcp_http.h draws the states of a session. A struct mcp_session contains one struct mcp,
 * for a session id or for a caller without sessions (token, agent and run). Nothing that must last may be kept only here: a
 * session can be dropped and created again at any time.
 */
#include <stdlib.h>

#include "base/fs.h"
#include "base/os.h"
#include "client/queue_lock.h"
#include "face/serve/mcp_http.h"
#include "format/json.h"

#define HOLD_MS (INT64_C(3600) * 1000)

/* --- the worker's queue ----------------------------------------------------------------------------- */

/* The queue asks its worker for the locks of the whole queue that the caller holds. Only an admin
 * can hold one. */
static void lend_passes(struct mcp_session *t)
{
	struct client *c = &t->m.session.client, *worker = &t->worker->session.client;
	struct arena *before = c->keyring.arena;

	c->keyring.arena = &t->passes;
	for (int kind = TYPED_NONE + 1; t->role == ROLE_ADMIN && c->conn.queue && kind < TYPED_END;
	     kind++)
		worker->conn.held[kind] = client_pass(c, (enum typed)kind, &t->passes);
	c->keyring.arena = before;
}

/* All sessions of a worker use its queue, one at a time. */
void mcp_session_lend(struct mcp_session *t)
{
	t->m.session.client.conn.queue = t->worker->session.client.conn.queue;
	t->m.session.client.conn.mode = t->worker->session.client.conn.mode;
	lend_passes(t);
}

void mcp_session_take_back(struct mcp_session *t)
{
	struct client *c = &t->worker->session.client;

	memset(c->conn.held, 0, sizeof(c->conn.held));
	arena_free(&t->passes);
	t->passes = (struct arena){ 0 };
	c->conn.queue = t->m.session.client.conn.queue;
	c->conn.mode = t->m.session.client.conn.mode;
	if (c->conn.queue) /* the session may have opened it */
		queue_pass_ctx(c->conn.queue, c);
	t->m.session.client.conn.queue = NULL;
	if (!c->conn.queue)
		t->worker->open = false; /* it failed: the next batch opens it again */
}

static void prepare_client(void *mcp_session, struct client *c)
{
	struct mcp_session *t = mcp_session;
	const char *dir = t->worker->serve->login.dir;

	c->self.role = t->role;
	c->self.only_queue = str_c(t->only);
	c->self.afar = true;
	c->keyring.dir = dir ? fs_join(c->arena, str_c(dir), STR("mcp")) : NULL;
	/* two tokens never share a lock, even if their agents and runs have the same names */
	c->keyring.worktree = t->token;
}

static bool may_act_as(void *mcp_session, struct str agent)
{
	const struct mcp_session *t = mcp_session;
	struct bearer b = { .agent = t->agents };

	return bearer_names(&b, agent);
}

/* The loop counts the calls when it gets the answer. A JSON-RPC batch has several calls. */
static void note_call(void *mcp_session, void *via, const struct command *tool, enum result code)
{
	struct job *j = via;

	(void)mcp_session;
	j->made = mem_grow(j->made, (j->made_n + 1) * sizeof(*j->made));
	j->made[j->made_n++] = (struct made){ tool, code };
}

/* --- answers ---------------------------------------------------------------------------------------- */

static void session_forget(struct mcp_session *t, struct job *j)
{
	struct job **at = &t->open;

	while (*at && *at != j)
		at = &(*at)->post->next;
	if (*at) {
		*at = j->post->next;
		t->m.streams--;
	}
	j->post->open = false;
}

/* A session's notifications go to its newest stream. */
static struct job *stream_of(const struct mcp_session *t)
{
	struct job *j = t->open;

	while (j && j->post->kind != POST_LISTEN)
		j = j->post->next;
	return j;
}

static void send_event(struct job *j, struct str message, bool last)
{
	struct buf b = BUF_MAX(SIZE_MAX / 4);

	j->post->streaming = true;
	buf_adds(&b, STR("event: message\ndata: "));
	buf_adds(&b, message);
	buf_adds(&b, STR("\n\n"));
	endpoint_send(j, buf_str(&b), last);
	buf_free(&b);
}

static void send_message(void *mcp_session, struct str message)
{
	struct mcp_session *t = mcp_session;
	const struct mcp_out *out = &t->m.out;
	struct job *j = out->via ? out->via : stream_of(t);
	struct client *c = &t->m.session.client;

	if (!j)
		return; /* no stream is open */
	if (out->last) {
		j->post->granted = c->granted;
		c->granted = NULL;
	}
	if (!out->last) {
		if (j->post->streams)
			send_event(j, message, false);
	} else if (j->post->streaming) {
		session_forget(t, j);
		send_event(j, message, true);
	} else {
		j->status = protocol_version_status(j->post->modern, out->error);
		buf_adds(&j->answer, message);
		answers_made(j);
		if (j != t->asking) {
			session_forget(t, j);
			worker_answer(j);
		}
	}
}

/* Ends an exchange without an answer. */
void mcp_session_hang_up(struct mcp_session *t, struct job *j)
{
	session_forget(t, j);
	if (j->post->streaming)
		endpoint_send(j, STR(""), true);
	else
		worker_answer(j); /* its status is 0 */
}

/* --- sessions --------------------------------------------------------------------------------------- */

void mcp_session_free(struct mcp_session *t)
{
	struct mcp_session **at = &t->worker->mcp_sessions;

	while (*at != t)
		at = &(*at)->next;
	*at = t->next;
	while (t->open) {
		mcp_gone(&t->m, t->open);
		mcp_session_hang_up(t, t->open);
	}
	if (t->m.session.client.granted)
		client_delivered(t->m.session.client.granted, false);
	mcp_close(&t->m, false);
	arena_free(&t->arena);
	free(t);
}

static struct mcp_options options_of(struct mcp_session *t, const struct post *p, struct str run)
{
	struct mcp_options o = { .who = t->worker->serve->session->client.said,
				 .profile = arena_str(&t->arena, p->profile),
				 .max_hold = HOLD_MS,
				 .host = &t->host };

	if (*t->worker->queue)
		o.who.queue = str_c(t->worker->queue);
	o.who.face = CLIENT_PROGRAM;
	o.who.agent = arena_str(&t->arena, p->who.agent);
	o.who.run = arena_str(&t->arena, run);
	return o;
}

static struct mcp_session *mcp_session_new(struct worker *d, struct job *j, struct str key,
					   struct str run)
{
	const struct post *p = j->post;
	struct mcp_session *t = mem_alloc(sizeof(*t));
	struct mcp_options o;
	struct answer ans;

	*t = (struct mcp_session){ .worker = d, .caller = j->payer, .due = -1 };
	t->host = (struct mcp_host){ prepare_client, may_act_as, note_call, t };
	t->role = serve_role(d->serve, &j->caller);
	t->key = arena_str(&t->arena, key);
	t->agents = arena_str(&t->arena, str_c(j->caller.agents));
	t->hash = arena_cstr(&t->arena, p->who.token);
	t->only = j->caller.queue ? arena_cstr(&t->arena, str_c(j->caller.queue)) : "";
	t->token = arena_printf(&t->arena, "token %.*s", STRF(p->who.token));
	t->m = (struct mcp){
		.send = send_message, .ctx = t, .heard = os_boot_ms(), .memory = &t->caller->memory
	};
	o = options_of(t, p, run);
	if (mcp_open(&t->m, &o, &ans, &j->post->arena) != SUCCESS) {
		job_fail(j, &ans);
		arena_free(&t->arena);
		free(t);
		return NULL;
	}
	t->next = d->mcp_sessions;
	d->mcp_sessions = t;
	mcp_session_lend(t);
	keeper_restore(&t->m);
	mcp_session_take_back(t);
	return t;
}

/* The run of a caller: the name that it gave, else its session, else its token. */
static struct str run_of(const struct job *j, struct arena *a)
{
	const struct post *p = j->post;

	if (p->run.n)
		return p->run;
	return p->modern ? arena_printf(a, "mcp:%s", j->caller.name) : p->session_id.run;
}

static struct str key_of(const struct job *j, struct arena *a)
{
	const struct post *p = j->post;

	return arena_printf(a, "%s\n%s\n%.*s\n%.*s\n%.*s",
			    arena_cstr(a, p->modern ? STR("") : p->session_id.run),
			    arena_cstr(a, run_of(j, a)), STRF(p->who.token), STRF(p->who.agent),
			    STRF(p->profile));
}

static struct mcp_session *mcp_session_find(const struct worker *d, struct str key)
{
	struct mcp_session *t = d->mcp_sessions;

	while (t && !str_eq(t->key, key))
		t = t->next;
	return t;
}

/* NULL: the job is refused. */
static struct mcp_session *mcp_session_of(struct worker *d, struct job *j)
{
	struct post *p = j->post;
	struct str key = key_of(j, &p->arena);
	struct mcp_session *t = mcp_session_find(d, key);

	if (!t && !mcp_session_make_room(d, j->payer))
		job_refuse(j, 503, API_ERROR, STR("the server has too many MCP sessions in use"),
			   STR(""), "");
	else if (!t)
		t = mcp_session_new(d, j, key, run_of(j, &p->arena));
	if (t && !p->modern)
		t->m.legacy = p->session_id.version;
	return t;
}

/* --- requests --------------------------------------------------------------------------------------- */

static void set_json(struct job *j, int status, json_t *o)
{
	j->status = status;
	json_write(o, &j->answer);
	json_decref(o);
}

/* Keeps the exchange of a call that waits or listens. */
static void keep_open(struct mcp_session *t, struct job *j)
{
	j->post->open = true;
	j->post->next = t->open;
	t->open = j;
	t->m.streams++;
	if (j->post->streams && !j->post->streaming) {
		j->post->streaming = true;
		endpoint_send(j, STR(": \n\n"), false); /* the client sees that it was heard */
	}
}

/* Closes the exchanges whose calls were cancelled. */
static void drop_cancelled(struct mcp_session *t)
{
	for (struct job *j = t->open, *next; j; j = next) {
		next = j->post->next;
		if (j->post->kind == POST_MESSAGE && !mcp_is_open(&t->m, j))
			mcp_session_hang_up(t, j);
	}
}

static void name_session(struct mcp_session *t, struct job *j)
{
	struct post *p = j->post;

	if (t->m.legacy && !t->m.out.error)
		p->session = session_id_make(&t->worker->serve->session_ids, &p->who,
					     p->session_id.run, t->m.legacy, &p->arena);
}

static bool is_method(const json_t *message, const char *method)
{
	return str_is(json_get(message, "method"), method);
}

/* true: the job has its answer. */
static bool session_tell(struct worker *d, struct job *j, json_t *message)
{
	struct post *p = j->post;
	bool begins = !p->modern && is_method(message, "initialize");
	struct mcp_session *t;

	if (p->modern && !json_object_get(message, "id")) {
		j->status = 202; /* the end of its exchange cancels a call, not a notification */
		return true;
	}
	if (begins)
		p->session_id = (struct session_id){ .run = session_id_begin(&p->arena) };
	t = mcp_session_of(d, j);
	if (!t)
		return true;
	mcp_session_lend(t);
	t->asking = j;
	t->m.hurried = !j->parked;
	mcp_take(&t->m, j, message);
	t->asking = NULL;
	mcp_session_take_back(t);
	drop_cancelled(t);
	t->due = os_boot_ms();
	if (begins)
		name_session(t, j);
	if (j->status)
		return true;
	if (!mcp_is_open(&t->m, j)) {
		j->status = 202;
		return true;
	}
	keep_open(t, j);
	return false;
}

static bool hear_message(struct worker *d, struct job *j)
{
	json_error_t e;
	json_t *message = json_loadb(str_p(buf_str(&j->body)), j->body.n,
				     JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL | JSON_DECODE_ANY, &e),
	       *error;
	bool done = true;
	int status;

	if (!message) {
		set_json(j, 400, mcp_error(NULL, RPC_PARSE, STR("this is not JSON"), NULL));
		return true;
	}
	j->parts = json_array_size(message);
	if (j->parts > BATCH_MAX) /* none of the calls is made */
		j->parts = BATCH_MAX;
	j->post->modern = protocol_version_is_modern(j->post, message);
	status = protocol_version_check(j->post, message, &error);
	if (status)
		set_json(j, status, error);
	else if (is_method(message, "subscriptions/listen") && !j->post->streams)
		job_refuse(j, 406, USAGE,
			   STR("subscriptions/listen answers with text/event-stream"), STR(""), "");
	else
		done = session_tell(d, j, message);
	json_decref(message);
	return done;
}

static bool session_hear(struct worker *d, struct job *j)
{
	struct arena memory = answers_arena(j, JSON_ROOM);
	bool done = !answers_body(j, &memory) || hear_message(d, j);

	arena_free(&memory);
	return done;
}

bool mcp_session_run(struct worker *d, struct job *j)
{
	struct mcp_session *t;

	d->in_session = true; /* until mcp_sessions_check() */
	if (j->post->kind == POST_MESSAGE && answers_room(j) < MESSAGE_MAX) {
		answers_refuse(j); /* before the call is made, because its answer may be long */
		return true;
	}
	if (j->post->kind == POST_MESSAGE)
		return session_hear(d, j);
	if (j->post->kind == POST_END) {
		t = mcp_session_find(d, key_of(j, &j->post->arena));
		if (t)
			mcp_session_free(t);
		j->status = 204;
		return true;
	}
	t = mcp_session_of(d, j);
	if (!t)
		return true;
	t->m.heard = os_boot_ms();
	t->due = os_boot_ms();
	keep_open(t, j);
	return false;
}

struct job *mcp_sessions_settle(struct job *list)
{
	struct job *rest = NULL, **last = &rest;

	for (struct job *j = list, *next; j; j = next) {
		next = j->next;
		if (j->kind == JOB_SETTLE) {
			client_delivered(j->post->granted, j->post->arrived);
			j->post->granted = NULL;
			job_free(j);
			continue;
		}
		*last = j;
		last = &j->next;
	}
	*last = NULL;
	return rest;
}

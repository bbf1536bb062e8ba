/*
 * The desk's part of MCP over HTTP. A seat is one struct mcp: of a session, or of a caller without sessions (token, agent
 * and run). It can be dropped and made again at any time, because all that must last is in the store, in the keyring and
 * in the id of the session.
 */
#include "face/serve/mcp_http.h"

#include <stdlib.h>

#include "base/fs.h"
#include "base/os.h"
#include "format/json_write.h"
#include "client/queue_lock.h"

#define RETRY_MS 1000
#define IDLE_MS (INT64_C(10) * 60 * 1000)
#define HOLD_MS (INT64_C(3600) * 1000)

struct seat {
	struct seat *next;
	struct desk *desk;
	struct str key;
	struct arena arena;
	struct mcp m;
	struct mcp_host host;
	struct str agents, token;
	const char *hash, *only; /* of the token: its hash; its only queue, or empty */
	struct meter *caller;
	enum role role;
	struct job *open; /* exchanges that are not answered yet */
	struct arena passes;
	int64_t due;              /* when to look again, in boot time; -1: never */
	bool untold;              /* this round has not looked at it yet */
	const struct job *asking; /* the job that is being run: its answer is not sent from here */
};

/* --- the queue of the desk -------------------------------------------------------------------------- */

/* The queue asks its desk for the locks of the whole queue that the caller holds. Only an admin can hold one. */
static void lend_passes(struct seat *t)
{
	struct client *c = &t->m.session.client, *desk = &t->desk->session.client;
	struct arena *before = c->keyring.arena;

	c->keyring.arena = &t->passes;
	for (int kind = TYPED_NONE + 1; t->role == ROLE_ADMIN && c->conn.queue && kind < TYPED_END;
	     kind++)
		desk->conn.held[kind] = client_pass(c, (enum typed)kind, &t->passes);
	c->keyring.arena = before;
}

/* All seats of a desk use its queue, one at a time. */
static void lend(struct seat *t)
{
	t->m.session.client.conn.queue = t->desk->session.client.conn.queue;
	t->m.session.client.conn.mode = t->desk->session.client.conn.mode;
	lend_passes(t);
}

static void take_back(struct seat *t)
{
	struct client *c = &t->desk->session.client;

	memset(c->conn.held, 0, sizeof(c->conn.held));
	arena_free(&t->passes);
	t->passes = (struct arena){ 0 };
	c->conn.queue = t->m.session.client.conn.queue;
	c->conn.mode = t->m.session.client.conn.mode;
	if (c->conn.queue) /* the seat may have opened it */
		queue_pass_ctx(c->conn.queue, c);
	t->m.session.client.conn.queue = NULL;
	if (!c->conn.queue)
		t->desk->open = false; /* it failed: the next turn opens it again */
}

static void prepare_client(void *seat, struct client *c)
{
	struct seat *t = seat;
	const char *dir = t->desk->serve->access.dir;

	c->self.role = t->role;
	c->self.only_queue = str_c(t->only);
	c->self.afar = true;
	c->keyring.dir = dir ? fs_join(c->arena, str_c(dir), STR("mcp")) : NULL;
	/* two tokens never share a lock, even if their agents and runs have the same names */
	c->keyring.worktree = t->token;
}

static bool may_act_as(void *seat, struct str agent)
{
	const struct seat *t = seat;
	struct bearer b = { .agent = t->agents };

	return bearer_names(&b, agent);
}

/* The loop counts the calls when it has the answer. A batch has several. */
static void note_call(void *seat, void *via, const struct command *tool, enum result code)
{
	struct job *j = via;

	(void)seat;
	j->made = mem_grow(j->made, (j->made_n + 1) * sizeof(*j->made));
	j->made[j->made_n++] = (struct made){ tool, code };
}

/* --- answers ---------------------------------------------------------------------------------------- */

static void session_forget(struct seat *t, struct job *j)
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

/* Notifications of a session go to its newest stream. */
static struct job *stream_of(const struct seat *t)
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

static void send_message(void *seat, struct str message)
{
	struct seat *t = seat;
	const struct mcp_out *out = &t->m.out;
	struct job *j = out->via ? out->via : stream_of(t);
	struct client *c = &t->m.session.client;

	if (!j)
		return; /* nobody listens */
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
		j->status = era_status(j->post->modern, out->error);
		buf_adds(&j->answer, message);
		answers_made(j);
		if (j != t->asking) {
			session_forget(t, j);
			desk_answer(j);
		}
	}
}

/* Ends an exchange without an answer. */
static void hang_up(struct seat *t, struct job *j)
{
	session_forget(t, j);
	if (j->post->streaming)
		endpoint_send(j, STR(""), true);
	else
		desk_answer(j); /* its status is 0 */
}

/* --- seats ------------------------------------------------------------------------------------------ */

static void seat_free(struct seat *t)
{
	struct seat **at = &t->desk->seats;

	while (*at != t)
		at = &(*at)->next;
	*at = t->next;
	while (t->open) {
		mcp_gone(&t->m, t->open);
		hang_up(t, t->open);
	}
	if (t->m.session.client.granted)
		client_delivered(t->m.session.client.granted, false);
	mcp_close(&t->m, false);
	arena_free(&t->arena);
	free(t);
}

static bool is_idle(const struct seat *t, int64_t ms)
{
	int64_t silent = os_boot_ms() - t->m.heard;

	/* a subscription without a stream does not keep its seat for ever */
	return !t->open && !t->m.held && silent >= (t->m.subscriptions ? IDLE_MS : ms);
}

static size_t seats_of(const struct desk *d, const struct meter *caller)
{
	size_t n = 0;

	for (const struct seat *t = d->seats; t; t = t->next)
		n += t->caller == caller;
	return n;
}

/* The session of the caller with the most sessions that has been silent for the longest time. NULL: nobody has more than
 * `caller` would have. */
static struct seat *largest_loses(struct desk *d, const struct meter *caller)
{
	size_t most = seats_of(d, caller) + 1;
	struct seat *best = NULL;

	for (struct seat *t = d->seats; t; t = t->next) {
		size_t n = seats_of(d, t->caller);

		if (n > most || (best && n == most && t->m.heard < best->m.heard)) {
			best = t;
			most = n;
		}
	}
	return best;
}

/* Makes room for one seat of the caller. An idle one can be made again at any time. If none is idle, the caller with the
 * most seats loses one, so that nobody can occupy them all. false: that is this caller. */
static bool make_room(struct desk *d, const struct meter *caller)
{
	struct seat *oldest = NULL;
	int64_t n = 0;

	for (struct seat *t = d->seats; t; t = t->next, n++)
		if (is_idle(t, 0) && (!oldest || t->m.heard < oldest->m.heard))
			oldest = t;
	if (n < d->serve->sessions_max)
		return true;
	if (!oldest)
		oldest = largest_loses(d, caller);
	if (oldest)
		seat_free(oldest);
	return oldest;
}

static void mcp_sessions_sweep(struct desk *d)
{
	for (struct seat *t = d->seats, *next; t; t = next) {
		next = t->next;
		if (is_idle(t, IDLE_MS))
			seat_free(t);
	}
}

static struct mcp_options options_of(struct seat *t, const struct post *p, struct str run)
{
	struct mcp_options o = { .who = t->desk->serve->session->client.said,
				 .profile = arena_str(&t->arena, p->profile),
				 .max_hold = HOLD_MS,
				 .host = &t->host };

	if (*t->desk->queue)
		o.who.queue = str_c(t->desk->queue);
	o.who.face = CLIENT_PROGRAM;
	o.who.agent = arena_str(&t->arena, p->who.agent);
	o.who.run = arena_str(&t->arena, run);
	return o;
}

static struct seat *seat_new(struct desk *d, struct job *j, struct str key, struct str run)
{
	const struct post *p = j->post;
	struct seat *t = mem_alloc(sizeof(*t));
	struct mcp_options o;
	struct answer ans;

	*t = (struct seat){ .desk = d, .caller = j->payer, .due = -1 };
	t->host = (struct mcp_host){ prepare_client, may_act_as, note_call, t };
	t->role = d->serve->read_only ? ROLE_READER : j->caller.role;
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
	t->next = d->seats;
	d->seats = t;
	lend(t);
	keeper_restore(&t->m);
	take_back(t);
	return t;
}

/* The run of a caller: its own name for it, else its session, else its token. */
static struct str run_of(const struct job *j, struct arena *a)
{
	const struct post *p = j->post;

	if (p->run.n)
		return p->run;
	return p->modern ? arena_printf(a, "mcp:%s", j->caller.name) : p->visit.run;
}

static struct str key_of(const struct job *j, struct arena *a)
{
	const struct post *p = j->post;

	return arena_printf(a, "%s\n%s\n%.*s\n%.*s\n%.*s",
			    arena_cstr(a, p->modern ? STR("") : p->visit.run),
			    arena_cstr(a, run_of(j, a)), STRF(p->who.token), STRF(p->who.agent),
			    STRF(p->profile));
}

static struct seat *seat_find(const struct desk *d, struct str key)
{
	struct seat *t = d->seats;

	while (t && !str_eq(t->key, key))
		t = t->next;
	return t;
}

/* NULL: the job is refused. */
static struct seat *seat_of(struct desk *d, struct job *j)
{
	struct post *p = j->post;
	struct str key = key_of(j, &p->arena);
	struct seat *t = seat_find(d, key);

	if (!t && !make_room(d, j->payer))
		job_refuse(j, 503, API_ERROR, STR("the server has too many MCP sessions in use"),
			   STR(""), "");
	else if (!t)
		t = seat_new(d, j, key, run_of(j, &p->arena));
	if (t && !p->modern)
		t->m.legacy = p->visit.version;
	return t;
}

/* --- requests --------------------------------------------------------------------------------------- */

static void set_json(struct job *j, int status, json_t *o)
{
	j->status = status;
	json_write(o, &j->answer);
	json_decref(o);
}

/* Keeps the exchange of a call that waits, or that listens. */
static void keep_open(struct seat *t, struct job *j)
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
static void drop_cancelled(struct seat *t)
{
	for (struct job *j = t->open, *next; j; j = next) {
		next = j->post->next;
		if (j->post->kind == POST_MESSAGE && !mcp_is_open(&t->m, j))
			hang_up(t, j);
	}
}

static void name_session(struct seat *t, struct job *j)
{
	struct post *p = j->post;

	if (t->m.legacy && !t->m.out.error)
		p->session = visit_id(&t->desk->serve->visits, &p->who, p->visit.run, t->m.legacy,
				      &p->arena);
}

static bool is_method(const json_t *message, const char *method)
{
	return str_is(json_get(message, "method"), method);
}

/* true: the job has its answer. */
static bool session_tell(struct desk *d, struct job *j, json_t *message)
{
	struct post *p = j->post;
	bool begins = !p->modern && is_method(message, "initialize");
	struct seat *t;

	if (p->modern && !json_object_get(message, "id")) {
		j->status = 202; /* a call is cancelled by the end of its exchange */
		return true;
	}
	if (begins)
		p->visit = (struct visit){ .run = visit_begin(&p->arena) };
	t = seat_of(d, j);
	if (!t)
		return true;
	lend(t);
	t->asking = j;
	t->m.hurried = !j->parked;
	mcp_take(&t->m, j, message);
	t->asking = NULL;
	take_back(t);
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

static bool hear_message(struct desk *d, struct job *j)
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
	if (j->parts > BATCH_MAX) /* none of them is made */
		j->parts = BATCH_MAX;
	j->post->modern = era_is_modern(j->post, message);
	status = era_check(j->post, message, &error);
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

static bool session_hear(struct desk *d, struct job *j)
{
	struct arena memory = answers_arena(j, JSON_ROOM);
	bool done = !answers_body(j, &memory) || hear_message(d, j);

	arena_free(&memory);
	return done;
}

bool seat_run(struct desk *d, struct job *j)
{
	struct seat *t;

	d->seated = true; /* until seats_look() */
	if (j->post->kind == POST_MESSAGE && answers_room(j) < MESSAGE_MAX) {
		answers_refuse(j); /* before the call is made: its answer may be long */
		return true;
	}
	if (j->post->kind == POST_MESSAGE)
		return session_hear(d, j);
	if (j->post->kind == POST_END) {
		t = seat_find(d, key_of(j, &j->post->arena));
		if (t)
			seat_free(t);
		j->status = 204;
		return true;
	}
	t = seat_of(d, j);
	if (!t)
		return true;
	t->m.heard = os_boot_ms();
	t->due = os_boot_ms();
	keep_open(t, j);
	return false;
}

struct job *seats_settle(struct job *list)
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

/* --- due work --------------------------------------------------------------------------------------- */

/* A caller that went away must not get a task any more. */
static void drop_gone(struct seat *t)
{
	for (struct job *j = t->open, *next; j; j = next) {
		next = j->post->next;
		if (job_is_gone(j)) {
			mcp_gone(&t->m, j);
			hang_up(t, j);
		}
	}
}

static void session_due_check(struct seat *t, bool changed)
{
	int64_t left;

	drop_gone(t);
	if (changed && (t->m.waiting || t->m.subscriptions))
		t->m.changed = true;
	else if (t->due < 0 || t->due > os_boot_ms())
		return;
	/* no task for a token that was revoked, and no renewal of its locks */
	if (!access_desk_holds(t->desk, t->hash)) {
		seat_free(t);
		return;
	}
	lend(t);
	left = mcp_tick(&t->m);
	take_back(t);
	t->due = left < 0 ? -1 : os_boot_ms() + left;
}

/* The store is out of reach. */
static void put_off(struct seat *t)
{
	drop_gone(t);
	if (t->due >= 0 && t->due < os_boot_ms() + RETRY_MS)
		t->due = os_boot_ms() + RETRY_MS;
}

/* The loop closes a queue only if no session is in use. */
static void note_use(struct desk *d)
{
	bool used = false;

	for (const struct seat *t = d->seats; t; t = t->next)
		used |= t->open || t->m.held || t->m.subscriptions || t->m.waiting;
	d->seated = used;
}

static void begin_round(struct desk *d)
{
	for (const struct seat *t = d->seats; t; t = t->next)
		if (t->untold)
			return; /* the last one is not over */
	for (struct seat *t = d->seats; t; t = t->next)
		t->untold = true;
	d->round_changed = d->seats_changed;
	d->seats_changed = false;
}

/* Looks at each session once in a round. A round takes as many turns as it needs, so that many sessions of one caller do not
 * keep the others waiting. d->untold: the next turn has to go on. */
void seats_look(struct desk *d, bool changed)
{
	struct answer ans = { 0 };
	struct arena a = { 0 };
	struct seat *t = d->seats, *next;

	d->seats_changed |= changed;
	begin_round(d);
	d->turn_began = os_boot_ms();
	for (; t && !desk_share_is_over(d); t = next) {
		next = t->next;
		if (!t->untold)
			continue;
		t->untold = false;
		if (desk_open(d, &ans, &a))
			session_due_check(t, d->round_changed);
		else
			put_off(t);
	}
	d->untold = t || (d->seats && d->seats_changed);
	arena_free(&a);
	mcp_sessions_sweep(d);
	note_use(d);
}

int64_t seats_next(const struct desk *d)
{
	int64_t now = os_boot_ms(), left = -1;

	for (const struct seat *t = d->seats; t; t = t->next) {
		int64_t due = t->due > now ? t->due - now : 0;

		if (t->due >= 0 && (left < 0 || due < left))
			left = due;
	}
	return left;
}

bool seats_await(const struct desk *d)
{
	for (const struct seat *t = d->seats; t; t = t->next)
		if (t->m.waiting || t->m.subscriptions)
			return true;
	return false;
}

void seats_drain(struct desk *d)
{
	for (struct seat *t = d->seats, *next; t; t = next) {
		next = t->next;
		if (!access_desk_holds(d, t->hash)) {
			seat_free(t);
			continue;
		}
		lend(t);
		wait_hurry(&t->m);
		subscriptions_end(&t->m);
		take_back(t);
		while (t->open)
			hang_up(t, t->open);
	}
}

void seats_end(struct desk *d)
{
	while (d->seats)
		seat_free(d->seats);
}

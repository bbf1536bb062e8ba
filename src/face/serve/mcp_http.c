/*
 * The loop's part of MCP over HTTP: reads headers, sends answers and event streams. It never
 * touches a session: the worker owns it. A stream ends with its token.
 */
#include <stdlib.h>

#include "base/os.h"
#include "base/secret.h"
#include "face/serve/mcp_http.h"

#define PING_MS 15000
#define PING STR(": \n\n")

void post_free(struct post *p)
{
	if (!p)
		return;
	if (p->granted)
		client_delivered(p->granted, false);
	arena_free(&p->arena);
	free(p);
}

/* --- the request ------------------------------------------------------------------------------------ */

/* Is the type in the Accept header? Without that header the client accepts everything. */
static bool endpoint_accepts(const struct http_request *r, const char *type)
{
	struct str list = http_header(r->headers, "accept");

	if (!http_has_header(r->headers, "accept"))
		return true;
	while (list.n) {
		struct str one = str_cut(&list, ','), name = str_trim(str_cut(&one, ';')),
			   half = name;

		if (str_eq_nocase(name, str_c(type)) || str_is(name, "*/*"))
			return true;
		if (str_ends(half, STR("/*")) && !strncasecmp(half.p, type, half.n - 1))
			return true;
	}
	return false;
}

static bool take_header(const struct http_request *r, const char *name, struct str *out,
			struct arena *a)
{
	*out = arena_str(a, http_header(r->headers, name));
	return http_has_header(r->headers, name);
}

static void take_headers(const struct http_request *r, struct post *p)
{
	p->has_version = take_header(r, "mcp-protocol-version", &p->version, &p->arena);
	p->has_method = take_header(r, "mcp-method", &p->method, &p->arena);
	p->has_name = take_header(r, "mcp-name", &p->name, &p->arena);
	p->has_session = http_has_header(r->headers, "mcp-session-id");
	p->streams = endpoint_accepts(r, "text/event-stream");
}

/* Reads agent, run and profile from the query. false: the request is refused. */
static bool take_names(struct serve *s, struct http_exchange *x, const struct http_caller *c,
		       struct post *p)
{
	struct str query = http_request_of(x)->query, agent;
	const char *why = NULL;

	if (!route_query(query, "agent", &agent, &p->arena) ||
	    (agent.n && !caller_good_name(agent)))
		why = "agent= is not a valid agent name";
	else if (!route_query(query, "run", &p->run, &p->arena) ||
		 (p->run.n && !caller_good_name(p->run)))
		why = "run= is not a valid run name";
	else if (!route_query(query, "profile", &p->profile, &p->arena) ||
		 (p->profile.n && !str_is(str_c(profile_find(p->profile)->name),
					  arena_cstr(&p->arena, p->profile))))
		why = "profile= is agent, pm or all";
	if (why) {
		route_refuse(x, 400, why, "");
		return false;
	}
	if (!caller_agent(s, c, agent, &p->who.agent, &why)) {
		route_refuse(x, agent.n ? 403 : 400,
			     agent.n ? why
				     : "the token allows several agent names: add ?agent=NAME",
			     "");
		return false;
	}
	p->who.agent = arena_str(&p->arena, p->who.agent);
	p->who.token = arena_str(&p->arena, str_c(c->hash));
	return true;
}

/* Finds the session; the queue must be known. */
static bool take_session(struct serve *s, struct http_exchange *x, struct worker *d, struct post *p)
{
	struct str id = http_header(http_request_of(x)->headers, "mcp-session-id");
	int r = session_ids_open(&s->session_ids, s->login.dir);

	if (r) {
		say_line("cannot use %s/mcp-key: %s", s->login.dir, strerror(-r));
		route_refuse(x, 500, "the server cannot keep sessions: see its log", "");
		return false;
	}
	p->who.queue = arena_str(&p->arena, str_c(d->queue));
	p->knows_session = p->has_session &&
			   session_id_find(&s->session_ids, &p->who, id, &p->session_id, &p->arena);
	return true;
}

static bool is_json(const struct http_request *r)
{
	struct str type = http_header(r->headers, "content-type");

	return str_eq_nocase(str_trim(str_cut(&type, ';')), STR("application/json"));
}

/* The status with which a GET or DELETE is refused; 0: it has a valid session. */
static int no_session(const struct post *p, const char **why)
{
	*why = p->has_session
		       ? "the server does not recognise this session; begin a new one with initialize"
		       : "the header MCP-Session-Id is missing";
	return p->knows_session ? 0 : p->has_session ? 404 : 400;
}

/* Does the request ask for a stream? The header suffices: a message of the modern protocol version
 * is refused if its method differs from the header, and older clients do not have this method. */
static bool endpoint_listens(const struct post *p)
{
	return p->kind == POST_LISTEN ||
	       (p->kind == POST_MESSAGE && str_is(p->method, "subscriptions/listen"));
}

/* Can the request be handed to its worker? false: it has its answer. */
static bool endpoint_prepare(struct serve *s, struct http_exchange *x, struct http_caller *c,
			     struct worker *d, struct post *p)
{
	const char *why;
	int status;

	if (!take_session(s, x, d, p))
		return false;
	status = p->kind == POST_MESSAGE ? 0 : no_session(p, &why);
	if (!status && endpoint_listens(p) && c->meter->streams >= s->streams_max) {
		status = 429;
		why = "this token has too many event streams open";
	}
	if (!status && p->kind == POST_END && session_id_end(&s->session_ids, p->session_id.run)) {
		status = 500;
		why = "the server cannot record the end of the session";
	}
	if (status)
		route_refuse(x, status, why, "");
	return !status;
}

/* Finds the kind of request by the HTTP method. false: the request is refused. */
static bool take_method(struct http_exchange *x, struct post *p)
{
	const struct http_request *r = http_request_of(x);

	if (str_is(r->method, "POST"))
		p->kind = POST_MESSAGE;
	else if (str_is(p->version, MCP_MODERN) ||
		 (!str_is(r->method, "GET") && !str_is(r->method, "DELETE"))) {
		route_refuse_method(x,
				    str_is(p->version, MCP_MODERN) ? "POST" : "GET, POST, DELETE");
		return false;
	} else {
		p->kind = str_is(r->method, "GET") ? POST_LISTEN : POST_END;
	}
	if (p->kind == POST_MESSAGE && !is_json(r))
		route_refuse(x, 415, "the content type must be application/json", "");
	else if (p->kind == POST_MESSAGE ? !endpoint_accepts(r, "application/json")
					 : p->kind == POST_LISTEN && !p->streams)
		route_refuse(x, 406, "Accept must have application/json and text/event-stream", "");
	else
		return true;
	return false;
}

void endpoint_serve(struct serve *s, struct http_exchange *x, struct http_caller *c)
{
	struct post *p;
	struct worker *d;
	struct job *j;

	if (s->args->board) {
		route_refuse(x, 404, "this board does not serve MCP", "use `pawl serve`");
		return;
	}
	p = mem_alloc(sizeof(*p));
	*p = (struct post){ 0 };
	take_headers(http_request_of(x), p);
	if (take_method(x, p) && take_names(s, x, c, p) && (d = route_worker(s, x, c)) &&
	    endpoint_prepare(s, x, c, d, p)) {
		j = job_new(JOB_MCP, x, c);
		j->post = p;
		p->counted = endpoint_listens(p);
		j->caller.meter->streams += p->counted;
		s->counts.streams += p->counted;
		route_hand_over(s, x, d, j, p->kind == POST_MESSAGE && !p->counted);
		return;
	}
	post_free(p);
}

/* --- answers ---------------------------------------------------------------------------------------- */

/* Ends the exchange. If its answer gave a lock, the worker learns whether the answer arrived. */
static void endpoint_finish(struct job *j, bool arrived)
{
	struct post *p = j->post;
	struct worker *d = j->worker;

	counts_job(d->serve, j);
	job_charge(j);
	job_unpark(j);
	http_timer_cancel(p->ping);
	p->ping = NULL;
	if (p->counted) {
		j->caller.meter->streams--;
		d->serve->counts.streams--;
	}
	if (!p->granted) {
		job_free(j);
		return;
	}
	p->arrived = arrived;
	j->kind = JOB_SETTLE;
	j->exchange = NULL;
	j->status = 0;
	j->gone = false;
	worker_put(d, j); /* the worker may have freed the job already */
	d->jobs--;
}

void endpoint_done(struct serve *s, struct job *j)
{
	struct http_header extra[] = { { STR("Cache-Control"), STR("no-store") },
				       { STR("MCP-Session-Id"), j->post->session } };
	bool arrived = j->status && !http_gone(j->exchange) && !j->answer.full;

	(void)s;
	if (!j->status)
		http_drop(j->exchange);
	else if (j->answer.full)
		http_refuse(j->exchange, 500, "the answer is too long: use a limit");
	else
		answers_send(j,
			     (struct http_headers){ extra, 1 + (size_t)(j->post->session.n > 0) });
	endpoint_finish(j, arrived);
}

/* --- streams ---------------------------------------------------------------------------------------- */

struct piece {
	struct job *job;
	struct buf text;
	bool last;
};

/* An open stream shows that the agent is alive, so it must end when its token is revoked. */
static void endpoint_ping(void *job)
{
	struct job *j = job;
	struct serve *s = j->worker->serve;

	j->post->ping = NULL;
	if (!serve_login_holds(s, &j->caller)) {
		worker_gone(j);
		return;
	}
	j->post->ping = http_timer_start(s->http, PING_MS, endpoint_ping, j);
	if (http_stream_send(j->exchange, PING) < 0)
		worker_gone(j);
}

static void endpoint_start(struct job *j)
{
	static const struct http_header extra[] = { { { "Cache-Control", 13 }, { "no-store", 8 } },
						    { { "X-Accel-Buffering", 17 }, { "no", 2 } } };

	j->post->started = true;
	http_stream_start(j->exchange, 200, "text/event-stream", (struct http_headers){ extra, 2 });
	j->post->ping = http_timer_start(j->worker->serve->http, PING_MS, endpoint_ping, j);
}

static void send_piece(void *piece)
{
	struct piece *e = piece;
	struct job *j = e->job;
	struct post *p = j->post;
	bool sent;

	if (!p->started && !http_gone(j->exchange))
		endpoint_start(j);
	sent = p->started && !p->broken && !http_gone(j->exchange) && !e->text.full &&
	       serve_login_holds(j->worker->serve, &j->caller) &&
	       http_stream_send(j->exchange, buf_str(&e->text)) >= 0;
	if (e->last) {
		struct worker *d = j->worker;

		if (p->started)
			http_stream_end(j->exchange);
		else
			http_drop(j->exchange);
		d->jobs--;
		endpoint_finish(j, sent);
	} else if (!sent && !p->broken) {
		p->broken = true;
		worker_gone(j);
	}
	buf_free(&e->text);
	free(e);
}

void endpoint_send(struct job *j, struct str text, bool last)
{
	struct piece *e = mem_alloc(sizeof(*e));

	*e = (struct piece){ .job = j, .text = BUF_MAX(ANSWER_MAX), .last = last };
	buf_adds(&e->text, text);
	http_server_post(j->worker->serve->http, send_piece, e);
}

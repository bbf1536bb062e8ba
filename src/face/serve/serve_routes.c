/*
 * From a request to its handler. Host and Origin, token, role and limits are checked first: no
 * handler runs for a caller that failed one of these checks.
 */
#include <stdlib.h>
#include <unistd.h>

#include "base/hex.h"
#include "base/os.h"
#include "base/text.h"
#include "core/role.h"
#include "face/serve/mcp_http.h"
#include "http/address.h"
#include "http/http_proof.h"

const char *const route_names[ROUTES] = { "other",   "command", "call",   "events", "openapi",
					  "metrics", "livez",   "readyz", "store",  "board",
					  "whoami",  "mcp",     "proof" };

enum route route_of(struct str path)
{
	static const struct {
		const char *path;
		enum route route;
	} fixed[] = {
		{ "/v1/call", ROUTE_CALL },
		{ "/v1/events", ROUTE_EVENTS },
		{ "/openapi.json", ROUTE_OPENAPI },
		{ "/metrics", ROUTE_METRICS },
		{ "/livez", ROUTE_LIVEZ },
		{ "/v1/store", ROUTE_STORE },
		{ "/readyz", ROUTE_READYZ },
		{ "/whoami", ROUTE_WHOAMI },
		{ "/mcp", ROUTE_MCP },
		{ PROOF_PATH, ROUTE_PROOF },
	};

	for (size_t i = 0; i < sizeof(fixed) / sizeof(*fixed); i++)
		if (str_is(path, fixed[i].path))
			return fixed[i].route;
	if (web_find(path))
		return ROUTE_WEB;
	return str_cut_prefix(&path, STR("/v1/")) && route_command(path) ? ROUTE_COMMAND
									 : ROUTE_OTHER;
}

const struct command *route_command(struct str name)
{
	for (size_t i = 0; commands[i]; i++) {
		const char *c = commands[i]->name;
		size_t k = 0;

		while (k < name.n && c[k] && (c[k] == ' ' ? '_' : c[k]) == name.p[k])
			k++;
		if (k == name.n && !c[k])
			return commands[i];
	}
	return NULL;
}

struct str route_address(const struct serve *s, const struct http_request *r)
{
	struct str hop = s->args->behind_proxy ? http_forwarded_for(r->headers) : STR("");

	return hop.n ? hop : r->address;
}

/* --- refusals ------------------------------------------------------------------------------------ */

static void refuse_with(struct http_exchange *x, int status, const char *reason, const char *hint,
			struct http_headers extra)
{
	struct buf b = BUF_MAX(8192);
	const char *code = status == 404                    ? "NOT_FOUND"
			   : status == 429 || status >= 500 ? "API_ERROR"
			   : status == 401 || status == 403 ? "MISCONFIGURED"
							    : "USAGE";

	say_error(&b, code, reason, hint,
		  status == 401   ? "unauthorized"
		  : status == 403 ? "forbidden"
				  : "");
	http_reply(x, status, "application/json", extra, buf_str(&b));
	buf_free(&b);
}

void route_refuse(struct http_exchange *x, int status, const char *reason, const char *hint)
{
	refuse_with(x, status, reason, hint, (struct http_headers){ 0 });
}

static void refuse_login(struct http_exchange *x, int status, const char *reason, int retry_s)
{
	char seconds[16];
	struct http_header h = { { "WWW-Authenticate", 16 }, STR("Bearer realm=\"pawl\"") };

	if (status != 401) {
		snprintf(seconds, sizeof(seconds), "%d", retry_s);
		h = (struct http_header){ { "Retry-After", 11 }, str_c(seconds) };
	}
	refuse_with(x, status, reason,
		    status == 401 ? "`pawl token create` on the server makes a token" : "",
		    (struct http_headers){ &h, 1 });
}

static void refuse_busy(struct http_exchange *x, const char *reason)
{
	struct http_header h = { { "Retry-After", 11 }, STR("1") };

	refuse_with(x, 503, reason, "", (struct http_headers){ &h, 1 });
}

void route_refuse_method(struct http_exchange *x, const char *allowed)
{
	struct http_header h = { { "Allow", 5 }, str_c(allowed) };
	char reason[120];

	snprintf(reason, sizeof(reason), "this path does not support %.*s; it supports %s",
		 STRF(http_request_of(x)->method), allowed);
	refuse_with(x, 405, reason, "", (struct http_headers){ &h, 1 });
}

/* --- the query ----------------------------------------------------------------------------------- */

/* Browsers write %C3, pawl %c3. */
static int percent_digit(char c)
{
	return hex_digit(c >= 'A' && c <= 'F' ? (char)(c - 'A' + 'a') : c);
}

static bool route_decode(struct str text, struct str *out, struct arena *a)
{
	char *to = arena_alloc(a, text.n + 1);
	size_t n = 0;

	for (size_t i = 0; i < text.n; i++) {
		char c = text.p[i] == '+' ? ' ' : text.p[i];

		if (c == '%') {
			if (i + 2 >= text.n || percent_digit(text.p[i + 1]) < 0 ||
			    percent_digit(text.p[i + 2]) < 0)
				return false;
			c = (char)(percent_digit(text.p[i + 1]) * 16 +
				   percent_digit(text.p[i + 2]));
			i += 2;
		}
		to[n++] = c;
	}
	*out = str_n(to, n);
	return !memchr(to, '\0', n) && text_valid(*out);
}

bool route_query(struct str query, const char *name, struct str *out, struct arena *a)
{
	bool found = false;

	*out = STR("");
	while (query.n) {
		struct str value = str_cut(&query, '&'), key = str_cut(&value, '=');

		if (!str_is(key, name))
			continue;
		if (found || !route_decode(value, out,
					   a)) /* two programs could read two values differently */
			return false;
		found = true;
	}
	return true;
}

static bool valid_queue(struct str name)
{
	for (size_t i = 0; i < name.n; i++)
		if ((unsigned char)name.p[i] < 0x20 || name.p[i] == 0x7f)
			return false;
	return name.n <= NAME_MAX_BYTES;
}

struct worker *route_worker(struct serve *s, struct http_exchange *x, const struct http_caller *c)
{
	struct arena a = { 0 };
	struct worker *d = NULL;
	struct str queue;

	if (!route_query(http_request_of(x)->query, "queue", &queue, &a) || !valid_queue(queue)) {
		route_refuse(x, 400, "queue= is not a valid queue name", "");
	} else if (c->queue && queue.n && !str_is(queue, c->queue)) {
		route_refuse(x, 403, "the token is for another queue", "");
	} else {
		d = worker_find(s, c->queue ? str_c(c->queue) : queue, c->meter);
		if (!d)
			refuse_busy(x, "the server has too many queues in use; try again later");
	}
	arena_free(&a);
	return d;
}

/* --- handlers ------------------------------------------------------------------------------------ */

static void peer_gone(struct http_exchange *x, void *job)
{
	(void)x;
	worker_gone(job);
}

/* A caller may let only some of its calls wait. Its other calls are answered at once. */
static void route_park(struct serve *s, struct job *j)
{
	if (j->caller.meter->waits >= s->waits_max)
		return;
	j->caller.meter->waits++;
	s->counts.waits++;
	j->parked = true;
}

void route_hand_over(struct serve *s, struct http_exchange *x, struct worker *d, struct job *j,
		     bool may_wait)
{
	buf_adds(&j->body, http_request_of(x)->body);
	j->worker = d;
	if (may_wait)
		route_park(s, j);
	/* a peer may close its side and still read the answer, so only calls that stay open depend
	 * on the peer */
	if (may_wait || j->kind == JOB_MCP)
		http_on_gone(x, peer_gone, j);
	worker_put(d, j);
}

static void serve_command(struct serve *s, struct http_exchange *x, struct http_caller *c)
{
	struct str name = http_request_of(x)->path;
	const struct command *command;
	struct arena a = { 0 };
	struct worker *d;
	struct job *j;

	(void)str_cut_prefix(&name, STR("/v1/"));
	command = route_command(name);
	if (command_local(command)) {
		route_refuse(x, 404,
			     arena_printf(&a, "`pawl %s` has no route: %s", command->name,
					  command_local(command))
				     .p,
			     "/openapi.json lists the routes");
	} else if (!str_is(http_request_of(x)->method, "POST")) {
		route_refuse_method(x, "POST");
	} else if (!serve_allows(s, c, command_role(command))) {
		route_refuse(x, 403,
			     s->read_only ? serve_read_only
					  : role_refusal(c->role, command_role(command), &a).p,
			     "");
	} else if ((d = route_worker(s, x, c))) {
		j = job_new(JOB_COMMAND, x, c);
		j->command = command;
		route_hand_over(s, x, d, j, command == &cmd_next);
	}
	arena_free(&a);
}

/* Is the request a POST of packed requests? If not, it is refused. */
static bool is_packed_post(struct http_exchange *x)
{
	const struct http_request *r = http_request_of(x);
	struct str type = http_header(r->headers, "content-type");

	if (!str_is(r->method, "POST"))
		route_refuse_method(x, "POST");
	else if (!str_eq_nocase(str_trim(str_cut(&type, ';')), STR(FRAME_TYPE)))
		route_refuse(x, 415, "the content type of packed requests is " FRAME_TYPE, "");
	else
		return true;
	return false;
}

static void serve_call(struct serve *s, struct http_exchange *x, struct http_caller *c)
{
	const struct http_request *r = http_request_of(x);
	struct str wait, all, try;
	struct arena a = { 0 };
	int64_t seconds = 0, attempt = 0;
	struct worker *d;
	struct job *j;
	size_t parts;

	if (!is_packed_post(x))
		return;
	if (!route_query(r->query, "wait", &wait, &a) ||
	    (wait.n && (!str_to_i64(wait, &seconds) || seconds < 0)))
		route_refuse(x, 400, "wait= is a number of seconds", "");
	else if (!route_query(r->query, "try", &try, &a) ||
		 (try.n && (!str_to_i64(try, &attempt) || attempt < 0)))
		route_refuse(x, 400, "try= is the number of the attempt", "");
	else if (!route_query(r->query, "all", &all, &a) || (all.n && !str_is(all, "1")))
		route_refuse(x, 400, "all= is 1", "");
	else if ((d = route_worker(s, x, c))) {
		parts = frame_count(r->body, FRAMES_MAX);
		serve_login_charge(c->meter, parts ? parts - 1 : 0);
		j = job_new(JOB_PACKED, x, c);
		j->all = all.n;
		j->attempt = attempt;
		seconds = seconds < WAIT_MAX_MS / 1000 ? seconds : WAIT_MAX_MS / 1000;
		if (seconds)
			attempts_begin(&j->wait, seconds * 1000);
		route_hand_over(s, x, d, j, seconds > 0);
	}
	arena_free(&a);
}

static void serve_store(struct serve *s, struct http_exchange *x, struct http_caller *c)
{
	const struct http_request *r = http_request_of(x);
	const struct store_call *call = NULL;
	struct arena a = { 0 };
	struct worker *d;
	struct job *j;
	struct str name;

	if (!is_packed_post(x))
		return;
	if (route_query(r->query, "do", &name, &a))
		call = store_find(name);
	if (!call) {
		route_refuse(x, 404, "do= does not name a function of a queue", "");
	} else if (!serve_allows(s, c, store_role(call))) {
		route_refuse(x, 403, role_refusal(serve_role(s, c), store_role(call), &a).p,
			     s->read_only ? serve_read_only : "");
	} else if ((d = route_worker(s, x, c))) {
		j = job_new(JOB_STORE, x, c);
		j->store = call;
		route_hand_over(s, x, d, j, false);
	}
	arena_free(&a);
}

static void serve_events(struct serve *s, struct http_exchange *x, struct http_caller *c)
{
	const struct http_request *r = http_request_of(x);
	struct arena a = { 0 };
	struct str wake;
	struct worker *d;

	if (!str_is(r->method, "GET"))
		route_refuse_method(x, "GET");
	else if (s->draining)
		route_refuse(x, 503, "the server is ending", "");
	else if (!route_query(r->query, "wake", &wake, &a) || (wake.n && !str_is(wake, "1")))
		route_refuse(x, 400, "wake= is 1", "");
	else if (wake.n && (c->meter->waits >= s->waits_max || http_crowded(x)))
		route_refuse(x, 429, "this token or this address waits for too many changes", "");
	else if (!wake.n && c->meter->streams >= s->streams_max)
		route_refuse(x, 429, "this token has too many event streams open", "");
	else if ((d = route_worker(s, x, c)))
		events_start(s, x, d, c, wake.n);
	arena_free(&a);
}

static void serve_file(struct http_exchange *x, const char *text)
{
	if (str_is(http_request_of(x)->method, "GET"))
		http_reply(x, 200, "application/json", (struct http_headers){ 0 }, str_c(text));
	else
		route_refuse_method(x, "GET");
}

static void to_handler(struct serve *s, struct http_exchange *x, struct http_caller *c)
{
	switch (route_of(http_request_of(x)->path)) {
	case ROUTE_COMMAND:
		serve_command(s, x, c);
		break;
	case ROUTE_CALL:
		serve_call(s, x, c);
		break;
	case ROUTE_STORE:
		serve_store(s, x, c);
		break;
	case ROUTE_EVENTS:
		serve_events(s, x, c);
		break;
	case ROUTE_METRICS:
		if (str_is(http_request_of(x)->method, "GET"))
			metrics_serve(s, x, c);
		else
			route_refuse_method(x, "GET");
		break;
	case ROUTE_WHOAMI:
		if (str_is(http_request_of(x)->method, "GET"))
			web_whoami(s, x, c);
		else
			route_refuse_method(x, "GET");
		break;
	case ROUTE_MCP:
		endpoint_serve(s, x, c);
		break;
	case ROUTE_OPENAPI:
		serve_file(x, s->openapi);
		break;
	default:
		route_refuse(x, 404, "the server has no such path",
			     "/openapi.json lists the routes");
	}
}

/* A process of the same user could open the store itself, so it needs no token on a Unix socket. */
static bool is_owner(const struct http_request *r)
{
	return r->local && (r->uid == geteuid() || r->uid == 0);
}

static int find_caller(struct serve *s, const struct http_request *r, struct http_caller *c,
		       const char **reason, int *retry_s)
{
	/* a proxy of the same user speaks for strangers */
	bool owner = r->local && !s->args->behind_proxy &&
		     !http_has_header(r->headers, "authorization");

	if (r->local && !is_owner(r)) {
		*reason = "this socket is for its owner";
		return 403;
	}
	return serve_login_check(s, r, route_address(s, r), owner, c, reason, retry_s);
}

/* --- callers that fail ----------------------------------------------------------------------------- */

#define SLOW_MS 1000

/* A refusal that is sent later. A peer that guesses tokens has to wait for it, and keeps a connection occupied until then. */
struct refusal {
	struct http_exchange *exchange;
	struct http_timer *timer;
	const char *reason;
	int retry_s;
};

static void refusal_send(void *refusal)
{
	struct refusal f = *(struct refusal *)refusal;

	free(refusal);
	refuse_login(f.exchange, 429, f.reason, f.retry_s);
}

static void refusal_drop(struct http_exchange *x, void *refusal)
{
	struct refusal *f = refusal;

	http_timer_cancel(f->timer);
	free(f);
	http_drop(x);
}

static void refuse_slowly(struct serve *s, struct http_exchange *x, const char *reason, int retry_s)
{
	struct refusal *f = mem_alloc(sizeof(*f));

	*f = (struct refusal){ x, NULL, reason, retry_s };
	f->timer = http_timer_start(s->http, SLOW_MS, refusal_send, f);
	http_keep(x);
	http_on_gone(x, refusal_drop, f);
}

/* Finds the caller, and a place for its connection. false: the request has been refused. */
static bool route_admit(struct serve *s, struct http_exchange *x, struct http_caller *c)
{
	const char *reason;
	int retry_s = 1, status = find_caller(s, http_request_of(x), c, &reason, &retry_s);

	if (!status && http_authenticate(x, &c->meter->party))
		return true;
	http_close_after(x);
	if (!status) {
		refuse_login(x, 503, "the server has too many connections", retry_s);
		return false;
	}
	(void)http_authenticate(x, NULL);
	if (status == 403)
		route_refuse(x, 403, reason, "");
	else if (status == 429)
		refuse_slowly(s, x, reason, retry_s);
	else
		refuse_login(x, status, reason, retry_s);
	return false;
}

static bool is_public(enum route route)
{
	return route == ROUTE_LIVEZ || route == ROUTE_READYZ || route == ROUTE_WEB ||
	       route == ROUTE_PROOF;
}

/* The server does not read a long body of an unknown caller. An import is one body, so only callers
 * that may import may send a body of that size. */
void route_head(struct http_exchange *x, void *serve)
{
	struct serve *s = serve;
	const struct http_request *r = http_request_of(x);
	enum route route = route_of(r->path);
	struct http_caller c = { 0 };
	const char *reason;
	int status;

	if (!http_arriving(x))
		return;
	status = http_guard_check(&s->guard, r, &reason);
	if (status)
		route_refuse(x, status, reason, "");
	else if (is_public(route))
		http_body_max(x, 0);
	else if (route_admit(s, x, &c) && route == ROUTE_STORE && role_allows(c.role, ROLE_ADMIN) &&
		 !s->read_only)
		http_body_max(x, BODY_MAX);
	caller_free(&c);
}

static void with_caller(struct serve *s, struct http_exchange *x)
{
	struct http_caller c = { 0 };
	int retry_s = 1;

	if (route_admit(s, x, &c)) {
		if (serve_login_spend(s, c.meter, &retry_s))
			to_handler(s, x, &c);
		else
			refuse_login(x, 429, "too many calls with this token", retry_s);
	}
	caller_free(&c);
	serve_login_note_uses(&s->login, false);
}

static void serve_health(struct serve *s, struct http_exchange *x, bool ready)
{
	bool ok = !ready || (s->ready && !http_server_draining(s->http));

	http_reply(x, ok ? 200 : 503, "application/json", (struct http_headers){ 0 },
		   ok ? STR("{\"ok\":true}\n") : STR("{\"ok\":false}\n"));
}

static void serve_web(struct http_exchange *x)
{
	const struct http_request *r = http_request_of(x);

	if (str_is(r->method, "GET") || str_is(r->method, "HEAD"))
		web_serve(x, web_find(r->path));
	else
		route_refuse_method(x, "GET, HEAD");
}

void route_request(struct http_exchange *x, void *serve)
{
	struct serve *s = serve;
	const struct http_request *r = http_request_of(x);
	enum route route = route_of(r->path);
	struct http_guard guard = s->guard;
	const char *reason;
	int status;

	guard.links = route == ROUTE_WEB; /* browser_open() makes a page that links here */
	status = http_guard_check(&guard, r, &reason);
	if (status)
		route_refuse(x, status, reason, "");
	else if (route == ROUTE_WEB)
		serve_web(x);
	else if (route == ROUTE_PROOF)
		proof_serve(s, x);
	else if (is_public(route))
		serve_health(s, x, route == ROUTE_READYZ);
	else
		with_caller(s, x);
}

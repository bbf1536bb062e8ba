/*
 * Starts the server, ends it, and informs the person or the service manager. An address that other
 * machines can reach is never served without TLS or a proxy, nor without tokens.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/module.h"
#include "base/os.h"
#include "base/text.h"
#include "face/serve/mcp_http.h"
#include "face/serve/serve.h"

#define DEFAULT_ADDRESS "127.0.0.1:7295"
#define RESERVE 1024 /* descriptors for everything but connections */

/* --- options ------------------------------------------------------------------------------------- */

static bool is_loopback(struct str where)
{
	return str_starts(where, STR("unix:")) || host_is_loopback(where);
}

static const struct strs *serve_addresses(const struct serve_args *a)
{
	static struct str usual = { DEFAULT_ADDRESS, sizeof(DEFAULT_ADDRESS) - 1 };
	static const struct strs one = { &usual, 1 };

	return a->listen.n ? &a->listen : &one;
}

/* Returns the reason why the server must not listen on these addresses, or NULL. local: other
 * machines cannot reach any of them. */
static const char *serve_exposed(const struct serve_args *a, bool local)
{
	if (str_is(a->auth, "none") && (!local || a->behind_proxy))
		return "--auth none is for addresses of this machine only";
	if (!local && !a->tls_cert.n && !a->behind_proxy)
		return "an address that other machines can reach needs --tls-cert and --tls-key, "
		       "or --behind-proxy";
	return NULL;
}

static const char *serve_misuse(const struct serve_args *a)
{
	bool local = true;

	for (size_t i = 0; i < serve_addresses(a)->n; i++)
		local &= is_loopback(serve_addresses(a)->v[i]);
	if (!a->tls_cert.n != !a->tls_key.n)
		return "--tls-cert and --tls-key need each other";
	return serve_exposed(a, local);
}

/* Each connection needs a descriptor, and so do the files of the queues and tokens. Raises the
 * process's limit, or else lowers the limits of connections. Without a reserve, the server could
 * not even read that a token was revoked. */
static void fit_descriptors(struct http_limits *l)
{
	rlim_t wanted = l->connections_max + l->unauthenticated_max + RESERVE;
	struct rlimit r;
	size_t most;

	if (getrlimit(RLIMIT_NOFILE, &r) || r.rlim_cur >= wanted)
		return;
	r.rlim_cur = r.rlim_max < wanted ? r.rlim_max : wanted;
	if (setrlimit(RLIMIT_NOFILE, &r) == 0 && r.rlim_cur == wanted)
		return;
	(void)getrlimit(RLIMIT_NOFILE, &r);
	most = r.rlim_cur / 3 < RESERVE ? r.rlim_cur - r.rlim_cur / 3 : r.rlim_cur - RESERVE;
	if (l->unauthenticated_max > most / 4)
		l->unauthenticated_max = most / 4;
	if (l->connections_max > most - l->unauthenticated_max)
		l->connections_max = most - l->unauthenticated_max;
}

static struct http_limits serve_limits(const struct settings *t, const struct serve_args *a)
{
	struct http_limits l = http_limits_default();

	l.connections_max = (size_t)settings_number(t, "serve.max_connections");
	if (l.unauthenticated_max > l.connections_max / 4)
		l.unauthenticated_max = l.connections_max / 4 + 16;
	l.per_address_max = (size_t)settings_number(t, "serve.max_per_address");
	l.body_max = (size_t)settings_number(t, "serve.max_body");
	if (a->behind_proxy)
		l.per_address_max = 0; /* all connections come from the proxy */
	fit_descriptors(&l);
	return l;
}

static void tell_lowered(struct serve *s, const struct settings *t)
{
	size_t have = serve_limits(t, s->args).connections_max,
	       wanted = (size_t)settings_number(t, "serve.max_connections");

	if (have < wanted)
		say_note(
			s, "warn",
			"serve.max_connections is %zu instead of %zu, because the process may open "
			"too few files: raise `ulimit -Hn`, or LimitNOFILE= of the service",
			have, wanted);
}

static void set_limits(struct serve *s, const struct settings *t)
{
	s->rate = settings_number(t, "serve.calls_per_second");
	s->burst = settings_number(t, "serve.burst");
	s->waits_max = settings_number(t, "serve.max_waits");
	s->streams_max = settings_number(t, "serve.max_streams");
	s->sessions_max = settings_number(t, "serve.max_sessions");
}

static struct http_options serve_options(struct serve *s)
{
	struct http_options o = { .limits = serve_limits(&s->session->client.conn.settings,
							 s->args),
				  .calls = { .on_request = route_request,
					     .on_head = route_head,
					     .error_body = say_error_body,
					     .on_log = say_log,
					     .ctx = s } };

	if (s->args->tls_cert.n) {
		o.tls_cert = arena_cstr(s->session->arena, s->args->tls_cert);
		o.tls_key = arena_cstr(s->session->arena, s->args->tls_key);
	}
	return o;
}

static const char *const *host_names(const struct serve_args *a, struct arena *arena)
{
	const char **list = arena_array(arena, const char *, a->host_names.n + 1);

	for (size_t i = 0; i < a->host_names.n; i++)
		list[i] = arena_cstr(arena, a->host_names.v[i]);
	return list;
}

/* --- tokens -------------------------------------------------------------------------------------- */

/* The first start makes a token, so that nobody has to serve without tokens. */
static int first_token(struct serve *s, char **file)
{
	struct arena *a = s->session->arena;
	struct bearer b = { .name = STR("first"),
			    .role = ROLE_ADMIN,
			    .agent = s->session->client.self.agent,
			    .created = os_wall_ms() };
	struct str secret;
	int r;

	*file = fs_join(a, str_c(s->login.dir), STR("first-token"));
	if (s->login.list.n)
		return 0;
	r = bearer_add(s->login.dir, &b, &secret, a);
	if (!r)
		r = fs_write_atomic(*file, arena_printf(a, "%.*s\n", STRF(secret)), 0600);
	return r ? r : serve_login_load(&s->login, true);
}

static int load_tokens(struct serve *s, char **file)
{
	int r;

	s->login.dir = bearer_dir(&s->session->client, s->session->arena);
	r = s->login.dir ? serve_login_load(&s->login, true) : -ENOENT;
	return r ? r : first_token(s, file);
}

static enum result no_tokens(struct serve *s, int r, struct reply *out)
{
	return run_fail(r == -EPERM || r == -EBADMSG ? MISCONFIGURED : API_ERROR,
			arena_printf(s->session->arena, "cannot use the tokens in %s: %s",
				     s->login.dir ? s->login.dir : "a home folder",
				     r == -EPERM     ? "other users can read or write them"
				     : r == -EBADMSG ? "the file is damaged"
						     : strerror(-r)),
			STR("set PAWL_SERVER_STATE to a folder that you own"), out);
}

/* --- the service manager ---------------------------------------------------------------------------- */

static void serve_notify(const char *text)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	size_t n = path ? strlen(path) : 0;
	int fd;

	if (!n || n >= sizeof(to.sun_path) || (path[0] != '/' && path[0] != '@'))
		return;
	memcpy(to.sun_path, path, n);
	if (path[0] == '@')
		to.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	(void)!sendto(fd, text, strlen(text), MSG_NOSIGNAL, (struct sockaddr *)&to,
		      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n));
	close(fd);
}

static void notify_reload(void)
{
	struct timespec t;
	char text[80];

	clock_gettime(CLOCK_MONOTONIC, &t);
	snprintf(text, sizeof(text), "RELOADING=1\nMONOTONIC_USEC=%lld",
		 (long long)t.tv_sec * 1000000 + t.tv_nsec / 1000);
	serve_notify(text);
}

/* --- signals ------------------------------------------------------------------------------------- */

static void on_end(void *serve)
{
	struct serve *s = serve;

	if (s->draining) {
		http_server_stop(s->http); /* a second signal: do not wait */
		return;
	}
	s->draining = true;
	serve_notify("STOPPING=1");
	say_note(s, "info", "ending: answering the calls that are under way");
	events_end_all(s);
	worker_wake_all(s);
	http_server_drain(s->http, DRAIN_MS);
}

/* Reloads the server's settings, and through new sessions those of each queue. */
static void reload_settings(struct serve *s)
{
	struct client fresh = { 0 };
	struct answer ans = { 0 };
	struct arena a = { 0 };

	if (client_init(&fresh, &s->session->client.said, &ans, &a) == SUCCESS) {
		struct http_limits l = serve_limits(&fresh.conn.settings, s->args);

		set_limits(s, &fresh.conn.settings);
		http_server_limit(s->http, &l);
		tell_lowered(s, &fresh.conn.settings);
		for (struct worker *d = s->workers; d; d = d->next)
			d->reload = true;
	} else {
		say_note(s, "warn", "the old settings stay: %.*s", STRF(ans.message));
	}
	client_close(&fresh);
	arena_free(&a);
}

static void on_reload(void *serve)
{
	struct serve *s = serve;
	char why[300] = "";

	notify_reload();
	if (s->args->tls_cert.n && http_server_reload_tls(s->http, why, sizeof(why)))
		say_note(s, "warn", "the old certificate stays: %s", why);
	if (!s->login.none && !s->login.own && serve_login_load(&s->login, true))
		say_note(s, "warn", "cannot read the tokens in %s; until it can, no token is valid",
			 s->login.dir);
	reload_settings(s);
	say_note(s, "info", "reloaded the certificate, the tokens and the settings");
	serve_notify("READY=1");
}

/* --- the run ------------------------------------------------------------------------------------- */

/* A service manager chooses the addresses of its sockets, so this checks the sockets themselves. */
static bool all_local(struct serve *s)
{
	struct str url;
	bool local = true;

	for (size_t i = 0; (url = str_c(http_server_url(s->http, i))).n; i++) {
		if (!str_cut_prefix(&url, STR("http://")))
			(void)str_cut_prefix(&url, STR("https://"));
		local &= is_loopback(url);
	}
	return local;
}

static enum result listen_all(struct serve *s, struct reply *out)
{
	const struct strs *where = serve_addresses(s->args);
	int inherited = http_inherited(), r = 0;
	const char *fault;
	char why[300] = "";

	if (s->args->board)
		inherited = 0;
	for (int i = 0; !r && i < inherited; i++)
		r = http_server_listen_fd(s->http, 3 + i, why, sizeof(why));
	for (size_t i = 0; !r && !inherited && i < where->n; i++)
		r = http_server_listen(s->http, arena_cstr(s->session->arena, where->v[i]), why,
				       sizeof(why));
	if (r)
		return run_fail(API_ERROR, arena_str(s->session->arena, str_c(why)),
				STR("another address: --listen 127.0.0.1:PORT"), out);
	fault = serve_exposed(s->args, all_local(s));
	return fault ? run_fail(USAGE, str_c(fault), STR("run `pawl help serve`"), out) : SUCCESS;
}

static void serve_announce(struct serve *s, const char *token_file)
{
	const char *url = http_server_url(s->http, 0);

	if (s->login.none)
		say_line("open %s (no token needed)", url);
	else if (fs_exists(token_file))
		say_line("open %s with the token in %s", url, token_file);
	else
		say_line("open %s with a token of `pawl token create`", url);
	for (size_t i = 1; *http_server_url(s->http, i); i++)
		say_line("also on %s", http_server_url(s->http, i));
}

static void announce_board(struct serve *s, struct str once)
{
	struct str line = arena_printf(s->session->arena, "%s/#token=%.*s\n",
				       http_server_url(s->http, 0), STRF(s->login.secret));

	(void)tty_write(STDOUT_FILENO, line);
	say_line("the board is at this address until Ctrl-C; others on this machine cannot open "
		 "it without the token");
	browser_open(s, once);
}

static void serve_loop(struct serve *s, const char *token_file, struct str once)
{
	s->ready = true;
	if (s->args->board)
		announce_board(s, once);
	else
		serve_announce(s, token_file);
	tell_lowered(s, &s->session->client.conn.settings);
	serve_notify("READY=1");
	http_server_run(s->http);
	serve_login_note_uses(&s->login, true);
	browser_forget(s);
}

/* The signal handlers come first: a signal that arrives as soon as somebody can connect must end
 * the server with success. */
static enum result listen_and_loop(struct serve *s, const char *token_file, struct str once,
				   struct reply *out)
{
	struct http_watch *w[] = { http_watch_signal(s->http, SIGTERM, on_end, s),
				   http_watch_signal(s->http, SIGINT, on_end, s),
				   http_watch_signal(s->http, SIGHUP,
						     s->args->board ? on_end : on_reload, s) };
	enum result code = listen_all(s, out);

	if (code == SUCCESS)
		serve_loop(s, token_file, once);
	for (size_t i = 0; i < sizeof(w) / sizeof(*w); i++)
		http_watch_end(w[i]);
	return code;
}

static void close_all(struct serve *s)
{
	struct meter *m;

	worker_end_all(s);
	http_later_free(s->login.later);
	http_server_free(s->http);
	worker_free_all(s);
	while ((m = s->login.meters)) {
		s->login.meters = m->next;
		free(m->name);
		free(m);
	}
	serve_login_close(&s->login);
	free(s->openapi);
	late_free(s->late);
	session_ids_close(&s->session_ids);
}

/* The queue must exist: one error now is better than an error for each caller. */
static enum result try_queue(struct session *s, struct reply *out)
{
	struct answer ans = { 0 };

	if (client_open(&s->client, STORE_READ, &ans) != SUCCESS)
		return run_answer(&ans, out);
	client_close(&s->client);
	return SUCCESS;
}

static enum result serve_start(struct serve *s, struct reply *out)
{
	struct http_options o = serve_options(s);
	char why[300] = "", *file = NULL;
	struct str once = STR("");
	int r = 0;

	if (s->login.none)
		s->login.dir = bearer_dir(&s->session->client, s->session->arena);
	if (s->args->board)
		once = serve_login_own(&s->login, s->session->client.self.agent);
	else if (!s->login.none)
		r = load_tokens(s, &file);
	if (r)
		return no_tokens(s, r, out);
	if (http_server_new(&o, &s->http, why, sizeof(why)))
		return run_fail(MISCONFIGURED, arena_str(s->session->arena, str_c(why)), STR(""),
				out);
	out->silent = listen_and_loop(s, file, once, out) == SUCCESS;
	return out->silent ? SUCCESS : out->ans.code;
}

enum result serve_run(struct session *session, const struct serve_args *a, struct reply *out)
{
	static const char *const types[] = { FRAME_TYPE, NULL };
	const char *fault = serve_misuse(a);
	struct serve s = { .session = session,
			   .memory = answers_memory(NULL),
			   .args = a,
			   .login.none = str_is(a->auth, "none"),
			   .read_only = a->read_only,
			   .log = str_is(a->log, "json")   ? 1
				  : str_is(a->log, "none") ? 2
							   : 0,
			   .started = os_wall_ms() };
	enum result code;

	if (fault)
		return run_fail(USAGE, str_c(fault), STR("run `pawl help serve`"), out);
	code = try_queue(session, out);
	if (code != SUCCESS)
		return code;
	s.guard = (struct http_guard){ .host_names = host_names(a, session->arena),
				       .types = types,
				       .local_names = !s.login.none };
	set_limits(&s, &session->client.conn.settings);
	serve_login_open(&s.login);
	s.late = late_new();
	s.openapi = openapi_text();
	code = serve_start(&s, out);
	close_all(&s);
	return code;
}

/* --- module ----------------------------------------------------------------------------------- */

/* The interface of pawl-serve.so for the program that loads it. */

static const struct serve_ops ops = { .run = serve_run, .board_export = snapshot_export };

extern const struct module pawl_module;
const struct module pawl_module = { .abi = MODULE_ABI, .serve = &ops };

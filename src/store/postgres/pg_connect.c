/* Connections: tries one host after the other, each with a deadline, so that a host that does not answer delays a call but
 * never blocks it. With several hosts, a writer skips standbys. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include "base/os.h"
#include "store/postgres/postgres.h"

#define WORDS 24

/* Parameters that replace those of the URI. libpq takes the last value of a keyword. */
struct words {
	const char *names[WORDS], *values[WORDS];
	int n;
};

static void pg_connect_word(struct words *w, const char *name, const char *value)
{
	w->names[w->n] = name;
	w->values[w->n++] = value;
}

static const char *pg_connect_option(const PQconninfoOption *info, const char *name)
{
	for (; info && info->keyword; info++)
		if (!strcmp(info->keyword, name))
			return info->val ? info->val : "";
	return "";
}

/* "host:port, database db" */
static void name_place(struct pg *s, const PQconninfoOption *info)
{
	const char *host = pg_connect_option(info, "host");

	snprintf(s->place, sizeof(s->place), "%.90s%s%.20s (database %.60s)",
		 *host ? host : "the local server", *pg_connect_option(info, "port") ? ":" : "",
		 pg_connect_option(info, "port"), pg_connect_option(info, "dbname"));
}

static void note_warning(void *ctx, const PGresult *r)
{
	const char *kind = PQresultErrorField(r, PG_DIAG_SEVERITY_NONLOCALIZED);

	if (kind && !strcmp(kind, "WARNING"))
		((struct pg *)ctx)->warned = true;
}

void pg_abandon(PGconn *db)
{
	int null = db ? open("/dev/null", O_RDWR | O_CLOEXEC) : -1;

	if (!db)
		return;
	/* PQfinish() must not tell the server to close: the parent is still using the connection */
	if (null >= 0 && PQsocket(db) >= 0 && dup2(null, PQsocket(db)) >= 0)
		PQfinish(db);
	if (null >= 0)
		close(null);
}

/* --- failures ------------------------------------------------------------------------------------- */

/* In a verbose message the SQLSTATE follows the severity: "FATAL:  28P01: ...". */
static bool find_state(const char *text, char state[6], const char **rest)
{
	for (const char *at = text; (at = strstr(at, ":  ")); at++) {
		const char *code = at + 3;

		if (strspn(code, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") == 5 && code[5] == ':') {
			memcpy(state, code, 5);
			state[5] = '\0';
			*rest = code + 7;
			return true;
		}
	}
	return false;
}

/* libpq's messages begin with `connection to server at "HOST" ... failed: `. */
static int fail_connect(struct pg *s, const PGconn *db)
{
	const char *text = db ? PQerrorMessage(db) : "out of memory", *rest = text, *cut;
	bool tls = strstr(text, "SSL") || strstr(text, "certificate");
	char state[6];

	if (find_state(text, state, &rest)) {
		s->broken = true;
		return pg_fail(s, state, rest);
	}
	cut = strstr(text, " failed: ");
	rest = cut ? cut + 9 : text;
	snprintf(s->state, sizeof(s->state), "08006");
	return store_fail(
		&s->base.env, STORE_UNREACHABLE,
		tls ? "check sslmode and sslrootcert in the URI, and the server's certificate"
		    : "check that the server runs, and the host and port in the URI",
		"cannot connect to %s: %.*s", s->place, (int)strcspn(rest, "\n"), rest);
}

/* --- one host ------------------------------------------------------------------------------------- */

static int64_t net_patience(const struct pg *s)
{
	int64_t net = s->base.env.opt.net_ms > 0 ? s->base.env.opt.net_ms : PG_NET_MS;

	return net < 10000 ? net : 10000;
}

static int64_t pg_connect_patience(const struct pg *s, const PQconninfoOption *info)
{
	int64_t seconds = 0;

	if (str_to_i64(str_c(pg_connect_option(info, "connect_timeout")), &seconds) && seconds > 0)
		return seconds < 2 ? 2000 : seconds * 1000;
	return net_patience(s);
}

static int finish_connect(struct pg *s, PGconn *db, int64_t deadline)
{
	PostgresPollingStatusType state = PGRES_POLLING_WRITING;

	PQsetErrorVerbosity(db, PQERRORS_VERBOSE);
	while (PQstatus(db) != CONNECTION_BAD && state != PGRES_POLLING_OK) {
		struct pollfd p = { .fd = PQsocket(db),
				    .events = state == PGRES_POLLING_READING ? POLLIN : POLLOUT };
		int64_t left = deadline - os_boot_ms();

		if (left <= 0)
			return store_fail(
				&s->base.env, STORE_UNREACHABLE,
				"check that the server runs, and the host and port in the URI",
				"cannot connect to %s: it does not answer", s->place);
		if (poll(&p, 1, (int)left) > 0)
			state = PQconnectPoll(db);
		if (state == PGRES_POLLING_FAILED)
			break;
	}
	return PQstatus(db) == CONNECTION_OK ? 0 : fail_connect(s, db);
}

static PGconn *pg_connect_start(struct pg *s, const char *host, const char *port)
{
	struct arena a = { 0 };
	struct words w = { 0 };
	PGconn *db;

	pg_connect_word(&w, "dbname", s->conninfo);
	if (host)
		pg_connect_word(&w, "host", host);
	if (port)
		pg_connect_word(&w, "port", port);
	pg_connect_word(&w, "fallback_application_name",
			arena_printf(&a, "pawl %.*s", STRF(s->base.env.opt.who)).p);
	pg_connect_word(&w, "client_encoding", "UTF8");
	db = PQconnectStartParams(w.names, w.values, 1);
	/* without a receiver libpq writes the server's notices to the terminal, even while it is connecting */
	if (db)
		PQsetNoticeReceiver(db, note_warning, s);
	arena_free(&a);
	return db;
}

/* Completes a connection that was started, or ends it. */
static int pg_connect_complete(struct pg *s, PGconn *db, const PQconninfoOption *info, PGconn **out)
{
	int rc;

	name_place(s, info);
	if (!db || PQstatus(db) == CONNECTION_BAD)
		rc = fail_connect(s, db);
	else
		rc = finish_connect(s, db, pg_end_of(s, pg_connect_patience(s, info)));
	if (rc < 0) {
		PQfinish(db);
		return rc;
	}
	PQsetErrorVerbosity(db, PQERRORS_DEFAULT);
	*out = db;
	return 0;
}

/* --- several hosts -------------------------------------------------------------------------------- */

/* NULL: the server does not answer in time, and the connection must be closed. */
static PGresult *ask_plain(PGconn *db, const char *sql, int64_t deadline)
{
	PGresult *r, *more;
	int64_t left;

	if (!PQsendQuery(db, sql))
		return NULL;
	while (PQisBusy(db)) {
		struct pollfd p = { .fd = PQsocket(db), .events = POLLIN };

		left = deadline - os_boot_ms();
		if (left <= 0 || (poll(&p, 1, (int)left) < 0 && errno != EINTR) ||
		    !PQconsumeInput(db)) /* it does not wait */
			return NULL;
	}
	r = PQgetResult(db);
	while ((more = PQgetResult(db)))
		PQclear(more);
	return r;
}

/* 0, 1 for a standby, or a fault. A server before version 14, and some poolers, do not report in_hot_standby. */
static int is_standby(struct pg *s, PGconn *db)
{
	const char *state = PQparameterStatus(db, "in_hot_standby");
	PGresult *r;
	int rc;

	if (state)
		return !strcmp(state, "on");
	r = ask_plain(db, "SELECT pg_catalog.pg_is_in_recovery()", pg_end_of(s, net_patience(s)));
	if (PQresultStatus(r) == PGRES_TUPLES_OK && PQntuples(r) == 1)
		rc = !strcmp(pg_text_at(r, 0, 0), "t");
	else
		rc = store_fail(&s->base.env, STORE_UNREACHABLE,
				"check that the server runs, and try again",
				"%s does not say whether it is a standby", s->place);
	PQclear(r);
	return rc;
}

static int connect_one(struct pg *s, const char *host, const char *port, PGconn **out)
{
	PGconn *db = pg_connect_start(s, host, port);
	PQconninfoOption *info = db ? PQconninfo(db) : NULL;
	int rc = pg_connect_complete(s, db, info, out);

	PQconninfoFree(info);
	return rc;
}

/* The port for a host without one in the URI: PGPORT, or the default port. */
static char *usual_port(struct arena *a)
{
	PQconninfoOption *all = PQconndefaults();
	struct str port = str_c(pg_connect_option(all, "port"));
	char *out = arena_cstr(a, port.n && !memchr(port.p, ',', port.n) ? port : STR("5432"));

	PQconninfoFree(all);
	return out;
}

/* We try each host ourselves, because libpq has no deadline for each host here and would wait forever for one that does
 * not answer. A writer skips a standby; a reader takes the first host that answers. */
static int connect_any(struct pg *s, const char *hosts, const char *ports, PGconn **out)
{
	struct str rest = str_c(hosts), more = str_c(ports), port = more;
	bool each = strchr(ports, ','); /* else one port for all hosts */
	struct arena a = { 0 };
	int rc = STORE_UNREACHABLE;

	while (rest.n) {
		struct str host = str_cut(&rest, ',');
		PGconn *db;

		if (each)
			port = str_cut(&more, ',');
		rc = connect_one(s, arena_cstr(&a, host),
				 port.n ? arena_cstr(&a, port) : usual_port(&a), &db);
		if (rc < 0)
			continue;
		rc = s->base.env.mode != STORE_READ ? is_standby(s, db) : 0;
		if (rc == 0) {
			*out = db;
			break;
		}
		PQfinish(db);
		if (rc > 0)
			rc = store_fail(&s->base.env, STORE_READONLY,
					"promote a standby, or start the primary",
					"none of the hosts %s accepts changes: %s is a standby",
					hosts, s->place);
	}
	arena_free(&a);
	return rc;
}

static int connect_hosts(struct pg *s, PGconn **out)
{
	PGconn *db = pg_connect_start(s, NULL, NULL);
	PQconninfoOption *info = db ? PQconninfo(db) : NULL;
	int rc;

	if (strchr(pg_connect_option(info, "host"), ',')) {
		PQfinish(db);
		rc = connect_any(s, pg_connect_option(info, "host"),
				 pg_connect_option(info, "port"), out);
	} else {
		rc = pg_connect_complete(s, db, info, out);
	}
	PQconninfoFree(info);
	return rc;
}

int pg_connect_to(struct pg *s, PGconn **out)
{
	int rc = connect_hosts(s, out);

	if (rc == 0 && PQserverVersion(*out) < PG_OLDEST) {
		int version = PQserverVersion(*out) / 10000;

		PQfinish(*out);
		*out = NULL;
		return store_fail(&s->base.env, STORE_UNSUPPORTED,
				  "use a server of version 13 or newer",
				  "%s runs PostgreSQL %d, which is too old", s->place, version);
	}
	return rc;
}

/* --- the handle's own connection ------------------------------------------------------------------ */

void pg_disconnect(struct pg *s)
{
	PQfinish(s->db);
	s->db = NULL;
	s->pending_moves = s->sent = 0;
	s->broken = s->pooled = false;
	for (size_t i = 0; i < s->n_prepared; i++)
		s->prepared[i].named = false;
}

/* Generic plans: a plan for each set of values would cost more than it saves, because each statement reads few rows. If
 * the process id from the handshake differs from pg_backend_pid(), there is a pooler between us and the server. Then the
 * settings apply to this statement only, because other programs share the session. The search path keeps other users'
 * functions and operators from replacing the server's own. Until it is set, this code qualifies every name with its schema.
 * The statement is unnamed, because a named one would stay in the session, and the pooler may give that session to another
 * program. */
static int connect_self(struct pg *s)
{
	struct pg_args args = { 0 };
	PGresult *r;
	int rc = pg_connect_to(s, &s->db);

	if (rc < 0)
		return rc;
	if (PQsetnonblocking(s->db, 1) || !PQenterPipelineMode(s->db))
		return pg_lost(s, "pipeline mode does not work");
	pg_patience(s, 0);
	pg_int(&args, PQbackendPID(s->db));
	rc = pg_send_text(
		s,
		"SELECT p,pg_catalog.set_config('plan_cache_mode','force_generic_plan',pooled),"
		"pg_catalog.set_config('jit','off',pooled),"
		"pg_catalog.set_config('search_path','pg_catalog',pooled) FROM (SELECT p,"
		"p OPERATOR(pg_catalog.<>) $1 AS pooled FROM pg_catalog.pg_backend_pid() p) x",
		&args);
	if (rc == 0)
		rc = pg_wait(s, &r);
	if (rc < 0)
		return rc;
	s->pooled = pg_int_at(r, 0, 0) != PQbackendPID(s->db);
	PQclear(r);
	return 0;
}

/* Between two calls the server sends nothing unless it closes the connection. */
static void notice_end(struct pg *s)
{
	struct pollfd p = { .fd = PQsocket(s->db), .events = POLLIN };

	pg_drain(s);
	if (!s->broken && poll(&p, 1, 0) > 0)
		s->broken = true;
}

int pg_guard(struct pg *s)
{
	int rc = 0;

	if (getpid() != s->pid)
		return store_fail(&s->base.env, STORE_IO, NULL,
				  "another process opened the connection to %s", s->place);
	if (s->db && !s->changing && !s->depth) {
		notice_end(s);
		if (s->broken)
			pg_disconnect(s);
	}
	if (s->db && s->broken)
		return store_fail(&s->base.env, STORE_UNREACHABLE, "try again",
				  "the connection to %s was lost", s->place);
	if (!s->db)
		rc = connect_self(s);
	if (rc < 0 && s->db)
		pg_disconnect(s);
	pg_patience(s, 0);
	return rc;
}

bool pg_again(struct pg *s, int rc)
{
	return rc < 0 && s->broken && !s->changing && !s->depth && pg_guard(s) == 0;
}

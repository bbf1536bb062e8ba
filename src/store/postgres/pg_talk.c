/* Statements and their results, in pipeline mode: a statement is sent at once, and its result is read when needed. A missing
 * result is a fault, never an empty answer. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/os.h"
#include "store/postgres/postgres.h"

#define BATCH 200 /* messages that are sent before their results are read */

/* --- faults --------------------------------------------------------------------------------------- */

static const struct {
	const char *state; /* an SQLSTATE, or the beginning of one */
	int fault;
	const char *hint;
} faults[] = {
	{ "55P03", STORE_BUSY, "try again, or wait longer with --timeout" },
	{ "40", STORE_BUSY, "try again" },
	{ "57014", STORE_BUSY, "try again; the server's own timeout may be too short" },
	{ "53300", STORE_BUSY,
	  "try again later, raise max_connections on the server, or put PgBouncer in front of it" },
	{ "53100", STORE_FULL, "free some space on the server" },
	{ "25006", STORE_READONLY,
	  "the server is a standby or read-only: name the primary in the URI, or all hosts" },
	{ "42501", STORE_READONLY,
	  "ask the administrator of the database: `pawl init --store URI --print-sql` has the rights" },
	{ "3D000", STORE_ABSENT, "create the database: createdb NAME" },
	{ "28", STORE_UNREACHABLE,
	  "check the user, the password (PGPASSFILE (~/.pgpass), PGPASSWORD or the URI) and sslmode" },
	{ "42P01", STORE_CORRUPT, "restore the schema from a backup" },
	{ "42703", STORE_CORRUPT, "restore the schema from a backup" },
	{ "42883", STORE_CORRUPT, "restore the schema from a backup" },
	{ "3F000", STORE_ABSENT, "pawl init" },
	{ "08", STORE_UNREACHABLE, "check that the server runs, and try again" },
	{ "57P", STORE_UNREACHABLE, "check that the server runs, and try again" },
	{ "25P03", STORE_UNREACHABLE, "try again" },
};

int pg_fail(struct pg *s, const char *state, const char *text)
{
	int n = (int)strcspn(text, "\n");

	snprintf(s->state, sizeof(s->state), "%s", state);
	for (size_t i = 0; i < sizeof(faults) / sizeof(*faults); i++)
		if (str_starts(str_c(state), str_c(faults[i].state)))
			return store_fail(&s->base.env, faults[i].fault, faults[i].hint, "%s: %.*s",
					  s->place, n, text);
	return store_fail(&s->base.env, STORE_IO, NULL, "%s: %.*s%s%s%s", s->place, n, text,
			  *state ? " (" : "", state, *state ? ")" : "");
}

int pg_lost(struct pg *s, const char *why)
{
	int rc, n = (int)strcspn(why, "\n");

	s->broken = true;
	rc = store_fail(&s->base.env, STORE_UNREACHABLE,
			"check that the server runs, and try again",
			"the connection to %s was lost: %.*s", s->place, n, why);
	if (s->committing)
		s->base.env.err->applied = '?';
	return rc;
}

/* An ERROR at COMMIT means that the server rolled the change back. FATAL and PANIC end the session at any point, even
 * between the commit and its answer. */
static int fail_result(struct pg *s, const PGresult *r)
{
	const char *state = PQresultErrorField(r, PG_DIAG_SQLSTATE);
	const char *text = PQresultErrorField(r, PG_DIAG_MESSAGE_PRIMARY);
	const char *kind = PQresultErrorField(r, PG_DIAG_SEVERITY_NONLOCALIZED);
	int rc;

	if (!state)
		return pg_lost(s, *PQresultErrorMessage(r) ? PQresultErrorMessage(r)
							   : PQerrorMessage(s->db));
	rc = pg_fail(s, state, text ? text : "an error without a text");
	if (kind && strcmp(kind, "ERROR") != 0) {
		s->broken = true;
		if (s->committing)
			s->base.env.err->applied = '?';
	}
	return rc;
}

/* --- SQL texts ------------------------------------------------------------------------------------ */

#define CLOCK "floor(extract(epoch FROM clock_timestamp())*1000.0)::bigint"

char *pg_sql(const struct pg *s, const char *sql)
{
	struct buf b = BUF_MAX(1 << 20);
	const char *at;
	char *out;

	while ((at = strchr(sql, '$'))) {
		buf_add(&b, sql, (size_t)(at - sql));
		sql = at + 2;
		if (at[1] == 'S')
			buf_adds(&b, str_c(s->schema));
		else if (at[1] == 'C')
			buf_adds(&b, str_c(s->boot ? "0" : CLOCK));
		else {
			buf_addc(&b, '$'); /* a text may end with it */
			sql = at + 1;
		}
	}
	buf_add(&b, sql, strlen(sql) + 1);
	out = mem_alloc(b.n);
	memcpy(out, b.p, b.n);
	buf_free(&b);
	return out;
}

/* --- sending -------------------------------------------------------------------------------------- */

int64_t pg_end_of(const struct pg *s, int64_t ms)
{
	int64_t end = os_boot_ms() + ms;

	return s->until && s->until < end ? s->until : end;
}

void pg_patience(struct pg *s, int64_t ms)
{
	int64_t net = s->base.env.opt.net_ms > 0 ? s->base.env.opt.net_ms : PG_NET_MS;

	s->deadline = pg_end_of(s, (ms > 0 ? ms : 0) + net);
}

static int pg_talk_sent(struct pg *s, int ok)
{
	s->sent++;
	return ok ? 0 : pg_lost(s, PQerrorMessage(s->db));
}

/* Runs before a statement, never after it, because the results of a full batch are dropped and the caller needs the last
 * one. */
static int make_room(struct pg *s)
{
	return s->sent < BATCH ? 0 : pg_wait(s, NULL);
}

/* A statement may be two messages, because the server must first prepare it under its name. A pooler gets the search path
 * before the first one. */
int pg_room(struct pg *s, unsigned n)
{
	return s->sent + 2 * n + 1 <= BATCH ? 0 : pg_wait(s, NULL);
}

static int send_plain(struct pg *s, const char *sql, const struct pg_args *p)
{
	return pg_talk_sent(s, PQsendQueryParams(s->db, sql, p->n, p->types, p->values, p->lengths,
						 p->formats, 1));
}

/* A pooler's session keeps its user's search path, which may name schemas in which other users make functions. Our path
 * holds until the transaction ends: a batch, or the transaction that BEGIN begins. The isolation level must be set before
 * the first query. An aborted transaction accepts only its end. */
static int send_with_path(struct pg *s, const char *sql, const struct pg_args *p)
{
	static const char path[] = "SELECT pg_catalog.set_config('search_path','pg_catalog',true)";
	static const struct pg_args none;
	bool begins = !strncmp(sql, "BEGIN", 5);
	bool ends = !strcmp(sql, "ROLLBACK") || !strcmp(sql, "COMMIT");
	int rc = begins || ends || s->sent ? 0 : send_plain(s, path, &none);

	if (rc == 0)
		rc = send_plain(s, sql, p);
	return rc == 0 && begins ? send_plain(s, path, &none) : rc;
}

static int send_text(struct pg *s, const char *sql, const struct pg_args *p)
{
	int rc = make_room(s);

	if (rc < 0)
		return rc;
	return s->pooled ? send_with_path(s, sql, p) : send_plain(s, sql, p);
}

static int send_named(struct pg *s, struct pg_prepared *known, const struct pg_args *p)
{
	char name[32];
	int rc = make_room(s);

	snprintf(name, sizeof(name), "p%d_%u", (int)(known - s->prepared), known->version);
	if (rc == 0 && !known->named) {
		rc = pg_talk_sent(s, PQsendPrepare(s->db, name, known->text, p->n, p->types));
		known->named = known->fresh = rc == 0;
	}
	if (rc < 0)
		return rc;
	return pg_talk_sent(
		s, PQsendQueryPrepared(s->db, name, p->n, p->values, p->lengths, p->formats, 1));
}

static char *pg_talk_copy(const char *text)
{
	size_t n = strlen(text) + 1;

	return memcpy(mem_alloc(n), text, n);
}

/* A literal by its address, or the text of a composed statement. */
static struct pg_prepared *pg_talk_find(struct pg *s, const char *sql, const char *text)
{
	for (size_t i = 0; i < s->n_prepared; i++) {
		const struct pg_prepared *p = &s->prepared[i];

		if (sql ? p->sql == sql : text && !p->sql && !strcmp(p->text, text))
			return &s->prepared[i];
	}
	if (s->n_prepared == PG_PREPARED)
		return NULL;
	/* a composed text is complete: the schema in it may have a name with $S or $C */
	s->prepared[s->n_prepared] = (struct pg_prepared){ .sql = sql,
							   .text = sql ? pg_sql(s, sql)
								       : pg_talk_copy(text) };
	return &s->prepared[s->n_prepared++];
}

/* A process that makes one change sends each statement once, and naming the statement would only cost time. */
static int send_known(struct pg *s, const char *sql, const char *text, const struct pg_args *p)
{
	static const struct pg_args none;
	struct pg_prepared *known = pg_talk_find(s, sql, text);
	char *made = NULL;
	int rc;

	p = p ? p : &none;
	if (known && (known->uses++ > 0 || s->changes > 1) && !s->pooled)
		return send_named(s, known, p);
	if (!text && !known)
		made = pg_sql(s, sql);
	rc = send_text(s, text ? text : known ? known->text : made, p);
	free(made);
	return rc;
}

int pg_send_beside(struct pg *s, const char *sql, const struct pg_args *p)
{
	return send_known(s, sql, NULL, p);
}

int pg_send(struct pg *s, const char *sql, const struct pg_args *p)
{
	int rc = pg_later_send(s);

	return rc < 0 ? rc : send_known(s, sql, NULL, p);
}

int pg_send_composed(struct pg *s, const char *sql, const struct pg_args *p)
{
	int rc = pg_later_send(s);

	return rc < 0 ? rc : send_known(s, NULL, sql, p);
}

int pg_send_text(struct pg *s, const char *sql, const struct pg_args *p)
{
	static const struct pg_args none;
	int rc = pg_later_send(s);

	return rc < 0 ? rc : send_text(s, sql, p ? p : &none);
}

/* --- waiting -------------------------------------------------------------------------------------- */

static int wait_socket(struct pg *s, short events)
{
	struct pollfd p = { .fd = PQsocket(s->db), .events = events };
	int64_t left = s->deadline - os_boot_ms();

	if (left <= 0)
		return pg_lost(s, "the server does not answer");
	if (poll(&p, 1, left > 60000 ? 60000 : (int)left) < 0 && errno != EINTR)
		return pg_lost(s, strerror(errno));
	return 0;
}

/* Sends the bytes that libpq still holds, and reads until a result is complete. */
static int pg_talk_pump(struct pg *s)
{
	int left, rc = 0;

	for (;;) {
		left = PQflush(s->db);
		if (left < 0 && !PQconsumeInput(s->db))
			return pg_lost(s, PQerrorMessage(s->db));
		if (!PQisBusy(s->db))
			return 0;
		rc = wait_socket(s, left ? POLLIN | POLLOUT : POLLIN);
		if (rc < 0)
			return rc;
		if (!PQconsumeInput(s->db))
			return pg_lost(s, PQerrorMessage(s->db));
	}
}

/* One result; *r is NULL between the results of two statements. */
static int next_result(struct pg *s, PGresult **r)
{
	int rc = pg_talk_pump(s);

	*r = rc == 0 ? PQgetResult(s->db) : NULL;
	return rc;
}

/* Results that a caller waits for: the last n, or the last n with rows. */
struct kept {
	PGresult **out;
	size_t n;
	bool rows;
};

static void keep_result(const struct kept *k, PGresult *r)
{
	if (!k->n || (k->rows && PQresultStatus(r) != PGRES_TUPLES_OK)) {
		PQclear(r);
		return;
	}
	PQclear(k->out[0]);
	memmove(k->out, k->out + 1, (k->n - 1) * sizeof(*k->out));
	k->out[k->n - 1] = r;
}

static void drop_kept(const struct kept *k)
{
	for (size_t i = 0; i < k->n; i++) {
		PQclear(k->out[i]);
		k->out[i] = NULL;
	}
}

/* After an error the server skips the rest of a batch, and with it the statements that were to be prepared. */
static void settle_prepared(struct pg *s, bool failed)
{
	for (size_t i = 0; i < s->n_prepared; i++) {
		struct pg_prepared *p = &s->prepared[i];

		if (p->fresh && failed) {
			p->named = false;
			p->version++;
		}
		p->fresh = false;
	}
}

/* The results of one batch, up to its sync. */
static int read_batch(struct pg *s, const struct kept *k)
{
	PGresult *r;
	int rc = 0, got, nulls = 0;

	for (;;) {
		got = next_result(s, &r);
		if (got < 0)
			rc = rc < 0 ? rc : got;
		if (got < 0 || (!r && ++nulls > 1 && PQstatus(s->db) == CONNECTION_BAD)) {
			drop_kept(k);
			s->broken = true;
			return rc < 0 ? rc : pg_lost(s, PQerrorMessage(s->db));
		}
		if (!r)
			continue;
		nulls = 0;
		if (PQresultStatus(r) == PGRES_PIPELINE_SYNC) {
			PQclear(r);
			break;
		}
		if (PQresultStatus(r) == PGRES_FATAL_ERROR && rc == 0)
			rc = fail_result(s, r);
		keep_result(k, r);
	}
	s->pending_moves--;
	if (rc < 0 || (!s->pending_moves && !s->sent))
		settle_prepared(s, rc < 0);
	if (rc < 0)
		drop_kept(k);
	return rc;
}

void pg_let_go(struct pg *s)
{
	if (s->broken || !PQpipelineSync(s->db)) {
		s->broken = true;
		return;
	}
	s->pending_moves++;
	s->sent = 0;
	(void)PQflush(s->db);
}

/* No caller needs the outcome of these batches any more. */
static int read_pending(struct pg *s, unsigned keep)
{
	static const struct kept none;
	int rc = 0;

	while (rc == 0 && s->pending_moves > keep) {
		rc = read_batch(s, &none);
		if (rc < 0 && !s->broken)
			rc = 0;
	}
	return rc;
}

void pg_drain(struct pg *s)
{
	struct store_error err = *s->base.env.err;

	pg_patience(s, 0);
	if (!s->broken)
		(void)read_pending(s, 0);
	*s->base.env.err = err;
}

static int wait_for(struct pg *s, const struct kept *k)
{
	int rc;

	for (size_t i = 0; i < k->n; i++)
		k->out[i] = NULL;
	if (!PQpipelineSync(s->db))
		return pg_lost(s, PQerrorMessage(s->db));
	s->pending_moves++;
	s->sent = 0;
	if (s->committing) {
		(void)PQflush(s->db);
		combine_at("sent");
	}
	rc = read_pending(s, 1);
	return rc < 0 ? rc : read_batch(s, k);
}

int pg_wait(struct pg *s, PGresult **out)
{
	return wait_for(s, &(struct kept){ .out = out, .n = out ? 1 : 0 });
}

/* A missing result must not count as an empty one, because a change would conclude that its records are absent. */
int pg_wait_all(struct pg *s, PGresult **out, size_t n)
{
	struct kept k = { .out = out, .n = n, .rows = true };
	int rc = wait_for(s, &k);

	if (rc < 0 || !n || out[0])
		return rc;
	drop_kept(&k);
	return pg_lost(s, "the server sent fewer answers than expected");
}

int pg_ask(struct pg *s, const char *sql, const struct pg_args *args, PGresult **out)
{
	int rc = pg_send(s, sql, args);

	return rc < 0 ? rc : pg_wait(s, out);
}

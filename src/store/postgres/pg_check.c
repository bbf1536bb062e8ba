/* Facts and checks for doctor. They change nothing, and they run on a standby, too. */
#include <stdio.h>
#include <stdlib.h>

#include "base/os.h"
#include "store/postgres/postgres.h"

#define READS_ALL_MS 600000 /* a statement that reads every row of a large queue */

struct checking {
	struct pg *s;
	check_fn *fn;
	void *ctx;
	struct arena a;
};

static int ask_int(struct pg *s, const char *sql, int64_t *out)
{
	struct pg_args args = { 0 };
	PGresult *r;
	int rc;

	pg_int(&args, s->q);
	rc = pg_ask(s, sql, &args, &r);
	if (rc < 0)
		return rc;
	*out = PQntuples(r) ? pg_int_at(r, 0, 0) : 0;
	PQclear(r);
	return 0;
}

static int check_server(struct checking *c)
{
	struct pg *s = c->s;
	PGresult *r;
	int rc = pg_ask(
		s,
		"SELECT current_setting('server_version'),current_setting('synchronous_commit'),"
		"current_setting('fsync'),current_setting('full_page_writes'),"
		"current_setting('server_encoding')",
		NULL, &r);
	bool durable;

	if (rc < 0)
		return rc;
	c->fn(c->ctx, CHECK_OK, "server",
	      arena_printf(&c->a, "PostgreSQL %s at %s, schema %s version %d, encoding %s%s",
			   pg_text_at(r, 0, 0), s->place, s->name, PG_VERSION, pg_text_at(r, 0, 4),
			   s->pooled ? ", through a pooler (no LISTEN, no named statements)" : ""),
	      STR(""));
	durable = !strcmp(pg_text_at(r, 0, 2), "on") && !strcmp(pg_text_at(r, 0, 3), "on");
	c->fn(c->ctx, durable ? CHECK_OK : CHECK_BAD, "durability",
	      arena_printf(&c->a, "fsync %s, full_page_writes %s, synchronous_commit %s",
			   pg_text_at(r, 0, 2), pg_text_at(r, 0, 3), pg_text_at(r, 0, 1)),
	      durable ? STR("") : STR("switch fsync and full_page_writes on in postgresql.conf"));
	PQclear(r);
	return 0;
}

/* --- replication ---------------------------------------------------------------------------------- */

#define REPLICATION                                                \
	"SELECT pg_catalog.pg_is_in_recovery()::int,"              \
	"pg_catalog.current_setting('synchronous_standby_names')," \
	"(SELECT pg_catalog.count(*)::int FROM pg_catalog.pg_stat_replication)"

/* On a standby: reads the same facts from the primary, if the URI names it, and writes its host to `place`. NULL: the
 * primary cannot be reached. */
static PGresult *ask_primary(struct pg *s, char *place, size_t room)
{
	struct store_error err = *s->base.env.err;
	enum store_mode mode = s->base.env.mode;
	PGresult *r = NULL;
	PGconn *db = NULL;
	char here[sizeof(s->place)];

	memcpy(here, s->place, sizeof(here));
	s->base.env.mode = STORE_WRITE; /* passes over standbys */
	if (pg_connect_to(s, &db) == 0) {
		r = PQexecParams(db, REPLICATION, 0, NULL, NULL, NULL, NULL, 1);
		snprintf(place, room, "%s", s->place);
	}
	PQfinish(db);
	s->base.env.mode = mode;
	memcpy(s->place, here, sizeof(here));
	*s->base.env.err = err;
	if (PQresultStatus(r) == PGRES_TUPLES_OK && !pg_int_at(r, 0, 0))
		return r;
	PQclear(r);
	return NULL;
}

static void say_replication(struct checking *c, const PGresult *r, const char *place)
{
	const char *names = pg_text_at(r, 0, 1);
	int64_t n = pg_int_at(r, 0, 2);

	if (*names && !n)
		c->fn(c->ctx, CHECK_BAD, "replication",
		      arena_printf(
			      &c->a,
			      "%s waits at every change for a synchronous standby (%s), but none is "
			      "connected",
			      place, names),
		      STR("start the standby, or take it out of synchronous_standby_names and reload"));
	else if (*names)
		c->fn(c->ctx, CHECK_OK, "replication",
		      arena_printf(&c->a, "synchronous standbys of %s: %s; %lld connected", place,
				   names, (long long)n),
		      STR(""));
	else if (strchr(c->s->conninfo, ','))
		c->fn(c->ctx, CHECK_NOTE, "replication",
		      STR("the URI names several hosts, but no standby is synchronous: a failover can "
			  "lose changes that were reported as made"),
		      STR("set synchronous_standby_names on the primary"));
	else
		c->fn(c->ctx, CHECK_OK, "replication",
		      n ? arena_printf(
				  &c->a,
				  "%lld standbys, none of them synchronous: a failover can lose "
				  "changes",
				  (long long)n)
			: STR("none"),
		      STR(""));
}

static int check_replication(struct checking *c)
{
	struct pg *s = c->s;
	char place[sizeof(s->place)];
	PGresult *r, *primary;
	int rc = pg_ask(s, REPLICATION, NULL, &r);

	if (rc < 0)
		return rc;
	if (!pg_int_at(r, 0, 0)) {
		say_replication(c, r, s->place);
	} else {
		c->fn(c->ctx, CHECK_NOTE, "replication",
		      arena_printf(&c->a, "%s is a standby: it only answers reads", s->place),
		      STR("name the primary in the URI, or all hosts"));
		primary = strchr(s->conninfo, ',') ? ask_primary(s, place, sizeof(place)) : NULL;
		if (primary)
			say_replication(c, primary, place);
		PQclear(primary);
	}
	PQclear(r);
	return 0;
}

/* --- other sessions ------------------------------------------------------------------------------- */

static int check_waiting(struct checking *c)
{
	int64_t n = 0;
	int rc = ask_int(c->s,
			 "SELECT count(*) FROM pg_catalog.pg_stat_activity WHERE $1>0 AND "
			 "wait_event='SyncRep' AND datname=current_database()",
			 &n);

	if (rc == 0 && n)
		c->fn(c->ctx, CHECK_BAD, "replication",
		      arena_printf(&c->a, "%lld sessions wait for a synchronous standby",
				   (long long)n),
		      STR("start the standby, or take it out of synchronous_standby_names"));
	return rc;
}

/* Among the sessions that are changing this queue: how many wait for another one, and which one they all wait for. */
static int check_clients(struct checking *c)
{
	struct pg_args args = { 0 };
	char prefix[40];
	PGresult *r;
	int rc;

	snprintf(prefix, sizeof(prefix), "pawl[%lld] ", (long long)c->s->q);
	pg_text(&args, prefix);
	rc = pg_ask(
		c->s,
		"WITH a AS (SELECT *,pg_blocking_pids(pid) AS behind FROM pg_catalog.pg_stat_activity "
		"WHERE datname=current_database()) SELECT (SELECT count(*) FROM a WHERE "
		"starts_with(application_name,$1) AND cardinality(behind)>0),b.pid::bigint,"
		"b.application_name,coalesce(extract(epoch FROM clock_timestamp()-b.xact_start)*1000,0)"
		"::bigint FROM a b WHERE cardinality(b.behind)=0 AND EXISTS(SELECT 1 FROM a WHERE "
		"starts_with(a.application_name,$1) AND b.pid=ANY(a.behind)) ORDER BY 4 DESC LIMIT 1",
		&args, &r);
	if (rc < 0)
		return rc;
	if (PQntuples(r))
		c->fn(c->ctx, CHECK_NOTE, "clients",
		      arena_printf(
			      &c->a,
			      "waiting clients: %lld, all because of session %lld of the server (%s), which has "
			      "been in its transaction for %lld ms",
			      (long long)pg_int_at(r, 0, 0), (long long)pg_int_at(r, 0, 1),
			      pg_text_at(r, 0, 2), (long long)pg_int_at(r, 0, 3)),
		      STR("if it is stuck: SELECT pg_terminate_backend(SESSION)"));
	else
		c->fn(c->ctx, CHECK_OK, "clients", STR("none waits for the queue"), STR(""));
	PQclear(r);
	return 0;
}

static int check_clock(struct checking *c)
{
	int64_t server = 0, ahead;
	int rc = ask_int(c->s, "SELECT (extract(epoch FROM clock_timestamp())*1000)::bigint-0*$1",
			 &server);

	if (rc < 0)
		return rc;
	ahead = server - os_wall_ms();
	c->fn(c->ctx, ahead > 5000 || ahead < -5000 ? CHECK_NOTE : CHECK_OK, "clock",
	      arena_printf(&c->a, "the server's clock decides; it is %lld ms %s this machine's",
			   (long long)llabs(ahead), ahead < 0 ? "behind" : "ahead of"),
	      STR(""));
	return 0;
}

static const struct {
	const char *what, *sql, *bad;
} rules[] = {
	{ "tally",
	  "SELECT count(*) FROM (SELECT n-1 AS status,t FROM $S.queue,unnest(tally) WITH ORDINALITY "
	  "AS u(t,n) WHERE q=$1) a FULL JOIN (SELECT status::bigint,count(*) AS t FROM $S.record "
	  "WHERE q=$1 AND status IS NOT NULL GROUP BY 1) b USING(status) WHERE "
	  "coalesce(a.t,0)<>coalesce(b.t,0)",
	  "statuses have a wrong count" },
	{ "links",
	  "SELECT (SELECT count(*) FROM $S.link l WHERE q=$1 AND NOT EXISTS(SELECT 1 FROM $S.record r "
	  "WHERE r.q=$1 AND r.key=l.key AND l.target=ANY(r.depends)))+(SELECT count(*) FROM $S.record "
	  "r,unnest(r.depends) d WHERE r.q=$1 AND NOT EXISTS(SELECT 1 FROM $S.link l WHERE l.q=$1 AND "
	  "l.target=d AND l.key=r.key))",
	  "links differ from the dependencies of their tasks" },
	{ "texts",
	  "SELECT count(*) FROM $S.text t WHERE q=$1 AND NOT EXISTS(SELECT 1 FROM $S.record r WHERE "
	  "r.q=$1 AND r.key=t.key)",
	  "texts belong to no record" },
	{ "log", "SELECT count(*) FROM $S.log l,$S.queue n WHERE l.q=$1 AND n.q=$1 AND l.seq>n.seq",
	  "entries of the log are newer than the queue's own count" },
};

static int check_rules(struct checking *c)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < sizeof(rules) / sizeof(*rules); i++) {
		int64_t n = 0;

		pg_patience(c->s, READS_ALL_MS);
		rc = ask_int(c->s, rules[i].sql, &n);
		if (rc == 0 && n)
			c->fn(c->ctx, CHECK_BAD, rules[i].what,
			      arena_printf(&c->a, "%lld %s", (long long)n, rules[i].bad),
			      STR("restore the queue from a backup"));
	}
	return rc;
}

static int check_bloat(struct checking *c)
{
	struct pg_args args = { 0 };
	PGresult *r;
	int rc;

	pg_text(&args, c->s->name);
	rc = pg_ask(
		c->s,
		"SELECT coalesce(sum(n_live_tup),0)::bigint,coalesce(sum(n_dead_tup),0)::bigint,"
		"coalesce(sum(pg_total_relation_size(relid)),0)::bigint FROM "
		"pg_catalog.pg_stat_user_tables WHERE schemaname=$1",
		&args, &r);
	if (rc < 0)
		return rc;
	if (PQntuples(r)) {
		int64_t live = pg_int_at(r, 0, 0), dead = pg_int_at(r, 0, 1);
		bool bloated = dead > 100000 && dead > 2 * live;

		c->fn(c->ctx, bloated ? CHECK_NOTE : CHECK_OK, "space",
		      arena_printf(&c->a, "%lld kB, %lld rows, %lld dead row versions",
				   (long long)pg_int_at(r, 0, 2) / 1024, (long long)live,
				   (long long)dead),
		      bloated ? STR("check that autovacuum runs") : STR(""));
	}
	PQclear(r);
	return 0;
}

int pg_check(struct store *base, check_fn *fn, void *ctx)
{
	struct checking c = { .s = pg_of(base), .fn = fn, .ctx = ctx };
	int rc = pg_guard(c.s);

	if (rc == 0)
		rc = check_server(&c);
	if (rc == 0)
		rc = check_replication(&c);
	if (rc == 0)
		rc = check_waiting(&c);
	if (rc == 0)
		rc = check_clients(&c);
	if (rc == 0)
		rc = check_clock(&c);
	if (rc == 0)
		rc = check_rules(&c);
	if (rc == 0)
		rc = check_bloat(&c);
	arena_free(&c.a);
	return rc;
}

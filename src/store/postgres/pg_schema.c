/* Makes and checks the schema, and finds the queue in it. A schema that pawl did not make is never changed, and a queue's
 * number is never reused. */
#include <stdio.h>

#include "base/text.h"
#include "store/postgres/postgres.h"

#define TALLY_ZERO "'{0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0}'"

static struct str queue_name(const struct pg *s)
{
	return s->base.env.opt.queue.n ? s->base.env.opt.queue : STR("default");
}

static bool is_state(const struct pg *s, const char *state)
{
	return !strcmp(s->state, state);
}

/* --- checking it ---------------------------------------------------------------------------------- */

int pg_version_check(struct pg *s, int64_t version)
{
	char schema[400];

	if (version == PG_VERSION)
		return 0;
	if (version < PG_VERSION) {
		snprintf(schema, sizeof(schema), "%s: the schema %s", s->place, s->name);
		return store_fail_older(&s->base.env, schema);
	}
	return store_fail(&s->base.env, STORE_NEWER, "install a newer pawl",
			  "%s: a newer pawl made the schema %s (version %lld, this pawl knows %d)",
			  s->place, s->name, (long long)version, PG_VERSION);
}

static int fail_foreign(struct pg *s)
{
	return store_fail(&s->base.env, STORE_FOREIGN,
			  "name another schema: ?schema=NAME at the end of the URI",
			  "%s: the schema %s belongs to another program", s->place, s->name);
}

/* 0: the schema is pawl's, and *version is set; 1: there is no schema, or it is empty. */
static int pg_schema_read(struct pg *s, int64_t *version)
{
	struct pg_args args = { 0 };
	PGresult *r;
	int rc, objects, about;

	pg_text(&args, s->name);
	rc = pg_ask(
		s,
		"SELECT count(c.oid),count(*) FILTER (WHERE c.relname='about' AND "
		"(SELECT count(*) FROM pg_catalog.pg_attribute WHERE attrelid=c.oid AND attname "
		"IN('program','version'))=2),count(*) FILTER (WHERE c.relname IN('queue','record',"
		"'text','link','log','batch')) "
		"FROM pg_catalog.pg_namespace n LEFT JOIN pg_catalog.pg_class c ON "
		"c.relnamespace=n.oid AND c.relkind IN('r','v','m','p','f') WHERE n.nspname=$1",
		&args, &r);
	if (rc < 0)
		return rc;
	objects = (int)pg_int_at(r, 0, 0);
	about = (int)pg_int_at(r, 0, 1);
	rc = about && pg_int_at(r, 0, 2) < 6 ? 2 : 0;
	PQclear(r);
	if (!objects)
		return 1;
	if (!about)
		return fail_foreign(s);
	if (rc == 2)
		return store_fail(&s->base.env, STORE_CORRUPT, "restore the schema from a backup",
				  "%s: a table of the schema %s is missing", s->place, s->name);
	rc = pg_ask(s, "SELECT program,version FROM $S.about", NULL, &r);
	if (rc < 0)
		return rc;
	if (PQntuples(r) == 1 && str_is(pg_bytes_at(r, 0, 0), "pawl"))
		*version = pg_int_at(r, 0, 1);
	else
		rc = fail_foreign(s);
	PQclear(r);
	return rc;
}

/* --- making it ------------------------------------------------------------------------------------ */

/* Only one process at a time may make the schema, or make a queue in it. */
static int pg_schema_begin(struct pg *s)
{
	struct pg_args args = { 0 };
	char timeout[24];
	int64_t ms = s->base.env.opt.timeout_ms;
	int rc = pg_send(s, "BEGIN ISOLATION LEVEL READ COMMITTED", NULL);

	snprintf(timeout, sizeof(timeout), "%lld",
		 (long long)(ms < INT32_MAX ? ms + 1 : INT32_MAX));
	pg_text(&args, timeout);
	pg_text(&args, s->name);
	pg_patience(s, s->base.env.opt.timeout_ms);
	if (rc == 0)
		rc = pg_ask(s,
			    "SELECT set_config('lock_timeout',$1,true),"
			    "pg_advisory_xact_lock(hashtextextended('pawl '||$2,0))",
			    &args, NULL);
	return rc;
}

static int pg_schema_commit(struct pg *s, int rc)
{
	if (rc == 0)
		rc = pg_commit(s);
	return rc < 0 ? pg_rollback(s, rc) : 0;
}

static int run_layout(struct pg *s)
{
	struct pg_args args = { 0 };
	PGresult *r;
	bool there;
	int rc;

	pg_text(&args, s->name);
	rc = pg_ask(s, "SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname=$1", &args, &r);
	if (rc < 0)
		return rc;
	there = PQntuples(r) > 0;
	PQclear(r);
	if (!there)
		rc = pg_send(s, "CREATE SCHEMA $S", NULL);
	for (size_t i = 0; rc == 0 && pg_layout[i]; i++)
		rc = pg_send(s, pg_layout[i], NULL);
	return rc < 0 ? rc : pg_wait(s, NULL);
}

static int lay_out(struct pg *s)
{
	int64_t version = 0;
	int rc = pg_schema_begin(s);

	if (rc == 0)
		rc = pg_schema_read(s, &version);
	if (rc == 1)
		rc = run_layout(s);
	else if (rc == 0)
		rc = pg_version_check(s, version);
	return pg_schema_commit(s, rc);
}

/* --- the queue in it ------------------------------------------------------------------------------ */

/* 0, 1 if the queue does not exist, or a fault. */
static int find_queue(struct pg *s, int64_t *version)
{
	struct pg_args args = { 0 };
	PGresult *r;
	struct str id;
	int rc;

	pg_bytes(&args, queue_name(s));
	rc = pg_ask(
		s,
		"SELECT a.version,n.q,greatest(n.now,$C),a.id::text FROM $S.about a LEFT JOIN $S.queue n ON n.name=$1 WHERE a.program='pawl'",
		&args, &r);
	if (rc < 0)
		return rc;
	if (PQntuples(r) != 1) {
		PQclear(r);
		return fail_foreign(s);
	}
	*version = pg_int_at(r, 0, 0);
	rc = PQgetisnull(r, 0, 1);
	s->q = pg_int_at(r, 0, 1);
	id = pg_bytes_at(r, 0, 3);
	snprintf(s->id, sizeof(s->id), "%.*s", STRF(id));
	if (rc == 0)
		pg_clock_set(s, pg_int_at(r, 0, 2));
	PQclear(r);
	return rc;
}

/* A queue's number is never reused, because a handle that is still open must not end up in another queue. Time and log
 * numbers continue from the last queue, so that a removed queue's cursor stays valid. */
static int make_queue(struct pg *s)
{
	struct pg_args args = { 0 };
	int64_t version;
	int rc = pg_schema_begin(s);

	pg_bytes(&args, queue_name(s));
	if (rc == 0)
		rc = find_queue(s, &version);
	if (rc == 1)
		rc = pg_ask(
			s,
			"INSERT INTO $S.queue(q,name,now,floor,seq,tally) SELECT "
			"coalesce(max(q),0)+1,$1,coalesce(max(now),0),0,coalesce(max(seq),0)," TALLY_ZERO
			" FROM $S.queue",
			&args, NULL);
	rc = pg_schema_commit(s, rc);
	return rc < 0 ? rc : find_queue(s, &version);
}

static int fail_absent(struct pg *s)
{
	struct arena a = { 0 };
	struct str name = queue_name(s);
	int rc = store_fail(&s->base.env, STORE_ABSENT,
			    arena_printf(&a, "pawl init --queue %s", store_word(&a, name).p).p,
			    "there is no queue '%.*s' in the schema %s of %s", STRF(name), s->name,
			    s->place);

	arena_free(&a);
	return rc;
}

/* The first statement failed: the schema is missing, foreign or damaged, or the user has no right to it. */
static int pg_schema_explain(struct pg *s)
{
	int64_t version;
	struct store_error first = *s->base.env.err;
	bool denied = is_state(s, "42501");
	int rc = pg_schema_read(s, &version);

	if (rc < 0 || (rc == 0 && denied)) {
		if (rc == 0)
			*s->base.env.err = first;
		return s->base.env.err->fault;
	}
	if (rc == 0)
		return fail_foreign(s);
	if (s->base.env.mode == STORE_CREATE)
		return lay_out(s);
	return store_fail(&s->base.env, STORE_ABSENT, "pawl init",
			  "there is no queue in %s: the database has no schema %s", s->place,
			  s->name);
}

int pg_attach(struct pg *s)
{
	int64_t version = 0;
	int rc = find_queue(s, &version);

	if (rc < 0 && (is_state(s, "42P01") || is_state(s, "3F000") || is_state(s, "42501") ||
		       is_state(s, "42703") || is_state(s, "42883"))) {
		rc = pg_schema_explain(s);
		if (rc == 0)
			rc = find_queue(s, &version);
	}
	if (rc >= 0 && pg_version_check(s, version))
		return s->base.env.err->fault;
	if (rc == 1 && s->base.env.mode == STORE_CREATE)
		rc = make_queue(s);
	return rc == 1 ? fail_absent(s) : rc;
}

int pg_queues(struct store *base, name_fn *fn, void *ctx)
{
	struct pg *s = pg_of(base);
	PGresult *r;
	int rc = pg_guard(s);

	if (rc == 0)
		rc = pg_ask(s, "SELECT name FROM $S.queue WHERE name IS NOT NULL ORDER BY q", NULL,
			    &r);
	if (rc < 0)
		return rc;
	for (int i = 0; i < PQntuples(r); i++)
		fn(ctx, pg_bytes_at(r, i, 0));
	PQclear(r);
	return 0;
}

/* The queue's row stays, without a name: see make_queue(). */
static int empty_queue(struct pg *s)
{
	static const char *const sql[] = {
		"DELETE FROM $S.text WHERE q=$1",
		"DELETE FROM $S.link WHERE q=$1",
		"DELETE FROM $S.record WHERE q=$1",
		"DELETE FROM $S.log WHERE q=$1",
		"DELETE FROM $S.batch WHERE q=$1",
		"UPDATE $S.queue SET name=NULL,tally=" TALLY_ZERO " WHERE q=$1",
	};
	struct pg_args args = { 0 };
	int rc = 0;

	pg_int(&args, s->q);
	for (size_t i = 0; rc == 0 && i < sizeof(sql) / sizeof(*sql); i++)
		rc = pg_send(s, sql[i], &args);
	return rc < 0 ? rc : pg_wait(s, NULL);
}

int pg_discard(struct store *base)
{
	struct pg *s = pg_of(base);
	int rc = pg_may_write(s);

	if (rc < 0)
		return rc;
	rc = pg_lock(s, base->env.opt.timeout_ms, NULL, 0);
	s->changing = false;
	if (rc < 0)
		return rc == STORE_ABSENT ? 0 : rc;
	return pg_schema_commit(s, empty_queue(s));
}

/* --- layout ----------------------------------------------------------------------------------- */

/*
 * The layout of the schema. pawl reads and writes the tables; the views are a stable interface for people: doc/data.md.
 *
 * `record` holds the fields that claims change, `text` the texts that they never change. `lane` and `status` are NULL
 * instead of 0, and holder, token and parent NULL instead of empty: this keeps rows out of the partial indexes. The
 * fill factors leave room for new versions of a row in its page, so that PostgreSQL need not touch the indexes. `link`
 * holds the reverse direction of `depends`. `batch` holds the last group commit of each slots file: pg_group.c. New records
 * begin with a revision above queue.floor, which a drop raises.
 */

#define WORD_OF(number) #number
#define WORD(number) WORD_OF(number)
#define VERSION WORD(PG_VERSION)
#define TXT(column) "$S.txt(" column ")"
#define TIME(ms) "to_timestamp(" ms "/1000.0)"
#define LIST(list, from)                                                                  \
	"(SELECT coalesce(jsonb_agg($S.txt(substring(x FROM " from ")) ORDER BY n),'[]')" \
	" FROM unnest(" list ") WITH ORDINALITY AS u(x,n))"

/* clang-format off */
const char *const pg_layout[] = {
	"CREATE TABLE $S.about(program text NOT NULL,version integer NOT NULL,id uuid NOT NULL DEFAULT gen_random_uuid())",
	"CREATE TABLE $S.queue(q bigint PRIMARY KEY,name bytea UNIQUE,now bigint NOT NULL,floor bigint NOT NULL,"
	"seq bigint NOT NULL,tally bigint[] NOT NULL) WITH (fillfactor=10)",
	"CREATE TABLE $S.record(q bigint,key bytea,rev bigint NOT NULL,lane smallint,status smallint,class_rank integer,"
	"priority integer,eligible_at bigint,updated_at bigint,created_at bigint,due_at bigint,id bytea,id_key bytea,"
	"holder bytea,token bytea,parent bytea,type bytea,labels bytea[],depends bytea[],hot bytea,assignee bytea,"
	"run bytea,attempts bigint,fence bigint,archived bigint,queue_holder bytea,host bytea,acquired bigint,"
	"expires bigint,PRIMARY KEY(q,key)) WITH (fillfactor=70)",
	"CREATE INDEX record_ready ON $S.record(q,class_rank,priority DESC,due_at,updated_at,id_key) WHERE lane=" LANE_TEXT(LANE_READY),
	"CREATE INDEX record_due ON $S.record(q,lane,eligible_at) WHERE " PG_DUE_LANES,
	"CREATE INDEX record_status ON $S.record(q,status,created_at,id_key) WHERE status IS NOT NULL",
	"CREATE INDEX record_held ON $S.record(q,token,holder) WHERE holder IS NOT NULL OR token IS NOT NULL",
	"CREATE INDEX record_parent ON $S.record(q,parent) WHERE parent IS NOT NULL",
	"CREATE TABLE $S.text(q bigint,key bytea,title bytea,description bytea,acceptance bytea,blocker_reason bytea,"
	"unblock_action bytea,summary bytea,rest bytea,PRIMARY KEY(q,key))",
	"CREATE TABLE $S.link(q bigint,target bytea,key bytea,PRIMARY KEY(q,target,key))",
	"CREATE TABLE $S.log(q bigint,seq bigint,key bytea NOT NULL,at bigint NOT NULL,kind bytea,task bytea,agent bytea,"
	"run bytea,text bytea,rest bytea,PRIMARY KEY(q,seq))",
	"CREATE INDEX log_key ON $S.log(q,key,seq)",
	"CREATE TABLE $S.batch(q bigint,place bigint,id bigint NOT NULL,at bigint NOT NULL,PRIMARY KEY(q,place)) WITH (fillfactor=10)",
	/* Bytes that are not valid in the database's encoding must not break a whole view. The function runs with the
	 * reader's search path, so its names have a schema. */
	"CREATE FUNCTION $S.txt(bytea) RETURNS text LANGUAGE plpgsql IMMUTABLE STRICT AS "
	"$f$BEGIN RETURN pg_catalog.convert_from($1,'UTF8'); EXCEPTION WHEN OTHERS THEN "
	"RETURN pg_catalog.encode($1,'escape'); END$f$",
	"CREATE VIEW $S.tasks AS SELECT " TXT("n.name") " AS queue," TXT("r.id") " AS id," TXT("r.id_key") " AS id_key,"
	TXT("t.title") " AS title,"
	"(ARRAY['Backlog','Ready','In Progress','Blocked','Needs Help','Review','Done','Failed','Canceled'])[r.status] AS status,"
	"(ARRAY['Expedite','Fixed Date','Standard','Intangible'])[r.class_rank] AS class,r.priority,"
	"(" TIME("r.due_at") " AT TIME ZONE 'UTC')::date AS due," TXT("r.type") " AS type,"
	LIST("r.labels", "1") " AS labels," LIST("r.depends", "6") " AS depends,"
	TXT("substring(r.parent FROM 6)") " AS parent," TXT("r.assignee") " AS assignee," TXT("r.holder") " AS holder,"
	TXT("r.run") " AS run,r.fence,r.attempts," TIME("r.expires") " AS expires_at,"
	TXT("t.description") " AS description," TXT("t.acceptance") " AS acceptance,"
	TXT("t.blocker_reason") " AS blocker_reason," TXT("t.unblock_action") " AS unblock_action,"
	TXT("t.summary") " AS summary," TIME("r.created_at") " AS created," TIME("r.updated_at") " AS updated,"
	TIME("r.archived") " AS archived "
	"FROM $S.record r JOIN $S.queue n USING(q) LEFT JOIN $S.text t USING(q,key) WHERE r.status IS NOT NULL",
	"CREATE VIEW $S.locks AS SELECT " TXT("n.name") " AS queue,"
	TXT("CASE WHEN r.status IS NULL THEN substring(r.key FROM 6) ELSE r.id END") " AS task,"
	TXT("coalesce(r.holder,r.queue_holder)") " AS holder," TXT("r.run") " AS run," TXT("r.host") " AS host,r.fence,"
	TIME("r.acquired") " AS acquired_at," TIME("r.expires") " AS expires_at,"
	"" TIME("r.expires") ">clock_timestamp() AS live FROM $S.record r JOIN $S.queue n USING(q) "
	"WHERE r.holder IS NOT NULL OR r.queue_holder IS NOT NULL",
	"CREATE VIEW $S.events AS SELECT " TXT("n.name") " AS queue,l.seq," TIME("l.at") " AS at," TXT("l.task") " AS task,"
	TXT("l.agent") " AS agent," TXT("l.kind") " AS kind," TXT("l.text") " AS text," TXT("l.run") " AS run "
	"FROM $S.log l JOIN $S.queue n USING(q) WHERE l.kind IS NOT NULL",
	"INSERT INTO $S.about(program,version) VALUES('pawl'," VERSION ")",
	NULL
};
/* clang-format on */

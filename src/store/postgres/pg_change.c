/* Changes: each is one transaction that first locks the queue's row. A change is retried only while COMMIT has not been
 * sent; after that its outcome is unknown until the server answers. */
#include <errno.h>
#include <stdio.h>

#include "base/os.h"
#include "store/postgres/postgres.h"

#define IDLE_MS "5000" /* a process that is stopped in a change loses it after this time */
#define LARGE 32       /* an edit with this many records frees its memory before the commit */
#define LOGGED 1048576 /* after this many bytes of log entries, an edit frees its memory, too */
#define AGAIN 3        /* attempts after a lost connection */
#define ROW_MS 100     /* see pg_lead_again() */

int pg_rollback(struct pg *s, int rc)
{
	struct store_error err = *s->base.env.err;

	if (!s->broken && pg_send(s, "ROLLBACK", NULL) == 0)
		pg_let_go(s);
	if (rc < 0)
		*s->base.env.err = err;
	return rc;
}

/* --- the lock ------------------------------------------------------------------------------------- */

/* Names the row's holder: the session whose name says that it is changing this queue, and which is not itself waiting. */
static int fail_busy(struct pg *s)
{
	struct pg_args args = { 0 };
	struct store_error err = *s->base.env.err;
	char prefix[40];
	PGresult *r = NULL;
	int rc;

	snprintf(prefix, sizeof(prefix), "pawl[%lld] ", (long long)s->q);
	pg_text(&args, prefix);
	rc = pg_ask(s,
		    "SELECT substr(application_name,length($1)+1),pid::bigint,"
		    "(extract(epoch FROM clock_timestamp()-xact_start)*1000)::bigint FROM "
		    "pg_catalog.pg_stat_activity WHERE starts_with(application_name,$1) AND "
		    "pid<>pg_backend_pid() AND datname=current_database() "
		    "ORDER BY cardinality(pg_blocking_pids(pid)),xact_start LIMIT 1",
		    &args, &r);
	*s->base.env.err = err;
	if (rc == 0 && PQntuples(r)) {
		struct str who = pg_bytes_at(r, 0, 0);

		rc = store_fail(&s->base.env, STORE_BUSY,
				"try again, or wait longer with --timeout",
				"%s: %.*s changes the queue (session %lld of the server, for %lld "
				"ms)",
				s->place, STRF(who), (long long)pg_int_at(r, 0, 1),
				(long long)pg_int_at(r, 0, 2));
	} else {
		rc = store_fail(&s->base.env, STORE_BUSY,
				"try again, or wait longer with --timeout",
				"%s: another process changes the queue", s->place);
	}
	PQclear(r);
	return rc;
}

static int read_lock(struct pg *s, const PGresult *r)
{
	struct str tally;

	if (!PQntuples(r) || PQgetisnull(r, 0, 0))
		return store_fail(&s->base.env, STORE_ABSENT, "pawl init",
				  "another process removed the queue from %s while it was open",
				  s->place);
	if (pg_version_check(s, pg_int_at(r, 0, 5)))
		return s->base.env.err->fault;
	s->now = pg_int_at(r, 0, 1) - PG_AHEAD_MS;
	s->ahead.until = pg_int_at(r, 0, 1);
	s->row = (struct pg_row){ .now = s->now,
				  .floor = pg_int_at(r, 0, 2),
				  .seq = pg_int_at(r, 0, 3),
				  .due = pg_int_at(r, 0, 6) };
	tally = pg_bytes_at(r, 0, 4);
	for (int i = 0; i < STORE_STATUSES; i++)
		(void)str_to_i64(str_cut(&tally, ','), &s->row.tally[i]);
	return 0;
}

/* The settings hold for this transaction only, because a pooler may give its session to another program afterwards. Every
 * statement of a change must find its rows by an index. If the table was small or unknown when the planner made the plan,
 * the planner would prefer to read the whole table. */
static int send_settings(struct pg *s, int64_t left_ms)
{
	struct pg_args args = { 0 };
	char timeout[24], name[64];

	if (left_ms > INT32_MAX)
		left_ms = INT32_MAX; /* the most that the server takes */
	snprintf(timeout, sizeof(timeout), "%lld", (long long)(left_ms > 0 ? left_ms : 1));
	snprintf(name, sizeof(name), "pawl[%lld] %.*s", (long long)s->q, STRF(s->base.env.opt.who));
	for (char *p = name; *p; p++) /* as the server does; it refuses a truncated character */
		if ((unsigned char)*p >= 0x80)
			*p = '?';
	pg_text(&args, timeout);
	pg_text(&args, name);
	return pg_send(
		s,
		"SELECT set_config('lock_timeout',$1,true),"
		"set_config('idle_in_transaction_session_timeout','" IDLE_MS "',true),"
		"set_config('enable_seqscan','off',true),set_config('enable_hashjoin','off',true),"
		"set_config('enable_mergejoin','off',true),"
		"set_config('application_name',$2,true),set_config('synchronous_commit',"
		"CASE WHEN current_setting('synchronous_commit')='off' THEN 'on' ELSE "
		"current_setting('synchronous_commit') END,true)",
		&args);
}

/* One condition for each lane, because with a list of lanes a plan from the time of a small table reads the whole index. */
#define DUE(lane)                                                     \
	"EXISTS(SELECT 1 FROM $S.record WHERE q=$1 AND " PG_DUE_LANES \
	" AND lane=" LANE_TEXT(lane) " AND eligible_at<=b.t)"
#define ANY_DUE DUE(LANE_LATER) " OR " DUE(LANE_GOING)

/* OFFSET 0 keeps the server from taking the time before it waits for the lock, and from taking it for every row. pawl.now
 * is the time for the queries that are read ahead. It is PG_AHEAD_MS later, because a batch takes time and its changes
 * use these answers until then. */
static int send_lock(struct pg *s)
{
	struct pg_args args = { 0 };

	pg_int(&args, s->q);
	pg_int(&args, pg_clock_from(s, 0));
	pg_int(&args, PG_AHEAD_MS);
	return pg_send(s,
		       "SELECT name,set_config('pawl.now',b.t::text,true)::bigint,floor,seq,"
		       "array_to_string(tally,','),(SELECT version::bigint FROM $S.about)," ANY_DUE
		       " FROM (SELECT *,greatest(now,$C,$2)+$3 AS t "
		       "FROM (SELECT * FROM $S.queue WHERE q=$1 OFFSET 0 FOR NO KEY UPDATE) l"
		       " OFFSET 0) b",
		       &args);
}

int pg_lock(struct pg *s, int64_t left_ms, const struct wants *const *w, size_t n)
{
	PGresult *r[PG_SETS + 2];
	int rc = pg_send(s, "BEGIN ISOLATION LEVEL READ COMMITTED", NULL);

	s->changes++;
	pg_patience(s, left_ms);
	if (rc == 0)
		rc = send_settings(s, left_ms);
	if (rc == 0)
		rc = send_lock(s);
	if (rc == 0)
		rc = pg_ahead_send(s, w, n);
	if (rc == 0)
		rc = pg_wait_all(s, r, 1 + pg_ahead_results(s));
	if (rc == STORE_BUSY && !strcmp(s->state, "55P03")) {
		pg_rollback(s, rc);
		return fail_busy(s);
	}
	if (rc < 0)
		return pg_rollback(s, rc);
	rc = read_lock(s, r[0]);
	PQclear(r[0]);
	s->changing = true; /* from here on we remember every record that we read */
	pg_ahead_keep(s, r + 1);
	return rc < 0 ? pg_rollback(s, rc) : 0;
}

/* --- the commit ----------------------------------------------------------------------------------- */

/* Also promotes due records and removes expired ones, a limited number at once. The locking statement searched for them in
 * the state from before it waited. If it missed one, a later change finds it. */
static int send_queue_row(struct pg *s)
{
	struct pg_args args = { 0 };
	char tally[STORE_STATUSES * 22 + 3];
	size_t n = 0;

	for (int i = 0; i < STORE_STATUSES; i++)
		n += (size_t)snprintf(tally + n, sizeof(tally) - n, "%c%lld", i ? ',' : '{',
				      (long long)s->row.tally[i]);
	snprintf(tally + n, sizeof(tally) - n, "}");
	pg_int(&args, s->q);
	pg_int(&args, s->now);
	pg_int(&args, s->row.seq);
	pg_int(&args, s->row.floor);
	pg_text(&args, tally);
	if (!s->row.due)
		return pg_send(s,
			       "UPDATE $S.queue SET now=$2,seq=$3,floor=$4,tally=$5::bigint[] "
			       "WHERE q=$1",
			       &args);
	return pg_send(
		s,
		"WITH going AS (DELETE FROM $S.record WHERE q=$1 AND key=ANY(ARRAY(SELECT key FROM "
		"$S.record WHERE q=$1 AND " PG_DUE_LANES " AND lane=" LANE_TEXT(
			LANE_GOING) " AND eligible_at<=$2 AND status IS NULL "
				    "LIMIT 256)) RETURNING key,rev),"
				    "gone AS (DELETE FROM $S.text WHERE q=$1 AND key=ANY(ARRAY(SELECT key FROM going))),"
				    "due AS (UPDATE $S.record SET lane=" LANE_TEXT(
					    LANE_READY) " WHERE q=$1 AND key=ANY(ARRAY(SELECT key FROM "
							"$S.record WHERE q=$1 AND " PG_DUE_LANES
							" AND lane=" LANE_TEXT(
								LANE_LATER) " AND eligible_at<=$2 LIMIT 256)))"
									    "UPDATE $S.queue SET now=$2,seq=$3,floor=greatest($4,(SELECT max(rev) FROM going)),"
									    "tally=$5::bigint[] WHERE q=$1",
		&args);
}

/* If the connection is lost after COMMIT was sent, the server may or may not have made the change. A warning at COMMIT
 * says that the wait for a standby was cut short, so a failover may lose the change. */
int pg_commit(struct pg *s)
{
	PGresult *r = NULL;
	int rc;

	s->warned = false;
	s->committing = true;
	rc = pg_ask(s, "COMMIT", NULL, &r);
	s->committing = false;
	if (rc == 0 && strcmp(PQcmdStatus(r), "COMMIT") != 0)
		rc = store_fail(&s->base.env, STORE_IO, "try again",
				"%s: the server rolled the change back", s->place);
	else if (rc == 0 && s->warned) {
		rc = store_fail(&s->base.env, STORE_IO,
				"check whether the change was made (pawl log), or repeat it",
				"%s: the change is on the server, but perhaps not on its standby",
				s->place);
		s->base.env.err->applied = '?';
	}
	PQclear(r);
	return rc;
}

/* --- changes -------------------------------------------------------------------------------------- */

static bool is_large(const struct pg *s, const struct edit *e)
{
	return e->n_items >= LARGE || s->n_seen > PG_SEEN_MOST || s->logged >= LOGGED;
}

static int run_all(struct pg *s, struct change *changes, size_t n, bool *worth)
{
	struct edit e;
	int rc = 0;

	for (size_t i = 0; rc >= 0 && i < n; i++) {
		rc = edit_run(&e, &s->base, &s->arena, s->now, &changes[i]);
		if (rc == 0) {
			*worth = true;
			rc = pg_apply(s, &e);
		}
		if (rc < 0 || !is_large(s, &e))
			continue;
		rc = pg_later_send(s);
		pg_forget_seen(s); /* an import makes thousands of large edits */
	}
	return rc < 0 ? rc : 0;
}

static void end_change(struct pg *s)
{
	s->changing = false;
	pg_forget_seen(s);
}

/* The wants of our own changes and of the waiting calls. */
#define WANTS_MOST 512
static size_t all_wants(struct pg *s, const struct change *changes, size_t n, bool others,
			const struct wants **out)
{
	size_t all = 0;

	while (all < n && all < WANTS_MOST - COMBINE_SLOTS && changes[all].wants) {
		out[all] = changes[all].wants;
		all++;
	}
	return others ? all + pg_group_hints(s, out + all, COMBINE_SLOTS) : all;
}

static int commit_change(struct pg *s)
{
	int rc = send_queue_row(s);

	combine_at("committing");
	if (rc == 0)
		rc = pg_commit(s);
	combine_at("committed");
	return rc;
}

/* A holder of the gate notifies the others only when it leaves, because a notification is a separate transaction and may
 * need a new connection. */
static void tell_others(struct pg *s)
{
	if (s->leading)
		s->news = true;
	else
		pg_tell(s);
}

/* *others: on entry, whether to run other processes' calls; on return, whether there were any, or a dead holder's calls
 * could not be settled. */
static int change_once(struct pg *s, struct change *changes, size_t n, bool *others,
		       int64_t left_ms)
{
	bool worth = false, with = *others && pg_group_leads(s), failed = false;
	const struct wants *w[WANTS_MOST] = { 0 };
	int rc = pg_lock(s, left_ms, w, all_wants(s, changes, n, with, w));

	*others = false;
	if (rc < 0) {
		end_change(s);
		arena_free(&s->calls);
		return rc;
	}
	rc = run_all(s, changes, n, &worth);
	if (rc == 0 && with) {
		rc = batch_run(&s->batch, &s->calls, &worth);
		failed = rc < 0;
	}
	worth = worth && !s->base.env.trial;
	if (rc == 0 && worth)
		rc = commit_change(s);
	end_change(s);
	pg_clock_set(s, s->now);
	if (rc < 0 || !worth)
		rc = pg_rollback(s, rc);
	else
		tell_others(s);
	*others = failed || s->batch.n > 0;
	batch_end(&s->batch, rc);
	arena_free(&s->calls);
	return rc;
}

/* If the connection was lost before COMMIT was sent, nothing has changed, and the change runs again on a new connection. A
 * fault in another process's call must not fail our change, so we retry without those calls. */
static int pg_change_run(struct pg *s, struct change *changes, size_t n, bool others,
			 int64_t deadline)
{
	bool had = others;
	int rc = change_once(s, changes, n, &had, deadline - os_boot_ms());

	for (int tries = 1; rc < 0 && s->base.env.err->applied != '?'; tries++) {
		if ((!s->broken && !had) || (had && !n) || tries == AGAIN ||
		    os_boot_ms() >= deadline)
			break;
		rc = s->broken || !s->db ? pg_guard(s) : 0;
		others = others && !had;
		had = others;
		if (rc == 0)
			rc = change_once(s, changes, n, &had, deadline - os_boot_ms());
	}
	if (rc < 0 && s->base.env.err->applied == '?')
		tell_others(s);
	return rc;
}

/* --- group commit --------------------------------------------------------------------------------- */

/* If another machine holds the row for longer than ROW_MS, we leave. Our own caller need not wait for it, and we have not
 * yet notified the waiting processes of our commit. The next holder of the gate waits for the row. */
int pg_lead_again(struct store *base, int64_t left_ms)
{
	struct pg *s = pg_of(base);

	if (!pg_group_leads(s) || s->broken)
		return 1;
	gate_again(&s->gate, batch_who(&s->batch));
	return pg_change_run(s, NULL, 0, true,
			     os_boot_ms() + (left_ms < ROW_MS ? left_ms : ROW_MS));
}

static int change_and_leave(struct pg *s, struct change *changes, size_t n, int64_t deadline)
{
	int rc = pg_change_run(s, changes, n, true, deadline);
	struct store_error err = *s->base.env.err;

	if (rc == 0)
		(void)batch_serve_on(&s->batch, deadline);
	pg_group_leave(s);
	*s->base.env.err = err;
	return rc;
}

int pg_lead(struct store *base, int64_t deadline)
{
	struct pg *s = pg_of(base);
	int rc = pg_guard(s);

	s->leading = true;
	s->tell_by = deadline;
	if (rc == 0)
		return change_and_leave(s, NULL, 0, deadline);
	pg_group_leave(s);
	return rc;
}

int pg_change_alone(struct store *base, struct change *c, int64_t deadline)
{
	struct pg *s = pg_of(base);
	int rc = pg_guard(s);

	s->tell_by = deadline;
	return rc < 0 ? rc : pg_change_run(s, c, 1, false, deadline);
}

/* --- the interface -------------------------------------------------------------------------------- */

int pg_may_write(struct pg *s)
{
	int rc = pg_guard(s);

	return rc < 0 ? rc : store_may_write(&s->base.env, s->place, s->changing || s->depth);
}

int pg_modify(struct store *base, struct change *changes, size_t n)
{
	struct pg *s = pg_of(base);
	int64_t deadline = os_boot_ms() + base->env.opt.timeout_ms;
	int rc = pg_may_write(s);

	if (rc < 0)
		return rc;
	s->tell_by = deadline;
	rc = pg_group_enter(s);
	if (rc == 0)
		return change_and_leave(s, changes, n, deadline);
	if (rc == -ETIMEDOUT && n == 1 && batch_ask(&s->batch, changes, deadline))
		return batch_await(&s->batch, changes, deadline);
	return pg_change_run(s, changes, n, false, deadline);
}

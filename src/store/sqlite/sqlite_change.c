/* Changes: each takes the gate and runs one transaction, sometimes after a checkpoint. A change is reported as made only
 * after COMMIT, and after a check that our files are still those at their paths. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/os.h"
#include "base/when.h"
#include "store/sqlite/sqlite.h"

#define MANY_DUE 100 /* this many due records are worth a commit of their own */
#define LARGE 32     /* an edit with this many records frees its memory before the commit */

/* Selects records that are due but still in their old lane. */
struct due {
	int64_t later; /* at most MANY_DUE */
	bool waiting, going;
};

/* SQLite re-prepares a statement after another process has changed the schema. If a newer pawl did that, we must not
 * write. The first run of a statement proves nothing, so we check the version then, too. */
static int still_ours(struct sq *s, sqlite3_stmt *st)
{
	if (!sqlite3_stmt_status(st, SQLITE_STMTSTATUS_REPREPARE, true) &&
	    sqlite3_stmt_status(st, SQLITE_STMTSTATUS_RUN, false) > 1)
		return 0;
	return sq_version_check(s);
}

/* A discarded queue keeps its row but has no name. */
static int check_queue(struct sq *s)
{
	sqlite3_stmt *st;
	int rc = sq_take(s, "SELECT name FROM queue WHERE n=? AND name NOT NULL", &st);

	if (rc < 0)
		return rc;
	sqlite3_bind_int64(st, 1, s->q);
	rc = sq_step(s, st);
	sq_give(s, st);
	if (rc == SQLITE_DONE)
		return store_fail(&s->base.env, STORE_ABSENT, "pawl init",
				  "another process removed the queue from %s while it was open",
				  s->path);
	return rc < 0 ? rc : 0;
}

/* Counts up to `most` due records in this lane, and lowers s->next_due to the time of the next one. */
static int count_due(struct sq *s, int lane, int most, int64_t *n)
{
	sqlite3_stmt *st;
	int64_t wake = 0;
	int rc = sq_take(
		s,
		"SELECT wake FROM record INDEXED BY record_lane WHERE q=? AND lane=? AND wake>0 ORDER BY wake LIMIT ?",
		&st);

	if (rc < 0)
		return rc;
	sqlite3_bind_int64(st, 1, s->q);
	sqlite3_bind_int(st, 2, lane);
	sqlite3_bind_int(st, 3, most);
	while ((rc = sq_step(s, st)) == SQLITE_ROW) {
		wake = sqlite3_column_int64(st, 0);
		if (wake > s->now)
			break;
		++*n;
	}
	if (rc == SQLITE_ROW && wake < s->next_due)
		s->next_due = wake;
	if (rc >= 0)
		rc = still_ours(s, st);
	sq_give(s, st);
	return rc < 0 ? rc : 0;
}

static int search_due(struct sq *s, struct due *out)
{
	int64_t waiting = 0, going = 0;
	int rc = check_queue(s);

	s->next_due = INT64_MAX;
	if (rc == 0)
		rc = count_due(s, LANE_LATER, MANY_DUE, &out->later);
	for (int lane = LANE_WAITING; rc == 0 && lane <= LANE_BOTH; lane++)
		if (lane_waits(lane))
			rc = count_due(s, lane, 1, &waiting);
	if (rc == 0)
		rc = count_due(s, LANE_GOING, 1, &going);
	out->waiting = waiting;
	out->going = going;
	if (rc || out->later || waiting || going)
		s->next_due = 0;
	sq_keep_due(s);
	return rc;
}

/* While no other process has changed the database, no record is due before s->next_due, and the queue still exists. */
static int find_due(struct sq *s, struct due *out)
{
	*out = (struct due){ 0 };
	if (s->now < s->next_due && sq_data_version(s) == s->due_version)
		return 0;
	return search_due(s, out);
}

static int sq_change_promote(struct sq *s, const char *sql)
{
	sqlite3_stmt *st;
	int rc = sq_take(s, sql, &st);

	if (rc < 0)
		return rc;
	sqlite3_bind_int64(st, 1, s->q);
	sqlite3_bind_int64(st, 2, s->now);
	return sq_finish(s, st);
}

/* Collects the keys first: a row must not be deleted while a statement reads it. */
static int sq_change_sweep(struct sq *s, struct arena *a)
{
	struct strs keys = { 0 };
	sqlite3_stmt *st;
	int rc = sq_take(
		s,
		"SELECT key FROM record INDEXED BY record_lane WHERE q=?1 AND lane=" LANE_TEXT(
			LANE_GOING) " AND wake<=?2"
				    " ORDER BY wake LIMIT 256",
		&st);

	if (rc < 0)
		return rc;
	sqlite3_bind_int64(st, 1, s->q);
	sqlite3_bind_int64(st, 2, s->now);
	keys.v = arena_array(a, struct str, 256);
	while ((rc = sq_step(s, st)) == SQLITE_ROW && keys.n < 256)
		keys.v[keys.n++] = arena_str(a, sq_column(st, 0));
	sq_give(s, st);
	for (size_t i = 0; rc >= 0 && i < keys.n; i++)
		rc = sq_drop(s, keys.v[i]);
	return rc < 0 ? rc : 0;
}

static int sq_change_tidy(struct sq *s, struct due *due, struct arena *a)
{
	int rc = 0;

	s->n_seen = 0;
	if (due->later)
		rc = sq_change_promote(
			s,
			"UPDATE record SET lane=" LANE_TEXT(LANE_READY) ",wake=0 WHERE q=?1 AND lane=" LANE_TEXT(
				LANE_LATER) " AND wake<=?2");
	if (rc == 0 && due->waiting)
		rc = sq_change_promote(
			s, "UPDATE record SET wake=0 WHERE q=?1 AND lane IN(" LANES_WAITING_TEXT
			   ")AND wake>0 AND wake<=?2");
	if (rc == 0 && due->going)
		rc = sq_change_sweep(s, a);
	*due = (struct due){ 0 };
	return rc;
}

/*
 * A process died in its commit, or the commit failed. Its frames may be complete in the WAL but missing from the WAL's
 * index. No reader sees them until SQLite rebuilds the index. Then the commit would reappear, after other processes
 * have read a state without it. A new commit overwrites these frames, so this change writes the anchor and commits.
 */
static int delete_ended(struct sq *s, bool *worth)
{
	if (!gate_was_marked(&s->gate))
		return 0;
	*worth = true;
	return sq_clock_save(s);
}

/* A few due records do not justify a commit. They wait for the next edit that writes, and until then each scan merges
 * them in. */
static int start_change(struct sq *s, struct due *due, struct arena *a, bool *worth)
{
	int rc = sq_clock_change(s);

	s->floor = -1;
	if (rc == 0)
		rc = delete_ended(s, worth);
	if (rc == 0)
		rc = find_due(s, due);
	s->all_promoted = rc == 0 && !due->later;
	if (rc == 0 && due->later >= MANY_DUE) {
		*worth = true;
		rc = sq_change_tidy(s, due, a);
	}
	return rc;
}

static int write_entry(struct sq *s, const struct entry *e)
{
	sqlite3_stmt *st;
	int rc = sq_take(
		s,
		"INSERT INTO event(q,key,at,kind,task,agent,run,text,rest) VALUES(?,?,?,?,?,?,?,?,?)",
		&st);
	struct str words[COLUMN_WORDS];
	struct buf rest;

	if (rc < 0)
		return rc;
	column_split(column_entry_tags, COLUMN_WORDS, e->data, words, &rest);
	sqlite3_bind_int64(st, 1, s->q);
	sq_bind(st, 2, e->key);
	sqlite3_bind_int64(st, 3, e->at);
	for (int i = 0; i < COLUMN_WORDS; i++)
		sq_bind_some(st, 4 + i, words[i]);
	sq_bind_some(st, 4 + COLUMN_WORDS, buf_str(&rest));
	rc = sq_finish(s, st);
	buf_free(&rest);
	return rc;
}

/* The last entry stays, as in empty_queue(), because entry numbers must only grow. */
static int sq_change_forget(struct sq *s, const struct edit *e)
{
	static const char sql[] =
		"DELETE FROM event WHERE q=?1 AND at<?2 AND seq<(SELECT max(seq) FROM event) AND NOT EXISTS("
		"SELECT 1 FROM record WHERE record.q=?1 AND record.key=event.key AND (1<<status)&?3)";
	sqlite3_stmt *st;
	int rc = sq_take(s, sql, &st);

	if (rc < 0)
		return rc;
	sqlite3_bind_int64(st, 1, s->q);
	sqlite3_bind_int64(st, 2, e->forget);
	sqlite3_bind_int64(st, 3, e->forget_except);
	return sq_finish(s, st);
}

int sq_apply(struct sq *s, const struct edit *e)
{
	int rc = 0;

	for (const struct edit_item *it = e->items; rc == 0 && it; it = it->next)
		rc = it->dropped ? sq_drop(s, it->rec.key) : sq_put(s, &it->rec);
	for (const struct edit_entry *n = e->entries; rc == 0 && n; n = n->next)
		rc = write_entry(s, &n->entry);
	return rc || !e->forget ? rc : sq_change_forget(s, e);
}

/* No savepoints are needed: an edit writes nothing before it agrees, and a fault rolls back the transaction. */
static int run_own(struct sq *s, struct change *changes, size_t n, struct arena *a, bool *worth)
{
	struct edit e;
	int rc = 0;

	for (size_t i = 0; rc >= 0 && i < n; i++) {
		rc = edit_run(&e, &s->base, a, s->now, &changes[i]);
		if (rc == 0) {
			*worth = true;
			rc = sq_apply(s, &e);
		}
		if (e.n_items >= LARGE) { /* an import makes thousands of large edits */
			s->n_seen = 0;
			arena_free(a);
		}
	}
	return rc < 0 ? rc : 0;
}

static int run_changes(struct sq *s, struct change *changes, size_t n, bool others, struct arena *a,
		       bool *worth)
{
	struct due due = { 0 };
	int rc = start_change(s, &due, a, worth);

	if (rc == 0)
		rc = run_own(s, changes, n, a, worth);
	if (rc == 0 && others)
		rc = batch_run(&s->batch, a, worth);
	if (rc == 0 && *worth)
		rc = sq_change_tidy(s, &due, a);
	if (rc == 0)
		rc = sq_tally_flush(s);
	return rc;
}

static void end_change(struct sq *s)
{
	s->changing = false;
	sq_rollback(s);
	memset(s->tally, 0, sizeof(s->tally));
	s->tally_dirty = false;
	s->n_seen = 0;
	s->n_absent = 0;
}

/* Runs before the other processes get their answers, because a caller with an answer must find its commit counted. */
static void count_commit(struct sq *s, size_t own)
{
	struct store_counts *c = gate_counts(&s->gate);

	if (!c)
		return;
	atomic_fetch_add_explicit(&c->commits, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&c->changes, own + s->batch.n, memory_order_relaxed);
	if (s->batch.n)
		atomic_fetch_add_explicit(&c->handed, s->batch.n, memory_order_relaxed);
}

/* *others: on entry, whether to run other processes' calls; on return, whether there were any. */
static int change_once(struct sq *s, struct change *changes, size_t n, bool *others,
		       int64_t left_ms)
{
	bool trial = s->base.env.trial, worth = false, with = *others && !trial;
	int rc = sq_files_settle(s, left_ms);

	*others = false;
	if (rc < 0)
		return rc;
	sq_shorten_wal(s);
	rc = sq_begin(s, left_ms);
	if (rc < 0)
		return sq_files_blame(s, rc);
	s->changing = true;
	rc = sq_shape_check(s);
	if (rc == 0)
		rc = run_changes(s, changes, n, with, &s->arena, &worth);
	worth = worth && !trial;
	if (rc == 0 && worth)
		rc = sq_commit(s);
	if (rc == 0 && worth && s->base.env.opt.counting)
		count_commit(s, n);
	rc = sq_files_blame(s, rc);
	end_change(s);
	sq_files_rest(s);
	*others = s->batch.n > 0;
	batch_end(&s->batch, rc);
	if (rc == 0 && worth)
		sq_announce_wal(s);
	arena_free(&s->arena);
	return rc;
}

/* Must we reconnect? Yes, if our files are not those at the paths. Yes, if a rollback failed for lack of memory, because
 * other processes would wait for our locks. Yes, if SQLite could not open the WAL or its index for writing, because it
 * would never try again. */
static bool sq_change_stuck(struct sq *s, int rc)
{
	return s->db && (rc == STORE_READONLY || s->lost || !sqlite3_get_autocommit(s->db));
}

/* A fault in another process's call must not fail our change, so we retry without those calls. */
static int change_under_gate(struct sq *s, struct change *changes, size_t n, int64_t left_ms)
{
	bool others = true;
	int rc = change_once(s, changes, n, &others, left_ms);

	if (rc < 0 && n && others && s->base.env.err->applied == 'n' && !sq_change_stuck(s, rc)) {
		others = false;
		rc = change_once(s, changes, n, &others, left_ms);
	}
	return rc;
}

int sq_lead_again(struct store *base, int64_t left_ms)
{
	struct sq *s = sq_of(base);

	if (!sq_gate_right(s))
		return 1;
	gate_again(&s->gate, batch_who(&s->batch));
	return change_under_gate(s, NULL, 0, left_ms);
}

static int change_and_leave(struct sq *s, struct change *changes, size_t n, int64_t deadline)
{
	int rc = sq_gate_hold(s, deadline), broken = 0;

	if (rc == 0)
		rc = change_under_gate(s, changes, n, deadline - os_boot_ms());
	if (rc == 0 && !s->base.env.trial) /* a trial commits nothing, so it serves no calls */
		broken = batch_serve_on(&s->batch, deadline);
	if (sq_change_stuck(s, broken ? broken : rc))
		sq_disconnect(s);
	sq_leave(s);
	return rc;
}

static int change_in_turn(struct sq *s, struct change *changes, size_t n, int64_t deadline)
{
	int rc = sq_guard(s);

	if (rc == 0)
		rc = sq_enter(s, deadline - os_boot_ms());
	if (rc)
		return rc == -ETIMEDOUT ? gate_busy(&s->gate, &s->base.env, s->path) : rc;
	return change_and_leave(s, changes, n, deadline);
}

int sq_lead(struct store *base, int64_t deadline)
{
	return change_and_leave(sq_of(base), NULL, 0, deadline);
}

/* If the holder's commit failed and no process has written since, its frames may reappear with our call in them. */
int sq_change_alone(struct store *base, struct change *c, int64_t deadline)
{
	struct sq *s = sq_of(base);
	int rc = change_in_turn(s, c, 1, deadline);

	if (rc < 0 && gate_marked(&s->gate))
		base->env.err->applied = '?';
	return rc;
}

int sq_may_write(struct sq *s)
{
	int rc = sq_guard(s);

	if (rc >= 0)
		rc = store_may_write(&s->base.env, s->path, s->changing || s->depth);
	return rc < 0 ? rc : sq_gate_open(s);
}

int sq_modify(struct store *base, struct change *changes, size_t n)
{
	struct sq *s = sq_of(base);
	int64_t deadline = os_boot_ms() + base->env.opt.timeout_ms;
	int rc = sq_may_write(s);

	if (rc < 0)
		return rc;
	rc = sq_enter_now(s);
	if (rc == 0)
		return change_and_leave(s, changes, n, deadline);
	if (rc == -ETIMEDOUT && n == 1 && !base->env.trial &&
	    batch_ask(&s->batch, changes, deadline))
		return batch_await(&s->batch, changes, deadline);
	return rc == -ETIMEDOUT ? change_in_turn(s, changes, n, deadline) : rc;
}

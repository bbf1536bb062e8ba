/* Changes: the gate, one transaction, and the checkpoint that now and then comes before it. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/os.h"
#include "base/when.h"
#include "store/sqlite/sqlite.h"

/*
 * Pages in the WAL from which on a change begins with a checkpoint. Before the change, since only then is
 * the WAL begun anew: a process that comes alone reads the WAL to rebuild its index and knows nothing of
 * a checkpoint made by another. That reading costs it time, so for those who make one change and go the
 * WAL is kept short; who stays does not pay that. The gate hands the length on from one to the next.
 * Measured, a process that makes one claim (8 pages), mean in us for a limit of 32, 64, 128, 256, 512
 * pages: 2169, 2095, 2114, 2201, 2433. The slower the disk, the better the larger ones.
 */
#define WAL_SHORT 128
#define WAL_LONG 1000
#define STAYS 8 /* commits that show that a process stays */

#define MANY_DUE 100 /* worth a commit of their own */
#define LARGE 32     /* records in one edit, whose memory does not wait for the commit */
#define SERVES 16    /* ms for others, after one's own change; see doc/decisions.md */

/* --- the transaction ---------------------------------------------------------------------------- */

/* Who begins a WAL syncs, whatever was asked for: see sqlite/vfs.c. */
static int set_durability(struct sq *s)
{
	bool sync = !s->base.env.opt.relaxed || !sq_wal_begun(s->path);
	int rc = sq_exec(s, sync ? "PRAGMA synchronous=FULL" : "PRAGMA synchronous=NORMAL");

	s->durability_set = rc == 0;
	return rc;
}

int sq_begin(struct sq *s, int64_t left_ms)
{
	int rc = 0;

	sqlite3_busy_timeout(s->db, left_ms < 1           ? 1
				    : left_ms > INT32_MAX ? INT32_MAX
							  : (int)left_ms);
	if (!s->durability_set)
		rc = set_durability(s);
	if (rc == 0 && !s->rollback)
		rc = sq_prepare(s, "ROLLBACK", &s->rollback);
	if (rc == 0)
		rc = sq_run(s, "BEGIN IMMEDIATE");
	return rc < 0 ? rc : sq_files_opened(s);
}

void sq_checkpoint(struct sq *s)
{
	sqlite3_wal_checkpoint_v2(s->db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
}

enum {
	WAL_PAGES = 0,
	WAL_DONE = 1,
	WAL_IN_FOLDER = 2 /* the one whose entry there is known to be on disk */
};

static void shorten_wal(struct sq *s)
{
	uint32_t limit = s->commits < STAYS ? WAL_SHORT : WAL_LONG;
	int64_t version;

	gate_notes(&s->gate, s->wal);
	if (s->wal[WAL_PAGES] - s->wal[WAL_DONE] < limit)
		return;
	/* before its first read SQLite knows of no WAL */
	if (sq_int(s, "PRAGMA user_version", &version) < 0)
		return; /* the change will say why */
	if (sq_files_opened(s) < 0)
		return;
	sq_checkpoint(s);
	s->wal[WAL_DONE] = s->wal[WAL_PAGES];
}

/* If a reader kept the WAL from beginning anew it goes on growing, and a checkpoint at every change would
 * not help: what is done is counted off. */
static void announce(struct sq *s)
{
	s->wal[WAL_PAGES] = s->wal_pages;
	if (s->wal[WAL_DONE] > s->wal_pages)
		s->wal[WAL_DONE] = 0;
	gate_announce(&s->gate, s->wal);
}

void sq_rollback(struct sq *s)
{
	if (sqlite3_get_autocommit(s->db))
		return;
	sqlite3_step(s->rollback);
	sqlite3_reset(s->rollback);
}

static int sync_folder(struct sq *s)
{
	struct arena a = { 0 };
	int r = fs_sync_dir(arena_cstr(&a, fs_dirname(str_c(s->path))));

	arena_free(&a);
	return r == 0 ? 0
		      : store_fail(&s->base.env, STORE_IO, NULL, "the folder of %s: %s", s->path,
				   strerror(-r));
}

/* A commit whose last frame could not be written is none. One whose sync failed may come back after a
 * crash; so may one that failed in a way that we cannot place. */
static bool may_have_happened(int rc, int code)
{
	return code == SQLITE_IOERR_FSYNC || code == SQLITE_IOERR_DIR_FSYNC ||
	       (rc == STORE_IO && code != SQLITE_IOERR_WRITE);
}

/*
 * A WAL that we found may be of somebody who was killed before its folder was synced: then a loss of power
 * takes it away with all that was committed to it, and with what a checkpoint that is cut short relies on:
 * so this holds whatever was asked for. The gate's note says that it was not so; it is deleted before a
 * WAL is made, whose inode may be the former one's.
 */
static int settle_folder(struct sq *s)
{
	uint32_t found = sq_wal_found(s);
	int rc = 0;

	if (s->folder_synced)
		return 0;
	if (found != s->wal[WAL_IN_FOLDER]) {
		s->wal[WAL_IN_FOLDER] = found;
		if (found)
			rc = sync_folder(s);
		else
			gate_announce(&s->gate, s->wal);
	}
	s->folder_synced = rc == 0;
	return rc;
}

int sq_make_durable(struct sq *s)
{
	int rc = settle_folder(s);

	return rc < 0 ? rc : sq_wal_sync(s);
}

/* Whoever opened a -shm or -wal in the place of ours before the commit does not know of it, and may write over
 * it: it is nobody's to rely on. */
static int stands_after(struct sq *s)
{
	int rc = sq_files_notice(s, sq_files_look(s));

	if (rc < 0)
		s->base.env.err->applied = '?';
	return rc;
}

static int commit(struct sq *s)
{
	int rc = settle_folder(s);

	if (rc < 0)
		return rc;
	combine_at("committing");
	gate_mark(&s->gate, true);
	rc = sq_run(s, "COMMIT");
	combine_at("committed");
	if (rc == 0)
		rc = stands_after(s);
	else if (may_have_happened(rc, sqlite3_extended_errcode(s->db)))
		s->base.env.err->applied = '?';
	if (rc < 0)
		return rc;
	s->commits++;
	gate_mark(&s->gate, false);
	return 0;
}

/* --- changes ------------------------------------------------------------------------------------ */

/* What has come due, and not yet been moved to where it belongs. */
struct due {
	int64_t later; /* at most MANY_DUE */
	bool waiting, going;
};

/* SQLite prepares a statement again if another process has changed the schema. A newer pawl may have done so: then
 * nothing is written. The first run of a statement tells nothing. */
static int still_ours(struct sq *s, sqlite3_stmt *st)
{
	if (!sqlite3_stmt_status(st, SQLITE_STMTSTATUS_REPREPARE, true) &&
	    sqlite3_stmt_status(st, SQLITE_STMTSTATUS_RUN, false) > 1)
		return 0;
	return sq_version_check(s);
}

static int find_due(struct sq *s, struct due *out)
{
	sqlite3_stmt *st;
	int rc = sq_take(
		s,
		"SELECT (SELECT count(*) FROM (SELECT 1 FROM record WHERE q=?1 AND lane=2 AND wake<=?2 LIMIT ?3)),"
		"EXISTS(SELECT 1 FROM record WHERE q=?1 AND lane=3 AND wake>0 AND wake<=?2),"
		"EXISTS(SELECT 1 FROM record WHERE q=?1 AND lane=4 AND wake<=?2),"
		"(SELECT name IS NULL FROM queue WHERE n=?1)",
		&st);
	bool discarded;

	if (rc < 0)
		return rc;
	sqlite3_bind_int64(st, 1, s->q);
	sqlite3_bind_int64(st, 2, s->now);
	sqlite3_bind_int(st, 3, MANY_DUE);
	rc = sq_step(s, st);
	*out = (struct due){ .later = sqlite3_column_int64(st, 0),
			     .waiting = sqlite3_column_int(st, 1),
			     .going = sqlite3_column_int(st, 2) };
	discarded = sqlite3_column_int(st, 3);
	if (rc >= 0)
		rc = still_ours(s, st);
	sq_give(s, st);
	if (rc >= 0 && discarded)
		return store_fail(&s->base.env, STORE_ABSENT, "pawl init",
				  "the queue was removed from %s while it was open", s->path);
	return rc < 0 ? rc : 0;
}

static int promote(struct sq *s, const char *sql)
{
	sqlite3_stmt *st;
	int rc = sq_take(s, sql, &st);

	if (rc < 0)
		return rc;
	sqlite3_bind_int64(st, 1, s->q);
	sqlite3_bind_int64(st, 2, s->now);
	return sq_finish(s, st);
}

/* Their keys first: a row must not vanish from under the statement that reads it. */
static int sweep(struct sq *s, struct arena *a)
{
	struct strs keys = { 0 };
	sqlite3_stmt *st;
	int rc = sq_take(
		s,
		"SELECT key FROM record INDEXED BY record_lane WHERE q=?1 AND lane=4 AND wake<=?2"
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

static int tidy(struct sq *s, struct due *due, struct arena *a)
{
	int rc = 0;

	s->n_seen = 0;
	if (due->later)
		rc = promote(s,
			     "UPDATE record SET lane=1,wake=0 WHERE q=?1 AND lane=2 AND wake<=?2");
	if (rc == 0 && due->waiting)
		rc = promote(
			s,
			"UPDATE record SET wake=0 WHERE q=?1 AND lane=3 AND wake>0 AND wake<=?2");
	if (rc == 0 && due->going)
		rc = sweep(s, a);
	*due = (struct due){ 0 };
	return rc;
}

/*
 * Somebody died in its commit, or the commit failed. What it wrote may be in the WAL, whole, and not yet in the
 * index of the WAL: nobody sees it, until SQLite has to make the index anew. Then it would come back, after others
 * were told that it is not there. If they change something that is written over it; so something is changed.
 */
static int bury_the_dead(struct sq *s, bool *worth)
{
	if (!gate_was_marked(&s->gate))
		return 0;
	*worth = true;
	return sq_clock_save(s);
}

/* Few that are due wait for an edit that writes anyway; until then a scan sorts them in. */
static int start_change(struct sq *s, struct due *due, struct arena *a, bool *worth)
{
	int rc = sq_clock_change(s);

	s->floor = -1;
	if (rc == 0)
		rc = bury_the_dead(s, worth);
	if (rc == 0)
		rc = find_due(s, due);
	s->all_promoted = rc == 0 && !due->later;
	if (rc == 0 && due->later >= MANY_DUE) {
		*worth = true;
		rc = tidy(s, due, a);
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
	struct str words[SQ_WORDS];
	struct buf rest;

	if (rc < 0)
		return rc;
	sq_split(sq_entry_tags, SQ_WORDS, e->data, words, &rest);
	sqlite3_bind_int64(st, 1, s->q);
	sq_bind(st, 2, e->key);
	sqlite3_bind_int64(st, 3, e->at);
	for (int i = 0; i < SQ_WORDS; i++)
		sq_bind_some(st, 4 + i, words[i]);
	sq_bind_some(st, 4 + SQ_WORDS, buf_str(&rest));
	rc = sq_finish(s, st);
	buf_free(&rest);
	return rc;
}

int sq_apply(struct sq *s, const struct edit *e)
{
	int rc = 0;

	for (const struct edit_item *it = e->items; rc == 0 && it; it = it->next)
		rc = it->dropped ? sq_drop(s, it->rec.key) : sq_put(s, &it->rec);
	for (const struct edit_entry *n = e->entries; rc == 0 && n; n = n->next)
		rc = write_entry(s, &n->entry);
	return rc;
}

/* No savepoints: an edit writes nothing before it has agreed, and a fault takes all of them back. */
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
		if (e.n_items >= LARGE) { /* an import has thousands of such */
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
		rc = sq_batch_run(s, a, worth);
	if (rc == 0 && *worth)
		rc = tidy(s, &due, a);
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

/* Before the others get their answers: who counts the calls must find this counted. */
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

/* *others: in: whether to run the calls of others; out: whether there were any. */
static int change_once(struct sq *s, struct change *changes, size_t n, bool *others,
		       int64_t left_ms)
{
	bool trial = s->base.env.trial, worth = false, with = *others && !trial;
	int rc = sq_files_settle(s, left_ms);

	*others = false;
	if (rc < 0)
		return rc;
	shorten_wal(s);
	rc = sq_begin(s, left_ms);
	if (rc < 0)
		return sq_files_blame(s, rc);
	s->changing = true;
	rc = sq_shape_check(s);
	if (rc == 0)
		rc = run_changes(s, changes, n, with, &s->arena, &worth);
	worth = worth && !trial;
	if (rc == 0 && worth)
		rc = commit(s);
	if (rc == 0 && worth && s->base.env.opt.counting)
		count_commit(s, n);
	rc = sq_files_blame(s, rc);
	end_change(s);
	sq_files_rest(s);
	*others = s->batch.n > 0;
	sq_batch_end(s, rc);
	if (rc == 0 && worth)
		announce(s);
	arena_free(&s->arena);
	return rc;
}

/* The files are not those of others any more; or there was no memory to roll back, and others would wait for our
 * locks; or SQLite could not open the WAL or
 * its index for writing just then, and would never try again. */
static bool stuck(struct sq *s, int rc)
{
	return s->db && (rc == STORE_READONLY || s->lost || !sqlite3_get_autocommit(s->db));
}

/* Our change must not fail for what is wrong with another's: like the others, we try alone. */
static int change_under_gate(struct sq *s, struct change *changes, size_t n, int64_t left_ms)
{
	bool others = true;
	int rc = change_once(s, changes, n, &others, left_ms);

	if (rc < 0 && n && others && s->base.env.err->applied == 'n' && !stuck(s, rc)) {
		others = false;
		rc = change_once(s, changes, n, &others, left_ms);
	}
	return rc;
}

/* Who has made the last commit has its pages in memory, and is awake: it serves the next crowd sooner than
 * another would. Its own caller waits meanwhile. A fault is not that caller's any more. */
static int serve_on(struct sq *s, int64_t deadline)
{
	int64_t now = os_boot_ms(), end = now + SERVES < deadline ? now + SERVES : deadline;
	int rc = 0;

	while (rc == 0 && now < end && sq_batch_waits(s) && sq_gate_right(s)) {
		combine_at("serving on");
		gate_again(&s->gate, sq_our_name(s));
		rc = change_under_gate(s, NULL, 0, deadline - now);
		now = os_boot_ms();
	}
	return rc;
}

static int change_and_leave(struct sq *s, struct change *changes, size_t n, int64_t deadline)
{
	int rc = sq_gate_hold(s, deadline), broken = 0;

	if (rc == 0)
		rc = change_under_gate(s, changes, n, deadline - os_boot_ms());
	if (rc == 0 && !s->base.env.trial) /* those who wait want a commit */
		broken = serve_on(s, deadline);
	if (stuck(s, broken ? broken : rc))
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

/* What the holder could not do for us. If it failed in its commit and nobody has written since, its frames may
 * come back with our call in them. */
static int change_alone(struct sq *s, struct change *c, int64_t deadline)
{
	int rc = change_in_turn(s, c, 1, deadline);

	if (rc < 0 && gate_marked(&s->gate))
		s->base.env.err->applied = '?';
	return rc;
}

/* Whoever holds the gate makes the change for us; or, if it becomes ours meanwhile, we all of them. */
static int change_together(struct sq *s, struct change *c, int64_t deadline)
{
	struct combine_reply reply = { 0 };
	struct arena a = { 0 };
	enum combine_end end = combine_wait(&s->combine, &s->gate, sq_our_name(s), deadline, &reply,
					    &a);
	int rc = 0;

	if (end == COMBINE_GATE) {
		rc = change_and_leave(s, NULL, 0, deadline);
		end = combine_result(&s->combine, &reply, &a);
		if (rc == 0 && end == COMBINE_LATE && os_boot_ms() < deadline)
			end = COMBINE_ALONE; /* the slots are gone */
	}
	if (end == COMBINE_ALONE)
		rc = change_alone(s, c, deadline);
	else if (end == COMBINE_RAN || end == COMBINE_FAULT)
		rc = sq_batch_accept(s, c, end, &reply);
	else if (rc == 0 && end == COMBINE_UNKNOWN && os_boot_ms() < deadline)
		rc = store_fail(&s->base.env, STORE_IO, "look whether it was made, or repeat it",
				"somebody has cut or overwritten %s-slots while another process "
				"made this change for us",
				s->path);
	else if (rc == 0)
		rc = gate_busy(&s->gate, &s->base.env, s->path);
	if (end == COMBINE_UNKNOWN)
		s->base.env.err->applied = '?';
	arena_free(&a);
	return rc;
}

int sq_may_write(struct sq *s)
{
	const struct store_env *env = &s->base.env;
	int rc = sq_guard(s);

	if (rc < 0)
		return rc;
	if (env->mode == STORE_READ)
		return store_fail(env, STORE_READONLY, NULL, "%s was opened for reading only",
				  s->path);
	if (s->changing || s->depth)
		return store_fail(env, STORE_IO, NULL, "a change inside a scan or another change");
	return sq_gate_open(s);
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
	if (rc == -ETIMEDOUT && n == 1 && !base->env.trial && sq_batch_ask(s, changes, deadline))
		return change_together(s, changes, deadline);
	return rc == -ETIMEDOUT ? change_in_turn(s, changes, n, deadline) : rc;
}

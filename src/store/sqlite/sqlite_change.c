/* Changes: each takes the gate and runs one transaction, sometimes after a checkpoint. */
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
 * A change begins with a checkpoint when the WAL has this many pages. The checkpoint comes before the change,
 * since only then does the WAL restart from its beginning. A process that runs alone reads the WAL to rebuild its
 * index, and cannot see that another process made a checkpoint. The read takes time, so processes with few commits
 * keep the WAL short; a process that stays pays the read only once. The gate passes the length of the WAL from one
 * holder to the next. Measured: a process that makes one claim (8 pages) takes, with a limit of 32, 64, 128, 256,
 * 512 pages, 2169, 2095, 2114, 2201, 2433 us on average. On slower disks larger limits are better.
 */
#define WAL_SHORT 128
#define WAL_LONG 1000
#define STAYS 8 /* a process with this many commits is expected to stay */

#define MANY_DUE 100 /* this many due records are worth a commit of their own */
#define LARGE 32     /* an edit with this many records frees its memory before the commit */

/* --- the transaction ---------------------------------------------------------------------------- */

/* The process that begins a WAL syncs it even with durability = normal: see sqlite/vfs.c. */
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
	WAL_IN_FOLDER = 2 /* number of the WAL whose folder entry is known to be on disk */
};

static void sq_shorten_wal(struct sq *s)
{
	uint32_t limit = s->commits < STAYS ? WAL_SHORT : WAL_LONG;
	int64_t version;

	gate_notes(&s->gate, s->wal);
	if (s->wal[WAL_PAGES] - s->wal[WAL_DONE] < limit)
		return;
	/* SQLite does not open the WAL before its first read */
	if (sq_int(s, "PRAGMA user_version", &version) < 0)
		return; /* the change will fail and report it */
	if (sq_files_opened(s) < 0)
		return;
	sq_checkpoint(s);
	s->wal[WAL_DONE] = s->wal[WAL_PAGES];
}

/* While a reader keeps the WAL from restarting, the WAL grows, and a checkpoint at every change would not help. So
 * shorten_wal() counts only the pages after the last checkpoint, WAL_DONE. */
static void sq_announce_wal(struct sq *s)
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
		      : store_fail(&s->base.env, STORE_IO, NULL, "cannot sync the folder of %s: %s",
				   s->path, strerror(-r));
}

/* If the last frame was not written, the commit did not happen. If the sync failed, or the cause is unknown, the
 * commit may reappear after a crash. */
static bool may_have_happened(int rc, int code)
{
	return code == SQLITE_IOERR_FSYNC || code == SQLITE_IOERR_DIR_FSYNC ||
	       (rc == STORE_IO && code != SQLITE_IOERR_WRITE);
}

/*
 * A process may have created the WAL that we found and died before it synced the folder. A loss of power would then
 * remove the WAL with all its commits, and with the pages that an interrupted checkpoint needs. So we sync the folder
 * even with durability = normal, unless the gate's note names this WAL. The note is cleared before a WAL is made,
 * since the new WAL may get the inode of the old one.
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

/* A process that opened another -shm or -wal at our paths before the commit does not see it and may overwrite it. So
 * we must not report such a commit as durable. */
static int stands_after(struct sq *s)
{
	int rc = sq_files_notice(s, sq_files_check(s));

	if (rc < 0)
		s->base.env.err->applied = '?';
	return rc;
}

static uint32_t sq_data_version(struct sq *s)
{
	uint32_t version = 0;

	sqlite3_file_control(s->db, "main", SQLITE_FCNTL_DATA_VERSION, &version);
	return version;
}

/* After our own commit, of which next_due knows every record. */
static void sq_keep_due(struct sq *s)
{
	s->due_version = sq_data_version(s);
}

static int sq_commit(struct sq *s)
{
	int rc = settle_folder(s);

	if (rc < 0)
		return rc;
	combine_at("committing");
	gate_mark(&s->gate, true);
	sq_wal_gather(s);
	rc = sq_run(s, "COMMIT");
	sq_wal_rest(s);
	combine_at("committed");
	if (rc == 0)
		rc = stands_after(s);
	else if (may_have_happened(rc, sqlite3_extended_errcode(s->db)))
		s->base.env.err->applied = '?';
	if (rc < 0)
		return rc;
	s->commits++;
	sq_keep_due(s);
	gate_mark(&s->gate, false);
	return 0;
}

/* --- changes ------------------------------------------------------------------------------------ */

/* Records whose time has come and which are still in their old lane. */
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

/* A queue that was discarded has no name. */
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

/* Counts the due records of this lane, at most `most`, and learns the time of the next one. */
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

/* While no other process has changed the database, nothing is due before the time that we know, and the queue exists. */
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
 * A process died in its commit, or the commit failed. Its frames may be complete in the WAL but missing in the WAL's
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

/* A few due records wait for the next edit that writes; until then each scan merges them in. */
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

/* The last entry stays, as in empty_queue(): the numbers of entries only grow. */
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
		if (e.n_items >= LARGE) { /* an import makes thousands of such edits */
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

/* Runs before the other processes get their answers: a caller with an answer must find its commit counted. */
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

/* Must we reconnect? Yes, if our files are not those at the paths; if a rollback failed for lack of memory, since
 * others would wait for our locks; or if SQLite could not open the WAL or its index for writing, since it would never
 * try again. */
static bool sq_change_stuck(struct sq *s, int rc)
{
	return s->db && (rc == STORE_READONLY || s->lost || !sqlite3_get_autocommit(s->db));
}

/* A fault of another process's call must not fail our change: we retry without the others. */
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
	if (rc == 0 && !s->base.env.trial) /* other processes need a commit */
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

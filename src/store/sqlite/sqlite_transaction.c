/* One transaction: begins it, commits it or rolls it back, and keeps the WAL short. A commit counts as made only after a check
 * that our files are still those at their paths. */
#include "store/sqlite/sqlite.h"

/*
 * A change begins with a checkpoint when the WAL has this many pages. The checkpoint comes before the change,
 * because only then does the WAL restart from its beginning. A process that runs alone reads the WAL to rebuild its
 * index, and cannot see that another process made a checkpoint. The read takes time, so processes with few commits
 * keep the WAL short; a process that stays pays for the read only once. The gate passes the WAL's length from one
 * holder to the next. Measured: a process that makes one claim (8 pages) takes, with a limit of 32, 64, 128, 256,
 * 512 pages, 2169, 2095, 2114, 2201, 2433 us on average. On slower disks larger limits are better.
 */
#define WAL_SHORT 128
#define WAL_LONG 1000
#define STAYS 8 /* a process with this many commits is expected to stay */

int sq_begin(struct sq *s, int64_t left_ms)
{
	int rc = 0;

	sqlite3_busy_timeout(s->db, left_ms < 1           ? 1
				    : left_ms > INT32_MAX ? INT32_MAX
							  : (int)left_ms);
	if (!s->durability_set)
		rc = sq_set_durability(s);
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

void sq_shorten_wal(struct sq *s)
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
 * sq_shorten_wal() counts only the pages after the last checkpoint, WAL_DONE. */
void sq_announce_wal(struct sq *s)
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

/* If the last frame was not written, the commit did not happen. If the sync failed, or the cause is unknown, the
 * commit may reappear after a crash. */
static bool may_have_happened(int rc, int code)
{
	return code == SQLITE_IOERR_FSYNC || code == SQLITE_IOERR_DIR_FSYNC ||
	       (rc == STORE_IO && code != SQLITE_IOERR_WRITE);
}

/* A process that opened another -shm or -wal at our paths before our commit does not see the commit and may overwrite
 * it. So we must not report the commit as durable. */
static int stands_after(struct sq *s)
{
	int rc = sq_files_notice(s, sq_files_check(s));

	if (rc < 0)
		s->base.env.err->applied = '?';
	return rc;
}

uint32_t sq_data_version(struct sq *s)
{
	uint32_t version = 0;

	sqlite3_file_control(s->db, "main", SQLITE_FCNTL_DATA_VERSION, &version);
	return version;
}

/* Call it after our own commit: next_due already covers every record in it. */
void sq_keep_due(struct sq *s)
{
	s->due_version = sq_data_version(s);
}

int sq_commit(struct sq *s)
{
	int rc = sq_settle_folder(s);

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

/* The SQLite store: open, close, and get. See sqlite.h for the other parts. If it cannot be opened, it releases everything
 * that it has acquired, and leaves *out unchanged. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/os.h"
#include "store/sqlite/sqlite.h"

extern const struct store_ops store_sqlite;

static void sq_close(struct store *base)
{
	struct sq *s = sq_of(base);

	if (getpid() != s->pid) {
		/* SQLite's state belongs to the parent. Its descriptors close when this process ends. */
		s->combine.slot = -1; /* the parent owns it */
		combine_close(&s->combine);
		gate_close(&s->gate);
		free(s->path);
		free(s);
		return;
	}
	sq_disconnect(s);
	combine_close(&s->combine);
	gate_close(&s->gate);
	if (s->watch >= 0)
		close(s->watch);
	free(s->path);
	free(s);
}

/* Absolute, because the gate is opened later, perhaps from another folder, and SQLite treats "file:…" as a URI. */
static char *file_name(struct str path)
{
	char *cwd = path.p[0] == '/' ? NULL : getcwd(NULL, 0);
	size_t n = cwd ? strlen(cwd) : 0;
	char *out = mem_alloc(n + path.n + 2);

	snprintf(out, n + path.n + 2, "%s%s%.*s", cwd ? cwd : "", cwd ? "/" : "", STRF(path));
	free(cwd);
	return out;
}

static int sq_open(struct store **out, const struct uri *uri, const struct store_env *env)
{
	struct sq *s;
	int rc;

	if (!uri->path.n || memchr(uri->path.p, '\0', uri->path.n))
		return store_fail(env, STORE_UNSUPPORTED, "for example: sqlite:/path/to/queue.db",
				  "a sqlite: URI needs a path");
	if (sqlite3_libversion_number() < SQ_OLDEST_SQLITE)
		return store_fail(env, STORE_UNSUPPORTED, "install SQLite 3.37 or newer",
				  "SQLite %s is too old", sqlite3_libversion());
	s = mem_alloc(sizeof(*s));
	*s = (struct sq){ .base = { .ops = &store_sqlite, .env = *env },
			  .pid = getpid(),
			  .q = 1,
			  .gate.fd = -1,
			  .combine = { .fd = -1, .slot = -1 },
			  .watch = -1,
			  .checked_ms = os_boot_ms() };
	s->path = file_name(uri->path);
	sq_group_open(s);
	rc = localclock_usable(env);
	if (rc == 0)
		rc = sq_attach(s);
	if (rc < 0) {
		sq_close(&s->base);
		return rc;
	}
	*out = &s->base;
	return 0;
}

static int get_row(struct sq *s, struct str key, struct record *out, struct arena *a)
{
	struct sq_row row = { 0 };
	struct sq_seen *seen;
	sqlite3_stmt *st;
	int rc = sq_row_find(s, key, &row, &st);

	if (rc)
		return rc;
	seen = sq_row_remember(s, &row);
	if (seen) {
		rc = sq_row_again(s, seen, out, a);
	} else {
		*out = *record_copy(a, &row.rec);
		rc = sq_row_body(s, row.rid, row.rec.ix.status, a, &out->body);
	}
	sq_give(s, st);
	sq_row_free(&row);
	return rc;
}

static int sq_store_get(struct store *base, struct str key, struct record *out, struct arena *a)
{
	struct sq *s = sq_of(base);
	struct sq_seen *seen;
	int rc = sq_read_guard(s);

	if (rc < 0)
		return rc;
	seen = sq_row_seen(s, key);
	if (seen) {
		rc = sq_row_again(s, seen, out, a);
	} else if (sq_row_absent(s, key)) {
		return 1;
	} else {
		rc = get_row(s, key, out, a);
	}
	if (rc == 1)
		sq_row_remember_absent(s, key);
	if (rc == 0 && out->ix.lane == LANE_GOING && index_gone(&out->ix, sq_now(base)))
		return 1;
	return rc;
}

/* A connection often makes one read before its first change. So the first sq_store_get() shares one transaction with the check
 * of the schema. */
static int sq_get(struct store *base, struct str key, struct record *out, struct arena *a)
{
	struct sq *s = sq_of(base);
	int rc;

	if (s->shape_known || s->changing || s->depth)
		return sq_store_get(base, key, out, a);
	rc = sq_guard(s);
	if (rc == 0)
		rc = sq_read_begin(s);
	if (rc < 0)
		return rc;
	rc = sq_shape_check(s);
	if (rc == 0)
		rc = sq_store_get(base, key, out, a);
	sq_read_end(s);
	return rc;
}

static int sq_wake_fd(struct store *base)
{
	struct sq *s = sq_of(base);

	if (s->watch < 0) {
		struct arena a = { 0 };

		s->watch = os_watch(arena_cstr(&a, fs_dirname(str_c(s->path))));
		arena_free(&a);
	}
	return s->watch;
}

static void sq_wake_clear(struct store *base)
{
	if (sq_of(base)->watch >= 0)
		os_watch_drain(sq_of(base)->watch);
}

static struct store_counts *sq_counts(struct store *base)
{
	struct sq *s = sq_of(base);
	char path[PATH_MAX];

	if (base->env.mode != STORE_READ)
		return s->gate.fd >= 0 ? gate_counts(&s->gate) : NULL;
	return sq_beside(s->path, "-gate", path) ? gate_counts_at(&s->gate, path) : NULL;
}

const struct store_ops store_sqlite = {
	.scheme = "sqlite",
	.open = sq_open,
	.close = sq_close,
	.now = sq_now,
	.get = sq_get,
	.scan = sq_scan,
	.count = sq_count,
	.tally = sq_tally,
	.modify = sq_modify,
	.entries = sq_entries,
	.snapshot = sq_snapshot,
	.wake_fd = sq_wake_fd,
	.wake_clear = sq_wake_clear,
	.check = sq_check,
	.repair = sq_repair,
	.queues = sq_queues,
	.discard = sq_discard,
	.counts = sq_counts,
};

/* --- clock ------------------------------------------------------------------------------------ */

/* The store's clock: localclock, with its anchor in the database. A change saves a new anchor in its own transaction, so
 * that all processes continue from the same time. */

static int read_anchor(struct sq *s, struct anchor *out)
{
	sqlite3_stmt *st;
	int rc = sq_take(s, "SELECT boot_id,wall,boot FROM clock", &st);

	if (rc < 0)
		return rc;
	rc = sq_step(s, st);
	if (rc == SQLITE_ROW) {
		struct str boot_id = sq_column(st, 0);

		snprintf(out->boot_id, sizeof(out->boot_id), "%.*s", STRF(boot_id));
		out->wall = sqlite3_column_int64(st, 1);
		out->boot = sqlite3_column_int64(st, 2);
	}
	sq_give(s, st);
	if (rc == SQLITE_ROW)
		return 0;
	return rc < 0 ? rc
		      : store_fail(&s->base.env, STORE_CORRUPT,
				   "restore a backup, or try: sqlite3 PATH .recover",
				   "%s is damaged: its clock is missing", s->path);
}

static void start_clock(struct sq *s)
{
	if (!s->clock_set)
		localclock_init(&s->clock, &s->base.env);
	s->clock_set = true;
}

/* *unsaved: the anchor in the database belongs to another boot than s->anchor. */
static int settle_anchor(struct sq *s, bool *unsaved)
{
	struct anchor stored;
	int64_t floor = 0;
	int rc = read_anchor(s, &stored);

	if (rc < 0)
		return rc;
	start_clock(s);
	*unsaved = !localclock_fits(&s->clock, &stored);
	if (!*unsaved) {
		s->anchor = stored;
		return 0;
	}
	if (localclock_fits(&s->clock, &s->anchor))
		return 0; /* this handle made it in a read or a refused change: time must continue from it */
	rc = sq_int(s, "SELECT at FROM event ORDER BY seq DESC LIMIT 1", &floor);
	s->anchor = stored;
	localclock_renew(&s->clock, &s->anchor, floor);
	return rc;
}

int sq_clock_save(struct sq *s)
{
	sqlite3_stmt *st;
	int rc = sq_take(s, "REPLACE INTO clock(one,boot_id,wall,boot) VALUES(1,?,?,?)", &st);

	if (rc < 0)
		return rc;
	sq_bind(st, 1, str_c(s->anchor.boot_id));
	sqlite3_bind_int64(st, 2, s->anchor.wall);
	sqlite3_bind_int64(st, 3, s->anchor.boot);
	return sq_finish(s, st);
}

/* *out: no record in any queue is held or is waiting for a time. */
static int sq_clock_idle(struct sq *s, bool *out)
{
	int64_t n = 0;
	int rc = sq_int(
		s,
		"SELECT NOT EXISTS(SELECT 1 FROM record INDEXED BY record_held"
		" WHERE holder IS NOT NULL OR token IS NOT NULL) AND NOT EXISTS(SELECT 1 FROM queue n"
		" WHERE EXISTS(SELECT 1 FROM record r INDEXED BY record_lane WHERE r.q=n.n AND r.lane IN (" LANES_TIMED_TEXT
		") AND (r.lane=" LANE_TEXT(
			LANE_LATER) " OR ifnull(r.created_at,0)=0))"
				    " OR EXISTS(SELECT 1 FROM record r INDEXED BY record_lane WHERE r.q=n.n AND r.lane IN (" LANES_WAITING_TEXT
				    ")"
				    " AND r.eligible_at>0))",
		&n);

	*out = n != 0;
	return rc;
}

static int sq_clock_heal(struct sq *s, bool *unsaved)
{
	bool free_to;
	int rc;

	if (!localclock_strays(&s->clock, &s->anchor))
		return 0;
	rc = sq_clock_idle(s, &free_to);
	if (rc == 0 && free_to) {
		localclock_heal(&s->clock, &s->anchor);
		*unsaved = true;
	}
	return rc;
}

int64_t sq_now(struct store *base)
{
	struct sq *s = sq_of(base);
	bool unsaved;

	if (s->changing)
		return s->now;
	if (sq_guard(s) < 0 || sq_shape_check(s) < 0 || settle_anchor(s, &unsaved) < 0) {
		start_clock(s); /* now() cannot report a fault; the next call will */
		if (!s->anchor.boot_id[0])
			localclock_renew(&s->clock, &s->anchor, 0);
	}
	return localclock_now(&s->clock, &s->anchor);
}

int sq_clock_change(struct sq *s)
{
	bool unsaved;
	int rc = settle_anchor(s, &unsaved);

	if (rc == 0)
		rc = sq_clock_heal(s, &unsaved);
	if (rc == 0)
		s->now = localclock_now(&s->clock, &s->anchor);
	if (rc == 0 && unsaved)
		rc = sq_clock_save(s);
	return rc;
}

void sq_clock_again(struct sq *s)
{
	int64_t now = localclock_now(&s->clock, &s->anchor);

	if (now <= s->now)
		return;
	s->now = now;
	s->all_promoted = false;
}

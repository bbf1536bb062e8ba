/* The SQLite store: open, close, and get. See sqlite.h for the other parts. */
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

/* Absolute, since the gate is opened later, perhaps in another folder, and SQLite treats "file:…" as a URI. */
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

/* A connection often makes one read before its first change. So the first get() shares one transaction with the check
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

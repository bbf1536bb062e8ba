/* The store's clock: localclock, with its anchor in the database. */
#include <stdio.h>

#include "store/sqlite/sqlite.h"

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
		return 0; /* a read or a refused change of this handle made it: time must continue from it */
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

/* *out: no record in any queue is held or waits for a time. */
static int sq_clock_idle(struct sq *s, bool *out)
{
	int64_t n = 0;
	int rc = sq_int(
		s,
		"SELECT NOT EXISTS(SELECT 1 FROM record INDEXED BY record_held"
		" WHERE holder IS NOT NULL OR token IS NOT NULL) AND NOT EXISTS(SELECT 1 FROM queue n"
		" WHERE EXISTS(SELECT 1 FROM record r INDEXED BY record_lane WHERE r.q=n.n AND r.lane IN (" LANES_TIMED_TEXT
		"))"
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

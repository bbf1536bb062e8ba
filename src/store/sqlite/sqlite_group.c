/* The part of SQLite in the group commit: store/local/local_batch.h has the rest. */
#include <errno.h>

#include "store/sqlite/sqlite.h"

static int open_slots(struct batch *b)
{
	struct sq *s = sq_of(b->store);
	char path[PATH_MAX];

	return sq_beside(s->path, "-slots", path) ? combine_open(&s->combine, path, &s->file)
						  : -ENAMETOOLONG;
}

static int sq_group_prepare(struct store *base, const struct change *calls, size_t n)
{
	(void)calls;
	(void)n;
	sq_clock_again(sq_of(base));
	return 0;
}

static int64_t sq_group_now(struct store *base)
{
	return sq_of(base)->now;
}

static int sq_group_apply(struct store *base, const struct edit *e)
{
	return sq_apply(sq_of(base), e);
}

static bool sq_group_lost(struct store *base)
{
	return sqlite3_get_autocommit(sq_of(base)->db);
}

static int read_last(struct store *base, uint64_t *out)
{
	struct sq *s = sq_of(base);
	sqlite3_stmt *st;
	int rc = sq_take(s, "SELECT id FROM batch WHERE q=?", &st);

	if (rc < 0)
		return rc;
	sqlite3_bind_int64(st, 1, s->q);
	rc = sq_step(s, st);
	*out = rc == SQLITE_ROW ? (uint64_t)sqlite3_column_int64(st, 0) : 0;
	sq_give(s, st);
	return rc < 0 ? rc : 0;
}

/* The next holder learns from this number whether the calls of this batch were committed. Each queue has its own
 * number: a holder that serves another queue settles none of our calls, so it must not overwrite ours. */
static int write_last(struct store *base, uint64_t id)
{
	struct sq *s = sq_of(base);
	sqlite3_stmt *st;
	int rc = sq_take(s, "REPLACE INTO batch(q,id) VALUES(?,?)", &st);

	if (rc < 0)
		return rc;
	sqlite3_bind_int64(st, 1, s->q);
	sqlite3_bind_int64(st, 2, (int64_t)id);
	return sq_finish(s, st);
}

static int make_durable(struct store *base)
{
	return sq_make_durable(sq_of(base));
}

static const struct batch_ops sq_group = {
	.open = open_slots,
	.prepare = sq_group_prepare,
	.now = sq_group_now,
	.apply = sq_group_apply,
	.lost = sq_group_lost,
	.last = read_last,
	.note = write_last,
	.make_durable = make_durable,
	.lead = sq_lead,
	.again = sq_lead_again,
	.alone = sq_change_alone,
};

void sq_group_open(struct sq *s)
{
	s->batch = (struct batch){ .ops = &sq_group,
				   .store = &s->base,
				   .gate = &s->gate,
				   .combine = &s->combine,
				   .queue = &s->q,
				   .place = s->path };
}

/* SQLite's part of group commit; store/local/local_batch.h has the rest. The batch number is written in the same transaction as
 * the changes of the batch, so it tells whether they were committed. */
#include <errno.h>
#include <stdio.h>

#include "base/os.h"
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
 * number, because a holder that serves another queue does not settle our calls and must not overwrite our number. */
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

/* --- gate ------------------------------------------------------------------------------------- */

/* The gate in front of every change: only the process that holds the gate file at its path writes. */

#define YIELD_MS 20  /* longest pause for the woken process to take the gate */
#define HURRY_MS 200 /* no more pauses for this time after a pause was useless */

static int fail_gate(struct sq *s, int err)
{
	const struct store_env *env = &s->base.env;

	switch (err) {
	case -EACCES:
	case -EPERM:
	case -EROFS:
		return store_fail(env, STORE_READONLY,
				  "check the owner and mode of the file and its folder",
				  "cannot write to %s-gate: %s", s->path, strerror(-err));
	case -ENOENT:
	case -ENOTDIR:
		return store_fail(env, STORE_UNREACHABLE, NULL, "the folder of %s is gone",
				  s->path);
	case -ELOOP:
	case -EISDIR:
	case -EINVAL:
		return store_fail(env, STORE_FOREIGN, "move it away; pawl creates a new one",
				  "%s-gate is not a regular file", s->path);
	case -ENOSPC:
	case -EDQUOT:
		return store_fail(env, STORE_FULL, "free some space on the device",
				  "no space is left for %s-gate: %s", s->path, strerror(-err));
	default:
		return store_fail(env, STORE_IO, NULL, "%s-gate: %s", s->path, strerror(-err));
	}
}

int sq_gate_open(struct sq *s)
{
	char path[PATH_MAX];
	int rc;

	if (s->gate.fd >= 0)
		return 0;
	rc = sq_beside(s->path, "-gate", path) ? gate_open(&s->gate, path, &s->file)
					       : -ENAMETOOLONG;
	return rc < 0 ? fail_gate(s, rc) : 0;
}

int sq_enter(struct sq *s, int64_t timeout_ms)
{
	int rc = gate_lock(&s->gate, timeout_ms, batch_who(&s->batch));

	return rc == 0 || rc == -ETIMEDOUT ? rc : fail_gate(s, rc);
}

/* Waiting processes need a moment to wake up. Without a pause we would take the gate again before them. false: none of
 * them took the gate. */
static bool sq_gate_yield(struct sq *s)
{
	bool owes = s->owes;

	s->owes = false;
	return !owes || os_boot_ms() < s->hurry_until ||
	       gate_await_served(&s->gate, s->served, YIELD_MS);
}

int sq_enter_now(struct sq *s)
{
	int rc;

	if (!batch_takes_part(&s->batch)) {
		bool useful = sq_gate_yield(s);

		rc = sq_enter(s, 0);
		if (rc == 0 && !useful)
			s->hurry_until = os_boot_ms() + HURRY_MS;
		return rc;
	}
	rc = gate_try(&s->gate, batch_who(&s->batch));
	return rc == 0 || rc == -ETIMEDOUT ? rc : fail_gate(s, rc);
}

void sq_leave(struct sq *s)
{
	bool waited_for;

	combine_at("leaving");
	sq_files_unlock(s);
	s->served = gate_served(&s->gate);
	gate_unlock(&s->gate);
	waited_for = batch_nudge(&s->batch);
	s->owes = waited_for && !batch_takes_part(&s->batch);
}

bool sq_gate_right(const struct sq *s)
{
	char path[PATH_MAX];

	return sq_beside(s->path, "-gate", path) && gate_stands(&s->gate, path);
}

/* Later processes lock the file at the gate's path. If our gate file was removed while we waited for it, our lock
 * excludes no process, so we lock the new file instead. After a failure we hold no gate. */
static int go_to_gate(struct sq *s, int64_t deadline)
{
	int rc = 0;

	while (rc == 0 && !sq_gate_right(s)) {
		gate_unlock(&s->gate);
		gate_close(&s->gate);
		rc = sq_gate_open(s);
		if (rc == 0)
			rc = sq_enter(s, deadline - os_boot_ms());
	}
	return rc == -ETIMEDOUT ? gate_busy(&s->gate, &s->base.env, s->path) : rc;
}

/* For speed, the first change of a process checks the gate's path only if the database is locked. */
int sq_gate_hold(struct sq *s, int64_t deadline)
{
	int rc = s->commits ? go_to_gate(s, deadline) : 0;

	if (rc < 0)
		return rc;
	rc = sq_files_lock(s, 0);
	if (rc == 0)
		return 0;
	rc = go_to_gate(s, deadline);
	return rc < 0 ? rc : sq_files_lock(s, deadline - os_boot_ms());
}

int sq_under_gate(struct sq *s, int (*fn)(struct sq *, int64_t left_ms))
{
	int64_t deadline = os_boot_ms() + s->base.env.opt.timeout_ms;
	int rc = sq_gate_open(s);

	if (rc == 0)
		rc = sq_enter(s, s->base.env.opt.timeout_ms);
	if (rc == -ETIMEDOUT)
		rc = gate_busy(&s->gate, &s->base.env, s->path);
	if (rc < 0)
		return rc;
	rc = sq_gate_hold(s, deadline);
	if (rc == 0)
		rc = sq_files_settle(s, deadline - os_boot_ms());
	if (rc == 0)
		rc = fn(s, deadline - os_boot_ms());
	sq_files_rest(s);
	if (s->lost)
		sq_disconnect(s);
	sq_leave(s);
	return rc;
}

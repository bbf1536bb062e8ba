/*
 * PostgreSQL's part of group commit; store/local/local_batch.h has the rest.
 *
 * The processes of one user on one machine that use the same queue on the same server share a gate (store/local/gate.h).
 * One of them runs the other processes' calls in its transaction. The lock on the queue's row still decides between
 * machines, and between processes that share no gate. The gate only saves commits; correctness does not depend on it.
 *
 * Each slots file has its own number, and the table `batch` has a row for it. So another machine's batches do not
 * overwrite the number that the next holder here reads. When the next holder has the lock on the queue's row, a dead
 * holder's transaction has ended, and the row in `batch` says whether it was committed.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/os.h"
#include "base/secret.h"
#include "store/local/gate.h"
#include "store/local/runtime_folder.h"
#include "store/postgres/postgres.h"

#define PATIENCE 2000 /* ms; a holder may be stopped, and the server does not need it */
#define KEPT_DAYS 30  /* no call waits for this long */

/* --- the place ------------------------------------------------------------------------------------ */

static char *pg_group_joined(const char *a, const char *b)
{
	size_t n = strlen(a) + strlen(b) + 1;
	char *out = mem_alloc(n);

	snprintf(out, n, "%s%s", a, b);
	return out;
}

static void name_server(const struct pg *s, char *out, size_t room)
{
	snprintf(out, room, "%.90s:%.60s", PQhost(s->db) ? PQhost(s->db) : "",
		 PQport(s->db) ? PQport(s->db) : "");
}

/* Two servers may have the same name, for example in two containers, so the path contains the schema's id. A holder has
 * its own database user's rights, so only processes with the same database user share a gate. */
static void find_place(struct pg *s)
{
	struct arena a = { 0 };
	struct stat like;
	char *path;

	name_server(s, s->server, sizeof(s->server));
	path = runtime_folder_path(
		&a,
		arena_printf(&a, "pg-%.32s",
			     hash_hex(&a, arena_printf(&a, "%s|%s|%s|%s|%s|%s|%lld", s->id,
						       s->server, PQdb(s->db), PQuser(s->db),
						       PQoptions(s->db), s->name, (long long)s->q))
				     .p),
		&like);
	s->meet = path && *s->id ? pg_group_joined(path, "") : NULL;
	s->apart = !s->meet;
	arena_free(&a);
}

static void forget_place(struct pg *s)
{
	combine_close(&s->combine);
	s->combine.hopeless = s->combine.asked = false;
	gate_close(&s->gate);
	free(s->meet);
	s->meet = NULL;
}

static bool same_server(const struct pg *s)
{
	char now[sizeof(s->server)];

	name_server(s, now, sizeof(now));
	return !strcmp(now, s->server);
}

static bool gate_right(const struct pg *s)
{
	char *path = pg_group_joined(s->meet, ".gate");
	bool right = gate_stands(&s->gate, path);

	free(path);
	return right;
}

/* false: this process makes its changes without group commit. */
static bool find_gate(struct pg *s)
{
	struct stat like = { .st_mode = 0600, .st_uid = geteuid(), .st_gid = getegid() };
	char *path;
	int rc;

	if (s->meet && !same_server(s))
		forget_place(s); /* after a failover */
	if (!s->meet && !s->apart)
		find_place(s);
	if (!s->meet || s->gate.fd >= 0)
		return s->meet;
	path = pg_group_joined(s->meet, ".gate");
	rc = gate_open(&s->gate, path, &like);
	free(path);
	s->apart = rc < 0;
	if (s->apart)
		forget_place(s);
	return !s->apart;
}

int pg_group_enter(struct pg *s)
{
	int64_t half = s->base.env.opt.timeout_ms / 2;
	int rc = 1;

	if (!batch_takes_part(&s->batch) || s->base.env.trial)
		return 1;
	s->combine.patience = half < 1 ? 1 : half < PATIENCE ? half : PATIENCE;
	for (int tries = 0; tries < 3 && find_gate(s); tries++) {
		rc = gate_try(&s->gate, batch_who(&s->batch));
		if (rc || gate_right(s))
			break;
		gate_unlock(&s->gate); /* a program has removed the file */
		gate_close(&s->gate);
		rc = 1;
	}
	s->leading = rc == 0;
	return rc == 0 || rc == -ETIMEDOUT ? rc : 1;
}

void pg_group_leave(struct pg *s)
{
	combine_at("leaving");
	s->leading = false;
	gate_unlock(&s->gate);
	(void)batch_nudge(&s->batch);
	if (s->news)
		pg_tell(s);
	s->news = false;
}

bool pg_group_leads(struct pg *s)
{
	return s->leading && batch_takes_part(&s->batch) && same_server(s);
}

size_t pg_group_hints(struct pg *s, const struct wants **out, size_t room)
{
	struct combine_call calls[COMBINE_SLOTS];
	size_t n = batch_check(&s->batch, calls, &s->calls), found = 0;

	for (size_t i = 0; i < n && found < room; i++) {
		struct change c;

		if (s->base.env.relay->adopt(calls[i].bytes, &c, &s->calls) == 0)
			out[found++] = s->base.env.relay->wants(&c, &s->calls);
	}
	return found;
}

/* --- in the holder's transaction ------------------------------------------------------------------ */

static int open_slots(struct batch *b)
{
	struct stat like = { .st_mode = 0600, .st_uid = geteuid(), .st_gid = getegid() };
	struct pg *s = pg_of(b->store);
	char *path = pg_group_joined(s->meet, ".slots");
	int rc = combine_open(&s->combine, path, &like);

	free(path);
	return rc;
}

/* Reads all records that the calls want in one round trip. */
static int pg_group_prepare(struct store *base, const struct change *calls, size_t n)
{
	struct pg *s = pg_of(base);
	const struct wants **w = arena_array(&s->calls, const struct wants *, n);

	for (size_t i = 0; i < n; i++)
		w[i] = calls[i].fn ? base->env.relay->wants(&calls[i], &s->calls) : NULL;
	return pg_ahead_more(s, w, n);
}

static int64_t pg_group_now(struct store *base)
{
	return pg_of(base)->now;
}

static int pg_group_apply(struct store *base, const struct edit *e)
{
	return pg_apply(pg_of(base), e);
}

/* An edit fails only if the server refused a statement. That ends the transaction. */
static bool pg_group_lost(struct store *base)
{
	(void)base;
	return true;
}

static void add_place(struct pg *s, struct pg_args *args)
{
	pg_int(args, s->q);
	pg_int(args, (int64_t)combine_number(&s->combine));
}

static int read_last(struct store *base, uint64_t *out)
{
	struct pg *s = pg_of(base);
	struct pg_args args = { 0 };
	PGresult *r;
	int rc;

	add_place(s, &args);
	rc = pg_ask(s, "SELECT id FROM $S.batch WHERE q=$1 AND place=$2", &args, &r);
	if (rc < 0)
		return rc;
	*out = PQntuples(r) ? (uint64_t)pg_int_at(r, 0, 0) : 0;
	PQclear(r);
	return 0;
}

static int pg_group_tidy(struct pg *s)
{
	struct pg_args args = { 0 };

	if (s->tidied)
		return 0;
	s->tidied = true;
	pg_int(&args, s->q);
	pg_int(&args, s->now - INT64_C(86400000) * KEPT_DAYS);
	return pg_send(s, "DELETE FROM $S.batch WHERE q=$1 AND at<$2", &args);
}

static int write_last(struct store *base, uint64_t id)
{
	struct pg *s = pg_of(base);
	struct pg_args args = { 0 };
	int rc = pg_group_tidy(s);

	add_place(s, &args);
	pg_int(&args, (int64_t)id);
	pg_int(&args, s->now);
	return rc < 0 ? rc
		      : pg_send(s,
				"INSERT INTO $S.batch(q,place,id,at) VALUES($1,$2,$3,$4) ON CONFLICT"
				"(q,place) DO UPDATE SET id=excluded.id,at=excluded.at",
				&args);
}

static int commit_side(struct pg *side, struct pg *s)
{
	struct pg_args args = { 0 };
	int rc = pg_guard(side);

	add_place(s, &args);
	if (rc == 0)
		rc = pg_send(side, "BEGIN", NULL);
	if (rc == 0)
		rc = pg_send(side,
			     "SELECT set_config('synchronous_commit',CASE WHEN "
			     "current_setting('synchronous_commit')='off' THEN 'on' ELSE "
			     "current_setting('synchronous_commit') END,true)",
			     NULL);
	if (rc == 0)
		rc = pg_send(side, "UPDATE $S.batch SET at=at WHERE q=$1 AND place=$2", &args);
	return rc < 0 ? rc : pg_commit(side);
}

/*
 * A visible commit is on the server's disk. A standby may not have it yet, if the dead holder's session ended during the
 * wait for the standby. A standby that has a later commit also has all earlier ones, so we make a later commit. We use a
 * separate connection, because ours is in the middle of a change.
 */
static int make_durable(struct store *base)
{
	struct pg *s = pg_of(base), *side = mem_alloc(sizeof(*side));
	int rc;

	*side = (struct pg){ .base = s->base,
			     .pid = s->pid,
			     .conninfo = s->conninfo,
			     .schema = s->schema,
			     .name = s->name,
			     .q = s->q };
	rc = commit_side(side, s);
	if (rc < 0)
		base->env.err->applied = 'n'; /* the doubt is about an earlier change, not ours */
	pg_disconnect(side);
	for (size_t i = 0; i < side->n_prepared; i++)
		free(side->prepared[i].text);
	free(side);
	return rc;
}

/* --- open and close ------------------------------------------------------------------------------- */

static const struct batch_ops group = {
	.open = open_slots,
	.prepare = pg_group_prepare,
	.now = pg_group_now,
	.apply = pg_group_apply,
	.lost = pg_group_lost,
	.last = read_last,
	.note = write_last,
	.make_durable = make_durable,
	.lead = pg_lead,
	.again = pg_lead_again,
	.alone = pg_change_alone,
};

void pg_group_open(struct pg *s)
{
	s->gate.fd = -1;
	s->combine = (struct combine){ .fd = -1, .slot = -1 };
	s->batch = (struct batch){ .ops = &group,
				   .store = &s->base,
				   .gate = &s->gate,
				   .combine = &s->combine,
				   .queue = &s->q,
				   .place = s->place,
				   .elsewhere = true };
}

void pg_group_close(struct pg *s)
{
	if (s->pid != getpid())
		s->combine.slot = -1; /* the parent owns it */
	forget_place(s);
	arena_free(&s->calls);
}

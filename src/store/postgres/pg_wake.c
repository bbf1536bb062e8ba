/*
 * Waits for other processes' changes. A second connection listens, because the first one would read a notification together
 * with a statement's result, and its descriptor would then not become readable. LISTEN does not work through a pooler, so
 * there the caller polls.
 */
#include <stdio.h>
#include <unistd.h>

#include "base/os.h"
#include "base/secret.h"
#include "store/postgres/postgres.h"

#define AGAIN_MS 2000 /* longest time for a new connection that only notifies others */

/* The channel's name, for this queue in this schema. */
static void pg_wake_channel(const struct pg *s, char out[64])
{
	struct arena a = { 0 };

	snprintf(out, 64, "pawl_%.16s_%lld", hash_hex(&a, str_c(s->name)).p, (long long)s->q);
	arena_free(&a);
}

/* The server sends notifications after the commit. It holds a lock for all databases until a notification is durable,
 * so this is a separate transaction, which need not be durable. No caller waits for its result. */
static void pg_wake_notify(struct pg *s)
{
	struct pg_args args = { 0 };
	char name[64];

	pg_wake_channel(s, name);
	pg_text(&args, name);
	if (pg_send(s, "SELECT set_config('synchronous_commit','off',true),pg_notify($1,'')",
		    &args) == 0)
		pg_let_go(s);
}

static int connect_soon(struct pg *s)
{
	int64_t now = os_boot_ms();
	int rc;

	if (now >= s->tell_by)
		return STORE_UNREACHABLE;
	s->until = now + AGAIN_MS < s->tell_by ? now + AGAIN_MS : s->tell_by;
	rc = pg_guard(s);
	s->until = 0;
	return rc;
}

/* Replaces a lost connection, unless that takes long, because the change may have been made, and the waiting processes
 * must read it. A failure here does not affect the change. */
void pg_tell(struct pg *s)
{
	struct store_error err = *s->base.env.err;

	if ((s->db && !s->broken) || connect_soon(s) == 0)
		pg_wake_notify(s);
	*s->base.env.err = err;
}

void pg_wake_close(struct pg *s)
{
	if (s->pid == getpid())
		PQfinish(s->listener);
	else
		pg_abandon(s->listener);
	s->listener = NULL;
}

static void listen_now(struct pg *s)
{
	struct store_error err = *s->base.env.err;
	char name[64], sql[80];
	PGresult *r;

	s->deaf = true;
	if (s->pooled || pg_connect_to(s, &s->listener) < 0) {
		s->listener = NULL;
		*s->base.env.err = err;
		return;
	}
	pg_wake_channel(s, name);
	snprintf(sql, sizeof(sql), "LISTEN %s", name);
	r = PQexec(s->listener, sql);
	s->deaf = PQresultStatus(r) != PGRES_COMMAND_OK;
	PQclear(r);
	if (s->deaf)
		pg_wake_close(s);
}

int pg_wake_fd(struct store *base)
{
	struct pg *s = pg_of(base);

	if (!s->listener && !s->deaf && pg_guard(s) == 0)
		listen_now(s);
	return s->listener ? PQsocket(s->listener) : -1;
}

/* A lost connection makes its descriptor readable: the next wait connects again. */
void pg_wake_clear(struct store *base)
{
	struct pg *s = pg_of(base);
	PGnotify *n;

	if (!s->listener)
		return;
	if (!PQconsumeInput(s->listener)) {
		pg_wake_close(s);
		return;
	}
	while ((n = PQnotifies(s->listener)))
		PQfreemem(n);
}

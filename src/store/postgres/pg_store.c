/* The PostgreSQL store: opens and closes it, and fills in the store interface. postgres.h explains the parts. If it cannot be
 * opened, it releases everything that it has acquired, and leaves *out unchanged. */
#include <stdlib.h>
#include <unistd.h>

#include "base/module.h"
#include "store/postgres/postgres.h"

extern const struct module pawl_module;
static const struct store_ops store_postgres;

static void pg_close(struct store *base)
{
	struct pg *s = pg_of(base);

	pg_wake_close(s);
	pg_group_close(s);
	if (s->pid == getpid())
		pg_disconnect(s);
	else
		pg_abandon(s->db);
	for (size_t i = 0; i < s->n_prepared; i++)
		free(s->prepared[i].text);
	arena_free(&s->arena);
	free(s->conninfo);
	free(s->schema);
	free(s->name);
	free(s);
}

static int pg_open(struct store **out, const struct uri *uri, const struct store_env *env)
{
	struct pg *s = mem_alloc(sizeof(*s));
	int rc;

	*s = (struct pg){ .base = { .ops = &store_postgres, .env = *env, .traits = STORE_FAR },
			  .pid = getpid() };
	s->base.env.opt.relaxed = false; /* the server decides about its own disk */
	pg_group_open(s);
	rc = pg_place(s, uri);
	if (rc == 0)
		rc = pg_guard(s);
	if (rc == 0)
		rc = pg_attach(s);
	if (rc < 0) {
		pg_close(&s->base);
		return rc;
	}
	*out = &s->base;
	return 0;
}

static const char *const roles[] = {
	"-- For agents: GRANT pawl_agent TO a_user",
	"CREATE ROLE pawl_agent NOLOGIN;",
	"GRANT USAGE ON SCHEMA $S TO pawl_agent;",
	"GRANT SELECT ON $S.about TO pawl_agent;",
	"GRANT SELECT, INSERT, UPDATE, DELETE ON $S.queue, $S.record, $S.text, $S.link, $S.log, $S.batch TO pawl_agent;",
	"GRANT SELECT ON $S.tasks, $S.locks, $S.events TO pawl_agent;",
	"-- For dashboards, which only read the views: GRANT pawl_reader TO a_user",
	"CREATE ROLE pawl_reader NOLOGIN;",
	"GRANT USAGE ON SCHEMA $S TO pawl_reader;",
	"GRANT SELECT ON $S.tasks, $S.locks, $S.events TO pawl_reader;",
};

static void add_line(struct pg *s, struct buf *out, const char *sql, const char *end)
{
	char *text = pg_sql(s, sql);

	buf_addf(out, "%s%s\n", text, end);
	free(text);
}

static int pg_script(const struct uri *uri, const struct store_env *env, struct buf *out)
{
	struct pg s = { .base.env = *env };
	int rc = pg_place(&s, uri);

	if (rc == 0) {
		/* no function of another user in place of the server's own */
		buf_addf(out, "BEGIN;\nSET LOCAL search_path = pg_catalog;\n");
		add_line(&s, out, "CREATE SCHEMA $S", ";");
		for (size_t i = 0; pg_layout[i]; i++)
			add_line(&s, out, pg_layout[i], ";");
		for (size_t i = 0; i < sizeof(roles) / sizeof(*roles); i++)
			add_line(&s, out, roles[i], "");
		buf_addf(out, "COMMIT;\n");
	}
	free(s.conninfo);
	free(s.schema);
	free(s.name);
	return rc;
}

static const struct store_ops store_postgres = {
	.scheme = "postgres",
	.open = pg_open,
	.close = pg_close,
	.now = pg_now,
	.get = pg_get,
	.scan = pg_scan,
	.count = pg_count,
	.tally = pg_tally,
	.modify = pg_modify,
	.entries = pg_entries,
	.snapshot = pg_snapshot,
	.wake_fd = pg_wake_fd,
	.wake_clear = pg_wake_clear,
	.check = pg_check,
	.queues = pg_queues,
	.discard = pg_discard,
	.script = pg_script,
};

const struct module pawl_module = { .abi = MODULE_ABI, .store = &store_postgres };

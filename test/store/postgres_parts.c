/* Parts of the PostgreSQL store that its interface does not show: full batches, a lost connection, names of schemas. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <netinet/in.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/module.h"
#include "base/os.h"
#include "store/postgres/postgres.h"

#define CHILDREN 40
#define BYTES 65536

extern const struct module pawl_module;
static struct store_error err;
static char uri_text[200]; /* the store keeps parts of it */

static struct pg *open_schema(const char *schema)
{
	const struct store_env env = {
		.mode = STORE_CREATE, .opt.timeout_ms = 20000, .opt.who = STR("tester"), .err = &err
	};
	struct store *s = NULL;
	struct uri uri;

	snprintf(uri_text, sizeof(uri_text), "%s?schema=%s", getenv("PAWL_TEST_STORE"), schema);
	assert_int_equal(uri_parse(str_c(uri_text), &uri), 0);
	if (pawl_module.store->open(&s, &uri, &env) < 0)
		fail_msg("%s: %s", uri_text, err.text);
	return pg_of(s);
}

static void close_it(struct pg *s)
{
	s->base.ops->close(&s->base);
}

static void modify(struct pg *s, struct change *c, size_t n)
{
	if (s->base.ops->modify(&s->base, c, n) < 0)
		fail_msg("%s", err.text);
}

/* A task `top` and its sub-tasks. */
static int put_family(struct edit *e, void *ctx)
{
	struct strs *keys = ctx;

	for (size_t i = 0; i <= keys->n; i++) {
		struct record r = { .key = i < keys->n ? keys->v[i] : STR("top"),
				    .ix = { .status = 1,
					    .parent = i < keys->n ? STR("top") : STR("") } };

		edit_put(e, &r);
	}
	return 0;
}

static struct strs make_family(struct pg *s, struct arena *a)
{
	struct strs keys = { arena_array(a, struct str, CHILDREN), CHILDREN };
	struct change c = { .fn = put_family, .ctx = &keys };

	for (int i = 0; i < CHILDREN; i++)
		keys.v[i] = arena_printf(a, "part%d", i);
	modify(s, &c, 1);
	return keys;
}

static void give_up(struct pg *s)
{
	s->changing = false;
	pg_forget_seen(s);
	assert_int_equal(pg_rollback(s, 0), 0);
}

/* As many statements as there may be, none of which the server knows yet. */
static void read_after(struct pg *s, unsigned sent, const struct wants *w)
{
	pg_disconnect(s);
	assert_int_equal(pg_guard(s), 0);
	assert_int_equal(pg_lock(s, 20000, NULL, 0), 0);
	while (s->sent < sent)
		assert_int_equal(pg_send_beside(s, "SELECT 1 WHERE false", NULL), 0);
	assert_int_equal(pg_ahead_more(s, &w, 1), 0);
	assert_int_equal(s->ahead.kept, PG_SETS);
	if (!pg_seen(s, w->keys.v[0]) || !pg_seen(s, w->keys.v[0])->rec)
		fail_msg("after %u messages a record counts as absent", sent);
	give_up(s);
}

static void test_full_batch(void **state)
{
	struct pg *s = open_schema("full");
	struct arena a = { 0 };
	struct query queries[PG_SETS] = { 0 };
	struct wants w = { make_family(s, &a), queries, PG_SETS, false };

	(void)state;
	for (int i = 0; i < PG_SETS; i++)
		queries[i] = (struct query){ .pick = i < 4 ? PICK_ALL : PICK_ELIGIBLE,
					     .class_rank = i % 4 + 1,
					     .held = i >= 8,
					     .limit = 1 };
	s->changes = 2; /* from then on statements have names */
	for (unsigned sent = 160; sent <= 200; sent++)
		read_after(s, sent, &w);
	close_it(s);
	arena_free(&a);
}

/* An answer that is missing is not an empty one. */
static void test_missing_answer(void **state)
{
	struct pg *s = open_schema("missing");
	PGresult *r[2] = { NULL };

	(void)state;
	assert_int_equal(pg_send(s, "SELECT 1", NULL), 0);
	assert_int_equal(pg_wait_all(s, r, 2), STORE_UNREACHABLE);
	assert_null(r[0]);
	assert_null(r[1]);
	assert_true(s->broken);
	close_it(s);
}

/* Pages of the index by date that a change has read when it has the lock. */
static int64_t due_pages(struct pg *s)
{
	PGresult *r = NULL;
	int64_t n;

	assert_int_equal(pg_lock(s, 20000, NULL, 0), 0);
	if (pg_ask(s, "SELECT pg_stat_get_xact_blocks_fetched('$S.record_due'::regclass)", NULL,
		   &r) < 0)
		fail_msg("%s", err.text);
	n = pg_int_at(r, 0, 0);
	PQclear(r);
	give_up(s);
	return n;
}

/* On another connection, since the server counts the pages of each. */
static void run_beside(struct pg *s, const char *sql)
{
	char *text = pg_sql(s, sql);
	PGconn *db = NULL;
	PGresult *r;

	assert_int_equal(pg_connect_to(s, &db), 0);
	r = PQexec(db, text);
	if (PQresultStatus(r) != PGRES_COMMAND_OK)
		fail_msg("%s", PQerrorMessage(db));
	PQclear(r);
	PQfinish(db);
	free(text);
}

/* The server keeps the plan that it made for the empty table. */
static void test_old_plan(void **state)
{
	struct pg *s = open_schema("due");

	(void)state;
	s->changes = 2;
	assert_in_range(due_pages(s), 1, 20);
	run_beside(s, "INSERT INTO $S.record(q,key,rev,lane,eligible_at) SELECT q,"
		      "convert_to(n::text,'UTF8'),1,2+n%2,9000000000000+n FROM $S.queue,"
		      "generate_series(1,20000) n");
	assert_in_range(due_pages(s), 1, 20);
	close_it(s);
}

static int rows_of(struct pg *s, const struct wants *w)
{
	PGresult *r = NULL;
	int n;

	assert_int_equal(pg_ahead_send(s, &w, 1), 0);
	assert_int_equal(pg_wait_all(s, &r, pg_ahead_results(s)), 0);
	n = PQntuples(r);
	PQclear(r);
	pg_forget_seen(s);
	return n;
}

static int put_tokens(struct edit *e, void *ctx)
{
	struct record all[] = {
		{ .key = STR("a"), .ix = { .status = 2, .token = STR("one") } },
		{ .key = STR("b"), .ix = { .status = 2, .token = STR("two") } },
	};

	(void)ctx;
	edit_put(e, &all[0]);
	edit_put(e, &all[1]);
	return 0;
}

static void test_parent_once(void **state)
{
	struct pg *s = open_schema("parent");
	struct arena a = { 0 };
	struct wants w = { .keys = make_family(s, &a) };

	(void)state;
	for (int i = 0; i < CHILDREN; i++)
		w.keys = arena_append(&a, w.keys, STR("part39"));
	assert_int_equal(rows_of(s, &w), CHILDREN);
	w.parents = true;
	assert_int_equal(rows_of(s, &w), CHILDREN + 1);
	close_it(s);
	arena_free(&a);
}

/* A batch asks twice: with the lock, and when it knows its calls. The server plans that statement once. */
static void test_same_statement(void **state)
{
	struct pg *s = open_schema("same");
	struct change c = { .fn = put_tokens };
	struct query q[] = { { .token = STR("one"), .limit = 2 },
			     { .token = STR("two"), .limit = 2 } };
	struct pg_found found;
	size_t known = 0;

	(void)state;
	modify(s, &c, 1);
	assert_int_equal(pg_lock(s, 20000, NULL, 0), 0);
	for (int i = 0; i < 2; i++) {
		const struct wants w = { .queries = &q[i], .n_queries = 1 }, *wanted = &w;

		assert_int_equal(pg_ahead_more(s, &wanted, 1), 0);
		assert_true(pg_ahead_find(s, &q[i], &found));
		assert_int_equal(found.n, 1);
		assert_true(str_eq(found.v[0]->ix.token, q[i].token));
		assert_true(!i || s->n_prepared == known);
		known = s->n_prepared;
	}
	give_up(s);
	close_it(s);
}

/* A store is open while the row of its queue goes: a person has restored the schema from a backup, for example. */
static void test_removed(void **state)
{
	struct pg *s = open_schema("removed");
	struct query q = { .pick = PICK_ELIGIBLE, .limit = 1 };
	const struct wants w = { .queries = &q, .n_queries = 1 }, *wanted = &w;

	(void)state;
	assert_int_equal(pg_lock(s, 20000, &wanted, 1), 0);
	give_up(s);
	run_beside(s, "DELETE FROM $S.queue");
	for (int i = 0; i < 2; i++) {
		assert_int_equal(pg_lock(s, 20000, &wanted, 1), STORE_ABSENT);
		assert_non_null(strstr(err.text, "another process removed the queue"));
		s->changing = false;
		pg_forget_seen(s);
		pg_disconnect(s); /* a new session has had no lock before */
		assert_int_equal(pg_guard(s), 0);
	}
	close_it(s);
}

/* A task whose date has come ranks among the ready ones; the server answers for each lane by itself. */
static int put_lanes(struct edit *e, void *ctx)
{
	struct record all[] = {
		{ .key = STR("low"), .ix = { .lane = LANE_READY, .status = 2, .priority = 1 } },
		{ .key = STR("high"),
		  .ix = { .lane = LANE_LATER, .status = 2, .priority = 5, .eligible_at = 1 } },
		{ .key = STR("mid"), .ix = { .lane = LANE_READY, .status = 2, .priority = 3 } },
	};

	(void)ctx;
	for (int i = 0; i < 3; i++)
		edit_put(e, &all[i]);
	return 0;
}

static void test_rank_of_lanes(void **state)
{
	static const char *const ranked[] = { "high", "mid", "low" };
	struct pg *s = open_schema("lanes");
	struct change c = { .fn = put_lanes };
	struct pg_found found;

	(void)state;
	modify(s, &c, 1);
	for (size_t n = 1; n <= 3; n++) {
		struct query q = { .pick = PICK_ELIGIBLE, .limit = n };
		const struct wants w = { .queries = &q, .n_queries = 1 }, *wanted = &w;

		/* a commit would promote the task */
		assert_int_equal(pg_lock(s, 20000, &wanted, 1), 0);
		assert_true(pg_ahead_find(s, &q, &found));
		assert_int_equal(found.n, n);
		for (size_t i = 0; i < n; i++)
			assert_string_equal(arena_cstr(&s->arena, found.v[i]->key), ranked[i]);
		give_up(s);
	}
	close_it(s);
}

static size_t most_chunks;

static int log_much(struct edit *e, void *ctx)
{
	struct str *text = ctx;
	size_t n = 0;

	for (const void *c = e->arena->head; c;
	     memcpy(&c, c, sizeof(c))) /* begins with the next one */
		n++;
	if (n > most_chunks)
		most_chunks = n;
	edit_log(e, STR("top"), *text);
	return 0;
}

static void test_long_log(void **state)
{
	static char bytes[BYTES];
	static struct change changes[300];
	struct pg *s = open_schema("log");
	struct str text = { bytes, sizeof(bytes) };

	(void)state;
	memset(bytes, 'x', sizeof(bytes));
	for (size_t i = 0; i < sizeof(changes) / sizeof(*changes); i++)
		changes[i] = (struct change){ .fn = log_much, .ctx = &text };
	modify(s, changes, sizeof(changes) / sizeof(*changes));
	assert_in_range(most_chunks, 1, 100); /* each entry takes a chunk or more */
	close_it(s);
}

/* A pooler may be there now, or no longer. */
static void test_new_connection(void **state)
{
	struct pg *s = open_schema("again");

	(void)state;
	s->changes = 5;
	s->pooled = true;
	pg_disconnect(s);
	assert_false(s->pooled);
	assert_int_equal(pg_guard(s), 0);
	for (size_t i = 0; i < s->n_prepared; i++)
		assert_false(s->prepared[i].named);
	close_it(s);
}

static int count_one(const struct record *r, void *ctx)
{
	(void)r;
	++*(int *)ctx;
	return 0;
}

static void test_dollars(void **state)
{
	struct pg *s = open_schema("a$Cb$S$1");
	struct arena a = { 0 };
	int n = 0;

	(void)state;
	(void)make_family(s, &a);
	s->changes = 2;
	for (int i = 1; i <= 3; i++) {
		if (pg_scan(&s->base, &(struct query){ .limit = 1 }, count_one, &n) < 0)
			fail_msg("%s", err.text);
		assert_int_equal(n, i);
	}
	close_it(s);
	arena_free(&a);
}

static void test_tell(void **state)
{
	struct pg *s = open_schema("tell");

	(void)state;
	s->broken = true;
	s->tell_by = os_boot_ms();
	pg_tell(s);
	assert_true(s->broken); /* no time left for a new connection */
	s->tell_by = os_boot_ms() + 60000;
	pg_tell(s);
	assert_non_null(s->db);
	assert_false(s->broken);
	assert_int_equal(s->pending_moves, 1);
	pg_disconnect(s);
	snprintf(s->base.env.err->text, sizeof(s->base.env.err->text), "of the change");
	s->conninfo[0] = 'x'; /* it cannot connect */
	pg_tell(s);
	assert_null(s->db);
	assert_string_equal(err.text, "of the change");
	close_it(s);
}

/* A server that accepts connections and says nothing: connect_timeout does not matter when the time is limited. */
static void test_until(void **state)
{
	struct pg *s = open_schema("until");
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t n = sizeof(at);
	int silent = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char conninfo[120], *own = s->conninfo;
	PGconn *db = NULL;

	(void)state;
	assert_int_equal(bind(silent, (struct sockaddr *)&at, n), 0);
	assert_int_equal(listen(silent, 8), 0);
	assert_int_equal(getsockname(silent, (struct sockaddr *)&at, &n), 0);
	snprintf(conninfo, sizeof(conninfo),
		 "postgres://u@127.0.0.1:%d/db?sslmode=disable&connect_timeout=1000",
		 ntohs(at.sin_port));
	s->conninfo = conninfo;
	s->until = os_boot_ms() + 50;
	alarm(100);
	assert_int_equal(pg_connect_to(s, &db), STORE_UNREACHABLE);
	alarm(0);
	s->conninfo = own;
	close_it(s);
	close(silent);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_old_plan),       cmocka_unit_test(test_full_batch),
		cmocka_unit_test(test_missing_answer), cmocka_unit_test(test_parent_once),
		cmocka_unit_test(test_rank_of_lanes),  cmocka_unit_test(test_long_log),
		cmocka_unit_test(test_new_connection), cmocka_unit_test(test_dollars),
		cmocka_unit_test(test_tell),           cmocka_unit_test(test_until),
		cmocka_unit_test(test_same_statement), cmocka_unit_test(test_removed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* pawl's own library, as a server or another program would call it: no process start, no command
 * line. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/secret.h"
#include "bench.h"
#include "queue/queue.h"

#define DAY 86400000
#define BATCH 20000 /* requests in one commit */

static struct queue *queue;
static struct str who;
static bool alone;
static char held[64], token[64], name[32], uri[4096];

static void must(const struct answer *ans)
{
	if (ans->code != SUCCESS)
		bench_die("pawl: %.*s", STRF(ans->message));
}

/* The token for a server, which bench/run has made for all processes. */
static enum result bearer(void *ctx, struct str origin, struct str *out, bool *insecure,
			  struct answer *ans, struct arena *a)
{
	const char *text = getenv("PAWL_SERVER_TOKEN");

	(void)ctx, (void)origin, (void)ans, (void)a;
	*insecure = false;
	*out = str_c(text ? text : "");
	return SUCCESS;
}

static void attach(const char *path, enum store_mode mode)
{
	struct arena a = { 0 };
	struct answer ans = { 0 };
	struct queue_config config = {
		.policy = policy_default, .opt.timeout_ms = 60000, .alone = alone, .bearer = bearer
	};

	snprintf(uri, sizeof(uri), strchr(path, ':') ? "%s" : "sqlite:%s", path);
	snprintf(name, sizeof(name), "agent-%ld", (long)getpid());
	who = str_c(name);
	config.uri = str_c(uri);
	config.opt.who = who;
	queue_open(&queue, &config, mode, &ans, &a);
	must(&ans);
	arena_free(&a);
}

static void pawl_create(const char *path)
{
	attach(path, STORE_CREATE);
}

static void pawl_open(const char *path)
{
	attach(path, STORE_WRITE);
}

static void pawl_close(void)
{
	queue_close(queue);
}

static void alone_create(const char *path)
{
	alone = true;
	pawl_create(path);
}

static void alone_open(const char *path)
{
	alone = true;
	pawl_open(path);
}

static struct request request(enum op op)
{
	struct request rq = { .op = op };

	GIVE(&rq, agent, who);
	GIVE(&rq, host, STR("here"));
	return rq;
}

static void call_many(const struct request *rqs, size_t n, struct arena *a)
{
	struct answer *answers = arena_array(a, struct answer, n);

	queue_call_many(queue, rqs, answers, n, a);
	for (size_t i = 0; i < n; i++)
		must(&answers[i]);
}

static void pawl_fill(int64_t from, int64_t n, int priority)
{
	for (int64_t at = 0; at < n; at += BATCH) {
		size_t count = (size_t)(n - at < BATCH ? n - at : BATCH);
		struct arena a = { 0 };
		struct request *rqs = arena_array(&a, struct request, count);

		for (size_t i = 0; i < count; i++) {
			long long number = from + at + (int64_t)i + 1;

			rqs[i] = request(OP_CREATE);
			GIVE(&rqs[i], id, arena_printf(&a, "b%lld", number));
			GIVE(&rqs[i], title, arena_printf(&a, "Task number %lld", number));
			GIVE(&rqs[i], priority, priority);
		}
		call_many(rqs, count, &a);
		arena_free(&a);
	}
}

static void pawl_hold(int64_t n)
{
	for (int64_t at = 0; at < n; at += BATCH) {
		size_t count = (size_t)(n - at < BATCH ? n - at : BATCH);
		struct arena a = { 0 };
		struct request *rqs = arena_array(&a, struct request, count);

		for (size_t i = 0; i < count; i++) {
			rqs[i] = request(OP_TAKE);
			GIVE(&rqs[i], new_token, token_make(&a));
			GIVE(&rqs[i], ttl, DAY);
		}
		call_many(rqs, count, &a);
		arena_free(&a);
	}
}

/* 1: done; 0: refused with `no`. */
static int call(const struct request *rq, enum result no, struct arena *a)
{
	struct answer ans = { 0 };

	queue_call(queue, rq, &ans, a);
	if (ans.code == no)
		return 0;
	must(&ans);
	if (ans.lock) {
		snprintf(held, sizeof(held), "%.*s", STRF(ans.task->id));
		snprintf(token, sizeof(token), "%.*s", STRF(rq->new_token));
	}
	return 1;
}

static int pawl_claim(const char *id)
{
	struct arena a = { 0 };
	struct request rq = request(OP_CLAIM);
	int got;

	GIVE(&rq, id, str_c(id));
	GIVE(&rq, new_token, token_make(&a));
	got = call(&rq, CONFLICT, &a);
	arena_free(&a);
	return got;
}

static int pawl_take(void)
{
	struct arena a = { 0 };
	struct request rq = request(OP_TAKE);
	int got;

	GIVE(&rq, new_token, token_make(&a));
	got = call(&rq, NO_TASKS, &a);
	arena_free(&a);
	return got;
}

static int finish(enum op op)
{
	struct arena a = { 0 };
	struct request rq = request(op);
	int got;

	GIVE(&rq, id, str_c(held));
	GIVE(&rq, token, str_c(token));
	got = call(&rq, LOST_LOCK, &a);
	arena_free(&a);
	return got;
}

static int pawl_release(void)
{
	return finish(OP_RELEASE);
}

static int pawl_done(void)
{
	return finish(OP_DONE);
}

static int pawl_done_next(int *done)
{
	struct arena a = { 0 };
	struct request rq = request(OP_DONE);
	struct answer ans = { 0 };

	GIVE(&rq, id, str_c(held));
	GIVE(&rq, token, str_c(token));
	GIVE(&rq, claim_next, 1);
	GIVE(&rq, new_token, token_make(&a));
	queue_call(queue, &rq, &ans, &a);
	*done = ans.code == SUCCESS;
	if (ans.code != LOST_LOCK)
		must(&ans);
	if (ans.next) {
		snprintf(held, sizeof(held), "%.*s", STRF(ans.next->id));
		snprintf(token, sizeof(token), "%.*s", STRF(rq.new_token));
	}
	arena_free(&a);
	return ans.next != NULL;
}

#define CALLS                                                                           \
	.close = pawl_close, .fill = pawl_fill, .hold = pawl_hold, .claim = pawl_claim, \
	.release = pawl_release, .take = pawl_take, .done = pawl_done, .done_next = pawl_done_next

const struct contender contender_pawl = { "pawl", pawl_create, pawl_open, CALLS };
const struct contender contender_alone = { "alone", alone_create, alone_open, CALLS };

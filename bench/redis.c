/*
 * A typical queue in Redis: two scripts, which Redis runs atomically. The server must sync its log
 * after every command (appendfsync always), for the same durability.
 */
#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"

#define LEASE 900000

static const char take_script[] =
	"local id = redis.call('ZRANGE', 'ready', 0, 0)[1] "
	"if not id then return false end "
	"redis.call('ZREM', 'ready', id) "
	"redis.call('HINCRBY', 'task:' .. id, 'fence', 1) "
	"redis.call('HSET', 'task:' .. id, 'status', 'in progress', 'holder', ARGV[1], 'token', ARGV[2],"
	" 'expires', ARGV[3]) "
	"redis.call('ZADD', 'held', ARGV[3], id) "
	"redis.call('XADD', 'log', '*', 'task', id, 'what', 'claimed', 'who', ARGV[1]) "
	"return id";

static const char done_script[] =
	"local task = 'task:' .. KEYS[1] "
	"if redis.call('HGET', task, 'token') ~= ARGV[2] then return false end "
	"redis.call('HDEL', task, 'token', 'expires') "
	"redis.call('HSET', task, 'status', 'done') "
	"redis.call('ZREM', 'held', KEYS[1]) "
	"redis.call('XADD', 'log', '*', 'task', KEYS[1], 'what', 'done', 'who', ARGV[1]) "
	"return KEYS[1]";

static redisContext *server;
static char take_sha[64], done_sha[64], who[32], token[64], held[64];
static int64_t calls;

static redisReply *checked(redisReply *r)
{
	if (!r)
		bench_die("redis: %s", server->errstr);
	if (r->type == REDIS_REPLY_ERROR)
		bench_die("redis: %s", r->str);
	return r;
}

static void load(const char *script, char *sha, size_t room)
{
	redisReply *r = checked(redisCommand(server, "SCRIPT LOAD %s", script));

	snprintf(sha, room, "%s", r->str);
	freeReplyObject(r);
}

static void redis_open(const char *port)
{
	server = redisConnect("127.0.0.1", (int)bench_number(port));
	if (!server || server->err)
		bench_die("redis: %s", server ? server->errstr : "no memory");
	snprintf(who, sizeof(who), "agent-%ld", (long)getpid());
	load(take_script, take_sha, sizeof(take_sha));
	load(done_script, done_sha, sizeof(done_sha));
}

static void redis_create(const char *port)
{
	redis_open(port);
	freeReplyObject(checked(redisCommand(server, "FLUSHALL")));
}

static void redis_close(void)
{
	redisFree(server);
}

static void redis_fill(int64_t from, int64_t n, int priority)
{
	redisReply *r;

	for (int64_t i = from + 1; i <= from + n; i++) {
		redisAppendCommand(
			server,
			"HSET task:b%lld status ready priority %d title Task\\ number\\ %lld",
			(long long)i, priority, (long long)i);
		redisAppendCommand(server, "ZADD ready %lld b%lld", (long long)i, (long long)i);
	}
	for (int64_t i = 0; i < 2 * n; i++) {
		if (redisGetReply(server, (void **)&r) != REDIS_OK)
			r = NULL;
		freeReplyObject(checked(r));
	}
}

static int64_t expiry(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000 + LEASE;
}

static int redis_take(void)
{
	redisReply *r;
	int got;

	snprintf(token, sizeof(token), "%s-%" PRId64, who, ++calls);
	r = checked(redisCommand(server, "EVALSHA %s 0 %s %s %lld", take_sha, who, token,
				 (long long)expiry()));
	got = r->type == REDIS_REPLY_STRING;
	if (got)
		snprintf(held, sizeof(held), "%s", r->str);
	freeReplyObject(r);
	return got;
}

static int redis_done(void)
{
	redisReply *r =
		checked(redisCommand(server, "EVALSHA %s 1 %s %s %s", done_sha, held, who, token));
	int got = r->type == REDIS_REPLY_STRING;

	freeReplyObject(r);
	return got;
}

const struct contender contender_redis = {
	.name = "redis",
	.create = redis_create,
	.open = redis_open,
	.close = redis_close,
	.fill = redis_fill,
	.take = redis_take,
	.done = redis_done,
};

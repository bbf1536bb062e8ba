/* Many MCP servers, each with its own client, half of them under one name. A single task has one winner; of many tasks
 * each is done once. */
#include "kit.h"

#include "base/fs.h"
#include "kit/peer.h"

#define SERVERS 20
#define TASKS SCALE(201, 61)
#define ONE 1 /* the task that all of them want */

static struct board {
	_Atomic int ready, wins, losses, finished;
	_Atomic int done[TASKS + 1];
} * board;

static void start(struct peer *p, int me)
{
	struct arena a = { 0 };
	char *argv[] = {
		getenv("PAWL"), "mcp",
		"--store",      arena_cstr(&a, str_c(kit_uri())),
		"--agent",      arena_cstr(&a, arena_printf(&a, "agent-%d", me % 2 ? me : 0)),
		NULL,
	};

	CHECK(argv[0] && peer_open(p, argv), "the server cannot be started");
	arena_free(&a);
}

static const char *text(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s ? s : "";
}

static bool ok(const json_t *o)
{
	return json_is_true(json_object_get(o, "ok"));
}

static void want_one(struct peer *p)
{
	json_t *o = peer_call(p, "claim", json_pack("{s:s}", "id", "t1"));
	const json_t *error = json_object_get(o, "error");

	if (ok(o)) {
		board->wins++;
	} else {
		CHECK(!strcmp(text(error, "code"), "CONFLICT"), "claim: %s", text(error, "code"));
		CHECK(!strncmp(text(error, "holder"), "agent-", 6), "no holder");
		/* servers of one name are sessions of their own */
		CHECK(!strstr(text(error, "message"), "this session"), "%s",
		      text(error, "message"));
		CHECK(json_integer_value(json_object_get(error, "expires_in")) > 0, "no expiry");
		board->losses++;
	}
	json_decref(o);
}

/* false: no task is left */
static bool do_next(struct peer *p)
{
	json_t *o = peer_call(p, "next", json_pack("{s:b}", "claim", 1)), *finished;
	const char *id = text(json_object_get(o, "task"), "id");
	int n;

	CHECK(ok(o), "next: %s", text(json_object_get(o, "error"), "message"));
	if (!*id) {
		json_decref(o);
		return false;
	}
	n = kit_number(str_c(id));
	CHECK(n > ONE && n <= TASKS, "next gave %s", id);
	finished = peer_call(p, "done", json_pack("{s:s}", "id", id));
	CHECK(ok(finished), "done %s: %s", id, text(json_object_get(finished, "error"), "message"));
	CHECK(board->done[n]++ == 0, "%s was done twice", id);
	json_decref(finished);
	json_decref(o);
	return true;
}

static int work(int me)
{
	struct peer p;

	start(&p, me);
	json_decref(peer_ask(&p, "ping", json_object()));
	board->ready++;
	kit_await(&board->ready, SERVERS, 60000);
	want_one(&p);
	kit_await(&board->ready, SERVERS + 1, 60000);
	while (do_next(&p))
		;
	/* t1 would be free as soon as the server of its holder has ended */
	board->finished++;
	kit_await(&board->finished, SERVERS, 60000);
	CHECK(peer_close(&p) == 0, "the server did not end well");
	return 0;
}

/* Keeps the tokens next to the queue. */
static void keep_state(void)
{
	struct arena a = { 0 };
	struct str path = str_c(kit_uri());

	str_cut_prefix(&path, STR("sqlite:"));
	setenv("XDG_STATE_HOME", arena_cstr(&a, fs_dirname(path)), 1);
	arena_free(&a);
}

int main(void)
{
	pid_t pids[SERVERS];
	struct queue *q;

	kit_begin();
	keep_state();
	setenv("PAWL_TIMEOUT", "2m", 1); /* they wait for each other, longer on a slow disk */
	board = shared_alloc(sizeof(*board));
	q = kit_open(STORE_WRITE, 60000);
	kit_create(q, TASKS);
	queue_close(q);
	for (int i = 0; i < SERVERS; i++)
		pids[i] = kit_spawn(work, i);
	for (int64_t end = kit_ms() + 60000;
	     board->wins + board->losses < SERVERS && kit_ms() < end;)
		kit_sleep(1);
	CHECK(board->wins == 1 && board->losses == SERVERS - 1, "%d won and %d lost",
	      (int)board->wins, (int)board->losses);
	board->ready++;
	for (int i = 0; i < SERVERS; i++)
		CHECK(kit_reap(pids[i]) == 0, "server %d", i);
	for (int i = ONE + 1; i <= TASKS; i++)
		CHECK(board->done[i] == 1, "t%d was done %d times", i, (int)board->done[i]);
	q = kit_open(STORE_WRITE, 60000);
	kit_check_store(q);
	queue_close(q);
	printf("%d servers: 1 of %d claims won; %d tasks done once each\n", SERVERS, SERVERS,
	       TASKS - 1);
	kit_end();
	return 0;
}

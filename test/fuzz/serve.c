/*
 * A server's jobs, as their queue's thread makes them. The first byte chooses the kind: packed requests, one of the commands
 * with JSON arguments, or a stream of events that begins after any cursor. Every job gets a status and an answer that its
 * caller can read: as many frames as requests, one JSON object, or whole messages of a stream.
 */
#include "kit.h"
#include "face/serve/serve.h"
#include "store/mem/mem.h"

#define RUNS 20 /* inputs for one queue: making it takes longer than most inputs */
#define TURNS 2000

static struct session session;
static struct serve serve = { .session = &session, .rate = 1000, .burst = 1000 };
static struct worker worker = { .serve = &serve, .queue = "" };
static struct meter meter = { .name = "fuzz", .memory.most = SIZE_MAX };
static struct arena arena;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc, (void)argv;
	setenv("HOME", fuzz_dir(), 1);
	setenv("XDG_STATE_HOME", getenv("HOME"), 1);
	pthread_mutex_init(&worker.lock, NULL);
	worker.wake = -1;
	serve.late = late_new();
	return 0;
}

/* A queue with a task that is held, one that waits for it, and a comment. */
static void begin(void)
{
	struct client *c = &worker.session.client;
	struct client_options who = { .store = STR("mem:fuzz"), .agent = STR("fuzz") };
	static const enum op ops[] = { OP_CREATE, OP_CREATE, OP_CREATE, OP_TAKE, OP_COMMENT };
	struct strs on = { .v = &STR("t1"), .n = 1 };
	struct answer ans = { 0 };

	client_close(c);
	arena_free(&arena);
	mem_reset();
	worker.session = (struct session){ .arena = &arena };
	CHECK(client_init(c, &who, &ans, &arena) == SUCCESS);
	c->self.bare = c->conn.config.impatient = true;
	CHECK(client_open(c, STORE_CREATE, &ans) == SUCCESS);
	session = worker.session;
	worker.open = true;
	for (size_t i = 0; i < sizeof(ops) / sizeof(*ops); i++) {
		struct request rq = { .op = ops[i] };

		GIVE(&rq, agent, STR("fuzz"));
		if (ops[i] == OP_CREATE)
			GIVE(&rq, title, STR("x"));
		if (i == 2)
			GIVE(&rq, depends, on);
		if (ops[i] == OP_TAKE)
			GIVE(&rq, new_token, STR("11111111-1111-4111-8111-111111111111"));
		if (ops[i] == OP_COMMENT) {
			GIVE(&rq, id, STR("t1"));
			GIVE(&rq, text, STR("a comment"));
		}
		queue_call(c->conn.queue, &rq, &ans, &arena);
		CHECK(ans.code == SUCCESS);
	}
}

static struct job *job_of(enum job_kind kind, struct str body)
{
	struct http_caller caller = { .meter = &meter,
				      .name = strdup("fuzz"),
				      .agents = strdup("*"),
				      .hash = strdup(""),
				      .role = ROLE_ADMIN };
	struct job *j = job_new(kind, NULL, &caller);

	j->worker = &worker;
	buf_adds(&j->body, body);
	return j;
}

static void check_json(struct str text)
{
	json_t *o = json_loadb(str_p(text), text.n, JSON_REJECT_DUPLICATES, NULL);

	CHECK(json_is_object(o) && json_is_boolean(json_object_get(o, "ok")));
	json_decref(o);
}

static void packed(struct job *j)
{
	for (int i = 0; !j->status && i < TURNS; i++) {
		j->put_off = false;
		packed_run(&worker, j, true);
		if (!j->status && !j->tried)
			(void)packed_go_on(&worker, j, true);
	}
	CHECK(j->status && !j->answer.full);
	if (j->status == 200)
		CHECK(frame_count(buf_str(&j->answer), SIZE_MAX) ==
		      frame_count(buf_str(&j->body), SIZE_MAX));
	else
		check_json(buf_str(&j->answer));
}

static void command(struct job *j, uint8_t which)
{
	size_t n = 0;

	while (commands[n])
		n++;
	j->command = commands[which % n];
	if (command_local(j->command))
		return;
	packed_run(&worker, j, true);
	if (!j->status)
		(void)call_run(&worker, j, true);
	CHECK(j->status >= 200 && j->status < 600 && !j->answer.full);
	check_json(buf_str(&j->answer));
}

/* Each message ends with an empty line, and its data is one line of JSON. */
static void check_messages(struct str text)
{
	while (text.n) {
		struct str line = str_cut(&text, '\n');

		if (str_cut_prefix(&line, STR("data: "))) {
			json_t *o = json_loadb(str_p(line), line.n, JSON_REJECT_DUPLICATES, NULL);

			CHECK(json_is_object(o));
			json_decref(o);
			CHECK(text.n && text.p[0] == '\n');
		} else {
			CHECK(!line.n || line.p[0] == ':' || str_starts(line, STR("id: ")) ||
			      str_starts(line, STR("event: ")));
		}
	}
}

static void events(struct job *j, uint8_t flags, struct str input)
{
	j->first = flags & 1;
	j->wakes = flags & 2;
	j->pages = flags >> 2 & 1;
	buf_adds(&j->after, str_cut(&input, '\n'));
	buf_adds(&j->page, str_cut(&input, '\n'));
	if (j->after.full || j->page.full)
		return;
	for (int i = 0; i < TURNS; i++) {
		j->more = false;
		j->answer.n = 0;
		events_run(&worker, j);
		CHECK(j->status && !j->answer.full);
		check_messages(buf_str(&j->answer));
		j->first = false;
		if (!j->more || j->status != 200)
			return;
	}
	CHECK(!"a stream that never comes to its end");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const enum job_kind kinds[] = { JOB_PACKED, JOB_COMMAND, JOB_EVENTS, JOB_COMMAND };
	static int runs;
	struct job *j;

	if (size < 2)
		return 0;
	if (runs++ % RUNS == 0)
		begin();
	j = job_of(kinds[data[0] & 3], str_n((const char *)data + 2, size - 2));
	j->all = data[0] & 4;
	j->attempt = data[0] >> 3;
	if (j->kind == JOB_PACKED)
		packed(j);
	else if (j->kind == JOB_COMMAND)
		command(j, data[1]);
	else
		events(j, data[1], str_n((const char *)data + 2, size - 2));
	job_free(j);
	return 0;
}

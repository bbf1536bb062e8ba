/*
 * Answers: packed and unpacked, and as the one JSON that all faces show.
 */
#include "core_kit.h"

#include "format/pack.h"
#include "core/answer.h"
#include "format/task_form.h"
#include "format/answer_form.h"

static struct str pack(const struct answer *ans)
{
	struct buf b = BUF_MAX(64u << 20);
	struct str out;

	answer_pack(ans, &b);
	out = arena_str(&mem, buf_str(&b));
	buf_free(&b);
	return out;
}

static struct task task_named(const char *id)
{
	return (struct task){ .id = str_c(id),
			      .title = STR("x"),
			      .status = IN_PROGRESS,
			      .class_rank = STANDARD,
			      .fence = 4,
			      .created_at = NOW,
			      .updated_at = NOW,
			      .lock = { .holder = STR("ann"),
					.token = STR("HASHED"),
					.acquired_at = NOW,
					.expires_at = NOW + 2000,
					.ttl = 2000 } };
}

#define TASK_TEXT(id)                                                                               \
	"{\"id\":\"" id "\",\"title\":\"x\",\"status\":\"In Progress\",\"class\":\"Standard\","     \
	"\"priority\":0,\"labels\":[],\"depends\":[],\"attempts\":0,\"abandoned\":0,\"fence\":4,"   \
	"\"created_at\":\"2023-11-14T22:13:20.000Z\",\"updated_at\":\"2023-11-14T22:13:20.000Z\","  \
	"\"version\":0,\"held\":true,\"lock\":{\"holder\":\"ann\",\"fence\":4,\"live\":true,"       \
	"\"acquired_at\":\"2023-11-14T22:13:20.000Z\",\"expires_at\":\"2023-11-14T22:13:22.000Z\"," \
	"\"expires_in\":2,\"ttl\":2}}"

/* Checks the JSON, and again after packing and unpacking. */
static void check(const struct answer *ans, const char *want)
{
	struct answer back;

	assert_int_equal(answer_unpack(pack(ans), &back, &mem), 0);
	for (int i = 0; i < 2; i++) {
		json_t *o = answer_json(i ? &back : ans, &mem);
		char *text = json_dumps(o, JSON_COMPACT);

		assert_string_equal(text, want);
		assert_null(strstr(text, "HASHED"));
		free(text);
		json_decref(o);
	}
}

/* --- JSON ------------------------------------------------------------------------------------------- */

static void one_task(void **state)
{
	struct task t = task_named("t1");
	struct answer ans = { .now = NOW, .task = &t };
	struct event comments[] = { { .name = STR("comment"), .text = STR("hm"), .at = NOW } };

	(void)state;
	check(&ans, "{\"ok\":true,\"code\":\"SUCCESS\",\"task\":" TASK_TEXT("t1") "}");
	ans.events = comments;
	ans.n_events = 1;
	check(&ans,
	      "{\"ok\":true,\"code\":\"SUCCESS\",\"task\":" TASK_TEXT(
		      "t1") ",\"comments\":[{\"at\":"
			    "\"2023-11-14T22:13:20.000Z\",\"event\":\"comment\",\"text\":\"hm\"}]}");
	check(&(struct answer){ .now = NOW }, "{\"ok\":true,\"code\":\"SUCCESS\"}");
}

static void no_tasks(void **state)
{
	struct answer ans = { .code = NO_TASKS, .now = NOW };

	(void)state;
	check(&ans, "{\"ok\":true,\"code\":\"NO_TASKS\",\"task\":null}");
	ans.wait_ms = 1500;
	ans.message = STR("none");
	ans.hint = STR("wait");
	check(&ans,
	      "{\"ok\":true,\"code\":\"NO_TASKS\",\"task\":null,\"message\":\"none\",\"hint\":\"wait\","
	      "\"wait\":1.5}");
}

#define GRANT_TEXT(token) \
	"{" token         \
	"\"fence\":4,\"expires_at\":\"2023-11-14T22:13:22.000Z\",\"expires_in\":2,\"ttl\":2}"

static void claims(void **state)
{
	struct task t = task_named("t1"), next = task_named("t2");
	struct grant lock = { STR("T0KEN"), 4, NOW + 2000, 2000 },
		     quiet = { STR(""), 4, NOW + 2000, 2000 };
	struct event comments[] = { { .name = STR("comment"), .text = STR("hm"), .at = NOW } };
	struct answer ans = { .now = NOW, .task = &t, .lock = &lock };

	(void)state;
	check(&ans, "{\"ok\":true,\"code\":\"SUCCESS\",\"task\":" TASK_TEXT(
			    "t1") ",\"lock\":" GRANT_TEXT("\"token\":\"T0KEN\",") "}");
	ans.lock = NULL;
	ans.has_next = 1;
	check(&ans,
	      "{\"ok\":true,\"code\":\"SUCCESS\",\"task\":" TASK_TEXT("t1") ",\"next\":null}");
	ans.next = &next;
	ans.next_lock = &quiet;
	check(&ans,
	      "{\"ok\":true,\"code\":\"SUCCESS\",\"task\":" TASK_TEXT(
		      "t1") ",\"next\":{\"task\":" TASK_TEXT("t2") ",\"lock\":" GRANT_TEXT("") "}}");
	ans.events = comments;
	ans.n_events = 1;
	check(&ans,
	      "{\"ok\":true,\"code\":\"SUCCESS\",\"task\":" TASK_TEXT("t1") ",\"next\":{\"task\":" TASK_TEXT(
		      "t2") ",\"lock\":" GRANT_TEXT("") ",\"comments\":[{\"at\":\"2023-11-14T22:13:20.000Z\","
							"\"event\":\"comment\",\"text\":\"hm\"}]}}");
	ans.n_events = 0;
	ans.next_lock = NULL; /* a broken server may send this */
	check(&ans, "{\"ok\":true,\"code\":\"SUCCESS\",\"task\":" TASK_TEXT(
			    "t1") ",\"next\":{\"task\":" TASK_TEXT("t2") ",\"lock\":null}}");
}

/* An expired lease has 0 left, not a negative time. */
static void late_grant(void **state)
{
	struct grant lock = { STR("T"), 1, NOW, 1500 };
	struct answer ans = { .now = NOW + 5000, .lock = &lock };

	(void)state;
	check(&ans, "{\"ok\":true,\"code\":\"SUCCESS\",\"lock\":{\"token\":\"T\",\"fence\":1,"
		    "\"expires_at\":\"2023-11-14T22:13:20.000Z\",\"expires_in\":0,\"ttl\":1.5}}");
}

static void lists(void **state)
{
	struct task two[] = { task_named("t1"), task_named("t2") };
	struct answer ans = {
		.kind = ANSWER_TASKS, .now = NOW, .tasks = two, .n_tasks = 2, .total = 9
	};

	(void)state;
	check(&ans, "{\"ok\":true,\"code\":\"SUCCESS\",\"tasks\":[" TASK_TEXT("t1") "," TASK_TEXT(
			    "t2") "],\"count\":2,\"total\":9}");
	ans.n_tasks = 0;
	ans.total = 0;
	check(&ans, "{\"ok\":true,\"code\":\"SUCCESS\",\"tasks\":[],\"count\":0,\"total\":0}");
	ans.kind = ANSWER_LOCKS;
	check(&ans, "{\"ok\":true,\"code\":\"SUCCESS\",\"locks\":[],\"count\":0,\"total\":0}");
	ans.n_tasks = 1;
	ans.total = 1;
	check(&ans,
	      "{\"ok\":true,\"code\":\"SUCCESS\",\"locks\":[{\"holder\":\"ann\",\"fence\":4,\"live\":true,"
	      "\"acquired_at\":\"2023-11-14T22:13:20.000Z\",\"expires_at\":\"2023-11-14T22:13:22.000Z\","
	      "\"expires_in\":2,\"ttl\":2,\"task\":\"t1\",\"title\":\"x\",\"status\":\"In Progress\"}],"
	      "\"count\":1,\"total\":1}");
}

static void logs(void **state)
{
	struct event events[] = { { .name = STR("claimed"),
				    .task = STR("t1"),
				    .agent = STR("ann"),
				    .from = READY,
				    .to = IN_PROGRESS,
				    .fence = 1,
				    .cursor = STR("7"),
				    .at = NOW },
				  { .name = STR("comment"), .at = NOW + 1 } };
	struct answer ans = { .kind = ANSWER_EVENTS, .now = NOW, .events = events, .n_events = 2 };

	(void)state;
	check(&ans,
	      "{\"ok\":true,\"code\":\"SUCCESS\",\"events\":[{\"cursor\":\"7\","
	      "\"at\":\"2023-11-14T22:13:20.000Z\",\"event\":\"claimed\",\"task\":\"t1\",\"agent\":\"ann\","
	      "\"fence\":1,\"from\":\"Ready\",\"to\":\"In Progress\"},"
	      "{\"at\":\"2023-11-14T22:13:20.001Z\",\"event\":\"comment\"}],\"count\":2}");
}

static void one_lock(void **state)
{
	struct task t = task_named("t1"), none = { .id = STR("t2"), .status = READY };
	struct answer ans = { .kind = ANSWER_LOCK, .now = NOW, .task = &t };
	struct answer unlocked = {
		.kind = ANSWER_LOCK, .code = LOCK_FREE, .now = NOW, .task = &none
	};
	json_t *o = answer_json(&unlocked, &mem);

	(void)state;
	assert_true(json_is_true(json_object_get(o, "ok")));
	assert_true(json_is_false(json_object_get(o, "locked")));
	assert_true(json_is_null(json_object_get(o, "lock")));
	assert_string_equal(json_string_value(json_object_get(o, "code")), "LOCK_FREE");
	json_decref(o);
	check(&ans,
	      "{\"ok\":true,\"code\":\"SUCCESS\",\"task\":" TASK_TEXT(
		      "t1") ",\"locked\":true,\"lock\":{\"holder\":\"ann\",\"fence\":4,\"live\":true,"
			    "\"acquired_at\":\"2023-11-14T22:13:20.000Z\",\"expires_at\":\"2023-11-14T22:13:22.000Z\","
			    "\"expires_in\":2,\"ttl\":2}}");
	ans.now += 2000;
	o = answer_json(&ans, &mem);
	assert_true(json_is_false(json_object_get(o, "locked"))); /* expired */
	json_decref(o);
	ans.task = NULL; /* a broken server may send this */
	check(&ans, "{\"ok\":true,\"code\":\"SUCCESS\",\"locked\":false,\"lock\":null}");
}

static void explanations(void **state)
{
	struct candidate two[] = { { STR("t1"), STR("x"), STR("ready"), 1, 1 },
				   { STR("t2"), STR(""), STR("waits"), 0, 0 } };
	struct answer ans = { .kind = ANSWER_CANDIDATES,
			      .now = NOW,
			      .candidates = two,
			      .n_candidates = 2,
			      .total = 2 };

	(void)state;
	check(&ans,
	      "{\"ok\":true,\"code\":\"SUCCESS\",\"candidates\":[{\"id\":\"t1\",\"eligible\":true,"
	      "\"why\":\"ready\",\"place\":1,\"title\":\"x\"},{\"id\":\"t2\",\"eligible\":false,"
	      "\"why\":\"waits\"}],\"count\":2,\"total\":2}");
}

static void overview(void **state)
{
	struct answer ans = { .kind = ANSWER_OVERVIEW, .now = NOW, .total = 45 };

	(void)state;
	for (int s = BACKLOG; s < STATUS_END; s++)
		ans.counts[s] = s;
	check(&ans,
	      "{\"ok\":true,\"code\":\"SUCCESS\",\"counts\":{\"Backlog\":1,\"Ready\":2,\"In Progress\":3,"
	      "\"Blocked\":4,\"Needs Help\":5,\"Review\":6,\"Done\":7,\"Failed\":8,\"Canceled\":9},"
	      "\"waiting\":0,\"total\":45,\"held\":[],\"held_total\":0}");
}

static void an_id(void **state)
{
	check(&(struct answer){ .kind = ANSWER_ID, .text = STR("t9") },
	      "{\"ok\":true,\"code\":\"SUCCESS\",\"id\":\"t9\"}");
	(void)state;
}

static void typed(void **state)
{
	struct task locks[] = { { .id = STR("@batch"),
				  .description = STR("many"),
				  .fence = 3,
				  .lock = { .holder = STR("ann"),
					    .host = STR("box"),
					    .token = STR("T"),
					    .acquired_at = NOW,
					    .expires_at = NOW + 5000,
					    .ttl = 5000,
					    .user = STR("root"),
					    .operation = STR("import"),
					    .life = LIFE_ALIVE } } };
	struct answer ans = {
		.kind = ANSWER_TYPED, .now = NOW, .tasks = locks, .n_tasks = 1, .total = 1
	};
	json_t *o = answer_json(&ans, &mem), *l;

	(void)state;
	l = json_array_get(json_object_get(o, "locks"), 0);
	assert_string_equal(json_string_value(json_object_get(l, "lock")), "@batch");
	assert_string_equal(json_string_value(json_object_get(l, "description")), "many");
	assert_string_equal(json_string_value(json_object_get(l, "operation")), "import");
	assert_string_equal(json_string_value(json_object_get(l, "user")), "root");
	assert_string_equal(json_string_value(json_object_get(l, "process")), "alive");
	assert_int_equal(json_integer_value(json_object_get(o, "count")), 1);
	json_decref(o);
	locks[0].lock.life = LIFE_DEAD + 1; /* from a newer pawl */
	o = task_json(&locks[0], NOW, &mem);
	assert_null(json_object_get(json_object_get(o, "lock"), "process"));
	assert_null(json_object_get(o, "status")); /* it is not a task */
	assert_string_equal(json_string_value(json_object_get(o, "id")), "@batch");
	json_decref(o);
	arena_free(&mem);
}

static void notes(void **state)
{
	struct str warnings[] = { STR("w1"), STR("w2") };
	struct answer ans = {
		.repeated = 1, .existed = 1, .warnings = { warnings, 2 }, .wait_ms = 2000
	};

	(void)state;
	check(&ans,
	      "{\"ok\":true,\"code\":\"SUCCESS\",\"repeated\":true,\"existed\":true,\"wait\":2,"
	      "\"warnings\":[\"w1\",\"w2\"]}");
}

static void failures(void **state)
{
	struct task t = task_named("t1");
	struct answer ans = { .now = NOW, .task = &t };
	json_t *o;

	(void)state;
	assert_int_equal(answer_fail(&ans, CONFLICT, STR("held"), STR("wait")), CONFLICT);
	check(&ans,
	      "{\"ok\":false,\"error\":{\"code\":\"CONFLICT\",\"message\":\"held\",\"hint\":\"wait\"},"
	      "\"task\":" TASK_TEXT("t1") "}");
	ans.task = NULL;
	answer_fail(&ans, API_ERROR, STR("gone"), STR(""));
	ans.applied = 'n';
	check(&ans,
	      "{\"ok\":false,\"error\":{\"code\":\"API_ERROR\",\"message\":\"gone\",\"applied\":\"no\"}}");
	ans.fault = STR("busy");
	o = answer_json(&ans, &mem);
	assert_string_equal(
		json_string_value(json_object_get(json_object_get(o, "error"), "fault")), "busy");
	json_decref(o);
	ans.fault = STR("");
	ans.applied = '?';
	check(&ans,
	      "{\"ok\":false,\"error\":{\"code\":\"API_ERROR\",\"message\":\"gone\",\"applied\":\"unknown\"}}");
}

static void every_failure(void **state)
{
	static const enum result codes[] = { USAGE,     CONFLICT,      LOST_LOCK,
					     API_ERROR, MISCONFIGURED, INCOMPLETE_SUBTASKS,
					     NOT_FOUND, VIOLATION };

	(void)state;
	for (size_t i = 0; i < COUNT(codes); i++) {
		struct answer ans = { .code = codes[i] };
		json_t *o = answer_json(&ans, &mem), *error = json_object_get(o, "error");

		assert_true(json_is_false(json_object_get(o, "ok")));
		assert_null(json_object_get(o, "task"));
		assert_string_equal(json_string_value(json_object_get(error, "code")),
				    result_name(codes[i]));
		json_decref(o);
	}
}

/* --- the packed form --------------------------------------------------------------------------------- */

static struct answer everything(void)
{
	static struct task tasks[5], task, next;
	static struct grant lock = { { "T", 1 }, 1, 2, 3 }, next_lock = { { "N", 1 }, 4, 5, 6 };
	static struct event events[3];
	static struct candidate candidates[3];
	static struct str warnings[2] = { { "w1", 2 }, { "w2", 2 } };
	static struct standing standing[5];
	static struct allowed allowed[5] = { [2] = { -1, 1, 7, { "w", 1 }, 1 } };
	static struct task_link links[2];
	static struct task_attempt attempts[2];
	static struct related related = { links, 2, { 1, 2, 3 }, attempts, 2, events, 3 };
	struct answer ans = {
		.code = API_ERROR,
		.kind = ANSWER_OVERVIEW,
		.now = NOW,
		.message = STR("m"),
		.hint = STR("h"),
		.applied = '?',
		.repeated = 1,
		.existed = 1,
		.warnings = { warnings, 2 },
		.task = &task,
		.next = &next,
		.has_next = 1,
		.lock = &lock,
		.next_lock = &next_lock,
		.tasks = tasks,
		.n_tasks = 5,
		.total = 77,
		.events = events,
		.n_events = 3,
		.candidates = candidates,
		.n_candidates = 3,
		.text = STR("t"),
		.wait_ms = 88,
		.fault = STR("f"),
		.standing = standing,
		.allowed = allowed,
		.n_allowed = 5,
		.related = &related,
		.waiting = 5,
		.waiting_more = true,
		.ended = 6,
	};

	standing[1] = (struct standing){ true, { warnings, 2 }, true };
	links[0] = (struct task_link){ LINK_DEPENDENT, STR("t1"), STR("x"), STR("ann"), DONE };
	links[1] = (struct task_link){ LINK_PARENT, STR("t2"), STR("y"), STR(""), READY };
	attempts[1] =
		(struct task_attempt){ STR("ann"), STR("done"), STR("text"), NOW, NOW + 1, 9 };
	task = task_named("one");
	next = task_named("two");
	for (int i = 0; i < 5; i++)
		tasks[i] = task_named(i % 2 ? "odd" : "even");
	for (int i = 0; i < 3; i++) {
		events[i] = (struct event){ .name = STR("e"), .cursor = STR("c"), .at = NOW + i };
		candidates[i] = (struct candidate){ STR("i"), STR("t"), STR("w"), 1, i };
	}
	for (int s = BACKLOG; s < STATUS_END; s++)
		ans.counts[s] = ans.archived[s] = 100 + s;
	return ans;
}

static void assert_grant(const struct grant *a, const struct grant *b)
{
	assert_true(str_eq(a->token, b->token));
	assert_true(a->fence == b->fence && a->expires_at == b->expires_at && a->ttl == b->ttl);
}

static void lists_come_back(const struct answer *ans, const struct answer *back)
{
	assert_int_equal(back->n_tasks, ans->n_tasks);
	assert_int_equal(back->n_events, ans->n_events);
	assert_int_equal(back->n_candidates, ans->n_candidates);
	for (size_t i = 0; i < ans->n_tasks; i++)
		assert_int_equal(task_diff(&ans->tasks[i], &back->tasks[i], "tasks"), 0);
	for (size_t i = 0; i < ans->n_events; i++)
		assert_true(back->events[i].at == ans->events[i].at &&
			    str_is(back->events[i].cursor, "c") &&
			    str_is(back->events[i].name, "e"));
	for (size_t i = 0; i < ans->n_candidates; i++)
		assert_true(back->candidates[i].place == (int64_t)i &&
			    back->candidates[i].eligible && str_is(back->candidates[i].why, "w"));
}

static void views_come_back(const struct answer *ans, const struct answer *back)
{
	const struct task_link *link = back->related->links;
	const struct task_attempt *last = &back->related->attempts[1];

	assert_true(str_is(back->fault, "f") && back->waiting == 5 && back->waiting_more &&
		    back->ended == 6);
	assert_true(back->standing[1].waits && back->standing[1].more && !back->standing[0].waits);
	assert_true(strs_eq(back->standing[1].on, ans->warnings));
	assert_true(back->allowed[2].can == -1 && back->allowed[2].holder_can == 1 &&
		    back->allowed[2].position == 7 && back->allowed[2].live &&
		    str_is(back->allowed[2].why, "w") && !back->allowed[0].can);
	assert_memory_equal(back->related->more, ans->related->more, sizeof(ans->related->more));
	assert_true(link->kind == LINK_DEPENDENT && link->status == DONE &&
		    str_is(link->id, "t1") && str_is(link->title, "x") &&
		    str_is(link->holder, "ann"));
	assert_true(back->related->n_links == 2 && back->related->n_attempts == 2 &&
		    link[1].kind == LINK_PARENT);
	assert_true(back->related->n_history == 3 && back->related->history[2].at == NOW + 2 &&
		    str_is(back->related->history[2].name, "e"));
	assert_true(str_is(last->agent, "ann") && str_is(last->outcome, "done") &&
		    str_is(last->text, "text") && last->at == NOW && last->ended_at == NOW + 1 &&
		    last->fence == 9);
	assert_memory_equal(back->archived, ans->archived, sizeof(ans->archived));
}

static void everything_comes_back(void **state)
{
	struct answer ans = everything(), back;

	(void)state;
	assert_int_equal(answer_unpack(pack(&ans), &back, &mem), 0);
	assert_true(back.code == ans.code && back.kind == ans.kind && back.now == NOW &&
		    back.applied == '?');
	assert_true(str_is(back.message, "m") && str_is(back.hint, "h") && str_is(back.text, "t"));
	assert_true(back.repeated && back.existed && back.has_next && back.total == 77 &&
		    back.wait_ms == 88);
	assert_true(strs_eq(ans.warnings, back.warnings));
	assert_int_equal(task_diff(ans.task, back.task, "task"), 0);
	assert_int_equal(task_diff(ans.next, back.next, "next"), 0);
	assert_grant(ans.lock, back.lock);
	assert_grant(ans.next_lock, back.next_lock);
	assert_memory_equal(ans.counts, back.counts, sizeof(ans.counts));
	lists_come_back(&ans, &back);
	views_come_back(&ans, &back);
	assert_true(str_eq(pack(&ans), pack(&back)));
}

/* Any prefix and any changed byte is refused, or understood and can then be shown. */
/* Nothing of it is in the memory of the first, and the store's fault is in it, too. */
static void a_copy_stands_alone(void **state)
{
	struct arena a = { 0 };
	struct answer ans = everything(), back;

	(void)state;
	ans.warnings = arena_strs(&a, ans.warnings);
	ans.fault = arena_str(&a, STR("busy"));
	back = answer_copy(&ans, &mem);
	assert_true(str_eq(pack(&ans), pack(&back)));
	arena_free(&a);
	assert_true(str_is(back.fault, "busy"));
	assert_true(strs_eq(back.warnings, everything().warnings));
}

static void damaged(void **state)
{
	struct answer ans = everything(), back;
	struct str all = pack(&ans);
	uint64_t seed = 17;

	(void)state;
	for (size_t n = 0; n < all.n; n++) {
		int r = answer_unpack(str_n(all.p, n), &back, &mem);

		assert_true(r == 0 || r == -EBADMSG);
	}
	for (int i = 0; i < SCALE(20000, 4000); i++) {
		char *p = arena_cstr(&mem, all);
		int r;

		for (uint32_t k = kit_random(&seed, 3) + 1; k; k--)
			p[kit_random(&seed, (uint32_t)all.n)] = (char)kit_random(&seed, 256);
		r = answer_unpack(str_n(p, all.n), &back, &mem);
		assert_true(r == 0 || r == -EBADMSG);
		back.code = i % 2 ? SUCCESS : back.code;
		back.kind = (enum answer_kind)(i % (ANSWER_TYPED + 1));
		if (!r)
			json_decref(answer_json(&back, &mem));
		arena_free(&mem);
		all = pack(&ans);
	}
}

static int unpack_with(uint8_t tag, struct str bytes)
{
	struct buf b = BUF_MAX(4096);
	struct answer back;
	int r;

	pack_int(&b, 1, SUCCESS);
	pack_str(&b, tag, bytes);
	r = answer_unpack(buf_str(&b), &back, &mem);
	buf_free(&b);
	return r;
}

static int unpack_number(uint8_t tag, int64_t v)
{
	struct buf b = BUF_MAX(64), all = BUF_MAX(64);
	struct answer back;
	int r;

	if (tag != 1)
		pack_int(&all, 1, SUCCESS);
	pack_int(&all, tag, v);
	r = answer_unpack(buf_str(&all), &back, &mem);
	buf_free(&b);
	buf_free(&all);
	return r;
}

/* Two bytes that stand for an empty task would need a thousand times the memory. */
static void too_many_parts(void **state)
{
	struct buf b = BUF_MAX(1 << 20);
	struct answer back;

	(void)state;
	pack_int(&b, 1, SUCCESS);
	for (int i = 0; i < 1000; i++)
		pack_str(&b, 15, STR(""));
	assert_int_equal(answer_unpack(buf_str(&b), &back, &mem), -EBADMSG);
	buf_free(&b);
}

static void bad_parts(void **state)
{
	static const uint8_t nested[] = { 10, 11, 13, 14, 15, 17, 18, 19 };

	(void)state;
	for (size_t i = 0; i < COUNT(nested); i++)
		assert_int_equal(unpack_with(nested[i], STR("\x02\x80")), -EBADMSG);
	assert_int_equal(unpack_with(13, STR("\x02\x01\x80")),
			 -EBADMSG); /* a fence that is not a number */
	assert_int_equal(unpack_with(17, STR("\x65\x01\x80")), -EBADMSG); /* an event's time */
	assert_int_equal(unpack_with(17, STR("\x06\x01\x80")), -EBADMSG); /* an event's fence */
	assert_int_equal(unpack_with(3, STR("\x80")), -EBADMSG);          /* now */
	assert_int_equal(unpack_with(29, STR("")), -EBADMSG); /* a standing without a task */
	assert_int_equal(unpack_with(35, STR("")), -EBADMSG); /* allowed without a task */
	assert_int_equal(unpack_with(29, STR("\x01\x01\x80")), -EBADMSG); /* and a bad one */
	assert_int_equal(unpack_with(30, STR("\x01\x01\x80")), -EBADMSG); /* a number of links */
	assert_int_equal(unpack_with(30, STR("\x02\x00")), -EBADMSG);     /* a link of no kind */
	assert_int_equal(unpack_with(30, STR("\x02\x03\x01\x01\x08")), -EBADMSG); /* kind 4 */
	assert_int_equal(unpack_with(30, STR("\x03\x03\x04\x01\x80")), -EBADMSG); /* an attempt */
	assert_int_equal(unpack_with(30, STR("\x04\x03\x65\x01\x80")), -EBADMSG); /* history */
	assert_int_equal(unpack_with(30, STR("\x09\x00")), 0);      /* of a newer pawl */
	assert_int_equal(unpack_with(13, STR("\0\0\x63\x01x")), 0); /* unknown tags */
	assert_int_equal(unpack_with(0, STR("x")), 0);
	assert_int_equal(unpack_with(99, STR("a newer pawl's")), 0);
	assert_int_equal(unpack_with(1, STR("\0")), -EBADMSG); /* a second code */
}

static void bad_numbers(void **state)
{
	struct buf b = BUF_MAX(4096);
	struct answer back;

	(void)state;
	assert_int_equal(unpack_number(1, 3), -EBADMSG);
	assert_int_equal(unpack_number(1, INT64_C(1) << 32), -EBADMSG);
	assert_int_equal(unpack_number(2, ANSWER_TASK), 0);
	assert_int_equal(unpack_number(2, ANSWER_TYPED), 0);
	assert_int_equal(unpack_number(2, ANSWER_TYPED + 1), -EBADMSG);
	assert_int_equal(unpack_number(2, -1), -EBADMSG);
	assert_int_equal(unpack_number(3, 0), 0);
	assert_int_equal(unpack_number(3, -1), -EBADMSG);                /* not a valid time */
	assert_int_equal(answer_unpack(STR(""), &back, &mem), -EBADMSG); /* the code is missing */
	pack_int(&b, 1, SUCCESS);
	for (int i = 0; i < 9; i++)
		pack_int(&b, 19, i);
	assert_int_equal(answer_unpack(buf_str(&b), &back, &mem), 0);
	pack_int(&b, 19, 9); /* one count too many */
	assert_int_equal(answer_unpack(buf_str(&b), &back, &mem), -EBADMSG);
	buf_free(&b);
}

/* The outcome, the lock and the version stay; texts and lists go. */
static void brief(void **state)
{
	struct str label = STR("ui"), warned = STR("w");
	struct task t = task_named("t1"), next = task_named("t2"), kept[2] = { t, next };
	struct grant lock = { .token = STR("secret"), .fence = 4 };
	struct answer whole = { .task = &t,
				.next = &next,
				.lock = &lock,
				.tasks = kept,
				.n_tasks = 2,
				.warnings = { &warned, 1 } },
		      none = { .code = CONFLICT, .message = STR("held") }, got;

	(void)state;
	t.description = t.acceptance = t.extra = STR("long");
	t.labels = (struct strs){ &label, 1 };
	got = answer_brief(&whole, &mem);
	assert_true(str_is(got.task->id, "t1") && str_is(got.next->id, "t2"));
	assert_int_equal(got.task->fence, 4);
	assert_ptr_equal(got.lock, &lock);
	assert_int_equal(got.task->description.n + got.task->acceptance.n + got.task->extra.n +
				 got.task->labels.n + got.n_tasks,
			 0);
	assert_non_null(strstr(got.warnings.v[0].p, "pawl show"));
	assert_true(str_is(t.description, "long")); /* the whole answer is as it was */
	got = answer_brief(&none, &mem);
	assert_true(!got.task && !got.next && got.code == CONFLICT && str_is(got.message, "held"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(brief),
		cmocka_unit_test(one_task),
		cmocka_unit_test(no_tasks),
		cmocka_unit_test(claims),
		cmocka_unit_test(late_grant),
		cmocka_unit_test(lists),
		cmocka_unit_test(logs),
		cmocka_unit_test(one_lock),
		cmocka_unit_test(explanations),
		cmocka_unit_test(overview),
		cmocka_unit_test(an_id),
		cmocka_unit_test(typed),
		cmocka_unit_test(notes),
		cmocka_unit_test(failures),
		cmocka_unit_test(every_failure),
		cmocka_unit_test(everything_comes_back),
		cmocka_unit_test(a_copy_stands_alone),
		cmocka_unit_test(damaged),
		cmocka_unit_test(bad_parts),
		cmocka_unit_test(too_many_parts),
		cmocka_unit_test(bad_numbers),
	};

	return cmocka_run_group_tests(tests, NULL, free_memory);
}

/*
 * The bytes and the JSON of every record, event, request, answer, frame, memo, history line and backup, with all members
 * and with as few as possible. They stand in forms.txt: stores keep these bytes, and other versions of pawl read them. A
 * packed form also unpacks to a value that packs to the same bytes.
 *
 * golden FILE compares; golden FILE --write makes the file. A field that is new gets a higher tag, so it changes
 * nothing here.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fs.h"
#include "base/secret.h"
#include "format/answer_form.h"
#include "format/record_form.h"
#include "format/origin.h"
#include "format/request_form.h"
#include "format/task_form.h"
#include "proof/history/history.h"
#include "queue/queue_private.h"
#include "queue/frame.h"
#include "store/git/git.h"
#include "transfer/backup_file.h"

#define COUNT(t) (sizeof(t) / sizeof((t)[0]))
#define NOW INT64_C(1700000000000)
#define MOST (16u << 20)
#define LINE_MOST 6000 /* a longer form is listed by its hash */
/* The highest tags when forms.txt was made. */
#define LAST_FIELD 71
#define LAST_ARG 81

static struct arena mem;
static struct buf out = BUF_MAX(MOST);
static const char *path;
static bool writing;

/* --- lines ----------------------------------------------------------------------------------------- */

static void put_text(const char *name, struct str text)
{
	struct str hash = hash_hex(&mem, text);

	if (text.n > LINE_MOST)
		buf_addf(&out, "%s: %zu bytes, SHA-256 %.*s\n", name, text.n, STRF(hash));
	else
		buf_addf(&out, "%s: %.*s\n", name, STRF(text));
}

/* Frees the buffer. */
static struct str put_bytes(const char *name, struct buf *b)
{
	struct str bytes = arena_str(&mem, buf_str(b));
	struct buf hex = BUF_MAX(MOST);

	assert_false(b->full);
	for (size_t i = 0; i < bytes.n; i++)
		buf_addf(&hex, "%02x", (unsigned char)bytes.p[i]);
	put_text(name, buf_str(&hex));
	buf_free(&hex);
	buf_free(b);
	return bytes;
}

static void put_json(const char *name, json_t *o)
{
	char *text = json_dumps(o, JSON_COMPACT | JSON_ENCODE_ANY);

	put_text(name, str_c(text));
	free(text);
	json_decref(o);
}

/* Frees the buffer. */
static void same(struct str bytes, struct buf *again)
{
	assert_true(str_eq(bytes, buf_str(again)));
	buf_free(again);
}

/* --- values ---------------------------------------------------------------------------------------- */

static struct str words[] = { { "one", 3 }, { "two", 3 } };

static void fill(void *p, int kind, const char *name, int tag)
{
	if (kind == FIELD_STR || kind == FIELD_JSON)
		*(struct str *)p = arena_printf(&mem, "%s %d", name, tag);
	else if (kind == FIELD_LIST)
		*(struct strs *)p = (struct strs){ words, COUNT(words) };
	else
		*(int64_t *)p = NOW + tag;
}

static struct task full_task(void)
{
	struct task t = { 0 };

	for (size_t i = 0; i < N_FIELDS; i++)
		if (field_table[i].tag <= LAST_FIELD)
			fill(field_at(&field_table[i], &t), field_table[i].kind,
			     field_table[i].name, field_table[i].tag);
	t.status = IN_PROGRESS;
	t.class_rank = EXPEDITE;
	t.lock.life = LIFE_ALIVE;
	t.extra = STR("{\"score\":9}");
	return t;
}

static struct task least_task(void)
{
	return (struct task){
		.id = STR("t1"), .title = STR("x"), .status = READY, .class_rank = STANDARD
	};
}

static struct event full_event(void)
{
	return (struct event){ .name = STR("updated"),
			       .task = STR("t1"),
			       .agent = STR("ann"),
			       .run = STR("r1"),
			       .text = STR("why"),
			       .fence = 6,
			       .from = READY,
			       .to = REVIEW,
			       .cursor = STR("c9"),
			       .at = NOW + 1,
			       .changes = STR("{\"title\":{\"from\":\"a\",\"to\":\"b\"}}"),
			       .unblock_action = STR("ask") };
}

static struct request full_request(void)
{
	static const int tags[] = {
#define ARG(tag, kind, name) tag,
#include "core/request.def"
#undef ARG
	};
	struct request rq = { .op = OP_UPDATE };

	for (int i = 0; i < ARG_END; i++) {
		static const int kinds[] = {
			[ARG_STR] = FIELD_STR, [ARG_INT] = FIELD_INT, [ARG_LIST] = FIELD_LIST
		};
		enum arg arg = (enum arg)i;

		if (tags[i] > LAST_ARG)
			continue;
		fill(arg_at(&rq, arg), kinds[arg_kind(arg)], arg_name(arg), tags[i]);
		rq.has |= UINT64_C(1) << i;
	}
	return rq;
}

static const struct policy full_policy = { .lease = 1000,
					   .lease_min = 1001,
					   .lease_max = 1002,
					   .lock_ttl = 1003,
					   .max_abandoned = 4,
					   .keep_abandoned = true,
					   .claim_creates = true,
					   .locks_only = true,
					   .offer_parents = true,
					   .warn_after = 1005,
					   .handback = 1006 };

/* --- tasks and events ------------------------------------------------------------------------------ */

static void put_task(const char *name, const struct task *t)
{
	struct buf hot = BUF_MAX(MOST), body = BUF_MAX(MOST), again = BUF_MAX(MOST);
	struct task back = { 0 }, parsed = { 0 };
	json_t *o = task_fields_json(t);
	struct str bytes;

	task_pack(t, HOT, &hot);
	put_bytes(arena_printf(&mem, "%s, hot", name).p, &hot);
	task_pack(t, BODY, &body);
	put_bytes(arena_printf(&mem, "%s, body", name).p, &body);
	task_pack(t, HOT | BODY, &again);
	bytes = arena_str(&mem, buf_str(&again));
	buf_free(&again);
	assert_int_equal(task_unpack(bytes, &back, &mem), 0);
	assert_true(task_same(t, &back, HOT | BODY));
	assert_int_equal(task_fields_parse(o, &parsed, &mem), 0);
	assert_true(task_same(t, &parsed, HOT | BODY));
	put_json(arena_printf(&mem, "%s, JSON", name).p, task_json(t, NOW, &mem));
	put_json(arena_printf(&mem, "%s, record", name).p, o);
}

static void tasks(void)
{
	struct task full = full_task(), least = least_task();

	put_task("task", &full);
	put_task("least task", &least);
	put_text("changes", changes_of(&least, &full, &mem));
	put_text("origin", origin_sums(&full, &mem));
}

static void put_event(const char *name, const struct event *e)
{
	struct buf b = BUF_MAX(MOST), again = BUF_MAX(MOST);
	struct event back;
	struct str bytes;

	event_pack(e, &b);
	bytes = put_bytes(name, &b);
	assert_int_equal(event_unpack(bytes, &back), 0);
	event_pack(&back, &again);
	same(bytes, &again);
	b = again = BUF_MAX(MOST);
	shape_pack(&event_shape, SHAPE_ALL, e, &b);
	bytes = put_bytes(arena_printf(&mem, "%s, placed", name).p, &b);
	back = (struct event){ 0 };
	assert_int_equal(shape_unpack(&event_shape, SHAPE_ALL, bytes, &back, NULL), 0);
	shape_pack(&event_shape, SHAPE_ALL, &back, &again);
	same(bytes, &again);
	put_json(arena_printf(&mem, "%s, JSON", name).p, event_json(e, &mem));
}

static void events(void)
{
	struct event full = full_event(), least = { .name = STR("claimed") };
	unsigned char hash[SHORT_HASH_LEN];
	struct buf b = BUF_MAX(MOST);

	put_event("event", &full);
	put_event("least event", &least);
	least.prev = STR("0123456789abcdef");
	least.expires = NOW;
	put_event("event in a chain", &least);
	event_pack(&least, &b);
	event_hash(buf_str(&b), NOW, hash);
	buf_free(&b);
	buf_add(&b, hash, sizeof(hash));
	put_bytes("its hash", &b);
}

/* --- requests -------------------------------------------------------------------------------------- */

static void put_request(const char *name, const struct request *rq)
{
	struct buf b = BUF_MAX(MOST), again = BUF_MAX(MOST);
	struct request back;
	struct str bytes;

	request_pack(rq, &b);
	bytes = put_bytes(name, &b);
	assert_int_equal(request_unpack(bytes, &back, &mem), 0);
	request_pack(&back, &again);
	same(bytes, &again);
	put_json(arena_printf(&mem, "%s, JSON", name).p, request_json(rq));
}

static void requests(void)
{
	struct request full = full_request(), least = { .op = OP_OVERVIEW },
		       empty = { .op = OP_UPDATE };

	GIVE(&empty, id, STR("t1"));
	GIVE(&empty, labels, ((struct strs){ 0 }));
	GIVE(&empty, effort, STR(""));
	GIVE(&empty, due, 0);
	put_request("request", &full);
	put_request("least request", &least);
	put_request("request with empty arguments", &empty);
}

static void put_change(const char *name, const struct request *rq, const struct policy *p)
{
	struct buf b = BUF_MAX(MOST), again = BUF_MAX(MOST);
	struct act w = { .call = { .rq = rq, .policy = p } };
	struct change c = { .fn = act_run, .ctx = &w }, back;
	struct str bytes;

	w.call.proof = token_hash(&mem, STR("proof"));
	w.call.fresh = token_hash(&mem, STR("fresh"));
	w.pass[TYPED_SYNC] = token_hash(&mem, STR("pass"));
	queue_relay.pack(&c, &b);
	bytes = put_bytes(name, &b);
	assert_int_equal(queue_relay.adopt(bytes, &back, &mem), 0);
	queue_relay.pack(&back, &again);
	same(bytes, &again);
}

static void changes(void)
{
	struct request rq = { .op = OP_CLAIM };

	GIVE(&rq, id, STR("t1"));
	GIVE(&rq, agent, STR("ann"));
	put_change("change for another process", &rq, &full_policy);
	put_change("change with the default policy", &rq, &policy_default);
}

/* --- answers --------------------------------------------------------------------------------------- */

static void put_answer(const char *name, const struct answer *ans)
{
	struct buf b = BUF_MAX(MOST), again = BUF_MAX(MOST);
	struct answer back;
	struct str bytes;

	answer_pack(ans, &b);
	bytes = put_bytes(name, &b);
	assert_int_equal(answer_unpack(bytes, &back, &mem), 0);
	answer_pack(&back, &again);
	same(bytes, &again);
	put_json(arena_printf(&mem, "%s, JSON", name).p, answer_json(ans, &mem));
}

static struct grant grant = { STR("TOKEN"), 6, NOW + 1500, 2000 };
static struct notice changed = { .by = STR("op"),
				 .reason = STR("because"),
				 .fields = { words, COUNT(words) },
				 .at = NOW - 1 };
static struct notice least_notice = { .by = STR("op") };
static struct candidate candidates[] = { { STR("t1"), STR("x"), STR("first"), 1, 1 },
					 { STR("t2"), STR(""), STR(""), 0, 0 } };
static struct standing standing[] = { { true, { words, COUNT(words) }, true },
				      { false, { NULL, 0 }, false } };
static struct task_link links[] = { { LINK_DEPENDS, STR("t3"), STR("y"), STR("bob"), BLOCKED },
				    { LINK_SUB, STR("t4"), STR(""), STR(""), 0 } };
static struct task_attempt attempts[] = { { STR("ann"), STR("released"), STR("why"), NOW - 9,
					    NOW - 8, 5 },
					  { STR("bob"), STR(""), STR(""), NOW - 7, 0, 6 } };
static struct related related = { .links = links,
				  .n_links = COUNT(links),
				  .more = { 1, 0, 3 },
				  .attempts = attempts,
				  .n_attempts = COUNT(attempts) };
static struct related least_related;

static struct answer full_answer(enum answer_kind kind)
{
	static struct task two[2];
	static struct event logged[2];
	struct answer ans = { .code = SUCCESS,
			      .kind = kind,
			      .now = NOW,
			      .message = STR("said"),
			      .hint = STR("try"),
			      .applied = 'n',
			      .fault = STR("busy"),
			      .repeated = REPEATED_MAYBE,
			      .existed = 1,
			      .warnings = { words, COUNT(words) },
			      .task = &two[0],
			      .has_next = 1,
			      .next = &two[1],
			      .lock = &grant,
			      .next_lock = &grant,
			      .tasks = two,
			      .n_tasks = COUNT(two),
			      .total = 77,
			      .events = logged,
			      .n_events = COUNT(logged),
			      .candidates = candidates,
			      .n_candidates = COUNT(candidates),
			      .held = 12,
			      .standing = standing,
			      .related = &related,
			      .waiting = 13,
			      .waiting_more = true,
			      .ended = 14,
			      .text = STR("t99"),
			      .wait_ms = 1501,
			      .queue_id = STR("queue"),
			      .changed = &changed,
			      .paused = &changed,
			      .came_back = &changed,
			      .undone = &changed,
			      .barred = TYPED_BATCH };

	two[0] = full_task();
	two[1] = least_task();
	logged[0] = full_event();
	logged[1] = (struct event){ .name = STR("claimed") };
	for (int s = BACKLOG; s < STATUS_END; s++) {
		ans.counts[s] = 100 + s;
		ans.archived[s] = 200 + s;
	}
	return ans;
}

static void whole_answers(void)
{
	for (int kind = ANSWER_TASK; kind <= ANSWER_TYPED; kind++) {
		struct answer ans = full_answer((enum answer_kind)kind),
			      bare = { .kind = ans.kind };

		put_answer(arena_printf(&mem, "answer of kind %d", kind).p, &ans);
		put_answer(arena_printf(&mem, "least answer of kind %d", kind).p, &bare);
	}
}

/* A claim with VIEW_BRIEF. */
static void claimed_answer(void)
{
	struct answer ans = full_answer(ANSWER_TASK);
	struct task_link around[] = { { LINK_PARENT, STR("t5"), STR("z"), STR(""), READY } };
	struct related brief = { .links = around,
				 .n_links = COUNT(around),
				 .history = ans.events,
				 .n_history = ans.n_events };

	ans = (struct answer){ .task = ans.task,
			       .lock = ans.lock,
			       .tasks = ans.tasks,
			       .n_tasks = ans.n_tasks,
			       .related = &brief };
	put_answer("answer with the brief of a claim", &ans);
}

static void answers(void)
{
	struct answer ans = full_answer(ANSWER_TASK);

	whole_answers();
	ans.next = NULL;
	ans.next_lock = NULL;
	ans.standing = NULL;
	ans.changed = ans.paused = ans.came_back = ans.undone = &least_notice;
	ans.related = &least_related;
	put_answer("answer without a next task", &ans);
	ans.code = API_ERROR;
	ans.applied = '?';
	put_answer("failure", &ans);
	ans = (struct answer){ .code = NO_TASKS };
	put_answer("answer without a task", &ans);
	ans = full_answer(ANSWER_TASK);
	ans = answer_brief(&ans, &mem);
	put_answer("brief answer", &ans);
	ans = full_answer(ANSWER_TASK);
	ans = answer_copy(&ans, &mem);
	put_answer("copied answer", &ans);
	claimed_answer();
}

/* --- frames ---------------------------------------------------------------------------------------- */

static struct str put_frame(const char *name, struct buf *b)
{
	struct str rest = put_bytes(name, b), one;

	assert_true(frame_cut(&rest, &one));
	assert_int_equal(rest.n, 0);
	return one;
}

#define FRAME(name, type, value, pack, open)                           \
	do {                                                           \
		struct buf b_ = BUF_MAX(MOST), again_ = BUF_MAX(MOST); \
		type back_;                                            \
		struct str one_, framed_;                              \
		pack(&b_, value);                                      \
		framed_ = arena_str(&mem, buf_str(&b_));               \
		one_ = put_frame(name, &b_);                           \
		assert_int_equal(open, 0);                             \
		pack(&again_, &back_);                                 \
		same(framed_, &again_);                                \
	} while (0)

static void request_frames(void)
{
	struct frame_extra full = { .call = STR("call"), .under = 3 }, none = { 0 }, x;
	struct request rq = full_request(), back;
	struct buf b = BUF_MAX(MOST);
	struct str one;

	full.pass[TYPED_WRITE] = STR("pass");
	frame_request(&b, &rq, &full);
	one = put_frame("request frame", &b);
	assert_int_equal(frame_request_open(one, &back, &x, &mem), 0);
	assert_true(str_eq(x.call, full.call) && x.under == 3 &&
		    str_eq(x.pass[TYPED_WRITE], full.pass[TYPED_WRITE]));
	b = BUF_MAX(MOST);
	rq = (struct request){ .op = OP_OVERVIEW };
	frame_request(&b, &rq, &none);
	put_frame("least request frame", &b);
}

static void facts_frames(void)
{
	struct frame_facts full = { .now = NOW,
				    .locks_only = 1,
				    .role = ROLE_REVIEWER,
				    .version = STR("0.2.0"),
				    .identity = STR("01234567-89ab-cdef-0123-456789abcdef"),
				    .token = STR("build-7"),
				    .agents = STR("ci-*"),
				    .queue = STR("release"),
				    .policy = full_policy },
			   least = { 0 };

	FRAME("facts", struct frame_facts, &full, frame_facts, frame_facts_open(one_, &back_));
	FRAME("least facts", struct frame_facts, &least, frame_facts,
	      frame_facts_open(one_, &back_));
}

static void small_frames(void)
{
	struct forecast p = { 1, 2, STR("t3"), 4 }, no_p = { 0 };
	struct frame_finding f = { CHECK_BAD, STR("what"), STR("text"), STR("fix") }, no_f = { 0 };
	struct frame_bulk h = { .n = 1,
				.lines = 2,
				.made_at = NOW,
				.restore = 1,
				.force = 1,
				.clash = CLASH_MERGE,
				.check = 1,
				.statuses = 8,
				.agent = STR("ann"),
				.run = STR("r1"),
				.created = 9,
				.updated = 10,
				.skipped = 11,
				.comments = 12,
				.left_out = 13,
				.tasks = 14 },
			  no_h = { 0 };

	h.pass[TYPED_MAINTENANCE] = STR("pass");
	FRAME("prospects", struct forecast, &p, frame_forecast, frame_forecast_open(one_, &back_));
	FRAME("least prospects", struct forecast, &no_p, frame_forecast,
	      frame_forecast_open(one_, &back_));
	FRAME("finding", struct frame_finding, &f, frame_finding, frame_finding_open(one_, &back_));
	FRAME("least finding", struct frame_finding, &no_f, frame_finding,
	      frame_finding_open(one_, &back_));
	FRAME("bulk", struct frame_bulk, &h, frame_bulk, frame_bulk_open(one_, &back_));
	FRAME("least bulk", struct frame_bulk, &no_h, frame_bulk, frame_bulk_open(one_, &back_));
}

static void item_frames(void)
{
	struct event comments[] = { full_event(), { .name = STR("comment") } };
	struct parcel p = { .task = full_task(),
			    .comments = comments,
			    .n_comments = COUNT(comments),
			    .where = STR("tasks.json:17") },
		      no_p = { .task = least_task() };
	struct item rec = { .rec = { .key = STR("task/t1"),
				     .hot = STR("hot"),
				     .body = STR("body"),
				     .ix = { .lane = LANE_GOING,
					     .status = READY,
					     .eligible_at = NOW } } },
		    line = { .line = true,
			     .entry = { STR("c1"), NOW, STR("task/t1"), STR("data") } };

	FRAME("parcel", struct parcel, &p, frame_parcel, frame_parcel_open(one_, &back_, &mem));
	FRAME("least parcel", struct parcel, &no_p, frame_parcel,
	      frame_parcel_open(one_, &back_, &mem));
	FRAME("record item", struct item, &rec, frame_item, frame_item_open(one_, &back_));
	FRAME("log item", struct item, &line, frame_item, frame_item_open(one_, &back_));
}

static void health_frames(void)
{
	static struct health h, none;

	for (int i = 0; i <= HEALTH_OPS; i++) {
		struct health_op *o = i < HEALTH_OPS ? &h.op[i] : &h.all;

		*o = (struct health_op){ i + 1, i + 2, i + 3, i + 4, i + 5, i + 6, i + 7, { 0 } };
		for (int k = 0; k < HEALTH_RANGES; k++)
			o->waits[k] = (uint32_t)(i * HEALTH_RANGES + k);
	}
	for (size_t i = 0; i < COUNT(h.last_failed); i++)
		h.last_failed[i] = NOW + (int64_t)i;
	h.refused = 1;
	h.last_refused = (struct health_refusal){ NOW, OP_CLAIM, "t1", "ann", "bob" };
	h.commits = 2;
	h.changes = 3;
	h.handed = 4;
	FRAME("health", struct health, &h, frame_health, frame_health_open(one_, &back_));
	FRAME("least health", struct health, &none, frame_health, frame_health_open(one_, &back_));
}

static void frames(void)
{
	struct answer ans = full_answer(ANSWER_TASK);
	struct buf b = BUF_MAX(MOST);

	request_frames();
	frame_answer(&b, &ans);
	put_frame("answer frame", &b);
	facts_frames();
	small_frames();
	item_frames();
	health_frames();
}

/* --- memos ----------------------------------------------------------------------------------------- */

static void put_state(const char *name, const struct git_state *st)
{
	struct buf b = BUF_MAX(MOST), again = BUF_MAX(MOST);
	struct git_state back;
	struct str bytes;

	git_state_pack(&b, st, &mem);
	bytes = put_bytes(name, &b);
	assert_true(git_state_unpack(bytes, &back, &mem));
	git_state_pack(&again, &back, &mem);
	same(bytes, &again);
}

static void memos(void)
{
	struct git_move moves[] = { { STR("t/t1"), { { 1 } }, { { 2 } } } };
	struct git_state full = { .stamp = NOW,
				  .has_rec = true,
				  .clock = STR("clock"),
				  .leader = STR("t/t2"),
				  .moves = moves,
				  .n_moves = COUNT(moves),
				  .tree = { { 3 } },
				  .rec = { .key = STR("task/t1"), .rev = 4, .hot = STR("hot") } },
			 least = { .stamp = 1 };

	full.rec.ix = (struct index){ .lane = LANE_LATER,
				      .status = READY,
				      .class_rank = STANDARD,
				      .priority = 5,
				      .eligible_at = NOW + 1,
				      .updated_at = NOW + 2,
				      .created_at = NOW + 3,
				      .due = NOW + 4,
				      .id = STR("t1"),
				      .holder = STR("ann"),
				      .token = STR("hash"),
				      .parent = STR("task/t0"),
				      .type = STR("bug"),
				      .labels = { words, COUNT(words) },
				      .depends = { words, COUNT(words) } };
	put_state("memo", &full);
	put_state("least memo", &least);
}

/* --- histories ------------------------------------------------------------------------------------- */

/* The times and the process of a line differ in each run. */
static void put_lines(const char *name, const char *file)
{
	json_error_t error;
	FILE *f = fopen(file, "r");
	json_t *o;

	assert_non_null(f);
	while ((o = json_loadf(f, JSON_DISABLE_EOF_CHECK, &error))) {
		if (json_object_get(o, "t"))
			json_object_set_new(o, "t", json_integer(0));
		if (json_object_get(o, "pid"))
			json_object_set_new(o, "pid", json_integer(0));
		put_json(name, o);
	}
	fclose(f);
}

static void histories(void)
{
	char file[] = "/tmp/pawl-golden-XXXXXX";
	struct history_head head = {
		STR("0.2.0"), STR("sqlite"), UINT64_C(0x8000000000000001), 3, 4,
		full_policy,  STR("")
	};
	struct answer ans = full_answer(ANSWER_TASKS), bare = { 0 };
	struct request full = full_request(), least = { .op = OP_OVERVIEW };
	struct history_log log;
	struct history *h;
	struct task t = full_task();
	struct str why;

	assert_true(close(mkstemp(file)) == 0 && unlink(file) == 0);
	t.id = STR("t1");
	assert_int_equal(history_open(&h, file, &head), 0);
	full.status = READY;
	full.class_rank = STANDARD;
	assert_int_equal(history_call(h, STR("ann"), &full), 1);
	history_answer(h, 1, &ans);
	assert_int_equal(history_call(h, STR("bob"), &least), 2);
	history_answer(h, 2, &bare);
	history_event(h, "skew", STR("ann"), 7, 8);
	history_event(h, "stop", STR(""), 0, 0);
	history_final(h, STR("t1"), NOW, &t);
	history_final(h, STR("t2"), NOW, NULL);
	assert_int_equal(history_close(h), 0);
	put_lines("history", file);
	assert_int_equal(history_load(&log, file, &why), 0);
	assert_true(log.n_calls == 2 && log.n_notes == 2 && log.n_ends == 2);
	history_free(&log);
	unlink(file);
}

/* --- backups --------------------------------------------------------------------------------------- */

static int64_t fixed_wall(void)
{
	return NOW;
}

/* A task, a task that was removed, the answer to a request id, and their events. */
static void fill_queue(struct queue *q)
{
	struct request create = { .op = OP_CREATE }, remove = { .op = OP_REMOVE };
	struct answer ans = { 0 };

	GIVE(&create, agent, STR("ann"));
	GIVE(&create, title, STR("x"));
	GIVE(&create, request_id, STR("one"));
	queue_call(q, &create, &ans, &mem);
	assert_int_equal(ans.code, SUCCESS);
	GIVE(&create, request_id, STR("two"));
	queue_call(q, &create, &ans, &mem);
	assert_int_equal(ans.code, SUCCESS);
	GIVE(&remove, agent, STR("ann"));
	GIVE(&remove, id, ans.task->id);
	queue_call(q, &remove, &ans, &mem);
	assert_int_equal(ans.code, SUCCESS);
}

static void backups(void)
{
	struct queue_config config = { .uri = STR("mem:golden"),
				       .policy = policy_default,
				       .opt.wall = fixed_wall,
				       .opt.who = STR("golden") };
	char file[] = "/tmp/pawl-golden-XXXXXX";
	struct buf b = BUF_MAX(MOST);
	struct answer ans = { 0 };
	struct backup made, back;
	struct str bytes;
	struct queue *q;

	assert_int_equal(queue_open(&q, &config, STORE_CREATE, &ans, &mem), SUCCESS);
	fill_queue(q);
	assert_true(close(mkstemp(file)) == 0);
	assert_int_equal(backup_write(q, file, &made, &ans, &mem), SUCCESS);
	assert_int_equal(backup_open(&back, file, &ans, &mem), SUCCESS);
	assert_true(made.records == back.records && made.lines == back.lines && back.tasks == 1 &&
		    back.made_at == NOW);
	backup_close(&back);
	assert_int_equal(fs_read(&mem, file, MOST, &bytes), 0);
	buf_adds(&b, bytes);
	put_bytes("backup", &b);
	queue_close(q);
	unlink(file);
}

/* --- the file -------------------------------------------------------------------------------------- */

static struct str line_of(struct str *rest)
{
	return str_cut(rest, '\n');
}

static void compare(struct str want, struct str got)
{
	while (want.n || got.n) {
		struct str a = line_of(&want), b = line_of(&got);

		if (!str_eq(a, b))
			fail_msg("want %.*s\n got %.*s", STRF(a), STRF(b));
	}
}

static void test_forms(void **state)
{
	struct str want;
	FILE *f;

	(void)state;
	tasks();
	events();
	requests();
	changes();
	answers();
	frames();
	memos();
	histories();
	backups();
	if (writing) {
		f = fopen(path, "w");
		assert_true(f && fwrite(out.p, out.n, 1, f) == 1 && fclose(f) == 0);
	}
	assert_int_equal(fs_read(&mem, path, MOST, &want), 0);
	compare(want, buf_str(&out));
	buf_free(&out);
	arena_free(&mem);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_forms) };

	setenv("TZ", "UTC", 1);
	path = argc > 1 ? argv[1] : "test/golden/forms.txt";
	writing = argc > 2;
	return cmocka_run_group_tests(tests, NULL, NULL);
}

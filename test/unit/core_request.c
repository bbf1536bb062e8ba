/*
 * Requests: their packed form, their JSON, the faults that are found before any queue is opened,
 * and the effect of their fields on a task.
 */
#include "core_kit.h"

#include "format/pack.h"
#include "core/rules.h"
#include "format/request_form.h"

#define HOUR INT64_C(3600000)

static struct str repeat(char c, size_t n)
{
	char *p = arena_alloc(&mem, n + 1);

	memset(p, c, n);
	return str_n(p, n);
}

/* --- names ------------------------------------------------------------------------------------------ */

static void operations(void **state)
{
	(void)state;
	assert_string_equal(op_name(OP_NONE), "NONE");
	assert_string_equal(op_name(OP_LOCK_ACQUIRE), "LOCK_ACQUIRE");
	assert_string_equal(op_words(OP_LOCK_ACQUIRE, &mem), "lock acquire");
	assert_int_equal(op_flags(OP_SHOW), OP_TASK | OP_READS);
	assert_int_equal(op_flags(OP_CLAIM), OP_TASK | OP_TAKES);
	assert_int_equal(op_flags(OP_DONE), OP_TASK | OP_TAKES | OP_HELD | OP_OWN | OP_ENDS);
	for (int i = OP_SHOW; i < OP_END; i++)
		assert_non_null(op_name((enum op)i));
	for (int i = 0; i < ARG_END; i++)
		assert_non_null(arg_name((enum arg)i));
	assert_int_equal(arg_kind(ARG_labels), ARG_LIST);
}

/* --- the packed form -------------------------------------------------------------------------------- */

static struct str pack(const struct request *r)
{
	struct buf b = BUF_MAX(1 << 20);
	struct str out;

	request_pack(r, &b);
	out = arena_str(&mem, buf_str(&b));
	buf_free(&b);
	return out;
}

static bool same_arg(const struct request *a, const struct request *b, enum arg i)
{
	const void *p = arg_of(a, i), *q = arg_of(b, i);

	if (arg_kind(i) == ARG_STR)
		return str_eq(*(const struct str *)p, *(const struct str *)q);
	if (arg_kind(i) == ARG_LIST)
		return strs_eq(*(const struct strs *)p, *(const struct strs *)q);
	return *(const int64_t *)p == *(const int64_t *)q;
}

static void assert_same(const struct request *a, const struct request *b)
{
	assert_int_equal(a->op, b->op);
	assert_true(a->has == b->has);
	for (int i = 0; i < ARG_END; i++)
		assert_true(same_arg(a, b, (enum arg)i));
}

static void some_value(struct request *r, enum arg i, uint64_t *seed)
{
	struct strs *list = arg_at(r, i);

	r->has |= UINT64_C(1) << i;
	if (arg_kind(i) == ARG_STR)
		*(struct str *)arg_at(r, i) = repeat((char)kit_random(seed, 256),
						     kit_random(seed, 300));
	else if (arg_kind(i) == ARG_INT)
		*(int64_t *)arg_at(r, i) = (int64_t)kit_random(seed, 1u << 30) - (1 << 29);
	else
		/* often an empty list, which still counts as given */
		for (uint32_t n = kit_random(seed, 4); n; n--)
			*list = arena_append(&mem, *list, repeat('l', kit_random(seed, 9)));
}

static void round_trip(void **state)
{
	uint64_t seed = 5;

	(void)state;
	for (int k = 0; k < 3000; k++) {
		struct request r = { .op = (enum op)(1 + kit_random(&seed, OP_END - 1)) }, back;

		for (int i = 0; i < ARG_END; i++)
			if (kit_random(&seed, 2))
				some_value(&r, (enum arg)i, &seed);
		assert_int_equal(request_unpack(pack(&r), &back, &mem), 0);
		assert_same(&r, &back);
		if (k % 100 == 0)
			arena_free(&mem);
	}
}

static int unpack(struct buf *b)
{
	struct request r;
	int rc = request_unpack(buf_str(b), &r, &mem);

	buf_free(b);
	return rc;
}

static void bad_operations(void **state)
{
	static const int64_t ops[] = { 0, -1, OP_END, 255, INT64_MAX, INT64_MIN };
	struct buf b = BUF_MAX(4096);

	(void)state;
	for (size_t i = 0; i < COUNT(ops); i++) {
		pack_int(&b, 255, ops[i]);
		assert_int_equal(unpack(&b), -EBADMSG);
		b = BUF_MAX(4096);
	}
	pack_str(&b, 255, STR("\x80"));
	assert_int_equal(unpack(&b), -EBADMSG);
	b = BUF_MAX(4096);
	pack_str(&b, 1, STR("t1")); /* the operation is missing */
	assert_int_equal(unpack(&b), -EBADMSG);
	b = BUF_MAX(4096);
	assert_int_equal(unpack(&b), -EBADMSG);
}

static void newer_and_damaged(void **state)
{
	struct buf b = BUF_MAX(4096);

	(void)state;
	pack_int(&b, 255, OP_SHOW);
	pack_str(&b, 200, STR("a newer pawl's"));
	pack_int(&b, 254, 201); /* and its empty list */
	pack_int(&b, 254, -1);
	assert_int_equal(unpack(&b), 0);
	b = BUF_MAX(4096);
	pack_int(&b, 255, OP_SHOW);
	pack_str(&b, 254, STR("\x80"));
	assert_int_equal(unpack(&b), -EBADMSG);
	b = BUF_MAX(4096);
	pack_int(&b, 255, OP_SHOW);
	pack_str(&b, 12, STR("no number"));
	assert_int_equal(unpack(&b), -EBADMSG);
	b = BUF_MAX(4096);
	pack_int(&b, 255, OP_SHOW);
	pack_str(&b, 1, STR("t1"));
	pack_str(&b, 1, STR("t2")); /* only a list has two values */
	assert_int_equal(unpack(&b), -EBADMSG);
}

static void truncated_and_garbage(void **state)
{
	struct request r = { .op = OP_CREATE }, back;
	uint64_t seed = 3;
	struct str all;

	(void)state;
	for (int i = 0; i < ARG_END; i++)
		some_value(&r, (enum arg)i, &seed);
	all = pack(&r);
	for (size_t n = 0; n < all.n; n++) {
		int rc = request_unpack(str_n(all.p, n), &back, &mem);

		assert_true(rc == 0 || rc == -EBADMSG);
	}
	for (int i = 0; i < 20000; i++) {
		char bytes[64];
		int rc;

		for (size_t k = 0; k < sizeof(bytes); k++)
			bytes[k] = (char)kit_random(&seed, kit_random(&seed, 2) ? 256 : 8);
		bytes[0] = (char)255;
		bytes[1] = 1;
		rc = request_unpack(str_n(bytes, sizeof(bytes)), &back, &mem);
		assert_true(rc == 0 || rc == -EBADMSG);
	}
}

static void as_json(void **state)
{
	struct str list[] = { STR("a"), STR("b") };
	struct request r = { .op = OP_UPDATE };
	json_t *o;
	char *text;

	(void)state;
	GIVE(&r, id, STR("t1"));
	GIVE(&r, token, STR("SECRET-1"));
	GIVE(&r, new_token, STR("SECRET-2"));
	GIVE(&r, explicit, 1);
	GIVE(&r, description, STR(""));
	GIVE(&r, run, ((struct str){ NULL, 0 }));
	GIVE(&r, priority, 3);
	GIVE(&r, labels, ((struct strs){ list, 2 }));
	GIVE(&r, add_labels, ((struct strs){ NULL, 0 }));
	o = request_json(&r);
	text = json_dumps(o, JSON_COMPACT);
	assert_string_equal(text, "{\"op\":\"UPDATE\",\"id\":\"t1\",\"run\":\"\",\"explicit\":1,"
				  "\"description\":\"\",\"labels\":[\"a\",\"b\"],\"add_labels\":[],"
				  "\"priority\":3}");
	free(text);
	json_decref(o);
}

/* --- faults of a call ------------------------------------------------------------------------------- */

/* A call without a fault. */
static struct request good(enum op op)
{
	struct request r = { .op = op };

	GIVE(&r, id, STR("t1"));
	GIVE(&r, agent, STR("ann"));
	GIVE(&r, new_token, STR("0a0a"));
	GIVE(&r, title, STR("title"));
	GIVE(&r, reason, STR("because"));
	GIVE(&r, unblock_action, STR("ask"));
	GIVE(&r, summary, STR("sum"));
	GIVE(&r, text, STR("words"));
	return r;
}

static void assert_fault(const struct request *r, const char *part)
{
	const char *fault = request_fault(r, &policy_default, &mem);

	if (!part) {
		if (fault)
			fail_msg("%s: %s", op_name(r->op), fault);
		return;
	}
	if (!fault || !strstr(fault, part))
		fail_msg("%s: want '%s', got '%s'", op_name(r->op), part,
			 fault ? fault : "nothing");
}

static void good_calls(void **state)
{
	(void)state;
	for (int op = OP_SHOW; op < OP_END; op++) {
		struct request r = good((enum op)op);

		assert_fault(&r, NULL);
		for (r.status = BACKLOG; r.status < STATUS_END; r.status++) {
			r.has |= UINT64_C(1) << ARG_status;
			assert_fault(&r, NULL);
		}
	}
}

#define TAKE_OUT(r, name) \
	((r).has &= ~(UINT64_C(1) << ARG_##name), memset(&(r).name, 0, sizeof((r).name)))

/* s: needs an id; a: an agent; k: a token to acquire with */
static const char *needs(enum op op)
{
	switch (op) {
	case OP_SHOW:
	case OP_LOCK_STATUS:
		return "s";
	case OP_LIST:
	case OP_LOG:
	case OP_NEXT:
	case OP_OVERVIEW:
	case OP_LOCKS:
	case OP_ID_PEEK:
	case OP_TYPED:
	case OP_EMERGENCY:
		return "";
	case OP_ID_CLAIM:
	case OP_ID_INIT:
	case OP_CREATE:
	case OP_LOCK_CLEANUP:
	case OP_ARCHIVE:
	case OP_EMERGENCY_ON:
	case OP_EMERGENCY_OFF:
	case OP_PAUSE:
	case OP_RESUME:
	case OP_UNDO:
		return "a";
	case OP_TAKE:
		return "ak";
	case OP_CLAIM:
	case OP_LOCK_ACQUIRE:
		return "sak";
	default:
		return "sa";
	}
}

static void who_and_what(void **state)
{
	(void)state;
	for (int i = OP_SHOW; i < OP_END; i++) {
		enum op op = (enum op)i;
		struct request r = good(op);

		TAKE_OUT(r, id);
		assert_fault(&r, strchr(needs(op), 's') ? "id of a task" : NULL);
		r = good(op);
		TAKE_OUT(r, agent);
		assert_fault(&r, strchr(needs(op), 'a') ? "agent's name" : NULL);
		r = good(op);
		TAKE_OUT(r, new_token);
		assert_fault(&r, strchr(needs(op), 'k') ? "a token for the new lock" : NULL);
	}
}

static void tokens_for_more(void **state)
{
	struct request r = good(OP_DONE);

	(void)state;
	GIVE(&r, claim_next, 1);
	assert_fault(&r, NULL);
	TAKE_OUT(r, new_token);
	assert_fault(&r, "next lock");
	TAKE_OUT(r, claim_next);
	assert_fault(&r, NULL);
	GIVE(&r, take, 1);
	assert_fault(&r, "next lock");
	r = good(OP_UPDATE); /* needs a field, but not necessarily the title */
	TAKE_OUT(r, title);
	GIVE(&r, priority, 5);
	assert_fault(&r, NULL);
	r = good(OP_STATUS);
	GIVE(&r, status, IN_PROGRESS);
	TAKE_OUT(r, new_token);
	assert_fault(&r, "a token for the new lock");
	GIVE(&r, status, DONE);
	assert_fault(&r, NULL);
}

static void forced(void **state)
{
	(void)state;
	for (int i = OP_SHOW; i < OP_END; i++) {
		enum op op = (enum op)i;
		bool can = op == OP_UPDATE || op == OP_DEPEND || op == OP_UNDEPEND ||
			   op == OP_CANCEL || op == OP_REMOVE || op == OP_RELEASE || op == OP_UNDO;
		struct request r = good(op);

		GIVE(&r, force, 1);
		assert_fault(&r, can ? NULL : "cannot be forced");
		if (!can)
			continue;
		GIVE(&r, explicit, 1);
		assert_fault(&r, "give one of them");
		TAKE_OUT(r, explicit);
		r.reason = STR(" ");
		assert_fault(&r, op == OP_REMOVE || op == OP_RELEASE ? NULL : "reason");
	}
}

static void versions_of_one_task(void **state)
{
	(void)state;
	for (int i = OP_SHOW; i < OP_END; i++) {
		enum op op = (enum op)i;
		bool reads = strchr(needs(op), 'a') == NULL;
		bool one = (strchr(needs(op), 's') && !reads) || op == OP_ARCHIVE || op == OP_UNDO;
		struct request r = good(op);

		GIVE(&r, if_version, 1);
		assert_fault(&r, one ? NULL : "--if-version is for");
		GIVE(&r, if_version, 0);
		assert_fault(&r, "if_version: the version");
		GIVE(&r, if_version, EXACT_MAX + 1);
		assert_fault(&r, "if_version: the version");
	}
	struct request r = good(OP_ARCHIVE);

	GIVE(&r, if_version, 1);
	TAKE_OUT(r, id);
	assert_fault(&r, "--if-version is for");
	r = good(OP_UNDO);
	GIVE(&r, if_version, 1);
	TAKE_OUT(r, id);
	assert_fault(&r, "--if-version is for");
	r = good(OP_LOCK_BREAK);
	GIVE(&r, id, STR("@write"));
	GIVE(&r, if_version, 1);
	assert_fault(&r, "--if-version is for");
}

static void locks_of_the_queue(void **state)
{
	struct request r = good(OP_LOCK_ACQUIRE);

	(void)state;
	GIVE(&r, id, STR("@maintenance"));
	assert_fault(&r, NULL);
	GIVE(&r, id, STR("@all"));
	assert_fault(&r, "@maintenance");
	r = good(OP_CLAIM);
	GIVE(&r, id, STR("@maintenance"));
	assert_fault(&r, "lock acquire");
}

static bool needs_reason(enum op op)
{
	return op == OP_BLOCK || op == OP_ESCALATE || op == OP_FAIL || op == OP_CANCEL ||
	       op == OP_REWORK || op == OP_REOPEN || op == OP_LOCK_BREAK || op == OP_EMERGENCY_ON;
}

static void missing_words(void **state)
{
	(void)state;
	for (int i = OP_SHOW; i < OP_END; i++) {
		enum op op = (enum op)i;
		struct request r = good(op);

		r.reason = STR(" \t\n");
		assert_fault(&r, needs_reason(op) ? "a reason" : NULL);
		r = good(op);
		TAKE_OUT(r, unblock_action);
		assert_fault(&r, op == OP_BLOCK ? "unblock" : NULL);
		r = good(op);
		TAKE_OUT(r, summary);
		assert_fault(&r, op == OP_REVIEW ? "summary" : NULL);
		r = good(op);
		TAKE_OUT(r, text);
		assert_fault(&r, op == OP_COMMENT ? "text of the comment" : NULL);
		r = good(op);
		TAKE_OUT(r, title);
		assert_fault(&r, op == OP_CREATE   ? "title"
				 : op == OP_UPDATE ? "nothing to update"
						   : NULL);
		r = good(op);
		r.title = STR(" ");
		assert_fault(&r, op == OP_CREATE || op == OP_UPDATE ? "title" : NULL);
	}
}

static void missing_words_by_status(void **state)
{
	(void)state;
	for (int64_t s = BACKLOG; s < STATUS_END; s++) {
		bool reason = s == BLOCKED || s == NEEDS_HELP || s == FAILED || s == CANCELED;
		struct request r = good(OP_STATUS);

		GIVE(&r, status, s);
		TAKE_OUT(r, reason);
		assert_fault(&r, reason ? "a reason" : NULL);
		GIVE(&r, reason, STR("because"));
		TAKE_OUT(r, unblock_action);
		assert_fault(&r, s == BLOCKED ? "unblock" : NULL);
		TAKE_OUT(r, summary); /* optional here */
		GIVE(&r, unblock_action, STR("ask"));
		assert_fault(&r, NULL);
	}
}

/* The target status decides what `status` needs; it does not affect other calls. */
static void status_of_another_call(void **state)
{
	struct request r = good(OP_BLOCK);

	(void)state;
	GIVE(&r, status, READY);
	TAKE_OUT(r, reason);
	assert_fault(&r, "a reason");
	r = good(OP_CREATE);
	GIVE(&r, status, BLOCKED);
	TAKE_OUT(r, reason);
	assert_fault(&r, NULL);
}

static void bad_ids(void **state)
{
	static const char *const ids[] = { "",       "-x",     "a b", "a..b",
					   "x.lock", "../etc", "a/b", "\xff" };
	struct request r;

	(void)state;
	for (size_t i = 0; i < COUNT(ids); i++) {
		struct str one[] = { STR("t2"), str_c(ids[i]) };

		r = good(OP_SHOW);
		r.id = str_c(ids[i]);
		assert_fault(&r, "an id");
		r = good(OP_CREATE);
		GIVE(&r, parent, str_c(ids[i]));
		assert_fault(&r, *ids[i] ? "an id" : NULL); /* empty: no parent */
		r = good(OP_DEPEND);
		GIVE(&r, depends, ((struct strs){ one, 2 }));
		assert_fault(&r, "an id");
	}
	r = good(OP_CREATE);
	r.id = repeat('a', 129);
	assert_fault(&r, "1 to 128");
	r.id = STR("a\0b");
	assert_fault(&r, "an id");
}

/* The name of a record without a valid id: only for calls that show or remove it. */
static void handles(void **state)
{
	static const enum op ops[] = { OP_SHOW, OP_REMOVE, OP_CLAIM };

	(void)state;
	for (size_t i = 0; i < COUNT(ops); i++) {
		struct request r = good(ops[i]);

		r.id = STR("bad:0123456789abcdef");
		assert_fault(&r, ops[i] == OP_CLAIM ? "an id" : NULL);
		r.id = STR("bad:0123456789abcde");
		assert_fault(&r, "an id");
	}
}

static size_t most_bytes(enum arg a)
{
	switch (a) {
	case ARG_title:
		return 500;
	case ARG_description:
	case ARG_acceptance:
	case ARG_reason:
	case ARG_summary:
	case ARG_text:
	case ARG_unblock_action:
	case ARG_append:
		return 256 * 1024;
	default:
		return 200;
	}
}

static void bad_texts(void **state)
{
	(void)state;
	for (int i = 0; i < ARG_END; i++) {
		enum arg a = (enum arg)i;
		struct request r = good(OP_CREATE);
		struct str *s = arg_at(&r, a);

		if (arg_kind(a) != ARG_STR || a == ARG_id || a == ARG_parent || a == ARG_extra)
			continue;
		r.has |= UINT64_C(1) << i;
		*s = repeat('x', most_bytes(a));
		assert_fault(&r, NULL);
		*s = repeat('x', most_bytes(a) + 1);
		assert_fault(&r, arg_name(a));
		*s = repeat('x', 1 << 20);
		assert_fault(&r, "1048576 bytes; at most");
		*s = STR("a\xff");
		assert_fault(&r, "UTF-8");
		*s = STR("a\xc0\x80");
		assert_fault(&r, "UTF-8");
		*s = STR("a\xed\xa0\x80"); /* a surrogate */
		assert_fault(&r, "UTF-8");
		*s = STR("a\0b");
		assert_fault(&r, "NUL");
		*s = STR("gr\xc3\xbc\xc3\x9f dich");
		assert_fault(&r, NULL);
		arena_free(&mem);
	}
}

static void bad_lists(void **state)
{
	struct str items[] = { STR("good"), STR("") };

	(void)state;
	for (int i = 0; i < ARG_END; i++) {
		enum arg a = (enum arg)i;
		struct request r = good(OP_UPDATE);

		if (arg_kind(a) != ARG_LIST || a == ARG_depends)
			continue;
		*(struct strs *)arg_at(&r, a) = (struct strs){ items, 2 };
		items[1] = STR("");
		assert_fault(&r, arg_name(a));
		items[1] = repeat('x', 201);
		assert_fault(&r, arg_name(a));
		items[1] = STR("\xff");
		assert_fault(&r, arg_name(a));
		items[1] = repeat('x', 200);
		assert_fault(&r, NULL);
	}
}

static void long_lists(void **state)
{
	struct str items[DEPENDS_MAX + 1];

	(void)state;
	for (size_t i = 0; i < COUNT(items); i++)
		items[i] = STR("t2");
	for (int i = 0; i < ARG_END; i++) {
		enum arg a = (enum arg)i;
		size_t most = a == ARG_depends || a == ARG_except ? DEPENDS_MAX : LABELS_MAX;
		struct request r = good(OP_UPDATE);

		if (arg_kind(a) != ARG_LIST)
			continue;
		*(struct strs *)arg_at(&r, a) = (struct strs){ items, most };
		assert_fault(&r, NULL);
		((struct strs *)arg_at(&r, a))->n++;
		assert_fault(&r, "are allowed");
	}
}

static void bad_extras(void **state)
{
	static const struct {
		const char *text;
		bool good;
	} all[] = {
		{ "", true },
		{ "{}", true },
		{ "{\"a\":[1,null]}", true },
		{ "[1]", false },
		{ "1", false },
		{ "{", false },
		{ "{\"a\":1,\"a\":2}", false },
		{ "null", false },
		{ "{} x", false },
		{ "x", false },
	};
	struct request r = good(OP_UPDATE);

	(void)state;
	for (size_t i = 0; i < COUNT(all); i++) {
		GIVE(&r, extra, str_c(all[i].text));
		assert_fault(&r, all[i].good ? NULL : "JSON object");
	}
	GIVE(&r, extra, repeat('x', 256 * 1024 + 1));
	assert_fault(&r, "extra has");
	GIVE(&r, extra, repeat('[', EXTRA_VALUES_MAX + 1));
	assert_fault(&r, "at most 10000 values");
	GIVE(&r, extra, repeat('[', EXTRA_LEVELS_MAX + 1));
	assert_fault(&r, "at most 64 levels");
}

struct range {
	enum arg arg;
	int64_t least, most;
	const char *word;
};

static void ranges(void **state)
{
	static const struct range all[] = {
		{ ARG_ttl, 1000, 24 * HOUR, "from 1s to 1d" },
		{ ARG_priority, 0, 1000, "priority" },
		{ ARG_status, BACKLOG, CANCELED, "status" },
		{ ARG_class_rank, EXPEDITE, INTANGIBLE, "class" },
		{ ARG_due, 0, INT64_C(253402300799999), "due" },
		{ ARG_not_before, 0, INT64_C(253402300799999), "not-before" },
		{ ARG_next_check, 0, INT64_C(253402300799999), "next-check" },
		{ ARG_since, 0, INT64_C(253402300799999), "since" },
		{ ARG_until, 0, INT64_C(253402300799999), "until" },
		{ ARG_delay, 0, INT64_C(253402300799999), "delay" },
		{ ARG_older_than, 0, INT64_C(253402300799999), "older-than" },
		{ ARG_limit, 0, INT64_MAX, "limit" },
		{ ARG_from, 0, ID_NUMBER_MAX, "from" },
		{ ARG_pid, 0, EXACT_MAX, "pid" },
		{ ARG_pid_start, 0, EXACT_MAX, "pid" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(all); i++) {
		struct request r = good(OP_UPDATE);
		int64_t *v = arg_at(&r, all[i].arg);

		r.has |= UINT64_C(1) << all[i].arg;
		*v = all[i].least;
		assert_fault(&r, NULL);
		*v = all[i].most;
		assert_fault(&r, NULL);
		*v = all[i].least - 1;
		assert_fault(&r, all[i].word);
		*v = INT64_MIN;
		assert_fault(&r, all[i].word);
		*v = INT64_MAX;
		assert_fault(&r, all[i].most == INT64_MAX ? NULL : all[i].word);
		if (all[i].most == INT64_MAX)
			continue;
		*v = all[i].most + 1;
		assert_fault(&r, all[i].word);
	}
}

/* --- the effect of the fields ------------------------------------------------------------------------ */

static struct task with_labels(void)
{
	struct task t = { .id = STR("t1"), .status = READY };

	t.labels = arena_append(&mem, t.labels, STR("a"));
	t.labels = arena_append(&mem, t.labels, STR("b"));
	return t;
}

static void assert_labels(const struct task *t, const char *want)
{
	struct str all = STR("");

	for (size_t i = 0; i < t->labels.n; i++)
		all = arena_printf(&mem, "%.*s%.*s,", STRF(all), STRF(t->labels.v[i]));
	assert_string_equal(arena_cstr(&mem, all), want);
}

static void label_changes(void **state)
{
	struct str news[] = { STR("b"), STR("c"), STR("c") }, old[] = { STR("a"), STR("zz") };
	const struct strs more = { news, 3 }, less = { old, 2 };
	struct request r = { .op = OP_UPDATE };
	struct task t = with_labels();

	(void)state;
	GIVE(&r, add_labels, more);
	update_fields(&t, &r, NOW, &mem);
	assert_labels(&t, "a,b,c,");
	r = (struct request){ .op = OP_UPDATE };
	GIVE(&r, remove_labels, less);
	update_fields(&t, &r, NOW, &mem);
	assert_labels(&t, "b,c,");
	r = (struct request){ .op = OP_UPDATE };
	GIVE(&r, labels, less);
	update_fields(&t, &r, NOW, &mem);
	assert_labels(&t, "a,zz,");
	GIVE(&r, labels, more); /* all three: set, add, remove */
	GIVE(&r, add_labels, less);
	GIVE(&r, remove_labels, more);
	update_fields(&t, &r, NOW, &mem);
	assert_labels(&t, "a,zz,");
	r = (struct request){ .op = OP_UPDATE };
	GIVE(&r, labels, ((struct strs){ NULL, 0 }));
	update_fields(&t, &r, NOW, &mem);
	assert_labels(&t, "");
}

static void extra_changes(void **state)
{
	static const struct {
		const char *old, *more, *want;
	} all[] = {
		{ "", "{\"a\":1}", "{\"a\":1}" },
		{ "{\"a\":1}", "{\"b\":2}", "{\"a\":1,\"b\":2}" },
		{ "{\"a\":1}", "{\"a\":2}", "{\"a\":2}" },
		{ "{\"a\":1,\"b\":2}", "{\"a\":null}", "{\"b\":2}" },
		{ "{\"a\":1}", "{\"a\":null,\"z\":null}", "" },
		{ "{\"a\":1}", "{}", "{\"a\":1}" },
		{ "{\"a\":1}", "", "" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(all); i++) {
		struct task t = { .extra = *all[i].old ? str_c(all[i].old)
						       : (struct str){ NULL, 0 } };
		struct request r = { .op = OP_UPDATE };

		GIVE(&r, extra, str_c(all[i].more));
		update_fields(&t, &r, NOW, &mem);
		assert_string_equal(arena_cstr(&mem, t.extra), all[i].want);
	}
}

static void field_changes(void **state)
{
	struct task t = with_labels(), want = t;
	struct request r = { .op = OP_UPDATE };

	(void)state;
	update_fields(&t, &r, NOW, &mem); /* no field given: nothing changes */
	assert_int_equal(task_diff(&want, &t, "nothing"), 0);
	assert_false(update_any(&r));
	GIVE(&r, title, want.title = STR("1"));
	GIVE(&r, description, want.description = STR("2"));
	GIVE(&r, acceptance, want.acceptance = STR("3"));
	GIVE(&r, type, want.type = STR("4"));
	GIVE(&r, effort, want.effort = STR("5"));
	GIVE(&r, assignee, want.assignee = STR("6"));
	GIVE(&r, due, want.due = 6);
	GIVE(&r, not_before, want.not_before = 7);
	GIVE(&r, class_rank, want.class_rank = EXPEDITE);
	GIVE(&r, priority, want.priority = 9);
	assert_true(update_any(&r));
	update_fields(&t, &r, NOW, &mem);
	assert_int_equal(task_diff(&want, &t, "all fields"), 0);
	GIVE(&r, description, want.description = STR("")); /* given as empty: cleared */
	GIVE(&r, due, want.due = 0);
	GIVE(&r, delay, 2 * HOUR);
	want.not_before = NOW + 2 * HOUR;
	update_fields(&t, &r, NOW, &mem);
	assert_int_equal(task_diff(&want, &t, "cleared"), 0);
	GIVE(&r, delay, want.not_before = 0);
	update_fields(&t, &r, NOW, &mem);
	assert_int_equal(task_diff(&want, &t, "no delay"), 0);
}

static void paragraphs(void **state)
{
	static const struct {
		const char *old, *want;
	} all[] = {
		{ "", "more" },
		{ "one", "one\n\nmore" },
		{ "one\n\n\n", "one\n\nmore" },
		{ "\n", "more" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		struct task t = { .description = str_c(all[i].old) };
		struct request r = { .op = OP_UPDATE };

		GIVE(&r, append, STR("more"));
		assert_true(update_any(&r));
		update_fields(&t, &r, NOW, &mem);
		assert_string_equal(arena_cstr(&mem, t.description), all[i].want);
	}
}

/* A change is only made on the version that the caller read. */
static void versions(void **state)
{
	(void)state;
	for (int64_t version = 6; version <= 8; version++) {
		struct task t = { .id = STR("t1"), .status = READY, .version = 7 };
		struct request r = { .op = OP_UPDATE };
		struct call c = { .rq = &r,
				  .policy = &policy_default,
				  .now = NOW,
				  .proof = STR(""),
				  .fresh = STR(""),
				  .arena = &mem };

		GIVE(&r, title, STR("new"));
		GIVE(&r, if_version, version);
		rules_apply(r.op, &t, &c);
		assert_int_equal(c.code, version == 7 ? SUCCESS : CONFLICT);
		assert_int_equal(t.version, version == 7 ? 8 : 7);
		assert_int_equal(c.changed, version == 7);
	}
}

static void append_or_replace(void **state)
{
	struct request r = good(OP_UPDATE);

	(void)state;
	GIVE(&r, append, STR("more"));
	assert_fault(&r, NULL);
	GIVE(&r, description, STR("new"));
	assert_fault(&r, "cannot be used with a new description");
}

static bool is_field(enum arg a)
{
	return (a >= ARG_title && a <= ARG_priority && a != ARG_depends) || a == ARG_parent ||
	       a == ARG_append || a == ARG_assignee;
}

static void anything_to_update(void **state)
{
	(void)state;
	for (int i = 0; i < ARG_END; i++) {
		struct request r = { .op = OP_UPDATE, .has = UINT64_C(1) << i };

		assert_int_equal(update_any(&r), is_field((enum arg)i));
	}
}

static bool takes_request_id(enum op op, int64_t status)
{
	struct request r = { .op = op };

	GIVE(&r, id, STR("t1"));
	GIVE(&r, agent, STR("ann"));
	GIVE(&r, new_token, STR("T"));
	GIVE(&r, title, STR("x"));
	GIVE(&r, request_id, STR("r"));
	if (status)
		GIVE(&r, status, status);
	return !request_fault(&r, &policy_default, &mem);
}

/* A repeated acquisition is recognised by its token alone. */
static void request_ids(void **state)
{
	(void)state;
	assert_true(takes_request_id(OP_CREATE, 0));
	assert_true(takes_request_id(OP_DONE, 0));
	assert_true(takes_request_id(OP_STATUS, DONE));
	assert_false(takes_request_id(OP_STATUS, IN_PROGRESS));
	assert_false(takes_request_id(OP_CLAIM, 0));
	assert_false(takes_request_id(OP_TAKE, 0));
	assert_false(takes_request_id(OP_LOCK_ACQUIRE, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(operations),
		cmocka_unit_test(round_trip),
		cmocka_unit_test(bad_operations),
		cmocka_unit_test(newer_and_damaged),
		cmocka_unit_test(truncated_and_garbage),
		cmocka_unit_test(as_json),
		cmocka_unit_test(good_calls),
		cmocka_unit_test(who_and_what),
		cmocka_unit_test(tokens_for_more),
		cmocka_unit_test(forced),
		cmocka_unit_test(versions_of_one_task),
		cmocka_unit_test(missing_words),
		cmocka_unit_test(missing_words_by_status),
		cmocka_unit_test(status_of_another_call),
		cmocka_unit_test(bad_ids),
		cmocka_unit_test(locks_of_the_queue),
		cmocka_unit_test(bad_texts),
		cmocka_unit_test(bad_lists),
		cmocka_unit_test(long_lists),
		cmocka_unit_test(handles),
		cmocka_unit_test(bad_extras),
		cmocka_unit_test(ranges),
		cmocka_unit_test(label_changes),
		cmocka_unit_test(extra_changes),
		cmocka_unit_test(field_changes),
		cmocka_unit_test(anything_to_update),
		cmocka_unit_test(paragraphs),
		cmocka_unit_test(versions),
		cmocka_unit_test(append_or_replace),
		cmocka_unit_test(request_ids),
	};

	return cmocka_run_group_tests(tests, NULL, free_memory);
}

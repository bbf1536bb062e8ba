/*
 * A task as a Markdown file, and in people's words: it survives a round trip with its comments,
 * files that people wrote are understood, and a message about an error names its line.
 */
#include "core_kit.h"

#include "base/when.h"
#include "format/record_form.h"
#include "format/markdown.h"

static struct str some_text(uint64_t *seed, bool bytes)
{
	static const char *const pieces[] = { "word",
					      " ",
					      "\n",
					      "---\n",
					      "# Head\n",
					      "```\n",
					      "\r\n",
					      "\t",
					      ": ",
					      "\xc3\xa9",
					      "\xf0\x9f\x98\x80",
					      "\"",
					      "\x1b",
					      "\xe2\x80\xa8",
					      "- [ ] a\n",
					      "\xff" };
	struct buf b = BUF_MAX(1000);
	struct str s;

	for (uint32_t n = kit_random(seed, 9); n; n--)
		buf_adds(&b, str_c(pieces[kit_random(seed, (uint32_t)COUNT(pieces) - !bytes)]));
	s = arena_str(&mem, buf_str(&b));
	buf_free(&b);
	return s;
}

static int64_t some_number(uint64_t *seed)
{
	switch (kit_random(seed, 4)) {
	case 0:
		return INT64_MAX - kit_random(seed, 9);
	case 1:
		return -(int64_t)kit_random(seed, 99);
	case 2:
		return (int64_t)kit_random(seed, 20000) * 86400000;
	default:
		return (int64_t)kit_random(seed, UINT32_MAX / 2) * 1000 + kit_random(seed, 1000);
	}
}

static struct str some_extra(uint64_t *seed)
{
	static const char *const all[] = {
		"{\"folded\":[1,\"2\"],\"board\":{\"col\":\"a b\"},\"none\":null}",
		"{\"status\":5,\"other\":1}",
		"{\"hex\":\"00\"}",
		"{ \"spaced\": 1 }",
		"[1]",
		"no json",
		"\xff",
		"{}",
		"{\"holder\":1}",
		"{\"comments\":1}",
		"{\"lock\":1}",
		"{\"a\":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]}",
	};

	return str_c(all[kit_random(seed, COUNT(all))]);
}

static struct task some_task(uint64_t *seed, bool whole)
{
	struct task t = { 0 };

	for (size_t i = 0; i < N_FIELDS; i++) {
		const struct field *f = &field_table[i];
		void *p = field_at(f, &t);

		if (kit_random(seed, 3) == 0 || !plain_written(f, whole))
			continue;
		if (f->kind == FIELD_JSON)
			*(struct str *)p = some_extra(seed);
		else if (f->kind == FIELD_STR)
			*(struct str *)p = some_text(seed, true);
		else if (f->kind == FIELD_LIST)
			*(struct strs *)p = arena_append(&mem, *(struct strs *)p,
							 some_text(seed, true));
		else
			*(int64_t *)p = some_number(seed);
	}
	t.id = STR("12");
	t.title = kit_random(seed, 2) ? STR("2026") : STR("A title: \"of\" it");
	t.status = 1 + kit_random(seed, STATUS_END - 1);
	t.class_rank = 1 + kit_random(seed, CLASS_END - 1);
	if (!whole)
		t.priority = kit_random(seed, PRIORITY_MAX + 1);
	return t;
}

static size_t some_comments(uint64_t *seed, struct event *all)
{
	size_t n = kit_random(seed, 3);

	for (size_t i = 0; i < n; i++)
		all[i] = (struct event){ .name = STR("comment"),
					 .agent = some_text(seed, false),
					 .run = some_text(seed, false),
					 .text = some_text(seed, false),
					 .fence = kit_random(seed, 2),
					 .at = some_number(seed) };
	return n;
}

static void same_comments(const struct event *want, size_t n, const struct plain *p)
{
	assert_int_equal(p->n_comments, n);
	for (size_t i = 0; i < n; i++) {
		const struct event *got = &p->comments[i];

		assert_true(str_is(got->name, "comment"));
		assert_true(str_eq(got->agent, want[i].agent) && str_eq(got->run, want[i].run) &&
			    str_eq(got->text, want[i].text));
		assert_int_equal(got->at, want[i].at);
		assert_int_equal(got->fence, want[i].fence);
	}
}

static void round_trip(void **state)
{
	uint64_t seed = 5;

	(void)state;
	for (int i = 0; i < SCALE(2000, 500); i++) {
		bool whole = i % 2;
		struct task t = some_task(&seed, whole);
		struct event comments[3];
		size_t n = some_comments(&seed, comments);
		struct buf b = BUF_MAX(1 << 20), again = BUF_MAX(1 << 20);
		struct yaml_fault fault;
		struct plain p;

		task_md_write(&t, comments, n, whole, &b, &mem);
		plain_start(&p, when_parse, whole, &mem);
		if (task_md_parse(buf_str(&b), STR("other.md"), &p, &fault))
			fail_msg("%s\n%zu: %.*s", b.p, fault.line, STRF(fault.text));
		if (task_diff(&t, &p.task, "through Markdown"))
			fail_msg("%s", b.p);
		same_comments(comments, n, &p);
		task_md_write(&p.task, p.comments, p.n_comments, whole, &again, &mem);
		assert_true(str_eq(buf_str(&b), buf_str(&again)));
		buf_free(&b);
		buf_free(&again);
	}
}

/* The file in the document that defines the form. */
static void of_people(void **state)
{
	static const char text[] = "---\n"
				   "priority: high\n"
				   "effort: medium\n"
				   "depends: [112, \"113\"]\n"
				   "issue_type: feature\n"
				   "status: Implementing\n"
				   "labels: [aitasks, bash]\n"
				   "assigned_to: ann\n"
				   "created_at: 2026-02-13 02:35\n"
				   "completed_at: 2026-02-13T11:49Z\n"
				   "due: 2026-03-01\n"
				   "folded_tasks: [7]\n"
				   "---\n"
				   "\n"
				   "## Problem\n"
				   "\n"
				   "It races.\n";
	struct yaml_fault fault;
	struct plain p;
	int64_t at;

	(void)state;
	plain_start(&p, when_parse, false, &mem);
	assert_int_equal(task_md_parse(str_c(text), STR("t109_atomic_locks.md"), &p, &fault), 0);
	assert_true(str_is(p.task.id, "t109"));
	assert_true(str_is(p.task.title, "Problem"));
	assert_true(str_is(p.task.description, "## Problem\n\nIt races."));
	assert_int_equal(p.task.priority, 3);
	assert_true(str_is(p.task.effort, "medium"));
	assert_int_equal(p.task.depends.n, 2);
	assert_true(str_is(p.task.depends.v[0], "t112"));
	assert_true(str_is(p.task.depends.v[1], "113"));
	assert_true(str_is(p.task.type, "feature"));
	assert_int_equal(p.task.status, IN_PROGRESS);
	assert_int_equal(p.task.labels.n, 2);
	assert_true(str_is(p.task.assignee, "ann"));
	assert_true(when_parse(STR("2026-02-13 02:35"), &at));
	assert_int_equal(p.task.created_at, at);
	assert_true(when_parse(STR("2026-02-13T11:49Z"), &at));
	assert_int_equal(p.task.done_at, at);
	assert_true(when_parse(STR("2026-03-01T00:00Z"), &at));
	assert_int_equal(p.task.due, at);
	assert_true(str_is(p.task.extra, "{\"folded_tasks\":[7]}"));
}

static void written(void **state)
{
	struct task t = { .id = STR("t7"),
			  .title = STR("Fix it"),
			  .description = STR("It breaks."),
			  .acceptance = STR("- runs\n- is green"),
			  .status = IN_PROGRESS,
			  .class_rank = STANDARD,
			  .priority = 2,
			  .type = STR("bug"),
			  .extra = STR("{\"board\":\"left\"}"),
			  .created_at = INT64_C(1771000000000) };
	const struct event comment = { .at = 1000, .agent = STR("ann"), .text = STR("Well done") };
	struct buf b = BUF_MAX(10000);

	(void)state;
	task_md_write(&t, &comment, 1, false, &b, &mem);
	assert_string_equal(b.p, "---\n"
				 "id: t7\n"
				 "title: Fix it\n"
				 "acceptance: |-\n"
				 "  - runs\n"
				 "  - is green\n"
				 "status: In Progress\n"
				 "class: Standard\n"
				 "priority: medium\n"
				 "issue_type: bug\n"
				 "created_at: 2026-02-13T16:26:40.000Z\n"
				 "board: left\n"
				 "comments:\n"
				 "  - {at: 1970-01-01T00:00:01.000Z, agent: ann, text: Well done}\n"
				 "---\n"
				 "\n"
				 "It breaks.\n");
	buf_free(&b);
}

static void names(void **state)
{
	static const struct {
		const char *name, *text, *id, *title, *description;
	} all[] = {
		{ "t1.md", "", "t1", "t1", "" },
		{ "t10_2_do_the-rest.md", "", "t10_2", "do the rest", "" },
		{ "t10_2.md", "", "t10_2", "t10_2", "" },
		{ "t10_.md", "", "t10", "t10", "" },
		{ "t-x.md", "", "t-x", "t-x", "" },
		{ "t10x.md", "", "t10x", "t10x", "" },
		{ "task.md", "text\nmore\n", "task", "text", "text\nmore\n" },
		{ "other", "# One #2\ntext", "other", "One #2", "# One #2\ntext" },
		{ "a.md", "\xef\xbb\xbf---\r\ntitle: 5\r\n---\r\n\r\nx", "a", "5", "x" },
		{ "a.md", "---\nid: 5\n---\n#no\n```\n# no\n```\n### Yes", "t5", "Yes",
		  "#no\n```\n# no\n```\n### Yes" },
		{ "a.md", "---\nid: b\n", "a", "---", "---\nid: b\n" },
		{ "a.md", "---\n---\n", "a", "a", "" },
		{ "a.md", "---\ndescription: yes\n---\n", "a", "yes", "yes" },
	};

	(void)state;
	assert_true(str_is(task_md_id(STR("t10_2_rest.md")), "t10_2"));
	assert_true(str_is(task_md_id(STR("other")), "other"));
	for (size_t i = 0; i < COUNT(all); i++) {
		struct yaml_fault fault;
		struct plain p;

		plain_start(&p, when_parse, false, &mem);
		if (task_md_parse(str_c(all[i].text), str_c(all[i].name), &p, &fault))
			fail_msg("%s: %.*s", all[i].name, STRF(fault.text));
		if (!str_is(p.task.id, all[i].id) || !str_is(p.task.title, all[i].title) ||
		    !str_is(p.task.description, all[i].description))
			fail_msg("%s: %.*s, %.*s, %.*s", all[i].name, STRF(p.task.id),
				 STRF(p.task.title), STRF(p.task.description));
	}
}

static void faults(void **state)
{
	static const struct {
		const char *text;
		size_t line;
		const char *want;
	} all[] = {
		{ "---\ntitle: x\npriority: huge\n---\n", 3, "priority: this is not a priority" },
		{ "---\nunknown: 1\npriority: huge\n---\n", 3, "priority: this is not a priority" },
		{ "---\npriority: 1001\n---\n", 2, "priority" },
		{ "---\npriority: []\n---\n", 2, "priority" },
		{ "---\nattempts: high\n---\n", 2, "attempts: this is not a whole number" },
		{ "---\nattempts: 1.5\n---\n", 2, "whole number" },
		{ "---\nstatus: Lost\n---\n", 2, "status: this is not a status" },
		{ "---\nclass: 5\n---\n", 2, "class" },
		{ "---\nlabels: {a: 1}\n---\n", 2, "labels: this is not a list" },
		{ "---\nlabels: [[a]]\n---\n", 2, "labels: this is not a list" },
		{ "---\nlabels: [null]\n---\n", 2, "labels: this is not a list" },
		{ "---\ntitle: [a]\n---\n", 2, "title: this is not a text" },
		{ "---\ncreated_at: soon\n---\n", 2, "created_at: this is not a time" },
		{ "---\ncreated_at: 1.5\n---\n", 2, "created_at: this is not a time" },
		{ "---\ndue: 2026-02-30\n---\n", 2, "due: this is not a date" },
		{ "---\nextra: [1]\n---\n", 2, "extra: this is not an object" },
		{ "---\nextra: word\nunknown: 1\n---\n", 1, "extra" },
		{ "---\ncomments: 1\n---\n", 2, "comments" },
		{ "---\ncomments: [{agent: a}]\n---\n", 2, "comments" },
		{ "---\ncomments: [{text: 5}]\n---\n", 2, "comments" },
		{ "---\ncomments: [{text: a, at: soon}]\n---\n", 2, "comments" },
		{ "---\na: *b\n---\n", 2, "aliases" },
		{ "---\na: 1\na: 2\n---\n", 3, "twice" },
		{ "---\ndescription: x\n---\n\nbody\n", 1, "another below it" },
		{ "one\ntwo \xff\n", 2, "UTF-8" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(all); i++) {
		struct yaml_fault fault = { 0 };
		struct plain p;

		plain_start(&p, when_parse, false, &mem);
		if (task_md_parse(str_c(all[i].text), STR("a.md"), &p, &fault) != -EBADMSG ||
		    fault.line != all[i].line || !str_holds(fault.text, all[i].want))
			fail_msg("%s: %zu: %.*s", all[i].text, fault.line, STRF(fault.text));
	}
}

/* Words that other programs and `pawl list --json` write. */
static void words(void **state)
{
	static const struct {
		const char *front, *want;
	} all[] = {
		{ "labels: \"a, b,, c\"\n", "{\"labels\":[\"a\",\"b\",\"c\"]}" },
		{ "labels: \"\"\n", "{}" },
		{ "labels: [1, true]\n", "{\"labels\":[\"1\",\"true\"]}" },
		{ "parent: 7\neffort: 3\n", "{\"effort\":\"3\",\"parent\":\"t7\"}" },
		{ "lock: null\nopen_depends: 3\ntype: null\ncomments: null\n", "{}" },
		{ "created_at: 5\n", "{\"created_at\":5}" },
		{ "due: 2026-02-06T10:00Z\n", "{\"due\":1770372000000}" },
		{ "attempts: \"7\"\n", "{\"attempts\":7}" },
		{ "extra: {a: 1}\nb: 2\n", "{\"extra\":\"{\\\"a\\\":1,\\\"b\\\":2}\"}" },
		{ "extra: {a: 1}\n", "{\"extra\":\"{\\\"a\\\":1}\"}" },
		{ "comments: [{text: a}]\nholder: x\n",
		  "{\"extra\":\"{\\\"holder\\\":\\\"x\\\"}\"}" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(all); i++) {
		struct str text = arena_printf(&mem, "---\n%s---\n", all[i].front);
		struct yaml_fault fault = { 0 };
		struct plain p;
		json_t *o;
		char *got;

		plain_start(&p, when_parse, false, &mem);
		assert_int_equal(task_md_parse(text, STR("a.md"), &p, &fault), 0);
		o = task_fields_json(&p.task);
		json_object_del(o, "id");
		json_object_del(o, "title");
		json_object_del(o, "status");
		json_object_del(o, "class");
		json_object_del(o, "priority");
		got = json_dumps(o, JSON_COMPACT);
		assert_string_equal(got, all[i].want);
		free(got);
		json_decref(o);
	}
}

/* Fields that are always present have a JSON value, even if it is null. */
static void always(void **state)
{
	const struct task none = { 0 }, extra = { .extra = STR("{\"a\":1}") };
	json_t *o = plain_value(field_find(STR("extra")), &extra, &mem);
	char *text;

	(void)state;
	assert_int_equal(json_integer_value(json_object_get(o, "a")), 1);
	json_object_clear(o);
	for (size_t i = 0; i < N_FIELDS; i++) {
		json_t *v = plain_value(&field_table[i], &none, &mem);

		if (v)
			json_object_set_new(o, field_table[i].name, v);
	}
	text = json_dumps(o, JSON_COMPACT);
	assert_string_equal(text,
			    "{\"status\":0,\"class\":0,\"priority\":0,\"labels\":[],\"depends\":[],"
			    "\"attempts\":0,\"abandoned\":0,\"fence\":0,\"created_at\":0,"
			    "\"updated_at\":0,\"version\":0}");
	free(text);
	json_decref(o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(round_trip, free_memory),
		cmocka_unit_test_teardown(of_people, free_memory),
		cmocka_unit_test_teardown(written, free_memory),
		cmocka_unit_test_teardown(names, free_memory),
		cmocka_unit_test_teardown(faults, free_memory),
		cmocka_unit_test_teardown(words, free_memory),
		cmocka_unit_test_teardown(always, free_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

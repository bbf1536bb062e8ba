/*
 * Could pawl have written this record? Every field of a task has its limits. The message about a
 * bad one contains nothing from the record itself.
 */
#include "core_kit.h"

#include "base/text.h"
#include "base/when.h"
#include "core/validate.h"

static struct str filled(size_t n, char c)
{
	char *p = arena_alloc(&mem, n + 1);

	memset(p, c, n);
	return str_n(p, n);
}

static struct strs many(size_t n, struct str one)
{
	struct strs list = { arena_array(&mem, struct str, n), n };

	for (size_t i = 0; i < n; i++)
		list.v[i] = one;
	return list;
}

static struct task good(void)
{
	return (struct task){ .id = STR("T1"),
			      .title = STR("a title\nof two lines"),
			      .status = READY,
			      .class_rank = STANDARD,
			      .priority = 1000,
			      .parent = STR("t2"),
			      .labels = many(LABELS_MAX, STR("l")),
			      .depends = many(DEPENDS_MAX, STR("t3")),
			      .description = filled(TEXT_MAX, 'd'),
			      .extra = STR("{\"a\":[1,2,\"\\\"[[,\"]}"),
			      .fence = EXACT_MAX,
			      .created_at = WHEN_MAX,
			      .lock = { .holder = STR("ann"), .token = filled(32, '\xff') },
			      .last = { .token = filled(32, '\xfe'), .next = STR("t9") } };
}

static void bad(const struct task *t, struct str key, const char *why)
{
	const char *fault = task_fault(t, key, &mem);

	assert_non_null(fault);
	assert_true(str_holds(str_c(fault), why));
}

/* A text that the change left alone was checked when it was read. */
static void changed_tasks(void **state)
{
	struct task old = good(), t = old;

	(void)state;
	old.description = t.description = STR("not text: \xff");
	t.fence--;
	assert_null(task_change_fault(&t, &old, STR("task/t1"), &mem));
	assert_non_null(task_change_fault(&t, &old, STR("task/t2"), &mem));
	t.title = STR(""); /* cleared */
	assert_null(task_change_fault(&t, &old, STR("task/t1"), &mem));
	t.summary = STR("\xff");
	assert_non_null(task_change_fault(&t, &old, STR("task/t1"), &mem));
	t = old;
	t.labels = many(LABELS_MAX + 1, STR("l"));
	assert_non_null(task_change_fault(&t, &old, STR("task/t1"), &mem));
	t = old;
	t.fence = EXACT_MAX + 1;
	assert_non_null(task_change_fault(&t, &old, STR("task/t1"), &mem));
}

static void tasks(void **state)
{
	struct task t = good();

	(void)state;
	assert_null(task_fault(&t, STR("task/t1"), &mem));
	assert_null(task_fault(&t, STR(""), &mem));
	bad(&t, STR("task/T1"), "differ");
	bad(&t, STR("task/t2"), "differ");
	bad(&t, STR("lock/t1"), "differ");
	t.id = STR("$(id>zz)");
	bad(&t, STR("task/$(id>zz)"), "begins with a letter");
	t.id = STR("bad:0123456789abcdef");
	assert_null(task_fault(&t, STR(""), &mem));
	bad(&t, STR("task/bad:0123456789abcdef"), "only letters");
	t = good();
	t.status = 0;
	bad(&t, STR("task/t1"), "status");
	t = good();
	t.class_rank = 0;
	bad(&t, STR("task/t1"), "class");
}

static void queue_locks(void **state)
{
	struct task t = { .id = STR("@Write") };

	(void)state;
	assert_null(task_fault(&t, STR("lock/@write"), &mem));
	assert_null(task_fault(&t, STR(""), &mem));
	bad(&t, STR("lock/@batch"), "differ");
	bad(&t, STR("task/@write"), "differ");
	t.id = STR("@emergency");
	assert_null(task_fault(&t, STR("lock/@emergency"), &mem));
	t.id = STR("@pause");
	assert_null(task_fault(&t, STR("lock/@pause"), &mem));
	t.id = STR("@other");
	bad(&t, STR("lock/@other"), "letter or a digit");
}

/* Each text and each number beyond its limit. */
static void fields(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(kit_fields); i++) {
		const struct kit_field *f = &kit_fields[i];
		struct task t = good(), low = good();
		void *p = (char *)&t + f->offset;
		bool hash = !strcmp(f->name, "lock.token") || !strcmp(f->name, "last.token") ||
			    !strcmp(f->name, "over.token") || !strcmp(f->name, "chain");

		if (f->kind == KIT_NUMBER) {
			*(int64_t *)p = EXACT_MAX + 1;
			bad(&t, STR("task/t1"), "out of range");
			*(int64_t *)((char *)&low + f->offset) = -1;
			bad(&low, STR("task/t1"), "out of range");
		} else if (f->kind == KIT_STR) {
			*(struct str *)p = filled(TEXT_MAX + 1, 'x');
			assert_non_null(task_fault(&t, STR("task/t1"), &mem));
			*(struct str *)p = STR("\xff");
			assert_int_equal(!task_fault(&t, STR("task/t1"), &mem), hash);
		} else {
			bool labels = !strcmp(f->name, "labels");

			*(struct strs *)p = many((labels ? LABELS_MAX : DEPENDS_MAX) + 1,
						 STR("t1"));
			bad(&t, STR("task/t1"), labels ? "at most 256" : "at most 1000");
		}
		arena_free(&mem);
	}
}

static void words(void **state)
{
	struct task t = good();

	(void)state;
	t.title = filled(TITLE_MAX + 1, 'x');
	bad(&t, STR("task/t1"), "title has 501 bytes; at most 500");
	t = good();
	t.lock.token = filled(33, 'x');
	bad(&t, STR("task/t1"), "token has 33 bytes");
	t = good();
	t.parent = STR("../x");
	bad(&t, STR("task/t1"), "parent is not the id");
	t = good();
	t.last.next = STR("a b");
	bad(&t, STR("task/t1"), "last_next is not the id");
	t = good();
	t.depends = many(1, STR("a\nb"));
	bad(&t, STR("task/t1"), "depends on something");
	t = good();
	t.labels = many(1, STR(""));
	bad(&t, STR("task/t1"), "one of its labels");
	t.labels = many(1, filled(NAME_MAX_BYTES + 1, 'x'));
	bad(&t, STR("task/t1"), "one of its labels");
	t.labels = many(1, STR("\xc3("));
	bad(&t, STR("task/t1"), "one of its labels");
	t = good();
	t.extra = filled(EXTRA_VALUES_MAX + 1, '[');
	bad(&t, STR("task/t1"), "its extra: at most 10000 values");
	t.extra = filled(EXTRA_LEVELS_MAX + 1, '[');
	bad(&t, STR("task/t1"), "its extra: at most 64 levels");
}

static void small(void **state)
{
	struct str quoted = filled(EXTRA_VALUES_MAX + 2, ','), flat = filled(EXTRA_VALUES_MAX, '[');

	(void)state;
	((char *)quoted.p)[0] = '"';
	assert_null(extra_fault(quoted, &mem));
	assert_null(extra_fault(STR("\"\\"), &mem));
	assert_null(extra_fault(filled(EXTRA_VALUES_MAX, ','), &mem));
	assert_non_null(strstr(extra_fault(filled(EXTRA_VALUES_MAX + 1, ','), &mem), "values"));
	assert_null(extra_fault(filled(EXTRA_LEVELS_MAX, '{'), &mem));
	assert_non_null(strstr(extra_fault(filled(EXTRA_LEVELS_MAX + 1, '{'), &mem), "levels"));
	for (size_t i = 1; i < flat.n; i += 2)
		((char *)flat.p)[i] = i % 4 == 1 ? ']' : '}';
	assert_null(extra_fault(flat, &mem));
}

static void growth(void **state)
{
	struct task t = { .id = STR("t1"),
			  .labels.n = LABELS_MAX,
			  .depends.n = DEPENDS_MAX,
			  .description.n = TEXT_MAX,
			  .extra.n = TEXT_MAX },
		    more = t;

	(void)state;
	assert_null(growth_fault(&t, &mem));
	more.extra.n++;
	assert_true(str_holds(str_c(growth_fault(&more, &mem)), "extra would have 262145"));
	more.description.n++;
	assert_true(str_holds(str_c(growth_fault(&more, &mem)), "description would have 262145"));
	more.depends.n++;
	assert_true(str_holds(str_c(growth_fault(&more, &mem)), "1001 tasks; at most 1000"));
	more.labels.n++;
	assert_true(str_holds(str_c(growth_fault(&more, &mem)), "257 labels; at most 256"));
}

/* Counters in foreign records must leave room to count; pawl's own may go up to the end. */
static void room(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(kit_fields); i++) {
		const struct kit_field *f = &kit_fields[i];
		struct task t = { .priority = PRIORITY_MAX, .created_at = WHEN_MAX };
		int64_t *n = (int64_t *)(void *)((char *)&t + f->offset);
		bool counts = !strcmp(f->name, "fence") || !strcmp(f->name, "version") ||
			      !strcmp(f->name, "attempts") || !strcmp(f->name, "abandoned");

		if (f->kind != KIT_NUMBER)
			continue;
		*n = EXACT_MAX - EXACT_ROOM;
		assert_null(room_fault(&t, &mem));
		*n = EXACT_MAX - EXACT_ROOM + 1;
		if (counts)
			assert_true(str_holds(str_c(room_fault(&t, &mem)), "out of range"));
	}
}

static void keys(void **state)
{
	static const char *const good_keys[] = { "task/t1", "gone/t1", "meta/counter",
						 "lock/@write", "task/@batch" };
	static const char *const bad_keys[] = { "",          "task",       "task/",    "/t1",
						"task/../x", "Task/t1",    "ta~k/t1",  "task/a/b",
						"task/a\nb", "lock/@nope", "task/$(x)" };

	(void)state;
	for (size_t i = 0; i < COUNT(good_keys); i++)
		assert_null(key_fault(str_c(good_keys[i])));
	for (size_t i = 0; i < COUNT(bad_keys); i++)
		assert_non_null(key_fault(str_c(bad_keys[i])));
	assert_true(str_holds(str_c(key_fault(filled(201, 'x'))), "too long"));
}

static void handles(void **state)
{
	struct str h = bad_handle(&mem, STR("task/\n"));

	(void)state;
	assert_true(bad_handle_is(h));
	assert_false(str_eq(h, bad_handle(&mem, STR("task/\r"))));
	assert_false(bad_handle_is(STR("bad:")));
	assert_false(bad_handle_is(STR("t1")));
	assert_false(bad_handle_is(STR("bad:0123456789abcdeF")));
	assert_false(bad_handle_is(STR("bad:0123456789abcdef0")));
}

static void numbers(void **state)
{
	int64_t n;

	(void)state;
	assert_true(number_valid(STR("0"), &n));
	assert_true(number_valid(STR("9007199254740992"), &n));
	assert_int_equal(n, EXACT_MAX);
	assert_false(number_valid(STR("9007199254740993"), &n));
	assert_false(number_valid(STR("-1"), &n));
	assert_false(number_valid(STR("x"), &n));
}

static void events(void **state)
{
	const struct event e = { .name = STR("comment"),
				 .task = STR("@write"),
				 .text = filled(TEXT_MAX, 'x'),
				 .fence = EXACT_MAX,
				 .from = READY,
				 .to = CANCELED,
				 .at = 1 };
	struct event wrong[20], chained = e;
	size_t n = 0;

	(void)state;
	assert_null(event_fault(&e));
	assert_null(event_fault(&(struct event){ 0 }));
	for (size_t i = 0; i < COUNT(wrong); i++)
		wrong[i] = e;
	wrong[n++].task = STR("a\nb");
	wrong[n++].name = filled(NAME_MAX_BYTES + 1, 'x');
	wrong[n++].name = STR("\xff");
	wrong[n++].agent = STR("\xff");
	wrong[n++].run = STR("\xff");
	wrong[n++].text = STR("\xff");
	wrong[n++].text = filled(2 * TEXT_MAX, 'x');
	wrong[n++].changes = STR("\xff");
	wrong[n++].unblock_action = STR("\xff");
	wrong[n++].fence = -1;
	wrong[n++].fence = EXACT_MAX + 1;
	wrong[n++].from = -1;
	wrong[n++].from = STATUS_END;
	wrong[n++].to = -1;
	wrong[n++].to = STATUS_END;
	wrong[n++].at = -1;
	wrong[n++].at = WHEN_MAX + 1;
	wrong[n++].prev = STR("short");
	wrong[n++].expires = -1;
	wrong[n++].expires = WHEN_MAX + 1;
	for (size_t i = 0; i < n; i++)
		assert_non_null(event_fault(&wrong[i]));
	chained.prev = STR("\xff\xfe\xfd\xfc\xfb\xfa\xf9\xf8\xf7\xf6\xf5\xf4\xf3\xf2\xf1\xf0");
	chained.expires = WHEN_MAX;
	assert_null(event_fault(&chained));
}

static void answers(void **state)
{
	struct task fine = good(), hostile = good();
	struct event event = { .name = STR("comment") }, wrong = { .agent = STR("\xff") };
	struct candidate offer = { .id = STR("t1") };
	struct answer ans = { .task = &fine,
			      .next = &fine,
			      .tasks = &fine,
			      .n_tasks = 1,
			      .events = &event,
			      .n_events = 1,
			      .candidates = &offer,
			      .n_candidates = 1,
			      .warnings = many(1, STR("careful")) };

	(void)state;
	hostile.id = STR("\x1b[2J");
	assert_null(answer_fault(&ans, &mem));
	assert_null(answer_fault(&(struct answer){ 0 }, &mem));
	ans.task = &hostile;
	assert_non_null(answer_fault(&ans, &mem));
	ans.task = &fine;
	ans.next = &hostile;
	assert_non_null(answer_fault(&ans, &mem));
	ans.next = &fine;
	ans.tasks = &hostile;
	assert_non_null(answer_fault(&ans, &mem));
	ans.tasks = &fine;
	ans.events = &wrong;
	assert_non_null(answer_fault(&ans, &mem));
	ans.events = &event;
	offer.id = STR("a b");
	assert_non_null(answer_fault(&ans, &mem));
	offer = (struct candidate){ .id = STR("t1"), .title = STR("\xff") };
	assert_non_null(answer_fault(&ans, &mem));
	offer = (struct candidate){ .id = STR("t1"), .why = STR("\xff") };
	assert_non_null(answer_fault(&ans, &mem));
}

static void answer_words(void **state)
{
	struct answer ans = { .kind = ANSWER_ID };

	(void)state;
	assert_null(answer_fault(&ans, &mem));
	ans.text = STR("t1");
	assert_null(answer_fault(&ans, &mem));
	ans.text = STR("t1; rm");
	assert_non_null(answer_fault(&ans, &mem));
	ans.kind = ANSWER_TASK;
	assert_null(answer_fault(&ans, &mem));
	ans.text = STR("\xff");
	assert_non_null(answer_fault(&ans, &mem));
	ans.text = STR("");
	ans.message = STR("\xff");
	assert_non_null(answer_fault(&ans, &mem));
	ans.message = STR("");
	ans.hint = STR("\xff");
	assert_non_null(answer_fault(&ans, &mem));
	ans.hint = STR("");
	ans.warnings = many(2, STR("\xff"));
	assert_non_null(answer_fault(&ans, &mem));
}

static void notices(void **state)
{
	struct str fields[] = { STR("title"), STR("\xff") };
	struct notice good = { .by = STR("pat"),
			       .reason = STR("why"),
			       .fields = { fields, 1 },
			       .at = 5 },
		      all[] = { good, good, good, good, good };

	(void)state;
	all[0].by = STR("\xff");
	all[1].reason = STR("\xff");
	all[2].fields.n = 2;
	all[3].at = -1;
	all[4].at = WHEN_MAX + 1;
	for (size_t i = 0; i < COUNT(all); i++) {
		struct answer ans = { .changed = &good, .paused = &good };

		assert_null(answer_fault(&ans, &mem));
		ans.changed = &all[i];
		assert_non_null(answer_fault(&ans, &mem));
		ans.changed = NULL;
		assert_null(answer_fault(&ans, &mem));
		ans.paused = &all[i];
		assert_non_null(answer_fault(&ans, &mem));
	}
}

#define TEST(f) cmocka_unit_test_teardown(f, free_memory)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(tasks),   TEST(changed_tasks), TEST(queue_locks), TEST(fields),
		TEST(words),   TEST(small),         TEST(growth),      TEST(room),
		TEST(keys),    TEST(handles),       TEST(numbers),     TEST(events),
		TEST(answers), TEST(answer_words),  TEST(notices),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

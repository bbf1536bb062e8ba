/*
 * YAML, a task as a Markdown file, and a plan: the first byte says whether hidden fields count. Everything
 * that is read can be written, and then reads as the same.
 */
#include "kit.h"
#include "record.h"
#include "base/text.h"
#include "base/when.h"
#include "format/markdown.h"
#include "format/markdown_plan.h"
#include "queue/transfer.h"

struct pairs {
	json_t *all; /* [key, value], in the order of the file */
	bool able;
};

static int take(void *ctx, struct str key, json_t *value, size_t line)
{
	struct pairs *p = ctx;

	CHECK(line > 0);
	p->able &= yaml_able(value) && yaml_able_key(key);
	json_array_append_new(p->all, json_pack("[s%O]", key.p, (int)key.n, value));
	return 0;
}

static bool read_pairs(struct str text, struct pairs *out, struct arena *a)
{
	struct yaml_fault fault = { 0 };

	*out = (struct pairs){ json_array(), true };
	if (yaml_read(text, take, out, &fault, a) == 0)
		return true;
	CHECK(fault.text.n);
	return false;
}

static void check_yaml(struct str text, struct arena *a)
{
	struct buf b = BUF_MAX(1 << 24);
	struct pairs first, again;
	json_t *pair;
	size_t i;

	if (read_pairs(text, &first, a) && first.able) {
		json_array_foreach(first.all, i, pair)
			yaml_add(&b, str_c(json_string_value(json_array_get(pair, 0))),
				 json_array_get(pair, 1));
		CHECK(!b.full && read_pairs(buf_str(&b), &again, a));
		CHECK(json_equal(first.all, again.all));
		json_decref(again.all);
	}
	json_decref(first.all);
	buf_free(&b);
}

/* false: it is not a task. */
static bool read_task(struct str text, bool whole, struct plain *p, struct arena *a)
{
	struct yaml_fault fault = { 0 };
	struct parcel parcel = { 0 };

	plain_start(p, when_parse, whole, a);
	if (task_md_parse(text, STR("t7_seven.md"), p, &fault)) {
		CHECK(fault.text.n);
		return false;
	}
	if (plain_end(p))
		return false;
	parcel.task = p->task;
	parcel.comments = p->comments;
	parcel.n_comments = p->n_comments;
	return parcel_fault(&parcel, a) == NULL;
}

static void check_task(struct str text, bool whole, struct arena *a)
{
	struct buf b = BUF_MAX(1 << 24);
	struct plain first, again;

	if (read_task(text, whole, &first, a)) {
		task_md_write(&first.task, first.comments, first.n_comments, whole, &b, a);
		CHECK(!b.full && read_task(buf_str(&b), whole, &again, a));
		CHECK(same_task(&first.task, &again.task));
		CHECK(first.n_comments == again.n_comments);
		for (size_t i = 0; i < first.n_comments; i++)
			CHECK(same_event(&first.comments[i], &again.comments[i]) &&
			      first.comments[i].at == again.comments[i].at);
	}
	buf_free(&b);
}

/* An item is inside an earlier one, and its texts are valid. */
static void check_plan(struct str text, struct arena *a)
{
	struct yaml_fault fault = { 0 };
	struct plan plan;

	if (plan_read(text, &plan, &fault, a)) {
		CHECK(fault.line > 0 && fault.text.n);
		return;
	}
	for (size_t i = 0; i < plan.n; i++) {
		CHECK(plan.items[i].title.n && text_valid(plan.items[i].title));
		CHECK(text_valid(plan.items[i].description));
		CHECK(plan.items[i].under <= i && plan.items[i].line > 0);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena a = { 0 };
	struct str text = str_n((const char *)data, size);

	if (!size)
		return 0;
	text = str_n(text.p + 1, text.n - 1);
	check_yaml(text, &a);
	check_task(text, data[0] & 1, &a);
	check_plan(text, &a);
	arena_free(&a);
	return 0;
}

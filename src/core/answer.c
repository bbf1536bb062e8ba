/*
 * Builds refusals and short answers, and looks up result codes (core/result.def). answer_brief()
 * shortens the answer to a change that is too long to send, so that its caller still gets the
 * result, the lock and the version.
 */
#include <stddef.h>

#include "core/answer.h"
#include "core/result.h"

enum result answer_fail(struct answer *ans, enum result code, struct str message, struct str hint)
{
	ans->code = code;
	ans->message = message;
	ans->hint = hint;
	return code;
}

enum result answer_too_long(struct answer *ans)
{
	return answer_fail(ans, USAGE, STR("the answer would be too long to send"),
			   STR("ask for less: --limit N, or a filter"));
}

void task_drop_texts(struct task *t)
{
	t->description = t->acceptance = t->summary = t->blocker_reason = t->unblock_action =
		t->extra = STR("");
	t->labels = t->depends = (struct strs){ 0 };
}

size_t answer_tasks(const struct answer *ans)
{
	return ans->n_tasks ? ans->n_tasks : ans->task != NULL;
}

static struct task *without_texts(const struct task *t, struct arena *a)
{
	struct task *brief;

	if (!t)
		return NULL;
	brief = arena_new(a, struct task);
	*brief = *t;
	task_drop_texts(brief);
	return brief;
}

struct answer answer_brief(const struct answer *ans, struct arena *a)
{
	struct answer brief = *ans;

	brief.task = without_texts(ans->task, a);
	brief.next = without_texts(ans->next, a);
	brief.tasks = NULL;
	brief.events = NULL;
	brief.candidates = NULL;
	brief.standing = NULL;
	brief.allowed = NULL;
	brief.related = NULL;
	brief.n_tasks = brief.n_events = brief.n_candidates = brief.n_allowed = 0;
	brief.warnings = arena_append(
		a, (struct strs){ 0 },
		STR("the answer was too long: texts, labels and dependencies are left out; pawl show has them"));
	return brief;
}

/* --- result ----------------------------------------------------------------------------------- */

struct row {
	enum result code;
	int http;
	const char *name, *text;
};

static const struct row rows[] = {
#define RESULT(name, exit, http, text) { name, http, #name, text },
#include "core/result.def"
#undef RESULT
};

/* The loop terminates because every enum value has a row. */
static const struct row *result_find(enum result r)
{
	const struct row *row = rows;

	while (row->code != r)
		row++;
	return row;
}

bool result_known(int64_t code)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		if ((int64_t)rows[i].code == code)
			return true;
	return false;
}

const char *result_name(enum result r)
{
	return result_find(r)->name;
}

const char *result_text(enum result r)
{
	return result_find(r)->text;
}

int result_http(enum result r)
{
	return result_find(r)->http;
}

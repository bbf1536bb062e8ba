#include "core/answer.h"

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

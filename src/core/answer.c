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

static struct task *without_texts(const struct task *t, struct arena *a)
{
	struct task *brief;

	if (!t)
		return NULL;
	brief = arena_new(a, struct task);
	*brief = *t;
	brief->description = brief->acceptance = brief->summary = brief->blocker_reason =
		brief->unblock_action = brief->extra = STR("");
	brief->labels = brief->depends = (struct strs){ 0 };
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
	brief.related = NULL;
	brief.n_tasks = brief.n_events = brief.n_candidates = 0;
	brief.warnings = arena_append(
		a, (struct strs){ 0 },
		STR("the answer was too long: texts, labels and dependencies are left out; pawl show has them"));
	return brief;
}

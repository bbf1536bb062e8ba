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

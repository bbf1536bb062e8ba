#include "core/answer.h"

enum result answer_fail(struct answer *ans, enum result code, struct str message, struct str hint)
{
	ans->code = code;
	ans->message = message;
	ans->hint = hint;
	return code;
}

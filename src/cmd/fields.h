/* Checks the options of cmd/fields.def. */
#ifndef CMD_FIELDS_H
#define CMD_FIELDS_H

#include "cmd/command.h"

/* delay and not_before set the same field, so only one of them may be given. Returns NULL, or the reason for a
 * refusal. */
const char *fields_fault(const struct request *rq);

#endif

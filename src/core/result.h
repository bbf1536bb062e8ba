/*
 * result: the result of a call. result.def lists all results; their values are the exit codes.
 */
#ifndef CORE_RESULT_H
#define CORE_RESULT_H

#include <stdbool.h>
#include <stdint.h>

enum result {
#define RESULT(name, exit, http, text) name = exit,
#include "core/result.def"
#undef RESULT
};

/* Is `code` one of enum result? */
bool result_known(int64_t code);
const char *result_name(enum result r);
const char *result_text(enum result r);
int result_http(enum result r);

#endif

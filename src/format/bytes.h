/*
 * bytes: any bytes as JSON, and back. A string, or {"hex": …} for bytes that are not valid text: none is lost.
 */
#ifndef FORMAT_BYTES_H
#define FORMAT_BYTES_H

#include <jansson.h>

#include "base/arena.h"

json_t *bytes_json(struct str s);
bool bytes_parse(const json_t *v, struct str *out, struct arena *a);

#endif

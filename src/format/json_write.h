/*
 * json_write: JSON as compact text, byte for byte as jansson writes it (JSON_COMPACT, JSON_ENCODE_ANY,
 * JSON_REAL_PRECISION(15)), in about a third of the instructions: it copies a text in runs and does not decode it again.
 * The texts of a json_t are valid UTF-8, because json_stringn() refuses others.
 */
#ifndef FORMAT_JSON_WRITE_H
#define FORMAT_JSON_WRITE_H

#include <jansson.h>

#include "base/buf.h"

void json_write(const json_t *v, struct buf *out);

#endif

/*
 * yaml: converts a YAML mapping to JSON values, and back. It accepts one document, refuses aliases, and limits nesting
 * and keys. yaml_read() reads the text of yaml_add() as the same value.
 */
#ifndef FORMAT_YAML_H
#define FORMAT_YAML_H

#include <jansson.h>

#include "base/arena.h"
#include "base/buf.h"

#define YAML_DEPTH 32
#define YAML_KEY_MAX 128
#define YAML_MAX (16u << 20) /* bytes */
#define YAML_PARTS 250000    /* words, lists and mappings: each needs memory */

struct yaml_fault {
	size_t line; /* the first line is 1 */
	struct str text;
};

/* Gets each key of the outermost mapping; 0: continue, else yaml_read() returns it. */
typedef int yaml_key_fn(void *ctx, struct str key, json_t *value, size_t line);
/* 0, -EBADMSG with *fault, or the result of `fn`. A text without a document is an empty mapping. A text that exceeds a
 * limit is refused as soon as it reaches the limit, so its memory is bounded. */
int yaml_read(struct str text, yaml_key_fn *fn, void *ctx, struct yaml_fault *fault,
	      struct arena *a);

/* Can yaml_add() write it so that yaml_read() returns the same? */
bool yaml_able(const json_t *value);
bool yaml_able_key(struct str key);
/* Adds "key: value" and a newline. A text of several lines, or a list of mappings, becomes a block. */
void yaml_add(struct buf *out, struct str key, const json_t *value);

#endif

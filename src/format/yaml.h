/*
 * yaml: a YAML mapping as JSON values, and back. One document; aliases are refused, nesting and keys are
 * limited. What yaml_add() writes, yaml_read() reads as the same value.
 */
#ifndef FORMAT_YAML_H
#define FORMAT_YAML_H

#include <jansson.h>

#include "base/arena.h"
#include "base/buf.h"

#define YAML_DEPTH 32
#define YAML_KEY_MAX 128
#define YAML_MAX (16u << 20) /* bytes */
#define YAML_PARTS 250000    /* words, lists and mappings: each costs memory */

struct yaml_fault {
	size_t line; /* 1 is the first of the text */
	struct str text;
};

/* One key of the outermost mapping; 0: go on, else yaml_read() returns it. */
typedef int yaml_key_fn(void *ctx, struct str key, json_t *value, size_t line);
/* 0, -EBADMSG with *fault, or what `fn` said. No document at all is an empty mapping. A text that passes a limit is
 * refused before it costs more memory than that. */
int yaml_read(struct str text, yaml_key_fn *fn, void *ctx, struct yaml_fault *fault,
	      struct arena *a);

/* Could yaml_add() write it so that it reads back? */
bool yaml_able(const json_t *value);
bool yaml_able_key(struct str key);
/* "key: value" and a newline. A text of several lines, or a list of mappings, becomes a block. */
void yaml_add(struct buf *out, struct str key, const json_t *value);

#endif

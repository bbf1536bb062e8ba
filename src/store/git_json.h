/* What git_record.c and git_message.c share: the parts of a message. */
#ifndef STORE_GIT_JSON_H
#define STORE_GIT_JSON_H

#include <jansson.h>

#include "store/git.h"

/* A string, or {"hex": …} for bytes that are no text. */
json_t *git_bytes_json(struct str s);
bool git_bytes_parse(const json_t *v, struct str *out, struct arena *a);
/* All of it but the body. */
json_t *git_record_json(const struct record *r, struct arena *a);
bool git_record_parse(const json_t *o, struct record *r, struct arena *a);

#endif

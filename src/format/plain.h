/*
 * plaincodec: a task in people's words, with its comments, as JSON values key by key: what export writes
 * and import reads, whatever the format around it. Times are ISO 8601; other programs' names for fields are
 * known (issue_type, assigned_to, completed_at); a number where an id belongs means t and that number. Keys
 * that mean nothing here are kept in `extra`.
 */
#ifndef FORMAT_PLAIN_H
#define FORMAT_PLAIN_H

#include <jansson.h>

#include "core/event.h"
#include "core/field.h"

/* A time as people write it; when_parse() knows the local zone, which is not for `core` to know. */
typedef bool plain_when_fn(struct str text, int64_t *ms);

struct plain {
	struct task task;
	struct event *comments;
	size_t n_comments;
	json_t *others; /* NULL: none */
	/* how */
	plain_when_fn *when;
	bool whole; /* with what is hidden as well: locks, token hashes */
	struct arena *arena;
};

/* The value of a field; NULL if it has none. */
json_t *plain_value(const struct field *f, const struct task *t, struct arena *a);
/* Is the field written at all? */
bool plain_written(const struct field *f, bool whole);
/* Would reading this key set something of a task? */
bool plain_known(struct str key, bool whole);
json_t *plain_comments(const struct event *comments, size_t n, struct arena *a);
/* extra as an object, if it is one that reads back as the same bytes; else NULL. */
json_t *plain_extra(const struct task *t);

/* Ready, Standard, of default priority; nothing else. */
void plain_start(struct plain *p, plain_when_fn *when, bool whole, struct arena *a);
/* NULL, or what is wrong with the value. */
const char *plain_set(struct plain *p, struct str key, const json_t *v);
/* After the last key; NULL, or what is wrong. Instead of it, where no more keys come: plain_abort(). */
const char *plain_end(struct plain *p);
void plain_abort(struct plain *p);

#endif

/*
 * plain: a task in plain words, with its comments, as one JSON value for each key. All formats of export and import
 * use it. Times are ISO 8601. It accepts other programs' names for fields (issue_type, assigned_to, completed_at), and
 * a number as an id: 109 is t109. It keeps unknown keys in `extra`.
 */
#ifndef FORMAT_PLAIN_H
#define FORMAT_PLAIN_H

#include <jansson.h>

#include "core/event.h"
#include "core/field.h"

/* Parses a time as people write it. when_parse() depends on the local time zone, so the caller passes it in. */
typedef bool plain_when_fn(struct str text, int64_t *ms);

struct plain {
	struct task task;
	struct event *comments;
	size_t n_comments;
	json_t *others; /* values of unknown keys; NULL: none */
	/* options */
	plain_when_fn *when;
	bool whole; /* also write the hidden fields: locks, token hashes */
	struct arena *arena;
};

/* The value of a field; NULL if it has none. */
json_t *plain_value(const struct field *f, const struct task *t, struct arena *a);
/* Does export write the field? */
bool plain_written(const struct field *f, bool whole);
/* Does plain_set() know this key? */
bool plain_known(struct str key, bool whole);
json_t *plain_comments(const struct event *comments, size_t n, struct arena *a);
/* `extra` as an object, if the object reads back as the same bytes; else NULL. */
json_t *plain_extra(const struct task *t);

/* Starts with a task that is Ready and Standard and has the default priority. */
void plain_start(struct plain *p, plain_when_fn *when, bool whole, struct arena *a);
/* NULL, or a message about the value. */
const char *plain_set(struct plain *p, struct str key, const json_t *v);
/* After the last key: NULL, or a message. After an error call plain_abort() instead. */
const char *plain_end(struct plain *p);
void plain_abort(struct plain *p);

#endif

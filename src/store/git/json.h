/* What git/record.c and git/message.c share: the parts of a message. */
#ifndef STORE_GIT_JSON_H
#define STORE_GIT_JSON_H

#include <jansson.h>

#include "store/git/git.h"

/* A string, or {"hex": …} for bytes that are no text. */
json_t *git_bytes_json(struct str s);
bool git_bytes_parse(const json_t *v, struct str *out, struct arena *a);
/* The parts of an index, in the order of their numbers in git/memo.c: new ones come last. */
struct git_field {
	const char *name; /* NULL: the end */
	size_t offset;
	bool wide;
};

enum { GIT_INDEX_NUMBERS = 8, GIT_INDEX_TEXTS = 5 };
extern const struct git_field git_index_numbers[], git_index_texts[];
int64_t git_index_number(const struct index *ix, const struct git_field *f);
void git_index_set(struct index *ix, const struct git_field *f, int64_t n);
struct str *git_index_text(struct index *ix, const struct git_field *f);

/* All of it but the body. */
json_t *git_record_json(const struct record *r, struct arena *a);
/* *due_known: whether the index has the due date; one of version 0.1.0 has it only in the body. */
bool git_record_parse(const json_t *o, struct record *r, bool *due_known, struct arena *a);

#endif

/* The parts of a commit message that git/record.c and git/message.c share. */
#ifndef STORE_GIT_JSON_H
#define STORE_GIT_JSON_H

#include <jansson.h>

#include "store/git/git.h"

/* The fields of an index. Their position is their tag in git/memo.c, so new fields come last. */
struct git_field {
	const char *name; /* NULL: the last one */
	size_t offset;
	bool wide;
};

enum { GIT_INDEX_NUMBERS = 8, GIT_INDEX_TEXTS = 5 };
extern const struct git_field git_index_numbers[], git_index_texts[];
int64_t git_index_number(const struct index *ix, const struct git_field *f);
void git_index_set(struct index *ix, const struct git_field *f, int64_t n);
struct str *git_index_text(struct index *ix, const struct git_field *f);

/* The whole record except its body. */
json_t *git_record_json(const struct record *r, struct arena *a);
/* *older: pawl 0.1 wrote the record. */
bool git_record_parse(const json_t *o, struct record *r, bool *older, struct arena *a);

#endif

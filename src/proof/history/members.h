/*
 * fields: the objects of a history line as tables, for writing and for reading alike. A field that has no
 * value is not written; a key that no table has is an error when it is read.
 */
#ifndef HISTORY_FIELDS_H
#define HISTORY_FIELDS_H

#include <jansson.h>

#include "base/arena.h"
#include "core/answer.h"
#include "core/request.h"
#include "proof/history/history.h"
#include "proof/history/tally.h"

/* What tells a token's owner from another without showing it. */
#define MARK_LEN 16

enum field_kind {
	FIELD_STR,
	FIELD_INT,
	FIELD_SEED, /* any 64 bits */
	FIELD_FLAG, /* an int64_t that is 0 or 1 */
	FIELD_BOOL,
	FIELD_LIST,
	FIELD_STATUS,
	FIELD_CLASS,
	FIELD_CODE,  /* enum result */
	FIELD_MARK,  /* the raw hash of a token, written as its first hex digits */
	FIELD_TOKEN, /* a token, written as the first hex digits of its hash */
	FIELD_APPLIED
};

struct field {
	const char *name;
	enum field_kind kind;
	bool always; /* written whatever its value, and needed when read */
	size_t offset;
};

extern const struct field head_fields[], policy_fields[], task_fields[], lock_fields[],
	grant_fields[], answer_fields[];

void fields_write(json_t *o, const struct field *fields, const void *from, struct arena *a);

struct reader {
	struct arena *arena;
	struct str why; /* empty: nothing was wrong yet */
	struct tally words;
};

/* Every key of `o` that is not in `others` (names, ends with NULL) is a field of `to`. false: see why. */
bool fields_read(struct reader *r, const json_t *o, const struct field *fields,
		 const char *const *others, void *to);
bool reader_fail(struct reader *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* One copy of each text, however often it is in the file. */
struct str reader_word(struct reader *r, struct str s);
bool read_int(struct reader *r, const char *name, const json_t *v, int64_t *out);
bool read_str(struct reader *r, const char *name, const json_t *v, struct str *out);
bool read_list(struct reader *r, const char *name, const json_t *v, struct strs *out);
void reader_free(struct reader *r);

json_t *head_json(const struct history_head *head);
struct str token_mark(struct arena *a, struct str token);

#endif

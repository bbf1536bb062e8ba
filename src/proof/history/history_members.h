/*
 * members: tables of the objects in a history line, used for both writing and reading. A member
 * without a value is not written. On reading, a key that is not in the table is an error.
 */
#ifndef PROOF_HISTORY_HISTORY_MEMBERS_H
#define PROOF_HISTORY_HISTORY_MEMBERS_H

#include <jansson.h>

#include "base/arena.h"
#include "core/answer.h"
#include "core/request.h"
#include "proof/history/history.h"

/* A token's mark tells it from other tokens and does not reveal it. */
#define MARK_LEN 16

enum member_kind {
	MEMBER_STR,
	MEMBER_INT,
	MEMBER_SEED, /* any 64 bits */
	MEMBER_FLAG, /* an int64_t that is 0 or 1 */
	MEMBER_BOOL,
	MEMBER_LIST,
	MEMBER_STATUS,
	MEMBER_CLASS,
	MEMBER_CODE,  /* enum result */
	MEMBER_MARK,  /* the raw hash of a token, written as its first hex digits */
	MEMBER_TOKEN, /* a token, written as the first hex digits of its hash */
	MEMBER_APPLIED
};

struct member {
	const char *name;
	enum member_kind kind;
	bool always; /* written even without a value, and required when read */
	size_t offset;
};

extern const struct member head_members[], policy_members[], task_members[], lock_members[],
	grant_members[], notice_members[], answer_members[];

void members_write(json_t *o, const struct member *members, const void *from, struct arena *a);

struct reader {
	struct arena *arena;
	struct str why; /* empty: no error so far */
	struct tally words;
};

/* Reads every key of `o`, except `others` (names, ends with NULL), into a member of `to`. false: see
 * `why`. */
bool members_read(struct reader *r, const json_t *o, const struct member *members,
		  const char *const *others, void *to);
bool reader_fail(struct reader *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
bool read_int(struct reader *r, const char *name, const json_t *v, int64_t *out);
bool read_str(struct reader *r, const char *name, const json_t *v, struct str *out);
bool read_list(struct reader *r, const char *name, const json_t *v, struct strs *out);
void reader_free(struct reader *r);

json_t *head_json(const struct history_head *head);
struct str token_mark(struct arena *a, struct str token);

#endif

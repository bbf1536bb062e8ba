/*
 * field: the task fields (task.def) as a table, for encoders and decoders.
 */
#ifndef CORE_FIELD_H
#define CORE_FIELD_H

#include "core/task.h"

enum field_kind {
	FIELD_STR,
	FIELD_INT,
	FIELD_STATUS,
	FIELD_CLASS,
	FIELD_TIME,
	FIELD_DATE,
	FIELD_LIST,
	FIELD_JSON
};
enum field_part { HOT = 1, BODY = 2 };
enum field_shown { HIDDEN, COUNTED, SOME, ALWAYS };
#define FIELD_FIND 1u /* `pawl find` searches it */

struct field {
	uint8_t tag, part, kind, shown;
	uint8_t uses;   /* set of FIELD_ uses */
	uint32_t limit; /* a text's bytes, or a number's maximum; 0: the limit of its kind */
	const char *name;
	size_t offset;
};

enum {
	N_FIELDS = 0
#define FIELD(tag, part, kind, member, name, shown, limit, uses) +1
#include "core/task.def"
};

/* Each field's tag, by name: TAG_title. */
enum field_tag {
#define FIELD(tag, part, kind, member, name, shown, limit, uses) TAG_##name = (tag),
#include "core/task.def"
};

extern const struct field field_table[N_FIELDS];

static inline const void *field_of(const struct field *f, const struct task *t)
{
	return (const char *)t + f->offset;
}

static inline void *field_at(const struct field *f, struct task *t)
{
	return (char *)t + f->offset;
}

/* NULL: there is no field with that name. */
const struct field *field_find(struct str name);

#endif

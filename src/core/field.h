/*
 * field: the fields of a task (task.def) as a table, for encoders and decoders.
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

struct field {
	uint8_t tag, part, kind, shown;
	const char *name;
	size_t offset;
};

enum {
	N_FIELDS = 0
#define FIELD(tag, part, kind, member, json, shown) +1
#include "core/task.def"
#undef FIELD
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

#include "core/field.h"

#include "base/secret.h"

#define FIND FIELD_FIND
#define LIMIT_NONE 0
#define LIMIT_NAME NAME_MAX_BYTES
#define LIMIT_TITLE TITLE_MAX
#define LIMIT_TEXT TEXT_MAX
#define LIMIT_HASH HASH_LEN
#define LIMIT_PRIORITY PRIORITY_MAX

const struct field field_table[N_FIELDS] = {
#define FIELD(tag, part, kind, member, name, shown, limit, uses)                 \
	{                                                                        \
		tag,  part,          FIELD_##kind, shown,                        \
		uses, LIMIT_##limit, #name,        offsetof(struct task, member) \
	},
#include "core/task.def"
};

const struct field *field_find(struct str name)
{
	for (size_t i = 0; i < N_FIELDS; i++)
		if (str_is(name, field_table[i].name))
			return &field_table[i];
	return NULL;
}

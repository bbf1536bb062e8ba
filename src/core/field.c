#include "core/field.h"

const struct field field_table[N_FIELDS] = {
#define FIELD(tag, part, kind, member, json, shown) \
	{ tag, part, FIELD_##kind, shown, json, offsetof(struct task, member) },
#include "core/task.def"
#undef FIELD
};

const struct field *field_find(struct str name)
{
	for (size_t i = 0; i < N_FIELDS; i++)
		if (str_is(name, field_table[i].name))
			return &field_table[i];
	return NULL;
}

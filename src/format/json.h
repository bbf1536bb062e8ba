/* json_value: texts in and out of JSON values. */
#ifndef FORMAT_JSON_H
#define FORMAT_JSON_H

#include <jansson.h>
#include <stdlib.h>

#include "base/arena.h"

/* Memory of one value that json_values() counts, about: an empty object has three bytes as text. */
#define JSON_VALUE_MEMORY 256
#define JSON_TEXT_MEMORY 96 /* of a short text in a list */

/* Without memory, jansson must end the process: half an object must not become an event or a file. A program that has set
 * its own allocator keeps it. */
static inline void json_must_allocate(void)
{
	json_malloc_t alloc;
	json_free_t release;

	json_get_alloc_funcs(&alloc, &release);
	if (alloc == malloc && release == free)
		json_set_alloc_funcs(mem_alloc, free);
}

static inline json_t *json_str(struct str s)
{
	return json_stringn(str_p(s), s.n);
}

/* Adds the member, unless the text is empty. */
static inline void json_set_text(json_t *o, const char *key, struct str s)
{
	if (s.n)
		json_object_set_new(o, key, json_str(s));
}

/* Empty: it is not a text. */
static inline struct str json_text(const json_t *string)
{
	return str_n(json_string_value(string), json_string_length(string));
}

/* The text of a member. */
static inline struct str json_get(const json_t *o, const char *key)
{
	return json_text(json_object_get(o, key));
}

#endif

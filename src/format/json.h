/* json_value: texts in and out of JSON values. */
#ifndef FORMAT_JSON_H
#define FORMAT_JSON_H

#include <jansson.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "format/record_form.h"

/* The approximate memory of one value that json_values() counts. As text, an empty object has only
 * three bytes. */
#define JSON_VALUE_MEMORY 256
#define JSON_TEXT_MEMORY 96 /* of a short text in a list */

/* Makes jansson end the process when memory runs out, because half an object must not become an
 * event or a file. A program that has set its own allocator keeps it. */
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

/* --- json text -------------------------------------------------------------------------------- */

/*
 * json_text: changes the text of a JSON file, and keeps every other byte. The file may have comments and trailing
 * commas (format/json.h).
 *
 * Removing an added value restores the file byte for byte. An added value goes after the last value of its object or
 * array, and after the comments on that value's line. If the last value has a trailing comma, the added one gets one,
 * too. In an existing empty object, a blank or a comment precedes the first member. In an object that json_text made
 * for the value, a newline or nothing precedes it. So a removal can distinguish pawl's objects, which it removes with
 * their last member, from the user's.
 */

#define JSON_PLACE_KEYS 3

/* A place: keys, the outermost first; the rest is NULL. */
struct json_place {
	const char *key[JSON_PLACE_KEYS];
	bool element; /* the value is an element of the array at that place; else it is the value there */
};

/* NULL if the text is a JSON object, else a message. The functions below need that NULL, or an empty text. */
const char *json_text_fault(struct str text, struct arena *a);
/* text: "" for a file that does not exist yet. */
enum text_change json_text_add(struct str text, const struct json_place *at, const json_t *value,
			       struct str *out, struct arena *a);
/* A new reference to the value at the place; NULL: there is none. For an element, the whole
 * array. */
json_t *json_text_get(struct str text, const struct json_place *at);
/* Puts `value` in the place of `old`. TEXT_SAME or TEXT_OTHER: `old` is not there. */
enum text_change json_text_replace(struct str text, const struct json_place *at, const json_t *old,
				   const json_t *value, struct str *out, struct arena *a);
/* Removes the value at the place if it equals `value`. */
enum text_change json_text_remove(struct str text, const struct json_place *at, const json_t *value,
				  struct str *out, struct arena *a);

/* --- json write ------------------------------------------------------------------------------- */

/*
 * json_write: JSON as compact text, byte for byte as jansson writes it (JSON_COMPACT, JSON_ENCODE_ANY,
 * JSON_REAL_PRECISION(15)), in about a third of the instructions: it copies a text in runs and does not decode it again.
 * The texts of a json_t are valid UTF-8, because json_stringn() refuses others.
 */

void json_write(const json_t *v, struct buf *out);

/* --- json scan -------------------------------------------------------------------------------- */

/*
 * json_scan: the positions of the values in a text of JSON. Comments, trailing commas and a byte order mark are
 * allowed, as the settings of editors have them (JSONC).
 */

/* The bytes of comments in a map; outside of strings, JSON has no such bytes. */
#define JSON_NOTE '#'      /* of a comment with an end of its own */
#define JSON_LINE_NOTE '/' /* of a comment that ends with its line */

/* Three views of the same length, so a position in one is a position in all. */
struct json_doc {
	struct str text;    /* the file itself */
	const char *map;    /* each byte of a comment is JSON_NOTE or JSON_LINE_NOTE */
	const char *strict; /* JSON without comments and trailing commas: blanks replace them */
};

/* One member of an object, or element of an array. */
struct json_item {
	size_t from;       /* start of its key, or of the element */
	size_t value, end; /* start and end of its value */
	size_t before;     /* end of the value before it, or of the opening bracket */
	bool first;
};

/* Fills *d. Returns NULL if the text is an object, else a message. */
const char *json_scan(struct str text, struct json_doc *d, struct arena *a);
/* Fills *d without checks, for a text that json_scan() has accepted. The functions below need
 * *d. */
void json_views(struct str text, struct json_doc *d, struct arena *a);
/* Is this byte of a map part of a comment? */
static inline bool json_is_note(char c)
{
	return c == JSON_NOTE || c == JSON_LINE_NOTE;
}
/* The position after blanks and comments. */
size_t json_skip(const struct json_doc *d, size_t at);
/* The start of the blanks before a position; a comment ends them. */
size_t json_lead(const struct json_doc *d, size_t at);
/* The item after `behind`, which is the end of an item or of the opening bracket. */
bool json_next(const struct json_doc *d, size_t behind, bool object, struct json_item *i);
json_t *json_value_of(const struct json_doc *d, const struct json_item *i);
bool json_find_key(const struct json_doc *d, size_t container, const char *key,
		   struct json_item *i);
bool json_find_value(const struct json_doc *d, size_t container, const json_t *value,
		     struct json_item *i);

#endif

/*
 * json_scan: the positions of the values in a text of JSON. Comments, trailing commas and a byte order mark are
 * allowed, as the settings of editors have them (JSONC).
 */
#ifndef FORMAT_JSON_SCAN_H
#define FORMAT_JSON_SCAN_H

#include <jansson.h>

#include "base/arena.h"

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
/* The same for a text that json_scan() has accepted, which it does not check again. The other functions need it. */
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

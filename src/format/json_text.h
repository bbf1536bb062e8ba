/*
 * json_text: changes the text of a JSON file, and keeps every other byte. The file may have comments and trailing
 * commas (format/json_scan.h).
 *
 * Removing an added value restores the file byte for byte. An added value goes after the last value of its object or
 * array, and after the comments on that value's line. If the last value has a trailing comma, the added one gets one,
 * too. In an existing empty object, a blank or a comment precedes the first member. In an object that json_text made
 * for the value, a newline or nothing precedes it. So a removal can distinguish pawl's objects, which it removes with
 * their last member, from the user's.
 */
#ifndef FORMAT_JSON_TEXT_H
#define FORMAT_JSON_TEXT_H

#include <jansson.h>

#include "format/text_change.h"

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
/* The value at the place, of which the caller gets a reference; NULL: there is none. Of an element, its array. */
json_t *json_text_get(struct str text, const struct json_place *at);
/* Puts `value` in the place of `old`. TEXT_SAME or TEXT_OTHER: `old` is not there. */
enum text_change json_text_replace(struct str text, const struct json_place *at, const json_t *old,
				   const json_t *value, struct str *out, struct arena *a);
/* Removes the value at the place if it equals `value`. */
enum text_change json_text_remove(struct str text, const struct json_place *at, const json_t *value,
				  struct str *out, struct arena *a);

#endif

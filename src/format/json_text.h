/*
 * json_text: changes in the text of a JSON file that leave every other byte as it is.
 *
 * What was added can be taken out again to the byte: it goes directly behind the last value of its object
 * or array, and from there it is taken. An object that was there and was empty gets its first member with
 * one blank before it; those that were made along the way have a newline or nothing there. So one can tell
 * what has to go with the last member and what was the user's.
 */
#ifndef FORMAT_JSON_TEXT_H
#define FORMAT_JSON_TEXT_H

#include <jansson.h>

#include "format/text_change.h"

/* A place: up to three keys, from the outside to the inside; the rest is NULL. */
struct json_place {
	const char *key[3];
	bool element; /* of the array at that place; else the value at that place itself */
};

/* NULL if it is the text of a JSON object, else what is wrong. */
const char *json_text_fault(struct str text, struct arena *a);
/* text: "" for a file that is not there yet. */
enum text_change json_text_add(struct str text, const struct json_place *at, const json_t *value,
			       struct str *out, struct arena *a);
/* Takes it out if it is exactly this. */
enum text_change json_text_remove(struct str text, const struct json_place *at, const json_t *value,
				  struct str *out, struct arena *a);

#endif

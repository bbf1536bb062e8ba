/*
 * section: a part of somebody else's file, between two marks, at its end when it is new. A newline before it
 * belongs to it, so that taking it out leaves the file as it was to the byte.
 */
#ifndef FORMAT_SECTION_H
#define FORMAT_SECTION_H

#include "format/text_change.h"

struct section {
	const char *begin, *end; /* what the first and the last line begin with */
	const char *text;        /* the whole, marks included; ends with a newline */
};

/* exists: is there a file? An empty one is not the same as none. */
enum text_change section_add(struct str text, bool exists, const struct section *s, struct str *out,
			     struct arena *a);
enum text_change section_remove(struct str text, const struct section *s, struct str *out,
				struct arena *a);

#endif

/*
 * section: pawl's part of a user's file, between two marks. A new section goes to the end of the file. The newline
 * before it belongs to it, so a removal restores the file byte for byte.
 */
#ifndef FORMAT_SECTION_H
#define FORMAT_SECTION_H

#include "format/record_form.h"

struct section {
	const char *begin, *end; /* beginnings of the first and the last line */
	const char *text;        /* the whole section with its marks; ends with a newline */
};

/* exists: the file exists; an empty file differs from a missing one. */
enum text_change section_add(struct str text, bool exists, const struct section *s, struct str *out,
			     struct arena *a);
enum text_change section_remove(struct str text, const struct section *s, struct str *out,
				struct arena *a);

#endif

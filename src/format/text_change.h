/* The result of a change in the text of a file. */
#ifndef FORMAT_TEXT_CHANGE_H
#define FORMAT_TEXT_CHANGE_H

#include "base/arena.h"

enum text_change {
	TEXT_CHANGED, /* there is a new text */
	TEXT_SAME,    /* nothing to do */
	TEXT_OTHER,   /* the place holds another value, which stays */
	TEXT_EMPTY,   /* only parts that pawl made are left: the caller can remove the file */
	TEXT_UNFIT    /* the structure of the file does not allow the change */
};

#endif

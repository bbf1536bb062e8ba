/* What comes of a change in the text of a file. */
#ifndef FORMAT_TEXT_CHANGE_H
#define FORMAT_TEXT_CHANGE_H

#include "base/arena.h"

enum text_change {
	TEXT_CHANGED, /* there is a new text */
	TEXT_SAME,    /* nothing to do */
	TEXT_OTHER,   /* something else is in its place, and stays */
	TEXT_EMPTY,   /* nothing is left but what had been made for it: the file can go */
	TEXT_UNFIT    /* the file is not built so that it could be changed */
};

#endif

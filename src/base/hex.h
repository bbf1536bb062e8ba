/*
 * hex: digits of base 16, in lower case as pawl writes them.
 */
#ifndef BASE_HEX_H
#define BASE_HEX_H

#include "base/arena.h"

int hex_digit(char c); /* -1: not a digit */
/* The bytes, in `a`. false: the text is not pairs of digits. */
bool hex_bytes(struct str hex, struct str *out, struct arena *a);

#endif

/* digit: the ASCII digits. isdigit() of the C library depends on the locale. */
#ifndef BASE_DIGIT_H
#define BASE_DIGIT_H

#include <stdbool.h>

static inline bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

#endif

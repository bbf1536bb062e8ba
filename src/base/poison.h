/*
 * Makes the compiler refuse functions that write without a bound or parse without reporting errors.
 * meson.build includes this header before every source file (-include). The headers that declare
 * the functions come first: after the pragma their names must not appear at all.
 */
#ifndef PAWL_BASE_POISON_H
#define PAWL_BASE_POISON_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* clang's headers define these two as macros */
#undef sprintf
#undef vsprintf

#pragma GCC poison strcpy strcat sprintf vsprintf atoi atol strtok gets

#endif

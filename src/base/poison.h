/*
 * Functions that write without a bound or parse without an error are not used in this program.
 * This header is included before every source file (meson.build, -include), so that the compiler
 * itself refuses them. The headers that declare them come first: after the pragma their names may
 * not appear at all.
 */
#ifndef PAWL_BASE_POISON_H
#define PAWL_BASE_POISON_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* clang's headers make macros of these two */
#undef sprintf
#undef vsprintf

#pragma GCC poison strcpy strcat sprintf vsprintf atoi atol strtok gets

#endif

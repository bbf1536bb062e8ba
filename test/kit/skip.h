/*
 * Skips a test of cmocka and says why: cmocka has no words for it. tools/test-report reads the line. A reason that begins with
 * "needs" names a program or a right that this machine lacks.
 */
#ifndef TEST_KIT_SKIP_H
#define TEST_KIT_SKIP_H

#include <stdio.h>

#define skip_because(...) (printf("# skipped: " __VA_ARGS__), printf("\n"), fflush(stdout), skip())

#endif

/*
 * tty: the only way to standard output and standard error. A terminal obeys control characters, and texts of tasks,
 * servers, databases and files can have them. So on a terminal every character that could act on it or deceive its
 * reader is spelled out, except line breaks and tabs. Into a file or a pipe the bytes go as they are.
 *
 * test/cli/terminal.bats fails if another file of a face writes to these descriptors.
 */
#ifndef BASE_TTY_H
#define BASE_TTY_H

#include "base/str.h"

/* 0 or -errno. `text` must not end inside a character. */
int tty_write(int fd, struct str text);
/* The same for a text whose colours stay: pawl has spelled out everything else in it already. */
int tty_write_painted(int fd, struct str text);
/* A message for people: spelled out wherever it goes. */
void tty_print(int fd, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Replaces the last line of the terminal at standard error. */
void tty_line(struct str text);
/* Empties the terminal at standard output. */
void tty_clear(void);

#endif

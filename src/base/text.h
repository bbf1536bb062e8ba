/*
 * text: checks text that people wrote on the way in, and makes it harmless on the way out.
 */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/str.h"

/* The length of the character at the start of `s`, which is not empty; 0 if it is not UTF-8. */
size_t text_char(struct str s, uint32_t *out);
/* Folds case: spellings in upper and lower case give the same text, in any script. */
struct str text_fold(struct arena *a, struct str s);
/* Does `s` contain `part`, in any case? */
bool text_has(struct str s, struct str part);
/* Valid UTF-8 without NUL, surrogates or overlong forms. */
bool text_valid(struct str s);
/* Adds `s` with control, bidi and other invisible characters spelled out (\x1b, \u{202e}). Newlines
 * and tabs are kept if `lines`, otherwise spelled out as well. Bytes that are not UTF-8 become
 * \xNN. */
void text_visible(struct buf *b, struct str s, bool lines);
struct str text_line(struct arena *a, struct str s); /* text_visible on one line */
/* The width in columns on a terminal. */
size_t text_width(struct str s);
/* Cuts to at most `columns`, with an ellipsis. */
struct str text_cut(struct arena *a, struct str s, size_t columns);
/* One line in double quotes. A double quote in it, which would end them, becomes a single one. */
struct str text_quote(struct arena *a, struct str line);
/* The candidate that `word` most likely meant, or NULL; for "did you mean". */
const char *text_nearest(struct str word, const char *const *candidates, size_t n);

/* --- tty -------------------------------------------------------------------------------------- */

/*
 * tty: the only way to standard output and standard error. A terminal obeys control characters, and
 * texts from tasks, servers, databases and files can contain them. So on a terminal every character
 * that could act on it or deceive its reader is spelled out, except line breaks and tabs. Into a
 * file or a pipe the bytes go as they are.
 *
 * test/cli/terminal.bats fails if another file of a face writes to these descriptors.
 */

/* 0 or -errno. `text` must not end inside a character. */
int tty_write(int fd, struct str text);
/* tty_write() that keeps colours. pawl must have spelled out everything else in the text
 * already. */
int tty_write_painted(int fd, struct str text);
/* Writes a message for people, spelled out even into a file or a pipe. */
void tty_print(int fd, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Replaces the last line of the terminal at standard error. */
void tty_line(struct str text);
/* Empties the terminal at standard output. */
void tty_clear(void);

#endif

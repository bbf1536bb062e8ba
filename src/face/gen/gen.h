/*
 * gen: generates the texts about commands outside of the program from their table: man pages,
 * completions, the reference. Nobody writes them by hand.
 */
#ifndef FACE_GEN_GEN_H
#define FACE_GEN_GEN_H

#include "cmd/command.h"

/* "-t, --ttl DURATION", "ID", "ON..." */
void gen_param_name(struct buf *out, const struct param *p);
/* "pawl claim ID [--ttl DURATION]…", wrapped at `width`, later lines indented. Ends with a newline. */
void gen_usage(struct buf *out, const struct command *c, size_t width, size_t indent);
/* Words wrapped at `width`; the first line begins at column `at`. Ends with a newline. */
void gen_wrap(struct buf *out, const char *text, size_t indent, size_t width, size_t at);
/* The exit codes of a command, common ones included; returns their number (at most 16). */
size_t gen_codes(const struct command *c, enum result *out);

/* The man page of `word`, a command or the first word of several; NULL: that of pawl itself. */
void gen_man(struct buf *out, const char *word);
/* false: the shell is unknown. */
bool gen_completion(struct buf *out, struct str shell);
/* A cell of a Markdown table: one line, in which '|' does not end the cell and '<' does not begin a tag. */
void gen_cell(struct buf *out, struct str text);
void gen_reference(struct buf *out);  /* doc/commands.md */
void gen_settings(struct buf *out);   /* doc/settings.md */
void gen_codes_page(struct buf *out); /* doc/codes.md */

#endif

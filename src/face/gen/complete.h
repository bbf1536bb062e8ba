/* complete: what the three shells' scripts have in common. */
#ifndef FACE_GEN_COMPLETE_H
#define FACE_GEN_COMPLETE_H

#include "face/gen/gen.h"

/* How the shell gets the ids of tasks. */
#define IDS_COMMAND "pawl list --quiet --format text --limit 500 2>/dev/null"

enum completes {
	COMPLETES_NOTHING,
	COMPLETES_WORDS,
	COMPLETES_IDS,
	COMPLETES_FOLDERS,
	COMPLETES_COMMANDS
};

/* What a value of the parameter can be; the words themselves are param_choices(). */
enum completes completes(const struct param *p);
/* The first words of all commands, each once: calls fn with the word and the command (NULL if it has
 * several). */
typedef void word_fn(struct buf *out, struct str word, const struct command *c);
void each_word(struct buf *out, word_fn *fn);
/* The second word of the command's name, or NULL. */
const char *second_word(const struct command *c);
/* "--store|-C": those options that have a value */
void value_options(struct buf *out, const struct param *params, const char *between);

#endif

/* complete: the shared part of the scripts for three shells. */
#ifndef FACE_GEN_COMPLETE_H
#define FACE_GEN_COMPLETE_H

#include "face/gen/gen.h"

/* The command by which the shell gets ids, labels, holders or queues, one on each line. */
#define VALUES_COMMAND(kind) "pawl values " kind " --format text 2>/dev/null"

enum completes {
	COMPLETES_NOTHING,
	COMPLETES_WORDS,
	COMPLETES_IDS,
	COMPLETES_LABELS,
	COMPLETES_HOLDERS,
	COMPLETES_QUEUES,
	COMPLETES_FOLDERS,
	COMPLETES_COMMANDS
};

/* The kind of a parameter's value. */
enum completes completes(const struct param *p);
/* The words of COMPLETES_WORDS, with spaces between them. */
const char *completes_words(const struct param *p);
/* The argument of `pawl values`; NULL: the values are not in the queue. */
const char *completes_values(const struct param *p);

/* How a shell completes each kind of value; around the words, and around the argument of `pawl values`. */
struct completion {
	const char *words[2], *values[2], *folders, *commands, *nothing;
};

void completes_put(struct buf *out, const struct param *p, const struct completion *c);
/* Calls fn for the first word of all commands, each once, with the word and the command (NULL if several commands
 * share the word). */
typedef void word_fn(struct buf *out, struct str word, const struct command *c);
void each_word(struct buf *out, word_fn *fn);
/* The second word of the command's name, or NULL. */
const char *second_word(const struct command *c);
/* "--store|-C": the options that have a value */
void value_options(struct buf *out, const struct param *params, const char *between);

#endif

/*
 * cli: the command line. Answers go to standard output, written once; what a person should know besides
 * goes to standard error.
 */
#ifndef FACE_CLI_CLI_H
#define FACE_CLI_CLI_H

#include "cmd/command.h"

enum format { FORMAT_TEXT, FORMAT_JSON, FORMAT_PORCELAIN };

/* The exit code. */
int cli_main(int argc, char **argv);
/* One command line of this process. */
int cli_run(int argc, const char *const *argv, enum client_face face);

/* `pawl interactive` */
enum result prompt_run(struct session *s, const struct args *a, json_t **out);

/* Help on a topic, NULL-free; false: there is none of that name. */
bool help_topic(struct buf *out, struct strs topic);

/* An entry of doc/troubleshooting.md by its name, a code or a store's fault; false: there is none. */
bool trouble_topic(struct buf *out, struct str topic);
extern const char trouble_text[];

struct output {
	enum format format;
	bool color, color_err, quiet;
	size_t width;
	int fault; /* errno of the write that failed; 0: none */
};

/* Shows an answer. object may be NULL: all has been shown already. */
void output_answer(struct output *o, const struct command *c, enum result code,
		   const json_t *object, struct arena *a);
/* Shows one object of several. */
void output_one(struct output *o, const struct command *c, const json_t *object, struct arena *a);

/* The line protocol. */
void porcelain_answer(struct buf *out, const struct command *c, enum result code,
		      const json_t *object);
void porcelain_event(struct buf *out, const json_t *event);

#endif

/*
 * cli: the command line. Answers go to standard output, in one write; notes for a person go to standard error.
 */
#ifndef FACE_CLI_CLI_H
#define FACE_CLI_CLI_H

#include "cmd/command.h"

enum format { FORMAT_TEXT, FORMAT_JSON, FORMAT_PORCELAIN };

/* The exit code. */
int cli_main(int argc, char **argv);
/* One command line of this process. */
int cli_run(int argc, const char *const *argv, enum client_face face);

/* The global arguments of the command that this session runs. */
const struct global_args *cli_global(const struct session *s);
/* Shows the config on the terminal, and asks. SUCCESS: the person trusts it. */
enum result consent_ask(const struct trust *t, struct answer *ans, struct arena *a);
/* Did the person type a word that begins with y? */
bool consent_read(int tty);
/* `pawl interactive` */
enum result prompt_run(struct session *s, const struct args *a, struct reply *out);

/* Writes the help on a topic; false: the topic does not exist. */
bool help_topic(struct buf *out, struct strs topic);

/* Writes the entry of doc/troubleshooting.md for a code or a store's fault; false: there is none. */
bool trouble_topic(struct buf *out, struct str topic);
extern const char trouble_text[];

struct output {
	enum format format;
	bool color, color_err, quiet;
	size_t width;
	int fault; /* errno of the write that failed; 0: none */
};

void output_reply(struct output *o, const struct command *c, const struct reply *r,
		  struct arena *a);
/* Writes one of several events. */
void output_event(struct output *o, const struct event *e, struct arena *a);
/* Shows the preview before a question. */
void output_preview(struct output *o, const struct command *c, const struct reply *r,
		    struct arena *a);

/* The line protocol. */
void porcelain_reply(struct buf *out, const struct command *c, const struct reply *r,
		     struct arena *a);
void porcelain_event(struct buf *out, const struct event *e, struct arena *a);

#endif

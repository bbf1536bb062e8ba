/*
 * cli: the command line. Answers go to standard output, in one write; notes for a person go to
 * standard error.
 */
#ifndef FACE_CLI_CLI_H
#define FACE_CLI_CLI_H

#include "base/arena.h"
#include "client/client.h"
#include "cmd/command.h"
#include "cmd/completion.h"

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

/* --- words of a command line ------------------------------------------------------------------ */

/*
 * words: splits a line into words at blanks. '…' and "…" keep blanks, and a backslash keeps the next character;
 * nothing is expanded.
 */

struct words {
	struct strs list; /* each followed by a NUL */
	size_t last;      /* start of the last word; the end of the line if a blank precedes it */
	bool open;        /* a quote is not closed, or nothing follows a backslash */
};

void words_split(struct words *w, struct str line, struct arena *a);

/* --- parse ------------------------------------------------------------------------------------ */

/*
 * parse: turns argv into a command and its arguments, by the command's own table. It runs nothing: a fault
 * comes back as the text of a USAGE answer.
 */

struct parsed {
	const struct command *command; /* NULL: no command was named */
	const char *prefix;            /* "lock" of `pawl lock`: only the first word of a command */
	struct args *args;             /* without a command, only the arguments of every request */
	struct global_args global;
	enum result code; /* SUCCESS, USAGE, or MISCONFIGURED if a module cannot be loaded */
	struct str message, hint;
	bool json, porcelain; /* the user asked for this format, even if the rest is wrong */
};

/* Turns the line into a call of this command, with the token and the request id given so far. */
void parsed_become(struct parsed *p, const struct command *c, struct arena *a);
void parse(struct parsed *p, int argc, const char *const *argv, struct arena *a);

/* Chooses format, colors and width by the arguments, the settings and the terminal. Without settings (values is
 * NULL), the environment decides. */
void output_find(struct output *o, const struct parsed *p, const struct settings *s);
bool output_has_color(const struct parsed *p, const struct settings *s, int fd);

/* --- complete --------------------------------------------------------------------------------- */

/* complete: the possible completions of the last word of a line at the prompt. */

/* All candidates that begin with the typed part of the word, which starts at *from, in upper or lower case. Characters
 * that would split or end a word have a \ before them. */
struct strs complete_line(struct str line, size_t *from, values_fn *values, void *ctx,
			  struct arena *a);

/* --- recall ----------------------------------------------------------------------------------- */

/*
 * recall: the history of the prompt, in a file of mode 0600 beside the saved tokens, oldest line first. A line
 * that may hold a secret is not kept.
 */

/* Reads the history, at most the last 1,000 lines; the file keeps no more. */
struct strs recall_load(const struct keyring *k, struct arena *a);
/* Appends a line, unless it may hold a secret; a failed write is ignored. */
void recall_add(const struct keyring *k, struct str line);
/* Does the line contain a token or a password? */
bool recall_secret(struct str line);

/* --- editor ----------------------------------------------------------------------------------- */

/*
 * editor: reads a line from a terminal, with history and completion. It is a module of its own
 * (pawl-face-interactive.so), because no other command needs its library.
 */

struct editor;

/* Callbacks for the editor. They must outlive it. */
struct editor_host {
	const char *prompt;
	/* Finds the completions of the last word of the line, and where it starts. */
	struct strs (*complete)(void *ctx, struct str line, size_t *from, struct arena *a);
	void *ctx;
};

enum line_end { LINE_WHOLE, LINE_DROPPED, LINE_NONE };

struct editor_ops {
	/* NULL: this terminal does not support it. */
	struct editor *(*open)(const struct editor_host *host);
	/* How the read ended: with a whole line in *out (without its newline, valid until the next call), with
	 * Ctrl-C, or at the end of the input. */
	enum line_end (*read)(struct editor *e, struct str *out);
	/* Adds a line to the history of the up arrow. */
	void (*remember)(struct editor *e, const char *line);
	void (*close)(struct editor *e);
};

#endif

/*
 * command: one declaration for each command, from which come the CLI's options and help, completions, man
 * pages, the reference and what other faces offer. A command's run() never prints: it fills in a reply, and
 * each face shows it in its own form.
 */
#ifndef CMD_COMMAND_H
#define CMD_COMMAND_H

#include <jansson.h>

#include "client/client.h"
#include "cmd/view.h"

struct command;
struct mcp_args;

enum param_type {
	P_FLAG,
	P_TEXT, /* any valid text up to TEXT_MAX; on the command line "-" reads standard input */
	P_TITLE,
	P_NAME, /* short text on one line: agent, run, label, type */
	P_ID,
	P_IDS, /* may be repeated, or given as a list with commas */
	P_NAMES,
	P_WORDS,  /* may be repeated; checked by the command */
	P_CHOICE, /* one of `choices` */
	P_INT,
	P_DURATION,
	P_TIME,
	P_DATE,
	P_STATUS,
	P_STATUSES, /* may be repeated or listed: a set of STATUS_BIT */
	P_CLASS,
	P_PRIORITY,
	P_TOKEN,
	P_JSON /* a JSON object */
};

#define P_POSITIONAL 1u
#define P_REQUIRED 2u
#define P_EMPTY 4u     /* "" is a value: it clears the field */
#define P_FILLED 8u    /* if it is given, it is not empty */
#define P_SELDOM 16u   /* few need it: where room is short, it is not offered */
#define P_TERMINAL 32u /* only on a command line */
#define P_TYPED 128u   /* an id, or a lock of the whole queue: "@maintenance" */
#define P_REST 64u     /* positional: all that stands behind "--", as it is */
#define P_SETTING 256u /* the name of a setting */

/* What may be said with any command; token and request_id go to its request. */
struct global_args {
	struct str store, queue, agent, run, timeout, dir, format, color;
	int64_t json, porcelain, no_color, quiet, help, version;
};

/*
 * The arguments of a command that has none of its own: the request, and three that mean the same with every
 * command. A command with more declares `struct NAME_args` in its own file, with this as its first member, and
 * says how large it is (args_size).
 */
struct args {
	struct request rq;
	int64_t cached, write_status; /* run_op() heeds them */
	int64_t wait;                 /* ms; a face that waits by itself takes it away */
	uint64_t seen;                /* 1 << index of a parameter of the command that was given */
};

struct param {
	const char *name; /* "unblock-action" */
	enum param_type type;
	char letter;
	unsigned flags;
	size_t offset; /* in the command's arguments, or in struct global_args */
	int arg;       /* enum arg + 1; 0: not part of the request */
	const char *value, *help, *def,
		*choices;  /* value: its name in help, if not that of its type */
	const char *model; /* what a model is told instead of `help` */
	int64_t min, max;  /* of a P_INT; max 0: no limit */
};

#define PARAM(member, option, kind, ...)                                                      \
	{                                                                                     \
		.name = (option), .type = (kind), .offset = offsetof(struct args, rq.member), \
		.arg = ARG_##member + 1, __VA_ARGS__                                          \
	}
/* Not part of the request: a member of struct args. */
#define SHARED(member, option, kind, ...)                                                  \
	{                                                                                  \
		.name = (option), .type = (kind), .offset = offsetof(struct args, member), \
		__VA_ARGS__                                                                \
	}
/* A member of struct COMMAND_args. */
#define LOCAL(command, member, option, kind, ...)                              \
	{                                                                      \
		.name = (option), .type = (kind),                              \
		.offset = offsetof(struct command##_args, member), __VA_ARGS__ \
	}
#define PARAM_ID(text) PARAM(id, "ID", P_ID, .flags = P_POSITIONAL | P_REQUIRED, .help = (text))
#define PARAM_LOCK(text) \
	PARAM(id, "ID", P_ID, .flags = P_POSITIONAL | P_REQUIRED | P_TYPED, .help = (text))
#define PARAM_PID                                                                                 \
	PARAM(pid, "pid", P_INT, .value = "PID", .min = 1, .max = INT32_MAX, .flags = P_TERMINAL, \
	      .help = "process that does the work: `lock cleanup` sees when it is dead")
#define PARAM_REASON(extra, text) \
	PARAM(reason, "reason", P_TEXT, .letter = 'r', .flags = (extra), .help = (text))
#define PARAM_SUMMARY(extra, text) \
	PARAM(summary, "summary", P_TEXT, .letter = 's', .flags = (extra), .help = (text))
#define PARAM_CACHED                                          \
	SHARED(cached, "cached", P_FLAG, .flags = P_TERMINAL, \
	       .help = "from what this clone has fetched last, without asking the server (git)")
#define PARAM_WRITE_STATUS                                                           \
	SHARED(write_status, "write-status", P_FLAG, .flags = P_TERMINAL | P_SELDOM, \
	       .help = "on a branch of lock files: also set `status:` in the task's file")
#define PARAM_TTL(otherwise)                                             \
	PARAM(ttl, "ttl", P_DURATION, .letter = 't', .def = (otherwise), \
	      .help = "how long the lock holds without a heartbeat")

/* Sets the parameter from its text: NULL, or what is wrong with it, in `a`. Lists grow with each call. into: struct
 * args, or struct global_args for a global parameter that is not part of the request. */
const char *param_set(void *into, const struct param *p, struct str text, struct arena *a);
/* May it be given more than once? */
bool param_repeats(const struct param *p);
/* What stands for its value in help: "DURATION". NULL for a flag. */
const char *param_value(const struct param *p);
/* The words that it can be, with spaces between them; words of more than one part with '-'. NULL: free. */
const char *param_choices(const struct param *p);

/* The one for the n-th word that is no option, from 0; the last takes all that follow if it can. NULL: none. */
const struct param *param_positional(const struct param *list, size_t n);
/* By its name in a table that ends with a NULL name, as an argument is called: "unblock_action", "id". NULL: none. */
const struct param *param_find(const struct param *list, struct str name);
/* That name of it. */
struct str param_argument(const struct param *p, struct arena *a);

/* The options that every command has; ends with a NULL name. */
extern const struct param global_params[];

#define C_WRITE 1u       /* changes the queue */
#define C_IDEMPOTENT 2u  /* a repeat does no harm by itself */
#define C_DESTRUCTIVE 4u /* takes something away */
#define C_LOCAL 8u       /* needs no queue: run() gets no client but its options */
#define C_HIDDEN 16u
#define C_REPORT 32u /* show() has something to show of a failure, too */
#define C_SHELL 64u  /* runs, or is run by, other programs: only a command line offers it */

struct session {
	struct client client;
	struct arena *arena;
	/* Shows an event when it happens (log --follow); false: nobody listens any more. NULL: this face has no
	 * such thing. */
	bool (*emit)(struct session *s, const struct event *e);
	/* One line for somebody who watches, in the place of the one before; empty: take it away. NULL: nobody
	 * does. */
	void (*progress)(struct session *s, struct str line);
	/* Is there still somebody to show it to? NULL: yes. */
	bool (*listening)(struct session *s);
	/* What a face says about the commands themselves. NULL: it cannot. help: false if there is no such topic. */
	bool (*help)(struct buf *out, struct strs topic);
	bool (*completion)(struct buf *out, struct str shell);
	/* Says something in passing, while the command goes on. NULL: nobody would see it. */
	void (*note)(struct session *s, struct str text);
	/* Shows what would be done and asks: 1 yes, 0 no, -1 there is nobody to ask. NULL: the same. */
	int (*confirm)(struct session *s, const struct command *c, const struct reply *preview);
	bool may_fork;    /* the process is the command's own */
	bool quiet;       /* ids only: without a limit, all of them */
	bool owns_stdout; /* standard output is for the answer alone */
	int exit_code; /* of the program that the command ran for its caller; 0: that of the answer */
	/* Serves until its client is gone. NULL: it cannot. */
	enum result (*mcp)(struct session *s, const struct mcp_args *a, struct reply *out);
	/* Reads commands and runs them, until there are no more. NULL: it cannot. */
	enum result (*prompt)(struct session *s, const struct args *a, struct reply *out);
	const char *executable; /* how this program was called */
	void *face;
};

struct command {
	const char *name;  /* one or two words: "claim", "lock acquire" */
	const char *group; /* "work", "plan", "review", "look", "locks", "setup" */
	const char *summary, *detail;
	const char *example; /* lines as typed, without a prompt */
	const char *see;     /* names of other commands, with commas */
	/* For models: when to use it, what it changes, what comes back if somebody else was faster. NULL: summary
	 * and detail say it. */
	const char *model;
	const char *gives; /* what its answer can have besides ok, code and notes: "task lock" */
	const struct param *params; /* ends with a NULL name; may be NULL */
	size_t args_size;           /* of its own struct; 0: struct args does */
	unsigned flags;
	enum op op;
	const enum result
		*fails; /* the codes of its own, up to a SUCCESS; the common ones are not listed */
	/* NULL: run_op. *out is empty before. Returns the code of the answer. */
	enum result (*run)(struct session *s, struct args *a, struct reply *out);
	/* NULL: reply_json. */
	json_t *(*json)(const struct reply *r, struct arena *a);
	/* NULL: show_task. Only called on success and on NO_TASKS and LOCK_FREE. */
	void (*show)(const struct reply *r, struct view *v);
};

#define FAILS(...) ((const enum result[]){ __VA_ARGS__, SUCCESS })

#define COMMAND(name) extern const struct command cmd_##name;
#include "cmd/commands.def"
#undef COMMAND

extern const struct command *const commands[]; /* ends with NULL */
struct command_group {
	const char *name, *title;
};
extern const struct command_group
	command_groups[]; /* in the order of help; ends with a NULL name */

/* By its words; *used: how many of them were the name. NULL: none. */
const struct command *command_find(const char *const *words, size_t n, size_t *used);
/* Is it the first word of commands with two? */
bool command_prefix(const char *word);
/* The same in another table, as a module brings it. */
const struct command *command_find_in(const struct command *const *table, const char *const *words,
				      size_t n, size_t *used);
bool command_prefix_in(const struct command *const *table, const char *word);
/* What commands with this first word are about. */
const char *command_family(const char *word);
/* Arguments for it, with nothing given but its operation. */
struct args *args_new(const struct command *c, struct arena *a);
/* A parameter that it needs and that was not given. NULL: none. */
const struct param *command_missing(const struct command *c, const struct args *a);
/* The first word of the command's name. */
struct str command_word(const struct command *c);
/* Like `word`: a command's first word, or for a prefix its second; for "did you mean". NULL: none. */
const char *command_nearest(const char *prefix, const char *word, struct arena *a);

/* Runs it, by its own run() or run_op(). */
enum result command_run(const struct command *c, struct session *s, struct args *a,
			struct reply *out);
json_t *command_json(const struct command *c, const struct reply *r, struct arena *a);
void command_show(const struct command *c, const struct reply *r, struct view *v);

/* Sends the request; the reply is its answer. */
enum result run_op(struct session *s, struct args *a, struct reply *out);
/* Around a call with --cached: afterwards the reply says how old its knowledge is. */
void cached_begin(struct session *s, const struct args *a);
void cached_end(struct session *s, const struct args *a, struct reply *out);
/* The same for what can have a --pid: with when that process began, and where. */
enum result run_for_pid(struct session *s, struct args *a, struct reply *out);
/* The reply is an answer that was made here. */
enum result run_answer(const struct answer *ans, struct reply *out);
/* A refusal that was made here. */
enum result run_fail(enum result code, struct str message, struct str hint, struct reply *out);

#endif

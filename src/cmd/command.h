/*
 * command: one declaration for each command. The CLI's options and help, completions, man pages,
 * the reference and the tools of other faces are made from it. A command's run() never prints: it
 * fills in a reply, and each face shows the reply in its own form.
 */
#ifndef CMD_COMMAND_H
#define CMD_COMMAND_H

#include <jansson.h>

#include "client/client.h"
#include "cmd/view.h"
#include "queue/queue.h"

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
	P_WORDS,  /* may be repeated; the command checks the values */
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
#define P_FILLED 8u    /* a value must not be empty */
#define P_SELDOM 16u   /* seldom needed: a profile with little room leaves it out */
#define P_TERMINAL 32u /* only on the command line */
#define P_TYPED 128u   /* an id, or a lock of the whole queue: "@maintenance" */
#define P_REST 64u     /* positional: all words after "--", unchanged */
#define P_SETTING 256u /* the name of a setting */
#define P_ELSEWHERE \
	512u /* required, but the command line has another source for it: the command checks */

#define P_PAST 4096u     /* a P_TIME in the past: a duration means that long before now */
#define P_OPTIONAL 1024u /* a P_DURATION whose value may be left out: then it is P_FOREVER */
#define P_FOREVER INT64_MAX
#define P_HERE \
	2048u /* about the caller's own machine: a file, a process, a cache; never over the network */

/* The global options. token and request_id go to the command's request. */
struct global_args {
	struct str store, queue, agent, run, timeout, dir, format, color;
	int64_t json, porcelain, no_color, quiet, help, version;
};

/*
 * The arguments of a command without arguments of its own: the request, and three arguments that
 * mean the same for every command. A command with more arguments declares `struct NAME_args` in its
 * own file, with this struct as its first member, and sets args_size.
 */
struct args {
	struct request rq;
	int64_t cached, write_status; /* command_ask() applies them, run_op() does not */
	int64_t wait;                 /* ms; a face that waits by itself sets it to 0 */
	uint64_t seen;                /* 1 << index of each parameter that was given */
};

struct param {
	const char *name; /* "unblock-action" */
	enum param_type type;
	char letter;
	unsigned flags;
	size_t offset; /* in the command's arguments, or in struct global_args */
	int arg;       /* enum arg + 1; 0: not part of the request */
	const char *value, *help, *def,
		*choices;  /* value: the placeholder in help, if it differs from the type's */
	const char *model; /* help for models; NULL: `help` */
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
#define PARAM_PID                                                            \
	PARAM(pid, "pid", P_INT, .value = "PID", .min = 1, .max = INT32_MAX, \
	      .flags = P_TERMINAL | P_HERE,                                  \
	      .help = "process that does the work; `lock cleanup` detects its death")
#define PARAM_REASON(extra, text) \
	PARAM(reason, "reason", P_TEXT, .letter = 'r', .flags = (extra), .help = (text))
/* For operators: models are not offered it. */
#define PARAM_FORCE(text) \
	PARAM(force, "force", P_FLAG, .letter = 'f', .flags = P_TERMINAL, .help = (text))
#define PARAM_OVERRIDE                                                                         \
	PARAM_FORCE("even if somebody else holds it; needs --reason, and the log records it"), \
		PARAM(reason, "reason", P_TEXT, .letter = 'r',                                 \
		      .help = "with --force: why, for the log and the holder",                 \
		      .model = "why, for the log")
#define PARAM_SUMMARY(extra, text) \
	PARAM(summary, "summary", P_TEXT, .letter = 's', .flags = (extra), .help = (text))
#define PARAM_CACHED                                                   \
	SHARED(cached, "cached", P_FLAG, .flags = P_TERMINAL | P_HERE, \
	       .help = "read the state of the last fetch, without asking the server (git)")
#define PARAM_WRITE_STATUS                                                                    \
	SHARED(write_status, "write-status", P_FLAG, .flags = P_TERMINAL | P_SELDOM | P_HERE, \
	       .help = "on a branch of lock files: also set `status:` in the file of the task")
#define PARAM_TTL(otherwise)                                                                \
	PARAM(ttl, "ttl", P_DURATION, .letter = 't', .def = (otherwise), .flags = P_SELDOM, \
	      .help = "length of the lease: the lock expires after it unless renewed")

/* Sets the parameter from its text. Returns NULL, or the reason for a refusal, in `a`. Each call
 * appends to a list. into: struct args, or struct global_args for a global parameter outside the
 * request. */
const char *param_set(void *into, const struct param *p, struct str text, struct arena *a);
/* Can the parameter be given more than once? */
bool param_repeats(const struct param *p);
/* The placeholder for the value in help: "DURATION". NULL for a flag. */
const char *param_value(const struct param *p);
/* The possible words, separated by spaces; a word of several parts contains '-'. NULL: any text. */
const char *param_choices(const struct param *p);

/* The parameter for the n-th positional word, from 0. If the last parameter repeats, it takes all
 * further words. NULL: none. */
const struct param *param_positional(const struct param *list, size_t n);
/* Finds a parameter by its name as an argument ("unblock_action", "id"), in a table that ends with a NULL name.
 * NULL: none. */
const struct param *param_find(const struct param *list, struct str name);
/* The parameter's name as an argument. */
struct str param_argument(const struct param *p, struct arena *a);

/* The options that every command has; ends with a NULL name. */
extern const struct param global_params[];

#define C_WRITE 1u       /* changes the queue */
#define C_IDEMPOTENT 2u  /* a repeated call does no harm */
#define C_DESTRUCTIVE 4u /* removes something */
#define C_LOCAL 8u /* needs no queue: run() gets a client that is not open, with its options */
#define C_HIDDEN 16u
#define C_REPORT 32u /* show() can also show a failure */
#define C_SHELL \
	64u /* runs other programs, or other programs run it: only the command line offers it */

struct session {
	struct client client;
	struct arena *arena;
	/* Shows an event at once (log --follow); false: the listener is gone. NULL: this face
	 * cannot show events. */
	bool (*emit)(struct session *s, const struct event *e);
	/* Replaces the progress line with `line`; an empty `line` removes it. A NULL function: nobody is watching. */
	void (*progress)(struct session *s, struct str line);
	/* Is the reader of the output still there? NULL: yes. */
	bool (*listening)(struct session *s);
	/* Help and completions for the commands. NULL: this face has none. help: false if the topic does not
	 * exist. */
	bool (*help)(struct buf *out, struct strs topic);
	bool (*completion)(struct buf *out, struct str shell);
	/* Shows a note while the command is running. NULL: this face does not show notes. */
	void (*note)(struct session *s, struct str text);
	/* Shows the preview and asks: 1 yes, 0 no, -1 nobody can answer. NULL: same as -1. */
	int (*confirm)(struct session *s, const struct command *c, const struct reply *preview);
	/* Shows the problem in a text and asks whether to edit the text again. NULL: nobody can
	 * answer. */
	bool (*again)(struct session *s, struct str problem);
	/* Shows the config to a person at a terminal, who decides whether to trust it. SUCCESS:
	 * trusted; else *ans has the refusal. NULL: nobody can answer. */
	enum result (*consent)(struct session *s, const struct trust *t, struct answer *ans);
	bool remote; /* the caller is on another machine: this machine's files and input are not its own */
	bool may_fork;  /* this process runs only this command */
	bool quiet;     /* print ids only, and all of them unless a limit is given */
	bool people;    /* the answer is shown as text, not as JSON or lines for a program */
	bool decisions; /* the output shows the operations that the caller may do (struct allowed) */
	bool complete; /* the output cannot say that a limit left tasks out, so the default is no limit */
	bool color;       /* the output may have colours */
	bool owns_stdout; /* the command's answer owns standard output */
	int exit_code; /* exit code of the program that the command ran for its caller; 0: use the answer's code */
	/* Serves until the client disconnects. NULL: this face cannot. */
	enum result (*mcp)(struct session *s, const struct mcp_args *a, struct reply *out);
	/* Reads commands and runs them, until the input ends. NULL: this face cannot. */
	enum result (*prompt)(struct session *s, const struct args *a, struct reply *out);
	const char *executable; /* the name by which this program was called */
	void *face;
};

struct command {
	const char *name;  /* one or two words: "claim", "lock acquire" */
	const char *group; /* "work", "plan", "review", "look", "locks", "setup" */
	const char *summary, *detail;
	const char *example; /* lines as the user types them, without a prompt */
	const char *see;     /* names of other commands, with commas */
	/* For models: when to use the command, what it changes, and what to do after each refusal,
	 * in terms of tools and arguments. NULL: use summary and detail. */
	const char *model;
	const char *gives; /* members of its answer besides ok, code and notes: "task lock" */
	const struct param *params; /* ends with a NULL name; may be NULL */
	size_t args_size;           /* size of its own struct; 0: that of struct args */
	unsigned flags;
	enum op op;
	const enum result
		*fails; /* the codes that this command adds to the common ones; ends with SUCCESS */
	/*
	 * A command that is one call to the queue completes its request (ask) and interprets the
	 * answer (tell). command_run() makes the call in between, or a server that commits the
	 * calls of several callers at once.
	 *   ask    completes a->rq. SUCCESS, or a refusal in *out: then no call is made. NULL: the arguments are the request
	 *   tell   adds to *out what the answer means to the caller. NULL: nothing
	 */
	enum result (*ask)(struct session *s, struct args *a, struct reply *out);
	void (*tell)(struct session *s, const struct args *a, struct reply *out);
	/* For commands that are not one call: run() makes its calls itself. *out is empty at the
	 * start. Returns the answer's code. */
	enum result (*run)(struct session *s, struct args *a, struct reply *out);
	/* For commands with both `ask` and `run`: do these arguments need run()? */
	bool (*runs)(const struct session *s, const struct args *a);
	/* NULL: reply_json. */
	json_t *(*json)(const struct reply *r, struct arena *a);
	/* NULL: show_task. Only called on success and on NO_TASKS and LOCK_FREE. */
	void (*show)(const struct reply *r, struct view *v);
};

/* Parts of .model: the advice after a refusal that many commands share. */
#define MODEL_LOST "LOST_LOCK: it is yours no longer; stop, call next. "
#define MODEL_UNCLAIMED "CONFLICT, MISCONFIGURED: not claimed; do what hint says. "
#define MODEL_HELD "CONFLICT: another agent holds it; comment tells its holder. "
#define MODEL_NOT_FOUND "NOT_FOUND: list finds the id."

#define FAILS(...) ((const enum result[]){ __VA_ARGS__, SUCCESS })

#define COMMAND(name, local) extern const struct command cmd_##name;
#include "cmd/commands.def"

extern const struct command *const commands[]; /* ends with NULL */
/* The lowest role that may call the command over the network. The queue also checks the role itself
 * (core/role.h). */
enum role command_role(const struct command *c);
/* The reason why the command cannot be called over the network; NULL: it can. */
const char *command_local(const struct command *c);
struct command_group {
	const char *name, *title;
};
extern const struct command_group
	command_groups[]; /* in the order of help; ends with a NULL name */

/* Finds a command by its words; *used: the number of words in its name. NULL: none. */
const struct command *command_find(const char *const *words, size_t n, size_t *used);
/* Is `word` the first word of commands with two words? */
bool command_prefix(const char *word);
/* Like command_find() and command_prefix(), for a table of a module. */
const struct command *command_find_in(const struct command *const *table, const char *const *words,
				      size_t n, size_t *used);
bool command_prefix_in(const struct command *const *table, const char *word);
/* The common topic of the commands that begin with this word. */
const char *command_family(const char *word);
/* Allocates the command's arguments, empty except for the operation. */
struct args *args_new(const struct command *c, struct arena *a);
/* A required parameter that was not given. NULL: none. */
const struct param *command_missing(const struct command *c, const struct args *a);
/* The first word of the command's name. */
struct str command_word(const struct command *c);
/* The nearest name to `word`, for "did you mean": the first word of a command or, with a prefix,
 * its second word. NULL: none. */
const char *command_nearest(const char *prefix, const char *word, struct arena *a);

/* Is the command one call to the queue? Then command_ask() and command_tell() can enclose the
 * call. */
bool command_is_call(const struct command *c, const struct session *s, const struct args *a);
/* SUCCESS: the caller must make the call call->rq and set call->ans. Otherwise *out has a refusal,
 * and there is nothing more to do. */
enum result command_ask(const struct command *c, struct session *s, struct args *a,
			struct call_state *call, struct reply *out);
/* Makes the reply from the answer. */
enum result command_tell(const struct command *c, struct session *s, const struct args *a,
			 struct call_state *call, struct reply *out);
/* Runs the command, whether it is one call or not. With args->wait it waits for a task. */
enum result command_run(const struct command *c, struct session *s, struct args *a,
			struct reply *out);
json_t *command_json(const struct command *c, const struct reply *r, struct arena *a);
void command_show(const struct command *c, const struct reply *r, struct view *v);

/* Repeats a call that found no task, until it finds one or the wait is over. *ans: the last
 * answer. */
void wait_for_task(struct session *s, const struct request *rq, struct attempts *t,
		   struct answer *ans);
/* For a run(): sends the request; the reply is its answer. */
enum result run_op(struct session *s, struct args *a, struct reply *out);
/* For commands with --pid: adds the process's start time and host to the request. */
enum result ask_for_pid(struct session *s, struct args *a, struct reply *out);
/* Makes the reply from an answer that this process made. */
enum result run_answer(const struct answer *ans, struct reply *out);
/* Makes a refusal by this process. */
enum result run_fail(enum result code, struct str message, struct str hint, struct reply *out);

#endif

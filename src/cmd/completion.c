/*
 * Completes a command line for the shells (`pawl values line`) and for the prompt. It parses the
 * words before the last one like the parser, but never refuses a line, because an unfinished line
 * is often not valid yet.
 */
#include "cmd/command.h"
#include "cmd/completion.h"
#include "core/typed.h"

/* The state after the words before the last one. */
struct reading {
	const struct command *command;
	const char *prefix;          /* the first word of a command of two: "lock" */
	const struct param *expects; /* the option whose value comes next */
	size_t positional;
	bool rest;    /* after "--" */
	bool unknown; /* the command does not exist */
};

struct finding {
	struct candidates found;
	struct str typed;
	values_fn *values;
	void *ctx;
	struct arena *arena;
};

static void complete_offer(struct finding *f, struct str word, const char *about)
{
	if (strs_have(f->found.words, word))
		return;
	f->found.words = arena_append(f->arena, f->found.words, arena_str(f->arena, word));
	f->found.about = arena_append(f->arena, f->found.about, str_c(about));
}

/* --- reading the words before --------------------------------------------------------------------- */

static const struct param *complete_option(const struct param *p, struct str word)
{
	for (; p && p->name; p++) {
		if (p->flags & P_POSITIONAL)
			continue;
		if (str_starts(word, STR("--")) ? str_is(str_n(word.p + 2, word.n - 2), p->name)
						: p->letter && word.p[word.n - 1] == p->letter)
			return p;
	}
	return NULL;
}

static void read_option(struct reading *r, struct str word)
{
	const struct param *p = r->command ? complete_option(r->command->params, word) : NULL;

	if (!p)
		p = complete_option(global_params, word);
	if (p && p->type != P_FLAG)
		r->expects = p;
}

static void read_name(struct reading *r, struct str word)
{
	const char *words[2] = { r->prefix ? r->prefix : word.p, r->prefix ? word.p : NULL };
	size_t used;

	r->command = command_find(words, r->prefix ? 2 : 1, &used);
	if (r->command)
		return;
	r->unknown = r->prefix || !command_prefix(word.p);
	r->prefix = word.p;
}

static void read_word(struct reading *r, struct str word)
{
	if (r->expects)
		r->expects = NULL;
	else if (str_is(word, "--"))
		r->rest = true;
	else if (!r->rest && word.n > 1 && word.p[0] == '-')
		read_option(r, word);
	else if (r->command)
		r->positional++;
	else
		read_name(r, word);
}

/* --- collecting candidates ------------------------------------------------------------------------ */

static void offer_choices(struct finding *f, const char *choices)
{
	struct str rest = str_c(choices);

	while (rest.n)
		complete_offer(f, str_cut(&rest, ' '), "");
}

static void offer_commands(struct finding *f, const char *prefix)
{
	for (size_t i = 0; commands[i]; i++) {
		const struct command *c = commands[i];
		const char *second = strchr(c->name, ' ');
		struct str first = command_word(c);

		if (c->flags & C_HIDDEN)
			continue;
		if (prefix && second && str_is(first, prefix))
			complete_offer(f, str_c(second + 1), c->summary);
		else if (!prefix)
			complete_offer(f, first,
				       second ? command_family(arena_cstr(f->arena, first))
					      : c->summary);
	}
}

static void offer_options(struct finding *f, const struct param *p)
{
	for (; p && p->name; p++) {
		if (p->flags & P_POSITIONAL)
			continue;
		if (p->letter && f->typed.n == 1)
			complete_offer(f, arena_printf(f->arena, "-%c", p->letter), p->help);
		complete_offer(f, arena_printf(f->arena, "--%s", p->name), p->help);
	}
}

/* Offers the locks of the whole queue once the word begins with '@'. */
static void offer_typed(struct finding *f)
{
	if (!f->typed.n || f->typed.p[0] != '@')
		return;
	for (int kind = TYPED_NONE + 1; kind < TYPED_END; kind++)
		complete_offer(f, arena_printf(f->arena, "@%s", typed_name((enum typed)kind)), "");
}

static void offer_settings(struct finding *f)
{
	for (const struct setting *s = settings_list; s->name; s++)
		complete_offer(f, str_c(s->name), "");
}

static void offer_from_queue(struct finding *f, const char *kind)
{
	struct strs list = f->values(f->ctx, kind, f->arena);

	for (size_t i = 0; i < list.n; i++)
		complete_offer(f, list.v[i], "");
}

/* The kind of values in the queue that a parameter takes; NULL: its values are not in the queue.
 * The option's name decides, because label and labels are different arguments with the same
 * values. */
static const char *kind_of(const struct param *p)
{
	static const char *const names[][2] = {
		{ "label", "labels" },     { "add-label", "labels" }, { "remove-label", "labels" },
		{ "not-label", "labels" }, { "holder", "holders" },   { "assignee", "holders" },
		{ "queue", "queues" },
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if ((p->type == P_NAME || p->type == P_NAMES) && !strcmp(p->name, names[i][0]))
			return names[i][1];
	/* --id names a new task, so it offers no existing id */
	return (p->type == P_ID || p->type == P_IDS) && strcmp(p->name, "id") ? "ids" : NULL;
}

static void offer_values(struct finding *f, const struct param *p)
{
	const char *choices = p->type == P_PRIORITY ? "low medium high" : param_choices(p);

	if (choices)
		offer_choices(f, choices);
	else if (kind_of(p))
		offer_from_queue(f, kind_of(p));
	else if (p->type == P_WORDS)
		offer_commands(f, NULL);
	else if (p->value && !strcmp(p->value, "DIR"))
		f->found.folders = true;
	if (p->flags & P_TYPED)
		offer_typed(f);
	if (p->flags & P_SETTING)
		offer_settings(f);
}

static void complete_find(struct finding *f, const struct reading *r)
{
	const struct param *next;

	if (r->expects)
		offer_values(f, r->expects);
	else if (r->rest || r->unknown)
		return;
	else if (f->typed.n && f->typed.p[0] == '-') {
		offer_options(f, r->command ? r->command->params : NULL);
		offer_options(f, global_params);
	} else if (!r->command)
		offer_commands(f, r->prefix);
	else if ((next = param_positional(r->command->params, r->positional)))
		offer_values(f, next);
}

struct candidates complete_words(struct strs words, values_fn *values, void *ctx, struct arena *a)
{
	struct finding f = { .values = values, .ctx = ctx, .arena = a };
	struct reading r = { 0 };

	if (!words.n)
		return f.found;
	f.typed = words.v[words.n - 1];
	for (size_t i = 0; i + 1 < words.n; i++)
		read_word(&r, words.v[i]);
	complete_find(&f, &r);
	return f.found;
}

/* --- completion ------------------------------------------------------------------------------- */

/*
 * pawl completion: prints the completion script of a shell. The face makes the script from the
 * table of commands; without session.completion the command is refused.
 */

struct completion_args {
	struct args args;
	struct str shell;
};

static const struct param params[] = {
	LOCAL(completion, shell, "SHELL", P_CHOICE, .flags = P_POSITIONAL | P_REQUIRED,
	      .choices = "bash zsh fish", .value = "SHELL", .help = "bash, zsh or fish"),
	{ 0 }
};

static enum result completion_run(struct session *s, struct args *args, struct reply *out);
static void completion_show(const struct reply *r, struct view *v);

const struct command cmd_completion = {
	.name = "completion",
	.group = "setup",
	.summary = "print a script for the completion in a shell",
	.detail =
		"The shell completes commands, options and words such as priorities. It asks the queue for ids, labels, "
		"holders and the names of queues.",
	.example = "source <(pawl completion bash)\n"
		   "pawl completion fish > ~/.config/fish/completions/pawl.fish",
	.see = "help",
	.params = params,
	.args_size = sizeof(struct completion_args),
	.flags = C_IDEMPOTENT | C_LOCAL,
	.run = completion_run,
	.show = completion_show,
};

static enum result completion_run(struct session *s, struct args *args, struct reply *out)
{
	const struct completion_args *a = (const struct completion_args *)args;
	struct buf b = BUF_MAX(1u << 20);

	if (!s->completion || !s->completion(&b, a->shell)) {
		buf_free(&b);
		return run_fail(USAGE, STR("completions are not available here"), STR(""), out);
	}
	json_object_set_new(reply_more(out), "shell", json_str(a->shell));
	json_object_set_new(reply_more(out), "script", json_str(buf_str(&b)));
	buf_free(&b);
	return SUCCESS;
}

static void completion_show(const struct reply *r, struct view *v)
{
	buf_adds(v->out, json_get(r->more, "script"));
}

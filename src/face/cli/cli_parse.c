/*
 * Reads the words of a command line by the tables of parameters. A fault does not end the process:
 * it becomes the answer, in the format that the user asked for.
 */
#include <errno.h>
#include <unistd.h>

#include "base/module.h"
#include "base/text.h"
#include "base/when.h"
#include "face/cli/cli.h"

struct parser {
	struct parsed *out;
	struct arena *arena;
	const struct command *const *table;
	const char *const *argv;
	int argc, at;
	uint64_t globals_seen;
	size_t positional; /* words after the command that were used */
	bool stdin_used;
};

static bool parse_refuse_word(struct parser *p, struct str message, struct str hint)
{
	p->out->code = USAGE;
	p->out->message = message;
	p->out->hint = hint;
	return false;
}

#define SAY(p, ...) arena_printf((p)->arena, __VA_ARGS__)

static const char *parse_shown(struct parser *p, const char *word)
{
	return arena_cstr(p->arena, text_cut(p->arena, text_line(p->arena, str_c(word)), 60));
}

static struct str help_hint(struct parser *p)
{
	const struct command *c = p->out->command;

	if (!c && p->out->prefix)
		return SAY(p, "run `pawl help %s`", p->out->prefix);
	return c ? SAY(p, "run `pawl help %s`", c->name) : STR("run `pawl help`");
}

/* --- options -------------------------------------------------------------------------------------- */

static bool is_option(const struct param *p)
{
	return !(p->flags & P_POSITIONAL);
}

/* Finds an option by name, or by letter if `name` is one byte long and `letter` is set. */
static const struct param *find_in(const struct param *list, struct str name, bool letter)
{
	for (const struct param *p = list; p && p->name; p++)
		if (is_option(p) && (letter ? p->letter == name.p[0] : str_is(name, p->name)))
			return p;
	return NULL;
}

static const struct param *find_option(const struct parser *p, struct str name, bool letter)
{
	const struct command *c = p->out->command;
	const struct param *found = c ? find_in(c->params, name, letter) : NULL;

	return found ? found : find_in(global_params, name, letter);
}

static bool is_global(const struct param *o)
{
	return find_in(global_params, str_c(o->name), false) == o;
}

static const char *nearest_option(const struct parser *p, struct str name)
{
	const char *names[128];
	size_t n = 0;

	for (const struct param *o = p->out->command ? p->out->command->params : NULL; o && o->name;
	     o++)
		if (is_option(o) && n < 128)
			names[n++] = o->name;
	for (const struct param *o = global_params; o->name && n < 128; o++)
		names[n++] = o->name;
	return text_nearest(name, names, n);
}

static bool unknown_option(struct parser *p, const char *word, struct str name, bool letter)
{
	const struct command *c = p->out->command;
	const char *near = letter ? NULL : nearest_option(p, name);
	struct str what = c ? SAY(p, "%s has no option %s", c->name, parse_shown(p, word))
			    : SAY(p, "there is no option %s before the command",
				  parse_shown(p, word));

	if (near)
		return parse_refuse_word(
			p, what,
			SAY(p, "did you mean --%s? %s", near, arena_cstr(p->arena, help_hint(p))));
	return parse_refuse_word(
		p, what,
		c ? help_hint(p)
		  : STR("write a command's options after its name; run `pawl help`"));
}

static const char *label_of(struct parser *p, const struct param *o)
{
	return is_option(o) ? SAY(p, "--%s", o->name).p : o->name;
}

/* Was the value given before, by this option or by another one for the same field? */
static bool said_before(struct parser *p, const struct param *o)
{
	struct args *a = p->out->args;
	uint64_t *seen = &a->seen, bit;
	bool twice;

	if (is_global(o)) {
		seen = &p->globals_seen;
		bit = UINT64_C(1) << (o - global_params);
	} else {
		bit = UINT64_C(1) << (o - p->out->command->params);
	}
	twice = (*seen & bit) || (o->arg && a->rq.has >> (o->arg - 1) & 1);
	*seen |= bit;
	return twice && !param_repeats(o) && o->type != P_FLAG;
}

/* Reads a text from standard input, for "-". */
static bool read_stdin(struct parser *p, const struct param *o, struct str *text)
{
	struct buf b = BUF_MAX(TEXT_MAX + 1);
	char block[16384];
	ssize_t n;

	if (p->stdin_used)
		return parse_refuse_word(
			p, SAY(p, "%s: standard input can be read only once", label_of(p, o)),
			help_hint(p));
	p->stdin_used = true;
	while ((n = read(STDIN_FILENO, block, sizeof(block))) > 0 || (n < 0 && errno == EINTR)) {
		if (n > 0)
			buf_add(&b, block, (size_t)n);
		if (b.full)
			break;
	}
	if (b.n && b.p[b.n - 1] == '\n')
		b.n--;
	*text = arena_str(p->arena, buf_str(&b));
	if (n < 0)
		parse_refuse_word(p,
				  SAY(p, "%s: cannot read standard input: %s", label_of(p, o),
				      strerror(errno)),
				  STR(""));
	else if (b.full)
		parse_refuse_word(p,
				  SAY(p, "%s: standard input is longer than %d bytes",
				      label_of(p, o), TEXT_MAX),
				  STR(""));
	buf_free(&b);
	return p->out->code == SUCCESS;
}

static bool parse_set(struct parser *p, const struct param *o, struct str text)
{
	void *into = is_global(o) && !o->arg ? (void *)&p->out->global : p->out->args;
	const char *fault;

	if (said_before(p, o))
		return parse_refuse_word(p, SAY(p, "%s is given twice", label_of(p, o)),
					 help_hint(p));
	if (o->arg && (o->type == P_TEXT || o->type == P_JSON) && str_is(text, "-") &&
	    !read_stdin(p, o, &text))
		return false;
	fault = param_set(into, o, text, p->arena);
	return fault ? parse_refuse_word(p, SAY(p, "%s: %s", label_of(p, o), fault), help_hint(p))
		     : true;
}

/* Takes the word after an option. If that word is an option itself, the user has probably forgotten
 * the value. */
static bool take_value(struct parser *p, const struct param *o, struct str *text)
{
	const char *next = p->at + 1 < p->argc ? p->argv[p->at + 1] : NULL;

	if (next && !strncmp(next, "--", 2) && find_option(p, str_c(next + 2), false))
		return parse_refuse_word(
			p, SAY(p, "--%s needs a value, but %s follows", o->name, next),
			SAY(p, "if you mean that as the value, write --%s=%s", o->name, next));
	if (!next)
		return parse_refuse_word(
			p, SAY(p, "--%s needs a value: %s", o->name, param_value(o)), help_hint(p));
	p->at++;
	*text = str_c(next);
	return true;
}

/* Takes the next word only if it is a duration: in `--wait -- make` it does not belong to the
 * option. */
static bool may_take_value(struct parser *p, const struct param *o, struct str *text)
{
	const char *next = p->at + 1 < p->argc ? p->argv[p->at + 1] : NULL;
	int64_t ms;

	if (!(o->flags & P_OPTIONAL))
		return take_value(p, o, text);
	if (next && duration_parse(str_c(next), &ms)) {
		p->at++;
		*text = str_c(next);
	}
	return true;
}

static bool long_option(struct parser *p, const char *word)
{
	struct str name = str_c(word + 2), text = STR("");
	const char *equals = strchr(word, '=');
	const struct param *o;

	if (equals) {
		name.n = (size_t)(equals - word) - 2;
		text = str_c(equals + 1);
	}
	o = find_option(p, name, false);
	if (!o)
		return unknown_option(p, SAY(p, "--%.*s", STRF(name)).p, name, false);
	if (o->type == P_FLAG && equals)
		return parse_refuse_word(p, SAY(p, "--%s takes no value", o->name), help_hint(p));
	if (o->flags & P_OPTIONAL && equals && !text.n)
		return parse_refuse_word(p,
					 SAY(p, "--%s= needs a value: %s", o->name, param_value(o)),
					 help_hint(p));
	if (o->type != P_FLAG && !equals && !may_take_value(p, o, &text))
		return false;
	return parse_set(p, o, text);
}

/* "-q", "-qj", "-t 5m", "-t5m" */
static bool short_options(struct parser *p, const char *word)
{
	for (const char *c = word + 1; *c; c++) {
		const struct param *o = find_option(p, str_n(c, 1), true);
		struct str text = str_c(c + 1);

		if (!o)
			return unknown_option(p, word, str_c(c), true);
		if (o->type == P_FLAG) {
			if (!parse_set(p, o, STR("")))
				return false;
			continue;
		}
		if (!text.n && !may_take_value(p, o, &text))
			return false;
		return parse_set(p, o, text);
	}
	return true;
}

/* --- words of a command line ------------------------------------------------------------------ */

static bool unknown_command(struct parser *p, const char *word)
{
	const char *prefix = p->out->prefix, *near = command_nearest(prefix, word, p->arena);
	struct str what = SAY(p, "there is no command '%s%s%s'", prefix ? prefix : "",
			      prefix ? " " : "", parse_shown(p, word));

	if (!near)
		return parse_refuse_word(p, what, help_hint(p));
	return parse_refuse_word(p, what,
				 SAY(p, "did you mean `pawl %s%s%s`? %s", prefix ? prefix : "",
				     prefix ? " " : "", near, arena_cstr(p->arena, help_hint(p))));
}

/* A command that is not built in may come from a module. */
static bool load_module(struct parser *p, const char *word)
{
	const struct module *m;
	char why[300];
	int r = module_load("face", str_c(word), &m, why, sizeof(why));

	if (r > 0 || (r == 0 && !m->commands))
		return unknown_command(p, word);
	if (r < 0) {
		parse_refuse_word(p, SAY(p, "cannot load the module for '%s': %s", word, why),
				  STR("install its package again"));
		p->out->code = MISCONFIGURED;
		return false;
	}
	p->table = m->commands;
	return true;
}

void parsed_become(struct parsed *p, const struct command *c, struct arena *a)
{
	struct args *args = args_new(c, a);

	if (HAS(&p->args->rq, token))
		GIVE(&args->rq, token, p->args->rq.token);
	if (HAS(&p->args->rq, request_id))
		GIVE(&args->rq, request_id, p->args->rq.request_id);
	if (HAS(&p->args->rq, if_version))
		GIVE(&args->rq, if_version, p->args->rq.if_version);
	p->args = args;
	p->command = c;
}

static bool name_word(struct parser *p, const char *word)
{
	const char *words[2] = { p->out->prefix ? p->out->prefix : word,
				 p->out->prefix ? word : NULL };
	size_t used, n = p->out->prefix ? 2 : 1;
	const struct command *c = command_find_in(p->table, words, n, &used);

	if (!c && n == 1 && !command_prefix_in(p->table, word)) {
		if (!load_module(p, word))
			return false;
		c = command_find_in(p->table, words, n, &used);
	}
	if (c) {
		parsed_become(p->out, c, p->arena);
		return true;
	}
	if (n == 1 && command_prefix_in(p->table, word)) {
		p->out->prefix = word;
		return true;
	}
	return unknown_command(p, word);
}

static const struct param *rest_param(const struct parser *p)
{
	for (const struct param *o = p->out->command ? p->out->command->params : NULL; o && o->name;
	     o++)
		if (o->flags & P_REST)
			return o;
	return NULL;
}

/* Takes the words of another program: any number of them, with any content. */
static void take_rest(struct parser *p, const struct param *o)
{
	struct strs *list = (struct strs *)((char *)p->out->args + o->offset);

	list->n = (size_t)(p->argc - p->at - 1);
	list->v = arena_array(p->arena, struct str, list->n + 1);
	for (size_t i = 0; i < list->n; i++)
		list->v[i] = str_c(p->argv[p->at + 1 + (int)i]);
	if (list->n)
		p->out->args->seen |= UINT64_C(1) << (o - p->out->command->params);
	p->at = p->argc;
}

static struct str word_hint(struct parser *p)
{
	if (rest_param(p))
		return SAY(p, "%s must come after --; %s", rest_param(p)->name,
			   arena_cstr(p->arena, help_hint(p)));
	return SAY(p, "put a text with spaces in quotes; %s", arena_cstr(p->arena, help_hint(p)));
}

static bool take_word(struct parser *p, const char *word)
{
	const struct param *o;

	if (!p->out->command)
		return name_word(p, word);
	o = param_positional(p->out->command->params, p->positional);
	if (!o)
		return parse_refuse_word(p,
					 SAY(p, "%s does not take '%s'", p->out->command->name,
					     parse_shown(p, word)),
					 word_hint(p));
	p->positional++;
	return parse_set(p, o, str_c(word));
}

/* --- the whole ------------------------------------------------------------------------------------ */

static struct str first_line(const char *text)
{
	struct str rest = str_c(text);

	return str_cut(&rest, '\n');
}

static bool check_required(struct parser *p)
{
	const struct command *c = p->out->command;
	const struct param *o = command_missing(c, p->out->args);

	if (!o || o->flags & P_ELSEWHERE)
		return true;
	return parse_refuse_word(
		p,
		SAY(p, "%s needs %s: %s", c->name,
		    is_option(o) ? SAY(p, "--%s %s", o->name, param_value(o)).p : o->name, o->help),
		SAY(p, "e.g. %s", arena_cstr(p->arena, first_line(c->example))));
}

static bool check_globals(struct parser *p)
{
	const struct global_args *g = &p->out->global;

	if ((g->json != 0) + (g->porcelain != 0) + (g->format.n != 0) > 1)
		return parse_refuse_word(
			p,
			STR("--json, --porcelain and --format cannot be used together: give one of them"),
			STR(""));
	if (g->no_color && g->color.n)
		return parse_refuse_word(
			p, STR("--color and --no-color cannot be used together: give one of them"),
			STR(""));
	return true;
}

/* Completes a prefix: `pawl config` means `pawl config list`. */
static bool complete_prefix(struct parser *p)
{
	const char *words[2] = { p->out->prefix, "list" };
	size_t used;
	const struct command *c = command_find_in(p->table, words, 2, &used);

	if (c) {
		parsed_become(p->out, c, p->arena);
		return true;
	}
	return parse_refuse_word(
		p, SAY(p, "%s is only the first word of a command", p->out->prefix), help_hint(p));
}

/* Finds the format before parsing, so that an error's format does not depend on the error's place
 * in the line. */
static void find_format(struct parsed *out, int argc, const char *const *argv)
{
	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
		const char *next = i + 1 < argc ? argv[i + 1] : "";
		bool format = !strcmp(argv[i], "--format");

		if (!strcmp(argv[i], "--json") || !strcmp(argv[i], "--format=json") ||
		    !strcmp(argv[i], "-j") || (format && !strcmp(next, "json")))
			out->json = true;
		else if (!strcmp(argv[i], "--porcelain") ||
			 !strcmp(argv[i], "--format=porcelain") ||
			 (format && !strcmp(next, "porcelain")))
			out->porcelain = true;
	}
}

static bool take_all(struct parser *p)
{
	bool raw = false, ok = true;

	for (p->at = 1; ok && p->at < p->argc; p->at++) {
		const char *word = p->argv[p->at];

		if (raw || word[0] != '-' || !word[1])
			ok = take_word(p, word);
		else if (!strcmp(word, "--") && rest_param(p))
			take_rest(p, rest_param(p));
		else if (!strcmp(word, "--"))
			raw = true;
		else if (word[1] == '-')
			ok = long_option(p, word);
		else
			ok = short_options(p, word);
	}
	return ok;
}

void parse(struct parsed *out, int argc, const char *const *argv, struct arena *a)
{
	struct parser p = { .out = out, .arena = a, .table = commands, .argv = argv, .argc = argc };

	*out = (struct parsed){ .args = arena_new(a, struct args) };
	find_format(out, argc, argv);
	if (!take_all(&p) || !check_globals(&p))
		return;
	if (out->global.help || out->global.version)
		return;
	if (!out->command && out->prefix && !complete_prefix(&p))
		return;
	if (out->command)
		(void)check_required(&p);
}

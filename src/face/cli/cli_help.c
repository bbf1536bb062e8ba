/* Help texts, generated from the table of commands, at most 80 columns wide. */
#include "base/module.h"
#include "face/cli/cli.h"
#include "face/gen/gen.h"

#define WIDTH 79
#define COLUMN 28 /* column of an option's explanation */

static void put_heading(struct buf *out, const char *text)
{
	buf_addf(out, "\n%s\n", text);
}

static void put_pair(struct buf *out, const char *left, size_t column, const char *text)
{
	size_t n = strlen(left) + 2;

	buf_addf(out, "  %s", left);
	if (n + 2 > column) {
		buf_addc(out, '\n');
		n = 0;
	}
	buf_addf(out, "%*s", (int)(column - n), "");
	gen_wrap(out, text, column, WIDTH, column);
}

static void put_param(struct buf *out, const struct param *p)
{
	struct buf left = BUF_MAX(256), text = BUF_MAX(1024);

	gen_param_name(&left, p);
	buf_addf(&text, "%s", p->help);
	if (p->def)
		buf_addf(&text, " (default: %s)", p->def);
	put_pair(out, left.p, COLUMN, text.p);
	buf_free(&left);
	buf_free(&text);
}

static void put_params(struct buf *out, const struct param *params, bool positional,
		       const char *heading)
{
	bool any = false;

	for (const struct param *p = params; p && p->name; p++) {
		if (positional != !!(p->flags & P_POSITIONAL))
			continue;
		if (!any)
			put_heading(out, heading);
		any = true;
		put_param(out, p);
	}
}

static void put_code(struct buf *out, enum result code)
{
	struct buf left = BUF_MAX(64);

	buf_addf(&left, "%2d %s", (int)code, result_name(code));
	put_pair(out, left.p, COLUMN, result_text(code));
	buf_free(&left);
}

static void help_command(struct buf *out, const struct command *c)
{
	struct str rest = str_c(c->example);
	enum result codes[16];
	size_t n = gen_codes(c, codes);

	buf_addf(out, "pawl %s: %s\n\nusage: ", c->name, c->summary);
	gen_usage(out, c, WIDTH, 7);
	if (c->detail) {
		buf_addc(out, '\n');
		gen_wrap(out, c->detail, 0, WIDTH, 0);
	}
	put_params(out, c->params, true, "arguments");
	put_params(out, c->params, false, "options");
	put_heading(out, "example");
	while (rest.n) {
		struct str line = str_cut(&rest, '\n');

		buf_addf(out, "  %.*s\n", STRF(line));
	}
	put_heading(out, "exit codes");
	for (size_t i = 0; i < n; i++)
		put_code(out, codes[i]);
	buf_addf(
		out,
		"\nsee also: %s\n`pawl help options` explains the options of every command, such as --json.\n",
		c->see);
}

static void help_prefix(struct buf *out, const char *prefix)
{
	buf_addf(out, "pawl %s: %s\n\nusage: pawl %s COMMAND [ARGUMENTS]\n\n", prefix,
		 command_family(prefix), prefix);
	for (size_t i = 0; commands[i]; i++)
		if (str_is(command_word(commands[i]), prefix))
			put_pair(out, commands[i]->name, 16, commands[i]->summary);
	buf_addf(out, "\nMore about one of them: pawl help %s COMMAND\n", prefix);
}

static void help_options(struct buf *out)
{
	buf_adds(
		out,
		STR("Options of every command. Write them before or after the name of the command.\n"));
	put_params(out, global_params, false, "options");
	buf_adds(out,
		 STR("\n"
		     "Store, queue, agent, run, timeout, format and color can also come from the\n"
		     "environment (PAWL_AGENT, …); `pawl config list` shows the settings.\n"));
}

static void help_codes(struct buf *out)
{
	static const enum result all[] = {
#define RESULT(name, exit, http, text) name,
#include "core/result.def"
#undef RESULT
	};

	buf_adds(out, STR("Exit codes, the same for every command and every store.\n\n"));
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		put_code(out, all[i]);
	buf_adds(out,
		 STR("\nWhat to do about a code: pawl help CODE, with its name or its number\n"));
}

/* Lists commands of two words once, under their first word. */
static bool listed_before(size_t i)
{
	struct str word = command_word(commands[i]);

	return i && str_eq(word, command_word(commands[i - 1]));
}

static void help_entry(struct buf *out, size_t i)
{
	struct str word = command_word(commands[i]);
	struct buf text = BUF_MAX(512);
	const char *name = commands[i]->name;

	if (word.n == strlen(name)) {
		put_pair(out, name, 14, commands[i]->summary);
		return;
	}
	for (size_t k = i; commands[k] && str_eq(command_word(commands[k]), word); k++)
		buf_addf(&text, "%s%s", k > i ? " | " : "", commands[k]->name + word.n + 1);
	buf_addf(out, "  %.*s%*s", STRF(word), (int)(12 - word.n), "");
	gen_wrap(out, text.p, 14, WIDTH, 14);
	buf_free(&text);
}

static void help_all(struct buf *out)
{
	buf_adds(out, STR("pawl: a task queue with locks for coding agents\n\n"
			  "usage: pawl [OPTIONS] COMMAND [ARGUMENTS]\n"));
	for (const struct command_group *g = command_groups; g->name; g++) {
		put_heading(out, g->title);
		for (size_t i = 0; commands[i]; i++)
			if (!strcmp(commands[i]->group, g->name) &&
			    !(commands[i]->flags & C_HIDDEN) && !listed_before(i))
				help_entry(out, i);
	}
	buf_adds(
		out,
		STR("\n"
		    "`pawl help COMMAND` explains a command, `pawl help options` the options of every\n"
		    "command, and `pawl help codes` the exit codes. To begin: pawl init\n"));
}

/* Finds a command that is built in or comes from a module. */
static const struct command *cli_help_find(const char *const *words, size_t n, size_t *used)
{
	const struct command *c = command_find(words, n, used);
	const struct module *m;
	char why[300];

	if (c || command_prefix(words[0]) ||
	    module_load("face", str_c(words[0]), &m, why, sizeof(why)) || !m->commands)
		return c;
	return command_find_in(m->commands, words, n, used);
}

/* Translates an exit code into its name: "21" is LOST_LOCK. */
static struct str code_topic(struct str topic)
{
	static const struct {
		const char *name;
		int exit;
	} all[] = {
#define RESULT(name, exit, http, text) { #name, exit },
#include "core/result.def"
#undef RESULT
	};
	int64_t code;

	for (size_t i = 0; str_to_i64(topic, &code) && i < sizeof(all) / sizeof(*all); i++)
		if (all[i].exit == code)
			return str_c(all[i].name);
	return topic;
}

bool help_topic(struct buf *out, struct strs topic)
{
	const char *words[2] = { topic.n ? topic.v[0].p : NULL, topic.n > 1 ? topic.v[1].p : NULL };
	const struct command *c;
	size_t used = 0;

	if (!topic.n) {
		help_all(out);
		return true;
	}
	c = cli_help_find(words, topic.n < 2 ? topic.n : 2, &used);
	if (c && used == topic.n)
		help_command(out, c);
	else if (topic.n == 1 && command_prefix(words[0]))
		help_prefix(out, words[0]);
	else if (topic.n == 1 && !strcmp(words[0], "options"))
		help_options(out);
	else if (topic.n == 1 && !strcmp(words[0], "codes"))
		help_codes(out);
	else
		return topic.n == 1 && trouble_topic(out, code_topic(topic.v[0]));
	return true;
}

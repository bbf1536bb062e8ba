/* doc/commands.md */
#include <string.h>

#include "face/gen/gen.h"

void gen_cell(struct buf *out, struct str text)
{
	for (size_t i = 0; i < text.n; i++) {
		char c = text.p[i];

		if (c == '|')
			buf_addc(out, '\\');
		if (c == '<')
			buf_adds(out, STR("&lt;"));
		else
			buf_addc(out, c == '\n' ? ' ' : c);
	}
}

static void put_params(struct buf *out, const struct param *params)
{
	if (!params)
		return;
	buf_adds(out, STR("\n| | | default |\n| --- | --- | --- |\n"));
	for (const struct param *p = params; p->name; p++) {
		buf_adds(out, STR("| `"));
		gen_param_name(out, p);
		buf_adds(out, STR("` | "));
		gen_cell(out, str_c(p->help));
		buf_addf(out, "%s | ",
			 p->flags & P_REQUIRED && !(p->flags & P_ELSEWHERE) ? " (required)" : "");
		gen_cell(out, str_c(p->def));
		buf_adds(out, STR(" |\n"));
	}
}

static void put_command(struct buf *out, const struct command *c)
{
	enum result codes[16];
	size_t n = gen_codes(c, codes);
	bool asks = c->summary[strlen(c->summary) - 1] == '?';

	buf_addf(out, "\n### pawl %s\n\n%s%s\n\n```\n", c->name, c->summary, asks ? "" : ".");
	gen_usage(out, c, 90, 0);
	buf_adds(out, STR("```\n"));
	if (c->detail)
		buf_addf(out, "\n%s\n", c->detail);
	put_params(out, c->params);
	buf_addf(out, "\n```sh\n%s\n```\n\nExit codes:", c->example);
	for (size_t i = 0; i < n; i++)
		buf_addf(out, "%s %d %s", i ? "," : "", (int)codes[i], result_name(codes[i]));
	buf_adds(out, STR(".\n"));
	if (c->see)
		buf_addf(out, "See also: %s.\n", c->see);
}

void gen_reference(struct buf *out)
{
	buf_adds(
		out,
		STR("# Commands\n"
		    "\n"
		    "For people and scripts that call pawl: every command with its options and exit codes.\n"
		    "`pawl-gen reference` makes this page from the table of commands; do not edit it.\n"
		    "\n"
		    "Every command takes these options, before or after its name:\n"));
	put_params(out, global_params);
	for (const struct command_group *g = command_groups; g->name; g++) {
		buf_addf(out, "\n## %s\n", g->name);
		for (size_t i = 0; commands[i]; i++)
			if (!strcmp(commands[i]->group, g->name) &&
			    !(commands[i]->flags & C_HIDDEN))
				put_command(out, commands[i]);
	}
}

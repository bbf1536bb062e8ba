/*
 * Generates doc/settings.md and doc/codes.md, from the tables of settings and codes and from
 * doc/troubleshooting.md.
 */
#include <ctype.h>
#include <string.h>

#include "base/text.h"
#include "client/settings.h"
#include "face/cli/cli.h"
#include "face/gen/gen.h"
#include "store/store.h"

static const enum result all_codes[] = {
#define RESULT(name, exit, http, text) name,
#include "core/result.def"
#undef RESULT
};

static void put_kind(struct buf *out, const char *kind)
{
	static const char *const kinds[][2] = { { "TEXT", "a text" },
						{ "DURATION", "a duration" },
						{ "NUMBER", "a number" } };

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (!strcmp(kind, kinds[i][0])) {
			buf_adds(out, str_c(kinds[i][1]));
			return;
		}
	buf_addc(out, '`');
	for (; *kind; kind++)
		buf_adds(out, *kind == ' ' ? STR("`, `") : str_n(kind, 1));
	buf_addc(out, '`');
}

static void put_setting(struct buf *out, const struct setting *s)
{
	buf_addf(out, "| `%s` | ", s->name);
	put_kind(out, s->kind);
	buf_addf(out, *s->def ? " | `%s` | " : " |%s | ", s->def);
	gen_cell(out, str_c(s->help));
	buf_adds(out, STR(" |\n"));
}

void gen_settings(struct buf *out)
{
	buf_adds(
		out,
		STR("# Settings\n\n"
		    "For people who configure pawl: every setting, its default and its meaning.\n"
		    "`pawl-gen settings` makes this page from `src/client/settings.def`; do not edit it.\n\n"
		    "## Change a setting\n\n```sh\n"
		    "pawl config set lease 30m             # for this queue, in .pawl/config\n"
		    "pawl config set agent alice --user    # for you, in $XDG_CONFIG_HOME/pawl/config\n"
		    "PAWL_LEASE=30m pawl next --claim      # for one call\n"
		    "pawl config list                      # every value, and where it comes from\n"
		    "pawl config unset lease               # back to the next place below\n```\n\n"
		    "pawl takes a setting from the first of these places that has it:\n\n"
		    "1. the environment: `PAWL_` and the name in capitals, with `_` for `.`\n"
		    "   (`lock.timeout` is `PAWL_LOCK_TIMEOUT`)\n"
		    "2. `.pawl/config` of the queue\n"
		    "3. `$XDG_CONFIG_HOME/pawl/config`\n"
		    "4. the profile, which the setting `profile` names\n"
		    "5. the default\n\n"
		    "A duration is `90` (seconds), `90s`, `0.5s`, `200ms`, `15m`, `2h`, `1d` or `1h30m`.\n\n"
		    "## All settings\n\n"
		    "| setting | value | default | meaning |\n| --- | --- | --- | --- |\n"));
	for (const struct setting *s = settings_list; s->name; s++)
		put_setting(out, s);
	buf_adds(
		out,
		STR("\n## Profiles\n\n"
		    "`pawl config profile NAME` chooses a profile. A profile gives these settings a\n"
		    "value where no place above it does.\n\n"
		    "| profile | setting | value |\n| --- | --- | --- |\n"));
	for (const struct profile_value *p = profile_values; p->profile; p++)
		buf_addf(out, "| %s | `%s` | `%s` |\n", p->profile, p->setting, p->value);
}

/* Cuts the next paragraph off *text; empty at its end. */
static struct str cut_paragraph(struct str *text)
{
	const char *start;
	size_t n = 0;

	while (text->n && *text->p == '\n')
		str_cut(text, '\n');
	start = text->p;
	while (text->n && *text->p != '\n')
		n += str_cut(text, '\n').n + 1;
	return str_trim(str_n(start, n));
}

/* Writes two cells from an entry of doc/troubleshooting.md: its first paragraph, and the first paragraph with
 * advice. `meaning` replaces the first paragraph. */
static void put_entry(struct buf *out, const char *topic, const char *meaning)
{
	struct buf entry = BUF_MAX(1u << 16);
	struct str rest, paragraph;

	trouble_topic(&entry, str_c(topic));
	rest = buf_str(&entry);
	str_cut(&rest, '\n'); /* skip the heading */
	paragraph = cut_paragraph(&rest);
	gen_cell(out, meaning ? str_c(meaning) : paragraph);
	buf_adds(out, STR(" | "));
	while (paragraph.n && !str_cut_prefix(&paragraph, STR("To do: ")))
		paragraph = cut_paragraph(&rest);
	gen_cell(out, paragraph);
	buf_adds(out, STR(" |\n"));
	buf_free(&entry);
}

static void put_link(struct buf *out, const char *topic)
{
	buf_addf(out, "[%s](troubleshooting.md#", topic);
	for (; *topic; topic++)
		buf_addc(out, (char)tolower((unsigned char)*topic));
	buf_adds(out, STR(") | "));
}

void gen_codes_page(struct buf *out)
{
	buf_adds(
		out,
		STR("# Exit codes\n\n"
		    "For people and scripts that call pawl: what each exit code means and what to do.\n"
		    "`pawl-gen codes` makes this page from `src/core/result.def` and\n"
		    "[troubleshooting.md](troubleshooting.md), which says more about each code; do not edit it.\n\n"
		    "The codes are the same for every command and every store. With `--json` the name\n"
		    "of the code is in `code`, or in `error.code`. `pawl run` exits with the code of the\n"
		    "command that it ran, if that command failed ([run.md](run.md)).\n\n"
		    "| exit | code | meaning | what to do |\n| --- | --- | --- | --- |\n"));
	for (size_t i = 0; i < sizeof(all_codes) / sizeof(*all_codes); i++) {
		buf_addf(out, "| %d | ", (int)all_codes[i]);
		put_link(out, result_name(all_codes[i]));
		put_entry(out, result_name(all_codes[i]), result_text(all_codes[i]));
	}
	buf_adds(
		out,
		STR("\n## Faults of a store\n\n"
		    "If the store is the cause of API_ERROR or MISCONFIGURED, `error.fault` names its\n"
		    "fault.\n\n"
		    "| fault | meaning | what to do |\n| --- | --- | --- |\n"));
	for (int f = STORE_BUSY; store_fault_name(f); f--) {
		buf_adds(out, STR("| "));
		put_link(out, store_fault_name(f));
		put_entry(out, store_fault_name(f), NULL);
	}
}

/* --- reference -------------------------------------------------------------------------------- */

/* Generates doc/commands.md from the table of commands. */

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

/* --- text ------------------------------------------------------------------------------------- */

/* Usage lines, wrapped texts and exit codes, which the help, man pages and the reference share. */

void gen_param_name(struct buf *out, const struct param *p)
{
	const char *value = param_value(p);

	if (p->flags & P_POSITIONAL) {
		buf_addf(out, "%s%s%s", p->flags & P_REST ? "-- " : "", p->name,
			 param_repeats(p) ? "..." : "");
		return;
	}
	if (p->letter)
		buf_addf(out, "-%c, ", p->letter);
	buf_addf(out, "--%s", p->name);
	if (value)
		buf_addf(out, " %s", value);
}

static void add_usage_item(struct buf *out, const struct param *p)
{
	const char *value = param_value(p), *dots = param_repeats(p) ? "..." : "";
	bool needed = p->flags & P_REQUIRED && !(p->flags & P_ELSEWHERE);

	buf_adds(out, needed ? STR("") : STR("["));
	if (p->flags & P_POSITIONAL)
		buf_addf(out, "%s%s%s", p->flags & P_REST ? "-- " : "", p->name, dots);
	else
		buf_addf(out, "--%s%s%s%s", p->name, value ? " " : "", value ? value : "", dots);
	buf_adds(out, needed ? STR("") : STR("]"));
}

/* Arguments first, then required options, the other options, and the words after "--". */
static int usage_place(const struct param *p)
{
	if (p->flags & P_REST)
		return 3;
	return p->flags & P_POSITIONAL ? 0 : p->flags & P_REQUIRED ? 1 : 2;
}

void gen_usage(struct buf *out, const struct command *c, size_t width, size_t indent)
{
	struct buf item = BUF_MAX(256);
	size_t at = indent + strlen("pawl ") + strlen(c->name), deeper = indent + 4;

	buf_addf(out, "pawl %s", c->name);
	for (int pass = 0; pass < 4; pass++) {
		for (const struct param *p = c->params; p && p->name; p++) {
			if (usage_place(p) != pass)
				continue;
			item.n = 0;
			add_usage_item(&item, p);
			if (at + 1 + item.n > width) {
				buf_addf(out, "\n%*s", (int)deeper, "");
				at = deeper;
			} else {
				buf_addc(out, ' ');
				at++;
			}
			buf_adds(out, buf_str(&item));
			at += item.n;
		}
	}
	buf_addc(out, '\n');
	buf_free(&item);
}

void gen_wrap(struct buf *out, const char *text, size_t indent, size_t width, size_t at)
{
	struct str rest = str_c(text);
	bool first = true;

	while (rest.n) {
		struct str word = str_cut(&rest, ' ');
		size_t n = text_width(word);

		if (!first && at + 1 + n > width) {
			buf_addf(out, "\n%*s", (int)indent, "");
			at = indent;
			first = true;
		}
		if (!first) {
			buf_addc(out, ' ');
			at++;
		}
		buf_adds(out, word);
		at += n;
		first = false;
	}
	buf_addc(out, '\n');
}

static int by_value(enum result a, enum result b)
{
	return (int)a - (int)b;
}

size_t gen_codes(const struct command *c, enum result *out)
{
	static const enum result common[] = { SUCCESS, USAGE, API_ERROR, MISCONFIGURED };
	size_t n = 0;

	for (size_t i = 0; i < sizeof(common) / sizeof(*common); i++)
		out[n++] = common[i];
	for (const enum result *r = c->fails; r && *r && n < 16; r++)
		out[n++] = *r;
	for (size_t i = 1; i < n; i++)
		for (size_t k = i; k && by_value(out[k - 1], out[k]) > 0; k--) {
			enum result swap = out[k];

			out[k] = out[k - 1];
			out[k - 1] = swap;
		}
	return n;
}

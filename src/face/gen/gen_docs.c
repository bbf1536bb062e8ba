/* doc/settings.md and doc/codes.md */
#include <ctype.h>

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

/* The next paragraph of *text; empty at its end. */
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

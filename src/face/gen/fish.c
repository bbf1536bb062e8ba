#include <stdio.h>

#include "face/gen/complete.h"

/* Escapes a text inside '…'. */
static void put(struct buf *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '\'' || *text == '\\')
			buf_addc(out, '\\');
		buf_addc(out, *text);
	}
}

static const char head_start[] =
	"# fish completion for pawl; made by `pawl completion fish`\n"
	"function __pawl_words --description 'the command and its words, without options'\n"
	"    set -l skip 0\n"
	"    set -l words\n"
	"    for word in (commandline -opc)[2..-1]\n"
	"        if test $skip = 1\n"
	"            set skip 0\n"
	"            continue\n"
	"        end\n"
	"        switch $word\n"
	"            case ";

static const char head_end[] = "\n"
			       "                set skip 1\n"
			       "            case '-*'\n"
			       "            case '*'\n"
			       "                set -a words $word\n"
			       "        end\n"
			       "    end\n"
			       "    string join ' ' -- $words\n"
			       "end\n"
			       "function __pawl_at --description 'is this the command?'\n"
			       "    string match -qr -- \"^$argv[1]( |\\$)\" (__pawl_words)\n"
			       "end\n"
			       "function __pawl_is --description 'exactly these words so far?'\n"
			       "    test (__pawl_words | string collect; or echo) = \"$argv[1]\"\n"
			       "end\n"
			       "function __pawl_values\n"
			       "    " VALUES_COMMAND("$argv[1]") "\n"
								 "end\n"
								 "complete -c pawl -f\n";

static void add_condition(struct buf *out, const char *function, const char *words)
{
	buf_addf(out, " -n '%s \"%s\"'", function, words);
}

static const struct completion actions = { .words = { " -a '", "'" },
					   .values = { " -a '(__pawl_values ", ")'" },
					   .folders = " -a '(__fish_complete_directories)'",
					   .commands = "",
					   .nothing = "" };

static void add_param(struct buf *out, const char *command, const struct param *p)
{
	if (p->flags & P_POSITIONAL &&
	    (completes(p) == COMPLETES_NOTHING || completes(p) == COMPLETES_COMMANDS))
		return;
	buf_adds(out, STR("complete -c pawl"));
	if (command)
		add_condition(out, "__pawl_at", command);
	if (!(p->flags & P_POSITIONAL)) {
		buf_addf(out, " -l %s", p->name);
		if (p->letter)
			buf_addf(out, " -s %c", p->letter);
		if (p->type != P_FLAG)
			buf_adds(out, STR(" -x"));
	}
	completes_put(out, p, &actions);
	buf_adds(out, STR(" -d '"));
	put(out, p->help);
	buf_adds(out, STR("'\n"));
}

static void add_params(struct buf *out, const char *command, const struct param *p)
{
	for (; p && p->name; p++)
		add_param(out, command, p);
}

static void add_word(struct buf *out, struct str word, const struct command *c)
{
	char name[64];

	snprintf(name, sizeof(name), "%.*s", STRF(word));
	for (int help = 0; help < 2; help++) {
		buf_adds(out, STR("complete -c pawl"));
		add_condition(out, "__pawl_is", help ? "help" : "");
		buf_addf(out, " -a '%s' -d '", name);
		put(out, c ? c->summary : command_family(name));
		buf_adds(out, STR("'\n"));
	}
}

static void add_second(struct buf *out, const struct command *c)
{
	char word[64];

	if (!second_word(c))
		return;
	snprintf(word, sizeof(word), "%.*s", STRF(command_word(c)));
	buf_adds(out, STR("complete -c pawl"));
	add_condition(out, "__pawl_is", word);
	buf_addf(out, " -a '%s' -d '", second_word(c));
	put(out, c->summary);
	buf_adds(out, STR("'\n"));
}

void gen_fish(struct buf *out)
{
	buf_add(out, head_start, sizeof(head_start) - 1);
	value_options(out, global_params, " ");
	buf_add(out, head_end, sizeof(head_end) - 1);
	each_word(out, add_word);
	add_params(out, NULL, global_params);
	for (size_t i = 0; commands[i]; i++) {
		add_second(out, commands[i]);
		add_params(out, commands[i]->name, commands[i]->params);
	}
}

#include <stdio.h>

#include "face/gen/complete.h"

/* Escapes a text inside '…' and inside an _arguments description. */
static void put(struct buf *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '\'')
			buf_adds(out, STR("'\\''"));
		else if (strchr("[]:\\", *text))
			buf_addf(out, "\\%c", *text);
		else
			buf_addc(out, *text);
	}
}

static const struct completion actions = { .words = { "(", ")" },
					   .values = { "{_pawl_values ", "}" },
					   .folders = "_files -/",
					   .commands = "_pawl_commands",
					   .nothing = " " };

static void add_value(struct buf *out, const struct param *p)
{
	if (p->type == P_FLAG)
		return;
	buf_adds(out, p->flags & P_OPTIONAL ? STR("::") : STR(":"));
	put(out, param_value(p));
	buf_addc(out, ':');
	completes_put(out, p, &actions);
}

static void add_option(struct buf *out, const struct param *p)
{
	const char *many = param_repeats(p) ? "*" : "";

	if (p->letter)
		buf_addf(out, "\t\t'%s-%c", many, p->letter);
	for (int both = p->letter ? 2 : 1; both; both--) {
		if (both == 1)
			buf_addf(out, "\t\t'%s--%s", many, p->name);
		buf_addc(out, '[');
		put(out, p->help);
		buf_addc(out, ']');
		add_value(out, p);
		buf_adds(out, STR("'\n"));
	}
}

static void add_params(struct buf *out, const struct param *p)
{
	int at = 1;

	for (; p && p->name; p++) {
		if (!(p->flags & P_POSITIONAL)) {
			add_option(out, p);
			continue;
		}
		if (param_repeats(p))
			buf_adds(out, STR("\t\t'*:"));
		else
			buf_addf(out, "\t\t'%d:", at++);
		put(out, p->help);
		buf_addc(out, ':');
		completes_put(out, p, &actions);
		buf_adds(out, STR("'\n"));
	}
}

static void add_described(struct buf *out, const char *name, const char *summary)
{
	buf_addf(out, "\t\t'%s:", name);
	put(out, summary);
	buf_adds(out, STR("'\n"));
}

static void add_word(struct buf *out, struct str word, const struct command *c)
{
	char name[64];

	snprintf(name, sizeof(name), "%.*s", STRF(word));
	add_described(out, name, c ? c->summary : command_family(name));
}

/* Writes a function for each command: _pawl-lock-acquire. */
static void add_function(struct buf *out, const struct command *c)
{
	buf_adds(out, STR("_pawl-"));
	for (const char *p = c->name; *p; p++)
		buf_addc(out, *p == ' ' ? '-' : *p);
	buf_adds(out, STR("() {\n\tlocal -a specs=(\n"));
	add_params(out, c->params);
	buf_adds(out, STR("\t)\n\t_arguments -s : $_pawl_globals $specs\n}\n"));
}

static void add_family(struct buf *out, struct str word, const struct command *c)
{
	if (c)
		return;
	buf_addf(out, "_pawl-%.*s() {\n\tlocal context state line\n\tlocal -a cmds=(\n",
		 STRF(word));
	for (size_t i = 0; commands[i]; i++)
		if (str_eq(command_word(commands[i]), word))
			add_described(out, second_word(commands[i]), commands[i]->summary);
	buf_addf(
		out,
		"\t)\n\t_arguments -s -C : $_pawl_globals '1: :->command' '*:: :->args'\n"
		"\tcase $state in\n"
		"\tcommand) _describe command cmds ;;\n"
		"\targs) (( $+functions[_pawl-%.*s-$words[1]] )) && _pawl-%.*s-$words[1] ;;\n\tesac\n}\n",
		STRF(word), STRF(word));
}

void gen_zsh(struct buf *out)
{
	buf_adds(out,
		 STR("#compdef pawl\n# zsh completion for pawl; made by `pawl completion zsh`\n"
		     "_pawl_values() {\n\tlocal -a values=(${(f)\"$(" VALUES_COMMAND(
			     "\"$1\"") ")\"})\n\tcompadd -a -- values\n}\n"
				       "_pawl_commands() {\n\tlocal -a cmds=(\n"));
	each_word(out, add_word);
	buf_adds(out, STR("\t)\n\t_describe command cmds\n}\ntypeset -ga _pawl_globals=(\n"));
	add_params(out, global_params);
	buf_adds(out, STR(")\n"));
	for (size_t i = 0; commands[i]; i++)
		add_function(out, commands[i]);
	each_word(out, add_family);
	buf_adds(
		out,
		STR("_pawl() {\n\tlocal context state line\n"
		    "\t_arguments -s -C : $_pawl_globals '1: :->command' '*:: :->args'\n"
		    "\tcase $state in\n"
		    "\tcommand) _pawl_commands ;;\n"
		    "\targs) (( $+functions[_pawl-$words[1]] )) && _pawl-$words[1] ;;\n"
		    "\tesac\n}\n"
		    "if [[ $funcstack[1] = _pawl ]]; then _pawl \"$@\"; else compdef _pawl pawl; fi\n"));
}

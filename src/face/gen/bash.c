#include "face/gen/complete.h"

static const char head[] =
	"# bash completion for pawl; made by `pawl completion bash`\n"
	"_pawl_words() { mapfile -t COMPREPLY < <(compgen -W \"$1\" -- \"$cur\"); }\n"
	/* compgen -W expands its words, which others wrote: a $(…) in a word would run */
	"_pawl_values()\n{\n\tlocal value values\n\tmapfile -t values < <(" VALUES_COMMAND(
		"\"$1\"") ")\n"
			  "\tfor value in \"${values[@]}\"; do\n"
			  "\t\t[[ $value == \"$cur\"* ]] && COMPREPLY+=(\"$(printf %q \"$value\")\")\n\tdone\n}\n"
			  "_pawl_dirs() { compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -d -- \"$cur\"); }\n"
			  "\n";

static void add_word(struct buf *out, struct str word, const struct command *c)
{
	(void)c;
	buf_addf(out, "%.*s ", STRF(word));
}

static const struct completion actions = { .words = { "_pawl_words '", "'" },
					   .values = { "_pawl_values ", "" },
					   .folders = "_pawl_dirs",
					   .commands = "_pawl_words \"$commands\"",
					   .nothing = ":" };

/* Completes the value of the option before: "'list --status'|'list -s') …; return ;;" */
static void add_values(struct buf *out, const char *name, const struct param *params)
{
	for (const struct param *p = params; p && p->name; p++) {
		if (p->flags & P_POSITIONAL || p->type == P_FLAG)
			continue;
		buf_addf(out, "\t%s'%s --%s'", name ? "" : "*", name ? name : "", p->name);
		if (p->letter)
			buf_addf(out, "|%s'%s -%c'", name ? "" : "*", name ? name : "", p->letter);
		buf_adds(out, STR(") "));
		completes_put(out, p, &actions);
		buf_adds(out, STR("; return ;;\n"));
	}
}

static void add_options(struct buf *out, const struct param *p)
{
	for (; p && p->name; p++)
		if (!(p->flags & P_POSITIONAL))
			buf_addf(out, " --%s", p->name);
}

/* Completes the words after a command: "claim:0) _pawl_values ids ;;" */
static void add_positionals(struct buf *out, const struct command *c)
{
	int at = 0;

	for (const struct param *p = c->params; p && p->name; p++) {
		if (!(p->flags & P_POSITIONAL))
			continue;
		if (param_repeats(p))
			buf_addf(out, "\t'%s:'*) ", c->name);
		else
			buf_addf(out, "\t'%s:%d') ", c->name, at);
		completes_put(out, p, &actions);
		buf_adds(out, STR(" ;;\n"));
		at++;
	}
}

static void add_seconds(struct buf *out, struct str word, const struct command *c)
{
	if (c)
		return;
	buf_addf(out, "\t'%.*s:0') _pawl_words '", STRF(word));
	for (size_t i = 0; commands[i]; i++)
		if (str_eq(command_word(commands[i]), word))
			buf_addf(out, "%s ", second_word(commands[i]));
	buf_adds(out, STR("' ;;\n"));
}

static void add_prefixes(struct buf *out, struct str word, const struct command *c)
{
	if (!c)
		buf_addf(out, "%s%.*s", out->p[out->n - 1] == '\t' ? "" : "|", STRF(word));
}

/* Finds the command and the number of words after it. */
static void add_scan(struct buf *out)
{
	buf_adds(out, STR("\tfor ((i = 1; i < COMP_CWORD; i++)); do\n"
			  "\t\tword=${COMP_WORDS[i]}\n"
			  "\t\tcase \"$cmd $word\" in\n"
			  "\t\t*' --') continue ;;\n"));
	for (size_t i = 0; commands[i]; i++) {
		struct buf list = BUF_MAX(4096);
		struct str rest;

		value_options(&list, commands[i]->params, " ");
		rest = buf_str(&list);
		for (bool any = false; rest.n; any = true) {
			struct str option = str_cut(&rest, ' ');

			buf_addf(out, "%s'%s %.*s'%s", any ? "|" : "\t\t", commands[i]->name,
				 STRF(option), rest.n ? "" : ") ((i++)); continue ;;\n");
		}
		buf_free(&list);
	}
	buf_adds(out, STR("\t\t*' "));
	value_options(out, global_params, "'|*' ");
	buf_adds(out, STR("') ((i++)); continue ;;\n\t\tesac\n"
			  "\t\tcase $word in\n\t\t-*) continue ;;\n\t\tesac\n"
			  "\t\tif [[ -z $cmd ]]; then cmd=$word; continue; fi\n"
			  "\t\tcase $cmd in\n\t\t"));
	each_word(out, add_prefixes);
	buf_adds(out, STR(") cmd=\"$cmd $word\" ;;\n\t\t*) ((pos++)) ;;\n\t\tesac\n\tdone\n"));
}

void gen_bash(struct buf *out)
{
	buf_add(out, head, sizeof(head) - 1);
	buf_adds(
		out,
		STR("_pawl()\n{\n\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
		    "\tlocal cmd= word i pos=0 options commands='"));
	each_word(out, add_word);
	buf_adds(out, STR("'\n\tCOMPREPLY=()\n"));
	add_scan(out);
	buf_adds(out, STR("\tcase \"$cmd $prev\" in\n"));
	for (size_t i = 0; commands[i]; i++)
		add_values(out, commands[i]->name, commands[i]->params);
	add_values(out, NULL, global_params);
	buf_adds(out, STR("\tesac\n\tif [[ $cur == -* ]]; then\n\t\toptions='"));
	add_options(out, global_params);
	buf_adds(out, STR("'\n\t\tcase $cmd in\n"));
	for (size_t i = 0; commands[i]; i++) {
		buf_addf(out, "\t\t'%s') options+='", commands[i]->name);
		add_options(out, commands[i]->params);
		buf_adds(out, STR("' ;;\n"));
	}
	buf_adds(out, STR("\t\tesac\n\t\t_pawl_words \"$options\"\n\t\treturn\n\tfi\n"
			  "\tif [[ -z $cmd ]]; then _pawl_words \"$commands\"; return; fi\n"
			  "\tcase $cmd:$pos in\n"));
	each_word(out, add_seconds);
	for (size_t i = 0; commands[i]; i++)
		add_positionals(out, commands[i]);
	buf_adds(out, STR("\tesac\n}\ncomplete -F _pawl pawl\n"));
}

/* Man pages, in the macros of man(7). No text from the table may be interpreted by roff. */
#include <ctype.h>

#include "face/gen/gen.h"

/* A fixed date, not the day of the build: the same source makes the same pages. */
#define PAGE_DATE "2026-11-15"

/* Writes text into a page and escapes characters that roff would interpret. */
static void gen_man_put(struct buf *out, struct str s)
{
	for (size_t i = 0; i < s.n; i++) {
		bool start = i == 0 || s.p[i - 1] == '\n';

		if (start && (s.p[i] == '.' || s.p[i] == '\''))
			buf_adds(out, STR("\\&"));
		if (s.p[i] == '\\')
			buf_adds(out, STR("\\e"));
		else if (s.p[i] == '-')
			buf_adds(out, STR("\\-"));
		else
			buf_addc(out, s.p[i]);
	}
}

static void put_line(struct buf *out, const char *text)
{
	gen_man_put(out, str_c(text));
	buf_addc(out, '\n');
}

static void put_upper(struct buf *out, const char *word)
{
	for (; *word; word++)
		buf_addc(out, (char)toupper((unsigned char)*word));
}

static void put_param(struct buf *out, const struct param *p)
{
	struct buf name = BUF_MAX(256);

	gen_param_name(&name, p);
	buf_adds(out, STR(".TP\n\\fB"));
	gen_man_put(out, buf_str(&name));
	buf_adds(out, STR("\\fR\n"));
	gen_man_put(out, str_c(p->help));
	if (p->def) {
		buf_adds(out, STR(" (default: "));
		gen_man_put(out, str_c(p->def));
		buf_addc(out, ')');
	}
	buf_adds(out, STR(".\n"));
	buf_free(&name);
}

static void put_params(struct buf *out, const struct param *p)
{
	for (; p && p->name; p++)
		put_param(out, p);
}

static void put_example(struct buf *out, const char *example)
{
	buf_adds(out, STR(".nf\n.RS\n"));
	put_line(out, example);
	buf_adds(out, STR(".RE\n.fi\n"));
}

static void put_head(struct buf *out, const char *word, const char *summary)
{
	buf_adds(out, STR(".TH PAWL"));
	if (word) {
		buf_adds(out, STR("\\-"));
		put_upper(out, word);
	}
	buf_adds(out, STR(" 1 " PAGE_DATE " pawl \"pawl manual\"\n.SH NAME\npawl"));
	buf_addf(out, "%s%s \\- ", word ? "\\-" : "", word ? word : "");
	put_line(out, summary);
}

static void put_synopsis(struct buf *out, const struct command *c)
{
	struct buf usage = BUF_MAX(4096);

	gen_usage(&usage, c, 70, 0);
	buf_adds(out, STR(".nf\n"));
	gen_man_put(out, buf_str(&usage));
	buf_adds(out, STR(".fi\n"));
	buf_free(&usage);
}

static void put_codes(struct buf *out, const enum result *codes, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		buf_addf(out, ".TP\n\\fB%d\\fR %s\n", (int)codes[i], result_name(codes[i]));
		put_line(out, result_text(codes[i]));
	}
}

static void put_see(struct buf *out, const char *see)
{
	struct str rest = str_c(see);

	buf_adds(out, STR(".SH SEE ALSO\n.BR pawl (1)"));
	while (rest.n) {
		struct str name = str_trim(str_cut(&rest, ',')), word = name;

		word = str_cut(&word, ' ');
		buf_addf(out, ",\n.BR pawl\\-%.*s (1)", STRF(word));
	}
	buf_addc(out, '\n');
}

static void put_body(struct buf *out, const struct command *c)
{
	if (c->detail)
		put_line(out, c->detail);
	put_params(out, c->params);
	buf_adds(out, STR(".PP\n"));
	put_example(out, c->example);
}

static void page_single(struct buf *out, const struct command *c)
{
	enum result codes[16];
	size_t n = gen_codes(c, codes);

	put_head(out, c->name, c->summary);
	buf_adds(out, STR(".SH SYNOPSIS\n"));
	put_synopsis(out, c);
	buf_adds(out, STR(".SH DESCRIPTION\n"));
	put_line(out, c->detail ? c->detail : c->summary);
	if (c->params) {
		buf_adds(out, STR(".SH OPTIONS\n"));
		put_params(out, c->params);
	}
	buf_adds(out, STR(".SH EXAMPLE\n"));
	put_example(out, c->example);
	buf_adds(out, STR(".SH EXIT STATUS\n"));
	put_codes(out, codes, n);
	put_see(out, c->see);
}

static void page_family(struct buf *out, const char *word)
{
	put_head(out, word, command_family(word));
	buf_adds(out, STR(".SH SYNOPSIS\n"));
	for (size_t i = 0; commands[i]; i++)
		if (str_is(command_word(commands[i]), word))
			put_synopsis(out, commands[i]);
	buf_adds(out, STR(".SH COMMANDS\n"));
	for (size_t i = 0; commands[i]; i++) {
		if (!str_is(command_word(commands[i]), word))
			continue;
		buf_addf(out, ".SS \"%s: ", commands[i]->name);
		gen_man_put(out, str_c(commands[i]->summary));
		buf_adds(out, STR("\"\n"));
		put_body(out, commands[i]);
	}
	put_see(out, NULL);
}

static void put_all_commands(struct buf *out)
{
	for (const struct command_group *g = command_groups; g->name; g++) {
		buf_addf(out, ".SS \"%s\"\n", g->title);
		for (size_t i = 0; commands[i]; i++) {
			const struct command *c = commands[i];

			if (strcmp(c->group, g->name) != 0 || c->flags & C_HIDDEN)
				continue;
			buf_addf(out, ".TP\n\\fB%s\\fR\n", c->name);
			put_line(out, c->summary);
		}
	}
}

static void page_pawl(struct buf *out)
{
	static const enum result all[] = {
#define RESULT(name, exit, http, text) name,
#include "core/result.def"
#undef RESULT
	};

	put_head(out, NULL, "a task queue with locks for coding agents");
	buf_adds(out,
		 STR(".SH SYNOPSIS\n.B pawl\n[OPTIONS] COMMAND [ARGUMENTS]\n.SH DESCRIPTION\n"));
	put_line(
		out,
		"Any number of agents and people share a queue of tasks, and each task has one holder at a time. The "
		"holder has a lease and a token. If the holder stops sending heartbeats, its lease expires, and another "
		"agent can claim the task. pawl without a command shows an overview of the queue.");
	buf_adds(out, STR(".SH COMMANDS\n"));
	put_all_commands(out);
	buf_adds(out, STR(".SH OPTIONS\nEvery command takes these options.\n"));
	put_params(out, global_params);
	buf_adds(out, STR(".SH EXIT STATUS\n"));
	put_codes(out, all, sizeof(all) / sizeof(*all));
	buf_adds(out, STR(".SH ENVIRONMENT\n"));
	for (const struct setting *s = settings_list; s->name; s++) {
		buf_adds(out, STR(".TP\n\\fBPAWL_"));
		for (const char *c = s->name; *c; c++)
			buf_addc(out, *c == '.' ? '_' : (char)toupper((unsigned char)*c));
		buf_adds(out, STR("\\fR\n"));
		put_line(out, s->help);
	}
	buf_adds(
		out,
		STR(".SH FILES\n"
		    ".TP\n"
		    ".I .pawl/\n"
		    "the queue and its settings\n"
		    ".TP\n"
		    ".I $XDG_CONFIG_HOME/pawl/config\n"
		    "your own settings\n"
		    ".TP\n"
		    ".I $XDG_STATE_HOME/pawl/\n"
		    "the tokens of the locks that you hold, and the times at which pawl first saw locks on git remotes\n"));
}

void gen_man(struct buf *out, const char *word)
{
	const char *words[1] = { word };
	size_t used;
	const struct command *c = word ? command_find(words, 1, &used) : NULL;

	if (!word)
		page_pawl(out);
	else if (c)
		page_single(out, c);
	else
		page_family(out, word);
}

/* --- shells ----------------------------------------------------------------------------------- */

/*
 * The completion scripts. A script knows no commands: it passes the words up to the cursor to `pawl values line`, which
 * prints WORD or WORD<TAB>MEANING on each line, and a <TAB> before "folders" where the shell completes folders itself.
 * Other people chose some of the words, so a script never lets the shell expand one.
 */

#define ASK "pawl values line --format text -- "

static const char bash[] = "# bash completion for pawl; made by `pawl completion bash`\n"
			   "_pawl()\n{\n"
			   "\tlocal cur=${COMP_WORDS[COMP_CWORD]} word\n"
			   "\tCOMPREPLY=()\n"
			   "\twhile IFS= read -r word; do\n"
			   "\t\tif [[ $word == $'\\tfolders' ]]; then\n"
			   "\t\t\tcompopt -o filenames 2>/dev/null\n"
			   "\t\t\tmapfile -t COMPREPLY < <(compgen -d -- \"$cur\")\n"
			   "\t\t\treturn\n"
			   "\t\tfi\n"
			   "\t\tword=${word%%$'\\t'*}\n"
			   "\t\t[[ $word == \"$cur\"* ]] || continue\n"
			   "\t\tprintf -v word %q \"$word\"\n"
			   "\t\tCOMPREPLY+=(\"$word\")\n"
			   "\tdone < <(" ASK "\"${COMP_WORDS[@]:1:COMP_CWORD}\" 2>/dev/null)\n"
			   "}\n"
			   "complete -F _pawl pawl\n";

static const char zsh[] =
	"#compdef pawl\n"
	"# zsh completion for pawl; made by `pawl completion zsh`\n"
	"_pawl() {\n"
	"\tlocal word\n"
	"\tlocal -a plain described\n"
	"\tfor word in \"${(@f)$(" ASK "\"${(@Q)words[2,CURRENT]}\" 2>/dev/null)}\"; do\n"
	"\t\tcase $word in\n"
	"\t\t$'\\tfolders') _files -/; return ;;\n"
	"\t\t*$'\\t'*) described+=(\"${${word%%$'\\t'*}//:/\\\\:}:${word#*$'\\t'}\") ;;\n"
	"\t\t?*) plain+=(\"$word\") ;;\n"
	"\t\tesac\n"
	"\tdone\n"
	"\t(( $#described )) && _describe pawl described\n"
	"\t(( $#plain )) && compadd -a -- plain\n"
	"}\n"
	"if [[ $funcstack[1] = _pawl ]]; then _pawl \"$@\"; else compdef _pawl pawl; fi\n";

static const char fish[] = "# fish completion for pawl; made by `pawl completion fish`\n"
			   "function __pawl_complete\n"
			   "    set -l words (commandline -opc)\n"
			   "    set -l typed (commandline -ct)\n"
			   "    for word in (" ASK "$words[2..-1] \"$typed\" 2>/dev/null)\n"
			   "        if test \"$word\" = \\tfolders\n"
			   "            __fish_complete_directories \"$typed\"\n"
			   "        else\n"
			   "            printf '%s\\n' $word\n"
			   "        end\n"
			   "    end\n"
			   "end\n"
			   "complete -c pawl -f -a '(__pawl_complete)'\n";

bool gen_completion(struct buf *out, struct str shell)
{
	const char *script = str_is(shell, "bash")   ? bash
			     : str_is(shell, "zsh")  ? zsh
			     : str_is(shell, "fish") ? fish
						     : NULL;

	if (script)
		buf_adds(out, str_c(script));
	return script;
}

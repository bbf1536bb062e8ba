/*
 * The completion scripts. A script knows no commands: it passes the words up to the cursor to `pawl values line`, which
 * prints WORD or WORD<TAB>MEANING on each line, and a <TAB> before "folders" where the shell completes folders itself.
 * Other people chose some of the words, so a script never lets the shell expand one.
 */
#include "face/gen/gen.h"

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

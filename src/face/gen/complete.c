#include "face/gen/complete.h"

enum completes completes(const struct param *p)
{
	if (param_choices(p))
		return COMPLETES_WORDS;
	if (p->type == P_ID || p->type == P_IDS)
		/* the id of a new task is not an existing one */
		return strcmp(p->name, "id") ? COMPLETES_IDS : COMPLETES_NOTHING;
	if (p->type == P_WORDS)
		return COMPLETES_COMMANDS;
	return p->value && !strcmp(p->value, "DIR") ? COMPLETES_FOLDERS : COMPLETES_NOTHING;
}

const char *second_word(const struct command *c)
{
	const char *blank = strchr(c->name, ' ');

	return blank ? blank + 1 : NULL;
}

void each_word(struct buf *out, word_fn *fn)
{
	for (size_t i = 0; commands[i]; i++) {
		struct str word = command_word(commands[i]);

		if (commands[i]->flags & C_HIDDEN ||
		    (i && str_eq(word, command_word(commands[i - 1]))))
			continue;
		fn(out, word, second_word(commands[i]) ? NULL : commands[i]);
	}
}

void value_options(struct buf *out, const struct param *p, const char *between)
{
	bool any = false;

	for (; p && p->name; p++) {
		if (p->flags & P_POSITIONAL || p->type == P_FLAG)
			continue;
		buf_addf(out, "%s--%s", any ? between : "", p->name);
		if (p->letter)
			buf_addf(out, "%s-%c", between, p->letter);
		any = true;
	}
}

bool gen_completion(struct buf *out, struct str shell)
{
	if (str_is(shell, "bash"))
		gen_bash(out);
	else if (str_is(shell, "zsh"))
		gen_zsh(out);
	else if (str_is(shell, "fish"))
		gen_fish(out);
	else
		return false;
	return true;
}

#include "face/gen/complete.h"

/* By the name of the option: label and labels are different arguments, but have the same values. */
static enum completes by_name(const char *name)
{
	static const struct {
		const char *name;
		enum completes kind;
	} names[] = {
		{ "label", COMPLETES_LABELS },        { "add-label", COMPLETES_LABELS },
		{ "remove-label", COMPLETES_LABELS }, { "not-label", COMPLETES_LABELS },
		{ "holder", COMPLETES_HOLDERS },      { "assignee", COMPLETES_HOLDERS },
		{ "queue", COMPLETES_QUEUES },
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strcmp(name, names[i].name))
			return names[i].kind;
	return COMPLETES_NOTHING;
}

const char *completes_words(const struct param *p)
{
	return p->type == P_PRIORITY ? "low medium high" : param_choices(p);
}

const char *completes_values(const struct param *p)
{
	switch (completes(p)) {
	case COMPLETES_IDS:
		return "ids";
	case COMPLETES_LABELS:
		return "labels";
	case COMPLETES_HOLDERS:
		return "holders";
	case COMPLETES_QUEUES:
		return "queues";
	default:
		return NULL;
	}
}

enum completes completes(const struct param *p)
{
	if (completes_words(p))
		return COMPLETES_WORDS;
	if ((p->type == P_NAME || p->type == P_NAMES) && by_name(p->name))
		return by_name(p->name);
	if (p->type == P_ID || p->type == P_IDS)
		/* the id of a new task is not an existing one */
		return strcmp(p->name, "id") ? COMPLETES_IDS : COMPLETES_NOTHING;
	if (p->type == P_WORDS)
		return COMPLETES_COMMANDS;
	return p->value && !strcmp(p->value, "DIR") ? COMPLETES_FOLDERS : COMPLETES_NOTHING;
}

void completes_put(struct buf *out, const struct param *p, const struct completion *c)
{
	switch (completes(p)) {
	case COMPLETES_WORDS:
		buf_addf(out, "%s%s%s", c->words[0], completes_words(p), c->words[1]);
		break;
	case COMPLETES_IDS:
	case COMPLETES_LABELS:
	case COMPLETES_HOLDERS:
	case COMPLETES_QUEUES:
		buf_addf(out, "%s%s%s", c->values[0], completes_values(p), c->values[1]);
		break;
	case COMPLETES_FOLDERS:
		buf_adds(out, str_c(c->folders));
		break;
	case COMPLETES_COMMANDS:
		buf_adds(out, str_c(c->commands));
		break;
	case COMPLETES_NOTHING:
		buf_adds(out, str_c(c->nothing));
	}
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

#include "face/cli/complete.h"

#include "core/typed.h"
#include "face/cli/words.h"
#include "face/gen/complete.h"

/* The state after the words before the last one. */
struct reading {
	const struct command *command;
	const char *prefix;          /* the first word of a command of two: "lock" */
	const struct param *expects; /* the option whose value comes next */
	size_t positional;
	bool rest;    /* after "--" */
	bool unknown; /* the command does not exist */
};

struct finding {
	struct str typed;
	struct strs found;
	struct arena *arena;
};

static void offer(struct finding *f, struct str word)
{
	struct str head = str_n(word.p, f->typed.n < word.n ? f->typed.n : word.n);

	if (str_eq_nocase(head, f->typed) && !strs_have(f->found, word))
		f->found = arena_append(f->arena, f->found, arena_str(f->arena, word));
}

/* --- reading the words before --------------------------------------------------------------------- */

static const struct param *option(const struct param *p, struct str word)
{
	for (; p && p->name; p++) {
		if (p->flags & P_POSITIONAL)
			continue;
		if (str_starts(word, STR("--")) ? str_is(str_n(word.p + 2, word.n - 2), p->name)
						: p->letter && word.p[word.n - 1] == p->letter)
			return p;
	}
	return NULL;
}

static void read_option(struct reading *r, struct str word)
{
	const struct param *p = r->command ? option(r->command->params, word) : NULL;

	if (!p)
		p = option(global_params, word);
	if (p && p->type != P_FLAG)
		r->expects = p;
}

static void read_name(struct reading *r, struct str word)
{
	const char *words[2] = { r->prefix ? r->prefix : word.p, r->prefix ? word.p : NULL };
	size_t used;

	r->command = command_find(words, r->prefix ? 2 : 1, &used);
	if (r->command)
		return;
	r->unknown = r->prefix || !command_prefix(word.p);
	r->prefix = word.p;
}

static void read_word(struct reading *r, struct str word)
{
	if (r->expects)
		r->expects = NULL;
	else if (str_is(word, "--"))
		r->rest = true;
	else if (!r->rest && word.n > 1 && word.p[0] == '-')
		read_option(r, word);
	else if (r->command)
		r->positional++;
	else
		read_name(r, word);
}

/* --- collecting candidates ------------------------------------------------------------------------ */

static void offer_words(struct finding *f, const char *choices)
{
	struct str rest = str_c(choices);

	while (rest.n)
		offer(f, str_cut(&rest, ' '));
}

static void offer_commands(struct finding *f, const char *prefix)
{
	for (size_t i = 0; commands[i]; i++) {
		const struct command *c = commands[i];

		if (c->flags & C_HIDDEN)
			continue;
		if (!prefix)
			offer(f, command_word(c));
		else if (second_word(c) && str_is(command_word(c), prefix))
			offer(f, str_c(second_word(c)));
	}
	if (!prefix)
		offer(f, STR("exit"));
}

static void offer_options(struct finding *f, const struct param *p)
{
	for (; p && p->name; p++)
		if (!(p->flags & P_POSITIONAL))
			offer(f, arena_printf(f->arena, "--%s", p->name));
}

/* Offers the locks of the whole queue once the word begins with '@'. */
static void offer_typed(struct finding *f)
{
	if (!f->typed.n || f->typed.p[0] != '@')
		return;
	for (int kind = TYPED_NONE + 1; kind < TYPED_END; kind++)
		offer(f, arena_printf(f->arena, "@%s", typed_name((enum typed)kind)));
}

static void offer_settings(struct finding *f)
{
	for (const struct setting *s = settings_list; s->name; s++)
		offer(f, str_c(s->name));
}

/* As words_split() reads it back. */
static struct str escaped(struct str value, struct arena *a)
{
	struct buf b = BUF_MAX(SIZE_MAX / 4);
	struct str out;

	for (size_t i = 0; i < value.n; i++) {
		if (memchr(" \t\"'\\#", value.p[i], 6))
			buf_addc(&b, '\\');
		buf_addc(&b, value.p[i]);
	}
	out = arena_str(a, buf_str(&b));
	buf_free(&b);
	return out;
}

static void offer_values(struct finding *f, const struct param *p, values_fn *values, void *ctx)
{
	struct strs list;

	switch (completes(p)) {
	case COMPLETES_WORDS:
		offer_words(f, completes_words(p));
		break;
	case COMPLETES_IDS:
	case COMPLETES_LABELS:
	case COMPLETES_HOLDERS:
	case COMPLETES_QUEUES:
		list = values(ctx, completes_values(p), f->arena);
		for (size_t i = 0; i < list.n; i++)
			offer(f, escaped(list.v[i], f->arena));
		if (p->flags & P_TYPED)
			offer_typed(f);
		break;
	case COMPLETES_COMMANDS:
		offer_commands(f, NULL);
		break;
	default:
		if (p->flags & P_SETTING)
			offer_settings(f);
		break;
	}
}

struct strs complete_line(struct str line, size_t *from, values_fn *values, void *ctx,
			  struct arena *a)
{
	struct finding f = { .arena = a };
	struct reading r = { 0 };
	const struct param *next;
	struct words w;
	size_t before;

	words_split(&w, line, a);
	*from = w.last;
	before = w.list.n - (w.last < line.n);
	f.typed = str_n(line.p + w.last, line.n - w.last);
	if (w.open)
		return f.found;
	for (size_t i = before && str_is(w.list.v[0], "pawl") ? 1 : 0; i < before; i++)
		read_word(&r, w.list.v[i]);
	if (r.expects)
		offer_values(&f, r.expects, values, ctx);
	else if (r.rest || r.unknown)
		return f.found;
	else if (f.typed.n && f.typed.p[0] == '-') {
		offer_options(&f, r.command ? r.command->params : NULL);
		offer_options(&f, global_params);
	} else if (!r.command)
		offer_commands(&f, r.prefix);
	else if ((next = param_positional(r.command->params, r.positional)))
		offer_values(&f, next, values, ctx);
	return f.found;
}

/*
 * The command line: the input is its words, each followed by a NUL. A line that is understood can
 * be written in the long form, and then means the same.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <unistd.h>

#include "kit.h"
#include "record.h"
#include "base/when.h"
#include "format/request_form.h"
#include "face/cli/cli.h"

#define WORDS_MAX 64

struct line {
	const char *words[WORDS_MAX * 8];
	int n;
	struct arena *arena;
};

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	int fd = open("/dev/null", O_RDONLY);

	(void)argc, (void)argv;
	CHECK(fd >= 0 && dup2(fd, STDIN_FILENO) == STDIN_FILENO); /* for "-" */
	close(fd);
	setenv("PAWL_MODULE_DIR", "/nowhere", 1);
	return 0;
}

static void say(struct line *l, struct str word)
{
	CHECK(l->n < WORDS_MAX * 8);
	l->words[l->n++] = arena_cstr(l->arena, word);
}

/* --- writing it in the long form ---------------------------------------------------------------- */

static void say_value(struct line *l, const struct param *p, struct str value)
{
	if (p->flags & P_POSITIONAL)
		say(l, value);
	else if (p->type == P_FLAG)
		say(l, arena_printf(l->arena, "--%s", p->name));
	else
		say(l, arena_printf(l->arena, "--%s=%.*s", p->name, STRF(value)));
}

static void say_number(struct line *l, const struct param *p, int64_t v)
{
	struct str text;

	if (p->type == P_DURATION)
		text = arena_printf(l->arena, "%" PRId64 "ms", v);
	else if (p->type == P_TIME || p->type == P_DATE)
		text = when_text(l->arena, v);
	else if (p->type == P_STATUS)
		text = str_c(status_name(v));
	else if (p->type == P_CLASS)
		text = str_c(class_name(v));
	else
		text = arena_printf(l->arena, "%" PRId64, v);
	say_value(l, p, text);
}

static void say_list(struct line *l, const struct param *p, const struct strs *list)
{
	if (!list->n)
		say_value(l, p, STR(""));
	for (size_t i = 0; i < list->n; i++)
		say_value(l, p, list->v[i]);
}

static void say_statuses(struct line *l, const struct param *p, int64_t set)
{
	for (int s = BACKLOG; s < STATUS_END; s++)
		if (set & STATUS_BIT(s))
			say_value(l, p, str_c(status_name(s)));
}

static bool is_text(const struct param *p)
{
	return p->type == P_TEXT || p->type == P_TITLE || p->type == P_NAME || p->type == P_ID ||
	       p->type == P_CHOICE || p->type == P_TOKEN || p->type == P_JSON;
}

static bool is_list(const struct param *p)
{
	return p->type == P_IDS || p->type == P_NAMES || p->type == P_WORDS;
}

/* The address of the parameter's value. */
static const void *at_param(const struct parsed *p, const struct param *o, bool global)
{
	return (const char *)(global && !o->arg ? (const void *)&p->global : p->args) + o->offset;
}

static void say_param(struct line *l, const struct param *p, const void *at)
{
	if (is_text(p))
		say_value(l, p, *(const struct str *)at);
	else if (is_list(p))
		say_list(l, p, at);
	else if (p->type == P_STATUSES)
		say_statuses(l, p, *(const int64_t *)at);
	else
		say_number(l, p, *(const int64_t *)at);
}

static bool same_param(const struct param *p, const void *a, const void *b)
{
	if (is_text(p))
		return str_eq(*(const struct str *)a, *(const struct str *)b);
	if (is_list(p))
		return strs_eq(*(const struct strs *)a, *(const struct strs *)b);
	return *(const int64_t *)a == *(const int64_t *)b;
}

static bool given(const struct parsed *p, const struct param *o, bool global)
{
	const void *at = at_param(p, o, global);

	if (!global)
		return p->args->seen >> (o - p->command->params) & 1;
	if (o->arg)
		return p->args->rq.has >> (o->arg - 1) & 1;
	return is_text(o) ? ((const struct str *)at)->n > 0 : *(const int64_t *)at != 0;
}

/* The parameters of one list that were given; if two mean the same, one is written. */
static void say_all(struct line *l, const struct parsed *p, const struct param *list,
		    unsigned positional, uint64_t *said)
{
	bool global = list == global_params;

	for (const struct param *o = list; o && o->name; o++) {
		uint64_t bit = o->arg ? UINT64_C(1) << (o->arg - 1) : 0;

		if ((o->flags & P_POSITIONAL) != positional || !given(p, o, global) || *said & bit)
			continue;
		*said |= bit;
		say_param(l, o, at_param(p, o, global));
	}
}

static void say_again(struct line *l, const struct parsed *p)
{
	struct line behind = { .arena = l->arena };
	struct str name = str_c(p->command->name);
	uint64_t said = 0;

	say(l, STR("pawl"));
	while (name.n)
		say(l, str_cut(&name, ' '));
	say_all(&behind, p, p->command->params, P_POSITIONAL, &said);
	say_all(l, p, p->command->params, 0, &said);
	say_all(l, p, global_params, 0, &said);
	say(l, STR("--"));
	for (int i = 0; i < behind.n; i++)
		say(l, str_c(behind.words[i]));
}

static void check_again(const struct parsed *p, struct arena *a)
{
	struct line l = { .arena = a };
	struct parsed again;

	say_again(&l, p);
	parse(&again, l.n, l.words, a);
	CHECK(again.code == SUCCESS);
	CHECK(again.command == p->command);
	CHECK(same_request(&again.args->rq, &p->args->rq));
	for (const struct param *o = p->command->params; o && o->name; o++)
		CHECK(same_param(o, at_param(p, o, false), at_param(&again, o, false)));
	for (const struct param *o = global_params; o->name; o++)
		CHECK(same_param(o, at_param(p, o, true), at_param(&again, o, true)));
}

/* --- understood and refused lines --------------------------------------------------------------- */

static void check_understood(const struct parsed *p, struct arena *a)
{
	struct request r = p->args->rq, again;
	struct buf b = BUF_MAX(16u << 20);
	const char *fault;

	CHECK(!p->message.n && !p->hint.n);
	CHECK(r.op == p->command->op);
	for (int i = 0; i < ARG_END; i++)
		if (arg_kind((enum arg)i) == ARG_STR)
			CHECK(memchr(str_p(*(const struct str *)arg_of(&r, (enum arg)i)), '\0',
				     ((const struct str *)arg_of(&r, (enum arg)i))->n) == NULL);
	check_again(p, a);
	if (!r.op)
		return;
	request_pack(&r, &b);
	CHECK(!b.full && request_unpack(buf_str(&b), &again, a) == 0);
	CHECK(same_request(&r, &again));
	buf_free(&b);
	fault = request_fault(&r, &policy_default, a);
	CHECK(!fault || fuzz_harmless(str_c(fault)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena a = { 0 };
	const char *argv[WORDS_MAX + 1] = { "pawl" };
	struct str rest = str_n((const char *)data, size);
	struct parsed p;
	int argc = 1;

	while (rest.n && argc < WORDS_MAX)
		argv[argc++] = arena_cstr(&a, str_cut(&rest, '\0'));
	parse(&p, argc, argv, &a);
	if (p.code != SUCCESS) {
		CHECK(p.code == USAGE);
		CHECK(p.message.n && fuzz_harmless(p.message) && fuzz_harmless(p.hint));
	} else if (p.command && !p.global.help && !p.global.version) {
		check_understood(&p, &a);
	}
	arena_free(&a);
	return 0;
}

/* Everything that is generated from the command table has all commands. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "face/cli/cli.h"
#include "face/gen/gen.h"

#define WORDS_MAX 32
#define MAX (1u << 20)

static struct arena arena;

static int teardown(void **state)
{
	(void)state;
	arena_free(&arena);
	return 0;
}

static const char *kept(struct buf *b)
{
	const char *text = arena_cstr(&arena, buf_str(b));

	assert_false(b->full);
	buf_free(b);
	return text;
}

static struct strs words_of(const char *name)
{
	struct str rest = str_c(name);
	struct strs out = { 0 };

	while (rest.n)
		out = arena_append(&arena, out, arena_str(&arena, str_cut(&rest, ' ')));
	return out;
}

/* Is the parameter's value inside the arguments that args_new() makes? */
static bool inside(const struct command *c, const struct param *p)
{
	size_t room = c->args_size ? c->args_size : sizeof(struct args);
	size_t size = p->type == P_IDS || p->type == P_NAMES || p->type == P_WORDS
			      ? sizeof(struct strs)
		      : param_value(p) && p->type != P_INT && p->type != P_DURATION
			      ? sizeof(struct str)
			      : sizeof(int64_t);

	return p->offset + size <= room && (p->arg || p->offset >= sizeof(struct request));
}

static void declares_all(void **state)
{
	(void)state;
	for (size_t i = 0; commands[i]; i++) {
		const struct command *c = commands[i];
		bool grouped = false;
		size_t n = 0;

		assert_non_null(c->name);
		assert_true(c->summary && strlen(c->summary) > 5 && strlen(c->summary) < 68);
		assert_true(c->example && !strchr(c->example, '\t') && strstr(c->example, "pawl "));
		assert_non_null(c->see);
		assert_true(c->op != OP_NONE || c->run);
		for (const struct command_group *g = command_groups; g->name; g++)
			grouped |= !strcmp(g->name, c->group);
		assert_true(grouped);
		for (const struct param *p = c->params; p && p->name; p++, n++)
			assert_true(p->help && *p->help && inside(c, p));
		assert_true(n < 64); /* the limit of args.seen */
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(commands[k]->name, c->name);
	}
}

/* No two options of a command, common ones included, share a name or a letter. The exception:
 * --format of commands that read or write files. */
static void names_differ(void **state)
{
	(void)state;
	for (size_t i = 0; commands[i]; i++)
		for (const struct param *p = commands[i]->params; p && p->name; p++) {
			for (const struct param *q = p + 1; q->name; q++) {
				assert_string_not_equal(p->name, q->name);
				assert_true(!p->letter || p->letter != q->letter);
			}
			for (const struct param *q = global_params; q->name; q++) {
				if (strcmp(p->name, "format") != 0)
					assert_string_not_equal(p->name, q->name);
				assert_true(!p->letter || p->letter != q->letter);
			}
		}
}

/* Each name under "see also" is a command. */
static void refers_to_what_exists(void **state)
{
	(void)state;
	for (size_t i = 0; commands[i]; i++) {
		struct str rest = str_c(commands[i]->see);

		while (rest.n) {
			struct strs words =
				words_of(arena_cstr(&arena, str_trim(str_cut(&rest, ','))));
			const char *names[2] = { words.v[0].p, words.n > 1 ? words.v[1].p : NULL };
			size_t used = 0;

			assert_non_null(command_find(names, words.n, &used));
			assert_int_equal(used, words.n);
		}
	}
}

static void check_columns(const char *text)
{
	struct str rest = str_c(text);

	while (rest.n) {
		struct str line = str_cut(&rest, '\n');
		size_t width = 0;

		for (size_t i = 0; i < line.n; i++)
			width += ((unsigned char)line.p[i] & 0xc0) != 0x80;
		if (width > 80 && !strstr(line.p, "pawl "))
			print_error("too wide: %.*s\n", STRF(line));
		assert_true(width <= 80 || str_starts(line, STR("  pawl ")));
	}
}

static void helps(void **state)
{
	struct buf all = BUF_MAX(MAX);
	const char *overview;

	(void)state;
	assert_true(help_topic(&all, (struct strs){ 0 }));
	overview = kept(&all);
	check_columns(overview);
	for (size_t i = 0; commands[i]; i++) {
		const struct command *c = commands[i];
		struct buf b = BUF_MAX(MAX);
		const char *text, *second = strchr(c->name, ' ');

		assert_true(c->flags & C_HIDDEN || strstr(overview, second ? second + 1 : c->name));
		assert_true(help_topic(&b, words_of(c->name)));
		text = kept(&b);
		check_columns(text);
		assert_non_null(strstr(text, c->summary));
		for (const struct param *p = c->params; p && p->name; p++)
			assert_non_null(strstr(text, p->name));
	}
	assert_false(help_topic(&all, words_of("nothing")));
	assert_false(help_topic(&all, words_of("claim me")));
	assert_true(help_topic(&all, words_of("codes")) && help_topic(&all, words_of("options")) &&
		    help_topic(&all, words_of("lock")));
	buf_free(&all);
}

/* As roff writes it: "unblock\-action". */
static const char *escaped(const char *name)
{
	struct buf b = BUF_MAX(256);

	for (; *name; name++)
		buf_addf(&b, "%s%c", *name == '-' ? "\\" : "", *name);
	return kept(&b);
}

static void has_man_pages(void **state)
{
	struct buf all = BUF_MAX(MAX);
	const char *overview;

	(void)state;
	gen_man(&all, NULL);
	overview = kept(&all);
	for (size_t i = 0; commands[i]; i++) {
		const struct command *c = commands[i];
		struct buf b = BUF_MAX(MAX);
		const char *text;

		assert_non_null(strstr(overview, c->name));
		gen_man(&b, arena_cstr(&arena, command_word(c)));
		text = kept(&b);
		assert_non_null(strstr(text, c->name));
		for (const struct param *p = c->params; p && p->name; p++)
			assert_non_null(strstr(text, escaped(p->name)));
	}
}

static void completes(void **state)
{
	static const char *const shells[] = { "bash", "zsh", "fish" };
	struct buf none = BUF_MAX(MAX);

	(void)state;
	for (size_t k = 0; k < 3; k++) {
		struct buf b = BUF_MAX(MAX);

		assert_true(gen_completion(&b, str_c(shells[k])));
		assert_non_null(strstr(kept(&b), "pawl values line --format text -- "));
	}
	assert_false(gen_completion(&none, STR("tcsh")));
}

static void has_a_reference(void **state)
{
	struct buf b = BUF_MAX(MAX);
	const char *text;

	(void)state;
	gen_reference(&b);
	text = kept(&b);
	for (size_t i = 0; commands[i]; i++) {
		if (commands[i]->flags & C_HIDDEN)
			continue;
		assert_non_null(
			strstr(text, arena_printf(&arena, "### pawl %s\n", commands[i]->name).p));
		assert_non_null(strstr(text, commands[i]->example));
	}
}

/* --- examples ------------------------------------------------------------------------------------- */

/* Splits a line into words like a shell, as far as examples need it: blanks and double quotes. */
static int split(const char *line, const char **argv)
{
	struct buf b = BUF_MAX(4096);
	bool quoted = false, any = false;
	int n = 0;

	for (;; line++) {
		if (*line == '"') {
			quoted = !quoted;
			any = true;
		} else if (*line && (quoted || !strchr(" )|<>;", *line))) {
			buf_addc(&b, *line);
			any = true;
		} else if (any) {
			assert_true(n < WORDS_MAX);
			argv[n++] = arena_cstr(&arena, buf_str(&b));
			b.n = 0;
			any = false;
		}
		if (!*line || (!quoted && strchr(")|<>;", *line)))
			break;
	}
	buf_free(&b);
	return n;
}

static void has_examples_that_parse(void **state)
{
	(void)state;
	for (size_t i = 0; commands[i]; i++) {
		struct str rest = str_c(commands[i]->example);
		bool own = false;

		while (rest.n) {
			const char *line = arena_cstr(&arena, str_cut(&rest, '\n')),
				   *at = strstr(line, "pawl ");
			const char *argv[WORDS_MAX];
			struct parsed p;
			int n;

			assert_non_null(at);
			n = split(at, argv);
			parse(&p, n, argv, &arena);
			if (p.code != SUCCESS)
				print_error("%s: %.*s\n", line, STRF(p.message));
			assert_int_equal(p.code, SUCCESS);
			own |= p.command == commands[i] || p.global.help;
		}
		assert_true(own);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(declares_all, teardown),
		cmocka_unit_test_teardown(names_differ, teardown),
		cmocka_unit_test_teardown(refers_to_what_exists, teardown),
		cmocka_unit_test_teardown(helps, teardown),
		cmocka_unit_test_teardown(has_man_pages, teardown),
		cmocka_unit_test_teardown(completes, teardown),
		cmocka_unit_test_teardown(has_a_reference, teardown),
		cmocka_unit_test_teardown(has_examples_that_parse, teardown),
	};

	return cmocka_run_group_tests_name("gen", tests, NULL, NULL);
}

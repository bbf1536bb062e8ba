/* pawl-gen: writes the generated texts from the table of commands, at build time. */
#include <unistd.h>

#include "base/fs.h"
#include "base/text.h"
#include "face/gen/gen.h"

#define PAGE_MAX (1u << 20)

static int write_file(struct arena *a, const char *dir, const char *name, struct buf *b)
{
	char *path = fs_join(a, str_c(dir), str_c(name));
	int r = b->full ? -1 : fs_write_atomic(path, buf_str(b), 0644);

	if (r)
		tty_print(STDERR_FILENO, "pawl-gen: cannot write %s\n", path);
	buf_free(b);
	return r;
}

static int man_pages(struct arena *a, const char *dir)
{
	struct buf b = BUF_MAX(PAGE_MAX);
	int r;

	gen_man(&b, NULL);
	r = write_file(a, dir, "pawl.1", &b);
	for (size_t i = 0; !r && commands[i]; i++) {
		struct str word = command_word(commands[i]);

		if (commands[i]->flags & C_HIDDEN ||
		    (i && str_eq(word, command_word(commands[i - 1]))))
			continue;
		gen_man(&b, arena_cstr(a, word));
		r = write_file(a, dir, arena_printf(a, "pawl-%.*s.1", STRF(word)).p, &b);
	}
	return r;
}

static int gen_main_completions(struct arena *a, const char *dir)
{
	static const char *const files[][2] = { { "bash", "pawl" },
						{ "zsh", "_pawl" },
						{ "fish", "pawl.fish" } };
	int r = 0;

	for (size_t i = 0; !r && i < sizeof(files) / sizeof(*files); i++) {
		struct buf b = BUF_MAX(PAGE_MAX);

		gen_completion(&b, str_c(files[i][0]));
		r = write_file(a, dir, files[i][1], &b);
	}
	return r;
}

/* Prints a page of doc/. Returns 2 if there is no page with this name. */
static int gen_main_page(const char *name)
{
	static const struct {
		const char *name;
		void (*gen)(struct buf *out);
	} pages[] = { { "reference", gen_reference },
		      { "settings", gen_settings },
		      { "codes", gen_codes_page } };
	struct buf b = BUF_MAX(PAGE_MAX);
	int r = 2;

	for (size_t i = 0; i < sizeof(pages) / sizeof(*pages); i++)
		if (!strcmp(name, pages[i].name)) {
			pages[i].gen(&b);
			r = b.full || tty_write(STDOUT_FILENO, buf_str(&b));
		}
	buf_free(&b);
	return r;
}

int main(int argc, char **argv)
{
	struct arena a = { 0 };
	int r = 2;

	if (argc == 3 && !strcmp(argv[1], "man"))
		r = fs_make_dirs(argv[2], 0777) || man_pages(&a, argv[2]);
	else if (argc == 3 && !strcmp(argv[1], "completions"))
		r = fs_make_dirs(argv[2], 0777) || gen_main_completions(&a, argv[2]);
	else if (argc == 2)
		r = gen_main_page(argv[1]);
	if (r == 2)
		tty_print(
			STDERR_FILENO,
			"usage: pawl-gen man DIR | completions DIR | reference | settings | codes\n");
	arena_free(&a);
	return r;
}

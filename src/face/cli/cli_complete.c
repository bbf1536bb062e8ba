/*
 * Completes a line of the prompt, and keeps the prompt's history file. The file never gets a line with a token or a
 * password, and pawl adds a line only if the file belongs to this user alone.
 */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/secret.h"
#include "base/text.h"
#include "face/cli/cli.h"

#define LINES_KEPT 1000
#define FILE_MAX (1024 * 1024)
#define LINE_MAX_BYTES 4096

static bool has_token(struct str line)
{
	for (size_t i = 0; i + TOKEN_LEN <= line.n; i++)
		if (token_valid(str_n(line.p + i, TOKEN_LEN)))
			return true;
	return false;
}

/* "scheme://user:password@host" */
static bool has_password(struct str line)
{
	for (size_t i = 0; i + 3 < line.n; i++) {
		bool colon = false;

		if (memcmp(line.p + i, "://", 3) != 0)
			continue;
		for (size_t k = i + 3; k < line.n && !strchr(" \t/", line.p[k]); k++) {
			if (colon && line.p[k] == '@')
				return true;
			colon = colon || line.p[k] == ':';
		}
	}
	return str_has_nocase(line, STR("password="));
}

bool recall_secret(struct str line)
{
	return str_has_nocase(line, STR("-token")) || has_token(line) || has_password(line);
}

static const char *file_of(const struct keyring *k, struct arena *a)
{
	return keyring_folder(k) ? NULL : fs_join(a, str_c(k->dir), STR("history"));
}

/* Shortens the file. Two prompts may be open: each only appends to the file, and only this function
 * shortens it. */
static void recall_cut(const char *file, struct strs lines)
{
	struct buf b = BUF_MAX(FILE_MAX);

	for (size_t i = lines.n - LINES_KEPT; i < lines.n; i++)
		buf_addf(&b, "%.*s\n", STRF(lines.v[i]));
	if (!b.full)
		(void)fs_write_atomic(file, buf_str(&b), 0600);
	buf_free(&b);
}

struct strs recall_load(const struct keyring *k, struct arena *a)
{
	const char *file = file_of(k, a);
	struct strs all = { 0 };
	struct str text;

	if (!file || fs_read(a, file, FILE_MAX, &text))
		return all;
	while (text.n) {
		struct str line = str_cut(&text, '\n'), *more;

		if (!line.n || !text_valid(line))
			continue;
		more = arena_grow(a, all.v, all.n, sizeof(*more));
		all.v = more;
		all.v[all.n++] = arena_str(a, line);
	}
	if (all.n > LINES_KEPT) {
		recall_cut(file, all);
		all.v += all.n - LINES_KEPT;
		all.n = LINES_KEPT;
	}
	return all;
}

/* Opens the file only if it belongs to this user alone. */
static int open_file(const char *file)
{
	int fd = open(file, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC,
		      0600);
	struct stat st;

	if (fd < 0)
		return -1;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
	    (st.st_mode & 077 && fchmod(fd, 0600)) || st.st_size > FILE_MAX - LINE_MAX_BYTES) {
		close(fd);
		return -1;
	}
	return fd;
}

void recall_add(const struct keyring *k, struct str line)
{
	struct arena a = { 0 };
	const char *file = file_of(k, &a);
	int fd = -1;

	if (file && line.n && line.n < LINE_MAX_BYTES && !recall_secret(line))
		fd = open_file(file);
	if (fd >= 0) {
		(void)fs_write_all(fd, arena_printf(&a, "%.*s\n", STRF(line)));
		close(fd);
	}
	arena_free(&a);
}

/* --- complete --------------------------------------------------------------------------------- */

/*
 * Completions of the prompt's last word. A candidate is escaped so that words_split() reads the
 * same word back.
 */

/* Escapes a value for words_split(). */
static struct str cli_complete_escaped(struct str value, struct arena *a)
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

static bool cli_complete_begins(struct str word, struct str typed)
{
	return str_eq_nocase(str_n(word.p, typed.n < word.n ? typed.n : word.n), typed);
}

struct strs complete_line(struct str line, size_t *from, values_fn *values, void *ctx,
			  struct arena *a)
{
	struct strs found = { 0 }, words;
	struct candidates all;
	struct words w;
	struct str typed;

	words_split(&w, line, a);
	*from = w.last;
	words = w.last < line.n ? w.list : arena_append(a, w.list, STR(""));
	if (w.open)
		return found;
	if (words.n > 1 && str_is(words.v[0], "pawl")) {
		words.v++;
		words.n--;
	}
	typed = words.v[words.n - 1];
	all = complete_words(words, values, ctx, a);
	for (size_t i = 0; i < all.words.n; i++)
		if (cli_complete_begins(all.words.v[i], typed))
			found = arena_append(a, found, cli_complete_escaped(all.words.v[i], a));
	if (words.n == 1 && cli_complete_begins(STR("exit"), typed))
		found = arena_append(a, found, STR("exit"));
	return found;
}

#include "face/cli/recall.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/secret.h"
#include "base/text.h"

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

/* Two prompts may be open: each only appends to the file, and only this function cuts it. */
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

/* Use the file only if it belongs to this user alone. */
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

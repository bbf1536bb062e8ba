#include "base/tty.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/text.h"

#define SAFE_MAX (SIZE_MAX / 4)

/* The length of a colour at the start of `s`: ESC [ 1 ; 31 m; 0: there is none. */
static size_t tty_colour(struct str s)
{
	size_t n = 2;

	if (s.n < 3 || s.p[0] != '\033' || s.p[1] != '[')
		return 0;
	while (n < s.n && ((s.p[n] >= '0' && s.p[n] <= '9') || s.p[n] == ';'))
		n++;
	return n < s.n && s.p[n] == 'm' ? n + 1 : 0;
}

/* The length of the text before the next escape character, or of that character. */
static size_t without_escape(struct str s)
{
	const char *at = memchr(s.p, '\033', s.n);

	return !at ? s.n : at == s.p ? 1 : (size_t)(at - s.p);
}

static void add_plain(struct buf *b, struct str s)
{
	text_visible(b, s, true);
}

static void add_painted(struct buf *b, struct str s)
{
	while (s.n) {
		size_t n = tty_colour(s);

		if (n) {
			buf_add(b, s.p, n);
		} else {
			n = without_escape(s);
			text_visible(b, str_n(s.p, n), true);
		}
		s = str_n(s.p + n, s.n - n);
	}
}

static int write_safe(int fd, struct str text, void (*add)(struct buf *, struct str))
{
	struct buf b = BUF_MAX(SAFE_MAX);
	int r;

	if (!isatty(fd))
		return fs_write_all(fd, text);
	add(&b, text);
	r = fs_write_all(fd, buf_str(&b));
	buf_free(&b);
	return r;
}

int tty_write(int fd, struct str text)
{
	return write_safe(fd, text, add_plain);
}

int tty_write_painted(int fd, struct str text)
{
	return write_safe(fd, text, add_painted);
}

void tty_print(int fd, const char *fmt, ...)
{
	struct buf b = BUF_MAX(SAFE_MAX);
	char *text = NULL;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (n < 0)
		return;
	text_visible(&b, str_n(text, (size_t)n), true);
	(void)fs_write_all(fd, buf_str(&b));
	buf_free(&b);
	free(text);
}

void tty_line(struct str text)
{
	struct buf b = BUF_MAX(SAFE_MAX);

	buf_adds(&b, STR("\r\033[K"));
	text_visible(&b, text, false);
	(void)fs_write_all(STDERR_FILENO, buf_str(&b));
	buf_free(&b);
}

void tty_clear(void)
{
	(void)fs_write_all(STDOUT_FILENO, STR("\033[H\033[2J"));
}

#include "run/screen.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/os.h"
#include "base/text.h"

#define SCREEN_TEXT_MAX (64u << 10) /* the text that may wait; beyond it, screen_full() */
#define TEXT_MS 100                 /* between two writes of text, unless there is much of it */
#define BLOCK_MS 1000               /* between two writes of a block that changes with time */
#define HURRY_MS 2000               /* a terminal that takes no output for so long is given up */

struct screen {
	int fd;
	bool gone;       /* the terminal has hung up */
	struct buf text; /* the lines above the block that are not in `out` yet */
	struct buf out;  /* the bytes on their way to the terminal */
	size_t sent;     /* of `out` */
	struct arena arena;
	struct strs drawn; /* the block on the terminal */
	int64_t shown_at;
	bool resized;
};

/* A description of its own: O_NONBLOCK on standard error would also apply to the shell and to other programs. */
static int open_terminal(void)
{
	char name[256] = "";
	int fd = -1;

	if (ttyname_r(STDERR_FILENO, name, sizeof(name)) == 0)
		fd = open(name, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	/* the terminal belongs to another user: then a write may block */
	return fd >= 0 ? fd : fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
}

struct screen *screen_open(void)
{
	const char *term = getenv("TERM");
	struct screen *s;
	int fd;

	if (!isatty(STDERR_FILENO) || !term || !*term || strcmp(term, "dumb") == 0)
		return NULL;
	fd = open_terminal();
	if (fd < 0)
		return NULL;
	s = mem_alloc(sizeof(*s));
	*s = (struct screen){ .fd = fd,
			      .text = BUF_MAX(SIZE_MAX / 4),
			      .out = BUF_MAX(SIZE_MAX / 4) };
	return s;
}

void screen_size(const struct screen *s, size_t *columns, size_t *rows)
{
	struct winsize size = { 0 };

	(void)ioctl(s->fd, TIOCGWINSZ, &size);
	*columns = size.ws_col ? size.ws_col : 80;
	*rows = size.ws_row ? size.ws_row : 24;
}

/* --- text ----------------------------------------------------------------------------------- */

struct buf *screen_text(struct screen *s)
{
	return &s->text;
}

void screen_say(struct screen *s, struct str text)
{
	buf_adds(&s->text, STR("pawl: "));
	text_visible(&s->text, text, false);
	buf_addc(&s->text, '\n');
}

bool screen_full(const struct screen *s)
{
	return s->text.n >= SCREEN_TEXT_MAX;
}

/* --- output --------------------------------------------------------------------------------- */

/* Writes as much as the terminal takes. */
static void run_screen_push(struct screen *s)
{
	while (s->sent < s->out.n) {
		ssize_t n = write(s->fd, s->out.p + s->sent, s->out.n - s->sent);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			return;
		if (n <= 0) {
			s->gone = true;
			break;
		}
		s->sent += (size_t)n;
	}
	s->out.n = s->sent = 0;
}

/* A job in the background must not draw over the lines of the shell. */
static bool in_background(const struct screen *s)
{
	pid_t front = tcgetpgrp(s->fd);

	return front > 0 && front != getpgrp();
}

/* Terminals wrap the lines again when they become narrower, so the block may have more rows than lines. */
static void run_screen_erase(struct screen *s)
{
	size_t columns, height, rows = 0;

	screen_size(s, &columns, &height);
	for (size_t i = 0; i < s->drawn.n; i++) {
		size_t width = text_width(s->drawn.v[i]);

		rows += width ? (width + columns - 1) / columns : 1;
	}
	if (rows)
		buf_addf(&s->out, "\r\x1b[%zuA\x1b[J", rows);
	s->drawn = (struct strs){ 0 };
}

static void run_screen_draw(struct screen *s, struct strs block)
{
	struct arena old = s->arena;

	s->arena = (struct arena){ 0 };
	s->drawn = arena_strs(&s->arena, block);
	arena_free(&old);
	for (size_t i = 0; i < block.n; i++) {
		buf_adds(&s->out, block.v[i]);
		buf_addc(&s->out, '\n');
	}
}

bool screen_due(const struct screen *s, int64_t now)
{
	int64_t since = now - s->shown_at;

	return s->sent < s->out.n || s->resized || screen_full(s) ||
	       since >= (s->text.n ? TEXT_MS : BLOCK_MS);
}

void screen_show(struct screen *s, struct strs block, int64_t now)
{
	if (s->sent < s->out.n)
		run_screen_push(s);
	if (s->gone)
		s->text.n = 0; /* nobody can read it */
	if (s->gone || s->sent < s->out.n)
		return;
	if (in_background(s))
		block.n = 0;
	s->shown_at = now;
	if (!s->text.n && !s->resized && strs_eq(block, s->drawn))
		return;
	run_screen_erase(s);
	buf_adds(&s->out, buf_str(&s->text));
	s->text.n = 0;
	run_screen_draw(s, block);
	s->resized = false;
	run_screen_push(s);
}

int64_t screen_next(const struct screen *s, bool ticking)
{
	if (s->gone || s->sent < s->out.n)
		return 0;
	if (s->text.n || ticking || s->resized)
		return s->shown_at + (s->text.n ? TEXT_MS : s->resized ? 0 : BLOCK_MS);
	return 0;
}

int screen_waits_for(const struct screen *s)
{
	return s->sent < s->out.n ? s->fd : -1;
}

/* --- other users of the terminal ------------------------------------------------------------ */

void screen_hide(struct screen *s)
{
	if (s->gone)
		return;
	run_screen_erase(s);
	run_screen_push(s);
}

void screen_forget(struct screen *s)
{
	s->drawn = (struct strs){ 0 };
	s->resized = true;
}

void screen_resized(struct screen *s)
{
	s->resized = true;
}

/* false: the terminal takes nothing in this time. */
static bool wait_for_room(const struct screen *s, int ms)
{
	struct pollfd out = { .fd = s->fd, .events = POLLOUT };
	int n;

	do
		n = poll(&out, 1, ms);
	while (n < 0 && errno == EINTR);
	return n > 0;
}

void screen_close(struct screen *s, bool hurry)
{
	if (!s)
		return;
	if (!s->gone) {
		run_screen_erase(s);
		buf_adds(&s->out, buf_str(&s->text));
		run_screen_push(s);
	}
	while (s->sent < s->out.n && wait_for_room(s, hurry ? HURRY_MS : -1))
		run_screen_push(s);
	close(s->fd);
	buf_free(&s->text);
	buf_free(&s->out);
	arena_free(&s->arena);
	free(s);
}

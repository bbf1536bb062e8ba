/*
 * The jobs on a terminal: a line for each, and above them the output of their programs. No job
 * holds up the others, and a terminal that takes no output does not let memory grow.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/os.h"
#include "base/text.h"
#include "run/run_private.h"

#define READ_MAX 8192 /* bytes read from one job before the others */
#define ROWS_LEFT 4   /* rows of the terminal that stay free for the lines above the block */

/* --- the output ----------------------------------------------------------------------------- */

int job_pipe(struct runner *r, struct job *j)
{
	int ends[2], fault;

	if (!r->plan->screen)
		return 0;
	fault = os_pipe(ends);
	if (fault)
		return fault;
	(void)fcntl(ends[0], F_SETFL, O_NONBLOCK);
	j->from = ends[0];
	j->piped = true;
	r->program.output = ends[1];
	return 0;
}

static void close_pipe(struct job *j)
{
	if (j->piped)
		close(j->from);
	j->piped = false;
}

void job_piped(struct runner *r, struct job *j, bool started)
{
	if (r->program.output >= 0)
		close(r->program.output);
	r->program.output = -1;
	if (!started)
		close_pipe(j);
}

/* Returns the number of bytes read; 0: there are none now, or the pipe has ended. */
static size_t read_some(struct runner *r, struct job *j, size_t most)
{
	char bytes[READ_MAX];
	ssize_t n = read(j->from, bytes, most < sizeof(bytes) ? most : sizeof(bytes));

	if (n > 0) {
		lines_add(&j->lines, j->task, str_n(bytes, (size_t)n),
			  screen_text(r->plan->screen));
		return (size_t)n;
	}
	if (n == 0 || (errno != EAGAIN && errno != EINTR))
		close_pipe(j); /* poll() would report it again and again */
	return 0;
}

/* Shows output of the program, but only a part at a time, so that no job holds up the others. */
static void job_relay(struct runner *r, struct job *j)
{
	if (j->piped && !screen_full(r->plan->screen))
		(void)read_some(r, j, READ_MAX);
}

/* A process outside of the group may keep the pipe open and write forever, so only the bytes count
 * that were there when the group was gone. While the terminal takes no output, the job stays, which
 * bounds the memory. A signal to end has precedence. */
bool job_relayed(struct runner *r, struct job *j)
{
	int there = 0;

	if (!j->piped)
		return true;
	if (!j->counted) {
		j->counted = true;
		(void)ioctl(j->from, FIONREAD, &there);
		j->rest = there > 0 ? (size_t)there : 0;
	}
	while (j->piped && j->rest) {
		size_t n;

		if (screen_full(r->plan->screen) && !r->sum->signal)
			return false;
		n = read_some(r, j, j->rest);
		if (!n)
			break;
		j->rest -= n;
	}
	return true;
}

void job_relay_end(struct runner *r, struct job *j)
{
	if (!r->plan->screen)
		return;
	close_pipe(j);
	lines_end(&j->lines, j->task, screen_text(r->plan->screen));
}

/* --- waiting -------------------------------------------------------------------------------- */

size_t live_polls(struct runner *r, size_t n)
{
	struct screen *s = r->plan->screen;

	if (!s)
		return n;
	r->polls[n++] = (struct pollfd){ .fd = screen_waits_for(s), .events = POLLOUT };
	for (int64_t i = 0; i < r->plan->jobs; i++) {
		const struct job *j = &r->jobs[i];
		bool wanted = j->group && j->piped && !j->counted && !screen_full(s);

		r->polls[n++] = (struct pollfd){ .fd = wanted ? j->from : -1, .events = POLLIN };
	}
	return n;
}

void live_polled(struct runner *r, size_t n)
{
	if (!r->plan->screen)
		return;
	for (int64_t i = 0; i < r->plan->jobs; i++)
		if (r->polls[n + 1 + (size_t)i].revents)
			job_relay(r, &r->jobs[i]);
}

int64_t live_next(const struct runner *r)
{
	int64_t at = r->plan->screen ? screen_next(r->plan->screen, r->running > 0) : 0;

	return at ? at : NEVER;
}

/* --- the block ------------------------------------------------------------------------------ */

/* "4:05", "1:04:05" */
static struct str clock_text(struct arena *a, int64_t ms)
{
	long long s = ms > 0 ? ms / 1000 : 0;

	if (s >= 3600)
		return arena_printf(a, "%lld:%02lld:%02lld", s / 3600, s / 60 % 60, s % 60);
	return arena_printf(a, "%lld:%02lld", s / 60, s % 60);
}

static struct str state_text(struct arena *a, const struct job *j, int64_t now)
{
	struct str elapsed = clock_text(a, now - j->began_at);

	if (j->lost)
		return arena_printf(a, "%.*s  lock lost", STRF(elapsed));
	if (j->exited || j->settled)
		return arena_printf(a, "%.*s  ends", STRF(elapsed));
	return arena_printf(a, "%.*s  lease %s", STRF(elapsed),
			    arena_cstr(a, clock_text(a, j->deadline - now)));
}

/* "#2 t17 The title of the …      0:42  lease 14:18" */
static struct str job_line(struct arena *a, const struct job *j, int64_t number, size_t columns,
			   int64_t now)
{
	struct str head, title, state;
	size_t used;

	if (!j->group)
		return text_cut(a, arena_printf(a, "#%lld waits", (long long)number), columns);
	head = arena_printf(a, "#%lld %s ", (long long)number,
			    arena_cstr(a, text_line(a, j->task)));
	state = state_text(a, j, now);
	used = text_width(head) + 2 + text_width(state);
	title = text_cut(a, text_line(a, j->title), columns > used ? columns - used : 0);
	used += text_width(title);
	return text_cut(a,
			arena_printf(a, "%.*s%.*s  %*s%.*s", STRF(head), STRF(title),
				     columns > used ? (int)(columns - used) : 0, "", STRF(state)),
			columns);
}

static struct strs block_of(const struct runner *r, struct arena *a, int64_t now)
{
	size_t columns, rows, jobs = (size_t)r->plan->jobs, n;
	struct strs block = { 0 };

	screen_size(r->plan->screen, &columns, &rows);
	columns = columns > 1 ? columns - 1 : 1; /* so that no terminal wraps the line */
	rows = rows > ROWS_LEFT ? rows - ROWS_LEFT : 1;
	n = jobs <= rows ? jobs : rows - 1;
	block.v = arena_array(a, struct str, n + 1);
	for (size_t i = 0; i < n; i++)
		block.v[block.n++] = job_line(a, &r->jobs[i], (int64_t)i + 1, columns, now);
	if (n < jobs)
		block.v[block.n++] = text_cut(a,
					      arena_printf(a, "… and %zu more; %zu of %zu work",
							   jobs - n, r->running, jobs),
					      columns);
	return block;
}

void live_show(struct runner *r)
{
	struct arena scratch = { 0 };
	int64_t now = os_boot_ms();

	if (!r->plan->screen || !screen_due(r->plan->screen, now))
		return;
	screen_show(r->plan->screen, block_of(r, &scratch, now), now);
	arena_free(&scratch);
}

/* --- screen ----------------------------------------------------------------------------------- */

/*
 * Writes never block, unless the terminal belongs to another user and cannot be opened again.
 * Output that the terminal does not take yet waits in `out` and `text`, and screen_full() limits
 * the text.
 */

#define SCREEN_TEXT_MAX (64u << 10) /* text that may wait; if there is more, screen_full() */
#define TEXT_MS 100                 /* between two writes of text, unless the text is long */
#define BLOCK_MS 1000               /* between two writes of a block that changes with time */
#define HURRY_MS 2000 /* pawl gives up a terminal that takes no output for this time */

struct screen {
	int fd;
	bool gone;       /* the terminal has hung up */
	struct buf text; /* the lines above the block that are not in `out` yet */
	struct buf out;  /* the bytes on their way to the terminal */
	size_t sent;     /* bytes of `out` that were written */
	struct arena arena;
	struct strs drawn; /* the block on the terminal */
	int64_t shown_at;
	bool resized;
};

/* Opens the terminal a second time, because O_NONBLOCK on standard error would also apply to the
 * shell and to other programs. */
static int open_terminal(void)
{
	char name[256] = "";
	int fd = -1;

	if (ttyname_r(STDERR_FILENO, name, sizeof(name)) == 0)
		fd = open(name, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	/* if the terminal belongs to another user, it cannot be opened, and a write may block */
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

/* Counts rows, not lines: a terminal that becomes narrower wraps the lines again. */
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

/* false: the terminal took no output in this time. */
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

/* --- lines ------------------------------------------------------------------------------------ */

/*
 * Only complete colour sequences pass. A colour is reset at the end of its line, and a long line is
 * never broken inside a character.
 */

/* The length of a colour sequence at the start of `s`: ESC [ 1 ; 31 m. 0: there is none. */
static size_t colour_at(struct str s)
{
	size_t n = 2;

	if (s.n < 3 || s.p[0] != '\x1b' || s.p[1] != '[')
		return 0;
	while (n < s.n && ((s.p[n] >= '0' && s.p[n] <= '9') || s.p[n] == ';' || s.p[n] == ':'))
		n++;
	return n < s.n && s.p[n] == 'm' ? n + 1 : 0;
}

static void add_line(struct str name, struct str line, struct buf *out)
{
	bool coloured = false;
	size_t at = 0, n;

	text_visible(out, name, false);
	buf_adds(out, STR(" | "));
	while (at < line.n) {
		struct str rest = str_n(line.p + at, line.n - at);
		const char *escape = memchr(rest.p + 1, '\x1b', rest.n - 1);

		n = colour_at(rest);
		if (n) {
			buf_add(out, rest.p, n);
			coloured = true;
		} else {
			n = escape ? (size_t)(escape - rest.p) : rest.n;
			text_visible(out, str_n(rest.p, n), true);
		}
		at += n;
	}
	/* a colour must not affect the lines of others */
	buf_adds(out, coloured ? STR("\x1b[0m\n") : STR("\n"));
}

/* The number of bytes at the end of `s` that begin a character without completing it. */
static size_t begun_char(struct str s)
{
	for (size_t n = 1; n < 4 && n <= s.n; n++) {
		uint8_t c = (uint8_t)s.p[s.n - n];

		if (c >= 0xc0)
			return n < (c >= 0xf0 ? 4u : c >= 0xe0 ? 3u : 2u) ? n : 0;
		if (c < 0x80)
			return 0;
	}
	return 0;
}

static void end_line(struct lines *l, struct str name, struct buf *out)
{
	add_line(name, buf_str(&l->line), out);
	l->line.n = 0;
}

static void break_line(struct lines *l, struct str name, struct buf *out)
{
	size_t tail = begun_char(buf_str(&l->line));
	struct str line = str_n(l->line.p, l->line.n - tail);

	add_line(name, line, out);
	memmove(l->line.p, l->line.p + line.n, tail);
	l->line.n = tail;
}

void lines_add(struct lines *l, struct str name, struct str bytes, struct buf *out)
{
	l->line.max = LINES_MAX;
	for (size_t i = 0; i < bytes.n; i++) {
		char c = bytes.p[i];

		if (c == '\r' || (c == '\n' && !l->cr))
			end_line(l, name, out);
		else if (c != '\n')
			buf_addc(&l->line, c);
		l->cr = c == '\r';
		if (l->line.n >= LINES_MAX)
			break_line(l, name, out);
	}
}

void lines_end(struct lines *l, struct str name, struct buf *out)
{
	if (l->line.n)
		end_line(l, name, out);
	buf_free(&l->line);
	*l = (struct lines){ 0 };
}

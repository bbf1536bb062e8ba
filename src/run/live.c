/* The jobs on a terminal: a line for each, and above them the output of their programs. */
#include "run/run_private.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/os.h"
#include "base/text.h"

#define READ_MAX 8192 /* of a job, before others have their turn */
#define ROWS_LEFT 4   /* of the terminal, for the lines above the block */

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

/* The number of bytes; 0: none are there, or none will come. */
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
		close_pipe(j); /* poll() would report it for ever */
	return 0;
}

/* Shows the output that the program has written; at most a part of it, so that no job holds up the others. */
static void job_relay(struct runner *r, struct job *j)
{
	if (j->piped && !screen_full(r->plan->screen))
		(void)read_some(r, j, READ_MAX);
}

/* A process outside the group may keep the pipe open and write for ever. So only the bytes count that were there when
 * the group was gone. While the terminal takes no output the job stays, so that memory is bounded; but a signal to end
 * is obeyed. */
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
	columns = columns > 1 ? columns - 1 : 1; /* no terminal wraps such a line */
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

/* The transport on standard input and output: one message on each line. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/text.h"
#include "cmd/cmd_modules.h"
#include "face/mcp/mcp.h"

#define CHUNK 65536
#define PIPE_PART 4096 /* a pipe that poll() calls writable takes this much at once */
#define UNSENT_MAX   \
	(4u * 1024 * \
	 1024) /* the server stops reading from a client that does not read its answers */

struct stdio {
	struct mcp m;
	struct buf in, out;
	size_t sent;   /* of out */
	bool skipping; /* keeps nothing of the rest of a line that is too long */
	bool ended, broken;
};

static volatile sig_atomic_t stopped;

static void mcp_stdio_stop(int signal)
{
	(void)signal;
	stopped = 1;
}

static void send_line(void *ctx, struct str message)
{
	struct stdio *s = ctx;

	buf_adds(&s->out, message);
	buf_addc(&s->out, '\n');
}

/* --- out ------------------------------------------------------------------------------------------ */

/* Never blocks: sockets are set to non-blocking, and a pipe gets only as much as it has room for. */
static ssize_t put_some(const char *p, size_t n)
{
	ssize_t r = send(STDOUT_FILENO, p, n, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (r < 0 && errno == ENOTSOCK)
		r = write(STDOUT_FILENO, p, n < PIPE_PART ? n : PIPE_PART);
	return r;
}

static void mcp_stdio_flush(struct stdio *s)
{
	ssize_t n = put_some(s->out.p + s->sent, s->out.n - s->sent);

	if (n < 0 && errno != EAGAIN && errno != EINTR)
		s->broken = true;
	if (n > 0)
		s->sent += (size_t)n;
	if (s->sent == s->out.n)
		s->out.n = s->sent = 0;
}

/* --- in ------------------------------------------------------------------------------------------- */

static void end_line(struct stdio *s)
{
	if (s->skipping)
		mcp_too_long(&s->m);
	else
		mcp_receive(&s->m, buf_str(&s->in));
	s->skipping = false;
	s->in.n = 0;
}

/* Handles the complete lines; keeps the text after the last one. */
static void take_lines(struct stdio *s, struct str bytes)
{
	while (bytes.n) {
		const char *end = memchr(bytes.p, '\n', bytes.n);
		size_t n = end ? (size_t)(end - bytes.p) : bytes.n;

		s->skipping |= s->in.n + n > MESSAGE_MAX;
		if (!s->skipping)
			buf_add(&s->in, bytes.p, n);
		if (!end)
			return;
		end_line(s);
		bytes = str_n(end + 1, bytes.n - n - 1);
	}
}

static void mcp_stdio_hear(struct stdio *s)
{
	static char chunk[CHUNK];
	ssize_t n = read(STDIN_FILENO, chunk, sizeof(chunk));

	if (n > 0) {
		take_lines(s, str_n(chunk, (size_t)n));
		return;
	}
	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	take_lines(s, STR("\n")); /* the last line may lack its newline */
	s->ended = true;
}

/* --- both ----------------------------------------------------------------------------------------- */

static void mcp_stdio_poll(struct stdio *s, const sigset_t *open)
{
	int64_t ms = mcp_tick(&s->m);
	struct timespec limit = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };
	bool unsent = s->out.n > s->sent, full = s->out.n - s->sent > UNSENT_MAX;
	struct pollfd fds[] = {
		{ .fd = full ? -1 : STDIN_FILENO, .events = POLLIN },
		{ .fd = STDOUT_FILENO, .events = unsent ? POLLOUT : 0 },
		{ .fd = mcp_wake_fd(&s->m), .events = POLLIN },
	};

	if (ppoll(fds, 3, ms < 0 ? NULL : &limit, open) < 0)
		return;
	if (fds[2].revents)
		mcp_woken(&s->m);
	if (fds[1].revents & (POLLERR | POLLHUP | POLLNVAL))
		s->broken = true;
	else if (unsent && fds[1].revents)
		mcp_stdio_flush(s);
	if (!s->broken && fds[0].revents)
		mcp_stdio_hear(s);
}

/* Writes the remaining output after the input ended. The client may read it slowly. */
static void say_the_rest(struct stdio *s)
{
	if (!s->broken && s->out.n > s->sent)
		(void)fs_write_all(STDOUT_FILENO, str_n(s->out.p + s->sent, s->out.n - s->sent));
}

static void handle_signals(void (*handler)(int))
{
	struct sigaction act = { .sa_handler = handler };

	sigaction(SIGTERM, &act, NULL);
	sigaction(SIGINT, &act, NULL);
	sigaction(SIGHUP, &act, NULL);
}

/* Signals arrive only while the server waits. A second signal means: do not wait for the end. */
static void mcp_stdio_serve(struct stdio *s)
{
	sigset_t ours, before;

	sigemptyset(&ours);
	sigaddset(&ours, SIGTERM);
	sigaddset(&ours, SIGINT);
	sigaddset(&ours, SIGHUP);
	sigprocmask(SIG_BLOCK, &ours, &before);
	handle_signals(mcp_stdio_stop);
	while (!s->ended && !s->broken && !stopped)
		mcp_stdio_poll(s, &before);
	handle_signals(SIG_DFL);
	sigprocmask(SIG_SETMASK, &before, NULL);
}

/* Standard output belongs to the protocol: a failure before it begins goes to standard error. */
static enum result mcp_stdio_complain(const struct answer *ans)
{
	tty_print(STDERR_FILENO, "pawl: %.*s\n", STRF(ans->message));
	if (ans->hint.n)
		tty_print(STDERR_FILENO, "hint: %.*s\n", STRF(ans->hint));
	return ans->code;
}

enum result mcp_stdio(struct session *session, const struct mcp_args *a, struct reply *out)
{
	struct mcp_options options = { .who = session->client.said,
				       .profile = a->profile,
				       .max_hold = a->max_hold };
	struct stdio s = { .m = { .send = send_line },
			   .in = BUF_MAX(MESSAGE_MAX + 1),
			   .out = BUF_MAX(SIZE_MAX / 4) };
	struct answer ans = { 0 };

	out->silent = true;
	options.who.face = CLIENT_PROGRAM;
	s.m.ctx = &s;
	if (mcp_open(&s.m, &options, &ans, session->arena) != SUCCESS)
		return mcp_stdio_complain(&ans);
	mcp_stdio_serve(&s);
	mcp_close(&s.m, a->release_on_exit);
	say_the_rest(&s);
	buf_free(&s.in);
	buf_free(&s.out);
	return SUCCESS;
}

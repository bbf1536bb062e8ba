/* A connection and its pkt-lines: four hex digits of length, which counts itself, then the line. */
#include "store/git/transport/pkt.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/os.h"

#define PART 65536
#define LINE_MAX_BYTES 65520
#define SAID_MAX 8192

void git_conn_init(struct git_conn *c, int64_t timeout_ms)
{
	*c = (struct git_conn){ .fd = -1,
				.err = -1,
				.end = os_boot_ms() + timeout_ms,
				.in = BUF_MAX(4 * PART),
				.said = BUF_MAX(SAID_MAX) };
}

/* --- waiting ------------------------------------------------------------------------------------ */

static void git_pkt_hear(struct git_conn *c)
{
	char part[4096];
	ssize_t n = read(c->err, part, sizeof(part));

	if (n > 0) {
		buf_add(&c->said, part, (size_t)n);
	} else if (n == 0 || errno != EINTR) {
		close(c->err);
		c->err = -1;
	}
}

/* Waits until the socket is ready, and reads the program's stderr meanwhile. */
static int git_pkt_await(struct git_conn *c, short what)
{
	for (;;) {
		struct pollfd p[2] = { { .fd = c->fd, .events = what },
				       { .fd = c->err, .events = POLLIN } };
		int64_t left = c->end - os_boot_ms();

		c->late = left <= 0;
		if (c->late)
			return -ETIMEDOUT;
		if (poll(p, 2, (int)(left < 60000 ? left : 60000)) <= 0)
			continue;
		if (p[1].revents)
			git_pkt_hear(c);
		if (p[0].revents)
			return 0;
	}
}

/* --- bytes -------------------------------------------------------------------------------------- */

/* 0, or PKT_END if the other side has closed. */
static int git_pkt_fill(struct git_conn *c)
{
	char part[PART];
	ssize_t n;
	int rc = git_pkt_await(c, POLLIN);

	if (rc)
		return rc;
	n = recv(c->fd, part, sizeof(part), 0);
	if (n < 0)
		return errno == EINTR ? 0 : errno == ECONNRESET ? PKT_END : -errno;
	if (n == 0)
		return PKT_END;
	if (c->at) {
		memmove(c->in.p, c->in.p + c->at, c->in.n - c->at);
		c->in.n -= c->at;
		c->at = 0;
	}
	buf_add(&c->in, part, (size_t)n);
	return c->in.full ? -EPROTO : 0;
}

static int git_pkt_need(struct git_conn *c, size_t n)
{
	int rc = 0;

	while (rc == 0 && c->in.n - c->at < n)
		rc = git_pkt_fill(c);
	return rc;
}

int git_conn_read(struct git_conn *c, struct str *bytes)
{
	int rc = git_pkt_need(c, 1);

	if (rc)
		return rc;
	*bytes = str_n(c->in.p + c->at, c->in.n - c->at);
	c->at = c->in.n;
	return 0;
}

bool git_conn_begins(struct git_conn *c, struct str bytes)
{
	return git_pkt_need(c, bytes.n) == 0 && memcmp(c->in.p + c->at, bytes.p, bytes.n) == 0;
}

int git_conn_send(struct git_conn *c, struct str bytes)
{
	while (bytes.n) {
		ssize_t n;
		int rc = git_pkt_await(c, POLLOUT);

		if (rc)
			return rc;
		n = send(c->fd, bytes.p, bytes.n, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (n < 0)
			return errno == ECONNRESET ? -EPIPE : -errno;
		bytes.p += n;
		bytes.n -= (size_t)n;
	}
	return 0;
}

/* --- lines -------------------------------------------------------------------------------------- */

static int pkt_hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return -1;
}

static int length_of(const char *p)
{
	int n = 0;

	for (int i = 0; i < 4; i++) {
		if (pkt_hex_digit(p[i]) < 0)
			return -1;
		n = n * 16 + pkt_hex_digit(p[i]);
	}
	return n;
}

int git_pkt_read(struct git_conn *c, struct str *line)
{
	int rc = git_pkt_need(c, 4), n;

	if (rc)
		return rc == PKT_END && c->in.n > c->at ? -EPROTO : rc;
	n = length_of(c->in.p + c->at);
	if (n == 0) {
		c->at += 4;
		return PKT_FLUSH;
	}
	if (n < 4)
		return -EPROTO;
	rc = git_pkt_need(c, (size_t)n);
	if (rc)
		return rc == PKT_END ? -EPIPE : rc;
	*line = str_n(c->in.p + c->at + 4, (size_t)n - 4);
	if (line->n && line->p[line->n - 1] == '\n')
		line->n--;
	c->at += (size_t)n;
	return PKT_LINE;
}

void git_pkt_add(struct buf *out, struct str line)
{
	if (line.n > LINE_MAX_BYTES - 4) {
		out->full = true;
		return;
	}
	buf_addf(out, "%04x", (unsigned)line.n + 4);
	buf_adds(out, line);
}

void git_pkt_flush(struct buf *out)
{
	buf_adds(out, STR("0000"));
}

/* --- closing ------------------------------------------------------------------------------------ */

struct str git_last_line(struct str text)
{
	struct str line = { 0 };

	while (text.n) {
		struct str next = str_trim(str_cut(&text, '\n'));

		if (next.n)
			line = next;
	}
	return line;
}

struct str git_conn_said(struct git_conn *c)
{
	struct pollfd p = { .fd = c->err, .events = POLLIN };

	/* the last message may arrive a little after the program has hung up */
	while (c->err >= 0 && poll(&p, 1, 200) > 0) {
		git_pkt_hear(c);
		p.fd = c->err;
	}
	return git_last_line(buf_str(&c->said));
}

pid_t git_conn_close(struct git_conn *c)
{
	pid_t pid = c->pid;

	if (pid && c->late && !c->busy)
		kill(-pid, SIGKILL);
	if (c->fd >= 0)
		close(c->fd);
	if (c->err >= 0)
		close(c->err);
	buf_free(&c->in);
	buf_free(&c->said);
	git_conn_init(c, 0);
	return pid;
}

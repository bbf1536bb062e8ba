/* A connection and its pkt-lines: four hex digits of length, which counts itself, then the line. Every wait
 * ends at the connection's one deadline. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/fs.h"
#include "base/os.h"
#include "store/git/transport/transport.h"

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

/* Waits until the socket is ready, and reads the program's stderr while it waits. */
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

/* --- run -------------------------------------------------------------------------------------- */

/* Runs the user's own git as a process, with the user's keys, proxies and helpers. git must never prompt: it
 * has no terminal, and no program that asks for a password. */

#define OUTPUT_MAX (1u << 20)

extern char **environ;

/* --- arguments and environment ------------------------------------------------------------------ */

static bool is_kept(const char *var)
{
	/* pawl sets or clears these itself. */
	static const char *const out[] = {
		"GIT_DIR=",
		"GIT_WORK_TREE=",
		"GIT_INDEX_FILE=",
		"GIT_COMMON_DIR=",
		"GIT_NAMESPACE=",
		"GIT_OBJECT_DIRECTORY=",
		"GIT_PREFIX=",
		"GIT_ALTERNATE_OBJECT_DIRECTORIES=",
		"GIT_PROTOCOL=",
		"GIT_TERMINAL_PROMPT=",
		"GIT_ALLOW_PROTOCOL=",
		"GIT_ASKPASS=",
		"SSH_ASKPASS=",
		"SSH_ASKPASS_REQUIRE=",
		"LC_ALL=",
		"LANGUAGE=",
	};

	for (size_t i = 0; i < sizeof(out) / sizeof(*out); i++)
		if (str_starts(str_c(var), str_c(out[i])))
			return false;
	return true;
}

static char **git_run_environment(struct arena *a)
{
	/* an empty GIT_ASKPASS overrides core.askPass, and is not called */
	static char *const own[] = { "GIT_TERMINAL_PROMPT=0",
				     "GIT_ASKPASS=", "SSH_ASKPASS_REQUIRE=never",
				     "GIT_ALLOW_PROTOCOL=file:git:http:https:ssh", "LC_ALL=C" };
	size_t n = 0, k = 0;
	char **env;

	while (environ[n])
		n++;
	env = arena_array(a, char *, n + sizeof(own) / sizeof(*own) + 1);
	for (size_t i = 0; i < n; i++)
		if (is_kept(environ[i]))
			env[k++] = environ[i];
	for (size_t i = 0; i < sizeof(own) / sizeof(*own); i++)
		env[k++] = own[i];
	return env;
}

void git_arg(struct git_args *g, struct str arg)
{
	g->v = arena_grow(&g->a, g->v, g->n, sizeof(*g->v));
	g->v[g->n++] = arena_cstr(&g->a, arg);
}

void git_args_begin(struct git_args *g, const char *dir, const char *verb)
{
	static const char *const config[] = {
		"core.hooksPath=/dev/null",  "gc.auto=0",
		"maintenance.auto=false",    "submodule.recurse=false",
		"push.followTags=false",     "push.gpgSign=false",
		"advice.detachedHead=false",
	};

	*g = (struct git_args){ 0 };
	git_arg(g, STR("git"));
	git_arg(g, STR("-C"));
	git_arg(g, str_c(dir));
	/* safe.bareRepository = explicit needs the folder by name; it is pawl's or the user's own */
	git_arg(g, arena_printf(&g->a, "--git-dir=%s", dir));
	for (size_t i = 0; i < sizeof(config) / sizeof(*config); i++) {
		git_arg(g, STR("-c"));
		git_arg(g, str_c(config[i]));
	}
	git_arg(g, str_c(verb));
}

/* --- running it --------------------------------------------------------------------------------- */

int git_start(struct git_args *g, int in, int out, int err, pid_t *pid)
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attr;
	sigset_t none;
	char **argv = arena_array(&g->a, char *, g->n + 1);
	int rc;

	if (g->n)
		memcpy(argv, g->v, g->n * sizeof(*argv));
	sigemptyset(&none);
	posix_spawn_file_actions_init(&files);
	if (in < 0)
		posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
	else
		posix_spawn_file_actions_adddup2(&files, in, 0);
	posix_spawn_file_actions_adddup2(&files, out, 1);
	posix_spawn_file_actions_adddup2(&files, err, 2);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setsigmask(&attr, &none);
	/* a new session has no terminal, and its process group can be killed as a whole */
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK);
	rc = posix_spawnp(pid, argv[0], &files, &attr, argv, git_run_environment(&g->a));
	posix_spawnattr_destroy(&attr);
	posix_spawn_file_actions_destroy(&files);
	return -rc;
}

static int git_run_result(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int git_run(struct git_args *g, int64_t timeout_ms, struct str *text)
{
	struct buf out = BUF_MAX(OUTPUT_MAX);
	int ends[2], rc;
	pid_t pid = 0;
	bool done;

	rc = os_pipe(ends);
	if (rc)
		return rc;
	rc = git_start(g, -1, ends[1], ends[1], &pid);
	close(ends[1]);
	if (rc) {
		close(ends[0]);
		return rc;
	}
	done = fs_read_until(ends[0], os_boot_ms() + timeout_ms, &out);
	if (!done)
		kill(-pid, SIGKILL);
	close(ends[0]);
	rc = git_run_result(pid);
	*text = arena_str(&g->a, buf_str(&out));
	buf_free(&out);
	return done ? rc : -ETIMEDOUT;
}

void git_args_free(struct git_args *g)
{
	arena_free(&g->a);
}

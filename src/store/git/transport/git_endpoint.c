/* Chooses the transport to git's server side for a URL, and connects to it. The URL may be hostile: its host
 * must never become an option of ssh, and its path must reach the remote shell quoted. */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/os.h"
#include "store/git/transport/transport.h"

#define GIT_PORT "9418"
#define COLLECT 32 /* one push in COLLECT lets git check for garbage */

/* --- choosing the transport --------------------------------------------------------------------- */

static bool git_endpoint_has(struct str text, char c)
{
	return text.n && memchr(text.p, c, text.n);
}

static struct str from_env(const char *name)
{
	return str_c(getenv(name));
}

static struct str base_name(struct str word)
{
	while (git_endpoint_has(word, '/'))
		(void)str_cut(&word, '/');
	return word;
}

/* pawl knows only OpenSSH's options. */
static bool is_openssh(struct str command, struct str variant)
{
	if (variant.n)
		return str_is(variant, "ssh");
	return str_is(base_name(str_cut(&command, ' ')), "ssh");
}

static bool find_ssh(struct git_endpoint *w, const struct git_ssh_config *conf, struct arena *a)
{
	struct str variant = from_env("GIT_SSH_VARIANT");

	w->ssh = from_env("GIT_SSH_COMMAND");
	if (!w->ssh.n)
		w->ssh = conf->command;
	w->ssh_in_shell = w->ssh.n > 0;
	if (!w->ssh.n)
		w->ssh = from_env("GIT_SSH");
	if (!w->ssh.n)
		w->ssh = STR("ssh");
	w->ssh = arena_str(a, w->ssh);
	return is_openssh(w->ssh, variant.n ? variant : conf->variant);
}

/* HOST[:PORT]; neither may look like an option. */
static bool split_host(struct git_endpoint *w, struct str text)
{
	w->host = str_cut(&text, ':');
	w->port = text;
	if (!w->host.n || w->host.p[0] == '-' || git_endpoint_has(w->host, '['))
		return false;
	for (size_t i = 0; i < w->port.n; i++)
		if (w->port.p[i] < '0' || w->port.p[i] > '9')
			return false;
	return true;
}

static bool split_url(struct git_endpoint *w, struct str rest)
{
	struct str host = { rest.p, 0 };

	while (host.n < rest.n && rest.p[host.n] != '/')
		host.n++;
	w->path = str_n(rest.p + host.n, rest.n - host.n);
	if (str_starts(w->path, STR("/~")))
		(void)str_cut_prefix(&w->path, STR("/"));
	return w->path.n > 1 && split_host(w, host);
}

static bool split_scp(struct git_endpoint *w, struct str text)
{
	w->host = str_cut(&text, ':');
	w->path = text;
	return w->host.n && w->path.n && w->host.p[0] != '-' && w->path.p[0] != '-' &&
	       !git_endpoint_has(w->host, '[') && !git_endpoint_has(w->host, '/');
}

void git_endpoint_find(struct git_endpoint *w, struct str remote, const struct git_ssh_config *conf,
		       struct arena *a)
{
	*w = (struct git_endpoint){ 0 };
	remote = arena_str(a, remote);
	if (remote.n && remote.p[0] == '/') {
		w->path = remote;
		w->kind = CONN_PATH;
		return;
	}
	if (git_endpoint_has(remote, '%')) /* git knows which parts of a URL to decode */
		return;
	if (str_cut_prefix(&remote, STR("file://"))) {
		w->path = remote;
		w->kind = remote.n && remote.p[0] == '/' ? CONN_PATH : ACTION_NONE;
	} else if (str_cut_prefix(&remote, STR("git://"))) {
		if (split_url(w, remote) && !conf->proxy.n && !from_env("GIT_PROXY_COMMAND").n)
			w->kind = CONN_TCP;
	} else if (str_cut_prefix(&remote, STR("ssh://"))) {
		if (split_url(w, remote) && find_ssh(w, conf, a))
			w->kind = CONN_SSH;
	} else if (!str_starts(remote, STR("http")) && git_endpoint_has(remote, ':')) {
		if (split_scp(w, remote) && find_ssh(w, conf, a))
			w->kind = CONN_SSH;
	}
}

/* --- programs ----------------------------------------------------------------------------------- */

/* Quotes a text for the shell at the other end. */
static struct str git_endpoint_quoted(struct arena *a, struct str text)
{
	struct buf b = BUF_MAX(1 << 16);
	struct str out;

	buf_addc(&b, '\'');
	for (size_t i = 0; i < text.n; i++) {
		if (text.p[i] == '\'' || text.p[i] == '!')
			buf_addf(&b, "'\\%c'", text.p[i]);
		else
			buf_addc(&b, text.p[i]);
	}
	buf_addc(&b, '\'');
	out = arena_str(a, buf_str(&b));
	buf_free(&b);
	return out;
}

static void ssh_args(const struct git_endpoint *w, const char *service, struct git_args *g)
{
	if (w->ssh_in_shell) {
		git_arg(g, STR("sh"));
		git_arg(g, STR("-c"));
		git_arg(g, arena_printf(&g->a, "%.*s \"$@\"", STRF(w->ssh)));
	}
	git_arg(g, w->ssh);
	/* ssh uses the first value of an option, so the user's own command can override this */
	git_arg(g, STR("-oBatchMode=yes"));
	if (w->port.n) {
		git_arg(g, STR("-p"));
		git_arg(g, w->port);
	}
	git_arg(g, w->host);
	git_arg(g, arena_printf(&g->a, "git-%s %s", service,
				arena_cstr(&g->a, git_endpoint_quoted(&g->a, w->path))));
}

static int start_program(struct git_args *g, struct git_conn *c)
{
	int ends[2], err[2];
	int rc;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
		return -errno;
	rc = os_pipe(err);
	if (rc == 0) {
		rc = git_start(g, ends[1], ends[1], err[1], &c->pid);
		close(err[1]);
		c->err = err[0];
	}
	close(ends[1]);
	c->fd = ends[0];
	return rc;
}

static int git_endpoint_start(const struct git_endpoint *w, const char *service, struct git_conn *c)
{
	struct git_args g = { 0 };
	int rc;

	if (w->kind == CONN_SSH) {
		ssh_args(w, service, &g);
	} else {
		git_arg(&g, STR("git"));
		if (os_boot_ms() % COLLECT) { /* checking for garbage now and then is enough */
			git_arg(&g, STR("-c"));
			git_arg(&g, STR("receive.autogc=false"));
		}
		git_arg(&g, str_c(service));
		git_arg(&g, w->path);
	}
	rc = start_program(&g, c);
	git_args_free(&g);
	return rc;
}

/* --- TCP ---------------------------------------------------------------------------------------- */

static int finish_connect(int fd, int64_t end)
{
	struct pollfd p = { .fd = fd, .events = POLLOUT };
	int64_t left = end - os_boot_ms();
	int rc = 0;
	socklen_t n = sizeof(rc);

	if (left <= 0 || poll(&p, 1, (int)(left < 60000 ? left : 60000)) <= 0)
		return -ETIMEDOUT;
	return getsockopt(fd, SOL_SOCKET, SO_ERROR, &rc, &n) ? -errno : -rc;
}

static int connect_to(const struct addrinfo *to, struct git_conn *c)
{
	int one = 1, rc = 0;

	c->fd = socket(to->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (c->fd < 0)
		return -errno;
	/* otherwise the last, short segment waits for the previous one's acknowledgement */
	setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (connect(c->fd, to->ai_addr, to->ai_addrlen))
		rc = errno == EINPROGRESS ? finish_connect(c->fd, c->end) : -errno;
	if (rc == 0)
		return fcntl(c->fd, F_SETFL, 0) ? -errno : 0;
	close(c->fd);
	c->fd = -1;
	return rc;
}

static int git_endpoint_dial(const struct git_endpoint *w, struct git_conn *c)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *list = NULL;
	struct arena a = { 0 };
	int rc = -EHOSTUNREACH;

	if (getaddrinfo(arena_cstr(&a, w->host), w->port.n ? arena_cstr(&a, w->port) : GIT_PORT,
			&hints, &list) == 0)
		for (struct addrinfo *i = list; rc && i; i = i->ai_next)
			rc = connect_to(i, c);
	if (list)
		freeaddrinfo(list);
	arena_free(&a);
	return rc;
}

static int ask_daemon(const struct git_endpoint *w, const char *service, struct git_conn *c)
{
	struct buf b = BUF_MAX(1 << 16), line = BUF_MAX(1 << 16);
	int rc = git_endpoint_dial(w, c);

	buf_addf(&line, "git-%s %.*s", service, STRF(w->path));
	buf_addc(&line, '\0');
	buf_addf(&line, "host=%.*s%s%.*s", STRF(w->host), w->port.n ? ":" : "", STRF(w->port));
	buf_addc(&line, '\0');
	git_pkt_add(&b, buf_str(&line));
	if (rc == 0)
		rc = git_conn_send(c, buf_str(&b));
	buf_free(&line);
	buf_free(&b);
	return rc;
}

int git_endpoint_connect(const struct git_endpoint *w, const char *service, int64_t timeout_ms,
			 struct git_conn *out)
{
	git_conn_init(out, timeout_ms);
	return w->kind == CONN_TCP ? ask_daemon(w, service, out)
				   : git_endpoint_start(w, service, out);
}

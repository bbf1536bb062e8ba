/*
 * The client's socket. No connect, read or write blocks past its deadline, or after stop_fd is readable: a read blocks in
 * the kernel only without a stop_fd, for at most PATIENCE_MS, and only if more time than that is left. The exception is
 * getaddrinfo(), which knows no deadline.
 */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/module.h"
#include "base/os.h"
#include "http/http_message.h"
#include "http/http_wire.h"

#define PATIENCE_MS 1000
#define STAYS 8 /* a connection with this many reads is expected to stay open */

/* Waits until the socket is ready. 0, or a WIRE_ result. */
static int http_wire_ready(const struct wire *w, short events, int64_t deadline)
{
	struct pollfd fds[2] = { { .fd = w->fd, .events = events },
				 { .fd = w->stop_fd, .events = POLLIN } };

	for (;;) {
		int64_t left = deadline ? deadline - os_boot_ms() : -1;
		int n;

		if (deadline && left < 0)
			left = 0;
		n = poll(fds, 2, left > INT32_MAX ? INT32_MAX : (int)left);
		if (n < 0 && errno != EINTR)
			return WIRE_FAILED;
		if (n > 0 && fds[1].revents)
			return WIRE_STOPPED;
		if (n > 0 && fds[0].revents)
			return 0;
		if (deadline && os_boot_ms() >= deadline)
			return WIRE_TIMEOUT;
	}
}

static void http_wire_say(int result, const char *what, char *why, size_t room)
{
	if (result == WIRE_TIMEOUT)
		snprintf(why, room, "%s took too long", what);
	else if (result == WIRE_STOPPED)
		snprintf(why, room, "%s was stopped", what);
	else
		snprintf(why, room, "%s failed: %s", what, strerror(errno));
}

/* ---- connecting */

static int try_address(struct wire *w, int family, const struct sockaddr *at, socklen_t n,
		       int64_t deadline)
{
	int failed = 0, result = 0;
	socklen_t size = sizeof(failed);

	w->fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (w->fd < 0)
		return WIRE_FAILED;
	if (connect(w->fd, at, n) == 0)
		return 0;
	if (errno != EINPROGRESS && errno != EINTR) {
		result = WIRE_FAILED;
	} else {
		result = http_wire_ready(w, POLLOUT, deadline);
		if (result == 0 &&
		    (getsockopt(w->fd, SOL_SOCKET, SO_ERROR, &failed, &size) < 0 || failed)) {
			errno = failed ? failed : errno;
			result = WIRE_FAILED;
		}
	}
	if (result) {
		failed = errno;
		wire_close(w);
		errno = failed;
	}
	return result;
}

static int try_all(struct wire *w, const struct addrinfo *found, int64_t deadline)
{
	int result = WIRE_FAILED;

	for (const struct addrinfo *at = found; at; at = at->ai_next) {
		int on = 1;

		result = try_address(w, at->ai_family, at->ai_addr, at->ai_addrlen, deadline);
		if (result == 0)
			setsockopt(w->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
		if (result != WIRE_FAILED)
			break;
	}
	return result;
}

/* localhost is this machine, whatever a name server says. Numeric addresses also avoid loading the resolver's
 * libraries. */
static int try_localhost(struct wire *w, const char *port, int64_t deadline)
{
	static const char *const hosts[] = { "127.0.0.1", "::1" };
	int result = WIRE_FAILED;

	for (size_t i = 0; i < 2 && result == WIRE_FAILED; i++) {
		struct addrinfo hints = { .ai_socktype = SOCK_STREAM,
					  .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV },
				*found;
		int before = errno;

		if (getaddrinfo(hosts[i], port, &hints, &found))
			continue;
		result = try_all(w, found, deadline);
		freeaddrinfo(found);
		if (i && result == WIRE_FAILED) /* the first reason says more */
			errno = before;
	}
	return result;
}

int wire_connect(struct wire *w, const struct http_place *place, int64_t deadline, char *why,
		 size_t room)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM,
				  .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV },
			*found;
	char what[sizeof(place->host) + sizeof(place->port) + 32];
	int result, failed;

	snprintf(what, sizeof(what), "connecting to %s port %s", place->host, place->port);
	if (str_eq_nocase(str_c(place->host), STR("localhost"))) {
		result = try_localhost(w, place->port, deadline);
	} else {
		failed = getaddrinfo(place->host, place->port, &hints, &found);
		hints.ai_flags = AI_NUMERICSERV | AI_ADDRCONFIG;
		if (failed)
			failed = getaddrinfo(place->host, place->port, &hints, &found);
		if (failed) {
			snprintf(why, room, "%s failed: %s", what, gai_strerror(failed));
			return WIRE_FAILED;
		}
		result = try_all(w, found, deadline);
		freeaddrinfo(found);
	}
	if (result)
		http_wire_say(result, what, why, room);
	return result;
}

int wire_connect_unix(struct wire *w, const char *path, int64_t deadline, char *why, size_t room)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int result, n = snprintf(at.sun_path, sizeof(at.sun_path), "%s", path);

	if (n <= 0 || (size_t)n >= sizeof(at.sun_path)) {
		snprintf(why, room, "the path of a socket has 1 to %zu bytes: %s",
			 sizeof(at.sun_path) - 1, path);
		return WIRE_FAILED;
	}
	result = try_address(w, AF_UNIX, (const struct sockaddr *)&at, sizeof(at), deadline);
	if (result)
		http_wire_say(result, "connecting to the socket", why, room);
	return result;
}

/* ---- TLS */

static int load_tls(struct wire *w, const char *origin, const char *ca_file, char *why, size_t room)
{
	const struct module *m;
	char reason[200];
	int found;

	if (!w->tls) {
		found = module_load("http", STR("tls"), &m, reason, sizeof(reason));
		if (found != 0 || !m->http_tls) {
			snprintf(why, room, "https needs the module pawl-http-tls.so: %s",
				 found > 0 ? "it is not installed" : reason);
			return WIRE_FAILED;
		}
		w->tls = m->http_tls;
	}
	if (!w->context)
		w->context = w->tls->context(origin, ca_file, why, room);
	return w->context ? 0 : WIRE_FAILED;
}

static void offer_session(struct wire *w)
{
	char bytes[HTTP_TLS_KEPT_MAX];
	bool may = w->session_file && !w->refused;
	size_t n = may ? kept_read(w->session_file, bytes, sizeof(bytes)) : 0;

	w->offered = n && w->tls->offer(w->session, bytes, n);
}

static void keep_session(struct wire *w)
{
	char bytes[HTTP_TLS_KEPT_MAX];
	size_t n = w->session_file ? w->tls->keep(w->session, bytes, sizeof(bytes)) : 0;

	if (n)
		kept_write(w->session_file, str_n(bytes, n));
}

static int shake_hands(struct wire *w, int64_t deadline, char *why, size_t room)
{
	int result;
	ssize_t n;

	while ((n = w->tls->handshake(w->session, why, room)) != 1) {
		if (n == TLS_FAILED)
			return WIRE_FAILED;
		result = http_wire_ready(w, n == TLS_WANTS_READ ? POLLIN : POLLOUT, deadline);
		if (result) {
			http_wire_say(result, "the TLS handshake", why, room);
			return result;
		}
	}
	return 0;
}

int wire_secure(struct wire *w, const char *host, const char *origin, const char *ca_file,
		int64_t deadline, char *why, size_t room)
{
	int result = load_tls(w, origin, ca_file, why, room);

	if (result)
		return result;
	w->session = w->tls->start(w->context, w->fd, host);
	if (!w->session) {
		snprintf(why, room, "cannot start TLS with %s", host);
		return WIRE_FAILED;
	}
	offer_session(w);
	result = shake_hands(w, deadline, why, room);
	w->refused = result == WIRE_FAILED && w->offered;
	if (w->refused)
		kept_forget(w->session_file);
	return result;
}

/* ---- bytes */

bool wire_quiet(const struct wire *w)
{
	struct pollfd p = { .fd = w->fd, .events = POLLIN };
	char c;

	/* poll() cannot tell: TLS reads ahead, and servers may send tickets at any time */
	if (w->session && w->fd >= 0)
		return w->tls->read(w->session, &c, 1) == TLS_WANTS_READ;
	return w->fd >= 0 && poll(&p, 1, 0) == 0;
}

static ssize_t http_wire_plain(ssize_t n, ssize_t wish)
{
	if (n >= 0)
		return n;
	return errno == EAGAIN || errno == EINTR ? wish : TLS_FAILED;
}

static ssize_t read_once(struct wire *w, void *p, size_t n)
{
	if (w->session)
		return w->tls->read(w->session, p, n);
	return http_wire_plain(recv(w->fd, p, n, MSG_DONTWAIT), TLS_WANTS_READ);
}

static ssize_t write_once(struct wire *w, const void *p, size_t n)
{
	if (w->session)
		return w->tls->write(w->session, p, n);
	return http_wire_plain(send(w->fd, p, n, MSG_NOSIGNAL | MSG_DONTWAIT), TLS_WANTS_WRITE);
}

/* After an attempt that returned `n`. 0: try again; else a WIRE_ result. */
static int http_wire_again(struct wire *w, ssize_t n, int64_t deadline)
{
	if (n == TLS_FAILED)
		return WIRE_FAILED;
	return http_wire_ready(w, n == TLS_WANTS_READ ? POLLIN : POLLOUT, deadline);
}

/* Makes recv() without MSG_DONTWAIT wait for up to PATIENCE_MS. */
static bool lets_wait(struct wire *w)
{
	struct timeval most = { .tv_sec = PATIENCE_MS / 1000 };
	int flags;

	if (w->waits || w->session || w->stop_fd >= 0 || w->reads++ < STAYS)
		return w->waits;
	flags = fcntl(w->fd, F_GETFL);
	w->waits = flags >= 0 &&
		   setsockopt(w->fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof(most)) == 0 &&
		   fcntl(w->fd, F_SETFL, flags & ~O_NONBLOCK) == 0;
	return w->waits;
}

/* The answer has almost never arrived yet, so one blocking read saves a failed read and a poll(). */
static ssize_t read_patiently(struct wire *w, void *p, size_t n, int64_t deadline)
{
	if ((deadline && deadline - os_boot_ms() <= PATIENCE_MS) || !lets_wait(w))
		return read_once(w, p, n);
	return http_wire_plain(recv(w->fd, p, n, 0), TLS_WANTS_READ);
}

ssize_t wire_read(struct wire *w, void *p, size_t n, int64_t deadline)
{
	for (;;) {
		ssize_t got = read_patiently(w, p, n, deadline);
		int result;

		if (got >= 0)
			return got;
		result = http_wire_again(w, got, deadline);
		if (result)
			return result;
	}
}

ssize_t wire_write(struct wire *w, const void *p, size_t n, int64_t deadline)
{
	for (;;) {
		ssize_t sent = write_once(w, p, n);
		int result;

		if (sent > 0)
			return sent;
		result = sent == 0 ? WIRE_FAILED : http_wire_again(w, sent, deadline);
		if (result)
			return result;
	}
}

void wire_close(struct wire *w)
{
	if (w->session) {
		keep_session(w);
		w->tls->end(w->session);
	}
	w->session = NULL;
	w->offered = false;
	if (w->fd >= 0)
		close(w->fd);
	w->fd = -1;
	w->waits = false;
	w->reads = 0;
}

void wire_free(struct wire *w)
{
	wire_close(w);
	if (w->context)
		w->tls->context_free(w->context);
	w->context = NULL;
}

/* --- message ---------------------------------------------------------------------------------- */

/* Header lookup and status texts. Header names ignore case. */

struct str http_header(struct http_headers headers, const char *name)
{
	for (size_t i = 0; i < headers.n; i++)
		if (str_eq_nocase(headers.v[i].name, str_c(name)))
			return headers.v[i].value;
	return str_n(NULL, 0);
}

size_t http_header_count(struct http_headers headers, const char *name)
{
	size_t n = 0;

	for (size_t i = 0; i < headers.n; i++)
		n += str_eq_nocase(headers.v[i].name, str_c(name));
	return n;
}

bool http_has_header(struct http_headers headers, const char *name)
{
	return http_header_count(headers, name);
}

const char *http_status_text(int status)
{
	static const struct {
		int status;
		const char *text;
	} texts[] = {
		{ 200, "OK" },
		{ 201, "Created" },
		{ 202, "Accepted" },
		{ 204, "No Content" },
		{ 304, "Not Modified" },
		{ 400, "Bad Request" },
		{ 401, "Unauthorized" },
		{ 403, "Forbidden" },
		{ 404, "Not Found" },
		{ 405, "Method Not Allowed" },
		{ 406, "Not Acceptable" },
		{ 408, "Request Timeout" },
		{ 409, "Conflict" },
		{ 411, "Length Required" },
		{ 412, "Precondition Failed" },
		{ 413, "Content Too Large" },
		{ 414, "URI Too Long" },
		{ 415, "Unsupported Media Type" },
		{ 417, "Expectation Failed" },
		{ 422, "Unprocessable Content" },
		{ 429, "Too Many Requests" },
		{ 431, "Request Header Fields Too Large" },
		{ 500, "Internal Server Error" },
		{ 501, "Not Implemented" },
		{ 502, "Bad Gateway" },
		{ 503, "Service Unavailable" },
		{ 504, "Gateway Timeout" },
		{ 505, "HTTP Version Not Supported" },
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (texts[i].status == status)
			return texts[i].text;
	return "Status";
}

/* --- kept branch ------------------------------------------------------------------------------ */

/* The file is as secret as a token: it has mode 0600, and each write creates a new file, so no other user has it open. Losing
 * it costs only a full handshake. */

size_t kept_read(const char *path, void *p, size_t room)
{
	struct arena a = { 0 };
	struct str bytes;
	size_t n = 0;

	if (fs_read_private(&a, path, room, &bytes) == 0) {
		n = bytes.n;
		memcpy(p, bytes.p, n);
	}
	arena_free(&a);
	return n;
}

/* Neither syncs nor reports errors: a lost file costs one handshake. So does an incomplete file, because a
 * reader recognises it. A temporary file would need its own name, and a killed process would leave the secret in it. */
void kept_write(const char *path, struct str bytes)
{
	struct arena a = { 0 };
	int fd = -1;

	if (fs_make_dirs(arena_cstr(&a, fs_dirname(str_c(path))), 0700) == 0) {
		unlink(path); /* other processes may have it open, or it may have other links */
		fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	}
	if (fd >= 0) {
		(void)fs_write_all(fd, bytes);
		close(fd);
	}
	arena_free(&a);
}

void kept_forget(const char *path)
{
	unlink(path);
}

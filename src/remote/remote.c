/* Opens a queue behind a server, and watches the server's stream of changes. Opening sends
 * nothing; the first call does. A reader never relies on the stream alone: after each new
 * connection and after a silence it reads again, so a lost notification only delays it. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/module.h"
#include "base/os.h"
#include "base/secret.h"
#include "remote/remote.h"

#define CONNECT_MS 5000
#define TIMEOUT_MS 15000

/* The server in the URI, without parameters. */
static const char *url_of(struct str uri, struct uri *u, struct arena *a)
{
	if (uri_parse(uri, u))
		return arena_cstr(a, uri);
	return arena_printf(a, "%.*s:%.*s", STRF(u->scheme), STRF(u->path)).p;
}

static const char *remote_encoded(struct str name, struct arena *a)
{
	static const char digits[] = "0123456789ABCDEF";
	struct buf b = BUF_MAX(64u << 10);
	const char *out;

	for (size_t i = 0; i < name.n; i++) {
		unsigned char c = (unsigned char)name.p[i];

		if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		    c == '-' || c == '_' || c == '.')
			buf_addc(&b, (char)c);
		else
			buf_addf(&b, "%%%c%c", digits[c >> 4], digits[c & 15]);
	}
	out = arena_printf(a, "queue=%s", arena_cstr(a, buf_str(&b))).p;
	buf_free(&b);
	return out;
}

static const char *session_file(struct far_queue *r)
{
	const char *dir = r->config->state_dir;
	struct arena *a = &r->arena;

	if (!dir || !str_starts(str_c(r->url), STR("https:")))
		return NULL;
	return fs_join(a, str_c(dir), arena_printf(a, "tls/%.32s", hash_hex(a, str_c(r->url)).p));
}

int remote_client(struct far_queue *r, struct http_client **out, char *why, size_t room)
{
	struct http_client_options o = { .ca_file = r->config->ca_file,
					 .session_file = session_file(r),
					 .answer_max = BODY_MAX + (1u << 20),
					 .connect_ms = CONNECT_MS };

	return http_client_new(r->url, &o, out, why, room);
}

static enum result remote_open(struct far_queue **out, const struct queue_config *config,
			       struct answer *ans, struct arena *a)
{
	struct far_queue *r = mem_alloc(sizeof(*r));
	struct str queue = config->opt.queue;
	struct uri u = { 0 };
	char why[400];

	*r = (struct far_queue){ .config = config,
				 .watch = { .set = -1, .timer = -1 },
				 .queue = "",
				 .timeout_ms = config->opt.timeout_ms };
	if (r->timeout_ms < 0)
		r->timeout_ms = TIMEOUT_MS;
	r->url = url_of(config->uri, &u, &r->arena);
	if (remote_client(r, &r->http, why, sizeof(why))) {
		arena_free(&r->arena);
		free(r);
		return answer_fail(ans, MISCONFIGURED, arena_str(a, str_c(why)),
				   STR("for example http://127.0.0.1:7295?queue=NAME"));
	}
	if (!queue.n)
		queue = uri_param(&u, "queue");
	if (queue.n)
		r->queue = remote_encoded(queue, &r->arena);
	*out = r;
	return SUCCESS;
}

static void close_remote(struct far_queue *r)
{
	remote_watch_end(&r->watch);
	http_client_free(r->http);
	arena_free(&r->arena);
	free(r);
}

static void remote_patience(struct far_queue *r, int64_t timeout_ms)
{
	r->timeout_ms = timeout_ms;
}

/* The server counts whole seconds. */
static bool remote_park(struct far_queue *r, int64_t ms)
{
	r->park_ms = ms < 1000 ? 0 : ms < PARK_MAX_MS ? ms - ms % 1000 : PARK_MAX_MS;
	return r->park_ms;
}

static struct str remote_origin(struct str uri, char *why, size_t room, struct arena *a)
{
	struct http_client *c;
	struct str out;
	struct uri u = { 0 };

	if (http_client_new(url_of(uri, &u, a), NULL, &c, why, room))
		return STR("");
	out = arena_str(a, str_c(http_client_origin(c)));
	http_client_free(c);
	return out;
}

static const struct remote_ops remote_ops = {
	.open = remote_open,
	.close = close_remote,
	.patience = remote_patience,
	.park = remote_park,
	.wake_fd = remote_wake_fd,
	.woken = remote_woken,
	.call = remote_call,
	.call_all = remote_call_all,
	.make = remote_make,
	.discard = remote_discard,
	.facts = remote_facts,
	.forecast = remote_forecast,
	.health = remote_health,
	.names = remote_names,
	.check = remote_check,
	.export = remote_export,
	.import = remote_import,
	.dump = remote_dump,
	.load = remote_put,
	.clear = remote_clear,
	.origin = remote_origin,
};

extern const struct module pawl_module;
const struct module pawl_module = { .abi = MODULE_ABI, .remote = &remote_ops };

/* --- watch ------------------------------------------------------------------------------------ */

/*
 * Waiting for changes. A second connection carries a stream with a line for each change
 * (GET /v1/events?wake=1). Callers wait on an epoll set of this connection and a timer. The timer
 * makes the set readable after each new connection, because a change may have come before it, and
 * when the server has sent nothing for too long. While there is no stream, callers poll.
 */

#define SILENT_MS 45000 /* the server sends a line every 15 s */
#define OPEN_MS 3000    /* short, because the caller has other work */
#define PAUSE_MS 500    /* between two attempts to open the stream */
#define PAUSE_MAX_MS 30000
#define LINE_MAX_BYTES (64u << 10)
#define LINES_MAX \
	1000 /* read at most this many lines in one call, so that the caller can renew its leases in time */
#define UNUSED_MS 20000 /* longer than the pause between two lines: no caller is waiting */

static void set_timer(const struct watch *w, int64_t ms)
{
	struct itimerspec at = { .it_value = { .tv_sec = ms / 1000,
					       .tv_nsec = ms % 1000 * 1000000 + 1 } };

	(void)timerfd_settime(w->timer, 0, &at, NULL);
}

static bool remote_watch_add(const struct watch *w, int fd)
{
	struct epoll_event e = { .events = EPOLLIN | EPOLLRDHUP };

	return fd >= 0 && (epoll_ctl(w->set, EPOLL_CTL_ADD, fd, &e) == 0 || errno == EEXIST);
}

/* Makes the client and the descriptors, once. */
static bool remote_watch_prepare(struct far_queue *r)
{
	struct watch *w = &r->watch;
	char why[400];

	if (w->http)
		return true;
	if (w->set < 0)
		w->set = epoll_create1(EPOLL_CLOEXEC);
	if (w->timer < 0) {
		w->timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
		if (w->timer >= 0 && !remote_watch_add(w, w->timer)) {
			close(w->timer);
			w->timer = -1;
		}
	}
	return w->set >= 0 && w->timer >= 0 && !remote_client(r, &w->http, why, sizeof(why));
}

static bool is_stream(const struct http_answer *h)
{
	struct str type = http_header(h->headers, "content-type");

	return h->status == 200 &&
	       str_eq_nocase(str_trim(str_cut(&type, ';')), STR("text/event-stream"));
}

static bool open_stream(struct far_queue *r)
{
	struct watch *w = &r->watch;
	struct arena a = { 0 };
	struct answer ignored = { 0 };
	struct http_answer h;
	bool opened = false;

	if (remote_watch_prepare(r) && remote_bearer(r, &ignored) == SUCCESS) {
		const char *target =
			arena_printf(&a, "/v1/events?wake=1%s%s", *r->queue ? "&" : "", r->queue).p;
		struct http_header bearer = { STR("Authorization"),
					      arena_printf(&a, "Bearer %.*s", STRF(r->bearer)) };

		http_client_prove(w->http, r->proof, r->insecure);
		opened = http_feed_start(w->http, "GET", target, NULL,
					 (struct http_headers){ &bearer, r->bearer.n > 0 }, STR(""),
					 os_boot_ms() + OPEN_MS, &a, &h) == HTTP_ANSWERED &&
			 is_stream(&h) && remote_watch_add(w, http_client_fd(w->http));
		if (!opened)
			http_feed_end(w->http);
	}
	arena_free(&a);
	return opened;
}

/* The next attempt comes after a pause, unless the stream was useful. */
static void end_stream(struct watch *w, bool useful)
{
	w->open = false;
	w->pause_ms = useful                           ? 0
		      : !w->pause_ms                   ? PAUSE_MS
		      : w->pause_ms * 2 < PAUSE_MAX_MS ? w->pause_ms * 2
						       : PAUSE_MAX_MS;
	w->again_at = os_boot_ms() + w->pause_ms;
}

int remote_wake_fd(struct far_queue *r)
{
	struct watch *w = &r->watch;

	w->asked_at = os_boot_ms();
	if (w->open)
		return w->set;
	if (os_boot_ms() < w->again_at)
		return -1;
	if (!open_stream(r)) {
		end_stream(w, false);
		return -1;
	}
	w->open = w->fresh = true;
	w->heard = false;
	set_timer(w, 0);
	return w->set;
}

void remote_woken(struct far_queue *r)
{
	struct watch *w = &r->watch;
	bool fresh = w->fresh, silent;
	struct str line;
	uint64_t count;
	int n, lines = 0;

	if (!w->open)
		return;
	w->asked_at = os_boot_ms();
	silent = read(w->timer, &count, sizeof(count)) > 0 && !fresh;
	while ((n = http_feed_line(w->http, LINE_MAX_BYTES, os_boot_ms(), &line)) == 1) {
		w->heard = true;
		silent = false;
		if (++lines == LINES_MAX)
			break;
	}
	w->fresh = n == 1; /* more lines may be in memory, where no descriptor shows them */
	if (n == 1 || (n == -2 && !silent)) {
		set_timer(w, n == 1 ? 0 : SILENT_MS);
		return;
	}
	http_feed_end(w->http);
	end_stream(w, w->heard);
}

/* Closes an unused stream, which would keep a connection and one of its token's waits. */
void remote_watch_rest(struct far_queue *r)
{
	struct watch *w = &r->watch;

	if (!w->open || os_boot_ms() - w->asked_at < UNUSED_MS)
		return;
	http_feed_end(w->http);
	end_stream(w, true);
}

void remote_watch_sleep(struct far_queue *r, int64_t ms)
{
	struct pollfd p = { .fd = r->watch.open ? r->watch.set : -1, .events = POLLIN };

	if (poll(&p, 1, (int)(ms < 60000 ? ms : 60000)) > 0)
		remote_woken(r);
}

void remote_watch_end(struct watch *w)
{
	http_client_free(w->http);
	if (w->timer >= 0)
		close(w->timer);
	if (w->set >= 0)
		close(w->set);
}

/* Opens a queue behind a server. Nothing is sent before the first call. */
#include <stdlib.h>

#include "base/fs.h"
#include "base/module.h"
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

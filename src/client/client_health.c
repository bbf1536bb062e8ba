/*
 * The health of the locks: for `lock health`, and before changes if health.auto is on. In a degraded queue, stale locks are
 * cleaned up, and callers wait at most HURRIED_MS until it has recovered, because many waiting callers make it worse.
 */
#include <ctype.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/os.h"
#include "client/client.h"
#include "client/redact.h"

#define STALE_MS (300 * INT64_C(1000))
#define HURRIED_MS 3000

static bool is_stale(const struct client *c, const struct lock *l, int64_t now)
{
	return l->life == LIFE_DEAD ||
	       (l->expires_at && now - l->expires_at >= client_stale_after(c));
}

int64_t client_stale_after(const struct client *c)
{
	return settings_given(&c->conn.settings, "lock.stale_after")
		       ? settings_number(&c->conn.settings, "lock.stale_after")
		       : STALE_MS;
}

static enum result check_locks(struct client *c, enum op op, struct health_facts *facts,
			       struct answer *ans)
{
	struct request rq = { .op = op };

	client_call(c, &rq, ans);
	for (size_t i = 0; i < ans->n_tasks; i++)
		facts->stale += is_stale(c, &ans->tasks[i].lock, ans->now);
	return ans->code;
}

static int64_t load_percent(void)
{
	long processors = sysconf(_SC_NPROCESSORS_ONLN);
	double load[2];

	if (getloadavg(load, 2) < 2)
		return 0;
	return (int64_t)(load[1] * 100 / (double)(processors > 0 ? processors : 1));
}

enum result client_health(struct client *c, struct client_health *out, struct answer *ans)
{
	enum result code = client_open(c, STORE_READ, ans);

	*out = (struct client_health){ .facts.load_percent = load_percent() };
	if (code == SUCCESS)
		code = check_locks(c, OP_LOCKS, &out->facts, ans);
	if (code == SUCCESS)
		code = check_locks(c, OP_TYPED, &out->facts, ans);
	if (code != SUCCESS)
		return code;
	out->counted = queue_health(c->conn.queue, &out->health);
	out->facts.recent_failures = health_recent(&out->health, os_wall_ms());
	out->facts.done = out->health.all.done;
	out->facts.failed = out->health.all.failed;
	return SUCCESS;
}

bool client_health_auto(const struct client *c)
{
	return str_is(settings_text(&c->conn.settings, "health.auto"), "on");
}

int64_t client_hurried(const struct client *c, int64_t timeout_ms)
{
	return c->conn.degraded && timeout_ms > HURRIED_MS ? HURRIED_MS : timeout_ms;
}

/* Ignores errors, because the call that follows is made in any case. */
void client_watch(struct client *c)
{
	struct request rq = { .op = OP_LOCK_CLEANUP };
	struct client_health *h;
	struct answer ignored = { 0 };
	enum role role = c->self.role;

	if (c->conn.watching || !client_health_auto(c))
		return;
	c->conn.watching = true;
	c->self.role = ROLE_NONE; /* the caller did not ask for it */
	h = arena_new(c->arena, struct client_health);
	c->conn.degraded = client_health(c, h, &ignored) == SUCCESS &&
			   health_score(&h->facts) < HEALTH_DEGRADED;
	if (c->conn.degraded && h->facts.stale)
		client_call(c, &rq, &ignored);
	c->self.role = role;
	c->conn.watching = false;
}

/* --- redact ----------------------------------------------------------------------------------- */

/*
 * redact: removes this machine's folders from messages for callers elsewhere. A store's error names the path of a file that
 * it cannot use. The file's name helps a caller; the folders around it concern only the operator.
 */

struct folders {
	struct str v[8];
	size_t n;
};

static void redact_add(struct folders *f, struct str dir)
{
	if (dir.n > 1 && dir.p[0] == '/')
		f->v[f->n++] = dir;
}

/* The folder of a store that is a path, as in sqlite:/srv/shop/.pawl/queue.db?queue=x. */
static struct str folder_of_store(struct str uri)
{
	struct str path = uri;

	(void)str_cut(&path, ':');
	path = str_cut(&path, '?');
	path = str_cut(&path, '#');
	(void)str_cut_prefix(&path, STR("file://"));
	return path.n && path.p[0] == '/' ? fs_dirname(path) : STR("");
}

static struct folders folders_of(const struct client *c)
{
	const char *home = getenv("HOME"), *state = getenv("XDG_STATE_HOME"),
		   *cache = getenv("XDG_CACHE_HOME");
	struct folders f = { 0 };

	redact_add(&f, folder_of_store(c->conn.config.uri));
	redact_add(&f, folder_of_store(c->conn.trust.uri));
	if (c->conn.place.pawl_dir)
		redact_add(&f, fs_dirname(str_c(c->conn.place.pawl_dir)));
	if (c->conn.place.init_dir)
		redact_add(&f, fs_dirname(str_c(c->conn.place.init_dir)));
	redact_add(&f, str_c(home ? home : ""));
	redact_add(&f, str_c(state ? state : ""));
	redact_add(&f, str_c(cache ? cache : ""));
	return f;
}

/* The length of the longest folder with which the text begins, including the slash after it. */
static size_t folder_at(const struct folders *f, struct str text)
{
	size_t best = 0;

	for (size_t i = 0; i < f->n; i++) {
		struct str rest = text;

		if (str_cut_prefix(&rest, f->v[i]) && rest.n && rest.p[0] == '/' &&
		    f->v[i].n + 1 > best)
			best = f->v[i].n + 1;
	}
	return best;
}

static struct str redact_run(const struct folders *f, struct str text, struct arena *a)
{
	char *out = arena_alloc(a, text.n + 1);
	size_t n = 0;

	for (size_t i = 0; i < text.n;) {
		bool inside = i && (isalnum((unsigned char)text.p[i - 1]) ||
				    strchr("._-", text.p[i - 1]));
		size_t skip = inside ? 0 : folder_at(f, str_n(text.p + i, text.n - i));

		if (skip)
			i += skip;
		else
			out[n++] = text.p[i++];
	}
	out[n] = '\0';
	return str_n(out, n);
}

struct str redact_text(const struct client *c, enum role role, struct str text, struct arena *a)
{
	struct folders f;

	if (role == ROLE_NONE || role == ROLE_ADMIN || !text.n || !memchr(text.p, '/', text.n))
		return text;
	f = folders_of(c);
	return redact_run(&f, text, a);
}

struct str redact_store(const struct client *c, struct arena *a)
{
	return redact_text(c, c->self.role, uri_shown(a, c->conn.config.uri), a);
}

void redact_answer(const struct client *c, enum role role, struct answer *ans, struct arena *a)
{
	if (ans->code == SUCCESS)
		return;
	ans->message = redact_text(c, role, ans->message, a);
	ans->hint = redact_text(c, role, ans->hint, a);
}

/*
 * Finds the caller's agent, run, place, store and queue, and opens the queue. Unless the user trusts it, a config that came
 * with a clone must not choose the agent's name, a store elsewhere, or a queue in the user's own store. Every spelling of a
 * store's URI leads to one label, so the keyring finds the same tokens.
 */
#include "client/client.h"

#include <stdlib.h>
#include <sys/types.h>

#include "base/fs.h"
#include "base/os.h"
#include "base/text.h"
#include "base/when.h"
#include "client/caller.h"
#include "client/bearer.h"
#include "client/queue_lock.h"
#include "core/lease.h"

static bool from_file(struct str origin, const char *file)
{
	return file && str_starts(origin, str_c(file));
}

/* --- agent ---------------------------------------------------------------------------------- */

static enum result check_name(const char *what, struct str s, struct answer *ans, struct arena *a)
{
	if (caller_good_name(s))
		return SUCCESS;
	return answer_fail(
		ans, USAGE,
		arena_printf(a,
			     "'%s' cannot be the name of %s: a name is one line of 1 to %d "
			     "bytes",
			     arena_cstr(a, text_cut(a, text_line(a, s), 60)), what, NAME_MAX_BYTES),
		STR(""));
}

/* The setting that names the agent. A clone's config can set it, too, but counts only if it is trusted. */
static const struct settings_value *agent_setting(const struct client *c)
{
	const struct settings_value *set = settings_get(&c->conn.settings, "agent");
	struct trust t = c->conn.trust;

	if (!from_file(set->origin, c->conn.settings.queue_file))
		return set;
	if (t.state == TRUST_SAID)
		client_check_trust(c, &t);
	return t.state == TRUST_GIVEN ? set : &c->conn.settings.own_agent;
}

static void find_agent(struct client *c)
{
	const struct settings_value *set = agent_setting(c);
	struct caller id;

	if (c->said.agent.n) {
		c->self.agent = c->said.agent;
		c->self.agent_why = STR("--agent names it");
	} else if (set->value.n) {
		c->self.agent = set->value;
		c->self.agent_why = arena_printf(c->arena, "%.*s names it", STRF(set->origin));
	} else {
		id = caller_find(c->said.program, c->self.host, c->conn.place.linked, c->arena);
		c->self.agent = id.name;
		c->self.agent_why = id.why;
	}
}

static struct caller_run find_run(const struct client *c)
{
	const char *run = getenv("PAWL_RUN");

	if (c->said.run.n)
		return (struct caller_run){ .name = c->said.run, .why = STR("--run names it") };
	if (run && *run)
		return (struct caller_run){ .name = str_c(run), .why = STR("PAWL_RUN names it") };
	return caller_run_find(c->said.session, c->arena);
}

struct caller_run client_run(const struct client *c)
{
	return (struct caller_run){ c->self.run, c->self.run_why, c->self.run_made };
}

void client_set_run(struct client *c, const struct caller_run *run)
{
	c->self.run = c->keyring.run = run->name;
	c->self.run_why = run->why;
	c->self.run_made = run->made;
}

void client_session(struct client *c, struct str session)
{
	struct str before = c->said.session;
	struct caller_run run;

	c->said.session = session;
	run = find_run(c);
	c->said.session = before;
	client_set_run(c, &run);
}

static enum result find_identity(struct client *c, struct answer *ans)
{
	enum result r;

	c->self.host = os_hostname(c->arena);
	if (!c->self.host.n)
		c->self.host = STR("localhost");
	find_agent(c);
	client_session(c, c->said.session);
	r = check_name("an agent", c->self.agent, ans, c->arena);
	if (r == SUCCESS && c->self.run.n)
		r = check_name("a run", c->self.run, ans, c->arena);
	return r;
}

/* --- store --------------------------------------------------------------------------------- */

/* Removes the wrappers: a wrapped store is the same store. */
static struct str without_wrappers(struct str uri)
{
	while (str_cut_prefix(&uri, STR("fault+")))
		;
	return uri;
}

static bool client_relative(struct str text)
{
	struct uri u;

	return uri_parse(without_wrappers(text), &u) == 0 && uri_on_disk(&u) && u.path.n &&
	       u.path.p[0] != '/';
}

/* Resolves links in the folder but not in the file name, because a clone may contain a link in place of the database. The
 * store must see that link and refuse it. */
static char *real_beside(struct arena *a, const char *path)
{
	const char *name = strrchr(path, '/') + 1;
	char *dir;

	if (!*name || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return fs_real(a, path);
	dir = fs_real(a, arena_cstr(a, fs_dirname(str_c(path))));
	return dir ? fs_join(a, str_c(dir), str_c(name)) : NULL;
}

/* Makes the path of a store on disk absolute and real, so that every spelling names the same queue. */
static struct str resolve_as(struct str text, const char *base, bool ours, struct arena *a)
{
	struct str inner = without_wrappers(text), head, tail;
	char *path, *real;
	struct uri u;

	if (uri_parse(inner, &u) || !uri_on_disk(&u) || !u.path.n)
		return text;
	path = u.path.p[0] == '/' ? arena_cstr(a, u.path) : fs_join(a, str_c(base), u.path);
	/* NULL: its folder is missing; the store reports that */
	real = ours || !str_is(u.scheme, "sqlite") ? fs_real(a, path) : real_beside(a, path);
	head = str_n(text.p, (size_t)(u.path.p - text.p));
	tail = str_n(u.path.p + u.path.n, (size_t)(text.p + text.n - (u.path.p + u.path.n)));
	return arena_printf(a, "%.*s%s%.*s", STRF(head), real ? real : path, STRF(tail));
}

/* Resolves the paths of git repositories, too. A remote's name stays as it is. */
static struct str client_resolve(const struct client *c, struct str text, const char *base,
				 bool ours)
{
	return trust_git_uri(resolve_as(text, base, ours, c->arena), base, c->conn.config.opt.dir,
			     c->arena);
}

static enum result configured_uri(struct client *c, struct answer *ans)
{
	const struct settings_value *v = settings_get(&c->conn.settings, "store");
	const char *base = c->conn.config.opt.dir;

	if (from_file(v->origin, c->conn.settings.queue_file))
		base = arena_cstr(c->arena, fs_dirname(str_c(c->conn.place.pawl_dir)));
	else if (from_file(v->origin, c->conn.settings.user_file) && client_relative(v->value))
		/* A relative path would name a different queue in every folder. */
		return answer_fail(ans, MISCONFIGURED,
				   arena_printf(c->arena,
						"%.*s: the path in store = %.*s must begin with /",
						STRF(v->origin), STRF(v->value)),
				   STR(""));
	c->conn.config.uri = client_resolve(c, v->value, base,
					    !from_file(v->origin, c->conn.settings.queue_file));
	return SUCCESS;
}

static struct str default_uri(const char *pawl_dir, struct arena *a)
{
	if (!pawl_dir)
		return STR("");
	if (fs_exists(fs_join(a, str_c(pawl_dir), STR("state"))) &&
	    !fs_exists(fs_join(a, str_c(pawl_dir), STR("queue.db"))))
		return arena_printf(a, "files:%s", arena_cstr(a, fs_dirname(str_c(pawl_dir))));
	return resolve_as(arena_printf(a, "sqlite:%s/queue.db", pawl_dir), "/", false, a);
}

static enum result find_store(struct client *c, struct answer *ans)
{
	if (c->said.store.n)
		c->conn.config.uri = client_resolve(c, c->said.store, c->conn.config.opt.dir, true);
	else if (settings_get(&c->conn.settings, "store")->value.n)
		return configured_uri(c, ans);
	else
		c->conn.config.uri = default_uri(c->conn.place.pawl_dir, c->arena);
	return SUCCESS;
}

static struct str config_uri(const struct client *c)
{
	struct str store = c->conn.settings.queue_store.value;

	if (!store.n || !c->conn.place.pawl_dir)
		return default_uri(c->conn.place.pawl_dir, c->arena);
	return client_resolve(
		c, store, arena_cstr(c->arena, fs_dirname(str_c(c->conn.place.pawl_dir))), true);
}

static void client_decide(const struct client *c, struct str uri, struct trust *t)
{
	trust_decide(t, &c->conn.place, &c->conn.settings, uri, c->conn.config.opt.dir, c->arena);
	t->agent = c->self.for_agent;
}

void client_check_trust(const struct client *c, struct trust *t)
{
	client_decide(c, config_uri(c), t);
}

/* Did the user name the store, rather than the queue's config? */
static bool store_said(const struct client *c)
{
	const struct settings_value *v = settings_get(&c->conn.settings, "store");

	return c->said.store.n ||
	       (v->value.n && !from_file(v->origin, c->conn.settings.queue_file));
}

static void decide_store(struct client *c)
{
	if (!store_said(c))
		client_decide(c, c->conn.config.uri, &c->conn.trust);
	else
		c->conn.trust = (struct trust){ .state = TRUST_SAID };
	c->conn.trust.uri = c->conn.config.uri;
}

/* The setting that names the queue. A clone's config must not choose a queue in the user's own store unless it is
 * trusted. */
static const struct settings_value *queue_setting(const struct client *c)
{
	const struct settings_value *set = settings_get(&c->conn.settings, "queue");
	struct trust t;

	if (!from_file(set->origin, c->conn.settings.queue_file))
		return set;
	if (c->conn.trust.state != TRUST_SAID)
		return c->conn.trust.state == TRUST_MISSING ? &c->conn.settings.own_queue : set;
	client_check_trust(c, &t);
	if (t.state == TRUST_GIVEN ||
	    (t.state != TRUST_MISSING && str_eq(t.uri, c->conn.config.uri)))
		return set;
	return &c->conn.settings.own_queue;
}

static enum result find_queue(struct client *c, struct answer *ans)
{
	const struct settings_value *set = queue_setting(c);

	c->conn.config.opt.queue = c->said.queue;
	/* Do not pass the default: it would override ?queue=NAME in the URI. */
	if (!c->conn.config.opt.queue.n && !str_is(set->origin, "default"))
		c->conn.config.opt.queue = set->value;
	return c->conn.config.opt.queue.n
		       ? check_name("a queue", c->conn.config.opt.queue, ans, c->arena)
		       : SUCCESS;
}

bool client_in_files(const struct client *c)
{
	struct uri u;

	return uri_parse(without_wrappers(c->conn.config.uri), &u) == 0 &&
	       str_is(u.scheme, "files");
}

static bool is_default(const struct client *c, const char *name)
{
	return str_is(settings_get(&c->conn.settings, name)->origin, "default");
}

/* In a store that keeps only locks, other programs ignore a lock's expiry. So the default lease is the longest one. */
static void lone_leases(struct client *c, const struct policy *p, struct queue *q)
{
	queue_leases(q, is_default(c, "lease") ? p->lease_max : p->lease,
		     is_default(c, "lock.ttl") ? p->lease_max : p->lock_ttl);
}

/* The .locks protocol prescribes the default lease in a files: queue. */
static void store_defaults(struct client *c)
{
	int64_t ms;

	if (client_in_files(c) && duration_parse(STR(LEASE_FILES), &ms) &&
	    settings_number(&c->conn.settings, "lease.max") >= ms)
		settings_default(&c->conn.settings, "lease", STR(LEASE_FILES));
}

/* Adds the path without the password of "user:password@host". */
static void add_path(struct buf *b, struct str path)
{
	size_t end = 2, at = 0, colon = 0;

	if (str_starts(path, STR("//"))) {
		while (end < path.n && path.p[end] != '/')
			end++;
		for (size_t i = 2; i < end; i++)
			if (path.p[i] == '@')
				at = i;
		for (size_t i = at; i > 2; i--)
			if (path.p[i - 1] == ':')
				colon = i - 1;
	}
	if (!colon) {
		buf_adds(b, path);
		return;
	}
	buf_add(b, path.p, colon);
	buf_add(b, path.p + at, path.n - at);
}

struct str client_queue_name(const struct client *c)
{
	struct str name = c->conn.config.opt.queue;
	struct uri u;

	if (!name.n && !uri_parse(without_wrappers(c->conn.config.uri), &u))
		name = uri_param(&u, "queue");
	return name.n ? name : STR("default");
}

/* The name of this queue in the keyring: equal for all spellings of its URI, and without a password. */
static struct str queue_label(const struct client *c)
{
	struct buf b = BUF_MAX(64 * 1024);
	struct str params, out;
	struct uri u;

	if (uri_parse(without_wrappers(c->conn.config.uri), &u))
		return c->conn.config.uri;
	buf_addf(&b, "%.*s:", STRF(u.scheme));
	add_path(&b, u.path);
	for (params = u.params; params.n;) {
		struct str one = str_cut(&params, '&');

		if (!str_starts(one, STR("queue=")) && !str_starts(one, STR("password=")) &&
		    !str_starts(one, STR("sslpassword=")) && !str_starts(one, STR("fault=")))
			buf_addf(&b, "?%.*s", STRF(one));
	}
	if (u.fragment.n)
		buf_addf(&b, "#%.*s", STRF(u.fragment));
	buf_addf(&b, " queue %s", arena_cstr(c->arena, client_queue_name(c)));
	out = arena_str(c->arena, buf_str(&b));
	buf_free(&b);
	return out;
}

/* Without a home folder there is no keyring. Then a claim fails, unless it has an explicit token. */
static void open_keyring(struct client *c)
{
	(void)keyring_open(&c->keyring, queue_label(c), c->self.agent, c->self.run,
			   str_c(c->conn.place.worktree), c->arena);
	c->conn.config.state_dir = c->keyring.dir;
	c->keyring.home = str_c(c->conn.place.pawl_dir);
}

static enum result find_place(struct client *c, struct answer *ans)
{
	char *dir;

	c->conn.config.opt.dir = ".";
	if (!c->said.dir.n)
		return place_find(&c->conn.place, ans, c->arena);
	dir = fs_real(c->arena, arena_cstr(c->arena, c->said.dir));
	if (!dir || !fs_is_dir(dir))
		return answer_fail(
			ans, USAGE,
			arena_printf(c->arena, "there is no folder '%s'",
				     arena_cstr(c->arena, text_line(c->arena, c->said.dir))),
			STR(""));
	c->conn.config.opt.dir = dir;
	return place_find_from(&c->conn.place, dir, ans, c->arena);
}

enum result client_init(struct client *c, const struct client_options *said, struct answer *ans,
			struct arena *a)
{
	struct str why;
	enum result r;

	*c = (struct client){
		.arena = a,
		.self.for_agent = said->face == CLIENT_PROGRAM || caller_is_agent(&why, a),
		.said = *said,
		.conn.config = { .bearer = login_bearer, .ca_file = login_ca_file() }
	};
	c->conn.settings.for_agent = c->self.for_agent;
	*ans = (struct answer){ 0 };
	r = find_place(c, ans);
	if (r == SUCCESS)
		r = settings_load(&c->conn.settings, c->conn.place.pawl_dir, ans, a);
	if (r == SUCCESS)
		r = client_find_timeout(c, ans);
	if (r == SUCCESS)
		r = find_store(c, ans);
	if (r == SUCCESS) {
		decide_store(c);
		r = find_queue(c, ans);
	}
	if (r == SUCCESS)
		r = find_identity(c, ans);
	if (r != SUCCESS)
		return r;
	store_defaults(c);
	open_keyring(c);
	/* without a URI, no caller can open the store past client_open(), which checks the trust */
	if (c->conn.trust.state == TRUST_MISSING)
		c->conn.config.uri = STR("");
	return SUCCESS;
}

static enum result no_queue(struct client *c, struct answer *ans)
{
	return answer_fail(
		ans, MISCONFIGURED,
		arena_printf(c->arena, "there is no queue here (no .pawl folder in %s or above it)",
			     c->conn.place.init_dir),
		STR("`pawl init` creates one here; or name a store with --store"));
}

/* Makes the folder of the default store, for `pawl init`. */
static enum result make_place(struct client *c, struct answer *ans)
{
	char *dir = fs_join(c->arena, str_c(c->conn.place.init_dir), STR(".pawl"));
	int r = fs_make_dirs(dir, 0777);

	if (r) {
		ans->applied = 'n';
		return answer_fail(
			ans, API_ERROR,
			arena_printf(c->arena, "cannot create %s: %s", dir, strerror(-r)), STR(""));
	}
	c->conn.place.pawl_dir = dir;
	c->conn.config.uri = default_uri(dir, c->arena);
	open_keyring(c);
	return SUCCESS;
}

static enum result no_status_to_write(struct answer *ans)
{
	return answer_fail(ans, USAGE,
			   STR("--write-status works only with a branch of lock files, whose tasks "
			       "are Markdown files in the worktree"),
			   STR("leave it out: this queue keeps the status itself"));
}

/* Adds the settings to the queue's configuration. */
static struct queue_config client_configure(struct client *c)
{
	const struct settings *s = &c->conn.settings;
	struct queue_config config = c->conn.config;

	config.opt.timeout_ms = client_timeout(c, 0);
	config.opt.backoff =
		(struct backoff){ .base_ms = settings_number(s, "retry.base_delay"),
				  .max_ms = settings_number(s, "retry.max_delay"),
				  .attempts = settings_number(s, "retry.max_attempts") };
	config.opt.counting = str_is(settings_text(s, "health.monitoring"), "on");
	config.opt.relaxed = str_is(settings_text(s, "durability"), "normal");
	config.opt.who = arena_printf(c->arena, "%.*s on %.*s", STRF(c->self.agent),
				      STRF(c->self.host));
	config.for_agent = c->self.for_agent;
	config.alone = str_is(settings_text(s, "combine"), "off");
	config.pass = client_pass;
	config.pass_ctx = c;
	config.poll_pause = (struct backoff){ .base_ms = settings_number(s, "poll.base_delay"),
					      .max_ms = settings_number(s, "poll.max_delay") };
	settings_policy(s, &config.policy);
	config.policy.claim_creates = client_in_files(c);
	return config;
}

/* Does the folder come from a clone? Then it has the settings, which git keeps, but no queue, which git does not keep. */
static bool has_only_settings(const struct client *c)
{
	const char *dir = c->conn.place.pawl_dir;
	char *git;

	return dir && !c->said.store.n && is_default(c, "store") && is_default(c, "queue") &&
	       !c->conn.config.opt.queue.n && !client_in_files(c) &&
	       fs_exists(fs_join(c->arena, str_c(dir), STR("config"))) &&
	       !fs_exists(fs_join(c->arena, str_c(dir), STR("queue.db"))) &&
	       place_git_dir(c->conn.place.root, &git, c->arena) && git;
}

static enum result not_committed(struct client *c, struct answer *ans)
{
	return answer_fail(
		ans, MISCONFIGURED,
		arena_printf(
			c->arena,
			"%s has the settings of a queue and no queue. Git does not keep a "
			"local queue, so it is not in a new clone, and `git clean -x` deletes it",
			c->conn.place.pawl_dir),
		STR("`pawl init` makes an empty queue here. To share one between clones, run in the "
		    "clone that has the tasks: pawl migrate sqlite:.pawl/queue.db git:origin && pawl "
		    "config set store git:origin, and commit .pawl/config"));
}

static enum result open_queue(struct client *c, enum store_mode mode, struct answer *ans)
{
	struct queue_config config = client_configure(c);
	struct queue *q;
	enum result r;

	r = queue_open(&q, &config, mode, ans, c->arena);
	if (r != SUCCESS) {
		if (r == API_ERROR && !ans->applied)
			ans->applied = 'n';
		return r == MISCONFIGURED && has_only_settings(c) ? not_committed(c, ans) : r;
	}
	if (c->conn.config.opt.write_status && !queue_locks_only(q)) {
		queue_close(q);
		return no_status_to_write(ans);
	}
	if (queue_locks_only(q))
		lone_leases(c, &config.policy, q);
	client_close(c);
	c->conn.queue = q;
	c->conn.mode = mode;
	return SUCCESS;
}

enum result client_open(struct client *c, enum store_mode mode, struct answer *ans)
{
	enum result r;

	if (c->conn.queue && c->conn.mode >= mode)
		return SUCCESS;
	if (c->conn.queue && c->conn.shared)
		return answer_fail(ans, API_ERROR,
				   STR("this server opened the queue for reading only"),
				   STR("start pawl serve without --read-only"));
	r = trust_check(&c->conn.trust, ans, c->arena);
	if (r == SUCCESS && !c->conn.config.uri.n)
		r = mode == STORE_CREATE && !c->conn.place.pawl_dir ? make_place(c, ans)
								    : no_queue(c, ans);
	return r == SUCCESS ? open_queue(c, mode, ans) : r;
}

enum result client_make(struct client *c, struct answer *ans)
{
	return client_open(c, c->conn.config.uri.n ? STORE_CREATE : STORE_WRITE, ans);
}

void client_close(struct client *c)
{
	if (c->conn.queue)
		queue_close(c->conn.queue);
	c->conn.queue = NULL;
}

enum result client_call_in(struct client *c, const struct request *rq, struct answer *ans,
			   struct arena *a)
{
	struct arena *kept = c->arena, *ring = c->keyring.arena;

	c->arena = a;
	client_call(c, rq, ans);
	c->arena = kept;
	c->keyring.arena = ring;
	return ans->code;
}

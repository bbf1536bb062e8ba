#include "client/client.h"

#include <errno.h>
#include <pwd.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/os.h"
#include "base/secret.h"
#include "base/text.h"
#include "base/when.h"

#define TIMEOUT_MAX (INT64_C(365) * 24 * 3600 * 1000)

/* --- who ----------------------------------------------------------------------------------- */

static bool good_name(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if ((unsigned char)s.p[i] < 0x20 || s.p[i] == 0x7f)
			return false;
	return s.n && s.n <= NAME_MAX_BYTES && text_valid(s);
}

static enum result check_name(const char *what, struct str s, struct answer *ans, struct arena *a)
{
	if (good_name(s))
		return SUCCESS;
	return answer_fail(
		ans, USAGE,
		arena_printf(a,
			     "'%.*s' cannot be the name of %s: it has 1 to %d bytes of text on "
			     "one line",
			     STRF(text_cut(a, text_line(a, s), 60)), what, NAME_MAX_BYTES),
		STR(""));
}

/* The environment first: to ask for the user's name can mean to ask a server. */
static struct str user_name(struct arena *a)
{
	const char *name = getenv("LOGNAME");
	const struct passwd *pw;

	if (!name || !*name)
		name = getenv("USER");
	if (name && *name)
		return str_c(name);
	pw = getpwuid(geteuid());
	return pw ? arena_str(a, str_c(pw->pw_name))
		  : arena_printf(a, "uid%lu", (unsigned long)geteuid());
}

static enum result find_identity(struct client *c, struct answer *ans)
{
	const char *run = getenv("PAWL_RUN");
	enum result r;

	c->host = os_hostname(c->arena);
	if (!c->host.n)
		c->host = STR("localhost");
	c->agent = c->said.agent.n ? c->said.agent : settings_text(&c->settings, "agent");
	if (!c->agent.n)
		c->agent = arena_printf(c->arena, "%.*s@%.*s", STRF(user_name(c->arena)),
					STRF(c->host));
	c->run = c->said.run.n ? c->said.run : str_c(run);
	c->queue_name = c->said.queue.n ? c->said.queue : STR("");
	r = check_name("an agent", c->agent, ans, c->arena);
	if (r == SUCCESS && c->run.n)
		r = check_name("a run", c->run, ans, c->arena);
	return r;
}

static enum result find_timeout(struct client *c, struct answer *ans)
{
	c->timeout_ms = settings_number(&c->settings, "timeout");
	if (!c->said.timeout.n)
		return SUCCESS;
	if (duration_parse(c->said.timeout, &c->timeout_ms) && c->timeout_ms >= 0 &&
	    c->timeout_ms <= TIMEOUT_MAX)
		return SUCCESS;
	return answer_fail(
		ans, USAGE,
		arena_printf(c->arena,
			     "'%.*s' is no timeout: it is a time such as 500ms, 15s or 2m",
			     STRF(text_line(c->arena, c->said.timeout))),
		STR(""));
}

/* --- where --------------------------------------------------------------------------------- */

static bool cut_prefix(struct str *s, struct str prefix)
{
	if (!str_starts(*s, prefix))
		return false;
	*s = str_n(s->p + prefix.n, s->n - prefix.n);
	return true;
}

/* Without the wrappers around the store: they do not make it another one. */
static struct str without_wrappers(struct str uri)
{
	while (cut_prefix(&uri, STR("trace+")) || cut_prefix(&uri, STR("fault+")))
		;
	return uri;
}

static bool relative(struct str text)
{
	struct uri u;

	return uri_parse(without_wrappers(text), &u) == 0 && uri_on_disk(&u) && u.path.n &&
	       u.path.p[0] != '/';
}

/* A path in it made absolute and real, so that every way to say it is the same queue. */
static struct str resolve(struct str text, const char *base, struct arena *a)
{
	struct str inner = without_wrappers(text), head, tail;
	char *path, *real;
	struct uri u;

	if (uri_parse(inner, &u) || !uri_on_disk(&u) || !u.path.n)
		return text;
	path = u.path.p[0] == '/' ? arena_cstr(a, u.path) : fs_join(a, str_c(base), u.path);
	real = fs_real(a, path); /* NULL: its folder is missing; the store will say so */
	head = str_n(text.p, (size_t)(u.path.p - text.p));
	tail = str_n(u.path.p + u.path.n, (size_t)(text.p + text.n - (u.path.p + u.path.n)));
	return arena_printf(a, "%.*s%s%.*s", STRF(head), real ? real : path, STRF(tail));
}

static const struct settings_value *setting(const struct client *c, const char *name)
{
	return &c->settings.values[settings_find(str_c(name)) - settings_list];
}

static bool from_file(struct str origin, const char *file)
{
	return file && str_starts(origin, str_c(file));
}

static enum result configured_uri(struct client *c, struct answer *ans)
{
	const struct settings_value *v = setting(c, "store");
	const char *base = c->dir;

	if (from_file(v->origin, c->settings.queue_file))
		base = arena_cstr(c->arena, fs_dirname(str_c(c->place.pawl_dir)));
	else if (from_file(v->origin, c->settings.user_file) && relative(v->value))
		/* It would be another queue in every folder. */
		return answer_fail(ans, MISCONFIGURED,
				   arena_printf(c->arena,
						"%.*s: the path in store = %.*s must begin with /",
						STRF(v->origin), STRF(v->value)),
				   STR(""));
	c->uri = resolve(v->value, base, c->arena);
	return SUCCESS;
}

static struct str default_uri(const char *pawl_dir, struct arena *a)
{
	if (!pawl_dir)
		return STR("");
	return resolve(arena_printf(a, "sqlite:%s/queue.db", pawl_dir), "/", a);
}

static enum result find_store(struct client *c, struct answer *ans)
{
	const struct settings_value *queue = setting(c, "queue");

	/* The default stays unsaid, so that ?queue=NAME in the URI counts. */
	if (!c->queue_name.n && !str_is(queue->origin, "default"))
		c->queue_name = queue->value;
	if (c->queue_name.n && check_name("a queue", c->queue_name, ans, c->arena) != SUCCESS)
		return ans->code;
	if (c->said.store.n)
		c->uri = resolve(c->said.store, c->dir, c->arena);
	else if (setting(c, "store")->value.n)
		return configured_uri(c, ans);
	else
		c->uri = default_uri(c->place.pawl_dir, c->arena);
	return SUCCESS;
}

/* "user:password@host" without the password */
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

/* What the keyring calls this queue: the same for every way to name it, and without a password. */
static struct str queue_label(const struct client *c)
{
	struct buf b = BUF_MAX(64 * 1024);
	struct str params, name = c->queue_name, out;
	struct uri u;

	if (uri_parse(without_wrappers(c->uri), &u))
		return c->uri;
	buf_addf(&b, "%.*s:", STRF(u.scheme));
	add_path(&b, u.path);
	for (params = u.params; params.n;) {
		struct str one = str_cut(&params, '&');

		if (!str_starts(one, STR("queue=")) && !str_starts(one, STR("password=")) &&
		    !str_starts(one, STR("fault=")))
			buf_addf(&b, "?%.*s", STRF(one));
	}
	if (u.fragment.n)
		buf_addf(&b, "#%.*s", STRF(u.fragment));
	if (!name.n)
		name = uri_param(&u, "queue");
	buf_addf(&b, " queue %.*s", STRF(name.n ? name : STR("default")));
	out = arena_str(c->arena, buf_str(&b));
	buf_free(&b);
	return out;
}

/* Without a home there is no keyring: then a claim says so, and only explicit tokens work. */
static void open_keyring(struct client *c)
{
	(void)keyring_open(&c->keyring, NULL, queue_label(c), c->agent, c->run,
			   str_c(c->place.work_tree), c->arena);
}

static enum result find_place(struct client *c, struct answer *ans)
{
	char *dir;

	c->dir = ".";
	if (!c->said.dir.n)
		return place_find(&c->place, ans, c->arena);
	dir = fs_real(c->arena, arena_cstr(c->arena, c->said.dir));
	if (!dir || !fs_is_dir(dir))
		return answer_fail(ans, USAGE,
				   arena_printf(c->arena, "there is no folder '%.*s'",
						STRF(text_line(c->arena, c->said.dir))),
				   STR(""));
	c->dir = dir;
	return place_find_from(&c->place, dir, ans, c->arena);
}

enum result client_init(struct client *c, const struct client_options *said, struct answer *ans,
			struct arena *a)
{
	enum result r;

	*c = (struct client){ .arena = a, .said = *said };
	*ans = (struct answer){ 0 };
	r = find_place(c, ans);
	if (r == SUCCESS)
		r = settings_load(&c->settings, c->place.pawl_dir, ans, a);
	if (r == SUCCESS)
		r = find_timeout(c, ans);
	if (r == SUCCESS)
		r = find_identity(c, ans);
	if (r == SUCCESS)
		r = find_store(c, ans);
	if (r == SUCCESS)
		open_keyring(c);
	return r;
}

static enum result no_queue(struct client *c, struct answer *ans)
{
	return answer_fail(
		ans, MISCONFIGURED,
		arena_printf(c->arena, "there is no queue here (no .pawl folder in %s or above it)",
			     c->place.init_dir),
		STR("`pawl init` makes one here; or name a store with --store"));
}

/* The folder that the default store lives in, for `pawl init`. */
static enum result make_place(struct client *c, struct answer *ans)
{
	char *dir = fs_join(c->arena, str_c(c->place.init_dir), STR(".pawl"));
	int r = fs_make_dirs(dir, 0777);

	if (r) {
		ans->applied = 'n';
		return answer_fail(ans, API_ERROR,
				   arena_printf(c->arena, "cannot make %s: %s", dir, strerror(-r)),
				   STR(""));
	}
	c->place.pawl_dir = dir;
	c->uri = default_uri(dir, c->arena);
	open_keyring(c);
	return SUCCESS;
}

static enum result open_queue(struct client *c, enum store_mode mode, struct answer *ans)
{
	struct queue_config config = {
		.uri = c->uri,
		.name = c->queue_name,
		.timeout_ms = c->timeout_ms,
		.relaxed = str_is(settings_text(&c->settings, "durability"), "normal"),
		.who = arena_printf(c->arena, "%.*s, pid %ld on %.*s", STRF(c->agent),
				    (long)getpid(), STRF(c->host)),
	};
	struct queue *q;
	enum result r;

	settings_policy(&c->settings, &config.policy);
	r = queue_open(&q, &config, mode, ans, c->arena);
	if (r != SUCCESS) {
		if (r == API_ERROR && !ans->applied)
			ans->applied = 'n';
		return r;
	}
	client_close(c);
	c->queue = q;
	c->mode = mode;
	return SUCCESS;
}

enum result client_open(struct client *c, enum store_mode mode, struct answer *ans)
{
	enum result r = SUCCESS;

	if (c->queue && c->mode >= mode)
		return SUCCESS;
	if (!c->uri.n)
		r = mode == STORE_CREATE && !c->place.pawl_dir ? make_place(c, ans)
							       : no_queue(c, ans);
	return r == SUCCESS ? open_queue(c, mode, ans) : r;
}

void client_close(struct client *c)
{
	if (c->queue)
		queue_close(c->queue);
	c->queue = NULL;
}

/* --- tokens -------------------------------------------------------------------------------- */

/* What one call has to do with the keyring. */
struct keys {
	bool takes;     /* the call may acquire a lock */
	bool in_flight; /* under the token of `pending` */
	bool saved;     /* the proof is a saved token */
	bool contested;
	struct pending pending;
};

#define TAKE_BACK(r, name) ((r)->has &= ~(UINT64_C(1) << ARG_##name), (r)->name = (struct str){ 0 })

static bool takes(const struct request *rq)
{
	if (rq->op == OP_DONE)
		return rq->claim_next;
	if (rq->op == OP_STATUS)
		return rq->status == IN_PROGRESS;
	return op_flags(rq->op) & OP_TAKES;
}

/* Operations that get nowhere without the lock, whatever the task's status. */
static bool needs_lock(const struct request *rq)
{
	switch (rq->op) {
	case OP_HEARTBEAT:
	case OP_RELEASE:
	case OP_BLOCK:
	case OP_ESCALATE:
	case OP_REVIEW:
	case OP_DONE:
	case OP_FAIL:
	case OP_LOCK_RELEASE:
		return true;
	default:
		return false;
	}
}

static enum result check_token(const char *what, struct str token, struct answer *ans,
			       struct arena *a)
{
	if (token_valid(token))
		return SUCCESS;
	return answer_fail(ans, USAGE, arena_printf(a, "%s is no token: a token is a UUID", what),
			   STR("a claim prints its token; `uuidgen` makes one"));
}

/* Tokens that the caller named: --token, --next-token, or PAWL_TOKEN for the task in PAWL_TASK. */
static enum result named_tokens(struct client *c, struct request *rq, struct answer *ans)
{
	const char *task = getenv("PAWL_TASK"), *token = getenv("PAWL_TOKEN");
	bool held = op_flags(rq->op) & (OP_HELD | OP_TAKES);
	enum result r = SUCCESS;

	if (HAS(rq, token)) {
		r = check_token("what --token says", rq->token, ans, c->arena);
	} else if (held && task && token && *token && rq->id.n &&
		   str_eq_nocase(rq->id, str_c(task))) {
		r = check_token("what PAWL_TOKEN says", str_c(token), ans, c->arena);
		GIVE(rq, token, str_c(token));
	}
	if (r == SUCCESS && HAS(rq, new_token))
		r = check_token("what --next-token says", rq->new_token, ans, c->arena);
	if (r == SUCCESS && HAS(rq, token))
		GIVE(rq, explicit, 1);
	return r;
}

static struct str contested_hint(void)
{
	return STR(
		"pass the --token that your claim printed; with a --run of its own, each session keeps "
		"its tokens apart");
}

/* The saved token, where the caller named none. */
static enum result find_proof(struct client *c, struct request *rq, struct keys *k,
			      struct answer *ans)
{
	struct str token;
	int64_t fence;

	switch (keyring_find(&c->keyring, rq->id, &token, &fence)) {
	case KEY_SAVED:
		GIVE(rq, token, token);
		k->saved = true;
		break;
	case KEY_CONTESTED:
		k->contested = true;
		if (needs_lock(rq))
			return answer_fail(
				ans, LOST_LOCK,
				arena_printf(c->arena,
					     "two claims of %.*s were made as %.*s, so it "
					     "is not clear whose this call is",
					     STRF(rq->id), STRF(c->agent)),
				contested_hint());
		break;
	case KEY_NONE:
		break;
	}
	return SUCCESS;
}

static enum result no_keyring(struct client *c, int r, struct answer *ans)
{
	const char *why = strerror(-r), *dir = c->keyring.dir;

	if (r == -ELOOP)
		why = "it is a link";
	else if (r == -EPERM)
		why = "it belongs to another user";
	ans->applied = 'n';
	return answer_fail(
		ans, API_ERROR,
		arena_printf(c->arena, "cannot keep the token in %s: %s",
			     dir ? dir : "a home folder", dir ? why : "there is none"),
		STR("set XDG_STATE_HOME to a folder of yours, or pass a --token of your own making"));
}

/* What the acquisition shall be known by: kept before it is sent, so that a repeat is one. */
static enum result find_new_token(struct client *c, struct request *rq, struct keys *k,
				  struct answer *ans)
{
	bool any = rq->op == OP_DONE || rq->op == OP_TAKE;
	int r;

	if (HAS(rq, new_token))
		return SUCCESS;
	r = keyring_begin(&c->keyring, any ? STR("") : rq->id, &k->pending);
	if (r)
		return no_keyring(c, r, ans);
	k->in_flight = true;
	GIVE(rq, new_token, k->pending.token);
	return SUCCESS;
}

static enum result complete(struct client *c, struct request *rq, struct keys *k,
			    struct answer *ans)
{
	bool resume = rq->op == OP_CLAIM && HAS(rq, fence);
	enum result r = named_tokens(c, rq, ans);

	k->takes = takes(rq);
	if (r != SUCCESS)
		return r;
	if (k->takes && rq->op != OP_DONE && HAS(rq, token)) {
		if (!HAS(rq, new_token))
			GIVE(rq, new_token, rq->token);
		TAKE_BACK(rq, token);
		rq->explicit = 0;
		rq->has &= ~(UINT64_C(1) << ARG_explicit);
	}
	if (!HAS(rq, token) && rq->id.n && (resume || op_flags(rq->op) & OP_HELD))
		r = find_proof(c, rq, k, ans);
	if (r == SUCCESS && k->takes)
		r = find_new_token(c, rq, k, ans);
	return r;
}

/* --- after the answer ---------------------------------------------------------------------- */

static void warn_unsaved(struct client *c, struct str task, int r, struct answer *ans)
{
	struct str text = arena_printf(
		c->arena,
		"the token of %.*s could not be saved in %s (%s): pass it with "
		"--token",
		STRF(task), c->keyring.dir ? c->keyring.dir : "a home folder", strerror(-r));

	ans->warnings = arena_append(c->arena, ans->warnings, text);
}

static void settle_taken(struct client *c, const struct request *rq, struct keys *k,
			 struct answer *ans)
{
	const struct task *task = rq->op == OP_DONE ? ans->next : ans->task;
	const struct grant *lock = rq->op == OP_DONE ? ans->next_lock : ans->lock;
	bool resumed = rq->op == OP_CLAIM && HAS(rq, fence);
	int r;

	/* A lock without a token is an earlier call's, repeated by its request id: its token is
	 * kept. */
	if (ans->code != SUCCESS || !task || !lock || !lock->token.n) {
		if (k->in_flight && ans->code == API_ERROR && ans->applied != 'n')
			keyring_leave(&c->keyring, &k->pending);
		else if (k->in_flight)
			keyring_drop(&c->keyring, &k->pending);
		return;
	}
	if (k->in_flight && str_eq(lock->token, k->pending.token)) {
		r = keyring_keep(&c->keyring, &k->pending, task->id, lock->fence, resumed);
	} else {
		if (k->in_flight)
			keyring_drop(&c->keyring, &k->pending);
		r = keyring_save(&c->keyring, task->id, lock->token, lock->fence, resumed);
	}
	if (r)
		warn_unsaved(c, task->id, r, ans);
}

/* Does the task still have the lock that `token` is for? Where the store keeps the hash to
 * itself, any lock counts: a token too many is found out by the next call. */
static bool still_locked(const struct task *t, struct str token, struct arena *a)
{
	if (!t || !t->lock.holder.n)
		return false;
	return !t->lock.token.n || (token.n && secret_eq(t->lock.token, token_hash(a, token)));
}

static bool lock_is_over(struct client *c, const struct request *rq, const struct keys *k,
			 const struct answer *ans)
{
	if (ans->code == LOST_LOCK)
		return k->saved;
	if (ans->code != SUCCESS)
		return false;
	if (rq->op == OP_STATUS)
		return !k->takes && !still_locked(ans->task, rq->token, c->arena);
	return op_flags(rq->op) & OP_ENDS || rq->op == OP_LOCK_BREAK;
}

static void settle(struct client *c, const struct request *rq, struct keys *k, struct answer *ans)
{
	bool blocked = rq->op == OP_BLOCK || (rq->op == OP_STATUS && rq->status == BLOCKED);

	if (rq->id.n && lock_is_over(c, rq, k, ans))
		keyring_forget(&c->keyring, rq->id);
	else if (blocked && ans->code == SUCCESS)
		keyring_park(&c->keyring, rq->id);
	if (k->takes)
		settle_taken(c, rq, k, ans);
	if (k->contested && (ans->code == LOST_LOCK || ans->code == CONFLICT))
		ans->hint = contested_hint();
}

void client_call(struct client *c, const struct request *rq, struct answer *ans)
{
	enum store_mode mode = op_flags(rq->op) & OP_READS ? STORE_READ : STORE_WRITE;
	struct request full = *rq;
	struct keys k = { .pending.fd = -1 };

	*ans = (struct answer){ 0 };
	c->keyring.arena = c->arena;
	if (!HAS(rq, agent))
		GIVE(&full, agent, c->agent);
	if (!HAS(rq, run) && c->run.n)
		GIVE(&full, run, c->run);
	if (!HAS(rq, host))
		GIVE(&full, host, c->host);
	if (client_open(c, mode, ans) != SUCCESS)
		return;
	if (complete(c, &full, &k, ans) != SUCCESS)
		return;
	queue_call(c->queue, &full, ans, c->arena);
	settle(c, &full, &k, ans);
}

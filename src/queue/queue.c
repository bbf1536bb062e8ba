/* Opens a queue in a store or behind a server, waits for its changes, and keeps its id. The
 * first acquisition stores the id in its own commit; after that the id never changes. */
#include <poll.h>
#include <stdlib.h>

#include "base/module.h"
#include "base/secret.h"
#include "core/counts.h"
#include "core/lease.h"
#include "core/order.h"
#include "format/json.h"
#include "queue/queue.h"
#include "queue/queue_private.h"
#include "queue/remote_queue.h"

enum result fault_answer(const struct store_error *err, struct answer *ans, struct arena *a)
{
	bool api = err->fault >= STORE_UNREACHABLE || err->fault == STORE_MOVED;

	answer_fail(ans, api ? API_ERROR : MISCONFIGURED, arena_str(a, str_c(err->text)),
		    arena_str(a, str_c(err->hint)));
	ans->applied = err->applied;
	ans->fault = str_c(store_fault_name(err->fault));
	return ans->code;
}

enum result read_fault_answer(struct store *s, int r, struct answer *ans, struct arena *a)
{
	if (!s->env.err->fault)
		store_fail(&s->env, r, "pawl doctor checks the whole store", "a record is damaged");
	return fault_answer(s->env.err, ans, a);
}

/* Copies the texts, because the queue may outlive the caller's. */
static void keep_texts(struct queue_config *c, struct arena *a)
{
	c->uri = arena_str(a, c->uri);
	c->opt.queue = arena_str(a, c->opt.queue);
	c->opt.who = arena_str(a, c->opt.who);
	if (c->opt.dir)
		c->opt.dir = arena_cstr(a, str_c(c->opt.dir));
}

/* Contacts the server only with STORE_CREATE. The queue must exist there already, because a
 * server creates and removes only scratch queues for its clients. */
static enum result open_remote(struct queue *q, enum store_mode mode, struct answer *ans,
			       struct arena *a)
{
	struct frame_facts f;
	enum result code;

	q->far = remote_load(ans, a);
	if (!q->far)
		return ans->code;
	code = q->far->open(&q->remote, &q->config, ans, a);
	if (code != SUCCESS || mode != STORE_CREATE)
		return code;
	if (str_starts(q->config.opt.queue, STR(QUEUE_SCRATCH)))
		return q->far->make(q->remote, ans, a);
	return q->far->facts(q->remote, &f, ans, a);
}

static enum result open_local(struct queue *q, enum store_mode mode, struct answer *ans,
			      struct arena *a)
{
	struct store_env env = {
		.rules = &queue_rules,
		.mode = mode,
		.relay = q->config.alone ? NULL : &queue_relay,
		.err = &q->err,
		.opt = q->config.opt,
	};

	if (store_open(&q->store, q->config.uri, &env))
		return fault_answer(&q->err, ans, a);
	q->config.policy.locks_only = q->store->traits & STORE_LOCKS_ONLY;
	return SUCCESS;
}

enum result queue_open(struct queue **out, const struct queue_config *config, enum store_mode mode,
		       struct answer *ans, struct arena *a)
{
	struct queue *q = mem_alloc(sizeof(*q));
	enum result code;

	json_must_allocate(); /* an event's list of changes is JSON */
	*q = (struct queue){ .config = *config };
	keep_texts(&q->config, &q->arena);
	code = remote_is(q->config.uri) ? open_remote(q, mode, ans, a)
					: open_local(q, mode, ans, a);
	if (code != SUCCESS) {
		queue_close(q);
		return code;
	}
	*out = q;
	return SUCCESS;
}

bool queue_is_remote(const struct queue *q)
{
	return q->remote;
}

bool queue_locks_only(const struct queue *q)
{
	return q->config.policy.locks_only;
}

struct policy queue_policy(const struct queue *q)
{
	return q->config.policy;
}

void queue_leases(struct queue *q, int64_t lease, int64_t lock_ttl)
{
	q->config.policy.lease = lease;
	q->config.policy.lock_ttl = lock_ttl;
}

void queue_close(struct queue *q)
{
	if (!q)
		return;
	store_close(q->store);
	if (q->remote)
		q->far->close(q->remote);
	arena_free(&q->arena);
	free(q);
}

void queue_patience(struct queue *q, int64_t timeout_ms)
{
	if (q->remote)
		q->far->patience(q->remote, timeout_ms);
	store_patience(q->store, timeout_ms);
}

bool queue_is_there(struct queue *q)
{
	struct frame_facts f;
	struct answer ans = { 0 };
	struct arena a = { 0 };
	int64_t counts[STORE_STATUSES];
	bool there;

	if (q->remote) {
		there = q->far->facts(q->remote, &f, &ans, &a) == SUCCESS;
		arena_free(&a);
		return there;
	}
	return q->store->ops->tally(q->store, counts) == 0;
}

int64_t queue_as_of(const struct queue *q)
{
	const struct store *s = q->store;

	while (s && s->inner)
		s = s->inner;
	return s ? s->env.as_of : 0;
}

int64_t queue_now(struct queue *q)
{
	struct frame_facts f = { 0 };
	struct answer ans = { 0 };
	struct arena a = { 0 };

	if (q->remote) {
		(void)q->far->facts(q->remote, &f, &ans, &a);
		arena_free(&a);
		return f.now;
	}
	return q->store->ops->now(q->store);
}

void queue_pass_ctx(struct queue *q, void *ctx)
{
	q->config.pass_ctx = ctx;
}

bool queue_health(struct queue *q, struct health *out)
{
	return q->remote ? q->far->health(q->remote, out) : health_read(q->store, out);
}

int queue_wake_fd(struct queue *q)
{
	return q->remote ? q->far->wake_fd(q->remote) : q->store->ops->wake_fd(q->store);
}

void queue_woken(struct queue *q)
{
	if (q->remote)
		q->far->woken(q->remote);
	else
		q->store->ops->wake_clear(q->store);
}

bool queue_park(struct queue *q, int64_t ms)
{
	return q->remote && q->far->park(q->remote, ms);
}

/* Each pause is longer than the last, so a long wait costs few reads. */
int64_t queue_pause(struct queue *q, int64_t ms)
{
	struct backoff *b = &q->config.poll_pause;

	b->base_ms = b->base_ms ? b->base_ms : QUEUE_POLL_MS;
	b->max_ms = b->max_ms ? b->max_ms : QUEUE_POLL_MAX_MS;
	b->deadline = ms;
	return backoff_next(b, 0);
}

/* A pawl server loses none: it keeps the stream alive, and the stream's end counts as a change. */
static bool loses_news(const struct queue *q)
{
	return !q->remote && q->store->traits & STORE_FAR;
}

int64_t queue_poll_ms(struct queue *q)
{
	if (queue_wake_fd(q) < 0)
		return QUEUE_POLL_MS;
	return loses_news(q) ? QUEUE_FAR_MS : INT64_MAX;
}

bool queue_wait(struct queue *q, int64_t ms)
{
	int fd = queue_wake_fd(q);
	struct pollfd p = { .fd = fd, .events = POLLIN };
	bool poll_pause = fd < 0 || (loses_news(q) && ms >= QUEUE_FAR_MS);

	if (fd < 0)
		ms = queue_pause(q, ms);
	else if (poll_pause)
		ms = QUEUE_FAR_MS;
	if (poll(&p, fd >= 0, (int)(ms > 60000 ? 60000 : ms)) <= 0)
		return poll_pause;
	queue_woken(q);
	return true;
}

enum result queue_names(struct queue *q, name_fn *fn, void *ctx, struct answer *ans,
			struct arena *a)
{
	const struct store_ops *ops = q->remote ? NULL : q->store->ops;

	if (q->remote)
		return q->far->names(q->remote, fn, ctx, ans, a);
	if (ops->queues && ops->queues(q->store, fn, ctx))
		return fault_answer(&q->err, ans, a);
	return SUCCESS;
}

enum result queue_discard(struct queue *q, struct answer *ans, struct arena *a)
{
	if (q->remote && str_starts(q->config.opt.queue, STR(QUEUE_SCRATCH)))
		return q->far->discard(q->remote, ans, a);
	if (q->remote)
		return remote_refuse("the removal of a queue", ans, a);
	if (q->store->ops->discard(q->store))
		return fault_answer(&q->err, ans, a);
	return SUCCESS;
}

/* --- remote ----------------------------------------------------------------------------------- */

bool remote_is(struct str uri)
{
	return str_starts(uri, STR("http://")) || str_starts(uri, STR("https://")) ||
	       str_starts(uri, STR("unix:"));
}

const struct remote_ops *remote_load(struct answer *ans, struct arena *a)
{
	const struct module *m;
	char why[300];
	int r = module_load("remote", STR(""), &m, why, sizeof(why));

	if (!r && m->remote)
		return m->remote;
	answer_fail(ans, MISCONFIGURED,
		    arena_printf(a, "a server as a store needs the module pawl-remote.so: %s%s",
				 r < 0 ? why : "it is not installed in ",
				 r < 0 ? "" : module_dir()),
		    STR("install the modules of version " PAWL_VERSION
			" (`make install`), or set PAWL_MODULE_DIR to the folder that holds them"));
	return NULL;
}

enum result remote_refuse(const char *what, struct answer *ans, struct arena *a)
{
	ans->applied = 'n';
	return answer_fail(ans, MISCONFIGURED,
			   arena_printf(a, "%s does not work through a server", what),
			   STR("run it on the server's machine, with the server's own --store"));
}

enum result queue_facts(struct queue *q, struct frame_facts *out, struct answer *ans,
			struct arena *a)
{
	if (!q->remote)
		return answer_fail(ans, MISCONFIGURED, STR("the store is not a server"), STR(""));
	return q->far->facts(q->remote, out, ans, a);
}

/* --- rules ------------------------------------------------------------------------------------ */

/* The policy that stores call. A store must not call core itself. */

const struct store_rules queue_rules = {
	.index = order_index,
	.sub_moved = graph_sub_moved,
	.dep_moved = graph_dep_moved,
	.lock_gone = lease_clear,
};

/* --- identity --------------------------------------------------------------------------------- */

/*
 * The queue's id is a random id in its own record. It identifies the queue wherever it is stored.
 * The first acquisition by a client proposes an id and writes it in its own commit. After that the
 * id never changes. `migrate` copies it with all other records. `restore` keeps the id of the queue
 * that it fills.
 */

bool queue_identity(struct queue *q, struct str *id, struct arena *a)
{
	struct frame_facts f = { 0 };
	struct answer ans = { 0 };
	struct record rec;

	*id = STR("");
	if (q->remote) {
		if (q->far->facts(q->remote, &f, &ans, a) != SUCCESS || !token_valid(f.identity))
			return false;
		*id = f.identity;
		return true;
	}
	if (q->config.policy.locks_only ||
	    q->store->ops->get(q->store, IDENTITY_KEY, &rec, a) != 0 || !token_valid(rec.hot))
		return false;
	*id = rec.hot;
	return true;
}

bool queue_is_far(const struct queue *q)
{
	return q->remote || q->store->traits & STORE_FAR;
}

struct str queue_origin(const struct queue *q, struct arena *a)
{
	char ignored[400];

	return q->remote ? q->far->origin(q->config.uri, ignored, sizeof(ignored), a) : STR("");
}

int identity_find(struct act *w)
{
	struct record *rec;
	int r;

	if (!w->call.rq->queue_id.n || !token_valid(w->call.rq->queue_id) ||
	    w->call.policy->locks_only)
		return 0;
	r = edit_get(w->e, IDENTITY_KEY, &rec);
	if (r < 0)
		return r;
	w->nameless = r > 0 || !token_valid(rec->hot);
	w->ans->queue_id = w->nameless ? w->call.rq->queue_id : arena_str(w->call.arena, rec->hot);
	return 0;
}

void identity_keep(struct act *w)
{
	struct record *rec;

	if (!w->nameless)
		return;
	if (!w->writes) { /* a repeat writes nothing, so the queue still has no id */
		w->ans->queue_id = STR("");
		return;
	}
	rec = arena_new(w->call.arena, struct record);
	rec->key = IDENTITY_KEY;
	rec->hot = w->call.rq->queue_id;
	edit_put(w->e, rec);
	w->writes++;
}

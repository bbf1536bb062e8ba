/* Loads, changes and writes the tasks of one request inside one edit. act_flush() first updates
 * the counts in parents and dependents. It checks every changed record before it writes the
 * first, so pawl never stores a record that it would reject itself. */
#include "queue/queue_private.h"

#include "base/text.h"
#include "core/validate.h"
#include "format/task_form.h"
#include "core/counts.h"
#include "core/lease.h"
#include "core/order.h"
#include "core/role.h"
#include "format/record_form.h"

#define RECORD_MAX (16u << 20)

void act_begin(struct act *w, struct edit *e)
{
	w->call.now = e->now;
	w->call.paused = NULL;
	w->e = e;
	w->tasks = NULL;
	w->notes = NULL;
	w->guard = w->guard_was = 0;
	w->given_back = (struct strs){ 0 };
	w->writes = 0;
	w->nameless = w->keep = false;
}

int act_refuse(struct act *w, enum result code, struct str message, struct str hint)
{
	/* the texts may come from a store that other programs write to */
	answer_fail(w->ans, code, text_line(w->call.arena, message),
		    text_line(w->call.arena, hint));
	return REFUSED;
}

enum role act_role_needed(struct act *w, const struct loaded *l)
{
	const struct lock *lock = &l->task.lock;
	bool own = lease_owned(lock, w->call.proof, w->e->now) ||
		   lease_owned(lock, w->call.fresh, w->e->now);

	return role_for_task(w->call.rq, &l->task, own);
}

int act_role(struct act *w, const struct loaded *l)
{
	enum role need = act_role_needed(w, l);

	return role_refuse(w->call.rq->role, need, w->ans, w->call.arena) == SUCCESS ? 0 : REFUSED;
}

struct answer *not_found(struct answer *ans, struct str id, struct arena *a)
{
	answer_fail(ans, NOT_FOUND, arena_printf(a, "there is no task %.*s", STRF(id)),
		    STR("pawl list shows the tasks; pawl find TEXT looks for one"));
	return ans;
}

static struct loaded *loaded_find(struct act *w, struct str key)
{
	for (struct loaded *l = w->tasks; l; l = l->next)
		if (str_eq(l->key, key))
			return l;
	return NULL;
}

static struct loaded *loaded_add(struct act *w, struct str key)
{
	struct loaded *l = arena_new(w->call.arena, struct loaded);

	l->key = key;
	l->next = w->tasks;
	w->tasks = l;
	return l;
}

int act_load_key(struct act *w, struct str key, struct loaded **out)
{
	struct record *rec;
	struct task t;
	int r;

	*out = loaded_find(w, key);
	if (*out)
		return 0;
	r = edit_get(w->e, key, &rec);
	if (!r)
		r = task_of(rec, &t, w->call.arena);
	if (r)
		return r;
	*out = loaded_add(w, arena_str(w->call.arena, key));
	(*out)->rec = rec;
	(*out)->task = t;
	(*out)->old = (*out)->task;
	(*out)->was = (*out)->logged = (*out)->task.status;
	return 0;
}

int act_load(struct act *w, struct str id, struct loaded **out)
{
	struct str key = task_key(w->call.arena, id);
	struct record *rec;
	int r = act_load_key(w, key, out);

	if (r == BAD) {
		r = edit_get(w->e, key, &rec);
		return r ? r : (bad_refuse(w->ans, rec, w->call.arena), BAD);
	}
	if (r > 0)
		not_found(w->ans, id, w->call.arena);
	return r;
}

struct loaded *act_new_key(struct act *w, struct str key, struct str id)
{
	struct loaded *l = loaded_add(w, key);

	l->task.id = id;
	return l;
}

struct loaded *act_new(struct act *w, struct str id)
{
	struct loaded *l = act_new_key(w, task_key(w->call.arena, id), id);

	l->dirty = true;
	return l;
}

static struct str act_packed(struct act *w, const struct task *t, unsigned part)
{
	struct buf b = BUF_MAX(RECORD_MAX);
	struct str out;

	task_pack(t, part, &b);
	out = arena_str(w->call.arena, buf_str(&b));
	buf_free(&b);
	return out;
}

/* Packs the texts only if they changed: they may be long. */
static void put_body(struct act *w, const struct loaded *l, struct record *rec)
{
	if (l->rec && task_same(&l->task, &l->old, BODY)) {
		rec->body = l->rec->body;
		rec->body_changed = l->rec->body_changed;
	} else {
		rec->body = act_packed(w, &l->task, BODY);
		rec->body_changed = true;
	}
}

const char *act_fault(struct act *w, const struct loaded *l)
{
	return task_change_fault(&l->task, &l->old, l->key, w->call.arena);
}

/* pawl must not write a record that it would reject, because no later call could change it. */
static int refuse_unusable(struct act *w, const struct loaded *l, const char *fault)
{
	struct str id = bad_name(l->key, w->call.arena);

	*w->ans = (struct answer){ .now = w->ans->now };
	return act_refuse(
		w, MISCONFIGURED,
		arena_printf(w->call.arena,
			     "%s cannot be changed: the new record could not be used: %s",
			     arena_cstr(w->call.arena, bad_shown(l->key, w->call.arena)), fault),
		arena_printf(w->call.arena,
			     "nothing was changed; pawl remove %.*s --force removes it", STRF(id)));
}

static int check_put(struct act *w, const struct loaded *l)
{
	const char *fault = growth_fault(&l->task, w->call.arena);

	if (fault)
		return act_refuse(w, USAGE, str_c(fault),
				  STR("remove some labels, dependencies, text or extra first"));
	fault = act_fault(w, l);
	return fault ? refuse_unusable(w, l, fault) : 0;
}

static void act_put(struct act *w, struct loaded *l)
{
	struct record *rec = arena_new(w->call.arena, struct record);

	if (!status_ended(l->task.status) && l->task.status != FAILED)
		l->task.archived_at = 0; /* it was reopened */
	*rec = (struct record){
		.key = l->key,
		.rev = l->rec ? l->rec->rev : 0,
		.hot = act_packed(w, &l->task, HOT),
	};
	put_body(w, l, rec);
	if (l->task.status)
		order_index(&l->task, &rec->ix, w->call.arena);
	else
		rec->ix.token = l->task.lock.token; /* keeps a store from resetting its clock */
	edit_put(w->e, rec);
	if (w->notes)
		undo_touched(w, l);
	l->rec = rec;
	l->old = l->task;
	l->dirty = false;
	w->writes++;
}

/* The counts of other tasks change only if this task appears, disappears, ends or is reopened. */
static bool concerns_others(int64_t from, int64_t to)
{
	return from != to && (!from || !to || status_ended(from) || status_ended(to));
}

static int update_parent(struct act *w, struct loaded *l)
{
	struct loaded *parent;
	int r;

	if (!l->task.parent.n)
		return 0;
	r = act_load_key(w, task_key(w->call.arena, l->task.parent), &parent);
	if (r)
		return r < 0 ? r : 0; /* a missing or bad parent has no count to update */
	parent->dirty |= graph_sub_moved(&parent->task, l->was, l->task.status);
	return 0;
}

struct keys {
	struct arena *arena;
	struct strs *list;
};

static int add_key(const struct record *r, void *ctx)
{
	struct keys *k = ctx;

	k->list->v = arena_grow(k->arena, k->list->v, k->list->n, sizeof(struct str));
	k->list->v[k->list->n++] = arena_str(k->arena, r->key);
	return 0;
}

int act_keys(struct act *w, const struct query *q, struct strs *keys)
{
	struct keys k = { w->call.arena, keys };

	return edit_scan(w->e, q, add_key, &k);
}

int number_get(struct act *w, struct str key, int64_t *n)
{
	struct record *rec;
	int r = edit_get(w->e, key, &rec);

	*n = 0;
	if (r)
		return r < 0 ? r : 0;
	return number_valid(rec->hot, n) ? 0 : BAD;
}

static struct record *act_number(struct act *w, struct str key, int64_t n)
{
	struct record *rec = arena_new(w->call.arena, struct record);

	rec->key = key;
	rec->hot = arena_printf(w->call.arena, "%lld", (long long)n);
	rec->body_changed = true;
	w->writes++;
	return rec;
}

void number_put(struct act *w, struct str key, int64_t n)
{
	edit_put(w->e, act_number(w, key, n));
}

void gone_put(struct act *w, const struct loaded *l, int64_t fence)
{
	struct record *rec = act_number(w, gone_key(w, l), fence);

	rec->body = l->task.chain;
	edit_put(w->e, rec);
}

struct str gone_key(struct act *w, const struct loaded *l)
{
	struct str id = l->key;

	(void)str_cut(&id, '/');
	return arena_printf(w->call.arena, "gone/%.*s", STRF(id));
}

static int update_dependents(struct act *w, struct loaded *l)
{
	struct query q = { .depends_on = l->key };
	struct strs keys = { 0 };
	int r = act_keys(w, &q, &keys);

	for (size_t i = 0; !r && i < keys.n; i++) {
		struct loaded *d;

		r = act_load_key(w, keys.v[i], &d);
		if (r == BAD) {
			r = 0;
			continue;
		}
		if (r)
			break;
		d->dirty |= graph_dep_moved(&d->task, l->was, l->task.status);
		if (l->task.status == CANCELED &&
		    graph_settle(&d->task, l->task.id, w->e->now, w->call.arena)) {
			d->task.version++;
			act_log(w, d, "needs_help", d->task.blocker_reason);
		}
	}
	return r;
}

void act_apply(struct act *w, struct loaded *l)
{
	rules_apply(w->call.rq->op, &l->task, &w->call);
	if (w->call.by_lock && lock_died_here(&l->task.lock))
		rules_apply_over_dead(w->call.rq->op, &l->task, &w->call);
}

void act_edited(struct act *w, struct loaded *l)
{
	l->task.version++;
	l->task.updated_at = w->e->now;
	l->dirty = true;
}

int act_flush(struct act *w)
{
	int r = 0;

	for (struct loaded *l = w->tasks; !r && l; l = l->next) {
		int64_t was = l->was;

		if (!concerns_others(was, l->task.status))
			continue;
		r = update_parent(w, l);
		if (!r && was)
			r = update_dependents(w, l);
		l->was = l->task.status;
	}
	for (struct loaded *l = w->tasks; !r && l; l = l->next)
		if (l->dirty)
			r = check_put(w, l);
	if (r)
		return r;
	for (struct loaded *l = w->tasks; l; l = l->next)
		if (l->dirty)
			act_put(w, l);
	return 0;
}

void act_drop(struct act *w, struct loaded *l)
{
	edit_drop(w->e, l->key);
	l->dirty = false;
	l->was = l->task.status;
	w->writes++;
}

/* Adds the event to a chain: it gets the hash of the event before it, and *chain becomes its own. */
static void act_chain_event(struct act *w, struct str *chain, int64_t at, const struct event *ev)
{
	unsigned char *hash = arena_alloc(w->call.arena, SHORT_HASH_LEN);
	struct event own = *ev;
	struct buf b = BUF_MAX(RECORD_MAX);

	own.prev = *chain;
	event_pack_hash(&own, at, &b, hash);
	edit_log_at(w->e, at, ev->task.n ? task_key(w->call.arena, ev->task) : STR(""),
		    arena_str(w->call.arena, buf_str(&b)));
	buf_free(&b);
	*chain = str_n((char *)hash, SHORT_HASH_LEN);
	w->writes++;
}

void act_event_at(struct act *w, struct loaded *l, int64_t at, const struct event *ev)
{
	struct str none = STR("");

	/* a lock file has no place for the hash */
	if (w->call.policy->locks_only) {
		act_chain_event(w, &none, at, ev);
		return;
	}
	act_chain_event(w, &l->task.chain, at, ev);
	l->dirty = true;
}

void act_event(struct act *w, struct loaded *l, const struct event *ev)
{
	act_event_at(w, l, w->e->now, ev);
}

int act_queue_event(struct act *w, const struct event *ev)
{
	struct record *rec = arena_new(w->call.arena, struct record), *old;
	struct str chain = STR("");
	int r = edit_get(w->e, CHAIN_KEY, &old);

	if (r < 0)
		return r;
	if (!r && old->hot.n == SHORT_HASH_LEN)
		chain = old->hot;
	act_chain_event(w, &chain, w->e->now, ev);
	*rec = (struct record){ .key = CHAIN_KEY, .hot = chain };
	if (!w->call.policy->locks_only)
		edit_put(w->e, rec);
	return 0;
}

void act_log(struct act *w, struct loaded *l, const char *name, struct str text)
{
	const struct event ev = { .name = str_c(name),
				  .task = l->task.id,
				  .agent = w->call.rq->agent,
				  .run = w->call.rq->run,
				  .text = text,
				  .fence = l->task.fence,
				  .from = l->logged != l->task.status ? l->logged : 0,
				  .to = l->logged != l->task.status ? l->task.status : 0 };

	act_event(w, l, &ev);
	l->logged = l->task.status;
}

struct grant *act_grant(struct act *w, const struct loaded *l)
{
	struct grant *g = arena_new(w->call.arena, struct grant);

	g->fence = l->task.fence;
	g->expires_at = l->task.lock.expires_at;
	g->ttl = l->task.lock.ttl;
	if (w->call.fresh.n && str_eq(w->call.fresh, l->task.lock.token))
		g->token = w->call.rq->new_token;
	return g;
}

void act_answer(struct act *w, struct loaded *l)
{
	const struct notice *over = &l->task.over;

	w->ans->task = arena_new(w->call.arena, struct task);
	*w->ans->task = l->task;
	if (!over->by.n || !w->call.proof.n || !str_eq(over->token, w->call.proof))
		return;
	w->ans->changed = arena_new(w->call.arena, struct notice);
	*w->ans->changed = *over;
	w->ans->changed->token = STR("");
}

int act_decided(struct act *w, struct loaded *l)
{
	const struct call *c = &w->call;

	l->dirty |= c->changed;
	for (size_t i = 0; i < c->n_events; i++)
		act_event(w, l, &c->events[i]);
	l->logged = l->task.status;
	if (c->warning.n)
		w->ans->warnings = arena_append(w->call.arena, w->ans->warnings, c->warning);
	w->ans->repeated = c->repeated;
	if (c->code == SUCCESS)
		return 0;
	w->keep |= c->changed;
	act_answer(w, l);
	if (c->by_pause)
		pause_tell(c->paused, w->ans, w->call.arena);
	return act_refuse(w, c->code, c->message, c->hint);
}

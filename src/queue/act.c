#include "queue/act.h"

#include "format/task.h"
#include "core/graph.h"
#include "store/task_index.h"

#define RECORD_MAX (16u << 20)

int task_of(const struct record *r, struct task *out, struct arena *a)
{
	*out = (struct task){ 0 };
	if (task_unpack(arena_str(a, r->hot), out, a) || task_unpack(arena_str(a, r->body), out, a))
		return STORE_CORRUPT;
	return 0;
}

int work_refuse(struct work *w, enum result code, struct str message, struct str hint)
{
	answer_fail(w->ans, code, message, hint);
	return REFUSED;
}

struct answer *not_found(struct answer *ans, struct str id, struct arena *a)
{
	answer_fail(ans, NOT_FOUND, arena_printf(a, "there is no task %.*s", STRF(id)),
		    STR("pawl list shows the tasks; pawl find TEXT looks for one"));
	return ans;
}

static struct loaded *loaded_find(struct work *w, struct str key)
{
	for (struct loaded *l = w->tasks; l; l = l->next)
		if (str_eq(l->key, key))
			return l;
	return NULL;
}

static struct loaded *loaded_add(struct work *w, struct str key)
{
	struct loaded *l = arena_new(w->arena, struct loaded);

	l->key = key;
	l->next = w->tasks;
	w->tasks = l;
	return l;
}

int work_load_key(struct work *w, struct str key, struct loaded **out)
{
	struct record *rec;
	int r;

	*out = loaded_find(w, key);
	if (*out)
		return 0;
	r = edit_get(w->e, key, &rec);
	if (r)
		return r;
	*out = loaded_add(w, arena_str(w->arena, key));
	(*out)->rec = rec;
	r = task_of(rec, &(*out)->task, w->arena);
	if (r)
		return store_fail(&w->e->store->env, r, "pawl doctor looks at the whole store",
				  "the record of %.*s is damaged", STRF(key));
	(*out)->old = (*out)->task;
	(*out)->was = (*out)->logged = (*out)->task.status;
	return 0;
}

int work_load(struct work *w, struct str id, struct loaded **out)
{
	int r = work_load_key(w, task_key(w->arena, id), out);

	if (r > 0)
		not_found(w->ans, id, w->arena);
	return r;
}

struct loaded *work_new_key(struct work *w, struct str key, struct str id)
{
	struct loaded *l = loaded_add(w, key);

	l->task.id = id;
	return l;
}

struct loaded *work_new(struct work *w, struct str id)
{
	struct loaded *l = work_new_key(w, task_key(w->arena, id), id);

	l->dirty = true;
	return l;
}

static struct str packed(struct work *w, const struct task *t, unsigned part)
{
	struct buf b = BUF_MAX(RECORD_MAX);
	struct str out;

	task_pack(t, part, &b);
	out = arena_str(w->arena, buf_str(&b));
	buf_free(&b);
	return out;
}

/* The texts: made anew only if they changed. */
static void put_body(struct work *w, const struct loaded *l, struct record *rec)
{
	if (l->rec && task_same(&l->task, &l->old, BODY)) {
		rec->body = l->rec->body;
		rec->body_changed = l->rec->body_changed;
	} else {
		rec->body = packed(w, &l->task, BODY);
		rec->body_changed = true;
	}
}

static void put(struct work *w, struct loaded *l)
{
	struct record *rec = arena_new(w->arena, struct record);

	if (!status_ended(l->task.status) && l->task.status != FAILED)
		l->task.archived_at = 0; /* it was opened again */
	*rec = (struct record){
		.key = l->key,
		.rev = l->rec ? l->rec->rev : 0,
		.hot = packed(w, &l->task, HOT),
	};
	put_body(w, l, rec);
	if (l->task.status)
		task_index(&l->task, &rec->ix, w->arena);
	else
		rec->ix.token = l->task.lock.token; /* no task; but the clock must not be set */
	edit_put(w->e, rec);
	l->rec = rec;
	l->old = l->task;
	l->dirty = false;
	w->writes++;
}

/* Only a task that comes, goes, ends or is opened again concerns others. */
static bool concerns_others(int64_t from, int64_t to)
{
	return from != to && (!from || !to || status_ended(from) || status_ended(to));
}

static int tell_parent(struct work *w, struct loaded *l)
{
	struct loaded *parent;
	int r;

	if (!l->task.parent.n)
		return 0;
	r = work_load(w, l->task.parent, &parent);
	if (r)
		return r;
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

int work_keys(struct work *w, const struct query *q, struct strs *keys)
{
	struct keys k = { w->arena, keys };

	return edit_scan(w->e, q, add_key, &k);
}

int number_get(struct work *w, struct str key, int64_t *n)
{
	struct record *rec;
	int r = edit_get(w->e, key, &rec);

	*n = 0;
	if (r)
		return r < 0 ? r : 0;
	if (str_to_i64(rec->hot, n))
		return 0;
	return store_fail(&w->e->store->env, STORE_CORRUPT, "pawl doctor looks at the whole store",
			  "the number in %.*s is damaged", STRF(key));
}

void number_put(struct work *w, struct str key, int64_t n)
{
	struct record *rec = arena_new(w->arena, struct record);

	rec->key = key;
	rec->hot = arena_printf(w->arena, "%lld", (long long)n);
	edit_put(w->e, rec);
	w->writes++;
}

struct str gone_key(struct work *w, const struct loaded *l)
{
	struct str id = l->key;

	(void)str_cut(&id, '/');
	return arena_printf(w->arena, "gone/%.*s", STRF(id));
}

static int tell_dependents(struct work *w, struct loaded *l)
{
	struct query q = { .depends_on = l->key };
	struct strs keys = { 0 };
	int r = work_keys(w, &q, &keys);

	for (size_t i = 0; !r && i < keys.n; i++) {
		struct loaded *d;

		r = work_load_key(w, keys.v[i], &d);
		if (r)
			break;
		d->dirty |= graph_dep_moved(&d->task, l->was, l->task.status);
		if (l->task.status == CANCELED &&
		    graph_settle(&d->task, l->task.id, w->e->now, w->arena)) {
			d->task.version++;
			work_log(w, d, "needs_help", d->task.blocker_reason);
		}
	}
	return r;
}

void work_edited(struct work *w, struct loaded *l)
{
	l->task.version++;
	l->task.updated_at = w->e->now;
	l->dirty = true;
}

int work_flush(struct work *w)
{
	int r = 0;

	for (struct loaded *l = w->tasks; !r && l; l = l->next) {
		int64_t was = l->was;

		if (!concerns_others(was, l->task.status))
			continue;
		r = tell_parent(w, l);
		if (!r && was)
			r = tell_dependents(w, l);
		l->was = l->task.status;
	}
	if (r)
		return r;
	for (struct loaded *l = w->tasks; l; l = l->next)
		if (l->dirty)
			put(w, l);
	return 0;
}

void work_drop(struct work *w, struct loaded *l)
{
	edit_drop(w->e, l->key);
	l->dirty = false;
	l->was = l->task.status;
	w->writes++;
}

void work_event(struct work *w, const struct event *ev)
{
	struct buf b = BUF_MAX(RECORD_MAX);

	event_pack(ev, &b);
	edit_log(w->e, ev->task.n ? task_key(w->arena, ev->task) : STR(""),
		 arena_str(w->arena, buf_str(&b)));
	buf_free(&b);
	w->writes++;
}

void work_log(struct work *w, struct loaded *l, const char *name, struct str text)
{
	const struct event ev = { .name = str_c(name),
				  .task = l->task.id,
				  .agent = w->rq->agent,
				  .run = w->rq->run,
				  .text = text,
				  .fence = l->task.fence,
				  .from = l->logged != l->task.status ? l->logged : 0,
				  .to = l->logged != l->task.status ? l->task.status : 0 };

	work_event(w, &ev);
	l->logged = l->task.status;
}

struct grant *work_grant(struct work *w, const struct loaded *l)
{
	struct grant *g = arena_new(w->arena, struct grant);

	g->fence = l->task.fence;
	g->expires_at = l->task.lock.expires_at;
	g->ttl = l->task.lock.ttl;
	if (w->call.fresh.n && str_eq(w->call.fresh, l->task.lock.token))
		g->token = w->rq->new_token;
	return g;
}

void work_answer(struct work *w, struct loaded *l)
{
	w->ans->task = arena_new(w->arena, struct task);
	*w->ans->task = l->task;
}

int work_verdict(struct work *w, struct loaded *l, const struct verdict *v)
{
	l->dirty |= v->changed;
	for (size_t i = 0; i < v->n_events; i++)
		work_event(w, &v->events[i]);
	l->logged = l->task.status;
	if (v->warning.n)
		w->ans->warnings = arena_append(w->arena, w->ans->warnings, v->warning);
	w->ans->repeated = v->repeated;
	if (v->code == SUCCESS)
		return 0;
	w->keep |= v->changed;
	work_answer(w, l);
	return work_refuse(w, v->code, v->message, v->hint);
}

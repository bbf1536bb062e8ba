/* The repairs of `doctor --fix`, in changes of a limited size. All but the repair of bad locks
 * run under @maintenance, which the caller holds. If the process is killed, the next run repairs
 * the remaining records. A record is removed only after a durable copy of it was saved. */
#include "base/secret.h"
#include "core/counts.h"
#include "core/lease.h"
#include "format/task_form.h"
#include "queue/queue.h"
#include "queue/queue_private.h"
#include "queue/remote_queue.h"

#define MOST 1000              /* records in one change */
#define MOST_BYTES (16u << 20) /* bad records may be large, and a change keeps them in memory */
#define ANY_BAD STR("bad:0000000000000000")
#define REASON_MAX 5 /* a text names at most this many dependencies */

enum phase { PHASE_LOCKS, PHASE_RECORDS, PHASE_COUNTS };

struct repair_job {
	struct queue *q;
	enum phase phase;
	const struct repair_sink *sink;
	struct str agent, run, pass;
	struct answer said;
	struct arena *arena;
	int failed;       /* -errno of the sink */
	size_t n;         /* number of repairs in this change */
	bool more;        /* there are more records than one change repairs */
	struct str first; /* key of the first record of this change */
};

/* --- which records ------------------------------------------------------------------------------------ */

struct choice {
	struct repair_job *m;
	struct edit *e;
	const struct recount *record_counts; /* NULL: validate the record itself */
	struct strs keys;
	size_t bytes;
};

static bool needs_repair(const struct choice *c, const struct record *r)
{
	struct arena scratch = { 0 };
	struct record_counts_fault f;
	struct judgment j;
	bool needs;

	if (c->record_counts) {
		needs = record_counts_compare(c->record_counts, r, &f, &scratch);
	} else {
		repair_decide(r, false, &j, &scratch);
		needs = j.repair != REPAIR_NONE && j.repair != REPAIR_LEAVE;
		if (c->m->phase == PHASE_LOCKS)
			needs &= str_starts(r->key, STR("lock/"));
	}
	arena_free(&scratch);
	return needs;
}

static int repair_choose(const struct record *r, void *ctx)
{
	struct choice *c = ctx;

	if (!needs_repair(c, r))
		return 0;
	if (c->keys.n == MOST || (c->keys.n && c->bytes > MOST_BYTES)) {
		c->m->more = true;
		return 1;
	}
	c->keys.v = arena_grow(c->e->arena, c->keys.v, c->keys.n, sizeof(struct str));
	c->keys.v[c->keys.n++] = arena_str(c->e->arena, r->key);
	c->bytes += r->hot.n + r->body.n;
	return 0;
}

/* --- repairs of one record ---------------------------------------------------------------------------- */

static int put_away(struct repair_job *m, struct act *w, const struct record *r, const char *fault)
{
	const struct repair_part parts[] = { { "hot", r->hot }, { "body", r->body } };

	m->failed = m->sink->keep(m->sink->ctx, "record", r->key, fault, parts, 2);
	return m->failed ? STORE_IO : bad_remove(w, r->key);
}

static int rewrite_index(struct act *w, struct str key, const char *does)
{
	struct loaded *l;
	int r = act_load_key(w, key, &l);

	if (r)
		return r < 0 ? r : 0;
	l->dirty = true;
	act_log(w, l, "repaired", str_c(does));
	return 0;
}

/* Is there a record with this id, other than `key`? */
static int is_taken(struct act *w, struct str id, struct str key, bool *taken)
{
	struct str wanted = task_key(w->call.arena, id);
	struct record *other;
	int r = str_eq(wanted, key) ? 1 : edit_get(w->e, wanted, &other);

	*taken = r == 0 || r == STORE_FOREIGN;
	return r < 0 && r != STORE_FOREIGN ? r : 0;
}

static int find_id(struct act *w, struct task *t, struct str key)
{
	bool taken = true;
	int r = t->id.n ? is_taken(w, t->id, key, &taken) : 0;

	return r || !taken ? r : fresh_id(w, &t->id);
}

static int store_task(struct act *w, struct record *rec, struct judgment *j)
{
	int64_t fence = 0;
	struct loaded *l;
	bool moves;
	int r = find_id(w, &j->task, rec->key);

	if (r)
		return r;
	l = act_new_key(w, task_key(w->call.arena, j->task.id), j->task.id);
	moves = !str_eq(l->key, rec->key);
	l->task = l->old = j->task;
	l->old.id = STR(""); /* differs, so the texts are written, too */
	l->was = l->logged = l->task.status;
	l->rec = moves ? NULL : rec;
	l->dirty = true;
	if (moves) {
		r = old_fence(w, l, &fence);
		edit_drop(w->e, arena_str(w->call.arena, rec->key));
	}
	if (fence > l->task.fence)
		l->task.fence = fence;
	act_log(w, l, "repaired", str_c(j->does));
	return r;
}

static int repair_record(struct repair_job *m, struct act *w, struct str key)
{
	struct judgment j;
	struct record *rec;
	int r = edit_get(w->e, key, &rec);

	if (r)
		return r < 0 ? r : 0;
	repair_decide(rec, false, &j, w->call.arena);
	m->n++;
	switch (j.repair) {
	case REPAIR_INDEX:
		return rewrite_index(w, key, j.does);
	case REPAIR_TASK:
		return store_task(w, rec, &j);
	case REPAIR_NUMBER:
		number_put(w, key, j.number);
		return 0;
	case REPAIR_COUNTER:
		return do_id_init(w);
	case REPAIR_AWAY:
		return put_away(m, w, rec, j.fault);
	case REPAIR_NONE:
	case REPAIR_LEAVE:
		break;
	}
	m->n--;
	return 0;
}

/* --- counts and links ---------------------------------------------------------------------------------- */

static struct str list_ids(struct strs ids, struct arena *a)
{
	struct str out = STR("");

	for (size_t i = 0; i < ids.n && i < REASON_MAX; i++)
		out = arena_printf(a, "%.*s%s%.*s", STRF(out), i ? ", " : "", STRF(ids.v[i]));
	return ids.n > REASON_MAX ? arena_printf(a, "%.*s and others", STRF(out)) : out;
}

static void cut_links(struct act *w, struct loaded *l, const struct record_counts_fault *f)
{
	struct task *t = &l->task;

	for (size_t i = 0; i < f->depends.n; i++)
		t->depends = arena_without(w->call.arena, t->depends, f->depends.v[i]);
	if (f->parent)
		t->parent = STR("");
	act_edited(w, l);
	act_log(w, l, "repaired",
		f->depends.n ? arena_printf(w->call.arena, "dependencies that do not exist: %s",
					    arena_cstr(w->call.arena,
						       list_ids(f->depends, w->call.arena)))
			     : STR("its parent does not exist"));
}

/* Nobody knows whether the missing dependency was done, so a person must decide, as after
 * `remove --force`. */
static void ask_for_help(struct act *w, struct loaded *l, const struct record_counts_fault *f)
{
	struct task *t = &l->task;

	if (!f->stuck || (t->status != READY && t->status != BACKLOG))
		return;
	t->status = NEEDS_HELP;
	t->blocker_reason =
		arena_printf(w->call.arena, "its dependency %s does not exist",
			     arena_cstr(w->call.arena, list_ids(f->depends, w->call.arena)));
	act_log(w, l, "needs_help", t->blocker_reason);
}

static int repair_counts(struct repair_job *m, struct act *w, const struct recount *c,
			 struct str key)
{
	struct record_counts_fault f;
	struct loaded *l;
	int r = act_load_key(w, key, &l);

	if (r)
		return r < 0 ? r : 0;
	if (!record_counts_compare(c, l->rec, &f, w->call.arena))
		return 0;
	m->n++;
	l->dirty = true;
	if (f.depends.n || f.parent)
		cut_links(w, l, &f);
	if (f.counts) {
		record_counts_correct(&l->task, &f);
		act_log(w, l, "repaired", f.text);
	}
	ask_for_help(w, l, &f);
	if (graph_settle(&l->task, STR(""), w->e->now, w->call.arena))
		act_log(w, l, "needs_help", l->task.blocker_reason);
	return 0;
}

/* --- one change ------------------------------------------------------------------------------------------ */

static struct act act_of(struct repair_job *m, struct edit *e, struct request *rq)
{
	struct act w = { .call = { .rq = rq, .policy = &m->q->config.policy, .arena = e->arena },
			 .ans = &m->said };

	*rq = (struct request){ .op = OP_REMOVE };
	GIVE(rq, id,
	     ANY_BAD); /* the change removes bad locks of the whole queue, so these do not stop it */
	GIVE(rq, agent, m->agent);
	GIVE(rq, part_of, TYPED_MAINTENANCE);
	if (m->run.n)
		GIVE(rq, run, m->run);
	w.pass[TYPED_MAINTENANCE] = m->pass;
	act_begin(&w, e);
	m->said = (struct answer){ 0 };
	m->n = 0;
	m->more = false;
	return w;
}

/* The backup shows the state before the repairs only if no other agent has changed the queue
 * since. So a repair stops if it lost @maintenance. */
static int still_locked(struct repair_job *m, struct act *w)
{
	struct loaded *l = NULL;
	int r = act_load_key(w, STR("lock/@maintenance"), &l);

	if (r < 0)
		return r;
	if (!r && lease_owned(&l->task.lock, m->pass, w->e->now))
		return 0;
	return act_refuse(w, LOST_LOCK, STR("the lock @maintenance was lost during the repair"),
			  STR("run pawl doctor --fix again"));
}

static int repair_all(struct repair_job *m, struct act *w, const struct choice *c)
{
	int r = 0;

	m->first = c->keys.n ? arena_str(m->arena, c->keys.v[0]) : STR("");
	for (size_t i = 0; !r && i < c->keys.n; i++)
		r = c->record_counts ? repair_counts(m, w, c->record_counts, c->keys.v[i])
				     : repair_record(m, w, c->keys.v[i]);
	if (!r)
		r = act_flush(w);
	if (!r && (m->failed = m->sink->settle(m->sink->ctx)))
		r = STORE_IO;
	return r;
}

/* A bad lock of the whole queue counts as held, so @maintenance could not be acquired. Only this
 * phase runs without it. */
static int repair_locks(struct repair_job *m, struct act *w)
{
	struct query others = { .pick = PICK_OTHERS, .body = true };
	struct choice c = { .m = m, .e = w->e };
	int r = edit_scan(w->e, &others, repair_choose, &c);

	if (!r && c.keys.n)
		r = guard_check(w);
	return r ? r : repair_all(m, w, &c);
}

/* Repairs numbers before tasks, because a task that needs a new id uses the counter. */
static int repair_records(struct repair_job *m, struct act *w)
{
	struct query others = { .pick = PICK_OTHERS, .body = true }, tasks = { .body = true };
	struct choice c = { .m = m, .e = w->e };
	int r = edit_scan(w->e, &others, repair_choose, &c);

	if (!r && !c.keys.n)
		r = edit_scan(w->e, &tasks, repair_choose, &c);
	else
		m->more = true; /* the next change repairs the tasks */
	return r ? r : repair_all(m, w, &c);
}

static int repair_tally(struct repair_job *m, struct act *w)
{
	struct query tasks = { 0 };
	struct recount record_counts;
	struct choice c = { .m = m, .e = w->e, .record_counts = &record_counts };
	int r = record_counts_take(&record_counts, NULL, w->e);

	if (!r)
		r = edit_scan(w->e, &tasks, repair_choose, &c);
	if (!r)
		r = repair_all(m, w, &c);
	recount_free(&record_counts);
	return r;
}

/* The texts of a refusal must outlive the change. */
static int repair_refused(struct repair_job *m, int r)
{
	m->said.message = arena_str(m->arena, m->said.message);
	m->said.hint = arena_str(m->arena, m->said.hint);
	m->said.task = NULL;
	m->said.text = STR("");
	return r;
}

static int repair_run(struct edit *e, void *ctx)
{
	struct repair_job *m = ctx;
	struct request rq;
	struct act w = act_of(m, e, &rq);
	int r = m->phase == PHASE_LOCKS ? repair_locks(m, &w) : guard_check(&w);

	if (!r && m->phase != PHASE_LOCKS)
		r = still_locked(m, &w);
	if (!r && m->phase == PHASE_RECORDS)
		r = repair_records(m, &w);
	if (!r && m->phase == PHASE_COUNTS)
		r = repair_tally(m, &w);
	if (r == BAD)
		r = act_refuse(&w, MISCONFIGURED,
			       STR("a record that the repair needs cannot be used"),
			       STR("pawl doctor names it"));
	if (r > 0)
		return repair_refused(m, r);
	m->said = (struct answer){ 0 };
	return r ? r : w.writes ? 0 : REFUSED;
}

/* --- all of them -------------------------------------------------------------------------------------------- */

static enum result cannot_save(struct repair_job *m)
{
	answer_fail(&m->said, API_ERROR,
		    arena_printf(m->arena, "a record that cannot be repaired cannot be saved: %s",
				 strerror(-m->failed)),
		    STR("check the permissions and the free space of the folder for backups"));
	m->said.applied = 'n';
	return m->said.code;
}

/* Stops when a change finds the same first record as the change before, because its repair had
 * no effect. Otherwise the loop would never end. */
static enum result run_phase(struct repair_job *m, size_t *n)
{
	struct queue *q = m->q;
	struct str before;

	m->first = STR("");
	do {
		struct change c = { .fn = repair_run, .ctx = m };
		int r;

		before = m->first;
		q->err = (struct store_error){ 0 };
		r = q->store->ops->modify(q->store, &c, 1);
		if (m->failed)
			return cannot_save(m);
		if (r < 0)
			return fault_answer(&q->err, &m->said, m->arena);
		if (m->said.code != SUCCESS)
			return m->said.code;
		*n += m->n;
	} while (m->more && !str_eq(before, m->first));
	return SUCCESS;
}

static enum result repair_store(struct queue *q, enum repair_step step,
				const struct repair_sink *sink, struct answer *ans, struct arena *a)
{
	const struct store_ops *ops = q->store->ops;

	q->err = (struct store_error){ 0 };
	return ops->repair && ops->repair(q->store, step, sink) ? fault_answer(&q->err, ans, a)
								: SUCCESS;
}

enum result queue_repair(struct queue *q, enum repair_step step, const struct repair_sink *sink,
			 struct str agent, struct str run, size_t *n, struct answer *ans,
			 struct arena *a)
{
	struct repair_job m = { .q = q, .sink = sink, .agent = agent, .run = run, .arena = a };
	enum result code;

	*n = 0;
	if (q->remote)
		return remote_refuse("a repair", ans, a);
	code = repair_store(q, step, sink, ans, a);
	if (q->config.pass)
		m.pass = q->config.pass(q->config.pass_ctx, TYPED_MAINTENANCE, a);
	m.pass = m.pass.n ? token_hash(a, m.pass) : m.pass;
	if (q->config.policy.locks_only)
		return code; /* the tasks belong to another program */
	m.phase = step == REPAIR_BLOCKS ? PHASE_LOCKS : PHASE_RECORDS;
	if (code == SUCCESS)
		code = run_phase(&m, n);
	m.phase = PHASE_COUNTS;
	if (code == SUCCESS && step == REPAIR_DATA)
		code = run_phase(&m, n);
	if (m.said.code != SUCCESS)
		*ans = m.said;
	return code;
}

/* --- counts ----------------------------------------------------------------------------------- */

/* Every count that a task stores. graph.c says which tasks add to each count. */
static const struct {
	const char *name;
	size_t offset;
} counts[RECORD_COUNTS] = {
	{ "open_depends", offsetof(struct task, open_deps) },
	{ "canceled_depends", offsetof(struct task, canceled_deps) },
	{ "open_subtasks", offsetof(struct task, open_subs) },
};

static int64_t *count_of(struct task *t, size_t i)
{
	return (int64_t *)((char *)t + counts[i].offset);
}

/* --- taking it --------------------------------------------------------------------------------------- */

/* The status is in the small part of the record, so a recount reads no texts. 0: unknown. */
static int64_t status_of(const struct record *r)
{
	struct arena a = { 0 };
	struct task t = { 0 };
	int64_t status = 0;

	if (r->hot.n && !task_unpack(r->hot, &t, &a) && t.status > 0 && t.status < STATUS_END)
		status = t.status;
	arena_free(&a);
	return status;
}

static int add_record(const struct record *r, void *ctx)
{
	if (str_starts(r->key, STR("task/")))
		recount_add(ctx, r->key, r->ix.parent, status_of(r));
	return 0;
}

int record_counts_take(struct recount *c, struct store *s, struct edit *e)
{
	struct query all = { .pick = PICK_ALL };

	*c = (struct recount){ .rules = &queue_rules };
	return e ? edit_scan(e, &all, add_record, c) : s->ops->scan(s, &all, add_record, c);
}

/* --- comparing ----------------------------------------------------------------------------------------- */

static struct strs missing_depends(const struct recount *c, struct strs keys, struct arena *a)
{
	struct strs out = { 0 };

	for (size_t i = 0; i < keys.n; i++) {
		struct str id = keys.v[i];

		if (recount_find(c, id))
			continue;
		if (!out.v)
			out.v = arena_array(a, struct str, keys.n);
		(void)str_cut_prefix(&id, STR("task/"));
		out.v[out.n++] = arena_str(a, id);
	}
	return out;
}

static void compare_counts(struct task *have, struct task *right, struct record_counts_fault *out,
			   struct arena *a)
{
	for (size_t i = 0; i < RECORD_COUNTS; i++) {
		int64_t is = *count_of(have, i), should = *count_of(right, i);

		out->right[i] = should;
		if (is == should)
			continue;
		out->counts = true;
		out->text = arena_printf(a, "%.*s%s%s is %lld and should be %lld", STRF(out->text),
					 out->text.n ? ", " : "", counts[i].name, (long long)is,
					 (long long)should);
	}
}

bool record_counts_compare(const struct recount *c, const struct record *r,
			   struct record_counts_fault *out, struct arena *a)
{
	const struct recount_entry *e = recount_find(c, r->key);
	struct task have = { 0 }, right = { 0 };

	*out = (struct record_counts_fault){ 0 };
	if (!e || !e->status || task_unpack(arena_str(a, r->hot), &have, a))
		return false;
	out->parent = r->ix.parent.n && !recount_find(c, r->ix.parent);
	out->depends = missing_depends(c, r->ix.depends, a);
	if (recount_task(c, r->key, r->ix.depends, &right))
		compare_counts(&have, &right, out, a);
	out->stuck = out->depends.n && have.open_deps > right.open_deps;
	return out->parent || out->depends.n || out->counts;
}

void record_counts_correct(struct task *t, const struct record_counts_fault *f)
{
	for (size_t i = 0; f->counts && i < RECORD_COUNTS; i++)
		*count_of(t, i) = f->right[i];
}

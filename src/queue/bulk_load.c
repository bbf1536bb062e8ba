/* Loads a whole queue (restore, migrate) or clears it, in one commit or not at all. A restore
 * ends every task lock and raises every fence above those granted since the backup, so a token
 * from before the restore is refused. A clear keeps the fences. */
#include "base/os.h"
#include "core/lease.h"
#include "core/validate.h"
#include "queue/queue_private.h"
#include "queue/remote_queue.h"

#define PIECE 64
#define FENCE_COMES_IN (EXACT_MAX - EXACT_ROOM) /* leaves room for later claims */

struct loading {
	struct bulk bulk;
	struct load *load; /* NULL: clear the queue and load nothing */
	bool force;
	size_t have;    /* number of entries of the load that the log already has */
	size_t line;    /* index of the next entry of the load */
	size_t n, done; /* tasks removed; items loaded */
};

struct piece {
	struct loading *b;
	bool first, clears, last; /* last: the last piece that clears, or the last that loads */
	bool ends;                /* the last piece of all */
};

/* --- removing --------------------------------------------------------------------------------------- */

/* A bad record has no holder. Its fence is unknown, so a new task with its id gets a high one. */
static int clear_bad(struct loading *b, struct act *w, struct str key)
{
	struct record *rec;
	struct loaded *l;
	int r = edit_get(w->e, key, &rec);

	if (r)
		return r;
	l = bad_salvage(w, rec);
	if (l->task.id.n)
		gone_put(w, l, FENCE_UNKNOWN);
	edit_drop(w->e, key);
	w->writes++;
	b->n++;
	return 0;
}

static int clear_task(struct loading *b, struct act *w, struct str key)
{
	struct loaded *l;
	int r = act_load_key(w, key, &l);

	if (r == BAD)
		return clear_bad(b, w, key);
	if (r)
		return r;
	if (!b->force && lease_live(&l->task.lock, w->e->now))
		return bulk_refuse(&b->bulk, MISCONFIGURED,
				   arena_printf(w->call.arena, "%.*s is held by %.*s",
						STRF(l->task.id), STRF(l->task.lock.holder)),
				   STR("wait until it is done, or pass --force to end its lock"));
	if (!b->load)
		act_log(w, l, "removed", STR("with all others"));
	if (b->load)
		l->task.chain = STR("");
	gone_put(w, l, l->task.fence);
	act_drop(w, l);
	b->n++;
	return 0;
}

/* After a restore every chain starts again, because the log gets lines of another time. The fence stays. */
static int restart_chain(struct act *w, struct str key)
{
	int64_t fence;
	int r = number_get(w, key, &fence);

	if (!r)
		number_put(w, key, fence);
	return r < 0 ? r : 0;
}

static int restart_lock(struct act *w, struct str key)
{
	struct loaded *l;
	int r = act_load_key(w, key, &l);

	if (r)
		return r < 0 ? r : 0;
	l->task.chain = STR("");
	l->dirty = true;
	return 0;
}

/* Drops what describes the replaced state: the earlier states of tasks that an undo would restore, and before a restore
 * also the answers kept for request ids. */
static int clear_others(struct loading *b, struct act *w)
{
	struct query q = { .pick = PICK_OTHERS };
	struct strs keys = { 0 };
	int r = act_keys(w, &q, &keys);

	for (size_t i = 0; r >= 0 && i < keys.n; i++)
		if (str_starts(keys.v[i], UNDO_SPACE) ||
		    (b->load && str_starts(keys.v[i], STR("request/")))) {
			edit_drop(w->e, keys.v[i]);
			w->writes++;
		} else if (!b->load) { /* a clear ends no chain */
			continue;
		} else if (str_starts(keys.v[i], STR("gone/"))) {
			r = restart_chain(w, keys.v[i]);
		} else if (str_starts(keys.v[i], STR("lock/"))) {
			r = restart_lock(w, keys.v[i]);
		}
	return r;
}

static int clear_piece(struct loading *b, struct act *w, bool rest)
{
	struct query q = { .limit = rest ? 0 : PIECE };
	struct strs keys = { 0 };
	int r = act_keys(w, &q, &keys);

	for (size_t i = 0; !r && i < keys.n; i++)
		r = clear_task(b, w, keys.v[i]);
	if (!r && rest)
		r = clear_others(b, w);
	return r;
}

/* --- loading ---------------------------------------------------------------------------------------- */

/* An upper bound on acquisitions since the backup: no store makes a thousand in a millisecond. */
static int64_t fence_gap(const struct loading *b, int64_t now)
{
	int64_t made_at = b->load->made_at, ms;

	if (made_at < 0 || made_at > now)
		made_at = now;
	ms = now - made_at;
	return (ms < 1000 ? 1000 : ms) * 1000;
}

/* Ends the restored lock and raises the fence, because a token from before must be refused. */
static int age_task(struct loading *b, struct act *w, struct loaded *l)
{
	int64_t gone;
	int r = old_fence(w, l, &gone);

	if (l->task.lock.holder.n)
		lease_clear(&l->task, w->e->now);
	l->task.fence += fence_gap(b, w->e->now);
	if (gone > l->task.fence)
		l->task.fence = gone;
	l->task.chain = STR("");
	return r;
}

/* A restore skips a bad record, because the backup may be the only one. A migration must copy
 * every record, so a bad one refuses it. */
static int leave_out(struct loading *b, struct act *w, struct str key, const char *fault)
{
	if (b->load->restore) {
		b->load->left_out++;
		return 0;
	}
	return bulk_refuse(&b->bulk, MISCONFIGURED,
			   arena_printf(w->call.arena, "the record %s cannot be used: %s",
					arena_cstr(w->call.arena, bad_shown(key, w->call.arena)),
					fault),
			   STR("pawl doctor, on the source, says how to remove it"));
}

static int load_task(struct loading *b, struct act *w, const struct record *rec)
{
	struct loaded *l;
	struct task t = { 0 };
	const char *fault;

	(void)task_of(rec, &t, w->call.arena);
	fault = b->load->restore ? room_fault(&t, w->call.arena) : NULL;
	if (b->load->restore && !fault && t.fence > FENCE_COMES_IN - fence_gap(b, w->e->now))
		fault = "its fence is too high";
	if (fault)
		return leave_out(b, w, rec->key, fault);
	b->load->tasks++;
	l = act_new(w, t.id);
	l->task = l->old = t;
	l->was = l->logged = t.status;
	return b->load->restore ? age_task(b, w, l) : 0;
}

static int load_number(struct loading *b, struct act *w, const struct record *rec)
{
	int64_t now, then;
	int r = number_get(w, rec->key, &now);

	if (r == BAD)
		r = 0; /* the load replaces a damaged number */
	if (r)
		return r;
	(void)number_valid(rec->hot, &then);
	if (str_starts(rec->key, STR("gone/")))
		then += fence_gap(b, w->e->now);
	if (then > FENCE_COMES_IN)
		return leave_out(b, w, rec->key, "its number is too high");
	if (then > now)
		number_put(w, rec->key, then);
	return 0;
}

static int load_record(struct loading *b, struct act *w, const struct record *rec)
{
	const char *fault = record_fault(rec, w->call.arena);
	struct record *r;

	if (fault)
		return leave_out(b, w, rec->key, fault);
	if (is_task(rec->key))
		return load_task(b, w, rec);
	if (b->load->restore &&
	    (str_starts(rec->key, STR("gone/")) || str_eq(rec->key, COUNTER_KEY)))
		return load_number(b, w, rec);
	if (b->load->restore && !str_starts(rec->key, STR("request/")))
		return 0; /* the current record stays, such as a lock of the whole queue */
	r = record_copy(w->call.arena, rec);
	r->body_changed = true;
	edit_put(w->e, r);
	w->writes++;
	return 0;
}

/* The lines between `restoring` and `restored` were written at another time, and continue other chains. */
static int note_start(struct loading *b, struct act *w)
{
	const struct event ev = {
		.name = STR("restoring"),
		.agent = b->bulk.agent,
		.run = b->bulk.run,
		.text = STR("the log's lines from here to `restored` come from the backup"),
	};

	return act_queue_event(w, &ev);
}

static int load_line(struct loading *b, struct act *w, const struct entry *en)
{
	bool clamp = b->load->restore && en->at > w->e->now;
	struct event ev;
	int r = 0;

	if (b->line++ < b->have)
		return 0;
	if (b->load->restore && b->line == b->have + 1)
		r = note_start(b, w);
	if (r)
		return r;
	if ((en->key.n && key_fault(en->key)) || event_of(en, &ev))
		return leave_out(b, w, en->key, "it is not an entry of an event log");
	edit_log_at(w->e, clamp ? w->e->now : en->at, en->key, en->data);
	w->writes++;
	return 0;
}

static int load_piece(struct loading *b, struct act *w)
{
	int r = 0;

	for (int i = 0; !r && i < PIECE; i++) {
		struct item it = { 0 };
		int got = b->load->next(b->load->ctx, &it, w->call.arena);

		if (got > 0)
			break;
		if (got < 0)
			return bulk_refuse(&b->bulk, API_ERROR,
					   arena_printf(w->call.arena, "cannot read the backup: %s",
							strerror(-got)),
					   STR("nothing was changed"));
		if (it.line)
			r = load_line(b, w, &it.entry);
		else
			r = load_record(b, w, &it.rec);
		b->done++;
	}
	if (!r && b->load->progress)
		b->load->progress(b->load->progress_ctx, b->done);
	return r;
}

static int note_restore(struct loading *b, struct act *w)
{
	struct event ev = { .name = STR("restored"), .agent = b->bulk.agent, .run = b->bulk.run };

	ev.text = arena_printf(w->call.arena,
			       "loaded %zu records from a backup; replaced %zu tasks",
			       b->load->records, b->n);
	number_put(w, RELOGGED_KEY, w->e->now);
	return act_queue_event(w, &ev);
}

/* --- the change ------------------------------------------------------------------------------------ */

static void start_again(struct loading *b)
{
	b->n = b->done = b->line = 0;
	if (b->load) {
		b->load->rewind(b->load->ctx);
		b->load->left_out = b->load->tasks = 0;
	}
}

static int run_piece(struct edit *e, void *ctx)
{
	struct piece *p = ctx;
	struct loading *b = p->b;
	struct request rq = { .op = OP_REMOVE };
	struct answer said = { 0 };
	struct act w = bulk_act(&b->bulk, e, &rq, &said);
	int r = 0;

	GIVE(&rq, part_of, TYPED_MAINTENANCE);
	if (p->first) {
		start_again(b);
		/* a migration's empty queue has a lock only if another process was first */
		r = bulk_begin(&b->bulk, &w);
	}
	if (!r)
		r = p->clears ? clear_piece(b, &w, p->last) : load_piece(b, &w);
	if (!r && p->ends && b->load && b->load->restore)
		r = note_restore(b, &w);
	if (!r && (r = act_flush(&w)) > 0)
		r = bulk_refuse(&b->bulk, said.code, said.message, said.hint);
	return r ? r : w.writes ? 0 : REFUSED;
}

/* Does not count a migration, because a migration is not a call on its target. */
static int kind_of(const struct loading *b)
{
	if (!b->load)
		return HEALTH_CLEAR;
	return b->load->restore ? HEALTH_RESTORE : 0;
}

static enum result run_pieces(struct loading *b, size_t clears, size_t loads)
{
	size_t n = clears + loads;
	struct change *changes = arena_array(b->bulk.arena, struct change, n);
	struct piece *pieces = arena_array(b->bulk.arena, struct piece, n);

	for (size_t i = 0; i < n; i++) {
		pieces[i] = (struct piece){ .b = b,
					    .first = i == 0,
					    .clears = i < clears,
					    .last = i + 1 == clears,
					    .ends = i + 1 == n };
		changes[i] = (struct change){ .fn = run_piece, .ctx = &pieces[i] };
	}
	return bulk_run(&b->bulk, changes, n, kind_of(b));
}

static enum result bulk_load_clearing(struct queue *q, size_t *pieces, struct answer *ans,
				      struct arena *a)
{
	int64_t n;
	int r = q->store->ops->count(q->store, &(struct query){ 0 }, &n);

	*pieces = (size_t)n / PIECE + 1;
	return r < 0 ? read_fault_answer(q->store, r, ans, a) : SUCCESS;
}

enum result queue_clear(struct queue *q, bool force, struct str agent, struct str run, int64_t *n,
			struct answer *ans, struct arena *a)
{
	struct loading b = { .bulk = { .q = q, .agent = agent, .run = run, .ans = ans, .arena = a },
			     .force = force };
	size_t pieces;
	enum result code;

	if (q->remote)
		return q->far->clear(q->remote, force, agent, run, n, ans, a);
	code = bulk_load_clearing(q, &pieces, ans, a);
	if (code == SUCCESS)
		code = run_pieces(&b, pieces, 0);
	*n = (int64_t)b.n;
	return code;
}

enum result queue_load(struct queue *q, struct load *l, struct answer *ans, struct arena *a)
{
	struct loading b = {
		.bulk = { .q = q, .agent = l->agent, .run = l->run, .ans = ans, .arena = a },
		.load = l,
		.force = l->force
	};
	struct dump_log log = { .load = l };
	size_t clears = 0;
	enum result code;
	int r = 0;

	if (q->remote)
		return q->far->load(q->remote, l, false, ans, a);
	code = l->restore ? bulk_load_clearing(q, &clears, ans, a) : SUCCESS;
	if (code == SUCCESS && l->restore)
		r = dump_compare(q, &log);
	if (r < 0)
		return read_fault_answer(q->store, r, ans, a);
	b.have = log.same;
	return code == SUCCESS ? run_pieces(&b, clears, (l->records + l->lines) / PIECE + 1) : code;
}

/* --- bulk ------------------------------------------------------------------------------------- */

/* Runs a change of any number of tasks in many pieces, in one commit: all of them or none. */

int bulk_refuse(struct bulk *b, enum result code, struct str text, struct str hint)
{
	b->refused = true;
	answer_fail(b->ans, code, arena_str(b->arena, text), arena_str(b->arena, hint));
	return STORE_UNSUPPORTED; /* a fault rolls back the whole change */
}

struct act bulk_act(struct bulk *b, struct edit *e, struct request *rq, struct answer *said)
{
	struct act w = { .call = { .rq = rq, .policy = &b->q->config.policy, .arena = e->arena },
			 .ans = said };

	GIVE(rq, agent, b->agent);
	if (b->run.n)
		GIVE(rq, run, b->run);
	memcpy(w.pass, b->self.pass, sizeof(w.pass));
	act_begin(&w, e);
	return w;
}

int bulk_begin(struct bulk *b, struct act *w)
{
	int r;

	b->self.began_ns = os_monotonic_ns();
	b->refused = false;
	r = guard_check(w);
	if (r <= 0)
		return r;
	b->said = *w->ans;
	b->said.message = arena_str(b->arena, w->ans->message);
	b->said.hint = arena_str(b->arena, w->ans->hint);
	b->said.text = STR("");
	b->refused = true;
	return STORE_UNSUPPORTED;
}

enum result bulk_run(struct bulk *b, struct change *pieces, size_t n, int kind)
{
	struct queue *q = b->q;
	int64_t deadline = 0, asked = os_monotonic_ns();
	int r;

	b->self.ans = &b->said;
	b->self.call.arena = b->arena;
	do {
		*b->ans = b->said = (struct answer){ 0 };
		b->refused = false;
		q->err = (struct store_error){ 0 };
		store_trial(q->store, b->trial);
		r = q->store->ops->modify(q->store, pieces, n);
		store_trial(q->store, false);
	} while (b->said.barred && guard_wait(q, &b->self, &deadline));
	if (kind)
		health_count_bulk(q, &b->self, (enum health_kind)kind, asked, r < 0 && !b->refused);
	if (r >= 0)
		return SUCCESS;
	if (b->said.code != SUCCESS)
		*b->ans = b->said;
	return b->refused ? b->ans->code : read_fault_answer(q->store, r, b->ans, b->arena);
}

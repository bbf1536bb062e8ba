/* Counters in shared memory. Every process that changes the queue updates them with atomic instructions, so counting costs no
 * lock and no commit. The memory also holds notes about the last refusals. A reader ignores a note whose checksum is wrong. */
#include <stdatomic.h>

#include "base/os.h"
#include "base/text.h"
#include "queue/queue_private.h"
#include "store/local/batch_counts.h"

struct op_counts {
	_Atomic uint64_t done, failed, wait_us, wait_max_us, held, hold_us, hold_max_us;
	_Atomic uint32_t waits[HEALTH_RANGES];
};

#define NOTE_WORDS (sizeof(struct health_refusal) / sizeof(uint64_t))
#define NOTES 2

/* Several processes may write a note at the same time, and a writer may die half-way, so readers
 * ignore a note whose checksum is wrong. */
struct refusal_note {
	_Atomic uint64_t sum, word[NOTE_WORDS];
};

/* Existing files have this layout, so HEALTH_OPS never changes, and new fields go to the end. */
struct queue_counts {
	_Atomic uint64_t failures;
	_Atomic int64_t last_failed[16];
	struct op_counts op[HEALTH_OPS];
	_Atomic uint64_t refused;
	struct refusal_note last_refused[NOTES];
};

_Static_assert((int)OP_END <= (int)HEALTH_BATCH && HEALTH_END <= HEALTH_OPS &&
		       sizeof(struct queue_counts) <= COUNTS_ROOM,
	       "the counters fit");
_Static_assert(sizeof(struct health_refusal) % sizeof(uint64_t) == 0, "a note is whole words");

static struct queue_counts *counts_of(struct store *s)
{
	struct store_counts *c = s->ops->counts ? s->ops->counts(s) : NULL;

	return c ? (struct queue_counts *)(void *)c->room : NULL;
}

static void health_counters_add(_Atomic uint64_t *n, int64_t by)
{
	atomic_fetch_add_explicit(n, by > 0 ? (uint64_t)by : 0, memory_order_relaxed);
}

static void raise_to(_Atomic uint64_t *n, int64_t to)
{
	uint64_t was = atomic_load_explicit(n, memory_order_relaxed);

	while (to > 0 && was < (uint64_t)to &&
	       !atomic_compare_exchange_weak_explicit(n, &was, (uint64_t)to, memory_order_relaxed,
						      memory_order_relaxed))
		;
}

static void count_wait(struct op_counts *o, int64_t us)
{
	health_counters_add(&o->wait_us, us);
	raise_to(&o->wait_max_us, us);
	atomic_fetch_add_explicit(&o->waits[health_range(us)], 1, memory_order_relaxed);
}

static struct op_counts *counts_for(struct queue_counts *c, const struct act *w)
{
	return &c->op[w->kind ? w->kind : (int)w->call.rq->op];
}

/* --- refused acquisitions ------------------------------------------------------------------------ */

union note {
	struct health_refusal refusal;
	uint64_t word[NOTE_WORDS];
};

static uint64_t note_sum(const union note *n)
{
	uint64_t h = 0xcbf29ce484222325u; /* FNV-1a, a word at a time */

	for (size_t i = 0; i < NOTE_WORDS; i++)
		h = (h ^ n->word[i]) * 0x100000001b3u;
	return h;
}

/* The holder's name in a foreign lock may have any length. Never cuts inside a character. */
static void put_text(char *to, size_t room, struct str s)
{
	if (s.n >= room)
		for (s.n = room - 1; s.n && ((unsigned char)s.p[s.n] & 0xc0) == 0x80; s.n--)
			;
	for (size_t i = 0; i < s.n; i++)
		to[i] = s.p[i];
}

static bool health_counters_acquires(const struct request *rq)
{
	if (rq->op == OP_STATUS)
		return rq->status == IN_PROGRESS;
	return op_flags(rq->op) & OP_TAKES && rq->op != OP_DONE;
}

static void write_note(struct refusal_note *at, const union note *n)
{
	for (size_t i = 0; i < NOTE_WORDS; i++)
		atomic_store_explicit(&at->word[i], n->word[i], memory_order_relaxed);
	atomic_store_explicit(&at->sum, note_sum(n), memory_order_relaxed);
}

/* Notes a refusal in shared memory only, because a refusal must not cost a commit. */
static void count_refused(struct queue_counts *c, const struct act *w)
{
	const struct answer *ans = w->ans;
	union note n = { .refusal = { .at = os_wall_ms() } };
	uint64_t at;

	if (w->kind || !health_counters_acquires(w->call.rq) ||
	    (ans->code != CONFLICT && !ans->barred))
		return;
	n.refusal.op = w->call.rq->op;
	put_text(n.refusal.agent, sizeof(n.refusal.agent), w->call.rq->agent);
	if (ans->barred) {
		n.refusal.task[0] = '@';
		put_text(n.refusal.task + 1, sizeof(n.refusal.task) - 1,
			 str_c(typed_name((enum typed)ans->barred)));
		put_text(n.refusal.holder, sizeof(n.refusal.holder), ans->text);
	} else if (ans->task) {
		put_text(n.refusal.task, sizeof(n.refusal.task), ans->task->id);
		put_text(n.refusal.holder, sizeof(n.refusal.holder), ans->task->lock.holder);
	}
	at = atomic_fetch_add_explicit(&c->refused, 1, memory_order_relaxed);
	write_note(&c->last_refused[at % NOTES], &n);
}

/* Checks every field, because any process with write access may have written to the file. */
static bool health_counters_sound(const union note *n, uint64_t sum)
{
	const struct health_refusal *r = &n->refusal;

	return r->at > 0 && note_sum(n) == sum && r->op > OP_NONE && r->op < OP_END &&
	       !r->task[sizeof(r->task) - 1] && !r->holder[sizeof(r->holder) - 1] &&
	       !r->agent[sizeof(r->agent) - 1] && text_valid(str_c(r->task)) &&
	       text_valid(str_c(r->holder)) && text_valid(str_c(r->agent));
}

static void read_refused(const struct queue_counts *c, struct health *out)
{
	out->refused = (int64_t)c->refused;
	for (size_t k = 0; k < NOTES; k++) {
		union note n;

		for (size_t i = 0; i < NOTE_WORDS; i++)
			n.word[i] = c->last_refused[k].word[i];
		if (n.refusal.at > out->last_refused.at &&
		    health_counters_sound(&n, c->last_refused[k].sum))
			out->last_refused = n.refusal;
	}
}

/* --- add ----------------------------------------------------------------------------------------- */

static void count_failed(struct queue_counts *c, const struct act *w, int64_t asked_ns)
{
	struct op_counts *o = counts_for(c, w);
	uint64_t at = atomic_fetch_add_explicit(&c->failures, 1, memory_order_relaxed);

	atomic_store_explicit(&c->last_failed[at % 16], os_wall_ms(), memory_order_relaxed);
	health_counters_add(&o->failed, 1);
	count_wait(o, (os_monotonic_ns() - asked_ns) / 1000);
}

static void count_done(struct queue_counts *c, const struct act *w, int64_t asked_ns)
{
	struct op_counts *o = counts_for(c, w);
	int64_t hold = (w->ended_ns - w->began_ns) / 1000;

	health_counters_add(&o->done, 1);
	count_wait(o, (w->began_ns - asked_ns) / 1000);
	if (w->handed)
		return;
	health_counters_add(&o->held, 1);
	health_counters_add(&o->hold_us, hold);
	raise_to(&o->hold_max_us, hold);
}

void health_count(struct store *s, const struct act *acts, size_t n, int64_t asked_ns)
{
	struct queue_counts *c = n && s->env.opt.counting ? counts_of(s) : NULL;

	for (size_t i = 0; c && i < n; i++) {
		if (acts[i].failed) {
			count_failed(c, &acts[i], asked_ns);
		} else if (!acts[i].ans->barred) {
			count_done(c, &acts[i], asked_ns);
			count_refused(c, &acts[i]);
		}
	}
}

void health_count_failed(struct store *s, const struct act *acts, size_t n, int64_t asked_ns)
{
	struct queue_counts *c = s->env.opt.counting ? counts_of(s) : NULL;

	for (size_t i = 0; c && i < n; i++) {
		count_failed(c, &acts[i], asked_ns);
		count_refused(c, &acts[i]);
	}
}

void health_count_bulk(struct queue *q, struct act *w, enum health_kind kind, int64_t asked_ns,
		       bool failed)
{
	bool barred = !failed && w->ans->barred;

	if (barred && q->config.impatient)
		return; /* the caller repeats the call */
	w->kind = (int)kind;
	w->failed = failed;
	w->ended_ns = os_monotonic_ns();
	if (barred)
		health_count_failed(q->store, w, 1, asked_ns);
	else
		health_count(q->store, w, 1, asked_ns);
}

/* --- read ---------------------------------------------------------------------------------------- */

static void read_op(const struct op_counts *o, struct health_op *out)
{
	*out = (struct health_op){
		.done = (int64_t)o->done,
		.failed = (int64_t)o->failed,
		.wait_us = (int64_t)o->wait_us,
		.wait_max_us = (int64_t)o->wait_max_us,
		.held = (int64_t)o->held,
		.hold_us = (int64_t)o->hold_us,
		.hold_max_us = (int64_t)o->hold_max_us,
	};
	for (int i = 0; i < HEALTH_RANGES; i++)
		out->waits[i] = o->waits[i];
}

static void add_op(struct health_op *all, const struct health_op *o)
{
	all->done += o->done;
	all->failed += o->failed;
	all->wait_us += o->wait_us;
	all->held += o->held;
	all->hold_us += o->hold_us;
	if (o->wait_max_us > all->wait_max_us)
		all->wait_max_us = o->wait_max_us;
	if (o->hold_max_us > all->hold_max_us)
		all->hold_max_us = o->hold_max_us;
	for (int i = 0; i < HEALTH_RANGES; i++)
		all->waits[i] += o->waits[i];
}

bool health_read(struct store *s, struct health *out)
{
	const struct store_counts *of_store = s->ops->counts ? s->ops->counts(s) : NULL;
	const struct queue_counts *c;

	*out = (struct health){ 0 };
	if (!of_store)
		return false;
	c = (const struct queue_counts *)(const void *)of_store->room;
	for (int op = OP_NONE; op < HEALTH_OPS; op++) {
		read_op(&c->op[op], &out->op[op]);
		add_op(&out->all, &out->op[op]);
	}
	for (size_t i = 0; i < sizeof(out->last_failed) / sizeof(*out->last_failed); i++)
		out->last_failed[i] = c->last_failed[i];
	read_refused(c, out);
	out->commits = (int64_t)of_store->commits;
	out->changes = (int64_t)of_store->changes;
	out->handed = (int64_t)of_store->handed;
	return true;
}

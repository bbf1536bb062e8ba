/* Dumps a whole queue, every record and the event log, from one snapshot, and compares a queue
 * with a dump. `migrate` verifies its target here, so a copy that differs is reported. */
#include "queue/queue_private.h"

#include "format/task_form.h"
#include "queue/remote_queue.h"

/* --- out ------------------------------------------------------------------------------------------ */

struct dumping {
	struct store *store;
	item_fn *fn;
	void *ctx;
	int stopped;
};

static int dump_record(const struct record *r, void *ctx)
{
	struct dumping *x = ctx;
	struct item it = { .rec = *r };

	x->stopped = x->fn(x->ctx, &it);
	return x->stopped != 0;
}

static int dump_line(const struct entry *e, void *ctx)
{
	struct dumping *x = ctx;
	struct item it = { .line = true, .entry = *e };

	x->stopped = x->fn(x->ctx, &it);
	return x->stopped != 0;
}

static int dump_all(void *ctx)
{
	struct dumping *x = ctx;
	struct query tasks = { .body = true }, others = { .pick = PICK_OTHERS, .body = true };
	struct entry_query lines = { 0 };
	int r = x->store->ops->scan(x->store, &tasks, dump_record, x);

	if (!r && !x->stopped)
		r = x->store->ops->scan(x->store, &others, dump_record, x);
	if (!r && !x->stopped)
		r = x->store->ops->entries(x->store, &lines, dump_line, x);
	return r;
}

enum result queue_dump(struct queue *q, item_fn *fn, void *ctx, int *stopped, struct answer *ans,
		       struct arena *a)
{
	struct dumping x = { q->store, fn, ctx, 0 };
	int r;

	if (q->remote)
		return q->far->dump(q->remote, fn, ctx, stopped, ans, a);
	q->err = (struct store_error){ 0 };
	r = q->store->ops->snapshot(q->store, true, dump_all, &x);
	*stopped = x.stopped;
	return r < 0 ? read_fault_answer(q->store, r, ans, a) : SUCCESS;
}

struct extent {
	int64_t *tasks, *others, *lines;
};

static int count_item(void *ctx, const struct item *it)
{
	struct extent *n = ctx;

	++*(it->line ? n->lines : is_task(it->rec.key) ? n->tasks : n->others);
	return 0;
}

enum result queue_extent(struct queue *q, int64_t *tasks, int64_t *others, int64_t *lines,
			 struct answer *ans, struct arena *a)
{
	struct extent n = { tasks, others, lines };
	int stopped;

	*tasks = *others = *lines = 0;
	return queue_dump(q, count_item, &n, &stopped, ans, a);
}

/* --- which entries does the log have already? --------------------------------------------------------- */

static bool same_entry(const struct entry *a, const struct entry *b)
{
	return a->at == b->at && str_eq(a->key, b->key) && str_eq(a->data, b->data);
}

/* Reads the next entry of the load; skips records. */
static int next_line(struct dump_log *x, struct item *it)
{
	int got;

	do {
		arena_free(&x->arena);
		*it = (struct item){ 0 };
		got = x->load->next(x->load->ctx, it, &x->arena);
	} while (got == 0 && !it->line);
	return got;
}

static int compare_line(const struct entry *e, void *ctx)
{
	struct dump_log *x = ctx;
	struct item it;
	int got = next_line(x, &it);

	x->differs = got != 0 || !same_entry(e, &it.entry);
	x->same += !x->differs;
	return x->differs;
}

int dump_compare(struct queue *q, struct dump_log *x)
{
	struct entry_query all = { 0 };
	int r;

	x->load->rewind(x->load->ctx);
	r = q->store->ops->entries(q->store, &all, compare_line, x);
	arena_free(&x->arena);
	return r;
}

/* --- compare ------------------------------------------------------------------------------------------- */

static bool same_record(const struct record *want, const struct record *got, struct arena *a)
{
	struct task x = { 0 }, y = { 0 };

	if (!is_task(want->key))
		return str_eq(want->hot, got->hot) && str_eq(want->body, got->body);
	return !task_of(want, &x, a) && !task_of(got, &y, a) && task_same(&x, &y, HOT | BODY);
}

static enum result dump_differs(struct answer *ans, struct arena *a, const char *what,
				struct str key)
{
	return answer_fail(ans, MISCONFIGURED, arena_printf(a, "%s%.*s differs", what, STRF(key)),
			   STR("the source is unchanged; remove the target and migrate again"));
}

static enum result verify_records(struct queue *q, struct load *l, struct answer *ans,
				  struct arena *a)
{
	enum result code = SUCCESS;

	l->rewind(l->ctx);
	for (size_t i = 0; code == SUCCESS && i < l->records; i++) {
		struct arena mem = { 0 };
		struct item it = { 0 };
		struct record got;
		int r = l->next(l->ctx, &it, &mem);

		if (!r)
			r = q->store->ops->get(q->store, it.rec.key, &got, &mem);
		if (r < 0)
			code = read_fault_answer(q->store, r, ans, a);
		else if (r > 0 || !same_record(&it.rec, &got, &mem))
			code = dump_differs(ans, a, "the record ", it.rec.key);
		arena_free(&mem);
	}
	return code;
}

enum result queue_verify(struct queue *q, struct load *l, struct answer *ans, struct arena *a)
{
	struct dump_log log = { .load = l };
	int64_t tasks = 0, others = 0, lines = 0;
	enum result code;
	int r;

	if (q->remote)
		return q->far->load(q->remote, l, true, ans, a);
	code = queue_extent(q, &tasks, &others, &lines, ans, a);
	if (code == SUCCESS && (size_t)(tasks + others) != l->records)
		code = dump_differs(ans, a, "the number of records", STR(""));
	if (code == SUCCESS)
		code = verify_records(q, l, ans, a);
	if (code != SUCCESS)
		return code;
	r = dump_compare(q, &log);
	if (r < 0)
		return read_fault_answer(q->store, r, ans, a);
	if (log.differs || log.same != l->lines)
		return dump_differs(ans, a, "the log", STR(""));
	return SUCCESS;
}

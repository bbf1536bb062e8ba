#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/os.h"
#include "base/text.h"
#include "base/tty.h"
#include "store/wrap/wrap.h"

#define LINE_MAX_BYTES 4096
#define LINE_ARGS 2000 /* limit for the arguments, so that the result always fits */

struct trace {
	struct store base;
	struct store *inner;
	int fd;
};

static int64_t micros(void)
{
	return os_monotonic_ns() / 1000;
}

/* Writes the line with one call, so that the lines of several processes do not mix. A failed write must not change
 * the behaviour of the program. */
static void emit(int fd, struct buf *b)
{
	b->full = false;
	b->max++;
	buf_addc(b, '\n');
	(void)tty_write(fd, buf_str(b));
	buf_free(b);
}

static struct buf line_start(const char *call)
{
	struct buf b = BUF_MAX(LINE_ARGS);

	buf_addf(&b, "pawl-trace[%d]: %s", (int)getpid(), call);
	return b;
}

static void line_end(const struct trace *t, struct buf *b, int64_t began, int rc)
{
	int64_t took = micros() - began;
	const struct store_error *err = t->base.env.err;

	b->max = LINE_MAX_BYTES - 1;
	if (b->full) {
		b->full = false;
		buf_addf(b, " ...");
	}
	buf_addf(b, " = %d", rc);
	if (rc < 0 && err->fault == rc) {
		buf_addf(b, " [%c] ", err->applied ? err->applied : '-');
		text_visible(b, str_c(err->text), false);
	}
	buf_addf(b, " (%" PRId64 " us)", took);
	emit(t->fd, b);
}

static void add_word(struct buf *b, const char *name, struct str value)
{
	if (!value.n)
		return;
	buf_addf(b, " %s=", name);
	text_visible(b, value.n > 100 ? str_n(value.p, 100) : value, false);
}

static void add_query(struct buf *b, const struct query *q)
{
	static const char *const picks[] = { "all", "eligible", "later", "others" };

	buf_addf(b, " %s", picks[q->pick]);
	if (q->waiting)
		buf_addf(b, " waiting=%u", q->waiting);
	if (q->statuses)
		buf_addf(b, " statuses=%#x", q->statuses);
	if (q->class_rank)
		buf_addf(b, " class=%d", q->class_rank);
	if (q->held)
		buf_addf(b, " held");
	if (q->token.n)
		buf_addf(b, " token=(hidden)");
	add_word(b, "holder", q->holder);
	add_word(b, "type", q->type);
	add_word(b, "label", q->label);
	add_word(b, "parent", q->parent);
	add_word(b, "depends_on", q->depends_on);
	add_word(b, "text", q->text);
	add_word(b, "after", q->after);
	if (q->body)
		buf_addf(b, " body");
	if (q->limit)
		buf_addf(b, " limit=%zu", q->limit);
}

/* --- the calls ---------------------------------------------------------------------------------- */

static void t_close(struct store *s)
{
	struct trace *t = (struct trace *)s;
	struct buf b = line_start("close");
	int64_t began = micros();

	store_close(t->inner);
	t->base.env.err = &(struct store_error){ 0 };
	line_end(t, &b, began, 0);
	if (t->fd != STDERR_FILENO)
		close(t->fd);
	free(t);
}

static int64_t t_now(struct store *s)
{
	struct store *in = ((struct trace *)s)->inner;

	return in->ops->now(in);
}

static int t_get(struct store *s, struct str key, struct record *out, struct arena *a)
{
	struct trace *t = (struct trace *)s;
	struct buf b = line_start("get");
	int64_t began = micros();
	int rc = t->inner->ops->get(t->inner, key, out, a);

	add_word(&b, "key", key);
	if (rc == 0)
		buf_addf(&b, " rev=%" PRId64, out->rev);
	line_end(t, &b, began, rc);
	return rc;
}

struct counted {
	record_fn *fn;
	entry_fn *entry;
	void *ctx;
	size_t n;
};

static int count_record(const struct record *r, void *ctx)
{
	struct counted *c = ctx;

	c->n++;
	return c->fn(r, c->ctx);
}

static int count_entry(const struct entry *e, void *ctx)
{
	struct counted *c = ctx;

	c->n++;
	return c->entry(e, c->ctx);
}

static int t_scan(struct store *s, const struct query *q, record_fn *fn, void *ctx)
{
	struct trace *t = (struct trace *)s;
	struct counted c = { .fn = fn, .ctx = ctx };
	struct buf b = line_start("scan");
	int64_t began = micros();
	int rc = t->inner->ops->scan(t->inner, q, count_record, &c);

	add_query(&b, q);
	buf_addf(&b, ": %zu records", c.n);
	line_end(t, &b, began, rc);
	return rc;
}

static int t_count(struct store *s, const struct query *q, int64_t *n)
{
	struct trace *t = (struct trace *)s;
	struct buf b = line_start("count");
	int64_t began = micros();
	int rc = t->inner->ops->count(t->inner, q, n);

	add_query(&b, q);
	if (rc == 0)
		buf_addf(&b, ": %" PRId64, *n);
	line_end(t, &b, began, rc);
	return rc;
}

static int t_tally(struct store *s, int64_t *counts)
{
	struct trace *t = (struct trace *)s;
	struct buf b = line_start("tally");
	int64_t began = micros();
	int rc = t->inner->ops->tally(t->inner, counts);

	for (int i = 1; rc == 0 && i < STORE_STATUSES; i++)
		if (counts[i])
			buf_addf(&b, " %d:%" PRId64, i, counts[i]);
	line_end(t, &b, began, rc);
	return rc;
}

/* A change is a function, so its writes are known only after it has run. */
struct watched {
	struct change *change;
	struct buf *line;
};

static int watch_edit(struct edit *e, void *ctx)
{
	struct watched *w = ctx;
	size_t logged = 0;
	int rc = w->change->fn(e, w->change->ctx);

	buf_addf(w->line, " {");
	for (const struct edit_item *it = e->items; it; it = it->next)
		add_word(w->line, it->dropped ? "drop" : "put", it->rec.key);
	for (const struct edit_entry *n = e->entries; n; n = n->next)
		logged++;
	if (logged)
		buf_addf(w->line, " log=%zu", logged);
	buf_addf(w->line, " } %d", rc);
	return rc;
}

static int t_modify(struct store *s, struct change *changes, size_t n)
{
	struct trace *t = (struct trace *)s;
	struct change *inner = mem_alloc(n * sizeof(*inner));
	struct watched *w = mem_alloc(n * sizeof(*w));
	struct buf b = line_start("modify");
	int64_t began = micros();
	int rc;

	for (size_t i = 0; i < n; i++) {
		w[i] = (struct watched){ &changes[i], &b };
		inner[i] = (struct change){ .fn = watch_edit,
					    .ctx = &w[i],
					    .wants = changes[i].wants };
	}
	rc = t->inner->ops->modify(t->inner, inner, n);
	for (size_t i = 0; i < n; i++)
		changes[i].rc = inner[i].rc;
	line_end(t, &b, began, rc);
	free(inner);
	free(w);
	return rc;
}

static int t_entries(struct store *s, const struct entry_query *q, entry_fn *fn, void *ctx)
{
	struct trace *t = (struct trace *)s;
	struct counted c = { .entry = fn, .ctx = ctx };
	struct buf b = line_start("entries");
	int64_t began = micros();
	int rc = t->inner->ops->entries(t->inner, q, count_entry, &c);

	add_word(&b, "key", q->key);
	add_word(&b, "after", q->after);
	if (q->last)
		buf_addf(&b, " last=%zu", q->last);
	if (q->since)
		buf_addf(&b, " since=%lld", (long long)q->since);
	if (q->until)
		buf_addf(&b, " until=%lld", (long long)q->until);
	buf_addf(&b, ": %zu entries", c.n);
	line_end(t, &b, began, rc);
	return rc;
}

static int t_snapshot(struct store *s, bool all, int (*fn)(void *ctx), void *ctx)
{
	struct trace *t = (struct trace *)s;
	struct buf b = line_start("snapshot");
	int64_t began = micros();
	int rc = t->inner->ops->snapshot(t->inner, all, fn, ctx);

	line_end(t, &b, began, rc);
	return rc;
}

static int t_wake_fd(struct store *s)
{
	struct store *in = ((struct trace *)s)->inner;

	return in->ops->wake_fd(in);
}

static void t_wake_clear(struct store *s)
{
	struct store *in = ((struct trace *)s)->inner;

	in->ops->wake_clear(in);
}

static int t_check(struct store *s, check_fn *fn, void *ctx)
{
	struct trace *t = (struct trace *)s;
	struct buf b = line_start("check");
	int64_t began = micros();
	int rc = t->inner->ops->check(t->inner, fn, ctx);

	line_end(t, &b, began, rc);
	return rc;
}

static int t_mend(struct store *s, enum mend_step step, const struct mend_sink *sink)
{
	struct trace *t = (struct trace *)s;
	struct buf b = line_start("mend");
	int64_t began = micros();
	int rc = t->inner->ops->mend ? t->inner->ops->mend(t->inner, step, sink) : 0;

	line_end(t, &b, began, rc);
	return rc;
}

static int t_queues(struct store *s, name_fn *fn, void *ctx)
{
	struct trace *t = (struct trace *)s;
	struct buf b = line_start("queues");
	int64_t began = micros();
	int rc = t->inner->ops->queues ? t->inner->ops->queues(t->inner, fn, ctx) : 0;

	line_end(t, &b, began, rc);
	return rc;
}

static int t_discard(struct store *s)
{
	struct trace *t = (struct trace *)s;
	struct buf b = line_start("discard");
	int64_t began = micros();
	int rc = t->inner->ops->discard(t->inner);

	line_end(t, &b, began, rc);
	return rc;
}

static struct store_counts *t_counts(struct store *s)
{
	struct store *in = ((struct trace *)s)->inner;

	return in->ops->counts ? in->ops->counts(in) : NULL;
}

static const struct store_ops trace_ops = {
	.scheme = "trace",
	.close = t_close,
	.now = t_now,
	.get = t_get,
	.scan = t_scan,
	.count = t_count,
	.tally = t_tally,
	.modify = t_modify,
	.entries = t_entries,
	.snapshot = t_snapshot,
	.wake_fd = t_wake_fd,
	.wake_clear = t_wake_clear,
	.check = t_check,
	.mend = t_mend,
	.queues = t_queues,
	.discard = t_discard,
	.counts = t_counts,
};

static int trace_fd(void)
{
	const char *path = getenv("PAWL_TRACE_FILE");
	int fd = -1;

	if (path && *path)
		fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	return fd < 0 ? STDERR_FILENO : fd;
}

int trace_open(struct store **out, struct str uri, const struct store_env *env)
{
	static const char *const modes[] = { "read", "write", "create" };
	struct trace *t = mem_alloc(sizeof(*t));
	struct buf b = line_start("open");
	struct store_env inside = *env;
	struct str rest = uri;
	int64_t began = micros();
	int rc;

	inside.relay = NULL; /* another process cannot run our tracing wrappers of changes */
	*t = (struct trace){ .base = { .ops = &trace_ops, .env = *env }, .fd = trace_fd() };
	rc = store_open(&t->inner, uri, &inside);
	add_word(&b, "store",
		 str_cut(&rest, ':')); /* only the scheme: the rest may contain a password */
	add_word(&b, "queue", env->opt.queue);
	buf_addf(&b, " %s", modes[env->mode]);
	line_end(t, &b, began, rc);
	if (rc < 0) {
		if (t->fd != STDERR_FILENO)
			close(t->fd);
		free(t);
		return rc;
	}
	t->base.env = t->inner->env;
	t->base.inner = t->inner;
	t->base.traits = t->inner->traits;
	*out = &t->base;
	return 0;
}

/*
 * The functions of a queue that are not calls, for remote queues: facts, checks, and moving many
 * tasks. The body has a head and items in frames (queue/frame.h). The answer begins with a packed
 * answer. All items are checked before the first one changes the queue.
 */
#include <errno.h>

#include "base/os.h"
#include "face/serve/serve.h"

#define STORE_ROOM (READ_ROOM + 2 * ANSWER_MAX) /* memory of one read with its frames */

struct doing {
	struct worker *d;
	struct job *j;
	struct queue *queue;
	struct frame_bulk head;
	struct str items, rest; /* the frames behind the head; the frames that are not read yet */
	struct buf out;         /* frames behind the answer */
	size_t counted;         /* bytes of out that the arena has counted */
	struct answer ans;
	struct arena *arena;
};

enum { HEAD = 1, TELLS = 2 }; /* the frames that core/op.def explains */

struct store_call {
	const char *name;
	enum role role;  /* the lowest role that may call it */
	unsigned frames; /* HEAD, TELLS */
	enum result (*run)(struct doing *x);
};

static enum result serve_queue_damaged(struct doing *x)
{
	return answer_fail(&x->ans, USAGE, STR("the body cannot be read"), STR(""));
}

/* --- reads ------------------------------------------------------------------------------------------ */

static enum result do_facts(struct doing *x)
{
	const struct http_caller *c = &x->j->caller;
	struct frame_facts f = { .now = queue_now(x->queue),
				 .locks_only = queue_locks_only(x->queue),
				 .role = serve_role(x->d->serve, c),
				 .version = STR(PAWL_VERSION),
				 .token = str_c(c->name),
				 .agents = str_c(c->agents),
				 .queue = str_c(x->d->queue),
				 .policy = queue_policy(x->queue) };

	if (!queue_is_there(x->queue))
		return answer_fail(&x->ans, MISCONFIGURED, STR("the server has no such queue"),
				   STR("on the server's machine: pawl init --queue NAME"));
	(void)queue_identity(x->queue, &f.identity, x->arena);
	frame_facts(&x->out, &f);
	return SUCCESS;
}

static enum result do_forecast(struct doing *x)
{
	struct frame_extra none;
	struct forecast p;
	struct request rq;
	enum result code;
	struct str one;

	if (!frame_cut(&x->items, &one) || frame_request_open(one, &rq, &none, x->arena))
		return serve_queue_damaged(x);
	GIVE(&rq, agent, x->head.agent);
	code = queue_forecast(x->queue, &rq, x->head.force, &p, &x->ans, x->arena);
	if (code == SUCCESS)
		frame_forecast(&x->out, &p);
	return code;
}

static enum result do_health(struct doing *x)
{
	struct health *h = arena_new(x->arena, struct health);

	if (queue_health(x->queue, h))
		frame_health(&x->out, h);
	return SUCCESS;
}

static void add_name(void *ctx, struct str name)
{
	struct doing *x = ctx;
	const char *only = x->j->caller.queue;

	if (!only || str_is(name, only))
		frame_add(&x->out, name);
}

static enum result do_names(struct doing *x)
{
	return queue_names(x->queue, add_name, x, &x->ans, x->arena);
}

/* Counts the bytes that the frames need, here and in the answer. Not 0: there are too many. */
static int serve_queue_grow(struct doing *x)
{
	arena_count(x->arena, 2 * (x->out.n - x->counted));
	x->counted = x->out.n;
	return x->out.full || arena_over(x->arena);
}

static void add_finding(void *ctx, enum check_level level, const char *what, struct str text,
			struct str fix)
{
	struct doing *x = ctx;
	const struct client *c = &x->d->session.client;
	enum role role = x->j->caller.role;
	struct frame_finding f = { .level = level, .what = str_c(what) };

	if (x->out.full || arena_over(x->arena))
		return;
	f.text = redact_text(c, role, text, x->arena);
	f.fix = redact_text(c, role, fix, x->arena);
	frame_finding(&x->out, &f);
	serve_queue_grow(x);
}

static enum result do_check(struct doing *x)
{
	return queue_check(x->queue, add_finding, x, &x->ans, x->arena);
}

static int add_parcel(void *ctx, const struct parcel *p)
{
	struct doing *x = ctx;

	frame_parcel(&x->out, p);
	return serve_queue_grow(x);
}

static enum result do_export(struct doing *x)
{
	int stopped;

	return queue_export(x->queue, (unsigned)x->head.statuses & STATUS_ALL, add_parcel, x,
			    &stopped, &x->ans, x->arena);
}

static int add_item(void *ctx, const struct item *it)
{
	struct doing *x = ctx;

	frame_item(&x->out, it);
	return serve_queue_grow(x);
}

static enum result do_dump(struct doing *x)
{
	int stopped;

	return queue_dump(x->queue, add_item, x, &stopped, &x->ans, x->arena);
}

/* --- changes ---------------------------------------------------------------------------------------- */

static void rewind_items(void *ctx)
{
	struct doing *x = ctx;

	x->rest = x->items;
}

static int next_parcel(void *ctx, struct parcel *out, struct arena *a)
{
	struct doing *x = ctx;
	struct str one;

	if (!x->rest.n)
		return 1;
	if (!frame_cut(&x->rest, &one) || frame_parcel_open(one, out, a))
		return -EBADMSG;
	return 0;
}

static int next_item(void *ctx, struct item *out, struct arena *a)
{
	struct doing *x = ctx;
	struct str one;

	(void)a;
	if (!x->rest.n)
		return 1;
	if (!frame_cut(&x->rest, &one) || frame_item_open(one, out))
		return -EBADMSG;
	return 0;
}

/* Checks all items before any of them changes the queue: records come before log entries, and there
 * are as many as announced. */
static bool good_items(struct doing *x, bool parcels)
{
	struct arena a = { 0 };
	int64_t n = 0, lines = 0;
	bool good = true;

	for (rewind_items(x); good && x->rest.n; n++) {
		struct parcel p;
		struct item it = { 0 };

		good = parcels ? next_parcel(x, &p, &a) == 0 : next_item(x, &it, &a) == 0;
		good = good && (it.line || !lines);
		lines += it.line;
		arena_free(&a);
	}
	rewind_items(x);
	return good && n == x->head.n + x->head.lines && lines == x->head.lines;
}

static enum result do_import(struct doing *x)
{
	struct frame_bulk *h = &x->head;
	struct import im = { .n = (size_t)h->n,
			     .next = next_parcel,
			     .rewind = rewind_items,
			     .ctx = x,
			     .clash = (enum clash)h->clash,
			     .check = h->check,
			     .agent = h->agent,
			     .run = h->run };
	enum result code;

	if (!good_items(x, true))
		return serve_queue_damaged(x);
	code = queue_import(x->queue, &im, &x->ans, x->arena);
	h->created = im.created;
	h->updated = im.updated;
	h->skipped = im.skipped;
	h->comments = im.comments;
	return code;
}

static struct load load_of(struct doing *x)
{
	const struct frame_bulk *h = &x->head;

	return (struct load){ .records = (size_t)h->n,
			      .lines = (size_t)h->lines,
			      .made_at = h->made_at,
			      .next = next_item,
			      .rewind = rewind_items,
			      .ctx = x,
			      .restore = h->restore,
			      .force = h->force,
			      .agent = h->agent,
			      .run = h->run };
}

static enum result do_load(struct doing *x)
{
	struct load l = load_of(x);
	enum result code;

	if (!good_items(x, false))
		return serve_queue_damaged(x);
	code = queue_load(x->queue, &l, &x->ans, x->arena);
	x->head.left_out = (int64_t)l.left_out;
	x->head.tasks = (int64_t)l.tasks;
	return code;
}

static enum result do_verify(struct doing *x)
{
	struct load l = load_of(x);

	return good_items(x, false) ? queue_verify(x->queue, &l, &x->ans, x->arena)
				    : serve_queue_damaged(x);
}

static bool is_scratch(const struct worker *d)
{
	return str_starts(str_c(d->queue), STR(QUEUE_SCRATCH));
}

/* Only people with access to the store itself may create and remove other queues. */
static enum result not_scratch(struct doing *x)
{
	x->ans.applied = 'n';
	x->ans.fault = STR("forbidden");
	return answer_fail(&x->ans, MISCONFIGURED,
			   STR("a caller may create and remove only queues of `pawl torture`"),
			   STR("on the server's machine: pawl init --queue NAME"));
}

/* The worker created the queue when it opened it: see worker_open(). */
static enum result do_create(struct doing *x)
{
	return is_scratch(x->d) ? SUCCESS : not_scratch(x);
}

/* Only queue_close() may follow, so the worker closes the queue. */
static enum result do_discard(struct doing *x)
{
	enum result code;

	if (!is_scratch(x->d))
		return not_scratch(x);
	code = queue_discard(x->queue, &x->ans, x->arena);
	x->d->open = false;
	x->d->broken = true;
	return code;
}

static enum result do_clear(struct doing *x)
{
	return queue_clear(x->queue, x->head.force, x->head.agent, x->head.run, &x->head.tasks,
			   &x->ans, x->arena);
}

/* --- all of them ------------------------------------------------------------------------------------ */

static const struct store_call calls[] = {
#define FUNCTION(name, role, frames) { #name, ROLE_##role, frames, do_##name },
#include "core/op.def"
};

const struct store_call *store_find(struct str name)
{
	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++)
		if (str_is(name, calls[i].name))
			return &calls[i];
	return NULL;
}

bool store_creates(const struct worker *d, const struct job *list)
{
	while (list && (list->kind != JOB_STORE || list->store->run != do_create))
		list = list->next;
	return list && is_scratch(d);
}

enum role store_role(const struct store_call *c)
{
	return c->role;
}

/* Reads the head; the token must allow the agent in it. false: the job is refused. */
static bool read_head(struct doing *x)
{
	struct str one, agent;
	const char *why;

	x->items = buf_str(&x->j->body);
	if (!(x->j->store->frames & HEAD))
		return true;
	if (!frame_cut(&x->items, &one) || frame_bulk_open(one, &x->head)) {
		job_refuse(x->j, 400, USAGE, STR("the body cannot be read"), STR(""), "");
		return false;
	}
	if (!caller_agent(x->d->serve, &x->j->caller, x->head.agent, &agent, &why)) {
		job_refuse(x->j, 403, MISCONFIGURED, str_c(why), STR(""), "forbidden");
		return false;
	}
	x->head.agent = agent;
	return true;
}

static void give_answer(struct doing *x, enum result code)
{
	struct job *j = x->j;
	size_t room = answers_room(j);

	x->ans.code = code;
	redact_answer(&x->d->session.client, j->caller.role, &x->ans, x->arena);
	if (code == SUCCESS && j->store->frames & TELLS)
		frame_bulk(&x->out, &x->head);
	j->status = 200;
	j->type = FRAME_TYPE;
	j->answer.max = room; /* only reads have long answers */
	frame_answer(&j->answer, &x->ans);
	if (code == SUCCESS)
		buf_adds(&j->answer, buf_str(&x->out));
	j->answer.full |= x->out.full;
	if (x->arena->crowded || (j->answer.full && room < ANSWER_MAX))
		answers_refuse(j);
	answers_made(j);
}

void store_run(struct worker *d, struct job *j)
{
	struct client *c = &d->session.client;
	struct arena a = { 0 };
	struct doing x = {
		.d = d, .j = j, .queue = c->conn.queue, .out = BUF_MAX(ANSWER_MAX), .arena = &a
	};
	enum result code;

	/* a change has a short answer, and must not be refused because others use the memory */
	if (!(j->store->frames & TELLS))
		a = answers_arena(j, STORE_ROOM);
	if (read_head(&x)) {
		/* client_pass() finds the caller's own locks of the whole queue here, for this job only */
		memcpy(c->conn.held, x.head.pass, sizeof(c->conn.held));
		queue_patience(c->conn.queue, client_timeout(c, OP_HEAVY));
		code = j->store->run(&x);
		memset(c->conn.held, 0, sizeof(c->conn.held));
		x.ans.code = code;
		worker_failed(d, &x.ans);
		give_answer(&x, code);
	}
	buf_free(&x.out);
	arena_free(&a);
}

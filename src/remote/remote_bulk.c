/* The requests to a server other than calls: facts, checks, export, import, dump, load and
 * clear. A change of many tasks is not sent again after a lost answer, because the server could
 * not recognise it. An answer that cannot be read is an error, never an empty result. */
#include <errno.h>

#include "base/os.h"
#include "base/when.h"
#include "core/validate.h"
#include "format/answer_form.h"
#include "remote/remote.h"

#define POLL_MS 200

/* Cuts the answer at the start of *rest. These requests take no task, so the codes of other
 * calls, such as NO_TASKS, are a fault. */
static enum result open_answer(struct far_queue *r, struct str *rest, bool changes,
			       struct answer *ans, struct arena *a)
{
	const char *why;
	struct str one;

	if (!frame_cut(rest, &one) || answer_unpack(one, ans, a))
		return remote_garbled(r, changes, NULL, ans, a);
	why = ans->code == NO_TASKS || ans->code == LOCK_FREE ? "it belongs to another kind of call"
							      : answer_fault(ans, a);
	if (why)
		return remote_garbled(r, changes, why, ans, a);
	remote_quote(r, ans, a);
	return ans->code;
}

/* Asks /v1/store?do=WHAT. The first frame of the answer is an answer; *rest has the others. */
static enum result remote_bulk_ask(struct far_queue *r, const char *what, struct str body,
				   bool changes, struct str *rest, struct answer *ans,
				   struct arena *a)
{
	struct question k = { .path = "/v1/store",
			      .query = arena_printf(a, "do=%s", what).p,
			      .body = body,
			      .changes = changes,
			      .again = !changes };
	struct strs warnings = ans->warnings;
	struct answer got = { 0 };
	enum result code = remote_ask(r, &k, rest, ans, a);

	if (code != SUCCESS)
		return code;
	(void)open_answer(r, rest, changes, &got, a);
	*ans = got;
	for (size_t i = 0; i < warnings.n; i++)
		ans->warnings = arena_append(a, ans->warnings, warnings.v[i]);
	return ans->code;
}

/* Creates or removes a scratch queue. Either may be repeated: the repetition finds it done. */
static enum result ask_scratch(struct far_queue *r, const char *what, struct answer *ans,
			       struct arena *a)
{
	struct question k = { .path = "/v1/store",
			      .query = arena_printf(a, "do=%s", what).p,
			      .body = STR(""),
			      .changes = true,
			      .again = true };
	struct str rest;
	enum result code = remote_ask(r, &k, &rest, ans, a);

	return code == SUCCESS ? open_answer(r, &rest, true, ans, a) : code;
}

enum result remote_make(struct far_queue *r, struct answer *ans, struct arena *a)
{
	return ask_scratch(r, "create", ans, a);
}

enum result remote_discard(struct far_queue *r, struct answer *ans, struct arena *a)
{
	enum result code = ask_scratch(r, "discard", ans, a);

	if (code != SUCCESS && str_is(ans->fault, "absent"))
		*ans = (struct answer){ 0 };
	return ans->code;
}

/* As remote_bulk_ask(), for a change that locks of the whole queue can refuse. A refusal by such
 * a lock has changed nothing, so the change is retried until the timeout. */
static enum result ask_in_turn(struct far_queue *r, const char *what, struct str body,
			       struct str *rest, struct answer *ans, struct arena *a)
{
	int64_t deadline = os_boot_ms() + r->timeout_ms;
	enum result code = remote_bulk_ask(r, what, body, true, rest, ans, a);

	while (code != SUCCESS && ans->barred && !r->config->impatient && os_boot_ms() < deadline) {
		remote_sleep(POLL_MS);
		code = remote_bulk_ask(r, what, body, true, rest, ans, a);
	}
	if (code != SUCCESS && ans->barred && !r->config->impatient)
		ans->message = arena_printf(a, "%.*s; waited %s", STRF(ans->message),
					    arena_cstr(a, duration_text(a, r->timeout_ms)));
	return code;
}

static void add_passes(struct far_queue *r, struct frame_bulk *h, struct arena *a)
{
	const struct queue_config *c = r->config;

	for (int k = TYPED_WRITE; c->pass && k < TYPED_END; k++)
		h->pass[k] = c->pass(c->pass_ctx, (enum typed)k, a);
}

enum result remote_facts(struct far_queue *r, struct frame_facts *out, struct answer *ans,
			 struct arena *a)
{
	struct str rest, one;
	enum result code = remote_bulk_ask(r, "facts", STR(""), false, &rest, ans, a);

	*out = (struct frame_facts){ 0 };
	if (code == SUCCESS && (!frame_cut(&rest, &one) || frame_facts_open(one, out)))
		code = remote_garbled(r, false, NULL, ans, a);
	return code;
}

enum result remote_forecast(struct far_queue *r, const struct request *rq, bool people,
			    struct forecast *out, struct answer *ans, struct arena *a)
{
	struct frame_bulk h = { .force = people, .agent = rq->agent };
	struct frame_extra none = { 0 };
	struct buf body = BUF_MAX(BODY_MAX);
	struct str rest, one;
	enum result code;

	frame_bulk(&body, &h);
	frame_request(&body, rq, &none);
	code = remote_bulk_ask(r, "prospects", buf_str(&body), false, &rest, ans, a);
	buf_free(&body);
	if (code == SUCCESS && (!frame_cut(&rest, &one) || frame_forecast_open(one, out)))
		code = remote_garbled(r, false, NULL, ans, a);
	return code;
}

bool remote_health(struct far_queue *r, struct health *out)
{
	struct arena a = { 0 };
	struct answer ans = { 0 };
	struct str rest, one;
	bool found = remote_bulk_ask(r, "health", STR(""), false, &rest, &ans, &a) == SUCCESS &&
		     frame_cut(&rest, &one) && frame_health_open(one, out) == 0;

	arena_free(&a);
	return found;
}

enum result remote_names(struct far_queue *r, name_fn *fn, void *ctx, struct answer *ans,
			 struct arena *a)
{
	struct str rest, one;
	enum result code = remote_bulk_ask(r, "names", STR(""), false, &rest, ans, a);

	while (code == SUCCESS && rest.n) {
		if (!frame_cut(&rest, &one) || !one.n || !word_valid(one))
			return remote_garbled(r, false, NULL, ans, a);
		fn(ctx, one);
	}
	return code;
}

/* The server's name for a check may be a whole sentence, so it is quoted, too. */
static void quote_finding(const struct far_queue *r, struct frame_finding *f, struct arena *a)
{
	if (!r->config->for_agent)
		return;
	f->text = remote_words(r, arena_printf(a, "%.*s: %.*s", STRF(f->what), STRF(f->text)), a);
	f->fix = remote_words(r, f->fix, a);
	f->what = STR("server");
}

enum result remote_check(struct far_queue *r, check_fn *fn, void *ctx, struct answer *ans,
			 struct arena *a)
{
	struct frame_finding f;
	struct str rest, one;
	enum result code = remote_bulk_ask(r, "check", STR(""), false, &rest, ans, a);
	bool repairs;

	while (code == SUCCESS && rest.n) {
		if (!frame_cut(&rest, &one) || frame_finding_open(one, &f))
			return remote_garbled(r, false, NULL, ans, a);
		repairs = str_cut_prefix(&f.fix, STR(CHECK_REPAIRS));
		quote_finding(r, &f, a);
		if (repairs) /* a repair needs the store itself */
			f.fix = arena_printf(a, "on the server's machine: pawl doctor --fix (%.*s)",
					     STRF(f.fix));
		fn(ctx, (enum check_level)f.level, arena_cstr(a, f.what), f.text, f.fix);
	}
	return code;
}

/* --- out ------------------------------------------------------------------------------------------- */

/* The id becomes a file name and the texts its content, so both must be valid. */
static const char *exported_fault(const struct parcel *p, struct arena *a)
{
	const char *fault = id_fault(p->task.id);

	if (!fault)
		fault = task_fault(&p->task, STR(""), a);
	for (size_t i = 0; !fault && i < p->n_comments; i++)
		fault = event_fault(&p->comments[i]);
	return fault;
}

enum result remote_export(struct far_queue *r, unsigned statuses, parcel_fn *fn, void *ctx,
			  int *stopped, struct answer *ans, struct arena *a)
{
	struct frame_bulk h = { .statuses = statuses };
	struct buf body = BUF_MAX(BODY_MAX);
	struct str rest, one;
	enum result code;

	*stopped = 0;
	frame_bulk(&body, &h);
	code = remote_bulk_ask(r, "export", buf_str(&body), false, &rest, ans, a);
	buf_free(&body);
	while (code == SUCCESS && rest.n && !*stopped) {
		struct arena mem = { 0 };
		struct parcel p;
		const char *why = NULL;

		if (!frame_cut(&rest, &one) || frame_parcel_open(one, &p, &mem) ||
		    (why = exported_fault(&p, &mem)))
			code = remote_garbled(r, false, why, ans, a);
		else
			*stopped = fn(ctx, &p);
		arena_free(&mem);
	}
	return code;
}

enum result remote_dump(struct far_queue *r, item_fn *fn, void *ctx, int *stopped,
			struct answer *ans, struct arena *a)
{
	struct str rest, one;
	enum result code = remote_bulk_ask(r, "dump", STR(""), false, &rest, ans, a);

	*stopped = 0;
	while (code == SUCCESS && rest.n && !*stopped) {
		struct item it;

		if (!frame_cut(&rest, &one) || frame_item_open(one, &it))
			return remote_garbled(r, false, NULL, ans, a);
		*stopped = fn(ctx, &it);
	}
	return code;
}

/* --- in -------------------------------------------------------------------------------------------- */

static enum result no_input(int r, const struct buf *body, struct answer *ans, struct arena *a)
{
	ans->applied = 'n';
	if (body->full)
		return answer_fail(
			ans, USAGE,
			arena_printf(a, "the request is larger than a server accepts (%u MiB)",
				     BODY_MAX >> 20),
			STR("run it on the server's machine, with the server's own --store"));
	return answer_fail(ans, API_ERROR,
			   arena_printf(a, "the input cannot be read: %s",
					r < 0 ? strerror(-r) : "it ends too early"),
			   STR(""));
}

/* Sends the head and the items, and reads the head of the answer. */
static enum result remote_bulk_put(struct far_queue *r, const char *what, struct frame_bulk *h,
				   struct buf *body, bool changes, struct answer *ans,
				   struct arena *a)
{
	struct str rest, one;
	enum result code = changes ? ask_in_turn(r, what, buf_str(body), &rest, ans, a)
				   : remote_bulk_ask(r, what, buf_str(body), false, &rest, ans, a);

	if (code == SUCCESS && (!frame_cut(&rest, &one) || frame_bulk_open(one, h)))
		code = remote_garbled(r, changes, NULL, ans, a);
	return code;
}

static int add_parcels(struct import *im, struct buf *body)
{
	int e = 0;

	im->rewind(im->ctx);
	for (size_t i = 0; i < im->n && !e && !body->full; i++) {
		struct arena mem = { 0 };
		struct parcel p = { 0 };

		e = im->next(im->ctx, &p, &mem);
		if (!e)
			frame_parcel(body, &p);
		arena_free(&mem);
	}
	return e;
}

enum result remote_import(struct far_queue *r, struct import *im, struct answer *ans,
			  struct arena *a)
{
	struct frame_bulk h = { .n = (int64_t)im->n,
				.clash = im->clash,
				.check = im->check,
				.agent = im->agent,
				.run = im->run };
	struct buf body = BUF_MAX(BODY_MAX);
	enum result code;
	int e;

	add_passes(r, &h, a);
	frame_bulk(&body, &h);
	e = add_parcels(im, &body);
	code = e || body.full ? no_input(e, &body, ans, a)
			      : remote_bulk_put(r, "import", &h, &body, !im->check, ans, a);
	buf_free(&body);
	if (code != SUCCESS)
		return code;
	im->created = h.created;
	im->updated = h.updated;
	im->skipped = h.skipped;
	im->comments = h.comments;
	if (im->progress)
		im->progress(im->progress_ctx, im->n);
	return SUCCESS;
}

static int add_items(struct load *l, struct buf *body)
{
	size_t n = l->records + l->lines;
	int e = 0;

	l->rewind(l->ctx);
	for (size_t i = 0; i < n && !e && !body->full; i++) {
		struct arena mem = { 0 };
		struct item it = { 0 };

		e = l->next(l->ctx, &it, &mem);
		if (!e)
			frame_item(body, &it);
		arena_free(&mem);
	}
	return e;
}

enum result remote_put(struct far_queue *r, struct load *l, bool verify, struct answer *ans,
		       struct arena *a)
{
	struct frame_bulk h = { .n = (int64_t)l->records,
				.lines = (int64_t)l->lines,
				.made_at = l->made_at,
				.restore = l->restore,
				.force = l->force,
				.agent = l->agent,
				.run = l->run };
	struct buf body = BUF_MAX(BODY_MAX);
	enum result code;
	int e;

	add_passes(r, &h, a);
	frame_bulk(&body, &h);
	e = add_items(l, &body);
	code = e || body.full
		       ? no_input(e, &body, ans, a)
		       : remote_bulk_put(r, verify ? "verify" : "load", &h, &body, !verify, ans, a);
	buf_free(&body);
	if (code != SUCCESS || verify)
		return code;
	l->left_out = (size_t)h.left_out;
	l->tasks = (size_t)h.tasks;
	if (l->progress)
		l->progress(l->progress_ctx, l->records + l->lines);
	return SUCCESS;
}

enum result remote_clear(struct far_queue *r, bool force, struct str agent, struct str run,
			 int64_t *n, struct answer *ans, struct arena *a)
{
	struct frame_bulk h = { .force = force, .agent = agent, .run = run };
	struct buf body = BUF_MAX(BODY_MAX);
	enum result code;

	add_passes(r, &h, a);
	frame_bulk(&body, &h);
	*n = 0;
	code = remote_bulk_put(r, "clear", &h, &body, true, ans, a);
	buf_free(&body);
	if (code == SUCCESS)
		*n = h.tasks;
	return code;
}

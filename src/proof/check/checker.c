/* Sorts the history's calls by task, runs every check, and prints the report. A finding must hold for every possible order of
 * concurrent calls, or a correct store would be accused. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"
#include "format/request_form.h"
#include "proof/check/checker.h"
#include "proof/check/checker_private.h"
#include "proof/model/model.h"

static const char *const names[CHECK_KINDS] = {
	[CHECK_FENCE] = "fence",       [CHECK_HOLDERS] = "holders", [CHECK_STALE] = "stale",
	[CHECK_DONE] = "done",         [CHECK_LOST] = "lost",       [CHECK_STUCK] = "stuck",
	[CHECK_TWICE] = "twice",       [CHECK_LINEAR] = "linear",   [CHECK_CLOCK] = "clock",
	[CHECK_SELECTED] = "selected", [CHECK_CLOSED] = "closed",
};

static const char *const meanings[CHECK_KINDS] = {
	[CHECK_FENCE] = "fences only grow, and none is given twice",
	[CHECK_HOLDERS] = "never two live holders",
	[CHECK_STALE] = "no accepted write with a stale token",
	[CHECK_DONE] = "at most one accepted completion for each fence",
	[CHECK_LOST] = "acknowledged writes are there at the end",
	[CHECK_STUCK] = "every task ends claimable, held, waiting for a person, or ended",
	[CHECK_TWICE] = "a repeated call takes effect once",
	[CHECK_LINEAR] = "some order of the calls explains every answer",
	[CHECK_CLOCK] = "the store's time never goes backwards",
	[CHECK_CLOSED] =
		"no change gets past another agent's lock of the whole queue, or an emergency",
	[CHECK_SELECTED] = "every selecting call gets the best eligible task",
};

const char *check_kind_name(enum check_kind kind)
{
	return names[kind];
}

size_t check_violations(const struct check_report *r)
{
	size_t n = 0;

	for (int k = 0; k < CHECK_KINDS; k++)
		n += r->counts[k];
	return n;
}

static int by_sent(const void *a, const void *b)
{
	const struct history_call *x = *(const struct history_call *const *)a,
				  *y = *(const struct history_call *const *)b;

	if (x->sent != y->sent)
		return x->sent < y->sent ? -1 : 1;
	return (x->number > y->number) - (x->number < y->number);
}

void check_add(struct checking *x, enum check_kind kind, struct str task,
	       const struct history_call *const *calls, size_t n, const char *fmt, ...)
{
	struct check_report *out = x->out;
	struct check_finding *f;
	char line[400];
	va_list ap;

	if (out->counts[kind]++ >= CHECK_SHOWN)
		return;
	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	out->findings = arena_grow(x->arena, out->findings, out->n_findings, sizeof(*f));
	f = &out->findings[out->n_findings++];
	*f = (struct check_finding){ .kind = kind,
				     .task = task,
				     .text = arena_str(x->arena, str_c(line)),
				     .calls = arena_array(x->arena, const struct history_call *, n),
				     .n_calls = n };
	if (n)
		memcpy(f->calls, calls, n * sizeof(*calls));
	if (n)
		qsort(f->calls, n, sizeof(*f->calls), by_sent);
}

/* --- the log by task ----------------------------------------------------------------------------- */

uint32_t task_number(const struct checking *x, struct str id)
{
	return tally_find(&x->tasks, id);
}

/* The tasks that a call names: at most two. */
static size_t touches_of(const struct history_call *c, struct str ids[2], struct touch out[2])
{
	const struct answer *ans = c->ans;
	size_t n = 0;
	struct str id = c->rq->id;

	if (ans && ans->task && (!id.n || str_eq_nocase(id, ans->task->id)))
		id = ans->task->id;
	if (id.n) {
		ids[n] = id;
		out[n++] = (struct touch){ c, ans ? ans->task : NULL, ans ? ans->lock : NULL,
					   false };
	}
	if (ans && ans->next) {
		ids[n] = ans->next->id;
		out[n++] = (struct touch){ c, ans->next, ans->next_lock, true };
	}
	return n;
}

static void name_links(struct checking *x, const struct task *t)
{
	tally_add(&x->tasks, t->parent);
	for (size_t i = 0; i < t->depends.n; i++)
		tally_add(&x->tasks, t->depends.v[i]);
}

static void name_call(struct checking *x, const struct history_call *c)
{
	struct touch t[2];
	struct str ids[2];
	size_t n = touches_of(c, ids, t);

	for (size_t i = 0; i < n; i++) {
		tally_add(&x->tasks, ids[i]);
		if (t[i].task)
			name_links(x, t[i].task);
	}
	tally_add(&x->tasks, model_about(c->rq));
	tally_add(&x->tasks, c->rq->parent);
	for (size_t i = 0; i < c->rq->depends.n; i++)
		tally_add(&x->tasks, c->rq->depends.v[i]);
	for (size_t i = 0; c->ans && i < c->ans->n_tasks; i++)
		tally_add(&x->tasks, c->ans->tasks[i].id);
}

/* If the history uses any lock of the whole queue, adds the names of all: a world has all of them or none. */
static void name_guards(struct checking *x)
{
	bool any = false;

	for (uint32_t t = 1; t < x->tasks.n; t++)
		any |= model_is_guard(x->tasks.v[t]);
	for (int i = 1; any && i < MODEL_GUARDS; i++)
		tally_add(&x->tasks, model_guard(i));
}

static void name_tasks(struct checking *x)
{
	const struct history_log *log = x->log;

	x->tasks.fold = true;
	for (size_t i = 0; i < log->n_calls; i++)
		name_call(x, x->calls[i]);
	for (size_t i = 0; i < log->n_ends; i++) {
		tally_add(&x->tasks, log->ends[i].id);
		if (log->ends[i].task)
			name_links(x, log->ends[i].task);
	}
	name_guards(x);
}

static void group_touches(struct checking *x)
{
	size_t n_tasks = x->tasks.n, total = 0, *at;

	x->first = arena_array(x->arena, size_t, n_tasks + 2);
	for (size_t i = 0; i < x->log->n_calls; i++) {
		struct touch t[2];
		struct str ids[2];
		size_t n = touches_of(x->calls[i], ids, t);

		for (size_t k = 0; k < n; k++)
			x->first[task_number(x, ids[k]) + 1]++;
		total += n;
	}
	for (size_t i = 1; i <= n_tasks + 1; i++)
		x->first[i] += x->first[i - 1];
	x->touches = arena_array(x->arena, struct touch, total);
	at = arena_array(x->arena, size_t, n_tasks + 2);
	memcpy(at, x->first, (n_tasks + 1) * sizeof(*at));
	for (size_t i = 0; i < x->log->n_calls; i++) {
		struct touch t[2];
		struct str ids[2];
		size_t n = touches_of(x->calls[i], ids, t);

		for (size_t k = 0; k < n; k++)
			x->touches[at[task_number(x, ids[k])]++] = t[k];
	}
}

static void check_prepare(struct checking *x)
{
	const struct history_log *log = x->log;

	x->calls = arena_array(x->arena, const struct history_call *, log->n_calls);
	for (size_t i = 0; i < log->n_calls; i++) {
		x->calls[i] = &log->calls[i];
		if (!call_unanswered(x->calls[i]))
			continue;
		x->out->unanswered++;
		tally_add(&x->open_tokens, x->calls[i]->rq->new_token);
	}
	if (log->n_calls)
		qsort(x->calls, log->n_calls, sizeof(*x->calls), by_sent);
	name_tasks(x);
	group_touches(x);
	x->ends = arena_array(x->arena, const struct history_end *, x->tasks.n + 1);
	x->spoiled = arena_array(x->arena, bool, x->tasks.n + 1);
	for (size_t i = 0; i < log->n_ends; i++)
		x->ends[task_number(x, log->ends[i].id)] = &log->ends[i];
	x->out->calls = log->n_calls;
	for (uint32_t t = 1; t < x->tasks.n; t++)
		x->out->tasks += !model_is_guard(x->tasks.v[t]);
}

void history_check(const struct history_log *log, struct check_report *out, struct arena *a)
{
	struct checking x = { .log = log, .out = out, .arena = a };

	*out = (struct check_report){ 0 };
	check_prepare(&x);
	if (log->head.driver.n) {
		check_driver(&x);
	} else {
		check_clock(&x);
		check_locks(&x);
		check_guards(&x);
		check_ends(&x);
		check_twice(&x);
		check_select(&x);
		check_linear(&x);
	}
	tally_free(&x.tasks);
	tally_free(&x.open_tokens);
}

/* --- output for people --------------------------------------------------------------------------- */

static int64_t start_of(const struct history_log *log)
{
	int64_t first = log->n_calls ? log->calls[0].sent : 0;

	for (size_t i = 1; i < log->n_calls; i++)
		if (log->calls[i].sent < first)
			first = log->calls[i].sent;
	return first;
}

static void add_ms(struct buf *out, int64_t t, int64_t start)
{
	if (t == HISTORY_NEVER)
		buf_addf(out, "%12s", "-");
	else
		buf_addf(out, "%12.3f", (double)(t - start) / 1e6);
}

static void add_text(struct buf *out, const char *before, struct str s)
{
	if (!s.n)
		return;
	buf_adds(out, str_c(before));
	text_visible(out, s, false);
}

static void add_request(struct buf *out, const struct request *rq)
{
	json_t *o = request_json(rq), *v;
	const char *name;

	buf_adds(out, str_c(op_name(rq->op)));
	add_text(out, " ", rq->id);
	json_object_foreach(o, name, v) {
		char *value;

		if (strcmp(name, "op") == 0 || strcmp(name, "id") == 0 ||
		    strcmp(name, "agent") == 0)
			continue;
		value = json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY);
		buf_addf(out, " %s=", name);
		text_visible(out, str_c(value), false);
		free(value);
	}
	json_decref(o);
	add_text(out, " token=", rq->token);
	add_text(out, " new_token=", rq->new_token);
}

static void add_seen(struct buf *out, const char *what, const struct task *t)
{
	if (!t)
		return;
	buf_adds(out, str_c(what));
	text_visible(out, t->id, false);
	buf_addf(out, " %s, fence %lld, version %lld", status_name(t->status), (long long)t->fence,
		 (long long)t->version);
	if (t->lock.holder.n) {
		add_text(out, ", held by ", t->lock.holder);
		buf_addf(out, " until %lld", (long long)t->lock.expires_at);
	}
}

static void add_answer(struct buf *out, const struct answer *ans)
{
	if (!ans) {
		buf_adds(out, STR("no answer"));
		return;
	}
	buf_addf(out, "%s%s at %lld", result_name(ans->code), ans->repeated ? " (repeated)" : "",
		 (long long)ans->now);
	if (ans->code == API_ERROR)
		buf_adds(out,
			 ans->applied == 'n' ? STR(", not applied") : STR(", perhaps applied"));
	add_seen(out, "; ", ans->task);
	if (ans->has_next && !ans->next)
		buf_adds(out, STR("; next: none"));
	add_seen(out, "; next: ", ans->next);
}

static void add_call(struct buf *out, const struct history_call *c, int64_t start)
{
	add_ms(out, c->sent, start);
	add_ms(out, c->answered, start);
	add_text(out, "  ", c->agent);
	buf_addf(out, " #%llu ", (unsigned long long)c->number);
	add_request(out, c->rq);
	buf_adds(out, STR("\n                             -> "));
	add_answer(out, c->ans);
	buf_addc(out, '\n');
}

static void add_finding(struct buf *out, const struct check_finding *f,
			const struct history_log *log)
{
	int64_t start = start_of(log);

	buf_addf(out, "\n%s: ", names[f->kind]);
	text_visible(out, f->text, false);
	buf_addc(out, '\n');
	if (f->state.n) {
		buf_adds(out, STR("  before: "));
		text_visible(out, f->state, false);
		buf_addc(out, '\n');
	}
	if (f->n_calls)
		buf_adds(out, STR("     sent ms     answer ms  call\n"));
	for (size_t i = 0; i < f->n_calls; i++)
		add_call(out, f->calls[i], start);
}

void check_print(const struct check_report *r, const struct history_log *log, struct buf *out)
{
	size_t bad = check_violations(r);

	buf_addf(out, "%zu calls (%zu unanswered) on %zu tasks in %zu families: %s\n", r->calls,
		 r->unanswered, r->tasks, r->families,
		 bad            ? "VIOLATED"
		 : r->undecided ? "no violation found, but not all was decided"
				: "clean");
	for (int k = 0; k < CHECK_KINDS; k++)
		buf_addf(out, "  %-9s %6zu  %s\n", names[k], r->counts[k], meanings[k]);
	if (r->undecided)
		buf_addf(out, "  %-9s %6zu  the search for an order was given up\n", "undecided",
			 r->undecided);
	if (r->endless)
		buf_addf(
			out,
			"  %-9s %6zu  tasks without a line about their end: lost was not checked for them, "
			"stuck for none\n",
			"endless", r->endless);
	for (size_t i = 0; i < r->n_findings; i++)
		add_finding(out, &r->findings[i], log);
	if (bad)
		buf_addf(out, "\nseed %llu, store ", (unsigned long long)log->head.seed);
	if (bad)
		text_visible(out, log->head.store, false);
	if (bad)
		buf_addc(out, '\n');
}

/* --- linear ----------------------------------------------------------------------------------- */

/* Checks each family of tasks alone: does an order of its calls explain all answers? A family that fails with its own calls is
 * a violation only if it also fails with the calls that may have reached any family. */

static void check_family(struct split *s, const struct family *f)
{
	struct arena a = { 0 };
	struct family more[2];
	enum linear r = linear_check(f, NULL, NULL);

	/* many calls may have reached any family, so add them only if the family's own calls do not
	 * suffice */
	for (int i = 0; i < 2 && r == LINEAR_NO; i++) {
		if (!split_rovers(s, f, i, &more[i], &a))
			continue;
		r = linear_check(&more[i], NULL, NULL);
		if (i)
			f = &more[i];
	}
	s->x->out->undecided += r == LINEAR_UNDECIDED;
	if (r == LINEAR_NO)
		report_family(s->x, f, &a);
	arena_free(&a);
}

void check_linear(struct checking *x)
{
	struct split s = { .x = x };

	for (size_t i = 0; i < x->log->n_calls; i++) {
		const struct history_call *c = x->calls[i];
		int64_t t = c->answered != HISTORY_NEVER ? c->answered : c->sent;

		s.end = t >= s.end ? t + 1 : s.end;
	}
	split_families(&s);
	split_calls(&s);
	x->out->families = s.n_families;
	for (size_t i = 0; i < s.n_families; i++)
		check_family(&s, &s.families[i]);
	tally_free(&s.ids);
	tally_free(&s.tokens);
}

/* --- excerpt ---------------------------------------------------------------------------------- */

/* Reduces a failing family to a small set of calls that still no order explains, so that a person can read the report. */

#define DROP_MAX 150 /* larger families are not reduced call by call */
#define EXCERPT 24   /* calls shown at most */

/* The family as known at time t: the calls sent by then, with the answers that came by then. */
static void cut_at(const struct family *f, int64_t t, struct family *out)
{
	out->n_parts = 0;
	for (size_t i = 0; i < f->n_parts; i++) {
		struct part p = f->parts[i];

		if (p.sent > t)
			continue;
		if (p.ans && p.answered > t) {
			if (op_flags(p.rq->op) & OP_READS || p.spare)
				continue;
			p.ans = NULL;
			p.answered = HISTORY_NEVER;
		}
		out->parts[out->n_parts++] = p;
	}
}

static int by_time(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Every prefix of an explicable history is explicable, so a binary search finds the first prefix
 * that is not. */
static int64_t first_failing(const struct family *f, struct family *out, struct arena *a)
{
	int64_t *times = arena_array(a, int64_t, f->n_parts);
	size_t n = 0, low = 0, high;

	for (size_t i = 0; i < f->n_parts; i++)
		if (f->parts[i].ans && !f->parts[i].spare)
			times[n++] = f->parts[i].answered;
	qsort(times, n, sizeof(*times), by_time);
	high = n - 1;
	while (low < high) {
		size_t mid = (low + high) / 2;

		cut_at(f, times[mid], out);
		if (linear_check(out, NULL, NULL) == LINEAR_NO)
			high = mid;
		else
			low = mid + 1;
	}
	cut_at(f, times[low], out);
	return times[low];
}

/* Accepted changes stay, because they explain the state. */
static bool may_drop(const struct part *p, int64_t last)
{
	return !p->ans || p->spare ||
	       (p->answered != last &&
		!(p->call && call_accepted(p->call) && !(op_flags(p->rq->op) & OP_READS)));
}

static void drop_others(struct family *f, int64_t last, struct arena *a)
{
	struct family less = *f;

	if (f->n_parts > DROP_MAX)
		return;
	less.parts = arena_array(a, struct part, f->n_parts);
	for (size_t i = f->n_parts; i-- > 0;) {
		if (!may_drop(&f->parts[i], last))
			continue;
		memcpy(less.parts, f->parts, i * sizeof(*f->parts));
		memcpy(less.parts + i, f->parts + i + 1, (f->n_parts - i - 1) * sizeof(*f->parts));
		less.n_parts = f->n_parts - 1;
		if (linear_check(&less, NULL, NULL) != LINEAR_NO)
			continue;
		memcpy(f->parts, less.parts, less.n_parts * sizeof(*f->parts));
		f->n_parts = less.n_parts;
	}
}

static size_t add_calls(const struct history_call **calls, size_t n,
			const struct part *const *parts, size_t more)
{
	for (size_t i = 0; i < more; i++) {
		size_t k = 0;

		while (k < n && calls[k] != parts[i]->call)
			k++;
		if (k == n && parts[i]->call)
			calls[n++] = parts[i]->call;
	}
	return n;
}

void report_family(struct checking *x, const struct family *f, struct arena *a)
{
	struct family less = *f;
	struct dead_end end = { 0 };
	const struct part **all;
	const struct history_call **calls;
	size_t n = 0, so_far = x->out->n_findings;
	int64_t last;

	if (x->out->counts[CHECK_LINEAR] >= CHECK_SHOWN) {
		x->out->counts[CHECK_LINEAR]++;
		return;
	}
	less.parts = arena_array(a, struct part, f->n_parts);
	last = first_failing(f, &less, a);
	drop_others(&less, last, a);
	(void)linear_check(&less, &end, a);
	all = arena_array(a, const struct part *, less.n_parts);
	for (size_t i = 0; i < less.n_parts; i++)
		all[i] = &less.parts[i];
	calls = arena_array(a, const struct history_call *, less.n_parts + EXCERPT);
	if (less.n_parts <= EXCERPT) {
		n = add_calls(calls, n, all, less.n_parts);
	} else {
		n = add_calls(calls, n, end.done, end.n_done);
		n = add_calls(calls, n, end.stuck, end.n_stuck);
	}
	check_add(x, CHECK_LINEAR, f->tasks[0], calls, n,
		  "%.*s: no order of these calls%s explains: %.*s", STRF(f->tasks[0]),
		  last == HISTORY_NEVER - 1 ? " and the read at the end" : "", STRF(end.why));
	if (x->out->n_findings > so_far)
		x->out->findings[so_far].state = arena_str(x->arena, end.state);
}

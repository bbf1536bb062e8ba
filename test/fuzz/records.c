/* Records from processes and files: packed requests, answers, tasks and events. The first byte
 * chooses one. */
#include "kit.h"
#include "record.h"
#include "base/text.h"
#include "core/answer.h"
#include "core/validate.h"
#include "format/task_form.h"
#include "core/typed.h"
#include "format/record_form.h"
#include "format/answer_form.h"
#include "format/request_form.h"

#define PACKED_MAX (16u << 20)

static struct str taken(struct buf *b, struct arena *a)
{
	struct str out = arena_str(a, buf_str(b));

	CHECK(!b->full);
	buf_free(b);
	return out;
}

/* --- requests ----------------------------------------------------------------------------------- */

static struct str packed_request(const struct request *r, struct arena *a)
{
	struct buf b = BUF_MAX(PACKED_MAX);

	request_pack(r, &b);
	return taken(&b, a);
}

static void check_request(struct str bytes, struct arena *a)
{
	struct request r, again, other;
	const char *fault;

	if (request_unpack(bytes, &r, a))
		return;
	CHECK(r.op > OP_NONE && r.op < OP_END);
	CHECK(request_unpack(packed_request(&r, a), &again, a) == 0);
	CHECK(same_request(&r, &again));

	/* tokens are not shown */
	other = r;
	other.token = STR("another");
	other.new_token = STR("yet another");
	CHECK(str_eq(json_checked(request_json(&r), a), json_checked(request_json(&other), a)));

	fault = request_fault(&r, &policy_default, a);
	CHECK(!fault || fuzz_harmless(str_c(fault)));
	if (!fault && HAS(&r, id))
		CHECK(!id_fault(r.id));
}

/* --- tasks -------------------------------------------------------------------------------------- */

static struct str packed_task(const struct task *t, unsigned parts, struct arena *a)
{
	struct buf b = BUF_MAX(PACKED_MAX);

	task_pack(t, parts, &b);
	return taken(&b, a);
}

/* A record that passed the check can be shown anywhere. */
static void check_checked(const struct task *t, struct arena *a)
{
	const char *fault = task_fault(t, task_key(a, t->id), a);

	CHECK(!fault || fuzz_harmless(str_c(fault)));
	if (fault)
		return;
	CHECK(typed_of(t->id) || str_eq_nocase(t->id, EMERGENCY_ID) || !id_fault(t->id));
	CHECK(t->fence >= 0 && t->fence <= EXACT_MAX && t->labels.n <= LABELS_MAX);
	CHECK(text_valid(t->title) && text_valid(t->lock.holder) && t->title.n <= TITLE_MAX);
	for (size_t i = 0; i < t->depends.n; i++)
		CHECK(!id_fault(t->depends.v[i]));
}

static void check_task(struct str bytes, struct arena *a)
{
	const int64_t now = INT64_C(1700000000000);
	struct task t = { 0 }, again = { 0 }, halves = { 0 }, other;

	if (task_unpack(bytes, &t, a))
		return;
	CHECK(t.status >= 0 && t.status < STATUS_END);
	CHECK(t.class_rank >= 0 && t.class_rank < CLASS_END);
	CHECK(task_unpack(packed_task(&t, HOT | BODY, a), &again, a) == 0);
	CHECK(same_task(&t, &again));
	CHECK(task_unpack(packed_task(&t, HOT, a), &halves, a) == 0);
	CHECK(task_unpack(packed_task(&t, BODY, a), &halves, a) == 0);
	CHECK(same_task(&t, &halves));

	/* tokens are not shown, only whether there is one */
	other = t;
	other.lock.token = t.lock.token.n ? STR("another") : STR("");
	other.last = (struct last){ 1, STR("a"), STR("b") };
	CHECK(str_eq(json_checked(task_json(&t, now, a), a),
		     json_checked(task_json(&other, now, a), a)));
	check_checked(&t, a);
}

/* --- events ------------------------------------------------------------------------------------- */

static void check_event(struct str bytes, struct arena *a)
{
	struct event e, again;
	struct buf b = BUF_MAX(PACKED_MAX);

	if (event_unpack(bytes, &e))
		return;
	event_pack(&e, &b);
	CHECK(event_unpack(taken(&b, a), &again) == 0);
	CHECK(same_event(&e, &again));
	json_checked(event_json(&e, a), a);
}

/* --- answers ------------------------------------------------------------------------------------ */

static struct str packed_answer(const struct answer *ans, struct arena *a)
{
	struct buf b = BUF_MAX(PACKED_MAX);

	answer_pack(ans, &b);
	return taken(&b, a);
}

static bool same_tasks(const struct answer *x, const struct answer *y)
{
	if (x->n_tasks != y->n_tasks || !x->task != !y->task || !x->next != !y->next)
		return false;
	for (size_t i = 0; i < x->n_tasks; i++)
		if (!same_task(&x->tasks[i], &y->tasks[i]))
			return false;
	return (!x->task || same_task(x->task, y->task)) &&
	       (!x->next || same_task(x->next, y->next));
}

static bool same_events(const struct answer *x, const struct answer *y)
{
	if (x->n_events != y->n_events)
		return false;
	for (size_t i = 0; i < x->n_events; i++)
		if (!same_event(&x->events[i], &y->events[i]) ||
		    !str_eq(x->events[i].cursor, y->events[i].cursor) ||
		    x->events[i].at != y->events[i].at)
			return false;
	return true;
}

static bool same_grant(const struct grant *x, const struct grant *y)
{
	if (!x || !y)
		return x == y;
	return str_eq(x->token, y->token) && x->fence == y->fence &&
	       x->expires_at == y->expires_at && x->ttl == y->ttl;
}

static bool same_scalars(const struct answer *x, const struct answer *y)
{
	return x->code == y->code && x->kind == y->kind && x->now == y->now &&
	       str_eq(x->message, y->message) && str_eq(x->hint, y->hint) &&
	       x->applied == y->applied && x->repeated == y->repeated && x->existed == y->existed &&
	       x->has_next == y->has_next && x->total == y->total && str_eq(x->text, y->text) &&
	       x->wait_ms == y->wait_ms && strs_eq(x->warnings, y->warnings) &&
	       memcmp(x->counts, y->counts, sizeof(x->counts)) == 0;
}

static void check_answer(struct str bytes, struct arena *a)
{
	struct answer ans, again;
	struct str text;

	if (answer_unpack(bytes, &ans, a))
		return;
	text = packed_answer(&ans, a);
	CHECK(answer_unpack(text, &again, a) == 0);
	CHECK(same_scalars(&ans, &again) && same_tasks(&ans, &again) && same_events(&ans, &again));
	CHECK(same_grant(ans.lock, again.lock) && same_grant(ans.next_lock, again.next_lock));
	CHECK(ans.n_candidates == again.n_candidates);
	CHECK(str_eq(packed_answer(&again, a), text));

	text = json_checked(answer_json(&ans, a), a);
	CHECK(str_eq(json_checked(answer_json(&again, a), a), text));
	CHECK(str_starts(text, STR("{\"ok\":true")) || str_starts(text, STR("{\"ok\":false")));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const checks[])(struct str, struct arena *) = { check_request, check_answer,
								      check_task, check_event };
	struct arena a = { 0 };

	if (!size)
		return 0;
	checks[data[0] % 4](str_n((const char *)data + 1, size - 1), &a);
	arena_free(&a);
	return 0;
}

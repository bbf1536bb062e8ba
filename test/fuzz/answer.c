/* Answers of a server to a client: an answer that the client takes is complete, and whatever it shows of the answer has
 * no character that acts on a terminal. */
#include <jansson.h>

#include "kit.h"
#include "cmd/view.h"
#include "core/validate.h"
#include "core/request.h"
#include "format/answer_form.h"

#define OUT_MAX (64u << 20)

static struct request request_for(uint8_t op)
{
	struct request rq = { .op = (enum op)(OP_NONE + 1 + op % (OP_END - 1)) };

	if (op_flags(rq.op) & OP_TASK)
		GIVE(&rq, id, STR("t1"));
	if (op & 128)
		GIVE(&rq, explain, 1);
	return rq;
}

static void check_text(const struct buf *b)
{
	for (size_t i = 0; i < b->n; i++)
		CHECK((uint8_t)b->p[i] >= 0x20 || b->p[i] == '\n' || b->p[i] == '\t');
}

static void show(const struct reply *r, struct view *v)
{
	const struct answer *ans = &r->ans;

	if (ans->kind == ANSWER_EVENTS)
		show_events(r, v);
	else if (ans->kind == ANSWER_LOCKS)
		show_locks(r, v);
	else if (ans->kind == ANSWER_CANDIDATES)
		show_candidates(r, v);
	else if (ans->task)
		show_details(r, v);
	if (ans->task && ans->lock)
		show_grant(r, v);
	show_task(r, v);
}

/* Shows an answer as people and programs get it. */
static void use(const struct answer *ans, struct arena *a)
{
	struct buf out = BUF_MAX(OUT_MAX);
	struct view v = { .out = &out, .arena = a };
	struct reply r = { .ans = *ans };
	json_t *o = reply_json(&r, a);
	char *text = json_dumps(o, JSON_COMPACT | JSON_ENSURE_ASCII);

	CHECK(text != NULL);
	if (ans->code == SUCCESS)
		show(&r, &v);
	view_data(&v, PLAIN, ans->message);
	view_text(&v, PLAIN, "\nmore: pawl help %.*s\n", STRF(ans->fault));
	check_text(&out);
	free(text);
	json_decref(o);
	reply_free(&r);
	buf_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena a = { 0 };
	struct answer ans;
	struct request rq;
	char *copy;

	if (!size)
		return 0;
	copy = mem_alloc(size); /* of its own: a read beyond it is noticed */
	memcpy(copy, data + 1, size - 1);
	rq = request_for(data[0]);
	if (!answer_unpack(str_n(copy, size - 1), &ans, &a) && !reply_fault(&rq, &ans, &a)) {
		CHECK(ans.code != SUCCESS || ans.task || !(op_flags(rq.op) & OP_TASK));
		CHECK(!ans.next || ans.next_lock);
		use(&ans, &a);
	}
	arena_free(&a);
	free(copy);
	return 0;
}

/* Packed calls, as a server reads them from any caller and a remote queue from any server: what is opened means the same
 * after it is packed again, and a queue survives the requests. */
#include <errno.h>

#include "kit.h"
#include "record.h"
#include "format/answer_form.h"
#include "queue/frame.h"

#define OUT_MAX (16u << 20)
#define CALLS_MAX 16

/* Opens one frame and packs what it has. -EBADMSG: it cannot be opened. */
typedef int again_fn(struct str one, struct buf *out, struct arena *a);

static int again_request(struct str one, struct buf *out, struct arena *a)
{
	struct frame_extra x;
	struct request rq;
	int r = frame_request_open(one, &rq, &x, a);

	if (!r)
		frame_request(out, &rq, &x);
	return r;
}

static int again_answer(struct str one, struct buf *out, struct arena *a)
{
	struct answer ans;
	int r = answer_unpack(one, &ans, a);

	if (!r)
		frame_answer(out, &ans);
	return r;
}

static int again_parcel(struct str one, struct buf *out, struct arena *a)
{
	struct parcel p;
	int r = frame_parcel_open(one, &p, a);

	if (!r) {
		(void)parcel_fault(&p, a);
		frame_parcel(out, &p);
	}
	return r;
}

#define AGAIN(name, type)                                                         \
	static int again_##name(struct str one, struct buf *out, struct arena *a) \
	{                                                                         \
		struct type *it = arena_new(a, struct type);                      \
		int r = frame_##name##_open(one, it);                             \
                                                                                  \
		if (!r)                                                           \
			frame_##name(out, it);                                    \
		return r;                                                         \
	}
AGAIN(facts, frame_facts)
AGAIN(forecast, forecast)
AGAIN(finding, frame_finding)
AGAIN(bulk, frame_bulk)
AGAIN(item, item)
AGAIN(health, health)

static again_fn *const kinds[] = { again_request, again_answer,   again_parcel,
				   again_facts,   again_forecast, again_finding,
				   again_bulk,    again_item,     again_health };

/* Opened and packed once, or twice: the same bytes. */
static void check_one(again_fn *again, struct str one, struct arena *a)
{
	struct buf first = BUF_MAX(OUT_MAX), second = BUF_MAX(OUT_MAX);
	int r = again(one, &first, a);
	struct str rest, frame;

	CHECK(r == 0 || r == -EBADMSG);
	if (!r) {
		rest = buf_str(&first);
		CHECK(!first.full && frame_cut(&rest, &frame) && !rest.n);
		CHECK(again(frame, &second, a) == 0);
		CHECK(str_eq(buf_str(&first), buf_str(&second)));
	}
	buf_free(&first);
	buf_free(&second);
}

static void check_all(again_fn *again, struct str body)
{
	struct buf copy = BUF_MAX(OUT_MAX);
	struct str rest = body, one;
	struct arena a = { 0 };

	while (frame_cut(&rest, &one)) {
		check_one(again, one, &a);
		frame_add(&copy, one);
	}
	/* the frames are the body, up to the first damaged one */
	CHECK(copy.n + rest.n == body.n && str_starts(body, buf_str(&copy)));
	buf_free(&copy);
	arena_free(&a);
}

/* The requests of a body, made in one commit or each by itself. Each gets an answer that can be sent. */
static void call(struct str body, bool all)
{
	struct queue_config config = { .uri = STR("mem:fuzz"),
				       .policy = policy_default,
				       .opt.who = STR("fuzz"),
				       .impatient = true };
	struct request rqs[CALLS_MAX];
	struct answer answers[CALLS_MAX] = { 0 }, ans = { 0 };
	struct frame_extra extras[CALLS_MAX];
	struct buf out = BUF_MAX(OUT_MAX);
	struct arena a = { 0 };
	struct queue *q;
	struct str one;
	size_t n = 0;

	while (n < CALLS_MAX && frame_cut(&body, &one) &&
	       !frame_request_open(one, &rqs[n], &extras[n], &a)) {
		rqs[n].pass = extras[n].pass;
		rqs[n].role = ROLE_AGENT;
		all = all && !(op_flags(rqs[n].op) & OP_READS);
		n++;
	}
	CHECK(queue_open(&q, &config, STORE_CREATE, &ans, &a) == SUCCESS);
	if (all && n)
		(void)queue_call_all(q, rqs, NULL, answers, n, &a);
	else
		queue_call_many(q, rqs, answers, n, &a);
	for (size_t i = 0; i < n; i++)
		frame_answer(&out, &answers[i]);
	CHECK(!out.full);
	check_all(again_answer, buf_str(&out));
	queue_close(q);
	buf_free(&out);
	arena_free(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t kind = size ? data[0] & 15 : 0;
	struct str body;
	char *copy;

	if (!size || kind >= sizeof(kinds) / sizeof(kinds[0]))
		return 0;
	copy = mem_alloc(size - 1); /* of its own: a read beyond it is noticed */
	memcpy(copy, data + 1, size - 1);
	body = str_n(copy, size - 1);
	check_all(kinds[kind], body);
	if (kinds[kind] == again_request)
		call(body, data[0] & 16);
	free(copy);
	return 0;
}

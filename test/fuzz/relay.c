/* A call that another process left in its slot: taken over, made, and reported. */
#include <errno.h>

#include "kit.h"
#include "record.h"
#include "queue/queue_private.h"

#define CALL_MAX (1u << 20)

static struct str packed(const struct change *c, struct arena *a)
{
	struct buf b = BUF_MAX(CALL_MAX);
	struct str out;

	queue_relay.pack(c, &b);
	CHECK(!b.full);
	out = arena_str(a, buf_str(&b));
	buf_free(&b);
	return out;
}

/* The call that was taken over is handed on unchanged. */
static void check_again(const struct change *c, struct arena *a)
{
	const struct act *first = c->ctx, *second;
	struct change again = { 0 };

	CHECK(queue_relay.adopt(packed(c, a), &again, a) == 0);
	second = again.ctx;
	CHECK(same_request(first->call.rq, second->call.rq));
	CHECK(str_eq(first->call.proof, second->call.proof));
	CHECK(str_eq(first->call.fresh, second->call.fresh));
	CHECK(memcmp(first->call.policy, second->call.policy, sizeof(struct policy)) == 0);
}

/* The owner gets the same answer as if it had made the call itself. */
static void check_report(struct change *c, struct arena *a)
{
	struct buf b = BUF_MAX(CALL_MAX);
	const struct act *w = c->ctx;
	enum result code = w->ans->code;

	queue_relay.report(c, &b);
	CHECK(!b.full);
	CHECK(queue_relay.accept(c, arena_str(a, buf_str(&b))) == 0);
	CHECK(w->ans->code == code);
	buf_free(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena a = { 0 };
	struct store_error err = { 0 };
	struct store_env env = { .mode = STORE_CREATE, .opt.who = STR("fuzz"), .err = &err };
	struct change c = { 0 };
	struct store *s;
	int r = queue_relay.adopt(str_n((const char *)data, size), &c, &a);

	CHECK(r == 0 || r == -EBADMSG);
	if (r == 0) {
		check_again(&c, &a);
		CHECK(store_open(&s, STR("mem:fuzz"), &env) == 0);
		if (s->ops->modify(s, &c, 1) == 0 && c.rc >= 0)
			check_report(&c, &a);
		store_close(s);
	}
	/* the bytes may also be read as an answer */
	if (r == 0)
		(void)queue_relay.accept(&c, str_n((const char *)data, size));
	arena_free(&a);
	return 0;
}

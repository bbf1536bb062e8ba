/* Keeps the answer to each call that has a request id, for a day, in the call's own commit. A
 * repeated call gets that answer and has no second effect. A different call with the same id is
 * refused. */
#include "base/secret.h"
#include "format/answer_form.h"
#include "format/request_form.h"
#include "queue/queue_private.h"

#define KEPT_MS (24 * 3600 * INT64_C(1000))
#define ANSWER_MAX (16u << 20)

struct str repeat_key(const struct request *rq, struct arena *a)
{
	struct str hash = hash_hex(a, rq->request_id);

	return arena_printf(a, "request/%.*s", STRF(hash));
}

/* The stored answer has no tokens. The next task's token comes from the repeated request. */
static void give_token_back(struct act *w)
{
	struct answer *ans = w->ans;

	if (ans->lock)
		ans->lock->token = STR("");
	if (ans->next_lock)
		ans->next_lock->token = STR("");
	if (ans->next && ans->next_lock && str_eq(ans->next->lock.token, w->call.fresh))
		ans->next_lock->token = w->call.rq->new_token;
}

/* Hashes the call without its tokens, run, host and the like, which a repetition may change. */
static struct str packed_call(struct act *w)
{
	const uint64_t aside = UINT64_C(1) << ARG_token | UINT64_C(1) << ARG_new_token |
			       UINT64_C(1) << ARG_explicit | UINT64_C(1) << ARG_run |
			       UINT64_C(1) << ARG_host | UINT64_C(1) << ARG_mode |
			       UINT64_C(1) << ARG_part_of | UINT64_C(1) << ARG_queue_id |
			       UINT64_C(1) << ARG_view;
	struct request call = *w->call.rq;
	struct buf b = BUF_MAX(ANSWER_MAX);
	struct str digest;

	call.has &= ~aside;
	call.id = task_key(w->call.arena, call.id); /* ids ignore case */
	request_pack(&call, &b);
	digest = hash_hex(w->call.arena, buf_str(&b));
	buf_free(&b);
	return digest;
}

int repeat_find(struct act *w)
{
	struct record *rec;
	struct answer *ans = w->ans;
	int r;

	if (!w->call.rq->request_id.n)
		return 0;
	r = edit_get(w->e, repeat_key(w->call.rq, w->call.arena), &rec);
	if (r)
		return r < 0 ? r : 0;
	if (record_fault(rec, w->call.arena))
		return bad_refuse(ans, rec, w->call.arena);
	(void)answer_unpack(arena_str(w->call.arena, rec->body), ans, w->call.arena);
	if (!str_eq(rec->hot, packed_call(w))) {
		*ans = (struct answer){ .now = w->e->now };
		return act_refuse(w, CONFLICT, STR("this request id belongs to another call"),
				  STR("every call needs a request id of its own"));
	}
	ans->repeated = 1;
	ans->now = w->e->now;
	give_token_back(w);
	return REFUSED; /* nothing to write */
}

void repeat_keep(struct act *w)
{
	struct record *rec;
	struct grant *next_lock = w->ans->next_lock, hidden;
	struct answer kept = *w->ans;
	struct buf b = BUF_MAX(ANSWER_MAX);

	if (!w->call.rq->request_id.n)
		return;
	if (next_lock) {
		hidden = *next_lock;
		hidden.token = STR("");
		kept.next_lock = &hidden;
	}
	answer_pack(&kept, &b);
	rec = arena_new(w->call.arena, struct record);
	*rec = (struct record){ .key = repeat_key(w->call.rq, w->call.arena),
				.ix = { .lane = LANE_GOING, .eligible_at = w->e->now + KEPT_MS },
				.hot = packed_call(w),
				.body = arena_str(w->call.arena, buf_str(&b)),
				.body_changed = true };
	buf_free(&b);
	edit_put(w->e, rec);
	w->writes++;
}

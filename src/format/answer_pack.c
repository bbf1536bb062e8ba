/*
 * An answer as bytes, to send it to another process and to keep it for a repeated call. To send one more member, add a
 * row with a new tag: older versions skip it.
 */
#include <errno.h>

#include "format/answer_form.h"
#include "format/event.h"
#include "format/task_form.h"

#define ROW(tag, kind, when, type, member, ...)                                           \
	{                                                                                 \
		tag, SHAPE_##kind, SHAPE_##when, .offset = offsetof(struct type, member), \
						 ##__VA_ARGS__                            \
	}

#define G(tag, kind, member) ROW(tag, kind, ALWAYS, grant, member)

static const struct shape_member grant_members[] = {
	G(1, STR, token),
	G(2, INT, fence),
	G(3, INT, expires_at),
	G(4, INT, ttl),
};
static const struct shape grant_shape = SHAPE_OF(grant_members, grant);

#define NOTICE_FIELDS_MAX 256 /* a task has fewer: the bytes of a server may say anything */
#define N(tag, kind, member, ...) ROW(tag, kind, ALWAYS, notice, member, ##__VA_ARGS__)

static const struct shape_member notice_members[] = {
	N(1, STR, by),
	N(2, STR, reason),
	N(3, INT, at),
	N(4, LIST, fields, .end = NOTICE_FIELDS_MAX),
};
static const struct shape notice_shape = SHAPE_OF(notice_members, notice);

#define C(tag, kind, member) ROW(tag, kind, ALWAYS, candidate, member)

static const struct shape_member candidate_members[] = {
	C(1, STR, id), C(2, STR, title), C(3, STR, why), C(4, INT, eligible), C(5, INT, place),
};
static const struct shape candidate_shape = SHAPE_OF(candidate_members, candidate);

#define S(tag, kind, member) ROW(tag, kind, ALWAYS, standing, member)

static const struct shape_member standing_members[] = {
	S(1, BOOL, waits),
	S(2, BOOL, more),
	S(3, LIST, on),
};
static const struct shape standing_shape = SHAPE_OF(standing_members, standing);

#define W(tag, kind, member) ROW(tag, kind, ALWAYS, allowed, member)

static const struct shape_member allowed_members[] = {
	W(1, INT, can), W(2, INT, holder_can), W(3, INT, position), W(4, STR, why), W(5, INT, live),
};
static const struct shape allowed_shape = SHAPE_OF(allowed_members, allowed);

#define L(tag, kind, member, ...) ROW(tag, kind, ALWAYS, task_link, member, ##__VA_ARGS__)

static const struct shape_member link_members[] = {
	ROW(1, ENUM, NEEDED, task_link, kind, .end = LINK_PARENT + 1),
	L(2, STR, id),
	L(3, STR, title),
	L(4, STR, holder),
	L(5, INT, status, .end = STATUS_END),
};
static const struct shape link_shape = SHAPE_OF(link_members, task_link);

#define T(tag, kind, member) ROW(tag, kind, ALWAYS, task_attempt, member)

static const struct shape_member attempt_members[] = {
	T(1, STR, agent), T(2, STR, outcome),  T(3, STR, text),
	T(4, INT, at),    T(5, INT, ended_at), T(6, INT, fence),
};
static const struct shape attempt_shape = SHAPE_OF(attempt_members, task_attempt);

#define ARRAY_OF(type, length, shape) .count = offsetof(struct type, length), .of = &(shape)
#define R(tag, kind, member, ...) ROW(tag, kind, ALWAYS, related, member, ##__VA_ARGS__)

static const struct shape_member related_members[] = {
	R(1, ROW, more, .end = LINK_DEPENDENT + 1),
	R(2, ARRAY, links, ARRAY_OF(related, n_links, link_shape)),
	R(3, ARRAY, attempts, ARRAY_OF(related, n_attempts, attempt_shape)),
	R(4, ARRAY, history, ARRAY_OF(related, n_history, event_shape)),
};
static const struct shape related_shape = SHAPE_OF(related_members, related);

#define A(tag, kind, when, member, ...) ROW(tag, kind, when, answer, member, ##__VA_ARGS__)
#define ONE(tag, member, shape) A(tag, ONE, SOME, member, .of = &(shape))
#define ARRAY(tag, kind, member, length, shape) \
	A(tag, kind, SOME, member, ARRAY_OF(answer, length, shape))
#define STATUSES .end = STATUS_END - BACKLOG

static const struct shape_member members[] = {
	A(1, ENUM, NEEDED, code),
	A(2, ENUM, ALWAYS, kind, .end = ANSWER_TYPED + 1),
	A(3, INT, ALWAYS, now),
	A(4, STR, ALWAYS, message),
	A(5, STR, ALWAYS, hint),
	A(6, CHAR, ALWAYS, applied),
	A(7, INT, ALWAYS, repeated),
	A(8, INT, ALWAYS, existed),
	A(12, INT, ALWAYS, has_next),
	A(16, INT, ALWAYS, total),
	A(20, STR, ALWAYS, text),
	A(21, INT, ALWAYS, wait_ms),
	A(22, INT, ALWAYS, held),
	A(23, INT, ALWAYS, barred),
	A(24, STR, ALWAYS, queue_id),
	A(9, LIST, SOME, warnings),
	ONE(10, task, task_shape),
	ONE(11, next, task_shape),
	ONE(13, lock, grant_shape),
	ONE(14, next_lock, grant_shape),
	ONE(25, changed, notice_shape),
	ONE(26, paused, notice_shape),
	ONE(27, came_back, notice_shape),
	ARRAY(15, ARRAY, tasks, n_tasks, task_shape),
	ARRAY(17, ARRAY, events, n_events, event_shape),
	ARRAY(18, ARRAY, candidates, n_candidates, candidate_shape),
	A(19, ROW, ALWAYS, counts[BACKLOG], STATUSES),
	/* from here on: only in answers for another machine, and only if set */
	A(28, STR, SOME, fault),
	ARRAY(29, BESIDE, standing, n_tasks, standing_shape),
	ONE(30, related, related_shape),
	A(31, INT, SOME, waiting),
	A(32, BOOL, SOME, waiting_more),
	A(33, INT, SOME, ended),
	A(34, ROW, SOME, archived[BACKLOG], STATUSES),
	ARRAY(35, ARRAY, allowed, n_allowed, allowed_shape),
};
static const struct shape shape = SHAPE_OF(members, answer);

void answer_pack(const struct answer *ans, struct buf *out)
{
	shape_pack(&shape, SHAPE_ALL, ans, out);
}

int answer_unpack(struct str bytes, struct answer *out, struct arena *a)
{
	*out = (struct answer){ 0 };
	if (shape_unpack(&shape, SHAPE_ALL, bytes, out, a) || !result_known(out->code) ||
	    out->now < 0 || (out->n_allowed && out->n_allowed != answer_tasks(out)))
		return -EBADMSG;
	if (out->applied != 'n' && out->applied != '?')
		out->applied = '\0';
	return 0;
}

struct answer answer_copy(const struct answer *ans, struct arena *a)
{
	struct buf b = BUF_MAX(SIZE_MAX / 4);
	struct answer out = { 0 };

	answer_pack(ans, &b);
	(void)answer_unpack(arena_str(a, buf_str(&b)), &out, a);
	buf_free(&b);
	return out;
}

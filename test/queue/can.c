/*
 * `can` of an answer against the queue itself: each way on a task in each status, under each lock, by each caller in each
 * role. A way that `can` leaves out is refused or does nothing; a way that it names succeeds.
 */
#include "suite.h"

#include "core/role.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How the task gets its status, without a lock in the end. */
static const char *const steps[STATUS_END][4] = {
	[BACKLOG] = { "create depends=base status=backlog" },
	[READY] = { "create depends=base" },
	[IN_PROGRESS] = { "create depends=base", "claim new_token=T", "lock_break reason=r" },
	[BLOCKED] = { "create depends=base", "claim new_token=T",
		      "block token=T reason=r unblock_action=u", "lock_break reason=r" },
	[NEEDS_HELP] = { "create depends=base", "claim new_token=T", "escalate token=T reason=r" },
	[REVIEW] = { "create depends=base", "claim new_token=T", "review token=T summary=x" },
	[DONE] = { "create depends=base", "claim new_token=T", "done token=T" },
	[FAILED] = { "create depends=base", "claim new_token=T", "fail token=T reason=r" },
	[CANCELED] = { "create depends=base", "cancel reason=r" },
};

enum lock_kind { FREE, CLAIMED, MANUAL, KINDS };

struct scene {
	enum status status;
	enum lock_kind kind;
	bool expired, holder;
	enum role role;
};

/* The arguments of each way, besides the id and the caller. */
static const char *const words[ACTION_END] = {
	[1] = "claim new_token=N",
	[2] = "heartbeat",
	[3] = "done",
	[4] = "done take=1 new_token=N",
	[5] = "review summary=x",
	[6] = "release",
	[7] = "release force=1 reason=r",
	[8] = "block reason=r unblock_action=u",
	[9] = "escalate reason=r",
	[10] = "fail reason=r",
	[11] = "approve",
	[12] = "rework reason=r",
	[13] = "unblock",
	[14] = "retry",
	[15] = "reopen reason=r",
	[16] = "cancel reason=r",
	[17] = "cancel reason=r force=1",
	[18] = "archive",
	[19] = "update title=x",
	[20] = "update title=x force=1 reason=r",
	[21] = "update status=ready",
	[22] = "update status=ready force=1 reason=r",
	[23] = "update status=backlog",
	[24] = "update status=backlog force=1 reason=r",
	[25] = "depend depends=other",
	[26] = "depend depends=other force=1 reason=r",
	[27] = "undepend depends=base",
	[28] = "undepend depends=base force=1 reason=r",
	[29] = "comment text=x",
	[30] = "remove",
	[31] = "remove force=1 reason=r",
	[32] = "lock_acquire new_token=N",
	[33] = "lock_release",
	[34] = "lock_break reason=r",
};

static bool is_possible(const struct scene *sc)
{
	if (sc->kind == FREE)
		return !sc->expired && !sc->holder;
	if (sc->kind == CLAIMED)
		return sc->status == IN_PROGRESS || sc->status == BLOCKED;
	return sc->status != DONE && sc->status != CANCELED;
}

static void make(struct suite *s, const struct scene *sc, const char *id)
{
	size_t n = sc->kind != CLAIMED ? 4 : sc->status == IN_PROGRESS ? 2 : 3;

	for (size_t i = 0; i < n && steps[sc->status][i]; i++)
		ok(s, "%s id=%s", steps[sc->status][i], id);
	if (sc->kind == MANUAL)
		ok(s, "lock_acquire id=%s new_token=T", id);
	if (sc->expired)
		advance(1000 * tick());
}

static struct answer *call_as(struct suite *s, const struct scene *sc, const char *text,
			      const char *id)
{
	struct answer *ans = arena_new(&s->a, struct answer);
	struct request rq;
	char full[300];

	snprintf(full, sizeof(full), "%s id=%s agent=%s", text, id, sc->holder ? "ann" : "pat");
	rq = parse(s, full);
	if (sc->holder && op_flags(rq.op) & OP_HELD)
		GIVE(&rq, token, parse(s, "heartbeat id=x token=T").token);
	rq.role = sc->role;
	queue_call(s->q, &rq, ans, &s->a);
	return ans;
}

static uint64_t can_of(struct suite *s, const struct scene *sc, const char *id)
{
	struct answer *ans;
	char text[40];

	snprintf(text, sizeof(text), "show view=%u", VIEW_CAN);
	ans = call_as(s, sc, text, id);
	assert_int_equal(ans->code, SUCCESS);
	assert_int_equal(ans->task->status, sc->status);
	assert_int_equal(ans->n_allowed, 1);
	return (uint64_t)(sc->holder ? ans->allowed->holder_can : ans->allowed->can);
}

static bool works(struct suite *s, const struct scene *sc, int way, const char *id)
{
	const struct answer *ans = call_as(s, sc, words[way], id);

	return ans->code == SUCCESS && !ans->repeated &&
	       (action_op(way) != OP_ARCHIVE || ans->n_tasks);
}

static void expect(const struct scene *sc, int way, bool expected, bool got)
{
	if (expected != got)
		fail_msg(
			"%s on a task in %s (lock kind %d%s) by %s with role %d: can says %d, the queue %d",
			action_name(way), status_name(sc->status), sc->kind,
			sc->expired ? ", expired" : "", sc->holder ? "its holder" : "another",
			sc->role, expected, got);
}

/* The refused ways leave the task as it is, so they share one. A force that nothing needs is no way of its own. */
static void try_all(struct suite *s, const struct scene *sc, int *made)
{
	char id[20];
	uint64_t can;

	snprintf(id, sizeof(id), "x%d", ++*made);
	make(s, sc, id);
	can = can_of(s, sc, id);
	for (int way = 1; way < ACTION_END; way++) {
		bool plain = action_plain(way) != way && can & ACTION_BIT(action_plain(way));

		assert_non_null(words[way]);
		/* to set the status that it has changes nothing */
		if (can & ACTION_BIT(way) || plain ||
		    (action_op(way) == OP_UPDATE && action_to(way) == sc->status))
			continue;
		expect(sc, way, false, works(s, sc, way, id));
	}
	for (int way = 1; way < ACTION_END; way++) {
		if (!(can & ACTION_BIT(way)))
			continue;
		snprintf(id, sizeof(id), "x%d", ++*made);
		make(s, sc, id);
		expect(sc, way, true, works(s, sc, way, id));
	}
}

/* The rules are the same on each store, so slow stores get a sample. */
static bool is_fast(void)
{
	const char *uri = getenv("PAWL_TEST_STORE");

	return !uri || !strncmp(uri, "mem:", 4) || !strncmp(uri, "sqlite:", 7);
}

static void each_role(struct suite *s, struct scene *sc, int *made)
{
	enum role last = is_fast() && !is_served() ? ROLE_ADMIN : ROLE_NONE;

	if (!is_fast() && sc->status != IN_PROGRESS)
		return;
	for (sc->role = ROLE_NONE; is_possible(sc) && sc->role <= last; sc->role++)
		try_all(s, sc, made);
}

static void test_matrix(void **state)
{
	struct suite *s = *state;
	int made = 0;

	if (!clock_is_ours())
		skip_because("the leases of this test expire in no time");
	ok(s, "create id=base");
	ok(s, "done id=base take=1 new_token=B");
	ok(s, "create id=other");
	for (int status = BACKLOG; status < STATUS_END; status++)
		for (int kind = FREE; kind < KINDS; kind++)
			for (int bits = 0; bits < 4; bits++) {
				struct scene sc = { .status = (enum status)status,
						    .kind = (enum lock_kind)kind,
						    .expired = bits & 1,
						    .holder = bits & 2 };

				each_role(s, &sc, &made);
			}
}

int can_tests(void)
{
	const struct CMUnitTest tests[] = {
		QUEUE_TEST(test_matrix),
	};

	return cmocka_run_group_tests_name("can", tests, NULL, NULL);
}

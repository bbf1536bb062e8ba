/*
 * Random sequences of calls on a few tasks. After every step the test computes afresh, from the
 * plain list, all that a task records about others (open_deps, canceled_deps, open_subs) and the
 * whole selection. The queue must agree. A failing seed is printed: PAWL_SEED runs it again.
 */
#include "suite.h"

#include <stdio.h>
#include <stdlib.h>

#define IDS 30

struct walk {
	struct suite *s;
	uint64_t seed;
	struct task *tasks; /* the list after the last step */
	size_t n;
	int64_t now;
	int64_t fences[IDS]; /* the highest fence seen */
	char last[300];      /* the last call */
	int accepted, refused, taken;
};

static uint32_t pick(struct walk *w, uint32_t limit)
{
	return rnd(&w->seed, limit);
}

static const struct task *find(const struct walk *w, struct str id)
{
	for (size_t i = 0; i < w->n; i++)
		if (str_eq_nocase(w->tasks[i].id, id))
			return &w->tasks[i];
	return NULL;
}

/* --- the model -------------------------------------------------------------------------------- */

#define CHECK(w, cond, t)                                                                      \
	do {                                                                                   \
		if (!(cond))                                                                   \
			fail_msg("after '%s': %.*s: not %s", (w)->last, STRF((t)->id), #cond); \
	} while (0)

static bool is_live(const struct task *t, int64_t now)
{
	return t->lock.holder.n && now < t->lock.expires_at;
}

static bool is_eligible(const struct walk *w, const struct task *t)
{
	if (is_live(t, w->now))
		return false;
	for (size_t i = 0; i < w->n; i++)
		if (str_eq_nocase(w->tasks[i].parent, t->id) && w->tasks[i].status != DONE &&
		    w->tasks[i].status != CANCELED)
			return false;
	if (t->status == IN_PROGRESS)
		return t->lock.holder.n || w->now >= t->free_at;
	if (t->status != READY || t->not_before > w->now)
		return false;
	for (size_t i = 0; i < t->depends.n; i++)
		if (find(w, t->depends.v[i])->status != DONE)
			return false;
	return true;
}

static bool goes_first(const struct task *a, const struct task *b)
{
	if (a->class_rank != b->class_rank)
		return a->class_rank < b->class_rank;
	if (a->priority != b->priority)
		return a->priority > b->priority;
	if (a->due != b->due)
		return a->due && (!b->due || a->due < b->due);
	if (a->updated_at != b->updated_at)
		return a->updated_at < b->updated_at;
	if (a->id.n != b->id.n) /* all are k and a number */
		return a->id.n < b->id.n;
	return str_cmp(a->id, b->id) < 0;
}

/* Abandoned too often: the task is eligible, but the next claim sends it to Needs Help. */
static bool worn_out(const struct walk *w, const struct task *t)
{
	int64_t max = w->s->config.policy.max_abandoned;

	return t->status == IN_PROGRESS && t->lock.holder.n && max && t->abandoned + 1 >= max;
}

/* The eligible tasks in order, followed by NULL. */
static void select_all(const struct walk *w, const struct task **out)
{
	size_t n = 0;

	for (size_t i = 0; i < w->n; i++) {
		size_t k = n;

		if (!is_eligible(w, &w->tasks[i]))
			continue;
		for (; k && goes_first(&w->tasks[i], out[k - 1]); k--)
			out[k] = out[k - 1];
		out[k] = &w->tasks[i];
		n++;
	}
	out[n] = NULL;
}

static void check_deps(const struct walk *w, const struct task *t)
{
	int64_t open = 0, canceled = 0;

	for (size_t i = 0; i < t->depends.n; i++) {
		const struct task *d = find(w, t->depends.v[i]);

		CHECK(w, d != NULL, t);
		open += d->status != DONE;
		canceled += d->status == CANCELED;
	}
	CHECK(w, t->open_deps == open, t);
	CHECK(w, t->canceled_deps == canceled, t);
	CHECK(w, t->status != READY || !canceled, t);
}

static void check_subs(const struct walk *w, const struct task *t)
{
	int64_t open = 0;

	for (size_t i = 0; i < w->n; i++)
		open += str_eq_nocase(w->tasks[i].parent, t->id) && w->tasks[i].status != DONE &&
			w->tasks[i].status != CANCELED;
	CHECK(w, t->open_subs == open, t);
	CHECK(w, !t->parent.n || find(w, t->parent), t);
}

/* Does `t` wait for `goal`, in at most `depth` steps? */
static bool waits(const struct walk *w, const struct task *t, const struct task *goal, int depth)
{
	bool found = false;

	if (!depth)
		return false;
	for (size_t i = 0; !found && i < w->n; i++) {
		const struct task *o = &w->tasks[i];
		bool direct = str_eq_nocase(o->parent, t->id);

		for (size_t k = 0; k < t->depends.n; k++)
			direct |= str_eq_nocase(t->depends.v[k], o->id);
		found = direct && (o == goal || waits(w, o, goal, depth - 1));
	}
	return found;
}

static int number_of(struct str id)
{
	int64_t n = -1;

	str_to_i64(str_n(id.p + 1, id.n - 1), &n);
	return (int)n;
}

static void check_history(struct walk *w, const struct task *t)
{
	int k = number_of(t->id);

	CHECK(w, t->fence >= w->fences[k], t);
	CHECK(w, t->fence <= w->fences[k] + 1, t);
	w->fences[k] = t->fence;
	CHECK(w, t->status >= BACKLOG && t->status < STATUS_END, t);
	CHECK(w, !t->lock.holder.n || (t->status != DONE && t->status != CANCELED), t);
	CHECK(w, t->lock.holder.n || !t->run.n, t);
	CHECK(w, !t->done_at == (t->status != DONE), t);
}

static void check_order(struct walk *w)
{
	const struct task *want[IDS + 1];
	struct answer *ans = ok(w->s, "next explain=1"), *next = call(w->s, "next");
	size_t n = 0;

	w->now = ans->now;
	select_all(w, want);
	for (; want[n]; n++) {
		const struct candidate *c = &ans->candidates[n];

		CHECK(w, n < ans->n_candidates && str_eq(c->id, want[n]->id), want[n]);
		CHECK(w, c->eligible && c->place == (int64_t)n + 1, want[n]);
	}
	for (size_t i = n; i < ans->n_candidates; i++)
		if (ans->candidates[i].eligible || ans->candidates[i].place)
			fail_msg("after '%s': %.*s is not eligible", w->last,
				 STRF(ans->candidates[i].id));
	assert_int_equal(ans->n_candidates, w->n);
	if (!want[0])
		assert_int_equal(next->code, NO_TASKS);
	else
		CHECK(w, next->task && str_eq(next->task->id, want[0]->id), want[0]);
}

static void check_counts(const struct walk *w)
{
	struct answer *ans = ok(w->s, "overview");
	int64_t counts[STATUS_END] = { 0 };

	for (size_t i = 0; i < w->n; i++)
		counts[w->tasks[i].status]++;
	for (int st = BACKLOG; st < STATUS_END; st++)
		if (counts[st] != ans->counts[st])
			fail_msg("after '%s': %d tasks are %s, not %d", w->last, (int)counts[st],
				 status_name(st), (int)ans->counts[st]);
}

static void look(struct walk *w)
{
	struct answer *ans = ok(w->s, "list");

	w->tasks = ans->tasks;
	w->n = ans->n_tasks;
	w->now = ans->now;
}

static void check_all(struct walk *w)
{
	look(w);
	for (size_t i = 0; i < w->n; i++) {
		check_deps(w, &w->tasks[i]);
		check_subs(w, &w->tasks[i]);
		check_history(w, &w->tasks[i]);
	}
	if (pick(w, 20) == 0)
		for (size_t i = 0; i < w->n; i++)
			CHECK(w, !waits(w, &w->tasks[i], &w->tasks[i], 6), &w->tasks[i]);
	check_order(w);
	check_counts(w);
}

/* --- the calls -------------------------------------------------------------------------------- */

static const char *const agents[] = { "ann", "bob" };
static const char *const classes[] = { "Expedite", "Fixed_Date", "Standard", "Intangible" };

/* #: an id, @: its token by one of the agents, %: the agent, ~: a class, *: a small number */
static const char *const calls[] = {
	"create id=# class_rank=~ priority=*",
	"create id=# due=*",
	"create id=# parent=# depends=#",
	"create id=# depends=#,# delay=*t",
	"create id=# parent=# status=Backlog",
	"create id=# if_absent=1",
	"claim id=# new_token=@ agent=%",
	"claim id=# new_token=@ agent=% ttl=1t",
	"claim id=# new_token=@ agent=% fence=*",
	"heartbeat id=# token=@",
	"release id=# token=@",
	"done id=# token=@",
	"done id=# token=@",
	"done id=# token=@ claim_next=1 new_token=next agent=%",
	"review id=# token=@ summary=s",
	"approve id=#",
	"rework id=# reason=r",
	"block id=# token=@ reason=r unblock_action=u",
	"escalate id=# token=@ reason=r",
	"unblock id=#",
	"fail id=# token=@ reason=r",
	"retry id=#",
	"reopen id=# reason=r",
	"cancel id=# token=@ reason=r",
	"cancel id=# reason=r",
	"update id=# token=@ priority=* class_rank=~",
	"update id=# token=@ due=*",
	"update id=# parent=#",
	"update id=# parent=",
	"update id=# status=Ready",
	"update id=# status=Backlog",
	"update id=# delay=*t",
	"depend id=# depends=#",
	"depend id=# depends=#,#",
	"undepend id=# depends=#",
	"remove id=#",
	"remove id=# force=1 reason=r",
	"lock_acquire id=# new_token=@ ttl=2t",
	"lock_release id=# token=@",
	"lock_break id=# reason=r",
	"lock_cleanup",
	"status id=# status=In_Progress new_token=@ token=@ reason=r agent=%",
	"status id=# status=Done token=@",
	"status id=# status=Ready token=@",
	"comment id=# text=t",
};
#define N_CALLS (sizeof(calls) / sizeof(*calls))

static int an_id(struct walk *w)
{
	return (int)pick(w, IDS);
}

/* Usually the agent that holds the task. */
static int an_agent(struct walk *w, int id)
{
	char name[16];
	const struct task *t;

	snprintf(name, sizeof(name), "k%d", id);
	t = find(w, str_c(name));
	if (t && t->lock.holder.n && pick(w, 8))
		return str_is(t->lock.holder, agents[1]);
	return (int)pick(w, 2);
}

static const char *fill_in(struct walk *w, const char *form, struct buf *b)
{
	int id = an_id(w), who = an_agent(w, id);
	bool first = true;

	for (; *form; form++) {
		if (*form == '#')
			buf_addf(b, "k%d", first ? id : an_id(w));
		else if (*form == '@')
			buf_addf(b, "k%d-%s", id, agents[who]);
		else if (*form == '%')
			buf_addf(b, "%s", agents[who]);
		else if (*form == '~')
			buf_addf(b, "%s", classes[pick(w, 4)]);
		else if (*form == '*')
			buf_addf(b, "%u", pick(w, 4));
		else
			buf_addc(b, *form);
		first &= *form != '#';
	}
	snprintf(w->last, sizeof(w->last), "%.*s", STRF(buf_str(b)));
	return w->last;
}

/* A refusal changes nothing, except a task that was abandoned too often. */
static void step(struct walk *w)
{
	struct buf b = BUF_MAX(300);
	struct str before = dump(w->s);
	struct answer *ans;

	ans = call(w->s, "%s", fill_in(w, calls[pick(w, N_CALLS)], &b));
	buf_free(&b);
	assert_true(ans->code != API_ERROR && ans->code != USAGE);
	if (ans->code == SUCCESS) {
		w->accepted++;
		return;
	}
	w->refused++;
	if (!str_has_nocase(ans->message, STR("now needs help")))
		same_dump(before, dump(w->s), w->last);
}

/* `next --claim` gives the tasks in the model's order, one after the other, until none is left. */
static void drain(struct walk *w)
{
	for (int i = 0;; i++) {
		const struct task *want[IDS + 1];
		struct answer *ans;
		size_t k = 0;

		snprintf(w->last, sizeof(w->last), "take new_token=%u-%d ttl=%ut", pick(w, 1000000),
			 i, 1 + pick(w, 3));
		look(w);
		select_all(w, want);
		while (want[k] && worn_out(w, want[k]))
			k++;
		ans = call(w->s, "%s", w->last);
		if (!want[k]) {
			assert_int_equal(ans->code, NO_TASKS);
			return;
		}
		CHECK(w, ans->task && str_eq(ans->task->id, want[k]->id), want[k]);
		CHECK(w, ans->lock->fence == want[k]->fence + 1, want[k]);
		w->taken++;
		check_all(w);
	}
}

/* PAWL_TEST_STEPS on stores where one takes long; it takes some hundred until there are tasks to speak of. */
static int steps(void)
{
	int64_t n;

	return str_to_i64(str_c(getenv("PAWL_TEST_STEPS")), &n) ? (int)n : 1500;
}

static void walk(struct suite *s, uint64_t seed)
{
	struct walk w = { .s = s, .seed = seed };
	const int n = steps();

	print_message("seed %llu\n", (unsigned long long)seed);
	for (int i = 0; i < n; i++) {
		arena_free(&s->a);
		look(&w);
		step(&w);
		check_all(&w);
		if (pick(&w, 4) == 0)
			advance(tick() / 2);
		if (pick(&w, 150) == 0)
			drain(&w);
	}
	print_message("%d accepted, %d refused, %d taken\n", w.accepted, w.refused, w.taken);
	assert_true(w.accepted > n / 10 - 40 && w.refused > n / 10 && w.taken > n / 150 - 3);
}

static uint64_t first_seed(void)
{
	const char *text = getenv("PAWL_SEED");
	int64_t n;

	return text && str_to_i64(str_c(text), &n) ? (uint64_t)n : 0;
}

static void random_1(void **state)
{
	struct suite *s = unless_served(state, "time must stand still between two reads");

	walk(s, first_seed() ? first_seed() : 1);
}

static void random_2(void **state)
{
	struct suite *s = unless_served(state, "it sets the policy in its own process");

	s->config.policy.max_abandoned = 2;
	reopen(s);
	walk(s, first_seed() ? first_seed() : 2);
}

int random_tests(void)
{
	const struct CMUnitTest tests[] = {
		QUEUE_TEST(random_1),
		QUEUE_TEST(random_2),
	};

	return cmocka_run_group_tests_name("random", tests, NULL, NULL);
}

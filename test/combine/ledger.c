#include "ledger.h"

#include <glob.h>
#include <signal.h>
#include <unistd.h>

#include "base/secret.h"
#include "store/local/combine.h"

#define CALLS 400000
#define LEEWAY 15000   /* ms */
#define LONG_TEXT 3000 /* more than fits into a slot */
#define LONG_ANSWER 9000

enum fate { NOTHING, ASKED, ACKED, NOT_APPLIED, UNSURE };

struct line {
	_Atomic unsigned char fate, where;
	unsigned short found;
};

static struct ledger {
	struct ledger_counts counts;
	struct line calls[CALLS];
	struct {
		unsigned char where;
		int fence, done;
		/* 0: the claiming process was killed before it had written the whole note */
		_Atomic int task;
	} claims[CALLS];
	/* the armed step */
	char step[16], watched[16];
	_Atomic int armed, skip, sig, hit, seen;
} * ledger;

/* --- steps ---------------------------------------------------------------------------------------- */

static void at_step(const char *name)
{
	int armed = 1;

	if (strcmp(name, ledger->watched) == 0)
		ledger->seen++;
	if (!ledger->armed || strcmp(name, ledger->step) != 0 || ledger->skip-- > 0)
		return;
	if (!__atomic_compare_exchange_n((int *)&ledger->armed, &armed, 0, false, __ATOMIC_SEQ_CST,
					 __ATOMIC_SEQ_CST))
		return;
	ledger->hit = getpid();
	kill(getpid(), ledger->sig);
}

void step_arm(const char *step, int skip, int sig)
{
	ledger->armed = 0;
	ledger->hit = 0;
	snprintf(ledger->step, sizeof(ledger->step), "%s", step);
	ledger->skip = skip;
	ledger->sig = sig;
	ledger->armed = 1;
}

void step_disarm(void)
{
	ledger->armed = 0;
}

pid_t step_hit(void)
{
	return ledger->hit;
}

void step_watch(const char *step)
{
	snprintf(ledger->watched, sizeof(ledger->watched), "%s", step);
	ledger->seen = 0;
}

int step_seen(void)
{
	return ledger->seen;
}

/* --- the queues ----------------------------------------------------------------------------------- */

static const char *const names[QUEUES] = { "", "other" };

struct queue_config ledger_config(int where, int64_t timeout_ms)
{
	struct queue_config config = kit_config(timeout_ms);

	config.opt.queue = str_c(names[where]);
	return config;
}

/* t1 has short answers; the answers of t2 do not fit into a slot. Neither is ever eligible. */
static void make_queue(int where)
{
	struct queue_config config = ledger_config(where, 20000);
	struct queue *q = kit_open_as(&config, STORE_CREATE);
	struct arena a = { 0 };

	for (int i = 0; i < 2; i++) {
		struct request rq = kit_request(OP_CREATE, STR(""), STR("maker"));
		struct answer ans;
		char *text = arena_alloc(&a, LONG_ANSWER);

		memset(text, 'x', LONG_ANSWER);
		GIVE(&rq, title, STR("for comments"));
		GIVE(&rq, delay, INT64_C(86400000));
		if (i)
			GIVE(&rq, description, str_n(text, LONG_ANSWER));
		kit_call(q, &rq, &ans, &a);
		CHECK(ans.code == SUCCESS, "create: %.*s", STRF(ans.message));
	}
	arena_free(&a);
	queue_close(q);
}

static char far[200]; /* the path of the gate of the first queue, without its end */

bool ledger_far(void)
{
	return str_starts(str_c(kit_uri()), STR("postgres"));
}

void ledger_file(char *out, size_t room, const char *end)
{
	if (ledger_far())
		snprintf(out, room, "%s%s", far, end);
	else
		snprintf(out, room, "%s/queue.db-%s", kit_folder(), end);
}

void ledger_hold_gate(struct gate *g)
{
	char path[200];
	struct stat like = { .st_mode = 0600, .st_uid = geteuid(), .st_gid = getegid() };

	ledger_file(path, sizeof(path), "gate");
	CHECK(gate_open(g, path, &like) == 0, "no gate");
	CHECK(gate_lock(g, 20000, STR("the test")) == 0, "the gate is taken");
}

void ledger_leave_gate(struct gate *g)
{
	gate_unlock(g); /* the children inherited it */
	gate_close(g);
}

/* Only the first queue has a gate yet. */
static void find_far(void)
{
	char pattern[200];
	glob_t found;

	snprintf(pattern, sizeof(pattern), "%s/pawl/pg-*.gate", getenv("XDG_RUNTIME_DIR"));
	CHECK(glob(pattern, 0, NULL, &found) == 0 && found.gl_pathc == 1, "%zu gates match %s",
	      found.gl_pathc, pattern);
	snprintf(far, sizeof(far), "%.*s", (int)strlen(found.gl_pathv[0]) - 4, found.gl_pathv[0]);
	globfree(&found);
}

int ledger_option(int argc, char **argv, int i, int otherwise)
{
	int64_t n = otherwise;

	CHECK(i >= argc || str_to_i64(str_c(argv[i]), &n), "%s is no number", argv[i]);
	return (int)n;
}

void ledger_begin(void)
{
	ledger = shared_alloc(sizeof(*ledger));
	for (int i = 0; i < QUEUES; i++) {
		make_queue(i);
		if (ledger_far() && i == 0)
			find_far();
	}
	combine_step = at_step;
}

const struct ledger_counts *ledger_counts(void)
{
	return &ledger->counts;
}

/* --- calls ---------------------------------------------------------------------------------------- */

static void timed_call(struct queue *q, const struct request *rq, struct answer *ans,
		       int64_t timeout_ms, struct arena *a)
{
	int64_t start = kit_ms();

	queue_call(q, rq, ans, a);
	CHECK(kit_ms() - start < timeout_ms + LEEWAY, "%s took %d ms", op_name(rq->op),
	      (int)(kit_ms() - start));
	CHECK(ans->code != USAGE && ans->code != MISCONFIGURED, "%s: %s: %.*s", op_name(rq->op),
	      result_name(ans->code), STRF(ans->message));
}

/* false: API_ERROR. */
static bool note(struct line *e, const struct answer *ans)
{
	struct ledger_counts *n = &ledger->counts;

	if (ans->code == SUCCESS) {
		e->fate = ACKED;
		n->acked++;
		return true;
	}
	CHECK(ans->code == API_ERROR, "%s: %.*s", result_name(ans->code), STRF(ans->message));
	CHECK(ans->applied == 'n' || ans->applied == '?', "applied is %d", ans->applied);
	CHECK(ans->message.n, "no message");
	e->fate = ans->applied == 'n' ? NOT_APPLIED : UNSURE;
	if (e->fate == UNSURE)
		n->unsure++;
	else
		n->not_applied++;
	return false;
}

static bool make_something(struct queue *q, int where, int kind, int64_t timeout_ms,
			   struct arena *a)
{
	int number = ledger->counts.asked++;
	struct request rq = kit_request(kind < 8 ? OP_CREATE : OP_COMMENT, STR(""), STR("worker"));
	struct str text = arena_printf(a, "n%d", number);
	struct answer ans;

	CHECK(number < CALLS, "the ledger is full");
	if (kind == 15)
		text = arena_printf(a, "n%d %0*d", number, LONG_TEXT, 0);
	if (rq.op == OP_CREATE)
		GIVE(&rq, title, text);
	else
		GIVE(&rq, text, text);
	if (rq.op == OP_COMMENT)
		GIVE(&rq, id, kind == 14 ? STR("t2") : STR("t1"));
	ledger->calls[number].where = (unsigned char)where;
	ledger->calls[number].fate = ASKED;
	timed_call(q, &rq, &ans, timeout_ms, a);
	return note(&ledger->calls[number], &ans);
}

/* Repeats a claim whose outcome is unknown, with the same token. */
static bool claim_and_finish(struct queue *q, int where, int64_t timeout_ms, struct arena *a)
{
	struct request rq = kit_request(OP_TAKE, STR(""), STR("worker"));
	struct answer ans;
	int n;

	GIVE(&rq, new_token, token_make(a));
	timed_call(q, &rq, &ans, timeout_ms, a);
	if (ans.code == API_ERROR)
		return false;
	if (ans.code == NO_TASKS)
		return true;
	CHECK(ans.code == SUCCESS, "take: %.*s", STRF(ans.message));
	CHECK(ans.lock && str_eq(ans.lock->token, rq.new_token), "another's token");
	n = ledger->counts.claims++;
	CHECK(n < CALLS, "the ledger is full");
	ledger->claims[n].where = (unsigned char)where;
	ledger->claims[n].fence = (int)ans.lock->fence;
	ledger->claims[n].task = kit_number(ans.task->id);
	rq = kit_request(OP_DONE, arena_str(a, ans.task->id), STR("worker"));
	GIVE(&rq, token, ans.lock->token);
	timed_call(q, &rq, &ans, timeout_ms, a);
	if (ans.code == API_ERROR)
		return false;
	CHECK(ans.code == SUCCESS, "done: %.*s", STRF(ans.message));
	ledger->claims[n].done = 1;
	return true;
}

bool ledger_call(struct queue *q, int where, int64_t timeout_ms)
{
	struct arena a = { 0 };
	bool fine = random_below(4)
			    ? make_something(q, where, (int)random_below(16), timeout_ms, &a)
			    : claim_and_finish(q, where, timeout_ms, &a);

	arena_free(&a);
	return fine;
}

bool ledger_comment(struct queue *q, int where, int64_t timeout_ms)
{
	struct arena a = { 0 };
	bool fine = make_something(q, where, 8, timeout_ms, &a);

	arena_free(&a);
	return fine;
}

/* --- the final checks ----------------------------------------------------------------------------- */

static void count_number(struct str text, int where)
{
	int64_t n;
	struct str word = str_cut(&text, ' ');

	if (word.n < 2 || word.p[0] != 'n' || !str_to_i64(str_n(word.p + 1, word.n - 1), &n))
		return;
	CHECK(n >= 0 && n < ledger->counts.asked, "number %d was never asked for", (int)n);
	CHECK(ledger->calls[n].where == where, "number %d is in another queue", (int)n);
	ledger->calls[n].found++;
	CHECK(ledger->calls[n].found == 1, "number %d was made twice", (int)n);
}

struct story {
	int fence, done, done_fence, status;
};

static void read_log(struct queue *q, int where, struct story *stories, int n)
{
	struct request rq = kit_request(OP_LOG, STR(""), STR("judge"));
	struct arena a = { 0 };
	struct answer ans;

	kit_call(q, &rq, &ans, &a);
	for (size_t i = 0; i < ans.n_events; i++) {
		const struct event *e = &ans.events[i];
		struct story *s = &stories[kit_number(e->task)];

		CHECK(kit_number(e->task) <= n, "a line about a task that is not there");
		if (str_is(e->name, "comment"))
			count_number(e->text, where);
		if (str_is(e->name, "claimed")) {
			CHECK(e->fence == s->fence + 1 && !s->done, "%.*s: fence %d after %d",
			      STRF(e->task), (int)e->fence, s->fence);
			s->fence = (int)e->fence;
		}
		if (str_is(e->name, "done")) {
			s->done++;
			s->done_fence = (int)e->fence;
			CHECK(s->done == 1, "%.*s was done twice", STRF(e->task));
		}
	}
	arena_free(&a);
}

static void check_claims(int where, const struct story *stories)
{
	for (int i = 0; i < ledger->counts.claims; i++) {
		const struct story *s = &stories[ledger->claims[i].task];

		if (!ledger->claims[i].task || ledger->claims[i].where != where)
			continue;
		/* no lease expires here, so each task has exactly one claim */
		CHECK(s->fence == 1 && ledger->claims[i].fence == 1, "t%d was claimed %d times",
		      ledger->claims[i].task, s->fence);
		CHECK(!ledger->claims[i].done || (s->done && s->status == DONE), "t%d is not done",
		      ledger->claims[i].task);
	}
}

static void judge_queue(int where)
{
	struct queue_config config = ledger_config(where, 20000);
	struct queue *q = kit_open_as(&config, STORE_READ);
	struct request rq = kit_request(OP_LIST, STR(""), STR("judge"));
	struct story *stories;
	struct arena a = { 0 };
	struct answer ans;

	kit_call(q, &rq, &ans, &a);
	stories = calloc(ans.n_tasks + 1, sizeof(*stories));
	for (size_t i = 0; i < ans.n_tasks; i++) {
		int n = kit_number(ans.tasks[i].id);

		CHECK(n >= 1 && n <= (int)ans.n_tasks, "an id was left out");
		stories[n].status = (int)ans.tasks[i].status;
		count_number(ans.tasks[i].title, where);
	}
	read_log(q, where, stories, (int)ans.n_tasks);
	check_claims(where, stories);
	kit_check_store(q);
	free(stories);
	arena_free(&a);
	queue_close(q);
}

void ledger_judge(void)
{
	for (int i = 0; i < ledger->counts.asked; i++)
		ledger->calls[i].found = 0;
	for (int i = 0; i < QUEUES; i++)
		judge_queue(i);
	for (int i = 0; i < ledger->counts.asked; i++) {
		const struct line *e = &ledger->calls[i];

		CHECK(e->fate != ACKED || e->found, "number %d was acknowledged, and is lost", i);
		CHECK(e->fate != NOT_APPLIED || !e->found,
		      "number %d was said not to have happened, and did", i);
	}
}

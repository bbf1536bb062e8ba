/*
 * Claims tasks and starts their programs. If a program cannot be started, its task is released at
 * once and the runner claims no more.
 */
#include <unistd.h>

#include "base/os.h"
#include "base/secret.h"
#include "base/when.h"
#include "format/answer_form.h"
#include "queue/queue.h"
#include "run/run_private.h"

/* The kernel refuses a variable of more than 128 KiB. A longer value is left out, so that the
 * program can start. */
#define VALUE_MAX (64u << 10)

static const char *const ours[] = { "PAWL_TASK=",  "PAWL_TASK_",  "PAWL_TOKEN=", "PAWL_FENCE=",
				    "PAWL_STORE=", "PAWL_QUEUE=", "PAWL_AGENT=", "PAWL_RUN=" };

static bool is_ours(const char *variable)
{
	for (size_t i = 0; i < sizeof(ours) / sizeof(*ours); i++)
		if (!strncmp(variable, ours[i], strlen(ours[i])))
			return true;
	return false;
}

struct environment {
	struct arena *arena;
	struct strs list;
};

/* Leaves out empty values, because pawl would treat an empty variable as set. */
static void run_take_set(struct environment *e, const char *name, struct str value)
{
	if (value.n && value.n <= VALUE_MAX)
		e->list = arena_append(e->arena, e->list,
				       arena_printf(e->arena, "%s=%.*s", name, STRF(value)));
}

static void set_number(struct environment *e, const char *name, int64_t n)
{
	run_take_set(e, name, arena_printf(e->arena, "%lld", (long long)n));
}

/* One item per line, because a label can contain a comma or a blank. */
static struct str run_take_joined(struct strs list, struct arena *a)
{
	struct str out = STR("");

	for (size_t i = 0; i < list.n; i++)
		out = i ? arena_printf(a, "%.*s\n%.*s", STRF(out), STRF(list.v[i])) : list.v[i];
	return out;
}

static void set_task(struct environment *e, const struct answer *claim)
{
	const struct task *t = claim->task;

	run_take_set(e, "PAWL_TASK", t->id);
	run_take_set(e, "PAWL_TASK_TITLE", t->title);
	run_take_set(e, "PAWL_TASK_DESCRIPTION", t->description);
	run_take_set(e, "PAWL_TASK_ACCEPTANCE", t->acceptance);
	run_take_set(e, "PAWL_TASK_TYPE", t->type);
	run_take_set(e, "PAWL_TASK_CLASS", str_c(class_name(t->class_rank)));
	set_number(e, "PAWL_TASK_PRIORITY", t->priority);
	run_take_set(e, "PAWL_TASK_LABELS", run_take_joined(t->labels, e->arena));
	run_take_set(e, "PAWL_TASK_DUE", t->due ? when_text(e->arena, t->due) : STR(""));
	run_take_set(e, "PAWL_TASK_PARENT", t->parent);
	set_number(e, "PAWL_TASK_ATTEMPT", t->attempts);
	if (claim->came_back)
		run_take_set(e, "PAWL_TASK_CAME_BACK", claim->came_back->reason);
}

static char **make_environment(const struct runner *r, struct job *j, const struct answer *claim)
{
	const struct client *c = r->client;
	struct environment e = { .arena = &j->arena };
	size_t n = 0, count = 0;
	char **out;

	while (environ[count])
		count++;
	set_task(&e, claim);
	run_take_set(&e, "PAWL_TOKEN", j->token);
	set_number(&e, "PAWL_FENCE", j->fence);
	run_take_set(&e, "PAWL_STORE", c->conn.config.uri);
	run_take_set(&e, "PAWL_QUEUE", c->conn.config.opt.queue);
	run_take_set(&e, "PAWL_AGENT", c->self.agent);
	if (!c->self.run_made) /* a coding agent that the program starts has its own session, and so its own run */
		run_take_set(&e, "PAWL_RUN", c->self.run);
	out = arena_array(e.arena, char *, count + e.list.n + 1);
	for (size_t i = 0; i < count; i++)
		if (!is_ours(environ[i]))
			out[n++] = environ[i];
	for (size_t i = 0; i < e.list.n; i++)
		out[n++] = arena_cstr(e.arena, e.list.v[i]);
	return out;
}

static struct str run_take_replaced(struct str word, struct str what, struct str by,
				    struct arena *a)
{
	struct buf b = BUF_MAX(SIZE_MAX / 4);
	struct str out;

	while (word.n) {
		if (what.n && str_cut_prefix(&word, what)) {
			buf_adds(&b, by);
			continue;
		}
		buf_addc(&b, *word.p);
		word = str_n(word.p + 1, word.n - 1);
	}
	out = arena_str(a, buf_str(&b));
	buf_free(&b);
	return out;
}

/* The program is the same for every task; its arguments may name the task. */
static void make_words(const struct runner *r, struct job *j)
{
	j->words = arena_strs(&j->arena, r->plan->words);
	for (size_t i = 1; r->plan->replace.n && i < j->words.n; i++)
		j->words.v[i] = run_take_replaced(j->words.v[i], r->plan->replace, j->task,
						  &j->arena);
}

static char **make_arguments(struct job *j)
{
	char **argv = arena_array(&j->arena, char *, j->words.n + 1);

	for (size_t i = 0; i < j->words.n; i++)
		argv[i] = arena_cstr(&j->arena, j->words.v[i]);
	return argv;
}

static struct job *free_place(struct runner *r)
{
	for (int64_t i = 0; i < r->plan->jobs; i++)
		if (!r->jobs[i].group)
			return &r->jobs[i];
	return NULL;
}

static void stop_taking(struct runner *r, enum result code, struct str message, struct str hint)
{
	r->no_more = true;
	if (r->ans->code == SUCCESS)
		answer_fail(r->ans, code, arena_str(r->client->arena, message),
			    arena_str(r->client->arena, hint));
}

static void run_take_begin(struct runner *r, struct job *j, const struct answer *claim)
{
	struct answer ans;
	int fault;

	r->program.argv = make_arguments(j);
	r->program.envp = make_environment(r, j, claim);
	r->program.terminal = r->plan->jobs == 1 && terminal_ours();
	fault = job_pipe(r, j);
	if (!fault)
		fault = group_start(&r->program, &j->group);
	job_piped(r, j, !fault);
	if (!fault) {
		j->began_at = os_boot_ms();
		r->running++;
		r->sum->ran++;
		return;
	}
	job_give_back(
		r, j,
		arena_printf(&j->arena, "cannot start %s: %s", r->program.path, strerror(-fault)),
		&ans, &j->arena);
	stop_taking(r, USAGE,
		    arena_printf(&j->arena, "cannot start %s: %s; pawl released %.*s",
				 r->program.path, strerror(-fault), STRF(j->task)),
		    STR("after -- write a program and its arguments"));
	arena_free(&j->arena);
	*j = (struct job){ 0 };
}

static void run_take_hold(struct runner *r, struct job *j, const struct answer *ans, int64_t sent)
{
	j->task = arena_str(&j->arena, ans->task->id);
	j->title = arena_str(&j->arena, ans->task->title);
	j->token = arena_str(&j->arena, ans->lock->token);
	j->holder = arena_str(&j->arena, ans->task->lock.holder);
	j->fence = ans->lock->fence;
	job_lease(j, sent, ans);
	make_words(r, j);
	if (r->plan->began)
		r->plan->began(r->plan->ctx, ans, j->words);
}

/* Notes that only tasks are left that this loop released. The loop does not take them again,
 * because it would run forever. */
static void note_passed_over(struct runner *r, const struct answer *ans)
{
	const struct given_back *g = &r->client->given_back;

	if (!ans->warnings.n || !g->n) {
		r->sum->again = r->sum->passed_over = STR("");
		return;
	}
	runner_keep(r, &r->sum->again, g->v[0].id);
	runner_keep(r, &r->sum->passed_over, ans->warnings.v[0]);
}

/* Copies the answer, because it must outlive the call's memory. */
static void keep_answer(struct runner *r, const struct answer *ans)
{
	struct buf b = BUF_MAX(SIZE_MAX / 4);

	answer_pack(ans, &b);
	if (answer_unpack(arena_str(r->client->arena, buf_str(&b)), r->ans, r->client->arena))
		answer_fail(r->ans, ans->code, STR(""), STR(""));
	buf_free(&b);
}

/* Claims a task and starts its program. false: no task is eligible now, or the runner claims no
 * more. */
static bool take_one(struct runner *r)
{
	struct request rq = r->plan->take;
	struct job *j = free_place(r);
	struct answer ans;
	int64_t sent;

	if (!j || r->no_more)
		return false;
	sent = os_boot_ms();
	runner_call(r, &rq, &ans, &j->arena);
	if (ans.code == SUCCESS && ans.task && ans.lock) {
		r->sum->again = r->sum->passed_over = STR("");
		r->told = false;
		r->fault_since = 0;
		run_take_hold(r, j, &ans, sent);
		run_take_begin(r, j, &ans);
		return !r->no_more;
	}
	if (ans.code == NO_TASKS)
		note_passed_over(r, &ans);
	if (runner_may_wait(r, &ans) || (ans.code == NO_TASKS && r->sum->ran)) {
		r->checked =
			true; /* until a job ends, because that may make other tasks eligible */
	} else {
		keep_answer(r, &ans);
		r->no_more = true;
	}
	arena_free(&j->arena);
	*j = (struct job){ 0 };
	return false;
}

void runner_take(struct runner *r)
{
	int64_t wanted = r->plan->loop ? INT64_MAX : r->plan->jobs;

	while (!r->checked && !r->no_more && r->sum->ran < wanted && take_one(r))
		;
}

/* --- wait ------------------------------------------------------------------------------------- */

/*
 * Decides whether a loop without work waits or ends. It stays while an open task can become
 * eligible for it. The store wakes it after each change, and it tries again when the next lease or
 * delay is over.
 */

#define FAULT_MAX_MS 600000 /* longest wait for the store, without a limit in the plan */

/* A loop that released the last task stays for this time, because another loop may be about to take
 * it. */
#define LINGER_MS 3000

static int64_t run_wait_sooner(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

void runner_idle(struct runner *r)
{
	attempts_begin(&r->wait, r->plan->wait_ms);
	r->wait.next = NEVER;
}

/* Will the fault pass? A busy store and an unreachable network do. */
static bool run_wait_passes(const struct answer *ans)
{
	return ans->code == API_ERROR &&
	       (str_is(ans->fault, "busy") || str_is(ans->fault, "unreachable"));
}

static bool wait_for_store(struct runner *r)
{
	int64_t now = os_boot_ms(), most = run_wait_sooner(r->plan->wait_ms, FAULT_MAX_MS);

	if (!r->fault_since)
		r->fault_since = now;
	r->wait.next = now + RETRY_MS;
	return r->hopeful = now < r->fault_since + most;
}

/* Asks whether any task can become eligible. Tasks that the loop released do not count, unless
 * somebody changes them. */
static void ask_forecast(struct runner *r, struct forecast *p)
{
	struct client *c = r->client;
	struct request rq = r->plan->take;
	struct arena scratch = { 0 };
	struct answer ans = { 0 };
	bool people = r->plan->wait_ms != RUN_FOREVER;

	(void)given_back_except(&c->given_back, c->conn.queue, &rq, false, &scratch);
	if (queue_forecast(c->conn.queue, &rq, people, p, &ans, &scratch) != SUCCESS)
		*p = (struct forecast){ .coming = 1, .wait_ms = RETRY_MS }; /* ask again later */
	r->sum->stuck = p->stuck;
	runner_keep(r, &r->sum->stuck_id, p->stuck_id);
	arena_free(&scratch);
}

/* Does the loop stay although only tasks that it released, and tasks that wait for those, are
 * left? */
static bool run_wait_lingers(struct runner *r)
{
	int64_t now = os_boot_ms();

	if (!r->sum->again.n) {
		r->alone_since = 0;
		return false;
	}
	if (!r->alone_since)
		r->alone_since = now;
	r->wait.next = run_wait_sooner(r->wait.next, r->alone_since + LINGER_MS);
	return now < r->alone_since + LINGER_MS;
}

static bool wait_for_task(struct runner *r, const struct answer *ans)
{
	struct forecast p = { .wait_ms = ans->wait_ms };

	/* not needed while its own programs run, because their tasks are open, or if a task comes
	 * due */
	if (!r->running && (!ans->wait_ms || ans->paused))
		ask_forecast(r, &p);
	r->hopeful = r->running || ans->wait_ms || p.coming;
	if (r->hopeful)
		r->alone_since = 0;
	attempts_after(&r->wait, p.wait_ms);
	r->hopeful = r->hopeful || run_wait_lingers(r);
	if (r->hopeful && !r->alone_since && !r->running && !r->told && r->plan->waits)
		r->plan->waits(r->plan->ctx, ans, p.coming);
	r->told |= r->hopeful && !r->alone_since && !r->running;
	return r->hopeful;
}

bool runner_may_wait(struct runner *r, const struct answer *ans)
{
	r->hopeful = false;
	r->wait.next = NEVER;
	if (!r->plan->wait_ms || r->no_more)
		return false;
	if (run_wait_passes(ans))
		return wait_for_store(r);
	r->fault_since = 0;
	return ans->code == NO_TASKS && wait_for_task(r, ans);
}

bool runner_waits(struct runner *r)
{
	if (!r->hopeful || r->no_more || (!r->plan->loop && r->sum->ran))
		return false;
	r->sum->tired = attempts_over(&r->wait);
	r->wait.next = run_wait_sooner(r->wait.next, r->wait.end);
	return !r->sum->tired;
}

void runner_wait_over(struct runner *r)
{
	if (!r->hopeful || os_boot_ms() < r->wait.next)
		return;
	r->wait.next = NEVER;
	r->checked = false;
}

/* --- watching the lock ------------------------------------------------------------------------ */

/*
 * Another agent may end a job's lock at any time: `lock break`, `remove --force`, a restore. The
 * store wakes the runner after each change, and the runner then checks whether the change ended one
 * of its locks.
 */

#define PAUSE_MS 200 /* between two checks: a busy queue changes all the time */
#define IDLE_MS 50   /* between two checks of a loop that only waits for a task */

static bool lock_watch_works(const struct job *j)
{
	return j->group && !j->exited && !j->lost && !j->settled && !j->unclear;
}

static bool any_works(const struct runner *r)
{
	for (int64_t i = 0; i < r->plan->jobs; i++)
		if (lock_watch_works(&r->jobs[i]))
			return true;
	return false;
}

int runner_wake_fd(struct runner *r)
{
	int fd;

	if (!any_works(r) && !r->hopeful) {
		r->check_one = NEVER;
		return -1;
	}
	if (r->check_one != NEVER)
		return -1;
	fd = queue_wake_fd(r->client->conn.queue);
	if (fd < 0)
		r->check_one = os_boot_ms() + queue_pause(r->client->conn.queue, ATTEMPTS_MAX_MS);
	return fd;
}

void runner_woken(struct runner *r)
{
	int64_t now = os_boot_ms(), pause = r->running ? PAUSE_MS : IDLE_MS;

	queue_woken(r->client->conn.queue);
	r->check_one = r->checked_at + pause > now ? r->checked_at + pause : now;
}

/* If the store does not show the token's hash, the holder's name must suffice. After a failed read,
 * the next renewal decides. */
static bool still_held(const struct job *j, const struct answer *ans, struct arena *a)
{
	const struct lock *l = ans->task ? &ans->task->lock : NULL;

	if (ans->code == API_ERROR)
		return true;
	if (!l || l->foreign || !str_eq(l->holder, j->holder))
		return false;
	return !l->token.n || secret_eq(l->token, token_hash(a, j->token));
}

/* Only a renewal decides that the lock is lost, because the program itself may have ended it. A
 * successful renewal wakes us again, so `unclear` keeps the job out of further checks. */
static void check_one(struct runner *r, struct job *j)
{
	struct request rq = { .op = OP_LOCK_STATUS };
	struct arena scratch = { 0 };
	struct answer ans;
	bool held;

	GIVE(&rq, id, j->task);
	runner_call(r, &rq, &ans, &scratch);
	held = still_held(j, &ans, &scratch);
	arena_free(&scratch);
	if (held)
		return;
	job_renew(r, j);
	j->unclear = !j->lost && !j->settled;
}

void runner_check(struct runner *r)
{
	if (os_boot_ms() < r->check_one)
		return;
	r->checked_at = os_boot_ms();
	r->check_one = NEVER;
	if (r->hopeful)
		r->wait.next = r->checked_at;
	for (int64_t i = 0; i < r->plan->jobs; i++)
		if (lock_watch_works(&r->jobs[i]))
			check_one(r, &r->jobs[i]);
}

#include "client/runner.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/os.h"
#include "base/proc.h"
#include "base/secret.h"
#include "base/text.h"
#include "client/group.h"
#include "client/keeper.h"
#include "client/signals.h"

extern char **environ;

#define RETRY_MS 500       /* between two attempts to reach the store */
#define LINGER_MS 20       /* between two looks whether a group is gone */
#define UNKILLABLE_MS 2000 /* for what even SIGKILL does not end: zombies that nobody reaps */
#define NEVER INT64_MAX

struct job {
	struct arena arena; /* of this task */
	struct str task, title, token;
	int64_t fence, ttl;
	int64_t renew_at, deadline; /* deadline: by our own clock the lease is over */
	pid_t group;                /* 0: this place is free */
	bool exited, lost, settled, killed;
	int status;
	int64_t kill_at, give_up_at;
	int64_t report_at; /* 0: nothing to report yet */
};

struct runner {
	struct client *client;
	const struct run_plan *plan;
	struct run_sum *sum;
	struct answer *ans; /* why no more are taken */
	struct keeper keeper;
	struct program program;
	struct job *jobs;
	size_t running;
	bool no_more, looked;
	struct strs given_back;
	int signals;
};

int run_exit_code(int status)
{
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

struct str run_status_text(struct arena *a, int status)
{
	if (WIFSIGNALED(status))
		return arena_printf(a, "signal %d (%s)", WTERMSIG(status),
				    strsignal(WTERMSIG(status)));
	return arena_printf(a, "exit code %d", WEXITSTATUS(status));
}

static bool succeeded(const struct job *j)
{
	return WIFEXITED(j->status) && WEXITSTATUS(j->status) == 0;
}

/* In memory of its own: a loop shall not grow. */
static void call(struct runner *r, const struct request *rq, struct answer *ans, struct arena *a)
{
	struct client *c = r->client;
	struct arena *kept = c->arena, *ring = c->keyring.arena;

	c->arena = a;
	client_call(c, rq, ans);
	c->arena = kept;
	c->keyring.arena = ring;
}

/* --- the lease ------------------------------------------------------------------------------ */

/* Counted from before the call, so that ours ends no later than the store's. What is left of it can be less
 * than its length: the call may have been a repeat. */
static void lease_from(struct job *j, int64_t sent, const struct answer *ans)
{
	int64_t left = ans->lock->expires_at - ans->now;

	j->ttl = ans->lock->ttl;
	j->deadline = sent + left;
	j->renew_at = sent + (left < j->ttl ? left : j->ttl) / 3;
}

/* Was it the program itself that ended the lock, with the token it was given? */
static bool ended_by_holder(const struct job *j, const struct task *t, struct arena *a)
{
	if (!t || t->fence != j->fence)
		return false;
	return t->status == BLOCKED || (t->last.op > OP_NONE && t->last.op < OP_END &&
					op_flags((enum op)t->last.op) & OP_ENDS &&
					secret_eq(t->last.token, token_hash(a, j->token)));
}

static struct request holders(const struct job *j, enum op op)
{
	struct request rq = { .op = op };

	GIVE(&rq, id, j->task);
	GIVE(&rq, token, j->token);
	return rq;
}

static void renew(struct runner *r, struct job *j)
{
	struct request rq = holders(j, OP_HEARTBEAT);
	struct arena scratch = { 0 };
	int64_t sent = os_boot_ms();
	struct answer ans;

	call(r, &rq, &ans, &scratch);
	if (ans.code == SUCCESS && ans.lock)
		lease_from(j, sent, &ans);
	else if (ended_by_holder(j, ans.task, &scratch))
		j->settled = true;
	else if (ans.code != API_ERROR || os_boot_ms() >= j->deadline)
		j->lost = true;
	else
		j->renew_at = os_boot_ms() + (j->ttl / 10 < RETRY_MS ? j->ttl / 10 : RETRY_MS);
	arena_free(&scratch);
}

/* --- starting ------------------------------------------------------------------------------- */

static const char *const ours[] = { "PAWL_TASK=",  "PAWL_TOKEN=", "PAWL_FENCE=", "PAWL_STORE=",
				    "PAWL_QUEUE=", "PAWL_AGENT=", "PAWL_RUN=" };

#define OURS (sizeof(ours) / sizeof(*ours))

static bool is_ours(const char *variable)
{
	for (size_t i = 0; i < OURS; i++)
		if (!strncmp(variable, ours[i], strlen(ours[i])))
			return true;
	return false;
}

/* An empty value is left out: it would count as said. */
static char **make_environment(const struct runner *r, struct job *j)
{
	const struct client *c = r->client;
	struct arena *a = &j->arena;
	const struct str values[OURS] = {
		j->task, j->token,      arena_printf(a, "%lld", (long long)j->fence),
		c->uri,  c->queue_name, c->agent,
		c->run
	};
	size_t n = 0, count = 0;
	char **out;

	while (environ[count])
		count++;
	out = arena_array(a, char *, count + OURS + 1);
	for (size_t i = 0; i < count; i++)
		if (!is_ours(environ[i]))
			out[n++] = environ[i];
	for (size_t i = 0; i < OURS; i++)
		if (values[i].n)
			out[n++] = arena_cstr(a,
					      arena_printf(a, "%s%.*s", ours[i], STRF(values[i])));
	return out;
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

static void give_back(struct runner *r, struct job *j, struct str why, struct answer *ans,
		      struct arena *a)
{
	struct request rq = holders(j, OP_RELEASE);

	GIVE(&rq, reason, why);
	call(r, &rq, ans, a);
}

static void begin(struct runner *r, struct job *j)
{
	struct answer ans;
	int fault;

	r->program.envp = make_environment(r, j);
	r->program.terminal = r->plan->jobs == 1 && terminal_ours();
	fault = group_start(&r->program, &j->group);
	if (!fault) {
		r->running++;
		r->sum->ran++;
		return;
	}
	give_back(r, j,
		  arena_printf(&j->arena, "%s cannot be started: %s", r->program.path,
			       strerror(-fault)),
		  &ans, &j->arena);
	stop_taking(r, USAGE,
		    arena_printf(&j->arena, "%s cannot be started: %s; %.*s was given back",
				 r->program.path, strerror(-fault), STRF(j->task)),
		    STR("the command behind -- is a program and its arguments"));
	arena_free(&j->arena);
	*j = (struct job){ 0 };
}

static void hold(struct runner *r, struct job *j, const struct answer *ans, int64_t sent)
{
	j->task = arena_str(&j->arena, ans->task->id);
	j->title = arena_str(&j->arena, ans->task->title);
	j->token = arena_str(&j->arena, ans->lock->token);
	j->fence = ans->lock->fence;
	lease_from(j, sent, ans);
	if (r->plan->began)
		r->plan->began(r->plan->ctx, ans);
}

/* Is what comes next something that this loop gave back already? It would spin. */
static bool comes_again(struct runner *r)
{
	struct request rq = r->plan->take;
	struct arena scratch = { 0 };
	struct answer ans;
	bool again = false;

	if (!r->given_back.n)
		return false;
	rq.op = OP_NEXT;
	call(r, &rq, &ans, &scratch);
	if (ans.code == SUCCESS && ans.task && strs_have(r->given_back, ans.task->id)) {
		r->sum->again = arena_str(r->client->arena, ans.task->id);
		again = true;
	}
	arena_free(&scratch);
	return again;
}

/* It outlives the memory of the call. */
static void keep_answer(struct runner *r, const struct answer *ans)
{
	struct buf b = BUF_MAX(SIZE_MAX / 4);

	answer_pack(ans, &b);
	if (answer_unpack(arena_str(r->client->arena, buf_str(&b)), r->ans, r->client->arena))
		answer_fail(r->ans, ans->code, STR(""), STR(""));
	buf_free(&b);
}

/* false: there is none to be had now, or no more are wanted. */
static bool take_one(struct runner *r)
{
	struct request rq = r->plan->take;
	struct job *j = free_place(r);
	struct answer ans;
	int64_t sent;

	if (!j || r->no_more)
		return false;
	if (comes_again(r)) {
		r->no_more = true;
		return false;
	}
	sent = os_boot_ms();
	call(r, &rq, &ans, &j->arena);
	if (ans.code == SUCCESS && ans.task && ans.lock) {
		hold(r, j, &ans, sent);
		begin(r, j);
		return !r->no_more;
	}
	if (ans.code == NO_TASKS && r->sum->ran) {
		r->looked = true; /* until something ends, and with it makes others eligible */
	} else {
		keep_answer(r, &ans);
		r->no_more = true;
	}
	arena_free(&j->arena);
	*j = (struct job){ 0 };
	return false;
}

static void take_all(struct runner *r)
{
	int64_t wanted = r->plan->loop ? NEVER : r->plan->jobs;

	while (!r->looked && !r->no_more && r->sum->ran < wanted && take_one(r))
		;
}

/* --- ending --------------------------------------------------------------------------------- */

static struct str program_name(const struct runner *r, struct arena *a)
{
	struct buf b = BUF_MAX(4096);
	struct str out;

	for (size_t i = 0; i < r->plan->words.n && b.n < 200; i++) {
		if (i)
			buf_addc(&b, ' ');
		text_visible(&b, r->plan->words.v[i], false);
	}
	out = text_cut(a, buf_str(&b), 120);
	out = arena_str(a, out);
	buf_free(&b);
	return out;
}

/* What is to be said about the task; OP_NONE: nothing. */
static struct request report_of(const struct runner *r, const struct job *j, struct arena *a)
{
	struct request rq = holders(j, succeeded(j) ? r->plan->on_success : r->plan->on_failure);
	struct str what = arena_printf(a, "`%.*s` ended with %.*s", STRF(program_name(r, a)),
				       STRF(run_status_text(a, j->status)));

	if (rq.op == OP_DONE || rq.op == OP_REVIEW)
		GIVE(&rq, summary, r->plan->summary.n ? r->plan->summary : what);
	else if (rq.op != OP_NONE)
		GIVE(&rq, reason, what);
	return rq;
}

static void tally(struct runner *r, const struct job *j, const struct run_end *e)
{
	struct run_sum *s = r->sum;

	if (e->code == LOST_LOCK)
		s->lost++;
	else if (e->code != SUCCESS)
		s->troubled++;
	else if (succeeded(j))
		s->succeeded++;
	else
		s->failed++;
	if (!succeeded(j) && e->code != LOST_LOCK)
		s->last_status = j->status;
	if (e->became == READY && r->plan->loop)
		r->given_back = arena_append(r->client->arena, r->given_back,
					     arena_str(r->client->arena, j->task));
}

static void finish(struct runner *r, struct job *j, struct run_end *e)
{
	e->task = j->task;
	e->title = j->title;
	e->fence = j->fence;
	e->status = j->status;
	if (e->answer && e->answer->task)
		e->became = e->answer->task->status;
	tally(r, j, e);
	if (r->plan->ended)
		r->plan->ended(r->plan->ctx, e);
	keeper_drop(r->keeper.fd, j->group);
	arena_free(&j->arena);
	*j = (struct job){ 0 };
	r->running--;
	r->looked = false;
}

static void finish_lost(struct runner *r, struct job *j)
{
	struct run_end e = {
		.code = LOST_LOCK,
		.message = arena_printf(
			&j->arena, "the lock on %.*s (fence %lld) was lost, so `%.*s` was ended",
			STRF(j->task), (long long)j->fence, STRF(program_name(r, &j->arena))),
		.hint = STR("what it did outside of pawl has happened; `pawl log` says who has it"),
	};

	finish(r, j, &e);
}

/* Open sub-tasks, say: it must not stay held by nobody. */
static void report_refused(struct runner *r, struct job *j, const struct answer *refusal,
			   struct run_end *e, struct arena *a)
{
	struct answer back = { 0 };

	e->code = refusal->code;
	e->message = refusal->message;
	e->hint = refusal->hint;
	if (refusal->code == API_ERROR)
		return;
	give_back(r, j, refusal->message, &back, a);
	if (back.code == SUCCESS && back.task)
		e->became = back.task->status;
}

static void look_at_settled(struct runner *r, struct job *j, struct run_end *e, struct answer *ans,
			    struct arena *a)
{
	struct request rq = holders(j, OP_SHOW);

	e->settled = true;
	call(r, &rq, ans, a);
}

static void report(struct runner *r, struct job *j)
{
	struct arena scratch = { 0 };
	struct request rq = report_of(r, j, &scratch);
	struct answer ans = { 0 };
	struct run_end e = { .answer = &ans, .settled = j->settled };

	if (rq.op == OP_NONE || j->settled)
		rq.op = OP_SHOW;
	call(r, &rq, &ans, &scratch);
	if (ans.code == API_ERROR && os_boot_ms() < j->deadline) {
		j->report_at = os_boot_ms() + RETRY_MS;
		arena_free(&scratch);
		return;
	}
	if (rq.op == OP_SHOW)
		e.code = SUCCESS;
	else if (ans.code != SUCCESS && ended_by_holder(j, ans.task, &scratch))
		look_at_settled(r, j, &e, &ans, &scratch);
	else if (ans.code == LOST_LOCK)
		j->lost = true;
	else if (ans.code != SUCCESS)
		report_refused(r, j, &ans, &e, &scratch);
	if (j->lost)
		finish_lost(r, j);
	else
		finish(r, j, &e);
	arena_free(&scratch);
}

/* --- watching ------------------------------------------------------------------------------- */

/* What is left of a group whose first process ended: it holds on to its number, so that nobody else can
 * have got it. */
static void leader_gone(struct job *j, int64_t now, int64_t grace)
{
	j->exited = true;
	if (!group_there(j->group))
		return;
	if (!j->kill_at) {
		group_end(j->group);
		j->kill_at = now + grace;
	}
}

/* ^Z on the terminal: the whole job stops, as the shell that started us expects. No lease is renewed
 * meanwhile. */
static void stop_too(const struct job *j)
{
	terminal_take(j->group);
	(void)kill(getpid(), SIGSTOP);
	if (terminal_ours()) /* `fg`, and not `bg` */
		terminal_give(j->group);
	group_signal(j->group, SIGCONT);
}

static void reap(struct runner *r, struct job *j, int64_t now)
{
	int status;

	if (j->exited || waitpid(j->group, &status, WNOHANG | WUNTRACED) != j->group)
		return;
	if (WIFSTOPPED(status)) {
		if (r->program.terminal && WSTOPSIG(status) == SIGTSTP)
			stop_too(j);
		return;
	}
	j->status = status;
	if (r->program.terminal) {
		terminal_take(j->group);
		if (WIFSIGNALED(status) && WTERMSIG(status) == SIGINT)
			r->sum->interrupted = r->no_more = true;
	}
	leader_gone(j, now, r->plan->grace_ms);
}

static void tick(struct runner *r, struct job *j)
{
	int64_t now;

	reap(r, j, os_boot_ms());
	if (!j->lost && !j->settled && !j->report_at && os_boot_ms() >= j->renew_at)
		renew(r, j);
	now = os_boot_ms();
	if (j->lost && !j->exited && !j->kill_at) {
		group_end(j->group);
		j->kill_at = now + r->plan->grace_ms;
	}
	if (j->kill_at && now >= j->kill_at && !j->killed) {
		group_signal(j->group, SIGKILL);
		j->killed = true;
		j->give_up_at = now + UNKILLABLE_MS;
	}
	if (!j->exited || (group_there(j->group) && !(j->killed && now >= j->give_up_at)))
		return;
	if (j->lost)
		finish_lost(r, j);
	else if (now >= j->report_at)
		report(r, j);
}

static int64_t sooner(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t next_event(const struct runner *r)
{
	int64_t at = NEVER;

	for (int64_t i = 0; i < r->plan->jobs; i++) {
		const struct job *j = &r->jobs[i];

		if (!j->group)
			continue;
		if (!j->lost && !j->settled && !j->report_at)
			at = sooner(at, j->renew_at);
		if (j->kill_at && !j->killed)
			at = sooner(at, j->kill_at);
		if (j->exited)
			at = sooner(at, j->report_at ? j->report_at : os_boot_ms() + LINGER_MS);
	}
	return at;
}

static void pass_on(struct runner *r, int sig)
{
	for (int64_t i = 0; i < r->plan->jobs; i++)
		if (r->jobs[i].group)
			group_signal(r->jobs[i].group, sig);
}

static void take_signal(struct runner *r, int sig)
{
	if (sig == SIGCHLD)
		return;
	pass_on(r, sig);
	if (sig == SIGTSTP) {
		(void)kill(getpid(), SIGSTOP);
		pass_on(r, SIGCONT);
	} else if (signals_ends(sig)) {
		r->sum->interrupted = r->no_more = true;
	}
}

static void wait_for_event(struct runner *r)
{
	struct pollfd in = { .fd = r->signals, .events = POLLIN };
	int64_t at = next_event(r), left = at == NEVER ? -1 : at - os_boot_ms();
	int sig;

	if (at != NEVER && left < 0)
		left = 0;
	(void)poll(&in, 1, left > 60000 ? 60000 : (int)left);
	while ((sig = signals_next(r->signals)) > 0)
		take_signal(r, sig);
}

static void watch(struct runner *r)
{
	for (;;) {
		take_all(r);
		if (!r->running)
			return;
		wait_for_event(r);
		for (int64_t i = 0; i < r->plan->jobs; i++)
			if (r->jobs[i].group)
				tick(r, &r->jobs[i]);
	}
}

/* --- the whole ------------------------------------------------------------------------------ */

/* As execvp() would find it; but before a task is taken: a slip of the pen must not fail them all. */
static const char *find_program(struct str name, const char *dir, struct arena *a)
{
	const char *path = getenv("PATH");
	struct str rest = str_c(path ? path : "/bin:/usr/bin");

	if (name.n && memchr(name.p, '/', name.n)) {
		char *file = name.p[0] == '/' ? arena_cstr(a, name) : fs_join(a, str_c(dir), name);

		return access(file, X_OK) == 0 && !fs_is_dir(file) ? file : NULL;
	}
	while (name.n && rest.n) {
		struct str one = str_cut(&rest, ':');
		char *file = fs_join(a, one.n ? one : str_c(dir), name);

		if (access(file, X_OK) == 0 && !fs_is_dir(file))
			return file;
	}
	return NULL;
}

static enum result prepare(struct runner *r)
{
	const struct run_plan *plan = r->plan;
	struct client *c = r->client;
	struct arena *a = c->arena;
	char **argv = arena_array(a, char *, plan->words.n + 1);

	for (size_t i = 0; i < plan->words.n; i++)
		argv[i] = arena_cstr(a, plan->words.v[i]);
	r->program = (struct program){
		.path = find_program(plan->words.v[0], c->dir, a),
		.argv = argv,
		.dir = c->dir,
		.no_input = plan->jobs > 1,
		.out_to_err = plan->out_to_err,
	};
	if (r->program.path)
		return SUCCESS;
	return answer_fail(
		r->ans, USAGE,
		arena_printf(a, "there is no program '%.*s'", STRF(text_line(a, plan->words.v[0]))),
		STR("nothing was claimed; the command behind -- is a program and its "
		    "arguments, or sh -c '...'"));
}

/* A call may not take so long that the lease could not be renewed in time. */
static void limit_waiting(struct client *c, const struct request *take)
{
	int64_t ttl = HAS(take, ttl) ? take->ttl : settings_number(&c->settings, "lease");

	if (ttl / 3 < c->timeout_ms)
		c->timeout_ms = ttl / 3 > 0 ? ttl / 3 : 1;
}

static enum result cannot(struct runner *r, const char *what, int fault)
{
	r->ans->applied = 'n';
	return answer_fail(r->ans, API_ERROR,
			   arena_printf(r->client->arena, "%s: %s", what, strerror(-fault)),
			   STR(""));
}

static enum result run_all(struct runner *r)
{
	struct client *c = r->client;
	enum result code;
	int fault;

	limit_waiting(c, &r->plan->take);
	fault = keeper_start(&r->keeper, r->plan->grace_ms);
	if (fault)
		return cannot(r, "a process that watches over the command cannot be started",
			      fault);
	r->program.keeper = r->keeper.fd;
	r->signals = signals_open();
	if (r->signals < 0) {
		code = cannot(r, "signals cannot be caught", r->signals);
	} else {
		code = client_open(c, STORE_WRITE, r->ans);
		if (code == SUCCESS)
			watch(r);
		signals_close();
	}
	keeper_stop(&r->keeper);
	if (r->sum->ran && code == SUCCESS)
		return SUCCESS;
	return r->ans->code;
}

enum result runner_run(struct client *c, const struct run_plan *plan, struct run_sum *sum,
		       struct answer *ans)
{
	struct run_plan own = *plan;
	struct runner r = { .client = c, .plan = &own, .sum = sum, .ans = ans };

	*sum = (struct run_sum){ 0 };
	*ans = (struct answer){ 0 };
	GIVE(&own.take, pid, getpid());
	GIVE(&own.take, pid_start, os_process_start(getpid()));
	GIVE(&own.take, boot_id, proc_here(c->arena));
	r.jobs = arena_array(c->arena, struct job, (size_t)own.jobs);
	if (prepare(&r) != SUCCESS)
		return ans->code;
	return run_all(&r);
}

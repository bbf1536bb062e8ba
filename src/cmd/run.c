/*
 * pawl run: makes a plan from the arguments, gives it to the runner (run/run_jobs.h) and reports the
 * results. Standard output belongs to the program that runs, so pawl shows notes only.
 */
#include "run/run_jobs.h"

#include "base/text.h"
#include "base/when.h"
#include "cmd/command.h"
#include "core/lease.h"
#include "format/answer_form.h"

#define JOBS_MAX 256

struct run_args {
	struct args args;
	struct strs words;
	int64_t next, loop, wait, jobs, plain, grace;
	struct str on_success, on_failure, on_interrupt, replace;
};

static const struct param params[] = {
	PARAM(id, "ID", P_ID, .flags = P_POSITIONAL,
	      .help = "task to claim (default: the next one)"),
	LOCAL(run, words, "COMMAND", P_WORDS, .flags = P_POSITIONAL | P_REQUIRED | P_REST,
	      .value = "COMMAND", .help = "program to run for the task, and its arguments"),
	LOCAL(run, next, "next", P_FLAG,
	      .help = "claim the next eligible task, as `next --claim` does"),
	LOCAL(run, loop, "loop", P_FLAG,
	      .help = "continue with the next task until only tasks that the loop released are left"),
	LOCAL(run, wait, "wait", P_DURATION, .letter = 'w', .flags = P_OPTIONAL,
	      .value = "[DURATION]",
	      .help = "wait while an open task can become eligible, at most DURATION without work"),
	LOCAL(run, jobs, "jobs", P_INT, .letter = 'J', .min = 1, .max = JOBS_MAX, .def = "1",
	      .help = "run up to N tasks at once, each with its own command"),
	LOCAL(run, plain, "plain", P_FLAG,
	      .help = "with --jobs on a terminal: no live lines, and the commands write to the terminal themselves"),
	LOCAL(run, on_success, "on-success", P_CHOICE, .choices = "done review none", .def = "done",
	      .help = "report for a command that exits with 0: done, review or none"),
	LOCAL(run, on_failure, "on-failure", P_CHOICE, .choices = "fail release block escalate",
	      .def = "fail",
	      .help = "report for a command that fails: fail, release, block or escalate"),
	LOCAL(run, on_interrupt, "on-interrupt", P_CHOICE, .choices = "release fail block escalate",
	      .def = "release",
	      .help = "report for a command that Ctrl-C or a signal to pawl stops"),
	LOCAL(run, replace, "replace", P_TEXT, .letter = 'I', .flags = P_FILLED, .value = "STR",
	      .help = "put the id of the task in the place of STR in the arguments"),
	PARAM_SUMMARY(P_FILLED, "summary for done and review (default: it names the command)"),
	PARAM_TTL(LEASE_DEFAULT),
	LOCAL(run, grace, "grace", P_DURATION, .def = LEASE_TEXT(RUN_GRACE_S) "s",
	      .help = "wait up to DURATION between SIGTERM and SIGKILL after the lock is lost"),
	PARAM(label, "label", P_NAME, .letter = 'l', .help = "claim only tasks with this label"),
	PARAM(class_rank, "class", P_CLASS, .letter = 'c',
	      .help = "claim only tasks of this class"),
	PARAM(type, "type", P_NAME, .help = "claim only tasks of this type"),
	PARAM_WRITE_STATUS,
	{ 0 }
};

static enum result run_cmd_run(struct session *s, struct args *args, struct reply *out);
static void run_cmd_show(const struct reply *r, struct view *v);

const struct command cmd_run = {
	.name = "run",
	.group = "work",
	.summary = "claim a task and run a command for it",
	.detail =
		"The command runs in its own process group. Its environment has the id in PAWL_TASK, the fields in "
		"PAWL_TASK_TITLE, PAWL_TASK_DESCRIPTION and similar variables, why it came back in PAWL_TASK_CAME_BACK, and PAWL_TOKEN, PAWL_FENCE and PAWL_STORE. "
		"--replace STR puts the id into the arguments. "
		"pawl renews the lease while the command runs. If the command exits with 0 the task becomes Done, "
		"otherwise Failed; --on-success and --on-failure change this. pawl passes signals on to the command. If "
		"Ctrl-C or a signal stops the command, pawl releases the task; --on-interrupt changes this. pawl exits "
		"with the command's code. With --loop --wait pawl stays while others hold tasks, while tasks wait for "
		"open work or for a date, and while the queue is paused. The loop ends by itself when no open task can "
		"become eligible without a person. With DURATION it also waits for people: for tasks that are Blocked, "
		"in Needs Help or in Review. If the lock is lost, pawl sends the group SIGTERM, after the grace period "
		"SIGKILL, and exits with 21. With --json the command's output goes to standard error. "
		"With --jobs on a terminal, pawl shows a line for each job, and above them the output of the commands with the "
		"id of the task before each line; --plain and --quiet switch this off.",
	.example = "pawl run --next -- make test\n"
		   "pawl run t1 --on-success review -- ./agent.sh\n"
		   "pawl run --loop --replace {} -- ./agent.sh --task {}\n"
		   "pawl run --loop --wait -- ./agent.sh\n"
		   "pawl run --loop --jobs 4 -- sh -c 'claude -p \"do task $PAWL_TASK\"'",
	.see = "next, claim, guard, heartbeat",
	.params = params,
	.args_size = sizeof(struct run_args),
	.flags = C_WRITE | C_SHELL,
	.fails = FAILS(NO_TASKS, CONFLICT, LOST_LOCK, INCOMPLETE_SUBTASKS, NOT_FOUND),
	.run = run_cmd_run,
	.show = run_cmd_show,
};

struct running {
	struct session *s;
	bool single;
	struct reply out;      /* the reply about the only task */
	struct screen *screen; /* for several jobs on a terminal, else NULL */
};

static void run_cmd_say(struct session *s, struct str text)
{
	if (s->note)
		s->note(s, text);
}

static void run_cmd_tell(const struct running *x, struct str text)
{
	if (x->screen)
		screen_say(x->screen, text);
	else
		run_cmd_say(x->s, text);
}

static void run_cmd_began(void *ctx, const struct answer *claim, struct strs words)
{
	struct running *x = ctx;
	struct arena a = { 0 };

	run_cmd_tell(x, arena_printf(&a, "claimed %.*s (fence %lld): %.*s", STRF(claim->task->id),
				     (long long)claim->lock->fence, STRF(claim->task->title)));
	if (claim->came_back)
		run_cmd_tell(x,
			     arena_printf(&a, "%.*s came back: %s", STRF(claim->task->id),
					  arena_cstr(&a, text_line(&a, claim->came_back->reason))));
	run_cmd_tell(x, arena_printf(&a, "running `%s` for %.*s",
				     arena_cstr(&a, run_command_text(&a, words)),
				     STRF(claim->task->id)));
	for (size_t i = 0; i < claim->warnings.n; i++)
		run_cmd_tell(x, claim->warnings.v[i]);
	arena_free(&a);
}

static json_t *run_json(const struct run_end *e)
{
	json_t *o = json_pack("{s:I, s:i}", "fence", (json_int_t)e->fence, "exit_code",
			      run_exit_code(e->status));

	if (e->settled)
		json_object_set_new(o, "settled", json_true());
	if (e->interrupted)
		json_object_set_new(o, "interrupted", json_true());
	return o;
}

/* Copies the texts, because they live only during the report. */
static void answer_single(struct running *x, const struct run_end *e)
{
	struct answer ans = { .code = e->code };

	if (e->answer && e->answer->code == e->code)
		ans = *e->answer;
	else if (e->code != SUCCESS)
		answer_fail(&ans, e->code, e->message, e->hint);
	x->out = (struct reply){ .ans = answer_copy(&ans, x->s->arena) };
	json_object_set_new(reply_more(&x->out), "run", run_json(e));
	if (e->code == SUCCESS)
		x->s->exit_code = run_exit_code(e->status);
}

static void run_cmd_ended(void *ctx, const struct run_end *e)
{
	struct running *x = ctx;
	struct arena a = { 0 };
	struct str how = run_status_text(&a, e->status);

	if (x->single)
		answer_single(x, e);
	if (e->code == SUCCESS)
		run_cmd_tell(
			x, arena_printf(&a, "%.*s is %s (%s%.*s%s)", STRF(e->task),
					status_name(e->became),
					e->interrupted ? "interrupted; " : "", STRF(how),
					e->settled ? "; the command itself set this status" : ""));
	else if (!x->single)
		run_cmd_tell(x, e->message);
	arena_free(&a);
}

static void run_cmd_waits(void *ctx, const struct answer *none, int64_t coming)
{
	struct running *x = ctx;
	struct arena a = { 0 };

	if (none->paused)
		run_cmd_tell(x, arena_printf(&a, "waiting: %.*s", STRF(none->message)));
	else if (coming)
		run_cmd_tell(
			x,
			arena_printf(
				&a,
				"waiting: no task is eligible now, but %lld open task%s can become so",
				(long long)coming, coming == 1 ? "" : "s"));
	else
		run_cmd_tell(x, arena_printf(&a, "waiting: the next task can become eligible in %s",
					     arena_cstr(&a, duration_text(&a, none->wait_ms))));
	arena_free(&a);
}

static bool in_arguments(const struct run_args *a)
{
	for (size_t i = 1; i < a->words.n; i++)
		if (memmem(str_p(a->words.v[i]), a->words.v[i].n, a->replace.p, a->replace.n))
			return true;
	return false;
}

static const char *run_cmd_misuse(const struct run_args *a)
{
	const struct request *rq = &a->args.rq;
	bool one = HAS(rq, id);

	if (one && a->next)
		return "an ID and --next cannot be used together: give one of them";
	if (one && (a->loop || a->jobs > 1))
		return "--loop and --jobs cannot be used with an ID";
	if (one && a->wait)
		return "--wait cannot be used with an ID";
	if (one && (HAS(rq, label) || HAS(rq, class_rank) || HAS(rq, type)))
		return "--label, --class and --type cannot be used with an ID";
	if (a->replace.n && !in_arguments(a))
		return "--replace STR: no argument of the command contains STR";
	return NULL;
}

static enum op op_of(struct str word)
{
	static const struct {
		const char *word;
		enum op op;
	} words[] = {
		{ "done", OP_DONE },   { "review", OP_REVIEW },   { "none", OP_NONE },
		{ "fail", OP_FAIL },   { "release", OP_RELEASE }, { "escalate", OP_ESCALATE },
		{ "block", OP_BLOCK },
	};
	size_t i = 0;

	while (!str_is(word, words[i].word))
		i++;
	return words[i].op;
}

static struct run_plan make_plan(const struct run_args *a, struct running *x)
{
	struct request take = a->args.rq;

	take.op = HAS(&take, id) ? OP_CLAIM : OP_TAKE;
	take.summary = STR("");
	take.has &= ~(UINT64_C(1) << ARG_summary);
	return (struct run_plan){
		.take = take,
		.words = a->words,
		.replace = a->replace,
		.on_success = op_of(a->on_success.n ? a->on_success : STR("done")),
		.on_failure = op_of(a->on_failure.n ? a->on_failure : STR("fail")),
		.on_interrupt = op_of(a->on_interrupt.n ? a->on_interrupt : STR("release")),
		.summary = a->args.rq.summary,
		.grace_ms = a->grace ? a->grace : RUN_GRACE_S * 1000,
		.jobs = a->jobs ? a->jobs : 1,
		.loop = a->loop,
		.wait_ms = a->wait,
		.out_to_err = x->s->owns_stdout,
		.screen = x->screen,
		.began = run_cmd_began,
		.ended = run_cmd_ended,
		.waits = run_cmd_waits,
		.ctx = x,
	};
}

static void add_sum(json_t *o, const struct run_sum *sum)
{
	json_t *v = json_pack("{s:I, s:I, s:I, s:I, s:I}", "ran", (json_int_t)sum->ran, "succeeded",
			      (json_int_t)sum->succeeded, "failed", (json_int_t)sum->failed, "lost",
			      (json_int_t)sum->lost, "not_reported", (json_int_t)sum->troubled);

	if (sum->interrupted)
		json_object_set_new(v, "interrupted", json_integer((json_int_t)sum->interrupted));
	if (sum->again.n)
		json_object_set_new(v, "again", json_str(sum->again));
	json_object_set_new(o, "runs", v);
}

/* Says why the loop claims no more tasks. */
static void say_why(struct session *s, const struct run_sum *sum, const struct answer *stopped)
{
	if (sum->signal)
		run_cmd_say(s, arena_printf(s->arena, "the loop ends here: signal %d (%s)",
					    sum->signal, strsignal(sum->signal)));
	else if (sum->tired)
		run_cmd_say(
			s,
			STR("the loop ends here: no task became eligible in the time of --wait"));
	else if (sum->again.n)
		run_cmd_say(s, arena_printf(s->arena, "the loop ends here: %.*s",
					    STRF(sum->passed_over)));
	else if (sum->stuck)
		run_cmd_say(
			s, arena_printf(
				   s->arena,
				   "the loop ends here: the open tasks need a person first: %.*s%s",
				   STRF(sum->stuck_id), sum->stuck == 1 ? "" : ", …"));
	else if (stopped->code == SUCCESS)
		run_cmd_say(s, STR("the loop ends here: no other task is eligible"));
}

/* Answers for several tasks: if any of them failed to be reported, or lost its lock, the whole call
 * fails. */
static enum result answer_all(struct session *s, const struct run_sum *sum,
			      const struct answer *stopped, struct reply *out)
{
	enum result code = sum->lost ? LOST_LOCK : sum->troubled ? MISCONFIGURED : stopped->code;
	struct str what =
		sum->lost ? arena_printf(s->arena, "the lock was lost on %lld of %lld task%s",
					 (long long)sum->lost, (long long)sum->ran,
					 sum->ran == 1 ? "" : "s")
			  : arena_printf(s->arena,
					 "the end of %lld of %lld task%s could not be reported",
					 (long long)sum->troubled, (long long)sum->ran,
					 sum->ran == 1 ? "" : "s");

	if (sum->lost || sum->troubled) {
		run_fail(code, what, STR("`pawl log` shows the events"), out);
	} else {
		run_answer(stopped, out);
	}
	if (code == SUCCESS)
		s->exit_code = run_exit_code(sum->last_status);
	add_sum(reply_more(out), sum);
	say_why(s, sum, stopped);
	run_cmd_say(s,
		    arena_printf(s->arena, "%lld task%s: %lld succeeded, %lld failed, %lld lost%s",
				 (long long)sum->ran, sum->ran == 1 ? "" : "s",
				 (long long)sum->succeeded, (long long)sum->failed,
				 (long long)sum->lost,
				 sum->interrupted ? arena_printf(s->arena, ", %lld interrupted",
								 (long long)sum->interrupted)
							    .p
						  : ""));
	return code;
}

static enum result run_cmd_run(struct session *s, struct args *args, struct reply *out)
{
	const struct run_args *a = (const struct run_args *)args;
	struct running x = { .s = s,
			     .single = !a->loop && a->jobs <= 1,
			     .out = { .silent = true } };
	struct run_plan plan;
	const char *fault = run_cmd_misuse(a);
	struct run_sum sum;
	struct answer ans;
	enum result code;

	if (fault)
		return run_fail(USAGE, str_c(fault), STR("run `pawl help run`"), out);
	s->client.conn.config.opt.write_status |= args->write_status;
	x.screen = a->jobs > 1 && !a->plain && s->people && !s->quiet ? screen_open() : NULL;
	plan = make_plan(a, &x);
	code = runner_run(&s->client, &plan, &sum, &ans);
	screen_close(x.screen, sum.signal != 0);
	if (code == NO_TASKS)
		run_cmd_say(s, ans.message);
	if (code != SUCCESS)
		return run_answer(&ans, out);
	if (!x.single)
		return answer_all(s, &sum, &ans, out);
	*out = x.out;
	return out->ans.code;
}

/* Shows nothing, because the program that ran owns standard output. */
static void run_cmd_show(const struct reply *r, struct view *v)
{
	(void)r;
	(void)v;
}

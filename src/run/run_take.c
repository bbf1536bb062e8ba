#include "run/run_private.h"

#include <unistd.h>

#include "base/os.h"
#include "base/when.h"
#include "format/answer_form.h"

/* The kernel refuses a longer value (128 KiB with its name), and one value must not keep the program from starting. */
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

/* Leaves out empty values: pawl would treat an empty variable as set. */
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

/* One on each line: a label can contain a comma or a blank. */
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
	if (!c->self.run_made) /* a coding agent that it starts has a session, and so a run, of its own */
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

/* Only tasks are left that this loop released. To take one again would run it forever. */
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

/* Copies the answer: it must outlive the memory of the call. */
static void keep_answer(struct runner *r, const struct answer *ans)
{
	struct buf b = BUF_MAX(SIZE_MAX / 4);

	answer_pack(ans, &b);
	if (answer_unpack(arena_str(r->client->arena, buf_str(&b)), r->ans, r->client->arena))
		answer_fail(r->ans, ans->code, STR(""), STR(""));
	buf_free(&b);
}

/* false: no task is eligible now, or the runner claims no more. */
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
		r->checked = true; /* until a job ends, which may make other tasks eligible */
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

#include "run/part.h"

#include <unistd.h>

#include "base/os.h"
#include "format/answer.h"

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

/* Leaves out empty values: pawl would treat an empty variable as set. */
static char **make_environment(const struct runner *r, struct job *j)
{
	const struct client *c = r->client;
	struct arena *a = &j->arena;
	const struct str values[OURS] = { j->task,
					  j->token,
					  arena_printf(a, "%lld", (long long)j->fence),
					  c->config.uri,
					  c->config.opt.queue,
					  c->agent,
					  c->run };
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

static void hold(struct runner *r, struct job *j, const struct answer *ans, int64_t sent)
{
	j->task = arena_str(&j->arena, ans->task->id);
	j->title = arena_str(&j->arena, ans->task->title);
	j->token = arena_str(&j->arena, ans->lock->token);
	j->holder = arena_str(&j->arena, ans->task->lock.holder);
	j->fence = ans->lock->fence;
	job_lease(j, sent, ans);
	if (r->plan->began)
		r->plan->began(r->plan->ctx, ans);
}

/* Only tasks are left that this loop released. To take one again would run it forever. */
static void note_passed_over(struct runner *r, const struct answer *ans)
{
	const struct given_back *g = &r->client->given_back;
	struct arena *a = r->client->arena;

	if (!ans->warnings.n || !g->n)
		return;
	r->sum->again = arena_str(a, g->v[0].id);
	r->sum->passed_over = arena_str(a, ans->warnings.v[0]);
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
		hold(r, j, &ans, sent);
		begin(r, j);
		return !r->no_more;
	}
	if (ans.code == NO_TASKS && r->sum->ran) {
		note_passed_over(r, &ans);
		r->looked = true; /* until a job ends, which may make other tasks eligible */
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

	while (!r->looked && !r->no_more && r->sum->ran < wanted && take_one(r))
		;
}

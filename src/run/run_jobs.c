/*
 * Starts and ends a run. The program is searched before the first claim, and the watch on the store
 * begins before it, too: no task is claimed for a program that does not exist, and no change is
 * missed.
 */
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/os.h"
#include "base/text.h"
#include "run/run_private.h"

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

/* --- calls ---------------------------------------------------------------------------------- */

void runner_call(struct runner *r, const struct request *rq, struct answer *ans, struct arena *a)
{
	struct client *c = r->client;
	struct arena *kept = c->arena, *ring = c->keyring.arena;

	c->arena = a;
	client_call(c, rq, ans);
	c->arena = kept;
	c->keyring.arena = ring;
}

void runner_keep(struct runner *r, struct str *to, struct str text)
{
	if (!str_eq(*to, text))
		*to = arena_str(r->client->arena, text);
}

struct request job_request(const struct job *j, enum op op)
{
	struct request rq = { .op = op };

	GIVE(&rq, id, j->task);
	GIVE(&rq, token, j->token);
	return rq;
}

void job_give_back(struct runner *r, struct job *j, struct str why, struct answer *ans,
		   struct arena *a)
{
	struct request rq = job_request(j, OP_RELEASE);

	GIVE(&rq, reason, why);
	runner_call(r, &rq, ans, a);
}

/* --- the run -------------------------------------------------------------------------------- */

/* Searches like execvp(), but before the runner claims a task, so that a typing error does not fail
 * every task. */
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

static enum result run_jobs_prepare(struct runner *r)
{
	const struct run_plan *plan = r->plan;
	struct client *c = r->client;
	struct arena *a = c->arena;

	r->program = (struct program){
		.path = find_program(plan->words.v[0], c->conn.config.opt.dir, a),
		.dir = c->conn.config.opt.dir,
		.no_input = plan->jobs > 1,
		.output = -1,
		/* a file or a pipe gets the standard output unchanged */
		.out_to_err = plan->out_to_err || (plan->screen && isatty(STDOUT_FILENO)),
	};
	if (r->program.path)
		return SUCCESS;
	return answer_fail(
		r->ans, USAGE,
		arena_printf(a, "there is no program '%s'",
			     arena_cstr(a, text_line(a, plan->words.v[0]))),
		STR("nothing was claimed; after -- write a program and its arguments, or "
		    "sh -c '...'"));
}

/* Limits each call to a third of the lease, because a renewal could come too late otherwise. */
static void limit_waiting(struct client *c, const struct request *take)
{
	int64_t ttl = HAS(take, ttl) ? take->ttl : settings_number(&c->conn.settings, "lease");

	if (ttl / 3 < c->conn.config.opt.timeout_ms)
		c->conn.config.opt.timeout_ms = ttl / 3 > 0 ? ttl / 3 : 1;
}

static enum result run_jobs_cannot(struct runner *r, const char *what, int fault)
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
	fault = reaper_start(&r->reaper, r->plan->grace_ms);
	if (fault)
		return run_jobs_cannot(r, "pawl cannot start the process that watches the command",
				       fault);
	r->program.reaper = r->reaper.fd;
	r->signals = signals_open();
	if (r->signals < 0) {
		code = run_jobs_cannot(r, "pawl cannot catch signals", r->signals);
	} else {
		code = client_open(c, STORE_WRITE, r->ans);
		if (code == SUCCESS) {
			/* watch before the first claim, so that no change is missed */
			queue_wake_fd(c->conn.queue);
			runner_watch(r);
		}
		signals_close();
	}
	reaper_stop(&r->reaper);
	if (r->sum->ran && code == SUCCESS)
		return SUCCESS;
	if (r->ans->code == SUCCESS) /* it waited without success, or a signal ended the wait */
		answer_fail(r->ans, NO_TASKS, STR("no task became eligible"),
			    STR("pawl next --explain says why"));
	return r->ans->code;
}

enum result runner_run(struct client *c, const struct run_plan *plan, struct run_sum *sum,
		       struct answer *ans)
{
	struct run_plan own = *plan;
	struct runner r = { .client = c, .plan = &own, .sum = sum, .ans = ans, .check_one = NEVER };
	enum result code;

	*sum = (struct run_sum){ 0 };
	*ans = (struct answer){ 0 };
	GIVE(&own.take, pid, getpid());
	GIVE(&own.take, pid_start, proc_start(getpid()));
	GIVE(&own.take, boot_id, proc_here(c->arena));
	r.jobs = arena_array(c->arena, struct job, (size_t)own.jobs);
	r.polls = arena_array(c->arena, struct pollfd, (size_t)own.jobs + 3);
	runner_idle(&r);
	if (run_jobs_prepare(&r) != SUCCESS)
		return ans->code;
	c->given_back.on = own.loop;
	code = run_all(&r);
	given_back_free(&c->given_back);
	return code;
}

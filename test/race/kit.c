#include "kit.h"

#include <signal.h>
#include <sys/mman.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "kit/store_uri.h"

static char folder[FOLDER_ROOM], uri[200];

void *shared_alloc(size_t n)
{
	void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	CHECK(p != MAP_FAILED, "no shared memory");
	return p;
}

int64_t kit_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

void kit_sleep(int64_t ms)
{
	struct timespec t = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&t, NULL);
}

bool kit_await(_Atomic int *flag, int least, int64_t ms)
{
	int64_t end = kit_ms() + ms;

	while (*flag < least && kit_ms() < end)
		kit_sleep(1);
	return *flag >= least;
}

struct queue_config kit_config(int64_t timeout_ms)
{
	struct queue_config config = { .uri = str_c(uri),
				       .policy = policy_default,
				       .opt.timeout_ms = timeout_ms,
				       .opt.who = STR("race test") };

	config.policy.lease_min = 1;
	config.policy.max_abandoned = 0;
	return config;
}

struct queue *kit_open_as(const struct queue_config *config, enum store_mode mode)
{
	struct queue *q = NULL;
	struct answer ans = { 0 };
	struct arena a = { 0 };

	CHECK(queue_open(&q, config, mode, &ans, &a) == SUCCESS, "%.*s", STRF(ans.message));
	arena_free(&a);
	return q;
}

struct queue *kit_open(enum store_mode mode, int64_t timeout_ms)
{
	struct queue_config config = kit_config(timeout_ms);

	return kit_open_as(&config, mode);
}

const char *kit_folder(void)
{
	return folder;
}

const char *kit_uri(void)
{
	return uri;
}

void kit_begin(void)
{
	store_uri(uri, sizeof(uri), folder, "sqlite:{dir}/queue.db");
	queue_close(kit_open(STORE_CREATE, 20000));
}

void kit_end(void)
{
	char *argv[] = { "rm", "-rf", "--", folder, NULL };

	fflush(NULL);
	execvp(argv[0], argv);
}

pid_t kit_spawn(int (*work)(int), int arg)
{
	pid_t pid;

	fflush(NULL);
	pid = fork();
	CHECK(pid >= 0, "cannot fork");
	if (pid)
		return pid;
	alarm(900); /* a slow disk: 20 processes push 400 commits */
#ifdef __linux__
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* even if the child is stopped */
#endif
	_exit(work(arg));
}

bool kit_ended(pid_t pid)
{
	siginfo_t info = { 0 };

	CHECK(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0, "no such child");
	return info.si_pid != 0;
}

int kit_reap(pid_t pid)
{
	int status = 0;

	CHECK(waitpid(pid, &status, 0) == pid, "no such child");
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

void kit_reap_all(const char *what, const pid_t *pids, int n)
{
	for (int i = 0; i < n; i++) {
		int code = kit_reap(pids[i]);

		CHECK(code == 0, "%s: process %d ended with %d", what, i, code);
	}
}

static void on_finding(void *ctx, enum check_level level, const char *what, struct str text,
		       struct str fix)
{
	(void)ctx;
	(void)fix;
	CHECK(level != CHECK_BAD, "%s: %.*s", what, STRF(text));
}

void kit_check_store(struct queue *q)
{
	struct answer ans = { 0 };
	struct arena a = { 0 };

	CHECK(queue_check(q, on_finding, NULL, &ans, &a) == SUCCESS, "%.*s", STRF(ans.message));
	arena_free(&a);
}

struct request kit_request(enum op op, struct str id, struct str agent)
{
	struct request rq = { .op = op };

	GIVE(&rq, agent, agent);
	if (id.n)
		GIVE(&rq, id, id);
	return rq;
}

void kit_call(struct queue *q, const struct request *rq, struct answer *ans, struct arena *a)
{
	queue_call(q, rq, ans, a);
	CHECK(ans->code != API_ERROR && ans->code != USAGE && ans->code != MISCONFIGURED,
	      "%s: %s: %.*s", op_name(rq->op), result_name(ans->code), STRF(ans->message));
}

static void create_some(struct queue *q, int from, int n)
{
	struct request rqs[100] = { 0 };
	struct answer answers[100];
	struct arena a = { 0 };

	for (int i = 0; i < n; i++) {
		rqs[i] = kit_request(OP_CREATE, STR(""), STR("maker"));
		GIVE(&rqs[i], title, arena_printf(&a, "task %d", from + i));
		GIVE(&rqs[i], class_rank, EXPEDITE + (from + i) % 4);
		GIVE(&rqs[i], priority, (from + i) * 7 % 11);
	}
	queue_call_many(q, rqs, answers, (size_t)n, &a);
	for (int i = 0; i < n; i++)
		CHECK(answers[i].code == SUCCESS, "create: %.*s", STRF(answers[i].message));
	arena_free(&a);
}

void kit_create(struct queue *q, int n)
{
	for (int from = 0; from < n; from += 100)
		create_some(q, from, n - from < 100 ? n - from : 100);
}

int kit_number(struct str id)
{
	int64_t n = 0;

	CHECK(id.n > 1 && str_to_i64(str_n(id.p + 1, id.n - 1), &n), "odd id %.*s", STRF(id));
	return (int)n;
}

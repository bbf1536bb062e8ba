/* /metrics in the text form of Prometheus. Labels have only values that the program knows: commands, codes, queues. */
#include "face/serve/serve.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/os.h"
#include "format/answer.h"

static const double bounds[BUCKETS] = { 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5 };
static const int statuses[STATUSES] = { 0,   200, 400, 401, 403, 404, 405, 408,
					409, 413, 415, 422, 429, 431, 500, 503 };

/* --- counting ------------------------------------------------------------------------------------ */

/* A status that is not in the list counts as 500. */
void counts_http(struct serve *s, enum route route, int status)
{
	size_t i = 0;

	while (i < STATUSES && statuses[i] != status)
		i++;
	s->counts.http[route][i < STATUSES ? i : 14]++;
}

static size_t index_of(const struct command *c)
{
	size_t i = 0;

	while (commands[i] && commands[i] != c)
		i++;
	return i < COMMANDS_MAX ? i : 0;
}

static const enum result codes[CODES] = { SUCCESS,   LOCK_FREE,     USAGE,
					  NO_TASKS,  CONFLICT,      LOST_LOCK,
					  API_ERROR, MISCONFIGURED, INCOMPLETE_SUBTASKS,
					  NOT_FOUND };

void counts_call(struct serve *s, const struct command *c, enum result code, double seconds)
{
	size_t i = index_of(c), k = 0, b = 0;

	while (k + 1 < CODES && codes[k] != code)
		k++;
	s->counts.calls[i][k]++;
	s->counts.lost += code == LOST_LOCK;
	while (b < BUCKETS && seconds > bounds[b])
		b++;
	s->counts.seconds[i].n[b]++;
	s->counts.seconds[i].sum += seconds;
}

/* --- what the server itself counts ----------------------------------------------------------------- */

static void head(struct buf *b, const char *name, const char *type, const char *help)
{
	buf_addf(b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void add_calls(struct buf *b, const struct counts *c)
{
	head(b, "pawl_calls_total", "counter", "calls by command and code");
	for (size_t i = 0; i < COMMANDS_MAX && commands[i]; i++)
		for (size_t k = 0; k < CODES; k++)
			if (c->calls[i][k])
				buf_addf(b, "pawl_calls_total{op=\"%s\",code=\"%s\"} %llu\n",
					 commands[i]->name, result_name(codes[k]),
					 (unsigned long long)c->calls[i][k]);
}

static void add_seconds(struct buf *b, const struct counts *c)
{
	head(b, "pawl_call_seconds", "histogram", "time of a call, with its wait");
	for (size_t i = 0; i < COMMANDS_MAX && commands[i]; i++) {
		const struct spread *x = &c->seconds[i];
		const char *op = commands[i]->name;
		unsigned long long n = 0;

		for (size_t k = 0; k <= BUCKETS; k++)
			n += x->n[k];
		if (!n)
			continue;
		n = 0;
		for (size_t k = 0; k < BUCKETS; k++) {
			n += x->n[k];
			buf_addf(b, "pawl_call_seconds_bucket{op=\"%s\",le=\"%g\"} %llu\n", op,
				 bounds[k], n);
		}
		n += x->n[BUCKETS];
		buf_addf(b, "pawl_call_seconds_bucket{op=\"%s\",le=\"+Inf\"} %llu\n", op, n);
		buf_addf(b, "pawl_call_seconds_sum{op=\"%s\"} %g\n", op, x->sum);
		buf_addf(b, "pawl_call_seconds_count{op=\"%s\"} %llu\n", op, n);
	}
}

static void add_http(struct buf *b, const struct counts *c)
{
	head(b, "pawl_http_requests_total", "counter",
	     "requests by route and status; 0: the peer left before the answer");
	for (size_t r = 0; r < ROUTES; r++)
		for (size_t k = 0; k < STATUSES; k++)
			if (c->http[r][k])
				buf_addf(b,
					 "pawl_http_requests_total{route=\"%s\",status=\"%d\"} "
					 "%llu\n",
					 route_names[r], statuses[k],
					 (unsigned long long)c->http[r][k]);
}

static void add_one(struct buf *b, const char *name, const char *type, const char *help, double n)
{
	head(b, name, type, help);
	buf_addf(b, "%s %.15g\n", name, n);
}

static void add_process(struct buf *b)
{
	struct rusage u = { 0 };
	FILE *f = fopen("/proc/self/statm", "re");
	long long size = 0, pages = 0;

	getrusage(RUSAGE_SELF, &u);
	add_one(b, "process_cpu_seconds_total", "counter", "processor time",
		(double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
			(double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6);
	if (f && fscanf(f, "%lld %lld", &size, &pages) == 2)
		add_one(b, "process_resident_memory_bytes", "gauge", "memory in use",
			(double)pages * (double)sysconf(_SC_PAGESIZE));
	if (f)
		fclose(f);
}

static void add_own(struct serve *s, struct buf *b)
{
	struct counts *c = &s->counts;

	add_calls(b, c);
	add_seconds(b, c);
	add_http(b, c);
	add_one(b, "pawl_commit_calls", "counter", "packed requests that were committed",
		(double)atomic_load(&c->committed));
	add_one(b, "pawl_commits_total", "counter", "commits of packed requests",
		(double)atomic_load(&c->commits));
	add_one(b, "pawl_commit_seconds", "counter", "time of these commits",
		(double)atomic_load(&c->commit_us) / 1e6);
	add_one(b, "pawl_lost_lock_total", "counter", "calls that lost their lock",
		(double)c->lost);
	add_one(b, "pawl_waiters", "gauge", "calls of next that may wait", (double)c->waits);
	add_one(b, "pawl_streams", "gauge", "open event streams", (double)c->streams);
	add_one(b, "pawl_auth_failures_total", "counter", "requests without a valid token",
		(double)s->access.refused);
	add_process(b);
}

/* --- what each queue counts ------------------------------------------------------------------------ */

/* One answer to /metrics: it waits for the counts of every open queue. */
struct census {
	struct serve *serve;
	struct http_exchange *exchange;
	struct buf out;
	size_t left;
};

static void add_label(struct buf *b, struct str text)
{
	for (size_t i = 0; i < text.n; i++) {
		if (text.p[i] == '"' || text.p[i] == '\\')
			buf_addc(b, '\\');
		buf_addc(b, text.p[i]);
	}
}

static void add_gauge(struct buf *b, const char *name, struct str queue, const char *status,
		      double n)
{
	buf_addf(b, "%s{queue=\"", name);
	add_label(b, queue);
	if (status)
		buf_addf(b, "\",status=\"%s", status);
	buf_addf(b, "\"} %.15g\n", n);
}

static double oldest_ready(struct desk *d, struct arena *a)
{
	struct request rq = { .op = OP_LIST };
	struct answer ans = { 0 };
	int64_t oldest = 0;

	GIVE(&rq, statuses, STATUS_BIT(READY));
	GIVE(&rq, limit, 1); /* without a view, lists are in the order of creation */
	queue_call(d->session.client.queue, &rq, &ans, a);
	if (ans.code == SUCCESS && ans.n_tasks)
		oldest = ans.now - ans.tasks[0].created_at;
	return oldest > 0 ? (double)oldest / 1000 : 0;
}

void metrics_run(struct desk *d, struct job *j)
{
	struct request rq = { .op = OP_OVERVIEW };
	struct str name = *d->queue ? str_c(d->queue) : STR("default");
	struct answer ans = { 0 };
	struct arena a = { 0 };

	queue_call(d->session.client.queue, &rq, &ans, &a);
	if (ans.code == SUCCESS) {
		for (int i = BACKLOG; i < STATUS_END; i++)
			add_gauge(&j->answer, "pawl_tasks", name, status_name(i),
				  (double)ans.counts[i]);
		add_gauge(&j->answer, "pawl_locks", name, NULL, (double)ans.held);
		add_gauge(&j->answer, "pawl_oldest_ready_seconds", name, NULL, oldest_ready(d, &a));
	}
	j->status = 200;
	arena_free(&a);
}

static void census_end(struct census *x)
{
	http_reply(x->exchange, 200, "text/plain; version=0.0.4; charset=utf-8",
		   (struct http_headers){ 0 }, buf_str(&x->out));
	buf_free(&x->out);
	free(x);
}

void metrics_done(struct job *j)
{
	struct census *x = j->owner;

	buf_adds(&x->out, buf_str(&j->answer));
	job_free(j);
	if (!--x->left)
		census_end(x);
}

void metrics_serve(struct serve *s, struct http_exchange *x, struct guest *c)
{
	struct census *all = mem_alloc(sizeof(*all));

	*all = (struct census){ .serve = s, .exchange = x, .out = BUF_MAX(ANSWER_MAX), .left = 1 };
	add_own(s, &all->out);
	if (!s->desks)
		(void)desk_find(s, c->queue ? str_c(c->queue) : STR(""));
	for (struct desk *d = s->desks; d; d = d->next) {
		struct guest none = { 0 };
		struct job *j;

		if (c->queue && !str_is(str_c(d->queue), c->queue))
			continue;
		j = job_new(JOB_COUNT, NULL, &none);
		j->owner = all;
		all->left++;
		desk_put(d, j);
	}
	if (!--all->left)
		census_end(all);
}

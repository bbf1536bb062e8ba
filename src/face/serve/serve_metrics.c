/*
 * /metrics in the text format of Prometheus. Labels have only values that the program knows
 * (commands, codes, queues). All lines of one metric stand together.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/os.h"
#include "face/serve/serve.h"
#include "format/answer_form.h"

static const double bounds[BUCKETS] = { 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5 };
static const double call_bounds[BUCKETS] = { 1, 2, 4, 8, 16, 32, 64, 128 };
static const int statuses[STATUSES] = { 0,   200, 400, 401, 403, 404, 405, 408,
					409, 413, 415, 422, 429, 431, 500, 503 };

/* --- counting ------------------------------------------------------------------------------------ */

/* Counts a response. A status that is not in the list counts as 500. */
void counts_http(struct serve *s, enum route route, int status)
{
	size_t i = 0;

	while (i < STATUSES && statuses[i] != status)
		i++;
	s->counts.http[route][i < STATUSES ? i : 14]++;
}

/* The command's index in the table. A tool of the MCP profile pm is not in it and counts as the
 * command of its operation. */
static size_t index_of(const struct command *c)
{
	size_t i = 0;

	while (commands[i] && commands[i] != c)
		i++;
	if (!commands[i] && packed_command(c->op))
		return index_of(packed_command(c->op));
	return i < COMMANDS_MAX ? i : 0;
}

static const enum result codes[CODES] = { SUCCESS,   LOCK_FREE,     USAGE,
					  NO_TASKS,  CONFLICT,      LOST_LOCK,
					  API_ERROR, MISCONFIGURED, INCOMPLETE_SUBTASKS,
					  NOT_FOUND, VIOLATION };

static void counts_call(struct serve *s, const struct command *c, enum result code, double seconds)
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

void counts_job(struct serve *s, const struct job *j)
{
	double took = (double)(os_boot_ms() - j->began_ns / 1000000) / 1000;

	if (j->command)
		counts_call(s, j->command, j->code, took);
	for (size_t i = 0; i < j->made_n; i++)
		counts_call(s, j->made[i].command, j->made[i].code, took);
}

static void commits_add(struct commits *x, const double *limits, double value, uint64_t n)
{
	size_t b = 0;

	while (b < BUCKETS && value > limits[b])
		b++;
	atomic_fetch_add(&x->n[b], 1);
	atomic_fetch_add(&x->sum, n);
}

void counts_commit(struct serve *s, size_t changes, int64_t took_us)
{
	commits_add(&s->counts.commit_calls, call_bounds, (double)changes, changes);
	commits_add(&s->counts.commit_us, bounds, (double)took_us / 1e6, (uint64_t)took_us);
}

/* --- counters of the server ------------------------------------------------------------------------ */

static void metrics_head(struct buf *b, const char *name, const char *type, const char *help)
{
	buf_addf(b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void add_calls(struct buf *b, const struct counts *c)
{
	metrics_head(b, "pawl_calls_total", "counter", "calls by command and code");
	for (size_t i = 0; i < COMMANDS_MAX && commands[i]; i++)
		for (size_t k = 0; k < CODES; k++)
			if (c->calls[i][k])
				buf_addf(b, "pawl_calls_total{op=\"%s\",code=\"%s\"} %llu\n",
					 commands[i]->name, result_name(codes[k]),
					 (unsigned long long)c->calls[i][k]);
}

static void add_seconds(struct buf *b, const struct counts *c)
{
	metrics_head(b, "pawl_call_seconds", "histogram", "time of a call, with its wait");
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
	metrics_head(b, "pawl_http_requests_total", "counter",
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
	metrics_head(b, name, type, help);
	buf_addf(b, "%s %.15g\n", name, n);
}

static void add_commits(struct buf *b, const char *name, const char *help, struct commits *x,
			const double *limits, double unit)
{
	unsigned long long n = 0;

	metrics_head(b, name, "histogram", help);
	for (size_t k = 0; k < BUCKETS; k++) {
		n += atomic_load(&x->n[k]);
		buf_addf(b, "%s_bucket{le=\"%g\"} %llu\n", name, limits[k], n);
	}
	n += atomic_load(&x->n[BUCKETS]);
	buf_addf(b, "%s_bucket{le=\"+Inf\"} %llu\n", name, n);
	buf_addf(b, "%s_sum %.15g\n", name, (double)atomic_load(&x->sum) * unit);
	buf_addf(b, "%s_count %llu\n", name, n);
}

static double open_files(void)
{
	DIR *d = opendir("/proc/self/fd");
	size_t n = 0;

	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n > 3 ? (double)(n - 3) : 0; /* without . and .. and the folder itself */
}

static void add_memory(struct buf *b)
{
	FILE *f = fopen("/proc/self/statm", "re");
	double page = (double)sysconf(_SC_PAGESIZE);
	long long size = 0, pages = 0;

	if (f && fscanf(f, "%lld %lld", &size, &pages) == 2) {
		add_one(b, "process_virtual_memory_bytes", "gauge", "address space",
			(double)size * page);
		add_one(b, "process_resident_memory_bytes", "gauge", "memory in use",
			(double)pages * page);
	}
	if (f)
		fclose(f);
}

static void add_process(struct serve *s, struct buf *b)
{
	struct rusage u = { 0 };
	struct rlimit files = { 0 };

	getrusage(RUSAGE_SELF, &u);
	add_one(b, "process_cpu_seconds_total", "counter", "processor time",
		(double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
			(double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6);
	add_memory(b);
	add_one(b, "process_start_time_seconds", "gauge", "start, in seconds since 1970",
		(double)s->started / 1000);
	add_one(b, "process_open_fds", "gauge", "open file descriptors", open_files());
	if (!getrlimit(RLIMIT_NOFILE, &files))
		add_one(b, "process_max_fds", "gauge", "limit of open file descriptors",
			(double)files.rlim_cur);
}

static void add_tls(struct serve *s, struct buf *b)
{
	struct http_counters n = http_counters(s->http);

	add_one(b, "pawl_tls_handshakes_total", "counter", "TLS connections", (double)n.handshakes);
	add_one(b, "pawl_tls_resumed_total", "counter",
		"TLS connections that continued an earlier session", (double)n.resumed);
}

static void add_own(struct serve *s, struct buf *b)
{
	struct counts *c = &s->counts;

	add_calls(b, c);
	add_seconds(b, c);
	add_http(b, c);
	add_commits(b, "pawl_commit_calls", "changes in one commit", &c->commit_calls, call_bounds,
		    1);
	add_commits(b, "pawl_commit_seconds", "time of a commit", &c->commit_us, bounds, 1e-6);
	add_one(b, "pawl_lost_lock_total", "counter", "calls that lost their lock",
		(double)c->lost);
	add_one(b, "pawl_waiters", "gauge", "calls that may wait for a task or a change",
		(double)c->waits);
	add_one(b, "pawl_streams", "gauge", "open event streams", (double)c->streams);
	add_one(b, "pawl_log_dropped_total", "counter",
		"log lines that were dropped, because nobody read the log", (double)c->log_dropped);
	add_one(b, "pawl_auth_failures_total", "counter", "requests without a valid token",
		(double)s->login.refused);
	add_tls(s, b);
	add_process(s, b);
}

/* --- figures of each queue ------------------------------------------------------------------------- */

/* The figures of one queue. */
struct tally {
	struct tally *next;
	struct record_counts *record_counts;
	struct str queue;
	bool up;
	int64_t tasks[STATUS_END], locks;
	double oldest;
	uint64_t abandoned;
};

/* One answer to /metrics. It waits for the figures of every open queue. */
struct record_counts {
	struct serve *serve;
	struct http_exchange *exchange;
	struct arena arena;
	struct tally *first, **last;
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

static double oldest_ready(struct worker *d, struct arena *a)
{
	struct request rq = { .op = OP_LIST };
	struct answer ans = { 0 };
	int64_t oldest = 0;

	GIVE(&rq, statuses, STATUS_BIT(READY));
	GIVE(&rq, limit, 1); /* without a view, lists are in the order of creation */
	queue_call(d->session.client.conn.queue, &rq, &ans, a);
	if (ans.code == SUCCESS && ans.n_tasks)
		oldest = ans.now - ans.tasks[0].created_at;
	return oldest > 0 ? (double)oldest / 1000 : 0;
}

void metrics_run(struct worker *d, struct job *j)
{
	struct request rq = { .op = OP_OVERVIEW };
	struct tally *t = j->owner;
	struct answer ans = { 0 };
	struct arena a = { 0 };

	queue_call(d->session.client.conn.queue, &rq, &ans, &a);
	t->up = ans.code == SUCCESS;
	for (int i = BACKLOG; t->up && i < STATUS_END; i++)
		t->tasks[i] = ans.counts[i];
	if (t->up) {
		t->locks = ans.held;
		t->oldest = oldest_ready(d, &a);
		(void)expiry_check(d);
	}
	worker_failed(d, &ans);
	t->abandoned = d->expiries.n;
	j->status = 200;
	arena_free(&a);
}

static void add_queues(struct buf *b, const struct tally *first)
{
	const struct tally *t;

	metrics_head(b, "pawl_queue_up", "gauge", "1 if the store answers");
	for (t = first; t; t = t->next)
		add_gauge(b, "pawl_queue_up", t->queue, NULL, t->up);
	metrics_head(b, "pawl_tasks", "gauge", "tasks by status");
	for (t = first; t; t = t->next)
		for (int i = BACKLOG; t->up && i < STATUS_END; i++)
			add_gauge(b, "pawl_tasks", t->queue, status_name(i), (double)t->tasks[i]);
	metrics_head(b, "pawl_locks", "gauge", "locks that are held");
	for (t = first; t; t = t->next)
		if (t->up)
			add_gauge(b, "pawl_locks", t->queue, NULL, (double)t->locks);
	metrics_head(b, "pawl_oldest_ready_seconds", "gauge", "age of the oldest Ready task");
	for (t = first; t; t = t->next)
		if (t->up)
			add_gauge(b, "pawl_oldest_ready_seconds", t->queue, NULL, t->oldest);
	metrics_head(b, "pawl_abandoned_total", "counter", "leases that expired");
	for (t = first; t; t = t->next)
		add_gauge(b, "pawl_abandoned_total", t->queue, NULL, (double)t->abandoned);
}

static void record_counts_end(struct record_counts *x)
{
	struct buf out = BUF_MAX(ANSWER_MAX);

	add_own(x->serve, &out);
	add_queues(&out, x->first);
	http_reply(x->exchange, 200, "text/plain; version=0.0.4; charset=utf-8",
		   (struct http_headers){ 0 }, buf_str(&out));
	buf_free(&out);
	arena_free(&x->arena);
	free(x);
}

void metrics_done(struct job *j)
{
	struct record_counts *x = ((struct tally *)j->owner)->record_counts;

	job_free(j);
	if (!--x->left)
		record_counts_end(x);
}

static void count_queue(struct record_counts *x, struct worker *d)
{
	struct tally *t = arena_new(&x->arena, struct tally);
	struct http_caller none = { 0 };
	struct job *j = job_new(JOB_COUNT, NULL, &none);

	*t = (struct tally){ .record_counts = x, .queue = worker_name(d) };
	t->queue = arena_str(&x->arena, t->queue);
	*x->last = t;
	x->last = &t->next;
	j->owner = t;
	x->left++;
	worker_put(d, j);
}

void metrics_serve(struct serve *s, struct http_exchange *x, struct http_caller *c)
{
	struct record_counts *all = mem_alloc(sizeof(*all));

	*all = (struct record_counts){ .serve = s, .exchange = x, .left = 1 };
	all->last = &all->first;
	if (!s->workers)
		(void)worker_find(s, c->queue ? str_c(c->queue) : STR(""), c->meter);
	for (struct worker *d = s->workers; d; d = d->next)
		if (!c->queue || str_is(worker_name(d), c->queue))
			count_queue(all, d);
	if (!--all->left)
		record_counts_end(all);
}

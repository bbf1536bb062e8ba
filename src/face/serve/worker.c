/*
 * A worker: the thread of one queue. Jobs that arrive while it commits form its next batch, so no
 * timer makes calls wait for each other. Only this thread calls the queue. No caller may get a task
 * after its peer has gone or its token was revoked.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/os.h"
#include "face/serve/mcp_http.h"

#define DECIDED_MS 20 /* a call that waited longer has its token checked again */

/* --- the queue ----------------------------------------------------------------------------------- */

bool worker_open(struct worker *d, struct answer *ans, struct arena *a)
{
	struct client *c = &d->session.client;
	enum store_mode mode = d->serve->read_only ? STORE_READ
			       : d->creates        ? STORE_CREATE
						   : STORE_WRITE;
	struct client_options said = d->serve->session->client.said;

	if (atomic_exchange(&d->reload, false))
		d->open = false;
	if (d->open)
		return true;
	client_close(c);
	arena_free(&d->arena);
	d->arena = (struct arena){ 0 };
	if (*d->queue)
		said.queue = str_c(d->queue);
	said.face = CLIENT_PROGRAM;
	*ans = (struct answer){ 0 };
	if (client_init(c, &said, ans, &d->arena) == SUCCESS) {
		c->self.bare = true;
		c->conn.config.impatient =
			true; /* a call that waits for the store must not delay the others */
		d->open = client_open(c, mode, ans) == SUCCESS;
		c->conn.shared = true;
	}
	d->broken = !d->open;
	if (d->open && !d->expiries.since)
		d->expiries.since = queue_now(c->conn.queue);
	if (!d->open) {
		ans->message = arena_str(a, ans->message);
		ans->hint = arena_str(a, ans->hint);
	}
	return d->open;
}

/* When the disk is full, the queue can still be read, but perhaps not reopened. */
void worker_failed(struct worker *d, const struct answer *ans)
{
	if (ans->code == API_ERROR && !ans->barred && !str_is(ans->fault, "full"))
		d->open = false;
}

struct session worker_session(struct worker *d, const struct http_caller *c, struct arena *a)
{
	struct session s = d->session;

	s.arena = s.client.arena = s.client.keyring.arena = a;
	s.client.self.role = serve_role(d->serve, c);
	s.client.self.only_queue = c->queue ? str_c(c->queue) : STR("");
	s.client.self.run = STR("");
	s.remote = s.owns_stdout = s.decisions = true;
	return s;
}

/* --- batches ------------------------------------------------------------------------------------- */

#define SHARE_MS 50 /* of a batch: then the worker checks whether other callers wait */

bool worker_share_is_over(const struct worker *d)
{
	return os_boot_ms() - d->batch_began >= SHARE_MS;
}

static struct job *take_jobs(struct worker *d, bool *stop)
{
	struct job *list;

	pthread_mutex_lock(&d->lock);
	list = d->first;
	d->first = NULL;
	d->last = &d->first;
	*stop = d->stop;
	pthread_mutex_unlock(&d->lock);
	return list;
}

static void put_off(struct worker *d, struct job *j)
{
	struct job **at = &d->pending;

	while (*at)
		at = &(*at)->next;
	j->next = NULL;
	*at = j;
}

/* Jobs that earlier batches left over come before new ones. */
static struct job *with_pending(struct worker *d, struct job *list)
{
	struct job **at = &d->pending, *all;

	while (*at)
		at = &(*at)->next;
	*at = list;
	all = d->pending;
	d->pending = NULL;
	for (struct job *j = all; j; j = j->next)
		j->put_off = false;
	return all && all->next ? fair_order(d, all) : all;
}

void worker_answer(struct job *j)
{
	http_server_post(j->worker->serve->http, job_done, j);
}

static void jobs_done(void *list)
{
	struct job *next;

	for (struct job *j = list; j; j = next) {
		next = j->next;
		job_done(j);
	}
}

/* Returns all answers of a commit at once: the loop wakes up once, and sends them together. */
static void answer_all(struct worker *d, struct job **list, struct job ***last)
{
	if (*list)
		http_server_post(d->serve->http, jobs_done, *list);
	*list = NULL;
	*last = list;
}

static void keep_waiting(struct worker *d, struct job *j)
{
	j->next = NULL;
	*d->waiting_last = j;
	d->waiting_last = &j->next;
}

/* Runs a job that is not packed, or a packed job alone. true: the job has its answer. */
static bool run_one(struct worker *d, struct job *j, bool last)
{
	switch (j->kind) {
	case JOB_COMMAND:
		return call_run(d, j, last);
	case JOB_STORE:
		store_run(d, j);
		return true;
	case JOB_EVENTS:
		events_run(d, j);
		return true;
	case JOB_COUNT:
		metrics_run(d, j);
		return true;
	case JOB_MCP:
		return mcp_session_run(d, j);
	case JOB_SETTLE:
		break;
	case JOB_PACKED:
		return packed_go_on(d, j, last);
	}
	return j->status != 0;
}

static void refuse_all(struct job *list, const struct answer *ans)
{
	for (struct job *j = list; j; j = j->next)
		job_fail(j, ans);
}

/* A call may get a task only while its token is valid. The loop has just checked a new call, but
 * not a call that has waited. */
static void refuse_revoked(struct worker *d, struct job *list)
{
	int64_t before = os_boot_ms() - DECIDED_MS;

	for (struct job *j = list; j; j = j->next)
		if (!j->status &&
		    ((j->parked && j->kind != JOB_MCP) || j->began_ns / 1000000 < before) &&
		    !serve_login_worker_holds(d, j->caller.hash))
			job_refuse(j, 401, MISCONFIGURED,
				   STR("the token was revoked or has expired"),
				   STR("`pawl token create` on the server makes a token"),
				   "unauthorized");
}

/* The worker is ending: nobody can get an answer any more, so no further call is made. */
static void refuse_at_end(struct job *list)
{
	for (struct job *j = list; j; j = j->next)
		if (!j->status)
			job_refuse(j, 503, API_ERROR, STR("the server is ending"), STR(""), "");
}

static void run_batch(struct worker *d, struct job *list, bool last)
{
	struct answer ans = { 0 };
	struct arena a = { 0 };
	struct job *j, *next, *answered = NULL, **end = &answered;
	bool any = false;

	refuse_revoked(d, list);
	d->creates = store_creates(d, list);
	d->batch_began = os_boot_ms();
	d->ran = NULL;
	if (worker_open(d, &ans, &a))
		packed_run(d, list, last);
	else
		refuse_all(list, &ans);
	for (j = list; j; j = next) {
		bool own = j->kind == JOB_MCP; /* run_one() then passes the job's ownership on */

		next = j->next;
		j->next = NULL;
		if (!j->status && !j->tried && any && worker_share_is_over(d)) {
			put_off(d, j);
			continue;
		}
		/* an MCP call closes a queue that failed */
		if (!j->status && !j->tried && !d->session.client.conn.queue &&
		    !worker_open(d, &ans, &a))
			job_fail(j, &ans);
		if (!j->status && !j->tried) { /* may take long */
			answer_all(d, &answered, &end);
			d->ran = j->payer;
			any = true;
		}
		/* an MCP client that closed its side may still read the answer */
		if (j->status || (job_is_gone(j) && !own) || (!j->tried && run_one(d, j, last))) {
			*end = j;
			end = &j->next;
		} else if (!own && j->put_off) {
			put_off(d, j);
		} else if (!own) {
			keep_waiting(d, j);
		}
	}
	d->slow = worker_share_is_over(d) ? d->ran : NULL;
	answer_all(d, &answered, &end);
	arena_free(&a);
}

/* A caller that has gone must not get a task. */
static void drop_gone(struct worker *d)
{
	struct job **at = &d->waiting, *j;

	while ((j = *at)) {
		if (job_is_gone(j)) {
			*at = j->next;
			worker_answer(j);
		} else {
			at = &j->next;
		}
	}
	d->waiting_last = at;
}

/* Retries the waiting call. true: it has its answer, or its peer is gone. */
static bool try_one(struct worker *d, struct job *j, bool last)
{
	j->untried = false;
	return j->status || job_is_gone(j) || run_one(d, j, last || attempts_over(&j->wait));
}

/* Retries the waiting calls in the order of their arrival; changed: all of them, else those that
 * the last batch had no time for. d->untried says whether some are left for the next batch. */
static void try_waiting(struct worker *d, bool changed, bool last)
{
	struct job *list = d->waiting, *next;
	struct answer ans = { 0 };
	struct arena a = { 0 };
	bool any = false;

	d->waiting = NULL;
	d->waiting_last = &d->waiting;
	d->untried = false;
	d->batch_began = os_boot_ms();
	if (list && !worker_open(d, &ans, &a))
		refuse_all(list, &ans);
	arena_free(&a);
	refuse_revoked(d, list);
	for (struct job *j = list; j; j = next) {
		next = j->next;
		j->next = NULL;
		j->untried |= changed || last;
		if (j->untried && (last || !any || !worker_share_is_over(d))) {
			any = true;
			if (try_one(d, j, last)) {
				worker_answer(j);
				continue;
			}
		}
		d->untried |= j->untried;
		keep_waiting(d, j);
	}
}

static bool is_awaited(const struct worker *d)
{
	return d->waiting || d->watched || mcp_sessions_await(d);
}

/* Time until the next due work; -1: nothing is due. */
static int64_t pause_of(struct worker *d, struct queue *q)
{
	int64_t now = os_boot_ms(), left = mcp_sessions_next(d), expiry = expiry_due(d), due, most;

	due = expiry > now ? expiry - now : 0;
	if (expiry < INT64_MAX && (left < 0 || due < left))
		left = due;
	for (const struct job *j = d->waiting; j; j = j->next) {
		due = attempts_left(&j->wait);
		left = left < 0 || due < left ? due : left;
	}
	if (left < 0 && !d->watched)
		return -1;
	if (left < 0 || left > ATTEMPTS_MAX_MS)
		left = ATTEMPTS_MAX_MS;
	most = !is_awaited(d) ? left : q ? queue_poll_ms(q) : QUEUE_POLL_MS;
	return left < most ? left : most;
}

/* Sleeps until a job comes or the store may have changed. true: check the store. */
static bool sleep_until(struct worker *d)
{
	struct queue *q = d->open ? d->session.client.conn.queue : NULL;
	int fd = q && is_awaited(d) ? queue_wake_fd(q) : -1;
	struct pollfd p[2] = { { .fd = d->wake, .events = POLLIN },
			       { .fd = fd, .events = POLLIN } };
	int n = poll(p, 2, (int)pause_of(d, q));
	uint64_t count;

	if (n > 0 && p[0].revents)
		(void)!read(d->wake, &count, sizeof(count));
	if (n > 0 && p[1].revents && q) {
		queue_woken(q);
		return true;
	}
	return n == 0;
}

/* Can one of the jobs have changed the queue? A read for a stream or for /metrics cannot. */
static bool has_calls(const struct job *list)
{
	while (list && (list->kind == JOB_EVENTS || list->kind == JOB_COUNT))
		list = list->next;
	return list != NULL;
}

static void *worker_main(void *worker)
{
	struct worker *d = worker;
	bool stop = false, check = false, last;
	struct job *list;

	while (!stop || d->pending) {
		list = with_pending(d, mcp_sessions_settle(take_jobs(d, &stop)));
		drop_gone(d);
		if (d->open && is_awaited(d))
			queue_wake_fd(d->session.client.conn.queue); /* before any read */
		check |= has_calls(list);
		d->expiries.stale |= check;
		last = stop || d->serve->draining;
		if (stop)
			refuse_at_end(list);
		if (list)
			run_batch(d, list, last);
		if (os_boot_ms() >= expiry_due(d))
			check |= expiry_check(d);
		if ((check || last || d->untried) && d->waiting)
			try_waiting(d, check, last);
		if (check && d->watched)
			http_server_post(d->serve->http, events_check, d);
		mcp_sessions_check(d, check);
		if (last)
			mcp_sessions_drain(d);
		if (!stop)
			check = !d->pending && !d->untried && !d->untold && sleep_until(d);
	}
	try_waiting(d, true, true);
	mcp_sessions_end(d);
	client_close(&d->session.client);
	return NULL;
}

/* --- for the loop -------------------------------------------------------------------------------- */

static void worker_wake(struct worker *d)
{
	uint64_t one = 1;

	(void)!write(d->wake, &one, sizeof(one));
}

static void wake_later(void *worker)
{
	worker_wake(worker);
}

static struct worker *worker_new(struct serve *s, struct str queue)
{
	struct worker *d = mem_alloc(sizeof(*d));

	*d = (struct worker){ .serve = s, .queue = strndup(str_p(queue), queue.n) };
	d->last = &d->first;
	d->later = http_later_new(s->http, wake_later, d);
	d->waiting_last = &d->waiting;
	d->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	pthread_mutex_init(&d->lock, NULL);
	if (d->wake < 0 || pthread_create(&d->thread, NULL, worker_main, d)) {
		if (d->wake >= 0)
			close(d->wake);
		pthread_mutex_destroy(&d->lock);
		http_later_free(d->later);
		free(d->queue);
		free(d);
		return NULL;
	}
	d->next = s->workers;
	s->workers = d;
	return d;
}

static void worker_end(struct worker *d)
{
	pthread_mutex_lock(&d->lock);
	d->stop = true;
	pthread_mutex_unlock(&d->lock);
	worker_wake(d);
	pthread_join(d->thread, NULL);
	http_later_free(d->later);
	d->later = NULL;
}

static void worker_free(void *worker)
{
	struct worker *d = worker;

	pthread_mutex_destroy(&d->lock);
	close(d->wake);
	arena_free(&d->arena);
	serve_login_close(&d->login);
	free(d->queue);
	free(d);
}

static void worker_close(struct serve *s, struct worker *d)
{
	struct worker **at = &s->workers;

	while (*at != d)
		at = &(*at)->next;
	*at = d->next;
	worker_end(d);
	http_server_post(s->http, worker_free, d); /* after everything that its thread has posted */
}

/* --- room for more queues -------------------------------------------------------------------------- */

static bool is_idle(const struct worker *d)
{
	return *d->queue && !d->jobs && !d->streams && !d->in_session;
}

/* Closes the idle queue that was not used for the longest time. false: all of them are in use. */
static bool close_idle(struct serve *s)
{
	struct worker *oldest = NULL;

	for (struct worker *d = s->workers; d; d = d->next)
		if (is_idle(d) && (!oldest || d->used_ms < oldest->used_ms))
			oldest = d;
	if (oldest)
		worker_close(s, oldest);
	return oldest;
}

/* May the caller open one more queue? The server's own queue always has its place. Some of the
 * other places are reserved for callers that have opened few queues, so that no caller can occupy
 * all places. */
static bool make_room(struct serve *s, struct str queue, const struct meter *opener)
{
	size_t n = 0, own = 0;

	for (const struct worker *d = s->workers; d; d = d->next) {
		n += *d->queue != '\0';
		own += *d->queue && d->opener == opener;
	}
	return !queue.n || n < WORKERS_MAX - WORKERS_SPARE ||
	       (n < WORKERS_MAX && own < WORKERS_SPARE) || close_idle(s);
}

struct str worker_name(const struct worker *d)
{
	return *d->queue ? str_c(d->queue) : client_queue_name(&d->serve->session->client);
}

struct worker *worker_find(struct serve *s, struct str queue, struct meter *opener)
{
	struct worker *d;

	/* the server's own queue has one worker, whether or not a call names the queue */
	if (str_eq(queue, client_queue_name(&s->session->client)))
		queue = STR("");
	for (d = s->workers; d; d = d->next)
		if (str_is(queue, d->queue))
			return d;
	d = make_room(s, queue, opener) ? worker_new(s, queue) : NULL;
	if (d)
		d->opener = opener;
	return d;
}

void worker_put(struct worker *d, struct job *j)
{
	bool was_empty;

	j->next = NULL; /* a job that comes back may still name one that was answered with it */
	j->worker = d;
	d->used_ms = os_boot_ms();
	j->began_ns = d->used_ms * 1000000;
	d->jobs++;
	pthread_mutex_lock(&d->lock);
	was_empty = !d->first;
	*d->last = j;
	d->last = &j->next;
	pthread_mutex_unlock(&d->lock);
	if (was_empty) /* otherwise the worker has been woken already, and takes all jobs at once */
		http_later_call(d->later);
}

void worker_gone(struct job *j)
{
	pthread_mutex_lock(&j->worker->lock);
	j->gone = true;
	pthread_mutex_unlock(&j->worker->lock);
	worker_wake(j->worker);
}

void worker_drop_broken(struct serve *s, struct worker *d)
{
	if (d->broken && !d->jobs && !d->streams)
		worker_close(s, d);
}

void worker_wake_all(struct serve *s)
{
	for (struct worker *d = s->workers; d; d = d->next)
		worker_wake(d);
}

void worker_end_all(struct serve *s)
{
	for (struct worker *d = s->workers; d; d = d->next)
		worker_end(d);
}

void worker_free_all(struct serve *s)
{
	while (s->workers) {
		struct worker *d = s->workers;

		s->workers = d->next;
		worker_free(d);
	}
}

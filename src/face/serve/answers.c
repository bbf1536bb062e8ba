/*
 * Answers on their way to callers. A caller that asks for long answers in many queues at once, or does not read them, must
 * not fill the memory. So its meter counts the memory of its answers while their desks make them, and the bytes of long
 * answers until the peer has taken them. Each token has a share of the memory for all answers, which is the smaller the
 * more tokens use theirs. A caller without room still gets short answers, and learns the outcome of every change: a long
 * answer that only tells what it read is refused, and that of a change is made brief.
 */
#include "face/serve/mcp_http.h"

#include <stdlib.h>

#include "core/validate.h"

#define UNSENT_MAX ANSWER_MAX     /* of long answers: a caller with more of them is behind */
#define MEMORY_ALL (1024u << 20)  /* of the answers of all tokens */
#define MEMORY_TOKEN (192u << 20) /* of one token; one of its answers may exceed it */

#define BEHIND STR("the answers of this token need too much memory now")

struct arena_pool answers_memory(struct arena_pool *whole)
{
	return (struct arena_pool){ .most = whole ? MEMORY_TOKEN : MEMORY_ALL, .whole = whole };
}

struct arena answers_arena(const struct job *j, size_t limit)
{
	return (struct arena){ .limit = limit, .pool = j->payer ? &j->payer->memory : NULL };
}

size_t answers_room(const struct job *j)
{
	const struct meter *m = j->caller.meter;

	return m && m->unsent > UNSENT_MAX ? ANSWER_SHORT : ANSWER_MAX;
}

void answers_made(struct job *j)
{
	struct meter *m = j->caller.meter;
	size_t n = j->answer.n;

	if (!m || n < ANSWER_SHORT || n <= j->unsent)
		return;
	m->unsent += n - j->unsent;
	arena_pool_add(&m->memory, n - j->unsent);
	j->unsent = n;
}

static void answers_forget(struct meter *m, size_t n)
{
	m->unsent -= n;
	arena_pool_drop(&m->memory, n);
}

void answers_drop(struct job *j)
{
	if (j->unsent)
		answers_forget(j->caller.meter, j->unsent);
	j->unsent = 0;
}

void answers_refuse(struct job *j)
{
	answers_drop(j);
	job_refuse(j, 429, API_ERROR, BEHIND,
		   STR("read its earlier answers, or close their connections, and call again"), "");
}

bool answers_body(struct job *j, struct arena *a)
{
	size_t levels, memory = json_values(buf_str(&j->body), &levels) * JSON_VALUE_MEMORY;

	if (memory > a->limit) {
		job_refuse(j, 400, USAGE, STR("the body has too many values"),
			   STR("send them in several calls"), "");
		return false;
	}
	arena_count(a, memory);
	if (a->crowded)
		answers_refuse(j);
	return !j->status;
}

/* --- in the loop --------------------------------------------------------------------------------- */

struct unsent {
	struct meter *caller;
	size_t n;
};

static void was_sent(void *unsent)
{
	struct unsent *u = unsent;

	answers_forget(u->caller, u->n);
	free(u);
}

void answers_send(struct job *j, struct http_headers extra)
{
	struct unsent *u;

	if (!j->unsent) {
		http_reply(j->exchange, j->status, j->answer.n ? j->type : NULL, extra,
			   buf_str(&j->answer));
		return;
	}
	u = mem_alloc(sizeof(*u));
	*u = (struct unsent){ j->caller.meter, j->unsent };
	j->unsent = 0; /* was_sent() gives it back */
	http_reply_own(j->exchange, j->status, j->type, extra, &j->answer, was_sent, u);
}

static void send_answer(struct serve *s, struct job *j)
{
	static const struct http_header later[] = { { { "Retry-After", 11 }, { "1", 1 } },
						    { { "Cache-Control", 13 },
						      { "no-store", 8 } } };
	bool busy = j->status == 503 || j->status == 429;
	struct http_headers extra = { later + !busy, 1 + (size_t)busy };

	counts_job(s, j);
	if (j->answer.full)
		http_refuse(j->exchange, 500, "the answer is too long: use a limit");
	else
		answers_send(j, extra);
}

void job_charge(struct job *j)
{
	if (j->parts > 1)
		access_charge(j->caller.meter, j->parts - 1);
}

void job_unpark(struct job *j)
{
	if (!j->parked)
		return;
	j->parked = false;
	j->caller.meter->waits--;
	j->worker->serve->counts.waits--;
}

void job_done(void *job)
{
	struct job *j = job;
	struct worker *d = j->worker;
	struct serve *s = d->serve;

	d->jobs--;
	job_unpark(j);
	if (j->kind == JOB_EVENTS) {
		events_done(j);
	} else if (j->kind == JOB_COUNT) {
		metrics_done(j);
	} else if (j->kind == JOB_MCP) {
		endpoint_done(s, j);
	} else {
		job_charge(j);
		if (j->status)
			send_answer(s, j);
		else
			http_drop(j->exchange);
		job_free(j);
	}
	worker_drop_broken(s, d);
}

/*
 * Packed requests (format/request.h), each behind its length in four bytes, the most significant one first; the
 * answers come back in the same form and order. The requests of all jobs of a turn are committed together. The server
 * never takes token hashes or a policy from a caller: what processes of one machine tell each other (queue/relay.c) is
 * not what it reads here.
 */
#include "face/serve/serve.h"

#include "base/os.h"
#include "format/answer.h"
#include "format/request.h"

struct batch {
	struct request *rqs;
	struct answer *answers;
	size_t n;
};

static uint32_t length_at(const char *p)
{
	const unsigned char *u = (const unsigned char *)p;

	return (uint32_t)u[0] << 24 | (uint32_t)u[1] << 16 | (uint32_t)u[2] << 8 | u[3];
}

static void add_length(struct buf *b, size_t n)
{
	const char bytes[4] = { (char)(n >> 24), (char)(n >> 16), (char)(n >> 8), (char)n };

	buf_add(b, bytes, sizeof(bytes));
}

static bool is_packed(const struct job *j)
{
	return j->kind == JOB_PACKED && !j->status;
}

/* Cuts the next request out of *rest. false: there is none, or the bytes are damaged. */
static bool cut(struct str *rest, struct str *one)
{
	uint32_t n = rest->n < 4 ? UINT32_MAX : length_at(rest->p);

	if (n > rest->n - 4 || rest->n < 4)
		return false;
	*one = str_n(rest->p + 4, n);
	*rest = str_n(rest->p + 4 + n, rest->n - 4 - n);
	return true;
}

/* Makes the request that of this caller, whatever it says about itself. */
static bool sign(struct desk *d, struct job *j, struct request *rq)
{
	struct str agent;
	const char *why;

	if (!caller_agent(d->serve, &j->caller, rq->agent, &agent, &why)) {
		job_refuse(j, 403, MISCONFIGURED, str_c(why), STR(""), "forbidden");
		return false;
	}
	rq->role = d->serve->read_only ? ROLE_READER : j->caller.role;
	GIVE(rq, agent, agent);
	if (op_flags(rq->op) & OP_TAKES)
		GIVE(rq, mode, STR("server"));
	return true;
}

static bool add_job(struct desk *d, struct job *j, struct batch *b, struct arena *a)
{
	struct str rest = buf_str(&j->body), one;
	size_t first = b->n;

	while (rest.n) {
		struct request *rq;

		b->rqs = arena_grow(a, b->rqs, b->n, sizeof(*b->rqs));
		rq = &b->rqs[b->n];
		if (!cut(&rest, &one) || request_unpack(one, rq, a) || b->n - first >= PACKED_MAX) {
			job_refuse(j, 400, USAGE, STR("the packed requests cannot be read"),
				   STR(""), "");
			break;
		}
		if (!sign(d, j, rq))
			break;
		b->n++;
	}
	if (!j->status && b->n == first)
		job_refuse(j, 400, USAGE, STR("there is no packed request"), STR(""), "");
	if (j->status)
		b->n = first;
	return !j->status;
}

static void set_answers(struct job *j, const struct answer *answers, size_t n)
{
	struct buf one = BUF_MAX(ANSWER_MAX);

	j->status = 200;
	j->type = PACKED_TYPE;
	for (size_t i = 0; i < n; i++) {
		one.n = 0;
		answer_pack(&answers[i], &one);
		j->answer.full |= one.full;
		add_length(&j->answer, one.n);
		buf_adds(&j->answer, buf_str(&one));
	}
	buf_free(&one);
}

static bool waits(struct job *j, const struct answer *answers, size_t n, bool last)
{
	int64_t now = os_boot_ms();

	if (last || n != 1 || answers[0].code != NO_TASKS || !j->parked || now >= j->wait_until)
		return false;
	j->due = answers[0].wait_ms > 0 ? now + answers[0].wait_ms : INT64_MAX;
	return true;
}

static void count(struct desk *d, const struct batch *b, int64_t took_ms)
{
	struct counts *c = &d->serve->counts;

	atomic_fetch_add(&c->commits, 1);
	atomic_fetch_add(&c->committed, b->n);
	atomic_fetch_add(&c->commit_us, (uint64_t)took_ms * 1000);
}

static void call(struct desk *d, struct batch *b, struct arena *a)
{
	struct client *c = &d->session.client;
	int64_t began = os_boot_ms();

	b->answers = arena_array(a, struct answer, b->n + 1);
	if (!b->n)
		return;
	queue_patience(c->queue, client_timeout(c, 0));
	queue_call_many(c->queue, b->rqs, b->answers, b->n, a);
	count(d, b, os_boot_ms() - began);
	for (size_t i = 0; i < b->n; i++)
		if (b->answers[i].code == API_ERROR && !b->answers[i].barred)
			d->open = false;
}

void packed_run(struct desk *d, struct job *list, bool last)
{
	struct batch b = { 0 };
	struct arena a = { 0 };
	size_t jobs = 0, k = 0, *from;

	for (struct job *j = list; j; j = j->next)
		jobs++;
	from = arena_array(&a, size_t, jobs + 1);
	for (struct job *j = list; j; j = j->next, k++) {
		from[k] = b.n;
		if (is_packed(j))
			(void)add_job(d, j, &b, &a);
	}
	from[k] = b.n;
	call(d, &b, &a);
	k = 0;
	for (struct job *j = list; j; j = j->next, k++)
		if (is_packed(j) && !waits(j, b.answers + from[k], from[k + 1] - from[k], last))
			set_answers(j, b.answers + from[k], from[k + 1] - from[k]);
	arena_free(&a);
}

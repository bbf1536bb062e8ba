/* Packs and unpacks the messages between a remote queue and a server. The readers refuse a frame
 * that cannot be unpacked, and facts, forecasts, findings, bulk heads and counters with a value
 * out of range, so the other side's bytes cannot put such a value into this process. */
#include "queue/frame.h"

#include <errno.h>

#include "base/secret.h"
#include "base/text.h"
#include "base/when.h"
#include "core/validate.h"
#include "core/role.h"
#include "format/answer_form.h"
#include "format/record_form.h"
#include "format/pack.h"
#include "format/request_form.h"
#include "format/task_form.h"

#define ONE_MAX (64u << 20)

static void put_length(char *p, size_t n)
{
	p[0] = (char)(n >> 24);
	p[1] = (char)(n >> 16);
	p[2] = (char)(n >> 8);
	p[3] = (char)n;
}

void frame_add(struct buf *b, struct str one)
{
	char bytes[4];

	put_length(bytes, one.n);
	buf_add(b, bytes, sizeof(bytes));
	buf_adds(b, one);
}

static uint32_t length_at(const char *p)
{
	const unsigned char *u = (const unsigned char *)p;

	return (uint32_t)u[0] << 24 | (uint32_t)u[1] << 16 | (uint32_t)u[2] << 8 | u[3];
}

bool frame_cut(struct str *rest, struct str *one)
{
	uint32_t n = rest->n < 4 ? UINT32_MAX : length_at(rest->p);

	if (rest->n < 4 || n > rest->n - 4)
		return false;
	*one = str_n(rest->p + 4, n);
	*rest = str_n(rest->p + 4 + n, rest->n - 4 - n);
	return true;
}

size_t frame_count(struct str rest, size_t most)
{
	struct str one;
	size_t n = 0;

	while (n < most && frame_cut(&rest, &one))
		n++;
	return n;
}

/* Adds the contents of `one` as a frame, and frees `one`. */
static void add_and_free(struct buf *b, struct buf *one)
{
	b->full |= one->full;
	frame_add(b, buf_str(one));
	buf_free(one);
}

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void add_shape(struct buf *b, const struct shape *s, const void *from)
{
	struct buf one = BUF_MAX(ONE_MAX);

	shape_pack(s, SHAPE_ALL, from, &one);
	add_and_free(b, &one);
}

#define ROW(tag, kind, type, member)                                                          \
	{                                                                                     \
		tag, SHAPE_##kind, SHAPE_ALWAYS, 0, 0, offsetof(struct type, member), 0, NULL \
	}

/* --- tokens for locks of the whole queue ------------------------------------------------------ */

struct pass {
	int64_t kind; /* enum typed */
	struct str token;
};

static const struct shape_member pass_members[] = { ROW(1, INT, pass, kind),
						    ROW(2, STR, pass, token) };
static const struct shape pass_shape = SHAPE_OF(pass_members, pass);

static void pack_passes(struct buf *b, uint8_t tag, const struct str *pass)
{
	for (int k = TYPED_WRITE; k < TYPED_END; k++) {
		struct pass one = { k, pass[k] };
		size_t at = b->n;

		if (!pass[k].n)
			continue;
		shape_pack(&pass_shape, SHAPE_ALL, &one, b);
		pack_wrap(b, tag, at);
	}
}

static int unpack_pass(struct str bytes, struct str *pass)
{
	struct pass one = { 0 };

	if (shape_unpack(&pass_shape, SHAPE_ALL, bytes, &one, NULL) || one.kind < TYPED_WRITE ||
	    one.kind >= TYPED_END)
		return -EBADMSG;
	pass[one.kind] = one.token;
	return 0;
}

/* --- requests and answers ------------------------------------------------------------------------ */

/* An extra with its packed passes. No argument of a request has these tags. */
struct packed_extra {
	struct frame_extra x;
	struct strs passes;
};

#define EXTRA_PASS 252
static const struct shape_member extra_members[] = {
	{ 251, SHAPE_STR, .offset = offsetof(struct packed_extra, x.call) },
	{ 253, SHAPE_INT, .offset = offsetof(struct packed_extra, x.under) },
	{ EXTRA_PASS, SHAPE_LIST, .offset = offsetof(struct packed_extra, passes) },
};
static const struct shape extra_shape = SHAPE_AMONG(extra_members, packed_extra, 251);

void frame_request(struct buf *b, const struct request *rq, const struct frame_extra *x)
{
	struct buf one = BUF_MAX(ONE_MAX);

	request_pack(rq, &one);
	shape_pack(&extra_shape, SHAPE_ALL, &(struct packed_extra){ .x = *x }, &one);
	pack_passes(&one, EXTRA_PASS, x->pass);
	add_and_free(b, &one);
}

int frame_request_open(struct str one, struct request *rq, struct frame_extra *x, struct arena *a)
{
	struct packed_extra p = { 0 };

	if (request_unpack(one, rq, a) || shape_unpack(&extra_shape, SHAPE_ALL, one, &p, a) ||
	    p.x.under < 0)
		return -EBADMSG;
	for (size_t i = 0; i < p.passes.n; i++)
		if (unpack_pass(p.passes.v[i], p.x.pass))
			return -EBADMSG;
	*x = p.x;
	return 0;
}

void frame_answer(struct buf *b, const struct answer *ans)
{
	size_t at = b->n;

	buf_add(b, "\0\0\0\0", 4);
	answer_pack(ans, b); /* packs in place: a copy of a long answer is costly */
	if (!b->full)
		put_length(b->p + at, b->n - at - 4);
}

/* --- facts, findings, heads ----------------------------------------------------------------------- */

static bool counts_good(const int64_t *n, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (n[i] < 0 || n[i] > EXACT_MAX)
			return false;
	return true;
}

static bool time_good(int64_t ms)
{
	return ms >= 0 && ms <= WHEN_MAX;
}

static bool said_good(struct str s)
{
	return s.n <= TEXT_MAX && text_valid(s);
}

static const struct shape_member facts_members[] = {
	ROW(1, INT, frame_facts, now),
	ROW(2, INT, frame_facts, locks_only),
	ROW(3, INT, frame_facts, role),
	ROW(4, STR, frame_facts, version),
	ROW(5, STR, frame_facts, identity),
	ROW(6, STR, frame_facts, token),
	ROW(7, STR, frame_facts, agents),
	ROW(8, STR, frame_facts, queue),
	{ 17, SHAPE_IN, .offset = offsetof(struct frame_facts, policy), .of = &policy_shape },
};
static const struct shape facts_shape = SHAPE_OF(facts_members, frame_facts);

void frame_facts(struct buf *b, const struct frame_facts *f)
{
	add_shape(b, &facts_shape, f);
}

static bool facts_good(const struct frame_facts *f)
{
	return time_good(f->now) && f->role >= ROLE_NONE && f->role <= ROLE_ADMIN &&
	       word_valid(f->version) && (!f->identity.n || token_valid(f->identity)) &&
	       word_valid(f->token) && word_valid(f->queue) && said_good(f->agents) &&
	       policy_sane(&f->policy);
}

int frame_facts_open(struct str one, struct frame_facts *f)
{
	*f = (struct frame_facts){ 0 };
	if (shape_unpack(&facts_shape, SHAPE_ALL, one, f, NULL) || !facts_good(f)) {
		*f = (struct frame_facts){ 0 };
		return -EBADMSG;
	}
	f->policy.locks_only = f->locks_only;
	return 0;
}

static const struct shape_member forecast_members[] = {
	ROW(1, INT, forecast, coming),
	ROW(2, INT, forecast, stuck),
	ROW(3, STR, forecast, stuck_id),
	ROW(4, INT, forecast, wait_ms),
};
static const struct shape forecast_shape = SHAPE_OF(forecast_members, forecast);

void frame_forecast(struct buf *b, const struct forecast *p)
{
	add_shape(b, &forecast_shape, p);
}

int frame_forecast_open(struct str one, struct forecast *p)
{
	*p = (struct forecast){ 0 };
	if (shape_unpack(&forecast_shape, SHAPE_ALL, one, p, NULL) ||
	    !counts_good((int64_t[]){ p->coming, p->stuck }, 2) || !time_good(p->wait_ms) ||
	    (p->stuck_id.n && id_fault(p->stuck_id)))
		return -EBADMSG;
	return 0;
}

static const struct shape_member finding_members[] = {
	ROW(1, INT, frame_finding, level),
	ROW(2, STR, frame_finding, what),
	ROW(3, STR, frame_finding, text),
	ROW(4, STR, frame_finding, fix),
};
static const struct shape finding_shape = SHAPE_OF(finding_members, frame_finding);

void frame_finding(struct buf *b, const struct frame_finding *f)
{
	add_shape(b, &finding_shape, f);
}

int frame_finding_open(struct str one, struct frame_finding *f)
{
	*f = (struct frame_finding){ 0 };
	if (shape_unpack(&finding_shape, SHAPE_ALL, one, f, NULL) || f->level < CHECK_OK ||
	    f->level > CHECK_BAD || !word_valid(f->what) || !said_good(f->text) ||
	    !said_good(f->fix))
		return -EBADMSG;
	return 0;
}

#define BULK_PASS 40
static const struct shape_member bulk_members[] = {
	ROW(1, INT, frame_bulk, n),         ROW(2, INT, frame_bulk, lines),
	ROW(3, INT, frame_bulk, made_at),   ROW(4, INT, frame_bulk, restore),
	ROW(5, INT, frame_bulk, force),     ROW(6, INT, frame_bulk, clash),
	ROW(7, INT, frame_bulk, check),     ROW(8, INT, frame_bulk, statuses),
	ROW(9, STR, frame_bulk, agent),     ROW(10, STR, frame_bulk, run),
	ROW(11, INT, frame_bulk, created),  ROW(12, INT, frame_bulk, updated),
	ROW(13, INT, frame_bulk, skipped),  ROW(14, INT, frame_bulk, comments),
	ROW(15, INT, frame_bulk, left_out), ROW(16, INT, frame_bulk, tasks),
};
static const struct shape bulk_shape = SHAPE_OF(bulk_members, frame_bulk);

void frame_bulk(struct buf *b, const struct frame_bulk *h)
{
	struct buf one = BUF_MAX(ONE_MAX);

	shape_pack(&bulk_shape, SHAPE_ALL, h, &one);
	pack_passes(&one, BULK_PASS, h->pass);
	add_and_free(b, &one);
}

static bool bulk_good(const struct frame_bulk *h)
{
	const int64_t counts[] = { h->n,       h->lines,    h->created,  h->updated,
				   h->skipped, h->comments, h->left_out, h->tasks };

	return counts_good(counts, COUNT(counts)) && h->made_at >= 0 && h->clash >= CLASH_REFUSE &&
	       h->clash <= CLASH_MERGE;
}

int frame_bulk_open(struct str one, struct frame_bulk *h)
{
	struct unpack u = { one };
	struct str value;
	uint8_t tag;
	int r;

	*h = (struct frame_bulk){ 0 };
	while ((r = unpack_next(&u, &tag, &value)) > 0)
		if (tag == BULK_PASS && unpack_pass(value, h->pass))
			return -EBADMSG;
	if (r < 0 || shape_unpack(&bulk_shape, SHAPE_ALL, one, h, NULL) || !bulk_good(h))
		return -EBADMSG;
	return 0;
}

/* --- tasks with their comments ------------------------------------------------------------------- */

static const struct shape_member parcel_members[] = {
	{ 1, SHAPE_IN, .offset = offsetof(struct parcel, task), .of = &task_shape },
	{ 2, SHAPE_STR, SHAPE_ALWAYS, .offset = offsetof(struct parcel, where) },
	{ 3, SHAPE_ARRAY, .offset = offsetof(struct parcel, comments),
	  .count = offsetof(struct parcel, n_comments), .of = &event_shape },
};
const struct shape parcel_shape = SHAPE_OF(parcel_members, parcel);

void frame_parcel(struct buf *b, const struct parcel *p)
{
	struct buf one = BUF_MAX(ONE_MAX);

	shape_pack(&parcel_shape, SHAPE_ALL, p, &one);
	add_and_free(b, &one);
}

int frame_parcel_open(struct str one, struct parcel *p, struct arena *a)
{
	*p = (struct parcel){ 0 };
	if (shape_unpack(&parcel_shape, SHAPE_ALL, one, p, a) || !p->task.id.n)
		return -EBADMSG;
	return 0;
}

/* --- records and log entries ------------------------------------------------------------------ */

static const struct shape_member item_members[] = {
	ROW(1, BOOL, item, line),
	ROW(2, STR, item, rec.key),
	ROW(3, STR, item, rec.hot),
	ROW(4, STR, item, rec.body),
	ROW(5, ENUM, item, rec.ix.lane),
	ROW(6, INT, item, rec.ix.eligible_at),
	ROW(7, STR, item, entry.cursor),
	ROW(8, INT, item, entry.at),
	ROW(9, STR, item, entry.key),
	ROW(10, STR, item, entry.data),
	{ 11, SHAPE_ENUM, SHAPE_ALWAYS, .end = STATUS_END,
	  .offset = offsetof(struct item, rec.ix.status) },
};
static const struct shape item_shape = SHAPE_OF(item_members, item);

void frame_item(struct buf *b, const struct item *it)
{
	add_shape(b, &item_shape, it);
}

int frame_item_open(struct str one, struct item *it)
{
	*it = (struct item){ 0 };
	if (shape_unpack(&item_shape, SHAPE_ALL, one, it, NULL))
		return -EBADMSG;
	return it->line || it->rec.key.n ? 0 : -EBADMSG;
}

/* --- counters -------------------------------------------------------------------------------------- */

/* Calls `fn` for every counter. The frame has no names, so the order must never change. */
static int each_number(struct health *h, int (*fn)(void *ctx, int64_t *n), void *ctx)
{
	int r = 0;

	for (int i = 0; !r && i <= HEALTH_OPS; i++) {
		struct health_op *o = i < HEALTH_OPS ? &h->op[i] : &h->all;
		int64_t *const n[] = { &o->done, &o->failed,  &o->wait_us,    &o->wait_max_us,
				       &o->held, &o->hold_us, &o->hold_max_us };

		for (size_t k = 0; !r && k < COUNT(n); k++)
			r = fn(ctx, n[k]);
		for (int k = 0; !r && k < HEALTH_RANGES; k++) {
			int64_t wide = o->waits[k];

			r = fn(ctx, &wide);
			o->waits[k] = (uint32_t)wide;
		}
	}
	for (size_t i = 0; !r && i < COUNT(h->last_failed); i++)
		r = fn(ctx, &h->last_failed[i]);
	int64_t *const last[] = { &h->refused, &h->last_refused.at, &h->last_refused.op,
				  &h->commits, &h->changes,         &h->handed };

	for (size_t i = 0; !r && i < COUNT(last); i++)
		r = fn(ctx, last[i]);
	return r;
}

enum { H_NUMBER = 1 };

struct refusal_texts {
	struct str task, holder, agent;
};

static const struct shape_member refusal_members[] = {
	ROW(2, STR, refusal_texts, task),
	ROW(3, STR, refusal_texts, holder),
	ROW(4, STR, refusal_texts, agent),
};
static const struct shape refusal_shape = SHAPE_OF(refusal_members, refusal_texts);

static int pack_number(void *b, int64_t *n)
{
	pack_int(b, H_NUMBER, *n);
	return 0;
}

void frame_health(struct buf *b, const struct health *h)
{
	struct buf one = BUF_MAX(ONE_MAX);
	struct health copy = *h;
	struct refusal_texts last = { str_c(copy.last_refused.task),
				      str_c(copy.last_refused.holder),
				      str_c(copy.last_refused.agent) };

	shape_pack(&refusal_shape, SHAPE_ALL, &last, &one);
	(void)each_number(&copy, pack_number, &one);
	add_and_free(b, &one);
}

static int unpack_number(void *rest, int64_t *n)
{
	struct str value;
	uint8_t tag;

	do {
		if (unpack_next(rest, &tag, &value) <= 0)
			return -EBADMSG;
	} while (tag != H_NUMBER);
	return unpack_int(value, n) || !counts_good(n, 1) ? -EBADMSG : 0;
}

static void put_text(char *to, size_t room, struct str text)
{
	size_t n = text.n < room ? text.n : room - 1;

	memcpy(to, str_p(text), n);
	to[n] = '\0';
}

int frame_health_open(struct str one, struct health *h)
{
	struct health_refusal *last = &h->last_refused;
	struct refusal_texts texts = { 0 };
	struct unpack u = { one };

	*h = (struct health){ 0 };
	if (shape_unpack(&refusal_shape, SHAPE_ALL, one, &texts, NULL) ||
	    each_number(h, unpack_number, &u) || last->at > WHEN_MAX || last->op >= HEALTH_OPS ||
	    !word_valid(texts.task) || !word_valid(texts.holder) || !word_valid(texts.agent))
		return -EBADMSG;
	put_text(last->task, sizeof(last->task), texts.task);
	put_text(last->holder, sizeof(last->holder), texts.holder);
	put_text(last->agent, sizeof(last->agent), texts.agent);
	return 0;
}

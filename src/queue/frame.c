#include "queue/frame.h"

#include <errno.h>

#include "base/secret.h"
#include "base/text.h"
#include "base/when.h"
#include "core/check.h"
#include "core/role.h"
#include "format/answer.h"
#include "format/event.h"
#include "format/pack.h"
#include "format/request.h"
#include "format/task.h"

#define ONE_MAX (64u << 20)
#define TAG_CALL 251  /* id of a change */
#define TAG_PASS 252  /* kind and token of a lock of the whole queue */
#define TAG_UNDER 253 /* these are unknown tags to request_unpack(), which skips them */

void frame_add(struct buf *b, struct str one)
{
	const char bytes[4] = { (char)(one.n >> 24), (char)(one.n >> 16), (char)(one.n >> 8),
				(char)one.n };

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

/* Adds what `one` has collected as a frame, and frees it. */
static void add_and_free(struct buf *b, struct buf *one)
{
	b->full |= one->full;
	frame_add(b, buf_str(one));
	buf_free(one);
}

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void add_slots(struct buf *b, const struct pack_slot *slots, size_t n)
{
	struct buf one = BUF_MAX(ONE_MAX);

	pack_slots(&one, slots, n);
	add_and_free(b, &one);
}

/* --- tokens of locks of the whole queue ------------------------------------------------------------ */

static void pack_passes(struct buf *b, uint8_t tag, const struct str *pass)
{
	for (int k = TYPED_WRITE; k < TYPED_END; k++) {
		struct buf one = BUF_MAX(4096);

		if (!pass[k].n)
			continue;
		pack_int(&one, 1, k);
		pack_str(&one, 2, pass[k]);
		pack_str(b, tag, buf_str(&one));
		buf_free(&one);
	}
}

static int unpack_pass(struct str bytes, struct str *pass)
{
	int64_t kind = 0;
	struct str token = STR("");
	const struct pack_slot slots[] = { { NULL, &kind }, { &token, NULL } };

	if (unpack_slots(bytes, slots, COUNT(slots)) || kind < TYPED_WRITE || kind >= TYPED_END)
		return -EBADMSG;
	pass[kind] = token;
	return 0;
}

static int unpack_extra(struct str bytes, struct frame_extra *x)
{
	struct unpack u = { bytes };
	struct str value;
	uint8_t tag;
	int r;

	while ((r = unpack_next(&u, &tag, &value)) > 0) {
		if (tag == TAG_PASS)
			r = unpack_pass(value, x->pass);
		else if (tag == TAG_CALL)
			x->call = value;
		else if (tag == TAG_UNDER)
			r = unpack_int(value, &x->under);
		if (r < 0)
			break;
	}
	return r;
}

/* --- requests and answers ------------------------------------------------------------------------ */

void frame_request(struct buf *b, const struct request *rq, const struct frame_extra *x)
{
	struct buf one = BUF_MAX(ONE_MAX);

	request_pack(rq, &one);
	if (x->call.n)
		pack_str(&one, TAG_CALL, x->call);
	if (x->under)
		pack_int(&one, TAG_UNDER, x->under);
	pack_passes(&one, TAG_PASS, x->pass);
	add_and_free(b, &one);
}

int frame_request_open(struct str one, struct request *rq, struct frame_extra *x, struct arena *a)
{
	*x = (struct frame_extra){ 0 };
	if (request_unpack(one, rq, a) || unpack_extra(one, x) < 0 || x->under < 0)
		return -EBADMSG;
	return 0;
}

void frame_answer(struct buf *b, const struct answer *ans)
{
	struct buf one = BUF_MAX(ONE_MAX);

	answer_pack(ans, &one);
	add_and_free(b, &one);
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

#define FACTS(f, flags)                                                                           \
	{                                                                                         \
		{ NULL, &(f)->now }, { NULL, &(f)->locks_only }, { NULL, &(f)->role },            \
			{ &(f)->version, NULL }, { &(f)->identity, NULL }, { &(f)->token, NULL }, \
			{ &(f)->agents, NULL }, { &(f)->queue, NULL },                            \
			{ NULL, &(f)->policy.lease }, { NULL, &(f)->policy.lease_min },           \
			{ NULL, &(f)->policy.lease_max }, { NULL, &(f)->policy.lock_ttl },        \
			{ NULL, &(f)->policy.max_abandoned }, { NULL, &(f)->policy.handback },    \
			{ NULL, &(f)->policy.warn_after }, { NULL, flags },                       \
	}
enum { KEEP_ABANDONED = 1, IGNORE_DEPENDS = 2, CLAIM_CREATES = 4, UNTYPED = 8, OFFER_PARENTS = 16 };

void frame_facts(struct buf *b, const struct frame_facts *f)
{
	struct frame_facts copy = *f;
	const struct policy *p = &f->policy;
	int64_t flags = (p->keep_abandoned ? KEEP_ABANDONED : 0) |
			(p->ignore_depends ? IGNORE_DEPENDS : 0) |
			(p->claim_creates ? CLAIM_CREATES : 0) | (p->untyped ? UNTYPED : 0) |
			(p->offer_parents ? OFFER_PARENTS : 0);
	const struct pack_slot slots[] = FACTS(&copy, &flags);

	add_slots(b, slots, COUNT(slots));
}

static bool policy_good(const struct policy *p)
{
	const int64_t numbers[] = { p->lease,    p->lease_min,  p->lease_max, p->max_abandoned,
				    p->lock_ttl, p->warn_after, p->handback };

	return counts_good(numbers, COUNT(numbers));
}

static bool facts_good(const struct frame_facts *f)
{
	return time_good(f->now) && f->role >= ROLE_NONE && f->role <= ROLE_ADMIN &&
	       word_valid(f->version) && (!f->identity.n || token_valid(f->identity)) &&
	       word_valid(f->token) && word_valid(f->queue) && said_good(f->agents) &&
	       policy_good(&f->policy);
}

int frame_facts_open(struct str one, struct frame_facts *f)
{
	struct policy *p = &f->policy;
	int64_t flags = 0;
	const struct pack_slot slots[] = FACTS(f, &flags);

	*f = (struct frame_facts){ 0 };
	if (unpack_slots(one, slots, COUNT(slots)) || !facts_good(f)) {
		*f = (struct frame_facts){ 0 };
		return -EBADMSG;
	}
	p->keep_abandoned = flags & KEEP_ABANDONED;
	p->ignore_depends = flags & IGNORE_DEPENDS;
	p->claim_creates = flags & CLAIM_CREATES;
	p->untyped = flags & UNTYPED;
	p->offer_parents = flags & OFFER_PARENTS;
	p->locks_only = f->locks_only;
	return 0;
}

#define PROSPECTS(p)                                                                     \
	{                                                                                \
		{ NULL, &(p)->coming }, { NULL, &(p)->stuck }, { &(p)->stuck_id, NULL }, \
			{ NULL, &(p)->wait_ms },                                         \
	}

void frame_prospects(struct buf *b, const struct prospects *p)
{
	struct prospects copy = *p;
	const struct pack_slot slots[] = PROSPECTS(&copy);

	add_slots(b, slots, COUNT(slots));
}

int frame_prospects_open(struct str one, struct prospects *p)
{
	const struct pack_slot slots[] = PROSPECTS(p);

	*p = (struct prospects){ 0 };
	if (unpack_slots(one, slots, COUNT(slots)) ||
	    !counts_good((int64_t[]){ p->coming, p->stuck }, 2) || !time_good(p->wait_ms) ||
	    (p->stuck_id.n && id_fault(p->stuck_id)))
		return -EBADMSG;
	return 0;
}

#define FINDING(f)                                                                 \
	{                                                                          \
		{ NULL, &(f)->level }, { &(f)->what, NULL }, { &(f)->text, NULL }, \
			{ &(f)->fix, NULL },                                       \
	}

void frame_finding(struct buf *b, const struct frame_finding *f)
{
	struct frame_finding copy = *f;
	const struct pack_slot slots[] = FINDING(&copy);

	add_slots(b, slots, COUNT(slots));
}

int frame_finding_open(struct str one, struct frame_finding *f)
{
	const struct pack_slot slots[] = FINDING(f);

	*f = (struct frame_finding){ 0 };
	if (unpack_slots(one, slots, COUNT(slots)) || f->level < CHECK_OK || f->level > CHECK_BAD ||
	    !word_valid(f->what) || !said_good(f->text) || !said_good(f->fix))
		return -EBADMSG;
	return 0;
}

#define BULK_PASS 40
#define BULK(h)                                                                                 \
	{                                                                                       \
		{ NULL, &(h)->n }, { NULL, &(h)->lines }, { NULL, &(h)->made_at },              \
			{ NULL, &(h)->restore }, { NULL, &(h)->force }, { NULL, &(h)->clash },  \
			{ NULL, &(h)->check }, { NULL, &(h)->statuses }, { &(h)->agent, NULL }, \
			{ &(h)->run, NULL }, { NULL, &(h)->created }, { NULL, &(h)->updated },  \
			{ NULL, &(h)->skipped }, { NULL, &(h)->comments },                      \
			{ NULL, &(h)->left_out }, { NULL, &(h)->tasks },                        \
	}

void frame_bulk(struct buf *b, const struct frame_bulk *h)
{
	struct frame_bulk copy = *h;
	const struct pack_slot slots[] = BULK(&copy);
	struct buf one = BUF_MAX(ONE_MAX);

	pack_slots(&one, slots, COUNT(slots));
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
	const struct pack_slot slots[] = BULK(h);
	struct unpack u = { one };
	struct str value;
	uint8_t tag;
	int r;

	*h = (struct frame_bulk){ 0 };
	while ((r = unpack_next(&u, &tag, &value)) > 0)
		if (tag == BULK_PASS && unpack_pass(value, h->pass))
			return -EBADMSG;
	if (r < 0 || unpack_slots(one, slots, COUNT(slots)) || !bulk_good(h))
		return -EBADMSG;
	return 0;
}

/* --- tasks with their comments ------------------------------------------------------------------- */

enum { P_TASK = 1, P_WHERE, P_COMMENT };

void frame_parcel(struct buf *b, const struct parcel *p)
{
	struct buf one = BUF_MAX(ONE_MAX), part = BUF_MAX(ONE_MAX);

	task_pack(&p->task, HOT | BODY, &part);
	pack_str(&one, P_TASK, buf_str(&part));
	pack_str(&one, P_WHERE, p->where);
	for (size_t i = 0; i < p->n_comments; i++) {
		part.n = 0;
		event_pack_placed(&p->comments[i], &part);
		pack_str(&one, P_COMMENT, buf_str(&part));
	}
	one.full |= part.full;
	buf_free(&part);
	add_and_free(b, &one);
}

static int open_comment(struct str bytes, struct parcel *p, struct arena *a)
{
	p->comments = arena_grow(a, p->comments, p->n_comments, sizeof(*p->comments));
	return event_unpack_placed(bytes, &p->comments[p->n_comments++]);
}

int frame_parcel_open(struct str one, struct parcel *p, struct arena *a)
{
	struct unpack u = { one };
	struct str value;
	uint8_t tag;
	int r;

	*p = (struct parcel){ 0 };
	while ((r = unpack_next(&u, &tag, &value)) > 0) {
		if (tag == P_TASK)
			r = task_unpack(value, &p->task, a);
		else if (tag == P_WHERE)
			p->where = value;
		else if (tag == P_COMMENT)
			r = open_comment(value, p, a);
		if (r < 0)
			return -EBADMSG;
	}
	return r < 0 || !p->task.id.n ? -EBADMSG : 0;
}

/* --- records and entries of the log -------------------------------------------------------------- */

#define ITEM(it, line, lane, status)                                                        \
	{                                                                                   \
		{ NULL, &(line) }, { &(it)->rec.key, NULL }, { &(it)->rec.hot, NULL },      \
			{ &(it)->rec.body, NULL }, { NULL, &(lane) },                       \
			{ NULL, &(it)->rec.ix.eligible_at }, { &(it)->entry.cursor, NULL }, \
			{ NULL, &(it)->entry.at }, { &(it)->entry.key, NULL },              \
			{ &(it)->entry.data, NULL }, { NULL, &(status) },                   \
	}

void frame_item(struct buf *b, const struct item *it)
{
	struct item copy = *it;
	int64_t line = it->line, lane = it->rec.ix.lane, status = it->rec.ix.status;
	const struct pack_slot slots[] = ITEM(&copy, line, lane, status);

	add_slots(b, slots, COUNT(slots));
}

int frame_item_open(struct str one, struct item *it)
{
	int64_t line = 0, lane = 0, status = 0;
	const struct pack_slot slots[] = ITEM(it, line, lane, status);

	*it = (struct item){ 0 };
	if (unpack_slots(one, slots, COUNT(slots)) || lane < INT32_MIN || lane > INT32_MAX ||
	    status < 0 || status >= STATUS_END)
		return -EBADMSG;
	it->line = line;
	it->rec.ix.lane = (int)lane;
	it->rec.ix.status = (int)status;
	return it->line || it->rec.key.n ? 0 : -EBADMSG;
}

/* --- counters -------------------------------------------------------------------------------------- */

/* Calls `fn` for every number of the counters, always in the same order. */
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

enum { H_NUMBER = 1, H_TASK, H_HOLDER, H_AGENT };

static int pack_number(void *b, int64_t *n)
{
	pack_int(b, H_NUMBER, *n);
	return 0;
}

void frame_health(struct buf *b, const struct health *h)
{
	struct buf one = BUF_MAX(ONE_MAX);
	struct health copy = *h;

	pack_str(&one, H_TASK, str_c(copy.last_refused.task));
	pack_str(&one, H_HOLDER, str_c(copy.last_refused.holder));
	pack_str(&one, H_AGENT, str_c(copy.last_refused.agent));
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
	struct str none = STR(""), task = none, holder = none, agent = none;
	const struct pack_slot slots[] = {
		{ &none, NULL }, { &task, NULL }, { &holder, NULL }, { &agent, NULL }
	};
	struct unpack u = { one };

	*h = (struct health){ 0 };
	if (unpack_slots(one, slots, COUNT(slots)) || each_number(h, unpack_number, &u) ||
	    last->at > WHEN_MAX || last->op >= HEALTH_OPS || !word_valid(task) ||
	    !word_valid(holder) || !word_valid(agent))
		return -EBADMSG;
	put_text(last->task, sizeof(last->task), task);
	put_text(last->holder, sizeof(last->holder), holder);
	put_text(last->agent, sizeof(last->agent), agent);
	return 0;
}

/* Calls of a remote queue. Each change except a heartbeat has a token or a request id before it
 * is first sent, so the server recognises a repetition and does not make the change twice. */
#include <poll.h>

#include "base/os.h"
#include "base/secret.h"
#include "base/when.h"
#include "core/validate.h"
#include "format/answer_form.h"
#include "remote/remote.h"

#define CALL_BYTES (768u << 10) /* below the size limit of a request body */
#define POLL_MS 100             /* between two attempts of a call that a queue lock refuses */
#define POLL_MAX_MS 1000
#define WATCHED_MS 5000 /* between two attempts while a stream reports changes */

struct calls {
	struct far_queue *r;
	struct request *rqs; /* with their request ids */
	struct frame_extra *extras;
	struct answer *answers;
	size_t *left; /* indexes of the calls without a final answer */
	size_t n_left;
	bool *resent; /* by index: an earlier attempt may have made the call */
	struct arena *arena;
};

/* Is the holder completing its own task? The task records this with the token until the next
 * acquisition (is_repeat() in core), so the call needs no request id. Storing an answer would be
 * the most expensive part of the call. Other calls that end a lock need a request id, because a
 * released task is soon acquired again. */
static bool completes_own(const struct request *rq)
{
	return rq->op == OP_DONE && rq->token.n && !rq->force && !rq->take;
}

/* A token identifies a repeated acquisition or `done`. A heartbeat may safely be made twice. */
static bool needs_id(const struct request *rq)
{
	unsigned flags = op_flags(rq->op);

	if (flags & OP_READS || rq->op == OP_HEARTBEAT || HAS(rq, request_id))
		return false;
	if (completes_own(rq))
		return false;
	if (rq->op == OP_STATUS)
		return rq->status != IN_PROGRESS;
	return rq->op == OP_DONE || !(flags & OP_TAKES);
}

static struct calls remote_call_prepare(struct far_queue *r, const struct request *rqs,
					struct answer *answers, size_t n, struct arena *a)
{
	struct calls c = { .r = r,
			   .rqs = arena_array(a, struct request, n),
			   .extras = arena_array(a, struct frame_extra, n),
			   .answers = answers,
			   .left = arena_array(a, size_t, n),
			   .n_left = n,
			   .resent = arena_array(a, bool, n),
			   .arena = a };

	for (size_t i = 0; i < n; i++) {
		c.rqs[i] = rqs[i];
		c.extras[i] = (struct frame_extra){ 0 };
		c.left[i] = i;
		answers[i] = (struct answer){ 0 };
		if (op_flags(rqs[i].op) & OP_READS)
			continue;
		c.extras[i].call = token_make(a);
		if (needs_id(&rqs[i]))
			GIVE(&c.rqs[i], request_id, c.extras[i].call);
	}
	return c;
}

/* Hides that the server recognised the call, if the caller made it once and only this module or
 * a proxy repeated it. */
static void hide_repeated(const struct calls *c, struct answer *ans)
{
	if (ans->repeated == REPEATED_MAYBE || (c->r->resent && ans->repeated))
		ans->repeated = c->r->config->tells_resent ? REPEATED_MAYBE : 0;
}

/* Checks the answer here, because no code above this module does. */
static void check_answer(struct calls *c, size_t i)
{
	bool changes = !(op_flags(c->rqs[i].op) & OP_READS);
	const char *why;

	hide_repeated(c, &c->answers[i]);
	why = reply_fault(&c->rqs[i], &c->answers[i], c->arena);
	if (why)
		(void)remote_garbled(c->r, changes, why, &c->answers[i], c->arena);
	else
		remote_quote(c->r, &c->answers[i], c->arena);
}

static size_t first_refused(const struct answer *answers, size_t n)
{
	size_t i = 0;

	while (i < n && answers[i].code == SUCCESS)
		i++;
	return i;
}

/* If one call of a commit is refused, none is made, so the other answers must be empty. */
static void check_commit(struct calls *c, size_t n)
{
	size_t bad = first_refused(c->answers, n);

	for (size_t i = 0; i < n; i++)
		if (bad == n || i == bad)
			check_answer(c, i);
		else
			c->answers[i] = (struct answer){ 0 };
}

static bool remote_call_waits(const struct calls *c)
{
	enum op op = c->rqs[0].op;

	return c->n_left == 1 && (op == OP_TAKE || op == OP_NEXT) && c->r->park_ms;
}

/* The token identifies a repeated acquisition until its lease expires. After that, a repetition
 * would acquire a second lock. So it is sent again only during the first half of its lease,
 * which leaves the server time to answer. */
static int64_t again_ms(const struct calls *c, size_t i)
{
	const struct request *rq = &c->rqs[i];

	if (!(op_flags(rq->op) & OP_TAKES) || HAS(rq, request_id) || completes_own(rq) ||
	    !HAS(rq, ttl) || rq->ttl <= 0)
		return 0;
	return (rq->ttl + 1) / 2;
}

/* Sends the calls left[from..to) in one request. all: in one commit. */
static void remote_call_send(struct calls *c, struct str body, size_t from, size_t to, bool all)
{
	struct question k = {
		.path = "/v1/call", .query = all ? "all=1" : NULL, .body = body, .again = true
	};
	struct str rest = STR(""), one;
	struct answer fail = { 0 };
	enum result code;

	for (size_t i = from; i < to; i++) {
		int64_t ms = again_ms(c, c->left[i]);

		k.changes |= !(op_flags(c->rqs[c->left[i]].op) & OP_READS);
		if (ms && (!k.again_ms || ms < k.again_ms))
			k.again_ms = ms;
	}
	if (remote_call_waits(c)) {
		k.wait_ms = c->r->park_ms;
		k.query = arena_printf(c->arena, "wait=%lld", (long long)k.wait_ms / 1000).p;
	}
	code = remote_ask(c->r, &k, &rest, &fail, c->arena);
	for (size_t i = from; i < to; i++) {
		struct answer *ans = &c->answers[c->left[i]];

		c->resent[c->left[i]] |= c->r->resent;
		if (code == SUCCESS &&
		    (!frame_cut(&rest, &one) || answer_unpack(one, ans, c->arena)))
			code = remote_garbled(c->r, k.changes, NULL, &fail, c->arena);
		if (code != SUCCESS)
			*ans = fail;
		else if (!all)
			check_answer(c, c->left[i]);
	}
	if (all && code == SUCCESS)
		check_commit(c, to);
}

static void send_left(struct calls *c)
{
	struct buf body = BUF_MAX(BODY_MAX);
	size_t from = 0;

	for (size_t i = 0; i < c->n_left; i++) {
		frame_request(&body, &c->rqs[c->left[i]], &c->extras[c->left[i]]);
		if (body.n < CALL_BYTES && i + 1 - from < FRAMES_MAX && i + 1 < c->n_left)
			continue;
		remote_call_send(c, buf_str(&body), from, i + 1, false);
		from = i + 1;
		body.n = 0;
	}
	buf_free(&body);
}

/* --- locks of the whole queue ---------------------------------------------------------------------- */

static void keep_barred(struct calls *c)
{
	size_t kept = 0;

	for (size_t i = 0; i < c->n_left; i++)
		if (c->answers[c->left[i]].barred)
			c->left[kept++] = c->left[i];
	c->n_left = kept;
}

/* Does the caller hold the lock that refused the call? If so, adds its token, once. */
static bool has_pass(struct calls *c, size_t i)
{
	const struct queue_config *config = c->r->config;
	int64_t kind = c->answers[i].barred;
	struct str *pass;

	if (!config->pass || kind <= TYPED_NONE || kind >= TYPED_END)
		return false;
	pass = &c->extras[i].pass[kind];
	if (pass->n)
		return false;
	*pass = config->pass(config->pass_ctx, (enum typed)kind, c->arena);
	return pass->n;
}

static bool any_pass(struct calls *c)
{
	bool any = false;

	for (size_t i = 0; i < c->n_left; i++)
		any |= has_pass(c, c->left[i]);
	return any;
}

static void tell_waited(struct calls *c)
{
	for (size_t i = 0; i < c->n_left; i++) {
		struct answer *ans = &c->answers[c->left[i]];

		ans->message = arena_printf(
			c->arena, "%.*s; waited %s", STRF(ans->message),
			arena_cstr(c->arena, duration_text(c->arena, c->r->timeout_ms)));
	}
}

/* Waits until the lock may be free. false: the timeout has passed. */
static bool wait_free(const struct calls *c, struct backoff *pause)
{
	int64_t now = os_boot_ms(), ms = backoff_next(pause, now), left = pause->deadline - now;
	int64_t held = c->answers[c->left[0]].wait_ms, most = ms;

	if (ms < 0 || left <= 0)
		return false;
	if (left >= WATCHED_MS &&
	    remote_wake_fd(c->r) >= 0) /* the stream reports the release of the lock */
		most = WATCHED_MS;
	if (held > 0 && held < most)
		most = held;
	remote_watch_sleep(c->r, most);
	now += ms < most ? ms : most; /* the holder may make many changes: do not call after each */
	if (os_boot_ms() < now)
		poll(NULL, 0, (int)(now - os_boot_ms()));
	return true;
}

/* The server refuses a retry if the task was acquired again before the retry arrived, or if a lock of the whole queue bars it.
 * The first attempt may have been made nevertheless, so the answer says that the outcome is unknown. */
static void tell_unknown(const struct calls *c, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct answer *ans = &c->answers[i];
		int64_t now = ans->now;

		if (!c->resent[i] || ans->code == SUCCESS || ans->code == USAGE ||
		    ans->applied == '?' || HAS(&c->rqs[i], request_id) ||
		    !completes_own(&c->rqs[i]))
			continue;
		*ans = (struct answer){ .now = now };
		answer_fail(ans, API_ERROR,
			    STR("the answer to this call was lost, and its retry was refused"),
			    STR("the change may have been made: check before you repeat it"));
		ans->applied = '?';
	}
}

static void call_in_turn(struct calls *c)
{
	struct far_queue *r = c->r;
	struct backoff pause = { .base_ms = POLL_MS,
				 .max_ms = POLL_MAX_MS,
				 .deadline = os_boot_ms() + r->timeout_ms };

	for (;;) {
		send_left(c);
		r->park_ms = 0;
		keep_barred(c);
		if (!c->n_left)
			return;
		if (any_pass(c))
			continue;
		if (r->config->impatient)
			return;
		if (!wait_free(c, &pause)) {
			tell_waited(c);
			return;
		}
	}
}

void remote_call(struct far_queue *r, const struct request *rqs, struct answer *answers, size_t n,
		 struct arena *a)
{
	struct calls c = remote_call_prepare(r, rqs, answers, n, a);

	remote_watch_rest(r);
	call_in_turn(&c);
	tell_unknown(&c, n);
}

/* --- all or none ---------------------------------------------------------------------------------- */

static size_t too_many(struct answer *ans, struct arena *a)
{
	ans->applied = 'n';
	answer_fail(ans, USAGE,
		    arena_printf(a, "a server takes at most %d changes in one commit", FRAMES_MAX),
		    STR("split the batch, or import a file: pawl import"));
	return 0;
}

/* All calls meet the same locks, so they share the token. */
static bool share_pass(struct calls *c, size_t bad, size_t n)
{
	bool found = c->answers[bad].barred && has_pass(c, bad);

	for (size_t i = 0; found && i < n; i++)
		memcpy(c->extras[i].pass, c->extras[bad].pass, sizeof(c->extras[i].pass));
	return found;
}

size_t remote_call_all(struct far_queue *r, const struct request *rqs, const size_t *under,
		       struct answer *answers, size_t n, struct arena *a)
{
	struct calls c = remote_call_prepare(r, rqs, answers, n, a);
	struct backoff pause = { .base_ms = POLL_MS,
				 .max_ms = POLL_MAX_MS,
				 .deadline = os_boot_ms() + r->timeout_ms };
	size_t bad;

	if (n > FRAMES_MAX)
		return too_many(&answers[0], a);
	for (size_t i = 0; i < n; i++) {
		c.extras[i].under = under ? (int64_t)under[i] : 0;
		if (completes_own(&rqs[i]) &&
		    !HAS(&rqs[i], request_id)) /* because one refusal refuses all */
			GIVE(&c.rqs[i], request_id, c.extras[i].call);
	}
	for (;;) {
		struct buf body = BUF_MAX(BODY_MAX);

		for (size_t i = 0; i < n; i++)
			frame_request(&body, &c.rqs[i], &c.extras[i]);
		c.n_left = n;
		remote_call_send(&c, buf_str(&body), 0, n, true);
		buf_free(&body);
		bad = first_refused(answers, n);
		if (bad == n || !answers[bad].barred)
			return bad;
		if (share_pass(&c, bad, n))
			continue;
		c.left[0] = bad;
		c.n_left = 1;
		if (r->config->impatient || !wait_free(&c, &pause)) {
			tell_waited(&c);
			return bad;
		}
		c.left[0] = 0;
	}
}

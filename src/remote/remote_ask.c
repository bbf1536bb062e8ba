/* Sends one question to the server, and repeats it with the same bytes until it is answered or the timeout has passed. A
 * refusal (4xx) is not repeated, except 429, which asks for a pause. If an answer is lost and the change may have been made,
 * the answer to the caller says so. */
#include <jansson.h>
#include <poll.h>

#include "base/os.h"
#include "base/secret.h"
#include "base/text.h"
#include "core/validate.h"
#include "remote/remote.h"

#define ATTEMPT_MIN_MS \
	3000 /* wait at least this long for an answer, because the server may be slow rather than down */
#define ANSWER_MS \
	5000 /* a network needs time, even if the caller does not want to wait for locks */
#define ABSENT_MS 3000 /* retry for up to this long if nothing accepts a connection */
#define PAUSE_MS 50
#define PAUSE_MAX_MS 2000
#define REFUSAL_MAX (1u << 20)

struct asking {
	struct far_queue *r;
	const struct question *k;
	struct http_answer http;
	struct answer *ans;
	struct arena *arena;
	int64_t deadline, absent_until, again_until;
	struct backoff pause;
	bool unknown; /* an attempt may have made the change */
	/* the parts of a refusal */
	struct str code, message, hint, fault;
};

void remote_sleep(int64_t ms)
{
	if (ms > 0)
		poll(NULL, 0, (int)(ms < 60000 ? ms : 60000));
}

static struct str origin_of(const struct asking *x)
{
	return str_c(http_client_origin(x->r->http));
}

/* --- ends ---------------------------------------------------------------------------------------- */

static enum result remote_ask_fail(struct asking *x, enum result code, const char *fault,
				   struct str message, struct str hint)
{
	*x->ans = (struct answer){ .fault = str_c(fault) };
	if (code == API_ERROR)
		x->ans->applied = x->k->changes && x->unknown ? '?' : 'n';
	return answer_fail(x->ans, code, message, hint);
}

/* Nothing was sent, and another attempt would fail in the same way. */
static bool is_untrusted(const struct asking *x)
{
	return x->http.unproven || strstr(x->http.why, "certificate") != NULL;
}

static struct str unreachable_hint(const struct asking *x)
{
	if (x->k->changes && x->unknown)
		return STR("the change may have been made: look before you repeat it");
	if (is_untrusted(x))
		return STR("PAWL_SERVER_CA names a file with the certificate to trust");
	return STR("is `pawl serve` running there? pawl doctor tries the connection");
}

static enum result remote_ask_unreachable(struct asking *x, struct str why)
{
	return remote_ask_fail(x, API_ERROR, "unreachable",
			       arena_printf(x->arena, "no answer from %s: %.*s",
					    arena_cstr(x->arena, origin_of(x)), STRF(why)),
			       unreachable_hint(x));
}

/* The token and the request were not sent, because another program may be listening at the
 * server's address. */
static enum result remote_ask_unproven(struct asking *x)
{
	return remote_ask_fail(
		x, MISCONFIGURED, "unauthorized",
		arena_printf(x->arena, "%s did not prove that it is your server: %s",
			     arena_cstr(x->arena, origin_of(x)), x->http.why),
		STR("is it the address of `pawl serve`, and was the token revoked? Through a tunnel or a "
		    "proxy: `pawl login URL --insecure`, or PAWL_SERVER_INSECURE=1"));
}

enum result remote_garbled(struct far_queue *r, bool changes, const char *why, struct answer *ans,
			   struct arena *a)
{
	*ans = (struct answer){ .applied = changes ? '?' : 'n', .fault = STR("unreachable") };
	return answer_fail(
		ans, API_ERROR,
		arena_printf(a, "the answer of %s cannot be %s%s", http_client_origin(r->http),
			     why ? "used: " : "read", why ? why : ""),
		STR("the server and this program must have the same version: pawl doctor"));
}

static enum result remote_ask_unauthorized(struct asking *x)
{
	struct str origin = origin_of(x);

	if (!x->r->bearer.n)
		return remote_ask_fail(
			x, MISCONFIGURED, "unauthorized",
			arena_printf(x->arena,
				     "%.*s needs a token: set PAWL_SERVER_TOKEN or "
				     "PAWL_SERVER_TOKEN_FILE, or save one: pawl login %.*s",
				     STRF(origin), STRF(origin)),
			STR("`pawl token create` on the server makes a token"));
	return remote_ask_fail(
		x, MISCONFIGURED, "unauthorized",
		arena_printf(
			x->arena, "%.*s refuses the token: %s", STRF(origin),
			arena_cstr(x->arena, x->message.n ? x->message : STR("it is not valid"))),
		STR("`pawl token create` on the server makes a new one; PAWL_SERVER_TOKEN or "
		    "`pawl login` takes it"));
}

/* A refusal has no answer, so a code that means success becomes API_ERROR. */
static enum result code_of(struct str name)
{
	for (int code = USAGE; code < 100; code++)
		if (result_known(code) && code != NO_TASKS &&
		    str_is(name, result_name((enum result)code)))
			return (enum result)code;
	return API_ERROR;
}

static enum result not_pawl(struct asking *x)
{
	return remote_ask_fail(
		x, MISCONFIGURED, "unsupported",
		arena_printf(x->arena, "%s is not a server of this version of pawl (status %d)",
			     arena_cstr(x->arena, origin_of(x)), x->http.status),
		STR("name the address that `pawl serve` prints, without a path"));
}

static enum result remote_ask_refused(struct asking *x)
{
	int status = x->http.status;

	if (status == 401)
		return remote_ask_unauthorized(x);
	if (!x->code.n || status == 404 || (status >= 300 && status < 400))
		return not_pawl(x);
	x->unknown |= status >= 500;
	return remote_ask_fail(
		x, code_of(x->code), status == 403 ? "forbidden" : arena_cstr(x->arena, x->fault),
		x->message,
		x->hint.n       ? x->hint
		: status == 413 ? STR("make it smaller, or run it on the server's machine")
				: STR(""));
}

/* --- words of the server ------------------------------------------------------------------------- */

#define WORDS_MAX 500

struct str remote_words(const struct far_queue *r, struct str text, struct arena *a)
{
	struct str line;

	if (!r->config->for_agent || !text.n)
		return text;
	line = text_cut(a, text_line(a, text), WORDS_MAX);
	return arena_printf(a, SERVER_SAYS "%s", arena_cstr(a, text_quote(a, line)));
}

void remote_quote(const struct far_queue *r, struct answer *ans, struct arena *a)
{
	struct strs warnings = ans->warnings;
	struct notice *const notices[] = { ans->changed, ans->paused, ans->came_back };

	ans->message = remote_words(r, ans->message, a);
	ans->hint = remote_words(r, ans->hint, a);
	ans->warnings = (struct strs){ 0 };
	for (size_t i = 0; i < warnings.n; i++)
		ans->warnings = arena_append(a, ans->warnings, remote_words(r, warnings.v[i], a));
	for (size_t i = 0; i < ans->n_candidates; i++)
		ans->candidates[i].why = remote_words(r, ans->candidates[i].why, a);
	for (size_t i = 0; i < sizeof(notices) / sizeof(*notices); i++)
		if (notices[i])
			notices[i]->reason = remote_words(r, notices[i]->reason, a);
}

/* --- answers ------------------------------------------------------------------------------------- */

static struct str text_of(const json_t *o, const char *key, struct arena *a)
{
	const json_t *v = json_object_get(o, key);

	return json_is_string(v) ? arena_str(a, str_n(json_string_value(v), json_string_length(v)))
				 : STR("");
}

/* Reads {"error":{"code":…}} from the body, if it is there. A longer body is not parsed, because
 * parsed JSON takes many times the memory of its text. */
static void read_refusal(struct asking *x)
{
	struct str body = x->http.body;
	json_t *o = body.n <= REFUSAL_MAX ? json_loadb(str_p(body), body.n, 0, NULL) : NULL;
	const json_t *e = json_object_get(o, "error");

	x->code = text_of(e, "code", x->arena);
	x->message = remote_words(x->r, text_of(e, "message", x->arena), x->arena);
	x->hint = remote_words(x->r, text_of(e, "hint", x->arena), x->arena);
	x->fault = text_of(e, "fault", x->arena);
	if (!fault_valid(x->fault))
		x->fault = STR("");
	json_decref(o);
}

/* The pause that the server asks for; 0: none. */
static int64_t retry_after(const struct asking *x)
{
	int64_t seconds = 0;

	if (!str_to_i64(http_header(x->http.headers, "retry-after"), &seconds) || seconds < 0)
		return 0;
	return (seconds < 3600 ? seconds : 3600) * 1000;
}

/* Would the server recognise a request that it may already have received? */
static bool may_repeat(const struct asking *x)
{
	return x->k->again && os_boot_ms() < x->again_until;
}

/* Is there time for another attempt? If so, sleeps until it is due. */
static bool remote_ask_again(struct asking *x, int64_t least)
{
	int64_t now = os_boot_ms(), ms = backoff_next(&x->pause, now);

	if (ms < 0 || now + least >= x->deadline)
		return false;
	remote_sleep(ms > least ? ms : least);
	return true;
}

static bool is_frames(const struct http_answer *h)
{
	struct str type = http_header(h->headers, "content-type");

	return str_eq_nocase(str_trim(str_cut(&type, ';')), STR(FRAME_TYPE));
}

/* Decides what an answer means. true: *code is final; false: ask again. */
static bool remote_ask_decide(struct asking *x, enum result *code, struct str *body)
{
	int status = x->http.status;

	if (status == 200 && is_frames(&x->http)) {
		*body = x->http.body;
		*code = SUCCESS;
		return true;
	}
	read_refusal(x);
	if (status == 429 && remote_ask_again(x, retry_after(x)))
		return false;
	/* our own server answers 503 before it acts; a proxy may have passed the request on */
	x->unknown |= status == 502 || status == 504 || (status == 503 && !x->code.n);
	x->r->resent |= x->unknown;
	if (status == 502 || status == 503 || status == 504) {
		if ((x->k->again || !x->unknown) && remote_ask_again(x, 0) &&
		    (!x->unknown || may_repeat(x)))
			return false;
		*code = remote_ask_unreachable(
			x, x->message.n ? x->message : arena_printf(x->arena, "status %d", status));
		return true;
	}
	*code = remote_ask_refused(x);
	return true;
}

/* --- asking --------------------------------------------------------------------------------------- */

/* Makes the server prove itself: it must know the hash of the token. */
static void expect_proof(struct far_queue *r)
{
	if (r->bearer.n)
		r->proof = hash_hex(&r->arena, r->bearer);
	http_client_prove(r->http, r->proof, r->insecure);
}

enum result remote_bearer(struct far_queue *r, struct answer *ans)
{
	const struct queue_config *c = r->config;
	enum result code = SUCCESS;

	if (r->asked || !c->bearer)
		return SUCCESS;
	code = c->bearer(c->bearer_ctx, str_c(http_client_origin(r->http)), &r->bearer,
			 &r->insecure, ans, &r->arena);
	r->asked = code == SUCCESS;
	if (r->asked)
		expect_proof(r);
	return code;
}

/* An attempt gets half of the remaining time, so a dead connection cannot use up all of it. */
static int64_t attempt_until(const struct asking *x)
{
	int64_t now = os_boot_ms(), left = x->deadline - now - x->k->wait_ms, share = left / 2;

	if (!x->k->again || left <= ATTEMPT_MIN_MS)
		return x->deadline;
	return now + x->k->wait_ms + (share < ATTEMPT_MIN_MS ? ATTEMPT_MIN_MS : share);
}

/* The attempt number lets the server recognise an earlier attempt that arrives late. */
static const char *target_of(const struct asking *x)
{
	const char *query = x->k->query, *queue = x->r->queue;

	return arena_printf(x->arena, "%s?try=%lld%s%s%s%s", x->k->path, x->r->attempts,
			    query ? "&" : "", query ? query : "", *queue ? "&" : "", queue)
		.p;
}

static enum http_fate remote_ask_attempt(struct asking *x)
{
	struct http_header bearer = { STR("Authorization"),
				      arena_printf(x->arena, "Bearer %.*s", STRF(x->r->bearer)) };

	x->r->attempts++;
	return http_call(x->r->http, "POST", target_of(x), FRAME_TYPE,
			 (struct http_headers){ &bearer, x->r->bearer.n > 0 }, x->k->body,
			 attempt_until(x), x->arena, &x->http);
}

/* Has nothing listened there for too long? A server that accepted the connection is only slow. */
static bool is_absent(const struct asking *x)
{
	return os_boot_ms() >= x->absent_until && !(x->http.connected && x->http.timed_out);
}

/* No answer came. Returns whether to ask again. */
static bool remote_ask_lost(struct asking *x, enum http_fate fate)
{
	x->unknown |= fate == HTTP_UNKNOWN;
	x->r->resent |= x->unknown;
	if (x->http.stopped || (x->unknown && !x->k->again))
		return false;
	if (!x->unknown && (is_untrusted(x) || is_absent(x)))
		return false;
	return remote_ask_again(x, 0) && (!x->unknown || may_repeat(x));
}

enum result remote_ask(struct far_queue *r, const struct question *k, struct str *body,
		       struct answer *ans, struct arena *a)
{
	int64_t now = os_boot_ms();
	struct asking x = { .r = r, .k = k, .ans = ans, .arena = a };
	enum http_fate fate;
	enum result code = remote_bearer(r, ans);

	if (code != SUCCESS)
		return code;
	x.deadline = now + k->wait_ms + (r->timeout_ms > ANSWER_MS ? r->timeout_ms : ANSWER_MS);
	x.again_until = k->again_ms ? now + k->again_ms : INT64_MAX;
	x.absent_until = now + (r->timeout_ms < ABSENT_MS ? r->timeout_ms : ABSENT_MS);
	x.pause = (struct backoff){ .base_ms = PAUSE_MS,
				    .max_ms = PAUSE_MAX_MS,
				    .deadline = x.deadline };
	r->resent = false;
	for (;;) {
		fate = remote_ask_attempt(&x);
		if (fate == HTTP_ANSWERED) {
			if (remote_ask_decide(&x, &code, body))
				return code;
		} else if (!remote_ask_lost(&x, fate)) {
			if (x.http.unproven && !x.unknown)
				return x.http.status == 401 ? remote_ask_unauthorized(&x)
							    : remote_ask_unproven(&x);
			return remote_ask_unreachable(&x, arena_str(a, str_c(x.http.why)));
		}
	}
}

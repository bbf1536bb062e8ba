/*
 * Requests to Notion: at most three in a second, repeated where that is safe. Notion has no
 * idempotency keys, so only the caller knows whether a request that may have been carried out can
 * be sent again.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/backoff.h"
#include "base/fs.h"
#include "base/os.h"
#include "base/text.h"
#include "base/when.h"
#include "client/bearer.h"
#include "sync/notion/notion.h"

#define BASE "https://api.notion.com"
#define VERSION "2026-03-11"
#define RATE 3           /* requests per second, on average */
#define ATTEMPT_MS 60000 /* the longest wait for one answer */
#define LIMITED_MAX 100  /* times that Notion may ask us to wait */
#define SETTLE_MS 60000
#define ANSWER_MAX (32u << 20)

enum result notion_fail(struct notion *n, enum result code, struct str message, struct str hint)
{
	*n->ans = (struct answer){ 0 };
	if (code == API_ERROR)
		n->ans->applied = '?';
	return answer_fail(n->ans, code, arena_str(n->arena, message), arena_str(n->arena, hint));
}

void notion_sleep(int64_t ms)
{
	if (ms > 0)
		poll(NULL, 0, (int)(ms < 60000 ? ms : 60000));
}

/* Shows progress once the sync takes longer than a second, at most ten times a second. */
void notion_say(struct notion *n, const char *doing, size_t count)
{
	int64_t now = os_boot_ms();
	struct arena a = { 0 };

	if (!n->job->progress || now - n->began_at < 1000 || now - n->said_at < 100)
		return;
	n->said_at = now;
	n->job->progress(n->job->ctx, arena_printf(&a, "%s: %zu (%lld requests)", doing, count,
						   (long long)n->done->requests));
	arena_free(&a);
}

void notion_change(struct notion *n, struct str task, const char *what, struct str more)
{
	struct sync_done *d = n->done;

	if (d->changes.n < SYNC_LINES_MAX)
		d->changes = arena_append(
			n->arena, d->changes,
			arena_printf(n->arena, "%.*s: %s%.*s", STRF(task), what, STRF(more)));
}

void notion_warn(struct notion *n, struct str text)
{
	if (n->done->warnings.n < SYNC_LINES_MAX)
		n->done->warnings = arena_append(n->arena, n->done->warnings,
						 arena_str(n->arena, text));
}

/* --- opening ------------------------------------------------------------------------------------------ */

static const char *notion_api_environment(const char *name)
{
	const char *value = getenv(name);

	return value && *value ? value : NULL;
}

static enum result read_token(struct notion *n)
{
	const char *said = notion_api_environment("NOTION_TOKEN"),
		   *file = notion_api_environment("NOTION_TOKEN_FILE");
	struct str text = STR("");
	int r = said || !file ? 0 : fs_read(n->arena, file, 8192, &text);

	if (r)
		return notion_fail(
			n, MISCONFIGURED,
			arena_printf(n->arena, "NOTION_TOKEN_FILE: %s: %s", file, strerror(-r)),
			STR("name a file that has the token and nothing else"));
	n->token = str_trim(said ? str_c(said) : text);
	if (login_valid(n->token))
		return SUCCESS;
	return notion_fail(
		n, MISCONFIGURED,
		!said && !file ? STR("there is no token for Notion")
			       : arena_printf(n->arena, "%s does not have a token",
					      said ? "NOTION_TOKEN" : "NOTION_TOKEN_FILE"),
		STR("set NOTION_TOKEN, or NOTION_TOKEN_FILE to a file that has the token of the integration"));
}

/* Sends the token over the network only with TLS. */
static bool is_safe(const char *base)
{
	struct str rest = str_c(base), host;

	if (str_cut_prefix(&rest, STR("https://")))
		return true;
	if (!str_cut_prefix(&rest, STR("http://")))
		return false;
	host = str_cut(&rest, ':');
	return str_is(host, "127.0.0.1") || str_is(host, "localhost");
}

/* A number from the environment; `otherwise` if there is none. */
static int64_t notion_api_number(const char *name, int64_t otherwise, int64_t most)
{
	const char *said = notion_api_environment(name);
	int64_t value;

	return said && str_to_i64(str_c(said), &value) && value >= 0 && value <= most ? value
										      : otherwise;
}

enum result notion_open(struct notion *n)
{
	/* the system's certificates: PAWL_SERVER_CA is for the user's own server */
	struct http_client_options options = { .answer_max = ANSWER_MAX, .connect_ms = 10000 };
	const char *base = notion_api_environment("NOTION_API_BASE");
	int64_t rate = notion_api_number("NOTION_RATE", RATE, 1000);
	enum result code = read_token(n);
	char why[300];

	if (code != SUCCESS)
		return code;
	base = base ? base : BASE;
	if (!is_safe(base))
		return notion_fail(
			n, MISCONFIGURED,
			STR("NOTION_API_BASE is not https://HOST, so the token could be read on its way"),
			STR("unset NOTION_API_BASE"));
	if (http_client_new(base, &options, &n->http, why, sizeof(why)))
		return notion_fail(n, MISCONFIGURED, str_c(why), STR("unset NOTION_API_BASE"));
	n->gap_ms = rate ? 1000 / rate : 0;
	n->settle_ms = notion_api_number("NOTION_SETTLE_MS", SETTLE_MS, 600000);
	n->patience_ms = client_timeout(n->job->client, 0);
	n->agent_user = str_c(notion_api_environment("NOTION_AGENT_USER_ID"));
	if (n->agent_user.n)
		n->agent_user = notion_id(n->arena, n->agent_user);
	return SUCCESS;
}

void notion_close(struct notion *n)
{
	http_client_free(n->http);
	n->http = NULL;
}

/* --- one request ----------------------------------------------------------------------------------------- */

struct asking {
	struct notion *n;
	const char *method, *target;
	struct str body;
	bool once;
	struct http_answer http;
	struct arena *arena;
	struct backoff pause;
	int64_t limited;
	json_t *got;
};

/* The requests of one second may go at once. After that, each waits until the rate allows it. */
static void wait_for_turn(struct notion *n)
{
	int64_t now = os_boot_ms();

	if (n->next_at < now - 1000)
		n->next_at = now - 1000;
	n->next_at += n->gap_ms;
	notion_sleep(n->next_at - now);
}

static enum http_fate notion_api_attempt(struct asking *x)
{
	struct notion *n = x->n;
	struct http_header headers[] = {
		{ STR("Authorization"), arena_printf(x->arena, "Bearer %.*s", STRF(n->token)) },
		{ STR("Notion-Version"), STR(VERSION) },
	};

	wait_for_turn(n);
	n->done->requests++;
	n->status = 0;
	return http_call(n->http, x->method, x->target, x->body.n ? "application/json" : NULL,
			 (struct http_headers){ headers, 2 }, x->body, os_boot_ms() + ATTEMPT_MS,
			 x->arena, &x->http);
}

/* Sleeps before the next attempt. false: there is none. */
static bool notion_api_again(struct asking *x)
{
	int64_t ms = backoff_next(&x->pause, os_boot_ms());

	if (ms < 0)
		return false;
	notion_sleep(ms);
	return true;
}

/* Notion asks us to wait, and has not carried the request out. */
static bool wait_as_told(struct asking *x)
{
	int64_t seconds = 1;

	if (++x->limited > LIMITED_MAX)
		return false;
	if (!str_to_i64(http_header(x->http.headers, "retry-after"), &seconds) || seconds < 0)
		seconds = 1;
	notion_sleep((seconds < 60 ? seconds : 60) * 1000);
	return true;
}

static struct str notion_api_said(const struct asking *x)
{
	json_t *o = json_loadb(str_p(x->http.body), x->http.body.n, JSON_ALLOW_NUL, NULL);
	json_t *m = json_object_get(o, "message");
	struct str out = str_n(json_string_value(m), json_string_length(m));

	out = text_line(x->n->arena, out.n < 500 ? out : str_n(out.p, 500));
	json_decref(o);
	return out;
}

static enum result notion_api_unreachable(struct asking *x, struct str why)
{
	struct notion *n = x->n;

	return notion_fail(n, API_ERROR,
			   arena_printf(n->arena, "no answer from %s: %.*s",
					http_client_origin(n->http), STRF(why)),
			   STR("run the same command again: it completes what was begun"));
}

static enum result notion_api_refused(struct asking *x)
{
	struct notion *n = x->n;
	int status = x->http.status;
	struct str what = notion_api_said(x);

	if (status == 401)
		return notion_fail(
			n, MISCONFIGURED,
			arena_printf(n->arena, "Notion refuses the token: %.*s", STRF(what)),
			STR("set NOTION_TOKEN or NOTION_TOKEN_FILE to the token of your integration"));
	if (status == 403 || status == 404)
		return notion_fail(
			n, MISCONFIGURED, arena_printf(n->arena, "Notion: %.*s", STRF(what)),
			STR("share the database with the integration (••• at its top right, Connections), "
			    "and let it read, update and insert content, and read and insert comments"));
	if (status >= 300 && status < 400)
		return notion_fail(n, MISCONFIGURED,
				   arena_printf(n->arena, "%s redirects; pawl does not follow it",
						http_client_origin(n->http)),
				   STR("unset NOTION_API_BASE"));
	return notion_fail(n, MISCONFIGURED,
			   arena_printf(n->arena, "Notion refuses %s %s (%d): %.*s", x->method,
					x->target, status, STRF(what)),
			   STR("pawl sync --check says what the database lacks"));
}

/* The header Date, such as "Tue, 17 Nov 2026 09:00:00 GMT"; 0: there is none */
static int64_t date_of(const struct http_answer *h)
{
	static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
	struct arena a = { 0 };
	const char *text = arena_cstr(&a, http_header(h->headers, "date")), *at;
	char month[4] = "";
	int day, year, hour, minute, second;
	int64_t ms = 0;

	if (sscanf(text, "%*3s, %d %3s %d %d:%d:%d GMT", &day, month, &year, &hour, &minute,
		   &second) == 6 &&
	    (at = strstr(months, month)) != NULL &&
	    !when_parse(arena_printf(&a, "%04d-%02d-%02dT%02d:%02d:%02dZ", year,
				     (int)(at - months) / 3 + 1, day, hour, minute, second),
			&ms))
		ms = 0;
	arena_free(&a);
	return ms;
}

/* May the request have been carried out? A gateway may have passed it on. Notion itself sends 529,
 * before it does anything. */
static bool is_lost(int status)
{
	return status >= 500 && status != 529;
}

/* Evaluates an answer. true: *code is final. */
static bool notion_api_decide(struct asking *x, enum result *code)
{
	int status = x->n->status = x->http.status;
	json_error_t e;

	x->n->server_now = date_of(&x->http);
	if (status >= 200 && status < 300) {
		x->got = json_loadb(str_p(x->http.body), x->http.body.n, JSON_ALLOW_NUL, &e);
		x->n->unknown = !json_is_object(x->got); /* the request was carried out */
		*code = !x->n->unknown
				? SUCCESS
				: notion_fail(
					  x->n, API_ERROR,
					  STR("Notion's answer is not a JSON object"),
					  STR("run the same command again: it completes what was begun"));
		return true;
	}
	if (status == 429 || status == 529) {
		if (wait_as_told(x))
			return false;
	} else if (status == 409 || (is_lost(status) && !x->once)) {
		if (notion_api_again(x))
			return false;
	}
	x->n->unknown = is_lost(status);
	if (status >= 500 || status == 409 || status == 429)
		*code = notion_api_unreachable(x, arena_printf(x->arena, "status %d", status));
	else
		*code = notion_api_refused(x);
	return true;
}

/* There was no answer. Shall we send the request again? */
static bool notion_api_lost(struct asking *x, enum http_fate fate)
{
	if (fate == HTTP_UNKNOWN)
		x->n->unknown = true;
	if (strstr(x->http.why, "certificate") || (x->n->unknown && x->once))
		return false;
	return notion_api_again(x);
}

static enum result notion_api_ask(struct asking *x)
{
	enum result code = SUCCESS;

	for (;;) {
		enum http_fate fate;

		code = notion_renew(x->n);
		if (code != SUCCESS)
			return code;
		fate = notion_api_attempt(x);
		if (fate == HTTP_ANSWERED) {
			if (notion_api_decide(x, &code))
				return code;
		} else if (!notion_api_lost(x, fate)) {
			return notion_api_unreachable(x, str_c(x->http.why));
		}
	}
}

enum result notion_ask(struct notion *n, const char *method, const char *target, json_t *body,
		       bool once, json_t **out)
{
	struct arena a = { 0 };
	char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
	struct asking x = { .n = n,
			    .method = method,
			    .target = target,
			    .body = str_c(text),
			    .once = once,
			    .arena = &a,
			    .pause = { .base_ms = 250,
				       .max_ms = 8000,
				       .deadline = os_boot_ms() + n->patience_ms } };
	enum result code;

	n->unknown = false;
	n->status = 0; /* no answer yet */
	code = notion_api_ask(&x);
	if (code == SUCCESS && out)
		*out = x.got;
	else
		json_decref(x.got);
	free(text);
	json_decref(body);
	arena_free(&a);
	return code;
}

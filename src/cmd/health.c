/*
 * pawl lock health: rates the locks and gives reasons and advice. It changes nothing unless the
 * setting health.auto is on; then it clears stale locks if the score is low.
 */
#include <ctype.h>

#include "base/os.h"
#include "base/when.h"
#include "cmd/command.h"

static enum result health_run(struct session *s, struct args *args, struct reply *out);
static void health_show(const struct reply *r, struct view *v);

const struct command cmd_lock_health = {
	.name = "lock health",
	.group = "locks",
	.summary = "rate the health of the locks, with reasons and advice",
	.detail =
		"The score starts at 100. Stale locks cost 30, more than three failed changes in ten minutes cost 40, and "
		"a load above 2 per processor costs 20. For each operation, the table shows how often it succeeded and "
		"failed, how long it waited, and how long it made other calls wait. It covers all processes since the queue "
		"was made (setting health.monitoring). batch, import, clear and restore count as one call each. Below the "
		"table are the number of acquisitions that were refused because another agent held the lock, and the last "
		"lock that caused a refusal. A git server has no "
		"counters. With the setting health.auto = on, lock health and each change clean up stale locks if the "
		"score is below 60, and changes then wait at most 3 s. It never declares an emergency by itself.",
	.example = "pawl lock health\n"
		   "pawl lock health --json | jq .health.score",
	.see = "lock cleanup, lock typed, emergency on, doctor",
	.gives = "health",
	.flags = C_IDEMPOTENT,
	.run = health_run,
	.show = health_show,
};

struct examination {
	struct session *s;
	struct client_health found;
	int64_t stale_ms;
	json_t *out, *reasons, *advice;
};

/* --- the score and its reasons ----------------------------------------------------------------------- */

static void health_reason(struct examination *x, int minus, struct str text, struct str advice)
{
	json_t *r = json_object();

	json_object_set_new(r, "text", json_str(text));
	json_object_set_new(r, "points", json_integer(-minus));
	json_array_append_new(x->reasons, r);
	json_array_append_new(x->advice, json_str(advice));
}

static void find_reasons(struct examination *x)
{
	const struct health_facts *f = &x->found.facts;
	struct arena *a = x->s->arena;

	if (f->stale)
		health_reason(
			x, 30,
			arena_printf(
				a,
				"%lld stale lock%s: expired more than %s ago, or of a dead process",
				(long long)f->stale, f->stale == 1 ? "" : "s",
				arena_cstr(a, duration_text(a, x->stale_ms))),
			STR("to release them: pawl lock cleanup"));
	if (f->recent_failures > HEALTH_FAILURES)
		health_reason(
			x, 40,
			arena_printf(a, "%lld%s changes failed in the last %s",
				     (long long)f->recent_failures,
				     f->recent_failures >= 16 ? " or more" : "",
				     arena_cstr(a, duration_text(a, HEALTH_RECENT_MS))),
			STR("`pawl lock typed` and the refusals name the lock in the way; --timeout waits longer"));
	if (f->load_percent > HEALTH_LOAD)
		health_reason(x, 20,
			      arena_printf(a, "the machine's load is %lld.%02lld per processor",
					   (long long)f->load_percent / 100,
					   (long long)f->load_percent % 100),
			      STR("run fewer programs at once on this machine"));
}

static json_t *health_warnings(struct examination *x)
{
	int64_t share = health_failed_share(&x->found.facts);
	json_t *list = json_array();

	if (share > HEALTH_FAILED_WARN)
		json_array_append_new(
			list, json_str(arena_printf(
				      x->s->arena,
				      "%lld.%02lld %% of all changes failed (more than 5 %%)",
				      (long long)share / 100, (long long)share % 100)));
	return list;
}

static json_t *health_seconds(int64_t us)
{
	return json_real((double)us / 1e6);
}

/* "LOCK_ACQUIRE" as the user types it: "lock acquire". */
static json_t *words_json(const char *name)
{
	char word[40];
	size_t n = strnlen(name, sizeof(word));

	for (size_t i = 0; i < n; i++)
		word[i] = (char)(name[i] == '_' ? ' ' : tolower((unsigned char)name[i]));
	return json_stringn(word, n);
}

static json_t *op_json(const char *name, const struct health_op *o)
{
	int64_t all = o->done + o->failed, p95 = health_percentile(o->waits, 95);
	json_t *j = json_object();

	json_object_set_new(j, "operation", words_json(name));
	json_object_set_new(j, "acquired", json_integer(o->done));
	json_object_set_new(j, "failed", json_integer(o->failed));
	json_object_set_new(j, "wait_mean", health_seconds(all ? o->wait_us / all : 0));
	json_object_set_new(j, "wait_p95",
			    health_seconds(p95 < o->wait_max_us ? p95 : o->wait_max_us));
	json_object_set_new(j, "wait_max", health_seconds(o->wait_max_us));
	json_object_set_new(j, "held", json_integer(o->held));
	json_object_set_new(j, "hold_mean", health_seconds(o->held ? o->hold_us / o->held : 0));
	json_object_set_new(j, "hold_max", health_seconds(o->hold_max_us));
	return j;
}

static void put_refused(struct examination *x)
{
	const struct health_refusal *r = &x->found.health.last_refused;
	json_t *o = json_pack("{s:I}", "count", (json_int_t)x->found.health.refused), *last;

	if (r->at) {
		last = json_pack("{s:o, s:s, s:s, s:s, s:o}", "at",
				 json_str(when_text(x->s->arena, r->at)), "task", r->task, "holder",
				 r->holder, "agent", r->agent, "operation",
				 words_json(health_name((int)r->op)));
		json_object_set_new(o, "last", last);
	}
	json_object_set_new(x->out, "refused", o);
}

static void put_counts(struct examination *x)
{
	const struct health *h = &x->found.health;
	json_t *ops = json_array(), *group = json_object();

	for (int op = OP_NONE; op < HEALTH_OPS; op++)
		if (h->op[op].done + h->op[op].failed && *health_name(op))
			json_array_append_new(ops, op_json(health_name(op), &h->op[op]));
	json_object_set_new(x->out, "operations", ops);
	json_object_set_new(x->out, "all", op_json("all", &h->all));
	if (!h->commits)
		json_decref(group);
	else {
		json_object_set_new(group, "commits", json_integer(h->commits));
		json_object_set_new(group, "changes", json_integer(h->changes));
		json_object_set_new(group, "handed_over", json_integer(h->handed));
		json_object_set_new(group, "mean_size",
				    json_real((double)h->changes / (double)h->commits));
		json_object_set_new(x->out, "group_commit", group);
	}
}

static const char *health_level(int score)
{
	return score < HEALTH_CRITICAL ? "critical" : score < HEALTH_DEGRADED ? "degraded" : "good";
}

static void put_score(struct examination *x)
{
	int score = health_score(&x->found.facts);

	x->reasons = json_array();
	x->advice = json_array();
	find_reasons(x);
	if (score < HEALTH_CRITICAL)
		json_array_append_new(
			x->advice,
			json_string(
				"to make the queue read-only while you examine it: pawl emergency on --reason TEXT"));
	json_object_set_new(x->out, "score", json_integer(score));
	json_object_set_new(x->out, "level", json_string(health_level(score)));
	json_object_set_new(x->out, "reasons", x->reasons);
	json_object_set_new(x->out, "advice", x->advice);
	json_object_set_new(x->out, "warnings", health_warnings(x));
	json_object_set_new(x->out, "stale_locks", json_integer(x->found.facts.stale));
	json_object_set_new(x->out, "recent_failures",
			    json_integer(x->found.facts.recent_failures));
	json_object_set_new(x->out, "load", json_real((double)x->found.facts.load_percent / 100));
	json_object_set_new(x->out, "counting", json_boolean(x->found.counted));
}

/* Clears stale locks. Call it only if the score is below 60 and the setting health.auto allows
 * it. */
static enum result health_repair(struct examination *x, struct answer *ans)
{
	struct request rq = { .op = OP_LOCK_CLEANUP };
	json_t *list = json_array();

	client_call(&x->s->client, &rq, ans);
	for (size_t i = 0; ans->code == SUCCESS && i < ans->n_tasks; i++)
		json_array_append_new(list, json_str(ans->tasks[i].id));
	json_object_set_new(x->out, "cleaned_up", list);
	return ans->code == SUCCESS ? client_health(&x->s->client, &x->found, ans) : ans->code;
}

static enum result health_run(struct session *s, struct args *args, struct reply *out)
{
	struct examination x = { .s = s,
				 .stale_ms = client_stale_after(&s->client),
				 .out = json_object() };
	struct answer ans = { 0 };
	enum result code;

	(void)args;
	code = client_health(&s->client, &x.found, &ans);
	if (code == SUCCESS && health_score(&x.found.facts) < HEALTH_DEGRADED &&
	    x.found.facts.stale && client_health_auto(&s->client))
		code = health_repair(&x, &ans);
	if (code != SUCCESS) {
		json_decref(x.out);
		return run_answer(&ans, out);
	}
	put_score(&x);
	put_counts(&x);
	if (x.found.counted)
		put_refused(&x);
	json_object_set_new(reply_more(out), "health", x.out);
	return SUCCESS;
}

/* --- for people ---------------------------------------------------------------------------------- */

static struct str time_text(struct view *v, const json_t *o, const char *key)
{
	double s = json_real_value(json_object_get(o, key));

	if (s < 0.001)
		return arena_printf(v->arena, "%.0f us", s * 1e6);
	if (s < 1)
		return arena_printf(v->arena, "%.1f ms", s * 1e3);
	return arena_printf(v->arena, "%.2f s", s);
}

static void put_row(struct view *v, const json_t *o, struct cell *c)
{
	static const char *const times[] = { "wait_mean", "wait_p95", "wait_max", "hold_mean",
					     "hold_max" };
	long long failed = view_int(o, "failed");

	c[0] = view_cell(v, BOLD, json_get(o, "operation"));
	c[1].text = arena_printf(v->arena, "%lld", (long long)view_int(o, "acquired"));
	c[2] = (struct cell){ failed ? YELLOW : PLAIN, arena_printf(v->arena, "%lld", failed) };
	for (size_t i = 0; i < 5; i++)
		c[3 + i].text = time_text(v, o, times[i]);
}

static void show_table(struct view *v, const json_t *h)
{
	static const char *const heads[] = { "OPERATION", "ACQUIRED", "FAILED",    "WAIT MEAN",
					     "WAIT P95",  "WAIT MAX", "HOLD MEAN", "HOLD MAX" };
	const json_t *ops = json_object_get(h, "operations"), *o;
	size_t n = json_array_size(ops), i;
	struct cell *cells = arena_array(v->arena, struct cell, (n + 1) * 8);

	if (!n) {
		view_text(
			v, DIM,
			json_is_true(json_object_get(h, "counting"))
				? "nothing has been counted yet\n"
				: "this store counts nothing: it has no counters that all processes share\n");
		return;
	}
	json_array_foreach(ops, i, o)
		put_row(v, o, cells + i * 8);
	put_row(v, json_object_get(h, "all"), cells + n * 8);
	view_table(v, heads, 8, cells, n + 1);
}

static void show_group(struct view *v, const json_t *g)
{
	if (!g)
		return;
	view_text(
		v, PLAIN,
		"%lld commits for %lld changes, %.2f changes per commit on average; another process committed %lld of "
		"them\n",
		(long long)view_int(g, "commits"), (long long)view_int(g, "changes"),
		json_real_value(json_object_get(g, "mean_size")),
		(long long)view_int(g, "handed_over"));
}

static void show_refused(struct view *v, const json_t *refused)
{
	const json_t *last = json_object_get(refused, "last");
	long long n = view_int(refused, "count");

	if (!n)
		return;
	view_text(v, PLAIN, "%lld acquisition%s refused because another agent held the lock", n,
		  n == 1 ? " was" : "s were");
	if (last) {
		view_text(v, PLAIN, "; the last: %s by ",
			  arena_cstr(v->arena, json_get(last, "operation")));
		view_data(v, PLAIN, json_get(last, "agent"));
		view_text(v, PLAIN, " at %s, ", arena_cstr(v->arena, json_get(last, "at")));
		view_data(v, BOLD, json_get(last, "task"));
		view_text(v, PLAIN, " was held by ");
		view_data(v, PLAIN, json_get(last, "holder"));
	}
	view_text(v, PLAIN, "\n");
}

static void show_texts(struct view *v, enum paint p, const char *before, const json_t *list)
{
	const json_t *t;
	size_t i;

	json_array_foreach(list, i, t) {
		view_text(v, p, "%s", before);
		view_data(v, PLAIN, json_text(t));
		view_text(v, PLAIN, "\n");
	}
}

static void health_show(const struct reply *r, struct view *v)
{
	const json_t *h = json_object_get(r->more, "health"), *why;
	long long score = view_int(h, "score");
	enum paint p = score < HEALTH_CRITICAL ? RED : score < HEALTH_DEGRADED ? YELLOW : GREEN;
	size_t i;

	if (v->quiet) {
		view_text(v, PLAIN, "%lld\n", score);
		return;
	}
	view_text(v, p, "%lld/100  %s\n", score, arena_cstr(v->arena, json_get(h, "level")));
	json_array_foreach(json_object_get(h, "reasons"), i, why) {
		view_text(v, YELLOW, "%4lld  ", (long long)view_int(why, "points"));
		view_data(v, PLAIN, json_get(why, "text"));
		view_text(v, PLAIN, "\n");
	}
	show_texts(v, YELLOW, "warning: ", json_object_get(h, "warnings"));
	show_texts(v, GREEN, "cleaned up: ", json_object_get(h, "cleaned_up"));
	show_texts(v, DIM, "advice: ", json_object_get(h, "advice"));
	view_text(v, PLAIN, "\n");
	show_table(v, h);
	show_group(v, json_object_get(h, "group_commit"));
	show_refused(v, json_object_get(h, "refused"));
}

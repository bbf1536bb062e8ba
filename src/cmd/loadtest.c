/*
 * pawl loadtest: measures the store with many processes in a scratch queue. It fails if an
 * operation fails or if the store lost an acknowledged change.
 */
#include <inttypes.h>

#include "cmd/command.h"
#include "cmd/cmd.h"

struct loadtest_args {
	struct args args;
	int64_t processes, operations;
};

static const struct param params[] = {
	LOCAL(loadtest, processes, "processes", P_INT, .letter = 'p', .value = "N", .def = "20",
	      .min = 1, .max = TORTURE_AGENTS_MAX, .help = "number of processes"),
	LOCAL(loadtest, operations, "operations", P_INT, .letter = 'n', .value = "N", .def = "10",
	      .min = 1, .max = LOAD_CALLS_MAX, .help = "number of operations of each process"),
	{ 0 }
};

static enum result loadtest_run(struct session *s, struct args *args, struct reply *out);
static void loadtest_show(const struct reply *r, struct view *v);

const struct command cmd_loadtest = {
	.name = "loadtest",
	.group = "setup",
	.summary = "measure the store with many processes at once",
	.detail =
		"Each process creates, claims and finishes tasks as fast as it can, in a scratch queue of the store. "
		"loadtest removes this queue at the end and does not touch your tasks. Every operation must succeed, and "
		"every acknowledged change must be in the store. The exit code is 30 if an operation failed, and 40 if a "
		"change is lost. `pawl torture` also kills processes and checks every answer.",
	.example =
		"pawl loadtest\n"
		"pawl loadtest --processes 50 --operations 1000 --store sqlite:/srv/queues/team.db",
	.see = "torture, doctor",
	.params = params,
	.args_size = sizeof(struct loadtest_args),
	.flags = C_LOCAL | C_WRITE | C_REPORT,
	.run = loadtest_run,
	.show = loadtest_show,
};

#define PROCESSES 20
#define OPERATIONS 10

/* --- running --------------------------------------------------------------------------------------- */

struct watcher {
	struct session *session;
	int64_t all;
};

static void loadtest_progress(void *ctx, const struct torture_figures *f, const char *doing)
{
	struct watcher *w = ctx;
	int64_t ms = f->ms ? f->ms : 1;

	w->session->progress(w->session,
			     arena_printf(w->session->arena,
					  "%s: %" PRId64 " of %" PRId64 " operations (%" PRId64
					  " %%), %" PRId64 "/s",
					  doing, f->calls, w->all, f->calls * 100 / w->all,
					  f->calls * 1000 / ms));
}

static json_t *loadtest_seconds(int64_t us)
{
	return json_real((double)us / 1000000);
}

static json_t *report_json(const struct torture_plan *p, const struct load_report *r)
{
	double all = (double)(r->ms ? r->ms : 1) / 1000;
	int64_t wanted = p->agents * p->calls;
	json_t *o = json_object(), *waits = json_object(), *refused = json_object();

	json_object_set_new(o, "processes", json_integer(p->agents));
	json_object_set_new(o, "operations", json_integer(p->calls));
	json_object_set_new(o, "calls", json_integer(r->calls));
	json_object_set_new(o, "succeeded", json_integer(r->succeeded));
	json_object_set_new(o, "success_percent",
			    json_real(100.0 * (double)r->succeeded / (double)wanted));
	json_object_set_new(o, "seconds", json_real(all));
	json_object_set_new(o, "calls_per_second",
			    json_integer((json_int_t)((double)r->calls / all)));
	json_object_set_new(waits, "mean", loadtest_seconds(r->mean_us));
	json_object_set_new(waits, "p50", loadtest_seconds(r->p50_us));
	json_object_set_new(waits, "p95", loadtest_seconds(r->p95_us));
	json_object_set_new(waits, "p99", loadtest_seconds(r->p99_us));
	json_object_set_new(waits, "longest", loadtest_seconds(r->longest_us));
	json_object_set_new(o, "wait", waits);
	for (int code = 1; code < TORTURE_CODES; code++)
		if (r->codes[code] && result_known(code))
			json_object_set_new(refused, result_name((enum result)code),
					    json_integer(r->codes[code]));
	json_object_set_new(o, "refused", refused);
	if (r->interrupted)
		json_object_set_new(o, "interrupted", json_true());
	return o;
}

static struct str first_fault(const struct load_report *r)
{
	return r->faults.n ? r->faults.v[0] : STR("");
}

static enum result loadtest_verdict(struct session *s, const struct torture_plan *p,
				    const struct load_report *r, struct reply *out)
{
	int64_t wanted = p->agents * p->calls;
	struct answer ans = { .applied = 'n' };

	if (r->faults.n)
		return run_fail(MISCONFIGURED,
				arena_printf(s->arena, "the store broke its promise: %s",
					     arena_cstr(s->arena, first_fault(r))),
				STR("`pawl torture` examines the store further"), out);
	if (r->interrupted || r->succeeded == wanted)
		return SUCCESS;
	answer_fail(
		&ans, API_ERROR,
		arena_printf(s->arena, "%" PRId64 " of %" PRId64 " operations failed: %.*s",
			     wanted - r->succeeded, wanted, STRF(r->failure)),
		STR("`pawl doctor` checks the store; --timeout gives each operation more time"));
	return run_answer(&ans, out);
}

static enum result loadtest_load(struct session *s, const struct torture_plan *p, struct reply *out)
{
	struct load_report r;
	struct answer ans = { 0 };
	const struct proof_ops *proof = proof_load(&ans, s->arena);
	enum result code;

	if (!proof)
		return run_answer(&ans, out);
	code = proof->load(p, &r, &ans, s->arena);

	if (s->progress)
		s->progress(s, STR(""));
	if (code != SUCCESS) {
		run_answer(&ans, out);
	} else {
		code = loadtest_verdict(s, p, &r, out);
		json_object_set_new(reply_more(out), "loadtest", report_json(p, &r));
	}
	if (!r.removed)
		proof_warn(s, p, r.queue, r.stayed, out);
	return code;
}

static enum result loadtest_refuse(struct session *s, const struct torture_plan *p,
				   struct reply *out)
{
	if (!p->uri.n)
		return run_fail(MISCONFIGURED,
				STR("there is no queue here, so loadtest has no store to test"),
				STR("name a store: pawl loadtest --store sqlite:PATH"), out);
	if (str_has_nocase(p->uri, STR("mem:")))
		return run_fail(
			MISCONFIGURED,
			STR("a mem: store lives in one process; loadtest needs a store that processes share"),
			STR("pawl loadtest --store sqlite:PATH"), out);
	if (p->agents * p->calls > LOAD_ALL_MAX)
		return run_fail(USAGE,
				arena_printf(s->arena,
					     "loadtest makes at most %d operations in all",
					     LOAD_ALL_MAX),
				STR("give smaller --processes or --operations"), out);
	return SUCCESS;
}

static enum result loadtest_run(struct session *s, struct args *args, struct reply *out)
{
	const struct loadtest_args *a = (const struct loadtest_args *)args;
	struct client_options said = s->client.said;
	struct answer ans = { 0 };
	struct torture_plan plan;
	struct watcher w = { .session = s };
	enum result code;

	if (client_init(&s->client, &said, &ans, s->arena) != SUCCESS ||
	    trust_check(&s->client.conn.trust, &ans, s->arena) != SUCCESS)
		return run_answer(&ans, out);
	plan = (struct torture_plan){
		.uri = s->client.conn.config.uri,
		.mode = TORTURE_DRAIN,
		.agents = a->processes ? a->processes : PROCESSES,
		.calls = a->operations ? a->operations : OPERATIONS,
		.timeout_ms = client_timeout(&s->client, 0),
		.relaxed = str_is(settings_text(&s->client.conn.settings, "durability"), "normal"),
		.progress = s->progress ? loadtest_progress : NULL,
		.ctx = &w,
		.access = &s->client.conn.config,
	};
	code = loadtest_refuse(s, &plan, out);
	w.all = plan.agents * plan.calls;
	return code == SUCCESS ? loadtest_load(s, &plan, out) : code;
}

/* --- showing --------------------------------------------------------------------------------------- */

static double loadtest_number(const json_t *o, const char *key)
{
	return json_number_value(json_object_get(o, key));
}

static void loadtest_show(const struct reply *r, struct view *v)
{
	static const char *const waits[][2] = { { "mean", "wait, mean" },
						{ "p50", "wait, p50" },
						{ "p95", "wait, p95" },
						{ "p99", "wait, p99" },
						{ "longest", "wait, longest" } };
	const json_t *o = json_object_get(r->more, "loadtest"), *wait = json_object_get(o, "wait");
	double percent = loadtest_number(o, "success_percent");
	const char *code;
	json_t *n;

	if (!o || v->quiet)
		return;
	view_text(v, PLAIN, "%-22s %12" PRId64 "\n", "processes", view_int(o, "processes"));
	view_text(v, PLAIN, "%-22s %12" PRId64 "\n", "operations of each",
		  view_int(o, "operations"));
	view_text(v, PLAIN, "%-22s %12" PRId64 "\n", "operations", view_int(o, "calls"));
	view_text(v, PLAIN, "%-22s %12.3f s\n", "time", loadtest_number(o, "seconds"));
	view_text(v, PLAIN, "%-22s %12" PRId64 "\n", "operations per second",
		  view_int(o, "calls_per_second"));
	for (size_t i = 0; i < sizeof(waits) / sizeof(*waits); i++)
		view_text(v, PLAIN, "%-22s %12.3f ms\n", waits[i][1],
			  1000 * loadtest_number(wait, waits[i][0]));
	json_object_foreach(json_object_get(o, "refused"), code, n)
		view_text(v, YELLOW, "  %-20s %12" JSON_INTEGER_FORMAT "\n", code,
			  json_integer_value(n));
	view_text(v, percent < 100 ? RED : GREEN, "%-22s %12.2f %%\n", "success", percent);
	if (json_object_get(o, "interrupted"))
		view_text(v, YELLOW, "interrupted: these are the figures up to then\n");
}

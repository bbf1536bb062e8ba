/*
 * pawl torture: runs every operation from many processes in a scratch queue and checks the recorded
 * history against the contract. The report has the command that makes the same choices again.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/os.h"
#include "base/secret.h"
#include "cmd/cmd.h"
#include "cmd/command.h"
#include "queue/remote_queue.h"

#define MOST 1000000

struct torture_args {
	struct args args;
	int64_t agents, tasks, rounds, ms, calls, kills, stops, skews, lost, outage, lease, seed;
	struct str only, driver, history, check, remove;
};

static const struct param params[] = {
	LOCAL(torture, only, "only", P_CHOICE, .choices = "mix drain claims", .value = "WAY",
	      .def = "mix",
	      .help = "mix: every operation at random; drain: each task done once; claims: one winner per round"),
	LOCAL(torture, agents, "agents", P_INT, .value = "N", .def = "8", .min = 1,
	      .max = TORTURE_AGENTS_MAX, .help = "number of agents, each a process"),
	LOCAL(torture, tasks, "tasks", P_INT, .value = "N", .def = "40", .min = 1,
	      .max = TORTURE_TASKS_MAX, .help = "number of tasks"),
	LOCAL(torture, ms, "seconds", P_DURATION, .value = "DURATION", .def = "10",
	      .help = "run the mix for DURATION"),
	LOCAL(torture, calls, "calls", P_INT, .value = "N", .min = 1,
	      .help = "end the mix after N calls, if that is earlier"),
	LOCAL(torture, rounds, "rounds", P_INT, .value = "N", .def = "100", .min = 1,
	      .max = TORTURE_ROUNDS_MAX, .help = "with --only claims: number of rounds"),
	LOCAL(torture, kills, "kills", P_INT, .value = "N", .max = MOST,
	      .help = "kill -9 N agents (default: two a second in the mix, else none)"),
	LOCAL(torture, stops, "stops", P_INT, .value = "N", .max = MOST,
	      .help = "stop N agents past their lease (default: one a second in the mix, else none)"),
	LOCAL(torture, skews, "skews", P_INT, .value = "N", .max = MOST,
	      .help = "set the clocks of N agents wrong (default: one a second in the mix, else none)"),
	LOCAL(torture, lost, "lost", P_INT, .value = "N", .max = MOST,
	      .help = "lose one answer in N (0 = none; default: 200 in the mix, else none)"),
	LOCAL(torture, outage, "outage", P_DURATION, .value = "DURATION", .def = "3",
	      .help = "give the store up if it fails for longer than DURATION, or a driver that does not answer (default: 30)"),
	LOCAL(torture, driver, "driver", P_TEXT, .flags = P_FILLED, .value = "COMMAND",
	      .help = "test any queue through COMMAND, which answers five verbs line by line"),
	LOCAL(torture, lease, "lease", P_DURATION, .value = "DURATION", .def = "1",
	      .help = "with --driver: the lease that agents ask for"),
	LOCAL(torture, seed, "seed", P_INT, .value = "N", .def = "random",
	      .help = "seed of all random choices"),
	LOCAL(torture, history, "history", P_TEXT, .flags = P_FILLED, .value = "FILE",
	      .help = "write the recorded history to FILE, which must not exist yet"),
	LOCAL(torture, check, "check", P_TEXT, .flags = P_FILLED, .value = "FILE",
	      .help = "only check a recorded history, without a store"),
	LOCAL(torture, remove, "remove", P_NAME, .value = "QUEUE",
	      .help = "only remove a scratch queue that a killed torture left behind"),
	{ 0 }
};

static enum result torture_cmd_run(struct session *s, struct args *a, struct reply *out);
static void torture_cmd_show(const struct reply *r, struct view *v);

const struct command cmd_torture = {
	.name = "torture",
	.group = "setup",
	.summary = "stress-test the store: is every task still claimed exactly once?",
	.detail =
		"Many agents, each a process, run all operations on a few tasks in a scratch queue of the "
		"store. As they run, torture kills agents, stops them past their leases, sets their clocks "
		"wrong and loses their answers. It "
		"records every call and answer and checks the record against the contract. torture removes the queue at "
		"the end and does not touch your tasks. The exit code is 40 if the store broke its promise; torture then "
		"keeps the history and prints its path. The same seed makes the same choices, but the processes run in a "
		"different order each time.\n\n"
		"With --driver, torture tests another program's queue instead of a store. It starts COMMAND once for each "
		"agent, without a shell, sends it lines and reads its answers (doc/proof/drivers.md).",
	.example =
		"pawl torture --seconds 60 --agents 16\n"
		"pawl torture --store sqlite:/srv/queues/team.db --only claims --agents 64 --rounds 1000\n"
		"pawl torture --driver ./my-driver --kills 20\n"
		"pawl torture --check history.jsonl",
	.see = "doctor",
	.params = params,
	.args_size = sizeof(struct torture_args),
	.flags = C_LOCAL | C_WRITE | C_REPORT,
	.run = torture_cmd_run,
	.show = torture_cmd_show,
};

/* --- the plan -------------------------------------------------------------------------------------- */

static bool torture_cmd_given(const struct torture_args *t, const char *name)
{
	for (size_t i = 0; params[i].name; i++)
		if (!strcmp(params[i].name, name))
			return t->args.seen >> i & 1;
	return false;
}

static void torture_cmd_settle(const struct torture_args *t, const char *name, int64_t *value,
			       int64_t otherwise)
{
	if (!torture_cmd_given(t, name))
		*value = otherwise;
}

/* Through a server, torture neither changes clocks nor loses answers: a server has its own clock
 * and its own answers. */
static void settle_all(struct torture_args *t, bool served)
{
	bool apart = served || t->driver.n;
	bool mix = !t->only.n || str_is(t->only, "mix");
	int64_t seconds;

	torture_cmd_settle(t, "agents", &t->agents, 8);
	torture_cmd_settle(t, "tasks", &t->tasks, 40);
	torture_cmd_settle(t, "seconds", &t->ms, 10000);
	torture_cmd_settle(t, "rounds", &t->rounds, 100);
	torture_cmd_settle(t, "seed", &t->seed, random_below(1000000000));
	seconds = mix ? (t->ms + 999) / 1000 : 0;
	torture_cmd_settle(t, "kills", &t->kills, 2 * seconds);
	torture_cmd_settle(t, "stops", &t->stops, seconds);
	torture_cmd_settle(t, "skews", &t->skews, apart ? 0 : seconds);
	torture_cmd_settle(t, "lost", &t->lost,
			   t->driver.n      ? (mix ? 50 : 0)
			   : mix && !served ? 200
					    : 0);
	torture_cmd_settle(t, "outage", &t->outage, t->driver.n ? 30000 : 3000);
	torture_cmd_settle(t, "lease", &t->lease, 1000);
}

static struct torture_plan plan_of(const struct session *s, const struct torture_args *t)
{
	bool claims = str_is(t->only, "claims");

	return (struct torture_plan){
		.uri = s->client.conn.config.uri,
		.pawl = STR(PAWL_VERSION),
		.mode = claims                     ? TORTURE_CLAIMS
			: str_is(t->only, "drain") ? TORTURE_DRAIN
						   : TORTURE_MIX,
		.agents = t->agents,
		.tasks = claims ? 1 : t->tasks,
		.rounds = claims ? t->rounds : 0,
		.ms = t->ms,
		.calls = t->calls,
		.kills = t->kills,
		.stops = t->stops,
		.skews = t->skews,
		.lost = t->lost,
		.outage_ms = t->outage,
		.driver = t->driver,
		.lease_ms = t->lease,
		.seed = (uint64_t)t->seed,
		.timeout_ms = t->driver.n ? t->outage : client_timeout(&s->client, 0),
		.relaxed = !t->driver.n &&
			   str_is(settings_text(&s->client.conn.settings, "durability"), "normal"),
		.history = t->history.n ? t->history.p : NULL,
		.access = &s->client.conn.config,
	};
}

static bool in_one_process(struct str uri)
{
	while (str_cut_prefix(&uri, STR("fault+")))
		;
	return str_starts(uri, STR("mem:"));
}

static enum result refuse_driver(struct session *s, const struct torture_args *t, struct reply *out)
{
	if (!t->driver.n && torture_cmd_given(t, "lease"))
		return run_fail(USAGE, STR("--lease can be used only with --driver"),
				STR("a run on a store chooses its leases itself"), out);
	if (!t->driver.n)
		return SUCCESS;
	if (s->client.said.store.n || t->remove.n)
		return run_fail(
			USAGE,
			STR("--driver cannot be used with --store or --remove: it tests another queue"),
			STR("name the queue in the driver's command"), out);
	if (t->skews)
		return run_fail(
			USAGE, STR("--skews cannot be used with --driver, which has its own clock"),
			STR(""), out);
	if (t->lease < 1 || t->lease > 3600000)
		return run_fail(USAGE, STR("--lease must be more than 0 and at most 1h"), STR(""),
				out);
	return SUCCESS;
}

static enum result refuse_store(struct session *s, const struct torture_args *t, struct reply *out)
{
	if (!s->client.conn.config.uri.n)
		return run_fail(MISCONFIGURED,
				STR("there is no queue here, so torture has no store to test"),
				STR("name a store: pawl torture --store sqlite:PATH"), out);
	if (in_one_process(s->client.conn.config.uri))
		return run_fail(
			MISCONFIGURED,
			STR("a mem: store lives in one process; torture needs a store that processes share"),
			STR("pawl torture --store sqlite:PATH"), out);
	if (remote_is(s->client.conn.config.uri) && (t->skews || t->lost))
		return run_fail(
			USAGE,
			STR("--skews and --lost cannot be used through a server, which has its own clock and answers"),
			STR("use them with the server's own store, on its machine"), out);
	return SUCCESS;
}

/* Checks the arguments; SUCCESS: they are valid. */
static enum result torture_cmd_refuse(struct session *s, const struct torture_args *t,
				      struct reply *out)
{
	enum result code = refuse_driver(s, t, out);

	if (code == SUCCESS && !t->driver.n)
		code = refuse_store(s, t, out);
	if (code != SUCCESS)
		return code;
	if (str_is(t->only, "claims") && (t->kills || t->stops))
		return run_fail(
			USAGE,
			STR("--kills and --stops cannot be used with --only claims: in a round all agents wait for each other"),
			STR("use them with --only drain or with the mix"), out);
	if (t->history.n && fs_exists(t->history.p))
		return run_fail(USAGE, arena_printf(s->arena, "%s exists already", t->history.p),
				STR("name a new file"), out);
	if (t->history.n && access(arena_cstr(s->arena, fs_dirname(t->history)), W_OK | X_OK))
		return run_fail(USAGE,
				arena_printf(s->arena, "cannot create %s: %s", t->history.p,
					     strerror(errno)),
				STR("name a file in a folder that you may write to"), out);
	if (torture_cmd_given(t, "seconds") && t->ms < 1)
		return run_fail(USAGE, STR("--seconds must be more than 0"), STR(""), out);
	return SUCCESS;
}

/* --- progress -------------------------------------------------------------------------------------- */

static void torture_cmd_progress(void *ctx, const struct torture_figures *f, const char *doing)
{
	struct session *s = ctx;
	int64_t ms = f->ms ? f->ms : 1;
	char line[200], left[40] = "";

	if (f->left_ms >= 0 && !strcmp(doing, "working"))
		snprintf(left, sizeof(left), "%" PRId64 " s left, ", (f->left_ms + 999) / 1000);
	snprintf(line, sizeof(line),
		 "%s: %s%" PRId64 " calls (%" PRId64 "/s), %" PRId64 " kills, %" PRId64
		 " stops, %" PRId64 " lost answers, %" PRId64 " violations",
		 doing, left, f->calls, f->calls * 1000 / ms, f->kills, f->stops, f->lost, f->seen);
	s->progress(s, str_c(line));
}

/* --- the answer ------------------------------------------------------------------------------------ */

static json_t *torture_cmd_refusals(const struct torture_figures *f)
{
	json_t *o = json_object();

	for (int code = 1; code < TORTURE_CODES; code++)
		if (f->codes[code] && result_known(code))
			json_object_set_new(o, result_name((enum result)code),
					    json_integer(f->codes[code]));
	return o;
}

static void add_plan(json_t *o, const struct torture_plan *p)
{
	static const char *const modes[] = { "mix", "drain", "claims" };

	json_object_set_new(o, "way", json_string(modes[p->mode]));
	json_object_set_new(o, "agents", json_integer(p->agents));
	if (p->mode == TORTURE_CLAIMS)
		json_object_set_new(o, "rounds", json_integer(p->rounds));
	else
		json_object_set_new(o, "tasks", json_integer(p->tasks));
	json_object_set_new(o, "seed", json_integer((json_int_t)p->seed));
}

static void add_figures(json_t *o, const struct torture_figures *f)
{
	const struct {
		const char *name;
		int64_t n;
	} counts[] = {
		{ "calls", f->calls },         { "accepted", f->accepted },
		{ "claims", f->claims },       { "done", f->done },
		{ "takeovers", f->takeovers }, { "kills", f->kills },
		{ "stops", f->stops },         { "skews", f->skews },
		{ "lost_answers", f->lost },   { "repeats", f->repeats },
	};
	double seconds = (double)(f->ms ? f->ms : 1) / 1000;

	json_object_set_new(o, "seconds", json_real(seconds));
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
		json_object_set_new(o, counts[i].name, json_integer(counts[i].n));
	json_object_set_new(o, "refused", torture_cmd_refusals(f));
	json_object_set_new(o, "calls_per_second",
			    json_integer((json_int_t)((double)f->calls / seconds)));
	json_object_set_new(o, "claims_per_second",
			    json_integer((json_int_t)((double)f->claims / seconds)));
	json_object_set_new(o, "longest_wait", json_real((double)f->longest_us / 1000000));
}

static void add_verdict(json_t *o, const struct proof_ops *proof, const struct torture_verdict *v,
			struct strs faults)
{
	json_t *found = json_object(), *list = json_array();

	for (int i = 0; i < CHECK_KINDS; i++)
		if (v->counts[i])
			json_object_set_new(found, proof->kind_name((enum check_kind)i),
					    json_integer(v->counts[i]));
	for (size_t i = 0; i < faults.n; i++)
		json_array_append_new(list, json_str(faults.v[i]));
	json_object_set_new(o, "checked", json_integer(v->calls));
	json_object_set_new(o, "unanswered", json_integer(v->unanswered));
	json_object_set_new(o, "undecided", json_integer(v->undecided));
	if (v->endless)
		json_object_set_new(o, "endless", json_integer(v->endless));
	json_object_set_new(o, "violations", json_integer(v->violations + (int64_t)faults.n));
	json_object_set_new(o, "found", found);
	json_object_set_new(o, "faults", list);
	if (v->violations)
		json_object_set_new(o, "excerpt", json_str(v->text));
}

/* The command that repeats this run. */
static struct str command_line(const struct torture_plan *p, struct arena *a)
{
	static const char *const modes[] = { "mix", "drain", "claims" };
	struct buf b = BUF_MAX(8192);
	struct str out;

	if (p->driver.n)
		buf_addf(&b, "pawl torture --driver %s --lease %" PRId64 "ms",
			 arena_cstr(a, store_word(a, p->driver)), p->lease_ms);
	else
		buf_addf(&b, "pawl torture --store %s",
			 arena_cstr(a, store_word(a, uri_shown(a, p->uri))));
	buf_addf(&b, " --only %s --agents %" PRId64, modes[p->mode], p->agents);
	if (p->mode == TORTURE_CLAIMS)
		buf_addf(&b, " --rounds %" PRId64, p->rounds);
	else
		buf_addf(&b, " --tasks %" PRId64, p->tasks);
	if (p->mode == TORTURE_MIX)
		buf_addf(&b, " --seconds %" PRId64 "ms", p->ms);
	if (p->calls)
		buf_addf(&b, " --calls %" PRId64, p->calls);
	buf_addf(&b,
		 " --kills %" PRId64 " --stops %" PRId64 " --skews %" PRId64 " --lost %" PRId64
		 " --seed %" PRIu64,
		 p->kills, p->stops, p->skews, p->lost, p->seed);
	out = arena_str(a, buf_str(&b));
	buf_free(&b);
	return out;
}

static enum result torture_cmd_broken(struct session *s, bool driver,
				      const struct torture_verdict *v, struct strs faults,
				      struct str hint, struct reply *out)
{
	int64_t n = v->violations + (int64_t)faults.n;

	return run_fail(MISCONFIGURED,
			arena_printf(s->arena, "the %s broke its promise: %" PRId64 " violation%s",
				     driver ? "driver's queue" : "store", n, n == 1 ? "" : "s"),
			hint, out);
}

static void warn_of_undecided(struct session *s, const struct torture_verdict *v, struct reply *out)
{
	if (v->undecided)
		reply_warn(
			out,
			arena_printf(
				s->arena,
				"torture gave up the search for an order that explains every answer for %" PRId64
				" famil%s of tasks, and made all other checks; search a shorter run or one with fewer lost answers",
				v->undecided, v->undecided == 1 ? "y" : "ies"),
			s->arena);
}

static void warn_of_endless(struct session *s, const struct torture_verdict *v, struct reply *out)
{
	if (v->endless)
		reply_warn(
			out,
			arena_printf(
				s->arena,
				"the history does not show the end of %" PRId64
				" task%s: torture did not check whether %s kept every acknowledged "
				"change (lost), nor for any task whether it can still be finished (stuck)",
				v->endless, v->endless == 1 ? "" : "s",
				v->endless == 1 ? "it" : "they"),
			s->arena);
}

/* --- running --------------------------------------------------------------------------------------- */

static enum result check_file(struct session *s, const struct proof_ops *proof, struct str file,
			      struct reply *out)
{
	struct torture_verdict v;
	struct answer ans = { 0 };
	enum result code = proof->check(file.p, &v, &ans, s->arena);
	json_t *o;

	if (code != SUCCESS)
		return run_answer(&ans, out);
	if (v.violations)
		code = torture_cmd_broken(s, false, &v, (struct strs){ 0 }, STR(""), out);
	o = json_object();
	json_object_set_new(o, "history", json_str(file));
	json_object_set_new(o, "seed", json_integer((json_int_t)v.seed));
	add_verdict(o, proof, &v, (struct strs){ 0 });
	json_object_set_new(reply_more(out), "torture", o);
	warn_of_undecided(s, &v, out);
	warn_of_endless(s, &v, out);
	return code;
}

static json_t *report_json(const struct proof_ops *proof, const struct torture_plan *p,
			   const struct torture_report *r)
{
	json_t *o = json_object();

	add_plan(o, p);
	add_figures(o, &r->figures);
	add_verdict(o, proof, &r->verdict, r->faults);
	if (p->driver.n) {
		json_object_set_new(o, "driver", json_str(p->driver));
	} else {
		json_object_set_new(o, "queue", json_str(r->queue));
		json_object_set_new(o, "removed", json_boolean(r->removed));
	}
	if (r->interrupted)
		json_object_set_new(o, "interrupted", json_true());
	if (r->history.n)
		json_object_set_new(o, "history", json_str(r->history));
	return o;
}

static enum result torture_cmd_torture(struct session *s, const struct proof_ops *proof,
				       const struct torture_plan *p, struct reply *out)
{
	struct torture_report r;
	struct answer ans = { 0 };
	enum result code = proof->torture(p, &r, &ans, s->arena);
	bool ran = code == SUCCESS;

	if (s->progress)
		s->progress(s, STR(""));
	if (!ran)
		run_answer(&ans, out);
	else if (r.verdict.violations || r.faults.n)
		code = torture_cmd_broken(
			s, p->driver.n, &r.verdict, r.faults,
			arena_printf(s->arena, "to make the same choices again: %s",
				     arena_cstr(s->arena, command_line(p, s->arena))),
			out);
	if (ran) {
		json_object_set_new(reply_more(out), "torture", report_json(proof, p, &r));
		warn_of_undecided(s, &r.verdict, out);
	}
	if (!p->driver.n && !r.removed && r.stayed.n)
		proof_warn(s, p, r.queue, r.stayed, out);
	return code;
}

static enum result torture_cmd_run(struct session *s, struct args *a, struct reply *out)
{
	struct torture_args *t = (struct torture_args *)a;
	struct client_options said = s->client.said;
	struct torture_plan plan;
	struct answer ans = { 0 };
	const struct proof_ops *proof = proof_load(&ans, s->arena);
	enum result code;

	if (!proof)
		return run_answer(&ans, out);
	if (t->check.n)
		return check_file(s, proof, t->check, out);
	if (!t->driver.n && (client_init(&s->client, &said, &ans, s->arena) != SUCCESS ||
			     trust_check(&s->client.conn.trust, &ans, s->arena) != SUCCESS))
		return run_answer(&ans, out);
	settle_all(t, remote_is(s->client.conn.config.uri));
	code = torture_cmd_refuse(s, t, out);
	if (code != SUCCESS)
		return code;
	plan = plan_of(s, t);
	if (t->remove.n) {
		if (proof->remove(&plan, t->remove, &ans, s->arena) != SUCCESS)
			return run_answer(&ans, out);
		return SUCCESS;
	}
	if (s->progress) {
		plan.progress = torture_cmd_progress;
		plan.ctx = s;
	}
	return torture_cmd_torture(s, proof, &plan, out);
}

/* --- showing --------------------------------------------------------------------------------------- */

static void show_count(struct view *v, const json_t *o, const char *key, const char *name)
{
	if (json_object_get(o, key))
		view_text(v, PLAIN, "%-22s %12" PRId64 "\n", name, view_int(o, key));
}

static void show_seconds(struct view *v, const json_t *o, const char *key, const char *name)
{
	if (json_object_get(o, key))
		view_text(v, PLAIN, "%-22s %12.3f s\n", name,
			  json_real_value(json_object_get(o, key)));
}

static void show_refused(struct view *v, const json_t *o)
{
	const char *code;
	json_t *n;

	json_object_foreach((json_t *)o, code, n)
		view_text(v, PLAIN, "  %-20s %12" JSON_INTEGER_FORMAT "\n", code,
			  json_integer_value(n));
}

static void show_faults(struct view *v, const json_t *o)
{
	struct str excerpt = json_get(o, "excerpt"), history = json_get(o, "history");
	size_t i;
	const json_t *f;

	json_array_foreach(json_object_get(o, "faults"), i, f) {
		view_text(v, RED, "violation: ");
		view_data(v, PLAIN, json_text(f));
		view_text(v, PLAIN, "\n");
	}
	if (excerpt.n)
		view_lines(v, excerpt, 0);
	if (history.n) {
		view_text(v, PLAIN, "history: ");
		view_data(v, PLAIN, history);
		view_text(v, PLAIN, "\n");
	}
}

static void torture_cmd_show(const struct reply *r, struct view *v)
{
	static const char *const counts[][2] = {
		{ "agents", "agents" },
		{ "tasks", "tasks" },
		{ "rounds", "rounds" },
		{ "calls", "calls" },
		{ "calls_per_second", "calls per second" },
		{ "claims_per_second", "locks per second" },
		{ "accepted", "accepted" },
		{ "claims", "locks granted" },
		{ "done", "completions" },
		{ "takeovers", "claims after expiry" },
		{ "kills", "kills" },
		{ "stops", "stops past the lease" },
		{ "skews", "wrong clocks" },
		{ "lost_answers", "lost answers" },
		{ "repeats", "repeats recognised" },
		{ "checked", "calls checked" },
		{ "unanswered", "without an answer" },
		{ "undecided", "families undecided" },
		{ "endless", "tasks without an end" },
	};
	const json_t *o = json_object_get(r->more, "torture");
	bool bad = view_int(o, "violations") > 0;

	if (!o)
		return;
	if (!v->quiet) {
		for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
			show_count(v, o, counts[i][0], counts[i][1]);
		show_seconds(v, o, "seconds", "time");
		show_seconds(v, o, "longest_wait", "longest wait");
		view_text(v, PLAIN, "%s", json_object_get(o, "refused") ? "refused\n" : "");
		show_refused(v, json_object_get(o, "refused"));
		show_count(v, o, "seed", "seed");
		view_text(v, bad ? RED : GREEN, "%-22s %12" PRId64 "\n", "violations",
			  view_int(o, "violations"));
		if (json_object_get(o, "interrupted"))
			view_text(v, YELLOW,
				  "interrupted: only the calls up to then are checked\n");
	}
	show_faults(v, o);
}

#include "sim.h"

#include "proof/check/checker.h"

#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

const char *sim_store = "mem:";

/* --- clocks -------------------------------------------------------------------------------------- */

static int64_t passed_ms, wall_off;

static int64_t boot_ms(void)
{
	return 5000000 + passed_ms;
}

static int64_t wall_ms(void)
{
	return 1800000000000 + passed_ms + wall_off;
}

/* --- opening ------------------------------------------------------------------------------------- */

void script_add(struct script *s, struct sim_entry e)
{
	s->v = arena_grow(&s->arena, s->v, s->n, sizeof(*s->v));
	s->v[s->n++] = e;
}

void script_free(struct script *script)
{
	arena_free(&script->arena);
	*script = (struct script){ 0 };
}

bool sim_wrong(struct sim *s, const char *fmt, ...)
{
	char text[700];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	buf_adds(&s->why, str_c(text));
	return false;
}

/* {n} in the URI stands for the number of the run. */
static void set_uri(struct sim *s)
{
	static unsigned runs;
	const char *at = strstr(sim_store, "{n}");

	if (at)
		snprintf(s->uri, sizeof(s->uri), "%.*s%u%s", (int)(at - sim_store), sim_store,
			 ++runs, at + 3);
	else
		snprintf(s->uri, sizeof(s->uri), "%s", sim_store);
}

/* Removes a store that only this run used. */
static void remove_files(const struct sim *s)
{
	static const char *const endings[] = { "", "-wal", "-shm", "-gate" };
	const char *path = strchr(s->uri, ':') + 1;
	char name[sizeof(s->uri) + 8];

	for (size_t i = 0; strstr(sim_store, "{n}") && i < 4; i++) {
		snprintf(name, sizeof(name), "%s%s", path, endings[i]);
		(void)unlink(name);
	}
}

static void name_guards(struct model_world *w)
{
	for (int i = 1; i < MODEL_GUARDS; i++)
		(void)model_name(w, MODEL_TASK, model_guard(i));
}

static void open_alone(struct sim *s, const struct policy *policy, size_t requests)
{
	s->alone_w = model_world_new(&s->arena, policy, false);
	(void)model_name(s->alone_w, MODEL_TASK, ALONE);
	name_guards(s->alone_w);
	s->alone = model_new(s->alone_w, &s->arena, 0, (uint32_t)requests);
}

static struct str pass_of(void *ctx, enum typed kind, struct arena *a)
{
	(void)kind;
	(void)a;
	return ((struct sim *)ctx)->pass;
}

bool sim_follows_wall(void)
{
	return strncmp(sim_store, "git:", 4) == 0;
}

void sim_open(struct sim *s, const struct script *script, size_t requests)
{
	const struct policy *policy = &script->policy;
	struct queue_config config = {
		.opt.queue = STR("sim"),
		.policy = *policy,
		.opt.timeout_ms = 20000,
		.opt.relaxed = true,
		.opt.who = STR("sim"),
		.opt.wall = wall_ms,
		.opt.boot = boot_ms,
		.opt.own_time = true,
		.pass = pass_of,
		.pass_ctx = s,
		.impatient = true,
	};
	struct answer ans = { 0 };

	*s = (struct sim){ .old_epoch = -1,
			   .claim_creates = policy->claim_creates,
			   .why = BUF_MAX(1 << 16) };
	wall_off = passed_ms = 0;
	set_uri(s);
	config.uri = str_c(s->uri);
	if (queue_open(&s->q, &config, STORE_CREATE, &ans, &s->arena) != SUCCESS) {
		fprintf(stderr, "sim: cannot open %s: %.*s\n", s->uri, STRF(ans.message));
		exit(2);
	}
	s->now = s->begun = queue_now(s->q);
	s->epoch = s->now - boot_ms();
	s->w = model_world_new(&s->arena, policy, true);
	name_guards(s->w);
	s->m = model_new(s->w, &s->arena, SIM_TASKS - MODEL_GUARDS, (uint32_t)requests);
	if (script->alone)
		open_alone(s, policy, requests);
}

void sim_close(struct sim *s)
{
	queue_close(s->q);
	remove_files(s);
	buf_free(&s->why);
	arena_free(&s->call);
	arena_free(&s->arena);
}

/* --- steps --------------------------------------------------------------------------------------- */

static bool waits(const struct model_task *t, int64_t now)
{
	return t->lock.expires_at > now || (t->status == READY && t->not_before > now) ||
	       (t->status == IN_PROGRESS && t->free_at > now);
}

/* Is there no lock, no delayed task and no kept answer? */
static bool idle(const struct model *m, int64_t now)
{
	for (uint32_t i = 1; i < m->n_tasks; i++)
		if (waits(model_task(m, i), now))
			return false;
	for (uint32_t i = 1; i < m->n_kept; i++)
		if (model_kept(m, i)->until > now)
			return false;
	return true;
}

/* Time went back. A moment that had passed may stay passed or come again; the contract leaves it
 * open. */
static bool due_twice(const struct model *m, int64_t from, int64_t to)
{
	int64_t at[2];

	return from < to && model_times(m, from, to, at, 2) > 1;
}

/*
 * The store's time follows the boot clock. It may take the wall clock's time only if nothing in the
 * store waits. A call that writes nothing may have seen the new time without recording it.
 */
static bool check_clock(struct sim *s, const struct request *rq, int64_t now)
{
	int64_t epoch = now - boot_ms(), was = s->epoch;
	bool may_set = !(op_flags(rq->op) & OP_READS) && now == wall_ms() &&
		       idle(s->m, s->epoch + boot_ms());

	s->now = now;
	if (epoch == s->epoch)
		return true;
	if (epoch != s->old_epoch && !may_set)
		return sim_wrong(s, "the store's time is %lld ms off", (long long)(epoch - was));
	s->epoch = epoch;
	if (epoch == s->old_epoch)
		s->old_epoch = -1;
	else if (s->old_epoch < 0)
		s->old_epoch = was;
	for (size_t i = 0; i < SIM_TASKS; i++)
		s->tasks[i].token = 0; /* no lock was held */
	s->over |= due_twice(s->m, now, was + boot_ms());
	return true;
}

static void tell(struct sim *s, const struct sim_entry *e, const struct answer *ans)
{
	if (!s->tell)
		return;
	fputs("  ", s->tell);
	entry_print(s->tell, e);
	if (e->kind == ENTRY_CALL)
		fprintf(s->tell, "\n      -> %s at %lld%s", result_name(ans->code),
			(long long)(ans->now - s->begun), ans->repeated ? ", repeated" : "");
	if (e->kind == ENTRY_CALL && ans->task)
		fprintf(s->tell, ": %.*s %s, fence %lld, version %lld%s%.*s", STRF(ans->task->id),
			status_name(ans->task->status), (long long)ans->task->fence,
			(long long)ans->task->version, ans->task->lock.holder.n ? ", held by " : "",
			STRF(ans->task->lock.holder));
	fputc('\n', s->tell);
}

/* --- one task alone, as the history checker models it ----------- */

static bool is_alone(const struct task *t)
{
	return t && str_eq_nocase(t->id, ALONE);
}

static int64_t alone_status(const struct model_world *w, const struct model *m)
{
	return model_task(m, model_find(w, MODEL_TASK, ALONE))->status;
}

/* The outcomes that only the whole queue knows: was the task taken, or sent to Needs Help on the
 * way? */
static struct model_choice choose(const struct sim *s, const struct answer *ans)
{
	bool helped = alone_status(s->alone_w, s->alone) == IN_PROGRESS &&
		      alone_status(s->w, s->m) == NEEDS_HELP;

	return (struct model_choice){ .took = is_alone(ans->task), .swept = helped };
}

static bool do_alone(struct sim *s, const struct request *rq, const struct answer *ans)
{
	struct model_answer want;
	struct model_call c;

	if (rq->id.n ? !str_eq_nocase(rq->id, ALONE) && !model_is_guard(rq->id)
		     : rq->op == OP_CREATE)
		return true;
	c = model_call_of(s->alone_w, rq);
	c.pass = model_name(s->alone_w, MODEL_TOKEN, s->pass);
	model_step(s->alone_w, s->alone, &c, ans->now, choose(s, ans), &want);
	if (model_agrees(s->alone_w, s->alone, &c, &want, ans, &s->why))
		return true;
	return sim_wrong(s, " (seen from one task alone)");
}

/* A comment shows only in the event log. */
static bool said_something(const struct model_answer *want, const struct request *rq)
{
	return rq->op == OP_COMMENT && want->code == SUCCESS && !want->repeated;
}

static bool do_call(struct sim *s, const struct sim_entry *e, struct answer *ans)
{
	const struct request *rq = e->rq;
	struct model_call c = model_call_of(s->w, rq);
	struct model_answer want;
	bool may_stray = !str_starts(str_c(s->uri), STR("mem:"));
	uint64_t before = may_stray ? model_hash(s->m) : 0;

	s->pass = e->pass;
	c.pass = model_name(s->w, MODEL_TOKEN, s->pass);
	arena_free(&s->call);
	queue_call(s->q, rq, ans, &s->call);
	s->n_calls++;
	if (!check_clock(s, rq, ans->now))
		return false;
	if (s->over)
		return true;
	model_step(s->w, s->m, &c, ans->now, (struct model_choice){ 0 }, &want);
	if (may_stray && (model_hash(s->m) != before || said_something(&want, rq)))
		s->old_epoch = -1; /* the new time was recorded as well */
	s->overrides += want.overrode && want.code == SUCCESS && !want.repeated;
	return model_agrees(s->w, s->m, &c, &want, ans, &s->why) &&
	       (!s->alone || do_alone(s, rq, ans)) && watch_call(s, &c, ans);
}

bool sim_do(struct sim *s, const struct sim_entry *e, struct answer *ans)
{
	bool right = true;

	if (e->kind == ENTRY_PASS)
		passed_ms += e->ms;
	else if (e->kind == ENTRY_JUMP)
		wall_off += e->ms;
	else
		right = do_call(s, e, ans);
	tell(s, e, ans);
	return right;
}

/* --- the end ------------------------------------------------------------------------------------- */

static bool ask(struct sim *s, enum op op, struct str id)
{
	struct request rq = { .op = op };
	struct answer ans = { 0 };

	if (id.n)
		GIVE(&rq, id, id);
	if (op == OP_NEXT)
		GIVE(&rq, explain, 1);
	if (!sim_do(s, &(struct sim_entry){ .kind = ENTRY_CALL, .rq = &rq, .note = "at the end" },
		    &ans))
		return false;
	if (s->history && op == OP_SHOW)
		history_final(s->history, id, ans.now, ans.task);
	return true;
}

/* The event log must agree with the records, too. */
static bool audit_log(struct sim *s)
{
	const struct audit_plan plan = { .queue = s->q };
	struct audit_report found;
	struct answer ans = { 0 };

	arena_free(&s->call);
	if (audit_queue(&plan, &found, &ans, &s->call) != SUCCESS)
		return sim_wrong(s, "audit: %.*s", STRF(ans.message));
	if (found.violations)
		return sim_wrong(s, "audit: line %lld, %.*s: %.*s",
				 (long long)found.findings[0].line, STRF(found.findings[0].task),
				 STRF(found.findings[0].text));
	return true;
}

bool sim_end(struct sim *s)
{
	static const enum op whole[] = { OP_LIST, OP_LOCKS, OP_OVERVIEW, OP_ID_PEEK,
					 OP_NEXT, OP_TYPED, OP_EMERGENCY };

	for (size_t i = 0; i < sizeof(whole) / sizeof(*whole); i++)
		if (!ask(s, whole[i], STR("")))
			return false;
	for (uint32_t i = MODEL_GUARDS; i <= model_count(s->w, MODEL_TASK); i++)
		if (!ask(s, OP_SHOW, model_text(s->w, MODEL_TASK, i)))
			return false;
	return watch_end(s) && audit_log(s);
}

bool sim_run(const struct script *script, FILE *to, struct buf *why, size_t *done)
{
	struct sim s;
	struct answer ans;
	bool right = true;

	sim_open(&s, script, script->n);
	s.tell = to;
	for (*done = 0; right && !s.over && *done < script->n; ++*done)
		right = sim_do(&s, &script->v[*done], &ans);
	s.tell = NULL;
	if (right && !s.over)
		right = sim_end(&s);
	if (why)
		buf_adds(why, buf_str(&s.why));
	sim_close(&s);
	return right;
}

/*
 * Collects the parts of the overview, each by a read of its own. A part that cannot be read becomes
 * a warning; the numbers are shown anyway.
 */
#include "cmd/cmd.h"

#include "base/when.h"
#include "core/lease.h"
#include "core/typed.h"

#define PEOPLE_MAX 10  /* tasks that wait for a person; `list` shows all */
#define AGENTS_MAX 100 /* agents in one answer */
#define FAILED_MAX \
	5000 /* with more Failed tasks, they are only counted: to leave out archived ones, each record must be read */
#define FOR_PEOPLE (STATUS_BIT(REVIEW) | STATUS_BIT(BLOCKED) | STATUS_BIT(NEEDS_HELP))

#define EVENTS_MAX \
	5000 /* of the last hour's events, the newest ones are read: an import can make any number */

static void overview_set(json_t *o, const char *name, struct str text)
{
	if (text.n)
		json_object_set_new(o, name, json_str(text));
}

static void set_time(json_t *o, const char *name, int64_t ms, struct arena *a)
{
	if (ms)
		overview_set(o, name, when_text(a, ms));
}

/* --- tasks that wait for a person ------------------------------------------------------------------ */

/* The commands that move the task on. */
static json_t *actions_on(const struct task *t, struct arena *a)
{
	json_t *list = json_array();
	const char *command = t->status == REVIEW   ? "approve"
			      : t->status == FAILED ? "retry"
						    : "unblock";

	json_array_append_new(list,
			      json_str(arena_printf(a, "pawl %s %.*s", command, STRF(t->id))));
	if (t->status == REVIEW)
		json_array_append_new(
			list,
			json_str(arena_printf(a, "pawl rework %.*s --reason TEXT", STRF(t->id))));
	return list;
}

static json_t *person_json(const struct task *t, struct arena *a)
{
	json_t *o = json_object();

	overview_set(o, "task", t->id);
	overview_set(o, "title", t->title);
	overview_set(o, "status", str_c(status_name(t->status)));
	overview_set(o, "agent", t->last_holder);
	set_time(o, "at", t->updated_at, a);
	overview_set(o, "text", t->status == REVIEW ? t->summary : t->blocker_reason);
	if (t->status == BLOCKED)
		overview_set(o, "unblock_action", t->unblock_action);
	json_object_set_new(o, "commands", actions_on(t, a));
	return o;
}

static enum result add_people(struct session *s, const struct answer *all, json_t *more)
{
	struct request list = { .op = OP_LIST };
	unsigned statuses = FOR_PEOPLE;
	json_t *people = json_array();
	struct answer ans = { 0 };

	if (all->counts[FAILED] <= FAILED_MAX)
		statuses |= STATUS_BIT(FAILED);
	GIVE(&list, statuses, statuses);
	GIVE(&list, view, VIEW_GROUPS);
	GIVE(&list, limit, PEOPLE_MAX);
	client_call(&s->client, &list, &ans);
	for (size_t i = 0; ans.code == SUCCESS && i < ans.n_tasks; i++)
		json_array_append_new(people, person_json(&ans.tasks[i], s->arena));
	json_object_set_new(more, "people", people);
	return ans.code;
}

/* --- agents ------------------------------------------------------------------------------------------ */

struct seen {
	struct str name, host, folder;
	const char *state;
	int64_t last, done;
	json_t *tasks;
};

struct agents {
	struct arena *arena;
	struct seen *v;
	size_t n;
};

static struct seen *agent_in(struct agents *x, struct str name)
{
	struct seen *s;

	for (size_t i = 0; i < x->n; i++)
		if (str_eq(x->v[i].name, name))
			return &x->v[i];
	x->v = arena_grow(x->arena, x->v, x->n, sizeof(*x->v));
	s = &x->v[x->n++];
	*s = (struct seen){ .name = name, .state = "idle" };
	return s;
}

const char *overview_state(const struct task *t, int64_t now)
{
	if (lease_abandoned(t, now) || t->lock.life == LIFE_DEAD)
		return "dead";
	if (!lease_live(&t->lock, now))
		return "idle";
	return t->status == BLOCKED ? "blocked" : "working";
}

/* A holder with several locks has the best of their states. */
static bool is_better(const char *state, const char *than)
{
	static const char *const order[] = { "working", "blocked", "dead", "idle" };
	const size_t n = sizeof(order) / sizeof(*order);
	size_t i = 0, k = 0;

	while (i < n && strcmp(order[i], state) != 0)
		i++;
	while (k < n && strcmp(order[k], than) != 0)
		k++;
	return i < k;
}

/* When did the holder last call? A heartbeat moves the expiry, so the expiry shows it. */
static int64_t last_call(const struct lock *l)
{
	int64_t renewed = l->expires_at - l->ttl;

	return l->expires_at && renewed > l->acquired_at ? renewed : l->acquired_at;
}

static void add_holder(struct agents *x, const struct task *t, struct str folder, int64_t now)
{
	struct seen *s = agent_in(x, t->lock.holder);
	const char *state = overview_state(t, now);

	if (!s->tasks)
		s->tasks = json_array();
	json_array_append_new(s->tasks, json_str(t->id));
	if (is_better(state, s->state))
		s->state = state;
	if (last_call(&t->lock) > s->last)
		s->last = last_call(&t->lock);
	s->host = t->lock.host;
	if (folder.n)
		s->folder = folder;
}

/* Does the event show an agent at work? Planning, reviewing and commenting do not: people do
 * that. */
static bool is_work(const struct event *e)
{
	static const char *const kinds[] = { "claimed",   "resumed", "released", "blocked",
					     "escalated", "review",  "done",     "failed",
					     "abandoned", NULL };

	for (const char *const *k = kinds; *k; k++)
		if (str_is(e->name, *k))
			return e->agent.n && !typed_of(e->task);
	return false;
}

static void add_worker(struct agents *x, const struct event *e)
{
	struct seen *s;

	if (!is_work(e))
		return;
	s = agent_in(x, e->agent);
	if (s->tasks) /* its locks say more */
		return;
	s->state = str_is(e->name, "abandoned") ? "dead" : "idle";
	if (!str_is(e->name, "abandoned") && e->at > s->last)
		s->last = e->at;
}

/* pawl's own names, such as "claude@vm/parser", contain the host and, in a linked worktree, its
 * name. Other names say nothing about the worktree, but the keyring may know its folder. */
static void add_place(json_t *o, const struct seen *s)
{
	struct str rest = s->name, host;

	(void)str_cut(&rest, '@');
	host = str_cut(&rest, '/');
	overview_set(o, "host", s->host.n ? s->host : host);
	if (rest.n && (!s->host.n || str_eq(host, s->host)))
		overview_set(o, "worktree", rest);
	else
		overview_set(o, "worktree", overview_worktree(s->folder));
	overview_set(o, "folder", s->folder);
}

static json_t *agents_json(const struct agents *x)
{
	json_t *list = json_array();

	for (size_t i = 0; i < x->n; i++) {
		const struct seen *s = &x->v[i];
		json_t *o = json_object();

		overview_set(o, "agent", s->name);
		overview_set(o, "state", str_c(s->state));
		json_object_set_new(o, "tasks", s->tasks ? s->tasks : json_array());
		add_place(o, s);
		set_time(o, "last_seen", s->last, x->arena);
		json_object_set_new(o, "done", json_integer(s->done));
		if (i < AGENTS_MAX)
			json_array_append_new(list, o);
		else
			json_decref(o);
	}
	return list;
}

/* --- the last hour ----------------------------------------------------------------------------------- */

static bool is_done(const struct event *e)
{
	return str_is(e->name, "done") || str_is(e->name, "approved");
}

static void count_done(struct agents *x, const struct answer *log, const struct event *e)
{
	struct str worker = period_worker(log, e);

	if (worker.n)
		agent_in(x, worker)->done++;
}

/* Counts leases that expired, although the log has no line for them yet. */
static int64_t count_lost(const struct answer *all, int64_t since)
{
	int64_t n = 0;

	for (size_t i = 0; i < all->n_tasks; i++)
		n += lease_abandoned(&all->tasks[i], all->now) &&
		     all->tasks[i].lock.expires_at >= since;
	return n;
}

static json_t *hour_json(struct agents *x, const struct answer *all, const struct answer *log,
			 int64_t since)
{
	int64_t done = 0, failed = 0, lost = count_lost(all, since);
	json_t *o = json_object();

	for (size_t i = 0; i < log->n_events; i++) {
		const struct event *e = &log->events[i];

		add_worker(x, e);
		failed += str_is(e->name, "failed");
		lost += str_is(e->name, "abandoned");
		if (!is_done(e))
			continue;
		done++;
		count_done(x, log, e);
	}
	set_time(o, "since", since, x->arena);
	json_object_set_new(o, "done", json_integer(done));
	json_object_set_new(o, "failed", json_integer(failed));
	json_object_set_new(o, "abandoned", json_integer(lost));
	return o;
}

static enum result add_agents(struct session *s, const struct answer *all,
			      const struct overview *places, json_t *more)
{
	struct agents x = { .arena = s->arena };
	struct request rq = { .op = OP_LOG };
	int64_t since = all->now - HOUR_MS;
	struct answer log = { 0 };

	for (size_t i = 0; i < all->n_tasks; i++)
		add_holder(&x, &all->tasks[i], places->folders[i], all->now);
	GIVE(&rq, since, since);
	GIVE(&rq, limit, EVENTS_MAX);
	client_call(&s->client, &rq, &log);
	if (log.n_events == EVENTS_MAX)
		since = log.events[0].at;
	if (log.code == SUCCESS)
		json_object_set_new(more, "last_hour", hour_json(&x, all, &log, since));
	json_object_set_new(more, "agents", agents_json(&x));
	return log.code;
}

/* --- worktrees --------------------------------------------------------------------------------------- */

struct str overview_worktree(struct str folder)
{
	size_t n = folder.n; /* length of the path before the name */

	while (n && folder.p[n - 1] != '/')
		n--;
	return str_n(str_p(folder) + n, folder.n - n);
}

struct search {
	const struct keyring *keys;
	const struct answer *all;
	struct overview *places;
};

static void check_one(void *ctx, const struct key_file *f)
{
	const struct search *x = ctx;

	for (size_t i = 0; !f->pending && i < x->all->n_tasks; i++) {
		const struct task *t = &x->all->tasks[i];

		if (f->fence == t->fence && str_eq_nocase(f->task, t->id) &&
		    str_eq(f->agent, t->lock.holder) && keyring_is_ours(x->keys, f))
			x->places->folders[i] = f->worktree;
	}
}

/* Locks do not name worktrees. The keyring does, for the agents of this user on this machine. */
static const struct overview *find_places(struct session *s, const struct answer *all)
{
	struct overview *o = arena_new(s->arena, struct overview);
	struct client *c = &s->client;
	struct search x = { .keys = &c->keyring, .all = all, .places = o };

	o->host = c->self.host;
	o->folder = c->keyring.worktree;
	o->folders = arena_array(s->arena, struct str, all->n_tasks + 1);
	if (all->n_tasks) {
		client_know_queue(c);
		(void)keyring_each(&c->keyring, check_one, &x);
	}
	return o;
}

/* Each part is a separate read. If one fails, the numbers are still right. */
void overview_tell(struct session *s, struct reply *out)
{
	const struct overview *places = find_places(s, &out->ans);
	json_t *more = reply_more(out);

	out->own = places;
	if (add_people(s, &out->ans, more) != SUCCESS)
		reply_warn(out, STR("the tasks that wait for a person could not be read"),
			   s->arena);
	if (add_agents(s, &out->ans, places, more) != SUCCESS)
		reply_warn(out, STR("the log of the last hour could not be read"), s->arena);
}

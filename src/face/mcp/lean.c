/*
 * Makes the object of an answer small: a model pays for each word of it, and reads it again with every later call.
 *
 * The limits are in tokens, of which one is four bytes here. test/mcp/lean_test.c has the table of them.
 */
#include "face/mcp/mcp.h"

#define TOKEN 4
#define CONTEXT (290 * TOKEN) /* comments, earlier attempts and changes by others */
#define ROWS (1030 * TOKEN)   /* the rows of a list */
#define RELATED (200 * TOKEN)
#define TEXT_SHOWN 8192 /* bytes of a description */
#define EXTRA_SHOWN 1024
#define REASON_SHOWN 200

static void strip(json_t *o, const char *const *names)
{
	for (; *names; names++)
		json_object_del(o, *names);
}

static void keep_only(json_t *o, const char *const *names)
{
	json_t *kept = json_object(), *v;

	for (; *names; names++)
		if ((v = json_object_get(o, *names)))
			json_object_set(kept, *names, v);
	json_object_clear(o);
	json_object_update(o, kept);
	json_decref(kept);
}

static size_t size(const json_t *o)
{
	return json_dumpb(o, NULL, 0, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));
}

/* A whole number of seconds is exact enough. */
static void round_up(json_t *o, const char *key)
{
	const json_t *v = json_object_get(o, key);

	if (json_is_real(v))
		json_object_set_new(o, key, json_integer((json_int_t)(json_real_value(v) + 0.999)));
}

/* At most n bytes of the text, never half a character. */
static struct str shortened(struct str s, size_t n)
{
	if (s.n <= n)
		return s;
	while (n && ((unsigned char)s.p[n] & 0xc0) == 0x80)
		n--;
	return str_n(s.p, n);
}

static bool cut_text(json_t *o, const char *key, size_t bytes, struct arena *a)
{
	struct str text = json_get(o, key);

	if (text.n <= bytes)
		return false;
	json_object_set_new(o, key,
			    json_str(arena_printf(a, "%.*s…", STRF(shortened(text, bytes)))));
	return true;
}

/* --- one task -------------------------------------------------------------------------------------- */

/* Cuts a long text, and says how to read the rest. */
static void limit_text(json_t *task, const char *key, struct arena *a)
{
	struct str text = json_get(task, key), head = shortened(text, TEXT_SHOWN);

	if (head.n == text.n)
		return;
	json_object_set_new(
		task, "cut",
		json_str(arena_printf(
			a, "%s: the first %zu of %zu bytes; show id=%.*s full=true has all", key,
			head.n, text.n, STRF(json_get(task, "id")))));
	json_object_set_new(task, key, json_str(head));
}

static void drop_defaults(json_t *task)
{
	if (str_is(json_get(task, "class"), class_name(STANDARD)))
		json_object_del(task, "class");
	if (!json_array_size(json_object_get(task, "labels")))
		json_object_del(task, "labels");
	if (!json_array_size(json_object_get(task, "depends")))
		json_object_del(task, "depends");
	if (!json_integer_value(json_object_get(task, "fence")))
		json_object_del(task, "fence");
	if (size(json_object_get(task, "extra")) > EXTRA_SHOWN)
		json_object_del(task, "extra");
}

/* The holder, if the lock is live. */
static void name_holder(json_t *to, const json_t *lock)
{
	if (!json_is_true(json_object_get(lock, "live")))
		return;
	json_object_set(to, "holder", json_object_get(lock, "holder"));
	if (json_object_get(lock, "expires_in"))
		json_object_set(to, "expires_in", json_object_get(lock, "expires_in"));
	round_up(to, "expires_in");
}

/* mine: the answer grants its lock, which says the rest. */
static void lean_whole(json_t *task, bool mine, struct arena *a)
{
	static const char *const hidden[] = { "attempts",         "abandoned",  "agent_run",
					      "created_at",       "updated_at", "started_at",
					      "first_started_at", "done_at",    "archived_at",
					      "version",          "lock",       NULL },
				 *const known[] = { "assignee", "holder", "last_holder", "fence",
						    NULL };

	if (!mine)
		name_holder(task, json_object_get(task, "lock"));
	strip(task, hidden);
	if (mine)
		strip(task, known);
	drop_defaults(task);
	limit_text(task, "description", a);
	limit_text(task, "acceptance", a);
	limit_text(task, "summary", a);
}

static void lean_lock(json_t *lock)
{
	static const char *const shown[] = {
		"holder", "fence", "live", "manual", "expires_in", NULL
	};

	if (!json_is_object(lock))
		return;
	keep_only(lock, shown);
	round_up(lock, "expires_in");
}

/* --- lists ----------------------------------------------------------------------------------------- */

/* Makes the rows fit: first with shorter texts, then with fewer rows. newest: the last rows count most. Returns
 * whether it had to. */
static bool fit(json_t *rows, const char *text, size_t most, bool newest, struct arena *a)
{
	static const size_t widths[] = { 120, 80, 60, 50, 40 };
	size_t n = size(rows), i;
	bool cut = n > most;
	json_t *row;

	for (size_t k = 0; n > most && k < sizeof(widths) / sizeof(*widths); k++) {
		json_array_foreach(rows, i, row)
			cut_text(row, text, widths[k], a);
		n = size(rows);
	}
	while (n > most && json_array_size(rows) > 1) {
		i = newest ? 0 : json_array_size(rows) - 1;
		n -= size(json_array_get(rows, i)) + 1;
		json_array_remove(rows, i);
	}
	return cut;
}

/* links: to other tasks, which is what the caller asked for. */
static void lean_tasks(json_t *rows, size_t most, bool links, struct arena *a)
{
	static const char *const plain[] = { "id", "status", "holder", "title", NULL },
				 *const linked[] = { "id",      "status", "holder", "parent",
						     "depends", "title",  NULL };
	json_t *t;
	size_t i;

	json_array_foreach(rows, i, t) {
		if (json_is_true(json_object_get(json_object_get(t, "lock"), "live")))
			json_object_set(t, "holder",
					json_object_get(json_object_get(t, "lock"), "holder"));
		if (!json_array_size(json_object_get(t, "depends")))
			json_object_del(t, "depends");
		keep_only(t, links ? linked : plain);
	}
	fit(rows, "title", most, false, a);
}

/* mine: the caller holds them. */
static void lean_locks(json_t *rows, bool mine, struct arena *a)
{
	static const char *const shown[] = { "task", "lock",       "status", "holder",
					     "live", "expires_in", "title",  NULL };
	json_t *l;
	size_t i;

	json_array_foreach(rows, i, l) {
		keep_only(l, shown);
		round_up(l, "expires_in");
		if (json_is_true(json_object_get(l, "live")))
			json_object_del(l, "live");
		if (mine)
			json_object_del(l, "holder");
	}
	fit(rows, "title", ROWS, false, a);
}

static bool lean_events(json_t *rows, size_t most, bool times, struct arena *a)
{
	static const char *const hidden[] = { "cursor", "at", NULL }, *const always[] = {
		"run", "fence", "task", NULL
	};
	json_t *e;
	size_t i;

	json_array_foreach(rows, i, e) {
		strip(e, times ? (const char *const[]){ "run", NULL } : always);
		if (!times)
			strip(e, hidden);
	}
	return fit(rows, "text", most, true, a);
}

/* --- comments, earlier attempts, changes by others -------------------------------------------------- */

static bool lean_comments(json_t *rows, size_t most, struct arena *a)
{
	static const char *const shown[] = { "agent", "text", NULL };
	bool cut = false;
	json_t *e;
	size_t i;

	json_array_foreach(rows, i, e)
		keep_only(e, shown);
	json_array_foreach(rows, i, e)
		cut |= cut_text(e, "text", most / 2, a);
	return fit(rows, "text", most, true, a) || cut;
}

/* An operator changed the task or paused the queue. Returns whether a text was cut. */
static bool lean_notices(json_t *o, struct arena *a)
{
	json_t *changed = json_object_get(o, "changed"), *paused = json_object_get(o, "paused");
	bool cut;

	json_object_del(changed, "at");
	json_object_del(paused, "since");
	cut = cut_text(changed, "reason", REASON_SHOWN, a);
	return cut_text(paused, "reason", REASON_SHOWN / 2, a) || cut;
}

/* These texts share one limit; the latest ones count most. */
static void lean_context(json_t *o, struct str id, struct arena *a)
{
	json_t *changed = json_object_get(o, "changed"), *back = json_object_get(o, "came_back"),
	       *history = json_object_get(back, "history"),
	       *comments = json_object_get(o, "comments");
	size_t room = CONTEXT;
	bool cut = lean_notices(o, a);

	cut |= cut_text(back, "why", REASON_SHOWN, a);
	cut |= cut_text(back, "last_reason", REASON_SHOWN, a);
	room -= size(changed) + size(json_object_get(back, "why")) +
		size(json_object_get(back, "last_reason"));
	cut |= lean_events(history, room / 2, false, a);
	cut |= lean_comments(comments, room - size(history), a);
	if (cut && id.n)
		json_object_set_new(
			o, "more",
			json_str(arena_printf(a, "show id=%.*s full=true has the whole texts",
					      STRF(id))));
	if (!json_array_size(comments))
		json_object_del(o, "comments");
}

/* --- the answer ------------------------------------------------------------------------------------ */

static bool has_texts(const json_t *o)
{
	static const char *const lists[] = { "tasks",    "held",      "locks",      "events",
					     "comments", "came_back", "candidates", "next",
					     "changed",  "report",    "stats",      NULL };

	if (json_object_get(json_object_get(o, "task"), "title"))
		return true;
	for (const char *const *name = lists; *name; name++) {
		const json_t *v = json_object_get(o, *name);

		if (json_array_size(v) || json_object_size(v))
			return true;
	}
	return false;
}

/* The members around one task: its lock, its surroundings and its calls. */
static void lean_around(json_t *o, bool whole, bool granted, struct arena *a)
{
	static const char *const named[] = { "id", "status", NULL };
	json_t *task = json_object_get(o, "task");

	if (json_is_object(task) && whole)
		lean_whole(task, granted, a);
	else if (json_is_object(task))
		keep_only(task, named);
	lean_lock(json_object_get(o, "lock"));
	lean_context(o, json_get(task, "id"), a);
}

/* A refusal is about a call, not about the task. */
static void lean_error(json_t *o, struct arena *a)
{
	static const char *const shown[] = { "ok", "error", "changed", "paused", "warnings", NULL };
	json_t *error = json_object_get(o, "error");

	keep_only(o, shown);
	json_object_del(error, "fault");
	(void)lean_notices(o, a);
	round_up(error, "wait");
}

static void lean_lists(json_t *o, const struct command *c, struct arena *a)
{
	/* of `status`: these are for the operator */
	static const char *const people[] = { "people", "agents", "last_hour", NULL };
	json_t *counts = json_object_get(o, "counts"), *v;
	const char *key;
	void *next;

	lean_tasks(json_object_get(o, "tasks"), ROWS, c == &cmd_tree || c == &cmd_graph, a);
	if (counts) /* of `status`: tasks; elsewhere held has locks */
		lean_tasks(json_object_get(o, "held"), ROWS, false, a);
	else
		lean_locks(json_object_get(o, "held"), true, a);
	lean_locks(json_object_get(o, "locks"), false, a);
	lean_events(json_object_get(o, "events"), ROWS, true, a);
	lean_tasks(json_object_get(o, "subtasks"), RELATED, false, a);
	lean_tasks(json_object_get(o, "depends_on"), RELATED, false, a);
	lean_tasks(json_object_get(o, "dependents"), RELATED, false, a);
	for (const char *const *name = people; *name; name++)
		json_object_del(o, *name);
	json_object_del(o, "attempts"); /* of show: the comments and the status say most of it */
	fit(json_object_get(o, "candidates"), "title", ROWS, false, a);
	json_object_foreach_safe(counts, next, key, v)
		if (!json_integer_value(v))
			json_object_del(counts, key);
}

void lean(json_t *o, const struct briefing *b, struct arena *a)
{
	const struct command *c = b->tool;
	json_t *next = json_object_get(o, "next");
	bool whole = b->own.task || c == &cmd_next || c == &cmd_show;

	if (str_is(json_get(o, "code"), result_name(SUCCESS)))
		json_object_del(o, "code");
	round_up(o, "wait");
	if (json_object_get(o, "error")) {
		lean_error(o, a);
		return;
	}
	lean_around(o, whole, b->own.task, a);
	if (json_is_object(next))
		lean_around(next, true, true, a);
	lean_lists(o, c, a);
	lean_strip(json_object_get(o, "emergency"));
	if (has_texts(o))
		json_object_set_new(o, "untrusted", json_string(UNTRUSTED));
}

void lean_strip(json_t *o)
{
	static const char *const hidden[] = { "pid",         "pid_start",   "boot_id",
					      "host",        "user",        "token",
					      "agent_run",   "created_at",  "updated_at",
					      "started_at",  "done_at",     "first_started_at",
					      "acquired_at", "attempts",    "abandoned",
					      "version",     "last_holder", NULL };
	json_t *v;
	const char *key;
	size_t i;

	strip(o, hidden);
	if (json_object_get(o, "id") && json_object_get(o, "is_locked"))
		json_object_del(o, "lock"); /* lock_holder and lock_expires_at say it */
	json_object_foreach(o, key, v)
		lean_strip(v);
	json_array_foreach(o, i, v)
		lean_strip(v);
}

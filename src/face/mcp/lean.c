/*
 * Makes the object of an answer small: a model pays for each word of it, and reads it again with every later call.
 *
 * The limits are in tokens, of which one is four bytes here. test/mcp/lean_test.c has the table of them. Sizes are
 * calculated, not measured: nothing is encoded before it is sent.
 */
#include "face/mcp/mcp.h"

#include "core/lease.h"
#include "format/answer.h"
#include "format/json_value.h"
#include "format/task.h"

#define TOKEN 4
#define CONTEXT (290 * TOKEN) /* comments, earlier attempts and changes by others */
#define ROWS (1030 * TOKEN)   /* the rows of a list */
#define RELATED (200 * TOKEN)
#define TEXT_SHOWN 8192 /* bytes of a description */
#define EXTRA_SHOWN 1024
#define REASON_SHOWN 200

/* --- sizes ------------------------------------------------------------------------------------------ */

static size_t text_size(struct str s)
{
	size_t n = s.n + 2;

	for (size_t i = 0; i < s.n; i++) {
		unsigned char c = (unsigned char)s.p[i];

		if (c == '"' || c == '\\' || (c >= '\b' && c <= '\r' && c != '\v'))
			n++;
		else if (c < ' ')
			n += 5;
	}
	return n;
}

/* The bytes of the value as compact JSON. */
static size_t size(const json_t *v)
{
	size_t n = 1, i;
	const char *key;
	const json_t *item;

	switch (v ? json_typeof(v) : JSON_NULL) {
	case JSON_OBJECT:
		json_object_foreach((json_t *)v, key, item)
			n += text_size(str_c(key)) + 1 + size(item) + 1;
		return json_object_size(v) ? n : 2;
	case JSON_ARRAY:
		json_array_foreach(v, i, item)
			n += size(item) + 1;
		return json_array_size(v) ? n : 2;
	case JSON_STRING:
		return text_size(json_text(v));
	case JSON_NULL:
		return v ? 4 : 0;
	default:
		return json_dumpb(v, NULL, 0, JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));
	}
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

static size_t cut_size(struct str s, size_t bytes)
{
	return text_size(shortened(s, bytes)) + (s.n > bytes ? strlen("…") : 0);
}

static bool cut_text(json_t *o, const char *key, size_t bytes, struct arena *a)
{
	struct str text = json_get(o, key), head = shortened(text, bytes);

	if (text.n <= bytes)
		return false;
	json_object_set_new(o, key, json_str(arena_printf(a, "%.*s…", STRF(head))));
	return true;
}

/* Makes the rows fit: first with shorter texts, then with fewer rows. newest: the last rows count most. Returns
 * whether it had to. */
static bool fit(json_t *rows, const char *text, size_t most, bool newest, struct arena *a)
{
	static const size_t widths[] = { 120, 80, 60, 50, 40 };
	size_t whole = size(rows), n = whole, k = 0, i;
	json_t *row;

	if (whole <= most)
		return false;
	for (; n > most && k < sizeof(widths) / sizeof(*widths); k++) {
		n = whole;
		json_array_foreach(rows, i, row) {
			struct str s = json_get(row, text);

			n -= text_size(s) - cut_size(s, widths[k]);
		}
	}
	json_array_foreach(rows, i, row)
		cut_text(row, text, widths[k - 1], a);
	while (n > most && json_array_size(rows) > 1) {
		i = newest ? 0 : json_array_size(rows) - 1;
		n -= size(json_array_get(rows, i)) + 1;
		json_array_remove(rows, i);
	}
	return true;
}

/* --- members ---------------------------------------------------------------------------------------- */

bool lean_name_in(const char *name, const char *const *list)
{
	while (*list && strcmp(*list, name) != 0)
		list++;
	return *list;
}

static void set_seconds(json_t *o, const char *key, int64_t ms)
{
	json_object_set_new(o, key, json_integer(ms > 0 ? (ms + 999) / 1000 : 0));
}

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

/* A whole number of seconds is exact enough. */
static void round_up(json_t *o, const char *key)
{
	const json_t *v = json_object_get(o, key);

	if (json_is_real(v))
		json_object_set_new(o, key, json_integer((json_int_t)(json_real_value(v) + 0.999)));
}

/* --- one task -------------------------------------------------------------------------------------- */

static json_t *named_task(const struct task *t)
{
	json_t *o = json_object();

	json_set_text(o, "id", t->id);
	if (t->status) /* a lock of the whole queue has none */
		json_object_set_new(o, "status", json_string(status_name(t->status)));
	return o;
}

/* A long text is cut; *cuts says so. */
static json_t *field_value(const struct field *f, const void *p, struct str *cuts, struct arena *a)
{
	static const char *const texts[] = { "description", "acceptance", "summary", NULL };
	struct str text = f->kind == FIELD_STR ? *(const struct str *)p : STR(""),
		   head = shortened(text, TEXT_SHOWN);
	json_t *v;

	if (head.n < text.n && lean_name_in(f->name, texts)) {
		*cuts = arena_printf(a, "%.*s%s%s: the first %zu of %zu bytes", STRF(*cuts),
				     cuts->n ? ", " : "", f->name, head.n, text.n);
		return json_str(head);
	}
	v = value_json(f, p, a);
	if (f->kind != FIELD_JSON || size(v) <= EXTRA_SHOWN)
		return v;
	json_decref(v);
	return NULL;
}

static bool is_default(const struct field *f, const void *p)
{
	switch (f->kind) {
	case FIELD_LIST:
		return !((const struct strs *)p)->n;
	case FIELD_STR:
	case FIELD_JSON:
		return !((const struct str *)p)->n;
	case FIELD_CLASS:
		return *(const int64_t *)p == STANDARD;
	default:
		return !*(const int64_t *)p && strcmp(f->name, "priority") != 0;
	}
}

/* mine: the answer grants its lock, which says the rest. */
static json_t *whole_task(const struct task *t, int64_t now, bool mine, struct arena *a)
{
	static const char *const hidden[] = { "attempts",    "abandoned",  "agent_run",
					      "created_at",  "updated_at", "started_at",
					      "done_at",     "version",    "first_started_at",
					      "archived_at", NULL },
				 *const known[] = { "assignee", "last_holder", "fence", NULL };
	struct str cuts = STR("");
	json_t *o = json_object();

	for (size_t i = 0; i < N_FIELDS; i++) {
		const struct field *f = &field_table[i];
		const void *p = field_of(f, t);
		json_t *v;

		if (f->shown == HIDDEN || is_default(f, p) || lean_name_in(f->name, hidden) ||
		    (mine && lean_name_in(f->name, known)) ||
		    (!t->status && f->shown == ALWAYS && f->kind != FIELD_STR))
			continue;
		v = field_value(f, p, &cuts, a);
		if (v)
			json_object_set_new(o, f->name, v);
	}
	if (!mine && lease_live(&t->lock, now)) {
		json_set_text(o, "holder", t->lock.holder);
		if (t->lock.expires_at)
			set_seconds(o, "expires_in", t->lock.expires_at - now);
	}
	if (cuts.n)
		json_object_set_new(o, "cut",
				    json_str(arena_printf(a, "%.*s; show id=%.*s full=true has all",
							  STRF(cuts), STRF(t->id))));
	return o;
}

static json_t *grant_row(const struct grant *g, int64_t now)
{
	json_t *o = json_object();

	json_object_set_new(o, "fence", json_integer(g->fence));
	set_seconds(o, "expires_in", g->expires_at - now);
	return o;
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
	size_t room, used;
	bool cut = lean_notices(o, a);

	cut |= cut_text(back, "why", REASON_SHOWN, a);
	cut |= cut_text(back, "last_reason", REASON_SHOWN, a);
	used = size(changed) + size(json_object_get(back, "why")) +
	       size(json_object_get(back, "last_reason"));
	room = used < CONTEXT ? CONTEXT - used : 0;
	cut |= lean_events(history, room / 2, false, a);
	used = size(history);
	cut |= lean_comments(comments, used < room ? room - used : 0, a);
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

/* The place of a member that brief.c fills in. */
static void reserve(json_t *o, const char *key, bool wanted)
{
	if (wanted)
		json_object_set_new(o, key, json_null());
}

static json_t *next_object(const struct answer *ans, struct arena *a)
{
	json_t *o;

	if (!ans->next)
		return json_null();
	o = json_object();
	json_object_set_new(o, "task", whole_task(ans->next, ans->now, true, a));
	json_object_set_new(o, "lock",
			    ans->next_lock ? grant_row(ans->next_lock, ans->now) : json_null());
	reserve(o, "comments", ans->next->attempts > 1 && ans->n_events);
	reserve(o, "came_back", ans->came_back);
	return o;
}

/* Tasks and locks get only the members that a model needs. */
static json_t *lean_task(const struct briefing *b, struct arena *a)
{
	const struct answer *ans = &b->reply->ans;
	bool mine = brief_granted(ans),
	     whole = mine || b->tool == &cmd_next || b->tool == &cmd_show;
	json_t *o = json_object();

	json_object_set_new(o, "ok", json_boolean(reply_ok(b->reply)));
	if (!reply_ok(b->reply))
		return o;
	if (ans->code != SUCCESS)
		json_object_set_new(o, "code", json_string(result_name(ans->code)));
	if (ans->task && whole)
		json_object_set_new(o, "task", whole_task(ans->task, ans->now, mine, a));
	else if (ans->task)
		json_object_set_new(o, "task", named_task(ans->task));
	reserve(o, "task", !ans->task && ans->code == NO_TASKS);
	if (ans->lock)
		json_object_set_new(o, "lock", grant_row(ans->lock, ans->now));
	if (ans->has_next && !b->no_next)
		json_object_set_new(o, "next", next_object(ans, a));
	return o;
}

json_t *lean_begin(const struct briefing *b, struct arena *a)
{
	struct reply rest = *b->reply;
	struct answer *ans = &rest.ans;
	json_t *o = lean_task(b, a), *more;
	bool fresh = brief_granted(ans) && ans->task->attempts <= 1;

	if (ans->next || fresh)
		ans->n_events = 0; /* brief.c adds the comments */
	if (ans->next)
		ans->came_back = NULL;
	if (ans->kind != ANSWER_LOCK)
		ans->task = NULL;
	ans->next = NULL;
	ans->lock = NULL;
	ans->has_next = 0;
	more = reply_json(&rest, a);
	json_object_update_missing(o, more);
	json_decref(more);
	return o;
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
	const struct answer *ans = &b->reply->ans;
	json_t *next = json_object_get(o, "next");

	if (ans->code == SUCCESS)
		json_object_del(o, "code");
	round_up(o, "wait");
	if (json_object_get(o, "error")) {
		lean_error(o, a);
		return;
	}
	if (ans->kind == ANSWER_LOCK)
		lean_lock(json_object_get(o, "lock"));
	lean_context(o, json_get(json_object_get(o, "task"), "id"), a);
	if (json_is_object(next))
		lean_context(next, ans->next->id, a);
	lean_lists(o, b->tool, a);
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

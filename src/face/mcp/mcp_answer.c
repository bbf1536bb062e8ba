/*
 * The parts of an answer for a model: a task, a lock, the rows of a list. A model pays for each
 * word of an answer, and reads it again with every later call, so a part has only the members that
 * the model needs to act.
 *
 * The limits are in tokens; one token counts as four bytes here. test/mcp/lean_test.c has the table
 * of limits. A list that is too large loses the ends of its texts first, then its least important
 * rows. Ids, fences and times are never cut. A cut text ends with an ellipsis, and if a long text
 * of a task was cut, the member `cut` names it.
 *
 * Each part is built from the answer itself. Its size is calculated once; after that only the cut
 * texts are counted again, and nothing is encoded before it is sent.
 */
#include "core/lease.h"
#include "face/mcp/mcp.h"
#include "format/json.h"
#include "format/record_form.h"
#include "format/task_form.h"

#define TOKEN 4
#define CONTEXT (290 * TOKEN) /* comments, earlier attempts and changes by others */
#define ROWS (1030 * TOKEN)   /* the rows of a list */
#define RELATED (200 * TOKEN)
#define TEXT_SHOWN 8192 /* bytes of a description */
#define EXTRA_SHOWN 1024

void lean_begin(struct briefing *b)
{
	b->room = CONTEXT;
	b->cut = false;
}

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

/* The value's size as compact JSON, in bytes. */
static size_t mcp_lean_size(const json_t *v)
{
	size_t n = 1, i;
	const char *key;
	const json_t *item;

	switch (v ? json_typeof(v) : JSON_NULL) {
	case JSON_OBJECT:
		json_object_foreach((json_t *)v, key, item)
			n += text_size(str_c(key)) + 1 + mcp_lean_size(item) + 1;
		return json_object_size(v) ? n : 2;
	case JSON_ARRAY:
		json_array_foreach(v, i, item)
			n += mcp_lean_size(item) + 1;
		return json_array_size(v) ? n : 2;
	case JSON_STRING:
		return text_size(json_text(v));
	case JSON_INTEGER:
		return (size_t)snprintf(NULL, 0, "%" JSON_INTEGER_FORMAT, json_integer_value(v));
	case JSON_REAL:
		return json_dumpb(v, NULL, 0, JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));
	case JSON_FALSE:
		return strlen("false");
	default:
		return v ? strlen("null") : 0;
	}
}

void lean_spend(struct briefing *b, const json_t *part)
{
	size_t n = mcp_lean_size(part);

	b->room -= n < b->room ? n : b->room;
}

/* At most n bytes of the text, never half a character. */
static struct str mcp_lean_shortened(struct str s, size_t n)
{
	if (s.n <= n)
		return s;
	while (n && ((unsigned char)s.p[n] & 0xc0) == 0x80)
		n--;
	return str_n(s.p, n);
}

static struct str with_ellipsis(struct str s, size_t bytes, struct arena *a)
{
	struct str head = mcp_lean_shortened(s, bytes);

	return arena_printf(a, "%.*s…", STRF(head));
}

struct str lean_cut(struct briefing *b, struct str s, size_t bytes)
{
	if (b->whole || s.n <= bytes)
		return s;
	b->cut = true;
	return with_ellipsis(s, bytes, b->arena);
}

/* The bytes that the rows lose when their texts are cut. */
static size_t mcp_lean_saved(const json_t *rows, const char *text, size_t bytes)
{
	const json_t *row;
	size_t n = 0, i;

	json_array_foreach(rows, i, row) {
		struct str s = json_get(row, text), head = mcp_lean_shortened(s, bytes);

		if (head.n < s.n)
			n += text_size(s) - text_size(head) - strlen("…");
	}
	return n;
}

/* Makes the rows fit: first with shorter texts, then with fewer rows. newest: the last rows count
 * most. Returns whether anything was cut. */
static bool mcp_lean_fit(json_t *rows, const char *text, size_t most, bool newest, struct arena *a)
{
	static const size_t widths[] = { 120, 80, 60, 50, 40 };
	size_t whole = mcp_lean_size(rows), n = whole, k = 0, i;
	json_t *row;

	if (whole <= most)
		return false;
	for (; n > most && k < sizeof(widths) / sizeof(*widths); k++)
		n = whole - mcp_lean_saved(rows, text, widths[k]);
	json_array_foreach(rows, i, row) {
		struct str s = json_get(row, text);

		if (s.n > widths[k - 1])
			json_set_text(row, text, with_ellipsis(s, widths[k - 1], a));
	}
	while (n > most && json_array_size(rows) > 1) {
		i = newest ? 0 : json_array_size(rows) - 1;
		n -= mcp_lean_size(json_array_get(rows, i)) + 1;
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

void lean_add_texts(json_t *o, const char *key, struct strs texts)
{
	json_t *list = json_object_get(o, key);

	if (texts.n && !list) {
		list = json_array();
		json_object_set_new(o, key, list);
	}
	for (size_t i = 0; i < texts.n; i++)
		json_array_append_new(list, json_str(texts.v[i]));
}

int64_t lean_seconds(int64_t ms)
{
	return ms > 0 ? (ms + 999) / 1000 : 0;
}

static bool is_live(const struct briefing *b, const struct task *t)
{
	return lease_live(&t->lock, b->reply->ans.now);
}

static void set_expiry(const struct briefing *b, json_t *o, const struct lock *lock)
{
	if (lock->expires_at)
		json_object_set_new(
			o, "expires_in",
			json_integer(lean_seconds(lock->expires_at - b->reply->ans.now)));
}

static void set_status(json_t *o, int64_t status)
{
	if (status) /* a lock of the whole queue has none */
		json_object_set_new(o, "status", json_string(status_name(status)));
}

/* --- one task -------------------------------------------------------------------------------------- */

/* A field's JSON value. A long text is cut; *cuts says so. */
static json_t *field_value(const struct field *f, const void *p, struct str *cuts, struct arena *a)
{
	static const char *const texts[] = { "description", "acceptance", "summary", NULL };
	struct str text = f->kind == FIELD_STR ? *(const struct str *)p : STR(""),
		   head = mcp_lean_shortened(text, TEXT_SHOWN);
	json_t *v;

	if (head.n < text.n && lean_name_in(f->name, texts)) {
		*cuts = arena_printf(a, "%.*s%s%s: the first %zu of %zu bytes", STRF(*cuts),
				     cuts->n ? ", " : "", f->name, head.n, text.n);
		return json_str(head);
	}
	v = value_json(f, p, a);
	if (f->kind != FIELD_JSON || mcp_lean_size(v) <= EXTRA_SHOWN)
		return v;
	json_decref(v);
	return NULL;
}

static bool is_default(const struct field *f, const void *p)
{
	if (f->kind == FIELD_LIST)
		return !((const struct strs *)p)->n;
	if (f->kind == FIELD_STR || f->kind == FIELD_JSON)
		return !((const struct str *)p)->n;
	return *(const int64_t *)p == (f->kind == FIELD_CLASS ? STANDARD : 0) &&
	       strcmp(f->name, "priority") != 0;
}

json_t *lean_task(const struct briefing *b, const struct task *t, bool mine)
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

		if (f->shown != HIDDEN && !is_default(f, p) && !lean_name_in(f->name, hidden) &&
		    !(mine && lean_name_in(f->name, known)) &&
		    (t->status || f->shown != ALWAYS || f->kind == FIELD_STR))
			json_object_set_new(o, f->name, field_value(f, p, &cuts, b->arena));
	}
	if (!mine && is_live(b, t)) {
		json_set_text(o, "holder", t->lock.holder);
		set_expiry(b, o, &t->lock);
	}
	if (cuts.n)
		json_set_text(o, "cut",
			      arena_printf(b->arena, "%.*s; show id=%.*s full=true has all",
					   STRF(cuts), STRF(t->id)));
	return o;
}

json_t *lean_name(struct str id, int64_t status, struct str holder)
{
	json_t *o = json_object();

	json_set_text(o, "id", id);
	set_status(o, status);
	json_set_text(o, "holder", holder);
	return o;
}

json_t *lean_grant(const struct briefing *b, const struct grant *g)
{
	json_t *o = json_object();

	json_object_set_new(o, "fence", json_integer(g->fence));
	json_object_set_new(o, "expires_in",
			    json_integer(lean_seconds(g->expires_at - b->reply->ans.now)));
	return o;
}

json_t *lean_lock(const struct briefing *b, const struct task *t)
{
	json_t *o = json_object();

	json_set_text(o, "holder", t->lock.holder);
	json_object_set_new(o, "fence", json_integer(t->fence));
	json_object_set_new(o, "live", json_boolean(is_live(b, t)));
	if (t->lock.manual)
		json_object_set_new(o, "manual", json_true());
	set_expiry(b, o, &t->lock);
	return o;
}

/* --- lists ----------------------------------------------------------------------------------------- */

static json_t *task_rows(const struct briefing *b, const struct task *t, size_t n)
{
	bool links = b->tool == &cmd_tree || b->tool == &cmd_graph; /* the caller asked for them */
	json_t *rows = json_array();

	for (; n; n--, t++) {
		json_t *o = lean_name(t->id, t->status, is_live(b, t) ? t->lock.holder : STR(""));

		if (links) {
			json_set_text(o, "parent", t->parent);
			lean_add_texts(o, "depends", t->depends);
		}
		json_set_text(o, "title", t->title);
		json_array_append_new(rows, o);
	}
	mcp_lean_fit(rows, "title", ROWS, false, b->arena);
	return rows;
}

json_t *lean_locks(const struct briefing *b, const struct task *t, size_t n, bool mine)
{
	json_t *rows = json_array();

	for (; n; n--, t++) {
		json_t *o = json_object();

		json_set_text(o, t->status ? "task" : "lock", t->id);
		set_status(o, t->status);
		if (!mine)
			json_set_text(o, "holder", t->lock.holder);
		if (!is_live(b, t))
			json_object_set_new(o, "live", json_false());
		set_expiry(b, o, &t->lock);
		if (t->status)
			json_set_text(o, "title", t->title);
		json_array_append_new(rows, o);
	}
	mcp_lean_fit(rows, "title", ROWS, false, b->arena);
	return rows;
}

/* past: the history of one task, not the log. */
static json_t *event_rows(const struct briefing *b, const struct event *list, size_t n, bool past)
{
	json_t *rows = json_array();

	for (size_t i = 0; i < n; i++) {
		struct event e = list[i];
		json_t *o;

		if (!b->whole)
			e.run = STR("");
		if (!b->whole && past) {
			e.cursor = e.task = STR("");
			e.fence = 0;
		}
		o = event_json(&e, b->arena);
		if (!b->whole && past)
			json_object_del(o, "at");
		json_array_append_new(rows, o);
	}
	return rows;
}

static void set_rows(json_t *o, const char *key, json_t *rows, size_t n)
{
	json_object_set_new(o, key, rows);
	json_object_set_new(o, "count", json_integer((json_int_t)n));
}

/* Makes the related tasks of a shown task fit. Their titles come last, as in every list. */
static void fit_links(const struct briefing *b, json_t *rows)
{
	json_t *row, *title;
	size_t i;

	json_array_foreach(rows, i, row) {
		title = json_incref(json_object_get(row, "title"));
		json_object_del(row, "title");
		json_object_set_new(row, "title", title);
	}
	mcp_lean_fit(rows, "title", RELATED, false, b->arena);
}

void lean_lists(const struct briefing *b, json_t *o)
{
	const struct answer *ans = &b->reply->ans;
	size_t n = ans->n_tasks;
	json_t *rows;

	fit_links(b, json_object_get(o, "subtasks"));
	fit_links(b, json_object_get(o, "depends_on"));
	fit_links(b, json_object_get(o, "dependents"));
	mcp_lean_fit(json_object_get(o, "candidates"), "title", ROWS, false, b->arena);
	switch (ans->kind) {
	case ANSWER_TASKS:
		rows = task_rows(b, ans->tasks, n);
		set_rows(o, "tasks", rows, json_array_size(rows));
		break;
	case ANSWER_LOCKS:
	case ANSWER_TYPED:
		set_rows(o, "locks", lean_locks(b, ans->tasks, n, false), n);
		break;
	case ANSWER_EVENTS:
		rows = event_rows(b, ans->events, ans->n_events, false);
		mcp_lean_fit(rows, "text", ROWS, true, b->arena);
		set_rows(o, "events", rows, ans->n_events);
		break;
	case ANSWER_OVERVIEW:
		json_object_set_new(o, "held", task_rows(b, ans->tasks, n));
		break;
	default:
		break;
	}
}

/* --- comments and earlier attempts ------------------------------------------------------------------- */

json_t *lean_history(struct briefing *b)
{
	const struct related *r = b->reply->ans.related;
	json_t *rows = event_rows(b, r ? r->history : NULL, r ? r->n_history : 0, true);

	if (!b->whole) {
		b->cut |= mcp_lean_fit(rows, "text", b->room / 2, true, b->arena);
		lean_spend(b, rows);
	}
	return rows;
}

json_t *lean_comments(struct briefing *b)
{
	const struct answer *ans = &b->reply->ans;
	json_t *rows = json_array();

	for (size_t i = 0; i < ans->n_events; i++) {
		json_t *o = json_object();

		json_set_text(o, "agent", ans->events[i].agent);
		json_set_text(o, "text", lean_cut(b, ans->events[i].text, b->room / 2));
		json_array_append_new(rows, o);
	}
	b->cut |= mcp_lean_fit(rows, "text", b->room, true, b->arena);
	return rows;
}

/* --- whole objects ------------------------------------------------------------------------------------ */

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

	for (const char *const *name = hidden; *name; name++)
		json_object_del(o, *name);
	if (json_object_get(o, "id") && json_object_get(o, "is_locked"))
		json_object_del(o, "lock"); /* lock_holder and lock_expires_at contain it */
	json_object_foreach(o, key, v)
		lean_strip(v);
	json_array_foreach(o, i, v)
		lean_strip(v);
}

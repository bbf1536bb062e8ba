/* The usual renderings of answers. */
#include "cmd/view.h"
#include "core/typed.h"

#include <stdlib.h>

static const json_t *task_of(const json_t *o)
{
	return json_object_get(o, "task");
}

static bool live(const json_t *lock)
{
	return json_is_true(json_object_get(lock, "live"));
}

/* "  (as before)": the answer to a repeated call. */
static void note_repeat(const json_t *o, struct view *v)
{
	if (json_is_true(json_object_get(o, "repeated")))
		view_text(v, DIM, "  (done before; nothing changed)");
}

static void show_none(const json_t *o, struct view *v)
{
	const char *message = view_get(o, "message"), *hint = view_get(o, "hint");

	if (v->quiet)
		return;
	view_text(v, PLAIN, "no task: ");
	view_data(v, PLAIN, message ? message : "nothing is eligible now");
	view_text(v, PLAIN, "\n");
	if (json_is_number(json_object_get(o, "wait")))
		view_text(v, DIM, "the next one comes due in %.*s\n",
			  STRF(view_seconds(v, json_object_get(o, "wait"))));
	if (hint) {
		view_text(v, DIM, "hint: ");
		view_data(v, PLAIN, hint);
		view_text(v, PLAIN, "\n");
	}
}

void show_did(const json_t *o, struct view *v, const char *what)
{
	if (v->quiet)
		return;
	view_data(v, BOLD, view_get(task_of(o), "id"));
	view_text(v, PLAIN, " %s", what);
	note_repeat(o, v);
	view_text(v, PLAIN, "\n");
}

void show_depends(const json_t *o, struct view *v)
{
	const json_t *on = json_object_get(task_of(o), "depends");

	if (json_array_size(on))
		show_did(o, v, arena_printf(v->arena, "depends on %.*s", STRF(view_list(v, on))).p);
	else
		show_did(o, v, "depends on nothing");
}

void show_task(const json_t *o, struct view *v)
{
	const json_t *t = task_of(o);
	const char *status = view_get(t, "status");

	if (v->quiet)
		return;
	view_data(v, BOLD, view_get(t, "id"));
	view_text(v, PLAIN, " → ");
	view_text(v, view_status_paint(status), "%s", status ? status : "gone");
	note_repeat(o, v);
	view_text(v, PLAIN, "\n");
}

/* --- one task ------------------------------------------------------------------------------------ */

static void label(struct view *v, const char *name)
{
	view_text(v, DIM, "%-12s", name);
}

static void row(struct view *v, const char *name, const char *text)
{
	if (!text || !*text)
		return;
	label(v, name);
	view_data(v, PLAIN, text);
	view_text(v, PLAIN, "\n");
}

static void row_time(struct view *v, const char *name, const char *time)
{
	if (!time)
		return;
	label(v, name);
	view_text(v, PLAIN, "%s", time);
	view_text(v, DIM, "  (%.*s)\n", STRF(view_when(v, time)));
}

static void block(struct view *v, const char *name, const char *text)
{
	if (!text || !*text)
		return;
	view_text(v, DIM, "%s\n", name);
	view_lines(v, text, 2);
}

static void put_lock(struct view *v, const json_t *lock)
{
	const json_t *left = json_object_get(lock, "expires_in");

	if (!json_is_object(lock))
		return;
	label(v, "lock");
	view_data(v, live(lock) ? CYAN : DIM, view_get(lock, "holder"));
	view_text(v, PLAIN, ", fence %lld", (long long)view_int(lock, "fence"));
	if (!live(lock))
		view_text(v, YELLOW, ", ran out");
	else if (left)
		view_text(v, PLAIN, ", ends in %.*s", STRF(view_seconds(v, left)));
	else
		view_text(v, PLAIN, ", without an end");
	if (json_is_true(json_object_get(lock, "manual")))
		view_text(v, PLAIN, ", manual");
	if (view_int(lock, "pid"))
		view_text(v, PLAIN, ", pid %lld", (long long)view_int(lock, "pid"));
	view_text(v, PLAIN, "\n");
}

static void put_relations(struct view *v, const json_t *t)
{
	const json_t *depends = json_object_get(t, "depends");
	int64_t open = view_int(t, "open_depends"), subs = view_int(t, "open_subtasks");

	row(v, "parent", view_get(t, "parent"));
	if (json_array_size(depends)) {
		label(v, "depends on");
		view_text(v, PLAIN, "%.*s", STRF(view_list(v, depends)));
		if (open)
			view_text(v, YELLOW, "  (%lld not done)", (long long)open);
		view_text(v, PLAIN, "\n");
	}
	if (subs) {
		label(v, "sub-tasks");
		view_text(v, YELLOW, "%lld open\n", (long long)subs);
	}
}

static void put_head(struct view *v, const json_t *t)
{
	const char *status = view_get(t, "status");

	view_data(v, BOLD, view_get(t, "id"));
	view_text(v, PLAIN, "  ");
	view_data(v, BOLD, view_get(t, "title"));
	view_text(v, PLAIN, "\n");
	label(v, "status");
	view_text(v, view_status_paint(status), "%s", status ? status : "?");
	view_text(v, PLAIN, "  %s, priority %lld\n", view_get(t, "class"),
		  (long long)view_int(t, "priority"));
}

static void put_history(struct view *v, const json_t *t)
{
	int64_t attempts = view_int(t, "attempts"), abandoned = view_int(t, "abandoned");

	row(v, "assignee", view_get(t, "assignee"));
	row(v, "run", view_get(t, "agent_run"));
	if (attempts) {
		label(v, "claims");
		view_text(v, PLAIN, "%lld", (long long)attempts);
		if (abandoned)
			view_text(v, YELLOW, ", %lld ran out", (long long)abandoned);
		view_text(v, PLAIN, "\n");
	}
	row_time(v, "created", view_get(t, "created_at"));
	row_time(v, "edited", view_get(t, "updated_at"));
	row_time(v, "started", view_get(t, "started_at"));
	row_time(v, "done", view_get(t, "done_at"));
}

static void put_comments(struct view *v, const json_t *list)
{
	size_t i;
	const json_t *e;

	if (!json_array_size(list))
		return;
	view_text(v, DIM, "comments\n");
	json_array_foreach(list, i, e) {
		view_text(v, PLAIN, "  ");
		view_data(v, CYAN, view_get(e, "agent"));
		view_text(v, DIM, "  %.*s\n", STRF(view_when(v, view_get(e, "at"))));
		view_lines(v, view_get(e, "text"), 4);
	}
}

static void put_extra(struct view *v, const json_t *extra)
{
	char *text = extra ? json_dumps(extra, JSON_COMPACT | JSON_SORT_KEYS) : NULL;

	row(v, "extra", text);
	free(text);
}

void show_details(const json_t *o, struct view *v)
{
	const json_t *t = task_of(o), *labels = json_object_get(t, "labels");

	put_head(v, t);
	row(v, "type", view_get(t, "type"));
	row(v, "effort", view_get(t, "effort"));
	if (json_array_size(labels)) {
		label(v, "labels");
		view_text(v, PLAIN, "%.*s\n", STRF(view_list(v, labels)));
	}
	row(v, "due", view_get(t, "due"));
	row_time(v, "not before", view_get(t, "not_before"));
	put_relations(v, t);
	put_lock(v, json_object_get(t, "lock"));
	put_history(v, t);
	row_time(v, "next check", view_get(t, "next_check"));
	put_extra(v, json_object_get(t, "extra"));
	block(v, "reason", view_get(t, "blocker_reason"));
	block(v, "to unblock", view_get(t, "unblock_action"));
	block(v, "description", view_get(t, "description"));
	block(v, "acceptance", view_get(t, "acceptance"));
	block(v, "summary", view_get(t, "summary"));
	put_comments(v, json_object_get(o, "comments"));
}

/* --- after a claim ------------------------------------------------------------------------------- */

/* What those before could have learnt: why it came back, and what was said about it. */
static void put_return(struct view *v, const json_t *t, const json_t *comments)
{
	long long earlier = view_int(t, "attempts") - 1, abandoned = view_int(t, "abandoned");

	if (earlier < 1)
		return;
	view_text(v, YELLOW, "came back: %lld earlier claim%s", earlier, earlier == 1 ? "" : "s");
	if (abandoned)
		view_text(v, YELLOW, ", %lld abandoned", abandoned);
	view_text(v, PLAIN, "\n");
	block(v, "the last reason was", view_get(t, "blocker_reason"));
	put_comments(v, comments);
}

static void put_grant(struct view *v, const json_t *t, const json_t *lock, const json_t *comments)
{
	const char *token = view_get(lock, "token");

	label(v, "fence");
	view_text(v, PLAIN, "%lld\n", (long long)view_int(lock, "fence"));
	label(v, "lease ends");
	view_text(v, PLAIN, "in %.*s", STRF(view_seconds(v, json_object_get(lock, "expires_in"))));
	view_text(v, DIM, "  (%s)\n", view_get(lock, "expires_at"));
	row(v, "token", token);
	put_relations(v, t);
	put_return(v, t, comments);
	block(v, "description", view_get(t, "description"));
	block(v, "acceptance", view_get(t, "acceptance"));
}

static void put_claimed(struct view *v, const char *word, const json_t *t, const json_t *lock,
			const json_t *comments)
{
	const char *id = view_get(t, "id");

	if (v->quiet) {
		view_data(v, PLAIN, id);
		view_text(v, PLAIN, "\n");
		return;
	}
	view_text(v, GREEN, "%s ", word);
	view_data(v, BOLD, id);
	view_text(v, PLAIN, "  ");
	view_data(v, PLAIN, view_get(t, "title"));
	view_text(v, PLAIN, "\n");
	put_grant(v, t, lock, comments);
}

/* For a command that people paste: what a damaged store calls an id is none. */
static const char *command_id(const json_t *t)
{
	const char *id = view_get(t, "id");

	return id_fault(str_c(id)) && !typed_of(str_c(id)) ? "ID" : id;
}

void show_grant(const json_t *o, struct view *v)
{
	const json_t *t = task_of(o), *lock = json_object_get(o, "lock");
	const json_t *own = json_object_get(t, "lock");
	bool manual = json_is_true(json_object_get(own, "manual"));
	const char *id = command_id(t);

	if (!json_is_object(t)) {
		show_none(o, v);
		return;
	}
	put_claimed(v, manual ? "locked" : "claimed", t, lock, json_object_get(o, "comments"));
	if (v->quiet)
		return;
	if (manual)
		view_text(v, DIM, "next: pawl heartbeat %s · pawl lock release %s\n", id, id);
	else
		view_text(
			v, DIM,
			"next: pawl heartbeat %s · pawl done %s · pawl review %s --summary TEXT\n",
			id, id, id);
}

void show_next(const json_t *o, struct view *v)
{
	const json_t *t = task_of(o);

	if (json_object_get(o, "candidates")) {
		show_candidates(o, v);
	} else if (!json_is_object(t)) {
		show_none(o, v);
	} else if (json_object_get(o, "lock")) {
		show_grant(o, v);
	} else if (v->quiet) {
		view_data(v, PLAIN, view_get(t, "id"));
		view_text(v, PLAIN, "\n");
	} else {
		show_details(o, v);
		view_text(v, DIM, "next: pawl claim %s\n", command_id(t));
	}
}

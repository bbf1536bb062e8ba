/* The lines of files-protocol.md, for shell scripts. Every value is on its line: controls are spelt out. */
#include "face/cli/cli.h"

#include "base/text.h"

static void put(struct buf *out, const char *key, const char *value)
{
	if (!value)
		return;
	buf_addf(out, " %s=", key);
	text_visible(out, str_c(value), false);
}

static void line(struct buf *out, const char *word, const json_t *task)
{
	buf_addf(out, "%s:", word);
	put(out, "task", view_get(task, "id"));
}

static void put_acquired(struct buf *out, const json_t *task)
{
	line(out, "LOCK_ACQUIRED", task);
	put(out, "agent", view_get(json_object_get(task, "lock"), "holder"));
	buf_addc(out, '\n');
}

static bool acquired(const json_t *o, const char *key)
{
	return view_get(json_object_get(o, key), "token") != NULL;
}

/* --- list ----------------------------------------------------------------------------------------- */

static const char *agent_of(const json_t *t)
{
	const json_t *lock = json_object_get(t, "lock");
	const char *who = json_is_object(lock) ? view_get(lock, "holder") : view_get(t, "assignee");

	return who ? who : "unknown";
}

static void item(struct buf *out, const json_t *t, const char *before, const char *what,
		 const char *after)
{
	buf_adds(out, STR("  "));
	text_visible(out, str_c(view_get(t, "id")), false);
	buf_adds(out, STR(": "));
	text_visible(out, str_c(agent_of(t)), false);
	buf_adds(out, str_c(before));
	text_visible(out, str_c(what ? what : "unknown"), false);
	buf_addf(out, "%s\n", after);
}

static void put_section(struct buf *out, const json_t *list, const char *status)
{
	size_t i;
	const json_t *t;

	json_array_foreach(list, i, t) {
		const json_t *lock = json_object_get(t, "lock");
		const char *is = view_get(t, "status");

		if (!status) {
			if (json_is_true(json_object_get(lock, "live")))
				item(out, t, " (since ", view_get(lock, "acquired_at"), ")");
		} else if (is && !strcmp(is, status)) {
			if (!strcmp(status, "Done"))
				item(out, t, " (completed ", view_get(t, "done_at"), ")");
			else
				item(out, t, " - ", view_get(t, "blocker_reason"), "");
		}
	}
}

static void put_sections(struct buf *out, const json_t *list)
{
	buf_adds(out, STR("=== Active Tasks ===\n"));
	put_section(out, list, NULL);
	buf_adds(out, STR("=== Completed Tasks ===\n"));
	put_section(out, list, "Done");
	buf_adds(out, STR("=== Failed Tasks ===\n"));
	put_section(out, list, "Failed");
}

/* --- everything else ------------------------------------------------------------------------------ */

static void put_scalars(struct buf *out, const json_t *o)
{
	const char *key;
	json_t *v;

	json_object_foreach((json_t *)o, key, v) {
		if (!strcmp(key, "ok") || !strcmp(key, "code"))
			continue;
		if (json_is_string(v))
			put(out, key, json_string_value(v));
		else if (json_is_integer(v))
			buf_addf(out, " %s=%lld", key, (long long)json_integer_value(v));
		else if (json_is_real(v))
			buf_addf(out, " %s=%.3f", key, json_real_value(v));
		else if (json_is_boolean(v))
			buf_addf(out, " %s=%s", key, json_is_true(v) ? "true" : "false");
	}
}

/* "In-Progress=3": a key has no blank. */
static void put_counts(struct buf *out, const json_t *counts)
{
	const char *status;
	const json_t *n;

	json_object_foreach((json_t *)counts, status, n) {
		buf_addc(out, ' ');
		for (const char *c = status; *c; c++)
			buf_addc(out, *c == ' ' ? '-' : *c);
		buf_addf(out, "=%lld", (long long)json_integer_value(n));
	}
}

/* One line for each element: "LOCK: task=… holder=…". */
static bool put_list(struct buf *out, const json_t *o)
{
	static const char *const lists[][2] = {
		{ "locks", "LOCK" },
		{ "candidates", "CANDIDATE" },
		{ "findings", "FINDING" },
		{ "settings", "SETTING" },
	};
	size_t i;
	const json_t *v, *list;

	for (size_t k = 0; k < sizeof(lists) / sizeof(*lists); k++) {
		list = json_object_get(o, lists[k][0]);
		if (!list)
			continue;
		json_array_foreach(list, i, v) {
			buf_addf(out, "%s:", lists[k][1]);
			put_scalars(out, v);
			buf_addc(out, '\n');
		}
		return true;
	}
	return false;
}

void porcelain_event(struct buf *out, const json_t *event)
{
	buf_adds(out, STR("EVENT:"));
	put_scalars(out, event);
	buf_addc(out, '\n');
}

static bool takes_lock(const struct command *c)
{
	return c->op == OP_CLAIM || c->op == OP_LOCK_ACQUIRE || c->op == OP_STATUS ||
	       c->op == OP_NEXT;
}

static void put_failure(struct buf *out, const struct command *c, enum result code, const json_t *o)
{
	const json_t *t = json_object_get(o, "task"), *lock = json_object_get(t, "lock");
	const char *status = view_get(t, "status");

	if (code == CONFLICT && json_is_true(json_object_get(lock, "live"))) {
		line(out, "LOCK_EXISTS", t);
		put(out, "agent", view_get(lock, "holder"));
		put(out, "claimed", view_get(lock, "acquired_at"));
	} else if (code == MISCONFIGURED && c && takes_lock(c) && status &&
		   !strcmp(status, "Done")) {
		line(out, "TASK_ALREADY_DONE", t);
	} else if (t) {
		line(out, result_name(code), t);
		put(out, "status", status);
	} else {
		buf_addf(out, "%s:", result_name(code));
		put(out, "message", view_get(json_object_get(o, "error"), "message"));
	}
	buf_addc(out, '\n');
}

/* What became of the task, by where it is now and what was asked for. */
static void put_task(struct buf *out, const struct command *c, enum result code, const json_t *o)
{
	const json_t *t = json_object_get(o, "task");
	const char *status = view_get(t, "status");
	bool changes = c && !(op_flags(c->op) & OP_READS);

	if (changes && (c->op == OP_DONE || c->op == OP_APPROVE || c->op == OP_STATUS) &&
	    !strcmp(status, "Done")) {
		line(out, "TASK_COMPLETE", t);
	} else if (changes && (c->op == OP_FAIL || c->op == OP_STATUS) &&
		   !strcmp(status, "Failed")) {
		line(out, "TASK_FAILED", t);
		put(out, "reason", view_get(t, "blocker_reason"));
	} else {
		line(out, result_name(code), t);
		put(out, "status", status);
	}
	buf_addc(out, '\n');
	if (json_is_object(json_object_get(o, "next")))
		put_acquired(out, json_object_get(json_object_get(o, "next"), "task"));
	else if (json_object_get(o, "next"))
		buf_adds(out, STR("NO_TASKS:\n"));
}

void porcelain_answer(struct buf *out, const struct command *c, enum result code, const json_t *o)
{
	const json_t *events = json_object_get(o, "events"), *e;
	const char *text = view_get(o, "text") ? view_get(o, "text") : view_get(o, "script");
	size_t i;

	if (json_is_false(json_object_get(o, "ok"))) {
		put_list(out, o);
		put_failure(out, c, code, o);
	} else if (acquired(o, "lock")) {
		put_acquired(out, json_object_get(o, "task"));
	} else if (json_object_get(o, "tasks")) {
		put_sections(out, json_object_get(o, "tasks"));
	} else if (events) {
		json_array_foreach(events, i, e)
			porcelain_event(out, e);
	} else if (json_is_object(json_object_get(o, "task")) && !json_object_get(o, "locked")) {
		put_task(out, c, code, o);
	} else if (text) {
		buf_adds(out, str_c(text));
	} else if (!put_list(out, o)) {
		buf_addf(out, "%s:", result_name(code));
		put(out, "task", view_get(json_object_get(o, "task"), "id"));
		put(out, "agent", view_get(json_object_get(o, "lock"), "holder"));
		put_scalars(out, o);
		put_scalars(out, json_object_get(o, "setting"));
		put_scalars(out, json_object_get(o, "emergency"));
		put_scalars(out, json_object_get(o, "health"));
		put_counts(out, json_object_get(o, "counts"));
		buf_addc(out, '\n');
	}
}

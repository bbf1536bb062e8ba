/*
 * The content of a task's file: the fields of the .locks protocol, for all programs, and under "pawl" all
 * fields of the task, with the number of the change that wrote it.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"
#include "base/when.h"
#include "format/json.h"
#include "format/record_form.h"
#include "store/files/files.h"
#include "store/task_record.h"

/* --- the kind of file --------------------------------------------------------------------------- */

enum file_kind files_form_kind(const struct store_rules *rules, const struct record *r,
			       struct task *t, struct arena *a)
{
	if (!task_of_record(rules, r, t, a))
		return FILE_NONE;
	if (t->status == DONE)
		return FILE_DONE;
	if (t->lock.holder.n)
		return FILE_LOCK;
	return t->status == FAILED ? FILE_FAILED : FILE_TASK;
}

/* --- writing ------------------------------------------------------------------------------------ */

static void set_time(json_t *o, const char *name, int64_t ms, struct arena *a)
{
	if (ms)
		json_set_text(o, name, when_text(a, ms));
}

static void set_lock(json_t *o, const struct lock *l, struct arena *a)
{
	set_time(o, "expires_at", l->expires_at, a);
	if (l->ttl && l->expires_at - l->ttl > l->acquired_at)
		set_time(o, "heartbeat", l->expires_at - l->ttl, a);
}

static void set_end(json_t *o, const struct task *t, struct arena *a)
{
	if (!t->lock.holder.n && (t->status == DONE || t->status == FAILED))
		set_time(o, "expires_at", t->last_expires_at, a);
	if (t->status == DONE) {
		set_time(o, "completed_at", t->done_at, a);
		json_set_text(o, "status", STR("completed"));
	} else if (t->status == FAILED) {
		set_time(o, "failed_at", t->updated_at, a);
		json_set_text(o, "status", STR("failed"));
		json_set_text(o, "reason", t->blocker_reason);
	}
}

static json_t *own_part(const struct task *t, const char *id, uint64_t commit)
{
	json_t *o = json_object(), *fields = task_fields_json(t);
	char hex[17];

	snprintf(hex, sizeof(hex), "%016" PRIx64, commit);
	json_object_del(fields, "description");
	json_object_set_new(o, "store", json_string(id));
	json_object_set_new(o, "commit", json_string(hex));
	json_object_set_new(o, "task", fields);
	return o;
}

struct str files_form_text(const struct task *t, const char *id, uint64_t commit, struct arena *a)
{
	json_t *o = json_object();
	struct str out;
	char *text;

	json_set_text(o, "task_id", t->id);
	json_set_text(o, "agent", t->lock.holder.n ? t->lock.holder : t->last_holder);
	set_time(o, "claimed_at", t->lock.holder.n ? t->lock.acquired_at : t->started_at, a);
	if (t->lock.holder.n)
		set_lock(o, &t->lock, a);
	json_set_text(o, "description", t->description);
	set_end(o, t, a);
	json_object_set_new(o, "pawl", own_part(t, id, commit));
	text = json_dumps(o, JSON_INDENT(2));
	json_decref(o);
	out = arena_printf(a, "%s\n", text);
	free(text);
	return out;
}

/* --- recognising pawl's files ------------------------------------------------------------------- */

#define VALUES_MAX 65536 /* each costs memory, and no task has that many */
#define SECTOR 512       /* a disk writes a sector completely or not at all */
#define SHORTEST 128     /* no file of a task is shorter */

static const char unknown[] = "it has neither task_id nor agent";

/* The text behind the quoted word that `text` begins with; empty: it begins with another word. */
static struct str files_form_behind(struct str text, const char *word)
{
	struct str end = STR("\"");

	if (!str_cut_prefix(&text, str_c(word)) || !str_cut_prefix(&text, end))
		return STR("");
	while (text.n > 1 && strchr(" \t\r\n", *text.p))
		text = str_n(text.p + 1, text.n - 1);
	return text;
}

/* Does the text have one of the words in quotes, followed by `next`? '\0': by anything. */
static bool has_quoted(struct str text, const char *const *words, char next)
{
	for (const char *at; (at = memchr(str_p(text), '"', text.n));) {
		text = str_n(at + 1, text.n - (size_t)(at + 1 - text.p));
		for (size_t i = 0; words[i]; i++) {
			struct str rest = files_form_behind(text, words[i]);

			if (rest.n && (!next || *rest.p == next))
				return true;
		}
	}
	return false;
}

/* Rejects most foreign files without parsing them. */
static bool has_keys(struct str text, bool of_lock)
{
	static const char *const names[] = { "task_id", "agent", NULL };
	static const char *const more[] = { "task_id", "agent", "description", NULL };

	return has_quoted(text, of_lock ? names : more, ':');
}

static bool has_too_many_values(struct str text)
{
	size_t n = 0;
	bool quoted = false;

	for (size_t i = 0; i < text.n && n <= VALUES_MAX; i++) {
		if (quoted && text.p[i] == '\\')
			i++;
		else if (text.p[i] == '"')
			quoted = !quoted;
		else
			n += !quoted && (text.p[i] == ',' || text.p[i] == '[' || text.p[i] == '{');
	}
	return n > VALUES_MAX;
}

/* A lock needs task_id or agent. A task that a person wrote by hand may have only a description. */
static bool follows_protocol(const json_t *o, enum file_kind kind)
{
	return json_object_get(o, "task_id") || json_object_get(o, "agent") ||
	       (kind == FILE_TASK && json_object_get(o, "description"));
}

static bool begins_with_zeros(struct str text)
{
	size_t n = text.n < SECTOR ? text.n : SECTOR;

	for (size_t i = 0; i < n; i++)
		if (text.p[i])
			return false;
	return n >= SHORTEST;
}

bool files_form_torn(struct str text, const char *store, struct str id, struct arena *a)
{
	const char *const names[] = { store, NULL };

	return begins_with_zeros(text) || has_quoted(text, names, '\0') ||
	       str_starts(text, arena_printf(a, "{\n  \"task_id\": \"%.*s\"", STRF(id)));
}

/* --- reading ------------------------------------------------------------------------------------ */

static struct str text_in(const json_t *o, const char *name, struct form *f, const char *odd,
			  struct arena *a)
{
	const json_t *v = json_object_get(o, name);

	if (v && !json_is_string(v) && !json_is_null(v))
		f->odd = odd;
	if (!json_is_string(v))
		return STR("");
	return arena_str(a, str_n(json_string_value(v), json_string_length(v)));
}

static int64_t time_in(const json_t *o, const char *name, struct form *f, const char *odd,
		       struct arena *a)
{
	struct str s = text_in(o, name, f, odd, a);
	int64_t ms = 0;

	if (s.n && (!when_parse(s, &ms) || ms <= 0)) {
		f->odd = odd;
		return 0;
	}
	return ms;
}

static void parse_document(const json_t *o, struct form *f, struct arena *a)
{
	f->agent = text_in(o, "agent", f, "its agent is not a text", a);
	f->description = text_in(o, "description", f, "its description is not a text", a);
	f->reason = text_in(o, "reason", f, "its reason is not a text", a);
	f->status = text_in(o, "status", f, "its status is not a text", a);
	f->claimed_at = time_in(o, "claimed_at", f, "its claimed_at is not a time", a);
	f->expires_at = time_in(o, "expires_at", f, "its expires_at is not a time", a);
	f->completed_at = time_in(o, "completed_at", f, "its completed_at is not a time", a);
	f->failed_at = time_in(o, "failed_at", f, "its failed_at is not a time", a);
	if (f->agent.n > NAME_MAX_BYTES || f->description.n > TEXT_MAX || f->reason.n > TEXT_MAX) {
		f->odd = "one of its texts is too long";
		f->agent.n = f->agent.n > NAME_MAX_BYTES ? 0 : f->agent.n;
		f->description.n = f->description.n > TEXT_MAX ? 0 : f->description.n;
		f->reason.n = f->reason.n > TEXT_MAX ? 0 : f->reason.n;
	}
}

static void parse_own(const json_t *own, const char *id, struct form *f, struct arena *a)
{
	const char *store = json_string_value(json_object_get(own, "store"));
	const char *commit = json_string_value(json_object_get(own, "commit"));

	f->task = arena_new(a, struct task);
	if (task_fields_parse(json_object_get(own, "task"), f->task, a) || !f->task->status) {
		f->odd = "pawl's part of it is damaged";
		*f->task = (struct task){ 0 };
		return;
	}
	f->task->description = f->description;
	f->full = true;
	f->ours = store && commit && !strcmp(store, id);
	if (f->ours)
		f->commit = strtoull(commit, NULL, 16);
}

const char *files_form_parse(struct str text, const char *id, enum file_kind kind, struct form *out,
			     struct arena *a)
{
	const json_t *own;
	bool known;
	json_t *o;

	*out = (struct form){ 0 };
	if (!str_trim(text).n)
		return "it is empty";
	if (!has_keys(text, false))
		return unknown;
	out->damaged = has_keys(text, true);
	if (has_too_many_values(text))
		return "it has more than 65,536 values";
	o = json_loadb(text.p, text.n, 0, NULL);
	if (!o)
		return "it is not JSON";
	out->damaged = false;
	if (!json_is_object(o)) {
		json_decref(o);
		return "it is not a JSON object";
	}
	parse_document(o, out, a);
	own = json_object_get(o, "pawl");
	if (own)
		parse_own(own, id, out, a);
	known = follows_protocol(o, kind);
	json_decref(o);
	return known ? NULL : unknown;
}

/*
 * Encodes a task as a file, and a record as bytes of the state. The file has the fields of the
 * .locks protocol for all programs. Its "pawl" part has all the task's fields except the
 * description, and the number of the change that wrote it. That number tells the current file from
 * one that a failed change left.
 */
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"
#include "base/when.h"
#include "format/json.h"
#include "format/record_form.h"
#include "store/columns.h"
#include "store/files/files.h"

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

#define VALUES_MAX 65536 /* each value costs memory; no task has this many */
#define SECTOR 512       /* a disk writes a sector completely or not at all */
#define SHORTEST 128     /* bytes; every task file is at least this long */

static const char unknown[] = "it has neither task_id nor agent";

/* Returns the text after the quoted word that `text` begins with, or "" if `text` begins with
 * another word. */
static struct str files_form_behind(struct str text, const char *word)
{
	struct str end = STR("\"");

	if (!str_cut_prefix(&text, str_c(word)) || !str_cut_prefix(&text, end))
		return STR("");
	while (text.n > 1 && strchr(" \t\r\n", *text.p))
		text = str_n(text.p + 1, text.n - 1);
	return text;
}

/* Does the text contain one of the words in quotes, followed by `next`? '\0' stands for any
 * character. */
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

/* --- item ------------------------------------------------------------------------------------- */

/*
 * The state stores a record as a struct of fixed size, then its strings. A snapshot's records stay
 * raw until a caller needs them, so opening a large queue decodes little.
 */

enum { DROPPED = 1, ARCHIVED = 2, WITH_BODY = 4, STRANGER = 8, OLD_ARCHIVED = 16, WITH_DUE = 32 };

#define DUE_BYTES 7

/* A record's head. Its strings follow: key, id, holder, token, parent, type, lists, hot, body. */
struct item {
	int64_t eligible_at, updated_at, created_at, rev;
	uint64_t commit;
	struct stamp stamp, old;
	int32_t class_rank, priority;
	uint32_t lists, hot, body;
	uint16_t key, id, holder, token, parent, type, labels, depends;
	uint8_t lane, status, kind, flags;
	uint8_t old_kind, due[DUE_BYTES];
};

const size_t files_item_head = sizeof(struct item);

static struct str files_item_cut(struct str *rest, size_t n)
{
	struct str s = str_n(rest->p, n);

	*rest = str_n(rest->p + n, rest->n - n);
	return s;
}

static int decode_list(struct view *v, struct str *rest, size_t n, struct strs *out)
{
	*out = (struct strs){ n ? arena_array(&v->arena, struct str, n) : NULL, n };
	for (size_t i = 0; i < n; i++) {
		uint32_t len;

		if (rest->n < sizeof(len))
			return -1;
		memcpy(&len, files_item_cut(rest, sizeof(len)).p, sizeof(len));
		if (rest->n < len)
			return -1;
		out->v[i] = files_item_cut(rest, len);
	}
	return 0;
}

static int64_t decode_due(const struct item *it)
{
	uint64_t n = 0;

	for (int i = 0; i < DUE_BYTES; i++)
		n |= (uint64_t)it->due[i] << (8 * (i + 1));
	return (int64_t)n >> 8; /* sign-extends the value */
}

static void decode_plain(const struct item *it, struct ent *e)
{
	e->ix = (struct index){ .lane = it->lane,
				.status = it->status,
				.class_rank = it->class_rank,
				.priority = it->priority,
				.eligible_at = it->eligible_at,
				.updated_at = it->updated_at,
				.created_at = it->created_at,
				.due = decode_due(it) };
	e->rev = it->rev;
	e->commit = it->commit;
	e->stamp = it->stamp;
	e->old = (struct replaced){ it->old, it->old_kind, it->flags & OLD_ARCHIVED };
	e->kind = it->kind < FILE_KINDS ? it->kind : FILE_NONE;
	e->dropped = it->flags & DROPPED;
	e->archived = it->flags & ARCHIVED;
	e->has_body = it->flags & WITH_BODY;
	e->stranger = it->flags & STRANGER;
}

int files_decode_next(struct view *v, struct str *rest, struct ent *e)
{
	struct item it;
	struct str lists;
	uint64_t need;

	if (rest->n < sizeof(it))
		return -1;
	memcpy(&it, files_item_cut(rest, sizeof(it)).p, sizeof(it));
	need = (uint64_t)it.key + it.id + it.holder + it.token + it.parent + it.type + it.lists +
	       it.hot + it.body;
	if (rest->n < need)
		return -1;
	decode_plain(&it, e);
	e->key = files_item_cut(rest, it.key);
	e->ix.id = files_item_cut(rest, it.id);
	e->ix.holder = files_item_cut(rest, it.holder);
	e->ix.token = files_item_cut(rest, it.token);
	e->ix.parent = files_item_cut(rest, it.parent);
	e->ix.type = files_item_cut(rest, it.type);
	lists = files_item_cut(rest, it.lists);
	e->hot = files_item_cut(rest, it.hot);
	e->body = files_item_cut(rest, it.body);
	if (!it.lists)
		return it.labels || it.depends ? -1 : 0;
	return decode_list(v, &lists, it.labels, &e->ix.labels) ||
			       decode_list(v, &lists, it.depends, &e->ix.depends)
		       ? -1
		       : 0;
}

static size_t list_size(struct strs list)
{
	size_t n = list.n * sizeof(uint32_t);

	for (size_t i = 0; i < list.n; i++)
		n += list.v[i].n;
	return n;
}

static void encode_list(struct buf *b, struct strs list)
{
	for (size_t i = 0; i < list.n; i++) {
		uint32_t len = (uint32_t)list.v[i].n;

		buf_add(b, &len, sizeof(len));
		buf_adds(b, list.v[i]);
	}
}

void files_encode(struct buf *b, const struct ent *e)
{
	const struct index *ix = &e->ix;
	struct item it = { .eligible_at = ix->eligible_at,
			   .updated_at = ix->updated_at,
			   .created_at = ix->created_at,
			   .rev = e->rev,
			   .commit = e->commit,
			   .stamp = e->stamp,
			   .old = e->old.stamp,
			   .old_kind = e->old.kind,
			   .class_rank = ix->class_rank,
			   .priority = ix->priority,
			   .lists = (uint32_t)(list_size(ix->labels) + list_size(ix->depends)),
			   .hot = (uint32_t)e->hot.n,
			   .body = e->has_body ? (uint32_t)e->body.n : 0,
			   .key = (uint16_t)e->key.n,
			   .id = (uint16_t)ix->id.n,
			   .holder = (uint16_t)ix->holder.n,
			   .token = (uint16_t)ix->token.n,
			   .parent = (uint16_t)ix->parent.n,
			   .type = (uint16_t)ix->type.n,
			   .labels = (uint16_t)ix->labels.n,
			   .depends = (uint16_t)ix->depends.n,
			   .lane = (uint8_t)ix->lane,
			   .status = (uint8_t)ix->status,
			   .kind = e->kind };

	it.flags = (uint8_t)((e->dropped ? DROPPED : 0) | (e->archived ? ARCHIVED : 0) |
			     (e->has_body ? WITH_BODY : 0) | (e->stranger ? STRANGER : 0) |
			     (e->old.archived ? OLD_ARCHIVED : 0) | WITH_DUE);
	for (int i = 0; i < DUE_BYTES; i++)
		it.due[i] = (uint8_t)((uint64_t)ix->due >> (8 * i));
	buf_add(b, &it, sizeof(it));
	buf_adds(b, e->key);
	buf_adds(b, ix->id);
	buf_adds(b, ix->holder);
	buf_adds(b, ix->token);
	buf_adds(b, ix->parent);
	buf_adds(b, ix->type);
	encode_list(b, ix->labels);
	encode_list(b, ix->depends);
	buf_adds(b, e->hot);
	if (e->has_body)
		buf_adds(b, e->body);
}

static size_t item_size(const struct item *it)
{
	return sizeof(*it) + it->key + it->id + it->holder + it->token + it->parent + it->type +
	       (size_t)it->lists + it->hot + it->body;
}

size_t files_raw_size(struct str bytes)
{
	struct item it;

	if (bytes.n < sizeof(it))
		return 0;
	memcpy(&it, bytes.p, sizeof(it));
	return bytes.n < item_size(&it) ? 0 : item_size(&it);
}

struct str files_raw_key(const char *raw)
{
	uint16_t n;

	memcpy(&n, raw + offsetof(struct item, key), sizeof(n));
	return str_n(raw + sizeof(struct item), n);
}

bool files_raw_has_lists(const char *raw)
{
	uint32_t n;

	memcpy(&n, raw + offsetof(struct item, lists), sizeof(n));
	return n != 0;
}

/* Pawl 0.1 wrote tasks without their due dates. */
bool files_raw_older(const char *raw)
{
	return raw[offsetof(struct item, status)] &&
	       !(raw[offsetof(struct item, flags)] & (WITH_DUE | DROPPED));
}

enum file_kind files_raw_kind(const char *raw)
{
	return (enum file_kind)raw[offsetof(struct item, kind)];
}

void files_decode(struct view *v, const char *raw, struct ent *out)
{
	struct item it;
	struct str rest;

	memcpy(&it, raw, sizeof(it));
	rest = str_n(raw, item_size(&it));
	*out = (struct ent){ 0 };
	if (files_decode_next(v, &rest, out))
		out->bad = "its record in .pawl/state is damaged";
}

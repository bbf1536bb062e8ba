/* A record and the change that made it as a commit, and back. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"
#include "core/event.h"
#include "core/filecodec.h"
#include "store/git.h"
#include "store/task_index.h"

#define BODY_TASK "task.json" /* the texts of a task */
#define BODY_RAW "body"       /* anything else */

/* --- bytes -------------------------------------------------------------------------------------- */

static json_t *bytes_json(struct str s)
{
	static const char digits[] = "0123456789abcdef";
	json_t *o;
	char *hex;

	if (text_valid(s))
		return json_stringn(str_p(s), s.n);
	hex = mem_alloc(2 * s.n + 1);
	for (size_t i = 0; i < s.n; i++) {
		hex[2 * i] = digits[(unsigned char)s.p[i] >> 4];
		hex[2 * i + 1] = digits[(unsigned char)s.p[i] & 15];
	}
	o = json_pack("{s:o}", "hex", json_stringn(hex, 2 * s.n));
	free(hex);
	return o;
}

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool hex_bytes(const json_t *v, struct str *out, struct arena *a)
{
	const char *hex = json_string_value(v);
	size_t n = json_string_length(v);
	char *p = arena_alloc(a, n / 2 + 1);

	if (!hex || n % 2)
		return false;
	for (size_t i = 0; i < n; i += 2) {
		int high = digit(hex[i]), low = digit(hex[i + 1]);

		if (high < 0 || low < 0)
			return false;
		p[i / 2] = (char)(high << 4 | low);
	}
	*out = str_n(p, n / 2);
	return true;
}

static bool bytes_parse(const json_t *v, struct str *out, struct arena *a)
{
	if (!json_is_string(v))
		return hex_bytes(json_object_get(v, "hex"), out, a);
	*out = arena_str(a, str_n(json_string_value(v), json_string_length(v)));
	return true;
}

/* --- parts of a task ---------------------------------------------------------------------------- */

/* The packed part as fields that a person can read; NULL if that would not be the same. */
static json_t *part_json(struct str bytes, unsigned part, struct arena *a)
{
	struct task t = { 0 };

	if (!bytes.n || task_unpack(bytes, &t, a) || !str_eq(task_part(&t, part, a), bytes))
		return NULL;
	return task_fields_json(&t);
}

static bool part_parse(const json_t *o, unsigned part, struct str *out, struct arena *a)
{
	struct task t = { 0 };

	if (task_fields_parse(o, &t, a))
		return false;
	*out = task_part(&t, part, a);
	return true;
}

/* --- index -------------------------------------------------------------------------------------- */

struct number {
	const char *name;
	size_t offset;
	bool wide;
};

static const struct number numbers[] = {
	{ "lane", offsetof(struct index, lane), false },
	{ "status", offsetof(struct index, status), false },
	{ "class", offsetof(struct index, class_rank), false },
	{ "priority", offsetof(struct index, priority), false },
	{ "eligible_at", offsetof(struct index, eligible_at), true },
	{ "updated_at", offsetof(struct index, updated_at), true },
	{ "created_at", offsetof(struct index, created_at), true },
};

static const struct number texts[] = {
	{ "id", offsetof(struct index, id), false },
	{ "holder", offsetof(struct index, holder), false },
	{ "token", offsetof(struct index, token), false },
	{ "parent", offsetof(struct index, parent), false },
	{ "type", offsetof(struct index, type), false },
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void set_list(json_t *o, const char *name, struct strs list)
{
	json_t *v = list.n ? json_array() : NULL;

	for (size_t i = 0; i < list.n; i++)
		json_array_append_new(v, bytes_json(list.v[i]));
	if (v)
		json_object_set_new(o, name, v);
}

static json_t *index_json(const struct index *ix)
{
	json_t *o = json_object();

	for (size_t i = 0; i < COUNT(numbers); i++) {
		const char *at = (const char *)ix + numbers[i].offset;
		int64_t n = numbers[i].wide ? *(const int64_t *)(const void *)at
					    : *(const int *)(const void *)at;

		if (n)
			json_object_set_new(o, numbers[i].name, json_integer(n));
	}
	for (size_t i = 0; i < COUNT(texts); i++) {
		const struct str *s = (const void *)((const char *)ix + texts[i].offset);

		if (s->n)
			json_object_set_new(o, texts[i].name, bytes_json(*s));
	}
	set_list(o, "labels", ix->labels);
	set_list(o, "depends", ix->depends);
	return o;
}

static bool list_parse(const json_t *v, struct strs *out, struct arena *a)
{
	size_t n = json_array_size(v);

	*out = (struct strs){ arena_array(a, struct str, n), n };
	for (size_t i = 0; i < n; i++)
		if (!bytes_parse(json_array_get(v, i), &out->v[i], a))
			return false;
	return true;
}

static bool index_parse(const json_t *o, struct index *ix, struct arena *a)
{
	*ix = (struct index){ 0 };
	for (size_t i = 0; i < COUNT(numbers); i++) {
		char *at = (char *)ix + numbers[i].offset;
		int64_t n = json_integer_value(json_object_get(o, numbers[i].name));

		if (numbers[i].wide)
			*(int64_t *)(void *)at = n;
		else
			*(int *)(void *)at = (int)n;
	}
	for (size_t i = 0; i < COUNT(texts); i++) {
		const json_t *v = json_object_get(o, texts[i].name);
		struct str *s = (void *)((char *)ix + texts[i].offset);

		if (v && !bytes_parse(v, s, a))
			return false;
	}
	if (ix->status < 0 || ix->status > 15)
		return false;
	return json_is_object(o) && list_parse(json_object_get(o, "labels"), &ix->labels, a) &&
	       list_parse(json_object_get(o, "depends"), &ix->depends, a);
}

/* --- the record --------------------------------------------------------------------------------- */

static json_t *record_json(const struct record *r, struct arena *a)
{
	json_t *o = json_pack("{s:o, s:I, s:o}", "key", bytes_json(r->key), "rev",
			      (json_int_t)r->rev, "index", index_json(&r->ix));
	json_t *task = part_json(r->hot, HOT, a);

	if (task)
		json_object_set_new(o, "task", task);
	else if (r->hot.n)
		json_object_set_new(o, "hot", bytes_json(r->hot));
	return o;
}

static bool record_parse(const json_t *o, struct record *r, struct arena *a)
{
	const json_t *task = json_object_get(o, "task"), *hot = json_object_get(o, "hot");

	*r = (struct record){ .rev = json_integer_value(json_object_get(o, "rev")) };
	if (task && !part_parse(task, HOT, &r->hot, a))
		return false;
	if (!task && hot && !bytes_parse(hot, &r->hot, a))
		return false;
	return bytes_parse(json_object_get(o, "key"), &r->key, a) &&
	       index_parse(json_object_get(o, "index"), &r->ix, a);
}

struct str git_record_text(const struct record *r, struct arena *a)
{
	json_t *o = record_json(r, a);
	struct str out;
	char *text;

	if (r->body.n)
		json_object_set_new(o, "body", bytes_json(r->body));
	text = json_dumps(o, JSON_INDENT(1));
	json_decref(o);
	out = arena_printf(a, "%s\n", text);
	free(text);
	return out;
}

bool git_record_read(struct str text, struct record *out, struct arena *a)
{
	json_t *o = json_loadb(str_p(text), text.n, 0, NULL);
	const json_t *body = json_object_get(o, "body");
	bool ok = o && record_parse(o, out, a) && (!body || bytes_parse(body, &out->body, a));

	json_decref(o);
	return ok;
}

/* --- log lines ---------------------------------------------------------------------------------- */

static void set_text(json_t *o, const char *name, struct str s)
{
	if (s.n)
		json_object_set_new(o, name, json_stringn(s.p, s.n));
}

static void set_number(json_t *o, const char *name, int64_t n)
{
	if (n)
		json_object_set_new(o, name, json_integer(n));
}

static bool event_text(const struct event *e)
{
	return e->name.n && text_valid(e->name) && text_valid(e->task) && text_valid(e->agent) &&
	       text_valid(e->run) && text_valid(e->text);
}

/* Does it pack to the same bytes again? */
static bool event_of(struct str data, struct event *e)
{
	struct buf b = BUF_MAX(GIT_RECORD_MAX);
	bool same;

	if (event_unpack(data, e) < 0 || !event_text(e))
		return false;
	event_pack(e, &b);
	same = str_eq(buf_str(&b), data);
	buf_free(&b);
	return same;
}

static json_t *event_fields(const struct event *e)
{
	json_t *o = json_object();

	set_text(o, "event", e->name);
	set_text(o, "task", e->task);
	set_text(o, "agent", e->agent);
	set_text(o, "run", e->run);
	set_text(o, "text", e->text);
	set_number(o, "fence", e->fence);
	set_number(o, "from", e->from);
	set_number(o, "to", e->to);
	return o;
}

static json_t *line_json(const struct git_line *l)
{
	const struct entry *e = &l->entry;
	struct event ev;
	json_t *o = event_of(e->data, &ev) ? event_fields(&ev)
					   : json_pack("{s:o}", "data", bytes_json(e->data));

	json_object_set_new(o, "at", json_integer(e->at));
	set_number(o, "n", l->n);
	if (e->key.n)
		json_object_set_new(o, "key", bytes_json(e->key));
	return o;
}

static struct str member(const json_t *o, const char *name)
{
	const json_t *v = json_object_get(o, name);

	return str_n(json_string_value(v), json_string_length(v));
}

static struct str event_data(const json_t *o, struct arena *a)
{
	const struct event e = {
		.name = member(o, "event"),
		.task = member(o, "task"),
		.agent = member(o, "agent"),
		.run = member(o, "run"),
		.text = member(o, "text"),
		.fence = json_integer_value(json_object_get(o, "fence")),
		.from = json_integer_value(json_object_get(o, "from")),
		.to = json_integer_value(json_object_get(o, "to")),
	};
	struct buf b = BUF_MAX(GIT_RECORD_MAX);
	struct str out;

	event_pack(&e, &b);
	out = arena_str(a, buf_str(&b));
	buf_free(&b);
	return out;
}

static bool entry_parse(const json_t *o, struct entry *e, struct arena *a)
{
	const json_t *key = json_object_get(o, "key"), *data = json_object_get(o, "data");

	*e = (struct entry){ .at = json_integer_value(json_object_get(o, "at")) };
	if (key && !bytes_parse(key, &e->key, a))
		return false;
	if (data)
		return bytes_parse(data, &e->data, a);
	e->data = event_data(o, a);
	return true;
}

/* --- the message -------------------------------------------------------------------------------- */

static void add_subject(struct buf *b, const struct git_draft *d, struct arena *a)
{
	struct event ev;

	if (d->lines && event_of(d->lines->entry.data, &ev)) {
		buf_addf(b, "%.*s %.*s", STRF(text_line(a, ev.name)), STRF(text_line(a, ev.task)));
		if (ev.agent.n)
			buf_addf(b, " by %.*s", STRF(text_line(a, ev.agent)));
	} else if (d->rec) {
		buf_adds(b, text_line(a, d->rec->key));
	} else {
		buf_adds(b, STR("pawl"));
	}
	buf_adds(b, STR("\n\n"));
}

static json_t *moves_json(const struct git_draft *d, struct arena *a)
{
	json_t *list = json_array();

	for (size_t i = 0; i < d->n_moves; i++) {
		const struct git_move *m = &d->moves[i];

		json_array_append_new(list, json_pack("{s:o, s:s, s:s}", "ref", bytes_json(m->name),
						      "old", git_hex(a, &m->old).p, "new",
						      git_hex(a, &m->to).p));
	}
	return list;
}

static json_t *draft_json(const struct git_draft *d, struct arena *a)
{
	json_t *o = json_pack("{s:i, s:I, s:o}", "pawl", GIT_FORMAT, "stamp", (json_int_t)d->stamp,
			      "change", bytes_json(d->nonce));
	json_t *log = d->lines ? json_array() : NULL;

	if (d->rec)
		json_object_set_new(o, "record", record_json(d->rec, a));
	if (d->rec && d->rec->ix.holder.n && d->clock.n)
		json_object_set_new(o, "clock", bytes_json(d->clock));
	for (const struct git_line *l = d->lines; l; l = l->next)
		json_array_append_new(log, line_json(l));
	if (log)
		json_object_set_new(o, "log", log);
	if (d->lead.n)
		json_object_set_new(o, "lead", bytes_json(d->lead));
	if (d->n_moves)
		json_object_set_new(o, "moves", moves_json(d, a));
	return o;
}

static void add_person(struct buf *b, const char *role, struct str who, int64_t stamp)
{
	buf_addf(b, "%s ", role);
	for (size_t i = 0; i < who.n; i++)
		if ((unsigned char)who.p[i] > ' ' && !strchr("<>", who.p[i]))
			buf_addc(b, who.p[i]);
	buf_addf(b, " <pawl@localhost> %lld +0000\n", (long long)(stamp / 1000000));
}

int git_commit_write(struct git *s, const struct git_draft *d, git_oid *out, struct arena *a)
{
	struct buf b = BUF_MAX(2 * (size_t)GIT_RECORD_MAX);
	struct str who = s->base.env.who.n ? s->base.env.who : STR("pawl");
	json_t *o = draft_json(d, a);
	char *text = json_dumps(o, JSON_COMPACT);
	int rc = -1;

	json_decref(o);
	buf_addf(&b, "tree %s\n", git_hex(a, &d->tree).p);
	for (size_t i = 0; i < d->n_parents; i++)
		buf_addf(&b, "parent %s\n", git_hex(a, &d->parents[i]).p);
	add_person(&b, "author", who, d->stamp);
	add_person(&b, "committer", who, d->stamp);
	buf_addc(&b, '\n');
	add_subject(&b, d, a);
	buf_adds(&b, str_c(text));
	buf_addc(&b, '\n');
	free(text);
	if (!b.full)
		rc = git_object_put(s, buf_str(&b), GIT_OBJECT_COMMIT, out);
	buf_free(&b);
	return rc ? git_fail(s, STORE_IO, "a commit cannot be written") : 0;
}

/* --- reading ------------------------------------------------------------------------------------ */

static bool oid_parse(const json_t *v, git_oid *out)
{
	return json_is_string(v) && json_string_length(v) == GIT_OID_HEXSZ &&
	       git_oid_fromstr(out, json_string_value(v)) == 0;
}

static bool moves_parse(const json_t *list, struct git_state *out, struct arena *a)
{
	out->n_moves = json_array_size(list);
	out->moves = arena_array(a, struct git_move, out->n_moves);
	for (size_t i = 0; i < out->n_moves; i++) {
		const json_t *o = json_array_get(list, i);

		if (!bytes_parse(json_object_get(o, "ref"), &out->moves[i].name, a) ||
		    !oid_parse(json_object_get(o, "old"), &out->moves[i].old) ||
		    !oid_parse(json_object_get(o, "new"), &out->moves[i].to))
			return false;
	}
	return true;
}

static bool log_parse(const json_t *list, struct git_state *out, struct arena *a)
{
	struct git_line **last = &out->lines;

	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *o = json_array_get(list, i);

		*last = arena_new(a, struct git_line);
		(*last)->n = (unsigned)json_integer_value(json_object_get(o, "n"));
		if (!entry_parse(o, &(*last)->entry, a))
			return false;
		last = &(*last)->next;
	}
	return true;
}

static bool state_parse(const json_t *o, struct git_state *out, struct arena *a)
{
	const json_t *rec = json_object_get(o, "record"), *lead = json_object_get(o, "lead"),
		     *clock = json_object_get(o, "clock");

	out->stamp = json_integer_value(json_object_get(o, "stamp"));
	out->has_rec = rec != NULL;
	return out->stamp > 0 && (!rec || record_parse(rec, &out->rec, a)) &&
	       (!lead || bytes_parse(lead, &out->lead, a)) &&
	       (!clock || bytes_parse(clock, &out->clock, a)) &&
	       moves_parse(json_object_get(o, "moves"), out, a) &&
	       log_parse(json_object_get(o, "log"), out, a);
}

/* What is behind the header; false if there is none, or none of ours. */
static bool header_parse(struct str *text, struct git_state *out, struct arena *a)
{
	char hex[GIT_OID_HEXSZ + 1] = { 0 };
	size_t room = 0;

	for (;;) {
		struct str line = str_cut(text, '\n');

		if (!line.n)
			return text->n > 0;
		if (str_cut_prefix(&line, STR("tree ")) && line.n == GIT_OID_HEXSZ) {
			memcpy(hex, line.p, GIT_OID_HEXSZ);
			git_oid_fromstr(&out->tree, hex);
		} else if (str_cut_prefix(&line, STR("parent ")) && line.n == GIT_OID_HEXSZ) {
			memcpy(hex, line.p, GIT_OID_HEXSZ);
			out->parents = arena_grow(a, out->parents, room++, sizeof(git_oid));
			git_oid_fromstr(&out->parents[out->n_parents++], hex);
		}
	}
}

static bool message_parse(struct str text, struct git_state *out, struct arena *a)
{
	json_t *o;
	bool ok;

	(void)str_cut(&text, '\n'); /* the subject */
	o = json_loadb(text.p ? text.p : "", text.n, 0, NULL);
	ok = json_is_integer(json_object_get(o, "pawl")) && state_parse(o, out, a);
	json_decref(o);
	return ok;
}

int git_commit_read(struct git *s, const git_oid *oid, struct git_state *out, struct arena *a)
{
	git_odb_object *obj;
	struct str text;
	bool ok;

	*out = (struct git_state){ 0 };
	if (git_odb_read(&obj, s->odb, oid))
		return 1;
	text = str_n(git_odb_object_data(obj), git_odb_object_size(obj));
	ok = git_odb_object_type(obj) == GIT_OBJECT_COMMIT && header_parse(&text, out, a) &&
	     message_parse(text, out, a);
	git_odb_object_free(obj);
	return ok ? 0 : 2;
}

/* --- bodies ------------------------------------------------------------------------------------- */

static int tree_of(struct git *s, const char *name, const git_oid *blob, git_oid *tree)
{
	git_treebuilder *t = NULL;
	int rc = git_treebuilder_new(&t, s->repo, NULL);

	if (rc == 0 && name)
		rc = git_treebuilder_insert(NULL, t, name, blob, GIT_FILEMODE_BLOB);
	if (rc == 0)
		rc = git_tree_put(s, t, tree);
	git_treebuilder_free(t);
	return rc;
}

int git_body_write(struct git *s, const struct record *r, git_oid *tree, struct arena *a)
{
	json_t *task = part_json(r->body, BODY, a);
	char *text = task ? json_dumps(task, JSON_INDENT(1) | JSON_SORT_KEYS) : NULL;
	struct str bytes = text ? str_c(text) : r->body;
	git_oid blob;
	int rc = 0;

	json_decref(task);
	if (bytes.n)
		rc = git_object_put(s, bytes, GIT_OBJECT_BLOB, &blob);
	if (rc == 0)
		rc = tree_of(s, !bytes.n ? NULL : text ? BODY_TASK : BODY_RAW, &blob, tree);
	free(text);
	return rc ? git_fail(s, STORE_IO, "an object cannot be written") : 0;
}

static bool blob_parse(struct str bytes, bool task, struct str *out, struct arena *a)
{
	json_t *o;
	bool ok;

	if (!task) {
		*out = arena_str(a, bytes);
		return true;
	}
	o = json_loadb(bytes.p, bytes.n, 0, NULL);
	ok = o && part_parse(o, BODY, out, a);
	json_decref(o);
	return ok;
}

int git_body_read(struct git *s, const git_oid *tree, struct str *out, struct arena *a)
{
	const git_tree_entry *e;
	git_tree *t = NULL;
	git_blob *blob = NULL;
	bool task = true;
	int rc = git_tree_lookup(&t, s->repo, tree);

	*out = (struct str){ 0 };
	e = rc ? NULL : git_tree_entry_byname(t, BODY_TASK);
	if (!rc && !e) {
		task = false;
		e = git_tree_entry_byname(t, BODY_RAW);
	}
	if (e)
		rc = git_blob_lookup(&blob, s->repo, git_tree_entry_id(e));
	if (!rc && blob &&
	    !blob_parse(str_n(git_blob_rawcontent(blob), (size_t)git_blob_rawsize(blob)), task, out,
			a))
		rc = -1;
	git_blob_free(blob);
	git_tree_free(t);
	return rc ? git_fail(s, STORE_CORRUPT, "the text of a task cannot be read") : 0;
}

/* Writes a record as JSON that people can read, and its body as a tree, and reads both back. Bytes that would
 * not survive as readable fields are written as they are, so a record always comes back unchanged. */
#include <stdlib.h>

#include "format/pack.h"
#include "format/record_form.h"
#include "format/task_form.h"
#include "store/git/git.h"

#define BODY_TASK "task.json" /* the texts of a task */
#define BODY_RAW "body"       /* anything else */

/* --- parts of a task ---------------------------------------------------------------------------- */

/* Writes the packed part as readable fields; NULL: the fields would not give the same bytes again. */
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

const struct git_field git_index_numbers[GIT_INDEX_NUMBERS + 1] = {
	{ "lane", offsetof(struct index, lane), false },
	{ "status", offsetof(struct index, status), false },
	{ "class", offsetof(struct index, class_rank), false },
	{ "priority", offsetof(struct index, priority), false },
	{ "eligible_at", offsetof(struct index, eligible_at), true },
	{ "updated_at", offsetof(struct index, updated_at), true },
	{ "created_at", offsetof(struct index, created_at), true },
	{ "due", offsetof(struct index, due), true },
	{ NULL, 0, false },
};

const struct git_field git_index_texts[GIT_INDEX_TEXTS + 1] = {
	{ "id", offsetof(struct index, id), false },
	{ "holder", offsetof(struct index, holder), false },
	{ "token", offsetof(struct index, token), false },
	{ "parent", offsetof(struct index, parent), false },
	{ "type", offsetof(struct index, type), false },
	{ NULL, 0, false },
};

int64_t git_index_number(const struct index *ix, const struct git_field *f)
{
	const void *at = (const char *)ix + f->offset;

	return f->wide ? *(const int64_t *)at : *(const int *)at;
}

void git_index_set(struct index *ix, const struct git_field *f, int64_t n)
{
	void *at = (char *)ix + f->offset;

	if (f->wide)
		*(int64_t *)at = n;
	else
		*(int *)at = (int)n;
}

struct str *git_index_text(struct index *ix, const struct git_field *f)
{
	return (void *)((char *)ix + f->offset);
}

static void set_list(json_t *o, const char *name, struct strs list)
{
	json_t *v = list.n ? json_array() : NULL;

	for (size_t i = 0; i < list.n; i++)
		json_array_append_new(v, bytes_json(list.v[i]));
	if (v)
		json_object_set_new(o, name, v);
}

static json_t *index_json(const struct index *from)
{
	struct index ix = *from;
	json_t *o = json_object();

	for (const struct git_field *f = git_index_numbers; f->name; f++) {
		int64_t n = git_index_number(&ix, f);

		if (n)
			json_object_set_new(o, f->name, json_integer(n));
	}
	if (ix.status && !ix.due) /* a task without it was written by pawl 0.1 */
		json_object_set_new(o, "due", json_integer(0));
	for (const struct git_field *f = git_index_texts; f->name; f++)
		if (git_index_text(&ix, f)->n)
			json_object_set_new(o, f->name, bytes_json(*git_index_text(&ix, f)));
	set_list(o, "labels", ix.labels);
	set_list(o, "depends", ix.depends);
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
	for (const struct git_field *f = git_index_numbers; f->name; f++)
		git_index_set(ix, f, json_integer_value(json_object_get(o, f->name)));
	for (const struct git_field *f = git_index_texts; f->name; f++) {
		const json_t *v = json_object_get(o, f->name);

		if (v && !bytes_parse(v, git_index_text(ix, f), a))
			return false;
	}
	if (ix->status < 0 || ix->status > 15)
		return false;
	return json_is_object(o) && list_parse(json_object_get(o, "labels"), &ix->labels, a) &&
	       list_parse(json_object_get(o, "depends"), &ix->depends, a);
}

/* --- the record --------------------------------------------------------------------------------- */

json_t *git_record_json(const struct record *r, struct arena *a)
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

bool git_record_parse(const json_t *o, struct record *r, bool *older, struct arena *a)
{
	const json_t *task = json_object_get(o, "task"), *hot = json_object_get(o, "hot"),
		     *index = json_object_get(o, "index");

	*r = (struct record){ .rev = json_integer_value(json_object_get(o, "rev")) };
	if (task && !part_parse(task, HOT, &r->hot, a))
		return false;
	if (!task && hot && !bytes_parse(hot, &r->hot, a))
		return false;
	if (!bytes_parse(json_object_get(o, "key"), &r->key, a) || !index_parse(index, &r->ix, a))
		return false;
	*older = r->ix.status && !json_object_get(index, "due");
	return true;
}

struct str git_record_text(const struct record *r, struct arena *a)
{
	json_t *o = git_record_json(r, a);
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
	bool older, ok = o && git_record_parse(o, out, &older, a) && !older &&
			 (!body || bytes_parse(body, &out->body, a));

	json_decref(o);
	return ok;
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
	return rc ? git_fail(s, STORE_IO, "cannot write an object") : 0;
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
	int rc = git_tree_open(s, &t, tree);

	*out = (struct str){ 0 };
	e = rc ? NULL : git_tree_entry_byname(t, BODY_TASK);
	if (!rc && !e) {
		task = false;
		e = git_tree_entry_byname(t, BODY_RAW);
	}
	/* an oversized foreign object gives an empty text, so that other tasks still work */
	if (e && git_object_fits(s->odb, git_tree_entry_id(e)))
		rc = git_blob_lookup(&blob, s->repo, git_tree_entry_id(e));
	if (!rc && blob &&
	    !blob_parse(str_n(git_blob_rawcontent(blob), (size_t)git_blob_rawsize(blob)), task, out,
			a))
		*out = (struct str){ 0 };
	git_blob_free(blob);
	git_tree_free(t);
	return rc ? git_fail(s, STORE_CORRUPT, "cannot read the text of a task") : 0;
}

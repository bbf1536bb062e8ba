/* Maps one record of another program to a task, by the program's table. A key without a rule, or a value that pawl cannot
 * use, stays in `extra`, from which an export puts it back. */
#include "transfer/foreign.h"
#include <stdlib.h>

#include "base/str.h"
#include "base/text.h"
#include "base/when.h"
#include "format/json.h"
#include "format/origin.h"

struct mapping {
	struct port_in *in;
	const struct foreign *from;
	struct plain p;
	struct arena *a;
	size_t line;
	const json_t *o;
	json_t *extra;  /* keys without a rule, and values that could not be used */
	json_t *labels; /* lists for plain_set() */
	json_t *depends, *notes;
	struct buf sections;
	struct str their_id;
	bool moved; /* a rule has set the status */
	bool bad;   /* a value was refused */
	const char *fault;
};

/* A value as one text: of a list, the first value; of an object, its name. Empty: the value has no text. */
static struct str as_text(const json_t *v, struct arena *a)
{
	static const char *const names[] = { "login", "name", "title", "displayName" };
	char *dumped;
	struct str s = STR("");

	if (json_is_string(v))
		return json_text(v);
	if (json_is_array(v))
		return as_text(json_array_get(v, 0), a);
	for (size_t i = 0; json_is_object(v) && i < sizeof(names) / sizeof(*names); i++)
		if (json_is_string(json_object_get(v, names[i])))
			return json_text(json_object_get(v, names[i]));
	if (!v || json_is_null(v) || json_is_object(v))
		return s;
	dumped = json_dumps(v, JSON_ENCODE_ANY);
	s = arena_str(a, str_c(dumped));
	free(dumped);
	return s;
}

/* With the prefix t, 68 becomes t68, and 68.2 becomes t68_2. Characters that pawl does not allow in an id become '-'. */
static struct str foreign_id(const struct foreign *f, struct str id, struct arena *a)
{
	bool number = true;
	char *p;

	(void)str_cut_prefix(&id, STR("#"));
	id = str_trim(id);
	for (size_t i = 0; i < id.n; i++)
		number &= is_digit(id.p[i]) || (i && id.p[i] == '.');
	if (!id.n)
		return id;
	if (f->id_most && id.n > f->id_most)
		id.n = f->id_most;
	id = number ? arena_printf(a, "%s%.*s", f->prefix, STRF(id)) : id;
	p = arena_cstr(a, id);
	for (size_t i = 0; i < id.n; i++) {
		bool letter = (p[i] >= 'a' && p[i] <= 'z') || (p[i] >= 'A' && p[i] <= 'Z');

		if (number && p[i] == '.')
			p[i] = '_';
		else if (!letter && !is_digit(p[i]) && (!i || !memchr("._-", p[i], 3)))
			p[i] = i ? '-' : 'x';
	}
	return str_n(p, id.n);
}

static void foreign_set(struct mapping *m, const char *field, json_t *v)
{
	const char *fault = m->fault ? NULL : plain_set(&m->p, str_c(field), v);

	if (fault && m->in->check) {
		(void)port_refuse(m->in, m->line, str_c(fault));
		m->bad = true;
	} else if (fault) {
		m->fault = fault;
	}
	json_decref(v);
}

static void foreign_warn_value(struct mapping *m, const char *key, struct str value,
			       const char *what)
{
	const json_t *line = json_object_get(m->in->foreign->key_lines, key);

	foreign_warn(m->in, line ? (size_t)json_integer_value(line) : m->line,
		     arena_printf(m->a, "%s \"%s\": %s", key,
				  arena_cstr(m->a, text_line(m->a, value)), what));
}

/* --- one rule ------------------------------------------------------------------------------------- */

/* Programs write a day without a time as midnight in local time. */
static struct str as_day(struct str iso, int64_t ms, struct arena *a)
{
	struct str local = when_local(a, ms);

	return str_ends(local, STR(" 00:00:00")) ? str_n(local.p, strlen("2026-11-16")) : iso;
}

static bool is_time(const char *field)
{
	const struct field *f = field_find(str_c(field));

	return f && (f->kind == FIELD_TIME || f->kind == FIELD_DATE);
}

static void take_time(struct mapping *m, const struct foreign_rule *r, const json_t *v)
{
	struct str text = as_text(v, m->a), iso = foreign_when(text, m->from->utc, m->a);
	int64_t ms;

	if (iso.n && when_parse(iso, &ms)) {
		if (!strcmp(r->to, "due"))
			iso = as_day(iso, ms, m->a);
		if (strcmp(r->to, "not_before") || ms > m->p.task.not_before)
			foreign_set(m, r->to, json_str(iso));
		return;
	}
	foreign_warn_value(m, r->key, text,
			   "this is not a time that pawl knows; it is kept in extra");
	json_object_set(m->extra, r->key, (json_t *)v);
}

/* A title is one line. A longer text stays readable in the description. */
static void take_title(struct mapping *m, struct str title)
{
	struct str fits = title_from(title, STR(""));

	if (!str_eq(fits, str_trim(title)))
		buf_addf(&m->sections, "\n\n%.*s", STRF(title));
	foreign_set(m, "title", json_str(fits));
}

static void foreign_take(struct mapping *m, const struct foreign_rule *r, const json_t *v)
{
	struct str text = as_text(v, m->a);

	if (json_array_size(v) > 1) {
		foreign_warn_value(m, r->key, text,
				   "pawl takes the first of several; all are kept in extra");
		json_object_set(m->extra, r->key, (json_t *)v);
	}
	if (is_time(r->to))
		take_time(m, r, v);
	else if (!strcmp(r->to, "title"))
		take_title(m, text);
	else if (!strcmp(r->to, "id"))
		m->their_id = arena_str(m->a, text);
	else if (!strcmp(r->to, "assignee") && str_cut_prefix(&text, STR("@")) && text.n)
		foreign_set(m, r->to, json_str(text));
	else if (text.n)
		foreign_set(m, r->to, json_str(text));
}

static const char *word_for(const struct mapping *m, const char *key, struct str theirs)
{
	for (const struct foreign_word *w = m->from->words; w->key; w++)
		if (!strcmp(w->key, key) &&
		    (str_eq_nocase(theirs, str_c(w->theirs)) || !strcmp(w->theirs, "*")))
			return w->ours;
	return NULL;
}

/* The first rule for the status decides. A later rule may refine it: a closed issue may have been canceled, for example. */
static void foreign_move(struct mapping *m, const char *ours)
{
	int64_t now = m->p.task.status;

	if (m->moved && (now == DONE || now == CANCELED) && strcmp(ours, "Canceled"))
		return;
	foreign_set(m, "status", json_string(ours));
	m->moved = true;
}

/* Keeps a word that the table does not have. */
static void keep_word(struct mapping *m, const struct foreign_rule *r, const json_t *v)
{
	bool status = !strcmp(r->to, "status");

	json_object_set(m->extra, r->key, (json_t *)v);
	if (status && m->moved)
		return;
	if (status)
		foreign_move(m, "Backlog");
	foreign_warn_value(m, r->key, str_trim(as_text(v, m->a)),
			   status ? "pawl does not know this word; the task goes to Backlog"
				  : "pawl does not know this word; it is kept in extra");
}

static void foreign_translate(struct mapping *m, const struct foreign_rule *r, const json_t *v)
{
	struct str theirs = str_trim(as_text(v, m->a));
	const char *ours = word_for(m, r->key, theirs);
	int64_t number;

	if (ours && !*ours)
		return;
	if (ours && !strcmp(r->to, "status"))
		foreign_move(m, ours);
	else if (ours)
		foreign_set(m, r->to, json_string(ours));
	else if (!strcmp(r->to, "priority") && priority_parse(theirs, &number))
		foreign_set(m, r->to, json_integer(number));
	else
		keep_word(m, r, v);
}

static void add_section(struct mapping *m, const char *heading, const json_t *v)
{
	struct str text = str_trim(as_text(v, m->a));

	if (text.n)
		buf_addf(&m->sections, "\n\n## %s\n\n%.*s", heading, STRF(text));
}

/* A label has no blanks and no commas. */
static void add_label(struct mapping *m, const char *before, const json_t *v)
{
	struct str text = str_trim(as_text(v, m->a));
	char *p = arena_cstr(m->a, text);

	for (size_t i = 0; i < text.n; i++)
		if ((unsigned char)p[i] <= ' ' || p[i] == ',')
			p[i] = '-';
	if (text.n)
		json_array_append_new(m->labels, json_str(arena_printf(m->a, "%s%s", before, p)));
}

static void add_labels(struct mapping *m, const char *before, const json_t *v)
{
	struct str rest = json_is_string(v) ? json_text(v) : STR("");

	for (size_t i = 0; i < json_array_size(v); i++)
		add_label(m, before, json_array_get(v, i));
	if (json_is_object(v))
		add_label(m, before, v);
	while (rest.n) {
		json_t *one = json_str(str_cut(&rest, ','));

		add_label(m, before, one);
		json_decref(one);
	}
}

/* --- links ----------------------------------------------------------------------------------------- */

static void add_depends(struct mapping *m, struct str id)
{
	if (str_trim(id).n)
		json_array_append_new(m->depends, json_str(foreign_id(m->from, id, m->a)));
}

static void set_parent(struct mapping *m, struct str id)
{
	if (str_trim(id).n)
		foreign_set(m, "parent", json_str(foreign_id(m->from, id, m->a)));
}

/* beads gives each link a kind. pawl knows two kinds; links of other kinds stay in `extra`. */
static void add_typed(struct mapping *m, json_t *link)
{
	struct str kind = json_get(link, "type"),
		   to = as_text(json_object_get(link, "depends_on_id"), m->a);
	json_t *others;

	if (!kind.n || str_is(kind, "blocks")) {
		add_depends(m, to);
	} else if (str_is(kind, "parent-child")) {
		set_parent(m, to);
	} else {
		others = json_object_get(m->extra, "links");
		if (!others) {
			others = json_array();
			json_object_set_new(m->extra, "links", others);
		}
		json_array_append(others, link);
	}
}

static void add_links(struct mapping *m, const json_t *v)
{
	struct str rest = json_is_array(v) ? STR("") : as_text(v, m->a);

	for (size_t i = 0; i < json_array_size(v); i++) {
		json_t *one = json_array_get(v, i);

		if (json_is_object(one))
			add_typed(m, one);
		else
			add_depends(m, as_text(one, m->a));
	}
	while (rest.n)
		add_depends(m, str_cut(&rest, ','));
}

static void add_note(struct mapping *m, struct str text, struct str author, struct str at)
{
	struct str iso = foreign_when(at, m->from->utc, m->a);
	int64_t ms;
	json_t *o;

	if (!str_trim(text).n)
		return;
	o = json_pack("{s:o}", "text", json_str(text));
	if (author.n)
		json_object_set_new(o, "agent", json_str(author));
	if (iso.n && when_parse(iso, &ms))
		json_object_set_new(o, "at", json_str(iso));
	json_array_append_new(m->notes, o);
}

/* names: the keys for text, author and time, separated by commas. */
static void add_note_object(struct mapping *m, const char *names, const json_t *note)
{
	struct str rest = str_c(names);
	const char *text = arena_cstr(m->a, str_cut(&rest, ',')),
		   *author = arena_cstr(m->a, str_cut(&rest, ',')), *at = arena_cstr(m->a, rest);

	add_note(m, as_text(json_object_get(note, text), m->a),
		 as_text(json_object_get(note, author), m->a),
		 as_text(json_object_get(note, at), m->a));
}

static void add_notes(struct mapping *m, const char *names, const json_t *v)
{
	struct str rest = as_text(v, m->a), at, author;

	for (size_t i = 0; i < json_array_size(v); i++)
		add_notes(m, names, json_array_get(v, i));
	if (json_is_object(v) && names)
		add_note_object(m, names, v);
	if (!json_is_string(v))
		return;
	at = names ? STR("") : str_cut(&rest, ';');
	author = names ? STR("") : str_cut(&rest, ';');
	add_note(m, rest, author, at);
}

/* Makes links to this id lead to the task. */
static void add_alias(struct mapping *m, const json_t *v)
{
	struct foreign_in *f = m->in->foreign;
	struct str alias = foreign_id(m->from, as_text(v, m->a), m->a);

	if (!f->aliases)
		f->aliases = json_object();
	if (alias.n && m->their_id.n)
		json_object_set_new(f->aliases, arena_cstr(m->a, alias),
				    json_str(foreign_id(m->from, m->their_id, m->a)));
}

struct str foreign_alias(const struct foreign_in *f, struct str id)
{
	struct arena a = { 0 };
	struct str own = f->aliases ? json_get(f->aliases, arena_cstr(&a, id)) : STR("");

	arena_free(&a);
	return own;
}

static void foreign_apply(struct mapping *m, const struct foreign_rule *r, const json_t *v)
{
	switch (r->how) {
	case TAKE:
		foreign_take(m, r, v);
		break;
	case WORDS:
		foreign_translate(m, r, v);
		break;
	case LINK:
		add_links(m, v);
		break;
	case INSIDE:
		set_parent(m, as_text(v, m->a));
		break;
	case SECTION:
		add_section(m, r->to, v);
		break;
	case LABEL:
		add_labels(m, r->to, v);
		break;
	case NOTES:
		add_notes(m, r->to, v);
		break;
	case ALIAS:
		add_alias(m, v);
		break;
	case DROP:
		break;
	}
}

/* --- one record ------------------------------------------------------------------------------------- */

static bool has_rule(const struct foreign *f, const char *key)
{
	for (const struct foreign_rule *r = f->rules; r->key; r++)
		if (!strcmp(r->key, key))
			return true;
	return false;
}

/* `extra` gets the record's other keys, and the task's origin, by which a later import finds the task. */
static void set_extra(struct mapping *m)
{
	const char *key;
	json_t *v, *source = json_pack("{s:s, s:o}", "tool", m->from->name, "id",
				       json_str(m->their_id));

	if (m->in->foreign->by_place) /* a later import must not take another task for this one */
		json_object_set_new(source, "title", json_str(m->p.task.title));
	json_object_foreach((json_t *)m->o, key, v) {
		if (!has_rule(m->from, key) && !json_is_null(v))
			json_object_set(m->extra, key, v);
	}
	json_object_set_new(m->extra, "source", source);
	json_object_set_new(m->extra, "imported", json_str(origin_sums(&m->p.task, m->a)));
	foreign_set(m, "extra", json_incref(m->extra));
}

static void set_lists(struct mapping *m)
{
	if (json_array_size(m->labels))
		foreign_set(m, "labels", json_incref(m->labels));
	if (json_array_size(m->depends))
		foreign_set(m, "depends", json_incref(m->depends));
	if (json_array_size(m->notes))
		foreign_set(m, "comments", json_incref(m->notes));
}

struct str foreign_blocked(const struct foreign *f, struct arena *a)
{
	return arena_printf(a, "blocked in %s", f->name);
}

static void foreign_complete(struct mapping *m)
{
	struct task *t = &m->p.task;
	struct str about = str_trim(arena_printf(m->a, "%.*s%.*s", STRF(t->description),
						 (int)m->sections.n,
						 m->sections.n ? m->sections.p : ""));

	t->id = foreign_id(m->from, m->their_id, m->a);
	t->description = about;
	if (!t->title.n)
		t->title = title_from(about, t->id);
	if (t->status == DONE && !t->done_at)
		t->done_at = t->updated_at ? t->updated_at : t->created_at;
	if (t->status == BLOCKED && !t->blocker_reason.n) {
		t->blocker_reason = foreign_blocked(m->from, m->a);
		if (t->depends.n) /* these hold it back, unless foreign_links() finds none */
			t->status = READY;
	}
	if (!t->id.n && !m->fault)
		m->fault = "this task has no id";
}

static void foreign_map(struct mapping *m)
{
	plain_start(&m->p, when_parse, false, m->a);
	for (const struct foreign_rule *r = m->from->rules; r->key && !m->fault; r++) {
		const json_t *v = json_object_get(m->o, r->key);

		if (v && !json_is_null(v))
			foreign_apply(m, r, v);
	}
	set_lists(m);
	foreign_complete(m);
	set_extra(m);
}

/* The slot of the sum in the set, or the empty slot for it. The set must have room. */
static size_t place_of(const struct foreign_in *f, uint64_t sum)
{
	size_t at = sum % f->room;

	while (f->ids[at] && f->ids[at] != sum)
		at = (at + 1) % f->room;
	return at;
}

static uint64_t sum_of(struct str key)
{
	return str_hash(key) | 1;
}

bool foreign_has(const struct foreign_in *f, struct str key)
{
	return f->room && f->ids[place_of(f, sum_of(key))];
}

static void foreign_remember(struct foreign_in *f, uint64_t sum)
{
	size_t at = place_of(f, sum);

	f->n_ids += !f->ids[at];
	f->ids[at] = sum;
}

static void foreign_grow(struct foreign_in *f)
{
	uint64_t *old = f->ids;
	size_t room = f->room;

	f->room = room ? room * 2 : 1024;
	f->ids = mem_alloc(f->room * sizeof(*f->ids));
	memset(f->ids, 0, f->room * sizeof(*f->ids));
	f->n_ids = 0;
	for (size_t i = 0; i < room; i++)
		if (old[i])
			foreign_remember(f, old[i]);
	free(old);
}

static void remember_id(struct port_in *in, struct str id)
{
	struct foreign_in *f = in->foreign;
	struct str key = task_key(&in->piece, id);

	if (f->n_ids * 4 >= f->room * 3)
		foreign_grow(f);
	foreign_remember(f, sum_of(key));
}

/* The reason why a record is not a person's task; NULL: it is one. */
static const char *not_a_task(const struct foreign_in *f, const json_t *o)
{
	static const char *const types[] = { "agent", "message", "event", "gate" };
	struct str type = json_get(o, "issue_type");

	if (json_object_get(o, "pull_request") && !strcmp(f->from->name, "github"))
		return "a pull request, not an issue";
	if (!strcmp(f->from->name, "beads") && str_is(json_get(o, "status"), "tombstone"))
		return "deleted in beads";
	if (f->all || strcmp(f->from->name, "beads"))
		return NULL;
	if (json_is_true(json_object_get(o, "ephemeral")))
		return "ephemeral; --all imports it";
	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
		if (str_is(type, types[i]))
			return "an agent, message, event or gate of beads; --all imports it";
	return NULL;
}

enum result foreign_stub(struct port_in *in, struct str their_id, size_t line)
{
	struct str id = foreign_id(in->foreign->from, their_id, &in->piece);

	if (id.n)
		remember_id(in, id);
	return port_stub(in, id, line);
}

enum result foreign_found(struct port_in *in, json_t *o, size_t line)
{
	const char *why = not_a_task(in->foreign, o);
	struct mapping m = { .in = in,
			     .from = in->foreign->from,
			     .a = &in->piece,
			     .line = line,
			     .o = o,
			     .sections = BUF_MAX(SIZE_MAX / 4) };
	enum result code;

	if (why) {
		foreign_drop(in, why);
		return SUCCESS;
	}
	m.extra = json_object();
	m.labels = json_array();
	m.depends = json_array();
	m.notes = json_array();
	foreign_map(&m);
	if (m.fault)
		(void)port_refuse(in, line, str_c(m.fault));
	if (m.fault || m.bad) {
		plain_abort(&m.p);
		code = foreign_stub(in, m.their_id, line);
	} else {
		remember_id(in, m.p.task.id);
		code = port_found(in, &m.p, line);
	}
	json_decref(m.extra);
	json_decref(m.labels);
	json_decref(m.depends);
	json_decref(m.notes);
	buf_free(&m.sections);
	return code;
}

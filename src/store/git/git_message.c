/* Writes a change and its record as a commit's message, and reads them back. The commit may come from anybody
 * who can push, so the reader limits its size and accepts only moves of pawl's own refs. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"
#include "base/when.h"
#include "core/event.h"
#include "format/json.h"
#include "format/pack.h"
#include "format/record_form.h"
#include "format/task_form.h"
#include "store/git/git.h"

#define STAMP_MAX (WHEN_MAX * 1000)
#define SUBJECT_MAX 4096

/* --- log lines ---------------------------------------------------------------------------------- */

static void set_number(json_t *o, const char *name, int64_t n)
{
	if (n)
		json_object_set_new(o, name, json_integer(n));
}

static bool event_text(const struct event *e)
{
	return e->name.n && text_valid(e->name) && text_valid(e->task) && text_valid(e->agent) &&
	       text_valid(e->run) && text_valid(e->text) && text_valid(e->changes) &&
	       text_valid(e->unblock_action);
}

/* Only an event that packs to the same bytes again may be written as JSON fields. */
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

	json_set_text(o, "event", e->name);
	json_set_text(o, "task", e->task);
	json_set_text(o, "agent", e->agent);
	json_set_text(o, "run", e->run);
	json_set_text(o, "text", e->text);
	set_number(o, "fence", e->fence);
	set_number(o, "from", e->from);
	set_number(o, "to", e->to);
	json_set_text(o, "changes", e->changes);
	json_set_text(o, "unblock_action", e->unblock_action);
	if (e->prev.n)
		json_object_set_new(o, "prev", bytes_json(e->prev));
	set_number(o, "expires", e->expires);
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

static struct str git_message_member(const json_t *o, const char *name)
{
	const json_t *v = json_object_get(o, name);

	return str_n(json_string_value(v), json_string_length(v));
}

static bool event_data(const json_t *o, struct str *out, struct arena *a)
{
	const json_t *hash = json_object_get(o, "prev");
	struct str prev = STR("");
	const bool whole = !hash || bytes_parse(hash, &prev, a);
	const struct event e = {
		.name = git_message_member(o, "event"),
		.task = git_message_member(o, "task"),
		.agent = git_message_member(o, "agent"),
		.run = git_message_member(o, "run"),
		.text = git_message_member(o, "text"),
		.fence = json_integer_value(json_object_get(o, "fence")),
		.from = json_integer_value(json_object_get(o, "from")),
		.to = json_integer_value(json_object_get(o, "to")),
		.changes = git_message_member(o, "changes"),
		.unblock_action = git_message_member(o, "unblock_action"),
		.prev = prev,
		.expires = json_integer_value(json_object_get(o, "expires")),
	};
	struct buf b = BUF_MAX(GIT_RECORD_MAX);

	event_pack(&e, &b);
	*out = arena_str(a, buf_str(&b));
	buf_free(&b);
	return whole;
}

static bool entry_parse(const json_t *o, struct entry *e, struct arena *a)
{
	const json_t *key = json_object_get(o, "key"), *data = json_object_get(o, "data");

	*e = (struct entry){ .at = json_integer_value(json_object_get(o, "at")) };
	if (key && !bytes_parse(key, &e->key, a))
		return false;
	if (data)
		return bytes_parse(data, &e->data, a);
	return event_data(o, &e->data, a);
}

/* --- the message -------------------------------------------------------------------------------- */

static void add_subject(struct buf *b, const struct git_draft *d, struct arena *a)
{
	struct event ev;

	if (d->lines && event_of(d->lines->entry.data, &ev)) {
		buf_addf(b, "%s %s", arena_cstr(a, text_line(a, ev.name)),
			 arena_cstr(a, text_line(a, ev.task)));
		if (ev.agent.n)
			buf_addf(b, " by %s", arena_cstr(a, text_line(a, ev.agent)));
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
		json_object_set_new(o, "record", git_record_json(d->rec, a));
	if (d->rec && d->rec->ix.holder.n && d->clock.n)
		json_object_set_new(o, "clock", bytes_json(d->clock));
	for (const struct git_line *l = d->lines; l; l = l->next)
		json_array_append_new(log, line_json(l));
	if (log)
		json_object_set_new(o, "log", log);
	if (d->leader.n)
		json_object_set_new(o, "lead", bytes_json(d->leader));
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
	struct buf b = BUF_MAX(GIT_OBJECT_MAX);
	struct str who = s->base.env.opt.who.n ? s->base.env.opt.who : STR("pawl");
	json_t *o = draft_json(d, a);
	char *text = json_dumps(o, JSON_COMPACT);
	bool large;
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
	large = b.full || strlen(text) > GIT_MESSAGE_MAX - SUBJECT_MAX;
	free(text);
	if (!large)
		rc = git_object_put(s, buf_str(&b), GIT_OBJECT_COMMIT, out);
	buf_free(&b);
	if (large)
		return store_fail(&s->base.env, STORE_UNSUPPORTED,
				  "split the change into smaller ones",
				  "%s: the change is too large for one commit", s->remote);
	return rc ? git_fail(s, STORE_IO, "cannot write a commit") : 0;
}

/* --- reading ------------------------------------------------------------------------------------ */

static bool oid_parse(const json_t *v, git_oid *out)
{
	return json_is_string(v) && json_string_length(v) == GIT_OID_HEXSZ &&
	       git_oid_fromstr(out, json_string_value(v)) == 0;
}

/* Accepts only names that pawl gives its refs, so that a hostile commit cannot move other refs. */
static bool is_ours(struct str name, struct arena *a)
{
	struct str id;

	if (str_eq(name, GIT_BASE))
		return true;
	return str_cut_prefix(&name, STR("t/")) && git_unname(a, name, &id) &&
	       str_eq(git_name(a, id), name);
}

bool git_state_sane(const struct git_state *st, struct arena *a)
{
	for (size_t i = 0; i < st->n_moves; i++)
		if (!is_ours(st->moves[i].name, a))
			return false;
	return st->stamp > 0 && st->stamp <= STAMP_MAX && st->rec.ix.status >= 0 &&
	       st->rec.ix.status <= 15;
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
	const json_t *rec = json_object_get(o, "record"), *leader = json_object_get(o, "lead"),
		     *clock = json_object_get(o, "clock");

	out->stamp = json_integer_value(json_object_get(o, "stamp"));
	out->has_rec = rec != NULL;
	return (!rec || git_record_parse(rec, &out->rec, &out->older, a)) &&
	       (!leader || bytes_parse(leader, &out->leader, a)) &&
	       (!clock || bytes_parse(clock, &out->clock, a)) &&
	       moves_parse(json_object_get(o, "moves"), out, a) &&
	       log_parse(json_object_get(o, "log"), out, a) && git_state_sane(out, a);
}

/* Leaves the message in `text`; false: the commit has no message. */
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

	if (text.n > GIT_MESSAGE_MAX)
		return false;
	(void)str_cut(&text, '\n'); /* the subject */
	o = json_loadb(text.p ? text.p : "", text.n, 0, NULL);
	ok = json_is_integer(json_object_get(o, "pawl")) && state_parse(o, out, a);
	json_decref(o);
	return ok;
}

bool git_commit_parse(struct str text, struct git_state *out, struct arena *a)
{
	*out = (struct git_state){ 0 };
	return header_parse(&text, out, a) && message_parse(text, out, a);
}

int git_commit_read(struct git *s, const git_oid *oid, struct git_state *out, struct arena *a)
{
	git_odb_object *obj;
	struct str text;
	bool ok;

	*out = (struct git_state){ 0 };
	if (!git_object_fits(s->odb, oid))
		return 2;
	if (git_odb_read(&obj, s->odb, oid))
		return 1;
	text = str_n(git_odb_object_data(obj), git_odb_object_size(obj));
	ok = git_odb_object_type(obj) == GIT_OBJECT_COMMIT && git_commit_parse(text, out, a);
	git_odb_object_free(obj);
	return ok ? 0 : 2;
}

/* --- name ------------------------------------------------------------------------------------- */

/* Encodes keys as names of refs and files, and turns libgit2's errors into faults. An encoded name is one
 * component that git accepts: it contains no '/' or "..", and does not end in ".lock". */

static bool git_name_plain(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '-' || c == '_';
}

/* A dot is safe between two plain characters. git refuses "..", a trailing ".lock", and dots at the ends. */
static bool plain_dot(struct str s, size_t i)
{
	return s.p[i] == '.' && i > 0 && i + 1 < s.n && git_name_plain(s.p[i - 1]) &&
	       git_name_plain(s.p[i + 1]) && !str_eq_nocase(str_n(s.p + i, s.n - i), STR(".lock"));
}

struct str git_name(struct arena *a, struct str bytes)
{
	struct buf b = BUF_MAX(3 * bytes.n + 1);
	struct str out;

	for (size_t i = 0; i < bytes.n; i++) {
		if (git_name_plain(bytes.p[i]) || plain_dot(bytes, i))
			buf_addc(&b, bytes.p[i]);
		else
			buf_addf(&b, "%%%02x", (unsigned char)bytes.p[i]);
	}
	out = arena_str(a, buf_str(&b));
	buf_free(&b);
	return out;
}

static int git_name_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool git_unname(struct arena *a, struct str name, struct str *out)
{
	char *p = arena_alloc(a, name.n + 1);
	size_t n = 0;

	for (size_t i = 0; i < name.n; i++) {
		if (name.p[i] != '%') {
			p[n++] = name.p[i];
			continue;
		}
		if (name.n - i < 3 || git_name_digit(name.p[i + 1]) < 0 ||
		    git_name_digit(name.p[i + 2]) < 0)
			return false;
		p[n++] = (char)(git_name_digit(name.p[i + 1]) << 4 | git_name_digit(name.p[i + 2]));
		i += 2;
	}
	*out = str_n(p, n);
	return n > 0;
}

struct str git_ref_of(struct arena *a, struct str key)
{
	(void)str_cut_prefix(&key, STR("task/"));
	return arena_printf(a, "t/%s", arena_cstr(a, git_name(a, key)));
}

struct str git_full(struct git *s, struct str name, struct arena *a)
{
	return arena_printf(a, "%s%.*s", s->prefix, STRF(name));
}

bool git_ours(const struct git *s, struct str name)
{
	if (s->only)
		return str_is(name, s->only);
	return str_eq(name, GIT_BASE) ||
	       (str_cut_prefix(&name, STR("t/")) && !memchr(str_p(name), '/', name.n));
}

struct str git_hex(struct arena *a, const git_oid *oid)
{
	char *hex = arena_alloc(a, GIT_OID_HEXSZ + 1);

	git_oid_tostr(hex, GIT_OID_HEXSZ + 1, oid);
	return str_n(hex, GIT_OID_HEXSZ);
}

int git_move_cmp(const void *a, const void *b)
{
	const struct git_move *x = a, *y = b;

	return str_cmp(x->name, y->name);
}

static bool says_full(struct str line)
{
	static const int full[] = { ENOSPC, EDQUOT, EFBIG };

	for (size_t i = 0; i < sizeof(full) / sizeof(*full); i++)
		if (str_has_nocase(line, str_c(strerror(full[i]))))
			return true;
	return false;
}

struct str git_full_line(struct str text)
{
	while (text.n) {
		struct str line = str_trim(str_cut(&text, '\n'));

		if (says_full(line))
			return line;
	}
	return STR("");
}

int git_fail(struct git *s, int fault, const char *what)
{
	const git_error *e = git_error_last();
	const char *text = e && e->message ? e->message : "";

	if (fault == STORE_IO && git_full_line(str_c(text)).n)
		fault = STORE_FULL;
	return store_fail(&s->base.env, fault,
			  fault == STORE_CORRUPT ? "to see the damage: pawl doctor" : NULL,
			  "%s: %s%s%s", s->remote, what, *text ? ": " : "", text);
}

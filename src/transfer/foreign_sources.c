/* Finds the table for a file or folder, by its place or by its contents. It only reads the first HEAD_MAX bytes of a regular
 * file, so recognition neither blocks on a pipe nor consumes it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/str.h"
#include "format/json.h"
#include "format/origin.h"
#include "transfer/foreign.h"

#define HEAD_MAX 65536 /* bytes of a file that are searched for marks */

const struct foreign *foreign_find(struct str name)
{
	for (const struct foreign *const *f = foreign_all; *f; f++)
		if (str_is(name, (*f)->name))
			return *f;
	return NULL;
}

/* The path of `place` below the folder. If the folder is itself the first part of `place`, the rest of it below the folder.
 * NULL: it does not exist. */
static const char *foreign_sources_below(const struct foreign *f, const char *folder,
					 struct arena *a)
{
	struct str rest = str_c(f->place), first = str_cut(&rest, '/');
	const char *path = fs_join(a, str_c(folder), str_c(f->place)), *real;

	if (fs_exists(path))
		return path;
	real = rest.n ? fs_real(a, folder) : NULL;
	if (!real || !str_ends(str_c(real), arena_printf(a, "/%.*s", STRF(first))))
		return NULL;
	path = fs_join(a, str_c(folder), rest);
	return fs_exists(path) ? path : NULL;
}

const char *foreign_path(const struct foreign *f, const char *path, struct arena *a)
{
	const char *found = f->place && fs_is_dir(path) ? foreign_sources_below(f, path, a) : NULL;

	return found ? found : path;
}

/* --- recognition by shape --------------------------------------------------------------------------- */

/* Cuts a JSON string, after its first quote, from *rest; escapes stay as they are. */
static struct str cut_string(struct str *rest)
{
	size_t n = 0;
	struct str s;

	while (n < rest->n && rest->p[n] != '"')
		n += 1 + (rest->p[n] == '\\');
	n = n < rest->n ? n : rest->n;
	s = str_n(rest->p, n);
	n += n < rest->n;
	*rest = str_n(rest->p + n, rest->n - n);
	return s;
}

/* Does the first object have this key? nested: an object inside it counts, too. */
static bool has_key(struct str text, const char *key, bool nested)
{
	size_t level = 0;

	while (text.n) {
		char c = text.p[0];
		struct str s;

		text = str_n(text.p + 1, text.n - 1);
		level += c == '{';
		level -= c == '}' && level;
		if (c == '}' && !level)
			return false;
		if (c != '"')
			continue;
		s = cut_string(&text);
		if ((level == 1 || (nested && level)) && str_is(s, key) &&
		    str_starts(str_trim(text), STR(":")))
			return true;
	}
	return false;
}

static bool has_column(struct str text, const char *name)
{
	struct str row = str_cut(&text, '\n');

	while (row.n) {
		struct str cell = str_trim(str_cut(&row, ','));

		if (cell.n > 1 && cell.p[0] == '"')
			cell = str_n(cell.p + 1, cell.n - 2);
		if (str_is(cell, name))
			return true;
	}
	return false;
}

static bool has_marks(const struct foreign *f, struct str head)
{
	bool objects = str_starts(head, STR("{")) || str_starts(head, STR("["));

	for (const char *const *mark = f->marks; *mark; mark++)
		if (f->shape == OBJECTS ? !objects || !has_key(head, *mark, f->nested)
					: !has_column(head, *mark))
			return false;
	return f->marks[0];
}

/* Is the first line after the headings an item with a checkbox? */
static bool is_checklist(struct str text)
{
	struct str line = STR("");

	while (text.n && (!line.n || line.p[0] == '#'))
		line = str_trim(str_cut(&text, '\n'));
	return line.n > 5 && memchr("-*+", line.p[0], 3) &&
	       (!memcmp(line.p + 1, " [ ] ", 5) || !memcmp(line.p + 1, " [x] ", 5));
}

static bool has_shape(const struct foreign *f, const char *path, struct str head)
{
	(void)str_cut_prefix(&head, STR("\xef\xbb\xbf"));
	if (f->shape == CHECKLIST)
		return str_ends(str_c(path), STR(".md")) && is_checklist(head);
	return has_marks(f, str_trim(head));
}

/* The first bytes of a regular file; empty for anything else. */
static struct str head_of(const char *path, char *room)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;
	ssize_t n = 0;

	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		n = read(fd, room, HEAD_MAX);
	if (fd >= 0)
		close(fd);
	return str_n(room, n > 0 ? (size_t)n : 0);
}

/* Recognises a program by the name of the folder or file, or by the files at the usual place below a folder. */
static bool in_place(const struct foreign *f, const char *path, struct arena *a)
{
	const char *file = f->place ? foreign_path(f, path, a) : NULL;
	char *real = file ? fs_real(a, file) : NULL;

	if (!real || !str_ends(str_c(real), arena_printf(a, "/%s", f->place)))
		return false;
	return !f->sign || fs_exists(fs_join(a, str_c(real), str_c(f->sign)));
}

const struct foreign *foreign_recognise(const char *path)
{
	struct arena a = { 0 };
	const struct foreign *found = NULL;
	struct str head = head_of(path, arena_alloc(&a, HEAD_MAX));

	for (const struct foreign *const *f = foreign_all; *f; f++)
		if ((!found || (*f)->rank > found->rank) &&
		    (in_place(*f, path, &a) || has_shape(*f, path, head)))
			found = *f;
	arena_free(&a);
	return found;
}

/* --- foreign links ---------------------------------------------------------------------------- */

/* Checks the links of foreign tasks. Their targets are known only after the last task was read, so this is a second pass over
 * the spool. After it, every link has a target, and no task waits for its own parent. */

struct checking {
	struct port_in *in;
	bool strict;
	enum result (*exists)(void *ctx, struct str id, struct answer *ans);
	void *ctx;
	struct arena *a;
	json_t *lost; /* the current task's links that have no target */
	struct str where;
	enum result code;
};

/* Replaces a task's alias by its own id. */
static void foreign_links_resolve(struct checking *c, struct str *id)
{
	const struct foreign_in *f = c->in->foreign;
	struct str own = foreign_has(f, task_key(c->a, *id)) ? STR("") : foreign_alias(f, *id);

	if (own.n)
		*id = own;
}

static bool leads_somewhere(struct checking *c, const struct task *t, struct str id,
			    const char *what)
{
	enum result code = foreign_has(c->in->foreign, task_key(c->a, id))
				   ? SUCCESS
				   : c->exists(c->ctx, id, c->in->ans);

	if (code == SUCCESS)
		return true;
	if (code != NOT_FOUND) {
		c->code = code;
		return false;
	}
	if (c->strict) {
		c->code = port_refuse_as(
			c->in, NOT_FOUND, c->where,
			arena_printf(c->a, "%.*s %s %.*s, which does not exist", STRF(t->id), what,
				     STRF(id)),
			STR("nothing was changed; without --strict the link is kept in extra"));
		return false;
	}
	json_array_append_new(c->lost, json_stringn(id.p, id.n));
	foreign_warn_at(c->in, c->where,
			arena_printf(c->a,
				     "%.*s %s %.*s, which does not exist: kept in extra.lost_links",
				     STRF(t->id), what, STRF(id)));
	return false;
}

/* A task that depends on its parent would wait forever, because the parent waits for its sub-tasks. */
static bool waits_for_parent(struct checking *c, const struct task *t, struct str id)
{
	if (!t->parent.n || !str_eq(task_key(c->a, t->parent), task_key(c->a, id)))
		return false;
	foreign_warn_at(c->in, c->where,
			arena_printf(c->a,
				     "%.*s depends on %.*s, whose sub-task it is: link dropped",
				     STRF(t->id), STRF(id)));
	return true;
}

/* Records the lost links, and the sums of the fields as this import leaves them; a later --update compares with these. */
static void foreign_links_note(struct checking *c, struct task *t)
{
	json_t *o = json_loadb(str_p(t->extra), t->extra.n, 0, NULL);
	char *text;

	if (json_array_size(c->lost))
		json_object_set(o, "lost_links", c->lost);
	json_object_set_new(o, "imported", json_str(origin_sums(t, c->a)));
	text = json_dumps(o, JSON_COMPACT);
	t->extra = arena_str(c->a, str_c(text));
	free(text);
	json_decref(o);
}

/* A task that was blocked by its dependencies is imported as Ready. If none of them exists, it stays Blocked, and a person
 * must decide. */
static bool settle_blocked(struct checking *c, struct task *t)
{
	if (t->status != READY ||
	    !str_eq(t->blocker_reason, foreign_blocked(c->in->foreign->from, c->a)))
		return false;
	if (t->depends.n)
		t->blocker_reason = STR("");
	else
		t->status = BLOCKED;
	return t->status == BLOCKED;
}

static void foreign_links_check(struct checking *c, struct task *t)
{
	size_t kept = 0;

	c->lost = json_array();
	if (t->parent.n)
		foreign_links_resolve(c, &t->parent);
	for (size_t i = 0; i < t->depends.n; i++)
		foreign_links_resolve(c, &t->depends.v[i]);
	for (size_t i = 0; i < t->depends.n && c->code == SUCCESS; i++)
		if (!waits_for_parent(c, t, t->depends.v[i]) &&
		    leads_somewhere(c, t, t->depends.v[i], "depends on"))
			t->depends.v[kept++] = t->depends.v[i];
	t->depends.n = kept;
	if (t->parent.n && c->code == SUCCESS &&
	    !leads_somewhere(c, t, t->parent, "is a sub-task of"))
		t->parent = STR("");
	if (settle_blocked(c, t) || json_array_size(c->lost))
		foreign_links_note(c, t);
	json_decref(c->lost);
}

static void foreign_links_count(struct port_in *in, const struct task *t)
{
	struct foreign_in *f = in->foreign;
	struct task *copy;

	if (t->status > 0 && t->status < STATUS_END)
		f->by_status[t->status]++;
	if (f->n_first == FOREIGN_PREVIEW)
		return;
	if (!f->first)
		f->first = arena_array(in->arena, struct task, FOREIGN_PREVIEW);
	copy = &f->first[f->n_first++];
	copy->id = arena_str(in->arena, t->id);
	copy->title = arena_str(in->arena, t->title);
	copy->parent = arena_str(in->arena, t->parent);
	copy->depends = arena_strs(in->arena, t->depends);
	copy->status = t->status;
	copy->priority = t->priority;
}

enum result foreign_links(struct port_in *in, struct spool *to, bool strict,
			  enum result (*exists)(void *ctx, struct str id, struct answer *ans),
			  void *ctx)
{
	struct checking c = { .in = in, .strict = strict, .exists = exists, .ctx = ctx };
	struct arena a = { 0 };
	struct parcel p = { 0 };
	int r = spool_open(to);

	c.a = &a;
	spool_rewind(in->spool);
	while (!r && c.code == SUCCESS && !(r = spool_next(in->spool, &p, &a))) {
		c.where = p.where;
		foreign_links_check(&c, &p.task);
		foreign_links_count(in, &p.task);
		if (c.code == SUCCESS)
			r = spool_add(to, &p);
		arena_free(&a);
		p = (struct parcel){ 0 };
	}
	arena_free(&a);
	if (r < 0)
		return port_cannot(in, "pawl cannot write the tasks to TMPDIR", r);
	if (c.code == SUCCESS && fflush(to->file))
		return port_cannot(in, "pawl cannot write the tasks to TMPDIR", -errno);
	return c.code;
}

void foreign_end(struct foreign_in *f)
{
	free(f->ids);
	json_decref(f->aliases);
	f->aliases = NULL;
	f->ids = NULL;
	f->room = 0;
}

/* --- foreign when ----------------------------------------------------------------------------- */

/* Recognises each form by its shape. A text in no known form is returned unchanged, and when_parse() refuses it. */

/* 20261116T103000Z */
static bool is_compact(struct str s)
{
	if (s.n != strlen("20261116T103000Z") || s.p[8] != 'T' || s.p[15] != 'Z')
		return false;
	for (size_t i = 0; i < 15; i++)
		if (i != 8 && !is_digit(s.p[i]))
			return false;
	return true;
}

static struct str foreign_when_spread(struct str s, struct arena *a)
{
	return arena_printf(a, "%.4s-%.2s-%.2sT%.2s:%.2s:%.2sZ", s.p, s.p + 4, s.p + 6, s.p + 9,
			    s.p + 11, s.p + 13);
}

/* 16/Nov/26 10:30 AM, in local time. Empty: the text has another form. */
static struct str from_jira(struct str s, struct arena *a)
{
	static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
	char month[4] = "", half[3] = "";
	const char *at;
	int day, year, hour, minute, end = 0;

	if (sscanf(arena_cstr(a, s), "%2d/%3[A-Za-z]/%2d %2d:%2d %2[APM]%n", &day, month, &year,
		   &hour, &minute, half, &end) != 6 ||
	    (size_t)end != s.n || strlen(month) != 3 || hour < 1 || hour > 12)
		return STR("");
	at = strstr(months, month);
	if (!at || (at - months) % 3)
		return STR("");
	hour = hour % 12 + (half[0] == 'P' ? 12 : 0);
	return arena_printf(a, "20%02d-%02d-%02dT%02d:%02d", year, (int)(at - months) / 3 + 1, day,
			    hour, minute);
}

/* Does the time of day end with Z or an offset? */
static bool has_zone(struct str s)
{
	for (size_t i = strlen("2026-11-16T"); i < s.n; i++)
		if (memchr("Z+-", s.p[i], 3))
			return true;
	return false;
}

struct str foreign_when(struct str text, bool utc, struct arena *a)
{
	struct str s = str_trim(text), jira;

	if (is_compact(s))
		return foreign_when_spread(s, a);
	jira = from_jira(s, a);
	if (jira.n)
		return jira;
	if (utc && s.n > strlen("2026-11-16") && !has_zone(s))
		return arena_printf(a, "%.*sZ", STRF(s));
	return s;
}

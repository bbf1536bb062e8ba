/*
 * The state file: one line for each change of a link. The last line about a task or page is the valid one, and a torn last line
 * is ignored. Writers append and hold a lock on the file.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/os.h"
#include "base/secret.h"
#include "sync/notion/notion.h"

#define FILE_MAX (512u << 20)
#define SLACK 1000 /* stale lines that are allowed before the file is rewritten */

struct state {
	struct notion *n;
	struct arena arena;
	char *path;
	int fd; /* open for appending, and locked: one sync at a time on this machine */
	struct link **links;
	size_t count, lines;
	json_t *of_task, *of_page; /* -> place in links */
	int64_t mark;
	int64_t talk;       /* place of the link whose comments come next */
	int64_t sync_token; /* fence of the lock @sync when this state was last used; 0: unknown */
};

/* --- lookup ------------------------------------------------------------------------------------------------ */

static const char *key_of(struct str id, char *room, size_t size)
{
	size_t n = id.n < size - 1 ? id.n : size - 1;

	for (size_t i = 0; i < n; i++)
		room[i] = (char)(id.p[i] >= 'A' && id.p[i] <= 'Z' ? id.p[i] + 32 : id.p[i]);
	room[n] = '\0';
	return room;
}

static struct link *notion_state_find(struct state *s, json_t *in, struct str id)
{
	char room[ID_MAX + 1];
	const json_t *at = json_object_get(in, key_of(id, room, sizeof(room)));

	return at ? s->links[json_integer_value(at)] : NULL;
}

struct link *notion_link_of_task(struct state *s, struct str task)
{
	return notion_state_find(s, s->of_task, task);
}

struct link *notion_link_of_page(struct state *s, struct str page)
{
	return notion_state_find(s, s->of_page, page);
}

static void index_as(json_t *in, struct str id, size_t at)
{
	char room[ID_MAX + 1];

	if (id.n)
		json_object_set_new(in, key_of(id, room, sizeof(room)),
				    json_integer((json_int_t)at));
}

struct link *notion_link_new(struct state *s, struct str task, struct str page)
{
	struct link *l = arena_new(&s->arena, struct link);

	l->task = arena_str(&s->arena, task);
	l->page = arena_str(&s->arena, page);
	l->version = -1;
	l->place = s->count;
	s->links = arena_grow(&s->arena, s->links, s->count, sizeof(*s->links));
	s->links[s->count] = l;
	index_as(s->of_task, task, s->count);
	index_as(s->of_page, page, s->count);
	s->count++;
	return l;
}

void notion_link_page(struct state *s, struct link *l, struct str page)
{
	char room[ID_MAX + 1];

	/* a task has one page */
	if (l->page.n && notion_link_of_page(s, l->page) == l)
		json_object_del(s->of_page, key_of(l->page, room, sizeof(room)));
	l->page = arena_str(&s->arena, page);
	index_as(s->of_page, page, l->place);
}

void notion_link_task(struct state *s, struct link *l, struct str task)
{
	l->task = arena_str(&s->arena, task);
	index_as(s->of_task, task, l->place);
}

size_t notion_links(struct state *s)
{
	return s->count;
}

struct link *notion_link_at(struct state *s, size_t i)
{
	return s->links[i];
}

int64_t notion_mark(const struct state *s)
{
	return s->mark;
}

size_t notion_talk(const struct state *s)
{
	return s->count ? (size_t)s->talk % s->count : 0;
}

/* --- lines ---------------------------------------------------------------------------------------------------- */

static void put_text(json_t *o, const char *key, struct str text)
{
	if (text.n)
		json_object_set_new(o, key, json_stringn(text.p, text.n));
}

static void put_values(json_t *o, const char *key, const struct values *v)
{
	json_t *list = json_object();

	for (int f = 0; f < F_END; f++)
		if (v->has[f])
			json_object_set_new(list, notion_fields[f].key,
					    json_stringn(str_p(v->v[f]), v->v[f].n));
	if (json_object_size(list))
		json_object_set(o, key, list);
	json_decref(list);
}

static void put_doing(json_t *o, const struct doing *d)
{
	json_t *list = json_object();

	if (d->id.n) {
		put_text(list, "id", d->id);
		json_object_set_new(list, "at", json_integer((json_int_t)d->at));
		json_object_set_new(list, "version", json_integer((json_int_t)d->version));
		put_values(list, "push", &d->push);
		put_values(list, "pull", &d->pull);
		put_values(list, "from", &d->from);
		json_object_set(o, "doing", list);
	}
	json_decref(list);
}

static json_t *line_of(const struct link *l)
{
	json_t *o = json_pack("{s:I,s:I,s:I}", "at", (json_int_t)l->at, "edited",
			      (json_int_t)l->edited, "version", (json_int_t)l->version);

	put_text(o, "task", l->task);
	put_text(o, "page", l->page);
	put_text(o, "comment", l->comment);
	put_text(o, "foreign", l->foreign);
	put_text(o, "making", l->making);
	put_text(o, "saying", l->saying);
	put_values(o, "t", &l->t);
	put_values(o, "p", &l->p);
	put_values(o, "was", &l->was);
	put_doing(o, &l->doing);
	if (l->comment_at)
		json_object_set_new(o, "comment_at", json_integer((json_int_t)l->comment_at));
	if (l->gone)
		json_object_set_new(o, "gone", json_true());
	if (l->refused)
		json_object_set_new(o, "refused", json_true());
	if (l->loose)
		json_object_set_new(o, "loose", json_true());
	return o;
}

static struct str text_in(struct state *s, const json_t *o, const char *key)
{
	const json_t *v = json_object_get(o, key);

	return arena_str(&s->arena, str_n(json_string_value(v), json_string_length(v)));
}

static void get_values(struct state *s, const json_t *o, const char *key, struct values *v)
{
	const json_t *list = json_object_get(o, key);

	for (int f = 0; f < F_END; f++) {
		v->has[f] = json_object_get(list, notion_fields[f].key) != NULL;
		v->v[f] = v->has[f] ? text_in(s, list, notion_fields[f].key) : STR("");
	}
}

static int64_t number_in(const json_t *o, const char *key)
{
	return json_integer_value(json_object_get(o, key));
}

static void get_doing(struct state *s, const json_t *o, struct doing *d)
{
	const json_t *list = json_object_get(o, "doing");

	d->id = text_in(s, list, "id");
	d->at = number_in(list, "at");
	d->version = number_in(list, "version");
	get_values(s, list, "push", &d->push);
	get_values(s, list, "pull", &d->pull);
	get_values(s, list, "from", &d->from);
}

/* Another state, perhaps on another machine, was used since these values were recorded. A different
 * status may be a write of that sync, so it says nothing about people. For people's fields, an old
 * value still tells which side changed. */
static void notion_state_forget(struct state *s)
{
	for (size_t i = 0; i < s->count; i++)
		for (int f = 0; f < F_END; f++) {
			struct link *l = s->links[i];

			if (notion_fields[f].direction == BY_PEOPLE)
				continue;
			l->t.has[f] = l->p.has[f] = l->was.has[f] = false;
			l->doing.push.has[f] = l->doing.pull.has[f] = false;
		}
}

/* A line about the whole state. */
static void take_mark(struct state *s, const json_t *o)
{
	if (json_object_get(o, "mark"))
		s->mark = number_in(o, "mark");
	if (json_object_get(o, "talk"))
		s->talk = number_in(o, "talk");
	if (json_object_get(o, "turn"))
		s->sync_token = number_in(o, "turn");
	if (json_is_true(json_object_get(o, "forget")))
		notion_state_forget(s);
}

static void take_line(struct state *s, const json_t *o)
{
	struct str task = text_in(s, o, "task"), page = text_in(s, o, "page");
	struct link *l = task.n   ? notion_link_of_task(s, task)
			 : page.n ? notion_link_of_page(s, page)
				  : NULL;

	if (!task.n && !page.n) {
		take_mark(s, o);
		return;
	}
	if (!l && task.n && page.n) { /* the page has just become this task */
		l = notion_link_of_page(s, page);
		l = l && !l->task.n ? l : NULL;
		if (l)
			notion_link_task(s, l, task);
	}
	if (!l)
		l = notion_link_new(s, task, page);
	else if (!str_eq(l->page, page))
		notion_link_page(s, l, page);
	l->at = number_in(o, "at");
	l->edited = number_in(o, "edited");
	l->version = number_in(o, "version");
	l->comment = text_in(s, o, "comment");
	l->comment_at = number_in(o, "comment_at");
	l->foreign = text_in(s, o, "foreign");
	l->making = text_in(s, o, "making");
	l->saying = text_in(s, o, "saying");
	l->gone = json_is_true(json_object_get(o, "gone"));
	l->refused = json_is_true(json_object_get(o, "refused"));
	l->loose = json_is_true(json_object_get(o, "loose"));
	get_values(s, o, "t", &l->t);
	get_values(s, o, "p", &l->p);
	get_values(s, o, "was", &l->was);
	get_doing(s, o, &l->doing);
}

static enum result notion_state_cannot(struct state *s, int r)
{
	return notion_fail(s->n, API_ERROR,
			   arena_printf(s->n->arena, "cannot keep the state of the sync in %s: %s",
					s->path, strerror(-r)),
			   STR("make room there, or set XDG_STATE_HOME to a folder that you own"));
}

static enum result notion_state_append(struct state *s, json_t *o)
{
	char *text = json_dumps(o, JSON_COMPACT);
	struct str line = arena_printf(s->n->arena, "%s\n", text ? text : "");
	int r = s->n->job->check ? 0 : fs_write_all(s->fd, line);

	free(text);
	json_decref(o);
	s->lines++;
	return r ? notion_state_cannot(s, r) : SUCCESS;
}

enum result notion_link_save(struct state *s, struct link *l)
{
	json_t *o = line_of(l);

	/* copies the texts, because one task's arena does not last */
	take_line(s, o);
	return notion_state_append(s, o);
}

enum result notion_mark_set(struct state *s, int64_t edited)
{
	if (edited <= s->mark)
		return SUCCESS;
	s->mark = edited;
	return notion_state_append(s, json_pack("{s:I}", "mark", (json_int_t)edited));
}

enum result notion_talk_set(struct state *s, size_t place)
{
	if (place == (size_t)s->talk)
		return SUCCESS;
	s->talk = (int64_t)place;
	return notion_state_append(s, json_pack("{s:I}", "talk", (json_int_t)place));
}

/* Each sync raises the fence of @sync by one, so a larger step means that another state was used in
 * between. */
static enum result take_turn(struct state *s)
{
	int64_t fence = s->n->fence;
	json_t *o;

	if (!fence || fence == s->sync_token)
		return SUCCESS;
	o = json_pack("{s:I}", "turn", (json_int_t)fence);
	if (s->sync_token && fence != s->sync_token + 1)
		json_object_set_new(o, "forget", json_true());
	take_mark(s, o);
	return notion_state_append(s, o);
}

/* --- the file ---------------------------------------------------------------------------------------------------- */

static void read_lines(struct state *s, struct str text)
{
	while (text.n) {
		bool whole = memchr(text.p, '\n', text.n);
		struct str line = str_cut(&text, '\n');
		json_t *o = whole ? json_loadb(str_p(line), line.n, 0, NULL) : NULL;

		if (json_is_object(o))
			take_line(s, o);
		s->lines++;
		json_decref(o);
	}
}

/* Ends a torn last line, so that the next line is not appended to it. */
static int end_line(int fd)
{
	off_t n = lseek(fd, 0, SEEK_END);
	char last = '\n';

	if (n > 0 && pread(fd, &last, 1, n - 1) != 1)
		return -errno;
	return last == '\n' ? 0 : fs_write_all(fd, STR("\n"));
}

/* The file's name depends on the queue and the database. */
static char *path_of(struct notion *n, struct str database)
{
	struct str what, id = n->identity.n ? n->identity : n->job->client->keyring.queue;
	char *dir = fs_user_dir(n->arena, "XDG_STATE_HOME", ".local/state");

	what = arena_printf(n->arena, "notion\n%.*s\n%.*s", STRF(id), STRF(database));
	return dir ? fs_join(n->arena, str_c(dir),
			     arena_printf(n->arena, "sync/%.32s", hash_hex(n->arena, what).p))
		   : NULL;
}

static int open_file(struct state *s)
{
	bool check = s->n->job->check;
	int r = check ? 0 : fs_make_dirs(arena_cstr(s->n->arena, fs_dirname(str_c(s->path))), 0700);

	if (r)
		return r;
	s->fd = open(s->path, O_RDWR | (check ? 0 : O_CREAT) | O_APPEND | O_CLOEXEC | O_NOFOLLOW,
		     0600);
	if (s->fd < 0)
		return check && errno == ENOENT ? 0 : -errno;
	return check ? 0 : os_lock(s->fd, 0); /* --check must not stop a sync that is running */
}

/* Rewrites the file if most of its lines are stale. */
static void notion_state_tidy(struct state *s)
{
	struct buf b = BUF_MAX(FILE_MAX);

	if (s->lines < 2 * s->count + SLACK || s->n->job->check)
		return;
	for (size_t i = 0; i < s->count; i++) {
		json_t *o = line_of(s->links[i]);
		char *text = json_dumps(o, JSON_COMPACT);

		buf_addf(&b, "%s\n", text ? text : "");
		free(text);
		json_decref(o);
	}
	buf_addf(&b, "{\"mark\":%lld,\"turn\":%lld,\"talk\":%lld}\n", (long long)s->mark,
		 (long long)s->sync_token, (long long)s->talk);
	if (!b.full)
		(void)fs_write_atomic(s->path, buf_str(&b), 0600);
	buf_free(&b);
}

static enum result notion_state_busy(struct state *s)
{
	return notion_fail(
		s->n, CONFLICT,
		STR("another `pawl sync` of this queue and database runs on this machine"),
		STR("wait until it ends, or stop it"));
}

enum result notion_state_open(struct notion *n, struct state **out)
{
	struct state *s = arena_new(n->arena, struct state);
	struct str text = STR("");
	int r;

	*out = s;
	*s = (struct state){ .n = n, .fd = -1 };
	s->of_task = json_object();
	s->of_page = json_object();
	s->path = path_of(n, n->source);
	if (!s->path) {
		s->path = (char *)"a home folder";
		return notion_state_cannot(s, -ENOENT);
	}
	r = open_file(s);
	if (r == -ETIMEDOUT)
		return notion_state_busy(s);
	if (!r && s->fd >= 0)
		r = fs_read_fd(n->arena, s->fd, FILE_MAX, &text);
	if (!r)
		read_lines(s, text);
	if (!r && !n->job->check)
		r = end_line(s->fd);
	return r ? notion_state_cannot(s, r) : take_turn(s);
}

void notion_state_close(struct state *s)
{
	if (s->fd >= 0) {
		notion_state_tidy(s);
		close(s->fd);
	}
	json_decref(s->of_task);
	json_decref(s->of_page);
	arena_free(&s->arena);
}

#include "store/git/layout/worktree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/digit.h"
#include "base/fs.h"
#include "base/secret.h"
#include "base/when.h"
#include "format/markdown.h"
#include "store/git/trust.h"

#define FILE_MAX (1u << 20)
#define DEPTH 4 /* levels of folders */
#define FOLDER_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

/* --- places ------------------------------------------------------------------------------------- */

static char *param(const struct uri *uri, const char *name, const char *otherwise)
{
	struct arena a = { 0 };
	struct str said = uri_param(uri, name);
	char *p = strdup(said.n ? arena_cstr(&a, said) : otherwise);

	arena_free(&a);
	if (!p)
		abort();
	return p;
}

void git_worktree_open(struct git *s, const struct uri *uri)
{
	s->worktree = mem_alloc(sizeof(*s->worktree));
	*s->worktree =
		(struct git_worktree){ .tasks = param(uri, "tasks", "aitasks"),
				       .archived = param(uri, "archived", "aitasks/archived") };
}

/* Searches for the worktree only when tasks are read from it. */
static void find_top(struct git_worktree *w, const char *dir)
{
	bool skipped;
	git_repository *repo = w->looked ? NULL : git_own_repository(dir, &skipped);

	if (repo && git_repository_workdir(repo))
		w->top = realpath(git_repository_workdir(repo), NULL);
	git_repository_free(repo);
	w->looked = true;
}

void git_worktree_close(struct git *s)
{
	struct git_worktree *w = s->worktree;

	if (!w)
		return;
	free(w->top);
	free(w->tasks);
	free(w->archived);
	arena_free(&w->a);
	arena_free(&w->seen);
	free(w);
}

/* The folder's path from the top, with links resolved; NULL: it does not exist, or is outside the
 * worktree. */
static const char *folder_in(const struct git_worktree *w, const char *name, struct arena *a)
{
	struct str top = str_c(w->top);
	char *real = w->top ? realpath(fs_join(a, top, str_c(name)), NULL) : NULL;
	struct str path = str_c(real);
	const char *out = NULL;

	if (real && str_cut_prefix(&path, top) && str_cut_prefix(&path, STR("/")))
		out = arena_cstr(a, path);
	free(real);
	return out;
}

/* Opens a folder by its path from the top; no component may be a link. */
static int open_folder(const struct git_worktree *w, struct str path)
{
	struct arena a = { 0 };
	int fd = open(w->top, FOLDER_FLAGS);

	while (fd >= 0 && path.n) {
		struct str name = str_cut(&path, '/');
		int next = openat(fd, arena_cstr(&a, name), FOLDER_FLAGS);

		close(fd);
		fd = next;
	}
	arena_free(&a);
	return fd;
}

static struct str folder_of(struct str path)
{
	return memchr(str_p(path), '/', path.n) ? fs_dirname(path) : STR("");
}

static struct str name_of(struct str path)
{
	struct str folder = folder_of(path);

	return folder.n ? str_n(path.p + folder.n + 1, path.n - folder.n - 1) : path;
}

/* --- finding the files -------------------------------------------------------------------------- */

struct listing {
	const struct git_worktree *w;
	struct arena *a;
	struct git_file *v;
	size_t n;
	uint64_t hash;
	bool archived;
	dev_t skip_dev; /* the archive, which is listed separately */
	ino_t skip_ino;
};

/* The id in a file's name: t10_2 in t10_2_words.md. Empty: the file is not a task. */
static struct str id_in(struct str name)
{
	size_t i = 1, end = 0;

	if (!str_ends(name, STR(".md")) || !str_starts(name, STR("t")))
		return STR("");
	name.n -= strlen(".md");
	while (i < name.n && is_digit(name.p[i])) {
		while (i < name.n && is_digit(name.p[i]))
			i++;
		if (i < name.n && name.p[i] != '_')
			break;
		end = i++;
	}
	return str_n(name.p, end);
}

static void set_times(struct git_file *f, const struct stat *st)
{
	f->time = (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
	f->size = st->st_size;
	f->ino = (int64_t)st->st_ino;
}

static void add_file(struct listing *l, struct str path, struct str id, const struct stat *st)
{
	struct git_file f = { .key = task_key(l->a, id),
			      .path = arena_str(l->a, path),
			      .archived = l->archived };

	set_times(&f, st);
	f.task.id = arena_str(l->a, id);
	l->v = arena_grow(l->a, l->v, l->n, sizeof(f));
	l->v[l->n++] = f;
}

static void list_folder(struct listing *l, int fd, const char *folder, int depth);

static void list_entry(struct listing *l, int fd, const char *folder, const char *name, int depth)
{
	struct str path = arena_printf(l->a, "%s/%s", folder, name), id = id_in(str_c(name));
	struct stat st;

	if (name[0] == '.' || fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW))
		return;
	if (S_ISREG(st.st_mode) && id.n && !id_fault(id))
		add_file(l, path, id, &st);
	else if (S_ISDIR(st.st_mode) && depth &&
		 (st.st_dev != l->skip_dev || st.st_ino != l->skip_ino))
		list_folder(l, openat(fd, name, FOLDER_FLAGS), path.p, depth - 1);
}

/* Closes fd. */
static void list_folder(struct listing *l, int fd, const char *folder, int depth)
{
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;

	while (d && (e = readdir(d)))
		list_entry(l, dirfd(d), folder, e->d_name, depth);
	if (d)
		closedir(d);
	else if (fd >= 0)
		close(fd);
}

/* By key; of the files of one task, an archived one comes last. */
static int file_cmp(const void *a, const void *b)
{
	const struct git_file *x = a, *y = b;
	int c = str_cmp(x->key, y->key);

	if (!c)
		c = x->archived - y->archived;
	return c ? c : str_cmp(x->path, y->path);
}

static void list_all(struct listing *l)
{
	const char *tasks = folder_in(l->w, l->w->tasks, l->a),
		   *archived = folder_in(l->w, l->w->archived, l->a);
	int fd = archived ? open_folder(l->w, str_c(archived)) : -1;
	struct stat st;

	l->hash = 0xcbf29ce484222325u;
	if (fd >= 0 && fstat(fd, &st) == 0) {
		l->skip_dev = st.st_dev;
		l->skip_ino = st.st_ino;
	}
	l->archived = true;
	list_folder(l, fd, archived, DEPTH);
	l->archived = false;
	if (tasks)
		list_folder(l, open_folder(l->w, str_c(tasks)), tasks, DEPTH);
	if (l->n > 1)
		qsort(l->v, l->n, sizeof(*l->v), file_cmp);
	for (size_t i = 0; i < l->n; i++) {
		const struct git_file *f = &l->v[i];

		l->hash = str_sum(l->hash, f->path.p, f->path.n);
		l->hash = str_sum(l->hash, &f->time, 3 * sizeof(f->time));
	}
}

/* --- reading the files -------------------------------------------------------------------------- */

/* The value of `status:` in the front matter; at 0: there is no such line. */
struct place {
	size_t at, n;
};

static struct str line_at(struct str text, size_t at, size_t *next)
{
	struct str rest = str_n(text.p + at, text.n - at), line = str_cut(&rest, '\n');

	*next = text.n - rest.n;
	if (str_ends(line, STR("\r")))
		line.n--;
	return line;
}

/* Leaves out a comment after the value. */
static struct place value_at(struct str text, struct str line)
{
	struct str value = str_trim(line);

	for (size_t i = 1; i < value.n; i++)
		if (value.p[i] == '#' && (value.p[i - 1] == ' ' || value.p[i - 1] == '\t'))
			value = str_trim(str_n(value.p, i));
	if (!value.n || value.p[0] == '#')
		value = str_n(line.p, 0);
	return (struct place){ (size_t)(value.p - text.p), value.n };
}

static struct place status_at(struct str text)
{
	struct place found = { 0, 0 };
	size_t at = str_starts(text, STR("\xef\xbb\xbf")) ? 3 : 0, next;
	struct str line = line_at(text, at, &next);

	if (!str_is(line, "---"))
		return found;
	for (at = next; at < text.n; at = next) {
		line = line_at(text, at, &next);
		if (str_is(line, "---"))
			return found;
		if (!found.at && str_cut_prefix(&line, STR("status:")))
			found = value_at(text, line);
	}
	return (struct place){ 0, 0 }; /* without an end it is not front matter */
}

static struct str replaced(struct str text, struct place p, const char *value, struct arena *a)
{
	return arena_printf(a, "%.*s%s%s%.*s", (int)p.at, text.p, p.n ? "" : " ", value,
			    (int)(text.n - p.at - p.n), text.p + p.at + p.n);
}

static struct str unquoted(struct str s)
{
	if (s.n > 1 && (s.p[0] == '"' || s.p[0] == '\'') && s.p[s.n - 1] == s.p[0])
		return str_n(s.p + 1, s.n - 2);
	return s;
}

/* An unknown status becomes Backlog: its author may not want the task to be offered. */
static struct str with_known_status(struct str text, struct arena *a)
{
	struct place p = status_at(text);

	if (!p.at || status_parse(unquoted(str_n(text.p + p.at, p.n))))
		return text;
	return replaced(text, p, status_name(BACKLOG), a);
}

static int read_file(const struct git_worktree *w, struct str path, struct str *out,
		     struct stat *st, struct arena *a)
{
	int dir = open_folder(w, folder_of(path)), fd, rc = 0;
	char *p;
	ssize_t n;

	if (dir < 0)
		return -errno;
	fd = openat(dir, arena_cstr(a, name_of(path)),
		    O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	close(dir);
	if (fd < 0)
		return -errno;
	if (fstat(fd, st) || !S_ISREG(st->st_mode) || st->st_size > (off_t)FILE_MAX)
		rc = -EFBIG;
	p = arena_alloc(a, rc ? 1 : (size_t)st->st_size + 1);
	n = rc ? 0 : read(fd, p, (size_t)st->st_size);
	if (n < 0)
		rc = -errno;
	close(fd);
	*out = str_n(p, rc ? 0 : (size_t)n);
	return rc;
}

/* An unreadable task is not offered, but it can be locked. */
static void set_fault(struct git_file *f, size_t line, struct str why, struct arena *a)
{
	f->fault = line ? arena_printf(a, "%.*s:%zu: %.*s", STRF(f->path), line, STRF(why))
			: arena_printf(a, "%.*s: %.*s", STRF(f->path), STRF(why));
	f->task = (struct task){ .id = f->task.id,
				 .title = f->task.id,
				 .status = BACKLOG,
				 .class_rank = STANDARD,
				 .priority = PRIORITY_DEFAULT };
}

static void set_task(struct git_file *f, const struct task *t, struct arena *a)
{
	struct str id = f->task.id;
	int64_t written = f->time / 1000000;

	f->task = *t;
	f->task.id = id;
	f->task.lock = (struct lock){ 0 };
	f->task.parent = STR("");
	f->task.depends = arena_strs(a, t->depends);
	for (size_t i = 0; i < t->depends.n; i++)
		f->task.depends.v[i] = id_numbered(a, t->depends.v[i]);
	if (f->archived && !status_ended(f->task.status))
		f->task.status = DONE;
	if (f->archived)
		f->task.archived_at = written;
	if (!f->task.created_at)
		f->task.created_at = written;
	if (!f->task.updated_at)
		f->task.updated_at = written;
	f->task.version = 1;
}

static void read_task(const struct git_worktree *w, struct git_file *f, struct arena *a)
{
	struct yaml_fault fault = { 0 };
	struct arena scratch = { 0 };
	struct plain p = { 0 };
	struct str text;
	struct stat st;
	int rc = read_file(w, f->path, &text, &st, &scratch);

	if (rc) {
		set_fault(f, 0, str_c(strerror(-rc)), a);
	} else {
		plain_start(&p, when_parse, false, a);
		text = arena_str(a, with_known_status(text, &scratch));
		rc = task_md_parse(text, name_of(f->path), &p, &fault);
		if (rc)
			set_fault(f, fault.line, fault.text, a);
		else
			set_task(f, &p.task, a);
	}
	arena_free(&scratch);
}

/* t10_2 is a sub-task of t10, if t10 exists. */
static void set_parent(struct git_worktree *w, struct git_file *f)
{
	struct str id = f->task.id;
	const struct git_file *parent;

	while (id.n && id.p[id.n - 1] != '_')
		id.n--;
	if (!id.n)
		return;
	id.n--;
	parent = git_worktree_find(w, task_key(&w->a, id));
	if (parent)
		f->task.parent = parent->task.id;
}

/* If several files have the same id, the first counts. */
static void drop_doubles(struct git_worktree *w)
{
	size_t kept = 0;

	for (size_t i = 0; i < w->n; i++) {
		struct git_file *last = kept ? &w->v[kept - 1] : NULL;

		if (!last || !str_eq(last->key, w->v[i].key))
			w->v[kept++] = w->v[i];
		else if (!last->archived && !w->v[i].archived)
			set_fault(last, 0,
				  arena_printf(&w->a, "%.*s is the same task", STRF(w->v[i].path)),
				  &w->a);
	}
	w->n = kept;
}

int git_worktree_read(struct git *s)
{
	struct git_worktree *w = s->worktree;
	struct arena a = { 0 };
	struct listing l = { .w = w, .a = &a };

	find_top(w, s->base.env.opt.dir);
	if (w->top)
		list_all(&l);
	if (w->stamp && w->stamp == l.hash) {
		arena_free(&a);
		return 0;
	}
	for (size_t i = 0; i < l.n; i++)
		read_task(w, &l.v[i], &a);
	arena_free(&w->a);
	w->a = a;
	w->v = l.v;
	w->n = l.n;
	w->stamp = l.hash;
	drop_doubles(w);
	for (size_t i = 0; i < w->n; i++)
		set_parent(w, &w->v[i]);
	return 0;
}

bool git_worktree_same(struct git *s)
{
	struct arena a = { 0 };
	struct listing l = { .w = s->worktree, .a = &a };

	if (s->worktree->top)
		list_all(&l);
	arena_free(&a);
	return l.hash == s->worktree->stamp;
}

static int key_cmp(const void *key, const void *file)
{
	return str_cmp(*(const struct str *)key, ((const struct git_file *)file)->key);
}

const struct git_file *git_worktree_find(const struct git_worktree *w, struct str key)
{
	return w->n ? bsearch(&key, w->v, w->n, sizeof(*w->v), key_cmp) : NULL;
}

/* --- writing a status --------------------------------------------------------------------------- */

static int no_status(struct git *s, const struct git_file *f, const char *why)
{
	return store_fail(&s->base.env, STORE_UNSUPPORTED,
			  "to change only the lock, leave out --write-status",
			  "cannot write the status of %.*s: %.*s: %s", STRF(f->task.id),
			  STRF(f->path), why);
}

static int write_temp(int dir, const char *name, struct str text, mode_t mode)
{
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600), rc;

	if (fd < 0)
		return -errno;
	rc = fs_write_all(fd, text);
	if (rc == 0 && (fchmod(fd, mode & 07777) || fsync(fd)))
		rc = -errno;
	if (close(fd) && rc == 0)
		rc = -errno;
	if (rc)
		unlinkat(dir, name, 0);
	return rc;
}

int git_status_begin(struct git *s, const struct git_file *f, const char *status,
		     struct git_status *out, struct arena *a)
{
	struct git_file *read = arena_new(a, struct git_file);
	struct str text;
	struct place p;
	struct stat st;
	int dir, rc = read_file(s->worktree, f->path, &text, &st, a);

	*out = (struct git_status){ .file = read, .status = status };
	*read = *f;
	if (rc)
		return no_status(s, f, strerror(-rc));
	set_times(read, &st);
	p = status_at(text);
	if (!p.at)
		return no_status(s, f, "it has no line that begins with status:");
	if (str_is(str_n(text.p + p.at, p.n), status))
		return 0;
	out->temp = arena_cstr(
		a, arena_printf(a, ".%.*s.%.8s", STRF(name_of(f->path)), token_make(a).p));
	dir = open_folder(s->worktree, folder_of(f->path));
	rc = dir < 0 ? -errno
		     : write_temp(dir, out->temp, replaced(text, p, status, a), st.st_mode);
	if (dir >= 0)
		close(dir);
	if (rc) {
		out->temp = NULL;
		return no_status(s, f, strerror(-rc));
	}
	return 0;
}

void git_status_drop(struct git *s, struct git_status *e)
{
	int dir = e->temp ? open_folder(s->worktree, folder_of(e->file->path)) : -1;

	if (dir >= 0) {
		unlinkat(dir, e->temp, 0);
		close(dir);
	}
	e->temp = NULL;
}

/* Is the file the same as when it was read? A person may have edited it since. */
static bool is_as_read(int dir, const struct git_file *f, struct arena *a)
{
	struct git_file now;
	struct stat st;

	if (fstatat(dir, arena_cstr(a, name_of(f->path)), &st, AT_SYMLINK_NOFOLLOW))
		return false;
	set_times(&now, &st);
	return now.time == f->time && now.size == f->size && now.ino == f->ino;
}

static int move_in(struct git *s, const struct git_status *e, bool *moved, struct arena *a)
{
	int dir = open_folder(s->worktree, folder_of(e->file->path)), rc = 0;

	*moved = false;
	if (dir < 0)
		return -errno;
	if (is_as_read(dir, e->file, a)) {
		*moved = renameat(dir, e->temp, dir, arena_cstr(a, name_of(e->file->path))) == 0;
		if (!*moved || fsync(dir))
			rc = -errno;
	}
	close(dir);
	return rc;
}

static int not_written(struct git *s, const struct git_file *f, const char *why)
{
	int rc = store_fail(&s->base.env, STORE_IO, "the lock has changed; set the status by hand",
			    "could not write the status of %.*s: %.*s: %s", STRF(f->task.id),
			    STRF(f->path), why);

	s->base.env.err->applied = '?';
	return rc;
}

int git_status_end(struct git *s, struct git_status *e, struct arena *a)
{
	for (int i = 0; e->temp && i < GIT_TRIES; i++) {
		bool moved;
		int rc = move_in(s, e, &moved, a);

		if (moved)
			e->temp = NULL;
		else
			git_status_drop(s, e);
		if (rc)
			return not_written(s, e->file, strerror(-rc));
		if (moved)
			return 0;
		if (git_status_begin(s, e->file, e->status, e, a))
			return not_written(s, e->file, "it was changed in the meantime");
	}
	if (!e->temp)
		return 0;
	git_status_drop(s, e);
	return not_written(s, e->file, "it keeps changing");
}

/* Finds and reads the task files of a worktree. It never follows a link out of the worktree, and it
 * reads the files again only if one of them has changed. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/str.h"
#include "base/when.h"
#include "format/markdown.h"
#include "store/git/git.h"
#include "store/git/layout/layout.h"

#define FILE_MAX (1u << 20)
#define DEPTH 4 /* levels of folders */
#define FOLDER_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

/* --- places ------------------------------------------------------------------------------------- */

static char *git_worktree_param(const struct uri *uri, const char *name, const char *otherwise)
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
	*s->worktree = (struct git_worktree){ .tasks = git_worktree_param(uri, "tasks", "aitasks"),
					      .archived = git_worktree_param(uri, "archived",
									     "aitasks/archived") };
}

/* Searches for the worktree only when tasks are read from it. */
static void find_top(struct git_worktree *w, const char *dir)
{
	bool skipped;
	git_repository *repo = w->checked ? NULL : git_own_repository(dir, &skipped);

	if (repo && git_repository_workdir(repo))
		w->top = realpath(git_repository_workdir(repo), NULL);
	git_repository_free(repo);
	w->checked = true;
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

int git_folder_open(const struct git_worktree *w, struct str path)
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

struct str git_folder_of(struct str path)
{
	return memchr(str_p(path), '/', path.n) ? fs_dirname(path) : STR("");
}

struct str git_name_of(struct str path)
{
	struct str folder = git_folder_of(path);

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

void git_file_times(struct git_file *f, const struct stat *st)
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

	git_file_times(&f, st);
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

/* By key; an archived file comes after the task's other files. */
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
	int fd = archived ? git_folder_open(l->w, str_c(archived)) : -1;
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
		list_folder(l, git_folder_open(l->w, str_c(tasks)), tasks, DEPTH);
	if (l->n > 1)
		qsort(l->v, l->n, sizeof(*l->v), file_cmp);
	for (size_t i = 0; i < l->n; i++) {
		const struct git_file *f = &l->v[i];

		l->hash = str_sum(l->hash, f->path.p, f->path.n);
		l->hash = str_sum(l->hash, &f->time, 3 * sizeof(f->time));
	}
}

/* --- reading the files -------------------------------------------------------------------------- */

int git_file_read(const struct git_worktree *w, struct str path, struct str *out, struct stat *st,
		  struct arena *a)
{
	int dir = git_folder_open(w, git_folder_of(path)), fd, rc = 0;
	char *p;
	ssize_t n;

	if (dir < 0)
		return -errno;
	fd = openat(dir, arena_cstr(a, git_name_of(path)),
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
	int rc = git_file_read(w, f->path, &text, &st, &scratch);

	if (rc) {
		set_fault(f, 0, str_c(strerror(-rc)), a);
	} else {
		plain_start(&p, when_parse, false, a);
		text = arena_str(a, git_status_known(text, &scratch));
		rc = task_md_parse(text, git_name_of(f->path), &p, &fault);
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

/* A branch that counts ids: next_id.txt holds the next task's number, in the form that other programs use. The
 * push fails if the branch has moved, so two callers never get the same id. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/secret.h"
#include "store/git/layout/layout.h"

#define COUNTER STR("meta/counter")
#define TEXT_MAX_BYTES 64

static int bad_number(struct git *s, struct str text)
{
	if (text.n > 40)
		text.n = 40;
	return store_fail(&s->base.env, STORE_CORRUPT, "repair that file on the branch",
			  "%s#%s: " GIT_NEXT_ID ": '%.*s' is not a number", s->remote, s->only,
			  STRF(text));
}

static int read_number(struct git *s, git_tree *top, int64_t *next)
{
	const git_tree_entry *e = git_tree_entry_byname(top, GIT_NEXT_ID);
	git_blob *blob = NULL;
	struct str text;
	int rc = 0;

	if (!e || git_blob_open(s, &blob, git_tree_entry_id(e)))
		return store_fail(&s->base.env, STORE_FOREIGN, "use another branch",
				  "%s: the branch %s has no file " GIT_NEXT_ID, s->remote, s->only);
	text = str_trim(str_n(git_blob_rawcontent(blob), (size_t)git_blob_rawsize(blob)));
	if (text.n > TEXT_MAX_BYTES || !str_to_i64(text, next) || *next < 0 ||
	    *next > ID_NUMBER_MAX)
		rc = bad_number(s, text);
	git_blob_free(blob);
	return rc;
}

/* The view also gets the worktree's tasks, because their ids are taken. */
static void put_all(struct git *s, int64_t next)
{
	struct arena a = { 0 };
	struct git_head *h = git_head_make(&s->view, COUNTER);
	const struct record r = { .key = COUNTER,
				  .rev = s->view.stamp + 1,
				  .hot = arena_printf(&a, "%lld", (long long)next - 1),
				  .body_changed = true };

	h->seen = s->view.refresh;
	mem_queue_put(&s->view.q, &r);
	for (size_t i = 0; i < s->worktree->n; i++) {
		const struct git_file *f = &s->worktree->v[i];
		const struct git_item it = { .key = f->key, .task = f->task, .file = f };

		git_item_put(s, &it, &a);
	}
	arena_free(&a);
}

static int check_one(struct git *s, const git_oid *tip)
{
	git_tree *top = NULL;
	int64_t next, ignored;
	int rc = git_tip_tree(s, tip, &top);

	if (rc == 0)
		rc = read_number(s, top, &next);
	if (rc == 0) {
		s->view.refresh++;
		git_tip_said(s, tip, &s->view.stamp, &ignored);
		put_all(s, next);
		git_view_prune(&s->view);
		s->view.base = *tip;
		s->view.base_tree = *git_tree_id(top);
	}
	git_tree_free(top);
	return rc;
}

static int ids_read(struct git *s)
{
	git_oid tip;
	int rc = git_branch_tip(s, &tip);

	if (rc == 0 && git_oid_is_zero(&tip))
		rc = 1;
	if (rc == 0)
		rc = git_worktree_read(s);
	if (rc == 0)
		rc = check_one(s, &tip);
	if (rc)
		git_view_clear(&s->view);
	return rc;
}

static const char *git_ids_subject(int64_t n, struct arena *a)
{
	return arena_printf(a, "the next id is t%lld", (long long)n + 1).p;
}

static int write_number(struct git_set *w, int64_t n)
{
	struct git *s = w->s;
	git_treebuilder *b = NULL;
	git_tree *top = NULL;
	git_oid tree;
	int rc = git_tree_open(s, &top, &s->view.base_tree) ||
		 git_treebuilder_new(&b, s->repo, top);

	if (rc == 0)
		rc = git_file_put(s, b, GIT_NEXT_ID,
				  arena_printf(&w->a, "%lld\n", (long long)n + 1));
	if (rc == 0)
		rc = git_tree_put(s, b, &tree);
	git_treebuilder_free(b);
	git_tree_free(top);
	return rc ? git_fail(s, STORE_IO, "cannot write the branch")
		  : git_tip_move(w, &tree, git_ids_subject(n, &w->a), n);
}

static int git_ids_refuse(struct git *s)
{
	return store_fail(
		&s->base.env, STORE_UNSUPPORTED,
		"take an id with pawl id claim; locks need another branch: git:REMOTE#" GIT_LOCKS,
		"the branch %s only counts ids", s->only);
}

static int ids_commit(struct git_set *w)
{
	int64_t n;

	git_set_states(w);
	if (w->n != 1 || !str_eq(w->steps[0].key, COUNTER) || !w->steps[0].rec ||
	    !str_to_i64(w->steps[0].rec->hot, &n))
		return git_ids_refuse(w->s);
	return write_number(w, n);
}

/* The counter begins after the greatest number among the worktree's tasks. */
static int ids_make(struct git *s)
{
	struct arena a = { 0 };
	int64_t most = 0;
	int rc = git_worktree_read(s);

	for (size_t i = 0; rc == 0 && i < s->worktree->n; i++) {
		int64_t n = id_number(s->worktree->v[i].task.id);

		most = n > most ? n : most;
	}
	if (rc == 0)
		rc = git_tip_make(s, GIT_NEXT_ID, arena_printf(&a, "%lld\n", (long long)most + 1),
				  git_ids_subject(most, &a), most);
	arena_free(&a);
	return rc;
}

const struct git_layout git_layout_ids = {
	.name = "ids",
	.strangers = true,
	.refresh = ids_read,
	.ready = git_tip_ready,
	.commit = ids_commit,
	.make = ids_make,
	.drop = git_tip_drop,
	.same = git_worktree_same,
	.roots = git_tip_roots,
};

/* --- status ----------------------------------------------------------------------------------- */

/* A task's status in its file: finds it in the front matter, and writes a new one. A file that was edited since
 * it was read is read again, so that an edit by a person is not lost. */

/* The value of `status:` in the front matter; at 0: the front matter has no status line. */
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
	return (struct place){ 0, 0 }; /* text without an end mark is not front matter */
}

static struct str git_status_replaced(struct str text, struct place p, const char *value,
				      struct arena *a)
{
	return arena_printf(a, "%.*s%s%s%.*s", (int)p.at, text.p, p.n ? "" : " ", value,
			    (int)(text.n - p.at - p.n), text.p + p.at + p.n);
}

static struct str git_status_unquoted(struct str s)
{
	if (s.n > 1 && (s.p[0] == '"' || s.p[0] == '\'') && s.p[s.n - 1] == s.p[0])
		return str_n(s.p + 1, s.n - 2);
	return s;
}

struct str git_status_known(struct str text, struct arena *a)
{
	struct place p = status_at(text);

	if (!p.at || status_parse(git_status_unquoted(str_n(text.p + p.at, p.n))))
		return text;
	return git_status_replaced(text, p, status_name(BACKLOG), a);
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
	int dir, rc = git_file_read(s->worktree, f->path, &text, &st, a);

	*out = (struct git_status){ .file = read, .status = status };
	*read = *f;
	if (rc)
		return no_status(s, f, strerror(-rc));
	git_file_times(read, &st);
	p = status_at(text);
	if (!p.at)
		return no_status(s, f, "it has no line that begins with status:");
	if (str_is(str_n(text.p + p.at, p.n), status))
		return 0;
	out->temp = arena_cstr(a, arena_printf(a, ".%s.%.8s", arena_cstr(a, git_name_of(f->path)),
					       token_make(a).p));
	dir = git_folder_open(s->worktree, git_folder_of(f->path));
	rc = dir < 0 ? -errno
		     : write_temp(dir, out->temp, git_status_replaced(text, p, status, a),
				  st.st_mode);
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
	int dir = e->temp ? git_folder_open(s->worktree, git_folder_of(e->file->path)) : -1;

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

	if (fstatat(dir, arena_cstr(a, git_name_of(f->path)), &st, AT_SYMLINK_NOFOLLOW))
		return false;
	git_file_times(&now, &st);
	return now.time == f->time && now.size == f->size && now.ino == f->ino;
}

static int move_in(struct git *s, const struct git_status *e, bool *moved, struct arena *a)
{
	int dir = git_folder_open(s->worktree, git_folder_of(e->file->path)), rc = 0;

	*moved = false;
	if (dir < 0)
		return -errno;
	if (is_as_read(dir, e->file, a)) {
		*moved = renameat(dir, e->temp, dir, arena_cstr(a, git_name_of(e->file->path))) ==
			 0;
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

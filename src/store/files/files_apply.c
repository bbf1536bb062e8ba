/*
 * Brings the task files in line with the state. New content is first written to .pawl, and then
 * gets its name. link() assigns a free name, and fails if another program took the name first.
 * rename() replaces a file after a check of that file. A file that pawl neither wrote nor
 * interpreted stays.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/os.h"
#include "base/secret.h"
#include "format/record_form.h"
#include "store/files/files.h"

/* --- writing to .pawl --------------------------------------------------------------------------- */

static void temp_name(char *out, size_t room, size_t number)
{
	snprintf(out, room, "new.%zu", number);
}

/* Returns the current second with random nanoseconds, so that another program's write is very
 * unlikely to get the same mtime. */
static struct timespec own_time(void)
{
	return (struct timespec){ .tv_sec = (time_t)(os_wall_ms() / 1000),
				  .tv_nsec = 1 + (long)random_below(999999998) };
}

static int write_file(struct files *s, int fd, struct str text, struct stamp *out)
{
	struct timespec times[2] = { own_time(), own_time() };
	struct stat st;
	int r = fs_write_all(fd, text);

	if (geteuid() == 0)
		(void)!fchown(fd, s->place.st_uid, s->place.st_gid);
	(void)!fchmod(fd, s->place.st_mode & 0666);
	if (!r && (futimens(fd, times) || fstat(fd, &st)))
		r = -errno;
	if (!r)
		*out = files_stamp(&st);
	return r;
}

static int folder_for(struct files *s, bool archived)
{
	int dir = files_folder(s, archived);

	if (dir >= 0)
		return dir;
	if (mkdirat(s->dir, "archive", 0777))
		return errno == EEXIST && (dir = files_folder(s, archived)) >= 0 ? dir : -errno;
	dir = files_folder(s, archived);
	if (dir < 0)
		return -errno;
	(void)!fchmod(dir, s->place.st_mode & 0777);
	return dir;
}

int files_prepare(struct files *s, struct ent *e, const struct task *t, size_t number)
{
	int fd, r = folder_for(s, e->archived);
	char name[32];
	struct arena a = { 0 };

	if (r < 0)
		return files_fail_folder(s, -r, "archive");
	temp_name(name, sizeof(name), number);
	/* a crash may have left this name as a second link to a .lock, so never write into the old
	 * file */
	(void)unlinkat(s->own, name, 0);
	fd = openat(s->own, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
	if (fd < 0)
		return files_fail(s, -errno, ".pawl");
	r = write_file(s, fd, files_form_text(t, s->view.id, e->commit, &a), &e->stamp);
	if (close(fd) && !r && errno != EINTR)
		r = -errno;
	arena_free(&a);
	if (r) {
		(void)unlinkat(s->own, name, 0);
		return files_fail(s, r, "a task's file");
	}
	e->prepared = true;
	e->linked = false;
	e->number = number;
	return 0;
}

/* --- giving names ------------------------------------------------------------------------------- */

/* The evidence that pawl wrote a file. WHOLE: only its complete content. TORN: after a power loss,
 * also a part of the content, or the inode. EMPTY: also an empty file, if the state has a file with
 * that name. */
enum proof { WHOLE, TORN, EMPTY };

static bool is_torn(const struct ent *e, const struct found *f, enum proof proof)
{
	if (proof == WHOLE || !f->stamp.ino)
		return false;
	return f->torn || f->stamp.ino == e->stamp.ino || f->stamp.ino == e->old.stamp.ino ||
	       (proof == EMPTY && !f->stamp.size);
}

/* Did pawl write this file? 1 or 0, or -errno. Without proof, the file counts as foreign. */
static int is_ours(struct files *s, const struct ent *e, const char *name, enum proof proof)
{
	struct found f = { .id = e->ix.id, .kind = FILE_TASK, .archived = e->archived };
	struct arena a = { 0 };
	int r;

	snprintf(f.name, sizeof(f.name), "%s", name);
	r = files_read_found(s, &f, &a);
	if (r >= 0)
		r = r == 0 && (f.bad ? is_torn(e, &f, proof) : f.form.ours);
	arena_free(&a);
	return r;
}

/* Fails (< 0) if a file that does not count has the name. Returns 1 if the file is gone, counts, or
 * is so new that a program may still be writing it. */
static int fail_occupied(struct files *s, const struct ent *e, const char *name)
{
	struct found f = { .id = e->ix.id, .kind = e->kind, .archived = e->archived };
	struct arena a = { 0 };
	int r;

	snprintf(f.name, sizeof(f.name), "%s", name);
	r = files_read_found(s, &f, &a);
	if (r == 0 && f.bad && f.mtime > os_wall_ms() - FILES_SETTLED)
		r = 1; /* another program may be writing the file now */
	else if (r == 0 && f.bad)
		r = store_fail(
			&s->base.env, STORE_FOREIGN,
			"move that file away, or use another id; to list all such files: pawl doctor",
			"the task %.*s needs the name %s%s in %s, but a foreign file has that name: %s",
			STRF(e->ix.id), e->archived ? "archive/" : "", name, s->path, f.bad);
	else
		r = r < 0 ? files_fail(s, r, name) : 1;
	arena_free(&a);
	return r;
}

int files_check_name(struct files *s, const struct ent *e)
{
	char name[FILES_NAME_MAX];
	struct stat st;
	int r;

	if (files_name(name, sizeof(name), e->ix.id, e->kind))
		return files_fail(s, -EINVAL, "a task's file");
	if (files_stat(files_folder(s, e->archived), name, &st))
		return 0; /* other problems show when files_apply() assigns the name */
	r = fail_occupied(s, e, name);
	return r < 0 ? r : 0;
}

/* Some file systems have no hard links. There, an empty file reserves the name, and rename()
 * replaces it. */
static int link_slowly(struct files *s, const char *temp, int dir, const char *name)
{
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);

	if (fd < 0)
		return -errno;
	close(fd);
	return renameat(s->own, temp, dir, name) ? -errno : 0;
}

static void drop_temp(struct files *s, const struct ent *e)
{
	char temp[32];

	temp_name(temp, sizeof(temp), e->number);
	(void)unlinkat(s->own, temp, 0);
}

/* Adds the final name; the file also keeps its name in .pawl. -EEXIST: another file has the
 * name. */
static int link_name(struct files *s, const struct ent *e, int dir, const char *name)
{
	char temp[32];

	temp_name(temp, sizeof(temp), e->number);
	if (linkat(s->own, temp, dir, name, 0) == 0)
		return 0;
	if (errno == EPERM || errno == EOPNOTSUPP || errno == EMLINK)
		return link_slowly(s, temp, dir, name);
	return -errno;
}

static int give_name(struct files *s, const struct ent *e, int dir, const char *name)
{
	int r = link_name(s, e, dir, name);

	if (!r)
		drop_temp(s, e);
	return r;
}

static int files_apply_replace(struct files *s, const struct ent *e, int dir, const char *name)
{
	char temp[32];

	temp_name(temp, sizeof(temp), e->number);
	return renameat(s->own, temp, dir, name) ? -errno : 0;
}

/* The lock keeps its name in .pawl until the change is committed. If the power fails before the
 * commit, the second name proves that pawl made the lock. */
int files_reserve(struct files *s, struct ent *e)
{
	char name[FILES_NAME_MAX];
	int r;

	if (files_name(name, sizeof(name), e->ix.id, FILE_LOCK))
		return files_fail(s, -EINVAL, "a task's file");
	r = link_name(s, e, s->dir, name);
	if (r == -EEXIST && is_ours(s, e, name, WHOLE) > 0) { /* left by a failed change */
		(void)unlinkat(s->dir, name, 0);
		r = link_name(s, e, s->dir, name);
	}
	e->linked = r == 0;
	if (r == -EEXIST)
		return fail_occupied(s, e, name);
	return r < 0 ? files_fail(s, r, name) : 0;
}

void files_take_back(struct files *s, struct ent *e)
{
	char name[FILES_NAME_MAX];
	struct stamp now;
	struct stat st;

	if (!e->prepared)
		return;
	drop_temp(s, e);
	if (!e->linked || files_name(name, sizeof(name), e->ix.id, FILE_LOCK) ||
	    files_stat(s->dir, name, &st))
		return;
	now = files_stamp(&st);
	if (files_stamp_eq(&now, &e->stamp))
		(void)unlinkat(s->dir, name, 0);
}

/* --- after the commit --------------------------------------------------------------------------- */

static bool same_place(const struct ent *a, const struct ent *b)
{
	return !a->dropped && !b->dropped && a->kind == b->kind && a->archived == b->archived;
}

/* Is the file with this name the one that pawl knows? 1 or 0, or -errno. */
static int as_known(int dir, const char *name, const struct ent *was)
{
	struct stamp now;
	struct stat st;
	int r = files_stat(dir, name, &st);

	if (r)
		return r < 0 ? r : 0;
	now = files_stamp(&st);
	return S_ISREG(st.st_mode) && files_stamp_like(&now, &was->stamp);
}

/* 1: a foreign file has that name, and stays; -errno. */
static int files_apply_place(struct files *s, struct ent *e, const struct ent *was,
			     enum proof proof)
{
	int dir = folder_for(s, e->archived), r = 0;
	char name[FILES_NAME_MAX];

	if (dir < 0 || files_name(name, sizeof(name), e->ix.id, e->kind))
		return dir < 0 ? dir : -EINVAL;
	if (was && same_place(was, e))
		r = as_known(dir, name, was);
	if (r < 0)
		return r;
	r = r ? files_apply_replace(s, e, dir, name) : give_name(s, e, dir, name);
	if (r != -EEXIST)
		return r;
	r = is_ours(s, e, name, proof);
	return r > 0 ? files_apply_replace(s, e, dir, name) : r < 0 ? r : 1;
}

static int put_in_place(struct files *s, struct ent *e, const struct ent *was, enum proof proof)
{
	int r;

	if (e->linked) {
		drop_temp(s, e);
		return 0;
	}
	r = files_apply_place(s, e, was, proof);
	if (r)
		files_take_back(s, e);
	return r;
}

static int remove_old(struct files *s, const struct ent *old, enum proof proof)
{
	int dir = files_folder(s, old->archived), r;
	char name[FILES_NAME_MAX];
	struct stat st;

	if (files_name(name, sizeof(name), old->ix.id, old->kind))
		return 0;
	r = files_stat(dir, name, &st);
	if (r)
		return r < 0 ? r : 0;
	r = as_known(dir, name, old);
	if (r == 0)
		r = is_ours(s, old, name, proof);
	if (r <= 0)
		return r < 0 ? r : 1;
	return unlinkat(dir, name, 0) && errno != ENOENT ? -errno : 0;
}

static int files_apply_worse(int a, int b)
{
	return a < 0 || b < 0 ? (a < 0 ? a : b) : a | b;
}

int files_apply(struct files *s, struct ent *e, const struct ent *was)
{
	int r = e->prepared ? put_in_place(s, e, was, WHOLE) : 0;

	for (; r >= 0 && was; was = was->found ? was->was : NULL)
		if (was->kind != FILE_NONE && !was->dropped && !same_place(was, e))
			r = files_apply_worse(r, remove_old(s, was, WHOLE));
	return r;
}

void files_remove(struct files *s, const struct ent *e)
{
	if (e->kind != FILE_NONE && !e->dropped && files_folder(s, e->archived) >= 0)
		(void)remove_old(s, e, WHOLE);
}

/* --- after a crash ------------------------------------------------------------------------------ */

/* Does the file with this name come from the record's last change? 1 or 0, or -errno. */
static int has_commit(struct files *s, const struct ent *e, enum file_kind kind, bool archived)
{
	struct found f = { .id = e->ix.id, .kind = kind, .archived = archived };
	struct arena a = { 0 };
	int r = files_name(f.name, sizeof(f.name), f.id, f.kind) ? 1 : files_read_found(s, &f, &a);

	if (r >= 0)
		r = r == 0 && !f.bad && f.form.ours && f.form.commit == e->commit;
	arena_free(&a);
	return r;
}

/* Does the record's file exist under another name? Then another program moved it, and
 * files_find_changes() must interpret the move. */
static int was_moved(struct files *s, const struct ent *e)
{
	int r = 0;

	for (int k = FILE_TASK; r == 0 && k < FILE_KINDS; k++)
		for (int archived = 0; r == 0 && archived < 2; archived++)
			if (k != e->kind || archived != e->archived)
				r = has_commit(s, e, (enum file_kind)k, archived);
	return r;
}

static int write_again(struct files *s, struct ent *e, const struct ent *old, size_t number,
		       bool rebooted)
{
	struct arena a = { 0 };
	struct task t;
	struct record r = { .key = e->key, .ix = e->ix, .hot = e->hot, .body = e->body };
	int rc = 0;

	if (rebooted)
		e->old.stamp = e->stamp; /* is_torn() recognizes the damaged file by its inode */
	if (e->has_body && files_form_kind(s->base.env.rules, &r, &t, &a) != FILE_NONE) {
		rc = files_prepare(s, e, &t, number);
		if (rc == 0)
			rc = put_in_place(s, e, old, rebooted ? EMPTY : WHOLE);
		e->prepared = false;
	}
	arena_free(&a);
	return rc;
}

static enum proof proof_of(const struct ent *other, const struct ent *e, bool rebooted)
{
	if (!rebooted)
		return WHOLE;
	return files_names(e) & files_name_bit(other->kind, other->archived) ? EMPTY : TORN;
}

/* Removes every other file that pawl wrote for the task. */
static int remove_others(struct files *s, const struct ent *e, bool rebooted)
{
	int r = 0;

	for (int k = FILE_TASK; k < FILE_KINDS; k++) {
		for (int archived = 0; archived < 2; archived++) {
			struct ent other = { .ix.id = e->ix.id,
					     .kind = (uint8_t)k,
					     .archived = archived };

			if (!same_place(&other, e))
				r = files_apply_worse(
					r, remove_old(s, &other, proof_of(&other, e, rebooted)));
		}
	}
	return r;
}

static int settle_one(struct files *s, struct ent *e, size_t number, bool rebooted)
{
	struct ent old = { .ix.id = e->ix.id,
			   .stamp = e->old.stamp,
			   .kind = e->old.kind,
			   .archived = e->old.archived };
	int r = was_moved(s, e);

	if (r)
		return r < 0 ? r : 0;
	if (!e->dropped && e->kind != FILE_NONE) {
		r = has_commit(s, e, (enum file_kind)e->kind, e->archived);
		if (r == 0)
			r = write_again(s, e, &old, number, rebooted);
	}
	if (r >= 0 && old.kind != FILE_NONE && !same_place(&old, e))
		r = files_apply_worse(r, remove_old(s, &old, rebooted ? EMPTY : WHOLE));
	return r < 0 ? r : files_apply_worse(r, remove_others(s, e, rebooted));
}

/* Does the lock have a second name in .pawl, as an uncommitted change's lock does? */
static bool has_temp(struct files *s, uint64_t ino)
{
	int fd = openat(s->own, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *e;
	bool any = false;

	if (!d && fd >= 0)
		close(fd);
	while (!any && d && (e = readdir(d)))
		any = e->d_ino == ino && str_starts(str_c(e->d_name), STR("new."));
	if (d)
		closedir(d);
	return any;
}

bool files_torn(struct files *s, const struct found *f, const struct ent *known)
{
	return f->bad && f->stamp.ino && f->kind == FILE_LOCK && !files_in_place(f, known) &&
	       (f->torn || has_temp(s, f->stamp.ino));
}

static bool remove_torn_locks(struct files *s)
{
	struct arena a = { 0 };
	struct found *f;
	size_t n;
	bool ok = files_list(s, false, &f, &n, &a) == 0;

	for (size_t i = 0; ok && i < n; i++) {
		if (f[i].kind != FILE_LOCK)
			continue;
		ok = files_read_found(s, &f[i], &a) >= 0;
		if (ok && files_torn(s, &f[i], files_committed(files_find(&s->view, f[i].key))))
			ok = unlinkat(s->dir, f[i].name, 0) == 0;
	}
	arena_free(&a);
	return ok;
}

bool files_settle(struct files *s, int64_t applied, bool rebooted)
{
	bool ok = !rebooted || remove_torn_locks(s);

	for (size_t i = 0; i < s->view.n; i++) {
		struct ent *e = (struct ent *)files_committed(s->view.v[i].e);

		/* commit 0: another program wrote the file */
		if (e && e->fresh && e->rev > applied && e->ix.id.n && e->commit)
			ok &= settle_one(s, e, i, rebooted) >= 0;
	}
	return ok;
}

int64_t files_mark_folder(struct files *s)
{
	struct timespec times[2] = { own_time(), own_time() };

	return futimens(s->dir, times) ? 0 : files_folder_time(s);
}

/*
 * The files follow the state. A new content is written into .pawl first and then gets its name: a name that
 * is free by link(), which fails if somebody else was quicker; one that has a file by rename(), after a look
 * at what is there. A file that somebody else put there stays.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/os.h"
#include "base/secret.h"
#include "core/filecodec.h"
#include "store/files.h"

/* --- writing beside ----------------------------------------------------------------------------- */

static void temp_name(char *out, size_t room, size_t number)
{
	snprintf(out, room, "new.%zu", number);
}

/* A time of now, to the second; the rest is so that nobody else's writing has the same. */
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

int files_prepare(struct files *s, struct ent *e, const struct task *t, size_t number)
{
	char name[32];
	struct arena a = { 0 };
	int fd, r;

	temp_name(name, sizeof(name), number);
	(void)unlinkat(s->own, name,
		       0); /* it may be another name of a .lock: never write into it */
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

/* Where it cannot be told apart, it is somebody else's, unless `broken` ones count as ours. */
static bool is_ours(struct files *s, const struct ent *e, const char *name, bool broken)
{
	struct found f = { .id = e->ix.id, .kind = FILE_TASK, .archived = e->archived };
	struct arena a = { 0 };
	bool ours;

	snprintf(f.name, sizeof(f.name), "%s", name);
	ours = files_read_found(s, &f, &a) == 0 && (f.bad ? broken && f.stamp.ino : f.form.ours);
	arena_free(&a);
	return ours;
}

/* Some file systems have no links: there the name is taken by an empty file first. */
static int link_slowly(struct files *s, const char *temp, int dir, const char *name)
{
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);

	if (fd < 0)
		return -errno;
	close(fd);
	return renameat(s->own, temp, dir, name) ? -errno : 0;
}

/* -EEXIST: somebody has that name. */
static int give_name(struct files *s, const struct ent *e, int dir, const char *name)
{
	char temp[32];

	temp_name(temp, sizeof(temp), e->number);
	if (linkat(s->own, temp, dir, name, 0) == 0) {
		(void)unlinkat(s->own, temp, 0);
		return 0;
	}
	if (errno == EPERM || errno == EOPNOTSUPP || errno == EMLINK)
		return link_slowly(s, temp, dir, name);
	return -errno;
}

static int replace(struct files *s, const struct ent *e, int dir, const char *name)
{
	char temp[32];

	temp_name(temp, sizeof(temp), e->number);
	return renameat(s->own, temp, dir, name) ? -errno : 0;
}

int files_reserve(struct files *s, struct ent *e)
{
	char name[FILES_NAME_MAX];
	int r;

	if (files_name(name, sizeof(name), e->ix.id, FILE_LOCK))
		return files_fail(s, -EINVAL, "a task's file");
	r = give_name(s, e, s->dir, name);
	if (r == -EEXIST && is_ours(s, e, name, false)) { /* of a change that failed */
		(void)unlinkat(s->dir, name, 0);
		r = give_name(s, e, s->dir, name);
	}
	e->linked = r == 0;
	if (r == -EEXIST)
		return 1;
	return r < 0 ? files_fail(s, r, name) : 0;
}

void files_take_back(struct files *s, struct ent *e)
{
	char name[FILES_NAME_MAX];
	struct stamp now;
	struct stat st;

	if (!e->prepared)
		return;
	temp_name(name, sizeof(name), e->number);
	(void)unlinkat(s->own, name, 0);
	if (!e->linked || files_name(name, sizeof(name), e->ix.id, FILE_LOCK) ||
	    files_stat(s->dir, name, &st))
		return;
	now = files_stamp(&st);
	if (files_stamp_eq(&now, &e->stamp))
		(void)unlinkat(s->dir, name, 0);
}

/* --- after the commit --------------------------------------------------------------------------- */

static int folder_for(struct files *s, bool archived)
{
	int dir = files_folder(s, archived);

	if (dir >= 0 || mkdirat(s->dir, "archive", 0777))
		return dir >= 0 ? dir : errno == EEXIST ? files_folder(s, archived) : -1;
	dir = files_folder(s, archived);
	if (dir >= 0)
		(void)!fchmod(dir, s->place.st_mode & 0777);
	return dir;
}

static bool same_place(const struct ent *a, const struct ent *b)
{
	return !a->dropped && !b->dropped && a->kind == b->kind && a->archived == b->archived;
}

/* Is what has the name what we know of? */
static bool as_known(int dir, const char *name, const struct ent *was)
{
	struct stamp now;
	struct stat st;

	if (files_stat(dir, name, &st))
		return false;
	now = files_stamp(&st);
	return S_ISREG(st.st_mode) && files_stamp_like(&now, &was->stamp);
}

static bool put_in_place(struct files *s, struct ent *e, const struct ent *was, bool broken)
{
	int dir = folder_for(s, e->archived), r = -EEXIST;
	char name[FILES_NAME_MAX];

	if (e->linked)
		return true;
	if (dir < 0 || files_name(name, sizeof(name), e->ix.id, e->kind))
		return false;
	if (!was || !same_place(was, e) || !as_known(dir, name, was))
		r = give_name(s, e, dir, name);
	else
		r = replace(s, e, dir, name);
	if (r == -EEXIST && is_ours(s, e, name, broken))
		r = replace(s, e, dir, name);
	if (r)
		files_take_back(s, e);
	return r == 0;
}

static bool remove_old(struct files *s, const struct ent *old, bool broken)
{
	int dir = files_folder(s, old->archived);
	char name[FILES_NAME_MAX];
	struct stat st;

	if (dir < 0 || files_name(name, sizeof(name), old->ix.id, old->kind) ||
	    files_stat(dir, name, &st))
		return true;
	if (!as_known(dir, name, old) && !is_ours(s, old, name, broken))
		return false;
	return unlinkat(dir, name, 0) == 0;
}

/* All other files of the task that are ours. */
static void remove_others(struct files *s, const struct ent *e, bool broken)
{
	for (int k = FILE_TASK; k < FILE_KINDS; k++) {
		for (int archived = 0; archived < 2; archived++) {
			struct ent other = { .ix.id = e->ix.id,
					     .kind = (uint8_t)k,
					     .archived = archived };

			if (!same_place(&other, e))
				(void)remove_old(s, &other, broken);
		}
	}
}

bool files_apply(struct files *s, struct ent *e, const struct ent *was)
{
	bool ok = true;

	if (e->prepared)
		ok = put_in_place(s, e, was, false);
	for (; was; was = was->found ? was->was : NULL)
		if (was->kind != FILE_NONE && !was->dropped && !same_place(was, e))
			ok &= remove_old(s, was, false);
	return ok;
}

/* --- after a death ------------------------------------------------------------------------------ */

static bool has_its_file(struct files *s, const struct ent *e)
{
	struct found f = { .id = e->ix.id, .kind = e->kind, .archived = e->archived };
	struct arena a = { 0 };
	bool ok;

	ok = !files_name(f.name, sizeof(f.name), f.id, f.kind) &&
	     files_read_found(s, &f, &a) == 0 && !f.bad && f.form.ours &&
	     f.form.commit == e->commit;
	arena_free(&a);
	return ok;
}

static int write_again(struct files *s, struct ent *e, const struct ent *old, size_t number,
		       bool rebooted)
{
	struct arena a = { 0 };
	struct task t;
	struct record r = { .key = e->key, .ix = e->ix, .hot = e->hot, .body = e->body };
	int rc = 0;

	if (e->has_body && files_form_kind(&r, &t, &a) != FILE_NONE) {
		rc = files_prepare(s, e, &t, number);
		if (rc == 0)
			(void)put_in_place(s, e, old, rebooted);
		e->prepared = false;
	}
	arena_free(&a);
	return rc;
}

static int settle_one(struct files *s, struct ent *e, size_t number, bool rebooted)
{
	struct ent old = { .ix.id = e->ix.id,
			   .stamp = e->old.stamp,
			   .kind = e->old.kind,
			   .archived = e->old.archived };
	int rc = 0;

	if (!e->dropped && e->kind != FILE_NONE && !has_its_file(s, e))
		rc = write_again(s, e, &old, number, rebooted);
	if (old.kind != FILE_NONE && !same_place(&old, e))
		(void)remove_old(s, &old, rebooted);
	remove_others(s, e, rebooted);
	return rc;
}

int files_settle(struct files *s, int64_t applied, bool rebooted)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < s->view.n; i++) {
		struct ent *e = s->view.v[i].e;

		/* without a commit it is others' file */
		if (e && e->fresh && !e->found && e->rev > applied && e->ix.id.n && e->commit)
			rc = settle_one(s, e, i, rebooted);
	}
	return rc;
}

int64_t files_mark_folder(struct files *s)
{
	struct timespec times[2] = { own_time(), own_time() };

	return futimens(s->dir, times) ? 0 : files_folder_time(s);
}

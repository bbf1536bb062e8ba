/*
 * Compacts the frames into a new snapshot, after syncing their task files and moving their log
 * lines to the log file. The new state gets its name last, so a crash at any step leaves the old
 * state with all its frames; the next compaction cuts the log file to the size in the state. Also
 * reads single task files, but opens only regular files, because opening a FIFO or a device can
 * have effects.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/os.h"
#include "format/record_form.h"
#include "store/files/files.h"

/* For more files than this, one call syncs the whole file system, where the system supports
 * that. */
#define MANY_FILES 256

static int sync_fd(int fd)
{
	int r;

	do
		r = fsync(fd);
	while (r && errno == EINTR);
	return r ? -errno : 0;
}

int files_sync_folder(int fd)
{
	int r = sync_fd(fd);

	return r == -EINVAL ? 0 : r;
}

static int sync_file(struct files *s, const struct ent *e)
{
	char name[FILES_NAME_MAX];
	int fd = files_folder(s, e->archived), r;

	if (files_name(name, sizeof(name), e->ix.id, e->kind))
		return 0;
	if (fd >= 0)
		fd = beneath_open(fd, name, O_RDONLY, 0);
	if (fd < 0) /* if another program removed or replaced it, pawl need not sync it */
		return fd == -ENOENT || fd == -ELOOP || fd == -EACCES || fd == -EINVAL ? 0 : fd;
	r = sync_fd(fd);
	close(fd);
	return r;
}

/* Does the file need a sync before the snapshot? Files that other programs wrote (commit 0) do
 * not. */
static bool is_unsynced(const struct ent *e)
{
	e = files_committed(e);
	return e && e->fresh && e->kind != FILE_NONE && e->commit && !e->dropped;
}

static int sync_files(struct files *s)
{
	size_t n = 0;
	int r = 0, archive;

	for (size_t i = 0; i < s->view.n; i++)
		n += is_unsynced(s->view.v[i].e);
	if (n > MANY_FILES && os_sync_fs(s->dir) == 0)
		return 0;
	for (size_t i = 0; !r && i < s->view.n; i++) {
		const struct ent *e = s->view.v[i].e;

		if (is_unsynced(e))
			r = sync_file(s, files_committed(e));
	}
	if (!r)
		r = files_sync_folder(s->dir);
	archive = files_folder(s, true);
	if (!r && archive < 0)
		return archive == -ENOENT ? 0 : archive;
	return r ? r : files_sync_folder(archive);
}

static int write_parts(struct files *s, int fd)
{
	int r = ftruncate(fd, s->view.log_base) ? -errno : 0;

	if (!r && lseek(fd, s->view.log_base, SEEK_SET) < 0)
		r = -errno;
	for (const struct log_part *p = s->view.log; !r && p; p = p->next)
		r = fs_write_all(fd, p->bytes);
	return r ? r : sync_fd(fd);
}

/* If the log has a second hard link, its content must not change under the other name. So a copy
 * replaces it. */
static int copy_log(struct files *s, int old, int64_t left)
{
	char piece[8192];
	int fd, r = 0;

	(void)unlinkat(s->own, "log.new", 0);
	fd = openat(s->own, "log.new", O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
	if (fd < 0)
		r = -errno;
	for (int64_t at = 0; !r && at < left;) {
		ssize_t n = pread(old, piece, sizeof(piece), at);

		r = n < 0 ? -errno : n ? fs_write_all(fd, str_n(piece, (size_t)n)) : -EIO;
		at += n;
	}
	close(old);
	if (!r && renameat(s->own, "log.new", s->own, "log"))
		r = -errno;
	if (r && fd >= 0)
		close(fd);
	return r ? r : fd;
}

static int move_log(struct files *s)
{
	int fd = beneath_open(s->own, "log", O_RDWR | O_CREAT, 0666), r;
	struct stat st;

	if (fd >= 0 && fstat(fd, &st) == 0 && st.st_nlink > 1)
		fd = copy_log(s, fd, s->view.log_base);
	if (fd < 0)
		return fd;
	(void)!fchmod(fd, s->place.st_mode & 0666);
	r = write_parts(s, fd);
	close(fd);
	if (!r && !s->view.log_base) /* the file may be new, and the new state needs its name */
		r = files_sync_folder(s->own);
	return r;
}

int files_new_state(struct files *s, int64_t log_base)
{
	int fd, r, err;

	(void)unlinkat(s->own, "state.new", 0);
	fd = openat(s->own, "state.new", O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		    0666);
	if (fd < 0)
		return files_fail(s, -errno, ".pawl");
	if (geteuid() == 0)
		(void)!fchown(fd, s->place.st_uid, s->place.st_gid);
	(void)!fchmod(fd, s->place.st_mode & 0666);
	r = files_write_state(s, fd, log_base);
	if (r == 0 && (err = sync_fd(fd)))
		r = files_fail(s, err, ".pawl/state");
	close(fd);
	if (r == 0 && renameat(s->own, "state.new", s->own, "state"))
		r = files_fail(s, -errno, ".pawl/state");
	if (r)
		(void)unlinkat(s->own, "state.new", 0);
	else if ((err = files_sync_folder(s->own)))
		r = files_fail(s, err, ".pawl");
	return r;
}

int files_compact(struct files *s)
{
	int r = sync_files(s);

	if (!r)
		r = move_log(s);
	if (r)
		return files_fail(s, r, "a file");
	r = files_new_state(s, s->view.log_size);
	return r < 0 ? r : files_load(s);
}

/* --- file ------------------------------------------------------------------------------------- */

/* Reads one file's metadata and content. */

int64_t files_nanoseconds(const struct stat *st)
{
#ifdef __APPLE__
	struct timespec t = st->st_mtimespec;
#else
	struct timespec t = st->st_mtim;
#endif
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

struct stamp files_stamp(const struct stat *st)
{
	return (struct stamp){ st->st_ino, st->st_size, files_nanoseconds(st) };
}

bool files_stamp_eq(const struct stamp *a, const struct stamp *b)
{
	return a->mtime > 0 && a->mtime == b->mtime && a->ino == b->ino && a->size == b->size;
}

bool files_stamp_like(const struct stamp *a, const struct stamp *b)
{
	return llabs(a->mtime) == llabs(b->mtime) && a->ino == b->ino && a->size == b->size;
}

int files_stat(int dir, const char *name, struct stat *st)
{
	int r = dir;

	if (dir >= 0)
		r = fstatat(dir, name, st, AT_SYMLINK_NOFOLLOW) ? -errno : 0;
	return r == -ENOENT ? 1 : r;
}

bool files_untouched(struct files *s, const struct ent *e)
{
	char name[FILES_NAME_MAX];
	struct stamp now;
	struct stat st;

	if (files_name(name, sizeof(name), e->ix.id, e->kind) ||
	    files_stat(files_folder(s, e->archived), name, &st))
		return false;
	now = files_stamp(&st);
	return S_ISREG(st.st_mode) && files_stamp_eq(&e->stamp, &now);
}

static const char *what_is(mode_t mode)
{
	if (S_ISLNK(mode))
		return "it is a link, which pawl does not follow";
	if (S_ISDIR(mode))
		return "it is a folder";
	return S_ISFIFO(mode) ? "it is a FIFO" : "it is not a regular file";
}

static int read_open(int fd, size_t size, struct str *out, struct arena *a)
{
	char *p = arena_alloc(a, size + 1);
	size_t n = 0;

	while (n < size) {
		ssize_t got = pread(fd, p + n, size - n, (off_t)n);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			break;
		n += (size_t)got;
	}
	*out = str_n(p, n);
	return 0;
}

static int read_form(struct files *s, int fd, struct found *f, struct arena *a)
{
	struct str text = { 0 };
	struct stat st;
	int r;

	if (fstat(fd, &st))
		return -errno;
	f->stamp = files_stamp(&st);
	f->mtime = f->stamp.mtime / 1000000;
	f->bad = S_ISREG(st.st_mode) ? NULL : what_is(st.st_mode);
	if (!f->bad && st.st_size > (off_t)FILES_TEXT_MAX)
		f->bad = "it is larger than 16 MiB";
	if (f->bad)
		return 0;
	r = read_open(fd, (size_t)st.st_size, &text, a);
	if (!r)
		f->bad = files_form_parse(text, s->view.id, f->kind, &f->form, a);
	if (!r && f->bad)
		f->torn = files_form_torn(text, s->view.id, f->id, a);
	return r;
}

/* 0: only this file is affected, and `bad` says why; 1: the file is gone; -errno: any other
 * error. */
static int why_closed(struct found *f, int err)
{
	if (err != EACCES && err != EPERM && err != ELOOP && err != ENXIO)
		return err == ENOENT ? 1 : -err;
	f->closed = err == EACCES;
	f->bad = f->closed ? "this user may not read it" : "it cannot be opened";
	return 0;
}

int files_read_found(struct files *s, struct found *f, struct arena *a)
{
	int dir = files_folder(s, f->archived), fd, r;
	struct stat st;

	f->bad = id_fault(f->id);
	if (f->bad)
		return 0;
	r = files_stat(dir, f->name, &st);
	if (r)
		return r;
	if (!S_ISREG(st.st_mode)) { /* opening a FIFO or a device can have effects */
		f->bad = what_is(st.st_mode);
		return 0;
	}
	fd = openat(dir, f->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return why_closed(f, errno);
	r = read_form(s, fd, f, a);
	close(fd);
	/* A later write may leave a foreign file's very recent mtime unchanged. pawl's own files
	 * have random nanoseconds in their mtimes. */
	if (!f->form.ours && f->mtime > os_wall_ms() - FILES_SETTLED)
		f->stamp.mtime = -f->stamp.mtime;
	return r;
}

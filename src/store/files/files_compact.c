/*
 * Turns the frames into a new snapshot from time to time. Before that, it syncs the files of the tasks in the
 * frames, and moves the log lines to the log file. The new state gets its name last, so a crash at any step
 * leaves the old state with all its frames. Lines in the log file beyond the size in the state are cut off.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/os.h"
#include "store/files/files.h"

/* with more files than this, one call syncs the whole file system, where the system can do that */
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
	if (fd < 0) /* another program removed, closed or replaced it: it is not pawl's any more */
		return fd == -ENOENT || fd == -ELOOP || fd == -EACCES || fd == -EINVAL ? 0 : fd;
	r = sync_fd(fd);
	close(fd);
	return r;
}

/* pawl does not sync files that other programs wrote. */
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

/* A log with a second hard link must not change under its other name, so a copy replaces it. */
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
	if (!r && !s->view.log_base) /* the file may be new, and the new state relies on it */
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

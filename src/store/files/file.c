/* One file of the folder: its metadata and its content. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/os.h"
#include "format/record_form.h"
#include "store/files/files.h"

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

/* 0: `bad` says why; 1: it is gone; -errno: the error does not concern this file alone */
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
	/* pawl sets the mtime of its own files; a very new mtime of a foreign file may hide a later write */
	if (!f->form.ours && f->mtime > os_wall_ms() - FILES_SETTLED)
		f->stamp.mtime = -f->stamp.mtime;
	return r;
}

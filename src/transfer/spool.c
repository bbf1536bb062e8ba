/* Tasks that wait on disk during an import: each as its length and its packed form. No other process reads the file. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "queue/frame.h"
#include "transfer/port.h"

int spool_open(struct spool *s)
{
	const char *dir = getenv("TMPDIR");
	struct arena a = { 0 };
	char *name = arena_cstr(&a, arena_printf(&a, "%s/pawl-XXXXXX", dir && *dir ? dir : "/tmp"));
	int fd = mkstemp(name), r = fd < 0 ? -errno : 0;

	if (fd >= 0)
		unlink(name);
	*s = (struct spool){ .file = fd < 0 ? NULL : fdopen(fd, "w+") };
	arena_free(&a);
	return r;
}

int spool_add(struct spool *s, const struct parcel *p)
{
	struct buf b = BUF_MAX(SIZE_MAX / 2);
	uint64_t size;
	bool good;

	shape_pack(&parcel_shape, SHAPE_ALL, p, &b);
	size = b.n;
	good = fwrite(&size, sizeof(size), 1, s->file) == 1 && fwrite(b.p, b.n, 1, s->file) == 1;
	s->n += good;
	buf_free(&b);
	return good ? 0 : -(errno ? errno : EIO);
}

void spool_rewind(void *spool)
{
	struct spool *s = spool;

	rewind(s->file);
}

int spool_next(void *spool, struct parcel *out, struct arena *a)
{
	struct spool *s = spool;
	uint64_t size;
	char *bytes;

	if (fread(&size, sizeof(size), 1, s->file) != 1)
		return ferror(s->file) ? -EIO : 1;
	bytes = arena_alloc(a, size);
	if (fread(bytes, size, 1, s->file) != 1)
		return -EIO;
	return shape_unpack(&parcel_shape, SHAPE_ALL, str_n(bytes, size), out, a);
}

void spool_close(struct spool *s)
{
	if (s->file)
		fclose(s->file);
	s->file = NULL;
}

/* Tasks that wait on disk during an import: each as its length and its packed form. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "format/pack.h"
#include "transfer/port.h"
#include "format/task.h"
#include "format/event.h"

enum { S_TASK = 1, S_AT, S_COMMENT, S_WHERE };

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
	struct buf b = BUF_MAX(SIZE_MAX / 2), task = BUF_MAX(SIZE_MAX / 2);
	uint64_t size;
	bool good;

	task_pack(&p->task, HOT | BODY, &task);
	pack_str(&b, S_TASK, buf_str(&task));
	pack_str(&b, S_WHERE, p->where);
	for (size_t i = 0; i < p->n_comments; i++) {
		task.n = 0;
		event_pack(&p->comments[i], &task);
		pack_int(&b, S_AT, p->comments[i].at);
		pack_str(&b, S_COMMENT, buf_str(&task));
	}
	size = b.n;
	good = fwrite(&size, sizeof(size), 1, s->file) == 1 && fwrite(b.p, b.n, 1, s->file) == 1;
	s->n += good;
	buf_free(&b);
	buf_free(&task);
	return good ? 0 : -(errno ? errno : EIO);
}

void spool_rewind(void *spool)
{
	struct spool *s = spool;

	rewind(s->file);
}

static int unpack_comment(struct str value, int64_t at, struct parcel *out, struct arena *a)
{
	struct event *e;

	out->comments = arena_grow(a, out->comments, out->n_comments, sizeof(*e));
	e = &out->comments[out->n_comments++];
	if (event_unpack(value, e))
		return -EBADMSG;
	e->at = at;
	return 0;
}

static int unpack_parcel(struct str bytes, struct parcel *out, struct arena *a)
{
	struct unpack u = { bytes };
	struct str value;
	int64_t at = 0;
	uint8_t tag;
	int r;

	while ((r = unpack_next(&u, &tag, &value)) > 0) {
		if (tag == S_TASK)
			r = task_unpack(value, &out->task, a);
		else if (tag == S_WHERE)
			out->where = value;
		else if (tag == S_AT)
			r = unpack_int(value, &at);
		else
			r = unpack_comment(value, at, out, a);
		if (r < 0)
			return r;
	}
	return r;
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
	return unpack_parcel(str_n(bytes, size), out, a);
}

void spool_close(struct spool *s)
{
	if (s->file)
		fclose(s->file);
	s->file = NULL;
}

/*
 * Reads loose objects in place of libgit2. Version 1.5 never returns from a truncated object, and it writes past its
 * buffer if an object is longer than its header says. This reader makes one pass over the file and accepts an object
 * only if its stream ends exactly where the header says. libgit2 still compares the hash.
 */
#include <errno.h>
#include <git2/sys/odb_backend.h>
#if __has_include(<git2/sys/errors.h>) /* libgit2 1.9 declares git_error_set_str there */
#include <git2/sys/errors.h>
#endif
#include <stdlib.h>
#include <zlib.h>

#include "base/fs.h"
#include "store/git/git.h"

#define FIRST 1000  /* priority: before libgit2's own backends */
#define HEAD_MAX 64 /* "commit 2097152" and a NUL */
#define FILE_MAX (GIT_OBJECT_MAX + GIT_OBJECT_MAX / 64 + 1024) /* what cannot be compressed grows */

struct loose {
	git_odb_backend base;
	char *objects;
};

struct inflating {
	z_stream z;
	char head[HEAD_MAX];
	size_t in_head; /* bytes */
	bool ended;     /* the stream has no more bytes */
};

static int loose_damaged(const char *why)
{
	git_error_set_str(GIT_ERROR_ODB, why);
	return GIT_ERROR;
}

/* Inflates the first bytes: the header, and the start of the content. */
static bool inflate_head(struct inflating *f)
{
	int r;

	f->z.next_out = (unsigned char *)f->head;
	f->z.avail_out = HEAD_MAX;
	r = inflate(&f->z, Z_SYNC_FLUSH);
	f->in_head = HEAD_MAX - f->z.avail_out;
	f->ended = r == Z_STREAM_END;
	return f->ended || r == Z_OK;
}

/* "tree 123" and a NUL. *length: of the header with its NUL. */
static bool parse_head(const struct inflating *f, git_object_t *type, size_t *size, size_t *length)
{
	const char *end = memchr(f->head, '\0', f->in_head);
	struct str number = str_n(f->head, end ? (size_t)(end - f->head) : 0);
	struct str word = str_cut(&number, ' ');
	char name[HEAD_MAX + 1] = "";
	int64_t n;

	if (!end || !number.n || number.p[0] < '0' || number.p[0] > '9' || !str_to_i64(number, &n))
		return false;
	memcpy(name, word.p, word.n);
	*type = git_object_string2type(name);
	*size = (size_t)n;
	*length = (size_t)(end - f->head) + 1;
	return git_object_typeisloose(*type);
}

/* Fills `out`, which has room for one byte more than `size`: a longer stream shows itself there. */
static bool inflate_content(struct inflating *f, unsigned char *out, size_t size, size_t length)
{
	size_t have = f->in_head - length;

	if (have > size)
		return false;
	memcpy(out, f->head + length, have);
	f->z.next_out = out + have;
	f->z.avail_out = (uInt)(size + 1 - have);
	if (!f->ended)
		f->ended = inflate(&f->z, Z_FINISH) == Z_STREAM_END;
	return f->ended && f->z.avail_out == 1 && f->z.avail_in == 0;
}

static int inflate_object(struct inflating *f, git_odb_backend *b, void **data, size_t *size,
			  git_object_t *type)
{
	unsigned char *out;
	size_t length;

	if (!inflate_head(f) || !parse_head(f, type, size, &length))
		return loose_damaged("the object's header is damaged");
	if (*size > GIT_OBJECT_MAX)
		return loose_damaged("pawl did not write this object: it is too large");
	out = git_odb_backend_data_alloc(b, *size + 1);
	if (!out)
		return GIT_ERROR;
	if (!inflate_content(f, out, *size, length)) {
		git_odb_backend_data_free(b, out);
		return loose_damaged("the object is truncated or damaged");
	}
	out[*size] = '\0';
	*data = out;
	return 0;
}

static int inflate_file(struct str text, git_odb_backend *b, void **data, size_t *size,
			git_object_t *type)
{
	struct inflating f = { .z = { .next_in = (unsigned char *)(uintptr_t)text.p,
				      .avail_in = (uInt)text.n } };
	int rc;

	if (inflateInit(&f.z) != Z_OK)
		return loose_damaged("cannot inflate the object");
	rc = inflate_object(&f, b, data, size, type);
	inflateEnd(&f.z);
	return rc;
}

static int loose_unreadable(int r)
{
	if (r == -ENOENT || r == -ENOTDIR)
		return GIT_ENOTFOUND;
	if (r == -EFBIG)
		return loose_damaged("pawl did not write this object: it is too large");
	if (r == -ELOOP || r == -EINVAL)
		return loose_damaged("the object is not a regular file");
	git_error_set_str(GIT_ERROR_OS, strerror(-r));
	return GIT_ERROR;
}

static int loose_read(void **data, size_t *size, git_object_t *type, git_odb_backend *b,
		      const git_oid *oid)
{
	const struct loose *l = (const struct loose *)b;
	char name[GIT_OID_HEXSZ + 2] = "";
	struct arena a = { 0 };
	struct str text;
	int r;

	git_oid_pathfmt(name, oid);
	r = fs_read(&a, fs_join(&a, str_c(l->objects), str_c(name)), FILE_MAX, &text);
	r = r ? loose_unreadable(r) : inflate_file(text, b, data, size, type);
	arena_free(&a);
	return r;
}

static void loose_free(git_odb_backend *b)
{
	free(((struct loose *)b)->objects);
	free(b);
}

int git_loose_add(git_odb *odb, const char *objects)
{
	struct loose *l = calloc(1, sizeof(*l));
	int rc = l ? git_odb_init_backend(&l->base, GIT_ODB_BACKEND_VERSION) : GIT_ERROR;

	if (rc == 0) {
		l->objects = strdup(objects);
		l->base.read = loose_read;
		l->base.free = loose_free;
		rc = l->objects ? git_odb_add_backend(odb, &l->base, FIRST) : GIT_ERROR;
	}
	if (rc && l)
		loose_free(&l->base);
	return rc;
}

/*
 * Reads loose objects in place of libgit2. Version 1.5 never returns from a truncated object, and it writes past its
 * buffer if an object is longer than its header says. This reader makes one pass over the file and accepts an object
 * only if its stream ends exactly where the header says. libgit2 still compares the hash.
 */
#include <errno.h>
#include <git2/sys/odb_backend.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <zlib.h>

#if __has_include(<git2/sys/errors.h>) /* libgit2 1.9 declares git_error_set_str there */
#include <git2/sys/errors.h>
#endif

#include "base/fs.h"
#include "store/git/git.h"
#include "store/git/transport/transport.h"

#define FIRST 1000  /* priority: before libgit2's own backends */
#define HEAD_MAX 64 /* "commit 2097152" and a NUL */
#define FILE_MAX (GIT_OBJECT_MAX + GIT_OBJECT_MAX / 64 + 1024) /* incompressible bytes grow */

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

/* The header is "tree 123" and a NUL. *length: its length with the NUL. */
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

/* Fills `out`, which has room for one byte more than `size`. A longer stream writes that byte, too. */
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

/* --- object ----------------------------------------------------------------------------------- */

/*
 * Guards against large foreign objects. An object that is small on disk or on the wire can take gigabytes in
 * memory, so pawl asks for its size first. pawl neither writes nor reads objects larger than GIT_OBJECT_MAX.
 */

bool git_object_fits(git_odb *odb, const git_oid *oid)
{
	git_object_t type;
	size_t n;

	/* true if there is no header: the read that follows reports the error */
	return git_odb_read_header(&n, &type, odb, oid) || n <= GIT_OBJECT_MAX;
}

static int too_large(void)
{
	git_error_set_str(GIT_ERROR_ODB, "pawl did not write this object: it is too large");
	return GIT_EINVALID;
}

int git_tree_open(struct git *s, git_tree **out, const git_oid *oid)
{
	return git_object_fits(s->odb, oid) ? git_tree_lookup(out, s->repo, oid) : too_large();
}

int git_blob_open(struct git *s, git_blob **out, const git_oid *oid)
{
	return git_object_fits(s->odb, oid) ? git_blob_lookup(out, s->repo, oid) : too_large();
}

int git_commit_open(struct git *s, git_commit **out, const git_oid *oid)
{
	return git_object_fits(s->odb, oid) ? git_commit_lookup(out, s->repo, oid) : too_large();
}

/* --- pack ------------------------------------------------------------------------------------- */

/* Packs a change's objects for sending, and unpacks received packs into this clone. A received pack stays in
 * a temporary folder until libgit2 has verified all of it, so a broken connection leaves no objects here. */

#define TOO_LARGE 1
#define KEEP_PACKED 100 /* objects; git's own fetch.unpackLimit */

int git_pack_made(struct git *s, const git_oid *made, size_t n, git_buf *out)
{
	git_packbuilder *pb = NULL;
	int rc = git_packbuilder_new(&pb, s->repo);

	if (rc == 0)
		git_packbuilder_set_threads(pb, 1);
	for (size_t i = 0; rc == 0 && i < n; i++)
		rc = git_packbuilder_insert(pb, &made[i], NULL);
	if (rc == 0)
		rc = git_packbuilder_write_buf(out, pb);
	git_packbuilder_free(pb);
	return rc;
}

/* --- receiving ---------------------------------------------------------------------------------- */

struct copy {
	git_odb *from, *to;
};

static int copy_one(const git_oid *id, void *ctx)
{
	struct copy *c = ctx;
	git_odb_object *obj = NULL;
	git_oid out;
	int rc = git_object_fits(c->from, id) ? git_odb_read(&obj, c->from, id) : TOO_LARGE;

	if (rc == 0)
		rc = git_odb_write(&out, c->to, git_odb_object_data(obj), git_odb_object_size(obj),
				   git_odb_object_type(obj));
	git_odb_object_free(obj);
	return rc;
}

/* Writes each object as a loose file, because a pack for every change would slow down all later reads.
 * TOO_LARGE: some object exceeds the limit. */
static int git_pack_scatter(struct git *s, const char *index)
{
	struct copy c = { .to = s->odb };
	git_odb_backend *pack = NULL;
	int rc = git_odb_new(&c.from);

	if (rc == 0)
		rc = git_odb_backend_one_pack(&pack, index);
	if (rc == 0)
		rc = git_odb_add_backend(c.from, pack, 1);
	if (rc == 0)
		rc = git_odb_foreach(c.from, copy_one, &c);
	git_odb_free(c.from);
	return rc;
}

static int git_pack_keep(struct git *s, const char *dir, const char *name, struct arena *a)
{
	static const char *const ends[] = { "pack", "idx" };

	for (int i = 0; i < 2; i++) {
		const char *file = arena_printf(a, "pack-%s.%s", name, ends[i]).p;

		if (rename(fs_join(a, str_c(dir), str_c(file)),
			   arena_printf(a, "%s/objects/pack/%s", s->local, file).p))
			return -errno;
	}
	return git_odb_refresh(s->odb) ? -EIO : 0;
}

/* Tells by libgit2's last error whether the pack is bad (-EBADMSG) or a local write failed (-EIO). */
static int refused_pack(void)
{
	const git_error *e = git_error_last();

	return e && e->klass == GIT_ERROR_INDEXER ? -EBADMSG : -EIO;
}

static int read_pack(struct git_conn *c, git_indexer *ix, git_indexer_progress *got)
{
	struct str bytes;
	int rc;

	while ((rc = git_conn_read(c, &bytes)) == 0)
		if (git_indexer_append(ix, bytes.p, bytes.n, got))
			return refused_pack();
	return rc == PKT_END ? 0 : rc;
}

static int take_into(struct git *s, struct git_conn *c, const char *dir, struct arena *a)
{
	git_indexer_progress got = { 0 };
	git_indexer *ix = NULL;
	const char *name = NULL;
	int rc;

	if (git_indexer_new(&ix, dir, 0, s->odb, NULL))
		return -EIO;
	rc = read_pack(c, ix, &got);
	if (rc == 0)
		rc = git_indexer_commit(ix, &got) ? refused_pack() : 0;
	if (rc == 0)
		name = arena_printf(a, "%s", git_indexer_name(ix)).p;
	git_indexer_free(ix);
	if (rc == 0 && got.total_objects >= KEEP_PACKED)
		return git_pack_keep(s, dir, name, a);
	if (rc == 0 && got.total_objects)
		rc = git_pack_scatter(s, arena_printf(a, "%s/pack-%s.idx", dir, name).p);
	if (rc == TOO_LARGE)
		return git_pack_keep(s, dir, name, a);
	if (rc && name)
		rc = -EIO;
	if (name) {
		unlink(arena_printf(a, "%s/pack-%s.idx", dir, name).p);
		unlink(arena_printf(a, "%s/pack-%s.pack", dir, name).p);
	}
	return rc;
}

int git_pack_take(struct git *s, struct git_conn *c)
{
	struct arena a = { 0 };
	/* if this process dies, `git prune` removes a folder of this name */
	char *dir = arena_cstr(&a, arena_printf(&a, "%s/objects/tmp_objdir-pawl-XXXXXX", s->local));
	int rc = mkdtemp(dir) ? 0 : -errno;

	if (rc == 0) {
		rc = take_into(s, c, dir, &a);
		rmdir(dir);
	}
	arena_free(&a);
	return rc;
}

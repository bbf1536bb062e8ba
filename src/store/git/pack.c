/* Packs: makes one of the objects of a change, to send it, and unpacks received ones into this clone. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fs.h"
#include "store/git/git.h"
#include "store/git/transport/raw.h"

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

/* Writes each object as a loose file: a pack for every change would slow down all later reads. TOO_LARGE:
 * some object exceeds the limit. */
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

/* Which syncs a commit needs: of the WAL, and of its folder entry. Before a commit counts as made, the WAL's folder entry is
 * on disk, whichever process created the WAL. */
#include "base/fs.h"
#include "store/sqlite/sqlite.h"

/* The process that begins a WAL syncs it even with durability = normal: see sqlite/sqlite_vfs.c. */
int sq_set_durability(struct sq *s)
{
	bool sync = !s->base.env.opt.relaxed || !sq_wal_begun(s->path);
	int rc = sq_exec(s, sync ? "PRAGMA synchronous=FULL" : "PRAGMA synchronous=NORMAL");

	s->durability_set = rc == 0;
	return rc;
}

static int durability_sync_folder(struct sq *s)
{
	struct arena a = { 0 };
	int r = fs_sync_dir(arena_cstr(&a, fs_dirname(str_c(s->path))));

	arena_free(&a);
	return r == 0 ? 0
		      : store_fail(&s->base.env, STORE_IO, NULL, "cannot sync the folder of %s: %s",
				   s->path, strerror(-r));
}

/*
 * A process may have created the WAL that we found and died before it synced the folder. A loss of power would then
 * remove the WAL with all its commits, and with the pages that an interrupted checkpoint needs. So we sync the folder
 * even with durability = normal, unless the gate's note names this WAL. The note is cleared before a WAL is made,
 * because the new WAL may get the old one's inode.
 */
int sq_settle_folder(struct sq *s)
{
	uint32_t found = sq_wal_found(s);
	int rc = 0;

	if (s->folder_synced)
		return 0;
	if (found != s->wal[WAL_IN_FOLDER]) {
		s->wal[WAL_IN_FOLDER] = found;
		if (found)
			rc = durability_sync_folder(s);
		else
			gate_announce(&s->gate, s->wal);
	}
	s->folder_synced = rc == 0;
	return rc;
}

int sq_make_durable(struct sq *s)
{
	int rc = sq_settle_folder(s);

	return rc < 0 ? rc : sq_wal_sync(s);
}

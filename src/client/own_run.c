/* The files are HASH-RUN.run. HASH is a hash of agent and worktree. The file has no content. */
#include "client/own_run.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/fs.h"
#include "client/keyring_private.h"

#define HEAD 32
#define TRIES 16

/* --- files ---------------------------------------------------------------------------------- */

static struct str head_of(const struct keyring *k, struct arena *a)
{
	struct str text = arena_printf(a, "%.*s\n%.*s", STRF(k->agent), STRF(k->worktree));

	return arena_printf(a, "%s-", arena_cstr(a, str_n(hash_hex(a, text).p, HEAD)));
}

struct search {
	struct str run;
	bool found;
};

static void check_one(void *ctx, const struct key_file *f)
{
	struct search *s = ctx;

	s->found = s->found || str_eq(f->run, s->run);
}

static bool has_tokens(const struct keyring *k, struct str run)
{
	struct arena scratch = { 0 };
	struct keyring ring = *k;
	struct search s = { .run = run };

	ring.arena = &scratch;
	(void)keyring_each(&ring, check_one, &s);
	arena_free(&scratch);
	return s.found;
}

/* Locks the file. false: its process is alive, or the file is gone. */
static bool own_run_lock(struct own_run *r, int flags)
{
	r->fd = open(r->path, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | flags, 0600);
	if (r->fd < 0)
		return false;
	if (key_lock_now(r->fd) == 0 && key_same_file(r->fd, r->path))
		return true;
	close(r->fd);
	return false;
}

/* --- a dead process ------------------------------------------------------------------------- */

static bool continue_run(struct own_run *r, const struct keyring *k, struct str file,
			 struct str run, struct arena *a)
{
	r->path = fs_join(a, str_c(k->dir), file);
	if (!own_run_lock(r, 0))
		return false;
	if (has_tokens(k, run)) {
		r->name = arena_str(a, run);
		r->continued = true;
		return true;
	}
	unlink(r->path); /* before the lock ends: another process may be waiting to continue it */
	close(r->fd);
	return false;
}

static bool continue_any(struct own_run *r, const struct keyring *k, struct str head,
			 struct arena *a)
{
	DIR *d = opendir(k->dir);
	const struct dirent *entry;
	bool found = false;

	while (d && !found && (entry = readdir(d))) {
		struct str file = str_c(entry->d_name), run = file;

		if (!str_cut_prefix(&run, head) || !str_ends(run, STR(".run")))
			continue;
		run.n -= 4;
		found = continue_run(r, k, file, run, a);
	}
	if (d)
		closedir(d);
	return found;
}

/* --- take and end --------------------------------------------------------------------------- */

static struct str new_name(struct arena *a)
{
	return arena_printf(a, "mcp-%08x%08x", random_below(UINT32_MAX), random_below(UINT32_MAX));
}

void own_run_take(struct own_run *r, const struct keyring *k, struct arena *a)
{
	struct str head = head_of(k, a);
	bool usable = keyring_folder(k) == 0;

	*r = (struct own_run){ .fd = -1 };
	if (usable && continue_any(r, k, head, a))
		return;
	for (int i = 0; i < TRIES; i++) {
		r->name = new_name(a);
		if (!usable)
			break;
		r->path = fs_join(a, str_c(k->dir),
				  arena_printf(a, "%.*s%.*s.run", STRF(head), STRF(r->name)));
		if (own_run_lock(r, O_CREAT | O_EXCL))
			return;
	}
	r->path = NULL;
}

void own_run_end(struct own_run *r, const struct keyring *k)
{
	if (r->path) {
		if (!has_tokens(k, r->name))
			unlink(r->path);
		close(r->fd);
	}
	*r = (struct own_run){ .fd = -1 };
}

/* Opens and closes the git store, and fills in the store interface. git.h explains the parts. If the store cannot be opened,
 * it releases everything that it has acquired, and leaves *out unchanged. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/module.h"
#include "base/os.h"
#include "store/git/git.h"
#include "store/git/layout/layout.h"
#include "store/git/transport/transport.h"

extern const struct module pawl_module;
static const struct store_ops store_git, store_branch;

/* --- open and close ----------------------------------------------------------------------------- */

/* The place as a URI, with the branch if the queue is on one. */
static struct str place_uri(struct git *s, struct arena *a)
{
	struct str dir = str_c(s->prefix ? s->prefix : "");

	if (!s->only || !str_cut_prefix(&dir, STR("refs/heads/")))
		return arena_printf(a, "git:%s", s->remote);
	return arena_printf(a, "git:%s#%.*s%s", s->remote, STRF(dir), s->only);
}

/* The word before `init` in the command that makes this queue: `lock init`, `id init` or `init`. */
static const char *init_of(const struct git *s)
{
	if (s->layout == &git_layout_locks)
		return "lock ";
	return s->layout == &git_layout_ids ? "id " : "";
}

int git_absent(struct git *s)
{
	struct arena a = { 0 };
	struct str name = s->only ? STR("") : s->base.env.opt.queue, uri = place_uri(s, &a);
	const char *hint;
	int rc;

	hint = arena_printf(&a, "pawl %sinit%s%s --store %s", init_of(s), name.n ? " --queue " : "",
			    name.n ? store_word(&a, name).p : "", store_word(&a, uri).p)
		       .p;
	if (s->transport == &git_transport_wire && git_seen_before(s))
		hint = arena_printf(
			       &a,
			       "to restore the queue that was here: git -C %s push %s %s%s:%s%s; to "
			       "begin an empty one: %s",
			       store_word(&a, str_c(s->local)).p,
			       store_word(&a, str_c(s->remote)).p, s->seen, git_main_ref(s).p,
			       s->prefix, git_main_ref(s).p, hint)
			       .p;
	(void)str_cut_prefix(&uri, STR("git:"));
	rc = store_fail(&s->base.env, STORE_ABSENT, hint, "there is no queue%s%.*s%s in %.*s",
			name.n ? " '" : "", STRF(name), name.n ? "'" : "", STRF(uri));
	arena_free(&a);
	return rc;
}

static void git_close(struct store *base)
{
	struct git *s = git_of(base);

	git_memo_close(s);
	git_view_free(&s->view);
	git_path_close(s);
	git_raw_close(s);
	if (s->watch >= 0)
		close(s->watch);
	git_odb_free(s->odb);
	git_repository_free(s->repo);
	free(s->url);
	free(s->remote);
	free(s->prefix);
	free(s->only);
	git_worktree_close(s);
	free(s->local);
	free(s->seen);
	free(s);
	git_libgit2_shutdown();
}

/* If a queue was there before, opening succeeds, and the first call checks whether it still exists. */
static bool was_there(struct git *s)
{
	struct arena a = { 0 };
	git_oid oid;
	bool there = s->transport == &git_transport_wire
			     ? git_seen_before(s)
			     : git_reference_name_to_id(&oid, s->repo,
							git_full(s, git_main_ref(s), &a).p) == 0;

	arena_free(&a);
	return there;
}

static int open_queue(struct git *s)
{
	int rc = s->transport == &git_transport_path ? git_path_open(s) : git_wire_open(s);

	if (rc == 0 && s->guess)
		rc = git_recognise(s);
	if (rc)
		return rc;
	if (s->layout == &git_layout_locks)
		s->base.traits = STORE_LOCKS_ONLY;
	if (s->transport == &git_transport_wire)
		s->base.traits |= STORE_FAR;
	git_clock_open(s);
	if (s->base.env.mode == STORE_CREATE)
		return git_begin_queue(s);
	rc = was_there(s) ? 0 : git_refresh(s);
	return rc > 0 ? git_absent(s) : rc;
}

static int git_open(struct store **out, const struct uri *uri, const struct store_env *env)
{
	struct git *s = mem_alloc(sizeof(*s));
	int rc;

	*s = (struct git){ .base = { .ops = &store_git, .env = *env },
			   .gate = { .fd = -1 },
			   .watch = -1,
			   .top = -1,
			   .refs = -1,
			   .locks = -1,
			   .memo = { .fd = -1 },
			   .refs_wanted = GIT_REFS_WANTED };
	git_libgit2_init();
	localclock_init(&s->clock, env);
	rc = localclock_usable(env);
	if (rc == 0)
		rc = git_find(s, uri);
	if (rc == 0 && s->only)
		s->base.ops = &store_branch;
	if (rc == 0)
		rc = open_queue(s);
	if (rc) {
		git_close(&s->base);
		return rc;
	}
	*out = &s->base;
	return 0;
}

/* --- the rest of the interface ------------------------------------------------------------------ */

static int git_wake_fd(struct store *base)
{
	struct git *s = git_of(base);
	struct arena a = { 0 };

	if (s->watch < 0 && s->transport == &git_transport_path) {
		s->watch = os_watch(arena_printf(&a, "%s/pawl", s->dir).p);
		/* other programs change the refs through git, without the gate */
		os_watch_also(s->watch, arena_printf(&a, "%s/%s", s->dir, s->prefix).p);
		os_watch_also(s->watch, arena_printf(&a, "%s/%st", s->dir, s->prefix).p);
	}
	arena_free(&a);
	return s->watch;
}

static void git_wake_clear(struct store *base)
{
	struct git *s = git_of(base);

	if (s->watch >= 0)
		os_watch_drain(s->watch);
}

static bool has_folder(const struct git *s)
{
	int fd = git_folder(s->top, "pawl", false);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* A remote repository has no memory that processes could share. */
static struct store_counts *git_counts(struct store *base)
{
	struct git *s = git_of(base);
	struct arena a = { 0 };
	struct store_counts *c;

	if (base->env.mode != STORE_READ)
		return s->gate.fd >= 0 ? gate_counts(&s->gate) : NULL;
	if (s->transport != &git_transport_path || !has_folder(s))
		return NULL;
	c = gate_counts_at(&s->gate, arena_printf(&a, "%s/pawl/gate", s->dir).p);
	arena_free(&a);
	return c;
}

#define GIT_OPS                                                                                \
	.scheme = "git", .open = git_open, .close = git_close, .now = git_now, .get = git_get, \
	.scan = git_scan, .count = git_count, .tally = git_tally, .modify = git_modify,        \
	.entries = git_entries, .snapshot = git_snapshot, .wake_fd = git_wake_fd,              \
	.wake_clear = git_wake_clear, .check = git_check, .repair = git_repair_blocks,         \
	.discard = git_discard, .counts = git_counts

/* A branch store cannot list queues: it would have to fetch every branch to recognise them. */
static const struct store_ops store_git = { GIT_OPS, .queues = git_queues };
static const struct store_ops store_branch = { GIT_OPS };

const struct module pawl_module = { .abi = MODULE_ABI, .store = &store_git };

/*
 * The transport to a remote repository: it lists the refs, and pushes with the expected value of each ref. It
 * speaks git's own protocol where it can (git/transport/transport.h), and runs the user's git elsewhere. Refs in the
 * user's clone (or in a clone in the cache) record the last fetch, so the next fetch is short, and --cached has
 * data to show.
 *
 * A push whose answer was lost may have happened, or may yet happen. pawl reads the refs to find out. As long
 * as all refs are as before, pawl sends the same commits again, never new ones. Once a ref has moved, the lost
 * push cannot happen any more. The states of a push (wire_push(), which is PUSHING in git/git_change.c):
 *
 *     READY
 *       |  push_once() calls git_raw_push(), or push_by_git() where git's protocol cannot be used
 *       v
 *     SENT <-----------------------------------------------------------------------+
 *       |--- the report says that all refs have moved ---------> PUSHED            |
 *       |                                                                          |
 *       |    (these three only if no answer has been lost before)                  |
 *       |--- a ref has moved (PUSH_LATE) ----------------------> 1, run again      |
 *       |--- the server is not atomic (PUSH_ONE_ONLY) ---------> fault, 'n'        |
 *       |--- refused, all refs as before (PUSH_DECLINED) ------> fault, 'n'        |  pause_a_little(),
 *       |                                                                          |  then push_once()
 *       |  the answer was lost, or the report cannot be relied on                  |  sends the same
 *       v                                                                          |  commits again
 *     UNSURE                                                                       |
 *       |  check_again() lists the refs:                                            |
 *       |--- IT_IS_THERE: the leader has our commit -----------> PUSHED            |
 *       |--- A_REF_HAS_MOVED ----------------------------------> 1, run again      |
 *       |--- the list fails -----------------------------------> fault, '?'        |
 *       |--- ALL_AS_BEFORE, the time is over ------------------> fault, '?'        |
 *       +--- ALL_AS_BEFORE --------------------------------------------------------+
 *
 *     PUSHED: note_pushed() records the new refs in this clone.
 *
 * If this process dies, it leaves this:
 *
 *     READY     objects in this clone that no ref reaches.
 *     SENT,     a push that happens as a whole or not at all, because it is atomic. The caller does not know
 *     UNSURE    which. It may repeat its call, which recognises its own effect (invariant 10 of store.h).
 *     PUSHED    the change. The refs in this clone may be older; the next fetch updates them.
 *
 * If the server's receive-pack is killed, the leader may have moved without the other refs: the next change
 * makes the pending moves (layout->ready()). It can also leave REF.lock, which only the server's owner can
 * remove.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/os.h"
#include "base/secret.h"
#include "store/git/git.h"
#include "store/git/transport/transport.h"

#define RETRY_MS 20
#define ANCESTRY 200 /* commits of others on top of pawl's commit, at most */

/* --- opening ------------------------------------------------------------------------------------ */

static char *cache_path(struct str name, struct arena *a)
{
	const char *dir = fs_user_dir(a, "XDG_CACHE_HOME", ".cache");

	return dir ? arena_cstr(a, arena_printf(a, "%s/git/%.*s.git", dir, STRF(name))) : NULL;
}

/* Only one process at a time makes the repository, so that others do not see an incomplete one. Where folders
 * cannot be locked, pawl makes it without a lock. */
static int open_or_make(struct git *s, const char *path, const char *parent)
{
	git_repository_init_options o;
	int fd = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc;

	git_repository_init_options_init(&o, GIT_REPOSITORY_INIT_OPTIONS_VERSION);
	o.flags = GIT_REPOSITORY_INIT_BARE | GIT_REPOSITORY_INIT_MKPATH;
	if (fd >= 0)
		(void)flock(fd, LOCK_EX);
	rc = git_repository_open_bare(&s->repo, path);
	if (rc)
		rc = git_repository_init_ext(&s->repo, path, &o);
	if (fd >= 0)
		close(fd);
	return rc ? git_fail(s, STORE_IO, "cannot make a local copy") : 0;
}

static int make_cache(struct git *s, struct str name, struct arena *a)
{
	char *path = cache_path(name, a), *parent;
	int rc;

	if (!path)
		return store_fail(&s->base.env, STORE_UNSUPPORTED, "set XDG_CACHE_HOME, or HOME",
				  "there is no folder for a copy of %s", s->remote);
	parent = arena_cstr(a, fs_dirname(str_c(path)));
	rc = fs_make_dirs(parent, 0700);
	if (rc)
		return git_fail_errno(s, -rc, arena_printf(a, "cannot make %s", parent).p);
	return open_or_make(s, path, parent);
}

/* Objects go into the user's own repository around the current folder, if there is one. */
static int open_local(struct git *s, struct str name, struct arena *a)
{
	bool skipped;

	s->repo = git_own_repository(s->base.env.opt.dir, &skipped);
	return s->repo ? 0 : make_cache(s, name, a);
}

static int open_gate(struct git *s, struct str name, struct arena *a)
{
	int rc = git_folders_open(s, s->local);

	if (rc == 0)
		rc = git_gate_open(&s->gate, s->top, arena_printf(a, "seen-%.*s", STRF(name)).p);
	return rc ? git_fail_errno(s, -rc, arena_printf(a, "cannot use its copy in %s", s->local).p)
		  : 0;
}

/* pawl can make a repository on this machine, but not on a server. */
static int make_remote(struct git *s)
{
	struct str path = str_c(s->url);
	int rc = 0;

	(void)str_cut_prefix(&path, STR("file://"));
	if (s->base.env.mode == STORE_CREATE && path.p[0] == '/' && !fs_exists(path.p))
		rc = git_make_repository(path.p);
	return rc && rc != GIT_EEXISTS ? git_fail(s, STORE_IO, "cannot make the repository") : 0;
}

/* --cached: uses the last fetch, without a connection. */
static int use_seen(struct git *s)
{
	struct stat st;

	if (!git_seen_before(s) || fstat(s->gate.fd, &st))
		return store_fail(&s->base.env, STORE_UNREACHABLE,
				  "run the command once without --cached",
				  "this clone has not fetched anything from %s yet", s->remote);
	s->base.env.as_of = st.st_mtim.tv_sec * INT64_C(1000) + st.st_mtim.tv_nsec / 1000000;
	s->no_fetch = true;
	return 0;
}

static int open_odb(struct git *s, struct arena *a)
{
	struct str dir = str_c(git_repository_commondir(s->repo));

	if (git_repository_odb(&s->odb, s->repo) ||
	    git_loose_add(s->odb, fs_join(a, dir, STR("objects"))))
		return git_fail(s, STORE_IO, "cannot open its objects");
	return 0;
}

int git_wire_open(struct git *s)
{
	struct arena a = { 0 };
	struct str name = hash_hex(&a, str_c(s->url)), queue = str_c(s->prefix);
	int rc = make_remote(s);

	name.n = 16;
	if (rc == 0)
		rc = open_local(s, name, &a);
	if (rc == 0)
		rc = open_odb(s, &a);
	if (rc == 0) {
		(void)str_cut_prefix(&queue, STR("refs/"));
		s->seen = strdup(
			arena_printf(&a, "refs/pawl-seen/%.*s/%.*s", STRF(name), STRF(queue)).p);
		s->local = realpath(git_repository_commondir(s->repo), NULL);
		if (!s->seen || !s->local)
			rc = git_fail(s, STORE_IO, "cannot use the local copy");
	}
	if (rc == 0)
		rc = open_gate(s, name, &a);
	if (rc == 0)
		git_raw_open(s);
	if (rc == 0 && s->base.env.opt.cached)
		rc = use_seen(s);
	arena_free(&a);
	return rc;
}

/* --- fetching ----------------------------------------------------------------------------------- */

/* git does not always say whether this machine or the server is full. */
static int no_room(struct git *s, struct str line)
{
	if (line.n > 200)
		line.n = 200;
	return store_fail(&s->base.env, STORE_FULL,
			  "free some space here or on the server, and try again",
			  "%s: no space is left: %.*s", s->remote, STRF(line));
}

int git_unreachable(struct git *s, int rc, struct str text)
{
	struct str line = git_last_line(text), full = git_full_line(text);

	if (full.n || (rc < 0 && git_errno_full(-rc)))
		return no_room(s, full.n ? full : str_c(strerror(-rc)));
	if (rc == -ENOENT)
		return store_fail(&s->base.env, STORE_UNSUPPORTED, "install the package git",
				  "cannot reach %s: the program git is not installed", s->remote);
	if (rc == -ETIMEDOUT)
		return store_fail(&s->base.env, STORE_UNREACHABLE,
				  "check the network, or raise the setting timeout",
				  "%s did not answer in time", s->remote);
	if (!line.n && rc < 0)
		line = str_c(strerror(-rc));
	if (line.n > 200)
		line.n = 200;
	return store_fail(&s->base.env, STORE_UNREACHABLE,
			  "to see git's own message: git ls-remote REMOTE", "cannot reach %s: %.*s",
			  s->remote, STRF(line));
}

/* Asks for a single ref by a pattern, too, because then a missing ref is not an error. */
static struct str git_wire_refspec(struct git *s, struct arena *a)
{
	struct str only = s->only ? str_c(s->only) : STR("");

	if (!only.n)
		return arena_printf(a, "+%s*:%s*", s->prefix, s->seen);
	only.n--;
	return arena_printf(a, "+%s%.*s*%c:%s%.*s*%c", s->prefix, STRF(only), only.p[only.n],
			    s->seen, STRF(only), only.p[only.n]);
}

static int git_wire_fetch(struct git *s)
{
	struct git_args g;
	struct str text = { 0 };
	int rc;

	git_args_begin(&g, s->local, "fetch");
	git_arg(&g, STR("--quiet"));
	git_arg(&g, STR("--no-tags"));
	git_arg(&g, STR("--prune"));
	git_arg(&g, STR("--no-write-fetch-head"));
	git_arg(&g, STR("--no-auto-maintenance"));
	git_arg(&g, STR("--no-recurse-submodules"));
	git_arg(&g, STR("--end-of-options"));
	git_arg(&g, str_c(s->url));
	git_arg(&g, git_wire_refspec(s, &g.a));
	rc = git_run(&g, git_net_ms(s), &text);
	if (rc)
		rc = git_unreachable(s, rc, text);
	else
		git_seen_now(s);
	git_args_free(&g);
	return rc;
}

static int lock_seen(struct git *s)
{
	int rc = gate_lock(&s->gate, git_net_ms(s), s->base.env.opt.who);

	if (rc == -ETIMEDOUT)
		return gate_busy(&s->gate, &s->base.env, s->local);
	return rc ? git_fail_errno(s, -rc, "cannot lock its local copy") : 0;
}

static int wire_list(struct git *s, struct git_refs *out, struct arena *a)
{
	int rc;

	if (s->no_fetch)
		return git_seen_list(s, out, a);
	if (s->raw)
		return git_raw_list(s, out, a);
	rc = lock_seen(s);
	if (rc)
		return rc;
	rc = git_wire_fetch(s);
	if (rc == 0)
		rc = git_seen_list(s, out, a);
	gate_unlock(&s->gate);
	return rc;
}

/* --- pushing ------------------------------------------------------------------------------------ */

static void push_args(struct git *s, struct git_args *g, const struct git_move *moves, size_t n,
		      bool atomic)
{
	git_args_begin(g, s->local, "push");
	git_arg(g, STR("--quiet"));
	git_arg(g, STR("--porcelain"));
	git_arg(g, STR("--no-verify"));
	git_arg(g, STR("--recurse-submodules=no"));
	if (atomic)
		git_arg(g, STR("--atomic"));
	for (size_t i = 0; i < n; i++) {
		struct str full = git_full(s, moves[i].name, &g->a);
		bool fresh = git_oid_is_zero(&moves[i].old);

		git_arg(g, arena_printf(&g->a, "--force-with-lease=%.*s:%s", STRF(full),
					fresh ? "" : git_hex(&g->a, &moves[i].old).p));
	}
	git_arg(g, STR("--end-of-options"));
	git_arg(g, str_c(s->url));
	for (size_t i = 0; i < n; i++) {
		struct str full = git_full(s, moves[i].name, &g->a);
		bool gone = git_oid_is_zero(&moves[i].to);

		git_arg(g, arena_printf(&g->a, "%s:%.*s",
					gone ? "" : git_hex(&g->a, &moves[i].to).p, STRF(full)));
	}
}

/* The reason if the server refused: "! … [remote rejected] (REASON)". git's other output proves nothing. */
static struct str git_wire_rejection(struct str text)
{
	static const struct str mark = { "[remote rejected] (", 19 };

	for (size_t i = 0; i + mark.n < text.n; i++) {
		struct str rest = str_n(text.p + i, text.n - i);

		if (str_cut_prefix(&rest, mark))
			return str_cut(&rest, ')');
	}
	return STR("");
}

static enum git_pushed push_by_git(struct git *s, const struct git_move *moves, size_t n,
				   bool atomic, struct str *why, struct arena *a)
{
	struct git_args g;
	struct str text = { 0 }, reason, full;
	bool one_only, declined;
	int rc;

	push_args(s, &g, moves, n, atomic);
	rc = git_run(&g, git_net_ms(s), &text);
	reason = git_wire_rejection(text);
	one_only = atomic && str_has_nocase(text, STR("does not support --atomic push"));
	declined = reason.n && !git_is_late(reason);
	full = git_full_line(text);
	*why = arena_str(a, full.n ? full : reason.n ? reason : git_last_line(text));
	git_args_free(&g);
	if (rc == 0)
		return PUSHED;
	if (one_only)
		return PUSH_ONE_ONLY; /* git asks before it sends anything */
	return declined ? PUSH_DECLINED : PUSH_UNKNOWN;
}

/* Is `ours` an ancestor of `now`? */
static bool git_wire_behind(struct git *s, const git_oid *now, const git_oid *ours)
{
	struct arena a = { 0 };
	git_oid at = *now;
	bool found = false;

	for (int i = 0; !found && i < ANCESTRY; i++) {
		struct git_state st;

		found = git_oid_equal(&at, ours);
		if (found || git_commit_read(s, &at, &st, &a) == 1 || !st.n_parents)
			break;
		at = st.parents[0];
	}
	arena_free(&a);
	return found;
}

enum found { IT_IS_THERE, A_REF_HAS_MOVED, ALL_AS_BEFORE };

static int check_again(struct git *s, const struct git_move *moves, size_t n)
{
	struct arena a = { 0 };
	struct git_refs refs;
	int rc = wire_list(s, &refs, &a);

	if (rc == 0) {
		const git_oid *first = git_ref_find(&refs, moves[0].name);

		if (git_oid_is_zero(&moves[0].to))
			rc = first ? ALL_AS_BEFORE : IT_IS_THERE;
		else
			rc = first && git_wire_behind(s, first, &moves[0].to) ? IT_IS_THERE
									      : ALL_AS_BEFORE;
	}
	for (size_t i = 0; rc == ALL_AS_BEFORE && i < n; i++) {
		const git_oid *now = git_ref_find(&refs, moves[i].name);

		if (now ? !git_oid_equal(now, &moves[i].old) : !git_oid_is_zero(&moves[i].old))
			rc = A_REF_HAS_MOVED;
	}
	arena_free(&a);
	return rc;
}

struct sending {
	struct arena a;
	struct str why;
	struct backoff pause;
	bool unsure; /* an answer was lost */
};

static int git_wire_declined(struct git *s, const struct sending *p)
{
	struct str why = p->why;

	if (why.n > 200)
		why.n = 200;
	if (git_full_line(why).n)
		return no_room(s, why);
	return store_fail(&s->base.env, STORE_UNREACHABLE,
			  "ask the owner of the repository, or use other refs (?prefix=)",
			  "%s refused the push: %.*s", s->remote, STRF(why));
}

static int cannot_do_all(struct git *s)
{
	return store_fail(&s->base.env, STORE_UNSUPPORTED,
			  "keep the whole queue on one branch: --store git:REMOTE#BRANCH; or set "
			  "receive.advertiseAtomic on the server",
			  "%s cannot change several refs at once", s->remote);
}

/* Waits before the push is sent again; < 0: there is no time left. */
static int pause_a_little(struct git *s, struct sending *p)
{
	int64_t ms = backoff_next(&p->pause, os_boot_ms());

	if (ms < 0) {
		int rc = git_unreachable(s, 1, p->why);

		s->base.env.err->applied = '?';
		return rc;
	}
	nanosleep(&(struct timespec){ ms / 1000, (long)(ms % 1000) * 1000000 }, NULL);
	return 0;
}

/* 0: the push has happened; 1: another writer committed first; 2: send it again; a fault. */
static int push_once(struct git *s, const struct git_move *moves, size_t n, struct sending *p)
{
	enum git_pushed how = PUSH_NOT_HERE;
	int rc;

	if (s->raw)
		how = git_raw_push(s, moves, n, n > 1, &p->why, &p->a);
	if (how == PUSH_NOT_HERE)
		how = push_by_git(s, moves, n, n > 1, &p->why, &p->a);
	if (how == PUSHED)
		return 0;
	if (how == PUSH_ONE_ONLY && !p->unsure)
		return cannot_do_all(s);
	if (how == PUSH_LATE && !p->unsure)
		return 1;
	rc = check_again(s, moves, n);
	if (rc < 0)
		s->base.env.err->applied = '?';
	if (rc != ALL_AS_BEFORE)
		return rc;
	if (how == PUSH_DECLINED && !p->unsure)
		return git_wire_declined(s, p);
	p->unsure = true;
	rc = pause_a_little(s, p);
	return rc < 0 ? rc : 2;
}

/* Without the raw protocol, another process's `git fetch` may be writing the same refs, and would fail. In that
 * case the next fetch records the push. */
static void note_pushed(struct git *s, const struct git_move *moves, size_t n)
{
	if (s->raw)
		git_seen_note(s, moves, n);
}

static int wire_push(struct git *s, const struct git_move *moves, size_t n)
{
	struct sending p = { .pause = s->base.env.opt.backoff };
	int rc;

	p.pause.made = 0;
	p.pause.base_ms = p.pause.base_ms ? p.pause.base_ms : RETRY_MS;
	p.pause.deadline = os_boot_ms() + s->base.env.opt.timeout_ms;
	do {
		rc = push_once(s, moves, n, &p);
	} while (rc == 2);
	if (rc == 0)
		note_pushed(s, moves, n);
	if (s->raw)
		git_raw_forget(s);
	arena_free(&p.a);
	return rc;
}

static void wire_drop(struct git *s, const struct git_move *moves, size_t n)
{
	struct arena a = { 0 };
	struct str why;
	enum git_pushed how = s->raw ? git_raw_push(s, moves, n, false, &why, &a)
				     : push_by_git(s, moves, n, false, &why, &a);

	if (how == PUSHED)
		note_pushed(s, moves, n);
	arena_free(&a);
}

static int wire_begin(struct git *s)
{
	s->no_fetch = false;
	if (s->raw)
		git_raw_begin(s);
	return 0;
}

static void wire_end(struct git *s)
{
	if (s->raw)
		git_raw_end(s);
}

/* git's protocol can keep a ref in its place; `git push` cannot. */
static bool wire_guards(const struct git *s)
{
	return s->raw != NULL;
}

const struct git_transport git_transport_wire = {
	.begin = wire_begin,
	.end = wire_end,
	.list = wire_list,
	.push = wire_push,
	.drop = wire_drop,
	.guards = wire_guards,
};

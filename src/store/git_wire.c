/*
 * The lane to a repository elsewhere, by the user's own git: fetch, build, push with the value that is expected
 * of each ref. What was fetched stays in refs of the clone we are in (or of one in the cache), so that the next
 * fetch is short and --cached has something to show.
 *
 * Whether a push has happened is never decided by what git says, only by looking again.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/os.h"
#include "base/secret.h"
#include "store/git.h"
#include "store/git_run.h"

#define ANCESTRY 200 /* how far to look for a commit of ours behind those of others */

/* --- opening ------------------------------------------------------------------------------------ */

static char *cache_path(struct str name, struct arena *a)
{
	const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");

	if (cache && cache[0] == '/')
		return arena_cstr(a, arena_printf(a, "%s/pawl/git/%.*s.git", cache, STRF(name)));
	if (home && home[0] == '/')
		return arena_cstr(a,
				  arena_printf(a, "%s/.cache/pawl/git/%.*s.git", home, STRF(name)));
	return NULL;
}

static int make_cache(struct git *s, struct str name, struct arena *a)
{
	git_repository_init_options o;
	char *path = cache_path(name, a);
	int rc;

	if (!path)
		return store_fail(&s->base.env, STORE_UNSUPPORTED, "set XDG_CACHE_HOME, or HOME",
				  "no folder to keep a copy of %s in", s->remote);
	git_repository_init_options_init(&o, GIT_REPOSITORY_INIT_OPTIONS_VERSION);
	o.flags = GIT_REPOSITORY_INIT_BARE | GIT_REPOSITORY_INIT_MKPATH;
	rc = fs_make_dirs(arena_cstr(a, fs_dirname(str_c(path))), 0700);
	if (rc)
		return store_fail(&s->base.env, STORE_IO, NULL, "%s cannot be made: %s", path,
				  strerror(-rc));
	if (git_repository_open_bare(&s->repo, path) &&
	    git_repository_init_ext(&s->repo, path, &o) && git_repository_open_bare(&s->repo, path))
		return git_fail(s, STORE_IO, "a copy cannot be made");
	return 0;
}

/* The repository that we are in, if any, takes the objects. */
static int open_local(struct git *s, struct str name, struct arena *a)
{
	if (git_repository_open_ext(&s->repo, ".", 0, NULL) == 0)
		return 0;
	return make_cache(s, name, a);
}

static int open_gate(struct git *s, struct str name, struct arena *a)
{
	struct stat like;
	const char *dir = fs_join(a, str_c(s->local), STR("pawl"));
	int rc = fs_make_dirs(dir, 0777);

	if (rc == 0 && stat(dir, &like))
		rc = -errno;
	like.st_mode &= (mode_t)~0111;
	if (rc == 0)
		rc = gate_open(&s->gate,
			       fs_join(a, str_c(dir), arena_printf(a, "seen-%.*s", STRF(name))),
			       &like);
	return rc ? store_fail(&s->base.env, STORE_IO, "check the owner and mode of that folder",
			       "%s: %s", dir, strerror(-rc))
		  : 0;
}

/* On this machine a repository can be made; elsewhere that is the server's business. */
static int make_remote(struct git *s)
{
	git_repository *made = NULL;
	struct str path = str_c(s->remote);
	int rc = 0;

	(void)str_cut_prefix(&path, STR("file://"));
	if (s->base.env.mode == STORE_CREATE && path.p[0] == '/' && !fs_exists(path.p))
		rc = git_repository_init(&made, path.p, 1);
	git_repository_free(made);
	return rc ? git_fail(s, STORE_IO, "cannot be made") : 0;
}

int git_wire_open(struct git *s)
{
	struct arena a = { 0 };
	struct str name = hash_hex(&a, str_c(s->remote)), queue = str_c(s->prefix);
	int rc = make_remote(s);

	name.n = 16;
	if (rc == 0)
		rc = open_local(s, name, &a);
	if (rc == 0 && git_repository_odb(&s->odb, s->repo))
		rc = git_fail(s, STORE_IO, "its objects cannot be opened");
	if (rc == 0) {
		(void)str_cut_prefix(&queue, STR("refs/"));
		s->seen = strdup(
			arena_printf(&a, "refs/pawl-seen/%.*s/%.*s", STRF(name), STRF(queue)).p);
		s->local = realpath(git_repository_commondir(s->repo), NULL);
		if (!s->seen || !s->local)
			rc = git_fail(s, STORE_IO, "the copy cannot be used");
	}
	if (rc == 0)
		rc = open_gate(s, name, &a);
	arena_free(&a);
	return rc;
}

/* --- fetching ----------------------------------------------------------------------------------- */

/* The last line that git wrote says most. */
static struct str last_line(struct str text)
{
	struct str line = { 0 };

	while (text.n) {
		struct str next = str_trim(str_cut(&text, '\n'));

		if (next.n)
			line = next;
	}
	return line;
}

static int unreachable(struct git *s, int rc, struct str text)
{
	struct str line = last_line(text);

	if (rc == -ENOENT)
		return store_fail(&s->base.env, STORE_UNSUPPORTED, "install the package git",
				  "there is no git to reach %s with", s->remote);
	if (rc == -ETIMEDOUT)
		return store_fail(&s->base.env, STORE_UNREACHABLE,
				  "look at the network, or raise the setting timeout",
				  "%s did not answer in time", s->remote);
	if (line.n > 200)
		line.n = 200;
	return store_fail(&s->base.env, STORE_UNREACHABLE, "git ls-remote REMOTE shows the same",
			  "%s cannot be reached: %.*s", s->remote, STRF(line));
}

/* One ref is asked for by a pattern, too: that it is not there is no failure then. */
static struct str refspec(struct git *s, struct arena *a)
{
	struct str only = s->only ? str_c(s->only) : STR("");

	if (!only.n)
		return arena_printf(a, "+%s*:%s*", s->prefix, s->seen);
	only.n--;
	return arena_printf(a, "+%s%.*s*%c:%s%.*s*%c", s->prefix, STRF(only), only.p[only.n],
			    s->seen, STRF(only), only.p[only.n]);
}

static int fetch(struct git *s)
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
	git_arg(&g, str_c(s->remote));
	git_arg(&g, refspec(s, &g.a));
	rc = git_run(&g, s->base.env.timeout_ms, &text);
	if (rc)
		rc = unreachable(s, rc, text);
	else
		futimens(s->gate.fd, NULL); /* as fresh as this file */
	git_args_free(&g);
	return rc;
}

static int ref_cmp(const void *a, const void *b)
{
	const struct git_ref *x = a, *y = b;

	return str_cmp(x->name, y->name);
}

static int list_seen(struct git *s, struct git_refs *out, struct arena *a)
{
	git_reference_iterator *it = NULL;
	git_reference *ref;
	int rc = git_reference_iterator_glob_new(&it, s->repo, arena_printf(a, "%s*", s->seen).p);

	*out = (struct git_refs){ 0 };
	while (rc == 0 && (rc = git_reference_next(&ref, it)) == 0) {
		struct str name = str_c(git_reference_name(ref));

		if (git_reference_target(ref) && str_cut_prefix(&name, str_c(s->seen)) &&
		    git_ours(s, name)) {
			out->v = arena_grow(a, out->v, out->n, sizeof(*out->v));
			out->v[out->n++] = (struct git_ref){ arena_str(a, name),
							     *git_reference_target(ref) };
		}
		git_reference_free(ref);
	}
	git_reference_iterator_free(it);
	if (rc != GIT_ITEROVER)
		return git_fail(s, STORE_IO, "what was fetched cannot be read");
	if (out->n > 1)
		qsort(out->v, out->n, sizeof(*out->v), ref_cmp);
	return 0;
}

static int lock_seen(struct git *s)
{
	int rc = gate_lock(&s->gate, s->base.env.timeout_ms, s->base.env.who);

	if (rc == -ETIMEDOUT)
		return gate_busy(&s->gate, &s->base.env, s->local);
	return rc ? store_fail(&s->base.env, STORE_IO, NULL, "%s: %s", s->local, strerror(-rc)) : 0;
}

static int wire_list(struct git *s, struct git_refs *out, struct arena *a)
{
	int rc = lock_seen(s);

	if (rc)
		return rc;
	rc = s->no_fetch ? 0 : fetch(s);
	if (rc == 0)
		rc = list_seen(s, out, a);
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
	git_arg(g, str_c(s->remote));
	for (size_t i = 0; i < n; i++) {
		struct str full = git_full(s, moves[i].name, &g->a);
		bool gone = git_oid_is_zero(&moves[i].to);

		git_arg(g, arena_printf(&g->a, "%s:%.*s",
					gone ? "" : git_hex(&g->a, &moves[i].to).p, STRF(full)));
	}
}

/* What we know of the remote now, unless another process of this clone knows more. */
static void note_seen(struct git *s, const struct git_move *moves, size_t n)
{
	struct arena a = { 0 };

	if (lock_seen(s))
		return;
	for (size_t i = 0; i < n; i++) {
		const char *name = arena_printf(&a, "%s%.*s", s->seen, STRF(moves[i].name)).p;
		git_reference *ref = NULL;

		if (git_oid_is_zero(&moves[i].to)) {
			if (git_reference_lookup(&ref, s->repo, name) == 0 &&
			    git_oid_equal(git_reference_target(ref), &moves[i].old))
				git_reference_delete(ref);
		} else if (git_oid_is_zero(&moves[i].old)) {
			git_reference_create(&ref, s->repo, name, &moves[i].to, 0, NULL);
		} else {
			git_reference_create_matching(&ref, s->repo, name, &moves[i].to, 1,
						      &moves[i].old, NULL);
		}
		git_reference_free(ref);
	}
	gate_unlock(&s->gate);
	arena_free(&a);
}

static const git_oid *find_ref(const struct git_refs *refs, struct str name)
{
	for (size_t i = 0; i < refs->n; i++)
		if (str_eq(refs->v[i].name, name))
			return &refs->v[i].oid;
	return NULL;
}

/* Is it in the history of what is there now? */
static bool behind(struct git *s, const git_oid *now, const git_oid *ours)
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

/* After a push that failed, or seemed to: 0 it has happened; 1 a ref has moved; 2 all are as they were. */
static int look_again(struct git *s, const struct git_move *moves, size_t n)
{
	struct arena a = { 0 };
	struct git_refs refs;
	int rc = wire_list(s, &refs, &a);

	if (rc == 0) {
		const git_oid *first = find_ref(&refs, moves[0].name);

		if (git_oid_is_zero(&moves[0].to))
			rc = first ? 2 : 0;
		else
			rc = first && behind(s, first, &moves[0].to) ? 0 : 2;
	}
	for (size_t i = 0; rc == 2 && i < n; i++) {
		const git_oid *now = find_ref(&refs, moves[i].name);

		if (now ? !git_oid_equal(now, &moves[i].old) : !git_oid_is_zero(&moves[i].old))
			rc = 1;
	}
	arena_free(&a);
	return rc;
}

static int wire_push(struct git *s, const struct git_move *moves, size_t n)
{
	struct git_args g;
	struct str text = { 0 };
	int rc, seen;

	push_args(s, &g, moves, n, n > 1);
	rc = git_run(&g, s->base.env.timeout_ms, &text);
	if (rc == 0) {
		note_seen(s, moves, n);
		git_args_free(&g);
		return 0;
	}
	seen = look_again(s, moves, n);
	if (seen == 2 && ++s->refused < 3) {
		seen = 1; /* it may have been the network: once more, on what is there */
	} else if (seen == 2) {
		seen = unreachable(s, rc, text);
	}
	if (seen < 0)
		s->base.env.err->applied = '?';
	git_args_free(&g);
	return seen;
}

static void wire_drop(struct git *s, const struct git_move *moves, size_t n)
{
	struct git_args g;
	struct str text = { 0 };

	push_args(s, &g, moves, n, false);
	if (git_run(&g, s->base.env.timeout_ms, &text) == 0)
		note_seen(s, moves, n);
	git_args_free(&g);
}

static int wire_begin(struct git *s)
{
	s->refused = 0;
	return 0;
}

static void wire_end(struct git *s)
{
	(void)s;
}

const struct git_lane git_lane_wire = {
	.begin = wire_begin,
	.end = wire_end,
	.list = wire_list,
	.push = wire_push,
	.drop = wire_drop,
};

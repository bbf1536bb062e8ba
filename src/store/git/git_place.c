/* Resolves a URI: which repository it means, and how to reach it. The URI or a remote's URL may be hostile, so
 * it must never become an option or a helper program of git. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/os.h"
#include "store/git/git.h"
#include "store/git/layout/layout.h"

static int bad_uri(struct git *s, struct str what, const char *why)
{
	struct arena a = { 0 };
	int rc;

	what = uri_shown(&a, what);
	if (what.n > 60)
		what.n = 60;
	rc = store_fail(
		&s->base.env, STORE_UNSUPPORTED,
		"git:REMOTE needs the name of a remote, a path, or a URL with file, ssh, git, "
		"http or https",
		"'%.*s' %s", STRF(what), why);
	arena_free(&a);
	return rc;
}

static char *git_place_copy(struct str text)
{
	struct arena a = { 0 };
	char *p = strdup(arena_cstr(&a, text));

	arena_free(&a);
	if (!p)
		abort();
	return p;
}

/* --- names -------------------------------------------------------------------------------------- */

static bool has_control(struct str text)
{
	for (size_t i = 0; i < text.n; i++)
		if ((unsigned char)text.p[i] < ' ' || text.p[i] == 0x7f)
			return true;
	return false;
}

static size_t git_place_find(struct str text, struct str part)
{
	for (size_t i = 0; i + part.n <= text.n; i++)
		if (memcmp(text.p + i, part.p, part.n) == 0)
			return i;
	return text.n;
}

static bool known_scheme(struct str url)
{
	static const char *const known[] = { "file", "ssh", "git", "http", "https" };
	struct str scheme = str_n(url.p, git_place_find(url, STR("://")));

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (str_is(scheme, known[i]))
			return true;
	return false;
}

static bool is_url(struct str text)
{
	return git_place_find(text, STR("://")) < text.n;
}

/* Is it host:path, as scp writes it: a colon before any slash? */
static bool is_scp(struct str text)
{
	for (size_t i = 0; i < text.n && text.p[i] != '/'; i++)
		if (text.p[i] == ':')
			return true;
	return false;
}

static const char *remote_fault(struct str text)
{
	if (!text.n)
		return "does not name a repository";
	if (text.p[0] == '-')
		return "begins with '-', as an option would";
	if (has_control(text))
		return "contains control characters";
	if (git_place_find(text, STR("::")) < text.n)
		return "names a helper program; pawl uses only git's own transports";
	if (is_url(text) && !known_scheme(text))
		return "is a URL with a scheme that pawl does not support";
	if (git_place_find(text, STR("://-")) < text.n)
		return "names a host that begins with '-', as an option would";
	return NULL;
}

/* --- the repository ----------------------------------------------------------------------------- */

/* The URL of a remote of the user's own repository around `dir`; NULL: there is no remote of that name. */
static char *remote_url(const char *dir, struct str name, char **top, bool *skipped)
{
	struct arena a = { 0 };
	git_repository *repo = git_own_repository(dir, skipped);
	git_remote *r = NULL;
	char *url = NULL;

	*top = NULL;
	if (repo && git_remote_lookup(&r, repo, arena_cstr(&a, name)) == 0 && git_remote_url(r)) {
		const char *push = git_remote_pushurl(r);
		const char *work = git_repository_workdir(repo);

		url = git_place_copy(str_c(push ? push : git_remote_url(r)));
		*top = git_place_copy(str_c(work ? work : git_repository_path(repo)));
	}
	git_remote_free(r);
	git_repository_free(repo);
	arena_free(&a);
	return url;
}

/* Applies the longest url.BASE.insteadOf of the user's settings; NULL: none matches. */
static char *git_place_rewritten(const char *dir, struct str text)
{
	bool skipped;
	git_repository *repo = git_own_repository(dir, &skipped);
	git_config *c = NULL;
	git_config_iterator *it = NULL;
	git_config_entry *e;
	struct arena a = { 0 };
	char *url = NULL;
	size_t most = 0;
	int rc = repo ? git_repository_config(&c, repo) : git_config_open_default(&c);

	if (rc == 0)
		/* libgit2's iterator by pattern leaks memory */
		rc = git_config_iterator_new(&it, c);
	while (rc == 0 && (rc = git_config_next(&e, it)) == 0) {
		struct str rest = text, base = str_c(e->name);

		if (!str_cut_prefix(&base, STR("url.")) || !str_ends(base, STR(".insteadof")) ||
		    !e->value || strlen(e->value) <= most ||
		    !str_cut_prefix(&rest, str_c(e->value)))
			continue;
		base.n -= sizeof(".insteadof") - 1;
		most = strlen(e->value);
		free(url);
		url = git_place_copy(arena_printf(&a, "%.*s%.*s", STRF(base), STRF(rest)));
	}
	git_config_iterator_free(it);
	git_config_free(c);
	git_repository_free(repo);
	arena_free(&a);
	return url;
}

static int hex_byte(const char *p)
{
	const char digits[] = "0123456789abcdef";
	const char *high = strchr(digits, tolower((unsigned char)p[0])),
		   *low = strchr(digits, tolower((unsigned char)p[1]));

	return p[0] && p[1] && high && low ? (int)((high - digits) << 4 | (low - digits)) : -1;
}

/* The path that git uses for a file: URL, without the host, and decoded. Empty: it is not a file: URL. */
static struct str file_path(struct str url, struct arena *a)
{
	char *p;
	size_t n = 0;

	if (!str_cut_prefix(&url, STR("file://")))
		return STR("");
	while (url.n && url.p[0] != '/')
		url = str_n(url.p + 1, url.n - 1);
	p = arena_alloc(a, url.n + 1);
	for (size_t i = 0; i < url.n; i++) {
		int c = url.p[i] == '%' && url.n - i > 2 ? hex_byte(url.p + i + 1) : 0;

		p[n++] = c > 0 ? (char)c : url.p[i];
		i += c > 0 ? 2 : 0;
	}
	p[n] = '\0';
	return str_n(p, n);
}

static const char *git_place_absolute(const char *here, struct str path, struct arena *a)
{
	const char *joined = fs_join(a, str_c(here), path), *real = fs_real(a, joined);

	return real ? real : joined;
}

/* A relative path is relative to the current folder, for both transports. pawl uses a foreign repository only as a path. */
static void set_place(struct git *s, struct str url, struct arena *a)
{
	struct str path = is_url(url) ? file_path(url, a) : is_scp(url) ? STR("") : url;
	const char *dir = s->base.env.opt.dir ? s->base.env.opt.dir : ".";
	char *here = path.n && path.p[0] != '/' ? realpath(dir, NULL) : NULL;

	if (here)
		url = path = str_c(git_place_absolute(here, path, a));
	s->foreign = path.n && git_is_foreign(arena_cstr(a, path));
	s->url = git_place_copy(s->foreign ? path : url);
	s->remote = git_place_copy(uri_shown(a, str_c(s->url)));
	free(here);
}

static int no_remote(struct git *s, struct str name)
{
	return store_fail(
		&s->base.env, STORE_UNSUPPORTED, "name the remote's URL instead: git:URL",
		"this repository is inside another worktree, so pawl does not use its remote "
		"'%.*s'",
		STRF(name));
}

/* A name without a slash is a remote, or a repository that exists: a typo must not make a folder. */
static int unknown_remote(struct git *s, struct str name, struct arena *a)
{
	return store_fail(&s->base.env, STORE_ABSENT,
			  arena_printf(a,
				       "`git remote -v` lists the remotes; for a folder write "
				       "git:./%.*s",
				       STRF(name))
				  .p,
			  "there is no remote '%.*s' here", STRF(name));
}

static bool names_path(const char *dir, struct str name, struct arena *a)
{
	return memchr(name.p, '/', name.n) || fs_exists(fs_join(a, str_c(dir ? dir : "."), name));
}

/* If the path's disk is not mounted, pawl must not make a repository in its place. */
static int check_remote(struct git *s, struct str name, struct arena *a)
{
	struct str url = str_c(s->url), path = is_url(url)   ? file_path(url, a)
					       : is_scp(url) ? STR("")
							     : url;

	if (!path.n || fs_exists(arena_cstr(a, path)))
		return 0;
	return store_fail(&s->base.env, STORE_UNREACHABLE,
			  "check that its disk is mounted; `git remote -v` shows the path",
			  "the remote '%.*s' is unreachable: there is no %.*s", STRF(name),
			  STRF(path));
}

static int git_place_resolve(struct git *s, struct str text, struct arena *a)
{
	const char *dir = s->base.env.opt.dir, *fault;
	char *top = NULL, *url;
	bool skipped = false;
	int rc = 0;

	if (str_starts(text, STR("//"))) /* git://host/path */
		text = arena_printf(a, "git:%.*s", STRF(text));
	if (is_url(text) || is_scp(text))
		url = git_place_rewritten(dir, text);
	else
		url = memchr(text.p, '/', text.n) ? NULL : remote_url(dir, text, &top, &skipped);
	fault = url ? remote_fault(str_c(url)) : NULL;
	if (fault)
		rc = bad_uri(s, str_c(url), fault);
	else if (!url && skipped && !fs_exists(arena_cstr(a, text)))
		rc = no_remote(s, text);
	else if (!url && !is_url(text) && !is_scp(text) && !names_path(dir, text, a))
		rc = unknown_remote(s, text, a);
	else if (top && !is_url(str_c(url)) && !is_scp(str_c(url)) && url[0] != '/')
		set_place(s, str_c(fs_join(a, str_c(top), str_c(url))), a);
	else
		set_place(s, url ? str_c(url) : text, a);
	if (rc == 0 && top)
		rc = check_remote(s, text, a);
	free(url);
	free(top);
	return rc;
}

/* Does the repository have hooks, which only git's own server side would run? */
static bool has_hooks(const char *remote)
{
	static const char *const names[] = { "pre-receive",           "update",
					     "post-receive",          "post-update",
					     "reference-transaction", "proc-receive" };
	struct arena a = { 0 };
	bool found = false;

	for (size_t i = 0; i < 2 * sizeof(names) / sizeof(*names); i++) {
		const char *name =
			arena_printf(&a, "%shooks/%s", i % 2 ? ".git/" : "", names[i / 2]).p;

		found |= access(fs_join(&a, str_c(remote), str_c(name)), X_OK) == 0;
	}
	arena_free(&a);
	return found;
}

static bool wants_wire(const struct uri *uri)
{
	return str_is(uri_param(uri, "transport"), "wire");
}

static bool by_files(const struct git *s, const struct uri *uri)
{
	struct str text = str_c(s->url);

	if (s->foreign) /* git's own server side would heed its hooks and settings */
		return true;
	return !is_url(text) && !is_scp(text) && !wants_wire(uri) && !has_hooks(s->url) &&
	       !(fs_exists(s->url) && os_network_fs(s->url));
}

/* --- the queue ---------------------------------------------------------------------------------- */

static int bad_prefix(struct git *s, struct str prefix)
{
	return bad_uri(s, prefix, "is not a valid prefix of ref names: a prefix begins with refs/");
}

static bool valid_ref(struct str prefix, const char *name)
{
	struct arena a = { 0 };
	int valid = 0;
	bool ok = git_reference_name_is_valid(
			  &valid, arena_printf(&a, "%.*s%s", STRF(prefix), name).p) == 0;

	arena_free(&a);
	return ok && valid;
}

static int set_prefix(struct git *s, const struct uri *uri, struct arena *a)
{
	struct str prefix = uri_param(uri, "prefix");
	struct str queue = s->base.env.opt.queue.n ? s->base.env.opt.queue : STR("default");
	struct str full;

	if (!prefix.n)
		prefix = STR("refs/pawl");
	full = arena_printf(a, "%.*s/%s/", STRF(prefix), arena_cstr(a, git_name(a, queue)));
	if (!str_starts(prefix, STR("refs/")) || !valid_ref(full, "base"))
		return bad_prefix(s, prefix);
	s->prefix = git_place_copy(full);
	return 0;
}

/* Splits "a/b" into the prefix refs/heads/a/ and the branch b. */
static int set_branch(struct git *s, struct str branch, struct arena *a)
{
	struct str queue = s->base.env.opt.queue, last = branch;

	if (queue.n && !str_is(queue, "default")) {
		branch = arena_printf(a, "%.*s-%s", STRF(branch),
				      arena_cstr(a, git_name(a, queue)));
		last = branch;
	}
	if (branch.n == 0 || branch.p[0] == '-' ||
	    !valid_ref(STR("refs/heads/"), arena_cstr(a, branch)))
		return bad_uri(s, branch, "is not a valid name of a branch");
	while (memchr(last.p, '/', last.n))
		(void)str_cut(&last, '/');
	s->prefix = git_place_copy(
		arena_printf(a, "refs/heads/%.*s", (int)(branch.n - last.n), branch.p));
	s->only = git_place_copy(last);
	return 0;
}

/* --- everything together ------------------------------------------------------------------------ */

static const struct {
	const struct git_layout *layout;
	const char *branch; /* the default branch; NULL: the layout has no branch */
} layouts[] = {
	{ &git_layout_refs, NULL },
	{ &git_layout_branch, "pawl" },
	{ &git_layout_locks, GIT_LOCKS },
	{ &git_layout_ids, GIT_IDS },
};

static int set_layout(struct git *s, const struct uri *uri, struct arena *a)
{
	struct str name = uri_param(uri, "layout"), branch = uri->fragment;

	s->guess = !name.n && branch.n;
	if (!name.n)
		name = branch.n ? STR("branch") : STR("refs");
	for (size_t i = 0; i < sizeof(layouts) / sizeof(*layouts); i++) {
		if (!str_is(name, layouts[i].layout->name))
			continue;
		s->layout = layouts[i].layout;
		if (layouts[i].branch)
			git_worktree_open(s, uri);
		if (layouts[i].branch)
			return set_branch(s, branch.n ? branch : str_c(layouts[i].branch), a);
		if (branch.n)
			return bad_uri(s, branch,
				       "is a branch, but the layout refs does not use a branch");
		return set_prefix(s, uri, a);
	}
	return bad_uri(s, name, "is not a layout; the layouts are refs, branch, locks and ids");
}

int git_find(struct git *s, const struct uri *uri)
{
	const char *fault = remote_fault(uri->path);
	struct str refs = uri_param(uri, "refs"), skew = uri_param(uri, "skew");
	struct arena a = { 0 };
	int64_t wanted;
	int rc;

	if (fault)
		return bad_uri(s, uri->path, fault);
	if (refs.n) {
		if (!str_to_i64(refs, &wanted) || wanted < 0 || wanted > 1000000)
			return bad_uri(s, refs, "is not a number of refs from 0 to 1000000");
		s->refs_wanted = (size_t)wanted;
	}
	if (!git_clock_skew(s, skew))
		return bad_uri(s, skew, "is not a duration, which skew needs");
	rc = git_place_resolve(s, uri->path, &a);
	if (rc == 0)
		rc = set_layout(s, uri, &a);
	arena_free(&a);
	s->transport = rc == 0 && by_files(s, uri) ? &git_transport_path : &git_transport_wire;
	return rc;
}

/* --- folder ----------------------------------------------------------------------------------- */

/* Opens pawl's folders and gate in a repository, relative to descriptors. A link in the place of a folder is
 * an error and is never followed, except `refs` in the user's own clone. */

#define FOLDER (O_RDONLY | O_DIRECTORY)

int git_folders_open(struct git *s, const char *dir)
{
	s->top = beneath_dir(dir, "");
	if (s->top < 0)
		return s->top;
	if (s->foreign)
		s->refs = beneath_open(s->top, "refs", FOLDER, 0);
	else
		s->refs = openat(s->top, "refs", FOLDER | O_CLOEXEC);
	return s->refs >= 0 ? 0 : s->foreign ? s->refs : -errno;
}

void git_folders_close(struct git *s)
{
	if (s->top >= 0)
		close(s->top);
	if (s->refs >= 0)
		close(s->refs);
	s->top = s->refs = -1;
}

/* Makes one folder after the other. Another process may be making the same folders, and git removes empty
 * ones. */
static int git_folder_make(int dir, const char *path)
{
	struct arena a = { 0 };
	struct str rest = str_c(path);
	int at = dir;

	while (at >= 0 && rest.n) {
		const char *name = arena_cstr(&a, str_cut(&rest, '/'));
		int next = mkdirat(at, name, 0777) && errno != EEXIST
				   ? -errno
				   : beneath_open(at, name, FOLDER, 0);

		if (at != dir)
			close(at);
		at = next;
	}
	arena_free(&a);
	return at;
}

int git_folder(int dir, const char *path, bool may_make)
{
	int fd = beneath_open(dir, path, FOLDER, 0);

	return fd == -ENOENT && may_make ? git_folder_make(dir, path) : fd;
}

int git_gate_open(struct gate *g, int top, const char *name)
{
	struct stat like;
	int dir = git_folder(top, "pawl", true), rc;

	if (dir < 0)
		return dir;
	rc = fstatat(top, "objects", &like, 0) ? -errno : 0;
	like.st_mode &= (mode_t)~0111;
	if (rc == 0)
		rc = gate_open_at(g, dir, name, &like);
	close(dir);
	return rc;
}

bool git_errno_full(int err)
{
	return err == ENOSPC || err == EDQUOT || err == EFBIG;
}

static int fault_of(int err)
{
	if (git_errno_full(err))
		return STORE_FULL;
	if (err == ELOOP || err == EXDEV)
		return STORE_UNSUPPORTED;
	return err == EACCES || err == EROFS || err == EPERM ? STORE_READONLY : STORE_IO;
}

int git_fail_errno(struct git *s, int err, const char *what)
{
	int fault = fault_of(err);

	return store_fail(
		&s->base.env, fault,
		fault == STORE_UNSUPPORTED
			? "pawl does not follow links there: find out who made the link, and remove it"
			: "check the owner and the mode of the repository, and the free space",
		"%s: %s: %s", s->remote, what,
		fault == STORE_UNSUPPORTED ? "it is a symbolic link" : strerror(err));
}

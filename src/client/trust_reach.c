/* Finds the place that a store's URI leads to, with all links resolved. A path that cannot be determined counts as outside. */
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/text.h"
#include "client/trust_config.h"
#include "store/store.h"

bool trust_within(struct str path, struct str root)
{
	if (str_is(root, "/"))
		return path.n && path.p[0] == '/';
	return str_cut_prefix(&path, root) && (!path.n || path.p[0] == '/');
}

static bool has_part(struct str path, const char *name)
{
	while (path.n)
		if (str_is(str_cut(&path, '/'), name))
			return true;
	return false;
}

/* `path` ends with `rest`. Is the first part of `rest` missing on the disk? */
static bool is_missing(const char *path, struct str rest, struct arena *a)
{
	struct str first = rest;
	struct stat st;

	first = str_cut(&first, '/');
	return lstat(arena_cstr(a, str_n(path, strlen(path) - rest.n + first.n)), &st) != 0;
}

/* The real path; its last parts need not exist. NULL: the path cannot be determined. */
static const char *trust_reach_real(const char *path, struct arena *a)
{
	struct str head = str_c(path);
	const char *found;

	while (!(found = fs_real(a, arena_cstr(a, head)))) {
		if (head.n <= 1 || str_is(head, "."))
			return NULL;
		head = fs_dirname(head);
	}
	if (strlen(path) > head.n) {
		struct str rest = str_c(path + head.n);

		while (rest.n && rest.p[0] == '/')
			rest = str_n(rest.p + 1, rest.n - 1);
		found = fs_join(a, str_c(found), rest);
		/* refuse a link whose target has no folder yet */
		if (has_part(rest, "..") || !is_missing(found, rest, a))
			return NULL;
	}
	return found;
}

static bool is_link(struct str path, const char *root, struct arena *a)
{
	struct stat st;

	return trust_within(path, str_c(root)) && lstat(arena_cstr(a, path), &st) == 0 &&
	       S_ISLNK(st.st_mode);
}

bool trust_linked(struct str uri, const char *root, struct arena *a)
{
	struct str path = STR(".pawl/queue.db"); /* the default */
	struct uri u;

	if (uri.n && uri_parse(uri, &u))
		return true; /* the store is a wrapper, so we know nothing about its path */
	if (uri.n)
		path = u.path;
	if (!path.n || path.p[0] != '/')
		path = str_c(fs_join(a, str_c(root), path));
	for (; path.n > 1; path = fs_dirname(path))
		if (is_link(path, root, a))
			return true;
	return false;
}

/* For a path on this machine. A clone cannot write the repository's own .git, but only a git store belongs there. */
static enum trust_state path_reach(struct str path, struct str scheme, const char *root,
				   const char *dir, struct str *to, struct str *why,
				   struct arena *a)
{
	const char *full = path.n && path.p[0] == '/' ? arena_cstr(a, path)
						      : fs_join(a, str_c(dir), path);
	const char *found = trust_reach_real(full, a);
	struct str below;

	*to = str_c(found ? found : full);
	*why = arena_printf(a, "it leads to %s, outside of %s", arena_cstr(a, text_line(a, *to)),
			    arena_cstr(a, text_line(a, str_c(root))));
	if (!found || !trust_within(*to, str_c(root)))
		return TRUST_MISSING;
	below = str_n(to->p + strlen(root), to->n - strlen(root));
	*why = arena_printf(a, "it leads into %s", arena_cstr(a, text_line(a, *to)));
	if (has_part(below, ".git") && !(str_is(scheme, "git") && str_is(below, "/.git")))
		return TRUST_MISSING;
	return TRUST_INSIDE;
}

static bool trust_reach_has(struct str text, struct str part)
{
	for (size_t i = 0; i + part.n <= text.n; i++)
		if (memcmp(text.p + i, part.p, part.n) == 0)
			return true;
	return false;
}

/* Is it a URL or HOST:PATH? //HOST/PATH is the rest of git://HOST/PATH. */
static bool is_server(struct str path)
{
	size_t i = 0;

	while (i < path.n && path.p[i] != '/' && path.p[i] != ':')
		i++;
	return trust_reach_has(path, STR("://")) || trust_reach_has(path, STR("::")) ||
	       str_starts(path, STR("//")) || (i < path.n && path.p[i] == ':');
}

/* Does `path`, or a folder between it and `root`, have a .git? An archive can contain one, with hooks. */
static bool is_nested(struct str path, const char *root, struct arena *a)
{
	struct stat st;

	for (; path.n > strlen(root); path = fs_dirname(path))
		if (!str_ends(path, STR("/.git")) && lstat(fs_join(a, path, STR(".git")), &st) == 0)
			return true;
	return false;
}

static enum trust_state git_path_reach(struct str path, const char *root, const char *dir,
				       struct str *to, struct str *why, struct arena *a)
{
	enum trust_state state = path_reach(path, STR("git"), root, dir, to, why, a);

	if (state != TRUST_INSIDE || !is_nested(*to, root, a))
		return state;
	*why = arena_printf(a, "it leads to %s, a repository inside of %s",
			    arena_cstr(a, text_line(a, *to)),
			    arena_cstr(a, text_line(a, str_c(root))));
	return TRUST_MISSING;
}

/* Only refs/pawl/ belongs to pawl: any other ref may be a branch on which people work. */
static bool names_refs(const struct uri *u)
{
	struct str layout = uri_param(u, "layout");

	return u->fragment.n || uri_param(u, "prefix").n || (layout.n && !str_is(layout, "refs"));
}

static enum trust_state git_reach(const struct uri *u, const char *root, const char *dir,
				  struct str *to, struct str *why, struct arena *a)
{
	enum remote remote = REMOTE_NONE;
	enum trust_state state;

	*to = u->path;
	*why = STR("it names a server or a URL");
	if (is_server(u->path))
		return TRUST_MISSING;
	if (u->path.n && !memchr(u->path.p, '/', u->path.n))
		remote = trust_remote(u->path, root, dir, a);
	*why = STR("the repository's own .git/config alone does not define a remote of that name");
	if (remote == REMOTE_UNSURE)
		return TRUST_MISSING;
	state = remote == REMOTE_OWN ? TRUST_REMOTE
				     : git_path_reach(u->path, root, dir, to, why, a);
	if (state == TRUST_MISSING || !names_refs(u))
		return state;
	*why = STR("it names a branch, or refs that are not pawl's own");
	return TRUST_MISSING;
}

static bool in_a_uri(const char *path)
{
	return !strpbrk(path, "?#:");
}

struct str trust_git_uri(struct str uri, const char *root, const char *dir, struct arena *a)
{
	const char *top = fs_real(a, root), *path, *found;
	struct uri u;

	if (uri_parse(uri, &u) || !str_is(u.scheme, "git") || !u.path.n || u.path.p[0] == '/' ||
	    is_server(u.path) || !top || !in_a_uri(top))
		return uri;
	path = fs_join(a, str_c(top), u.path);
	found = fs_real(a, path);
	/* A name may be a remote in the user's own settings if no folder has that name. */
	if (!memchr(u.path.p, '/', u.path.n) &&
	    (!fs_exists(path) || trust_remote(u.path, top, dir, a) != REMOTE_NONE))
		return uri;
	if (found && in_a_uri(found))
		path = found;
	return arena_printf(a, "git:%s%s", path,
			    arena_cstr(a, str_n(u.path.p + u.path.n,
						(size_t)(uri.p + uri.n - (u.path.p + u.path.n)))));
}

enum trust_state trust_reach(struct str uri, const char *root, const char *dir, struct str *to,
			     struct str *why, struct arena *a)
{
	struct uri u;

	*to = uri;
	*why = STR("it wraps a store for tests");
	if (str_starts(uri, STR("fault+")))
		return TRUST_MISSING;
	*why = STR("");
	if (uri_parse(uri, &u) || str_is(u.scheme, "mem"))
		return TRUST_INSIDE; /* the store has no place on the disk */
	if (uri_on_disk(&u))
		return path_reach(u.path, u.scheme, root, dir, to, why, a);
	if (str_is(u.scheme, "git"))
		return git_reach(&u, root, dir, to, why, a);
	*why = arena_printf(a, "the store %.*s: is not in this folder", STRF(u.scheme));
	return TRUST_MISSING;
}

/* --- trust remote ----------------------------------------------------------------------------- */

/* Finds remotes in the user's own repository. It reads git's files, because running git would take too long. A remote counts
 * only if files of the user or of root define it, and no file that a pull could change. */

#define GIT_CONFIG_MAX (256 * 1024)

struct remotes {
	struct str name; /* the remote to find */
	const char *git; /* the repository's folder */
	const char *root, *here;
	struct str section;   /* "remote \"origin\"" */
	bool found, included; /* included: the config includes a file of the worktree */
	struct arena *arena;
};

static struct str trust_remote_unquoted(struct str value)
{
	value = str_trim(value);
	if (value.n > 1 && value.p[0] == '"' && value.p[value.n - 1] == '"')
		value = str_n(value.p + 1, value.n - 2);
	return value;
}

static struct str trust_remote_lower(struct str text, struct arena *a)
{
	char *p = arena_cstr(a, text);

	for (size_t i = 0; i < text.n; i++)
		if (p[i] >= 'A' && p[i] <= 'Z')
			p[i] = (char)(p[i] + 32);
	return str_n(p, text.n);
}

/* May the next pull change this file? A pull may create a file that does not exist. */
static bool is_theirs(const struct remotes *r, struct str path)
{
	const char *home = getenv("HOME");
	char *full = str_cut_prefix(&path, STR("~/")) && home ? fs_join(r->arena, str_c(home), path)
		     : path.n && path.p[0] == '/'             ? arena_cstr(r->arena, path)
						  : fs_join(r->arena, str_c(r->git), path);
	struct str real = str_c(fs_real(r->arena, full)), top = fs_dirname(str_c(r->git));

	if (real.n && trust_within(real, str_c(r->git)))
		return false;
	return !real.n || trust_within(real, top) || trust_within(real, str_c(r->root)) ||
	       trust_within(real, str_c(r->here));
}

static void read_setting(struct remotes *r, struct str line)
{
	struct str key = trust_remote_lower(str_trim(str_cut(&line, '=')), r->arena),
		   value = trust_remote_unquoted(line);
	struct str section = trust_remote_lower(r->section, r->arena);

	if ((str_is(section, "include") || str_starts(section, STR("includeif"))) &&
	    str_is(key, "path"))
		r->included |= is_theirs(r, value);
	/* The name of a remote is case-sensitive. */
	if (str_starts(section, STR("remote ")) && str_is(key, "url") && value.n)
		r->found |= str_eq(trust_remote_unquoted(str_n(r->section.p + 7, r->section.n - 7)),
				   r->name);
}

static void read_config(struct remotes *r, struct str text)
{
	while (text.n) {
		struct str line = str_trim(str_cut(&text, '\n'));

		if (line.n && line.p[0] == '[') {
			line = str_n(line.p + 1, line.n - 1);
			r->section = str_trim(str_cut(&line, ']'));
			line = str_trim(line);
		}
		if (line.n && line.p[0] != '#' && line.p[0] != ';')
			read_setting(r, line);
	}
}

/* Does the caller or root own the file? Another user could name any remote in it. */
static bool is_mine(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 && (st.st_uid == geteuid() || st.st_uid == 0);
}

enum remote trust_remote(struct str name, const char *root, const char *dir, struct arena *a)
{
	struct remotes r = { .name = name, .root = root, .here = fs_real(a, dir), .arena = a };
	char *git, *same;
	const char *file;
	struct str text;

	if (!r.here || !place_git_dir(r.here, &git, a) || !place_git_dir(root, &same, a))
		return REMOTE_UNSURE;
	if (!git && !same)
		return REMOTE_NONE;
	if (!git || !same || strcmp(git, same) != 0)
		return REMOTE_UNSURE;
	r.git = git;
	file = fs_join(a, str_c(git), STR("config"));
	if (!is_mine(git) || !is_mine(file) || fs_read(a, file, GIT_CONFIG_MAX, &text))
		return REMOTE_UNSURE;
	read_config(&r, text);
	return r.included ? REMOTE_UNSURE : r.found ? REMOTE_OWN : REMOTE_NONE;
}

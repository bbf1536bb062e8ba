/* Finds the remotes of the user's own repository. It reads git's files: running git would take too long. */
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "client/trust_config.h"

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

/* The caller or root owns the file: another user could name any remote in it. */
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

/* Loads the shared objects of stores, faces and other modules. It refuses a file that another user
 * could replace, because a module runs with all rights of the caller. It also refuses a module that
 * was built for another version of the interface. */
#include <dlfcn.h>
#include <errno.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/module.h"

#ifndef PAWL_MODULE_DIR
#define PAWL_MODULE_DIR "/usr/local/lib/pawl"
#endif

static const char own_address; /* lies in the file that contains this code */

const char *module_dir(void)
{
	const char *dir = getenv("PAWL_MODULE_DIR");

	/* a relative path would load code from the current folder */
	return dir && dir[0] == '/' ? dir : PAWL_MODULE_DIR;
}

/* The path, without links, of the program or library that contains this code. The loader
 * reports a program under the name that started it, which may be relative. */
static bool own_path(char out[PATH_MAX])
{
	Dl_info info;

	if (!dladdr(&own_address, &info) || !info.dli_fname)
		return false;
	return realpath(info.dli_fname[0] == '/' ? info.dli_fname : "/proc/self/exe", out) != NULL;
}

/* Searches the program's own folder, because a build folder contains its modules. */
static bool found_beside(const char *file, char *out, size_t room)
{
	char own[PATH_MAX], *slash;
	const char *dir = getenv("PAWL_MODULE_DIR");
	int n;

	if ((dir && dir[0] == '/') || !own_path(own))
		return false;
	slash = strrchr(own, '/');
	n = snprintf(out, room, "%.*s/%s", (int)(slash - own), own, file);
	return n > 0 && (size_t)n < room && access(out, F_OK) == 0;
}

/* The name becomes part of a path, so it must not lead out of the folder. */
static bool name_valid(struct str name)
{
	if (!name.n || name.n > 32 || name.p[0] < 'a' || name.p[0] > 'z')
		return false;
	for (size_t i = 0; i < name.n; i++)
		if (!((name.p[i] >= 'a' && name.p[i] <= 'z') ||
		      (name.p[i] >= '0' && name.p[i] <= '9')))
			return false;
	return true;
}

/* --- who could replace a module -------------------------------------------------------------------- */

#define HIDDEN_USER 65534 /* owns the files of users that the user namespace does not map */

/* In a user namespace that does not map root, root's files appear to belong to HIDDEN_USER. */
static bool root_is_hidden(void)
{
	unsigned long first = 1, to = 1, n = 0;
	FILE *f = fopen("/proc/self/uid_map", "re");
	int got = f ? fscanf(f, "%lu %lu %lu", &first, &to, &n) : 0;

	if (f)
		fclose(f);
	return got == 3 && (first || to || n != 4294967295ul);
}

/* The program's owner is trusted, because that user could replace the program itself. */
static bool is_ours(uid_t owner)
{
	char own[PATH_MAX];
	struct stat st;

	return owner == 0 || owner == geteuid() ||
	       (own_path(own) && stat(own, &st) == 0 && st.st_uid == owner) ||
	       (owner == HIDDEN_USER && root_is_hidden());
}

/* Is it the group that the system made for this user alone? It has the user's name. */
static bool is_own_group(gid_t group)
{
	char user_room[4096], group_room[4096];
	struct passwd user_data, *user = NULL;
	struct group group_data, *g = NULL;

	if (group == 0)
		return true;
	if (getpwuid_r(geteuid(), &user_data, user_room, sizeof(user_room), &user) || !user ||
	    getgrgid_r(group, &group_data, group_room, sizeof(group_room), &g) || !g)
		return false;
	return strcmp(g->gr_name, user->pw_name) == 0 &&
	       (!g->gr_mem[0] || (strcmp(g->gr_mem[0], user->pw_name) == 0 && !g->gr_mem[1]));
}

/* If a file has an access list, its group bits are the list's mask and may apply to any user. */
static bool has_access_list(const char *path)
{
	return lgetxattr(path, "system.posix_acl_access", NULL, 0) > 0;
}

static bool others_write(const char *path, const struct stat *st)
{
	return (st->st_mode & S_IWOTH) ||
	       ((st->st_mode & S_IWGRP) && (has_access_list(path) || !is_own_group(st->st_gid)));
}

/* Returns false if another user could replace the file. In a folder with the sticky bit, such as
 * /tmp, a user cannot replace another user's folder. The sticky bit does not protect the module's
 * own folder, because a user could add a missing module there. */
static bool only_ours(const char *file, char *why, size_t room)
{
	char path[PATH_MAX], *slash = path;
	struct stat st;

	snprintf(path, sizeof(path), "%s", file);
	for (int up = 0; slash; up++) {
		const char *at = *path ? path : "/";

		if (lstat(at, &st) || (up == 0 && !S_ISREG(st.st_mode))) {
			snprintf(why, room, "%s is not a regular file", file);
			return false;
		}
		if (!is_ours(st.st_uid) ||
		    (others_write(at, &st) && (up < 2 || !(st.st_mode & S_ISVTX)))) {
			snprintf(why, room, "another user can write to %s, so %s is not loaded", at,
				 file);
			return false;
		}
		slash = strrchr(path, '/');
		if (slash)
			*slash = '\0';
	}
	return true;
}

/* --- loading ---------------------------------------------------------------------------------------- */

static int module_load_file(const char *path, const struct module **out, char *why, size_t room)
{
	/* Modules themselves are linked to bind at once. RTLD_LAZY is for their libraries: libpq
	 * alone has twenty, and most of them are never called. */
	void *so = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
	const struct module *m;

	if (!so) {
		const char *e = dlerror();

		snprintf(why, room, "%s", e ? e : path);
		return -1;
	}
	m = dlsym(so, "pawl_module");
	if (m && m->abi == MODULE_ABI) {
		*out = m;
		return 0;
	}
	if (m)
		snprintf(why, room, "built for %s pawl (module interface %d, this one has %d): %s",
			 m->abi < MODULE_ABI ? "an older" : "a newer", m->abi, MODULE_ABI, path);
	else
		snprintf(why, room, "%s is not a module of pawl", path);
	dlclose(so);
	return -1;
}

/* Checks and loads the real path, which has no links, so both apply to the same file. */
static int load_checked(const char *path, const struct module **out, char *why, size_t room)
{
	char real[PATH_MAX];

	if (!realpath(path, real)) {
		snprintf(why, room, "%s: %s", path, strerror(errno));
		return -1;
	}
	return only_ours(real, why, room) ? module_load_file(real, out, why, room) : -1;
}

int module_load(const char *kind, struct str name, const struct module **out, char *why,
		size_t room)
{
	char file[64], path[PATH_MAX];
	int n;

	*out = NULL;
	if (room)
		why[0] = '\0';
	if (name.n && !name_valid(name))
		return 1;
	snprintf(file, sizeof(file), "pawl-%s%s%.*s.so", kind, name.n ? "-" : "", STRF(name));
	if (found_beside(file, path, sizeof(path)))
		return load_checked(path, out, why, room);
	n = snprintf(path, sizeof(path), "%s/%s", module_dir(), file);
	if (n < 0 || (size_t)n >= sizeof(path))
		return 1;
	if (access(path, F_OK) < 0 && (errno == ENOENT || errno == ENOTDIR))
		return 1;
	return load_checked(path, out, why, room);
}

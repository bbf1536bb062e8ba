#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

/* The path, without links, of the program or library that contains this code. The loader knows a
 * program by the word that started it, which may be relative. */
static bool own_path(char out[PATH_MAX])
{
	Dl_info info;

	if (!dladdr(&own_address, &info) || !info.dli_fname)
		return false;
	return realpath(info.dli_fname[0] == '/' ? info.dli_fname : "/proc/self/exe", out) != NULL;
}

/* Looks beside the program: a build folder has its modules there. */
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

static int load(const char *path, const struct module **out, char *why, size_t room)
{
	/* a module is linked so that it is bound here; libpq alone has twenty libraries, most of which are never called */
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
		return load(path, out, why, room);
	n = snprintf(path, sizeof(path), "%s/%s", module_dir(), file);
	if (n < 0 || (size_t)n >= sizeof(path))
		return 1;
	if (access(path, F_OK) < 0 && (errno == ENOENT || errno == ENOTDIR))
		return 1;
	return load(path, out, why, room);
}

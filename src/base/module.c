#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/module.h"

#ifndef PAWL_MODULE_DIR
#define PAWL_MODULE_DIR "/usr/local/lib/pawl"
#endif

const char *module_dir(void)
{
	const char *dir = getenv("PAWL_MODULE_DIR");

	/* A relative one would load code from wherever the user happens to be. */
	return dir && dir[0] == '/' ? dir : PAWL_MODULE_DIR;
}

/* It becomes part of a path: nothing that could lead out of the folder. */
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
	void *so = dlopen(path, RTLD_NOW | RTLD_LOCAL);
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
		snprintf(why, room, "%s is no module of pawl", path);
	dlclose(so);
	return -1;
}

int module_load(const char *kind, struct str name, const struct module **out, char *why,
		size_t room)
{
	char path[PATH_MAX];
	int n;

	*out = NULL;
	if (room)
		why[0] = '\0';
	if (!name_valid(name))
		return 1;
	n = snprintf(path, sizeof(path), "%s/pawl-%s-%.*s.so", module_dir(), kind, STRF(name));
	if (n < 0 || (size_t)n >= sizeof(path))
		return 1;
	if (access(path, F_OK) < 0 && (errno == ENOENT || errno == ENOTDIR))
		return 1;
	return load(path, out, why, room);
}

/* Takes the PostgreSQL store from this program instead of its module: the module has its own copy of combine_step. */
#include "base/module.h"

extern const struct module pawl_module;
int __real_module_load(const char *kind, struct str name, const struct module **out, char *why,
		       size_t room);
int __wrap_module_load(const char *kind, struct str name, const struct module **out, char *why,
		       size_t room);

int __wrap_module_load(const char *kind, struct str name, const struct module **out, char *why,
		       size_t room)
{
	if (!str_is(name, "postgres"))
		return __real_module_load(kind, name, out, why, room);
	*out = &pawl_module;
	return 0;
}

/* A module for tests: scheme memx is mem under another name. */
#include "store/mem/mem.h"
#include "base/module.h"

static int memx_open(struct store **out, const struct uri *uri, const struct store_env *env)
{
	return store_mem.open(out, uri, env);
}

/* The handles it gives are mem's own, so that open is all there is to it. */
static const struct store_ops memx = { .scheme = "memx", .open = memx_open };

extern const struct module pawl_module;
const struct module pawl_module = { .abi = MODULE_ABI, .store = &memx };

/* A module for tests: scheme sqlx is sqlite under another name, with all that belongs to it. */
#include "base/module.h"
#include "store/store.h"

extern const struct store_ops store_sqlite;

static int sqlx_open(struct store **out, const struct uri *uri, const struct store_env *env)
{
	return store_sqlite.open(out, uri, env);
}

static const struct store_ops sqlx = { .scheme = "sqlx", .open = sqlx_open };

extern const struct module pawl_module;
const struct module pawl_module = { .abi = MODULE_ABI, .store = &sqlx };

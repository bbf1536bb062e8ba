/* A module of a newer pawl, for tests: it must be refused before anything in it is used. */
#include "base/module.h"

extern const struct module pawl_module;
const struct module pawl_module = { .abi = MODULE_ABI + 1, .store = (const struct store_ops *)8 };

/* A module of an older pawl, for tests: its store_ops end where `discard` begins by now. */
#include <stddef.h>

#include "base/module.h"
#include "store/store.h"

static const char ops[offsetof(struct store_ops, discard)];

extern const struct module pawl_module;
const struct module pawl_module = { .abi = 1,
				    .store = (const struct store_ops *)(const void *)ops };

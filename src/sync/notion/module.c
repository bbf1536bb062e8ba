/* The entry point of pawl-sync-notion.so for the program that loads it. */
#include "base/module.h"
#include "sync/notion/notion.h"

static const struct sync_ops ops = { .run = notion_run };

extern const struct module pawl_module;
const struct module pawl_module = { .abi = MODULE_ABI, .sync = &ops };

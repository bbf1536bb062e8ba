/* The interface of pawl-serve.so for the program that loads it. */
#include "base/module.h"
#include "face/serve/serve.h"

static const struct serve_ops ops = { .run = serve_run, .board_export = snapshot_export };

extern const struct module pawl_module;
const struct module pawl_module = { .abi = MODULE_ABI, .serve = &ops };

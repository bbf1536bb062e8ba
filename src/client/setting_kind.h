/*
 * setting_kind: checks the values of settings, and words the messages about wrong ones.
 */
#ifndef CLIENT_SETTING_KIND_H
#define CLIENT_SETTING_KIND_H

#include "client/settings.h"

/* Empty if the value is valid, else a description of valid values. */
struct str setting_fault(const struct setting *s, struct str value, struct arena *a);
/* The message about a wrong value. allowed: the description of valid values. */
struct str setting_bad(const struct setting *s, struct str value, struct str allowed,
		       struct arena *a);
/* The hint for an unknown setting. */
struct str setting_nearest(struct str name, struct arena *a);

/* The variable of existing scripts that has this setting; NULL: there is none. */
const char *setting_script_variable(const char *setting);

#endif

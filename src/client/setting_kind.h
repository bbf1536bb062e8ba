/*
 * setting_kind: which values fit a setting, and the words for those that do not.
 */
#ifndef CLIENT_SETTING_KIND_H
#define CLIENT_SETTING_KIND_H

#include "client/settings.h"

/* Empty, or what the value should have been. */
struct str setting_fault(const struct setting *s, struct str value, struct arena *a);
/* The message for a value that should have been `allowed`. */
struct str setting_bad(const struct setting *s, struct str value, struct str allowed,
		       struct arena *a);
/* The hint for a name that no setting has. */
struct str setting_nearest(struct str name, struct arena *a);

#endif

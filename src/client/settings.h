/*
 * settings: what is configured, and where each value comes from. Nearest first: the environment
 * (PAWL_ and the name in capitals, '_' for '.'; or QUEUE_LOCK_, as scripts know it), .pawl/config of
 * the queue, $XDG_CONFIG_HOME/pawl/config, the profile, the default. A value that does not fit its kind
 * is an error that names the place, never a silent default.
 */
#ifndef CLIENT_SETTINGS_H
#define CLIENT_SETTINGS_H

#include "core/answer.h"
#include "core/request.h"

struct setting {
	const char *name, *kind, *def, *help;
};

#define SETTINGS_MAX 64                      /* there are not more */
extern const struct setting settings_list[]; /* ends with a NULL name */

struct profile_value {
	const char *profile, *setting, *value;
};

extern const struct profile_value profile_values[]; /* ends with a NULL profile */

struct settings_value {
	struct str value,
		origin; /* origin: "default", "PAWL_LEASE", "profile X", a file's path with line */
};

struct settings {
	struct settings_value *values;      /* in the order of settings_list */
	const char *queue_file, *user_file; /* NULL: there is none to be had */
	struct str
		queue_text; /* all of queue_file, as it was read: trust is given to these bytes */
	struct settings_value
		queue_store; /* `store` as queue_file has it; no origin: it does not */
	bool disagree; /* each value was read and fits its kind, but they do not fit each other */
};

/* pawl_dir: the .pawl folder, or NULL. SUCCESS, or MISCONFIGURED in *ans with file and line. */
enum result settings_load(struct settings *s, const char *pawl_dir, struct answer *ans,
			  struct arena *a);
const struct setting *settings_find(struct str name); /* NULL: no such setting */
/* Only names from settings.def may be asked for. */
const struct settings_value *settings_get(const struct settings *s, const char *name);
struct str settings_text(const struct settings *s, const char *name);
int64_t settings_number(const struct settings *s, const char *name); /* durations: ms */
bool settings_given(const struct settings *s, const char *name);     /* has it a value at all? */
/* What a setting is where nobody has set it. */
void settings_default(struct settings *s, const char *name, struct str value);
void settings_policy(const struct settings *s, struct policy *p);
/* Changes (value NULL: takes out) one setting in a file, comments and order kept, whole or not
 * at all. */
enum result settings_write(const char *file, struct str name, const struct str *value,
			   struct answer *ans, struct arena *a);
/* The same for a file of `s`, as it was loaded; USAGE if the value would not fit those of the other
 * settings. */
enum result settings_change(const struct settings *s, const char *file, struct str name,
			    const struct str *value, struct answer *ans, struct arena *a);
/* Takes out of the file all settings but those that say where the queue is; gone: what they were called. */
enum result settings_reset(const char *file, struct strs *gone, struct answer *ans,
			   struct arena *a);

#endif

/*
 * settings: the values of the settings and their origins. Nearest first: the environment (PAWL_ and the name in
 * capitals, '_' for '.'; or QUEUE_LOCK_, which existing scripts use), the queue's .pawl/config,
 * $XDG_CONFIG_HOME/pawl/config, the profile, the default. An invalid value is an error that names its origin; pawl never
 * falls back to the default.
 */
#ifndef CLIENT_SETTINGS_H
#define CLIENT_SETTINGS_H

#include "core/answer.h"
#include "core/request.h"

struct setting {
	const char *name, *kind, *def, *help;
};

#define SETTINGS_MAX 64                      /* at least the number of settings */
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
	const char *queue_file, *user_file; /* NULL: there is no folder for it */
	struct str queue_text; /* the bytes of queue_file; the user trusts these bytes */
	struct settings_value queue_store, queue_name,
		queue_agent; /* `store`, `queue` and `agent` in queue_file; no origin: not set there */
	struct settings_value own_agent, own_queue; /* in user_file, or the default */
	bool disagree;  /* each value is valid, but two of them conflict */
	bool for_agent; /* set before settings_load(): its messages quote nothing from queue_file */
};

/* pawl_dir: the .pawl folder, or NULL. SUCCESS, or MISCONFIGURED in *ans with file and line. */
enum result settings_load(struct settings *s, const char *pawl_dir, struct answer *ans,
			  struct arena *a);
const struct setting *settings_find(struct str name); /* NULL: there is none */
/* name: must be in settings.def. */
const struct settings_value *settings_get(const struct settings *s, const char *name);
struct str settings_text(const struct settings *s, const char *name);
int64_t settings_number(const struct settings *s, const char *name); /* durations: ms */
bool settings_given(const struct settings *s, const char *name);     /* does it have a value? */
/* Replaces the default of a setting. */
void settings_default(struct settings *s, const char *name, struct str value);
void settings_policy(const struct settings *s, struct policy *p);
/* Changes one setting in a file, or removes it (value NULL). Keeps comments and order. The file
 * is replaced atomically. */
enum result settings_write(const char *file, struct str name, const struct str *value,
			   struct answer *ans, struct arena *a);
/* Does what settings_write() does, for a file of `s`. USAGE if the value would conflict with another setting. */
enum result settings_change(const struct settings *s, const char *file, struct str name,
			    const struct str *value, struct answer *ans, struct arena *a);
/* Removes all settings from the file except `store` and `queue`. gone: the names of the removed settings. */
enum result settings_reset(const char *file, struct strs *gone, struct answer *ans,
			   struct arena *a);

/* --- setting kind ----------------------------------------------------------------------------- */

/*
 * setting_kind: validates setting values, and words the messages about invalid ones.
 */

/* Empty if the value is valid, else a description of valid values. */
struct str setting_fault(const struct setting *s, struct str value, struct arena *a);
/* The message about an invalid value. allowed: the description of valid values. */
struct str setting_bad(const struct setting *s, struct str value, struct str allowed,
		       struct arena *a);
/* The hint for an unknown setting. */
struct str setting_nearest(struct str name, struct arena *a);

/* The variable by which existing scripts set this setting; NULL: there is none. */
const char *setting_script_variable(const char *setting);

#endif

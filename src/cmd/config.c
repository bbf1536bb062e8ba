/*
 * pawl config: shows and changes settings. A change of the queue's settings holds the lock @config
 * if the store can be opened. It never trusts a store that the user did not name (renew_trust()).
 */
#include "base/fs.h"
#include "base/text.h"
#include "cmd/command.h"

/* The arguments of all config commands; each command uses some of them. */
struct config_args {
	struct args args;
	struct str name, value, profile;
	int64_t user;
};

#define PARAM_KEY                                                                           \
	LOCAL(config, name, "NAME", P_NAME, .flags = P_POSITIONAL | P_REQUIRED | P_SETTING, \
	      .value = "NAME", .help = "name of the setting, e.g. lease")
#define PARAM_USER \
	LOCAL(config, user, "user", P_FLAG, .help = "use your own settings, not those of the queue")

static const struct param get_params[] = { PARAM_KEY, { 0 } };

static const struct param set_params[] = { PARAM_KEY,
					   LOCAL(config, value, "VALUE", P_TEXT,
						 .flags = P_POSITIONAL | P_REQUIRED,
						 .value = "VALUE", .help = "the new value"),
					   PARAM_USER,
					   { 0 } };

static const struct param unset_params[] = { PARAM_KEY, PARAM_USER, { 0 } };

static const struct param reset_params[] = { PARAM_USER, { 0 } };

static const struct param profile_params[] = {
	LOCAL(config, profile, "PROFILE", P_CHOICE, .flags = P_POSITIONAL, .value = "PROFILE",
	      .choices = "development production testing none",
	      .help = "profile to use from now on; without PROFILE pawl lists the profiles"),
	PARAM_USER,
	{ 0 }
};

static enum result run_list(struct session *s, struct args *a, struct reply *out);
static void show_list(const struct reply *r, struct view *v);
static enum result run_get(struct session *s, struct args *args, struct reply *out);
static void show_get(const struct reply *r, struct view *v);
static enum result run_set(struct session *s, struct args *args, struct reply *out);
static void show_written(const struct reply *r, struct view *v);
static enum result run_unset(struct session *s, struct args *args, struct reply *out);
static enum result run_reset(struct session *s, struct args *args, struct reply *out);
static void show_reset(const struct reply *r, struct view *v);
static enum result run_profile(struct session *s, struct args *args, struct reply *out);
static void show_profile(const struct reply *r, struct view *v);

const struct command cmd_config_list = {
	.name = "config list",
	.group = "setup",
	.summary = "list all settings with the source of each value",
	.detail =
		"A setting comes from the first of these that has it: the environment (PAWL_LEASE, …), .pawl/config of the "
		"queue, your own $XDG_CONFIG_HOME/pawl/config, the profile, the default.",
	.example = "pawl config list",
	.see = "config get, config set, config unset, config reset, config profile",
	.flags = C_IDEMPOTENT | C_LOCAL,
	.run = run_list,
	.show = show_list,
};

const struct command cmd_config_get = {
	.name = "config get",
	.group = "setup",
	.summary = "show one setting and the source of its value",
	.detail = "With -q pawl prints only the value.",
	.example = "pawl config get lease",
	.see = "config list, config set",
	.params = get_params,
	.args_size = sizeof(struct config_args),
	.flags = C_IDEMPOTENT | C_LOCAL,
	.run = run_get,
	.show = show_get,
};

const struct command cmd_config_set = {
	.name = "config set",
	.group = "setup",
	.summary = "change a setting of the queue",
	.detail =
		"Changes .pawl/config and keeps the comments and the order of the file. A value that is not valid is "
		"refused.",
	.example = "pawl config set lease 30m\n"
		   "pawl config set agent alice --user",
	.see = "config list, config unset",
	.params = set_params,
	.args_size = sizeof(struct config_args),
	.flags = C_WRITE | C_IDEMPOTENT | C_LOCAL,
	.run = run_set,
	.show = show_written,
};

const struct command cmd_config_unset = {
	.name = "config unset",
	.group = "setup",
	.summary = "remove a setting from the file",
	.example = "pawl config unset lease",
	.see = "config list, config set",
	.params = unset_params,
	.args_size = sizeof(struct config_args),
	.flags = C_WRITE | C_IDEMPOTENT | C_LOCAL,
	.run = run_unset,
	.show = show_written,
};

const struct command cmd_config_reset = {
	.name = "config reset",
	.group = "setup",
	.summary = "remove all settings from the file",
	.detail =
		"Comments stay. store and queue stay too, because they say where the queue is. pawl lists the settings "
		"that it removed.",
	.example = "pawl config reset",
	.see = "config list, config unset, config profile",
	.params = reset_params,
	.args_size = sizeof(struct config_args),
	.flags = C_WRITE | C_IDEMPOTENT | C_DESTRUCTIVE | C_LOCAL,
	.run = run_reset,
	.show = show_reset,
};

const struct command cmd_config_profile = {
	.name = "config profile",
	.group = "setup",
	.summary = "choose a set of values for settings that nobody has set",
	.detail =
		"A profile is one line, profile = NAME, in .pawl/config. A value in .pawl/config, in your own settings or "
		"in the environment takes precedence over the profile. `none` means no profile.",
	.example = "pawl config profile testing\n"
		   "pawl config profile",
	.see = "config list, config set, config reset",
	.params = profile_params,
	.args_size = sizeof(struct config_args),
	.flags = C_WRITE | C_IDEMPOTENT | C_LOCAL,
	.run = run_profile,
	.show = show_profile,
};

static enum result config_load(struct session *s, struct answer *ans)
{
	struct client_options said = s->client.said;

	return client_init(&s->client, &said, ans, s->arena);
}

/* Values that contradict each other are shown all the same, because the user must see which one to
 * change. */
static enum result load_to_show(struct session *s, struct reply *out)
{
	struct answer ans = { 0 };
	enum result code = config_load(s, &ans);

	if (code != SUCCESS && !s->client.conn.settings.disagree)
		return run_answer(&ans, out);
	if (code != SUCCESS)
		out->ans.warnings = arena_append(s->arena, out->ans.warnings, ans.message);
	return SUCCESS;
}

static enum result config_unknown(struct session *s, struct str name, struct reply *out)
{
	const char *names[SETTINGS_MAX], *near;
	size_t n = 0;

	while (n < SETTINGS_MAX && settings_list[n].name) {
		names[n] = settings_list[n].name;
		n++;
	}
	near = text_nearest(name, names, n);
	return run_fail(
		USAGE,
		arena_printf(s->arena, "there is no setting '%s'",
			     arena_cstr(s->arena, text_line(s->arena, name))),
		near ? arena_printf(s->arena, "did you mean %s? `pawl config list` shows all", near)
		     : STR("`pawl config list` shows all"),
		out);
}

/* If no setting has the agent's name or the store, shows the one that pawl found by itself. */
static struct settings_value in_force(const struct session *s, const struct setting *set)
{
	const struct client *c = &s->client;
	struct settings_value v = c->conn.settings.values[set - settings_list];
	bool agent = !strcmp(set->name, "agent"), store = !strcmp(set->name, "store");

	if (v.value.n || (!agent && !store))
		return v;
	v.value = agent ? c->self.agent : c->conn.config.uri;
	if (agent ? c->said.agent.n : c->said.store.n)
		v.origin = agent ? STR("--agent") : STR("--store");
	return v;
}

/* Does the value come from an untrusted clone? A text from there could be an instruction to the
 * agent that reads it. */
static bool is_hidden(const struct session *s, const struct setting *set,
		      const struct settings_value *v)
{
	const char *file = s->client.conn.settings.queue_file;
	struct trust t;

	if (!s->client.self.for_agent || strcmp(set->kind, "TEXT") != 0 || !file ||
	    !str_starts(v->origin, str_c(file)))
		return false;
	client_check_trust(&s->client, &t);
	return t.state == TRUST_MISSING;
}

static struct str config_shown(const struct session *s, const struct setting *set,
			       const struct settings_value *v)
{
	if (is_hidden(s, set, v))
		return STR("(not trusted: a person has to read the file)");
	return str_is(str_c(set->name), "store") ? uri_shown(s->arena, v->value) : v->value;
}

static json_t *setting_json(const struct session *s, const struct setting *set)
{
	const struct settings_value v = in_force(s, set);
	json_t *o = json_object();

	json_object_set_new(o, "name", json_string(set->name));
	json_object_set_new(o, "value", json_str(config_shown(s, set, &v)));
	json_object_set_new(o, "origin", json_str(v.origin));
	json_object_set_new(o, "default", json_string(set->def));
	json_object_set_new(o, "help", json_string(set->help));
	return o;
}

static enum result run_get(struct session *s, struct args *args, struct reply *out)
{
	const struct config_args *a = (const struct config_args *)args;
	const struct setting *set = settings_find(a->name);
	enum result code;

	if (!set)
		return config_unknown(s, a->name, out);
	code = load_to_show(s, out);
	if (code == SUCCESS)
		json_object_set_new(reply_more(out), "setting", setting_json(s, set));
	return code;
}

static enum result run_list(struct session *s, struct args *a, struct reply *out)
{
	enum result code = load_to_show(s, out);
	json_t *list;

	(void)a;
	if (code != SUCCESS)
		return code;
	list = json_array();
	for (const struct setting *set = settings_list; set->name; set++)
		json_array_append_new(list, setting_json(s, set));
	json_object_set_new(reply_more(out), "settings", list);
	return SUCCESS;
}

/* Finds the file to change. A fault in the file is no obstacle: the change may repair it. */
static const char *file_for(struct session *s, const struct config_args *a)
{
	struct answer ignored = { 0 };

	config_load(s, &ignored);
	if (a->user)
		return s->client.conn.settings.user_file;
	if (s->client.conn.settings.queue_file || !s->client.conn.place.pawl_dir)
		return s->client.conn.settings.queue_file;
	return fs_join(s->arena, str_c(s->client.conn.place.pawl_dir), STR("config"));
}

static enum result no_file(const struct config_args *a, struct reply *out)
{
	if (a->user)
		return run_fail(MISCONFIGURED,
				STR("pawl found no home folder for your own settings"),
				STR("set HOME or XDG_CONFIG_HOME"), out);
	return run_fail(MISCONFIGURED,
			STR("there is no queue here, so there are no settings to change"),
			STR("run `pawl init`, or use --user for your own settings"), out);
}

/* The lock @config on the queue whose settings change, if its store can be opened. */
struct hold {
	struct client client;
	struct queue_lock lock;
};

static bool config_emergency(struct client *c)
{
	struct request rq = { .op = OP_EMERGENCY };
	struct answer ans = { 0 };

	if (c->conn.queue)
		client_call(c, &rq, &ans);
	return ans.task && ans.task->lock.holder.n;
}

/* Takes the lock, or fails if another lock or an emergency forbids the change. If the store cannot
 * be asked, the change goes ahead, because it may repair the setting `store`. */
static enum result hold_settings(struct session *s, const struct config_args *a, const char *what,
				 struct hold *h, struct answer *ans)
{
	struct answer found = { 0 };

	*h = (struct hold){ 0 };
	if (a->user || client_init(&h->client, &s->client.said, &found, s->arena) != SUCCESS ||
	    !h->client.conn.config.uri.n)
		return SUCCESS;
	client_lock_queue(&h->client, TYPED_CONFIG, what, &h->lock, &found);
	if (found.code == SUCCESS || (!found.barred && !config_emergency(&h->client)))
		return SUCCESS;
	ans->applied = 'n';
	client_close(&h->client);
	return answer_fail(ans, API_ERROR, found.message, found.hint);
}

static void let_settings_go(struct hold *h)
{
	client_unlock_queue(&h->client, &h->lock);
	client_close(&h->client);
}

/* Renews the user's trust after the user's own change. before: the state of trust in the old file.
 * To change another setting never makes an untrusted store trusted: the store must be the same, or
 * the user must have named it. */
static void renew_trust(struct session *s, const struct config_args *a, const struct trust *before,
			const struct str *store)
{
	struct answer ans = { 0 };
	struct client c;
	struct trust t;
	bool same;

	if (a->user || client_init(&c, &s->client.said, &ans, s->arena) != SUCCESS)
		return;
	client_check_trust(&c, &t);
	same = before->state != TRUST_MISSING && str_eq(before->uri, t.uri);
	if (t.state == TRUST_MISSING && trust_included(&t, before, store) &&
	    (same || (store && str_eq(*store, c.conn.settings.queue_store.value))))
		(void)trust_give(&t, s->arena);
}

static enum result write_setting(struct session *s, const struct config_args *a,
				 const struct str *value, struct reply *out)
{
	const char *file = file_for(s, a);
	struct answer ans = { 0 };
	struct trust before;
	struct hold hold;
	struct str shown;

	client_check_trust(&s->client, &before);
	if (!settings_find(a->name))
		return config_unknown(s, a->name, out);
	if (!file)
		return no_file(a, out);
	if (hold_settings(s, a, "config set", &hold, &ans) == SUCCESS) {
		settings_change(&s->client.conn.settings, file, a->name, value, &ans, s->arena);
		let_settings_go(&hold);
	}
	if (ans.code != SUCCESS)
		return run_answer(&ans, out);
	renew_trust(s, a, &before, str_is(a->name, "store") ? value : NULL);
	json_object_set_new(reply_more(out), "name", json_str(a->name));
	shown = value && str_is(a->name, "store") ? uri_shown(s->arena, *value)
		: value                           ? *value
						  : STR("");
	json_object_set_new(reply_more(out), "value", value ? json_str(shown) : json_null());
	json_object_set_new(reply_more(out), "file", json_string(file));
	return SUCCESS;
}

static enum result run_set(struct session *s, struct args *args, struct reply *out)
{
	const struct config_args *a = (const struct config_args *)args;

	return write_setting(s, a, &a->value, out);
}

static enum result run_unset(struct session *s, struct args *args, struct reply *out)
{
	const struct config_args *a = (const struct config_args *)args;

	return write_setting(s, a, NULL, out);
}

static enum result run_reset(struct session *s, struct args *args, struct reply *out)
{
	const struct config_args *a = (const struct config_args *)args;
	const char *file = file_for(s, a);
	struct answer ans = { 0 };
	struct trust before;
	struct hold hold;
	struct strs gone;
	json_t *names;

	client_check_trust(&s->client, &before);
	if (!file)
		return no_file(a, out);
	if (hold_settings(s, a, "config reset", &hold, &ans) == SUCCESS) {
		settings_reset(file, &gone, &ans, s->arena);
		let_settings_go(&hold);
	}
	if (ans.code != SUCCESS)
		return run_answer(&ans, out);
	renew_trust(s, a, &before, NULL);
	names = json_array();
	for (size_t i = 0; i < gone.n; i++)
		json_array_append_new(names, json_str(gone.v[i]));
	json_object_set_new(reply_more(out), "removed", names);
	json_object_set_new(reply_more(out), "file", json_string(file));
	return SUCCESS;
}

static const char *const profiles[] = { "development", "production", "testing" };
#define PROFILES (sizeof(profiles) / sizeof(*profiles))

static json_t *profile_json(const char *name)
{
	json_t *o = json_object();

	for (const struct profile_value *p = profile_values; p->profile; p++)
		if (!strcmp(p->profile, name))
			json_object_set_new(o, p->setting, json_string(p->value));
	return o;
}

static enum result run_profile(struct session *s, struct args *args, struct reply *out)
{
	struct config_args *a = (struct config_args *)args;
	enum result code;
	json_t *all;

	a->name = STR("profile");
	if (a->profile.n)
		return write_setting(s, a, &a->profile, out);
	code = load_to_show(s, out);
	if (code != SUCCESS)
		return code;
	all = json_object();
	for (size_t i = 0; i < PROFILES; i++)
		json_object_set_new(all, profiles[i], profile_json(profiles[i]));
	json_object_set_new(reply_more(out), "setting", setting_json(s, settings_find(a->name)));
	json_object_set_new(reply_more(out), "profiles", all);
	return SUCCESS;
}

static void show_get(const struct reply *r, struct view *v)
{
	const json_t *set = json_object_get(r->more, "setting");
	struct str value = json_get(set, "value");

	if (!v->quiet)
		view_text(v, BOLD, "%s = ", arena_cstr(v->arena, json_get(set, "name")));
	view_data(v, PLAIN, value.n || v->quiet ? value : STR("-"));
	if (!v->quiet) {
		view_text(v, DIM, "  (");
		view_data(v, DIM, json_get(set, "origin"));
		view_text(v, DIM, ")");
	}
	view_text(v, PLAIN, "\n");
}

static void show_list(const struct reply *r, struct view *v)
{
	static const char *const heads[] = { "NAME", "VALUE", "FROM", "MEANING" };
	const json_t *list = json_object_get(r->more, "settings"), *set;
	size_t n = json_array_size(list), i;
	struct cell *cells = arena_array(v->arena, struct cell, n * 4);

	json_array_foreach(list, i, set) {
		struct str origin = json_get(set, "origin"), value = json_get(set, "value");
		struct cell *c = cells + i * 4;

		c[0] = view_cell(v, BOLD, json_get(set, "name"));
		c[1] = view_cell(v, PLAIN, value.n ? value : STR("-"));
		c[2] = view_cell(v, str_is(origin, "default") ? DIM : CYAN, origin);
		c[3] = view_cell(v, DIM, json_get(set, "help"));
	}
	view_table(v, heads, 4, cells, n);
}

static void show_written(const struct reply *r, struct view *v)
{
	const json_t *o = r->more;
	if (v->quiet)
		return;
	view_data(v, BOLD, json_get(o, "name"));
	if (json_is_string(json_object_get(o, "value"))) {
		view_text(v, PLAIN, " = ");
		view_data(v, PLAIN, json_get(o, "value"));
		view_text(v, DIM, "  (");
	} else {
		view_text(v, PLAIN, " is no longer set");
		view_text(v, DIM, "  (");
	}
	view_data(v, DIM, json_get(o, "file"));
	view_text(v, DIM, ")\n");
}

static void show_reset(const struct reply *r, struct view *v)
{
	const json_t *o = r->more, *names = json_object_get(o, "removed"), *name;
	size_t i;

	if (v->quiet)
		return;
	if (!json_array_size(names))
		view_text(v, PLAIN, "no setting was set");
	json_array_foreach(names, i, name) {
		view_text(v, PLAIN, i ? ", " : "");
		view_data(v, BOLD, json_text(name));
	}
	if (json_array_size(names))
		view_text(v, PLAIN,
			  json_array_size(names) > 1 ? " are no longer set" : " is no longer set");
	view_text(v, DIM, "  (");
	view_data(v, DIM, json_get(o, "file"));
	view_text(v, DIM, ")\n");
}

static bool in_a_profile(const json_t *all, const char *setting)
{
	for (size_t i = 0; i < PROFILES; i++)
		if (json_object_get(json_object_get(all, profiles[i]), setting))
			return true;
	return false;
}

static void show_profiles(const json_t *all, struct view *v)
{
	static const char *const heads[] = { "SETTING", "DEVELOPMENT", "PRODUCTION", "TESTING" };
	const char *names[SETTINGS_MAX];
	struct cell cells[SETTINGS_MAX * 4];
	size_t n = 0;

	for (const struct setting *set = settings_list; set->name && n < SETTINGS_MAX; set++)
		if (in_a_profile(all, set->name))
			names[n++] = set->name;
	for (size_t i = 0; i < n * 4; i++) {
		const json_t *profile = i % 4 ? json_object_get(all, profiles[i % 4 - 1]) : NULL;
		struct str value = json_get(profile, names[i / 4]);

		cells[i] = i % 4 ? view_cell(v, PLAIN, value.n ? value : STR("-"))
				 : view_cell(v, BOLD, str_c(names[i / 4]));
	}
	view_table(v, heads, 4, cells, n);
}

static void show_profile(const struct reply *r, struct view *v)
{
	const json_t *all = json_object_get(r->more, "profiles");

	if (!all) {
		show_written(r, v);
		return;
	}
	show_get(r, v);
	if (v->quiet)
		return;
	view_text(v, PLAIN, "\n");
	show_profiles(all, v);
}

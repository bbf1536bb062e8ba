/* Loads the layers, nearest last; the profile then replaces only defaults. Each value is validated where it is read, so an
 * error names its origin. A write is refused if it would add a conflict, with or without the nearer layers. */
#include "client/settings.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/text.h"
#include "base/when.h"
#include "format/ini.h"
#include "core/lease.h"

#define FILE_MAX (64 * 1024)
#define COUNT (sizeof(settings_list) / sizeof(settings_list[0]) - 1)

const struct setting settings_list[] = {
#define SETTING(name, kind, def, help) { name, kind, def, help },
#include "client/settings.def"
#undef SETTING
	{ 0 },
};

const struct profile_value profile_values[] = {
#define PROFILE(profile, setting, value) { profile, setting, value },
#include "client/profiles.def"
#undef PROFILE
	{ 0 },
};

const struct setting *settings_find(struct str name)
{
	for (const struct setting *s = settings_list; s->name; s++)
		if (str_is(name, s->name))
			return s;
	return NULL;
}

const struct settings_value *settings_get(const struct settings *s, const char *name)
{
	const struct setting *found = settings_find(str_c(name));

	if (!found)
		abort();
	return &s->values[found - settings_list];
}

struct str settings_text(const struct settings *s, const char *name)
{
	return settings_get(s, name)->value;
}

int64_t settings_number(const struct settings *s, const char *name)
{
	struct str text = settings_text(s, name);
	int64_t n = 0;

	if (strcmp(settings_find(str_c(name))->kind, "DURATION") == 0)
		duration_parse(text, &n);
	else
		str_to_i64(text, &n);
	return n;
}

bool settings_given(const struct settings *s, const char *name)
{
	return settings_text(s, name).n > 0;
}

void settings_default(struct settings *s, const char *name, struct str value)
{
	for (size_t i = 0; i < COUNT; i++)
		if (!strcmp(settings_list[i].name, name) && str_is(s->values[i].origin, "default"))
			s->values[i].value = value;
}

void settings_policy(const struct settings *s, struct policy *p)
{
	*p = (struct policy){
		.lease = settings_number(s, "lease"),
		.lease_min = settings_number(s, "lease.min"),
		.lease_max = settings_number(s, "lease.max"),
		.lock_ttl = settings_number(s, "lock.ttl"),
		.max_abandoned = settings_number(s, "max_abandoned"),
		.keep_abandoned = str_is(settings_text(s, "abandoned"), "keep"),
		.ignore_depends = str_is(settings_text(s, "depends"), "ignore"),
		.offer_parents = str_is(settings_text(s, "subtasks"), "offer"),
		.handback = settings_number(s, "handback"),
		.warn_after = settings_number(s, "lock.warn_after"),
		.untyped = str_is(settings_text(s, "lock.typed"), "off"),
	};
}

/* --- reading ------------------------------------------------------------------------------- */

struct loading {
	struct settings *s;
	const char *file;
	struct arena *arena;
	int fault_line; /* 0: no fault so far */
	struct str message, hint;
};

/* A clone's config must not write sentences into an agent's prompt. A message for an agent quotes nothing, and any other
 * message quotes only the start, because a person may pass it on to an agent. */
#define QUOTED 20

static bool may_quote(const struct loading *l)
{
	return !l->s->for_agent || l->file != l->s->queue_file;
}

static struct str no_setting(const struct loading *l, struct str name)
{
	if (!may_quote(l))
		return STR("there is no setting with this name");
	return arena_printf(
		l->arena, "there is no setting '%s'",
		arena_cstr(l->arena, text_cut(l->arena, text_line(l->arena, name), QUOTED)));
}

static struct str bad_value(const struct loading *l, const struct setting *set, struct str value,
			    struct str allowed)
{
	if (!may_quote(l))
		return arena_printf(l->arena, "%s must be %.*s", set->name, STRF(allowed));
	return setting_bad(set, text_cut(l->arena, value, QUOTED), allowed, l->arena);
}

static void take_line(void *ctx, int line, struct str name, struct str value)
{
	struct loading *l = ctx;
	const struct setting *set = settings_find(name);
	struct str allowed;

	if (l->fault_line)
		return;
	if (!set) {
		l->fault_line = line;
		l->message = arena_printf(l->arena, "%s:%d: %s", l->file, line,
					  arena_cstr(l->arena, no_setting(l, name)));
		l->hint = setting_nearest(name, l->arena);
		return;
	}
	allowed = setting_fault(set, value, l->arena);
	if (allowed.n) {
		l->fault_line = line;
		l->message = arena_printf(l->arena, "%s:%d: %s", l->file, line,
					  arena_cstr(l->arena, bad_value(l, set, value, allowed)));
		return;
	}
	l->s->values[set - settings_list] = (struct settings_value){
		.value = arena_str(l->arena, value),
		.origin = arena_printf(l->arena, "%s:%d", l->file, line),
	};
}

static enum result settings_unreadable(const char *file, int r, struct answer *ans, struct arena *a)
{
	const char *why = strerror(-r);

	if (r == -ELOOP)
		why = "it is a link";
	else if (r == -EINVAL)
		why = "it is not a regular file";
	else if (r == -EFBIG)
		why = "it is larger than 64 KiB";
	return answer_fail(ans, MISCONFIGURED, arena_printf(a, "cannot read %s: %s", file, why),
			   STR("replace it with a plain file, or remove it"));
}

static enum result load_text(struct settings *s, const char *file, struct str text,
			     struct answer *ans, struct arena *a)
{
	struct loading l = { .s = s, .file = file, .arena = a };
	int bad;

	if (!text_valid(text))
		return answer_fail(ans, MISCONFIGURED,
				   arena_printf(a, "%s is not UTF-8 text", file), STR(""));
	bad = ini_file_each(text, take_line, &l);
	if (bad && (!l.fault_line || bad < l.fault_line)) {
		l.fault_line = bad;
		l.message = arena_printf(a, "%s:%d: pawl cannot parse this line", file, bad);
		l.hint = arena_printf(
			a,
			"a line is NAME = VALUE, [SECTION] or a comment, and has at most %d "
			"bytes",
			INI_LINE_MAX);
	}
	return l.fault_line ? answer_fail(ans, MISCONFIGURED, l.message, l.hint) : SUCCESS;
}

static enum result load_file(struct settings *s, const char *file, struct str *text,
			     struct answer *ans, struct arena *a)
{
	int r = fs_read(a, file, FILE_MAX, text);

	if (r == -ENOENT || r == -ENOTDIR)
		return SUCCESS;
	return r ? settings_unreadable(file, r, ans, a) : load_text(s, file, *text, ans, a);
}

static struct settings_value in_queue_file(const struct settings *s, const char *name)
{
	const struct settings_value *v = settings_get(s, name);

	return str_starts(v->origin, str_c(s->queue_file)) ? *v : (struct settings_value){ 0 };
}

static enum result load_queue_file(struct settings *s, struct answer *ans, struct arena *a)
{
	enum result r = load_file(s, s->queue_file, &s->queue_text, ans, a);

	s->queue_store = in_queue_file(s, "store");
	s->queue_name = in_queue_file(s, "queue");
	s->queue_agent = in_queue_file(s, "agent");
	return r;
}

/* PAWL_LEASE_MIN for lease.min */
static char *settings_variable(const char *name, struct arena *a)
{
	char *v = arena_cstr(a, arena_printf(a, "PAWL_%s", name));

	for (char *p = v; *p; p++) {
		if (*p == '.')
			*p = '_';
		else if (*p >= 'a' && *p <= 'z')
			*p = (char)(*p - 32);
	}
	return v;
}

/* The value in the environment, under either name. NULL: none. */
static const char *from_environment(const struct setting *set, const char **name, struct arena *a)
{
	const char *value;

	*name = settings_variable(set->name, a);
	value = getenv(*name);
	if (value && *value)
		return value;
	*name = setting_script_variable(set->name);
	value = *name ? getenv(*name) : NULL;
	if (value && !strcmp(set->kind, "on off"))
		return !strcmp(value, "true") ? "on" : !strcmp(value, "false") ? "off" : value;
	return value;
}

/* Fails loudly: the user expects calls to ignore locks, and pawl cannot do that. */
static enum result refuse_disabled(struct answer *ans)
{
	const char *value = getenv("QUEUE_LOCK_DISABLED");

	if (!value || !*value || !strcmp(value, "false") || !strcmp(value, "0"))
		return SUCCESS;
	return answer_fail(
		ans, MISCONFIGURED,
		STR("QUEUE_LOCK_DISABLED is set, but pawl cannot change a queue without its locks: "
		    "of two changes at once, one would be lost"),
		STR("unset QUEUE_LOCK_DISABLED. Reads never wait, a refusal names the writer that holds "
		    "the lock, and `pawl lock cleanup` releases expired locks"));
}

static enum result load_environment(struct settings *s, struct answer *ans, struct arena *a)
{
	enum result code = refuse_disabled(ans);

	for (const struct setting *set = settings_list; code == SUCCESS && set->name; set++) {
		const char *name, *value = from_environment(set, &name, a);
		struct str allowed;

		if (!value || !*value)
			continue;
		allowed = setting_fault(set, str_c(value), a);
		if (allowed.n) {
			struct str text = setting_bad(set, str_c(value), allowed, a);

			return answer_fail(
				ans, MISCONFIGURED,
				arena_printf(a, "%s in the environment: %.*s", name, STRF(text)),
				STR(""));
		}
		s->values[set - settings_list] = (struct settings_value){
			.value = arena_str(a, str_c(value)),
			.origin = str_c(name),
		};
	}
	return code;
}

/* Sets the values of the profile for settings that still have their default. */
static void apply_profile(struct settings *s, struct arena *a)
{
	struct str name = settings_text(s, "profile");

	for (const struct profile_value *p = profile_values; p->profile; p++) {
		const struct setting *set = settings_find(str_c(p->setting));
		struct settings_value *v = &s->values[set - settings_list];

		if (str_is(name, p->profile) && str_is(v->origin, "default"))
			*v = (struct settings_value){ str_c(p->value),
						      arena_printf(a, "profile %s", p->profile) };
	}
}

/* "lease = 15m (default)" */
static struct str settings_shown(const struct settings *s, const char *name, struct arena *a)
{
	const struct settings_value *v = settings_get(s, name);

	return arena_printf(a, "%s = %.*s (%.*s)", name, STRF(v->value), STRF(v->origin));
}

/* Pairs of settings: the first must not exceed the second. */
static const struct {
	const char *less, *more;
} leases[] = {
	{ "lease.min", "lease.max" }, { "lease.min", "lease" },    { "lease", "lease.max" },
	{ "lease.min", "lock.ttl" },  { "lock.ttl", "lease.max" },
};

#define LEASES (sizeof(leases) / sizeof(leases[0]))

static bool at_odds(const struct settings *s, size_t i)
{
	return settings_number(s, leases[i].less) > settings_number(s, leases[i].more);
}

static enum result check_leases(struct settings *s, struct answer *ans, struct arena *a)
{
	for (size_t i = 1; i < LEASES; i++) {
		const char *name = i < 3 ? "lease" : "lock.ttl";

		if (!at_odds(s, i))
			continue;
		s->disagree = true;
		return answer_fail(ans, MISCONFIGURED,
				   arena_printf(a, "%s is not between %s and %s",
						arena_cstr(a, settings_shown(s, name, a)),
						arena_cstr(a, settings_shown(s, "lease.min", a)),
						arena_cstr(a, settings_shown(s, "lease.max", a))),
				   STR("change one of the three"));
	}
	return SUCCESS;
}

static const char *user_file(struct arena *a)
{
	const char *dir = fs_user_dir(a, "XDG_CONFIG_HOME", ".config");

	return dir ? fs_join(a, str_c(dir), STR("config")) : NULL;
}

static void load_defaults(struct settings *s, struct arena *a)
{
	s->values = arena_array(a, struct settings_value, COUNT);
	for (size_t i = 0; i < COUNT; i++)
		s->values[i] = (struct settings_value){ str_c(settings_list[i].def),
							STR("default") };
}

enum result settings_load(struct settings *s, const char *pawl_dir, struct answer *ans,
			  struct arena *a)
{
	enum result r = SUCCESS;
	struct str ignored;

	load_defaults(s, a);
	s->disagree = false;
	s->queue_text = STR("");
	s->queue_store = s->queue_name = s->queue_agent = (struct settings_value){ 0 };
	s->user_file = user_file(a);
	s->queue_file = pawl_dir ? fs_join(a, str_c(pawl_dir), STR("config")) : NULL;
	if (s->user_file)
		r = load_file(s, s->user_file, &ignored, ans, a);
	s->own_agent = *settings_get(s, "agent");
	s->own_queue = *settings_get(s, "queue");
	if (r == SUCCESS && s->queue_file)
		r = load_queue_file(s, ans, a);
	if (r == SUCCESS)
		r = load_environment(s, ans, a);
	if (r == SUCCESS)
		apply_profile(s, a);
	return r == SUCCESS ? check_leases(s, ans, a) : r;
}

/* --- writing ------------------------------------------------------------------------------- */

static enum result check_write(struct str name, const struct str *value, struct answer *ans,
			       struct arena *a)
{
	const struct setting *set = settings_find(name);
	struct str allowed;

	if (!set)
		return answer_fail(ans, USAGE,
				   arena_printf(a, "there is no setting '%s'",
						arena_cstr(a, text_line(a, name))),
				   setting_nearest(name, a));
	allowed = value ? setting_fault(set, *value, a) : STR("");
	if (allowed.n)
		return answer_fail(ans, USAGE, setting_bad(set, *value, allowed, a), STR(""));
	return SUCCESS;
}

/* Makes a missing folder, and keeps the mode of an existing file. */
static int replace_file(const char *file, struct str text, struct arena *a)
{
	struct stat st;
	mode_t mode = stat(file, &st) == 0 ? st.st_mode & 0777 : 0644;
	int r = fs_make_dirs(arena_cstr(a, fs_dirname(str_c(file))), 0755);

	return r ? r : fs_write_atomic(file, text, mode);
}

/* --- does a change fit the other settings? ---------------------------------------------------- */

/* A settings file after the change. */
struct draft {
	const struct settings *s; /* the current settings; NULL: do not compare */
	const char *file;
	struct str text, name;
};

/* false: the settings could not be loaded, for another reason. */
static bool draft_load(const struct draft *d, const char *file, struct settings *out,
		       struct arena *a)
{
	struct answer ignored = { 0 };
	struct str text;

	if (!file)
		return true;
	if (strcmp(file, d->file) == 0)
		return load_text(out, file, d->text, &ignored, a) == SUCCESS;
	return load_file(out, file, &text, &ignored, a) == SUCCESS;
}

static struct str settings_listed(struct str list, struct str more, struct arena *a)
{
	return list.n ? arena_printf(a, "%.*s, %.*s", STRF(list), STRF(more)) : more;
}

/* Does the draft's value count, or does a nearer layer replace it? */
static bool settings_counts(const struct draft *d, struct str origin)
{
	const char *far = d->s->user_file;

	return str_is(origin, "default") || str_starts(origin, str_c(d->file)) ||
	       (far && str_starts(origin, str_c(far)));
}

/* Refuses the draft if its value counts in `s` and conflicts with another value. Conflicts that existed before are
 * ignored: this change may be one of several steps to resolve them. */
static enum result draft_check(const struct draft *d, const struct settings *s, struct answer *ans,
			       struct arena *a)
{
	const struct setting *set = settings_find(d->name);
	const struct settings_value *v = &s->values[set - settings_list];
	struct str above = STR(""), below = STR(""), first = STR(""), text;

	if (!settings_counts(d, v->origin))
		return SUCCESS;
	for (size_t i = 0; i < LEASES; i++) {
		const char *less = leases[i].less, *more = leases[i].more;

		if (!at_odds(s, i))
			continue;
		if (str_is(d->name, less)) {
			above = settings_listed(above, settings_shown(s, more, a), a);
			first = settings_listed(first, str_c(more), a);
		} else if (str_is(d->name, more)) {
			below = settings_listed(below, settings_shown(s, less, a), a);
			first = settings_listed(first, str_c(less), a);
		}
	}
	if (!first.n)
		return SUCCESS;
	text = arena_printf(a, "%s = %.*s would be %s%.*s%s%s%.*s", set->name, STRF(v->value),
			    above.n ? "more than " : "", STRF(above),
			    above.n && below.n ? " and " : "", below.n ? "less than " : "",
			    STRF(below));
	return answer_fail(ans, USAGE, text,
			   arena_printf(a,
					"first change %.*s: lease and lock.ttl must be between "
					"lease.min and lease.max",
					STRF(first)));
}

/* The file also serves other shells, and the user's file other queues. So this checks the settings without the
 * nearer layers, and again with each of them. */
static enum result draft_fits(const struct draft *d, struct answer *ans, struct arena *a)
{
	struct answer ignored = { 0 };
	struct settings s = { 0 };
	enum result r = SUCCESS;

	load_defaults(&s, a);
	if (!draft_load(d, d->s->user_file, &s, a))
		return SUCCESS;
	if (d->s->user_file && strcmp(d->s->user_file, d->file) == 0)
		r = draft_check(d, &s, ans, a);
	if (r != SUCCESS || !draft_load(d, d->s->queue_file, &s, a))
		return r;
	r = draft_check(d, &s, ans, a);
	if (r != SUCCESS || load_environment(&s, &ignored, a) != SUCCESS)
		return r;
	return draft_check(d, &s, ans, a);
}

static enum result settings_unwritable(const char *file, int r, struct answer *ans, struct arena *a)
{
	ans->applied = 'n';
	return answer_fail(ans, API_ERROR,
			   arena_printf(a, "cannot write %s: %s", file, strerror(-r)), STR(""));
}

/* s NULL: does not compare with other settings. */
static enum result write_file(const struct settings *s, const char *file, struct str name,
			      const struct str *value, struct answer *ans, struct arena *a)
{
	struct buf b = BUF_MAX(FILE_MAX);
	struct str text = STR("");
	enum result code = check_write(name, value, ans, a);
	int r;

	if (code != SUCCESS)
		return code;
	r = fs_read(a, file, FILE_MAX, &text);
	if (r && r != -ENOENT)
		return settings_unreadable(file, r, ans, a);
	if (!ini_edit(&b, text, name, value, a))
		code = answer_fail(
			ans, USAGE,
			arena_printf(a, "%s cannot store this value of %.*s", file, STRF(name)),
			arena_printf(a,
				     "a value has no ' ;' and no spaces around it, and its line "
				     "has at most %d bytes",
				     INI_LINE_MAX));
	else if (s)
		code = draft_fits(&(struct draft){ s, file, buf_str(&b), name }, ans, a);
	if (code == SUCCESS && (r != -ENOENT || value))
		r = replace_file(file, buf_str(&b), a);
	else
		r = 0;
	buf_free(&b);
	return code == SUCCESS && r ? settings_unwritable(file, r, ans, a) : code;
}

enum result settings_write(const char *file, struct str name, const struct str *value,
			   struct answer *ans, struct arena *a)
{
	return write_file(NULL, file, name, value, ans, a);
}

enum result settings_change(const struct settings *s, const char *file, struct str name,
			    const struct str *value, struct answer *ans, struct arena *a)
{
	return write_file(s, file, name, value, ans, a);
}

static bool says_where(const struct setting *set)
{
	return !strcmp(set->name, "store") || !strcmp(set->name, "queue");
}

/* Removes these settings from the text, and lists the removed ones in *gone. */
static struct str settings_emptied(struct str text, struct strs *gone, struct arena *a)
{
	for (const struct setting *set = settings_list; set->name; set++) {
		struct buf b = BUF_MAX(FILE_MAX);

		if (says_where(set) || !ini_has(text, str_c(set->name), a))
			continue;
		*gone = arena_append(a, *gone, str_c(set->name));
		(void)ini_edit(&b, text, str_c(set->name), NULL, a);
		text = arena_str(a, buf_str(&b));
		buf_free(&b);
	}
	return text;
}

enum result settings_reset(const char *file, struct strs *gone, struct answer *ans, struct arena *a)
{
	struct str text = STR("");
	int r = fs_read(a, file, FILE_MAX, &text);

	*gone = (struct strs){ 0 };
	if (r && r != -ENOENT)
		return settings_unreadable(file, r, ans, a);
	text = settings_emptied(text, gone, a);
	r = gone->n ? replace_file(file, text, a) : 0;
	return r ? settings_unwritable(file, r, ans, a) : SUCCESS;
}

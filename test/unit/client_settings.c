#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "kit/folder.h"
#include "base/fs.h"
#include "format/ini.h"
#include "client/settings.h"

static struct arena arena;
static struct answer ans;
static struct settings s;

/* Each test has a folder with "user/pawl" and ".pawl" in it, and no PAWL_ variables. */
static int enter(void **state)
{
	const char *dir = folder_enter(state);

	if (!dir || mkdir("user", 0755) || mkdir("user/pawl", 0755) || mkdir(".pawl", 0755))
		return -1;
	clearenv();
	setenv("XDG_CONFIG_HOME", fs_join(&arena, str_c(dir), STR("user")), 1);
	setenv("HOME", dir, 1);
	return 0;
}

static int leave(void **state)
{
	int r = folder_leave(state);

	arena_free(&arena);
	arena = (struct arena){ 0 };
	return r;
}

static void put(const char *path, const char *text)
{
	assert_int_equal(fs_write_atomic(path, str_c(text), 0644), 0);
}

static const char *get(const char *path)
{
	struct str text;

	assert_int_equal(fs_read(&arena, path, 1 << 20, &text), 0);
	return text.p;
}

static enum result load(void)
{
	ans = (struct answer){ 0 };
	return settings_load(&s, ".pawl", &ans, &arena);
}

static void assert_said(struct str text, const char *part)
{
	if (!str_has_nocase(text, str_c(part)))
		fail_msg("'%.*s' does not hold '%s'", STRF(text), part);
}

static void assert_value(const char *name, const char *value, const char *origin)
{
	const struct settings_value *v = &s.values[settings_find(str_c(name)) - settings_list];

	assert_string_equal(arena_cstr(&arena, v->value), value);
	assert_said(v->origin, origin);
	assert_true(str_eq(settings_text(&s, name), str_c(value)));
}

static void test_defaults(void **state)
{
	struct policy p;

	(void)state;
	assert_int_equal(load(), SUCCESS);
	assert_value("lease", "15m", "default");
	assert_int_equal(settings_number(&s, "lease"), 900000);
	assert_int_equal(settings_number(&s, "max_abandoned"), 5);
	settings_policy(&s, &p);
	assert_int_equal(p.lease, policy_default.lease);
	assert_int_equal(p.lease_min, policy_default.lease_min);
	assert_int_equal(p.lease_max, policy_default.lease_max);
	assert_int_equal(p.lock_ttl, policy_default.lock_ttl);
	assert_int_equal(p.max_abandoned, policy_default.max_abandoned);
	assert_false(p.keep_abandoned || p.ignore_depends);
	assert_int_equal(settings_load(&s, NULL, &ans, &arena), SUCCESS);
	assert_null(s.queue_file);
}

static void test_nearest_wins(void **state)
{
	struct policy p;

	(void)state;
	put("user/pawl/config", "agent = one\nlease = 20m\ndepends = ignore\n");
	put(".pawl/config",
	    "\xef\xbb\xbf# ours\nagent = two ; a comment\n\n[lease]\n  min = 0.2s\n  max = 2h\n");
	assert_int_equal(load(), SUCCESS);
	assert_value("agent", "two", ".pawl/config:2");
	assert_value("lease", "20m", "user/pawl/config:2");
	assert_value("lease.min", "0.2s", ".pawl/config:5");
	assert_value("lease.max", "2h", ".pawl/config:6");
	settings_policy(&s, &p);
	assert_int_equal(p.lease_min, 200);
	assert_true(p.ignore_depends);
	setenv("PAWL_AGENT", "three", 1);
	setenv("PAWL_LEASE_MIN", "2s", 1);
	setenv("PAWL_LEASE", "", 1);
	assert_int_equal(load(), SUCCESS);
	assert_value("agent", "three", "PAWL_AGENT");
	assert_value("lease.min", "2s", "PAWL_LEASE_MIN");
	assert_value("lease", "20m", "user/pawl/config:2");
}

static void refused(const char *text, const char *where, const char *what, const char *hint)
{
	put(".pawl/config", text);
	assert_int_equal(load(), MISCONFIGURED);
	assert_said(ans.message, where);
	assert_said(ans.message, what);
	assert_said(ans.hint, hint);
}

static void test_faults_name_their_place(void **state)
{
	char line[400];

	(void)state;
	refused("\nlaese = 1m\n", ".pawl/config:2:", "laese", "lease");
	refused("[lease]\nmni = 1s\n", ".pawl/config:2:", "lease.mni", "lease.min");
	refused("lease = soon\n", ".pawl/config:1:", "'soon'", "");
	refused("lease = 0\n", ".pawl/config:1:", "15m", "");
	refused("lease = -5\n", ".pawl/config:1:", "'-5'", "");
	refused("lease = 400d\n", ".pawl/config:1:", "365d", "");
	refused("max_abandoned = many\n", ".pawl/config:1:", "number", "");
	refused("color = blue\n", ".pawl/config:1:", "auto, always or never", "");
	refused("agent = x\nwhat is this\n", ".pawl/config:2:", "cannot parse this line",
		"NAME = VALUE");
	refused("[lease\nmin = 1s\n", ".pawl/config:1:", "cannot parse this line", "");
	refused("bad\nlaese = 1\n", ".pawl/config:1:", "cannot parse this line", "");
	refused("laese = 1\nbad\n", ".pawl/config:1:", "laese", "");
	refused("= 1\n", ".pawl/config:1:", "''", "");
	refused("agent = \xff\n", ".pawl/config", "UTF-8", "");
	refused("lease.max = 5m\n", "lease = 15m (default)", ".pawl/config:1", "");
	refused("lease.min = 1h\n", "lease.min = 1h", ".pawl/config:1", "");
	snprintf(line, sizeof(line), "agent = %0*d\n", 300, 7);
	refused(line, ".pawl/config:1:", "cannot parse this line", "190");
	line[0] = '#';
	put(".pawl/config", line);
	assert_int_equal(load(), SUCCESS);
	setenv("PAWL_LEASE_MAX", "1y", 1);
	assert_int_equal(load(), MISCONFIGURED);
	assert_said(ans.message, "PAWL_LEASE_MAX");
	assert_said(ans.message, "'1y'");
	setenv("PAWL_LEASE_MAX", "1d", 1);
	setenv("PAWL_TIMEOUT", "0", 1);
	assert_int_equal(load(), SUCCESS);
	assert_int_equal(settings_number(&s, "timeout"), 0);
}

static void test_only_plain_files(void **state)
{
	(void)state;
	put("else", "agent = x\n");
	assert_int_equal(symlink("../else", ".pawl/config"), 0);
	assert_int_equal(load(), MISCONFIGURED);
	assert_said(ans.message, "link");
	unlink(".pawl/config");
	assert_int_equal(mkdir(".pawl/config", 0755), 0);
	assert_int_equal(load(), MISCONFIGURED);
	assert_said(ans.message, "regular");
	rmdir(".pawl/config");
	assert_int_equal(mkfifo(".pawl/config", 0644), 0);
	assert_int_equal(load(), MISCONFIGURED);
	unlink(".pawl/config");
	put(".pawl/config", "agent = x\n");
	chmod(".pawl/config", 0);
	if (geteuid() != 0)
		assert_int_equal(load(), MISCONFIGURED);
	unlink(".pawl/config");
	assert_int_equal(
		fs_write_atomic(".pawl/config", str_n(arena_alloc(&arena, 70000), 70000), 0644), 0);
	assert_int_equal(load(), MISCONFIGURED);
	assert_said(ans.message, "64 KiB");
}

static enum result set(const char *name, const char *value)
{
	struct str v = str_c(value);

	ans = (struct answer){ 0 };
	return settings_write(".pawl/config", str_c(name), value ? &v : NULL, &ans, &arena);
}

static void test_write_makes_the_file(void **state)
{
	struct str v = STR("x");

	(void)state;
	assert_int_equal(settings_write("new/pawl/config", STR("agent"), &v, &ans, &arena),
			 SUCCESS);
	assert_string_equal(get("new/pawl/config"), "agent = x\n");
	assert_int_equal(set("agent", NULL), SUCCESS);
	assert_false(fs_exists(".pawl/config"));
}

static void test_write_keeps_the_rest(void **state)
{
	struct stat st;

	(void)state;
	put(".pawl/config",
	    "# top\nagent=one\r\n\n# about leases\n[lease]\n\tmin = 2s ; short\n max: 2h\n\n[x]");
	chmod(".pawl/config", 0600);
	assert_int_equal(set("lease.min", "3s"), SUCCESS);
	assert_int_equal(set("agent", "two"), SUCCESS);
	assert_int_equal(set("lease.max", "3h"), SUCCESS);
	assert_int_equal(set("color", "never"), SUCCESS);
	assert_string_equal(
		get(".pawl/config"),
		"# top\nagent=two\r\n\ncolor = never\n# about leases\n[lease]\n\tmin = 3s ; short\n"
		" max: 3h\n\n[x]\n");
	assert_int_equal(stat(".pawl/config", &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(set("lease.min", NULL), SUCCESS);
	assert_int_equal(set("agent", NULL), SUCCESS);
	assert_string_equal(get(".pawl/config"),
			    "# top\n\ncolor = never\n# about leases\n[lease]\n max: 3h\n\n[x]\n");
	put(".pawl/config", "agent = a\nagent = b");
	assert_int_equal(set("agent", "c"), SUCCESS);
	assert_string_equal(get(".pawl/config"), "agent = a\nagent = c\n");
	assert_int_equal(set("agent", NULL), SUCCESS);
	assert_string_equal(get(".pawl/config"), "");
	assert_int_equal(set("agent", ""), SUCCESS);
	assert_int_equal(load(), SUCCESS);
	assert_value("agent", "", ".pawl/config:1");
}

static void test_write_refuses(void **state)
{
	char big[300] = "";

	(void)state;
	put(".pawl/config", "agent = one\n");
	assert_int_equal(set("laese", "1m"), USAGE);
	assert_said(ans.hint, "lease");
	assert_int_equal(set("lease", "soon"), USAGE);
	assert_int_equal(set("agent", "a\nlease = 1"), USAGE);
	assert_int_equal(set("agent", " a"), USAGE);
	assert_int_equal(set("agent", "a ;b"), USAGE);
	memset(big, 'x', sizeof(big) - 1);
	assert_int_equal(set("agent", big), USAGE);
	assert_string_equal(get(".pawl/config"), "agent = one\n");
	assert_int_equal(set("agent", "a;b=c:d#e"), SUCCESS);
	assert_int_equal(load(), SUCCESS);
	assert_value("agent", "a;b=c:d#e", "config:1");
	unlink(".pawl/config");
	assert_int_equal(symlink("x", ".pawl/config"), 0);
	assert_int_equal(set("agent", "a"), MISCONFIGURED);
	if (geteuid() != 0) {
		unlink(".pawl/config");
		chmod(".pawl", 0500);
		assert_int_equal(set("agent", "a"), API_ERROR);
		assert_int_equal(ans.applied, 'n');
		chmod(".pawl", 0700);
	}
}

static enum result change(const char *file, const char *name, const char *value)
{
	struct str v = str_c(value);

	load();
	ans = (struct answer){ 0 };
	return settings_change(&s, file ? file : s.queue_file, str_c(name), value ? &v : NULL, &ans,
			       &arena);
}

static enum result ours(const char *name, const char *value)
{
	load();
	return change(s.user_file, name, value);
}

/* A change must not lead to settings with which every further command fails. */
static void test_change_keeps_leases_together(void **state)
{
	(void)state;
	assert_int_equal(change(NULL, "lease", "2s"), SUCCESS);
	assert_int_equal(change(NULL, "lease.min", "1h"), USAGE);
	assert_said(ans.message, "lease.min = 1h would be more than lease = 2s");
	assert_said(ans.message, ".pawl/config:1");
	assert_said(ans.message, "lock.ttl = 300s (default)");
	assert_said(ans.hint, "first change lease, lock.ttl:");
	assert_string_equal(get(".pawl/config"), "lease = 2s\n");
	assert_int_equal(change(NULL, "lease", "2d"), USAGE);
	assert_said(ans.message, "lease = 2d would be more than lease.max = 24h (default)");
	assert_int_equal(change(NULL, "lease", "500ms"), USAGE);
	assert_said(ans.message, "lease = 500ms would be less than lease.min = 1s (default)");
	assert_said(ans.hint, "first change lease.min:");
	assert_int_equal(change(NULL, "lease.max", "1m"), USAGE);
	assert_said(ans.message, "less than lock.ttl = 300s (default)");
	assert_int_equal(change(NULL, "lock.ttl", "2d"), USAGE);
	assert_int_equal(change(NULL, "lease", "2h"), SUCCESS);
	assert_int_equal(change(NULL, "lock.ttl", "2h"), SUCCESS);
	assert_int_equal(change(NULL, "lease.min", "1h"), SUCCESS);
	assert_int_equal(load(), SUCCESS);
	assert_int_equal(change(NULL, "lease", NULL), USAGE); /* back to 15m */
	assert_said(ans.message, "lease = 15m would be less than lease.min = 1h");
	assert_int_equal(change(NULL, "lease.min", NULL), SUCCESS);
	assert_int_equal(change(NULL, "lease", NULL), SUCCESS);
}

static void test_change_looks_at_every_layer(void **state)
{
	(void)state;
	put("user/pawl/config", "lease = 2s\n");
	assert_int_equal(change(NULL, "lease.min", "10s"), USAGE);
	assert_said(ans.message, "user/pawl/config:1");
	assert_int_equal(change(NULL, "lease", "20s"), SUCCESS);
	assert_int_equal(change(NULL, "lease.min", "10s"), SUCCESS);
	/* the user's own value would count again */
	assert_int_equal(change(NULL, "lease", NULL), USAGE);
	assert_int_equal(ours("lease", "3s"), SUCCESS);    /* has no effect here */
	assert_int_equal(ours("lease.min", "10s"), USAGE); /* but in other queues */
	assert_said(ans.message, "lease = 3s");
	setenv("PAWL_LEASE", "1h", 1);
	assert_int_equal(change(NULL, "lease.max", "30m"), USAGE);
	assert_said(ans.message, "PAWL_LEASE");
	setenv("PAWL_LEASE", "1m", 1);
	assert_int_equal(change(NULL, "lease.min", "30s"), USAGE); /* other shells have 20s */
	assert_int_equal(change(NULL, "agent", "x"), SUCCESS);
}

static void test_disagreement_can_be_mended(void **state)
{
	(void)state;
	refused("lease = 2s\nlease.min = 1h\n", "lease = 2s", ".pawl/config:1",
		"change one of the three");
	assert_said(ans.message, ".pawl/config:2");
	assert_true(s.disagree);
	assert_value("lease.min", "1h", ".pawl/config:2"); /* it can still be shown */
	assert_value("lock.ttl", "300s", "default");
	assert_int_equal(change(NULL, "lease", "3s"), USAGE);
	assert_int_equal(change(NULL, "agent", "x"), SUCCESS);
	/* although lock.ttl is still wrong */
	assert_int_equal(change(NULL, "lease", "2h"), SUCCESS);
	assert_int_equal(load(), MISCONFIGURED);
	assert_said(ans.message, "lock.ttl = 300s (default) is not between lease.min = 1h");
	assert_int_equal(change(NULL, "lock.ttl", "2h"), SUCCESS);
	assert_int_equal(load(), SUCCESS);
	assert_false(s.disagree);
	refused("lease = soon\n", ".pawl/config:1:", "'soon'", "");
	assert_false(s.disagree);
	assert_int_equal(change(NULL, "lease", "1h"), SUCCESS); /* a bad line is replaced */
	assert_int_equal(load(), SUCCESS);
}

/* The names that scripts use: below PAWL_, above the files. */
static void test_script_names(void **state)
{
	static const char *const names[][4] = {
		{ "QUEUE_LOCK_TIMEOUT", "30", "lock.timeout", "30" },
		{ "QUEUE_LOCK_CLI_TIMEOUT", "8", "lock.cli_timeout", "8" },
		{ "QUEUE_LOCK_BATCH_TIMEOUT", "120", "lock.batch_timeout", "120" },
		{ "QUEUE_LOCK_RETRY_MAX_ATTEMPTS", "10", "retry.max_attempts", "10" },
		{ "QUEUE_LOCK_RETRY_BASE_DELAY", "0.1", "retry.base_delay", "0.1" },
		{ "QUEUE_LOCK_RETRY_MAX_DELAY", "5.0", "retry.max_delay", "5.0" },
		{ "QUEUE_LOCK_STALE_THRESHOLD", "300", "lock.stale_after", "300" },
		{ "QUEUE_LOCK_HEALTH_MONITORING", "false", "health.monitoring", "off" },
		{ "QUEUE_LOCK_TYPE_SEPARATION", "true", "lock.typed", "on" },
	};

	(void)state;
	put(".pawl/config", "lock.timeout = 1s\nhealth.monitoring = on\n");
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		setenv(names[i][0], names[i][1], 1);
		assert_int_equal(load(), SUCCESS);
		assert_value(names[i][2], names[i][3], names[i][0]);
	}
	assert_int_equal(settings_number(&s, "retry.base_delay"), 100);
	setenv("PAWL_LOCK_TIMEOUT", "3s", 1);
	assert_int_equal(load(), SUCCESS);
	assert_value("lock.timeout", "3s", "PAWL_LOCK_TIMEOUT");
	setenv("QUEUE_LOCK_TYPE_SEPARATION", "perhaps", 1);
	assert_int_equal(load(), MISCONFIGURED);
	assert_said(ans.message, "QUEUE_LOCK_TYPE_SEPARATION");
}

static void test_locks_cannot_be_disabled(void **state)
{
	(void)state;
	setenv("QUEUE_LOCK_DISABLED", "false", 1);
	assert_int_equal(load(), SUCCESS);
	setenv("QUEUE_LOCK_DISABLED", "true", 1);
	assert_int_equal(load(), MISCONFIGURED);
	assert_said(ans.message, "QUEUE_LOCK_DISABLED");
	assert_said(ans.hint, "unset QUEUE_LOCK_DISABLED");
}

/* Below all settings, above the defaults. */
static void test_profile(void **state)
{
	(void)state;
	assert_int_equal(load(), SUCCESS);
	assert_false(settings_given(&s, "lock.cli_timeout"));
	put(".pawl/config", "profile = production\nlock.cli_timeout = 4s\n");
	put("user/pawl/config", "retry.max_attempts = 2\n");
	assert_int_equal(load(), SUCCESS);
	assert_value("lock.timeout", "30s", "profile production");
	assert_value("lock.batch_timeout", "120s", "profile production");
	assert_value("lock.cli_timeout", "4s", ".pawl/config:2");
	assert_int_equal(settings_number(&s, "retry.max_attempts"), 2);
	setenv("PAWL_PROFILE", "testing", 1);
	assert_int_equal(load(), SUCCESS);
	assert_false(settings_given(&s, "lock.timeout"));
	assert_value("lock.cli_timeout", "4s", ".pawl/config:2");
	setenv("PAWL_PROFILE", "chaos", 1);
	assert_int_equal(load(), MISCONFIGURED);
}

/* Checks the profile table: a name or value that does not fit would otherwise show only in use. */
static void test_profiles_fit(void **state)
{
	(void)state;
	for (const struct profile_value *p = profile_values; p->profile; p++) {
		assert_non_null(settings_find(str_c(p->setting)));
		assert_int_equal(set(p->setting, p->value), SUCCESS);
		assert_int_equal(set("profile", p->profile), SUCCESS);
	}
}

static void test_reset(void **state)
{
	struct strs gone;

	(void)state;
	put(".pawl/config",
	    "# mine\nstore = sqlite:x.db\nlease = 1m\n[lease]\nmin = 2s\nlock.ttl = 1\n");
	assert_int_equal(settings_reset(".pawl/config", &gone, &ans, &arena), SUCCESS);
	assert_int_equal(gone.n, 2);
	assert_true(str_is(gone.v[0], "lease") && str_is(gone.v[1], "lease.min"));
	assert_string_equal(get(".pawl/config"),
			    "# mine\nstore = sqlite:x.db\n[lease]\nlock.ttl = 1\n");
	assert_int_equal(settings_reset("nothing/there", &gone, &ans, &arena), SUCCESS);
	assert_int_equal(gone.n, 0);
	assert_false(fs_exists("nothing"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_defaults, enter, leave),
		cmocka_unit_test_setup_teardown(test_nearest_wins, enter, leave),
		cmocka_unit_test_setup_teardown(test_faults_name_their_place, enter, leave),
		cmocka_unit_test_setup_teardown(test_only_plain_files, enter, leave),
		cmocka_unit_test_setup_teardown(test_write_makes_the_file, enter, leave),
		cmocka_unit_test_setup_teardown(test_write_keeps_the_rest, enter, leave),
		cmocka_unit_test_setup_teardown(test_write_refuses, enter, leave),
		cmocka_unit_test_setup_teardown(test_change_keeps_leases_together, enter, leave),
		cmocka_unit_test_setup_teardown(test_change_looks_at_every_layer, enter, leave),
		cmocka_unit_test_setup_teardown(test_disagreement_can_be_mended, enter, leave),
		cmocka_unit_test_setup_teardown(test_script_names, enter, leave),
		cmocka_unit_test_setup_teardown(test_locks_cannot_be_disabled, enter, leave),
		cmocka_unit_test_setup_teardown(test_profile, enter, leave),
		cmocka_unit_test_setup_teardown(test_profiles_fit, enter, leave),
		cmocka_unit_test_setup_teardown(test_reset, enter, leave),
	};

	/* the tests clear the environment, which has the output format: set it here */
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* One check for each kind of setting. A message must name the valid values, because pawl never falls back to the default. */
#include "base/text.h"
#include "base/when.h"
#include "client/client.h"
#include "client/settings.h"

#define NUMBER_MAX 1000000000
#define DURATION_MAX (INT64_C(365) * 24 * 3600 * 1000)

static bool good_duration(const struct setting *s, struct str value)
{
	int64_t ms;

	if (!duration_parse(value, &ms) || ms > DURATION_MAX)
		return false;
	/* A timeout of 0 is useful, and so are handback = 0s and lock.warn_after = 0s; a lease of 0 is not. */
	return ms > 0 || (ms == 0 && (strstr(s->name, "timeout") || !strcmp(s->name, "handback") ||
				      !strcmp(s->name, "lock.warn_after")));
}

static bool good_number(struct str value)
{
	int64_t n;

	return str_to_i64(value, &n) && n >= 0 && n <= NUMBER_MAX;
}

static bool good_text(struct str value)
{
	for (size_t i = 0; i < value.n; i++)
		if ((unsigned char)value.p[i] < 0x20 || value.p[i] == 0x7f)
			return false;
	return text_valid(value);
}

static bool good_word(const char *kind, struct str value)
{
	struct str words = str_c(kind);

	while (words.n)
		if (str_eq(str_cut(&words, ' '), value))
			return true;
	return false;
}

static struct str words_listed(const char *kind, struct arena *a)
{
	struct str words = str_c(kind), out = str_cut(&words, ' ');

	while (words.n) {
		struct str word = str_cut(&words, ' ');

		out = arena_printf(a, "%.*s%s%.*s", STRF(out), words.n ? ", " : " or ", STRF(word));
	}
	return out;
}

struct str setting_fault(const struct setting *s, struct str value, struct arena *a)
{
	if (strcmp(s->kind, "TEXT") == 0)
		return good_text(value) ? STR("") : STR("text on one line");
	if (strcmp(s->kind, "NUMBER") == 0)
		return good_number(value) ? STR("") : STR("a number from 0 to 1000000000");
	if (strcmp(s->kind, "DURATION") == 0)
		return good_duration(s, value)
			       ? STR("")
			       : STR("a time such as 90s, 15m, 2h or 1d, up to 365d");
	return good_word(s->kind, value) ? STR("") : words_listed(s->kind, a);
}

struct str setting_bad(const struct setting *s, struct str value, struct str allowed,
		       struct arena *a)
{
	return arena_printf(a, "%s = '%s': it must be %.*s", s->name,
			    arena_cstr(a, text_line(a, value)), STRF(allowed));
}

struct str setting_nearest(struct str name, struct arena *a)
{
	const char *names[SETTINGS_MAX], *near;
	size_t n = 0;

	for (; n < SETTINGS_MAX && settings_list[n].name; n++)
		names[n] = settings_list[n].name;
	near = text_nearest(name, names, n);
	if (!near)
		return STR("`pawl config` lists all settings");
	return arena_printf(a, "did you mean %s? `pawl config` lists all settings", near);
}

/* Variables that existing scripts set. */
static const struct {
	const char *variable, *setting;
} script_names[] = {
	{ "QUEUE_LOCK_TIMEOUT", "lock.timeout" },
	{ "QUEUE_LOCK_CLI_TIMEOUT", "lock.cli_timeout" },
	{ "QUEUE_LOCK_BATCH_TIMEOUT", "lock.batch_timeout" },
	{ "QUEUE_LOCK_RETRY_MAX_ATTEMPTS", "retry.max_attempts" },
	{ "QUEUE_LOCK_RETRY_BASE_DELAY", "retry.base_delay" },
	{ "QUEUE_LOCK_RETRY_MAX_DELAY", "retry.max_delay" },
	{ "QUEUE_LOCK_STALE_THRESHOLD", "lock.stale_after" },
	{ "QUEUE_LOCK_HEALTH_MONITORING", "health.monitoring" },
	{ "QUEUE_LOCK_HEALTH_CHECK", "health.auto" },
	{ "QUEUE_LOCK_TYPE_SEPARATION", "lock.typed" },
};

const char *setting_script_variable(const char *setting)
{
	for (size_t i = 0; i < sizeof(script_names) / sizeof(*script_names); i++)
		if (!strcmp(script_names[i].setting, setting))
			return script_names[i].variable;
	return NULL;
}

/* --- timeout ---------------------------------------------------------------------------------- */

/* Chooses how long a change waits: --timeout, then the settings, then a default for each kind of change and caller. A degraded
 * queue shortens every timeout except an explicit --timeout. */

#define TIMEOUT_MAX (INT64_C(365) * 24 * 3600 * 1000)

enum result client_find_timeout(struct client *c, struct answer *ans)
{
	c->conn.config.opt.timeout_ms = -1;
	if (settings_given(&c->conn.settings, "timeout"))
		c->conn.config.opt.timeout_ms = settings_number(&c->conn.settings, "timeout");
	if (!c->said.timeout.n)
		return SUCCESS;
	if (duration_parse(c->said.timeout, &c->conn.config.opt.timeout_ms) &&
	    c->conn.config.opt.timeout_ms >= 0 && c->conn.config.opt.timeout_ms <= TIMEOUT_MAX)
		return SUCCESS;
	return answer_fail(
		ans, USAGE,
		arena_printf(c->arena, "'%s' is not a timeout: use a time such as 500ms, 15s or 2m",
			     arena_cstr(c->arena, text_line(c->arena, c->said.timeout))),
		STR(""));
}

static const char *timeout_setting(const struct client *c, unsigned kind)
{
	if (kind & (OP_BATCH | OP_HEAVY))
		return "lock.batch_timeout";
	return c->said.face == CLIENT_PROGRAM ? "lock.timeout" : "lock.cli_timeout";
}

static int64_t timeout_of_kind(const struct client *c, unsigned kind)
{
	if (kind & (OP_BATCH | OP_HEAVY))
		return kind & OP_HEAVY ? 60000 : 30000;
	if (c->said.face == CLIENT_PROMPT)
		return 5000;
	return kind & OP_QUICK ? 10000 : 15000;
}

static int64_t usual_timeout(const struct client *c, unsigned kind)
{
	const char *nearer = timeout_setting(c, kind);

	if (c->conn.config.opt.timeout_ms >= 0)
		return c->conn.config.opt.timeout_ms;
	if (settings_given(&c->conn.settings, nearer))
		return settings_number(&c->conn.settings, nearer);
	if (settings_given(&c->conn.settings, "lock.timeout"))
		return settings_number(&c->conn.settings, "lock.timeout");
	return timeout_of_kind(c, kind);
}

/* --timeout is the caller's own decision, so a degraded queue does not shorten it. */
int64_t client_timeout(const struct client *c, unsigned kind)
{
	int64_t usual = usual_timeout(c, kind);

	return c->said.timeout.n ? usual : client_hurried(c, usual);
}

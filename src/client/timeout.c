/* How long a change waits: --timeout, then the settings, then a default for each kind of change and caller. */
#include "base/text.h"
#include "base/when.h"
#include "client/client.h"

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

/* --timeout is the caller's own decision. */
int64_t client_timeout(const struct client *c, unsigned kind)
{
	int64_t usual = usual_timeout(c, kind);

	return c->said.timeout.n ? usual : client_hurried(c, usual);
}

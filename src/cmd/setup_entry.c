#include "cmd/setup_entry.h"

#include "base/buf.h"
#include "cmd/reply.h"

json_t *setup_entry_args(struct str agent)
{
	json_t *args = json_pack("[s]", "mcp");

	if (agent.n) {
		json_array_append_new(args, json_string("--agent"));
		json_array_append_new(args, json_str(agent));
	}
	return args;
}

static const char plain[] =
	"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@+:,./-";

/* Adds one word of the shell. */
static void put_word(struct buf *b, struct str s)
{
	size_t safe = 0;

	while (safe < s.n && strchr(plain, s.p[safe]))
		safe++;
	if (s.n && safe == s.n) {
		buf_adds(b, s);
		return;
	}
	buf_addc(b, '\'');
	for (size_t i = 0; i < s.n; i++)
		if (s.p[i] == '\'')
			buf_adds(b, STR("'\\''"));
		else
			buf_addc(b, s.p[i]);
	buf_addc(b, '\'');
}

/* The value of a word that put_word() made; of any other word, anything. */
static struct str word_value(struct str s, struct arena *a)
{
	struct buf b = BUF_MAX(4096);
	struct str out;

	if (!str_cut_prefix(&s, STR("'")))
		return s;
	while (s.n > 1)
		if (str_cut_prefix(&s, STR("'\\''"))) {
			buf_addc(&b, '\'');
		} else {
			buf_addc(&b, s.p[0]);
			s = str_n(s.p + 1, s.n - 1);
		}
	out = arena_str(a, buf_str(&b));
	buf_free(&b);
	return out;
}

static json_t *hook_command(const struct setup_entry *e, struct str agent)
{
	struct buf b = BUF_MAX(4096);
	json_t *v;

	if (e->client && !agent.n)
		buf_addf(&b, "env AI_AGENT=%s ", e->client);
	buf_addf(&b, "pawl hook %s", e->text);
	if (agent.n) {
		buf_adds(&b, STR(" --agent "));
		put_word(&b, agent);
	}
	v = json_str(buf_str(&b));
	buf_free(&b);
	return v;
}

static json_t *list_command(struct str agent)
{
	json_t *args = setup_entry_args(agent);

	json_array_insert_new(args, 0, json_string("pawl"));
	return args;
}

static json_t *url_entry(enum setup_http http, struct str url)
{
	static const char *const bearers[] = {
		[HTTP_TYPE] = "Bearer ${" SETUP_TOKEN "}",
		[HTTP_URL] = "Bearer ${env:" SETUP_TOKEN "}",
		[HTTP_HTTPURL] = "Bearer $" SETUP_TOKEN,
		[HTTP_REMOTE] = "Bearer {env:" SETUP_TOKEN "}",
	};
	json_t *o = json_object();

	if (http == HTTP_TYPE || http == HTTP_REMOTE)
		json_object_set_new(o, "type", json_string(http == HTTP_TYPE ? "http" : "remote"));
	json_object_set_new(o, http == HTTP_HTTPURL ? "httpUrl" : "url", json_str(url));
	json_object_set_new(o, "headers", json_pack("{s:s}", "Authorization", bearers[http]));
	if (http == HTTP_REMOTE)
		json_object_set_new(o, "enabled", json_true());
	return o;
}

static json_t *local_entry(const struct setup_entry *e, struct str agent)
{
	switch (e->shape) {
	case SHAPE_SERVER:
		return json_pack("{s:s, s:o}", "command", "pawl", "args", setup_entry_args(agent));
	case SHAPE_STDIO:
		return json_pack("{s:s, s:s, s:o}", "type", "stdio", "command", "pawl", "args",
				 setup_entry_args(agent));
	case SHAPE_ENV:
		return json_pack("{s:s, s:o, s:{}}", "command", "pawl", "args",
				 setup_entry_args(agent), "env");
	case SHAPE_COMMAND_LIST:
		return json_pack("{s:s, s:o, s:b}", "type", "local", "command", list_command(agent),
				 "enabled", 1);
	case SHAPE_HOOK:
		return json_pack("{s:[{s:s, s:o}]}", "hooks", "type", "command", "command",
				 hook_command(e, agent));
	case SHAPE_TOOL_HOOK:
		return json_pack("{s:s, s:[{s:s, s:o}]}", "matcher", "*", "hooks", "type",
				 "command", "command", hook_command(e, agent));
	case SHAPE_CURSOR_HOOK:
		return json_pack("{s:o}", "command", hook_command(e, agent));
	case SHAPE_FIXED:
		break;
	}
	return json_loads(e->text, JSON_DECODE_ANY, NULL);
}

json_t *setup_entry_make(const struct setup_entry *e, struct setup_as as, struct arena *a)
{
	if (as.url.n && e->http)
		return url_entry(e->http, setup_url_as(as.url, as.agent, a));
	return local_entry(e, as.agent);
}

/* The word where a value of this shape has its agent; anything if it has another shape. */
static struct str agent_in(const struct setup_entry *e, const json_t *v, struct arena *a)
{
	const json_t *hook = json_array_get(json_object_get(v, "hooks"), 0);
	struct str command;

	switch (e->shape) {
	case SHAPE_SERVER:
	case SHAPE_STDIO:
	case SHAPE_ENV:
		return json_text(json_array_get(json_object_get(v, "args"), 2));
	case SHAPE_COMMAND_LIST:
		return json_text(json_array_get(json_object_get(v, "command"), 3));
	case SHAPE_HOOK:
	case SHAPE_TOOL_HOOK:
		command = json_get(hook, "command");
		break;
	case SHAPE_CURSOR_HOOK:
		command = json_get(v, "command");
		break;
	default:
		return STR("");
	}
	if (!str_cut_prefix(&command, arena_printf(a, "pawl hook %s --agent ", e->text)))
		return STR("");
	return word_value(command, a);
}

static bool setup_entry_equals(const struct setup_entry *e, struct setup_as as, const json_t *v,
			       struct arena *a)
{
	json_t *made = setup_entry_make(e, as, a);
	bool same = json_equal(made, v);

	json_decref(made);
	return same;
}

bool setup_entry_is(const struct setup_entry *e, const json_t *v, struct setup_as *as,
		    struct arena *a)
{
	*as = (struct setup_as){
		.url = arena_str(a, json_get(v, e->http == HTTP_HTTPURL ? "httpUrl" : "url"))
	};
	if (!e->http || !as->url.n)
		*as = (struct setup_as){ .agent = arena_str(a, agent_in(e, v, a)) };
	return setup_entry_equals(e, *as, v, a);
}

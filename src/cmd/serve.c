/*
 * pawl serve: loads pawl-serve.so and serves the store over HTTP. A store that is itself a server
 * is refused.
 */
#include "cmd/cmd_modules.h"

#include "base/module.h"
#include "queue/remote_queue.h"

static const struct param params[] = {
	LOCAL(serve, listen, "listen", P_NAMES, .letter = 'l', .value = "ADDRESS",
	      .def = "127.0.0.1:7295", .help = "listen on HOST:PORT or unix:PATH; may be repeated"),
	LOCAL(serve, tls_cert, "tls-cert", P_TEXT, .flags = P_FILLED, .value = "FILE",
	      .help = "certificate (PEM) for https"),
	LOCAL(serve, tls_key, "tls-key", P_TEXT, .flags = P_FILLED, .value = "FILE",
	      .help = "key of the certificate (PEM)"),
	LOCAL(serve, auth, "auth", P_CHOICE, .choices = "token none", .value = "WAY",
	      .def = "token",
	      .help = "token: every caller needs a token; none: no token, on loopback only"),
	LOCAL(serve, behind_proxy, "behind-proxy", P_FLAG,
	      .help = "a proxy on this machine adds TLS and X-Forwarded-For"),
	LOCAL(serve, host_names, "host-name", P_NAMES, .value = "NAME",
	      .help = "accept requests for this host name; may be repeated"),
	LOCAL(serve, read_only, "read-only", P_FLAG, .help = "refuse every change"),
	LOCAL(serve, log, "log", P_CHOICE, .choices = "logfmt json none", .value = "FORM",
	      .def = "logfmt", .help = "form of the log on standard error: logfmt, json or none"),
	{ 0 }
};

static enum result serve_cmd_run(struct session *s, struct args *args, struct reply *out);

const struct command cmd_serve = {
	.name = "serve",
	.group = "setup",
	.summary = "serve the queues of the store over HTTP",
	.detail =
		"The server runs in the foreground until SIGTERM or SIGINT and works beside other pawl processes on the same "
		"store. Every caller needs a token of `pawl token create`; the first start makes one for an admin and keeps "
		"it in a file that only you can read. Any address besides loopback needs --tls-cert and --tls-key, or "
		"--behind-proxy. SIGHUP reloads the certificate, the tokens and the settings. The server answers POST /v1/COMMAND?queue=NAME with the "
		"JSON object of that command; /openapi.json describes all calls.",
	.example =
		"pawl serve\n"
		"pawl serve --listen 0.0.0.0:7295 --tls-cert cert.pem --tls-key key.pem --host-name "
		"queue.example.com\n"
		"pawl serve --listen unix:/run/pawl/pawl.sock",
	.see = "token create, mcp",
	.params = params,
	.args_size = sizeof(struct serve_args),
	.flags = C_WRITE | C_SHELL,
	.run = serve_cmd_run,
};

const struct serve_ops *serve_load(struct session *s, struct reply *out)
{
	const struct module *m;
	char why[300];
	int r = module_load("serve", STR(""), &m, why, sizeof(why));

	if (!r && m->serve)
		return m->serve;
	(void)run_fail(
		MISCONFIGURED,
		arena_printf(s->arena, "this command needs the module pawl-serve.so: %s%s",
			     r < 0 ? why : "it is not installed in ", r < 0 ? "" : module_dir()),
		STR("to install it: make install; PAWL_MODULE_DIR names another folder of modules"),
		out);
	return NULL;
}

enum result serve_with(struct session *s, const struct serve_args *a, struct reply *out)
{
	const struct serve_ops *ops;

	if (remote_is(s->client.conn.config.uri))
		return run_fail(
			MISCONFIGURED, STR("the store is a server already"),
			STR("serve the store itself, on the machine that has it; the web board is at the "
			    "server's address"),
			out);
	ops = serve_load(s, out);
	return ops ? ops->run(s, a, out) : out->ans.code;
}

static enum result serve_cmd_run(struct session *s, struct args *args, struct reply *out)
{
	return serve_with(s, (const struct serve_args *)args, out);
}

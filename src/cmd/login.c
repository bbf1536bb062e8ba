/*
 * pawl login: saves the token for a server. It saves only a token that the server accepted. It
 * refuses to send a token in clear text without --insecure.
 */
#include <errno.h>
#include <termios.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/text.h"
#include "client/bearer.h"
#include "cmd/command.h"
#include "core/role.h"
#include "queue/remote_queue.h"

struct login_args {
	struct args args;
	struct str url;
	int64_t forget, insecure;
};

static const struct param params[] = {
	LOCAL(login, url, "URL", P_TEXT, .flags = P_POSITIONAL | P_REQUIRED | P_FILLED,
	      .help = "the server, e.g. https://queue.example.com"),
	LOCAL(login, forget, "forget", P_FLAG, .help = "remove the saved token of this server"),
	LOCAL(login, insecure, "insecure", P_FLAG,
	      .help = "send the token without TLS, and without a proof of the server"),
	{ 0 }
};

static enum result login_run(struct session *s, struct args *args, struct reply *out);
static void login_show(const struct reply *r, struct view *v);

const struct command cmd_login = {
	.name = "login",
	.group = "setup",
	.summary = "save the token for a server",
	.detail =
		"Reads the token from the terminal, without showing it, or from standard input. It asks the server whether the "
		"token is valid, then saves it in a file that only you can read. pawl sends the token to this scheme, host and "
		"port only, and only after the server has proved itself: by TLS, by the owner of its Unix socket, or, on this "
		"machine, by proving that it knows the token. --insecure sends it all the same, for example through a tunnel. "
		"PAWL_SERVER_TOKEN and PAWL_SERVER_TOKEN_FILE take precedence. PAWL_SERVER_CA names a certificate "
		"to trust. After that, use the server as a store: --store URL, or pawl init --store URL.",
	.example = "pawl login https://queue.example.com\n"
		   "pawl login http://127.0.0.1:7295 <token.txt\n"
		   "pawl login https://queue.example.com --forget",
	.see = "token create, serve, init, doctor",
	.params = params,
	.args_size = sizeof(struct login_args),
	.flags = C_WRITE | C_IDEMPOTENT | C_LOCAL | C_SHELL,
	.fails = FAILS(NOT_FOUND),
	.run = login_run,
	.show = login_show,
};

#define TIMEOUT_MS 10000

/* --- reading the token ----------------------------------------------------------------------------- */

/* Reads one line of standard input. On a terminal it asks, and does not show the typed text. */
static struct str read_token(struct arena *a)
{
	struct termios shown, hidden;
	bool terminal = tcgetattr(STDIN_FILENO, &shown) == 0;
	struct buf b = BUF_MAX(4096);
	struct str out;
	char c;

	if (terminal) {
		hidden = shown;
		hidden.c_lflag &= ~(tcflag_t)ECHO;
		tty_print(STDERR_FILENO, "token: ");
		(void)tcsetattr(STDIN_FILENO, TCSAFLUSH, &hidden);
	}
	while (!b.full && read(STDIN_FILENO, &c, 1) == 1 && c != '\n')
		buf_addc(&b, c);
	if (terminal) {
		(void)tcsetattr(STDIN_FILENO, TCSAFLUSH, &shown);
		tty_print(STDERR_FILENO, "\n");
	}
	out = str_trim(arena_str(a, buf_str(&b)));
	buf_free(&b);
	return out;
}

/* --- asking the server ------------------------------------------------------------------------------ */

struct trial {
	struct str token;
	bool insecure;
};

static enum result this_token(void *ctx, struct str origin, struct str *token, bool *insecure,
			      struct answer *ans, struct arena *a)
{
	const struct trial *t = ctx;

	(void)origin;
	(void)ans;
	*token = arena_str(a, t->token);
	*insecure = t->insecure;
	return SUCCESS;
}

/* Does the server accept the token? */
static enum result try_token(struct session *s, struct str origin, struct trial *t,
			     struct frame_facts *f, struct answer *ans)
{
	struct queue_config config = { .uri = origin,
				       .opt = { .queue = s->client.said.queue,
						.timeout_ms = TIMEOUT_MS },
				       .bearer = this_token,
				       .bearer_ctx = t,
				       .ca_file = login_ca_file() };
	struct queue *q;
	enum result code = queue_open(&q, &config, STORE_READ, ans, s->arena);

	if (code != SUCCESS)
		return code;
	code = queue_facts(q, f, ans, s->arena);
	queue_close(q);
	return code;
}

/* --- the command ------------------------------------------------------------------------------------ */

static enum result login_cannot(struct session *s, struct str origin, int r, struct reply *out)
{
	const char *file = login_file(origin, s->arena);
	struct answer ans = { .applied = 'n' };

	if (r == -ENOENT && file)
		return run_fail(
			NOT_FOUND,
			arena_printf(s->arena, "there is no saved token for %.*s", STRF(origin)),
			STR(""), out);
	answer_fail(&ans, API_ERROR,
		    arena_printf(s->arena, "cannot keep the token in %s: %s",
				 file ? file : "a home folder",
				 file ? strerror(-r) : "there is none"),
		    STR("set XDG_STATE_HOME to a folder that you own, or use PAWL_SERVER_TOKEN"));
	return run_answer(&ans, out);
}

static enum result login_save_token(struct session *s, struct str origin, bool insecure,
				    struct reply *out)
{
	struct trial t = { .insecure = insecure };
	struct answer ans = { 0 };
	struct frame_facts f;
	json_t *more;
	int r;

	if (login_in_clear(origin) && !insecure) {
		login_refuse(origin, &ans, s->arena);
		return run_answer(&ans, out);
	}
	t.token = read_token(s->arena);
	if (!login_valid(t.token))
		return run_fail(USAGE, STR("there is no token on standard input"),
				STR("type it, or: pawl login URL <FILE"), out);
	if (try_token(s, origin, &t, &f, &ans) != SUCCESS)
		return run_answer(&ans, out);
	r = login_save(origin, t.token, insecure, s->arena);
	if (r)
		return login_cannot(s, origin, r, out);
	more = reply_more(out);
	json_object_set_new(more, "name", json_str(f.token));
	json_object_set_new(more, "role", json_string(role_name((enum role)f.role)));
	json_object_set_new(more, "agents", json_str(f.agents));
	if (insecure)
		json_object_set_new(more, "insecure", json_true());
	return SUCCESS;
}

static enum result login_run(struct session *s, struct args *args, struct reply *out)
{
	const struct login_args *a = (const struct login_args *)args;
	const struct remote_ops *far;
	struct answer ans = { 0 };
	struct str origin;
	char why[400];
	enum result code = SUCCESS;
	int r = 0;

	if (!remote_is(a->url))
		return run_fail(USAGE,
				arena_printf(s->arena,
					     "'%s' is not a server: use http://HOST:PORT, "
					     "https://HOST or unix:PATH",
					     arena_cstr(s->arena, text_line(s->arena, a->url))),
				STR(""), out);
	far = remote_load(&ans, s->arena);
	if (!far)
		return run_answer(&ans, out);
	origin = far->origin(a->url, why, sizeof(why), s->arena);
	if (!origin.n)
		return run_fail(USAGE, arena_str(s->arena, str_c(why)), STR(""), out);
	if (a->forget)
		r = login_forget(origin, s->arena);
	else
		code = login_save_token(s, origin, a->insecure, out);
	if (r)
		return login_cannot(s, origin, r, out);
	if (code == SUCCESS)
		json_object_set_new(reply_more(out), "server", json_str(origin));
	return code;
}

static void login_show(const struct reply *r, struct view *v)
{
	const json_t *o = r->more;

	if (v->quiet)
		return;
	if (!json_get(o, "role").n) {
		view_text(v, PLAIN, "removed the saved token of ");
		view_data(v, BOLD, json_get(o, "server"));
		view_text(v, PLAIN, "\n");
		return;
	}
	view_text(v, GREEN, "saved");
	view_text(v, PLAIN, " the token ");
	view_data(v, BOLD, json_get(o, "name"));
	view_text(v, PLAIN, " for ");
	view_data(v, PLAIN, json_get(o, "server"));
	view_text(v, DIM, " (role %s; calls must be those of the agent ", json_get(o, "role").p);
	view_data(v, DIM, json_get(o, "agents"));
	view_text(v, DIM, ": PAWL_AGENT)\n");
	if (json_is_true(json_object_get(o, "insecure")))
		view_text(v, YELLOW,
			  "pawl sends it there without TLS, and without a proof of the server\n");
}

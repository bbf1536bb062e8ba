/*
 * One command line from start to exit: parse, find the client, ask for trust, run, print. The exit
 * code is the answer's code, unless the command sets another. An answer that could not be written
 * is a failure.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fs.h"
#include "base/text.h"
#include "client/caller.h"
#include "face/cli/cli.h"
#include "face/gen/gen.h"
#include "face/mcp/mcp.h"

struct cli {
	enum client_face face;
	struct parsed parsed;
	struct session session;
	struct output output;
	struct arena arena;
};

/* Opens /dev/null for each standard descriptor that the caller closed. Otherwise the next opened
 * file would get its number, and our messages could be written into a database. The replacement is
 * not writable, so a lost message is noticed. */
static void hold_standard_files(void)
{
	for (int fd = 0; fd <= 2; fd++)
		if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
			(void)!open("/dev/null", O_RDONLY);
}

static const struct settings *cli_settings(const struct cli *c)
{
	return &c->session.client.conn.settings;
}

static void cli_find_output(struct cli *c)
{
	output_find(&c->output, &c->parsed, cli_settings(c));
}

/* --- running -------------------------------------------------------------------------------------- */

static bool cli_emit(struct session *s, const struct event *e)
{
	struct cli *c = s->face;
	struct arena scratch = { 0 };

	cli_find_output(c);
	output_event(&c->output, e, &scratch);
	arena_free(&scratch);
	return !c->output.fault;
}

/* Detects a pipe without a reader, which no failed write would show in a quiet queue. */
static bool cli_listening(struct session *s)
{
	struct cli *c = s->face;
	struct pollfd out = { .fd = STDOUT_FILENO };

	if (poll(&out, 1, 0) > 0 && out.revents & (POLLERR | POLLHUP))
		c->output.fault = EPIPE;
	return !c->output.fault;
}

/* Overwrites one line of the terminal, only if a person watches it. */
static void show_progress(struct session *s, struct str line)
{
	struct cli *c = s->face;
	struct arena scratch = { 0 };
	struct winsize size;

	cli_find_output(c);
	if (c->output.format != FORMAT_TEXT || c->output.quiet)
		return;
	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1)
		line = text_cut(&scratch, text_line(&scratch, line), size.ws_col - 1u);
	tty_line(line);
	arena_free(&scratch);
}

static void cli_note(struct session *s, struct str text)
{
	struct cli *c = s->face;
	struct arena scratch = { 0 };

	cli_find_output(c);
	if (c->output.format == FORMAT_TEXT && !c->output.quiet)
		tty_print(STDERR_FILENO, "pawl: %s\n",
			  arena_cstr(&scratch, text_line(&scratch, text)));
	arena_free(&scratch);
}

static int cli_confirm(struct session *s, const struct command *command,
		       const struct reply *preview)
{
	struct cli *c = s->face;

	cli_find_output(c);
	if (c->output.format != FORMAT_TEXT || !isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return -1;
	output_preview(&c->output, command, preview, &c->arena);
	tty_print(STDERR_FILENO, "Continue? [y/N] ");
	return consent_read(STDIN_FILENO);
}

/* Asks whether to try again. Enter means yes. */
static bool cli_again(struct session *s, struct str problem)
{
	struct cli *c = s->face;
	struct arena scratch = { 0 };
	char word[16] = "";

	cli_find_output(c);
	if (c->output.format != FORMAT_TEXT || !isatty(STDIN_FILENO) || !isatty(STDERR_FILENO))
		return false;
	tty_print(STDERR_FILENO, "pawl: %s\nEdit the text again? [Y/n] ",
		  arena_cstr(&scratch, text_line(&scratch, problem)));
	arena_free(&scratch);
	return fgets(word, sizeof(word), stdin) && word[0] != 'n' && word[0] != 'N';
}

static enum result cli_consent(struct session *s, const struct trust *t, struct answer *ans)
{
	return consent_ask(t, ans, s->arena);
}

const struct global_args *cli_global(const struct session *s)
{
	const struct cli *c = s->face;

	return &c->parsed.global;
}

static struct client_options cli_said(const struct cli *c)
{
	const struct global_args *g = &c->parsed.global;

	return (struct client_options){ .face = c->face,
					.store = g->store,
					.queue = g->queue,
					.agent = g->agent,
					.run = g->run,
					.timeout = g->timeout,
					.dir = g->dir };
}

/* Asks only once, because the answer is remembered. A command that informs an agent about the queue
 * never waits for a person. */
static enum result ask_for_trust(struct cli *c, const struct command *command, struct answer *ans)
{
	struct session *s = &c->session;
	struct client_options options = cli_said(c);
	const struct trust *t = &s->client.conn.trust;

	if (t->state != TRUST_MISSING || t->agent || command == &cmd_prime ||
	    !isatty(STDIN_FILENO) || !isatty(STDERR_FILENO))
		return SUCCESS;
	if (consent_ask(t, ans, &c->arena) != SUCCESS)
		return ans->code;
	if (trust_give(t, &c->arena))
		return trust_check(t, ans, &c->arena);
	return client_init(&s->client, &options, ans, &c->arena);
}

static enum result cli_run_command(struct cli *c, const struct command *command, struct reply *out)
{
	struct session *s = &c->session;
	struct client_options options = cli_said(c);
	struct answer ans = { 0 };

	s->client.said = options;
	if (!(command->flags & C_LOCAL) &&
	    (client_init(&s->client, &options, &ans, &c->arena) != SUCCESS ||
	     ask_for_trust(c, command, &ans) != SUCCESS))
		return run_answer(&ans, out);
	cli_find_output(c);
	s->people = c->output.format == FORMAT_TEXT;
	s->decisions = c->output.format == FORMAT_JSON;
	s->color = c->output.color;
	s->owns_stdout = !s->people;
	s->complete = s->quiet || c->output.format == FORMAT_PORCELAIN;
	return command_run(command, s, c->parsed.args, out);
}

/* --help after a command shows the help of that command. */
static void ask_for_help(struct cli *c)
{
	struct parsed *p = &c->parsed;
	struct str rest = str_c(p->command ? p->command->name : p->prefix);

	parsed_become(p, &cmd_help, &c->arena);
	while (rest.n)
		(void)param_set(p->args, &cmd_help.params[0], str_cut(&rest, ' '), &c->arena);
}

/* `pawl` alone shows the overview inside a queue, and help elsewhere. */
static enum result run_alone(struct cli *c, struct reply *out)
{
	struct client_options options = cli_said(c);
	struct answer ans = { 0 };
	enum result code = client_init(&c->session.client, &options, &ans, &c->arena);

	if (code == SUCCESS)
		code = ask_for_trust(c, &cmd_status, &ans);
	if (code != SUCCESS) {
		c->parsed.command = &cmd_status;
		return run_answer(&ans, out);
	}
	parsed_become(&c->parsed, c->session.client.conn.trust.uri.n ? &cmd_status : &cmd_help,
		      &c->arena);
	return command_run(c->parsed.command, &c->session, c->parsed.args, out);
}

static enum result cli_answer(struct cli *c, struct reply *out)
{
	struct parsed *p = &c->parsed;

	if (p->code != SUCCESS)
		return run_fail(p->code, p->message, p->hint, out);
	if (p->global.help)
		ask_for_help(c);
	else if (p->global.version)
		parsed_become(p, &cmd_version, &c->arena);
	return p->command ? cli_run_command(c, p->command, out) : run_alone(c, out);
}

/* `status ID` only reads, so it prints the lines of `show`. */
static const struct command *shown_as(const struct cli *c)
{
	bool checks = c->parsed.command == &cmd_status && c->parsed.args->rq.op == OP_SHOW;

	return checks && c->output.format == FORMAT_PORCELAIN ? &cmd_show : c->parsed.command;
}

/* An answer that was not written was not received: the caller must not mistake its beginning for
 * the whole answer. */
static int cli_end(const struct cli *c, enum result code)
{
	int fault = c->output.fault;

	if (!fault)
		return c->session.exit_code ? c->session.exit_code : (int)code;
	if (fault != EPIPE)
		tty_print(STDERR_FILENO,
			  "pawl: cannot write the answer: %s; the call itself ended with %s\n",
			  strerror(fault), result_name(code));
	return API_ERROR;
}

int cli_run(int argc, const char *const *argv, enum client_face face)
{
	struct cli c = { .face = face,
			 .session = { .emit = cli_emit,
				      .listening = cli_listening,
				      .note = cli_note,
				      .confirm = cli_confirm,
				      .again = cli_again,
				      .consent = cli_consent,
				      .help = help_topic,
				      .completion = gen_completion,
				      .mcp = mcp_stdio } };
	struct reply reply = { 0 };
	enum result code;
	int exit_code;

	if (isatty(STDERR_FILENO))
		c.session.progress = show_progress;
	if (face != CLIENT_PROMPT)
		c.session.prompt = prompt_run;
	c.session.may_fork = true;
	c.session.arena = &c.arena;
	c.session.face = &c;
	c.session.executable = argc > 0 ? argv[0] : "pawl";
	parse(&c.parsed, argc, argv, &c.arena);
	c.session.quiet = c.parsed.global.quiet;
	code = cli_answer(&c, &reply);
	cli_find_output(&c);
	c.output.color_err = c.output.format != FORMAT_JSON &&
			     (code != SUCCESS || reply.ans.warnings.n || reply.warnings.n) &&
			     output_has_color(&c.parsed, cli_settings(&c), STDERR_FILENO);
	output_reply(&c.output, shown_as(&c), &reply, &c.arena);
	exit_code = cli_end(&c, code);
	reply_free(&reply);
	client_close(&c.session.client);
	arena_free(&c.arena);
	return exit_code;
}

int cli_main(int argc, char **argv)
{
	hold_standard_files();
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ,
	       SIG_IGN); /* the error of a failed write says more than a death by SIGPIPE */
	return cli_run(argc, (const char *const *)argv, CLIENT_COMMAND);
}

/* --- words of a command line ------------------------------------------------------------------ */

/*
 * Splits a line into words. Nothing is expanded. A NUL follows each word, so that it can become an
 * argument of a command.
 */

static bool words_blank(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

/* In "…" a backslash escapes only '"' and '\'. */
static bool words_escapes(char quote, char next)
{
	return quote == '\0' || (quote == '"' && (next == '"' || next == '\\'));
}

/* Appends the word at `at` to `b`; returns its end. */
static size_t take_word(struct words *w, struct str line, size_t at, struct buf *b)
{
	char quote = '\0';

	for (; at < line.n && (quote || !words_blank(line.p[at])); at++) {
		char c = line.p[at], next = at + 1 < line.n ? line.p[at + 1] : '\0';

		if (c == '\\' && words_escapes(quote, next)) {
			w->open = at + 1 == line.n;
			if (++at < line.n)
				buf_addc(b, next);
		} else if (quote ? c == quote : c == '\'' || c == '"') {
			quote = quote ? '\0' : c;
		} else {
			buf_addc(b, c);
		}
	}
	w->open = w->open || quote;
	return at < line.n ? at : line.n;
}

void words_split(struct words *w, struct str line, struct arena *a)
{
	size_t at = 0;

	*w = (struct words){ 0 };
	for (;;) {
		struct buf b = BUF_MAX(line.n + 1);

		while (at < line.n && words_blank(line.p[at]))
			at++;
		w->last = at;
		if (at == line.n)
			break;
		at = take_word(w, line, at, &b);
		w->list = arena_append(a, w->list, arena_str(a, buf_str(&b)));
		buf_free(&b);
		if (at == line.n)
			break;
	}
}

/* --- trouble ---------------------------------------------------------------------------------- */

/*
 * Finds an entry of doc/troubleshooting.md. The build embeds the text, so `pawl help CODE` works
 * without the page.
 */

/* The level of a heading: 2 for "## CONFLICT", 0 for other lines. *name: the heading's text. */
static size_t trouble_heading(struct str line, struct str *name)
{
	size_t n = 0;

	while (n < line.n && line.p[n] == '#')
		n++;
	*name = str_trim(str_n(line.p + n, line.n - n));
	return n;
}

bool trouble_topic(struct buf *out, struct str topic)
{
	struct str rest = str_c(trouble_text), name;
	size_t level = 0;

	while (rest.n) {
		struct str line = str_cut(&rest, '\n');
		size_t n = trouble_heading(line, &name);

		if (level && n && n <= level)
			break;
		if (!level && n > 1 && str_eq_nocase(name, topic))
			level = n;
		if (level) {
			buf_adds(out, n ? name : line);
			buf_addc(out, '\n');
		}
	}
	return level;
}

/* --- consent ---------------------------------------------------------------------------------- */

/*
 * Asks a person whether to trust a config. The question and its answer go through /dev/tty, so that
 * neither a pipe nor a redirection can answer, and text that was typed before the question does not
 * count. A coding agent that pawl recognises is refused. A program with the user's own rights can
 * still get around this, because it can create a terminal.
 */

/* Shows the file first, and last the lines that need trust: a long file cannot push them off the
 * screen. */
static void show_config(int tty, const struct trust *t, struct arena *a)
{
	struct str rest = t->text;
	struct buf b = BUF_MAX(1 << 20);
	int line = 0;

	buf_addf(
		&b,
		"pawl: this config may have come with a clone, and nobody has trusted it yet.\n\n%s:\n",
		arena_cstr(a, text_line(a, str_c(t->config))));
	while (rest.n) {
		buf_addf(&b, "%6d  ", ++line);
		text_visible(&b, str_cut(&rest, '\n'), false);
		buf_addc(&b, '\n');
	}
	buf_addf(&b, "\nIt asks for your trust with\n  %s\nTrust it? [y/N] ",
		 arena_cstr(a, trust_reasons(t, "\n  ", a)));
	(void)fs_write_all(tty, buf_str(&b));
	buf_free(&b);
}

bool consent_read(int tty)
{
	char word[16];
	ssize_t n = read(tty, word, sizeof(word));

	return n > 0 && (word[0] == 'y' || word[0] == 'Y');
}

enum result consent_ask(const struct trust *t, struct answer *ans, struct arena *a)
{
	struct str why;
	bool yes;
	int tty;

	if (caller_is_agent(&why, a))
		return trust_refuse(why, ans, a);
	tty = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (tty < 0)
		return trust_refuse(STR("this call has no terminal"), ans, a);
	(void)tcflush(tty, TCIFLUSH);
	show_config(tty, t, a);
	yes = consent_read(tty);
	close(tty);
	return yes ? SUCCESS : trust_check(t, ans, a);
}

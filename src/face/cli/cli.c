#include "face/cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/text.h"
#include "face/cli/parse.h"
#include "face/gen/gen.h"
#include "face/mcp/mcp.h"

struct cli {
	enum client_face face;
	struct parsed parsed;
	struct session session;
	struct output output;
	struct arena arena;
};

/* A descriptor that the caller closed would be given to the next file that is opened: a database must
 * not get our messages. What stands in for it cannot be written to, so that nothing is lost unnoticed. */
static void hold_standard_files(void)
{
	for (int fd = 0; fd <= 2; fd++)
		if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
			(void)!open("/dev/null", O_RDONLY);
}

/* --- the form of the output ----------------------------------------------------------------------- */

static struct str configured(const struct cli *c, const char *name, const char *variable)
{
	if (c->session.client.settings.values)
		return settings_text(&c->session.client.settings, name);
	return str_c(getenv(variable));
}

static enum format find_format(const struct cli *c)
{
	const struct global *g = &c->parsed.args.global;
	struct str word = g->format;

	if (g->json || (c->parsed.json && !g->porcelain && !word.n))
		return FORMAT_JSON;
	if (g->porcelain || (c->parsed.porcelain && !word.n))
		return FORMAT_PORCELAIN;
	if (!word.n)
		word = configured(c, "format", "PAWL_FORMAT");
	return str_is(word, "json")        ? FORMAT_JSON
	       : str_is(word, "porcelain") ? FORMAT_PORCELAIN
					   : FORMAT_TEXT;
}

static bool find_color(const struct cli *c, int fd)
{
	const struct global *g = &c->parsed.args.global;
	const char *none = getenv("NO_COLOR"), *term = getenv("TERM");
	struct str word = g->no_color ? STR("never") : g->color;

	if (!word.n && none && *none)
		return false;
	if (!word.n)
		word = configured(c, "color", "PAWL_COLOR");
	if (str_is(word, "always") || str_is(word, "never"))
		return str_is(word, "always");
	return isatty(fd) && term && strcmp(term, "dumb") != 0;
}

static void find_output(struct cli *c)
{
	struct output *o = &c->output;
	struct winsize size;

	o->format = find_format(c);
	o->quiet = c->parsed.args.global.quiet;
	if (o->format != FORMAT_TEXT)
		return;
	o->color = find_color(c, STDOUT_FILENO);
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0)
		o->width = size.ws_col;
}

/* --- running -------------------------------------------------------------------------------------- */

static bool emit(struct session *s, const struct command *command, json_t *object)
{
	struct cli *c = s->face;
	struct arena scratch = { 0 };

	find_output(c);
	output_one(&c->output, command, object, &scratch);
	arena_free(&scratch);
	return !c->output.fault;
}

/* A pipe without a reader: a quiet queue would never write to it, and so never notice. */
static bool listening(struct session *s)
{
	struct cli *c = s->face;
	struct pollfd out = { .fd = STDOUT_FILENO };

	if (poll(&out, 1, 0) > 0 && out.revents & (POLLERR | POLLHUP))
		c->output.fault = EPIPE;
	return !c->output.fault;
}

/* In one line that is written over; only where a person looks at it. */
static void show_progress(struct session *s, struct str line)
{
	struct cli *c = s->face;
	struct arena scratch = { 0 };
	struct winsize size;
	struct str text;

	find_output(c);
	if (c->output.format != FORMAT_TEXT || c->output.quiet)
		return;
	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1)
		line = text_cut(&scratch, line, size.ws_col - 1u);
	text = arena_printf(&scratch, "\r\x1b[K%.*s", STRF(line));
	(void)fs_write_all(STDERR_FILENO, text);
	arena_free(&scratch);
}

static void note(struct session *s, struct str text)
{
	struct cli *c = s->face;
	struct buf b = BUF_MAX(64 * 1024);

	find_output(c);
	if (c->output.format == FORMAT_TEXT && !c->output.quiet) {
		buf_adds(&b, STR("pawl: "));
		text_visible(&b, text, false);
		buf_addc(&b, '\n');
		(void)fs_write_all(STDERR_FILENO, buf_str(&b));
	}
	buf_free(&b);
}

static bool read_yes(void)
{
	char word[16] = "", *at = fgets(word, sizeof(word), stdin);

	return at && (word[0] == 'y' || word[0] == 'Y');
}

static int confirm(struct session *s, const struct command *command, const json_t *object)
{
	struct cli *c = s->face;

	find_output(c);
	if (c->output.format != FORMAT_TEXT || !isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return -1;
	output_one(&c->output, command, object, &c->arena);
	fputs("Go on? [y/N] ", stderr);
	return read_yes();
}

static struct client_options said(const struct cli *c)
{
	const struct global *g = &c->parsed.args.global;

	return (struct client_options){ .face = c->face,
					.store = g->store,
					.queue = g->queue,
					.agent = g->agent,
					.run = g->run,
					.timeout = g->timeout,
					.dir = g->dir };
}

static enum result run(struct cli *c, const struct command *command, json_t **out)
{
	struct session *s = &c->session;
	struct client_options options = said(c);
	struct answer ans = { 0 };

	s->client.said = options;
	if (!(command->flags & C_LOCAL) &&
	    client_init(&s->client, &options, &ans, &c->arena) != SUCCESS)
		return run_answer(&ans, &c->arena, out);
	find_output(c);
	s->owns_stdout = c->output.format != FORMAT_TEXT;
	return command->run ? command->run(s, &c->parsed.args, out)
			    : run_op(s, &c->parsed.args, out);
}

/* --help behind a command is about that command. */
static void ask_for_help(struct cli *c)
{
	struct parsed *p = &c->parsed;
	struct strs topic = { 0 };
	struct str rest = str_c(p->command ? p->command->name : p->prefix);

	if (p->command == &cmd_help)
		rest = STR("help");
	while (rest.n)
		topic = arena_append(&c->arena, topic, arena_str(&c->arena, str_cut(&rest, ' ')));
	p->args.words = topic;
	p->command = &cmd_help;
}

/* `pawl` alone: the overview inside a queue, help elsewhere. */
static enum result run_alone(struct cli *c, json_t **out)
{
	struct client_options options = said(c);
	struct answer ans = { 0 };
	enum result code = client_init(&c->session.client, &options, &ans, &c->arena);

	if (code != SUCCESS) {
		c->parsed.command = &cmd_status;
		return run_answer(&ans, &c->arena, out);
	}
	c->parsed.command = c->session.client.uri.n ? &cmd_status : &cmd_help;
	return c->parsed.command->run(&c->session, &c->parsed.args, out);
}

static enum result answer(struct cli *c, json_t **out)
{
	struct parsed *p = &c->parsed;

	if (p->code != SUCCESS) {
		struct answer ans = { 0 };

		answer_fail(&ans, p->code, p->message, p->hint);
		return run_answer(&ans, &c->arena, out);
	}
	if (p->args.global.help)
		ask_for_help(c);
	else if (p->args.global.version)
		p->command = &cmd_version;
	return p->command ? run(c, p->command, out) : run_alone(c, out);
}

/* `status ID` only looks: its lines are those of `show`. */
static const struct command *shown_as(const struct cli *c)
{
	bool looks = c->parsed.command == &cmd_status && c->parsed.args.rq.op == OP_SHOW;

	return looks && c->output.format == FORMAT_PORCELAIN ? &cmd_show : c->parsed.command;
}

/* What could not be written was not received: the caller must not take it for an answer. */
static int end(const struct cli *c, enum result code)
{
	int fault = c->output.fault;

	if (!fault)
		return c->session.exit_code ? c->session.exit_code : (int)code;
	if (fault != EPIPE)
		fprintf(stderr,
			"pawl: the answer cannot be written: %s; the call itself ended with %s\n",
			strerror(fault), result_name(code));
	return API_ERROR;
}

int cli_run(int argc, const char *const *argv, enum client_face face)
{
	struct cli c = { .face = face,
			 .session = { .emit = emit,
				      .listening = listening,
				      .note = note,
				      .confirm = confirm,
				      .help = help_topic,
				      .completion = gen_completion,
				      .mcp = mcp_stdio } };
	json_t *object = NULL;
	enum result code;
	int exit_code;

	if (isatty(STDERR_FILENO))
		c.session.progress = show_progress;
	if (face != CLIENT_PROMPT)
		c.session.prompt = prompt_run;
	c.session.arena = &c.arena;
	c.session.face = &c;
	c.session.executable = argc > 0 ? argv[0] : "pawl";
	parse(&c.parsed, argc, argv, &c.arena);
	code = answer(&c, &object);
	find_output(&c);
	c.output.color_err = c.output.format != FORMAT_JSON &&
			     (code != SUCCESS || json_object_get(object, "warnings")) &&
			     find_color(&c, STDERR_FILENO);
	output_answer(&c.output, shown_as(&c), code, object, &c.arena);
	exit_code = end(&c, code);
	json_decref(object);
	client_close(&c.session.client);
	arena_free(&c.arena);
	return exit_code;
}

int cli_main(int argc, char **argv)
{
	hold_standard_files();
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* a write that fails says more than a death */
	return cli_run(argc, (const char *const *)argv, CLIENT_COMMAND);
}

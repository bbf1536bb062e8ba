/*
 * `pawl interactive`: each line is a command line of its own and runs in its own process. So
 * nothing stays open while the user thinks, Ctrl-C ends a command and not the prompt, and a line
 * behaves as in a shell.
 */
#include "face/cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/module.h"
#include "base/text.h"
#include "cmd/completion.h"

struct prompt {
	struct session *session;
	const struct editor_ops *ops;
	struct editor *editor; /* NULL: lines come from standard input, without an editor */
	struct editor_host host;
	char *buffer; /* for getline() */
	size_t room;
	int line, failed; /* the number of the line; the exit code of the first line that failed */
	bool terminal;
};

/* --- options of `interactive` apply to every command -------------------------------------------- */

static void prompt_export(const char *name, struct str value)
{
	struct arena a = { 0 };

	if (value.n)
		setenv(name, arena_cstr(&a, value), 1);
	arena_free(&a);
}

static void export_all(const struct global_args *g)
{
	prompt_export("PAWL_STORE", g->store);
	prompt_export("PAWL_QUEUE", g->queue);
	prompt_export("PAWL_AGENT", g->agent);
	prompt_export("PAWL_RUN", g->run);
	prompt_export("PAWL_TIMEOUT", g->timeout);
	prompt_export("PAWL_FORMAT", g->json        ? STR("json")
				     : g->porcelain ? STR("porcelain")
						    : g->format);
	prompt_export("PAWL_COLOR", g->no_color ? STR("never") : g->color);
}

static enum result prompt_enter(struct session *s, const struct args *a, struct reply *out)
{
	struct client_options said = s->client.said;
	struct answer ans = { 0 };

	if (a->rq.has)
		return run_fail(USAGE, STR("--token and --request-id apply to one call"),
				STR("give them with a command at the prompt"), out);
	if (client_init(&s->client, &said, &ans, s->arena) != SUCCESS)
		return run_answer(&ans, out);
	if (said.dir.n && chdir(s->client.conn.config.opt.dir))
		return run_fail(USAGE,
				arena_printf(s->arena, "cannot go to %s: %s",
					     s->client.conn.config.opt.dir, strerror(errno)),
				STR(""), out);
	export_all(cli_global(s));
	return SUCCESS;
}

/* --- completion ----------------------------------------------------------------------------------- */

static struct strs prompt_complete(void *ctx, struct str line, size_t *from, struct arena *a)
{
	struct client_options said = { .face = CLIENT_PROMPT };

	(void)ctx;
	return complete_line(line, from, values_of, &said, a);
}

/* --- one line ------------------------------------------------------------------------------------- */

/* Replaces standard input, so that the command does not read the next lines of the script. */
static void close_input(void)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	if (fd >= 0)
		(void)dup2(fd, STDIN_FILENO);
}

static int run_child(const struct prompt *p, const char **argv, int argc)
{
	int status;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid < 0) {
		tty_print(STDERR_FILENO, "pawl: cannot start a process: %s\n", strerror(errno));
		return API_ERROR;
	}
	if (pid == 0) {
		if (!p->terminal)
			close_input();
		signal(SIGINT, SIG_DFL);
		signal(SIGQUIT, SIG_DFL);
		_exit(cli_run(argc, argv, CLIENT_PROMPT));
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	if (p->terminal)
		tty_print(STDOUT_FILENO, "\n"); /* ends the line with the ^C */
	return 128 + WTERMSIG(status);
}

static int prompt_usage(struct str line, const char *message)
{
	struct arena a = { 0 };

	tty_print(STDERR_FILENO, "pawl: %s: %s\n", message,
		  arena_cstr(&a, text_cut(&a, text_line(&a, line), 60)));
	arena_free(&a);
	return USAGE;
}

static int run_words(const struct prompt *p, struct strs words, struct arena *a)
{
	const char **argv = arena_array(a, const char *, words.n + 2);
	size_t skip = str_is(words.v[0], "pawl") ? 1 : 0;
	int argc = 0;

	argv[argc++] = p->session->executable;
	for (size_t i = skip; i < words.n; i++)
		argv[argc++] = words.v[i].p;
	return run_child(p, argv, argc);
}

static bool prompt_leaves(struct strs words)
{
	return words.n == 1 && (str_is(words.v[0], "exit") || str_is(words.v[0], "quit"));
}

/* At a terminal, `clear` alone clears the screen, as in a shell; `clear --yes` removes the
 * tasks. */
static bool clears_screen(const struct prompt *p, struct strs words)
{
	return p->terminal && words.n == 1 && str_is(words.v[0], "clear");
}

/* Runs the line. false: it was the last one. */
static bool run_line(struct prompt *p, struct str line)
{
	struct arena a = { 0 };
	struct words w;
	int code = 0;
	bool more;

	line = str_trim(line);
	words_split(&w, line, &a);
	more = !prompt_leaves(w.list);
	if (!w.list.n || line.p[0] == '#')
		;
	else if (w.open)
		code = prompt_usage(line, "a quote is not closed, or nothing follows a \\");
	else if (!text_valid(line))
		code = prompt_usage(line, "this line is not valid UTF-8");
	else if (clears_screen(p, w.list))
		tty_clear();
	else if (more)
		code = run_words(p, w.list, &a);
	if (code && !p->terminal)
		p->session->note(p->session,
				 arena_printf(&a, "line %d failed with %d: %s", p->line, code,
					      arena_cstr(&a, text_cut(&a, line, 60))));
	if (code && !p->failed)
		p->failed = code;
	arena_free(&a);
	return more;
}

/* --- lines ---------------------------------------------------------------------------------------- */

static enum line_end read_plain(struct prompt *p, struct str *line)
{
	ssize_t n;

	if (p->terminal)
		tty_print(STDOUT_FILENO, "%s", p->host.prompt);
	n = getline(&p->buffer, &p->room, stdin);
	if (n < 0)
		return LINE_NONE;
	*line = str_n(p->buffer, (size_t)n);
	return LINE_WHOLE;
}

static enum line_end read_edited(struct prompt *p, struct str *line)
{
	enum line_end got = p->ops->read(p->editor, line);
	struct arena a = { 0 };

	if (got == LINE_NONE)
		tty_print(STDOUT_FILENO, "\n");
	if (got == LINE_WHOLE && str_trim(*line).n && !recall_secret(*line)) {
		p->ops->remember(p->editor, arena_cstr(&a, *line));
		recall_add(&p->session->client.keyring, *line);
	}
	arena_free(&a);
	return got;
}

static void read_all(struct prompt *p)
{
	struct str line = STR("");
	enum line_end got;

	do {
		p->line++;
		got = p->editor ? read_edited(p, &line) : read_plain(p, &line);
	} while (got == LINE_DROPPED || (got == LINE_WHOLE && run_line(p, line)));
	free(p->buffer);
}

/* --- the editor ----------------------------------------------------------------------------------- */

static void remember_all(struct prompt *p)
{
	struct arena a = { 0 };
	struct strs lines = recall_load(&p->session->client.keyring, &a);

	for (size_t i = 0; i < lines.n; i++)
		p->ops->remember(p->editor, lines.v[i].p);
	arena_free(&a);
}

static void open_editor(struct prompt *p)
{
	const struct module *m;
	char why[300];
	int r = module_load("face", STR("interactive"), &m, why, sizeof(why));

	if (!r && m->editor) {
		p->ops = m->editor;
		p->editor = p->ops->open(&p->host);
	}
	if (p->editor)
		remember_all(p);
	else
		p->session->note(p->session,
				 arena_printf(p->session->arena,
					      "history and completion are off: %s in %s",
					      r < 0 ? why : "there is no pawl-face-interactive.so",
					      module_dir()));
}

static void prompt_welcome(const struct session *s)
{
	if (s->client.conn.config.uri.n)
		tty_print(STDOUT_FILENO, "%s, as %.*s\n",
			  arena_cstr(s->arena, uri_shown(s->arena, s->client.conn.config.uri)),
			  STRF(s->client.self.agent));
	else if (s->client.conn.trust.uri.n)
		tty_print(
			STDOUT_FILENO,
			"the queue's config is not trusted; a person can allow its store with `trust`\n");
	else
		tty_print(STDOUT_FILENO, "there is no queue here; `init` makes one\n");
	tty_print(STDOUT_FILENO, "TAB completes, `help` lists the commands, Ctrl-D leaves\n");
}

enum result prompt_run(struct session *s, const struct args *a, struct reply *out)
{
	struct prompt p = { .session = s,
			    .host = { .prompt = "pawl> ", .complete = prompt_complete },
			    .terminal = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) };
	enum result code = prompt_enter(s, a, out);

	if (code != SUCCESS)
		return code;
	if (p.terminal) {
		signal(SIGINT, SIG_IGN);
		signal(SIGQUIT, SIG_IGN);
		if (!s->quiet)
			prompt_welcome(s);
		open_editor(&p);
	}
	read_all(&p);
	if (p.editor)
		p.ops->close(p.editor);
	out->silent = true;
	s->exit_code = p.terminal ? 0 : p.failed;
	return SUCCESS;
}

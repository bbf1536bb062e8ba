/*
 * Chooses the reader by format, and collects its tasks in the spool. A refusal names file and line and leaves the queue
 * unchanged. With in->check the reader continues after a refusal, so one run reports all faults.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/text.h"
#include "base/when.h"
#include "format/markdown.h"
#include "transfer/foreign.h"
#include "transfer/port.h"

#define MD_MAX (64u << 20)

enum result port_refuse_as(struct port_in *in, enum result code, struct str where, struct str text,
			   struct str hint)
{
	struct str message = arena_printf(in->arena, "%.*s: %s", STRF(where),
					  arena_cstr(&in->piece, text_line(&in->piece, text)));

	if (!in->n_refusals++)
		answer_fail(&in->refused, code, message, arena_str(in->arena, hint));
	if (in->refusals.n < PORT_REFUSALS)
		in->refusals = arena_append(in->arena, in->refusals, message);
	if (in->check)
		return SUCCESS;
	*in->ans = in->refused;
	return code;
}

static enum result refuse_at(struct port_in *in, size_t line, struct str text)
{
	return port_refuse_as(
		in, MISCONFIGURED, arena_printf(&in->piece, "%s:%zu", in->path, line), text,
		STR("nothing was changed; `pawl help import` and doc/data.md show the formats"));
}

enum result port_refuse(struct port_in *in, size_t line, struct str text)
{
	return refuse_at(in, line, text);
}

enum result port_refuse_rest(struct port_in *in, size_t line, struct str text)
{
	(void)refuse_at(in, line, text);
	*in->ans = in->refused;
	return MISCONFIGURED;
}

enum result port_cannot(struct port_in *in, const char *what, int r)
{
	in->ans->applied = 'n';
	return answer_fail(in->ans, API_ERROR,
			   arena_printf(in->arena, "%s: %s", what,
					r == -EINVAL      ? "it is not a file, a pipe or a terminal"
					: r == -ETIMEDOUT ? "no program writes to this pipe"
							  : strerror(-r)),
			   STR("nothing was changed"));
}

static enum result import_spool_add(struct port_in *in, struct parcel *parcel, size_t line)
{
	int r;

	parcel->where = arena_printf(&in->piece, "%s:%zu", in->path, line);
	r = spool_add(in->spool, parcel);
	arena_free(&in->piece);
	if (r)
		return port_cannot(in, "pawl cannot write the tasks to TMPDIR", r);
	if (in->progress)
		in->progress(in->ctx, in->spool->n);
	return SUCCESS;
}

enum result port_stub(struct port_in *in, struct str id, size_t line)
{
	struct parcel parcel;
	struct plain p;

	if (!in->check || !id.n)
		return in->check ? SUCCESS : MISCONFIGURED;
	plain_start(&p, when_parse, false, &in->piece);
	p.task.id = id;
	p.task.title = STR("refused");
	parcel = (struct parcel){ .task = p.task };
	if (plain_end(&p) || parcel_fault(&parcel, &in->piece))
		return SUCCESS;
	return import_spool_add(in, &parcel, line);
}

enum result port_found(struct port_in *in, struct plain *p, size_t line)
{
	const char *fault = plain_end(p);
	struct parcel parcel = { .task = p->task,
				 .comments = p->comments,
				 .n_comments = p->n_comments };

	if (!fault)
		fault = parcel_fault(&parcel, &in->piece);
	if (!fault)
		return import_spool_add(in, &parcel, line);
	(void)port_refuse(in, line, str_c(fault));
	return port_stub(in, parcel.task.id, line);
}

/* --- Markdown -------------------------------------------------------------------------------------- */

static struct str base_name(struct str path)
{
	size_t dir = path.n;

	while (dir && path.p[dir - 1] != '/')
		dir--;
	return str_n(path.p + dir, path.n - dir);
}

enum result port_read_md(struct port_in *in, int dir, const char *name, const char *path)
{
	struct yaml_fault fault = { 0 };
	struct plain p;
	struct str text;
	int fd = dir < 0 ? -1 : beneath_open(dir, name, O_RDONLY, 0), r = fd;

	if (fd >= 0) {
		r = fs_read_fd(&in->piece, fd, MD_MAX, &text);
		close(fd);
	} else if (dir < 0) {
		r = fs_read(&in->piece, path, MD_MAX, &text);
	}
	in->path = path;
	if (r)
		return port_cannot(in, path, r);
	if (in->foreign)
		return foreign_md(in, text, base_name(str_c(path)));
	plain_start(&p, when_parse, false, &in->piece);
	if (task_md_parse(text, base_name(str_c(path)), &p, &fault)) {
		(void)port_refuse(in, fault.line, fault.text);
		return port_stub(in, task_md_id(base_name(str_c(path))), 1);
	}
	return port_found(in, &p, 1);
}

/* --- any format ------------------------------------------------------------------------------------- */

/* Guesses the format from the first character. Consumes only white space, since a pipe cannot be rewound. */
static enum port_format import_spool_guess(struct port_in *in)
{
	int c = getc(in->file);

	while (c == ' ' || c == '\t' || c == '\r' || c == '\n') {
		in->line += c == '\n';
		c = getc(in->file);
	}
	if (c != EOF)
		ungetc(c, in->file);
	return c == '[' || c == '{' ? PORT_JSON : PORT_NONE;
}

static enum result read_foreign(struct port_in *in)
{
	switch (in->foreign->from->shape) {
	case OBJECTS:
		return port_read_json(in);
	case ROWS:
		return port_read_csv(in);
	case LINES:
		return foreign_lines(in);
	case CHECKLIST:
		return foreign_checklist(in);
	case FOLDER:
		break;
	}
	return port_refuse_rest(in, 1,
				STR("this program keeps its tasks in a folder: name the folder"));
}

static enum result read_file(struct port_in *in, enum port_format format)
{
	enum result code;
	int r = 0;

	in->file = !strcmp(in->path, "-") ? stdin : source_open(in->path, &r);
	if (!in->file)
		return port_cannot(in, in->path, r);
	in->line = 1;
	if (in->file == stdin)
		in->path = "standard input";
	if (format == PORT_NONE && in->file != stdin && !in->foreign)
		format = import_spool_guess(in);
	if (in->foreign)
		code = read_foreign(in);
	else if (format == PORT_NONE)
		code = answer_fail(
			in->ans, USAGE,
			arena_printf(in->arena,
				     "the format of %s is unknown: its name does not show it",
				     in->path),
			STR("name the format: --format json, jsonl, csv or md"));
	else
		code = format == PORT_CSV ? port_read_csv(in) : port_read_json(in);
	if (code == SUCCESS && ferror(in->file))
		code = port_cannot(in, in->path, -EIO);
	if (in->file != stdin)
		fclose(in->file);
	return code;
}

enum result port_read(struct port_in *in, enum port_format format)
{
	enum result code;
	int r = in->spool->file ? 0 : spool_open(in->spool);

	if (r)
		return port_cannot(in, "pawl cannot make a file in TMPDIR", r);
	if (in->foreign && fs_is_dir(in->path) && in->foreign->from->shape != FOLDER)
		code = port_cannot(in, in->path, -EISDIR);
	else if (fs_is_dir(in->path))
		code = port_read_folder(in, in->path);
	else if (in->foreign ? in->foreign->from->shape == FOLDER : format == PORT_MD)
		code = port_read_md(in, -1, NULL, in->path);
	else
		code = read_file(in, format);
	if (fflush(in->spool->file) && code == SUCCESS)
		code = port_cannot(in, "pawl cannot write the tasks to TMPDIR", -errno);
	arena_free(&in->piece);
	return code;
}

/* --- source ----------------------------------------------------------------------------------- */

/* Opens a file without blocking, and waits a limited time for a pipe's writer. The byte that this wait may read goes back into
 * the stream. */

#define WRITER_MS 5000 /* wait this long for a program that opens the pipe for writing */
#define PAUSE_MS 20
#define NONE (-1)

/* A read from a pipe without a writer returns 0; with a writer it returns a byte, or fails with EAGAIN. *first: the byte
 * that was read, or NONE. */
static int await_writer(int fd, int *first)
{
	for (int waited = 0; waited < WRITER_MS; waited += PAUSE_MS) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		unsigned char c;
		ssize_t n = read(fd, &c, 1);

		if (n > 0)
			*first = c;
		if (n > 0 || (n < 0 && errno == EAGAIN))
			return 0;
		if (n < 0 && errno != EINTR)
			return -errno;
		if (poll(&p, 1, PAUSE_MS) > 0 && p.revents & POLLHUP && !(p.revents & POLLIN))
			return 0; /* a writer has opened and closed the pipe */
	}
	return -ETIMEDOUT;
}

static int source_check(int fd, int *first)
{
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	if (S_ISFIFO(st.st_mode))
		return await_writer(fd, first);
	return S_ISREG(st.st_mode) || isatty(fd) ? 0 : -EINVAL;
}

/* Checks the kind of file first, because opening a device can have side effects. */
FILE *source_open(const char *path, int *r)
{
	struct stat st;
	FILE *f = NULL;
	int fd, first = NONE;

	*r = stat(path, &st) ? -errno : S_ISBLK(st.st_mode) || S_ISSOCK(st.st_mode) ? -EINVAL : 0;
	if (*r)
		return NULL;
	fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0) {
		*r = -errno;
		return NULL;
	}
	*r = source_check(fd, &first);
	if (!*r && fcntl(fd, F_SETFL, O_RDONLY))
		*r = -errno;
	if (!*r && !(f = fdopen(fd, "r")))
		*r = -errno;
	if (*r)
		close(fd);
	else if (first != NONE)
		ungetc(first, f);
	return f;
}

/* --- target ----------------------------------------------------------------------------------- */

/* Reads only the beginning of an existing file, without following a link or waiting for a pipe. */

#define BEGINNING 4096 /* bytes that are compared */

static bool begins_with(const char *path, const struct str *beginnings)
{
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	char text[BEGINNING];
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text));
	bool any = n == 0;

	if (fd >= 0)
		close(fd);
	for (size_t i = 0; n > 0 && !any && beginnings[i].n; i++)
		any = str_starts(str_n(text, (size_t)n), beginnings[i]);
	return any;
}

int target_check(const char *path, const struct str *beginnings)
{
	struct stat st, to;

	if (lstat(path, &st))
		return errno == ENOENT ? 0 : -errno;
	if (S_ISLNK(st.st_mode))
		return stat(path, &to) || S_ISREG(to.st_mode) ? -ELOOP : 1;
	if (!S_ISREG(st.st_mode))
		return 1;
	return begins_with(path, beginnings) ? 0 : -EEXIST;
}

/*
 * Writes tasks in pawl's own formats, and opens the target for every format. A result gets its name only when it is complete,
 * and replaces only an earlier export, unless forced. A cell that a spreadsheet would run as a formula gets a mark.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/text.h"
#include "format/markdown.h"
#include "transfer/foreign_out.h"
#include "transfer/port.h"

#define READER_TRIES 200 /* 50 ms apart */

enum port_format port_format(struct str name, const char *path)
{
	static const struct {
		const char *name, *ending;
		enum port_format format;
	} all[] = {
		{ "json", ".json", PORT_JSON },     { "jsonl", ".jsonl", PORT_JSONL },
		{ "jsonl", ".ndjson", PORT_JSONL }, { "csv", ".csv", PORT_CSV },
		{ "md", ".md", PORT_MD },           { "md", "/", PORT_MD },
	};

	if (!name.n && fs_is_dir(path))
		return PORT_MD;
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		if (name.n ? str_is(name, all[i].name)
			   : str_ends(str_c(path), str_c(all[i].ending)))
			return all[i].format;
	return PORT_NONE;
}

/* --- formats of one file -------------------------------------------------------------------------- */

void port_json(const struct parcel *p, struct buf *out, struct arena *a)
{
	json_t *o = json_object();
	char *text;

	for (size_t i = 0; i < N_FIELDS; i++) {
		json_t *v = plain_written(&field_table[i], false)
				    ? plain_value(&field_table[i], &p->task, a)
				    : NULL;

		if (v)
			json_object_set_new(o, field_table[i].name, v);
	}
	if (p->n_comments)
		json_object_set_new(o, "comments", plain_comments(p->comments, p->n_comments, a));
	text = json_dumps(o, JSON_COMPACT);
	buf_adds(out, str_c(text));
	free(text);
	json_decref(o);
}

/* A spreadsheet would treat a cell that begins like this as a formula. */
static bool is_formula(struct str s)
{
	return s.n && memchr("=+-@\t\r'", s.p[0], 7);
}

static void add_cell(struct buf *out, struct str s)
{
	bool quote = false;

	for (size_t i = 0; i < s.n; i++)
		quote |= memchr("\",\r\n", s.p[i], 4) != NULL;
	quote |= s.n && (s.p[0] == ' ' || s.p[s.n - 1] == ' ');
	if (quote)
		buf_addc(out, '"');
	if (is_formula(s))
		buf_addc(out, '\'');
	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] == '"')
			buf_addc(out, '"');
		buf_addc(out, s.p[i]);
	}
	if (quote)
		buf_addc(out, '"');
}

static void add_value(struct buf *out, json_t *v)
{
	char *text;

	if (json_is_string(v)) {
		add_cell(out, str_n(json_string_value(v), json_string_length(v)));
	} else if (v && !(json_is_array(v) && !json_array_size(v))) {
		text = json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY);
		add_cell(out, str_c(text));
		free(text);
	}
	json_decref(v);
}

void port_csv_head(struct buf *out)
{
	for (size_t i = 0; i < N_FIELDS; i++)
		if (plain_written(&field_table[i], false))
			buf_addf(out, "%s,", field_table[i].name);
	buf_adds(out, STR("comments\n"));
}

void port_csv(const struct parcel *p, struct buf *out, struct arena *a)
{
	for (size_t i = 0; i < N_FIELDS; i++) {
		if (!plain_written(&field_table[i], false))
			continue;
		add_value(out, plain_value(&field_table[i], &p->task, a));
		buf_addc(out, ',');
	}
	add_value(out, plain_comments(p->comments, p->n_comments, a));
	buf_addc(out, '\n');
}

/* --- files ----------------------------------------------------------------------------------------- */

static bool is_empty(const char *dir)
{
	DIR *d = opendir(dir);
	const struct dirent *e;
	bool empty = true;

	while (d && (e = readdir(d)))
		empty &= !strcmp(e->d_name, ".") || !strcmp(e->d_name, "..");
	if (d)
		closedir(d);
	return empty;
}

static int open_folder(struct port_out *o)
{
	struct stat st;

	if (lstat(o->path, &st) == 0 && !S_ISDIR(st.st_mode))
		return S_ISLNK(st.st_mode) ? -ELOOP : -ENOTDIR;
	if (fs_is_dir(o->path) && !is_empty(o->path))
		return -ENOTEMPTY;
	return mkdtemp(o->temp) && chmod(o->temp, 0755) == 0 ? 0 : -errno;
}

/* 0: a new file can replace the old one without loss; 1: it is not a regular file; < 0: -errno. */
static int check_file(const struct port_out *o, bool force)
{
	struct buf head = BUF_MAX(10000);
	struct str begins[3] = { STR("{\"id\":") };
	int r;

	port_csv_head(&head);
	if (o->foreign)
		begins[0] = STR(""); /* pawl cannot recognise its own exports there */
	else if (o->format == PORT_CSV)
		begins[0] = buf_str(&head);
	else if (o->format == PORT_JSON)
		begins[0] = STR("[\n{\"id\":"), begins[1] = STR("[]");
	r = target_check(o->path, begins);
	buf_free(&head);
	return force && (r == -EEXIST || r == -ELOOP) ? 0 : r;
}

/* Writes to a pipe or a terminal in place, but never to a regular file behind a link. */
static int open_odd(struct port_out *o)
{
	const struct timespec pause = { .tv_nsec = 50000000 };
	struct stat st;
	int fd;

	o->temp = NULL;
	/* wait for a pipe's reader, but not forever */
	for (int i = 0; (fd = open(o->path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)) < 0;
	     i++) {
		if (errno != ENXIO || i == READER_TRIES)
			return errno == ENXIO ? -ETIMEDOUT : -errno;
		nanosleep(&pause, NULL);
	}
	if (fstat(fd, &st) || S_ISREG(st.st_mode) || fcntl(fd, F_SETFL, 0)) {
		close(fd);
		return -ELOOP;
	}
	o->file = fdopen(fd, "w");
	return o->file ? 0 : -errno;
}

/* A copy of the descriptor: closing it leaves standard output open for the rest of the process. */
static int open_stdout(struct port_out *o)
{
	int fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);

	o->temp = NULL;
	o->file = fd < 0 ? NULL : fdopen(fd, "w");
	return o->file ? 0 : -errno;
}

static int open_file(struct port_out *o, bool force)
{
	int fd;

	if (!strcmp(o->path, "-"))
		return open_stdout(o);
	fd = check_file(o, force);
	if (fd)
		return fd < 0 ? fd : open_odd(o);
	fd = mkstemp(o->temp);
	if (fd < 0)
		return -errno;
	(void)fchmod(fd, 0644);
	o->file = fdopen(fd, "w");
	return 0;
}

static int open_either(struct port_out *o, const char *path, bool force, struct arena *a)
{
	struct str trimmed = str_c(path);
	int r;

	while (trimmed.n > 1 && trimmed.p[trimmed.n - 1] == '/')
		trimmed.n--;
	o->path = arena_cstr(a, trimmed);
	o->temp = arena_cstr(a, arena_printf(a, "%s.XXXXXX", o->path));
	r = o->format == PORT_MD ? open_folder(o) : open_file(o, force);
	if (r)
		o->temp = NULL;
	return r;
}

int port_out_open_foreign(struct port_out *o, struct foreign_out *foreign, const char *path,
			  bool force, struct arena *a)
{
	*o = (struct port_out){ .foreign = foreign,
				.format = foreign->to->shape == FOLDER ? PORT_MD : PORT_NONE };
	return open_either(o, path, force, a);
}

static int export_tasks_put(struct port_out *o, struct str text)
{
	if (!o->temp && isatty(fileno(o->file)))
		return tty_write(fileno(o->file), text);
	return !text.n || fwrite(text.p, text.n, 1, o->file) == 1 ? 0 : -(errno ? errno : EIO);
}

int port_out_open(struct port_out *o, enum port_format format, const char *path, bool force,
		  struct arena *a)
{
	struct buf head = BUF_MAX(10000);
	int r;

	*o = (struct port_out){ .format = format };
	r = open_either(o, path, force, a);
	if (r)
		return r;
	if (format == PORT_CSV)
		port_csv_head(&head);
	if (o->file)
		r = export_tasks_put(o, format == PORT_JSON ? STR("[") : buf_str(&head));
	buf_free(&head);
	return r;
}

static int write_file(struct port_out *o, struct str name, const struct buf *b)
{
	FILE *f = fopen(fs_join(&o->arena, str_c(o->temp), name), "wxe");
	int r;

	if (!f)
		return -errno;
	r = fwrite(b->p, b->n, 1, f) == 1 ? 0 : -errno;
	if (fclose(f) && !r)
		r = -errno;
	return r;
}

static int add_file(struct port_out *o, const struct parcel *p, struct buf *b)
{
	task_md_write(&p->task, p->comments, p->n_comments, false, b, &o->arena);
	return write_file(o, arena_printf(&o->arena, "%.*s.md", STRF(p->task.id)), b);
}

int port_out_add(struct port_out *o, const struct parcel *p)
{
	struct buf b = BUF_MAX(SIZE_MAX / 2);
	int r = 0;

	if (o->foreign) {
		foreign_out_add(o->foreign, p);
	} else if (o->format == PORT_MD) {
		r = add_file(o, p, &b);
	} else {
		if (o->format == PORT_JSON)
			buf_adds(&b, o->n ? STR(",\n") : STR("\n"));
		if (o->format == PORT_CSV)
			port_csv(p, &b, &o->arena);
		else
			port_json(p, &b, &o->arena);
		if (o->format == PORT_JSONL)
			buf_addc(&b, '\n');
		r = export_tasks_put(o, buf_str(&b));
	}
	o->n++;
	buf_free(&b);
	arena_free(&o->arena);
	return r;
}

/* The folder is temporary and holds only files that we made. */
static void remove_folder(struct port_out *o)
{
	DIR *d = opendir(o->temp);
	const struct dirent *e;

	while (d && (e = readdir(d)))
		if (strcmp(e->d_name, ".") && strcmp(e->d_name, ".."))
			unlinkat(dirfd(d), e->d_name, 0);
	if (d)
		closedir(d);
	rmdir(o->temp);
}

static int end_file(struct port_out *o, bool keep)
{
	int r = keep && o->format == PORT_JSON
			? export_tasks_put(o, o->n ? STR("\n]\n") : STR("]\n"))
			: 0;

	if (!r && keep && (fflush(o->file) || (o->temp && fsync(fileno(o->file)))))
		r = -errno;
	if (fclose(o->file) && !r)
		r = -errno;
	return r;
}

static int write_foreign(struct port_out *o)
{
	struct foreign_out *f = o->foreign;
	struct buf b = BUF_MAX(SIZE_MAX / 2);
	int r = 0;

	foreign_out_settle(f);
	if (o->format != PORT_MD) {
		foreign_out_text(f, &b);
		r = export_tasks_put(o, buf_str(&b));
	}
	for (size_t i = 0; !r && o->format == PORT_MD && i < f->n; i++) {
		b.n = 0;
		foreign_backlog_file(f, &f->tasks[i], &b);
		r = write_file(o, foreign_backlog_name(&f->tasks[i], &o->arena), &b);
		arena_free(&o->arena);
	}
	buf_free(&b);
	return r;
}

int port_out_close(struct port_out *o, bool keep)
{
	int written = o->foreign && keep ? write_foreign(o) : 0,
	    r = o->file ? end_file(o, keep && !written) : 0;

	r = written ? written : r;

	if (!o->temp)
		return r;
	if (!r && keep && rename(o->temp, o->path))
		r = -errno;
	if (!r && keep)
		return 0;
	if (o->file)
		unlink(o->temp);
	else
		remove_folder(o);
	return r;
}

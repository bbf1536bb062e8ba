#include "transfer/salvage.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fs.h"
#include "format/pack.h"

#define NAMES 100 /* tries to find a name that is free */

/* Another file keeps its name, and a link is not followed: the folder may have come with a clone. */
static int make_file(struct salvage *s)
{
	struct str wanted = str_c(s->path);
	int fd = -1;

	for (int i = 1; fd < 0 && i <= NAMES; i++) {
		if (i > 1)
			s->path = arena_cstr(s->arena,
					     arena_printf(s->arena, "%.*s.%d", STRF(wanted), i));
		fd = open(s->path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (fd < 0 && errno != EEXIST)
			return -errno;
	}
	if (fd < 0)
		return -EEXIST;
	s->file = fdopen(fd, "w");
	return s->file ? 0 : -ENOMEM;
}

static int write_line(struct salvage *s, const json_t *o)
{
	char *line = json_dumps(o, JSON_COMPACT | JSON_ENSURE_ASCII);
	int r = 0;

	if (!line)
		return -ENOMEM;
	if (fputs(line, s->file) < 0 || fputc('\n', s->file) < 0)
		r = errno ? -errno : -EIO;
	free(line);
	return r;
}

static int salvage_keep(void *ctx, const char *what, struct str name, const char *why,
			const struct repair_part *parts, size_t n)
{
	struct salvage *s = ctx;
	json_t *o;
	int r = s->file ? 0 : make_file(s);

	if (r)
		return r;
	o = json_object();
	json_object_set_new(o, "what", json_string(what));
	json_object_set_new(o, "name", bytes_json(name));
	json_object_set_new(o, "why", json_string(why));
	for (size_t i = 0; i < n; i++)
		json_object_set_new(o, parts[i].name, bytes_json(parts[i].bytes));
	r = write_line(s, o);
	json_decref(o);
	s->n += !r;
	return r;
}

static int salvage_settle(void *ctx)
{
	struct salvage *s = ctx;

	if (!s->file)
		return 0;
	if (fflush(s->file) || fsync(fileno(s->file)))
		return -errno;
	return fs_sync_dir(arena_cstr(s->arena, fs_dirname(str_c(s->path))));
}

void salvage_init(struct salvage *s, struct str path, struct arena *a)
{
	*s = (struct salvage){ .path = arena_cstr(a, path), .arena = a };
}

struct repair_sink salvage_sink(struct salvage *s)
{
	return (struct repair_sink){ .keep = salvage_keep, .settle = salvage_settle, .ctx = s };
}

void salvage_close(struct salvage *s)
{
	if (s->file)
		fclose(s->file);
	s->file = NULL;
}

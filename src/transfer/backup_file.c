/* Writes and reads backups. The file gets its name only after fsync(), so a crash leaves the old file or a complete new one.
 * A damaged length must not make the reader allocate: no item exceeds the rest of the file. */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/secret.h"
#include "base/when.h"
#include "format/pack.h"
#include "queue/frame.h"
#include "transfer/backup_file.h"
#include "transfer/port.h"

#define MAGIC "pawl backup "
#define VERSION 1
#define ITEM_MAX (UINT64_C(1) << 30)

enum { KIND_RECORD = 'r', KIND_LINE = 'l', KIND_END = 'e' };

/* Selects an item's members: RECORD for every record, OTHER also for a record that is not a task, LINE for a log entry. */
enum { RECORD = 1, OTHER = 2, LINE = 4 };

#define ITEM(tag, kind, part, member)                                                            \
	{                                                                                        \
		tag, SHAPE_##kind, SHAPE_ALWAYS, part, 0, offsetof(struct item, member), 0, NULL \
	}

static const struct shape_member item_members[] = {
	ITEM(1, STR, RECORD, rec.key),
	ITEM(2, STR, RECORD, rec.hot),
	ITEM(3, STR, RECORD, rec.body),
	ITEM(4, ENUM, OTHER, rec.ix.lane),
	ITEM(5, INT, OTHER, rec.ix.eligible_at),
	ITEM(1, STR, LINE, entry.key),
	ITEM(6, INT, LINE, entry.at),
	ITEM(7, STR, LINE, entry.data),
};
static const struct shape item_shape = SHAPE_OF(item_members, item);

/* The last item. */
struct totals {
	int64_t made_at, records, lines, tasks;
};

#define TOTAL(tag, member)                                                                   \
	{                                                                                    \
		tag, SHAPE_INT, SHAPE_ALWAYS, 0, 0, offsetof(struct totals, member), 0, NULL \
	}

static const struct shape_member totals_members[] = { TOTAL(6, made_at), TOTAL(8, records),
						      TOTAL(9, lines), TOTAL(10, tasks) };
static const struct shape totals_shape = SHAPE_OF(totals_members, totals);

struct head {
	uint8_t kind;
	uint8_t size[8]; /* little-endian */
};

static int64_t file_size(FILE *f)
{
	struct stat st;

	return fstat(fileno(f), &st) ? 0 : st.st_size;
}

/* --- out ------------------------------------------------------------------------------------------ */

struct writing {
	FILE *file;
	struct digest digest;
	struct backup *b;
};

static int backup_file_put(struct writing *w, const void *p, size_t n)
{
	digest_add(&w->digest, p, n);
	return !n || fwrite(p, n, 1, w->file) == 1 ? 0 : -(errno ? errno : EIO);
}

static int put_item(struct writing *w, uint8_t kind, const struct buf *b)
{
	struct head h = { .kind = kind };
	int r;

	for (size_t i = 0; i < sizeof(h.size); i++)
		h.size[i] = (uint8_t)((uint64_t)b->n >> (8 * i));
	r = backup_file_put(w, &h, sizeof(h));
	return r ? r : backup_file_put(w, b->p, b->n);
}

static int write_item(void *ctx, const struct item *it)
{
	struct writing *w = ctx;
	struct buf b = BUF_MAX(ITEM_MAX);
	int r;

	w->b->lines += it->line;
	w->b->records += !it->line;
	w->b->tasks += !it->line && it->rec.ix.status;
	shape_pack(&item_shape,
		   it->line            ? LINE
		   : it->rec.ix.status ? RECORD
				       : RECORD | OTHER,
		   it, &b);
	r = b.full ? -EFBIG : put_item(w, it->line ? KIND_LINE : KIND_RECORD, &b);
	buf_free(&b);
	return r;
}

static int write_end(struct writing *w)
{
	struct totals t = { w->b->made_at, (int64_t)w->b->records, (int64_t)w->b->lines,
			    w->b->tasks };
	struct buf b = BUF_MAX(1000);
	unsigned char hash[HASH_LEN];
	int r;

	shape_pack(&totals_shape, SHAPE_ALL, &t, &b);
	r = put_item(w, KIND_END, &b);
	buf_free(&b);
	digest_end(&w->digest, hash);
	if (!r && (fwrite(hash, sizeof(hash), 1, w->file) != 1 || fflush(w->file)))
		r = -errno;
	return r;
}

static enum result write_all(struct queue *q, struct writing *w, int *r, struct answer *ans,
			     struct arena *a)
{
	static const char line[] = MAGIC "1\n";
	enum result code = SUCCESS;

	digest_start(&w->digest);
	w->b->made_at = queue_now(q);
	*r = backup_file_put(w, line, sizeof(line) - 1);
	if (!*r)
		code = queue_dump(q, write_item, w, r, ans, a);
	if (code == SUCCESS && !*r)
		*r = write_end(w);
	return code;
}

static enum result backup_file_cannot(struct answer *ans, const char *path, int r, struct arena *a)
{
	ans->applied = 'n';
	return answer_fail(ans, API_ERROR,
			   arena_printf(a, "cannot write %s: %s", path ? path : "a file in TMPDIR",
					strerror(-r)),
			   STR("check the folder's permissions and the free space on its disk"));
}

static FILE *temp_file(const char *path, char **name, struct arena *a)
{
	const char *dir = getenv("TMPDIR");
	int fd;

	*name = path ? arena_cstr(a, arena_printf(a, "%s.XXXXXX", path))
		     : arena_cstr(a, arena_printf(a, "%s/pawl-XXXXXX", dir && *dir ? dir : "/tmp"));
	fd = mkstemp(*name);
	if (fd >= 0 && !path)
		unlink(*name);
	return fd < 0 ? NULL : fdopen(fd, "w+");
}

static int give_name(FILE *f, const char *temp, const char *path, struct arena *a)
{
	if (fsync(fileno(f)) || rename(temp, path))
		return -errno;
	return fs_sync_dir(arena_cstr(a, fs_dirname(str_c(path))));
}

enum result backup_write(struct queue *q, const char *path, struct backup *out, struct answer *ans,
			 struct arena *a)
{
	struct writing w = { .b = out };
	enum result code;
	char *temp;
	int r = 0;

	*out = (struct backup){ 0 };
	w.file = temp_file(path, &temp, a);
	if (!w.file)
		return backup_file_cannot(ans, path, -errno, a);
	code = write_all(q, &w, &r, ans, a);
	if (code == SUCCESS && !r && path)
		r = give_name(w.file, temp, path, a);
	if (path || code != SUCCESS || r)
		fclose(w.file);
	else
		out->file = w.file;
	if (out->file)
		out->size = file_size(out->file);
	if (path && (code != SUCCESS || r))
		unlink(temp);
	return code == SUCCESS && r ? backup_file_cannot(ans, path, r, a) : code;
}

enum result backup_check(const char *path, bool force, struct answer *ans, struct arena *a)
{
	static const struct str begins[] = { { MAGIC, sizeof(MAGIC) - 1 }, { 0 } };
	int r = target_check(path, begins);

	if (r == 0 || (force && (r == -EEXIST || r == -ELOOP)))
		return SUCCESS;
	if (r < 0 && r != -EEXIST && r != -ELOOP)
		return backup_file_cannot(ans, path, r, a);
	return answer_fail(ans, CONFLICT,
			   arena_printf(a, "cannot write %s: %s", path,
					r > 0         ? "it is not a regular file"
					: r == -ELOOP ? "it is a link"
						      : "the file exists and is not a backup"),
			   str_c(r > 0 ? "name another file"
				       : "name another file, or replace this one with --force"));
}

static int make_folder(const struct client *c)
{
	int r = fs_make_dirs(fs_join(c->arena, str_c(c->conn.place.pawl_dir), STR("backups")),
			     0777),
	    fd;

	if (r)
		return r;
	fd = beneath_dir(c->conn.place.pawl_dir, "backups");
	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

enum result backup_name(struct client *c, int64_t now, char **path, struct answer *ans)
{
	char *dir = c->conn.place.pawl_dir
			    ? fs_join(c->arena, str_c(c->conn.place.pawl_dir), STR("backups"))
			    : arena_cstr(c->arena, str_c(c->conn.config.opt.dir));
	char *name = arena_cstr(
		c->arena,
		arena_printf(c->arena, "%s.pawl", arena_cstr(c->arena, when_text(c->arena, now))));
	int r = c->conn.place.pawl_dir ? make_folder(c) : 0;

	for (char *p = name; *p; p++)
		if (*p == ':')
			*p = '-';
	*path = fs_join(c->arena, str_c(dir), str_c(name));
	return r ? backup_file_cannot(ans, dir, r, c->arena) : SUCCESS;
}

/* --- in ------------------------------------------------------------------------------------------- */

void backup_rewind(void *backup)
{
	struct backup *b = backup;

	(void)fseek(b->file, sizeof(MAGIC "1\n") - 1, SEEK_SET);
}

/* 0: an item; 1: the end. A length greater than the rest of the file counts as the end and allocates no memory. */
static int read_item(struct backup *b, uint8_t *kind, struct str *bytes, struct arena *a)
{
	FILE *f = b->file;
	struct head h;
	uint64_t n = 0;
	char *p;

	if (fread(&h, sizeof(h), 1, f) != 1)
		return ferror(f) ? -EIO : 1;
	for (size_t i = 0; i < sizeof(h.size); i++)
		n |= (uint64_t)h.size[i] << (8 * i);
	if (n > ITEM_MAX)
		return -EBADMSG;
	if ((int64_t)n > b->size - ftell(f))
		return 1;
	p = arena_alloc(a, n);
	if (n && fread(p, n, 1, f) != 1)
		return ferror(f) ? -EIO : 1;
	*kind = h.kind;
	*bytes = str_n(p, n);
	return 0;
}

static int unpack_item(uint8_t kind, struct str bytes, struct item *out)
{
	out->line = kind == KIND_LINE;
	return shape_unpack(&item_shape, out->line ? LINE : RECORD | OTHER, bytes, out, NULL);
}

int backup_next(void *backup, struct item *out, struct arena *a)
{
	struct backup *b = backup;
	struct str bytes;
	uint8_t kind;
	int r = read_item(b, &kind, &bytes, a);

	if (r || kind == KIND_END)
		return r ? r : 1;
	return unpack_item(kind, bytes, out);
}

static enum result backup_file_refuse(struct answer *ans, const char *path, const char *what,
				      const char *hint, struct arena *a)
{
	return answer_fail(ans, MISCONFIGURED, arena_printf(a, "%s %s", path, what), str_c(hint));
}

static enum result check_first_line(struct backup *b, const char *path, struct answer *ans,
				    struct arena *a)
{
	char line[64] = "";
	struct str rest;
	int64_t version;

	if (fgets(line, sizeof(line), b->file))
		line[strcspn(line, "\n")] = '\0';
	rest = str_c(line);
	if (!str_cut_prefix(&rest, STR(MAGIC)) || !str_to_i64(rest, &version))
		return backup_file_refuse(ans, path, "is not a backup of pawl",
					  "`pawl backup` makes one", a);
	if (version > VERSION)
		return backup_file_refuse(ans, path, "was made by a newer pawl",
					  "restore it with that version", a);
	return SUCCESS;
}

static int read_end(struct backup *b, struct str bytes)
{
	struct totals t = { 0 };

	if (shape_unpack(&totals_shape, SHAPE_ALL, bytes, &t, NULL) || t.tasks < 0 ||
	    t.tasks > t.records || t.made_at < 0)
		return -EBADMSG;
	b->made_at = t.made_at;
	b->tasks = t.tasks;
	return (size_t)t.records != b->records || (size_t)t.lines != b->lines ? -EBADMSG : 0;
}

/* The checksum covers all bytes before it. */
static int check_sum(struct backup *b)
{
	unsigned char stored[HASH_LEN], made[HASH_LEN];
	char piece[65536];
	long end = ftell(b->file), at = 0;
	struct digest d;

	if (end < 0 || fread(stored, sizeof(stored), 1, b->file) != 1 || getc(b->file) != EOF)
		return -EBADMSG;
	rewind(b->file);
	digest_start(&d);
	while (at < end) {
		size_t n = (size_t)(end - at) < sizeof(piece) ? (size_t)(end - at) : sizeof(piece);

		if (fread(piece, n, 1, b->file) != 1)
			return -EIO;
		digest_add(&d, piece, n);
		at += (long)n;
	}
	digest_end(&d, made);
	return memcmp(made, stored, HASH_LEN) ? -EBADMSG : 0;
}

static int check_items(struct backup *b)
{
	for (;;) {
		struct arena mem = { 0 };
		struct item it = { 0 };
		struct str bytes = { 0 };
		uint8_t kind = 0;
		int r = read_item(b, &kind, &bytes, &mem);

		if (!r && kind == KIND_END)
			r = read_end(b, bytes);
		else if (!r)
			r = (kind == KIND_RECORD && !b->lines) || kind == KIND_LINE
				    ? unpack_item(kind, bytes, &it)
				    : -EBADMSG;
		b->records += kind == KIND_RECORD;
		b->lines += kind == KIND_LINE;
		arena_free(&mem);
		if (r || kind == KIND_END)
			return r;
	}
}

enum result backup_open(struct backup *b, const char *path, struct answer *ans, struct arena *a)
{
	enum result code;
	int r;

	struct stat st;

	*b = (struct backup){ 0 };
	if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) /* a FIFO could block forever */
		return backup_file_refuse(ans, path, "is not a regular file",
					  "`pawl backup` makes a backup", a);
	b->file = fopen(path, "re");
	if (!b->file) {
		ans->applied = 'n';
		return answer_fail(ans, API_ERROR, arena_printf(a, "%s: %s", path, strerror(errno)),
				   STR(""));
	}
	b->size = file_size(b->file);
	code = check_first_line(b, path, ans, a);
	if (code != SUCCESS)
		return code;
	r = check_items(b);
	if (!r)
		r = check_sum(b);
	if (r)
		return backup_file_refuse(
			ans, path,
			r > 0 ? "is truncated: its end is missing"
			      : "is damaged: its checksum or its structure is wrong",
			"nothing was changed; use another backup", a);
	return SUCCESS;
}

void backup_close(struct backup *b)
{
	if (b->file)
		fclose(b->file);
	b->file = NULL;
}

/* --- spool ------------------------------------------------------------------------------------ */

/* Tasks that wait on disk during an import, each as its length and its packed form. The file has no name: no other process
 * reads it, and it disappears with this one. */

int spool_open(struct spool *s)
{
	const char *dir = getenv("TMPDIR");
	struct arena a = { 0 };
	char *name = arena_cstr(&a, arena_printf(&a, "%s/pawl-XXXXXX", dir && *dir ? dir : "/tmp"));
	int fd = mkstemp(name), r = fd < 0 ? -errno : 0;

	if (fd >= 0)
		unlink(name);
	*s = (struct spool){ .file = fd < 0 ? NULL : fdopen(fd, "w+") };
	arena_free(&a);
	return r;
}

int spool_add(struct spool *s, const struct parcel *p)
{
	struct buf b = BUF_MAX(SIZE_MAX / 2);
	uint64_t size;
	bool good;

	shape_pack(&parcel_shape, SHAPE_ALL, p, &b);
	size = b.n;
	good = fwrite(&size, sizeof(size), 1, s->file) == 1 && fwrite(b.p, b.n, 1, s->file) == 1;
	s->n += good;
	buf_free(&b);
	return good ? 0 : -(errno ? errno : EIO);
}

void spool_rewind(void *spool)
{
	struct spool *s = spool;

	rewind(s->file);
}

int spool_next(void *spool, struct parcel *out, struct arena *a)
{
	struct spool *s = spool;
	uint64_t size;
	char *bytes;

	if (fread(&size, sizeof(size), 1, s->file) != 1)
		return ferror(s->file) ? -EIO : 1;
	bytes = arena_alloc(a, size);
	if (fread(bytes, size, 1, s->file) != 1)
		return -EIO;
	return shape_unpack(&parcel_shape, SHAPE_ALL, str_n(bytes, size), out, a);
}

void spool_close(struct spool *s)
{
	if (s->file)
		fclose(s->file);
	s->file = NULL;
}

/* --- salvage ---------------------------------------------------------------------------------- */

/* Writes salvaged records. salvage_settle() makes them durable before the store drops them, so a crash loses no record. */

#define NAMES 100 /* attempts to find a free name */

/* Never overwrites a file and never follows a link, because the folder may have come with a clone. */
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

/* The checks for doctor. They only read, so they work on a handle of STORE_READ and on a damaged database. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/os.h"
#include "store/sqlite/sqlite.h"

#define WAL_BIG (64 << 20)
#define RESET_FIXED 3051003 /* SQLite 3.51.3 */

struct check {
	struct sq *s;
	check_fn *fn;
	void *ctx;
	struct arena a;
};

static void sq_check_tell(struct check *c, enum check_level level, const char *what,
			  struct str text, struct str fix)
{
	c->fn(c->ctx, level, what, text, fix);
}

static void tell_fault(struct check *c, const char *what)
{
	const struct store_error *err = c->s->base.env.err;

	sq_check_tell(c, CHECK_BAD, what, arena_str(&c->a, str_c(err->text)),
		      arena_str(&c->a, str_c(err->hint)));
}

/* --- the place ---------------------------------------------------------------------------------- */

static void check_fs(struct check *c)
{
	const char *network = os_network_fs(c->s->path), *advice = sq_place_refusal(network);

	if (advice)
		sq_check_tell(c, CHECK_BAD, "file system",
			      arena_printf(&c->a, "%s is on %s, where SQLite's locks do not work",
					   c->s->path, network),
			      str_c(advice));
	else
		sq_check_tell(c, CHECK_OK, "file system",
			      arena_printf(&c->a, "%s is on a local disk", c->s->path), STR(""));
}

static bool open_to_all(struct check *c, const char *path)
{
	struct stat st;

	if (stat(path, &st) || !(st.st_mode & S_IWOTH) ||
	    (S_ISDIR(st.st_mode) && (st.st_mode & S_ISVTX)))
		return false;
	sq_check_tell(c, CHECK_NOTE, "permissions",
		      arena_printf(&c->a, "every user can write to %s", path),
		      arena_printf(&c->a, "chmod o-w %s", store_word(&c->a, str_c(path)).p));
	return true;
}

/* SQLite must write to the folder and to each file in it: permission for one does not imply the other. */
static bool closed_to_us(struct check *c, const char *path)
{
	int err = faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) ? errno : 0;

	if (err != EACCES && err != EPERM && err != EROFS)
		return false;
	sq_check_tell(c, CHECK_BAD, "permissions",
		      arena_printf(&c->a, "this user cannot write to %s: %s", path, strerror(err)),
		      err == EROFS
			      ? STR("mount that file system for writing")
			      : arena_printf(&c->a,
					     "join its group, and let its owner run: chmod g+w %s",
					     store_word(&c->a, str_c(path)).p));
	return true;
}

/* A clone may contain a link or a pipe at one of these paths. SQLite and the gate refuse to open it. */
static bool not_a_file(struct check *c, const char *path)
{
	struct stat st;

	if (lstat(path, &st) || S_ISREG(st.st_mode))
		return false;
	/* without the slots file each process makes its own changes: slower, but correct */
	sq_check_tell(c, str_ends(str_c(path), STR("-slots")) ? CHECK_NOTE : CHECK_BAD, "files",
		      arena_printf(&c->a, "%s is not a regular file", path),
		      STR("move it away; pawl creates a new one"));
	return true;
}

static void check_modes(struct check *c)
{
	static const char *const ends[] = { "", "-wal", "-shm", "-gate", "-slots" };
	const char *dir = arena_cstr(&c->a, fs_dirname(str_c(c->s->path)));
	bool any = open_to_all(c, dir);

	any |= closed_to_us(c, dir);
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		const char *file = arena_printf(&c->a, "%s%s", c->s->path, ends[i]).p;

		any |= not_a_file(c, file);
		any |= open_to_all(c, file);
		any |= closed_to_us(c, file);
	}
	if (!any)
		sq_check_tell(c, CHECK_OK, "permissions",
			      arena_printf(&c->a, "mode %03o, and this user can write",
					   c->s->file.st_mode & 0777),
			      STR(""));
}

/* --- SQLite ------------------------------------------------------------------------------------- */

static void check_version(struct check *c)
{
	const char *guarded =
		sqlite3_libversion_number() < RESET_FIXED
			? "; its WAL-reset bug (fixed in 3.51.3) cannot occur, since the gate admits one "
			  "writer or checkpoint at a time"
			: "";

	sq_check_tell(c, CHECK_OK, "SQLite",
		      arena_printf(&c->a, "version %s%s", sqlite3_libversion(), guarded), STR(""));
}

static void check_schema(struct check *c)
{
	int64_t version = 0;

	if (sq_int(c->s, "PRAGMA user_version", &version) < 0) {
		tell_fault(c, "schema");
		return;
	}
	sq_check_tell(c, CHECK_OK, "schema", arena_printf(&c->a, "version %" PRId64, version),
		      STR(""));
}

static void check_integrity(struct check *c)
{
	const struct str fix =
		STR("keep a copy; then restore a backup, or try: sqlite3 PATH .recover");
	sqlite3_stmt *st;
	int rc = sq_take(c->s, "PRAGMA integrity_check(5)", &st);

	if (rc < 0) {
		tell_fault(c, "integrity");
		return;
	}
	while ((rc = sq_step(c->s, st)) == SQLITE_ROW) {
		struct str line = arena_str(&c->a, sq_column(st, 0));
		bool ok = str_is(line, "ok");

		sq_check_tell(c, ok ? CHECK_OK : CHECK_BAD, "integrity", line, ok ? STR("") : fix);
	}
	sq_give(c->s, st);
	if (rc < 0)
		tell_fault(c, "integrity");
}

/* --- values that the database holds twice: see sqlite_repair.c ------------------------------------ */

static void check_rule(struct check *c, const struct sq_rule *r)
{
	int64_t n = 0;

	if (sq_int(c->s, r->sql, &n) < 0)
		tell_fault(c, r->what);
	else if (n)
		sq_check_tell(c, CHECK_BAD, r->what,
			      arena_printf(&c->a, "%s (%" PRId64 ")", r->bad, n),
			      arena_printf(&c->a, CHECK_REPAIRS "%s", r->does));
	else if (r->good)
		sq_check_tell(c, CHECK_OK, r->what, str_c(r->good), STR(""));
}

static void check_wal(struct check *c)
{
	struct stat st;
	int64_t size = 0;

	if (stat(arena_printf(&c->a, "%s-wal", c->s->path).p, &st) == 0)
		size = st.st_size;
	if (size < WAL_BIG)
		sq_check_tell(c, CHECK_OK, "WAL",
			      arena_printf(&c->a, "%" PRId64 " KiB", size >> 10), STR(""));
	else
		sq_check_tell(
			c, CHECK_NOTE, "WAL",
			arena_printf(&c->a,
				     "%" PRId64 " MiB: it grows while a program keeps a read open, "
				     "and by a very large change",
				     size >> 20),
			STR("end the programs that read for a long time; the next change then reuses the file"));
}

int sq_check(struct store *base, check_fn *fn, void *ctx)
{
	struct check c = { .s = sq_of(base), .fn = fn, .ctx = ctx };
	int rc = sq_read_guard(c.s);

	if (rc < 0)
		return rc;
	check_fs(&c);
	check_modes(&c);
	check_version(&c);
	check_schema(&c);
	check_integrity(&c);
	sq_functions(c.s, true);
	for (const struct sq_rule *r = sq_rules; r->what; r++)
		check_rule(&c, r);
	sq_functions(c.s, false);
	check_wal(&c);
	sq_now(base);
	localclock_check(&c.s->clock, &c.s->anchor, fn, ctx);
	arena_free(&c.a);
	return 0;
}

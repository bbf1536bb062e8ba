/*
 * Checks a files: queue for `pawl doctor`: its file system, permissions, state, files and clock. It
 * only reads and takes no lock. It reports a damaged or foreign file, and never repairs or removes
 * it.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <unistd.h>

#include "base/os.h"
#include "base/text.h"
#include "format/record_form.h"
#include "store/files/files.h"

#define OTHERS_SHOWN 5

struct check {
	struct files *s;
	check_fn *fn;
	void *ctx;
	struct arena a;
};

static void files_check_tell(struct check *c, enum check_level level, const char *what,
			     struct str text, struct str fix)
{
	c->fn(c->ctx, level, what, text, fix);
}

static void check_fs(struct check *c)
{
	const char *network = os_network_fs(c->s->path);

	if (network)
		files_check_tell(c, CHECK_BAD, "file system",
				 arena_printf(&c->a, "%s is on %s, where locks do not work",
					      c->s->path, network),
				 STR("put the queue on a local disk, or share it through git:"));
	else
		files_check_tell(c, CHECK_OK, "file system",
				 arena_printf(&c->a, "%s is on a local disk", c->s->path), STR(""));
}

static bool closed_to_us(struct check *c, int dir, const char *name, const char *shown)
{
	int err = faccessat(dir, name, W_OK, AT_EACCESS) ? errno : 0;

	if (err != EACCES && err != EPERM && err != EROFS)
		return false;
	files_check_tell(
		c, CHECK_BAD, "permissions",
		arena_printf(&c->a, "this user cannot write to %s%s: %s", c->s->path, shown,
			     strerror(err)),
		err == EROFS
			? STR("mount that file system for writing")
			: arena_printf(
				  &c->a, "join its group, and ask its owner to run: chmod g+w %s",
				  store_word(&c->a, arena_printf(&c->a, "%s%s", c->s->path, shown))
					  .p));
	return true;
}

static void check_modes(struct check *c)
{
	bool any = closed_to_us(c, c->s->dir, ".", "");

	any |= closed_to_us(c, c->s->own, ".", "/.pawl");
	any |= closed_to_us(c, c->s->own, "state", "/.pawl/state");
	if ((c->s->place.st_mode & S_IWOTH) && !(c->s->place.st_mode & S_ISVTX)) {
		any = true;
		files_check_tell(c, CHECK_NOTE, "permissions",
				 arena_printf(&c->a, "every user can write to %s", c->s->path),
				 arena_printf(&c->a, "chmod o-w %s",
					      store_word(&c->a, str_c(c->s->path)).p));
	}
	if (!any)
		files_check_tell(c, CHECK_OK, "permissions",
				 arena_printf(&c->a, "mode %03o, and this user can write",
					      c->s->place.st_mode & 0777),
				 STR(""));
}

/* --- the files ---------------------------------------------------------------------------------- */

static void tell_file(struct check *c, const struct found *f, enum check_level level,
		      const char *why, struct str fix)
{
	struct str name = text_line(&c->a, str_c(f->name));

	files_check_tell(
		c, level, "files",
		arena_printf(&c->a, "%s%.*s: %s", f->archived ? "archive/" : "", STRF(name), why),
		fix);
}

static struct str propose_fix(struct check *c, const struct found *f)
{
	struct str path = arena_printf(&c->a, "%s/%s%s", c->s->path, f->archived ? "archive/" : "",
				       f->name);

	return arena_printf(&c->a, "read %s, then repair it or move it away",
			    store_word(&c->a, text_line(&c->a, path)).p);
}

/* Reports two files whose ids differ only in case. */
static bool check_twin(struct check *c, const struct found *f, const struct found *next)
{
	if (!next || !str_eq(f->key, next->key))
		return false;
	if (!str_eq(f->id, next->id)) {
		tell_file(
			c, f, CHECK_BAD,
			arena_printf(
				&c->a,
				"its id and that of %s differ only in case, so pawl cannot tell them apart",
				next->name)
				.p,
			STR("rename one of them to an id that is free"));
		return true;
	}
	return false;
}

/* A power loss can leave damaged files until the first change after the reboot. The state has all
 * the data, so the user need not act: returns that advice, or "" for any other file. */
static struct str settled_by_next(struct check *c, const struct found *f)
{
	const struct ent *e = files_committed(files_find(&c->s->view, f->key));
	bool empty = !f->stamp.size && files_names(e) & files_name_bit(f->kind, f->archived);

	if (!files_rebooted(c->s))
		return STR("");
	if (e && e->fresh && f->stamp.ino && (f->torn || f->stamp.ino == e->stamp.ino || empty))
		return STR("nothing to do: the next change removes it or writes it again");
	return files_torn(c->s, f, e) ? STR("nothing to do: the next change removes it") : STR("");
}

/* Can pawl ignore this foreign file? Yes, if no task has its id, it is readable, and its content
 * was not meant as a task. */
static bool is_others(struct check *c, const struct found *f)
{
	const struct ent *e = files_committed(files_find(&c->s->view, f->key));

	return (!e || e->dropped) && !f->form.damaged && !f->closed;
}

struct others {
	struct buf names;
	size_t n;
};

static void add_other(struct check *c, struct others *o, const struct found *f)
{
	struct str name = text_line(&c->a, str_c(f->name));

	if (o->n++ < OTHERS_SHOWN)
		buf_addf(&o->names, "%s%s%.*s (%s)", o->n > 1 ? ", " : "",
			 f->archived ? "archive/" : "", STRF(name), f->bad);
}

static void tell_others(struct check *c, struct others *o)
{
	if (o->n > OTHERS_SHOWN)
		buf_addf(&o->names, ", and %zu more", o->n - OTHERS_SHOWN);
	if (o->n)
		files_check_tell(c, CHECK_NOTE, "files",
				 arena_printf(&c->a,
					      "pawl leaves these files of other programs alone: %s",
					      arena_cstr(&c->a, buf_str(&o->names))),
				 STR(""));
	buf_free(&o->names);
}

/* true: reported as a problem. false: added to the list of other programs' files. */
static bool check_bad(struct check *c, struct others *o, const struct found *f)
{
	struct str later = settled_by_next(c, f);

	if (!later.n && is_others(c, f)) {
		add_other(c, o, f);
		return false;
	}
	/* an empty lock is only worth a note, because a program may be about to write its
	 * content */
	tell_file(c, f,
		  later.n || (!f->stamp.size && f->stamp.ino && f->kind == FILE_LOCK) ? CHECK_NOTE
										      : CHECK_BAD,
		  f->bad, later.n ? later : propose_fix(c, f));
	return true;
}

static bool check_file(struct check *c, struct others *o, const struct found *f,
		       const struct found *next)
{
	if (f->bad)
		return check_bad(c, o, f);
	if (f->form.odd)
		tell_file(c, f, CHECK_NOTE, f->form.odd, propose_fix(c, f));
	return check_twin(c, f, next) || f->form.odd;
}

static bool check_archive(struct check *c)
{
	struct stat st;

	if (files_stat(c->s->dir, "archive", &st) || S_ISDIR(st.st_mode))
		return false;
	files_check_tell(c, CHECK_BAD, "files",
			 STR("archive: it is a link or not a folder, so pawl does not use it"),
			 arena_printf(&c->a, "move %s/archive away", c->s->path));
	return true;
}

static int check_files(struct check *c)
{
	struct others others = { .names = BUF_MAX(64 << 10) };
	struct found *f;
	size_t n, bad;
	int rc = files_list(c->s, true, &f, &n, &c->a);

	bad = check_archive(c);
	for (size_t i = 0; rc == 0 && i < n; i++) {
		int r = files_read_found(c->s, &f[i], &c->a);

		if (r < 0)
			rc = files_fail(c->s, r, f[i].name);
		if (r == 0)
			bad += check_file(c, &others, &f[i], i + 1 < n ? &f[i + 1] : NULL);
	}
	if (rc == 0 && !bad)
		files_check_tell(
			c, CHECK_OK, "files",
			arena_printf(&c->a, "%zu files, and every one can be read", n - others.n),
			STR(""));
	tell_others(c, &others);
	return rc;
}

static void check_state(struct check *c)
{
	const struct view *v = &c->s->view;

	files_check_tell(c, CHECK_OK, "state",
			 arena_printf(&c->a,
				      "%zu records, %" PRId64 " changes so far, %" PRId64 " KiB",
				      v->n, v->seq, v->end >> 10),
			 STR(""));
}

int files_check(struct store *base, check_fn *fn, void *ctx)
{
	struct check c = { .s = files_of(base), .fn = fn, .ctx = ctx };
	int rc = files_find_changes(c.s, true);

	if (rc < 0)
		return rc;
	files_now(base);
	check_fs(&c);
	check_modes(&c);
	check_state(&c);
	rc = check_files(&c);
	if (rc == 0)
		localclock_check(&c.s->clock, &c.s->anchor, fn, ctx);
	arena_free(&c.a);
	return rc;
}

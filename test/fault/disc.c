#include "disc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../race/kit.h"
#include "base/buf.h"
#include "base/fs.h"
#include "calls.h"

#define ROOM ((size_t)1 << 30) /* pages use memory only when they are written to */
#define FILES 4000
#define STEPS 1000000
#define SECTOR 512

enum step_kind { STEP_MARK, STEP_WRITE, STEP_CUT, STEP_SYNC, STEP_ADD, STEP_REMOVE, STEP_RENAME };

struct step {
	enum step_kind kind;
	int file;      /* written, truncated, synced, added; -1: none */
	int dir, dir2; /* of a name; dir2: where it was before */
	int64_t at;    /* offset, or new size */
	size_t n;      /* bytes of data */
	char name[64], name2[64];
	int begun, acked;
	char data[];
};

static struct trace {
	int n_files, n_steps;
	size_t used;
	struct {
		ino_t ino;
		bool folder, mapped;
	} files[FILES];
	size_t steps[STEPS]; /* where each step begins in bytes[] */
	_Alignas(16) char bytes[];
} * trace;

static int kill_countdown;
static const char *root_path, *odd_ending;

/* --- recording ----------------------------------------------------------------------------------- */

static struct step *step_at(int i)
{
	return (struct step *)(trace->bytes + trace->steps[i]);
}

static void add_step(const struct step *s, const void *data)
{
	struct step *mine = (struct step *)(trace->bytes + trace->used);

	CHECK(trace->n_steps < STEPS && trace->used + sizeof(*s) + s->n < ROOM / 2,
	      "the record is full");
	*mine = *s;
	if (s->n)
		memcpy(mine->data, data, s->n);
	trace->steps[trace->n_steps++] = trace->used;
	trace->used += (sizeof(*s) + s->n + 15) & ~(size_t)15;
}

/* The latest file with this inode, which may have belonged to another file before. -1: not below
 * the root. */
static int find_file(const struct stat *st)
{
	for (int i = trace->n_files - 1; i >= 0; i--)
		if (trace->files[i].ino == st->st_ino)
			return i;
	return -1;
}

static int new_file(const struct stat *st)
{
	CHECK(trace->n_files < FILES, "too many files");
	trace->files[trace->n_files].ino = st->st_ino;
	trace->files[trace->n_files].folder = S_ISDIR(st->st_mode);
	return trace->n_files++;
}

static int file_of(int fd)
{
	struct stat st;

	return syscall(SYS_fstat, fd, &st) ? -1 : find_file(&st);
}

/* The folder's number, and the last component of the path. */
static int folder_of(int dir, const char *path, char *name)
{
	const char *slash = strrchr(path, '/');
	char up[300];
	struct stat st;

	snprintf(name, 64, "%s", slash ? slash + 1 : path);
	if (slash)
		snprintf(up, sizeof(up), "%.*s", slash == path ? 1 : (int)(slash - path), path);
	else
		snprintf(up, sizeof(up), ".");
	return syscall(SYS_newfstatat, dir, up, &st, 0) ? -1 : find_file(&st);
}

static int file_named(int dir, const char *path)
{
	struct stat st;

	return syscall(SYS_newfstatat, dir, path, &st, AT_SYMLINK_NOFOLLOW) ? -1 : find_file(&st);
}

static void note_name(const struct effect *e)
{
	struct step s = { .kind = STEP_ADD, .dir = folder_of(e->dir, e->path, s.name) };
	struct stat st;

	if (s.dir < 0)
		return;
	switch (e->kind) {
	case EFFECT_CREATED:
		CHECK(syscall(SYS_fstat, e->fd, &st) == 0, "a file is gone");
		s.file = new_file(&st);
		break;
	case EFFECT_MADE_DIR:
		CHECK(syscall(SYS_newfstatat, e->dir, e->path, &st, 0) == 0, "a folder is gone");
		s.file = new_file(&st);
		break;
	case EFFECT_LINKED:
		s.file = file_named(e->dir, e->path);
		break;
	case EFFECT_RENAMED:
		s.kind = STEP_RENAME;
		s.file = file_named(e->dir, e->path);
		s.dir2 = folder_of(e->dir2, e->path2, s.name2);
		break;
	default:
		s.kind = STEP_REMOVE;
	}
	add_step(&s, NULL);
}

static void note_data(const struct effect *e)
{
	struct step s = { .kind = STEP_WRITE, .file = file_of(e->fd), .at = e->at, .n = e->n };

	if (s.file < 0)
		return;
	if (e->kind == EFFECT_CUT)
		s.kind = STEP_CUT;
	else if (e->kind == EFFECT_SYNCED)
		s.kind = STEP_SYNC;
	else if (e->kind == EFFECT_MAPPED)
		trace->files[s.file].mapped = true;
	if (e->kind != EFFECT_MAPPED)
		add_step(&s, e->data);
}

static void note_sync_of_all(void)
{
	for (int i = 0; i < trace->n_files; i++)
		add_step(&(struct step){ .kind = STEP_SYNC, .file = i }, NULL);
}

static void note(const struct effect *e)
{
	if (e->kind == EFFECT_SYNCED_ALL)
		note_sync_of_all();
	else if (e->path)
		note_name(e);
	else
		note_data(e);
	if (kill_countdown && --kill_countdown == 0)
		raise(SIGKILL);
}

static void odd_inode(const char *path, struct stat *st)
{
	if (str_ends(str_c(path), str_c(odd_ending)))
		st->st_ino = 77;
}

void disc_same_inode(const char *ending)
{
	odd_ending = ending;
	calls_stat = odd_inode;
}

void disc_record(const char *root)
{
	struct stat st;

	if (!trace)
		trace = shared_alloc(ROOM);
	trace->n_files = trace->n_steps = 0;
	trace->used = 0;
	memset(trace->files, 0, sizeof(trace->files));
	root_path = root;
	CHECK(stat(root, &st) == 0, "%s", root);
	new_file(&st);
	disc_go_on();
}

void disc_pause(void)
{
	calls_effect = NULL;
}

void disc_go_on(void)
{
	calls_effect = note;
}

void disc_kill_after(int n)
{
	kill_countdown = n;
}

void disc_mark(int begun, int acked)
{
	add_step(&(struct step){ .kind = STEP_MARK, .begun = begun, .acked = acked }, NULL);
}

void disc_snapshot(void)
{
	struct tree t = { 0 };

	tree_load(&t, root_path);
	for (const struct tree_node *n = t.nodes; n; n = n->next) {
		char path[300];
		int file;

		snprintf(path, sizeof(path), "%s/%.*s", root_path, STRF(n->path));
		file = n->folder ? -1 : file_named(AT_FDCWD, path);
		if (file >= 0 && trace->files[file].mapped)
			add_step(
				&(struct step){ .kind = STEP_WRITE, .file = file, .n = n->bytes.n },
				n->bytes.p);
	}
	tree_free(&t);
}

int disc_steps(void)
{
	return trace->n_steps;
}

/* --- playing ------------------------------------------------------------------------------------- */

struct name {
	char name[64];
	int file; /* -1: free */
};

/* The file as it is on disk, and the steps since its last sync. */
static struct disk_file {
	struct buf bytes;
	struct name *names;
	size_t n_names;
	int *pending;
	size_t n_pending;
} * disk;

static int played, last_begun, last_acked;

static void set_size(struct buf *b, size_t n)
{
	static const char zeros[4096];

	while (b->n < n)
		buf_add(b, zeros, n - b->n < sizeof(zeros) ? n - b->n : sizeof(zeros));
	b->n = n;
}

static void put_bytes(struct buf *b, int64_t at, const char *p, size_t n)
{
	if (b->n < (size_t)at + n)
		set_size(b, (size_t)at + n);
	memcpy(b->p + at, p, n);
}

static void set_name(struct disk_file *d, const char *name, int file)
{
	struct name *free_one = NULL;

	for (size_t i = 0; i < d->n_names; i++) {
		if (d->names[i].file >= 0 && strcmp(d->names[i].name, name) == 0) {
			d->names[i].file = file;
			return;
		}
		if (d->names[i].file < 0)
			free_one = &d->names[i];
	}
	if (file < 0)
		return;
	if (!free_one) {
		d->names = mem_grow(d->names, (d->n_names + 1) * sizeof(*d->names));
		free_one = &d->names[d->n_names++];
	}
	snprintf(free_one->name, sizeof(free_one->name), "%s", name);
	free_one->file = file;
}

/* Applies a step to a file, or to a folder and the folder that a name came from. */
static void apply(struct disk_file *f, struct disk_file *from, const struct step *s)
{
	switch (s->kind) {
	case STEP_WRITE:
		put_bytes(&f->bytes, s->at, s->data, s->n);
		break;
	case STEP_CUT:
		set_size(&f->bytes, (size_t)s->at);
		break;
	case STEP_RENAME:
		if (from)
			set_name(from, s->name2, -1);
		/* fall through */
	case STEP_ADD:
		set_name(f, s->name, s->file);
		break;
	default:
		set_name(f, s->name, -1);
	}
}

static void sync_file(int file)
{
	struct disk_file *f = &disk[file];

	for (size_t i = 0; i < f->n_pending; i++) {
		const struct step *s = step_at(f->pending[i]);

		apply(f, s->kind == STEP_RENAME ? &disk[s->dir2] : NULL, s);
	}
	f->n_pending = 0;
}

static void wait_for_sync(int file, int step)
{
	struct disk_file *f = &disk[file];

	f->pending = mem_grow(f->pending, (f->n_pending + 1) * sizeof(*f->pending));
	f->pending[f->n_pending++] = step;
}

static void reset_disk(void)
{
	if (!disk)
		disk = calloc(FILES, sizeof(*disk));
	for (int i = 0; i < FILES; i++) {
		buf_free(&disk[i].bytes);
		free(disk[i].names);
		free(disk[i].pending);
		disk[i] = (struct disk_file){ .bytes = BUF_MAX((size_t)1 << 30) };
	}
	last_begun = last_acked = -1;
}

void disc_play(int steps)
{
	if (steps < played || !disk) {
		reset_disk();
		played = 0;
	}
	for (; played < steps; played++) {
		const struct step *s = step_at(played);

		if (s->kind == STEP_MARK) {
			last_begun = s->begun;
			last_acked = s->acked;
		} else if (s->kind == STEP_SYNC) {
			sync_file(s->file);
		} else {
			wait_for_sync(s->kind <= STEP_SYNC ? s->file : s->dir, played);
		}
	}
}

void disc_marks(int *begun, int *acked)
{
	*begun = last_begun;
	*acked = last_acked;
}

/* --- the image ----------------------------------------------------------------------------------- */

enum fate { LOST, KEPT, COIN, SECTORS, PREFIX, NEARLY_ALL, FATES };

static uint64_t dice;

static uint32_t roll(uint32_t limit)
{
	dice ^= dice << 13;
	dice ^= dice >> 7;
	dice ^= dice << 17;
	return (uint32_t)(dice >> 11) % limit;
}

/* Is the i-th of the unsynced steps on disk? */
static bool kept(enum fate fate, size_t i, size_t prefix)
{
	switch (fate) {
	case LOST:
		return false;
	case KEPT:
		return true;
	case PREFIX:
		return i < prefix;
	case NEARLY_ALL:
		return roll(8) != 0;
	default:
		return roll(2) != 0;
	}
}

static void tear(struct disk_file *f, const struct step *s)
{
	for (size_t done = 0; done < s->n;) {
		size_t at = (size_t)s->at + done, n = SECTOR - at % SECTOR;

		if (n > s->n - done)
			n = s->n - done;
		if (roll(2))
			put_bytes(&f->bytes, (int64_t)at, s->data + done, n);
		else if (f->bytes.n < at + n && roll(2))
			set_size(&f->bytes, at + n); /* the file grew and has no data there */
		done += n;
	}
}

static struct disk_file after_crash(int file, enum fate fate)
{
	const struct disk_file *d = &disk[file];
	struct disk_file f = { .bytes = BUF_MAX((size_t)1 << 30) };
	size_t prefix = d->n_pending ? roll((uint32_t)d->n_pending + 1) : 0;

	buf_add(&f.bytes, d->bytes.p, d->bytes.n);
	for (size_t i = 0; i < d->n_names; i++)
		if (d->names[i].file >= 0)
			set_name(&f, d->names[i].name, d->names[i].file);
	for (size_t i = 0; i < d->n_pending; i++) {
		const struct step *s = step_at(d->pending[i]);

		if (s->kind == STEP_WRITE && fate == SECTORS)
			tear(&f, s);
		else if (kept(fate, i, prefix))
			apply(&f, s->dir2 == s->dir ? &f : NULL, s);
	}
	return f;
}

static void image_of(int folder, struct str path, struct tree *out)
{
	struct disk_file d = after_crash(folder, (enum fate)roll(FATES));

	for (size_t i = 0; i < d.n_names; i++) {
		int file = d.names[i].file;
		struct str below;

		if (file < 0)
			continue;
		below = str_c(fs_join(&out->a, path, str_c(d.names[i].name)));
		if (trace->files[file].folder) {
			tree_add(out, below, true, STR(""));
			image_of(file, below, out);
		} else {
			struct disk_file f = after_crash(file, (enum fate)roll(FATES));

			tree_add(out, below, false, buf_str(&f.bytes));
			buf_free(&f.bytes);
		}
	}
	buf_free(&d.bytes);
	free(d.names);
}

void disc_image(uint64_t seed, struct tree *out)
{
	dice = (seed + 1) * UINT64_C(0x9E3779B97F4A7C15);
	image_of(0, STR(""), out);
}

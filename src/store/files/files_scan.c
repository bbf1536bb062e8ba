/*
 * Finds the files that other programs changed. The folder's mtime shows that a file was added,
 * removed or renamed. A .lock may be rewritten in place, so the store checks every .lock each time,
 * and any other file when it hands out the record. A reader takes no lock. It reads the state again
 * after the folder. If the state has moved on, the files may belong to a change in progress, so the
 * reader discards its findings and retries.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/os.h"
#include "format/record_form.h"
#include "store/files/files.h"

#define TRIES 6

/* --- listing ------------------------------------------------------------------------------------ */

static int by_key(const void *pa, const void *pb)
{
	const struct found *a = pa, *b = pb;
	int c = str_cmp(a->key, b->key);

	if (!c)
		c = (a->archived > b->archived) - (a->archived < b->archived);
	return c ? c : strcmp(a->name, b->name);
}

struct list {
	struct found *v;
	size_t n;
	struct arena *a;
};

static void list_add(struct list *l, const char *name, uint64_t ino, bool archived)
{
	struct str id = { 0 };
	enum file_kind kind = files_kind(str_c(name), &id);
	struct found *f;

	if (kind == FILE_NONE || strlen(name) >= FILES_NAME_MAX)
		return;
	l->v = arena_grow(l->a, l->v, l->n, sizeof(*l->v));
	f = &l->v[l->n++];
	*f = (struct found){ .kind = kind, .archived = archived, .ino = ino };
	memcpy(f->name, name, strlen(name) + 1);
	f->id = arena_str(l->a, id);
	f->key = task_key(l->a, f->id);
}

static int list_folder(struct files *s, struct list *l, bool archived)
{
	int dir = files_folder(s, archived), fd, err;
	struct dirent *e;
	DIR *d;

	if (dir == -ENOENT)
		return 0;
	fd = dir < 0 ? dir : openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	d = fd < 0 ? NULL : fdopendir(fd);
	if (!d) {
		err = dir < 0 ? -dir : errno;
		if (fd >= 0)
			close(fd);
		return files_fail(s, -err, archived ? "archive" : "its list of files");
	}
	for (errno = 0; (e = readdir(d)); errno = 0)
		list_add(l, e->d_name, e->d_ino, archived);
	err = errno;
	closedir(d);
	return err ? files_fail(s, -err, archived ? "archive" : "its list of files") : 0;
}

int files_list(struct files *s, bool archive, struct found **out, size_t *n, struct arena *a)
{
	struct list l = { .a = a };
	int rc = list_folder(s, &l, false);

	if (rc == 0 && archive)
		rc = list_folder(s, &l, true);
	if (l.n > 1)
		qsort(l.v, l.n, sizeof(*l.v), by_key);
	*out = l.v;
	*n = l.n;
	return rc;
}

/* Lists a known record's existing files by trying each possible name. */
static int list_names(struct files *s, const struct ent *e, struct list *l)
{
	for (int i = 0; i < 2 * (FILE_KINDS - FILE_TASK); i++) {
		char name[FILES_NAME_MAX];
		struct stat st;
		int r = files_name(name, sizeof(name), e->ix.id,
				   (enum file_kind)(FILE_TASK + i / 2));

		if (r)
			continue;
		r = files_stat(files_folder(s, i % 2), name, &st);
		if (r < 0)
			return r;
		if (r == 0)
			list_add(l, name, st.st_ino, i % 2);
	}
	return 0;
}

/* --- interpreting the files --------------------------------------------------------------------- */

struct outcome {
	struct outcome *next;
	struct str key;
	const struct ent *e; /* NULL: there is no record */
};

struct looking {
	struct files *s;
	struct arena a;
	int64_t applied;
	bool archive, rebooted;
	int rc; /* on an error, all outcomes are discarded */
	struct outcome *first;
};

/* Reads one key's files, and drops from the list the files that are gone by now. */
static size_t read_group(struct looking *l, struct found *f, size_t n)
{
	size_t kept = 0;

	for (size_t i = 0; i < n && !l->rc; i++) {
		int r = files_read_found(l->s, &f[i], &l->a);

		if (r == 0)
			f[kept++] = f[i];
		else if (r < 0)
			l->rc = files_fail(l->s, r, f[i].name);
	}
	return kept;
}

/* Removes the files that failed changes left. Only a writer may do this, because it holds the
 * gate. */
static size_t clear_group(struct looking *l, const struct ent *known, struct found *f, size_t n)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++) {
		if (files_left_over(&f[i], known) && !files_in_place(&f[i], known))
			(void)unlinkat(files_folder(l->s, f[i].archived), f[i].name, 0);
		else
			f[kept++] = f[i];
	}
	return kept;
}

/* A power loss may lose files. Does one of these files prove that pawl wrote the record's own file,
 * or that another program changed it afterwards? */
static bool files_scan_tells(const struct looking *l, const struct ent *known,
			     const struct found *f, size_t n)
{
	for (size_t i = 0; l->rebooted && i < n; i++)
		if (!f[i].bad &&
		    (f[i].form.ours ? f[i].form.commit == known->commit
				    : !files_stamp_like(&f[i].stamp, &known->old.stamp)))
			return true;
	return false;
}

static void files_scan_decide(struct looking *l, struct str key, const struct ent *now,
			      struct found *f, size_t n)
{
	const struct ent *known = files_committed(now);
	struct outcome *o;

	n = read_group(l, f, n);
	if (l->rc)
		return;
	if (known && known->rev > l->applied && known->fresh && !files_scan_tells(l, known, f, n))
		return; /* its files are not written yet */
	if (l->s->changing)
		n = clear_group(l, known, f, n);
	o = arena_new(&l->a, struct outcome);
	*o = (struct outcome){ l->first, key, files_understand(l->s, known, f, n) };
	l->first = o;
}

static void decide_names(struct looking *l, const struct ent *e)
{
	struct list names = { .a = &l->a };

	int r = list_names(l->s, e, &names);

	if (r < 0)
		l->rc = files_fail(l->s, r, "a task's file");
	else
		files_scan_decide(l, e->key, e, names.v, names.n);
}

static bool has_changed(const struct ent *old, const struct ent *e)
{
	int was = old && !old->dropped ? old->ix.status : 0,
	    is = e && !e->dropped ? e->ix.status : 0;

	return was != is;
}

/* A task that a person removed by hand must leave its fence behind, as every removed task does. */
static void files_scan_delete(struct files *s, const struct ent *e)
{
	struct arena *a = &s->view.arena;
	struct ent *gone = arena_new(a, struct ent);
	struct task t = { 0 };
	struct str id = e->key;

	if (task_unpack(e->hot, &t, a) || !t.fence)
		return;
	(void)str_cut(&id, '/');
	gone->key = arena_printf(a, "gone/%.*s", STRF(id));
	gone->hot = arena_printf(a, "%lld", (long long)t.fence);
	gone->found = gone->has_body = true;
	gone->was = files_committed(files_find(&s->view, gone->key));
	files_set(&s->view, gone);
}

static void take_over(struct looking *l)
{
	struct view *v = &l->s->view;
	bool any = false;

	for (struct outcome *o = l->first; o; o = o->next) {
		struct ent *old = files_find(v, o->key);

		v->n_found++;
		if (o->e)
			files_set(v, (struct ent *)o->e);
		else if (old)
			files_unset(v, o->key);
		if (o->e && o->e->found && o->e->dropped)
			files_scan_delete(l->s, o->e);
		if (!has_changed(old, o->e) && !(old && old->rewrite))
			continue;
		any = true;
		if (o->e)
			((struct ent *)o->e)->moved = true;
	}
	if (any)
		files_recount(l->s);
}

/* --- the folder --------------------------------------------------------------------------------- */

static bool seems_same(struct files *s, const struct ent *e, const struct found *f, size_t n)
{
	if (!e || e->dropped || e->bad || e->occupied || n != 1 || e->kind != f->kind ||
	    e->archived != f->archived || e->stamp.ino != f->ino || !str_eq(e->ix.id, f->id))
		return false;
	return (e->kind != FILE_LOCK && e->stamp.mtime > 0) || files_untouched(s, e);
}

static bool has_file(const struct ent *e)
{
	return e->bad || e->kind != FILE_NONE;
}

/* Merges the view and the folder's list, which are both sorted by key. */
static void files_scan_compare(struct looking *l, struct found *f, size_t n)
{
	struct view *v = &l->s->view;
	size_t i = 0, j = 0;

	while (i < v->n || j < n) {
		struct ent scratch;
		const struct ent *e = i < v->n ? files_peek(v, i, &scratch) : NULL;
		int c = !e ? 1 : j == n ? -1 : str_cmp(e->key, f[j].key);
		size_t from = j;

		if (c < 0) {
			if (has_file(e) && !e->dropped && (l->archive || !e->archived))
				decide_names(l, files_at(v, i));
			i++;
			continue;
		}
		while (j < n && str_eq(f[j].key, f[from].key))
			j++;
		if (!seems_same(l->s, c ? NULL : e, f + from, j - from))
			files_scan_decide(l, f[from].key, c ? NULL : files_at(v, i), f + from,
					  j - from);
		i += c == 0;
	}
}

/* Checks each .lock, because another program may have renewed it in place. */
static void check_locks(struct looking *l)
{
	struct view *v = &l->s->view;

	for (size_t i = 0; i < v->n; i++) {
		const struct ent *e = v->v[i].e;

		if (!e && files_raw_kind(v->v[i].raw) == FILE_LOCK)
			e = files_at(v, i);
		if (e && e->kind == FILE_LOCK && !e->dropped && !files_untouched(l->s, e))
			decide_names(l, e);
	}
}

int64_t files_folder_time(struct files *s)
{
	struct stat st;

	return fstat(s->dir, &st) ? 0 : files_nanoseconds(&st);
}

enum { FOLDER_LOW = 0, FOLDER_HIGH = 1, APPLIED = 2 };

/* The note's third number is a checksum over the other two, so a reader ignores a half-written
 * note. */
static uint32_t files_scan_sealed(const uint32_t notes[GATE_NOTES], int64_t seq)
{
	return (uint32_t)seq ^ notes[FOLDER_LOW] ^ notes[FOLDER_HIGH];
}

void files_read_note(struct files *s, int64_t *folder, int64_t *applied)
{
	uint32_t notes[GATE_NOTES];

	*folder = 0;
	*applied = -1;
	if (s->note < 0)
		s->note = openat(s->own, "gate", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (s->note < 0 || !gate_peek(s->note, notes))
		return;
	if (files_scan_sealed(notes, FILES_UNSYNCED) == notes[APPLIED])
		*applied = FILES_UNSYNCED;
	for (int64_t seq = s->view.seq; seq >= 0 && seq > s->view.seq - 8; seq--)
		if (files_scan_sealed(notes, seq) == notes[APPLIED]) {
			*folder = (int64_t)((uint64_t)notes[FOLDER_HIGH] << 32 | notes[FOLDER_LOW]);
			*applied = seq;
			return;
		}
}

void files_write_note(struct files *s, int64_t folder, int64_t applied)
{
	uint32_t notes[GATE_NOTES] = { (uint32_t)folder, (uint32_t)((uint64_t)folder >> 32) };

	notes[APPLIED] = files_scan_sealed(notes, applied);
	gate_announce(&s->gate, notes);
}

bool files_rebooted(const struct files *s)
{
	return !localclock_fits(&s->clock, &s->view.anchor);
}

/* Reads the number of the last change whose files are all written. After a reboot a reader cannot
 * rely on it, and uses -1. */
static void read_applied(struct looking *l, int64_t *folder)
{
	files_read_note(l->s, folder, &l->applied);
	l->rebooted = files_rebooted(l->s);
	if (l->s->changing)
		l->applied = l->s->applied;
	else if (l->rebooted)
		l->applied = -1;
}

/* Closes the archive if another program has replaced the folder. */
static void check_archive(struct files *s)
{
	struct stat mine, there;

	if (s->archive < 0 ||
	    (fstat(s->archive, &mine) == 0 && files_stat(s->dir, "archive", &there) == 0 &&
	     mine.st_ino == there.st_ino && mine.st_dev == there.st_dev))
		return;
	close(s->archive);
	s->archive = -1;
}

static int check_once(struct files *s, bool all, bool *again)
{
	struct looking l = { .s = s, .archive = all };
	int64_t folder, now = files_folder_time(s);
	struct found *f;
	size_t n;
	bool strange = s->strange;
	int rc = 0;

	read_applied(&l, &folder);
	check_archive(s);
	s->checked = now;
	if (!all && now && (now == folder || now == s->folder)) {
		check_locks(&l);
	} else {
		s->strange = false;
		rc = files_list(s, all, &f, &n, &l.a);
		if (rc == 0)
			files_scan_compare(&l, f, n);
		s->folder = now / 1000000 < os_wall_ms() - FILES_SETTLED ? now : 0;
	}
	if (rc == 0)
		rc = l.rc;
	*again = false;
	if (rc == 0 && l.first && !s->changing)
		rc = files_refresh(s, again);
	if (rc == 0 && !*again)
		take_over(&l);
	else
		s->folder = 0;
	s->strange |= strange && !all;
	arena_free(&l.a);
	return rc;
}

int files_find_changes(struct files *s, bool all)
{
	bool again = true;
	int rc = 0;

	for (int i = 0; rc == 0 && again && i < TRIES; i++) {
		if (!s->changing)
			rc = files_refresh(s, NULL);
		if (rc == 0 && s->view.gone)
			return store_fail(&s->base.env, STORE_ABSENT,
					  "to make a new one: pawl init",
					  "another process has removed the queue in %s", s->path);
		if (rc == 0)
			rc = check_once(s, all, &again);
	}
	return rc; /* if the state kept changing, the committed records count */
}

/* Has a process committed a change that the view does not have? */
static bool files_moved_on(struct files *s)
{
	struct stat st;

	return fstatat(s->own, "state", &st, AT_SYMLINK_NOFOLLOW) || st.st_ino != s->view.ino ||
	       st.st_size > s->view.end;
}

/* A script may make a file while pawl is naming its own files. The mtime that pawl then sets on the
 * folder hides the script's file. So pawl checks a record's names before it hands out the record,
 * whatever the folder's mtime is. */
static bool has_unseen_file(struct files *s, const struct ent *e, struct str key)
{
	struct str id = e ? e->ix.id : key;
	char name[FILES_NAME_MAX];
	struct stat st;

	if ((!e && !str_cut_prefix(&id, STR("task/"))) || !id.n)
		return false;
	for (int kind = FILE_LOCK; kind <= FILE_FAILED; kind++) {
		if (e && !e->dropped && e->kind == kind && !e->archived)
			continue;
		if (files_name(name, sizeof(name), id, (enum file_kind)kind) == 0 &&
		    files_stat(s->dir, name, &st) == 0)
			return true;
	}
	return false;
}

int files_check_file(struct files *s, struct str key, bool *changed)
{
	const struct ent *e = files_find(&s->view, key);
	struct looking l = { .s = s, .archive = true };
	bool unseen = has_unseen_file(s, e, key);
	int64_t folder;
	int rc = 0;

	*changed = false;
	if (unseen && !s->changing && !s->depth)
		return files_find_changes(s, true);
	if (!e || e->dropped || e->kind == FILE_NONE || e->rewrite || e->rev > s->view.seq ||
	    (!unseen && files_untouched(s, e)))
		return 0;
	if (!s->changing && !s->depth)
		rc = files_refresh(s, changed);
	if (rc < 0 || *changed)
		return rc;
	read_applied(&l, &folder);
	decide_names(&l, e);
	if (l.rc) {
		rc = l.rc;
	} else if (s->depth && !s->changing && files_moved_on(s)) {
		*changed = true;
		rc = 1;
	} else {
		take_over(&l);
		*changed = files_find(&s->view, key) != e;
	}
	arena_free(&l.a);
	return rc;
}

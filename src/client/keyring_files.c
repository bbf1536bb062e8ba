/* One file of the keyring: its name and its content. The name is a hash, so a lookup by queue, task, agent, run and worktree
 * is one open(); if the queue has an id, the name's first KEY_HEAD characters are equal in all worktrees, so a moved queue finds its tokens. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/os.h"
#include "base/secret.h"
#include "client/keyring_private.h"
#include "client/place.h"

/* --- contents ------------------------------------------------------------------------------ */

void key_describe(struct buf *b, const struct keyring *k, struct str task, struct str token)
{
	line_add(b, "queue", k->queue);
	if (*k->id)
		line_add(b, "queue_id", str_c(k->id));
	if (*k->origin)
		line_add(b, "origin", str_c(k->origin));
	line_add(b, "task", task);
	line_add(b, "agent", k->agent);
	line_add(b, "run", k->run);
	line_add(b, "work_tree", k->worktree);
	line_add(b, "home", k->home);
	line_add(b, "token", token);
}

bool key_read(const char *path, struct key *out, struct arena *a)
{
	struct str text;

	*out = (struct key){ 0 };
	if (fs_read(a, path, KEY_FILE_MAX, &text))
		return false;
	while (text.n) {
		struct str value = str_cut(&text, '\n'), name = str_cut(&value, '=');

		if (str_is(name, "queue"))
			out->queue = line_value(value, a);
		else if (str_is(name, "queue_id"))
			out->id = line_value(value, a);
		else if (str_is(name, "origin"))
			out->origin = line_value(value, a);
		else if (str_is(name, "run"))
			out->run = line_value(value, a);
		else if (str_is(name, "work_tree"))
			out->worktree = line_value(value, a);
		else if (str_is(name, "home"))
			out->home = line_value(value, a);
		else if (str_is(name, "task"))
			out->task = line_value(value, a);
		else if (str_is(name, "agent"))
			out->agent = line_value(value, a);
		else if (str_is(name, "token"))
			out->token = value;
		else if (str_is(name, "fence") && !str_to_i64(value, &out->fence))
			return false;
	}
	return token_valid(out->token);
}

/* --- names --------------------------------------------------------------------------------- */

/* Task ids ignore case. */
static void add_small(struct buf *b, struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		buf_addc(b, s.p[i] >= 'A' && s.p[i] <= 'Z' ? (char)(s.p[i] + 32) : s.p[i]);
}

static void add_holder(struct buf *b, const struct keyring *k, enum key_by by, struct str task)
{
	buf_adds(b, by == KEY_BY_ID ? str_c(k->id) : k->queue);
	if (by == KEY_BY_ID) /* all ids have the same length; the label has the address */
		buf_adds(b, str_c(k->origin));
	buf_addc(b, '\0');
	add_small(b, task);
	buf_addc(b, '\0');
	buf_adds(b, k->agent);
	buf_addc(b, '\0');
	buf_adds(b, k->run);
}

struct str key_head(const struct keyring *k, struct str task)
{
	struct buf b = BUF_MAX(KEY_FILE_MAX);
	struct str head;

	add_holder(&b, k, KEY_BY_ID, task);
	head = hash_hex(k->arena, buf_str(&b));
	buf_free(&b);
	return str_n(head.p, KEY_HEAD);
}

struct str key_name(const struct keyring *k, enum key_by by, struct str task, struct str filter)
{
	struct buf b = BUF_MAX(KEY_FILE_MAX);
	struct str name, head;

	add_holder(&b, k, by, task);
	buf_addc(&b, '\0');
	buf_adds(&b, k->worktree);
	if (filter.n)
		buf_addc(&b, '\0');
	buf_adds(&b, filter);
	name = hash_hex(k->arena, buf_str(&b));
	buf_free(&b);
	if (by == KEY_BY_LABEL)
		return name;
	head = key_head(k, task);
	return arena_printf(k->arena, "%.*s%s", STRF(head),
			    arena_cstr(k->arena, str_n(name.p, name.n - KEY_HEAD)));
}

char *key_path(const struct keyring *k, struct str name, const char *ending)
{
	struct str file = arena_printf(k->arena, "%.*s%s", STRF(name), ending);

	return fs_join(k->arena, str_c(k->dir), file);
}

char *key_saved(const struct keyring *k, enum key_by by, struct str task)
{
	return key_path(k, key_name(k, by, task, STR("")), ".token");
}

/* --- keyring old ------------------------------------------------------------------------------ */

/* Old files of the keyring: those of a queue that was moved, migrated or created again, and of removed queues. Also lists all
 * files, for doctor. A copied folder gets no tokens: they follow a queue only if its old worktree is gone. */

#define OLD_MS (30 * INT64_C(86400000))
#define SWEEP_MOST 200 /* a sweep reads at most this many files */

static int64_t keyring_old_modified(const struct stat *st)
{
	return (int64_t)st->st_mtim.tv_sec * 1000 + st->st_mtim.tv_nsec / 1000000;
}

/* --- moved ---------------------------------------------------------------------------------- */

/* Removes the last part of both paths if it is equal in both. */
static bool cut_same_part(struct str *a, struct str *b)
{
	size_t i = a->n, j = b->n;

	while (i && a->p[i - 1] != '/')
		i--;
	while (j && b->p[j - 1] != '/')
		j--;
	if (i < 2 || j < 2 || !str_eq(str_n(a->p + i, a->n - i), str_n(b->p + j, b->n - j)))
		return false;
	a->n = i - 1;
	b->n = j - 1;
	return true;
}

static bool keyring_old_below(struct str *path, struct str folder)
{
	if (!str_starts(*path, folder) || path->n == folder.n || path->p[folder.n] != '/')
		return false;
	*path = str_n(path->p + folder.n, path->n - folder.n);
	return true;
}

/* Was a folder renamed that contains both .pawl and the worktree? Then both have the same path below the new name as
 * below the old one. After a copy, the old worktree still exists: that is not a move. */
static bool moved_together(const struct keyring *k, const struct key *old)
{
	struct str from = old->worktree, to = k->worktree, was = old->home, is = k->home;

	if (!from.n || !to.n || str_eq(was, is))
		return false;
	while (cut_same_part(&from, &to))
		;
	return keyring_old_below(&was, from) && keyring_old_below(&is, to) && str_eq(was, is) &&
	       !fs_exists(arena_cstr(k->arena, old->worktree));
}

static bool is_ours(const struct keyring *k, const struct key *key, struct str task)
{
	return str_is(key->id, k->id) && str_eq_nocase(key->task, task) &&
	       str_eq(key->agent, k->agent) && str_eq(key->run, k->run) && moved_together(k, key);
}

/* Renames the file, so that later calls find it by its name. Another process may be renaming it at the same time. */
static void rename_moved(const struct keyring *k, const char *path, struct str task)
{
	const char *saved = key_saved(k, *k->id ? KEY_BY_ID : KEY_BY_LABEL, task);
	int fd = open(path, O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC);
	struct buf b = BUF_MAX(KEY_FILE_MAX);

	line_add(&b, "queue", k->queue);
	line_add(&b, "queue_id", str_c(k->id));
	line_add(&b, "origin", str_c(k->origin));
	line_add(&b, "work_tree", k->worktree);
	line_add(&b, "home", k->home);
	line_add(&b, "agent", k->agent);
	line_add(&b, "run", k->run);
	if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0 && fs_write_all(fd, buf_str(&b)) == 0 &&
	    link(path, saved) == 0)
		unlink(path);
	buf_free(&b);
	if (fd >= 0)
		close(fd);
}

bool keyring_moved(struct keyring *k, struct str task, struct key *out)
{
	struct str head = key_head(k, task);
	DIR *d = opendir(k->dir);
	const struct dirent *entry;
	bool found = false;

	while (d && !found && (entry = readdir(d))) {
		struct str name = str_c(entry->d_name);
		char *path;

		if (!str_starts(name, head) || !str_ends(name, STR(".token")))
			continue;
		path = fs_join(k->arena, str_c(k->dir), name);
		found = key_read(path, out, k->arena) && is_ours(k, out, task);
		if (found)
			rename_moved(k, path, task);
	}
	if (d)
		closedir(d);
	return found;
}

/* --- rebuilt -------------------------------------------------------------------------------- */

static bool was_here(const struct keyring *k, const struct key *key, struct str task)
{
	return str_eq(key->queue, k->queue) && str_eq_nocase(key->task, task) &&
	       str_eq(key->agent, k->agent) && str_eq(key->run, k->run) &&
	       str_eq(key->worktree, k->worktree);
}

bool keyring_older(struct keyring *k, struct str task, struct key *out)
{
	DIR *d = opendir(k->dir);
	const struct dirent *entry;
	char *latest = NULL;
	int64_t at = -1;

	while (d && (entry = readdir(d))) {
		struct str name = str_c(entry->d_name);
		struct stat st;
		struct key key;
		char *path;

		if (!str_ends(name, STR(".token")))
			continue;
		path = fs_join(k->arena, str_c(k->dir), name);
		if (lstat(path, &st) || keyring_old_modified(&st) <= at ||
		    !key_read(path, &key, k->arena) || !was_here(k, &key, task))
			continue;
		at = keyring_old_modified(&st);
		latest = path;
		*out = key;
	}
	if (d)
		closedir(d);
	if (latest)
		rename_moved(k, latest, task);
	return latest != NULL;
}

/* --- copied --------------------------------------------------------------------------------- */

struct copying {
	struct keyring from, to;
	int result;
};

static void copy_file(void *ctx, const struct key_file *f)
{
	struct copying *c = ctx;
	struct keyring to = c->to;
	struct key key;
	int r;

	if (f->pending || !f->id.n || !keyring_is_ours(&c->from, f) ||
	    !key_read(f->path, &key, to.arena))
		return;
	to.agent = key.agent;
	to.run = key.run;
	to.worktree = key.worktree;
	to.home = key.home;
	r = keyring_save(&to, key.task, key.token, key.fence);
	if (r)
		c->result = r;
}

int keyring_copy(const struct keyring *from, const struct keyring *to)
{
	struct copying c = { .from = *from, .to = *to };
	int r;

	if (!*from->id || strcmp(from->origin, to->origin) == 0)
		return 0;
	keyring_queue(&c.to, str_c(from->id), true); /* sure: keep the token of a later lock */
	r = keyring_each(&c.from, copy_file, &c);
	return r ? r : c.result;
}

/* --- gone ----------------------------------------------------------------------------------- */

/* The path in a label: "sqlite:/a/queue.db queue default" without the scheme. */
static struct str place_of(struct str label)
{
	(void)str_cut(&label, ':');
	return label;
}

/* Is the queue certainly gone from its place? Does not contact servers. */
static bool queue_is_gone(const struct keyring *k, const struct key *key)
{
	struct str place = place_of(key->queue);
	size_t end = place.n;

	if (*k->id && k->sure && str_eq(key->queue, k->queue))
		return key->id.n && !str_is(key->id, k->id);
	if (!place.n || place.p[0] != '/' || str_starts(place, STR("//")))
		return false;
	/* "/a/b c.db?x=y queue NAME": a path may contain all of these characters, so look only for the folder */
	while (end && place.p[end - 1] != '/')
		end--;
	return end > 1 && !fs_exists(arena_cstr(k->arena, str_n(place.p, end - 1)));
}

static void sweep_one(struct keyring *k, const char *path, int64_t now)
{
	struct stat st;
	struct key key;
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		return;
	/* a pending call keeps its file locked */
	if (flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, &st) == 0 &&
	    now - keyring_old_modified(&st) > OLD_MS && key_read(path, &key, k->arena) &&
	    queue_is_gone(k, &key))
		unlink(path);
	close(fd);
}

static bool is_key_file(struct str name)
{
	return str_ends(name, STR(".token")) || str_ends(name, STR(".pending")) ||
	       str_ends(name, STR(".tmp"));
}

void keyring_sweep(struct keyring *k)
{
	int64_t now = os_wall_ms();
	const struct dirent *entry;
	int checked = 0;
	DIR *d = opendir(k->dir);

	while (d && checked < SWEEP_MOST && (entry = readdir(d))) {
		struct str name = str_c(entry->d_name);

		if (!is_key_file(name))
			continue;
		sweep_one(k, fs_join(k->arena, str_c(k->dir), name), now);
		checked++;
	}
	if (d)
		closedir(d);
}

/* --- for doctor ---------------------------------------------------------------------------- */

static void show_file(const struct keyring *k, struct str name, key_file_fn *fn, void *ctx)
{
	struct key_file f = { .path = fs_join(k->arena, str_c(k->dir), name) };
	struct stat st;
	struct key key;

	if (lstat(f.path, &st))
		return;
	f.modified = keyring_old_modified(&st);
	f.pending = !str_ends(name, STR(".token"));
	if (key_read(f.path, &key, k->arena)) {
		f.queue = key.queue;
		f.id = key.id;
		f.origin = key.origin;
		f.task = key.task;
		f.agent = key.agent;
		f.run = key.run;
		f.worktree = key.worktree;
		f.fence = key.fence;
	}
	fn(ctx, &f);
}

int keyring_each(struct keyring *k, key_file_fn *fn, void *ctx)
{
	const struct dirent *entry;
	int r = keyring_check(k);
	DIR *d;

	if (r)
		return r == -ENOENT ? 0 : r;
	d = opendir(k->dir);
	if (!d)
		return -errno;
	while ((entry = readdir(d))) {
		struct str name = str_c(entry->d_name);

		if (is_key_file(name))
			show_file(k, name, fn, ctx);
	}
	closedir(d);
	return 0;
}

/*
 * Opens, makes, closes and discards a files: queue, and maps ids and queue names to file names.
 * files.h explains the parts. Below DIR the store never follows a link, and an id has no '/', so no
 * name leads out of the folder. The store refuses a network file system, because locks do not work
 * there.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/os.h"
#include "base/secret.h"
#include "format/json.h"
#include "format/record_form.h"
#include "store/files/files.h"

extern const struct store_ops store_files;

/* --- shared by all parts ------------------------------------------------------------------------ */

uint64_t files_random(void)
{
	return (uint64_t)random_below(UINT32_MAX) << 32 | random_below(UINT32_MAX);
}

static void files_new_id(char id[FILES_ID + 1])
{
	snprintf(id, FILES_ID + 1, "%016llx%016llx", (unsigned long long)files_random(),
		 (unsigned long long)files_random());
}

int files_fail(struct files *s, int err, const char *what)
{
	const struct store_env *env = &s->base.env;

	switch (err) {
	case -EACCES:
	case -EPERM:
	case -EROFS:
		return store_fail(env, STORE_READONLY, "check the owner and mode of the folder",
				  "no permission for %s in %s: %s", what, s->path, strerror(-err));
	case -ENOSPC:
	case -EDQUOT:
		return store_fail(env, STORE_FULL, "free some space on the device",
				  "no space is left for %s in %s: %s", what, s->path,
				  strerror(-err));
	case -ENOENT:
	case -ENOTDIR:
		return store_fail(env, STORE_UNREACHABLE, NULL, "%s in %s does not exist any more",
				  what, s->path);
	case -ELOOP:
	case -EINVAL:
	case -EISDIR:
		return store_fail(env, STORE_FOREIGN, "move it away",
				  "%s in %s is not the file that pawl put there", what, s->path);
	default:
		return store_fail(env, STORE_IO, NULL, "%s in %s: %s", what, s->path,
				  strerror(-err));
	}
}

int files_fail_folder(struct files *s, int err, const char *name)
{
	if (err == ELOOP || err == ENOTDIR || err == EEXIST)
		return store_fail(&s->base.env, STORE_FOREIGN, "move it away",
				  "%s in %s is a link or not a folder", name, s->path);
	if (err == EACCES)
		return store_fail(&s->base.env, STORE_READONLY,
				  "check the owner and mode of the folder",
				  "cannot open %s in %s: %s", name, s->path, strerror(err));
	return files_fail(s, -err, name);
}

/* --- closing ------------------------------------------------------------------------------------ */

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void files_close(struct store *base)
{
	struct files *s = files_of(base);

	files_view_free(&s->view);
	gate_close(&s->gate);
	close_fd(&s->dir);
	close_fd(&s->own);
	close_fd(&s->archive);
	close_fd(&s->note);
	close_fd(&s->watch);
	free(s->path);
	free(s);
}

/* --- finding the queue -------------------------------------------------------------------------- */

static int fail_absent(struct files *s)
{
	struct arena a = { 0 };
	struct str name = s->base.env.opt.queue;
	const char *hint;
	int rc;

	if (name.n)
		hint = arena_printf(&a, "pawl init --queue %s", store_word(&a, name).p).p;
	else
		hint = arena_printf(&a, "pawl init --store %s",
				    store_word(&a, arena_printf(&a, "files:%s", s->path)).p)
			       .p;
	rc = store_fail(&s->base.env, STORE_ABSENT, hint, "there is no queue%s%.*s%s in %s",
			name.n ? " '" : "", STRF(name), name.n ? "'" : "", s->path);
	arena_free(&a);
	return rc;
}

static int fail_open(struct files *s, int err)
{
	if (err == ENOENT)
		return fail_absent(s);
	if (err == ENOTDIR)
		return store_fail(&s->base.env, STORE_FOREIGN, "give the path of a folder",
				  "%s is not a folder", s->path);
	return store_fail(&s->base.env, err == EACCES ? STORE_READONLY : STORE_IO,
			  "check the owner and mode of the folder", "cannot open %s: %s", s->path,
			  strerror(err));
}

/* Opens the folder `name` in `dir`, without following a link. Makes a missing folder in mode
 * STORE_CREATE. */
static int open_below(struct files *s, int dir, const char *name)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	int fd = openat(dir, name, flags);

	if (fd < 0 && errno == ENOENT && s->base.env.mode == STORE_CREATE) {
		if (mkdirat(dir, name, 0777) && errno != EEXIST)
			return files_fail(s, -errno, name);
		fd = openat(dir, name, flags);
	}
	if (fd >= 0)
		return fd;
	return errno == ENOENT ? fail_absent(s) : files_fail_folder(s, errno, name);
}

/* Opens each folder on the path from DIR to the queue's folder, so that none of them can be a
 * link. */
static int open_queue_folder(struct files *s, struct str below)
{
	int rc = 0;

	while (rc >= 0 && below.n) {
		struct str part = str_cut(&below, '/');
		char name[256];

		if (snprintf(name, sizeof(name), "%.*s", STRF(part)) >= (int)sizeof(name))
			return fail_open(s, ENAMETOOLONG);
		rc = open_below(s, s->dir, name);
		if (rc >= 0) {
			close(s->dir);
			s->dir = rc;
		}
	}
	if (rc >= 0 && fstat(s->dir, &s->place))
		rc = fail_open(s, errno);
	return rc < 0 ? rc : 0;
}

static int open_folders(struct files *s, struct str dir, struct str below)
{
	struct arena a = { 0 };
	const char *path = arena_cstr(&a, dir);
	int r = s->base.env.mode == STORE_CREATE ? fs_make_dirs(path, 0777) : 0, rc;

	s->dir = r ? -1 : open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (r)
		rc = files_fail(s, r, "the folder");
	else
		rc = s->dir < 0 ? fail_open(s, errno) : open_queue_folder(s, below);
	if (rc == 0) {
		s->own = open_below(s, s->dir, ".pawl");
		rc = s->own < 0 ? s->own : 0;
	}
	arena_free(&a);
	return rc;
}

static int check_place(struct files *s)
{
	const char *network = os_network_fs(s->path);

	if (!network)
		return 0;
	return store_fail(&s->base.env, STORE_UNSUPPORTED,
			  "put the queue on a local disk, or share it through git:",
			  "%s is on a network file system (%s), where locks do not work", s->path,
			  network);
}

/* --- making a queue ----------------------------------------------------------------------------- */

static void remove_queue(struct files *s);

/* Two processes may make the queue at once. The second one to get the gate finds the state and
 * loads it. */
static int make_state(struct files *s)
{
	int rc = files_lock(s), r;

	if (rc < 0)
		return rc;
	rc = files_load(s);
	if (rc == 0 && s->view.gone) {
		remove_queue(s);
		rc = 1;
	}
	if (rc > 0) {
		files_view_free(&s->view);
		files_new_id(s->view.id);
		localclock_renew(&s->clock, &s->anchor, 0);
		rc = files_new_state(s, 0);
		if (rc == 0 && (r = files_sync_folder(s->dir)))
			rc = files_fail(s, r, "the folder");
		if (rc == 0)
			rc = files_load(s);
	}
	gate_unlock(&s->gate);
	return rc;
}

static int files_attach(struct files *s, struct str dir, struct str below)
{
	int rc = open_folders(s, dir, below);

	if (rc == 0)
		rc = check_place(s);
	if (rc < 0)
		return rc;
	rc = files_load(s);
	if (rc == 0 && s->view.gone)
		rc = 1;
	if (rc <= 0)
		return rc;
	return s->base.env.mode == STORE_CREATE ? make_state(s) : fail_absent(s);
}

/* --- opening ------------------------------------------------------------------------------------ */

/* Makes the path absolute, because the process may change its working directory before it uses the
 * path. */
static char *files_absolute(struct str path, struct str below)
{
	char *cwd = path.p[0] == '/' ? NULL : getcwd(NULL, 0);
	size_t room = (cwd ? strlen(cwd) : 0) + path.n + below.n + 3;
	char *out = mem_alloc(room);

	snprintf(out, room, "%s%s%.*s%s%.*s", cwd ? cwd : "", cwd ? "/" : "", STRF(path),
		 below.n ? "/" : "", STRF(below));
	free(cwd);
	return out;
}

static int files_open(struct store **out, const struct uri *uri, const struct store_env *env)
{
	struct arena a = { 0 };
	struct str below;
	struct files *s;
	int rc;

	if (!uri->path.n || memchr(uri->path.p, '\0', uri->path.n))
		return store_fail(env, STORE_UNSUPPORTED, "write files:/path/to/folder",
				  "a files: URI needs a path");
	s = mem_alloc(sizeof(*s));
	*s = (struct files){ .base = { .ops = &store_files, .env = *env },
			     .dir = -1,
			     .own = -1,
			     .archive = -1,
			     .note = -1,
			     .watch = -1,
			     .gate.fd = -1,
			     .view.fd = -1 };
	below = files_queue_folder(&a, env->opt.queue);
	s->path = files_absolute(uri->path, below);
	localclock_init(&s->clock, env);
	json_must_allocate();
	rc = localclock_usable(env);
	if (rc == 0)
		rc = files_attach(s, uri->path, below);
	arena_free(&a);
	if (rc < 0) {
		files_close(&s->base);
		return rc;
	}
	*out = &s->base;
	return 0;
}

/* --- all queues of the folder ------------------------------------------------------------------- */

/* Returns DIR itself, whichever of its queues is open. */
static struct str root_of(const struct files *s, struct arena *a)
{
	struct str path = str_c(s->path), below = files_queue_folder(a, s->base.env.opt.queue);

	return below.n ? str_n(path.p, path.n - below.n - 1) : path;
}

static bool has_queue(int root, struct str below, struct arena *a)
{
	int fd = beneath_open(root, fs_join(a, below, STR(".pawl/state")), O_RDONLY, 0);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static int list_queues(int root, name_fn *fn, void *ctx, struct arena *a)
{
	static const char path[] = ".pawl/queues";
	int fd = beneath_open(root, path, O_RDONLY | O_DIRECTORY, 0);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *e;

	if (!dir && fd >= 0)
		close(fd);
	if (!dir)
		return fd == -ENOENT ? 0 : fd < 0 ? fd : -ENOMEM;
	while ((e = readdir(dir)))
		if (e->d_name[0] != '.' &&
		    has_queue(root, str_c(fs_join(a, str_c(path), str_c(e->d_name))), a))
			fn(ctx, files_queue_name(a, str_c(e->d_name)));
	closedir(dir);
	return 0;
}

static int files_queues(struct store *base, name_fn *fn, void *ctx)
{
	struct files *s = files_of(base);
	struct arena a = { 0 };
	int root = beneath_dir(arena_cstr(&a, root_of(s, &a)), ""), r = root;

	if (root >= 0) {
		if (has_queue(root, STR(""), &a))
			fn(ctx, STR("default"));
		r = list_queues(root, fn, ctx, &a);
		close(root);
	}
	arena_free(&a);
	return r == -ENOENT || r >= 0 ? 0 : files_fail(s, r, ".pawl/queues");
}

int files_twin(struct files *s, struct files **out)
{
	struct files *t = mem_alloc(sizeof(*t));
	size_t room = strlen(s->path) + 1;

	*t = (struct files){ .base = s->base,
			     .path = memcpy(mem_alloc(room), s->path, room),
			     .dir = fcntl(s->dir, F_DUPFD_CLOEXEC, 0),
			     .own = fcntl(s->own, F_DUPFD_CLOEXEC, 0),
			     .place = s->place,
			     .archive = -1,
			     .note = -1,
			     .watch = -1,
			     .gate.fd = -1,
			     .view.fd = -1,
			     .clock = s->clock,
			     .anchor = s->anchor };
	*out = t;
	if (t->dir >= 0 && t->own >= 0)
		return 0;
	files_close(&t->base);
	*out = NULL;
	return files_fail(s, -EMFILE, ".pawl");
}

/* --- removing a queue --------------------------------------------------------------------------- */

/* Removes the records' files and the log before the state, so that `init` can finish after a
 * crash. */
static void remove_queue(struct files *s)
{
	for (size_t i = 0; i < s->view.n; i++)
		files_remove(s, files_at(&s->view, i));
	(void)unlinkat(s->dir, "archive", AT_REMOVEDIR);
	(void)unlinkat(s->own, "log", 0);
	(void)files_sync_folder(s->dir);
	(void)unlinkat(s->own, "state", 0);
	(void)files_sync_folder(s->own);
}

static struct store_counts *files_counts(struct store *base)
{
	struct files *s = files_of(base);
	struct arena a = { 0 };
	struct store_counts *c;

	if (base->env.mode != STORE_READ)
		return s->gate.fd >= 0 ? gate_counts(&s->gate) : NULL;
	c = gate_counts_at(&s->gate, fs_join(&a, str_c(s->path), STR(".pawl/gate")));
	arena_free(&a);
	return c;
}

int files_discard(struct store *base)
{
	struct files *s = files_of(base);
	int rc = store_may_write(&base->env, s->path, false);

	if (rc == 0)
		rc = files_lock(s);
	if (rc < 0)
		return rc;
	rc = files_find_changes(s, true);
	if (rc == 0)
		rc = files_append_end(s);
	if (rc == 0)
		remove_queue(s); /* if this process dies here, the next `init` removes the rest */
	gate_unlock(&s->gate);
	return rc == STORE_ABSENT ? 0 : rc; /* another process has removed the queue already */
}

/* --- waiting ------------------------------------------------------------------------------------ */

static int files_wake_fd(struct store *base)
{
	struct files *s = files_of(base);

	if (s->watch < 0) {
		struct arena a = { 0 };

		s->watch = os_watch(fs_join(&a, str_c(s->path), STR(".pawl")));
		if (s->watch >= 0)
			os_watch_also(s->watch, s->path);
		arena_free(&a);
	}
	return s->watch;
}

static void files_wake_clear(struct store *base)
{
	if (files_of(base)->watch >= 0)
		os_watch_drain(files_of(base)->watch);
}

const struct store_ops store_files = {
	.scheme = "files",
	.open = files_open,
	.close = files_close,
	.now = files_now,
	.get = files_get,
	.scan = files_scan,
	.count = files_count,
	.tally = files_tally,
	.modify = files_modify,
	.entries = files_entries,
	.snapshot = files_snapshot,
	.wake_fd = files_wake_fd,
	.wake_clear = files_wake_clear,
	.check = files_check,
	.queues = files_queues,
	.discard = files_discard,
	.counts = files_counts,
};

/* --- name ------------------------------------------------------------------------------------- */

/* Maps ids to file names and back. An id has no '/', so a name never leads out of the folder. */

static const char *const endings[FILE_KINDS] = {
	[FILE_TASK] = ".task",
	[FILE_LOCK] = ".lock",
	[FILE_DONE] = ".done",
	[FILE_FAILED] = ".failed",
};

int files_name(char *out, size_t room, struct str id, enum file_kind kind)
{
	int n = snprintf(out, room, "%.*s%s", STRF(id), endings[kind]);

	return id_fault(id) || n < 0 || (size_t)n >= room ? -1 : 0;
}

enum file_kind files_kind(struct str name, struct str *id)
{
	for (int k = FILE_TASK; k < FILE_KINDS; k++) {
		struct str end = str_c(endings[k]);

		if (name.n > end.n && name.p[0] != '.' && str_ends(name, end)) {
			*id = str_n(name.p, name.n - end.n);
			return (enum file_kind)k;
		}
	}
	return FILE_NONE;
}

static bool files_name_plain(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '-' || c == '_';
}

struct str files_queue_folder(struct arena *a, struct str queue)
{
	struct buf b = BUF_MAX(4 * queue.n + 32);
	struct str out;

	if (!queue.n || str_is(queue, "default"))
		return STR("");
	buf_adds(&b, STR(".pawl/queues/"));
	for (size_t i = 0; i < queue.n; i++) {
		if (files_name_plain(queue.p[i]))
			buf_addc(&b, queue.p[i]);
		else
			buf_addf(&b, "%%%02x", (unsigned char)queue.p[i]);
	}
	out = arena_str(a, buf_str(&b));
	buf_free(&b);
	return out;
}

struct str files_queue_name(struct arena *a, struct str folder)
{
	struct buf b = BUF_MAX(folder.n + 1);
	struct str out;

	for (size_t i = 0; i < folder.n; i++) {
		unsigned byte;

		if (folder.p[i] == '%' && i + 2 < folder.n &&
		    sscanf(folder.p + i, "%%%2x", &byte) == 1) {
			buf_addc(&b, (char)byte);
			i += 2;
		} else {
			buf_addc(&b, folder.p[i]);
		}
	}
	out = arena_str(a, buf_str(&b));
	buf_free(&b);
	return out;
}

int files_folder(struct files *s, bool archived)
{
	if (!archived)
		return s->dir;
	if (s->archive < 0)
		s->archive = openat(s->dir, "archive",
				    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (s->archive < 0)
		return errno == ENOTDIR || errno == ELOOP ? -ENOENT : -errno;
	return s->archive;
}

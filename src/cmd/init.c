/*
 * pawl init: makes a queue for a folder. It never hides the folder's present queue behind another
 * store, and it records a choice in the config only after the store could be opened.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/secret.h"
#include "base/text.h"
#include "cmd/command.h"
#include "core/lease.h"

struct init_args {
	struct args args;
	int64_t force, outside, print_sql;
};

static const struct param params[] = {
	LOCAL(init, force, "force", P_FLAG,
	      .help = "make a queue here, even if a parent folder has one"),
	LOCAL(init, outside, "outside", P_FLAG,
	      .help = "keep the tasks outside of this folder, under $XDG_STATE_HOME/pawl/queues"),
	LOCAL(init, print_sql, "print-sql", P_FLAG,
	      .help = "print the SQL that makes the schema of a postgres: store, and make nothing"),
	{ 0 }
};

static enum result init_run(struct session *s, struct args *args, struct reply *out);
static void init_show(const struct reply *r, struct view *v);

const struct command cmd_init = {
	.name = "init",
	.group = "setup",
	.summary = "make a queue here",
	.detail =
		"Makes the folder .pawl with the queue and its settings. In a linked git worktree, pawl makes it in the "
		"main worktree, so that all worktrees share one queue. pawl records --store and --queue in .pawl/config. "
		"If there is a queue already, init leaves it as it is: it can make another --queue beside it in the same "
		"store, and refuses another store. In a sub-folder of a folder with a queue it asks first, or needs "
		"--force. git keeps .pawl/config, but not the tasks, so a new clone has none, and `git clean -fdx` deletes "
		"them. --outside keeps them elsewhere on this machine; a store git:REMOTE shares them between clones.",
	.example = "pawl init\n"
		   "pawl init --outside\n"
		   "pawl init --store sqlite:/srv/queues/team.db",
	.see = "config set, doctor, create",
	.params = params,
	.args_size = sizeof(struct init_args),
	.flags = C_WRITE | C_IDEMPOTENT | C_LOCAL,
	.run = init_run,
	.show = init_show,
};

/* The config names a path on this machine, so git ignores it as well. */
static const char ignore_all_text[] =
	"# The queue is elsewhere on this machine; the file `config` says where.\n"
	"*\n";

static const char ignore_text[] = "# Git ignores the queue itself; you may share its settings.\n"
				  "*\n"
				  "!.gitignore\n"
				  "!config\n";

static const char config_text[] =
	"# Settings of this queue. `pawl config list` shows every setting, its value and\n"
	"# the source of the value. For example:\n"
	"# lease = " LEASE_DEFAULT "\n"
	"# max_abandoned = " LEASE_ABANDONED_DEFAULT "\n";

static enum result init_cannot(struct session *s, const char *path, int r, struct reply *out)
{
	return run_fail(API_ERROR,
			arena_printf(s->arena, "cannot create %s: %s", path, strerror(-r)),
			STR("check the folder's permissions and the free space on its disk"), out);
}

static int make_file(struct session *s, const char *dir, const char *name, struct str text)
{
	char *path = fs_join(s->arena, str_c(dir), str_c(name));

	/* An existing file stays, because the user may have changed it. */
	return fs_exists(path) ? 0 : fs_write_atomic(path, text, 0644);
}

/* Also syncs the name of an existing folder to disk, if possible: an interrupted init may have left
 * it. */
static int make_folder(struct session *s, const char *dir, bool *made)
{
	int err = mkdir(dir, 0777) ? errno : 0, r;

	*made = err == 0;
	if (err && err != EEXIST)
		return -err;
	if (!fs_is_dir(dir))
		return -ENOTDIR;
	r = fs_sync_dir(s->client.conn.place.init_dir);
	return *made ? r : 0;
}

static int make_files(struct session *s, const char *dir, bool outside)
{
	int r = make_file(s, dir, ".gitignore", str_c(outside ? ignore_all_text : ignore_text));

	return r ? r : make_file(s, dir, "config", str_n(config_text, sizeof(config_text) - 1));
}

/* Records the store and queue of the command line for later calls. A path in a config is relative
 * to the folder that has .pawl, so it stays as typed only if that is the current folder. */
static enum result keep_choice(struct session *s, const char *dir,
			       const struct client_options *said, struct answer *ans)
{
	const char *file = fs_join(s->arena, str_c(dir), STR("config")),
		   *here = fs_real(s->arena, s->client.conn.config.opt.dir);
	bool same = here && !strcmp(here, s->client.conn.place.init_dir);
	enum result code = SUCCESS;

	if (said->store.n)
		code = settings_write(file, STR("store"),
				      same ? &said->store : &s->client.conn.config.uri, ans,
				      s->arena);
	if (code == SUCCESS && said->queue.n)
		code = settings_write(file, STR("queue"), &said->queue, ans, s->arena);
	return code;
}

/* Trusts the config, because the user named its store or queue. This holds only if the file names
 * that store: the user did not choose a store that a clone's config had before. */
static void trust_choice(struct session *s, const struct client_options *said,
			 const struct trust *before, struct reply *out)
{
	struct client_options none = { .face = s->client.said.face, .dir = s->client.said.dir };
	struct answer ans = { 0 };
	struct client c;
	struct trust t;
	int r = 0;

	if ((!said->store.n && !said->queue.n) || client_init(&c, &none, &ans, s->arena) != SUCCESS)
		return;
	client_check_trust(&c, &t);
	if (t.state == TRUST_MISSING && trust_included(&t, before, said->store.n) &&
	    (!said->store.n || str_eq(t.uri, s->client.conn.config.uri)))
		r = trust_give(&t, s->arena);
	if (r)
		reply_warn(
			out,
			arena_printf(
				s->arena,
				"pawl cannot remember your trust in %s: %s; set PAWL_STORE, or set HOME; a person can then run `pawl trust`",
				t.config, strerror(-r)),
			s->arena);
}

/* --- the present queue of the folder ------------------------------------------------------------- */

static bool by_folder(const struct client *c, const char *name)
{
	struct str origin = settings_get(&c->conn.settings, name)->origin;

	return c->conn.settings.queue_file &&
	       str_starts(origin, str_c(c->conn.settings.queue_file));
}

static bool has_tasks(struct client *c)
{
	struct request rq = { .op = OP_LIST };
	struct answer ans = { 0 };

	GIVE(&rq, limit, 1);
	client_call(c, &rq, &ans);
	return ans.code == SUCCESS && ans.total > 0;
}

/* Does the folder itself have a queue that the user would lose sight of? A value from the
 * environment or from the user's own settings is not the folder's. */
static bool in_use(struct client *c)
{
	if (by_folder(c, "store") || by_folder(c, "queue"))
		return true;
	return str_is(settings_get(&c->conn.settings, "store")->origin, "default") &&
	       str_is(settings_get(&c->conn.settings, "queue")->origin, "default") && has_tasks(c);
}

static struct str queue_of(const struct client *c)
{
	return c->conn.config.opt.queue.n ? c->conn.config.opt.queue : STR("default");
}

/* The keyring's name of the queue contains no password. */
static enum result refuse_other(struct session *s, const struct client *old, struct reply *out)
{
	static const char word[] = " queue ";
	struct str store = old->keyring.queue, name;
	struct answer ans = { 0 };

	if (old->conn.trust.agent && trust_check(&old->conn.trust, &ans, s->arena) != SUCCESS)
		return run_answer(&ans, out); /* hides the untrusted config from an agent */
	while (store.n &&
	       !str_starts(str_n(store.p + store.n, old->keyring.queue.n - store.n), str_c(word)))
		store.n--;
	name = str_n(store.p + store.n, old->keyring.queue.n - store.n);
	str_cut(&name, ' ');
	str_cut(&name, ' ');
	return run_fail(
		MISCONFIGURED,
		arena_printf(s->arena, "this folder already uses %.*s (queue %.*s)", STRF(store),
			     STRF(name)),
		STR("to change the store: pawl config set store URI, then pawl init; to leave the folder as it is: "
		    "PAWL_STORE=URI pawl init"),
		out);
}

/* Refuses another store, because it would hide the folder's own store with all its tasks. Another
 * queue of the same store is made beside the first one, and the config does not record it. */
static enum result check_other(struct session *s, const char *dir, bool *keep, struct reply *out)
{
	struct client_options said = s->client.said;
	const char *found = s->client.conn.place.pawl_dir;
	enum result code = SUCCESS;
	struct answer ans = { 0 };
	struct client old;

	*keep = true;
	if ((!said.store.n && !said.queue.n) || !found || strcmp(found, dir) != 0)
		return SUCCESS;
	said.store = said.queue = STR("");
	if (client_init(&old, &said, &ans, s->arena) == SUCCESS &&
	    !str_eq(old.keyring.queue, s->client.keyring.queue) && in_use(&old)) {
		*keep = false;
		if (!str_eq(old.conn.trust.uri, s->client.conn.config.uri))
			code = refuse_other(s, &old, out);
	}
	client_close(&old);
	return code;
}

/* --- where it shall be -------------------------------------------------------------------------- */

/* Makes the folder of a queue outside. Its name is the same in each call for this folder. NULL: it
 * cannot be made; *r has the reason. */
static char *make_outside(struct session *s, int *r)
{
	struct str root = str_c(s->client.conn.place.init_dir);
	char *top = fs_user_dir(s->arena, "XDG_STATE_HOME", ".local/state"), *name, *dir;

	*r = top ? 0 : -ENOENT;
	if (!top)
		return NULL;
	name = arena_cstr(s->arena, arena_printf(s->arena, "%s-%.16s", strrchr(root.p, '/') + 1,
						 hash_hex(s->arena, root).p));
	for (char *p = name; *p; p++)
		if (strchr("?#%: ", *p) || (unsigned char)*p < ' ')
			*p = '-';
	dir = fs_join(s->arena, str_c(top), arena_printf(s->arena, "queues/%s", name));
	*r = strpbrk(top, "?#") ? -EINVAL : fs_make_dirs(top, 0700);
	if (!*r)
		*r = fs_make_dirs(dir, 0700);
	return *r ? NULL : dir;
}

/* --outside acts like --store with a path outside of the folder. */
static enum result choose_outside(struct session *s, struct client_options *said, struct reply *out)
{
	struct answer ans = { 0 };
	char *dir;
	int r;

	if (said->store.n)
		return run_fail(USAGE, STR("--outside chooses the store, and so does --store"),
				STR("leave one of them out"), out);
	dir = make_outside(s, &r);
	if (!dir)
		return init_cannot(s, "a folder under $XDG_STATE_HOME", r, out);
	said->store = arena_printf(s->arena, "sqlite:%s/queue.db", dir);
	if (client_init(&s->client, said, &ans, s->arena) != SUCCESS)
		return run_answer(&ans, out);
	return SUCCESS;
}

/* A queue in a sub-folder would hide the queue of the folder above from everybody who works there,
 * so pawl asks first. */
static enum result check_above(struct session *s, const struct init_args *a, struct reply *out)
{
	const struct place *p = &s->client.conn.place;
	struct reply preview = { 0 };
	struct trust above;
	struct str root;
	int said;

	if (!p->pawl_dir || a->force)
		return SUCCESS;
	client_check_trust(&s->client, &above);
	if (above.state == TRUST_MISSING) /* commands here refuse that queue anyway */
		return SUCCESS;
	root = fs_dirname(str_c(p->pawl_dir));
	if (str_is(root, p->init_dir) || !trust_within(str_c(p->init_dir), root))
		return SUCCESS;
	json_object_set_new(reply_more(&preview), "above", json_str(root));
	said = s->confirm ? s->confirm(s, &cmd_init, &preview) : -1;
	reply_free(&preview);
	if (said > 0)
		return SUCCESS;
	return run_fail(
		MISCONFIGURED,
		arena_printf(s->arena,
			     "%s has a queue, and commands in this folder use it. No other "
			     "queue was made",
			     arena_cstr(s->arena, text_line(s->arena, root))),
		STR("you can use that queue as it is. To make a separate queue here, which hides "
		    "that one: pawl init --force"),
		out);
}

/* --- a folder of files in a repository ---------------------------------------------------------- */

static bool is_queue_file(struct str name)
{
	static const char *const endings[] = { ".lock", ".task", ".done", ".failed" };

	for (size_t i = 0; i < sizeof(endings) / sizeof(*endings); i++)
		if (str_ends(name, str_c(endings[i])))
			return true;
	return str_is(name, "archive") || str_is(name, ".pawl") || str_is(name, ".gitignore");
}

/* Does the folder contain only files of the queue? */
static bool is_queue_folder(const char *dir)
{
	DIR *d = opendir(dir);
	const struct dirent *entry;
	bool only = d != NULL;

	while (only && (entry = readdir(d)))
		only = !strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..") ||
		       is_queue_file(str_c(entry->d_name));
	if (d)
		closedir(d);
	return only;
}

/* Keeps task files out of git, because they change with each call. In a folder with other files the
 * pattern could hide those, so pawl only warns. */
static void ignore_files(struct session *s, struct reply *out)
{
	static const char text[] =
		"# The tasks of pawl change with each call: they stay out of git.\n"
		"*\n"
		"!.gitignore\n";
	struct uri u;
	char *dir, *git;

	if (!client_in_files(&s->client) || uri_parse(s->client.conn.config.uri, &u))
		return;
	dir = arena_cstr(s->arena, u.path);
	if (!place_git_dir(dir, &git, s->arena) || !git)
		return;
	if (is_queue_folder(dir))
		(void)make_file(s, dir, ".gitignore", str_c(text));
	else
		reply_warn(
			out,
			arena_printf(
				s->arena,
				"%s has other files, too: keep *.task, *.lock, *.done and *.failed "
				"out of git yourself, or choose a folder of its own, such as "
				"files:.locks",
				dir),
			s->arena);
}

/* --- the repository's own exclude file ------------------------------------------------------------- */

#define EXCLUDE_MAX (1 << 20)

/* A checkout of a commit without .pawl/.gitignore removes that file, and git would then stage, clean
 * or stash the database. This list stays through every checkout. */
static const char exclude_text[] =
	"# The queue of pawl stays out of git, also in commits without .pawl/.gitignore.\n"
	"**/.pawl/*\n"
	"!**/.pawl/config\n"
	"!**/.pawl/.gitignore\n";

/* Opens a folder that is not a link and belongs to the user. */
static int exclude_folder(int at, const char *path)
{
	int fd = openat(at, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd >= 0 && (fstat(fd, &st) || st.st_uid != geteuid())) {
		close(fd);
		errno = EPERM;
		return -1;
	}
	return fd;
}

static int exclude_add(int info, struct arena *a)
{
	int fd = openat(info, "exclude", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC), r = 0;
	struct stat st = { .st_mode = 0644 };
	struct str text = { 0 };

	if (fd < 0 && errno != ENOENT)
		return -errno;
	if (fd >= 0) {
		r = fstat(fd, &st) ? -errno : S_ISREG(st.st_mode) ? 0 : -EINVAL;
		r = r ? r : fs_read_fd(a, fd, EXCLUDE_MAX, &text);
		close(fd);
	}
	if (r || (text.n && memmem(text.p, text.n, exclude_text, sizeof(exclude_text) - 1)))
		return r;
	text = arena_printf(a, "%.*s%s%s", STRF(text),
			    text.n && text.p[text.n - 1] != '\n' ? "\n" : "", exclude_text);
	return fs_write_atomic_at(info, "exclude", text, st.st_mode & 0777);
}

/* Writes into .git/info/exclude, which all worktrees share. It follows no link, because an unpacked
 * archive may contain one to anywhere. A failure is only a warning. */
static void exclude_queue(struct session *s, struct reply *out)
{
	int top, info = -1, r = 0;
	char *git;

	if (!place_git_dir(s->client.conn.place.init_dir, &git, s->arena) || !git)
		return;
	top = exclude_folder(AT_FDCWD, git);
	if (top >= 0 && (mkdirat(top, "info", 0777) == 0 || errno == EEXIST))
		info = exclude_folder(top, "info");
	r = info < 0 ? -errno : exclude_add(info, s->arena);
	if (info >= 0)
		close(info);
	if (top >= 0)
		close(top);
	if (r)
		reply_warn(out,
			   arena_printf(s->arena,
					"pawl cannot write %s/info/exclude: %s; a checkout of a "
					"commit without .pawl lets git see the queue",
					arena_cstr(s->arena, text_line(s->arena, str_c(git))),
					strerror(-r)),
			   s->arena);
}

static enum result open_queue(struct session *s, bool *existed, struct answer *ans)
{
	struct answer ignored = { 0 };
	struct client_options said = s->client.said;
	enum result code;

	/* The folder may be new, so pawl has to find the place again. */
	client_close(&s->client);
	s->client = (struct client){ 0 };
	code = client_init(&s->client, &said, ans, s->arena);
	if (code != SUCCESS)
		return code;
	*existed = client_open(&s->client, STORE_READ, &ignored) == SUCCESS &&
		   queue_is_there(s->client.conn.queue);
	return *existed ? SUCCESS : client_open(&s->client, STORE_CREATE, ans);
}

/* Prints the schema for an administrator to run, so that init itself needs no right to make one. */
static enum result print_sql(struct session *s, struct reply *out)
{
	struct store_error err = { 0 };
	struct store_env env = { .err = &err };
	struct buf sql = BUF_MAX(1 << 20);
	enum result code = SUCCESS;

	if (store_script(s->client.conn.config.uri, &env, &sql))
		code = run_fail(MISCONFIGURED, arena_str(s->arena, str_c(err.text)),
				arena_str(s->arena, str_c(err.hint)), out);
	else
		json_object_set_new(reply_more(out), "sql", json_str(buf_str(&sql)));
	buf_free(&sql);
	return code;
}

static enum result init_run(struct session *s, struct args *args, struct reply *out)
{
	const struct init_args *a = (const struct init_args *)args;
	struct client_options said = s->client.said;
	struct answer ans = { 0 };
	bool existed = false, made, keep;
	struct trust before;
	char *dir;
	int r;

	if (client_init(&s->client, &said, &ans, s->arena) != SUCCESS)
		return run_answer(&ans, out);
	if (a->print_sql)
		return print_sql(s, out);
	client_check_trust(&s->client, &before);
	if (check_above(s, a, out) != SUCCESS ||
	    (a->outside && choose_outside(s, &said, out) != SUCCESS))
		return out->ans.code;
	dir = fs_join(s->arena, str_c(s->client.conn.place.init_dir), STR(".pawl"));
	if (check_other(s, dir, &keep, out) != SUCCESS)
		return MISCONFIGURED;
	r = make_folder(s, dir, &made);
	if (r) {
		if (made)
			(void)rmdir(dir);
		return init_cannot(s, dir, r, out);
	}
	/* Open the store before the choice is recorded: a store that cannot be opened is not
	 * recorded. */
	if (open_queue(s, &existed, &ans) != SUCCESS) {
		if (made)
			(void)rmdir(dir);
		return run_answer(&ans, out);
	}
	r = make_files(s, dir, a->outside);
	if (r)
		return init_cannot(s, dir, r, out);
	if (keep && keep_choice(s, dir, &said, &ans) != SUCCESS)
		return run_answer(&ans, out);
	json_object_set_new(reply_more(out), "existed", json_boolean(existed));
	json_object_set_new(reply_more(out), "folder", json_str(str_c(dir)));
	json_object_set_new(reply_more(out), "store",
			    json_str(uri_shown(s->arena, s->client.conn.config.uri)));
	json_object_set_new(reply_more(out), "queue", json_str(queue_of(&s->client)));
	json_object_set_new(reply_more(out), "kept", json_boolean(keep));
	if (keep)
		trust_choice(s, &said, &before, out);
	ignore_files(s, out);
	exclude_queue(s, out);
	return SUCCESS;
}

static void init_show(const struct reply *r, struct view *v)
{
	const json_t *o = r->more;
	bool existed = json_is_true(json_object_get(o, "existed"));
	struct str queue = json_get(o, "queue");

	if (json_object_get(o, "sql"))
		buf_adds(v->out, json_get(o, "sql"));
	if (v->quiet || json_object_get(o, "sql"))
		return;
	if (json_object_get(o, "above")) {
		view_data(v, BOLD, json_get(o, "above"));
		view_text(
			v, PLAIN,
			" has a queue, and commands in this folder use it. A queue here would hide it.\n");
		return;
	}
	view_text(v, GREEN, existed ? "there is already a queue here: " : "made a queue: ");
	view_data(v, PLAIN, json_get(o, "store"));
	if (!str_is(queue, "default")) {
		view_text(v, PLAIN, ", queue ");
		view_data(v, BOLD, queue);
	}
	if (!json_is_true(json_object_get(o, "kept")))
		view_text(
			v, PLAIN,
			"; the folder keeps its own queue: name this one with --queue or PAWL_QUEUE");
	view_text(v, DIM, "\nfolder: ");
	view_data(v, DIM, json_get(o, "folder"));
	view_text(v, DIM, "\nnext: pawl create TITLE\n");
}

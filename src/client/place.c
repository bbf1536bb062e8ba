/* Finds the queue and the git repository around the current folder. It reads git's files itself and never runs git. A .pawl
 * that is a link is refused, because a clone may contain a link that leads anywhere. */
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/hex.h"
#include "client/client.h"
#include "client/place.h"
#include "format/ini.h"

#define GIT_FILE_MAX (64 * 1024)

/* --- git's files (running git would take longer than the rest of a call) ------------------- */

struct git {
	char *root;   /* of the current worktree; NULL: not in a worktree */
	char *main;   /* of the main worktree, if the current one is linked to it; else NULL */
	char *linked; /* git's name for the current worktree, if it is a linked one; else NULL */
};

/* Reads a path, relative to `dir`, from the first line of a git file. Returns the real path or NULL. */
static char *path_in(const char *dir, const char *file, struct str prefix, struct arena *a)
{
	struct str text;

	if (fs_read(a, fs_join(a, str_c(dir), str_c(file)), GIT_FILE_MAX, &text))
		return NULL;
	text = str_cut(&text, '\n');
	if (!str_starts(text, prefix))
		return NULL;
	text = str_trim(str_n(text.p + prefix.n, text.n - prefix.n));
	if (!text.n || memchr(text.p, '\0', text.n))
		return NULL;
	return fs_real(a, text.p[0] == '/' ? arena_cstr(a, text) : fs_join(a, str_c(dir), text));
}

struct core_config {
	bool bare;
	struct str worktree;
	struct arena *arena;
};

static void read_core(void *ctx, int line, struct str name, struct str value)
{
	struct core_config *c = ctx;

	(void)line;
	if (str_eq_nocase(name, STR("core.bare")))
		c->bare = str_eq_nocase(value, STR("true")) || str_eq_nocase(value, STR("yes")) ||
			  str_eq_nocase(value, STR("on")) || str_is(value, "1");
	else if (str_eq_nocase(name, STR("core.worktree")))
		c->worktree = arena_str(c->arena, value);
}

/* The main worktree of the repository `common`; NULL: it is bare. */
static char *main_root(char *common, struct arena *a)
{
	static const char *const files[] = { "config", "config.worktree" };
	struct core_config c = { .arena = a };
	struct str text;
	char *root = NULL;

	for (int i = 0; i < 2; i++)
		if (fs_read(a, fs_join(a, str_c(common), str_c(files[i])), GIT_FILE_MAX, &text) ==
		    0)
			ini_file_each(text, read_core, &c);
	if (c.worktree.n) /* usually a submodule */
		root = fs_real(a, c.worktree.p[0] == '/' ? arena_cstr(a, c.worktree)
							 : fs_join(a, str_c(common), c.worktree));
	else if (!c.bare && str_ends(str_c(common), STR("/.git")))
		root = arena_cstr(a, fs_dirname(str_c(common)));
	return root && fs_is_dir(root) ? root : NULL;
}

/* A linked worktree has a file .git that names its own folder in the repository. That folder has a file
 * "commondir", which a submodule does not have. */
static void find_link(struct git *g, struct arena *a)
{
	char *own = path_in(g->root, ".git", STR("gitdir:"), a), *common;

	common = own ? path_in(own, "commondir", STR(""), a) : NULL;
	if (!common || !fs_is_dir(common))
		return;
	g->main = main_root(common, a);
	g->linked = strrchr(own, '/') + 1;
}

static void find_git(struct git *g, const char *dir, struct arena *a)
{
	struct str up = str_c(dir);
	struct stat st;

	*g = (struct git){ 0 };
	for (;;) {
		if (lstat(fs_join(a, up, STR(".git")), &st) == 0) {
			g->root = arena_cstr(a, up);
			if (S_ISREG(st.st_mode))
				find_link(g, a);
			return;
		}
		if (up.n <= 1)
			return;
		up = fs_dirname(up);
	}
}

/* Does the folder look like a bare repository? Git would stop its search there, and a clone can contain a folder like
 * that. */
static bool is_bare(struct str dir, struct arena *a)
{
	struct stat st;

	return lstat(fs_join(a, dir, STR("HEAD")), &st) == 0;
}

bool place_git_dir(const char *dir, char **git, struct arena *a)
{
	for (struct str up = str_c(dir);; up = fs_dirname(up)) {
		char *path = fs_join(a, up, STR(".git")), *own, *common;
		struct stat st;

		*git = NULL;
		if (lstat(path, &st) == 0) {
			own = S_ISDIR(st.st_mode)
				      ? path
				      : path_in(arena_cstr(a, up), ".git", STR("gitdir:"), a);
			common = own ? path_in(own, "commondir", STR(""), a) : NULL;
			*git = common ? common : own ? fs_real(a, own) : NULL;
			return *git != NULL;
		}
		if (is_bare(up, a))
			return false;
		if (up.n <= 1)
			return true;
	}
}

/* --- the queue ----------------------------------------------------------------------------- */

/* 1: .pawl exists; 0: it does not; < 0: .pawl is not a folder. */
static int find_queue_above(const char *path, struct answer *ans, struct arena *a)
{
	struct stat st;
	struct str what;

	if (lstat(path, &st)) {
		if (errno == ENOENT || errno == ENOTDIR)
			return 0;
		what = arena_printf(a, "cannot look for %s: %s", path, strerror(errno));
	} else if (S_ISDIR(st.st_mode)) {
		return 1;
	} else if (S_ISLNK(st.st_mode)) { /* a clone may contain a link to anywhere */
		what = arena_printf(a, "%s is a symbolic link, which pawl does not follow", path);
	} else {
		what = arena_printf(a, "%s is not a folder, so it cannot hold a queue", path);
	}
	answer_fail(ans, MISCONFIGURED, what, STR("move it away, or name a store with --store"));
	return -1;
}

/* Searches upward from `dir`, which need not exist. */
static enum result find_queue(struct place *p, const char *dir, struct answer *ans, struct arena *a)
{
	struct str up = str_c(dir);

	for (;;) {
		char *path = fs_join(a, up, STR(".pawl"));
		int found = find_queue_above(path, ans, a);

		if (found < 0)
			return ans->code;
		if (found) {
			p->pawl_dir = fs_real(a, path);
			p->root = arena_cstr(a, up);
			return SUCCESS;
		}
		if (up.n <= 1)
			return SUCCESS;
		up = fs_dirname(up);
	}
}

/* The folder in the main worktree that corresponds to `dir`. */
static char *place_counterpart(const struct git *g, const char *dir, struct arena *a)
{
	struct str rest = str_c(dir + strlen(g->root));

	while (rest.n && rest.p[0] == '/')
		rest = str_n(rest.p + 1, rest.n - 1);
	return rest.n ? fs_join(a, str_c(g->main), rest) : g->main;
}

static char *where_am_i(struct answer *ans, struct arena *a)
{
	char *dir = fs_real(a, ".");

	if (dir)
		return dir;
	ans->applied = 'n';
	answer_fail(ans, API_ERROR,
		    errno == ENOENT ? STR("the current folder does not exist any more")
				    : arena_printf(a, "cannot find out the current folder: %s",
						   strerror(errno)),
		    STR("change to a folder that exists"));
	return NULL;
}

enum result place_find_from(struct place *p, const char *dir, struct answer *ans, struct arena *a)
{
	enum result r;
	struct git g;

	*p = (struct place){ 0 };
	find_git(&g, dir, a);
	r = find_queue(p, g.main ? place_counterpart(&g, dir, a) : dir, ans, a);
	if (r != SUCCESS)
		return r;
	p->linked = g.linked;
	p->init_dir = g.main ? g.main : arena_cstr(a, str_c(dir));
	if (g.root)
		p->worktree = g.root;
	else
		p->worktree = arena_cstr(a,
					 p->pawl_dir ? fs_dirname(str_c(p->pawl_dir)) : str_c(dir));
	return SUCCESS;
}

enum result place_find(struct place *p, struct answer *ans, struct arena *a)
{
	char *dir = where_am_i(ans, a);

	return dir ? place_find_from(p, dir, ans, a) : ans->code;
}

/* --- queue id --------------------------------------------------------------------------------- */

/*
 * Finds the queue's id. A local store is read at every call that needs the id. A read from a server would cost a
 * round trip, so the last id is cached. If a token is not found under the cached id, the client asks the server again.
 */

static char *kept_path(struct client *c)
{
	struct str name = hash_hex(c->arena, c->keyring.queue);

	return fs_join(c->arena, str_c(c->keyring.dir),
		       arena_printf(c->arena, "%.*s.queue", STRF(name)));
}

static struct str queue_id_kept(struct client *c)
{
	struct str text;

	if (!c->keyring.dir || fs_read(c->arena, kept_path(c), 100, &text))
		return STR("");
	return str_trim(text);
}

void client_know_queue(struct client *c)
{
	struct str id = STR("");

	if (!c->conn.queue)
		return;
	keyring_server(&c->keyring, queue_origin(c->conn.queue, c->arena));
	if (queue_is_far(c->conn.queue))
		keyring_queue(&c->keyring, queue_id_kept(c), false);
	else if (queue_identity(c->conn.queue, &id, c->arena))
		keyring_queue(&c->keyring, id, true);
	else
		keyring_queue(&c->keyring, STR(""), false);
}

void client_learn_queue(struct client *c, struct str id)
{
	bool far = queue_is_far(c->conn.queue);

	keyring_queue(&c->keyring, id, !far);
	/* if the cache cannot be written, the next call asks again */
	if (far && !keyring_folder(&c->keyring))
		(void)fs_write_atomic(kept_path(c), arena_printf(c->arena, "%s\n", c->keyring.id),
				      0600);
}

bool client_ask_queue(struct client *c)
{
	struct str id;

	if (!c->conn.queue || !queue_is_far(c->conn.queue) ||
	    !queue_identity(c->conn.queue, &id, c->arena) || str_is(id, c->keyring.id))
		return false;
	client_learn_queue(c, id);
	return true;
}

int client_copy_tokens(struct client *from, struct client *to)
{
	client_know_queue(from);
	client_know_queue(to);
	(void)client_ask_queue(from);
	return keyring_copy(&from->keyring, &to->keyring);
}

/* --- line ------------------------------------------------------------------------------------- */

/* Escapes control characters, so that no path can begin a second line and forge another name. */

void line_add(struct buf *b, const char *name, struct str value)
{
	buf_addf(b, "%s=", name);
	for (size_t i = 0; i < value.n; i++) {
		unsigned char c = (unsigned char)value.p[i];

		if (c < 0x20 || c == '%' || c == 0x7f)
			buf_addf(b, "%%%02x", c);
		else
			buf_addc(b, (char)c);
	}
	buf_addc(b, '\n');
}

struct str line_value(struct str coded, struct arena *a)
{
	char *p = arena_alloc(a, coded.n + 1);
	size_t n = 0;

	for (size_t i = 0; i < coded.n; i++) {
		bool is_coded = coded.p[i] == '%' && i + 2 < coded.n &&
				hex_digit(coded.p[i + 1]) >= 0 && hex_digit(coded.p[i + 2]) >= 0;

		p[n++] = is_coded ? (char)(hex_digit(coded.p[i + 1]) * 16 +
					   hex_digit(coded.p[i + 2]))
				  : coded.p[i];
		i += is_coded ? 2 : 0;
	}
	return str_n(p, n);
}

/* The user's saved trust: one file for each config, named by the hash of its path. So two calls at the same time never
 * overwrite each other. A folder that another user can write to counts for nothing, because that user could forge trust. */
#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fs.h"
#include "base/os.h"
#include "base/secret.h"
#include "base/text.h"
#include "client/trust_config.h"
#include "store/store.h"

#define TRUST_FILE_MAX (64 * 1024)

static char *trust_file_dir(struct arena *a)
{
	char *dir = fs_user_dir(a, "XDG_STATE_HOME", ".local/state");

	return dir ? fs_join(a, str_c(dir), STR("trust")) : NULL;
}

/* A user who can write to the folder can forge trust: only its owner may have access. */
static int trust_file_check_dir(const char *dir)
{
	struct stat st;

	if (!dir)
		return -ENOENT;
	if (lstat(dir, &st))
		return -errno;
	if (!S_ISDIR(st.st_mode))
		return S_ISLNK(st.st_mode) ? -ELOOP : -ENOTDIR;
	return st.st_uid != geteuid() || st.st_mode & 022 ? -EPERM : 0;
}

static char *trust_file_path(const char *dir, const char *config, struct arena *a)
{
	return fs_join(a, str_c(dir), hash_hex(a, str_c(config)));
}

static bool trust_file_read(const char *path, struct trusted *t, struct arena *a)
{
	struct str text;

	*t = (struct trusted){ 0 };
	if (fs_read(a, path, TRUST_FILE_MAX, &text))
		return false;
	while (text.n) {
		struct str value = str_cut(&text, '\n'), name = str_cut(&value, '=');

		if (str_is(name, "config"))
			t->config = line_value(value, a);
		else if (str_is(name, "store"))
			t->store = line_value(value, a);
		else if (str_is(name, "seal"))
			t->seal = value;
		else if (str_is(name, "at"))
			(void)str_to_i64(value, &t->at);
	}
	return t->config.n && t->seal.n;
}

bool trust_remembered(const struct trust *t, struct arena *a)
{
	char *dir = trust_file_dir(a);
	struct trusted found;

	return trust_file_check_dir(dir) == 0 &&
	       trust_file_read(trust_file_path(dir, t->config, a), &found, a) &&
	       str_is(found.config, t->config) && str_eq(found.seal, t->seal);
}

static int trust_file_make_dir(const char *dir, struct arena *a)
{
	int r;

	if (!dir)
		return -ENOENT;
	r = fs_make_dirs(arena_cstr(a, fs_dirname(str_c(dir))), 0700);
	if (!r)
		r = fs_make_dirs(dir, 0700);
	return r ? r : trust_file_check_dir(dir);
}

int trust_give(const struct trust *t, struct arena *a)
{
	struct buf b = BUF_MAX(TRUST_FILE_MAX);
	char *dir = trust_file_dir(a);
	int r = trust_file_make_dir(dir, a);

	if (r)
		return r;
	line_add(&b, "config", str_c(t->config));
	line_add(&b, "store", uri_shown(a, t->uri));
	line_add(&b, "seal", t->seal);
	buf_addf(&b, "at=%lld\n", (long long)os_wall_ms());
	r = b.full ? -EFBIG
		   : fs_write_atomic(trust_file_path(dir, t->config, a), buf_str(&b), 0600);
	buf_free(&b);
	return r;
}

int trust_revoke(const char *config, struct arena *a)
{
	char *dir = trust_file_dir(a);
	int r = trust_file_check_dir(dir);

	if (r)
		return r;
	return unlink(trust_file_path(dir, config, a)) ? -errno : fs_sync_dir(dir);
}

int trust_each(trusted_fn *fn, void *ctx, struct arena *a)
{
	char *dir = trust_file_dir(a);
	const struct dirent *entry;
	struct trusted t;
	int r = trust_file_check_dir(dir);
	DIR *d;

	if (r)
		return r == -ENOENT ? 0 : r;
	d = opendir(dir);
	if (!d)
		return -errno;
	while ((entry = readdir(d)))
		if (entry->d_name[0] != '.' &&
		    trust_file_read(fs_join(a, str_c(dir), str_c(entry->d_name)), &t, a))
			fn(ctx, &t);
	closedir(d);
	return 0;
}

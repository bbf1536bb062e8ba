#include "client/login.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/secret.h"

#define TOKEN_MAX 1024
#define FILE_MAX 8192

bool login_valid(struct str token)
{
	for (size_t i = 0; i < token.n; i++)
		if (token.p[i] <= ' ' || token.p[i] > '~')
			return false;
	return token.n && token.n <= TOKEN_MAX;
}

const char *login_ca_file(void)
{
	const char *file = getenv("PAWL_SERVER_CA");

	return file && *file ? file : NULL;
}

char *login_file(struct str origin, struct arena *a)
{
	char *top = fs_user_dir(a, "XDG_STATE_HOME", ".local/state");

	return top ? fs_join(a, str_c(top), arena_printf(a, "login/%.32s", hash_hex(a, origin).p))
		   : NULL;
}

static enum result fail(struct answer *ans, struct str message, const char *hint)
{
	ans->fault = STR("unauthorized");
	return answer_fail(ans, MISCONFIGURED, message, str_c(hint));
}

/* The file has the origin and the token, so that a file that was moved gives its token to no other server. */
static enum result saved(struct str origin, struct str *token, struct answer *ans, struct arena *a)
{
	char *path = login_file(origin, a);
	struct str text, first;
	int r = path ? fs_read_private(a, path, FILE_MAX, &text) : -ENOENT;

	if (r == -ENOENT || r == -ENOTDIR)
		return SUCCESS;
	if (r)
		return fail(ans,
			    arena_printf(a, "cannot use the saved token in %s: %s", path,
					 r == -EPERM ? "other users can read or write it"
						     : strerror(-r)),
			    "remove the file, then run `pawl login` again");
	first = str_cut(&text, '\n');
	if (!str_eq(first, origin) || !login_valid(str_trim(text)))
		return fail(ans, arena_printf(a, "the saved token in %s is damaged", path),
			    "remove the file, then run `pawl login` again");
	*token = str_trim(text);
	return SUCCESS;
}

static enum result from_file(const char *path, struct str *token, struct answer *ans,
			     struct arena *a)
{
	struct str text;
	int r = fs_read(a, path, FILE_MAX, &text);

	if (r)
		return fail(ans,
			    arena_printf(a, "PAWL_SERVER_TOKEN_FILE: %s: %s", path, strerror(-r)),
			    "name a file that has the token and nothing else");
	*token = str_trim(text);
	if (login_valid(*token))
		return SUCCESS;
	return fail(ans, arena_printf(a, "PAWL_SERVER_TOKEN_FILE: %s does not have a token", path),
		    "name a file that has the token and nothing else");
}

enum result login_bearer(void *ctx, struct str origin, struct str *token, struct answer *ans,
			 struct arena *a)
{
	const char *said = getenv("PAWL_SERVER_TOKEN"), *file = getenv("PAWL_SERVER_TOKEN_FILE");

	(void)ctx;
	*token = STR("");
	if (said && *said) {
		*token = str_trim(arena_str(a, str_c(said)));
		return login_valid(*token) ? SUCCESS
					   : fail(ans, STR("PAWL_SERVER_TOKEN is not a token"),
						  "`pawl token create` on the server prints one");
	}
	return file && *file ? from_file(file, token, ans, a) : saved(origin, token, ans, a);
}

int login_save(struct str origin, struct str token, struct arena *a)
{
	char *path = login_file(origin, a);
	int r;

	if (!path)
		return -ENOENT;
	r = fs_make_dirs(arena_cstr(a, fs_dirname(str_c(path))), 0700);
	return r ? r
		 : fs_write_atomic(path, arena_printf(a, "%.*s\n%.*s\n", STRF(origin), STRF(token)),
				   0600);
}

int login_forget(struct str origin, struct arena *a)
{
	char *path = login_file(origin, a);

	return !path ? -ENOENT : unlink(path) < 0 ? -errno : 0;
}

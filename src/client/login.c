#include "client/login.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/os.h"
#include "base/secret.h"

#define TOKEN_MAX 1024
#define LOGIN_FILE_MAX 8192
#define INSECURE "insecure\n" /* the last line of a saved token */

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

bool login_in_clear(struct str origin)
{
	return str_cut_prefix(&origin, STR("http://")) && !host_is_loopback(origin);
}

static enum result client_login_fail(struct answer *ans, struct str message, const char *hint)
{
	ans->fault = STR("unauthorized");
	return answer_fail(ans, MISCONFIGURED, message, str_c(hint));
}

enum result login_refuse(struct str origin, struct answer *ans, struct arena *a)
{
	return client_login_fail(
		ans,
		arena_printf(a, "%.*s has no TLS: the network would see the token", STRF(origin)),
		"use https://; `pawl login URL --insecure` or PAWL_SERVER_INSECURE=1 sends it all the "
		"same");
}

/* The file has the origin and the token, so that a file that was moved gives its token to no other server. */
static enum result client_login_saved(struct str origin, struct str *token, bool *insecure,
				      struct answer *ans, struct arena *a)
{
	char *path = login_file(origin, a);
	struct str text, first, second;
	int r = path ? fs_read_private(a, path, LOGIN_FILE_MAX, &text) : -ENOENT;

	if (r == -ENOENT || r == -ENOTDIR)
		return SUCCESS;
	if (r)
		return client_login_fail(
			ans,
			arena_printf(a, "cannot use the saved token in %s: %s", path,
				     r == -EPERM ? "other users can read or write it"
						 : strerror(-r)),
			"remove the file, then run `pawl login` again");
	first = str_cut(&text, '\n');
	second = str_cut(&text, '\n');
	*insecure |= str_is(text, INSECURE);
	if (!str_eq(first, origin) || !login_valid(second) || (text.n && !str_is(text, INSECURE)))
		return client_login_fail(ans,
					 arena_printf(a, "the saved token in %s is damaged", path),
					 "remove the file, then run `pawl login` again");
	*token = second;
	return SUCCESS;
}

static enum result from_file(const char *path, struct str *token, struct answer *ans,
			     struct arena *a)
{
	struct str text;
	int r = fs_read(a, path, LOGIN_FILE_MAX, &text);

	if (r)
		return client_login_fail(
			ans, arena_printf(a, "PAWL_SERVER_TOKEN_FILE: %s: %s", path, strerror(-r)),
			"name a file that has the token and nothing else");
	*token = str_trim(text);
	if (login_valid(*token))
		return SUCCESS;
	return client_login_fail(
		ans, arena_printf(a, "PAWL_SERVER_TOKEN_FILE: %s does not have a token", path),
		"name a file that has the token and nothing else");
}

static enum result from_variable(const char *said, struct str *token, struct answer *ans,
				 struct arena *a)
{
	*token = str_trim(arena_str(a, str_c(said)));
	return login_valid(*token)
		       ? SUCCESS
		       : client_login_fail(ans, STR("PAWL_SERVER_TOKEN is not a token"),
					   "`pawl token create` on the server prints one");
}

enum result login_bearer(void *ctx, struct str origin, struct str *token, bool *insecure,
			 struct answer *ans, struct arena *a)
{
	const char *said = getenv("PAWL_SERVER_TOKEN"), *file = getenv("PAWL_SERVER_TOKEN_FILE"),
		   *consent = getenv("PAWL_SERVER_INSECURE");
	enum result code;

	(void)ctx;
	*token = STR("");
	*insecure = consent && strcmp(consent, "1") == 0;
	if (said && *said)
		code = from_variable(said, token, ans, a);
	else if (file && *file)
		code = from_file(file, token, ans, a);
	else
		code = client_login_saved(origin, token, insecure, ans, a);
	if (code == SUCCESS && token->n && login_in_clear(origin) && !*insecure)
		return login_refuse(origin, ans, a);
	return code;
}

int login_save(struct str origin, struct str token, bool insecure, struct arena *a)
{
	char *path = login_file(origin, a);
	int r;

	if (!path)
		return -ENOENT;
	r = fs_make_dirs(arena_cstr(a, fs_dirname(str_c(path))), 0700);
	return r ? r
		 : fs_write_atomic(path,
				   arena_printf(a, "%.*s\n%.*s\n%s", STRF(origin), STRF(token),
						insecure ? INSECURE : ""),
				   0600);
}

int login_forget(struct str origin, struct arena *a)
{
	char *path = login_file(origin, a);

	return !path ? -ENOENT : unlink(path) < 0 ? -errno : 0;
}

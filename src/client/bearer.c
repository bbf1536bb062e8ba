/*
 * The token file and the file of last uses, both JSON with mode 0600. A lock file keeps two calls of `pawl token` from
 * overwriting each other; a file that others can read or write is refused. bearer_find() compares all hashes in constant
 * time, so timing reveals nothing about them.
 */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/os.h"
#include "base/secret.h"
#include "client/bearer.h"
#include "core/role.h"
#include "format/json.h"

#define FILE_MAX (8u << 20)
#define LOCK_MS 5000

char *bearer_dir(const struct client *c, struct arena *a)
{
	const char *said = getenv("PAWL_SERVER_STATE");
	struct str uri = c->conn.config.uri, store = str_cut(&uri, '?');
	char *top;

	if (said && said[0] == '/')
		return arena_cstr(a, str_c(said));
	top = fs_user_dir(a, "XDG_STATE_HOME", ".local/state");
	return top ? fs_join(a, str_c(top), arena_printf(a, "serve/%.16s", hash_hex(a, store).p))
		   : NULL;
}

char *bearer_file(const char *dir, struct arena *a)
{
	return fs_join(a, str_c(dir), STR("tokens"));
}

static char *uses_file(const char *dir, struct arena *a)
{
	return fs_join(a, str_c(dir), STR("uses"));
}

/* --- reading ------------------------------------------------------------------------------- */

static struct str text_of(const json_t *o, const char *key, struct arena *a)
{
	const json_t *v = json_object_get(o, key);

	return json_is_string(v) ? arena_str(a, str_n(json_string_value(v), json_string_length(v)))
				 : STR("");
}

static int64_t number_of(const json_t *o, const char *key)
{
	int64_t n = json_integer_value(json_object_get(o, key));

	return n > 0 ? n : 0;
}

static bool read_one(const json_t *o, struct bearer *b, struct arena *a)
{
	*b = (struct bearer){ .name = text_of(o, "name", a),
			      .hash = text_of(o, "sha256", a),
			      .agent = text_of(o, "agent", a),
			      .queue = text_of(o, "queue", a),
			      .role = role_parse(text_of(o, "role", a)),
			      .created = number_of(o, "created"),
			      .expires = number_of(o, "expires") };
	return b->name.n && b->hash.n == 2 * HASH_LEN && b->agent.n && b->role != ROLE_NONE;
}

static bool read_all(const json_t *list, struct bearers *out, struct arena *a)
{
	out->n = json_array_size(list);
	if (!json_is_array(list) || out->n > BEARERS_MAX)
		return false;
	out->v = arena_array(a, struct bearer, out->n + 1);
	for (size_t i = 0; i < out->n; i++)
		if (!read_one(json_array_get(list, i), &out->v[i], a))
			return false;
	return true;
}

/* Reads one of our files as JSON; *out NULL: there is no file. */
static int read_json(const char *path, json_t **out, struct arena *a)
{
	struct str text;
	struct stat st;
	int r = fs_read(a, path, FILE_MAX, &text);

	*out = NULL;
	if (r)
		return r == -ENOENT ? 0 : r;
	if (stat(path, &st) || st.st_uid != geteuid() || st.st_mode & 077)
		return -EPERM;
	*out = json_loadb(text.p, text.n, JSON_REJECT_DUPLICATES, NULL);
	return *out ? 0 : -EBADMSG;
}

static void read_uses(const char *dir, struct bearers *list, struct arena *a)
{
	json_t *uses;

	if (read_json(uses_file(dir, a), &uses, a) || !uses)
		return;
	for (size_t i = 0; i < list->n; i++)
		list->v[i].used = number_of(uses, arena_cstr(a, list->v[i].name));
	json_decref(uses);
}

int bearer_load(const char *dir, struct bearers *out, struct arena *a)
{
	json_t *o;
	int r = read_json(bearer_file(dir, a), &o, a);

	*out = (struct bearers){ 0 };
	if (r || !o)
		return r;
	if (!read_all(json_object_get(o, "tokens"), out, a)) {
		*out = (struct bearers){ 0 };
		r = -EBADMSG;
	}
	json_decref(o);
	if (!r)
		read_uses(dir, out, a);
	return r;
}

/* --- writing ------------------------------------------------------------------------------- */

static json_t *to_json(const struct bearer *b)
{
	json_t *o = json_object();

	json_set_text(o, "name", b->name);
	json_set_text(o, "sha256", b->hash);
	json_set_text(o, "role", str_c(role_name(b->role)));
	json_set_text(o, "agent", b->agent);
	json_set_text(o, "queue", b->queue);
	json_object_set_new(o, "created", json_integer(b->created));
	if (b->expires)
		json_object_set_new(o, "expires", json_integer(b->expires));
	return o;
}

static int write_json(const char *path, json_t *o)
{
	char *text = json_dumps(o, JSON_INDENT(1));
	int r = text ? fs_write_atomic(path, str_c(text), 0600) : -EINVAL;

	free(text);
	json_decref(o);
	return r;
}

static int bearer_save(const char *dir, const struct bearers *list, struct arena *a)
{
	json_t *all = json_array();

	for (size_t i = 0; i < list->n; i++)
		json_array_append_new(all, to_json(&list->v[i]));
	return write_json(bearer_file(dir, a), json_pack("{s:o}", "tokens", all));
}

/* Two calls of `pawl token` must not overwrite each other. Returns a descriptor or -errno. */
static int lock_dir(const char *dir, struct arena *a)
{
	int fd, r = fs_make_dirs(dir, 0700);

	if (r)
		return r;
	fd = open(fs_join(a, str_c(dir), STR("lock")), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW,
		  0600);
	if (fd < 0)
		return -errno;
	r = os_lock(fd, LOCK_MS);
	if (!r)
		return fd;
	close(fd);
	return r;
}

static struct bearer *bearer_named(const struct bearers *list, struct str name)
{
	for (size_t i = 0; i < list->n; i++)
		if (str_eq(list->v[i].name, name))
			return &list->v[i];
	return NULL;
}

struct str bearer_make(struct bearer *b, struct arena *a)
{
	struct str secret = arena_printf(a, BEARER_PREFIX "%s", arena_cstr(a, secret_make(a)));

	b->hash = hash_hex(a, secret);
	return secret;
}

static int add_locked(const char *dir, const struct bearer *b, struct str *secret, struct arena *a)
{
	struct bearers list, more;
	int r = bearer_load(dir, &list, a);

	if (r)
		return r;
	if (bearer_named(&list, b->name))
		return -EEXIST;
	if (list.n >= BEARERS_MAX)
		return -ENOSPC;
	more = (struct bearers){ arena_array(a, struct bearer, list.n + 1), list.n + 1 };
	for (size_t i = 0; i < list.n; i++)
		more.v[i] = list.v[i];
	more.v[list.n] = *b;
	*secret = bearer_make(&more.v[list.n], a);
	return bearer_save(dir, &more, a);
}

int bearer_add(const char *dir, const struct bearer *b, struct str *secret, struct arena *a)
{
	int fd = lock_dir(dir, a), r;

	if (fd < 0)
		return fd;
	r = add_locked(dir, b, secret, a);
	close(fd);
	return r;
}

int bearer_remove(const char *dir, struct str name, struct arena *a)
{
	int fd = lock_dir(dir, a), r;
	struct bearers list;
	struct bearer *b;

	if (fd < 0)
		return fd;
	r = bearer_load(dir, &list, a);
	b = r ? NULL : bearer_named(&list, name);
	if (!r && !b)
		r = -ENOENT;
	if (!r) {
		*b = list.v[--list.n];
		r = bearer_save(dir, &list, a);
	}
	close(fd);
	return r;
}

int bearer_note_uses(const char *dir, const struct bearers *list, struct arena *a)
{
	json_t *o = json_object();

	for (size_t i = 0; i < list->n; i++)
		if (list->v[i].used)
			json_object_set_new(o, arena_cstr(a, list->v[i].name),
					    json_integer(list->v[i].used));
	return write_json(uses_file(dir, a), o);
}

/* --- checking ------------------------------------------------------------------------------ */

const struct bearer *bearer_find(const struct bearers *list, struct str secret, struct arena *a)
{
	const struct bearer *found = NULL;
	struct str hash = hash_hex(a, secret);

	for (size_t i = 0; i < list->n; i++)
		if (secret_eq(list->v[i].hash, hash))
			found = &list->v[i];
	return found;
}

bool bearer_expired(const struct bearer *b, int64_t now)
{
	return b->expires && now >= b->expires;
}

/* '*' matches any characters. After a mismatch, the last '*' takes one character more. */
bool bearer_names(const struct bearer *b, struct str agent)
{
	struct str p = b->agent;
	size_t i = 0, k = 0, star = p.n, mark = 0;

	while (i < agent.n) {
		if (k < p.n && p.p[k] == '*') {
			star = k++;
			mark = i;
		} else if (k < p.n && p.p[k] == agent.p[i]) {
			k++;
			i++;
		} else if (star < p.n) {
			k = star + 1;
			i = ++mark;
		} else {
			return false;
		}
	}
	while (k < p.n && p.p[k] == '*')
		k++;
	return k == p.n;
}

/* --- login ------------------------------------------------------------------------------------ */

/* Finds, saves and forgets the token for one origin. The saved file repeats the origin, and every token passes the clear-text
 * check at the end of login_bearer(). */

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

/* Reads the saved token. The file also contains the origin, so that a renamed file gives its token to no other server. */
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

/*
 * Session ids of MCP clients. Some clients do not begin a new session when a server has forgotten
 * theirs, so a restart must not end sessions. A session id therefore contains everything that the
 * server must know about the session, and a signature: RUN.VERSION.TIME.SIGNATURE. The key is in a
 * file of the state folder. Another file lists the sessions that their clients ended.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/os.h"
#include "base/secret.h"
#include "face/serve/mcp_http.h"

#define LIFE_MS (INT64_C(90) * 24 * 3600 * 1000)
#define ENDED_MAX (4u << 20)
#define RUN_LEN 20

/* --- the key --------------------------------------------------------------------------------------- */

/* If two servers start at once, link() lets only one of them make the key. */
static int make_key(const char *path, struct arena *a)
{
	const char *draft = arena_printf(a, "%s.%lld", path, (long long)getpid()).p;
	int r = fs_write_atomic(draft, arena_printf(a, "%s\n", arena_cstr(a, secret_make(a))),
				0600);

	if (r)
		return r;
	if (link(draft, path) && errno != EEXIST)
		r = -errno;
	unlink(draft);
	return r;
}

static int read_key(const char *path, struct str *key, struct arena *a)
{
	struct stat st;
	int r = fs_read(a, path, 4096, key);

	if (r)
		return r;
	if (lstat(path, &st) || st.st_uid != geteuid() || st.st_mode & 077)
		return -EPERM;
	*key = str_trim(*key);
	return key->n == SECRET_LEN ? 0 : -EBADMSG;
}

int session_ids_open(struct session_ids *v, const char *dir)
{
	const char *path;
	int r;

	if (v->key.n)
		return 0;
	if (!dir) { /* without a home folder, sessions end with the server */
		v->key = secret_make(&v->arena);
		return 0;
	}
	r = fs_make_dirs(dir, 0700);
	path = fs_join(&v->arena, str_c(dir), STR("mcp-key"));
	if (!r && !fs_exists(path))
		r = make_key(path, &v->arena);
	if (!r)
		r = read_key(path, &v->key, &v->arena);
	if (r)
		v->key = STR("");
	else
		v->ended_file = fs_join(&v->arena, str_c(dir), STR("mcp-ended"));
	return r;
}

void session_ids_close(struct session_ids *v)
{
	arena_free(&v->ended_arena);
	arena_free(&v->arena);
}

/* --- ids ------------------------------------------------------------------------------------------- */

/* A session belongs to one token, agent and queue: others cannot use its id. */
static struct str session_id_sign(const struct session_ids *v, const struct session_owner *who,
				  struct str id, struct arena *a)
{
	return secret_sign(a, v->key,
			   arena_printf(a, "pawl mcp\n%.*s\n%.*s\n%.*s\n%.*s", STRF(id),
					STRF(who->token), STRF(who->agent), STRF(who->queue)));
}

struct str session_id_begin(struct arena *a)
{
	return arena_printf(a, "mcp-%08x%08x", random_below(UINT32_MAX), random_below(UINT32_MAX));
}

struct str session_id_make(const struct session_ids *v, const struct session_owner *who,
			   struct str run, const char *version, struct arena *a)
{
	struct str id = arena_printf(a, "%.*s.%s.%llx", STRF(run), version,
				     (unsigned long long)os_wall_ms());

	return arena_printf(a, "%.*s.%s", STRF(id), arena_cstr(a, session_id_sign(v, who, id, a)));
}

/* --- sessions that have ended ---------------------------------------------------------------------- */

static bool is_ended(struct session_ids *v, struct str run)
{
	struct str rest = v->ended;
	struct stat now;

	if (v->ended_file && !stat(v->ended_file, &now) &&
	    (now.st_size != v->seen.st_size || now.st_mtim.tv_nsec != v->seen.st_mtim.tv_nsec ||
	     now.st_ino != v->seen.st_ino)) {
		arena_free(&v->ended_arena);
		v->ended_arena = (struct arena){ 0 };
		v->seen = now;
		if (fs_read(&v->ended_arena, v->ended_file, ENDED_MAX, &v->ended))
			v->ended = STR("");
		rest = v->ended;
	}
	while (rest.n) {
		struct str line = str_cut(&rest, '\n');

		if (str_eq(str_cut(&line, ' '), run))
			return true;
	}
	return false;
}

/* Copies the list without expired session ids. If the list is very long, its oldest lines are
 * dropped. */
static void add_current(struct buf *b, struct str rest)
{
	int64_t at;

	if (rest.n > ENDED_MAX / 2) { /* a large cut, so that cuts are rare */
		rest = str_n(rest.p + rest.n - ENDED_MAX / 4, ENDED_MAX / 4);
		(void)str_cut(&rest, '\n');
	}
	while (rest.n) {
		struct str line = str_cut(&rest, '\n'), time = line;

		(void)str_cut(&time, ' ');
		if (str_to_i64(time, &at) && os_wall_ms() - at < LIFE_MS)
			buf_addf(b, "%.*s\n", STRF(line));
	}
}

static void shorten_file(struct session_ids *v)
{
	struct buf b = BUF_MAX(ENDED_MAX);

	add_current(&b, v->ended);
	if (!b.full && b.n < v->ended.n)
		(void)fs_write_atomic(v->ended_file, buf_str(&b), 0600);
	buf_free(&b);
}

/* Without a file, the list is in memory and must not grow forever. */
static void end_in_memory(struct session_ids *v, struct str line)
{
	struct buf b = BUF_MAX(ENDED_MAX);

	add_current(&b, v->ended);
	buf_adds(&b, line);
	arena_free(&v->ended_arena);
	v->ended_arena = (struct arena){ 0 };
	v->ended = arena_str(&v->ended_arena, buf_str(&b));
	buf_free(&b);
}

int session_id_end(struct session_ids *v, struct str run)
{
	struct arena a = { 0 };
	struct str line = arena_printf(&a, "%.*s %lld\n", STRF(run), (long long)os_wall_ms());
	int fd, r;

	if (!v->ended_file) {
		end_in_memory(v, line);
		arena_free(&a);
		return 0;
	}
	(void)is_ended(v, run);                               /* reads the file */
	if (v->ended.n && v->ended.p[v->ended.n - 1] != '\n') /* an earlier write was cut off */
		line = arena_printf(&a, "\n%.*s", STRF(line));
	shorten_file(v);
	fd = open(v->ended_file, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	r = fd < 0 ? -errno : fs_write_all(fd, line);
	if (fd >= 0)
		close(fd);
	arena_free(&a);
	return r;
}

static int64_t time_of(struct str hex)
{
	int64_t n = 0;

	for (size_t i = 0; i < hex.n && i < 15; i++)
		n = n * 16 + (hex.p[i] <= '9' ? hex.p[i] - '0' : hex.p[i] - 'a' + 10);
	return n;
}

bool session_id_find(struct session_ids *v, const struct session_owner *who, struct str id,
		     struct session_id *out, struct arena *a)
{
	const char *dot = memrchr(str_p(id), '.', id.n);
	struct str head, mac, rest;

	if (!dot)
		return false;
	head = rest = str_n(id.p, (size_t)(dot - id.p));
	mac = str_n(dot + 1, id.n - head.n - 1);
	if (!secret_eq(mac, session_id_sign(v, who, head, a)))
		return false;
	out->run = arena_str(a, str_cut(&rest, '.'));
	out->version = mcp_legacy(str_cut(&rest, '.'));
	return out->run.n == RUN_LEN && out->version && os_wall_ms() - time_of(rest) < LIFE_MS &&
	       !is_ended(v, out->run);
}

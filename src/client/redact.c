/*
 * redact: takes the folders of this machine out of messages for callers elsewhere. A store names the path of a file that it
 * cannot use. The name of the file helps a caller; the folders around it are the operator's business.
 */
#include "client/redact.h"

#include <ctype.h>
#include <stdlib.h>

#include "base/fs.h"

struct folders {
	struct str v[8];
	size_t n;
};

static void redact_add(struct folders *f, struct str dir)
{
	if (dir.n > 1 && dir.p[0] == '/')
		f->v[f->n++] = dir;
}

/* The folder around a store that is a path: sqlite:/srv/shop/.pawl/queue.db?queue=x. */
static struct str folder_of_store(struct str uri)
{
	struct str path = uri;

	(void)str_cut(&path, ':');
	path = str_cut(&path, '?');
	path = str_cut(&path, '#');
	(void)str_cut_prefix(&path, STR("file://"));
	return path.n && path.p[0] == '/' ? fs_dirname(path) : STR("");
}

static struct folders folders_of(const struct client *c)
{
	const char *home = getenv("HOME"), *state = getenv("XDG_STATE_HOME"),
		   *cache = getenv("XDG_CACHE_HOME");
	struct folders f = { 0 };

	redact_add(&f, folder_of_store(c->conn.config.uri));
	redact_add(&f, folder_of_store(c->conn.trust.uri));
	if (c->conn.place.pawl_dir)
		redact_add(&f, fs_dirname(str_c(c->conn.place.pawl_dir)));
	if (c->conn.place.init_dir)
		redact_add(&f, fs_dirname(str_c(c->conn.place.init_dir)));
	redact_add(&f, str_c(home ? home : ""));
	redact_add(&f, str_c(state ? state : ""));
	redact_add(&f, str_c(cache ? cache : ""));
	return f;
}

/* The length of the longest folder that the text begins with, and of the slash behind it. */
static size_t folder_at(const struct folders *f, struct str text)
{
	size_t best = 0;

	for (size_t i = 0; i < f->n; i++) {
		struct str rest = text;

		if (str_cut_prefix(&rest, f->v[i]) && rest.n && rest.p[0] == '/' &&
		    f->v[i].n + 1 > best)
			best = f->v[i].n + 1;
	}
	return best;
}

static struct str redact_run(const struct folders *f, struct str text, struct arena *a)
{
	char *out = arena_alloc(a, text.n + 1);
	size_t n = 0;

	for (size_t i = 0; i < text.n;) {
		bool inside = i && (isalnum((unsigned char)text.p[i - 1]) ||
				    strchr("._-", text.p[i - 1]));
		size_t skip = inside ? 0 : folder_at(f, str_n(text.p + i, text.n - i));

		if (skip)
			i += skip;
		else
			out[n++] = text.p[i++];
	}
	out[n] = '\0';
	return str_n(out, n);
}

struct str redact_text(const struct client *c, enum role role, struct str text, struct arena *a)
{
	struct folders f;

	if (role == ROLE_NONE || role == ROLE_ADMIN || !text.n || !memchr(text.p, '/', text.n))
		return text;
	f = folders_of(c);
	return redact_run(&f, text, a);
}

struct str redact_store(const struct client *c, struct arena *a)
{
	return redact_text(c, c->self.role, uri_shown(a, c->conn.config.uri), a);
}

void redact_answer(const struct client *c, enum role role, struct answer *ans, struct arena *a)
{
	if (ans->code == SUCCESS)
		return;
	ans->message = redact_text(c, role, ans->message, a);
	ans->hint = redact_text(c, role, ans->hint, a);
}

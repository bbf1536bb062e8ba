#include <errno.h>
#include <stdio.h>

#include "store/git/git.h"

static bool git_name_plain(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '-' || c == '_';
}

/* A dot is safe between two plain characters. git refuses "..", a trailing ".lock", and dots at the ends. */
static bool plain_dot(struct str s, size_t i)
{
	return s.p[i] == '.' && i > 0 && i + 1 < s.n && git_name_plain(s.p[i - 1]) &&
	       git_name_plain(s.p[i + 1]) && !str_eq_nocase(str_n(s.p + i, s.n - i), STR(".lock"));
}

struct str git_name(struct arena *a, struct str bytes)
{
	struct buf b = BUF_MAX(3 * bytes.n + 1);
	struct str out;

	for (size_t i = 0; i < bytes.n; i++) {
		if (git_name_plain(bytes.p[i]) || plain_dot(bytes, i))
			buf_addc(&b, bytes.p[i]);
		else
			buf_addf(&b, "%%%02x", (unsigned char)bytes.p[i]);
	}
	out = arena_str(a, buf_str(&b));
	buf_free(&b);
	return out;
}

static int git_name_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool git_unname(struct arena *a, struct str name, struct str *out)
{
	char *p = arena_alloc(a, name.n + 1);
	size_t n = 0;

	for (size_t i = 0; i < name.n; i++) {
		if (name.p[i] != '%') {
			p[n++] = name.p[i];
			continue;
		}
		if (name.n - i < 3 || git_name_digit(name.p[i + 1]) < 0 ||
		    git_name_digit(name.p[i + 2]) < 0)
			return false;
		p[n++] = (char)(git_name_digit(name.p[i + 1]) << 4 | git_name_digit(name.p[i + 2]));
		i += 2;
	}
	*out = str_n(p, n);
	return n > 0;
}

struct str git_ref_of(struct arena *a, struct str key)
{
	(void)str_cut_prefix(&key, STR("task/"));
	return arena_printf(a, "t/%s", arena_cstr(a, git_name(a, key)));
}

struct str git_full(struct git *s, struct str name, struct arena *a)
{
	return arena_printf(a, "%s%.*s", s->prefix, STRF(name));
}

bool git_ours(const struct git *s, struct str name)
{
	if (s->only)
		return str_is(name, s->only);
	return str_eq(name, GIT_BASE) ||
	       (str_cut_prefix(&name, STR("t/")) && !memchr(str_p(name), '/', name.n));
}

struct str git_hex(struct arena *a, const git_oid *oid)
{
	char *hex = arena_alloc(a, GIT_OID_HEXSZ + 1);

	git_oid_tostr(hex, GIT_OID_HEXSZ + 1, oid);
	return str_n(hex, GIT_OID_HEXSZ);
}

int git_move_cmp(const void *a, const void *b)
{
	const struct git_move *x = a, *y = b;

	return str_cmp(x->name, y->name);
}

static bool says_full(struct str line)
{
	static const int full[] = { ENOSPC, EDQUOT, EFBIG };

	for (size_t i = 0; i < sizeof(full) / sizeof(*full); i++)
		if (str_has_nocase(line, str_c(strerror(full[i]))))
			return true;
	return false;
}

struct str git_full_line(struct str text)
{
	while (text.n) {
		struct str line = str_trim(str_cut(&text, '\n'));

		if (says_full(line))
			return line;
	}
	return STR("");
}

int git_fail(struct git *s, int fault, const char *what)
{
	const git_error *e = git_error_last();
	const char *text = e && e->message ? e->message : "";

	if (fault == STORE_IO && git_full_line(str_c(text)).n)
		fault = STORE_FULL;
	return store_fail(&s->base.env, fault,
			  fault == STORE_CORRUPT ? "to see the damage: pawl doctor" : NULL,
			  "%s: %s%s%s", s->remote, what, *text ? ": " : "", text);
}

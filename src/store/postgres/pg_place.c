/* The place's URI: takes out pawl's own parameters, and leaves the rest to libpq. No part of a password may reach a
 * message, even if the user did not quote it correctly. */
#include <stdlib.h>
#include <unistd.h>

#include "store/postgres/postgres.h"

#define IDENTIFIER_MAX 63 /* PostgreSQL cuts longer identifiers */

static int pg_place_hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Decodes %XX. NULL if the text is not valid, or contains a NUL. */
static char *pg_place_decode(struct str s)
{
	char *out = mem_alloc(s.n + 1), *to = out;

	for (size_t i = 0; i < s.n; i++) {
		char c = s.p[i];

		if (c == '%') {
			if (i + 2 >= s.n || pg_place_hex(s.p[i + 1]) < 0 ||
			    pg_place_hex(s.p[i + 2]) < 0) {
				free(out);
				return NULL;
			}
			c = (char)(pg_place_hex(s.p[i + 1]) * 16 + pg_place_hex(s.p[i + 2]));
			i += 2;
		}
		if (!c) {
			free(out);
			return NULL;
		}
		*to++ = c;
	}
	*to = '\0';
	return out;
}

static char *pg_place_quoted(const char *name)
{
	char *out = mem_alloc(2 * strlen(name) + 3), *to = out;

	*to++ = '"';
	for (; *name; name++) {
		if (*name == '"')
			*to++ = '"';
		*to++ = *name;
	}
	*to++ = '"';
	*to = '\0';
	return out;
}

static bool is_ours(struct str param)
{
	struct str name = str_cut(&param, '=');

	return str_is(name, "queue") || str_is(name, "schema") || str_is(name, "fault") ||
	       str_is(name, "seed");
}

static char *without_ours(const struct uri *uri)
{
	struct buf b = BUF_MAX(uri->text.n + 2);
	struct str rest = uri->params;
	char sep = '?', *out;

	buf_adds(&b, uri->scheme);
	buf_addc(&b, ':');
	buf_adds(&b, uri->path);
	while (rest.n) {
		struct str param = str_cut(&rest, '&');

		if (is_ours(param))
			continue;
		buf_addc(&b, sep);
		buf_adds(&b, param);
		sep = '&';
	}
	buf_addc(&b, '\0');
	out = mem_alloc(b.n);
	memcpy(out, b.p, b.n);
	buf_free(&b);
	return out;
}

/* Does the host's or database's name look like a part of a password, or like a whole URI? */
static bool is_odd(const char *value)
{
	const char *at = strchr(value, '@');

	return strchr(value, '=') || strstr(value, "://") ||
	       (at && at != value && *value != '/'); /* @NAME is a socket, too */
}

static bool pg_place_fits(const PQconninfoOption *o)
{
	if (!o->val)
		return true;
	if (!strcmp(o->keyword, "port"))
		return strspn(o->val, "0123456789,") == strlen(o->val);
	if (!strcmp(o->keyword, "host") || !strcmp(o->keyword, "hostaddr") ||
	    !strcmp(o->keyword, "dbname") || !strcmp(o->keyword, "service"))
		return !is_odd(o->val);
	return true;
}

static int fail_unclear(struct pg *s)
{
	return store_fail(&s->base.env, STORE_UNSUPPORTED,
			  "for example: postgres://USER@HOST/DATABASE?queue=NAME; write a special "
			  "character in a name or a password as %XX, for example @ as %40",
			  "the URI postgres://\xe2\x80\xa6 cannot be read: its user, host, port or "
			  "a parameter is not valid");
}

/* libpq's own message about a URI may contain a part of the password, so we do not show it. Later messages name the host,
 * the port and the database, so none of these may be a part of an unquoted password. */
static int check_info(struct pg *s)
{
	char *why = NULL;
	PQconninfoOption *info = PQconninfoParse(s->conninfo, &why);
	bool ok = info;

	PQfreemem(why);
	for (const PQconninfoOption *o = info; o && o->keyword; o++)
		ok = ok && pg_place_fits(o);
	PQconninfoFree(info);
	return ok ? 0 : fail_unclear(s);
}

int pg_place(struct pg *s, const struct uri *uri)
{
	struct str schema = uri_param(uri, "schema");
	const struct store_env *env = &s->base.env;

	if (!str_starts(uri->path, STR("//")) || memchr(uri->text.p, '\0', uri->text.n))
		return store_fail(env, STORE_UNSUPPORTED,
				  "for example: postgres://USER@HOST/DATABASE",
				  "a postgres: URI begins with postgres://");
	if (!uri_is_clear(uri->text))
		return fail_unclear(s);
	s->name = pg_place_decode(schema.n ? schema : STR("pawl"));
	if (!s->name || strlen(s->name) > IDENTIFIER_MAX)
		return store_fail(env, STORE_UNSUPPORTED, "for example: schema=pawl",
				  "the schema of the postgres: URI is not a valid name");
	if (str_starts(str_c(s->name), STR("pg_")) || !strcmp(s->name, "information_schema"))
		return store_fail(env, STORE_UNSUPPORTED, "for example: schema=pawl",
				  "PostgreSQL keeps the schema %s for itself", s->name);
	s->schema = pg_place_quoted(s->name);
	if (env->opt.own_time) {
		s->boot = env->opt.boot;
		s->epoch = env->opt.wall() - s->boot();
	}
	s->conninfo = without_ours(uri);
	return check_info(s);
}

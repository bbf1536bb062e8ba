/* Store URIs: a URI that is put together from its parts means the same. */
#include "kit.h"
#include "store/store.h"

static bool inside(struct str part, struct str whole)
{
	return !part.n || (part.p >= whole.p && part.p + part.n <= whole.p + whole.n);
}

static bool has(struct str s, char c)
{
	return s.n && memchr(s.p, c, s.n);
}

static struct str joined(struct arena *a, const struct uri *u)
{
	return arena_printf(a, "%.*s:%.*s%s%.*s%s%.*s", STRF(u->scheme), STRF(u->path),
			    u->params.n ? "?" : "", STRF(u->params), u->fragment.n ? "#" : "",
			    STRF(u->fragment));
}

static void check_params(struct arena *a, const struct uri *u)
{
	struct str rest = u->params;

	while (rest.n) {
		struct str value = str_cut(&rest, '&'), name = str_cut(&value, '='), found;

		if (has(name, '\0'))
			continue;
		found = uri_param(u, arena_cstr(a, name));
		CHECK(inside(found, u->params) && !has(found, '&'));
	}
	CHECK(!uri_param(u, "no such name").n || u->params.n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena a = { 0 };
	struct str text = str_n((const char *)data, size), whole;
	struct uri u, again;

	if (uri_parse(text, &u))
		return 0;
	CHECK(str_eq(u.text, text));
	CHECK(u.scheme.n && !has(u.scheme, ':') && !has(u.scheme, '/'));
	CHECK(inside(u.scheme, text) && inside(u.path, text));
	CHECK(inside(u.params, text) && inside(u.fragment, text));
	if (uri_on_disk(&u)) {
		/* no part of a path is lost */
		CHECK(!u.fragment.n && !has(u.params, '/'));
		CHECK(u.scheme.n + 1 + u.path.n + (u.params.n ? 1 + u.params.n : 0) == size);
	} else {
		CHECK(!has(u.path, '?') && !has(u.path, '#'));
		CHECK(!has(u.params, '#') && !has(u.fragment, '?'));
		/* with only one of them, nothing is lost */
		if (!has(text, '#') && has(text, '?'))
			CHECK(u.scheme.n + 2 + u.path.n + u.params.n == size);
		if (has(text, '#') && !has(text, '?'))
			CHECK(u.scheme.n + 2 + u.path.n + u.fragment.n == size);
	}
	check_params(&a, &u);
	if (!has(text, '\0')) {
		whole = joined(&a, &u);
		CHECK(uri_parse(whole, &again) == 0);
		CHECK(str_eq(again.scheme, u.scheme) && str_eq(again.path, u.path));
		CHECK(str_eq(again.params, u.params) && str_eq(again.fragment, u.fragment));
	}
	arena_free(&a);
	return 0;
}

/* Which pages may call a server on this machine. */
#include "kit.h"

#include "http/address.h"

static const char *const names[] = { "pawl.example", NULL };
static const char *const types[] = { "application/x-pawl", NULL };
static const struct http_guard guard = { .host_names = names, .types = types, .local_names = true };

static void test_hosts(void **state)
{
	static const char *const good[] = { "localhost",     "LOCALHOST:7295", "127.0.0.1:80",
					    "192.168.1.7",   "[::1]",          "[fe80::1]:7295",
					    "a.localhost",   "box.local:7295", "pawl.example",
					    "Pawl.Example:1" };
	static const char *const bad[] = { "evil.example",  "localhost.evil.example",
					   "local",         ".local",
					   "evillocalhost", "127.0.0.1.evil.example",
					   "1.2.3",         "0x7f.1",
					   "[::1].evil",    "localhost:x",
					   "localhost:0",   "localhost:65536",
					   "pawl.example.", "apawl.example",
					   ":80",           "",
					   "[::1",          "localhost:80:80" };

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		if (!http_host_allowed(&guard, str_c(good[i])))
			fail_msg("'%s' is refused", good[i]);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (http_host_allowed(&guard, str_c(bad[i])))
			fail_msg("'%s' is allowed", bad[i]);
	assert_false(http_host_allowed(&(struct http_guard){ 0 }, STR("pawl.example")));
	assert_false(http_host_allowed(&(struct http_guard){ 0 }, STR("box.local:7295")));
	assert_true(http_host_allowed(&(struct http_guard){ 0 }, STR("a.localhost:7295")));
}

/* A link on another page may lead a person to the board, and nothing else. */
static void test_links(void **state)
{
	static const struct {
		const char *method, *mode, *dest;
		bool links;
		int status;
	} table[] = {
		{ "GET", "navigate", "document", true, 0 },
		{ "GET", "navigate", "document", false, 403 },
		{ "GET", "navigate", "iframe", true, 403 },
		{ "GET", "navigate", "object", true, 403 },
		{ "GET", "no-cors", "script", true, 403 },
		{ "GET", "no-cors", "document", true, 403 },
		{ "GET", "cors", "empty", true, 403 },
		{ "GET", "", "", true, 403 },
		{ "POST", "navigate", "document", true, 403 },
		{ "HEAD", "navigate", "document", true, 403 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct http_header h[] = { { STR("Sec-Fetch-Site"), STR("cross-site") },
					   { STR("Sec-Fetch-Mode"), str_c(table[i].mode) },
					   { STR("Sec-Fetch-Dest"), str_c(table[i].dest) },
					   { STR("Content-Type"), STR("application/json") },
					   { STR("Sec-Fetch-Dest"), STR("document") } };
		struct http_request r = { .method = str_c(table[i].method),
					  .host = STR("localhost:7295"),
					  .headers = { h, 4 } };
		struct http_guard g = guard;
		const char *reason;

		g.links = table[i].links;
		assert_int_equal(http_guard_check(&g, &r, &reason), table[i].status);
		r.headers.n = 5; /* two claims about one thing */
		assert_int_equal(http_guard_check(&g, &r, &reason), 403);
	}
}

static int check(const char *method, const char *host, const char *name, const char *value)
{
	struct http_header h[2] = { { STR("Content-Type"), STR("application/json; charset=utf-8") },
				    { str_c(name), str_c(value) } };
	struct http_request r = { .method = str_c(method),
				  .host = str_c(host),
				  .headers = { h, name ? 2 : 1 } };
	const char *reason = NULL;
	int status = http_guard_check(&guard, &r, &reason);

	assert_true(!status == !reason);
	return status;
}

static void test_requests(void **state)
{
	struct http_header twice[] = { { STR("Origin"), STR("http://localhost:7295") },
				       { STR("Origin"), STR("http://localhost:7295") } };
	struct http_request r = { .method = STR("POST"), .host = STR("localhost") };
	const char *reason, *here = "localhost:7295";

	(void)state;
	assert_int_equal(check("POST", here, NULL, NULL), 0);
	assert_int_equal(check("GET", "evil.example:7295", NULL, NULL), 403);
	assert_int_equal(check("GET", here, "Origin", "http://localhost:7295"), 0);
	assert_int_equal(check("GET", here, "Origin", "http://127.0.0.1:7295"), 0);
	assert_int_equal(check("GET", here, "Origin", "https://pawl.example"), 0);
	assert_int_equal(check("GET", "10.0.0.7:7295", "Origin", "http://10.0.0.7:7295"), 0);
	assert_int_equal(check("GET", here, "Origin", "http://10.0.0.7"), 403);
	assert_int_equal(check("GET", here, "Origin", "https://evil.example"), 403);
	assert_int_equal(check("GET", here, "Origin", "null"), 403);
	assert_int_equal(check("GET", here, "Origin", ""), 403);
	assert_int_equal(check("GET", here, "Origin", "file://"), 403);
	assert_int_equal(check("GET", here, "Sec-Fetch-Site", "same-origin"), 0);
	assert_int_equal(check("GET", here, "Sec-Fetch-Site", "none"), 0);
	assert_int_equal(check("GET", here, "Sec-Fetch-Site", "same-site"), 403);
	assert_int_equal(check("GET", here, "Sec-Fetch-Site", "cross-site"), 403);
	assert_int_equal(check("POST", here, "Content-Type", "text/plain"), 415);
	assert_int_equal(http_guard_check(&guard, &r, &reason), 415);
	r.headers = (struct http_headers){ twice, 2 };
	assert_int_equal(http_guard_check(&guard, &r, &reason), 403);
	twice[0] = (struct http_header){ STR("content-type"), STR("Application/X-Pawl") };
	r.headers.n = 1;
	assert_int_equal(http_guard_check(&guard, &r, &reason), 0);
	twice[0].value = STR("text/plain");
	assert_int_equal(http_guard_check(&guard, &r, &reason), 415);
	r.method = STR("GET");
	assert_int_equal(http_guard_check(&guard, &r, &reason), 0);
}

/* Two values are two headers. */
static void test_forwarded(void **state)
{
	static const struct {
		const char *first, *second, *address;
	} rows[] = {
		{ "192.0.2.1", NULL, "192.0.2.1" },
		{ "10.9.9.9, 192.0.2.1", NULL, "192.0.2.1" }, /* nginx, Caddy */
		{ "10.9.9.9", "192.0.2.1", "192.0.2.1" },     /* HAProxy */
		{ "10.9.9.9, 10.8.8.8", " 192.0.2.1 ", "192.0.2.1" },
		{ "10.9.9.9", "10.8.8.8,,192.0.2.1", "192.0.2.1" },
		{ "2001:db8::1", NULL, "2001:db8::1" },
		{ "[2001:db8::1]:443", NULL, "2001:db8::1" },
		{ "192.0.2.1:443", NULL, "192.0.2.1" },
		{ "10.9.9.9", "", "" }, /* not the client's */
		{ "10.9.9.9,", NULL, "" },
		{ "10.9.9.9, unknown", NULL, "" },
		{ "10.9.9.9 10.8.8.8", NULL, "" },
		{ "10.9.9", NULL, "" },
		{ "\"10.9.9.9\"", NULL, "" },
		{ "[10.9.9.9", NULL, "10.9.9.9" },
		{ "", NULL, "" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct http_header h[] = { { STR("X-Forwarded-For"), str_c(rows[i].first) },
					   { STR("Accept"), STR("10.7.7.7") },
					   { STR("x-forwarded-FOR"), str_c(rows[i].second) } };
		struct str got =
			http_forwarded_for((struct http_headers){ h, rows[i].second ? 3 : 2 });

		if (!str_is(got, rows[i].address))
			fail_msg("'%s', '%s': '%.*s'", rows[i].first,
				 rows[i].second ? rows[i].second : "", STRF(got));
	}
	assert_int_equal(http_forwarded_for((struct http_headers){ NULL, 0 }).n, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hosts),
		cmocka_unit_test(test_links),
		cmocka_unit_test(test_requests),
		cmocka_unit_test(test_forwarded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

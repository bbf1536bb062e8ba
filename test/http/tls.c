/* TLS between the server and the client, with certificates that the test makes. */
#include "kit.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>

#include "base/fs.h"
#include "http/tls.h"

/* The test and the libraries have this clock. */
static _Atomic int64_t clock_ahead; /* the server is a thread */

time_t time(time_t *out)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	now.tv_sec += clock_ahead;
	if (out)
		*out = now.tv_sec;
	return now.tv_sec;
}

/* Nobody can remove files. A folder without write permission would not stop root. */
static bool read_only;

int unlink(const char *path)
{
	if (!read_only)
		return unlinkat(AT_FDCWD, path, 0);
	errno = EROFS;
	return -1;
}

static const struct http_headers none = { NULL, 0 };
static char dir[] = "/tmp/pawl-tls.XXXXXX";

static const char *file(const char *name)
{
	static char paths[4][64];
	static int at;

	at = (at + 1) % 4;
	snprintf(paths[at], sizeof(paths[at]), "%s/%s", dir, name);
	return paths[at];
}

static void make(const char *name, const char *alt)
{
	char line[512];

	snprintf(line, sizeof(line),
		 "cd %s && openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 "
		 "-nodes -days 2 -subj /CN=%s -addext subjectAltName=%s -keyout %s.key -out %s.pem "
		 "2>/dev/null",
		 dir, name, alt, name, name);
	assert_int_equal(system(line), 0);
}

static void shell(const char *command)
{
	char line[700];

	snprintf(line, sizeof(line), "cd %s && { %s; } 2>/dev/null", dir, command);
	assert_int_equal(system(line), 0);
}

static int group_setup(void **state)
{
	(void)state;
	assert_non_null(mkdtemp(dir));
	make("good", "IP:127.0.0.1,DNS:localhost");
	make("other", "DNS:other.example");
	return 0;
}

static int group_teardown(void **state)
{
	static const char *const names[] = { "good.key",   "good.pem",   "other.key",  "other.pem",
					     "now.key",    "now.pem",    "signed.key", "signed.pem",
					     "signed.csr", "signed.ext", "both.pem",   "broken.pem",
					     "other.srl",  "kept",       "moved",      "pipe" };

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unlink(file(names[i]));
	return rmdir(dir);
}

static struct harness *secure_for(const char *cert, const char *key, int64_t head_ms)
{
	struct http_options o = harness_options();

	o.tls_cert = file(cert);
	o.tls_key = file(key);
	o.limits.head_ms = head_ms;
	return harness_start(&o);
}

static struct harness *secure(const char *cert, const char *key)
{
	return secure_for(cert, key, PATIENCE);
}

static struct http_client *client(const char *url, const char *ca)
{
	struct http_client *c;
	char why[256];
	struct http_client_options o = { .ca_file = ca };

	if (http_client_new(url, &o, &c, why, sizeof(why)) < 0)
		fail_msg("%s", why);
	return c;
}

static enum http_fate get(struct http_client *c, const char *target, struct arena *a,
			  struct http_answer *out)
{
	return http_call(c, "GET", target, NULL, none, STR(""), os_boot_ms() + PATIENCE, a, out);
}

/* The client refuses the server, sends it nothing, and says why with these words. */
static void refuses(const char *url, const char *ca, const char *words)
{
	struct http_client *c = client(url, ca ? file(ca) : NULL);
	struct http_answer out;
	struct arena a = { 0 };

	assert_int_equal(get(c, "/e", &a, &out), HTTP_NOT_SENT);
	assert_non_null(strstr(out.why, words));
	http_client_free(c);
	arena_free(&a);
}

static void test_calls(void **state)
{
	struct harness *h = secure("good.pem", "good.key");
	struct http_client *c = client(harness_url(h), file("good.pem"));
	struct http_answer out;
	struct arena a = { 0 };
	struct str line;
	char *body = arena_alloc(&a, 900 << 10);

	(void)state;
	assert_non_null(strstr(harness_url(h), "https://"));
	for (int i = 0; i < 3; i++) {
		if (get(c, "/who", &a, &out) != HTTP_ANSWERED)
			fail_msg("%s", out.why);
		assert_string_equal(out.body.p, "127.0.0.1 local=0 uid=-1 tls=1");
	}
	assert_int_equal(harness_counters(h).accepted, 1);
	memset(body, 'b', 900 << 10);
	assert_int_equal(http_call(c, "POST", "/e", "text/plain", none, str_n(body, 900 << 10),
				   os_boot_ms() + PATIENCE, &a, &out),
			 HTTP_ANSWERED);
	assert_int_equal(out.body.n, (900 << 10) + strlen("POST /e [] "));
	assert_int_equal(get(c, "/pump", &a, &out), HTTP_ANSWERED);
	assert_int_equal(out.body.n, 8 << 20);
	assert_int_equal(http_feed_start(c, "GET", "/events", NULL, none, STR(""), 0, &a, &out),
			 HTTP_ANSWERED);
	assert_int_equal(http_feed_line(c, 100, 0, &line), 1);
	assert_true(str_is(line, "data: one"));
	http_feed_end(c);
	http_client_free(c);
	WAIT_FOR(harness_counters(h).connections == 0);
	arena_free(&a);
	harness_end(h);
}

/* No byte of a request reaches a server that does not prove its name. */
static void test_not_trusted(void **state)
{
	struct harness *h = secure("good.pem", "good.key"), *o = secure("other.pem", "other.key");

	(void)state;
	refuses(harness_url(h), NULL, "not trusted"); /* the system does not know it */
	refuses(harness_url(h), "other.pem", "not trusted");
	refuses(harness_url(o), "other.pem", "IP address mismatch"); /* trusted, but another name */
	refuses(harness_url(h), "missing.pem", "missing.pem");
	assert_int_equal(harness_counters(h).requests, 0);
	assert_int_equal(harness_counters(o).requests, 0);
	harness_end(o);
	harness_end(h);
}

static void answers(struct harness *h, const char *ca)
{
	struct http_client *c = client(harness_url(h), file(ca));
	struct http_header once = { { "Connection", 10 }, { "close", 5 } };
	struct http_headers extra = { &once, 1 };
	struct http_answer out;
	struct arena a = { 0 };

	for (int i = 0; i < 2; i++) /* the second connection verifies again */
		if (http_call(c, "GET", "/who", NULL, extra, STR(""), os_boot_ms() + PATIENCE, &a,
			      &out) != HTTP_ANSWERED)
			fail_msg("%s: %s", ca, out.why);
	WAIT_FOR(harness_counters(h).connections == 0);
	http_client_free(c);
	arena_free(&a);
}

/* A file with the certificate of the server, with that of its authority, and with several. */
static void test_trusted(void **state)
{
	struct harness *h = secure("good.pem", "good.key"), *s;

	(void)state;
	shell("openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=signed "
	      "-keyout signed.key -out signed.csr && echo subjectAltName=IP:127.0.0.1 >signed.ext && "
	      "openssl x509 -req -in signed.csr -CA other.pem -CAkey other.key -CAcreateserial -days 2 "
	      "-extfile signed.ext -out signed.pem");
	shell("cat other.pem good.pem >both.pem");
	shell("{ echo '-----BEGIN CERTIFICATE-----'; echo hello | base64; "
	      "echo '-----END CERTIFICATE-----'; } >broken.pem");
	s = secure("signed.pem", "signed.key");
	answers(h, "good.pem");
	answers(h, "both.pem");
	answers(s, "other.pem");
	answers(s, "both.pem");
	refuses(harness_url(s), "good.pem", "not trusted");
	refuses(harness_url(h), "broken.pem", "broken.pem");
	refuses(harness_url(h), "signed.csr", "signed.csr");
	refuses(harness_url(h), "signed.ext", "signed.ext");
	harness_end(s);
	harness_end(h);
}

/* A pipe can be read only once, for example with PAWL_SERVER_CA=<(...). */
static void test_trusts_a_pipe(void **state)
{
	struct harness *h = secure("good.pem", "good.key");

	(void)state;
	shell("cat other.pem good.pem >both.pem && mkfifo pipe");
	shell("timeout 60 sh -c 'cat good.pem >pipe' & true");
	answers(h, "pipe");
	shell("timeout 60 sh -c 'cat both.pem >pipe' & true");
	answers(h, "pipe");
	harness_end(h);
}

/* https to a plain server, and plain http to a TLS server. */
static void test_crossed(void **state)
{
	struct harness *plain = harness_start(NULL), *tls = secure("good.pem", "good.key");
	struct http_answer out;
	struct arena a = { 0 };
	struct http_client *c;
	char url[64];

	(void)state;
	snprintf(url, sizeof(url), "https://127.0.0.1:%d", harness_port(plain));
	refuses(url, "good.pem", "");
	snprintf(url, sizeof(url), "http://127.0.0.1:%d", harness_port(tls));
	c = client(url, NULL);
	assert_int_equal(get(c, "/e", &a, &out), HTTP_UNKNOWN);
	http_client_free(c);
	assert_int_equal(harness_counters(tls).requests, 0);
	arena_free(&a);
	harness_end(tls);
	harness_end(plain);
}

static void test_parked(void **state)
{
	struct harness *h = secure("good.pem", "good.key");
	struct http_client *c = client(harness_url(h), file("good.pem"));
	struct http_answer out;
	struct arena a = { 0 };
	int silent;

	(void)state;
	assert_int_equal(get(c, "/e", &a, &out), HTTP_ANSWERED); /* connects */
	assert_int_equal(
		http_call(c, "GET", "/park", NULL, none, STR(""), os_boot_ms() + 100, &a, &out),
		HTTP_UNKNOWN);
	assert_true(out.timed_out);
	WAIT_FOR(harness_tally(h).gone == 1);
	WAIT_FOR(harness_counters(h).connections == 0);
	http_client_free(c);
	arena_free(&a);
	harness_end(h);
	h = secure_for("good.pem", "good.key", 150);
	silent = dial(h); /* it never shakes hands */
	assert_true(hear_end(silent));
	close(silent);
	harness_end(h);
}

static void copy(const char *from, const char *to)
{
	char line[256];

	snprintf(line, sizeof(line), "cp %s/%s %s/%s", dir, from, dir, to);
	assert_int_equal(system(line), 0);
}

static int reloaded;
static char reload_why[256];

static void reload(struct harness *h)
{
	reloaded = http_server_reload_tls(harness_server(h), reload_why, sizeof(reload_why));
}

static void test_reload(void **state)
{
	struct harness *h;
	struct http_client *kept, *fresh;
	struct http_answer out;
	struct arena a = { 0 };
	FILE *f;

	(void)state;
	copy("good.pem", "now.pem");
	copy("good.key", "now.key");
	h = secure("now.pem", "now.key");
	kept = client(harness_url(h), file("good.pem"));
	assert_int_equal(get(kept, "/e", &a, &out), HTTP_ANSWERED);
	f = fopen(file("now.pem"), "w");
	fputs("this is not a certificate\n", f);
	fclose(f);
	harness_do(h, reload);
	assert_int_equal(reloaded, -1);
	assert_non_null(strstr(reload_why, "now.pem"));
	fresh = client(harness_url(h), file("good.pem")); /* the old one is still used */
	assert_int_equal(get(fresh, "/e", &a, &out), HTTP_ANSWERED);
	http_client_free(fresh);
	copy("other.pem", "now.pem");
	harness_do(h, reload);
	assert_int_equal(reloaded, -1); /* another key */
	copy("other.key", "now.key");
	harness_do(h, reload);
	assert_int_equal(reloaded, 0);
	assert_int_equal(get(kept, "/e", &a, &out), HTTP_ANSWERED); /* as it was begun */
	refuses(harness_url(h), "good.pem", "not trusted");
	http_client_free(kept);
	arena_free(&a);
	harness_end(h);
}

/* ---- sessions that are kept in a file */

/* Makes a call with a connection of its own, which lasts for some time. Returns the number of resumed handshakes until
 * now. */
static uint64_t call_for(struct harness *h, const char *url, const char *ca, int64_t seconds)
{
	struct http_client_options o = { .ca_file = ca ? file(ca) : NULL,
					 .session_file = file("kept") };
	struct http_client *c;
	struct http_answer out;
	struct arena a = { 0 };
	char why[256];

	assert_int_equal(http_client_new(url, &o, &c, why, sizeof(why)), 0);
	if (get(c, "/who", &a, &out) != HTTP_ANSWERED)
		fail_msg("%s", out.why);
	clock_ahead += seconds;
	http_client_free(c);
	arena_free(&a);
	WAIT_FOR(harness_counters(h).connections == 0);
	return harness_counters(h).resumed;
}

static uint64_t call_once(struct harness *h, const char *url, const char *ca)
{
	return call_for(h, url, ca, 0);
}

static struct str kept(struct arena *a)
{
	struct str bytes;

	assert_int_equal(fs_read_private(a, file("kept"), HTTP_TLS_KEPT_MAX, &bytes), 0);
	return bytes;
}

static void plant(struct str bytes)
{
	unlink(file("kept"));
	assert_int_equal(fs_write_atomic(file("kept"), bytes, 0600), 0);
}

static void test_resumes(void **state)
{
	struct harness *h = secure("good.pem", "good.key");
	struct arena a = { 0 };
	struct str first;
	struct stat st;
	char foreign[80];

	(void)state;
	unlink(file("kept"));
	/* a process in another container has the same number */
	snprintf(foreign, sizeof(foreign), "%s.%d", file("kept"), (int)getpid());
	assert_int_equal(fs_write_atomic(foreign, STR("of another process"), 0600), 0);
	assert_int_equal(call_once(h, harness_url(h), "good.pem"), 0);
	assert_int_equal(stat(file("kept"), &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(fs_read(&a, foreign, 100, &first), 0);
	unlink(foreign);
	first = kept(&a);
	assert_int_equal(call_once(h, harness_url(h), "good.pem"), 1);
	assert_int_equal(call_once(h, harness_url(h), "good.pem"), 2);
	assert_int_equal(harness_counters(h).handshakes, 3);
	/* a session lasts as long as its first proof, however often it is resumed */
	assert_true(str_eq(kept(&a), first));
	harness_end(h);
	arena_free(&a);
}

/* The times stand behind the bond of 32 bytes. */
static void kept_times(int64_t times[2])
{
	struct arena a = { 0 };

	memcpy(times, kept(&a).p + 32, 2 * sizeof(times[0]));
	arena_free(&a);
}

/* An hour from the proof of the server's name, however long the connection lasts, and not longer than the certificate
 * of two days. */
static void test_resumes_for_an_hour(void **state)
{
	struct harness *h = secure("good.pem", "good.key");
	int64_t start = time(NULL), times[2];

	(void)state;
	unlink(file("kept"));
	(void)call_for(h, harness_url(h), "good.pem", 1800);
	kept_times(times);
	assert_in_range(times[0], start, start + 1799);
	assert_int_equal(times[1], times[0] + 3600);
	unlink(file("kept"));
	(void)call_for(h, harness_url(h), "good.pem", 3600);
	assert_false(fs_exists(file("kept")));
	clock_ahead = 2 * 86400 - 600;
	(void)call_once(h, harness_url(h), "good.pem");
	kept_times(times);
	assert_in_range(times[1] - times[0], 1, 600);
	unlink(file("kept"));
	(void)call_for(h, harness_url(h), "good.pem", 600);
	assert_false(fs_exists(file("kept")));
	clock_ahead = 0;
	harness_end(h);
}

/* A resumed session skips the proof of the server's name. So it must not lead to another server or trust. */
static void test_resumes_no_other(void **state)
{
	struct harness *h = secure("good.pem", "good.key");
	char url[64];

	(void)state;
	shell("cat good.pem other.pem >both.pem");
	unlink(file("kept"));
	assert_int_equal(call_once(h, harness_url(h), "good.pem"), 0);
	assert_int_equal(call_once(h, harness_url(h), "both.pem"), 0); /* other certificates */
	snprintf(url, sizeof(url), "https://localhost:%d", harness_port(h));
	assert_int_equal(call_once(h, url, "both.pem"), 0); /* another name */
	assert_int_equal(call_once(h, url, "both.pem"), 1);
	/* a server that does not know the session proves its name */
	harness_end(h);
	h = secure("good.pem", "good.key");
	snprintf(url, sizeof(url), "https://localhost:%d", harness_port(h));
	assert_int_equal(call_once(h, url, "both.pem"), 0);
	assert_int_equal(call_once(h, url, "both.pem"), 1);
	harness_end(h);
}

/* The call proves the server's name, and the next one continues its session. */
static void proves_again(struct harness *h)
{
	uint64_t before = harness_counters(h).resumed;

	assert_int_equal(call_once(h, harness_url(h), NULL), before);
	assert_int_equal(call_once(h, harness_url(h), NULL), before + 1);
}

/* Somebody removes an authority, or names another file or folder. */
static void test_resumes_with_the_system(void **state)
{
	struct harness *h = secure("good.pem", "good.key");
	struct stat before, now;
	char folders[160];

	(void)state;
	shell("cat good.pem other.pem >both.pem && mkdir folder");
	snprintf(folders, sizeof(folders), "%s:%s", file("missing"), file("folder"));
	setenv("SSL_CERT_FILE", file("both.pem"), 1);
	setenv("SSL_CERT_DIR", file("missing"), 1);
	unlink(file("kept"));
	proves_again(h);
	shell("cat good.pem >both.pem");
	proves_again(h);
	setenv("SSL_CERT_FILE", file("good.pem"), 1);
	proves_again(h);
	setenv("SSL_CERT_DIR", folders, 1);
	proves_again(h);
	assert_int_equal(stat(file("folder"), &before), 0);
	do { /* until the clock of the file system moves on */
		shell("touch folder/new && rm folder/new");
		assert_int_equal(stat(file("folder"), &now), 0);
	} while (memcmp(&now.st_ctim, &before.st_ctim, sizeof(now.st_ctim)) == 0);
	proves_again(h);
	unsetenv("SSL_CERT_FILE");
	unsetenv("SSL_CERT_DIR");
	assert_int_equal(rmdir(file("folder")), 0);
	harness_end(h);
}

/* The call succeeds, and a good session replaces the file. */
static void ignored(struct harness *h)
{
	uint64_t before = harness_counters(h).resumed;

	assert_int_equal(call_once(h, harness_url(h), "good.pem"), before);
	assert_int_equal(call_once(h, harness_url(h), "good.pem"), before + 1);
}

/* A good session with other times. */
static void ignored_in_time(struct harness *h, struct str good, int64_t from, int64_t until)
{
	char bytes[HTTP_TLS_KEPT_MAX];
	int64_t times[2] = { time(NULL) + from, time(NULL) + until };

	memcpy(bytes, good.p, good.n);
	memcpy(bytes + 32, times, sizeof(times));
	plant(str_n(bytes, good.n));
	ignored(h);
}

static void test_resumes_nothing_planted(void **state)
{
	struct harness *h = secure("good.pem", "good.key");
	struct arena a = { 0 };
	struct str good;
	char *bytes;

	(void)state;
	unlink(file("kept"));
	(void)call_once(h, harness_url(h), "good.pem");
	good = kept(&a);
	assert_int_equal(chmod(file("kept"), 0644), 0); /* others may have read the secret */
	ignored(h);
	assert_int_equal(rename(file("kept"), file("moved")), 0);
	assert_int_equal(symlink("moved", file("kept")), 0);
	ignored(h);
	plant(STR(""));
	ignored(h);
	plant(STR("not a session"));
	ignored(h);
	plant(str_n(good.p, good.n - 1));
	ignored(h);
	bytes = arena_alloc(&a, HTTP_TLS_KEPT_MAX + 1);
	memset(bytes, 0, HTTP_TLS_KEPT_MAX + 1);
	plant(str_n(bytes, HTTP_TLS_KEPT_MAX + 1));
	ignored(h);
	ignored_in_time(h, good, -3600, -1);
	ignored_in_time(h, good, 1000, 2000);
	ignored_in_time(h, good, -10, 3591);
	/* a change of any byte, for example in the secret, where only the server finds it */
	for (size_t i = 0; i < good.n; i += 7) {
		memcpy(bytes, good.p, good.n);
		bytes[i] ^= 1;
		plant(str_n(bytes, good.n));
		read_only = i % 2;
		(void)call_once(h, harness_url(h), "good.pem");
		read_only = false;
	}
	unlink(file("kept"));
	assert_int_equal(mkdir(file("kept"), 0700), 0);
	(void)call_once(h, harness_url(h), "good.pem");
	assert_int_equal(rmdir(file("kept")), 0);
	harness_end(h);
	arena_free(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_calls),
		cmocka_unit_test(test_not_trusted),
		cmocka_unit_test(test_crossed),
		cmocka_unit_test(test_parked),
		cmocka_unit_test(test_reload),
		cmocka_unit_test(test_trusted),
		cmocka_unit_test(test_trusts_a_pipe),
		cmocka_unit_test(test_resumes),
		cmocka_unit_test(test_resumes_for_an_hour),
		cmocka_unit_test(test_resumes_no_other),
		cmocka_unit_test(test_resumes_with_the_system),
		cmocka_unit_test(test_resumes_nothing_planted),
	};

	return cmocka_run_group_tests(tests, group_setup, group_teardown);
}

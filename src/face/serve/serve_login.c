/*
 * Callers: their tokens, failed logins, and each token's limits. If the token file cannot be read,
 * no token is valid, because one may have been revoked. Failed logins of others never lock out a
 * valid token.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>

#include "base/os.h"
#include "base/secret.h"
#include "face/serve/serve.h"

#define FAILED_MAX \
	10 /* failed logins from one address, or with one token prefix, within FAILED_MS */
#define FAILED_MS 60000
#define FAILED_PLACES 4096
#define PREFIX_LEN 12 /* of a token: BEARER_PREFIX and 42 bits */
#define KNOWN 64
#define NOTE_MS 60000
#define POLL_MS 5 /* a longer iteration of the loop checks the token file again */

/* Failed logins, by a mark of the address or of the token's prefix. Two marks may share a place,
 * because a valid token does not depend on it. */
struct failures {
	struct {
		int64_t since;
		int n;
	} places[FAILED_PLACES];
};

/* The tokens that were used since the list of tokens last changed, by their marks. */
struct known {
	struct secret_mark key;
	struct {
		struct secret_mark mark;
		const struct bearer *bearer; /* NULL: the place is free */
	} places[KNOWN];
};

void serve_login_open(struct serve_login *x)
{
	x->failures = mem_alloc(sizeof(*x->failures));
	*x->failures = (struct failures){ 0 };
	x->known = mem_alloc(sizeof(*x->known));
	*x->known = (struct known){ .key = secret_mark_key() };
}

static void set_list(struct serve_login *x, struct bearers list)
{
	memset(x->known->places, 0, sizeof(x->known->places));
	x->list = list;
}

static bool same_file(const struct stat *a, const struct stat *b)
{
	return a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

int serve_login_load(struct serve_login *x, bool always)
{
	struct arena a = { 0 };
	struct stat now = { 0 };
	struct bearers list;
	int r;

	(void)stat(bearer_file(x->dir, &a), &now); /* no file: no tokens */
	if (!always && !x->fault && same_file(&now, &x->seen)) {
		arena_free(&a);
		return 0;
	}
	r = x->fault = bearer_load(x->dir, &list, &a);
	if (r) {
		arena_free(&a);
		return r;
	}
	arena_free(&x->arena);
	x->arena = a;
	set_list(x, list);
	x->seen = now;
	return 0;
}

static void check_again(void *login)
{
	((struct serve_login *)login)->checked = false;
}

static void note_fault(struct serve *s, int before)
{
	int now = s->login.fault;

	if (now && !before)
		say_note(s, "warn",
			 "cannot read the tokens in %s: %s; until it can, no token is valid",
			 s->login.dir, strerror(-now));
	else if (before && !now)
		say_note(s, "info", "the tokens can be read again");
}

/* Checks the token file once for all requests that the loop reads in one iteration, unless the
 * iteration is long. 0, or -errno: no token is valid now, because the server may remember a token
 * that was revoked. */
static int check_once(struct serve *s)
{
	struct serve_login *x = &s->login;
	int64_t now = os_boot_ms();
	int before = x->fault;

	if (x->own || (x->checked && now - x->checked_ms < POLL_MS))
		return x->fault;
	x->checked_ms = now;
	if (!x->later)
		x->later = http_later_new(s->http, check_again, x);
	x->checked = true;
	http_later_call(x->later);
	(void)serve_login_load(x, false);
	note_fault(s, before);
	return x->fault;
}

static struct meter *meter_of(struct serve *s, struct str name)
{
	struct serve_login *x = &s->login;
	struct meter *m = x->meters;

	while (m && !str_is(name, m->name))
		m = m->next;
	if (m)
		return m;
	m = mem_alloc(sizeof(*m));
	*m = (struct meter){ .next = x->meters,
			     .name = strndup(str_p(name), name.n),
			     .calls = (double)s->burst,
			     .filled_ms = os_boot_ms(),
			     .memory = answers_memory(&s->memory) };
	x->meters = m;
	return m;
}

#define ONCE "once"

struct str serve_login_own(struct serve_login *x, struct str agent)
{
	struct bearer *b = arena_array(&x->arena, struct bearer, 2);

	b[0] = (struct bearer){ .name = STR("board"), .agent = agent, .role = ROLE_ADMIN };
	b[1] = b[0];
	b[1].name = STR(ONCE);
	x->own = true;
	set_list(x, (struct bearers){ b, 2 });
	x->secret = bearer_make(&b[0], &x->arena);
	return bearer_make(&b[1], &x->arena);
}

struct str serve_login_exchange(struct serve_login *x, const struct http_caller *c)
{
	if (!x->own || strcmp(c->name, ONCE) != 0)
		return STR("");
	set_list(x, (struct bearers){ x->list.v, 1 });
	return x->secret;
}

bool serve_login_spend(struct serve *s, struct meter *m, int *retry_s)
{
	int64_t now = os_boot_ms();

	m->calls += (double)(now - m->filled_ms) * (double)s->rate / 1000;
	m->filled_ms = now;
	if (m->calls > (double)s->burst)
		m->calls = (double)s->burst;
	if (m->calls < 1) {
		*retry_s = s->rate ? (int)((1 - m->calls) / (double)s->rate) + 1 : 60;
		return false;
	}
	m->calls -= 1;
	return true;
}

void serve_login_charge(struct meter *m, size_t calls)
{
	m->calls -= (double)calls;
}

/* --- failed logins ------------------------------------------------------------------------------- */

/* The network of an address: one IPv6 user has 64 bits of addresses. */
static struct str network_of(struct str address, char *room)
{
	char text[INET6_ADDRSTRLEN];

	if (address.n >= sizeof(text))
		return address;
	memcpy(text, str_p(address), address.n);
	text[address.n] = '\0';
	return inet_pton(AF_INET6, text, room) == 1 ? str_n(room, 8) : address;
}

/* Counts a failure. After too many failures returns the seconds until the count ends, else 0. */
static int count_failure(struct serve_login *x, struct str what)
{
	struct secret_mark m = secret_mark(&x->known->key, what);
	size_t i = (m.bytes[0] | (size_t)m.bytes[1] << 8) % FAILED_PLACES;
	int64_t now = os_boot_ms(), *since = &x->failures->places[i].since;
	int *n = &x->failures->places[i].n;

	if (now - *since >= FAILED_MS || !*n) {
		*since = now;
		*n = 0;
	}
	*n += *n <= FAILED_MAX;
	return *n > FAILED_MAX ? (int)((*since + FAILED_MS - now) / 1000) + 1 : 0;
}

/* Refuses a request without a valid token. A caller with a valid token never comes here, however
 * often others fail. */
static int serve_login_failed(struct serve_login *x, struct str address, struct str token,
			      const char *text, const char **reason, int *retry_s)
{
	char room[16];
	int left = count_failure(x, network_of(address, room)), other;

	other = token.n ? count_failure(x,
					str_n(token.p, token.n < PREFIX_LEN ? token.n : PREFIX_LEN))
			: 0;
	x->refused++;
	*retry_s = left > other ? left : other;
	*reason = *retry_s ? "too many requests without a valid token" : text;
	return *retry_s ? 429 : 401;
}

/* --- the caller ---------------------------------------------------------------------------------- */

static struct http_caller caller_of(struct serve *s, const struct bearer *b)
{
	struct http_caller c = { .meter = meter_of(s, b->name),
				 .name = strndup(str_p(b->name), b->name.n),
				 .agents = strndup(str_p(b->agent), b->agent.n),
				 .hash = strndup(str_p(b->hash), b->hash.n),
				 .role = b->role };

	if (b->queue.n)
		c.queue = strndup(b->queue.p, b->queue.n);
	c.meter->used = os_wall_ms();
	return c;
}

void caller_free(struct http_caller *c)
{
	free(c->name);
	free(c->agents);
	free(c->queue);
	free(c->hash);
	*c = (struct http_caller){ 0 };
}

static struct http_caller serve_login_anybody(struct serve *s)
{
	struct str self = s->session->client.self.agent;

	return (struct http_caller){ .meter = meter_of(s, STR("")),
				     .name = strndup(str_p(self), self.n),
				     .agents = strdup("*"),
				     .hash = strdup(""),
				     .role = ROLE_ADMIN };
}

static bool cut_bearer(struct str *text)
{
	struct str word = str_cut(text, ' ');

	*text = str_trim(*text);
	return str_eq_nocase(word, STR("Bearer"));
}

/* Finds the token. A caller sends it with each request, and to hash it takes as long as to parse
 * the request, so known tokens are found by their marks. */
static const struct bearer *find_bearer(struct serve_login *x, struct str secret)
{
	struct secret_mark m = secret_mark(&x->known->key, secret);
	size_t i = m.bytes[0] % KNOWN;
	struct str mark = str_n((const char *)m.bytes, MARK_LEN),
		   there = str_n((const char *)x->known->places[i].mark.bytes, MARK_LEN);
	const struct bearer *b = x->known->places[i].bearer;
	struct arena a = { 0 };

	if (b && secret_eq(mark, there))
		return b;
	b = bearer_find(&x->list, secret, &a);
	arena_free(&a);
	if (b) {
		x->known->places[i].mark = m;
		x->known->places[i].bearer = b;
	}
	return b;
}

int serve_login_check(struct serve *s, const struct http_request *r, struct str address, bool owner,
		      struct http_caller *out, const char **reason, int *retry_s)
{
	struct serve_login *x = &s->login;
	struct str text = http_header(r->headers, "authorization");
	const struct bearer *b;

	if (x->none || owner) {
		*out = serve_login_anybody(s);
		return 0;
	}
	if (!text.n)
		return serve_login_failed(x, address, text,
					  "this call needs a token: Authorization: Bearer TOKEN",
					  reason, retry_s);
	if (http_header_count(r->headers, "authorization") > 1)
		return serve_login_failed(x, address, text, "the request has more than one token",
					  reason, retry_s);
	if (check_once(s)) {
		*reason = "the server cannot read its tokens; its log says why";
		*retry_s = 1;
		return 503;
	}
	b = cut_bearer(&text) ? find_bearer(x, text) : NULL;
	if (!b)
		return serve_login_failed(x, address, text,
					  "the server does not recognise this token", reason,
					  retry_s);
	if (bearer_expired(b, os_wall_ms()))
		return serve_login_failed(x, address, text, "this token has expired", reason,
					  retry_s);
	*out = caller_of(s, b);
	return 0;
}

static bool is_listed(const struct serve_login *x, const char *hash)
{
	for (size_t i = 0; i < x->list.n; i++)
		if (str_is(x->list.v[i].hash, hash))
			return !bearer_expired(&x->list.v[i], os_wall_ms());
	return false;
}

bool serve_login_holds(struct serve *s, const struct http_caller *c)
{
	if (!*c->hash)
		return true;
	if (check_once(s))
		return false;
	return is_listed(&s->login, c->hash);
}

bool serve_login_hash(struct serve *s, struct str start, struct str *hash)
{
	const struct bearers *list = &s->login.list;

	if (check_once(s))
		return false;
	for (size_t i = 0; i < list->n; i++) {
		*hash = list->v[i].hash;
		if (str_starts(*hash, start) && !bearer_expired(&list->v[i], os_wall_ms()))
			return true;
	}
	return false;
}

/* Only the loop may use the loop's list, so the worker reads the file itself. */
bool serve_login_worker_holds(struct worker *d, const char *hash)
{
	const struct serve_login *loop = &d->serve->login;

	if (!hash || !*hash || loop->own) /* NULL: a job of the server itself */
		return true;
	if (!d->login.known) {
		d->login.known = mem_alloc(sizeof(*d->login.known));
		*d->login.known = (struct known){ 0 };
	}
	d->login.dir = loop->dir;
	return serve_login_load(&d->login, false) == 0 && is_listed(&d->login, hash);
}

void serve_login_close(struct serve_login *x)
{
	free(x->failures);
	free(x->known);
	arena_free(&x->arena);
}

/* Writes the times of last use seldom, because they need not be exact. */
void serve_login_note_uses(struct serve_login *x, bool now)
{
	struct arena a = { 0 };

	if (x->none || x->own || (!now && os_boot_ms() - x->noted_ms < NOTE_MS))
		return;
	x->noted_ms = os_boot_ms();
	for (size_t i = 0; i < x->list.n; i++)
		for (const struct meter *m = x->meters; m; m = m->next)
			if (m->used > x->list.v[i].used && str_is(x->list.v[i].name, m->name))
				x->list.v[i].used = m->used;
	(void)bearer_note_uses(x->dir, &x->list, &a);
	arena_free(&a);
}

bool caller_agent(const struct serve *s, const struct http_caller *c, struct str said,
		  struct str *out, const char **why)
{
	struct bearer b = { .agent = str_c(c->agents) };
	bool any = memchr(c->agents, '*', strlen(c->agents)) != NULL;

	(void)s;
	*out = said.n ? said : any ? str_c(c->name) : str_c(c->agents);
	if (bearer_names(&b, *out))
		return true;
	*why = said.n ? "the token does not allow this agent name"
		      : "the token allows several agent names: give the argument agent";
	return false;
}

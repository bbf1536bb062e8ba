/*
 * Chooses the connections that the server keeps. A connection belongs to a party: to the caller whose token its last request
 * had, or else to its address. Authenticated and unauthenticated connections have separate limits, so a peer without a token
 * cannot use up the callers' places.
 *
 * The server accepts every connection. If there is one too many, the largest party loses one: an idle connection if it has
 * any, else one that only waits, else the oldest. So a party with few connections keeps them, whatever others do, and
 * no party can fill the server with calls that wait. A caller whose own party is the largest loses only idle connections;
 * if it has none, its new request is refused.
 */
#include <netinet/in.h>
#include <stdlib.h>

#include "base/arena.h"
#include "http/http_private.h"

#define ROOM 8 /* connections to close when descriptors have run out */

/* The unauthenticated connections from one address. It is freed with the last of them. */
struct source {
	struct http_party
		party; /* first member: source_free() casts an unauthenticated connection's party */
	struct source *next;
	unsigned char address[16];
	size_t length;
};

/* An IPv6 user usually has a whole /64 network, so only the first 64 bits identify the user. */
static size_t address_length(const unsigned char *address)
{
	return IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)address) ? 16 : 8;
}

static struct source **source_bucket(struct http_server *s, const unsigned char *address, size_t n)
{
	uint64_t sum = str_sum(s->seed, address, n);

	return &s->sources[sum / (UINT64_MAX / BUCKETS + 1)]; /* by its high bits: see str.h */
}

static struct http_party *source_party(const struct conn *c)
{
	size_t n = address_length(c->address);
	struct source **bucket = source_bucket(c->s, c->address, n), *o = *bucket;

	while (o && (o->length != n || memcmp(o->address, c->address, n) != 0))
		o = o->next;
	if (o)
		return &o->party;
	o = mem_alloc(sizeof(*o));
	*o = (struct source){ .next = *bucket, .length = n };
	memcpy(o->address, c->address, sizeof(o->address));
	*bucket = o;
	return &o->party;
}

static void source_free(struct http_server *s, struct http_party *party)
{
	struct source *o = (struct source *)party, **at = source_bucket(s, o->address, o->length);

	while (*at != o)
		at = &(*at)->next;
	*at = o->next;
	free(o);
}

static void http_admit_join(struct conn *c, struct http_party *party, bool authenticated)
{
	struct conn **list = authenticated ? &c->s->authenticated : &c->s->unauthenticated;

	c->party = party;
	c->authenticated = authenticated;
	party->connections++;
	*(authenticated ? &c->s->count.authenticated : &c->s->count.unauthenticated) += 1;
	c->next_alike = *list;
	c->prev_alike = list;
	if (*list)
		(*list)->prev_alike = &c->next_alike;
	*list = c;
}

void admit_leave(struct conn *c)
{
	struct http_counters *n = &c->s->count;

	if (c->next_alike)
		c->next_alike->prev_alike = c->prev_alike;
	*c->prev_alike = c->next_alike;
	*(c->authenticated ? &n->authenticated : &n->unauthenticated) -= 1;
	if (!--c->party->connections && !c->authenticated)
		source_free(c->s, c->party);
	c->party = NULL;
}

/* The peer's loss if we close the connection. */
enum loss {
	LOSS_NONE, /* nothing: it opens another connection */
	LOSS_WAIT, /* a wait, which it can repeat: the handler learns that the peer is gone, and grants it nothing */
	LOSS_ANSWER, /* a call, which it must repeat: it is sending the call, or waiting for or reading the answer */
};

static enum loss loss_of(const struct conn *c)
{
	if (!c->authenticated)
		return LOSS_NONE;
	if (c->phase == PHASE_ANSWER)
		return c->x && c->x->gone_fn ? LOSS_WAIT : LOSS_ANSWER;
	return c->phase == PHASE_BODY || conn_unsent(c) ? LOSS_ANSWER : LOSS_NONE;
}

static bool is_better_victim(const struct conn *c, const struct conn *best)
{
	if (c->party->connections != best->party->connections)
		return c->party->connections > best->party->connections;
	return loss_of(c) <= loss_of(best);
}

/* In the largest party, the connection whose peer loses least; of several, the oldest (the list begins with the newest).
 * `only`: search this party; NULL: all. Skips connections whose peer would lose more than `most`. */
static struct conn *http_admit_victim(struct conn *list, const struct http_party *only,
				      enum loss most)
{
	struct conn *best = NULL;

	for (struct conn *c = list; c; c = c->next_alike)
		if ((!only || c->party == only) && loss_of(c) <= most &&
		    (!best || is_better_victim(c, best)))
			best = c;
	return best;
}

/* The connection that the caller's new one replaces. NULL: no other party is so large that it has to give way, and all of
 * the caller's connections are busy. */
static struct conn *victim_for(const struct http_server *s, const struct http_party *caller)
{
	struct conn *c = http_admit_victim(s->authenticated, NULL, LOSS_ANSWER);

	if (c && c->party->connections > caller->connections + 1)
		return c;
	c = http_admit_victim(s->authenticated, NULL, LOSS_NONE);
	return c && (c->party == caller || c->party->connections > caller->connections)
		       ? c
		       : http_admit_victim(s->authenticated, caller, LOSS_NONE);
}

static void http_admit_evict(struct conn *c)
{
	c->s->count.evicted++;
	conn_close(c);
}

void admit_new(struct conn *c)
{
	struct http_server *s = c->s;
	const struct http_limits *l = &s->options.limits;

	http_admit_join(c, source_party(c), false);
	if (l->per_address_max && !c->local && c->party->connections > l->per_address_max)
		http_admit_evict(http_admit_victim(s->unauthenticated, c->party, LOSS_NONE));
	else if (s->count.unauthenticated > l->unauthenticated_max)
		http_admit_evict(http_admit_victim(s->unauthenticated, NULL, LOSS_NONE));
}

bool admit_caller(struct conn *c, struct http_party *caller)
{
	struct http_server *s = c->s;
	struct conn *old = NULL;

	if (caller ? c->party == caller : !c->authenticated)
		return true;
	if (caller && !c->authenticated &&
	    s->count.authenticated >= s->options.limits.connections_max) {
		old = victim_for(s, caller);
		if (!old)
			return false;
		http_admit_evict(old);
	}
	admit_leave(c);
	http_admit_join(c, caller ? caller : source_party(c), caller);
	return true;
}

bool admit_body(struct conn *c, uint64_t length)
{
	struct http_party *p = c->party;

	if (!c->authenticated)
		return true;
	if (p->bodies && p->bodies + length > c->s->options.limits.bodies_max)
		return false;
	p->bodies += length;
	c->x->body_party = p;
	c->x->body_length = length;
	return true;
}

void admit_body_end(struct http_exchange *x)
{
	if (x->body_party)
		x->body_party->bodies -= x->body_length;
	x->body_party = NULL;
}

bool admit_room(struct http_server *s)
{
	struct conn *c;
	size_t n = 0;

	while (n < ROOM && (c = http_admit_victim(s->unauthenticated, NULL, LOSS_NONE))) {
		http_admit_evict(c);
		n++;
	}
	return n;
}

bool admit_crowded(const struct http_server *s)
{
	return s->count.authenticated > s->options.limits.connections_max / 2;
}

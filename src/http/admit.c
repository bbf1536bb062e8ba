/*
 * Which connections the server keeps. A connection belongs to a party: to the caller whose token its last request had, or
 * else to its address. Authenticated connections and unauthenticated ones have limits of their own, so a peer without a
 * token cannot use up the places of callers.
 *
 * The server accepts every connection. If there is one too many, the largest party loses its oldest connection. A party
 * with few connections therefore keeps them, whatever others do.
 */
#include <netinet/in.h>
#include <stdlib.h>

#include "base/arena.h"
#include "http/part.h"

#define ROOM 8 /* connections to close when descriptors have run out */

/* The unauthenticated connections of one address. It exists as long as it has any. */
struct source {
	struct http_party
		party; /* first: a party of an unauthenticated connection is one of these */
	struct source *next;
	unsigned char address[16];
	size_t length;
};

/* One user of IPv6 has a whole network of 64 bits. */
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

static void join(struct conn *c, struct http_party *party, bool authenticated)
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

/* The connection to close: the oldest one of the largest party. A caller that waits for an answer keeps its connection.
 * The list begins with the newest one. `only`: of this party; NULL: of all. */
static struct conn *victim(struct conn *list, const struct http_party *only)
{
	struct conn *best = NULL;

	for (struct conn *c = list; c; c = c->next_alike)
		if ((!only || c->party == only) &&
		    !(c->authenticated && c->phase == PHASE_ANSWER) &&
		    (!best || c->party->connections >= best->party->connections))
			best = c;
	return best;
}

static void evict(struct conn *c)
{
	c->s->count.evicted++;
	conn_close(c);
}

void admit_new(struct conn *c)
{
	struct http_server *s = c->s;
	const struct http_limits *l = &s->options.limits;

	join(c, source_party(c), false);
	if (l->per_address_max && !c->local && c->party->connections > l->per_address_max)
		evict(victim(s->unauthenticated, c->party));
	else if (s->count.unauthenticated > l->unauthenticated_max)
		evict(victim(s->unauthenticated, NULL));
}

bool admit_caller(struct conn *c, struct http_party *caller)
{
	struct http_server *s = c->s;
	struct conn *old = NULL;

	if (caller ? c->party == caller : !c->authenticated)
		return true;
	if (caller && !c->authenticated &&
	    s->count.authenticated >= s->options.limits.connections_max) {
		old = victim(s->authenticated, NULL);
		if (!old)
			return false;
		evict(old);
	}
	admit_leave(c);
	join(c, caller ? caller : source_party(c), caller);
	return true;
}

bool admit_room(struct http_server *s)
{
	struct conn *c;
	size_t n = 0;

	while (n < ROOM && (c = victim(s->unauthenticated, NULL))) {
		evict(c);
		n++;
	}
	return n;
}

bool admit_crowded(const struct http_server *s)
{
	return s->count.authenticated > s->options.limits.connections_max / 2;
}

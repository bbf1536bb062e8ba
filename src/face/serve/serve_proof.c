/*
 * Proves to a client that this server knows the client's token, before the client sends it
 * (http/http_proof.h).
 */

#include "face/serve/serve.h"
#include "http/http_proof.h"

#define NONCE_MIN 32
#define NONCE_MAX 128

static bool is_word(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if (!((s.p[i] >= 'a' && s.p[i] <= 'z') || (s.p[i] >= 'A' && s.p[i] <= 'Z') ||
		      (s.p[i] >= '0' && s.p[i] <= '9') || s.p[i] == '-' || s.p[i] == '_'))
			return false;
	return true;
}

/* A page cannot see its connection's address, so the answer names it. */
static void serve_proof_answer(struct http_exchange *x, struct str proof, const char *address)
{
	struct http_header extra[] = { { STR("Cache-Control"), STR("no-store") },
				       { STR("Pawl-Address"), str_c(address) } };

	http_reply(x, 200, "text/plain", (struct http_headers){ extra, 2 }, proof);
}

void proof_serve(struct serve *s, struct http_exchange *x)
{
	const struct http_request *r = http_request_of(x);
	char address[PROOF_ADDRESS_LEN];
	struct arena a = { 0 };
	struct str id, nonce, hash;

	if (!str_is(r->method, "GET"))
		route_refuse_method(x, "GET");
	else if (!route_query(r->query, "token", &id, &a) ||
		 !route_query(r->query, "nonce", &nonce, &a) || id.n != PROOF_ID_LEN ||
		 nonce.n < NONCE_MIN || nonce.n > NONCE_MAX || !is_word(nonce) ||
		 !http_own_address(x, address))
		route_refuse(x, 400, "a request for a proof needs token= and nonce=", "");
	else if (s->login.none) /* the server needs no token */
		http_reply(x, 204, NULL, (struct http_headers){ 0 }, STR(""));
	else if (!serve_login_hash(s, id, &hash))
		route_refuse(x, 401, "the server does not recognise this token", "");
	else
		serve_proof_answer(x, proof_make(hash, nonce, address, &a), address);
	arena_free(&a);
}

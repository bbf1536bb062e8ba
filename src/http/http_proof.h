/*
 * proof: how a server without TLS proves that it knows a token before a client sends the token. Any local user can listen
 * on a port while its server is down.
 *
 *   client                                            server
 *   GET /v1/proof?token=ID&nonce=NONCE   ────────▶    finds the token by ID, the start of its hash
 *                                        ◀────────    the HMAC of NONCE and its own address, by the whole hash
 *
 * The address is this connection's own, so an impostor cannot forward the question to the real server at another address.
 */
#ifndef HTTP_HTTP_PROOF_H
#define HTTP_HTTP_PROOF_H

#include <sys/socket.h>

#include "base/arena.h"

#define PROOF_PATH "/v1/proof"
#define PROOF_ID_LEN 16 /* of the hash's 64 characters; the others stay secret */
#define PROOF_ADDRESS_LEN 64

/* Writes ADDRESS:PORT. false: it is not an IP address. */
bool proof_address(const struct sockaddr_storage *at, char text[PROOF_ADDRESS_LEN]);
/* hash: the SHA-256 of the token, in hex. */
struct str proof_make(struct str hash, struct str nonce, const char *address, struct arena *a);

#endif

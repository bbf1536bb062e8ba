/* Makes the proof. Server and client must compute the same bytes, so a mapped IPv4 address is written as IPv4. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>

#include "base/secret.h"
#include "http/http_proof.h"

/* An IPv6 socket may serve IPv4, too; both sides must write the same address. */
bool proof_address(const struct sockaddr_storage *at, char text[PROOF_ADDRESS_LEN])
{
	const struct sockaddr_in *v4 = (const void *)at;
	const struct sockaddr_in6 *v6 = (const void *)at;
	bool is_v4 = at->ss_family == AF_INET;
	const void *bytes = is_v4 ? (const void *)&v4->sin_addr : (const void *)&v6->sin6_addr;
	char host[INET6_ADDRSTRLEN];

	if (!is_v4 && at->ss_family != AF_INET6)
		return false;
	if (!is_v4 && IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr)) {
		bytes = v6->sin6_addr.s6_addr + 12;
		is_v4 = true;
	}
	if (!inet_ntop(is_v4 ? AF_INET : AF_INET6, bytes, host, sizeof(host)))
		return false;
	snprintf(text, PROOF_ADDRESS_LEN, "%s:%d", host,
		 ntohs(at->ss_family == AF_INET ? v4->sin_port : v6->sin6_port));
	return true;
}

struct str proof_make(struct str hash, struct str nonce, const char *address, struct arena *a)
{
	return secret_sign(a, hash,
			   arena_printf(a, "pawl proof\n%.*s\n%s\n", STRF(nonce), address));
}

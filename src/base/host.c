#include "base/host.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

bool host_is_loopback(struct str place)
{
	const char *colon = memrchr(str_p(place), ':', place.n);
	char text[INET_ADDRSTRLEN];
	unsigned char bytes[4];

	if (colon && place.p[place.n - 1] != ']')
		place.n = (size_t)(colon - place.p);
	if (str_is(place, "localhost") || str_is(place, "[::1]"))
		return true;
	if (!str_starts(place, STR("127.")) || place.n >= sizeof(text))
		return false;
	snprintf(text, sizeof(text), "%.*s", STRF(place));
	return inet_pton(AF_INET, text, bytes) == 1;
}

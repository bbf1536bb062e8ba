#include "base/hex.h"

int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool hex_bytes(struct str hex, struct str *out, struct arena *a)
{
	char *p = arena_alloc(a, hex.n / 2 + 1);

	if (hex.n % 2)
		return false;
	for (size_t i = 0; i < hex.n; i += 2) {
		int high = hex_digit(hex.p[i]), low = hex_digit(hex.p[i + 1]);

		if (high < 0 || low < 0)
			return false;
		p[i / 2] = (char)(high << 4 | low);
	}
	*out = str_n(p, hex.n / 2);
	return true;
}

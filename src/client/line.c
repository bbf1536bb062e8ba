#include "client/line.h"

#include "base/hex.h"

void line_add(struct buf *b, const char *name, struct str value)
{
	buf_addf(b, "%s=", name);
	for (size_t i = 0; i < value.n; i++) {
		unsigned char c = (unsigned char)value.p[i];

		if (c < 0x20 || c == '%' || c == 0x7f)
			buf_addf(b, "%%%02x", c);
		else
			buf_addc(b, (char)c);
	}
	buf_addc(b, '\n');
}

struct str line_value(struct str coded, struct arena *a)
{
	char *p = arena_alloc(a, coded.n + 1);
	size_t n = 0;

	for (size_t i = 0; i < coded.n; i++) {
		bool is_coded = coded.p[i] == '%' && i + 2 < coded.n &&
				hex_digit(coded.p[i + 1]) >= 0 && hex_digit(coded.p[i + 2]) >= 0;

		p[n++] = is_coded ? (char)(hex_digit(coded.p[i + 1]) * 16 +
					   hex_digit(coded.p[i + 2]))
				  : coded.p[i];
		i += is_coded ? 2 : 0;
	}
	return str_n(p, n);
}

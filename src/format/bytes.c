#include "format/bytes.h"

#include <stdlib.h>

#include "base/hex.h"
#include "base/text.h"

json_t *bytes_json(struct str s)
{
	static const char digits[] = "0123456789abcdef";
	json_t *o;
	char *hex;

	if (text_valid(s))
		return json_stringn(str_p(s), s.n);
	hex = mem_alloc(2 * s.n + 1);
	for (size_t i = 0; i < s.n; i++) {
		hex[2 * i] = digits[(unsigned char)s.p[i] >> 4];
		hex[2 * i + 1] = digits[(unsigned char)s.p[i] & 15];
	}
	o = json_pack("{s:o}", "hex", json_stringn(hex, 2 * s.n));
	free(hex);
	return o;
}

bool bytes_parse(const json_t *v, struct str *out, struct arena *a)
{
	if (!json_is_string(v)) {
		v = json_object_get(v, "hex");
		return json_is_string(v) &&
		       hex_bytes(str_n(json_string_value(v), json_string_length(v)), out, a);
	}
	*out = arena_str(a, str_n(json_string_value(v), json_string_length(v)));
	return true;
}

#include "core/result.h"

#include <stddef.h>

struct row {
	enum result code;
	int http;
	const char *name, *text;
};

static const struct row rows[] = {
#define RESULT(name, exit, http, text) { name, http, #name, text },
#include "core/result.def"
#undef RESULT
};

/* The loop ends because every enum value has a row. */
static const struct row *result_find(enum result r)
{
	const struct row *row = rows;

	while (row->code != r)
		row++;
	return row;
}

bool result_known(int64_t code)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		if ((int64_t)rows[i].code == code)
			return true;
	return false;
}

const char *result_name(enum result r)
{
	return result_find(r)->name;
}

const char *result_text(enum result r)
{
	return result_find(r)->text;
}

int result_http(enum result r)
{
	return result_find(r)->http;
}

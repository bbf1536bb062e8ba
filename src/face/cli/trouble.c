/* Finds an entry of doc/troubleshooting.md. The build embeds the text. */
#include "face/cli/cli.h"

/* The level of a heading: 2 for "## CONFLICT", 0 for other lines; *name: the text of the heading. */
static size_t trouble_heading(struct str line, struct str *name)
{
	size_t n = 0;

	while (n < line.n && line.p[n] == '#')
		n++;
	*name = str_trim(str_n(line.p + n, line.n - n));
	return n;
}

bool trouble_topic(struct buf *out, struct str topic)
{
	struct str rest = str_c(trouble_text), name;
	size_t level = 0;

	while (rest.n) {
		struct str line = str_cut(&rest, '\n');
		size_t n = trouble_heading(line, &name);

		if (level && n && n <= level)
			break;
		if (!level && n > 1 && str_eq_nocase(name, topic))
			level = n;
		if (level) {
			buf_adds(out, n ? name : line);
			buf_addc(out, '\n');
		}
	}
	return level;
}

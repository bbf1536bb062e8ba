#include "base/text.h"

#include "face/gen/gen.h"

void gen_param_name(struct buf *out, const struct param *p)
{
	const char *value = param_value(p);

	if (p->flags & P_POSITIONAL) {
		buf_addf(out, "%s%s%s", p->flags & P_REST ? "-- " : "", p->name,
			 param_repeats(p) ? "..." : "");
		return;
	}
	if (p->letter)
		buf_addf(out, "-%c, ", p->letter);
	buf_addf(out, "--%s", p->name);
	if (value)
		buf_addf(out, " %s", value);
}

static void add_usage_item(struct buf *out, const struct param *p)
{
	const char *value = param_value(p), *dots = param_repeats(p) ? "..." : "";
	bool needed = p->flags & P_REQUIRED && !(p->flags & P_ELSEWHERE);

	buf_adds(out, needed ? STR("") : STR("["));
	if (p->flags & P_POSITIONAL)
		buf_addf(out, "%s%s%s", p->flags & P_REST ? "-- " : "", p->name, dots);
	else
		buf_addf(out, "--%s%s%s%s", p->name, value ? " " : "", value ? value : "", dots);
	buf_adds(out, needed ? STR("") : STR("]"));
}

/* Arguments first, then required options, the other options, and the words after "--". */
static int usage_place(const struct param *p)
{
	if (p->flags & P_REST)
		return 3;
	return p->flags & P_POSITIONAL ? 0 : p->flags & P_REQUIRED ? 1 : 2;
}

void gen_usage(struct buf *out, const struct command *c, size_t width, size_t indent)
{
	struct buf item = BUF_MAX(256);
	size_t at = indent + strlen("pawl ") + strlen(c->name), deeper = indent + 4;

	buf_addf(out, "pawl %s", c->name);
	for (int pass = 0; pass < 4; pass++) {
		for (const struct param *p = c->params; p && p->name; p++) {
			if (usage_place(p) != pass)
				continue;
			item.n = 0;
			add_usage_item(&item, p);
			if (at + 1 + item.n > width) {
				buf_addf(out, "\n%*s", (int)deeper, "");
				at = deeper;
			} else {
				buf_addc(out, ' ');
				at++;
			}
			buf_adds(out, buf_str(&item));
			at += item.n;
		}
	}
	buf_addc(out, '\n');
	buf_free(&item);
}

void gen_wrap(struct buf *out, const char *text, size_t indent, size_t width, size_t at)
{
	struct str rest = str_c(text);
	bool first = true;

	while (rest.n) {
		struct str word = str_cut(&rest, ' ');
		size_t n = text_width(word);

		if (!first && at + 1 + n > width) {
			buf_addf(out, "\n%*s", (int)indent, "");
			at = indent;
			first = true;
		}
		if (!first) {
			buf_addc(out, ' ');
			at++;
		}
		buf_adds(out, word);
		at += n;
		first = false;
	}
	buf_addc(out, '\n');
}

static int by_value(enum result a, enum result b)
{
	return (int)a - (int)b;
}

size_t gen_codes(const struct command *c, enum result *out)
{
	static const enum result common[] = { SUCCESS, USAGE, API_ERROR, MISCONFIGURED };
	size_t n = 0;

	for (size_t i = 0; i < sizeof(common) / sizeof(*common); i++)
		out[n++] = common[i];
	for (const enum result *r = c->fails; r && *r && n < 16; r++)
		out[n++] = *r;
	for (size_t i = 1; i < n; i++)
		for (size_t k = i; k && by_value(out[k - 1], out[k]) > 0; k--) {
			enum result swap = out[k];

			out[k] = out[k - 1];
			out[k - 1] = swap;
		}
	return n;
}

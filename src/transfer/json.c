/* Reads JSON: an array of objects, or objects one after the other. Only one object is in memory at a time. */
#include <stdlib.h>

#include "base/text.h"
#include "base/when.h"
#include "format/json.h"
#include "transfer/foreign.h"

#define OBJECT_MAX (64u << 20)

static bool is_space(int c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static int json_source_get(struct port_in *in)
{
	int c = getc_unlocked(in->file);

	in->line += c == '\n';
	return c;
}

/* The next character that is not white space. */
static int get_next(struct port_in *in)
{
	int c = json_source_get(in);

	while (is_space(c))
		c = json_source_get(in);
	return c;
}

/* Copies an object up to its closing '}', after its '{' was read; false: it does not end, or is too large. */
static bool get_object(struct port_in *in, struct buf *out)
{
	char piece[512] = "{"; /* a call of buf_add() for each byte costs too much */
	bool text = false, escaped = false;
	size_t depth = 1, n = 1;

	while (depth && !out->full) {
		int c = json_source_get(in);

		if (c == EOF)
			return false;
		piece[n++] = (char)c;
		if (escaped) {
			escaped = false;
		} else if (c == '"') {
			text = !text;
		} else if (text) {
			escaped = c == '\\';
		} else {
			depth += c == '{' || c == '[';
			depth -= c == '}' || c == ']';
		}
		if (n == sizeof(piece) || !depth) {
			buf_add(out, piece, n);
			n = 0;
		}
	}
	return !out->full;
}

static enum result take_task(struct port_in *in, const json_t *o, size_t line)
{
	struct plain p;

	bool bad = false;

	if (!json_is_object(o))
		return port_refuse(in, line, STR("not an object"));
	plain_start(&p, when_parse, false, &in->piece);
	for (void *at = json_object_iter((json_t *)o); at && (in->check || !bad);
	     at = json_object_iter_next((json_t *)o, at)) {
		const char *fault = plain_set(&p, str_c(json_object_iter_key(at)),
					      json_object_iter_value(at));

		if (fault) {
			(void)port_refuse(in, line, str_c(fault));
			bad = true;
		}
	}
	if (!bad)
		return port_found(in, &p, line);
	plain_abort(&p);
	return port_stub(in, json_get(o, "id"), line);
}

static enum result take_object(struct port_in *in, struct str text, size_t line)
{
	json_error_t err;
	json_t *o = json_loadb(text.p, text.n, JSON_REJECT_DUPLICATES, &err);
	const json_t *tasks = json_object_get(o, "tasks");
	enum result code = SUCCESS;

	if (!o)
		return port_refuse(in, line + (size_t)(err.line > 0 ? err.line - 1 : 0),
				   str_c(err.text));
	if (in->foreign)
		code = foreign_object(in, o, text, line);
	else if (!json_is_array(tasks))
		code = take_task(in, o, line);
	else /* the output of `pawl list --json` */
		for (size_t i = 0; code == SUCCESS && i < json_array_size(tasks); i++)
			code = take_task(in, json_array_get(tasks, i), line);
	json_decref(o);
	return code;
}

enum result port_read_json(struct port_in *in)
{
	struct buf b = BUF_MAX(OBJECT_MAX);
	enum result code = SUCCESS;
	int c = get_next(in);
	bool array, more = false;

	if (c == 0xef && json_source_get(in) == 0xbb && json_source_get(in) == 0xbf)
		c = get_next(in);
	array = c == '[';
	if (array)
		c = get_next(in);
	while (code == SUCCESS && c == '{') {
		size_t line = in->line;

		b.n = 0;
		code = get_object(in, &b)
			       ? take_object(in, buf_str(&b), line)
			       : port_refuse_rest(in, line, STR("this object does not end"));
		c = get_next(in);
		more = array && c == ',';
		if (more)
			c = get_next(in);
		else if (array && c != ']' && code == SUCCESS)
			code = port_refuse_rest(in, in->line, STR("',' or ']' expected"));
	}
	if (code == SUCCESS && array && c == ']' && !more)
		c = get_next(in);
	else if (code == SUCCESS && array)
		code = port_refuse_rest(in, in->line, STR("an object expected"));
	if (code == SUCCESS && c != EOF)
		code = port_refuse_rest(in, in->line, STR("an object expected"));
	buf_free(&b);
	return code;
}

/*
 * Finds the id of a message that is too long to be kept. The message is read byte by byte: its id may follow
 * many MiB of params.
 */
#include "face/mcp/mcp.h"

/* Keeps a byte of the top-level object: of a key, or of the value of the key "id". */
static void keep(struct id_scan *s, char c)
{
	char *to = s->in_value ? s->id : s->key;
	size_t *n = s->in_value ? &s->id_n : &s->key_n,
	       most = s->in_value ? sizeof(s->id) : sizeof(s->key);

	if (s->depth != 1 || (s->in_value && !s->is_id) || s->found)
		return;
	if (*n < most)
		to[*n] = c;
	(*n)++; /* a value that is longer than its room is not used */
}

static void in_string(struct id_scan *s, char c)
{
	keep(s, c);
	if (s->escaped)
		s->escaped = false;
	else if (c == '\\')
		s->escaped = true;
	else if (c == '"')
		s->quoted = false;
}

static void end_member(struct id_scan *s)
{
	s->found |= s->is_id;
	s->is_id = s->in_value = false;
	s->key_n = 0;
}

static void outside(struct id_scan *s, char c)
{
	switch (c) {
	case '{':
	case '[':
		s->is_list |= !s->depth && c == '['; /* a list has no id of its own */
		s->depth++;
		break;
	case '}':
	case ']':
		if (s->depth == 1)
			end_member(s);
		s->depth -= s->depth > 0;
		break;
	case ',':
		if (s->depth == 1)
			end_member(s);
		break;
	case ':':
		if (s->depth != 1)
			break;
		s->in_value = true;
		s->is_id = str_eq(str_n(s->key, s->key_n < sizeof(s->key) ? s->key_n : 0),
				  STR("\"id\""));
		break;
	case '"':
		keep(s, c);
		s->quoted = true;
		break;
	default:
		if (c != ' ' && c != '\t' && c != '\r')
			keep(s, c);
	}
}

void id_scan(struct id_scan *s, struct str bytes)
{
	for (size_t i = 0; i < bytes.n; i++) {
		if (s->quoted)
			in_string(s, bytes.p[i]);
		else
			outside(s, bytes.p[i]);
	}
}

json_t *id_scan_end(struct id_scan *s)
{
	json_t *id = s->found && !s->is_list && s->id_n <= sizeof(s->id)
			     ? json_loadb(s->id, s->id_n, JSON_DECODE_ANY, NULL)
			     : NULL;

	*s = (struct id_scan){ 0 };
	return id;
}

/* The body: where it begins and ends, and the bytes of its chunks. */
#include "http/http_parse.h"

#include "base/hex.h"

enum body_state {
	LENGTH,     /* `left` bytes follow */
	CHUNK_LINE, /* the size of a chunk */
	CHUNK_DATA, /* `left` bytes of it */
	CHUNK_END,  /* CR LF behind it */
	TRAILER,    /* headers behind the last chunk, or the empty line */
};

void parse_body_begin(struct parse *m, bool chunked, uint64_t length)
{
	m->has_body = !m->bodyless && (chunked || length);
	m->state = m->has_body ? PARSE_BODY : PARSE_DONE;
	m->framing = chunked ? CHUNK_LINE : LENGTH;
	m->left = length;
}

static bool add_size(struct parse *m, uint64_t n)
{
	if (m->taken <= m->body_max && n <= m->body_max - m->taken) {
		m->taken += n;
		return true;
	}
	parse_refuse(m, 413, "the body is too long");
	return false;
}

bool parse_body_fits(struct parse *m)
{
	if (m->framing == LENGTH && m->left > m->body_max)
		parse_refuse(m, 413, "the body is too long");
	return m->state != PARSE_BAD;
}

/* Up to `left` bytes of the body. */
static size_t take_data(struct parse *m, const char *p, size_t n)
{
	if (n > m->left)
		n = (size_t)m->left;
	m->left -= n;
	if (m->sink)
		m->sink(str_n(p, n), m->sink_ctx);
	else
		buf_add(&m->body, p, n);
	if (m->left)
		return n;
	if (m->framing == LENGTH)
		m->state = PARSE_DONE;
	else
		m->framing = CHUNK_END;
	return n;
}

/* SIZE [; extension]. An extension is ignored, but must not hide anything. */
static bool chunk_size(struct parse *m, struct str line, uint64_t *size)
{
	size_t i = 0;

	*size = 0;
	for (; i < line.n && i < 15 && hex_digit(line.p[i] | 0x20) >= 0 && line.p[i] >= '0'; i++)
		*size = *size << 4 | (uint64_t)hex_digit(line.p[i] | 0x20);
	if (!i || (i < line.n && line.p[i] != ';') || !http_value_valid(line)) {
		parse_refuse(m, 400, "a chunk has no valid size");
		return false;
	}
	return true;
}

static void end_chunk_line(struct parse *m, struct str line)
{
	uint64_t size;

	if (!chunk_size(m, line, &size) || !add_size(m, size))
		return;
	m->left = size;
	m->framing = size ? CHUNK_DATA : TRAILER;
}

/* Trailers have no meaning here, but must not seem to say where the body ends. */
static void end_trailer(struct parse *m, struct str line)
{
	m->trailer += m->chunk_used;
	if (m->trailer > m->limits.head_max)
		parse_refuse(m, 431, "the trailers are too long");
	else if (!line.n)
		m->state = PARSE_DONE;
	else if (parse_line_valid(m, line) && http_frames(str_cut(&line, ':')))
		parse_refuse(m, 400, "the length of the body is not clear");
}

static void end_body_line(struct parse *m)
{
	struct str line = str_n(m->chunk_line, m->chunk_used);

	if (line.n < 2 || line.p[line.n - 2] != '\r') {
		parse_refuse(m, 400, "a line ends with LF alone");
		return;
	}
	line.n -= 2;
	if (m->framing == CHUNK_LINE) {
		end_chunk_line(m, line);
	} else {
		end_trailer(m, line);
	}
	m->chunk_used = 0;
}

/* CR LF behind a chunk; `left` counts. */
static size_t take_chunk_end(struct parse *m, char c)
{
	if (c != "\r\n"[m->left])
		parse_refuse(m, 400, "a chunk is longer than its size");
	else if (++m->left == 2)
		m->framing = CHUNK_LINE;
	return 1;
}

static size_t take_body_line(struct parse *m, const char *p, size_t n)
{
	const char *end = memchr(p, '\n', n);
	size_t taken = end ? (size_t)(end - p) + 1 : n;

	if (taken > sizeof(m->chunk_line) - m->chunk_used) {
		if (m->framing == TRAILER)
			parse_refuse(m, 431, "a trailer is too long");
		else
			parse_refuse(m, 400, "a chunk has no valid size");
		return taken;
	}
	memcpy(m->chunk_line + m->chunk_used, p, taken);
	m->chunk_used += taken;
	if (end)
		end_body_line(m);
	return taken;
}

size_t parse_body(struct parse *m, const char *p, size_t n)
{
	size_t at = 0;

	if (m->framing == LENGTH && !parse_body_fits(m))
		return 0;
	while (at < n && m->state == PARSE_BODY) {
		if (m->framing == LENGTH || m->framing == CHUNK_DATA)
			at += take_data(m, p + at, n - at);
		else if (m->framing == CHUNK_END)
			at += take_chunk_end(m, p[at]);
		else
			at += take_body_line(m, p + at, n - at);
	}
	return at;
}

/*
 * Log lines and the JSON of refusals. They never contain a token or a request's body, and a reader
 * that does not read the log never blocks the server.
 */
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/os.h"
#include "base/text.h"
#include "base/when.h"
#include "face/serve/serve.h"
#include "format/json.h"

#define LINE_MAX_BYTES 4096

void say_error(struct buf *out, const char *code, const char *message, const char *hint,
	       const char *fault)
{
	json_t *error = json_pack("{s:s, s:s}", "code", code, "message", message), *o;

	if (hint && *hint)
		json_object_set_new(error, "hint", json_string(hint));
	if (fault && *fault)
		json_object_set_new(error, "fault", json_string(fault));
	o = json_pack("{s:b, s:o}", "ok", 0, "error", error);
	json_write(o, out);
	buf_addc(out, '\n');
	json_decref(o);
}

/* The code that a caller of the library would get for this status. */
static const char *code_of(int status)
{
	switch (status) {
	case 401:
	case 403:
		return "MISCONFIGURED";
	case 404:
		return "NOT_FOUND";
	case 408:
	case 429:
	case 500:
	case 503:
		return "API_ERROR";
	default:
		return "USAGE";
	}
}

static const char *fault_of(int status)
{
	return status == 401 ? "unauthorized" : status == 403 ? "forbidden" : "";
}

void say_error_body(int status, const char *reason, struct buf *out, void *ctx)
{
	(void)ctx;
	say_error(out, code_of(status), reason, "", fault_of(status));
}

/* --- log ----------------------------------------------------------------------------------------- */

static void add_quoted(struct buf *b, struct str text)
{
	struct arena a = { 0 };
	struct str line = text_cut(&a, text_line(&a, text), 200);

	buf_addc(b, '"');
	for (size_t i = 0; i < line.n; i++) {
		if (line.p[i] == '"' || line.p[i] == '\\')
			buf_addc(b, '\\');
		buf_addc(b, line.p[i]);
	}
	buf_addc(b, '"');
	arena_free(&a);
}

static void add_member(struct buf *b, int form, const char *name, struct str value, bool number)
{
	buf_addf(b, form ? "%s\"%s\":" : "%s%s=", b->n > 1 ? form ? "," : " " : "", name);
	if (number)
		buf_adds(b, value);
	else
		add_quoted(b, value);
}

static void add_number(struct buf *b, int form, const char *name, int64_t n)
{
	char text[32];

	snprintf(text, sizeof(text), "%lld", (long long)n);
	add_member(b, form, name, str_c(text), true);
}

/* Can a line be written without blocking? A pipe or a terminal may have a reader that does not
 * read, and every other caller of the server would wait with us. So a line that nobody reads is
 * dropped. A line is shorter than PIPE_BUF, so it is written whole. */
static bool has_reader(void)
{
	struct pollfd p = { .fd = STDERR_FILENO, .events = POLLOUT };

	return poll(&p, 1, 0) == 1 && p.revents & POLLOUT;
}

static bool write_text(struct str text)
{
	return has_reader() && tty_write(STDERR_FILENO, text) == 0;
}

/* Logs the number of dropped lines as soon as somebody reads again. */
static bool tell_dropped(struct serve *s)
{
	uint64_t n = s->log_unsaid;

	if (!n)
		return true;
	if (!has_reader())
		return false;
	s->log_unsaid = 0;
	say_note(s, "warn", "dropped %llu log lines, because nobody read the log",
		 (unsigned long long)n);
	if (!s->log_unsaid)
		return true;
	s->log_unsaid = n;
	s->counts.log_dropped--;
	return false;
}

/* Writes the line, and frees it. */
static void write_line(struct serve *s, struct buf *b)
{
	buf_addc(b, '\n');
	if (!tell_dropped(s) || !write_text(buf_str(b))) {
		s->log_unsaid++;
		s->counts.log_dropped++;
	}
	buf_free(b);
}

/* Logs the path without the query: a caller might put its token there by mistake. */
void say_log(const struct http_request *r, const char *address, int status, size_t bytes,
	     int64_t took_ms, void *serve)
{
	struct serve *s = serve;
	struct buf b = BUF_MAX(LINE_MAX_BYTES);
	struct arena a = { 0 };

	counts_http(s, r ? route_of(r->path) : ROUTE_OTHER, status);
	if (s->log == 2)
		return;
	if (s->log == 1)
		buf_addc(&b, '{');
	add_member(&b, s->log, "time", when_text(&a, os_wall_ms()), false);
	add_member(&b, s->log, "from", r ? route_address(s, r) : str_c(address), false);
	if (r) {
		add_member(&b, s->log, "method", r->method, false);
		add_member(&b, s->log, "path", r->path, false);
	}
	add_number(&b, s->log, "status", status);
	add_number(&b, s->log, "bytes", (int64_t)bytes);
	add_number(&b, s->log, "ms", took_ms);
	if (s->log == 1)
		buf_addc(&b, '}');
	write_line(s, &b);
	arena_free(&a);
}

void say_line(const char *fmt, ...)
{
	struct buf b = BUF_MAX(LINE_MAX_BYTES);
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	buf_addf(&b, "pawl: %s\n", text);
	(void)write_text(buf_str(&b));
	buf_free(&b);
}

void say_note(struct serve *s, const char *level, const char *fmt, ...)
{
	struct buf b = BUF_MAX(LINE_MAX_BYTES);
	struct arena a = { 0 };
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (s->log == 1)
		buf_addc(&b, '{');
	add_member(&b, s->log == 1, "time", when_text(&a, os_wall_ms()), false);
	add_member(&b, s->log == 1, "level", str_c(level), false);
	add_member(&b, s->log == 1, "message", str_c(text), false);
	if (s->log == 1)
		buf_addc(&b, '}');
	write_line(s, &b);
	arena_free(&a);
}

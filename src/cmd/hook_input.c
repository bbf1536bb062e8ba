#include "cmd/hook_input.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/os.h"
#include "base/text.h"
#include "cmd/reply.h"

#define WAIT_MS 500
#define INPUT_MAX (8u * 1024 * 1024) /* it can have the whole output of a tool */
#define CHUNK 65536
#define AGENT_BYTES 60

static json_t *hook_input_parse(struct str text)
{
	json_t *o = json_loadb(text.p, text.n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);

	if (json_is_object(o))
		return o;
	json_decref(o);
	return NULL;
}

/* Waits for more input, until `end`. */
static bool is_readable(int64_t end)
{
	struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };
	int64_t left = end - os_boot_ms();
	int r;

	do
		r = poll(&in, 1, left > 0 ? (int)left : 0);
	while (r < 0 && errno == EINTR);
	return r > 0 && !(in.revents & POLLNVAL);
}

/* Reads the next part. false: there is no more, or too much. */
static bool read_part(struct buf *b)
{
	static char chunk[CHUNK];
	ssize_t n = read(STDIN_FILENO, chunk, sizeof(chunk));

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return true;
	if (n <= 0)
		return false;
	buf_add(b, chunk, (size_t)n);
	return !b->full;
}

/* The writer may leave its end open, so a complete object ends the input, too. */
static json_t *read_object(struct buf *b)
{
	int64_t end = os_boot_ms() + WAIT_MS;
	json_t *o;

	for (;;) {
		struct str text = str_trim(buf_str(b));

		if (!is_readable(0) && str_ends(text, STR("}")) && (o = hook_input_parse(text)))
			return o;
		if (!is_readable(end) || !read_part(b))
			return b->full ? NULL : hook_input_parse(buf_str(b));
	}
}

struct hook_input hook_input_read(struct arena *a)
{
	struct hook_input in = { 0 };
	struct buf b = BUF_MAX(INPUT_MAX);
	json_t *o = isatty(STDIN_FILENO) ? NULL : read_object(&b);

	if (o) {
		in.session = arena_str(a, json_get(o, "session_id"));
		in.agent = text_cut(a, text_line(a, arena_str(a, json_get(o, "agent_id"))),
				    AGENT_BYTES);
	}
	json_decref(o);
	buf_free(&b);
	return in;
}

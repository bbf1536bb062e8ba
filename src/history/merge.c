#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fs.h"
#include "history/fields.h"

#define PART_MAX ((size_t)16 << 30)
#define OUT_CHUNK (1u << 20)

/* Lines begin with {"t":TIME, and then "call":NUMBER or "answer":NUMBER or something else. */
struct line {
	struct str text; /* without the newline */
	struct str rest; /* behind the number */
	int64_t t;
	uint64_t number; /* 0: neither a call nor an answer */
	uint32_t part;
	bool call;
};

struct merge {
	struct arena *arena;
	struct str *why;
	struct line *lines;
	size_t n, room;
	size_t *first; /* of each part: where its numbers begin in `renumbered` */
	uint64_t *renumbered;
};

static int wrong(struct merge *m, const char *path, size_t line, const char *what)
{
	*m->why = arena_printf(m->arena, "%s, line %zu: %s", path, line, what);
	return -EBADMSG;
}

static bool cut_number(struct str *s, int64_t *out)
{
	size_t n = 0;
	bool good;

	while (n < s->n && s->p[n] >= '0' && s->p[n] <= '9')
		n++;
	good = str_to_i64(str_n(s->p, n), out);
	*s = str_n(s->p + n, s->n - n);
	return good;
}

static bool line_parse(struct str text, struct line *out)
{
	struct str s = text;
	int64_t number = 0;
	bool good = str_cut_prefix(&s, STR("{\"t\":")) && cut_number(&s, &out->t) &&
		    str_cut_prefix(&s, STR(",\""));

	out->text = text;
	if (!good || !str_ends(s, STR("}")))
		return false;
	out->call = str_cut_prefix(&s, STR("call\":"));
	if (out->call || str_cut_prefix(&s, STR("answer\":"))) {
		if (!cut_number(&s, &number) || !(number & UINT32_MAX))
			return false;
	}
	out->number = (uint64_t)number & UINT32_MAX;
	out->rest = s;
	return true;
}

static struct line *new_line(struct merge *m)
{
	if (m->n == m->room) {
		m->room = m->room ? 2 * m->room : 1024;
		m->lines = mem_grow(m->lines, m->room * sizeof(*m->lines));
	}
	return &m->lines[m->n++];
}

/* A part's calls are numbered 1, 2, 3 in the lower half. */
static int add_part(struct merge *m, uint32_t part, const char *path, uint64_t *calls)
{
	struct str bytes;
	size_t number = 0;
	int r = fs_read(m->arena, path, PART_MAX, &bytes);

	*calls = 0;
	if (r) {
		*m->why = arena_printf(m->arena, "%s: %s", path, strerror(-r));
		return r;
	}
	while (bytes.n) {
		bool torn = !memchr(bytes.p, '\n', bytes.n);
		struct line *l;

		if (torn)
			break;
		l = new_line(m);
		*l = (struct line){ .part = part };
		number++;
		if (!line_parse(str_cut(&bytes, '\n'), l))
			return wrong(m, path, number, "this is no line of a part of a history");
		if (l->call ? l->number != *calls + 1 : l->number > *calls)
			return wrong(m, path, number, "the number of this call is out of order");
		*calls += l->call;
	}
	return 0;
}

static int by_time(const void *a, const void *b)
{
	const struct line *x = a, *y = b;

	if (x->t != y->t)
		return x->t < y->t ? -1 : 1;
	if (x->part != y->part)
		return x->part < y->part ? -1 : 1;
	return (x->text.p > y->text.p) - (x->text.p < y->text.p);
}

static int flush(int fd, struct buf *b)
{
	int r = fs_write_all(fd, buf_str(b));

	b->n = 0;
	return r;
}

static void add_line(struct merge *m, const struct line *l, uint64_t *last, struct buf *b)
{
	uint64_t *number = l->number ? &m->renumbered[m->first[l->part] + l->number - 1] : NULL;

	if (number) {
		if (l->call)
			*number = ++*last;
		buf_addf(b, "{\"t\":%lld,\"%s\":%llu", (long long)l->t, l->call ? "call" : "answer",
			 (unsigned long long)*number);
		buf_adds(b, l->rest);
	} else {
		buf_adds(b, l->text);
	}
	buf_addc(b, '\n');
}

static int write_out(struct merge *m, int fd, const struct history_head *head)
{
	json_t *o = head_json(head);
	char *first = json_dumps(o, JSON_COMPACT);
	struct buf b = BUF_MAX(SIZE_MAX / 4);
	uint64_t last = 0;
	int r = 0;

	buf_adds(&b, str_c(first));
	buf_addc(&b, '\n');
	for (size_t i = 0; !r && i < m->n; i++) {
		add_line(m, &m->lines[i], &last, &b);
		if (b.n > OUT_CHUNK)
			r = flush(fd, &b);
	}
	if (!r)
		r = flush(fd, &b);
	buf_free(&b);
	free(first);
	json_decref(o);
	return r;
}

static int write_file(struct merge *m, const char *path, const struct history_head *head)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600), r;

	r = fd < 0 ? -errno : write_out(m, fd, head);
	if (fd >= 0 && close(fd) && !r)
		r = -errno;
	if (r)
		*m->why = arena_printf(m->arena, "%s: %s", path, strerror(-r));
	return r;
}

int history_merge(const char *out, const struct history_head *head, const char *const *parts,
		  size_t n, struct arena *a, struct str *why)
{
	struct merge m = { .arena = a, .why = why };
	size_t calls = 0;
	int r = 0;

	*why = STR("");
	m.first = arena_array(a, size_t, n);
	for (size_t i = 0; !r && i < n; i++) {
		uint64_t of_part;

		m.first[i] = calls;
		r = add_part(&m, (uint32_t)i, parts[i], &of_part);
		calls += of_part;
	}
	if (!r) {
		m.renumbered = arena_array(a, uint64_t, calls);
		if (m.n)
			qsort(m.lines, m.n, sizeof(*m.lines), by_time);
		r = write_file(&m, out, head);
	}
	free(m.lines);
	return r;
}

/* Merges the processes' parts by time, with a heap of mapped files. It parses only the time and the call number of each line,
 * so a history of any size merges in bounded memory. Each part must be in order, or the merge is refused. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "proof/history/history_members.h"

#define OUT_CHUNK (1u << 20)

/* Every line begins with {"t":TIME, followed by "call":NUMBER, "answer":NUMBER or another key. */
struct line {
	struct str text; /* without the newline */
	struct str rest; /* after the number */
	int64_t t;
	uint64_t number; /* 0: neither a call nor an answer */
	bool call;
};

/* A memory-mapped file and the position in it. */
struct part {
	const char *path;
	void *map;
	size_t size, lines;
	struct str left;
	struct line line; /* the part's next line */
	/* by the call's number in the part, less 1: its number in the merged file */
	uint64_t *numbers;
	size_t n, room;
};

struct merge {
	struct arena *arena;
	struct str *why;
	struct part *parts;
	struct part **heap; /* ordered by the time of the next line; the first is the earliest */
	size_t n_heap;
};

static int history_merge_fail(struct merge *m, const char *path, int r)
{
	*m->why = arena_printf(m->arena, "%s: %s", path, strerror(-r));
	return r;
}

static int history_merge_wrong(struct merge *m, const struct part *p, const char *what)
{
	*m->why = arena_printf(m->arena, "%s, line %zu: %s", p->path, p->lines, what);
	return -EBADMSG;
}

static int part_open(struct merge *m, struct part *p, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW), r = fd < 0 ? -errno : 0;
	struct stat st;

	*p = (struct part){ .path = path };
	if (!r && fstat(fd, &st))
		r = -errno;
	if (!r && st.st_size > 0) {
		p->map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
		r = p->map == MAP_FAILED ? -errno : 0;
	}
	if (fd >= 0)
		close(fd);
	if (r) {
		p->map = NULL;
		return history_merge_fail(m, path, r);
	}
	p->size = p->map ? (size_t)st.st_size : 0;
	p->left = str_n(p->map, p->size);
	return 0;
}

static void part_close(struct part *p)
{
	if (p->map)
		munmap(p->map, p->size);
	free(p->numbers);
}

/* --- lines --------------------------------------------------------------------------------------- */

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

/* Within a part, the lower halves of the call numbers are 1, 2, 3 and so on. Returns 0 with the next line, 1 at
 * the end, or an error. */
static int part_next(struct merge *m, struct part *p)
{
	int64_t before = p->line.t;
	struct line *l = &p->line;

	if (!p->left.n || !memchr(p->left.p, '\n', p->left.n))
		return 1; /* a torn line, if there is any text */
	p->lines++;
	*l = (struct line){ 0 };
	if (!line_parse(str_cut(&p->left, '\n'), l))
		return history_merge_wrong(m, p, "this is not a line of a part of a history");
	if (l->t < before)
		return history_merge_wrong(m, p, "it is earlier than the line before it");
	if (l->call ? l->number != p->n + 1 : l->number > p->n)
		return history_merge_wrong(m, p, "the number of this call is out of order");
	return 0;
}

/* --- the earliest part --------------------------------------------------------------------------- */

static bool history_merge_earlier(const struct part *a, const struct part *b)
{
	return a->line.t != b->line.t ? a->line.t < b->line.t : a < b;
}

static void history_merge_sink(struct merge *m, size_t at)
{
	struct part **h = m->heap, *p = h[at];

	for (size_t below = 2 * at + 1; below < m->n_heap; below = 2 * at + 1) {
		if (below + 1 < m->n_heap && history_merge_earlier(h[below + 1], h[below]))
			below++;
		if (!history_merge_earlier(h[below], p))
			break;
		h[at] = h[below];
		at = below;
	}
	h[at] = p;
}

static int history_merge_begin(struct merge *m, size_t n)
{
	m->heap = arena_array(m->arena, struct part *, n);
	for (size_t i = 0; i < n; i++) {
		int r = part_next(m, &m->parts[i]);

		if (r < 0)
			return r;
		if (!r)
			m->heap[m->n_heap++] = &m->parts[i];
	}
	for (size_t i = m->n_heap; i-- > 0;)
		history_merge_sink(m, i);
	return 0;
}

/* Advances the first part, whose line has been used. */
static int go_on(struct merge *m)
{
	int r = part_next(m, m->heap[0]);

	if (r < 0)
		return r;
	if (r)
		m->heap[0] = m->heap[--m->n_heap];
	if (m->n_heap)
		history_merge_sink(m, 0);
	return 0;
}

/* --- the merged file ----------------------------------------------------------------------------- */

static int history_merge_flush(int fd, struct buf *b)
{
	int r = fs_write_all(fd, buf_str(b));

	b->n = 0;
	return r;
}

static void add_number(struct part *p, uint64_t number)
{
	if (p->n == p->room) {
		p->room = p->room ? 2 * p->room : 64;
		p->numbers = mem_grow(p->numbers, p->room * sizeof(*p->numbers));
	}
	p->numbers[p->n++] = number;
}

static void add_line(struct part *p, uint64_t *last, struct buf *b)
{
	const struct line *l = &p->line;

	if (l->call)
		add_number(p, ++*last);
	if (l->number) {
		buf_addf(b, "{\"t\":%lld,\"%s\":%llu", (long long)l->t, l->call ? "call" : "answer",
			 (unsigned long long)p->numbers[l->number - 1]);
		buf_adds(b, l->rest);
	} else {
		buf_adds(b, l->text);
	}
	buf_addc(b, '\n');
}

static int write_lines(struct merge *m, const char *path, int fd, struct buf *b)
{
	uint64_t last = 0;
	int r = 0;

	while (!r && m->n_heap) {
		add_line(m->heap[0], &last, b);
		if (b->n > OUT_CHUNK)
			r = history_merge_flush(fd, b);
		r = r ? history_merge_fail(m, path, r) : go_on(m);
	}
	if (r)
		return r;
	r = history_merge_flush(fd, b);
	return r ? history_merge_fail(m, path, r) : 0;
}

static int write_out(struct merge *m, const char *path, int fd, const struct history_head *head)
{
	json_t *o = head_json(head);
	char *first = json_dumps(o, JSON_COMPACT);
	struct buf b = BUF_MAX(SIZE_MAX / 4);
	int r;

	buf_adds(&b, str_c(first));
	buf_addc(&b, '\n');
	r = write_lines(m, path, fd, &b);
	buf_free(&b);
	free(first);
	json_decref(o);
	return r;
}

static int write_file(struct merge *m, const char *path, const struct history_head *head)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600), r;

	if (fd < 0)
		return history_merge_fail(m, path, -errno);
	r = write_out(m, path, fd, head);
	if (close(fd) && !r)
		r = history_merge_fail(m, path, -errno);
	if (r)
		(void)unlink(path);
	return r;
}

int history_merge(const char *out, const struct history_head *head, const char *const *parts,
		  size_t n, struct arena *a, struct str *why)
{
	struct merge m = { .arena = a, .why = why, .parts = arena_array(a, struct part, n) };
	int r = 0;

	*why = STR("");
	for (size_t i = 0; !r && i < n; i++)
		r = part_open(&m, &m.parts[i], parts[i]);
	if (!r)
		r = history_merge_begin(&m, n);
	if (!r)
		r = write_file(&m, out, head);
	for (size_t i = 0; i < n; i++)
		part_close(&m.parts[i]);
	return r;
}

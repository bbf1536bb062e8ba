/*
 * The event log: one sequence of lines. Older lines are in .pawl/log, the newest in the state's
 * frames. A cursor is the number of bytes before a position, so it stays valid when compaction
 * moves lines from the frames to the file. Each line has a checksum: a damaged line is reported,
 * not returned.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fs.h"
#include "store/files/files.h"

#define PIECE (256u << 10) /* bytes in one read */

struct line {
	uint32_t size, check; /* the line's size; checksum of the bytes after these two fields */
	int64_t at;
	uint32_t key;
	char bytes[]; /* key, data */
};

#define LINE_HEAD offsetof(struct line, bytes)

static uint32_t line_check(const char *p, size_t n)
{
	uint32_t h = 2166136261u;

	for (size_t i = 8; i < n; i++)
		h = (h ^ (unsigned char)p[i]) * 16777619u;
	return h;
}

void files_log_add(struct buf *b, const struct entry *e)
{
	size_t start = b->n;
	struct line l = { .size = (uint32_t)(LINE_HEAD + e->key.n + e->data.n),
			  .at = e->at,
			  .key = (uint32_t)e->key.n };

	buf_add(b, &l, LINE_HEAD);
	buf_adds(b, e->key);
	buf_adds(b, e->data);
	if (b->full)
		return;
	l.check = line_check(b->p + start, l.size);
	memcpy(b->p + start + offsetof(struct line, check), &l.check, sizeof(l.check));
}

/* --- reading ------------------------------------------------------------------------------------ */

struct reader {
	struct files *s;
	int fd; /* the log file; -1: none */
	int64_t pos;
	char *piece; /* a part of the file, from piece_at */
	size_t room, n;
	int64_t piece_at;
};

static int files_log_damaged(struct files *s)
{
	return store_fail(&s->base.env, STORE_CORRUPT,
			  "copy the folder to a safe place before anything else",
			  "%s/.pawl/log is damaged", s->path);
}

static int files_log_fill(struct reader *r, size_t need)
{
	int64_t left = r->s->view.log_base - r->pos;
	size_t want = need > PIECE ? need : PIECE, got = 0;

	if ((int64_t)want > left)
		want = (size_t)left;
	if (want < need)
		return files_log_damaged(r->s);
	if (want > r->room)
		r->piece = mem_grow(r->piece, r->room = want);
	while (got < want) {
		ssize_t n = pread(r->fd, r->piece + got, want - got, r->pos + (int64_t)got);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return files_fail(r->s, -errno, ".pawl/log");
		if (n == 0)
			return files_log_damaged(r->s);
		got += (size_t)n;
	}
	r->piece_at = r->pos;
	r->n = got;
	return 0;
}

/* Points *out at `need` bytes, starting at r->pos. */
static int bytes_here(struct reader *r, size_t need, const char **out)
{
	int64_t at = r->pos - r->s->view.log_base;
	int rc = 0;

	if (at < 0) {
		if (r->pos < r->piece_at || r->pos + (int64_t)need > r->piece_at + (int64_t)r->n)
			rc = files_log_fill(r, need);
		*out = rc ? NULL : r->piece + (r->pos - r->piece_at);
		return rc;
	}
	for (const struct log_part *p = r->s->view.log; p; p = p->next) {
		if (at < (int64_t)p->bytes.n) {
			*out = p->bytes.p + at;
			return (int64_t)p->bytes.n - at < (int64_t)need ? files_log_damaged(r->s)
									: 0;
		}
		at -= (int64_t)p->bytes.n;
	}
	return files_log_damaged(r->s);
}

/* Reads the line at r->pos, and moves r->pos past it. 1: the log ends here. */
static int next_line(struct reader *r, struct entry *out, char *cursor, size_t room)
{
	struct line l;
	const char *p;
	int rc;

	if (r->pos >= r->s->view.log_size)
		return 1;
	rc = bytes_here(r, LINE_HEAD, &p);
	if (rc < 0)
		return rc;
	memcpy(&l, p, LINE_HEAD);
	if (l.size < LINE_HEAD || l.key > l.size - LINE_HEAD)
		return files_log_damaged(r->s);
	rc = bytes_here(r, l.size, &p);
	if (rc < 0 || line_check(p, l.size) != l.check)
		return rc < 0 ? rc : files_log_damaged(r->s);
	r->pos += l.size;
	snprintf(cursor, room, "%" PRId64, r->pos);
	*out = (struct entry){ .cursor = str_c(cursor),
			       .at = l.at,
			       .key = str_n(p + LINE_HEAD, l.key),
			       .data = str_n(p + LINE_HEAD + l.key, l.size - LINE_HEAD - l.key) };
	return 0;
}

static bool files_log_wanted(const struct entry_query *q, const struct entry *e)
{
	return (!q->key.n || str_eq(q->key, e->key)) && entry_in_time(q, e->at);
}

static int files_log_count(struct reader *r, const struct entry_query *q, void *ctx, size_t *n)
{
	struct entry e;
	char cursor[24];
	int rc;

	*n = 0;
	while ((rc = next_line(r, &e, cursor, sizeof(cursor))) == 0)
		*n += files_log_wanted(q, &e) && entry_counts(q, &e, ctx);
	return rc < 0 ? rc : 0;
}

/* Sends the entries that the query wants. from: skip to the Nth entry that entry_counts() accepts,
 * counted from 1; 0: skip none. */
static int send_all(struct reader *r, const struct entry_query *q, size_t from, entry_fn *fn,
		    void *ctx)
{
	struct entry e;
	char cursor[24];
	int rc;

	while ((rc = next_line(r, &e, cursor, sizeof(cursor))) == 0) {
		if (!files_log_wanted(q, &e))
			continue;
		if (from && (!entry_counts(q, &e, ctx) || --from))
			continue;
		if ((rc = fn(&e, ctx)) != 0)
			break;
	}
	return rc < 0 ? rc : 0;
}

static int no_cursor(struct files *s, struct str cursor)
{
	return store_fail(&s->base.env, STORE_UNSUPPORTED, NULL,
			  "'%.*s' is not a cursor of this queue", STRF(cursor));
}

static int files_log_start(struct reader *r, const struct entry_query *q)
{
	struct entry e;
	char cursor[24];
	int64_t at = 0;

	if (q->after.n && (!str_to_i64(q->after, &at) || at < 0 || at > r->s->view.log_size))
		return no_cursor(r->s, q->after);
	r->pos = at;
	if (at && next_line(r, &e, cursor, sizeof(cursor)) < 0)
		return no_cursor(r->s, q->after);
	r->pos = at;
	return 0;
}

static int files_log_run(struct reader *r, const struct entry_query *q, entry_fn *fn, void *ctx)
{
	size_t n = 0;
	int64_t from;
	int rc = files_log_start(r, q);

	from = r->pos;
	if (rc == 0 && q->last)
		rc = files_log_count(r, q, ctx, &n);
	r->pos = from;
	if (rc == 0)
		rc = send_all(r, q, q->last && n > q->last ? n - q->last + 1 : 0, fn, ctx);
	return rc;
}

int files_entries(struct store *base, const struct entry_query *q, entry_fn *fn, void *ctx)
{
	struct reader r = { .s = files_of(base), .fd = -1 };
	int rc = r.s->changing || r.s->depth ? 0 : files_refresh(r.s, NULL);

	if (rc == 0 && r.s->view.log_base) {
		r.fd = beneath_open(r.s->own, "log", O_RDONLY, 0);
		if (r.fd < 0)
			rc = files_fail(r.s, r.fd, ".pawl/log");
	}
	r.s->depth++; /* the view must not change while fn() reads its lines */
	if (rc == 0)
		rc = files_log_run(&r, q, fn, ctx);
	r.s->depth--;
	if (r.fd >= 0)
		close(r.fd);
	free(r.piece);
	return rc;
}

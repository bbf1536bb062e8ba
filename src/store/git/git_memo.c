/*
 * The memo: a packed copy of the commits' content, in one file beside the objects (pawl/memo/QUEUE). A claim
 * reads all live tasks. Without the memo, most of its cost would be reading each task's commit and its JSON.
 * A commit never changes, so its entry never becomes stale. A process that makes a commit, or reads one
 * without an entry, appends the entry.
 *
 * The file may be lost, truncated or written by two processes at once. pawl ignores an entry whose checksum
 * is wrong, and reads the commit instead. The memo only shows which tasks exist. A change reads the commits of
 * the tasks that it reads or writes (git_memo_sure()).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "format/pack.h"
#include "store/git/git.h"

#define MAGIC STR("pawl memo 3\n\n\n\n\n")
#define FILE_MAX (64u << 20)
/* The memo is rewritten when it has more than 3 * records + SPARE entries; the rest describe old states. */
#define SPARE 500

struct entry_head {
	uint64_t check;
	uint32_t size; /* length of the bytes that follow */
	unsigned char oid[GIT_OID_RAWSZ];
};

/* Field tags. The index's fields are numbered from NUMBER and TEXT. */
enum {
	STAMP = 1,
	TREE = 2,
	CLOCK = 3,
	LEADER = 4,
	MOVE = 5,
	KEY = 6,
	REV = 7,
	HOT = 8,
	LABEL = 9,
	DEPEND = 10,
	NUMBER = 32,
	TEXT = 64
};

/* --- packing a state ---------------------------------------------------------------------------- */

static struct str oid_str(const git_oid *oid)
{
	return str_n((const char *)oid->id, GIT_OID_RAWSZ);
}

static void pack_index(struct buf *b, const struct index *from)
{
	struct index ix = *from;

	for (int i = 0; i < GIT_INDEX_NUMBERS; i++) {
		int64_t n = git_index_number(&ix, &git_index_numbers[i]);

		if (n)
			pack_int(b, (uint8_t)(NUMBER + i), n);
	}
	for (int i = 0; i < GIT_INDEX_TEXTS; i++) {
		struct str text = *git_index_text(&ix, &git_index_texts[i]);

		if (text.n)
			pack_str(b, (uint8_t)(TEXT + i), text);
	}
	for (size_t i = 0; i < ix.labels.n; i++)
		pack_str(b, LABEL, ix.labels.v[i]);
	for (size_t i = 0; i < ix.depends.n; i++)
		pack_str(b, DEPEND, ix.depends.v[i]);
}

static void pack_move(struct buf *b, const struct git_move *m, struct arena *a)
{
	struct str old = oid_str(&m->old), to = oid_str(&m->to);
	char *p = arena_alloc(a, old.n + to.n + m->name.n);

	memcpy(p, old.p, old.n);
	memcpy(p + old.n, to.p, to.n);
	memcpy(p + old.n + to.n, m->name.p, m->name.n);
	pack_str(b, MOVE, str_n(p, old.n + to.n + m->name.n));
}

void git_state_pack(struct buf *b, const struct git_state *st, struct arena *a)
{
	pack_int(b, STAMP, st->stamp);
	pack_str(b, TREE, oid_str(&st->tree));
	if (st->clock.n)
		pack_str(b, CLOCK, st->clock);
	if (st->leader.n)
		pack_str(b, LEADER, st->leader);
	for (size_t i = 0; i < st->n_moves; i++)
		pack_move(b, &st->moves[i], a);
	if (!st->has_rec)
		return;
	pack_str(b, KEY, st->rec.key);
	pack_int(b, REV, st->rec.rev);
	pack_str(b, HOT, st->rec.hot);
	pack_index(b, &st->rec.ix);
}

static bool unpack_oid(struct str value, git_oid *out)
{
	return value.n == GIT_OID_RAWSZ &&
	       git_oid_fromraw(out, (const unsigned char *)value.p) == 0;
}

static bool unpack_move(struct str value, struct git_state *out, struct arena *a)
{
	struct git_move m = { 0 };

	if (value.n <= 2 * GIT_OID_RAWSZ || !unpack_oid(str_n(value.p, GIT_OID_RAWSZ), &m.old) ||
	    !unpack_oid(str_n(value.p + GIT_OID_RAWSZ, GIT_OID_RAWSZ), &m.to))
		return false;
	m.name = str_n(value.p + 2 * GIT_OID_RAWSZ, value.n - 2 * GIT_OID_RAWSZ);
	out->moves = arena_grow(a, out->moves, out->n_moves, sizeof(m));
	out->moves[out->n_moves++] = m;
	return true;
}

static void git_memo_add(struct strs *list, struct str s, struct arena *a)
{
	list->v = arena_grow(a, list->v, list->n, sizeof(s));
	list->v[list->n++] = s;
}

/* Takes a number or a text of the index, and skips the fields of newer pawls. */
static bool take_part(uint8_t tag, struct str value, struct index *ix)
{
	int64_t n;

	if (tag >= TEXT && tag < TEXT + GIT_INDEX_TEXTS)
		*git_index_text(ix, &git_index_texts[tag - TEXT]) = value;
	if (tag < NUMBER || tag >= NUMBER + GIT_INDEX_NUMBERS)
		return true;
	if (unpack_int(value, &n))
		return false;
	git_index_set(ix, &git_index_numbers[tag - NUMBER], n);
	return true;
}

static bool take_field(uint8_t tag, struct str value, struct git_state *out, struct arena *a)
{
	struct record *r = &out->rec;

	switch (tag) {
	case STAMP:
		return unpack_int(value, &out->stamp) == 0;
	case TREE:
		return unpack_oid(value, &out->tree);
	case CLOCK:
		out->clock = value;
		return true;
	case LEADER:
		out->leader = value;
		return true;
	case MOVE:
		return unpack_move(value, out, a);
	case KEY:
		r->key = value;
		out->has_rec = true;
		return true;
	case REV:
		return unpack_int(value, &r->rev) == 0;
	case HOT:
		r->hot = value;
		return true;
	case LABEL:
		git_memo_add(&r->ix.labels, value, a);
		return true;
	case DEPEND:
		git_memo_add(&r->ix.depends, value, a);
		return true;
	default:
		return take_part(tag, value, &r->ix);
	}
}

bool git_state_unpack(struct str bytes, struct git_state *out, struct arena *a)
{
	struct unpack u = { bytes };
	struct str value;
	uint8_t tag;
	int rc;

	*out = (struct git_state){ 0 };
	while ((rc = unpack_next(&u, &tag, &value)) > 0)
		if (!take_field(tag, value, out, a))
			return false;
	return rc == 0 && git_state_sane(out, a);
}

/* --- entries ------------------------------------------------------------------------------------ */

static uint64_t check_of(const struct entry_head *h, const char *bytes)
{
	uint64_t sum = str_sum(h->size, h->oid, sizeof(h->oid));

	return str_sum(sum, bytes, h->size);
}

/* Reads the entry at `at`; false: it does not fit into the rest of the buffer. */
static bool entry_at(const struct buf *b, size_t at, struct entry_head *h, const char **bytes)
{
	if (b->n - at < sizeof(*h))
		return false;
	memcpy(h, b->p + at, sizeof(*h));
	*bytes = b->p + at + sizeof(*h);
	return b->n - at - sizeof(*h) >= h->size;
}

static void add_entry(struct buf *b, const git_oid *oid, struct str packed)
{
	struct entry_head h = { .size = (uint32_t)packed.n };

	memcpy(h.oid, oid->id, sizeof(h.oid));
	h.check = check_of(&h, packed.p);
	buf_add(b, &h, sizeof(h));
	buf_adds(b, packed);
}

/* --- finding ------------------------------------------------------------------------------------ */

/* Returns the entry's slot, or the free slot for it. An object id is already a good hash. */
static uint32_t *slot_of(const struct git_memo *m, const unsigned char *oid)
{
	size_t at;

	memcpy(&at, oid, sizeof(at));
	for (at &= m->n_slots - 1; m->slots[at]; at = (at + 1) & (m->n_slots - 1))
		if (memcmp(m->bytes.p + m->slots[at] + offsetof(struct entry_head, oid), oid,
			   GIT_OID_RAWSZ) == 0)
			break;
	return &m->slots[at];
}

static void slots_double(struct git_memo *m)
{
	uint32_t *old = m->slots;
	size_t n = m->n_slots;

	m->n_slots = n ? 2 * n : 1024;
	m->slots = mem_alloc(m->n_slots * sizeof(*m->slots));
	memset(m->slots, 0, m->n_slots * sizeof(*m->slots));
	for (size_t i = 0; i < n; i++)
		if (old[i])
			*slot_of(m, (const unsigned char *)m->bytes.p + old[i] +
					    offsetof(struct entry_head, oid)) = old[i];
	free(old);
}

/* Indexes the entries from `at` on; returns the end of the last complete one. */
static size_t index_from(struct git_memo *m, size_t at)
{
	struct entry_head h;
	const char *bytes;

	for (; entry_at(&m->bytes, at, &h, &bytes); at += sizeof(h) + h.size, m->n++) {
		if (2 * (m->n + 1) > m->n_slots)
			slots_double(m);
		*slot_of(m, h.oid) = (uint32_t)at;
	}
	return at;
}

static struct str git_memo_find(const struct git_memo *m, const git_oid *oid)
{
	uint32_t at = m->n_slots && !m->off ? *slot_of(m, oid->id) : 0;
	struct entry_head h;
	const char *bytes;

	if (!at || !entry_at(&m->bytes, at, &h, &bytes) || check_of(&h, bytes) != h.check)
		return (struct str){ 0 };
	return str_n(bytes, h.size);
}

/* --- the file ----------------------------------------------------------------------------------- */

/* The file's folder, and its name there; dir < 0: -errno. */
struct spot {
	int dir;
	const char *name;
};

static struct spot memo_spot(struct git *s, bool make, struct arena *a)
{
	struct str queue = str_c(s->seen ? s->seen : s->prefix);

	return (struct spot){ git_folder(s->top, "pawl/memo", make), git_name(a, queue).p };
}

static void spot_close(struct spot p)
{
	if (p.dir >= 0)
		close(p.dir);
}

static void git_memo_reset(struct git_memo *m)
{
	if (m->fd >= 0)
		close(m->fd);
	free(m->slots);
	buf_free(&m->bytes);
	*m = (struct git_memo){
		.off = m->off, .fd = -1, .late = true, .noted = m->noted, .fresh = m->fresh
	};
}

/* Has another process replaced the file? */
static bool is_replaced(const struct git_memo *m, struct spot p)
{
	struct stat mine, there;
	bool is = p.dir >= 0 && fstatat(p.dir, p.name, &there, AT_SYMLINK_NOFOLLOW) == 0;

	return is && (m->fd < 0 || (fstat(m->fd, &mine) == 0 && mine.st_ino != there.st_ino));
}

/* -1: there is no file, or it is too large to be pawl's. */
static int open_file(struct spot p)
{
	int fd = p.dir < 0 ? -1 : beneath_open(p.dir, p.name, O_RDONLY, 0);
	struct stat st;

	if (fd >= 0 && fstat(fd, &st) == 0 && st.st_size <= FILE_MAX)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

static void read_more(struct git_memo *m)
{
	char part[1 << 16];
	ssize_t n;

	while ((n = pread(m->fd, part, sizeof(part), (off_t)m->bytes.n)) > 0 && !m->bytes.full)
		buf_add(&m->bytes, part, (size_t)n);
}

/* Reads the bytes that other processes have appended since the last read. */
static void read_file(struct git *s)
{
	struct git_memo *m = &s->memo;
	struct arena a = { 0 };
	struct spot p = memo_spot(s, false, &a);
	size_t from;

	if (m->tried && is_replaced(m, p))
		git_memo_reset(m);
	if (!m->tried)
		m->fd = open_file(p);
	spot_close(p);
	arena_free(&a);
	m->tried = true;
	m->late = false;
	m->bytes.max = FILE_MAX;
	from = m->bytes.n;
	if (m->fd < 0 || (from && !m->whole))
		return;
	read_more(m);
	if (!from) {
		struct str text = buf_str(&m->bytes);

		m->whole = str_cut_prefix(&text, MAGIC);
		from = MAGIC.n;
	}
	m->whole = m->whole && index_from(m, from) == m->bytes.n;
}

void git_memo_check(struct git *s)
{
	s->memo.late = true;
	s->memo.noted = 0;
}

/* Returns the commit's packed state; empty: the memo does not have it. */
static struct str git_memo_recall_body(struct git *s, const git_oid *oid)
{
	struct git_memo *m = &s->memo;
	struct str packed = git_memo_find(m, oid);

	if (packed.n || m->off || !m->late)
		return packed;
	read_file(s);
	return git_memo_find(m, oid);
}

/* --- writing ------------------------------------------------------------------------------------ */

static bool may_write(const struct git *s)
{
	return s->base.env.mode != STORE_READ || s->local;
}

static bool git_memo_append(struct spot p, struct str bytes)
{
	int fd = p.dir < 0 ? -1 : beneath_open(p.dir, p.name, O_WRONLY | O_APPEND, 0);
	struct stat st;
	bool ok = fd >= 0 && fstat(fd, &st) == 0 && st.st_size > 0 &&
		  write(fd, bytes.p, bytes.n) == (ssize_t)bytes.n;

	if (fd >= 0)
		close(fd);
	return ok;
}

/* Does not sync: after a loss of power, an incomplete entry fails its checksum. */
static void git_memo_replace(struct git *s, struct spot p, struct str bytes, struct arena *a)
{
	const char *temp = arena_printf(a, "%s.new", p.name).p;
	struct stat like = { .st_mode = 0666 };
	int fd;

	(void)unlinkat(p.dir, temp, 0);
	fd = openat(p.dir, temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
	if (fd < 0)
		return;
	(void)fstatat(s->top, "objects", &like, 0);
	(void)!fchmod(fd, like.st_mode & 0666);
	if (fs_write_all(fd, bytes) || renameat(p.dir, temp, p.dir, p.name))
		(void)unlinkat(p.dir, temp, 0);
	close(fd);
}

/* Keeps the entries of commits that the view has, and drops the entries of older states. */
static void git_memo_rewrite(struct git *s, struct spot p, struct arena *a)
{
	struct git_memo *m = &s->memo;
	const struct git_view *v = &s->view;
	struct buf all = BUF_MAX(FILE_MAX);

	buf_adds(&all, MAGIC);
	for (size_t i = 0; i < v->n; i++) {
		struct str packed = git_memo_find(m, &v->heads[i]->oid);

		if (packed.n)
			add_entry(&all, &v->heads[i]->oid, packed);
	}
	buf_adds(&all, buf_str(&m->fresh));
	if (!all.full && p.dir >= 0)
		git_memo_replace(s, p, buf_str(&all), a);
	buf_free(&all);
	git_memo_reset(m);
}

void git_memo_save(struct git *s)
{
	struct git_memo *m = &s->memo;
	bool may = may_write(s) && !m->off;
	struct arena a = { 0 };
	struct spot p;

	if (!m->fresh.n)
		return;
	p = may ? memo_spot(s, true, &a) : (struct spot){ -1, NULL };
	if (may && !m->tried)
		read_file(s);
	if (may && (!m->whole || m->n > SPARE + 3 * (s->view.n + m->noted))) {
		git_memo_rewrite(s, p, &a);
	} else if (may && !git_memo_append(p, buf_str(&m->fresh))) {
		/* the process that removed the file may have found it damaged, so write only new entries */
		git_memo_reset(m);
		git_memo_rewrite(s, p, &a);
	}
	spot_close(p);
	buf_free(&m->fresh);
	m->fresh = (struct buf){ 0 };
	arena_free(&a);
}

/* --- the interface ------------------------------------------------------------------------------ */

void git_memo_put(struct git *s, const git_oid *oid, const struct git_state *st)
{
	struct buf b = BUF_MAX(GIT_RECORD_MAX);
	struct arena a = { 0 };

	if (s->memo.off)
		return;
	git_state_pack(&b, st, &a);
	s->memo.fresh.max = FILE_MAX;
	if (!b.full)
		add_entry(&s->memo.fresh, oid, buf_str(&b));
	buf_free(&b);
	arena_free(&a);
}

static uint64_t sum_of(struct str packed)
{
	return str_sum(0, packed.p, packed.n) | 1;
}

uint64_t git_memo_recall(struct git *s, const git_oid *oid, struct git_state *out, struct arena *a)
{
	struct str packed = git_memo_recall_body(s, oid);

	return packed.n && git_state_unpack(arena_str(a, packed), out, a) ? sum_of(packed) : 0;
}

static bool git_memo_holds(struct git *s, const struct git_head *h)
{
	struct buf b = BUF_MAX(GIT_RECORD_MAX);
	struct arena a = { 0 };
	struct git_state st;
	bool ok = git_commit_read(s, &h->oid, &st, &a) == 0;

	if (ok)
		git_state_pack(&b, &st, &a);
	ok = ok && sum_of(buf_str(&b)) == h->recalled;
	buf_free(&b);
	arena_free(&a);
	return ok;
}

bool git_memo_sure(struct git *s, struct strs keys)
{
	for (size_t i = 0; i < keys.n; i++) {
		struct git_head *h = git_head(&s->view, keys.v[i]);

		if (!h || !h->recalled)
			continue;
		if (!git_memo_holds(s, h)) {
			git_memo_forget(s);
			return false;
		}
		h->recalled = 0;
	}
	return true;
}

void git_memo_note(struct git *s, const git_oid *oid)
{
	struct arena a = { 0 };
	struct git_state st;

	s->memo.noted++;
	if (!s->memo.off && git_commit_read(s, oid, &st, &a) == 0)
		git_memo_put(s, oid, &st);
	arena_free(&a);
}

void git_memo_doubt(struct git *s)
{
	s->memo.off = true;
	s->view.base = (git_oid){ 0 };
	for (size_t i = 0; i < s->view.n; i++)
		s->view.heads[i]->seen = 0;
}

void git_memo_forget(struct git *s)
{
	struct arena a = { 0 };
	struct spot p = memo_spot(s, false, &a);

	if (may_write(s) && p.dir >= 0)
		unlinkat(p.dir, p.name, 0);
	spot_close(p);
	git_memo_doubt(s);
	arena_free(&a);
}

void git_memo_close(struct git *s)
{
	struct git_memo *m = &s->memo;

	git_memo_save(s);
	git_memo_reset(m);
	buf_free(&m->fresh);
}

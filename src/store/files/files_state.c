/*
 * The state file, and its records in memory. A head comes first, then frames: a snapshot of all
 * records, then one frame for each change, with the records that it put or dropped and its log
 * lines. A frame's checksum continues the previous frame's. A frame with a wrong checksum does not
 * count, so readers ignore a frame that a dead process left half-written.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/str.h"
#include "store/files/files.h"

#define MAGIC "pawl files\n"
#define ORDER 0x01020304u
/* Records found in the folder use memory until the view is loaded again, so reload it at this
 * number. */
#define FOUND_MAX 10000

struct head {
	char magic[12];
	uint32_t order, version;
	char id[FILES_ID + 4];
	int64_t log_base;
	uint64_t check;
};

enum { SNAPSHOT = 1, QUEUE_ENDS = 2 };

struct frame {
	uint64_t size; /* length of the payload that follows this head */
	uint64_t check;
	int64_t seq;
	uint32_t flags, items;
	uint64_t log; /* size of the log lines at the payload's end */
	int64_t at;
	struct anchor anchor;
};

struct chunk {
	struct chunk *next;
	char bytes[];
};

/* --- helpers ------------------------------------------------------------------------------------ */

/* Reports why the state cannot be read. */
static int fail_state(struct files *s)
{
	if (s->view.older)
		return store_fail_older(&s->base.env, s->path);
	return store_fail(
		&s->base.env, STORE_CORRUPT,
		"copy the folder to a safe place; then remove .pawl/state, and run pawl init, which "
		"takes the tasks from their files",
		"%s/.pawl/state is damaged", s->path);
}

void files_view_free(struct view *v)
{
	while (v->chunks) {
		struct chunk *next = v->chunks->next;

		free(v->chunks);
		v->chunks = next;
	}
	if (v->fd >= 0)
		close(v->fd);
	free(v->v);
	arena_free(&v->arena);
	*v = (struct view){ .fd = -1 };
}

/* --- frames ------------------------------------------------------------------------------------- */

/* A snapshot is synced before it gets its name, so its checksum need only cover the frame's
 * head. */
static uint64_t frame_check(const struct frame *f, struct str payload, uint64_t seed)
{
	struct frame plain = *f;

	plain.check = 0;
	seed = str_sum(seed ^ 0x70617766u, &plain, sizeof(plain));
	return f->flags & SNAPSHOT ? seed : str_sum(seed, payload.p, payload.n);
}

static void add_log(struct view *v, struct str bytes)
{
	struct log_part *p = arena_new(&v->arena, struct log_part);

	p->bytes = bytes;
	*(v->log_end ? v->log_end : &v->log) = p;
	v->log_end = &p->next;
	v->log_size += (int64_t)bytes.n;
}

/* Notes where each record begins, and decodes none. */
static int take_snapshot(struct view *v, uint32_t n, struct str payload)
{
	struct str last = { 0 };

	v->room = n + 64;
	v->v = mem_grow(v->v, v->room * sizeof(*v->v));
	for (uint32_t i = 0; i < n; i++) {
		size_t size = files_raw_size(payload);
		struct str key;

		if (!size)
			return -1;
		key = files_raw_key(payload.p);
		v->older |= files_raw_older(payload.p);
		if (v->older || (i && str_cmp(last, key) >= 0))
			return -1;
		last = key;
		v->v[v->n++] = (struct slot){ .raw = payload.p };
		payload = str_n(payload.p + size, payload.n - size);
	}
	return 0;
}

static int take_items(struct view *v, const struct frame *f, struct str payload)
{
	struct ent *all;

	if (f->items > payload.n / files_item_head)
		return -1;
	if (f->flags & SNAPSHOT)
		return take_snapshot(v, f->items, payload);
	all = arena_array(&v->arena, struct ent, f->items);
	for (uint32_t i = 0; i < f->items; i++) {
		v->older |= files_raw_size(payload) && files_raw_older(payload.p);
		if (v->older || files_decode_next(v, &payload, &all[i]))
			return -1;
		all[i].fresh = true;
		all[i].had = files_names(files_set(v, &all[i]));
	}
	return 0;
}

/* 1: took a frame; 0: no complete frame is left; -1: the frame is damaged. */
static int take_frame(struct view *v, struct str *rest)
{
	struct str payload;
	struct frame f;

	if (rest->n < sizeof(f))
		return 0;
	memcpy(&f, rest->p, sizeof(f));
	if (rest->n - sizeof(f) < f.size || f.log > f.size)
		return 0;
	payload = str_n(rest->p + sizeof(f), (size_t)f.size);
	if (frame_check(&f, payload, v->check) != f.check)
		return 0;
	if (take_items(v, &f, str_n(payload.p, (size_t)(f.size - f.log))))
		return -1;
	if (f.log)
		add_log(v, str_n(payload.p + (f.size - f.log), (size_t)f.log));
	v->seq = f.seq;
	v->check = f.check;
	v->at = f.at;
	v->anchor = f.anchor;
	v->gone = f.flags & QUEUE_ENDS;
	v->end += (int64_t)(sizeof(f) + f.size);
	*rest = str_n(rest->p + sizeof(f) + f.size, rest->n - sizeof(f) - (size_t)f.size);
	return 1;
}

static int take_frames(struct files *s, struct str bytes)
{
	int rc;

	while ((rc = take_frame(&s->view, &bytes)) > 0)
		;
	return rc < 0 ? fail_state(s) : 0;
}

/* --- reading ------------------------------------------------------------------------------------ */

static int read_from(struct files *s, int64_t from, int64_t to, struct str *out)
{
	size_t n = (size_t)(to - from), got = 0;
	struct chunk *c = mem_alloc(sizeof(*c) + n + 1);

	c->next = s->view.chunks;
	s->view.chunks = c;
	while (got < n) {
		ssize_t r = pread(s->view.fd, c->bytes + got, n - got, from + (int64_t)got);

		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return files_fail(s, -errno, ".pawl/state");
		if (r == 0)
			/* a writer is cutting off a dead process's half-written frame */
			break;
		got += (size_t)r;
	}
	*out = str_n(c->bytes, got);
	return 0;
}

static int take_head(struct files *s, struct str *bytes)
{
	struct view *v = &s->view;
	struct head h;

	if (bytes->n < sizeof(h) || memcmp(bytes->p, MAGIC, sizeof(MAGIC) - 1) != 0)
		return store_fail(&s->base.env, STORE_FOREIGN, "use another folder",
				  "%s/.pawl/state is not a file of pawl", s->path);
	memcpy(&h, bytes->p, sizeof(h));
	*bytes = str_n(bytes->p + sizeof(h), bytes->n - sizeof(h));
	if (h.order != ORDER || h.version > FILES_FORMAT)
		return store_fail(
			&s->base.env, STORE_NEWER, "use that version of pawl, or a later one",
			"%s was written by a newer pawl, or on a machine with another byte order",
			s->path);
	if (str_sum(0, &h, offsetof(struct head, check)) != h.check)
		return fail_state(s);
	memcpy(v->id, h.id, FILES_ID);
	v->log_base = v->log_size = h.log_base;
	v->check = h.check;
	v->end = (int64_t)sizeof(h);
	return 0;
}

int files_load(struct files *s)
{
	struct view *v = &s->view;
	struct str bytes;
	struct stat st;
	int rc;

	files_view_free(v);
	s->folder = 0;
	v->fd = openat(s->own, "state", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (v->fd < 0) /* ENXIO: a socket */
		return errno == ENOENT
			       ? 1
			       : files_fail(s, errno == ENXIO ? -EINVAL : -errno, ".pawl/state");
	if (fstat(v->fd, &st))
		return files_fail(s, -errno, ".pawl/state");
	if (!S_ISREG(st.st_mode))
		return files_fail(s, -EINVAL, ".pawl/state");
	v->linked = st.st_nlink > 1;
	if ((uint64_t)st.st_size > FILES_STATE_MAX)
		return fail_state(s);
	v->ino = st.st_ino;
	rc = read_from(s, 0, st.st_size, &bytes);
	if (rc == 0)
		rc = take_head(s, &bytes);
	if (rc == 0 && take_frame(v, &bytes) != 1)
		rc = fail_state(s);
	v->first = v->end;
	return rc < 0 ? rc : take_frames(s, bytes);
}

/* Reports that another process has removed the queue, or the whole folder. */
static int fail_no_state(struct files *s)
{
	struct stat own;

	if (fstat(s->own, &own) || !own.st_nlink)
		return files_fail(s, -ENOENT, ".pawl");
	return store_fail(&s->base.env, STORE_ABSENT, "to make a new one: pawl init",
			  "another process has removed the queue in %s", s->path);
}

int files_refresh(struct files *s, bool *changed)
{
	struct view *v = &s->view;
	int64_t seq = v->seq;
	struct str bytes;
	struct stat st;
	int rc = 0;

	if (fstatat(s->own, "state", &st, AT_SYMLINK_NOFOLLOW))
		return errno == ENOENT ? fail_no_state(s) : files_fail(s, -errno, ".pawl/state");
	if (v->fd < 0 || st.st_ino != v->ino || v->n_found > FOUND_MAX) {
		if (changed)
			*changed = true;
		rc = files_load(s);
		return rc > 0 ? fail_no_state(s) : rc;
	}
	v->linked = st.st_nlink > 1;
	if (st.st_size > v->end) {
		rc = read_from(s, v->end, st.st_size, &bytes);
		if (rc == 0)
			rc = take_frames(s, bytes);
	}
	if (changed)
		*changed = v->seq != seq;
	return rc;
}

/* --- writing ------------------------------------------------------------------------------------ */

static int write_at(int fd, int64_t at, struct str bytes)
{
	while (bytes.n) {
		ssize_t n = pwrite(fd, bytes.p, bytes.n, at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		at += n;
		bytes = str_n(bytes.p + n, bytes.n - (size_t)n);
	}
	return 0;
}

/* Fills in the frame's head, for which `b` has room at its start. */
static void files_state_seal(struct files *s, struct buf *b, struct frame *f, uint64_t seed)
{
	f->size = b->n - sizeof(*f);
	f->at = s->now > s->view.at ? s->now : s->view.at;
	f->anchor = s->anchor;
	f->check = frame_check(f, str_n(b->p + sizeof(*f), (size_t)f->size), seed);
	memcpy(b->p, f, sizeof(*f));
}

static int fail_write(struct files *s, int err, char applied)
{
	int rc = files_fail(s, err, ".pawl/state");

	s->base.env.err->applied = applied;
	return rc;
}

static int sync_data(int fd)
{
	int r;

	do
		r = fdatasync(fd);
	while (r && errno == EINTR);
	return r ? -errno : 0;
}

int files_sync_state(struct files *s)
{
	return sync_data(s->view.fd);
}

static int files_state_append(struct files *s, struct buf *b, struct frame *f)
{
	struct view *v = &s->view;
	int fd = beneath_open(s->own, "state", O_WRONLY, 0), r = 0;
	char applied = 'n';
	struct stat st;

	if (fd < 0)
		return files_fail(s, fd, ".pawl/state");
	if (b->full) {
		close(fd);
		return files_fail(s, -EFBIG, ".pawl/state");
	}
	files_state_seal(s, b, f, v->check);
	if (fstat(fd, &st))
		r = -errno;
	/* never write to a file that another program put there or linked */
	else if (st.st_ino != v->ino || st.st_nlink != 1)
		r = -EINVAL;
	else if (st.st_size > v->end) /* a dead process left a half-written frame */
		r = ftruncate(fd, v->end) ? -errno : 0;
	if (!r)
		r = write_at(fd, v->end, buf_str(b));
	if (r) {
		if (r != -EINVAL)
			(void)!ftruncate(fd, v->end);
	} else if (!s->base.env.opt.relaxed && (r = sync_data(fd))) {
		applied = '?'; /* readers can see it, but it may not be on disk */
	}
	close(fd);
	return r ? fail_write(s, r, applied) : 0;
}

int files_append(struct files *s, struct ent **items, size_t n, struct str log)
{
	struct frame f = { .seq = s->view.seq + 1, .items = (uint32_t)n, .log = log.n };
	struct buf b = BUF_MAX(UINT32_MAX);
	int rc;

	buf_add(&b, &f, sizeof(f));
	for (size_t i = 0; i < n; i++)
		files_encode(&b, items[i]);
	buf_adds(&b, log);
	rc = files_state_append(s, &b, &f);
	buf_free(&b);
	return rc;
}

int files_append_end(struct files *s)
{
	struct frame f = { .seq = s->view.seq + 1, .flags = QUEUE_ENDS };
	struct buf b = BUF_MAX(UINT32_MAX);
	int rc;

	buf_add(&b, &f, sizeof(f));
	rc = files_state_append(s, &b, &f);
	buf_free(&b);
	return rc;
}

/* Must the snapshot keep the body? Yes, if another program may remove the file (a lock), or if the
 * file does not have all fields. */
static bool keeps_body(struct files *s, const struct ent *e)
{
	return e->kind == FILE_NONE || e->kind == FILE_LOCK || !e->commit ||
	       (e->has_body && !files_untouched(s, e));
}

static int put_snapshot(struct files *s, struct buf *b, struct frame *f, int64_t now)
{
	for (size_t i = 0; i < s->view.n; i++) {
		struct ent scratch, copy;
		const struct ent *e = files_committed(files_peek(&s->view, i, &scratch));
		int rc = 0;

		if (!e || e->dropped || index_gone(&e->ix, now))
			continue;
		copy = *e;
		copy.old = (struct replaced){ 0 };
		copy.has_body = keeps_body(s, e);
		if (copy.has_body && !e->has_body)
			rc = files_body(s, e, &s->view.arena, &copy.body);
		if (rc)
			return rc;
		files_encode(b, &copy);
		f->items++;
	}
	return b->full ? files_fail(s, -EFBIG, ".pawl/state") : 0;
}

int files_write_state(struct files *s, int fd, int64_t log_base)
{
	struct head h = {
		.magic = MAGIC, .order = ORDER, .version = FILES_FORMAT, .log_base = log_base
	};
	struct frame f = { .seq = s->view.seq, .flags = SNAPSHOT };
	struct buf b = BUF_MAX(UINT32_MAX);
	int rc;

	memcpy(h.id, s->view.id, FILES_ID);
	h.check = str_sum(0, &h, offsetof(struct head, check));
	buf_add(&b, &f, sizeof(f));
	rc = put_snapshot(s, &b, &f, s->changing ? s->now : 0);
	if (rc == 0) {
		files_state_seal(s, &b, &f, h.check);
		rc = write_at(fd, 0, str_n((const char *)&h, sizeof(h)));
		if (rc == 0)
			rc = write_at(fd, sizeof(h), buf_str(&b));
		if (rc < 0)
			rc = files_fail(s, rc, ".pawl/state");
	}
	buf_free(&b);
	return rc;
}

/* --- view ------------------------------------------------------------------------------------- */

/* The records in memory are sorted by key, so a lookup is a binary search. */

struct ent *files_at(struct view *v, size_t i)
{
	struct slot *slot = &v->v[i];

	if (!slot->e) {
		slot->e = arena_new(&v->arena, struct ent);
		files_decode(v, slot->raw, slot->e);
	}
	return slot->e;
}

const struct ent *files_peek(struct view *v, size_t i, struct ent *scratch)
{
	const struct slot *slot = &v->v[i];

	if (slot->e || files_raw_has_lists(slot->raw))
		return files_at(v, i);
	files_decode(v, slot->raw, scratch);
	return scratch;
}

static struct str key_at(const void *list, size_t i)
{
	const struct view *v = list;

	return v->v[i].e ? v->v[i].e->key : files_raw_key(v->v[i].raw);
}

struct ent *files_find(struct view *v, struct str key)
{
	bool found;
	size_t i = search_key(v, v->n, key, key_at, &found);

	return found ? files_at(v, i) : NULL;
}

struct ent *files_set(struct view *v, struct ent *e)
{
	bool found;
	size_t i = search_key(v, v->n, e->key, key_at, &found);
	struct ent *old = found ? files_at(v, i) : NULL;

	if (!found) {
		if (v->n == v->room)
			v->v = mem_grow(v->v, (v->room = v->room * 2 + 64) * sizeof(*v->v));
		memmove(v->v + i + 1, v->v + i, (v->n++ - i) * sizeof(*v->v));
	}
	v->v[i] = (struct slot){ .e = e };
	return old;
}

void files_unset(struct view *v, struct str key)
{
	bool found;
	size_t i = search_key(v, v->n, key, key_at, &found);

	if (found)
		memmove(v->v + i, v->v + i + 1, (--v->n - i) * sizeof(*v->v));
}

static struct str files_view_keep(struct view *v, struct str s)
{
	return s.n ? arena_str(&v->arena, s) : (struct str){ 0 };
}

struct ent *files_ent_copy(struct view *v, const struct ent *e)
{
	struct ent *c = arena_new(&v->arena, struct ent);

	*c = *e;
	c->key = files_view_keep(v, e->key);
	c->ix.id = files_view_keep(v, e->ix.id);
	c->ix.holder = files_view_keep(v, e->ix.holder);
	c->ix.token = files_view_keep(v, e->ix.token);
	c->ix.parent = files_view_keep(v, e->ix.parent);
	c->ix.type = files_view_keep(v, e->ix.type);
	c->ix.labels = arena_strs(&v->arena, e->ix.labels);
	c->ix.depends = arena_strs(&v->arena, e->ix.depends);
	c->hot = files_view_keep(v, e->hot);
	c->body = files_view_keep(v, e->body);
	return c;
}

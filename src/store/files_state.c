/*
 * The state file: a head, then frames. The first frame is a snapshot of all records; each one after it is a
 * change, with the records that it put or dropped and its lines of the log. A frame counts if its check
 * sum, which goes on from the frame before, is right: what a dead process left half written does not.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/secret.h"
#include "store/files.h"

#define MAGIC "pawl files\n"
#define ORDER 0x01020304u
#define FOUND_MAX 10000 /* what was found in the folder takes memory: from here on it begins anew */

struct head {
	char magic[12];
	uint32_t order, version;
	char id[FILES_ID + 4];
	int64_t log_base;
	uint64_t check;
};

enum { SNAPSHOT = 1, QUEUE_ENDS = 2 };

struct frame {
	uint64_t size; /* of what follows */
	uint64_t check;
	int64_t seq;
	uint32_t flags, items;
	uint64_t log; /* bytes of it, at the end */
	int64_t at;
	struct anchor anchor;
};

enum { DROPPED = 1, ARCHIVED = 2, WITH_BODY = 4, STRANGER = 8, OLD_ARCHIVED = 16 };

/* A record; its bytes follow: key, id, holder, token, parent, type, lists, hot, body. */
struct item {
	int64_t eligible_at, updated_at, created_at, rev;
	uint64_t commit;
	struct stamp stamp, old;
	int32_t class_rank, priority;
	uint32_t lists, hot, body;
	uint16_t key, id, holder, token, parent, type, labels, depends;
	uint8_t lane, status, kind, flags;
	uint8_t old_kind, none[7];
};

struct chunk {
	struct chunk *next;
	char bytes[];
};

/* --- small things ------------------------------------------------------------------------------- */

static uint64_t mix(uint64_t h, const void *p, size_t n)
{
	const char *at = p;
	uint64_t word;

	for (; n >= 8; at += 8, n -= 8) {
		memcpy(&word, at, 8);
		h = (h ^ word) * 0x9e3779b97f4a7c15u;
		h ^= h >> 29;
	}
	for (; n; at++, n--)
		h = (h ^ (unsigned char)*at) * 0x100000001b3u;
	return h ^ h >> 32;
}

uint64_t files_random(void)
{
	return (uint64_t)random_below(UINT32_MAX) << 32 | random_below(UINT32_MAX);
}

void files_new_id(char id[FILES_ID + 1])
{
	snprintf(id, FILES_ID + 1, "%016llx%016llx", (unsigned long long)files_random(),
		 (unsigned long long)files_random());
}

int files_fail(struct files *s, int err, const char *what)
{
	const struct store_env *env = &s->base.env;

	switch (err) {
	case -EACCES:
	case -EPERM:
	case -EROFS:
		return store_fail(env, STORE_READONLY, "check the owner and mode of the folder",
				  "may not write to %s in %s: %s", what, s->path, strerror(-err));
	case -ENOSPC:
	case -EDQUOT:
		return store_fail(env, STORE_FULL, "make room on the device",
				  "no room left for %s in %s: %s", what, s->path, strerror(-err));
	case -ENOENT:
	case -ENOTDIR:
		return store_fail(env, STORE_UNREACHABLE, NULL, "%s in %s is gone", what, s->path);
	case -ELOOP:
	case -EINVAL:
	case -EISDIR:
		return store_fail(env, STORE_FOREIGN, "move it away",
				  "%s in %s is not what pawl put there", what, s->path);
	default:
		return store_fail(env, STORE_IO, NULL, "%s in %s: %s", what, s->path,
				  strerror(-err));
	}
}

static int damaged(struct files *s)
{
	return store_fail(
		&s->base.env, STORE_CORRUPT,
		"keep a copy of the folder; without .pawl/state `pawl init` takes the tasks from "
		"their files",
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

/* --- records in bytes --------------------------------------------------------------------------- */

static struct str cut(struct str *rest, size_t n)
{
	struct str s = str_n(rest->p, n);

	*rest = str_n(rest->p + n, rest->n - n);
	return s;
}

static int decode_list(struct view *v, struct str *rest, size_t n, struct strs *out)
{
	*out = (struct strs){ n ? arena_array(&v->arena, struct str, n) : NULL, n };
	for (size_t i = 0; i < n; i++) {
		uint32_t len;

		if (rest->n < sizeof(len))
			return -1;
		memcpy(&len, cut(rest, sizeof(len)).p, sizeof(len));
		if (rest->n < len)
			return -1;
		out->v[i] = cut(rest, len);
	}
	return 0;
}

static void decode_plain(const struct item *it, struct ent *e)
{
	e->ix = (struct index){ .lane = it->lane,
				.status = it->status,
				.class_rank = it->class_rank,
				.priority = it->priority,
				.eligible_at = it->eligible_at,
				.updated_at = it->updated_at,
				.created_at = it->created_at };
	e->rev = it->rev;
	e->commit = it->commit;
	e->stamp = it->stamp;
	e->old = (struct replaced){ it->old, it->old_kind, it->flags & OLD_ARCHIVED };
	e->kind = it->kind < FILE_KINDS ? it->kind : FILE_NONE;
	e->dropped = it->flags & DROPPED;
	e->archived = it->flags & ARCHIVED;
	e->has_body = it->flags & WITH_BODY;
	e->stranger = it->flags & STRANGER;
}

static int decode(struct view *v, struct str *rest, struct ent *e)
{
	struct item it;
	struct str lists;
	uint64_t need;

	if (rest->n < sizeof(it))
		return -1;
	memcpy(&it, cut(rest, sizeof(it)).p, sizeof(it));
	need = (uint64_t)it.key + it.id + it.holder + it.token + it.parent + it.type + it.lists +
	       it.hot + it.body;
	if (rest->n < need)
		return -1;
	decode_plain(&it, e);
	e->key = cut(rest, it.key);
	e->ix.id = cut(rest, it.id);
	e->ix.holder = cut(rest, it.holder);
	e->ix.token = cut(rest, it.token);
	e->ix.parent = cut(rest, it.parent);
	e->ix.type = cut(rest, it.type);
	lists = cut(rest, it.lists);
	e->hot = cut(rest, it.hot);
	e->body = cut(rest, it.body);
	if (!it.lists)
		return it.labels || it.depends ? -1 : 0;
	return decode_list(v, &lists, it.labels, &e->ix.labels) ||
			       decode_list(v, &lists, it.depends, &e->ix.depends)
		       ? -1
		       : 0;
}

static size_t list_size(struct strs list)
{
	size_t n = list.n * sizeof(uint32_t);

	for (size_t i = 0; i < list.n; i++)
		n += list.v[i].n;
	return n;
}

static void encode_list(struct buf *b, struct strs list)
{
	for (size_t i = 0; i < list.n; i++) {
		uint32_t len = (uint32_t)list.v[i].n;

		buf_add(b, &len, sizeof(len));
		buf_adds(b, list.v[i]);
	}
}

static void encode(struct buf *b, const struct ent *e)
{
	const struct index *ix = &e->ix;
	struct item it = { .eligible_at = ix->eligible_at,
			   .updated_at = ix->updated_at,
			   .created_at = ix->created_at,
			   .rev = e->rev,
			   .commit = e->commit,
			   .stamp = e->stamp,
			   .old = e->old.stamp,
			   .old_kind = e->old.kind,
			   .class_rank = ix->class_rank,
			   .priority = ix->priority,
			   .lists = (uint32_t)(list_size(ix->labels) + list_size(ix->depends)),
			   .hot = (uint32_t)e->hot.n,
			   .body = e->has_body ? (uint32_t)e->body.n : 0,
			   .key = (uint16_t)e->key.n,
			   .id = (uint16_t)ix->id.n,
			   .holder = (uint16_t)ix->holder.n,
			   .token = (uint16_t)ix->token.n,
			   .parent = (uint16_t)ix->parent.n,
			   .type = (uint16_t)ix->type.n,
			   .labels = (uint16_t)ix->labels.n,
			   .depends = (uint16_t)ix->depends.n,
			   .lane = (uint8_t)ix->lane,
			   .status = (uint8_t)ix->status,
			   .kind = e->kind };

	it.flags = (uint8_t)((e->dropped ? DROPPED : 0) | (e->archived ? ARCHIVED : 0) |
			     (e->has_body ? WITH_BODY : 0) | (e->stranger ? STRANGER : 0) |
			     (e->old.archived ? OLD_ARCHIVED : 0));
	buf_add(b, &it, sizeof(it));
	buf_adds(b, e->key);
	buf_adds(b, ix->id);
	buf_adds(b, ix->holder);
	buf_adds(b, ix->token);
	buf_adds(b, ix->parent);
	buf_adds(b, ix->type);
	encode_list(b, ix->labels);
	encode_list(b, ix->depends);
	buf_adds(b, e->hot);
	if (e->has_body)
		buf_adds(b, e->body);
}

/* --- frames ------------------------------------------------------------------------------------- */

/* A snapshot was synced before it got its name: only its head is summed up. */
static uint64_t frame_check(const struct frame *f, struct str payload, uint64_t seed)
{
	struct frame plain = *f;

	plain.check = 0;
	seed = mix(seed ^ 0x70617766u, &plain, sizeof(plain));
	return f->flags & SNAPSHOT ? seed : mix(seed, payload.p, payload.n);
}

static void add_log(struct view *v, struct str bytes)
{
	struct log_part *p = arena_new(&v->arena, struct log_part);

	p->bytes = bytes;
	*(v->log_end ? v->log_end : &v->log) = p;
	v->log_end = &p->next;
	v->log_size += (int64_t)bytes.n;
}

static size_t item_size(const struct item *it)
{
	return sizeof(*it) + it->key + it->id + it->holder + it->token + it->parent + it->type +
	       (size_t)it->lists + it->hot + it->body;
}

struct str files_raw_key(const char *raw)
{
	uint16_t n;

	memcpy(&n, raw + offsetof(struct item, key), sizeof(n));
	return str_n(raw + sizeof(struct item), n);
}

bool files_raw_has_lists(const char *raw)
{
	uint32_t n;

	memcpy(&n, raw + offsetof(struct item, lists), sizeof(n));
	return n != 0;
}

enum file_kind files_raw_kind(const char *raw)
{
	return (enum file_kind)raw[offsetof(struct item, kind)];
}

void files_decode(struct view *v, const char *raw, struct ent *out)
{
	struct item it;
	struct str rest;

	memcpy(&it, raw, sizeof(it));
	rest = str_n(raw, item_size(&it));
	*out = (struct ent){ 0 };
	if (decode(v, &rest, out))
		out->bad = "its record in .pawl/state is damaged";
}

/* Only where each begins is noted. */
static int take_snapshot(struct view *v, uint32_t n, struct str payload)
{
	struct str last = { 0 };

	v->room = n + 64;
	v->v = mem_grow(v->v, v->room * sizeof(*v->v));
	for (uint32_t i = 0; i < n; i++) {
		struct item it;
		struct str key;

		if (payload.n < sizeof(it))
			return -1;
		memcpy(&it, payload.p, sizeof(it));
		if (payload.n < item_size(&it))
			return -1;
		key = files_raw_key(payload.p);
		if (i && str_cmp(last, key) >= 0)
			return -1;
		last = key;
		v->v[v->n++] = (struct slot){ .raw = cut(&payload, item_size(&it)).p };
	}
	return 0;
}

static int take_items(struct view *v, const struct frame *f, struct str payload)
{
	struct ent *all;

	if (f->items > payload.n / sizeof(struct item))
		return -1;
	if (f->flags & SNAPSHOT)
		return take_snapshot(v, f->items, payload);
	all = arena_array(&v->arena, struct ent, f->items);
	for (uint32_t i = 0; i < f->items; i++) {
		if (decode(v, &payload, &all[i]))
			return -1;
		all[i].fresh = true;
		files_set(v, &all[i]);
	}
	return 0;
}

/* 1: a frame; 0: no whole one; -1: damaged */
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
	return rc < 0 ? damaged(s) : 0;
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
			break; /* somebody is just cutting off what a dead process left */
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
		return store_fail(&s->base.env, STORE_FOREIGN, "name another folder",
				  "%s/.pawl/state is not pawl's", s->path);
	memcpy(&h, cut(bytes, sizeof(h)).p, sizeof(h));
	if (h.order != ORDER || h.version > FILES_FORMAT)
		return store_fail(&s->base.env, STORE_NEWER, "use that pawl, or one as new",
				  "%s was written by a newer pawl, or on another kind of machine",
				  s->path);
	if (mix(0, &h, offsetof(struct head, check)) != h.check)
		return damaged(s);
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
	if (v->fd < 0)
		return errno == ENOENT ? 1 : files_fail(s, -errno, ".pawl/state");
	if (fstat(v->fd, &st))
		return files_fail(s, -errno, ".pawl/state");
	if (!S_ISREG(st.st_mode))
		return files_fail(s, -EINVAL, ".pawl/state");
	if ((uint64_t)st.st_size > FILES_STATE_MAX)
		return damaged(s);
	v->ino = st.st_ino;
	rc = read_from(s, 0, st.st_size, &bytes);
	if (rc == 0)
		rc = take_head(s, &bytes);
	if (rc == 0 && take_frame(v, &bytes) != 1)
		rc = damaged(s);
	v->first = v->end;
	return rc < 0 ? rc : take_frames(s, bytes);
}

/* Somebody has removed the queue, or the whole folder. */
static int fail_no_state(struct files *s)
{
	struct stat own;

	if (fstat(s->own, &own) || !own.st_nlink)
		return files_fail(s, -ENOENT, ".pawl");
	return store_fail(&s->base.env, STORE_ABSENT, "pawl init", "the queue in %s was removed",
			  s->path);
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

/* Room for the head is left at the front of `b`. */
static void seal(struct files *s, struct buf *b, struct frame *f, uint64_t seed)
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

static int append(struct files *s, struct buf *b, struct frame *f)
{
	struct view *v = &s->view;
	int fd = openat(s->own, "state", O_WRONLY | O_NOFOLLOW | O_CLOEXEC), r = 0;
	char applied = 'n';
	struct stat st;

	if (fd < 0)
		return files_fail(s, -errno, ".pawl/state");
	if (b->full) {
		close(fd);
		return files_fail(s, -EFBIG, ".pawl/state");
	}
	seal(s, b, f, v->check);
	if (fstat(fd, &st))
		r = -errno;
	else if (st.st_size > v->end) /* what a dead process left half written */
		r = ftruncate(fd, v->end) ? -errno : 0;
	if (!r)
		r = write_at(fd, v->end, buf_str(b));
	if (r) {
		(void)!ftruncate(fd, v->end);
	} else if (!s->base.env.relaxed && fdatasync(fd)) {
		r = -errno; /* others can see it, and it may be on disk or not */
		applied = '?';
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
		encode(&b, items[i]);
	buf_adds(&b, log);
	rc = append(s, &b, &f);
	buf_free(&b);
	return rc;
}

int files_append_end(struct files *s)
{
	struct frame f = { .seq = s->view.seq + 1, .flags = QUEUE_ENDS };
	struct buf b = BUF_MAX(UINT32_MAX);
	int rc;

	buf_add(&b, &f, sizeof(f));
	rc = append(s, &b, &f);
	buf_free(&b);
	return rc;
}

/* Others may remove a lock, and a file that others wrote does not tell all. */
static bool keeps_body(const struct ent *e)
{
	return e->kind == FILE_NONE || e->kind == FILE_LOCK || !e->commit;
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
		copy.has_body = keeps_body(e);
		if (copy.has_body && !e->has_body)
			rc = files_body(s, e, &s->view.arena, &copy.body);
		if (rc)
			return rc;
		encode(b, &copy);
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
	h.check = mix(0, &h, offsetof(struct head, check));
	buf_add(&b, &f, sizeof(f));
	rc = put_snapshot(s, &b, &f, s->changing ? s->now : 0);
	if (rc == 0) {
		seal(s, &b, &f, h.check);
		rc = write_at(fd, 0, str_n((const char *)&h, sizeof(h)));
		if (rc == 0)
			rc = write_at(fd, sizeof(h), buf_str(&b));
		if (rc < 0)
			rc = files_fail(s, rc, ".pawl/state");
	}
	buf_free(&b);
	return rc;
}

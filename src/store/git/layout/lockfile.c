#include "store/git/layout/lockfile.h"

#include <errno.h>
#include <time.h>

#include "base/str.h"
#include "base/hex.h"
#include "base/when.h"
#include "store/git/git.h"

#define TAIL STR("_lock.yaml")
#define CLAIM_DIGITS 12
#define LOCKFILE_MAX (64u << 10)

/* --- names -------------------------------------------------------------------------------------- */

/* Is it an id that other programs write without its t? */
static bool is_numbered(struct str id)
{
	return id.n > 1 && id.p[0] == 't' && is_digit(id.p[1]);
}

struct str git_lockfile_name(struct arena *a, struct str id)
{
	struct str name = git_name(a, id);

	if (is_numbered(id))
		return arena_printf(a, "%.*s_lock.yaml", STRF(name));
	if (id.n && is_digit(id.p[0]))
		return arena_printf(a, "t%%%02x%.*s_lock.yaml", id.p[0], (int)name.n - 1,
				    name.p + 1);
	return arena_printf(a, "t%.*s_lock.yaml", STRF(name));
}

bool git_lockfile_named(struct arena *a, struct str name, struct str *id)
{
	if (!str_starts(name, STR("t")) || !str_ends(name, TAIL) || name.n == TAIL.n + 1)
		return false;
	name.n -= TAIL.n;
	if (!is_numbered(name))
		(void)str_cut_prefix(&name, STR("t"));
	return git_unname(a, name, id);
}

/* --- writing ------------------------------------------------------------------------------------ */

static void git_lockfile_add(struct buf *out, const char *key, json_t *v)
{
	yaml_add(out, str_c(key), v);
	json_decref(v);
}

static void add_text(struct buf *out, const char *key, struct str s)
{
	if (s.n)
		git_lockfile_add(out, key, json_stringn(s.p, s.n));
}

static void add_number(struct buf *out, const char *key, int64_t n)
{
	if (n)
		git_lockfile_add(out, key, json_integer(n));
}

static void add_time(struct buf *out, const char *key, int64_t ms, struct arena *a)
{
	if (ms)
		add_text(out, key, when_text(a, ms));
}

/* Writes the local time to the minute, as people do. */
static void add_minute(struct buf *out, const char *key, int64_t ms)
{
	time_t at = (time_t)(ms / 1000);
	struct tm tm;
	char text[40];

	if (localtime_r(&at, &tm) && strftime(text, sizeof(text), "%Y-%m-%d %H:%M", &tm))
		add_text(out, key, str_c(text));
}

static void add_id(struct buf *out, struct str id)
{
	int64_t n;

	if (is_numbered(id) && str_to_i64(str_n(id.p + 1, id.n - 1), &n))
		git_lockfile_add(out, "task_id", json_integer(n));
	else if (is_numbered(id))
		add_text(out, "task_id", str_n(id.p + 1, id.n - 1));
	else
		add_text(out, "task_id", id);
}

static struct str token_hex(struct str token, struct arena *a)
{
	struct buf b = BUF_MAX(2 * token.n + 1);
	struct str out;

	for (size_t i = 0; i < token.n; i++)
		buf_addf(&b, "%02x", (unsigned char)token.p[i]);
	out = arena_str(a, buf_str(&b));
	buf_free(&b);
	return out;
}

void git_lockfile_write(const struct git_lockfile *f, struct buf *out, struct arena *a)
{
	const struct lock *l = &f->lock;
	struct str hex = token_hex(l->token, a);

	add_id(out, f->id);
	add_text(out, "locked_by", l->holder);
	add_minute(out, "locked_at", l->acquired_at);
	add_text(out, "hostname", l->host);
	add_text(out, "claim_id", str_n(hex.p, hex.n < CLAIM_DIGITS ? hex.n : CLAIM_DIGITS));
	add_number(out, "fence", f->fence);
	add_time(out, "acquired_at", l->acquired_at, a);
	add_time(out, "expires_at", l->expires_at, a);
	add_number(out, "ttl", l->ttl);
	add_text(out, "token_sha256", hex);
	add_number(out, "manual", l->manual);
	add_number(out, "pid", l->pid);
	add_number(out, "pid_start", l->pid_start);
	add_text(out, "boot_id", l->boot_id);
	add_text(out, "mode", l->mode);
	add_text(out, "clock", f->clock);
}

/* --- reading ------------------------------------------------------------------------------------ */

struct reading {
	struct git_lockfile *out;
	struct yaml_fault *fault;
	struct arena *a;
	int64_t locked_at;
};

static int git_lockfile_refuse(struct reading *r, size_t line, const char *text)
{
	*r->fault = (struct yaml_fault){ line, str_c(text) };
	return -EBADMSG;
}

static struct str text_of(const json_t *v, struct arena *a)
{
	if (json_is_integer(v))
		return arena_printf(a, "%lld", (long long)json_integer_value(v));
	return arena_str(a, str_n(json_string_value(v), json_string_length(v)));
}

static struct str *text_at(struct git_lockfile *f, struct str key)
{
	const struct {
		const char *key;
		struct str *at;
	} texts[] = {
		{ "locked_by", &f->lock.holder }, { "hostname", &f->lock.host },
		{ "boot_id", &f->lock.boot_id },  { "mode", &f->lock.mode },
		{ "clock", &f->clock },
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		if (str_is(key, texts[i].key))
			return texts[i].at;
	return NULL;
}

static int64_t *number_at(struct git_lockfile *f, struct str key)
{
	const struct {
		const char *key;
		int64_t *at;
	} numbers[] = {
		{ "fence", &f->fence },
		{ "ttl", &f->lock.ttl },
		{ "manual", &f->lock.manual },
		{ "pid", &f->lock.pid },
		{ "pid_start", &f->lock.pid_start },
	};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		if (str_is(key, numbers[i].key))
			return numbers[i].at;
	return NULL;
}

static int64_t *time_at(struct reading *r, struct str key)
{
	if (str_is(key, "locked_at"))
		return &r->locked_at;
	if (str_is(key, "acquired_at"))
		return &r->out->lock.acquired_at;
	return str_is(key, "expires_at") ? &r->out->lock.expires_at : NULL;
}

/* Ignores unknown keys: other programs may use them. */
static int set_key(void *ctx, struct str key, json_t *v, size_t line)
{
	struct reading *r = ctx;
	struct str *text = text_at(r->out, key);
	int64_t *number = number_at(r->out, key), *time = time_at(r, key);

	if ((text || time || str_is(key, "token_sha256")) && !json_is_string(v) &&
	    !json_is_integer(v))
		return git_lockfile_refuse(r, line, "not a text");
	if (text)
		*text = text_of(v, r->a);
	if (number && !json_is_integer(v))
		return git_lockfile_refuse(r, line, "not a number");
	if (number)
		*number = json_integer_value(v);
	if (time && !when_parse(text_of(v, r->a), time))
		return git_lockfile_refuse(r, line, "not a time");
	if (str_is(key, "token_sha256") && !hex_bytes(text_of(v, r->a), &r->out->lock.token, r->a))
		return git_lockfile_refuse(r, line, "not a hash");
	return 0;
}

/* These keys decide who holds a lock, so a damaged line with one of them makes the file unreadable. Other
 * damaged lines are ignored. */
static bool git_lockfile_decides(struct str key)
{
	return str_is(key, "token_sha256") || str_is(key, "expires_at") || str_is(key, "fence") ||
	       str_is(key, "clock") || str_is(key, "locked_by");
}

/* Some programs write "pid: -", which is not YAML, or "---" at the end. So this reads each line by itself
 * and ignores the lines that cannot be read. It does not join continuation lines. */
static int read_lines(struct str text, struct reading *r)
{
	struct yaml_fault fault;
	struct reading one = { .out = r->out, .fault = &fault, .a = r->a };
	struct strs seen = { 0 };
	int rc = 0;

	while (!rc && text.n) {
		struct str line = str_cut(&text, '\n'), rest = line, key = str_cut(&rest, ':');

		if (!text_at(r->out, key) && !number_at(r->out, key) && !time_at(r, key) &&
		    !str_is(key, "token_sha256"))
			continue;
		if (strs_have(seen, key))
			return -EBADMSG;
		seen.v = arena_grow(r->a, seen.v, seen.n, sizeof(*seen.v));
		seen.v[seen.n++] = key;
		if (yaml_read(line, set_key, &one, &fault, r->a) && git_lockfile_decides(key))
			rc = -EBADMSG;
	}
	r->locked_at = one.locked_at;
	return rc;
}

int git_lockfile_read(struct str text, struct str id, struct git_lockfile *out,
		      struct yaml_fault *fault, struct arena *a)
{
	struct reading r = { .out = out, .fault = fault, .a = a };

	*out = (struct git_lockfile){ .id = id };
	if (text.n > LOCKFILE_MAX)
		return git_lockfile_refuse(&r, 1, "it is too large");
	if (yaml_read(text, set_key, &r, fault, a)) {
		*out = (struct git_lockfile){ .id = id };
		if (read_lines(text, &r) || !out->lock.holder.n)
			return -EBADMSG;
	}
	if (!out->lock.holder.n)
		return git_lockfile_refuse(&r, 1, "it does not name the holder (locked_by)");
	if (!out->lock.acquired_at)
		out->lock.acquired_at = r.locked_at;
	out->lock.foreign = !out->lock.token.n;
	return 0;
}

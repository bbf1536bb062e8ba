/* One file of the keyring: its name and its content. */
#include "base/fs.h"
#include "base/secret.h"
#include "client/keyring_private.h"
#include "client/line.h"

/* --- contents ------------------------------------------------------------------------------ */

void key_describe(struct buf *b, const struct keyring *k, struct str task, struct str token)
{
	line_add(b, "queue", k->queue);
	if (*k->id)
		line_add(b, "queue_id", str_c(k->id));
	if (*k->origin)
		line_add(b, "origin", str_c(k->origin));
	line_add(b, "task", task);
	line_add(b, "agent", k->agent);
	line_add(b, "run", k->run);
	line_add(b, "work_tree", k->worktree);
	line_add(b, "home", k->home);
	line_add(b, "token", token);
}

bool key_read(const char *path, struct key *out, struct arena *a)
{
	struct str text;

	*out = (struct key){ 0 };
	if (fs_read(a, path, KEY_FILE_MAX, &text))
		return false;
	while (text.n) {
		struct str value = str_cut(&text, '\n'), name = str_cut(&value, '=');

		if (str_is(name, "queue"))
			out->queue = line_value(value, a);
		else if (str_is(name, "queue_id"))
			out->id = line_value(value, a);
		else if (str_is(name, "origin"))
			out->origin = line_value(value, a);
		else if (str_is(name, "run"))
			out->run = line_value(value, a);
		else if (str_is(name, "work_tree"))
			out->worktree = line_value(value, a);
		else if (str_is(name, "home"))
			out->home = line_value(value, a);
		else if (str_is(name, "task"))
			out->task = line_value(value, a);
		else if (str_is(name, "agent"))
			out->agent = line_value(value, a);
		else if (str_is(name, "token"))
			out->token = value;
		else if (str_is(name, "fence") && !str_to_i64(value, &out->fence))
			return false;
	}
	return token_valid(out->token);
}

/* --- names --------------------------------------------------------------------------------- */

/* Ids of tasks ignore case. */
static void add_small(struct buf *b, struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		buf_addc(b, s.p[i] >= 'A' && s.p[i] <= 'Z' ? (char)(s.p[i] + 32) : s.p[i]);
}

static void add_holder(struct buf *b, const struct keyring *k, enum key_by by, struct str task)
{
	buf_adds(b, by == KEY_BY_ID ? str_c(k->id) : k->queue);
	if (by == KEY_BY_ID) /* all ids have the same length; the label has the address */
		buf_adds(b, str_c(k->origin));
	buf_addc(b, '\0');
	add_small(b, task);
	buf_addc(b, '\0');
	buf_adds(b, k->agent);
	buf_addc(b, '\0');
	buf_adds(b, k->run);
}

struct str key_head(const struct keyring *k, struct str task)
{
	struct buf b = BUF_MAX(KEY_FILE_MAX);
	struct str head;

	add_holder(&b, k, KEY_BY_ID, task);
	head = hash_hex(k->arena, buf_str(&b));
	buf_free(&b);
	return str_n(head.p, KEY_HEAD);
}

struct str key_name(const struct keyring *k, enum key_by by, struct str task, struct str filter)
{
	struct buf b = BUF_MAX(KEY_FILE_MAX);
	struct str name, head;

	add_holder(&b, k, by, task);
	buf_addc(&b, '\0');
	buf_adds(&b, k->worktree);
	if (filter.n)
		buf_addc(&b, '\0');
	buf_adds(&b, filter);
	name = hash_hex(k->arena, buf_str(&b));
	buf_free(&b);
	if (by == KEY_BY_LABEL)
		return name;
	head = key_head(k, task);
	return arena_printf(k->arena, "%.*s%s", STRF(head),
			    arena_cstr(k->arena, str_n(name.p, name.n - KEY_HEAD)));
}

char *key_path(const struct keyring *k, struct str name, const char *ending)
{
	struct str file = arena_printf(k->arena, "%.*s%s", STRF(name), ending);

	return fs_join(k->arena, str_c(k->dir), file);
}

char *key_saved(const struct keyring *k, enum key_by by, struct str task)
{
	return key_path(k, key_name(k, by, task, STR("")), ".token");
}

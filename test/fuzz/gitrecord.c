/*
 * Data from a git server or a clone: the bytes of a commit, an entry of the memo, a record as a
 * file. The first byte chooses one. It is refused, or is a state that can be written and read
 * again.
 */
#include "kit.h"
#include "store/git/git.h"

#define PACKED_MAX (64u << 20)

static struct str packed(const struct git_state *st, struct arena *a)
{
	struct buf b = BUF_MAX(PACKED_MAX);
	struct str out;

	git_state_pack(&b, st, a);
	CHECK(!b.full);
	out = arena_str(a, buf_str(&b));
	buf_free(&b);
	return out;
}

/* No move leads to a ref outside. */
static void check_moves(const struct git_state *st)
{
	for (size_t i = 0; i < st->n_moves; i++) {
		struct str name = st->moves[i].name;

		CHECK(str_is(name, "base") || str_cut_prefix(&name, STR("t/")));
		CHECK(!memchr(str_p(name), '/', name.n) && !str_starts(name, STR(".")));
	}
}

static void check_state(const struct git_state *st, struct arena *a)
{
	struct str bytes = packed(st, a);
	struct git_state again;

	CHECK(st->stamp > 0 && st->rec.ix.status >= 0 && st->rec.ix.status <= 15);
	check_moves(st);
	CHECK(git_state_unpack(bytes, &again, a));
	CHECK(str_eq(packed(&again, a), bytes));
}

static void check_commit(struct str bytes, struct arena *a)
{
	struct git_state st;

	if (git_commit_parse(bytes, &st, a))
		check_state(&st, a);
}

static void check_memo(struct str bytes, struct arena *a)
{
	struct git_state st;

	if (git_state_unpack(bytes, &st, a))
		check_state(&st, a);
}

static void check_record(struct str bytes, struct arena *a)
{
	struct record r, again;
	struct str text;

	if (!git_record_read(bytes, &r, a))
		return;
	text = git_record_text(&r, a);
	CHECK(git_record_read(text, &again, a));
	CHECK(str_eq(git_record_text(&again, a), text));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const checks[])(struct str, struct arena *) = { check_commit, check_memo,
								      check_record };
	struct arena a = { 0 };

	if (!size)
		return 0;
	checks[data[0] % 3](str_n((const char *)data + 1, size - 1), &a);
	arena_free(&a);
	return 0;
}

/*
 * A queue in a store that others write to. The input is pieces: the first byte of each chooses its
 * kind (a key, the hot part, the body, a line of the log), the second is its length. For any bytes
 * in the store: the list for shell completion has lines of ids and nothing that a shell could run;
 * every task that an answer shows could be pawl's own; doctor's words are harmless, and records
 * that it names can be removed.
 */
#include "queue.h"
#include "cmd/command.h"
#include "core/validate.h"
#include "queue/queue_private.h"
#include "format/answer_form.h"

#define RECORDS 8

struct forged {
	struct record rec[RECORDS];
	size_t n;
	struct entry line[RECORDS];
	size_t lines;
};

/* --- the foreign content --------------------------------------------------------------------------- */

static struct str next_piece(const uint8_t **p, size_t *left, uint8_t *kind)
{
	struct str s;
	size_t n;

	*kind = (*p)[0];
	n = (*p)[1] < *left - 2 ? (*p)[1] : *left - 2;
	s = str_n((const char *)*p + 2, n);
	*p += 2 + n;
	*left -= 2 + n;
	return s;
}

static void forge(struct forged *f, const uint8_t *data, size_t size)
{
	while (size >= 2 && f->n < RECORDS && f->lines < RECORDS) {
		uint8_t kind;
		struct str s = next_piece(&data, &size, &kind);
		struct record *r = &f->rec[f->n ? f->n - 1 : 0];

		if (kind % 4 == 0) {
			r = &f->rec[f->n++];
			*r = (struct record){ .key = s, .body_changed = true };
			if (kind & 4 || str_starts(s, STR("task/")))
				r->ix = (struct index){ .lane = LANE_READY,
							.status = READY,
							.class_rank = EXPEDITE,
							.id = s };
		} else if (kind % 4 == 1) {
			r->hot = s;
		} else if (kind % 4 == 2) {
			r->body = s;
		} else {
			f->line[f->lines++] = (struct entry){ .at = 1, .key = r->key, .data = s };
		}
	}
}

static int put_forged(struct edit *e, void *ctx)
{
	struct forged *f = ctx;

	for (size_t i = 0; i < f->n; i++)
		if (f->rec[i].key.n)
			edit_put(e, &f->rec[i]);
	for (size_t i = 0; i < f->lines; i++)
		edit_log_at(e, f->line[i].at, f->line[i].key, f->line[i].data);
	return 0;
}

/* --- the invariants --------------------------------------------------------------------------------- */

/* The lines from which the completions of all shells are made. */
static void check_words(const struct answer *ans, struct arena *a)
{
	struct buf out = BUF_MAX(1 << 20);
	struct view v = { .out = &out, .arena = a, .quiet = true };
	struct reply r = { .ans = *ans };
	struct str rest;

	cmd_list.show(&r, &v);
	rest = buf_str(&out);
	CHECK(!rest.n || rest.p[rest.n - 1] == '\n');
	while (rest.n)
		CHECK(!id_fault(str_cut(&rest, '\n')));
	buf_free(&out);
}

static void ask(struct queue *q, enum op op, struct arena *a)
{
	struct request rq = { .op = op };
	struct answer ans = { 0 };

	GIVE(&rq, agent, STR("ann"));
	if (op == OP_TAKE)
		GIVE(&rq, new_token, STR("a token"));
	queue_call(q, &rq, &ans, a);
	CHECK(ans.code == SUCCESS || ans.message.n);
	CHECK(!answer_fault(&ans, a));
	CHECK(fuzz_harmless(ans.message) && fuzz_harmless(ans.hint));
	if (op == OP_LIST) {
		CHECK(ans.code == SUCCESS);
		check_words(&ans, a);
	}
}

struct findings {
	struct arena *arena;
	struct strs remove;
};

static void find(void *ctx, enum check_level level, const char *what, struct str text,
		 struct str fix)
{
	struct findings *f = ctx;
	const struct str way = STR("pawl remove "); /* the only one, or after doctor --fix */
	const char *at = fix.n ? memmem(fix.p, fix.n, way.p, way.n) : NULL;
	struct str name;

	(void)what, (void)level;
	CHECK(fuzz_harmless(text) && fuzz_harmless(fix));
	if (!at)
		return;
	at += way.n;
	name = (struct str){ at, (size_t)(fix.p + fix.n - at) };
	f->remove = arena_append(f->arena, f->remove, arena_str(f->arena, str_cut(&name, ' ')));
}

/* Another agent's lock of the whole queue, or an emergency, refuses the removal like any change. */
static bool remove_all(struct queue *q, const struct findings *f, struct arena *a)
{
	bool barred = false;

	for (size_t i = 0; i < f->remove.n; i++) {
		struct request rq = { .op = OP_REMOVE };
		struct answer ans = { 0 };

		GIVE(&rq, agent, STR("ann"));
		GIVE(&rq, id, f->remove.v[i]);
		GIVE(&rq, force, 1);
		queue_call(q, &rq, &ans, a);
		CHECK(ans.code == SUCCESS || ans.message.n);
		barred |= ans.barred || ans.code == API_ERROR;
	}
	return barred;
}

/* An unusable lock makes the first round fail, and is removed in it. */
static void check_removal(struct queue *q, struct arena *a)
{
	struct answer ans = { 0 };
	bool barred = false;

	for (int round = 0; round < 3; round++) {
		struct findings f = { .arena = a };

		CHECK(queue_check(q, find, &f, &ans, a) == SUCCESS);
		CHECK(round < 2 || barred || !f.remove.n);
		barred = remove_all(q, &f, a);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const enum op ops[] = { OP_LIST, OP_LOG,  OP_NEXT, OP_OVERVIEW, OP_TYPED,
				       OP_TAKE, OP_LIST, OP_LOG,  OP_EMERGENCY };
	struct arena a = { 0 };
	struct forged f = { 0 };
	struct change c = { .fn = put_forged, .ctx = &f };
	struct queue *q = fuzz_queue(&a);

	forge(&f, data, size);
	CHECK(q->store->ops->modify(q->store, &c, 1) == 0);
	for (size_t i = 0; i < sizeof(ops) / sizeof(*ops); i++)
		ask(q, ops[i], &a);
	check_removal(q, &a);
	ask(q, OP_LIST, &a);
	queue_close(q);
	arena_free(&a);
	return 0;
}

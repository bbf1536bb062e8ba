/* Reads a record from its row, and remembers the records of a change. */
#include "store/postgres/postgres.h"

#define BODY_MAX (17u << 20) /* PG_JOIN reads at most 16 MiB */

static struct str pg_row_copy(const PGresult *r, int row, int col, struct arena *a)
{
	return arena_str(a, pg_bytes_at(r, row, col));
}

static struct str read_body(const PGresult *r, int row, struct arena *a)
{
	struct str texts[COLUMN_TEXTS], rest = pg_bytes_at(r, row, PG_COL_BODY + COLUMN_TEXTS), out;
	struct buf b = BUF_MAX(BODY_MAX);
	size_t n = 0;

	for (int i = 0; i < COLUMN_TEXTS; i++) {
		texts[i] = pg_bytes_at(r, row, PG_COL_BODY + i);
		n += texts[i].n;
	}
	if (!n)
		return arena_str(a, rest);
	column_join(column_text_tags, COLUMN_TEXTS, texts, rest, &b);
	out = b.full ? STR("") : arena_str(a, buf_str(&b));
	buf_free(&b);
	return out;
}

void pg_row_read(const PGresult *r, int row, bool body, struct record *out, struct arena *a)
{
	struct index *ix = &out->ix;

	*out = (struct record){ .key = pg_row_copy(r, row, 0, a), .rev = pg_int_at(r, row, 1) };
	ix->lane = (int)pg_int_at(r, row, 2);
	ix->status = (int)pg_int_at(r, row, 3) & (STORE_STATUSES - 1);
	ix->class_rank = (int)pg_int_at(r, row, 4);
	ix->priority = (int)pg_int_at(r, row, 5);
	ix->eligible_at = pg_int_at(r, row, 6);
	ix->updated_at = pg_int_at(r, row, 7);
	ix->created_at = pg_int_at(r, row, 8);
	ix->due = pg_int_at(r, row, 9);
	ix->id = pg_row_copy(r, row, 10, a);
	ix->holder = pg_row_copy(r, row, 11, a);
	ix->token = pg_row_copy(r, row, 12, a);
	ix->parent = pg_row_copy(r, row, 13, a);
	ix->type = pg_row_copy(r, row, 14, a);
	ix->labels = pg_list_at(r, row, 15, a);
	ix->depends = pg_list_at(r, row, 16, a);
	out->hot = pg_row_copy(r, row, 17, a);
	if (body)
		out->body = read_body(r, row, a);
}

/* --- the records of a change ---------------------------------------------------------------------- */

static struct pg_seen **pg_row_slot(struct pg *s, struct str key)
{
	struct pg_seen **at = &s->seen[str_hash(key) % PG_SEEN_SLOTS];

	while (*at && !str_eq((*at)->key, key))
		at = &(*at)->chain;
	return at;
}

struct pg_seen *pg_seen(struct pg *s, struct str key)
{
	return s->changing ? *pg_row_slot(s, key) : NULL;
}

void pg_remember(struct pg *s, struct str key, const struct record *r, bool body)
{
	struct pg_seen **at;

	if (!s->changing)
		return;
	at = pg_row_slot(s, key);
	if (!*at) {
		*at = arena_new(&s->arena, struct pg_seen);
		(*at)->key = arena_str(&s->arena, key);
		s->n_seen++;
	}
	(*at)->rec = r ? record_copy(&s->arena, r) : NULL;
	(*at)->body = body;
}

void pg_wrote(struct pg *s, struct str key)
{
	struct pg_seen *seen = *pg_row_slot(s, key);

	if (seen->written)
		return;
	seen->written = true;
	seen->next_written = s->written;
	s->written = seen;
	s->n_written++;
}

void pg_forget_seen(struct pg *s)
{
	memset(s->seen, 0, sizeof(s->seen));
	s->written = NULL;
	s->n_seen = s->n_written = s->logged = 0;
	s->ahead = (struct pg_ahead){ 0 };
	s->later = (struct pg_later){ 0 };
	arena_free(&s->arena);
}

/*
 * Deferred writes: one statement sends the updates of all changes of a batch, and another one their log entries. A
 * statement costs the server far more than a row in it. A record that several changes write is sent once, as the last
 * change left it.
 *
 * pg_send() sends the deferred writes before any other statement, so each statement finds the rows as the changes before
 * it left them. Inserts and texts are sent at once, because they neither read nor overwrite a deferred write.
 */

#include "store/postgres/postgres.h"

#define MOST 256
#define MOST_BYTES (1u << 20)

static bool is_much(const struct pg *s)
{
	const struct pg_later *l = &s->later;

	return l->n_records >= MOST || l->n_entries >= MOST || l->bytes >= MOST_BYTES;
}

int pg_later_update(struct pg *s, struct str key)
{
	struct pg_seen *seen = pg_seen(s, key);

	if (seen->later)
		return 0;
	seen->later = true;
	seen->next_later = s->later.records;
	s->later.records = seen;
	s->later.n_records++;
	s->later.bytes += seen->rec->hot.n;
	return is_much(s) ? pg_later_send(s) : 0;
}

static int send_records(struct pg *s, struct pg_seen *seen, size_t n)
{
	struct pg_args args = { .a = &s->arena };
	struct pg_args **rows = arena_array(&s->arena, struct pg_args *, n);

	if (n == 1)
		return pg_update(s, seen->rec);
	for (size_t i = 0; i < n; i++, seen = seen->next_later) {
		rows[i] = arena_new(&s->arena, struct pg_args);
		pg_claim_columns(rows[i], seen->rec);
	}
	pg_int(&args, s->q);
	pg_columns(&args, rows, n);
	return pg_send(
		s,
		"UPDATE $S.record r SET rev=u.rev,lane=u.lane,status=u.status,class_rank=u.class_rank,"
		"priority=u.priority,eligible_at=u.eligible_at,updated_at=u.updated_at,due_at=u.due_at,"
		"holder=u.holder,token=u.token,hot=u.hot,assignee=u.assignee,run=u.run,"
		"attempts=u.attempts,fence=u.fence,archived=u.archived,queue_holder=u.queue_holder,"
		"host=u.host,acquired=u.acquired,expires=u.expires FROM (SELECT $1::bigint AS q,a.* "
		"FROM unnest($2,$3,$4,$5,$6,$7,$8,$9,$10,$11,$12,$13,$14,$15,$16,$17,$18,$19,$20,$21,"
		"$22) a(key,rev,lane,status,class_rank,priority,eligible_at,updated_at,due_at,holder,"
		"token,hot,assignee,run,attempts,fence,archived,queue_holder,host,acquired,expires) "
		"OFFSET 0) u WHERE r.q=u.q AND r.key=u.key",
		&args);
}

int pg_later_entry(struct pg *s, const struct entry *e)
{
	struct pg_later *l = &s->later;
	struct str words[COLUMN_WORDS];
	struct pg_args *p = arena_new(&s->arena, struct pg_args);
	struct buf rest;

	column_split(column_entry_tags, COLUMN_WORDS, e->data, words, &rest);
	pg_int(p, ++s->row.seq);
	pg_bytes(p, e->key);
	pg_int(p, e->at);
	for (int i = 0; i < COLUMN_WORDS; i++)
		pg_bytes_or_null(p, words[i]);
	pg_bytes_or_null(p, arena_str(&s->arena, buf_str(&rest)));
	buf_free(&rest);
	if (!l->entries)
		l->entries = arena_array(&s->arena, struct pg_args *, MOST);
	l->entries[l->n_entries++] = p;
	l->bytes += e->data.n;
	s->logged += sizeof(*p) + e->data.n;
	return is_much(s) ? pg_later_send(s) : 0;
}

static int send_entries(struct pg *s, struct pg_args *const *rows, size_t n)
{
	struct pg_args args = { .a = &s->arena };

	pg_int(&args, s->q);
	if (n == 1) {
		pg_row(&args, rows[0]);
		return pg_send(s, "INSERT INTO $S.log VALUES($1,$2,$3,$4,$5,$6,$7,$8,$9,$10)",
			       &args);
	}
	pg_columns(&args, rows, n);
	return pg_send(s, "INSERT INTO $S.log SELECT $1,* FROM unnest($2,$3,$4,$5,$6,$7,$8,$9,$10)",
		       &args);
}

int pg_later_send(struct pg *s)
{
	struct pg_later l = s->later;
	int rc = 0;

	s->later = (struct pg_later){ 0 }; /* pg_send() must not begin again */
	for (struct pg_seen *seen = l.records; seen; seen = seen->next_later)
		seen->later = false;
	if (l.n_records)
		rc = send_records(s, l.records, l.n_records);
	if (rc == 0 && l.n_entries)
		rc = send_entries(s, l.entries, l.n_entries);
	return rc;
}

/* Splits packed fields into columns, and joins them again. Bytes that column_join() could not restore exactly
 * stay whole in `rest`. */
#include "base/text.h"
#include "core/event.h"
#include "format/pack.h"
#include "format/task_form.h"
#include "store/columns.h"

/* Ascending, because packed fields have this order. */
const uint8_t column_text_tags[COLUMN_TEXTS] = { TAG_title,          TAG_description,
						 TAG_acceptance,     TAG_blocker_reason,
						 TAG_unblock_action, TAG_summary };
const uint8_t column_entry_tags[COLUMN_WORDS] = { EVENT_TAG_name, EVENT_TAG_task, EVENT_TAG_agent,
						  EVENT_TAG_run, EVENT_TAG_text };
const struct column_copy column_copies[COLUMN_COPIES] = {
	{ TAG_assignee, FIELD_STR },
	{ TAG_agent_run, FIELD_STR },
	{ TAG_attempts, FIELD_INT },
	{ TAG_fence, FIELD_INT },
	{ TAG_archived_at, FIELD_TIME },
	{ TAG_holder,
	  FIELD_STR }, /* queue_holder: a lock of the whole queue has no holder in its index */
	{ TAG_host, FIELD_STR },
	{ TAG_acquired_at, FIELD_TIME },
	{ TAG_expires_at, FIELD_TIME },
};

/* --- split ---------------------------------------------------------------------------------------- */

static size_t packed_size(size_t n)
{
	size_t size = 2 + n;

	for (; n >= 0x80; n >>= 7)
		size++;
	return size;
}

/* The column with this tag; n: there is none. */
static size_t column_of(const uint8_t *tags, size_t n, uint8_t tag)
{
	size_t i = 0;

	while (i < n && tags[i] != tag)
		i++;
	return i;
}

/* false: column_join() would not restore these bytes exactly. */
static bool columns_split(const uint8_t *tags, size_t n, struct str packed, struct str *columns,
			  struct buf *rest)
{
	struct unpack u = { packed };
	size_t size = 0;
	struct str value;
	uint8_t tag, last = 0;
	int r;

	while ((r = unpack_next(&u, &tag, &value)) > 0) {
		size_t i = column_of(tags, n, tag);

		if (tag < last || (i < n && (tag == last || !value.n)))
			return false;
		if (i < n)
			columns[i] = value;
		else
			pack_str(rest, tag, value);
		last = tag;
		size += packed_size(value.n);
	}
	return r == 0 && size == packed.n;
}

void column_split(const uint8_t *tags, size_t n, struct str packed, struct str *columns,
		  struct buf *rest)
{
	memset(columns, 0, n * sizeof(*columns));
	*rest = BUF_MAX(packed.n);
	if (columns_split(tags, n, packed, columns, rest))
		return;
	memset(columns, 0, n * sizeof(*columns));
	rest->n = 0;
	rest->full = false;
	buf_adds(rest, packed);
}

/* --- join ----------------------------------------------------------------------------------------- */

/* Adds the columns with a tag below `end`. An empty column means that the field is absent. */
static size_t add_columns(struct buf *out, const uint8_t *tags, const struct str *columns, size_t i,
			  size_t n, unsigned end)
{
	for (; i < n && tags[i] < end; i++)
		if (columns[i].n)
			pack_str(out, tags[i], columns[i]);
	return i;
}

void column_join(const uint8_t *tags, size_t n, const struct str *columns, struct str rest,
		 struct buf *out)
{
	struct unpack u = { rest };
	struct str value, left = rest;
	uint8_t tag;
	size_t i = 0;

	while (unpack_next(&u, &tag, &value) > 0) {
		i = add_columns(out, tags, columns, i, n, tag);
		buf_add(out, left.p, (size_t)(u.rest.p - left.p));
		left = u.rest;
	}
	buf_adds(out, left); /* not packed fields: the queue reports them as damaged */
	add_columns(out, tags, columns, i, n, 256);
}

/* --- copies --------------------------------------------------------------------------------------- */

void column_copies_of(const struct record *r, struct str values[COLUMN_COPIES],
		      bool there[COLUMN_COPIES])
{
	struct unpack u = { record_is_packed(r) ? r->hot : STR("") }; /* others are not packed */
	struct str value;
	uint8_t tag;
	int k = 0;

	memset(there, 0, COLUMN_COPIES * sizeof(*there));
	while (k < COLUMN_COPIES && unpack_next(&u, &tag, &value) > 0) {
		while (k < COLUMN_COPIES && column_copies[k].tag < tag)
			k++;
		if (k == COLUMN_COPIES || column_copies[k].tag != tag ||
		    (tag == TAG_holder && r->ix.holder.n))
			continue;
		values[k] = value;
		there[k++] = true;
	}
}

/* --- task record ------------------------------------------------------------------------------ */

/* Decodes the task in a record. It accepts only a record that would come back byte for byte, so that a store which
 * writes the task as a file of another format loses nothing. */

bool task_of_record(const struct store_rules *rules, const struct record *r, struct task *out,
		    struct arena *a)
{
	struct index ix;

	*out = (struct task){ 0 };
	if (!str_starts(r->key, STR("task/")) || task_unpack(r->hot, out, a) ||
	    task_unpack(r->body, out, a) || id_fault(out->id) ||
	    !str_eq(task_key(a, out->id), r->key) || !text_valid(out->description))
		return false;
	rules->index(out, &ix, a);
	return index_eq(&ix, &r->ix) && str_eq(task_part(out, HOT, a), r->hot) &&
	       str_eq(task_part(out, BODY, a), r->body);
}

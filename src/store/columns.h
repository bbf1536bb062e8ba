/*
 * columns: the columns that people read through a database's views. The texts of a task and of a log entry have
 * their own columns and are stored nowhere else. `rest` holds the other packed fields, and column_join() restores
 * the original bytes from both. Some columns copy fields of `hot`, which a claim reads and writes. pawl writes these
 * copies and never reads them; only doctor compares them.
 */
#ifndef STORE_COLUMNS_H
#define STORE_COLUMNS_H

#include "core/field.h"
#include "store/store.h"

#define COLUMN_TEXTS 6  /* columns with a text of the task */
#define COLUMN_WORDS 5  /* a log entry's columns */
#define COLUMN_COPIES 9 /* columns that copy a part of `hot` */

struct column_copy {
	uint8_t tag;
	enum field_kind kind;
};

extern const uint8_t column_text_tags[COLUMN_TEXTS], column_entry_tags[COLUMN_WORDS];
extern const struct column_copy column_copies[COLUMN_COPIES];

/* A lane's number, as a text for SQL. */
#define LANE_DIGITS(number) #number
#define LANE_TEXT(lane) LANE_DIGITS(lane)
#define LANES_TIMED_TEXT LANE_TEXT(LANE_LATER) "," LANE_TEXT(LANE_GOING)
#define LANES_WAITING_TEXT \
	LANE_TEXT(LANE_WAITING) "," LANE_TEXT(LANE_PARENT) "," LANE_TEXT(LANE_BOTH)

/* Splits packed bytes into n columns and the rest. If column_join() could not restore the bytes, all of them are
 * rest. */
void column_split(const uint8_t *tags, size_t n, struct str packed, struct str *columns,
		  struct buf *rest);
void column_join(const uint8_t *tags, size_t n, const struct str *columns, struct str rest,
		 struct buf *out);
/* The copies in the record's `hot`, as packed values; there[i]: the record has the field. */
void column_copies_of(const struct record *r, struct str values[COLUMN_COPIES],
		      bool there[COLUMN_COPIES]);

/* Is the record a task or a lock of the whole queue? */
static inline bool record_is_packed(const struct record *r)
{
	return str_starts(r->key, STR("task/")) || str_starts(r->key, STR("lock/"));
}

/* --- task record ------------------------------------------------------------------------------ */

/*
 * task_record: decodes the task in a record, for stores that keep tasks in other programs' files.
 */

/* Is the record a task, byte for byte as the queue would put it? */
bool task_of_record(const struct store_rules *rules, const struct record *r, struct task *out,
		    struct arena *a);

#endif

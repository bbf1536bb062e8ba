/*
 * The header of a database file, read before SQLite acts on the file.
 */
#ifndef STORE_SQLITE_HEADER_H
#define STORE_SQLITE_HEADER_H

#include "store/sqlite/sqlite.h"

struct sq_header {
	enum { SQ_EMPTY, SQ_BLANK, SQ_OURS } state;
	bool wal;
};

/* 0, or the fault that explains why the file cannot be used. Changes nothing. */
int sq_header_read(struct sq *s, struct sq_header *out);
/* Under the gate: truncates a file that holds only zeros. */
int sq_header_clear(struct sq *s);

#endif

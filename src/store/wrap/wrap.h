/*
 * wrap: stores around a store. Edits run inside the innermost one, so that their reads pass the
 * wrappers by: what is seen or broken is what a caller of the store does.
 *
 * trace+URI writes one line for each call but now(), counts() and the wake calls to stderr, or to the end of
 * $PAWL_TRACE_FILE. It never shows a URI, a token, a hot part or a body.
 *
 * fault+URI?fault=CALL:N[:KIND[:always]] lets the Nth call (from 1; of each handle) fail, with `always`
 * that one and all later ones; fault=CALL:~N[:KIND[:SEED]] one in N at random, the same ones for the same
 * seed. CALL is open, get, scan, count, tally, modify, entries, discard or any. KIND is
 *   fail     STORE_IO, nothing applied (the default)
 *   busy     STORE_BUSY
 *   full     STORE_FULL
 *   moved    STORE_MOVED
 *   lost     a change is made and its reply lost: STORE_IO, applied '?'
 *   unknown  a change is not made, but nobody can tell: STORE_IO, applied '?'
 * The parameter can be given up to FAULT_MAX times; the store inside does not see it.
 */
#ifndef STORE_WRAP_WRAP_H
#define STORE_WRAP_WRAP_H

#include "store/store.h"

#define FAULT_MAX 4

/* `uri` is that of the store inside, which may be a wrapper again. */
int trace_open(struct store **out, struct str uri, const struct store_env *env);
int fault_open(struct store **out, struct str uri, const struct store_env *env);

#endif

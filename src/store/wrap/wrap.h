/*
 * wrap: a store around a store. Edits run inside the innermost store, and their reads bypass the wrapper. So the
 * wrapper counts or breaks only the calls that the store's user makes.
 *
 * fault+URI?fault=CALL:N[:KIND[:always]] makes the Nth call of each handle fail (N from 1), with `always` also all
 * later ones. fault=CALL:~N[:KIND[:SEED]] makes one in N fail at random; the same seed selects the same calls.
 * CALL is open, get, scan, count, tally, modify, entries, discard, mend or any. KIND is
 *   fail     STORE_IO, nothing applied (the default)
 *   busy     STORE_BUSY
 *   full     STORE_FULL
 *   moved    STORE_MOVED
 *   lost     the change is made, but its reply is lost: STORE_IO, applied '?'
 *   unknown  the change is not made, but the caller cannot know: STORE_IO, applied '?'
 * A URI can have up to FAULT_MAX of these parameters; the inner store does not see them.
 *
 * fault=calls breaks nothing. It writes "pawl-calls: CALL N" to stderr for each of the calls above; N is the number
 * of records or entries that the caller got from it.
 *
 * fault=copies gives each callback of scan and entries a copy of its record or entry, and frees it as soon as the
 * callback returns. The address sanitizer then reports the use of a string that a callback kept.
 */
#ifndef STORE_WRAP_WRAP_H
#define STORE_WRAP_WRAP_H

#include "store/store.h"

#define FAULT_MAX 4

/* `uri` is the URI of the inner store, which may be a wrapper, too. */
int fault_open(struct store **out, struct str uri, const struct store_env *env);

#endif

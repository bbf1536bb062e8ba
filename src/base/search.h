/*
 * search: where a key is in a list that is sorted by its keys.
 */
#ifndef BASE_SEARCH_H
#define BASE_SEARCH_H

#include "base/str.h"

/* The key of the i-th. */
typedef struct str search_fn(const void *list, size_t i);

/* The place of the key among n that are sorted by str_cmp(); if it is not *found, the place where it belongs. */
size_t search_key(const void *list, size_t n, struct str key, search_fn *key_at, bool *found);

#endif

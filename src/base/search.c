#include "base/search.h"

size_t search_key(const void *list, size_t n, struct str key, search_fn *key_at, bool *found)
{
	size_t low = 0;

	*found = false;
	while (low < n) {
		size_t mid = low + (n - low) / 2;
		int c = str_cmp(key, key_at(list, mid));

		*found = c == 0;
		if (*found)
			return mid;
		if (c < 0)
			n = mid;
		else
			low = mid + 1;
	}
	return low;
}

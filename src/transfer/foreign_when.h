/* foreign_when: the times that other programs write, as ISO 8601. */
#ifndef TRANSFER_FOREIGN_WHEN_H
#define TRANSFER_FOREIGN_WHEN_H

#include "base/arena.h"

/* Knows 20261116T103000Z (Taskwarrior), 16/Nov/26 10:30 AM (Jira), and what when_parse() knows. utc: a time without a
 * zone is UTC; else it stays as it is: local time. */
struct str foreign_when(struct str text, bool utc, struct arena *a);

#endif

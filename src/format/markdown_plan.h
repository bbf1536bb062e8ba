/*
 * plan: tasks from a Markdown list. Each item is a task: its first line is the title, the text below it the description.
 * An item inside another item is its sub-task. `- [x]` marks an item as done. Text outside the list is not read.
 */
#ifndef FORMAT_MARKDOWN_PLAN_H
#define FORMAT_MARKDOWN_PLAN_H

#include "base/arena.h"
#include "format/yaml.h"

#define PLAN_ITEMS 10000
#define PLAN_DEPTH 32

struct plan_item {
	struct str title, description;
	size_t line;
	size_t under; /* 1 + the position of the item around it; 0: none */
	bool done;
};

struct plan {
	struct plan_item *items;
	size_t n;
};

/* 0, or -EBADMSG with *fault. An open item inside one that is done is refused. */
int plan_read(struct str text, struct plan *out, struct yaml_fault *fault, struct arena *a);

#endif

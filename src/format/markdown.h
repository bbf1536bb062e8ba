/*
 * mdcodec: a task as a Markdown file, readable on any web page: YAML front matter, then the description.
 * What was written reads back as the same task. A file that people wrote needs no front matter: its id is
 * then in its name (t109_atomic_locks.md), its title its first heading, and the description is all of it.
 */
#ifndef FORMAT_MARKDOWN_H
#define FORMAT_MARKDOWN_H

#include "base/buf.h"
#include "format/yaml.h"
#include "format/plain.h"

/* whole: with what is hidden as well (locks, token hashes, counts). */
void task_md_write(const struct task *t, const struct event *comments, size_t n, bool whole,
		   struct buf *out, struct arena *a);
/* The id that a file's name says, if nothing in it says another. */
struct str task_md_id(struct str name);
/* `name` is the file's, without its folder. `p` was started. 0, or -EBADMSG with *fault; p is ended. */
int task_md_parse(struct str text, struct str name, struct plain *p, struct yaml_fault *fault);

#endif

/*
 * markdown: a task as a Markdown file, readable on any web page: YAML front matter, then the description. A written
 * file reads back as the same task. A file that people write needs no front matter: then its name gives the id
 * (t109_atomic_locks.md), its first heading is the title, and the whole text is the description.
 */
#ifndef FORMAT_MARKDOWN_H
#define FORMAT_MARKDOWN_H

#include "base/buf.h"
#include "format/yaml.h"
#include "format/plain.h"

/* whole: with the hidden fields as well (locks, token hashes, counts). */
void task_md_write(const struct task *t, const struct event *comments, size_t n, bool whole,
		   struct buf *out, struct arena *a);
/* Writes the form for a person who edits the task: only the fields that people may change, by
 * pawl's own names, and the version. head: comments for the person; each line begins with '#'. */
void task_md_form(const struct task *t, struct str head, struct buf *out, struct arena *a);
/* Does task_md_form() write the key, or could it? */
bool task_md_editable(struct str key);
/* Calls `fn` for each key of the front matter. Lines count from the start of the file. 0, -EBADMSG with *fault, or the
 * result of `fn`. */
int task_md_keys(struct str text, yaml_key_fn *fn, void *ctx, struct yaml_fault *fault,
		 struct arena *a);
/* Calls `fn` for each key of the front matter of a file of another program; *body: the text after it. The same
 * results. */
int task_md_split(struct str text, struct str *body, yaml_key_fn *fn, void *ctx,
		  struct yaml_fault *fault, struct arena *a);
/* The id in a file's name, for a file whose front matter has none. */
struct str task_md_id(struct str name);
/* `name` is the file's name without its folder. The caller has called plain_start(p); this ends it. 0, or -EBADMSG
 * with *fault. */
int task_md_parse(struct str text, struct str name, struct plain *p, struct yaml_fault *fault);

#endif

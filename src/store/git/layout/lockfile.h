/*
 * A lock as a file that other programs know: t<id>_lock.yaml with task_id, locked_by, locked_at and hostname,
 * in their form, followed by pawl's own fields. A file without pawl's fields is a foreign lock: it has no
 * token, and does not expire unless it names an expiry.
 */
#ifndef STORE_GIT_LAYOUT_LOCKFILE_H
#define STORE_GIT_LAYOUT_LOCKFILE_H

#include "base/buf.h"
#include "format/yaml.h"
#include "format/task_form.h"

struct git_lockfile {
	struct str id; /* of the task: t109, for both 109 and t109 in the file */
	struct lock lock;
	int64_t fence;    /* 0: the file has none */
	struct str clock; /* the clock that the expiry is measured by */
};

/* t109 has t109_lock.yaml, abc has tabc_lock.yaml; 109 is not t109 and has t%3109_lock.yaml. */
struct str git_lockfile_name(struct arena *a, struct str id);
/* Is `name` the name of a lock file, and of which task? */
bool git_lockfile_named(struct arena *a, struct str name, struct str *id);
void git_lockfile_write(const struct git_lockfile *f, struct buf *out, struct arena *a);
/* `id` is the id in the file's name. 0, or -EBADMSG with *fault. */
int git_lockfile_read(struct str text, struct str id, struct git_lockfile *out,
		      struct yaml_fault *fault, struct arena *a);

#endif

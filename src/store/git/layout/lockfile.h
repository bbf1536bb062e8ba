/*
 * A lock as a file that other programs know: t<id>_lock.yaml with task_id, locked_by, locked_at and hostname, as
 * they write it, and below that what pawl needs to know of a lock of its own. A file without that is another
 * program's lock: it has no token, and no end unless it says one.
 */
#ifndef STORE_GIT_LAYOUT_LOCKFILE_H
#define STORE_GIT_LAYOUT_LOCKFILE_H

#include "base/buf.h"
#include "format/yaml.h"
#include "format/task.h"

struct git_lockfile {
	struct str id; /* of the task: t109, whether the file says 109 or t109 */
	struct lock lock;
	int64_t fence;    /* 0: it says none */
	struct str clock; /* whose clock its end goes by */
};

/* t109 has t109_lock.yaml, abc has tabc_lock.yaml; 109 is not t109 and has t%3109_lock.yaml. */
struct str git_lockfile_name(struct arena *a, struct str id);
/* Is it one, and of which task? */
bool git_lockfile_named(struct arena *a, struct str name, struct str *id);
void git_lockfile_write(const struct git_lockfile *f, struct buf *out, struct arena *a);
/* `id` is the one that the file's name says. 0, or -EBADMSG with *fault. */
int git_lockfile_read(struct str text, struct str id, struct git_lockfile *out,
		      struct yaml_fault *fault, struct arena *a);

#endif

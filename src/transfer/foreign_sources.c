/* The programs whose tasks pawl reads, and how it recognises their files. */
#include <fcntl.h>
#include <unistd.h>

#include "base/fs.h"
#include "transfer/foreign.h"

#define NAME beads
#define TABLE "transfer/sources/beads.def"
#include "transfer/foreign_table.h"
#define NAME task_master
#define TABLE "transfer/sources/task-master.def"
#include "transfer/foreign_table.h"
#define NAME backlog
#define TABLE "transfer/sources/backlog.def"
#include "transfer/foreign_table.h"
#define NAME taskwarrior
#define TABLE "transfer/sources/taskwarrior.def"
#include "transfer/foreign_table.h"
#define NAME aitasks
#define TABLE "transfer/sources/aitasks.def"
#include "transfer/foreign_table.h"
#define NAME kanban_md
#define TABLE "transfer/sources/kanban-md.def"
#include "transfer/foreign_table.h"
#define NAME todo_txt
#define TABLE "transfer/sources/todo-txt.def"
#include "transfer/foreign_table.h"
#define NAME github
#define TABLE "transfer/sources/github.def"
#include "transfer/foreign_table.h"
#define NAME jira
#define TABLE "transfer/sources/jira.def"
#include "transfer/foreign_table.h"
#define NAME linear
#define TABLE "transfer/sources/linear.def"
#include "transfer/foreign_table.h"
#define NAME markdown
#define TABLE "transfer/sources/markdown.def"
#include "transfer/foreign_table.h"

#define HEAD_MAX 65536 /* bytes of a file that are searched for marks */

static const struct foreign *const all[] = {
	&beads_source,   &task_master_source, &backlog_source,  &taskwarrior_source,
	&aitasks_source, &kanban_md_source,   &todo_txt_source, &github_source,
	&jira_source,    &linear_source,      &markdown_source,
};

#define N_ALL (sizeof(all) / sizeof(*all))

const struct foreign *foreign_find(struct str name)
{
	for (size_t i = 0; i < N_ALL; i++)
		if (str_is(name, all[i]->name))
			return all[i];
	return NULL;
}

const char *foreign_path(const struct foreign *f, const char *path, struct arena *a)
{
	const char *below = f->place && fs_is_dir(path) ? fs_join(a, str_c(path), str_c(f->place))
							: NULL;

	return below && fs_exists(below) ? below : path;
}

static bool has_marks(const struct foreign *f, struct str head)
{
	for (const char *const *mark = f->marks; *mark; mark++)
		if (!memmem(str_p(head), head.n, *mark, strlen(*mark)))
			return false;
	return f->marks[0];
}

/* The first bytes of a regular file; empty for anything else. */
static struct str head_of(const char *path, char *room)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;
	ssize_t n = 0;

	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		n = read(fd, room, HEAD_MAX);
	if (fd >= 0)
		close(fd);
	return str_n(room, n > 0 ? (size_t)n : 0);
}

/* A folder is known by its name, or by what lies at the usual place below it. */
static bool in_place(const struct foreign *f, const char *path, struct arena *a)
{
	char *real = fs_real(a, path);

	if (!f->place || !real)
		return false;
	if (fs_is_dir(path))
		return fs_exists(fs_join(a, str_c(path), str_c(f->place))) ||
		       str_ends(str_c(real), str_c(f->place));
	return str_ends(str_c(real), arena_printf(a, "/%s", f->place));
}

const struct foreign *foreign_recognise(const char *path)
{
	struct arena a = { 0 };
	const struct foreign *found = NULL;
	struct str head = head_of(path, arena_alloc(&a, HEAD_MAX));

	for (size_t i = 0; i < N_ALL && !found; i++)
		if (in_place(all[i], path, &a) || has_marks(all[i], head))
			found = all[i];
	arena_free(&a);
	return found;
}

struct str foreign_names(struct arena *a)
{
	struct str names = STR("");

	for (size_t i = 0; i < N_ALL; i++)
		names = arena_printf(a, "%.*s%s%s", STRF(names), i ? ", " : "", all[i]->name);
	return names;
}

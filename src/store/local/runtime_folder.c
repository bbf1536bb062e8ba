/* Finds or makes the private folder of runtime_folder.h. A folder that another user could read or replace is never used,
 * because that user could read our calls and answer them. */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/os.h"
#include "store/local/runtime_folder.h"

/* Does the folder belong to this user, and has it none of the mode bits `others`? */
static bool is_ours(const char *path, mode_t others)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;
	bool ours = fd >= 0 && fstat(fd, &st) == 0 && st.st_uid == geteuid() &&
		    !(st.st_mode & others);

	if (fd >= 0)
		close(fd);
	return ours;
}

static bool runtime_folder_make(const char *path)
{
	(void)mkdir(path, 0700); /* if the folder exists, the check decides */
	return is_ours(path, 077) && !os_network_fs(path);
}

static char *runtime_folder_below(struct arena *a, const char *parent)
{
	char *path;

	if (!parent || parent[0] != '/' || !is_ours(parent, 022))
		return NULL;
	path = fs_join(a, str_c(parent), STR("pawl"));
	return runtime_folder_make(path) ? path : NULL;
}

char *runtime_folder_path(struct arena *a, struct str name, struct stat *like)
{
	char *folder = runtime_folder_below(a, getenv("XDG_RUNTIME_DIR"));

	if (!folder)
		folder = runtime_folder_below(a,
					      arena_printf(a, "/run/user/%ld", (long)geteuid()).p);
	if (!folder) {
		folder = arena_cstr(a, arena_printf(a, "/tmp/pawl-%ld", (long)geteuid()));
		folder = runtime_folder_make(folder) ? folder : NULL;
	}
	*like = (struct stat){ .st_mode = 0600, .st_uid = geteuid(), .st_gid = getegid() };
	return folder ? fs_join(a, str_c(folder), name) : NULL;
}

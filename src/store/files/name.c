/* The names of files, and their meaning. An id has no '/', so it never leads out of the folder. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "format/record_form.h"
#include "store/files/files.h"

static const char *const endings[FILE_KINDS] = {
	[FILE_TASK] = ".task",
	[FILE_LOCK] = ".lock",
	[FILE_DONE] = ".done",
	[FILE_FAILED] = ".failed",
};

int files_name(char *out, size_t room, struct str id, enum file_kind kind)
{
	int n = snprintf(out, room, "%.*s%s", STRF(id), endings[kind]);

	return id_fault(id) || n < 0 || (size_t)n >= room ? -1 : 0;
}

enum file_kind files_kind(struct str name, struct str *id)
{
	for (int k = FILE_TASK; k < FILE_KINDS; k++) {
		struct str end = str_c(endings[k]);

		if (name.n > end.n && name.p[0] != '.' && str_ends(name, end)) {
			*id = str_n(name.p, name.n - end.n);
			return (enum file_kind)k;
		}
	}
	return FILE_NONE;
}

static bool files_name_plain(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '-' || c == '_';
}

struct str files_queue_folder(struct arena *a, struct str queue)
{
	struct buf b = BUF_MAX(4 * queue.n + 32);
	struct str out;

	if (!queue.n || str_is(queue, "default"))
		return STR("");
	buf_adds(&b, STR(".pawl/queues/"));
	for (size_t i = 0; i < queue.n; i++) {
		if (files_name_plain(queue.p[i]))
			buf_addc(&b, queue.p[i]);
		else
			buf_addf(&b, "%%%02x", (unsigned char)queue.p[i]);
	}
	out = arena_str(a, buf_str(&b));
	buf_free(&b);
	return out;
}

struct str files_queue_name(struct arena *a, struct str folder)
{
	struct buf b = BUF_MAX(folder.n + 1);
	struct str out;

	for (size_t i = 0; i < folder.n; i++) {
		unsigned byte;

		if (folder.p[i] == '%' && i + 2 < folder.n &&
		    sscanf(folder.p + i, "%%%2x", &byte) == 1) {
			buf_addc(&b, (char)byte);
			i += 2;
		} else {
			buf_addc(&b, folder.p[i]);
		}
	}
	out = arena_str(a, buf_str(&b));
	buf_free(&b);
	return out;
}

int files_folder(struct files *s, bool archived)
{
	if (!archived)
		return s->dir;
	if (s->archive < 0)
		s->archive = openat(s->dir, "archive",
				    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (s->archive < 0)
		return errno == ENOTDIR || errno == ELOOP ? -ENOENT : -errno;
	return s->archive;
}

/*
 * Opens the board of one person in the browser of the desktop. Every local user can read the command line of a process, so
 * the token is in a page that only this user can read. The browser opens that page, which leads to the board.
 */
#include "face/serve/serve.h"

#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fs.h"

#define PAGE                                                                           \
	"<!doctype html>\n<meta charset=\"utf-8\">\n<title>pawl board</title>\n"       \
	"<meta name=\"referrer\" content=\"no-referrer\">\n"                           \
	"<meta http-equiv=\"refresh\" content=\"0; url=%s/#token=%.*s\">\n"            \
	"<p><a href=\"%s/#token=%.*s\">Open the board</a>. This link is good for one " \
	"login.</p>\n"

/* The file of the page: one for each port, so that a page that a killed server left is replaced. */
static char *page_file(const char *url, struct arena *a)
{
	char *top = fs_user_dir(a, "XDG_STATE_HOME", ".local/state");
	const char *port = strrchr(url, ':');

	return top && port ? fs_join(a, str_c(top), arena_printf(a, "board-%s.html", port + 1))
			   : NULL;
}

static char *write_page(struct serve *s, struct str once)
{
	struct arena *a = s->session->arena;
	const char *url = http_server_url(s->http, 0);
	char *file = page_file(url, a);
	struct str page = arena_printf(a, PAGE, url, STRF(once), url, STRF(once));

	if (!file || fs_make_dirs(arena_cstr(a, fs_dirname(str_c(file))), 0700) ||
	    fs_write_atomic(file, page, 0600))
		return NULL;
	return file;
}

static char *file_url(const char *path, struct arena *a)
{
	struct buf b = BUF_MAX(64u << 10);
	char *out;

	buf_adds(&b, STR("file://"));
	for (; *path; path++)
		if ((*path >= 'a' && *path <= 'z') || (*path >= 'A' && *path <= 'Z') ||
		    (*path >= '0' && *path <= '9') || strchr("/-_.~", *path))
			buf_addc(&b, *path);
		else
			buf_addf(&b, "%%%02X", (unsigned char)*path);
	out = arena_cstr(a, buf_str(&b));
	buf_free(&b);
	return out;
}

void browser_open(struct serve *s, struct str once)
{
	char *argv[] = { "xdg-open", NULL, NULL };
	posix_spawn_file_actions_t quiet;
	pid_t pid;

	if ((!getenv("DISPLAY") && !getenv("WAYLAND_DISPLAY")) || !isatty(STDOUT_FILENO))
		return;
	s->page = write_page(s, once);
	if (!s->page)
		return; /* the person opens the address that was printed */
	argv[1] = file_url(s->page, s->session->arena);
	posix_spawn_file_actions_init(&quiet);
	for (int fd = 0; fd < 3; fd++)
		posix_spawn_file_actions_addopen(&quiet, fd, "/dev/null", O_RDWR, 0);
	(void)posix_spawnp(&pid, argv[0], &quiet, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&quiet);
}

void browser_forget(struct serve *s)
{
	if (s->page)
		(void)unlink(s->page);
	s->page = NULL;
}

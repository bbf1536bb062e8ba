/* Runs the user's own git as a process: the user's keys, proxies and helpers work, and nobody is asked
 * anything. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/os.h"
#include "store/git/transport/run.h"

#define OUTPUT_MAX (1u << 20)

extern char **environ;

/* --- arguments and environment ------------------------------------------------------------------ */

static bool is_kept(const char *var)
{
	/* pawl sets or clears these itself. */
	static const char *const out[] = {
		"GIT_DIR=",
		"GIT_WORK_TREE=",
		"GIT_INDEX_FILE=",
		"GIT_COMMON_DIR=",
		"GIT_NAMESPACE=",
		"GIT_OBJECT_DIRECTORY=",
		"GIT_PREFIX=",
		"GIT_ALTERNATE_OBJECT_DIRECTORIES=",
		"GIT_PROTOCOL=",
		"GIT_TERMINAL_PROMPT=",
		"GIT_ALLOW_PROTOCOL=",
		"GIT_ASKPASS=",
		"SSH_ASKPASS=",
		"SSH_ASKPASS_REQUIRE=",
		"LC_ALL=",
		"LANGUAGE=",
	};

	for (size_t i = 0; i < sizeof(out) / sizeof(*out); i++)
		if (str_starts(str_c(var), str_c(out[i])))
			return false;
	return true;
}

static char **git_run_environment(struct arena *a)
{
	/* an empty GIT_ASKPASS overrides core.askPass, and is not called */
	static char *const own[] = { "GIT_TERMINAL_PROMPT=0",
				     "GIT_ASKPASS=", "SSH_ASKPASS_REQUIRE=never",
				     "GIT_ALLOW_PROTOCOL=file:git:http:https:ssh", "LC_ALL=C" };
	size_t n = 0, k = 0;
	char **env;

	while (environ[n])
		n++;
	env = arena_array(a, char *, n + sizeof(own) / sizeof(*own) + 1);
	for (size_t i = 0; i < n; i++)
		if (is_kept(environ[i]))
			env[k++] = environ[i];
	for (size_t i = 0; i < sizeof(own) / sizeof(*own); i++)
		env[k++] = own[i];
	return env;
}

void git_arg(struct git_args *g, struct str arg)
{
	g->v = arena_grow(&g->a, g->v, g->n, sizeof(*g->v));
	g->v[g->n++] = arena_cstr(&g->a, arg);
}

void git_args_begin(struct git_args *g, const char *dir, const char *verb)
{
	static const char *const config[] = {
		"core.hooksPath=/dev/null",  "gc.auto=0",
		"maintenance.auto=false",    "submodule.recurse=false",
		"push.followTags=false",     "push.gpgSign=false",
		"advice.detachedHead=false",
	};

	*g = (struct git_args){ 0 };
	git_arg(g, STR("git"));
	git_arg(g, STR("-C"));
	git_arg(g, str_c(dir));
	/* safe.bareRepository = explicit needs the folder by name; it is pawl's or the user's own */
	git_arg(g, arena_printf(&g->a, "--git-dir=%s", dir));
	for (size_t i = 0; i < sizeof(config) / sizeof(*config); i++) {
		git_arg(g, STR("-c"));
		git_arg(g, str_c(config[i]));
	}
	git_arg(g, str_c(verb));
}

/* --- running it --------------------------------------------------------------------------------- */

int git_start(struct git_args *g, int in, int out, int err, pid_t *pid)
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attr;
	sigset_t none;
	char **argv = arena_array(&g->a, char *, g->n + 1);
	int rc;

	if (g->n)
		memcpy(argv, g->v, g->n * sizeof(*argv));
	sigemptyset(&none);
	posix_spawn_file_actions_init(&files);
	if (in < 0)
		posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
	else
		posix_spawn_file_actions_adddup2(&files, in, 0);
	posix_spawn_file_actions_adddup2(&files, out, 1);
	posix_spawn_file_actions_adddup2(&files, err, 2);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setsigmask(&attr, &none);
	/* no terminal to ask at, and a process group that can be killed as a whole */
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK);
	rc = posix_spawnp(pid, argv[0], &files, &attr, argv, git_run_environment(&g->a));
	posix_spawnattr_destroy(&attr);
	posix_spawn_file_actions_destroy(&files);
	return -rc;
}

static int git_run_result(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int git_run(struct git_args *g, int64_t timeout_ms, struct str *text)
{
	struct buf out = BUF_MAX(OUTPUT_MAX);
	int ends[2], rc;
	pid_t pid = 0;
	bool done;

	rc = os_pipe(ends);
	if (rc)
		return rc;
	rc = git_start(g, -1, ends[1], ends[1], &pid);
	close(ends[1]);
	if (rc) {
		close(ends[0]);
		return rc;
	}
	done = fs_read_until(ends[0], os_boot_ms() + timeout_ms, &out);
	if (!done)
		kill(-pid, SIGKILL);
	close(ends[0]);
	rc = git_run_result(pid);
	*text = arena_str(&g->a, buf_str(&out));
	buf_free(&out);
	return done ? rc : -ETIMEDOUT;
}

void git_args_free(struct git_args *g)
{
	arena_free(&g->a);
}

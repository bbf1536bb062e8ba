#include "base/os.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#ifdef __APPLE__
#include <sys/sysctl.h>
#else
#include <sys/inotify.h>
#include <sys/prctl.h>
#endif

#include "base/fs.h"
#include "base/timespace.h"

#define PROC_FILE_MAX (16 << 20)
#define NANO INT64_C(1000000000)

static int64_t clock_ns(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return ts.tv_sec * NANO + ts.tv_nsec;
}

int64_t os_wall_ms(void)
{
	return clock_ns(CLOCK_REALTIME) / 1000000;
}

int64_t os_monotonic_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

int64_t os_boot_ms(void)
{
#ifdef __APPLE__
	return clock_ns(CLOCK_MONOTONIC_RAW) / 1000000; /* on macOS it includes sleep */
#else
	return (clock_ns(CLOCK_BOOTTIME) - timespace_offset()) / 1000000;
#endif
}

#ifdef __APPLE__
struct str os_boot_id(struct arena *a)
{
	char id[64] = "";
	size_t n = sizeof(id) - 1;

	if (sysctlbyname("kern.bootsessionuuid", id, &n, NULL, 0) || !id[0])
		return STR("unknown");
	return arena_str(a, str_c(id));
}
#else
/* Worse than the kernel's id: it changes when someone sets the clock (proc.c knows). */
static struct str boot_time_id(struct arena *a)
{
	struct str stat;

	if (fs_read(a, "/proc/stat", PROC_FILE_MAX, &stat))
		return STR("unknown");
	while (stat.n) {
		struct str line = str_cut(&stat, '\n');

		if (str_is(str_cut(&line, ' '), "btime"))
			return arena_printf(a, "btime-%s", arena_cstr(a, str_trim(line)));
	}
	return STR("unknown");
}

struct str os_boot_id(struct arena *a)
{
	struct str id;

	if (fs_read(a, "/proc/sys/kernel/random/boot_id", 4096, &id) == 0) {
		id = str_trim(id);
		if (id.n)
			return id;
	}
	return boot_time_id(a);
}
#endif

struct str os_hostname(struct arena *a)
{
	char name[256] = "";

	if (gethostname(name, sizeof(name) - 1))
		name[0] = '\0';
	return arena_str(a, str_c(name));
}

void os_user(struct str *name, struct str *home, struct arena *a)
{
	char room[4096];
	struct passwd pw, *found = NULL;

	*name = *home = STR("");
	if (getpwuid_r(geteuid(), &pw, room, sizeof(room), &found) || !found)
		return;
	*name = arena_str(a, str_c(pw.pw_name));
	*home = arena_str(a, str_c(pw.pw_dir));
}

struct str os_pid_space(struct arena *a)
{
	char name[64];
	ssize_t n = readlink("/proc/self/ns/pid", name, sizeof(name));

	return n > 0 ? arena_str(a, str_n(name, (size_t)n)) : STR("");
}

#ifdef __APPLE__
int64_t os_process_start(int64_t pid)
{
	int mib[] = { CTL_KERN, KERN_PROC, KERN_PROC_PID, (int)pid };
	struct kinfo_proc info = { 0 };
	size_t n = sizeof(info);

	if (pid <= 0 || pid > INT32_MAX)
		return 0;
	if (sysctl(mib, 4, &info, &n, NULL, 0))
		return -errno;
	if (n == 0 || info.kp_proc.p_stat == SZOMB)
		return 0;
	return info.kp_proc.p_starttime.tv_sec * INT64_C(1000000) +
	       info.kp_proc.p_starttime.tv_usec;
}

int os_pipe(int ends[2])
{
	if (pipe(ends))
		return -errno;
	(void)fcntl(ends[0], F_SETFD, FD_CLOEXEC);
	(void)fcntl(ends[1], F_SETFD, FD_CLOEXEC);
	return 0;
}

void os_close_from(int fd)
{
	for (int end = getdtablesize(); fd < end; fd++)
		close(fd);
}

int os_watch(const char *dir)
{
	(void)dir;
	return -1;
}

void os_watch_also(int fd, const char *dir)
{
	(void)fd;
	(void)dir;
}

int os_sync_fs(int fd)
{
	(void)fd;
	return -ENOSYS;
}

void os_watch_drain(int fd)
{
	(void)fd;
}
#else
/* Field 22, counted from the end of the name, because the name may contain blanks and brackets. A
 * zombie counts as ended unless it still has threads. */
static int64_t start_field(struct str stat)
{
	const char *end = stat.n ? memrchr(stat.p, ')', stat.n) : NULL;
	struct str rest, state = { 0 };
	int64_t start, threads = 0;

	if (!end || end + 2 > stat.p + stat.n)
		return -EBADMSG;
	rest = str_n(end + 2, (size_t)(stat.p + stat.n - end) - 2);
	for (int field = 3; field < 22; field++) {
		struct str value = str_cut(&rest, ' ');

		if (field == 3)
			state = value;
		if (field == 20 && !str_to_i64(value, &threads))
			return -EBADMSG;
	}
	if (!str_to_i64(str_cut(&rest, ' '), &start))
		return -EBADMSG;
	if ((str_is(state, "Z") && threads <= 1) || str_is(state, "X"))
		return 0;
	/* the very first process starts at 0, but 0 means "no process" */
	return start > 0 ? start : 1;
}

/* There is no file: the process does not exist, or /proc hides it (hidepid), or there is no
 * /proc. */
static int64_t os_missing(int64_t pid)
{
	if (access("/proc/self/stat", R_OK))
		return -ENOSYS;
	return kill((pid_t)pid, 0) == 0 || errno == EPERM ? -EACCES : 0;
}

/* Converts to the machine's own clock from this process's time namespace. */
static int64_t machine_ticks(int64_t ticks)
{
	int64_t hz = sysconf(_SC_CLK_TCK);

	if (!timespace_known())
		return -ENOSYS;
	ticks -= timespace_offset() / (NANO / (hz > 0 ? hz : 100));
	return ticks > 0 ? ticks : 1;
}

int64_t os_process_start(int64_t pid)
{
	struct arena a = { 0 };
	struct str stat;
	int64_t r;

	if (pid <= 0 || pid > INT32_MAX)
		return 0;
	r = fs_read(&a, arena_printf(&a, "/proc/%lld/stat", (long long)pid).p, 65536, &stat);
	if (r == 0)
		r = start_field(stat);
	else if (r == -ENOENT || r == -ESRCH)
		r = os_missing(pid);
	arena_free(&a);
	return r > 0 ? machine_ticks(r) : r;
}

int os_pipe(int ends[2])
{
	return pipe2(ends, O_CLOEXEC) ? -errno : 0;
}

void os_close_from(int fd)
{
	if (close_range((unsigned)fd, ~0u, 0) == 0)
		return;
	for (int end = getdtablesize(); fd < end; fd++) /* for kernels before 5.9 */
		close(fd);
}

#define WATCHED (IN_MODIFY | IN_CREATE | IN_MOVED_TO | IN_ONLYDIR)

int os_watch(const char *dir)
{
	int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);

	if (fd < 0)
		return -1;
	if (inotify_add_watch(fd, dir, WATCHED) < 0) {
		close(fd);
		return -1;
	}
	return fd;
}

int os_sync_fs(int fd)
{
	return syncfs(fd) ? -errno : 0;
}

void os_watch_also(int fd, const char *dir)
{
	(void)!inotify_add_watch(fd, dir, WATCHED);
}

void os_watch_drain(int fd)
{
	_Alignas(struct inotify_event) char events[4096];

	for (;;) {
		ssize_t n = read(fd, events, sizeof(events));

		if (n == 0 || (n < 0 && errno != EINTR))
			return;
	}
}
#endif

void os_end_with(pid_t parent)
{
#ifndef __APPLE__
	prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
	if (getppid() != parent)
		_exit(1);
}

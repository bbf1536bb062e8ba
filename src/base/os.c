/* Clocks, processes and folder watches: the system calls that differ between Linux and macOS. Times
 * and process starts are the machine's own in every time namespace, so processes in different
 * containers agree on them. A process counts as dead only if that is certain. */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifdef __APPLE__
#include <sys/sysctl.h>
#else
#include <sys/inotify.h>
#include <sys/prctl.h>
#endif

#include "base/fs.h"
#include "base/os.h"

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
/* A fallback for the kernel's id. It changes when someone sets the clock, so boot_named_well() does
 * not trust it. */
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

/* Does /proc show the pids of this process's own namespace? Not after `unshare --pid` without a new /proc, and not if it is
 * not mounted. */
static bool os_own_proc(void)
{
	char name[32];
	ssize_t n = readlink("/proc/self", name, sizeof(name));
	int64_t pid;

	return n > 0 && str_to_i64(str_n(name, (size_t)n), &pid) && pid == getpid();
}

/* /proc has no file for the pid. Either the process does not exist, or /proc hides it (hidepid). */
static int64_t os_missing(int64_t pid)
{
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
	if (!os_own_proc())
		return -ENOSYS;
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

void os_adopt_orphans(bool yes)
{
#ifdef __APPLE__
	(void)yes;
#else
	prctl(PR_SET_CHILD_SUBREAPER, yes ? 1 : 0);
#endif
}

/* The parent in the text of /proc/PID/stat: "PID (NAME) STATE PARENT ...", where NAME may contain anything. */
static pid_t os_parent_of(const char *pid)
{
	char path[64], text[1024];
	const char *end;
	ssize_t n;
	int fd, parent;

	snprintf(path, sizeof(path), "/proc/%.20s/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	end = strrchr(text, ')');
	return end && sscanf(end, ") %*c %d", &parent) == 1 ? parent : 0;
}

static void os_kill_children(void)
{
	DIR *all = opendir("/proc");
	const struct dirent *e;

	while (all && (e = readdir(all))) {
		pid_t pid = (pid_t)strtol(e->d_name, NULL, 10);

		if (pid > 1 && os_parent_of(e->d_name) == getpid())
			kill(pid, SIGKILL);
	}
	if (all)
		closedir(all);
}

/* A dead child's children are adopted, so the kill is repeated until there is none. */
void os_end_children(void)
{
	const struct timespec tick = { 0, 1000000 };
	pid_t r;

	do {
		os_kill_children();
		r = waitpid(-1, NULL, WNOHANG);
		if (!r)
			nanosleep(&tick, NULL);
	} while (r >= 0 || errno == EINTR);
}

/* --- host ------------------------------------------------------------------------------------- */

bool host_is_loopback(struct str place)
{
	const char *colon = memrchr(str_p(place), ':', place.n);
	char text[INET_ADDRSTRLEN];
	unsigned char bytes[4];

	if (colon && place.p[place.n - 1] != ']')
		place.n = (size_t)(colon - place.p);
	if (str_is(place, "localhost") || str_is(place, "[::1]"))
		return true;
	if (!str_starts(place, STR("127.")) || place.n >= sizeof(text))
		return false;
	snprintf(text, sizeof(text), "%.*s", STRF(place));
	return inet_pton(AF_INET, text, bytes) == 1;
}

/* --- proc ------------------------------------------------------------------------------------- */

/* A boot id that is derived from the boot time changes when someone sets the clock. */
static bool boot_named_well(struct str boot_id)
{
	return boot_id.n && !str_starts(boot_id, STR("btime-")) && !str_is(boot_id, "unknown");
}

struct str proc_here(struct arena *a)
{
	return arena_printf(a, "%s/%s", arena_cstr(a, os_boot_id(a)),
			    arena_cstr(a, os_pid_space(a)));
}

/* Two time namespaces may round the same start to neighbouring ticks. A pid is not reused that
 * soon. */
static bool same_start(int64_t found, int64_t noted)
{
	return noted >= found - 1 && noted <= found + 1;
}

int64_t proc_start(int64_t pid)
{
	int64_t start = os_process_start(pid);

	return start > 0 ? start : 0;
}

static enum proc_life same_host(struct arena *a, struct str there, int64_t pid, int64_t start)
{
	struct str here = proc_here(a), boot = str_cut(&here, '/'),
		   boot_there = str_cut(&there, '/');
	int64_t found;

	if (!str_eq(boot_there, boot))
		return boot_named_well(boot_there) && boot_named_well(boot) ? PROC_DEAD
									    : PROC_UNKNOWN;
	if (!str_eq(there, here))
		return PROC_UNKNOWN; /* another pid namespace's pids mean nothing here */
	found = os_process_start(pid);
	if (found < 0)
		return PROC_UNKNOWN;
	if (found == 0)
		return PROC_DEAD;
	if (start <= 0)
		return PROC_UNKNOWN;
	return same_start(found, start) ? PROC_ALIVE : PROC_DEAD;
}

enum proc_life proc_life(struct str host, struct str place, int64_t pid, int64_t start)
{
	struct arena a = { 0 };
	enum proc_life life = PROC_UNKNOWN;

	if (host.n && pid > 0 && str_eq(host, os_hostname(&a)))
		life = same_host(&a, place, pid, start);
	arena_free(&a);
	return life;
}

bool proc_died_here(struct str host, struct str place, int64_t pid, int64_t start)
{
	struct arena a = { 0 };
	struct str boot = place;
	bool here = boot_named_well(str_cut(&boot, '/')) && str_eq(place, proc_here(&a));

	arena_free(&a);
	return here && proc_life(host, place, pid, start) == PROC_DEAD;
}

/* --- time namespaces -------------------------------------------------------------------------- */

#ifdef __APPLE__
int64_t timespace_offset(void)
{
	return 0;
}

bool timespace_known(void)
{
	return true;
}

void timespace_forget(void)
{
}
#else
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#define FIRST_SPACE "time:[4026531834]" /* the machine's own namespace: a constant of the kernel */
#define NANO INT64_C(1000000000)
#define LONGEST (INT64_C(1) << 33) /* seconds; keeps an offset in ns within range */

enum { NOT_READ, KNOWN, UNKNOWN };

static _Atomic int state;
static _Atomic int64_t offset; /* written before `state` */

void timespace_forget(void)
{
	state = NOT_READ;
}

static struct str timespace_space(struct arena *a, const char *link)
{
	char name[64];
	ssize_t n = readlink(link, name, sizeof(name));

	return n > 0 ? arena_str(a, str_n(name, (size_t)n)) : STR("");
}

static struct str next_word(struct str *line)
{
	struct str word = { 0 };

	while (line->n && !word.n)
		word = str_cut(line, ' ');
	return word;
}

/* A line is "boottime     100000         0": seconds and nanoseconds. */
static bool read_offset(struct arena *a, int64_t *out)
{
	struct str text;
	int64_t s, ns;

	if (fs_read(a, "/proc/self/timens_offsets", 4096, &text))
		return false;
	while (text.n) {
		struct str line = str_cut(&text, '\n');

		if (!str_is(next_word(&line), "boottime"))
			continue;
		if (!str_to_i64(next_word(&line), &s) || !str_to_i64(next_word(&line), &ns) ||
		    s < -LONGEST || s > LONGEST || ns < 0 || ns >= NANO)
			return false;
		*out = s * NANO + ns;
		return true;
	}
	return false;
}

/* A kernel without time namespaces does not have this link. The offsets in /proc are those for our
 * children. Ours are the same, unless this process itself has made a namespace for its children. */
static bool find_offset(int64_t *out)
{
	struct arena a = { 0 };
	struct str own = timespace_space(&a, "/proc/self/ns/time");
	bool known = true;

	*out = 0;
	if (own.n && !str_is(own, FIRST_SPACE))
		known = str_eq(own, timespace_space(&a, "/proc/self/ns/time_for_children")) &&
			read_offset(&a, out);
	arena_free(&a);
	return known;
}

/* A child may be in another time namespace, so it must read the offset again. */
static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, timespace_forget);
}

static int timespace_settle(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	int64_t found;
	int now = state;

	if (now != NOT_READ)
		return now;
	pthread_once(&once, watch_forks);
	now = find_offset(&found) ? KNOWN : UNKNOWN;
	offset = found;
	state = now;
	return now;
}

int64_t timespace_offset(void)
{
	return timespace_settle() == KNOWN ? offset : 0;
}

bool timespace_known(void)
{
	return timespace_settle() == KNOWN;
}
#endif

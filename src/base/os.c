#include "base/os.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <pwd.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#ifdef __APPLE__
#include <sys/mount.h>
#include <sys/param.h>
#include <sys/sysctl.h>
#else
#include <linux/futex.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#endif

#include "base/fs.h"
#include "base/timespace.h"

#define PROC_FILE_MAX (16 << 20)
#define NANO INT64_C(1000000000)
#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

static int64_t clock_ns(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return ts.tv_sec * NANO + ts.tv_nsec;
}

static struct timespec to_timespec(int64_t ns)
{
	return (struct timespec){ .tv_sec = ns / NANO, .tv_nsec = ns % NANO };
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
			return arena_printf(a, "btime-%.*s", STRF(str_trim(line)));
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

/* flock, restarted after interruptions: 0, -EWOULDBLOCK, another -errno. */
static int try_lock(int fd)
{
	int r;

	do
		r = flock(fd, LOCK_EX | LOCK_NB);
	while (r && errno == EINTR);
	return r ? -errno : 0;
}

/* For systems without timers that could cut a wait short. */
static int lock_polling(int fd, int64_t deadline)
{
	const int64_t longest = 5000000;
	int64_t nap = 100000;

	for (;;) {
		int64_t left = deadline - os_monotonic_ns();
		int r = try_lock(fd);
		struct timespec ts;

		if (r != -EWOULDBLOCK)
			return r;
		if (left <= 0)
			return -ETIMEDOUT;
		ts = to_timespec(nap < left ? nap : left);
		nanosleep(&ts, NULL);
		nap = nap * 2 < longest ? nap * 2 : longest;
	}
}

#ifdef __APPLE__
static int lock_waiting(int fd, int64_t deadline)
{
	return lock_polling(fd, deadline);
}
#else
#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

/* SIGALRM and its one timer belong to the surrounding program. No known program uses this
 * signal. */
#define LOCK_SIGNAL (SIGRTMIN + 7)

static void do_nothing(int number)
{
	(void)number;
}

/* Without SA_RESTART: the signal must interrupt flock. */
static void install_handler(void)
{
	struct sigaction sa = { .sa_handler = do_nothing };

	sigemptyset(&sa.sa_mask);
	sigaction(LOCK_SIGNAL, &sa, NULL);
}

/* Signals this thread at the deadline and every few ms after it. The first signal may come just
 * before flock starts to sleep, and would be lost. */
static int start_timer(timer_t *timer, int64_t deadline)
{
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = LOCK_SIGNAL };
	struct itimerspec times = {
		.it_value = to_timespec(deadline),
		.it_interval = to_timespec(5000000),
	};

	event.sigev_notify_thread_id = gettid();
	if (timer_create(CLOCK_MONOTONIC, &event, timer))
		return -errno;
	if (timer_settime(*timer, TIMER_ABSTIME, &times, NULL)) {
		int err = errno;

		timer_delete(*timer);
		return -err;
	}
	return 0;
}

static int lock_until(int fd, int64_t deadline)
{
	for (;;) {
		if (flock(fd, LOCK_EX) == 0)
			return 0;
		if (errno != EINTR)
			return -errno;
		if (os_monotonic_ns() >= deadline)
			return -ETIMEDOUT;
	}
}

static int lock_waiting(int fd, int64_t deadline)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	sigset_t ours, before;
	timer_t timer;
	int r;

	pthread_once(&once, install_handler);
	if (start_timer(&timer, deadline))
		return lock_polling(fd, deadline);
	sigemptyset(&ours);
	sigaddset(&ours, LOCK_SIGNAL);
	pthread_sigmask(SIG_UNBLOCK, &ours, &before);
	r = lock_until(fd, deadline);
	/* in this order no signal is pending when the mask is restored */
	timer_delete(timer);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return r;
}
#endif

int os_lock(int fd, int64_t timeout_ms)
{
	const int64_t longest = INT64_C(1) << 40; /* ms; the sum below cannot overflow */
	int r = try_lock(fd);

	if (r != -EWOULDBLOCK)
		return r;
	if (timeout_ms <= 0)
		return -ETIMEDOUT;
	if (timeout_ms > longest)
		timeout_ms = longest;
	return lock_waiting(fd, os_monotonic_ns() + timeout_ms * 1000000);
}

void os_unlock(int fd)
{
	int err = errno;

	while (flock(fd, LOCK_UN) && errno == EINTR)
		;
	errno = err;
}

#ifdef __APPLE__
int os_own_byte(int fd, int64_t at)
{
	(void)fd, (void)at;
	return -ENOSYS;
}

int os_share_byte(int fd, int64_t at)
{
	return os_own_byte(fd, at);
}

void os_leave_byte(int fd, int64_t at)
{
	(void)fd, (void)at;
}

bool os_byte_shared(int fd, int64_t at)
{
	(void)fd, (void)at;
	return false;
}

void os_word_wait(_Atomic uint32_t *word, uint32_t seen, int64_t ms)
{
	(void)word, (void)seen, (void)ms;
	usleep(1000);
}

void os_word_wake(_Atomic uint32_t *word)
{
	(void)word;
}

void os_word_wake_all(_Atomic uint32_t *word)
{
	(void)word;
}
#else
static int byte_lock(int fd, int64_t at, short type)
{
	struct flock range = { .l_type = type, .l_whence = SEEK_SET, .l_start = at, .l_len = 1 };

	return fcntl(fd, F_OFD_SETLK, &range) ? -errno : 0;
}

int os_own_byte(int fd, int64_t at)
{
	return byte_lock(fd, at, F_WRLCK);
}

int os_share_byte(int fd, int64_t at)
{
	return byte_lock(fd, at, F_RDLCK);
}

void os_leave_byte(int fd, int64_t at)
{
	(void)byte_lock(fd, at, F_UNLCK);
}

bool os_byte_shared(int fd, int64_t at)
{
	struct flock range = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = at, .l_len = 1 };

	return fcntl(fd, F_OFD_GETLK, &range) == 0 && range.l_type != F_UNLCK;
}

void os_word_wait(_Atomic uint32_t *word, uint32_t seen, int64_t ms)
{
	struct timespec timeout = to_timespec(ms * 1000000);

	syscall(SYS_futex, word, FUTEX_WAIT, seen, &timeout, NULL, 0);
}

void os_word_wake(_Atomic uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

void os_word_wake_all(_Atomic uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}
#endif

/* statfs of the path, or of the folder in which it would be created. */
static int statfs_near(struct arena *a, const char *path, struct statfs *out, const char **found)
{
	for (;;) {
		const char *up;

		*found = path;
		if (statfs(path, out) == 0)
			return 0;
		if (errno == EINTR)
			continue;
		if (errno != ENOENT && errno != ENOTDIR)
			return -errno;
		up = arena_cstr(a, fs_dirname(str_c(path)));
		if (strcmp(up, path) == 0)
			return -ENOENT;
		path = up;
	}
}

#ifdef __APPLE__
static const char *network_name(struct arena *a, const char *path, const struct statfs *fs)
{
	static const char *const names[] = { "nfs", "smbfs", "afpfs", "webdav", "macfuse" };

	(void)a, (void)path;
	if (fs->f_flags & MNT_LOCAL)
		return NULL;
	for (size_t i = 0; i < COUNT(names); i++)
		if (strcmp(fs->f_fstypename, names[i]) == 0)
			return names[i];
	return "network";
}
#else
/* The part after " - " of a mountinfo line such as "36 35 98:0 / /mnt rw - ext3 /dev/root rw". */
static struct str mount_type(struct str line, struct str device)
{
	str_cut(&line, ' ');
	str_cut(&line, ' ');
	if (!str_eq(str_cut(&line, ' '), device))
		return STR("");
	while (line.n)
		if (str_is(str_cut(&line, ' '), "-"))
			return str_cut(&line, ' ');
	return STR("");
}

/* clang-format off */
/* FUSE types whose files are on another machine. */
static const char *const far_fuse[] = {
	"virtiofs", "fuse.afpfs", "fuse.blobfuse", "fuse.blobfuse2", "fuse.ceph",
	"fuse.ceph-fuse", "fuse.curlftpfs", "fuse.davfs", "fuse.davfs2", "fuse.fuse_dfs",
	"fuse.gcsfuse", "fuse.glusterfs", "fuse.google-drive-ocamlfuse", "fuse.goofys",
	"fuse.grpcfuse", "fuse.gvfsd-fuse", "fuse.httpfs", "fuse.juicefs", "fuse.lizardfs",
	"fuse.mfs", "fuse.moosefs", "fuse.mount-s3", "fuse.mountpoint-s3", "fuse.nfs",
	"fuse.onedriver", "fuse.osxfs", "fuse.rclone", "fuse.s3fs", "fuse.seaweedfs",
	"fuse.smbnetfs", "fuse.sshfs", "fuse.vmhgfs-fuse", "fuse.xrootdfs",
};
/* clang-format on */

/* All FUSE file systems share one magic number, local (ntfs-3g) or remote; the mount tells the
 * type. */
static const char *network_fuse(struct arena *a, const char *path)
{
	struct stat st;
	struct str mounts, device;

	if (stat(path, &st) || fs_read(a, "/proc/self/mountinfo", PROC_FILE_MAX, &mounts))
		return NULL;
	device = arena_printf(a, "%u:%u", major(st.st_dev), minor(st.st_dev));
	while (mounts.n) {
		struct str type = mount_type(str_cut(&mounts, '\n'), device);

		for (size_t i = 0; i < COUNT(far_fuse); i++)
			if (str_is(type, far_fuse[i]))
				return far_fuse[i];
	}
	return NULL;
}

static const char *network_name(struct arena *a, const char *path, const struct statfs *fs)
{
	/* Includes file systems of clusters and virtual machines: their locks or mappings are not
	 * reliable. */
	static const struct {
		uint32_t magic;
		const char *name;
	} table[] = {
		{ 0x00006969, "nfs" },   { 0x0000517b, "smb" },    { 0xfe534d42, "smb2" },
		{ 0xff534d42, "cifs" },  { 0x5346414f, "afs" },    { 0x6b414653, "afs" },
		{ 0x00c36400, "ceph" },  { 0x01021997, "9p" },     { 0x0bd00bd0, "lustre" },
		{ 0x47504653, "gpfs" },  { 0x73757245, "coda" },   { 0x0000564c, "ncp" },
		{ 0x7461636f, "ocfs2" }, { 0x01161970, "gfs2" },   { 0x19830326, "beegfs" },
		{ 0xaad7aaea, "panfs" }, { 0xbacbacbc, "vmhgfs" }, { 0x786f4256, "vboxsf" },
	};
	uint32_t magic = (uint32_t)fs->f_type;

	if (magic == 0x65735546)
		return network_fuse(a, path);
	for (size_t i = 0; i < COUNT(table); i++)
		if (table[i].magic == magic)
			return table[i].name;
	return NULL;
}
#endif

const char *os_network_fs(const char *path)
{
	struct arena a = { 0 };
	struct statfs fs;
	const char *name = NULL, *found;

	if (statfs_near(&a, path, &fs, &found) == 0)
		name = network_name(&a, found, &fs);
	arena_free(&a);
	return name;
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
static int64_t missing(int64_t pid)
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
		r = missing(pid);
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

/* The table: functions with the names of libc's. They reach the kernel only through syscall(). */
#include "calls.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

const char *const call_names[] = {
#define KIND(name) #name,
#include "calls.def"
#undef KIND
};

struct calls calls;
void (*calls_effect)(const struct effect *e);
void (*calls_stat)(const char *path, struct stat *st);

void calls_arm(const struct call_fault *fault)
{
	calls = (struct calls){ .armed = true, .fault = *fault };
}

void calls_disarm(void)
{
	calls.armed = false;
}

/* --- pass on or fail ----------------------------------------------------------------------------- */

/* 0: continue; otherwise errno is set, or only a part is to be done (FAULT_SHORT). */
static int fault_of(enum call_kind kind)
{
	const struct call_fault *f = &calls.fault;

	if (!calls.armed)
		return 0;
	calls.seen[kind]++;
	if (kind != f->kind || f->nth == 0 || calls.seen[kind] < f->nth ||
	    (calls.seen[kind] > f->nth && !f->always))
		return 0;
	calls.fired++;
	if (f->err != FAULT_SHORT)
		errno = f->err;
	return f->err;
}

static bool fails(enum call_kind kind)
{
	return fault_of(kind) > 0;
}

static long real(long number, long a, long b, long c, long d, long e, long f)
{
	long r;

	calls.inside++;
	r = syscall(number, a, b, c, d, e, f);
	calls.inside--;
	return r;
}

#define P(p) ((long)(p))
#define REAL(name, ...) REAL_(SYS_##name, __VA_ARGS__, 0, 0, 0, 0, 0, 0)
#define REAL_(number, a, b, c, d, e, f, ...) \
	real(number, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

/* Another name for the same function: off_t has 64 bits anyway. */
#define ALSO(other, name) extern __typeof(name) other __attribute__((alias(#name)))

static void tell(const struct effect *e)
{
	int err = errno;

	if (calls_effect)
		calls_effect(e);
	errno = err;
}

/* --- open, close --------------------------------------------------------------------------------- */

static int open_it(int dir, const char *path, int flags, mode_t mode)
{
	bool there = true;
	int fd;

	if (fails(CALL_open))
		return -1;
	if (calls_effect && flags & O_CREAT)
		there = REAL(faccessat, dir, P(path), F_OK) == 0;
	fd = (int)REAL(openat, dir, P(path), flags, mode);
	if (fd >= 0 && !there)
		tell(&(struct effect){
			.kind = EFFECT_CREATED, .fd = fd, .dir = dir, .path = path });
	if (fd >= 0 && flags & O_TRUNC)
		tell(&(struct effect){ .kind = EFFECT_CUT, .fd = fd });
	return fd;
}

static mode_t mode_of(int flags, va_list ap)
{
	return flags & (O_CREAT | __O_TMPFILE) ? va_arg(ap, mode_t) : 0;
}

int open(const char *path, int flags, ...)
{
	va_list ap;
	int fd;

	va_start(ap, flags);
	fd = open_it(AT_FDCWD, path, flags, mode_of(flags, ap));
	va_end(ap);
	return fd;
}
ALSO(open64, open);

int openat(int dir, const char *path, int flags, ...)
{
	va_list ap;
	int fd;

	va_start(ap, flags);
	fd = open_it(dir, path, flags, mode_of(flags, ap));
	va_end(ap);
	return fd;
}
ALSO(openat64, openat);

int __open_2(const char *path, int flags);
int __open_2(const char *path, int flags)
{
	return open_it(AT_FDCWD, path, flags, 0);
}
ALSO(__open64_2, __open_2);

int __openat_2(int dir, const char *path, int flags);
int __openat_2(int dir, const char *path, int flags)
{
	return open_it(dir, path, flags, 0);
}
ALSO(__openat64_2, __openat_2);

/* A close that fails has released the descriptor all the same, as on Linux. */
int close(int fd)
{
	bool failed = fails(CALL_close);
	int err = errno;

	if (!failed)
		return (int)REAL(close, fd);
	REAL(close, fd);
	errno = err;
	return -1;
}

/* libc's own function, for state that it keeps in memory */
#define LIBC(name) ((__typeof(&(name)))dlsym(RTLD_NEXT, #name))

DIR *opendir(const char *path)
{
	DIR *d;

	if (fails(CALL_open))
		return NULL;
	calls.inside++;
	d = LIBC(opendir)(path);
	calls.inside--;
	return d;
}

DIR *fdopendir(int fd)
{
	DIR *d;

	if (fails(CALL_open))
		return NULL;
	calls.inside++;
	d = LIBC(fdopendir)(fd);
	calls.inside--;
	return d;
}

struct dirent *readdir(DIR *d)
{
	struct dirent *e;

	if (fails(CALL_list))
		return NULL;
	calls.inside++;
	e = LIBC(readdir)(d);
	calls.inside--;
	return e;
}

struct dirent64 *readdir64(DIR *d)
{
	return (struct dirent64 *)readdir(d);
}

int closedir(DIR *d)
{
	int r;

	calls.inside++;
	r = LIBC(closedir)(d);
	calls.inside--;
	return fails(CALL_close) ? -1 : r;
}

/* --- read, write --------------------------------------------------------------------------------- */

static size_t part_of(size_t n, int fault)
{
	return fault == FAULT_SHORT && n > 1 ? n / 2 : n;
}

ssize_t read(int fd, void *p, size_t n)
{
	int fault = fault_of(CALL_read);

	return fault > 0 ? -1 : REAL(read, fd, P(p), part_of(n, fault));
}

ssize_t __read_chk(int fd, void *p, size_t n, size_t room);
ssize_t __read_chk(int fd, void *p, size_t n, size_t room)
{
	(void)room;
	return read(fd, p, n);
}

ssize_t pread(int fd, void *p, size_t n, off_t at)
{
	int fault = fault_of(CALL_read);

	return fault > 0 ? -1 : REAL(pread64, fd, P(p), part_of(n, fault), at);
}
ALSO(pread64, pread);

ssize_t __pread_chk(int fd, void *p, size_t n, off_t at, size_t room);
ssize_t __pread_chk(int fd, void *p, size_t n, off_t at, size_t room)
{
	(void)room;
	return pread(fd, p, n, at);
}
ALSO(__pread64_chk, __pread_chk);

static ssize_t put(int fd, const void *p, size_t n, off_t at, bool here)
{
	int fault = fault_of(CALL_write);
	ssize_t done;

	if (fault > 0)
		return -1;
	n = part_of(n, fault);
	if (here && calls_effect)
		at = (off_t)REAL(lseek, fd, 0,
				 REAL(fcntl, fd, F_GETFL) & O_APPEND ? SEEK_END : SEEK_CUR);
	done = here ? REAL(write, fd, P(p), n) : REAL(pwrite64, fd, P(p), n, at);
	if (done > 0)
		tell(&(struct effect){
			.kind = EFFECT_WROTE, .fd = fd, .data = p, .n = (size_t)done, .at = at });
	return done;
}

ssize_t write(int fd, const void *p, size_t n)
{
	return put(fd, p, n, 0, true);
}

ssize_t pwrite(int fd, const void *p, size_t n, off_t at)
{
	return put(fd, p, n, at, false);
}
ALSO(pwrite64, pwrite);

/* Writes the pieces one by one: callers must expect that only some of them are written. */
ssize_t writev(int fd, const struct iovec *v, int n)
{
	ssize_t sum = 0, done = 0;

	for (int i = 0; i < n && (i == 0 || done == (ssize_t)v[i - 1].iov_len); i++) {
		done = write(fd, v[i].iov_base, v[i].iov_len);
		if (done < 0)
			return sum ? sum : -1;
		sum += done;
	}
	return sum;
}

/* --- sync, size ---------------------------------------------------------------------------------- */

static int sync_it(long number, int fd)
{
	int r = fails(CALL_sync) ? -1 : (int)real(number, fd, 0, 0, 0, 0, 0);

	if (r == 0)
		tell(&(struct effect){ .kind = EFFECT_SYNCED, .fd = fd });
	return r;
}

int fsync(int fd)
{
	return sync_it(SYS_fsync, fd);
}

int fdatasync(int fd)
{
	return sync_it(SYS_fdatasync, fd);
}

int syncfs(int fd)
{
	int r = fails(CALL_sync) ? -1 : (int)REAL(syncfs, fd);

	if (r == 0)
		tell(&(struct effect){ .kind = EFFECT_SYNCED_ALL });
	return r;
}

int ftruncate(int fd, off_t size)
{
	int r = fails(CALL_truncate) ? -1 : (int)REAL(ftruncate, fd, size);

	if (r == 0)
		tell(&(struct effect){ .kind = EFFECT_CUT, .fd = fd, .at = size });
	return r;
}
ALSO(ftruncate64, ftruncate);

int fallocate(int fd, int mode, off_t at, off_t n)
{
	return fails(CALL_truncate) ? -1 : (int)REAL(fallocate, fd, mode, at, n);
}
ALSO(fallocate64, fallocate);

int posix_fallocate(int fd, off_t at, off_t n)
{
	return fallocate(fd, 0, at, n) ? errno : 0;
}
ALSO(posix_fallocate64, posix_fallocate);

off_t lseek(int fd, off_t at, int from)
{
	return (off_t)REAL(lseek, fd, at, from);
}
ALSO(lseek64, lseek);

/* --- stat ---------------------------------------------------------------------------------------- */

static bool name_of(int fd, char name[4096])
{
	char link[40];
	long n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = REAL(readlinkat, AT_FDCWD, P(link), P(name), 4095);
	name[n > 0 ? n : 0] = '\0';
	return n > 0;
}

static int stat_it(int dir, const char *path, struct stat *st, int flags)
{
	char name[4096];
	int r = fails(CALL_stat) ? -1 : (int)REAL(newfstatat, dir, P(path), P(st), flags);

	if (r == 0 && calls_stat && (!(flags & AT_EMPTY_PATH) || name_of(dir, name)))
		calls_stat(flags & AT_EMPTY_PATH ? name : path, st);
	return r;
}

/* As in a sandbox that does not know it; the program then calls lstat(). */
int statx(int dir, const char *path, int flags, unsigned mask, struct statx *st)
{
	(void)dir, (void)path, (void)flags, (void)mask, (void)st;
	errno = ENOSYS;
	return -1;
}

int stat(const char *path, struct stat *st)
{
	return stat_it(AT_FDCWD, path, st, 0);
}

int lstat(const char *path, struct stat *st)
{
	return stat_it(AT_FDCWD, path, st, AT_SYMLINK_NOFOLLOW);
}

int fstat(int fd, struct stat *st)
{
	return stat_it(fd, "", st, AT_EMPTY_PATH);
}

int fstatat(int dir, const char *path, struct stat *st, int flags)
{
	return stat_it(dir, path, st, flags);
}

int stat64(const char *path, struct stat64 *st)
{
	return stat(path, (struct stat *)st);
}

int lstat64(const char *path, struct stat64 *st)
{
	return lstat(path, (struct stat *)st);
}

int fstat64(int fd, struct stat64 *st)
{
	return fstat(fd, (struct stat *)st);
}

int fstatat64(int dir, const char *path, struct stat64 *st, int flags)
{
	return fstatat(dir, path, (struct stat *)st, flags);
}

int access(const char *path, int mode)
{
	return fails(CALL_stat) ? -1 : (int)REAL(faccessat, AT_FDCWD, P(path), mode);
}

int faccessat(int dir, const char *path, int mode, int flags)
{
	return fails(CALL_stat) ? -1 : (int)REAL(faccessat2, dir, P(path), mode, flags);
}

int statfs(const char *path, struct statfs *fs)
{
	return fails(CALL_stat) ? -1 : (int)REAL(statfs, P(path), P(fs));
}

int statfs64(const char *path, struct statfs64 *fs)
{
	return statfs(path, (struct statfs *)fs);
}

/* --- locks, mappings ----------------------------------------------------------------------------- */

/* Unlocking a local file does not fail. */
int flock(int fd, int how)
{
	return !(how & LOCK_UN) && fails(CALL_lock) ? -1 : (int)REAL(flock, fd, how);
}

static bool locks(int command, const struct flock *lock)
{
	if (command == F_GETLK || command == F_OFD_GETLK)
		return true;
	return (command == F_SETLK || command == F_SETLKW || command == F_OFD_SETLK ||
		command == F_OFD_SETLKW) &&
	       lock->l_type != F_UNLCK;
}

int fcntl(int fd, int command, ...)
{
	va_list ap;
	void *arg;

	va_start(ap, command);
	arg = va_arg(ap, void *);
	va_end(ap);
	if (locks(command, arg) && fails(CALL_lock))
		return -1;
	return (int)REAL(fcntl, fd, command, P(arg));
}
ALSO(fcntl64, fcntl);

void *mmap(void *at, size_t n, int prot, int flags, int fd, off_t from)
{
	void *p;

	if (fd >= 0 && fails(CALL_map))
		return MAP_FAILED;
	p = (void *)REAL_(SYS_mmap, P(at), n, prot, flags, fd, from, 0);
	if (p != MAP_FAILED && fd >= 0 && flags & MAP_SHARED && prot & PROT_WRITE)
		tell(&(struct effect){ .kind = EFFECT_MAPPED, .fd = fd });
	return p;
}
ALSO(mmap64, mmap);

int munmap(void *p, size_t n)
{
	bool failed = fails(CALL_unmap);
	int err = errno, r = (int)REAL(munmap, P(p), n);

	if (failed)
		errno = err;
	return failed ? -1 : r;
}

/* --- names --------------------------------------------------------------------------------------- */

static int remove_it(int dir, const char *path, int flags)
{
	int r = fails(CALL_name) ? -1 : (int)REAL(unlinkat, dir, P(path), flags);

	if (r == 0)
		tell(&(struct effect){ .kind = EFFECT_REMOVED, .dir = dir, .path = path });
	return r;
}

int unlink(const char *path)
{
	return remove_it(AT_FDCWD, path, 0);
}

int unlinkat(int dir, const char *path, int flags)
{
	return remove_it(dir, path, flags);
}

int rmdir(const char *path)
{
	return remove_it(AT_FDCWD, path, AT_REMOVEDIR);
}

int mkdirat(int dir, const char *path, mode_t mode)
{
	int r = fails(CALL_name) ? -1 : (int)REAL(mkdirat, dir, P(path), mode);

	if (r == 0)
		tell(&(struct effect){ .kind = EFFECT_MADE_DIR, .dir = dir, .path = path });
	return r;
}

int mkdir(const char *path, mode_t mode)
{
	return mkdirat(AT_FDCWD, path, mode);
}

int renameat2(int from_dir, const char *from, int dir, const char *path, unsigned flags)
{
	struct effect e = {
		.kind = EFFECT_RENAMED, .dir = dir, .path = path, .dir2 = from_dir, .path2 = from
	};
	int r = fails(CALL_name) ? -1
				 : (int)REAL(renameat2, from_dir, P(from), dir, P(path), flags);

	if (r == 0)
		tell(&e);
	return r;
}

int renameat(int from_dir, const char *from, int dir, const char *path)
{
	return renameat2(from_dir, from, dir, path, 0);
}

int rename(const char *from, const char *path)
{
	return renameat2(AT_FDCWD, from, AT_FDCWD, path, 0);
}

int linkat(int from_dir, const char *from, int dir, const char *path, int flags)
{
	struct effect e = {
		.kind = EFFECT_LINKED, .dir = dir, .path = path, .dir2 = from_dir, .path2 = from
	};
	int r = fails(CALL_name) ? -1 : (int)REAL(linkat, from_dir, P(from), dir, P(path), flags);

	if (r == 0)
		tell(&e);
	return r;
}

int link(const char *from, const char *path)
{
	return linkat(AT_FDCWD, from, AT_FDCWD, path, 0);
}

/* --- the rest ------------------------------------------------------------------------------------ */

int fchmod(int fd, mode_t mode)
{
	return fails(CALL_mode) ? -1 : (int)REAL(fchmod, fd, mode);
}

int fchown(int fd, uid_t uid, gid_t gid)
{
	return fails(CALL_mode) ? -1 : (int)REAL(fchown, fd, uid, gid);
}

int futimens(int fd, const struct timespec times[2])
{
	return fails(CALL_mode) ? -1 : (int)REAL(utimensat, fd, 0, P(times), 0);
}

ssize_t readlink(const char *path, char *out, size_t room)
{
	return fails(CALL_path) ? -1 : REAL(readlinkat, AT_FDCWD, P(path), P(out), room);
}

ssize_t __readlink_chk(const char *path, char *out, size_t n, size_t room);
ssize_t __readlink_chk(const char *path, char *out, size_t n, size_t room)
{
	(void)room;
	return readlink(path, out, n);
}

char *getcwd(char *out, size_t room)
{
	char *p;

	if (fails(CALL_path))
		return NULL;
	calls.inside++;
	p = LIBC(getcwd)(out, room);
	calls.inside--;
	return p;
}

int inotify_init1(int flags)
{
	return fails(CALL_watch) ? -1 : (int)REAL(inotify_init1, flags);
}

int inotify_add_watch(int fd, const char *path, uint32_t mask)
{
	return fails(CALL_watch) ? -1 : (int)REAL(inotify_add_watch, fd, P(path), mask);
}

/* --- memory -------------------------------------------------------------------------------------- */

void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);
/* the address sanitizer's functions, if it is linked */
void *__interceptor_malloc(size_t n) __attribute__((weak));
void *__interceptor_calloc(size_t n, size_t size) __attribute__((weak));
void *__interceptor_realloc(void *p, size_t n) __attribute__((weak));

void *malloc(size_t n)
{
	if (fails(CALL_memory))
		return NULL;
	return __interceptor_malloc ? __interceptor_malloc(n) : __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
	if (fails(CALL_memory))
		return NULL;
	return __interceptor_calloc ? __interceptor_calloc(n, size) : __libc_calloc(n, size);
}

void *realloc(void *p, size_t n)
{
	if (fails(CALL_memory))
		return NULL;
	return __interceptor_realloc ? __interceptor_realloc(p, n) : __libc_realloc(p, n);
}

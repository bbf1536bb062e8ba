/* Recognizes network file systems, on which locks and mappings are not reliable. */
#include <errno.h>
#include <sys/stat.h>

#ifdef __APPLE__
#include <sys/mount.h>
#include <sys/param.h>
#else
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#endif

#include "base/fs.h"
#include "base/os.h"

#define MOUNTS_MAX (16 << 20)
#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

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

/* Local (ntfs-3g) and remote FUSE file systems share one magic number, so the type comes from the
 * mount table. */
static const char *network_fuse(struct arena *a, const char *path)
{
	struct stat st;
	struct str mounts, device;

	if (stat(path, &st) || fs_read(a, "/proc/self/mountinfo", MOUNTS_MAX, &mounts))
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
	/* The table includes cluster and virtual machine file systems, because their locks or
	 * mappings are not reliable. */
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

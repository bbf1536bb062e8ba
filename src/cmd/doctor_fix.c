/*
 * The repairs of `doctor --fix`. The lock @maintenance excludes all changes from before the backup
 * until the last repair, so the backup is exactly the state that the repairs change. A killed run
 * leaves its lock behind; the next run recognises the dead process and breaks the lock.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/os.h"
#include "client/queue_lock.h"
#include "cmd/cmd.h"
#include "transfer/backup_file.h"

#define LOCK_ID STR("@maintenance")
#define DAY_S 86400

/* --- the lock of the whole queue ------------------------------------------------------------------------ */

/* Breaks the lock of a process that is certainly dead. */
static bool break_dead(struct client *c)
{
	struct request status = { .op = OP_LOCK_STATUS }, rq = { .op = OP_LOCK_BREAK };
	struct answer ans;

	GIVE(&status, id, LOCK_ID);
	client_call(c, &status, &ans);
	if (ans.code != SUCCESS || !ans.task || ans.task->lock.life != LIFE_DEAD)
		return false;
	GIVE(&rq, id, LOCK_ID);
	GIVE(&rq, reason, STR("its process is dead (doctor --fix)"));
	client_call(c, &rq, &ans);
	return ans.code == SUCCESS;
}

static enum result take_lock(struct client *c, struct queue_lock *lock, struct answer *ans)
{
	enum result code = client_lock_queue(c, TYPED_MAINTENANCE, "doctor --fix", lock, ans);

	if (code == CONFLICT && break_dead(c))
		code = client_lock_queue(c, TYPED_MAINTENANCE, "doctor --fix", lock, ans);
	return code;
}

/* Fails if the lock was lost: the backup may have taken longer than the lease, and others may have
 * changed the queue since. */
static enum result doctor_fix_renew(struct client *c, struct answer *ans)
{
	struct request rq = { .op = OP_HEARTBEAT };

	GIVE(&rq, id, LOCK_ID);
	GIVE(&rq, token, client_pass(c, TYPED_MAINTENANCE, c->arena));
	client_call(c, &rq, ans);
	return ans->code;
}

/* --- the files that it writes ---------------------------------------------------------------------------- */

static struct str saved_name(const char *backup, struct arena *a)
{
	struct str stem = str_c(backup);

	stem.n -= strlen(".pawl");
	return arena_printf(a, "%.*s.unrepaired.jsonl", STRF(stem));
}

/* --- the repair -------------------------------------------------------------------------------------------- */

static enum result doctor_fix_repair(struct client *c, enum repair_step step, struct salvage *saved,
				     struct answer *ans)
{
	struct repair_sink sink = salvage_sink(saved);
	size_t n;

	queue_patience(c->conn.queue, client_timeout(c, OP_HEAVY));
	return queue_repair(c->conn.queue, step, &sink, c->self.agent, c->self.run, &n, ans,
			    c->arena);
}

static enum result repair_locked(struct client *c, const char *backup, struct salvage *saved,
				 struct answer *ans)
{
	struct backup b;
	enum result code = backup_write(c->conn.queue, backup, &b, ans, c->arena);

	if (code == SUCCESS)
		code = doctor_fix_renew(c, ans);
	return code == SUCCESS ? doctor_fix_repair(c, REPAIR_DATA, saved, ans) : code;
}

enum result doctor_repair(struct session *s, struct repairs *out, struct answer *ans)
{
	struct client *c = &s->client;
	struct queue_lock lock = { 0 };
	struct salvage saved = { 0 };
	enum result code = client_open(c, STORE_WRITE, ans);

	if (code == SUCCESS)
		code = data_free_name(c, &out->backup, ans);
	if (code != SUCCESS)
		return code;
	salvage_init(&saved, saved_name(out->backup, s->arena), s->arena);
	code = doctor_fix_repair(c, REPAIR_BLOCKS, &saved, ans);
	if (code == SUCCESS)
		code = take_lock(c, &lock, ans);
	if (code == SUCCESS)
		code = repair_locked(c, out->backup, &saved, ans);
	client_unlock_queue(c, &lock);
	salvage_close(&saved);
	out->n_saved = saved.n;
	if (saved.n)
		out->saved = str_c(saved.path);
	return code;
}

/* --- temporary files ------------------------------------------------------------------------------------------ */

static bool all_of(struct str s, const char *letters)
{
	for (size_t i = 0; i < s.n; i++)
		if (!memchr(letters, s.p[i], strlen(letters)))
			return false;
	return true;
}

/* ".pawl-0123456789abcdef.tmp" (base/fs.c), or "TIME.pawl.aB3xYz" (a backup in progress). */
static bool is_temporary(struct str name, bool backups)
{
	static const char alnum[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
	struct str end;

	if (str_starts(name, STR(".pawl-")) && str_ends(name, STR(".tmp")))
		return name.n == 26 && all_of(str_n(name.p + 6, 16), "0123456789abcdef");
	if (!backups || name.n != strlen("2026-01-01T00-00-00.000Z.pawl.XXXXXX"))
		return false;
	end = str_n(name.p + name.n - 12, 12);
	return str_starts(end, STR(".pawl.")) && all_of(str_n(end.p + 6, 6), alnum);
}

/* A file that is a day old is stale: its writer needs it for seconds only. */
static void check_temporary(struct examination *x, int dir, const char *name, bool backups)
{
	struct stat st;

	if (!is_temporary(str_c(name), backups) || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) ||
	    !S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
	    os_wall_ms() / 1000 - st.st_mtime < DAY_S)
		return;
	x->stale++;
	if (x->fix && unlinkat(dir, name, 0) == 0)
		x->removed++;
}

static void search_in(struct examination *x, const char *root, const char *below)
{
	DIR *d = root ? beneath_list(root, below) : NULL;
	const struct dirent *e;

	while (d && (e = readdir(d)))
		check_temporary(x, dirfd(d), e->d_name, *below);
	if (d)
		closedir(d);
}

void doctor_temporary(struct examination *x)
{
	const char *pawl_dir = x->s->client.conn.place.pawl_dir,
		   *config = fs_user_dir(x->s->arena, "XDG_CONFIG_HOME", ".config"),
		   *state = x->s->client.keyring.dir;
	struct arena *a = x->s->arena;

	x->stale = x->removed = 0;
	search_in(x, pawl_dir, "");
	search_in(x, pawl_dir, "backups");
	search_in(x, config, "");
	search_in(x, state, "");
	if (x->stale == x->removed)
		doctor_note(x, CHECK_OK, "temporary files",
			    x->removed ? arena_printf(a, "removed %d", x->removed)
				       : STR("there are no old ones"),
			    STR(""));
	else
		doctor_note(x, CHECK_NOTE, "temporary files",
			    arena_printf(a, "%d, of processes that died while they wrote a file",
					 x->stale - x->removed),
			    STR(CHECK_REPAIRS "remove these files"));
}

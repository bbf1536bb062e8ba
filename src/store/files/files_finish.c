/*
 * Before a change: finishes the change of a process that was killed after its commit. The task files that
 * it did not write are written first, so each change begins on files that match the state.
 */
#include <unistd.h>

#include "store/files/files.h"

#define JOURNAL (256 << 10) /* bytes of frames; fewer need no new snapshot */

/* Finishes the previous process's work. After a reboot, checks every change since the snapshot,
 * because a power loss may have lost files that were not synced. true: there was work, and it is
 * done. */
static bool files_finish_settle(struct files *s, int64_t noted)
{
	bool rebooted = files_rebooted(s);

	s->applied = s->view.seq;
	if (!rebooted && noted == s->view.seq)
		return false;
	/* The previous process may have died between its write and its sync. If a power loss
	 * then took the frame but not its files, those files would count as another program's
	 * changes. */
	if (!rebooted && !s->unsynced && !s->base.env.opt.relaxed)
		s->unsynced = files_sync_state(s) != 0;
	if (files_settle(s, rebooted ? -1 : noted, rebooted))
		return true;
	s->applied = rebooted ? -1 : noted;
	return false;
}

static bool long_enough(const struct view *v)
{
	int64_t limit = v->first / 2 > JOURNAL ? v->first / 2 : JOURNAL;

	return v->end - v->first > limit;
}

/* A snapshot asserts that the files match the state, so all files must be written first. A failed
 * sync also needs a snapshot, because no later sync would write the lost pages. So does a state
 * file with a second hard link, because its content must not change. */
static int files_finish_compact(struct files *s, bool rebooted)
{
	if (s->applied != s->view.seq ||
	    !(rebooted || s->unsynced || s->view.linked || long_enough(&s->view)))
		return 0;
	if (files_compact(s))
		return files_load(s); /* a later change retries; the frames have all data */
	s->unsynced = false;
	return 0;
}

int files_begin_change(struct files *s, bool again)
{
	int64_t folder, noted;
	bool rebooted, settled;
	int rc = files_refresh(s, NULL);

	if (rc == 0 && s->view.gone)
		rc = store_fail(&s->base.env, STORE_ABSENT, "to make a new one: pawl init",
				"another process has removed the queue in %s", s->path);
	if (rc < 0)
		return rc;
	files_read_note(s, &folder, &noted);
	rebooted = files_rebooted(s);
	s->unsynced = noted == FILES_UNSYNCED;
	settled = files_finish_settle(s, noted);
	files_clock_change(s);
	s->changing = true;
	rc = files_finish_compact(s, rebooted);
	if (rc == 0 && settled && !s->unsynced)
		files_write_note(s, 0, s->applied);
	return rc ? rc : files_find_changes(s, again);
}

/*
 * pawl archive: puts ended tasks away. With the setting log.keep it also forgets old events, but
 * only in a call without an ID: to archive one task must not shorten the log.
 */
#include "base/os.h"
#include "cmd/command.h"

static const struct param params[] = {
	PARAM(id, "ID", P_ID, .flags = P_POSITIONAL,
	      .help = "archive only this task (default: all tasks that have ended)"),
	PARAM(older_than, "older-than", P_DURATION,
	      .help = "archive only tasks that ended at least DURATION ago",
	      .model = "only tasks that ended at least this long ago"),
	{ 0 }
};

static enum result archive_cmd_ask(struct session *s, struct args *a, struct reply *out);
static void archive_cmd_tell(struct session *s, const struct args *a, struct reply *out);
static void archive_cmd_show(const struct reply *r, struct view *v);

const struct command cmd_archive = {
	.name = "archive",
	.group = "review",
	.summary = "put away tasks that are Done, Failed or Canceled",
	.detail =
		"An archived task keeps its status and still counts as a dependency. list, find, tree and the overview leave "
		"it out; `pawl list --all` and `pawl show` show it. `pawl tree ID` and `pawl list --parent ID` still show a Failed one, because it holds back its parent. A Done task in the archive cannot be claimed. In a files: store its file moves to the folder "
		"archive; other stores only set archived_at. reopen, retry and claim take a task out of the archive. With the "
		"setting log.keep, archive without ID also forgets older events of ended and removed tasks; open tasks keep "
		"theirs, and no fence and no count of attempts is forgotten. Cursors stay valid.",
	.example = "pawl archive --older-than 7d\n"
		   "pawl archive t1",
	.see = "reopen, remove, lock cleanup",
	.model =
		"Put ended tasks away: they keep their status, and show and list still have them. " MODEL_NOT_FOUND,
	.params = params,
	.flags = C_WRITE | C_IDEMPOTENT,
	.op = OP_ARCHIVE,
	.fails = FAILS(NOT_FOUND),
	.ask = archive_cmd_ask,
	.tell = archive_cmd_tell,
	.show = archive_cmd_show,
};

static enum result archive_cmd_ask(struct session *s, struct args *a, struct reply *out)
{
	const struct settings *settings = &s->client.conn.settings;

	(void)out;
	if (!HAS(&a->rq, id) && settings_given(settings, "log.keep"))
		GIVE(&a->rq, since, os_wall_ms() - settings_number(settings, "log.keep"));
	return SUCCESS;
}

static void archive_cmd_tell(struct session *s, const struct args *a, struct reply *out)
{
	(void)s;
	(void)a;
	if (out->ans.code == SUCCESS && out->ans.text.n)
		json_object_set_new(reply_more(out), "log_kept_since", json_str(out->ans.text));
}

static void archive_cmd_show(const struct reply *r, struct view *v)
{
	show_each(r, v, "archived", r->ans.text.n ? "no task to archive" : "nothing to archive");
	if (r->ans.text.n && !v->quiet)
		view_text(v, DIM, "forgot the events of ended tasks before %.*s\n",
			  STRF(r->ans.text));
}

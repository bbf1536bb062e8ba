/*
 * pawl export: writes a snapshot of the tasks, without locks. The file appears under its name only
 * when it is complete. Without --force only an earlier export is replaced.
 */
#include <errno.h>
#include <string.h>

#include "transfer/foreign_out.h"
#include "cmd/cmd.h"

struct export_args {
	struct args args;
	struct str output, format, to;
	int64_t force;
};

static const struct param params[] = {
	LOCAL(export, output, "output", P_TEXT, .letter = 'o', .flags = P_REQUIRED | P_FILLED,
	      .value = "FILE", .help = "file to write (for md: a folder); - is standard output"),
	PARAM_FORMAT(export),
	LOCAL(export, to, "to", P_CHOICE,
	      .choices = "backlog beads github markdown task-master taskwarrior todo-txt",
	      .value = "PROGRAM",
	      .help = "write the tasks for another program; github: as commands of gh"),
	PARAM(statuses, "status", P_STATUSES, .letter = 's',
	      .help = "export only tasks with this status; may be repeated or listed with commas"),
	LOCAL(export, force, "force", P_FLAG, .letter = 'f',
	      .help = "replace a link, or a file that is not an export of pawl"),
	{ 0 }
};

static enum result export_run(struct session *s, struct args *args, struct reply *out);
static void export_show(const struct reply *r, struct view *v);

const struct command cmd_export = {
	.name = "export",
	.group = "data",
	.summary = "write all tasks to a file or a folder",
	.detail =
		"The export is a snapshot with every field and all comments, but without locks. The file appears under its "
		"name only when it is complete. An earlier export is replaced; any other file needs --force. Any store can "
		"import the file. `--output -` writes to standard output, as JSON unless --format says otherwise.\n\n"
		"With --to it writes for another program. A task that came from that program gets its own id back, and the keys "
		"that pawl kept for it. The answer counts the fields for which that program has no place.",
	.example = "pawl export --output tasks.json\n"
		   "pawl export --output - --format jsonl | grep parser\n"
		   "pawl export --output tasks/\n"
		   "pawl export --output open.csv --status ready,blocked\n"
		   "pawl export --to taskwarrior --output - | task import",
	.see = "import, backup, list",
	.params = params,
	.args_size = sizeof(struct export_args),
	.flags = C_IDEMPOTENT,
	.fails = FAILS(CONFLICT),
	.run = export_run,
	.show = export_show,
};

struct sending {
	struct port_out out;
	struct foreign_out foreign;
	struct data_progress progress;
};

static int export_send(void *ctx, const struct parcel *p)
{
	struct sending *x = ctx;
	int r = port_out_add(&x->out, p);

	data_progress(&x->progress, x->out.n);
	return r;
}

static enum result export_cannot(struct session *s, const char *path, int r, struct reply *out)
{
	const char *hint = "check the folder's permissions and the free space on its disk",
		   *why = strerror(-r);

	if (r == -ENOTEMPTY)
		hint = "name an empty folder, or one that does not exist yet";
	if (r == -EEXIST)
		why = "a file that is not an export of pawl has this name";
	if (r == -ELOOP)
		why = "it is a link";
	if (r == -EEXIST || r == -ELOOP)
		hint = "name another file, or replace this one with --force";
	return run_fail(r == -ENOTEMPTY || r == -EEXIST || r == -ELOOP ? CONFLICT : API_ERROR,
			arena_printf(s->arena, "cannot write %s: %s",
				     strcmp(path, "-") ? path : "to standard output", why),
			str_c(hint), out);
}

/* The number of tasks that lost a value, by field. */
static json_t *lost_json(const struct foreign_out *f)
{
	json_t *o = json_object();

	for (size_t i = 0; i < sizeof(f->lost) / sizeof(*f->lost) && f->lost[i].n; i++)
		json_object_set_new(o, f->lost[i].field, json_integer((json_int_t)f->lost[i].n));
	return o;
}

/* Chooses the format of the file, or of the other program. USAGE: the options contradict each
 * other. */
static enum result choose_format(struct session *s, const struct export_args *a, const char *path,
				 const struct foreign *to, enum port_format *format,
				 struct reply *out)
{
	bool stdout_only = !strcmp(path, "-");

	if (a->to.n && a->format.n)
		return run_fail(USAGE,
				STR("--to and --format cannot be used together: give one of them"),
				STR("run `pawl help export`"), out);
	*format = port_format(stdout_only && !a->format.n ? STR("json") : a->format, path);
	if (to)
		*format = to->shape == FOLDER ? PORT_MD : PORT_JSON;
	if (stdout_only && *format == PORT_MD)
		return run_fail(USAGE,
				STR("md is a folder of files and cannot go to standard output"),
				STR("name a folder: --output tasks/"), out);
	if (stdout_only && s->owns_stdout)
		return run_fail(
			USAGE,
			STR("--output - and --json or --porcelain both need standard output"),
			STR("name a file: --output tasks.json"), out);
	if (*format == PORT_NONE)
		return run_fail(
			USAGE,
			arena_printf(s->arena, "cannot tell the format of %s from its name", path),
			STR("name the format: --format json, jsonl, csv or md"), out);
	return SUCCESS;
}

static enum result export_run(struct session *s, struct args *args, struct reply *out)
{
	const struct export_args *a = (const struct export_args *)args;
	char *path = data_path(s, a->output);
	struct sending x = { .progress = { .session = s, .doing = "exporting" } };
	enum port_format format = PORT_NONE;
	struct answer ans = { 0 };
	enum result code;
	int r;

	x.foreign.to = foreign_find(a->to);
	code = choose_format(s, a, path, x.foreign.to, &format, out);
	if (code != SUCCESS)
		return code;
	if (client_open(&s->client, STORE_READ, &ans) != SUCCESS)
		return run_answer(&ans, out);
	if (x.foreign.to)
		r = port_out_open_foreign(&x.out, &x.foreign, path, a->force, s->arena);
	else
		r = port_out_open(&x.out, format, path, a->force, s->arena);
	if (r)
		return export_cannot(s, path, r, out);
	code = queue_export(s->client.conn.queue, (unsigned)args->rq.statuses, export_send, &x, &r,
			    &ans, s->arena);
	data_progress_end(&x.progress);
	if (!r)
		r = port_out_close(&x.out, code == SUCCESS);
	else
		(void)port_out_close(&x.out, false);
	foreign_out_end(&x.foreign);
	if (code != SUCCESS)
		return run_answer(&ans, out);
	if (r)
		return export_cannot(s, path, r, out);
	json_object_set_new(reply_more(out), "exported", json_integer((json_int_t)x.out.n));
	json_object_set_new(reply_more(out), "file", json_str(str_c(path)));
	if (x.foreign.lost[0].n)
		json_object_set_new(reply_more(out), "left_out", lost_json(&x.foreign));
	if (ans.warnings.n)
		reply_warn(out, ans.warnings.v[0], s->arena);
	return SUCCESS;
}

/* The fields that the other program has no place for. */
static void show_left_out(const json_t *fields, struct view *v)
{
	const char *field;
	json_t *n;

	json_object_foreach((json_t *)fields, field, n) {
		view_text(v, PLAIN, "left out: %s of ", field);
		view_count(v, PLAIN, json_integer_value(n), "task");
		view_text(v, PLAIN, "\n");
	}
}

static void export_show(const struct reply *r, struct view *v)
{
	const json_t *o = r->more;

	if (v->quiet || str_is(json_get(o, "file"), "-"))
		return;
	view_count(v, GREEN, view_int(o, "exported"), "task");
	view_text(v, PLAIN, " exported to ");
	view_data(v, BOLD, json_get(o, "file"));
	view_text(v, PLAIN, "\n");
	show_left_out(json_object_get(o, "left_out"), v);
}

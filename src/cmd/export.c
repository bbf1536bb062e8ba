#include <errno.h>
#include <string.h>

#include "transfer/port.h"
#include "cmd/data.h"

static const struct param params[] = {
	LOCAL(data.output, "output", P_TEXT, .letter = 'o', .flags = P_REQUIRED | P_FILLED,
	      .value = "FILE", .help = "file, or folder for md, that is made"),
	PARAM_FORMAT,
	PARAM(statuses, "status", P_STATUSES, .letter = 's',
	      .help = "only tasks of this status; may be repeated or listed"),
	{ 0 }
};

struct sending {
	struct port_out out;
	struct data_progress progress;
};

static int send(void *ctx, const struct parcel *p)
{
	struct sending *x = ctx;
	int r = port_out_add(&x->out, p);

	data_progress(&x->progress, x->out.n);
	return r;
}

static enum result cannot(struct session *s, const char *path, int r, json_t **out)
{
	const char *hint = r == -ENOTEMPTY
				   ? "name a folder that is empty, or not there yet"
				   : "check the folder's permissions and the room on its disk";

	return run_fail(s, r == -ENOTEMPTY ? CONFLICT : API_ERROR,
			arena_printf(s->arena, "%s cannot be written: %s", path, strerror(-r)),
			str_c(hint), out);
}

static enum result run(struct session *s, struct args *a, json_t **out)
{
	char *path = data_path(s, a->data.output);
	enum port_format format = port_format(a->data.format, path);
	struct sending x = { .progress = { .session = s, .doing = "exporting" } };
	struct answer ans = { 0 };
	enum result code;
	int r;

	if (format == PORT_NONE)
		return run_fail(
			s, USAGE,
			arena_printf(s->arena, "%s: its format cannot be told by its name", path),
			STR("give it: --format json, jsonl, csv or md"), out);
	if (client_open(&s->client, STORE_READ, &ans) != SUCCESS)
		return run_answer(&ans, s->arena, out);
	r = port_out_open(&x.out, format, path, s->arena);
	if (r)
		return cannot(s, path, r, out);
	code = queue_export(s->client.queue, (unsigned)a->rq.statuses, send, &x, &r, &ans,
			    s->arena);
	data_progress_end(&x.progress);
	if (!r)
		r = port_out_close(&x.out, code == SUCCESS);
	else
		(void)port_out_close(&x.out, false);
	if (code != SUCCESS)
		return run_answer(&ans, s->arena, out);
	if (r)
		return cannot(s, path, r, out);
	*out = run_success();
	json_object_set_new(*out, "exported", json_integer((json_int_t)x.out.n));
	json_object_set_new(*out, "file", json_str(str_c(path)));
	return SUCCESS;
}

static void show(const json_t *o, struct view *v)
{
	if (v->quiet)
		return;
	view_count(v, GREEN, view_int(o, "exported"), "task");
	view_text(v, PLAIN, " exported to ");
	view_data(v, BOLD, view_get(o, "file"));
	view_text(v, PLAIN, "\n");
}

const struct command cmd_export = {
	.name = "export",
	.group = "data",
	.summary = "write all tasks to a file or a folder",
	.detail =
		"Every field and all comments, of one state of the queue; locks stay out. The file gets its name when "
		"it is whole. What was exported can be imported, into any store.",
	.example = "pawl export --output tasks.json\n"
		   "pawl export --output tasks/\n"
		   "pawl export --output open.csv --status ready,blocked",
	.see = "import, backup, list",
	.params = params,
	.flags = C_IDEMPOTENT,
	.fails = FAILS(CONFLICT),
	.run = run,
	.show = show,
};

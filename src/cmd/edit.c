/*
 * pawl edit, and the form that `pawl create` opens without a title. The text that a person wrote is
 * never lost: if it cannot be used, its file stays, and the answer names it. The store is closed
 * while the editor runs.
 */
#include "cmd/cmd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/text.h"
#include "core/lease.h"
#include "core/rules.h"
#include "run/run_jobs.h"

struct edit_args {
	struct args args;
	struct str file;
};

static const struct param params[] = {
	PARAM_ID("task to edit"),
	LOCAL(edit, file, "file", P_NAME, .letter = 'F', .flags = P_FILLED, .value = "FILE",
	      .help = "take the text from FILE instead of an editor; - is standard input"),
	{ 0 }
};

static enum result edit_cmd_run(struct session *s, struct args *args, struct reply *out);
static void edit_cmd_show(const struct reply *r, struct view *v);

const struct command cmd_edit = {
	.name = "edit",
	.group = "plan",
	.summary = "change a task in your editor",
	.detail =
		"$VISUAL or $EDITOR opens the title, the fields and the texts as one Markdown file with front matter. "
		"pawl checks the file. On a terminal it shows an error at its line and lets you edit again. The change is "
		"made on the version that you saw. If the task has changed since then, nothing is changed (20), "
		"and your text "
		"stays in a file that the message names. --file FILE reads the text from that file.",
	.example = "pawl edit t1\n"
		   "EDITOR='code --wait' pawl edit t1\n"
		   "pawl edit t1 --file task.md",
	.see = "update, create, show",
	.params = params,
	.args_size = sizeof(struct edit_args),
	.flags = C_WRITE | C_SHELL,
	.op = OP_UPDATE,
	.fails = FAILS(CONFLICT, LOST_LOCK, NOT_FOUND),
	.run = edit_cmd_run,
	.show = edit_cmd_show,
};

#define CHANGES 4 /* update, undepend, update of links, depend */
#define TRIES 20  /* while only the task's lease changes */

/* --- the text on disk ----------------------------------------------------------------------------- */

static int write_text(struct session *s, struct str text, char **path)
{
	const char *dir = getenv("TMPDIR");
	int fd, r;

	*path = arena_cstr(s->arena, arena_printf(s->arena, "%s/pawl-edit-XXXXXX.md",
						  dir && *dir ? dir : "/tmp"));
	fd = mkostemps(*path, (int)strlen(".md"), O_CLOEXEC);
	if (fd < 0)
		return -errno;
	r = fs_write_all(fd, text);
	close(fd);
	return r;
}

static bool ask_again(struct session *s, struct str problem)
{
	return s->again && s->again(s, problem);
}

/* --- the editor ----------------------------------------------------------------------------------- */

static enum result no_editor(struct str why, struct reply *out)
{
	return run_fail(MISCONFIGURED, why,
			STR("set EDITOR or VISUAL to the command of an editor, e.g. EDITOR=nano"),
			out);
}

/* The store is closed while the editor runs, because a person may take hours and nobody must wait
 * for that. */
static enum result run_editor(struct session *s, const char *path, struct str *text,
			      struct reply *out)
{
	const char *editor = editor_name();
	int status = 0, r;

	if (!editor)
		return no_editor(STR("there is no editor and no terminal"), out);
	client_close(&s->client);
	r = editor_run(editor, path, s->owns_stdout, &status);
	if (!r && (!WIFEXITED(status) || WEXITSTATUS(status)))
		return no_editor(
			arena_printf(s->arena, "the editor `%s` ended with %s", editor,
				     arena_cstr(s->arena, run_status_text(s->arena, status))),
			out);
	if (!r)
		r = data_read(s, path, text);
	return r ? run_fail(API_ERROR, arena_printf(s->arena, "%s: %s", path, strerror(-r)),
			    STR(""), out)
		 : SUCCESS;
}

/* --- one edit ------------------------------------------------------------------------------------- */

struct editing {
	struct session *s;
	const struct request *call; /* id, token and such */
	char *path;                 /* of the text */
	struct task task;           /* as it was read */
	struct str original;
	struct form was;
};

static struct str at_line(struct editing *e, size_t line, struct str text)
{
	return line ? arena_printf(e->s->arena, "%s:%zu: %.*s", e->path, line, STRF(text)) : text;
}

/* Reads the task and makes its text. `was` is the reading of that text, which later readings are
 * compared with. */
static enum result edit_cmd_load(struct editing *e, struct answer *ans)
{
	struct request rq = { .op = OP_SHOW };
	struct yaml_fault fault = { 0 };

	GIVE(&rq, id, e->call->id);
	client_call(&e->s->client, &rq, ans);
	if (ans->code != SUCCESS)
		return ans->code;
	e->task = *ans->task;
	e->original = form_text(&e->task, e->s->arena);
	form_free(&e->was);
	if (!text_valid(e->task.description) ||
	    form_read(e->original, e->task.extra, &e->was, &fault, e->s->arena))
		return answer_fail(ans, MISCONFIGURED,
				   arena_printf(e->s->arena, "%.*s cannot be shown as a text",
						STRF(e->task.id)),
				   STR("change its fields with pawl update"));
	return SUCCESS;
}

/* Removed links come before new ones, because the new parent may be a dependency that the person
 * removed. The first update has the version that the person saw, so it guards the others. It has a
 * title even if only links change, because an update without any field is refused. 0: nothing
 * changes. */
static size_t edit_changes_of(struct editing *e, const struct form *f, struct request *rqs)
{
	const uint64_t links = UINT64_C(1) << ARG_parent | UINT64_C(1) << ARG_status;
	struct arena *a = e->s->arena;
	struct strs more = form_without(f->task.depends, e->was.task.depends, a),
		    less = form_without(e->was.task.depends, f->task.depends, a);
	struct request update = *e->call, rest = *e->call;
	size_t n = 1;

	update.op = rest.op = OP_UPDATE;
	if (!form_changes(&e->was, f, &update, a) && !more.n && !less.n)
		return 0;
	rest.parent = update.parent;
	rest.status = update.status;
	rest.has |= update.has & links;
	update.has &= ~links;
	GIVE(&update, title, f->task.title);
	GIVE(&update, if_version, f->task.version ? f->task.version : e->task.version);
	rqs[0] = update;
	if (less.n) {
		rqs[n] = *e->call;
		rqs[n].op = OP_UNDEPEND;
		GIVE(&rqs[n], depends, less);
		n++;
	}
	if (rest.has & links)
		rqs[n++] = rest;
	if (more.n) {
		rqs[n] = *e->call;
		rqs[n].op = OP_DEPEND;
		GIVE(&rqs[n], depends, more);
		n++;
	}
	return n;
}

static void edit_cmd_send(struct editing *e, const struct form *f, struct answer *ans)
{
	struct request rqs[CHANGES];
	struct answer answers[CHANGES];
	size_t n = edit_changes_of(e, f, rqs), bad;

	if (!n) {
		*ans = (struct answer){ .task = &e->task };
		return;
	}
	if (n == 1) {
		client_call(&e->s->client, &rqs[0], ans);
		return;
	}
	bad = client_call_all(&e->s->client, rqs, NULL, answers, n);
	*ans = answers[bad < n ? bad : n - 1];
}

/* Did only the version change, for example by a renewed lease? true: the change can be sent
 * again. */
static bool same_but_version(struct editing *e, struct form *f)
{
	struct editing now = { .s = e->s, .call = e->call };
	int64_t seen = f->task.version ? f->task.version : e->task.version;
	struct answer ans = { 0 };
	struct request nothing = { .op = OP_UPDATE };
	bool same = seen == e->task.version && edit_cmd_load(&now, &ans) == SUCCESS &&
		    now.task.version != seen &&
		    !form_changes(&e->was, &now.was, &nothing, e->s->arena) &&
		    strs_eq(e->was.task.depends, now.was.task.depends);

	if (same)
		f->task.version = e->task.version = now.task.version;
	form_free(&now.was);
	return same;
}

static enum result edit_cmd_apply(struct editing *e, struct form *f, struct answer *ans)
{
	for (int i = 0; i < TRIES; i++) {
		edit_cmd_send(e, f, ans);
		if (ans->code != CONFLICT || !same_but_version(e, f))
			break;
	}
	return ans->code;
}

/* Tries to apply the text. *problem: the fault that the person can correct; empty: there is
 * none. */
static enum result try_text(struct editing *e, struct str text, struct str *problem,
			    struct reply *out)
{
	struct yaml_fault fault = { 0 };
	struct form f = { 0 };
	enum result code;

	*problem = STR("");
	if (form_read(text, e->task.extra, &f, &fault, e->s->arena)) {
		*problem = at_line(e, fault.line, fault.text);
		return run_fail(USAGE, *problem, STR("nothing was changed"), out);
	}
	if (!f.titled) {
		*problem = at_line(e, form_line(&f, STR("title")) ? form_line(&f, STR("title")) : 1,
				   STR("the task needs a title"));
		code = run_fail(USAGE, *problem, STR("nothing was changed"), out);
	} else {
		code = edit_cmd_apply(e, &f, &out->ans);
		if (code == USAGE || code == MISCONFIGURED || code == NOT_FOUND) {
			*problem = at_line(e, form_line(&f, out->ans.message), out->ans.message);
			out->ans.message = *problem;
		}
	}
	form_free(&f);
	return code;
}

/* --- pawl edit ------------------------------------------------------------------------------------ */

/* The answer says where the text is, and how to continue the edit. */
static void keep_text(struct editing *e, struct reply *out)
{
	struct arena *a = e->s->arena;
	const struct task *t = out->ans.task;
	struct str hint = out->ans.hint, next = STR("to continue");

	if (out->ans.code == CONFLICT && t && t->version != e->task.version) {
		hint = STR("");
		next = arena_printf(
			a, "compare it with `pawl show %.*s`, set its version to %lld, then",
			STRF(e->task.id), (long long)t->version);
	}
	out->ans.hint = arena_printf(a, "%.*s%syour text is in %s; %.*s: pawl edit %.*s --file %s",
				     STRF(hint), hint.n ? "; " : "", e->path, STRF(next),
				     STRF(e->task.id), e->path);
	json_object_set_new(reply_more(out), "file", json_str(str_c(e->path)));
}

static enum result edit_cmd_unchanged(struct editing *e, struct reply *out)
{
	out->ans = (struct answer){ .task = &e->task };
	return SUCCESS;
}

/* Did the editor write anything? It may have done so even if it failed, and a file that cannot be
 * read may have the person's text. */
static bool edit_cmd_wrote(struct editing *e)
{
	struct str text;
	int r = data_read(e->s, e->path, &text);

	return r ? r != -ENOENT : !str_eq(text, e->original);
}

static enum result edit_in_editor(struct editing *e, struct reply *out)
{
	struct str text, problem;
	enum result code;
	int r = write_text(e->s, e->original, &e->path);

	if (r)
		return run_fail(
			API_ERROR,
			arena_printf(e->s->arena, "cannot write %s: %s", e->path, strerror(-r)),
			STR("check the folder in TMPDIR"), out);
	do {
		code = run_editor(e->s, e->path, &text, out);
		problem = STR("");
		if (code == SUCCESS)
			code = str_eq(text, e->original) ? edit_cmd_unchanged(e, out)
							 : try_text(e, text, &problem, out);
	} while (problem.n && ask_again(e->s, problem));
	if (code == SUCCESS || !edit_cmd_wrote(e))
		unlink(e->path);
	else
		keep_text(e, out);
	return code;
}

static enum result edit_from_file(struct editing *e, struct str file, struct reply *out)
{
	struct str text, problem;
	int r;

	e->path = data_path(e->s, file);
	r = data_read(e->s, e->path, &text);
	if (r)
		return run_fail(API_ERROR,
				arena_printf(e->s->arena, "%s: %s", e->path, strerror(-r)), STR(""),
				out);
	return try_text(e, text, &problem, out);
}

static void tell_holder(struct editing *e, int64_t now)
{
	const struct lock *l = &e->task.lock;

	if (e->s->note && lease_live(l, now) && !str_eq(l->holder, e->s->client.self.agent))
		e->s->note(e->s, arena_printf(e->s->arena,
					      "%.*s holds %.*s, so your change may be refused",
					      STRF(l->holder), STRF(e->task.id)));
}

/* Checks the caller's --if-version against the task as it was read, and removes it from the
 * request. Only the first change of an edit may have a version (edit_changes_of()): the others would
 * meet the version that the first one made. */
static enum result check_version(struct editing *e, struct request *rq, struct answer *ans)
{
	struct call c = { .rq = rq, .now = ans->now, .arena = e->s->arena };

	if (!override_version(&e->task, &c))
		return answer_fail(ans, c.code, c.message, c.hint);
	rq->has &= ~(UINT64_C(1) << ARG_if_version);
	return SUCCESS;
}

static enum result edit_cmd_run(struct session *s, struct args *args, struct reply *out)
{
	struct str file = ((const struct edit_args *)args)->file;
	struct editing e = { .s = s, .call = &args->rq };
	struct answer ans = { 0 };
	enum result code;

	if (HAS(&args->rq, request_id))
		return run_fail(USAGE, STR("edit makes several changes; it takes no --request-id"),
				STR("run `pawl help edit`"), out);
	if (edit_cmd_load(&e, &ans) != SUCCESS || check_version(&e, &args->rq, &ans) != SUCCESS) {
		form_free(&e.was);
		return run_answer(&ans, out);
	}
	tell_holder(&e, ans.now);
	code = file.n ? edit_from_file(&e, file, out) : edit_in_editor(&e, out);
	if (code == SUCCESS)
		json_object_set_new(reply_more(out), "changed",
				    json_boolean(out->ans.task != &e.task));
	if (out->ans.task == &e.task) { /* `e` ends with this call */
		out->ans.task = arena_new(s->arena, struct task);
		*(struct task *)out->ans.task = e.task;
	}
	form_free(&e.was);
	return code;
}

static void edit_cmd_show(const struct reply *r, struct view *v)
{
	show_did(r, v, json_is_true(json_object_get(r->more, "changed")) ? "updated" : "unchanged");
}

/* --- create without a title ----------------------------------------------------------------------- */

bool edit_can(const struct session *s)
{
	return s->again && editor_terminal();
}

/* The form of a new task starts with the values of the call's options. */
static struct task edit_cmd_draft(const struct request *rq, struct arena *a)
{
	struct task t = { .status = HAS(rq, status) ? rq->status : READY,
			  .class_rank = STANDARD,
			  .priority = PRIORITY_DEFAULT,
			  .parent = rq->parent,
			  .depends = rq->depends };
	struct request fields = *rq;

	fields.has &= ~(UINT64_C(1) << ARG_delay);
	update_fields(&t, &fields, 0, a);
	return t;
}

/* Makes the request from the text. *problem: the fault that the person can correct. */
static enum result fill_in(struct editing *e, struct str text, struct request *rq,
			   struct str *problem, struct reply *out)
{
	struct yaml_fault fault = { 0 };
	struct form f = { 0 };

	*rq = *e->call;
	if (form_read(text, e->task.extra, &f, &fault, e->s->arena)) {
		*problem = at_line(e, fault.line, fault.text);
		return run_fail(USAGE, *problem, STR("nothing was created"), out);
	}
	(void)form_changes(&e->was, &f, rq, e->s->arena);
	GIVE(rq, title, f.task.title);
	if (!f.titled && !f.task.description.n)
		*problem = at_line(e, 1, STR("the task needs a title"));
	form_free(&f);
	return problem->n ? run_fail(USAGE, *problem, STR("nothing was created"), out) : SUCCESS;
}

static enum result try_create(struct editing *e, struct args *args, struct str text,
			      struct str *problem, struct reply *out)
{
	struct request rq;
	enum result code = fill_in(e, text, &rq, problem, out);

	if (code != SUCCESS)
		return code;
	args->rq = rq;
	code = run_op(e->s, args, out);
	if (code == USAGE || code == MISCONFIGURED || code == NOT_FOUND || code == CONFLICT)
		*problem = out->ans.message;
	return code;
}

static enum result create_in_editor(struct editing *e, struct args *args, struct reply *out)
{
	struct str text, problem;
	enum result code;

	do {
		problem = STR("");
		code = run_editor(e->s, e->path, &text, out);
		if (code == SUCCESS)
			code = str_eq(text, e->original)
				       ? run_fail(USAGE,
						  STR("the text is unchanged: nothing was created"),
						  STR(""), out)
				       : try_create(e, args, text, &problem, out);
	} while (problem.n && ask_again(e->s, problem));
	return code;
}

enum result edit_create(struct session *s, struct args *args, struct reply *out)
{
	struct request call = args->rq;
	struct editing e = { .s = s, .call = &call, .task = edit_cmd_draft(&call, s->arena) };
	struct yaml_fault fault = { 0 };
	enum result code;
	int r;

	e.original = form_text(&e.task, s->arena);
	if (form_read(e.original, e.task.extra, &e.was, &fault, s->arena))
		return run_fail(USAGE, fault.text, STR("run `pawl help create`"), out);
	r = write_text(s, e.original, &e.path);
	code = r ? run_fail(API_ERROR,
			    arena_printf(s->arena, "cannot write %s: %s", e.path, strerror(-r)),
			    STR("check the folder in TMPDIR"), out)
		 : create_in_editor(&e, args, out);
	if (!r && (code == SUCCESS || !edit_cmd_wrote(&e))) {
		unlink(e.path);
	} else if (!r) {
		out->ans.hint = arena_printf(s->arena, "your text is in %s", e.path);
		json_object_set_new(reply_more(out), "file", json_str(str_c(e.path)));
	}
	form_free(&e.was);
	return code;
}

/*
 * pawl audit: checks the queue's own event log. The checker is in pawl-proof.so; this file shows what it found. With
 * --export it also writes what it read, so that another program can check the same lines.
 */
#include <errno.h>
#include <stdio.h>

#include "base/fs.h"
#include "base/os.h"
#include "base/text.h"
#include "base/when.h"
#include "cmd/cmd.h"
#include "core/lease.h"
#include "format/task_form.h"
#include "queue/transfer.h"

struct audit_args {
	struct args args;
	struct str export;
};

static const struct param params[] = {
	PARAM(since, "since", P_TIME, .flags = P_PAST, .value = "TIME|DURATION",
	      .help = "leave out what happened before this time, or longer ago"),
	LOCAL(audit, export, "export", P_TEXT, .flags = P_FILLED, .value = "FILE",
	      .help = "also write what was read to FILE, for tools/check-history"),
	{ 0 }
};

static enum result audit_run(struct session *s, struct args *args, struct reply *out);
static void audit_show(const struct reply *r, struct view *v);

const struct command cmd_audit = {
	.name = "audit",
	.group = "setup",
	.summary = "check the event log: was every task held by one agent at a time?",
	.detail =
		"Reads the whole event log and the records of all tasks, in one snapshot, and checks what they say. Fences only "
		"grow. A task has one live lock at a time. Every end belongs to the lock that was held. Only allowed changes of "
		"status happen, and each record agrees with its newest line. Each line has the hash of the line before it about "
		"the same task, so a line that was removed, changed, moved or inserted is found. The exit code is 45 if there is "
		"a violation; the answer then names each line. With --since it names only lines from that time on. It changes "
		"nothing. Through a server it needs the role admin. A branch of lock files has no such chain.",
	.example = "pawl audit\n"
		   "pawl audit --since 7d\n"
		   "pawl audit --json",
	.see = "log, doctor, torture, backup",
	.params = params,
	.args_size = sizeof(struct audit_args),
	.flags = C_IDEMPOTENT | C_REPORT,
	.fails = FAILS(VIOLATION),
	.run = audit_run,
	.show = audit_show,
};

struct auditing {
	struct session *s;
	FILE *file; /* NULL: nothing is exported */
	int64_t began, shown;
};

/* --- what was read -------------------------------------------------------------------------------- */

static json_t *audit_hex(struct str bytes, struct arena *a)
{
	char *hex = arena_alloc(a, 2 * bytes.n + 1);

	for (size_t i = 0; i < bytes.n; i++)
		snprintf(hex + 2 * i, 3, "%02x", (unsigned char)bytes.p[i]);
	return json_stringn(hex, 2 * bytes.n);
}

static json_t *exported_task(const struct record *r, struct arena *a)
{
	struct task t = { 0 };

	if (task_unpack(arena_str(a, r->hot), &t, a))
		return NULL;
	return json_pack("{s:o, s:I, s:I, s:I, s:o}", "record", json_str(text_line(a, r->key)),
			 "status", (json_int_t)t.status, "fence", (json_int_t)t.fence, "expires",
			 (json_int_t)(t.lock.holder.n && !t.lock.foreign ? t.lock.expires_at : 0),
			 "chain", audit_hex(t.chain, a));
}

/* The records that the audit compares with the lines; NULL: another one. */
static json_t *exported_record(const struct record *r, struct arena *a)
{
	if (str_starts(r->key, STR("task/")) || str_starts(r->key, STR("lock/")))
		return exported_task(r, a);
	if (str_starts(r->key, STR("gone/")))
		return json_pack("{s:o, s:o}", "record", json_str(text_line(a, r->key)), "chain",
				 audit_hex(r->body, a));
	if (str_eq(r->key, STR("meta/chain")))
		return json_pack("{s:o, s:o}", "record", json_str(text_line(a, r->key)), "chain",
				 audit_hex(r->hot, a));
	if (str_eq(r->key, STR("meta/log_from")) || str_eq(r->key, STR("meta/relogged")))
		return json_pack("{s:o, s:o}", "record", json_str(text_line(a, r->key)), "at",
				 json_str(text_line(a, r->hot)));
	return NULL;
}

static int audit_export_item(void *ctx, const struct item *it)
{
	struct auditing *x = ctx;
	const struct entry *e = &it->entry;
	struct arena a = { 0 };
	json_t *o = it->line ? json_pack("{s:o, s:I, s:o, s:o}", "line",
					 json_str(text_line(&a, e->cursor)), "at",
					 (json_int_t)e->at, "key", json_str(text_line(&a, e->key)),
					 "data", audit_hex(e->data, &a))
			     : exported_record(&it->rec, &a);
	int r = 0;

	if (o && (json_dumpf(o, x->file, JSON_COMPACT) || putc('\n', x->file) == EOF))
		r = errno ? errno : EIO;
	json_decref(o);
	arena_free(&a);
	return r;
}

/* --- progress ------------------------------------------------------------------------------------- */

#define QUIET_MS 1000
#define AGAIN_MS 250

static void audit_progress(void *ctx, size_t lines)
{
	struct auditing *x = ctx;
	int64_t now = os_boot_ms();
	char text[60];

	if (now - x->began < QUIET_MS || now - x->shown < AGAIN_MS)
		return;
	x->shown = now;
	snprintf(text, sizeof(text), "auditing: %zu lines of the log", lines);
	x->s->progress(x->s, str_c(text));
}

/* --- the answer ------------------------------------------------------------------------------------ */

static json_t *finding_json(const struct audit_finding *f, const char *kind, struct arena *a)
{
	json_t *o = json_pack("{s:s}", "kind", kind);

	json_set_text(o, "task", f->task);
	if (f->line) {
		json_object_set_new(o, "line", json_integer(f->line));
		json_set_text(o, "cursor", f->cursor);
		json_set_text(o, "at", when_text(a, f->at));
	}
	json_set_text(o, "text", f->text);
	return o;
}

static void audit_findings(struct session *s, const struct proof_ops *proof,
			   const struct audit_report *r, json_t *o)
{
	json_t *found = json_object(), *list = json_array();

	for (int i = 0; i < AUDIT_KINDS; i++)
		if (r->counts[i])
			json_object_set_new(found, proof->audit_kind_name((enum audit_kind)i),
					    json_integer(r->counts[i]));
	for (size_t i = 0; i < r->n_findings; i++)
		json_array_append_new(
			list, finding_json(&r->findings[i],
					   proof->audit_kind_name(r->findings[i].kind), s->arena));
	json_object_set_new(o, "found", found);
	json_object_set_new(o, "findings", list);
}

static void audit_tell(struct session *s, const struct proof_ops *proof,
		       const struct audit_report *r, struct reply *out)
{
	json_t *o = reply_more(out);

	json_object_set_new(o, "acquisitions", json_integer(r->acquisitions));
	json_object_set_new(o, "lines", json_integer(r->lines));
	json_object_set_new(o, "checked", json_integer(r->tasks));
	if (r->from)
		json_set_text(o, "from", when_text(s->arena, r->from));
	json_object_set_new(o, "restarts", json_integer(r->restarts));
	json_object_set_new(o, "violations", json_integer(r->violations));
	if (r->violations)
		audit_findings(s, proof, r, o);
}

static enum result audit_violated(struct session *s, const struct audit_report *r,
				  struct reply *out)
{
	return run_fail(
		VIOLATION,
		arena_printf(s->arena, "the event log has %lld violation%s",
			     (long long)r->violations, r->violations == 1 ? "" : "s"),
		STR("keep a copy before anything else: pawl backup; pawl help VIOLATION says what to do"),
		out);
}

/* --- running --------------------------------------------------------------------------------------- */

/* Do other programs change this store's tasks without pawl? Then the log does not show every change. */
static bool store_is_shared(struct str uri)
{
	while (str_cut_prefix(&uri, STR("fault+")))
		;
	if (str_starts(uri, STR("sqlite:")) || str_starts(uri, STR("postgres")) ||
	    str_starts(uri, STR("mem:")))
		return false;
	return !str_starts(uri, STR("git:")) || memchr(uri.p, '#', uri.n) ||
	       str_has_nocase(uri, STR("layout="));
}

static enum result audit_file(struct session *s, struct str path, FILE **file, struct reply *out)
{
	char *name = path.n ? data_path(s, path) : NULL;

	*file = name ? fopen(name, "wx") : NULL;
	if (!name || *file)
		return SUCCESS;
	return run_fail(USAGE,
			arena_printf(s->arena, "cannot create %s: %s", name, strerror(errno)),
			STR("name a new file"), out);
}

static enum result audit_close(struct session *s, struct auditing *x, int stopped,
			       struct reply *out)
{
	int failed = stopped;

	if (x->file && fclose(x->file) && !failed)
		failed = errno;
	if (!failed)
		return SUCCESS;
	return run_fail(API_ERROR,
			arena_printf(s->arena, "cannot write the file: %s", strerror(failed)),
			STR("check the free space of its folder"), out);
}

static enum result audit_run(struct session *s, struct args *args, struct reply *out)
{
	const struct audit_args *a = (const struct audit_args *)args;
	struct auditing x = { .s = s, .began = os_boot_ms() };
	struct answer ans = { 0 };
	struct audit_report r;
	struct audit_plan plan = { .since = args->rq.since, .ctx = &x };
	const struct proof_ops *proof = proof_load(&ans, s->arena);
	enum result code;

	if (!proof || client_open(&s->client, STORE_READ, &ans) != SUCCESS)
		return run_answer(&ans, out);
	plan.queue = s->client.conn.queue;
	if (queue_locks_only(plan.queue))
		return run_fail(
			MISCONFIGURED,
			STR("a branch of lock files has no chain, so its log cannot be audited"),
			STR("git log on the branch shows every change"), out);
	plan.shared = store_is_shared(s->client.conn.config.uri);
	if (audit_file(s, a->export, &x.file, out) != SUCCESS)
		return out->ans.code;
	plan.each = x.file ? audit_export_item : NULL;
	plan.progress = s->progress ? audit_progress : NULL;
	code = proof->audit(&plan, &r, &ans, s->arena);
	if (x.shown)
		s->progress(s, STR(""));
	if (code != SUCCESS)
		run_answer(&ans, out);
	if (audit_close(s, &x, r.stopped, out) != SUCCESS || code != SUCCESS)
		return out->ans.code;
	if (r.violations)
		code = audit_violated(s, &r, out);
	audit_tell(s, proof, &r, out);
	return code;
}

/* --- showing --------------------------------------------------------------------------------------- */

static void show_finding(struct view *v, const json_t *f)
{
	struct str task = json_get(f, "task"), at = json_get(f, "at");

	view_text(v, RED, "%-8s ", json_get(f, "kind").p);
	view_data(v, BOLD, task.n ? task : STR("the queue"));
	if (at.n)
		view_text(v, DIM, ", line %lld of %s", (long long)view_int(f, "line"), at.p);
	view_text(v, PLAIN, ": ");
	view_data(v, PLAIN, json_get(f, "text"));
	view_text(v, PLAIN, "\n");
}

static void audit_show(const struct reply *r, struct view *v)
{
	const json_t *o = r->more, *f;
	struct str from = json_get(o, "from");
	size_t i;

	if (!o)
		return;
	json_array_foreach(json_object_get(o, "findings"), i, f)
		show_finding(v, f);
	if (v->quiet)
		return;
	view_count(v, PLAIN, view_int(o, "acquisitions"), "acquisition");
	if (from.n)
		view_text(v, PLAIN, " since %.*s", STRF(from));
	if (view_int(o, "violations"))
		view_text(v, RED, ", %lld violation%s\n", (long long)view_int(o, "violations"),
			  view_int(o, "violations") == 1 ? "" : "s");
	else
		view_text(v, GREEN, ", no violation\n");
}

/*
 * Shared parts of the commands that handle many tasks: input, progress and results, the period of a report, plans, and reads
 * with a time limit. Memory and output stay bounded: data_read() refuses input of more than 64 MiB, and the progress
 * line is shown at most ten times a second.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fs.h"
#include "base/os.h"
#include "cmd/cmd.h"
#include "core/typed.h"
#include "format/answer_form.h"
#include "format/markdown_plan.h"
#include "transfer/port.h"

#define OFTEN_MS 100
#define BAR 30
#define INPUT_MAX (64u << 20)

enum result data_open(struct session *s, unsigned kind, struct answer *ans)
{
	enum result code = client_open(&s->client, STORE_WRITE, ans);

	if (code == SUCCESS)
		queue_patience(s->client.conn.queue, client_timeout(&s->client, kind));
	return code;
}

struct answer data_locks(struct session *s)
{
	struct request rq = { .op = OP_LOCKS };
	struct answer ans = { 0 };

	client_call(&s->client, &rq, &ans);
	client_know_queue(&s->client);
	return ans;
}

void data_forget(struct session *s, const struct answer *locks)
{
	for (size_t i = 0; i < locks->n_tasks; i++)
		keyring_forget(&s->client.keyring, locks->tasks[i].id, locks->tasks[i].fence);
}

char *data_path(const struct session *s, struct str path)
{
	if (path.p[0] == '/' || str_is(path, "-") || !strcmp(s->client.conn.config.opt.dir, "."))
		return arena_cstr(s->arena, path);
	return fs_join(s->arena, str_c(s->client.conn.config.opt.dir), path);
}

void data_progress(void *progress, size_t done)
{
	struct data_progress *p = progress;
	struct session *s = p->session;
	int64_t now;
	struct arena a = { 0 };
	struct str line;

	if (!s->progress || done % 16)
		return;
	now = os_boot_ms();
	if (now - p->shown_ms < OFTEN_MS)
		return;
	p->shown_ms = now;
	if (p->total) {
		int n = (int)(done * BAR / p->total);

		line = arena_printf(&a, "%s [%.*s%*s] %zu of %zu", p->doing, n,
				    "##############################", BAR - n, "", done, p->total);
	} else {
		line = arena_printf(&a, "%s: %zu task%s", p->doing, done, done == 1 ? "" : "s");
	}
	s->progress(s, line);
	arena_free(&a);
}

void data_progress_end(struct data_progress *p)
{
	if (p->session->progress && p->shown_ms)
		p->session->progress(p->session, STR(""));
}

struct load data_load(struct session *s, struct backup *b, struct data_progress *p)
{
	return (struct load){ .records = b->records,
			      .lines = b->lines,
			      .made_at = b->made_at,
			      .next = backup_next,
			      .rewind = backup_rewind,
			      .ctx = b,
			      .progress = data_progress,
			      .progress_ctx = p,
			      .agent = s->client.self.agent,
			      .run = s->client.self.run };
}

int data_read(struct session *s, const char *path, struct str *out)
{
	int r = 0;
	FILE *f = !strcmp(path, "-") ? stdin : source_open(path, &r);
	struct buf text = BUF_MAX(INPUT_MAX);
	char piece[65536];
	size_t n;

	if (!f)
		return r;
	while (!text.full && (n = fread(piece, 1, sizeof(piece), f)) > 0)
		buf_add(&text, piece, n);
	if (ferror(f))
		r = -EIO;
	if (f != stdin)
		fclose(f);
	if (text.full)
		r = -EFBIG;
	*out = arena_str(s->arena, buf_str(&text));
	buf_free(&text);
	return r;
}

json_t *data_item(const struct request *rq, const struct answer *ans)
{
	json_t *o = json_pack("{s:s}", "code", result_name(ans->code));
	struct str id = ans->task ? ans->task->id : rq->id;

	if (id.n)
		json_object_set_new(o, "id", json_str(id));
	if (!id.n || rq->op == OP_CREATE)
		json_object_set_new(o, "title", json_str(rq->title));
	if (ans->code == SUCCESS && rq->op == OP_CREATE && ans->task && ans->task->parent.n)
		json_object_set_new(o, "parent", json_str(ans->task->parent));
	if (ans->code != SUCCESS)
		json_object_set_new(o, "message", json_str(ans->message));
	return o;
}

void data_show_items(const struct reply *r, struct view *v)
{
	const json_t *list = json_object_get(r->more, "results");
	long long done = 0;

	if (!list)
		return; /* the batch did not begin */
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *x = json_array_get(list, i);
		struct str name = json_get(x, "id").n ? json_get(x, "id") : json_get(x, "title");
		bool failed = json_object_get(x, "message");

		done += !failed;
		if (v->quiet && !failed) {
			view_data(v, PLAIN, name);
			view_text(v, PLAIN, "\n");
		} else if (!failed && json_object_get(x, "title")) {
			view_text(v, GREEN, "created ");
			view_data(v, BOLD, name);
			view_text(v, PLAIN, "  ");
			view_data(v, PLAIN, json_get(x, "title"));
			if (json_get(x, "parent").n) {
				view_text(v, DIM, "  (sub-task of ");
				view_data(v, DIM, json_get(x, "parent"));
				view_text(v, DIM, ")");
			}
			view_text(v, PLAIN, "\n");
		} else if (!v->quiet && failed) {
			view_data(v, BOLD, name);
			view_text(v, RED, " %s ", arena_cstr(v->arena, json_get(x, "code")));
			view_data(v, PLAIN, json_get(x, "message"));
			view_text(v, PLAIN, "\n");
		}
	}
	if (!v->quiet)
		view_text(v, GREEN, "%lld done\n", done);
}

/* --- period ----------------------------------------------------------------------------------- */

/*
 * period_worker() credits the agent that did the work, not the reviewer who approved it or sent it
 * back.
 */

enum result period_read(struct session *s, const struct request *rq, const char *kinds,
			int64_t *since, struct answer *out)
{
	struct request log = { .op = OP_LOG };

	if (HAS(rq, since))
		*since = rq->since;
	GIVE(&log, since, *since);
	if (HAS(rq, until))
		GIVE(&log, until, rq->until);
	GIVE(&log, type, str_c(kinds));
	GIVE(&log, log_view, LOG_OF_TASKS | LOG_WITH_TASKS);
	client_call(&s->client, &log, out);
	return out->code;
}

enum result period_tasks(struct session *s, unsigned statuses, struct answer *out)
{
	struct request list = { .op = OP_LIST };

	GIVE(&list, statuses, statuses);
	client_call(&s->client, &list, out);
	return out->code;
}

static int by_id(const void *id, const void *task)
{
	return str_cmp(*(const struct str *)id, ((const struct task *)task)->id);
}

const struct task *period_task(const struct answer *ans, struct str id)
{
	return ans->n_tasks ? bsearch(&id, ans->tasks, ans->n_tasks, sizeof(*ans->tasks), by_id)
			    : NULL;
}

static bool is_by_others(const struct event *e)
{
	return str_is(e->name, "rework") || str_is(e->name, "approved");
}

struct str period_worker(const struct answer *ans, const struct event *e)
{
	if (!is_by_others(e))
		return e->agent;
	for (const struct event *c = e; c-- > ans->events;)
		if (c->fence == e->fence && str_eq(c->task, e->task) &&
		    (str_is(c->name, "claimed") || str_is(c->name, "review")))
			return c->agent;
	return STR("");
}

int64_t period_day(int64_t now, int days, int hour)
{
	time_t t = now / 1000;
	struct tm tm = { 0 };

	localtime_r(&t, &tm);
	tm.tm_mday += days;
	tm.tm_hour = hour;
	tm.tm_min = tm.tm_sec = 0;
	tm.tm_isdst = -1;
	return (int64_t)mktime(&tm) * 1000;
}

/* --- within ----------------------------------------------------------------------------------- */

/*
 * A child process does the work, because a read that hangs in the kernel cannot be interrupted. The
 * child is killed at the deadline, and nobody waits for its end.
 */

#define ANSWER_MAX (1u << 20)

/* A child that hangs must not keep the caller's pipes open as well. */
static void leave_pipes(void)
{
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int i = 0; fd >= 0 && i <= 2; i++)
		(void)dup2(fd, i);
}

/* Writes the length of the packed answer, the answer, and the name of the store's fault, which is
 * not packed. */
static void within_answer(int fd, struct session *s, ask_fn *fn)
{
	struct answer ans = { 0 };
	struct buf b = BUF_MAX(ANSWER_MAX);
	uint32_t n;

	fn(s, &ans);
	answer_pack(&ans, &b);
	n = (uint32_t)b.n;
	if (!b.full && fs_write_all(fd, str_n((const char *)&n, sizeof(n))) == 0 &&
	    fs_write_all(fd, buf_str(&b)) == 0)
		(void)fs_write_all(fd, ans.fault);
	_exit(0);
}

static bool within_take(const struct buf *b, struct answer *ans, struct arena *a)
{
	struct str bytes = arena_str(a, buf_str(b));
	uint32_t n;

	if (b->full || bytes.n < sizeof(n))
		return false;
	memcpy(&n, bytes.p, sizeof(n));
	bytes = str_n(bytes.p + sizeof(n), bytes.n - sizeof(n));
	if (n > bytes.n || answer_unpack(str_n(bytes.p, n), ans, a))
		return false;
	ans->fault = str_n(bytes.p + n, bytes.n - n);
	return true;
}

/* Does not wait for a killed child: a process that waits for a disk dies only when the disk
 * answers. */
static void end_child(pid_t pid, bool done)
{
	if (!done)
		kill(pid, SIGKILL);
	while (waitpid(pid, NULL, done ? 0 : WNOHANG) < 0 && errno == EINTR)
		;
}

bool run_within(struct session *s, int64_t ms, ask_fn *fn, struct answer *ans)
{
	int64_t end = os_boot_ms() + ms;
	struct buf b = BUF_MAX(ANSWER_MAX);
	pid_t parent = getpid(), pid;
	int ends[2];
	bool done;

	if (os_pipe(ends))
		return false;
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		os_end_with(parent);
		close(ends[0]);
		leave_pipes();
		within_answer(ends[1], s, fn);
	}
	close(ends[1]);
	done = pid > 0 && fs_read_until(ends[0], end, &b);
	close(ends[0]);
	if (pid > 0)
		end_child(pid, done);
	done = done && within_take(&b, ans, s->arena);
	buf_free(&b);
	return done;
}

/* --- plan ------------------------------------------------------------------------------------- */

/*
 * Makes all tasks of the list in one commit, or none. A sub-task names its parent by its position
 * in the list, because ids exist only after the commit.
 */

/* The open items of a plan as requests, in the order of the file. */
struct planned {
	struct session *s;
	const char *path;
	struct request *rqs;
	size_t *under, *lines;
	size_t n;
};

static enum result fault_at(struct planned *p, size_t line, struct str text, struct reply *out)
{
	return run_fail(USAGE, arena_printf(p->s->arena, "%s:%zu: %.*s", p->path, line, STRF(text)),
			STR("nothing was created"), out);
}

static const char *plan_misuse(const struct request *rq)
{
	if (HAS(rq, title) || HAS(rq, description))
		return "--file has the titles and descriptions: they cannot be given as well";
	if (HAS(rq, id) || HAS(rq, if_absent) || HAS(rq, request_id))
		return "--file makes several tasks: --id, --if-absent and --request-id are for one";
	return NULL;
}

/* The call's options apply to every item, but --parent only to items that are not inside another
 * one. */
static void add_item(struct planned *p, const struct request *common, const struct plan_item *item,
		     size_t under)
{
	struct request rq = *common;

	GIVE(&rq, title, item->title);
	if (item->description.n)
		GIVE(&rq, description, item->description);
	if (under)
		rq.parent = STR(""), rq.has &= ~(UINT64_C(1) << ARG_parent);
	GIVE(&rq, part_of, TYPED_BATCH);
	p->rqs[p->n] = rq;
	p->under[p->n] = under;
	p->lines[p->n] = item->line;
	p->n++;
}

static void add_items(struct planned *p, const struct request *common, const struct plan *plan,
		      struct reply *out)
{
	struct arena *a = p->s->arena;
	size_t *place = arena_array(a, size_t, plan->n + 1); /* 1 + the index of its request */

	p->rqs = arena_array(a, struct request, plan->n + 1);
	p->under = arena_array(a, size_t, plan->n + 1);
	p->lines = arena_array(a, size_t, plan->n + 1);
	for (size_t i = 0; i < plan->n; i++) {
		const struct plan_item *item = &plan->items[i];

		if (item->done) {
			reply_warn(out,
				   arena_printf(
					   a, "%s:%zu: skipped, because it is marked as done: %.*s",
					   p->path, item->line, STRF(item->title)),
				   a);
			continue;
		}
		add_item(p, common, item, item->under ? place[item->under - 1] : 0);
		place[i] = p->n;
	}
}

static enum result create_all(struct planned *p, struct reply *out)
{
	struct answer *answers = arena_array(p->s->arena, struct answer, p->n);
	size_t bad = client_call_all(&p->s->client, p->rqs, p->under, answers, p->n);
	json_t *results = json_array();
	struct answer ans = { 0 };

	for (size_t i = 0; bad == p->n && i < p->n; i++)
		json_array_append_new(results, data_item(&p->rqs[i], &answers[i]));
	if (bad < p->n) {
		ans = answers[bad];
		ans.task = NULL;
		if (ans.code != API_ERROR)
			ans.message = arena_printf(p->s->arena, "%s:%zu: %.*s; nothing was created",
						   p->path, p->lines[bad], STRF(ans.message));
	}
	out->ans = ans;
	json_object_set_new(reply_more(out), "results", results);
	return ans.code;
}

enum result plan_create(struct session *s, const struct request *common, struct str file,
			struct reply *out)
{
	struct planned p = { .s = s, .path = data_path(s, file) };
	const char *fault = plan_misuse(common);
	struct yaml_fault wrong;
	struct plan plan;
	struct str text;
	int r;

	if (fault)
		return run_fail(USAGE, str_c(fault), STR("run `pawl help create`"), out);
	r = data_read(s, p.path, &text);
	if (r)
		return run_fail(API_ERROR, arena_printf(s->arena, "%s: %s", p.path, strerror(-r)),
				STR(""), out);
	if (plan_read(text, &plan, &wrong, s->arena))
		return fault_at(&p, wrong.line, wrong.text, out);
	add_items(&p, common, &plan, out);
	if (!p.n)
		return run_fail(USAGE,
				arena_printf(s->arena, "%s has no open item of a list", p.path),
				STR("write each task as an item: - [ ] Fix the parser"), out);
	return create_all(&p, out);
}

#define DATA_NAMES 100

enum result data_free_name(struct client *c, char **path, struct answer *ans)
{
	int64_t now = queue_now(c->conn.queue);
	enum result code = backup_name(c, now, path, ans);

	for (int i = 1; code == SUCCESS && fs_exists(*path) && i < DATA_NAMES; i++)
		code = backup_name(c, now + i, path, ans);
	return code == SUCCESS ? backup_check(*path, false, ans, c->arena) : code;
}

#include "cmd/data.h"

#include <errno.h>
#include <stdio.h>

#include "base/fs.h"
#include "base/os.h"
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

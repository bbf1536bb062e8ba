#include "cmd/data.h"

#include "base/fs.h"
#include "base/os.h"

#define OFTEN_MS 100
#define BAR 30

enum result data_open(struct session *s, unsigned kind, struct answer *ans)
{
	enum result code = client_open(&s->client, STORE_WRITE, ans);

	if (code == SUCCESS)
		queue_patience(s->client.queue, client_timeout(&s->client, kind));
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
	if (path.p[0] == '/' || str_is(path, "-") || !strcmp(s->client.config.opt.dir, "."))
		return arena_cstr(s->arena, path);
	return fs_join(s->arena, str_c(s->client.config.opt.dir), path);
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
			      .agent = s->client.agent,
			      .run = s->client.run };
}

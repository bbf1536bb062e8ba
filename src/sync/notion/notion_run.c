/* A whole sync: the database, the lock, one round or many. */
#include <stdlib.h>

#include "base/os.h"
#include "sync/notion/notion.h"

#define ROUNDS 3 /* if tasks change meanwhile */

/* The syncer is an agent of its own: it uses no token that an agent on this machine has saved. */
static void be_syncer(struct client *c)
{
	const char *said = getenv("PAWL_AGENT");

	c->self.bare = true;
	if (!c->said.agent.n && !(said && *said))
		c->self.agent = STR("notion");
}

static enum result find_database(struct notion *n, struct str *database)
{
	const char *usual = getenv("NOTION_TASKS_DB_ID");
	struct str said = n->job->place.n ? n->job->place : str_c(usual ? usual : "");

	*database = notion_id(n->arena, said);
	if (database->n)
		return SUCCESS;
	return notion_fail(
		n, USAGE,
		said.n ? STR("this is not the id or the address of a database in Notion")
		       : STR("there is no database: name it, or set NOTION_TASKS_DB_ID"),
		STR("its address ends in 32 digits: pawl sync notion:0123456789abcdef0123456789abcdef"));
}

static void clear_progress(struct notion *n)
{
	if (n->job->progress && n->said_at)
		n->job->progress(n->job->ctx, STR(""));
	n->said_at = 0;
}

/* The state notes each turn, also that of a sync which fails before its first round. */
static enum result note_sync_token(struct notion *n)
{
	struct state *s;
	enum result code;

	if (n->job->check)
		return SUCCESS;
	code = notion_state_open(n, &s);
	notion_state_close(s);
	return code;
}

static enum result notion_run_rounds(struct notion *n)
{
	struct state *s;
	enum result code = notion_state_open(n, &s);

	for (int i = 0; code == SUCCESS && i < ROUNDS; i++) {
		code = notion_round(n, s);
		if (!n->later || n->job->check)
			break;
	}
	notion_state_close(s);
	clear_progress(n);
	return code;
}

/* --- watching ---------------------------------------------------------------------------------------------- */

static void notion_run_tell(const struct notion *n)
{
	const struct sync_done *d = n->done;

	for (size_t i = 0; n->job->note && i < d->changes.n; i++)
		n->job->note(n->job->ctx, d->changes.v[i]);
	for (size_t i = 0; n->job->note && i < d->warnings.n; i++)
		n->job->note(n->job->ctx, d->warnings.v[i]);
}

/* One round in memory of its own, since a watch may run for months. */
static enum result watch_once(struct notion *n)
{
	struct arena a = { 0 };
	struct answer ans = { 0 };
	struct notion once = *n;
	enum result code;

	once.arena = &a;
	once.ans = &ans;
	once.began_at = os_boot_ms();
	code = notion_still_own(&once); /* another queue may have taken over */
	if (code == SUCCESS)
		code = notion_run_rounds(&once);
	notion_run_tell(&once);
	n->next_at = once.next_at;
	n->renewed_at = once.renewed_at;
	n->done->changes = n->done->warnings = (struct strs){ 0 };
	if (code == API_ERROR && n->job->note) {
		n->job->note(n->job->ctx, ans.message); /* the next round tries again */
		code = SUCCESS;
	}
	if (code != SUCCESS)
		code = notion_fail(n, code, ans.message, ans.hint);
	arena_free(&a);
	return code;
}

static enum result notion_run_watch(struct notion *n)
{
	const struct sync_job *job = n->job;
	enum result code = SUCCESS;

	while (code == SUCCESS && (!job->listening || job->listening(job->ctx))) {
		int64_t end;

		code = watch_once(n);
		end = os_boot_ms() + job->every_ms;
		for (int64_t left; code == SUCCESS && (left = end - os_boot_ms()) > 0;) {
			notion_sleep(left < 5000 ? left : 5000);
			code = notion_renew(n);
		}
	}
	return code;
}

enum result notion_run(const struct sync_job *job, struct sync_done *out, struct answer *ans,
		       struct arena *a)
{
	struct notion n = { .job = job, .done = out, .ans = ans, .arena = a };
	struct str database;
	enum result code;

	*out = (struct sync_done){ 0 };
	n.began_at = os_boot_ms();
	be_syncer(job->client);
	code = client_open(job->client, job->check ? STORE_READ : STORE_WRITE, ans);
	if (code == SUCCESS)
		code = find_database(&n, &database);
	if (code == SUCCESS)
		code = notion_open(&n);
	if (code == SUCCESS)
		code = notion_schema(&n, database);
	if (code == SUCCESS)
		code = notion_sync_lock(&n);
	if (code == SUCCESS)
		code = note_sync_token(&n);
	if (code == SUCCESS)
		code = notion_own(&n);
	if (code == SUCCESS)
		code = job->watch && !job->check ? notion_run_watch(&n) : notion_run_rounds(&n);
	if (code == SUCCESS)
		code = notion_owned(&n);
	clear_progress(&n);
	notion_leave(&n);
	notion_close(&n);
	return code;
}

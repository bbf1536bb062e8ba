/*
 * A whole sync: the database, the lock @sync, then one round or many. The order matters: pawl takes
 * the lock before it opens the state and marks the database.
 */
#include <stdlib.h>

#include "base/module.h"
#include "base/os.h"
#include "base/secret.h"
#include "base/when.h"
#include "sync/notion/notion.h"

#define ROUNDS 3 /* repeat the sync at most this often while tasks keep changing */

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

/* Records this sync's lock in the state, even if the sync fails before its first round. */
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

/* Makes one round in memory of its own, because a watch may run for months. */
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

/* --- module ----------------------------------------------------------------------------------- */

/* The entry point of pawl-sync-notion.so for the program that loads it. */

static const struct sync_ops ops = { .run = notion_run };

extern const struct module pawl_module;
const struct module pawl_module = { .abi = MODULE_ABI, .sync = &ops };

/* --- writes that were begun ------------------------------------------------------------------- */

/*
 * Writes that were begun. They are saved first, so that the sync after a killed one does not take
 * its write for a person's edit.
 */

static enum part part_of(enum notion_field f)
{
	return f == F_PARENT ? PART_PARENT : f == F_STATUS ? PART_STATUS : PART_FIELDS;
}

struct str notion_call_id(const struct item *x, enum part part)
{
	return arena_printf(x->r->arena, "notion-pull-%.*s-%d", STRF(x->l->doing.id), (int)part);
}

/* --- beginning ---------------------------------------------------------------------------------------- */

static void notion_doing_begin(struct item *x)
{
	x->l->doing = (struct doing){ .id = token_make(x->r->arena),
				      .at = os_wall_ms(),
				      .version = x->t->version };
}

/* The value that the task will have once it has the page's value. An empty property stands for a
 * new task's value. */
static struct str notion_doing_aim(const struct item *x, enum notion_field f)
{
	struct str text = x->p->is.v[f];
	struct arena *a = x->r->arena;
	int64_t number;

	if (f == F_PRIORITY && !text.n)
		return arena_printf(a, "%d", PRIORITY_DEFAULT);
	if (f == F_CLASS)
		return str_c(class_name(text.n ? class_parse(text) : STANDARD));
	if (f == F_STATUS)
		return str_c(status_name(status_parse(text)));
	if (f == F_DUE && text.n && when_parse_date(text, x->r->now, &number, a))
		return when_date_iso(a, number);
	return text;
}

static void notion_doing_put(struct values *in, enum notion_field f, struct str value)
{
	in->v[f] = value;
	in->has[f] = true;
}

enum result notion_begin_pull(struct item *x)
{
	struct doing *d = &x->l->doing;
	bool any = false;

	for (int i = 0; i < F_END; i++) {
		enum notion_field f = (enum notion_field)i;

		if (x->plan.action[f] != D_PULL)
			continue;
		if (!any)
			notion_doing_begin(x);
		any = true;
		notion_doing_put(&d->pull, f, notion_doing_aim(x, f));
		notion_doing_put(&d->from, f, x->p->is.v[f]);
	}
	return any ? notion_link_save(x->r->state, x->l) : SUCCESS;
}

enum result notion_begin_push(struct item *x)
{
	bool any = false;

	for (int i = 0; i < F_END; i++)
		any |= notion_is_pushed(x, (enum notion_field)i);
	if (!any)
		return SUCCESS;
	notion_doing_begin(x);
	for (int i = 0; i < F_END; i++) {
		enum notion_field f = (enum notion_field)i;

		if (x->plan.action[f] == D_PULL)
			notion_keep(x, f); /* the queue has the value */
		else if (notion_is_pushed(x, f))
			notion_doing_put(&x->l->doing.push, f, x->tv.v[f]);
	}
	return notion_link_save(x->r->state, x->l);
}

/* --- after a sync that ended in the middle ----------------------------------------------------------------- */

/* Notes an earlier value of the page, which a read that is behind may show. */
static void note_past(struct item *x, enum notion_field f, struct str value)
{
	struct values *was = &x->l->was;
	struct arena *a = x->n->arena; /* the link outlives this page */

	notion_doing_put(was, f, notion_was(was->has[f] ? was->v[f] : STR(""), value, a));
}

/* Records that both sides had these values when that sync ended. */
static void notion_doing_rebase(struct item *x, enum notion_field f, struct str t, struct str p)
{
	struct link *l = x->l;

	if (l->p.has[f])
		note_past(x, f, l->p.v[f]);
	notion_doing_put(&l->t, f, t);
	notion_doing_put(&l->p, f, p);
}

/* Did the queue make this call? It remembers the request id of each call for a day, and then
 * refuses a call with the same id and other arguments. Otherwise it refuses this call because the
 * task has another version. */
static enum result was_made(struct item *x, enum part part, bool *made)
{
	struct request rq = { .op = OP_UPDATE };
	struct answer ans;
	enum result code;

	*made = false;
	if (x->t->version == x->l->doing.version || x->n->job->check)
		return SUCCESS;
	GIVE(&rq, id, x->t->id);
	GIVE(&rq, if_version, x->l->doing.version);
	GIVE(&rq, title, x->t->title);
	GIVE(&rq, request_id, notion_call_id(x, part));
	code = notion_queue(x->r, &rq, &ans);
	*made = code == SUCCESS && ans.code == CONFLICT && !ans.task;
	return code;
}

static enum result settle_part(struct item *x, enum part part)
{
	const struct doing *d = &x->l->doing;
	bool any = false, same = true, made;
	enum result code;

	for (int i = 0; i < F_END; i++) {
		if (!d->pull.has[i] || part_of((enum notion_field)i) != part)
			continue;
		any = true;
		same &= x->tv.has[i] && str_eq(x->tv.v[i], d->pull.v[i]);
	}
	if (!any)
		return SUCCESS;
	made = same;
	code = same ? SUCCESS : was_made(x, part, &made);
	for (int i = 0; made && i < F_END; i++)
		if (d->pull.has[i] && part_of((enum notion_field)i) == part)
			notion_doing_rebase(x, (enum notion_field)i, d->pull.v[i], d->from.v[i]);
	return code;
}

enum result notion_settle(struct item *x)
{
	const struct doing *d = &x->l->doing;
	enum result code = SUCCESS;

	if (!d->id.n)
		return SUCCESS;
	for (int i = 0; i < F_END; i++) {
		enum notion_field f = (enum notion_field)i;

		if (!d->push.has[f] || !x->p->is.has[f])
			continue;
		if (str_eq(x->p->is.v[f], d->push.v[f]))
			notion_doing_rebase(x, f, d->push.v[f], d->push.v[f]);
		else
			note_past(x, f, d->push.v[f]);
	}
	for (int part = 0; code == SUCCESS && part < PART_END; part++)
		code = settle_part(x, (enum part)part);
	return code;
}

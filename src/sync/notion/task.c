/* The tasks of the queue, as the sync sees them. */
#include <stdlib.h>

#include "base/os.h"
#include "base/when.h"
#include "core/lease.h"
#include "sync/notion/notion.h"

/* A fault is about the store or its server, not about the change. A role that may not do this one thing ("forbidden") is
 * an answer like that of a rule. */
static bool is_decided(const struct answer *ans)
{
	return ans->code != API_ERROR && (!ans->fault.n || str_is(ans->fault, "forbidden"));
}

enum result notion_queue(struct round *r, const struct request *rq, struct answer *ans)
{
	struct client *c = r->n->job->client;
	struct arena *kept = c->arena, *ring = c->keyring.arena;

	*ans = (struct answer){ 0 };
	c->arena = c->keyring.arena = r->arena;
	client_call(c, rq, ans);
	c->arena = kept;
	c->keyring.arena = ring;
	if (is_decided(ans))
		return SUCCESS;
	*r->n->ans = *ans;
	r->n->ans->message = arena_str(r->n->arena, ans->message);
	r->n->ans->hint = arena_str(r->n->arena, ans->hint);
	r->n->ans->fault = arena_str(r->n->arena, ans->fault);
	r->n->ans->warnings = (struct strs){ 0 };
	r->n->ans->task = NULL;
	r->n->status = 0; /* no answer of Notion is the reason */
	return ans->code;
}

const struct task *notion_task(const struct round *r, struct str id)
{
	char room[ID_MAX + 1];
	const json_t *at;
	size_t n = id.n < ID_MAX ? id.n : ID_MAX;

	for (size_t i = 0; i < n; i++)
		room[i] = (char)(id.p[i] >= 'A' && id.p[i] <= 'Z' ? id.p[i] + 32 : id.p[i]);
	room[n] = '\0';
	at = json_object_get(r->ids, room);
	return at ? &r->tasks[json_integer_value(at)] : NULL;
}

bool notion_young(const struct notion *n, const struct link *l)
{
	int64_t age = os_wall_ms() - (l->doing.at > l->at ? l->doing.at : l->at);

	return age >= 0 && age < n->settle_ms;
}

/* Does somebody hold it in the queue? The lock that stands for another program's does not count. */
static bool is_held(const struct item *x)
{
	const struct lock *lock = &x->t->lock;

	if (!lease_live(lock, x->r->now))
		return false;
	return !(x->l->foreign.n && lock->manual &&
		 str_eq(lock->holder, x->n->job->client->self.agent));
}

static void notion_task_set(struct item *x, enum notion_field f, struct str text)
{
	x->tv.v[f] = text;
	x->tv.has[f] = x->n->known[f];
}

static struct str notion_task_second(struct arena *a, int64_t ms)
{
	return ms ? when_text(a, ms - ms % 1000) : STR("");
}

/* The parent's page must exist before a page can name it. */
static void set_parent(struct item *x)
{
	const struct link *up = x->t->parent.n ? notion_link_of_task(x->r->state, x->t->parent)
					       : NULL;

	if (!x->t->parent.n)
		notion_task_set(x, F_PARENT, STR(""));
	else if (up && up->page.n && !up->gone)
		notion_task_set(x, F_PARENT, up->task);
}

void notion_task_values(struct item *x)
{
	const struct task *t = x->t;
	struct arena *a = x->r->arena;

	x->tv = (struct values){ 0 };
	x->held = is_held(x);
	notion_task_set(x, F_TITLE, t->title);
	notion_task_set(x, F_BODY, notion_body_hash(a, t->description));
	notion_task_set(x, F_STATUS, str_c(status_name(t->status)));
	notion_task_set(x, F_PRIORITY, arena_printf(a, "%lld", (long long)t->priority));
	notion_task_set(x, F_CLASS, str_c(class_name(t->class_rank)));
	notion_task_set(x, F_DUE, t->due ? when_date_iso(a, t->due) : STR(""));
	set_parent(x);
	notion_task_set(x, F_RUN, x->held ? notion_fit(t->run) : STR(""));
	notion_task_set(x, F_TOKEN,
			x->held ? arena_printf(a, "pawl:%lld", (long long)t->fence) : STR(""));
	notion_task_set(x, F_EXPIRES,
			x->held ? notion_task_second(a, t->lock.expires_at) : STR(""));
	if (x->held && x->n->agent_user.n)
		notion_task_set(x, F_ASSIGNEE, x->n->agent_user);
	notion_task_set(x, F_REASON, notion_fit(t->blocker_reason));
	notion_task_set(x, F_ACTION, notion_fit(t->unblock_action));
	notion_task_set(x, F_SUMMARY, notion_fit(t->summary));
	notion_task_set(x, F_STARTED, notion_task_second(a, t->started_at));
	notion_task_set(x, F_DONE, notion_task_second(a, t->done_at));
	notion_task_set(x, F_ID, t->id);
}

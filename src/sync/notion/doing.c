/* Writes that were begun: a sync that ends in the middle must not take its own write for an edit of a person. */
#include "base/os.h"
#include "base/secret.h"
#include "base/when.h"
#include "sync/notion/notion.h"

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

/* The task's value once it has the value of the page. An empty property has the value of a new task. */
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

		if (x->plan.deed[f] != D_PULL)
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

		if (x->plan.deed[f] == D_PULL)
			notion_keep(x, f); /* the queue has it */
		else if (notion_is_pushed(x, f))
			notion_doing_put(&x->l->doing.push, f, x->tv.v[f]);
	}
	return notion_link_save(x->r->state, x->l);
}

/* --- after a sync that ended in the middle ----------------------------------------------------------------- */

/* A read that is behind may show this value of the page. */
static void note_past(struct item *x, enum notion_field f, struct str value)
{
	struct values *was = &x->l->was;
	struct arena *a = x->n->arena; /* the link outlives this page */

	notion_doing_put(was, f, notion_was(was->has[f] ? was->v[f] : STR(""), value, a));
}

/* Both sides had these values when that sync ended. */
static void notion_doing_rebase(struct item *x, enum notion_field f, struct str t, struct str p)
{
	struct link *l = x->l;

	if (l->p.has[f])
		note_past(x, f, l->p.v[f]);
	notion_doing_put(&l->t, f, t);
	notion_doing_put(&l->p, f, p);
}

/* Has the queue made this call? It knows the request id of each call that it made, for a day. A call with the same id and
 * other arguments is refused then. Else it is refused because the task has another version. */
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

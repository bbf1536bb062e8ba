/*
 * One task and its page: a change on either side goes to the other. The order is: note the writes,
 * change the queue, explain refusals on the page, write the page, remember both sides. A sync that
 * is killed at any step can be completed.
 */
#include "base/os.h"
#include "base/secret.h"
#include "sync/notion/notion.h"

#define MINUTE 60000

/* "title, priority": the fields with this action; empty: none */
static struct str notion_named(const struct plan *p, enum field_action d, struct arena *a)
{
	struct str out = STR("");

	for (int f = 0; f < F_END; f++)
		if (p->action[f] == d)
			out = arena_printf(a, "%.*s%s%s", STRF(out), out.n ? ", " : "",
					   notion_fields[f].key);
	return out;
}

/* Counts and names the changes of this task and its page. */
static void notion_item_tell(struct item *x)
{
	struct arena *a = x->r->arena;
	struct str in = notion_named(&x->plan, D_PULL, a), out = notion_named(&x->plan, D_PUSH, a),
		   back = notion_named(&x->plan, D_BACK, a);

	if (in.n) {
		x->n->done->tasks_changed++;
		notion_change(x->n, x->t->id, "from the page: ", in);
	}
	if (out.n)
		notion_change(x->n, x->t->id, "to the page: ", out);
	if (back.n) {
		x->n->done->refused++;
		notion_change(x->n, x->t->id, "refused on the page: ", back);
	}
	x->n->done->pages_changed += out.n || back.n;
}

/* --- the page's side ---------------------------------------------------------------------------------------- */

/* Is the text certainly the one of the last sync? Notion gives times in whole minutes, so only our
 * own edit, or a read long after the edit, is certain. */
static bool is_body_sure(const struct item *x)
{
	const struct link *l = x->l;

	if (l->doing.id.n) /* our write may hide an edit in the same minute */
		return false;
	if (l->loose && !notion_young(x->n, l)) /* earlier, a read may be behind */
		return false;
	return l->p.has[F_BODY] && x->p->edited == l->edited &&
	       (x->p->last_by_us || l->at - l->edited > 2 * MINUTE + x->n->settle_ms);
}

static enum result check_body(struct item *x)
{
	if (x->p->body_read)
		return SUCCESS;
	if (is_body_sure(x)) {
		x->p->is.v[F_BODY] = x->l->p.v[F_BODY];
		x->p->is.has[F_BODY] = true;
		return SUCCESS;
	}
	return notion_body(x->n, x->p, x->r->arena);
}

/* Translates the parent's page to the id of its task. If that page is not a task yet, the parent
 * follows later. */
static void check_parent(struct item *x)
{
	struct str id = x->p->parent;
	const struct link *up = id.n ? notion_link_of_page(x->r->state, id) : NULL;

	x->p->is.v[F_PARENT] = up && up->task.n ? up->task : STR("");
	x->p->is.has[F_PARENT] = x->n->known[F_PARENT] && (!id.n || (up && up->task.n));
}

bool notion_is_pushed(const struct item *x, enum notion_field f)
{
	return x->plan.action[f] == D_PUSH || x->plan.action[f] == D_BACK;
}

static enum result push_properties(struct item *x)
{
	bool which[F_END] = { false }, any = false;
	const struct link *up = x->tv.v[F_PARENT].n
					? notion_link_of_task(x->r->state, x->tv.v[F_PARENT])
					: NULL;
	enum result code;

	for (int f = 0; f < F_END; f++) {
		which[f] = f != F_BODY && notion_is_pushed(x, (enum notion_field)f);
		any |= which[f];
	}
	if (!any)
		return SUCCESS;
	x->patched = true;
	code = notion_patch(x->n, x->p, &x->tv, which, up ? up->page : STR(""), x->r->arena);
	if (code == SUCCESS)
		check_parent(x);
	return code;
}

static enum result notion_item_push(struct item *x)
{
	enum result code = push_properties(x);

	if (code == SUCCESS && notion_is_pushed(x, F_BODY))
		code = notion_patch_body(x->n, x->p, x->t->description, x->r->arena);
	return code;
}

/* Explains on the page why its edits were taken back. A killed sync may have done so already. */
static enum result notion_item_explain(struct item *x)
{
	struct arena *a = x->r->arena;
	struct str text = arena_printf(a, "pawl took back an edit of this page.\n%.*s",
				       STRF(x->why));
	struct str hash = hash_hex(a, text);
	bool again = str_eq(x->l->saying, hash);
	enum result code = SUCCESS;

	if (!x->why.n)
		return SUCCESS;
	if (!again) {
		x->l->saying = arena_str(x->n->arena, hash); /* the link outlives this page */
		code = notion_link_save(x->r->state, x->l);
	}
	return code == SUCCESS ? notion_comment(x->n, x->p->id, text, again, a) : code;
}

/* --- remembering ------------------------------------------------------------------------------------------------ */

/* The page's value that this sync has dealt with. The answer to a PATCH may show a person's later
 * edit, and the next round must find that it differs from this value. */
static struct str notion_item_settled(const struct item *x, enum notion_field f)
{
	if (!notion_is_pushed(x, f))
		return x->before.v[f];
	return x->p->last_by_us || f == F_BODY ? x->p->is.v[f] : x->tv.v[f];
}

/* May a person's edit of the text be hidden? Our PATCH makes us the last editor, even if a person
 * has just written. */
static bool is_loose(const struct item *x)
{
	if (notion_is_pushed(x, F_BODY)) /* the text is written last */
		return false;
	return x->patched || (x->l->loose && (x->young || !x->p->body_read));
}

void notion_keep(struct item *x, enum notion_field f)
{
	struct link *l = x->l;
	struct str was = l->was.has[f] && x->young ? l->was.v[f] : STR("");

	if (x->plan.action[f] == D_NONE) {
		l->was.has[f] &= x->young;
		return;
	}
	if (l->p.has[f])
		was = notion_was(was, l->p.v[f], x->r->arena);
	if (x->before.has[f])
		was = notion_was(was, x->before.v[f], x->r->arena);
	l->was.v[f] = was;
	l->was.has[f] = true;
	l->t.v[f] = x->tv.v[f];
	l->p.v[f] = notion_item_settled(x, f);
	l->t.has[f] = l->p.has[f] = true;
}

static enum result notion_item_remember(struct item *x)
{
	struct link *l = x->l;
	bool loose = is_loose(x), any = l->saying.n || l->making.n || l->doing.id.n;

	for (int f = 0; f < F_END; f++) {
		any |= x->plan.action[f] != D_NONE;
		notion_keep(x, (enum notion_field)f);
	}
	if (!any && l->version == x->t->version && l->edited == x->p->edited && l->loose == loose)
		return SUCCESS;
	if (any)
		l->at = os_wall_ms();
	l->saying = l->making = STR("");
	l->doing = (struct doing){ 0 };
	l->loose = loose;
	l->edited = x->p->edited;
	/* the parent has no page yet: come back in the next round */
	l->version = x->t->parent.n && !x->tv.has[F_PARENT] && x->n->known[F_PARENT]
			     ? -1
			     : x->t->version;
	return notion_link_save(x->r->state, l);
}

static void notion_item_merge(struct item *x)
{
	x->why = STR("");
	notion_task_values(x);
	x->before = x->p->is;
	notion_merge(&(struct merge){ x->l, &x->tv, &x->p->is, x->young, x->foreign, x->r->arena },
		     &x->plan);
	notion_decide(x);
}

/* An operation may change more fields than the status; these go to the page, too. */
static void notion_item_follow(struct item *x)
{
	notion_task_values(x);
	for (int f = 0; f < F_END; f++)
		if (x->plan.action[f] == D_NONE && x->tv.has[f] && x->p->is.has[f] && !x->foreign &&
		    !str_eq(x->tv.v[f], x->l->t.v[f]))
			x->plan.action[f] = D_PUSH;
}

static enum result notion_item_apply(struct item *x)
{
	enum result code = notion_begin_pull(x);

	if (code == SUCCESS)
		code = notion_pull(x);
	if (code != SUCCESS)
		return code;
	if (x->later) {
		x->n->later++;
		return SUCCESS;
	}
	notion_item_follow(x);
	notion_item_tell(x);
	code = notion_begin_push(x);
	if (code == SUCCESS)
		code = notion_item_explain(x);
	if (code == SUCCESS)
		code = notion_item_push(x);
	return code == SUCCESS ? notion_item_remember(x) : code;
}

enum result notion_reconcile(struct round *r, const struct task *t, struct link *l, struct page *p)
{
	struct item x = { .r = r, .n = r->n, .t = t, .l = l, .p = p };
	enum result code;

	x.young = notion_young(r->n, l); /* decided before our own writes, which do not count */
	if (p->edited < l->edited)       /* an old state of the page */
		return SUCCESS;
	notion_task_values(&x);
	code = notion_lock(&x);
	if (code == SUCCESS && !x.later)
		code = check_body(&x);
	if (code == SUCCESS && !x.later) {
		check_parent(&x);
		code = notion_settle(&x);
	}
	if (code != SUCCESS || x.later) {
		r->n->later += x.later;
		return code;
	}
	notion_item_merge(&x);
	/* read the text first, so that no unseen text is overwritten */
	if (notion_is_pushed(&x, F_BODY) && !p->body_read) {
		code = notion_body(r->n, p, r->arena);
		notion_item_merge(&x);
	}
	if (code == SUCCESS && !r->n->job->check)
		return notion_item_apply(&x);
	notion_item_tell(&x);
	return code;
}

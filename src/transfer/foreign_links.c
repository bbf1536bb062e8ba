/* Links of foreign tasks. Their targets are known only after the last task was read. */
#include <stdlib.h>

#include "format/json.h"
#include "format/origin.h"
#include "transfer/foreign.h"

struct checking {
	struct port_in *in;
	bool strict;
	enum result (*exists)(void *ctx, struct str id, struct answer *ans);
	void *ctx;
	struct arena *a;
	json_t *lost; /* ids of the current task that lead nowhere */
	struct str where;
	enum result code;
};

/* Replaces another id of a task by its own. */
static void foreign_links_resolve(struct checking *c, struct str *id)
{
	const struct foreign_in *f = c->in->foreign;
	struct str own = foreign_has(f, task_key(c->a, *id)) ? STR("") : foreign_alias(f, *id);

	if (own.n)
		*id = own;
}

static bool leads_somewhere(struct checking *c, const struct task *t, struct str id,
			    const char *what)
{
	enum result code = foreign_has(c->in->foreign, task_key(c->a, id))
				   ? SUCCESS
				   : c->exists(c->ctx, id, c->in->ans);

	if (code == SUCCESS)
		return true;
	if (code != NOT_FOUND) {
		c->code = code;
		return false;
	}
	if (c->strict) {
		c->code = port_refuse_as(
			c->in, NOT_FOUND, c->where,
			arena_printf(c->a, "%.*s %s %.*s, which does not exist", STRF(t->id), what,
				     STRF(id)),
			STR("nothing was changed; without --strict the link is kept in extra"));
		return false;
	}
	json_array_append_new(c->lost, json_stringn(id.p, id.n));
	foreign_warn_at(c->in, c->where,
			arena_printf(c->a,
				     "%.*s %s %.*s, which does not exist: kept in extra.lost_links",
				     STRF(t->id), what, STRF(id)));
	return false;
}

/* A task that waits for the task around it would wait for ever: that one waits for its sub-tasks. */
static bool waits_for_parent(struct checking *c, const struct task *t, struct str id)
{
	if (!t->parent.n || !str_eq(task_key(c->a, t->parent), task_key(c->a, id)))
		return false;
	foreign_warn_at(c->in, c->where,
			arena_printf(c->a,
				     "%.*s depends on %.*s, whose sub-task it is: link dropped",
				     STRF(t->id), STRF(id)));
	return true;
}

/* The links that are lost, and the sums of the fields as the import leaves them: a later --update compares with these. */
static void foreign_links_note(struct checking *c, struct task *t)
{
	json_t *o = json_loadb(str_p(t->extra), t->extra.n, 0, NULL);
	char *text;

	if (json_array_size(c->lost))
		json_object_set(o, "lost_links", c->lost);
	json_object_set_new(o, "imported", json_str(origin_sums(t, c->a)));
	text = json_dumps(o, JSON_COMPACT);
	t->extra = arena_str(c->a, str_c(text));
	free(text);
	json_decref(o);
}

/* A task that was blocked by its dependencies is Ready. If none of them exists, a person has to look at it. */
static bool settle_blocked(struct checking *c, struct task *t)
{
	if (t->status != READY ||
	    !str_eq(t->blocker_reason, foreign_blocked(c->in->foreign->from, c->a)))
		return false;
	if (t->depends.n)
		t->blocker_reason = STR("");
	else
		t->status = BLOCKED;
	return t->status == BLOCKED;
}

static void foreign_links_check(struct checking *c, struct task *t)
{
	size_t kept = 0;

	c->lost = json_array();
	if (t->parent.n)
		foreign_links_resolve(c, &t->parent);
	for (size_t i = 0; i < t->depends.n; i++)
		foreign_links_resolve(c, &t->depends.v[i]);
	for (size_t i = 0; i < t->depends.n && c->code == SUCCESS; i++)
		if (!waits_for_parent(c, t, t->depends.v[i]) &&
		    leads_somewhere(c, t, t->depends.v[i], "depends on"))
			t->depends.v[kept++] = t->depends.v[i];
	t->depends.n = kept;
	if (t->parent.n && c->code == SUCCESS &&
	    !leads_somewhere(c, t, t->parent, "is a sub-task of"))
		t->parent = STR("");
	if (settle_blocked(c, t) || json_array_size(c->lost))
		foreign_links_note(c, t);
	json_decref(c->lost);
}

static void foreign_links_count(struct port_in *in, const struct task *t)
{
	struct foreign_in *f = in->foreign;
	struct task *copy;

	if (t->status > 0 && t->status < STATUS_END)
		f->by_status[t->status]++;
	if (f->n_first == FOREIGN_PREVIEW)
		return;
	if (!f->first)
		f->first = arena_array(in->arena, struct task, FOREIGN_PREVIEW);
	copy = &f->first[f->n_first++];
	copy->id = arena_str(in->arena, t->id);
	copy->title = arena_str(in->arena, t->title);
	copy->parent = arena_str(in->arena, t->parent);
	copy->depends = arena_strs(in->arena, t->depends);
	copy->status = t->status;
	copy->priority = t->priority;
}

enum result foreign_links(struct port_in *in, struct spool *to, bool strict,
			  enum result (*exists)(void *ctx, struct str id, struct answer *ans),
			  void *ctx)
{
	struct checking c = { .in = in, .strict = strict, .exists = exists, .ctx = ctx };
	struct arena a = { 0 };
	struct parcel p = { 0 };
	int r = spool_open(to);

	c.a = &a;
	spool_rewind(in->spool);
	while (!r && c.code == SUCCESS && !(r = spool_next(in->spool, &p, &a))) {
		c.where = p.where;
		foreign_links_check(&c, &p.task);
		foreign_links_count(in, &p.task);
		if (c.code == SUCCESS)
			r = spool_add(to, &p);
		arena_free(&a);
		p = (struct parcel){ 0 };
	}
	arena_free(&a);
	if (r < 0)
		return port_cannot(in, "pawl cannot write the tasks to TMPDIR", r);
	if (c.code == SUCCESS && fflush(to->file))
		return port_cannot(in, "pawl cannot write the tasks to TMPDIR", -1);
	return c.code;
}

void foreign_end(struct foreign_in *f)
{
	free(f->ids);
	json_decref(f->aliases);
	f->aliases = NULL;
	f->ids = NULL;
	f->room = 0;
}

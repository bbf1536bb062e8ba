/*
 * Sub-tasks and dependencies: as a tree, and for Graphviz and Mermaid. The tree expands each task
 * once, so it ends even if a damaged store has a cycle.
 */
#include <stdlib.h>

#include "base/text.h"
#include "cmd/view.h"
#include "core/lease.h"

#define NOWHERE SIZE_MAX
#define DEPTH_MAX 100 /* levels of a tree; a longer chain is cut */
#define TITLE_MIN 12

/* --- which tasks belong together ---------------------------------------------------------------------- */

struct task_place {
	struct str key;
	size_t at;
};

static int place_cmp(const void *a, const void *b)
{
	return str_cmp(((const struct task_place *)a)->key, ((const struct task_place *)b)->key);
}

static size_t find_place(struct arena *a, const struct task_place *places, size_t n, struct str id)
{
	struct task_place want = { .key = task_key(a, id) };
	const struct task_place *p = n ? bsearch(&want, places, n, sizeof(want), place_cmp) : NULL;

	return p && id.n ? p->at : NOWHERE;
}

static void add_place(struct arena *a, size_t **list, size_t *n, size_t at)
{
	*list = arena_grow(a, *list, *n, sizeof(**list));
	(*list)[(*n)++] = at;
}

struct graph_node *view_graph(struct arena *a, const struct answer *ans)
{
	struct task_place *places = arena_array(a, struct task_place, ans->n_tasks);
	struct graph_node *nodes = arena_array(a, struct graph_node, ans->n_tasks);

	for (size_t i = 0; i < ans->n_tasks; i++)
		places[i] = (struct task_place){ task_key(a, ans->tasks[i].id), i };
	if (ans->n_tasks)
		qsort(places, ans->n_tasks, sizeof(*places), place_cmp);
	for (size_t i = 0; i < ans->n_tasks; i++) {
		const struct task *t = &ans->tasks[i];
		size_t parent = find_place(a, places, ans->n_tasks, t->parent);

		nodes[i].has_parent = parent != NOWHERE;
		if (parent != NOWHERE)
			add_place(a, &nodes[parent].subs, &nodes[parent].n_subs, i);
		for (size_t k = 0; k < t->depends.n; k++) {
			size_t on = find_place(a, places, ans->n_tasks, t->depends.v[k]);

			if (on == NOWHERE)
				continue;
			add_place(a, &nodes[i].depends, &nodes[i].n_depends, on);
			nodes[on].is_dependency = true;
		}
	}
	return nodes;
}

/* --- the tree ----------------------------------------------------------------------------------------- */

struct tree {
	struct view *v;
	const struct answer *ans;
	const struct graph_node *nodes;
	bool *shown, *ahead; /* ahead: the task comes later, below its parent */
	size_t depth;
};

enum edge { TOP, SUB, DEPENDS };

static struct str view_graph_standing(struct view *v, const struct task *t, int64_t now)
{
	bool live = lease_live(&t->lock, now);

	return live ? arena_printf(v->arena, "%s, %s", status_name(t->status),
				   arena_cstr(v->arena, view_cell(v, PLAIN, t->lock.holder).text))
		    : str_c(status_name(t->status));
}

/* Cuts the title first, because the rest of the line shows the relations. */
static void put_line(struct tree *x, size_t i, struct str before, enum edge edge, const char *note)
{
	const struct task *t = &x->ans->tasks[i];
	struct view *v = x->v;
	struct str title = view_cell(v, PLAIN, t->title).text, id = view_cell(v, PLAIN, t->id).text;
	struct str is = view_graph_standing(v, t, x->ans->now);
	const char *how = edge == DEPENDS ? "depends on " : "";
	size_t used = text_width(before) + strlen(how) + text_width(id) + 2 + 2 + text_width(is) +
		      2 + strlen(note);
	size_t room = v->width > used + TITLE_MIN ? v->width - used : TITLE_MIN;

	view_text(v, DIM, "%.*s%s", STRF(before), how);
	view_text(v, BOLD, "%.*s", STRF(id));
	view_text(v, PLAIN, "  %s  ",
		  arena_cstr(v->arena, v->width ? text_cut(v->arena, title, room) : title));
	view_text(v, view_status_paint(t->status), "[%.*s]", STRF(is));
	view_text(v, DIM, "%s\n", note);
}

static void put_node(struct tree *x, size_t i, struct str lead, const char *branch,
		     const char *below, enum edge edge);

static void put_children(struct tree *x, size_t i, struct str lead)
{
	const struct graph_node *n = &x->nodes[i];
	size_t all = n->n_subs + n->n_depends;

	for (size_t k = 0; k < all; k++) {
		bool sub = k < n->n_subs, last = k + 1 == all;

		put_node(x, sub ? n->subs[k] : n->depends[k - n->n_subs], lead,
			 last ? "└── " : "├── ", last ? "    " : "│   ", sub ? SUB : DEPENDS);
	}
}

/* A task with a parent is expanded below that parent; a dependency on it only refers to it. */
static void put_node(struct tree *x, size_t i, struct str lead, const char *branch,
		     const char *below, enum edge edge)
{
	struct arena *a = x->v->arena;
	struct str before = arena_printf(a, "%.*s%s", STRF(lead), branch);
	bool children = x->nodes[i].n_subs + x->nodes[i].n_depends > 0;

	if (x->shown[i]) {
		put_line(x, i, before, edge, children ? " (above)" : "");
	} else if (edge == DEPENDS && x->nodes[i].has_parent && x->ahead[i]) {
		put_line(x, i, before, edge, children ? " (below)" : "");
	} else if (x->depth >= DEPTH_MAX) {
		put_line(x, i, before, edge, children ? " …" : "");
	} else {
		x->shown[i] = true;
		put_line(x, i, before, edge, "");
		x->depth++;
		put_children(x, i, arena_printf(a, "%.*s%s", STRF(lead), below));
		x->depth--;
	}
}

/* Marks the tasks that will come below this one as sub-tasks. */
static void read_ahead(struct tree *x, size_t i, size_t depth)
{
	const struct graph_node *n = &x->nodes[i];

	for (size_t k = 0; k < n->n_subs && depth < DEPTH_MAX; k++) {
		if (x->ahead[n->subs[k]])
			continue;
		x->ahead[n->subs[k]] = true;
		read_ahead(x, n->subs[k], depth + 1);
	}
}

static bool is_root(const struct tree *x, size_t i)
{
	return !x->nodes[i].has_parent && !x->nodes[i].is_dependency;
}

/* In a cycle, which only a damaged store has, no task is a root. The last loop shows such tasks,
 * beginning with the first. */
static void put_all(struct tree *x)
{
	for (size_t i = 0; i < x->ans->n_tasks; i++)
		if (!x->nodes[i].has_parent)
			read_ahead(x, i, 0);
	for (size_t i = 0; i < x->ans->n_tasks; i++)
		if (is_root(x, i))
			put_node(x, i, STR(""), "", "", TOP);
	for (size_t i = 0; i < x->ans->n_tasks; i++)
		if (!x->shown[i])
			put_node(x, i, STR(""), "", "", TOP);
}

void show_tree(const struct reply *r, struct view *v)
{
	const struct answer *ans = &r->ans;
	const struct graph_shown *own = r->own;
	struct tree x = { .v = v, .ans = ans };

	for (size_t i = 0; v->quiet && i < ans->n_tasks; i++) {
		view_data(v, PLAIN, ans->tasks[i].id);
		view_text(v, PLAIN, "\n");
	}
	if (v->quiet)
		return;
	if (!ans->n_tasks)
		view_text(v, DIM, "no open tasks\n");
	x.nodes = view_graph(v->arena, ans);
	x.shown = arena_array(v->arena, bool, ans->n_tasks);
	x.ahead = arena_array(v->arena, bool, ans->n_tasks);
	if (own->one && ans->n_tasks) {
		read_ahead(&x, 0, 0);
		put_node(&x, 0, STR(""), "", "", TOP);
	} else {
		put_all(&x);
	}
	if (ans->total > (int64_t)ans->n_tasks) {
		view_text(v, DIM,
			  own->one ? "showing the first %zu tasks of the tree; for all: "
				   : "showing %zu tasks; for all: ",
			  ans->n_tasks);
		view_data(v, DIM, own->command);
		view_text(v, DIM, " --limit 0\n");
	}
}

/* --- Graphviz and Mermaid ----------------------------------------------------------------------------- */

static void add_dot(struct buf *b, struct str text)
{
	buf_addc(b, '"');
	for (size_t i = 0; i < text.n; i++) {
		if (text.p[i] == '"' || text.p[i] == '\\')
			buf_addc(b, '\\');
		buf_addc(b, text.p[i]);
	}
	buf_addc(b, '"');
}

/* A Mermaid label may contain Markdown, HTML and entities, so each character that could begin one
 * of them becomes an entity. */
static void add_mermaid(struct buf *b, struct str text)
{
	buf_addc(b, '"');
	for (size_t i = 0; i < text.n; i++) {
		unsigned char c = (unsigned char)text.p[i];
		bool plain = c >= 0x80 || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
			     (c >= 'A' && c <= 'Z') || strchr(" .,:/()-", c);

		if (plain)
			buf_addc(b, (char)c);
		else
			buf_addf(b, "#%d;", c);
	}
	buf_addc(b, '"');
}

static struct str node_label(struct view *v, const struct task *t, int64_t now, const char *newline)
{
	return arena_printf(v->arena, "%s: %s%s%s",
			    arena_cstr(v->arena, view_cell(v, PLAIN, t->id).text),
			    arena_cstr(v->arena, view_cell(v, PLAIN, t->title).text), newline,
			    arena_cstr(v->arena, view_graph_standing(v, t, now)));
}

static void put_dot(struct view *v, const struct answer *ans, const struct graph_node *nodes)
{
	struct buf *b = v->out;

	buf_adds(b, STR("digraph tasks {\n\trankdir=LR;\n\tnode [shape=box];\n"));
	for (size_t i = 0; i < ans->n_tasks; i++) {
		buf_addf(b, "\tn%zu [label=", i);
		add_dot(b, node_label(v, &ans->tasks[i], ans->now, " / "));
		buf_adds(b, STR("];\n"));
	}
	for (size_t i = 0; i < ans->n_tasks; i++) {
		for (size_t k = 0; k < nodes[i].n_depends; k++)
			buf_addf(b, "\tn%zu -> n%zu;\n", i, nodes[i].depends[k]);
		for (size_t k = 0; k < nodes[i].n_subs; k++)
			buf_addf(b, "\tn%zu -> n%zu [style=dashed];\n", i, nodes[i].subs[k]);
	}
	buf_adds(b, STR("}\n"));
}

static void put_mermaid(struct view *v, const struct answer *ans, const struct graph_node *nodes)
{
	struct buf *b = v->out;

	buf_adds(b, STR("graph LR\n"));
	for (size_t i = 0; i < ans->n_tasks; i++) {
		buf_addf(b, "\tn%zu[", i);
		add_mermaid(b, node_label(v, &ans->tasks[i], ans->now, " / "));
		buf_adds(b, STR("]\n"));
	}
	for (size_t i = 0; i < ans->n_tasks; i++) {
		for (size_t k = 0; k < nodes[i].n_depends; k++)
			buf_addf(b, "\tn%zu --> n%zu\n", i, nodes[i].depends[k]);
		for (size_t k = 0; k < nodes[i].n_subs; k++)
			buf_addf(b, "\tn%zu -.-> n%zu\n", i, nodes[i].subs[k]);
	}
}

void show_graph(const struct reply *r, struct view *v)
{
	const struct graph_shown *own = r->own;
	const struct graph_node *nodes = view_graph(v->arena, &r->ans);

	if (own->mermaid)
		put_mermaid(v, &r->ans, nodes);
	else
		put_dot(v, &r->ans, nodes);
}

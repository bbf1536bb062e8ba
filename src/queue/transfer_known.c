/* Comments of an imported task that the queue has already. */
#include "queue/transfer.h"

#include "format/record_form.h"
#include "queue/queue_private.h"

/* The comments of a parcel by their texts, so that many comments do not take quadratic time. */
struct comment_filter {
	const struct event *comments;
	size_t *slots, *next; /* 1 + the place of a comment; 0: none */
	size_t room;
	bool *known;
};

static size_t comment_slot(const struct comment_filter *f, struct str text, struct str agent)
{
	return (str_hash(text) + str_hash(agent)) % f->room;
}

static void index_comments(struct comment_filter *f, const struct parcel *p, struct arena *a)
{
	size_t n = p->n_comments;

	*f = (struct comment_filter){ .comments = p->comments, .room = n + 1 };
	f->slots = arena_array(a, size_t, f->room);
	f->next = arena_array(a, size_t, n);
	f->known = arena_array(a, bool, n);
	for (size_t i = n; i > 0; i--) {
		size_t at = comment_slot(f, p->comments[i - 1].text, p->comments[i - 1].agent);

		f->next[i - 1] = f->slots[at];
		f->slots[at] = i;
	}
}

/* One comment of the log stands for one of the parcel. */
static int find_known(const struct entry *en, void *ctx)
{
	struct comment_filter *f = ctx;
	struct event ev;

	if (event_of(en, &ev) || !str_is(ev.name, "comment"))
		return 0;
	for (size_t *at = &f->slots[comment_slot(f, ev.text, ev.agent)]; *at;
	     at = &f->next[*at - 1]) {
		const struct event *c = &f->comments[*at - 1];

		if ((c->at && en->at != c->at) || !str_eq(ev.text, c->text) ||
		    !str_eq(ev.agent, c->agent))
			continue;
		f->known[*at - 1] = true;
		*at = f->next[*at - 1];
		break;
	}
	return 0;
}

int parcel_drop_known(struct act *w, struct str key, struct parcel *p)
{
	struct entry_query of = { .key = key };
	struct comment_filter f;
	size_t kept = 0;
	int r;

	if (!p->n_comments)
		return 0;
	index_comments(&f, p, w->call.arena);
	r = w->e->store->ops->entries(w->e->store, &of, find_known, &f);
	for (size_t i = 0; !r && i < p->n_comments; i++)
		if (!f.known[i])
			p->comments[kept++] = p->comments[i];
	if (!r)
		p->n_comments = kept;
	return r;
}

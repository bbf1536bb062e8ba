/* For doctor: checks of the repository and of its queue. */
#include <dirent.h>
#include <stdio.h>

#include "base/fs.h"
#include "store/git/git.h"

#define LOOSE_MANY 20000

struct report {
	struct git *s;
	check_fn *fn;
	void *ctx;
	struct arena a;
};

static void check_bad(struct report *r, const struct git_head *h)
{
	if (h->fault.n)
		r->fn(r->ctx, CHECK_BAD, "records", h->fault,
		      arena_printf(&r->a, "repair the file on the branch %s", r->s->only));
	else
		r->fn(r->ctx, CHECK_BAD, "records",
		      arena_printf(&r->a, "%.*s: commit %s is not a record of pawl", STRF(h->key),
				   git_hex(&r->a, &h->oid).p),
		      arena_printf(
			      &r->a,
			      "to remove it: git -C %s update-ref -d %s%s; to restore an earlier "
			      "commit: git update-ref REF COMMIT",
			      store_word(&r->a, str_c(r->s->remote)).p, r->s->prefix,
			      git_ref_of(&r->a, h->key).p));
}

static void check_queue(struct report *r)
{
	const struct git_view *v = &r->s->view;
	int64_t n = 0;
	size_t bad = 0;

	for (int i = 0; i < 16; i++)
		n += v->q.counts[i];
	r->fn(r->ctx, CHECK_OK, "store",
	      r->s->only ? arena_printf(&r->a, "%s, branch %s, %lld task%s", r->s->remote,
					r->s->only, (long long)n, n == 1 ? "" : "s")
			 : arena_printf(&r->a, "%s, %lld task%s, %zu with a ref of their own",
					r->s->remote, (long long)n, n == 1 ? "" : "s", v->n_refs),
	      STR(""));
	for (size_t i = 0; i < v->n; i++) {
		if (!v->heads[i]->bad)
			continue;
		bad++;
		check_bad(r, v->heads[i]);
	}
	if (v->n_strange)
		r->fn(r->ctx, CHECK_NOTE, "refs",
		      arena_printf(&r->a,
				   "%zu refs below %st/ do not have a name that pawl would give "
				   "them, and are ignored",
				   v->n_strange, r->s->prefix),
		      arena_printf(&r->a, "to list them: git ls-remote %s",
				   store_word(&r->a, str_c(r->s->remote)).p));
	if (!bad)
		r->fn(r->ctx, CHECK_OK, "records", STR("every record can be read"), STR(""));
	if (v->n_pending)
		r->fn(r->ctx, CHECK_NOTE, "changes",
		      arena_printf(&r->a, "%zu refs belong to an interrupted change", v->n_pending),
		      STR("the next change finishes it"));
	else
		r->fn(r->ctx, CHECK_OK, "changes", STR("every change is complete"), STR(""));
}

/* Counts one of the 256 folders and estimates the total from it. */
static void check_loose(struct report *r)
{
	DIR *d = opendir(fs_join(&r->a, str_c(r->s->dir), STR("objects/17")));
	int64_t n = 0;

	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	if (n * 256 > LOOSE_MANY)
		r->fn(r->ctx, CHECK_NOTE, "objects",
		      arena_printf(&r->a, "about %lld objects are loose files", (long long)n * 256),
		      arena_printf(&r->a, "git -C %s gc",
				   store_word(&r->a, str_c(r->s->remote)).p));
}

int git_check(struct store *base, check_fn *fn, void *ctx)
{
	struct report r = { .s = git_of(base), .fn = fn, .ctx = ctx };
	int rc;

	git_memo_doubt(r.s);
	rc = git_refresh(r.s);
	if (rc > 0)
		rc = git_absent(r.s);
	if (rc == 0)
		check_queue(&r);
	if (rc == 0 && r.s->dir) {
		git_stale_check(r.s, fn, ctx);
		check_loose(&r);
	}
	arena_free(&r.a);
	return rc;
}

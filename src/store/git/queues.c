/* Lists the queues of the repository: each has a base, PREFIX/NAME/base. */
#include <stdlib.h>

#include "store/git/git.h"
#include "store/git/transport/run.h"

struct naming {
	struct git *s;
	struct str before; /* "refs/pawl/" */
	name_fn *fn;
	void *ctx;
};

/* Reports NAME for a ref of the form BEFORE/NAME/base. */
static void see_ref(const struct naming *n, struct str ref)
{
	struct arena a = { 0 };
	struct str name;

	if (str_cut_prefix(&ref, n->before) && str_ends(ref, STR("/base"))) {
		ref.n -= strlen("/base");
		if (!memchr(ref.p, '/', ref.n) && git_unname(&a, ref, &name))
			n->fn(n->ctx, name);
	}
	arena_free(&a);
}

static int names_here(const struct naming *n, struct arena *a)
{
	git_reference_iterator *it = NULL;
	const char *name;
	int rc = git_reference_iterator_glob_new(&it, n->s->repo,
						 arena_printf(a, "%.*s*/base", STRF(n->before)).p);

	while (rc == 0 && (rc = git_reference_next_name(&name, it)) == 0)
		see_ref(n, str_c(name));
	git_reference_iterator_free(it);
	return rc == GIT_ITEROVER ? 0 : git_fail(n->s, STORE_IO, "cannot read its refs");
}

/* Each line is "OID<tab>REF". */
static int names_there(const struct naming *n)
{
	struct git_args g;
	struct str text = { 0 };
	int rc;

	git_args_begin(&g, n->s->local, "ls-remote");
	git_arg(&g, STR("--refs"));
	git_arg(&g, STR("--end-of-options"));
	git_arg(&g, str_c(n->s->url));
	git_arg(&g, arena_printf(&g.a, "%.*s*/base", STRF(n->before)));
	rc = git_run(&g, n->s->base.env.opt.timeout_ms, &text);
	while (rc == 0 && text.n) {
		struct str line = str_cut(&text, '\n');

		(void)str_cut(&line, '\t');
		see_ref(n, line);
	}
	git_args_free(&g);
	return rc ? store_fail(&n->s->base.env, STORE_UNREACHABLE,
			       "to see git's own message: git ls-remote REMOTE", "cannot reach %s",
			       n->s->remote)
		  : 0;
}

int git_queues(struct store *base, name_fn *fn, void *ctx)
{
	struct git *s = git_of(base);
	struct arena a = { 0 };
	struct naming n = { s, str_c(s->prefix), fn, ctx };
	int rc;

	n.before.n--;
	while (n.before.n && n.before.p[n.before.n - 1] != '/')
		n.before.n--;
	rc = s->transport == &git_transport_path ? names_here(&n, &a) : names_there(&n);
	arena_free(&a);
	return rc;
}

#include "cmd/plan.h"

#include <string.h>

#include "cmd/data.h"
#include "core/typed.h"
#include "format/markdown_plan.h"

/* create --file: the open items of a plan as requests, in the order of the file. */
struct planned {
	struct session *s;
	const char *path;
	struct request *rqs;
	size_t *under, *lines;
	size_t n;
};

static enum result fault_at(struct planned *p, size_t line, struct str text, struct reply *out)
{
	return run_fail(USAGE, arena_printf(p->s->arena, "%s:%zu: %.*s", p->path, line, STRF(text)),
			STR("nothing was created"), out);
}

static const char *plan_misuse(const struct request *rq)
{
	if (HAS(rq, title) || HAS(rq, description))
		return "--file has the titles and descriptions: they cannot be given as well";
	if (HAS(rq, id) || HAS(rq, if_absent) || HAS(rq, request_id))
		return "--file makes several tasks: --id, --if-absent and --request-id are for one";
	return NULL;
}

/* The other options apply to every item, and --parent to the items that are not inside another one. */
static void add_item(struct planned *p, const struct request *common, const struct plan_item *item,
		     size_t under)
{
	struct request rq = *common;

	GIVE(&rq, title, item->title);
	if (item->description.n)
		GIVE(&rq, description, item->description);
	if (under)
		rq.parent = STR(""), rq.has &= ~(UINT64_C(1) << ARG_parent);
	GIVE(&rq, part_of, TYPED_BATCH);
	p->rqs[p->n] = rq;
	p->under[p->n] = under;
	p->lines[p->n] = item->line;
	p->n++;
}

static void add_items(struct planned *p, const struct request *common, const struct plan *plan,
		      struct reply *out)
{
	struct arena *a = p->s->arena;
	size_t *place = arena_array(a, size_t, plan->n + 1); /* 1 + the index of its request */

	p->rqs = arena_array(a, struct request, plan->n + 1);
	p->under = arena_array(a, size_t, plan->n + 1);
	p->lines = arena_array(a, size_t, plan->n + 1);
	for (size_t i = 0; i < plan->n; i++) {
		const struct plan_item *item = &plan->items[i];

		if (item->done) {
			reply_warn(out,
				   arena_printf(
					   a, "%s:%zu: skipped, because it is marked as done: %.*s",
					   p->path, item->line, STRF(item->title)),
				   a);
			continue;
		}
		add_item(p, common, item, item->under ? place[item->under - 1] : 0);
		place[i] = p->n;
	}
}

static enum result create_all(struct planned *p, struct reply *out)
{
	struct answer *answers = arena_array(p->s->arena, struct answer, p->n);
	size_t bad = client_call_all(&p->s->client, p->rqs, p->under, answers, p->n);
	json_t *results = json_array();
	struct answer ans = { 0 };

	for (size_t i = 0; bad == p->n && i < p->n; i++)
		json_array_append_new(results, data_item(&p->rqs[i], &answers[i]));
	if (bad < p->n) {
		ans = answers[bad];
		ans.task = NULL;
		if (ans.code != API_ERROR)
			ans.message = arena_printf(p->s->arena, "%s:%zu: %.*s; nothing was created",
						   p->path, p->lines[bad], STRF(ans.message));
	}
	out->ans = ans;
	json_object_set_new(reply_more(out), "results", results);
	return ans.code;
}

enum result plan_create(struct session *s, const struct request *common, struct str file,
			struct reply *out)
{
	struct planned p = { .s = s, .path = data_path(s, file) };
	const char *fault = plan_misuse(common);
	struct yaml_fault wrong;
	struct plan plan;
	struct str text;
	int r;

	if (fault)
		return run_fail(USAGE, str_c(fault), STR("run `pawl help create`"), out);
	r = data_read(s, p.path, &text);
	if (r)
		return run_fail(API_ERROR, arena_printf(s->arena, "%s: %s", p.path, strerror(-r)),
				STR(""), out);
	if (plan_read(text, &plan, &wrong, s->arena))
		return fault_at(&p, wrong.line, wrong.text, out);
	add_items(&p, common, &plan, out);
	if (!p.n)
		return run_fail(USAGE,
				arena_printf(s->arena, "%s has no open item of a list", p.path),
				STR("write each task as an item: - [ ] Fix the parser"), out);
	return create_all(&p, out);
}

/*
 * pawl list: people get the open tasks by status, programs get every task in the order of creation.
 * find, tree and graph use list_command() and list_tell(), too.
 */
#include "base/when.h"
#include "cmd/cmd.h"

struct list_args {
	struct args args;
	int64_t all, ready, waiting, mine;
	struct str sort;
	bool open; /* set by list_ask(): show only open tasks, because the caller named no status */
};

/* clang-format off */
static const struct param params[] = {
	PARAM(statuses, "status", P_STATUSES, .letter = 's',
	      .help = "list only tasks with this status; may be repeated or listed with commas",
	      .model = "only these statuses"),
	LOCAL(list, all, "all", P_FLAG, .flags = P_SELDOM, .help = "list ended and archived tasks as well"),
	LOCAL(list, ready, "ready", P_FLAG, .flags = P_SELDOM, .help = "list Ready tasks that are eligible now"),
	LOCAL(list, waiting, "waiting", P_FLAG, .flags = P_SELDOM,
	      .help = "list Ready tasks that wait for a task, a lock or a date"),
	LOCAL(list, mine, "mine", P_FLAG, .flags = P_SELDOM,
	      .help = "list only tasks that you hold or that are assigned to you"),
	PARAM(holder, "holder", P_NAME, .flags = P_SELDOM, .help = "list only tasks that this agent holds"),
	PARAM(labels, "label", P_NAMES, .letter = 'l',
	      .help = "list only tasks with this label; of several, a task must have all",
	      .model = "only with all of these labels"),
	PARAM(remove_labels, "not-label", P_NAMES, .flags = P_SELDOM, .help = "leave out tasks with this label"),
	PARAM(class_rank, "class", P_CLASS, .letter = 'c', .flags = P_SELDOM, .help = "list only tasks of this class"),
	PARAM(type, "type", P_NAME, .flags = P_SELDOM, .help = "list only tasks of this type"),
	PARAM(parent, "parent", P_ID, .help = "list only sub-tasks of this task", .model = "only its sub-tasks"),
	PARAM(text, "text", P_TEXT, .flags = P_FILLED,
	      .help = "list only tasks with this text in a field",
	      .model = "only with this text in a field"),
	PARAM(due, "due", P_DATE, .flags = P_SELDOM, .help = "list only tasks that are due by this date"),
	PARAM(changed_since, "since", P_TIME, .flags = P_SELDOM, .help = "list only tasks that changed since this time"),
	LOCAL(list, sort, "sort", P_CHOICE, .flags = P_SELDOM,
	      .choices = "offer id created updated due priority title status",
	      .help = "order of the list, without groups"),
	PARAM(limit, "limit", P_INT, .letter = 'n', .def = "100", .flags = P_SELDOM,
	      .help = "show at most N tasks (0 = no limit)",
	      .model = "at most N tasks"),
	PARAM_CACHED,
	{ 0 }
};
/* clang-format on */

static enum result list_ask(struct session *s, struct args *args, struct reply *out);
static void list_tell_answer(struct session *s, const struct args *args, struct reply *out);

const struct command cmd_list = {
	.name = "list",
	.group = "look",
	.summary = "list the open tasks of the queue in a table",
	.detail =
		"Tasks appear by status, and for each status in the order in which `next` would offer them; a status with "
		"more than 10,000 tasks appears in the order of creation. Done and Canceled tasks appear only with --all or "
		"--status, archived ones only with --all. A task must match all filters. With -q pawl prints only the ids, "
		"one per line. With --json and --porcelain the list has every task, in the order of creation. With -q and "
		"--porcelain it has no limit unless you give --limit.",
	.example = "pawl list\n"
		   "pawl list --label bug,ui --not-label later --sort due\n"
		   "pawl list --status done --since 2026-02-01\n"
		   "pawl list --holder alice --json",
	.see = "find, show, tree, status, next",
	.model =
		"List or search tasks: text=WORD finds ids and duplicates. A page has up to 50; more says how "
		"to get the next page.",
	.gives = "tasks count total as_of cached_age_ms",
	.params = params,
	.args_size = sizeof(struct list_args),
	.flags = C_IDEMPOTENT,
	.op = OP_LIST,
	.ask = list_ask,
	.tell = list_tell_answer,
	.show = show_tasks,
};

#define FILTERS                                                    \
	((UINT64_C(1) << (sizeof(params) / sizeof(*params) - 4)) - \
	 1)                             /* the parameters before sort, limit, cached */
#define NARROW (FILTERS & ~UINT64_C(2)) /* all but --all */

static enum sort sort_of(struct str name)
{
	static const char *const names[SORT_END] = { "offer", "id",       "created", "updated",
						     "due",   "priority", "title",   "status" };

	for (int i = SORT_OFFER; i < SORT_END; i++)
		if (str_is(name, names[i]))
			return (enum sort)i;
	return SORT_CREATED;
}

static int64_t asked_view(const struct list_args *a)
{
	return (a->ready ? VIEW_READY : 0) | (a->waiting ? VIEW_WAITING : 0) |
	       (a->mine ? VIEW_MINE : 0) | (a->all ? VIEW_ARCHIVED : 0);
}

/* A program gets every task, in the order of creation, unless it asks for another view. */
static void ask_for_program(struct list_args *a)
{
	struct request *rq = &a->args.rq;
	bool plain = !asked_view(a) && !a->sort.n && rq->labels.n < 2 && !rq->remove_labels.n &&
		     !rq->due && !rq->changed_since;

	if (plain && rq->labels.n)
		GIVE(rq, label, rq->labels.v[0]);
	else if (!plain)
		GIVE(rq, view,
		     asked_view(a) | VIEW_ARCHIVED |
			     VIEW_SORT(!a->sort.n && a->ready ? SORT_OFFER : sort_of(a->sort)));
}

static bool is_open(const struct list_args *a)
{
	return !a->all && !a->args.rq.statuses && !a->ready && !a->waiting;
}

static void ask_for_people(struct list_args *a)
{
	struct request *rq = &a->args.rq;

	if (is_open(a))
		GIVE(rq, statuses, STATUS_OPEN);
	if (a->sort.n)
		GIVE(rq, view, asked_view(a) | VIEW_SORT(sort_of(a->sort)) | VIEW_PEOPLE);
	else
		GIVE(rq, view, asked_view(a) | VIEW_GROUPS);
}

/* --- the call as one would type it -------------------------------------------------------------------- */

static void add_list(struct buf *b, struct strs list, struct arena *a)
{
	for (size_t i = 0; i < list.n; i++) {
		buf_adds(b, i ? STR(",") : STR(""));
		buf_adds(b, store_word(a, list.v[i]));
	}
}

static void add_statuses(struct buf *b, int64_t set)
{
	const char *between = "";

	for (int s = BACKLOG; s < STATUS_END; s++) {
		if (!(set & STATUS_BIT(s)))
			continue;
		buf_adds(b, str_c(between));
		for (const char *c = status_name(s); *c; c++)
			buf_addc(b, *c == ' ' ? '-' : *c);
		between = ",";
	}
}

static void add_value(struct buf *b, const struct param *p, const void *at, struct arena *a)
{
	int64_t n = p->type == P_STATUSES || p->type == P_CLASS || p->type == P_TIME ||
				    p->type == P_DATE
			    ? *(const int64_t *)at
			    : 0;

	if (p->type == P_STATUSES)
		add_statuses(b, n);
	else if (p->type == P_NAMES)
		add_list(b, *(const struct strs *)at, a);
	else if (p->type == P_CLASS)
		buf_adds(b, store_word(a, str_c(class_name(n))));
	else if (p->type == P_TIME || p->type == P_DATE)
		buf_adds(b, when_text(a, n));
	else
		buf_adds(b, store_word(a, *(const struct str *)at));
}

struct str list_command(const struct command *c, const struct args *args, const char *leave_out,
			struct arena *a)
{
	struct buf b = BUF_MAX(1 << 20);
	struct str out;

	buf_addf(&b, "pawl %s", c->name);
	for (const struct param *p = c->params; p->name; p++) {
		if (!(args->seen >> (p - c->params) & 1) || p->type == P_INT ||
		    !strcmp(p->name, leave_out))
			continue;
		buf_addc(&b, ' ');
		if (!(p->flags & P_POSITIONAL))
			buf_addf(&b, "--%s", p->name);
		if (p->type == P_FLAG)
			continue;
		if (!(p->flags & P_POSITIONAL))
			buf_addc(&b, ' ');
		add_value(&b, p, (const char *)args + p->offset, a);
	}
	out = arena_str(a, buf_str(&b));
	buf_free(&b);
	return out;
}

void list_tell(struct session *s, const struct command *c, const struct args *a,
	       struct list_shown shown, struct reply *out)
{
	struct list_shown *own = arena_new(s->arena, struct list_shown);

	*own = shown;
	own->command = list_command(c, a, "", s->arena);
	own->all = arena_printf(s->arena, "%.*s --all", STRF(own->command));
	out->own = own;
}

static enum result list_ask(struct session *s, struct args *args, struct reply *out)
{
	struct list_args *a = (struct list_args *)args;

	(void)out;
	a->open = is_open(a);
	if (!HAS(&args->rq, limit))
		GIVE(&args->rq, limit, s->complete ? 0 : 100);
	if (a->mine && !HAS(&args->rq, agent))
		GIVE(&args->rq, agent, s->client.self.agent);
	if (s->people)
		ask_for_people(a);
	else
		ask_for_program(a);
	if (s->decisions)
		GIVE(&args->rq, view, args->rq.view | VIEW_CAN);
	return SUCCESS;
}

static void list_tell_answer(struct session *s, const struct args *args, struct reply *out)
{
	const struct list_args *a = (const struct list_args *)args;
	struct list_shown shown = { .open = a->open,
				    .filtered = args->seen & NARROW,
				    .archived = a->all };

	list_tell(s, &cmd_list, args, shown, out);
	if (out->ans.code == SUCCESS && !shown.filtered && !out->ans.total && !out->ans.ended)
		json_object_set_new(reply_more(out), "hint",
				    json_string("to create one: pawl create TITLE"));
}

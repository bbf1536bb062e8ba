/*
 * Checks the properties of the database, and adds missing ones with --add-options. A property of
 * the wrong type is never changed.
 */
#include <stdlib.h>

#include "base/os.h"
#include "base/when.h"
#include "core/lease.h"
#include "sync/notion/notion.h"

const struct notion_field_info notion_fields[F_END] = {
	[F_TITLE] = { "title", "Task name", "title", BY_PEOPLE, true },
	[F_BODY] = { "body", NULL, NULL, BY_PEOPLE, false },
	[F_STATUS] = { "status", "Status", "status", BY_STATUS, true },
	[F_PRIORITY] = { "priority", "Priority", "number", BY_PEOPLE, true },
	[F_CLASS] = { "class", "Class", "select", BY_PEOPLE, true },
	[F_DUE] = { "due", "Due", "date", BY_PEOPLE, false },
	[F_PARENT] = { "parent", "Parent-task", "relation", BY_PEOPLE, false },
	[F_RUN] = { "run", "Agent Run", "rich_text", BY_PAWL, true },
	[F_TOKEN] = { "lock", "Lock Token", "rich_text", BY_PAWL, true },
	[F_EXPIRES] = { "expires", "Lock Expires", "date", BY_PAWL, true },
	[F_ASSIGNEE] = { "assignee", "Assignee", "people", BY_PAWL, false },
	[F_REASON] = { "reason", "Blocker Reason", "rich_text", BY_PAWL, false },
	[F_ACTION] = { "action", "Unblock Action", "rich_text", BY_PAWL, false },
	[F_SUMMARY] = { "summary", "Summary", "rich_text", BY_PAWL, false },
	[F_STARTED] = { "started", "Started At", "date", BY_PAWL, false },
	[F_DONE] = { "done", "Done At", "date", BY_PAWL, false },
	[F_ID] = { "id", "Pawl ID", "rich_text", BY_PAWL, true },
};

struct schema {
	struct notion *n;
	json_t *properties; /* of the database */
	json_t *add;        /* properties and options that --add-options adds */
	struct str lacks;   /* separated by "; " */
};

static bool is_hex(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* The 32 digits at the end of the last part of the path. */
struct str notion_id(struct arena *a, struct str text)
{
	char *out = arena_alloc(a, 37);
	char digits[32];
	size_t n = 0;

	text = str_cut(&text, '?');
	for (size_t i = text.n; i > 0 && n < 32; i--) {
		char c = text.p[i - 1];

		if (is_hex(c))
			digits[31 - n++] = c;
		else if (c != '-')
			break;
	}
	if (n < 32)
		return STR("");
	for (size_t i = 0, at = 0; i < 32; i++) {
		if (i == 8 || i == 12 || i == 16 || i == 20)
			out[at++] = '-';
		out[at++] = (char)(digits[i] >= 'A' && digits[i] <= 'F' ? digits[i] | 0x20
									: digits[i]);
	}
	return str_n(out, 36);
}

static void notion_schema_lack(struct schema *s, struct str what)
{
	struct arena *a = s->n->arena;

	s->lacks = s->lacks.n ? arena_printf(a, "%.*s; %.*s", STRF(s->lacks), STRF(what)) : what;
}

static const char *option_name(enum notion_field f, int i)
{
	if (f == F_STATUS)
		return i + BACKLOG < STATUS_END ? status_name(i + BACKLOG) : NULL;
	return f == F_CLASS && i + EXPEDITE < CLASS_END ? class_name(i + EXPEDITE) : NULL;
}

static bool has_option(const json_t *options, const char *name)
{
	const json_t *o;
	size_t i;

	json_array_foreach(options, i, o) {
		if (json_is_string(json_object_get(o, "name")) &&
		    !strcmp(json_string_value(json_object_get(o, "name")), name))
			return true;
	}
	return false;
}

/* A request that adds options must name the existing ones, too. */
static json_t *all_options(const json_t *old)
{
	json_t *out = json_array();
	const json_t *o;
	size_t i;

	json_array_foreach(old, i, o) {
		json_array_append_new(out, json_pack("{s:O}", "name", json_object_get(o, "name")));
	}
	return out;
}

static void check_options(struct schema *s, enum notion_field f, const json_t *property)
{
	const struct notion_field_info *k = &notion_fields[f];
	json_t *old = json_object_get(json_object_get(property, k->type), "options");
	json_t *all = all_options(old);
	bool missing = false;

	for (int i = 0; option_name(f, i); i++) {
		if (has_option(old, option_name(f, i)))
			continue;
		missing = true;
		notion_schema_lack(s, arena_printf(s->n->arena, "%s has no option '%s'", k->name,
						   option_name(f, i)));
		json_array_append_new(all, json_pack("{s:s}", "name", option_name(f, i)));
	}
	if (missing)
		json_object_set_new(s->add, k->name,
				    json_pack("{s:{s:O}}", k->type, "options", all));
	json_decref(all);
}

/* A new property of this type, with its options. */
static json_t *new_property(enum notion_field f)
{
	json_t *options = json_array(), *inner = json_object();

	for (int i = 0; option_name(f, i); i++)
		json_array_append_new(options, json_pack("{s:s}", "name", option_name(f, i)));
	if (json_array_size(options))
		json_object_set(inner, "options", options);
	json_decref(options);
	return json_pack("{s:o}", notion_fields[f].type, inner);
}

/* The name of the property of type title; people choose that name. */
static const char *title_of(const json_t *properties)
{
	const char *name;
	json_t *p;

	json_object_foreach((json_t *)properties, name, p) {
		const char *type = json_string_value(json_object_get(p, "type"));

		if (type && !strcmp(type, "title"))
			return name;
	}
	return NULL;
}

static void check_field(struct schema *s, enum notion_field f)
{
	const struct notion_field_info *k = &notion_fields[f];
	const char *name = f == F_TITLE ? title_of(s->properties) : k->name;
	const json_t *p = name ? json_object_get(s->properties, name) : NULL;
	const char *type = json_string_value(json_object_get(p, "type"));
	struct arena *a = s->n->arena;

	if (!name)
		return;
	s->n->names[f] = arena_cstr(a, str_c(name));
	s->n->known[f] = type && !strcmp(type, k->type);
	if (!p && k->needed) {
		notion_schema_lack(
			s, arena_printf(a, "there is no property '%s' (%s)", name, k->type));
		json_object_set_new(s->add, name, new_property(f));
	} else if (p && !s->n->known[f]) {
		struct str what = arena_printf(a, "the property '%s' is %s, not %s", name,
					       type ? type : "unknown", k->type);

		if (k->needed)
			notion_schema_lack(s, what);
		else
			notion_warn(s->n,
				    arena_printf(a, "%.*s: pawl leaves it alone", STRF(what)));
	} else if (p) {
		check_options(s, f, p);
	}
}

static enum result refuse_lack(struct schema *s)
{
	return notion_fail(
		s->n, MISCONFIGURED,
		arena_printf(s->n->arena, "the database cannot be used yet: %.*s", STRF(s->lacks)),
		STR("pawl sync notion:DATABASE --add-options adds properties and options; change "
		    "the type of a property in Notion"));
}

static bool can_add(const struct schema *s)
{
	for (int f = 0; f < F_END; f++)
		if (notion_fields[f].needed && !s->n->known[f] &&
		    !json_object_get(s->add, notion_fields[f].name))
			return false;
	return true;
}

static enum result check_all(struct schema *s, const char *target)
{
	struct notion *n = s->n;
	enum result code;

	for (int f = 0; f < F_END; f++)
		if (notion_fields[f].name)
			check_field(s, (enum notion_field)f);
	n->known[F_BODY] = true;
	code = notion_owner_read(n, s->properties);
	if (code != SUCCESS || !s->lacks.n)
		return code;
	if (!n->job->add_options || !can_add(s))
		return refuse_lack(s);
	notion_change(n, STR("database"), "", s->lacks);
	if (n->job->check)
		return SUCCESS;
	code = notion_ask(n, "PATCH", target, json_pack("{s:O}", "properties", s->add), false,
			  NULL);
	for (int f = 0; code == SUCCESS && f < F_END; f++)
		n->known[f] |= notion_fields[f].needed;
	return code;
}

static struct str id_of(struct notion *n, const json_t *o)
{
	const char *id = json_string_value(json_object_get(o, "id"));

	return notion_id(n->arena, str_c(id));
}

static enum result notion_schema_odd(struct notion *n, const char *what)
{
	return notion_fail(n, API_ERROR,
			   arena_printf(n->arena, "Notion's answer about %s cannot be read", what),
			   STR("run the same command again"));
}

enum result notion_schema(struct notion *n, struct str database)
{
	struct schema s = { .n = n };
	json_t *o = NULL;
	const char *target;
	enum result code = notion_ask(n, "GET", "/v1/users/me", NULL, false, &o);

	if (code != SUCCESS)
		return code;
	n->bot = id_of(n, o);
	json_decref(o);
	code = notion_ask(n, "GET", arena_printf(n->arena, "/v1/databases/%.*s", STRF(database)).p,
			  NULL, false, &o);
	if (code != SUCCESS)
		return code;
	n->source = id_of(n, json_array_get(json_object_get(o, "data_sources"), 0));
	json_decref(o);
	if (!n->source.n || !n->bot.n)
		return notion_schema_odd(n, "the database");
	target = arena_printf(n->arena, "/v1/data_sources/%.*s", STRF(n->source)).p;
	code = notion_ask(n, "GET", target, NULL, false, &o);
	if (code != SUCCESS)
		return code;
	s.properties = json_object_get(o, "properties");
	s.add = json_object();
	code = json_is_object(s.properties) ? check_all(&s, target)
					    : notion_schema_odd(n, "the database");
	json_decref(s.add);
	json_decref(o);
	return code;
}

/* --- task ------------------------------------------------------------------------------------- */

/*
 * The tasks of the queue, as the sync sees them: calls to the queue, and the values of a task in
 * the form that notion_item.c compares.
 */

/* Did the queue decide? A fault concerns the store or its server, not the change. "forbidden", for
 * a role that may not make this call, is a decision like any other. */
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
	r->n->status = 0; /* the reason is not an answer from Notion */
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

/* Does an agent hold the task in the queue? The lock that represents another program's lock does
 * not count. */
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

/* Sets the parent only if its page exists, because a page can only name a page. */
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

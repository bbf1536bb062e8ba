/*
 * The resources pawl://tasks/{id} and pawl://board, and subscriptions to their changes. The first
 * subscription sets the cursor, so earlier events are not reported.
 */
#include "base/os.h"
#include "base/when.h"
#include "core/lease.h"
#include "face/mcp/mcp.h"
#include "format/answer_form.h"

#define BOARD "pawl://board"
#define TASKS "pawl://tasks/"
#define COLUMN 20 /* tasks of each status on the board */
#define SUBSCRIPTIONS_MAX 64
#define URIS_MAX 1000

struct subscription {
	struct subscription *next;
	json_t *id; /* the id of the request that opened it; NULL: resources/subscribe */
	void *via;  /* the exchange of that request */
	json_t *uris;
};

/* The id in a task's URI; empty: the URI does not name a task. */
static struct str task_of(struct str uri)
{
	if (!str_cut_prefix(&uri, STR(TASKS)) || id_fault(uri))
		return STR("");
	return uri;
}

static bool mcp_resources_known(struct str uri)
{
	return str_is(uri, BOARD) || task_of(uri).n;
}

void resources_list(struct mcp_call *c)
{
	mcp_reply_kept(
		c,
		json_pack(
			"{s:[{s:s, s:s, s:s, s:s, s:s}]}", "resources", "uri", BOARD, "name",
			"board", "title", "The board", "description",
			"The number of tasks in each status, the first of each, the holders and the ends of their leases",
			"mimeType", "application/json"),
		FOR_HOURS);
}

void resources_templates(struct mcp_call *c)
{
	mcp_reply_kept(c,
		       json_pack("{s:[{s:s, s:s, s:s, s:s, s:s}]}", "resourceTemplates",
				 "uriTemplate", TASKS "{id}", "name", "task", "title", "A task",
				 "description", "Everything about one task, with its comments",
				 "mimeType", "application/json"),
		       FOR_HOURS);
}

/* --- reading -------------------------------------------------------------------------------------- */

static json_t *mcp_resources_card(const struct task *t, int64_t now, struct arena *a)
{
	const struct lock *l = &t->lock;
	json_t *o = json_pack("{s:o, s:o, s:s, s:I}", "id", json_str(t->id), "title",
			      json_str(t->title), "class", class_name(t->class_rank), "priority",
			      (json_int_t)t->priority);

	if (lease_live(l, now))
		json_object_set_new(o, "holder", json_str(l->holder));
	if (lease_live(l, now) && l->expires_at)
		json_object_set_new(o, "expires_at", json_str(when_text(a, l->expires_at)));
	return o;
}

static json_t *mcp_resources_column(struct mcp *m, int status, struct arena *a)
{
	struct request rq = { .op = OP_LIST };
	struct answer ans = { 0 };
	json_t *list = json_array();

	GIVE(&rq, statuses, (int64_t)STATUS_BIT(status));
	GIVE(&rq, limit, COLUMN);
	mcp_ask(m, &rq, &ans, a);
	for (size_t i = 0; ans.code == SUCCESS && i < ans.n_tasks; i++)
		json_array_append_new(list, mcp_resources_card(&ans.tasks[i], ans.now, a));
	return list;
}

static json_t *mcp_resources_board(struct mcp *m, struct answer *ans, struct arena *a)
{
	struct request rq = { .op = OP_OVERVIEW };
	json_t *o, *columns = json_object();

	mcp_ask(m, &rq, ans, a);
	o = answer_json(ans, a);
	for (int s = BACKLOG; ans->code == SUCCESS && s < STATUS_END; s++)
		if (ans->counts[s] && !status_ended(s))
			json_object_set_new(columns, status_name(s), mcp_resources_column(m, s, a));
	json_object_set_new(o, "columns", columns);
	return o;
}

static void not_there(const struct mcp_call *c, struct str uri, struct str why)
{
	mcp_fail(c, c->modern ? RPC_PARAMS : RPC_NO_RESOURCE, why,
		 json_pack("{s:o}", "uri", json_str(uri)));
}

static void read_uri(const struct mcp_call *c, struct str uri, struct arena *a)
{
	struct answer ans = { 0 };
	json_t *o;
	char *text;

	if (str_is(uri, BOARD))
		o = mcp_resources_board(c->m, &ans, a);
	else
		o = mcp_show(c->m, task_of(uri), 0, &ans, a) ? answer_json(&ans, a) : NULL;
	if (ans.code != SUCCESS) {
		if (ans.code == NOT_FOUND)
			not_there(c, uri, ans.message);
		else
			mcp_fail(c, RPC_INTERNAL, ans.message, NULL);
		json_decref(o);
		return;
	}
	brief_mark(o, &ans);
	text = json_dumps(o, JSON_INDENT(1));
	mcp_reply_kept(c,
		       json_pack("{s:[{s:o, s:s, s:s}]}", "contents", "uri", json_str(uri),
				 "mimeType", "application/json", "text", text),
		       0);
	free(text);
	json_decref(o);
}

void resources_read(struct mcp_call *c)
{
	struct str uri = json_get(c->params, "uri");
	struct arena a = { .limit = CALL_ROOM, .pool = c->m->memory };

	if (!uri.n)
		mcp_fail(c, RPC_PARAMS, STR("resources/read needs a uri"), NULL);
	else if (!mcp_resources_known(uri))
		not_there(c, uri,
			  STR("this resource does not exist; there are " BOARD " and " TASKS "ID"));
	else
		read_uri(c, uri, &a);
	arena_free(&a);
}

/* --- subscriptions -------------------------------------------------------------------------------- */

/* Keeps the cursor of the last event. An expired lease is not in the log and has no cursor. */
static void keep_cursor(struct mcp *m, const struct answer *ans)
{
	for (size_t i = ans->n_events; i > 0; i--)
		if (ans->events[i - 1].cursor.n) {
			m->cursor.n = 0;
			buf_adds(&m->cursor, ans->events[i - 1].cursor);
			return;
		}
}

#define NEWS 1000

/* Reads the log from the last event that subscribers know, and finds expired leases; false: the log
 * cannot be read now. */
static bool mcp_resources_news(struct mcp *m, bool last, struct answer *ans, struct arena *a)
{
	struct request rq = { .op = OP_LOG };

	GIVE(&rq, limit, last ? 1 : m->options.host ? NEWS : 0);
	if (!last && m->options.host) /* one page at a time: the news may exceed the memory */
		GIVE(&rq, log_view, LOG_PAGE);
	GIVE(&rq, expired_after, last ? WHEN_MAX : m->since);
	if (m->cursor.n)
		GIVE(&rq, after, buf_str(&m->cursor));
	mcp_ask(m, &rq, ans, a);
	if (ans->code != SUCCESS) {
		m->expiry_at = 0; /* the next successful read finds it */
		return false;
	}
	m->since = ans->now;
	m->expiry_at = ans->wait_ms ? os_boot_ms() + ans->wait_ms : 0;
	keep_cursor(m, ans);
	m->changed |= ans->more;
	return true;
}

static struct subscription *mcp_resources_find(struct mcp *m, const void *via, const json_t *id)
{
	for (struct subscription *s = m->subscriptions; s; s = s->next)
		if (id ? s->id && s->via == via && json_equal(s->id, id) : !s->id)
			return s;
	return NULL;
}

/* Opens a subscription. NULL: the limit is reached. */
static struct subscription *open_one(struct mcp *m, void *via, json_t *id)
{
	struct subscription *s;
	struct arena a = { 0 };
	struct answer ans;
	size_t n = 0;

	for (s = m->subscriptions; s; s = s->next)
		n++;
	if (n >= SUBSCRIPTIONS_MAX)
		return NULL;
	if (!n) { /* earlier events are not reported */
		m->cursor.n = 0;
		(void)mcp_resources_news(m, true, &ans, &a);
		m->checked = os_boot_ms();
		m->changed = true; /* a change may have happened while nobody was watching */
	}
	arena_free(&a);
	s = mem_alloc(sizeof(*s));
	*s = (struct subscription){ .next = m->subscriptions,
				    .id = id ? json_incref(id) : NULL,
				    .via = via,
				    .uris = json_array() };
	m->subscriptions = s;
	return s;
}

static void close_one(struct mcp *m, struct subscription *gone)
{
	struct subscription **at = &m->subscriptions;

	while (*at != gone)
		at = &(*at)->next;
	*at = gone->next;
	json_decref(gone->id);
	json_decref(gone->uris);
	free(gone);
}

static bool mcp_resources_wants(const struct subscription *s, struct str uri)
{
	const json_t *v;
	size_t i;

	json_array_foreach(s->uris, i, v)
		if (str_eq(json_text(v), uri))
			return true;
	return false;
}

void resources_subscribe(struct mcp_call *c)
{
	struct str uri = json_get(c->params, "uri");
	struct subscription *s = mcp_resources_find(c->m, NULL, NULL);

	if (!mcp_resources_known(uri)) {
		not_there(c, uri,
			  STR("this resource does not exist, so you cannot subscribe to it"));
		return;
	}
	if (!s)
		s = open_one(c->m, NULL, NULL);
	if (!s || json_array_size(s->uris) >= URIS_MAX) {
		mcp_fail(c, RPC_PARAMS, STR("there are too many subscriptions"), NULL);
		return;
	}
	if (!mcp_resources_wants(s, uri))
		json_array_append_new(s->uris, json_str(uri));
	mcp_reply(c, json_object());
}

void resources_unsubscribe(struct mcp_call *c)
{
	struct str uri = json_get(c->params, "uri");
	struct subscription *s = mcp_resources_find(c->m, NULL, NULL);

	for (size_t i = 0; s && i < json_array_size(s->uris); i++)
		if (str_eq(json_text(json_array_get(s->uris, i)), uri))
			json_array_remove(s->uris, i--);
	if (s && !json_array_size(s->uris))
		close_one(c->m, s);
	mcp_reply(c, json_object());
}

static json_t *mcp_resources_stamp(const struct subscription *s)
{
	return json_pack("{s:O}", "io.modelcontextprotocol/subscriptionId", s->id);
}

/* The reason why a stream cannot be opened; NULL: it can. */
static const char *no_listening(const struct mcp_call *c)
{
	const json_t *wanted = json_object_get(c->params, "notifications");

	if (c->m->batch) /* its exchange ends with the answers of the others */
		return "a subscription cannot be part of a batch";
	if (!json_is_object(wanted))
		return "subscriptions/listen needs notifications";
	if (mcp_resources_find(c->m, c->via, c->id))
		return "a subscription with this id is open already";
	if (json_array_size(json_object_get(wanted, "resourceSubscriptions")) > URIS_MAX)
		return "the request names too many resources";
	return NULL;
}

void subscriptions_listen(struct mcp_call *c)
{
	const char *no = no_listening(c);
	const json_t *uris = json_object_get(json_object_get(c->params, "notifications"),
					     "resourceSubscriptions"),
		     *v;
	struct subscription *s = no ? NULL : open_one(c->m, c->via, c->id);
	json_t *agreed;
	size_t i;

	if (!s) {
		mcp_fail(c, RPC_PARAMS, str_c(no ? no : "there are too many subscriptions"), NULL);
		return;
	}
	json_array_foreach(uris, i, v)
		if (mcp_resources_known(json_text(v)) && !mcp_resources_wants(s, json_text(v)))
			json_array_append_new(s->uris, json_str(json_text(v)));
	agreed = json_object();
	if (uris)
		json_object_set(agreed, "resourceSubscriptions", s->uris);
	mcp_notify(
		c->m, c->via, "notifications/subscriptions/acknowledged",
		json_pack("{s:o, s:o}", "_meta", mcp_resources_stamp(s), "notifications", agreed));
}

/* Did an event change the resource? */
static bool mcp_resources_touched(struct str uri, const struct answer *log)
{
	struct str id = task_of(uri);

	if (!id.n)
		return log->n_events > 0;
	for (size_t i = 0; i < log->n_events; i++)
		if (str_eq_nocase(log->events[i].task, id))
			return true;
	return false;
}

static void mcp_resources_tell(struct mcp *m, const struct subscription *s, struct str uri)
{
	json_t *params = json_pack("{s:o}", "uri", json_str(uri));

	if (s->id)
		json_object_set_new(params, "_meta", mcp_resources_stamp(s));
	mcp_notify(m, s->via, "notifications/resources/updated", params);
}

void subscriptions_check(struct mcp *m)
{
	struct arena a = { 0 };
	struct answer log;
	bool read = m->subscriptions && mcp_resources_news(m, false, &log, &a);
	const json_t *v;
	size_t i;

	for (const struct subscription *s = m->subscriptions; read && s; s = s->next)
		json_array_foreach(s->uris, i, v)
			if (mcp_resources_touched(json_text(v), &log))
				mcp_resources_tell(m, s, json_text(v));
	arena_free(&a);
}

void subscriptions_cancel(struct mcp *m, const json_t *id)
{
	struct subscription *s = mcp_resources_find(m, NULL, id);

	if (s)
		close_one(m, s);
}

static struct subscription *find_via(const struct mcp *m, const void *via)
{
	struct subscription *s = m->subscriptions;

	while (s && (!s->id || s->via != via))
		s = s->next;
	return s;
}

bool subscriptions_is_open(const struct mcp *m, const void *via)
{
	return find_via(m, via);
}

void subscriptions_gone(struct mcp *m, const void *via)
{
	struct subscription *s;

	while ((s = find_via(m, via)))
		close_one(m, s);
}

void subscriptions_end(struct mcp *m)
{
	while (m->subscriptions) {
		struct subscription *s = m->subscriptions;
		struct mcp_call c = { .m = m, .id = s->id, .modern = true, .via = s->via };

		if (s->id)
			mcp_reply(&c, json_pack("{s:o}", "_meta", mcp_resources_stamp(s)));
		close_one(m, s);
	}
}

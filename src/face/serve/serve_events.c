/*
 * One queue's live stream (text/event-stream): a snapshot, then each event of the log with its
 * cursor as id, and each lease that expires, which has no cursor. A reader that reconnects sends
 * Last-Event-ID and gets the events that it missed. If the cursor is not in the log, the reader
 * gets `reset` and a new snapshot. It may get an expired lease again.
 *
 * A queue and a log may be larger than the memory that one reader may use. So a snapshot and missed
 * events come in pages, and the worker reads the next page only when the peer has taken the one
 * before. Changes between two pages are in the events that follow. An event contains its task,
 * unless a later event of the same page does.
 *
 * A remote queue opens a stream without content. It gets a line whenever something has changed, and
 * one at the start, because a change may have come just before.
 */
#include <stdlib.h>

#include "base/os.h"
#include "base/when.h"
#include "face/serve/serve.h"
#include "format/answer_form.h"
#include "format/json.h"
#include "format/record_form.h"

#define PING STR(": \n\n")
#define CHANGE STR("event: change\ndata: {}\n\n")
#define PAGE_TASKS 500
#define PAGE_EVENTS 200
#define PAGE_MAX ((size_t)1 << 20) /* an event that begins after this is for the next page */

static void add_message(struct buf *out, struct str id, const char *event, json_t *data)
{
	if (id.n)
		buf_addf(out, "id: %.*s\n", STRF(id));
	buf_addf(out, "event: %s\ndata: ", event);
	json_write(data, out);
	buf_adds(out, STR("\n\n"));
	json_decref(data);
}

static enum result events_ask(struct worker *d, struct request *rq, struct answer *ans,
			      struct arena *a)
{
	queue_call(d->session.client.conn.queue, rq, ans, a);
	return ans->code;
}

static void set_cursor(struct job *j, struct str cursor)
{
	j->after.n = 0;
	buf_adds(&j->after, cursor);
}

/* The cursor of the newest event in the log; empty: the log has no events. */
static enum result events_newest(struct worker *d, struct str *cursor, struct answer *ans,
				 struct arena *a)
{
	struct request rq = { .op = OP_LOG };

	*cursor = STR("");
	GIVE(&rq, limit, 1);
	if (events_ask(d, &rq, ans, a) == SUCCESS && ans->n_events)
		*cursor = ans->events[ans->n_events - 1].cursor;
	return ans->code;
}

/* Is the last task of the previous page gone? Then the store cannot say which tasks come after
 * it. */
static bool anchor_is_gone(struct worker *d, const struct job *j)
{
	struct request rq = { .op = OP_SHOW };
	struct arena a = answers_arena(j, READ_ROOM);
	struct answer ans = { 0 };
	bool gone;

	GIVE(&rq, id, buf_str(&j->page));
	gone = events_ask(d, &rq, &ans, &a) == NOT_FOUND;
	arena_free(&a);
	return gone;
}

static void add_reset(struct job *j)
{
	add_message(&j->answer, STR(""), "reset", json_object());
	j->page.n = j->after.n = 0;
	j->pages = 0;
}

static json_t *page_json(const struct job *j, const struct answer *ans, struct arena *a)
{
	json_t *tasks = json_array(), *o;

	for (size_t i = 0; i < ans->n_tasks; i++)
		json_array_append_new(tasks, answer_task_json(ans, &ans->tasks[i], a));
	o = json_pack("{s:o, s:I}", "tasks", tasks, "total", (json_int_t)ans->total);
	if (j->pages || ans->more) {
		json_object_set_new(o, "page", json_integer((json_int_t)j->pages));
		json_object_set_new(o, "more", json_boolean(ans->more));
	}
	return o;
}

/* Adds one page of the snapshot. The first page finds the cursor, so every later event is sent,
 * even if a page already shows its change. Only the last page has the cursor as its id, so a peer
 * that lost a page begins again. */
static enum result add_snapshot(struct worker *d, struct job *j, struct answer *ans,
				struct arena *a)
{
	struct request rq = { .op = OP_LIST, .role = j->caller.role };
	struct str cursor;

	if (!j->pages) {
		if (events_newest(d, &cursor, ans, a) != SUCCESS)
			return ans->code;
		set_cursor(j, cursor);
	}
	GIVE(&rq, limit, PAGE_TASKS);
	GIVE(&rq, view, VIEW_CAN);
	GIVE(&rq, after, arena_str(a, buf_str(&j->page)));
	if (events_ask(d, &rq, ans, a) != SUCCESS)
		return ans->code;
	if (j->pages && !ans->n_tasks && anchor_is_gone(d, j)) {
		add_reset(j);
		return add_snapshot(d, j, ans, a);
	}
	arena_count(a, answer_json_memory(ans));
	if (a->crowded) /* the reader reconnects */
		return API_ERROR;
	if (!j->pages)
		j->since = ans->now;
	add_message(&j->answer, ans->more ? STR("") : buf_str(&j->after), "snapshot",
		    page_json(j, ans, a));
	j->page.n = 0;
	if (ans->more)
		buf_adds(&j->page, ans->tasks[ans->n_tasks - 1].id);
	j->pages = ans->more ? j->pages + 1 : 0;
	j->more = true; /* the next page, or the events since the first page */
	return SUCCESS;
}

/* Is there an event with this cursor? This reads the whole log, once for each reader that
 * reconnects. */
static bool is_in_log(struct worker *d, struct str cursor, struct arena *a)
{
	struct request rq = { .op = OP_LOG };
	struct answer ans = { 0 };

	GIVE(&rq, limit, 0);
	(void)events_ask(d, &rq, &ans, a);
	for (size_t i = ans.n_events; i > 0; i--)
		if (str_eq(ans.events[i - 1].cursor, cursor))
			return true;
	return false;
}

/* Numeric cursors only grow, so a cursor behind the newest event belongs to another log. */
static bool is_known(struct worker *d, struct str cursor, struct arena *a)
{
	struct answer ans = { 0 };
	struct str last;
	int64_t then, now;

	if (events_newest(d, &last, &ans, a) != SUCCESS || !last.n)
		return false;
	if (str_eq(cursor, last))
		return true;
	if (!str_to_i64(last, &now))
		return is_in_log(d, cursor, a);
	return str_to_i64(cursor, &then) && then >= 0 && then <= now;
}

/* The time of the event with this cursor. 0: it is not known, so every expired lease may be
 * news. */
static int64_t time_of(struct worker *d, struct str cursor, struct arena *a)
{
	struct request rq = { .op = OP_LOG };
	struct answer ans = { 0 };
	int64_t n;

	if (!str_to_i64(cursor, &n) || n <= 0)
		return 0;
	GIVE(&rq, limit, 1);
	GIVE(&rq, log_view, LOG_PAGE);
	GIVE(&rq, after, arena_printf(a, "%lld", (long long)(n - 1)));
	if (events_ask(d, &rq, &ans, a) == SUCCESS && ans.n_events &&
	    str_eq(ans.events[0].cursor, cursor))
		return ans.events[0].at;
	return 0;
}

/* Sets *out to the event's task as it is now; null: it was removed, or the event is about a lock of
 * the whole queue. */
static enum result task_now(struct worker *d, const struct job *j, const struct event *e,
			    json_t **out)
{
	struct request rq = { .op = OP_LOG, .role = j->caller.role };
	struct arena a = answers_arena(j, READ_ROOM);
	struct answer ans = { 0 };
	bool crowded;

	*out = NULL;

	if (e->task.n && !typed_of(e->task)) {
		GIVE(&rq, id, e->task);
		GIVE(&rq, limit, 1);
		GIVE(&rq, log_view, LOG_WITH_TASKS);
		GIVE(&rq, view, VIEW_CAN);
		if (events_ask(d, &rq, &ans, &a) == SUCCESS && ans.n_tasks)
			*out = answer_task_json(&ans, &ans.tasks[0], &a);
	}
	crowded = arena_over(&a);
	arena_free(&a);
	if (!*out && crowded)
		return API_ERROR;
	if (!*out)
		*out = json_null();
	return SUCCESS;
}

static bool comes_again(const struct answer *ans, size_t i)
{
	for (size_t k = i + 1; k < ans->n_events; k++)
		if (str_eq_nocase(ans->events[k].task, ans->events[i].task))
			return true;
	return false;
}

/* If there is not enough memory to read the task, the event is not added either: the stream ends,
 * and its reader reconnects for both. */
static enum result add_event(struct worker *d, struct job *j, const struct event *e, bool with_task,
			     struct arena *a)
{
	json_t *task = NULL, *o;
	enum result code = with_task ? task_now(d, j, e, &task) : SUCCESS;

	if (code != SUCCESS)
		return code;
	o = json_pack("{s:o}", "event", event_json(e, a));
	if (task)
		json_object_set_new(o, "task", task);
	add_message(&j->answer, e->cursor, "event", o);
	return SUCCESS;
}

/* Adds the events until the page is full. */
static enum result add_page(struct worker *d, struct job *j, const struct answer *ans,
			    struct arena *a)
{
	enum result code;

	for (size_t i = 0; i < ans->n_events; i++) {
		const struct event *e = &ans->events[i];

		if (j->answer.n > PAGE_MAX) {
			j->more = true;
			return SUCCESS;
		}
		code = add_event(d, j, e, !comes_again(ans, i), a);
		if (code != SUCCESS)
			return code;
		set_cursor(j, e->cursor);
	}
	return SUCCESS;
}

/* Was the expired lease on a page that was sent? Expired leases are sorted by time and id. */
static bool was_on_page(const struct job *j, const struct event *e)
{
	struct str last = buf_str(&j->page);

	return last.n &&
	       (e->at < j->since || (e->at == j->since && index_id_cmp(e->task, last) <= 0));
}

/* Expired leases come after the last event of the log. If they fill a page, j->since and j->page
 * name its last one. */
static enum result add_expired(struct worker *d, struct job *j, struct answer *ans, struct arena *a)
{
	struct request rq = { .op = OP_LOG };
	enum result code;

	GIVE(&rq, limit, 1);
	GIVE(&rq, expired_after, j->since - (j->page.n > 0));
	if (events_ask(d, &rq, ans, a) != SUCCESS)
		return ans->code;
	for (size_t i = 0; i < ans->n_events; i++) {
		const struct event *e = &ans->events[i];

		if (e->cursor.n || was_on_page(j, e))
			continue;
		if (j->answer.n > PAGE_MAX) {
			j->more = true;
			return SUCCESS;
		}
		code = add_event(d, j, e, true, a);
		if (code != SUCCESS)
			return code;
		j->since = e->at;
		j->page.n = 0;
		buf_adds(&j->page, e->task);
	}
	j->since = ans->now;
	j->page.n = 0;
	return SUCCESS;
}

static enum result add_news(struct worker *d, struct job *j, struct answer *ans, struct arena *a)
{
	struct request rq = { .op = OP_LOG };
	enum result code;

	GIVE(&rq, limit, PAGE_EVENTS);
	GIVE(&rq, log_view, LOG_PAGE);
	if (j->after.n)
		GIVE(&rq, after, arena_str(a, buf_str(&j->after)));
	if (events_ask(d, &rq, ans, a) != SUCCESS)
		return ans->code;
	j->more = ans->more;
	code = add_page(d, j, ans, a);
	return code != SUCCESS || j->more ? code : add_expired(d, j, ans, a);
}

/* A change is an event of the log or an expired lease. */
static enum result add_change(struct worker *d, struct job *j, struct answer *ans, struct arena *a)
{
	struct request rq = { .op = OP_LOG };
	struct str cursor = STR("");
	bool news = j->first;

	GIVE(&rq, limit, 1);
	GIVE(&rq, expired_after, j->first ? WHEN_MAX : j->since);
	if (events_ask(d, &rq, ans, a) != SUCCESS)
		return ans->code;
	for (size_t i = 0; i < ans->n_events; i++) {
		news |= !ans->events[i].cursor.n;
		if (ans->events[i].cursor.n)
			cursor = ans->events[i].cursor;
	}
	if (news || !str_eq(cursor, buf_str(&j->after)))
		buf_adds(&j->answer, CHANGE);
	set_cursor(j, cursor);
	j->since = ans->now;
	return SUCCESS;
}

static enum result add_events(struct worker *d, struct job *j, struct answer *ans, struct arena *a)
{
	enum result code;

	if (j->first && j->after.n && !is_known(d, buf_str(&j->after), a))
		add_reset(j);
	if (j->first && j->after.n)
		j->since = time_of(d, buf_str(&j->after), a);
	if (j->pages || (j->first && !j->after.n))
		code = add_snapshot(d, j, ans, a);
	else
		code = add_news(d, j, ans, a);
	if (j->first && code == SUCCESS && !j->answer.n) /* it missed nothing */
		buf_adds(&j->answer, PING);
	return code;
}

void events_run(struct worker *d, struct job *j)
{
	struct answer ans = { 0 };
	struct arena a = answers_arena(j, READ_ROOM);
	enum result code = j->wakes ? add_change(d, j, &ans, &a) : add_events(d, j, &ans, &a);

	j->status = code == SUCCESS ? 200 : result_http(code);
	worker_failed(d, &ans);
	arena_free(&a);
}

/* Reads and checks a history. An unknown key, or an answer without its call, is an error with its line number; only a torn
 * last line is ignored. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "proof/history/history_members.h"

#define LINE_LONGEST (16 << 20)

struct reading {
	struct reader r;
	struct history_log *log;
	size_t line, room_calls, room_notes, room_ends;
	/* hash table with open addressing: call number -> index in calls[] + 1 */
	uint64_t *slots;
	size_t n_slots;
};

/* --- calls by number ----------------------------------------------------------------------------- */

static size_t slot_of(const struct reading *x, uint64_t number)
{
	size_t at = (size_t)(number * UINT64_C(0x9e3779b97f4a7c15) >> 20) & (x->n_slots - 1);

	while (x->slots[at] && x->log->calls[x->slots[at] - 1].number != number)
		at = (at + 1) & (x->n_slots - 1);
	return at;
}

static void more_slots(struct reading *x)
{
	x->n_slots = x->n_slots ? 2 * x->n_slots : 1024;
	free(x->slots);
	x->slots = mem_alloc(x->n_slots * sizeof(*x->slots));
	memset(x->slots, 0, x->n_slots * sizeof(*x->slots));
	for (size_t i = 0; i < x->log->n_calls; i++)
		x->slots[slot_of(x, x->log->calls[i].number)] = i + 1;
}

static struct history_call *find_call(struct reading *x, uint64_t number)
{
	size_t at;

	if (!x->n_slots)
		return NULL;
	at = slot_of(x, number);
	return x->slots[at] ? &x->log->calls[x->slots[at] - 1] : NULL;
}

/* Makes room for one more of n elements, in memory that history_free() frees. */
static void *one_more(void *things, size_t n, size_t *room, size_t size)
{
	if (n < *room)
		return things;
	*room = *room ? 2 * *room : 64;
	return mem_grow(things, *room * size);
}

/* --- the parts of a line ------------------------------------------------------------------------- */

static bool read_request_arg(struct reader *r, struct request *rq, const char *name,
			     const json_t *v)
{
	int i = 0;
	void *p;

	while (i < ARG_END && strcmp(arg_name((enum arg)i), name) != 0)
		i++;
	if (i == ARG_END)
		return reader_fail(r, "request: there is no argument %s", name);
	p = arg_at(rq, (enum arg)i);
	rq->has |= UINT64_C(1) << i;
	if (arg_kind((enum arg)i) == ARG_INT)
		return read_int(r, name, v, p);
	if (arg_kind((enum arg)i) == ARG_STR)
		return read_str(r, name, v, p);
	return read_list(r, name, v, p);
}

static enum op op_by_name(const char *name)
{
	for (int op = OP_NONE + 1; op < OP_END; op++)
		if (strcmp(op_name((enum op)op), name) == 0)
			return (enum op)op;
	return OP_NONE;
}

static bool read_request(struct reader *r, const json_t *o, struct request *rq)
{
	const char *op = json_string_value(json_object_get(o, "op")), *name;
	json_t *v;

	rq->op = op ? op_by_name(op) : OP_NONE;
	if (!rq->op)
		return reader_fail(r, "request: op is missing or unknown");
	json_object_foreach((json_t *)o, name, v)
		if (strcmp(name, "op") != 0 && !read_request_arg(r, rq, name, v))
			return false;
	if (op_flags(rq->op) & OP_TASK && !rq->id.n)
		return reader_fail(r, "request: %s needs an id", op);
	return true;
}

static bool read_task(struct reader *r, const json_t *o, struct task *t)
{
	static const char *const others[] = { "lock", NULL };
	const json_t *lock = json_object_get(o, "lock");

	if (!json_is_object(o))
		return reader_fail(r, "task: an object is needed");
	if (!members_read(r, o, task_members, others, t))
		return false;
	if (!lock)
		return true;
	if (!json_is_object(lock))
		return reader_fail(r, "lock: an object is needed");
	return members_read(r, lock, lock_members, NULL, t);
}

/* NULL or null: there is no task. */
static bool read_some_task(struct reader *r, const json_t *o, struct task **out)
{
	*out = NULL;
	if (!o || json_is_null(o))
		return true;
	*out = arena_new(r->arena, struct task);
	return read_task(r, o, *out);
}

static bool read_grant(struct reader *r, const json_t *o, struct grant **out)
{
	*out = NULL;
	if (!o)
		return true;
	*out = arena_new(r->arena, struct grant);
	if (!json_is_object(o))
		return reader_fail(r, "lock: an object is needed");
	return members_read(r, o, grant_members, NULL, *out);
}

static bool read_paused(struct reader *r, const json_t *o, struct notice **out)
{
	*out = NULL;
	if (!o)
		return true;
	*out = arena_new(r->arena, struct notice);
	if (!json_is_object(o))
		return reader_fail(r, "paused: an object is needed");
	return members_read(r, o, notice_members, NULL, *out);
}

static bool read_tasks(struct reader *r, const json_t *list, struct answer *ans)
{
	if (!list)
		return true;
	if (!json_is_array(list))
		return reader_fail(r, "tasks: a list is needed");
	ans->kind = ANSWER_TASKS;
	ans->n_tasks = json_array_size(list);
	ans->total = (int64_t)ans->n_tasks;
	ans->tasks = arena_array(r->arena, struct task, ans->n_tasks);
	for (size_t i = 0; i < ans->n_tasks; i++)
		if (!read_task(r, json_array_get(list, i), &ans->tasks[i]))
			return false;
	return true;
}

static bool read_answer(struct reader *r, const json_t *o, struct answer *ans)
{
	static const char *const others[] = { "t",         "answer", "task",   "lock", "next",
					      "next_lock", "tasks",  "paused", NULL };
	const json_t *next = json_object_get(o, "next");

	ans->has_next = next != NULL;
	return members_read(r, o, answer_members, others, ans) &&
	       read_some_task(r, json_object_get(o, "task"), &ans->task) &&
	       read_some_task(r, next, &ans->next) &&
	       read_grant(r, json_object_get(o, "lock"), &ans->lock) &&
	       read_grant(r, json_object_get(o, "next_lock"), &ans->next_lock) &&
	       read_paused(r, json_object_get(o, "paused"), &ans->paused) &&
	       read_tasks(r, json_object_get(o, "tasks"), ans);
}

static bool no_other_keys(struct reader *r, const json_t *o, const char *const *names)
{
	static const struct member none[] = { { 0 } };

	return members_read(r, o, none, names, NULL);
}

/* --- lines --------------------------------------------------------------------------------------- */

static bool head_line(struct reading *x, const json_t *o)
{
	static const char *const others[] = { "pawl_history", "policy", NULL };
	const json_t *format = json_object_get(o, "pawl_history"),
		     *policy = json_object_get(o, "policy");
	struct history_head *h = &x->log->head;

	if (!json_is_integer(format))
		return reader_fail(&x->r,
				   "this is not the header of a history: pawl_history is missing");
	if (json_integer_value(format) != HISTORY_FORMAT)
		return reader_fail(&x->r, "format %lld; this pawl reads %d",
				   (long long)json_integer_value(format), HISTORY_FORMAT);
	if (!json_is_object(policy))
		return reader_fail(&x->r, "policy is missing");
	return members_read(&x->r, o, head_members, others, h) &&
	       members_read(&x->r, policy, policy_members, NULL, &h->policy);
}

static bool read_time(struct reading *x, const json_t *o, int64_t *t)
{
	if (!read_int(&x->r, "t", json_object_get(o, "t"), t))
		return false;
	return *t >= 0 || reader_fail(&x->r, "t: a time cannot be negative");
}

static bool call_line(struct reading *x, const json_t *o)
{
	static const char *const names[] = { "t", "call", "agent", "pid", "request", NULL };
	const json_t *request = json_object_get(o, "request");
	struct history_log *log = x->log;
	struct history_call c = { .answered = HISTORY_NEVER };
	int64_t number;

	if (!read_time(x, o, &c.sent) ||
	    !read_int(&x->r, "call", json_object_get(o, "call"), &number) ||
	    !read_str(&x->r, "agent", json_object_get(o, "agent"), &c.agent) ||
	    !read_int(&x->r, "pid", json_object_get(o, "pid"), &c.pid) ||
	    !no_other_keys(&x->r, o, names))
		return false;
	c.number = (uint64_t)number;
	if (number <= 0 || find_call(x, c.number))
		return reader_fail(&x->r, "call %lld: %s", (long long)number,
				   number <= 0 ? "needs a number from 1"
					       : "the number is used already");
	c.rq = arena_new(x->r.arena, struct request);
	if (!json_is_object(request))
		return reader_fail(&x->r, "request is missing");
	if (!read_request(&x->r, request, c.rq))
		return false;
	log->calls = one_more(log->calls, log->n_calls, &x->room_calls, sizeof(c));
	log->calls[log->n_calls++] = c;
	if (2 * log->n_calls > x->n_slots)
		more_slots(x);
	x->slots[slot_of(x, c.number)] = log->n_calls;
	return true;
}

static bool answer_line(struct reading *x, const json_t *o)
{
	struct history_call *c;
	int64_t number, t;

	if (!read_time(x, o, &t) ||
	    !read_int(&x->r, "answer", json_object_get(o, "answer"), &number))
		return false;
	c = find_call(x, (uint64_t)number);
	if (!c)
		return reader_fail(&x->r, "answer %lld: no such call was sent before",
				   (long long)number);
	if (c->ans)
		return reader_fail(&x->r, "answer %lld: the call has an answer already",
				   (long long)number);
	if (t < c->sent)
		return reader_fail(&x->r, "answer %lld: it is earlier than its call",
				   (long long)number);
	c->answered = t;
	c->ans = arena_new(x->r.arena, struct answer);
	return read_answer(&x->r, o, c->ans);
}

static bool event_line(struct reading *x, const json_t *o)
{
	static const char *const names[] = { "t", "event", "agent", "pid", "ms", NULL };
	const json_t *agent = json_object_get(o, "agent"), *pid = json_object_get(o, "pid"),
		     *ms = json_object_get(o, "ms");
	struct history_log *log = x->log;
	struct history_note n = { 0 };

	if (!read_time(x, o, &n.at) ||
	    !read_str(&x->r, "event", json_object_get(o, "event"), &n.what) ||
	    (agent && !read_str(&x->r, "agent", agent, &n.agent)) ||
	    (pid && !read_int(&x->r, "pid", pid, &n.pid)) ||
	    (ms && !read_int(&x->r, "ms", ms, &n.ms)) || !no_other_keys(&x->r, o, names))
		return false;
	log->notes = one_more(log->notes, log->n_notes, &x->room_notes, sizeof(n));
	log->notes[log->n_notes++] = n;
	return true;
}

static bool final_line(struct reading *x, const json_t *o)
{
	static const char *const names[] = { "t", "final", "now", "task", NULL };
	const json_t *task = json_object_get(o, "task");
	struct history_log *log = x->log;
	struct history_end e = { 0 };

	if (!task)
		return reader_fail(&x->r, "final: task is missing; null says that it is gone");
	if (!read_time(x, o, &e.at) ||
	    !read_str(&x->r, "final", json_object_get(o, "final"), &e.id) ||
	    !read_int(&x->r, "now", json_object_get(o, "now"), &e.now) ||
	    !read_some_task(&x->r, task, &e.task) || !no_other_keys(&x->r, o, names))
		return false;
	log->ends = one_more(log->ends, log->n_ends, &x->room_ends, sizeof(e));
	log->ends[log->n_ends++] = e;
	return true;
}

static bool any_line(struct reading *x, const json_t *o)
{
	if (!json_is_object(o))
		return reader_fail(&x->r, "an object is needed");
	if (x->line == 1)
		return head_line(x, o);
	if (json_object_get(o, "call"))
		return call_line(x, o);
	if (json_object_get(o, "answer"))
		return answer_line(x, o);
	if (json_object_get(o, "event"))
		return event_line(x, o);
	if (json_object_get(o, "final"))
		return final_line(x, o);
	return reader_fail(&x->r, "neither call, answer, event nor final");
}

/* whole: the line ended with a newline. A line without one may be torn; then it is ignored. */
static bool read_line(struct reading *x, struct str line, bool whole)
{
	json_error_t e;
	json_t *o;
	bool good;

	x->line++;
	o = json_loadb(str_p(line), line.n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &e);
	if (!o && !whole && x->line > 1) {
		x->log->torn = true;
		return true;
	}
	good = o ? any_line(x, o) : reader_fail(&x->r, "not JSON: %s", e.text);
	json_decref(o);
	return good;
}

static void history_read_begin(struct reading *x, struct history_log *out)
{
	*out = (struct history_log){ 0 };
	*x = (struct reading){ .log = out, .r = { .arena = &out->arena } };
}

static int history_read_finish(struct reading *x, bool good, struct str *why)
{
	if (good && !x->line)
		good = reader_fail(&x->r, "the file is empty");
	*why = good ? STR("") : arena_printf(x->r.arena, "line %zu: %.*s", x->line, STRF(x->r.why));
	reader_free(&x->r);
	free(x->slots);
	return good ? 0 : -EBADMSG;
}

int history_parse(struct history_log *out, struct str bytes, struct str *why)
{
	struct reading x;
	bool good = true;

	history_read_begin(&x, out);
	while (good && bytes.n) {
		bool whole = memchr(bytes.p, '\n', bytes.n) != NULL;

		good = read_line(&x, str_cut(&bytes, '\n'), whole);
	}
	return history_read_finish(&x, good, why);
}

/* Reads one line, without its newline; false at the end. */
static bool next_line(FILE *f, struct buf *line, bool *whole)
{
	int c;

	line->n = 0;
	while ((c = getc_unlocked(f)) != EOF && c != '\n' && !line->full)
		buf_addc(line, (char)c);
	*whole = c == '\n';
	return *whole || line->n;
}

int history_load(struct history_log *out, const char *path, struct str *why)
{
	FILE *f = fopen(path, "re");
	struct reading x;
	struct buf line = BUF_MAX(LINE_LONGEST);
	bool good = true, whole;
	int error = f ? 0 : errno;

	history_read_begin(&x, out);
	while (f && good && next_line(f, &line, &whole)) {
		if (line.full) {
			x.line++;
			good = reader_fail(
				&x.r, "it is longer than %d MiB, the limit of a line in a history",
				LINE_LONGEST >> 20);
		} else {
			good = read_line(&x, buf_str(&line), whole);
		}
	}
	if (f && ferror(f))
		error = errno;
	buf_free(&line);
	if (f)
		fclose(f);
	if (history_read_finish(&x, good || error, why) && !error)
		return -EBADMSG;
	if (error)
		*why = arena_printf(&out->arena, "%s", strerror(error));
	return -error;
}

void history_free(struct history_log *log)
{
	free(log->calls);
	free(log->notes);
	free(log->ends);
	arena_free(&log->arena);
	*log = (struct history_log){ 0 };
}

/*
 * Validates a request: all checks that do not need the queue. These are required arguments, sizes,
 * valid text, ids and ranges. A request that fails here changes nothing.
 */
#include "core/request.h"

#include <jansson.h>

#include "base/text.h"
#include "base/when.h"
#include "core/validate.h"
#include "core/typed.h"
#include "core/rules.h"

static const char *bad_text(const struct request *r, enum arg a, struct arena *arena)
{
	const struct str *s = arg_of(r, a);
	size_t max = arg_limit(a);

	if (s->n > max)
		return arena_printf(arena, "%s has %zu bytes; at most %zu are allowed", arg_name(a),
				    s->n, max)
			.p;
	if (!text_valid(*s))
		return arena_printf(arena, "%s is not valid UTF-8 text, or has a NUL in it",
				    arg_name(a))
			.p;
	return NULL;
}

static const char *bad_extra(const struct request *r, struct arena *a)
{
	const char *fault;
	json_t *o;
	bool good;

	if (!HAS(r, extra) || !r->extra.n)
		return NULL;
	fault = extra_fault(r->extra, a);
	if (fault)
		return arena_printf(a, "extra: %s", fault).p;
	o = json_loadb(r->extra.p, r->extra.n, JSON_REJECT_DUPLICATES, NULL);
	good = json_is_object(o);
	json_decref(o);
	return good ? NULL : "extra: a JSON object is needed, such as {\"ra_score\":9}";
}

static const char *bad_list(const struct request *r, enum arg a, struct arena *arena)
{
	const struct strs *list = arg_of(r, a);
	size_t most = a == ARG_depends || a == ARG_except ? DEPENDS_MAX : LABELS_MAX;

	if (list->n > most)
		return arena_printf(arena, "%s: %zu are given; at most %zu are allowed",
				    arg_name(a), list->n, most)
			.p;
	for (size_t i = 0; i < list->n; i++)
		if (!list->v[i].n || list->v[i].n > NAME_MAX_BYTES || !text_valid(list->v[i]))
			return arena_printf(arena,
					    "%s: each one must be valid text of 1 to %d bytes",
					    arg_name(a), NAME_MAX_BYTES)
				.p;
	return NULL;
}

static const char *bad_ids(const struct request *r)
{
	bool handle = (r->op == OP_SHOW || r->op == OP_REMOVE) && bad_handle_is(r->id);
	const char *fault = !HAS(r, id) || handle ? NULL
			    : typed_is(r)         ? typed_fault(r)
						  : id_fault(r->id);

	if (!fault && HAS(r, parent) && r->parent.n)
		fault = id_fault(r->parent);
	for (size_t i = 0; !fault && i < r->depends.n; i++)
		fault = id_fault(r->depends.v[i]);
	return fault;
}

/* The end of the year 9999. */
#define TIME_MAX INT64_C(253402300799999)

static bool no_time(int64_t ms)
{
	return ms < 0 || ms > TIME_MAX;
}

static const char *bad_time(const struct request *r)
{
	if (no_time(r->due) || no_time(r->not_before) || no_time(r->next_check))
		return "due, not-before, next-check: must be a time from 1970 to 9999";
	if (no_time(r->since) || no_time(r->until))
		return "since, until: must be a time from 1970 to 9999";
	if (no_time(r->delay) || no_time(r->older_than))
		return "delay, older-than: must be a duration from 0 to about 8000 years";
	if (r->limit < 0)
		return "limit: must be 0 (no limit) or more";
	return NULL;
}

static const char *bad_range(const struct request *r, const struct policy *p, struct arena *arena)
{
	if (HAS(r, ttl) && (r->ttl < p->lease_min || r->ttl > p->lease_max))
		return arena_printf(arena, "ttl: a lease lasts from %s to %s",
				    arena_cstr(arena, duration_text(arena, p->lease_min)),
				    arena_cstr(arena, duration_text(arena, p->lease_max)))
			.p;
	if (HAS(r, priority) && (r->priority < 0 || r->priority > PRIORITY_MAX))
		return "priority: must be a number from 0 to 1000";
	if (HAS(r, status) && (r->status < BACKLOG || r->status >= STATUS_END))
		return "status: there is no such status";
	if (HAS(r, class_rank) && (r->class_rank < EXPEDITE || r->class_rank >= CLASS_END))
		return "class: must be Expedite, Fixed Date, Standard or Intangible";
	if (r->pid < 0 || r->pid > EXACT_MAX || r->pid_start < 0 || r->pid_start > EXACT_MAX)
		return "pid: must be the number of a process";
	if (HAS(r, if_version) && (r->if_version < 1 || r->if_version > EXACT_MAX))
		return "if_version: the version of a task, 1 or more";
	if (r->from < 0 || r->from > ID_NUMBER_MAX)
		return "from: must be a number from 0 to 10^15";
	return bad_time(r);
}

/* The fault of a required argument that is missing, or of arguments that exclude each other;
 * NULL: none. With `status`, the target status decides which arguments are required. */
static const char *request_missing(const struct request *r)
{
	enum op op = r->op;
	bool by_status = op == OP_STATUS;
	bool reason = op_flags(op) & OP_REASON;
	bool action = op == OP_BLOCK;

	if (by_status && HAS(r, status)) {
		reason = r->status == BLOCKED || r->status == NEEDS_HELP || r->status == FAILED ||
			 r->status == CANCELED;
		action = r->status == BLOCKED;
	}
	if (reason && !str_trim(r->reason).n)
		return "a reason is needed: --reason TEXT";
	if (action && !str_trim(r->unblock_action).n)
		return "an unblock action is needed: --unblock-action TEXT, the step that would unblock it";
	if (op == OP_REVIEW && !str_trim(r->summary).n)
		return "a summary is needed: --summary TEXT";
	if (op == OP_COMMENT && !str_trim(r->text).n)
		return "the text of the comment is needed";
	if (op == OP_CREATE && !str_trim(r->title).n)
		return "a title is needed: 1 to 500 bytes";
	if (op == OP_UPDATE && !update_any(r))
		return "there is nothing to update: name a field, such as --title or --priority";
	if (op == OP_UPDATE && HAS(r, title) && !str_trim(r->title).n)
		return "the title cannot be empty";
	if (HAS(r, append) && HAS(r, description))
		return "append adds to the description: it cannot be used with a new description";
	return NULL;
}

/* Is a lock the call's main purpose? The queue recognises a repeated acquisition by its new
 * token. A stored answer could not help, because stores keep only a token's hash. */
static bool request_acquires(const struct request *r)
{
	if (r->op == OP_STATUS)
		return r->status == IN_PROGRESS;
	return op_flags(r->op) & OP_TAKES && r->op != OP_DONE;
}

static const char *bad_who(const struct request *r)
{
	if (op_flags(r->op) & OP_TASK && !HAS(r, id))
		return "the id of a task is needed";
	if (!(op_flags(r->op) & OP_READS) && !r->agent.n)
		return "an agent's name is needed: --agent NAME";
	if (request_acquires(r) && !r->new_token.n)
		return "a token for the new lock is needed";
	if ((r->claim_next || r->take) && !r->new_token.n)
		return "a token for the next lock is needed";
	if (r->request_id.n && request_acquires(r))
		return "to repeat an acquisition, pass the same --token, not a request id";
	return NULL;
}

/* --force is for operators, who act without a lock of their own. */
static const char *bad_force(const struct request *r)
{
	if (!r->force)
		return NULL;
	if (!(op_flags(r->op) & OP_FORCE) && r->op != OP_RELEASE)
		return "force: this call cannot be forced";
	if (r->explicit)
		return "--force overrides a lock, --token proves to hold it: give one of them";
	if (r->op != OP_REMOVE && r->op != OP_RELEASE && !str_trim(r->reason).n)
		return "--force needs a reason for the log: --reason TEXT";
	return NULL;
}

static const char *bad_version(const struct request *r)
{
	bool one = op_flags(r->op) & OP_TASK ||
		   ((r->op == OP_ARCHIVE || r->op == OP_UNDO) && HAS(r, id));

	if (!HAS(r, if_version) || (one && !(op_flags(r->op) & OP_READS) && !typed_is(r)))
		return NULL;
	return "--if-version is for a change of one task that exists";
}

const char *request_fault(const struct request *r, const struct policy *p, struct arena *a)
{
	const char *fault = bad_who(r);

	if (!fault)
		fault = bad_ids(r);
	for (int i = 0; !fault && i < ARG_END; i++) {
		if (arg_kind((enum arg)i) == ARG_STR)
			fault = bad_text(r, (enum arg)i, a);
		else if (arg_kind((enum arg)i) == ARG_LIST)
			fault = bad_list(r, (enum arg)i, a);
	}
	if (!fault)
		fault = bad_extra(r, a);
	if (!fault)
		fault = bad_range(r, p, a);
	if (!fault)
		fault = bad_force(r);
	if (!fault)
		fault = bad_version(r);
	return fault ? fault : request_missing(r);
}

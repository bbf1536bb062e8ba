/*
 * Checks records before callers use them: could pawl have written this task, event, key or number?
 * An attacker may have written the bytes. In a task without a fault, every text is valid, every
 * field is within its limit, and the id matches the key.
 */
#include "base/secret.h"
#include "base/text.h"
#include "base/when.h"
#include "core/field.h"
#include "core/typed.h"
#include "core/validate.h"

/* An event can quote a whole text and add some words of its own. */
#define EVENT_TEXT_MAX (TEXT_MAX + 4096)
#define KEY_MAX 200
#define HANDLE_DIGITS 16

/* --- ids and keys -------------------------------------------------------------------------------- */

static bool is_queue_lock(struct str id)
{
	return typed_of(id) || str_eq_nocase(id, EMERGENCY_ID) || str_eq_nocase(id, PAUSE_ID);
}

/* The id of a task or of a lock of the whole queue. */
static const char *any_id_fault(struct str id)
{
	return is_queue_lock(id) ? NULL : id_fault(id);
}

const char *key_fault(struct str key)
{
	struct str rest = key, space = str_cut(&rest, '/');

	if (key.n > KEY_MAX)
		return "its key is too long";
	for (size_t i = 0; i < space.n; i++)
		if (space.p[i] < 'a' || space.p[i] > 'z')
			return "its key does not have the form of a pawl key";
	return space.n ? any_id_fault(rest) : "its key does not have the form of a pawl key";
}

struct str bad_handle(struct arena *a, struct str key)
{
	return arena_printf(a, "bad:%.*s", HANDLE_DIGITS, hash_hex(a, key).p);
}

bool bad_handle_is(struct str id)
{
	if (!str_cut_prefix(&id, STR("bad:")) || id.n != HANDLE_DIGITS)
		return false;
	for (size_t i = 0; i < id.n; i++)
		if (!memchr("0123456789abcdef", id.p[i], 16))
			return false;
	return true;
}

static const char *name_fault(const struct task *t, struct str key, struct arena *a)
{
	const char *fault = any_id_fault(t->id);
	struct str name = key;
	bool same;

	if (!key.n && bad_handle_is(t->id))
		return NULL; /* in the answer to the removal of a damaged record */
	if (fault || !key.n)
		return fault;
	if (is_queue_lock(t->id))
		same = str_cut_prefix(&name, STR("lock/")) && str_eq_nocase(name, t->id);
	else
		same = str_eq(key, task_key(a, t->id));
	return same ? NULL : "its id and its key differ";
}

/* --- fields -------------------------------------------------------------------------------------- */

#define IS(f, member) ((f)->offset == offsetof(struct task, member))

static bool is_hash(const struct field *f)
{
	return IS(f, lock.token) || IS(f, last.token) || IS(f, over.token) || IS(f, chain);
}

static const char *too_long(struct arena *a, const char *name, size_t n, size_t most)
{
	return arena_printf(a, "its %s has %zu bytes; at most %zu are allowed", name, n, most).p;
}

static const char *text_fault(const struct field *f, struct str s, struct arena *a)
{
	const char *fault;

	if (!s.n)
		return NULL;
	if (s.n > f->limit)
		return too_long(a, f->name, s.n, f->limit);
	if (!is_hash(f) && !text_valid(s))
		return arena_printf(a, "its %s is not valid UTF-8 text, or has a NUL in it",
				    f->name)
			.p;
	if ((IS(f, parent) || IS(f, last.next)) && id_fault(s))
		return arena_printf(a, "its %s is not the id of a task", f->name).p;
	fault = f->kind == FIELD_JSON ? extra_fault(s, a) : NULL;
	return fault ? arena_printf(a, "its extra: %s", fault).p : NULL;
}

static const char *list_fault(const struct field *f, const struct strs *list, struct arena *a)
{
	int most = IS(f, labels) ? LABELS_MAX : DEPENDS_MAX;

	if (list->n > (size_t)most)
		return arena_printf(a, "it has %zu %s; at most %d are allowed", list->n, f->name,
				    most)
			.p;
	for (size_t i = 0; i < list->n; i++) {
		struct str s = list->v[i];

		if (IS(f, depends) && id_fault(s))
			return "it depends on something that is not the id of a task";
		if (!s.n || s.n > NAME_MAX_BYTES || !text_valid(s))
			return arena_printf(a, "one of its %s is not valid text of 1 to %d bytes",
					    f->name, NAME_MAX_BYTES)
				.p;
	}
	return NULL;
}

static int64_t number_most(const struct field *f)
{
	if (f->kind == FIELD_STATUS)
		return STATUS_END - 1;
	if (f->kind == FIELD_CLASS)
		return CLASS_END - 1;
	if (f->kind == FIELD_TIME || f->kind == FIELD_DATE)
		return WHEN_MAX;
	return f->limit ? f->limit : EXACT_MAX;
}

static const char *field_fault(const struct field *f, const struct task *t, struct arena *a)
{
	const void *p = field_of(f, t);
	const int64_t *n = p;

	if (f->kind == FIELD_STR || f->kind == FIELD_JSON)
		return text_fault(f, *(const struct str *)p, a);
	if (f->kind == FIELD_LIST)
		return list_fault(f, p, a);
	return *n == 0 || (*n > 0 && *n <= number_most(f))
		       ? NULL
		       : arena_printf(a, "its %s is out of range", f->name).p;
}

/* Do both tasks share this text or list in memory? Texts and lists never change in place. */
static bool is_same_text(const struct field *f, const struct task *t, const struct task *old)
{
	bool text = f->kind == FIELD_STR || f->kind == FIELD_JSON || f->kind == FIELD_LIST;

	_Static_assert(sizeof(struct strs) == sizeof(struct str), "a pointer and a length");
	return text && !memcmp(field_of(f, t), field_of(f, old), sizeof(struct str));
}

const char *task_change_fault(const struct task *t, const struct task *old, struct str key,
			      struct arena *a)
{
	const char *fault = name_fault(t, key, a);

	if (!fault && !is_queue_lock(t->id) && (!t->status || !t->class_rank))
		fault = "it has no status or no class";
	for (size_t i = 0; !fault && i < N_FIELDS; i++)
		if (!is_same_text(&field_table[i], t, old))
			fault = field_fault(&field_table[i], t, a);
	return fault;
}

const char *task_fault(const struct task *t, struct str key, struct arena *a)
{
	return task_change_fault(t, &(struct task){ 0 }, key, a);
}

const char *room_fault(const struct task *t, struct arena *a)
{
	for (size_t i = 0; i < N_FIELDS; i++) {
		const struct field *f = &field_table[i];

		if (f->kind == FIELD_INT &&
		    *(const int64_t *)field_of(f, t) > EXACT_MAX - EXACT_ROOM)
			return arena_printf(
				       a,
				       "its %s is out of range: at most 2^53 - 2^20 can be imported",
				       f->name)
				.p;
	}
	return NULL;
}

size_t json_values(struct str text, size_t *levels)
{
	size_t values = 0, level = 0;
	bool quoted = false;

	*levels = 0;
	for (size_t i = 0; i < text.n; i++) {
		char c = text.p[i];

		if (quoted && c == '\\')
			i++;
		else if (c == '"')
			quoted = !quoted;
		else if (quoted)
			continue;
		else if (c == '[' || c == '{')
			*levels = ++level > *levels ? level : *levels;
		else if (c == ']' || c == '}')
			level--;
		values += !quoted && (c == ',' || c == '[' || c == '{');
	}
	return values;
}

const char *extra_fault(struct str extra, struct arena *a)
{
	size_t levels, values = json_values(extra, &levels);

	if (values > EXTRA_VALUES_MAX)
		return arena_printf(a, "at most %d values are allowed", EXTRA_VALUES_MAX).p;
	if (levels > EXTRA_LEVELS_MAX)
		return arena_printf(a, "at most %d levels of lists and objects are allowed",
				    EXTRA_LEVELS_MAX)
			.p;
	return NULL;
}

const char *growth_fault(const struct task *t, struct arena *a)
{
	if (t->labels.n > LABELS_MAX)
		return arena_printf(a, "%.*s would have %zu labels; at most %d are allowed",
				    STRF(t->id), t->labels.n, LABELS_MAX)
			.p;
	if (t->depends.n > DEPENDS_MAX)
		return arena_printf(a, "%.*s would depend on %zu tasks; at most %d are allowed",
				    STRF(t->id), t->depends.n, DEPENDS_MAX)
			.p;
	if (t->description.n > TEXT_MAX)
		return arena_printf(
			       a,
			       "%.*s: the description would have %zu bytes; at most %d are allowed",
			       STRF(t->id), t->description.n, TEXT_MAX)
			.p;
	if (t->extra.n > TEXT_MAX)
		return arena_printf(a, "%.*s: extra would have %zu bytes; at most %d are allowed",
				    STRF(t->id), t->extra.n, TEXT_MAX)
			.p;
	return NULL;
}

/* --- the log, numbers ---------------------------------------------------------------------------- */

static bool small_text(struct str s, size_t most)
{
	return s.n <= most && text_valid(s);
}

const char *event_fault(const struct event *e)
{
	if (e->task.n && any_id_fault(e->task))
		return "its task is not a valid task id";
	if (!small_text(e->name, NAME_MAX_BYTES) || !small_text(e->agent, NAME_MAX_BYTES) ||
	    !small_text(e->run, NAME_MAX_BYTES) || !small_text(e->text, EVENT_TEXT_MAX) ||
	    !small_text(e->changes, EVENT_TEXT_MAX) ||
	    !small_text(e->unblock_action, EVENT_TEXT_MAX))
		return "a text in it is too long or not valid UTF-8";
	if (e->prev.n && e->prev.n != SHORT_HASH_LEN)
		return "its hash of the event before it is damaged";
	if (e->expires < 0 || e->expires > WHEN_MAX || e->from < 0 || e->from >= STATUS_END ||
	    e->to < 0 || e->to >= STATUS_END || e->fence < 0 || e->fence > EXACT_MAX || e->at < 0 ||
	    e->at > WHEN_MAX)
		return "a number in it is out of range";
	return NULL;
}

bool number_valid(struct str text, int64_t *out)
{
	return str_to_i64(text, out) && *out >= 0 && *out <= EXACT_MAX;
}

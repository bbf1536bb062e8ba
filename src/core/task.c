/*
 * Names and parses statuses, classes, priorities and ids, and defines the table of task fields.
 * task_key() maps all spellings of an id to one key, so T1 and t1 cannot be two tasks.
 */
#include "base/secret.h"
#include "base/str.h"
#include "core/field.h"
#include "core/task.h"

static const char *const statuses[] = {
	[BACKLOG] = "Backlog", [READY] = "Ready",   [IN_PROGRESS] = "In Progress",
	[BLOCKED] = "Blocked", [REVIEW] = "Review", [NEEDS_HELP] = "Needs Help",
	[DONE] = "Done",       [FAILED] = "Failed", [CANCELED] = "Canceled",
};

static const char *const classes[] = {
	[EXPEDITE] = "Expedite",
	[FIXED_DATE] = "Fixed Date",
	[STANDARD] = "Standard",
	[INTANGIBLE] = "Intangible",
};

static const struct {
	const char *name;
	enum status status;
} aliases[] = {
	{ "todo", READY },        { "pending", READY },      { "implementing", IN_PROGRESS },
	{ "postponed", BACKLOG }, { "cancelled", CANCELED },
};

const char *status_name(int64_t s)
{
	return s > 0 && s < STATUS_END ? statuses[s] : "none";
}

const char *class_name(int64_t rank)
{
	return rank > 0 && rank < CLASS_END ? classes[rank] : classes[STANDARD];
}

static char task_compact(char c)
{
	if (c >= 'A' && c <= 'Z')
		return (char)(c + 32);
	return c == '-' || c == '_' ? ' ' : c;
}

/* Compares ignoring case; ' ', '-' and '_' are equal. */
static bool same_words(struct str a, const char *b)
{
	size_t n = strlen(b);

	if (a.n != n)
		return false;
	for (size_t i = 0; i < n; i++)
		if (task_compact(a.p[i]) != task_compact(b[i]))
			return false;
	return true;
}

/* Compares ignoring case and the spaces in `b`, because some programs write "InProgress". */
static bool same_joined(struct str a, const char *b)
{
	size_t i = 0;

	for (; *b; b++) {
		if (*b == ' ')
			continue;
		if (i == a.n || task_compact(a.p[i]) != task_compact(*b))
			return false;
		i++;
	}
	return i == a.n;
}

enum status status_parse(struct str text)
{
	for (int s = BACKLOG; s < STATUS_END; s++)
		if (same_words(text, statuses[s]) || same_joined(text, statuses[s]))
			return (enum status)s;
	for (size_t i = 0; i < sizeof(aliases) / sizeof(*aliases); i++)
		if (same_words(text, aliases[i].name))
			return aliases[i].status;
	return 0;
}

enum class_rank class_parse(struct str text)
{
	for (int c = EXPEDITE; c < CLASS_END; c++)
		if (same_words(text, classes[c]) || same_joined(text, classes[c]))
			return (enum class_rank)c;
	return 0;
}

bool priority_parse(struct str text, int64_t *out)
{
	static const char *const words[] = { "low", "medium", "high" };

	for (int i = 0; i < 3; i++)
		if (same_words(text, words[i])) {
			*out = i + 1;
			return true;
		}
	return str_to_i64(text, out) && *out >= 0 && *out <= PRIORITY_MAX;
}

static bool id_first(char c)
{
	return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

const char *id_fault(struct str id)
{
	static const char *const endings[] = { ".", ".lock", ".done", ".failed", ".task" };

	if (!id.n || id.n > ID_MAX)
		return "an id has 1 to 128 characters";
	if (!id_first(id.p[0]))
		return "an id begins with a letter or a digit";
	for (size_t i = 0; i < id.n; i++) {
		if (!id_first(id.p[i]) && !memchr("._-", id.p[i], 3))
			return "an id has only letters, digits, '.', '_' and '-'";
		if (id.p[i] == '.' && i + 1 < id.n && id.p[i + 1] == '.')
			return "an id has no '..' in it";
	}
	for (size_t i = 0; i < sizeof(endings) / sizeof(*endings); i++)
		if (id.n >= strlen(endings[i]) &&
		    str_eq_nocase(str_n(id.p + id.n - strlen(endings[i]), strlen(endings[i])),
				  str_c(endings[i])))
			return "an id does not end in '.', '.lock', '.done', '.failed' or '.task'";
	return NULL;
}

struct str id_numbered(struct arena *a, struct str id)
{
	return id.n && is_digit(id.p[0]) ? arena_printf(a, "t%.*s", STRF(id)) : id;
}

int64_t id_number(struct str id)
{
	int64_t n;

	if (!str_cut_prefix(&id, STR("t")) || !id.n || !is_digit(id.p[0]) ||
	    !str_to_i64(str_cut(&id, '_'), &n))
		return -1;
	return n > ID_NUMBER_MAX ? -1 : n;
}

struct str title_from(struct str description, struct str id)
{
	struct str rest = str_trim(description), line = str_trim(str_cut(&rest, '\n'));
	size_t n = line.n > TITLE_MAX ? TITLE_MAX : line.n;

	while (n < line.n && ((unsigned char)line.p[n] & 0xc0) == 0x80) /* do not cut a character */
		n--;
	return n ? str_n(line.p, n) : id;
}

struct str task_key(struct arena *a, struct str id)
{
	const size_t space = sizeof("task/") - 1;
	char *p = arena_alloc(a, space + id.n + 1);

	memcpy(p, "task/", space);
	for (size_t i = 0; i < id.n; i++)
		p[space + i] = id.p[i] >= 'A' && id.p[i] <= 'Z' ? (char)(id.p[i] + 32) : id.p[i];
	return str_n(p, space + id.n);
}

/* --- field ------------------------------------------------------------------------------------ */

#define FIND FIELD_FIND
#define LIMIT_NONE 0
#define LIMIT_NAME NAME_MAX_BYTES
#define LIMIT_TITLE TITLE_MAX
#define LIMIT_TEXT TEXT_MAX
#define LIMIT_HASH HASH_LEN
#define LIMIT_PRIORITY PRIORITY_MAX

const struct field field_table[N_FIELDS] = {
#define FIELD(tag, part, kind, member, name, shown, limit, uses)                 \
	{                                                                        \
		tag,  part,          FIELD_##kind, shown,                        \
		uses, LIMIT_##limit, #name,        offsetof(struct task, member) \
	},
#include "core/task.def"
};

const struct field *field_find(struct str name)
{
	for (size_t i = 0; i < N_FIELDS; i++)
		if (str_is(name, field_table[i].name))
			return &field_table[i];
	return NULL;
}

/* Ids and their keys, and the words for statuses, classes and priorities. */
#include "kit.h"
#include "core/task.h"

static struct str upper(struct arena *a, struct str s)
{
	char *p = arena_cstr(a, s);

	for (size_t i = 0; i < s.n; i++)
		if (p[i] >= 'a' && p[i] <= 'z')
			p[i] = (char)(p[i] - 32);
	return str_n(p, s.n);
}

static void check_good(struct arena *a, struct str id)
{
	struct str key = task_key(a, id), rest = str_n(key.p + 5, key.n - 5);

	CHECK(id.n >= 1 && id.n <= ID_MAX);
	CHECK(key.n == id.n + 5 && str_starts(key, STR("task/")));
	CHECK(str_eq_nocase(rest, id));
	/* it becomes a file name: it must not leave the folder, be hidden, or look like an
	 * option */
	CHECK(id.p[0] != '.' && id.p[0] != '-');
	for (size_t i = 0; i < id.n; i++)
		CHECK(strchr("._-", id.p[i]) ? id.p[i] != '\0' : id.p[i] > ' ' && id.p[i] < 0x7f);
	CHECK(!memchr(id.p, '/', id.n) && !memchr(id.p, '\\', id.n));
	CHECK(!memmem(id.p, id.n, "..", 2));
	/* every spelling is the same task, and is a valid id */
	CHECK(!id_fault(rest) && !id_fault(upper(a, id)));
	CHECK(str_eq(task_key(a, upper(a, id)), key));
	CHECK(str_eq(task_key(a, rest), key));
}

static void check_words(struct arena *a, struct str text)
{
	enum status s = status_parse(text);
	enum class_rank c = class_parse(text);
	int64_t priority = -1, again = -1;

	CHECK(s < STATUS_END && c < CLASS_END);
	CHECK(!s || status_parse(str_c(status_name(s))) == s);
	CHECK(!c || class_parse(str_c(class_name(c))) == c);
	if (!priority_parse(text, &priority))
		return;
	CHECK(priority >= 0 && priority <= PRIORITY_MAX);
	CHECK(priority_parse(arena_printf(a, "%d", (int)priority), &again) && again == priority);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena a = { 0 };
	struct str text = str_n((const char *)data, size);
	const char *fault = id_fault(text);

	if (!fault)
		check_good(&a, text);
	else
		CHECK(*fault);
	check_words(&a, text);
	arena_free(&a);
	return 0;
}

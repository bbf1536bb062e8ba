/* foreign_table: makes one source's tables from TABLE (a file in sources/) under the name NAME. Include it once for each
 * source; it undefines both macros. */
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)

#define SOURCE(...)
#define MARK(text)
#define RULE(key, how, to) { key, how, to },
#define WORD(key, theirs, ours)
static const struct foreign_rule JOIN(NAME, _rules)[] = {
#include TABLE
	{ 0 }
};
#undef RULE
#undef WORD
#define RULE(key, how, to)
#define WORD(key, theirs, ours) { key, theirs, ours },
static const struct foreign_word JOIN(NAME, _words)[] = {
#include TABLE
	{ 0 }
};
#undef WORD
#undef MARK
#define WORD(key, theirs, ours)
#define MARK(text) text,
static const char *const JOIN(NAME, _marks)[] = {
#include TABLE
	NULL
};
#undef MARK
#undef SOURCE
#define MARK(text)
#define SOURCE(called, ...)                                                              \
	static const struct foreign JOIN(NAME, _source) = { .name = called,              \
							    .rules = JOIN(NAME, _rules), \
							    .words = JOIN(NAME, _words), \
							    .marks = JOIN(NAME, _marks), \
							    __VA_ARGS__ };
#include TABLE
#undef SOURCE
#undef MARK
#undef RULE
#undef WORD
#undef JOIN
#undef JOIN_
#undef NAME
#undef TABLE

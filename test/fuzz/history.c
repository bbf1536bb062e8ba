/* Arbitrary bytes as a recorded history: if they can be read, they are judged and shown. */
#include "kit.h"
#include "proof/check/checker.h"

#define CALLS_MAX 200 /* the search may take long, and is not tested here */

static void judge(const struct history_log *log)
{
	struct arena a = { 0 };
	struct check_report r;
	struct buf b = BUF_MAX(1 << 22);
	struct str text;

	history_check(log, &r, &a);
	CHECK(r.calls == log->n_calls);
	CHECK(r.n_findings <= check_violations(&r));
	check_print(&r, log, &b);
	text = buf_str(&b);
	while (text.n)
		CHECK(fuzz_harmless(str_cut(&text, '\n')));
	buf_free(&b);
	arena_free(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct history_log log;
	struct str why;

	if (history_parse(&log, str_n((const char *)data, size), &why)) {
		CHECK(why.n);
		CHECK(fuzz_harmless(why));
	} else if (log.n_calls <= CALLS_MAX) {
		judge(&log);
	}
	history_free(&log);
	return 0;
}

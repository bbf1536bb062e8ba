/* recorded: histories from the simulator (test/sim). */
#ifndef TEST_HISTORY_RECORDED_H
#define TEST_HISTORY_RECORDED_H

#include <unistd.h>

#include "kit/tmp.h"
#include "sim/sim.h"

static inline void record_or_exit(bool good, struct str why)
{
	if (good)
		return;
	fprintf(stderr, "recorded: %.*s\n", STRF(why));
	exit(1);
}

/* Runs the plan, and reads what was recorded. */
static inline void record(struct sim_plan plan, struct history_log *out)
{
	char folder[64], path[80];
	struct script script;
	struct buf why = BUF_MAX(1 << 16);
	struct str fault;
	size_t calls;

	record_or_exit(tmp_make(folder, sizeof(folder), "history"), STR("no folder"));
	snprintf(path, sizeof(path), "%s/h.jsonl", folder);
	plan.history = path;
	record_or_exit(agents_run(&plan, &script, &why, &calls), buf_str(&why));
	record_or_exit(history_load(out, path, &fault) == 0, fault);
	unlink(path);
	rmdir(folder);
	script_free(&script);
	buf_free(&why);
}

#endif

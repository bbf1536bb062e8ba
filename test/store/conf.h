/*
 * conf: functions that the parts of the conformance suite share. Every test works in its own queue
 * in the store that PAWL_TEST_STORE names; "{dir}" in it stands for a new folder. The place must
 * outlive a handle: mem:NAME, not mem:.
 *
 * Times are counted in ticks, because the tests must wait for a store with its own clock. A tick is
 * a minute if the store obeys env.opt.wall and env.opt.boot, otherwise less than a second.
 */
#ifndef TEST_STORE_CONF_H
#define TEST_STORE_CONF_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "kit/skip.h"
#include "store/store.h"

struct conf {
	char queue[40];
	struct store_error err;
	struct store_env env;
	struct store *s;
	struct arena a;
};

/* Opens a new queue in c->s. conf_setup_closed only creates the queue: a process that forks must
 * not have a store open. */
int conf_setup(void **state);
int conf_setup_closed(void **state);
int conf_teardown(void **state);

const char *conf_uri(void);
/* Can another process see the store? */
bool conf_shared(void);
struct store *conf_open(struct conf *c, enum store_mode mode);
void conf_reopen(struct conf *c);

int64_t conf_now(struct conf *c);
int64_t conf_tick(void);
void conf_advance(int64_t ms);
bool conf_fake_clock(void);
int64_t conf_real_ms(void);

/* A task: key "task/ID", status 1, LANE_READY, class 2, times now. */
struct record conf_task(struct conf *c, const char *id);
struct str conf_key(struct conf *c, const char *id);
struct strs conf_list(struct conf *c, const char *words); /* split at spaces */

int conf_put(struct conf *c, struct record *r);
int conf_put_all(struct conf *c, struct record *r, size_t n);
int conf_drop(struct conf *c, struct str key);
int conf_modify(struct conf *c, edit_fn *fn, void *ctx);
/* An edit that follows a plan; ctx: struct conf_plan. */
struct conf_plan {
	struct record *put;
	struct str drop, log;
	int rc;
	const struct store_env *env;
};
int conf_follow(struct edit *e, void *ctx);
/* An edit that puts the record at the key with one more 'x' in the hot part; ctx: struct str. */
int conf_append_x(struct edit *e, void *ctx);
int conf_log_length(struct conf *c);

/* NULL if there is none. */
struct record *conf_get(struct conf *c, struct str key);
/* The ids of the answer, each followed by a space. */
const char *conf_scan(struct conf *c, const struct query *q);
void conf_same(const struct record *want, const struct record *have);

uint32_t conf_random(uint64_t *seed, uint32_t limit);

/* Collects ids like conf_scan(). */
struct id_list {
	struct arena *a;
	struct buf ids;
};
int conf_add_id(const struct record *r, void *ctx);

#define CONF_TEST(f) cmocka_unit_test_setup_teardown(f, conf_setup, conf_teardown)
#define CONF_TEST_CLOSED(f) cmocka_unit_test_setup_teardown(f, conf_setup_closed, conf_teardown)

int conf_records(void), conf_places(void), conf_overlay(void), conf_select(void), conf_log(void);
int conf_process(void);

#endif

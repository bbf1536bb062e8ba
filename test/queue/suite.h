/*
 * suite: functions that the tests of the queue share. Every test works in its own queue in the
 * store that PAWL_TEST_STORE names ("{dir}" in it stands for a new folder), only through
 * queue_call().
 *
 * Calls are written as text, "claim id=a new_token=T ttl=2t": the operation, then its arguments. A
 * list has commas. A duration is in ms, or in ticks with the suffix `t`. A time is "+2t" from now.
 * '_' stands for a space in statuses and classes. The agent is "ann" unless named.
 *
 * Time is counted in ticks. The program is linked with its own os_wall_ms() and os_boot_ms(), which
 * stand still until advance(). If the store has its own clock, the tests wait for it, with shorter
 * ticks.
 */
#ifndef TEST_QUEUE_SUITE_H
#define TEST_QUEUE_SUITE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "kit/skip.h"
#include "queue/queue.h"

struct suite {
	char name[40];
	struct queue_config config;
	struct queue *q;
	struct arena a;
};

int suite_setup(void **state);
int suite_teardown(void **state);
#define QUEUE_TEST(f) cmocka_unit_test_setup_teardown(f, suite_setup, suite_teardown)

/* Is the queue behind a server? */
bool is_served(void);
/* The suite of a test that a server makes impossible: then the test is skipped. */
struct suite *unless_served(void **state, const char *reason);

#define PRINTF(n) __attribute__((format(printf, n, n + 1)))

/* A second handle on the same queue with a fault: "modify:1:lost" loses the reply of its first
 * change. */
struct queue *open_faulty(struct suite *s, const char *fault);
/* Call it after a change of s->config. */
void reopen(struct suite *s);

struct request parse(struct suite *s, const char *text);
struct answer *call(struct suite *s, const char *fmt, ...) PRINTF(2);
struct answer *call_on(struct suite *s, struct queue *q, const char *fmt, ...) PRINTF(3);
/* The call must succeed. */
struct answer *ok(struct suite *s, const char *fmt, ...) PRINTF(2);
/* The call must be refused with this code, and the whole queue must be unchanged. */
struct answer *refused(struct suite *s, enum result code, const char *fmt, ...) PRINTF(3);
struct task *show(struct suite *s, const char *id);
/* The task must have this status. */
struct task *expect_status(struct suite *s, const char *id, enum status status);
/* "a b c": the ids of the answer's tasks or candidates; of candidates only the eligible ones. */
const char *ids(struct suite *s, const struct answer *ans);
/* Everything that can be read from the queue, as bytes. */
struct str dump(struct suite *s);
void same_dump(struct str before, struct str after, const char *what);
/* The number of events with that name for the task (or for the queue: ""). */
int count_events(struct suite *s, const char *id, const char *name);

int64_t tick(void);
/* Can the test set the time? If not, it must wait. */
bool clock_is_ours(void);
void advance(int64_t ms);
/* on: each look at the clock advances it by a millisecond. */
void creep(bool on);

int create_tests(void), link_tests(void), remove_tests(void), lease_tests(void), repeat_tests(void),
	lost_tests(void), read_tests(void), selection_tests(void), typed_tests(void),
	operator_tests(void), prospects_tests(void), can_tests(void), undo_tests(void);

#endif

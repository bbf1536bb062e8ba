/* Histories of drivers, written by hand: each kind of violation, and a similar history that is correct. Leases are 100 ms. */
#include "kit.h"

#define A "1111111111111111"
#define B "2222222222222222"

#define SEEN(status, fence) \
	"'task':{'id':'k0','status':'" status "','priority':0,'fence':" fence ",'version':1}"
#define OK(status) "'code':'SUCCESS'," SEEN(status, "0")
#define REFUSED "'code':'LOST_LOCK'"
#define TAKE(token) "'op':'TAKE','new_token':'" token "','ttl':100"
#define DONE_BY(token) "'op':'DONE','id':'k0','token':'" token "'"
#define BEAT(token) "'op':'HEARTBEAT','id':'k0','token':'" token "','ttl':100"
#define GIVEN(fence, most, least)                                                \
	"'code':'SUCCESS'," SEEN("In Progress", fence) ",'lock':{'fence':" fence \
						       ",'expires_at':" most ",'ttl':" least "}"
#define SHOW_END(status) "{'id':'k0','status':'" status "','priority':0,'fence':0,'version':1}"

/* Given at 10 to 12 ms: a lease of at least 100 ms, which surely ends at 113. */
#define LEASED(token_fence) GIVEN(token_fence, "113", "100")
#define UNLIMITED GIVEN("0", "0", "0")

static struct text start(void)
{
	struct text t = { .b = BUF_MAX(1 << 20) };

	buf_addf(&t.b, "%s\"driver\",\"driver\":\"./x\"%s}}\n", HEAD_BEGIN, HEAD_REST);
	call(&t, 1, "a0", "'op':'CREATE','id':'k0'", OK("Ready"));
	return t;
}

static void end(struct text *t, const char *status)
{
	final(t, 900, "k0", status);
}

static void test_holders(void **state)
{
	struct text t = start();

	(void)state;
	call(&t, 10, "a1", TAKE(A), LEASED("0"));
	call(&t, 60, "a2", TAKE(B), GIVEN("0", "163", "100"));
	call(&t, 70, "a2", DONE_BY(B), OK("Done"));
	end(&t, SHOW_END("Done"));
	assert_int_equal(found(&t), KIND(HOLDERS));

	t = start(); /* the lease may have expired */
	call(&t, 10, "a1", TAKE(A), LEASED("0"));
	call(&t, 110, "a2", TAKE(B), GIVEN("0", "213", "100"));
	call(&t, 120, "a2", DONE_BY(B), OK("Done"));
	end(&t, SHOW_END("Done"));
	CLEAN(t);

	t = start(); /* a call without an answer may have begun the lease earlier */
	send(&t, 9, "a1", TAKE(A));
	call(&t, 80, "a1", TAKE(A), GIVEN("0", "183", "100"));
	call(&t, 120, "a2", TAKE(B), GIVEN("0", "223", "100"));
	call(&t, 130, "a2", DONE_BY(B), OK("Done"));
	end(&t, SHOW_END("Done"));
	CLEAN(t);

	t = start(); /* the renewal makes it last */
	call(&t, 10, "a1", TAKE(A), LEASED("0"));
	call(&t, 90, "a1", BEAT(A), GIVEN("0", "193", "100"));
	call(&t, 140, "a2", TAKE(B), GIVEN("0", "243", "100"));
	call(&t, 150, "a2", DONE_BY(B), OK("Done"));
	end(&t, SHOW_END("Done"));
	assert_int_equal(found(&t), KIND(HOLDERS));
}

/* Whether the first completion took effect before the second grant or after it, the grant was wrong. */
static void test_done_is_no_excuse(void **state)
{
	struct text t = start();

	(void)state;
	send(&t, 10, "a1", TAKE(A));
	send(&t, 11, "a2", TAKE(B));
	get(&t, 12, 2, 12, UNLIMITED);
	send(&t, 13, "a1", DONE_BY(A));
	get(&t, 14, 3, 14, UNLIMITED);
	get(&t, 15, 4, 15, OK("Done"));
	end(&t, SHOW_END("Done"));
	assert_int_equal(found(&t), KIND(HOLDERS));

	t = start(); /* the first holder was told that it had lost the lock */
	call(&t, 10, "a1", TAKE(A), LEASED("0"));
	call(&t, 20, "a1", BEAT(A), REFUSED);
	call(&t, 30, "a2", TAKE(B), GIVEN("0", "133", "100"));
	call(&t, 40, "a2", DONE_BY(B), OK("Done"));
	end(&t, SHOW_END("Done"));
	CLEAN(t);
}

static void test_no_lease(void **state)
{
	struct text t = start();

	(void)state;
	call(&t, 10, "a1", TAKE(A), UNLIMITED);
	call(&t, 800, "a2", TAKE(B), UNLIMITED);
	call(&t, 810, "a2", DONE_BY(B), OK("Done"));
	end(&t, SHOW_END("Done"));
	assert_int_equal(found(&t), KIND(HOLDERS));

	t = start(); /* the holder's process was killed, so its lock may be free */
	call(&t, 10, "a1", TAKE(A), UNLIMITED);
	add(&t, "{'t':%lld,'event':'kill','agent':'a1'}", NS(20));
	call(&t, 30, "a2", TAKE(B), UNLIMITED);
	call(&t, 40, "a2", DONE_BY(B), OK("Done"));
	end(&t, SHOW_END("Done"));
	CLEAN(t);

	t = start(); /* its late result */
	call(&t, 10, "a1", TAKE(A), UNLIMITED);
	add(&t, "{'t':%lld,'event':'kill','agent':'a1'}", NS(20));
	call(&t, 30, "a2", TAKE(B), UNLIMITED);
	call(&t, 40, "a1", DONE_BY(A), OK("Done"));
	end(&t, SHOW_END("Done"));
	assert_int_equal(found(&t), KIND(STALE));

	t = start(); /* both may have been first, but not both at once */
	send(&t, 10, "a1", TAKE(A));
	send(&t, 11, "a2", TAKE(B));
	get(&t, 30, 2, 30, UNLIMITED);
	get(&t, 31, 3, 31, UNLIMITED);
	call(&t, 40, "a2", DONE_BY(B), OK("Done"));
	end(&t, SHOW_END("Done"));
	assert_int_equal(found(&t), KIND(HOLDERS));
}

static void test_late(void **state)
{
	struct text t = start();

	(void)state;
	call(&t, 10, "a1", TAKE(A), LEASED("0"));
	call(&t, 200, "a2", TAKE(B), GIVEN("0", "303", "100"));
	call(&t, 210, "a1", DONE_BY(A), OK("Done"));
	end(&t, SHOW_END("Done"));
	assert_int_equal(found(&t), KIND(STALE));

	t = start(); /* refused, as it should be */
	call(&t, 10, "a1", TAKE(A), LEASED("0"));
	call(&t, 200, "a2", TAKE(B), GIVEN("0", "303", "100"));
	call(&t, 210, "a1", DONE_BY(A), REFUSED);
	call(&t, 220, "a2", DONE_BY(B), OK("Done"));
	end(&t, SHOW_END("Done"));
	CLEAN(t);

	t = start(); /* nobody else had it: without a fence, it may have been acquired again */
	call(&t, 10, "a1", TAKE(A), LEASED("0"));
	call(&t, 210, "a1", DONE_BY(A), OK("Done"));
	end(&t, SHOW_END("Done"));
	CLEAN(t);

	t = start(); /* with a fence, the end of the lease ends the right to write */
	call(&t, 10, "a1", TAKE(A), LEASED("1"));
	call(&t, 210, "a1", DONE_BY(A), OK("Done"));
	end(&t, SHOW_END("Done"));
	assert_int_equal(found(&t), KIND(STALE));

	t = start(); /* a driver that renews by itself */
	call(&t, 10, "a1", TAKE(A), GIVEN("1", "0", "100"));
	call(&t, 210, "a1", DONE_BY(A), OK("Done"));
	end(&t, SHOW_END("Done"));
	CLEAN(t);
}

static void test_done(void **state)
{
	struct text t = start();

	(void)state;
	call(&t, 10, "a1", TAKE(A), LEASED("0"));
	call(&t, 60, "a2", TAKE(B), GIVEN("0", "163", "100"));
	call(&t, 70, "a1", DONE_BY(A), OK("Done"));
	call(&t, 80, "a2", DONE_BY(B), OK("Done"));
	end(&t, SHOW_END("Done"));
	assert_int_equal(found(&t), KIND(HOLDERS) | KIND(DONE));

	t = start(); /* a repeat */
	call(&t, 10, "a1", TAKE(A), LEASED("0"));
	send(&t, 70, "a1", DONE_BY(A));
	call(&t, 80, "a1", DONE_BY(A), OK("Done"));
	call(&t, 300, "a1", DONE_BY(A), OK("Done"));
	end(&t, SHOW_END("Done"));
	CLEAN(t);

	t = start(); /* given away after it was completed */
	call(&t, 10, "a1", TAKE(A), LEASED("0"));
	call(&t, 20, "a1", DONE_BY(A), OK("Done"));
	call(&t, 300, "a2", TAKE(B), GIVEN("0", "403", "100"));
	end(&t, SHOW_END("Done"));
	assert_int_equal(found(&t), KIND(HOLDERS));
}

static void test_end(void **state)
{
	struct text t = start();

	(void)state;
	end(&t, "null");
	assert_int_equal(found(&t), KIND(LOST));

	t = start();
	call(&t, 10, "a1", TAKE(A), LEASED("0"));
	call(&t, 20, "a1", DONE_BY(A), OK("Done"));
	end(&t, SHOW_END("Ready"));
	assert_int_equal(found(&t), KIND(LOST));

	t = start();
	call(&t, 10, "a1", TAKE(A), UNLIMITED);
	end(&t, SHOW_END("In Progress"));
	assert_int_equal(found(&t), KIND(STUCK));

	t = start(); /* a run that was cut off says nothing about the end */
	call(&t, 10, "a1", TAKE(A), UNLIMITED);
	CLEAN(t);
}

static void test_fence(void **state)
{
	struct text t = start();

	(void)state;
	call(&t, 10, "a1", TAKE(A), LEASED("7"));
	call(&t, 200, "a2", TAKE(B), GIVEN("7", "303", "100"));
	call(&t, 210, "a2", DONE_BY(B), OK("Done"));
	end(&t, SHOW_END("Done"));
	assert_int_equal(found(&t), KIND(FENCE));

	t = start();
	call(&t, 10, "a1", TAKE(A), LEASED("7"));
	call(&t, 200, "a2", TAKE(B), GIVEN("8", "303", "100"));
	call(&t, 210, "a2", DONE_BY(B), OK("Done"));
	end(&t, SHOW_END("Done"));
	CLEAN(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_holders),
		cmocka_unit_test(test_no_lease),
		cmocka_unit_test(test_done_is_no_excuse),
		cmocka_unit_test(test_late),
		cmocka_unit_test(test_done),
		cmocka_unit_test(test_end),
		cmocka_unit_test(test_fence),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

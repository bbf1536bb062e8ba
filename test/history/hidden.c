/* Histories whose errors are hard to see, and correct ones that look wrong. */
#include "kit.h"

#define K1 "1111111111111111"
#define K2 "2222222222222222"
#define K3 "3333333333333333"

#define T(id, status, fence, version, more)                                        \
	"'task':{'id':'" id "','status':'" status "','priority':2,'fence':" #fence \
	",'version':" #version more "}"
#define OK(id, status, fence, version, more) "'code':'SUCCESS'," T(id, status, fence, version, more)
#define MADE(id) OK(id, "Ready", 0, 1, "")
#define NEW(id) "'op':'CREATE','id':'" id "','title':'x'"
#define LOOK(id) "'op':'SHOW','id':'" id "'"
#define CLAIM(id, token, ttl) "'op':'CLAIM','id':'" id "','new_token':'" token "','ttl':" #ttl
#define BY(op, id, token) "'op':'" op "','id':'" id "','token':'" token "'"
#define LOCK(holder, token, until, ttl) \
	",'lock':{'holder':'" holder "','token':'" token "','expires_at':" #until ",'ttl':" #ttl "}"
#define WORKED(attempts) ",'attempts':" #attempts
#define GRANT(fence, token, until, ttl) \
	",'lock':{'fence':" #fence ",'expires_at':" #until ",'ttl':" #ttl ",'token':'" token "'}"
/* The first claim of a task, for 100 ms. */
#define GOT(id, who, token, until)                                          \
	OK(id, "In Progress", 1, 2, WORKED(1) LOCK(who, token, until, 100)) \
	GRANT(1, token, until, 100)

/* --- a store that forgets ------------------------------------------------------------------------ */

/* t1 as a read shows it after it was created, claimed, abandoned, taken over and released, and made
 * dependent on t0. */
static const char *const whole =
	OK("t1", "Ready", 2, 4,
	   ",'attempts':2,'depends':['t0'],'open_depends':1,'parent':'p','labels':['red'],"
	   "'type':'bug','not_before':1500,'assignee':'a9'");

static struct text much(const char *look)
{
	struct text t = begin();

	call(&t, 0, "a1", NEW("t0"), MADE("t0"));
	call(&t, 3, "a1", NEW("p"), MADE("p"));
	call(&t, 6, "a1",
	     NEW("t1") ",'depends':['t0'],'parent':'p','labels':['red'],'type':'bug','not_before':1500,'assignee':'a9'",
	     OK("t1", "Ready", 0, 1,
		",'depends':['t0'],'open_depends':1,'parent':'p','labels':['red'],'type':'bug',"
		"'not_before':1500,'assignee':'a9'"));
	call(&t, 10, "a1", CLAIM("t1", K1, 100),
	     OK("t1", "In Progress", 1, 2,
		WORKED(1) LOCK(
			"a1", K1, 1111,
			100) ",'depends':['t0'],'open_depends':1,'parent':'p','labels':['red'],'type':'bug',"
			     "'not_before':1500,'assignee':'a9'") GRANT(1, K1, 1111, 100));
	call(&t, 200, "a2", CLAIM("t1", K2, 100),
	     OK("t1", "In Progress", 2, 3,
		WORKED(2) LOCK(
			"a2", K2, 1301,
			100) ",'abandoned':1,'depends':['t0'],'open_depends':1,'parent':'p','labels':['red'],"
			     "'type':'bug','not_before':1500,'assignee':'a9'")
		     GRANT(2, K2, 1301, 100));
	call(&t, 210, "a2", BY("RELEASE", "t1", K2), whole);
	call(&t, 220, "a3", LOOK("t1"), look);
	return t;
}

/* A field that is empty in an answer is empty, not unknown. */
static void forgotten(void **state)
{
	static const char *const fields[] = {
		",'attempts':2", ",'assignee':'a9'",  ",'depends':['t0']", ",'open_depends':1",
		",'parent':'p'", ",'labels':['red']", ",'type':'bug'",     ",'not_before':1500",
	};
	struct text t = much(whole);

	(void)state;
	CLEAN(t);
	for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++) {
		char less[600];
		const char *at = strstr(whole, fields[i]);

		snprintf(less, sizeof(less), "%.*s%s", (int)(at - whole), whole,
			 at + strlen(fields[i]));
		t = much(less);
		CAUGHT(t, LINEAR);
	}
}

static void fence_zero(void **state)
{
	struct text t = begin();

	(void)state;
	call(&t, 0, "a1", NEW("t1"), MADE("t1"));
	call(&t, 10, "a1", CLAIM("t1", K1, 100), GOT("t1", "a1", K1, 1111));
	call(&t, 20, "a2", LOOK("t1"),
	     OK("t1", "In Progress", 0, 2, WORKED(1) LOCK("a1", K1, 1111, 100)));
	CAUGHT(t, LINEAR);

	t = begin();
	call(&t, 0, "a1", NEW("t1"), MADE("t1"));
	call(&t, 10, "a1", CLAIM("t1", K1, 100), GOT("t1", "a1", K1, 1111));
	call(&t, 20, "a2", LOOK("t1"),
	     OK("t1", "In Progress", 1, 0, WORKED(1) LOCK("a1", K1, 1111, 100)));
	CAUGHT(t, LINEAR);
}

/* --- one request, done twice --------------------------------------------------------------------- */

#define TAKE(token) "'op':'TAKE','new_token':'" token "','ttl':100"

/* The answer to `next --claim` is lost. While that task is held, the repeat must get the same
 * task. */
static void taken_twice(void **state)
{
	const char *held = OK("t1", "In Progress", 1, 2, WORKED(1) LOCK("a1", K1, 1115, 100));
	struct text t;

	(void)state;
	/* while the lease lasts, and after it expired */
	for (int when = 20; when <= 200; when += 180) {
		t = begin();
		call(&t, 0, "a1", NEW("t1"), MADE("t1"));
		call(&t, 3, "a1", NEW("t2"), MADE("t2"));
		send(&t, 10, "a1", TAKE(K1));
		call(&t, 17, "a2", LOOK("t1"), held);
		if (when == 20) {
			call(&t, 20, "a1", TAKE(K1), GOT("t2", "a1", K1, 1121));
			CAUGHT(t, LINEAR);
		} else {
			call(&t, 120, "a1", "'op':'LOCK_BREAK','id':'t1','reason':'so'",
			     OK("t1", "In Progress", 1, 3, WORKED(1)));
			call(&t, 200, "a1", TAKE(K1), GOT("t2", "a1", K1, 1301));
			CLEAN(t);
		}
	}
	/* the repeat gets the first answer */
	t = begin();
	call(&t, 0, "a1", NEW("t1"), MADE("t1"));
	call(&t, 3, "a1", NEW("t2"), MADE("t2"));
	send(&t, 10, "a1", TAKE(K1));
	call(&t, 20, "a1", TAKE(K1),
	     OK("t1", "In Progress", 1, 2, WORKED(1) LOCK("a1", K1, 1115, 100))
		     GRANT(1, K1, 1115, 100) ",'repeated':true");
	CLEAN(t);
}

/* A create without an id: the queue creates one. */
static void made_twice(void **state)
{
	const char *make = "'op':'CREATE','title':'x','request_id':'r'";
	struct text t = begin();

	(void)state;
	send(&t, 0, "a1", make);
	call(&t, 10, "a1", make, MADE("t1") ",'repeated':true");
	call(&t, 20, "a1", LOOK("t1"), MADE("t1"));
	CLEAN(t);

	/* the repeat creates another task, and the first one exists as well */
	t = begin();
	send(&t, 0, "a1", make);
	call(&t, 10, "a1", make, MADE("t2"));
	call(&t, 20, "a1", LOOK("t1"), MADE("t1"));
	CAUGHT(t, LINEAR);

	/* one call cannot have created two tasks */
	t = begin();
	call(&t, 0, "a1", NEW("p"), MADE("p"));
	send(&t, 5, "a1", "'op':'CREATE','title':'x','parent':'p'");
	call(&t, 20, "a1", LOOK("t1"), OK("t1", "Ready", 0, 1, ",'parent':'p'"));
	call(&t, 30, "a1", LOOK("t2"), OK("t2", "Ready", 0, 1, ",'parent':'p'"));
	CAUGHT(t, LINEAR);
}

/* Naming a created id, in any spelling, or trying to create it, does not change which call created
 * it. */
static void made_and_named(void **state)
{
	struct text t = begin();

	(void)state;
	call(&t, 0, "a1", LOOK("T1"), "'code':'NOT_FOUND'");
	send(&t, 5, "a1", "'op':'CREATE','title':'x'");
	call(&t, 20, "a2", NEW("t1"), "'code':'CONFLICT'," T("t1", "Ready", 0, 1, ""));
	CLEAN(t);
}

/* --- times of unanswered calls ------------------------------------------------------------------- */

/* The only trace of the time at which t2 was created is in the answer that granted it. */
static void seen_as_next(void **state)
{
	static const char *const done = BY("DONE", "t1", K1) ",'claim_next':1,'new_token':'" K2
							     "','ttl':100";
	struct text t = begin();

	(void)state;
	call(&t, 0, "a1", NEW("t1"), MADE("t1"));
	call(&t, 10, "a1", CLAIM("t1", K1, 100), GOT("t1", "a1", K1, 1111));
	send(&t, 15, "a2", NEW("t2") ",'depends':['t1']");
	call(&t, 30, "a1", done,
	     OK("t1", "Done", 1, 3,
		WORKED(1) ",'done_at':1031") ",'next':{'id':'t2','status':'In Progress','priority':2,'fence':1,'version':2,'created_at':1024"
					     ",'depends':['t1']" WORKED(1) LOCK(
						     "a1", K2, 1131,
						     100) "},'next_lock':{'fence':1,'expires_at':1131,'ttl':100,'token':'" K2
							  "'}");
	CLEAN(t);
}

/* A read takes its time first: it may show the effect of a later call, if only in a count. */
static void seen_by_count(void **state)
{
	struct text t;
	int look;

	(void)state;
	for (int wrong = 0; wrong < 2; wrong++) {
		t = begin();
		call(&t, 0, "a1", NEW("t1"), MADE("t1"));
		call(&t, 3, "a1", NEW("t2") ",'depends':['t1']",
		     OK("t2", "Ready", 0, 1, ",'depends':['t1'],'open_depends':1"));
		call(&t, 10, "a1", CLAIM("t1", K1, 100), GOT("t1", "a1", K1, 1111));
		look = send(&t, 15, "a2", LOOK("t2"));
		send(&t, 20, "a1", BY("DONE", "t1", K1));
		get(&t, 40, look, 1016, OK("t2", "Ready", 0, 1, ",'depends':['t1']"));
		call(&t, 50, "a2", LOOK("t1"), OK("t1", "Done", 1, 3, WORKED(1) ",'done_at':1030"));
		if (wrong) /* not done after all */
			call(&t, 60, "a2", LOOK("t2"),
			     OK("t2", "Ready", 0, 1, ",'depends':['t1'],'open_depends':1"));
		if (wrong)
			CAUGHT(t, LINEAR);
		else
			CLEAN(t);
	}
}

/* A heartbeat that does not extend the lease leaves no trace of its time. The verdict must not
 * depend on a guess. */
static void no_trace(void **state)
{
	struct text t = begin();

	(void)state;
	call(&t, 0, "a1", NEW("t1"), MADE("t1"));
	call(&t, 3, "a1", NEW("t2") ",'parent':'t1'", OK("t2", "Ready", 0, 1, ",'parent':'t1'"));
	call(&t, 10, "a1", CLAIM("t1", K1, 1000),
	     OK("t1", "In Progress", 1, 2,
		WORKED(1) LOCK("a1", K1, 2011, 1000) ",'open_subtasks':1")
		     GRANT(1, K1, 2011, 1000));
	call(&t, 20, "a2", CLAIM("t2", K2, 100),
	     OK("t2", "In Progress", 1, 2, WORKED(1) LOCK("a2", K2, 1121, 100) ",'parent':'t1'")
		     GRANT(1, K2, 1121, 100));
	call(&t, 50, "a3", "'op':'COMMENT','id':'t1','text':'hm'",
	     OK("t1", "In Progress", 1, 2,
		WORKED(1) LOCK("a1", K1, 2011, 1000) ",'open_subtasks':1"));
	send(&t, 55, "a1", BY("HEARTBEAT", "t1", K1) ",'ttl':10");
	call(&t, 60, "a3", LOOK("t1"),
	     OK("t1", "In Progress", 1, 3,
		WORKED(1) LOCK("a1", K1, 2011, 1000) ",'open_subtasks':1"));
	send(&t, 70, "a2", BY("RELEASE", "t2", K2)); /* in time: the lease had not expired */
	call(&t, 250, "a1", BY("UPDATE", "t1", K1) ",'type':'bug'",
	     OK("t1", "In Progress", 1, 4,
		WORKED(1) LOCK("a1", K1, 2011,
			       1000) ",'open_subtasks':1,'type':'bug','updated_at':1251"));
	call(&t, 300, "a3", CLAIM("t2", K3, 100),
	     OK("t2", "In Progress", 2, 4, WORKED(2) LOCK("a3", K3, 1401, 100) ",'parent':'t1'")
		     GRANT(2, K3, 1401, 100));
	CLEAN(t);
}

/* --- the next task ------------------------------------------------------------------------------- */

/* t1 is done, and its dependent t2 comes next: as it was, and as the repeat shows it. */
static void next_of_family(void **state)
{
	static const char *const done = BY("DONE", "t1", K1) ",'claim_next':1,'new_token':'" K2
							     "','ttl':100";
	static const char *const finished = OK("t1", "Done", 1, 3, WORKED(1) ",'done_at':1021");
	static const char *const next =
		",'next':{'id':'t2','status':'In Progress','priority':2,'fence':1,'version':2,'depends':['t1']" WORKED(
			1)
			LOCK("a1", K2, 1121,
			     100) "},'next_lock':{'fence':1,'expires_at':1121,'ttl':100,'token':'" K2
				  "'}";
	char with[1500], again[1500];

	(void)state;
	snprintf(with, sizeof(with), "%s%s", finished, next);
	snprintf(again, sizeof(again), "%s%s,'repeated':true", finished, next);
	/* 0: correct; 1: t2 is skipped; 2: the repeat lost it; 3: the repeat never had it */
	for (int wrong = 0; wrong < 4; wrong++) {
		struct text t = begin();

		call(&t, 0, "a1", NEW("t1"), MADE("t1"));
		call(&t, 3, "a1", NEW("t2") ",'depends':['t1']",
		     OK("t2", "Ready", 0, 1, ",'depends':['t1'],'open_depends':1"));
		call(&t, 10, "a1", CLAIM("t1", K1, 100), GOT("t1", "a1", K1, 1111));
		call(&t, 20, "a1", done,
		     wrong == 1 ? OK("t1", "Done", 1, 3, WORKED(1) ",'done_at':1021") ",'next':null"
				: with);
		if (wrong != 1)
			call(&t, 30, "a1", done,
			     wrong == 0 ? again
			     : wrong == 2
				     ? OK("t1", "Done", 1, 3,
					  WORKED(1) ",'done_at':1021") ",'next':null,'repeated':true"
				     : OK("t1", "Done", 1, 3,
					  WORKED(1) ",'done_at':1021") ",'repeated':true");
		if (wrong)
			CAUGHT(t, LINEAR);
		else
			CLEAN(t);
	}
}

/* --- the archive --------------------------------------------------------------------------------- */

#define ARCHIVE "'op':'ARCHIVE'"
#define CANCEL "'op':'CANCEL','id':'t1','reason':'no'"

static struct text canceled(void)
{
	struct text t = begin();

	call(&t, 0, "a1", NEW("t1"), MADE("t1"));
	call(&t, 3, "a1", NEW("t2"), MADE("t2"));
	call(&t, 10, "a1", CANCEL, OK("t1", "Canceled", 0, 2, ""));
	return t;
}

static void archived(void **state)
{
	static const char *const gone =
		"'code':'SUCCESS','tasks':[{'id':'t1','status':'Canceled','priority':2,"
		"'fence':0,'version':3,'archived_at':1021}]";
	static const char *const reopen = "'op':'REOPEN','id':'t1','reason':'so'";
	struct text t;

	(void)state;
	for (int one = 0; one < 2; one++) {
		t = canceled();
		call(&t, 20, "a1", one ? ARCHIVE ",'id':'t1'" : ARCHIVE, gone);
		call(&t, 30, "a1", ARCHIVE ",'id':'t1'", "'code':'SUCCESS','tasks':[]");
		call(&t, 40, "a1", ARCHIVE ",'id':'t2'",
		     "'code':'MISCONFIGURED'," T("t2", "Ready", 0, 1, ""));
		call(&t, 50, "a1", ARCHIVE ",'id':'t3'", "'code':'NOT_FOUND'");
		call(&t, 60, "a1", reopen, OK("t1", "Ready", 0, 4, ""));
		CLEAN(t);
	}
	/* archived twice */
	t = canceled();
	call(&t, 20, "a1", ARCHIVE, gone);
	call(&t, 30, "a1", ARCHIVE ",'id':'t1'",
	     "'code':'SUCCESS','tasks':[{'id':'t1','status':'Canceled','priority':2,'fence':0,'version':4,"
	     "'archived_at':1031}]");
	CAUGHT(t, LINEAR);
	/* restored, but still shown as archived */
	t = canceled();
	call(&t, 20, "a1", ARCHIVE, gone);
	call(&t, 30, "a1", reopen, OK("t1", "Ready", 0, 4, ",'archived_at':1021"));
	CAUGHT(t, LINEAR);
	/* a task that has not ended */
	t = canceled();
	call(&t, 20, "a1", ARCHIVE ",'id':'t2'",
	     "'code':'SUCCESS','tasks':[{'id':'t2','status':'Ready','priority':2,'fence':0,'version':2,"
	     "'archived_at':1021}]");
	CAUGHT(t, LINEAR);
	/* archived by an unanswered call */
	for (int one = 0; one < 2; one++) {
		t = canceled();
		send(&t, 20, "a1", one ? ARCHIVE ",'id':'t1'" : ARCHIVE);
		call(&t, 40, "a1", LOOK("t1"), OK("t1", "Canceled", 0, 3, ",'archived_at':1033"));
		CLEAN(t);
	}
}

/* --- a claim that creates its task --------------------------------------------------------------- */

static void made_by_claim(void **state)
{
	struct text t;

	(void)state;
	for (int creates = 0; creates < 2; creates++) {
		t = creates ? begin_with(",\"claim_creates\":true") : begin();
		call(&t, 0, "a1", CLAIM("t1", K1, 100), GOT("t1", "a1", K1, 1101));
		if (creates)
			CLEAN(t);
		else
			CAUGHT(t, LINEAR);
	}
}

/* --- a change that becomes visible late ---------------------------------------------------------- */

/* Created at 1020, not yet visible at 1051. */
static void late(void **state)
{
	struct text t;

	(void)state;
	for (int far = 0; far < 2; far++) {
		t = begin_on(far ? "git" : "mem");
		call(&t, 0, "a1", NEW("t1"), MADE("t1"));
		send(&t, 10, "a1", CLAIM("t1", K1, 100));
		call(&t, 50, "a2", NEW("t1") ",'if_absent':1", "'existed':true," MADE("t1"));
		call(&t, 60, "a2", LOOK("t1"),
		     OK("t1", "In Progress", 1, 2, WORKED(1) LOCK("a1", K1, 1120, 100)));
		if (far)
			CLEAN(t);
		else
			CAUGHT(t, LINEAR);
	}
}

/* --- calls at once ------------------------------------------------------------------------------- */

#define DAY 86400000
#define UPDATE "'op':'UPDATE','id':'t1','priority':2,'request_id':'r'"
#define BY_HAND(token) "'op':'LOCK_ACQUIRE','id':'t1','new_token':'" token "'"

/* Of two calls with one request id, the first to be sent was made after the id was forgotten. */
static void made_a_day_later(void **state)
{
	struct text t = begin();
	int late, early;

	(void)state;
	call(&t, 0, "a1", NEW("t1"), MADE("t1"));
	late = send(&t, 10, "a1", UPDATE);
	early = send(&t, 11, "a1", UPDATE);
	get(&t, 13, early, 1012, OK("t1", "Ready", 0, 2, ""));
	get(&t, 20, late, 1012 + DAY, OK("t1", "Ready", 0, 3, ""));
	CLEAN(t);
}

/* The unanswered call was made a day before the answers in which its request id is forgotten. */
static void forgotten_a_day_later(void **state)
{
	struct text t = begin();

	(void)state;
	call(&t, 0, "a1", NEW("t1"), MADE("t1"));
	send(&t, 10, "a1", UPDATE);
	get(&t, 21, send(&t, 20, "a1", UPDATE), 1500 + DAY,
	    OK("t1", "Ready", 0, 2, "") ",'repeated':true");
	get(&t, 31, send(&t, 30, "a1", UPDATE), 1600 + DAY, OK("t1", "Ready", 0, 3, ""));
	CLEAN(t);
}

/* A request id may have been used by a call that names no task. */
static void id_of_a_cleanup(void **state)
{
	struct text t = begin();

	(void)state;
	call(&t, 0, "a1", NEW("t1"), MADE("t1"));
	call(&t, 10, "a1", "'op':'LOCK_CLEANUP','request_id':'r'", "'code':'SUCCESS','tasks':[]");
	call(&t, 20, "a1", UPDATE, "'code':'CONFLICT'");
	CLEAN(t);

	t = begin();
	call(&t, 0, "a1", NEW("t1"), MADE("t1"));
	call(&t, 20, "a1", UPDATE, "'code':'CONFLICT'");
	CAUGHT(t, LINEAR);
}

/* The task was removed and the token took another one, within the same ms. */
static void free_to_take(void **state)
{
	struct text t = begin();

	(void)state;
	call(&t, 0, "a1", NEW("t1"), MADE("t1"));
	call(&t, 10, "a1", TAKE(K1), GOT("t1", "a1", K1, 1111));
	call(&t, 20, "a1", NEW("t2"), MADE("t2"));
	get(&t, 31, send(&t, 30, "a1", BY("REMOVE", "t1", K1)), 1031,
	    OK("t1", "In Progress", 1, 2,
	       WORKED(1) ",'lock':{'holder':'a1','token':'" K1
			 "','acquired_at':1011,'expires_at':1111,'ttl':100}"));
	get(&t, 33, send(&t, 32, "a1", TAKE(K1)), 1031, GOT("t2", "a1", K1, 1131));
	CLEAN(t);
}

/* A next --claim without an answer was made after its repeat had lost the task. */
static void taken_late(void **state)
{
	struct text t = begin();

	(void)state;
	call(&t, 0, "a1", NEW("t1"), MADE("t1"));
	send(&t, 5, "a1", TAKE(K1));
	call(&t, 10, "a1", TAKE(K1), GOT("t1", "a1", K1, 1111));
	call(&t, 200, "a1", BY("RELEASE", "t1", K1), OK("t1", "Ready", 2, 4, WORKED(2)));
	CLEAN(t);
}

/* A claim keeps the fence of the lock that the agent acquired by hand, although that call was
 * repeated. */
static void claimed_by_hand(void **state)
{
	struct text t = begin();
	int again;

	(void)state;
	call(&t, 0, "a1", NEW("t1"), MADE("t1"));
	call(&t, 10, "a1", BY_HAND(K1),
	     OK("t1", "Ready", 1, 2, LOCK("a1", K1, 1111, 100)) GRANT(1, K1, 1111, 100));
	again = send(&t, 15, "a1", BY_HAND(K1));
	call(&t, 20, "a1", CLAIM("t1", K1, 100),
	     OK("t1", "In Progress", 1, 3, WORKED(1) LOCK("a1", K1, 1121, 100))
		     GRANT(1, K1, 1121, 100));
	get(&t, 202, again, 1201,
	    OK("t1", "In Progress", 2, 4, WORKED(1) LOCK("a1", K1, 1301, 100))
		    GRANT(2, K1, 1301, 100));
	assert_int_equal(found(&t) & KIND(FENCE), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(forgotten),        cmocka_unit_test(fence_zero),
		cmocka_unit_test(taken_twice),      cmocka_unit_test(made_twice),
		cmocka_unit_test(made_and_named),   cmocka_unit_test(seen_as_next),
		cmocka_unit_test(seen_by_count),    cmocka_unit_test(no_trace),
		cmocka_unit_test(next_of_family),   cmocka_unit_test(archived),
		cmocka_unit_test(made_by_claim),    cmocka_unit_test(late),
		cmocka_unit_test(made_a_day_later), cmocka_unit_test(forgotten_a_day_later),
		cmocka_unit_test(id_of_a_cleanup),  cmocka_unit_test(free_to_take),
		cmocka_unit_test(taken_late),       cmocka_unit_test(claimed_by_hand),
	};

	return cmocka_run_group_tests_name("hidden", tests, NULL, NULL);
}

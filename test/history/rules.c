/* Histories written by hand: each kind of violation, and a similar history that is correct. */
#include "kit.h"

#define TOKEN1 "1111111111111111"
#define TOKEN2 "2222222222222222"
#define TOKEN3 "3333333333333333"

#define CREATE "'op':'CREATE','id':'t1','title':'x'"
#define FRESH \
	"'code':'SUCCESS','task':{'id':'t1','status':'Ready','priority':2,'fence':0,'version':1}"
#define CLAIM(token) "'op':'CLAIM','id':'t1','new_token':'" token "'"
#define BY(op, token) "'op':'" op "','id':'t1','token':'" token "'"
#define SHOWN(status, fence, version, more)                                                       \
	"{'id':'t1','status':'" status "','priority':2,'fence':" fence ",'version':" version more \
	"}"
/* The task as it was created, and as its last holder left it. */
#define TASK(status, version) SHOWN(status, "0", version, "")
#define LEFT(status, fence, version, holder) SHOWN(status, fence, version, ",'attempts':" fence)
#define FINISHED(fence, version, holder, at) \
	SHOWN("Done", fence, version, ",'attempts':" fence ",'done_at':" at)
#define HELD_AND(fence, version, holder, token, until, more)                        \
	SHOWN("In Progress", fence, version,                                        \
	      ",'attempts':" fence ",'lock':{'holder':'" holder "','token':'" token \
	      "','expires_at':" until ",'ttl':100}" more)
#define HELD(fence, version, holder, token, until) \
	HELD_AND(fence, version, holder, token, until, "")
#define GRANT(fence, token, until) \
	"'lock':{'fence':" fence ",'expires_at':" until ",'ttl':100,'token':'" token "'}"
#define CLAIMED(fence, version, holder, token, until)                  \
	"'code':'SUCCESS','task':" HELD(fence, version, holder, token, \
					until) "," GRANT(fence, token, until)
/* The task after its lease expired. */
#define OVER(fence, version, holder, token, until) \
	HELD_AND(fence, version, holder, token, until, ",'abandoned':1")
#define TOOK_OVER(fence, version, holder, token, until)                \
	"'code':'SUCCESS','task':" OVER(fence, version, holder, token, \
					until) "," GRANT(fence, token, until)
#define RENEWED(version, until)                                     \
	"'code':'SUCCESS','task':" HELD("1", version, "a1", TOKEN1, \
					until) ",'lock':{"          \
					       "'fence':1,'expires_at':" until ",'ttl':100}"
#define SAYS(code, task) "'code':'" code "','task':" task

/* t1 exists, and a1 holds it with fence 1 until 1111. */
static struct text held(void)
{
	struct text t = begin();

	call(&t, 0, "a1", CREATE, FRESH);
	call(&t, 10, "a1", CLAIM(TOKEN1), CLAIMED("1", "2", "a1", TOKEN1, "1111"));
	return t;
}

static void fences(void **state)
{
	struct text t = held();

	(void)state;
	call(&t, 20, "a1", BY("RELEASE", TOKEN1), SAYS("SUCCESS", LEFT("Ready", "1", "3", "a1")));
	call(&t, 30, "a2", CLAIM(TOKEN2), CLAIMED("2", "4", "a2", TOKEN2, "1131"));
	CLEAN(t);

	t = held();
	call(&t, 20, "a1", BY("RELEASE", TOKEN1), SAYS("SUCCESS", LEFT("Ready", "1", "3", "a1")));
	call(&t, 30, "a2", CLAIM(TOKEN2), CLAIMED("1", "4", "a2", TOKEN2, "1131"));
	CAUGHT(t, FENCE);

	/* a later acquisition with a lower fence */
	t = begin();
	call(&t, 0, "a1", CREATE, FRESH);
	call(&t, 10, "a1", CLAIM(TOKEN1), CLAIMED("2", "2", "a1", TOKEN1, "1111"));
	call(&t, 300, "a2", CLAIM(TOKEN2), CLAIMED("1", "3", "a2", TOKEN2, "1401"));
	CAUGHT(t, FENCE);
}

static void manual_lock_put_to_work(void **state)
{
	struct text t = begin();

	(void)state;
	call(&t, 0, "a1", CREATE, FRESH);
	call(&t, 10, "a1", "'op':'LOCK_ACQUIRE','id':'t1','new_token':'" TOKEN1 "'",
	     "'code':'SUCCESS','task':{'id':'t1','status':'Ready','priority':2,'fence':1,'version':2,"
	     "'lock':{'holder':'a1','expires_at':1111,'ttl':100,'manual':true}}," GRANT("1", TOKEN1,
											"1111"));
	call(&t, 20, "a1", CLAIM(TOKEN1), CLAIMED("1", "3", "a1", TOKEN1, "1111"));
	CLEAN(t);
}

static void holders(void **state)
{
	struct text t = held();

	(void)state;
	call(&t, 200, "a2", CLAIM(TOKEN2), TOOK_OVER("2", "3", "a2", TOKEN2, "1301"));
	CLEAN(t);

	t = held();
	call(&t, 50, "a2", CLAIM(TOKEN2), CLAIMED("2", "3", "a2", TOKEN2, "1151"));
	CAUGHT(t, HOLDERS);

	/* correct: the lock was broken in between */
	t = held();
	call(&t, 30, "a2", "'op':'LOCK_BREAK','id':'t1','reason':'so'",
	     SAYS("SUCCESS", LEFT("In Progress", "1", "3", "a1")));
	call(&t, 50, "a2", CLAIM(TOKEN2), CLAIMED("2", "4", "a2", TOKEN2, "1151"));
	CLEAN(t);
}

static void stale(void **state)
{
	struct text t = held();

	(void)state;
	call(&t, 60, "a1", BY("HEARTBEAT", TOKEN1), RENEWED("3", "1161"));
	call(&t, 140, "a1", BY("DONE", TOKEN1), SAYS("SUCCESS", FINISHED("1", "4", "a1", "1141")));
	CLEAN(t);

	/* at the moment of its end a lease has expired */
	t = held();
	call(&t, 110, "a1", BY("HEARTBEAT", TOKEN1), RENEWED("3", "1211"));
	CAUGHT(t, STALE);

	t = held();
	call(&t, 200, "a2", CLAIM(TOKEN2), TOOK_OVER("2", "3", "a2", TOKEN2, "1301"));
	call(&t, 210, "a1", BY("DONE", TOKEN1), SAYS("SUCCESS", FINISHED("2", "4", "a2", "1211")));
	CAUGHT(t, STALE);

	t = held();
	call(&t, 200, "a2", CLAIM(TOKEN2), TOOK_OVER("2", "3", "a2", TOKEN2, "1301"));
	call(&t, 210, "a1", BY("DONE", TOKEN1),
	     SAYS("LOST_LOCK", OVER("2", "3", "a2", TOKEN2, "1301")));
	CLEAN(t);

	/* correct: an unanswered call had acquired the lock again with the same token */
	t = held();
	send(&t, 150, "a1", CLAIM(TOKEN1));
	call(&t, 210, "a1", BY("RELEASE", TOKEN1), SAYS("SUCCESS", LEFT("Ready", "2", "4", "a1")));
	CLEAN(t);

	/* the lease has not expired, but the lock was broken and granted to another agent */
	t = held();
	call(&t, 30, "a2", "'op':'LOCK_BREAK','id':'t1','reason':'so'",
	     SAYS("SUCCESS", LEFT("In Progress", "1", "3", "a1")));
	call(&t, 50, "a2", CLAIM(TOKEN2), CLAIMED("2", "4", "a2", TOKEN2, "1151"));
	call(&t, 60, "a1", BY("DONE", TOKEN1), SAYS("SUCCESS", FINISHED("2", "5", "a2", "1061")));
	CAUGHT(t, STALE);

	t = held();
	call(&t, 30, "a2", BY("DONE", TOKEN3), SAYS("SUCCESS", FINISHED("1", "3", "a1", "1031")));
	CAUGHT(t, STALE);
}

static void cleaned_up(void **state)
{
	const char *sweep = "'op':'LOCK_CLEANUP'";
	const char *open = SHOWN("In Progress", "1", "3", ",'attempts':1,'abandoned':1");

	(void)state;
	/* before and after the lease expires; and a call whose answer does not say what it did */
	for (int at = 50; at <= 200; at += 150)
		for (int silent = 0; silent < 2; silent++) {
			struct text t = held();
			char answer[500];

			snprintf(answer, sizeof(answer), "'code':'SUCCESS','tasks':[%s]",
				 silent ? "" : open);
			call(&t, at, "a2", sweep, answer);
			snprintf(answer, sizeof(answer), "'code':'SUCCESS','task':%s", open);
			call(&t, at + 10, "a2", "'op':'SHOW','id':'t1'", answer);
			if (at == 200 && !silent)
				CLEAN(t);
			else
				CAUGHT(t, LINEAR);
		}
}

/* --- locks of the whole queue ------- */

#define GUARD(id, fence, version, more) \
	"{'id':'" id "','status':'none','priority':0,'fence':" fence ",'version':" version more "}"
#define CLOSE(id) "'op':'LOCK_ACQUIRE','id':'" id "','new_token':'" TOKEN2 "'"
#define CLOSED_BY_A2(id, until)                                                   \
	"'code':'SUCCESS','task':" GUARD(                                         \
		id, "1", "1",                                                     \
		",'lock':{'holder':'a2','token':'" TOKEN2 "','expires_at':" until \
		",'ttl':100,'manual':true}") "," GRANT("1", TOKEN2, until)
#define OPEN(op, id) "'op':'" op "','id':'" id "','token':'" TOKEN2 "','reason':'so'"
#define OPENED(id) "'code':'SUCCESS','task':" GUARD(id, "1", "2", "")
#define UPDATE "'op':'UPDATE','id':'t1','priority':2,'token':'" TOKEN1 "'"
#define UPDATED(version, until) SAYS("SUCCESS", HELD("1", version, "a1", TOKEN1, until))

/* a2 has closed the queue from 21 to 121. */
static struct text closed(const char *close, const char *answer)
{
	struct text t = held();

	call(&t, 20, "a2", close, answer);
	return t;
}

static struct text write_closed(void)
{
	return closed(CLOSE("@write"), CLOSED_BY_A2("@write", "1121"));
}

static void closed_by_locks(void **state)
{
	struct text t = write_closed();

	(void)state;
	call(&t, 30, "a1", UPDATE, UPDATED("3", "1111"));
	CAUGHT(t, CLOSED);
	t = closed(CLOSE("@maintenance"), CLOSED_BY_A2("@maintenance", "1121"));
	call(&t, 30, "a1", UPDATE, UPDATED("3", "1111"));
	CAUGHT(t, CLOSED);
	t = closed(CLOSE("@config"), CLOSED_BY_A2("@config", "1121"));
	call(&t, 30, "a1", UPDATE, UPDATED("3", "1111"));
	CLEAN(t);
	t = write_closed();
	call(&t, 30, "a1", "'op':'LOCK_ACQUIRE','id':'@batch','new_token':'" TOKEN3 "'",
	     "'code':'SUCCESS'," GRANT("1", TOKEN3, "1131"));
	CAUGHT(t, CLOSED);
	t = write_closed();
	call(&t, 30, "a1", "'op':'LOCK_RELEASE','id':'@write','token':'" TOKEN1 "'",
	     OPENED("@write"));
	CAUGHT(t, LINEAR);
}

/* Heartbeats, refused calls, and the holder's own calls. */
static void not_kept_out(void **state)
{
	struct text t = write_closed();

	(void)state;
	call(&t, 30, "a1", BY("HEARTBEAT", TOKEN1), RENEWED("3", "1131"));
	call(&t, 40, "a1", UPDATE, "'code':'API_ERROR','applied':'no'");
	call(&t, 50, "a2", "'op':'COMMENT','id':'t1','text':'x'", UPDATED("3", "1131"));
	CLEAN(t);
}

/* Sent before the queue was closed; after an agent may have opened it; after the lease expired. */
static void perhaps_open(void **state)
{
	struct text t = held();
	int update = send(&t, 19, "a1", UPDATE);

	(void)state;
	call(&t, 20, "a2", CLOSE("@write"), CLOSED_BY_A2("@write", "1121"));
	get(&t, 30, update, 1020, UPDATED("3", "1111"));
	CLEAN(t);
	t = write_closed();
	send(&t, 25, "a3", OPEN("LOCK_BREAK", "@write"));
	call(&t, 30, "a1", UPDATE, UPDATED("3", "1111"));
	CLEAN(t);
	t = write_closed();
	call(&t, 25, "a2", OPEN("LOCK_RELEASE", "@write"), OPENED("@write"));
	call(&t, 30, "a1", UPDATE, UPDATED("3", "1111"));
	CLEAN(t);
	t = write_closed();
	call(&t, 120, "a3", "'op':'CREATE','id':'t2','title':'x'",
	     "'code':'SUCCESS','task':{'id':'t2','status':'Ready','priority':2,'fence':0,'version':1}");
	CLEAN(t);
}

#define PAUSE "'op':'PAUSE','reason':'lunch'"
#define PAUSED "'paused':{'by':'a2','at':1021,'reason':'lunch'}"
#define TAKE2 "'op':'TAKE','new_token':'" TOKEN2 "'"
#define MADE2 "{'id':'t2','status':'Ready','priority':2,'fence':0,'version':1}"
#define TAKEN2                                                                              \
	"'code':'SUCCESS','task':{'id':'t2','status':'In Progress','priority':2,'fence':1," \
	"'version':2,'attempts':1,'lock':{'holder':'a3','token':'" TOKEN2                   \
	"','expires_at':1141,'ttl':100}}," GRANT("1", TOKEN2, "1141")

/* t1 is held, t2 is free, and the queue is paused. */
static struct text paused(void)
{
	struct text t = held();

	call(&t, 15, "a1", "'op':'CREATE','id':'t2','title':'x'", "'code':'SUCCESS','task':" MADE2);
	call(&t, 20, "a2", PAUSE, "'code':'SUCCESS'," PAUSED);
	return t;
}

static void pause(void **state)
{
	struct text t = paused();

	(void)state;
	call(&t, 40, "a3", TAKE2, TAKEN2);
	CAUGHT(t, CLOSED);
	/* refused, and holders keep working */
	t = paused();
	call(&t, 30, "a3", TAKE2, "'code':'NO_TASKS'," PAUSED);
	call(&t, 40, "a3", "'op':'CLAIM','id':'t2','new_token':'" TOKEN2 "'",
	     "'code':'CONFLICT','task':" MADE2 "," PAUSED);
	call(&t, 50, "a1", BY("HEARTBEAT", TOKEN1), RENEWED("3", "1151"));
	CLEAN(t);
	/* nothing is refused without a reason */
	t = paused();
	call(&t, 30, "a3", TAKE2, "'code':'NO_TASKS'");
	call(&t, 50, "a3", "'op':'SHOW','id':'t2'", "'code':'SUCCESS','task':" MADE2);
	CAUGHT(t, SELECTED);
	t = paused();
	call(&t, 30, "a3", TAKE2, "'code':'NO_TASKS'," PAUSED);
	call(&t, 50, "a3", "'op':'SHOW','id':'t2'", "'code':'SUCCESS','task':" MADE2);
	CLEAN(t);
	t = paused();
	call(&t, 30, "a1", "'op':'RESUME'", "'code':'SUCCESS'");
	call(&t, 40, "a3", TAKE2, TAKEN2);
	CLEAN(t);
	t = paused();
	send(&t, 25, "a1", "'op':'RESUME'");
	call(&t, 40, "a3", TAKE2, TAKEN2);
	CLEAN(t);
}

/* --- versions, plans, overrides --------- */

#define AS_IT_IS(version, more)                                              \
	SHOWN("In Progress", "1", version,                                   \
	      ",'attempts':1" more ",'lock':{'holder':'a1','token':'" TOKEN1 \
	      "','expires_at':1111,'ttl':100}")

static void for_one_version(void **state)
{
	struct text t = held();

	(void)state;
	call(&t, 20, "a1", UPDATE ",'if_version':2", UPDATED("3", "1111"));
	call(&t, 30, "a1", UPDATE ",'if_version':2", SAYS("CONFLICT", AS_IT_IS("3", "")));
	CLEAN(t);
	t = held();
	call(&t, 20, "a1", UPDATE ",'if_version':1", UPDATED("3", "1111"));
	CAUGHT(t, LINEAR);
	t = held();
	call(&t, 20, "a1", UPDATE ",'if_version':2", SAYS("CONFLICT", AS_IT_IS("2", "")));
	CAUGHT(t, LINEAR);
}

/* A claim leaves the plan alone. */
static void assignees(void **state)
{
	struct text t = begin();

	(void)state;
	call(&t, 0, "a1", "'op':'CREATE','id':'t1','title':'x','assignee':'a9'",
	     SAYS("SUCCESS", SHOWN("Ready", "0", "1", ",'assignee':'a9'")));
	call(&t, 10, "a1", CLAIM(TOKEN1),
	     SAYS("SUCCESS", AS_IT_IS("2", ",'assignee':'a9'")) "," GRANT("1", TOKEN1, "1111"));
	CLEAN(t);
	t = begin();
	call(&t, 0, "a1", "'op':'CREATE','id':'t1','title':'x','assignee':'a9'",
	     SAYS("SUCCESS", SHOWN("Ready", "0", "1", ",'assignee':'a9'")));
	call(&t, 10, "a1", CLAIM(TOKEN1),
	     SAYS("SUCCESS", AS_IT_IS("2", ",'assignee':'a1'")) "," GRANT("1", TOKEN1, "1111"));
	CAUGHT(t, LINEAR);
}

/* An operator changes a task over its lock, which stays; without --force that is a conflict. */
static void overrides(void **state)
{
	struct text t = held();

	(void)state;
	call(&t, 20, "a2", "'op':'UPDATE','id':'t1','priority':2,'force':1,'reason':'x'",
	     SAYS("SUCCESS", AS_IT_IS("3", "")));
	CLEAN(t);
	t = held();
	call(&t, 20, "a2", "'op':'UPDATE','id':'t1','priority':2",
	     SAYS("SUCCESS", AS_IT_IS("3", "")));
	CAUGHT(t, LINEAR);
	t = held();
	call(&t, 20, "a2", "'op':'UPDATE','id':'t1','priority':2,'force':1,'reason':'x'",
	     SAYS("SUCCESS", LEFT("In Progress", "1", "3", "a1")));
	CAUGHT(t, LINEAR);
}

#define ON "'op':'EMERGENCY_ON','reason':'so'"
#define OFF "'op':'EMERGENCY_OFF'"
#define DECLARED(version, more) "'code':'SUCCESS','task':" GUARD("@emergency", "0", version, more)
#define BY_HOLDER(name) ",'lock':{'holder':'" name "'}"

static void emergency(void **state)
{
	struct text t = closed(ON, DECLARED("1", BY_HOLDER("a2")));

	(void)state;
	call(&t, 30, "a1", UPDATE, UPDATED("3", "1111"));
	CAUGHT(t, CLOSED);
	t = closed(ON, DECLARED("1", BY_HOLDER("a2")));
	call(&t, 30, "a1", BY("HEARTBEAT", TOKEN1), RENEWED("3", "1131"));
	call(&t, 40, "a3", OFF, DECLARED("2", ""));
	call(&t, 50, "a1", UPDATE, UPDATED("4", "1131"));
	CLEAN(t);
	t = closed(ON, DECLARED("1", BY_HOLDER("a2")));
	send(&t, 25, "a3", OFF);
	call(&t, 30, "a1", UPDATE, UPDATED("3", "1111"));
	CLEAN(t);
	/* the emergency is on already, and no call ended it */
	t = closed(ON, DECLARED("1", BY_HOLDER("a2")));
	call(&t, 30, "a3", ON, DECLARED("2", BY_HOLDER("a3")));
	CAUGHT(t, LINEAR);
}

static void done_once(void **state)
{
	struct text t = held();
	const char *reopen = "'op':'REOPEN','id':'t1','reason':'more'";

	(void)state;
	call(&t, 20, "a1", BY("DONE", TOKEN1), SAYS("SUCCESS", FINISHED("1", "3", "a1", "1021")));
	call(&t, 30, "a1", BY("DONE", TOKEN1),
	     SAYS("SUCCESS", FINISHED("1", "3", "a1", "1021")) ",'repeated':true");
	call(&t, 40, "a2", reopen, SAYS("SUCCESS", LEFT("Ready", "1", "4", "a1")));
	call(&t, 50, "a2", CLAIM(TOKEN2), CLAIMED("2", "5", "a2", TOKEN2, "1151"));
	call(&t, 60, "a2", BY("DONE", TOKEN2), SAYS("SUCCESS", FINISHED("2", "6", "a2", "1061")));
	CLEAN(t);

	t = held();
	call(&t, 20, "a1", BY("DONE", TOKEN1), SAYS("SUCCESS", FINISHED("1", "3", "a1", "1021")));
	call(&t, 30, "a1", BY("DONE", TOKEN1), SAYS("SUCCESS", FINISHED("1", "4", "a1", "1031")));
	CAUGHT(t, DONE);

	t = held();
	call(&t, 20, "a1", BY("REVIEW", TOKEN1), SAYS("SUCCESS", LEFT("Review", "1", "3", "a1")));
	for (int i = 0; i < 2; i++)
		call(&t, 30 + 10 * i, "a2", "'op':'APPROVE','id':'t1'",
		     i ? SAYS("SUCCESS", FINISHED("1", "5", "a1", "1041"))
		       : SAYS("SUCCESS", FINISHED("1", "4", "a1", "1031")));
	CAUGHT(t, DONE);
}

static void lost(void **state)
{
	struct text t = held();
	int removed;

	(void)state;
	final(&t, 50, "t1", HELD("1", "2", "a1", TOKEN1, "1111"));
	CLEAN(t);

	t = held();
	final(&t, 50, "t1", LEFT("Ready", "1", "1", "a1"));
	CAUGHT(t, LOST);

	t = held();
	final(&t, 50, "t1", TASK("Ready", "2"));
	CAUGHT(t, LOST);

	t = held();
	final(&t, 50, "t1", "null");
	CAUGHT(t, LOST);

	/* correct: an agent removed the task, or may have */
	t = held();
	removed = send(&t, 20, "a2", "'op':'REMOVE','id':'t1','force':1,'reason':'x'");
	final(&t, 50, "t1", "null");
	CLEAN(t);
	t = held();
	removed = send(&t, 20, "a2", "'op':'REMOVE','id':'t1','force':1,'reason':'x'");
	get(&t, 30, removed, 0, "'code':'API_ERROR','applied':'no'");
	final(&t, 50, "t1", "null");
	CAUGHT(t, LOST);

	/* the right version with another state: only the order of calls shows the error */
	t = held();
	final(&t, 50, "t1", FINISHED("1", "2", "a1", "1045"));
	CAUGHT(t, LINEAR);
}

static void stuck(void **state)
{
	static const char *const dep = "'op':'CREATE','id':'t2','title':'x','depends':['t1']";
	static const char *const shown =
		"'code':'SUCCESS','task':{'id':'t2','status':'Ready','priority':2,'fence':0,'version':1,"
		"'depends':['t1'],'open_depends':1}";
	const char *waits = "{'id':'t2','status':'Ready','priority':2,'fence':0,'version':1,"
			    "'depends':['t1'],'open_depends':1}";
	struct text t;

	(void)state;
	t = begin();
	call(&t, 0, "a1", CREATE, FRESH);
	call(&t, 10, "a1", dep, shown);
	final(&t, 50, "t1", TASK("Ready", "1"));
	final(&t, 50, "t2", waits);
	CLEAN(t);

	/* waits for a task that will never be done */
	t = begin();
	call(&t, 0, "a1", CREATE, FRESH);
	call(&t, 10, "a1", dep, shown);
	call(&t, 20, "a1", "'op':'CANCEL','id':'t1','reason':'no'",
	     SAYS("SUCCESS", TASK("Canceled", "2")));
	final(&t, 50, "t1", TASK("Canceled", "2"));
	final(&t, 50, "t2", waits);
	CAUGHT(t, STUCK);

	/* waits for a task that is gone */
	t = begin();
	call(&t, 0, "a1", CREATE, FRESH);
	call(&t, 10, "a1", dep, shown);
	call(&t, 20, "a1", "'op':'REMOVE','id':'t1','force':1,'reason':'x'", FRESH);
	final(&t, 50, "t1", "null");
	final(&t, 50, "t2", waits);
	CAUGHT(t, STUCK);

	/* a wrong count that never becomes right */
	t = begin();
	call(&t, 0, "a1", CREATE, FRESH);
	final(&t, 50, "t1",
	      "{'id':'t1','status':'Ready','priority':2,'fence':0,'version':1,'open_depends':1}");
	CAUGHT(t, STUCK);
	t = begin();
	call(&t, 0, "a1", CREATE, FRESH);
	final(&t, 50, "t1",
	      "{'id':'t1','status':'Ready','priority':2,'fence':0,'version':1,'open_subtasks':1}");
	CAUGHT(t, STUCK);

	t = begin();
	call(&t, 0, "a1", CREATE, FRESH);
	call(&t, 10, "a1", dep, shown);
	final(&t, 50, "t1",
	      "{'id':'t1','status':'Ready','priority':2,'fence':0,'version':1,'depends':['t2'],"
	      "'open_depends':1}");
	final(&t, 50, "t2", waits);
	CAUGHT(t, STUCK);
}

static void order(void **state)
{
	const char *show = "'op':'SHOW','id':'t1'";
	struct text t;
	int slow;

	(void)state;
	/* during a claim both states may be seen, but not the old one after the new one */
	for (int wrong = 0; wrong < 2; wrong++) {
		t = begin();
		call(&t, 0, "a1", CREATE, FRESH);
		slow = send(&t, 10, "a1", CLAIM(TOKEN1));
		call(&t, 20, "a2", show,
		     wrong ? SAYS("SUCCESS", HELD("1", "2", "a1", TOKEN1, "1150")) : FRESH);
		call(&t, 30, "a3", show,
		     wrong ? FRESH : SAYS("SUCCESS", HELD("1", "2", "a1", TOKEN1, "1150")));
		get(&t, 60, slow, 1050, CLAIMED("1", "2", "a1", TOKEN1, "1150"));
		if (wrong)
			CAUGHT(t, LINEAR);
		else
			CLEAN(t);
	}
	/* a refusal must be right at some moment between call and answer */
	t = held();
	call(&t, 20, "a2", CLAIM(TOKEN2), SAYS("CONFLICT", HELD("1", "2", "a1", TOKEN1, "1111")));
	CLEAN(t);
	t = held();
	call(&t, 150, "a2", CLAIM(TOKEN2), SAYS("CONFLICT", HELD("1", "2", "a1", TOKEN1, "1111")));
	CAUGHT(t, LINEAR);
}

static void without_answer(void **state)
{
	const char *conflict = SAYS("CONFLICT", HELD("1", "2", "a1", TOKEN1, "1120"));
	struct text t;
	int open;

	(void)state;
	/* 0: no answer; 1: perhaps done; 2: surely not done; 3: never sent */
	for (int how = 0; how < 4; how++) {
		t = begin();
		call(&t, 0, "a1", CREATE, FRESH);
		if (how < 3) {
			open = send(&t, 10, "a1", CLAIM(TOKEN1));
			if (how)
				get(&t, 40, open, 0,
				    how == 1 ? "'code':'API_ERROR','applied':'unknown'"
					     : "'code':'API_ERROR','applied':'no'");
		}
		call(&t, 50, "a2", CLAIM(TOKEN2), conflict);
		if (how < 2)
			CLEAN(t);
		else
			CAUGHT(t, LINEAR);
	}
	/* it never happened, or happened much later, or at the very end */
	for (int how = 0; how < 3; how++) {
		t = held();
		send(&t, 20, "a1", BY("DONE", TOKEN1));
		if (how)
			call(&t, 60, "a2", CLAIM(TOKEN2),
			     SAYS("CONFLICT", HELD("1", "2", "a1", TOKEN1, "1111")));
		if (how == 2)
			call(&t, 70, "a2", "'op':'SHOW','id':'t1'",
			     SAYS("SUCCESS", FINISHED("1", "3", "a1", "1066")));
		final(&t, 90, "t1",
		      how == 1 ? HELD("1", "2", "a1", TOKEN1, "1111")
			       : FINISHED("1", "3", "a1", "1066"));
		CLEAN(t);
	}
	/* it happened once, not twice */
	t = held();
	send(&t, 20, "a1", BY("HEARTBEAT", TOKEN1));
	final(&t, 90, "t1", HELD("1", "4", "a1", TOKEN1, "1150"));
	CAUGHT(t, LINEAR);
	/* it did not happen before it was sent */
	t = held();
	call(&t, 20, "a2", "'op':'SHOW','id':'t1'",
	     SAYS("SUCCESS", FINISHED("1", "3", "a1", "1021")));
	send(&t, 40, "a1", BY("DONE", TOKEN1));
	CAUGHT(t, LINEAR);
}

/* A create finds the task and changes nothing, but its answer is kept. So a later call is its
 * repeat. */
static void answer_kept(void **state)
{
	const char *again = CREATE ",'if_absent':1,'request_id':'r'";
	struct text t = begin();

	(void)state;
	call(&t, 0, "a1", CREATE, FRESH);
	send(&t, 10, "a1", again);
	call(&t, 20, "a1", again, FRESH ",'existed':true,'repeated':true");
	call(&t, 30, "a1", CLAIM(TOKEN1), CLAIMED("1", "2", "a1", TOKEN1, "1131"));
	CLEAN(t);

	t = begin();
	call(&t, 0, "a1", CREATE, FRESH);
	call(&t, 20, "a1", again, FRESH ",'existed':true,'repeated':true");
	CAUGHT(t, LINEAR);
}

/* An agent died in `next --claim`; its lease expired before anybody saw the task. */
static void taken_by_nobody(void **state)
{
	struct text t = begin();

	(void)state;
	call(&t, 0, "a1", CREATE, FRESH);
	send(&t, 10, "a1", "'op':'TAKE','new_token':'" TOKEN1 "'");
	call(&t, 300, "a2", CLAIM(TOKEN2), TOOK_OVER("2", "3", "a2", TOKEN2, "1401"));
	CLEAN(t);

	t = begin();
	call(&t, 0, "a1", CREATE, FRESH);
	call(&t, 300, "a2", CLAIM(TOKEN2), TOOK_OVER("2", "3", "a2", TOKEN2, "1401"));
	CAUGHT(t, LINEAR);
}

#define TAKE "'op':'TAKE','new_token':'" TOKEN1 "'"
#define OTHER(status, fence, version, lock)                                                       \
	"{'id':'t2','status':'" status "','priority':1,'fence':" fence ",'version':" version lock \
	"}"
#define LOCK2                                     \
	",'lock':{'holder':'a1','token':'" TOKEN1 \
	"','acquired_at':1031,'expires_at':1131,'ttl':100}"
#define SINCE(at, until)                                                                     \
	"'code':'CONFLICT','task':{'id':'t1','status':'In Progress','priority':2,'fence':1," \
	"'version':2,'lock':{'holder':'a1','token':'" TOKEN1 "','acquired_at':" at           \
	",'expires_at':" until ",'ttl':100}}"

/* t1 and t2 exist. a1 has sent a take that got no answer, and its repeat got t2. */
static struct text taken_again(void)
{
	struct text t = begin();

	call(&t, 0, "a1", CREATE, FRESH);
	call(&t, 5, "a1", "'op':'CREATE','id':'t2','title':'x','priority':1",
	     SAYS("SUCCESS", OTHER("Ready", "0", "1", "")));
	send(&t, 10, "a1", TAKE);
	call(&t, 30, "a1", TAKE,
	     SAYS("SUCCESS", OTHER("In Progress", "1", "2", LOCK2)) "," GRANT("1", TOKEN1, "1131"));
	return t;
}

static void made_twice(void **state)
{
	const char *update = "'op':'UPDATE','id':'t1','priority':2,'request_id':'r'";
	struct text t = taken_again();

	(void)state;
	/* the first take got t1, and its lease had not expired */
	call(&t, 40, "a2", CLAIM(TOKEN2), SINCE("1020", "1120"));
	CAUGHT(t, TWICE);

	/* the same, visible only at the end */
	t = taken_again();
	final(&t, 50, "t1", HELD("1", "2", "a1", TOKEN1, "1120,'acquired_at':1020"));
	CAUGHT(t, TWICE);

	/* correct: another call claimed it later */
	t = taken_again();
	call(&t, 40, "a2", CLAIM(TOKEN2), SINCE("1035", "1135"));
	assert_int_equal(found(&t) & KIND(TWICE), 0);

	/* correct: the lease had expired */
	t = begin();
	call(&t, 0, "a1", CREATE, FRESH);
	call(&t, 5, "a1", "'op':'CREATE','id':'t2','title':'x','priority':1",
	     SAYS("SUCCESS", OTHER("Ready", "0", "1", "")));
	call(&t, 10, "a1", TAKE, CLAIMED("1", "2", "a1", TOKEN1, "1021"));
	call(&t, 30, "a1", TAKE,
	     SAYS("SUCCESS", OTHER("In Progress", "1", "2", LOCK2)) "," GRANT("1", TOKEN1, "1131"));
	assert_int_equal(found(&t) & KIND(TWICE), 0);

	t = begin();
	call(&t, 0, "a1", CREATE, FRESH);
	call(&t, 10, "a1", update, SAYS("SUCCESS", TASK("Ready", "2")));
	call(&t, 20, "a1", update, SAYS("SUCCESS", TASK("Ready", "2")) ",'repeated':true");
	CLEAN(t);

	t = begin();
	call(&t, 0, "a1", CREATE, FRESH);
	call(&t, 10, "a1", update, SAYS("SUCCESS", TASK("Ready", "2")));
	call(&t, 20, "a1", update, SAYS("SUCCESS", TASK("Ready", "3")));
	CAUGHT(t, TWICE);
}

/* A history that was cut off in the lines about the end: the checker says nothing about the missing
 * tasks. */
static void no_end(void **state)
{
	static const char *const waits =
		"{'id':'t2','status':'Ready','priority':2,'fence':0,'version':1,'depends':['t1'],"
		"'open_depends':1}";
	struct history_log log;
	struct check_report r;
	struct arena a = { 0 };
	struct str why;

	(void)state;
	for (int ends = 0; ends < 3; ends++) {
		struct text t = begin();

		call(&t, 0, "a1", CREATE, FRESH);
		call(&t, 5, "a1", "'op':'CREATE','id':'t2','title':'x','depends':['t1']",
		     SAYS("SUCCESS",
			  "{'id':'t2','status':'Ready','priority':2,'fence':0,'version':1,"
			  "'depends':['t1'],'open_depends':1}"));
		if (ends > 0)
			final(&t, 50, "t2", waits);
		if (ends > 1)
			final(&t, 50, "t1", TASK("Ready", "1"));
		assert_int_equal(history_parse(&log, buf_str(&t.b), &why), 0);
		history_check(&log, &r, &a);
		assert_int_equal(check_violations(&r), 0);
		assert_int_equal(r.endless, 2 - ends);
		history_free(&log);
		buf_free(&t.b);
	}
	arena_free(&a);
}

static void clock_goes_on(void **state)
{
	struct text t = begin();
	int slow;

	(void)state;
	call(&t, 0, "a1", CREATE, FRESH);
	get(&t, 20, send(&t, 10, "a1", "'op':'SHOW','id':'t1'"), 900, FRESH);
	CAUGHT(t, CLOCK);

	/* concurrent calls may be in any order */
	t = begin();
	slow = send(&t, 0, "a2", "'op':'SHOW','id':'t1'");
	call(&t, 1, "a1", CREATE, FRESH);
	get(&t, 20, slow, 1000, FRESH);
	CLEAN(t);

	/* correct: a clock was set */
	t = begin();
	call(&t, 0, "a1", CREATE, FRESH);
	add(&t, "{'t':5000000,'event':'skew','ms':-100}");
	get(&t, 20, send(&t, 10, "a1", "'op':'SHOW','id':'t1'"), 900, FRESH);
	CLEAN(t);
}

static void selected(void **state)
{
	const char *take = "'op':'TAKE','new_token':'" TOKEN1 "'", *show = "'op':'SHOW','id':'t1'";
	const char *fresh2 =
		"'code':'SUCCESS','task':{'id':'t2','status':'Ready','priority':2,'fence':0,"
		"'version':1}";
	struct text t = begin();
	int slow;

	(void)state;
	call(&t, 0, "a1", take, "'code':'NO_TASKS'");
	call(&t, 10, "a1", CREATE, FRESH);
	CLEAN(t);

	t = begin();
	call(&t, 0, "a1", CREATE, FRESH);
	call(&t, 10, "a1", take, "'code':'NO_TASKS'");
	call(&t, 20, "a1", show, FRESH);
	CAUGHT(t, SELECTED);

	/* correct: the task was eligible only for part of the time */
	t = begin();
	slow = send(&t, 1, "a2", take);
	call(&t, 0, "a1", CREATE, FRESH);
	get(&t, 10, slow, 1001, "'code':'NO_TASKS'");
	call(&t, 20, "a1", show, FRESH);
	CLEAN(t);

	/* correct: it was last seen before the call ended, so another agent may have held it for a
	 * moment */
	t = begin();
	call(&t, 0, "a1", CREATE, FRESH);
	slow = send(&t, 10, "a2", take);
	call(&t, 20, "a1", show, FRESH);
	get(&t, 30, slow, 1028, "'code':'NO_TASKS'");
	CLEAN(t);

	/* correct: the call asked for something else */
	t = begin();
	call(&t, 0, "a1", CREATE, FRESH);
	call(&t, 10, "a1", "'op':'TAKE','label':'red','new_token':'" TOKEN1 "'",
	     "'code':'NO_TASKS'");
	call(&t, 20, "a1", show, FRESH);
	CLEAN(t);

	/* a lower-ranked task although t1 was eligible */
	t = begin();
	call(&t, 0, "a1", CREATE, FRESH);
	call(&t, 10, "a1", "'op':'CREATE','id':'t2','title':'x','priority':1",
	     "'code':'SUCCESS','task':{'id':'t2','status':'Ready','priority':1,'fence':0,'version':1}");
	call(&t, 20, "a1", take,
	     "'code':'SUCCESS','task':{'id':'t2','status':'In Progress','priority':1,'fence':1,"
	     "'version':2,'attempts':1,'lock':{'holder':'a1','expires_at':1121,'ttl':100}}," GRANT(
		     "1", TOKEN1, "1121"));
	call(&t, 30, "a1", show, FRESH);
	CAUGHT(t, SELECTED);

	/* nothing, or a lower-ranked task, after a completion */
	for (int none = 0; none < 2; none++) {
		t = held();
		call(&t, 14, "a1", "'op':'CREATE','id':'t2','title':'x'", fresh2);
		call(&t, 17, "a1", "'op':'CREATE','id':'t3','title':'x','priority':1",
		     "'code':'SUCCESS','task':{'id':'t3','status':'Ready','priority':1,'fence':0,'version':1}");
		call(&t, 20, "a1", BY("DONE", TOKEN1) ",'claim_next':1,'new_token':'" TOKEN2 "'",
		     none ? SAYS("SUCCESS", FINISHED("1", "3", "a1", "1021")) ",'next':null"
			  : SAYS("SUCCESS",
				 FINISHED(
					 "1", "3", "a1",
					 "1021")) ",'next':{'id':'t3','status':'In Progress',"
						  "'priority':1,'fence':1,'version':2,'attempts':1,'lock':{'holder':'a1',"
						  "'expires_at':1121,'ttl':100}},'next_lock':{'fence':1,'expires_at':1121,'ttl':100,"
						  "'token':'" TOKEN2 "'}");
		call(&t, 30, "a1", "'op':'SHOW','id':'t2'", fresh2);
		CAUGHT(t, SELECTED);
	}
}

static void excerpt(void **state)
{
	struct text t = held();
	struct history_log log;
	struct check_report r;
	struct arena a = { 0 };
	struct buf b = BUF_MAX(1 << 20);
	struct str why;

	(void)state;
	for (int i = 0; i < 20; i++)
		call(&t, 20 + 3 * i, "a2", CLAIM(TOKEN2),
		     SAYS("CONFLICT", HELD("1", "2", "a1", TOKEN1, "1111")));
	call(&t, 90, "a3", "'op':'SHOW','id':'t1'",
	     SAYS("SUCCESS", LEFT("Review", "1", "2", "a1")));
	for (int i = 0; i < 20; i++)
		call(&t, 100 + 3 * i, "a2", "'op':'SHOW','id':'t1'",
		     SAYS("SUCCESS", HELD("1", "2", "a1", TOKEN1, "1111")));
	assert_int_equal(history_parse(&log, buf_str(&t.b), &why), 0);
	history_check(&log, &r, &a);
	assert_int_equal(r.counts[CHECK_LINEAR], 1);
	assert_int_equal(r.n_findings, 1);
	/* the calls that made the state, and the answer that contradicts it */
	assert_int_equal(r.findings[0].n_calls, 3);
	assert_int_equal(r.findings[0].calls[2]->number, 23);
	check_print(&r, &log, &b);
	buf_addc(&b, '\0');
	assert_non_null(strstr(b.p, "VIOLATED"));
	assert_non_null(strstr(b.p, "it is Review, should be In Progress"));
	assert_non_null(strstr(b.p, "seed 7"));
	buf_free(&b);
	buf_free(&t.b);
	arena_free(&a);
	history_free(&log);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fences),          cmocka_unit_test(manual_lock_put_to_work),
		cmocka_unit_test(holders),         cmocka_unit_test(stale),
		cmocka_unit_test(done_once),       cmocka_unit_test(lost),
		cmocka_unit_test(stuck),           cmocka_unit_test(order),
		cmocka_unit_test(without_answer),  cmocka_unit_test(taken_by_nobody),
		cmocka_unit_test(clock_goes_on),   cmocka_unit_test(selected),
		cmocka_unit_test(excerpt),         cmocka_unit_test(answer_kept),
		cmocka_unit_test(made_twice),      cmocka_unit_test(no_end),
		cmocka_unit_test(cleaned_up),      cmocka_unit_test(closed_by_locks),
		cmocka_unit_test(not_kept_out),    cmocka_unit_test(perhaps_open),
		cmocka_unit_test(emergency),       cmocka_unit_test(pause),
		cmocka_unit_test(for_one_version), cmocka_unit_test(assignees),
		cmocka_unit_test(overrides),
	};

	return cmocka_run_group_tests_name("rules", tests, NULL, NULL);
}

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <dirent.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "kit/folder.h"
#include "base/fs.h"
#include "base/secret.h"
#include "client/client.h"

static struct arena arena;
static struct answer ans;
static struct client c;
static const char *top;
static int serial;

static struct str store_name(const char *wrapper)
{
	return arena_printf(&arena, "%smem:test%d", wrapper, serial);
}

static void start(struct client *client, struct client_options said)
{
	if (!said.store.n)
		said.store = store_name("");
	assert_int_equal(client_init(client, &said, &ans, &arena), SUCCESS);
	assert_int_equal(client_open(client, STORE_CREATE, &ans), SUCCESS);
}

static int enter(void **state)
{
	top = folder_enter(state);
	if (!top)
		return -1;
	clearenv();
	setenv("PATH", "/usr/bin:/bin", 1);
	setenv("HOME", top, 1);
	setenv("LOGNAME", "ann", 1);
	serial++;
	start(&c, (struct client_options){ 0 });
	return 0;
}

static int leave(void **state)
{
	int r;

	client_close(&c);
	r = folder_leave(state);
	arena_free(&arena);
	arena = (struct arena){ 0 };
	return r;
}

static struct request about(enum op op, const char *id)
{
	struct request rq = { .op = op };

	if (id)
		GIVE(&rq, id, str_c(id));
	return rq;
}

static enum result send_it(struct client *client, struct request rq)
{
	client_call(client, &rq, &ans);
	return ans.code;
}

static enum result send(struct client *client, enum op op, const char *id)
{
	return send_it(client, about(op, id));
}

static void create(const char *id)
{
	struct request rq = about(OP_CREATE, id);

	GIVE(&rq, title, STR("a task"));
	assert_int_equal(send_it(&c, rq), SUCCESS);
}

static int files(const char *ending)
{
	return folder_count(".local/state/pawl", ending);
}

static enum result send_token(struct client *client, enum op op, const char *id, struct str token)
{
	struct request rq = about(op, id);

	GIVE(&rq, token, token);
	return send_it(client, rq);
}

static enum result status(const char *id, enum status to)
{
	struct request rq = about(OP_STATUS, id);

	GIVE(&rq, status, to);
	GIVE(&rq, reason, STR("because"));
	GIVE(&rq, unblock_action, STR("wait"));
	return send_it(&c, rq);
}

static void test_claim_and_done(void **state)
{
	(void)state;
	create("t1");
	assert_int_equal(send(&c, OP_CLAIM, "T1"), SUCCESS);
	assert_true(token_valid(ans.lock->token));
	assert_true(str_starts(ans.task->last_holder, STR("ann@")));
	assert_int_equal(files(".token"), 1);
	assert_int_equal(files(".pending"), 0);
	/* a saved token is not used for a claim */
	assert_int_equal(send(&c, OP_CLAIM, "t1"), CONFLICT);
	assert_int_equal(files(".pending"), 0);
	assert_int_equal(send(&c, OP_HEARTBEAT, "t1"), SUCCESS);
	assert_int_equal(send(&c, OP_DONE, "t1"), SUCCESS);
	assert_int_equal(files(".token"), 0);
	assert_int_equal(send(&c, OP_SHOW, "t1"), SUCCESS);
	assert_int_equal(ans.task->status, DONE);
	assert_int_equal(send(&c, OP_TAKE, NULL), NO_TASKS);
	assert_int_equal(files("ing"), 0);
}

static void test_take_and_claim_next(void **state)
{
	struct request rq;

	(void)state;
	create("t1");
	create("t2");
	assert_int_equal(send(&c, OP_TAKE, NULL), SUCCESS);
	assert_true(str_is(ans.task->id, "t1"));
	rq = about(OP_DONE, "t1");
	GIVE(&rq, claim_next, 1);
	assert_int_equal(send_it(&c, rq), SUCCESS);
	assert_true(str_is(ans.next->id, "t2"));
	assert_int_equal(files(".token"), 1);
	rq = about(OP_DONE, "t2");
	GIVE(&rq, claim_next, 1);
	assert_int_equal(send_it(&c, rq), SUCCESS);
	assert_null(ans.next);
	assert_int_equal(files(""), 2);
}

static void test_explicit_tokens(void **state)
{
	struct str mine = token_make(&arena);
	struct request rq;

	(void)state;
	create("t1");
	create("t2");
	assert_int_equal(send_token(&c, OP_CLAIM, "t1", STR("no uuid")), USAGE);
	assert_int_equal(send_token(&c, OP_CLAIM, "t1", mine), SUCCESS);
	assert_true(str_eq(ans.lock->token, mine));
	assert_int_equal(send_token(&c, OP_CLAIM, "t1", mine), SUCCESS);
	assert_true(ans.repeated);
	assert_int_equal(send_token(&c, OP_HEARTBEAT, "t1", token_make(&arena)), LOST_LOCK);
	assert_int_equal(files(".token"), 1); /* the saved token belongs to another lock */
	rq = about(OP_DONE, "t1");
	GIVE(&rq, claim_next, 1);
	GIVE(&rq, new_token, token_make(&arena));
	assert_int_equal(send_it(&c, rq), SUCCESS);
	assert_true(str_eq(ans.next_lock->token, rq.new_token));
	assert_int_equal(send(&c, OP_HEARTBEAT, "t2"), SUCCESS);
}

static void test_token_in_the_environment(void **state)
{
	struct str mine = token_make(&arena);
	struct client other;

	(void)state;
	create("t1");
	create("t2");
	setenv("PAWL_TASK", "T1", 1);
	setenv("PAWL_TOKEN", mine.p, 1);
	assert_int_equal(send(&c, OP_CLAIM, "t1"), SUCCESS);
	assert_true(str_eq(ans.lock->token, mine));
	assert_int_equal(send(&c, OP_CLAIM, "t2"), SUCCESS);
	assert_false(str_eq(ans.lock->token, mine));
	start(&other, (struct client_options){ .agent = STR("bob") });
	assert_int_equal(send(&other, OP_HEARTBEAT, "t1"), SUCCESS);
	assert_int_equal(send(&other, OP_HEARTBEAT, "t2"), LOST_LOCK);
	setenv("PAWL_TOKEN", "junk", 1);
	assert_int_equal(send(&other, OP_HEARTBEAT, "t1"), USAGE);
	assert_int_equal(send(&other, OP_SHOW, "t1"), SUCCESS);
	client_close(&other);
}

static void test_identities_are_apart(void **state)
{
	struct client other;

	(void)state;
	create("t1");
	assert_int_equal(send(&c, OP_CLAIM, "t1"), SUCCESS);
	start(&other, (struct client_options){ .run = STR("two") });
	assert_int_equal(send(&other, OP_DONE, "t1"), LOST_LOCK);
	client_close(&other);
	start(&other, (struct client_options){ .store = store_name("fault+") });
	assert_true(str_eq(other.keyring.queue, c.keyring.queue));
	client_close(&other);
	assert_int_equal(send(&c, OP_DONE, "t1"), SUCCESS);
}

static void test_lost_reply(void **state)
{
	struct client broken;
	struct str uri = arena_printf(&arena, "fault+mem:test%d?fault=modify:1:lost", serial),
		   token;
	struct request rq;

	(void)state;
	create("t1");
	create("t2");
	start(&broken, (struct client_options){ .store = uri });
	assert_int_equal(send(&broken, OP_TAKE, NULL), API_ERROR);
	assert_int_equal(ans.applied, '?');
	client_close(&broken);
	assert_int_equal(files(".pending"), 1);
	/* the task that was taken, not the next one */
	assert_int_equal(send(&c, OP_TAKE, NULL), SUCCESS);
	assert_true(str_is(ans.task->id, "t1"));
	assert_int_equal(ans.lock->fence, 1);
	assert_int_equal(files(".pending"), 0);
	token = ans.lock->token;
	assert_int_equal(send_token(&c, OP_HEARTBEAT, "t1", token), SUCCESS);
	/* done --claim-next: repeats both halves */
	rq = about(OP_DONE, "t1");
	GIVE(&rq, claim_next, 1);
	start(&broken, (struct client_options){ .store = uri });
	assert_int_equal(send_it(&broken, rq), API_ERROR);
	client_close(&broken);
	assert_int_equal(send_it(&c, rq), SUCCESS);
	assert_true(str_is(ans.next->id, "t2"));
	assert_int_equal(ans.next_lock->fence, 1);
	assert_int_equal(files(".pending"), 0);
	assert_int_equal(send(&c, OP_DONE, "t2"), SUCCESS);
	assert_int_equal(files(""), 2);
}

static void test_failed_for_certain(void **state)
{
	struct client broken;

	(void)state;
	create("t1");
	start(&broken, (struct client_options){
			       .store = arena_printf(&arena, "fault+mem:test%d?fault=modify:1:busy",
						     serial) });
	assert_int_equal(send(&broken, OP_CLAIM, "t1"), API_ERROR);
	assert_int_equal(ans.applied, 'n');
	client_close(&broken);
	assert_int_equal(files(".pending"), 0);
}

static enum result send_faulty(const char *fault, struct request rq)
{
	struct client broken;
	struct answer kept;

	start(&broken, (struct client_options){
			       .store = arena_printf(&arena, "fault+mem:test%d?fault=modify:1:%s",
						     serial, fault) });
	send_it(&broken, rq);
	kept = ans;
	client_close(&broken);
	ans = kept;
	return ans.code;
}

static void assert_repeat_of_first(enum result code, const char *id)
{
	assert_int_equal(code, SUCCESS);
	assert_true(ans.repeated);
	assert_true(str_is(ans.task->id, id));
	assert_int_equal(ans.lock->fence, 1);
	assert_int_equal(files(".pending"), 0);
	assert_int_equal(send(&c, OP_HEARTBEAT, id), SUCCESS);
}

/* A later call that failed for certain proves nothing about the first. */
static void test_fate_still_unknown(void **state)
{
	struct request rq = about(OP_CLAIM, "t1");

	(void)state;
	create("t1");
	assert_int_equal(send_faulty("lost", rq), API_ERROR);
	assert_int_equal(ans.applied, '?');
	assert_int_equal(send_faulty("busy", rq), API_ERROR);
	assert_int_equal(ans.applied, 'n');
	assert_int_equal(files(".pending"), 1);
	GIVE(&rq, ttl, INT64_C(99) * 86400000);
	assert_int_equal(send_it(&c, rq), USAGE);
	assert_int_equal(files(".pending"), 1);
	assert_repeat_of_first(send(&c, OP_CLAIM, "t1"), "t1");
}

static void test_fate_of_a_take(void **state)
{
	struct request take = about(OP_TAKE, NULL), done = about(OP_DONE, "t1");

	(void)state;
	create("t1");
	create("t2");
	create("t3");
	assert_int_equal(send(&c, OP_CLAIM, "t1"), SUCCESS);
	assert_int_equal(send_faulty("lost", take), API_ERROR);
	assert_int_equal(send_faulty("busy", take), API_ERROR);
	GIVE(&take, ttl, INT64_C(99) * 86400000);
	assert_int_equal(send_it(&c, take), USAGE);
	assert_int_equal(files(".pending"), 1);
	/* a refused done does not settle it, nor does a done --claim-next that takes another task */
	GIVE(&done, claim_next, 1);
	done.id = STR("t3");
	assert_int_equal(send_it(&c, done), LOST_LOCK);
	assert_int_equal(files(".pending"), 1);
	done.id = STR("t1");
	assert_int_equal(send_it(&c, done), SUCCESS);
	assert_true(str_is(ans.next->id, "t3"));
	assert_int_equal(files(".pending"), 1);
	assert_repeat_of_first(send(&c, OP_TAKE, NULL), "t2");
	assert_int_equal(send(&c, OP_HEARTBEAT, "t3"), SUCCESS);
}

/* Only `next --claim` recovers the task that a lost `done --claim-next` took. */
static void test_fate_of_a_next(void **state)
{
	struct request done = about(OP_DONE, "t1");

	(void)state;
	create("t1");
	create("t2");
	create("t3");
	assert_int_equal(send(&c, OP_CLAIM, "t1"), SUCCESS);
	GIVE(&done, claim_next, 1);
	assert_int_equal(send_faulty("lost", done), API_ERROR);
	assert_int_equal(send_faulty("busy", done), API_ERROR);
	assert_int_equal(files(".pending"), 1);
	assert_repeat_of_first(send(&c, OP_TAKE, NULL), "t2");
}

static void test_fate_is_known(void **state)
{
	struct client other;
	struct request rq = about(OP_LOCK_BREAK, "t1"), lock = about(OP_LOCK_ACQUIRE, "t2");

	(void)state;
	create("t1");
	create("t2");
	start(&other, (struct client_options){ .agent = STR("bob") });
	GIVE(&rq, reason, STR("stuck"));
	/* CONFLICT: another agent has it by now */
	assert_int_equal(send_faulty("lost", about(OP_CLAIM, "t1")), API_ERROR);
	assert_int_equal(send_it(&other, rq), SUCCESS);
	assert_int_equal(send(&other, OP_CLAIM, "t1"), SUCCESS);
	assert_int_equal(send(&c, OP_CLAIM, "t1"), CONFLICT);
	assert_int_equal(files(".pending"), 0);
	/* MISCONFIGURED, and the lock is not ours */
	assert_int_equal(send(&other, OP_RELEASE, "t1"), SUCCESS);
	assert_int_equal(send_faulty("lost", about(OP_CLAIM, "t1")), API_ERROR);
	rq.op = OP_LOCK_BREAK;
	assert_int_equal(send_it(&other, rq), SUCCESS);
	rq.op = OP_CANCEL;
	assert_int_equal(send_it(&other, rq), SUCCESS);
	assert_int_equal(send(&c, OP_CLAIM, "t1"), MISCONFIGURED);
	assert_int_equal(files(".pending"), 0);
	/* MISCONFIGURED, but the lock is ours: a claim of a task in the backlog */
	rq = about(OP_UPDATE, "t2");
	GIVE(&rq, status, BACKLOG);
	assert_int_equal(send_it(&other, rq), SUCCESS);
	assert_int_equal(send_faulty("lost", lock), API_ERROR);
	assert_int_equal(send(&c, OP_CLAIM, "t2"), MISCONFIGURED);
	assert_int_equal(files(".pending"), 1);
	assert_repeat_of_first(send_it(&c, lock), "t2");
	/* NOT_FOUND */
	assert_int_equal(send(&c, OP_LOCK_RELEASE, "t2"), SUCCESS);
	assert_int_equal(send_faulty("lost", lock), API_ERROR);
	rq = about(OP_REMOVE, "t2");
	GIVE(&rq, force, 1);
	GIVE(&rq, reason, STR("gone"));
	assert_int_equal(send_it(&other, rq), SUCCESS);
	assert_int_equal(send_it(&c, lock), NOT_FOUND);
	assert_int_equal(files(".pending"), 0);
	/* NO_TASKS */
	assert_int_equal(send_faulty("lost", about(OP_TAKE, NULL)), API_ERROR);
	assert_int_equal(send(&c, OP_TAKE, NULL), NO_TASKS);
	assert_int_equal(files(""), 2);
	client_close(&other);
}

static struct request take_one(const char *label, int class_rank, const char *type)
{
	struct request rq = about(OP_TAKE, NULL);

	if (label)
		GIVE(&rq, label, str_c(label));
	if (class_rank)
		GIVE(&rq, class_rank, class_rank);
	if (type)
		GIVE(&rq, type, str_c(type));
	return rq;
}

static void create_as(const char *id, const char *label, const char *type)
{
	struct request rq = about(OP_CREATE, id);

	GIVE(&rq, title, STR("a task"));
	GIVE(&rq, labels, arena_append(&arena, (struct strs){ 0 }, str_c(label)));
	GIVE(&rq, type, str_c(type));
	assert_int_equal(send_it(&c, rq), SUCCESS);
}

static void test_filters_are_apart(void **state)
{
	(void)state;
	create_as("t1", "docs", "bug");
	create_as("t2", "code", "bug");
	create_as("t3", "code", "idea");
	assert_int_equal(send_faulty("lost", take_one("docs", 0, NULL)), API_ERROR);
	assert_int_equal(send_it(&c, take_one("code", 0, NULL)), SUCCESS);
	assert_true(str_is(ans.task->id, "t2"));
	assert_int_equal(send_it(&c, take_one(NULL, 0, "idea")), SUCCESS);
	assert_true(str_is(ans.task->id, "t3"));
	assert_int_equal(send_it(&c, take_one(NULL, EXPEDITE, NULL)), NO_TASKS);
	assert_int_equal(files(".pending"), 1);
	assert_repeat_of_first(send_it(&c, take_one("docs", 0, NULL)), "t1");
}

/* The next task's token is saved before the other is removed, so a kill never loses it. */
static void test_next_is_saved_first(void **state)
{
	struct request rq = about(OP_DONE, "t1");
	char room[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
	bool saved = false, gone = false;
	ssize_t n;
	int fd;

	(void)state;
	create("t1");
	create("t2");
	assert_int_equal(send(&c, OP_CLAIM, "t1"), SUCCESS);
	fd = inotify_init1(IN_CLOEXEC);
	assert_true(inotify_add_watch(fd, ".local/state/pawl",
				      IN_CREATE | IN_MOVED_TO | IN_DELETE) >= 0);
	GIVE(&rq, claim_next, 1);
	assert_int_equal(send_it(&c, rq), SUCCESS);
	n = read(fd, room, sizeof(room));
	assert_true(n > 0);
	for (char *at = room; at < room + n;) {
		const struct inotify_event *e = (const void *)at;

		if (str_ends(str_c(e->name), STR(".token"))) {
			gone |= (e->mask & IN_DELETE) != 0;
			saved |= (e->mask & IN_DELETE) == 0;
			assert_true(saved);
		}
		at += sizeof(*e) + e->len;
	}
	assert_true(saved && gone);
	close(fd);
}

/* A late repeat by request id concerns a lock that has ended, not the present one. */
static void test_late_repeat(void **state)
{
	struct request rq = about(OP_RELEASE, "t1"), block = about(OP_BLOCK, "t1");

	(void)state;
	create("t1");
	GIVE(&rq, request_id, STR("r1"));
	assert_int_equal(send(&c, OP_CLAIM, "t1"), SUCCESS);
	assert_int_equal(send_it(&c, rq), SUCCESS);
	assert_int_equal(files(".token"), 0);
	assert_int_equal(send_it(&c, rq), SUCCESS);
	assert_int_equal(send(&c, OP_CLAIM, "t1"), SUCCESS);
	assert_int_equal(send_it(&c, rq), SUCCESS);
	assert_true(ans.repeated);
	assert_int_equal(send(&c, OP_HEARTBEAT, "t1"), SUCCESS);
	assert_int_equal(files(".token"), 1);
	/* nor does a late repeat of `block` end the present lock */
	GIVE(&block, request_id, STR("r2"));
	GIVE(&block, reason, STR("because"));
	GIVE(&block, unblock_action, STR("wait"));
	assert_int_equal(send_it(&c, block), SUCCESS);
	assert_int_equal(send(&c, OP_UNBLOCK, "t1"), SUCCESS);
	rq = about(OP_CLAIM, "t1");
	GIVE(&rq, ttl, 1000);
	assert_int_equal(send_it(&c, rq), SUCCESS);
	assert_int_equal(send_it(&c, block), SUCCESS);
	assert_true(ans.repeated);
	usleep(1050000);
	assert_int_equal(send(&c, OP_CLAIM, "t1"), SUCCESS);
	assert_int_equal(send(&c, OP_HEARTBEAT, "t1"), SUCCESS);
}

/* Another agent releases the task between the loop's read and its call. */
static void test_given_back_meanwhile(void **state)
{
	struct request take = { .op = OP_TAKE };
	struct call_state call;
	struct client bob;

	(void)state;
	start(&bob, (struct client_options){ .agent = STR("bob") });
	create("t1");
	c.given_back.on = true;
	assert_int_equal(send(&c, OP_TAKE, NULL), SUCCESS);
	assert_int_equal(send(&c, OP_RELEASE, "t1"), SUCCESS);
	assert_int_equal(send(&bob, OP_CLAIM, "t1"), SUCCESS);
	assert_int_equal(send(&c, OP_TAKE, NULL), NO_TASKS);
	assert_in_range(ans.wait_ms, 1, 3600 * 1000); /* bob may die */
	assert_int_equal(client_begin(&c, &take, &call), SUCCESS);
	assert_int_equal(send(&bob, OP_RELEASE, "t1"), SUCCESS);
	queue_call(c.conn.queue, &call.rq, &call.ans, c.arena);
	client_end(&c, &call);
	assert_int_equal(call.ans.code, NO_TASKS);
	given_back_free(&c.given_back);
	client_close(&bob);
}

/* `lock release` of an expired lease succeeds, and leaves no token to keep. */
static void test_ran_out(void **state)
{
	struct request rq = about(OP_LOCK_ACQUIRE, "t1");

	(void)state;
	create("t1");
	GIVE(&rq, ttl, 1000);
	assert_int_equal(send_it(&c, rq), SUCCESS);
	usleep(1050000);
	assert_int_equal(send(&c, OP_LOCK_RELEASE, "t1"), SUCCESS);
	assert_int_equal(files(".token"), 0);
	assert_int_equal(send(&c, OP_CLAIM, "t1"), SUCCESS);
	rq = about(OP_REMOVE, "t1");
	GIVE(&rq, force, 1);
	assert_int_equal(send_it(&c, rq), SUCCESS);
	assert_int_equal(files(""), 2);
}

/* An agent that returns, or a second window with its name, continues an expired claim. */
static void test_claimed_again(void **state)
{
	struct request rq = about(OP_CLAIM, "t1");
	struct str first;

	(void)state;
	create("t1");
	GIVE(&rq, ttl, 1000);
	assert_int_equal(send_it(&c, rq), SUCCESS);
	first = ans.lock->token;
	usleep(1050000);
	assert_int_equal(send(&c, OP_CLAIM, "t1"), SUCCESS);
	assert_int_equal(send_token(&c, OP_DONE, "t1", first), LOST_LOCK);
	assert_int_equal(status("t1", REVIEW), SUCCESS);
	assert_int_equal(files(".token"), 0);
}

/* The first acquisition gives the queue its id; a concurrent second one learns that id. */
static void test_identity(void **state)
{
	const struct str mine = STR("aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa");
	struct request rq = about(OP_CLAIM, "t2");
	struct str id, later;

	(void)state;
	create("t1");
	create("t2");
	assert_false(queue_identity(c.conn.queue, &id, &arena));
	assert_int_equal(send(&c, OP_CLAIM, "t1"), SUCCESS);
	assert_true(queue_identity(c.conn.queue, &id, &arena));
	assert_true(str_eq(ans.queue_id, id) && str_is(id, c.keyring.id));
	GIVE(&rq, agent, STR("bob"));
	GIVE(&rq, new_token, mine);
	GIVE(&rq, queue_id, mine);
	queue_call(c.conn.queue, &rq, &ans, &arena);
	assert_int_equal(ans.code, SUCCESS);
	assert_true(str_eq(ans.queue_id, id));
	assert_true(queue_identity(c.conn.queue, &later, &arena) && str_eq(id, later));
	assert_int_equal(send(&c, OP_DONE, "t1"), SUCCESS);
	assert_false(ans.queue_id.n);
}

/* An invalid id does not become the queue's id. */
static void test_bad_identity(void **state)
{
	struct request rq = about(OP_CLAIM, "t1");
	struct str id;

	(void)state;
	create("t1");
	GIVE(&rq, agent, STR("bob"));
	GIVE(&rq, new_token, STR("aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa"));
	GIVE(&rq, queue_id, STR("../../etc"));
	queue_call(c.conn.queue, &rq, &ans, &arena);
	assert_int_equal(ans.code, SUCCESS);
	assert_false(ans.queue_id.n);
	assert_false(queue_identity(c.conn.queue, &id, &arena));
}

static void test_resume(void **state)
{
	struct request rq = about(OP_CLAIM, "t1");

	(void)state;
	create("t1");
	GIVE(&rq, ttl, 1000);
	assert_int_equal(send_it(&c, rq), SUCCESS);
	usleep(1050000);
	rq = about(OP_CLAIM, "t1");
	GIVE(&rq, fence, ans.lock->fence);
	assert_int_equal(send_it(&c, rq), SUCCESS);
	assert_int_equal(ans.lock->fence, 2);
	assert_int_equal(send(&c, OP_DONE, "t1"), SUCCESS);
}

static void test_lost_lock_is_forgotten(void **state)
{
	struct client person;
	struct request rq = about(OP_LOCK_BREAK, "t1");

	(void)state;
	create("t1");
	assert_int_equal(send(&c, OP_CLAIM, "t1"), SUCCESS);
	start(&person, (struct client_options){ .agent = STR("person") });
	GIVE(&rq, reason, STR("stuck"));
	assert_int_equal(send_it(&person, rq), SUCCESS);
	client_close(&person);
	assert_int_equal(files(".token"), 1);
	assert_int_equal(send(&c, OP_HEARTBEAT, "t1"), LOST_LOCK);
	assert_int_equal(files(".token"), 0);
	assert_int_equal(send(&c, OP_CLAIM, "t1"), SUCCESS);
	assert_int_equal(send_it(&c, rq), SUCCESS); /* the caller's own */
	assert_int_equal(files(".token"), 0);
}

static void test_status_round_trip(void **state)
{
	(void)state;
	create("t1");
	assert_int_equal(status("t1", IN_PROGRESS), SUCCESS);
	assert_int_equal(files(".token"), 1);
	assert_int_equal(status("t1", BLOCKED), SUCCESS);
	assert_int_equal(files(".token"), 1);
	assert_int_equal(status("t1", IN_PROGRESS), SUCCESS);
	assert_int_equal(status("t1", REVIEW), SUCCESS);
	assert_int_equal(files(".token"), 0);
	assert_int_equal(status("t1", IN_PROGRESS), SUCCESS);
	assert_int_equal(status("t1", DONE), SUCCESS);
	assert_int_equal(files(""), 2);
}

static void test_no_place_for_tokens(void **state)
{
	struct str mine = token_make(&arena);

	(void)state;
	create("t1");
	assert_int_equal(fs_make_dirs(".local/state", 0700), 0);
	assert_int_equal(symlink("/tmp", ".local/state/pawl"), 0);
	assert_int_equal(send(&c, OP_CLAIM, "t1"), API_ERROR);
	assert_int_equal(ans.applied, 'n');
	assert_true(str_has_nocase(ans.message, STR("cannot keep the token in ")));
	assert_true(str_has_nocase(ans.message, STR("link")));
	assert_int_equal(send(&c, OP_SHOW, "t1"), SUCCESS);
	assert_int_equal(ans.task->status, READY);
	assert_int_equal(send_token(&c, OP_CLAIM, "t1", mine), SUCCESS);
	assert_int_equal(ans.warnings.n, 1);
	assert_int_equal(send_token(&c, OP_DONE, "t1", mine), SUCCESS);
}

/* --- client_init --------------------------------------------------------------------------- */

/* "%s" stands for the test's folder. */
static const char *with_top(const char *uri)
{
	const char *at = strstr(uri, "%s");

	if (!at)
		return uri;
	return arena_printf(&arena, "%.*s%s%s", (int)(at - uri), uri, top, at + 2).p;
}

static void assert_uri(struct client_options said, const char *uri)
{
	struct client d;

	assert_int_equal(client_init(&d, &said, &ans, &arena), SUCCESS);
	assert_string_equal(arena_cstr(&arena, d.conn.config.uri), with_top(uri));
}

static void put(const char *path, const char *text)
{
	assert_int_equal(fs_make_dirs(arena_cstr(&arena, fs_dirname(str_c(path))), 0755), 0);
	assert_int_equal(fs_write_atomic(path, str_c(text), 0644), 0);
}

static void test_which_store(void **state)
{
	struct client d;

	(void)state;
	assert_uri((struct client_options){ 0 }, "");
	assert_int_equal(client_init(&d, &(struct client_options){ 0 }, &ans, &arena), SUCCESS);
	client_call(&d, &(struct request){ .op = OP_OVERVIEW }, &ans);
	assert_int_equal(ans.code, MISCONFIGURED);
	assert_true(str_has_nocase(ans.message, STR("there is no queue here")));
	assert_true(str_has_nocase(ans.hint, STR("pawl init")));
	assert_int_equal(fs_make_dirs("p/sub", 0755), 0);
	assert_int_equal(fs_make_dirs("p/.pawl", 0755), 0);
	assert_uri((struct client_options){ .dir = STR("p/sub") }, "sqlite:%s/p/.pawl/queue.db");
	put("p/.pawl/config", "store = files:q?x=1\n");
	assert_uri((struct client_options){ .dir = STR("p/sub") }, "files:%s/p/q?x=1");
	setenv("PAWL_STORE", "fault+sqlite:./here.db#f", 1);
	assert_uri((struct client_options){ .dir = STR("p/sub") },
		   "fault+sqlite:%s/p/sub/here.db#f");
	assert_uri((struct client_options){ .store = STR("sqlite:p/../x.db") }, "sqlite:%s/x.db");
	assert_uri((struct client_options){ .store = STR("mem:x") }, "mem:x");
	unsetenv("PAWL_STORE");
	put("p/.pawl/config", "");
	put(".config/pawl/config", "store = sqlite:rel.db\n");
	assert_int_equal(client_init(&d, &(struct client_options){ 0 }, &ans, &arena),
			 MISCONFIGURED);
	assert_int_equal(
		client_init(&d, &(struct client_options){ .dir = STR("no/where") }, &ans, &arena),
		USAGE);
}

static void timeouts(const struct client_options *said, int64_t quick, int64_t plain, int64_t batch,
		     int64_t heavy)
{
	struct client d;

	assert_int_equal(client_init(&d, said, &ans, &arena), SUCCESS);
	assert_int_equal(client_timeout(&d, op_flags(OP_CREATE)), quick);
	assert_int_equal(client_timeout(&d, op_flags(OP_REMOVE)), quick);
	assert_int_equal(client_timeout(&d, op_flags(OP_CLAIM)), plain);
	assert_int_equal(client_timeout(&d, OP_BATCH), batch);
	assert_int_equal(client_timeout(&d, OP_HEAVY), heavy);
}

/* By kind of call, by caller, by setting; a nearer setting wins. */
static void test_timeouts(void **state)
{
	struct client_options program = { 0 }, command = { .face = CLIENT_COMMAND },
			      prompt = { .face = CLIENT_PROMPT };

	(void)state;
	timeouts(&program, 10000, 15000, 30000, 60000);
	timeouts(&command, 10000, 15000, 30000, 60000);
	timeouts(&prompt, 5000, 5000, 30000, 60000);
	setenv("PAWL_LOCK_TIMEOUT", "7s", 1);
	timeouts(&program, 7000, 7000, 7000, 7000);
	timeouts(&prompt, 7000, 7000, 7000, 7000);
	setenv("PAWL_LOCK_CLI_TIMEOUT", "0", 1);
	setenv("PAWL_LOCK_BATCH_TIMEOUT", "9s", 1);
	timeouts(&program, 7000, 7000, 9000, 9000);
	timeouts(&command, 0, 0, 9000, 9000);
	timeouts(&prompt, 0, 0, 9000, 9000);
	setenv("PAWL_TIMEOUT", "2s", 1);
	timeouts(&command, 2000, 2000, 2000, 2000);
	command.timeout = STR("300ms");
	timeouts(&command, 300, 300, 300, 300);
	unsetenv("PAWL_LOCK_TIMEOUT");
	unsetenv("PAWL_LOCK_CLI_TIMEOUT");
	unsetenv("PAWL_LOCK_BATCH_TIMEOUT");
	unsetenv("PAWL_TIMEOUT");
}

static void test_who(void **state)
{
	struct client d;
	struct client_options said = {
		.store = STR("postgres://u:secret@h/db?password=secret&queue=q2")
	};

	(void)state;
	assert_int_equal(client_init(&d, &said, &ans, &arena), SUCCESS);
	assert_true(str_is(d.keyring.queue, "postgres://u@h/db queue q2"));
	assert_int_equal(d.conn.config.opt.queue.n, 0);
	assert_int_equal(client_timeout(&d, 0), 15000);
	setenv("PAWL_QUEUE", "q3", 1);
	setenv("PAWL_AGENT", "env", 1);
	setenv("PAWL_RUN", "r1", 1);
	setenv("PAWL_TIMEOUT", "2s", 1);
	assert_int_equal(client_init(&d, &said, &ans, &arena), SUCCESS);
	assert_true(str_is(d.self.agent, "env") && str_is(d.self.run, "r1") &&
		    str_is(d.conn.config.opt.queue, "q3"));
	assert_int_equal(client_timeout(&d, OP_HEAVY), 2000);
	said.agent = STR("said");
	said.run = STR("r2");
	said.queue = STR("q4");
	said.timeout = STR("300ms");
	assert_int_equal(client_init(&d, &said, &ans, &arena), SUCCESS);
	assert_true(str_is(d.self.agent, "said") && str_is(d.self.run, "r2") &&
		    str_is(d.conn.config.opt.queue, "q4"));
	assert_int_equal(client_timeout(&d, OP_QUICK), 300);
	said.timeout = STR("soon");
	assert_int_equal(client_init(&d, &said, &ans, &arena), USAGE);
	said.timeout = STR("");
	said.agent = STR("two\nlines");
	assert_int_equal(client_init(&d, &said, &ans, &arena), USAGE);
	said.agent = str_n(arena_alloc(&arena, 201), 201);
	memset((char *)(uintptr_t)said.agent.p, 'x', 201);
	assert_int_equal(client_init(&d, &said, &ans, &arena), USAGE);
}

static void test_init_makes_a_queue(void **state)
{
	struct client d;

	(void)state;
	assert_int_equal(fs_make_dirs("fresh", 0755), 0);
	assert_int_equal(
		client_init(&d, &(struct client_options){ .dir = STR("fresh") }, &ans, &arena),
		SUCCESS);
	assert_int_equal(client_open(&d, STORE_CREATE, &ans), SUCCESS);
	assert_true(fs_exists("fresh/.pawl/queue.db"));
	client_close(&d);
	assert_int_equal(
		client_init(&d, &(struct client_options){ .dir = STR("fresh") }, &ans, &arena),
		SUCCESS);
	assert_int_equal(send(&d, OP_OVERVIEW, NULL),
			 SUCCESS); /* opened for reading, then for writing */
	assert_int_equal(d.conn.mode, STORE_READ);
	{
		struct request rq = about(OP_CREATE, "t1");

		GIVE(&rq, title, STR("x"));
		assert_int_equal(send_it(&d, rq), SUCCESS);
	}
	assert_int_equal(d.conn.mode, STORE_WRITE);
	assert_int_equal(send(&d, OP_CLAIM, "t1"), SUCCESS);
	client_close(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_claim_and_done, enter, leave),
		cmocka_unit_test_setup_teardown(test_take_and_claim_next, enter, leave),
		cmocka_unit_test_setup_teardown(test_explicit_tokens, enter, leave),
		cmocka_unit_test_setup_teardown(test_token_in_the_environment, enter, leave),
		cmocka_unit_test_setup_teardown(test_identities_are_apart, enter, leave),
		cmocka_unit_test_setup_teardown(test_lost_reply, enter, leave),
		cmocka_unit_test_setup_teardown(test_failed_for_certain, enter, leave),
		cmocka_unit_test_setup_teardown(test_fate_still_unknown, enter, leave),
		cmocka_unit_test_setup_teardown(test_fate_of_a_take, enter, leave),
		cmocka_unit_test_setup_teardown(test_fate_of_a_next, enter, leave),
		cmocka_unit_test_setup_teardown(test_fate_is_known, enter, leave),
		cmocka_unit_test_setup_teardown(test_filters_are_apart, enter, leave),
		cmocka_unit_test_setup_teardown(test_next_is_saved_first, enter, leave),
		cmocka_unit_test_setup_teardown(test_late_repeat, enter, leave),
		cmocka_unit_test_setup_teardown(test_given_back_meanwhile, enter, leave),
		cmocka_unit_test_setup_teardown(test_ran_out, enter, leave),
		cmocka_unit_test_setup_teardown(test_claimed_again, enter, leave),
		cmocka_unit_test_setup_teardown(test_identity, enter, leave),
		cmocka_unit_test_setup_teardown(test_bad_identity, enter, leave),
		cmocka_unit_test_setup_teardown(test_resume, enter, leave),
		cmocka_unit_test_setup_teardown(test_lost_lock_is_forgotten, enter, leave),
		cmocka_unit_test_setup_teardown(test_status_round_trip, enter, leave),
		cmocka_unit_test_setup_teardown(test_no_place_for_tokens, enter, leave),
		cmocka_unit_test_setup_teardown(test_which_store, enter, leave),
		cmocka_unit_test_setup_teardown(test_timeouts, enter, leave),
		cmocka_unit_test_setup_teardown(test_who, enter, leave),
		cmocka_unit_test_setup_teardown(test_init_makes_a_queue, enter, leave),
	};

	/* the tests clear the environment, which has the output format: set it here */
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

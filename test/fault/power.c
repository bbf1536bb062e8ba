/*
 * The power fails at any step of a long series of changes by several processes. Every acknowledged
 * change is there, and at most the change under way besides, whole or not at all. The store is
 * sound and usable.
 *
 * usage: power full|normal|mixed|begun|init [POINTS [SEED]]
 *
 * With fewer than 100 POINTS the series is shorter, and only some of its states are checked while it
 * is made. Every state after a failure is checked.
 *
 * full: the default durability. normal: acknowledged changes may be lost, but the store is in a
 * state that existed. mixed: processes of both kinds on one queue; a change acknowledged by a full
 * one is there, with all that it depends on. begun: the WAL vanishes again and again. A process
 * with normal durability begins a new one and may be killed while it does; others continue with it.
 * init: `pawl init` itself, including the folder.
 *
 * PAWL_TEST_STORE=files:… runs on files:, where scripts take part as well. There, normal only means
 * that the store is usable: a task's file may be newer than the lost change, or torn.
 */
#include "scene.h"

#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/secret.h"
#include "calls.h"
#include "disc.h"
#include "face/cli/cli.h"

#define WORKERS 3
#define CHANGES 400
#define FEW_BEGUN SCALE(CHANGES, 100) /* it needs all of its rounds */
#define FEW_CHANGES SCALE(200, 100)
#define FEW_ON_FILES SCALE(280, 100) /* a snapshot, and changes after it */
#define CHECK_EVERY 8
#define BIG 20000

enum durability { FULL, NORMAL, MIXED, BEGUN };

static char place[64], work[80], image[80];
static char states[CHANGES + 10][65]; /* the dump of each state */
static int n_states, acked;
static int most = CHANGES; /* states */
static bool thorough;
static enum durability durability;
static bool on_files;
static uint64_t dice;

static uint32_t roll(uint32_t limit)
{
	dice ^= dice << 13;
	dice ^= dice >> 7;
	dice ^= dice << 17;
	return (uint32_t)(dice >> 11) % limit;
}

/* --- the workers --------------------------------------------------------------------------------- */

enum task_kind { MAKE, RENAME, REMARK, RANK, CLAIM, FINISH, ARCHIVE, REMOVE };

struct order {
	enum task_kind kind;
	int change;  /* the number of its change; 0: go */
	int state;   /* the number of the state after it */
	int die_at;  /* die after this effect of the change; 0: do not die */
	uint32_t on; /* the number of the task */
};

static struct worker {
	pid_t pid;
	int end;
	bool relaxed;
} workers[WORKERS];

static enum result open_as(struct queue **q, const char *dir, enum store_mode mode, bool relaxed,
			   struct answer *ans, struct arena *a)
{
	struct queue_config config = { .uri = on_files ? arena_printf(a, "files:%s", dir)
						       : arena_printf(a, "sqlite:%s/queue.db", dir),
				       .policy = policy_default,
				       .opt.timeout_ms = 10000,
				       .opt.relaxed = relaxed,
				       .opt.who = STR("power test") };

	config.policy.claim_creates = on_files;
	return queue_open(q, &config, mode, ans, a);
}

static struct request make_request(const struct order *o, struct arena *a)
{
	static const enum op ops[] = { OP_CREATE, OP_UPDATE, OP_COMMENT, OP_UPDATE,
				       OP_CLAIM,  OP_DONE,   OP_ARCHIVE, OP_REMOVE };
	struct str id = arena_printf(a, "%c%u", o->kind < CLAIM ? 't' : 'c', o->on);
	struct str token = arena_printf(a, "%08u-1111-4111-8111-111111111111", o->on);
	struct request rq = kit_request(ops[o->kind], o->kind == MAKE ? STR("") : id, STR("ann"));

	if (o->kind == MAKE) {
		GIVE(&rq, title, STR("a task"));
		GIVE(&rq, description, str_n(arena_alloc(a, BIG), o->change % 24 == 0 ? BIG : 0));
		memset((char *)rq.description.p, 'x', rq.description.n);
	} else if (o->kind == RENAME) {
		GIVE(&rq, title, arena_printf(a, "change %d", o->change));
	} else if (o->kind == REMARK) {
		GIVE(&rq, text, arena_printf(a, "change %d", o->change));
	} else if (o->kind == RANK) {
		GIVE(&rq, priority, o->change);
	} else if (o->kind == CLAIM) {
		GIVE(&rq, new_token, token);
	} else if (o->kind == FINISH) {
		GIVE(&rq, token, token);
	}
	return rq;
}

static _Noreturn void work_off(int end, bool relaxed)
{
	struct arena a = { 0 };
	struct answer ans = { 0 };
	struct queue *q;
	struct order o;

	disc_go_on();
	if (open_as(&q, work, STORE_WRITE, relaxed, &ans, &a) != SUCCESS)
		_exit(2);
	while (read(end, &o, sizeof(o)) == (ssize_t)sizeof(o) && o.change) {
		struct request rq = make_request(&o, &a);

		disc_kill_after(o.die_at);
		queue_call(q, &rq, &ans, &a);
		disc_kill_after(0);
		if (ans.code != SUCCESS)
			fprintf(stderr, "change %d: %.*s\n", o.change, STRF(ans.message));
		else if (!relaxed)
			disc_mark(o.state, o.state);
		if (write(end, &ans.code, sizeof(ans.code)) != (ssize_t)sizeof(ans.code))
			break;
	}
	queue_close(q);
	_exit(0);
}

static void begin_worker(struct worker *w, bool relaxed)
{
	int ends[2];

	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "no pipe");
	w->relaxed = relaxed;
	fflush(NULL);
	w->pid = fork();
	CHECK(w->pid >= 0, "cannot fork");
	if (w->pid == 0) {
		close(ends[0]);
		work_off(ends[1], w->relaxed);
	}
	close(ends[1]);
	w->end = ends[0];
}

static void end_worker(struct worker *w)
{
	struct order go = { 0 };
	int code;

	if (!w->pid)
		return;
	CHECK(write(w->end, &go, sizeof(go)) == (ssize_t)sizeof(go), "a worker is gone");
	code = kit_reap(w->pid);
	CHECK(code == 0, "a worker ended with %d", code);
	close(w->end);
	w->pid = 0;
}

static bool any_durability(void)
{
	return durability == NORMAL || (durability == MIXED && roll(2));
}

static void end_all(void)
{
	for (int i = 0; i < WORKERS; i++)
		end_worker(&workers[i]);
}

/* --- the states ---------------------------------------------------------------------------------- */

static struct str state_of(const char *dir, bool check, struct str *bad, struct arena *a)
{
	struct answer ans = { 0 };
	struct queue *q;
	struct str dump;

	*bad = STR("");
	if (open_as(&q, dir, STORE_READ, false, &ans, a) != SUCCESS) {
		*bad = ans.message;
		return STR("");
	}
	if (check)
		*bad = scene_check(q, a);
	dump = scene_dump(q, a);
	queue_close(q);
	return dump.n ? hash_hex(a, dump) : dump;
}

/* true: the state is new */
static bool keep_state(bool check)
{
	struct arena a = { 0 };
	struct str bad, now;
	bool new;

	disc_go_on(); /* a reader may create files, too */
	now = state_of(work, check, &bad, &a);
	disc_pause();
	CHECK(now.n && !bad.n, "at work: %.*s", STRF(bad));
	new = !n_states || !str_is(now, states[n_states - 1]);
	if (new)
		snprintf(states[n_states++], sizeof(states[0]), "%.*s", STRF(now));
	arena_free(&a);
	disc_snapshot();
	return new;
}

/* --- the work ------------------------------------------------------------------------------------ */

static int changes, kills, strangers, made;
static uint32_t held, ended, archived; /* on files: the number of a task in this status; 0: none */

static enum task_kind next_kind(void)
{
	uint32_t n = roll(8);

	if (!on_files || n < 3 || !made)
		return changes == 1 || !made ? MAKE : (enum task_kind)(changes % 4);
	if (n == 3 && archived)
		return REMOVE;
	if (n == 4 && ended)
		return ARCHIVE;
	return held ? FINISH : CLAIM;
}

static struct order next_order(int die_at)
{
	struct order o = { .change = ++changes, .state = n_states, .die_at = die_at };

	o.kind = next_kind();
	if (o.kind < CLAIM)
		o.on = 1 + roll(made ? (uint32_t)made : 1);
	else
		o.on = o.kind == CLAIM     ? (uint32_t)changes
		       : o.kind == FINISH  ? held
		       : o.kind == ARCHIVE ? ended
					   : archived;
	disc_mark(n_states, acked);
	return o;
}

static void has_happened(const struct order *o)
{
	made += o->kind == MAKE;
	if (o->kind == CLAIM) {
		held = o->on;
	} else if (o->kind == FINISH) {
		ended = held;
		held = 0;
	} else if (o->kind == ARCHIVE) {
		archived = ended;
		ended = 0;
	} else if (o->kind == REMOVE) {
		archived = 0;
	}
}

static void make_change(struct worker *w)
{
	struct order o = next_order(0);
	enum result code;

	CHECK(write(w->end, &o, sizeof(o)) == (ssize_t)sizeof(o), "a worker is gone");
	CHECK(read(w->end, &code, sizeof(code)) == (ssize_t)sizeof(code), "a worker died");
	if (code == SUCCESS && !w->relaxed)
		acked = o.state;
	CHECK(code == SUCCESS && keep_state(thorough || o.change % CHECK_EVERY == 0),
	      "change %d changed nothing", o.change);
	has_happened(&o);
}

/* Alone, so that every process finds the same state afterwards. The change may be complete before
 * the process dies. */
static void die_in_change(bool relaxed, int effect)
{
	struct worker *w = &workers[0];
	enum result code;
	struct order o;

	end_all();
	begin_worker(w, relaxed);
	o = next_order(effect);
	CHECK(write(w->end, &o, sizeof(o)) == (ssize_t)sizeof(o), "a worker is gone");
	shutdown(w->end, SHUT_WR);
	if (kit_reap(w->pid) == 1000 + SIGKILL)
		kills++;
	else if (read(w->end, &code, sizeof(code)) == (ssize_t)sizeof(code) && !relaxed)
		acked = o.state;
	close(w->end);
	w->pid = 0;
	if (keep_state(true))
		has_happened(&o);
}

/* Another program opens the database for a moment and removes the WAL when it closes it. */
static int open_database(void)
{
	char path[100];
	sqlite3 *db;

	snprintf(path, sizeof(path), "%s/queue.db", work);
	return sqlite3_open(path, &db) != SQLITE_OK ||
	       sqlite3_exec(db, "SELECT count(*) FROM record", NULL, NULL, NULL) ||
	       sqlite3_close(db);
}

static int sync_path(const char *path)
{
	int fd = open(path, O_RDONLY), r = fd < 0 || fsync(fd);

	close(fd);
	return r;
}

/* A script that syncs as the protocol says. It takes a task, and the next script ends it. No pawl
 * replaces its file here: pawl knows the file by its inode, and a copy has another one. */
static int follow_protocol(void)
{
	static const char text[] =
		"{\"agent\": \"script\", \"claimed_at\": \"2023-11-14T20:00:00Z\", "
		"\"expires_at\": \"2030-01-01T00:00:00Z\", \"completed_at\": \"2023-11-14T21:00:00Z\"}";
	char temp[100], lock[100], done[100];
	int fd;

	snprintf(temp, sizeof(temp), "%s/script.tmp", work);
	snprintf(lock, sizeof(lock), "%s/s%d.lock", work, strangers / 2);
	snprintf(done, sizeof(done), "%s/s%d.done", work, strangers / 2);
	if (strangers % 2)
		return rename(lock, done) || sync_path(work);
	fd = open(temp, O_WRONLY | O_CREAT | O_EXCL, 0666);
	if (fd < 0 || fs_write_all(fd, str_c(text)) || fsync(fd) || close(fd))
		return 1;
	return rename(temp, lock) || sync_path(work);
}

static void let_stranger_in(void)
{
	pid_t pid;

	end_all();
	disc_mark(n_states - !on_files, acked);
	fflush(NULL);
	pid = fork();
	CHECK(pid >= 0, "cannot fork");
	if (pid == 0) {
		disc_go_on();
		_exit(on_files ? follow_protocol() : open_database());
	}
	CHECK(kit_reap(pid) == 0, "the stranger failed");
	strangers++;
	if (!on_files)
		return;
	acked = n_states;
	disc_mark(n_states, acked);
	CHECK(keep_state(true), "the stranger has changed nothing");
}

static void take_turn(void)
{
	struct worker *w = &workers[roll(WORKERS)];
	int n = 1 + (int)roll(5);

	bool stranger = roll(8) == 0 && n_states < most;

	if (stranger)
		let_stranger_in();
	if (roll(stranger ? 2 : 12) == 0) /* the dying process then begins a WAL */
		die_in_change(any_durability(), 1 + (int)roll(12));
	if (w->pid && roll(3) == 0)
		end_worker(w);
	if (!w->pid)
		begin_worker(w, any_durability());
	for (int i = 0; i < n && n_states < most; i++)
		make_change(w);
}

static void work_alone(bool relaxed, int n)
{
	struct worker *w = &workers[0];

	begin_worker(w, relaxed);
	for (int i = 0; i < n && n_states < most; i++)
		make_change(w);
	end_worker(w);
}

/* One process dies around the WAL's header; another makes the WAL long, so the next begins with a
 * checkpoint. */
static void begin_anew(int round)
{
	let_stranger_in();
	if (round % 2)
		die_in_change(true, 12 + round / 4 % 3);
	work_alone(round % 4 < 2, 30);
	work_alone(true, 2);
}

static int init_here(void)
{
	struct arena a = { 0 };
	struct answer ans = { 0 };
	struct queue *q;
	enum result code;

	disc_go_on();
	code = open_as(&q, work, STORE_CREATE, durability == NORMAL, &ans, &a);
	if (code != SUCCESS)
		return (int)code;
	disc_mark(0, 0);
	queue_close(q);
	return 0;
}

static int init_by_command(void)
{
	char *argv[] = { "pawl", "init", on_files ? "--store" : NULL, "files:.pawl/locks", NULL };
	int code;

	if (chdir(work) || !freopen("/dev/null", "w", stdout))
		return 1;
	setenv("XDG_STATE_HOME", place, 1);
	setenv("XDG_CONFIG_HOME", place, 1);
	unsetenv("PAWL_STORE");
	disc_go_on();
	code = cli_main(on_files ? 4 : 2, argv);
	disc_pause();
	disc_mark(0, 0);
	return code;
}

static void record(int (*init)(void))
{
	pid_t pid;

	disc_record(work);
	disc_same_inode("-wal");
	disc_pause();
	disc_mark(0, -1);
	fflush(NULL);
	pid = fork();
	CHECK(pid >= 0, "cannot fork");
	if (pid == 0)
		_exit(init());
	CHECK(kit_reap(pid) == 0, "init failed");
	if (init == init_by_command)
		return;
	keep_state(true);
	for (int round = 0; n_states < most; round++) {
		if (durability == BEGUN)
			begin_anew(round);
		else
			take_turn();
	}
	end_all();
}

/* --- the failures -------------------------------------------------------------------------------- */

static int find_state(struct str now)
{
	for (int i = n_states - 1; i >= 0; i--)
		if (str_is(now, states[i]))
			return i;
	return -1;
}

/* A queue that does not exist yet can be created. */
static void make_now(const char *dir, int point)
{
	struct arena a = { 0 };
	struct answer ans = { 0 };
	struct queue *q;

	CHECK(open_as(&q, dir, STORE_CREATE, false, &ans, &a) == SUCCESS, "step %d: %.*s", point,
	      STRF(ans.message));
	queue_close(q);
	arena_free(&a);
}

static struct str list_of(struct queue *q, struct arena *a)
{
	struct request rq = kit_request(OP_LIST, STR(""), STR("judge"));
	struct answer ans;

	queue_call(q, &rq, &ans, a);
	return scene_json(&ans, a);
}

/* The store is usable, and the first writer's clean-up changes no task. */
static void use(const char *dir, int point)
{
	struct request rq = kit_request(OP_ID_CLAIM, STR(""), STR("ann"));
	struct arena a = { 0 };
	struct answer ans = { 0 };
	struct queue *q;
	struct str bad, before;

	CHECK(open_as(&q, dir, STORE_WRITE, false, &ans, &a) == SUCCESS, "step %d: %.*s", point,
	      STRF(ans.message));
	before = list_of(q, &a);
	queue_call(q, &rq, &ans, &a);
	CHECK(ans.code == SUCCESS, "step %d: %.*s", point, STRF(ans.message));
	CHECK(str_eq(before, list_of(q, &a)),
	      "step %d: one more change changed the others:\n%.*s\n%s", point, STRF(before),
	      arena_cstr(&a, list_of(q, &a)));
	bad = durability == NORMAL && on_files ? STR("") : scene_check(q, &a);
	CHECK(!bad.n, "step %d, after one more change: %.*s", point, STRF(bad));
	queue_close(q);
	arena_free(&a);
}

static int in_flight, lost;

static void judge(const char *dir, int point, uint64_t seed)
{
	struct arena a = { 0 };
	struct str bad, now = state_of(dir, true, &bad, &a);
	int begun, least, state;

	disc_marks(&begun, &least);
	if (!now.n && least < 0) {
		make_now(dir, point);
		arena_free(&a);
		return;
	}
	if (on_files && durability == NORMAL) {
		CHECK(now.n, "step %d, seed %d: %.*s", point, (int)seed, STRF(bad));
		use(dir, point);
		arena_free(&a);
		return;
	}
	CHECK(now.n && !bad.n, "step %d, seed %d: %.*s", point, (int)seed, STRF(bad));
	state = find_state(now);
	CHECK(state >= 0, "step %d, seed %d: a state that never was", point, (int)seed);
	CHECK(state >= least, "step %d, seed %d: state %d, but %d was acknowledged", point,
	      (int)seed, state, least);
	CHECK(state <= begun, "step %d, seed %d: state %d, before it was begun", point, (int)seed,
	      state);
	in_flight += state > least;
	lost += state < begun;
	use(dir, point);
	arena_free(&a);
}

/* Points must ascend, because the disc plays forward only. */
static void fail_at(int points, uint64_t seed)
{
	int steps = disc_steps();

	for (int i = 0; i < points; i++) {
		struct tree t = { 0 };
		int from = (int)((int64_t)i * steps / points),
		    to = (int)((int64_t)(i + 1) * steps / points);
		int point = 1 + from + (int)roll((uint32_t)(to > from ? to - from : 1));

		disc_play(point < steps ? point : steps);
		disc_image(seed + (uint64_t)i, &t);
		tree_store(&t, image);
		judge(image, point, seed + (uint64_t)i);
		tree_free(&t);
	}
}

/* The folder that a command made is there as well. */
static void fail_init(int points, uint64_t seed)
{
	char dir[100];
	struct arena a = { 0 };
	struct str bad;

	snprintf(dir, sizeof(dir), "%s/.pawl%s", work, on_files ? "/locks" : "");
	snprintf(states[n_states++], sizeof(states[0]), "%s", state_of(dir, true, &bad, &a).p);
	snprintf(dir, sizeof(dir), "%s/.pawl%s", image, on_files ? "/locks" : "");
	for (int i = 0; i < points; i++) {
		struct tree t = { 0 };
		int point = i % 2 ? disc_steps() : 1 + i % disc_steps(), begun, least;

		disc_play(point);
		disc_marks(&begun, &least);
		disc_image(seed + (uint64_t)i, &t);
		tree_store(&t, image);
		CHECK(least < 0 || access(dir, F_OK) == 0, "step %d, seed %d: no folder .pawl",
		      point, (int)(seed + (uint64_t)i));
		if (access(dir, F_OK) == 0)
			judge(dir, point, seed + (uint64_t)i);
		tree_free(&t);
	}
	arena_free(&a);
}

static void make_places(void)
{
	tree_place(place, sizeof(place));
	snprintf(work, sizeof(work), "%s/work", place);
	snprintf(image, sizeof(image), "%s/image", place);
	CHECK(mkdir(work, 0777) == 0 && mkdir(image, 0777) == 0, "no folder");
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "full";
	int points = argc > 2 ? (int)strtol(argv[2], NULL, 10) : SCALE(200, 40);
	uint64_t seed = argc > 3 ? strtoull(argv[3], NULL, 10) : 1;
	bool init = strcmp(what, "init") == 0;

	durability = strcmp(what, "normal") == 0  ? NORMAL
		     : strcmp(what, "mixed") == 0 ? MIXED
		     : strcmp(what, "begun") == 0 ? BEGUN
						  : FULL;
	on_files = str_starts(str_c(getenv("PAWL_TEST_STORE")), STR("files:"));
	thorough = points >= 100;
	if (!thorough)
		most = durability == BEGUN ? FEW_BEGUN : on_files ? FEW_ON_FILES : FEW_CHANGES;
	dice = (seed + 1) * UINT64_C(0x9E3779B97F4A7C15);
	make_places();
	record(init ? init_by_command : init_here);
	scene_boot("after the power was back");
	if (init)
		fail_init(points, seed);
	else
		fail_at(points, seed);
	printf("power %s: %d states, %d kills, %d strangers, %d steps; %d failures: %s each time, "
	       "the change under way was there %d times, something not acknowledged was lost %d times\n",
	       what, n_states, kills, strangers, disc_steps(), points,
	       on_files && durability == NORMAL ? "usable" : "sound", in_flight, lost);
	tree_clear(place);
	rmdir(place);
	return 0;
}

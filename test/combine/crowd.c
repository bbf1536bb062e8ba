/*
 * Crowds of every kind: a single process, more processes than slots, processes that do not share
 * commits, two queues in one database, unusable slots, and slots that vanish. No call is lost or
 * made twice, and none waits longer than its timeout.
 */
#include "ledger.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/secret.h"
#include "store/local/combine.h"
#include "store/local/combine_file.h"

#define TIMEOUT 60000
#define MANY 140 /* more than there are slots */
#define NOBODY 65534

static struct board {
	_Atomic int ready, go, stop;
	int calls; /* calls of each process; 0: until it is stopped */
	bool mixed, unprivileged, impatient;
} * board;

static char slots[200];

static void stand_aside(const char *step)
{
	CHECK(strcmp(step, "published") != 0 && strcmp(step, "taking") != 0,
	      "a process that is alone takes part: %s", step);
}

static int work(int me)
{
	struct queue_config config = ledger_config(me % QUEUES, TIMEOUT);
	struct queue *q;

	if (board->impatient)
		config.opt.timeout_ms = 1 + me % 4;
	if (board->unprivileged && geteuid() == 0)
		CHECK(setgid(NOBODY) == 0 && setuid(NOBODY) == 0, "still root");
	config.alone = board->mixed && me % 6 >= 4;
	if (config.alone)
		combine_step = stand_aside;
	config.opt.relaxed = board->mixed && (me % 6 == 2 || me % 6 == 3);
	q = kit_open_as(&config, STORE_WRITE);
	board->ready++;
	kit_await(&board->go, 1, 60000);
	for (int i = 0; board->calls ? i < board->calls : !board->stop; i++)
		CHECK(ledger_call(q, me % QUEUES, TIMEOUT) || board->impatient, "a fault");
	queue_close(q);
	return 0;
}

static void start(pid_t *pids, int n, int calls)
{
	board->ready = board->go = board->stop = 0;
	board->calls = calls;
	for (int i = 0; i < n; i++)
		pids[i] = kit_spawn(work, i);
	CHECK(kit_await(&board->ready, n, 60000), "they do not come");
	board->go = 1;
}

static void finish(const char *what, const pid_t *pids, int n)
{
	board->stop = 1;
	kit_reap_all(what, pids, n);
	ledger_judge();
}

static void crowd(const char *what, int n, int calls)
{
	pid_t pids[MANY];

	start(pids, n, calls);
	finish(what, pids, n);
}

static bool slots_there(void)
{
	return access(slots, F_OK) == 0;
}

/* The number of calls that another process answered. */
static int combined(void)
{
	return step_seen();
}

/* --- processes that do and do not share ----------------------------------------------------------- */

static void alone(void)
{
	crowd("alone", 1, 60);
	CHECK(!slots_there(), "one process alone has made slots");
}

static void together(void)
{
	int64_t end = kit_ms() + 30000;
	pid_t pids[8];

	step_watch("answered");
	start(pids, 8, 0);
	while (combined() < 50 && kit_ms() < end)
		kit_sleep(1);
	CHECK(combined() >= 50, "only %d calls were made by another", combined());
	finish("together", pids, 8);
	CHECK(slots_there(), "no slots");
}

static void one_by_one(void)
{
	for (int i = 0; i < SCALE(20, 5); i++) {
		char command[400];
		const char *pawl = getenv("PAWL");

		snprintf(
			command, sizeof(command),
			"env -u PAWL_QUEUE PAWL_AGENT=cli PAWL_TIMEOUT=60s %s --store %s create cli >/dev/null",
			pawl, kit_uri());
		CHECK(system(command) == 0, "the CLI failed: %s", command);
	}
}

/* The command line in a crowd. */
static void with_cli(void)
{
	pid_t pids[6];

	if (!getenv("PAWL"))
		return;
	start(pids, 6, 0);
	one_by_one();
	finish("with the CLI", pids, 6);
}

static void mixed(void)
{
	board->mixed = true;
	crowd("mixed", 12, SCALE(30, 8));
	board->mixed = false;
}

/* They give up at any moment and make another call at once. */
static void impatient(void)
{
	int before = ledger_counts()->not_applied + ledger_counts()->unsure;

	board->impatient = true;
	crowd("impatient", 12, SCALE(250, 80));
	board->impatient = false;
	CHECK(ledger_counts()->not_applied + ledger_counts()->unsure > before, "nobody gave up");
}

/* --- unusable slots ------------------------------------------------------------------------------- */

static void write_layout(uint32_t layout)
{
	int fd = open(slots, O_RDWR);

	CHECK(fd >= 0 && pwrite(fd, &layout, sizeof(layout), 0) == sizeof(layout), "the layout");
	close(fd);
}

/* The slots are removed before the store is checked, which reports a file that its user cannot write to. */
static void without_slots(const char *what)
{
	pid_t pids[6];

	step_watch("answered");
	start(pids, 6, SCALE(20, 6));
	kit_reap_all(what, pids, 6);
	CHECK(combined() == 0, "%s: slots were used all the same", what);
	CHECK(remove(slots) == 0 || rmdir(slots) == 0, "%s: it cannot be removed", what);
	ledger_judge();
}

static void other_layout(void)
{
	write_layout(COMBINE_LAYOUT + 1);
	without_slots("another layout");
}

static void not_a_file(void)
{
	CHECK(mkfifo(slots, 0600) == 0, "a pipe");
	without_slots("a pipe");
	CHECK(symlink("/dev/zero", slots) == 0, "a link");
	without_slots("a link");
	CHECK(mkdir(slots, 0700) == 0, "a folder");
	without_slots("a folder");
}

static void give_to_nobody(void)
{
	char command[200];

	snprintf(command, sizeof(command), "chown -R %d:%d %s", NOBODY, NOBODY, kit_folder());
	CHECK(geteuid() != 0 || system(command) == 0, "chown");
}

static void no_permission(void)
{
	int fd;

	give_to_nobody();
	fd = open(slots, O_RDWR | O_CREAT | O_EXCL, 0400);
	CHECK(fd >= 0, "no file");
	close(fd);
	board->unprivileged = true;
	without_slots("no permission");
	board->unprivileged = false;
}

/* A file that is too short is created again. */
static void cut_short(void)
{
	int fd = open(slots, O_RDWR | O_CREAT | O_EXCL, 0600);

	CHECK(fd >= 0 && write(fd, "\0\0\0\0", 4) == 4, "no file");
	close(fd);
	together();
}

/* A process that has a slot finds the file truncated at its next call. */
static int go_on(int where)
{
	struct queue_config config = ledger_config(where, 50);
	struct queue *q = kit_open_as(&config, STORE_WRITE);
	struct stat like = { .st_mode = 0600, .st_uid = geteuid(), .st_gid = getegid() };
	struct gate g = { .fd = -1 };
	char path[200];

	snprintf(path, sizeof(path), "%s/queue.db-gate", kit_folder());
	CHECK(gate_open(&g, path, &like) == 0 && gate_lock(&g, 20000, STR("the test")) == 0,
	      "gate");
	CHECK(!ledger_comment(q, where, TIMEOUT), "it did not wait");
	gate_close(&g);
	CHECK(slots_there() && truncate(slots, 0) == 0, "no slots");
	CHECK(ledger_comment(q, where, TIMEOUT), "it does not continue");
	queue_close(q);
	return 0;
}

static void cut_in_use(void)
{
	int code = kit_reap(kit_spawn(go_on, 0));

	CHECK(code == 0, "the slots were cut: %d", code);
}

/* --- slots that vanish or contain impossible values ------------------------------------------------ */

static void vanish(void)
{
	pid_t pids[8];

	start(pids, 8, 0);
	for (int i = 0; i < SCALE(60, 15); i++) {
		kit_sleep(random_below(8));
		unlink(slots);
	}
	finish("slots that vanish", pids, 8);
}

static void scribble(struct combine_file *f)
{
	const uint64_t boot = f->head[0].boot;
	int slot = 64 + (int)random_below(64);
	struct head *h = &f->head[slot];
	char bytes[512];

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (char)rand();
	memcpy(f->text[slot].call, bytes, sizeof(bytes));
	memcpy((char *)h + sizeof(h->word), bytes, sizeof(*h) - sizeof(h->word));
	if (random_below(4)) {
		h->boot = boot;
		h->deadline = INT64_MAX;
		h->queue = 1 + random_below(2);
		h->batch = random_below(2);
	}
	h->word = (random_below(1 << 20) << 3) | random_below(8);
	f->top = 128;
	f->turn = random_below(UINT32_MAX);
	if (!random_below(50))
		f->expected = random_below(UINT32_MAX);
}

/* Garbage in slots without an owner harms neither the holder of the gate nor the calls of
 * others. */
static void garbage(void)
{
	pid_t pids[6];
	int fd = open(slots, O_RDWR);
	struct combine_file *f;

	CHECK(fd >= 0, "no slots");
	f = mmap(NULL, sizeof(*f), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(f != MAP_FAILED, "no memory");
	start(pids, 6, 0);
	for (int i = 0; i < SCALE(8000, 2000); i++)
		scribble(f);
	finish("garbage", pids, 6);
	munmap(f, sizeof(*f));
	close(fd);
}

int main(void)
{
	int64_t began = kit_ms();
	const struct ledger_counts *n;

	board = shared_alloc(sizeof(*board));
	kit_begin();
	snprintf(slots, sizeof(slots), "%s/queue.db-slots", kit_folder());
	ledger_begin();
	alone();
	together();
	with_cli();
	crowd("many", MANY, SCALE(4, 2));
	mixed();
	impatient();
	garbage();
	vanish();
	together();
	other_layout();
	not_a_file();
	no_permission();
	cut_short();
	cut_in_use();
	n = ledger_counts();
	printf("crowd: %d calls, %d acknowledged, %d given up, %d in doubt, %d claims; none lost, none twice; "
	       "%.1f s\n",
	       n->asked, n->acked, n->not_applied, n->unsure, n->claims,
	       (double)(kit_ms() - began) / 1000);
	kit_end();
	return 0;
}

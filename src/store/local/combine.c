/*
 * The slots of group commit; combine.h has the invariants and draws the states. Every step of a slot is one atomic exchange
 * or store of its word, so a process can die between any two steps. Nothing here trusts bytes that another process wrote.
 */
#include "store/local/combine.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/os.h"
#include "base/secret.h"
#include "store/local/combine_file.h"

#define SLEEP_SHORT 5 /* ms after which a waiting process checks whether the holder has died */
#define SLEEP_LONG 40
#define LINE_MS \
	15 /* after this time the owner of an unserved call waits in the kernel's queue, too */
#define UNSERVED_MS 1000 /* after this time the owner waits there in any case */

#define HOLDER_AT (INT64_C(1) << 30) /* the byte that the holder owns */

_Static_assert(sizeof(struct store_error) <= COMBINE_REPLY_MAX, "a fault fits into a reply");

void (*combine_step)(const char *step);

void combine_at(const char *name)
{
	if (combine_step)
		combine_step(name);
}

/* --- the file ----------------------------------------------------------------------------------- */

/* Writes real blocks, because on a full disk a write through the mapping into a hole raises SIGBUS. In a file of zeros
 * every slot is free. */
static int combine_fill(int fd)
{
	static const char zeros[4096];
	struct stat st;
	int r = os_lock(fd, 1000);

	if (r)
		return r;
	r = fstat(fd, &st) ? -errno : 0;
	for (off_t at = st.st_size; r == 0 && at < (off_t)sizeof(struct combine_file);) {
		size_t n = sizeof(struct combine_file) - (size_t)at;
		ssize_t done = pwrite(fd, zeros, n < sizeof(zeros) ? n : sizeof(zeros), at);

		if (done <= 0)
			r = done < 0 ? -errno : -ENOSPC;
		else
			at += done;
	}
	os_unlock(fd);
	return r;
}

static int combine_map(struct combine *c)
{
	struct stat st;
	int r = 0;

	if (fstat(c->fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	c->id = fs_id_of(&st);
	if (st.st_size < (off_t)sizeof(struct combine_file)) {
		struct xfsz hold;

		xfsz_hold(&hold);
		r = combine_fill(c->fd);
		xfsz_release(&hold);
	}
	if (r)
		return r;
	c->file = mmap(NULL, sizeof(*c->file), PROT_READ | PROT_WRITE, MAP_SHARED, c->fd, 0);
	if (c->file == MAP_FAILED) {
		c->file = NULL;
		return -errno;
	}
	c->bus = bus_guard(c->file, sizeof(*c->file));
	return 0;
}

static uint64_t boot_number(void)
{
	struct arena a = { 0 };
	struct str id = os_boot_id(&a);
	uint64_t h = str_hash(id);

	arena_free(&a);
	return h;
}

static int open_file(struct combine *c, const char *path, const struct stat *like)
{
	uint32_t none = 0;
	int r;

	c->fd = gate_file(path, like);
	if (c->fd < 0)
		return c->fd;
	r = combine_map(c);
	if (r)
		return r;
	if (!atomic_compare_exchange_strong(&c->file->layout, &none, COMBINE_LAYOUT) &&
	    none != COMBINE_LAYOUT)
		return -EPROTO;
	c->boot = boot_number();
	return 0;
}

int combine_open(struct combine *c, const char *path, const struct stat *like)
{
	int r = open_file(c, path, like);

	if (r) {
		combine_close(c);
		c->hopeless = true;
	} else {
		c->path = mem_alloc(strlen(path) + 1);
		memcpy(c->path, path, strlen(path) + 1);
	}
	return r;
}

bool combine_stands(const struct combine *c)
{
	int64_t size;

	return c->file && !bus_torn(c->bus) && fs_is_at(c->path, &c->id, &size) &&
	       size >= (int64_t)sizeof(struct combine_file);
}

uint64_t combine_number(struct combine *c)
{
	uint64_t none = 0;
	uint64_t made = (uint64_t)random_below(UINT32_MAX) << 32 | random_below(UINT32_MAX) | 1;

	return atomic_compare_exchange_strong(&c->file->number, &none, made) ? made : none;
}

static uint32_t combine_top(const struct combine *c)
{
	uint32_t n = atomic_load(&c->file->top);

	return n < COMBINE_SLOTS ? n : COMBINE_SLOTS;
}

/* The slot at which a round begins. The remainder keeps `turn + i` from overflowing. After an overflow a round could
 * visit, and take, one slot twice. */
static uint32_t first_slot(const struct combine *c)
{
	return atomic_load(&c->file->turn) % COMBINE_SLOTS;
}

/* Reads the length once, because another process may change it between the check and the use. */
static size_t combine_length(const uint32_t *n, size_t max)
{
	uint32_t v = *(const volatile uint32_t *)n;

	return v < max ? v : max;
}

static struct head *combine_own_head(const struct combine *c)
{
	return &c->file->head[c->slot];
}

/* Ends the generation: a later reply to it is ignored. */
static void set_idle(struct combine *c)
{
	c->word = NEXT(atomic_load(&combine_own_head(c)->word), SLOT_IDLE);
	atomic_store(&combine_own_head(c)->word, c->word);
}

/* Runs for every call, because another process may have refilled a truncated file, which resets `top` to 0. */
static void raise_top(struct combine *c)
{
	uint32_t n = atomic_load(&c->file->top);

	while (n <= (uint32_t)c->slot &&
	       !atomic_compare_exchange_weak(&c->file->top, &n, (uint32_t)c->slot + 1))
		;
}

/* A dead process's slot is free in any state, because the kernel has released its byte. */
static bool find_slot(struct combine *c)
{
	for (int i = 0; c->slot < 0 && i < COMBINE_SLOTS; i++)
		if (os_own_byte(c->fd, i) == 0)
			c->slot = i;
	if (c->slot < 0)
		return false;
	set_idle(c);
	return true;
}

void combine_close(struct combine *c)
{
	if (c->slot >= 0 && combine_stands(c))
		set_idle(c);
	bus_release(c->bus);
	c->bus = NULL;
	if (c->file)
		munmap(c->file, sizeof(*c->file));
	if (c->fd >= 0)
		close(c->fd);
	free(c->path);
	c->path = NULL;
	c->file = NULL;
	c->slot = c->fd = -1;
}

static bool combine_waits(uint32_t word)
{
	return STATE(word) == SLOT_PENDING || STATE(word) == SLOT_NUDGED;
}

/* --- in a waiting process ------------------------------------------------------------------------ */

bool combine_publish(struct combine *c, uint32_t queue, struct str call, int64_t deadline)
{
	struct head *h;

	if (call.n > COMBINE_CALL_MAX || (c->slot < 0 && !find_slot(c)))
		return false;
	h = combine_own_head(c);
	raise_top(c);
	atomic_thread_fence(
		memory_order_release); /* a holder that is still copying the last call sees its end first */
	memcpy(c->file->text[c->slot].call, call.p, call.n);
	h->call_n = (uint32_t)call.n;
	h->call_sum = combine_sum(call);
	h->reply_sum = 0;
	h->queue = queue;
	h->boot = c->boot;
	h->deadline = deadline;
	atomic_store(&h->sleeping, 0);
	c->word = NEXT(c->word, SLOT_PENDING);
	atomic_store(&h->word, c->word);
	c->asked = true;
	combine_at("published");
	return true;
}

static enum combine_end read_reply(struct combine *c, uint32_t w, struct combine_reply *out,
				   struct arena *a)
{
	const struct head *h = combine_own_head(c);
	size_t n = combine_length(&h->reply_n, COMBINE_REPLY_MAX);

	enum combine_end end = (enum combine_end)h->end;
	bool fits;

	out->rc = h->rc;
	out->report = arena_str(a, str_n(c->file->text[c->slot].reply, n));
	fits = h->reply_sum == combine_sum(out->report);
	atomic_thread_fence(memory_order_seq_cst);
	if (!fits || atomic_load(&combine_own_head(c)->word) != w || bus_torn(c->bus))
		return COMBINE_UNKNOWN; /* a program truncated or changed the file during the read */
	return end == COMBINE_RAN || end == COMBINE_FAULT || end == COMBINE_ALONE ? end
										  : COMBINE_UNKNOWN;
}

enum combine_end combine_result(struct combine *c, struct combine_reply *out, struct arena *a)
{
	uint32_t w = atomic_load(&combine_own_head(c)->word);

	c->asked = false;
	for (;;) {
		if (GENERATION(w) != GENERATION(c->word) || STATE(w) == SLOT_IDLE)
			return COMBINE_UNKNOWN; /* a foreign program has written to the file */
		if (STATE(w) == SLOT_DONE)
			return read_reply(c, w, out, a);
		if (atomic_compare_exchange_strong(&combine_own_head(c)->word, &w,
						   NEXT(w, SLOT_IDLE))) {
			c->word = NEXT(w, SLOT_IDLE);
			return STATE(w) == SLOT_TAKEN ? COMBINE_UNKNOWN : COMBINE_LATE;
		}
	}
}

/* Sleeps until the word changes. false: it did not change in time, so the holder may be dead. */
static bool combine_sleep(struct head *h, uint32_t seen, int64_t ms)
{
	atomic_store(&h->sleeping, 1);
	combine_at("sleeping");
	os_word_wait(&h->word, seen, ms);
	combine_at("woken");
	atomic_store(&h->sleeping, 0);
	return atomic_load(&h->word) != seen;
}

static int64_t combine_shorter(int64_t a, int64_t b)
{
	return a < b ? a : b > 0 ? b : 0;
}

static enum combine_end give_up(struct combine *c, struct combine_reply *out, struct arena *a)
{
	enum combine_end end = combine_result(c, out, a);

	return end == COMBINE_LATE ? COMBINE_ALONE : end;
}

/* The attempts of a waiting process to get the gate. */
struct tries {
	int64_t start, deadline;
	int64_t patience; /* as in struct combine */
	uint32_t served;  /* gate_served() before the latest sleep */
	bool idle;        /* no holder served a call during that sleep */
};

/* If the holders serve no calls, the kernel's queue still gives us the gate. If another process is already in line, it
 * may serve our call, so we join only after LINE_MS. After UNSERVED_MS we rely on no other process. The holder that took
 * our call may have died, and the others may serve no calls, or only the calls of another queue. */
static bool joins_line(const struct tries *t, const struct gate *g, int64_t waited)
{
	return waited >= UNSERVED_MS || (t->idle && (waited >= LINE_MS || !gate_line(g)));
}

/* A process in line does not see an answer, so at first we stay only briefly. But a process that leaves the line loses
 * its place. So each later stay is longer than the one before, until one is long enough to reach the gate. */
static int64_t combine_stay(const struct tries *t, int64_t waited)
{
	int64_t left = t->deadline - t->start - waited;
	int64_t ms = combine_shorter(waited >= UNSERVED_MS ? waited : SLEEP_LONG, left);

	return waited < t->patience ? combine_shorter(ms, t->patience - waited) : ms;
}

/* After GATE_POLITE_MS we try the gate although other processes are in line. If we get it, those processes are not awake. */
static int try_gate(struct gate *g, struct str who, const struct tries *t)
{
	int64_t waited = os_boot_ms() - t->start;
	int r;

	if (waited >= GATE_POLITE_MS && gate_line(g)) {
		r = gate_lock(g, 0, who);
		if (r == 0)
			gate_line_stuck(g);
		if (r != -ETIMEDOUT || waited < UNSERVED_MS)
			return r;
	}
	if (joins_line(t, g, waited))
		return gate_lock(g, combine_stay(t, waited), who);
	return gate_try(g, who);
}

/* false: a holder has taken the call. */
static bool combine_withdraw(struct combine *c)
{
	uint32_t w = atomic_load(&combine_own_head(c)->word);

	while (GENERATION(w) == GENERATION(c->word) && combine_waits(w)) {
		if (atomic_compare_exchange_strong(&combine_own_head(c)->word, &w,
						   NEXT(w, SLOT_IDLE))) {
			c->word = NEXT(w, SLOT_IDLE);
			c->asked = false;
			return true;
		}
	}
	return false;
}

static bool combine_impatient(const struct tries *t)
{
	return t->patience && os_boot_ms() - t->start >= t->patience;
}

static void leave_gate(struct combine *c, struct gate *g)
{
	gate_unlock(g);
	combine_nudge(c);
}

enum combine_end combine_wait(struct combine *c, struct gate *g, struct str who, int64_t deadline,
			      struct combine_reply *out, struct arena *a)
{
	struct head *h = combine_own_head(c);
	struct tries t = { .start = os_boot_ms(),
			   .deadline = deadline,
			   .patience = c->patience,
			   .served = gate_served(g) };
	int64_t ms = SLEEP_SHORT;
	bool ours = true; /* it is our turn to try the gate */

	for (;;) {
		int r = ours ? try_gate(g, who, &t) : -ETIMEDOUT;
		uint32_t w = atomic_load(&h->word);

		if (r == 0 && STATE(w) != SLOT_DONE)
			return COMBINE_GATE;
		if (r == 0)
			leave_gate(c, g);
		if (r && r != -ETIMEDOUT)
			return give_up(c, out, a); /* the caller then gets the gate's error */
		if (STATE(w) == SLOT_DONE || os_boot_ms() >= deadline)
			return combine_result(c, out, a);
		if (combine_impatient(&t) && combine_withdraw(c))
			return COMBINE_ALONE;
		ours = STATE(w) == SLOT_NUDGED;
		if (ours) {
			atomic_compare_exchange_strong(&h->word, &w, WITH(w, SLOT_PENDING));
		} else if (!combine_sleep(h, w, combine_shorter(ms, deadline - os_boot_ms()))) {
			ours = true;
			t.idle = gate_served(g) == t.served;
			t.served = gate_served(g);
			ms = ms * 2 < SLEEP_LONG ? ms * 2 : SLEEP_LONG;
		}
	}
}

/* --- in the holder of the gate ------------------------------------------------------------------- */

/* Does the owner still want its call? The answer holds only if the word has not changed since it was read. */
static bool combine_wanted(const struct combine *c, const struct head *h, int64_t now)
{
	return h->boot == c->boot && now < h->deadline;
}

/* Copies first and checks the word afterwards: the owner may have changed the bytes during the copy. */
static bool combine_copy(struct combine *c, struct combine_call *call, struct arena *a)
{
	struct head *h = &c->file->head[call->slot];
	size_t n = combine_length(&h->call_n, COMBINE_CALL_MAX);

	call->bytes = arena_str(a, str_n(c->file->text[call->slot].call, n));
	if (h->call_sum != combine_sum(call->bytes))
		call->bytes = STR(""); /* it cannot be adopted, so its owner runs it alone */
	atomic_thread_fence(memory_order_seq_cst);
	return atomic_load(&h->word) == call->word;
}

/* Reads the word once. If the word has changed since then, the exchange fails, and the call is not TAKEN. */
static bool combine_take_slot(struct combine *c, struct combine_call *out, uint32_t queue,
			      bool first, int64_t now, struct arena *a)
{
	struct head *h = &c->file->head[out->slot];
	uint32_t w = atomic_load(&h->word);
	bool left_over = first && STATE(w) == SLOT_TAKEN;

	if ((!left_over && !combine_waits(w)) || !combine_wanted(c, h, now) || h->queue != queue)
		return false;
	out->word = WITH(w, SLOT_TAKEN);
	if (c->checks && !left_over && c->checked[out->slot] != out->word)
		return false;
	out->batch = left_over ? h->batch : 0;
	if (!left_over) {
		h->batch = 0;
		if (!atomic_compare_exchange_strong(&h->word, &w, out->word))
			return false;
	}
	return combine_copy(c, out, a);
}

bool combine_own(struct combine *c)
{
	return os_own_byte(c->fd, HOLDER_AT) == 0;
}

void combine_disown(struct combine *c)
{
	if (c->fd >= 0)
		os_leave_byte(c->fd, HOLDER_AT);
}

size_t combine_check(struct combine *c, uint32_t queue, struct combine_call *out, size_t room,
		     struct arena *a)
{
	uint32_t slots = combine_top(c), turn = first_slot(c);
	int64_t now = os_boot_ms();
	size_t n = 0;

	memset(c->checked, 0, sizeof(c->checked));
	for (uint32_t i = 0; i < slots && n < room; i++) {
		const struct head *h = &c->file->head[(turn + i) % slots];

		out[n] = (struct combine_call){ .slot = (turn + i) % slots,
						.word = atomic_load(&h->word) };
		if (!combine_waits(out[n].word) || !combine_wanted(c, h, now) ||
		    h->queue != queue || !combine_copy(c, &out[n], a))
			continue;
		c->checked[out[n].slot] = WITH(out[n].word, SLOT_TAKEN);
		n++;
	}
	return n;
}

size_t combine_take(struct combine *c, uint32_t queue, bool first, struct combine_call *out,
		    size_t room, struct arena *a)
{
	uint32_t slots = combine_top(c), turn = first_slot(c);
	int64_t now;
	size_t n = 0;

	combine_at("taking");
	now = os_boot_ms();
	for (uint32_t i = 0; i < slots && n < room; i++) {
		out[n].slot = (turn + i) % slots;
		n += combine_take_slot(c, &out[n], queue, first, now, a);
	}
	if (first)
		atomic_store(&c->file->turn, turn + 1);
	combine_at("taken");
	return n;
}

void combine_reply(struct combine *c, const struct combine_call *call, uint64_t batch,
		   enum combine_end end, int rc, struct str report)
{
	struct head *h = &c->file->head[call->slot];
	bool fits = report.n <= COMBINE_REPLY_MAX;

	if (atomic_load(&h->word) != call->word)
		return; /* the owner has ended its call, or is already reading an answer */
	h->end = fits ? end : COMBINE_ALONE;
	h->rc = rc;
	h->reply_n = fits ? (uint32_t)report.n : 0;
	h->reply_sum = combine_sum(fits ? report : STR(""));
	if (fits && report.n)
		memcpy(c->file->text[call->slot].reply, report.p, report.n);
	atomic_thread_fence(memory_order_seq_cst);
	h->batch = fits ? batch : 0;
	combine_at("replied");
}

void combine_answer(struct combine *c, const struct combine_call *call)
{
	struct head *h = &c->file->head[call->slot];
	uint32_t w = call->word;

	if (!atomic_compare_exchange_strong(&h->word, &w, WITH(w, SLOT_DONE)))
		return; /* the owner has ended its call */
	if (atomic_load(&h->sleeping))
		os_word_wake(&h->word);
	combine_at("answered");
}

bool combine_crowd(const struct combine *c, uint32_t queue)
{
	uint32_t slots = combine_top(c), n = 0;
	int64_t now = os_boot_ms();

	for (uint32_t i = 0; i < slots; i++) {
		const struct head *h = &c->file->head[i];

		n += combine_waits(atomic_load(&h->word)) && combine_wanted(c, h, now) &&
		     h->queue == queue;
	}
	return n > 1;
}

bool combine_nudge(struct combine *c)
{
	uint32_t slots = combine_top(c), turn = first_slot(c);
	int64_t now = os_boot_ms();

	combine_at("nudging");
	atomic_thread_fence(memory_order_seq_cst);
	for (uint32_t i = 0; i < slots; i++) {
		struct head *h = &c->file->head[(turn + i) % slots];
		uint32_t w = atomic_load(&h->word);

		if (!combine_waits(w) || !combine_wanted(c, h, now))
			continue;
		if (STATE(w) == SLOT_PENDING &&
		    !atomic_compare_exchange_strong(&h->word, &w, WITH(w, SLOT_NUDGED)))
			continue;
		os_word_wake(&h->word);
		return true;
	}
	return false;
}

uint32_t combine_expected(const struct combine *c)
{
	return atomic_load(&c->file->expected);
}

void combine_learn(struct combine *c, uint32_t calls)
{
	uint32_t before = combine_expected(c);

	atomic_store(&c->file->expected, calls >= before ? calls : (3 * before + calls) / 4);
}

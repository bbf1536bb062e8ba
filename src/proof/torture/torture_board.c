/* The shared memory. Agents may die at any instruction, so counters and grants are atomic; only the meetings between rounds use
 * a lock. */
#include <sys/mman.h>

#include "proof/torture/torture_private.h"

static void meeting_make(struct meeting *m)
{
	pthread_mutexattr_t lock;
	pthread_condattr_t all;

	pthread_mutexattr_init(&lock);
	pthread_mutexattr_setpshared(&lock, PTHREAD_PROCESS_SHARED);
	pthread_mutex_init(&m->lock, &lock);
	pthread_condattr_init(&all);
	pthread_condattr_setpshared(&all, PTHREAD_PROCESS_SHARED);
	pthread_cond_init(&m->all, &all);
}

struct board *board_make(const struct torture_plan *plan)
{
	size_t n = (size_t)plan->agents, k = (size_t)plan->tasks + MADE,
	       rounds = (size_t)plan->rounds;
	size_t size = sizeof(struct board) + n * sizeof(struct mind) + k * sizeof(struct spot) +
		      rounds * sizeof(_Atomic int);
	struct board *b = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
			       0);

	if (b == MAP_FAILED)
		return NULL;
	b->size = size;
	b->agents = (int)n;
	b->tasks = (int)plan->tasks;
	b->outage_ms = plan->outage_ms;
	b->minds = (struct mind *)(b + 1);
	b->spots = (struct spot *)(b->minds + n);
	b->winners = (_Atomic int *)(b->spots + k);
	meeting_make(&b->start);
	meeting_make(&b->end);
	for (size_t i = 0; i < n; i++)
		b->minds[i].random = plan->seed * 1000003 + i;
	return b;
}

void board_free(struct board *b)
{
	if (b)
		munmap(b, b->size);
}

void board_meet(struct board *b, struct meeting *m)
{
	int turn;

	pthread_mutex_lock(&m->lock);
	turn = m->turn;
	if (++m->here == b->agents) {
		m->here = 0;
		m->turn++;
		pthread_cond_broadcast(&m->all);
	}
	while (m->turn == turn)
		pthread_cond_wait(&m->all, &m->lock);
	pthread_mutex_unlock(&m->lock);
}

static uint32_t short_hash(struct str token)
{
	struct arena a = { 0 };
	uint32_t h;

	memcpy(&h, token_hash(&a, token).p, sizeof(h));
	arena_free(&a);
	return h;
}

void board_granted(struct board *b, int task, int64_t fence, struct str token)
{
	uint64_t mine = (uint64_t)fence << 32 | short_hash(token), was;

	was = atomic_exchange(&b->spots[task].grants[fence % GRANTS], mine);
	if (was >> 32 == mine >> 32 && was != mine)
		b->seen++;
}

void board_count(const struct board *b, struct torture_figures *f)
{
	*f = (struct torture_figures){ .kills = f->kills,
				       .stops = f->stops,
				       .skews = f->skews,
				       .takeovers = f->takeovers,
				       .done = f->done,
				       .ms = f->ms,
				       .left_ms = f->left_ms,
				       .seen = b->seen };
	for (int i = 0; i < b->agents; i++) {
		const struct counts *c = &b->minds[i].counts;

		f->calls += c->calls;
		f->accepted += c->accepted;
		f->claims += c->claims;
		f->lost += c->lost;
		f->repeats += c->repeats;
		if (c->longest_us > f->longest_us)
			f->longest_us = c->longest_us;
		for (int k = 0; k < TORTURE_CODES; k++)
			f->codes[k] += c->codes[k];
	}
}

int board_task(const struct board *b, struct str id)
{
	int64_t n;

	if (id.n < 2 || !str_to_i64(str_n(id.p + 1, id.n - 1), &n))
		return -1;
	if (id.p[0] == 'k')
		return n >= 0 && n < b->tasks ? (int)n : -1;
	return id.p[0] == 't' && n > 0 && n <= MADE ? b->tasks + (int)n - 1 : -1;
}

void board_saw(struct board *b, struct str id)
{
	int made = board_task(b, id) - b->tasks + 1, highest = b->made;

	while (made > highest && !atomic_compare_exchange_weak(&b->made, &highest, made))
		;
}

int board_tasks(const struct board *b)
{
	return b->tasks + b->made;
}

struct str board_id(const struct board *b, struct arena *a, int task)
{
	if (task >= b->tasks)
		return arena_printf(a, "t%d", task - b->tasks + 1);
	return arena_printf(a, "k%d", task);
}

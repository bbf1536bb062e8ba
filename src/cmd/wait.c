/*
 * Waits for a task, for the faces whose process has nothing else to do. A call that waits holds
 * nothing: each attempt is a call of its own, made when the queue may have changed. Servers keep
 * waiting calls beside their other work instead.
 */
#include <time.h>

#include "base/os.h"
#include "cmd/command.h"
#include "format/answer_form.h"

#define PAUSE 50 /* minimum time between two attempts, even in a busy queue */

static void pause_ms(int64_t ms)
{
	struct timespec t = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };

	nanosleep(&t, NULL);
}

/* If the queue is behind a server, the next call waits there. If the last call came back at once,
 * the server lets no more calls wait, so the wait happens here. */
static void wait_for_change(struct session *s, const struct attempts *t, bool *parked)
{
	int64_t began = os_boot_ms(), left = t->end - began, took;

	*parked = !*parked && queue_park(s->client.conn.queue, left);
	if (*parked)
		return;
	queue_wait(s->client.conn.queue, attempts_left(t));
	took = os_boot_ms() - began;
	if (took < PAUSE)
		pause_ms(left - took < PAUSE - took ? left - took : PAUSE - took);
}

/* Each attempt uses an arena of its own, so that a long wait does not use more memory. */
void wait_for_task(struct session *s, const struct request *rq, struct attempts *t,
		   struct answer *ans)
{
	struct arena scratch = { 0 }, *kept = s->client.arena, *ring = s->client.keyring.arena;
	int64_t began;
	bool parked = false;

	while (ans->code == NO_TASKS && !attempts_over(t)) {
		struct request copy = *rq;

		attempts_after(t, ans->wait_ms);
		wait_for_change(s, t, &parked);
		began = os_boot_ms();
		arena_free(&scratch);
		scratch = (struct arena){ 0 };
		*ans = (struct answer){ 0 };
		s->client.arena = s->client.keyring.arena = &scratch;
		client_call(&s->client, &copy, ans);
		parked = parked && os_boot_ms() - began < PAUSE;
		s->client.arena = kept;
		s->client.keyring.arena = ring;
	}
	*ans = answer_copy(ans, kept);
	arena_free(&scratch);
}

/*
 * Takes the next task, works on it and finishes it.
 *
 *	cc claim.c $(pkg-config --cflags --libs pawl) -o claim
 *
 * Exits with pawl's code: 0 if a task was done, 10 if there was none.
 */
#include <pawl.h>
#include <stdio.h>
#include <stdlib.h>

static int complain(struct pawl *queue, int code)
{
	fprintf(stderr, "claim: %s: %s\n", pawl_code_name(code), pawl_message(queue));
	return code;
}

/* The work itself. Real work takes longer: it sends a heartbeat after each third of the lease, and
 * stops when a heartbeat returns PAWL_LOST_LOCK. */
static int work(struct pawl *queue, struct pawl_lock *lock)
{
	printf("%s (fence %lld): %s\n", pawl_lock_id(lock), (long long)pawl_lock_fence(lock),
	       pawl_lock_task(lock));
	return pawl_heartbeat(queue, lock);
}

static int take_and_finish(struct pawl *queue)
{
	struct pawl_lock *lock;
	int code = pawl_next(queue, "{\"ttl\": \"5m\"}", &lock);

	if (code == PAWL_NO_TASKS) {
		puts("nothing to do");
		return code;
	}
	if (code != PAWL_SUCCESS)
		return complain(queue, code);
	code = work(queue, lock);
	if (code == PAWL_SUCCESS)
		code = pawl_done(queue, lock, "done by the example");
	if (code != PAWL_SUCCESS)
		complain(queue, code);
	pawl_lock_free(lock);
	return code;
}

int main(void)
{
	struct pawl *queue;
	char *error;
	int code = pawl_open(&queue, NULL, &error);

	if (code != PAWL_SUCCESS) {
		fprintf(stderr, "claim: %s\n", error);
		pawl_free(error);
		return code;
	}
	code = take_and_finish(queue);
	pawl_close(queue);
	return code;
}

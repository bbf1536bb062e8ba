#include "queue/attempts.h"

#include "base/os.h"

void attempts_begin(struct attempts *t, int64_t ms)
{
	int64_t now = os_boot_ms();

	t->end = ms > INT64_MAX - now ? INT64_MAX : now + ms;
	t->next = now;
}

void attempts_after(struct attempts *t, int64_t wait_ms)
{
	t->next = os_boot_ms() +
		  (wait_ms > 0 && wait_ms < ATTEMPTS_MAX_MS ? wait_ms : ATTEMPTS_MAX_MS);
	if (t->next > t->end)
		t->next = t->end;
}

bool attempts_over(const struct attempts *t)
{
	return os_boot_ms() >= t->end;
}

int64_t attempts_left(const struct attempts *t)
{
	int64_t left = t->next - os_boot_ms();

	return left > 0 ? left : 0;
}

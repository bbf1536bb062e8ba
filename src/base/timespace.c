#include "base/timespace.h"

#ifdef __APPLE__
int64_t timespace_offset(void)
{
	return 0;
}

bool timespace_known(void)
{
	return true;
}

void timespace_forget(void)
{
}
#else
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/fs.h"

#define FIRST_SPACE "time:[4026531834]" /* the machine's own namespace: a constant of the kernel */
#define NANO INT64_C(1000000000)
#define LONGEST (INT64_C(1) << 33) /* seconds; keeps an offset in ns within range */

enum { NOT_READ, KNOWN, UNKNOWN };

static _Atomic int state;
static _Atomic int64_t offset; /* written before `state` */

void timespace_forget(void)
{
	state = NOT_READ;
}

static struct str timespace_space(struct arena *a, const char *link)
{
	char name[64];
	ssize_t n = readlink(link, name, sizeof(name));

	return n > 0 ? arena_str(a, str_n(name, (size_t)n)) : STR("");
}

static struct str next_word(struct str *line)
{
	struct str word = { 0 };

	while (line->n && !word.n)
		word = str_cut(line, ' ');
	return word;
}

/* A line is "boottime     100000         0": seconds and nanoseconds. */
static bool read_offset(struct arena *a, int64_t *out)
{
	struct str text;
	int64_t s, ns;

	if (fs_read(a, "/proc/self/timens_offsets", 4096, &text))
		return false;
	while (text.n) {
		struct str line = str_cut(&text, '\n');

		if (!str_is(next_word(&line), "boottime"))
			continue;
		if (!str_to_i64(next_word(&line), &s) || !str_to_i64(next_word(&line), &ns) ||
		    s < -LONGEST || s > LONGEST || ns < 0 || ns >= NANO)
			return false;
		*out = s * NANO + ns;
		return true;
	}
	return false;
}

/* A kernel without time namespaces does not have this link. The offsets in /proc are those for our
 * children. Ours are the same, unless this process itself has made a namespace for its children. */
static bool find_offset(int64_t *out)
{
	struct arena a = { 0 };
	struct str own = timespace_space(&a, "/proc/self/ns/time");
	bool known = true;

	*out = 0;
	if (own.n && !str_is(own, FIRST_SPACE))
		known = str_eq(own, timespace_space(&a, "/proc/self/ns/time_for_children")) &&
			read_offset(&a, out);
	arena_free(&a);
	return known;
}

/* A child may be in a namespace that its parent made for it. */
static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, timespace_forget);
}

static int timespace_settle(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	int64_t found;
	int now = state;

	if (now != NOT_READ)
		return now;
	pthread_once(&once, watch_forks);
	now = find_offset(&found) ? KNOWN : UNKNOWN;
	offset = found;
	state = now;
	return now;
}

int64_t timespace_offset(void)
{
	return timespace_settle() == KNOWN ? offset : 0;
}

bool timespace_known(void)
{
	return timespace_settle() == KNOWN;
}
#endif

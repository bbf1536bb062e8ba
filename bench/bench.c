#include "bench.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

int64_t bench_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int compare(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

void bench_sort(int64_t *v, size_t n)
{
	qsort(v, n, sizeof(*v), compare);
}

double bench_at(const int64_t *v, size_t n, double p)
{
	return n ? (double)v[(size_t)(p * (double)(n - 1) + 0.5)] / 1000.0 : 0;
}

int64_t bench_number(const char *text)
{
	char *end;
	long long n;

	errno = 0;
	n = strtoll(text, &end, 10);
	if (errno || *end || n <= 0)
		bench_die("not a number above 0: %s", text);
	return n;
}

void bench_die(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(1);
}

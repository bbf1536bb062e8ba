/*
 * kit: histories written by hand. Times are ms from the start; the store's clock is 1000 ms ahead
 * of them.
 */
#ifndef TEST_HISTORY_KIT_H
#define TEST_HISTORY_KIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "proof/check/checker.h"

#define HEAD_BEGIN "{\"pawl_history\":1,\"pawl\":\"0.2.0\",\"store\":"
#define HEAD_REST                                                                       \
	",\"seed\":7,\"agents\":2,"                                                     \
	"\"tasks\":1,\"policy\":{\"lease\":100,\"lease_min\":1,\"lease_max\":86400000," \
	"\"lock_ttl\":100,\"max_abandoned\":5,\"keep_abandoned\":false,\"ignore_depends\":false"

#define NS(ms) ((ms)*1000000LL)

struct text {
	struct buf b;
	int n; /* number of the latest call */
};

/* Write quotes as '. */
static inline void add(struct text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static inline void add(struct text *t, const char *fmt, ...)
{
	char line[2000];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	for (char *p = line; *p; p++)
		if (*p == '\'')
			*p = '"';
	buf_adds(&t->b, str_c(line));
	buf_addc(&t->b, '\n');
}

/* more: more of the policy, as JSON */
static inline struct text begin_with(const char *more)
{
	struct text t = { .b = BUF_MAX(1 << 20) };

	buf_addf(&t.b, "%s\"mem\"%s%s}}\n", HEAD_BEGIN, HEAD_REST, more);
	return t;
}

static inline struct text begin_on(const char *store)
{
	struct text t = { .b = BUF_MAX(1 << 20) };

	buf_addf(&t.b, "%s\"%s\"%s}}\n", HEAD_BEGIN, store, HEAD_REST);
	return t;
}

static inline struct text begin(void)
{
	return begin_with("");
}

static inline int send(struct text *t, int at, const char *agent, const char *request)
{
	add(t, "{'t':%lld,'call':%d,'agent':'%s','pid':1,'request':{%s,'agent':'%s'}}", NS(at),
	    ++t->n, agent, request, agent);
	return t->n;
}

static inline void get(struct text *t, int at, int call, int now, const char *answer)
{
	add(t, "{'t':%lld,'answer':%d,'now':%d,%s}", NS(at), call, now, answer);
}

/* A call that is sent, applied and answered within 2 ms. */
static inline void call(struct text *t, int at, const char *agent, const char *request,
			const char *answer)
{
	get(t, at + 2, send(t, at, agent, request), 1001 + at, answer);
}

static inline void final(struct text *t, int at, const char *id, const char *task)
{
	add(t, "{'t':%lld,'final':'%s','now':%d,'task':%s}", NS(at), id, 1000 + at, task);
}

/* For tools/check-history: writes the history to a folder, and the kinds that the checker found into its name. */
static inline void keep(const struct text *t, unsigned kinds)
{
	static int written;
	const char *folder = getenv("PAWL_KEEP_HISTORIES");
	struct buf name = BUF_MAX(4096);
	FILE *f;

	if (!folder)
		return;
	buf_addf(&name, "%s/%d-", folder, ++written);
	for (int k = 0; k < CHECK_KINDS; k++)
		if (kinds >> k & 1)
			buf_addf(&name, "%s,", check_kind_name((enum check_kind)k));
	f = fopen(name.p, "w");
	assert_non_null(f);
	fwrite(t->b.p, 1, t->b.n, f);
	fclose(f);
	buf_free(&name);
}

/* The kinds of violations found, as a set. Frees the text. */
static inline unsigned found(struct text *t)
{
	struct history_log log;
	struct check_report r;
	struct arena a = { 0 };
	struct str why;
	unsigned kinds = 0;

	if (history_parse(&log, buf_str(&t->b), &why))
		fail_msg("%.*s", STRF(why));
	history_check(&log, &r, &a);
	assert_int_equal(r.undecided, 0);
	for (int k = 0; k < CHECK_KINDS; k++)
		kinds |= (r.counts[k] > 0) << k;
	keep(t, kinds);
	if (getenv("SHOW_FINDINGS")) {
		struct buf b = BUF_MAX(1 << 20);

		check_print(&r, &log, &b);
		fprintf(stderr, "%s\n", arena_cstr(&a, buf_str(&b)));
		buf_free(&b);
	}
	arena_free(&a);
	history_free(&log);
	buf_free(&t->b);
	return kinds;
}

#define KIND(k) (1u << CHECK_##k)
#define CLEAN(t) assert_int_equal(found(&(t)), 0)
/* The kind is among those found; others may follow from it. */
#define CAUGHT(t, k) assert_int_equal(found(&(t)) & KIND(k), KIND(k))

#endif

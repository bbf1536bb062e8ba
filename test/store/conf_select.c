/* Selection: invariants 7 and 8, every filter, counts; compared with a model that looks at every
 * record. */
#include "conf.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RECORDS 110

struct model {
	struct conf *c;
	uint64_t seed;
	struct record r[RECORDS];
	bool gone[RECORDS];
};

static const char *const ids[] = { "a", "b", "B", "aa", "z9", "10", "9" };

/* --- the model ---------------------------------------------------------------------------------- */

static struct str one_of(struct model *m, const char *prefix, uint32_t n)
{
	uint32_t i = conf_random(&m->seed, n + 1);

	return i ? arena_printf(&m->c->a, "%s%u", prefix, i) : (struct str){ 0 };
}

static struct strs some_of(struct model *m, const char *prefix, uint32_t n)
{
	struct strs list = { 0 };

	for (uint32_t i = 1; i <= n; i++)
		if (conf_random(&m->seed, 3) == 0)
			list = arena_append(&m->c->a, list,
					    arena_printf(&m->c->a, "%s%u", prefix, i));
	return list;
}

/* Few values for each field, so that ties and matches are common. */
static void shuffle(struct model *m, struct record *r)
{
	int64_t now = conf_now(m->c);
	struct index *ix = &r->ix;

	do
		ix->lane = (int)conf_random(&m->seed, LANE_BOTH + 1);
	while (ix->lane == LANE_GOING);
	ix->status = 1 + (int)conf_random(&m->seed, 5);
	ix->class_rank = 1 + (int)conf_random(&m->seed, 3);
	ix->priority = (int)conf_random(&m->seed, 4) - 1;
	ix->eligible_at = now + ((int64_t)conf_random(&m->seed, 12) - 4) * conf_tick();
	ix->due = (int64_t)conf_random(&m->seed, 4) * 86400000;
	ix->updated_at = 1000000 + conf_random(&m->seed, 3);
	ix->holder = one_of(m, "agent-", 2);
	ix->token = ix->holder.n ? one_of(m, "\xff\x01hash", 2) : (struct str){ 0 };
	ix->type = one_of(m, "type", 2);
	ix->parent = one_of(m, "task/p", 2);
	ix->labels = some_of(m, "l", 3);
	ix->depends = some_of(m, "task/d", 3);
}

static void make_model(struct model *m, struct conf *c, uint64_t seed)
{
	*m = (struct model){ .c = c, .seed = seed };
	for (int i = 0; i < RECORDS; i++) {
		const char *id = arena_printf(&c->a, "%s-%d", ids[i % 7], i).p;

		m->r[i] = conf_task(c, id);
		m->r[i].ix.created_at = 500000 + conf_random(&m->seed, 4);
		shuffle(m, &m->r[i]);
	}
	assert_int_equal(conf_put_all(c, m->r, RECORDS), 0);
}

/* Written independently of query_matches(), on purpose. */
static bool in_lane(const struct query *q, const struct index *ix, int64_t now)
{
	bool due = now >= ix->eligible_at, waits = ix->lane == 3 || ix->lane >= 5;
	bool timed = ix->lane == LANE_LATER || (waits && q->waiting >> ix->lane & 1);

	if (q->pick == PICK_ALL)
		return true;
	if (q->pick == PICK_LATER)
		return !due && timed;
	if (q->pick == PICK_WAITING)
		return timed ? !due : waits || (ix->lane == LANE_NONE && ix->holder.n);
	if (ix->lane == LANE_READY)
		return true;
	return due && timed;
}

static bool wanted(const struct query *q, const struct index *ix, int64_t now)
{
	if (!in_lane(q, ix, now))
		return false;
	if (q->statuses && !(q->statuses & 1u << ix->status))
		return false;
	if (q->class_rank && q->class_rank != ix->class_rank)
		return false;
	if ((q->held && !ix->holder.n) || (q->holder.n && !str_eq(q->holder, ix->holder)))
		return false;
	if ((q->token.n && !str_eq(q->token, ix->token)) ||
	    (q->type.n && !str_eq(q->type, ix->type)))
		return false;
	if (q->parent.n && !str_eq(q->parent, ix->parent))
		return false;
	if (q->label.n && !strs_have(ix->labels, q->label))
		return false;
	return !q->depends_on.n || strs_have(ix->depends, q->depends_on);
}

/* The C library's natural order; none of the ids here has a leading zero. */
static int natural_cmp(struct str a, struct str b)
{
	char x[64], y[64];

	snprintf(x, sizeof(x), "%.*s", STRF(a));
	snprintf(y, sizeof(y), "%.*s", STRF(b));
	for (char *p = x; *p; p++)
		*p = (char)tolower((unsigned char)*p);
	for (char *p = y; *p; p++)
		*p = (char)tolower((unsigned char)*p);
	return strverscmp(x, y);
}

static enum pick sort_pick;

static int sort_cmp(const void *pa, const void *pb)
{
	const struct index *a = &(*(const struct record *const *)pa)->ix;
	const struct index *b = &(*(const struct record *const *)pb)->ix;

	if (sort_pick == PICK_ALL && a->created_at != b->created_at)
		return a->created_at < b->created_at ? -1 : 1;
	if (sort_pick == PICK_LATER && a->eligible_at != b->eligible_at)
		return a->eligible_at < b->eligible_at ? -1 : 1;
	if (sort_pick == PICK_ELIGIBLE || sort_pick == PICK_WAITING) {
		if (a->class_rank != b->class_rank)
			return a->class_rank < b->class_rank ? -1 : 1;
		if (a->priority != b->priority)
			return a->priority > b->priority ? -1 : 1;
		if (a->due != b->due)
			return a->due && (!b->due || a->due < b->due) ? -1 : 1;
		if (a->updated_at != b->updated_at)
			return a->updated_at < b->updated_at ? -1 : 1;
	}
	return natural_cmp(a->id, b->id);
}

static size_t model_scan(struct model *m, const struct query *q, int64_t now, struct buf *out)
{
	const struct record *list[RECORDS];
	size_t n = 0;

	for (int i = 0; i < RECORDS; i++)
		if (!m->gone[i] && wanted(q, &m->r[i].ix, now))
			list[n++] = &m->r[i];
	sort_pick = q->pick;
	qsort(list, n, sizeof(list[0]), sort_cmp);
	out->n = 0;
	for (size_t i = 0; i < n && (!q->limit || i < q->limit); i++)
		buf_addf(out, "%.*s ", STRF(list[i]->ix.id));
	buf_addc(out, '\0');
	return n;
}

/* Time may pass between the two looks: then it compares once more. */
static void compare(struct model *m, const struct query *q)
{
	struct buf want = BUF_MAX(1 << 16);
	struct conf *c = m->c;
	struct arena kept = c->a;
	const char *got = "";
	int64_t now = 0, n;
	size_t total = 0;

	c->a = (struct arena){ 0 };
	for (int tries = 0; tries < 50; tries++) {
		struct buf later = BUF_MAX(1 << 16);
		bool same;

		now = conf_now(c);
		total = model_scan(m, q, now, &want);
		got = conf_scan(c, q);
		model_scan(m, q, conf_now(c), &later);
		same = !strcmp(want.p, later.p);
		buf_free(&later);
		if (same)
			break;
	}
	assert_string_equal(got, want.p);
	if (q->pick == PICK_ALL) {
		assert_int_equal(c->s->ops->count(c->s, q, &n), 0);
		assert_int_equal(n, total);
	}
	buf_free(&want);
	arena_free(&c->a);
	c->a = kept;
}

static void fill_query(struct query *q, unsigned bits)
{
	if (bits & 1)
		q->waiting = LANE_BIT(3 + bits / 2 % 4); /* 4, LANE_GOING: none */
	if (bits & 2)
		q->statuses = 1u << 1 | 1u << 3 | 1u << 4;
	if (bits & 4)
		q->class_rank = 2;
	if (bits & 8)
		q->held = true;
	if (bits & 16)
		q->holder = STR("agent-1");
	if (bits & 32)
		q->token = STR("\xff\x01hash1");
	if (bits & 64)
		q->type = STR("type2");
	if (bits & 128)
		q->label = STR("l2");
	if (bits & 256)
		q->parent = STR("task/p1");
	if (bits & 512)
		q->depends_on = STR("task/d3");
}

struct comparing {
	struct model *m;
	unsigned step;
};

static int compare_each(void *ctx)
{
	struct comparing *c = ctx;

	for (unsigned bits = 0; bits < 1024; bits += c->step) {
		for (int pick = PICK_ALL; pick <= PICK_WAITING; pick++) {
			struct query q = { .pick = (enum pick)pick };

			if (pick == PICK_OTHERS)
				continue;
			fill_query(&q, bits);
			compare(c->m, &q);
			if (bits % 5 == 0) {
				q.limit = 3;
				q.body = true;
				compare(c->m, &q);
			}
		}
	}
	return 0;
}

/* Reads one consistent state: a remote store is asked once. PAWL_TEST_SHARE: only every n-th query, where one takes long. */
static void compare_all(struct model *m, unsigned step)
{
	struct store *s = m->c->s;
	int64_t share;

	if (str_to_i64(str_c(getenv("PAWL_TEST_SHARE")), &share) && share > 0)
		step *= (unsigned)share;
	assert_int_equal(s->ops->snapshot(s, false, compare_each, &(struct comparing){ m, step }),
			 0);
}

/* --- tests -------------------------------------------------------------------------------------- */

static void test_every_combination(void **state)
{
	struct model m;

	make_model(&m, *state, 1);
	compare_all(&m, 1);
}

/* The indexes of a store must follow every kind of change. */
static void test_changing(void **state)
{
	struct conf *c = *state;
	struct model m;

	make_model(&m, c, 42);
	for (int round = 0; round < 8; round++) {
		for (int i = 0; i < 12; i++) {
			uint32_t k = conf_random(&m.seed, RECORDS);

			if (conf_random(&m.seed, 4) == 0) {
				assert_int_equal(conf_drop(c, m.r[k].key), 0);
				m.gone[k] = true;
				continue;
			}
			shuffle(&m, &m.r[k]);
			m.r[k].body_changed = conf_random(&m.seed, 2) || m.gone[k];
			m.gone[k] = false;
			assert_int_equal(conf_put(c, &m.r[k]), 0);
		}
		compare_all(&m, 37);
		conf_advance(conf_tick() * 2 / 3);
		compare_all(&m, 61);
	}
}

static void test_tally(void **state)
{
	struct conf *c = *state;
	struct model m;
	int64_t want[16], have[16];

	make_model(&m, c, 7);
	assert_int_equal(conf_put(c, &(struct record){ .key = STR("meta/x") }), 0);
	for (int i = 0; i < 60; i++) {
		uint32_t k = conf_random(&m.seed, RECORDS);

		m.r[k].ix.status = 1 + (int)conf_random(&m.seed, 15);
		m.gone[k] = conf_random(&m.seed, 5) == 0;
		if (m.gone[k])
			assert_int_equal(conf_drop(c, m.r[k].key), 0);
		else
			assert_int_equal(conf_put(c, &m.r[k]), 0);
	}
	memset(want, 0, sizeof(want));
	for (int i = 0; i < RECORDS; i++)
		want[m.r[i].ix.status] += !m.gone[i];
	memset(have, 0x55, sizeof(have));
	assert_int_equal(c->s->ops->tally(c->s, have), 0);
	for (int i = 1; i < 16; i++)
		assert_int_equal(have[i], want[i]);
}

static void test_count(void **state)
{
	struct conf *c = *state;
	struct record r = conf_task(c, "t1");
	int64_t n;

	assert_int_equal(conf_put(c, &r), 0);
	r = conf_task(c, "t2");
	r.ix.status = 2;
	assert_int_equal(conf_put(c, &r), 0);
	assert_int_equal(c->s->ops->count(c->s, &(struct query){ .limit = 1 }, &n), 0);
	assert_true(n == 2);
	assert_int_equal(c->s->ops->count(c->s, &(struct query){ .text = STR("nowhere") }, &n), 0);
	assert_true(n == 2);
	assert_int_equal(c->s->ops->count(c->s, &(struct query){ .statuses = 1u << 2 }, &n), 0);
	assert_true(n == 1);
}

/* `text` may exclude records that cannot match, never those that can. */
static void test_text(void **state)
{
	struct conf *c = *state;
	struct record r = conf_task(c, "t1");
	struct query q = { .text = STR("NeeDLE") };

	r.body = STR("{\"title\":\"a needle in it\"}");
	assert_int_equal(conf_put(c, &r), 0);
	assert_non_null(strstr(conf_scan(c, &q), "t1 "));
	q.text = STR("100%_");
	r.body = STR("{\"title\":\"100%_ sure\"}");
	assert_int_equal(conf_put(c, &r), 0);
	assert_non_null(strstr(conf_scan(c, &q), "t1 "));
}

static void test_paging(void **state)
{
	struct conf *c = *state;
	struct model m;
	struct buf pages = BUF_MAX(1 << 16);
	struct query q = { .limit = 7 };
	const char *page, *last;

	make_model(&m, c, 3);
	q.statuses = 1u << 1 | 1u << 2 | 1u << 5;
	for (int i = 0; i < RECORDS; i++) {
		page = conf_scan(c, &q);
		if (!*page)
			break;
		buf_adds(&pages, str_c(page));
		last = strrchr(arena_printf(&c->a, " %.*s", (int)strlen(page) - 1, page).p, ' ') +
		       1;
		q.after = conf_key(c, last);
	}
	buf_addc(&pages, '\0');
	q.limit = 0;
	q.after = (struct str){ 0 };
	assert_string_equal(pages.p, conf_scan(c, &q));
	buf_free(&pages);
	q.after = STR("task/none");
	assert_string_equal(conf_scan(c, &q), "");
}

/* --- time --------------------------------------------------------------------------------------- */

static void put_lane(struct conf *c, const char *id, int lane, int64_t ticks)
{
	struct record r = conf_task(c, id);

	r.ix.lane = lane;
	r.ix.eligible_at = conf_now(c) + ticks * conf_tick();
	r.ix.updated_at = 1000;
	assert_int_equal(conf_put(c, &r), 0);
}

static void test_due(void **state)
{
	struct conf *c = *state;
	struct query next = { .pick = PICK_ELIGIBLE }, later = { .pick = PICK_LATER };

	put_lane(c, "c", LANE_READY, 0);
	put_lane(c, "b", LANE_LATER, 2);
	put_lane(c, "a", LANE_LATER, 4);
	assert_string_equal(conf_scan(c, &next), "c ");
	assert_string_equal(conf_scan(c, &later), "b a ");
	conf_advance(2 * conf_tick());
	assert_string_equal(conf_scan(c, &next), "b c ");
	assert_string_equal(conf_scan(c, &later), "a ");
	put_lane(c, "d", LANE_LATER, 9); /* a write may move records that have come due */
	assert_string_equal(conf_scan(c, &next), "b c ");
	conf_advance(2 * conf_tick());
	assert_string_equal(conf_scan(c, &next), "a b c ");
	assert_string_equal(conf_scan(c, &later), "d ");
	put_lane(c, "a", LANE_LATER, 5); /* and it can be put off again */
	assert_string_equal(conf_scan(c, &next), "b c ");
	assert_string_equal(conf_scan(c, &later), "a d ");
}

static void test_waiting(void **state)
{
	struct conf *c = *state;
	struct query next = { .pick = PICK_ELIGIBLE },
		     all = { .pick = PICK_ELIGIBLE, .waiting = LANES_WAITING };

	put_lane(c, "w", LANE_WAITING, 0);
	put_lane(c, "x", LANE_WAITING, 2);
	put_lane(c, "r", LANE_READY, 0);
	assert_string_equal(conf_scan(c, &next), "r ");
	assert_string_equal(conf_scan(c, &all), "r w ");
	conf_advance(2 * conf_tick());
	assert_string_equal(conf_scan(c, &next), "r ");
	put_lane(c, "y", LANE_NONE, 0);
	assert_string_equal(conf_scan(c, &next), "r ");
	assert_string_equal(conf_scan(c, &all), "r w x ");
	put_lane(c, "z1", LANE_PARENT, 0);
	put_lane(c, "z2", LANE_BOTH, 0);
	assert_string_equal(conf_scan(c, &next), "r ");
	all.waiting = LANE_BIT(LANE_WAITING);
	assert_string_equal(conf_scan(c, &all), "r w x ");
	all.waiting = LANE_BIT(LANE_PARENT);
	assert_string_equal(conf_scan(c, &all), "r z1 ");
	all.waiting = LANES_WAITING;
	assert_string_equal(conf_scan(c, &all), "r w x z1 z2 ");
}

static void test_waiting_later(void **state)
{
	struct conf *c = *state;
	struct query later = { .pick = PICK_LATER },
		     all = { .pick = PICK_LATER, .waiting = LANES_WAITING },
		     next = { .pick = PICK_ELIGIBLE, .waiting = LANES_WAITING };

	put_lane(c, "w", LANE_WAITING, 4);
	put_lane(c, "l", LANE_LATER, 6);
	put_lane(c, "v", LANE_WAITING, 8);
	put_lane(c, "u", LANE_WAITING, 0);
	put_lane(c, "r", LANE_READY, 9);
	put_lane(c, "n", LANE_NONE, 9);
	assert_string_equal(conf_scan(c, &later), "l ");
	assert_string_equal(conf_scan(c, &all), "w l v ");
	assert_string_equal(conf_scan(c, &next), "r u ");
	all.at = next.at = conf_now(c) + 5 * conf_tick();
	assert_string_equal(conf_scan(c, &all), "l v ");
	assert_string_equal(conf_scan(c, &next), "r u w ");
	all.at = next.at = 0;
	conf_advance(4 * conf_tick());
	assert_string_equal(conf_scan(c, &all), "l v ");
	assert_string_equal(conf_scan(c, &next), "r u w ");
	put_lane(c, "m", LANE_NONE, 0); /* a write may move records that have come due */
	assert_string_equal(conf_scan(c, &all), "l v ");
	assert_string_equal(conf_scan(c, &next), "r u w ");
	put_lane(c, "w", LANE_WAITING, 9); /* and it can be postponed again */
	assert_string_equal(conf_scan(c, &all), "l v w ");
	assert_string_equal(conf_scan(c, &next), "r u ");
}

static int note_now(struct edit *e, void *ctx)
{
	*(int64_t *)ctx = e->now;
	return 0;
}

static void test_clock(void **state)
{
	struct conf *c = *state;
	int64_t a = conf_now(c), in_edit = 0, b;

	assert_true(a > 1000000000000);
	conf_advance(conf_tick());
	assert_int_equal(conf_modify(c, note_now, &in_edit), 0);
	b = conf_now(c);
	assert_true(in_edit >= a + conf_tick() - 1);
	assert_true(b >= in_edit && b < in_edit + 5000);
}

int conf_select(void)
{
	const struct CMUnitTest tests[] = {
		CONF_TEST(test_every_combination),
		CONF_TEST(test_changing),
		CONF_TEST(test_tally),
		CONF_TEST(test_count),
		CONF_TEST(test_text),
		CONF_TEST(test_paging),
		CONF_TEST(test_due),
		CONF_TEST(test_waiting),
		CONF_TEST(test_waiting_later),
		CONF_TEST(test_clock),
	};

	return cmocka_run_group_tests_name("select", tests, NULL, NULL);
}

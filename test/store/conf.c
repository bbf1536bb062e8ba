#include "conf.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/os.h"
#include "kit/parts.h"
#include "kit/store_uri.h"
#include "queue/queue.h"

static int64_t fake_wall = 1800000000000, fake_boot = 5000000;
static int fake = -1; /* does the store use the fake clock? -1: not known yet */
static char uri[600], folder[FOLDER_ROOM];
static unsigned queues;

static int64_t wall(void)
{
	return fake_wall;
}

static int64_t boot(void)
{
	return fake_boot;
}

int64_t conf_real_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

const char *conf_uri(void)
{
	if (!uri[0])
		store_uri(uri, sizeof(uri), folder, "mem:conformance");
	return uri;
}

bool conf_shared(void)
{
	const char *at = strrchr(conf_uri(), '+');

	return strncmp(at ? at + 1 : conf_uri(), "mem", 3) != 0;
}

/* --- time --------------------------------------------------------------------------------------- */

static void fake_add(int64_t ms)
{
	fake_wall += ms;
	fake_boot += ms;
}

static void find_clock(struct store *s)
{
	int64_t before = s->ops->now(s);

	fake_add(1000000);
	fake = s->ops->now(s) - before >= 1000000;
}

bool conf_fake_clock(void)
{
	return fake > 0;
}

int64_t conf_tick(void)
{
	return fake > 0 ? 60000 : 700;
}

void conf_advance(int64_t ms)
{
	if (fake > 0)
		fake_add(ms);
	else
		usleep((useconds_t)ms * 1000);
}

int64_t conf_now(struct conf *c)
{
	return c->s->ops->now(c->s);
}

/* --- opening ------------------------------------------------------------------------------------ */

struct store *conf_open(struct conf *c, enum store_mode mode)
{
	struct store *s = NULL;
	int rc;

	c->env.mode = mode;
	rc = store_open(&s, str_c(conf_uri()), &c->env);
	if (rc)
		print_error("open: %d %s\n", rc, c->err.text);
	return rc ? NULL : s;
}

void conf_reopen(struct conf *c)
{
	store_close(c->s);
	c->s = conf_open(c, STORE_WRITE);
	assert_non_null(c->s);
}

int conf_setup(void **state)
{
	struct conf *c = calloc(1, sizeof(*c));

	snprintf(c->queue, sizeof(c->queue), "conf-%d-%u", (int)getpid(), ++queues);
	c->env = (struct store_env){
		.rules = &queue_rules,
		.opt.queue = str_c(c->queue),
		.opt.timeout_ms = 20000,
		.opt.who = STR("conformance suite"),
		.opt.wall = wall,
		.opt.boot = boot,
		.opt.own_time = true,
		.opt.boot_id = STR("c0ffee00-0000-4000-8000-000000000001"),
		.err = &c->err,
	};
	*state = c;
	c->s = conf_open(c, STORE_CREATE);
	if (!c->s)
		return -1;
	if (fake < 0)
		find_clock(c->s);
	return 0;
}

int conf_setup_closed(void **state)
{
	int rc = conf_setup(state);
	struct conf *c = *state;

	store_close(c->s);
	c->s = NULL;
	return rc;
}

int conf_teardown(void **state)
{
	struct conf *c = *state;

	store_close(c->s);
	arena_free(&c->a);
	free(c);
	return 0;
}

/* --- records ------------------------------------------------------------------------------------ */

struct str conf_key(struct conf *c, const char *id)
{
	return arena_printf(&c->a, "task/%s", id);
}

struct strs conf_list(struct conf *c, const char *words)
{
	struct str rest = str_c(words);
	struct strs out = { 0 };

	while (rest.n)
		out = arena_append(&c->a, out, str_cut(&rest, ' '));
	return out;
}

struct record conf_task(struct conf *c, const char *id)
{
	int64_t now = conf_now(c);

	return (struct record){
		.key = conf_key(c, id),
		.ix = {
			.lane = LANE_READY,
			.status = 1,
			.class_rank = 2,
			.updated_at = now,
			.created_at = now,
			.id = arena_str(&c->a, str_c(id)),
		},
		.hot = STR("hot"),
		.body = STR("{\"title\":\"t\"}"),
		.body_changed = true,
	};
}

int conf_modify(struct conf *c, edit_fn *fn, void *ctx)
{
	struct change ch = { .fn = fn, .ctx = ctx, .rc = 99 };
	int rc = c->s->ops->modify(c->s, &ch, 1);

	return rc ? rc : ch.rc;
}

struct batch {
	struct record *r;
	size_t n;
};

static int put_batch(struct edit *e, void *ctx)
{
	struct batch *b = ctx;

	for (size_t i = 0; i < b->n; i++)
		edit_put(e, &b->r[i]);
	return 0;
}

int conf_put(struct conf *c, struct record *r)
{
	return conf_modify(c, put_batch, &(struct batch){ r, 1 });
}

/* In portions: etcd takes about 60 keys in a change. */
int conf_put_all(struct conf *c, struct record *r, size_t n)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < n; i += 32)
		rc = conf_modify(c, put_batch, &(struct batch){ r + i, n - i < 32 ? n - i : 32 });
	return rc;
}

static int drop_one(struct edit *e, void *ctx)
{
	edit_drop(e, *(struct str *)ctx);
	return 0;
}

int conf_drop(struct conf *c, struct str key)
{
	return conf_modify(c, drop_one, &key);
}

int conf_follow(struct edit *e, void *ctx)
{
	struct conf_plan *p = ctx;

	if (p->put)
		edit_put(e, p->put);
	if (p->drop.n)
		edit_drop(e, p->drop);
	if (p->log.n)
		edit_log(e, p->put ? p->put->key : p->drop, p->log);
	if (p->rc < 0)
		return store_fail(p->env, p->rc, NULL, "made up by the test");
	return p->rc;
}

static int count_entry(const struct entry *e, void *ctx)
{
	(void)e;
	++*(int *)ctx;
	return 0;
}

int conf_log_length(struct conf *c)
{
	int n = 0;

	assert_int_equal(c->s->ops->entries(c->s, &(struct entry_query){ 0 }, count_entry, &n), 0);
	return n;
}

int conf_append_x(struct edit *e, void *ctx)
{
	struct record *r;
	int rc = edit_get(e, *(struct str *)ctx, &r);

	if (rc < 0)
		return rc;
	if (rc > 0) {
		r = arena_new(e->arena, struct record);
		r->key = *(struct str *)ctx;
	}
	r->hot = arena_printf(e->arena, "%.*sx", STRF(r->hot));
	edit_put(e, r);
	return 0;
}

struct record *conf_get(struct conf *c, struct str key)
{
	struct record *r = arena_new(&c->a, struct record);
	int rc = c->s->ops->get(c->s, key, r, &c->a);

	if (rc < 0)
		fail_msg("get: %d %s", rc, c->err.text);
	return rc ? NULL : r;
}

int conf_add_id(const struct record *r, void *ctx)
{
	struct id_list *l = ctx;

	buf_adds(&l->ids, r->ix.id);
	buf_addc(&l->ids, ' ');
	return 0;
}

const char *conf_scan(struct conf *c, const struct query *q)
{
	struct id_list l = { .ids = BUF_MAX(1 << 20) };
	int rc = c->s->ops->scan(c->s, q, conf_add_id, &l);
	const char *out = arena_cstr(&c->a, buf_str(&l.ids));

	buf_free(&l.ids);
	if (rc)
		fail_msg("scan: %d %s", rc, c->err.text);
	return out;
}

static void same_str(const char *what, struct str want, struct str have)
{
	if (!str_eq(want, have))
		fail_msg("%s differs: %zu bytes wanted, %zu there", what, want.n, have.n);
}

void conf_same(const struct record *want, const struct record *have)
{
	const struct index *w = &want->ix, *h = &have->ix;

	same_str("key", want->key, have->key);
	same_str("hot", want->hot, have->hot);
	same_str("body", want->body, have->body);
	assert_int_equal(w->lane, h->lane);
	assert_int_equal(w->status, h->status);
	assert_int_equal(w->class_rank, h->class_rank);
	assert_int_equal(w->priority, h->priority);
	assert_true(w->eligible_at == h->eligible_at);
	assert_true(w->updated_at == h->updated_at);
	assert_true(w->created_at == h->created_at);
	same_str("id", w->id, h->id);
	same_str("holder", w->holder, h->holder);
	same_str("token", w->token, h->token);
	same_str("parent", w->parent, h->parent);
	same_str("type", w->type, h->type);
	assert_true(strs_eq(w->labels, h->labels));
	assert_true(strs_eq(w->depends, h->depends));
}

uint32_t conf_random(uint64_t *seed, uint32_t limit)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*seed >> 33) % limit;
}

/* --- the program -------------------------------------------------------------------------------- */

static const struct part parts[] = { { "records", conf_records }, { "places", conf_places },
				     { "overlay", conf_overlay }, { "select", conf_select },
				     { "log", conf_log },         { "process", conf_process } };

int main(int argc, char **argv)
{
	(void)argc;
	print_message("store: %s\n", conf_uri());
	return parts_run(parts, sizeof(parts) / sizeof(*parts), argv + 1, folder);
}

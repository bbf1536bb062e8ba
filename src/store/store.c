/* Which store a URI means, and the rules that hold for the index of every record. */
#include <stdarg.h>
#include <stdio.h>

#include "base/text.h"
#include "base/module.h"
#include "store/store.h"
#include "store/wrap.h"

extern const struct store_ops store_files, store_mem, store_sqlite;

const struct store_ops *const store_built_in[] = { &store_sqlite, &store_files, &store_mem, NULL };

/* Those that this project has, built in or not: for messages. */
static const char *const known[] = { "sqlite", "mem", "files", "git", "postgres", "etcd", "http" };

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* --- index -------------------------------------------------------------------------------------- */

#define CMP(a, b) (((a) > (b)) - ((a) < (b)))

int index_cmp(const struct index *a, const struct index *b)
{
	int c = CMP(a->class_rank, b->class_rank);

	if (!c)
		c = CMP(b->priority, a->priority);
	if (!c)
		c = CMP(a->updated_at, b->updated_at);
	return c ? c : str_cmp(a->id, b->id);
}

int query_cmp(const struct query *q, const struct index *a, const struct index *b)
{
	int c;

	if (q->pick == PICK_ELIGIBLE)
		return index_cmp(a, b);
	if (q->pick == PICK_LATER)
		c = CMP(a->eligible_at, b->eligible_at);
	else
		c = CMP(a->created_at, b->created_at);
	return c ? c : str_cmp(a->id, b->id);
}

bool index_gone(const struct index *ix, int64_t now)
{
	return ix->lane == LANE_GOING && ix->eligible_at <= now;
}

static bool picked(const struct query *q, const struct index *ix, int64_t now)
{
	bool due = ix->eligible_at <= now;
	bool timed = ix->lane == LANE_LATER || (q->waiting && ix->lane == LANE_WAITING);

	switch (q->pick) {
	case PICK_ELIGIBLE:
		return ix->lane == LANE_READY || (timed && due);
	case PICK_LATER:
		return timed && !due;
	default:
		return ix->status != 0 && !index_gone(ix, now);
	}
}

static bool same_or_any(struct str want, struct str have)
{
	return !want.n || str_eq(want, have);
}

bool query_matches(const struct query *q, const struct index *ix, int64_t now)
{
	return picked(q, ix, now) && (!q->statuses || (q->statuses >> ix->status & 1)) &&
	       (!q->class_rank || q->class_rank == ix->class_rank) && (!q->held || ix->holder.n) &&
	       same_or_any(q->holder, ix->holder) && same_or_any(q->token, ix->token) &&
	       same_or_any(q->type, ix->type) && same_or_any(q->parent, ix->parent) &&
	       (!q->label.n || strs_have(ix->labels, q->label)) &&
	       (!q->depends_on.n || strs_have(ix->depends, q->depends_on));
}

/* --- faults ------------------------------------------------------------------------------------- */

int store_fail(const struct store_env *env, int fault, const char *hint, const char *fmt, ...)
{
	struct store_error *err = env->err;
	va_list ap;

	err->fault = fault;
	err->applied = 'n';
	va_start(ap, fmt);
	vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	snprintf(err->hint, sizeof(err->hint), "%s", hint ? hint : "");
	return fault;
}

static bool plain_word(struct str name)
{
	for (size_t i = 0; i < name.n; i++) {
		unsigned char c = (unsigned char)name.p[i];

		if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') &&
		    !(c && strchr("._/@:-", c)))
			return false;
	}
	return name.n > 0;
}

struct str store_word(struct arena *a, struct str name)
{
	struct buf b = BUF_MAX(4 * name.n + 8);
	struct str out;

	if (plain_word(name))
		return arena_str(a, name);
	buf_addc(&b, '\'');
	for (size_t i = 0; i < name.n; i++) {
		if (name.p[i] == '\'')
			buf_adds(&b, STR("'\\''"));
		else
			buf_addc(&b, name.p[i]);
	}
	buf_addc(&b, '\'');
	out = arena_str(a, str_n(b.p, b.n));
	buf_free(&b);
	return out;
}

/* --- registry ----------------------------------------------------------------------------------- */

static void list_known(char *out, size_t room)
{
	size_t n = 0;

	for (size_t i = 0; i < COUNT(known) && n < room; i++)
		n += (size_t)snprintf(out + n, room - n, "%s%s:", i ? ", " : "", known[i]);
}

/* Neither a path nor a scheme of ours. Only the part before ':' is shown: a URI may hold a password. */
static int fail_unknown(const struct store_env *env, struct str word, const char *what)
{
	const char *near = text_nearest(word, known, COUNT(known));
	char list[120], hint[120];

	list_known(list, sizeof(list));
	if (near)
		snprintf(hint, sizeof(hint), "did you mean %s:?", near);
	else
		snprintf(hint, sizeof(hint), "for a file: sqlite:PATH");
	if (word.n > 60)
		word.n = 60;
	return store_fail(env, STORE_UNSUPPORTED, hint, "'%.*s' %s; the stores are %s", STRF(word),
			  what, list);
}

static struct str module_name(struct str scheme)
{
	if (str_is(scheme, "postgresql"))
		return STR("postgres");
	if (str_is(scheme, "https"))
		return STR("http");
	return scheme;
}

static bool is_known(struct str name)
{
	for (size_t i = 0; i < COUNT(known); i++)
		if (str_is(name, known[i]))
			return true;
	return false;
}

static int find_module(const struct store_ops **out, struct str scheme, const struct store_env *env)
{
	struct str name = module_name(scheme);
	const struct module *m;
	char why[300], hint[100];
	int rc = module_load("store", name, &m, why, sizeof(why));

	snprintf(hint, sizeof(hint), "install the package pawl-%.*s",
		 name.n < 40 ? (int)name.n : 40, name.p);
	if (rc > 0 && !is_known(name))
		return fail_unknown(env, scheme, "is no store");
	if (rc > 0)
		return store_fail(
			env, STORE_UNSUPPORTED, hint,
			"the %.*s: store needs the module pawl-store-%.*s.so, which is not "
			"installed in %s",
			STRF(scheme), STRF(name), module_dir());
	if (rc < 0)
		return store_fail(env, STORE_UNSUPPORTED, hint,
				  "the %.*s: store cannot be loaded: %s", STRF(scheme), why);
	if (!m->store)
		return store_fail(env, STORE_UNSUPPORTED, hint,
				  "the module pawl-store-%.*s.so holds no store", STRF(name));
	*out = m->store;
	return 0;
}

static int find_ops(const struct store_ops **out, struct str scheme, const struct store_env *env)
{
	for (size_t i = 0; store_built_in[i]; i++) {
		if (str_is(scheme, store_built_in[i]->scheme)) {
			*out = store_built_in[i];
			return 0;
		}
	}
	return find_module(out, scheme, env);
}

int store_open(struct store **out, struct str text, const struct store_env *env)
{
	const struct store_ops *ops = NULL;
	struct store_env full = *env;
	struct uri uri;
	int rc;

	*out = NULL;
	if (str_cut_prefix(&text, STR("trace+")))
		return trace_open(out, text, env);
	if (str_cut_prefix(&text, STR("fault+")))
		return fault_open(out, text, env);
	if (uri_parse(text, &uri) < 0)
		return fail_unknown(env, text, "does not say which store it is");
	rc = find_ops(&ops, uri.scheme, env);
	if (rc)
		return rc;
	if (!full.queue.n)
		full.queue = uri_param(&uri, "queue");
	return ops->open(out, &uri, &full);
}

void store_close(struct store *s)
{
	if (s)
		s->ops->close(s);
}

void store_patience(struct store *s, int64_t timeout_ms)
{
	for (; s; s = s->inner)
		s->env.timeout_ms = timeout_ms;
}

/* Finds a URI's store: a built-in one, or a module. No message shows a whole URI, which may hold a password. */
#include <stdio.h>

#include "base/module.h"
#include "base/text.h"
#include "store/store.h"
#include "store/wrap/wrap.h"

extern const struct store_ops store_files, store_mem, store_sqlite;

const struct store_ops *const store_built_in[] = { &store_sqlite, &store_files, &store_mem, NULL };

/* This project's stores, built in or in a module, for messages. */
static const char *const known[] = { "sqlite", "mem", "files", "git", "postgres" };

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void list_known(char *out, size_t room)
{
	size_t n = 0;

	for (size_t i = 0; i < COUNT(known) && n < room; i++)
		n += (size_t)snprintf(out + n, room - n, "%s%s:", i ? ", " : "", known[i]);
}

/* `word` is a scheme, or a text without one, never a whole URI. */
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
	return store_fail(env, STORE_UNSUPPORTED, hint,
			  "'%.*s' %s; the stores are %s, and https://HOST for a server", STRF(word),
			  what, list);
}

static int fail_no_uri(const struct store_env *env, struct str text)
{
	struct arena a = { 0 };
	int rc = fail_unknown(env, uri_shown(&a, text), "does not name a store");

	arena_free(&a);
	return rc;
}

static bool is_known(struct str name)
{
	for (size_t i = 0; i < COUNT(known); i++)
		if (str_is(name, known[i]))
			return true;
	return false;
}

static int find_module(const struct store_ops **out, struct str name, const struct store_env *env)
{
	const char *hint =
		"install the modules of version " PAWL_VERSION
		" (`make install`), or set PAWL_MODULE_DIR to the folder that holds them";
	const struct module *m;
	char why[300];
	int rc = module_load("store", name, &m, why, sizeof(why));

	if (rc > 0 && !is_known(name))
		return fail_unknown(env, name, "is not a store");
	if (rc > 0)
		return store_fail(
			env, STORE_UNSUPPORTED, hint,
			"the %.*s: store needs the module pawl-store-%.*s.so, which is not "
			"installed in %s",
			STRF(name), STRF(name), module_dir());
	if (rc < 0)
		return store_fail(env, STORE_UNSUPPORTED, hint,
				  "the %.*s: store cannot be loaded: %s", STRF(name), why);
	if (!m->store)
		return store_fail(env, STORE_UNSUPPORTED, hint,
				  "the module pawl-store-%.*s.so does not contain a store",
				  STRF(name));
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
	if (str_is(scheme, "postgresql")) /* PostgreSQL's own tools accept both */
		scheme = STR("postgres");
	return find_module(out, scheme, env);
}

int store_open(struct store **out, struct str text, const struct store_env *env)
{
	const struct store_ops *ops = NULL;
	struct store_env full = *env;
	struct uri uri;
	int rc;

	*out = NULL;
	if (str_cut_prefix(&text, STR("fault+")))
		return fault_open(out, text, env);
	if (uri_parse(text, &uri) < 0)
		return fail_no_uri(env, text);
	rc = find_ops(&ops, uri.scheme, env);
	if (rc)
		return rc;
	if (!full.opt.queue.n)
		full.opt.queue = uri_param(&uri, "queue");
	if (!full.opt.dir)
		full.opt.dir = ".";
	return ops->open(out, &uri, &full);
}

int store_script(struct str text, const struct store_env *env, struct buf *out)
{
	const struct store_ops *ops = NULL;
	struct uri uri;
	int rc;

	if (uri_parse(text, &uri) < 0)
		return fail_no_uri(env, text);
	rc = find_ops(&ops, uri.scheme, env);
	if (rc)
		return rc;
	if (!ops->script)
		return store_fail(env, STORE_UNSUPPORTED,
				  "for example: postgres://USER@HOST/DATABASE",
				  "a %.*s: store is made without SQL", STRF(uri.scheme));
	return ops->script(&uri, env, out);
}

void store_close(struct store *s)
{
	if (s)
		s->ops->close(s);
}

void store_patience(struct store *s, int64_t timeout_ms)
{
	for (; s; s = s->inner)
		s->env.opt.timeout_ms = timeout_ms;
}

void store_trial(struct store *s, bool on)
{
	for (; s; s = s->inner)
		s->env.trial = on;
}

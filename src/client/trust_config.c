/* Decides whether a config is trusted, and words the refusal. The seal must cover every fact that needs trust: the config's
 * bytes, the store's place, and a foreign owner. A refusal for an agent quotes nothing from the config. */
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/secret.h"
#include "base/text.h"
#include "client/place.h"
#include "client/trust_config.h"
#include "store/store.h"

/* Hashes both parts first, so that no byte can move from one part to the other. */
static struct str seal_of(struct str text, struct str to, struct arena *a)
{
	return hash_hex(a, arena_printf(a, "%s %s", arena_cstr(a, hash_hex(a, text)),
					arena_cstr(a, hash_hex(a, to))));
}

static struct str trust_asks(const struct settings *s, struct str uri, struct arena *a)
{
	const struct settings_value *v = &s->queue_store;

	if (v->value.n)
		return arena_printf(a, "%s: store = %s", arena_cstr(a, text_line(a, v->origin)),
				    arena_cstr(a, text_line(a, uri_shown(a, v->value))));
	return arena_printf(a, "%s", arena_cstr(a, text_line(a, uri_shown(a, uri))));
}

/* Does .pawl belong to another user, in a folder that all users can write to, such as /tmp? Any user can create a .pawl
 * there, and a search from below finds it. A folder that is shared with a group does not count. */
static bool is_planted(const struct place *p, uid_t *owner)
{
	struct stat queue, folder;

	if (!p->pawl_dir || lstat(p->pawl_dir, &queue) || stat(p->root, &folder))
		return false;
	*owner = queue.st_uid;
	return (folder.st_mode & S_IWOTH) && queue.st_uid != 0 && queue.st_uid != geteuid();
}

/* A name that is one plain word needs no trust; anything else could be a sentence for an agent. */
#define WORD_MAX 120

static bool is_word(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if (s.p[i] <= ' ' || s.p[i] > '~')
			return false;
	return s.n <= WORD_MAX;
}

/* Adds a line of the config that needs trust. */
static void add_reason(struct trust *t, struct str line, struct str why, struct arena *a)
{
	if (t->state == TRUST_MISSING) {
		t->more = arena_append(a, t->more,
				       arena_printf(a, "%.*s (%.*s)", STRF(line), STRF(why)));
		return;
	}
	t->state = TRUST_MISSING;
	t->asks = line;
	t->why = why;
}

static struct str line_of(const struct settings_value *v, const char *name, struct arena *a)
{
	return arena_printf(a, "%s: %s = %s", arena_cstr(a, text_line(a, v->origin)), name,
			    arena_cstr(a, text_line(a, v->value)));
}

/* Adds the lines of the config that would put their own text before an agent. Trust covers the queue, too. */
static void add_names(struct trust *t, const struct settings *s, struct str store, struct arena *a)
{
	const struct str sentence = STR("it is not one plain word, and agents would read it");

	if (s->queue_agent.value.n)
		add_reason(t, line_of(&s->queue_agent, "agent", a), STR("it names the agent"), a);
	if (!is_word(s->queue_store.value))
		add_reason(t, store, sentence, a);
	if (!is_word(s->queue_name.value))
		add_reason(t, line_of(&s->queue_name, "queue", a), sentence, a);
	else if (s->queue_name.value.n && t->state == TRUST_MISSING)
		add_reason(t, line_of(&s->queue_name, "queue", a), STR("it names the queue"), a);
}

void trust_decide(struct trust *t, const struct place *p, const struct settings *s, struct str uri,
		  const char *dir, struct arena *a)
{
	struct str to, store;
	uid_t owner;

	*t = (struct trust){ .state = TRUST_INSIDE, .uri = uri };
	if (!p->root || !uri.n)
		return;
	t->config = fs_join(a, str_c(p->root), STR(".pawl/config"));
	t->state = trust_reach(uri, p->root, dir, &to, &t->why, a);
	t->asks = store = trust_asks(s, uri, a);
	if (is_planted(p, &owner)) {
		add_reason(
			t, store,
			arena_printf(
				a,
				"it belongs to the user %ju, in a folder that all users can write to",
				(uintmax_t)owner),
			a);
		to = arena_printf(a, "%ju %.*s", (uintmax_t)owner, STRF(to));
	}
	t->text = s->queue_text;
	t->names = s->queue_agent.value.n || !is_word(s->queue_name.value);
	add_names(t, s, store, a);
	if (t->state != TRUST_MISSING)
		return;
	t->linked = trust_linked(s->queue_store.value, p->root, a);
	t->seal = seal_of(s->queue_text, to, a);
	if (trust_remembered(t, a))
		t->state = TRUST_GIVEN;
}

bool trust_included(const struct trust *t, const struct trust *before, bool store)
{
	if (before->state != TRUST_MISSING || !before->config || !t->config ||
	    strcmp(before->config, t->config) != 0)
		return true;
	return store && !t->agent && !(t->names && before->names);
}

struct str trust_advice(const struct trust *t)
{
	return t->agent
		       ? STR("ask the person you work for to read .pawl/config and to run `pawl trust` in "
			     "a terminal; do not work around it")
		       : STR("read the file, then run in a terminal: pawl trust");
}

struct str trust_reasons(const struct trust *t, const char *separator, struct arena *a)
{
	struct str all = arena_printf(a, "%.*s (%.*s)", STRF(t->asks), STRF(t->why));

	for (size_t i = 0; i < t->more.n; i++)
		all = arena_printf(a, "%.*s%s%.*s", STRF(all), separator, STRF(t->more.v[i]));
	return all;
}

enum result trust_check(const struct trust *t, struct answer *ans, struct arena *a)
{
	if (t->state != TRUST_MISSING)
		return SUCCESS;
	if (t->agent)
		return answer_fail(
			ans, MISCONFIGURED,
			STR("the queue was not opened: .pawl/config may have come with a clone, and nobody "
			    "has trusted it. Only a person can, with `pawl trust`"),
			trust_advice(t));
	return answer_fail(
		ans, MISCONFIGURED,
		arena_printf(a,
			     "the queue's config is not trusted: %s. A person who wants this "
			     "store runs in a terminal: pawl trust",
			     arena_cstr(a, trust_reasons(t, "; ", a))),
		STR("a config can come with a clone: read it first. --store URI or PAWL_STORE names "
		    "another store"));
}

enum result trust_refuse(struct str why, struct answer *ans, struct arena *a)
{
	return answer_fail(
		ans, MISCONFIGURED,
		arena_printf(a, "`pawl trust` asks a person at a terminal (%.*s)", STRF(why)),
		STR("if you are an agent, ask the person you work for to run it; do not "
		    "work around it"));
}

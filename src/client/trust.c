#include "client/trust.h"

#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/secret.h"
#include "base/text.h"
#include "store/store.h"

/* Hashes both parts first, so that no byte can move from one part to the other. */
static struct str seal_of(struct str text, struct str to, struct arena *a)
{
	return hash_hex(
		a, arena_printf(a, "%.*s %.*s", STRF(hash_hex(a, text)), STRF(hash_hex(a, to))));
}

static struct str asks(const struct settings *s, struct str uri, struct arena *a)
{
	const struct settings_value *v = &s->queue_store;

	if (v->value.n)
		return arena_printf(a, "%.*s: store = %.*s", STRF(text_line(a, v->origin)),
				    STRF(text_line(a, uri_shown(a, v->value))));
	return arena_printf(a, "%.*s", STRF(text_line(a, uri_shown(a, uri))));
}

/* Is .pawl another user's, in a folder that all users can write to, such as /tmp? Any user can create a .pawl there,
 * and a search from below finds it. A folder that is shared with a group does not count. */
static bool is_planted(const struct place *p, uid_t *owner)
{
	struct stat queue, folder;

	if (!p->pawl_dir || lstat(p->pawl_dir, &queue) || stat(p->root, &folder))
		return false;
	*owner = queue.st_uid;
	return (folder.st_mode & S_IWOTH) && queue.st_uid != 0 && queue.st_uid != geteuid();
}

void trust_judge(struct trust *t, const struct place *p, const struct settings *s, struct str uri,
		 const char *dir, struct arena *a)
{
	struct str to;
	uid_t owner;

	*t = (struct trust){ .state = TRUST_INSIDE, .uri = uri };
	if (!p->root || !uri.n)
		return;
	t->config = fs_join(a, str_c(p->root), STR(".pawl/config"));
	t->state = trust_reach(uri, p->root, dir, &to, &t->why, a);
	if (is_planted(p, &owner)) {
		t->state = TRUST_MISSING;
		t->why = arena_printf(
			a, "it belongs to the user %ju, in a folder that all users can write to",
			(uintmax_t)owner);
		to = arena_printf(a, "%ju %.*s", (uintmax_t)owner, STRF(to));
	}
	if (t->state != TRUST_MISSING)
		return;
	t->asks = asks(s, uri, a);
	t->seal = seal_of(s->queue_text, to, a);
	if (trust_remembered(t, a))
		t->state = TRUST_GIVEN;
}

enum result trust_check(const struct trust *t, struct answer *ans, struct arena *a)
{
	if (t->state != TRUST_MISSING)
		return SUCCESS;
	return answer_fail(
		ans, MISCONFIGURED,
		arena_printf(
			a,
			"the queue's config is not trusted: %.*s (%.*s). If you want this store, "
			"run: pawl trust",
			STRF(t->asks), STRF(t->why)),
		STR("a config can come with a clone: read it first. --store URI or PAWL_STORE names "
		    "another store"));
}

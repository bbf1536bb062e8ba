/*
 * trust: may the store that a queue's own config names be opened?
 *
 * A .pawl/config can come with a clone. A store inside of the folder that has .pawl needs no trust: a clone
 * may bring that, and the stores do not trust its content. Any other store needs the user's word. So do
 * branches, a repository with a .git of its own below that folder, and the queue of another user in a folder that
 * everybody can write to. The user gives it once by `pawl trust`, `pawl init --store` or `pawl config set store`. The
 * word is kept in a file of mode 0600 under $XDG_STATE_HOME/pawl/trust. It counts for this path, these bytes of the
 * config, and the place that its store leads to; a change of any of them needs a new one.
 *
 * A store named by --store, PAWL_STORE or the user's own settings is the user's word already, and so is a
 * remote in the repository's own .git/config.
 */
#ifndef CLIENT_TRUST_H
#define CLIENT_TRUST_H

#include "client/place.h"
#include "client/settings.h"

enum trust_state {
	TRUST_MISSING, /* the store must not be opened; also where nobody has judged it yet */
	TRUST_SAID,    /* the user named the store here and now, or in settings of his own */
	TRUST_INSIDE,  /* the store is inside of the folder that has .pawl, or there is no queue */
	TRUST_REMOTE,  /* the store is a remote that the user's own repository has */
	TRUST_GIVEN    /* the user trusted this config */
};

struct trust {
	enum trust_state state;
	struct str uri;     /* the store that is meant, with paths made absolute */
	const char *config; /* the file, by the folder in which .pawl was found; NULL: no queue */
	struct str asks;    /* "FILE:2: store = git:../q.git" */
	struct str why;     /* "it leads out of FOLDER" */
	struct str seal; /* hash of the config's bytes and of the place that the store leads to */
};

/* The verdict on the queue's config. uri: its store with paths made absolute, or the default store. dir: what a
 * remote's name is looked up from. */
void trust_judge(struct trust *t, const struct place *p, const struct settings *s, struct str uri,
		 const char *dir, struct arena *a);
/* MISCONFIGURED in *ans if `t` says so, with the command that gives trust. */
enum result trust_check(const struct trust *t, struct answer *ans, struct arena *a);

/* --- what is remembered ---------------------------------------------------------------------- */

struct trusted {
	struct str config, store, seal;
	int64_t at; /* wall ms */
};

bool trust_remembered(const struct trust *t, struct arena *a);
/* 0 or -errno; -ENOENT: there is no home folder to remember it in. */
int trust_give(const struct trust *t, struct arena *a);
/* The same back: -ENOENT if nothing was remembered. */
int trust_revoke(const char *config, struct arena *a);
typedef void trusted_fn(void *ctx, const struct trusted *t);
int trust_each(trusted_fn *fn, void *ctx, struct arena *a);

/* --- where a store leads --------------------------------------------------------------------- */

/* TRUST_INSIDE, TRUST_REMOTE, or TRUST_MISSING with the reason in *why. *to: the place that the store of `uri` leads
 * to. */
enum trust_state trust_reach(struct str uri, const char *root, const char *dir, struct str *to,
			     struct str *why, struct arena *a);
/* git:PATH with PATH made absolute, as seen from `root`. Any other URI stays as it is, and so does git:REMOTE, which
 * is looked up from `dir`. */
struct str trust_git_uri(struct str uri, const char *root, const char *dir, struct arena *a);
/* What a name without '/' in git:NAME means. */
enum remote {
	REMOTE_NONE,  /* no remote of the repository: a path */
	REMOTE_OWN,   /* a remote in the repository's own config */
	REMOTE_UNSURE /* files of a clone, or of another user, may have their say */
};
/* By the config of the repository that both `root` and `dir` are in. */
enum remote trust_remote(struct str name, const char *root, const char *dir, struct arena *a);
/* Is the real path `path` the folder `root`, or below it? */
bool trust_within(struct str path, struct str root);

#endif

/*
 * trust: may the store that a queue's own config names be opened?
 *
 * A .pawl/config can come with a clone. A store inside the folder that has .pawl needs no trust, because stores treat its
 * content as hostile. Any other store needs the user's trust. So do branches, a repository with its own .git below
 * that folder, another user's queue in a folder that all users can write to, and an agent's name. So do names that are
 * not one plain word, because they reach agents' prompts. A person gives trust once, by `pawl trust` on a terminal,
 * `pawl init --store` or `pawl config set store`. A coding agent cannot give it, as far as pawl recognises the agent.
 * pawl keeps the trust in a file of mode 0600 under $XDG_STATE_HOME/pawl/trust. It applies to this path, these bytes of
 * the config, and the place that its store leads to. If any of them changes, the user must trust it again.
 *
 * A store that --store, PAWL_STORE or the user's own settings name is trusted, and so is a remote in the repository's
 * own .git/config.
 */
#ifndef CLIENT_TRUST_CONFIG_H
#define CLIENT_TRUST_CONFIG_H

#include "client/place.h"
#include "client/settings.h"

enum trust_state {
	TRUST_MISSING, /* the store must not be opened; also the state before trust_decide() */
	TRUST_SAID,    /* the user named the store in this call or in the user's own settings */
	TRUST_INSIDE,  /* the store is inside the folder that has .pawl, or there is no queue */
	TRUST_REMOTE,  /* the store is a remote of the user's own repository */
	TRUST_GIVEN    /* the user trusted this config */
};

struct trust {
	enum trust_state state;
	struct str uri;     /* the store, with absolute paths */
	const char *config; /* path, in the folder in which .pawl was found; NULL: no queue */
	struct str asks;    /* "FILE:2: store = git:../q.git" */
	struct str why;     /* "it leads out of FOLDER" */
	struct strs
		more; /* other lines that trust covers: "FILE:1: agent = x (it names the agent)" */
	struct str seal; /* hash of the config's bytes and of the place that the store leads to */
	struct str text; /* the config's bytes */
	bool linked;     /* a link in the folder that has .pawl leads to the store */
	bool agent;      /* a coding agent reads the refusal */
	bool names;      /* the config names the agent, or a queue of several words */
};

/* Decides whether the queue's config is trusted. uri: its store with absolute paths, or the default store. dir: the folder
 * in whose repository a remote is looked up. */
void trust_decide(struct trust *t, const struct place *p, const struct settings *s, struct str uri,
		  const char *dir, struct arena *a);
/* MISCONFIGURED in *ans if the store is not trusted. The message tells a person the command that gives trust; it tells an
 * agent to ask a person, and repeats nothing that the config says. */
enum result trust_check(const struct trust *t, struct answer *ans, struct arena *a);

/* MISCONFIGURED in *ans: `pawl trust` needs a person. why: "CLAUDECODE is set". */
enum result trust_refuse(struct str why, struct answer *ans, struct arena *a);
/* Every line that trust covers, with the reason in brackets. */
struct str trust_reasons(const struct trust *t, const char *separator, struct arena *a);
/* The next step for a person, or for an agent. */
struct str trust_advice(const struct trust *t);

/* The user has just changed this config, by `init` or `config set`. Does that include trust in the rest of it?
 * before: the decision about the file before the change. store: the user named the store. Names that came with a clone stay
 * untrusted, and an agent that repeats the clone's words gives no trust. */
bool trust_included(const struct trust *t, const struct trust *before, bool store);

/* --- saved trust (trust_file.c) --------------------------------------------------------------- */

struct trusted {
	struct str config, store, seal;
	int64_t at; /* wall ms */
};

bool trust_remembered(const struct trust *t, struct arena *a);
/* 0 or -errno; -ENOENT: there is no home folder. */
int trust_give(const struct trust *t, struct arena *a);
/* Removes the saved trust. -ENOENT: there was none. */
int trust_revoke(const char *config, struct arena *a);
typedef void trusted_fn(void *ctx, const struct trusted *t);
int trust_each(trusted_fn *fn, void *ctx, struct arena *a);

/* --- where a store leads --------------------------------------------------------------------- */

/* TRUST_INSIDE, TRUST_REMOTE, or TRUST_MISSING with the reason in *why. *to: the place that the store of `uri` leads
 * to. */
enum trust_state trust_reach(struct str uri, const char *root, const char *dir, struct str *to,
			     struct str *why, struct arena *a);
/* Makes PATH in git:PATH absolute, relative to `root`. Other URIs stay unchanged, and so does git:REMOTE, a remote of
 * the repository of `dir`. */
struct str trust_git_uri(struct str uri, const char *root, const char *dir, struct arena *a);
/* Does the store that the config names (empty: the default) lie behind a link in `root`? */
bool trust_linked(struct str uri, const char *root, struct arena *a);
/* The meaning of a NAME without '/' in git:NAME. */
enum remote {
	REMOTE_NONE,  /* not a remote of the repository, so it is a path */
	REMOTE_OWN,   /* a remote in the repository's own config */
	REMOTE_UNSURE /* files from a clone or from another user may define it */
};
/* Reads the config of the repository that contains both `root` and `dir`. */
enum remote trust_remote(struct str name, const char *root, const char *dir, struct arena *a);
/* Is the real path `path` the folder `root`, or below it? */
bool trust_within(struct str path, struct str root);

#endif

/*
 * bearer: the tokens of callers over the network. `pawl token` writes them, `pawl serve` checks them. They are in the
 * state folder of the server, never in the store: a reader of the store must not become its admin. The file has only
 * the SHA-256 of each token.
 */
#ifndef CLIENT_BEARER_H
#define CLIENT_BEARER_H

#include "client/client.h"

#define BEARER_PREFIX "pawl_"
#define BEARERS_MAX 10000

struct bearer {
	struct str name;
	struct str hash;  /* SHA-256 of the token, in hex */
	struct str agent; /* the names that its agent may use; '*' stands for any characters */
	struct str queue; /* the only queue that it opens; empty: all */
	enum role role;
	int64_t created, expires; /* wall clock; expires 0: never */
	int64_t used;             /* its last use; 0: none is known */
};

struct bearers {
	struct bearer *v;
	size_t n;
};

/* The state folder of the server of this client's store: $PAWL_SERVER_STATE, or a folder under $XDG_STATE_HOME/pawl/serve.
 * NULL: there is no home folder. */
char *bearer_dir(const struct client *c, struct arena *a);
/* The file of the tokens in the folder. */
char *bearer_file(const char *dir, struct arena *a);

/* No file: no tokens. -EBADMSG: the file is damaged; -EPERM: others may write or read it; other -errno. */
int bearer_load(const char *dir, struct bearers *out, struct arena *a);
/* Makes the text of a token, and sets its hash. */
struct str bearer_make(struct bearer *b, struct arena *a);
/* Adds a token and sets *secret, which is kept nowhere. -EEXIST: the name is in use. */
int bearer_add(const char *dir, const struct bearer *b, struct str *secret, struct arena *a);
/* -ENOENT: there is no token of this name. */
int bearer_remove(const char *dir, struct str name, struct arena *a);
/* Keeps the times of the last uses, which the server knows. */
int bearer_note_uses(const char *dir, const struct bearers *list, struct arena *a);

/* The token that has this text; NULL: none. Also one that expired. */
const struct bearer *bearer_find(const struct bearers *list, struct str secret, struct arena *a);
bool bearer_expired(const struct bearer *b, int64_t now);
/* May the agent of the token use this name? */
bool bearer_names(const struct bearer *b, struct str agent);

#endif

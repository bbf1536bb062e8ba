/*
 * bearer: the tokens of network callers. `pawl token` writes them, and `pawl serve` checks them. They are in the server's
 * state folder, never in the store: a reader of the store must not become its admin. The file has only the SHA-256 of
 * each token.
 */
#ifndef CLIENT_BEARER_H
#define CLIENT_BEARER_H

#include "client/client.h"
#include "core/answer.h"

#define BEARER_PREFIX "pawl_"
#define BEARERS_MAX 10000

struct bearer {
	struct str name;
	struct str hash;  /* SHA-256 of the token, in hex */
	struct str agent; /* pattern of the agent names that it allows; '*': any characters */
	struct str queue; /* the only queue that it opens; empty: all */
	enum role role;
	int64_t created, expires; /* wall clock; expires 0: never */
	int64_t used;             /* its last use; 0: none is known */
};

struct bearers {
	struct bearer *v;
	size_t n;
};

/* The state folder of the server for this client's store: $PAWL_SERVER_STATE, or a folder under $XDG_STATE_HOME/pawl/serve.
 * NULL: there is no home folder. */
char *bearer_dir(const struct client *c, struct arena *a);
/* The token file in the folder. */
char *bearer_file(const char *dir, struct arena *a);

/* If there is no file, there are no tokens. -EBADMSG: the file is damaged; -EPERM: others may write or read it; other
 * -errno. */
int bearer_load(const char *dir, struct bearers *out, struct arena *a);
/* Makes the text of a token, and sets its hash. */
struct str bearer_make(struct bearer *b, struct arena *a);
/* Adds a token and sets *secret, which is not stored. -EEXIST: the name is in use. */
int bearer_add(const char *dir, const struct bearer *b, struct str *secret, struct arena *a);
/* -ENOENT: there is no token with this name. */
int bearer_remove(const char *dir, struct str name, struct arena *a);
/* Saves the time when each token was last used, which only the server knows. */
int bearer_note_uses(const char *dir, const struct bearers *list, struct arena *a);

/* The token with this text, even if it has expired; NULL: none. */
const struct bearer *bearer_find(const struct bearers *list, struct str secret, struct arena *a);
bool bearer_expired(const struct bearer *b, int64_t now);
/* May a caller with this token use this agent name? */
bool bearer_names(const struct bearer *b, struct str agent);

/* --- login ------------------------------------------------------------------------------------ */

/*
 * login: a caller's token for a server. It comes from PAWL_SERVER_TOKEN, from the file PAWL_SERVER_TOKEN_FILE, or
 * from `pawl login`, which saves it for one origin (scheme, host and port) in a file of mode 0600. A saved token is sent
 * nowhere else, because a cloned repository's config may name any server. No token is sent in clear text to another
 * machine, or to a server that has not proved that it knows the token, unless the person allowed it: with
 * `pawl login --insecure` for a saved token, or PAWL_SERVER_INSECURE=1 for the others.
 */

/* The function for queue_config.bearer. *token is empty if there is no token. */
enum result login_bearer(void *ctx, struct str origin, struct str *token, bool *insecure,
			 struct answer *ans, struct arena *a);
/* Would other machines see the token on its way to this origin? */
bool login_in_clear(struct str origin);
/* Refuses to send a token there. */
enum result login_refuse(struct str origin, struct answer *ans, struct arena *a);
/* PAWL_SERVER_CA; NULL: it is not set. */
const char *login_ca_file(void);

/* Is the text one word of visible characters, as every token is? */
bool login_valid(struct str token);
/* The path of this origin's file; NULL: there is no home folder. */
char *login_file(struct str origin, struct arena *a);
/* 0 or -errno. */
int login_save(struct str origin, struct str token, bool insecure, struct arena *a);
/* Removes the saved token. -ENOENT: there was none. */
int login_forget(struct str origin, struct arena *a);

#endif

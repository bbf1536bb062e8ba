/*
 * login: the token of a caller for a server. It comes from PAWL_SERVER_TOKEN, from the file PAWL_SERVER_TOKEN_FILE, or
 * from `pawl login`, which saves it for one origin (scheme, host and port) in a file of mode 0600. It is sent nowhere
 * else: the config of a cloned repository may name any server. Nor is it sent in clear text to another machine, or to a
 * server that has not proved that it knows the token, unless the person has said so: `pawl login --insecure` for a saved
 * token, PAWL_SERVER_INSECURE=1 for the others.
 */
#ifndef CLIENT_LOGIN_H
#define CLIENT_LOGIN_H

#include "core/answer.h"

/* For queue_config.bearer. *token is empty if there is none. */
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
/* The file of this origin; NULL: there is no home folder. */
char *login_file(struct str origin, struct arena *a);
/* 0 or -errno. */
int login_save(struct str origin, struct str token, bool insecure, struct arena *a);
/* -ENOENT: there was none. */
int login_forget(struct str origin, struct arena *a);

#endif

/*
 * kit: a server in a thread of its own, with handlers for the tests, and sockets that talk to it.
 */
#ifndef TEST_HTTP_KIT_H
#define TEST_HTTP_KIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/os.h"
#include "http/http_client.h"
#include "http/http_origin.h"
#include "http/http_server.h"

#define PATIENCE 30000 /* ms until a test gives up on an event that must come */

struct tally {
	int parked, gone, logged; /* seen by the handlers */
	size_t flooded;
	int last_status;
};

struct harness;

/* Starts a server on 127.0.0.1 and on a Unix socket. `options` may be NULL. */
struct harness *harness_start(const struct http_options *options);
/* Ends it, and fails the test if an exchange is left. */
void harness_end(struct harness *h);
struct http_options harness_options(void);
struct http_server *harness_server(struct harness *h);
const char *harness_url(struct harness *h);
const char *harness_socket(struct harness *h); /* unix:PATH */
int harness_port(struct harness *h);
/* Runs fn in the server's thread and waits for it. */
void harness_do(struct harness *h, void (*fn)(struct harness *h));
struct http_counters harness_counters(struct harness *h);
struct tally harness_tally(struct harness *h);
/* Waits until the condition holds. */
#define WAIT_FOR(what)                                          \
	do {                                                    \
		int64_t until = os_boot_ms() + PATIENCE;        \
		while (!(what)) {                               \
			if (os_boot_ms() > until)               \
				fail_msg("in vain: %s", #what); \
			usleep(2000);                           \
		}                                               \
	} while (0)
/* Answers every parked exchange. */
void harness_wake(struct harness *h);

/* ---- sockets */

int dial(struct harness *h);
int dial_port(int port);
/* From an address of this machine: all of 127.0.0.0/8 belong to it. */
int dial_from(struct harness *h, uint32_t address);
void say(int fd, struct str text);
/* Reads until the peer closes, or until `n` bytes are there (0: no limit). Returns the number;
 * the text ends with a NUL. */
size_t hear(int fd, char *out, size_t room, size_t n);
/* Reads one answer with a Content-Length; returns its status, and its body. */
int hear_answer(int fd, char *body, size_t room);
/* Has the peer closed? Waits for it. */
bool hear_end(int fd);
/* One request on a fresh connection; everything that comes back. */
size_t exchange_raw(struct harness *h, struct str text, char *out, size_t room);

#endif

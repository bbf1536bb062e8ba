/*
 * host: does an address lead to this machine? A token may go there without TLS.
 */
#ifndef BASE_HOST_H
#define BASE_HOST_H

#include "base/str.h"

/* Is HOST or HOST:PORT certainly an address of this machine? A name that only begins like one may lead elsewhere. */
bool host_is_loopback(struct str place);

#endif

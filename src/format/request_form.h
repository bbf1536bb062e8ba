/*
 * request: encodes a call as bytes, for other processes and for histories, and as JSON.
 */
#ifndef FORMAT_REQUEST_FORM_H
#define FORMAT_REQUEST_FORM_H

#include <jansson.h>

#include "base/buf.h"
#include "core/request.h"
#include "format/pack.h"

void request_pack(const struct request *r, struct buf *out);
int request_unpack(struct str bytes, struct request *out, struct arena *a); /* -EBADMSG */
/* A queue's rules, by tag, because other versions of pawl may have more or fewer of them. */
extern const struct shape policy_shape;
/* Could a queue have these rules? Larger numbers could overflow when the current time is added. */
bool policy_sane(const struct policy *p);
/* For people and histories, without tokens. */
json_t *request_json(const struct request *r);

#endif

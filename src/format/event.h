/*
 * event: encodes an entry of the event log as bytes and as JSON.
 */
#ifndef FORMAT_EVENT_H
#define FORMAT_EVENT_H

#include <jansson.h>

#include "base/buf.h"
#include "core/event.h"
#include "format/shape.h"

void event_pack(const struct event *e, struct buf *out);
int event_unpack(struct str bytes, struct event *out);
/* With the event's place in the log (cursor, at), which a store keeps beside the bytes. */
extern const struct shape event_shape;
json_t *event_json(const struct event *e, struct arena *a);

#endif

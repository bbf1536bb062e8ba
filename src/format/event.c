#include "format/event.h"

#include "base/when.h"
#include "format/changes.h"
#include "format/json.h"

/* The parts of an event, and when a member is packed. */
#define STORED 1u
#define PLACE 2u
#define WHEN_STORED SHAPE_SOME
#define WHEN_PLACE SHAPE_ALWAYS

static const struct shape_member members[] = {
#define EVENT(tag, part, kind, member) \
	{ tag, SHAPE_##kind, WHEN_##part, part, 0, offsetof(struct event, member), 0, NULL },
#include "core/event.def"
};

const struct shape event_shape = SHAPE_OF(members, event);

void event_pack(const struct event *e, struct buf *out)
{
	shape_pack(&event_shape, STORED, e, out);
}

int event_unpack(struct str bytes, struct event *out)
{
	*out = (struct event){ 0 };
	return shape_unpack(&event_shape, STORED, bytes, out, NULL);
}

json_t *event_json(const struct event *e, struct arena *a)
{
	json_t *o = json_object(), *changes = changes_json(e->changes);

	json_set_text(o, "cursor", e->cursor);
	json_set_text(o, "at", when_text(a, e->at));
	json_set_text(o, "event", e->name);
	json_set_text(o, "task", e->task);
	json_set_text(o, "agent", e->agent);
	json_set_text(o, "run", e->run);
	if (e->fence)
		json_object_set_new(o, "fence", json_integer(e->fence));
	if (e->from)
		json_object_set_new(o, "from", json_string(status_name(e->from)));
	if (e->to)
		json_object_set_new(o, "to", json_string(status_name(e->to)));
	json_set_text(o, "text", e->text);
	if (changes)
		json_object_set_new(o, "changes", changes);
	return o;
}

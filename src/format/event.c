#include "format/event.h"

#include "base/when.h"
#include "format/changes.h"
#include "format/pack.h"

enum {
	E_NAME = 1,
	E_TASK = 2,
	E_AGENT = 3,
	E_RUN = 4,
	E_TEXT = 5,
	E_FENCE = 6,
	E_FROM = 7,
	E_TO = 8,
	E_CHANGES = 9,
	E_CURSOR = 100,
	E_AT = 101
};

static void pack_some(struct buf *out, uint8_t tag, struct str s)
{
	if (s.n)
		pack_str(out, tag, s);
}

static void pack_number(struct buf *out, uint8_t tag, int64_t v)
{
	if (v)
		pack_int(out, tag, v);
}

void event_pack(const struct event *e, struct buf *out)
{
	pack_some(out, E_NAME, e->name);
	pack_some(out, E_TASK, e->task);
	pack_some(out, E_AGENT, e->agent);
	pack_some(out, E_RUN, e->run);
	pack_some(out, E_TEXT, e->text);
	pack_number(out, E_FENCE, e->fence);
	pack_number(out, E_FROM, e->from);
	pack_number(out, E_TO, e->to);
	pack_some(out, E_CHANGES, e->changes);
}

int event_unpack(struct str bytes, struct event *out)
{
	const struct pack_slot slots[] = {
		[E_NAME - 1] = { &out->name, NULL },       [E_TASK - 1] = { &out->task, NULL },
		[E_AGENT - 1] = { &out->agent, NULL },     [E_RUN - 1] = { &out->run, NULL },
		[E_TEXT - 1] = { &out->text, NULL },       [E_FENCE - 1] = { NULL, &out->fence },
		[E_FROM - 1] = { NULL, &out->from },       [E_TO - 1] = { NULL, &out->to },
		[E_CHANGES - 1] = { &out->changes, NULL },
	};

	*out = (struct event){ 0 };
	return unpack_slots(bytes, slots, E_CHANGES);
}

void event_pack_placed(const struct event *e, struct buf *out)
{
	event_pack(e, out);
	pack_str(out, E_CURSOR, e->cursor);
	pack_int(out, E_AT, e->at);
}

int event_unpack_placed(struct str bytes, struct event *out)
{
	struct unpack u = { bytes };
	struct str value;
	uint8_t tag;
	int r = event_unpack(bytes, out);

	while (r >= 0 && (r = unpack_next(&u, &tag, &value)) > 0) {
		if (tag == E_CURSOR)
			out->cursor = value;
		else if (tag == E_AT)
			r = unpack_int(value, &out->at);
	}
	return r;
}

static void set_text(json_t *o, const char *key, struct str s)
{
	if (s.n)
		json_object_set_new(o, key, json_stringn(s.p, s.n));
}

json_t *event_json(const struct event *e, struct arena *a)
{
	json_t *o = json_object(), *changes = changes_json(e->changes);

	set_text(o, "cursor", e->cursor);
	set_text(o, "at", when_text(a, e->at));
	set_text(o, "event", e->name);
	set_text(o, "task", e->task);
	set_text(o, "agent", e->agent);
	set_text(o, "run", e->run);
	if (e->fence)
		json_object_set_new(o, "fence", json_integer(e->fence));
	if (e->from)
		json_object_set_new(o, "from", json_string(status_name(e->from)));
	if (e->to)
		json_object_set_new(o, "to", json_string(status_name(e->to)));
	set_text(o, "text", e->text);
	if (changes)
		json_object_set_new(o, "changes", changes);
	return o;
}

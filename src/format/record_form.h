/*
 * record: a task with all its fields as a JSON object, for files that people can read. Unlike task_json(), it hides
 * no field (tokens are hashes) and rounds no value: a written object reads back as the same task. Times are ms since
 * 1970; a string that is not valid text becomes {"hex": …}.
 */
#ifndef FORMAT_RECORD_FORM_H
#define FORMAT_RECORD_FORM_H

#include <jansson.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/secret.h"
#include "core/event.h"
#include "core/task.h"
#include "format/pack.h"
#include "format/task_form.h"

json_t *task_fields_json(const struct task *t);
/* Sets the fields that the object has; strings are in `a`. -EBADMSG: a field has the wrong type. */
int task_fields_parse(const json_t *o, struct task *out, struct arena *a);
/* For one field; field_json: NULL if it has no value. */
json_t *field_json(const struct field *f, const struct task *t);
int field_parse(const struct field *f, const json_t *v, struct task *out, struct arena *a);

/* --- event ------------------------------------------------------------------------------------ */

/*
 * event: encodes an entry of the event log as bytes and as JSON.
 */

void event_pack(const struct event *e, struct buf *out);
int event_unpack(struct str bytes, struct event *out);
/*
 * Each event of a task contains the hash of the event before it (`prev`), and the task's record has the hash of the
 * newest one. The hash covers the packed bytes and the time, which a store keeps beside them, but not the cursor: so a
 * backup, a restore and a migration keep it.
 */
void event_hash(struct str bytes, int64_t at, unsigned char out[SHORT_HASH_LEN]);
/* Packs the event into an empty buffer and gives its hash, without a second copy of its bytes. */
void event_pack_hash(const struct event *e, int64_t at, struct buf *out,
		     unsigned char hash[SHORT_HASH_LEN]);
/* With the event's place in the log (cursor, at), which a store keeps beside the bytes. */
extern const struct shape event_shape;
json_t *event_json(const struct event *e, struct arena *a);

/* --- changes ---------------------------------------------------------------------------------- */

/*
 * changes: the fields that an update changed, with their old and new values, as an entry of the event log keeps them: a
 * JSON object such as {"priority":{"from":2,"to":3},"description":{}}. Long texts are named without their values.
 */

/* Empty: no field that a user sets has changed. */
struct str changes_of(const struct task *old, const struct task *now, struct arena *a);
/* NULL: the text is not a JSON object. */
json_t *changes_json(struct str changes);
/* The names of the changed fields. */
struct strs changes_names(struct str changes, struct arena *a);
/* For people: priority 2 → 3, labels +ui, description changed. Empty if the text is not a JSON object. */
struct str changes_text(struct str changes, struct arena *a);

/* --- text change ------------------------------------------------------------------------------ */

/* The result of a change in the text of a file. */

enum text_change {
	TEXT_CHANGED, /* there is a new text */
	TEXT_SAME,    /* nothing to do */
	TEXT_OTHER,   /* the place holds another value, which stays */
	TEXT_EMPTY,   /* only parts that pawl made are left, so the caller can remove the file */
	TEXT_UNFIT    /* the structure of the file does not allow the change */
};

#endif

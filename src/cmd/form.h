/* form: a task as a text that a person edits, and the changes that the person made in it. */
#ifndef CMD_FORM_H
#define CMD_FORM_H

#include "core/request.h"
#include "format/yaml.h"

struct form {
	struct task task; /* version: that of the text */
	json_t *lines;    /* {"title": 2}: the line of each key */
	bool titled;      /* the text has a title of its own */
};

/* The text for a task; for a new task without an id. */
struct str form_text(const struct task *t, struct arena *a);
/* 0, or -EBADMSG with *fault. extra: the keys of one's own that the task has already; others go under `extra`. */
int form_read(struct str text, struct str extra, struct form *out, struct yaml_fault *fault,
	      struct arena *a);
void form_free(struct form *f);
/* Adds the differences between two readings to a request of OP_CREATE or OP_UPDATE. false: there is none. An update does
 * not change `depends`. */
bool form_changes(const struct form *was, const struct form *is, struct request *rq,
		  struct arena *a);
/* Members of `list` that are not in `others`. */
struct strs form_without(struct strs list, struct strs others, struct arena *a);
/* The line of the field that a message is about ("title has 600 bytes"); 0: of none. */
size_t form_line(const struct form *f, struct str message);

#endif

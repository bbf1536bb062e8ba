/*
 * check: could pawl have written this record? Stores, backups and other processes supply bytes that
 * an attacker may have written. Callers check each record here before they use it, so stores do not
 * check records themselves.
 *
 * Each function returns NULL or a description of the fault. The description is safe to print.
 */
#ifndef CORE_VALIDATE_H
#define CORE_VALIDATE_H

#include "core/answer.h"
#include "core/request.h"

/* A key is a namespace, '/' and an id, which may begin with '@'. */
const char *key_fault(struct str key);
/* `key`: the key under which the task is stored; empty: unknown. */
const char *task_fault(const struct task *t, struct str key, struct arena *a);
/* Checks a changed task. old: the valid task from which `t` was made. Texts that both share are
 * not checked again. */
const char *task_change_fault(const struct task *t, const struct task *old, struct str key,
			      struct arena *a);
/* Rejects an imported task with a counter so high that it could soon overflow. */
const char *room_fault(const struct task *t, struct arena *a);
const char *event_fault(const struct event *e);
/* Checks an answer that did not come from this process's own queue code: from a server, from another process, or
 * stored under a request id. NULL: it is valid. */
const char *answer_fault(const struct answer *ans, struct arena *a);
/* For an answer from a server: does it belong to this request, and does it have everything that
 * callers rely on? NULL: answer_fault() accepts it, too. */
const char *reply_fault(const struct request *rq, const struct answer *ans, struct arena *a);
/* A text without control characters that fits into one line of a message, such as the name of a
 * queue. */
bool word_valid(struct str s);
/* The name of a fault. `pawl help NAME` explains it, and people copy that line into their shell. */
bool fault_valid(struct str s);
/* Parses the number in a record that is not a task: the id counter, or the fence of a removed
 * task. */
bool number_valid(struct str text, int64_t *out);
/* Rejects a change that makes a list, the description or `extra` exceed its limit. The text
 * addresses the caller. */
const char *growth_fault(const struct task *t, struct arena *a);
/* The number of values in a JSON text, counted by its brackets and commas. *levels: the nesting
 * depth. */
size_t json_values(struct str text, size_t *levels);
/* Is this JSON small and flat enough to parse, also inside the JSON of an answer or an export?
 * NULL: it is. */
const char *extra_fault(struct str extra, struct arena *a);

/* An id that people can type to remove a record whose key is not printable: "bad:" and a hash of
 * its key. */
struct str bad_handle(struct arena *a, struct str key);
bool bad_handle_is(struct str id);

#endif

/* model_part: declarations that the model's files share. */
#ifndef PROOF_MODEL_MODEL_PRIVATE_H
#define PROOF_MODEL_MODEL_PRIVATE_H

#include <stdlib.h>

#include "proof/history/history.h"
#include "proof/model/model.h"

/* A reason that the queue wrote by itself: every text agrees with it. */
#define MODEL_SOME_TEXT UINT32_MAX

struct model_world {
	struct arena *arena;
	struct policy policy;
	bool whole;
	struct tally names[MODEL_KINDS];
	uint32_t guards[MODEL_GUARDS]; /* the guards' names; 0: the guard is not in this world */
};

bool model_live(const struct model_task *t, int64_t now);
/* open_deps, canceled_deps, open_subs */
void model_count_links(const struct model *m, uint32_t task, int64_t counts[4]);
bool model_offered(const struct model_world *w, const struct model *m, const struct model_call *c,
		   uint32_t task, int64_t now);
/* The first eligible task; 0: there is none. */
uint32_t model_first(const struct model_world *w, const struct model *m, const struct model_call *c,
		     int64_t now);
/* Time in ms until the next task becomes eligible without a call; 0: no task will. */
int64_t model_wait(const struct model_world *w, const struct model *m, const struct model_call *c,
		   int64_t now);
/* Does a come before b in the order of selection? */
bool model_before(const struct model_world *w, const struct model_task *a,
		  const struct model_task *b);
/* Ids in natural order. */
int model_id_cmp(struct str a, struct str b);
/* The id that would be created next. */
struct str model_next_id(const struct model_world *w, const struct model *m, int64_t *counter,
			 struct arena *a);

/* --- a step ----------------------------------------------------------------------------------------- */

struct step {
	struct model_world *w;
	struct model *m;
	const struct model_call *c;
	const struct request *rq;
	int64_t now;
	struct model_choice choice;
	struct model_answer *want;
};

static inline struct model_task *step_task(const struct step *s, uint32_t name)
{
	if (name >= s->m->n_tasks)
		abort(); /* the caller of model_new() reserved no room for it */
	return model_task(s->m, name);
}

static inline bool step_there(const struct step *s, uint32_t name)
{
	return name && step_task(s, name)->status;
}

static inline bool step_ended(const struct model_task *t)
{
	return t->status == DONE || t->status == CANCELED;
}

/* Ended or failed: the task can be archived. */
static inline bool step_over(const struct model_task *t)
{
	return step_ended(t) || t->status == FAILED;
}

/* model.c */
void step_show(const struct step *s, uint32_t task);
/* A Ready task that depends on a canceled task goes to Needs Help. about: a task whose version the
 * step has raised already. */
void step_settle(const struct step *s, uint32_t about);
/* model_task.c */
enum result step_one_task(const struct step *s, uint32_t task);
/* model_select.c */
void step_take(const struct step *s);
void step_claim_next(const struct step *s, uint32_t task);
/* model_task.c */
bool step_made_by_claim(const struct step *s);
void step_create(const struct step *s);
void step_drop(const struct step *s);
void step_cleanup(const struct step *s);
void step_archive(const struct step *s);
/* model_undo.c */
/* The operation on a task with this status that undo could take back; OP_NONE: none. */
enum op step_undoable(const struct step *s, int64_t status);
void step_undo_note(const struct step *s, const struct model *before);
void step_undo(const struct step *s);
/* model_select.c */
/* true: the call is refused, and `want` has the refusal. */
bool step_kept_out(const struct step *s);
/* Are new locks of tasks refused? */
bool step_paused(const struct step *s);
void step_about_guard(const struct step *s);
void step_cleanup_guards(const struct step *s);
/* model_move.c */
bool step_held_by(const struct step *s, const struct model_task *t, uint32_t token);
bool step_own(const struct step *s, const struct model_task *t);
bool step_ran_out(const struct step *s, const struct model_task *t);
enum result step_in_the_way(const struct step *s, const struct model_task *t);
/* Does the call change the task over another agent's lock? */
bool step_overrides(const struct step *s, const struct model_task *t);
void step_override(const struct step *s, struct model_task *t);
/* Does the call expect another version of the task? */
bool step_wrong_version(const struct step *s, const struct model_task *t);
void step_changed(const struct step *s, struct model_task *t);
void step_unlock(const struct step *s, struct model_task *t);
bool step_abandon(const struct step *s, struct model_task *t);
bool step_worn(const struct step *s, const struct model_task *t);
void step_grant(const struct step *s, const struct model_task *t, struct model_grant *g);
enum result step_claim(const struct step *s, struct model_task *t);
enum result step_lock_acquire(const struct step *s, struct model_task *t);
enum result step_lock_release(const struct step *s, struct model_task *t);
enum result step_lock_break(const struct step *s, struct model_task *t);
enum result step_heartbeat(const struct step *s, struct model_task *t);
enum status step_leads_to(enum op op);
enum result step_move(const struct step *s, struct model_task *t, enum op op);
enum result step_done(const struct step *s, struct model_task *t);
enum result step_release(const struct step *s, struct model_task *t);
/* model_task.c */
void step_fields(const struct step *s, struct model_task *t);
enum result step_parent(const struct step *s, uint32_t task);
bool step_waits_for_itself(const struct step *s, uint32_t task);
int step_depends_at(const struct model_task *t, uint32_t on);
enum result step_add_depends(const struct step *s, uint32_t task, bool *more);
void step_depend_off(struct model_task *t, uint32_t on);
enum result step_remove_depends(const struct step *s, uint32_t task, bool *more);

#endif

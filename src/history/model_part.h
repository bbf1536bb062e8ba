/* model_part: what the files of the model share. */
#ifndef HISTORY_MODEL_PART_H
#define HISTORY_MODEL_PART_H

#include "history/model.h"

/* A reason that the queue wrote by itself: any text will do. */
#define MODEL_SOME_TEXT UINT32_MAX

struct model_names {
	struct str *v;   /* by number; v[0] is none */
	uint32_t *slots; /* by hash */
	uint32_t n, room, n_slots;
};

struct model_world {
	struct arena *arena;
	struct policy policy;
	bool whole;
	struct model_names names[MODEL_KINDS];
};

bool model_live(const struct model_task *t, int64_t now);
/* open_deps, canceled_deps, open_subs */
void model_count_links(const struct model *m, uint32_t task, int64_t counts[4]);
bool model_offered(const struct model_world *w, const struct model *m, const struct model_call *c,
		   uint32_t task, int64_t now);
/* The first that is on offer; 0: none is. */
uint32_t model_first(const struct model_world *w, const struct model *m, const struct model_call *c,
		     int64_t now);
/* In how many ms the first comes on offer that is not yet; 0: none will by itself. */
int64_t model_wait(const struct model_world *w, const struct model *m, const struct model_call *c,
		   int64_t now);
/* Order of selection. */
bool model_before(const struct model_world *w, const struct model_task *a,
		  const struct model_task *b);
/* The id that would be made next. */
struct str model_next_id(const struct model_world *w, const struct model *m, int64_t *counter,
			 struct arena *a);

#endif

/* What an agent does next, and what it learns from an answer. An agent behaves like a coding agent: it repeats a call whose
 * answer it did not get, sometimes sleeps past its lease, and then still reports its result. */
#include <stdio.h>
#include <string.h>

#include "proof/drive/drive_private.h"

#define SLACK_MS 1500 /* for queues that count leases in whole seconds */
#define LAST_CALLS \
	8 /* for each task, until the last agent gives up on a queue that offers tasks without end */
#define POLL_MS 20 /* between two calls of an agent that finds no task */

static void agent_call(struct worker *w, enum drive_verb verb, const struct drive_hold *h)
{
	w->call = (struct drive_call){ .verb = verb };
	if (!h)
		return;
	memcpy(w->call.id, h->id, sizeof(h->id));
	memcpy(w->call.token, h->token, sizeof(h->token));
}

static bool agent_create(struct drive *d, struct worker *w)
{
	agent_call(w, DRIVE_CREATE, NULL);
	snprintf(w->call.id, sizeof(w->call.id), "k%lld", (long long)d->asked++);
	return true;
}

static bool agent_next(struct worker *w)
{
	struct arena a = { 0 };
	struct str token = token_make(&a);

	agent_call(w, DRIVE_NEXT, NULL);
	snprintf(w->call.token, sizeof(w->call.token), "%.*s", STRF(token));
	arena_free(&a);
	return true;
}

static bool agent_done(struct worker *w, const struct drive_hold *h)
{
	agent_call(w, DRIVE_DONE, h);
	return true;
}

static bool agent_pause(struct drive *d, struct worker *w, int64_t ms)
{
	w->wakes_at = d->now + ms;
	return false;
}

static bool agent_over(struct worker *w)
{
	w->over = true;
	return false;
}

/* --- the mix -------------------------------------------------------------------------------------- */

/* Half of the agents that rest sleep past their lease, and report a result all the same. */
static bool agent_rest(struct drive *d, struct worker *w)
{
	int64_t ms = drive_roll(d, 30);

	w->resting = true;
	if (drive_roll(d, 8) == 0)
		ms = (w->hold.until ? w->hold.until - d->now : 0) + 50 + drive_roll(d, 200);
	return agent_pause(d, w, ms > 0 ? ms : 0);
}

static bool agent_mix(struct drive *d, struct worker *w)
{
	if (w->old.id[0] && drive_roll(d, 12) == 0) {
		agent_done(w, &w->old);
		w->old.id[0] = '\0';
		return true;
	}
	if (w->hold.live && !w->resting && drive_roll(d, 2))
		return agent_rest(d, w);
	if (w->hold.live && drive_roll(d, 5) == 0) {
		agent_call(w, DRIVE_HEARTBEAT, &w->hold);
		return true;
	}
	if (w->hold.live)
		return agent_done(w, &w->hold);
	if (d->asked - d->completed < d->plan->tasks && d->asked < TORTURE_TASKS_MAX &&
	    drive_roll(d, 2))
		return agent_create(d, w);
	return agent_next(w);
}

/* --- the other steps ------------------------------------------------------------------------------ */

static bool agent_drain(struct drive *d, struct worker *w)
{
	if (d->step == DRIVE_LAST && d->last_calls++ > LAST_CALLS * (d->created + 1) + d->n * 1000)
		return agent_over(w);
	return w->hold.live ? agent_done(w, &w->hold) : agent_next(w);
}

static bool agent_read(struct drive *d, struct worker *w)
{
	if (d->shown + 1 >= d->ids.n)
		return agent_over(w);
	agent_call(w, DRIVE_SHOW, NULL);
	d->shown++;
	snprintf(w->call.id, sizeof(w->call.id), "%.*s", STRF(d->ids.v[d->shown]));
	return true;
}

bool agent_choose(struct drive *d, struct worker *w)
{
	bool again = w->again;

	w->again = false;
	if (again && (d->step != DRIVE_MIXING || drive_roll(d, 8)))
		return true;
	switch (d->step) {
	case DRIVE_MIXING:
		return agent_mix(d, w);
	case DRIVE_CREATING:
		return d->asked < d->target ? agent_create(d, w) : agent_over(w);
	case DRIVE_ROUND:
		return agent_next(w);
	case DRIVE_FINISHING:
		return w->hold.live ? agent_done(w, &w->hold) : agent_over(w);
	case DRIVE_READING:
		return agent_read(d, w);
	default:
		return agent_drain(d, w);
	}
}

/* --- learning ------------------------------------------------------------------------------------- */

static void agent_lease(struct drive *d, struct worker *w, int64_t lease)
{
	w->hold.until = lease ? d->now + lease : 0;
	if (w->hold.until > d->last_lease)
		d->last_lease = w->hold.until;
}

static void agent_granted(struct drive *d, struct worker *w, const struct drive_answer *ans)
{
	d->figures.claims++;
	if (w->hold.id[0])
		w->old = w->hold;
	w->hold = (struct drive_hold){ .live = true };
	snprintf(w->hold.id, sizeof(w->hold.id), "%.*s", STRF(ans->id));
	memcpy(w->hold.token, w->call.token, sizeof(w->hold.token));
	w->resting = false;
	agent_lease(d, w, ans->lease);
}

/* Nothing is left once every task is completed, or every lease that an agent may have forgotten has expired. */
static void agent_idle(struct drive *d, struct worker *w)
{
	bool waits = d->completed < d->created && d->now <= d->last_lease + SLACK_MS;

	if ((d->step == DRIVE_DRAINING || d->step == DRIVE_LAST) && !waits)
		agent_over(w);
	else
		agent_pause(d, w, POLL_MS);
}

static void agent_ended(struct worker *w)
{
	if (strcmp(w->call.token, w->hold.token) != 0)
		return;
	w->old = w->hold;
	w->hold.live = false;
}

static void agent_learn(struct drive *d, struct worker *w, const struct drive_answer *ans)
{
	bool ok = ans->word == DRIVE_OK;

	switch (w->call.verb) {
	case DRIVE_CREATE:
		d->created += ok;
		break;
	case DRIVE_NEXT:
		if (ok)
			agent_granted(d, w, ans);
		else
			agent_idle(d, w);
		break;
	case DRIVE_HEARTBEAT:
		if (ok)
			agent_lease(d, w, ans->lease);
		else
			w->hold.live = false;
		break;
	case DRIVE_DONE:
		if (ok)
			tally_add(&d->ended, arena_str(d->arena, str_c(w->call.id)));
		d->completed = d->ended.n ? (int64_t)d->ended.n - 1 : 0;
		d->figures.repeats += ans->word == DRIVE_REPEATED;
		agent_ended(w);
		break;
	default:
		break;
	}
}

void agent_hear(struct drive *d, struct worker *w, const struct drive_answer *ans)
{
	if (ans->id.n && !tally_find(&d->ids, ans->id))
		tally_add(&d->ids, arena_str(d->arena, ans->id));
	if (ans->word == DRIVE_ERROR)
		agent_unanswered(d, w);
	else
		agent_learn(d, w, ans);
	if (d->step == DRIVE_ROUND && !w->again)
		w->over = true;
}

void agent_unanswered(struct drive *d, struct worker *w)
{
	int64_t until = d->now + d->plan->lease_ms;

	w->again = true;
	if (w->call.verb == DRIVE_NEXT && until > d->last_lease)
		d->last_lease = until;
	agent_pause(d, w, drive_roll(d, POLL_MS));
}

void agent_forget(struct worker *w)
{
	w->hold.id[0] = w->old.id[0] = '\0';
	w->hold.live = w->again = false;
}

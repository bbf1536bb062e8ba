/* One agent's call: its line, its entry in the history, its answer. The call is recorded before its line is written and the
 * answer after its line was read, so the recorded times enclose the real ones. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/os.h"
#include "base/text.h"
#include "proof/drive/drive_private.h"

void drive_give_up(struct drive *d, const char *fmt, ...)
{
	char text[600];
	va_list ap;

	if (d->trouble.n)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	d->trouble = text_line(d->arena, str_c(text));
}

/* --- processes ------------------------------------------------------------------------------------ */

bool drive_spawn(struct drive *d, struct worker *w)
{
	int r = child_start(&w->child, d->words, d->home, w->name);

	if (r)
		drive_give_up(d, "cannot start the driver %s: %s", d->words[0], strerror(-r));
	return !r;
}

static void drive_died(struct drive *d, struct worker *w)
{
	int status = child_kill(&w->child);
	const char *verb = drive_verb_name(w->call.verb);

	if (WIFEXITED(status))
		drive_give_up(
			d, "the driver of %s ended with exit code %d; expected an answer to `%s`",
			w->name, WEXITSTATUS(status), verb);
	else if (WTERMSIG(status) != SIGKILL)
		drive_give_up(d,
			      "the driver of %s died of signal %d (%s); expected an answer to `%s`",
			      w->name, WTERMSIG(status), strsignal(WTERMSIG(status)), verb);
	else
		drive_give_up(d, "the driver of %s closed its output; expected an answer to `%s`",
			      w->name, verb);
}

/* --- calls and answers ---------------------------------------------------------------------------- */

static const enum op ops[] = { OP_CREATE, OP_TAKE, OP_HEARTBEAT, OP_DONE, OP_SHOW };

static struct request drive_request(const struct drive *d, const struct worker *w)
{
	struct request rq = { .op = ops[w->call.verb] };
	enum drive_verb v = w->call.verb;

	GIVE(&rq, agent, str_c(w->name));
	if (v == DRIVE_CREATE) /* the answer has the id */
		GIVE(&rq, title, str_c(w->call.id));
	else if (v != DRIVE_NEXT)
		GIVE(&rq, id, str_c(w->call.id));
	if (v == DRIVE_NEXT)
		GIVE(&rq, new_token, str_c(w->call.token));
	if (v == DRIVE_HEARTBEAT || v == DRIVE_DONE)
		GIVE(&rq, token, str_c(w->call.token));
	if (v == DRIVE_NEXT || v == DRIVE_HEARTBEAT)
		GIVE(&rq, ttl, d->plan->lease_ms);
	return rq;
}

static struct str drive_line(const struct drive *d, const struct worker *w, char *to, size_t room)
{
	const struct drive_call *c = &w->call;
	const char *verb = drive_verb_name(c->verb);
	long long lease = (long long)d->plan->lease_ms;
	int n;

	if (c->verb == DRIVE_NEXT)
		n = snprintf(to, room, "%s %s %lld\n", verb, c->token, lease);
	else if (c->verb == DRIVE_HEARTBEAT)
		n = snprintf(to, room, "%s %s %s %lld\n", verb, c->id, c->token, lease);
	else if (c->verb == DRIVE_DONE)
		n = snprintf(to, room, "%s %s %s\n", verb, c->id, c->token);
	else
		n = snprintf(to, room, "%s %s\n", verb, c->id);
	return str_n(to, (size_t)n);
}

void drive_send(struct drive *d, struct worker *w)
{
	char line[DRIVE_ID_MAX + 200];
	struct request rq = drive_request(d, w);
	bool loses = w->call.verb == DRIVE_NEXT || w->call.verb == DRIVE_DONE ||
		     w->call.verb == DRIVE_HEARTBEAT;
	int64_t lost = d->step <= DRIVE_DRAINING ? d->plan->lost : 0;

	w->number = history_call(d->history, str_c(w->name), &rq);
	w->sent_us = os_monotonic_ns() / 1000;
	w->deadline = d->now + d->plan->timeout_ms;
	w->busy = true;
	w->dropped = loses && lost && drive_roll(d, (uint32_t)lost) == 0;
	if (!child_send(&w->child, drive_line(d, w, line, sizeof(line))))
		drive_died(d, w);
}

static enum result drive_code(const struct worker *w, enum drive_word word)
{
	switch (word) {
	case DRIVE_NONE:
		return NO_TASKS;
	case DRIVE_REFUSED:
		return w->call.verb == DRIVE_NEXT || w->call.verb == DRIVE_CREATE ? CONFLICT
										  : LOST_LOCK;
	case DRIVE_GONE:
		return NOT_FOUND;
	case DRIVE_ERROR:
		return API_ERROR;
	default:
		return SUCCESS;
	}
}

static enum status drive_status(const struct worker *w, const struct drive_answer *got)
{
	static const enum status of[] = { READY, IN_PROGRESS, DONE };

	if (w->call.verb == DRIVE_SHOW)
		return of[got->state];
	return w->call.verb == DRIVE_CREATE ? READY
	       : w->call.verb == DRIVE_DONE ? DONE
					    : IN_PROGRESS;
}

/* The answer as the history has it: `expires_at` is the latest end of the lease, and `ttl` its least length. 0: unknown. */
static void drive_record(struct drive *d, const struct worker *w, const struct drive_answer *got)
{
	struct answer ans = { .code = drive_code(w, got->word),
			      .now = d->now,
			      .message = got->why };
	struct task t = { .version = 1, .fence = got->fence };
	struct grant g = { .fence = got->fence, .ttl = got->lease };

	if (got->word == DRIVE_ERROR)
		ans.applied = '?';
	ans.repeated = got->word == DRIVE_REPEATED;
	t.id = got->id.n ? got->id : str_c(w->call.id);
	t.status = drive_status(w, got);
	if (got->lease && !got->renews)
		g.expires_at = d->now + got->lease + 1;
	if (w->call.verb == DRIVE_NEXT)
		g.token = str_c(w->call.token);
	if (got->word == DRIVE_OK)
		ans.task = &t;
	if (ans.task && (w->call.verb == DRIVE_NEXT || w->call.verb == DRIVE_HEARTBEAT))
		ans.lock = &g;
	history_answer(d->history, w->number, &ans);
	if (w->call.verb == DRIVE_SHOW && got->word != DRIVE_ERROR)
		history_final(d->history, t.id, d->now, got->word == DRIVE_GONE ? NULL : &t);
}

static void drive_count(struct drive *d, const struct worker *w, enum drive_word word)
{
	int64_t us = os_monotonic_ns() / 1000 - w->sent_us;

	d->figures.calls++;
	d->figures.accepted += word == DRIVE_OK;
	d->figures.codes[drive_code(w, word)]++;
	if (!w->continues_at && us > d->figures.longest_us)
		d->figures.longest_us = us;
}

static void drive_heard(struct drive *d, struct worker *w, struct str line)
{
	struct drive_answer got;

	if (!drive_parse(w->call.verb, line, &got)) {
		drive_give_up(d, "the driver of %s answered `%s` with \"%.*s\"; expected %s",
			      w->name, drive_verb_name(w->call.verb),
			      (int)(line.n < 80 ? line.n : 80), str_p(line),
			      drive_expected(w->call.verb));
		return;
	}
	if (got.word == DRIVE_REFUSED && w->call.verb == DRIVE_CREATE) {
		drive_give_up(d, "the driver refused `create`: %.*s",
			      (int)(got.why.n < 300 ? got.why.n : 300), str_p(got.why));
		return;
	}
	w->busy = false;
	if (w->dropped) {
		d->figures.lost++;
		agent_unanswered(d, w);
		return;
	}
	drive_count(d, w, got.word);
	drive_record(d, w, &got);
	agent_hear(d, w, &got);
}

void drive_read(struct drive *d, struct worker *w)
{
	struct str line;

	switch (child_read(&w->child, &line)) {
	case CHILD_LINE:
		if (w->busy)
			drive_heard(d, w, line);
		else
			drive_give_up(d, "the driver of %s printed a line without a call", w->name);
		break;
	case CHILD_LONG:
		drive_give_up(
			d,
			"the driver of %s answered `%s` with more than one line, or one of more than %d bytes; expected %s",
			w->name, drive_verb_name(w->call.verb), DRIVE_LINE_MAX,
			drive_expected(w->call.verb));
		break;
	case CHILD_END:
		drive_died(d, w);
		break;
	default:
		break;
	}
}

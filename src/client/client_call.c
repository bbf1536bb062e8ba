/* One call: adds agent and token to the request, and updates the keyring after the answer. A new token is saved before it is
 * sent, and dropped only if it certainly holds no lock. So a lost answer never leaves a lock that nobody can prove. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/os.h"
#include "base/secret.h"
#include "base/when.h"
#include "client/client.h"
#include "client/queue_lock.h"
#include "core/lease.h"
#include "core/role.h"

#define TAKE_BACK(r, name) ((r)->has &= ~(UINT64_C(1) << ARG_##name), (r)->name = (struct str){ 0 })

static bool client_call_takes(const struct request *rq)
{
	if (rq->op == OP_DONE)
		return rq->claim_next || rq->take;
	if (rq->op == OP_STATUS)
		return rq->status == IN_PROGRESS;
	return op_flags(rq->op) & OP_TAKES;
}

static enum result check_token(const char *what, struct str token, struct answer *ans,
			       struct arena *a)
{
	if (token_valid(token))
		return SUCCESS;
	return answer_fail(ans, USAGE,
			   arena_printf(a, "%s is not a token: a token is a UUID", what),
			   STR("a claim prints its token; `uuidgen` makes one"));
}

/* Reads the tokens that the caller passed: --token, --next-token, or PAWL_TOKEN for the task in PAWL_TASK. */
static enum result named_tokens(struct client *c, struct request *rq, struct answer *ans)
{
	const char *task = getenv("PAWL_TASK"), *token = getenv("PAWL_TOKEN");
	bool held = op_flags(rq->op) & (OP_HELD | OP_TAKES) && !c->self.bare && !c->self.afar,
	     named = HAS(rq, token);
	enum result r = SUCCESS;

	if (HAS(rq, token)) {
		r = check_token("the value of --token", rq->token, ans, c->arena);
	} else if (held && task && token && *token && rq->id.n &&
		   str_eq_nocase(rq->id, str_c(task))) {
		r = check_token("the value of PAWL_TOKEN", str_c(token), ans, c->arena);
		GIVE(rq, token, str_c(token));
	}
	if (r == SUCCESS && HAS(rq, new_token))
		r = check_token("the value of --next-token", rq->new_token, ans, c->arena);
	/* an operator's shell may have the token of its own work, but a call with --force is not a holder's call */
	if (r == SUCCESS && HAS(rq, token) && (named || !rq->force))
		GIVE(rq, explicit, 1);
	return r;
}

/* Does another live process keep the lock whose token was found? Then we must not end it. A lock that was taken in a
 * shell has no process. */
static bool is_kept_elsewhere(struct client *c, struct str task, int64_t fence)
{
	struct request rq = { .op = OP_SHOW };
	struct answer ans = { 0 };
	const struct lock *l;

	if (!c->self.apart || !c->conn.queue)
		return false;
	GIVE(&rq, id, task);
	queue_call(c->conn.queue, &rq, &ans, c->arena);
	l = ans.task ? &ans.task->lock : NULL;
	return ans.code == SUCCESS && l && ans.task->fence == fence && l->pid &&
	       l->pid != getpid() &&
	       proc_life(l->host, l->boot_id, l->pid, l->pid_start) == PROC_ALIVE;
}

/* Adds the saved token if the caller passed none. */
static void find_proof(struct client *c, struct request *rq, struct keys *k)
{
	struct str token;
	int64_t fence;

	client_know_queue(c);
	k->saved = keyring_find(&c->keyring, rq->id, &token, &fence);
	if (!k->saved && op_flags(rq->op) & OP_OWN && client_ask_queue(c))
		k->saved = keyring_find(&c->keyring, rq->id, &token, &fence);
	if (!k->saved && op_flags(rq->op) & OP_OWN && client_in_files(c))
		k->saved = keyring_seek(&c->keyring, rq->id, &token, &fence);
	if (k->saved && is_kept_elsewhere(c, rq->id, fence))
		k->saved = false;
	if (k->saved)
		GIVE(rq, token, token);
}

enum result client_token(struct client *c, struct str task, struct str said, struct str *token,
			 struct answer *ans)
{
	struct request rq = { .op = OP_HEARTBEAT };
	struct keys k = { .pending.fd = -1 };
	enum result r;

	GIVE(&rq, id, task);
	client_know_ids(c, &rq);
	if (said.n)
		GIVE(&rq, token, said);
	r = named_tokens(c, &rq, ans);
	if (r == SUCCESS && !HAS(&rq, token))
		find_proof(c, &rq, &k);
	*token = rq.token;
	return r;
}

static enum result no_keyring(struct client *c, int r, struct answer *ans)
{
	const char *why = strerror(-r), *dir = c->keyring.dir;

	if (r == -ELOOP)
		why = "it is a link";
	else if (r == -EPERM)
		why = "it belongs to another user";
	ans->applied = 'n';
	return answer_fail(
		ans, API_ERROR,
		arena_printf(c->arena, "cannot keep the token in %s: %s",
			     dir ? dir : "a home folder", dir ? why : "there is none"),
		STR("set XDG_STATE_HOME to a folder that you own, or make a token with uuidgen and pass it with --token"));
}

/* A text that is equal for equal filters, for keyring_begin_any(); empty: the caller accepts any task. */
static struct str client_call_filter(struct client *c, const struct request *rq)
{
	if (rq->assignee.n)
		return arena_printf(c->arena, "label=%.*s\nclass=%lld\ntype=%.*s\nassignee=%.*s",
				    STRF(rq->label), (long long)rq->class_rank, STRF(rq->type),
				    STRF(rq->assignee));
	if (!rq->label.n && !rq->class_rank && !rq->type.n)
		return STR("");
	return arena_printf(c->arena, "label=%.*s\nclass=%lld\ntype=%.*s", STRF(rq->label),
			    (long long)rq->class_rank, STRF(rq->type));
}

/* Saves an acquisition's token before it is sent. If the answer is lost, the next call sends the same token. */
static enum result find_new_token(struct client *c, struct request *rq, struct keys *k,
				  struct answer *ans)
{
	int r;

	if (c->self.bare) {
		if (!HAS(rq, new_token))
			GIVE(rq, new_token, token_make(c->arena));
		return SUCCESS;
	}
	client_know_queue(c);
	if (!*c->keyring.id && !queue_locks_only(c->conn.queue))
		GIVE(rq, queue_id, token_make(c->arena));
	if (HAS(rq, new_token))
		return SUCCESS;
	if (rq->op == OP_TAKE)
		r = keyring_begin_any(&c->keyring, client_call_filter(c, rq), STR(""), &k->pending);
	else if (rq->op == OP_DONE)
		r = keyring_begin_any(&c->keyring, client_call_filter(c, rq),
				      HAS(rq, token) ? rq->token : rq->id, &k->pending);
	else
		r = keyring_begin(&c->keyring, rq->id, &k->pending);
	if (r)
		return no_keyring(c, r, ans);
	k->in_flight = true;
	GIVE(rq, new_token, k->pending.token);
	return SUCCESS;
}

static enum result client_call_complete(struct client *c, struct request *rq, struct keys *k,
					struct answer *ans)
{
	bool resume = rq->op == OP_CLAIM && HAS(rq, fence);
	enum result r = named_tokens(c, rq, ans);

	k->takes = client_call_takes(rq);
	if (r != SUCCESS)
		return r;
	if (k->takes && rq->op != OP_DONE && HAS(rq, token)) {
		if (!HAS(rq, new_token))
			GIVE(rq, new_token, rq->token);
		TAKE_BACK(rq, token);
		rq->explicit = 0;
		rq->has &= ~(UINT64_C(1) << ARG_explicit);
	}
	if (!HAS(rq, token) && !c->self.bare && rq->id.n && (resume || op_flags(rq->op) & OP_HELD))
		find_proof(c, rq, k);
	if (k->takes)
		r = find_new_token(c, rq, k, ans);
	return r;
}

/* --- after the answer ---------------------------------------------------------------------- */

static void warn_unsaved(struct client *c, struct str task, int r, struct answer *ans)
{
	struct str text = arena_printf(
		c->arena,
		"the token of %.*s could not be saved in %s (%s): pass it with "
		"--token",
		STRF(task), c->keyring.dir ? c->keyring.dir : "a home folder", strerror(-r));

	ans->warnings = arena_append(c->arena, ans->warnings, text);
}

/* Does the task still have the lock of `token`? If the store does not show the hash, any lock counts: the next call
 * finds a stale token. */
static bool still_locked(const struct task *t, struct str token, struct arena *a)
{
	if (!t || !t->lock.holder.n)
		return false;
	return !t->lock.token.n || (token.n && secret_eq(t->lock.token, token_hash(a, token)));
}

/* The call got no lock: is it certain that the token holds none? An earlier call may have sent the same token and
 * succeeded, so the failure of this call is not enough. */
static bool holds_nothing(struct client *c, const struct request *rq, const struct pending *p,
			  const struct answer *ans)
{
	if (!p->adopted)
		return ans->code != API_ERROR || ans->applied == 'n';
	switch (rq->op) {
	case OP_TAKE:
		return ans->code == NO_TASKS;
	case OP_DONE:
		return ans->code == SUCCESS;
	default:
		return ans->code == NOT_FOUND ||
		       (ans->task && !still_locked(ans->task, p->token, c->arena));
	}
}

/* A lock whose token is saved, and also still pending. */
struct granted {
	struct arena arena;
	struct pending pending;
};

static void client_call_postpone(struct client *c, const struct keys *k)
{
	struct granted *g = mem_alloc(sizeof(*g));

	*g = (struct granted){ .pending = k->pending };
	g->pending.path = arena_cstr(&g->arena, str_c(k->pending.path));
	if (c->granted)
		client_delivered(c->granted, true);
	c->granted = g;
}

void client_delivered(struct granted *g, bool arrived)
{
	if (arrived)
		keyring_drop(NULL, &g->pending); /* the saved token is enough for this call */
	else
		keyring_leave(NULL, &g->pending);
	arena_free(&g->arena);
	free(g);
}

static void settle_taken(struct client *c, const struct request *rq, struct keys *k,
			 struct answer *ans)
{
	const struct task *task = rq->op == OP_DONE ? ans->next : ans->task;
	const struct grant *lock = rq->op == OP_DONE ? ans->next_lock : ans->lock;
	int r;

	if (ans->code == SUCCESS && ans->queue_id.n) {
		client_learn_queue(c, ans->queue_id);
		keyring_sweep(&c->keyring); /* the queue is new, perhaps where an old one was */
	}
	/* A lock without a token comes from an earlier call with this request id, whose token is
	 * saved already. */
	if (ans->code != SUCCESS || !task || !lock || !lock->token.n) {
		if (k->in_flight && holds_nothing(c, rq, &k->pending, ans))
			keyring_drop(&c->keyring, &k->pending);
		else if (k->in_flight)
			keyring_leave(&c->keyring, &k->pending);
		return;
	}
	if (k->in_flight && str_eq(lock->token, k->pending.token) && !c->self.afar) {
		r = keyring_keep(&c->keyring, &k->pending, task->id, lock->fence);
	} else {
		if (k->in_flight && str_eq(lock->token, k->pending.token))
			client_call_postpone(c, k);
		else if (k->in_flight)
			keyring_drop(&c->keyring, &k->pending);
		r = keyring_save(&c->keyring, task->id, lock->token, lock->fence);
	}
	if (r)
		warn_unsaved(c, task->id, r, ans);
}

static bool ends_lock(const struct request *rq, const struct keys *k)
{
	if (rq->op == OP_STATUS)
		return !k->takes;
	return op_flags(rq->op) & OP_ENDS || rq->op == OP_LOCK_BREAK;
}

/* The fence of the last lock that has certainly ended. A repeated answer may be old, and the task may have been claimed
 * again since. */
static int64_t last_over(const struct request *rq, const struct answer *ans)
{
	const struct task *t = ans->task;
	bool live = t->lock.holder.n && (!t->lock.expires_at || ans->now < t->lock.expires_at);

	/* a removed task is shown with its old lock */
	return live && (rq->op != OP_REMOVE || ans->repeated) ? t->fence - 1 : t->fence;
}

/* Removes the saved token when its lock has ended, but not the token of a later claim. */
static void settle_ended(struct client *c, const struct request *rq, const struct keys *k,
			 const struct answer *ans)
{
	/* A wrong --resume does not end the current lock, so its token stays. */
	if (ans->code == LOST_LOCK && k->saved &&
	    !(k->takes && still_locked(ans->task, rq->token, c->arena)))
		keyring_forget_token(&c->keyring, rq->id, rq->token);
	if (ans->code == SUCCESS && ans->task && ends_lock(rq, k))
		keyring_forget(&c->keyring, rq->id, last_over(rq, ans));
}

/* A claim never uses a saved token, since sub-agents can share it. Instead, the caller learns that its own run holds the
 * task. */
static void tell_holder(struct client *c, const struct request *rq, struct answer *ans)
{
	const struct task *t = ans->task;
	struct str token;
	int64_t fence;

	if (rq->op != OP_CLAIM || ans->code != CONFLICT || !t || !lease_live(&t->lock, ans->now) ||
	    !keyring_find(&c->keyring, t->id, &token, &fence) || fence != t->fence)
		return;
	ans->message = arena_printf(c->arena, "%s %.*s (fence %lld)",
				    c->self.run.n ? "this session holds" : "you already hold",
				    STRF(t->id), (long long)t->fence);
	ans->hint = arena_printf(
		c->arena,
		"if you did not claim it, take another task: pawl next --claim; pawl lock status %.*s "
		"shows this lock",
		STRF(t->id));
}

/* A read does not tell the queue who the reader is. The caller holds a task if its keyring has the lock's token. */
static void choose_can(struct client *c, struct answer *ans)
{
	const struct task *tasks = ans->n_tasks ? ans->tasks : ans->task;
	struct str token;
	int64_t fence;
	bool known = false;

	for (size_t i = 0; i < ans->n_allowed; i++) {
		struct allowed *w = &ans->allowed[i];

		if (w->can == w->holder_can || !str_eq(tasks[i].lock.holder, c->self.agent))
			continue;
		if (!known)
			client_know_queue(c);
		known = true;
		if (keyring_find(&c->keyring, tasks[i].id, &token, &fence) &&
		    fence == tasks[i].fence)
			w->can = w->holder_can;
	}
}

static void client_call_settle(struct client *c, const struct request *rq, struct keys *k,
			       struct answer *ans)
{
	if (c->self.bare)
		return;
	/* Save the new token first: if we are killed in between, a stale token does no harm. */
	if (k->takes)
		settle_taken(c, rq, k, ans);
	if (rq->id.n)
		settle_ended(c, rq, k, ans);
	tell_holder(c, rq, ans);
	choose_can(c, ans);
}

/* People may write 109 for t109. */
static void number_ids(struct client *c, struct request *rq)
{
	rq->id = id_numbered(c->arena, rq->id);
	rq->parent = id_numbered(c->arena, rq->parent);
	rq->depends = arena_strs(c->arena, rq->depends);
	for (size_t i = 0; i < rq->depends.n; i++)
		rq->depends.v[i] = id_numbered(c->arena, rq->depends.v[i]);
}

static bool is_number(struct str id)
{
	for (size_t i = 0; i < id.n; i++)
		if (id.p[i] < '0' || id.p[i] > '9')
			return false;
	return id.n > 0;
}

/* SUCCESS, NOT_FOUND, or another code, which does not tell whether the task exists. */
static enum result find_name(struct client *c, struct str id)
{
	struct request rq = { .op = OP_SHOW };
	struct answer ans = { 0 };

	GIVE(&rq, id, id);
	queue_call(c->conn.queue, &rq, &ans, c->arena);
	return ans.code;
}

/* The text 2 stands for t2 if there is a task t2 and no task 2. */
static struct str known_id(struct client *c, struct str id)
{
	struct str full;

	if (!is_number(id))
		return id;
	full = id_numbered(c->arena, id);
	return find_name(c, id) == NOT_FOUND && find_name(c, full) == SUCCESS ? full : id;
}

void client_know_ids(struct client *c, struct request *rq)
{
	size_t numbers = 0;

	if (!c->conn.queue)
		return;
	if (queue_locks_only(c->conn.queue)) {
		number_ids(c, rq);
		return;
	}
	if (rq->op != OP_CREATE) /* a new id stays as it is written */
		rq->id = known_id(c, rq->id);
	rq->parent = known_id(c, rq->parent);
	for (size_t i = 0; i < rq->depends.n; i++)
		numbers += is_number(rq->depends.v[i]);
	if (numbers)
		rq->depends = arena_strs(c->arena, rq->depends);
	for (size_t i = 0; numbers && i < rq->depends.n; i++)
		rq->depends.v[i] = known_id(c, rq->depends.v[i]);
}

static struct str mode_of(const struct client *c)
{
	switch (c->said.face) {
	case CLIENT_COMMAND:
		return STR("cli");
	case CLIENT_PROMPT:
		return STR("interactive");
	default:
		return STR("server");
	}
}

static struct request signed_by(struct client *c, const struct request *rq)
{
	struct request full = *rq;

	full.role = c->self.role;
	client_know_ids(c, &full);

	if (!HAS(rq, agent))
		GIVE(&full, agent, c->self.agent);
	if (!HAS(rq, run) && c->self.run.n)
		GIVE(&full, run, c->self.run);
	if (!HAS(rq, host))
		GIVE(&full, host, c->self.host);
	if (op_flags(rq->op) & OP_TAKES)
		GIVE(&full, mode, mode_of(c));
	client_sign(c, &full);
	return full;
}

size_t client_call_all(struct client *c, const struct request *rqs, const size_t *under,
		       struct answer *answers, size_t n)
{
	struct request *full = arena_array(c->arena, struct request, n);
	struct keys *keys = arena_array(c->arena, struct keys, n);
	size_t failed;

	c->keyring.arena = c->arena;
	c->made += n;
	client_watch(c);
	answers[0] = (struct answer){ 0 };
	if (client_open(c, STORE_WRITE, &answers[0]) != SUCCESS)
		return 0;
	for (size_t i = 0; i < n; i++) {
		full[i] = signed_by(c, &rqs[i]);
		keys[i].pending.fd = -1;
		answers[i] = (struct answer){ 0 };
		if (client_call_complete(c, &full[i], &keys[i], &answers[i]) != SUCCESS)
			return i;
	}
	queue_patience(c->conn.queue, client_timeout(c, OP_BATCH));
	failed = queue_call_all(c->conn.queue, full, under, answers, n, c->arena);
	c->changed |= failed == n;
	for (size_t i = 0; failed == n && i < n; i++)
		client_call_settle(c, &full[i], &keys[i], &answers[i]);
	return failed;
}

#define TIDY_MS 60000

/* Has a process of this user cleaned up within TIDY_MS? If not, records that we do it now. */
static bool is_tidy(struct client *c)
{
	int64_t now = os_wall_ms(), last;
	struct str text;
	char *path;

	if (keyring_folder(&c->keyring))
		return true;
	path = fs_join(c->arena, str_c(c->keyring.dir),
		       arena_printf(c->arena, "%s.tidy",
				    arena_cstr(c->arena, hash_hex(c->arena, c->keyring.queue))));
	if (fs_read(c->arena, path, 64, &text) == 0 && str_to_i64(str_trim(text), &last) &&
	    last <= now && now - last < TIDY_MS)
		return true;
	return fs_write_atomic(path, arena_printf(c->arena, "%lld\n", (long long)now), 0600) != 0;
}

/* In a store that keeps only locks, other programs leave the locks of ended tasks. Cleans them up before a claim. */
static void client_call_tidy(struct client *c)
{
	struct request rq = { .op = OP_LOCK_CLEANUP };
	struct answer ignored = { 0 };

	if (c->conn.config.opt.cached || !queue_locks_only(c->conn.queue) || is_tidy(c) ||
	    client_open(c, STORE_WRITE, &ignored) != SUCCESS)
		return;
	GIVE(&rq, older_than, WHEN_MAX);
	rq = signed_by(c, &rq);
	rq.role = ROLE_NONE; /* the caller did not ask for it */
	queue_patience(c->conn.queue, client_timeout(c, 0));
	queue_call(c->conn.queue, &rq, &ignored, c->arena);
}

/* The flags that select the timeout. */
static unsigned kind_of(const struct request *rq)
{
	return op_flags(rq->op) | (rq->part_of == TYPED_BATCH ? OP_BATCH : 0);
}

enum result client_begin(struct client *c, const struct request *rq, struct call_state *call)
{
	enum store_mode mode = op_flags(rq->op) & OP_READS ? STORE_READ : STORE_WRITE;
	struct answer *ans = &call->ans;

	*call = (struct call_state){ .keys.pending.fd = -1 };
	c->keyring.arena = c->arena;
	c->made++;
	/* before the queue is opened: a server that only reads must not open it for writing */
	if (role_refuse(c->self.role, role_for(rq), ans, c->arena) != SUCCESS)
		return ans->code;
	if (mode == STORE_WRITE && rq->op != OP_HEARTBEAT && rq->op != OP_LOCK_CLEANUP)
		client_watch(c);
	if (client_open(c, mode, ans) != SUCCESS)
		return ans->code;
	if (rq->op == OP_TAKE || rq->op == OP_CLAIM || rq->op == OP_NEXT)
		client_call_tidy(c);
	call->rq = signed_by(c, rq);
	if (client_call_complete(c, &call->rq, &call->keys, ans) != SUCCESS)
		return ans->code;
	queue_patience(c->conn.queue, client_timeout(c, kind_of(rq)));
	call->held_ms = given_back_except(&c->given_back, c->conn.queue, &call->rq, true, c->arena);
	return SUCCESS;
}

void client_end(struct client *c, struct call_state *call)
{
	struct answer *ans = &call->ans;

	if (ans->code == NO_TASKS && call->held_ms &&
	    (!ans->wait_ms || call->held_ms < ans->wait_ms))
		ans->wait_ms = call->held_ms;
	c->changed |= !(op_flags(call->rq.op) & OP_READS) && ans->code == SUCCESS;
	client_call_settle(c, &call->rq, &call->keys, ans);
	given_back_note(&c->given_back, c->conn.queue, &call->rq, ans);
}

void client_call(struct client *c, const struct request *rq, struct answer *ans)
{
	struct call_state call;

	if (client_begin(c, rq, &call) == SUCCESS) {
		queue_call(c->conn.queue, &call.rq, &call.ans, c->arena);
		client_end(c, &call);
	}
	*ans = call.ans;
}

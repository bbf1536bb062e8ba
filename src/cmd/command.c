/*
 * Finds commands and runs them. Each face uses command_run(), or command_ask() and command_tell()
 * around a call that it makes itself. Both ways end in command_finish(), which redacts the answer.
 */
#include "base/os.h"
#include "base/text.h"
#include "base/when.h"
#include "client/redact.h"
#include "cmd/command.h"
#include "cmd/reply.h"
#include "core/role.h"
#include "format/answer_form.h"

static size_t word_length(const char *name)
{
	return strcspn(name, " ");
}

struct str command_word(const struct command *c)
{
	return str_n(c->name, word_length(c->name));
}

static bool has_second(const struct command *c)
{
	return c->name[word_length(c->name)] != '\0';
}

const struct command *command_find_in(const struct command *const *table, const char *const *words,
				      size_t n, size_t *used)
{
	for (size_t i = 0; n && table[i]; i++) {
		const struct command *c = table[i];
		size_t first = word_length(c->name);

		if (!str_is(command_word(c), words[0]))
			continue;
		if (!has_second(c)) {
			*used = 1;
			return c;
		}
		if (n > 1 && !strcmp(c->name + first + 1, words[1])) {
			*used = 2;
			return c;
		}
	}
	return NULL;
}

const struct command *command_find(const char *const *words, size_t n, size_t *used)
{
	return command_find_in(commands, words, n, used);
}

bool command_prefix_in(const struct command *const *table, const char *word)
{
	for (size_t i = 0; table[i]; i++)
		if (has_second(table[i]) && str_is(command_word(table[i]), word))
			return true;
	return false;
}

bool command_prefix(const char *word)
{
	return command_prefix_in(commands, word);
}

struct args *args_new(const struct command *c, struct arena *a)
{
	struct args *args = arena_alloc(a, c->args_size ? c->args_size : sizeof(*args));

	args->rq.op = c->op;
	return args;
}

const struct param *command_missing(const struct command *c, const struct args *a)
{
	for (const struct param *p = c->params; p && p->name; p++) {
		bool given = a->seen >> (p - c->params) & 1;

		if (p->arg)
			given = a->rq.has >> (p->arg - 1) & 1;
		if (p->flags & P_REQUIRED && !given)
			return p;
	}
	return NULL;
}

#define NAMES_MAX 128

/* Maps a word that other task programs use to pawl's command. */
static const char *command_synonym(const char *word)
{
	static const struct {
		const char *word, *command;
	} words[] = {
		{ "add", "create" },
		{ "new", "create" },
		{ "delete", "remove" },
		{ "rm", "remove" },
		{ "revert", "undo" },
		{ "start", "claim" },
		{ "take", "claim" },
		{ "pick", "next --claim" },
		{ "ready", "next" },
		{ "finish", "done" },
		{ "complete", "done" },
		{ "close", "done" },
		{ "resolve", "done" },
		{ "drop", "release" },
		{ "unclaim", "release" },
		{ "renew", "heartbeat" },
		{ "accept", "approve" },
		{ "reject", "rework" },
		{ "ls", "list" },
		{ "tasks", "list" },
		{ "view", "show" },
		{ "get", "show" },
		{ "cat", "show" },
		{ "info", "show" },
		{ "search", "find" },
		{ "grep", "find" },
		{ "history", "log" },
		{ "events", "log" },
		{ "move", "status ID STATUS" },
		{ "mv", "status ID STATUS" },
		{ "edit", "update" },
		{ "modify", "update" },
		{ "assign", "update ID --assignee NAME" },
		{ "note", "comment" },
		{ "unlock", "lock release" },
		{ "who", "whoami" },
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (!strcmp(words[i].word, word))
			return words[i].command;
	return NULL;
}

/* Does the command destroy something that no second call restores? update does not: it only
 * replaces values. */
static bool is_destructive(const struct command *c)
{
	return c->flags & C_DESTRUCTIVE && !str_ends(str_c(c->name), STR("update"));
}

static bool leads_to_loss(const char *prefix, const char *name)
{
	const char *words[] = { prefix ? prefix : name, name };
	size_t used;
	const struct command *c = command_find(words, prefix ? 2 : 1, &used);

	return c && is_destructive(c);
}

const char *command_nearest(const char *prefix, const char *word, struct arena *a)
{
	const char *names[NAMES_MAX], *near;
	size_t n = 0;

	if (!prefix && command_synonym(word))
		return command_synonym(word);
	for (size_t i = 0; commands[i] && n < NAMES_MAX; i++) {
		const struct command *c = commands[i];

		if (c->flags & C_HIDDEN)
			continue;
		if (!prefix)
			names[n++] = arena_cstr(a, command_word(c));
		else if (has_second(c) && str_is(command_word(c), prefix))
			names[n++] = c->name + word_length(c->name) + 1;
	}
	near = text_nearest(str_c(word), names, n);
	/* A typing error and a suggestion must not lead to a deletion. */
	return near && leads_to_loss(prefix, near) ? NULL : near;
}

/* A warning also reaches holders that do not read the JSON. */
static void warn_changed(struct session *s, struct reply *out)
{
	const struct notice *n = out->ans.changed;
	struct str fields = STR("");

	for (size_t i = 0; i < n->fields.n; i++)
		fields = arena_printf(s->arena, "%.*s%s%.*s", STRF(fields), i ? ", " : "",
				      STRF(n->fields.v[i]));
	reply_warn(out,
		   arena_printf(s->arena, "%.*s changed %.*s while you held it: %.*s", STRF(n->by),
				STRF(fields), STRF(n->reason)),
		   s->arena);
}

/* cached_begin() and cached_end() enclose a call with --cached. The reply then says how old the
 * state is. */
static void cached_begin(struct session *s, const struct args *a)
{
	if (!a->cached)
		return;
	client_close(&s->client);
	s->client.conn.config.opt.cached = true;
}

static void cached_end(struct session *s, const struct args *a, struct reply *out)
{
	int64_t at = a->cached && s->client.conn.queue ? queue_as_of(s->client.conn.queue) : 0;
	int64_t age = os_wall_ms() - at;
	json_t *o;

	if (!a->cached)
		return;
	client_close(&s->client);
	s->client.conn.config.opt.cached = false;
	if (!at)
		return;
	age = age > 0 ? age : 0;
	o = reply_more(out);
	json_object_set_new(o, "as_of", json_string(when_text(s->client.arena, at).p));
	json_object_set_new(o, "cached_age_ms", json_integer(age));
	if (s->note)
		s->note(s, arena_printf(s->client.arena,
					"as of %s ago; without --cached pawl asks the server",
					arena_cstr(s->client.arena,
						   duration_text(s->client.arena, age))));
}

/* Adds the parts that every reply has. */
static enum result command_finish(struct session *s, enum result code, struct reply *out)
{
	if (code == SUCCESS && out->ans.changed)
		warn_changed(s, out);
	redact_answer(&s->client, s->client.self.role, &out->ans, s->arena);
	return code;
}

bool command_is_call(const struct command *c, const struct session *s, const struct args *a)
{
	return !c->run || (c->runs && !c->runs(s, a));
}

static enum result command_tell_answer(const struct command *c, struct session *s,
				       const struct args *a, const struct answer *ans,
				       struct reply *out)
{
	out->ans = *ans;
	cached_end(s, a, out);
	if (c->tell)
		c->tell(s, a, out);
	return command_finish(s, out->ans.code, out);
}

enum result command_ask(const struct command *c, struct session *s, struct args *a,
			struct call_state *call, struct reply *out)
{
	enum result code = c->ask ? c->ask(s, a, out) : SUCCESS;

	if (code != SUCCESS)
		return command_finish(s, code, out);
	cached_begin(s, a);
	s->client.conn.config.opt.write_status |= a->write_status;
	if (client_begin(&s->client, &a->rq, call) == SUCCESS)
		return SUCCESS;
	return command_tell_answer(c, s, a, &call->ans, out);
}

enum result command_tell(const struct command *c, struct session *s, const struct args *a,
			 struct call_state *call, struct reply *out)
{
	client_end(&s->client, call);
	return command_tell_answer(c, s, a, &call->ans, out);
}

enum result command_run(const struct command *c, struct session *s, struct args *a,
			struct reply *out)
{
	struct attempts wait;
	struct call_state call;
	enum result code;

	if (!command_is_call(c, s, a))
		return command_finish(s, c->run(s, a, out), out);
	attempts_begin(&wait, a->wait);
	code = command_ask(c, s, a, &call, out);
	if (code != SUCCESS)
		return code;
	queue_call(s->client.conn.queue, &call.rq, &call.ans, s->client.arena);
	if (call.ans.code != NO_TASKS || !a->wait)
		return command_tell(c, s, a, &call, out);
	client_end(&s->client, &call);
	wait_for_task(s, &a->rq, &wait, &call.ans);
	return command_tell_answer(c, s, a, &call.ans, out);
}

json_t *command_json(const struct command *c, const struct reply *r, struct arena *a)
{
	return c && c->json ? c->json(r, a) : reply_json(r, a);
}

void command_show(const struct command *c, const struct reply *r, struct view *v)
{
	if (c && c->show)
		c->show(r, v);
	else
		show_task(r, v);
}

enum result run_answer(const struct answer *ans, struct reply *out)
{
	*out = (struct reply){ .ans = *ans };
	return ans->code;
}

enum result run_fail(enum result code, struct str message, struct str hint, struct reply *out)
{
	*out = (struct reply){ 0 };
	return answer_fail(&out->ans, code, message, hint);
}

enum result run_op(struct session *s, struct args *a, struct reply *out)
{
	client_call(&s->client, &a->rq, &out->ans);
	return out->ans.code;
}

/* --- reply ------------------------------------------------------------------------------------ */

/*
 * reply_json() adds the warnings of the command after those of the answer; neither replaces the
 * other.
 */

bool reply_ok(const struct reply *r)
{
	return r->ans.code == SUCCESS || r->ans.code == NO_TASKS || r->ans.code == LOCK_FREE;
}

void reply_warn(struct reply *r, struct str text, struct arena *a)
{
	r->warnings = arena_append(a, r->warnings, text);
}

json_t *reply_more(struct reply *r)
{
	if (!r->more)
		r->more = json_object();
	return r->more;
}

json_t *reply_json(const struct reply *r, struct arena *a)
{
	json_t *o = answer_json(&r->ans, a), *list;

	json_object_update(o, r->more);
	if (!r->warnings.n)
		return o;
	list = json_object_get(o, "warnings");
	if (!list) {
		list = json_array();
		json_object_set_new(o, "warnings", list);
	}
	for (size_t i = 0; i < r->warnings.n; i++)
		json_array_append_new(list, json_str(r->warnings.v[i]));
	return o;
}

void reply_free(struct reply *r)
{
	json_decref(r->more);
	r->more = NULL;
}

/* --- global ----------------------------------------------------------------------------------- */

/*
 * The options that every command has. token, request_id and if_version are part of the request
 * (PARAM); the others are for the face and the client (struct global_args).
 */

const struct param global_params[] = {
	LOCAL(global, store, "store", P_TEXT, .flags = P_FILLED, .value = "URI",
	      .help = "store of the queue, e.g. sqlite:PATH"),
	LOCAL(global, queue, "queue", P_NAME, .help = "name of the queue in the store"),
	LOCAL(global, agent, "agent", P_NAME, .letter = 'a', .help = "name of the calling agent",
	      .def = "as `pawl whoami` shows"),
	LOCAL(global, run, "run", P_NAME, .help = "run (session) of the agent"),
	PARAM(token, "token", P_TOKEN, .help = "token of a lock, or the token for a new claim"),
	PARAM(request_id, "request-id", P_NAME, .value = "ID",
	      .help = "a repeated call with the same id gets the first answer again"),
	PARAM(if_version, "if-version", P_INT, .min = 1,
	      .help = "change the task only if it has this version (else 20)",
	      .model = "only if the task has this version (show full=true); else CONFLICT"),
	LOCAL(global, timeout, "timeout", P_NAME, .value = "DURATION",
	      .def = "5s to 60s, by kind of change",
	      .help = "wait up to DURATION for other writers"),
	LOCAL(global, json, "json", P_FLAG, .letter = 'j',
	      .help = "print one JSON object on standard output"),
	LOCAL(global, porcelain, "porcelain", P_FLAG, .help = "print lines for shell scripts"),
	LOCAL(global, format, "format", P_CHOICE, .choices = "text json porcelain",
	      .value = "FORMAT", .help = "format of the output: text, json or porcelain"),
	LOCAL(global, quiet, "quiet", P_FLAG, .letter = 'q',
	      .help = "print only ids, without notes and warnings"),
	LOCAL(global, color, "color", P_CHOICE, .choices = "auto always never", .value = "WHEN",
	      .def = "auto", .help = "colours in the output: auto, always or never"),
	LOCAL(global, no_color, "no-color", P_FLAG, .help = "same as --color never"),
	LOCAL(global, dir, "dir", P_TEXT, .letter = 'C', .flags = P_FILLED, .value = "DIR",
	      .help = "run as if started in that folder"),
	LOCAL(global, help, "help", P_FLAG, .letter = 'h', .help = "show help"),
	LOCAL(global, version, "version", P_FLAG, .help = "show the version"),
	{ 0 }
};

/* --- table ------------------------------------------------------------------------------------ */

/*
 * The table of all commands, from commands.def. core/op.def has the role that a command needs over
 * the network; a command with several operations has a line of its own there (SEVERAL).
 */

const struct command *const commands[] = {
#define COMMAND(name, local) &cmd_##name,
#include "cmd/commands.def"
	NULL
};

enum role command_role(const struct command *c)
{
	static const struct {
		const struct command *command;
		enum role role;
	} several[] = {
#define SEVERAL(command, role) { &cmd_##command, ROLE_##role },
#include "core/op.def"
	};

	for (size_t i = 0; i < sizeof(several) / sizeof(*several); i++)
		if (several[i].command == c)
			return several[i].role;
	return role_for_op(c->op);
}

const char *command_local(const struct command *c)
{
	static const char *const local[] = {
#define COMMAND(name, local) local,
#include "cmd/commands.def"
	};
	size_t i = 0;

	while (commands[i] != c)
		i++;
	return local[i];
}

const struct command_group command_groups[] = { { "plan", "plan the work" },
						{ "work", "do the work" },
						{ "review", "review, decide and unblock" },
						{ "look", "look at the queue" },
						{ "data", "import, export and back up tasks" },
						{ "locks", "manage locks" },
						{ "setup", "set up, check and learn" },
						{ 0 } };

const char *command_family(const char *word)
{
	static const char *const families[][2] = {
		{ "lock", "manage locks; the status of the task stays" },
		{ "emergency", "make the queue read-only in an emergency" },
		{ "config", "show and change settings" },
		{ "id", "ids from the queue's counter" },
		{ "token", "tokens of callers over the network" },
		{ "batch", "change many tasks in one commit" },
	};

	for (size_t i = 0; i < sizeof(families) / sizeof(*families); i++)
		if (!strcmp(families[i][0], word))
			return families[i][1];
	return "several commands";
}

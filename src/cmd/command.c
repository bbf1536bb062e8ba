#include "cmd/command.h"

#include "base/os.h"
#include "base/text.h"
#include "base/when.h"
#include "client/redact.h"
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

/* Maps a word of other task programs to the command of pawl. */
static const char *command_synonym(const char *word)
{
	static const struct {
		const char *word, *command;
	} words[] = {
		{ "add", "create" },
		{ "new", "create" },
		{ "delete", "remove" },
		{ "rm", "remove" },
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

/* A command whose loss no second call makes good; update only replaces values. */
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
	/* Nobody should delete because of a slip of the finger and a suggestion. */
	return near && leads_to_loss(prefix, near) ? NULL : near;
}

/* A holder who does not read the JSON learns it, too. */
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

/* Call these around a call with --cached: the reply then says how old the state is. */
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

/* Adds the parts of a reply that every command has. */
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

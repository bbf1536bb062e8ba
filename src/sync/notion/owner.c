/* The queue that a database belongs to. */
#include "base/secret.h"
#include "sync/notion/notion.h"

#define MARK "pawl queue "
#define DIGITS 16

/* The digits after the mark in a text that people can edit; empty: there is no mark. */
static struct str mark_in(struct str text)
{
	size_t n = strlen(MARK);

	for (size_t i = 0; i + n + DIGITS <= text.n; i++)
		if (!memcmp(text.p + i, MARK, n) &&
		    strspn(text.p + i + n, "0123456789abcdef") >= DIGITS)
			return str_n(text.p + i + n, DIGITS);
	return STR("");
}

/* The id of a queue stays secret. */
static struct str mark_of(const struct notion *n)
{
	return arena_printf(
		n->arena, "%.*s", DIGITS,
		hash_hex(n->arena, arena_printf(n->arena, "notion owner\n%.*s", STRF(n->identity)))
			.p);
}

static enum result notion_owner_decide(struct notion *n)
{
	if (!n->owner.n || (n->identity.n && str_eq(n->owner, mark_of(n))))
		return SUCCESS;
	return notion_fail(
		n, MISCONFIGURED,
		arena_printf(n->arena, "this database belongs to another queue (" MARK "%.*s)",
			     STRF(n->owner)),
		arena_printf(
			n->arena,
			"sync each queue with a database of its own; to let this queue take over, delete the "
			"description of the property '%s' in Notion",
			n->names[F_ID]));
}

/* Reads the id of the queue. It may have none yet, but a store that fails must not look like another queue. */
static enum result know_queue(struct notion *n)
{
	struct client *c = n->job->client;
	struct request rq = { .op = OP_LOCK_STATUS };
	struct answer ans;

	if (n->identity.n || queue_identity(c->conn.queue, &n->identity, n->arena) || !n->owner.n)
		return SUCCESS;
	GIVE(&rq, id, STR("@sync"));
	if (client_call_in(c, &rq, &ans, n->arena) == API_ERROR)
		return notion_fail(n, API_ERROR, ans.message, ans.hint);
	(void)queue_identity(c->conn.queue, &n->identity, n->arena);
	return SUCCESS;
}

enum result notion_owner_read(struct notion *n, const json_t *properties)
{
	const json_t *text = json_object_get(json_object_get(properties, n->names[F_ID]),
					     "description");
	enum result code;

	n->owner_text = arena_str(n->arena,
				  str_n(json_string_value(text), json_string_length(text)));
	n->owner = mark_in(n->owner_text);
	code = know_queue(n);
	return code == SUCCESS ? notion_owner_decide(n) : code;
}

static const char *target_of(const struct notion *n)
{
	return arena_printf(n->arena, "/v1/data_sources/%.*s", STRF(n->source)).p;
}

static enum result put_mark(struct notion *n)
{
	struct str text = arena_printf(
		n->arena,
		"%.*s%s" MARK
		"%s keeps these pages. Delete this line to let another queue take over.",
		STRF(n->owner_text), n->owner_text.n ? " " : "", arena_cstr(n->arena, mark_of(n)));
	json_t *body = json_pack("{s:{s:{s:{}, s:s%}}}", "properties", n->names[F_ID], "rich_text",
				 "description", text.p, text.n);

	return notion_ask(n, "PATCH", target_of(n), body, false, NULL);
}

enum result notion_still_own(struct notion *n)
{
	json_t *o = NULL;
	enum result code = notion_ask(n, "GET", target_of(n), NULL, false, &o);

	if (code != SUCCESS)
		return code;
	code = notion_owner_read(n, json_object_get(o, "properties"));
	json_decref(o);
	return code;
}

enum result notion_own(struct notion *n)
{
	enum result code = notion_owner_decide(n);

	if (code != SUCCESS || n->owner.n || n->job->check || !n->identity.n)
		return code;
	/* two queues may begin at the same time: the last mark counts, so this must not replace one */
	code = notion_still_own(n);
	if (code != SUCCESS || n->owner.n)
		return code;
	n->marked = true;
	code = put_mark(n);
	return code == SUCCESS ? notion_still_own(n) : code;
}

enum result notion_owned(struct notion *n)
{
	return n->marked ? notion_still_own(n) : SUCCESS;
}

/* The prompt `work`: the loop in a few words. */
#include "face/mcp/mcp.h"

#define ABOUT "How to take a task from the queue, do it and finish it"

void prompts_list(struct mcp_call *c)
{
	mcp_reply_kept(c,
		       json_pack("{s:[{s:s, s:s, s:s}]}", "prompts", "name", "work", "title",
				 "Work through the queue", "description", ABOUT),
		       FOR_HOURS);
}

void prompts_get(struct mcp_call *c)
{
	if (!str_is(json_get(c->params, "name"), "work")) {
		mcp_fail(c, RPC_PARAMS, STR("this prompt does not exist; the only one is: work"),
			 NULL);
		return;
	}
	mcp_reply(c, json_pack("{s:s, s:[{s:s, s:{s:s, s:s}}]}", "description", ABOUT, "messages",
			       "role", "user", "content", "type", "text", "text",
			       c->m->profile->work));
}

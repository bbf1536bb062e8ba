#include "cmd/command.h"

static void show(const json_t *o, struct view *v)
{
	view_data(v, PLAIN, view_get(o, "id"));
	view_text(v, PLAIN, "\n");
}

const struct command cmd_id_claim = {
	.name = "id claim",
	.group = "plan",
	.summary = "an id of one's own, for scripts that name their own files",
	.detail =
		"Takes the next id from the store's counter: nobody else gets the same one, and `pawl create --id` "
		"can use it later.",
	.example = "id=$(pawl id claim)",
	.see = "id peek, create",
	.gives = "id",
	.flags = C_WRITE,
	.op = OP_ID_CLAIM,
	.show = show,
};

const struct command cmd_id_peek = {
	.name = "id peek",
	.group = "plan",
	.summary = "the id that would come next",
	.detail = "Takes nothing: somebody else may get it first.",
	.example = "pawl id peek",
	.see = "id claim",
	.gives = "id",
	.flags = C_IDEMPOTENT,
	.op = OP_ID_PEEK,
	.show = show,
};

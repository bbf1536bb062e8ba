/* Applies each client's server entry in memory to find its state, and writes nothing. */
#include "cmd/setup.h"

static const struct piece *server_of(const struct setup_client *c)
{
	const struct piece *p = setup_pieces;

	while (strcmp(p->client, c->name) || !p->server)
		p++;
	return p;
}

/* "yes", "no", "other" (an entry that setup did not write) or "unreadable". NULL: the client has no
 * file there. */
static const char *setup_list_state(const struct setup_client *c, bool user, struct session *s)
{
	const struct piece *p = server_of(c);
	struct arena *a = s->arena;
	const char *root = user ? setup_client_home(c, a) : s->client.conn.place.worktree, *name;
	struct file_change f;
	struct answer ans = { 0 };

	name = root ? piece_file(p, user, root, a) : NULL;
	if (!name)
		return NULL;
	if (file_change_load(&f, root, name, &ans, a) != SUCCESS)
		return "unreadable";
	if (!f.existed)
		return "no";
	if (p->kind == PIECE_JSON && json_text_fault(f.before, a))
		return "unreadable";
	switch (piece_add(p, &f, (struct setup_as){ 0 }, a)) {
	case TEXT_SAME:
		return "yes";
	case TEXT_OTHER:
		return "other";
	case TEXT_UNFIT:
		return "unreadable";
	default:
		return "no";
	}
}

json_t *setup_list(struct session *s)
{
	json_t *list = json_array();

	for (const struct setup_client *c = setup_clients; c->name; c++) {
		const char *found = setup_client_installed(c, s->arena);
		json_t *o = json_pack("{s:s, s:b}", "client", c->name, "installed", found != NULL);

		if (found)
			json_object_set_new(o, "found", json_str(str_c(found)));
		json_object_set_new(o, "project", json_str(str_c(setup_list_state(c, false, s))));
		if (setup_list_state(c, true, s))
			json_object_set_new(o, "user",
					    json_str(str_c(setup_list_state(c, true, s))));
		json_array_append_new(list, o);
	}
	return list;
}

void setup_list_show(const json_t *clients, struct view *v)
{
	static const char *const heads[] = { "CLIENT", "PROJECT", "USER", "INSTALLED" };
	size_t n = json_array_size(clients), i;
	struct cell *cells = arena_array(v->arena, struct cell, n * 4);
	const json_t *o;

	json_array_foreach(clients, i, o) {
		struct str found = json_get(o, "found"), user = json_get(o, "user");
		struct cell *row = cells + i * 4;

		row[0] = view_cell(v, BOLD, json_get(o, "client"));
		row[1] = view_cell(v, PLAIN, json_get(o, "project"));
		row[2] = view_cell(v, PLAIN, user.n ? user : STR("-"));
		row[3] = found.n  ? view_cell(v, PLAIN, found)
			 : user.n ? (struct cell){ DIM, STR("no") }
				  : (struct cell){ DIM, STR("-") }; /* several programs */
	}
	view_table(v, heads, 4, cells, n);
}

/*
 * Finds the id of the queue. A local store is read at every call that needs the id. A read from a server would cost a
 * round trip, so the last id is cached. If a token is not found under the cached id, the client asks again.
 */
#include "base/fs.h"
#include "client/client.h"

static char *kept_path(struct client *c)
{
	struct str name = hash_hex(c->arena, c->keyring.queue);

	return fs_join(c->arena, str_c(c->keyring.dir),
		       arena_printf(c->arena, "%.*s.queue", STRF(name)));
}

static struct str queue_id_kept(struct client *c)
{
	struct str text;

	if (!c->keyring.dir || fs_read(c->arena, kept_path(c), 100, &text))
		return STR("");
	return str_trim(text);
}

void client_know_queue(struct client *c)
{
	struct str id = STR("");

	if (!c->conn.queue)
		return;
	keyring_server(&c->keyring, queue_origin(c->conn.queue, c->arena));
	if (queue_is_far(c->conn.queue))
		keyring_queue(&c->keyring, queue_id_kept(c), false);
	else if (queue_identity(c->conn.queue, &id, c->arena))
		keyring_queue(&c->keyring, id, true);
	else
		keyring_queue(&c->keyring, STR(""), false);
}

void client_learn_queue(struct client *c, struct str id)
{
	bool far = queue_is_far(c->conn.queue);

	keyring_queue(&c->keyring, id, !far);
	/* if the cache cannot be written, the next call asks again */
	if (far && !keyring_folder(&c->keyring))
		(void)fs_write_atomic(kept_path(c), arena_printf(c->arena, "%s\n", c->keyring.id),
				      0600);
}

bool client_ask_queue(struct client *c)
{
	struct str id;

	if (!c->conn.queue || !queue_is_far(c->conn.queue) ||
	    !queue_identity(c->conn.queue, &id, c->arena) || str_is(id, c->keyring.id))
		return false;
	client_learn_queue(c, id);
	return true;
}

int client_copy_tokens(struct client *from, struct client *to)
{
	client_know_queue(from);
	client_know_queue(to);
	(void)client_ask_queue(from);
	return keyring_copy(&from->keyring, &to->keyring);
}

/* Which token may call which operation: the caller's role, compared with the role that the operation needs (command_role(),
 * store_role()). On a read-only server, every caller is a reader. */
#include "core/role.h"
#include "face/serve/serve.h"

const char serve_read_only[] = "the server is read-only";

enum role serve_role(const struct serve *s, const struct http_caller *c)
{
	return s->read_only ? ROLE_READER : c->role;
}

bool serve_allows(const struct serve *s, const struct http_caller *c, enum role need)
{
	return role_allows(serve_role(s, c), need);
}

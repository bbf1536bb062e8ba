/*
 * Ids of MCP sessions, and the file of those that have ended. The input: an id, a newline, the content of the file. No id
 * is accepted that the server did not make for this caller, whatever the file has; a session that the file names has ended.
 */
#include <unistd.h>

#include "kit.h"
#include "base/fs.h"
#include "face/serve/mcp_http.h"

static const struct session_owner ann = { STR("hash"), STR("ann"), STR("default") },
				  bob = { STR("hash"), STR("bob"), STR("default") };
static const char *dir;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc, (void)argv;
	dir = fuzz_dir();
	return 0;
}

static bool find(struct session_ids *v, const struct session_owner *who, struct str id,
		 struct session_id *out, struct arena *a)
{
	*out = (struct session_id){ 0 };
	return session_id_find(v, who, id, out, a);
}

/* One changed byte makes an id that nobody signed. */
static void check_forged(struct session_ids *v, struct str id, uint8_t place, uint8_t change,
			 struct arena *a)
{
	char *forged = arena_cstr(a, id);
	struct session_id out;

	forged[place % id.n] = (char)(forged[place % id.n] ^ (change ? change : 1));
	CHECK(!find(v, &ann, str_n(forged, id.n), &out, a));
}

static bool is_line(struct str text, struct str run)
{
	while (text.n) {
		struct str line = str_cut(&text, '\n');

		if (str_eq(str_cut(&line, ' '), run))
			return true;
	}
	return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str rest = str_n((const char *)data, size), said = str_cut(&rest, '\n'), run, id;
	struct arena a = { 0 };
	struct session_ids v = { 0 };
	struct session_id out;

	CHECK(session_ids_open(&v, dir) == 0);
	fuzz_write(v.ended_file, rest);
	CHECK(!find(&v, &ann, said, &out, &a));
	run = session_id_begin(&a);
	id = session_id_make(&v, &ann, run, "2025-06-18", &a);
	CHECK(find(&v, &ann, id, &out, &a) == !is_line(rest, run));
	CHECK(str_eq(out.run, run) && str_is(str_c(out.version), "2025-06-18"));
	CHECK(!find(&v, &bob, id, &out, &a));
	if (size > 1)
		check_forged(&v, id, data[0], data[1], &a);
	CHECK(session_id_end(&v, run) == 0);
	CHECK(!find(&v, &ann, id, &out, &a));
	session_ids_close(&v);
	arena_free(&a);
	return 0;
}

/*
 * Is the schema the one that pawl makes? A database in a clone may have a hostile schema: a virtual table, a
 * generated column or an index that calls functions at each of our statements. The store compares each part of
 * the schema, word for word, before it uses any of them.
 */
#include "store/sqlite/sqlite.h"

/* Tables of SQLite itself, made by ANALYZE. */
static const char *const tolerated[] = {
	"CREATE TABLE sqlite_stat1(tbl,idx,stat)",
	"CREATE TABLE sqlite_stat4(tbl,idx,neq,nlt,ndlt,sample)",
};

/* The next CREATE statement in a step of the layout. */
static bool next_part(struct str *rest, struct str *out)
{
	while (rest->n) {
		*out = str_cut(rest, ';');
		if (str_starts(*out, STR("CREATE ")))
			return true;
	}
	return false;
}

static bool made_by(const char *step, struct str sql)
{
	struct str rest = str_c(step), part;

	while (next_part(&rest, &part))
		if (str_eq(part, sql))
			return true;
	return false;
}

static int first_step(int version)
{
	return version > sq_layout->whole ? sq_layout->whole : 0;
}

static bool made_by_us(struct str sql, int version)
{
	for (int i = first_step(version); i < version; i++)
		if (made_by(sq_layout->steps[i], sql))
			return true;
	return false;
}

static bool is_tolerated(struct str sql)
{
	for (size_t i = 0; i < sizeof(tolerated) / sizeof(tolerated[0]); i++)
		if (str_is(sql, tolerated[i]))
			return true;
	return false;
}

/* -1: a step alters a table, and SQLite stores its own wording of the altered statement. */
static int count_parts(int version)
{
	int n = 0;

	for (int i = first_step(version); i < version; i++) {
		struct str rest = str_c(sq_layout->steps[i]), part;

		if (strstr(sq_layout->steps[i], "ALTER "))
			return -1;
		while (next_part(&rest, &part))
			n++;
	}
	return n;
}

static int fail_shape(struct sq *s, const char *what)
{
	return store_fail(
		&s->base.env, STORE_FOREIGN,
		"do not trust this file; use another store, or move the file away and run pawl "
		"init",
		"the schema of %s is not the one that pawl makes: %s", s->path, what);
}

/* The index that SQLite makes for UNIQUE has no SQL text. */
static bool harmless(struct str sql, struct str name)
{
	return sql.n ? is_tolerated(sql) : str_starts(name, STR("sqlite_autoindex_"));
}

int sq_shape_is(struct sq *s, int version)
{
	int missing = count_parts(version), rc;
	bool foreign = false;
	sqlite3_stmt *st;

	if (missing < 0)
		return 0;
	rc = sq_prepare(s, "SELECT sql,name FROM sqlite_schema", &st);
	if (rc < 0)
		return rc;
	while (!foreign && (rc = sq_step(s, st)) == SQLITE_ROW) {
		struct str sql = sq_column(st, 0);

		if (made_by_us(sql, version))
			missing--;
		else
			foreign = !harmless(sql, sq_column(st, 1));
	}
	sqlite3_finalize(st);
	if (rc < 0)
		return rc;
	return foreign   ? fail_shape(s, "it has a foreign table, index, view or trigger")
	       : missing ? fail_shape(s, "a part of it is missing")
			 : 0;
}

int sq_shape_check(struct sq *s)
{
	int rc = s->shape_known ? 0 : sq_shape_is(s, sq_layout->version);

	s->shape_known = rc == 0;
	return rc;
}

int sq_version_fail(struct sq *s, int64_t version)
{
	return store_fail(&s->base.env, STORE_NEWER, "use the newer pawl",
			  "%s has schema version %lld; this pawl reads versions up to %d", s->path,
			  (long long)version, sq_layout->version);
}

int sq_version_check(struct sq *s)
{
	int64_t version = 0;
	int rc = sq_int(s, "PRAGMA user_version", &version);

	return rc < 0 || version <= sq_layout->version ? rc : sq_version_fail(s, version);
}

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

/* The next CREATE statement of the schema. */
static bool next_part(struct str *rest, struct str *out)
{
	while (rest->n) {
		*out = str_cut(rest, ';');
		if (str_starts(*out, STR("CREATE ")))
			return true;
	}
	return false;
}

static bool made_by_us(struct str sql)
{
	struct str rest = str_c(sq_schema), part;

	while (next_part(&rest, &part))
		if (str_eq(part, sql))
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

static int count_parts(void)
{
	struct str rest = str_c(sq_schema), part;
	int n = 0;

	while (next_part(&rest, &part))
		n++;
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
static bool sq_shape_harmless(struct str sql, struct str name)
{
	return sql.n ? is_tolerated(sql) : str_starts(name, STR("sqlite_autoindex_"));
}

static int compare_shape(struct sq *s)
{
	int missing = count_parts(), rc;
	bool foreign = false;
	sqlite3_stmt *st;

	rc = sq_prepare(s, "SELECT sql,name FROM sqlite_schema", &st);
	if (rc < 0)
		return rc;
	while (!foreign && (rc = sq_step(s, st)) == SQLITE_ROW) {
		struct str sql = sq_column(st, 0);

		if (made_by_us(sql))
			missing--;
		else
			foreign = !sq_shape_harmless(sql, sq_column(st, 1));
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
	int rc = s->shape_known ? 0 : compare_shape(s);

	s->shape_known = rc == 0;
	return rc;
}

int sq_version_fail(struct sq *s, int64_t version)
{
	if (version < SQ_VERSION)
		return store_fail_older(&s->base.env, s->path);
	return store_fail(&s->base.env, STORE_NEWER, "use the newer pawl",
			  "%s has schema version %lld; this pawl reads version %d", s->path,
			  (long long)version, SQ_VERSION);
}

int sq_version_check(struct sq *s)
{
	int64_t version = 0;
	int rc = sq_int(s, "PRAGMA user_version", &version);

	return rc < 0 || version == SQ_VERSION ? rc : sq_version_fail(s, version);
}

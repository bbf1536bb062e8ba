/*
 * Moves the data from the tables of an older version to new ones, in one transaction under the gate. A process that
 * dies before its commit leaves the older version unchanged. Foreign values are copied unchanged.
 */
#include <stdio.h>

#include "base/os.h"
#include "store/sqlite/sqlite.h"

#define QUIET_MS 1000 /* no notice about a shorter migration */
#define AGAIN_MS 5000
#define STEPS 200000 /* virtual machine instructions between two calls of tell(): some ms */

static const char set_aside[] =
	"DROP INDEX record_lane;DROP INDEX record_status;DROP INDEX record_held;DROP INDEX record_parent;"
	"DROP INDEX event_key;ALTER TABLE queue RENAME TO old_queue;ALTER TABLE clock RENAME TO old_clock;"
	"ALTER TABLE tally RENAME TO old_tally;ALTER TABLE record RENAME TO old_record;"
	"ALTER TABLE body RENAME TO old_body;ALTER TABLE link RENAME TO old_link;"
	"ALTER TABLE event RENAME TO old_event";

/* Fills the new tables, with the SQL functions of column.c. A kept answer has no texts. */
static const char fill[] =
	"INSERT INTO queue SELECT n,name,floor FROM old_queue;"
	"REPLACE INTO clock SELECT one,boot_id,wall,boot FROM old_clock;"
	"INSERT INTO tally SELECT q,status,n FROM old_tally;"
	"INSERT INTO link SELECT q,target,rid FROM old_link;"
	"INSERT INTO record SELECT rid,q,key,rev,"
	/* lane_of_old() */
	"CASE WHEN lane<4 AND packed(h,17,1)>0 THEN CASE lane WHEN 3 THEN 6 ELSE 5 END ELSE lane END,due,status,class_rank,priority,eligible_at,updated_at,created_at,"
	"CASE WHEN status NOT NULL THEN packed((SELECT data FROM old_body b WHERE b.rid=o.rid),11,1)END,id,id_key(id),"
	"holder,token,parent,type,list(labels),list(depends),hot,packed(h,18,0),packed(h,19,0),packed(h,24,1),"
	"packed(h,26,1),packed(h,34,2),"
	"CASE WHEN holder IS NULL THEN packed(h,40,0)END,packed(h,41,0),packed(h,43,2),packed(h,44,2)"
	"FROM(SELECT *,CASE WHEN key GLOB'task/*'OR key GLOB'lock/*'THEN hot END h FROM old_record)o;"
	"INSERT INTO body SELECT rid,split_text(t,0),split_text(t,1),split_text(t,2),split_text(t,3),split_text(t,4),"
	"split_text(t,5),CASE WHEN t IS NULL THEN data ELSE split_text(t,6)END FROM"
	"(SELECT rid,data,CASE WHEN(SELECT key GLOB'task/*'OR key GLOB'lock/*'FROM old_record r WHERE r.rid=b.rid)THEN data END t"
	" FROM old_body b);"
	"INSERT INTO event SELECT seq,q,key,at,split_entry(data,0),split_entry(data,1),split_entry(data,2),"
	"split_entry(data,3),split_entry(data,4),split_entry(data,5)FROM old_event";

static const char clear[] = "DROP TABLE old_queue;DROP TABLE old_clock;DROP TABLE old_tally;"
			    "DROP TABLE old_record;DROP TABLE old_body;DROP TABLE old_link;"
			    "DROP TABLE old_event";

struct progress {
	struct sq *s;
	int64_t begun, told;
	int64_t tasks;
};

/* A queue of a million tasks takes a while: the caller learns why the call does not return. */
static int tell(void *ctx)
{
	struct progress *p = ctx;
	int64_t now = os_boot_ms();
	char text[400];

	if (now - p->begun < QUIET_MS || (p->told && now - p->told < AGAIN_MS))
		return 0;
	p->told = now;
	snprintf(
		text, sizeof(text),
		"converting %lld tasks in %.300s to the format of this version, once: %lld s so far",
		(long long)p->tasks, p->s->path, (long long)((now - p->begun) / 1000));
	p->s->base.env.opt.notice(text);
	return 0;
}

static int run_all(struct sq *s, int64_t version, const char *make)
{
	const char *indexes = strstr(make, "CREATE INDEX");
	char *tables = sqlite3_mprintf("%.*s", (int)(indexes - make), make);
	int rc = sq_exec(s, set_aside);

	if (rc == 0 && version >= 2)
		rc = sq_exec(s, "ALTER TABLE batch RENAME TO old_batch");
	if (rc == 0)
		rc = tables ? sq_exec(s, tables) : sq_fail(s);
	sqlite3_free(tables);
	if (rc == 0)
		rc = sq_exec(s, fill);
	if (rc == 0 && version >= 2)
		rc = sq_exec(s,
			     "INSERT INTO batch SELECT q,id FROM old_batch;DROP TABLE old_batch");
	if (rc == 0)
		rc = sq_exec(s, clear);
	return rc < 0 ? rc : sq_exec(s, indexes);
}

int sq_rebuild(struct sq *s, int64_t version, const char *make)
{
	struct progress p = { .s = s, .begun = os_boot_ms() };
	int rc = sq_int(s, "SELECT sum(n) FROM tally", &p.tasks);

	if (rc < 0)
		return rc;
	sq_functions(s, true);
	if (s->base.env.opt.notice)
		sqlite3_progress_handler(s->db, STEPS, tell, &p);
	rc = run_all(s, version, make);
	sqlite3_progress_handler(s->db, 0, NULL, NULL);
	sq_functions(s, false);
	return rc;
}

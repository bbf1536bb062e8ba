/*
 * The layout of the schema. pawl reads and writes the tables; the views are a stable interface for people: doc/data.md.
 *
 * `record` holds the fields that claims change, `text` the texts that they never change. `lane` and `status` are NULL
 * instead of 0, and holder, token and parent NULL instead of empty: this keeps rows out of the partial indexes. The
 * fill factors leave room for new versions of a row in its page, so that PostgreSQL need not touch the indexes. `link`
 * holds the reverse direction of `depends`. `batch` holds the last group commit of each slots file: group.c. New records
 * begin with a revision above queue.floor, which a drop raises.
 */
#include "store/postgres/postgres.h"

#define WORD_OF(number) #number
#define WORD(number) WORD_OF(number)
#define VERSION WORD(PG_VERSION)
#define TXT(column) "$S.txt(" column ")"
#define TIME(ms) "to_timestamp(" ms "/1000.0)"
#define LIST(list, from)                                                                  \
	"(SELECT coalesce(jsonb_agg($S.txt(substring(x FROM " from ")) ORDER BY n),'[]')" \
	" FROM unnest(" list ") WITH ORDINALITY AS u(x,n))"

/* clang-format off */
const char *const pg_layout[] = {
	"CREATE TABLE $S.about(program text NOT NULL,version integer NOT NULL,id uuid NOT NULL DEFAULT gen_random_uuid())",
	"CREATE TABLE $S.queue(q bigint PRIMARY KEY,name bytea UNIQUE,now bigint NOT NULL,floor bigint NOT NULL,"
	"seq bigint NOT NULL,tally bigint[] NOT NULL) WITH (fillfactor=10)",
	"CREATE TABLE $S.record(q bigint,key bytea,rev bigint NOT NULL,lane smallint,status smallint,class_rank integer,"
	"priority integer,eligible_at bigint,updated_at bigint,created_at bigint,due_at bigint,id bytea,id_key bytea,"
	"holder bytea,token bytea,parent bytea,type bytea,labels bytea[],depends bytea[],hot bytea,assignee bytea,"
	"run bytea,attempts bigint,fence bigint,archived bigint,queue_holder bytea,host bytea,acquired bigint,"
	"expires bigint,PRIMARY KEY(q,key)) WITH (fillfactor=70)",
	"CREATE INDEX record_ready ON $S.record(q,class_rank,priority DESC,due_at,updated_at,id_key) WHERE lane=" LANE_TEXT(LANE_READY),
	"CREATE INDEX record_due ON $S.record(q,lane,eligible_at) WHERE " PG_DUE_LANES,
	"CREATE INDEX record_status ON $S.record(q,status,created_at,id_key) WHERE status IS NOT NULL",
	"CREATE INDEX record_held ON $S.record(q,token,holder) WHERE holder IS NOT NULL OR token IS NOT NULL",
	"CREATE INDEX record_parent ON $S.record(q,parent) WHERE parent IS NOT NULL",
	"CREATE TABLE $S.text(q bigint,key bytea,title bytea,description bytea,acceptance bytea,blocker_reason bytea,"
	"unblock_action bytea,summary bytea,rest bytea,PRIMARY KEY(q,key))",
	"CREATE TABLE $S.link(q bigint,target bytea,key bytea,PRIMARY KEY(q,target,key))",
	"CREATE TABLE $S.log(q bigint,seq bigint,key bytea NOT NULL,at bigint NOT NULL,kind bytea,task bytea,agent bytea,"
	"run bytea,text bytea,rest bytea,PRIMARY KEY(q,seq))",
	"CREATE INDEX log_key ON $S.log(q,key,seq)",
	"CREATE TABLE $S.batch(q bigint,place bigint,id bigint NOT NULL,at bigint NOT NULL,PRIMARY KEY(q,place)) WITH (fillfactor=10)",
	/* Bytes that are not valid in the encoding of the database must not break a whole view. The function runs with the
	 * search path of the reader, so its names have a schema. */
	"CREATE FUNCTION $S.txt(bytea) RETURNS text LANGUAGE plpgsql IMMUTABLE STRICT AS "
	"$f$BEGIN RETURN pg_catalog.convert_from($1,'UTF8'); EXCEPTION WHEN OTHERS THEN "
	"RETURN pg_catalog.encode($1,'escape'); END$f$",
	"CREATE VIEW $S.tasks AS SELECT " TXT("n.name") " AS queue," TXT("r.id") " AS id," TXT("r.id_key") " AS id_key,"
	TXT("t.title") " AS title,"
	"(ARRAY['Backlog','Ready','In Progress','Blocked','Needs Help','Review','Done','Failed','Canceled'])[r.status] AS status,"
	"(ARRAY['Expedite','Fixed Date','Standard','Intangible'])[r.class_rank] AS class,r.priority,"
	"(" TIME("r.due_at") " AT TIME ZONE 'UTC')::date AS due," TXT("r.type") " AS type,"
	LIST("r.labels", "1") " AS labels," LIST("r.depends", "6") " AS depends,"
	TXT("substring(r.parent FROM 6)") " AS parent," TXT("r.assignee") " AS assignee," TXT("r.holder") " AS holder,"
	TXT("r.run") " AS run,r.fence,r.attempts," TIME("r.expires") " AS expires_at,"
	TXT("t.description") " AS description," TXT("t.acceptance") " AS acceptance,"
	TXT("t.blocker_reason") " AS blocker_reason," TXT("t.unblock_action") " AS unblock_action,"
	TXT("t.summary") " AS summary," TIME("r.created_at") " AS created," TIME("r.updated_at") " AS updated,"
	TIME("r.archived") " AS archived "
	"FROM $S.record r JOIN $S.queue n USING(q) LEFT JOIN $S.text t USING(q,key) WHERE r.status IS NOT NULL",
	"CREATE VIEW $S.locks AS SELECT " TXT("n.name") " AS queue,"
	TXT("CASE WHEN r.status IS NULL THEN substring(r.key FROM 6) ELSE r.id END") " AS task,"
	TXT("coalesce(r.holder,r.queue_holder)") " AS holder," TXT("r.run") " AS run," TXT("r.host") " AS host,r.fence,"
	TIME("r.acquired") " AS acquired_at," TIME("r.expires") " AS expires_at,"
	"" TIME("r.expires") ">clock_timestamp() AS live FROM $S.record r JOIN $S.queue n USING(q) "
	"WHERE r.holder IS NOT NULL OR r.queue_holder IS NOT NULL",
	"CREATE VIEW $S.events AS SELECT " TXT("n.name") " AS queue,l.seq," TIME("l.at") " AS at," TXT("l.task") " AS task,"
	TXT("l.agent") " AS agent," TXT("l.kind") " AS kind," TXT("l.text") " AS text," TXT("l.run") " AS run "
	"FROM $S.log l JOIN $S.queue n USING(q) WHERE l.kind IS NOT NULL",
	"INSERT INTO $S.about(program,version) VALUES('pawl'," VERSION ")",
	NULL
};
/* clang-format on */

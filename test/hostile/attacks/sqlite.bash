# shellcheck shell=bash disable=SC2034,SC2154
# Attacks on the user of a SQLite queue: queue.db itself, and files beside it, that came with a clone. See
# test/hostile/attack.bash for the commands.

db=.pawl/queue.db

# filled: a queue with a task, and an empty WAL
filled() {
	queue
	"$PAWL" create 'a task' -q >/dev/null
	sqlite3 "$db" 'PRAGMA wal_checkpoint(TRUNCATE)' >/dev/null
	rm -f "$db-wal" "$db-shm"
}

# be32 NUMBER: four bytes, the most significant first
be32() {
	printf '%b' "$(printf '\\x%02x\\x%02x\\x%02x\\x%02x' $(($1 >> 24 & 255)) $(($1 >> 16 & 255)) $(($1 >> 8 & 255)) $(($1 & 255)))"
}

# journal FILE: a rollback journal without pages that names FILE as its super-journal
journal() {
	local name=$1 sum=0 i magic='\xd9\xd5\x05\xf9\x20\xa1\x63\xd7' pages
	pages=$(($(stat -c %s "$db") / 4096))
	for ((i = 0; i < ${#name}; i++)); do
		sum=$((sum + $(printf '%d' "'${name:i:1}")))
	done
	{
		printf '%b' "$magic"
		be32 0
		be32 1
		be32 "$pages"
		be32 512
		be32 4096
		head -c 484 /dev/zero
		be32 $((0x40000000 / 4096 + 1))
		printf '%s' "$name"
		be32 ${#name}
		be32 $sum
		printf '%b' "$magic"
	} >"$db-journal"
}

# refused COMMAND...: reading and writing; each must end with 40
refused() {
	local command
	for command in list 'show t1' 'create x' 'next --claim' 'hook start' 'doctor'; do
		# shellcheck disable=SC2086
		victim '0|1|30|40|41' $command
		[[ $command != create* && $command != next* ]] || [ "$status" -eq 40 ]
	done
	victim 40 list
}

# A journal makes SQLite delete the file that it names.
# stores: sqlite
attack_journal_that_names_a_letter() {
	need sqlite3
	filled
	journal "$HOME/documents/letter.txt"
	refused
	complains "queue.db-journal exists"
	[ -e "$db-journal" ]
}

# The same beside a database that is not in WAL mode.
# stores: sqlite
attack_journal_beside_a_rollback_database() {
	need sqlite3
	filled
	sqlite3 "$db" 'PRAGMA journal_mode=DELETE' >/dev/null
	journal "$HOME/.ssh/id_ed25519"
	refused
	victim '0|40' init
	[ -e "$db-journal" ]
}

# The same beside an empty database, where SQLite would delete the journal itself.
# stores: sqlite
attack_journal_beside_an_empty_database() {
	need sqlite3
	filled
	journal "$HOME/documents/letter.txt"
	: >"$db"
	victim 40 list
	victim 40 init
	[ -e "$db-journal" ]
}

# A database that is not in WAL mode is converted without a journal.
# stores: sqlite
attack_rollback_database() {
	need sqlite3
	filled
	sqlite3 "$db" 'PRAGMA journal_mode=DELETE' >/dev/null
	victim 0 create more
	victim 0 list
	says 'a task' more
	[ ! -e "$db-journal" ]
}

# plant SQL: changes the schema behind SQLite's back
plant() {
	need sqlite3
	filled
	sqlite3 -cmd '.dbconfig defensive off' "$db" "$1"
	rm -f "$db-wal" "$db-shm"
}

# stores: sqlite
attack_view_in_the_place_of_a_table() {
	plant "ALTER TABLE record RENAME TO kept;
		CREATE VIEW record AS SELECT *,load_extension('/tmp/x.so') FROM kept"
	refused
	complains schema
}

# A view of pawl's own name that runs code, or shows something else.
# stores: sqlite
attack_view_that_is_not_ours() {
	plant "DROP VIEW tasks; CREATE VIEW tasks AS SELECT id,load_extension('/tmp/x.so') FROM record"
	refused
	complains schema
}

# stores: sqlite
attack_view_of_another_table() {
	plant "DROP VIEW events; CREATE VIEW events AS SELECT token AS text FROM record"
	refused
	complains schema
}

# Columns that only the views show: pawl does not believe them.
# stores: sqlite
attack_columns_of_the_views() {
	need sqlite3
	filled
	sqlite3 "$db" "UPDATE record SET fence=9e9, assignee='x'||char(27)||'[31m', expires='soon', id_key=zeroblob(5000000)"
	victim 0 list
	says 'a task'
	victim 0 show t1
	victim 0 claim t1
	victim 40 doctor
	says 'views show other values'
}

# Texts that pawl cannot have written, in the columns and again beside them.
# stores: sqlite
attack_texts_twice_and_too_large() {
	need sqlite3
	filled
	victim 0 create two
	victim 0 create three
	sqlite3 "$db" "UPDATE body SET rest=rest||CAST(char(2)||char(3)||'abc' AS BLOB)
			WHERE rid=(SELECT rid FROM record WHERE key='task/t1');
		UPDATE body SET title=zeroblob(60000000) WHERE rid=(SELECT rid FROM record WHERE key='task/t2')"
	victim 0 list
	says three
	needs_little list
	victim 40 show t1
	victim 40 show t2
	needs_little show t2
	victim 40 doctor
	says 'cannot be used'
}

# stores: sqlite
attack_trigger() {
	plant "CREATE TRIGGER x AFTER INSERT ON event BEGIN UPDATE record SET hot=x''; END"
	refused
	complains schema
}

# stores: sqlite
attack_virtual_table_in_the_place_of_a_table() {
	plant "DROP TABLE body; CREATE VIRTUAL TABLE body USING fts5(rid,data)"
	refused
	complains schema
}

# An index that computes for a long time at each of our changes.
# stores: sqlite
attack_index_that_computes() {
	plant "CREATE INDEX x ON event(length(hex(hex(hex(hex(rest))))))"
	refused
	complains schema
}

# stores: sqlite
attack_generated_column() {
	plant "DROP TABLE tally; CREATE TABLE tally(q,status,n,
		x AS (length(hex(zeroblob(100000000)))),PRIMARY KEY(q,status))WITHOUT ROWID"
	refused
	complains schema
}

# The schema in the file is ours, the one in the WAL is not.
# stores: sqlite
attack_schema_in_the_wal() {
	need sqlite3
	filled
	sqlite3 "$db" '.filectrl persist_wal 1' 'PRAGMA wal_autocheckpoint=0' \
		'CREATE TRIGGER x AFTER INSERT ON event BEGIN DELETE FROM record; END' \
		'.shell cp .pawl/queue.db-wal planted' >/dev/null
	sqlite3 "$db" 'DROP TRIGGER x' 'PRAGMA wal_checkpoint(TRUNCATE)' >/dev/null
	git -C . status >/dev/null
	rm -f "$db-wal" "$db-shm"
	mv planted "$db-wal"
	victim '0|40' create x
	victim 0\|40 list
	[ "$status" -eq 40 ] || says 'a task' # a WAL that does not fit is ignored
}

# The database is a link to a database of the user, in the clone or outside.
# stores: sqlite
attack_database_that_is_a_link() {
	need sqlite3
	local folder sum
	for folder in "$clone/kept" "$scratch/kept"; do
		rm -rf .pawl
		filled
		mkdir "$folder"
		mv "$db" "$folder/mine.db"
		sum=$(sha256sum "$folder/mine.db")
		ln -s "$folder/mine.db" "$db"
		refused
		[ "$folder" != "$clone/kept" ] || complains link
		[ "$(sha256sum "$folder/mine.db")" = "$sum" ]
		[ "$(ls "$folder")" = mine.db ]
	done
}

# stores: sqlite
attack_database_link_that_leads_nowhere() {
	filled
	rm "$db"
	ln -s "$HOME/documents/new.db" "$db"
	victim 40 list
	victim 40 create x
	victim 40 init
	[ ! -e "$HOME/documents/new.db" ]
}

# A file beside the database is a link, to a file that exists or not.
# stores: sqlite
attack_links_beside_the_database() {
	local end
	for end in wal shm gate slots; do
		rm -rf .pawl
		filled
		rm -f "$db-$end"
		ln -s "$HOME/documents/letter.txt" "$db-$end"
		victim '0|40' create x
		[ "$end" = slots ] || [ "$status" -eq 40 ]
		victim '0|40' list
		ln -sfn "$HOME/documents/new" "$db-$end"
		victim '0|40' create x
		[ "$end" = slots ] || [ "$status" -eq 40 ]
		[ ! -e "$HOME/documents/new" ]
	done
}

# stores: sqlite
attack_folder_of_the_queue_that_is_a_link() {
	filled
	mv .pawl "$scratch/elsewhere"
	ln -s "$scratch/elsewhere" .pawl
	find "$scratch/elsewhere" -printf '%P %s %T@\n' | sort >"$scratch/was"
	for command in list 'create x' 'hook start' prime init doctor 'config list' backup; do
		# shellcheck disable=SC2086
		victim any $command
		quiet_about 'a task'
	done
	find "$scratch/elsewhere" -printf '%P %s %T@\n' | sort | diff "$scratch/was" -
	victim 40 list
	complains link
}

# stores: sqlite
attack_config_that_is_a_link() {
	filled
	rm .pawl/config
	ln -s "$HOME/.bashrc" .pawl/config
	victim any list
	victim any config set priority 3
	quiet_about 'alias ll'
}

# A pipe or a folder neither blocks nor crashes pawl.
# stores: sqlite
attack_pipes_and_folders() {
	local end make
	for end in '' -wal -shm -gate -slots; do
		for make in mkfifo mkdir; do
			rm -rf .pawl
			filled
			rm -f "$db$end"
			$make "$db$end"
			victim '0|40' list
			victim '0|40' create x
			[ "$end" = -slots ] || [ "$status" -eq 40 ]
			victim '0|40' doctor
			[ -z "$end" ] || says 'not a regular file'
		done
	done
}

# stores: sqlite
attack_more_pages_than_there_are() {
	need sqlite3
	filled
	be32 $((0x7fffffff)) | dd of="$db" bs=1 seek=28 conv=notrunc status=none
	refused
	victim 40 list
	complains damaged
}

# The free list, the root of a table and every byte of the first page, one at a time.
# stores: sqlite
attack_first_page_with_odd_bytes() {
	local at
	filled
	cp "$db" sound
	for at in 16 18 20 21 28 32 36 40 44 52 56 60 68 92 96 100 103 105 108 110 200 1000 3000 4000; do
		cp sound "$db"
		rm -f "$db-wal" "$db-shm"
		printf '\xff\xff' | dd of="$db" bs=1 seek=$at conv=notrunc status=none
		victim any create x
		victim any list
	done
}

# stores: sqlite
attack_wal_and_index_of_noise() {
	filled
	{
		printf '\x37\x7f\x06\x82\x00\x2d\xe2\x18'
		be32 4096
		head -c 40000 /dev/urandom
	} >"$db-wal"
	head -c 32768 /dev/urandom >"$db-shm"
	victim 0 list
	says 'a task'
	victim 0 create x
	victim 0 list
	says 'a task' x
}

#!/usr/bin/env bats
# The store postgres:, in the places where a queue on PostgreSQL goes wrong easily. A process is stopped inside its
# COMMIT, while others continue; no test depends on how quick the machine is.
load common
load postgres

teardown() {
	[ -z "${stopped-}" ] || kill -CONT "$stopped" 2>/dev/null || :
	[ -z "${lone-}" ] || standby_wanted ''
	[ ! -e "$pg_dir/second" ] || server_end second || :
	finish_proxy
	finish_pooler
}

# late: makes COMMIT wait, for a change by the agent `slow`, as long as hold() holds, and fail for the agent `refused`. For the
# agents `later…` it waits for the advisory lock 2.
late() {
	sql "CREATE FUNCTION \"$schema\".late() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN IF NEW.agent=''slow''::bytea THEN
		PERFORM pg_advisory_xact_lock(hashtext(TG_TABLE_SCHEMA)); END IF;
		IF substr(NEW.agent,1,5)=''later''::bytea THEN PERFORM pg_advisory_xact_lock(2); END IF;
		IF NEW.agent=''refused''::bytea THEN RAISE EXCEPTION ''refused at the end''; END IF; RETURN NULL; END';
		CREATE CONSTRAINT TRIGGER late AFTER INSERT ON \"$schema\".log DEFERRABLE INITIALLY DEFERRED
		FOR EACH ROW EXECUTE FUNCTION \"$schema\".late()"
	hold "SELECT pg_advisory_lock(hashtext('$schema'))"
}

# hold SQL: a session that has run this, until let_go()
hold() {
	rm -f "$work/session"
	mkfifo "$work/session"
	"$pg_bin/psql" -X -q -At -h 127.0.0.1 -p "$pg_port" -U tester postgres <"$work/session" >"$work/held" 3>&- &
	session=$!
	exec 7>"$work/session"
	echo "$1; SELECT 'held';" >&7
	soon grep -q held "$work/held"
}

let_go() {
	exec 7>&-
	wait "$session"
}

# begin NAME WORD...: pawl WORD... in the background; NAME.pid, NAME.out
begin() {
	"$PAWL" "${@:2}" --timeout 60s --json >"$work/$1.out" 2>&1 3>&- 7>&- &
	printf -v "$1" %s $!
}

# waiting N: N changes wait for a lock
waiting() {
	[ "$(sql "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type='Lock' AND application_name LIKE 'pawl[%'")" -eq "$1" ]
}

# after PID N: N changes wait, or the process has ended
after() {
	waiting "$2" || not_running "$1"
}

not_running() {
	! kill -0 "$1" 2>/dev/null
}

@test "postgres: a reader that follows the log misses no change that commits late" {
	start
	new first
	late
	begin a create "of the slow one" --agent slow
	soon waiting 1
	begin b create "of the quick one" --agent quick
	soon after "$b" 2
	ask 0 log
	cursor=$(get '.events[-1].cursor')
	let_go
	wait "$a" "$b"
	ask 0 log --after "$cursor"
	same "$(get '.events[].agent' | sort | paste -sd' ')" 'quick slow'
	same "$(sql "SELECT string_agg(agent,' ' ORDER BY seq) FROM \"$schema\".events WHERE agent IN ('slow','quick')")" 'slow quick'
	same "$(sql "SELECT count(*),max(seq) FROM \"$schema\".events")" '3|3'
}

@test "postgres: a change that the server refuses at COMMIT is not applied and takes no number of the log" {
	start
	new first
	late
	ask 30 create second --agent refused
	is '.error.applied == "no"'
	[[ $output == *"refused at the end"* ]]
	new third
	same "$(sql "SELECT count(*),max(seq) FROM \"$schema\".events")" '2|2'
	same "$(sql "SELECT string_agg(title,' ' ORDER BY title) FROM \"$schema\".tasks")" 'first third'
	let_go
	call 0 doctor
}

@test "postgres: a claim does not slip past a concurrent emergency" {
	start
	id=$(new first)
	late
	begin a emergency on --reason test --agent slow
	soon waiting 1
	begin b claim "$id" --agent quick
	begin c next --claim --agent third
	soon waiting 3
	let_go
	wait "$a"
	not wait "$b"
	not wait "$c"
	grep -q emergency "$work/b.out"
	grep -q emergency "$work/c.out"
	same "$(sql "SELECT count(*) FROM \"$schema\".tasks WHERE holder IS NOT NULL")" 0
}

@test "postgres: two processes that make the same task concurrently: one makes it, the other is refused" {
	start
	late
	begin a create one --id same --agent slow
	soon waiting 1
	begin b create other --id same --agent quick
	soon after "$b" 2
	let_go
	wait "$a"
	local rc=0
	wait "$b" || rc=$?
	same "$rc" 20
	same "$(sql "SELECT title FROM \"$schema\".tasks")" one
}

@test "postgres: the time of a change is taken after it got the lock, and doctor names the one that it waits for" {
	start
	new first
	hold "BEGIN; SELECT 1 FROM \"$schema\".queue FOR UPDATE"
	begin a create second --agent quick
	soon waiting 1
	call 0 doctor
	says "waiting clients: 1" "(psql)"
	now=$(sql "SELECT clock_timestamp()")
	let_go
	wait "$a"
	same "$(sql "SELECT at>='$now' FROM \"$schema\".events WHERE agent='quick'")" t
	same "$(sql "SELECT created>='$now' FROM \"$schema\".tasks WHERE title='second'")" t
}

@test "postgres: the time does not go back when the server's clock does" {
	start
	id=$(new first)
	sql "UPDATE \"$schema\".queue SET now=now+3600000" # as after a failover to a server whose clock is behind
	pawl claim "$id" --agent ann
	same "$(sql "SELECT acquired_at>now()+interval '59 minutes' FROM \"$schema\".locks")" t
	pawl heartbeat "$id" --agent ann
	same "$(sql "SELECT count(*) FROM (SELECT at<lag(at) OVER (ORDER BY seq) AS back FROM \"$schema\".events) x WHERE back")" 0
}

# due_reads: how many entries of the index by date the server has read for this queue
due_reads() {
	sql "SELECT idx_tup_read FROM pg_stat_user_indexes WHERE schemaname='$schema' AND indexrelname='record_due'"
}

# gone AGENT: its sessions have ended, and the server has counted what they read
gone() {
	[ "$(sql "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'pawl%$1'")" = 0 ]
}

@test "postgres: a change does not read the tasks that wait for a later date" {
	start
	new first
	sql "INSERT INTO \"$schema\".record(q,key,rev,lane,eligible_at) SELECT q,convert_to('later'||n,'UTF8'),1,2,9000000000000
		FROM \"$schema\".queue,generate_series(1,500) n"
	pawl create second --agent dater
	soon gone dater
	[ "$(due_reads)" -lt 100 ]
	sql "UPDATE \"$schema\".record SET eligible_at=1 WHERE key='later7'::bytea" # it is found all the same
	pawl create third
	same "$(sql "SELECT lane FROM \"$schema\".record WHERE key='later7'::bytea")" 1
}

# standby_wanted NAME: the server waits for this standby at each COMMIT; '': for none
standby_wanted() {
	sql "ALTER SYSTEM SET synchronous_standby_names='$1'"
	sql 'SELECT pg_reload_conf()'
	lone=$1
}

hanging() {
	[ "$(sql "SELECT count(*) FROM pg_stat_activity WHERE wait_event='SyncRep'")" -gt 0 ]
}

# begin_hanging WORD...: the server may take a moment until it knows the new setting, so the first calls may succeed
begin_hanging() {
	n=0 a=''
	until hanging; do
		if [ -z "$a" ] || not_running "$a"; then
			n=$((n + 1))
			begin a create "held $n" --request-id "held-$n"
		fi
	done
}

@test "postgres: a COMMIT that waits for a standby: unknown when it is cut short, and doctor explains it" {
	start
	standby_wanted nobody
	begin_hanging
	call 30 create x --timeout 300ms # the lock is held
	complains tester "changes the queue"
	call 40 doctor
	says "1 sessions wait for a synchronous standby" "(nobody), but none is connected"
	# a NOTIFY within the change would hold a lock of the whole server now
	sql "SET synchronous_commit=local; SET lock_timeout='20s'; NOTIFY pawl_other"
	sql "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event='SyncRep'"
	not wait "$a"
	output=$(cat "$work/a.out")
	is '.error.code == "API_ERROR" and .error.applied == "unknown"'
	[[ $output == *"perhaps not on its standby"* ]]
	standby_wanted ''
	ask 0 create "held $n" --request-id "held-$n"
	same "$(sql "SELECT count(*) FROM \"$schema\".tasks WHERE title='held $n'")" 1
}

@test "postgres: a COMMIT that nobody answers is unknown after the timeout" {
	[ "$cuts" -gt 10 ] || skip "in soak: it waits 30 s"
	start
	standby_wanted nobody
	begin_hanging
	not wait "$a"
	output=$(cat "$work/a.out")
	is '.error.code == "API_ERROR" and .error.applied == "unknown"'
	standby_wanted ''
	ask 0 create "held $n" --request-id "held-$n"
	same "$(sql "SELECT count(*) FROM \"$schema\".tasks WHERE title='held $n'")" 1
}

# listened: the channel that a process listens on; fails if none does
listened() {
	sql "SELECT substr(query,8) FROM pg_stat_activity WHERE query LIKE 'LISTEN pawl%' LIMIT 1" | grep .
}

@test "postgres: a lost notification delays a waiting call by seconds, not by half a minute" {
	start
	proxy
	: >"$work/mute"
	timeout 25 "$PAWL" next --wait 120s --claim --agent ann --store "$through" --json >"$work/next" 2>&1 3>&- &
	waits=$!
	soon listened
	id=$(new late)
	wait "$waits"
	output=$(cat "$work/next")
	is ".task.id == \"$id\""
}

@test "postgres: a lost notification does not keep a call of mcp waiting" {
	start
	proxy
	: >"$work/mute"
	coproc mcp { exec timeout 60 "$PAWL" mcp --store "$through" 2>/dev/null 3>&-; }
	echo '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"next","arguments":{"claim":true,"wait":100}}}' >&"${mcp[1]}"
	soon listened
	id=$(new late)
	read -r -t 25 output <&"${mcp[0]}"
	[[ $output == *"$id"* ]]
	kill "$mcp_PID"
}

notified() {
	echo 'SELECT 1;' >&7
	grep -q 'Asynchronous notification' "$work/held"
}

@test "postgres: a change whose COMMIT got no answer wakes the processes that wait" {
	start
	new first
	"$PAWL" log --follow >/dev/null 2>&1 3>&- &
	follows=$!
	soon listened
	channel=$(listened)
	kill "$follows"
	proxy
	hold "LISTEN $channel"
	cut after create second
	same "$(how)" unknown
	soon notified
	let_go
}

# plant: functions and operators that bear names of the server's own, in a schema before pg_catalog in the search path of $role
plant() {
	local arguments
	sql "CREATE ROLE $role LOGIN SUPERUSER; CREATE SCHEMA ${role}_plant; ALTER ROLE $role SET search_path=${role}_plant,pg_catalog"
	for arguments in 'pg_backend_pid() int' 'set_config(text,text,boolean) text' 'array_to_string(bigint[],text) text' \
		'convert_from(bytea,text) text' 'convert_from(bytea,name) text' 'encode(bytea,text) text' 'to_timestamp(numeric) timestamptz' \
		'to_timestamp(float8) timestamptz' 'floor(float8) float8' 'floor(numeric) numeric' \
		'clock_timestamp() timestamptz' 'pg_notify(text,text) void' 'octet_length(bytea) int' 'pg_is_in_recovery() boolean' \
		'current_setting(text) text' 'pg_advisory_xact_lock(bigint) void' 'differs(int,bigint) boolean' 'equals(bytea,bytea) boolean'; do
		sql "CREATE FUNCTION ${role}_plant.${arguments% *} RETURNS ${arguments##*) } LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''planted''; END'"
	done
	sql "CREATE OPERATOR ${role}_plant.<> (LEFTARG=int,RIGHTARG=bigint,FUNCTION=${role}_plant.differs);
		CREATE OPERATOR ${role}_plant.= (LEFTARG=bytea,RIGHTARG=bytea,FUNCTION=${role}_plant.equals)"
	not sql_as "SELECT pg_backend_pid()"
}

# sql_as STATEMENT: as $role
sql_as() {
	"$pg_bin/psql" -X -q -At -v ON_ERROR_STOP=1 -h 127.0.0.1 -p "$pg_port" -U "$role" postgres -c "$1"
}

# work_on URI: every kind of statement; a planted function would make one fail
work_on() {
	local id
	mkdir "$work/$2"
	cd "$work/$2" || return
	call 0 init --store "$1"
	id=$(new "ä task" --label red) # the views would hide an error, and show this text in another form
	new "after it" --depends "$id"
	call 0 claim "$id" --agent ann
	call 0 done "$id" --agent ann
	call 0 next --claim --agent bob
	call 0 list
	call 0 log
	call 0 doctor
	call 0 export --output out.json
	same "$(sql_as "SELECT count(title),count(created),count(labels) FROM \"$3\".tasks")" '2|2|2'
	same "$(sql_as "SELECT title FROM \"$3\".tasks ORDER BY id LIMIT 1")" 'ä task'
	same "$(sql_as "SELECT count(holder),count(expires_at) FROM \"$3\".locks")" '1|1'
}

@test "postgres: functions that another user planted in the search path are not called" {
	needs pgbouncer
	plant
	work_on "${uri/tester/$role}" direct "$schema"
	pooler transaction "$role"
	work_on "postgres://$role@127.0.0.1:$pool_port/postgres?schema=$schema-pool" pool "$schema-pool"
	finish_pooler
	cd "$work"
	"$PAWL" init --store "${uri/$schema/$schema-sql}" --print-sql >"$work/script.sql"
	sed -i "s/pawl_/${role}_/" "$work/script.sql"
	sql_as "$(cat "$work/script.sql")"
	work_on "postgres://$role@127.0.0.1:$pg_port/postgres?schema=$schema-sql" script "$schema-sql"
}

# published TEXT PID: this process waits for another one to make its change, which contains TEXT
published() {
	grep -aqs "$1" "$XDG_RUNTIME_DIR"/pawl/*.slots && [ "$(awk '{ print $3 }' "/proc/$2/stat")" = S ]
}

# hanging_commits N: N sessions wait for the standby
hanging_commits() {
	[ "$(sql "SELECT count(*) FROM pg_stat_activity WHERE wait_event='SyncRep'")" -eq "$1" ]
}

is_synchronous() {
	[ "$(sql "SELECT count(*) FROM pg_stat_replication WHERE sync_state='sync'")" = 1 ]
}

# advisory NAME KEY: lock or unlock, in the session of hold()
advisory() {
	echo "SELECT pg_advisory_$1($2);" >&7
}

waits_for_two() {
	[ "$(sql "SELECT count(*) FROM pg_locks WHERE locktype='advisory' AND classid=0 AND objid=2 AND NOT granted")" = 1 ]
}

seen() {
	[ "$(sql "SELECT count(*) FROM \"$schema\".tasks WHERE title='$1'")" = 1 ]
}

# of_two: which of the processes `one` and `two` leads the other: it is in a transaction
of_two() {
	sql "SELECT substring(application_name FROM 'later-([a-z]+)') FROM pg_stat_activity WHERE application_name LIKE 'pawl[%] later-%' AND state='active'"
}

# lead_and_die N: two processes meet, since both wait for a third one. The standby stops, and the leader of the two is killed in
# its COMMIT, which the server then ends. Leaves the names of both in $dead and $heir. Fails if each made its change alone, as
# they do after two seconds.
lead_and_die() {
	begin first create "first $1" --agent slow
	soon waiting 1
	begin one create "one $1" --agent later-one
	begin two create "two $1" --agent later-two
	soon published "one $1" "$one"
	soon published "two $1" "$two"
	advisory unlock "hashtext('$schema')"
	wait "$first"
	soon waits_for_two
	dead=$(of_two | head -n 1) heir=two
	[ "$dead" = one ] || heir=one
	stopped=$receiver
	kill -STOP "$stopped"
	advisory unlock 2
	soon hanging_commits 1
	kill -9 "${!dead}"
	sql "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event='SyncRep'"
	soon seen "$dead $1" && seen "$heir $1" # $dead may have waited for the other, each with a transaction of its own
}

# stand_by N: after a failure of lead_and_die: everybody continues
stand_by() {
	kill -CONT "$stopped"
	wait "${!heir}"
	advisory lock "hashtext('$schema')"
	advisory lock 2
}

@test "postgres: a change that a dead leader committed is acknowledged when the synchronous standby has it" {
	start
	server second -R
	standby_wanted '*'
	soon is_synchronous
	receiver=$("$pg_bin/psql" -X -At -h 127.0.0.1 -p "$port" -U tester postgres -c "SELECT pid FROM pg_stat_activity WHERE backend_type='walreceiver'")
	late
	advisory lock 2
	n=1
	until lead_and_die "$n"; do
		n=$((n + 1))
		[ "$n" -lt 8 ]
		stand_by
	done
	soon hanging_commits 1 # a commit of the heir, which the standby gets after that of the dead leader
	kill -0 "${!heir}"
	same "$(cat "$work/$heir.out")" ''
	kill -CONT "$stopped"
	wait "${!heir}"
	"$pg_run" "$pg_bin/pg_ctl" -s -w -D "$pg_dir/second" promote
	same "$("$pg_bin/psql" -X -At -h 127.0.0.1 -p "$port" -U tester postgres -c "SELECT count(*) FROM \"$schema\".tasks WHERE title IN ('one $n','two $n')")" 2
	same "$(sql "SELECT count(*) FROM \"$schema\".tasks WHERE title IN ('one $n','two $n')")" 2
	let_go
}

#!/usr/bin/env bats
# The store postgres:, in the places where a queue on PostgreSQL goes wrong easily. A process is stopped inside its
# COMMIT, while others go on; no test depends on how quick the machine is.
load common
load postgres

teardown() {
	[ -z "${lone-}" ] || standby_wanted ''
	finish_proxy
}

# late: makes COMMIT wait, for a change by the agent `slow`, as long as hold() holds, and fail for the agent `refused`
late() {
	sql "CREATE FUNCTION \"$schema\".late() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN IF NEW.agent=''slow''::bytea THEN
		PERFORM pg_advisory_xact_lock(hashtext(TG_TABLE_SCHEMA)); END IF;
		IF NEW.agent=''refused''::bytea THEN RAISE EXCEPTION ''refused at the end''; END IF; RETURN NULL; END';
		CREATE CONSTRAINT TRIGGER late AFTER INSERT ON \"$schema\".log DEFERRABLE INITIALLY DEFERRED
		FOR EACH ROW EXECUTE FUNCTION \"$schema\".late()"
	hold "SELECT pg_advisory_lock(hashtext('$schema'))"
}

# hold SQL: a session that has run this, until let_go()
hold() {
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

@test "postgres: a claim does not slip past an emergency that commits meanwhile" {
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

@test "postgres: two processes that make the same task meanwhile: one makes it, the other is refused" {
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
	says "1 wait for session" "(psql)"
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

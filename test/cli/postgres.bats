#!/usr/bin/env bats
# The store postgres:. Runs under test/kit/postgres-serve, which starts a server; each test has a schema of its own.
load common
load postgres

@test "postgres: init makes the schema and the queue, and keeps them" {
	call 0 init --store "$uri"
	says "made a queue"
	same "$(sql "SELECT version FROM \"$schema\".about")" 2
	call 0 init --store "$uri"
	says "already a queue"
	new "a task" --label red
	ask 0 list
	is '.tasks | length == 1'
	call 0 queues
	says default
}

@test "postgres: postgresql:// is the same, and queues are apart" {
	start
	new one
	ask 0 list --store "${uri/postgres:/postgresql:}"
	is '.tasks | length == 1'
	pawl init --queue other
	ask 0 list --queue other
	is '.tasks | length == 0'
	call 40 list --queue missing
	complains "missing" "127.0.0.1"
}

@test "postgres: the views show tasks, locks and events" {
	start
	id=$(new "naïve ☃" --label red --label blue --priority 5)
	pawl claim "$id" --agent ann
	same "$(sql "SELECT title,status,labels,priority,holder FROM \"$schema\".tasks")" 'naïve ☃|In Progress|["red", "blue"]|5|ann'
	same "$(sql "SELECT queue,task,holder,live FROM \"$schema\".locks")" "default|$id|ann|t"
	same "$(sql "SELECT count(*)>=2,min(seq) FROM \"$schema\".events")" 't|1'
}

@test "postgres: a wrong password is not shown, and nothing is made" {
	sql "CREATE ROLE $role LOGIN PASSWORD 'right'"
	sed -i "1i host all $role 127.0.0.1/32 scram-sha-256" "$pg_dir/data/pg_hba.conf"
	sql 'SELECT pg_reload_conf()'
	until ! "$pg_bin/psql" -X -w -h 127.0.0.1 -p "$pg_port" -U "$role" postgres -c 'SELECT 1' >/dev/null 2>&1; do sleep 0.05; done
	call 30 init --store "postgres://$role:wrongsecret@127.0.0.1:$pg_port/postgres?schema=$schema"
	complains 127.0.0.1 "database postgres" "$role"
	[[ $stderr != *wrongsecret* ]]
	[ ! -e .pawl ]
	printf '127.0.0.1:%s:*:%s:right\n' "$pg_port" "$role" >"$HOME/passwords"
	chmod 600 "$HOME/passwords"
	sql "CREATE SCHEMA \"$schema\" AUTHORIZATION $role"
	PGPASSFILE=$HOME/passwords call 0 init --store "postgres://$role@127.0.0.1:$pg_port/postgres?schema=$schema"
}

@test "postgres: a password in the URI is never shown" {
	start
	secret=${uri/tester@/tester:geheim@}
	export PAWL_STORE=$secret
	for words in "config list" "config get store" queues doctor whoami "config list --json" "queues --json" "doctor --json" "init --force"; do
		# shellcheck disable=SC2086 # several words
		output=$("$PAWL" $words 2>&1) || :
		[[ $output != *geheim* ]] || {
			echo "$words shows it: $output"
			return 1
		}
	done
	PAWL_STORE=${secret/127.0.0.1/127.0.0.2} call 30 list
	[[ $stderr != *geheim* ]]
}

@test "postgres: a password in a URI that cannot be read is not shown either" {
	printf '[bad]\nhost=127.0.0.1\nport=%s\nuser=tester\npassword=gehe\nim=1\n' "$pg_port" >"$HOME/services"
	export PGSERVICEFILE=$HOME/services
	ways=(list "list --json" doctor "doctor --json" "config list" "config get store --json" "init --force" "init --print-sql" whoami queues)
	at=$sample every=3 # each URI with a third of them, by sample; in soak with all
	[ "$cuts" -le 10 ] || every=1
	for bad in "postgres://u:geheim@h:x/db" "postgres://u:gehe?im@h/db" "postgres://u:gehe/im@h/db" "postgres://u:gehe@im@h/db" \
		"postgres://u:987/gehe@h/db" "postgres://u:987#gehe@h/db" "postgres://u:gehe/x?im@h/db" "postgres://u:gehe@x?im@h/db" \
		"postgres://u:gehe%40im%40h/db" "postgres://u%3Ageheim%40127.0.0.1:$pg_port/db" "postgres://u%3Ageheim@127.0.0.1:$pg_port/db" \
		"postgres://u@h/db?password=geheim&nonsense=1" "postgres://u@h/db?dbname=password%3Dgeheim" "postgres://u@h/db?queue=q;password=geheim" \
		"postgres://u@h/db?host=987%40gehe" "postgres://u@h/password=geheim" "postgres://127.0.0.1:$pg_port/db?pass%77ord=geheim&user=none" \
		"postgres:host=h password=geheim" "host=h password=geheim" "postgres//u:geheim@h/db" "postgres:/u:geheim@h/db" "u:geheim@h/db" \
		"postgres://?service=bad" "postgres://?service=none" "postgress://u:gehe/im@h/db"; do
		for words in "${ways[@]}"; do
			((at++ % every == 0)) || continue
			# shellcheck disable=SC2086 # several words
			PAWL_STORE=$bad "$PAWL" $words >"$work/out" 2>&1 || :
			grep -qE 'gehe|987' "$work/out" || continue
			echo "$words with $bad shows: $(cat "$work/out")"
			return 1
		done
		PAWL_STORE=$bad "$PAWL" list 2>/dev/null && return 1
		echo quit | PAWL_STORE=$bad "$PAWL" interactive >"$work/out" 2>&1 || :
		not grep -E 'gehe|987' "$work/out"
	done
	call 40 list --store "postgres://u:gehe@im@h/db"
	complains "postgres://…" %40
}

@test "postgres: unknown database, no rights, refused TLS" {
	call 40 init --store "$base/nowhere_$$"
	complains "nowhere_$$" 127.0.0.1
	sql "CREATE ROLE $role LOGIN"
	call 30 init --store "postgres://$role@127.0.0.1:$pg_port/postgres?schema=$schema"
	complains "permission denied" --print-sql
	start
	call 30 list --store "postgres://$role@127.0.0.1:$pg_port/postgres?schema=$schema"
	complains "permission denied"
	call 30 list --store "$uri&sslmode=require"
	complains SSL 127.0.0.1
	sql "ALTER ROLE $role CONNECTION LIMIT 0"
	call 30 list --store "postgres://$role@127.0.0.1:$pg_port/postgres?schema=$schema"
	complains "too many connections"
}

@test "postgres: --print-sql is all that an administrator needs" {
	call 0 init --store "$uri" --print-sql
	[ ! -e .pawl ]
	same "$(sql "SELECT count(*) FROM pg_namespace WHERE nspname='$schema'")" 0
	sql "${output//pawl_/${role}_}"
	sql "CREATE ROLE $role LOGIN; GRANT ${role}_agent TO $role; CREATE ROLE ${role}_eye LOGIN; GRANT ${role}_reader TO ${role}_eye"
	pawl init --store "postgres://$role@127.0.0.1:$pg_port/postgres?schema=$schema"
	id=$(new "with few rights")
	pawl claim "$id"
	pawl done "$id"
	pawl remove "$id"
	seen=$("$pg_bin/psql" -X -At -h 127.0.0.1 -p "$pg_port" -U "${role}_eye" postgres -c "SELECT count(*)>0 FROM \"$schema\".events")
	same "$seen" t
	not "$pg_bin/psql" -X -At -h 127.0.0.1 -p "$pg_port" -U "${role}_eye" postgres -c "SELECT hot FROM \"$schema\".record"
	ask 40 init --store sqlite:q.db --print-sql
}

@test "postgres: through PgBouncer, in both modes" {
	needs pgbouncer
	for mode in transaction session; do
		pooler "$mode" tester
		mkdir "$work/$mode"
		cd "$work/$mode"
		pawl init --store "postgres://tester@127.0.0.1:$pool_port/postgres?schema=$schema-$mode"
		for n in 1 2 3; do new "task $n"; done
		agents=()
		for n in 1 2 3 4 5 6; do
			"$PAWL" next --claim --agent "a$n" -q >>"$work/$mode.ids" 3>&- &
			agents+=($!)
		done
		wait "${agents[@]}" || :
		same "$(sort -u "$work/$mode.ids" | grep -c '^t')" 3
		call 0 doctor
		says "through a pooler"
		finish_pooler
	done
}

@test "postgres: a foreign, a newer or a damaged schema is left alone" {
	sql "CREATE SCHEMA \"$schema\"; CREATE TABLE \"$schema\".queue(x int)"
	call 40 init --store "$uri"
	complains "another program" "$schema"
	same "$(sql "SELECT count(*) FROM pg_tables WHERE schemaname='$schema'")" 1
	sql "DROP SCHEMA \"$schema\" CASCADE; CREATE SCHEMA \"$schema\""
	start
	sql "UPDATE \"$schema\".about SET version=99"
	call 40 list
	complains newer 99
	sql "UPDATE \"$schema\".about SET version=2; DROP TABLE \"$schema\".text CASCADE"
	call 40 show t1
	complains text
	call 40 create x
	sql "DROP TABLE \"$schema\".queue CASCADE"
	call 40 list
	complains missing
}

@test "postgres: a database in another encoding keeps every text" {
	sql "CREATE DATABASE latin_$$ ENCODING LATIN1 LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"
	pawl init --store "$base/latin_$$"
	id=$(new "snow ☃ and ü")
	same "$(field "$id" .title)" "snow ☃ and ü"
	same "$(sql "SELECT count(title) FROM pawl.tasks" "latin_$$")" 1
}

@test "postgres: a server that is too old is refused" {
	python3 - "$work/port" <<'PY' &
import socket, struct, sys
s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen(8)
open(sys.argv[1] + ".new", "w").write(str(s.getsockname()[1]))
import os; os.rename(sys.argv[1] + ".new", sys.argv[1])
def msg(kind, body): return kind + struct.pack("!I", len(body) + 4) + body
for _ in range(2):
    c, _a = s.accept()
    while True:
        n = struct.unpack("!I", c.recv(4))[0]
        body = c.recv(n - 4)
        if struct.unpack("!I", body[:4])[0] in (80877103, 80877104): c.sendall(b"N"); continue
        break
    c.sendall(msg(b"R", struct.pack("!I", 0)) + msg(b"S", b"server_version\x0012.1\0") + msg(b"S", b"client_encoding\0UTF8\0")
        + msg(b"K", struct.pack("!II", 1, 1)) + msg(b"Z", b"I"))
    c.recv(1000); c.close()
PY
	until [ -e "$work/port" ]; do sleep 0.05; done
	call 40 init --store "postgres://u@127.0.0.1:$(cat "$work/port")/db"
	complains "PostgreSQL 12" "too old" "13"
	kill $! 2>/dev/null || :
}

@test "postgres: a server that is not there, several hosts, one of them dead" {
	call 30 init --store "postgres://u@127.0.0.1:1/db"
	complains "127.0.0.1:1" "database db"
	start
	call 0 list --store "postgres://tester@127.0.0.1:1,127.0.0.1:$pg_port/postgres?schema=$schema"
}

@test "postgres: a config of a repository that names a server needs trust" {
	start
	git init -q clone
	mkdir clone/.pawl
	printf 'store = %s\n' "$uri" >clone/.pawl/config
	cd clone
	call 40 list
	complains "pawl trust"
}

@test "postgres: another process holds the queue: busy, and who it is" {
	start
	mkfifo "$work/go"
	"$pg_bin/psql" -X -q -h 127.0.0.1 -p "$pg_port" -U tester postgres <"$work/go" >/dev/null &
	exec 7>"$work/go"
	echo "SET application_name='pawl[1] carl'; BEGIN; SELECT * FROM \"$schema\".queue FOR UPDATE;" >&7
	until [ "$(sql "SELECT count(*) FROM pg_locks WHERE relation='\"$schema\".queue'::regclass")" != 0 ]; do sleep 0.05; done
	call 30 create x --timeout 300ms
	complains carl
	ask 0 list
	is '.tasks | length == 0'
	echo 'ROLLBACK;' >&7
	exec 7>&-
	call 0 create x
}

@test "postgres: a killed session does not lose the process" {
	start
	coproc follow { exec "$PAWL" log --follow --porcelain 2>/dev/null; }
	until [ "$(sql "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'")" != 0 ]; do sleep 0.05; done
	sql "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'pawl%'"
	id=$(new later)
	while read -r -t 20 line <&"${follow[0]}"; do
		[[ $line != *"$id"* ]] || break
	done
	echo "$line"
	[[ $line == *"$id"* ]]
	kill "$follow_PID" 2>/dev/null || :
}

@test "postgres: log --follow continues after a session that was killed while it read" {
	start
	coproc follow { exec "$PAWL" log --follow --porcelain 2>/dev/null; }
	until [ "$(sql "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'")" != 0 ]; do sleep 0.05; done
	mkfifo "$work/go"
	"$pg_bin/psql" -X -q -h 127.0.0.1 -p "$pg_port" -U tester postgres <"$work/go" >/dev/null &
	exec 7>"$work/go"
	echo "BEGIN; LOCK TABLE \"$schema\".log;" >&7
	reads="FROM pg_stat_activity WHERE application_name LIKE 'pawl%' AND wait_event_type='Lock'"
	until [ "$(sql "SELECT count(*) $reads")" != 0 ]; do sleep 0.05; done
	sql "SELECT pg_terminate_backend(pid) $reads"
	exec 7>&-
	id=$(new later)
	while read -r -t 20 line <&"${follow[0]}"; do
		[[ $line != *"$id"* ]] || break
	done
	[[ $line == *"$id"* ]]
	kill "$follow_PID"
}

@test "postgres: a connection that is cut at any point: nothing is lost, and nothing happens twice" {
	start
	proxy
	new first
	for ((n = 1; n <= cuts; n++)); do
		for point in start lock before after within; do
			cut "$point" create "$point $n" --request-id "r-$point-$n"
			made=$(sql "SELECT count(*) FROM \"$schema\".tasks WHERE title='$point $n'")
			case $point-$(how)-$made in
			start-no-0 | lock-made-1) ;;
			before-unknown-0 | after-unknown-1 | within-unknown-1) ;;
			*)
				echo "$point: $(how), and $made tasks: $output"
				return 1
				;;
			esac
			ask 0 create "$point $n" --request-id "r-$point-$n"
			same "$(sql "SELECT count(*) FROM \"$schema\".tasks WHERE title='$point $n'")" 1
		done
	done
	same "$(sql "SELECT count(*),max(seq) FROM \"$schema\".events")" "$((5 * cuts + 1))|$((5 * cuts + 1))"
	call 0 doctor
}

@test "postgres: a claim whose answer is lost is recognised" {
	start
	proxy
	for point in before after within; do
		id=$(new "$point")
		other=$(new "other than $point")
		cut "$point" next --claim --agent ann
		same "$(how)" unknown
		ask 0 next --claim --agent ann --store "$through"
		is ".task.id == \"$id\""
		pawl done "$id" --agent ann --store "$through"
		same "$(sql "SELECT count(*) FROM \"$schema\".events WHERE task='$id' AND kind='claimed'")" 1
		pawl remove "$other"
	done
}

@test "postgres: a server that never answers the lock: not applied" {
	start
	proxy
	echo lock >"$work/cuts"
	ask 30 create never --store "$through"
	is '.error.applied == "no"'
	rm "$work/cuts"
	ask 0 list --all
	is '.tasks | length == 0'
}

@test "postgres: sessions that are terminated in the middle leave nothing half-done" {
	start
	"$PAWL" torture --agents 4 --tasks 10 --seconds 20 --calls $((kills * 40)) --stops 0 >"$work/torture" 2>&1 3>&- &
	torture=$!
	terminated=0
	while kill -0 "$torture" 2>/dev/null; do
		n=$(sql "SELECT count(pg_terminate_backend(pid)) FROM (SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'pawl[%] torture agent%' AND xact_start IS NOT NULL LIMIT 1) x")
		terminated=$((terminated + n))
	done
	wait "$torture" || {
		cat "$work/torture"
		return 1
	}
	echo "$terminated sessions terminated"
	[ "$terminated" -gt 0 ]
	call 0 doctor
}

@test "postgres: a connection is refused when the server has no room" {
	start
	sql "CREATE ROLE $role LOGIN CONNECTION LIMIT 1; GRANT USAGE ON SCHEMA \"$schema\" TO $role; GRANT ALL ON ALL TABLES IN SCHEMA \"$schema\" TO $role"
	mkfifo "$work/hold"
	"$pg_bin/psql" -X -q -h 127.0.0.1 -p "$pg_port" -U "$role" postgres <"$work/hold" >/dev/null 3>&- &
	exec 7>"$work/hold"
	until [ "$(sql "SELECT count(*) FROM pg_stat_activity WHERE usename='$role'")" = 1 ]; do sleep 0.05; done
	ask 30 create x --store "${uri/tester/$role}"
	is '.error.applied == "no"'
	exec 7>&-
	until [ "$(sql "SELECT count(*) FROM pg_stat_activity WHERE usename='$role'")" = 0 ]; do sleep 0.05; done
	call 0 create x --store "${uri/tester/$role}"
}

@test "postgres: a process that is stopped in a change loses it after five seconds" {
	[ "$cuts" -gt 10 ] || skip "in soak: it waits"
	start
	proxy
	echo hold >"$work/cut"
	"$PAWL" create held --store "$through" --request-id held >"$work/held" 2>&1 3>&- &
	held=$!
	until [ "$(sql "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'pawl[%' AND state='idle in transaction'")" != 0 ]; do sleep 0.05; done
	call 30 create x --timeout 200ms
	complains "changes the queue"
	call 0 create x --timeout 60s
	wait "$held"
	same "$(sql "SELECT count(*) FROM \"$schema\".tasks")" 2
}

@test "postgres: a read-only server refuses changes and answers reads" {
	start
	new "a task"
	sql "CREATE ROLE $role LOGIN; GRANT ALL ON SCHEMA \"$schema\" TO $role; GRANT ALL ON ALL TABLES IN SCHEMA \"$schema\" TO $role; ALTER ROLE $role SET default_transaction_read_only=on"
	ask 0 list --store "${uri/tester/$role}"
	is '.tasks | length == 1'
	ask 30 create x --store "${uri/tester/$role}"
	is '.error.applied == "no"'
	[[ $output == *read-only* && $output == *primary* ]]
}

@test "postgres: a standby is passed over, and takes over when promoted" {
	start
	id=$(new "before the failover")
	server standby -R
	both="postgres://tester@127.0.0.1:$port,127.0.0.1:$pg_port/postgres?schema=$schema"
	alone="postgres://tester@127.0.0.1:$port/postgres?schema=$schema"
	ask 0 create second --store "$both"
	# version 13 does not say by itself that it is a standby
	echo 13 >"$work/version"
	proxy "$port"
	ask 0 create third --store "postgres://tester@127.0.0.1:$(cat "$work/port"),127.0.0.1:$pg_port/postgres?schema=$schema"
	ask 30 create third --store "$alone"
	is '.error.applied == "no"'
	[[ $output == *read-only* ]]
	# a server that does not say it may be the primary
	echo role >"$work/cuts"
	ask 30 create third --store "postgres://tester@127.0.0.1:1,127.0.0.1:$(cat "$work/port")/postgres?schema=$schema"
	is '.error.applied == "no"'
	[[ $output == *"does not say"* && $output != *"none of the hosts"* ]]
	until [ "$("$PAWL" list --store "$alone" --porcelain | grep -c "^  t")" -eq 3 ]; do sleep 0.05; done
	call 0 doctor --store "$both"
	says "is a standby" "no standby is synchronous"
	call 0 doctor
	says "1 standbys, none of them synchronous"
	"$pg_run" "$pg_bin/pg_ctl" -s -w -D "$pg_dir/standby" promote
	call 0 claim "$id" --store "$alone"
	# the first server is gone: the URI with both finds the new primary
	call 0 list --store "${both/$pg_port/1}"
	server_end standby
}

# create_all NAME: creates 15 tasks, each call until it succeeds
create_all() {
	local n
	for ((n = 1; n <= 15; n++)); do
		until "$PAWL" create "$1 $n" --request-id "$1-$n" --store "$alone" >/dev/null 2>&1; do
			[ ! -e "$work/stop" ] || return 1
		done
	done
}

@test "postgres: a server that is killed and recovers: nothing is lost, and nothing happens twice" {
	start
	server victim
	alone=${uri/:$pg_port/:$port}
	for ((n = 1; n <= kills / 5; n++)); do
		makers=()
		for name in a b c; do
			create_all "$name$n" 3>&- &
			makers+=($!)
		done
		until [ "$("$PAWL" list --all --porcelain --store "$alone" 2>/dev/null | grep -c "^  t")" -gt $((n * 45 - 30)) ]; do
			kill -0 "${makers[0]}" 2>/dev/null || break
		done
		kill -9 "$(head -1 "$pg_dir/victim/postmaster.pid")"
		until server_up victim; do sleep 0.05; done
		wait "${makers[@]}"
	done
	sql_here="$pg_bin/psql -X -q -At -h 127.0.0.1 -p $port -U tester postgres -c"
	same "$($sql_here "SELECT count(*),count(DISTINCT title) FROM \"$schema\".tasks")" "$((kills / 5 * 45))|$((kills / 5 * 45))"
	same "$($sql_here "SELECT count(*),max(seq) FROM \"$schema\".events")" "$((kills / 5 * 45))|$((kills / 5 * 45))"
	call 0 doctor --store "$alone"
	server_end victim
}

@test "postgres: a service file and libpq's variables name the server" {
	printf '[work]\nhost=127.0.0.1\nport=%s\ndbname=postgres\nuser=tester\n' "$pg_port" >"$HOME/services"
	PGSERVICEFILE=$HOME/services call 0 init --store "postgres://?service=work&schema=$schema"
	PGHOST=127.0.0.1 PGPORT=$pg_port PGUSER=tester PGDATABASE=postgres call 0 list --store "postgres://?schema=$schema"
}

# trips N WORD...: the change of this call takes N round trips
trips() {
	local n=$1
	shift
	: >"$work/trips"
	call 0 "$@" --store "$through"
	same "$* $(paste -sd+ "$work/trips")" "$* $n"
}

@test "postgres: a change takes two round trips" {
	start
	proxy
	call 0 create first --store "$through" # names the queue
	trips 2 create "with an id" --id a
	trips 2 create "part" --id b --parent a
	trips 3 create "after" --id c --depends b # also the sub-tasks of b: no cycle may arise
	trips 2 create "repeatable" --id d --request-id r
	trips 2 claim b --agent ann
	trips 2 heartbeat b --agent ann
	trips 2 comment b "a text"
	trips 2 done b --agent ann
	trips 2 reopen b --reason "not complete"
	call 0 claim b --agent ann
	trips 2 fail b --agent ann --reason "it cannot work"
	trips 2 retry b
	trips 2 status b canceled --reason "not needed"
	call 0 reopen b --reason "needed after all"
	trips 2 update b --parent ""
	trips 2 next --claim --agent bob
	trips 2 done t1 --agent bob --claim-next
	trips 2 update c --priority 5
	trips 2 cancel d --reason "not needed"
	trips 4 create "with a new id" # the counter, then the id that it gives
}

@test "postgres: an older schema is left alone, and the message says how to bring the tasks over" {
	start
	new "of an older pawl"
	sql "UPDATE \"$schema\".about SET version=1"
	for words in list init "create x"; do
		# shellcheck disable=SC2086 # words of a command
		call 40 $words
		complains "older pawl (0.1)" "$schema" "pawl export -o tasks.json" "pawl import tasks.json"
	done
	same "$(sql "SELECT version FROM \"$schema\".about")" 1
	same "$(sql "SELECT count(*) FROM \"$schema\".tasks")" 1
}

@test "postgres: a change that waits notices that a newer pawl changed the schema" {
	start
	mkfifo "$work/go"
	"$pg_bin/psql" -X -q -h 127.0.0.1 -p "$pg_port" -U tester postgres <"$work/go" >/dev/null 3>&- &
	exec 7>"$work/go"
	echo "BEGIN; LOCK TABLE \"$schema\".queue IN EXCLUSIVE MODE;" >&7
	until [ "$(sql "SELECT count(*) FROM pg_locks WHERE relation='\"$schema\".queue'::regclass AND granted")" != 0 ]; do sleep 0.05; done
	"$PAWL" create x --timeout 60s >"$work/out" 2>&1 3>&- 7>&- &
	waits=$!
	until [ "$(sql "SELECT count(*) FROM pg_locks WHERE relation='\"$schema\".queue'::regclass AND NOT granted")" != 0 ]; do sleep 0.05; done
	echo "UPDATE \"$schema\".about SET version=99; COMMIT;" >&7
	exec 7>&-
	not wait "$waits"
	grep -q "newer" "$work/out"
	same "$(sql "SELECT count(*) FROM \"$schema\".record")" 0
}

#!/usr/bin/env bats
# Locks of the whole queue: lock acquire @maintenance, lock typed, and their effect on other agents.

load common

other=11111111-1111-4111-8111-111111111111

@test "lock typed: holder, reason, since when" {
	call 0 lock typed
	says "no agent has locked the whole queue"
	pawl lock acquire @maintenance --ttl 10m -a boss -d "moving the disk"
	call 0 lock typed
	says @maintenance boss "lock acquire" tester "$(uname -n)" unknown
	ask 0 lock typed
	is --arg h "$(uname -n)" '.count == 1 and (.locks[0] | .lock == "@maintenance" and .holder == "boss"
		and .operation == "lock acquire" and .user == "tester" and .host == $h and .fence == 1
		and .description == "moving the disk" and .live and .ttl == 600 and (.acquired_at | length > 0))'
	lines 0 lock typed
	[[ $output == *"lock=@maintenance"* ]]
	call 0 lock typed -q
	exactly @maintenance
}

@test "lock acquire @maintenance: changes of others fail and name the holder" {
	new x
	token=$(token_of t1 -a al)
	ask 0 lock acquire @maintenance --ttl 10m -a boss
	is --arg u "^$uuid\$" '(.lock.token | test($u)) and .lock.fence == 1 and .task.id == "@maintenance"'
	unchanged 30 create y -a al --timeout 0
	complains "@maintenance is held by boss" tester "pawl lock typed" "pawl lock break @maintenance"
	ask 30 done t1 -a al --timeout 50ms
	is '.error.applied == "no" and (.error.message | test("boss.*waited 50ms"))'
	call 0 heartbeat t1 -a al
	call 0 list
	call 0 show t1
	call 0 lock status t1
	call 0 lock release @maintenance -a boss
	says "@maintenance"
	call 0 done t1 -a al --token "$token"
}

@test "the lock does not keep out its holder and the programs that its holder starts" {
	pawl lock acquire @maintenance -a boss --token "$other"
	call 0 create mine -a boss --timeout 0
	call 30 create other -a al --timeout 0
	PAWL_LOCK_TOKEN=$other call 0 create other -a al --timeout 0
	PAWL_LOCK_TOKEN=22222222-2222-4222-8222-222222222222 call 30 create more -a al --timeout 0
	call 20 lock acquire @maintenance -a boss --timeout 0
	call 0 lock acquire @batch -a boss --timeout 0
}

@test "waiting calls are woken when it is released" {
	pawl lock acquire @maintenance -a boss --ttl 10m
	"$PAWL" create waits -a al --timeout 60s >made 2>&1 3>&- &
	waiter=$!
	sleep 0.2
	same "" "$(cat made)"
	pawl lock release @maintenance -a boss
	wait "$waiter"
	[[ $(cat made) == *t1* ]]
}

@test "it is a lease: renewed by a heartbeat, and expires" {
	short_leases
	pawl lock acquire @write -a boss --ttl 0.3s
	call 0 heartbeat @write -a boss --ttl 10m
	call 30 create x -a al --timeout 0
	pawl lock break @write --reason "that was long enough"
	call 0 create x -a al --timeout 0
	call 21 heartbeat @write -a boss
	pawl lock acquire @write -a boss --ttl 0.1s
	call 0 create y -a al --timeout 20s
	ask 0 log @write
	is '[.events[].event] == ["locked", "lock_broken", "locked"]'
	call 0 lock cleanup
	says @write
}

# want STEP: as al, without waiting; prints the exit code. A step that succeeded is undone.
want() {
	local rc=0 undo=()
	case $1 in
	change) set -- create single ;;
	batch) set -- batch add one two ;;
	"batch -k") set -- batch add -k one two ;;
	"batch update") set -- batch update b1 -p 3 ;;
	"batch remove") set -- batch remove none -k ;;
	import) set -- import tasks.json --update ;;
	archive) set -- archive ;;
	settings) set -- config set max_abandoned 6 ;;
	"lock cleanup") set -- lock cleanup ;;
	clear) set -- clear --force ;;
	restore) set -- restore backup.pawl --force ;;
	@*)
		undo=(lock release "$1")
		set -- lock acquire "$1"
		;;
	esac
	"$PAWL" "$@" -a al --timeout 0 >said 2>&1 || rc=$?
	[ "$rc" -ne 0 ] || [ "${#undo[@]}" -eq 0 ] || "$PAWL" "${undo[@]}" -a al -q
	# the task "none" does not exist: a call that gets this far was not refused by a lock
	[ "$*" != "batch remove none -k" ] || [ "$rc" -ne 44 ] || rc=0
	echo "$rc"
}

# steps_of COLUMN: the calls that a column of the table is about
steps_of() {
	case $1 in
	change) echo change ;;
	"batch, import, archive") printf '%s\n' batch "batch -k" "batch update" "batch remove" import archive ;;
	settings) echo settings ;;
	"lock cleanup, clear, restore") printf '%s\n' "lock cleanup" clear restore ;;
	@*) echo "$1" ;;
	*) echo "unknown column $1" ;;
	esac
}

# table: the rows of the table of doc/typed-locks.md, without the quotes around names
table() {
	sed -n '/^| held | /,/^$/p' "$PAWL_SOURCE/doc/typed-locks.md" | grep '^| [^-]' | tr -d '`'
}

@test "which excludes which: every field of the table in doc/typed-locks.md" {
	local -a columns fields
	local row i step got fields_seen=0
	new b1 --id b1
	"$PAWL" export -o tasks.json -q
	"$PAWL" backup backup.pawl -q
	while IFS= read -r row; do
		IFS='|' read -ra fields <<<"$row"
		for i in "${!fields[@]}"; do
			fields[i]=${fields[i]# }
			fields[i]=${fields[i]% }
		done
		if [ "${fields[1]}" = held ]; then
			columns=("${fields[@]}")
			continue
		fi
		pawl lock acquire "${fields[1]}" -a boss --ttl 10m
		for ((i = 2; i < ${#columns[@]}; i++)); do
			while IFS= read -r step; do
				got=$(want "$step")
				echo "${fields[1]} held, $step: $got (${fields[i]}): $(cat said)"
				case ${fields[i]} in
				"continues") [ "$got" -eq 0 ] ;;
				waits)
					[ "$got" -eq "$([ "${step:0:1}" = @ ] && echo 20 || echo 30)" ]
					grep -qi "${fields[1]} is held by boss" said
					;;
				*) false ;;
				esac
				fields_seen=$((fields_seen + 1))
			done < <(steps_of "${columns[i]}")
		done
		pawl lock release "${fields[1]}" -a boss
		pawl list # a clear that continued would have removed b1 as well
	done < <(table)
	same "$fields_seen" $((4 * 15))
	same "$("$PAWL" list --json --limit 0 | jq '[.tasks[] | select(.id == "b1")] | length')" 1
}

@test "which excludes which: nothing of it with nobody's lock, everything with lock.typed = off" {
	needs_local "its settings are those of the server"
	local step
	new b1 --id b1
	"$PAWL" export -o tasks.json -q
	"$PAWL" backup backup.pawl -q
	pawl lock acquire @config -a boss
	export PAWL_LOCK_TYPED=off
	for step in change batch "batch -k" import archive settings "lock cleanup" clear restore @write @batch; do
		got=$(want "$step")
		echo "$step: $got $(cat said)"
		[ "$got" -ge 20 ]
		grep -q "@config is held by boss" said
	done
	pawl lock release @config -a boss
	for step in change batch "batch -k" "batch update" "batch remove" import archive settings "lock cleanup" clear restore \
		@write @batch @config @maintenance; do
		same "$(want "$step")" 0
	done
}

@test "the holder of @batch makes batches, imports, clears and restores" {
	new b1 --id b1
	"$PAWL" export -o tasks.json -q
	"$PAWL" backup backup.pawl -q
	pawl lock acquire @batch -a boss --ttl 10m
	seq -f 'task %g' 1 300 >titles
	call 0 batch add -F titles -a boss --timeout 0
	call 0 batch add one two -k -a boss --timeout 0
	call 0 batch update b1 -p 4 -a boss --timeout 0
	call 0 import tasks.json --update -a boss --timeout 0
	call 0 archive -a boss --timeout 0
	call 0 lock cleanup -a boss --timeout 0
	call 0 clear --force -a boss --timeout 0
	call 0 restore backup.pawl --force -a boss --timeout 0
	ask 0 list
	is '.total == 1'
	call 0 heartbeat @batch -a boss
}

@test "batch, import, clear and restore wait for another's @batch, and change nothing when it stays" {
	new b1 --id b1
	"$PAWL" export -o tasks.json -q
	"$PAWL" backup backup.pawl -q
	pawl lock acquire @batch -a boss --ttl 10m -d "moving tasks"
	unchanged 30 batch add one two -a al --timeout 50ms
	complains "@batch is held by boss" "waited 50ms" "pawl lock break @batch"
	local began=$EPOCHREALTIME
	ask 30 batch add one two three four -k -a al --timeout 1s
	[ $((${EPOCHREALTIME/./} - ${began/./})) -lt 2000000 ]
	is '.error.applied == "no" and (.results | length == 4 and all(.code == "API_ERROR"))'
	unchanged 30 import tasks.json --update -a al --timeout 50ms
	complains "@batch is held by boss" "waited 50ms"
	unchanged 30 clear --yes -a al --timeout 50ms
	unchanged 30 restore backup.pawl --force -a al --timeout 50ms
	unchanged 30 archive -a al --timeout 50ms
	PAWL_LOCK_BATCH_TIMEOUT=50ms call 30 batch add one -k -a al
	complains "waited 50ms"
	"$PAWL" batch add one two -q -a al --timeout 60s >made 2>&1 3>&- &
	first=$!
	"$PAWL" import tasks.json --update -a al --timeout 60s >imported 2>&1 3>&- &
	second=$!
	sleep 0.3
	same "" "$(cat made imported)"
	pawl lock release @batch -a boss
	wait "$first"
	wait "$second"
	same "$(wc -l <made)" 2
	grep -q "1 task read, 1 updated" imported
}

@test "migrate: a target that somebody has locked is not empty" {
	case ${PAWL_TEST_STORE-} in git:*) skip "sqlite: is as good a target" ;; esac
	new x
	pawl init --store sqlite:target.db || PAWL_STORE=sqlite:target.db pawl init
	pawl lock acquire @batch -a boss --store sqlite:target.db
	call 20 migrate "$(store_uri)" sqlite:target.db -a al
	ask 0 list --store sqlite:target.db
	is '.total == 0'
}

@test "only lock commands take one, and only those there are" {
	unchanged 2 lock acquire @nothing
	complains "@write, @batch, @config, @maintenance and @sync"
	call 2 claim @maintenance
	call 2 show @maintenance
	call 2 remove @write
	call 1 lock check @maintenance
	call 0 lock status @maintenance
	says "is free"
	call 0 lock release @maintenance
	lines 0 lock acquire @maintenance -a al
	exactly "LOCK_ACQUIRED: task=@maintenance agent=al"
	lines 20 lock acquire @maintenance -a bo --timeout 0
}

@test "lock status: is its process alive, dead or unknown?" {
	new x
	new y
	sleep 300 3>&- &
	process=$!
	pawl claim t1 --pid "$process"
	pawl lock acquire @maintenance --pid "$process" -a boss
	call 0 lock status t1
	says "process $process on $(uname -n) is alive"
	ask 0 lock status @maintenance
	is '.lock.process == "alive"'
	ask 0 lock list
	is '.locks[0].process == "alive"'
	kill "$process"
	wait "$process" || true
	call 0 lock status t1
	says "is dead" "pawl lock cleanup"
	ask 0 lock typed
	is '.locks[0].process == "dead"'
	call 0 lock cleanup -a boss
	says t1 @maintenance
	pawl lock acquire t2
	ask 0 lock status t2
	is '.lock.process == "unknown"'
	call 0 lock status t2
	says "the lock names no process (--pid), so pawl cannot tell whether its holder is alive"
	call 2 lock acquire t2 --pid 999999999
}

@test "@config: settings can be read but not changed" {
	pawl lock acquire @config -a boss
	call 30 config set lease 5m -a al --timeout 0
	complains "@config is held by boss"
	call 30 config reset -a al --timeout 0
	call 0 config get lease
	call 0 config set lease 5m -a boss
	pawl lock release @config -a boss
	call 0 config set lease 6m -a al
	ask 0 lock typed
	is '.count == 0'
	ask 0 log @config
	is '.events | map(.text) | index("config set") != null'
	pawl emergency on --reason fire
	ask 30 config set lease 7m
	is '.error.message | test("fire")'
	call 0 config set --user color never
	pawl emergency off
	same "$("$PAWL" config get -q lease)" 6m
}

#!/usr/bin/env bats
# lock health: the counters, the score, its reasons and its advice

load common

@test "lock health: changes are counted by operation" {
	new x
	new y
	pawl claim t1 -a al
	call 20 claim t1 -a bo
	ask 0 lock health
	is '.health | .counting and .all.acquired == 4 and .all.failed == 0 and (.score == 100 or .load > 2)
		and ([.operations[] | {(.operation): .acquired}] | add) == {"create": 2, "claim": 2}
		and (.operations[0] | .wait_mean <= .wait_max and .hold_mean > 0 and .hold_max >= .hold_mean)'
	call 0 lock health
	says "/100" OPERATION "WAIT P95" create claim all
	lines 0 lock health
	[[ $output == "SUCCESS: score="* ]]
	call 0 lock health -q
	[[ $output =~ ^[0-9]+$ ]]
}

@test "lock health: nothing is counted if it is switched off" {
	needs_local "its settings are those of the server"
	PAWL_HEALTH_MONITORING=off new x
	ask 0 lock health
	is '.health.all.acquired == 0'
	pawl config set health.monitoring off
	new y
	ask 0 lock health
	is '.health.score >= 80 and ([.health.operations[] | select(.operation == "create")] == [])'
}

@test "lock health: failures cost points and are named" {
	needs_local "it breaks or watches the store itself"
	new x
	pawl lock acquire @maintenance -a boss
	for _ in 1 2 3 4; do
		call 30 create y -a al --timeout 0
	done
	ask 0 lock health
	is '.health | .all.failed == 4 and .recent_failures == 4 and .score <= 60
		and (.reasons[0] | .points == -40 and (.text | test("4 changes failed")))
		and (.warnings[0] | test("66.66 % of all changes failed"))'
	call 0 lock health
	says "-40" "warning:" "advice: "
}

# hold_by_dead_process: al holds t1, and the process that the lock names is dead
hold_by_dead_process() {
	sleep 300 3>&- &
	process=$!
	pawl claim t1 --pid "$process" -a al
	kill -9 "$process"
	wait "$process" || true
}

@test "lock health: stale locks, and the effect of health.auto" {
	needs_local "its settings are those of the server"
	new x
	hold_by_dead_process
	ask 0 lock health
	is '.health | .stale_locks == 1 and (.score == 70 or .load > 2) and (.advice[0] | test("pawl lock cleanup"))'
	pawl lock acquire @maintenance -a boss
	for _ in 1 2 3 4; do
		call 30 create y -a al --timeout 0
	done
	pawl lock release @maintenance -a boss
	ask 0 lock health
	is '.health | (.score == 30 or .score == 10 and .load > 2) and (has("cleaned_up") | not)'
	call 0 lock status t1
	says "is locked by al"
	pawl config set health.auto on
	ask 0 lock health
	is '.health | .cleaned_up == ["t1"] and .stale_locks == 0 and (.score == 60 or .load > 2)'
	call 0 lock status t1
	says "is free"
	ask 0 emergency status
	is '.emergency.on | not'
}

# A stale lock and four failed changes: a score of 30, or less on a busy machine.
degrade() {
	hold_by_dead_process
	pawl lock acquire @maintenance -a boss
	for _ in 1 2 3 4; do
		call 30 create y -a al --timeout 0
	done
}

@test "health.auto: a change of a degraded queue cleans up stale locks first" {
	new x
	degrade
	pawl lock release @maintenance -a boss
	pawl create one
	call 0 lock status t1
	says "is locked by al"
	QUEUE_LOCK_HEALTH_CHECK=true call 0 create two
	call 0 lock status t1
	says "is free"
	ask 0 log t1 --kind cleaned_up
	is '.events | length == 1'
}

@test "health.auto: while the queue is degraded, a change waits at most 3 s" {
	needs_local "it breaks or watches the store itself"
	new x
	degrade
	pawl config set lock.cli_timeout 10m --agent boss
	# last: with it, any change of boss would clean up the stale lock
	pawl config set health.auto on --agent boss
	# without the cut it would wait for ten minutes
	rc=0
	timeout 60 "$PAWL" create y -a al 2>err || rc=$?
	same "$rc" 30
}

@test "health.auto: a caller that names its own timeout keeps it" {
	needs_local "it breaks or watches the store itself"
	new x
	degrade
	pawl config set health.auto on --agent boss
	rc=0
	timeout 6 "$PAWL" create y -a al --timeout 10m 2>err || rc=$?
	same "$rc" 124
}

# operation NAME: its [acquired, failed]
operation() {
	"$PAWL" lock health --json | jq -c --arg name "$1" '[.health.operations[] | select(.operation == $name) | .acquired, .failed]'
}

@test "lock health: batch, import, clear and restore are counted, each as one call" {
	needs_local "the server does not count calls that wait"
	call 0 batch add one two three
	same "$(operation batch)" "[1,0]"
	same "$(operation create)" "[]"
	call 44 batch remove t1 t9 # refused, but it had its turn
	same "$(operation batch)" "[2,0]"
	pawl export -o tasks.json
	pawl backup b
	pawl clear --yes
	same "$(operation clear)" "[1,0]"
	pawl import tasks.json
	same "$(operation import)" "[1,0]"
	call 20 import tasks.json
	same "$(operation import)" "[2,0]"
	pawl restore b --force
	same "$(operation restore)" "[1,0]"
	ask 0 lock health
	is '[.health.operations[] | select(.operation | IN("batch", "import", "clear", "restore"))]
		| length == 4 and all(.held == .acquired and .hold_mean > 0 and .hold_max >= .hold_mean and .wait_max >= .wait_mean)'
	is '.health | .all.acquired == 6 and .refused.count == 0'
	call 0 lock health
	says batch import clear restore
}

@test "lock health: batch, import, clear and restore that are kept out count as failed" {
	needs_local "the server does not count calls that wait"
	pawl batch add one two
	pawl export -o tasks.json
	pawl backup b
	pawl lock acquire @maintenance -a boss
	call 30 batch add three -a al --timeout 0
	call 30 import tasks.json --skip -a al --timeout 0
	call 30 clear --yes -a al --timeout 0
	call 30 restore b --force -a al --timeout 0
	same "$(operation batch) $(operation import) $(operation clear) $(operation restore)" "[1,1] [0,1] [0,1] [0,1]"
	ask 0 lock health
	is '.health | .recent_failures == 4 and .refused.count == 0'
}

@test "lock health: an acquisition that is refused leaves a trace, and nothing in the store" {
	new x
	pawl claim t1 -a al
	before=$(snapshot)
	ask 0 lock health
	is '.health.refused == {"count": 0}'
	call 20 claim t1 -a bo
	ask 0 lock health
	is '.health.refused | .count == 1 and (.last | .task == "t1" and .holder == "al" and .agent == "bo"
		and .operation == "claim" and (.at | test("^20")))'
	call 20 lock acquire t1 -a cy
	call 20 status t1 in-progress -a di
	ask 0 lock health
	is '.health.refused | .count == 3 and .last.agent == "di" and .last.holder == "al"'
	call 0 lock health
	says "3 acquisitions were refused" "status by di" "t1 was held by al"
	same "$(snapshot)" "$before"
	# these are not acquisitions, or nobody is in the way
	call 20 update t1 --title y -a di
	call 10 next --claim -a di
	call 21 heartbeat t1 -a di
	ask 0 lock health
	is '.health.refused.count == 3'
}

@test "lock health: so does one that a lock of the whole queue kept out until its time was over" {
	needs_local "the server does not count calls that wait"
	new x
	pawl lock acquire @maintenance -a boss
	call 20 lock acquire @batch -a al --timeout 0.3
	ask 0 lock health
	is '.health.refused | .count == 1 and (.last | .task == "@maintenance" and .holder == "boss" and .agent == "al"
		and .operation == "lock acquire")'
	call 30 next --claim -a bo --timeout 0
	ask 0 lock health
	is '.health | .refused.count == 2 and .refused.last.operation == "take" and .all.failed == 2'
}

@test "lock health: nothing is said of refusals if monitoring is off" {
	new x
	pawl claim t1 -a al
	pawl config set health.monitoring off
	call 20 claim t1 -a bo
	ask 0 lock health
	is '.health.refused == {"count": 0}'
}

@test "lock health: a trace that is damaged is not shown, the number stays" {
	needs_sqlite
	new x
	pawl claim t1 -a albatross
	call 20 claim t1 -a bo
	ask 0 lock health
	is '.health.refused.last.holder == "albatross"'
	at=$(grep -abo albatross .pawl/queue.db-gate | tail -n 1 | cut -d: -f1)
	printf X | dd of=.pawl/queue.db-gate bs=1 seek="$at" conv=notrunc status=none
	ask 0 lock health
	is '.health.refused == {"count": 1}'
	call 20 claim t1 -a cy
	ask 0 lock health
	is '.health.refused | .count == 2 and .last.agent == "cy"'
}

# meets_fault COMMAND...: it waits for a lock, and then the store fails. On a slow machine the lease may expire before the command
# begins to wait, and it succeeds.
meets_fault() {
	local ttl
	for ttl in 1s 2s 4s 8s 16s; do
		pawl lock acquire @maintenance -a boss --ttl $ttl
		! call 30 "$@" -a al --store "$(faulty modify:2:busy)" || return 0
	done
	return 1
}

@test "lock health: a call that waited for a lock and then met a fault of the store counts as failed" {
	needs_local "it breaks or watches the store itself"
	new x
	pawl export -o tasks.json
	pawl backup b
	meets_fault import tasks.json --skip
	meets_fault restore b --force
	same "$(operation import | jq '.[1]') $(operation restore | jq '.[1]')" "1 1"
}

#!/usr/bin/env bats
# lock health: the counters, the score, its reasons and its advice

load common

@test "lock health: what was done is counted, by operation" {
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
	PAWL_HEALTH_MONITORING=off new x
	ask 0 lock health
	is '.health.all.acquired == 0'
	pawl config set health.monitoring off
	new y
	ask 0 lock health
	is '.health.score >= 80 and ([.health.operations[] | select(.operation == "create")] == [])'
}

@test "lock health: failures cost points and are named" {
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

@test "lock health: stale locks, and what health.auto does about them" {
	new x
	sleep 300 3>&- &
	process=$!
	pawl claim t1 --pid "$process" -a al
	kill "$process"
	wait "$process" || true
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

#!/usr/bin/env bats
# Time: expiring leases, delays, waiting, following.

load common

setup() {
	fresh
	queue
	short_leases
}

@test "a task whose lease expired becomes eligible by itself" {
	new x
	pawl claim t1 -a al --ttl 0.2s
	lapsed t1
	call 21 heartbeat t1 -a al
	complains "expired"
	ask 0 next
	is '.task.id == "t1"'
	ask 0 next --claim -a bo
	is '.task.id == "t1" and .lock.fence == 2 and .task.abandoned == 1 and .task.attempts == 2
		and .task.last_holder == "bo"'
	call 21 done t1 -a al
	call 0 done t1 -a bo
	ask 0 log t1
	is '[.events[].event] | any(contains("abandon"))'
}

@test "abandoned = keep: it waits for a person instead" {
	pawl config set abandoned keep
	new x
	pawl claim t1 -a al --ttl 0.1s
	lapsed t1
	call 10 next --claim -a bo
	ask 0 next --explain
	is '.candidates[0].eligible == false'
	call 0 claim t1 -a bo
}

@test "max_abandoned: to Needs Help" {
	pawl config set max_abandoned 2
	new x
	pawl claim t1 -a al --ttl 0.1s
	lapsed t1
	ask 0 next --claim -a al --ttl 0.1s
	is '.task.abandoned == 1'
	lapsed t1
	call 10 next --claim -a al
	status_is t1 "Needs Help"
	ask 0 show t1
	is '.task.blocker_reason | length > 0'
	pawl unblock t1
	ask 0 claim t1
	is '.task.abandoned == 0'
}

@test "max_abandoned = 0: no limit" {
	pawl config set max_abandoned 0
	new x
	for n in 1 2 3 4 5 6; do
		pawl claim t1 --ttl 0.1s --run "$n"
		lapsed t1
	done
	ask 0 next --claim
	is '.task.abandoned == 6'
}

@test "an expired lock is shown as such" {
	new x
	pawl claim t1 -a al --ttl 0.1s
	lapsed t1
	call 1 lock check t1
	says "expired"
	ask 1 lock check t1
	is '.locked == false and .lock.live == false and .lock.holder == "al"'
	ask 0 lock list
	is '.locks[0].live == false'
	call 0 lock list
	says "expired"
	lines 0 list
	exactly "=== Active Tasks ===
=== Completed Tasks ===
=== Failed Tasks ===
=== Ready Tasks ===
=== Other Tasks ===
  t1: status=\"In Progress\" title=x"
	call 0 lock release t1 -a al
}

@test "a heartbeat keeps it" {
	new x
	pawl claim t1 --ttl 3s
	for _ in 1 2 3 4; do
		sleep 0.9
		call 0 heartbeat t1
	done
	call 10 next --claim -a bo
	call 0 done t1
}

@test "lock release of work In Progress: its agent first, everybody after the last lease's length" {
	new x
	pawl claim t1 -a al --ttl 10m
	pawl lock release t1 -a al
	call 10 next --claim -a bo
	ask 0 claim t1 -a al --ttl 1s
	pawl lock release t1 -a al
	soon "$PAWL" next --claim -a bo -q
	same "$(field t1 .last_holder)" bo
}

@test "not_before and --delay: not offered before its time" {
	pawl create later -i later --delay 1h -p 1000
	pawl create past -i past --not-before 2020-01-01
	call 0 next -q
	exactly past
	pawl create soon -i soon --delay 3s -p 999
	call 0 next -q
	exactly past
	ask 0 next --explain
	is '.candidates[] | select(.id == "soon") | .eligible == false and (.why | length > 0)'
	pawl claim past
	call 0 next --wait 20s -q
	exactly soon
	pawl update later --not-before ""
	call 0 next -q
	exactly later
}

@test "next --wait: NO_TASKS when the time is up, not before" {
	begin=$(date +%s%N)
	call 10 next --wait 0.7s
	[ $((($(date +%s%N) - begin) / 1000000)) -ge 690 ]
	ask 10 next --claim --wait 0.1s
}

@test "next --wait: returns when work appears" {
	"$PAWL" next --claim --wait 30s -q >got 2>&1 3>&- &
	pid=$!
	sleep 0.3
	new x
	begin=$SECONDS
	wait "$pid"
	[ $((SECONDS - begin)) -lt 15 ]
	same "$(cat got)" t1
}

@test "next --wait: returns when a lease expires, a dependency is done, a task comes back" {
	new x
	pawl claim t1 -a al --ttl 0.5s
	call 0 next --claim --wait 30s -q -a bo --ttl 10m
	exactly t1
	new y -D t1
	"$PAWL" next --claim --wait 30s -q >got 2>&1 3>&- &
	pid=$!
	sleep 0.2
	pawl done t1 -a bo
	wait "$pid"
	same "$(cat got)" t2
}

@test "next --wait: several waiters, one task, one winner" {
	for n in 1 2 3; do
		"$PAWL" next --claim --wait 3s -q -a "w$n" >"got$n" 2>/dev/null 3>&- &
	done
	sleep 0.3
	new x
	wait
	same "$(cat got1 got2 got3)" t1
}

@test "log --follow: past and new events, until it is told to stop" {
	new x
	"$PAWL" log --follow --limit 50 --json >seen 2>&1 3>&- &
	pid=$!
	soon grep -q created seen
	pawl claim t1 -a al
	soon grep -q claimed seen
	pawl done t1 -a al
	soon grep -q '"Done"' seen
	kill "$pid"
	wait "$pid" || true
	same "$(jq -r 'select(.task == "t1").event' seen | tr '\n' ' ')" "created claimed done "
}

@test "log --follow: one task, in text and porcelain, and it ends with its reader" {
	new x
	new y
	"$PAWL" log t2 --follow --limit 50 >seen 2>&1 3>&- &
	one=$!
	"$PAWL" log --follow --porcelain >lines 2>&1 3>&- &
	two=$!
	soon grep -q created seen
	pawl comment t1 no
	pawl comment t2 yes
	soon grep -q yes seen
	soon grep -q 'EVENT: .*task=t2.*yes' lines
	kill "$one" "$two"
	wait "$one" "$two" || true
	not grep -q no$ seen
	# the reader ends after one line: the next event ends the command
	"$PAWL" log --follow -n 50 3>&- | head -n 1 >/dev/null &
	pipe=$!
	sleep 0.2
	pawl comment t1 again
	pawl comment t1 again
	wait "$pipe"
}

@test "log --follow: ends with its reader, even if nothing happens" {
	new x
	mkfifo pipe
	timeout 20 "$PAWL" log --follow -n 50 >pipe 3>&- &
	pid=$!
	head -n 1 pipe >/dev/null
	rc=0
	wait "$pid" || rc=$?
	[ "$rc" -eq 30 ]
}

@test "leases: lock.ttl, lease, and durations in every spelling" {
	needs_local "its settings are those of the server"
	new x
	ask 0 lock acquire t1
	is '.lock.ttl == 300'
	pawl lock release t1
	PAWL_LOCK_TTL=1h ask 0 lock acquire t1
	is '.lock.ttl == 3600'
	pawl lock release t1
	for pair in 90=90 90s=90 15m=900 2h=7200 1d=86400 1h30m=5400 0.5s=0.5 200ms=0.2; do
		ask 0 claim t1 --ttl "${pair%=*}"
		is --argjson n "${pair#*=}" '.lock.ttl == $n'
		pawl lock break t1 -r r
	done
}

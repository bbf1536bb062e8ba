#!/usr/bin/env bats
# lock acquire | release | check | status | list | break | cleanup.

load common

other=11111111-1111-4111-8111-111111111111

@test "lock acquire: the status stays" {
	new x
	call 0 lock acquire t1 -a al
	says "locked t1  x" "5m" token "pawl lock release t1"
	ask 0 show t1
	is '.task | .status == "Ready" and .lock.holder == "al" and .lock.ttl == 300 and .attempts == 0'
	new y
	ask 0 lock acquire t2 --ttl 10m
	is --arg u "^$uuid\$" '(.lock.token | test($u)) and .lock.fence == 1 and .lock.ttl == 600'
	new z
	lines 0 lock acquire t3 -a bo
	exactly "LOCK_ACQUIRED: task=t3 agent=bo"
}

@test "lock acquire: keeps the task from next" {
	new x
	pawl lock acquire t1
	call 10 next
	pawl lock release t1
	call 0 next
}

@test "lock acquire: CONFLICT, MISCONFIGURED, NOT_FOUND, repeats" {
	new x
	pawl lock acquire t1 -a al --token "$other"
	unchanged 20 lock acquire t1 -a bo
	complains "held by al"
	ask 20 lock acquire t1 -a bo
	lines 20 lock acquire t1 -a bo
	matches "LOCK_EXISTS: task=t1 agent=al claimed=$time"
	ask 0 lock acquire t1 -a al --token "$other"
	is '.repeated == true and .lock.fence == 1'
	new y
	pawl cancel t2 -r no
	unchanged 40 lock acquire t2
	call 44 lock acquire nope
}

@test "lock acquire, then claim with its token: In Progress, fence kept" {
	new x
	pawl lock acquire t1 --token "$other"
	ask 0 claim t1 --token "$other"
	is '.task.status == "In Progress" and .lock.fence == 1'
}

@test "lock acquire: a reviewer on a task in Review" {
	new x
	pawl claim t1 -a al
	pawl review t1 -a al -s s
	pawl lock acquire t1 -a rev
	unchanged 20 approve t1 -a al
	call 0 approve t1 -a rev
}

@test "lock release: own, gone, another's" {
	new x
	pawl lock acquire t1 -a al
	unchanged 21 lock release t1 -a bo
	complains al
	ask 21 lock release t1 -a bo
	lines 21 lock release t1 -a bo
	exactly "LOST_LOCK: task=t1 status=Ready"
	call 0 lock release t1 -a al
	says t1
	call 0 lock release t1 -a al
	call 0 lock release t1 -a bo
	pawl lock acquire t1
	ask 0 lock release t1
	is '.task.lock == null'
	pawl lock acquire t1
	lines 0 lock release t1
	exactly "SUCCESS: task=t1 status=Ready"
	call 44 lock release nope
	ask 44 lock release nope
}

@test "lock check: 0 locked, 1 free, else could not tell" {
	new x
	call 1 lock check t1
	exactly "t1 is free"
	ask 1 lock check t1
	is '.locked == false and .lock == null'
	lines 1 lock check t1
	exactly "LOCK_FREE: task=t1 locked=false"
	pawl claim t1 -a al
	call 0 lock check t1
	says "t1 is locked by al"
	ask 0 lock check t1
	is '.locked == true and .lock.holder == "al" and (.lock | has("token") | not)'
	lines 0 lock check t1
	exactly "SUCCESS: task=t1 agent=al locked=true"
	call 0 lock check -q t1
	exactly ""
	call 44 lock check nope
	call 2 lock check
	call 30 lock check t1 --store "$(faulty any:1:fail)"
}

@test "lock status: of all, as lock list" {
	new x
	new y
	call 0 lock status
	pawl lock acquire t2 -a al
	call 0 lock status
	says t2 al
	ask 0 lock status
	is '[.locks[].task] == ["t2"] and .total == 1'
	call 0 lock status t1
	says "t1 is free"
}

@test "lock status: the holder, since when, until when" {
	new x
	call 0 lock status t1
	exactly "t1 is free"
	pawl claim t1 -a al
	call 0 lock status t1
	says al "fence 1" left
	ask 0 lock status t1
	is '.locked and .lock.live and .lock.fence == 1 and .lock.host and .lock.acquired_at and .lock.expires_in > 0'
	lines 0 lock status t1
	[[ $output == "SUCCESS: task=t1"* ]]
	call 44 lock status nope
	ask 44 lock status nope
}

@test "lock list: all of them, or one holder's" {
	call 0 lock list
	says "nothing is locked"
	ask 0 lock list
	is '.locks == [] and .count == 0 and .total == 0'
	for who in al bo; do
		id=$(new "for $who")
		pawl claim "$id" -a $who
	done
	call 0 lock list
	says TASK t1 al t2 bo
	ask 0 lock list
	is '(.locks | length) == 2 and .count == 2 and (.locks[0] | .task and .holder and .fence and .live)'
	is '[.locks[] | has("token")] | any | not'
	ask 0 lock list --holder bo
	is '[.locks[].task] == ["t2"]'
	ask 0 lock list --limit 1
	is '.count == 1 and .total == 2'
	lines 0 lock list
	[ "${#lines[@]}" -eq 2 ]
	[[ ${lines[0]} == "LOCK: "*"task=t1"* ]]
	call 0 lock list -q
	exactly "t1
t2"
}

@test "lock break: a person's override; the holder finds out" {
	new x
	pawl claim t1 -a al
	unchanged 2 lock break t1 -a boss
	complains --reason
	call 0 lock break t1 -a boss --reason "machine is gone"
	says t1
	status_is t1 "In Progress"
	same "$(field t1 .lock)" null
	call 21 heartbeat t1 -a al
	ask 0 log t1
	is '[.events[] | select(.agent == "boss" and .text != null and (.text | contains("machine is gone")))] | length == 1'
	pawl claim t1 -a bo
	ask 0 lock break t1 -r r
	pawl claim t1 -a bo
	lines 0 lock break t1 -r r
	exactly "SUCCESS: task=t1 status=In Progress"
	call 44 lock break nope -r r
	ask 44 lock break nope -r r
}

@test "lock cleanup: expired locks, not live ones" {
	short_leases
	new x
	new y
	pawl claim t1 --ttl 0.1s -a al
	pawl claim t2 -a bo
	lapsed t1
	call 0 lock cleanup --older-than 1h
	says "nothing to clean up"
	ask 0 lock cleanup
	is '[.tasks[].id] == ["t1"] and .count == 1'
	lines 0 lock cleanup
	call 0 lock cleanup
	says "nothing to clean up"
	same "$(field t2 .lock.holder)" bo
	ask 0 log t1
	is '.events[-1].event != "claimed"'
}

@test "lock status: says in which mode the lock was taken" {
	local id
	new x
	new y
	pawl claim t1 -a al
	ask 0 lock status t1
	is '.lock.mode == "cli"'
	call 0 lock status t1
	says "taken in cli mode"
	"$PAWL" interactive -a bo >/dev/null 2>&1 <<<'claim t2'
	ask 0 lock status t2
	is '.lock.mode == "interactive"'
	id=$(new z)
	printf '%s\n' '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}' \
		'{"jsonrpc":"2.0","method":"notifications/initialized"}' \
		"{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\",\"params\":{\"name\":\"claim\",\"arguments\":{\"id\":\"$id\"}}}" |
		"$PAWL" mcp >out 2>&1
	ask 0 lock status "$id"
	is '.lock.mode == "server"'
}

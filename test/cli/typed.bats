#!/usr/bin/env bats
# Locks of the whole queue: lock acquire @maintenance, lock typed, and what they do to others.

load common

other=11111111-1111-4111-8111-111111111111

@test "lock typed: who, for what, since when" {
	call 0 lock typed
	says "nobody has locked the queue"
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

@test "its holder, and what its holder starts, is not kept out" {
	pawl lock acquire @maintenance -a boss --token "$other"
	call 0 create mine -a boss --timeout 0
	call 30 create other -a al --timeout 0
	PAWL_LOCK_TOKEN=$other call 0 create other -a al --timeout 0
	PAWL_LOCK_TOKEN=22222222-2222-4222-8222-222222222222 call 30 create more -a al --timeout 0
	call 20 lock acquire @maintenance -a boss --timeout 0
	call 0 lock acquire @batch -a boss --timeout 0
}

@test "those who wait are woken when it is released" {
	pawl lock acquire @maintenance -a boss --ttl 10m
	"$PAWL" create waits -a al --timeout 60s >made 2>&1 3>&- &
	waiter=$!
	sleep 0.2
	same "" "$(cat made)"
	pawl lock release @maintenance -a boss
	wait "$waiter"
	[[ $(cat made) == *t1* ]]
}

@test "it is a lease: renewed by a heartbeat, and runs out" {
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

@test "which excludes which" {
	pawl lock acquire @batch -a boss
	call 0 create x -a al --timeout 0
	call 20 lock acquire @write -a al --timeout 0
	complains "@write has to wait: @batch is held by boss"
	call 0 lock acquire @config -a al --timeout 0
	call 20 lock acquire @maintenance -a cy --timeout 0
	PAWL_LOCK_TYPED=off call 30 create y -a cy --timeout 0
}

@test "only lock commands take one, and only those there are" {
	unchanged 2 lock acquire @nothing
	complains "@write, @batch, @config and @maintenance"
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
	says "unknown"
	call 2 lock acquire t2 --pid 999999999
}

@test "@config: settings are not changed meanwhile, but read" {
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

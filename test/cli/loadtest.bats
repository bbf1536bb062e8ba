#!/usr/bin/env bats
# Many processes at once: all calls succeed, and the user's tasks are not touched.

load common

@test "loadtest: every operation succeeds, all of it is there, and the queue is as before" {
	needs_local "it makes queues or stores of its own"
	new mine
	before=$(snapshot)
	call 0 loadtest --processes 6 --operations 9
	says "operations                       54" "success                      100.00 %" "p50" "p95" "p99" "longest"
	ask 0 loadtest -p 3 -n 7
	is '.loadtest | .calls == 21 and .succeeded == 21 and .success_percent == 100'
	is '.loadtest.wait | 0 < .p50 and .p50 <= .p95 and .p95 <= .p99 and .p99 <= .longest'
	lines 0 loadtest -p 1 -n 1
	same "$before" "$(snapshot)"
}

@test "loadtest: failures are counted and reported" {
	needs_local "it breaks or watches the store itself"
	new mine
	uri=$(faulty 'modify:3:fail')
	call 30 loadtest -p 2 -n 6 --store "$uri"
	complains "operations failed" injected
	says "API_ERROR"
	ask 30 loadtest -p 2 -n 6 --store "$uri"
	is '.loadtest.success_percent < 100 and .loadtest.refused.API_ERROR == 2'
	same "$("$PAWL" list -q)" t1
}

@test "loadtest: a lost answer is asked for again" {
	needs_local "it breaks or watches the store itself"
	for rule in modify:1:lost modify:2:lost modify:3:unknown; do
		ask 0 loadtest -p 2 -n 6 --store "$(faulty "$rule")"
		is '.loadtest.succeeded == 12'
	done
}

@test "loadtest: bad calls" {
	call 2 loadtest -p 0
	call 2 loadtest -n 0
	call 2 loadtest -p 512 -n 100000
	complains "at most"
	call 40 loadtest --store mem:x
	complains "one process"
}

@test "loadtest: shows its progress on a terminal" {
	needs_local "it makes queues or stores of its own"
	needs_terminal
	seen=$(on_terminal "'$PAWL' loadtest -p 2 -n 6")
	[[ $seen == *"working: "*"of 12 operations"* ]]
}

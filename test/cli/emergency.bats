#!/usr/bin/env bats
# emergency on | off | status

load common

@test "emergency: read-only for everybody, until it is off" {
	new x
	new y
	pawl claim t1 -a al
	call 0 emergency status
	says "no emergency"
	ask 0 emergency status
	is '.emergency == {"on": false}'
	ask 0 emergency on --reason "two report t1" -a boss
	is '.emergency.on and .emergency.by == "boss" and .emergency.reason == "two report t1"'
	backup=$(get .emergency.backup)
	[ -s "$backup" ]
	unchanged 30 create z -a boss
	complains "read-only" "boss" "two report t1" "pawl emergency off"
	ask 30 done t1 -a al
	is '.error.applied == "no" and (.error.message | test("two report t1"))'
	call 30 lock acquire @maintenance
	call 30 claim t2 -a bo
	call 0 heartbeat t1 -a al
	call 0 list
	call 0 show t1
	call 0 next
	call 0 emergency status
	says "two report t1" boss "pawl emergency off"
	before=$(find . "$HOME" -name '*.pawl' -type f | sort)
	ask 0 emergency on --reason again
	same "$before" "$(find . "$HOME" -name '*.pawl' -type f | sort)"
	is '.repeated and .emergency.reason == "two report t1"'
	call 0 emergency off --reason mended
	says "no emergency"
	call 0 done t1 -a al
	ask 0 log
	is '[.events[] | select(.event | startswith("emergency")) | .event + ": " + .text]
		== ["emergency_on: two report t1", "emergency_off: mended"]'
}

@test "emergency on: needs a reason" {
	call 2 emergency on
	call 2 emergency on --reason " "
	ask 0 emergency status
	is '.emergency.on | not'
	lines 0 emergency status
	exactly "SUCCESS: on=false"
	lines 0 emergency on --reason fire -a al
	[[ $output == "SUCCESS: on=true by=al "*"reason=fire backup="*.pawl ]]
	ask 0 emergency off
	is '.emergency.on | not'
	lines 0 emergency off
	exactly "SUCCESS: repeated=true on=false"
}

@test "emergency on: takes effect even without a backup" {
	mkdir -p .pawl
	: >.pawl/backups
	ask 0 emergency on --reason fire
	is '.emergency.on and (.emergency | has("backup") | not) and (.warnings[0] | test("could not make a backup"))'
	call 30 create x
}

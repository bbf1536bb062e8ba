#!/usr/bin/env bats
# Input as people give it: dates in words, ids without their letter, text in any case.

load common

day() {
	date -d "$1" +%F
}

# due_is ID DAY
due_is() {
	same "$(field "$1" .due)" "$2"
}

@test "dates: words, in the local zone" {
	new a --due tomorrow
	new b --due "in 3 days"
	new c --due friday
	new d --due 2027-01-02
	# near midnight the day can change between two calls: then one of both is right
	[[ $(field t1 .due) == "$(day tomorrow)" || $(field t1 .due) == "$(day today)" ]]
	[[ $(field t2 .due) == "$(day "3 days")" || $(field t2 .due) == "$(day "2 days")" ]]
	same "$(date -d "$(field t3 .due)" +%u)" 5
	due_is t4 2027-01-02
	unchanged 2 create x --due soon
	complains "soon" "tomorrow" "in 3 days"
	unchanged 2 update t1 --due "2026-13-01"
	call 0 update t1 --due ""
	due_is t1 null
}

@test "dates: the time of a due date is kept" {
	export TZ=CET-1CEST,M3.5.0,M10.5.0/3
	new a --due "2026-11-20 17:00"
	due_is t1 2026-11-20T16:00:00.000Z
	call 0 show t1
	says "2026-11-20 17:00"
	new b --due "2026-11-20 01:00" # midnight in UTC, which alone would mean the whole day
	call 0 show t2
	says "2026-11-20 01:00"
	call 0 export --output all.json --format json
	mkdir "$BATS_TEST_TMPDIR/other" && mv all.json "$BATS_TEST_TMPDIR/other" && cd "$BATS_TEST_TMPDIR/other"
	pawl init -q
	call 0 import all.json
	due_is t1 2026-11-20T16:00:00.000Z
	call 0 show t2
	says "2026-11-20 01:00"
}

@test "dates: not-before takes words as well" {
	ask 0 create a --not-before tomorrow
	is '.task.not_before | test("T00:00:00.000Z$")'
	call 10 next
	ask 0 create b --not-before "2 hours ago"
	ask 0 next
	is '.task.id == "t2"'
}

@test "ids: the letter may be left out where one task is meant" {
	new a
	new b
	ask 0 show 2
	is '.task.id == "t2"'
	ask 0 update 1 --priority high
	is '.task.id == "t1" and .task.priority == 3'
	call 0 claim 2
	ask 0 heartbeat 2
	is '.task.id == "t2"'
	ask 0 create c --parent 1 --depends 2
	is '.task.parent == "t1" and .task.depends == ["t2"]'
	call 0 done 2
	status_is t2 Done
	call 0 undepend t3 2
	same "$(field t3 '.depends | length')" 0
	call 44 show 7
	complains 7
}

@test "ids: a task that is called by the number is that task" {
	new a
	new b
	new c --id 2
	ask 0 show 2
	is '.task.id == "2" and .task.title == "c"'
	ask 0 create d --id 1
	is '.task.id == "1"'
	ask 0 show t2
	is '.task.title == "b"'
}

@test "ids: over MCP, too" {
	new a
	{
		echo '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"2"}}}'
		echo '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"claim","arguments":{"id":"1"}}}'
		echo '{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"done","arguments":{"id":"1"}}}'
		soon test -s "$BATS_TEST_TMPDIR/done"
	} | "$PAWL" mcp | while read -r line; do
		[[ $line != *'"id":3'* ]] || echo "$line" >"$BATS_TEST_TMPDIR/done"
	done
	status_is t1 Done
}

@test "find: in any case, in every script" {
	new "Überweisung prüfen"
	new "Straße fegen" --label "ΟΔΟΣ"
	new "Uberweisung" --description "Привет"
	call 0 find -q überweis
	exactly t1
	call 0 find -q ÜBERWEIS
	exactly t1
	call 0 find -q STRASSE
	exactly t2
	call 0 find -q οδος
	exactly t2
	call 0 find -q ПРИВЕТ
	exactly t3
}

#!/usr/bin/env bats
# report and stats: what happened in a time, for people.

load common

# A night with one task of each outcome.
night() {
	local i
	for i in 1 2 3 4 5 6; do
		new "Task $i of the night, with a title that needs some room" >/dev/null
	done
	pawl claim t1 -a al
	pawl done t1 -a al -s "fixed the parser"
	pawl claim t2 -a bo
	pawl fail t2 -a bo -r "the tests hang"
	pawl claim t3 -a al
	pawl review t3 -a al -s "please look"
	pawl rework t3 -a boss -r "tests are missing"
	pawl claim t4 -a cy --ttl 1s
	soon eval '"$PAWL" claim t4 -a bo'
	pawl escalate t4 -a bo -r "no access"
	pawl claim t5 -a al
	pawl review t5 -a al -s "look here"
	pawl approve t5 -a boss
	pawl claim t6 -a al
	pawl review t6 -a al -s ready
}

# screen COLUMNS ARG...: the output on a terminal of that width, without its times
screen() {
	local columns=$1
	shift
	on_terminal "stty cols $columns rows 60; $PAWL --no-color $*" | tr -d '\r' |
		sed -E 's/[0-9-]{10}T[0-9:.]{12}Z/ISO/; s/[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}/MM-DD hh:mm/g; s/[0-9]{4}-MM/YYYY-MM/g; s/[0-9]{4}…/YYYY…/
			s/^[0-9]{2}-[0-9]{2}  /MM-DD  /; s/[0-9.]+ms|([0-9]+[dhm] )?[0-9]+[dhms]\>/TIME/g; s/ +$//'
}

# expect NAME: the screen on stdin is that of test/cli/screens/NAME
expect() {
	diff -u "$BATS_TEST_DIRNAME/screens/$1" -
}

@test "report: who did what, and what waits for a person" {
	night
	ask 0 report
	is '.report | [.done[] | [.task, .agent, .text // ""]] == [["t1", "al", "fixed the parser"], ["t5", "al", ""]]'
	is '.report | [.failed[] | [.task, .agent, .text]] == [["t2", "bo", "the tests hang"]]'
	is '.report | [.reworked[] | [.task, .agent, .text]] == [["t3", "al", "tests are missing"]]'
	is '.report | [.abandoned[] | [.task, .agent]] == [["t4", "cy"]]'
	is '.report | [.waiting[] | [.task, .status, .text]] == [["t4", "Needs Help", "no access"], ["t6", "Review", "ready"]]'
	is '.report | [.agents[] | [.agent, .done, .failed, .reworked, .abandoned]]
		== [["al", 2, 0, 1, 0], ["bo", 0, 1, 0, 0], ["cy", 0, 0, 0, 1]]'
	is '.report.done[0] | .title | startswith("Task 1")'
	at=$(get '.report.failed[0].at')
	ask 0 report --until "$at"
	is '.report | (.done | length) == 1 and (.failed | length) == 0'
	ask 0 report --since "$at" --by al
	is '.report | [.done[].task] == ["t5"] and .failed == []'
	call 0 report --since 2999-01-01
	says "0 done, 0 failed"
	call 0 report --since "yesterday 18:00"
	call 2 report --since never
	lines 0 report
}

@test "report --format: Markdown without markup of others, and the same JSON" {
	new '*bold* [link](x) | <b>' --id odd >/dev/null
	pawl claim odd -a 'a|b'
	pawl fail odd -a 'a|b' -r $'two\nlines `x`'
	call 0 report --format markdown
	says "# Report" "## Failed" '\*bold\* \[link\](x) \| \<b\>' '| a\|b | 0 | 1 | 0 | 0 |' '\`x\`'
	not grep -q '^lines' <<<"$output"
	call 0 report --format json
	is '.ok and .report.failed[0].task == "odd"'
}

@test "report: a task that is gone keeps its line" {
	new x
	pawl claim t1 -a al
	pawl done t1 -a al
	pawl remove t1 --force
	ask 0 report
	is '.report.done | length == 1 and (.[0] | .task == "t1" and (has("title") | not))'
	call 0 report
	says t1
}

@test "stats: throughput, cycle time and the age of open work" {
	night
	ask 0 stats
	is '.stats.days | length == 14'
	is '.stats.days[-1] | .done == 2 and .failed == 1'
	is '.stats.cycle | .count == 2 and .median_ms >= 0 and .p90_ms >= .median_ms'
	is '.stats.open | .age.count == 3 and .statuses == {"In Progress": 1, "Needs Help": 1, "Review": 1}'
	is '.stats.open.oldest.task == "t3"'
	ask 0 stats --by bo
	is '.stats.days[-1] | .done == 0 and .failed == 1'
	ask 0 stats --since "$(date -d '-60 days' +%Y-%m-%d)"
	is '.stats.days | length == 9'
	call 2 stats --since 1999-01-01
	call 2 stats --since 2999-01-01
	lines 0 stats
}

@test "stats: an empty queue" {
	call 0 stats
	says "0 tasks"
	ask 0 report
	is '.report.done == []'
}

@test "report, stats: the screen at 80 and 140 columns" {
	needs_terminal
	night
	screen 80 report | expect report.80
	screen 140 report | expect report.140
	screen 80 stats | expect stats.80
	screen 140 stats | expect stats.140
}

@test "report, stats: the cost depends on the time that is asked for" {
	needs_sqlite
	local i
	night
	at=$("$PAWL" log --json --limit 0 | jq -r '.events[-1].at')
	for i in report stats; do
		"$PAWL" --store "$(faulty calls)" "$i" --since "$at" 2>calls >/dev/null
		grep -qx 'pawl-calls: entries 1' calls
	done
}

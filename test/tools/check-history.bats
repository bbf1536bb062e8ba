#!/usr/bin/env bats
# tools/check-history, a checker without any of pawl's code, agrees with pawl's own.

setup() {
	source=${PAWL_SOURCE:-$(cd "$BATS_TEST_DIRNAME/../.." && pwd)}
	check=$source/tools/check-history
	cd "$BATS_TEST_TMPDIR" || return
	export XDG_STATE_HOME=$PWD/state HOME=$PWD PAWL_AGENT=ann
}

@test "both checkers agree about histories of the simulator, spoiled ones, and those written by hand" {
	TMPDIR=$BATS_TEST_TMPDIR run "$source/tools/soak-histories" --build "$PAWL_BUILD" --count 12
	echo "$output"
	[ "$status" -eq 0 ]
	[[ $output == *"agree on 12 histories"* ]]
}

@test "an export of the audit: clean, and with each line changed or left out" {
	"$PAWL" init -q
	for id in t1 t2; do
		"$PAWL" create "$id" -i "$id"
		"$PAWL" claim "$id"
		"$PAWL" comment "$id" "half of it"
		"$PAWL" done "$id" -s "all of it"
	done >/dev/null
	"$PAWL" remove t2
	"$PAWL" audit --export all.jsonl
	"$check" all.jsonl
	for line in $(grep -n '"line"' all.jsonl | cut -d: -f1); do
		sed "${line}d" all.jsonl >less.jsonl
		run "$check" less.jsonl
		[ "$status" -eq 1 ]
		sed "${line}s/\"at\":1/\"at\":2/" all.jsonl >other.jsonl
		run "$check" other.jsonl
		[ "$status" -eq 1 ]
		[[ $output == *"task/t"* ]]
	done
	sed 's/"data":"0107/"data":"01ff/' all.jsonl >garbage.jsonl
	run "$check" garbage.jsonl
	[ "$status" -eq 1 ]
	[[ $output == *"is not an event"* ]]
}

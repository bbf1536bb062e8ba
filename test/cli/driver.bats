#!/usr/bin/env bats
# pawl torture --driver: pawl's own driver passes, drivers with known flaws are caught, and a driver that prints garbage, dies,
# hangs or leaves programs behind is reported and ended.

load common

setup() {
	fresh
	drivers=$PAWL_SOURCE/test/drivers
	export TMPDIR=$BATS_TEST_TMPDIR/tmp
	mkdir "$TMPDIR"
	unset PAWL_STORE
}

# script NAME: makes a driver from the input
script() {
	{
		echo '#!/bin/sh'
		cat
	} >"$1"
	chmod +x "$1"
}

# caught KIND DRIVER ARG...: some seed shows the violation. The flaw is certain, its moment is not.
caught() {
	local kind=$1 seed
	shift
	for seed in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
		rm -f h.jsonl
		call 40 torture --json --driver "$@" --seed "$seed" || continue
		! jq -e --arg kind "$kind" '.torture.found[$kind] > 0' <<<"$output" >/dev/null || return 0
	done
	echo "no run showed $kind; the last: $output"
	return 1
}

# says CODE TEXT DRIVER ARG...
says() {
	local code=$1 text=$2
	shift 2
	ask "$code" torture --driver "$@" --seconds 1 --agents 2 --tasks 3 --lost 0
	[[ $(jq -r .error.message <<<"$output") == *"$text"* ]]
	same "$(ls "$TMPDIR")" ""
}

@test "driver: pawl's command line keeps its promise under kills, stops and lost answers" {
	ask 0 torture --driver "$drivers/pawl-cli" --seconds 3 --agents 4 --tasks 8 --kills 6 --stops 3 --lost 30 --outage 2m
	is '.torture | .violations == 0 and .kills == 6 and .stops == 3 and .claims > 0 and .done > 0 and .checked > 0'
	is '.torture | has("queue") | not'
	same "$(ls "$TMPDIR")" ""
}

@test "driver: pawl's command line gives each task once" {
	ask 0 torture --driver "$drivers/pawl-cli" --only drain --tasks 30 --agents 4 --outage 2m
	is '.torture | .done == 30 and .claims == 30 and .violations == 0'
	ask 0 torture --driver "$drivers/pawl-cli" --only claims --rounds 5 --agents 4 --outage 2m
	is '.torture | .claims == 5 and .done == 5'
}

@test "driver: pawl's MCP server keeps its promise" {
	ask 0 torture --driver "$drivers/pawl-mcp" --seconds 3 --agents 3 --tasks 6 --kills 4 --stops 2 --lost 30 --outage 2m
	is '.torture | .violations == 0 and .kills == 4 and .claims > 0'
}

@test "driver: the lock files of a written protocol give a task to two agents" {
	caught holders "$drivers/files-protocol" --only claims --agents 4 --rounds 5 --outage 2m
	[[ $(jq -r .torture.excerpt <<<"$output") == *"was given to"* ]]
	[[ $(jq -r .error.hint <<<"$output") == *"--driver"* ]]
}

@test "driver: an agent that acquires an expired lock again completes another agent's task" {
	caught stale "$drivers/sql-locks" --seconds 3 --agents 4 --tasks 3 --kills 0 --stops 8 --lease 200ms --lost 0 --outage 2m
}

@test "driver: with flock alone, a result of a killed agent's successor comes late" {
	caught stale "$drivers/flock" --seconds 3 --agents 4 --tasks 2 --kills 30 --stops 0 --lost 0 --outage 2m
}

@test "driver: a task that nobody offers again is stuck" {
	cat >keep <<-'END'
		#!/usr/bin/env bash
		# takes a task by a rename, for ever
		cd "$PAWL_DRIVER_DIR"
		while read -r verb a b; do
			case $verb in
			create) : >"$a.open" && echo "ok $a" ;;
			next)
				got=none
				for f in *.open; do
					mv "$f" "${f%.open}.held" 2>/dev/null && got="ok ${f%.open} - -" && break
				done
				echo "$got"
				;;
			heartbeat) echo 'ok -' ;;
			done) mv "$a.held" "$a.done" 2>/dev/null && echo ok || echo refused ;;
			show) if [ -e "$a.done" ]; then echo 'ok done -'; else echo 'ok open -'; fi ;;
			esac
		done
	END
	chmod +x keep
	caught stuck ./keep --seconds 2 --agents 4 --tasks 8 --kills 20 --stops 0 --lost 0 --outage 2m
	is '.torture.found | keys == ["stuck"]'
}

@test "driver: a task that is gone, or not done after all, is lost" {
	script ./forgets <<-'END'
		while read -r verb a b; do
			case $verb in
			create) echo "ok $a"; echo "$a" >>"$PAWL_DRIVER_DIR/tasks" ;;
			next) a=$(head -n 1 "$PAWL_DRIVER_DIR/tasks"); sed -i 1d "$PAWL_DRIVER_DIR/tasks"; [ -n "$a" ] && echo "ok $a - -" || echo none ;;
			done) echo ok ;;
			show) case $a in *1) echo gone ;; *) echo 'ok open -' ;; esac ;;
			esac
		done
	END
	ask 40 torture --driver ./forgets --only drain --agents 1 --tasks 4 --outage 2m
	is '.torture.found == {"lost": 4}'
}

@test "driver: garbage, an early end, a signal, no program" {
	says 30 '`create` with "hello"; expected `ok ID`' "sh -c 'read x; echo hello; cat'"
	says 30 'ended with exit code 3; expected an answer to `create`' "sh -c 'read x; exit 3'"
	says 30 'died of signal 11' "sh -c 'read x; kill -11 \$\$'"
	says 30 'closed its output' "sh -c 'read x; exec >&-; sleep 1000'"
	says 30 'more than one line' "sh -c 'read x; printf \"ok 1\\nok 2\\n\"; cat'"
	says 30 'more than one line, or one of more than 4096 bytes' "sh -c 'while :; do printf aaaaaaaa; done'"
	says 30 'cannot start the driver ./none' ./none
	says 2 'a quotation mark is not closed' "'"
	says 2 'it has no word' "''"
}

@test "driver: one that hangs is ended, with all that it started" {
	script ./hangs <<-'END'
		setsid sleep 98765 &
		echo $! >>"$1"
		read x
		exec sleep 98765
	END
	says 30 'did not answer `create` within 1 s; expected `ok ID`' "./hangs '$PWD/pids'" --outage 1
	[ -s pids ]
	while read -r pid; do
		! kill -0 "$pid" 2>/dev/null
	done <pids
}

@test "driver: no shell reads the command" {
	script ./args <<-'END'
		printf '%s\n' "$@" >args.out
		exit 7
	END
	ask 30 torture --driver "./args \$HOME 'a b' \"c d\" * > x ; y" --agents 1
	same "$(cat args.out)" $'$HOME\na b\nc d\n*\n>\nx\n;\ny'
	[ ! -e x ]
}

@test "driver: options that do not go together" {
	ask 2 torture --driver ./x --store sqlite:q.db
	ask 2 torture --driver ./x --skews 3
	ask 2 torture --driver ./x --lease 0
	queue
	ask 2 torture --lease 1s
	[[ $(jq -r .error.message <<<"$output") == *"--driver"* ]]
}

@test "driver: the history is kept, and checked again with the same verdict" {
	caught holders "$drivers/files-protocol" --only claims --agents 4 --rounds 5 --outage 2m --history h.jsonl
	n=$(jq .torture.violations <<<"$output")
	ask 40 torture --check h.jsonl
	is ".torture.violations == $n"
	same "$(head -n 1 h.jsonl | jq -r .driver)" "$drivers/files-protocol"
}

@test "driver: the input of all ends at once, so those that stay are waited for together" {
	script ./stays <<-'END'
		while read -r verb a b; do
			case $verb in
			create) echo "ok $a" ;;
			next) echo none ;;
			*) echo 'ok open -' ;;
			esac
		done
		echo "$PAWL_DRIVER_AGENT" >>"$1"
		until [ "$(sort -u "$1" | wc -l)" -eq 3 ]; do :; done
		echo >>"$1.together"
		sleep 98765
	END
	# a slow machine may end the wait before they have met
	for _ in 1 2 3 4 5; do
		rm -f ends ends.together
		ask 40 torture --driver "./stays '$PWD/ends'" --only claims --rounds 1 --agents 3 --outage 2m
		[ "$(wc -l <ends.together)" -lt 3 ] || return 0
	done
	false
}

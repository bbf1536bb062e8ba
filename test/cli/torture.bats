#!/usr/bin/env bats
# pawl torture: short runs on the store under test, with every disturbance of agents; its options; and that
# it leaves nothing behind.

load common

# scratch: the names of scratch queues that are still in the SQLite file
scratch() {
	python3 - "$1" <<-'END'
		import sqlite3, sys
		db = sqlite3.connect(sys.argv[1])
		print(*(n for (n,) in db.execute("SELECT name FROM queue WHERE name LIKE 'torture-%'")))
	END
}

# nothing_left: neither in the store nor in the folder for temporary files
nothing_left() {
	same "$(find "$TMPDIR" -name 'pawl-torture-*')" ""
	[ -n "${PAWL_TEST_STORE-}" ] || same "$(scratch .pawl/queue.db)" ""
}

# at_work BYTES: the agents have written more than BYTES, all together: on a slow disk each may be killed before it writes much
at_work() {
	find "$TMPDIR" -name 'a[0-9]*-[0-9]*' -printf '%s\n' | awk -v least="$1" '{ sum += $1 } END { exit sum <= least }'
}

setup() {
	fresh
	queue
	export TMPDIR=$BATS_TEST_TMPDIR/tmp
	mkdir "$TMPDIR"
}

@test "torture: killed, stopped, told a wrong time, cut off, and nothing is broken" {
	needs_local "--skews and --lost; test/race/server has the rest"
	for seconds in 3 40; do # a slow disk needs longer
		ask 0 torture --seconds "$seconds" --agents 6 --tasks 16 --kills 15 --stops 6 --skews 10 --lost 60 --seed 7
		[ "$(jq .torture.calls <<<"$output")" -lt 300 ] || break
	done
	is '.torture | .violations == 0 and .seed == 7 and .way == "mix"'
	is '.torture | .kills == 15 and .stops == 6 and .skews == 10 and .lost_answers > 0'
	is '.torture | .calls > 100 and .accepted > 50 and .claims > 5 and .checked >= .calls and .removed'
	is '.torture | .refused.LOST_LOCK > 0 and .refused.MISCONFIGURED > 0 and .repeats > 0'
	is '.torture | has("history") | not'
	nothing_left
}

@test "torture: a wrong clock of one process changes nothing for the others" {
	needs_local "the clock is that of the server"
	pawl create held -i held
	pawl claim held --ttl 1h
	pawl create later -i later --delay 1h
	before=$(snapshot)
	ask 0 torture --seconds 1 --kills 0 --stops 0 --skews 40 --lost 0
	is '.torture | .violations == 0 and .skews == 40'
	same "$before" "$(snapshot)"
	is '.torture.found == {}'
	call 10 next
	call 0 lock check held
}

@test "torture: claims have one winner a round" {
	call 0 torture --only claims --agents 12 --rounds 15
	says "rounds                           15" "violations                        0"
	ask 0 torture --only claims --agents 12 --rounds 15
	is '.torture | .claims == 15 and .accepted == 30 and .refused.CONFLICT == 11 * 15'
	nothing_left
}

@test "torture: each task is done once, while agents are killed" {
	needs_local "--lost; test/race/server has the rest"
	ask 0 torture --only drain --agents 8 --tasks 200 --kills 12 --seconds 200ms --lost 30
	is '.torture | .done == 200 and .violations == 0 and .kills > 0 and .lost_answers > 0'
	nothing_left
}

@test "torture: the tasks that are there stay as they are" {
	pawl create mine -i mine
	pawl claim mine
	before=$(snapshot)
	call 0 torture --calls 300 -q
	same "$before" "$(snapshot)"
	exactly ""
	lines 0 torture --calls 100
	nothing_left
}

@test "torture: a store that is not there yet is made" {
	needs_sqlite
	call 0 torture --store "sqlite:$work/new.db" --calls 100 -q
	same "$(scratch new.db)" ""
}

@test "torture: the history is kept where it was asked for, and can be checked" {
	call 0 torture --calls 400 --history h.jsonl --seed 11
	says "history: h.jsonl" "seed                             11"
	ask 2 torture --history h.jsonl
	ask 2 torture --history none/h.jsonl
	rm -rf .pawl
	call 0 torture --check h.jsonl
	says "violations                        0"
	ask 0 torture --check h.jsonl
	is '.torture | .violations == 0 and .checked > 300 and .seed == 11'
	call 2 torture --check nowhere.jsonl
	complains "nowhere.jsonl"
}

@test "torture: a file that somebody else makes first is not overwritten" {
	"$PAWL" torture --seconds 2 --history h.jsonl >/dev/null 2>err &
	sleep 0.5
	echo mine >h.jsonl
	wait $! && return 1
	grep -q "h.jsonl: File exists" err
	[ "$(cat h.jsonl)" = mine ]
}

@test "torture: a history that breaks a promise is found out" {
	call 0 torture --only claims --rounds 5 --agents 4 --history h.jsonl
	jq -c 'if .lock?.fence == 3 then .lock.fence = 2 else . end' h.jsonl >bad.jsonl
	not cmp -s h.jsonl bad.jsonl
	call 40 torture --check bad.jsonl
	complains "the store broke its promise"
	says "k0"
	ask 40 torture --check bad.jsonl
	is '.torture | .violations > 0 and .found.fence > 0 and (.excerpt | contains("k0"))'
	head -c 3000 h.jsonl | head -c -20 >cut.jsonl
	echo '{"t":1,"nonsense":true}' >>cut.jsonl
	call 2 torture --check cut.jsonl
	complains "cut.jsonl"
}

@test "torture: Ctrl-C ends it early; it is checked, and nothing is left" {
	"$PAWL" torture --seconds 60 --json >out 2>err &
	pid=$!
	soon at_work 20000
	kill -INT $pid
	wait $pid
	output=$(cat out)
	check_shape 0
	is '.torture | .interrupted and .violations == 0 and .removed and .calls > 0 and .seconds < 50'
	nothing_left
}

@test "torture: agents end with the driver, and the queue that it left can be removed" {
	needs_sqlite
	setsid "$PAWL" torture --seconds 60 &
	pid=$!
	soon at_work 1000
	kill -KILL $pid
	wait $pid || true
	left=$(scratch .pawl/queue.db)
	[[ $left == torture-* ]]
	soon nobody_in "$pid"
	call 0 doctor
	[[ $output != *$left* ]]
	pawl emergency off --queue "$left" >/dev/null || true # an agent may have declared one just then
	pawl lock break keeper --queue "$left" --reason "as if a minute had passed"
	call 0 doctor
	says "left $left behind" "fix: pawl torture --store sqlite:$PWD/.pawl/queue.db --remove $left"
	call 2 torture --remove default
	call 0 torture --remove "$left"
	same "$(scratch .pawl/queue.db)" ""
	call 40 torture --remove "$left"
}

nobody_in() {
	[ -z "$(ps -o pid= -s "$1")" ]
}

@test "torture: a scratch queue that cannot be removed is named" {
	needs_local "it breaks or watches the store itself"
	call 0 torture --calls 50 --store "$(faulty discard:1)"
	complains "cannot remove the scratch queue" "--remove torture-"
}

@test "torture: a store that fails permanently is reported" {
	needs_local "it breaks or watches the store itself"
	for way in mix claims; do
		call 30 torture --only $way --seconds 60 --kills 0 --stops 0 --outage 500ms --store "$(faulty modify:30:full:always)"
		complains "the store failed permanently" "no space is left" "break no promise" "hint: repair the store"
	done
	nothing_left
}

@test "torture: one that fails now and then is not given up" {
	needs_local "it breaks or watches the store itself"
	call 0 torture --only drain --tasks 100 --store "$(faulty modify:~3:busy)"
	says "completions                     100"
}

@test "torture: a history without its end is checked as far as it goes" {
	call 0 torture --calls 300 --history h.jsonl --seed 3
	grep -v '"final"' h.jsonl >cut.jsonl
	call 0 torture --check cut.jsonl
	complains "does not show the end of" "lost" "stuck"
	ask 0 torture --check cut.jsonl
	is '.torture | .violations == 0 and .endless > 10'
	grep -v '"final":"k[0-2]"' h.jsonl >cut.jsonl
	ask 0 torture --check cut.jsonl
	is '.torture | .violations == 0 and .endless == 3'
	ask 0 torture --check h.jsonl
	is '.torture | has("endless") | not'
	call 2 torture --check /dev/zero
	complains "longer than 16 MiB"
}

@test "torture: a queue that was never created is not mentioned" {
	call 30 torture --store "sqlite:$PWD/nowhere/queue.db"
	complains "nowhere"
	[[ $stderr != *"cannot remove the scratch queue"* ]]
}

@test "torture: invalid options" {
	for args in "--agents 0" "--agents 1000" "--tasks 0" "--seconds 0" "--seconds x" "--rounds 0" "--kills -1" \
		"--only everything" "--seed x" "--only claims --kills 3" "--check" "surplus"; do
		read -ra words <<<"$args"
		call 2 torture "${words[@]}"
	done
	call 40 torture --store mem:x
	complains "one process"
	cd "$BATS_TEST_TMPDIR"
	mkdir empty
	cd empty
	call 40 torture
	complains "--store"
	call 30 torture --store sqlite:/no/such/folder/q.db
	nothing_left
}

@test "torture: on a terminal one line shows how far it is, and is gone at the end; elsewhere nothing" {
	call 0 torture --calls 200
	same "$stderr" ""
	needs_terminal
	seen=$(on_terminal "stty cols 60; '$PAWL' torture --seconds 1 --color never")
	[[ $seen == *$'\r\e[Kworking: 1 s left, '*' calls ('* ]]
	[[ $seen == *$'\r\e[Kagents  '* ]]
	seen=$(on_terminal "'$PAWL' torture --seconds 1 -q")
	same "$seen" ""
}

#!/usr/bin/env bats
# shellcheck disable=SC2016 # commands are written with their variables
# pawl run --loop --wait: a loop stays while work can come, and ends by itself when none can.

load common
load background

# looping NAME ARG...: pawl run --loop ARG... as the agent NAME, in the background. It leaves its messages in NAME.err.
looping() {
	local name=$1
	shift
	PAWL_AGENT=$name "$PAWL" run --loop "$@" >"$name.out" 2>"$name.err" 3>&- &
	loop=$!
	echo "$loop" >>pids
}

# loop_ends CODE: the loop ends by itself, with CODE
loop_ends() {
	local rc=0
	wait "$loop" || rc=$?
	tail -n 99 ./*.err
	same "$rc" "$1"
}

@test "--wait: stays while another agent holds what its tasks depend on" {
	new a
	new b --depends t1
	new c --depends t2
	pawl claim t1 --agent other --ttl 1h
	looping ann --wait -- true
	soon grep -q waiting: ann.err
	pawl done t1 --agent other
	loop_ends 0
	status_is t2 Done
	status_is t3 Done
	grep -q "2 tasks: 2 succeeded" ann.err
}

@test "--wait: stays while others work on tasks that the filter leaves out" {
	new a -l web
	new b --depends t1 -l db
	pawl claim t1 --agent other --ttl 1h
	looping ann --wait --label db -- true
	soon grep -q "waiting: no task is eligible now, but 1 open task can become so" ann.err
	pawl done t1 --agent other
	loop_ends 0
	status_is t2 Done
}

@test "--wait: takes over a task whose holder died, as soon as its lease expires" {
	new a
	pawl claim t1 --agent other --ttl 0.3s
	looping ann --wait -- true
	loop_ends 0
	status_is t1 Done
}

@test "--wait: waits for a date, and through a pause" {
	new a --delay 0.4s
	looping ann --wait -- true
	loop_ends 0
	new b
	pawl pause
	looping bob --wait -- true
	soon grep -q "waiting: the queue is paused" bob.err
	status_is t2 Ready
	pawl resume
	loop_ends 0
	status_is t2 Done
}

@test "--wait: ends when nothing is open, or when only people can continue" {
	call 10 run --loop --wait -- true
	new a
	new b --depends t1
	call 0 run --loop --wait --on-success review -- true
	complains "the loop ends here: the open tasks need a person first: t1, …"
	call 10 run --loop --wait -- true
	pawl rework t1 --reason "more tests"
	call 1 run --loop --wait -- false
	status_is t1 Failed
	call 10 run --loop --wait -- true
	new later --status backlog
	call 10 run --loop --wait -- true
}

@test "--wait DURATION: waits for people, too, and ends after DURATION without work" {
	new a
	new b --depends t1
	call 10 run --loop --wait 0.2s --label none -- true
	pawl claim t1
	pawl review t1 --summary x
	call 10 run --loop --wait 0.2s -- true
	complains "waiting: no task is eligible now, but 2 open tasks can become so"
	looping ann --wait=1h -- true
	soon grep -q waiting: ann.err
	pawl approve t1
	loop_ends 0
	status_is t2 Done
	new c
	pawl claim t3 --agent other --ttl 1h
	call 10 run --loop --wait 0.2s -- true
}

@test "--wait: without --loop it waits for the first task" {
	looping_once() { "$PAWL" run --next --wait 1h -- sh -c 'echo $PAWL_TASK' >once.out 2>once.err 3>&- & }
	new a --delay 0.4s
	new b
	pawl claim t2 --agent other --ttl 1h
	looping_once
	wait $!
	same "$(cat once.out)" t1
}

@test "--wait: two loops do not hand a task that both release to each other" {
	new a
	looping ann --wait --on-failure release -- sh -c 'echo x >>ran; [ $(wc -l <ran) -gt 9 ]'
	first=$loop
	looping bob --wait --on-failure release -- sh -c 'echo x >>ran; [ $(wc -l <ran) -gt 9 ]'
	loop_ends 1
	loop=$first
	loop_ends 1
	same "$(wc -l <ran)" 2
	status_is t1 Ready
}

@test "--wait: a released task is work again after its sub-tasks ended" {
	new a
	cat >agent.sh <<'END'
echo "$PAWL_TASK" >>ran
[ "$PAWL_TASK" != t1 ] || [ -e made ] || { : >made; "$PAWL" create sub --parent t1 -q; "$PAWL" claim t2 --agent other -q; }
END
	looping ann --wait -- env PAWL="$PAWL" sh agent.sh
	soon grep -q waiting: ann.err
	pawl done t2 --agent other
	loop_ends 40
	same "$(tr '\n' ' ' <ran)" "t1 t1 "
	status_is t1 Done
}

@test "--wait: a signal ends the wait" {
	new a
	pawl claim t1 --agent other --ttl 1h
	looping ann --wait -- true
	soon grep -q waiting: ann.err
	kill -TERM "$loop"
	loop_ends 10
}

@test "--wait: new work reaches a loop whose other jobs are busy" {
	new a
	looping ann --wait --jobs 2 -- sh -c 'echo $PAWL_TASK >>ran; until [ -e go ]; do sleep 0.05; done'
	soon grep -q t1 ran
	new b
	soon grep -q t2 ran
	: >go
	loop_ends 0
}

@test "--wait: takes a duration or none" {
	new a
	pawl claim t1 --agent other --ttl 1h
	call 10 run --loop --wait 0.1s -- true
	call 10 run --loop -w0.1s -- true
	call 10 run --loop -w 0.1s -- true
	call 2 run --loop --wait= -- true
	complains "--wait= needs a value"
	call 2 run --loop --wait=soon -- true
	complains "not a duration"
	call 2 run t1 --wait -- true
	complains "--wait cannot be used with an ID"
	call 0 run --help
	says "--wait [DURATION]"
}

@test "--wait: a released task is work again after another agent took it and died" {
	new a
	new b
	pawl claim t2 --agent other --ttl 1h
	looping ann --wait --on-failure release -- sh -c 'echo x >>ran; [ $(wc -l <ran) -gt 1 ]'
	soon grep -q "t1 is Ready" ann.err
	pawl claim t1 --agent other --ttl 0.3s
	soon grep -q "t1 is Done" ann.err
	pawl done t2 --agent other
	loop_ends 1
	same "$(wc -l <ran)" 2
}

# came_back ID WHY: every brief of the task says why it came back; an agent reads the words of a server in quotes
came_back() {
	local quoted=$2
	[[ ${PAWL_TEST_STORE-} != http* ]] || quoted="the server says: \"$2\""
	printf '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"claim","arguments":{"id":"%s"}}}\n' "$1" |
		"$PAWL" mcp >replies
	cat replies
	jq -e --arg why "$quoted" '.result | .structuredContent.came_back.why == $why
		and (.content[0].text | contains($why))' replies >/dev/null
	call 0 show "$1"
	says "came back" "$2"
	ask 0 show "$1"
	is ".came_back.why == \"$2\""
}

@test "came_back: the brief of a task says why it came back" {
	for i in 1 2 3 4 5 6 7; do
		new "$i"
		pawl claim "t$i" --agent bob
	done
	pawl review t1 --agent bob --summary mine
	pawl rework t1 --agent ann --reason "more tests"
	came_back t1 "ann sent it back for rework: more tests"
	pawl block t2 --agent bob --reason "no key" --unblock-action x
	pawl unblock t2 --agent ann
	came_back t2 "ann unblocked it (before, bob was blocked: no key)"
	pawl lock break t3 --agent ann --reason stuck
	came_back t3 "ann broke the lock of bob: stuck"
	pawl fail t4 --agent bob --reason "exit 1"
	pawl retry t4 --agent ann
	came_back t4 "ann ordered another attempt (before, bob failed: exit 1)"
	pawl release t5 --agent bob --reason "needs a Mac"
	came_back t5 "bob released it: needs a Mac"
	pawl done t6 --agent bob
	pawl reopen t6 --agent ann --reason "broken again"
	came_back t6 "ann reopened it: broken again"
	pawl escalate t7 --agent bob --reason "who decides?"
	pawl update t7 --agent ann --status ready
	came_back t7 "ann made it Ready (before, bob needed help: who decides?)"
}

@test "came_back: a program of run finds the reason in its environment" {
	new a
	pawl claim t1 --agent bob --ttl 0.1s
	soon not "$PAWL" lock check -q t1
	call 0 run --next --on-success none -- sh -c 'echo "$PAWL_TASK_CAME_BACK" >why'
	complains "t1 came back: the lease of bob expired"
	grep -q "^the lease of bob expired at " why
	new b
	call 0 run --next -- sh -c '! env | grep CAME_BACK'
}

@test "came_back: the reason of a failed attempt and of a next task" {
	new a
	call 3 run t1 -- sh -c 'exit 3'
	ask 0 claim t1
	is '.came_back.event == "failed" and (.came_back.why | contains("exit code 3"))'
	new b
	pawl claim t2 --agent bob
	pawl release t2 --agent bob --reason tired
	call 0 claim t2 --agent cy
	says "came back: 1 earlier claim" "bob released it: tired"
	pawl release t2 --agent cy --reason tired
	ask 0 done t1 --claim-next
	is '.came_back == null and .next.came_back.why == "cy released it: tired"'
}

#!/usr/bin/env bats
# Shell scripts: pawl run with a command of their own, and output for other programs.

load common
load background

setup() {
	fresh
	queue
}

# interrupted SIGNAL ARG...: pawl run ARG... with a command that gets SIGNAL through pawl; leaves $rc and the file err
interrupted() {
	local signal=$1
	shift
	rm -f began
	# the tests themselves may run with a signal ignored, as under nohup
	env --default-signal="$signal" "$PAWL" run "$@" -- sh -c 'echo $$ >>pids; : >began; i=0; while [ $i -lt 600 ]; do sleep 0.1; i=$((i+1)); done' \
		>out 2>err 3>&- &
	echo $! >>pids
	soon [ -e began ]
	kill "-$signal" $!
	rc=0
	wait $! || rc=$?
	cat err
}

@test "run: an interrupt releases the task, and ends a loop" {
	new x
	new y
	interrupted TERM --next
	same "$rc" 143
	status_is t1 Ready
	grep -q 't1 is Ready (interrupted; signal 15' err
	call 0 log t1 --json
	is '.events | map(select(.event == "released")) | .[0].text | test("was interrupted and ended with signal 15")'
	interrupted HUP --loop
	same "$rc" 129
	grep -q 'the loop ends here: signal 1 (Hangup)' err
	grep -q '1 task: 0 succeeded, 0 failed, 0 lost, 1 interrupted' err
	status_is t1 Ready
	status_is t2 Ready
}

@test "run --on-interrupt: fail, block, escalate" {
	for title in a b c; do new $title; done
	interrupted TERM t1 --on-interrupt fail
	status_is t1 Failed
	interrupted TERM t2 --on-interrupt block
	status_is t2 Blocked
	interrupted TERM t3 --on-interrupt escalate
	status_is t3 "Needs Help"
	new d
	call 3 run t4 --on-interrupt escalate -- sh -c 'exit 3'
	status_is t4 Failed
	unchanged 2 run t4 --on-interrupt none -- true
}

@test "run: Ctrl-C on the terminal releases the task, also if the command catches it" {
	needs python3
	needs_terminal
	new x
	cat >keys.py <<-'END'
		import os, pty, signal, sys, time

		pid, fd = pty.fork()
		if pid == 0:
		    signal.signal(signal.SIGINT, signal.SIG_DFL)  # a job in the background of a script ignores it
		    os.execvp(os.environ["PAWL"], ["pawl", "run", "--next", "--", "sh", "-c", sys.argv[1]])
		seen, end = b"", time.time() + 20
		while b"began\r" not in seen:
		    assert time.time() < end, seen
		    seen += os.read(fd, 4096)
		os.write(fd, b"\x03")
		try:
		    while True:
		        seen = os.read(fd, 4096)
		        if not seen:
		            break
		        sys.stdout.write(seen.decode())
		except OSError:
		    pass
		sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
	END
	run -130 python3 keys.py 'echo began; read x' 3>&-
	[[ $output == *"t1 is Ready (interrupted; signal 2"* ]]
	status_is t1 Ready
	run -130 python3 keys.py 'trap "exit 130" INT; echo began; read x' 3>&-
	[[ $output == *"t1 is Ready (interrupted; exit code 130"* ]]
	status_is t1 Ready
}

@test "run --on-failure block: Blocked, with the step that unblocks it" {
	new x
	call 3 run t1 --on-failure block -- sh -c 'exit 3'
	status_is t1 Blocked
	[[ $(field t1 .blocker_reason) == *'exit code 3'* ]]
	[[ $(field t1 .unblock_action) == *'pawl unblock t1'* ]]
	complains "t1 is Blocked (exit code 3)"
	call 0 unblock t1
}

@test "run: says what it runs, and why it stops" {
	new "First task"
	call 0 run --loop -- sh -c 'exit 0'
	complains "claimed t1 (fence 1): First task" 'running `sh -c exit 0` for t1' "t1 is Done (exit code 0)" \
		"the loop ends here: no other task is eligible" "1 task: 1 succeeded, 0 failed, 0 lost"
}

@test "run --replace: the id in the place of STR, in the arguments only" {
	new x
	new y
	call 0 run --loop --replace '{}' -- printf '%s|' '{}' 'a{}b{}' '{ }' '{'
	exactly 't1|at1bt1|{ }|{|t2|at2bt2|{ }|{|'
	complains 'running `printf %s| t1 at1bt1 { } {` for t1'
	new z
	call 0 run --next -I ID -q -- echo ID
	exactly t3
	new w
	unchanged 2 run --next --replace '{}' -- echo
	complains "no argument of the command contains STR"
	unchanged 2 run --next --replace echo -- echo x
	unchanged 2 run --next --replace '' -- echo x
}

@test "run: the task in PAWL_TASK variables, whatever its texts are" {
	export PAWL_TASK_EFFORT=outer
	hostile='$(touch pwned) `touch pwned` "; touch pwned;'
	new "$hostile" -d $'two\nlines '"$hostile" --acceptance 'it works' --type bug -p 7 -c expedite -l 'a b' -l c --due 2030-01-02
	new sub --parent t1
	cat >look <<-'END'
		#!/bin/sh
		env | grep '^PAWL_TASK' | sort
		printf '%s\n' "$PAWL_TASK_TITLE" >title
		printf '%s' "$PAWL_TASK_DESCRIPTION" >description
		printf '%s' "$PAWL_TASK_LABELS" >labels
		exit 0
	END
	chmod +x look
	call 41 run t1 -q -- ./look
	same "$(cat title)" "$hostile"
	same "$(cat description)" $'two\nlines '"$hostile"
	same "$(cat labels)" $'a b\nc'
	says PAWL_TASK=t1 "PAWL_TASK_ACCEPTANCE=it works" PAWL_TASK_TYPE=bug PAWL_TASK_PRIORITY=7 PAWL_TASK_CLASS=Expedite \
		PAWL_TASK_DUE=2030-01-02 PAWL_TASK_ATTEMPT=1
	[[ $output != *EFFORT* ]]
	[ ! -e pwned ]
	call 0 run t2 -q -- ./look
	says PAWL_TASK=t2 PAWL_TASK_PARENT=t1
	[[ $output != *PAWL_TASK_TYPE* ]]
}

@test "run: a text that is too long for the environment is left out, and the command runs" {
	head -c 200000 /dev/zero | tr '\0' x | pawl create long -d -
	call 0 run t1 -q -- sh -c 'echo "${PAWL_TASK_DESCRIPTION-none} $PAWL_TASK_TITLE"'
	exactly "none long"
}

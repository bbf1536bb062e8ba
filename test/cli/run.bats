#!/usr/bin/env bats
# pawl run: a command under a lease, and every fate of the command, the lease and pawl.

load common
load background

# in_background ARG...: pawl run ARG..., its pid in $pawl
in_background() {
	"$PAWL" run "$@" >out 2>err 3>&- &
	pawl=$!
	echo "$pawl" >>pids
}

# ends CODE: pawl in the background ends with CODE
ends() {
	local rc=0
	wait "$pawl" || rc=$?
	cat err
	same "$rc" "$1"
}

# gone PID: there is no such process, or only a zombie
gone() {
	[ ! -e "/proc/$1/stat" ] || [ "$(sed 's/.*) \(.\).*/\1/' "/proc/$1/stat")" = Z ]
}

# A script that writes its own pid to the file $1 (and to pids), then does $2.
noting() {
	printf 'echo $$ >>pids; echo $$ >%s.tmp; mv %s.tmp %s; %s' "$1" "$1" "$1" "$2"
}

# forever, but not longer than a test
forever='i=0; while [ $i -lt 600 ]; do sleep 0.1; i=$((i+1)); done'

@test "exit 0 makes it Done, and the command knows its task" {
	needs_local "the id of a far queue is a file beside the tokens"
	new "A task"
	call 0 run --next -q -- sh -c 'echo "$PAWL_TASK $PAWL_FENCE $PAWL_STORE $PAWL_AGENT"; "$PAWL" heartbeat -q "$PAWL_TASK"; echo "$PAWL_TOKEN" >token'
	exactly "t1 1 $(store_uri) tester@$(hostname)"
	[ -z "$stderr" ]
	[[ $(cat token) =~ ^$uuid$ ]]
	status_is t1 Done
	[[ $(field t1 .summary) == *'exit code 0'* ]]
	same "$(find "$XDG_STATE_HOME/pawl" -maxdepth 1 -type f | wc -l)" 0
}

@test "another exit code makes it Failed with a reason, and is passed on" {
	new x
	new y
	call 3 run t1 -- sh -c 'exit 3'
	status_is t1 Failed
	[[ $(field t1 .blocker_reason) == *'`sh -c exit 3`'*'exit code 3'* ]]
	call 137 run t2 -- sh -c 'kill -9 $$'
	[[ $(field t2 .blocker_reason) == *'signal 9'* ]]
	complains "t2 is Failed"
}

@test "the forms of the answer: standard output is for one of the two" {
	new x
	new y
	new z
	PAWL_FORMAT=json ask 0 run --next -- sh -c true
	PAWL_FORMAT=json call 0 run --next -- sh -c 'echo from the command'
	is '.ok and .task.id == "t2" and .task.status == "Done" and .run == {"fence": 1, "exit_code": 0}'
	same "$stderr" "from the command"
	PAWL_FORMAT=porcelain lines 0 run --next -- sh -c true
	exactly "SUCCESS: task=t3 status=Done"
	new w
	PAWL_FORMAT=porcelain call 4 run --next -- sh -c 'exit 4'
	exactly "SUCCESS: task=t4 status=Failed"
}

@test "refused before anything is claimed" {
	unchanged 10 run --next -- true
	new x
	unchanged 2 run t1 --next -- true
	unchanged 2 run t1 --loop -- true
	unchanged 2 run t1 --jobs 2 -- true
	unchanged 2 run t1 --label l -- true
	unchanged 2 run t1
	complains "COMMAND"
	unchanged 2 run t1 make test
	complains "after --"
	unchanged 2 run t1 --on-success fail -- true
	unchanged 2 run t1 --jobs 0 -- true
	unchanged 2 run -- no-such-program
	complains "no program 'no-such-program'" "nothing was claimed"
	unchanged 2 run -- ./
	claim_makes_tasks || unchanged 44 run nope -- true
	pawl claim t1 -a al
	unchanged 20 run t1 -- true
	complains al
	PAWL_FORMAT=json ask 10 run -- true
	is '.code == "NO_TASKS" and .task == null'
	cd ..
	call 40 run -- true
}

@test "a program that cannot be started after all: the task is released" {
	new x
	printf 'no program at all' >bad
	chmod +x bad
	call 2 run --next -- ./bad
	complains "cannot start" "pawl released"
	status_is t1 Ready
}

@test "--on-success review, with a summary of its own making or a given one; none" {
	new x
	new y
	new z
	call 0 run t1 --on-success review -- true
	status_is t1 Review
	same "$(field t1 .summary)" '`true` ended with exit code 0'
	call 0 run t2 --on-success review --summary "all tests pass" -- true
	same "$(field t2 .summary)" "all tests pass"
	call 0 run t3 --on-success none -- true
	status_is t3 "In Progress"
	unchanged 20 claim t3 -a other
	call 0 done t3
}

@test "--on-failure release and escalate" {
	new x
	new y
	call 1 run t1 --on-failure release -- false
	status_is t1 Ready
	call 1 run t2 --on-failure escalate -- false
	status_is t2 "Needs Help"
	[[ $(field t2 .blocker_reason) == *'`false` ended with exit code 1'* ]]
}

@test "a claim's warnings are passed on" {
	new a
	new b --depends t1
	call 0 run t2 -- true
	complains "depends on 1 task"
}

@test "open sub-tasks: the task is released, and pawl says so" {
	new parent
	new child --parent t1
	call 41 run t1 -- true
	complains "sub-task"
	status_is t1 Ready
	[ "$(field t1 .lock)" = null ]
}

@test "the status that the command itself sets stands" {
	new x
	new y
	new z
	call 0 run t1 -- sh -c '"$PAWL" review -q "$PAWL_TASK" -s mine'
	status_is t1 Review
	same "$(field t1 .summary)" mine
	call 0 run t2 -- sh -c '"$PAWL" block -q "$PAWL_TASK" -r r -u u'
	status_is t2 Blocked
	pawl unblock t2
	PAWL_FORMAT=json call 0 run t2 -- sh -c '"$PAWL" fail -q "$PAWL_TASK" -r r'
	is '.ok and .task.status == "Failed" and .run.settled'
	# and this does not count as a lost lock, although the lease cannot be renewed any more
	call 0 run t3 --ttl 0.3s -- sh -c '"$PAWL" release -q "$PAWL_TASK"; sleep 1; echo continued'
	says "continued"
	status_is t3 Ready
	complains "the command itself set this status"
}

@test "a command that sleeps past the lease keeps its task" {
	new x
	in_background --next --ttl 1s -- sh -c "$(noting cmd "$forever")"
	soon [ -e cmd ]
	until=$(field t1 .lock.expires_at)
	soon renewed_since "$until"
	until=$(field t1 .lock.expires_at)
	soon renewed_since "$until"
	call 10 next --claim -a other
	kill -9 "$(cat cmd)"
	ends 137
	status_is t1 Failed
	same "$(field t1 .fence)" 1
}

renewed_since() {
	[[ $(field t1 .lock.expires_at) > $1 ]]
}

@test "the lock is lost: SIGTERM, exit code 21, and nothing is reported" {
	new x
	in_background --next --ttl 1s -- sh -c "$(noting cmd "trap 'echo told >told; exit 0' TERM; $forever")"
	soon [ -e cmd ]
	pawl lock break t1 -r r -a boss
	pawl claim t1 -a other --ttl 10m
	ends 21
	grep -q "lock on t1" err
	same "$(cat told)" told
	gone "$(cat cmd)"
	same "$(field t1 .status) $(field t1 .lock.holder)" "In Progress other"
}

@test "the lock is lost: one that ignores SIGTERM is killed after the grace" {
	new x
	in_background --next --ttl 1s --grace 0.3s -- sh -c "$(noting cmd "trap '' TERM; $forever")"
	soon [ -e cmd ]
	pawl lock break t1 -r r -a boss
	ends 21
	gone "$(cat cmd)"
}

@test "the lock is lost: the processes that the command forked end with it" {
	new x
	in_background --next --ttl 1s --grace 0.3s -- \
		sh -c "sh -c '$(noting child "trap \"\" TERM; $forever")' & $(noting cmd 'wait; exit 0')"
	soon [ -e cmd ]
	soon [ -e child ]
	pawl lock break t1 -r r -a boss
	ends 21
	gone "$(cat cmd)"
	gone "$(cat child)"
}

@test "stopped with SIGSTOP: the lease is renewed; if it is lost, the command is ended all the same" {
	new x
	in_background --next --ttl 1s --grace 5s -- sh -c "$(noting cmd "trap 'echo told >told; exit 0' TERM; $forever")"
	soon [ -e cmd ]
	kill -STOP "$(cat cmd)"
	until=$(field t1 .lock.expires_at)
	soon renewed_since "$until"
	pawl lock break t1 -r r -a boss
	ends 21
	same "$(cat told)" told
	gone "$(cat cmd)"
}

@test "stopped with SIGSTOP, pawl is told to end: the command hears of it" {
	new x
	in_background --next -- sh -c "$(noting cmd "trap 'echo told >told; exit 5' TERM; $forever")"
	soon [ -e cmd ]
	kill -STOP "$(cat cmd)"
	kill -TERM "$pawl"
	soon [ -e told ]
	ends 5
	status_is t1 Ready
}

@test "pawl itself stopped for longer than the lease: 21 when it continues" {
	new x
	in_background --next --ttl 0.5s -- sh -c "$(noting cmd "$forever")"
	soon [ -e cmd ]
	kill -STOP "$pawl"
	lapsed t1
	pawl claim t1 -a other --ttl 10m
	kill -CONT "$pawl"
	ends 21
	gone "$(cat cmd)"
	same "$(field t1 .lock.holder)" other
}

@test "pawl killed with -9: the command and its children end, the lease expires" {
	new x
	in_background --next --ttl 1s --grace 0.3s -- \
		sh -c "sh -c '$(noting child "trap \"\" TERM; $forever")' & $(noting cmd 'wait')"
	soon [ -e cmd ]
	soon [ -e child ]
	kill -9 "$pawl"
	wait "$pawl" || true
	soon gone "$(cat cmd)"
	soon gone "$(cat child)"
	lapsed t1
	call 0 next --claim -q -a other
	exactly t1
	same "$(field t1 .fence)" 2
}

@test "pawl killed with -9: lock cleanup need not wait for the lease" {
	new x
	in_background --next --ttl 1h -- sh -c "$(noting cmd "$forever")"
	soon [ -e cmd ]
	same "$(field t1 .lock.pid)" "$pawl"
	same "$(field t1 .lock.pid_start)" "$(sed 's/.*) //' "/proc/$pawl/stat" | cut -d' ' -f20)"
	[[ $(field t1 .lock.boot_id) == "$(cat /proc/sys/kernel/random/boot_id)"* ]]
	ask 0 lock cleanup
	is '.count == 0'
	kill -9 "$pawl"
	wait "$pawl" || true
	ask 0 lock cleanup
	is '.count == 1'
	call 0 claim t1 -a other
}

@test "signals are passed on, and end a loop" {
	new x
	new y
	in_background --loop -- sh -c "trap 'echo term >got; exit 0' TERM; trap 'echo usr >>usr' USR1; $(noting cmd "$forever")"
	soon [ -e cmd ]
	kill -USR1 "$pawl"
	soon [ -e usr ]
	kill -TERM "$pawl"
	ends 0
	same "$(cat got)" term
	status_is t1 Done
	status_is t2 Ready
}

@test "a signal that the caller ignores stays ignored" {
	new x
	(
		trap '' HUP
		in_background --next -- sh -c "$(noting cmd "kill -HUP \$PPID; kill -HUP \$\$; echo alive >alive")"
		ends 0
	)
	same "$(cat alive)" alive
}

@test "processes that the command leaves running are ended before the task is Done" {
	new x
	call 0 run --next --grace 0.3s -- sh -c "sh -c '$(noting child "trap \"\" TERM; $forever; echo >survived")' & while [ ! -e child ]; do sleep 0.05; done"
	gone "$(cat child)"
	[ ! -e survived ]
	status_is t1 Done
}

@test "the store is busy at a renewal: tried again, nothing lost" {
	needs_local "it breaks or watches the store itself"
	new x
	call 0 run --next --ttl 1s --store "$(faulty modify:2:busy)" -- sleep 1.2
	status_is t1 Done
}

@test "the answer to the report is lost: it is repeated" {
	needs_local "it breaks or watches the store itself"
	new x
	call 0 run --next --store "$(faulty modify:2:lost)" -- true
	status_is t1 Done
	same "$("$PAWL" log t1 --json | jq '[.events[] | select(.event == "done")] | length')" 1
}

@test "the store cannot be reached until the lease is over: 21" {
	needs_local "it breaks or watches the store itself"
	new x
	in_background --next --ttl 0.6s --grace 0.3s --store "$(faulty modify:2:fail:always)" -- sh -c "$(noting cmd "$forever")"
	soon [ -e cmd ]
	ends 21
	gone "$(cat cmd)"
	lapsed t1
}

@test "--loop: until none is left, with tasks that become eligible on the way" {
	new a
	new b --depends t1
	new c --depends t2
	new bad
	call 7 run --loop -- sh -c 'echo $PAWL_TASK; [ $PAWL_TASK != t4 ] || exit 7'
	same "$(sort <<<"$output" | tr '\n' ' ')" "t1 t2 t3 t4 "
	complains "4 tasks: 3 succeeded, 1 failed, 0 lost"
	status_is t4 Failed
	status_is t3 Done
	PAWL_FORMAT=json call 10 run --loop -- true
	new d
	PAWL_FORMAT=json call 0 run --loop -- true
	is '.runs == {"ran": 1, "succeeded": 1, "failed": 0, "lost": 0, "not_reported": 0}'
}

@test "--loop with --on-failure release does not spin" {
	new a
	new b
	call 1 run --loop --on-failure release -- sh -c 'echo $PAWL_TASK >>ran; [ $(wc -l <ran) -gt 20 ]'
	complains "the loop ends here: 2 eligible tasks are passed over"
	same "$(tr '\n' ' ' <ran)" "t1 t2 "
	status_is t1 Ready
	PAWL_FORMAT=json call 1 run --loop --on-failure release -- false
	is '.runs.again == "t1" and .runs.ran == 2'
}

@test "--loop: a task that the command itself released is not taken again" {
	new a
	new b
	call 0 run --loop -- sh -c 'echo $PAWL_TASK >>ran; [ $(wc -l <ran) -lt 9 ] && "$0" release $PAWL_TASK -q' "$PAWL"
	same "$(tr '\n' ' ' <ran)" "t1 t2 "
	complains "2 eligible tasks are passed over"
}

@test "--loop: an epic is not started over and over" {
	new Epic -c expedite
	new one --parent t1
	call 0 run --loop -- sh -c 'echo $PAWL_TASK >>ran'
	same "$(tr '\n' ' ' <ran)" "t2 t1 "
	status_is t1 Done
}

@test "--loop: a task that it released is offered again after a comment or a change" {
	new a
	new b
	new c
	cat >work.sh <<'END'
echo "$PAWL_TASK" >>ran
[ "$(grep -c . ran)" -lt 20 ] || exit 0
[ "$PAWL_TASK" != t3 ] || { "$PAWL" comment t1 "try harder" && exit 0; }
exit 1
END
	call 1 run --loop --on-failure release -- env PAWL="$PAWL" sh work.sh
	same "$(tr '\n' ' ' <ran)" "t1 t2 t3 t1 "
}

@test "--jobs: N at once, each task once" {
	for _ in 1 2 3 4 5 6; do new x; done
	# each waits for two others: with fewer than three at once none would succeed
	call 0 run --loop --jobs 3 -- sh -c 'echo $PAWL_TASK >>ran; touch at.$PAWL_TASK
		i=0; while [ $(ls at.* | wc -l) -lt 3 ]; do i=$((i+1)); [ $i -lt 200 ] || exit 1; sleep 0.1; done
		if read -r line; then exit 1; fi'
	same "$(sort ran | uniq -d)" ""
	same "$(wc -l <ran)" 6
	same "$("$PAWL" list --status done --json | jq .total)" 6
}

@test "--jobs without --loop: N tasks and no more" {
	for _ in 1 2 3; do new x; done
	call 0 run --jobs 2 -- sh -c 'echo $PAWL_TASK'
	same "$(sort <<<"$output" | tr '\n' ' ')" "t1 t2 "
	status_is t3 Ready
}

@test "--label, --class and --type choose the task" {
	new a
	new b -l fast
	new c -c expedite
	call 0 run --label fast -- sh -c 'echo $PAWL_TASK'
	says t2
	call 0 run --class expedite -- sh -c 'echo $PAWL_TASK'
	says t3
	call 10 run --type bug -- true
}

@test "-C: the command runs there, too" {
	new x
	mkdir sub
	cd /
	call 0 run -C "$work/sub" --next -q -- pwd
	exactly "$work/sub"
}

@test "on a terminal the command is in the foreground, and pawl is again afterwards" {
	needs ps
	needs_terminal
	new x
	cat >inside <<-'END'
		"$PAWL" run --next -q -- sh -c 'ps -o pgid=,tpgid= -p $$ >during'
		ps -o pgid=,tpgid= -p $$ >after
	END
	script -qec "bash inside" /dev/null </dev/null >/dev/null
	read -r group foreground <during
	same "$group" "$foreground"
	read -r group foreground <after
	same "$group" "$foreground"
	status_is t1 Done
}

@test "^Z stops the command and pawl, fg continues with both" {
	needs python3
	needs_terminal
	new x
	cat >shell.py <<-'END'
		import os, pty, select, time

		pid, fd = pty.fork()
		if pid == 0:
		    os.execvp("bash", ["bash", "--norc", "--noprofile", "--noediting", "-i"])

		def until(text):
		    seen, end = b"", time.time() + 20
		    while text not in seen:
		        assert time.time() < end, (text, seen)
		        if select.select([fd], [], [], 0.1)[0]:
		            seen += os.read(fd, 4096)

		def say(text):
		    os.write(fd, text.encode())

		say("\"$PAWL\" run --next -- sh -c 'echo be''gan; read x; echo got $x >got'\n")
		until(b"began\r")
		say("\x1a")
		until(b"Stopped")
		say("fg\n")
		until(b"be''gan")
		say("hello\n")
		until(b"t1 is Done")
		say("exit\n")
		until(b"exit")
		os.waitpid(pid, 0)
	END
	python3 shell.py 3>&-
	same "$(cat got)" "got hello"
	status_is t1 Done
}

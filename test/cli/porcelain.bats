#!/usr/bin/env bats
# The line protocol of files-protocol.md: a shell script written for it works with pawl.

load common

other=11111111-1111-4111-8111-111111111111

@test "the protocol's three scripts: claim, complete, fail" {
	task=design-vpc-module agent=terraform-engineer
	pawl create "Design the VPC module" -i $task
	lines 0 claim $task --agent $agent --description "Design and implement" --ttl 1h
	exactly "LOCK_ACQUIRED: task=design-vpc-module agent=terraform-engineer"
	lines 20 claim $task --agent another
	matches "LOCK_EXISTS: task=design-vpc-module agent=terraform-engineer claimed=$time"
	lines 0 done $task --agent $agent
	exactly "TASK_COMPLETE: task=design-vpc-module"
	lines 40 claim $task --agent another
	exactly "TASK_ALREADY_DONE: task=design-vpc-module"
	pawl create "Another" -i second
	pawl claim second -a $agent
	lines 0 fail second -a $agent --reason "terraform validate failed with 3 errors"
	exactly "TASK_FAILED: task=second reason=terraform validate failed with 3 errors"
}

@test "claim && work does a task once" {
	new x
	"$PAWL" claim t1 -a al --porcelain && "$PAWL" done t1 -a al
	worked=no
	"$PAWL" claim t1 -a bo --porcelain && worked=yes || true
	same "$worked" no
}

@test "list: the three sections of the protocol, then Ready tasks and all other tasks" {
	lines 0 list
	exactly "=== Active Tasks ===
=== Completed Tasks ===
=== Failed Tasks ===
=== Ready Tasks ===
=== Other Tasks ==="
	for id in waits active done failed locked; do pawl create "A $id task" -i $id; done
	pawl create x -i later --status backlog
	pawl create x -i stuck
	pawl claim stuck -a al
	pawl escalate stuck -a al -r why
	pawl claim active -a al
	pawl claim "done" -a bo
	pawl done "done" -a bo
	pawl claim failed -a cy
	pawl fail failed -a cy -r "no luck"
	pawl lock acquire locked -a di
	lines 0 list
	matches "=== Active Tasks ===
  active: al \(since $time\)
  locked: di \(since $time\)
=== Completed Tasks ===
  done: bo \(completed $time\)
=== Failed Tasks ===
  failed: cy - \"no luck\"
=== Ready Tasks ===
  waits: title=\"A waits task\"
=== Other Tasks ===
  later: status=Backlog title=x
  stuck: status=\"Needs Help\" title=x"
	lines 0 list --status failed
	exactly '=== Active Tasks ===
=== Completed Tasks ===
=== Failed Tasks ===
  failed: cy - "no luck"
=== Ready Tasks ===
=== Other Tasks ==='
}

@test "list: no limit unless one is given, because a line cannot say that tasks are missing" {
	seq 120 | sed 's/^/task /' | pawl batch add -
	lines 0 list
	same "$(grep -c title= <<<"$output")" 120
	lines 0 list -n 7
	same "$(grep -c title= <<<"$output")" 7
	lines 0 find task
	same "$(grep -c title= <<<"$output")" 120
	call 0 list -q
	same "$(wc -l <<<"$output")" 120
}

@test "list: a value cannot look like another part of the line" {
	pawl create $'x" status=Done\n  t9: y' -i a
	pawl create 'back\slash' -i b
	pawl create 'über' -i c
	pawl create gone -i d
	pawl claim d -a 'eve (since now) - "x"'
	lines 0 list
	matches "=== Active Tasks ===
  d: \"eve \(since now\) - \\\\\"x\\\\\"\" \(since $time\)
=== Completed Tasks ===
=== Failed Tasks ===
=== Ready Tasks ===
  a: title=\"x\\\\\" status=Done\\\\x0a  t9: y\"
  b: title=\"back\\\\\\\\slash\"
  c: title=\"über\"
=== Other Tasks ==="
}

@test "every acquisition says LOCK_ACQUIRED" {
	for id in a b c d e; do pawl create x -i $id -p 5; done
	lines 0 claim a -a al
	exactly "LOCK_ACQUIRED: task=a agent=al"
	lines 0 next --claim -a al
	exactly "LOCK_ACQUIRED: task=b agent=al"
	lines 0 lock acquire c -a al
	exactly "LOCK_ACQUIRED: task=c agent=al"
	lines 0 status d in-progress -a al
	exactly "LOCK_ACQUIRED: task=d agent=al"
	lines 0 done a -a al --claim-next
	exactly "TASK_COMPLETE: task=a
LOCK_ACQUIRED: task=e agent=al"
}

@test "every refusal by a lock says LOCK_EXISTS, every lost one LOST_LOCK" {
	new x
	pawl claim t1 -a al
	want="LOCK_EXISTS: task=t1 agent=al claimed=$time"
	lines 20 claim t1 -a bo
	matches "$want"
	lines 20 lock acquire t1 -a bo
	matches "$want"
	lines 20 status t1 in-progress -a bo
	matches "$want"
	lines 20 update t1 -p 5 -a bo
	matches "$want"
	lines 21 done t1 -a bo
	exactly "LOST_LOCK: task=t1 status=In Progress"
	lines 21 fail t1 -r r --token "$other"
	exactly "LOST_LOCK: task=t1 status=In Progress"
}

@test "completion is said once it is so: approve and status, too" {
	new x
	pawl claim t1
	lines 0 review t1 -s s
	exactly "SUCCESS: task=t1 status=Review"
	lines 0 approve t1
	exactly "TASK_COMPLETE: task=t1"
	new y
	pawl claim t2
	lines 0 status t2 done
	exactly "TASK_COMPLETE: task=t2"
	lines 0 show t2
	exactly "SUCCESS: task=t2 status=Done"
	lines 0 status t2
	exactly "SUCCESS: task=t2 status=Done"
}

@test "failures without a task have their message on the line, and on stderr" {
	lines 44 claim nope --resume 1
	exactly "NOT_FOUND: message=there is no task nope"
	complains "there is no task nope"
	lines 2 claim
	[[ $output == "USAGE: message=claim needs ID"* ]]
	lines 40 list -C /
	[[ $output == "MISCONFIGURED: message=there is no queue here"* ]]
	lines 10 next
	[[ $output == "NO_TASKS:"* ]]
}

@test "no key has a blank in it" {
	new x
	pawl claim t1
	for args in status "lock list" log "config list" "next --explain" doctor version; do
		read -ra words <<<"$args"
		lines 0 "${words[@]}"
		[ -n "$output" ]
		while IFS= read -r row; do
			[[ $row =~ ^[A-Z_]+:(\ [a-zA-Z_.-]+=|$) ]] || {
				echo "not a line of the protocol: $row"
				return 1
			}
		done <<<"$output"
	done
	lines 0 status
	says " In-Progress=1 "
}

@test "a token is never on a line" {
	new x
	new y
	lines 0 claim t1 --token "$other"
	[[ $output != *$other* ]]
	lines 0 done t1 --claim-next --next-token 22222222-2222-4222-8222-222222222222
	[[ $output != *2222* ]]
}

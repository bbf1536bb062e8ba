#!/usr/bin/env bats
# approve, rework, unblock, retry, reopen, cancel: the decisions of a reviewer and of a person.

load common

other=11111111-1111-4111-8111-111111111111

# in_review: a new task, in Review
in_review() {
	local id
	id=$(new x)
	pawl claim "$id" -a al
	pawl review "$id" -a al -s "did it"
	echo "$id"
}

@test "approve: Review to Done, by anybody" {
	id=$(in_review)
	call 0 approve "$id" -a bo --summary "well done"
	exactly "$id → Done"
	ask 0 show "$id"
	is '.task | .status == "Done" and .summary == "did it" and (.done_at | length > 0)'
	is '[.comments[].text] | contains(["well done"])'
	ask 0 approve "$(in_review)"
	is '.task.status == "Done"'
	id=$(in_review)
	lines 0 approve "$id"
	exactly "TASK_COMPLETE: task=$id"
}

@test "approve: overrides open sub-tasks, and the log says so" {
	id=$(in_review)
	new sub --parent "$id"
	call 0 approve "$id"
	status_is "$id" Done
	ask 0 log "$id"
	is '[.events[] | select(.event == "approved" or .event == "done") | .text // "" | test("sub-task")] | any'
}

@test "approve, rework: another's manual lock is CONFLICT" {
	id=$(in_review)
	pawl lock acquire "$id" -a al
	unchanged 20 approve "$id" -a bo
	complains al
	unchanged 20 rework "$id" -a bo -r r
	ask 20 approve "$id" -a bo
	lines 20 approve "$id" -a bo
	matches "LOCK_EXISTS: task=$id agent=al claimed=$time"
	unchanged 21 approve "$id" --token "$other"
	unchanged 21 rework "$id" -r r --token "$other"
	call 0 approve "$id" -a al
}

@test "rework: Review to In Progress, the reason becomes a comment" {
	id=$(in_review)
	unchanged 2 rework "$id"
	complains --reason
	call 0 rework "$id" -a bo --reason "tests lack"
	exactly "$id → In Progress"
	ask 0 show "$id"
	is '.task.lock == null and ([.comments[].text] | contains(["tests lack"]))'
	call 0 next -a bo -q
	exactly t1
	ask 0 claim "$id" -a al
	is '.lock.fence == 2'
	pawl review "$id" -a al -s s
	ask 0 rework "$id" -r r
	id=$(in_review)
	lines 0 rework "$id" -r r
	exactly "SUCCESS: task=$id status=In Progress"
}

@test "unblock: Blocked and Needs Help to In Progress; reason and action kept" {
	new x
	pawl claim t1
	pawl block t1 -r why -u do
	call 0 unblock t1 --reason "key is here"
	exactly "t1 → In Progress"
	ask 0 show t1
	is '.task | .blocker_reason == "why" and .unblock_action == "do" and .lock == null'
	pawl claim t1
	pawl escalate t1 -r r
	ask 0 unblock t1
	is '.task.status == "In Progress"'
	pawl claim t1
	pawl escalate t1 -r r
	lines 0 unblock t1
	exactly "SUCCESS: task=t1 status=In Progress"
}

@test "retry: Failed to Ready" {
	new x
	for form in call ask lines; do
		pawl claim t1
		pawl fail t1 -r r
		case $form in
		call)
			call 0 retry t1
			exactly "t1 → Ready"
			;;
		ask) ask 0 retry t1 ;;
		lines)
			lines 0 retry t1
			exactly "SUCCESS: task=t1 status=Ready"
			;;
		esac
	done
}

@test "retry: another's lock is CONFLICT, a stale token LOST_LOCK" {
	new x
	pawl claim t1
	pawl fail t1 -r r
	pawl lock acquire t1 -a al
	unchanged 20 retry t1 -a bo
	unchanged 21 retry t1 --token "$other"
}

@test "reopen: Done and Canceled to Ready" {
	new x
	pawl cancel t1 -r no
	unchanged 2 reopen t1
	call 0 reopen t1 --reason "yes, after all"
	exactly "t1 → Ready"
	pawl claim t1
	pawl done t1
	ask 0 reopen t1 -r r
	is '.task.status == "Ready" and (.task | has("done_at") | not)'
	pawl cancel t1 -r no
	lines 0 reopen t1 -r r
	exactly "SUCCESS: task=t1 status=Ready"
}

@test "cancel: from anything but Done and Canceled" {
	new x --status backlog
	unchanged 2 cancel t1
	call 0 cancel t1 --reason "not wanted"
	exactly "t1 → Canceled"
	ask 0 show t1
	is '.task | .status == "Canceled" and .blocker_reason == "not wanted"'
	new y
	ask 0 cancel t2 -r r
	new z
	lines 0 cancel t3 -r r
	exactly "SUCCESS: task=t3 status=Canceled"
	id=$(in_review)
	call 0 cancel "$id" -r r
}

@test "cancel: In Progress under a live lock is the holder's" {
	new x
	pawl claim t1 -a al
	before=$(snapshot)
	run "$PAWL" cancel t1 -r r -a bo
	[ "$status" -eq 20 ] || [ "$status" -eq 21 ]
	same "$before" "$(snapshot)"
	unchanged 21 cancel t1 -r r -a al --token "$other"
	ask 0 cancel t1 -r r -a al
	is '.task.lock == null'
}

@test "from a wrong status: MISCONFIGURED, with the status found and the statuses allowed" {
	new x
	unchanged 40 approve t1
	complains "t1 is Ready" Review
	unchanged 40 rework t1 -r r
	complains Review
	unchanged 40 unblock t1
	complains Blocked "Needs Help"
	unchanged 40 retry t1
	complains Failed
	unchanged 40 reopen t1 -r r
	complains Done Canceled
	ask 40 reopen t1 -r r
	is '.task.status == "Ready" and (.error.hint | contains("pawl claim t1"))'
	lines 40 retry t1
	exactly "MISCONFIGURED: task=t1 status=Ready"
	pawl cancel t1 -r r
	unchanged 40 cancel t1 -r r
	pawl reopen t1 -r r
	pawl claim t1
	pawl done t1
	unchanged 40 cancel t1 -r r
}

@test "NOT_FOUND for each" {
	call 44 approve nope
	call 44 rework nope -r r
	call 44 unblock nope
	call 44 retry nope
	call 44 reopen nope -r r
	call 44 cancel nope -r r
	ask 44 cancel nope -r r
}

@test "under another's manual lock: CONFLICT; with a stale token: LOST_LOCK" {
	new x
	pawl lock acquire t1 -a al
	unchanged 20 cancel t1 -r r -a bo
	ask 20 cancel t1 -r r -a bo
	pawl cancel t1 -r no -a al
	unchanged 21 reopen t1 -r r --token "$other"
	new y
	pawl claim t2 -a al
	pawl escalate t2 -a al -r r
	unchanged 21 unblock t2 --token "$other"
	pawl lock acquire t2 -a al
	unchanged 20 unblock t2 -a bo
	unchanged 21 comment t2 hello --token "$other"
	unchanged 21 lock break t2 -r r --token "$other"
}

# --- archive ---

@test "archive: an ended task, until it is opened again" {
	new x
	new y
	pawl claim t1
	pawl done t1
	call 0 archive
	says "t1 archived"
	ask 0 show t1
	is '.task | .status == "Done" and .archived_at'
	ask 0 archive
	is '.count == 0'
	unchanged 40 archive t2
	unchanged 44 archive t9
	pawl reopen t1 --reason again
	ask 0 show t1
	is '.task | .status == "Ready" and (has("archived_at") | not)'
}

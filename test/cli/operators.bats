#!/usr/bin/env bats
# People in charge: overrides, done --take, tasks that a lock left behind, plans, versions, the pause.

load common


@test "override: a task that somebody else holds is CONFLICT, and the hint names the way" {
	new base
	new x
	pawl claim t2 -a al
	for verb in "update -p 9" "depend t1" "undepend t1" "cancel -r r" remove; do
		read -ra words <<<"$verb"
		unchanged 20 "${words[0]}" t2 "${words[@]:1}" -a pat
		complains "held by al" "pawl ${words[0]} t2" "--force --reason TEXT"
	done
	unchanged 2 update t2 -p 9 --force -a pat
	complains --reason
	unchanged 2 update t2 -p 9 --force --reason r -a pat --token 11111111-1111-4111-8111-111111111111
	complains --force --token
	unchanged 20 status t2 canceled --reason r -a pat
}

@test "override: --force applies it, keeps the lock, and the log says who overrode whom" {
	new x
	new y
	pawl claim t1 -a al
	call 0 update t1 --priority 9 --add-label hot --force --reason "customer waits" -a pat
	call 0 depend t1 t2 --force --reason later -a pat
	ask 0 show t1
	is '.task | .priority == 9 and .depends == ["t2"] and .lock.holder == "al" and .lock.live'
	ask 0 log t1
	is '[.events[] | select(.event == "overridden")] | length == 2 and .[0].agent == "pat"
		and .[0].text == "the lock of al: customer waits"'
	ask 0 heartbeat t1 -a al
	is '.changed | .by == "pat" and .reason == "later" and (.fields | sort) == ["depends", "labels", "priority"]
		and (.at | length > 0)'
	call 0 heartbeat t1 -a al
	complains "pat changed" priority later
	ask 0 release t1 -a al
	is '.changed.by == "pat"'
	ask 0 claim t1 -a al
	is 'has("changed") | not'
}

@test "override: cancel and remove end the lock, and the holder learns why" {
	new x
	new y
	pawl claim t1 -a al
	pawl claim t2 -a al
	call 0 cancel t1 --force --reason "duplicate of t2" -a pat
	status_is t1 Canceled
	ask 21 done t1 -a al
	is '(.error.message | contains("pat overrode it: duplicate of t2")) and .changed.by == "pat"'
	call 0 remove t2 --force --reason "never mind" -a pat
	call 44 done t2 -a al
	ask 0 log t2
	is '[.events[] | select(.event == "overridden")][0] | .agent == "pat" and .text == "the lock of al: never mind"'
}

@test "override: an operator's own token in the environment is not one that was named" {
	new x
	pawl claim t1 -a al
	PAWL_TASK=t1 PAWL_TOKEN=11111111-1111-4111-8111-111111111111 \
		call 0 update t1 -p 9 --force --reason r -a pat
}

@test "done --take: a free Ready task is claimed and completed in one commit" {
	new x
	unchanged 21 done t1
	complains "pawl done t1 --take"
	ask 0 done t1 --take --summary "did it"
	is '.task | .status == "Done" and .fence == 1 and .attempts == 1 and .version == 2 and .lock == null
		and .summary == "did it"'
	ask 0 log t1
	is '[.events[].event] == ["created", "claimed", "done"]'
	unchanged 21 done t1 --take
	new y
	pawl claim t2 -a al
	unchanged 21 done t2 --take -a bo
	call 0 done t2 --take -a al
	new z
	new part --parent t3
	unchanged 41 done t3 --take
	call 0 done t4 --take --claim-next
}

@test "after lock break a task can be made Ready" {
	new x
	pawl claim t1 -a al
	unchanged 20 release t1 --force -a bo
	complains "held by al" "pawl lock break t1"
	unchanged 20 update t1 --status ready -a bo
	pawl lock break t1 --reason stuck
	unchanged 21 release t1 -a bo
	complains "pawl release t1 --force"
	call 0 release t1 --force -a bo
	status_is t1 Ready
	pawl claim t1 -a al
	pawl lock break t1 --reason stuck
	call 0 update t1 --status ready -a bo
	status_is t1 Ready
	ask 0 next --claim -a bo
	is '.task.id == "t1"'
	unchanged 2 release t1 --force -a bo --token 11111111-1111-4111-8111-111111111111
}

@test "assignee: a plan, not a lock" {
	pawl create mine --assignee bo
	pawl create free
	ask 0 next -a al
	is '.task.id == "t1" and .task.assignee == "bo" and .task.lock == null'
	ask 10 next --mine -a al
	ask 0 next --mine -a bo
	is '.task.id == "t1"'
	ask 0 next --mine --claim -a bo
	is '.task | .id == "t1" and .assignee == "bo" and .lock.holder == "bo"'
	pawl release t1 -a bo
	ask 0 claim t1 -a al
	is '.task | .assignee == "bo" and .lock.holder == "al"'
	pawl release t1 -a al
	ask 0 show t1
	is '.task | .assignee == "bo" and .last_holder == "al" and .lock == null'
	pawl claim t2 -a al
	pawl release t2 -a al
	ask 0 show t2
	is '.task | has("assignee") | not'
	call 0 show t2
	says "last holder" al
	call 0 update t2 --assignee al
	ask 0 next --mine -a al
	is '.task.id == "t2"'
	call 0 update t2 --assignee ""
	ask 10 next --mine -a al
	ask 0 next --mine --explain -a al
	is '[.candidates[] | select(.eligible)] == [] and (.candidates[0].why | startswith("assigned to"))'
}

@test "--if-version: another version is CONFLICT, and nothing changes" {
	new x
	new y
	unchanged 20 update t1 -p 9 --if-version 7
	complains "version 1, not 7"
	unchanged 20 claim t1 --if-version 2
	unchanged 20 done t1 --take --if-version 2
	unchanged 20 comment t1 hello --if-version 2
	unchanged 20 depend t1 t2 --if-version 2
	unchanged 20 remove t1 --if-version 2
	unchanged 20 lock acquire t1 --if-version 2
	unchanged 2 create z --if-version 1
	unchanged 2 next --claim --if-version 1
	unchanged 2 update t1 -p 9 --if-version 0
	call 0 claim t1 --if-version 1
	unchanged 20 heartbeat t1 --if-version 1
	unchanged 20 release t1 --if-version 1
	call 0 release t1 --if-version 2
	call 0 update t1 -p 9 --if-version 3
	printf '{"id":"t1","priority":5,"if_version":3}\n' >changes.json
	unchanged 20 batch update --file changes.json
	printf '{"id":"t1","priority":5,"if_version":4}\n' >changes.json
	call 0 batch update --file changes.json
}

@test "pause: no new claims, holders keep working, until resume" {
	new x
	new y
	pawl claim t1 -a al
	call 0 pause --reason "release in progress" -a pat
	says paused pat "release in progress" "pawl resume"
	ask 0 pause -a bo
	is '.repeated and .paused.by == "pat"'
	ask 10 next
	is '.code == "NO_TASKS" and .task == null and (.paused | .by == "pat" and .reason == "release in progress"
		and (.since | length > 0))'
	call 10 next --claim
	says "pat paused it" "release in progress"
	unchanged 20 claim t2 -a bo
	complains "pat paused it" "pawl resume"
	unchanged 20 done t2 --take -a bo
	unchanged 20 status t2 in-progress -a bo
	unchanged 20 lock acquire t2 -a bo
	call 0
	says "paused" pat "release in progress"
	ask 0 status
	is '.paused.by == "pat"'
	call 0 heartbeat t1 -a al
	ask 0 done t1 --claim-next -a al
	is '.task.status == "Done" and .next == null and .paused.by == "pat"'
	lines 0 status
	matches ".* paused=true by=pat since=.* reason=.*"
	lines 0 pause
	matches "SUCCESS: .*paused=true by=pat .*"
	lines 0 resume -a bo
	exactly "SUCCESS:"
	call 0 resume
	says "not paused"
	ask 0 resume
	is '.repeated and .paused == null'
	ask 0 status
	is 'has("paused") | not'
	call 0 claim t2 -a bo
	ask 0 log
	is '[.events[].event] | contains(["queue_paused", "queue_resumed"])'
	call 0 doctor
}

@test "pause: --wait ends when somebody resumes" {
	new x
	pawl pause
	"$PAWL" next --claim --wait 60s -a al >out 2>&1 &
	waiter=$!
	pawl resume
	wait "$waiter"
	grep -q "claimed t1" out
}

@test "pause: explain, prime and run say that the queue is paused" {
	call 10 run -- true
	complains "no task is eligible now"
	new one
	call 0 pause --reason "an upgrade"
	call 0 next --explain
	says "paused by" "an upgrade"
	call 0 prime
	says "The queue is paused"
	call 10 run --loop -- true
	complains "the queue is paused" "an upgrade"
}

#!/usr/bin/env bats
# next, claim, heartbeat, done, review, release, block, escalate, fail.

load common

other=11111111-1111-4111-8111-111111111111

# --- next ---

@test "next: order by class, priority, age, id" {
	pawl create a -i intangible -c intangible -p 1000
	pawl create a -i low -p low
	pawl create a -i old
	pawl create a -i high -p 900
	pawl create a -i fixed -c fixed-date -p 0
	pawl create a -i first -c expedite
	pawl update old --title b
	order=
	while id=$("$PAWL" next --claim -q); do order="$order $id"; done
	same "$order" " first fixed high old low intangible"
}

@test "next: an earlier due date first, none last; t2 before t10" {
	seq -f '{"id": "t%.0f", "title": "x"}' 12 >batch.jsonl
	pawl import batch.jsonl
	same "$("$PAWL" list -q | tr '\n' ' ')" "t1 t2 t3 t4 t5 t6 t7 t8 t9 t10 t11 t12 "
	pawl update t7 --due 2030-01-02
	pawl update t11 --due 2030-01-01
	order=
	while id=$("$PAWL" next --claim -q); do order="$order $id"; done
	same "$order" " t11 t7 t1 t2 t3 t4 t5 t6 t8 t9 t10 t12"
}

@test "next: a task with open sub-tasks waits for them" {
	new Epic -c expedite
	new one --parent t1
	new two --parent t1
	ask 0 next
	is '.task.id == "t2"'
	ask 0 next --explain
	is '.candidates[] | select(.id == "t1") | .eligible == false and
		.why == "waits for its 2 open sub-tasks: t2, t3"'
	pawl cancel t3 -r r
	ask 0 next --explain
	is '.candidates[] | select(.id == "t1") | .why == "waits for its 1 open sub-task: t2"'
	pawl claim t2
	call 10 next
	ask 0 done t2 --claim-next
	is '.next.task.id == "t1"'
	call 0 doctor
}

@test "next: subtasks = offer does not wait for sub-tasks" {
	needs_local "its settings are those of the server"
	new Epic -c expedite
	new one --parent t1
	PAWL_SUBTASKS=offer call 0 next -q
	exactly t1
	PAWL_SUBTASKS=offer call 0 next --explain
	says "in spite of its open sub-tasks"
	PAWL_SUBTASKS=maybe call 40 next
}

@test "claim: open sub-tasks are a warning" {
	new Epic
	new one --parent t1
	call 0 claim t1
	complains "t1 has 1 open sub-task"
	pawl release t1
	new dep
	pawl depend t1 t3
	ask 0 claim t1
	is '.warnings == ["t1 depends on 1 task not done yet and has 1 open sub-task"]'
}

@test "work handed back is eligible at once, at its place, with its history" {
	for n in 1 2 3 4; do new "task $n"; done
	pawl claim t1 -a al
	pawl review t1 -a al --summary s
	pawl claim t2 -a al
	pawl escalate t2 -a al -r "which one?"
	pawl claim t3 -a al
	pawl update t4 --title "edited last"
	before=$(field t1 .updated_at)
	pawl rework t1 -r "no test"
	pawl unblock t2
	pawl lock break t3 -r "he went home"
	same "$before" "$(field t1 .updated_at)"
	order=
	while id=$("$PAWL" next --claim -a bo -q); do order="$order $id"; done
	same "$order" " t1 t2 t3 t4"
	ask 0 show t1
	is '.comments[0].text == "no test"'
}

@test "next: handback reserves work that was handed back" {
	needs_local "its settings are those of the server"
	new x
	pawl claim t1 -a al
	pawl review t1 -a al --summary s
	PAWL_HANDBACK=10m pawl rework t1 -r "no test"
	call 10 next -a bo
	ask 0 next --explain
	is '.candidates[0].why | startswith("kept for its last agent for another")'
	call 0 claim t1 -a al
	pawl review t1 -a al --summary s
	pawl rework t1 -r "still no test"
	call 0 next -a bo -q
	exactly t1
}

@test "a loop does not take a task again that it released" {
	local loop='echo $PAWL_TASK >>ran; [ $PAWL_TASK = t3 ] || [ $(wc -l <ran) -gt 20 ]'
	new a
	new b
	new c
	call 1 run --loop --on-failure release -- sh -c "$loop"
	same "$(tr '\n' ' ' <ran)" "t1 t2 t3 "
	complains "the loop ends here: 2 eligible tasks are passed over" "3 tasks: 1 succeeded, 2 failed"
	status_is t1 Ready
}

@test "a loop takes a released task again after a change" {
	new a
	new b
	new c
	new d
	cat >work.sh <<'END'
echo "$PAWL_TASK" >>ran
[ "$(grep -c . ran)" -lt 20 ] || exit 0
unset PAWL_TOKEN
[ "$PAWL_TASK" != t4 ] || {
	"$PAWL" comment t1 "try harder" && "$PAWL" update t2 --title "b, again" && exit 0
}
exit 1
END
	call 1 run --loop --on-failure release -- env PAWL="$PAWL" sh work.sh
	same "$(tr '\n' ' ' <ran)" "t1 t2 t3 t4 t1 t2 "
}

@test "next: shows and changes nothing" {
	new "One thing" -l bug
	before=$(snapshot)
	call 0 next
	says t1 "One thing" "pawl claim t1"
	ask 0 next
	is '.task.id == "t1" and (has("lock") | not)'
	lines 0 next
	exactly "SUCCESS: task=t1 status=Ready"
	call 0 next -q
	exactly t1
	same "$before" "$(snapshot)"
}

@test "next --claim: task, lock and token in one" {
	new x
	ask 0 next --claim --ttl 10m -a al --run r1
	is --arg u "^$uuid\$" '.task.status == "In Progress" and .task.last_holder == "al" and .task.agent_run == "r1"
		and (.lock.token | test($u)) and .lock.fence == 1 and .lock.ttl == 600
		and .lock.expires_in > 500 and .lock.expires_in <= 600 and .lock.expires_at == .task.lock.expires_at'
	is '.task.lock | .holder == "al" and .live and .fence == 1 and (has("token") | not)'
	new y
	lines 0 next --claim -a bo
	exactly "LOCK_ACQUIRED: task=t2 agent=bo"
	new z
	call 0 next --claim
	says "claimed t3  z" fence token "pawl done t3"
}

@test "next: NO_TASKS is a clean end, in each form" {
	call 10 next
	says "no task"
	ask 10 next
	ask 10 next --claim
	lines 10 next --claim
	[[ $output == "NO_TASKS:"* ]]
	call 10 next -q
	exactly ""
	new x
	pawl claim t1 --ttl 1h
	ask 10 next
	is '.wait > 3000 and .wait <= 3600'
}

@test "next: label, class and type narrow it" {
	pawl create a -i a -l x
	pawl create b -i b -c expedite --type bug
	call 0 next -q --label x
	exactly a
	call 0 next -q --class standard
	exactly a
	call 0 next -q --type bug
	exactly b
	call 10 next --label nope
	call 10 next --class intangible
	call 10 next --type bug --label x
}

@test "next --explain: each task, why and where it stands" {
	pawl create one -i one
	pawl create two -i two -p 9
	pawl create wait -i wait -D one
	pawl create later -i later --delay 2h
	pawl create back -i back --status backlog
	pawl create held -i held
	pawl claim held -a al
	before=$(snapshot)
	ask 0 next --explain
	is '.count == 6 and ([.candidates[] | has("id") and has("eligible") and has("why")] | all)'
	is '[.candidates[] | select(.eligible) | [.id, .place]] == [["two",1],["one",2]]'
	is '[.candidates[] | select(.eligible | not) | .id] | sort == ["back","held","later","wait"]'
	is '.candidates[] | select(.id == "held") | .why | contains("al")'
	is '.candidates[] | select(.id == "back") | .why | contains("Backlog")'
	call 0 next --explain
	says one two wait later back held
	lines 0 next --explain
	says "CANDIDATE: id=two eligible=true"
	same "$before" "$(snapshot)"
	unchanged 2 next --explain --claim
	unchanged 2 next --ttl 5m
}

@test "next: depends = ignore offers tasks that wait for others" {
	needs_local "its settings are those of the server"
	pawl create a -i a
	pawl create b -i b -c expedite -D a
	call 0 next -q
	exactly a
	PAWL_DEPENDS=ignore call 0 next -q
	exactly b
}

@test "next: a canceled dependency sends it to Needs Help" {
	pawl create a -i a
	pawl create b -i b -D a
	pawl cancel a -r no
	status_is b "Needs Help"
	call 10 next
}

# --- claim ---

@test "claim: the answer that a holder gets" {
	new "Do it" -d "the way"
	call 0 claim t1 -a al
	says "claimed t1  Do it" "fence" "in $lease" "token" "the way"
	ask 0 show t1
	is '.task | .status == "In Progress" and .last_holder == "al" and .attempts == 1 and .fence == 1
		and .started_at == .first_started_at and .lock.holder == "al" and .lock.live and .lock.ttl == '$lease_s
	[[ $output != *token* ]]
}

@test "claim: a task that came back says why" {
	new x
	call 0 claim t1 -a al
	[[ $output != *"came back"* ]]
	pawl comment t1 "see the log" -a cy
	pawl review t1 -a al -s s
	pawl rework t1 -a rev -r $'tests lack\ndocs too'
	call 0 claim t1 -a bo
	says "came back: 1 earlier claim" rev "tests lack" "docs too" cy "see the log"
	[[ $output != *abandoned* ]]
	pawl release t1 -a bo
	ask 0 claim t1 -a bo
	is '[.comments[].text] | any(startswith("tests lack"))'
	pawl release t1 -a bo
	pawl config set lease.min 0.1s
	pawl claim t1 -a al --ttl 0.1s
	lapsed t1
	call 0 next --claim -a bo
	says "came back: 4 earlier claims, 1 abandoned" "tests lack"
	pawl release t1 -a bo
	new y
	pawl claim t2
	call 0 done t2 --claim-next
	says "came back: 5 earlier claims" "tests lack"
	pawl release t1
	new z
	pawl claim t3
	ask 0 done t3 --claim-next
	is '(.comments | not) and ([.next.comments[].text] | any(startswith("tests lack")))'
}

@test "claim: held by anyone is CONFLICT that names holder, since and until" {
	new x
	pawl claim t1 -a al
	unchanged 20 claim t1 -a bo
	complains "held by al" since until
	unchanged 20 claim t1 -a al
	ask 20 claim t1 -a bo
	is '.task.lock.holder == "al" and (.error.message | contains("al"))'
	lines 20 claim t1 -a bo
	matches "LOCK_EXISTS: task=t1 agent=al claimed=$time"
}

@test "claim: from Ready, Failed, In Progress without a lock; from nothing else" {
	new x
	pawl claim t1
	pawl fail t1 -r r
	ask 0 claim t1
	is '.lock.fence == 2 and .task.attempts == 2'
	pawl block t1 -r r -u u
	unchanged 40 claim t1
	complains Blocked "pawl unblock t1"
	pawl unblock t1
	ask 0 claim t1
	pawl review t1 -s s
	ask 40 claim t1
	is '.task.status == "Review"'
	pawl approve t1
	lines 40 claim t1
	exactly "TASK_ALREADY_DONE: task=t1"
	new y --status backlog
	unchanged 40 claim t2
}

@test "claim: the same explicit token gets the same answer, another CONFLICT" {
	new x
	token=$(cat /proc/sys/kernel/random/uuid)
	ask 0 claim t1 --token "$token"
	is --arg t "$token" '.lock.token == $t and .lock.fence == 1 and (has("repeated") | not)'
	ask 0 claim t1 --token "$token"
	is --arg t "$token" '.lock.token == $t and .lock.fence == 1 and .repeated == true and .task.attempts == 1'
	unchanged 20 claim t1 --token "$other"
}

@test "claim: open dependencies are a warning" {
	new a
	new b -D t1
	call 0 claim t2
	complains "warning:" "t2 depends on 1 task"
	pawl release t2
	ask 0 claim t2
	is '.warnings | length == 1'
	pawl release t2
	call 0 claim t2 -q
	same "$stderr" ""
}

@test "claim: NOT_FOUND; --resume of a wrong fence is LOST_LOCK" {
	claim_makes_tasks || call 44 claim nope
	ask 44 claim nope --resume 1
	new x
	pawl claim t1 -a al
	unchanged 21 claim t1 --resume 9 -a al
	ask 21 claim t1 --resume 9 -a al
}

@test "claim: --ttl bounds, from the settings" {
	needs_local "its settings are those of the server"
	new x
	unchanged 2 claim t1 --ttl 0.9s
	complains 1s
	unchanged 2 claim t1 --ttl 25h
	unchanged 2 claim t1 --ttl 0
	ask 0 claim t1 --ttl 24h
	is '.lock.ttl == 86400'
	pawl release t1
	ask 0 claim t1 --ttl 1
	is '.lock.ttl == 1'
	new y
	PAWL_LEASE=2h ask 0 claim t2
	is '.lock.ttl == 7200'
}

@test "claim --pid: the lock names the process; cleanup sees that it is dead" {
	new x
	sleep 60 3>&- &
	pid=$!
	ask 0 claim t1 --pid "$pid"
	is --argjson p "$pid" '.task.lock.pid == $p'
	call 0 lock cleanup
	same "$(field t1 .lock.live)" true
	kill -9 "$pid"
	wait "$pid" || true
	call 0 lock cleanup
	says t1
	same "$(field t1 .lock)" null
	unchanged 2 claim t1 --pid 0
	unchanged 2 claim t1 --pid abc
}

@test "claim: the lock of a process that died is in nobody's way" {
	new x
	new y
	"$PAWL" run t1 -a al -- sleep 300 3>&- >/dev/null 2>&1 &
	pid=$!
	soon "$PAWL" lock check -q t1
	unchanged 20 claim t1 -a bob
	kill -9 "$pid"
	wait "$pid" || true
	ask 0 claim t1 -a bob
	is '.task.lock.holder == "bob" and .task.abandoned == 1 and .lock.fence == 2'
	is --arg p "process $pid died" '.came_back.why | contains($p)'
	ask 0 log t1
	is --arg p "process $pid died" 'any(.events[]; .event == "abandoned" and .agent == "al" and (.text | contains($p)))'
	sleep 300 3>&- &
	pid=$!
	pawl lock acquire @write -a boss --pid "$pid"
	call 30 create z -a al --timeout 0
	kill -9 "$pid"
	wait "$pid" || true
	call 0 create z -a al --timeout 0
	ask 0 lock typed
	is '.locks == []'
}

@test "claim, run: a process whose start cannot be read is noted without it" {
	needs_local "it looks at its own processes"
	unshare --pid --fork true 2>/dev/null || skip "needs the right to make a pid namespace"
	new x
	new y
	inside() { unshare --pid --fork sh -c "$1"; } # without a /proc of its own
	inside "\"\$PAWL\" claim t1 --pid \$\$ -a al -q"
	unchanged 20 claim t1 -a bob
	inside "\"\$PAWL\" run t2 -a al -- true"
	ask 0 show t2
	is '.task.status == "Done"'
}

@test "claim: ids are found in any case" {
	pawl create x -i Big-One
	ask 0 claim BIG-one
	is '.task.id == "Big-One"'
	call 0 done big-ONE
	says Big-One
}

# --- heartbeat ---

@test "heartbeat: extends, never shortens, leaves updated_at alone" {
	new x
	pawl claim t1 --ttl 10m
	edited=$(field t1 .updated_at)
	call 0 heartbeat t1
	says t1 10m
	ask 0 heartbeat t1 --ttl 1h
	is '.lock.expires_in > 3500 and (.lock | has("token") | not)'
	ask 0 heartbeat t1 --ttl 1m
	is '.lock.expires_in > 3400'
	lines 0 heartbeat t1
	exactly "SUCCESS: task=t1 status=In Progress"
	same "$edited" "$(field t1 .updated_at)"
}

@test "heartbeat: LOST_LOCK, MISCONFIGURED when Blocked, NOT_FOUND, USAGE" {
	new x
	unchanged 21 heartbeat t1
	pawl claim t1 -a al
	unchanged 21 heartbeat t1 -a bo
	complains al
	ask 21 heartbeat t1 -a bo
	lines 21 heartbeat t1 -a bo
	exactly "LOST_LOCK: task=t1 status=In Progress"
	unchanged 21 heartbeat t1 -a al --token "$other"
	unchanged 2 heartbeat t1 -a al --ttl 0.5s
	pawl block t1 -r r -u u -a al
	unchanged 40 heartbeat t1 -a al
	call 44 heartbeat nope
}

# --- done ---

@test "done: finishes, clears the lock, keeps the summary" {
	new x
	pawl claim t1
	call 0 done t1 --summary "all good"
	exactly "t1 → Done"
	ask 0 show t1
	is '.task | .status == "Done" and .lock == null and .summary == "all good" and (.done_at | length > 0)
		and .last_holder == "tester@'"$(hostname)"'" and (has("agent_run") | not)'
	new y
	pawl claim t2
	ask 0 done t2
	is '.task.status == "Done"'
	new z
	pawl claim t3
	lines 0 done t3
	exactly "TASK_COMPLETE: task=t3"
}

@test "done: without the lock LOST_LOCK, wherever the task is" {
	new x
	unchanged 21 done t1
	pawl claim t1 -a al
	unchanged 21 done t1 -a bo
	ask 21 done t1 -a bo
	unchanged 21 done t1 --token "$other" -a al
	call 44 done nope
	ask 44 done nope
}

@test "done, review: open sub-tasks are INCOMPLETE_SUBTASKS; Canceled ones count as completed" {
	new parent
	new sub --parent t1
	new sub --parent t1
	pawl claim t1
	unchanged 41 done t1
	complains "2 open sub-tasks"
	ask 41 done t1
	is '.task.id == "t1"'
	unchanged 41 review t1 -s s
	ask 41 review t1 -s s
	lines 41 done t1
	exactly "INCOMPLETE_SUBTASKS: task=t1 status=In Progress"
	pawl cancel t2 -r no
	unchanged 41 done t1
	pawl claim t3
	pawl done t3
	call 0 done t1
}

@test "done: from a status that is not In Progress is MISCONFIGURED" {
	new x
	token=$(token_of t1)
	pawl block t1 -r r -u u
	unchanged 40 done t1 --token "$token"
	complains Blocked "In Progress"
}

@test "done --claim-next: the next one in the same call, or null" {
	new a
	new b
	pawl claim t1
	ask 0 done t1 --claim-next
	is --arg u "^$uuid\$" '.task.status == "Done" and .next.task.id == "t2" and (.next.lock.token | test($u))'
	lines 0 done t2 --claim-next
	exactly "TASK_COMPLETE: task=t2
NO_TASKS:"
	new c
	new d
	pawl claim t3
	lines 0 done t3 --claim-next -q
	exactly "TASK_COMPLETE: task=t3
LOCK_ACQUIRED: task=t4 agent=tester@$(hostname)"
	ask 0 done t4 --claim-next
	is 'has("next") and .next == null'
	new e
	pawl claim t5
	call 0 done t5 --claim-next
	says "t5 → Done" "no task is eligible"
	unchanged 2 done t5 --next-token "$other"
}

@test "done --claim-next --next-token: the token for that claim" {
	new a
	new b
	pawl claim t1
	ask 0 done t1 --claim-next --next-token "$other"
	is --arg t "$other" '.next.lock.token == $t'
	call 0 heartbeat t2 --token "$other"
}

# --- review, release, block, escalate, fail ---

@test "review: hands over, lock cleared" {
	new x
	pawl claim t1
	unchanged 2 review t1
	complains --summary
	unchanged 2 review t1 -s ""
	call 0 review t1 --summary "look here"
	exactly "t1 → Review"
	ask 0 show t1
	is '.task | .status == "Review" and .summary == "look here" and .lock == null'
	new y
	pawl claim t2
	ask 0 review t2 -s s
	is '.task.status == "Review"'
	new z
	pawl claim t3
	lines 0 review t3 -s s
	exactly "SUCCESS: task=t3 status=Review"
}

@test "review: LOST_LOCK, NOT_FOUND" {
	new x
	unchanged 21 review t1 -s s
	call 44 review nope -s s
}

@test "release: gives it back" {
	new x
	pawl claim t1
	call 0 release t1 --reason "no time"
	exactly "t1 → Ready"
	ask 0 show t1
	is '.task | .status == "Ready" and .lock == null and .attempts == 1'
	pawl claim t1
	ask 0 release t1
	is '.task.status == "Ready"'
	pawl claim t1
	lines 0 release t1
	exactly "SUCCESS: task=t1 status=Ready"
	ask 0 log t1
	is '[.events[] | select(.text == "no time")] | length == 1'
}

@test "release: LOST_LOCK, MISCONFIGURED, NOT_FOUND" {
	new x
	unchanged 21 release t1
	ask 21 release t1
	token=$(token_of t1)
	pawl block t1 -r r -u u
	unchanged 40 release t1 --token "$token"
	call 44 release nope
}

@test "block: needs reason and action; the lock stays but stops nobody" {
	new x
	pawl claim t1 -a al
	unchanged 2 block t1 -a al
	unchanged 2 block t1 -a al --reason r
	complains --unblock-action
	unchanged 2 block t1 -a al --unblock-action u
	complains --reason
	unchanged 2 block t1 -a al --reason "" --unblock-action u
	call 0 block t1 -a al --reason "no key" --unblock-action "get one" --next-check 2031-01-01T00:00:00Z
	exactly "t1 → Blocked"
	ask 0 show t1
	is '.task | .status == "Blocked" and .blocker_reason == "no key" and .unblock_action == "get one"
		and .next_check == "2031-01-01T00:00:00.000Z" and .lock.holder == "al" and .lock.live'
	call 0 unblock t1 -a bo
	pawl claim t1 -a al
	ask 0 block t1 -a al -r r -u u
	is '.task.status == "Blocked"'
	pawl unblock t1
	pawl claim t1 -a al
	lines 0 block t1 -a al -r r -u u
	exactly "SUCCESS: task=t1 status=Blocked"
}

@test "block, escalate, fail: LOST_LOCK and NOT_FOUND" {
	new x
	unchanged 21 block t1 -r r -u u
	unchanged 21 escalate t1 -r r
	unchanged 21 fail t1 -r r
	call 44 block nope -r r -u u
	call 44 escalate nope -r r
	call 44 fail nope -r r
}

@test "escalate, fail, review: from Blocked are MISCONFIGURED" {
	new x
	token=$(token_of t1)
	pawl block t1 -r r -u u
	unchanged 40 escalate t1 -r r --token "$token"
	unchanged 40 fail t1 -r r --token "$token"
	unchanged 40 review t1 -s s --token "$token"
}

@test "escalate: to a person" {
	new x
	pawl claim t1
	unchanged 2 escalate t1
	call 0 escalate t1 --reason "which one?"
	exactly "t1 → Needs Help"
	ask 0 show t1
	is '.task | .status == "Needs Help" and .blocker_reason == "which one?" and .lock == null'
	pawl unblock t1
	pawl claim t1
	ask 0 escalate t1 -r r
	pawl unblock t1
	pawl claim t1
	lines 0 escalate t1 -r r
	exactly "SUCCESS: task=t1 status=Needs Help"
}

@test "fail: gives it up" {
	new x
	pawl claim t1
	unchanged 2 fail t1
	call 0 fail t1 --reason "3 errors"
	exactly "t1 → Failed"
	ask 0 show t1
	is '.task | .status == "Failed" and .blocker_reason == "3 errors" and .lock == null'
	pawl claim t1
	ask 0 fail t1 -r r
	pawl claim t1
	lines 0 fail t1 -r "3 errors"
	exactly "TASK_FAILED: task=t1 reason=3 errors"
	call 10 next
}

@test "a holder's call repeated with its token gets the first answer again" {
	for verb in "done" "review -s s" "release" "fail -r r" "escalate -r r"; do
		id=$(new x)
		token=$(token_of "$id")
		read -ra words <<<"$verb"
		ask 0 "${words[0]}" "$id" "${words[@]:1}" --token "$token"
		is 'has("repeated") | not'
		before=$(snapshot)
		ask 0 "${words[0]}" "$id" "${words[@]:1}" --token "$token"
		is '.repeated == true'
		same "$before" "$(snapshot)"
	done
}

@test "under a manual lock, done and the like start from Ready" {
	for verb in "done" "review -s s" "fail -r r" "escalate -r r" "block -r r -u u"; do
		id=$(new x)
		pawl lock acquire "$id"
		read -ra words <<<"$verb"
		call 0 "${words[0]}" "$id" "${words[@]:1}"
	done
}

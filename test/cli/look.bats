#!/usr/bin/env bats
# status, list, show, find, log.

load common

other=11111111-1111-4111-8111-111111111111

# --- status ---

@test "status: an overview" {
	call 0 status
	says "empty" "pawl create"
	new x
	new y
	pawl claim t1 -a al
	call 0 status
	says "1 Ready" "1 In Progress" al t1 "pawl next --claim"
	ask 0 status
	is '.counts.Ready == 1 and .counts["In Progress"] == 1 and .total == 2 and (.counts | length) == 9
		and [.held[].id] == ["t1"] and .held[0].lock.holder == "al"'
	lines 0 status
	[[ $output == "SUCCESS:"*"Ready=1"* ]]
}

@test "status: tasks that nobody holds, and tasks that wait for a person" {
	new x
	new y
	pawl claim t1 -a al
	call 0 status
	says STATE working
	[[ $output != *"not held"* && $output != *"for a person"* ]]
	pawl review t1 -a al -s done
	call 0 status
	says "waiting for a person: 1 Review" "pawl approve t1"
	pawl rework t1 -r "tests lack"
	pawl lock acquire t2 -a bo
	call 0 status
	says "1 In Progress, not held"
	[[ $output == *"bo "*t2*Ready*y* ]]
}

@test "status: what waits for a person, with its reason and the commands that move it on" {
	local i
	for i in 1 2 3 4 5; do new "task $i"; pawl claim "t$i" -a al; done
	pawl review t1 -a al -s "the parser reads empty files"
	pawl block t2 -a al -r "no access" -u "send the key"
	pawl escalate t3 -a al -r "two designs"
	pawl fail t4 -a al -r "tests hang"
	call 0 status
	says "waiting for a person: 1 Review, 1 Blocked, 1 Needs Help, 1 Failed" \
		"the parser reads empty files" "no access → send the key" "two designs" "tests hang" \
		"Review: pawl approve t1 · pawl rework t1 --reason TEXT" "Blocked: pawl unblock t2" \
		"Needs Help: pawl unblock t3" "Failed: pawl retry t4"
	[[ $output != *"for all: pawl list --status"* ]]
	ask 0 status
	is '[.people[] | [.task, .status, .agent, .text]] == [["t1", "Review", "al", "the parser reads empty files"],
		["t2", "Blocked", "al", "no access"], ["t3", "Needs Help", "al", "two designs"], ["t4", "Failed", "al", "tests hang"]]'
	is '.people[0].commands == ["pawl approve t1", "pawl rework t1 --reason TEXT"] and .people[1].unblock_action == "send the key"'
	for i in $(seq 6 15); do new "task $i"; pawl claim "t$i" -a al; pawl review "t$i" -a al -s ok; done
	call 0 status
	says "for all: pawl list --status review,blocked,needs-help,failed"
	ask 0 status
	is '.people | length == 10'
}

@test "status: agents that work, are idle or dead, their host and worktree, and the last hour" {
	new a
	new b
	new c
	new d
	pawl claim t1 -a claude@box/parser --ttl 1s
	pawl claim t2 -a bo
	pawl claim t3 -a cy
	pawl done t3 -a cy -s x
	pawl claim t4 -a dan
	pawl review t4 -a dan -s x
	pawl approve t4 -a boss
	state_of_t1() { ask 0 status; [[ $(get '.agents[] | select(.agent == "claude@box/parser").state') == dead ]]; }
	soon state_of_t1
	is '.agents | map({key: .agent, value: [.state, .tasks, .done]}) | from_entries == {"claude@box/parser": ["dead", ["t1"], 0],
		"bo": ["working", ["t2"], 0], "cy": ["idle", [], 1], "dan": ["idle", [], 1]}'
	is '.last_hour | .done == 2 and .failed == 0 and .abandoned == 1'
	is '[.agents[] | select(.agent == "bo") | .host != "" and .last_seen != ""] == [true]'
	is '[.held[] | select(.id == "t1") | .lock.abandoned] == [true]'
	is '[.held[] | select(.id == "t2") | .lock | has("abandoned")] == [false]'
	call 0 status
	says "last hour: 2 done, 1 abandoned"
	[[ $output =~ "claude@box/parser"\ +dead\ +t1.*expired\ [0-9a-z\ ]+ago ]]
	[[ $output =~ bo\ +working\ +t2 ]]
	[[ $output =~ cy\ +idle ]]
	[[ $output != *boss* ]]
	ask 0 status
	is '[.agents[] | .agent] | index("boss") == null'
	pawl claim t1 -a bo
	ask 0 status
	is '[.agents[] | select(.agent == "claude@box/parser") | .state, .tasks, .host, .worktree] == ["dead", [], "box", "parser"]'
	is '.last_hour.abandoned == 1'
}

# A name that PAWL_AGENT gives does not tell the worktree.
@test "status: the worktree of each agent, also of one that crashed" {
	local at=$work
	new a
	new b
	new c
	git init -q .
	git -c user.name=x -c user.email=x@x commit -q --allow-empty -m x
	git worktree add -q ../side 2>/dev/null
	pawl claim t1 -a ann
	(cd ../side && "$PAWL" claim t2 -a bo -q --ttl 1s && "$PAWL" claim t3 -q)
	state_of_bo() { ask 0 status; [[ $(get '.agents[] | select(.agent == "bo").state') == dead ]]; }
	soon state_of_bo
	is --arg at "${at%/*}" '[.agents[] | [.worktree, .folder]] == [["work", $at + "/work"], ["side", $at + "/side"], ["side", $at + "/side"]]'
	call 0 status
	[[ $output =~ ann\ +working\ +t1.*\ work\ +a ]]
	[[ $output =~ bo\ +dead\ +t2.*\ side\ +b ]]
	# the file of an earlier lock says nothing about the present one
	pawl claim t2 -a bo
	ask 0 status
	is '[.agents[] | select(.agent == "bo").worktree] == ["work"]'
	# without the tokens, as for another user: only the names tell it
	rm "$XDG_STATE_HOME"/pawl/*.token
	ask 0 status
	is '[.agents[] | .worktree // ""] == ["", "", "side"]'
}

# overview COLUMNS: the screen of `pawl` without colours
overview() {
	on_terminal "stty cols $1 rows 60; $PAWL --no-color" | tr -d '\r'
}

@test "status: long names, reasons and wide characters fit into the terminal" {
	needs_terminal
	local i columns long="The server refuses the connection, and the repository has no credentials for it, nor does the wiki"
	for i in 1 2 3 4 5 6 7 8 9 10; do
		new "Task $i has a title that is a good deal longer than its column"
		pawl claim t$i -a "agent-$i"
	done
	new "題名は幅が広い文字で書かれていて、とても長いので途中で切られます"
	pawl claim t11 -a "エージェント・その十一番目の名前はとても長い"
	new x
	pawl claim t12 -a an-agent-with-a-very-long-name-indeed-and-no-end-in-sight
	pawl block t1 -a agent-1 -r "$long" -u "put the credentials into .env"
	pawl escalate t2 -a agent-2 -r "理由は幅が広い文字で書かれていて、とても長いので途中で切られます。理由は幅が広い文字です"
	pawl review t3 -a agent-3 -s "all tests pass"
	pawl done t4 -a agent-4
	pawl fail t5 -a agent-5 -r "it broke"
	for i in 13 14 15; do new x; done
	pawl cancel t13 -r x
	pawl update t14 --status backlog
	for columns in 80 120; do
		overview $columns >screen
		[ "$(wc -L <screen)" -le $columns ]
		# the reason is cut, the action is not
		grep -q '^ *The server refuses.*… → put the credentials into .env$' screen
		grep -q '^t3 .*Task 3 has a title' screen
		grep -qE '^ +all tests pass$' screen
		grep -qE '^agent-10 .* Task 10 has' screen
	done
	# one long name leaves room for the titles
	grep -qE '^agent-10 .* Task 10 has a title that is a good' screen
	overview 80 >screen
	grep -qE '^(1 (Ready|waiting|Done|Failed|Canceled|Review).*) \(15 tasks\)$' screen
	overview 240 >screen
	grep -qE '^t5 +Failed .* it broke$' screen
}

@test "status: the cost depends on what is shown, and the log of the last hour has a limit" {
	needs_sqlite
	seq 5100 | awk '{ printf "{\"id\": \"t%d\", \"title\": \"x\"}\n", $1 }' >tasks.jsonl
	pawl import -q tasks.jsonl
	"$PAWL" --store "$(faulty calls)" status 2>calls >/dev/null
	same "$(grep ': entries ' calls)" 'pawl-calls: entries 5000'
	[ "$(awk '$2 == "scan" { n += $3 } END { print n + 0 }' calls)" -lt 100 ]
}

@test "a lease that expired: list, show and status say who abandoned the task, and when" {
	new x
	pawl claim t1 -a ann --ttl 1s
	expired() { ask 0 show t1 && [[ $(get .task.lock.live) == false ]]; }
	soon expired
	is '.task.lock.abandoned and .task.lock.holder == "ann" and .task.status == "In Progress"'
	call 0 show t1
	[[ $output =~ "ann, fence 1, abandoned: the lease expired "[0-9a-z\ ]+ago ]]
	call 0 list
	[[ $output =~ "ann (abandoned "[0-9a-z\ ]+"ago)" ]]
	call 0 status t1
	[[ $output =~ "t1 is In Progress, abandoned by ann: the lease expired "[0-9a-z\ ]+ago ]]
	pawl claim t1 -a bo
	call 0 log t1
	[[ $output =~ "abandoned  by ann  fence 1  its lease expired at "[^\ ]+"; found by bo" ]]
	ask 0 log t1 --by ann --kind abandoned
	is '.events | length == 1'
}

@test "status: more holders than are shown" {
	for i in $(seq 52); do
		new "x $i"
		pawl claim "t$i"
	done
	call 0 status
	says "showing 50 of 52; for all: pawl lock list -n 0"
	[[ $output != *"not held"* ]]
	ask 0 status
	is '.held_total == 52'
}

@test "status: an example for Blocked names both texts" {
	new x
	pawl claim t1
	call 2 status t1 blocked
	complains "pawl status t1 blocked --reason TEXT --unblock-action TEXT"
	call 2 status t1 blocked --reason r
	complains "pawl status t1 blocked --reason TEXT --unblock-action TEXT"
}

@test "status ID: of a task" {
	new x
	call 0 status t1
	exactly "t1 is Ready"
	ask 0 status t1
	is '.task.status == "Ready"'
	lines 0 status t1
	exactly "SUCCESS: task=t1 status=Ready"
	call 44 status nope
	ask 44 status nope
}

@test "status ID STATUS: the whole way round, by the same rules" {
	new x
	ask 0 status t1 in-progress -a al
	is '.lock.token and .task.status == "In Progress"'
	ask 20 status t1 IN_PROGRESS -a bo
	call 21 status t1 done -a bo
	call 0 status t1 ready -a al
	exactly "t1 is Ready"
	call 0 status t1 backlog
	call 0 status t1 todo
	lines 0 status t1 implementing -a al
	exactly "LOCK_ACQUIRED: task=t1 agent=al"
	unchanged 2 status t1 blocked -a al
	unchanged 2 status t1 blocked -a al --reason r
	call 0 status t1 blocked -a al --reason r --unblock-action u
	call 0 status t1 "in progress" -a al
	unchanged 2 status t1 needs-help -a al
	call 0 status t1 needs-help -a al --reason r
	call 0 status t1 inprogress -a al
	call 0 status t1 review -a al
	unchanged 2 status t1 in-progress -a al
	call 0 status t1 in-progress -a al --reason "tests lack"
	call 0 status t1 review -a al --summary s
	lines 0 status t1 done -a bo
	exactly "TASK_COMPLETE: task=t1"
	unchanged 40 status t1 in-progress
	lines 40 status t1 in-progress
	exactly "TASK_ALREADY_DONE: task=t1"
}

@test "status ID STATUS: failed, retried, canceled; sub-tasks; a stale token" {
	new x
	pawl claim t1
	unchanged 2 status t1 failed
	lines 0 status t1 failed --reason "3 errors"
	exactly "TASK_FAILED: task=t1 reason=3 errors"
	call 0 status t1 ready
	unchanged 2 status t1 canceled
	call 0 status t1 canceled --reason no
	new y
	new sub --parent t2
	pawl claim t2
	unchanged 41 status t2 done
	ask 41 status t2 review
	unchanged 21 status t2 done --token "$other"
	call 44 status nope done
	unchanged 2 status t2 nonsense
	complains nonsense
	unchanged 2 status t2 --reason r
}

# --- list ---

@test "list: a table in the order of the offer" {
	call 0 list
	exactly "no tasks yet; to create one: pawl create TITLE"
	call 0 list --label x
	exactly "no open tasks match; with ended ones: pawl list --label x --all"
	pawl create "The z" -i z
	pawl create "The a" -i a -p 1000
	call 0 list
	[[ ${lines[0]} == "ID "*"PRI"*"TITLE"* ]]
	[[ ${lines[1]} == "Ready (2)" ]]
	[[ ${lines[2]} == "a "*"The a" ]]
	[[ ${lines[3]} == "z "*"The z" ]]
	call 0 list -q
	exactly "a
z"
}

@test "list --json: tasks, count, total" {
	ask 0 list
	is '.tasks == [] and .count == 0 and .total == 0'
	for i in 1 2 3; do new "x $i"; done
	ask 0 list
	is '[.tasks[].id] == ["t1","t2","t3"] and .count == 3 and .total == 3'
	ask 0 list --limit 2
	is '[.tasks[].id] == ["t1","t2"] and .count == 2 and .total == 3'
	call 0 list --limit 2
	says "2 of 3"
	ask 0 list --limit 0
	is '.count == 3'
}

@test "list: the holder is the agent that holds the task now" {
	short_leases
	new gone
	new mine
	new late
	pawl claim t1 -a al
	pawl release t1 -a al
	pawl claim t2 -a bo
	pawl claim t3 -a cy --ttl 0.1s
	lapsed t3
	call 0 list
	[[ ${lines[2]} == t2*" bo "*mine && ${lines[2]} != *expired* ]]
	[[ ${lines[3]} == t3*" cy (abandoned "*" ago) "*late ]]
	[[ ${lines[5]} == t1* && ${lines[5]} != *al* ]]
}

@test "list, find and lock list -q: no limit but a given one" {
	for i in $(seq 101); do
		new "x $i"
		pawl lock acquire "t$i"
	done
	for args in list "find x" "lock list" "next --explain"; do
		read -ra words <<<"$args"
		call 0 "${words[@]}" -q
		[ "${#lines[@]}" -eq 101 ]
		call 0 "${words[@]}" -q -n 100
		[ "${#lines[@]}" -eq 100 ]
	done
	call 0 list
	says "showing 100 of 101"
}

@test "list: filters add up" {
	pawl create Apple -i a -l red -c expedite --type fruit
	pawl create Beet -i b -l red --type root
	pawl create Cress -i c --parent b -d "green leaves"
	pawl claim b -a al
	check() {
		local want=$1
		shift
		call 0 list -q "$@"
		same "${output//$'\n'/ }" "$want"
	}
	check "b a" --label red
	check "a" --label red --class expedite
	check "a" --type fruit
	check "b" --holder al
	check "" --holder bo
	check "c" --parent b
	check "c" --text LEAVES
	check "a c" --status ready
	check "b a c" --status ready,in-progress
	check "b a c" --status ready --status IN_PROGRESS
	check "" --status done
	call 2 list --status nonsense
	call 2 list --limit -1
	call 2 list --limit x
}

# --- show ---

@test "show: everything" {
	new Parent
	pawl create "Long one" -i full -d "line 1
line 2" --acceptance "it runs" -l a,b --parent t1 --due 2031-02-06 --type bug --extra '{"k":1}'
	pawl comment full "a word" -a bo
	call 0 show full
	says "full  Long one" "line 1" "line 2" "it runs" "a, b" t1 2031-02-06 bug "a word" bo
	ask 0 show full
	is '.task.extra.k == 1 and .comments[0].text == "a word"'
	lines 0 show full
	exactly "SUCCESS: task=full status=Ready"
	ask 0 show t1
	is '.comments == []'
	call 44 show nope
	complains nope "pawl list"
	ask 44 show nope
	lines 44 show nope
	exactly "NOT_FOUND: message=there is no task nope"
}

# --- find ---

@test "find: in all texts, in any case" {
	pawl create "A needle" -i one
	pawl create Hay -i two -d "with a NEEDLE in it"
	pawl create Hay -i three -l needle
	pawl create Hay -i needle-4
	pawl create Hay -i five
	call 0 find Needle -q
	exactly "one
two
three
needle-4"
	ask 0 find needle
	is '.count == 4 and .total == 4'
	ask 0 find needle --limit 2
	is '.count == 2'
	ask 0 find needle --status done
	is '.tasks == []'
	call 0 find "no such thing"
	says "no tasks"
	lines 0 find needle
	says "=== Active Tasks ==="
	call 0 find "100% _a"
	call 2 find
	call 2 find ""
}

# --- log ---

@test "log: oldest first, with agent, fence, from and to" {
	new x
	pawl claim t1 -a al
	pawl done t1 -a al
	new y
	ask 0 log
	is '[.events[].event] == ["created","claimed","done","created"]'
	is '.events[1] | .task == "t1" and .agent == "al" and .fence == 1 and .from == "Ready" and .to == "In Progress"'
	is '[.events[] | .cursor and .at] | all'
	call 0 log t1
	[ "${#lines[@]}" -eq 3 ]
	says "Ready → In Progress" "by al"
	lines 0 log t1
	[[ ${lines[1]} == "EVENT: "*"event=claimed task=t1 agent=al"* ]]
	ask 0 log --limit 1
	is '[.events[].task] == ["t2"]'
	call 44 log nope
	ask 44 log nope
}

@test "log --after: continues from a cursor" {
	new x
	cursor=$("$PAWL" log --json | jq -r '.events[-1].cursor')
	ask 0 log --after "$cursor"
	is '.events == []'
	new y
	pawl claim t1
	ask 0 log --after "$cursor"
	is '[.events[].event] == ["created","claimed"]'
	ask 0 log t1 --after "$cursor"
	is '[.events[].event] == ["claimed"]'
	call 40 log --after nonsense
	complains nonsense
}

@test "log: an empty queue" {
	call 0 log
	says "the log is empty"
	ask 0 log
	is '.events == []'
}

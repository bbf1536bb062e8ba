#!/usr/bin/env bats
# create, update, depend, undepend, comment, remove, id: their effects and codes, in each form.

load common

# --- create ---

@test "create: ids count up, the text names the task" {
	call 0 create "First one"
	exactly "created t1  First one"
	call 0 create Second
	exactly "created t2  Second"
	call 0 create -q Third
	exactly t3
}

@test "create --json: a task as the contract has it" {
	ask 0 create "First one"
	is '.task | .id == "t1" and .title == "First one" and .status == "Ready" and .class == "Standard"
		and .priority == 2 and .labels == [] and .depends == [] and .attempts == 0 and .abandoned == 0
		and .fence == 0 and .version == 1 and .lock == null'
	is --arg t "^$time\$" '.task | (.created_at | test($t)) and .created_at == .updated_at'
	is '.task | keys - ["id","title","status","class","priority","labels","depends","attempts","abandoned",
		"fence","created_at","updated_at","version","lock"] == []'
}

@test "create --porcelain" {
	lines 0 create "First one"
	exactly "SUCCESS: task=t1 status=Ready"
}

@test "create: every field" {
	pawl create Parent -i p
	pawl create Before -i d1
	pawl create Before -i d2
	ask 0 create --title "All of it" --id X.y_z-1 --status backlog --description "what
to do" --acceptance works --class fixed-date --priority high --type bug --effort 2h --label a,b --label c \
		--due 2031-02-06 --not-before 2031-01-01T10:00:00+02:00 --parent P --depends d1 --depends D2 \
		--extra '{"ra_mode":"x","n":[1]}'
	is '.task | .id == "X.y_z-1" and .status == "Backlog" and .description == "what\nto do"
		and .acceptance == "works" and .class == "Fixed Date" and .priority == 3 and .type == "bug"
		and .effort == "2h" and .labels == ["a","b","c"] and .not_before == "2031-01-01T08:00:00.000Z"
		and (.due | startswith("2031-02-06")) and .parent == "p" and .depends == ["d1","d2"]
		and .extra == {"ra_mode":"x","n":[1]}'
	ask 0 show x.Y_Z-1
	is '.task.id == "X.y_z-1"'
}

@test "create: classes and statuses in any spelling" {
	for class in Expedite EXPEDITE "fixed date" Fixed_Date fixeddate standard intangible; do
		ask 0 create x --class "$class"
	done
	is '.task.class == "Intangible"'
	for status in TODO pending Ready READY; do
		ask 0 create x --status "$status"
		is '.task.status == "Ready"'
	done
	ask 0 create x --status postponed
	is '.task.status == "Backlog"'
}

@test "create: a text from standard input" {
	call 0 create Long -q -d - <<<"line 1
line 2"
	same "$(field t1 .description)" "line 1
line 2"
}

@test "create: a word like an option, after --" {
	call 0 create -q -- --json
	exactly t1
	same "$(field t1 .title)" --json
	call 0 create -q --title=--ttl
	same "$(field t2 .title)" --ttl
}

@test "create: a taken id is CONFLICT, in any case of its letters" {
	pawl create One -i Job-1
	unchanged 20 create Two -i job-1
	complains "Job-1"
	ask 20 create Two -i JOB-1
	lines 20 create Two -i job-1
	[[ $output == "CONFLICT: "* ]]
	call 0 create Two -i job-1 --if-absent
	exactly "exists Job-1  One"
	ask 0 create Two -i job-1 --if-absent
	is '.existed == true and .task.title == "One"'
}

@test "create: generated ids step over those taken by hand" {
	pawl create Mine -i t1
	pawl create Mine -i T2
	call 0 create -q Next
	exactly t3
}

@test "create: unknown parent or dependency is NOT_FOUND, one that has ended MISCONFIGURED" {
	unchanged 44 create x --parent nope
	complains nope
	unchanged 44 create x --depends nope
	complains nope
	ask 44 create x --depends nope
	lines 44 create x --parent nope
	[[ $output == "NOT_FOUND:"* ]]
	id=$(new Over)
	pawl cancel "$id" -r no
	unchanged 40 create x --parent "$id"
	complains Canceled
}

@test "create: a dependency that is Canceled makes it Needs Help" {
	id=$(new Over)
	pawl cancel "$id" -r no
	ask 0 create x --depends "$id"
	is '.task.status == "Needs Help" and (.task.blocker_reason | length > 0)'
	is '.warnings == ["t2 needs help: " + .task.blocker_reason]'
	call 0 create y --depends "$id"
	complains "warning: t3 needs help" "$id" canceled
	call 0 create -q z --depends "$id"
	exactly t4
	same "$stderr" ""
	call 0 create y --id t3 --if-absent
	same "$stderr" ""
}

@test "create: out of the wrong status" {
	for status in done "in progress" failed review canceled; do
		unchanged 2 create x --status "$status"
	done
}

# --- update ---

@test "update: fields, one by one and cleared again" {
	id=$(new x -l a -l b)
	call 0 update "$id" --priority 5
	exactly "t1 updated"
	ask 0 update "$id" --title y --type bug --effort big --due 2031-01-02 --description d --acceptance a
	is '.task | .title == "y" and .type == "bug" and .effort == "big" and .priority == 5'
	ask 0 update "$id" --type "" --effort "" --due "" --description "" --acceptance ""
	is '.task | has("type") or has("effort") or has("due") or has("description") or has("acceptance") | not'
	ask 0 update "$id" --add-label c --remove-label a
	is '.task.labels == ["b","c"]'
	ask 0 update "$id" --label z
	is '.task.labels == ["z"]'
	ask 0 update "$id" --label ""
	is '.task.labels == []'
	lines 0 update "$id" -p 7
	exactly "SUCCESS: task=t1 status=Ready"
}

@test "update: extra key by key, null takes out" {
	id=$(new x --extra '{"a":1,"b":2}')
	ask 0 update "$id" --extra '{"b":null,"c":{"d":true}}'
	is '.task.extra == {"a":1,"c":{"d":true}}'
}

@test "update: version grows, updated_at moves, created_at stays" {
	id=$(new x)
	created=$(field "$id" .created_at)
	ask 0 update "$id" -p 4
	is --arg c "$created" '.task | .version == 2 and .created_at == $c and .updated_at >= $c'
}

@test "update: Backlog and Ready, Blocked and Needs Help to Ready; nothing else" {
	id=$(new x)
	ask 0 update "$id" --status backlog
	is '.task.status == "Backlog"'
	ask 0 update "$id" --status ready
	pawl claim "$id"
	pawl escalate "$id" -r help
	ask 0 update "$id" --status ready
	is '.task.status == "Ready"'
	for status in done canceled failed review "in progress" blocked "needs help"; do
		before=$(snapshot)
		run "$PAWL" update "$id" --status "$status"
		[ "$status" != 0 ]
		same "$before" "$(snapshot)"
	done
	pawl cancel "$id" -r no
	unchanged 40 update "$id" --status ready
	complains Canceled
}

@test "update: held by another is CONFLICT; a stale token LOST_LOCK; the holder may" {
	id=$(new x)
	token=$(token_of "$id" -a al)
	unchanged 20 update "$id" -p 9 -a bo
	complains "held by al"
	ask 20 update "$id" -p 9 -a bo
	is '.task.lock.holder == "al"'
	unchanged 21 update "$id" -p 9 --token 11111111-1111-4111-8111-111111111111
	ask 0 update "$id" -p 9 -a al
	ask 0 update "$id" -p 8 -a bo --token "$token"
	pawl block "$id" -r r -u u -a al
	ask 0 update "$id" -p 7 -a bo
}

@test "update: NOT_FOUND, and nothing to do" {
	call 44 update nope -p 1
	complains nope
	new x
	unchanged 2 update t1
	unchanged 2 update t1 --label a --add-label b
	unchanged 2 update t1 --delay 1h --not-before 2031-01-01
	unchanged 44 update t1 --parent nope
	unchanged 2 update t1 -p 3 --depends t1
	complains --depends
}

@test "update: parents make no cycle" {
	pawl create a -i a
	pawl create b -i b --parent a
	unchanged 40 update a --parent b
	unchanged 40 update a --parent a
	ask 40 update a --parent b
	lines 40 update a --parent b
	[[ $output == "MISCONFIGURED:"* ]]
	ask 0 update b --parent ""
	is '.task | has("parent") | not'
}

# --- depend, undepend ---

@test "depend: gates next until it is Done" {
	pawl create a -i a
	pawl create b -i b
	call 0 depend a b
	exactly "a depends on b"
	ask 0 next
	is '.task.id == "b"'
	pawl claim b
	call 10 next
	pawl done b
	ask 0 next
	is '.task.id == "a"'
}

@test "depend, undepend: several at once; a repeat does no harm" {
	for id in a b c; do pawl create $id -i $id; done
	ask 0 depend a b C
	is '.task.depends == ["b","c"] and .task.open_depends == 2'
	ask 0 depend a b
	is '.task.depends == ["b","c"]'
	lines 0 depend a b
	exactly "SUCCESS: task=a status=Ready"
	ask 0 undepend a c
	is '.task.depends == ["b"]'
	call 0 undepend a b
	exactly "a depends on nothing"
	pawl depend a b
	lines 0 undepend a b
	exactly "SUCCESS: task=a status=Ready"
	unchanged 44 undepend a b
	complains "a does not depend on b"
}

@test "depend: a cycle is MISCONFIGURED, of one, two, three, and through parents" {
	for id in a b c; do pawl create $id -i $id; done
	unchanged 40 depend a a
	pawl depend a b
	unchanged 40 depend b a
	pawl depend b c
	unchanged 40 depend c a
	complains c a
	ask 40 depend c a
	lines 40 depend c a
	[[ $output == "MISCONFIGURED:"* ]]
	pawl create sub -i sub --parent a
	unchanged 40 depend sub a
}

@test "depend, undepend: NOT_FOUND, CONFLICT, LOST_LOCK" {
	for id in a b; do pawl create $id -i $id; done
	call 44 depend nope a
	unchanged 44 depend a nope
	call 44 undepend nope a
	pawl claim a -a al
	unchanged 20 depend a b -a bo
	unchanged 20 undepend a b -a bo
	unchanged 21 depend a b --token 11111111-1111-4111-8111-111111111111
	unchanged 21 undepend a b --token 11111111-1111-4111-8111-111111111111
	ask 0 depend a b -a al
}

# --- comment ---

@test "comment: kept with its author, in show and log, by any agent" {
	id=$(new x)
	pawl claim "$id" -a al
	call 0 comment "$id" "seen it" -a bo
	exactly "t1 has a new comment"
	ask 0 comment "$id" "again" -a bo
	is '.task.id == "t1"'
	lines 0 comment "$id" third -a bo
	exactly "SUCCESS: task=t1 status=In Progress"
	ask 0 show "$id"
	is '[.comments[].text] == ["seen it","again","third"] and .comments[0].agent == "bo"'
	ask 0 log "$id"
	is '[.events[] | select(.text == "again")] | length == 1'
}

@test "comment: leaves version and updated_at alone" {
	id=$(new x)
	before=$(field "$id" "| [.version, .updated_at]")
	pawl comment "$id" hello
	same "$before" "$(field "$id" "| [.version, .updated_at]")"
}

@test "comment: from standard input, empty, and of no task" {
	id=$(new x)
	call 0 comment "$id" - <<<"piped"
	unchanged 2 comment "$id" ""
	unchanged 2 comment "$id"
	call 44 comment nope hello
	ask 44 comment nope hello
}

# --- remove ---

@test "remove: takes it out, the log and the fence stay" {
	id=$(new x)
	pawl claim "$id"
	pawl release "$id"
	call 0 remove "$id"
	says "$id"
	call 44 show "$id"
	ask 0 log
	is '[.events[] | select(.task == "t1")] | length >= 4'
	pawl create again -i "$id"
	ask 0 claim "$id"
	is '.lock.fence == 2'
}

@test "remove: json and porcelain" {
	new a
	new b
	ask 0 remove t1 --reason "not wanted"
	is '.task.id == "t1"'
	lines 0 remove t2
	[[ $output == "SUCCESS: task=t2"* ]]
	call 0 remove -q "$(new c)"
}

@test "remove: held, depended on, or with sub-tasks needs --force" {
	pawl create a -i a
	pawl create b -i b --depends a
	pawl create c -i c --parent b
	unchanged 40 remove a
	complains b --force
	ask 40 remove b
	lines 40 remove a
	exactly "MISCONFIGURED: task=a status=Ready"
	pawl create h -i h
	pawl claim h -a al
	unchanged 20 remove h -a bo
	complains al
	unchanged 2 remove h -a bo --force
	complains --reason
	ask 0 remove a --force
	status_is b "Needs Help"
	ask 0 remove b --force
	is '.ok'
	ask 0 show c
	is '.task | has("parent") | not'
	ask 0 remove h --force --reason gone -a bo
	call 21 heartbeat h -a al || call 44 heartbeat h -a al
}

@test "remove: NOT_FOUND; a stale token LOST_LOCK" {
	call 44 remove nope
	ask 44 remove nope
	new x
	pawl claim t1 -a al
	unchanged 21 remove t1 --token 11111111-1111-4111-8111-111111111111
}

# --- id ---

@test "id: claim hands each out once, peek takes nothing" {
	call 0 id peek
	exactly t1
	call 0 id claim
	exactly t1
	ask 0 id claim
	is '.id == "t2"'
	ask 0 id peek
	is '.id == "t3"'
	lines 0 id peek
	exactly "SUCCESS: id=t3"
	lines 0 id claim
	exactly "SUCCESS: id=t3"
	call 0 create -q x
	exactly t4
	pawl create mine -i t1
}

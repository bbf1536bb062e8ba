#!/usr/bin/env bats
# undo: its effects and codes in each form, and what remove, batch remove and clear say about the way back.

load common

@test "undo: takes back a change, and says which" {
	new first
	pawl update t1 --title second --priority 9
	call 0 undo t1
	says "t1 is as it was before your update" "t1 → Ready"
	ask 0 show t1
	is '.task | .title == "first" and .priority == 2'
	ask 0 log t1
	is '.events[-1] | .event == "undone" and .text == "update" and .changes.title.to == "first"'
	call 40 undo t1
	complains "cannot be undone" "change t1 again"
	pawl update t1 --priority 8
	ask 0 undo t1
	is --arg t "^$time\$" '.undone | .change == "update" and (.at | test($t))'
	is '.task.priority == 2 and .task.version == 5'
	pawl update t1 --priority 7
	lines 0 undo t1
	exactly "SUCCESS: task=t1 status=Ready"
	pawl update t1 --priority 7
	call 0 undo -q t1
	exactly ""
}

@test "undo: without ID, the last change of any task" {
	call 40 undo
	complains "there is no change of" "to undo"
	new one
	new two
	ask 40 undo
	pawl update t1 --title changed
	pawl cancel t2 --reason r
	ask 0 undo
	is '.task.id == "t2" and .undone.change == "cancel"'
	ask 0 undo
	is '.task.id == "t1"'
	unchanged 40 undo
}

@test "undo: CONFLICT names who changed it since" {
	new one
	pawl update t1 --title two
	unchanged 20 undo t1 -a bo
	complains "not yours"
	pawl comment t1 "a comment is no change" -a bo
	pawl claim t1 -a bo
	unchanged 20 undo t1
	complains "changed after your update (bo: claimed at"
	ask 20 undo t1
	is '.error.message | contains("bo: claimed")'
	lines 20 undo t1
	pawl release t1 -a bo
	unchanged 20 undo t1 --if-version 1
}

@test "undo: over the lock of another agent it needs --force" {
	new one
	pawl claim t1 -a al
	pawl update t1 --title two --force --reason urgent -a pat
	unchanged 20 undo t1 -a pat
	complains "pawl undo t1" "--force --reason TEXT"
	unchanged 2 undo t1 -a pat --force
	call 21 undo t1 -a pat --token 11111111-1111-4111-8111-111111111111
	ask 0 undo t1 -a pat --force --reason oops
	is '.task | .title == "one" and .lock.holder == "al"'
	ask 0 heartbeat t1 -a al
	is '.changed.reason == "oops" and .changed.fields == ["title"]'
}

@test "undo: NOT_FOUND, and open sub-tasks" {
	call 44 undo nope
	ask 44 undo nope
	new one
	pawl done t1 --take
	pawl reopen t1 --reason r
	pawl create below --parent t1 -a bo
	ask 41 undo t1
	call 41 undo t1
	complains "open sub-task"
}

@test "undo: a holder's call names its way back" {
	new one
	call 40 undo t1
	complains "pawl remove t1"
	pawl claim t1
	unchanged 40 undo t1
	complains "(claimed)" "pawl release t1"
	pawl done t1
	unchanged 40 undo t1
	complains "pawl reopen t1"
}

@test "undo: each command that it names" {
	new base
	new x --depends t1
	pawl claim t2
	pawl block t2 --reason r --unblock-action u
	undone() { # NAME STATUS COMMAND...: the command, then its undo
		local change=$1 before=$2
		shift 2
		pawl "$@"
		ask 0 undo t2
		is --arg n "$change" --arg s "$before" '.undone.change == $n and .task.status == $s'
	}
	undone unblock Blocked unblock t2
	pawl unblock t2
	pawl claim t2
	pawl review t2 --summary s
	undone rework Review rework t2 --reason r
	undone approve Review approve t2
	undone approve Review status t2 done
	pawl approve t2
	undone archive Done archive t2
	undone reopen Done reopen t2 --reason r
	pawl reopen t2 --reason r
	pawl claim t2
	pawl fail t2 --reason r
	undone retry Failed retry t2
	pawl retry t2
	undone cancel Ready cancel t2 --reason r
	undone update Ready update t2 --status backlog
	undone undepend Ready undepend t2 t1
	is '.task.depends == ["t1"]'
	new another
	undone depend Ready depend t2 t3
	is '.task.depends == ["t1"]'
	undone remove Ready remove t2
	is '.task.depends == ["t1"]'
}

@test "undo: an edit is one change" {
	new a
	new b
	new c --depends t1
	cat >edit.sh <<-'END'
		#!/bin/sh
		sed -i 's/^title: .*/title: new/; s/- t1/- t2/; s/\[t1\]/[t2]/' "$1"
	END
	chmod +x edit.sh
	needs_terminal
	EDITOR=$PWD/edit.sh on_terminal "$PAWL edit t3" >out
	ask 0 show t3
	is '.task.title == "new" and .task.depends == ["t2"]'
	ask 0 undo t3
	is '.task.title == "c" and .task.depends == ["t1"] and .undone.change == "update"'
}

@test "undo: a removed task comes back with its log, its fence and its links" {
	new parent
	new gone --parent t1
	new waits --depends t2
	pawl claim t2
	pawl release t2
	pawl comment t2 "keep me"
	call 0 remove t2 --force
	says "t2 removed" "to take it back: pawl undo t2"
	status_is t3 "Needs Help"
	ask 0 undo t2
	is '.undone.change == "remove" and .task.parent == "t1" and .task.fence == 1'
	status_is t3 Ready
	call 0 show t2
	says "keep me" t3
	ask 0 claim t2
	is '.lock.fence == 2'
}

@test "undo: an approval stays once a task that waited for it was claimed" {
	new one
	new two --depends t1
	pawl claim t1 -a al
	pawl review t1 --summary s -a al
	pawl approve t1
	pawl claim t2 -a bo
	unchanged 20 undo t1
	complains "t2 waited for t1" "by bo" "pawl reopen t1"
}

@test "undo: what a hand-made record says is checked" {
	needs_sqlite
	new one
	pawl update t1 --title two
	sqlite3 .pawl/queue.db "UPDATE record SET hot=x'0101' WHERE key='undo/t1'"
	unchanged 40 undo t1
	complains "undo/t1 cannot be used"
	call 0 show t1
	run -40 "$PAWL" doctor
	[[ $output == *undo/t1* ]]
	call 0 doctor --fix --yes
	call 40 undo t1
	complains "not kept"
}

@test "undo: backup keeps no step for a restore; migrate copies it" {
	needs_sqlite
	new one
	pawl update t1 --title two
	pawl backup saved
	pawl restore saved --force
	call 40 undo t1
	pawl update t1 --title three
	pawl migrate sqlite:.pawl/queue.db "files:$PWD/elsewhere"
	ask 0 undo t1 --store "files:$PWD/elsewhere"
	is '.task.title == "two"'
}

@test "remove: a terminal is asked, a script is not" {
	needs_terminal
	new a
	new b
	at_terminal n remove t1
	same "$status" 2
	[[ $output == *"this removes t1; to take it back: pawl undo ID"*"Continue? [y/N]"*"you did not agree"* ]]
	at_terminal y remove t1
	same "$status" 0
	[[ $output == *"pawl undo t1"* ]]
	pawl undo t1
	[[ $(on_terminal "$PAWL remove t1 --yes") != *"Continue?"* ]]
	pawl undo t1
	[[ $(on_terminal "$PAWL remove t1 --force") != *"Continue?"* ]]
	pawl undo t1
	at_terminal n batch remove t1 t2
	same "$status" 2
	[[ $output == *"this removes t1 t2"* ]]
	at_terminal y batch remove t1 t2
	same "$status" 0
	[[ $output == *"to take one back: pawl undo ID"* ]]
	[[ $(on_terminal "$PAWL undo t1 && $PAWL undo t2 && $PAWL batch remove -y t1 t2") != *"Continue?"* ]]
}

@test "undo: through a server, by the token's name and role" {
	needs_local "it starts one itself"
	served
	as() { # TOKEN AGENT ARG...
		PAWL_SERVER_TOKEN=$1 "$PAWL" --store "$served_url" --agent "$2" "${@:3}"
	}
	agent=$(beside_server token create al --role agent --agent al -q)
	reviewer=$(beside_server token create al2 --role reviewer --agent al -q)
	other=$(beside_server token create bo --role reviewer --agent bo -q)
	as "$agent" al create one
	as "$agent" al create two
	as "$reviewer" al update t1 --title changed
	run -40 as "$agent" al undo t1 # it needs the role of the update
	[[ $output == *"the role reviewer"* ]]
	run -20 as "$other" bo undo t1
	run -40 as "$other" al undo t1 # the token's name counts
	run -0 as "$reviewer" al undo t1 --json
	[[ $output == *'"undone":{"change":"update"'* ]]
	run -40 as "$reviewer" al undo t1
	run -0 as "$PAWL_SERVER_TOKEN" pat remove t2
	run -0 as "$PAWL_SERVER_TOKEN" pat undo
	run -0 as "$agent" al show t2
	run -0 curl -sS -H "Authorization: Bearer $reviewer" -H 'Content-Type: application/json' -d '{"id":"t1"}' \
		"$served_url/v1/undo"
	[[ $output == *'"code":"MISCONFIGURED"'* ]]
}

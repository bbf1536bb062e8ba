#!/usr/bin/env bats
# The event log for people: which events, in whose time, and what exactly changed.
load common

kinds() {
	jq -r '[.events[] | "\(.task) \(.event)"] | join(", ")' <<<"$output"
}

# at N: the time of the N-th event, from 0
at() {
	"$PAWL" log --json --limit 0 | jq -r ".events[$1].at"
}

work() {
	new x
	pawl claim t1 -a al
	pawl done t1 -a al
	new y
	pawl claim t2 -a bo
	pawl fail t2 -a bo -r "no luck"
}

@test "log: the time, the agent and the kind select" {
	work
	ask 0 log --since "$(at 3)"
	same "$(kinds)" "t2 created, t2 claimed, t2 failed"
	ask 0 log --since "$(at 1)" --until "$(at 4)"
	same "$(kinds)" "t1 claimed, t1 done, t2 created"
	ask 0 log --until "$(at 1)"
	same "$(kinds)" "t1 created"
	ask 0 log --by al
	same "$(kinds)" "t1 claimed, t1 done"
	ask 0 log --kind done,failed
	same "$(kinds)" "t1 done, t2 failed"
	ask 0 log --kind done --kind created --by bo
	same "$(kinds)" ""
	ask 0 log --kind claimed -n 1
	same "$(kinds)" "t2 claimed"
	ask 0 log t2 --since "$(at 4)" --kind claimed
	same "$(kinds)" "t2 claimed"
	lines 0 log --kind failed
	[ "${#lines[@]}" -eq 1 ]
	call 2 log --since never
	call 0 log --since 2999-01-01
	says "no event"
}

@test "log: an update says what it changed" {
	new old --priority 2 --label a --description one
	new parent
	pawl update t1 --priority 3 --title "new title" --add-label b --remove-label a --description two --parent t2
	call 0 log t1 --kind updated
	says 'title old → "new title", priority 2 → 3, labels +b -a, parent none → t2, description changed'
	ask 0 log t1 --kind updated
	is '.events[0].changes == {"title": {"from": "old", "to": "new title"}, "priority": {"from": 2, "to": 3},
		"labels": {"from": ["a"], "to": ["b"]}, "parent": {"from": null, "to": "t2"}, "description": {}}'
	pawl update t1 --status backlog
	ask 0 log t1 --kind updated
	is '.events[1] | has("changes") | not'
	pawl update t1 --due 2030-01-02 --class expedite --effort small --type bug
	call 0 log t1 -n 1
	says "class Standard → Expedite, type none → bug, effort none → small, due none → 2030-01-02"
}

@test "log: what a text in a change holds is escaped" {
	new x
	pawl update t1 --title $'red \e[31m, and "quotes"'
	call 0 log t1 -n 1
	not grep -q $'\e' <<<"$output"
}

@test "log: locks of the whole queue only with --all or by their name" {
	new x
	pawl config set agent al
	pawl lock acquire @batch -a bo
	ask 0 log
	same "$(kinds)" "t1 created"
	ask 0 log --all
	is '[.events[].task] | index("@batch") != null'
	ask 0 log @batch
	is '.events | length == 1'
	pawl lock break @batch -r stuck
	ask 0 log
	same "$(kinds)" "t1 created, @batch lock_broken"
}

@test "log: local time on a terminal, UTC elsewhere" {
	needs_terminal
	new x
	utc=$(at 0)
	call 0 log
	[ "${output%% *}" = "$utc" ]
	TZ=JST-9 run on_terminal "stty cols 100; $PAWL log"
	[[ $output == *"$(TZ=JST-9 date -d "$utc" '+%Y-%m-%d %H:%M:%S')"* ]]
}

@test "log --follow: from now, or from where it is told" {
	local pid
	new x
	"$PAWL" log --follow --json >seen 2>&1 3>&- &
	pid=$!
	"$PAWL" log --follow --json -n 1 >last 2>&1 3>&- &
	pid="$pid $!"
	soon grep -q created last
	soon eval 'pawl comment t1 hello; grep -q hello seen'
	soon grep -q hello last
	# shellcheck disable=SC2086 # several
	kill $pid
	not grep -q created seen
}

@test "log --since: past comments that an import adds do not hide what is older in the log" {
	new x
	pawl comment t1 early
	pawl export --format json --output tasks.json
	pawl remove t1 --force -r over
	since=$(at -1)
	new y
	pawl import tasks.json
	ask 0 log --since "$since"
	is '[.events[].event] | index("removed") != null'
	is '[.events[] | select(.event == "created")] | length >= 1'
}

# left ID: the kinds of its events that the log still has
left() {
	"$PAWL" log "$1" --json --limit 0 | jq -r '[.events[].event] | join(" ")'
}

@test "archive: log.keep forgets the events of ended tasks, and nothing else" {
	new x
	first=$("$PAWL" log --json | jq -r '.events[0].cursor')
	pawl claim t1 -a al
	pawl done t1 -a al
	new y
	pawl comment t2 stays
	new z
	pawl claim t3 -a al
	pawl done t3 -a al
	pawl remove t3 --force
	last=$("$PAWL" log --json | jq -r '.events[-1].cursor')
	ask 0 archive
	is 'has("log_kept_since") | not'
	same "$(left t1)" "created claimed done archived"
	pawl config set log.keep 1s
	soon eval '"$PAWL" archive -q && [ -z "$(left t1)" ]'
	soon eval '"$PAWL" archive -q && ! "$PAWL" log t3'
	same "$(left t2)" "created comment"
	ask 0 log --kind log_cut
	is '.events | length >= 1'
	ask 0 log --limit 0
	is '[.events[].task] | index("t1") == null and index("t3") == null'
	# cursors of events that are gone are still cursors
	ask 0 log --after "$first"
	is '[.events[] | select(.task == "t2") | .event] == ["created", "comment"]'
	ask 0 log --after "$last"
	is '[.events[].event] | index("log_cut") != null and index("comment") == null'
	# neither attempts nor fences are forgotten
	same "$(field t1 .fence)$(field t1 .attempts)" 11
	pawl reopen t1 -r again
	pawl claim t1 -a bo
	same "$(field t1 .fence)$(field t1 .attempts)" 22
	new z --id t3
	pawl claim t3 -a bo
	same "$(field t3 .fence)" 2
	call 0 doctor
}

@test "archive: one task, and a log without older events, leave the log alone" {
	new x
	pawl claim t1 -a al
	pawl done t1 -a al
	pawl config set log.keep 1h
	ask 0 archive
	is 'has("log_kept_since") | not'
	pawl config set log.keep 1ms
	ask 0 archive t1
	is 'has("log_kept_since") | not'
	same "$(left t1)" "created claimed done archived"
	call 2 config set log.keep soon
}

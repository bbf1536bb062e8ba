#!/usr/bin/env bats
# doctor: reports nothing on a good queue, and finds each planted fault, with its fix.

load common

# finding CHECK: that finding of the last answer, as JSON
finding() {
	jq -c --arg c "$1" '.findings[] | select(.check == $c)' <<<"$output"
}

@test "a good queue" {
	new x
	pawl claim t1
	call 0 doctor
	says ok
	[[ $output != *bad* ]]
	same "$stderr" ""
	ask 0 doctor
	is '(.findings | length) > 3 and ([.findings[] | .check and .level and .text] | all)'
	is '[.findings[].level] | unique == ["ok"]'
	lines 0 doctor
	[[ ${lines[0]} == "FINDING: check=settings level=ok"* ]]
	call 0 doctor -q
	exactly ""
}

@test "a claim leaves nothing that another would call damaged" {
	new x
	pawl claim t1
	export PAWL_AGENT=another
	ask 0 doctor
	is '[.findings[] | select(.check == "record" or .check == "records") | .level] | unique == ["ok"]'
	call 0 list
	same "$stderr" ""
	new y
	call 0 next --claim
	says t2
	same "$stderr" ""
	call 0 doctor
	same "$stderr" ""
}

@test "doctor changes nothing" {
	needs_sqlite
	new x
	pawl claim t1
	before=$(snapshot)$(sha256sum .pawl/queue.db .pawl/config)
	call 0 doctor
	same "$before" "$(snapshot)$(sha256sum .pawl/queue.db .pawl/config)"
}

@test "--yes without --fix" {
	call 2 doctor --yes
	complains "--fix"
}

@test "no queue here" {
	mkdir "$BATS_TEST_TMPDIR/none"
	cd "$BATS_TEST_TMPDIR/none"
	call 40 doctor
	says bad "pawl init"
	complains "1 problem"
	ask 40 doctor
	is '[.findings[] | select(.level == "bad")] | length == 1'
	is '[.findings[] | select(.level == "bad") | .fix | length > 0] | all'
	lines 40 doctor
	says "FINDING: check=queue level=bad"
}

@test "settings that do not fit" {
	echo "lease = never" >>.pawl/config
	call 40 doctor
	says bad "settings" never "fix: pawl config unset lease"
	complains "1 problem"
	[ -n "${PAWL_TEST_STORE-}" ] || says integrity
	pawl config unset lease
	call 0 doctor
	PAWL_LEASE=never call 40 doctor
	says "fix: unset PAWL_LEASE"
	pawl config set --user color always
	sed -i s/always/blue/ "$XDG_CONFIG_HOME/pawl/config"
	call 40 doctor
	says "fix: pawl config unset color --user"
	echo "lease = 15m" >"$XDG_CONFIG_HOME/pawl/config"
	printf 'store = sqlite:q.db\ncolor = blue\n' >.pawl/config
	call 40 doctor
	says "not checked"
}

@test "a store that cannot be read" {
	ask 40 doctor --store "$(faulty open:1:fail)" || ask 30 doctor --store "$(faulty open:1:fail)"
}

@test "stale tokens are noted, and removed with --fix only" {
	needs_local "the id of a far queue is a file beside the tokens"
	short_leases
	new x
	new y
	pawl claim t1 -a al --ttl 0.1s
	pawl claim t2 -a bo
	lapsed t1
	pawl claim t1 -a cy --ttl 10m
	pawl lock break t1 -r r -a boss
	n=$(find "$XDG_STATE_HOME/pawl" -maxdepth 1 -type f | wc -l)
	ask 0 doctor
	is '.findings[] | select(.check == "state files") | .level == "note" and (.fix | contains("--fix"))'
	same "$(find "$XDG_STATE_HOME/pawl" -maxdepth 1 -type f | wc -l)" "$n"
	call 2 doctor --fix
	complains "1 repair" "--yes"
	same "$(find "$XDG_STATE_HOME/pawl" -maxdepth 1 -type f | wc -l)" "$n"
	call 0 doctor --fix --yes
	says removed
	call 0 heartbeat t2 -a bo
	ask 0 doctor
	is '.findings[] | select(.check == "state files") | .level == "ok"'
	same "$(find "$XDG_STATE_HOME/pawl" -maxdepth 1 -type f | wc -l)" 1
}

@test "pending files: an old one is stale, a young one or one in use is not" {
	needs_local "it breaks or watches the store itself"
	new x
	call 30 claim t1 -a al --store "$(faulty modify:1:unknown)"
	file=$(find "$XDG_STATE_HOME/pawl" -name '*.pending')
	[ -f "$file" ]
	ask 0 doctor --fix --yes
	[ -f "$file" ]
	touch -d '3 days ago' "$file"
	exec 9<"$file"
	flock 9
	ask 0 doctor --fix --yes
	[ -f "$file" ]
	exec 9<&-
	ask 0 doctor
	is '.findings[] | select(.check == "state files") | .level == "note"'
	ask 0 doctor --fix --yes
	[ ! -e "$file" ]
}

@test "foreign files in the state folder stay" {
	new x
	pawl claim t1
	echo "not ours" >"$XDG_STATE_HOME/pawl/notes.txt"
	call 0 doctor --fix --yes
	[ -f "$XDG_STATE_HOME/pawl/notes.txt" ]
	call 0 heartbeat t1
}

@test "a state folder that is a link, or not a folder" {
	rm -rf "$XDG_STATE_HOME/pawl"
	mkdir -p "$XDG_STATE_HOME" "$HOME/real"
	ln -s "$HOME/real" "$XDG_STATE_HOME/pawl"
	run --separate-stderr "$PAWL" doctor --json
	echo "$output"
	is '.findings[] | select(.check == "state files") | .level != "ok" and (.fix | length > 0)'
}

@test "sqlite: a database that everybody can write" {
	needs_sqlite
	chmod o+w .pawl/queue.db
	ask 0 doctor
	is '.findings[] | select(.check == "permissions") | .level == "note" and (.fix | contains("chmod o-w"))'
	call 0 doctor
	says "every user can write" "fix: chmod o-w"
	fix=$("$PAWL" doctor --json | jq -r '.findings[] | select(.check == "permissions") | .fix')
	bash -c "$fix"
	ask 0 doctor
	is '.findings[] | select(.check == "permissions") | .level == "ok"'
}

@test "sqlite: a folder that everybody can write" {
	needs_sqlite
	chmod o+w .pawl
	ask 0 doctor
	is '.findings[] | select(.check == "permissions") | .level == "note" and (.text | contains(".pawl"))'
}

@test "sqlite: a wrong count of open sub-tasks, and a lane that does not fit" {
	needs_sqlite
	new Epic
	new one --parent t1
	call 0 doctor
	# the record of t1 before it had sub-tasks
	sqlite3 .pawl/queue.db "UPDATE record SET lane=1 WHERE id='t1'"
	call 40 doctor
	says "t1: its index differs from the task"
	pawl update t1 --title again
	call 0 doctor
	sqlite3 .pawl/queue.db "UPDATE record SET parent=NULL WHERE id='t2'"
	call 40 doctor
	says "task/t1: open_subtasks is 1 and should be 0" "t2: its index differs"
	call 0 doctor --fix --yes
	ask 0 show t1
	is '.task.open_subtasks == 1'
}

@test "sqlite: damage is found" {
	needs_sqlite
	needs sqlite3
	for i in $(seq 30); do new "task $i" -d "$(head -c 3000 /dev/zero | tr '\0' x)"; done
	sqlite3 .pawl/queue.db 'PRAGMA wal_checkpoint(TRUNCATE)' >/dev/null
	rm -f .pawl/queue.db-*
	pages=$(($(stat -c %s .pawl/queue.db) / 4096))
	head -c 4096 /dev/urandom | dd of=.pawl/queue.db bs=4096 seek=$((pages / 2)) conv=notrunc status=none
	ask 40 doctor
	is '[.findings[] | select(.level == "bad") | .fix | length > 0] | length > 0 and all'
}

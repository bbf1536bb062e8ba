#!/usr/bin/env bats
# doctor --fix: each fault is planted by the means that another program has (the sqlite3 shell, an editor, git's
# plumbing), found, repaired after a backup, and not found again.

load common

setup() {
	fresh
	queue
	case ${PAWL_TEST_STORE-} in
	files:*) store=files ;;
	git:*) store=git ;;
	'') store=sqlite && needs sqlite3 ;;
	*) skip "another store" ;;
	esac
	locks=$BATS_TEST_TMPDIR/locks repo=$BATS_TEST_TMPDIR/queue.git
}

db() {
	sqlite3 .pawl/queue.db "$1"
}

# rewrite ID SED: changes the record's commit as an editor of its message would
rewrite() {
	local ref=refs/pawl/default/t/$1 new
	new=$(git -C "$repo" cat-file commit "$ref" | sed "$2" | git -C "$repo" hash-object -t commit -w --stdin)
	not [ "$new" = "$(git -C "$repo" rev-parse "$ref")" ]
	git -C "$repo" update-ref "$ref" "$new"
}

# rewrite_text ID SED: the same for the texts, which are the commit's tree
rewrite_text() {
	local ref=refs/pawl/default/t/$1 blob tree
	blob=$(git -C "$repo" cat-file blob "$ref:task.json" | sed "$2" | git -C "$repo" hash-object -w --stdin)
	tree=$(printf '100644 blob %s\ttask.json\n' "$blob" | git -C "$repo" mktree)
	rewrite "$1" "s/^tree .*/tree $tree/"
}

# finding CHECK: the level and the repair of that finding of the last answer
finding() {
	get "[.findings[] | select(.check == \"$1\" and .level != \"ok\")][0] | .level + \": \" + .repair"
}

problems() {
	"$PAWL" doctor --json | jq -c '[.findings[] | select(.level != "ok") | .check + ": " + .text]'
}

# contents: all that a repair may change, and the tasks
contents() {
	case $store in
	sqlite) sqlite3 .pawl/queue.db .dump ;;
	files) find "$locks" -type f -not -path '*/.pawl/*' -exec cat {} + ;;
	git) git -C "$repo" for-each-ref ;;
	esac
}

# mended: the repair makes a backup, and then doctor finds nothing
mended() {
	local before
	before=$(contents)
	call 2 doctor --fix
	complains "nothing was changed" "pawl doctor --fix --yes"
	same "$before" "$(contents)"
	ask 0 doctor --fix --yes
	backup=$(get .backup) saved=$(get .saved)
	[[ $(head -c 4 "$backup") == pawl ]]
	is '.repaired | length > 0'
	is '[.findings[].level] | unique == ["ok"]'
	same "$(problems)" "[]"
	call 0 lock typed
	[[ $output != *@maintenance* ]]
}

# wrong_count: t2 depends on t1 and has a wrong count of open dependencies
wrong_count() {
	new one
	new two --depends t1
	new three
	case $store in
	sqlite)
		db "SELECT writefile('hot', hot) FROM record WHERE id='t2'" >/dev/null
		pawl claim t1
		pawl done t1
		db "UPDATE record SET hot=readfile('hot'),lane=3 WHERE id='t2'"
		;;
	files) sed -i 's/"open_depends": 1/"open_depends": 5/' "$locks/t2.task" ;;
	git) rewrite t2 's/"open_depends":1/"open_depends":5/' ;;
	esac
}

@test "fix: a wrong count of open dependencies" {
	wrong_count
	ask 40 doctor
	same "$(finding "counts of tasks")" "bad: count its dependencies and sub-tasks again"
	call 40 doctor
	says "task/t2: open_depends is" "fix: pawl doctor --fix (count its dependencies"
	mended
	ask 0 show t2
	[ "$store" = sqlite ] || is '.task.open_depends == 1'
	[ "$store" != sqlite ] || is '.task | has("open_depends") | not'
	call 0 log t2
	says "repaired" "open_depends is"
}

@test "fix: a wrong count of open sub-tasks" {
	new parent
	new child --parent t1
	case $store in
	sqlite)
		db "SELECT writefile('hot', hot) FROM record WHERE id='t1'" >/dev/null
		pawl claim t2
		pawl done t2
		db "UPDATE record SET hot=readfile('hot') WHERE id='t1'"
		;;
	files) sed -i 's/"open_subtasks": 1/"open_subtasks": 5/' "$locks/t1.task" ;;
	git) rewrite t1 's/"open_subtasks":1/"open_subtasks":5/' ;;
	esac
	ask 40 doctor
	same "$(finding "counts of tasks")" "bad: count its dependencies and sub-tasks again"
	mended
}

@test "fix: a dependency and a parent that do not exist" {
	new one
	new two --depends t1
	new three --parent t1
	case $store in
	sqlite) db "DELETE FROM body WHERE rid=(SELECT rid FROM record WHERE id='t1'); DELETE FROM record WHERE id='t1';
		UPDATE tally SET n=n-1 WHERE status=2" ;;
	files) rm "$locks/t1.task" ;;
	git) git -C "$repo" update-ref -d refs/pawl/default/t/t1 ;;
	esac
	run "$PAWL" doctor
	says "task/t2 depends on t1, which does not exist" "task/t3 is a sub-task of task/t1"
	mended
	ask 0 show t2
	is '.task.depends == []'
	# a script that removes a file has removed the task: nothing waits for it
	[ "$store" = files ] || is '.task.status == "Needs Help" and (.task.blocker_reason | contains("t1"))'
	ask 0 show t3
	is '.task | has("parent") | not'
}

@test "fix: an index that disagrees with the task" {
	new one -p 3
	new two -p 2
	case $store in
	sqlite) db "UPDATE record SET priority=1 WHERE id='t1'" ;;
	files) skip "the index is in .pawl/state, which has a checksum" ;;
	git) rewrite t1 's/"priority":3/"priority":1/' ;;
	esac
	ask 40 doctor
	same "$(finding record)" "bad: write its index again"
	mended
	call 0 next
	says one
}

@test "fix: a due date that the index lost" {
	new one
	new two --due 2030-12-24
	case $store in
	sqlite) db "UPDATE record SET due_at=NULL WHERE id='t2'" ;;
	files) skip "the index is in .pawl/state, which has a checksum" ;;
	git) rewrite t2 's/"due":[0-9]*/"due":0/' ;;
	esac
	ask 40 doctor
	same "$(finding record)" "bad: write its index again"
	mended
	call 0 next
	says two
}

@test "fix: a task that no lane has is offered again" {
	new one
	case $store in
	sqlite) db "UPDATE record SET lane=NULL" ;;
	files) skip "the index is in .pawl/state, which has a checksum" ;;
	git) rewrite t1 's/"lane":1,//' ;;
	esac
	call 10 next
	ask 40 doctor
	same "$(finding record)" "bad: write its index again"
	mended
	call 0 next
	says t1
}

@test "fix: an id that differs from its key" {
	new one
	pawl claim t1 -q >/dev/null
	new two --depends t1
	case $store in
	sqlite)
		db "UPDATE body SET rest=(SELECT rest FROM body b JOIN record USING(rid) WHERE id='t2') WHERE rid=
			(SELECT rid FROM record WHERE id='t1')"
		;;
	files) skip "the id is the name of the file" ;;
	git) rewrite_text t1 's/"t1"/"other"/' ;;
	esac
	ask 40 doctor
	[[ $(finding record) == "bad: give it the id in its key; "* ]]
	mended
	ask 0 show t1
	is '.task.title == "one" and .task.fence == 1 and .task.status == "In Progress"'
	call 0 done t1
}

@test "fix: a key that no id has" {
	[ "$store" = sqlite ] || skip "about .pawl/queue.db"
	new one
	new two
	new three
	db "UPDATE record SET key='task/T1' WHERE id='t1'; UPDATE record SET key='task/no id!', id='no id!' WHERE id='t2'"
	db "UPDATE body SET rest=(SELECT replace(rest,'t2','..') FROM body JOIN record USING(rid) WHERE key='task/no id!')
		WHERE rid=(SELECT rid FROM record WHERE key='task/no id!')"
	ask 40 doctor
	is '[.findings[] | select(.check == "record") | .repair | sub(";.*"; "")] | sort ==
		["give it a new id", "store it under its id, or under a new one if that is taken"]'
	mended
	ask 0 list
	is '[.tasks[] | .id + " " + .title] | sort == ["t1 one", "t3 three", "t4 two"]'
}

@test "fix: a damaged counter, a damaged fence and a damaged guard" {
	[ "$store" = sqlite ] || skip "about .pawl/queue.db"
	new one
	new two
	pawl remove t2
	db "UPDATE record SET hot=CAST('many' AS BLOB) WHERE key='meta/counter'; UPDATE record SET hot=x'00' WHERE key='gone/t2';
		INSERT INTO record(q,key,rev,wake,hot) VALUES(1,'meta/guard',1,0,CAST('none' AS BLOB))"
	ask 40 doctor
	is '[.findings[] | select(.level == "bad") | .repair | length > 0] == [true, true, true]'
	mended
	ask 0 create three
	is '.task.id == "t3"'
	ask 0 create four --id t2
	is '.task.fence > 1000000'
}

@test "fix: a damaged guard: a pause still holds" {
	[ "$store" = sqlite ] || skip "about .pawl/queue.db"
	new one
	pawl pause
	db "UPDATE record SET hot=x'7878' WHERE key='meta/guard'"
	mended
	call 20 claim t1
	pawl resume
	call 0 claim t1
}

# unusable: t1 cannot be used and cannot be repaired
unusable() {
	new one -d "some text"
	new two --depends t1
	case $store in
	sqlite) db "UPDATE record SET hot=x'ff00ff' WHERE id='t1'" ;;
	files) sed -i 's/"priority": 2/"priority": 99999/' "$locks/t1.task" ;;
	git) rewrite t1 's/"task":{/"task":{"attempts":-5,/' ;;
	esac
}

@test "fix: a record that cannot be repaired goes to a file" {
	unusable
	ask 40 doctor
	[[ $(finding record) == "bad: move it to a file; to remove it instead: pawl remove t1 --force" ]]
	mended
	[[ $saved == *.unrepaired.jsonl ]]
	output=$(<"$saved")
	is '.what == "record" and .name == "task/t1" and (.why | length > 0)'
	is '.body | tostring | length > 10'
	call 44 show t1
	ask 0 show t2
	is '.task.status == "Needs Help"'
	call 0 doctor --fix --yes
	same "$(find "$(dirname "$saved")" -name '*.jsonl' | wc -l)" 1
}

@test "fix: the backup restores the queue as it was" {
	wrong_count
	"$PAWL" list --all --json >before.json 2>/dev/null || "$PAWL" list --json >before.json
	mended
	pawl restore "$backup" --force
	ask 0 list
	is --slurpfile b before.json '[.tasks[] | .id + .title + .status] == [$b[0].tasks[] | .id + .title + .status]'
}

# --- only SQLite -------------------------------------------------------------------------------------------------------

@test "fix: sqlite: numbers of tasks, also if they hide tasks" {
	[ "$store" = sqlite ] || skip "about .pawl/queue.db"
	new one
	new two
	db 'UPDATE tally SET n=0'
	ask 40 doctor
	same "$(finding counts)" "bad: count the tasks of each status again"
	mended
	ask 0 list
	is '.total == 2'
	ask 0 status
	is '.total == 2'
	# the backup has the tasks, although the counts hid them
	pawl restore "$backup" --force
	ask 0 list
	is '.total == 2'
	db 'DELETE FROM tally'
	mended
	new three
	ask 0 status
	is '.total == 3'
}

@test "fix: sqlite: links in both directions" {
	[ "$store" = sqlite ] || skip "about .pawl/queue.db"
	new one
	new two --depends t1
	new three --depends t1
	db "DELETE FROM link WHERE rid=(SELECT rid FROM record WHERE id='t2');
		INSERT INTO link SELECT 1,'task/t3',rid FROM record WHERE id='t1'"
	ask 40 doctor
	same "$(finding links)" "bad: store each dependency of a task in both directions"
	mended
	same "$(db "SELECT target||' '||id FROM link JOIN record USING(rid) ORDER BY id")" "task/t1 t2
task/t1 t3"
	pawl claim t1
	pawl done t1
	ask 0 show t2
	is '.task | has("open_depends") | not'
}

@test "fix: sqlite: texts without a task" {
	[ "$store" = sqlite ] || skip "about .pawl/queue.db"
	new one -d "a text"
	db "INSERT INTO body(rid,title,description,rest) VALUES(9999,CAST('lost' AS BLOB),x'ff1b5b',x'')"
	ask 40 doctor
	same "$(finding texts)" "bad: move these texts to a file"
	mended
	output=$(<"$saved")
	is '.what == "texts" and .title == "lost" and .description == {"hex": "ff1b5b"}'
	same "$(db 'SELECT count(*) FROM body WHERE rid=9999')" 0
}

@test "fix: sqlite: a task whose texts are lost or too large" {
	[ "$store" = sqlite ] || skip "about .pawl/queue.db"
	new one
	new two -d "a text" --label blue --depends t1
	new three
	db "DELETE FROM body WHERE rid=(SELECT rid FROM record WHERE id='t2');
		UPDATE body SET description=zeroblob(3000000) WHERE rid=(SELECT rid FROM record WHERE id='t3')"
	ask 40 doctor
	mended
	ask 0 show t2
	is '.task.title == "t2" and .task.labels == ["blue"] and .task.depends == ["t1"] and .task.open_depends == 1'
	call 0 show t3
}

@test "fix: sqlite: a status that no command finds, and a wrong place in the order" {
	[ "$store" = sqlite ] || skip "about .pawl/queue.db"
	new one
	new two
	db "UPDATE record SET status=77 WHERE id='t1'; UPDATE record SET wake=5 WHERE id='t2'; UPDATE record SET fence=9"
	ask 40 doctor
	is '[.findings[] | select(.level == "bad") | .check] | contains(["statuses", "order", "views"])'
	mended
	ask 0 list
	is '[.tasks[].id] | sort == ["t1", "t2"]'
	same "$(db "SELECT group_concat(status||' '||wake||' '||ifnull(fence,0)) FROM record WHERE id LIKE 't%'")" "2 0 0,2 0 0"
}

# --- only git -------------------------------------------------------------------------------------------------------------

@test "fix: git: the lock of a ref that a dead process left" {
	[ "$store" = git ] || skip "about git"
	new one
	lock=$repo/refs/pawl/default/t/t1.lock
	echo deadbeef >"$lock"
	touch -d '2 hours ago' "$lock"
	call 30 claim t1 --timeout 1s
	ask 40 doctor
	same "$(finding locks)" "bad: save and remove this lock, which no process here can hold"
	mended
	[ ! -e "$lock" ]
	output=$(<"$saved")
	is --arg l "$lock" '.name == $l and .content == "deadbeef\n"'
	call 0 claim t1
}

@test "fix: git: a lock that a process may hold stays, and so do the locks of others" {
	[ "$store" = git ] || skip "about git"
	new one
	lock=$repo/refs/pawl/default/t/t1.lock other=$repo/refs/heads/main.lock
	touch -d '2 hours ago' "$lock" "$other"
	exec 9<"$lock"
	ask 40 doctor
	is '.findings[] | select(.check == "locks") | .fix | contains("rm ")'
	ask 40 doctor --fix --yes
	[ -e "$lock" ]
	exec 9<&-
	# a git process in the repository may hold any of its locks
	mkfifo gate
	(cd "$repo" && exec git hash-object --stdin) <gate >/dev/null 3>&- &
	pid=$!
	exec 8>gate
	soon grep -q '(git)' "/proc/$pid/stat"
	call 40 doctor --fix --yes
	[ -e "$lock" ]
	exec 8>&-
	wait "$pid"
	touch "$lock"
	call 0 doctor --fix --yes
	[ -e "$lock" ]
	touch -d '2 hours ago' "$lock"
	call 0 doctor --fix --yes
	[ ! -e "$lock" ]
	[ -e "$other" ]
}

# --- files of pawl ----------------------------------------------------------------------------------------------------------

@test "fix: temporary files of a dead process" {
	new one
	mkdir -p .pawl/backups
	touch -d '2 days ago' .pawl/.pawl-0123456789abcdef.tmp .pawl/backups/2026-01-01T00-00-00.000Z.pawl.aB3xYz \
		.pawl/.pawl-0123456789abcdeg.tmp .pawl/backups/mine.pawl.aB3xYz .pawl/notes.tmp
	touch .pawl/.pawl-fedcba9876543210.tmp
	ln -s /etc/passwd .pawl/.pawl-1111111111111111.tmp
	ask 0 doctor
	same "$(finding "temporary files")" "note: remove these files"
	ask 0 doctor --fix --yes
	is 'has("backup") | not' # nothing in the queue was changed
	[ ! -e .pawl/.pawl-0123456789abcdef.tmp ]
	[ ! -e .pawl/backups/2026-01-01T00-00-00.000Z.pawl.aB3xYz ]
	[ -e .pawl/.pawl-0123456789abcdeg.tmp ]
	[ -e .pawl/backups/mine.pawl.aB3xYz ]
	[ -e .pawl/notes.tmp ]
	[ -e .pawl/.pawl-fedcba9876543210.tmp ]
	[ -L .pawl/.pawl-1111111111111111.tmp ]
	same "$(problems)" "[]"
}

# --- when it must not -------------------------------------------------------------------------------------------------------

@test "fix: not while another agent holds a lock of the whole queue" {
	wrong_count
	pawl lock acquire @maintenance -a boss -q
	before=$(contents)
	call 20 doctor --fix --yes --timeout 1s
	complains "@maintenance is held by boss"
	same "$before" "$(contents)"
	pawl lock release @maintenance -a boss -q
	pawl lock acquire @write -a boss -q
	call 20 doctor --fix --yes --timeout 1s
	complains "@write"
	pawl lock release @write -a boss -q
	pawl emergency on --reason "disk swap" -q
	call 30 doctor --fix --yes
	pawl emergency off -q
	mended
}

@test "fix: nobody changes the queue between the backup and the repair" {
	wrong_count
	ask 0 doctor --fix --yes
	ask 0 log --all
	is '[.events[] | select(.event | . == "locked" or . == "unlocked" or . == "repaired") | .event] ==
		["locked", "repaired", "unlocked"]'
}

@test "fix: without a backup nothing changes" {
	wrong_count
	before=$(contents)
	echo "a file" >.pawl/backups
	call 30 doctor --fix --yes
	complains backups
	rm .pawl/backups
	mkdir "$BATS_TEST_TMPDIR/elsewhere"
	ln -s "$BATS_TEST_TMPDIR/elsewhere" .pawl/backups
	call 30 doctor --fix --yes
	same "$(ls "$BATS_TEST_TMPDIR/elsewhere")" ""
	same "$(problems | jq length)" 1
	rm .pawl/backups
	mended
}

@test "fix: a full disk or a fault changes nothing, and the next run repairs" {
	wrong_count
	call 30 doctor --fix --yes --store "$(faulty modify:1:full)"
	call 30 doctor --fix --yes --store "$(faulty mend:2:full)"
	call 30 doctor --fix --yes --store "$(faulty modify:3:full)"
	same "$(problems | jq length)" 1
	mended
}

@test "fix: a store that this user cannot write to" {
	[ "$(id -u)" = 0 ] || skip "needs another user"
	needs setpriv
	wrong_count
	before=$(contents)
	chmod -R a+rX "$BATS_TEST_TMPDIR" "$HOME"
	mkdir -m 777 "$BATS_TEST_TMPDIR/other"
	run env HOME="$BATS_TEST_TMPDIR/other" XDG_STATE_HOME="$BATS_TEST_TMPDIR/other" XDG_CONFIG_HOME="$BATS_TEST_TMPDIR/other" \
		setpriv --reuid 65534 --clear-groups "$PAWL" doctor --fix --yes
	not [ "$status" = 0 ]
	same "$before" "$(contents)"
	mended
}

@test "fix: a run that was killed is completed by the next one" {
	wrong_count
	# a lock whose process is dead, as a killed run leaves it
	sleep 1000 &
	pid=$!
	pawl lock acquire @maintenance -a boss --pid $pid -q
	kill -9 $pid
	wait $pid || true
	call 0 doctor --fix --yes
	same "$(problems)" "[]"
}

@test "fix: kill -9 at any moment" {
	wrong_count
	[ "$store" != sqlite ] || db "UPDATE record SET hot=x'ff00ff' WHERE id='t3'"
	for ms in 002 004 006 008 010 012 015 018 022 026 030 040 060 090; do
		"$PAWL" doctor --fix --yes >/dev/null 2>&1 &
		pid=$!
		sleep 0."$ms"
		kill -9 $pid 2>/dev/null || true
		wait $pid 2>/dev/null || true
		[ "$(problems)" != "[]" ] || case $store in
		sqlite) db "UPDATE record SET hot=readfile('hot'),lane=3 WHERE id='t2'; UPDATE tally SET n=n+1" ;;
		files) sed -i 's/"task_id": "t2",/&/; s/"open_depends": 1/"open_depends": 5/' "$locks/t2.task" ;;
		git) rewrite t2 's/"open_depends":1/"open_depends":5/' ;;
		esac
	done
	ask 0 doctor --fix --yes
	same "$(problems)" "[]"
	ask 0 list
	is '[.tasks[].id] | contains(["t1", "t2"])'
}

@test "fix: asks once on a terminal" {
	needs_terminal
	wrong_count
	output=$(printf 'n\n' | script -qec "$PAWL doctor --fix" /dev/null) || true
	says "doctor will save a backup" "task/t2: open_depends" "Continue?"
	same "$(problems | jq length)" 1
	output=$(printf 'y\n' | script -qec "$PAWL doctor --fix" /dev/null)
	says "repaired:" "backup of the queue"
	same "$(problems)" "[]"
}

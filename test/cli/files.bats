#!/usr/bin/env bats
# The files: store: the content of the folder, and a folder that is shared with scripts that follow the
# .locks protocol by hand. The functions by_hand_* do what such a script does, each in its plainest way.
load common

setup() {
	fresh
	"$PAWL" init -q --store files:locks
}

at() {
	date -u -d "$1" +%Y-%m-%dT%H:%M:%SZ
}

# by_hand_lock ID AGENT [CLAIMED [EXPIRES]]: creates the lock only if there is none; 1 if there is
# one
by_hand_lock() {
	local file=locks/$1.lock
	[ ! -e "locks/$1.done" ] || return 1
	(
		set -C
		jq -n --arg id "$1" --arg agent "$2" --arg claimed "$(at "${3:-now}")" \
			--arg expires "$(at "${4:-1 hour}")" \
			'{task_id: $id, agent: $agent, claimed_at: $claimed, expires_at: $expires,
			description: "by hand"}' >"$file"
	) 2>/dev/null
}

# by_hand_edit FILE FILTER: edits in place, as a script would
by_hand_edit() {
	local text
	text=$(jq "$2" "locks/$1")
	printf '%s\n' "$text" >"locks/$1"
}

by_hand_done() {
	mv "locks/$1.lock" "locks/$1.done"
	by_hand_edit "$1.done" ".completed_at = \"$(at now)\" | .status = \"completed\""
}

by_hand_fail() {
	mv "locks/$1.lock" "locks/$1.failed"
	by_hand_edit "$1.failed" ".failed_at = \"$(at now)\" | .status = \"failed\" | .reason = \"$2\""
}

by_hand_renew() {
	by_hand_edit "$1.lock" ".expires_at = \"$(date -u -d '2 hours' +%Y-%m-%dT%H:%M:%S.123456+00:00)\" |
		.heartbeat = \"$(at now)\""
}

# folder NAME...: exactly these files exist
folder() {
	same "$(cd locks && echo *)" "$*"
}

# doctor_says TEXT...: doctor exits with 40 and prints these texts
doctor_says() {
	call 40 doctor
	says "$@"
}

# --- the content of the folder -----------------------------------------------------------------------

@test "one file for each task, named by its state" {
	pawl create "Do it" --id t1
	folder t1.task
	pawl claim t1 --agent ann
	folder t1.lock
	pawl heartbeat t1 --agent ann --ttl 2h
	folder t1.lock
	pawl done t1 --agent ann
	folder t1.done
	pawl reopen t1 --reason again
	folder t1.task
	pawl claim t1 --agent ann
	pawl fail t1 --agent ann --reason broken
	folder t1.failed
	pawl retry t1
	folder t1.task
	pawl cancel t1 --reason enough
	folder t1.task
	pawl remove t1 --force
	folder '*'
}

@test "a file has the fields of the protocol" {
	local d
	pawl create "Do it" --id t1 --description "All of it"
	pawl claim t1 --agent ann --ttl 10m
	d=$(cat locks/t1.lock)
	jq -e '.task_id == "t1" and .agent == "ann" and .description == "All of it"' <<<"$d"
	jq -e '(.expires_at | sub("\\.[0-9]+Z"; "Z") | fromdate) - (.claimed_at | sub("\\.[0-9]+Z"; "Z") | fromdate)
		| . >= 599 and . <= 601' <<<"$d"
	[[ $(jq -r .claimed_at <<<"$d") =~ ^$time$ ]]
	pawl done t1 --agent ann
	jq -e '.status == "completed" and (.completed_at | length) == 24 and .agent == "ann"' locks/t1.done
	pawl create "Do more" --id t2
	pawl claim t2 --agent bob
	pawl fail t2 --agent bob --reason "no luck"
	jq -e '.status == "failed" and .reason == "no luck" and (.failed_at | length) == 24' locks/t2.failed
	not grep -rq "$(token_of t3 --description x)" locks
}

@test "claiming an id that has no task makes one; a lease is an hour" {
	ask 0 claim design-vpc --description $'The network\nand more' --agent ann
	is '.task.title == "The network" and .task.status == "In Progress" and .lock.fence == 1
		and .lock.expires_in > 3590 and .lock.expires_in <= 3600'
	folder design-vpc.lock
	call 20 claim design-vpc --agent bob
	ask 0 claim other --agent bob
	is '.task.title == "other"'
	call 44 claim third --resume 1
	call 44 done fourth
	call 0 config get lease -q
	exactly 1h
	pawl config set lease 20m
	ask 0 claim fifth
	is '.lock.expires_in <= 1200'
	pawl config unset lease
	pawl config set lease.max 30m
	call 0 claim sixth
}

@test "the porcelain of a claim by hand" {
	lines 0 claim a --agent ann
	exactly "LOCK_ACQUIRED: task=a agent=ann"
	lines 20 claim a --agent bob
	matches "LOCK_EXISTS: task=a agent=ann claimed=$time"
	lines 0 done a --agent ann
	exactly "TASK_COMPLETE: task=a"
	lines 40 claim a --agent bob
	exactly "TASK_ALREADY_DONE: task=a"
}

@test "the store is found by PAWL_STORE, and by the folder that holds it" {
	pawl create x --id t1
	cd / && PAWL_STORE=files:$work/locks call 0 list -q
	exactly t1
	cd "$work/locks" && call 0 list -q
	exactly t1
}

# --- shared with a script ----------------------------------------------------------------------------

@test "a lock that a script made holds" {
	by_hand_lock job script-1
	ask 0 show job
	is '.task | .status == "In Progress" and .title == "by hand" and .last_holder == "script-1"
		and .lock.holder == "script-1" and .lock.live and .lock.foreign'
	call 20 claim job --agent ann
	complains script-1
	call 10 next
	call 21 done job --agent ann
	call 0 lock check job
	call 0 lock list -q
	exactly job
	folder job.lock
}

@test "a script's lock is honoured at every moment, also on a task of pawl's" {
	pawl create "Do it" --id t1 --priority 7
	by_hand_lock t1 script-1
	call 20 claim t1
	call 10 next --claim
	ask 0 show t1
	is '.task | .title == "Do it" and .priority == 7 and .status == "In Progress" and .fence == 1'
	pawl create "Another" --id t2
	folder t1.lock t2.task
	by_hand_done t1
	ask 0 show t1
	is '.task | .title == "Do it" and .status == "Done" and .lock == null and .last_holder == "script-1"'
	folder t1.done t2.task
}

@test "a script finds pawl's lock, and pawl's done" {
	pawl claim t1 --agent ann
	not by_hand_lock t1 script-1
	not ln -s x locks/t1.lock
	pawl done t1 --agent ann
	not by_hand_lock t1 script-1
	[ -f locks/t1.done ]
	pawl claim t2 --agent ann
	pawl release t2 --agent ann
	by_hand_lock t2 script-1
	call 20 claim t2 --agent ann
}

@test "a script's lock ends at expires_at, or an hour after claimed_at" {
	by_hand_lock a script-1 '3 hours ago' '5 seconds ago'
	by_hand_lock b script-1 '3 hours ago'
	by_hand_lock c script-1 '61 minutes ago'
	by_hand_edit c.lock 'del(.expires_at)'
	by_hand_lock d script-1 '59 minutes ago'
	by_hand_edit d.lock 'del(.expires_at)'
	call 0 claim a --agent ann
	call 20 claim b --agent ann
	call 0 claim c --agent ann
	call 20 claim d --agent ann
	ask 0 show a
	is '.task | .fence == 2 and .abandoned == 1 and .lock.holder == "ann"'
	jq -e '.agent == "ann" and .pawl' locks/a.lock
	pawl done a --agent ann
	folder a.done b.lock c.lock d.lock
}

@test "a task that a script completes unblocks its dependents" {
	by_hand_lock build script-1
	pawl create Test --id t1 --depends build
	pawl create Top --id top
	pawl create Sub --id sub --parent top
	pawl claim sub --agent ann
	call 10 next --label none
	by_hand_done build
	call 0 next -q
	exactly t1
	status_is build Done
	by_hand_done sub
	ask 0 show top
	is '.task | has("open_subtasks") | not'
	call 0 claim t1
	pawl claim top --agent ann
	call 0 done top --agent ann
	call 40 claim build
	call 21 done sub --agent ann
}

@test "a task that a script fails is Failed, with its reason" {
	by_hand_lock a script-1
	by_hand_fail a "3 errors"
	ask 0 show a
	is '.task | .status == "Failed" and .blocker_reason == "3 errors" and .lock == null'
	call 0 list --porcelain
	says 'a: script-1 - "3 errors"'
	pawl retry a
	folder a.task
	call 0 next -q
	exactly a
}

@test "a lock is renewed by hand, a script's and pawl's" {
	by_hand_lock a script-1 '59 minutes ago' '2 minutes'
	call 20 claim a --agent ann
	by_hand_renew a
	ask 0 show a
	is '.task.lock.expires_in > 7000 and .task.fence == 1'
	call 20 claim a --agent ann
	pawl claim b --agent ann --ttl 60s
	by_hand_renew b
	ask 0 show b
	is '.task.lock | .expires_in > 7000 and .holder == "ann"'
	call 0 done b --agent ann
	folder a.lock b.done
}

@test "a script that takes over an expired lock is the holder" {
	short_leases
	pawl create "Do it" --id t1
	pawl claim t1 --agent ann --ttl 0.1s
	lapsed t1
	rm locks/t1.lock
	by_hand_lock t1 script-1
	call 21 done t1 --agent ann
	ask 0 show t1
	is '.task | .title == "Do it" and .fence == 2 and .lock.holder == "script-1"'
}

@test "a task whose lock a script removes is free again, and keeps its fields" {
	pawl create "Do it" --id t1 --description Long --label red
	pawl claim t1 --agent ann
	rm locks/t1.lock
	ask 0 show t1
	is '.task | .title == "Do it" and .description == "Long" and .labels == ["red"] and .lock == null'
	call 21 done t1 --agent ann
	ask 0 claim t1 --agent bob
	is '.lock.fence == 2'
	by_hand_lock alone script-1
	pawl comment t1 note
	rm locks/alone.lock
	call 44 show alone
	ask 0 claim alone
	is '.lock.fence == 2'
}

@test "a task whose file is removed is gone, its fence is not" {
	pawl create "Do it" --id t1
	pawl claim t1 --agent ann
	pawl release t1 --agent ann
	rm locks/t1.task
	call 44 show t1
	ask 0 claim t1
	is '.lock.fence == 2'
}

@test "a script that overwrites an expired lock is the holder" {
	short_leases
	pawl create "Do it" --id t1
	pawl claim t1 --agent ann --ttl 0.1s
	lapsed t1
	echo "{\"task_id\": \"t1\", \"agent\": \"script-1\", \"claimed_at\": \"$(at now)\"}" >locks/t1.lock
	call 21 done t1 --agent ann
	ask 0 show t1
	is '.task | .title == "Do it" and .fence == 2 and .lock.holder == "script-1" and .lock.live'
	by_hand_done t1
	status_is t1 Done
}

@test "a fence is never given twice, even if files are copied or moved" {
	short_leases
	pawl claim t1 --agent ann --ttl 0.1s
	cp locks/t1.lock old
	lapsed t1
	pawl claim t1 --agent bob
	cat old >locks/t1.lock
	ask 0 show t1
	is '.task | .fence == 3 and .lock.holder == "ann"'
	call 21 done t1 --agent bob
	pawl claim t2 --agent ann
	pawl release t2 --agent ann
	pawl remove t2
	by_hand_lock t2 script-1
	ask 0 show t2
	is '.task.fence == 2'
	pawl comment t2 note
	ask 0 show t2
	is '.task.fence == 2'
}

@test "a file that was copied from elsewhere is taken in" {
	mkdir b
	(cd b && "$PAWL" init -q --force --store files:locks && pawl create "From b" --id x --priority 9)
	cp b/locks/x.task locks/
	ask 0 show x
	is '.task | .title == "From b" and .priority == 9 and .status == "Ready"'
	echo '{"description": "just this"}' >locks/y.task
	ask 0 show y
	is '.task | .title == "just this" and .status == "Ready"'
	call 0 next --claim -q
	exactly x
	call 0 next --claim -q
	exactly y
}

@test "a folder that scripts have used becomes a queue" {
	rm -rf locks .pawl
	mkdir locks
	by_hand_lock a script-1
	by_hand_lock b script-1
	by_hand_done b
	"$PAWL" init -q --store files:locks
	call 0 list -q --all --sort id
	exactly $'a\nb'
	status_is b Done
	call 20 claim a
}

@test "without .pawl/state the tasks come from their files" {
	pawl create One --id t1 --priority 3
	pawl claim t2 --agent ann
	rm -r locks/.pawl
	call 40 list
	complains "pawl init"
	"$PAWL" init -q
	ask 0 list
	is '[.tasks[] | .id, .priority, .status] == ["t1", 3, "Ready", "t2", 2, "In Progress"]'
	call 0 done t2 --agent ann
}

@test "scripts and pawl in one folder, at the same time" {
	local i pids=()
	for i in 1 2 3 4; do
		(for n in $(seq 25); do by_hand_lock "j$n" "script-$i" && echo "j$n"; done >"hand.$i" || true) &
		pids+=($!)
	done
	for i in 1 2; do
		(for n in $(seq 25 -1 1); do "$PAWL" claim -q "j$n" --agent "pawl-$i" >/dev/null 2>&1 && echo "j$n"; done \
			>"pawl.$i" || true) &
		pids+=($!)
	done
	wait "${pids[@]}"
	cat hand.* pawl.* | sort >all
	same "$(wc -l <all)" 25
	same "$(uniq -d all)" ""
	for i in $(cat pawl.*); do
		[[ $(jq -r .agent "locks/$i.lock") == pawl-* ]]
	done
	for i in $(cat hand.*); do
		[[ $(jq -r .agent "locks/$i.lock") == script-* ]]
		[[ $(field "$i" .lock.holder) == script-* ]]
	done
}

# --- archive, cleanup --------------------------------------------------------------------------------

@test "archive: an ended task moves to the folder archive, and keeps its status" {
	local id
	for id in a b c d; do pawl claim $id --agent ann; done
	pawl done a --agent ann
	pawl fail b --agent ann --reason x
	pawl cancel c --agent ann --reason x
	pawl create Next --id n --depends a
	call 0 archive -q
	exactly $'a\nb\nc'
	folder archive d.lock n.task
	same "$(cd locks/archive && echo *)" "a.done b.failed c.task"
	call 0 archive
	says "nothing to archive"
	call 0 list -q --all --sort id
	exactly $'a\nb\nc\nd\nn'
	status_is a Done
	call 40 claim a --agent bob
	call 0 next -q
	exactly n
	call 40 archive d
	call 44 archive nobody
	pawl reopen a --reason again
	[ -f locks/a.task ]
	call 0 claim b --agent bob
	folder a.task archive b.lock d.lock n.task
	ask 0 show b
	is '.task | has("archived_at") | not'
	call 0 doctor
}

@test "archive: only tasks that ended long enough ago, or one task" {
	pawl claim a
	pawl done a
	pawl claim b
	pawl done b
	call 0 archive --older-than 1h
	says "nothing to archive"
	ask 0 archive b
	is '.count == 1 and .tasks[0].id == "b" and .tasks[0].archived_at'
	folder a.done archive
	lines 0 archive
	folder archive
}

@test "the marker of an ended task keeps the expiry of its lock" {
	local id expires
	for id in t1 t2; do
		pawl claim "$id" --agent ann --ttl 2h
		expires=$(jq -r .expires_at "locks/$id.lock")
		if [ "$id" = t1 ]; then
			pawl done "$id" --agent ann
			pawl update "$id" --title later
		else
			pawl fail "$id" --agent ann --reason no
		fi
		same "$(jq -r .expires_at locks/$id.[df]*)" "$expires"
	done
	pawl archive t1
	[ "$(jq -r .expires_at locks/archive/t1.done)" != null ]
	pawl retry t2
	same "$(jq -r .expires_at locks/t2.*)" null
	call 0 doctor
}

@test "a script's archive counts as well" {
	by_hand_lock a script-1
	by_hand_done a
	pawl claim b --agent ann
	pawl done b --agent ann
	mkdir locks/archive
	mv locks/*.done locks/archive/
	call 0 list --all -q --status done --sort id
	exactly $'a\nb'
	call 40 claim a
	call 40 claim b
	ask 0 show b
	is '.task.archived_at | length == 24'
	# mv keeps the time of the file, which may be before the end of the task
	is '.task.archived_at >= .task.done_at'
	ask 0 show a
	is '.task.archived_at >= .task.done_at'
	pawl comment b note
	call 0 doctor
}

@test "lock cleanup --older-than 24h: locks that expired that long ago" {
	by_hand_lock old script-1 '26 hours ago' '25 hours ago'
	by_hand_lock newer script-1 '3 hours ago' '2 hours ago'
	by_hand_lock live script-1 '30 hours ago' '1 hour'
	call 0 lock cleanup --older-than 24h -q
	exactly old
	folder live.lock newer.lock old.task
	call 0 lock cleanup -q
	exactly newer
	call 20 claim live
}

# --- unusable and foreign files ---------------------------------------------------------------------

# stuck ID TEXT [CODE]: the task is unusable for this reason, which doctor gives as well; other tasks still work
stuck() {
	call 40 claim "$1" --agent bob
	complains "$2" doctor
	call 40 show "$1"
	call "${3:-0}" doctor
	says "$1." "$2"
	call 0 list -q
	exactly good
	call 0 claim good --agent ann
	call 0 release good --agent ann
	call 0 next -q
	exactly good
}

@test "a .lock that is a link is not followed" {
	pawl create Good --id good
	echo '{"agent": "a"}' >elsewhere
	ln -s "$work/elsewhere" locks/bad.lock
	stuck bad link
	same "$(cat elsewhere)" '{"agent": "a"}'
	rm locks/bad.lock
	call 0 claim bad
}

@test "a .lock that is a folder" {
	pawl create Good --id good
	mkdir locks/bad.lock
	stuck bad folder
	[ -d locks/bad.lock ]
}

@test "a .lock that is a FIFO does not block pawl" {
	pawl create Good --id good
	mkfifo locks/bad.lock
	stuck bad FIFO
}

@test "a .lock that is empty, or not JSON" {
	pawl create Good --id good
	: >locks/bad.lock
	stuck bad empty
	echo 'agent: me' >locks/bad.lock
	stuck bad "neither task_id nor agent"
	echo '[{"agent": 2}]' >locks/bad.lock
	stuck bad "not a JSON object"
	echo '{"agent": "a"' >locks/bad.lock
	stuck bad "not JSON" 40
}

@test "a .lock of 100 MiB" {
	pawl create Good --id good
	truncate -s 100M locks/bad.lock
	stuck bad "16 MiB"
}

@test "a .lock that this user may not read" {
	[ "$(id -u)" -ne 0 ] || skip "root may read everything"
	pawl create Good --id good
	by_hand_lock bad script-1
	chmod 0 locks/bad.lock
	stuck bad "may not read" 40
}

@test "a .lock with few fields, with other dates or wrong types, holds for an hour" {
	echo '{"task_id": "a"}' >locks/a.lock
	echo '{"agent": 5, "claimed_at": 12, "expires_at": ["x"], "description": {}}' >locks/b.lock
	echo '{"agent": "s", "claimed_at": "yesterday", "expires_at": "soon"}' >locks/c.lock
	echo '{"agent": "s", "claimed_at": null, "expires_at": "2999-01-01 10:00"}' >locks/d.lock
	echo '{"agent": "s", "pawl": {"store": "x", "commit": 7, "task": {"status": 3}}}' >locks/e.lock
	local id
	for id in a b c d e; do
		call 20 claim $id --agent ann
		ask 0 show $id
		is '.task.lock.expires_in > 3000'
	done
	ask 0 show a
	is '.task.lock.holder == "unknown" and .task.title == "a"'
	call 0 doctor
	says "b.lock: its expires_at is not a time" "c.lock: its expires_at is not a time" \
		"e.lock: pawl's part of it is damaged"
	touch -d '2 hours ago' locks/a.lock
	call 0 claim a --agent ann
}

@test "files with invalid ids, and foreign files, are left alone" {
	pawl create Good --id good
	echo '{}' >"locks/a b.lock"
	echo '{}' >locks/..lock
	echo '{}' >"locks/x..y.lock"
	echo '{}' >locks/README.md
	echo '{}' >"locks/$(printf 'n%.0s' $(seq 200)).lock"
	call 0 list -q
	exactly good
	call 0 doctor
	says "a b.lock (an id has only" "x..y.lock (an id has no" "nnnn.lock (an id has 1 to 128"
	pawl claim good
	pawl done good
	[ -f locks/README.md ]
	[ -f "locks/a b.lock" ]
}

# files_of_others: files of package managers and builds, and their state
files_of_others() {
	echo '{"_meta": {"hash": {"sha256": "x"}, "sources": []}, "default": {}}' >locks/Pipfile.lock
	echo '{"nodes": {"root": {}}, "root": "root", "version": 7}' >locks/flake.lock
	printf '# yarn lockfile v1\n\nleft-pad@1:\n  version "1.3.0"\n' >locks/yarn.lock
	printf 'version = 3\n\n[[package]]\nname = "agent"\n' >locks/Cargo.lock
	echo '{"packages": [{"name": "x", "description": "y"}]}' >locks/composer.lock
	echo ',user,host' >'locks/.~lock.x#'
	: >locks/build.done
	echo '{"exit": 1}' >locks/lint.failed
	printf '[Unit]\nDescription=x\n' >locks/job.task
	mkdir -p locks/archive
	echo 'kept' >locks/archive/old.done
	touch -d '1 hour ago' locks/*.* locks/archive/*
}

others_look() {
	(cd locks && stat -c '%n %i %s %y' -- *.lock .~* build.done lint.failed job.task archive/old.done \
		2>/dev/null && cat -- [A-Zcfy]*.lock lint.failed job.task archive/old.done)
}

@test "files of other programs are not locks or tasks, and stay as they are" {
	local before id
	pawl create Good --id good
	pawl claim held --agent ann
	files_of_others
	before=$(others_look | grep -v '^held')
	call 0 list -q
	exactly $'held\ngood'
	call 0 lock list -q
	exactly held
	call 0 next -q
	exactly good
	for id in Pipfile flake yarn Cargo composer lint job build; do
		call 40 claim $id --agent bob
		complains "$id." doctor
		call 40 create x --id $id
	done
	call 0 doctor
	says "leaves these files of other programs alone" "Cargo.lock (it has neither task_id nor agent)" "and 4 more"
	pawl archive -q
	pawl lock cleanup -q
	pawl done held --agent ann
	pawl backup saved.pawl
	pawl clear --yes
	pawl restore saved.pawl --force
	call 0 list --all -q --sort id
	exactly $'good\nheld'
	same "$(others_look | grep -v '^held')" "$before"
	pawl migrate files:locks sqlite:q.db
	pawl torture --store files:locks --seconds 1 --agents 2 -q
	same "$(others_look | grep -v '^held')" "$before"
}

@test "a file of another program has the name that a task needs: the change is refused before it is made" {
	pawl create One --id t1
	pawl create Two --id t2
	: >locks/t1.done
	touch -d '1 hour ago' locks/t1.done
	pawl claim t1 --agent ann
	call 40 done t1 --agent ann
	complains "t1.done" "a foreign file has that name"
	ask 0 show t1
	is '.task | .status == "In Progress" and .lock.holder == "ann"'
	rm locks/t1.done
	call 0 done t1 --agent ann
	mkdir locks/archive
	echo x >locks/archive/t1.done
	touch -d '1 hour ago' locks/archive/t1.done
	call 40 archive t1
	complains archive/t1.done
	status_is t1 Done
	[ -f locks/t1.done ]
	same "$(cat locks/archive/t1.done)" x
	echo x >locks/t2.lock
	touch -d '1 hour ago' locks/t2.lock
	status_is t2 Ready
	call 10 next --claim
	call 40 claim t2 --agent bob
	complains t2.lock
	doctor_says t2.lock
	echo x >locks/t3.task
	touch -d '1 hour ago' locks/t3.task
	echo '{"id": "t3", "title": "Three"}' >three.jsonl
	check_refused 40 three.jsonl
	complains t3.task
	rm locks/t3.task
	call 0 import three.jsonl --check
	[ ! -e locks/t3.task ]
	same "$(cat locks/t2.lock)" x
	rm locks/t2.lock
	call 0 next --claim -q
	exactly t2
}

@test "init in a folder with files of other programs, and the end of a queue there" {
	local before
	rm -rf locks .pawl
	mkdir locks
	files_of_others
	before=$(others_look)
	"$PAWL" init -q --store files:locks
	call 0 list -q
	exactly ""
	local below=locks/.pawl/queues/torture-1
	"$PAWL" init -q --queue torture-1
	pawl claim t1 --agent ann --queue torture-1
	pawl claim t2 --agent ann --queue torture-1
	echo 'version = 3' >$below/t1.lock
	echo '{"nodes": {}}' >$below/flake.lock
	call 0 torture --remove torture-1
	same "$(cd $below && echo *)" "flake.lock t1.lock"
	same "$(cat $below/t1.lock)" 'version = 3'
	same "$(others_look)" "$before"
}

@test "ids that differ only in case" {
	pawl create Good --id good
	by_hand_lock Bad script-1
	by_hand_lock bad script-2
	[ "$(cd locks && echo [Bb]ad.lock | wc -w)" -eq 2 ] || skip "this file system takes them for one"
	stuck bad "only in case" 40
	call 40 claim BAD
	by_hand_lock GOOD script-3
	call 0 show good
	doctor_says "GOOD.lock" "only in case"
}

@test "an unusable file does not stop the counter of ids" {
	: >locks/t1.lock
	mkdir locks/t2.task
	call 0 create Three -q
	exactly t3
	call 0 id peek
	exactly t4
}

@test "an archive that is a link, or not a folder, is not used, and nothing is lost" {
	pawl claim a --agent ann
	pawl done a --agent ann
	mkdir elsewhere
	ln -s "$work/elsewhere" locks/archive
	call 40 archive
	complains "archive" "a link or not a folder"
	doctor_says "archive: it is a link"
	status_is a Done
	rm locks/archive
	: >locks/archive
	call 40 archive
	folder a.done archive
	rm locks/archive
	call 0 archive -q
	exactly a
	status_is a Done
	same "$(ls elsewhere)" ""
}

@test "a damaged file of pawl's own" {
	pawl create One --id t1
	pawl create Two --id t2
	pawl claim t2 --agent ann
	echo garbage >locks/t1.task
	call 40 show t1
	complains "t1.task" "neither task_id nor agent"
	call 0 list -q
	exactly t2
	: >locks/t2.lock
	call 0 heartbeat t2 --agent ann
	call 0 done t2 --agent ann
	status_is t2 Done
}

@test "a folder that is read-only, or not a folder" {
	pawl create One --id t1
	if [ "$(id -u)" -ne 0 ]; then
		chmod -R a-w locks
		call 30 claim t1
		complains "no permission" locks
		call 0 list -q
		exactly t1
		chmod -R u+w locks
	fi
	call 0 claim t1
	echo x >plain
	call 40 list --store files:plain
	complains "not a folder"
	call 40 list --store files:nowhere
	complains "no queue"
	call 40 list --store files:
	ln -s "$PWD/locks/.pawl" elsewhere
	mkdir other
	ln -s ../elsewhere other/.pawl
	call 40 list --store files:other
	complains "link"
}

@test "a folder of another user" {
	[ "$(id -u)" -eq 0 ] || skip "needs root to play two users"
	needs setpriv
	chmod 711 "$BATS_TEST_TMPDIR" "$work" "$HOME" "$(dirname "$BATS_TEST_TMPDIR")" "$BATS_RUN_TMPDIR"
	pawl create One --id t1
	chmod -R go+rX locks
	export PAWL_STORE=files:$work/locks XDG_STATE_HOME=$BATS_TEST_TMPDIR/nobody
	install -d -o 65534 -m 700 "$XDG_STATE_HOME"
	run -0 setpriv --reuid 65534 --clear-groups "$PAWL" list -q
	exactly t1
	run -30 setpriv --reuid 65534 --clear-groups "$PAWL" claim t1
	says "no permission"
	run setpriv --reuid 65534 --clear-groups "$PAWL" doctor
	says "cannot write"
	folder t1.task
}

@test "foreign files in .pawl do no harm" {
	pawl create One --id t1
	echo "half a frame" >>locks/.pawl/state
	call 0 claim t1 --agent ann
	rm locks/.pawl/gate
	call 0 done t1 --agent ann
	status_is t1 Done
	mkdir locks/.pawl/new.0
	call 30 create Two
	rmdir locks/.pawl/new.0
	call 0 create Two
	echo "nonsense" >locks/.pawl/state
	call 40 list
	complains "not a file of pawl"
	rm locks/.pawl/state
	ln -s /etc/passwd locks/.pawl/state
	call 40 list
}

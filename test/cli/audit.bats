#!/usr/bin/env bats
# pawl audit: nothing to find after everything that pawl itself does, and each line that somebody changed.

load common

setup() {
	fresh
	queue
}

# work: three tasks with a few events each
work() {
	for id in t1 t2 t3; do
		pawl create "task $id" -i "$id"
		pawl claim "$id"
		pawl comment "$id" "half of it"
		pawl done "$id" -s "all of it"
	done
}

# clean [ARG...]: the audit finds nothing
clean() {
	ask 0 audit "$@"
	is '.violations == 0 and (has("findings") | not)'
}

# found KIND TASK: the audit names such a violation
found() {
	ask 45 audit
	is --arg kind "$1" --arg task "$2" '.violations > 0 and any(.findings[]; .kind == $kind and .task == $task)'
}

# changed SQL: the log as somebody would change it in the database
changed() {
	needs sqlite3
	sqlite3 .pawl/queue.db "$1"
}

@test "audit: a clean log, in each form" {
	call 0 audit
	exactly "0 acquisitions, no violation"
	work
	call 0 audit
	[[ $output == "3 acquisitions since "*", no violation" ]]
	ask 0 audit
	is '.acquisitions == 3 and .lines == 12 and .checked == 3 and .violations == 0 and .restarts == 0'
	lines 0 audit
	[[ $output == "SUCCESS: acquisitions=3 lines=12 checked=3 from="*" restarts=0 violations=0" ]]
	call 0 audit -q
	exactly ""
}

@test "audit: a violation, in each form" {
	needs_sqlite
	work
	changed "DELETE FROM event WHERE seq = 6"
	call 45 audit
	says "chain    t2, line 6 of " "line 6 does not follow line 5" "2 acquisitions since " "1 violation"
	complains "the event log has 1 violation" "pawl backup"
	ask 45 audit
	is '.violations == 1 and .found == {"chain": 1}'
	is '.findings[0] | .kind == "chain" and .task == "t2" and .line == 6 and .cursor == "7" and (.at | startswith("20"))'
	lines 45 audit
	[[ $output == "FINDING: kind=chain task=t2 line=6 cursor=7 at="*"VIOLATION: message="* ]]
}

@test "audit: everything that a queue does leaves a clean log" {
	work
	pawl reopen t1 --reason "not quite"
	pawl claim t1 -a bob
	pawl update t1 --priority 5 -a bob
	pawl block t1 --reason r --unblock-action u -a bob
	pawl unblock t1
	pawl claim t1 -a ann
	pawl review t1 -s s -a ann
	pawl rework t1 --reason "again"
	pawl next --claim -a cy
	pawl fail t1 --reason f -a cy
	pawl retry t1
	pawl remove t1
	pawl create "in its place" -i t1
	token=$("$PAWL" lock acquire t1 -a dan --json | jq -r .lock.token)
	pawl claim t1 -a dan --token "$token"
	pawl escalate t1 --reason e -a dan
	pawl cancel t1 --reason c
	pawl pause --reason p
	pawl resume
	pawl archive --older-than 0s
	clean
	is '.lines > 30 and .acquisitions == 7 and .restarts == 0'
}

@test "audit: a lease that expired" {
	pawl create soon -i t1
	pawl config set lease.min 100ms
	pawl claim t1 --ttl 100ms -a ann
	soon "$PAWL" claim t1 -a bob
	clean
	is '.acquisitions == 2'
}

@test "audit: after a restore, and a restore of that" {
	pawl create early -i t0
	pawl backup early.pawl
	work
	pawl backup late.pawl
	pawl comment t1 "later still"
	pawl restore late.pawl --force
	clean
	pawl comment t1 "after the restore"
	pawl claim t0
	clean
	pawl backup twice.pawl
	pawl restore early.pawl --force
	clean
	pawl comment t0 "again"
	pawl restore twice.pawl --force
	clean
	pawl create new -i t9
	pawl comment t1 "at the end"
	clean
	pawl clear --yes --force
	clean
	pawl create new -i t1
	pawl claim t1
	clean
}

@test "audit: a backup in an empty queue" {
	needs_sqlite
	work
	pawl remove t3
	pawl backup all.pawl
	rm -rf .pawl
	pawl init
	pawl restore all.pawl
	clean
	pawl comment t2 "in the new queue"
	pawl create "in its place" -i t3
	clean
	is '.lines == 17'
}

@test "audit: after an import, and another one" {
	pawl create one -i t1
	pawl comment t1 "said here"
	pawl export -o all.json
	pawl import all.json --update
	clean
	cat >old.json <<-'END'
		[{"id": "t7", "title": "old", "comments": [{"at": "2020-02-06T10:40:00.000Z", "agent": "ann", "text": "long ago"}]},
		{"id": "t1", "title": "one", "comments": [{"at": "2020-02-06T10:40:00.000Z", "agent": "ann", "text": "long ago"}]}]
	END
	pawl import old.json --update
	clean
	pawl claim t7
	pawl done t7
	clean
}

@test "audit: after the log was cut" {
	needs_local "the log is cut by a setting of the server"
	work
	pawl claim t1 -a no || true
	pawl create open -i t4
	pawl config set log.keep 1ms
	cat >old.json <<-'END'
		[{"id": "t1", "title": "one", "status": "Done",
		"comments": [{"at": "2020-02-06T10:40:00.000Z", "agent": "ann", "text": "long ago"}]}]
	END
	pawl import old.json --update
	sleep 0.01
	pawl archive
	"$PAWL" log --json | jq -e 'any(.events[]; .event == "log_cut")' >/dev/null
	clean
	pawl reopen t2 --reason "again"
	pawl claim t2
	sleep 0.01
	pawl archive
	clean
}

@test "audit: after the log was cut at the lines of a restore" {
	needs_local "the log is cut by a setting of the server"
	pawl create one -i t1
	pawl create two -i t2
	pawl backup early.pawl
	pawl claim t1
	pawl comment t2 "from before the restore"
	pawl done t2 --take
	pawl backup late.pawl
	pawl restore early.pawl --force
	pawl comment t2 "after the first"
	pawl restore late.pawl --force
	pawl comment t1 "after the second"
	pawl reopen t2 --reason "not quite"
	pawl config set log.keep 1ms
	sleep 0.01
	pawl archive
	same "$("$PAWL" log --json | jq '[.events[] | select(.event == "restored")] | length')" 0
	clean --export read.jsonl
	"$PAWL_SOURCE/tools/check-history" read.jsonl
	pawl claim t1
	pawl claim t2
	clean
}

@test "audit: after a migration, to each kind of store" {
	needs_sqlite
	work
	pawl remove t3
	pawl claim t1 2>/dev/null || true
	for to in "files:$work/moved" "git:$work/moved.git" "sqlite:$work/moved.db"; do
		pawl migrate sqlite:.pawl/queue.db "$to"
		clean --store "$to"
		is '.lines == 13'
		pawl comment t2 "on the new store" --store "$to"
		pawl create "in its place" -i t3 --store "$to"
		clean --store "$to"
	done
}

@test "audit: a line that was changed" {
	needs_sqlite
	work
	changed "UPDATE event SET text = 'nothing of it' WHERE seq = 7"
	found chain t2
	is '.findings[0].text | startswith("line 8 does not follow line 7")'
}

@test "audit: the time of a line, and its agent" {
	needs_sqlite
	work
	changed "UPDATE event SET at = at + 1 WHERE seq = 2; UPDATE event SET agent = 'eve' WHERE seq = 6"
	found chain t1
	found chain t2
}

@test "audit: lines that were removed: in between, the first, the last, all" {
	needs_sqlite
	work
	cp -r .pawl was
	for lost in "seq = 2" "seq = 1" "seq = 4" "key = 'task/t1'"; do
		rm -rf .pawl
		cp -r was .pawl
		changed "DELETE FROM event WHERE $lost"
		ask 45 audit
		is 'all(.findings[]; .task == "t1")'
	done
}

@test "audit: lines in another order, and one that was inserted" {
	needs_sqlite
	work
	cp -r .pawl was
	changed "UPDATE event SET seq = 99 WHERE seq = 2; UPDATE event SET seq = 2 WHERE seq = 3;
		UPDATE event SET seq = 3 WHERE seq = 99"
	found chain t1
	rm -rf .pawl
	cp -r was .pawl
	changed "INSERT INTO event SELECT 99, q, key, at, kind, task, agent, run, text, rest FROM event WHERE seq = 2"
	found chain t1
	found record t1
	rm -rf .pawl
	cp -r was .pawl
	changed "UPDATE event SET key = 'task/t2' WHERE seq = 2"
	found chain t1
}

@test "audit: lines that pawl never wrote" {
	needs_sqlite
	work
	changed "UPDATE event SET rest = x'ffffffff' WHERE seq = 2; INSERT INTO event(q, key, at, kind, rest)
		SELECT q, 'task/t9', -5, x'00ff', x'0a03616263' FROM event WHERE seq = 1; INSERT INTO event(q, at)
		SELECT q, at FROM event WHERE seq = 1; INSERT INTO event(q, key, at, kind, task, rest)
		SELECT q, 'task/t1', at, 'claimed', 't1', x'' FROM event WHERE seq = 1"
	ask 45 audit
	is '.found.line >= 1 and .found.chain >= 1'
}

@test "audit: a task whose record is gone" {
	needs_sqlite
	work
	changed "DELETE FROM record WHERE id = 't2'"
	found record t2
}

@test "audit: --since leaves out what happened before" {
	needs_sqlite
	work
	changed "DELETE FROM event WHERE seq = 2"
	found chain t1
	at=$("$PAWL" log --json | jq -r '.events[-1].at')
	ask 0 audit --since "$at"
	is --arg at "$at" '.lines == 1 and .acquisitions == 0 and .from == $at'
	ask 45 audit --since 1h
	ask 2 audit --since never
	ask 2 audit t1
}

@test "audit: a changed line of a files: log" {
	needs_sqlite
	needs python3
	export PAWL_STORE=files:$work/locks
	pawl init --store "$PAWL_STORE" --force
	work
	# the store moves its newest lines to the log file when there are many
	for _ in {1..100}; do
		pawl comment t1 "$(printf '%09000d' 0)"
		[ ! -s locks/.pawl/log ] || break
	done
	clean
	python3 "$PAWL_SOURCE/test/kit/forge-files" locks/.pawl/log "half of it" "HALF OF IT"
	found chain t1
}

@test "audit: locks that another program made and removed" {
	[[ ${PAWL_TEST_STORE-} == files:* ]] || skip "about a folder that other programs write to"
	pawl create mine -i t1
	pawl claim t1
	folder=$BATS_TEST_TMPDIR/locks
	rm "$folder/t1.lock"
	echo '{"task_id": "zz", "agent": "other", "claimed_at": "2026-02-06T10:30:00Z", "description": "x"}' >"$folder/zz.lock"
	pawl list
	clean
	pawl claim t1
	pawl done t1
	clean
	is '.acquisitions == 2'
}

@test "audit: what it read, for another program" {
	work
	pawl remove t3
	ask 0 audit --export read.jsonl
	same "$(jq -s 'map(select(.line)) | length' read.jsonl)" 13
	same "$(jq -s 'map(select(.record == "gone/t3") | .chain | length)[0]' read.jsonl)" 32
	unchanged 2 audit --export read.jsonl
	complains "read.jsonl: File exists"
	refused=$(wc -l <read.jsonl)
	[ "$refused" -gt 13 ]
	ask 2 audit --export none/read.jsonl
}

@test "audit: a branch of lock files has no chain" {
	needs_sqlite
	bare_repository locks
	"$PAWL" lock init --store "git:$remote#aitask-locks" -q
	ask 40 audit --store "git:$remote#aitask-locks"
	is '.error.message | contains("no chain")'
}

@test "audit: through a server it needs the role admin" {
	needs_sqlite
	served
	rm -rf .pawl
	pawl init --store "$uri"
	work
	clean
	is '.acquisitions == 3'
	beside_server token create bob --role reviewer --agent bob -q >token
	PAWL_SERVER_TOKEN=$(cat token) ask 40 audit
	is '.error.message | contains("admin")'
}

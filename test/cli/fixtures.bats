#!/usr/bin/env bats
# Queues that version 0.1.0 made (test/fixtures/0.1.0), one of each store: today's pawl reads them, migrates them where
# it has to, and works on. A migration that is stopped is whole or has not happened.

load common

made=$PAWL_SOURCE/test/fixtures/0.1.0

setup() {
	needs_sqlite
	fresh
	# shellcheck source=test/fixtures/0.1.0/answers.bash
	. "$made/answers.bash"
}

# works_on: the queue gives the answers of 0.1.0, and accepts new work
works_on() {
	answers "$PAWL" >said
	# 0.1.0 also listed the locks of the whole queue in the log
	diff <(grep -v '"@config"' "$made/answers") said
	call 0 doctor
	ask 0 next --claim
	is '.task.id == "Zoo-007" and .lock.fence == 1'
	call 0 done Zoo-007
	# 0.1.0 offered t3, which has open sub-tasks, and did not look at due dates
	ask 0 next --explain
	is '[.candidates[] | select(.eligible and .id != "t6") | .id] == ["t1", "t4", "t5"]'
	is '.candidates[] | select(.id == "t3") | .why == "waits for its 2 open sub-tasks: t4, t5"'
	call 0 create "a new one"
	says t15
	ask 0 show t10
	is '.task.archived_at != null'
	call 0 doctor
}

@test "0.1.0: sqlite" {
	local id="SELECT count(*) FROM record WHERE key='meta/identity'"
	tar xzf "$made/sqlite.tar.gz"
	same "$(sqlite3 .pawl/queue.db "$id")" 0 # it had none; the first claim gives it one
	works_on
	same "$(sqlite3 .pawl/queue.db "$id")" 1
	same "$(sqlite3 .pawl/queue.db 'SELECT id, due, labels FROM tasks WHERE due NOT NULL')" \
		't1|2030-12-24|["core","über \"alles\""]'
}

@test "0.1.0: files" {
	mkdir "$BATS_TEST_TMPDIR/made"
	tar xzf "$made/files.tar.gz" -C "$BATS_TEST_TMPDIR/made"
	"$PAWL" init -q --store "files:$BATS_TEST_TMPDIR/made/tasks"
	works_on
}

@test "0.1.0: git, refs" {
	mkdir "$BATS_TEST_TMPDIR/made.git"
	tar xzf "$made/git-refs.tar.gz" -C "$BATS_TEST_TMPDIR/made.git"
	"$PAWL" init -q --store "git:$BATS_TEST_TMPDIR/made.git"
	works_on
}

@test "0.1.0: git, branch" {
	mkdir "$BATS_TEST_TMPDIR/made.git"
	tar xzf "$made/git-branch.tar.gz" -C "$BATS_TEST_TMPDIR/made.git"
	"$PAWL" init -q --store "git:$BATS_TEST_TMPDIR/made.git?layout=branch"
	works_on
}

# many N: the queue of 0.1.0 with N tasks more
many() {
	tar xzf "$made/sqlite.tar.gz"
	sqlite3 .pawl/queue.db "
		WITH RECURSIVE n(i) AS (SELECT 1000 UNION ALL SELECT i + 1 FROM n WHERE i < 999 + $1)
		INSERT INTO record(q,key,rev,lane,due,status,class_rank,priority,eligible_at,updated_at,created_at,id,hot)
		SELECT q,'task/t'||i,1,lane,due,status,class_rank,priority,eligible_at,updated_at,created_at,'t'||i,hot
		FROM n, record WHERE key='task/zoo-007';
		INSERT INTO body SELECT rid, CAST(char(1)||char(length(id))||id||char(2)||char(9)||'Many more' AS BLOB)
		FROM record WHERE id GLOB 't[1-9][0-9][0-9][0-9]*';
		UPDATE tally SET n=n+$1 WHERE status=2"
}

version() {
	sqlite3 .pawl/queue.db 'PRAGMA user_version'
}

@test "a migration that is killed has not happened, or is whole" {
	local after n=${PAWL_TEST_MANY:-10000}
	many $((2 * n))
	for after in 0.01 0.03 0.05 0.08 0.1 0.15 0.2 0.3 0.5; do
		"$PAWL" list -q >/dev/null 2>&1 &
		sleep $after
		kill -9 $! 2>/dev/null || :
		wait $! 2>/dev/null || :
		case $(version) in
		2) same "$(sqlite3 .pawl/queue.db 'SELECT count(*) FROM record WHERE status NOT NULL')" $((2 * n + 14)) ;;
		3) break ;;
		*) false ;;
		esac
	done
	same "$("$PAWL" list --all -q | wc -l)" $((2 * n + 14))
	same "$(version)" 3
	same "$(sqlite3 .pawl/queue.db "SELECT count(*) FROM tasks WHERE title='Many more'")" $((2 * n))
	call 0 doctor
	call 0 claim t1001
}

@test "a migration without room has not happened" {
	many 2000
	run bash -c 'ulimit -f 300; "$PAWL" list -q'
	[ "$status" -eq 30 ]
	same "$(version)" 2
	same "$("$PAWL" list --all -q | wc -l)" 2014
	call 0 doctor
}

@test "an older database that may only be read" {
	bwrap --dev-bind / / true 2>/dev/null || skip "needs bubblewrap, and the right to use it"
	tar xzf "$made/sqlite.tar.gz"
	run bwrap --dev-bind / / --ro-bind "$PWD/.pawl" "$PWD/.pawl" "$PAWL" list
	[ "$status" -eq 30 ]
	[[ "$output" == *"older schema"* ]]
	[[ "$output" == *"a user with write permission"* ]]
	same "$(version)" 2
}

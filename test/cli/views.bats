#!/usr/bin/env bats
# The views of a SQLite queue (doc/data.md): the sqlite3 shell shows the same data as pawl, and pawl does not rely on them.

load common

setup() {
	needs_sqlite
	fresh
	queue
}

db=.pawl/queue.db

sql() {
	sqlite3 -readonly "$db" "$1"
}

# busy: tasks in several states
busy() {
	call 0 create "Fix the parser" --priority high --description $'It breaks\non "empty" input' --acceptance "It parses" \
		--label core --label 'a "b" \c' --type bug --due 2020-02-03
	call 0 create two --depends t1
	call 0 create --id Big-10 ten --parent t2
	call 0 create --id big-9 nine
	call 0 claim t1 --ttl 1h --agent ann --run r1
	call 0 comment t1 "hello" --agent ann
	call 0 claim big-9
	call 0 block big-9 --reason "no key" --unblock-action "ask"
	call 0 lock acquire @config --ttl 1h
}

@test "tasks: the same as pawl shows" {
	busy
	same "$(sql "SELECT id, title, status, class, priority, due, labels, depends, parent, type, holder, run, fence,
		attempts, description, acceptance FROM tasks WHERE id = 't1'")" \
		't1|Fix the parser|In Progress|Standard|3|2020-02-03|["core","a \"b\" \\c"]|[]||bug|ann|r1|1|1|It breaks
on "empty" input|It parses'
	same "$(sql "SELECT group_concat(id, ' ') FROM (SELECT id FROM tasks ORDER BY id_key)")" "big-9 Big-10 t1 t2"
	same "$(sql "SELECT depends, parent FROM tasks WHERE id = 't2'")" '["t1"]|'
	same "$(sql "SELECT parent FROM tasks WHERE id = 'Big-10'")" t2
	same "$(sql "SELECT status, blocker_reason, unblock_action FROM tasks WHERE id = 'big-9'")" "Blocked|no key|ask"
	ask 0 show t1
	is ".task.created_at == \"$(sql "SELECT created FROM tasks WHERE id = 't1'")\""
	is ".task.updated_at == \"$(sql "SELECT updated FROM tasks WHERE id = 't1'")\""
	is ".task.lock.expires_at == \"$(sql "SELECT expires_at FROM tasks WHERE id = 't1'")\""
	call 0 done t1 --agent ann --run r1
	call 0 archive t1
	same "$(sql "SELECT status, holder, archived NOT NULL FROM tasks WHERE id = 't1'")" "Done||1"
}

@test "locks: of tasks, and of the whole queue" {
	busy
	same "$(sql "SELECT task, holder, run, fence, live FROM locks WHERE task IN ('t1', '@config') ORDER BY task")" \
		"$(printf '@config|tester@%s||1|1\nt1|ann|r1|1|1' "$(hostname)")"
	ask 0 show t1
	is ".task.lock.acquired_at == \"$(sql "SELECT acquired_at FROM locks WHERE task = 't1'")\""
	call 0 lock release @config
	same "$(sql "SELECT count(*) FROM locks WHERE task = '@config'")" 0
	call 0 claim Big-10 --ttl 1s
	sleep 1.1
	same "$(sql "SELECT count(*) FROM locks WHERE NOT live")" 1
}

@test "events: the same as pawl log shows" {
	busy
	call 0 log --all --json
	same "$(sql "SELECT seq || ' ' || at || ' ' || kind || ' ' || coalesce(task, '') || ' ' || agent || ' ' || coalesce(text, '') FROM events")" \
		"$(jq -r '.events[] | "\(.cursor) \(.at) \(.event) \(.task // "") \(.agent) \(.text // "")"' <<<"$output")"
}

@test "the examples of doc/data.md run" {
	local n=0 query
	busy
	while IFS= read -r -d ';' query; do
		sql "$query" >>shown
		n=$((n + 1))
	done < <(awk '/^```sql/ { on = 1; next } /^```/ { on = 0 } on' "$PAWL_SOURCE/doc/data.md")
	[ "$n" -eq 6 ]
	cat shown
	grep -q 'big-9|Blocked|no key' shown
	grep -q 't1|2020-02-03|Fix the parser' shown
	grep -q 'core|1' shown
	grep -q 't2|t1' shown
	grep -q 't1|ann|' shown
}

@test "every column that doc/data.md names is there, and no other" {
	local view
	for view in tasks locks events; do
		same "$(sql "SELECT group_concat(name, ' ') FROM (SELECT name FROM pragma_table_info('$view') ORDER BY name)")" \
			"$(awk -v view="$view" '/^### / { on = $2 == view ":" } on && /^\| `/ { split($0, cell, "|"); print cell[2] }' \
				"$PAWL_SOURCE/doc/data.md" | grep -o '`[a-z_]*`' | tr -d '`' | LC_ALL=C sort | tr '\n' ' ' | sed 's/ $//')"
	done
}

@test "doctor names values that disagree, and pawl does not believe them" {
	busy
	sqlite3 "$db" "UPDATE record SET fence=99, expires='', run='other' WHERE key='task/t1'"
	ask 0 show t1
	is '.task.fence == 1 and .task.lock.live'
	call 40 doctor
	says "the views show other values"
	call 0 heartbeat t1 --agent ann --run r1
	call 0 doctor
	sqlite3 "$db" "UPDATE record SET holder='eve', status=2 WHERE key='task/t1'; UPDATE tally SET n=n+1 WHERE status=2;
		UPDATE tally SET n=n-1 WHERE status=3"
	call 20 claim t1
	call 40 doctor
	says "task/t1: its index differs from the task"
}

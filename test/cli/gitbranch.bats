#!/usr/bin/env bats
# git: with a whole queue on one branch, which people and other programs read and write, too.

load common

setup() {
	fresh
	bare_repository queue
	export PAWL_STORE="git:$remote#board"
}

over_wire() {
	export PAWL_STORE="git:file://$remote#board"
}

on_branch() {
	git -C "$remote" show "board:$1"
}

# person: a clone in which a person works on the branch as on any other
person() {
	git clone -q -b board "$remote" person 2>/dev/null
}

# publish MESSAGE: commits and pushes the changes there
publish() {
	git -C person add -A
	git -C person commit -qm "$1"
	git -C person push -q origin HEAD:board 2>/dev/null
}

# by_hand FILE [TEXT]: a person puts a file onto the branch; its text is TEXT or standard input
by_hand() {
	rm -rf person
	person
	mkdir -p "person/$(dirname "$1")"
	if [ $# -gt 1 ]; then printf '%b' "$2" >"person/$1"; else cat >"person/$1"; fi
	publish "$1 by hand"
}

@test "branch: a task and its lock are files that people can read" {
	call 0 init
	call 0 create "Fix the login" --description "It says *no*." --label web
	on_branch tasks/t1.md >t1
	grep -qx 'title: Fix the login' t1
	grep -qx 'status: Ready' t1
	grep -qx 'It says \*no\*.' t1
	call 0 claim t1 --agent bob
	on_branch t1_lock.yaml >lock
	grep -qx 'task_id: 1' lock
	grep -qx 'locked_by: bob' lock
	grep -Eqx 'locked_at: [0-9-]{10} [0-9:]{5}' lock
	grep -q '^hostname: .' lock
	grep -qx 'fence: 1' lock
	grep -Eqx 'claim_id: "?[0-9a-f]{12}"?' lock
	grep -Eqx 'token_sha256: "?[0-9a-f]{64}"?' lock
	grep -q '^expires_at: ' lock
	call 0 done t1 --agent bob
	run on_branch t1_lock.yaml
	[ "$status" -ne 0 ]
	on_branch tasks/t1.md | grep -qx 'status: Done'
}

@test "branch: one commit for each change, and its subject names the change" {
	call 0 init
	call 0 create x
	call 0 claim t1 --agent bob
	call 0 done t1 --agent bob
	git -C "$remote" log --format=%s board >subjects
	same "$(wc -l <subjects)" 4
	same "$(sed -n 2p subjects)" "claimed t1 by bob"
}

@test "branch: a file of a person is a task, and keeps its name and its words" {
	call 0 init
	call 0 create x
	by_hand tasks/t7_mend_the_door.md <<-EOF
		---
		priority: high
		labels: [house]
		colour: red
		---

		# Mend the door

		It is off its hinges.
	EOF
	ask 0 show t7
	is '.task.title == "Mend the door" and .task.status == "Ready" and .task.labels == ["house"]'
	ask 0 next --claim --agent bob
	is '.task.id == "t7"'
	on_branch tasks/t7_mend_the_door.md >after
	grep -qx 'colour: red' after
	grep -qx 'It is off its hinges.' after
	grep -qx 'status: In Progress' after
}

@test "branch: a person's edit of a task counts for the tasks that wait for it" {
	call 0 init
	call 0 create first
	call 0 create second --depends t1
	call 0 claim t1
	call 10 next
	person
	sed -i 's/^status: .*/status: Done/' person/tasks/t1.md
	publish "t1 is done"
	ask 0 next
	is '.task.id == "t2"'
}

@test "branch: a task that a person makes waits for its dependencies" {
	call 0 init
	call 0 create first --id t1
	by_hand tasks/t2.md "---\ntitle: second\ndepends: [1]\n---\n"
	call 0 claim t1
	call 10 next
	call 0 done t1
	ask 0 next
	is '.task.id == "t2"'
}

@test "branch: another program's lock is respected until it is gone, and named" {
	call 0 init
	call 0 create x
	by_hand t1_lock.yaml "task_id: 1\nlocked_by: ann@example.com\nlocked_at: 2026-02-13 14:30\nhostname: my-pc\n"
	call 20 claim t1 --agent bob
	complains ann@example.com
	call 10 next --claim --agent bob
	ask 0 lock list
	is '.locks[0].holder == "ann@example.com"'
	rm -rf person
	person
	rm person/t1_lock.yaml
	publish "unlock"
	call 0 claim t1 --agent bob
}

@test "branch: a waiting call sees that another program's lock is gone" {
	call 0 init
	call 0 create x
	by_hand t1_lock.yaml "locked_by: ann\n"
	"$PAWL" next --claim --wait 30s -q --agent bob >got 2>&1 &
	soon pgrep -P $$ -f 'next --claim --wait' >/dev/null
	sleep 0.5
	rm -rf person
	person
	rm person/t1_lock.yaml
	publish "unlock"
	wait $!
	same "$(head -1 got)" t1
}

@test "branch: files of others stay" {
	call 0 init
	by_hand README.md "hello\n"
	by_hand tasks/notes.txt "a note\n"
	call 0 create x
	call 0 claim t1
	call 0 done t1
	call 0 clear --yes
	same "$(on_branch README.md)" hello
	same "$(on_branch tasks/notes.txt)" "a note"
}

@test "branch: a file that nobody can read is named, and the others are not affected" {
	call 0 init
	call 0 create x
	call 0 create y
	by_hand tasks/t1.md "---\ntitle: [\n---\n"
	call 40 show t1
	complains tasks/t1.md
	call 40 claim t1
	call 40 doctor
	says tasks/t1.md
	call 0 claim t2
	call 0 done t2
	by_hand t3_lock.yaml "locked_by: [1, 2]\n"
	call 0 create z
	call 40 claim t3
	complains t3_lock.yaml
	ask 10 next
	same "$(on_branch t3_lock.yaml)" "locked_by: [1, 2]"
}

@test "branch: a task that waits for an unreadable task keeps waiting" {
	call 0 init
	call 0 create first
	call 0 create second --depends t1
	by_hand t1_lock.yaml "locked_by: ["
	call 10 next
	rm -rf person
	person
	rm person/t1_lock.yaml
	git -C person mv tasks/t1.md tasks/t1_first.md
	printf -- '---\ntitle: [\n---\n' >person/tasks/t1_first.md
	publish "worse"
	call 10 next
	call 40 show t1
}

@test "branch: two files for one task, a huge one, and invalid ids" {
	call 0 init
	call 0 create x
	by_hand tasks/copy.md "---\nid: t1\ntitle: copy\n---\n"
	by_hand tasks/other.md "---\nid: ../../x\ntitle: y\n---\n"
	head -c 40000000 /dev/zero | tr '\0' a | by_hand tasks/huge.md
	rm -rf person
	person
	ln -s /etc/passwd person/tasks/t5.md
	mkdir person/t1_lock.yaml
	echo x >person/t1_lock.yaml/file
	publish "a link, and a folder in the place of a lock"
	call 40 claim t1
	call 44 show t5
	call 40 doctor
	says "t1_lock.yaml: it is too large, or not a file"
	says "tasks/huge.md: it is too large"
	says tasks/other.md
	call 0 create fine
	call 0 claim t2
}

@test "branch: the log continues after commits of others" {
	call 0 init
	call 0 create x
	by_hand note "one\n"
	call 0 claim t1 --agent bob
	by_hand note "two\n"
	ask 0 log t1
	is '[.events[].event] == ["created", "claimed"]'
	ask 0 log
	is '[.events[].event] | index("created") != null and index("claimed") != null'
}

@test "branch: through git itself, in a clone that stays as it was" {
	over_wire
	call 0 init
	(mkdir two && cd two && "$PAWL" init -q --force --store "git:file://$remote?layout=branch")
	git init -q one
	cd one
	git remote add origin "$remote"
	echo text >file
	git add file
	export PAWL_STORE="git:origin?layout=branch"
	call 0 create x
	call 0 claim t1
	call 0 done t1
	same "$(git status --porcelain)" "A  file"
	same "$(git for-each-ref --format='%(refname)' | grep -vc ^refs/pawl-seen/)" 0
	git -C "$remote" show pawl:tasks/t1.md | grep -qx 'status: Done'
	export PAWL_STORE="git:file://$remote#board"
	ask 0 list
	is '.count == 0'
}

@test "branch: agents race for one task through git, and one wins" {
	over_wire
	call 0 init
	call 0 create x
	for i in 1 2 3 4; do
		("$PAWL" claim t1 -q --agent "a$i" >/dev/null 2>&1 && echo "a$i" >>won) &
	done
	wait
	same "$(wc -l <won)" 1
	ask 0 show t1
	is --arg a "$(cat won)" '.task.fence == 1 and .task.lock.holder == $a'
}

@test "branch: a branch of others is not taken" {
	git init -q -b main w
	git -C w commit -q --allow-empty -m one
	git -C w push -q "$remote" main:board
	call 40 init
	complains "not a queue"
	call 40 list
	same "$(git -C "$remote" log --format=%s board)" one
}

@test "branch: one that is checked out is not written to behind its worktree" {
	git init -q -b main w
	export PAWL_STORE="git:$PWD/w#main"
	call 40 init
	complains "checked out"
	export PAWL_STORE="git:$PWD/w#board"
	call 0 init
	git -C w commit -q --allow-empty -m one
	git -C w checkout -q board
	call 40 create x
}

@test "branch: invalid branch names" {
	for name in '-x' 'a..b' '../x' 'a b' 'x.lock' '@{1}' 'a~1'; do
		call 40 init --store "git:$remote#$name"
		complains "name of a branch"
	done
	call 40 init --store "git:$remote?layout=tree"
	complains "not a layout"
	call 0 init --store "git:$remote#team/board"
	git -C "$remote" rev-parse -q --verify refs/heads/team/board
}

@test "branch: a removed branch is not a queue any more, and can come back" {
	call 0 init
	call 0 create x
	tip=$(git -C "$remote" rev-parse board)
	git -C "$remote" update-ref -d refs/heads/board
	call 40 list
	complains "no queue"
	call 40 create y
	git -C "$remote" update-ref refs/heads/board "$tip"
	ask 0 list
	is '.count == 1'
}

# moved_back URI: a person sets the branch back after a claim
moved_back() {
	export PAWL_STORE=$1
	call 0 init
	call 0 create x
	old=$(git -C "$remote" rev-parse board)
	call 0 claim t1 --agent bob
	tip=$(git -C "$remote" rev-parse board)
	git -C "$remote" update-ref refs/heads/board "$old"
	call 40 claim t1 --agent ann
	complains "reset or replaced"
	complains "push --force"
	call 40 list
	same "$(git -C "$remote" rev-parse board)" "$old"
	git -C "$remote" update-ref refs/heads/board "$tip"
	call 20 claim t1 --agent ann
	call 0 "done" t1 --agent bob
}

@test "branch: one that was set back is not used until somebody has decided" {
	moved_back "git:$remote#board"
}

@test "branch: the same through git itself" {
	moved_back "git:file://$remote#board"
}

@test "branch: checked out in a worktree of a bare repository, it is not written to" {
	call 0 init
	git -C "$remote" worktree add -q "$BATS_TEST_TMPDIR/w" board
	call 40 create x
	complains "checked out"
	same "$(git -C "$BATS_TEST_TMPDIR/w" status --porcelain)" ""
}

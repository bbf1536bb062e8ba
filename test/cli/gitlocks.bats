#!/usr/bin/env bats
# git: a branch of lock files that other programs made and use, too; tasks are Markdown files of the worktree.
# The other program here is a script that acts like such programs, with git plumbing. PAWL_GIT_AGENTS is the number
# of racing agents of each kind (default 4; make soak: 20).

load common

setup() {
	agents=${PAWL_GIT_AGENTS-4}
	fresh
	export PAWL_AGENT=ann@example.com
	bare_repository code
	other_tool
	git clone -q "$remote" clone 2>/dev/null
	cd clone || return
	task t1_one high '' Ready
	task t2_two high 1 Ready
	task t3_three medium '' Implementing
	task t10_parent medium '' Ready
	task t10/t10_2_child low '' Ready
	task archived/t5_old high '' Done
	task t6_odd high '' Folded
	task t7_later high '' Postponed
	git add .
	git commit -qm tasks
	git push -q origin HEAD 2>/dev/null
	export PAWL_STORE=git:origin#aitask-locks
}

# task NAME PRIORITY DEPENDS STATUS: a file as such programs write it
task() {
	mkdir -p "aitasks/$(dirname "$1")"
	printf -- '---\npriority: %s\neffort: medium\ndepends: [%s]\nissue_type: feature\nstatus: %s\nlabels: [bash]\ncreated_at: 2026-02-13 02:35\nupdated_at: 2026-02-13 11:49\n---\n\n## About %s\n\nText of it.\n' \
		"$2" "$3" "$4" "$1" >"aitasks/$1.md"
}

# other_tool: makes ./other, which is called like `other lock 109 bob@example.com`, in a clone
other_tool() {
	cat >"$BATS_TEST_TMPDIR/other" <<'SH'
#!/bin/bash
branch=aitask-locks
push() { git push -q origin "$1:refs/heads/$branch" 2>/dev/null; }
case $1 in
init)
	push "$(git commit-tree "$(git mktree </dev/null)" -m init)"
	;;
lock | unlock)
	file=t$2_lock.yaml
	for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do
		git fetch -q origin "+refs/heads/$branch:refs/other/$branch" || exit 11
		tip=$(git rev-parse "refs/other/$branch")
		there=$(git ls-tree "$tip" -- "$file")
		[ "$1" = lock ] || [ -n "$there" ] || exit 0
		[ "$1" = unlock ] || [ -z "$there" ] || exit 1
		tree=$({
			git ls-tree "$tip" | grep -v "	$file\$"
			if [ "$1" = lock ]; then
				blob=$(printf 'task_id: %s\nlocked_by: %s\nlocked_at: %s\nhostname: my-pc\n' \
					"$2" "$3" "${4:-2026-02-13 14:30}" | git hash-object -w --stdin)
				printf '100644 blob %s\t%s\n' "$blob" "$file"
			fi
		} | git mktree)
		push "$(git commit-tree "$tree" -p "$tip" -m "$*")" && exit 0
		sleep "0.0$((RANDOM % 9 + 1))"
	done
	exit 12
	;;
check)
	git fetch -q origin "+refs/heads/$branch:refs/other/$branch" || exit 11
	[ -n "$(git ls-tree "refs/other/$branch" -- "t$2_lock.yaml")" ]
	;;
esac
SH
	chmod +x "$BATS_TEST_TMPDIR/other"
}

other() {
	"$BATS_TEST_TMPDIR/other" "$@"
}

# over_wire: through git's protocol, not through the remote's files
over_wire() {
	export PAWL_STORE="git:file://$remote#aitask-locks"
}

on_branch() {
	git -C "$remote" show "aitask-locks:$1"
}

# names: the names of the files on the branch
names() {
	git -C "$remote" ls-tree --name-only aitask-locks | tr '\n' ' '
}

# by_hand NAME TEXT: a person puts a file onto the branch
by_hand() {
	local tip blob
	tip=$(git -C "$remote" rev-parse aitask-locks)
	blob=$(printf '%b' "$2" | git -C "$remote" hash-object -w --stdin)
	tip=$({
		git -C "$remote" ls-tree "$tip" | grep -v "	$1\$"
		printf '100644 blob %s\t%s\n' "$blob" "$1"
	} | git -C "$remote" mktree | xargs -I{} git -C "$remote" commit-tree {} -p "$tip" -m by-hand)
	git -C "$remote" update-ref refs/heads/aitask-locks "$tip"
}

@test "locks: a branch that another program made: each sees the other's locks" {
	other init
	other lock 109 bob@example.com
	ask 0 lock check 109
	is '.locked and .task.id == "t109" and .lock.holder == "bob@example.com" and .lock.host == "my-pc"
		and .lock.foreign and (.lock | has("expires_at") | not)'
	call 20 lock acquire t109
	complains "t109 is held by bob@example.com since 2026-02-13T14:30:00.000Z on my-pc"
	call 20 claim 109
	ask 1 lock check 110
	call 0 lock acquire 110
	other check 110
	run other lock 110 carl@example.com
	same "$status" 1
	on_branch t110_lock.yaml >lock
	grep -qx 'task_id: 110' lock
	grep -qx 'locked_by: ann@example.com' lock
	grep -Eqx 'locked_at: [0-9-]{10} [0-9:]{5}' lock
	grep -q '^hostname: .' lock
	same "$(sed 's/:.*//' lock | tr '\n' ' ')" \
		"task_id locked_by locked_at hostname claim_id fence acquired_at expires_at ttl token_sha256 manual mode clock "
	ask 0 lock list
	is '[.locks[].task] | sort == ["t109", "t110"]'
	call 0 lock release t110
	call 0 lock release t110
	run other check 110
	same "$status" 1
	call 21 lock release 109
	complains bob@example.com
	call 0 lock release 109 --agent bob@example.com
	ask 1 lock check 109
	other lock 109 bob@example.com
	call 0 lock break 109 --reason "his laptop is gone"
	same "$(names)" ""
	call 0 log 109
	says "his laptop is gone"
}

@test "locks: init makes the branch, and leaves an existing one alone" {
	ask 40 lock check 1
	is '.error.hint | startswith("pawl lock init --store ")'
	ask 0 lock init
	is '.existed == false'
	other lock 1 bob
	ask 0 lock init
	is .existed
	same "$(names)" "t1_lock.yaml "
	same "$(git -C "$remote" rev-list --max-parents=0 aitask-locks | wc -l)" 1
	lines 0 lock init --store "git:origin#team/locks?layout=locks"
	call 0 lock acquire 1 --store git:origin#team/locks
	git -C "$remote" cat-file -e team/locks:t1_lock.yaml
}

@test "locks: pawl and another program race for the same locks: one has each" {
	other init
	for store in "$PAWL_STORE" "git:file://$remote#aitask-locks"; do
		for i in $(seq "$agents"); do
			git clone -q "$remote" "$work/p$i" 2>/dev/null || true
			git clone -q "$remote" "$work/o$i" 2>/dev/null || true
		done
		: >"$work/won"
		for i in $(seq "$agents"); do
			for id in 21 22; do
				(cd "$work/p$i" && "$PAWL" lock acquire "$id" -q --store "$store" --agent "p$i" &&
					echo "$id p$i" >>"$work/won") >/dev/null 2>&1 &
				(cd "$work/o$i" && other lock "$id" "o$i" && echo "$id o$i" >>"$work/won") &
			done
		done
		wait
		for id in 21 22; do
			same "$(grep -c "^$id " "$work/won")" 1
			same "$(on_branch "t${id}_lock.yaml" | grep locked_by:)" "locked_by: $(sed -n "s/^$id //p" "$work/won")"
		done
		call 0 lock break 21 --reason again
		call 0 lock break 22 --reason again
	done
}

@test "locks: nothing of the clone is touched" {
	echo stashed >>aitasks/t1_one.md
	git stash -q
	echo staged >file
	git add file
	echo changed >file
	state() {
		git status --porcelain=v2 --branch --show-stash
		git ls-files -s
		git rev-parse HEAD 'stash@{0}'
		git for-each-ref refs/heads refs/tags refs/remotes refs/stash
		find aitasks file -type f -exec cat {} +
	}
	state >"$work/before"
	for store in "$PAWL_STORE" "git:file://$remote#aitask-locks"; do
		export PAWL_STORE=$store
		call 0 lock init
		call 0 lock acquire 1
		call 0 lock cleanup
		call 0 lock release 1
		call 0 next --claim
		call 0 heartbeat t1
		call 0 release t1
		state >"$work/after"
		diff "$work/before" "$work/after"
	done
}

@test "locks: tasks are the worktree's, with their own words for status; child ids are tasks of their own" {
	call 0 lock init
	ask 0 list
	is '[.tasks[] | {(.id): .status}] | add == {t1: "Ready", t2: "Ready", t3: "In Progress", t10: "Ready",
		t10_2: "Ready", t5: "Done", t6: "Backlog", t7: "Backlog"}'
	is '.tasks[] | select(.id == "t10_2") | .parent == "t10" and .priority == 1 and .type == "feature"'
	is '.tasks[] | select(.id == "t2") | .depends == ["t1"]'
	ask 0 next --explain
	is '[.candidates[] | select(.eligible) | .id] == ["t1", "t10_2"]'
	is '.candidates[] | select(.id == "t10") | .why == "waits for its 1 open sub-task: t10_2"'
	is '.candidates[] | select(.id == "t3") | .why == "its status is In Progress"'
	call 0 claim 10_2
	other check 10_2
	run other check 10
	same "$status" 1
	ask 0 next
	is '.task.id == "t1"'
	call 44 show t11
	call 44 claim t11
	call 0 lock acquire 11 --ttl 1s
	soon lock_is_free 11
	ask 0 next --explain
	is '[.candidates[] | select(.eligible) | .id] == ["t1"]'
	PAWL_SUBTASKS=offer ask 0 next --explain
	is '[.candidates[] | select(.eligible) | .id] == ["t1", "t10"]'
	call 0 lock release 11
	not other check 11
	task t12_new high '' Ready
	ask 0 show 12
	is '.task.title == "About t12_new"'
	ask 0 list --store "git:origin#aitask-locks?tasks=aitasks/t10&archived=aitasks/none"
	is '[.tasks[].id] == ["t10_2"]'
}

@test "locks: claim, heartbeat, release; a lease is a day, and a fence only grows" {
	call 0 lock init
	ask 0 next --claim
	is '.task.id == "t1" and .lock.ttl == 86400 and .lock.fence == 1'
	call 20 claim 1 --agent bob
	on_branch t1_lock.yaml | grep expires_at >"$work/before"
	call 0 heartbeat 1
	on_branch t1_lock.yaml | grep expires_at >"$work/after"
	not diff "$work/before" "$work/after"
	call 0 release 1
	same "$(names)" ""
	other lock 1 bob
	other unlock 1
	ask 0 claim t1 --ttl 1s
	is '.lock.fence == 2'
	soon lock_is_free 1
	ask 0 claim 1 --agent bob
	is '.lock.fence == 3'
	call 21 heartbeat t1
	ask 0 lock acquire 77
	is '.lock.fence == 4'
	call 0 lock release 77
	call 0 lock cleanup
	ask 0 list --status in-progress
	is '[.tasks[].id] == ["t1", "t3"]'
}

@test "locks: --write-status sets one word in the task's file, and no commit is made" {
	over_wire
	call 0 lock init
	printf -- '---\r\ntitle: x\r\nstatus:   "Ready"\r\n---\r\nstatus: Ready\n\ttail without an end' >aitasks/t20_dos.md
	chmod 640 aitasks/t20_dos.md
	git add .
	git commit -qm dos
	head=$(git rev-parse HEAD)
	call 0 claim 20 --write-status
	same "$(printf -- '---\r\ntitle: x\r\nstatus:   Implementing\r\n---\r\nstatus: Ready\n\ttail without an end' | sha1sum)" \
		"$(sha1sum <aitasks/t20_dos.md)"
	same "$(stat -c %a aitasks/t20_dos.md)" 640
	same "$(git status --porcelain)" " M aitasks/t20_dos.md"
	call 0 release 20 --write-status
	grep -q '^status:   Ready' aitasks/t20_dos.md
	call 0 next --claim --write-status --type feature
	says t1
	same "$(git diff -U0 aitasks/t1_one.md | grep '^[-+][^-+]' | tr '\n' ' ')" "-status: Ready +status: Implementing "
	call 40 done 1
	complains "aitasks/t1_one.md" "--write-status"
	grep -qx 'status: Implementing' aitasks/t1_one.md
	ask 0 done 1 --write-status --claim-next
	is '.task.status == "Done" and .next.task.id == "t2"'
	grep -qx 'status: Done' aitasks/t1_one.md
	grep -qx 'status: Implementing' aitasks/t2_two.md
	same "$(names)" "t2_lock.yaml "
	ask 0 lock acquire 10_2 --write-status
	grep -qx 'status: Implementing' aitasks/t10/t10_2_child.md
	call 0 lock release 10_2 --write-status
	same "$(git status --porcelain aitasks/t10)" ""
	call 1 run 10_2 --write-status --on-failure release -- grep -x 'status: Ready' aitasks/t10/t10_2_child.md
	same "$(git status --porcelain aitasks/t10)" ""
	call 0 run 10_2 --write-status -- grep -x 'status: Implementing' aitasks/t10/t10_2_child.md
	grep -qx 'status: Done' aitasks/t10/t10_2_child.md
	same "$(git rev-parse HEAD)" "$head"
	same "$(find aitasks -name '.*')" ""
	call 2 next --write-status
	call 40 lock acquire 500 --write-status
	same "$(names)" "t2_lock.yaml "
	printf '\xef\xbb\xbf---\nstatus: Ready  # soon\nnote: "status: x"\n---\n' >aitasks/t22_bom.md
	call 0 claim 22 --write-status
	same "$(cat aitasks/t22_bom.md)" "$(printf '\xef\xbb\xbf---\nstatus: Implementing  # soon\nnote: "status: x"\n---\n')"
	printf -- '---\nstatus:\n---\n' >aitasks/t23_empty.md
	call 0 lock acquire 23 --write-status
	same "$(cat aitasks/t23_empty.md)" "$(printf -- '---\nstatus: Implementing\n---\n')"
	printf -- '---\nstatus: Ready\nno end\n' >aitasks/t24_open.md
	call 40 claim 24 --write-status
	printf 'no front matter\n' >aitasks/t21_plain.md
	call 40 claim 21 --write-status
	complains aitasks/t21_plain.md
	call 0 claim 21
	cd "$work"
	mkdir plain
	cd plain
	unset PAWL_STORE
	call 0 init
	call 0 create x
	call 2 claim t1 --write-status
	call 0 claim t1
}

@test "locks: no link leads out of the worktree" {
	call 0 lock init
	mkdir "$work/outside"
	cp aitasks/t1_one.md "$work/outside/t30_out.md"
	ln -s "$work/outside/t30_out.md" aitasks/t30_out.md
	ln -s "$work/outside" aitasks/t31
	call 44 show 30
	call 0 list --store "git:origin#aitask-locks?tasks=../outside"
	not says t30
	call 0 lock acquire 30
	sum=$(sha1sum <"$work/outside/t30_out.md")
	call 40 lock acquire 31 --write-status
	git mv aitasks/t10 aitasks/t10_was
	ln -s "$work/outside" aitasks/t10
	call 0 claim 10_2 --write-status
	grep -qx 'status: Implementing' aitasks/t10_was/t10_2_child.md
	same "$(sha1sum <"$work/outside/t30_out.md")" "$sum"
	mkdir data
	mv aitasks data/aitasks
	ln -s data/aitasks aitasks
	call 0 claim 1 --write-status
	grep -qx 'status: Implementing' data/aitasks/t1_one.md
}

@test "locks: a linked worktree and a bare clone" {
	call 0 lock init
	over_wire
	git worktree add -q ../linked 2>/dev/null
	git clone -q --bare "$remote" "$work/bare.git" 2>/dev/null
	(cd ../linked && "$PAWL" claim 1 -q --agent linked --write-status)
	grep -qx 'status: Implementing' ../linked/aitasks/t1_one.md
	grep -qx 'status: Ready' aitasks/t1_one.md
	cd "$work/bare.git"
	call 20 lock acquire 1
	complains linked
	call 0 lock acquire 2
	ask 0 list
	is '[.tasks[].id] | sort == ["t1", "t2"]'
	cd "$work"
	mkdir nowhere
	cd nowhere
	call 0 lock check 2
}

@test "locks: cleanup takes away the locks of archived tasks, and names old ones" {
	other init
	other lock 5 bob
	other lock 1 carl "$(date -d '10 days ago' '+%Y-%m-%d %H:%M')"
	other lock 2 dora "$(date '+%Y-%m-%d %H:%M')"
	other lock 500 eve "$(date '+%Y-%m-%d %H:%M')"
	call 0 lock cleanup
	says t5
	complains "t1 has been locked by carl for 10d" "pawl lock break t1"
	not complains dora
	same "$(names)" "t1_lock.yaml t2_lock.yaml t500_lock.yaml "
	PAWL_LOCK_WARN_AFTER=20d call 0 lock cleanup
	same "$stderr" ""
	other lock 5 bob
	call 0 next
	same "$(names)" "t1_lock.yaml t2_lock.yaml t500_lock.yaml "
	same "$stderr" ""
	other lock 5 bob
	call 0 next
	same "$(names)" "t1_lock.yaml t2_lock.yaml t500_lock.yaml t5_lock.yaml "
	rm "$XDG_STATE_HOME"/pawl/*.tidy
	call 0 claim 10
	same "$(names)" "t10_lock.yaml t1_lock.yaml t2_lock.yaml t500_lock.yaml "
}

@test "locks: cleanup leaves a lock that an agent took again while it ran" {
	over_wire
	other init
	other lock 5 bob
	mkdir -p "$remote/hooks"
	# the hook's effect while a push is on its way: the lock is gone, and another agent's is there
	old=$(git -C "$remote" rev-parse aitask-locks)
	other unlock 5
	other lock 5 carl
	new=$(git -C "$remote" rev-parse aitask-locks)
	git -C "$remote" update-ref refs/heads/aitask-locks "$old"
	cat >"$remote/hooks/pre-receive" <<-SH
		#!/bin/sh
		[ -e "$work/once" ] && exit 0
		touch "$work/once"
		env -u GIT_QUARANTINE_PATH -u GIT_OBJECT_DIRECTORY -u GIT_ALTERNATE_OBJECT_DIRECTORIES \
			git -C "$remote" update-ref refs/heads/aitask-locks $new
	SH
	chmod +x "$remote/hooks/pre-receive"
	call 0 lock cleanup
	[ -e "$work/once" ]
	on_branch t5_lock.yaml | grep -qx 'locked_by: carl'
	call 0 lock cleanup
	same "$(names)" ""
}

@test "locks: a lock that cannot be read is a lock, and no other task is affected" {
	other init
	other lock 2 bob
	by_hand t1_lock.yaml 'locked_by: [\n'
	by_hand t10_lock.yaml 'task_id: 10\n'
	by_hand README.md 'about locks\n'
	export PAWL_STORE="git:origin#aitask-locks?layout=locks"
	call 0 lock check 1
	says "t1_lock.yaml:"
	call 20 claim 1
	complains "t1_lock.yaml:"
	call 20 lock acquire 10
	ask 0 lock list
	is '[.locks[].task] | sort == ["t1", "t10", "t2"]'
	ask 0 next
	is '.task.id == "t10_2"'
	call 40 doctor
	says "t1_lock.yaml:" "t10_lock.yaml:"
	call 0 lock break 1 --reason "nobody can read it"
	call 0 claim 1
	call 0 release 1
	printf -- '---\nstatus: Ready\npriority: [\n---\n' >aitasks/t1_one.md
	call 40 doctor
	says "aitasks/t1_one.md:"
	ask 0 next
	is '.task.id == "t10_2"'
	call 0 lock acquire 1
	same "$(names)" "README.md t10_lock.yaml t1_lock.yaml t2_lock.yaml "
	same "$(on_branch README.md)" "about locks"
}

@test "locks: a lock with lines that are not YAML, or that ends in dashes, shows its holder" {
	local head='task_id: 1\nlocked_by: bob@example.com\nlocked_at: 2026-02-13 14:30\nhostname: my-pc\n'
	other init
	by_hand t1_lock.yaml "${head}pid: -\npid_starttime: -\n"
	ask 0 lock check 1
	is '.lock.holder == "bob@example.com" and .lock.host == "my-pc" and .lock.foreign'
	call 20 claim 1
	complains "t1 is held by bob@example.com since 2026-02-13T14:30:00.000Z on my-pc"
	by_hand t2_lock.yaml "---\n${head}---\n"
	by_hand t3_lock.yaml "${head}---"
	by_hand t10_lock.yaml "${head}pid: unknown\n\tnonsense\n: [\n"
	ask 0 lock list
	is '[.locks[].holder] | length == 4 and all(. == "bob@example.com")'
	call 0 doctor
	call 0 lock release 2 --agent bob@example.com
	# pawl does not guess the fields that decide about its own lock
	by_hand t2_lock.yaml "${head}pid: -\nexpires_at: soon\n"
	by_hand t3_lock.yaml "${head}pid: -\nlocked_by: eve\n"
	ask 0 lock list
	is '[.locks[] | select(.task == "t2" or .task == "t3") | .holder | startswith("unknown (")] | all'
}

@test "locks: a change that the branch cannot keep is refused, and nothing is written" {
	call 0 lock init
	(cd / && "$PAWL" claim 1 -q --dir "$work/clone")
	tip=$(git -C "$remote" rev-parse aitask-locks)
	call 40 create x
	complains "aitasks"
	echo '{"id": "t99", "title": "T"}' >../new.jsonl
	check_refused 40 ../new.jsonl
	complains "aitasks"
	call 40 update 1 --priority low
	complains "aitasks/t1_one.md"
	call 40 block 1 --reason r --unblock-action u
	call 40 review 1 --summary s
	call 40 fail 1 --reason r
	call 40 cancel 10 --reason r
	call 40 comment 1 hello
	call 40 depend 10 1
	call 40 remove 10
	call 40 id claim
	complains aitask-ids
	call 40 lock acquire @maintenance
	call 40 release 1 --request-id r1
	call 2 lock acquire ../../x
	call 2 lock acquire --foo
	call 2 lock acquire ..
	call 2 lock acquire 'a b'
	same "$(git -C "$remote" rev-parse aitask-locks)" "$tip"
	same "$(git status --porcelain)" ""
}

@test "locks: a call whose answer was lost, or whose process was killed, is repeated" {
	over_wire
	call 0 lock init
	call 30 lock acquire 1 --store "fault+$PAWL_STORE?fault=modify:1:lost"
	other check 1
	ask 0 lock acquire 1
	is '.lock.fence == 1'
	call 30 id claim --store "fault+git:file://$remote#aitask-ids?fault=open:1"
	call 0 lock release 1
	for i in 1 2 3 4 5 6 7 8 9; do
		"$PAWL" lock acquire 2 -q >/dev/null 2>&1 &
		sleep "0.0$i"
		kill -9 $! 2>/dev/null || true
		wait $! 2>/dev/null && break # it was quicker
	done
	run "$PAWL" lock acquire 2
	[ "$status" -eq 0 ] || [ "$status" -eq 20 ] # 20: an earlier claim completed, and its token is saved
	same "$(git -C "$remote" log --format=%s aitask-locks | grep -c '^locked t2')" 1
	on_branch t2_lock.yaml | grep -qx 'fence: 2'
	call 0 lock release 2
	same "$(names)" ""
}

@test "locks: a remote that is gone says nothing about a lock" {
	over_wire
	call 0 lock init
	call 0 lock acquire 1
	call 30 lock check 2 --store "fault+git:file://$remote#aitask-locks?fault=get:1"
	mv "$remote" "$remote.away"
	call 30 lock check 1
	call 30 lock check 2
	call 30 lock acquire 2
	call 30 lock list
	mv "$remote.away" "$remote"
	call 0 lock check 1
	git -C "$remote" update-ref -d refs/heads/aitask-locks
	call 40 lock check 1
}

#!/usr/bin/env bats
# Features of git: only, as its users see them: clones, worktrees, remotes that are not a path. PAWL_GIT_AGENTS
# is how many agents race (default 4; make soak: 20).

load common

setup() {
	agents=${PAWL_GIT_AGENTS-4}
	fresh
	bare_repository queue
}

# clone NAME: a clone with a commit, staged and changed files, and a stash; its store is origin
clone() {
	git clone -q "$remote" "$1" 2>/dev/null
	(
		cd "$1" || exit
		echo one >file
		git add file
		git commit -qm one
		echo stashed >file
		git stash -q
		echo staged >file
		git add file
		echo changed >file
	)
}

state_of() {
	git -C "$1" status --porcelain=v2 --branch --show-stash
	git -C "$1" ls-files -s
	git -C "$1" rev-parse HEAD 'stash@{0}'
	cat "$1/file"
	git -C "$1" for-each-ref refs/heads refs/tags refs/remotes refs/stash
}

# over_wire: the store that git itself fetches from and pushes to
over_wire() {
	export PAWL_STORE=git:file://$remote
	"$PAWL" init -q
}

@test "git: a clone's files, index, HEAD and stash stay as they are" {
	clone one
	call 0 init --store "git:$remote"
	state_of one >before
	export PAWL_STORE=git:origin
	cd one
	call 0 create x
	call 0 next --claim
	call 0 done t1
	cd "$work"
	state_of one >after
	diff before after
	[ -n "$(git -C "$remote" for-each-ref refs/pawl/default/base)" ]
}

@test "git: the same through git itself, and nothing but refs/pawl-seen is new in the clone" {
	clone one
	state_of one >before
	over_wire
	cd one
	call 0 create x
	call 0 next --claim
	call 0 done t1
	git for-each-ref --format='%(refname)' | grep -v '^refs/\(heads\|remotes\|stash\)' >refs
	[ -s refs ]
	not grep -v ^refs/pawl-seen/ refs
	rm refs
	cd "$work"
	state_of one >after
	diff before after
	git -C one fsck --no-progress
}

@test "git: a linked worktree and a bare clone see the same queue" {
	clone one
	git -C one worktree add -q ../two 2>/dev/null
	git clone -q --bare "$remote" three.git 2>/dev/null
	over_wire
	(cd two && "$PAWL" create from-a-worktree -q)
	(cd three.git && "$PAWL" create from-a-bare-one -q)
	cd one
	ask 0 list
	is '[.tasks[].title] == ["from-a-worktree", "from-a-bare-one"]'
}

@test "git: --dir: remote and objects are those of the clone there" {
	clone one
	export PAWL_STORE="git:origin?transport=wire"
	call 0 init --dir one
	call 0 create x --dir one
	(cd one && "$PAWL" claim t1 -q)
	call 0 done t1 -C one
	ask 0 list -C one --status Done
	is '[.tasks[].title] == ["x"]'
	[ ! -e "$XDG_CACHE_HOME/pawl" ]
	[ -n "$(git -C one for-each-ref refs/pawl-seen)" ]
}

@test "git: without a clone the objects are in the cache" {
	over_wire
	call 0 create x
	call 0 claim t1
	[ -n "$(ls "$XDG_CACHE_HOME"/pawl/git/*.git/objects)" ]
}

@test "git: agents race for one task, and one wins; of many tasks each is done once" {
	over_wire
	call 0 create x
	for i in $(seq "$agents"); do
		mkdir "w$i"
		git init -q "w$i"
		(cd "w$i" && "$PAWL" claim t1 -q --agent "a$i" >/dev/null 2>&1 && echo "a$i" >>../won) &
	done
	wait
	same "$(wc -l <won)" 1
	for i in $(seq "$agents"); do call 0 create "y$i"; done
	for i in $(seq "$agents"); do
		(cd "w$i" && id=$("$PAWL" next --claim -q --agent "a$i") && "$PAWL" done "$id" -q --agent "a$i" && echo "$id" >>../done) &
	done
	wait
	same "$(sort -u <done | wc -l)" "$agents"
	ask 0 list --status Done
	is --argjson n "$agents" '.count == $n'
}

@test "git: a remote that is gone is an API_ERROR, never a free task" {
	over_wire
	call 0 create x
	mv "$remote" "$remote.away"
	call 30 claim t1
	call 30 list
	mv "$remote.away" "$remote"
	call 0 claim t1
}

@test "git: a server that refuses a push says so, and nothing happened" {
	over_wire
	call 0 create x
	mkdir -p "$remote/hooks"
	printf '#!/bin/sh\necho not today >&2\nexit 1\n' >"$remote/hooks/pre-receive"
	chmod +x "$remote/hooks/pre-receive"
	call 30 claim t1
	rm "$remote/hooks/pre-receive"
	ask 0 show t1
	is '.task.status == "Ready"'
	call 0 claim t1
}

@test "git: hooks of a path are asked: it is used through git" {
	mkdir -p "$remote/hooks"
	printf '#!/bin/sh\ntouch "%s"\n' "$work/asked" >"$remote/hooks/post-receive"
	chmod +x "$remote/hooks/post-receive"
	call 0 init --store "git:$remote"
	call 0 create x
	[ -e asked ]
}

# folds: with at most 10 refs, 40 tasks are created and done and some reopened; each is found as it was
# left
folds() {
	export PAWL_STORE="$1?refs=10"
	"$PAWL" init -q
	seq 40 | sed 's/.*/{"title": "task &"}/' | call 0 batch add -
	git -C "$remote" for-each-ref refs/pawl/default/t >refs
	[ "$(wc -l <refs)" -le 10 ]
	for i in $(seq 15); do
		id=$("$PAWL" next --claim -q)
		call 0 "done" "$id"
	done
	call 0 reopen t2 --reason again
	git -C "$remote" for-each-ref refs/pawl/default/t >refs
	[ "$(wc -l <refs)" -le 11 ]
	ask 0 list --limit 100
	is '.count == 40 and ([.tasks[].id] | unique | length == 40)'
	is '[.tasks[] | select(.status == "Done")] | length == 14'
	ask 0 next --claim
	is '.task.id == "t16"'
	git -C "$remote" rev-parse -q --verify refs/pawl/default/t/t16 # a task that an agent works on has one
	ask 0 log t1
	is '[.events[].event] == ["created", "claimed", "done"]'
	call 0 doctor
}

@test "git: the list of refs stays short, and tasks that are folded away are still there" {
	folds "git:$remote"
}

@test "git: a ref that was packed before it went does not come back" {
	export PAWL_STORE="git:$remote?refs=1"
	call 0 init
	call 0 create one
	call 0 create two
	git -C "$remote" tag -a -m x v1 "$(git -C "$remote" rev-parse refs/pawl/default/base)"
	git -C "$remote" pack-refs --all
	call 0 claim t1
	call 0 "done" t1
	call 0 create three
	call 0 create four
	run git -C "$remote" rev-parse -q --verify refs/pawl/default/t/t1
	[ "$status" -ne 0 ]
	status_is t1 Done
	git -C "$remote" fsck --no-progress
	git -C "$remote" rev-parse -q --verify 'v1^{commit}'
	git -C "$remote" pack-refs --all
	call 0 update t2 --title y
	call 0 remove t2
	call 44 show t2
	[ -z "$(ls -A "$remote/pawl/locks")" ]
}

@test "git: the same through git itself" {
	folds "git:file://$remote"
}

@test "git: doctor finds a ref's lock that was left behind" {
	call 0 init --store "git:$remote"
	call 0 create x
	touch -d '2 hours ago' "$remote/refs/pawl/default/t/t1.lock"
	call 40 doctor
	says t1.lock "pawl doctor --fix"
	rm "$remote/refs/pawl/default/t/t1.lock"
	call 0 doctor
}

# Only root may read which files such a process had open: pawl must not take it for a process of another user.
@test "git: a git process that has ended holds no ref's lock" {
	[ "$(id -u)" != 0 ] || skip "root may read everything"
	call 0 init --store "git:$remote"
	call 0 create x
	touch -d '2 hours ago' "$remote/refs/pawl/default/t/t1.lock"
	ln -s "$(type -P true)" gitdead
	bash -c './gitdead & exec sleep 60' 3>&- &
	soon pgrep -P $! gitdead
	soon grep -q ') Z ' "/proc/$(pgrep -P $! gitdead)/stat"
	call 40 doctor
	kill $!
	says t1.lock "pawl doctor --fix"
}

@test "git: over git://, with agents that are killed" {
	git daemon --version >/dev/null 2>&1 || [ -x "$(git --exec-path)/git-daemon" ] || skip "needs git daemon"
	port=$((20000 + RANDOM % 20000))
	touch "$remote/git-daemon-export-ok"
	"$(git --exec-path)/git-daemon" --reuseaddr --listen=127.0.0.1 --port=$port --enable=receive-pack \
		--base-path="$BATS_TEST_TMPDIR" --detach --pid-file="$BATS_TEST_TMPDIR/pid"
	soon [ -s "$BATS_TEST_TMPDIR/pid" ]
	export PAWL_STORE=git:git://127.0.0.1:$port/queue.git
	soon "$PAWL" init -q
	call 0 create x
	for i in 1 2 3 4 5 6; do
		"$PAWL" claim t1 -q --agent "a$i" --ttl 1h >/dev/null 2>&1 &
		sleep "0.0$((i * 2))"
		kill -9 $! 2>/dev/null || true
	done
	wait
	ask 0 show t1
	is '.task.fence <= 1 and .task.attempts <= 1'
	call 0 create y
	call 0 claim t2
	call 0 done t2
	kill "$(cat "$BATS_TEST_TMPDIR/pid")"
}

@test "git: remotes count in a clone inside of a worktree, and in a bare repository with worktrees beside it" {
	call 0 init --store "git:$remote"
	rm -rf .pawl
	clone outer
	clone outer/inner
	cd outer/inner
	call 0 create --store git:origin x
	cd "$work"
	mkdir project
	git clone -q --bare "$remote" project/.bare
	echo "gitdir: ./.bare" >project/.git
	git -C project worktree add -q --detach main "$(git -C outer rev-parse HEAD)" 2>/dev/null ||
		git -C project worktree add -q --orphan main 2>/dev/null ||
		git -C project worktree add -q main "$(git -C project commit-tree -m x "$(git -C project mktree </dev/null)")"
	cd project
	call 0 list --store git:origin
	cd main
	ask 0 list --store git:origin
	is '.count == 1'
}

@test "git: a repository inside of a worktree keeps a queue, without its hooks and settings" {
	clone one
	cd one
	call 0 init --store "git:$work/one/q.git?transport=wire"
	mkdir -p q.git/hooks
	printf '#!/bin/sh\ntouch "%s"\nexit 1\n' "$work/asked" >q.git/hooks/pre-receive
	chmod +x q.git/hooks/pre-receive
	call 0 create x
	call 0 next --claim
	ask 0 list --store "git:file://$work/one/q.git"
	is '.count == 1'
	not test -e "$work/asked"
	git -C q.git fsck --no-progress
	git config -f q.git/config extensions.something x
	ask 40 list
}

# fault_when_full STORE [CACHE]: the fault of a change while the disk at $BATS_TEST_TMPDIR/small has no
# room
fault_when_full() {
	STORE=$1 XDG_CACHE_HOME=${2-$XDG_CACHE_HOME} bwrap --dev-bind / / --size 1500000 --tmpfs "$BATS_TEST_TMPDIR/small" bash -c '
		git init -q --bare "$1/q.git"
		export PAWL_STORE=$STORE
		"$PAWL" init -q && "$PAWL" create -q first >/dev/null || exit
		cat /dev/zero >"$1/fill" 2>/dev/null
		"$PAWL" create second --json -d "$(head -c 8000 /dev/urandom | base64 -w0)" --timeout 2s | jq -r .error.fault
	' bash "$BATS_TEST_TMPDIR/small"
}

@test "git: a full disk is full, at a path, on the server, and where the copy is" {
	bwrap --dev-bind / / true 2>/dev/null || skip "needs bubblewrap, and the right to use it"
	mkdir "$BATS_TEST_TMPDIR/small"
	same "$(fault_when_full "git:$BATS_TEST_TMPDIR/small/q.git")" full
	same "$(fault_when_full "git:file://$BATS_TEST_TMPDIR/small/q.git")" full
	same "$(fault_when_full "git:file://$BATS_TEST_TMPDIR/small/%71.git")" full # by git push
	same "$(fault_when_full "git:file://$remote" "$BATS_TEST_TMPDIR/small/cache")" full
}

@test "git: a limit on the size of files is a full disk" {
	call 0 init --store "git:$remote"
	same "$(
		ulimit -f 1
		"$PAWL" create second --json -d "$(head -c 8000 /dev/urandom | base64 -w0)" | jq -r .error.fault
	)" full
	call 0 create third
}

@test "git: an unknown remote is refused, and no folder is made of its name" {
	git init -q "$BATS_TEST_TMPDIR/mine"
	cd "$BATS_TEST_TMPDIR/mine"
	call 40 init --store git:nope
	complains "no remote 'nope'" "git:./nope"
	same "$(ls -A)" .git
	call 40 list --store git:nope
	call 0 init --store git:./nope
	[ -d nope ]
	new x
	call 0 list -q
	exactly t1
	mkdir "$BATS_TEST_TMPDIR/none" # not in a repository
	cd "$BATS_TEST_TMPDIR/none"
	call 40 init --store git:nope
	complains "no remote 'nope'"
	git init -q --bare there.git
	call 0 init --store git:there.git # it exists
}

@test "git: a path remote that vanished is unreachable, and nothing is made there" {
	git init -q --bare "$BATS_TEST_TMPDIR/r.git"
	git init -q "$BATS_TEST_TMPDIR/mine"
	cd "$BATS_TEST_TMPDIR/mine"
	for url in "$BATS_TEST_TMPDIR/r.git" "file://$BATS_TEST_TMPDIR/r.git" ../r.git; do
		git remote remove origin 2>/dev/null || true
		git remote add origin "$url"
		call 0 init --store git:origin
		"$PAWL" create -q x >/dev/null
		mv "$BATS_TEST_TMPDIR/r.git" "$BATS_TEST_TMPDIR/gone"
		for words in list "create y" "init --store git:origin"; do
			# shellcheck disable=SC2086 # several words
			ask 30 $words
			is '.error.fault == "unreachable" and (.error.message | test("unreachable"))'
		done
		[ ! -e "$BATS_TEST_TMPDIR/r.git" ]
		mv "$BATS_TEST_TMPDIR/gone" "$BATS_TEST_TMPDIR/r.git"
		call 0 list
	done
}

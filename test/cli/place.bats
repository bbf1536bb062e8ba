#!/usr/bin/env bats
# The place of the queue and its settings: init, discovery, worktrees, settings and their order, -C,
# --queue.

load common

setup() {
	fresh
}

@test "init: makes a queue; again is harmless" {
	needs_sqlite
	call 0 init
	says "made a queue" "$work/.pawl"
	[ -f .pawl/queue.db ]
	[ -f .pawl/config ]
	[ -f .pawl/.gitignore ]
	pawl create x
	echo "lease = 7m" >>.pawl/config
	call 0 init
	says "already"
	ask 0 init
	is --arg d "$work/.pawl" '.existed == true and .folder == $d and .queue == "default" and (.store | length > 0)'
	lines 0 init
	[[ $output == "SUCCESS:"*"existed=true"* ]]
	call 0 list -q
	exactly t1
	call 0 config get lease -q
	exactly 7m
	call 0 init -q
	exactly ""
}

@test "init --store and --queue: the choice is kept" {
	call 0 init --store sqlite:mine.db --queue special
	call 0 create -q x
	[ -f mine.db ]
	[ ! -e .pawl/queue.db ]
	mkdir -p sub/dir
	cd sub/dir
	call 0 list -q
	exactly t1
	call 0 list -q --queue default
	exactly ""
}

@test "init --store and --queue: do not hide the queue that the folder has" {
	call 0 init --store sqlite:mine.db --queue special
	says "queue special"
	call 0 init --store sqlite:./mine.db --queue special
	call 0 init --queue special
	call 40 init --store sqlite:other.db
	complains "already uses sqlite:$work/mine.db (queue special)" "pawl config set store"
	[ ! -e other.db ]
	call 0 init --queue other
	says "queue other" "the folder keeps its own queue"
	call 0 config get -q queue
	exactly special
	pawl config set queue other
	call 0 init
	says "already" "queue other"
}

@test "init --store: over the folder's own queue only while that is empty" {
	needs_sqlite
	pawl init
	pawl create x
	call 40 init --store sqlite:other.db
	complains "already uses sqlite:$work/.pawl/queue.db (queue default)"
	call 0 init --queue other
	call 0 init --queue default
	call 0 list -q
	exactly t1
	mkdir sub
	cd sub
	pawl init --force
	call 0 init --store sqlite:other.db
	[ -f other.db ]
}

@test "init: a choice that does not work leaves nothing behind" {
	PAWL_MODULE_DIR=$work call 40 init --store git:/nowhere
	call 40 init --store nonsense:x
	call 30 init --store sqlite:nowhere/q.db
	same "$(ls -A)" ""
	queue
	pawl create x
	PAWL_MODULE_DIR=$work call 40 init --store git:/nowhere
	call 0 list -q
	exactly t1
}

@test "init: out of git's sight" {
	needs git
	git init -q .
	queue
	pawl create x
	same "$(git status --porcelain -uall | grep -v 'config$\|gitignore$')" ""
}

# repository: a git repository with a commit without .pawl, then one with its config
repository() {
	needs git
	git init -q -b main .
	git config user.name n
	git config user.email n@localhost
	: >a
	git add a
	git commit -qm first
	call 0 init
	pawl create x
	git add .pawl/config .pawl/.gitignore
	same "$(git diff --cached --name-only | sort | xargs)" ".pawl/.gitignore .pawl/config"
	git commit -qm second
}

@test "init: no git command takes the queue away, whatever commit is checked out" {
	repository
	for commit in main main~1; do
		git checkout -q "$commit"
		for use in idle busy; do
			if [ "$use" = busy ]; then
				"$PAWL" log --follow >/dev/null 2>&1 3>&- &
				follower=$!
			fi
			: >untracked
			git add -A
			same "$(git diff --cached --name-only | xargs)" untracked
			git stash -q -u
			[ ! -e untracked ]
			git stash pop -q
			git reset -q
			git clean -qfd
			[ ! -e untracked ]
			call 0 list -q
			exactly t1
			pawl update t1 --append more
			[ "$use" = idle ] || kill "$follower"
		done
	done
	git worktree add -q ../beside
	cd ../beside
	git clean -qfd
	git add -A
	git stash -q -u
	same "$(git status --porcelain)" ""
	call 0 list -q
	exactly t1
}

@test "init: writes .git/info/exclude once, and after the user's own lines" {
	needs git
	git init -q .
	mkdir -p .git/info
	printf 'mine' >.git/info/exclude
	call 0 init
	call 0 init
	same "$(head -1 .git/info/exclude)" mine
	same "$(grep -c '^\*\*/.pawl/\*$' .git/info/exclude)" 1
	rm -r .git/info
	call 0 init
	same "$(grep -c '^!\*\*/.pawl/config$' .git/info/exclude)" 1
	rm -rf .git
	call 0 init
	not complains "exclude"
}

@test "init: follows no link to an exclude file" {
	needs git
	git init -q .
	printf 'theirs\n' >../victim
	mkdir ../folder
	ln -sf ../../../victim .git/info/exclude
	call 0 init
	complains "info/exclude"
	same "$(cat ../victim)" theirs
	rm -r .git/info
	ln -s ../../folder .git/info
	call 0 init
	complains "info/exclude"
	same "$(ls -A ../folder)" ""
}

@test "the nearest .pawl upward" {
	queue
	pawl create top
	mkdir -p a/b/c
	cd a/b/c
	call 0 list -q
	exactly t1
	cd ..
	"$PAWL" init -q --force --store "sqlite:$BATS_TEST_TMPDIR/inner.db"
	cd c
	call 0 list -q
	exactly ""
	cd ../..
	call 0 list -q
	exactly t1
}

@test "a linked worktree shares the main one's queue" {
	needs git
	git init -q main
	cd main
	git -c user.name=x -c user.email=x commit -q --allow-empty -m x
	mkdir -p sub
	queue
	pawl create x
	git worktree add -q ../linked
	cd ../linked
	call 0 list -q
	exactly t1
	mkdir -p sub/deep
	cd sub/deep
	call 0 create -q y
	exactly t2
	cd ../..
	ask 0 init
	is '.existed == true and (.folder | endswith("/main/.pawl"))'
	[ ! -e .pawl ]
	cd ../main
	call 0 list -q
	exactly "t1
t2"
}

@test "worktrees keep their tokens apart" {
	needs git
	git init -q main
	cd main
	git -c user.name=x -c user.email=x commit -q --allow-empty -m x
	queue
	pawl create x
	git worktree add -q ../linked
	pawl claim t1 -a al
	cd ../linked
	call 21 heartbeat t1 -a al
	cd ../main
	call 0 heartbeat t1 -a al
}

@test "init in a linked worktree makes it in the main one" {
	needs git
	git init -q main
	cd main
	git -c user.name=x -c user.email=x commit -q --allow-empty -m x
	git worktree add -q ../linked
	cd ../linked
	queue
	[ ! -e .pawl ]
	[ -d ../main/.pawl ]
}

@test "store: --store over PAWL_STORE over .pawl/config over one's own settings over .pawl" {
	one=sqlite:$BATS_TEST_TMPDIR/one.db two=sqlite:$BATS_TEST_TMPDIR/two.db
	three=sqlite:$BATS_TEST_TMPDIR/three.db four=sqlite:$BATS_TEST_TMPDIR/four.db
	for uri in $one $two $three $four; do
		mkdir d
		"$PAWL" init -q -C d --store "$uri"
		"$PAWL" create -q -C d "in $uri"
		rm -r d
	done
	"$PAWL" init -q
	title() { "$PAWL" list --json "$@" | jq -r '.tasks[].title'; }
	same "$(title)" ""
	mkdir -p "$XDG_CONFIG_HOME/pawl"
	echo "store = $four" >"$XDG_CONFIG_HOME/pawl/config"
	same "$(title)" "in $four"
	echo "store = $three" >>.pawl/config
	trust_config
	same "$(title)" "in $three"
	same "$(PAWL_STORE=$two title)" "in $two"
	same "$(PAWL_STORE=$two title --store "$one")" "in $one"
}

@test "store: a relative path in one's own settings is refused" {
	mkdir -p "$XDG_CONFIG_HOME/pawl"
	echo "store = sqlite:q.db" >"$XDG_CONFIG_HOME/pawl/config"
	call 40 list
	complains "must begin with /"
}

@test "-C: as if started there" {
	queue
	pawl create x
	mkdir sub
	cd /
	call 0 list -q -C "$work"
	exactly t1
	call 0 -C "$work/sub" list -q
	exactly t1
	cd "$work"
	call 0 --dir sub create -q y
	exactly t2
	call 0 list -q -C . --store sqlite:.pawl/queue.db || [ -n "${PAWL_TEST_STORE-}" ]
}

@test "queues of one store are apart" {
	needs_local "it makes queues or stores of its own"
	queue
	call 0 create -q x
	exactly t1
	unchanged 40 create -q other --queue two
	complains "pawl init --queue two"
	"$PAWL" init -q --queue two
	call 0 create -q other --queue two
	exactly t1
	PAWL_QUEUE=two call 0 list --json
	is '[.tasks[].title] == ["other"]'
	ask 0 list --queue default
	is '[.tasks[].title] == ["x"]'
	pawl claim t1 --queue two
	call 21 heartbeat t1
	call 0 heartbeat t1 --queue two
	call 0 next -q
	exactly t1
	call 10 next --queue two
	uri=$(store_uri)
	case $uri in *\?*) uri="$uri&queue=two" ;; *) uri="$uri?queue=two" ;; esac
	ask 0 list --store "$uri"
	is '[.tasks[].title] == ["other"]'
	call 0 heartbeat t1 --store "$uri"
	call 0 log --queue two
	[[ $output != *x* ]]
}

@test "pawl alone: help outside a queue, the overview inside" {
	call 0
	says "usage: pawl" "pawl init"
	queue
	call 0
	says "the queue is empty"
	pawl create x
	call 0
	says "1 Ready"
	ask 0
	is '.counts.Ready == 1'
	lines 0
	[[ $output == "SUCCESS:"* ]]
}

@test "config: get, set, list, unset, each with its origin" {
	queue
	call 0 config get lease
	exactly "lease = $lease  (default)"
	call 0 config get -q lease
	exactly "$lease"
	ask 0 config get lease
	is --arg lease "$lease" '.setting | .name == "lease" and .value == $lease and .origin == "default"'
	lines 0 config get lease
	[[ $output == "SUCCESS: name=lease value=$lease origin=default"* ]]
	call 0 config set lease 30m
	says "lease = 30m" ".pawl/config"
	line=$(grep -n '^lease' .pawl/config | cut -d: -f1)
	ask 0 config get lease
	is --arg o "$work/.pawl/config:$line" '.setting | .value == "30m" and .origin == $o'
	PAWL_LEASE=40m ask 0 config get lease
	is '.setting | .value == "40m" and .origin == "PAWL_LEASE"'
	ask 0 config set lease 31m
	lines 0 config set lease 32m
	same "$(grep -c '^lease' .pawl/config)" 1
	ask 0 config unset lease
	lines 0 config unset lease
	call 0 config unset lease
	call 0 config get -q lease
	exactly "$lease"
}

@test "config --user: one's own, under the queue's" {
	queue
	call 0 config set agent alice --user
	[ -f "$XDG_CONFIG_HOME/pawl/config" ]
	ask 0 config get agent
	is --arg o "$XDG_CONFIG_HOME/pawl/config:1" '.setting | .value == "alice" and .origin == $o'
	pawl config set agent bob
	call 0 config get -q agent
	exactly bob
	call 0 config unset agent
	call 0 config get -q agent
	exactly alice
	call 0 config unset agent --user
	ask 0 config get agent
	is '.setting.origin == "default"'
}

@test "config list: every setting, and where it comes from" {
	queue
	pawl config set max_abandoned 3
	ask 0 config list
	is '(.settings | length) > 10 and ([.settings[] | has("name") and has("value") and has("origin")] | all)'
	is '.settings[] | select(.name == "max_abandoned") | .value == "3" and (.origin | contains(".pawl/config:"))'
	call 0 config list
	says lease.min max_abandoned durability default
	lines 0 config list
	says "SETTING: name=lease value="
	call 0 config
	says lease.min
	ask 0 config list
	is '.settings[] | select(.name == "agent") | (.value | startswith("tester@")) and .origin == "default"'
	is '.settings[] | select(.name == "store") | .value | length > 0'
	ask 0 config get agent -a al
	is '.setting | .value == "al" and .origin == "--agent"'
}

@test "config set: an invalid value is refused, and the file stays as it is" {
	queue
	sum=$(sha256sum <.pawl/config)
	for pair in lease=soon lease=0 lease=-5 max_abandoned=-1 max_abandoned=x abandoned=maybe depends=no durability=some \
		format=xml color=blue timeout=x nonsense=1; do
		run --separate-stderr "$PAWL" config set "${pair%=*}" "${pair#*=}"
		echo "$pair: $status $stderr"
		[ "$status" -eq 2 ] || [ "$status" -eq 40 ]
		[ -n "$stderr" ]
		same "$sum" "$(sha256sum <.pawl/config)"
	done
	run "$PAWL" config set agent $'two\nlines = 1'
	[ "$status" -ne 0 ]
	same "$sum" "$(sha256sum <.pawl/config)"
}

@test "config set: comments and order of the file are kept" {
	queue
	printf '# mine\nlease = 1m ; short\n\n# and\nmax_abandoned = 4\n' >.pawl/config
	pawl config set lease 2m
	pawl config set color never
	grep -q '^# mine$' .pawl/config
	grep -q '^# and$' .pawl/config
	grep -q '^max_abandoned = 4$' .pawl/config
	call 0 config get -q lease
	exactly 2m
	call 0 config get -q color
	exactly never
}

@test "config: outside a queue" {
	call 0 config get lease
	call 40 config set lease 5m
	complains "pawl init" --user
	call 40 config unset lease
	call 40 config reset
	call 40 config profile testing
	call 0 config profile
	call 0 config set lease 5m --user
	same "$(ls -A)" ""
}

@test "every setting can come from the environment" {
	queue
	while read -r name value; do
		variable=PAWL_$(tr '[:lower:].' '[:upper:]_' <<<"$name")
		run --separate-stderr env "$variable=$value" "$PAWL" config get "$name" --json
		[ "$status" -eq 0 ]
		is --arg o "$variable" '.setting.origin == $o'
	done < <("$PAWL" config list --json | jq -r '.settings[] | select(.value != "") | .name + " " + .value')
	PAWL_FORMAT=json call 0 list
	is '.ok'
	PAWL_FORMAT=porcelain call 0 list
	says "=== Active Tasks ==="
	PAWL_FORMAT=json call 0 list --format text
	says "no tasks"
}

@test "config profile: ranks below set values and above defaults, and is shown with its values" {
	queue
	call 0 config profile testing
	says "profile = testing" ".pawl/config"
	call 0 config get lock.cli_timeout
	says "lock.cli_timeout = 1s" "(profile testing)"
	pawl config set lock.cli_timeout 2s
	call 0 config get -q lock.cli_timeout
	exactly 2s
	call 0 config profile
	says "profile = testing" DEVELOPMENT PRODUCTION TESTING lock.batch_timeout 120s
	ask 0 config profile
	is '.setting.value == "testing" and .profiles.production["lock.timeout"] == "30s"'
	is '.profiles.production["retry.max_attempts"] == "10"'
	lines 0 config profile
	lines 0 config profile none
	ask 0 config get retry.max_attempts
	is '.setting.origin == "default"'
	call 2 config profile chaos
	complains "development"
}

@test "config reset: all goes but where the queue is, and comments" {
	queue
	uri=$(store_uri)
	printf '# mine\nlease = 1m ; short\n' >>.pawl/config
	trust_config # pawl did not write this config, and it may name a store elsewhere
	pawl config set max_abandoned 4
	call 0 config reset
	says lease max_abandoned "no longer set"
	grep -q '^# mine$' .pawl/config
	same "$(store_uri)" "$uri"
	ask 0 config get max_abandoned
	is '.setting.origin == "default"'
	call 0 config reset
	says "no setting was set"
	pawl config set lease 2m
	ask 0 config reset
	is '.removed == ["lease"]'
	lines 0 config reset
}

@test "the names that scripts know; locks cannot be switched off" {
	queue
	call 0 config get lock.cli_timeout
	says "lock.cli_timeout = -" "(default)"
	call 0 config get -q lock.cli_timeout
	exactly ""
	QUEUE_LOCK_CLI_TIMEOUT=8 ask 0 config get lock.cli_timeout
	is '.setting | .value == "8" and .origin == "QUEUE_LOCK_CLI_TIMEOUT"'
	QUEUE_LOCK_HEALTH_MONITORING=false call 0 config get -q health.monitoring
	exactly off
	QUEUE_LOCK_DISABLED=true unchanged 40 create x
	complains QUEUE_LOCK_DISABLED "unset"
}

@test "init in a sub-folder of a queue's folder needs --force" {
	"$PAWL" init -q
	new x
	mkdir -p a/b
	cd a/b
	call 40 init
	complains "$work has a queue" "pawl init --force"
	ask 40 init --store sqlite:own.db
	call 40 init --queue two
	[ ! -e .pawl ]
	call 0 list -q
	exactly t1
	call 0 init --force
	[ -d .pawl ]
	call 0 list -q
	exactly ""
	call 0 init # it has its own by now
}

@test "init in a sub-folder asks on a terminal" {
	needs_terminal
	"$PAWL" init -q
	mkdir a
	cd a
	echo n | script -qec "$PAWL init" /dev/null >answer || true
	grep -q "would hide it" answer
	grep -q "No other queue was made" answer
	[ ! -e .pawl ]
	echo y | script -qec "$PAWL init" /dev/null >answer
	[ -d .pawl ]
}

@test "a new clone says that the queue was not committed" {
	git init -q main
	cd main
	"$PAWL" init -q
	new x
	git add -A
	git -c user.name=t -c user.email=t@t commit -qm x
	cd ..
	git clone -q main clone
	cd clone
	[ -e .pawl/config ]
	ask 40 list
	is '.error.message | test("Git does not keep a local queue")'
	is '.error.hint | test("git:origin")'
	call 40 create y
	call 0 init -q
	call 0 list
	# a queue that the config names is missing for another reason
	rm -r .pawl
	mkdir .pawl
	echo "store = sqlite:.pawl/other.db" >.pawl/config
	call 40 list
	[[ $stderr != *"local queue"* ]]
}

@test "init --outside: git clean does not delete the tasks" {
	git init -q .
	call 0 init --outside
	says "$XDG_STATE_HOME/pawl/queues/work-"
	new x
	mkdir sub
	(cd sub && "$PAWL" list -q | grep -qx t1)
	same "$(git status --short -uall)" "" # a path of this machine is not shared
	git clean -fdxq
	[ ! -e .pawl ]
	ask 0 init --outside
	is .existed
	call 0 list -q
	exactly t1
	same "$(stat -c %a "$XDG_STATE_HOME/pawl/queues"/*)" 700
	call 2 init --outside --store sqlite:x.db
	complains --outside
	# another folder of the same name has a queue of its own
	mkdir -p "$BATS_TEST_TMPDIR/elsewhere/work"
	cd "$BATS_TEST_TMPDIR/elsewhere/work"
	call 0 init --outside
	call 0 list -q
	exactly ""
}

@test "init --outside: a copied config does not lead others there" {
	git init -q .
	"$PAWL" init -q --outside
	cp -r .pawl "$BATS_TEST_TMPDIR/copy"
	mkdir "$BATS_TEST_TMPDIR/theirs"
	mv "$BATS_TEST_TMPDIR/copy" "$BATS_TEST_TMPDIR/theirs/.pawl"
	cd "$BATS_TEST_TMPDIR/theirs"
	call 40 list
	complains "pawl trust"
}

@test "init: a files: queue in a repository stays out of git" {
	git init -q .
	call 0 init --store files:tasks
	new x
	pawl claim t1
	same "$(git status --short -uall | sort)" "?? .pawl/.gitignore
?? .pawl/config
?? tasks/.gitignore"
	echo mine >tasks/.gitignore
	call 0 init
	same "$(cat tasks/.gitignore)" mine
	# among other files the patterns could hide some of them
	git init -q "$BATS_TEST_TMPDIR/other"
	cd "$BATS_TEST_TMPDIR/other"
	touch Cargo.toml Cargo.lock
	call 0 init --store files:.
	complains "out of git"
	[ ! -e .gitignore ]
	# outside of a repository there is nothing to keep it from
	mkdir "$BATS_TEST_TMPDIR/plain"
	cd "$BATS_TEST_TMPDIR/plain"
	call 0 init --store files:tasks
	[ ! -e tasks/.gitignore ]
}

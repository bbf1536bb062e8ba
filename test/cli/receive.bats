#!/usr/bin/env bats
# pawl guard --receive, as the pre-receive hook of a real repository: pushes under a stale fence change nothing there.

load common

setup() {
	fresh
	queue
	PAWL_QUEUE_URI=$(store_uri)
	export GIT_AUTHOR_NAME=al GIT_AUTHOR_EMAIL=al@example.org GIT_COMMITTER_NAME=al GIT_COMMITTER_EMAIL=al@example.org
	git init -q --bare -b main ../server.git
	hook "$PAWL_QUEUE_URI"
	git clone -q ../server.git ../clone 2>/dev/null
	git -C ../clone checkout -q -b main
	commit "Begin"
	git -C ../clone push -q origin main
}

# hook URI: the server checks its pushes against this store; empty: it names none
hook() {
	cat >../server.git/hooks/pre-receive <<-HOOK
		#!/bin/sh
		unset PAWL_STORE
		${1:+export PAWL_STORE='$1'}
		exec '$PAWL' guard --receive
	HOOK
	chmod +x ../server.git/hooks/pre-receive
}

# commit MESSAGE [TRAILER-VALUE]
commit() {
	git -C ../clone commit -q --allow-empty -m "$1" ${2:+-m "Pawl-Task: $2"}
}

# taken REF, refused TEXT REF: pushes HEAD to REF of the server
taken() {
	git -C ../clone push -q origin "HEAD:$1" 2>../said || cat ../said
	[ "$(git -C ../server.git rev-parse "$1")" = "$(git -C ../clone rev-parse HEAD)" ]
}

refused() {
	local before
	before=$(git -C ../server.git rev-parse -q --verify "$2") || before=none
	not git -C ../clone push -q origin "HEAD:$2" 2>../said
	cat ../said
	grep -qF "$1" ../said
	[ "$(git -C ../server.git rev-parse -q --verify "$2" || echo none)" = "$before" ]
}

@test "receive: work under the current fence is taken" {
	new x
	pawl claim t1 -a al --ttl 10m
	commit "Work" "t1 1"
	taken refs/heads/main
	taken refs/heads/pawl/t1/1
	commit "Without a task"
	taken refs/heads/main
}

@test "receive: work under a stale fence is refused, and no ref of the push moves" {
	new x
	pawl claim t1 -a al --ttl 10m
	pawl lock break t1 -r gone
	pawl claim t1 -a bo --ttl 10m
	commit "Late" "t1 1"
	refused "fence 1 of t1 is stale; bo claimed the task later, with fence 2" refs/heads/main
	refused "fence 1 of t1 is stale" refs/heads/pawl/t1/1
	not git -C ../clone push -q origin HEAD:refs/heads/other HEAD~1:refs/heads/fine
	not git -C ../server.git rev-parse -q --verify refs/heads/fine
	refused "fence 1 of t1 is stale" refs/tags/v1
}

@test "receive: a lease that expired, and a task that was given back, are refused" {
	new x
	new y
	pawl claim t1 -a al --ttl 1s
	lapsed t1
	commit "Late" "t1 1"
	refused "the lease of t1 with fence 1 has expired" refs/heads/main
	pawl claim t2 -a al --ttl 10m
	pawl release t2 -a al
	git -C ../clone reset -q --hard origin/main
	commit "Given back" "t2 1"
	refused "no agent holds t2 any more; it is Ready" refs/heads/main
}

@test "receive: finished and reviewed work is taken, failed work is not" {
	for n in 1 2 3; do
		new x
		pawl claim "t$n" -a al --ttl 10m
	done
	pawl done t1 -a al
	pawl review t2 -a al --summary "please look"
	pawl fail t3 -a al -r "no way"
	commit "Done" "t1 1"
	commit "In review" "T2 1"
	taken refs/heads/main
	commit "Failed" "t3 1"
	refused "no agent holds t3 any more; it is Failed" refs/heads/main
}

@test "receive: commits that a late holder had pushed to a branch do not reach another ref" {
	new x
	pawl claim t1 -a al --ttl 10m
	commit "In time" "t1 1"
	taken refs/heads/pawl/t1/1
	pawl lock break t1 -r gone
	pawl claim t1 -a bo --ttl 10m
	refused "fence 1 of t1 is stale" refs/heads/main
	refused "fence 1 of t1 is stale" refs/heads/copy
	# its successor builds on them
	commit "By the successor" "t1 2"
	taken refs/heads/main
	# they are on the default branch now, so everybody may build on them
	pawl done t1 -a bo
	pawl reopen t1 -r again
	commit "Somebody else's"
	taken refs/heads/feature
}

@test "receive: the branch of a stale holder may be deleted" {
	new x
	pawl claim t1 -a al --ttl 10m
	taken refs/heads/pawl/t1/1
	pawl lock break t1 -r gone
	git -C ../clone push -q origin :refs/heads/pawl/t1/1
	not git -C ../server.git rev-parse -q --verify refs/heads/pawl/t1/1
}

@test "receive: what cannot be checked is refused" {
	local trailer
	new x
	pawl claim t1 -a al --ttl 10m
	for trailer in "t1" "t1 x" "t1 0" "t1 -1" "t1 1 2" "../t1 1" "1"; do
		commit "Unclear" "$trailer"
		refused "which is not: ID FENCE" refs/heads/main
		git -C ../clone reset -q --hard origin/main
	done
	commit "Unknown" "t9 1"
	refused t9 refs/heads/main
	git -C ../clone reset -q --hard origin/main
	commit "Too early" "t1 7"
	refused "t1 has had no fence 7 yet" refs/heads/main
	git -C ../clone reset -q --hard origin/main
	refused "a branch below pawl/ is called pawl/ID/FENCE" refs/heads/pawl/t1
	refused "a branch below pawl/ is called pawl/ID/FENCE" refs/heads/pawl/t1/1/more
}

@test "receive: without a store that answers nothing is taken" {
	new x
	pawl claim t1 -a al --ttl 10m
	commit "Work" "t1 1"
	hook ''
	refused "needs the queue's store" refs/heads/main
	hook "sqlite:$BATS_TEST_TMPDIR/no/queue.db"
	refused "there is no folder" refs/heads/main
	hook "$PAWL_QUEUE_URI"
	taken refs/heads/main
}

@test "receive: the trailer counts in any case, and a replaced commit does not hide it" {
	new x
	pawl claim t1 -a al --ttl 10m
	pawl lock break t1 -r gone
	git -C ../clone commit -q --allow-empty -m $'Quote\n\n  Pawl-Task: t1 1\n\nis what they wrote there. Pawl-Task: t1 1'
	taken refs/heads/main
	git -C ../clone commit -q --allow-empty -m $'Sly\n\npawl-task:   t1\n  1'
	refused "no agent holds t1 any more" refs/heads/main
	commit "Bad" "t1 1"
	git -C ../clone push -q origin HEAD~2:refs/heads/side
	refused "no agent holds t1 any more" refs/heads/side
}

@test "receive: the trailer counts in each paragraph, under all settings of git" {
	local message
	new x
	pawl claim t1 -a al --ttl 10m
	pawl lock break t1 -r gone
	for message in $'Work\n\nPawl-Task: t1 1\n\nCo-Authored-By: bo <bo@example.org>' $'Work\nPawl-Task: t1 1' \
		$'Pawl-Task: t1 1\n\nWork' $'Work\n\nA line\nanother\none more\nand one\nPawl-Task : t1 1\nthe last' \
		$'Work\n\nc 0123\nPawl-Task:\tt1 1\r\n---\nPatch'; do
		git -C ../clone commit -q --allow-empty --cleanup=verbatim -m "$message"
		refused "no agent holds t1 any more" refs/heads/main
		git -C ../clone reset -q --hard origin/main
	done
	git -C ../server.git config trailer.Pawl-Task.key Task
	git -C ../server.git config trailer.separators =
	git -C ../server.git config i18n.logOutputEncoding UTF-16
	git -C ../server.git config log.showSignature true
	commit "Work" "t1 1"
	refused "no agent holds t1 any more" refs/heads/main
}

@test "receive: a line of any length" {
	local long
	new x
	pawl claim t1 -a al --ttl 10m
	long=$(printf '%09000d' 0)
	git -C ../clone commit -q --allow-empty -m "Long" -m "$long Pawl-Task: t1 7" -m "Pawl-Task: t1 1"
	taken refs/heads/main
	commit "Unclear" "$long"
	refused "which is not: ID FENCE" refs/heads/main
}

@test "receive: a ghost's commit beside or above those of the current holder is refused" {
	new x
	pawl claim t1 -a al --ttl 10m
	git -C ../clone checkout -q -b ghost
	commit "Late" "t1 1"
	pawl lock break t1 -r gone
	pawl claim t1 -a bo --ttl 10m
	git -C ../clone checkout -q -b holder main
	commit "By bo" "t1 2"
	# above
	git -C ../clone checkout -q -b above
	git -C ../clone cherry-pick --allow-empty ghost >/dev/null
	refused "has the stale fence 1 of t1, and no commit with fence 2 builds on it" refs/heads/main
	# beside
	git -C ../clone checkout -q -b beside holder
	git -C ../clone merge -q -m "Merge both" ghost
	refused "has the stale fence 1 of t1, and no commit with fence 2 builds on it" refs/heads/main
	# the branch of the current fence says that its holder merged them
	taken refs/heads/pawl/t1/2
	# and so does the merge with a trailer
	git -C ../clone commit -q --amend -m "Merge both" -m "Pawl-Task: T1 2"
	taken refs/heads/main
}

@test "receive: a holder that was stopped between its own check and its push is refused" {
	local agent
	new x
	cat >../agent <<-'AGENT'
		#!/bin/sh
		"$PAWL" claim -q t1 -a al --ttl 2s && "$PAWL" guard -q t1 -a al || exit 1
		git -C ../clone commit -q --allow-empty -m Late -m "Pawl-Task: t1 1"
		kill -STOP $$
		git -C ../clone push -q origin HEAD:main
	AGENT
	chmod +x ../agent
	../agent 2>../said 3>&- &
	agent=$!
	soon stopped "$agent"
	lapsed t1
	pawl claim t1 -a bo --ttl 10m
	kill -CONT "$agent"
	not wait "$agent"
	grep -qF "fence 1 of t1 is stale; bo claimed the task later" ../said
	[ "$(git -C ../server.git log -1 --format=%s main)" = Begin ]
}

stopped() {
	grep -q '^State:.T' "/proc/$1/status"
}

@test "receive: its own words: usage, output, an answer for programs" {
	local pushed
	new x
	pawl claim t1 -a al --ttl 10m
	export PAWL_STORE=$PAWL_QUEUE_URI
	call 2 guard t1 --receive
	complains "neither an ID nor a fence"
	call 2 guard --receive <<<"hello"
	complains 'lines "OLD NEW REF"'
	call 0 guard --receive </dev/null
	[ -z "$output" ]
	ask 0 guard --receive </dev/null
	[ "$(jq .checked <<<"$output")" -eq 0 ]
	commit "Work" "t1 1"
	taken refs/heads/pawl/t1/1
	pushed="$(git -C ../server.git rev-parse main) $(git -C ../server.git rev-parse pawl/t1/1) refs/heads/new"
	cd ../server.git
	call 0 guard --receive <<<"$pushed"
	ask 0 guard --receive <<<"$pushed"
	[ "$(jq .checked <<<"$output")" -eq 1 ]
	lines 0 guard --receive <<<"$pushed"
	pawl lock break t1 -r gone
	call 21 guard --receive <<<"$pushed"
	ask 21 guard --receive <<<"$pushed"
	call 30 guard --receive <<<"$(tr ' ' '\n' <<<"$pushed" | head -n 1) ${pushed:41:36}0000 refs/heads/new"
	complains "git could not read what the push brings"
}

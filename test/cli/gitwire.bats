#!/usr/bin/env bats
# shellcheck disable=SC2016 # hooks are written with their variables
# git: on a repository that is not a path: its cost, the answers without a connection, and the effect of foreign
# changes.

load common

setup() {
	fresh
	bare_repository queue
	export PAWL_STORE=git:file://$remote
	"$PAWL" init -q
	"$PAWL" create one -q
	"$PAWL" create two -q
}

# counted CODE ARG...: like call; afterwards `processes NAME` is how many git programs of that name it
# started
counted() {
	rm -rf trace
	mkdir trace
	GIT_TRACE2_EVENT=$PWD/trace call "$@"
}

processes() {
	grep -rhc "\"event\":\"start\".*\"argv\":\[\"[^\"]*git\",\(\"-[cC]\",\"[^\"]*\",\)*\"$1\"" trace | awk '{ n += $1 } END { print n + 0 }'
}

# elsewhere ARG...: pawl in another clone
elsewhere() {
	XDG_CACHE_HOME=$HOME/elsewhere "$PAWL" "$@"
}

# by_ssh [LINE...]: from here on the remote is reached by a program called ssh, which runs these shell lines
# (default: the server side that it is asked for)
by_ssh() {
	printf '%s\n' '#!/bin/bash' 'command=${!#}' "${@:-eval \"\$command\"}" >ssh
	chmod +x ssh
	export GIT_SSH_COMMAND=$PWD/ssh PAWL_STORE=git:ssh://host$remote
}

@test "gitwire: a claim is one connection and at most five git processes, also for the first claim" {
	counted 0 claim t1
	same "$(processes receive-pack)" 1
	same "$(processes upload-pack)" 0
	[ "$(processes '[a-z-]*')" -le 5 ]
	counted 0 next --claim
	same "$(processes receive-pack) $(processes upload-pack)" "1 0"
	counted 0 list
	same "$(processes receive-pack) $(processes upload-pack)" "0 1"
	counted 0 done t1
	same "$(processes receive-pack) $(processes upload-pack)" "1 0"
}

@test "gitwire: on a branch of locks or of ids a change is one connection, too" {
	PAWL_STORE=git:file://$remote#aitask-ids
	counted 0 id init
	same "$(processes push)" 0
	counted 0 id claim
	same "$(processes receive-pack) $(processes upload-pack) $(processes push)" "1 0 0"
	PAWL_STORE=git:file://$remote#aitask-locks
	counted 0 lock init
	same "$(processes push)" 0
	counted 0 lock acquire 7
	same "$(processes receive-pack) $(processes upload-pack) $(processes push)" "1 0 0"
	counted 0 lock release 7
	same "$(processes receive-pack) $(processes upload-pack) $(processes push)" "1 0 0"
}

@test "gitwire: a claim also fetches the changes of another clone" {
	elsewhere claim t1 -q --agent other
	counted 20 claim t1
	complains other
	same "$(processes receive-pack) $(processes upload-pack)" "1 1"
	elsewhere done t1 -q --agent other
	counted 0 claim t2
	same "$(processes receive-pack) $(processes upload-pack)" "1 1"
	counted 0 done t2
	same "$(processes receive-pack) $(processes upload-pack)" "1 0"
}

@test "gitwire: a claim does not move the base, so that claims of different tasks do not meet" {
	elsewhere claim t1 -q --agent other # the very first claim gives the queue its id
	elsewhere release t1 -q --agent other
	rm "$XDG_STATE_HOME"/pawl/*.queue
	before=$(git -C "$remote" rev-parse refs/pawl/default/base)
	call 0 claim t1
	call 0 claim t2
	same "$(git -C "$remote" rev-parse refs/pawl/default/base)" "$before"
}

@test "gitwire: --cached asks nobody and says how old it is; without it a dead remote is an error" {
	call 0 list
	elsewhere create three -q
	mv "$remote" "$remote.away"
	call 30 list
	counted 0 list --cached
	same "$(processes '[a-z-]*')" 0
	says one
	complains ago
	ask 0 list --cached
	is '.count == 2 and .cached_age_ms >= 0 and (.as_of | endswith("Z"))'
	ask 0 next --cached
	is '.task.id == "t1" and .as_of'
	ask 0 show t2 --cached
	is '.task.title == "two" and .as_of'
	ask 0 lock list --cached
	is '.count == 0 and .as_of'
	call 2 next --cached --claim
	mv "$remote.away" "$remote"
	ask 0 list --cached
	is '.count == 2'
	ask 0 list
	is '.count == 3 and (has("as_of") | not)'
	XDG_CACHE_HOME=$HOME/never call 30 list --cached
	complains "without --cached"
	PAWL_STORE=sqlite:$work/q.db "$PAWL" init -q
	PAWL_STORE=sqlite:$work/q.db ask 0 list --cached
	is 'has("as_of") | not'
}

@test "gitwire: --wait looks less and less often, within the settings" {
	call 0 claim t1
	call 0 claim t2
	call 0 config set poll.base_delay 200ms
	counted 10 next --claim --wait 3s
	n=$(processes receive-pack)
	[ "$n" -ge 2 ]
	[ "$n" -le 6 ]
	elsewhere create three -q
	ask 0 next --claim --wait 30s
	is '.task.id == "t3"'
}

@test "gitwire: a crashed server is an error, never a free task" {
	call 0 claim t1
	printf '#!/bin/sh\nkill -9 $PPID\n' >"$remote/hooks/pre-receive"
	chmod +x "$remote/hooks/pre-receive"
	call 30 claim t2 --timeout 500ms
	complains "cannot reach"
	rm "$remote/hooks/pre-receive"
	call 0 claim t2
}

@test "gitwire: an answer that was lost is found as one's own" {
	printf '#!/bin/sh\nkill -9 $PPID\n' >"$remote/hooks/post-update"
	chmod +x "$remote/hooks/post-update"
	printf '#!/bin/sh\n[ "$1" != committed ] || kill -9 $PPID\n' >"$remote/hooks/reference-transaction"
	chmod +x "$remote/hooks/reference-transaction"
	ask 0 claim t1
	is '.lock.fence == 1 and (.repeated | not)'
	ask 0 create three
	is '.task.id == "t3"'
	rm "$remote"/hooks/*
	ask 0 list
	is '.count == 3'
	ask 0 log t1
	is '[.events[] | select(.event == "claimed")] | length == 1'
}

@test "gitwire: a stranger's forced push is named, others continue, and the task comes back with its commit" {
	good=$(git -C "$remote" rev-parse refs/pawl/default/t/t1)
	bad=$(git -C "$remote" commit-tree -m junk "$(git -C "$remote" mktree </dev/null)")
	git -C "$remote" update-ref refs/pawl/default/t/t1 "$bad"
	call 40 claim t1
	complains t1 doctor
	call 0 claim t2
	call 40 doctor
	says "update-ref"
	git -C "$remote" update-ref refs/pawl/default/t/t1 "$good"
	call 0 claim t1
}

@test "gitwire: without its base the queue is gone, and the last fetched base brings it back" {
	call 0 claim t1
	git -C "$remote" update-ref -d refs/pawl/default/base
	call 40 list
	complains "pawl init" "to restore the queue"
	call 40 claim t2
	call 40 doctor
	says refs/pawl-seen
	"$PAWL" list 2>&1 | sed -n 's/.*to restore the queue that was here: \(.*\); to begin an empty one.*/\1/p' >cure
	sh -e cure
	ask 0 list
	is '.count == 2'
	call 0 heartbeat t1
}

@test "gitwire: init makes a queue where there was one" {
	rm -rf "$remote"
	git init -q --bare "$remote"
	call 0 init
	ask 0 list
	is '.count == 0'
}

@test "gitwire: a task's deleted ref comes back from the fetched copy" {
	call 0 claim t1
	git -C "$remote" update-ref -d refs/pawl/default/t/t1
	ask 0 list --cached
	is '.count == 2'
	cache=$(echo "$XDG_CACHE_HOME"/pawl/git/*.git)
	kept=$(git -C "$cache" for-each-ref --format='%(refname)' refs/pawl-seen | grep '/t/t1$')
	git -C "$cache" push -q "$remote" "$kept:refs/pawl/default/t/t1"
	call 0 heartbeat t1
}

@test "gitwire: connections cut at five points lose nothing and give nothing twice" {
	"$PAWL_SOURCE/test/race/gitremote" cut 1
}

@test "gitwire: remotes that are options, helpers or worse are refused, and nothing is run" {
	local bad
	git init -q clone
	cd clone
	for bad in '--upload-pack=touch /tmp/pawl-was-here' '-oProxyCommand=touch' 'ext::touch pawned' 'fd::7' 'ssh://-oProxyCommand=x/y' \
		'git://-x/y' "-x:y"; do
		call 40 list --store "git:$bad"
		git config remote.evil.url "$bad"
		call 40 list --store git:evil
	done
	for bad in 'a..b' 'a b' '-x' 'refs/heads/../x' 'x.lock' 'a~1'; do
		call 40 list --store "git:file://$remote#$bad"
	done
	[ ! -e pawned ]
	[ ! -e /tmp/pawl-was-here ]
}

@test "gitwire: a huge blob in a ref of the queue is not a record, and others are not affected" {
	blob=$(head -c 40000000 /dev/zero | git -C "$remote" hash-object -w --stdin)
	tree=$(printf '100644 blob %s\ttask.json\n' "$blob" | git -C "$remote" mktree)
	good=$(git -C "$remote" rev-parse refs/pawl/default/t/t1)
	git -C "$remote" cat-file commit "$good" | sed "s/^tree .*/tree $tree/" >huge
	git -C "$remote" update-ref refs/pawl/default/t/t1 "$(git -C "$remote" hash-object -w -t commit "$PWD/huge")"
	call 40 show t1
	call 0 claim t2
	git -C "$remote" update-ref refs/pawl/default/t/t1 "$good"
	call 0 show t1
}

@test "gitwire: an interrupted fetch has no effect" {
	local listed cut
	listed=$(printf 0000 | git upload-pack "$remote" | wc -c)
	for cut in 4 8 12 13 19 20 100; do
		by_ssh "eval \"\$command\" | dd bs=1 count=$((listed + cut)) status=none"
		call 30 list
		complains "cannot reach"
	done
	by_ssh
	ask 0 list
	is '.count == 2'
}

@test "gitwire: a server that cannot do all or nothing is named at once; one ref at a time still works" {
	local start=$SECONDS
	git -C "$remote" config receive.advertiseAtomic false
	ask 40 create three
	is '.error.message | contains("several refs at once")'
	is '.error.hint | contains("#BRANCH")'
	by_ssh
	GIT_SSH_VARIANT=simple call 40 create three # by git itself
	complains "several refs at once"
	PAWL_STORE=git:file://$remote#board
	call 0 init
	call 0 create three
	[ $((SECONDS - start)) -lt 8 ]
	git -C "$remote" config receive.advertiseAtomic true
	PAWL_STORE=git:file://$remote
	ask 0 list
	is '.count == 2'
}

@test "gitwire: nobody is asked for a password, and helpers that know it are" {
	printf '#!/bin/sh\necho "$0" >>%q\necho secret\n' "$PWD/asked" >ask
	chmod +x ask
	by_ssh 'printf "%s\n" "$@" >args' 'printf "protocol=https\nhost=h\nusername=u\n\n" | git credential fill >filled 2>&1' \
		'[ "${SSH_ASKPASS_REQUIRE-}" = never ] || "$SSH_ASKPASS"' 'eval "$command"'
	export GIT_ASKPASS=$PWD/ask SSH_ASKPASS=$PWD/ask SSH_ASKPASS_REQUIRE=force DISPLAY=:9
	call 0 list
	[ ! -e asked ]
	grep -q "could not read Password" filled
	grep -qx -- -oBatchMode=yes args
	git config --file gitconfig core.askPass "$PWD/ask"
	unset GIT_ASKPASS
	GIT_CONFIG_GLOBAL=$PWD/gitconfig call 0 list
	[ ! -e asked ]
	git config --file gitconfig credential.helper '!echo password=known;:'
	GIT_CONFIG_GLOBAL=$PWD/gitconfig call 0 list
	grep -qx password=known filled
}

@test "gitwire: many first users of a repository at once make one copy of it" {
	local i
	for _ in 1 2 3 4; do
		rm -rf "$XDG_CACHE_HOME" failed
		for i in 1 2 3 4 5 6 7 8; do
			"$PAWL" list -q >/dev/null 2>>said || echo "$i" >>failed &
		done
		wait
		[ ! -e failed ] || {
			cat said
			return 1
		}
	done
}

@test "gitwire: a password in a URL is used, and shown nowhere" {
	local command
	git init -q clone
	cd clone
	git config remote.far.url https://ann:SECRET@127.0.0.1:1/q.git
	for command in list doctor "create x" "init --force" "lock init"; do
		for PAWL_STORE in git:https://ann:SECRET@127.0.0.1:1/q.git git:far git:far#board git:ftp://ann:SECRET@127.0.0.1/q; do
			# shellcheck disable=SC2086 # words
			run "$PAWL" $command
			echo "$command: $output"
			[ "$status" -ne 0 ]
			[[ $output == *127.0.0.1* ]]
			[[ $output != *SECRET* ]]
		done
	done
	printf '#!/bin/sh\necho "$*" >>%q\nexec git-upload-pack %q\n' "$PWD/args" "$remote" >ssh
	chmod +x ssh
	GIT_SSH_COMMAND=$PWD/ssh PAWL_STORE=git:ssh://ann:SECRET@host/q.git call 0 doctor
	[[ $output$stderr != *SECRET* ]]
	says ssh://ann@host/q.git
	grep -q ann:SECRET@host args
}

@test "gitwire: url.*.insteadOf of the settings counts, and its result is checked" {
	git config --file "$HOME/.gitconfig" "url.file://$BATS_TEST_TMPDIR/.insteadOf" short:
	git config --file "$HOME/.gitconfig" url.ext::sh.insteadOf short:bad
	git config --file "$HOME/.gitconfig" url.-x.insteadOf git://nowhere/
	ask 0 list --store git:short:queue.git
	is '.count == 2'
	call 40 list --store git:short:bad/x
	complains "helper program"
	call 40 list --store git://nowhere/x
	complains "as an option would"
	git init -q clone
	cd clone
	git config "url.file://$BATS_TEST_TMPDIR/.insteadOf" https://forge.invalid/
	ask 0 list --store git:https://forge.invalid/queue.git
	is '.count == 2'
}

@test "gitwire: a damaged object in a pack of the copy is named, with the copy" {
	call 0 list
	cache=$(echo "$XDG_CACHE_HOME"/pawl/git/*.git)
	git -C "$cache" repack -adq
	pack=$(echo "$cache"/objects/pack/*.pack)
	chmod u+w "$pack"
	head -c $(($(stat -c %s "$pack") - 40)) /dev/zero | dd of="$pack" bs=1 seek=12 conv=notrunc status=none
	call 40 list
	complains "cannot read the object" "$cache" fsck
	[[ $stderr =~ "the object "[0-9a-f]{40}" in " ]]
	rm -r "$cache"
	call 0 list
}

# damaged REF: the object of REF in the copy of the remote is empty from here on
damaged() {
	local hex file
	hex=$(git -C "$remote" rev-parse "$1")
	file=$(echo "$XDG_CACHE_HOME"/pawl/git/*.git/objects/"${hex:0:2}/${hex:2}")
	[ -s "$file" ]
	chmod u+w "$file"
	: >"$file"
	object=$hex
}

@test "gitwire: a damaged object of the copy is fetched again, and hides no task" {
	local ref
	call 0 list
	for ref in t/t1 base; do
		rm -rf "$XDG_CACHE_HOME"/pawl/git/*.git/pawl/memo
		damaged refs/pawl/default/$ref
		call 40 list --cached
		complains "$object" "$XDG_CACHE_HOME" "without --cached"
		ask 0 list
		is '.count == 2'
		ask 0 list --cached
		is '.count == 2'
	done
	damaged refs/pawl/default/t/t1
	ask 0 list --cached # its content is known all the same
	is '.count == 2'
	call 40 show t1 --cached
	complains "$object" "without --cached"
	call 0 list
	damaged refs/pawl/default/t/t1
	call 0 log t1 # a read repairs it
	says created
	damaged refs/pawl/default/t/t1
	call 0 claim t1
	git -C "$(echo "$XDG_CACHE_HOME"/pawl/git/*.git)" cat-file -e "$object"
	hex=$(git -C "$remote" rev-parse refs/pawl/default/t/t2)
	rm "$XDG_CACHE_HOME"/pawl/git/*.git/objects/"${hex:0:2}/${hex:2}"
	ask 0 next
	is '.task.id == "t2"'
	PAWL_STORE=git:file://$remote#board
	call 0 init
	call 0 create three
	damaged refs/heads/board
	ask 0 list
	is '.count == 1'
	PAWL_STORE=git:file://$remote#aitask-locks
	call 0 lock init
	call 0 lock acquire 7
	damaged refs/heads/aitask-locks
	ask 0 lock check 7
}

@test "gitwire: refs of others below the queue's are not fetched, and packed-refs may be a link" {
	local copy
	git -C "$remote" update-ref refs/pawl/default/x/y/z "$(git -C "$remote" rev-parse refs/pawl/default/t/t1)"
	call 0 list
	copy=$(echo "$XDG_CACHE_HOME"/pawl/git/*.git)
	same "$(git -C "$copy" for-each-ref | grep -c default/)" 3
	git -C "$copy" pack-refs --all
	mv "$copy/packed-refs" "$copy/elsewhere"
	ln -s elsewhere "$copy/packed-refs"
	ask 0 list --cached
	is '.count == 2'
	call 0 claim t2
}

@test "gitwire: pawl run notices a broken lock without a wake-up, long before the next renewal" {
	local pid began=$SECONDS rc=0
	"$PAWL" run t1 --ttl 1h --grace 1s -- sh -c 'echo $$ >cmd; exec sleep 20' 2>err 3>&- &
	pid=$!
	soon [ -s cmd ]
	elsewhere lock break t1 -r r -a boss -q
	wait "$pid" || rc=$?
	same "$rc" 21
	[ "$((SECONDS - began))" -lt 15 ]
}

@test "gitwire: lock health says that nothing is counted here" {
	call 0 claim t1 -a al
	call 20 claim t1 -a bo
	ask 0 lock health
	is '.health | .counting == false and (has("refused") | not)'
	call 0 lock health
	says "this store counts nothing"
}

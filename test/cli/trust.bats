#!/usr/bin/env bats
# Trust in a config that may have come with a clone. For an attacker's attempts see
# test/hostile/attacks/trust.bash.

load common

setup() {
	fresh
	mkdir clone
	cd clone || return
	git init -q
	mkdir .pawl
	here=$work/clone
}

# elsewhere: the clone's config names a queue beside the clone
elsewhere() {
	"$PAWL" --store "sqlite:$work/team.db" --dir "$work" init -q
	rm -r "$work/.pawl"
	echo "store = sqlite:../team.db" >.pawl/config
}

# within MS COMMAND...: takes no longer
within() {
	local ms=$1 began
	began=$(date +%s%3N)
	shift
	"$@"
	[ $(($(date +%s%3N) - began)) -lt "$ms" ]
}

# server: a port that accepts connections and never answers
server() {
	needs python3
	python3 -c 'import socket, time
s = socket.create_server(("127.0.0.1", 0))
open("'"$BATS_TEST_TMPDIR"'/port.tmp", "w").write(str(s.getsockname()[1]))
import os; os.rename("'"$BATS_TEST_TMPDIR"'/port.tmp", "'"$BATS_TEST_TMPDIR"'/port")
kept = []
while True: kept.append(s.accept())' 3>&- &
	server=$!
	soon test -e "$BATS_TEST_TMPDIR/port"
	port=$(cat "$BATS_TEST_TMPDIR/port")
}

teardown() {
	[ -z "${server-}" ] || kill "$server"
}

@test "trust: a store elsewhere is opened once its config is trusted" {
	elsewhere
	call 40 list
	complains "$here/.pawl/config:1: store = sqlite:../team.db" "$work/team.db" "pawl trust"
	ask 40 create Task
	is '.error.message | test("pawl trust")'
	lines 40 list
	call 0 trust --sha256 "$(config_hash)"
	says "trusted: $here/.pawl/config" "store = sqlite:../team.db"
	call 0 create Task
	ask 0 trust
	is '.state == "trusted" and (.config | test("/clone/.pawl/config$")) and (.asks | test("team.db"))'
	cd "$work/clone"
	mkdir -p a/b
	cd a/b
	call 0 list
	[ "$(stat -c %a "$XDG_STATE_HOME"/pawl/trust "$XDG_STATE_HOME"/pawl/trust/* | tr '\n' ' ')" = '700 600 ' ]
}

@test "trust: not needed for a store inside, nor where there is no config" {
	rmdir .pawl
	call 40 trust
	complains "no queue"
	pawl init
	ask 0 trust
	is '.state == "not needed"'
	for uri in sqlite:q.db sqlite:.pawl/other.db files:tasks/deeper mem:x git:q.git git:./q.git; do
		echo "store = $uri" >.pawl/config
		ask 0 trust
		is '.state == "not needed"'
	done
	[ ! -e "$XDG_STATE_HOME/pawl/trust" ]
}

@test "trust: the user's own word needs none" {
	elsewhere
	call 0 list --store "sqlite:$work/team.db"
	PAWL_STORE=sqlite:$work/team.db call 0 list
	echo "# nothing" >.pawl/config
	mkdir -p "$XDG_CONFIG_HOME/pawl"
	echo "store = sqlite:$work/team.db" >"$XDG_CONFIG_HOME/pawl/config"
	call 0 list
	# the clone's config takes precedence over the user's own
	echo "store = sqlite:../else.db" >.pawl/config
	call 40 list
	complains "pawl trust"
}

@test "trust: a remote of the repository needs none" {
	git init -q --bare "$work/origin.git"
	git remote add origin "$work/origin.git"
	echo "store = git:origin" >.pawl/config
	call 0 init
	call 0 create Task
	ask 0 trust
	is '.state == "not needed"'
	git commit -q --allow-empty -m x 2>/dev/null || git -c user.name=x -c user.email=x@x commit -q --allow-empty -m x
	git worktree add -q "$work/tree"
	cd "$work/tree"
	call 0 list
	says Task
	cd "$here"
	git config include.path "$HOME/more" # a file of the user
	call 0 list
	git remote rename origin other
	call 40 list
}

@test "trust: a branch needs it, also in a remote of the repository" {
	git init -q --bare "$work/origin.git"
	git remote add origin "$work/origin.git"
	for uri in git:origin#board "git:.?prefix=refs/heads/q" "git:origin?layout=branch"; do
		rm -rf .pawl
		call 0 init --store "$uri"
		call 0 create Task
		call 0 list
		says Task
		call 0 trust --revoke
		call 40 list
		complains "store = $uri" "a branch" "pawl trust"
		trust_config
		call 0 list
	done
	rm -r .pawl
	call 0 init --store git:./q.git#board # init creates it
	call 0 list
}

@test "trust: a repository with a worktree below needs it" {
	git init -q sub
	rmdir .pawl
	call 0 init --store git:sub
	call 0 create Task
	call 0 list
	call 0 list --store git:sub
	call 0 trust --revoke
	call 40 list
	complains "$here/sub, a repository inside of $here" "pawl trust"
	call 0 list --store git:sub
	says Task
}

@test "trust: a path to a repository counts from the folder that has .pawl" {
	rmdir .pawl
	mkdir -p a/b
	git init -q --bare q.git
	for uri in git:q.git git:./r.git git:. git:../beside.git; do
		rm -rf .pawl
		call 0 init --store "$uri"
		grep -qxF "store = $uri" .pawl/config
		call 0 create "Task of $uri"
		cd a/b
		call 0 list
		says "Task of $uri"
		call 0 -C "$here/a" list
		says "Task of $uri"
		cd /
		call 0 -C "$here" list
		says "Task of $uri"
		call 0 -C "$here/a/b" next --claim
		cd "$here/a"
		call 0 done t1
		cd "$here"
	done
	[ ! -e a/q.git ]
	git init -q --bare "$work/origin.git"
	git remote add origin "$work/origin.git"
	mkdir origin # the name means the remote
	rm -rf .pawl
	call 0 init --store git:origin
	call 0 create "Task of a remote"
	cd a/b
	call 0 list
	says "Task of a remote"
	[ -n "$(git -C "$work/origin.git" for-each-ref)" ]
	cd "$here"
	git init -q --bare "$work/far.git"
	git config -f "$HOME/.gitconfig" remote.far.url "$work/far.git" # --global is /dev/null in tests
	rm -rf .pawl
	call 0 init --store git:far
	call 0 create "Task of the user's own remote"
	call 0 list
	[ -n "$(git -C "$work/far.git" for-each-ref)" ]
}

@test "trust: a queue of another user needs it in a folder of all, not in a group's" {
	pawl init
	pawl create Task
	chown -R 12345 .pawl 2>/dev/null || skip "needs two users"
	chmod -R a+rwX .pawl
	mkdir sub
	for mode in 0755 2775 0770; do
		chmod "$mode" .
		call 0 list
		says Task
	done
	for mode in 1777 0777; do
		chmod "$mode" .
		call 40 list
		complains "belongs to the user 12345" "pawl trust"
		cd sub
		call 0 prime
		says "pawl trust"
		cd ..
	done
	at_terminal y trust
	call 0 list
	chown 0 .pawl
	call 0 list
}

@test "trust: init and config set trust the store that the user names" {
	rmdir .pawl
	call 0 init --store "sqlite:$work/a.db"
	call 0 create Task
	call 0 config set lease 5m
	call 0 list
	call 0 config set store "sqlite:$work/b.db"
	call 0 init
	call 0 list
	call 0 config unset lease
	call 0 config reset
	call 0 list
	PAWL_STORE=mem:x call 0 config set lease 6m
	call 0 list
	call 0 config unset store
	call 0 init
	call 0 list
}

@test "trust: init says when it cannot remember its trust" {
	rmdir .pawl
	mkdir -p "$XDG_STATE_HOME"
	echo "in the way" >"$XDG_STATE_HOME/pawl"
	call 0 init --store "sqlite:$work/a.db"
	complains "cannot remember your trust"
	call 40 list
	call 30 trust --sha256 "$(config_hash)"
	complains "cannot remember your trust"
}

@test "trust: --list shows the trusted configs, and those that have changed since" {
	call 0 trust --list
	says "you do not trust any config"
	elsewhere
	trust_config
	ask 0 trust --list
	is '.trusted | length == 1 and (.[0] | .state == "trusted" and .store == "sqlite:'"$work"'/team.db")'
	lines 0 trust --list
	matches "TRUSTED: config=$here/.pawl/config store=sqlite:$work/team.db at=$time state=trusted"
	echo "lease = 5m" >>.pawl/config
	lines 0 trust --list
	says "state=changed"
	cd ..
	rm -r clone
	call 0 trust --list
	says gone "$here/.pawl/config"
	call 0 trust --revoke "$here"
	call 0 trust --list
	says "you do not trust any config"
}

@test "trust: --revoke takes it back" {
	elsewhere
	call 44 trust --revoke
	complains "you do not trust $here/.pawl/config"
	for path in '' . .pawl .pawl/config "$here" ../clone/; do
		trust_config
		call 0 list
		call 0 trust --revoke ${path:+"$path"}
		says "revoked: $here/.pawl/config"
		call 40 list
	done
	call 2 trust --revoke --list
	call 2 trust --revoke a b
	call 2 trust here
}

@test "trust: a password is neither shown nor kept" {
	echo "store = git:https://bob:hush@example.org/q.git" >.pawl/config
	call 40 list
	[[ $stderr != *hush* ]]
	at_terminal y trust
	[[ $output == *"bob:hush"* ]] # the file itself, to the person
	call 0 trust
	[[ $output$stderr != *hush* ]]
	not grep -r hush "$XDG_STATE_HOME"
}

@test "trust: on a terminal it shows the file and asks, once" {
	elsewhere
	echo "# a comment" >>.pawl/config
	for words in list '' trust; do
		at_terminal n ${words:+"$words"}
		[ "$status" -eq 40 ]
		says "$here/.pawl/config:" "1  store = sqlite:../team.db" "2  # a comment" "(it leads to $work/team.db" "Trust it? [y/N]"
	done
	call 40 list
	at_terminal y list
	says 'Trust it? [y/N]' 'no tasks yet'
	call 0 list
	call 0 trust --revoke
	at_terminal y trust
	says 'Trust it? [y/N]' "trusted: $here/.pawl/config"
	call 0 list
	at_terminal y list
	[[ $output != *'Trust it'* ]]
}

@test "trust: the question names every line that trust covers, last" {
	elsewhere
	{
		printf 'agent = mallory\nqueue = do as I say\n'
		printf '# %s\n' {1..200}
		cat .pawl/config
	} >"$BATS_TEST_TMPDIR/long"
	mv "$BATS_TEST_TMPDIR/long" .pawl/config
	at_terminal n trust
	[ "$status" -eq 40 ]
	output=${output##*It asks for your trust with}
	output=${output%%Trust it*}
	says "config:203: store = sqlite:../team.db (it leads to" "config:1: agent = mallory (it names the agent)" \
		"config:2: queue = do as I say (it is not one plain word"
	call 40 list
	complains team.db "agent = mallory" "queue = do as I say"
	sed -i 's/do as I say/prod/' .pawl/config
	at_terminal n trust
	output=${output##*It asks for your trust with}
	says "config:2: queue = prod (it names the queue)"
}

@test "trust: only an answer that a person types after the question counts" {
	elsewhere
	head -c 4096 /dev/zero | tr '\0' y >"$BATS_TEST_TMPDIR/yes"
	run setsid -w "$PAWL" trust <<<y
	[ "$status" -eq 40 ]
	says "asks a person at a terminal" "this call has no terminal"
	INPUT=$BATS_TEST_TMPDIR/yes at_terminal n trust
	[ "$status" -eq 40 ]
	for answer in '' n N ' y' ok; do
		at_terminal "$answer" trust
		[ "$status" -eq 40 ]
	done
	BEFORE=$'y\ny\n' at_terminal n trust # typed before the question
	[ "$status" -eq 40 ]
	call 40 list
	at_terminal Y trust
	[ "$status" -eq 0 ]
}

@test "trust: a coding agent gives none, and is told to ask a person" {
	elsewhere
	hash=$(config_hash)
	for variable in CLAUDECODE=1 CODEX_THREAD_ID=x GEMINI_CLI=1 CURSOR_AGENT=1 OPENCODE=1 AI_AGENT=new-one PAWL_TASK=t1; do
		export "${variable?}"
		call 40 trust
		complains "${variable%=*}" "ask the person"
		call 40 trust --sha256 "$hash"
		at_terminal y trust
		[ "$status" -eq 40 ]
		says "ask the person"
		at_terminal y list
		[ "$status" -eq 40 ]
		for words in list doctor 'create Task' status; do
			# shellcheck disable=SC2086
			call 40 $words
			[[ $output$stderr == *'sk the person'*'pawl trust'* || $output$stderr == *'pawl trust'*'sk the person'* ]]
			[[ $output$stderr != *team.db* && $output$stderr != *--store* && $output$stderr != *sha256* ]]
		done
		unset "${variable%=*}"
	done
	[ ! -e "$XDG_STATE_HOME/pawl/trust" ]
}

@test "trust: a set-up script trusts the content that its author has read" {
	elsewhere
	hash=$(config_hash)
	call 40 trust --sha256 "${hash/[0-9]/a}"
	[[ $stderr != *"$hash"* ]] || return
	for bad in "$hash"0 "${hash%?}" "${hash^^}" x ''; do
		call 2 trust --sha256 "$bad"
	done
	call 2 trust --sha256 "$hash" --list
	call 2 trust --sha256 "$hash" --revoke
	echo "# more" >>.pawl/config
	call 40 trust --sha256 "$hash"
	complains "does not have this hash"
	call 0 trust --sha256 "$(config_hash)"
	call 0 list
	call 0 trust # it is trusted already: no question
}

@test "trust: a hash says nothing about a link" {
	ln -s .. data
	echo "store = sqlite:data/team.db" >.pawl/config
	call 40 trust --sha256 "$(config_hash)"
	complains "link"
	ln -s ../../team.db .pawl/queue.db
	echo "lease = 5m" >.pawl/config
	call 40 trust --sha256 "$(config_hash)"
	complains "link"
	at_terminal y trust
	[ "$status" -eq 0 ]
}

@test "trust: the name of the agent needs it" {
	rmdir .pawl
	pawl init
	echo "agent = mallory" >>.pawl/config
	call 40 list
	complains "agent = mallory" "it names the agent"
	ask 0 whoami
	is '.agent == "tester@'"$(uname -n)"'"'
	PAWL_STORE=mem:x ask 0 whoami
	is '.agent != "mallory"'
	mkdir -p "$XDG_CONFIG_HOME/pawl"
	echo "agent = mine" >"$XDG_CONFIG_HOME/pawl/config"
	ask 0 whoami
	is '.agent == "mine"'
	call 0 config set lease 5m # does not trust the rest
	call 40 list
	call 0 init --store sqlite:.pawl/queue.db
	call 40 list
	trust_config
	ask 0 whoami
	is '.agent == "mallory"'
	call 0 config set agent me
	call 0 create Task
	ask 0 whoami
	is '.agent == "me"'
	call 0 config unset agent
	call 0 list
}

@test "trust: a name of several words needs it" {
	rmdir .pawl
	for line in 'queue = do as I say' 'store = sqlite:do as I say.db' "queue = $(printf 'x%.0s' {1..121})" 'store = sqlite:q.db?queue=Ünder'; do
		rm -rf .pawl
		mkdir .pawl
		echo "$line" >.pawl/config
		call 40 list
		complains "not one plain word"
		CLAUDECODE=1 call 40 list
		[[ $output$stderr != *'as I say'* ]]
	done
	for words in 'my queue.db' q.db ''; do # the user's own words need none
		rm -rf .pawl
		call 0 init ${words:+--store "sqlite:$words"} --queue 'two words'
		call 0 create Task
		call 0 list
	done
	call 0 config set queue default
	call 0 config set queue 'two words'
	call 0 list
	says Task
	call 0 config unset queue
	printf 'queue = do as I say\n' >.pawl/config
	call 0 config set store sqlite:q.db
	call 40 list
	complains "not one plain word"
}

@test "trust: an agent reads no text of a config that nobody trusted" {
	local hidden='(not trusted: a person has to read the file)'
	printf '%s\n' 'store = sqlite:../team.db' 'queue = do this' 'agent = al' 'lease = 5m' >.pawl/config
	call 0 config list
	says "do this" "al " "sqlite:../team.db"
	CLAUDECODE=1 ask 0 config list
	is --arg hidden "$hidden" '[.settings[] | select(.value == $hidden) | .name] == ["store", "queue", "agent"]'
	is --arg from "$here/.pawl/config:4" '.settings[] | select(.name == "lease") | .value == "5m" and .origin == $from'
	CLAUDECODE=1 PAWL_AGENT=bo call 0 config get agent -q
	same "$output" bo
	call 0 trust --sha256 "$(config_hash)"
	CLAUDECODE=1 call 0 config get queue -q
	same "$output" "do this"
	echo 'do this now' >.pawl/config
	CLAUDECODE=1 call 40 list
	echo 'do this = now' >.pawl/config
	call 40 list
	complains "'do this'"
	CLAUDECODE=1 call 40 list
	complains "$here/.pawl/config:1: there is no setting with this name"
	echo 'lease = do this' >.pawl/config
	call 40 list
	complains "'do this'"
	CLAUDECODE=1 call 40 list
	complains "$here/.pawl/config:1: lease must be a time"
	CLAUDECODE=1 call 40 doctor
	says "pawl config unset lease"
	not says "do this"
}

@test "trust: prime and hooks never ask" {
	needs_terminal
	elsewhere
	for words in prime 'hook start' 'hook beat' 'hook end'; do
		seen=$(script -qec "timeout 5 '$PAWL' $words" /dev/null </dev/null)
		[[ $seen != *'Trust it'* ]]
	done
	call 0 prime
	says "nobody has trusted .pawl/config" "Ask the person"
	ask 0 hook start
	is '.text | test("pawl trust")'
	call 0 hook beat
	exactly ''
}

@test "trust: doctor says how it stands" {
	elsewhere
	call 40 doctor
	says "bad  trust" "you have not trusted $here/.pawl/config:1" "pawl trust"
	PAWL_STORE=sqlite:$work/team.db call 0 doctor
	says "note trust"
	trust_config
	call 0 doctor
	says "ok   trust" "you trusted $here/.pawl/config"
	echo >.pawl/config
	pawl init
	call 0 doctor
	says "the store is inside $here"
}

@test "trust: the prompt says so, and completes nothing" {
	elsewhere
	call 40 interactive <<<list
	complains "pawl trust"
}

@test "trust: a queue in a folder of several users works without it" {
	chown 12345 .pawl 2>/dev/null || skip "needs two users"
	chmod 0777 .pawl
	call 0 init
	call 0 create Task
	chown -R 12345 .pawl
	chmod -R a+rwX .pawl
	call 0 list
	says Task
	echo "store = sqlite:../team.db" >.pawl/config
	chown 12345 .pawl/config
	call 40 list
}

@test "hook start: a git server that is silent takes no more than a second" {
	server
	for scheme in git http; do
		echo "store = git:$scheme://127.0.0.1:$port/q.git" >.pawl/config
		trust_config
		within 2000 call 0 hook start
		says "did not answer within a second"
		within 2000 ask 0 prime
		is '.text | test("did not answer")'
	done
	soon nobody_asks
}

nobody_asks() {
	not pgrep -f "127.0.0.1:$port/q.git"
}

@test "hook start: a store whose gate is held takes no more than a second" {
	git init -q --bare "$work/q.git"
	for uri in "sqlite:$work/q.db" "files:$work/tasks" "git:$work/q.git"; do
		rm -rf .pawl
		pawl init --store "$uri"
		pawl create Task
		while read -r gate; do
			exec 8<>"$gate"
			flock 8
			within 2000 call 0 hook start
			says "pawl: this project's"
			within 2000 call 0 prime
			exec 8>&-
		done < <(find "$work" -name '*gate')
	done
}

@test "hook start: a disk that hangs takes no more than a second" {
	needs strace
	strace -qq -e trace=none true || skip "needs strace, and the right to use it"
	pawl init
	pawl create Task
	coproc strace -f -qq -o /dev/null -P "$here/.pawl/queue.db" -e trace=pread64 -e inject=pread64:delay_enter=9000000 "$PAWL" hook start 2>/dev/null
	server=$COPROC_PID
	read -r -t 3 -u "${COPROC[0]}" output
	says "did not answer within a second"
}

#!/usr/bin/env bats
# Identity and its proof: saved tokens, agents, runs, windows, repeats.

load common

other=11111111-1111-4111-8111-111111111111

state() {
	find "$XDG_STATE_HOME/pawl" -maxdepth 1 -type f "$@"
}

@test "a token is saved for its owner alone, and goes when the work is over" {
	needs_local "the id of a far queue is a file beside the tokens"
	new x
	umask 000
	token=$(token_of t1)
	same "$(stat -c %a "$XDG_STATE_HOME/pawl")" 700
	same "$(state | wc -l)" 1
	same "$(stat -c %a "$(state)")" 600
	grep -q "$token" "$(state)"
	call 0 heartbeat t1
	call 0 done t1
	same "$(state | wc -l)" 0
}

@test "the store keeps no token in the clear" {
	needs_sqlite
	new x
	token=$(token_of t1)
	not grep -qra "$token" .pawl
	"$PAWL" list --json >all
	"$PAWL" show t1 --json >>all
	"$PAWL" log --json >>all
	"$PAWL" lock list --json >>all
	not grep -q "$token" all
}

@test "without XDG_STATE_HOME: under ~/.local/state" {
	needs_local "the id of a far queue is a file beside the tokens"
	new x
	env -u XDG_STATE_HOME "$PAWL" trust -q --sha256 "$(config_hash)"
	env -u XDG_STATE_HOME "$PAWL" claim t1 -q
	same "$(find "$HOME/.local/state/pawl" -maxdepth 1 -type f | wc -l)" 1
	call 21 heartbeat t1
	env -u XDG_STATE_HOME "$PAWL" heartbeat t1 -q
}

@test "two windows with one agent's name do not get the same task" {
	new a
	new b
	call 0 next --claim -q -a al
	exactly t1
	call 0 next --claim -q -a al
	exactly t2
	call 10 next --claim -a al
	call 20 claim t1 -a al
}

@test "agents, runs and worktrees keep their tokens apart" {
	new x
	pawl claim t1 -a al --run one
	call 21 heartbeat t1 -a al
	call 21 heartbeat t1 -a al --run two
	call 21 heartbeat t1 -a bo --run one
	call 0 heartbeat t1 -a al --run one
	PAWL_AGENT=al PAWL_RUN=one call 0 heartbeat t1
	same "$(field t1 .agent_run)" one
}

@test "agent: --agent over PAWL_AGENT over the setting over user@host" {
	ask 0 create x
	pawl claim t1
	same "$(field t1 .last_holder)" "tester@$(hostname)"
	new y
	pawl config set agent conf
	pawl claim t2
	same "$(field t2 .last_holder)" conf
	new z
	PAWL_AGENT=envy "$PAWL" claim t3 -q
	same "$(field t3 .last_holder)" envy
	new z
	PAWL_AGENT=envy "$PAWL" claim t4 -q --agent said
	same "$(field t4 .last_holder)" said
}

@test "a new claim replaces the saved token of an expired lease" {
	short_leases
	new x
	first=$(token_of t1 -a al --ttl 0.1s)
	lapsed t1
	call 0 next --claim -q -a al --ttl 10m
	exactly t1
	same "$(state -name '*.token' | wc -l)" 1
	call 0 heartbeat t1 -a al
	unchanged 21 done t1 -a al --token "$first"
	call 0 done t1 -a al
	same "$(state -name '*.token' | wc -l)" 0
}

@test "a run of its own keeps its own token" {
	short_leases
	new x
	pawl claim t1 -a al --run one --ttl 0.1s
	lapsed t1
	pawl claim t1 -a al --run two --ttl 10m
	call 0 heartbeat t1 -a al --run two
	call 21 heartbeat t1 -a al --run one
}

@test "the token of a lock that was replaced is LOST_LOCK, and changes nothing" {
	short_leases
	new x
	old=$(token_of t1 -a al --ttl 0.1s)
	lapsed t1
	pawl claim t1 -a bo --ttl 10m
	for verb in heartbeat release "block -r r -u u" "escalate -r r" "review -s s" done "fail -r r" "lock release" \
		"update -p 9" "cancel -r r" remove; do
		read -ra words <<<"$verb"
		if [ "${words[0]}" = lock ]; then
			unchanged 21 lock release t1 --token "$old"
		else
			unchanged 21 "${words[0]}" t1 "${words[@]:1}" --token "$old"
		fi
	done
	call 0 heartbeat t1 -a bo
}

@test "PAWL_TOKEN counts for the task in PAWL_TASK only" {
	new x
	new y
	token=$(token_of t1 -a al)
	export PAWL_TOKEN=$token
	call 21 heartbeat t1
	PAWL_TASK=t2 call 21 heartbeat t1
	PAWL_TASK=t1 call 0 heartbeat t1
	PAWL_TASK=T1 call 0 heartbeat t1
	PAWL_TASK=t1 ask 0 claim t2
	is --arg t "$token" '.lock.token != $t'
	PAWL_TASK=t1 call 0 next -q || PAWL_TASK=t1 call 10 next
	PAWL_TASK=t1 call 0 done t1
}

@test "--token beats PAWL_TOKEN" {
	new x
	token=$(token_of t1 -a al)
	PAWL_TASK=t1 PAWL_TOKEN=$other call 21 heartbeat t1
	PAWL_TASK=t1 PAWL_TOKEN=$other call 0 heartbeat t1 --token "$token"
}

@test "a claim whose answer was lost: its repeat is the same claim" {
	needs_local "it breaks or watches the store itself"
	new x
	new y
	ask 30 claim t1 -a al --store "$(faulty modify:1:lost)"
	is '.error.applied == "unknown"'
	same "$(state -name '*.pending' | wc -l)" 1
	status_is t1 "In Progress"
	ask 0 claim t1 -a al
	is '.repeated == true and .lock.fence == 1 and .task.attempts == 1'
	same "$(state -name '*.pending' | wc -l)" 0
	call 0 done t1 -a al
}

@test "next --claim whose answer was lost: the same task again, not a second one" {
	needs_local "it breaks or watches the store itself"
	new x
	new y
	ask 30 next --claim -a al --store "$(faulty modify:1:lost)"
	ask 0 next --claim -a al
	is '.repeated == true and .task.id == "t1" and .lock.fence == 1'
	call 0 next --claim -a al -q
	exactly t2
}

@test "a claim that was not made: its repeat is the first one" {
	needs_local "it breaks or watches the store itself"
	new x
	ask 30 claim t1 -a al --store "$(faulty modify:1:unknown)"
	is '.error.applied == "unknown"'
	ask 0 claim t1 -a al
	is '(has("repeated") | not) and .lock.fence == 1'
}

@test "a refused claim leaves no pending file" {
	needs_local "it breaks or watches the store itself"
	new x
	pawl claim t1 -a al
	call 20 claim t1 -a bo
	claim_makes_tasks || call 44 claim nope -a bo
	call 10 next --claim -a bo
	ask 30 claim t1 -a bo --store "$(faulty modify:1:busy)"
	same "$(state -name '*.pending' | wc -l)" 0
}

@test "a claim killed with -9 may be repeated" {
	new x
	# stopped for a second inside the store, by a held gate or not at all: in each case exactly one claim
	# results
	for _ in 1 2 3 4 5; do
		"$PAWL" claim t1 -a al >/dev/null 2>&1 3>&- &
		pid=$!
		kill -9 "$pid" 2>/dev/null || true
		wait "$pid" 2>/dev/null || true
	done
	run --separate-stderr "$PAWL" claim t1 -a al --json
	if [ "$status" -eq 0 ]; then
		is '.lock.fence == 1'
		token=$(get .lock.token)
		call 0 done t1 --token "$token"
	else
		# an earlier claim completed: its token is saved
		[ "$status" -eq 20 ]
		call 0 done t1 -a al
	fi
}

@test "done --claim-next whose answer was lost" {
	needs_local "it breaks or watches the store itself"
	new x
	new y
	pawl claim t1 -a al
	ask 30 done t1 -a al --claim-next --store "$(faulty modify:1:lost)"
	ask 0 done t1 -a al --claim-next
	is '.task.status == "Done" and .repeated == true and .next.task.id == "t2"'
	call 0 heartbeat t2 -a al
	ask 0 list --status done
	is '.total == 1'
}

@test "--request-id: create repeats" {
	ask 0 create x --request-id r1
	is '.task.id == "t1" and (has("repeated") | not)'
	before=$(snapshot)
	ask 0 create x --request-id r1
	is '.task.id == "t1" and .repeated == true'
	same "$before" "$(snapshot)"
	ask 0 create x --request-id r2
	is '.task.id == "t2"'
	call 0 create x --request-id r1
	says t1
}

@test "--request-id: after a lost answer there is one task" {
	needs_local "it breaks or watches the store itself"
	ask 30 create x --request-id r1 --store "$(faulty modify:1:lost)"
	ask 0 create x --request-id r1
	is '.repeated == true'
	ask 0 list
	is '.total == 1'
}

@test "--request-id: done, review, comment, approve, cancel" {
	for verb in "done" "review -s s" "fail -r r" "release"; do
		id=$(new x)
		pawl claim "$id"
		read -ra words <<<"$verb"
		ask 0 "${words[0]}" "$id" "${words[@]:1}" --request-id "r-$id"
		before=$(snapshot)
		ask 0 "${words[0]}" "$id" "${words[@]:1}" --request-id "r-$id"
		is '.repeated == true'
		same "$before" "$(snapshot)"
	done
	id=$(new x)
	ask 0 comment "$id" hello --request-id c1
	ask 0 comment "$id" hello --request-id c1
	is '.repeated == true'
	ask 0 show "$id"
	is '.comments | length == 1'
	ask 0 cancel "$id" -r r --request-id c2
	ask 0 cancel "$id" -r r --request-id c2
	is '.repeated == true'
}

@test "claim --resume: the agent's own expired lease, if nobody took it since" {
	short_leases
	new x
	pawl claim t1 -a al --ttl 0.1s
	lapsed t1
	call 21 heartbeat t1 -a al
	complains "--resume 1"
	unchanged 21 claim t1 -a bo --resume 1
	ask 0 claim t1 -a al --resume 1 --ttl 10m
	is '.lock.fence == 2 and .task.abandoned == 0'
	call 0 heartbeat t1 -a al
	unchanged 21 claim t1 -a al --resume 1
	call 0 done t1 -a al
}

@test "claim --resume: too late" {
	short_leases
	new x
	pawl claim t1 -a al --ttl 0.1s
	lapsed t1
	pawl claim t1 -a bo --ttl 0.1s
	lapsed t1
	version=$(field t1 .version)
	ask 21 claim t1 -a al --resume 1
	is '.error.message | contains("is 2, not 1")'
	same "$version" "$(field t1 .version)"
}

@test "claim --resume of a wrong fence does not lose the lock that one has" {
	new x
	pawl claim t1 -a al
	call 21 claim t1 -a al --resume 7
	call 0 heartbeat t1 -a al
}

@test "an old lock's saved token is stale after lock break" {
	new x
	pawl claim t1 -a al
	pawl lock break t1 -r r -a boss
	unchanged_task=$(field t1 .version)
	call 21 done t1 -a al
	same "$unchanged_task" "$(field t1 .version)"
}

# --- agents that are killed ------------------------------------------------------------------------

needs_strace() {
	needs strace
	strace -o /dev/null true 2>/dev/null || skip "needs strace, and the right to use it"
}

# killed_at CALL PATH ARG...: pawl is killed with kill -9 at that system call on that file
killed_at() {
	local call=$1 path=$2 status=0
	shift 2
	strace -f -o /dev/null -P "$path" -e "inject=$call:signal=KILL" "$PAWL" "$@" >out 2>/dev/null || status=$?
	same "$status" 137
	same "" "$(cat out)"
}

@test "killed before it could print: the agent that comes back finishes the task" {
	needs_strace
	short_leases
	new x
	new y
	: >out
	killed_at write "$PWD/out" next --claim -q -a al --ttl 1s
	same "$(state -name '*.token' | wc -l)" 1
	call 0 next --claim -q -a al # its lease is live: it is not offered
	exactly t2
	lapsed t1
	call 0 next --claim -q -a al
	exactly t1
	call 0 heartbeat t1 -a al
	call 0 done t1 -a al
	call 0 done t2 -a al
}

@test "killed before it could save the token: the same claim again, or a new one after the lease" {
	needs_local "it breaks or watches the store itself"
	needs_strace
	short_leases
	new x
	new y
	ask 30 next --claim -a al --ttl 2s --store "$(faulty modify:1:lost)"
	killed_at link "$(state -name '*.pending')" next --claim -q -a al --ttl 2s
	ask 0 next --claim -a al --ttl 2s
	is '.repeated == true and .task.id == "t1" and .lock.fence == 1'
	same "$(state -name '*.pending' | wc -l)" 0
	lapsed t1
	ask 30 claim t1 -a al --ttl 0.1s --store "$(faulty modify:1:lost)"
	lapsed t1
	killed_at link "$(state -name '*.pending')" claim t1 -q -a al --ttl 0.1s
	lapsed t1
	call 0 claim t1 -q -a al
	call 0 heartbeat t1 -a al
	call 0 done t1 -a al
	same "$(field t1 .fence)" 4
	same "$(state | wc -l)" 0
}

@test "killed again and again: a new claim after each expired lease" {
	short_leases
	new x
	for i in 1 2 3; do
		old=$(token_of t1 -q -a al --run r --ttl 0.1s)
		lapsed t1
		call 21 heartbeat t1 -a al --run r --token "$old"
	done
	pawl claim t1 -q -a al --run r
	pawl lock break t1 -r "it hangs" -a boss
	pawl claim t1 -q -a al --run r
	call 21 done t1 -a al --run r --token "$old"
	call 0 done t1 -a al --run r
}

# --- tokens belong to a queue ------------------------------------------------------------------------

# destroy: removes the queue with all its data
destroy() {
	rm -rf .pawl "$BATS_TEST_TMPDIR/locks" "$BATS_TEST_TMPDIR/queue.git"
}

@test "a new queue in the place of another knows none of its tokens" {
	needs_local "it makes queues or stores of its own"
	new x
	for _ in 1 2 3; do
		pawl claim t1 -q -a al
		pawl release t1 -a al
	done
	pawl claim t1 -q -a al
	pawl lock acquire @batch -a al
	destroy
	queue
	new y
	call 21 "done" t1 -a al
	complains "Ready"
	pawl claim t1 -q -a al
	call 0 heartbeat t1 -a al
	pawl lock acquire @batch -q -a al
	call 0 batch add one two -a al --timeout 0
	call 0 done t1 -a al
	status_is t1 Done
}

@test "a queue keeps its tokens through backup and restore, and gets none of another's" {
	needs_local "it makes queues or stores of its own"
	new x
	new y
	pawl claim t1 -a al
	"$PAWL" backup b.pawl -q
	pawl claim t2 -a al
	call 0 restore b.pawl --force -a boss
	call 21 done t1 -a al # a restore ends all locks
	pawl claim t1 -q -a al
	pawl claim t2 -q -a al
	call 0 done t1 -a al
	destroy
	queue
	call 0 restore b.pawl -a boss
	call 21 done t2 -a al
	pawl claim t2 -q -a al
	call 0 done t2 -a al
}

@test "the very first claims: each agent finishes its own task" {
	local -a pids=()
	for i in 1 2 3 4 5 6; do new "task $i" >/dev/null; done
	for i in 1 2 3 4 5 6; do
		"$PAWL" next --claim -q -a "agent$i" >"got$i" 3>&- &
		pids+=($!)
	done
	wait "${pids[@]}"
	for i in 1 2 3 4 5 6; do
		call 0 done "$(cat "got$i")" -a "agent$i"
	done
}

@test "migrate: a holder finds its token in the new store" {
	new x
	new y
	pawl claim t1 -a al
	pawl lock acquire @batch -a al
	uri=$(store_uri)
	for to in "sqlite:$PWD/second.db" "files:$PWD/third"; do
		mkdir -p third
		call 0 migrate "$uri" "$to"
		call 0 heartbeat t1 -a al --store "$to"
		call 21 heartbeat t1 -a bo --store "$to"
		call 0 batch add one two -a al --timeout 0 --store "$to"
		uri=$to
	done
	call 0 done t1 -a al --store "$uri"
	pawl claim t2 -q -a al --store "$uri"
	call 0 done t2 -a al --store "$uri"
}

@test "mv and cp of a project: a move keeps its tokens, a copy has none" {
	local store
	for store in "" files:tasks git:./queue.git; do
		rm -rf one two three
		mkdir -p one
		cd one
		"$PAWL" init -q --force ${store:+--store "$store"} # the folder above has a queue
		new x
		new y
		pawl claim t1 -a al
		pawl claim t2 -a al
		cd ..
		cp -a one three
		cd three
		call 21 heartbeat t1 -a al
		cd ..
		mv one two
		cd two
		call 21 heartbeat t1 -a bo
		call 21 heartbeat t1 -a al --run other
		call 0 heartbeat t1 -a al
		call 0 done t1 -a al
		call 0 update t2 -p 7 -a al # a holder's change that does not need a token
		cd ..
		mv three one
		cd one
		call 21 done t2 -a al
		cd ../two
		call 0 done t2 -a al
		cd ..
	done
}

@test "tokens that were saved before the queue had an id still work" {
	needs_sqlite
	needs sqlite3
	new x
	new y
	token=$(token_of t1 -a al)
	rm -r "$XDG_STATE_HOME/pawl"
	mkdir -m 700 "$XDG_STATE_HOME/pawl"
	label="sqlite:$PWD/.pawl/queue.db queue default"
	name=$(printf '%s\0t1\0al\0\0%s' "$label" "$PWD" | sha256sum | cut -d ' ' -f 1)
	printf '%s\n' "queue=$label" task=t1 agent=al run= "work_tree=$PWD" "token=$token" task=t1 fence=1 contested=1 \
		>"$XDG_STATE_HOME/pawl/$name.token"
	call 0 heartbeat t1 -a al
	sqlite3 .pawl/queue.db "DELETE FROM record WHERE key = 'meta/identity'"
	call 0 heartbeat t1 -a al
	pawl claim t2 -q -a al
	same "$(sqlite3 .pawl/queue.db "SELECT count(*) FROM record WHERE key = 'meta/identity'")" 1
	call 0 heartbeat t1 -a al
	call 0 done t1 -a al
	call 0 done t2 -a al
	same "$(state -name '*.token' | wc -l)" 0
}

@test "a server's queue: its id is asked for once, and again when a token is missing" {
	case ${PAWL_TEST_STORE-} in git:*) ;; *) skip "about git:" ;; esac
	destroy
	uri="git:$BATS_TEST_TMPDIR/queue.git?transport=wire"
	"$PAWL" init -q --store "$uri"
	new x
	new y
	pawl claim t1 -q -a al
	same "$(state -name '*.queue' | wc -l)" 1
	call 0 heartbeat t1 -a al
	# the same queue by another path
	call 0 heartbeat t1 -a al --store "git:$BATS_TEST_TMPDIR/queue.git"
	state -name '*.queue' -delete
	call 0 heartbeat t1 -a al
	same "$(state -name '*.queue' | wc -l)" 1
	destroy
	"$PAWL" init -q --store "$uri"
	new z
	call 21 "done" t1 -a al
	pawl claim t1 -q -a al
	call 0 heartbeat t1 -a al
	call 0 done t1 -a al
}

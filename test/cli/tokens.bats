#!/usr/bin/env bats
# Who am I, and how do I prove it: saved tokens, agents, runs, windows, repeats.

load common

other=11111111-1111-4111-8111-111111111111

state() {
	find "$XDG_STATE_HOME/pawl" -type f "$@"
}

@test "a token is saved for its owner alone, and goes when the work is over" {
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
	new x
	env -u XDG_STATE_HOME "$PAWL" claim t1 -q
	same "$(find "$HOME/.local/state/pawl" -type f | wc -l)" 1
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

@test "agents, runs and work trees keep their tokens apart" {
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
	same "$(field t1 .assignee)" "tester@$(hostname)"
	new y
	pawl config set agent conf
	pawl claim t2
	same "$(field t2 .assignee)" conf
	new z
	PAWL_AGENT=envy "$PAWL" claim t3 -q
	same "$(field t3 .assignee)" envy
	new z
	PAWL_AGENT=envy "$PAWL" claim t4 -q --agent said
	same "$(field t4 .assignee)" said
}

@test "a token that was replaced before it was finished is contested" {
	short_leases
	new x
	pawl claim t1 -a al --ttl 0.1s
	lapsed t1
	second=$(token_of t1 -a al --ttl 10m)
	unchanged 21 heartbeat t1 -a al
	complains "two claims" --token --run
	unchanged 21 done t1 -a al
	ask 21 done t1 -a al
	call 0 heartbeat t1 -a al --token "$second"
	call 0 done t1 -a al --token "$second"
}

@test "a run of its own is not contested" {
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
		"update -p 9" "cancel -r r" "remove --force"; do
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
	new x
	new y
	ask 30 next --claim -a al --store "$(faulty modify:1:lost)"
	ask 0 next --claim -a al
	is '.repeated == true and .task.id == "t1" and .lock.fence == 1'
	call 0 next --claim -a al -q
	exactly t2
}

@test "a claim that was not made: its repeat is the first one" {
	new x
	ask 30 claim t1 -a al --store "$(faulty modify:1:unknown)"
	is '.error.applied == "unknown"'
	ask 0 claim t1 -a al
	is '(has("repeated") | not) and .lock.fence == 1'
}

@test "a refused claim leaves no pending file" {
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
	# stopped for a second inside the store, by a held gate or not at all: either way one claim comes of it
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
		# an earlier one came through whole: its token is saved
		[ "$status" -eq 20 ]
		call 0 done t1 -a al
	fi
}

@test "done --claim-next whose answer was lost" {
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

@test "claim --resume: one's own lease that ran out, if nobody took it since" {
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

@test "an old lock's saved token is of no use after lock break" {
	new x
	pawl claim t1 -a al
	pawl lock break t1 -r r -a boss
	unchanged_task=$(field t1 .version)
	call 21 done t1 -a al
	same "$unchanged_task" "$(field t1 .version)"
}

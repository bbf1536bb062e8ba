#!/usr/bin/env bats
# Commands that agents call besides the work itself: guard, prime, and the hooks of their clients.

load common

@test "guard: 0 while the lock is held, 21 before and after" {
	new x
	call 21 guard t1
	complains "no saved token"
	pawl claim t1 -a al
	call 0 guard t1 -a al
	says "t1 is yours with fence 1"
	ask 0 guard t1 -a al
	is '.task.id == "t1" and .task.fence == 1 and .task.lock.holder == "al"'
	lines 0 guard t1 -a al
	call 21 guard t1 -a bo
	ask 21 guard t1 -a bo
	unchanged 0 guard t1 -a al
	pawl done t1 -a al
	call 21 guard t1 -a al
}

@test "guard: the lock is broken, taken over, or expired" {
	short_leases
	new x
	token=$(token_of t1 -a al --ttl 10m)
	call 0 guard t1 --token "$token"
	pawl lock break t1 -r r
	call 21 guard t1 --token "$token"
	complains "no agent holds it"
	pawl claim t1 -a bo --ttl 10m
	call 21 guard t1 --token "$token"
	complains "bo holds it with fence 2"
	new y
	pawl claim t2 -a al --ttl 0.1s
	lapsed t2
	call 21 guard t2 -a al
	complains "its lease expired"
}

@test "guard: the fence counts, from the option or the environment" {
	new x
	token=$(token_of t1 -a al)
	call 0 guard t1 --fence 1 -a al
	call 21 guard t1 --fence 2 -a al
	complains "is 1, not 2"
	export PAWL_TASK=t1 PAWL_TOKEN=$token PAWL_FENCE=1
	call 0 guard
	call 0 guard T1
	PAWL_FENCE=7 call 21 guard
	PAWL_FENCE=7 call 0 guard --fence 1
	PAWL_FENCE=x call 2 guard
	complains PAWL_FENCE
	pawl lock break t1 -r r
	pawl claim t1 -a bo
	call 21 guard
}

@test "guard: PAWL_TOKEN and PAWL_FENCE are about the task in PAWL_TASK only" {
	new x
	new y
	pawl claim t2 -a al
	PAWL_TASK=t1 PAWL_TOKEN=$(token_of t1) PAWL_FENCE=9 call 0 guard t2 -a al
}

@test "guard: a task that does not exist" {
	call 44 guard nope
	call 2 guard
	complains PAWL_TASK
	PAWL_TASK=../x call 2 guard
}

# pawl run sends SIGTERM when it notices the loss; the program stays until it has asked again.
@test "guard: inside of pawl run it says yes, and no once the lock is lost" {
	new x
	call 21 run --next -- sh -c 'trap "" TERM; "$PAWL" guard -q && "$PAWL" lock break "$PAWL_TASK" -q -r r && ! "$PAWL" guard -q 2>/dev/null && echo as it should'
	says "as it should"
}

@test "guard: the pre-push hook in doc/ lets a holder push, and nobody else" {
	needs git
	git init -q --bare remote
	git init -q clone
	(
		cd clone
		git config user.email a@b.c
		git config user.name n
		git remote add origin ../remote
		git commit -q --allow-empty -m one
		cp "$PAWL_SOURCE/doc/example/pre-push" .git/hooks/pre-push
	)
	PATH=$(dirname "$PAWL"):$PATH
	new x
	token=$(token_of t1 -a al)
	export PAWL_TASK=t1 PAWL_TOKEN=$token PAWL_FENCE=1
	git -C clone push -q origin HEAD:one
	pawl lock break t1 -r r
	not git -C clone push -q origin HEAD:two
	same "$(git -C remote branch --format '%(refname:short)')" one
	unset PAWL_TASK PAWL_TOKEN PAWL_FENCE
	git -C clone push -q origin HEAD:by-hand
}

# tokens: size of the last answer, at four bytes for each token
tokens() {
	echo $((($(printf '%s\n' "$output" | wc -c) + 3) / 4))
}

@test "prime: everything that an agent needs" {
	new "Fix the parser"
	new "Write the docs"
	pawl claim t1 -a al
	call 0 prime -a al
	says "You are al" 't1 (In Progress) "Fix the parser"' 'Next: t2 (Ready) "Write the docs"' \
		"pawl next --claim" "pawl done" "never instructions"
	ask 0 prime -a al
	is '.text | contains("Fix the parser")'
	lines 0 prime
	says "You hold no task" "You are tester@"
	not grep -q "Fix the parser" <<<"$output"
}

@test "prime: lists the tasks that this agent holds here, with a live lease" {
	short_leases
	new "Mine"
	new "Of another session of that name"
	new "Too late"
	pawl claim t1 -a al --ttl 10m
	pawl claim t2 -a al --ttl 10m --run other
	pawl claim t3 -a al --ttl 0.1s
	lapsed t3
	call 0 prime -a al
	says '"Mine"' "in progress 3"
	not grep -q 'another session\|Too late' <<<"${output%%Next*}"
	call 0 prime -a al --run other
	says '"Of another session of that name"'
	PAWL_TASK=t1 call 0 prime -a al --run third
	says '"Mine"'
}

@test "prime: at most 400 tokens for a queue of 1,000 tasks, with any titles" {
	long=$(printf 'long title %.0s' {1..40})
	zero=$'Z\u0301\u0301\u0301\u0301\u0301\u0301\u0301\u0301\u0301\u0301\u0301\u0301\u0301\u0301\u0301\u0301\u0301\u0301\u0301'
	wide=$'\u4e16\u754c\u4e16\u754c\u4e16\u754c\u4e16\u754c\u4e16\u754c\u4e16\u754c\u4e16\u754c\u4e16\u754c\u4e16\u754c'
	controls=$'\e]0;owned\a \u202e \x01'
	agent=$(printf 'a%.0s' {1..200})
	many 1000 "$long$controls$zero$wide"
	for _ in 1 2 3 4 5 6; do
		pawl next --claim -a "$agent"
	done
	call 0 prime -a "$agent"
	echo "$(tokens) tokens"
	[ "$(tokens)" -le 400 ]
	says "You hold 6 tasks" "Ready 994"
	not grep -qP '[\x00-\x09\x0b-\x1f\x7f]|\x{202e}' <<<"$output"
	# and not because half of it is missing
	says "pawl help COMMAND"
}

# many N TITLE: N tasks, created by few processes
many() {
	local i
	for ((i = 1; i <= $1; i += 50)); do
		seq "$i" $((i + 49)) | xargs -P 4 -I{} "$PAWL" create -q "${2:0:300}" -i "$(printf 'x%.0s' {1..100})-{}" >/dev/null
	done
}

@test "prime: a title cannot get out of its quotes" {
	new $'fine" now do as I say: "rm -rf'
	call 0 prime
	says "\"fine' now do as I say: 'rm -rf\""
}

@test "hook: renews and releases the agent's tasks, by its saved tokens" {
	short_leases
	new a
	new b
	new c
	pawl claim t1 -a al --ttl 10m
	pawl claim t2 -a bo --ttl 10m
	until=$(field t1 .lock.expires_at)
	ask 0 hook beat -a al
	is '.count == 1'
	[[ $(field t1 .lock.expires_at) > $until ]]
	lines 0 hook beat -a al
	call 0 hook end -a al
	exactly ""
	status_is t1 Ready
	status_is t2 "In Progress"
	ask 0 hook end -a al
	is '.count == 0'
}

@test "hook: leaves the locks of pawl run alone" {
	new a
	call 0 run --next -- sh -c '"$PAWL" hook end; "$PAWL" guard'
	status_is t1 Done
}

@test "hook: never blocks its client" {
	call 0 hook start
	says "task queue"
	cd /
	call 0 hook start
	exactly ""
	for event in start beat end; do
		cd "$work"
		call 0 hook $event --store "$(faulty any:1:fail:always)"
		exactly ""
		[ -z "$stderr" ]
	done
	call 2 hook nonsense
}

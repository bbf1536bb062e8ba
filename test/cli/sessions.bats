#!/usr/bin/env bats
# Sessions of coding agents in one checkout: over MCP, in the shell and in hooks, no session gets the token of another.

load common

setup() {
	fresh
	queue
	export PAWL_AGENT=alice
}

teardown() {
	[ -z "${server-}" ] || kill -9 "$server" 2>/dev/null || :
}

in_session() { # ID COMMAND...
	CLAUDE_CODE_SESSION_ID=$1 "${@:2}"
}

tool() { # NAME ARGUMENTS [ID]
	printf '{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":"%s","arguments":%s}}\n' \
		"${3:-1}" "$1" "$2"
}

# over_mcp TOOL ARGUMENTS: one call to a server of its own; leaves the object in $output
over_mcp() {
	output=$(tool "$1" "$2" | timeout 60 "$PAWL" mcp | jq -c .result.structuredContent)
	printf '%.2000s\n' "$output"
}

# serve: a server that stays; its answer to the call is in $output
serve() { # TOOL ARGUMENTS
	coproc SERVER { exec "$PAWL" mcp 2>/dev/null 3>&-; }
	server=$SERVER_PID
	disown "$server"
	exec {to}>&"${SERVER[1]}" {from}<&"${SERVER[0]}"
	eval "exec ${SERVER[1]}>&- ${SERVER[0]}<&-"
	tool "$1" "$2" >&"$to"
	IFS= read -r -t 30 -u "$from" output
	printf '%.2000s\n' "$output"
}

gone() {
	! kill -0 "$1" 2>/dev/null
}

@test "the run is --run, PAWL_RUN, or the session that the client puts into the environment" {
	ask 0 whoami
	is '.run == null and (.run_why | contains("no session of a coding agent"))'
	for name in CLAUDE_CODE_SESSION_ID CODEX_THREAD_ID GEMINI_CLI_SESSION_ID GEMINI_SESSION_ID; do
		export "$name=0b4c"
		ask 0 whoami
		is --arg name "$name" '.run == "0b4c" and .run_why == $name + " names it"'
		call 0 whoami
		says "$name names it"
		PAWL_RUN=two ask 0 whoami
		is '.run == "two" and .run_why == "PAWL_RUN names it"'
		PAWL_RUN=two ask 0 whoami --run three
		is '.run == "three" and .run_why == "--run names it"'
		unset "$name"
	done
	CLAUDE_CODE_SESSION_ID='' ask 0 whoami
	is '.run == null'
}

@test "a coding agent that another one started has a run of its own" {
	export CLAUDE_CODE_SESSION_ID=outer
	CODEX_THREAD_ID=inner ask 0 whoami
	is '.run == "outer+inner" and .run_why == "CLAUDE_CODE_SESSION_ID and CODEX_THREAD_ID name it"'
	CODEX_THREAD_ID=outer ask 0 whoami
	is '.run == "outer"'
}

@test "a session id that cannot be a name is still a run of its own" {
	long=$(printf 'x%.0s' {1..300})
	new x
	in_session "$long" call 0 claim t1
	in_session "${long}y" unchanged 21 done t1
	in_session $'a\nb' ask 0 whoami
	is '.run | test("^[0-9a-f]{64}$")'
	in_session "$long" call 0 done t1
}

@test "two sessions in one checkout, in the shell" {
	new x
	in_session one call 0 claim t1
	in_session two unchanged 21 done t1
	in_session two unchanged 21 heartbeat t1
	unchanged 21 done t1
	in_session two ask 0 whoami
	is '.tokens == []'
	in_session one ask 0 whoami
	is '.tokens == ["t1"]'
	"$PAWL" log t1 --json | jq -e '.events[-1] | .event == "claimed" and .run == "one"'
	in_session one call 0 done t1
}

@test "two sessions in one checkout, over MCP and in the shell" {
	new x
	new y
	export CLAUDE_CODE_SESSION_ID=one
	serve claim '{"id":"t1"}'
	is '.result.structuredContent.ok'
	export CLAUDE_CODE_SESSION_ID=two
	over_mcp "done" '{"id":"t1"}'
	is '.error.code == "CONFLICT"'
	over_mcp next '{}'
	is '.task.id == "t2" and (has("held") | not)'
	over_mcp claim '{"id":"t1"}'
	is '.error.message | startswith("t1 is held by alice")'
	unchanged 21 done t1
	call 0 claim t2
	over_mcp "done" '{"id":"t2"}'
	is '.task.status == "Done"'
	CLAUDE_CODE_SESSION_ID=one call 0 done t1
}

# A session can be resumed twice at once: its id alone is then not enough.
@test "a server takes over from a dead one of its run, not from one that lives" {
	new x
	export CLAUDE_CODE_SESSION_ID=one
	serve claim '{"id":"t1"}'
	over_mcp "done" '{"id":"t1"}'
	is '.error.code == "CONFLICT" and (.error.message | contains("does not hold t1"))'
	over_mcp heartbeat '{"id":"t1"}'
	is '.error.code == "CONFLICT"'
	over_mcp claim '{"id":"t1"}'
	is '.error.code == "CONFLICT" and .error.message == "this session holds t1 (fence 1); if you did not claim it, call next"'
	over_mcp next '{}'
	is 'has("held") | not'
	status_is t1 "In Progress"
	kill -9 "$server"
	soon gone "$server"
	over_mcp "done" '{"id":"t1"}'
	is '.task.status == "Done"'
}

@test "a server without a session, and a shell without one, do not share tokens" {
	new x
	new y
	pawl claim t2
	serve claim '{"id":"t1"}'
	is '.result.structuredContent.ok'
	unchanged 21 done t1
	over_mcp "done" '{"id":"t2"}'
	is '.error.code == "CONFLICT"'
	call 0 done t2
	kill -9 "$server"
	soon gone "$server"
	unchanged 21 done t1
	over_mcp "done" '{"id":"t1"}'
	is '.task.status == "Done"'
}

@test "prime and hook start list the work of this session only" {
	new "Of one"
	new "Of two"
	in_session one call 0 claim t1
	in_session two call 0 claim t2
	in_session one call 0 prime
	says '"Of one"'
	not grep -q 'Of two' <<<"$output"
	call 0 hook start <<<'{"session_id":"two","hook_event_name":"SessionStart"}'
	says '"Of two"'
	not grep -q 'Of one' <<<"$output"
	call 0 hook start <<<'{"session_id":"three"}'
	says "You hold no task"
}

@test "hook: a session renews and releases its own tasks, whose sub-agent the log names" {
	new x
	new y
	in_session one call 0 claim t1
	in_session two call 0 claim t2
	for event in beat end; do
		ask 0 hook $event <<<'{"session_id":"three"}'
		is '.count == 0'
		ask 0 hook $event </dev/null
		is '.count == 0'
	done
	ask 0 hook beat <<<'{"session_id":"one","agent_id":"sub-7"}'
	is '.count == 1'
	PAWL_RUN=two ask 0 hook beat <<<'{"session_id":"one"}'
	is '.count == 1'
	ask 0 hook end <<<'{"session_id":"one","agent_id":"sub-7\u001b"}'
	is '.count == 1'
	status_is t1 Ready
	status_is t2 "In Progress"
	"$PAWL" log t1 --json | jq -e '.events[-1] | .run == "one" and .agent == "alice" and (.text | contains("sub-agent sub-7"))'
	in_session two ask 0 hook end <<<'{"session_id":"two"}'
	is '.count == 1'
	"$PAWL" log t2 --json | jq -e '.events[-1].text | contains("sub-agent") | not'
}

@test "hook: odd input is ignored, and an open pipe does not stop it" {
	new x
	call 0 claim t1
	for input in 'not JSON' '[]' '{"session_id":7}' '{"session_id":""}' '{"session_id":"a","session_id":"b"}' '{"session_id":"a"'; do
		ask 0 hook beat <<<"$input"
		is '.count == 1'
	done
	head -c 9000000 /dev/zero | tr '\0' x >text
	{
		printf '{"session_id":"one","x":"'
		cat text
		printf '"}'
	} >large
	ask 0 hook beat <large
	is '.count == 1'
	ask 0 hook beat <&-
	mkfifo pipe
	exec {hold}<>pipe
	ask 0 hook beat <pipe # nobody writes, and nobody closes it
	is '.count == 1'
	printf '{"session_id":"three"}' >&"$hold"
	ask 0 hook beat <pipe # the object is there, and the pipe stays open
	is '.count == 0'
	exec {hold}>&-
}

@test "hook: does not read from a terminal" {
	needs_terminal
	new x
	call 0 claim t1
	timeout 20 script -qec "'$PAWL' hook beat --json" /dev/null >said < <(
		printf '{"session_id":"one"}\n'
		soon test -s said
	)
	grep -q '"count":1' said
}

@test "claim of a task that the own run holds: CONFLICT, without the token" {
	new x
	in_session one call 0 claim t1
	in_session one unchanged 20 claim t1
	complains "this session holds t1 (fence 1)" "if you did not claim it, take another task: pawl next --claim"
	in_session one ask 20 claim t1
	is '(has("lock") | not) and (tostring | contains("token") | not)'
	in_session two unchanged 20 claim t1
	complains "t1 is held by alice"
	new y
	call 0 claim t2
	unchanged 20 claim t2
	complains "you already hold t2 (fence 1)"
	in_session one call 20 claim t2
	complains "t2 is held by alice"
}

@test "pawl run passes on the run that was named, not one that was made" {
	new x
	new y
	export CLAUDE_CODE_SESSION_ID=one
	call 0 run --next -- sh -c 'echo "run=${PAWL_RUN-}"; CLAUDE_CODE_SESSION_ID=two "$PAWL" guard'
	says "run="
	not grep -q 'run=one' <<<"$output"
	call 0 run --next --run named -- sh -c 'echo "run=${PAWL_RUN-}"'
	says "run=named"
}

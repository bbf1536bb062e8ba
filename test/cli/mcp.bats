#!/usr/bin/env bats
# mcp: the server as a process. test/mcp tests the messages; this file tests the transport.

load common

request() { # METHOD [PARAMS [ID]]
	printf '{"jsonrpc":"2.0","id":%s,"method":"%s","params":%s}\n' "${3:-1}" "$1" "${2:-{\}}"
}

tool() { # NAME ARGUMENTS [ID]
	request tools/call "{\"name\":\"$1\",\"arguments\":$2}" "${3:-1}"
}

# converse [OPTION...]: sends the messages from standard input; leaves the replies in $output
converse() {
	run --separate-stderr timeout 60 "$PAWL" mcp "$@"
	printf '%.4000s\n%.2000s\nexit code %s\n' "$output" "$stderr" "$status"
	[ "$status" -eq 0 ]
	[ -z "$stderr" ]
	jq -es 'all(.jsonrpc == "2.0")' <<<"$output" >/dev/null
}

# serve [OPTION...]: a server that stays; say LINE, then hear leaves the next line in $output
serve() {
	coproc SERVER { exec "$PAWL" mcp "$@" 2>"$BATS_TEST_TMPDIR/complaints" 3>&-; }
	server=$SERVER_PID
	disown "$server"
	exec {to}>&"${SERVER[1]}" {from}<&"${SERVER[0]}"
	eval "exec ${SERVER[1]}>&- ${SERVER[0]}<&-"
}

say() {
	printf '%s\n' "$1" >&"$to"
}

hear() {
	IFS= read -r -t 30 -u "$from" output
	printf '%.2000s\n' "$output"
}

# soon COMMAND...: waits until it succeeds
soon() {
	local end=$((SECONDS + 30))
	until "$@"; do
		[ "$SECONDS" -lt "$end" ]
		sleep 0.05
	done
}

gone() {
	! kill -0 "$1" 2>/dev/null
}

expires() {
	"$PAWL" lock status "$1" --json | jq -r .lock.expires_at
}

later_than() {
	[[ $(expires "$1") > $2 ]]
}

free() {
	"$PAWL" lock check -q "$1"
	[ $? -eq 1 ]
}

teardown() {
	[ -z "${server-}" ] || kill -9 "$server" 2>/dev/null || :
}

@test "mcp: a whole life, and nothing else on standard output" {
	{
		request initialize '{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}'
		echo '{"jsonrpc":"2.0","method":"notifications/initialized"}'
		tool create '{"title":"Fix it","acceptance":"it is fixed"}' 2
		tool next '{"claim":true}' 3
		tool done '{"id":"t1","summary":"fixed"}' 4
	} >messages
	PAWL_FORMAT=json converse --agent alice <messages
	is -s 'map(.id) == [1, 2, 3, 4] and all(.result.isError != true)'
	is -s '.[2].result.structuredContent | .task.id == "t1" and .lock.fence == 1 and .call_next'
	ask 0 show t1
	is '.task.status == "Done" and .task.last_holder == "alice"'
	call 0 mcp </dev/null
	[ -z "$output$stderr" ]
}

@test "mcp: options that are wrong" {
	call 2 mcp --profile everything
	complains "agent pm all"
	ask 2 mcp --profile everything
	lines 2 mcp --max-hold soon
	call 2 mcp --agent "$(printf 'a\nb')" </dev/null
	[ -z "$output" ]
	mkdir .pawl 2>/dev/null || :
	echo 'lease = never' >.pawl/config
	PAWL_FORMAT=json call 40 mcp </dev/null
	[ -z "$output" ]
	complains lease
}

@test "mcp: a wrong message gets an answer, and the server continues" {
	{
		echo 'not JSON'
		head -c 10485760 /dev/zero | tr '\0' x
		echo
		printf '{"a":%.0s' {1..5000}
		echo
		tool show '{"id":"../../etc/passwd"}' 4
		tool no_such_tool '{}' 5
		tool show '{"id":17,"nonsense":[]}' 6
		request server/discover '{"_meta":{"io.modelcontextprotocol/protocolVersion":"2099-01-01"}}' 7
		request ping '{}' 8
	} >messages
	converse <messages
	is -s 'map(.error.code) == [-32700, -32600, -32700, null, -32602, null, -32022, null]'
	is -s '.[3].result | .isError and .structuredContent.error.code == "USAGE"'
	is -s '.[5].result | .isError and .structuredContent.error.code == "USAGE"'
	is -s 'last == {jsonrpc: "2.0", id: 8, result: {}}'
}

@test "mcp: a message over 8 MiB gets one error without an id" {
	head -c 9000000 /dev/zero | tr '\0' x >text
	{
		printf '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"x":"'
		cat text
		printf '"}}\n'
		request ping '{}' 2
	} >messages
	converse <messages
	is -s 'length == 2 and (.[0] | has("id") | not) and .[0].error.code == -32600'
	is -s 'last == {jsonrpc: "2.0", id: 2, result: {}}'
}

@test "mcp: the largest texts pass, the last line may lack its end, CRLF is accepted" {
	head -c 262144 /dev/zero | tr '\0' '"' >text
	jq -cn --rawfile d text '{jsonrpc: "2.0", id: 1, method: "tools/call", params: {name: "create",
		arguments: {title: "big", description: $d, acceptance: $d}}}' >messages
	request ping | sed 's/$/\r/' >>messages
	request ping '{}' 3 | tr -d '\n' >>messages
	converse <messages
	is -s 'length == 3 and .[0].result.isError == false and .[2].id == 3'
	ask 0 show t1
	is '.task.description | length == 262144'
}

@test "mcp: answers while a call waits for work; cancellation" {
	serve --agent alice
	say '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"next","arguments":{"claim":true,"wait":60},"_meta":{"progressToken":5}}}'
	hear
	is '.method == "notifications/progress" and .params.progressToken == 5'
	say "$(request ping '{}' 2)"
	hear
	is '.id == 2'
	new x -i x
	hear
	is '.id == 1 and .result.structuredContent.task.id == "x"'
	say "$(tool next '{"claim":true,"wait":60}' 3)"
	say '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}'
	say "$(request ping '{}' 4)"
	hear
	is '.id == 4'
	new y -i y
	say "$(tool show '{"id":"y"}' 5)"
	hear
	is '.id == 5 and .result.structuredContent.task.status == "Ready"'
}

@test "mcp: locks are renewed while the client is there, and only then" {
	new x -i x
	serve --agent alice
	say "$(tool claim '{"id":"x","ttl":6}')"
	hear
	first=$(expires x)
	soon later_than x "$first"
	soon later_than x "$(expires x)"
	exec {to}>&-
	soon gone "$server"
	soon free x
	ask 0 show x
	is '.task.status == "In Progress"'
}

@test "mcp: killed, it leaves the lock to expire; started again, it continues" {
	new x -i x
	serve --agent alice
	say "$(tool claim '{"id":"x","ttl":60}')"
	hear
	tool next '{}' 1 >messages
	converse --agent alice <messages # another session of that name does not treat it as its own
	is '.result.structuredContent.held == null'
	kill -9 "$server"
	soon gone "$server"
	ask 0 lock status x
	is '.locked and .lock.pid == $pid' --argjson pid "$server"
	{
		tool next '{}' 1
		tool heartbeat '{"id":"x"}' 2
		tool done '{"id":"x"}' 3
	} >messages
	converse --agent alice --run another <messages
	is -s '.[0].result.structuredContent.held == null and .[2].result.structuredContent.error.code == "CONFLICT"'
	converse --agent bob <messages
	is -s '.[1].result.structuredContent.error.code == "CONFLICT"'
	converse --agent alice <messages
	is -s '.[0].result.structuredContent.held[0].task == "x" and .[2].result.structuredContent.task.status == "Done"'
}

@test "mcp: --release-on-exit releases the tasks at the end of the input and at SIGTERM" {
	new x -i x
	for how in end term; do
		serve --agent alice --release-on-exit
		say "$(tool claim '{"id":"x"}')"
		hear
		is '.result.isError == false'
		if [ "$how" = end ]; then
			exec {to}>&-
		else
			kill -TERM "$server"
		fi
		soon gone "$server"
		ask 0 show x
		is '.task.status == "Ready" and .task.lock == null'
	done
	tool claim '{"id":"x"}' >messages
	converse --agent alice <messages
	ask 0 show x
	is '.task.status == "In Progress" and .task.lock.live'
}

@test "mcp: SIGTERM ends it, and subscribers are told" {
	serve
	say '{"jsonrpc":"2.0","id":"s","method":"subscriptions/listen","params":{"notifications":{"resourceSubscriptions":["pawl://tasks/x"]},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}'
	hear
	is '.method == "notifications/subscriptions/acknowledged"'
	new x -i x
	hear
	is '.method == "notifications/resources/updated" and .params.uri == "pawl://tasks/x"'
	kill -TERM "$server"
	hear
	is '.id == "s" and .result.resultType == "complete"'
	soon gone "$server"
}

@test "mcp: a client that does not read is waited for, one that is gone is not" {
	for i in {1..2000}; do request tools/list '{}' "$i"; done >messages
	timeout 60 "$PAWL" mcp <messages | (
		sleep 0.2
		wc -l
	) >count
	same "$(tr -d ' ' <count)" 2000
	mkfifo pipe
	timeout 60 "$PAWL" mcp <pipe | true &
	exec {hold}>pipe
	(request tools/list >&"$hold") 2>/dev/null || : # it may have noticed by itself
	wait $!
	exec {hold}>&-
}

@test "mcp: --max-hold 0 leaves leases as they are" {
	new x -i x
	serve --agent alice --max-hold 0
	say "$(tool claim '{"id":"x","ttl":1}')"
	hear
	first=$(expires x)
	soon free x
	same "$(expires x)" "$first"
}

# --- below pawl run ---------------------------------------------------------------------------------

# under_run MESSAGE...: pawl run starts an agent, which starts a server and sends it the messages; the replies are in `replies`
under_run() {
	printf '%s\n' "$@" >messages
	"$PAWL" run --next -- sh -c '"$0" mcp <messages >replies 2>complaints' "$PAWL" 2>err
	cat err complaints replies
	[ ! -s complaints ]
}

reply() { # ID FILTER
	jq -es ".[] | select(.id == $1) | .result.structuredContent | $2" replies >/dev/null
}

@test "mcp below run: next gives the task that run holds, as often as it is asked" {
	new a --description "do it" >/dev/null
	new b >/dev/null
	under_run "$(tool next '{"claim":true}' 1)" "$(tool next '{}' 2)" "$(tool next '{"claim":true,"label":"x"}' 3)" \
		"$(tool next '{"claim":true,"explain":false,"wait":5}' 4)" "$(tool next '{"explain":true}' 5)"
	for i in 1 2 3 4; do
		reply $i '.ok and .task.id == "t1" and .task.description == "do it" and .lock.fence == 1 and .call_next'
	done
	reply 5 '.candidates | length == 2'
	status_is t1 Done # by run, although the server ended first
	status_is t2 Ready
	same "$(field t2 .attempts)" 0
}

@test "mcp below run: the lock stays with run" {
	new a >/dev/null
	"$PAWL" run --next -- sh -c '
		"$0" lock status t1 --json >before
		printf "%s\n" "$1" "$2" "$3" | "$0" mcp >replies
		"$0" lock status t1 --json >after' "$PAWL" "$(tool next '{"claim":true}' 1)" "$(tool heartbeat '{"id":"t1"}' 2)" \
		"$(tool claim '{"id":"t1"}' 3)"
	cat before replies after
	jq -e '.locked and .lock.live' after
	same "$(jq .lock.pid before)" "$(jq .lock.pid after)"
	reply 2 .ok
	reply 3 .ok
	status_is t1 Done
	"$PAWL" log t1 --json | jq -e '[.events[].event] | . == ["created", "claimed", "done"]'
}

@test "mcp below run: after the end of its task the session gets no second one" {
	new a >/dev/null
	new b >/dev/null
	under_run "$(tool done '{"id":"t1","summary":"x","claim_next":true}' 1)" "$(tool next '{"claim":true,"wait":60}' 2)" \
		"$(tool done '{"id":"t1","summary":"x"}' 3)"
	reply 1 '.ok and .next == null and (.warnings[0] | contains("Stop here"))'
	reply 2 '.code == "NO_TASKS" and (.warnings[0] | contains("Stop here")) and .hint == null'
	reply 3 '.ok and .repeated'
	status_is t1 Done
	status_is t2 Ready
}

@test "mcp below run: on another queue next is as ever" {
	new a >/dev/null
	mkdir other
	(cd other && "$PAWL" init -q --force && "$PAWL" create x -q && "$PAWL" create y -q) >/dev/null
	printf '%s\n' "$(tool next '{"claim":true}' 1)" >messages
	"$PAWL" run --next -- sh -c '"$0" mcp --store "sqlite:$PWD/other/.pawl/queue.db" <messages >replies' "$PAWL"
	cat replies
	reply 1 '.ok and .task.title == "x"'
}

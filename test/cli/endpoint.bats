#!/usr/bin/env bats
# MCP over HTTP at /mcp, by hand: both eras, sessions, refusals, roles, lost answers. test/mcp/clients.bats has the official
# clients.

load common
load serving

old='{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}'
meta='"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}'

# rpc STATUS METHOD [PARAMS [CURL-ARG...]]: one request of the session $session; leaves $output
rpc() {
	local want=$1 method=$2 params=${3-"{}"}
	shift $(($# < 3 ? $# : 3))
	http "$want" -H 'Content-Type: application/json' -H 'Accept: application/json, text/event-stream' \
		${session:+-H "MCP-Session-Id: $session"} "$@" \
		-d "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"$method\",\"params\":$params}" "$url/mcp${query-}"
}

# begin: starts a session
begin() {
	session='' rpc 200 initialize "$old"
	session=$(sed -n 's/^MCP-Session-Id: \(.*\)\r$/\1/pi' "$BATS_TEST_TMPDIR/head")
	[[ $session =~ ^[!-~]+$ ]]
}

# use TOOL [ARGUMENTS [CURL-ARG...]]: a call of a tool in the session; leaves its object in $output
use() {
	local tool=$1 arguments=${2-"{}"}
	shift $(($# < 2 ? $# : 2))
	rpc 200 tools/call "{\"name\":\"$tool\",\"arguments\":$arguments}" "$@"
	output=$(sed -n 's/^data: //p; /^{/p' <<<"$output" | tail -n 1 | jq -c .result.structuredContent)
}

# now STATUS METHOD [PARAMS [CURL-ARG...]]: a request without a session, with its headers; PARAMS without braces
now() {
	local want=$1 method=$2 params=${3-}
	shift $(($# < 3 ? $# : 3))
	session='' rpc "$want" "$method" "{${params:+$params,}$meta}" -H 'MCP-Protocol-Version: 2026-07-28' \
		-H "Mcp-Method: $method" "$@"
}

# use_now TOOL [ARGUMENTS]
use_now() {
	now 200 tools/call "\"name\":\"$1\",\"arguments\":${2-"{}"}" -H "Mcp-Name: $1"
	output=$(sed -n 's/^data: //p; /^{/p' <<<"$output" | tail -n 1 | jq -c .result.structuredContent)
}

again() {
	kill -9 "$server"
	wait "$server" || true
	serve "$@"
}

@test "a session: initialize, work, the end" {
	serve
	begin
	is '.result.protocolVersion == "2025-11-25" and .result.capabilities.tools and .result.serverInfo.name == "pawl"'
	http 202 -H 'Content-Type: application/json' -H "MCP-Session-Id: $session" -H 'MCP-Protocol-Version: 2025-11-25' \
		-d '{"jsonrpc":"2.0","method":"notifications/initialized"}' "$url/mcp"
	same "$output" ""
	rpc 200 tools/list
	is '[.result.tools[].name] | length == 11'
	rpc 200 ping
	rpc 200 nothing
	is '.error.code == -32601'
	use create '{"title":"One"}'
	use next '{"claim":true}'
	is '.task.id == "t1" and .lock.fence == 1 and .call_next'
	ask 0 show t1
	is '.task.lock.pid == null and .task.lock.mode == "server" and (.task.agent_run | startswith("mcp-"))'
	use done '{"id":"t1"}'
	is '.task.status == "Done"'
	http 204 -X DELETE -H "MCP-Session-Id: $session" "$url/mcp"
	rpc 404 tools/list
	http 404 -X DELETE -H "MCP-Session-Id: $session" "$url/mcp"
	again
	rpc 404 tools/list # it stays ended
}

@test "2026-07-28: each request stands for itself" {
	serve
	now 200 server/discover
	is '.result.supportedVersions == ["2026-07-28"] and .result.resultType == "complete"'
	not grep -qi '^mcp-session-id' "$BATS_TEST_TMPDIR/head"
	use_now create '{"title":"One"}'
	use_now claim '{"id":"t1"}'
	is '.lock.fence == 1'
	use_now next
	is '.held[0].task == "t1"'
	again
	use_now done '{"id":"t1"}'
	is '.task.status == "Done"'
	now 200 tools/list '' -H 'MCP-Session-Id: nonsense' # ignored
	now 200 resources/read '"uri":"pawl://tasks/t1"' -H 'Mcp-Name:   pawl://tasks/t1  '
	now 200 resources/read '"uri":"pawl://tasks/t1"' -H "Mcp-Name: =?base64?$(printf pawl://tasks/t1 | base64)?="
	now 404 nothing
	is '.error.code == -32601'
	now 404 initialize
	now 404 ping
	http 405 -H 'MCP-Protocol-Version: 2026-07-28' "$url/mcp"
	grep -qi '^allow: POST' "$BATS_TEST_TMPDIR/head"
	http 202 -H 'Content-Type: application/json' -H 'MCP-Protocol-Version: 2026-07-28' \
		-d '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}' "$url/mcp"
}

@test "a call that is cancelled inside a batch ends" {
	serve
	session='' rpc 200 initialize "${old/2025-11-25/2025-03-26}"
	session=$(sed -n 's/^MCP-Session-Id: \(.*\)\r$/\1/pi' "$BATS_TEST_TMPDIR/head")
	curl -s -m 60 -H "Authorization: Bearer $token" -H 'Content-Type: application/json' -H 'Accept: application/json, text/event-stream' \
		-H "MCP-Session-Id: $session" -d '{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"next","arguments":{"wait":50}}}' \
		"$url/mcp" >got 3>&- &
	waiter=$!
	soon waiters_are 1
	http 200 -H 'Content-Type: application/json' -H 'Accept: application/json, text/event-stream' -H "MCP-Session-Id: $session" \
		-d '[{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}},{"jsonrpc":"2.0","id":9,"method":"ping"}]' "$url/mcp"
	wait "$waiter"
	soon waiters_are 0
}

@test "2026-07-28: headers that differ from the message are refused" {
	serve
	pawl create One
	start=$(snapshot)
	call='"name":"claim","arguments":{"id":"t1"}'
	for headers in '' 'Mcp-Method: tools/list' 'Mcp-Method: TOOLS/CALL'; do
		session='' rpc 400 tools/call "{$call,$meta}" -H 'MCP-Protocol-Version: 2026-07-28' -H 'Mcp-Name: claim' \
			${headers:+-H "$headers"}
		is '.error.code == -32020'
	done
	for name in '' 'Mcp-Name: done' 'Mcp-Name: =?base64?Y2xhaW0?=' 'Mcp-Name: =?base64?!!!!?='; do
		now 400 tools/call "$call" ${name:+-H "$name"}
		is '.error.code == -32020 and .id == 7'
	done
	session='' rpc 400 tools/call "{$call,$meta}" -H 'Mcp-Method: tools/call' -H 'Mcp-Name: claim'
	is '.error.code == -32020' # no version
	session='' rpc 400 tools/call "{$call,$meta}" -H 'MCP-Protocol-Version: 2025-11-25' -H 'Mcp-Method: tools/call' \
		-H 'Mcp-Name: claim'
	is '.error.code == -32020'
	session='' rpc 400 tools/call "{$call}" -H 'MCP-Protocol-Version: 2026-07-28' -H 'Mcp-Method: tools/call'
	is '.error.code == -32602' # no _meta
	session='' rpc 400 server/discover
	session='' rpc 400 tools/list "{${meta//2026-07-28/2099-01-01}}" -H 'MCP-Protocol-Version: 2099-01-01' \
		-H 'Mcp-Method: tools/list'
	is '.error.code == -32022 and .error.data.supported == ["2026-07-28"]'
	same "$start" "$(snapshot)"
}

@test "refused requests change nothing" {
	serve
	pawl create One
	begin
	start=$(snapshot)
	claim='{"name":"claim","arguments":{"id":"t1"}}'
	rpc 403 tools/call "$claim" -H 'Host: evil.example'
	rpc 403 tools/call "$claim" -H 'Origin: http://evil.example'
	rpc 403 tools/call "$claim" -H 'Sec-Fetch-Site: cross-site'
	token='' rpc 401 tools/call "$claim"
	grep -qi '^www-authenticate: Bearer realm="pawl"' "$BATS_TEST_TMPDIR/head"
	not grep -qi resource_metadata "$BATS_TEST_TMPDIR/head"
	for type in text/plain application/x-www-form-urlencoded application/vnd.pawl.call; do
		http 415 -H "Content-Type: $type" -H "MCP-Session-Id: $session" \
			-d '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"claim","arguments":{"id":"t1"}}}' "$url/mcp"
	done
	http 406 -H 'Content-Type: application/json' -H 'Accept: text/html' -H "MCP-Session-Id: $session" -d '{}' "$url/mcp"
	http 406 -H 'Accept: application/json' -H "MCP-Session-Id: $session" "$url/mcp"
	rpc 400 tools/call "$claim" -H 'MCP-Protocol-Version: 2024-01-01'
	session='' rpc 400 tools/call "$claim"
	session=nonsense rpc 404 tools/call "$claim"
	session=${session%?}_ rpc 404 tools/call "$claim"
	session=mcp-0000000000000000.${session#*.} rpc 404 tools/call "$claim"
	for body in '{' '' '[]' 'null' '[{"jsonrpc":"2.0","id":1,"method":"ping"}]' '{"jsonrpc":"1.0","id":1}' \
		'{"jsonrpc":"2.0","id":{},"method":"ping"}'; do
		http 400 -H 'Content-Type: application/json' -H "MCP-Session-Id: $session" -d "$body" "$url/mcp"
		is '.error.code | . == -32700 or . == -32600'
	done
	http 405 -X PUT -H 'Content-Type: application/json' -d '{}' "$url/mcp"
	grep -qi '^allow: GET, POST, DELETE' "$BATS_TEST_TMPDIR/head"
	http 400 "$url/mcp"
	http 404 -H 'MCP-Session-Id: nonsense' "$url/mcp"
	http 400 -X DELETE "$url/mcp"
	query='?profile=everything' rpc 400 tools/list
	query='?run=%0a' rpc 400 tools/list
	query='?agent=a%0db' rpc 400 tools/list
	query='?queue=nowhere' session='' rpc 422 initialize "$old"
	head -c 1100000 /dev/zero | tr '\0' a >big
	http 413 -H 'Content-Type: application/json' -H "MCP-Session-Id: $session" --data-binary @big "$url/mcp"
	same "$start" "$(snapshot)"
	use claim '{"id":"t1"}'
	is .ok
}

@test "a session is of one token, agent and queue" {
	serve
	pawl create One
	token_for ann --role agent --agent 'ag-*'
	rpc 400 initialize "$old"
	is '.error.message | contains("?agent=NAME")'
	query='?agent=bob' rpc 403 initialize "$old"
	query='?agent=ag-ann&run=r1'
	begin
	use claim '{"id":"t1"}'
	query='?agent=ag-abe&run=r1' rpc 404 ping
	ann=$token
	token_for ann2 --role admin --agent 'ag-*'
	rpc 404 ping
	http 404 -H "MCP-Session-Id: $session" -X DELETE "$url/mcp$query"
	http 404 -H "MCP-Session-Id: $session" "$url/mcp$query"
	# another token with the same names is another caller
	use_now done '{"id":"t1"}'
	is '.error.code == "CONFLICT"'
	token=$ann use done '{"id":"t1"}'
	is .ok
	token=$ann
	pawl token revoke ann
	rpc 401 ping
}

@test "a tool's own argument cannot name an agent of others" {
	serve
	pawl create One
	token_for pm --role agent --agent 'pm-*'
	query='?agent=pm-1&profile=pm'
	begin
	use update_task_status '{"task_id":"t1","status":"IN_PROGRESS","agent_id":"alice"}'
	is '.error.message | contains("does not allow this agent name")'
	use update_task_status '{"task_id":"t1","status":"IN_PROGRESS","agent_id":"pm-2"}'
	is '.lock_holder == "pm-2"'
	query='?agent=pm-1&profile=all'
	begin
	use create '{"title":"x","file":"/etc/passwd"}'
	is '.error.code == "USAGE"'
}

@test "the server's own environment is not the caller's; a lock of the whole queue is its holder's" {
	pawl create One
	"$PAWL" claim t1 --json >claim
	lock=$(jq -r .lock.token claim)
	PAWL_TASK=t1 PAWL_TOKEN=$lock PAWL_FENCE=1 PAWL_STORE=sqlite:$PWD/.pawl/queue.db PAWL_RUN=r serve
	query='?profile=all'
	begin
	for tool in done heartbeat release; do
		use $tool '{"id":"t1"}'
		is '.error.code == "CONFLICT"'
	done
	use next '{"claim":true}'
	is '.code == "NO_TASKS"'
	use lock_acquire '{"id":"@maintenance"}'
	is '.lock.fence == 1'
	use create '{"title":"Two"}'
	is '.ok'
	token_for ann --role agent
	holder=$session
	begin
	use create '{"title":"Three"}' -m 1 || true # it waits for the end of the maintenance
	not "$PAWL" show t3
	token=$(cat "$(state)/first-token") session=$holder use lock_release '{"id":"@maintenance"}'
	is .ok
	use create '{"title":"Three"}'
	is .ok
}

readers="next status list show tree graph find log lock_check lock_status lock_list lock_typed emergency_status id_peek report
	stats"
agents="create update depend undepend comment claim heartbeat done review release block escalate fail lock_acquire
	lock_release id_claim undo"
reviewers="approve rework unblock retry reopen cancel archive"
admins="remove pause resume lock_break lock_cleanup emergency_on emergency_off"
pm_readers="get_available_tasks get_task_lock_status list_tasks get_task_details"
pm_agents="create_task update_task update_task_status acquire_task_lock release_task_lock undo_task"

# offers ROLE PROFILE TOOL...: the role is offered these tools, and may not call the others
offers() {
	local role=$1 profile=$2 all name
	shift 2
	token_for "$role-$profile" --role "$role"
	query="?profile=$profile"
	begin
	rpc 200 tools/list
	same "$(jq -r '.result.tools[].name' <<<"$output" | sort)" "$(printf '%s\n' "$@" | sort)"
	[ "$profile" = pm ] && all="$pm_readers $pm_agents" || all="$readers $agents $reviewers $admins"
	for name in $all; do
		printf 'url = "%s/mcp%s"\ndata = "{\\"jsonrpc\\":\\"2.0\\",\\"id\\":\\"%s\\",\\"method\\":\\"tools/call\\",\\"params\\":{\\"name\\":\\"%s\\",\\"arguments\\":{\\"id\\":\\"t1\\",\\"task_id\\":\\"t1\\"}}}"\nheader = "Authorization: Bearer %s"\nheader = "Content-Type: application/json"\nheader = "MCP-Session-Id: %s"\nnext\n' \
			"$url" "$query" "$name" "$name" "$token" "$session"
	done | sed '$d' >config
	curl -s -K config | sed 's/}{"jsonrpc/}\n{"jsonrpc/g' >answers
	jq -r 'select((.result.structuredContent.error.message // "") | contains("needs the role") | not) | .id' answers | sort >may
	same "$(cat may)" "$(printf '%s\n' "$@" | sort)"
	same "$(jq -s length answers)" "$(wc -w <<<"$all")"
}

@test "the role of the token decides about every tool" {
	serve
	offers reader all $readers
	offers agent all $readers $agents
	offers reviewer all $readers $agents $reviewers
	offers admin all $readers $agents $reviewers $admins
	offers reader pm $pm_readers
	offers agent pm $pm_readers $pm_agents
}

@test "a tool is judged by what its call does; a read-only server changes nothing" {
	serve
	pawl create One
	token_for rae --role reader
	begin
	use next '{"claim":true}'
	is '.error.message | contains("needs the role agent")'
	token_for al --role agent
	query='?profile=all'
	begin
	use claim '{"id":"t1"}'
	use review '{"id":"t1","summary":"x"}'
	use status '{"id":"t1","status":"done"}'
	is '.error.message | contains("needs the role reviewer")'
	again --read-only
	query=''
	begin
	rpc 200 tools/list
	is '[.result.tools[].name] == ["next", "show", "list"]'
	use create '{"title":"Two"}'
	is '.error.message | contains("needs the role agent")'
}

@test "kill -9 in the middle of a session: it continues, with its locks" {
	serve
	begin
	use create '{"title":"One"}'
	use claim '{"id":"t1","ttl":600}'
	again
	use next
	is '.held[0].task == "t1"'
	use heartbeat '{"id":"t1"}'
	is .ok
	again
	use done '{"id":"t1"}'
	is '.task.status == "Done"'
}

@test "a claim whose answer was lost is found again: the store, then the server, then the client fails" {
	pawl create One
	pawl create Two
	serve --store "fault+sqlite:$PWD/.pawl/queue.db?fault=modify:1:lost"
	state=$(state)
	begin
	use next '{"claim":true}'
	is '.error.code == "API_ERROR"'
	ask 0 show t1
	is '.task.lock.fence == 1'
	kill -9 "$server"
	wait "$server" || true
	PAWL_SERVER_STATE=$state serve --store "fault+sqlite:$PWD/.pawl/queue.db?fault=modify:9:lost"
	use next '{"claim":true}'
	is '.task.id == "t1" and .lock.fence == 1 and .repeated'

	# the client goes away while its claim waits for the disk
	coproc holder { python3 -c 'import sqlite3, sys
c = sqlite3.connect(".pawl/queue.db", isolation_level=None)
c.execute("begin immediate")
print("held", flush=True)
sys.stdin.readline()'; }
	read -r _ <&"${holder[0]}"
	curl -s -m 60 -H "Authorization: Bearer $token" -H 'Content-Type: application/json' -H "MCP-Session-Id: $session" \
		-d '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"claim","arguments":{"id":"t2"}}}' "$url/mcp" 3>&- &
	waiter=$!
	soon eval 'ls "$state"/mcp/*.pending 2>/dev/null'
	kill -9 "$waiter"
	wait "$waiter" || true
	http 200 "$url/livez" # by now the server has seen it
	echo >&"${holder[1]}"
	soon eval '"$PAWL" lock check t2 >/dev/null'
	use claim '{"id":"t2"}'
	is '.task.id == "t2" and .lock.fence == 1 and .repeated'
	use claim '{"id":"t2"}' # that answer has arrived
	is '.error.code == "CONFLICT"'
}

@test "waiting: progress as events, a caller that went away gets no task, the end of the server answers" {
	serve
	begin
	curl -sN -m 60 -H "Authorization: Bearer $token" -H 'Content-Type: application/json' -H "MCP-Session-Id: $session" -d \
		'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"next","arguments":{"claim":true,"wait":50},"_meta":{"progressToken":"p"}}}' \
		"$url/mcp" >first 3>&- &
	waiter=$!
	soon grep -q '"progressToken":"p"' first
	kill -9 "$waiter"
	wait "$waiter" || true
	http 200 "$url/livez"
	use create '{"title":"One"}'
	sleep 0.3 # time for the call to take it, if it still waits
	use show '{"id":"t1"}'
	is '.task.status == "Ready"'
	use next '{"claim":true,"wait":50}'
	is '.task.id == "t1"'
	use next '{"claim":true,"wait":0.05}' -H 'Accept: application/json'
	is '.code == "NO_TASKS"'
	: >first
	curl -sN -m 60 -H "Authorization: Bearer $token" -H 'Content-Type: application/json' -H "MCP-Session-Id: $session" -d \
		'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"next","arguments":{"claim":true,"wait":50}}}' \
		"$url/mcp" >first 3>&- &
	waiter=$!
	soon test -s first
	kill "$server"
	wait "$server"
	wait "$waiter"
	grep -q NO_TASKS first
}

@test "a stream has the changes of resources, and ends with its token" {
	serve
	token_for ann --role agent
	begin
	use create '{"title":"One"}'
	rpc 200 resources/subscribe '{"uri":"pawl://tasks/t1"}'
	curl -sN -H "Authorization: Bearer $token" -H "MCP-Session-Id: $session" "$url/mcp" >stream 3>&- &
	follower=$!
	soon test -s stream
	pawl comment t1 "from beside"
	soon grep -q '"uri":"pawl://tasks/t1"' stream
	pawl token revoke ann
	cp stream before
	pawl comment t1 "not for everybody"
	wait "$follower"
	cmp stream before
	token_for bob --role agent
	begin
	: >stream
	curl -sN -H "Authorization: Bearer $token" -H "MCP-Session-Id: $session" "$url/mcp" >stream 3>&- &
	follower=$!
	soon test -s stream
	kill "$server"
	wait "$server"
	wait "$follower"
}

streams_are() {
	http 200 "$url/metrics" && grep -qx "pawl_streams $1" <<<"$output"
}

@test "streams of both eras count for serve.max_streams" {
	pawl config set serve.max_streams 1
	serve
	begin
	now 200 subscriptions/listen '"notifications":7'
	is '.error.code == -32602'
	streams_are 0
	: >stream
	curl -sN -H "Authorization: Bearer $token" -H 'Content-Type: application/json' -H 'MCP-Protocol-Version: 2026-07-28' \
		-H 'Mcp-Method: subscriptions/listen' "$url/mcp" -d \
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"subscriptions/listen\",\"params\":{\"notifications\":{},$meta}}" >stream 3>&- &
	follower=$!
	soon grep -q acknowledged stream
	streams_are 1
	now 429 subscriptions/listen '"notifications":{}'
	http 429 -H "MCP-Session-Id: $session" "$url/mcp"
	http 429 "$url/v1/events"
	kill -9 "$follower"
	soon streams_are 0
	curl -sN -H "Authorization: Bearer $token" -H "MCP-Session-Id: $session" "$url/mcp" >stream 3>&- &
	follower=$!
	soon streams_are 1
	now 429 subscriptions/listen '"notifications":{}'
}

# counted COMMAND CODE N
counted() {
	grep -qx "pawl_calls_total{op=\"$1\",code=\"$2\"} $3" <<<"$output"
}

@test "calls of tools are counted by command and code" {
	serve
	begin
	use create '{"title":"One"}'
	use create '{"title":"Two"}'
	use show '{"id":"t9"}'
	use_now claim '{"id":"t1"}'
	use next '{"wait":0.05,"claim":true}'
	use next '{"wait":0.05,"claim":true}'
	query='?profile=pm' use_now get_task_details '{"task_id":"t1"}'
	old=${old/2025-11-25/2025-03-26} begin
	http 200 -H 'Content-Type: application/json' -H "MCP-Session-Id: $session" "$url/mcp" -d \
		'[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list"}},{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"list"}}]'
	http 200 "$url/metrics"
	counted create SUCCESS 2
	counted show NOT_FOUND 1
	counted claim SUCCESS 1
	counted next SUCCESS 1
	counted next NO_TASKS 1
	counted show SUCCESS 1
	counted list SUCCESS 2
	grep -qx 'pawl_call_seconds_count{op="create"} 2' <<<"$output"
	grep -q '^pawl_http_requests_total{route="mcp",status="200"}' <<<"$output"
	http 200 "$url/openapi.json"
	is '.paths["/mcp"] | .post.requestBody.content["application/json"] and .get and .delete'
	jq -r '.paths["/mcp"] | .post.responses, .get.responses, .delete.responses | keys[]' <<<"$output" | sort -u >statuses
	for status in 200 202 204 400 401 403 404 406 415 429; do
		grep -qx "$status" statuses
	done
}

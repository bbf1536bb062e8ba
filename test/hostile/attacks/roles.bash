# shellcheck shell=bash
# Attacks of callers with a token on a server: by a role that does not allow the call, and by a token that is not valid any
# more. Sourced by attack.bash.

# shellcheck source=test/hostile/serving.bash
. "${BASH_SOURCE[0]%/*}/../serving.bash"

export PAWL_SERVER_STATE=$scratch/tmp/state PAWL_SERVE_CALLS_PER_SECOND=100000 PAWL_SERVE_BURST=100000

# token NAME ROLE ARG...: makes a token; ${secret[NAME]}
declare -A secret
token() {
	secret[$1]=$("$PAWL" token create "$1" --role "$2" "${@:3}" -q)
}

revoke() {
	"$PAWL" token revoke "$1" -q
}

# as NAME STATUS COMMAND JSON [?QUERY]: a call with the token of NAME; leaves $output
as() {
	local got
	got=$(curl -s -m 60 -o "$scratch/body" -w '%{http_code}' -H "Authorization: Bearer ${secret[$1]}" \
		-H 'Content-Type: application/json' -d "$4" "$url/v1/$3${5-}")
	output=$(<"$scratch/body")
	printf '%s: %s %s: %s\n%.300s\n' "$1" "$3" "$4" "$got" "$output"
	[ "$got" = "$2" ]
}

# grant NAME COMMAND JSON: the same for an acquisition; leaves $lock
grant() {
	as "$1" 200 "$2" "$3"
	lock=$(jq -r .lock.token <<<"$output")
}

# waits NAME: a claim that waits, in the background, into the files got and code. Fails if it does not wait.
waits() {
	curl -s -m 90 -o "$scratch/got" -w '%{http_code}' -H "Authorization: Bearer ${secret[$1]}" \
		-H 'Content-Type: application/json' -d '{"claim":true,"wait":60}' "$url/v1/next" >"$scratch/code" &
	waiter=$!
	until curl -s -H "Authorization: Bearer ${secret[root]}" "$url/metrics" | grep -qx 'pawl_waiters 1'; do
		kill -0 "$waiter" 2>/dev/null || return 1
		sleep 0.05
	done
}

all_tasks() {
	"$PAWL" list --limit 0 --json
}

need curl
need jq

# every status, and the locks of another agent
prepare() {
	queue
	serve --log none
	token root admin --agent '*'
	token al agent
	token mal agent
	token ann reviewer
	token rae reader
	local id
	for id in ready held manual review backlog failed help blocked done; do
		as root 200 create "{\"title\":\"$id\",\"id\":\"$id\"}"
	done
	as root 200 update '{"id":"backlog","status":"backlog"}'
	grant al claim '{"id":"review"}'
	as al 200 review "{\"id\":\"review\",\"token\":\"$lock\",\"summary\":\"x\"}"
	grant al claim '{"id":"failed"}'
	as al 200 fail "{\"id\":\"failed\",\"token\":\"$lock\",\"reason\":\"x\"}"
	grant al claim '{"id":"help"}'
	as al 200 escalate "{\"id\":\"help\",\"token\":\"$lock\",\"reason\":\"x\"}"
	grant al claim '{"id":"done"}'
	as al 200 done "{\"id\":\"done\",\"token\":\"$lock\"}"
	grant al claim '{"id":"blocked"}'
	as al 200 block "{\"id\":\"blocked\",\"token\":\"$lock\",\"reason\":\"x\",\"unblock_action\":\"y\"}"
	grant al lock_acquire '{"id":"manual"}'
	grant al claim '{"id":"held"}'
	held=$lock
}

# Calls that must change nothing: NAME STATUS COMMAND JSON. LOCK stands for the token of al's lock.
table() {
	cat <<-'END'
		mal 403 lock_acquire {"id":"review","ttl":86400}
		mal 403 lock_acquire {"id":"backlog","ttl":86400}
		mal 403 lock_acquire {"id":"failed","ttl":86400}
		mal 403 lock_acquire {"id":"help","ttl":86400}
		mal 403 lock_acquire {"id":"blocked","ttl":86400}
		mal 403 lock_acquire {"id":"done","ttl":86400}
		mal 409 lock_acquire {"id":"held","ttl":86400}
		mal 403 lock_acquire {"id":"@write"}
		mal 403 create {"title":"x","parent":"held"}
		mal 403 create {"title":"x","parent":"manual"}
		mal 403 create {"title":"x","parent":"HELD","id":"y"}
		mal 403 batch_add {"title":["x","y"],"parent":"held"}
		mal 403 create {"title":"x","parent":"held","agent":"al"}
		mal 403 update {"id":"review","acceptance":"nothing"}
		mal 403 update {"id":"ready","parent":"held"}
		mal 403 status {"id":"review","status":"done"}
		mal 403 status {"id":"help","status":"ready"}
		mal 403 status {"id":"blocked","status":"ready"}
		mal 403 status {"id":"backlog","status":"ready"}
		mal 403 status {"id":"failed","status":"ready"}
		mal 403 unblock {"id":"blocked"}
		mal 403 reopen {"id":"done","reason":"x"}
		mal 403 release {"id":"held","force":true}
		mal 403 lock_break {"id":"held","reason":"x"}
		mal 409 release {"id":"held","token":"00000000-0000-4000-8000-000000000000"}
		mal 403 claim {"id":"ready","agent":"al"}
		mal 403 claim {"id":"ready","agent":"al*"}
		mal 409 claim {"id":"held","resume":1}
		ann 403 lock_break {"id":"held","reason":"x"}
		ann 403 cancel {"id":"held","reason":"x","force":true}
		ann 409 cancel {"id":"held","reason":"x"}
		ann 409 cancel {"id":"manual","reason":"x"}
		ann 409 update {"id":"held","acceptance":"nothing"}
		ann 409 status {"id":"held","status":"ready"}
		ann 409 depend {"id":"held","on":["ready"]}
		ann 403 lock_cleanup {}
		ann 403 remove {"id":"ready"}
		ann 403 pause {}
		ann 403 emergency_on {"reason":"x"}
		rae 403 next {"claim":true}
		rae 403 comment {"id":"ready","text":"x"}
		rae 403 heartbeat {"id":"held","token":"LOCK"}
		rae 403 lock_release {"id":"held","token":"LOCK"}
		rae 403 done {"id":"held","token":"LOCK"}
	END
}

# No call above one's role changes anything, in any status, even with another agent's lock token.
# stores: sqlite files
# more: git postgres
attack_calls_above_the_role() {
	local who status command json before n=0
	prepare
	before=$(all_tasks | jq 'del(.tasks[].lock.expires_in)')
	while read -r who status command json; do
		as "$who" "$status" "$command" "${json/LOCK/"$held"}"
		n=$((n + 1))
	done < <(table)
	[ "$n" -gt 40 ]
	diff <(echo "$before") <(all_tasks | jq 'del(.tasks[].lock.expires_in)')
	# the holder can complete its task, and may give it sub-tasks itself
	as al 200 create '{"title":"x","parent":"held","id":"own"}'
	as mal 200 done '{"id":"own","take":true}'
	as al 200 done "{\"id\":\"held\",\"token\":\"$held\"}"
	# reviewers may do all this where nobody is at work
	as ann 200 create '{"title":"x","parent":"manual"}'
	as ann 200 update '{"id":"review","acceptance":"more"}'
	as ann 200 lock_acquire '{"id":"review"}'
	as ann 200 unblock '{"id":"blocked"}'
}

# A call that waits gets no task after its token was revoked, and nobody else loses that task.
# stores: sqlite files
# more: git postgres
attack_wait_with_a_revoked_token() {
	queue
	serve --log none
	token root admin --agent '*'
	token mal agent
	waits mal
	revoke mal
	as root 200 create '{"title":"x","id":"x"}'
	wait "$waiter"
	echo "the waiting call: $(<"$scratch/code") $(<"$scratch/got")"
	[ "$(<"$scratch/code")" = 401 ]
	as root 200 show '{"id":"x"}'
	[ "$(jq -r '.task.status, .task.fence' <<<"$output" | xargs)" = 'Ready 0' ]
}

# The same for a token that expires while the call waits.
# stores: sqlite
# more: files git postgres
attack_wait_with_a_token_that_expires() {
	queue
	serve --log none
	token root admin --agent '*'
	local seconds mal
	for seconds in 3 10 40; do # on a slow machine the call begins later
		mal=mal$seconds
		token "$mal" agent --expires "${seconds}s"
		if waits "$mal"; then break; fi
	done
	while as "$mal" 200 list '{}'; do sleep 0.1; done
	as root 200 create '{"title":"x","id":"x"}'
	wait "$waiter"
	echo "the waiting call: $(<"$scratch/code") $(<"$scratch/got")"
	[ "$(<"$scratch/code")" = 401 ]
	as root 200 show '{"id":"x"}'
	[ "$(jq -r .task.status <<<"$output")" = Ready ]
}

# The end of the server answers the calls that wait: a revoked token gets no last task from it.
# stores: sqlite
# more: files git postgres
attack_wait_until_the_server_ends() {
	queue
	serve --log none
	token root admin --agent '*'
	token mal agent
	waits mal
	revoke mal
	"$PAWL" pause -q
	"$PAWL" create x --id x -q
	kill "$server"
	wait "$waiter" || true
	wait "$server" || true
	echo "the waiting call: $(<"$scratch/code") $(<"$scratch/got")"
	[ "$(<"$scratch/code")" = 401 ]
	not grep -q '"lock"' "$scratch/got"
}

# A token for one queue learns nothing about the others.
# stores: sqlite
# more: git postgres
attack_names_of_other_queues() {
	queue
	"$PAWL" init -q --queue secret-plan
	serve --log none
	token root admin --agent '*'
	token mal reader --queue default
	as root 200 queues '{}'
	[[ $output == *secret-plan* ]]
	as mal 200 queues '{}'
	[ "$(jq -c '[.queues[].name]' <<<"$output")" = '["default"]' ]
	as mal 403 list '{}' '?queue=secret-plan'
	as mal 403 list '{}' '?queue=no-such-queue'
	as root 200 list '{}' '?queue=secret-plan'
	curl -s -H "Authorization: Bearer ${secret[mal]}" "$url/metrics" >"$scratch/body"
	grep -q 'queue="default"' "$scratch/body"
	not grep -q secret "$scratch/body"
	curl -s -H "Authorization: Bearer ${secret[mal]}" -H 'Content-Type: application/vnd.pawl.call' -d '' "$url/v1/store?do=names" >"$scratch/body"
	not grep -q secret "$scratch/body"
}

# The same through MCP: neither a task nor the renewal of a lock for a revoked token.
# stores: sqlite
# more: files git postgres
attack_mcp_wait_with_a_revoked_token() {
	local meta='"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}'
	queue
	serve --log none
	token root admin --agent '*'
	token mal agent
	curl -sN -m 90 -H "Authorization: Bearer ${secret[mal]}" -H 'Content-Type: application/json' \
		-H 'MCP-Protocol-Version: 2026-07-28' -H 'Mcp-Method: tools/call' -H 'Mcp-Name: next' \
		-d '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"next","arguments":{"claim":true,"wait":60},'"$meta"'}}' \
		"$url/mcp" >"$scratch/got" &
	waiter=$!
	until [ -s "$scratch/got" ]; do sleep 0.05; done
	revoke mal
	as root 200 create '{"title":"x","id":"x"}'
	wait "$waiter" || true
	not grep -q '"x"' "$scratch/got"
	as root 200 show '{"id":"x"}'
	[ "$(jq -r '.task.status, .task.fence' <<<"$output" | xargs)" = 'Ready 0' ]
}

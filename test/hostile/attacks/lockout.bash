# shellcheck shell=bash
# Attacks on a server by clients that want to keep others out: failed logins, connections, descriptors. The table is in
# test/hostile/crowd.

# shellcheck source=test/hostile/serving.bash
. "${BASH_SOURCE[0]%/*}/../serving.bash"

crowd=${BASH_SOURCE[0]%/*}/../crowd

# each_of GROUP SERVE-ARG...: makes each attack of the group on a server of its own, which must end as it should
each_of() {
	local name
	for name in $("$crowd" rows "$1"); do
		echo "$name"
		serve --log none "${@:2}"
		timeout 100 "$crowd" "$url" "$name" "$token" "$reader"
		ended
	done
}

prepared() {
	need python3
	queue
	token=$("$PAWL" token create admin --role admin -q)
	reader=$("$PAWL" token create reader --role reader -q)
	"$PAWL" config set serve.max_connections 64 -q
	"$PAWL" config set serve.max_waits 8 -q
	"$PAWL" config set serve.max_streams 4 -q
}

# Failed logins neither keep a caller out nor get in.
# stores: sqlite
attack_by_failed_logins() {
	prepared
	each_of logins
}

# Connections without a token do not keep a caller out.
# stores: sqlite
attack_by_connections() {
	prepared
	each_of connections
}

# A caller does not keep another caller out.
# stores: sqlite
attack_by_a_caller() {
	prepared
	reader=$("$PAWL" token create worker --role agent -q)
	each_of caller
}

# With few descriptors the server keeps fewer connections, reads its tokens and says so.
# stores: sqlite
attack_on_descriptors() {
	prepared
	"$PAWL" config set serve.max_connections 4096 -q
	descriptors=160
	each_of few
	grep -q 'serve.max_connections is [0-9]* instead of 4096' "$log"
}

# Bad requests leave nothing behind in the server. tools/soak-bad-requests sends more of them.
# stores: sqlite
attack_of_bad_requests() {
	prepared
	ASAN_OPTIONS+=:quarantine_size_mb=1 # else freed memory stays for a while
	serve --log none
	"$crowd" bad "$url" "$server" 4000
	ended
}

# hears_no_path: asks the server in each way that an agent has, and looks for the folders of its machine in what it says
hears_no_path() {
	local call said
	for call in 'list {}' 'list?queue=nowhere {}' 'list?queue=..%2F..%2Fetc {}' 'create {"title":"x"}' 'show {"id":"t1"}' \
		'log {}' 'next {"claim":true}' 'stats {}' 'lock_health {}' 'queues {}' 'prime {}'; do
		said=$(curl -s -m 60 -H "Authorization: Bearer $agent" -H 'Content-Type: application/json' -d "${call#* }" "$url/v1/${call%% *}")
		[[ $said == '{'* && $said != *"$scratch"* ]] || {
			echo "$call: $said"
			return 1
		}
	done
	said=$(curl -s -m 60 -H "Authorization: Bearer $agent" -H 'Content-Type: application/json' -H 'MCP-Protocol-Version: 2026-07-28' \
		-d '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list","arguments":{}}}' "$url/mcp")
	[[ $said == '{'* && $said != *"$scratch"* ]] || {
		echo "/mcp: $said"
		return 1
	}
	for call in list 'create x' 'export -o -' doctor; do
		# shellcheck disable=SC2086 # words
		said=$(cd / && PAWL_SERVER_TOKEN=$agent PAWL_AGENT=agent "$PAWL" $call --timeout 1s --store "$url" 2>&1 | grep -v '^ok *state files') || true
		[[ $said && $said != *"$clone"* && $said != *"$scratch/server"* ]] || {
			echo "$call: $said"
			return 1
		}
	done
}

# Messages about a store that is damaged or gone do not tell an agent where it is.
# stores: sqlite files git
attack_paths_in_messages() {
	local place
	need curl
	prepared
	agent=$("$PAWL" token create agent --role agent -q)
	"$PAWL" create one -q >/dev/null
	serve --log none
	place=$(uri)
	place=${place#*:}
	hears_no_path
	mv "$place" "$scratch/tmp/moved"
	hears_no_path
	mkdir "$place"
	hears_no_path
	rmdir "$place"
	head -c 5000 /dev/urandom >"$place"
	hears_no_path
	ended
}

# shellcheck shell=bash
# Attacks on a server by clients that want to keep others out: failed logins, connections, descriptors. The table is in
# test/hostile/crowd.

crowd=${BASH_SOURCE[0]%/*}/../crowd

# serve ARG...: starts a server, with at most $descriptors; $url, $server
serve() {
	: >serve.log
	(
		ulimit -n "${descriptors:-$(ulimit -n)}"
		exec setpriv --pdeathsig KILL "$PAWL" serve --listen 127.0.0.1:0 --log none "$@" 2>serve.log </dev/null
	) &
	server=$!
	until grep -q '^pawl: open ' serve.log; do
		kill -0 "$server"
		sleep 0.02
	done
	url=$(sed -n 's/^pawl: open \([^ ]*\).*/\1/p' serve.log)
}

stop() {
	kill "$server"
	wait "$server" || true
}

# each_of GROUP SERVE-ARG...: makes each attack of the group on a server of its own, which must end as it should
each_of() {
	local name
	for name in $("$crowd" rows "$1"); do
		echo "$name"
		serve "${@:2}"
		timeout 100 "$crowd" "$url" "$name" "$token" "$reader"
		stop
	done
}

prepared() {
	need python3
	need setpriv
	queue
	token=$("$PAWL" token create admin --role admin -q)
	reader=$("$PAWL" token create reader --role reader -q)
	"$PAWL" config set serve.max_connections 64 -q
	"$PAWL" config set serve.max_waits 8 -q
	"$PAWL" config set serve.max_streams 4 -q
}

# Clients without a token neither keep a caller out nor get in.
# stores: sqlite
attack_without_a_token() {
	prepared
	each_of closed
}

# A caller does not keep another caller out.
# stores: sqlite
attack_by_a_caller() {
	prepared
	each_of caller
}

# With few descriptors the server keeps fewer connections, reads its tokens and says so.
# stores: sqlite
attack_on_descriptors() {
	prepared
	"$PAWL" config set serve.max_connections 4096 -q
	descriptors=160
	each_of few
	grep -q 'serve.max_connections is [0-9]* instead of 4096' serve.log
}

# Bad requests leave nothing behind in the server. tools/soak-bad-requests sends more of them.
# stores: sqlite
attack_of_bad_requests() {
	prepared
	serve
	"$crowd" bad "$url" "$server" 4000
	stop
}

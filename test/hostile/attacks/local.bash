# shellcheck shell=bash
# Attacks of other local users and of web pages on a server and its clients. Sourced by attack.bash.

# shellcheck source=test/hostile/serving.bash
. "${BASH_SOURCE[0]%/*}/../serving.bash"

export PAWL_SERVER_STATE=$scratch/tmp/state
need curl

# answers STATUS CURL-ARG...
answers() {
	local want=$1 got
	shift
	got=$(curl -s -m 60 -o "$scratch/body" -w '%{http_code}' "$@")
	printf '%s: %s, expected %s\n%.300s\n' "$*" "$got" "$want" "$(<"$scratch/body")"
	[ "$got" = "$want" ]
}

# A page whose name leads to this machine (DNS rebinding) reaches no server that needs no token. Each line is a Host, and the
# status of its calls.
# stores: sqlite
attack_rebinding() {
	local host want n=0
	queue
	serve --log none --auth none --host-name board.example
	local port=${url##*:}
	while read -r host want; do
		answers "$want" -H "Host: $host" "$url/whoami"
		answers "$want" -H "Host: $host" -H 'Content-Type: application/json' -d '{"title":"x"}' "$url/v1/create"
		n=$((n + 1))
	done <<-END
		127.0.0.1:$port 200
		localhost:$port 200
		board.localhost:$port 200
		board.example 200
		evil.local 403
		EVIL.LOCAL:$port 403
		$(hostname).local:$port 403
		printer.local. 403
		local 403
		localhost.local 403
		localhost. 403
		127.0.0.1.evil.example 403
		evil.example#.localhost 400
		board.example.evil.example 403
		127.0.0.1@evil.example 400
	END
	[ "$n" = 15 ]
	victim 0 list --json
	[ "$(jq .count <<<"$output")" = 4 ]
}

# impostor ADDRESS MODE [REAL]: another user listens there; $port
impostor() {
	: >"$scratch/heard"
	: >"$scratch/port"
	"$(dirname "$file")/../impostor" "$1" "$2" "$scratch/heard" "${@:3}" >"$scratch/port" &
	other=$!
	until [ -s "$scratch/port" ]; do
		kill -0 "$other"
		sleep 0.02
	done
	port=$(<"$scratch/port")
}

# Another local user listens on the port of a server that is down, and gets neither the saved token nor a task's text. A
# server of the same queue at another address does not help it.
# stores: sqlite
attack_port_of_a_server_that_is_down() {
	local mode token real n=0
	need python3
	queue
	serve --log none
	real=${url#http://}
	token=$("$PAWL" token create tester --role admin --agent '*' -q)
	serve --log none
	"$PAWL" login "$url" <<<"$token"
	victim 0 create before --store "$url"
	kill "$server"
	wait "$server" || true
	for mode in ok garbage echo empty 401 404 500 two close noise endless huge redirect relay; do
		impostor "${url#http://}" "$mode" "$real"
		victim '30|40' create secret-plan --store "$url" --timeout 0.5s
		[ -s "$scratch/heard" ]
		not "$PAWL" login "$url" <<<"$token"
		not grep -qa -e pawl_ -e secret-plan -e Authorization "$scratch/heard"
		kill "$other"
		wait "$other" || true
		n=$((n + 1))
	done
	[ "$n" = 14 ]
	listen=${url#http://} serve --log none
	victim 0 list --store "$url" # the server is back
	says before
	not says secret-plan
}

# The same for a token of the environment, and for the streams that wait for changes.
# stores: sqlite
attack_port_of_a_server_that_ends() {
	local token
	need python3
	queue
	serve --log none
	token=$("$PAWL" token create tester --role admin --agent '*' -q)
	PAWL_SERVER_TOKEN=$token "$PAWL" log --follow --json --store "$url" >"$scratch/followed" 2>&1 &
	follower=$!
	until "$PAWL" create x -q && [ -s "$scratch/followed" ]; do sleep 0.1; done
	kill -9 "$server"
	wait "$server" || true
	impostor "${url#http://}" ok
	until [ -s "$scratch/heard" ]; do sleep 0.1; done
	kill "$follower" || true
	not grep -qa -e pawl_ -e Authorization "$scratch/heard"
	[ -s "$scratch/heard" ]
}

# A socket file of another user is not the server. It gets neither a token nor a task's text, with or without a token.
# stores: sqlite
attack_socket_of_another_user() {
	local token
	need python3
	[ "$(id -u)" = 0 ] || {
		echo 'SKIP needs root, to be another user'
		return
	}
	queue
	impostor "unix:$scratch/tmp/s" ok 65534
	for token in pawl_of_the_user ''; do
		PAWL_SERVER_TOKEN=$token victim 40 create secret-plan --store "unix:$scratch/tmp/s"
		complains 'another user'
		[ ! -s "$scratch/heard" ]
	done
	PAWL_SERVER_INSECURE=1 victim any create public-plan --store "unix:$scratch/tmp/s"
	quiet_about 'another user'
	grep -qa public-plan "$scratch/heard"
}

# Without TLS, the token goes to no other machine unless the user says so, whatever the name looks like.
# stores: sqlite
attack_names_like_this_machine() {
	local host n=0
	while read -r host; do
		victim '2|40' login "http://$host"
		complains "${host:0:5}"
		PAWL_SERVER_TOKEN=pawl_of_the_user victim '2|40' list --store "http://$host" --timeout 1s
		quiet_about 'no answer'
		n=$((n + 1))
	done <<-'END'
		queue.example.com
		10.0.0.7:7295
		127.0.0.1.example.com:7295
		127.example.com
		localhost.example.com:7295
		localhost.:7295
		notlocalhost:7295
		a.localhost:7295
		0.0.0.0:7295
		[::]:7295
		[::2]:7295
		[::ffff:10.0.0.7]:7295
		[fe80::1]:7295
		127.1:7295
		2130706433:7295
		0x7f000001:7295
		user@127.0.0.1:7295
		127.0.0.1:7295@example.com
	END
	[ "$n" = 18 ]
}

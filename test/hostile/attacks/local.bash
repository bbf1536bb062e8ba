# shellcheck shell=bash
# Attacks of other local users and of web pages on a server and its clients. Sourced by attack.bash.

# serve ARG...: the user starts a server at $url, or at $listen
serve() {
	local log=$scratch/serve.log
	: >"$log"
	PAWL_SERVER_STATE=$scratch/tmp/state "$PAWL" serve --listen "${listen-127.0.0.1:0}" --log none "$@" 2>"$log" &
	server=$!
	until grep -q '^pawl: open ' "$log"; do
		kill -0 "$server"
		sleep 0.02
	done
	url=$(sed -n 's/^pawl: open \([^ ]*\).*/\1/p' "$log")
}

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
	serve --auth none --host-name board.example
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

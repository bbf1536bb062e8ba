# shellcheck shell=bash
# Functions for the tests of a server; after common.bash.

teardown() {
	local pid
	for pid in ${server-} ${second-} ${follower-} ${waiter-}; do
		{ kill -9 "$pid" && wait "$pid"; } 2>/dev/null || true
	done
}

# serve ARG...: starts a server on a free port, or at $listen; $url, $token
serve() {
	: >"$BATS_TEST_TMPDIR/serve.log" # a server before this one may have left its line
	"$PAWL" serve --listen "${listen-127.0.0.1:0}" "$@" 2>"$BATS_TEST_TMPDIR/serve.log" 3>&- &
	server=$!
	until grep -q '^pawl: open ' "$BATS_TEST_TMPDIR/serve.log"; do
		kill -0 "$server" || {
			cat "$BATS_TEST_TMPDIR/serve.log"
			return 1
		}
		sleep 0.02
	done
	url=$(sed -n 's/^pawl: open \([^ ]*\).*/\1/p' "$BATS_TEST_TMPDIR/serve.log")
	token=$(cat "$(state)/first-token" 2>/dev/null) || token=
}

state() {
	echo "$XDG_STATE_HOME"/pawl/serve/*
}

# http STATUS CURL-ARG...: leaves $output; curl gets the token of $token
http() {
	local want=$1 got
	shift
	got=$(curl -s -m 60 -o "$BATS_TEST_TMPDIR/body" -D "$BATS_TEST_TMPDIR/head" -w '%{http_code}' \
		${token:+-H "Authorization: Bearer $token"} "$@")
	output=$(cat "$BATS_TEST_TMPDIR/body")
	printf '$ curl'
	printf ' %.200q' "$@"
	printf '\n%.2000s\nstatus %s, expected %s\n' "$output" "$got" "$want"
	[[ $got =~ ^$want$ ]]
}

# api STATUS NAME [JSON [CURL-ARG...]]
api() {
	local want=$1 name=$2 json=${3-"{}"}
	shift $(($# < 3 ? $# : 3))
	http "$want" -H 'Content-Type: application/json' -d "$json" "$@" "$url/v1/$name"
	[ "$want" -lt 400 ] || is '.ok == false and (.error.message | length > 0)'
}

# token_for NAME ARG...: makes a token and uses it
token_for() {
	token=$("$PAWL" token create "$@" -q)
	[[ $token =~ ^pawl_[A-Za-z0-9_-]{43}$ ]]
}

waiters_are() {
	http 200 "$url/metrics" && grep -qx "pawl_waiters $1" <<<"$output"
}

# stream ARG...: follows the events, into the file `stream`
stream() {
	: >stream
	curl -sN -H "Authorization: Bearer $token" "$@" "$url/v1/events" >stream 3>&- &
	follower=$!
}

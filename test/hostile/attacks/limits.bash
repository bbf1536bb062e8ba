# shellcheck shell=bash
# Attacks on a server by callers with a valid token: memory that is not theirs, too much memory, too much time.

# serving ARG...: the user's server on the queue of $store; leaves $url, $server, $admin (the first token) and $log
serving() {
	log=$scratch/serve.log
	"$PAWL" serve --listen 127.0.0.1:0 "$@" 2>"$log" &
	server=$!
	until grep -q '^pawl: open ' "$log"; do
		kill -0 "$server"
		sleep 0.02
	done
	url=$(sed -n 's/^pawl: open \([^ ]*\).*/\1/p' "$log")
	admin=$(cat "$HOME"/.local/state/pawl/serve/*/first-token)
}

# token ROLE: a token of this role
token() {
	"$PAWL" token create "$1" --role "$1" -q
}

# ended: ends the server, which must still be there and end with success
ended() {
	kill "$server"
	wait "$server"
}

# A reader exports tasks whose comments are large: the server goes on, and sends the comments and nothing else.
# stores: sqlite files git
attack_export_of_large_comments() {
	local n
	queue
	victim 0 create one
	for n in 1 1000 100000 200000; do
		head -c "$n" /dev/zero | tr '\0' x | "$PAWL" -q comment t1 -
	done
	serving
	PAWL_SERVER_TOKEN=$(token reader) victim 0 --store "$url" export -o "$scratch/out.json"
	victim 0 export -o "$scratch/own.json"
	diff "$scratch/out.json" "$scratch/own.json"
	ended
}

# shellcheck shell=bash
# Loaded by the attacks on a server.

# serve ARG...: the user starts a server, at $listen if that is set, with at most $descriptors; leaves $url, $server and $log
serve() {
	log=$scratch/serve.log
	: >"$log"
	(
		[ -z "${descriptors-}" ] || ulimit -n "$descriptors"
		# Meson sets MALLOC_PERTURB_, which touches memory that pawl does not.
		exec env -u MALLOC_PERTURB_ "$PAWL" serve --listen "${listen-127.0.0.1:0}" "$@" 2>"$log" </dev/null
	) &
	server=$!
	until grep -q '^pawl: open ' "$log"; do
		kill -0 "$server"
		sleep 0.02
	done
	url=$(sed -n 's/^pawl: open \([^ ]*\).*/\1/p' "$log")
}

# serving: the same on the queue of $store; also leaves $admin, the first token
serving() {
	serve
	admin=$(cat "$HOME"/.local/state/pawl/serve/*/first-token)
}

# ended: ends the server, which must still be there and end with success
ended() {
	kill "$server"
	wait "$server"
}

# role_token ROLE: a token of this role
role_token() {
	"$PAWL" token create "$1" --role "$1" -q
}

# api TOKEN NAME [JSON]: one call; prints the status. Its answer is in the file body.
api() {
	curl -s -m 60 -o "$scratch/body" -w '%{http_code}\n' -H "Authorization: Bearer $1" -H 'Content-Type: application/json' \
		-d "${3-"{}"}" "$url/v1/$2"
}

# many_queues N: as many queues beside the server's own, in one store
many_queues() {
	local i
	for i in $(seq "$1"); do
		"$PAWL" init -q --store "$(uri)" --queue "q$i" >/dev/null
	done
}

# large_queue N BYTES: a queue of N tasks with a description of BYTES each
large_queue() {
	queue
	python3 -c 'import json, sys
n, size = int(sys.argv[1]), int(sys.argv[2])
json.dump([{"id": f"t{i + 1}", "title": f"Task {i + 1}", "description": "x" * size} for i in range(n)], sys.stdout)' "$1" "$2" >"$scratch/tasks.json"
	victim 0 import "$scratch/tasks.json"
	rm "$scratch/tasks.json"
}

# shellcheck shell=bash
# Attacks on a server by callers with a valid token: memory that is not theirs, too much memory, too much time.

# serving: the user's server on the queue of $store; leaves $url, $server, $admin (the first token) and $log
serving() {
	log=$scratch/serve.log
	# Meson sets MALLOC_PERTURB_, which touches memory that pawl does not.
	env -u MALLOC_PERTURB_ "$PAWL" serve --listen 127.0.0.1:0 2>"$log" &
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

# api TOKEN NAME [JSON]: one call; prints the status
api() {
	curl -s -m 60 -o "$scratch/body" -w '%{http_code}\n' -H "Authorization: Bearer $1" -H 'Content-Type: application/json' \
		-d "${3-"{}"}" "$url/v1/$2"
}

# Nobody reads the pipe of the log: the server answers all the same, and later says how many lines it dropped.
# stores: sqlite
attack_log_that_nobody_reads() {
	queue
	mkfifo "$scratch/pipe"
	exec 7<>"$scratch/pipe"
	"$PAWL" serve --listen 127.0.0.1:0 --auth none 2>"$scratch/pipe" &
	server=$!
	IFS= read -r -u 7 output
	url=${output#pawl: open } url=${url%% *}
	curl -s -m 60 -o /dev/null -w '%{http_code}\n' "$url/livez?[1-2000]" >"$scratch/codes"
	[ "$(sort "$scratch/codes" | uniq -c | tr -d ' \n')" = 2000200 ]
	curl -s -m 60 "$url/metrics" >"$scratch/metrics"
	grep -q '^pawl_log_dropped_total [1-9]' "$scratch/metrics"
	cat <&7 >"$scratch/read" &
	until curl -s -m 60 -o /dev/null "$url/livez" && grep -q 'dropped [0-9]* log lines' "$scratch/read"; do sleep 0.05; done
	kill $!
	exec 7<&-
	ended
}

# many_queues N: as many queues beside the server's own, in one store
many_queues() {
	local i
	for i in $(seq "$1"); do
		"$PAWL" init -q --store "$(uri)" --queue "q$i" >/dev/null
	done
}

# A reader uses more queues than the server keeps open: everybody else still reaches every queue.
# stores: sqlite
attack_more_queues_than_places() {
	local i reader
	queue
	many_queues 66
	serving
	reader=$(token reader)
	for i in $(seq 66); do
		[ "$(api "$reader" "list?queue=q$i")" = 200 ]
	done
	[ "$(api "$admin" create '{"title":"One"}')" = 200 ]
	[ "$(api "$admin" list?queue=q66)" = 200 ]
	[ "$(api "$reader" list?queue=q1)" = 200 ]
	ended
}

# A reader keeps queues in use with streams: the server's own queue and some places stay free for others.
# stores: sqlite
attack_places_that_are_kept_in_use() {
	local i reader agent
	queue
	many_queues 66
	victim 0 config set serve.max_per_address 400
	serving
	reader=$(token reader) agent=$(token agent)
	for i in $(seq 62); do
		curl -sN -m 100 -o "$scratch/stream$i" -H "Authorization: Bearer $reader" "$url/v1/events?wake=1&queue=q$i" &
		until [ -s "$scratch/stream$i" ]; do sleep 0.02; done
		! grep -q API_ERROR "$scratch/stream$i" || break
	done
	grep -q 'too many queues' "$scratch/stream$i"
	[ "$i" -gt 40 ]
	[ "$(api "$agent" create '{"title":"One"}')" = 200 ]
	[ "$(api "$agent" list?queue=q65)" = 200 ]
	[ "$(api "$agent" list?queue=q66)" = 200 ]
	ended
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

# press KIB: tries each line of standard input (see test/hostile/press) on the server
press() {
	[ -z "$sanitized" ] || set -- 99999999
	env -u MALLOC_PERTURB_ python3 "${BASH_SOURCE[0]%/*}/../press" "$url" "$server" "$1" admin="$admin" reader="$reader" agent="$agent"
}

# Small requests with long answers: each needs bounded memory, and is answered or refused as a whole.
# stores: sqlite
attack_small_requests_with_long_answers() {
	local reader agent
	large_queue 200 250000
	victim 0 config set serve.calls_per_second 100000
	victim 0 config set serve.burst 100000
	serving
	reader=$(token reader) agent=$(token agent)
	press 300000 <<-'END'
		thirty lists in 210 bytes	reader	200	1	POST	/v1/call	one(LIST) * 30
		a hundred lists	reader	200	1	POST	/v1/call	one(LIST) * 100
		lists of four callers at once	reader	200|429	4	POST	/v1/call	one(LIST) * 2
		all texts that match	reader	200	1	POST	/v1/call	one(LIST, text="x") * 8
		the tree of everything	reader	200	1	POST	/v1/call	one(LIST, view=1) * 8
		the log with tasks	reader	200	1	POST	/v1/call	one(LOG, log_view=2) * 8
		explain next	reader	200	1	POST	/v1/call	one(NEXT, explain=1) * 100
		one task again and again	reader	200	1	POST	/v1/call	one(SHOW, id="t1") * 300
		a list as JSON	reader	200|400	1	POST	/v1/list	{"limit": 0}
		find as JSON	reader	200|400	1	POST	/v1/find	{"text": "x", "limit": 0}
		an export	reader	200	1	POST	/v1/store?do=export	b"\0\0\0\0"
		comments on a large task	agent	200	1	POST	/v1/call	one(COMMENT, id="t1", text="a") * 300
		updates of a large task	agent	200	1	POST	/v1/call	one(UPDATE, id="t2", title="b") * 300
		changes and lists	agent	200	1	POST	/v1/call	(one(COMMENT, id="t1", text="c") + one(LIST)) * 10
		one commit that is too large	agent	200	1	POST	/v1/call?all=1	one(COMMENT, id="t3", text="d") * 300
		more requests than allowed	reader	400	1	POST	/v1/call	one(OVERVIEW) * 1001
		empty frames	reader	400	2	POST	/v1/call	b"\0" * 1000000
		a frame that claims 4 GiB	reader	400	2	POST	/v1/call	b"\xff\xff\xff\xff" + b"x" * 1000
		a body of brackets	reader	400	2	POST	/v1/list	[[]] * 200000
		a body of objects	agent	400	2	POST	/v1/create	{"title": [{}] * 250000}
		a batch of MCP	reader	200|400	1	POST	/mcp	rpc("tools/list", 5000)
		long answers in a batch of MCP	reader	200|400	1	POST	/mcp	rpc("tools/call", 32, name="show", arguments={"id": "t1"})
	END
	"$PAWL" log t1 --limit 0 --json | python3 -c 'import json, sys
e = [x for x in json.load(sys.stdin)["events"] if x["event"] == "comment"]
assert len(e) == 310, len(e)'
	victim 0 log t3
	quiet_about comment
	ended
}

# Callers that read nothing: answers and streams wait for them in bounded memory, and others get theirs.
# stores: sqlite
attack_callers_that_do_not_read() {
	local reader agent
	large_queue 200 250000
	serving
	reader=$(token reader) agent=$(token agent)
	env -u MALLOC_PERTURB_ python3 - "$url" "$server" "$reader" "${sanitized:+sanitized}" <<-'END'
		import json, re, socket, sys, urllib.parse, urllib.request
		url, pid, token, sanitized = urllib.parse.urlsplit(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4]
		def memory():
		    with open(f"/proc/{pid}/status") as f:
		        return int(re.search(r"VmHWM:\s+(\d+)", f.read()).group(1))
		def send(head, body=b""):
		    s = socket.create_connection((url.hostname, url.port), 100)
		    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
		    s.sendall(f"{head} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\nContent-Type: application/vnd.pawl.call\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
		    return s
		def begun(sockets, word):
		    for s in sockets: # each has the first bytes of its answer
		        text = b""
		        while word not in text:
		            text += s.recv(100)
		idle = [send("GET /v1/events") for _ in range(15)]
		begun(idle, b"data: ")
		print("15 streams:", memory(), "KiB")
		assert sanitized or memory() < 120000
		lists = [send("POST /v1/call", b"\0\0\0\3\xff\1\4") for _ in range(20)]
		begun(lists, b"\r\n\r\n")
		print("20 lists:", memory(), "KiB")
		assert sanitized or memory() < 400000
		# one that reads gets the whole queue in pages
		tasks = set()
		s = urllib.request.urlopen(urllib.request.Request(sys.argv[1] + "/v1/events", headers={"Authorization": "Bearer " + token}))
		while True:
		    line = s.readline()
		    if line.startswith(b"data: "):
		        page = json.loads(line[6:])
		        tasks |= {t["id"] for t in page["tasks"]}
		        if not page.get("more"):
		            break
		assert len(tasks) == 200, len(tasks)
	END
	[ "$(api "$agent" create '{"title":"One"}')" = 200 ]
	ended
}

# A reader comes back after more events than any answer may have: it gets them all.
# stores: sqlite
attack_more_missed_events_than_fit() {
	local reader
	queue
	python3 -c 'import json, sys
json.dump([{"id": f"t{n}", "title": "Two", "description": "x" * 200000,
	"comments": [{"agent": "a", "text": f"{i:04} " + "x" * 250000} for i in range(30)]} for n in range(2, 12)], sys.stdout)' >"$scratch/tasks.json"
	victim 0 create zero
	victim 0 import "$scratch/tasks.json"
	victim 0 comment t2 'the last one'
	serving
	reader=$(token reader)
	(curl -sN -m 100 -H "Authorization: Bearer $reader" -H 'Last-Event-ID: 1' "$url/v1/events" || true) | sed '/the last one/q' >"$scratch/events"
	grep -q 'the last one' "$scratch/events"
	[ "$(grep -c '"comment"' "$scratch/events")" = 301 ]
	not grep -q '^event: \(snapshot\|reset\)' "$scratch/events"
	ended
}

# Each part of a call spends the caller's rate, however the parts are packed.
# stores: sqlite
attack_many_calls_in_one_request() {
	local way who
	queue
	victim 0 config set serve.calls_per_second 1
	victim 0 config set serve.burst 20
	serving
	for _ in $(seq 100); do printf '\0\0\0\003\377\001\012'; done >"$scratch/packed" # overview
	python3 -c 'import json
print(json.dumps([{"jsonrpc": "2.0", "id": i, "method": "ping"} for i in range(30)]))' >"$scratch/batch"
	for way in call batch_add mcp; do
		who=$("$PAWL" token create "$way" --role agent -q)
		case $way in
		call) curl -s -o "$scratch/body" -w '%{http_code}' -H "Authorization: Bearer $who" -H 'Content-Type: application/vnd.pawl.call' \
			--data-binary "@$scratch/packed" "$url/v1/call" >"$scratch/code" ;;
		batch_add) api "$who" batch_add '{"title":["a","b","c","d","e","f","g","h","i","j","k","l","m","n","o","p","q","r","s","t","u"]}' >"$scratch/code" ;;
		mcp)
			curl -s -D "$scratch/head" -o "$scratch/body" -H "Authorization: Bearer $who" -H 'Content-Type: application/json' \
				-H 'Accept: application/json, text/event-stream' -d '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}' "$url/mcp"
			curl -s -o "$scratch/body" -w '%{http_code}' -H "Authorization: Bearer $who" -H 'Content-Type: application/json' \
				-H 'Accept: application/json, text/event-stream' -H "$(grep -i '^mcp-session-id' "$scratch/head" | tr -d '\r')" \
				-d "@$scratch/batch" "$url/mcp" >"$scratch/code"
			;;
		esac
		echo "$way: $(<"$scratch/code") $(head -c 300 "$scratch/body")"
		[ "$(<"$scratch/code")" = 200 ]
		[ "$(api "$who" list)" = 429 ]
	done
	ended
}

# A caller fills the worker of a queue with slow calls: another caller is served before they are done.
# stores: sqlite
attack_slow_calls_of_one_caller() {
	local reader agent i
	large_queue 100 250000
	victim 0 config set serve.burst 100000
	serving
	reader=$(token reader) agent=$(token agent)
	python3 -c 'import struct, sys
one = b"\xff\x01\x04\x29\x02zz" # list, text zz
sys.stdout.buffer.write((struct.pack(">I", len(one)) + one) * 150)' >"$scratch/finds"
	for i in 1 2 3 4 5 6; do
		(
			curl -s -m 110 -o /dev/null -H "Authorization: Bearer $reader" -H 'Content-Type: application/vnd.pawl.call' \
				--data-binary "@$scratch/finds" "$url/v1/call" || true
			: >"$scratch/done$i"
		) &
	done
	until [ "$(curl -s -m 60 -H "Authorization: Bearer $admin" "$url/metrics" | sed -n 's/^pawl_http_requests_total{route="metrics".*} //p')" ]; do sleep 0.05; done
	for i in 1 2 3; do
		[ "$(api "$agent" create '{"title":"One"}')" = 200 ]
	done
	not compgen -G "$scratch/done*"
	kill -9 "$server"
	wait
}

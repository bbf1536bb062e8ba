#!/usr/bin/env bats
# A server and bad requests, bad peers and a store that fails: the right status, one JSON error, nothing changed, and the
# server continues.

load common
load serving

# raw: sends each case of standard input as it is, on a connection of its own: STATUS, a name, and the bytes as a Python
# text. Each answer must have that status and one JSON error; status 0: the server only closes the connection.
raw() {
	python3 -c '
import ast, json, socket, sys
host, port = sys.argv[1].split(":")
bad = 0
for line in sys.stdin.read().splitlines():
    want, name, text = line.split("\t")
    data = eval(text).replace(b"TOKEN", sys.argv[2].encode())
    with socket.create_connection((host, int(port)), 30) as s:
        try:
            s.sendall(data)
            s.shutdown(socket.SHUT_WR)
        except OSError:
            pass
        got = b""
        try:
            while piece := s.recv(65536):
                got += piece
        except OSError:
            pass
    head, _, body = got.partition(b"\r\n\r\n")
    status = int(head.split()[1]) if head.startswith(b"HTTP/1.1 ") else 0
    good = status == int(want) and got.count(b"HTTP/1.1 ") == (status != 0)
    if status:
        try:
            answer = json.loads(body)
            good &= answer["ok"] is False and len(answer["error"]["message"]) > 0 and len(answer["error"]["code"]) > 0
        except ValueError:
            good = False
    if not good:
        bad += 1
        print(name, "expected", want, "but got", got[:300])
sys.exit(bad != 0)
' "${url#http://}" "$token"
}

@test "requests that two programs could read differently, and other bad bytes" {
	serve
	pawl create One
	start=$(snapshot)
	raw <<-'END'
		400	two lengths	b"POST /v1/create HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer TOKEN\r\nContent-Type: application/json\r\nContent-Length: 13\r\nContent-Length: 14\r\n\r\n{\"title\":\"a\"}"
		400	a length and chunks	b"POST /v1/create HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer TOKEN\r\nContent-Type: application/json\r\nContent-Length: 13\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
		400	two hosts	b"GET /livez HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n"
		400	no host	b"GET /livez HTTP/1.1\r\n\r\n"
		403	another host	b"GET /livez HTTP/1.1\r\nHost: evil.example\r\n\r\n"
		400	a space before the colon	b"GET /livez HTTP/1.1\r\nHost : localhost\r\n\r\n"
		400	a bare LF	b"GET /livez HTTP/1.1\nHost: localhost\n\n"
		400	a folded header	b"GET /livez HTTP/1.1\r\nHost: localhost\r\nX: a\r\n b\r\n\r\n"
		400	a NUL in a header	b"GET /livez HTTP/1.1\r\nHost: localhost\r\nX: a\0b\r\n\r\n"
		400	a negative length	b"POST /v1/create HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n"
		400	a chunk that is none	b"POST /v1/create HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer TOKEN\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n"
		400	no HTTP at all	b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n"
		431	a long header	b"GET /livez HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 20000 + b"\r\n\r\n"
		431	many headers	b"GET /livez HTTP/1.1\r\nHost: localhost\r\n" + b"X: a\r\n" * 200 + b"\r\n"
		414	a long target	b"GET /" + b"a" * 20000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n"
		413	a length that is too large	b"POST /v1/create HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer TOKEN\r\nContent-Type: application/json\r\nContent-Length: 99999999\r\n\r\n{"
		415	no content type	b"POST /v1/create HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer TOKEN\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}"
		401	another scheme	b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nAuthorization: Basic TOKEN\r\nConnection: close\r\n\r\n"
		0	half of a head	b"POST /v1/create HTTP/1.1\r\nHost: local"
		0	half of a body	b"POST /v1/create HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer TOKEN\r\nContent-Type: application/json\r\nContent-Length: 15\r\n\r\n{\"title\":"
	END
	same "$start" "$(snapshot)"
	api 200 create '{"title":"Two"}'
}

@test "arguments that are no arguments" {
	serve
	pawl create One
	start=$(snapshot)
	deep=$(printf '[%.0s' {1..3000})
	for body in '' '{' '{"id":"t1"}x' 'null' '"t1"' '{"id":t1}' '{"id":1e999}' '{"id":"\ud800"}' '{"id":{"a":1}}' \
		'{"id":"t1","ttl":"soon"}' '{"id":"t1","ttl":-5}' '{"id":"t1","token":"x"}' '{"id":"../t1"}' '{"id":"t1","agent":"a\nb"}' \
		'{"id":"t1","run":5}' '{"id":"t1","agent":["a"]}' "{\"id\":$deep" "$(printf '{"id":"\x80\xff"}')" '{"id":"t1\u0000"}'; do
		http 400 -H 'Content-Type: application/json' --data-binary "$body" "$url/v1/claim"
		is '.ok == false and .error.code == "USAGE" and (.error.message | length > 0)'
	done
	same "$start" "$(snapshot)"
	api 200 claim '{"id":"t1"}'
}

@test "a token counts for its role, its queue and its time on every route" {
	serve
	type='Content-Type: application/vnd.pawl.call'
	printf '\0\0\0\6\377\1\24\24\1\101' >create # a packed create
	pawl create One
	start=$(snapshot)
	token_for late --role admin --expires 1ms
	for path in v1/list v1/call 'v1/store?do=dump' v1/events metrics openapi.json whoami nothing; do
		http 401 "$url/$path"
		is '.error.fault == "unauthorized" and (.error.message | contains("expired"))'
	done
	token_for far --role admin --queue elsewhere
	for path in 'v1/call?wait=0' 'v1/store?do=dump'; do
		http 403 -H "$type" --data-binary @create "$url/$path&queue=default"
		is '.error.fault == "forbidden"'
	done
	http 403 "$url/v1/events?queue=default"
	http 422 -H "$type" --data-binary @create "$url/v1/call" # its own queue does not exist
	http 200 "$url/metrics"
	not grep -q 'queue="default"' <<<"$output"
	token_for rae --role reader
	http 200 -H "$type" --data-binary @create "$url/v1/call"
	grep -qa 'needs the role agent' "$BATS_TEST_TMPDIR/body"
	for name in dump import load verify clear; do
		http 403 -H "$type" --data-binary '' "$url/v1/store?do=$name"
		is '.error.fault == "forbidden" and (.error.message | contains("admin"))'
	done
	http 404 -H "$type" --data-binary '' "$url/v1/store?do=nothing"
	same "$start" "$(snapshot)"
}

waiter() {
	printf 'POST /v1/next HTTP/1.1\\r\\nHost: localhost\\r\\nAuthorization: Bearer %s\\r\\nContent-Type: application/json\\r\\nContent-Length: 25\\r\\n\\r\\n{"claim":true,"wait": 50}' "$token"
}

@test "half-open and reset connections get no task, and hold up nobody" {
	serve
	cat >peers.py <<-'END'
		import socket, struct, sys, time
		host, port = sys.argv[1].split(":")
		peers = []
		for kind in "half", "reset", "idle", "slow":
		    s = socket.create_connection((host, int(port)))
		    if kind == "slow":
		        s.sendall(b"POST /v1/create HTTP/1.1\r\nHo")
		    elif kind != "idle":
		        s.sendall(sys.argv[2].encode().decode("unicode_escape").encode())
		    peers.append((kind, s))
		print("sent", flush=True)
		sys.stdin.readline()
		for kind, s in peers:
		    if kind == "half":
		        s.shutdown(socket.SHUT_WR) # the other direction stays open
		    elif kind == "reset":
		        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
		        s.close()
		print("gone", flush=True)
		sys.stdin.readline()
	END
	coproc peers { exec python3 peers.py "${url#http://}" "$(waiter)" 3>&-; }
	# shellcheck disable=SC2034 # for teardown
	second=$peers_PID
	read -r said <&"${peers[0]}"
	same "$said" sent
	soon waiters_are 2
	echo go >&"${peers[1]}"
	read -r said <&"${peers[0]}"
	soon waiters_are 0
	api 200 create '{"title":"One"}'
	api 200 show '{"id":"t1"}'
	is '.task.status == "Ready"'
	api 200 next '{"claim":true}'
	is '.task.id == "t1"'
}

@test "a full disk: 503 and no change; the server continues when there is room again" {
	needs_sqlite
	needs prlimit
	serve
	api 200 create '{"title":"One"}'
	prlimit --pid "$server" --fsize=4096:
	api 503 create '{"title":"Two"}'
	is '.error.code == "API_ERROR" and .error.applied == "no"'
	grep -qi '^retry-after: [0-9]' "$BATS_TEST_TMPDIR/head"
	api 503 claim '{"id":"t1"}'
	http 200 "$url/livez"
	api 200 list
	is '[.tasks[].title] == ["One"]'
	prlimit --pid "$server" --fsize=unlimited:
	api 200 create '{"title":"Three"}'
	api 200 claim '{"id":"t1"}'
	ask 0 list
	is '[.tasks[].title] | sort == ["One", "Three"]'
	call 0 doctor
}

@test "a lost store: an error for each call and a metric; it may come back" {
	needs_sqlite
	serve
	api 200 create '{"title":"One"}'
	stream
	soon grep -q '^event: snapshot' stream
	mv .pawl away
	for _ in 1 2 3; do
		http '[45]..' -H 'Content-Type: application/json' -d '{"title":"Two"}' "$url/v1/create"
		is '.ok == false and (.error.code == "API_ERROR" or .error.code == "MISCONFIGURED") and (.error.message | length > 0)'
	done
	http 200 "$url/livez"
	http 200 "$url/metrics"
	grep -q '^pawl_queue_up{queue="default"} 0$' <<<"$output"
	not grep -q '^{' <<<"$output"
	mv away .pawl
	api 200 create '{"title":"Three"}'
	http 200 "$url/metrics"
	grep -q '^pawl_queue_up{queue="default"} 1$' <<<"$output"
	ask 0 list
	is '[.tasks[].title] == ["One", "Three"]'
	stream
	soon grep -q '"Three"' stream
}

@test "a store that fails in the middle: the answer says whether the change was made" {
	needs_sqlite
	serve --store "$(faulty modify:2:unknown)"
	api 200 create '{"title":"One","request_id":"r1"}'
	api 503 create '{"title":"Two","request_id":"r2"}'
	is '.error.applied == "unknown"'
	api 200 create '{"title":"Two","request_id":"r2"}' # the same call again
	is '.task.id == "t2"'
	ask 0 list
	is '[.tasks[].title] == ["One", "Two"]'
}

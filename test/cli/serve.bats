#!/usr/bin/env bats
# The server: tokens, roles, routes, refusals, waiting calls, events, and what a kill leaves behind.

load common
load serving

@test "token create shows the token once, and keeps only its hash" {
	call 0 token create build --role agent
	[[ ${lines[0]} =~ ^pawl_[A-Za-z0-9_-]{43}$ ]]
	not grep -rq "${lines[0]}" "$XDG_STATE_HOME" .
	grep -q "$(printf %s "${lines[0]}" | sha256sum | cut -d' ' -f1)" "$(state)/tokens"
	same "$(stat -c %a "$(state)/tokens")" 600
	call 20 token create build --role reader
	ask 0 token create ci --role agent --agent 'ci-*' --queue release --expires 90d
	is '.bearer.agent == "ci-*" and .bearer.queue == "release" and .bearer.role == "agent" and .bearer.expires_at'
	lines 0 token create third --role admin
	call 2 token create x --role root
	call 2 token create x
	call 0 token list
	[[ $output == *build*agent*ci-* ]]
	ask 0 token list
	is '[.tokens[].name] == ["build", "ci", "third"] and (tostring | contains("pawl_") | not)'
	lines 0 token list
	call 0 token revoke build
	call 44 token revoke build
	ask 0 token revoke ci
	lines 0 token revoke third
	ask 0 token list
	is '.tokens == []'
}

@test "tokens belong to the store of the queue" {
	pawl token create a --role agent
	mkdir "$BATS_TEST_TMPDIR/elsewhere"
	cd "$BATS_TEST_TMPDIR/elsewhere"
	call 40 token list
	complains "no queue here" "pawl init"
	call 40 token create b --role agent
	call 40 token revoke a
	pawl init
	ask 0 token list
	is '.tokens == []'
	PAWL_SERVER_STATE=$PWD/mine pawl token create c --role reader
	same "$(stat -c %a mine mine/tokens | tr '\n' ' ')" "700 600 "
}

@test "a damaged or open file of tokens is refused" {
	pawl token create a --role agent
	chmod 644 "$(state)/tokens"
	call 40 token list
	chmod 600 "$(state)/tokens"
	echo '{"tokens":[{"name":"a"}]}' >"$(state)/tokens"
	call 40 token create b --role agent
	call 40 serve --listen 127.0.0.1:0
	ask 40 serve --listen 127.0.0.1:0
	lines 40 serve --listen 127.0.0.1:0
}

@test "serve refuses to be open to others without a token and TLS" {
	call 2 serve --listen 0.0.0.0:0
	complains "--tls-cert"
	call 2 serve --listen '[::]:0'
	call 2 serve --listen 127.evil.example:0
	call 2 serve --listen 0.0.0.0:0 --auth none --behind-proxy
	complains "--auth none"
	call 2 serve --tls-cert c.pem
	call 2 serve --auth maybe
	call 30 serve --listen 127.0.0.1:99999
	call 40 serve --listen 127.0.0.1:0 --queue nowhere
}

@test "a call has the JSON and the status of its command" {
	serve
	api 200 create '{"title":"One","label":["a"]}'
	is '.ok and .task.id == "t1" and .task.labels == ["a"]'
	api 200 next '{"claim":true,"ttl":60}'
	is '.task.id == "t1" and .lock.ttl == 60 and .task.lock.mode == "server" and (.lock.token | length == 36)'
	lock=$(jq -r .lock.token <<<"$output")
	api 200 next '{"claim":true}'
	is '.code == "NO_TASKS"'
	api 409 heartbeat '{"id":"t1"}'
	api 409 claim '{"id":"t1"}'
	is '.error.code == "CONFLICT"'
	api 409 done '{"id":"t1","token":"00000000-0000-4000-8000-000000000000"}'
	is '.error.code == "LOST_LOCK"'
	api 200 heartbeat "{\"id\":\"t1\",\"token\":\"$lock\"}"
	api 200 done "{\"id\":\"t1\",\"token\":\"$lock\",\"summary\":\"ok\"}"
	is '.task.status == "Done"'
	api 404 show '{"id":"t9"}'
	api 422 approve '{"id":"t1"}'
	api 200 lock_check '{"id":"t1"}'
	is '.code == "LOCK_FREE"'
	ask 0 show t1 # the command line sees the same queue
	is '.task.status == "Done"'
	same "$(find "$XDG_STATE_HOME/pawl" -name '*t1*')" "" # the server keeps no lock of a caller
}

@test "bad requests change nothing and name the fault" {
	serve
	pawl create One
	start=$(snapshot)
	api 400 create 'title'
	api 400 create '[1]'
	api 400 create '{"title":"a","title":"b"}'
	api 400 create '{"colour":"red"}'
	is '.error.message | contains("colour")'
	api 400 create
	api 400 create '{"title":"a","file":"/etc/passwd"}'
	api 400 claim '{"id":"t1","pid":1}'
	http 400 -H 'Content-Type: application/json' -d '{}' "$url/v1/list?queue=%00"
	http 422 -H 'Content-Type: application/json' -d '{}' "$url/v1/list?queue=nowhere"
	api 404 nothing
	api 404 serve
	is '.error.message | contains("no route")'
	http 404 "$url/../x" --path-as-is
	http 404 "$url/.well-known/oauth-protected-resource"
	http 405 "$url/v1/list"
	grep -qi '^allow: POST' "$BATS_TEST_TMPDIR/head"
	http 415 -d '{}' "$url/v1/list"
	http 415 -H 'Content-Type: application/json' -d '{}' "$url/v1/call"
	api 403 list '{}' -H 'Host: evil.example'
	api 403 list '{}' -H 'Origin: http://evil.example'
	api 403 list '{}' -H 'Sec-Fetch-Site: cross-site'
	api 200 list '{}' -H "Origin: $url" -H 'Sec-Fetch-Site: same-origin'
	not grep -qi '^access-control' "$BATS_TEST_TMPDIR/head"
	head -c 1100000 /dev/zero | tr '\0' a >big
	http 413 -H 'Content-Type: application/json' --data-binary @big "$url/v1/create"
	same "$start" "$(snapshot)"
}

@test "tokens: none, unknown, revoked, expired, for another queue" {
	serve
	token='' api 401 list
	grep -qi '^www-authenticate: Bearer realm="pawl"' "$BATS_TEST_TMPDIR/head"
	is '.error.fault == "unauthorized"'
	token=pawl_nothing api 401 list
	api 401 list '{}' -H "Authorization: Bearer $token"
	is '.error.message | contains("more than one token")'
	http 200 "$url/livez" && token='' http 200 "$url/livez" && token='' http 200 "$url/readyz"
	for path in metrics openapi.json v1/events v1/list nothing; do
		token='' http 401 "$url/$path"
	done
	token_for a --role reader
	api 200 list
	pawl token revoke a
	api 401 list
	token_for b --role reader --expires 1ms
	api 401 list
	token_for c --role reader --queue other
	http 403 -H 'Content-Type: application/json' -d '{}' "$url/v1/list?queue=default"
	is '.error.fault == "forbidden"'
	api 422 list # its own queue does not exist
}

@test "failed logins slow down the guesser, and no valid token" {
	serve
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		token=pawl_wrong1 api 401 list
	done
	token=pawl_wrong1 api 429 list
	grep -qi '^retry-after: [0-9]' "$BATS_TEST_TMPDIR/head"
	token=pawl_other api 429 list # the address
	token='' api 429 list
	token=pawl_wrong1 api 429 list '{}' --interface 127.0.0.5 # the first characters of the token
	token=pawl_other api 401 list '{}' --interface 127.0.0.5
	api 200 list
	api 200 list '{}' --interface 127.0.0.5
	token='' http 200 "$url/livez"
	head -c 200000 /dev/zero >big
	token=pawl_wrong1 http 429 -H 'Content-Type: application/json' --data-binary @big "$url/v1/create"
}

@test "tokens that cannot be read are not valid" {
	serve
	token_for a --role reader
	api 200 list
	cp "$(state)/tokens" kept
	echo '{' >"$(state)/tokens"
	api 503 list
	is '.error.code == "API_ERROR"'
	grep -qi '^retry-after: 1' "$BATS_TEST_TMPDIR/head"
	api 503 list # and not what the server remembers
	same "$(grep -c 'cannot read the tokens' "$BATS_TEST_TMPDIR/serve.log")" 1
	kill -HUP "$server"
	soon grep -q 'message="reloaded' "$BATS_TEST_TMPDIR/serve.log"
	api 503 list
	cp kept "$(state)/tokens"
	api 200 list
	chmod 644 "$(state)/tokens"
	touch "$(state)/tokens"
	api 503 list
	chmod 600 "$(state)/tokens"
	rm "$(state)/tokens"
	api 401 list
	cp kept "$(state)/tokens"
	chmod 600 "$(state)/tokens"
	api 200 list
}

@test "a queue has any name in the address" {
	pawl init --queue 'Büro+1' -q
	serve
	for name in 'B%C3%BCro%2B1' 'B%c3%bcro%2b1'; do
		http 200 -H 'Content-Type: application/json' -d '{}' "$url/v1/list?queue=$name"
	done
	for name in 'B%C3' '%' '%4' '%4G' '%GG' 'a%00b' 'default&queue=B%C3%BCro%2B1'; do
		http 400 -H 'Content-Type: application/json' -d '{}' "$url/v1/list?queue=$name"
	done
}

@test "the agent's name is bound to the token" {
	serve
	token_for alice --role agent
	api 200 create '{"title":"One"}'
	api 200 claim '{"id":"t1"}'
	is '.task.lock.holder == "alice"'
	api 403 comment '{"id":"t1","text":"hi","agent":"bob"}'
	token_for ci --role agent --agent 'ci-*'
	api 400 comment '{"id":"t1","text":"hi"}'
	api 200 comment '{"id":"t1","text":"hi","agent":"ci-7","run":"r1"}'
	api 403 comment '{"id":"t1","text":"hi","agent":"xci-7"}'
	ask 0 log t1
	is '.events[-1].agent == "ci-7" and .events[-1].run == "r1"'
}

readers="id_peek next status list show tree graph find log report stats queues lock_check lock_status lock_list lock_typed
	lock_health emergency_status prime version"
agents="create update depend undepend comment id_claim claim heartbeat done review release block escalate fail lock_acquire
	lock_release batch_add undo"
reviewers="approve rework unblock retry reopen cancel archive batch_update"
admins="remove pause resume batch_remove lock_break lock_cleanup emergency_on emergency_off"

@test "every command has a route or a reason, and its role" {
	serve
	http 200 "$url/openapi.json"
	is '.openapi == "3.1.0"'
	jq -r '.paths | keys[] | select(startswith("/v1/")) | ltrimstr("/v1/")' <<<"$output" | grep -vx 'call\|events\|store' | sort >routes
	printf '%s\n' $readers $agents $reviewers $admins | sort >wanted
	same "$(cat wanted)" "$(cat routes)"
	while read -r name; do
		name=${name// /_}
		grep -qx "$name" routes || {
			api 404 "$name"
			is '.error.message | contains("has no route: ")'
		}
	done < <(all_commands)
}

# allowed ROLE NAME...: the calls that a bearer of this role may make; without arguments most of them are refused for
# another reason
allowed() {
	local name want=
	token_for "$1" --role "$1"
	shift
	for name in $readers $agents $reviewers $admins; do
		printf 'url = "%s/v1/%s"\noutput = /dev/null\nnext\n' "$url" "$name"
	done | sed '$d' | sed "s|^url|header = \"Authorization: Bearer $token\"\nheader = \"Content-Type: application/json\"\ndata = \"{}\"\nwrite-out = \"%{http_code} %{url_effective}\\\\n\"\nurl|" >config
	curl -s -K config | sed 's|http://.*/v1/||' >answers
	for name in "$@"; do want="$want$name
"; done
	same "$(grep -v '^403 ' answers | cut -d' ' -f2 | sort)" "$(printf %s "$want" | sort)"
	same "$(wc -l <answers)" "$(printf '%s\n' $readers $agents $reviewers $admins | wc -l)"
}

@test "every role may call its commands and no other" {
	serve
	allowed reader $readers
	allowed agent $readers $agents
	allowed reviewer $readers $agents $reviewers
	allowed admin $readers $agents $reviewers $admins
}

@test "the role is judged by what the call does" {
	serve
	admin=$token
	token_for al --role agent
	api 200 create '{"title":"One"}'
	api 200 claim '{"id":"t1"}'
	lock=$(jq -r .lock.token <<<"$output")
	api 200 update "{\"id\":\"t1\",\"token\":\"$lock\",\"priority\":3}" # its own
	api 200 review "{\"id\":\"t1\",\"token\":\"$lock\",\"summary\":\"x\"}"
	api 403 status '{"id":"t1","status":"done"}' # an approval
	is '.error.message | contains("reviewer")'
	api 403 status '{"id":"t1","status":"in-progress","reason":"again"}' # a rework
	api 403 update '{"id":"t1","priority":1}' # nobody's
	api 403 depend '{"id":"t1","on":["t1"]}'
	api 200 create '{"title":"Two"}'
	api 200 claim '{"id":"t2"}'
	token_for ann --role reviewer
	api 403 update '{"id":"t2","priority":1,"force":true,"reason":"x"}'
	api 403 cancel '{"id":"t2","force":true,"reason":"x"}'
	api 403 release '{"id":"t2","force":true}'
	api 403 lock_break '{"id":"t2","reason":"x"}'
	api 403 lock_acquire '{"id":"@maintenance"}'
	api 200 update '{"id":"t1","priority":1}'
	api 200 status '{"id":"t1","status":"done"}'
	token_for rae --role reader
	api 403 next '{"claim":true}'
	api 200 next
	token=$admin
	api 200 cancel '{"id":"t2","force":true,"reason":"x"}'
}

@test "a read-only server refuses every change" {
	pawl create One
	serve --read-only
	api 200 list
	api 403 create '{"title":"Two"}'
	api 403 next '{"claim":true}'
	api 403 status '{"id":"t1","status":"canceled","reason":"x"}'
}

@test "--auth none needs no token; a Unix socket only its owner" {
	serve --auth none
	token='' api 200 create '{"title":"One"}'
	kill "$server"
	wait "$server"
	"$PAWL" serve --listen "unix:$PWD/s" 2>unix.log 3>&- &
	server=$!
	until [ -S s ]; do sleep 0.02; done
	same "$(stat -c %a s)" 600
	url=http://localhost token='' api 200 list '{}' --unix-socket s
	is '.tasks[0].id == "t1"'
}

@test "next waits for a task, and a caller that went away gets none" {
	serve
	curl -s -m 60 -H "Authorization: Bearer $token" -H 'Content-Type: application/json' -d '{"claim":true,"wait":50}' \
		"$url/v1/next" >got 3>&- &
	waiter=$!
	soon waiters_are 1
	pawl create One # another process
	wait "$waiter"
	same "$(jq -r .task.id got)" t1
	curl -s -m 60 -H "Authorization: Bearer $token" -H 'Content-Type: application/json' -d '{"claim":true,"wait":50}' \
		"$url/v1/next" >/dev/null 3>&- &
	waiter=$!
	soon waiters_are 1
	kill -9 "$waiter"
	soon waiters_are 0
	api 200 create '{"title":"Two"}'
	ask 0 show t2
	is '.task.status == "Ready"'
	api 200 next '{"claim":true,"wait":0.05}'
	api 200 next '{"claim":true,"wait":0.05}'
	is '.code == "NO_TASKS"'
}

@test "twenty clients at once claim each task exactly once" {
	serve
	printf 'task %s\n' {1..100} >titles
	pawl batch add --file titles
	curl -s -Z --parallel-max 20 -H "Authorization: Bearer $token" -H 'Content-Type: application/json' -d '{"claim":true}' \
		-o 'claim.#1' "$url/v1/next?[1-110]"
	same "$(cat claim.* | jq -r 'select(.code == "SUCCESS") | .task.id' | sort -u | wc -l)" 100
	same "$(cat claim.* | jq -r 'select(.code == "SUCCESS") | .lock.token' | sort -u | wc -l)" 100
	same "$(cat claim.* | jq -r 'select(.code == "NO_TASKS") | .code' | wc -l)" 10
}

@test "the stream has a snapshot, each event, and resumes" {
	serve
	pawl create One
	stream
	until grep -q '^event: snapshot' stream && grep -q '"id":"t1"' stream; do sleep 0.02; done
	api 200 create '{"title":"Two"}'
	pawl comment t1 "from beside"
	until grep -q 'from beside' stream; do sleep 0.02; done
	same "$(grep -c '^event: event' stream)" 2
	kill "$follower"
	last=$(sed -n 's/^id: //p' stream | tail -1)
	pawl comment t1 "missed"
	stream -H "Last-Event-ID: $last"
	until grep -q 'missed' stream; do sleep 0.02; done
	not grep -q snapshot stream
	not grep -q 'from beside' stream
	kill "$follower"
	stream -H 'Last-Event-ID: 999999999'
	soon grep -q '^event: reset' stream
	soon grep -q '^event: snapshot' stream
	last=$(sed -n 's/^id: //p' stream | tail -1)
	kill "$follower"
	stream -H "Last-Event-ID: $last" # it missed nothing, and learns so long before the line of each 15 s
	timeout 12 bash -c 'until grep -q "^:" stream; do sleep 0.05; done'
	not grep -q event stream
	kill "$follower"
}

@test "kill -9 loses nothing that was answered; two servers and the command line share the queue" {
	serve
	api 200 create '{"title":"One"}'
	api 200 claim '{"id":"t1"}'
	lock=$(jq -r .lock.token <<<"$output")
	kill -9 "$server"
	wait "$server" || true
	first=$token
	serve
	same "$first" "$token"
	api 200 heartbeat "{\"id\":\"t1\",\"token\":\"$lock\"}"
	"$PAWL" serve --listen 127.0.0.1:0 2>two.log 3>&- &
	second=$!
	until grep -q '^pawl: open ' two.log; do sleep 0.02; done
	other=$(sed -n 's/^pawl: open \([^ ]*\).*/\1/p' two.log)
	url=$other api 200 done "{\"id\":\"t1\",\"token\":\"$lock\"}"
	kill "$second"
	wait "$second"
	api 200 show '{"id":"t1"}'
	is '.task.status == "Done"'
}

@test "SIGTERM ends the server with success" {
	cat >ends <<-END
		#!/bin/sh
		"$PAWL" "\$@" &
		pid=\$!
		until [ -S s ]; do sleep 0.02; done
		kill \$pid
		wait \$pid
	END
	chmod +x ends
	PAWL=$PWD/ends call 0 serve --listen "unix:$PWD/s"
	complains "pawl: open unix:"
}

# certificate NAME: a self-signed one for localhost
certificate() {
	openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj "/CN=$1" -addext 'subjectAltName=DNS:localhost,IP:127.0.0.1' \
		-keyout key.new -out cert.new 2>/dev/null
	mv key.new key.pem
	mv cert.new cert.pem
}

served_name() {
	openssl s_client -connect "${url#https://}" </dev/null 2>/dev/null | openssl x509 -noout -subject | grep -q "$1"
}

@test "TLS: other addresses are allowed, and SIGHUP takes a new certificate" {
	needs openssl
	certificate one
	serve --listen 0.0.0.0:0 --tls-cert cert.pem --tls-key key.pem
	[[ $url == https://* ]]
	url=https://127.0.0.1:${url##*:}
	http 200 --cacert cert.pem "$url/livez"
	token='' http 401 --cacert cert.pem "$url/metrics"
	soon served_name one
	certificate two
	kill -HUP "$server"
	soon served_name two
	api 200 list '{}' --cacert cert.pem
	echo broken >cert.pem
	kill -HUP "$server"
	soon grep -q 'old certificate stays' "$BATS_TEST_TMPDIR/serve.log"
	soon served_name two
}

@test "a service manager passes the socket and learns that the server is ready" {
	cat >manager.py <<-'END'
		import os, socket, sys
		tcp = socket.create_server(("127.0.0.1", 0))
		note = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
		note.bind("note")
		note.settimeout(30)
		pid = os.fork()
		if not pid:
		    os.dup2(tcp.fileno(), 3, inheritable=True)
		    os.environ.update(LISTEN_FDS="1", LISTEN_PID=str(os.getpid()), NOTIFY_SOCKET=os.path.abspath("note"))
		    os.execv(sys.argv[1], [sys.argv[1], "serve"])
		print(note.recv(100).decode())
		with socket.create_connection(tcp.getsockname()) as c:
		    c.sendall(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
		    print(c.recv(1000).split(b"\r\n")[0].decode())
		os.kill(pid, 15)
		print(note.recv(100).decode())
		print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
	END
	same "$(python3 manager.py "$PAWL" 2>manager.log)" "READY=1
HTTP/1.1 200 OK
STOPPING=1
0"
}

@test "more calls than the burst allows are refused with Retry-After" {
	pawl config set serve.burst 3
	pawl config set serve.calls_per_second 1
	serve
	curl -s -o /dev/null -w '%{http_code}\n' -H "Authorization: Bearer $token" "$url/nothing?[1-60]" >codes
	grep -qx 404 codes
	grep -qx 429 codes
	not grep -vx '404\|429' codes
	token='' http 200 "$url/livez"
	token_for other --role reader
	http 404 "$url/nothing" # each token has its own
}

# packed BYTE...: one packed request, behind its length
packed() {
	printf '%b' '\0000\0000\0000' "$(printf '\\0%03o' $# "$@")"
}

@test "packed requests: one or many, in one commit, by the rules of the token" {
	serve
	type='Content-Type: application/vnd.pawl.call'
	# 255 op (10: create; 5: overview), 20 title, 2 agent; numbers are zigzag
	{ packed 255 1 20 20 1 65 && packed 255 1 20 20 1 66 && packed 255 1 10; } >many
	http 200 -H "$type" --data-binary @many "$url/v1/call"
	grep -qi "^content-type: application/vnd.pawl.call" "$BATS_TEST_TMPDIR/head"
	ask 0 list
	is '[.tasks[].title] == ["A", "B"]'
	http 200 "$url/metrics"
	grep -q '^pawl_commit_calls_count 1$' <<<"$output"
	grep -q '^pawl_commit_calls_sum 2$' <<<"$output"
	grep -q '^pawl_calls_total{op="create",code="SUCCESS"} 2$' <<<"$output"
	start=$(snapshot)
	packed 255 1 20 20 1 65 2 1 98 >other # as the agent b
	http 403 -H "$type" --data-binary @other "$url/v1/call"
	head -c 5 many >short
	http 400 -H "$type" --data-binary @short "$url/v1/call"
	http 400 -H "$type" --data-binary '' "$url/v1/call"
	packed 200 1 1 255 1 20 20 1 65 >relay # a proof of a lock, as processes of one machine hand it over
	token_for rae --role reader
	http 200 -H "$type" --data-binary @relay "$url/v1/call"
	grep -qa 'needs the role agent' "$BATS_TEST_TMPDIR/body"
	same "$start" "$(snapshot)"
}

@test "a log line has neither tokens nor bodies; SIGTERM ends waiting calls" {
	serve --log json
	api 200 create '{"title":"secret words"}'
	http 200 "$url/livez?token=$token"
	curl -s -m 60 -H "Authorization: Bearer $token" -H 'Content-Type: application/json' -d '{"claim":true,"label":"x","wait":50}' \
		"$url/v1/next" >got 3>&- &
	waiter=$!
	soon waiters_are 1
	kill "$server"
	wait "$waiter"
	same "$(jq -r .code got)" NO_TASKS
	wait "$server"
	not grep -q "secret\|pawl_" "$BATS_TEST_TMPDIR/serve.log"
	grep '^{' "$BATS_TEST_TMPDIR/serve.log" | jq -es 'length >= 3 and all(.[]; .message or (.status and .path and .from))' >/dev/null
}

@test "board: its files need no token, and carry the policy" {
	queue
	serve
	token='' http 200 "$url/"
	[[ $output == '<!DOCTYPE html>'* ]]
	for name in 'Content-Security-Policy: default-src .none.; script-src .self.; .*require-trusted-types-for .script.' \
		'X-Content-Type-Options: nosniff' 'Referrer-Policy: no-referrer' 'Cross-Origin-Opener-Policy: same-origin' \
		'Cross-Origin-Resource-Policy: same-origin' 'Content-Type: text/html; charset=utf-8'; do
		grep -q "^$name" "$BATS_TEST_TMPDIR/head" || {
			echo "no $name"
			return 1
		}
	done
	for file in "$PAWL_SOURCE"/web/*.js "$PAWL_SOURCE"/web/*.css; do
		token='' http 200 "$url/${file##*/}"
		printf %s "$output" | cmp - <(printf %s "$(cat "$file")")
	done
	token='' http 405 -X POST -H 'Content-Type: application/json' -d '{}' "$url/"
	token='' http 401 "$url/nothing.js"
	token='' http 403 -H 'Host: evil.example' "$url/"
}

@test "board: compressed for those who take it, and 304 for those who have it" {
	queue
	serve
	etag() {
		sed -n 's/^ETag: \(.*\)\r$/\1/p' "$BATS_TEST_TMPDIR/head"
	}
	token='' http 200 "$url/detail.js"
	same "$(etag)" "\"$(sha256sum <"$PAWL_SOURCE/web/detail.js" | cut -d' ' -f1)\""
	: >"$BATS_TEST_TMPDIR/body"
	token='' http 304 -H "If-None-Match: $(etag)" "$url/detail.js"
	[ -z "$output" ]
	token='' http 304 -H "If-None-Match: \"x\", $(etag)" "$url/detail.js"
	token='' http 200 -H 'If-None-Match: "x"' "$url/detail.js"
	plain=$(etag)
	token='' http 200 -H 'Accept-Encoding: gzip;q=0' "$url/detail.js"
	same "$(etag)" "$plain"
	token='' http 200 -H 'Accept-Encoding: br, gzip' --compressed "$url/detail.js"
	printf %s "$output" | cmp - <(printf %s "$(cat "$PAWL_SOURCE/web/detail.js")")
	grep -q '^Content-Encoding: gzip' "$BATS_TEST_TMPDIR/head"
	[ "$(etag)" != "$plain" ]
	token='' http 304 -H 'Accept-Encoding: gzip' -H "If-None-Match: $(etag)" "$url/detail.js"
	[ "$(for file in "$PAWL_SOURCE"/web/*; do gzip -9n <"$file"; done | wc -c)" -lt 41000 ]
}

@test "board: whoami tells the role and the name" {
	queue
	serve
	http 200 "$url/whoami"
	is '.ok and .role == "admin" and .agent != null and .read_only == false'
	token_for eve --role reader --queue default
	http 200 "$url/whoami"
	is '.role == "reader" and .name == "eve" and .agent == "eve" and .queue == "default"'
	token_for ci --role agent --agent 'ci-*'
	http 200 "$url/whoami"
	is '.agent == null and .agents == "ci-*"'
	http 405 -X POST -H 'Content-Type: application/json' -d '{}' "$url/whoami"
	token='' http 401 "$url/whoami"
}

@test "board --web: a server for one person, with a token of this run" {
	queue
	DISPLAY='' WAYLAND_DISPLAY='' "$PAWL" board --web >address 2>"$BATS_TEST_TMPDIR/serve.log" 3>&- &
	server=$!
	soon grep -q '#token=' address
	url=$(sed 's,/#token=.*,,' address) token=$(sed 's,.*#token=,,' address)
	[[ $url == http://127.0.0.1:* ]]
	http 200 "$url/"
	http 200 "$url/whoami"
	is '.role == "admin" and .token == null'
	api 200 create '{"title":"One"}'
	token=pawl_wrong api 401 list
	[ ! -e "$(state)/tokens" ]
	kill -INT "$server"
	wait "$server"
}

@test "board --web: the browser gets a token that is good for one login, and no command line has it" {
	needs_terminal
	queue
	mkdir bin
	export XDG_STATE_HOME=$HOME/'a state #1'
	printf '#!/bin/sh\necho "$*" >"%s/opened.new"; mv "%s/opened.new" "%s/opened"\n' "$PWD" "$PWD" "$PWD" >bin/xdg-open
	chmod +x bin/xdg-open
	PATH=$PWD/bin:$PATH DISPLAY=:9 script -qfec "exec $PAWL board --web" printed >/dev/null 2>&1 3>&- &
	server=$!
	soon test -s opened
	soon grep -q '#token=' printed
	page=$(echo "$XDG_STATE_HOME"/pawl/board-*.html)
	same "$(<opened)" "$(sed 's, ,%20,g; s,#,%23,g' <<<"file://$page")"
	same "$(stat -c %a "$page") $(stat -c %a "${page%/*}")" '600 700'
	url=$(sed -n 's,.*url=\(http://[^/]*\)/#token=.*,\1,p' "$page") token=$(sed -n 's,.*url=.*#token=\([^"]*\)".*,\1,p' "$page")
	[[ $token == pawl_* ]]
	not grep -q "$token" printed
	http 200 -H 'Sec-Fetch-Site: cross-site' -H 'Sec-Fetch-Mode: navigate' -H 'Sec-Fetch-Dest: document' "$url/"
	http 403 -H 'Sec-Fetch-Site: cross-site' -H 'Sec-Fetch-Mode: navigate' -H 'Sec-Fetch-Dest: document' "$url/whoami"
	http 200 "$url/whoami"
	[ ! -e "$page" ]
	fresh=$(jq -r .token <<<"$output")
	grep -q "$fresh" printed
	http 401 "$url/whoami"
	token=$fresh http 200 "$url/whoami"
	kill -9 "$server" # closes the terminal, which ends the board
	server=
	soon not curl -s "$url/livez"
}

@test "board --export: one file, which replaces only an earlier one" {
	queue
	pawl create 'One </script>'
	call 0 board --export board.html
	grep -q '^<!-- pawl board -->' board.html
	grep -q 'One \\u003c/script>' board.html
	same "$(stat -c %a board.html)" 600
	pawl create Two
	call 0 board --export board.html
	grep -q '"Two"' board.html
	call 0 board --export -
	[[ $output == '<!DOCTYPE html>'* ]]
	echo mine >own.html
	call 20 board --export own.html
	same "$(cat own.html)" mine
	ln -s own.html link.html
	call 20 board --export link.html
	call 30 board --export nowhere/board.html
	call 2 board --web --export x.html
}

@test "events: a stream ends with its token" {
	serve
	token_for ann --role reader
	stream
	soon grep -q '^event: snapshot' stream # else t1 may be in the snapshot, and come again as an event
	pawl create One -q
	soon grep -q '"t1"' stream
	pawl token revoke ann
	cp stream before
	pawl create Two -q
	wait "$follower"
	cmp stream before
}

# wake FILE: follows the changes, without content
wake() {
	: >"$1"
	curl -sN -H "Authorization: Bearer $token" "$url/v1/events?wake=1" >"$1" 3>&- &
}

changes_are() {
	[ "$(grep -cx 'event: change' "$1")" -ge "$2" ]
}

@test "events?wake=1: a line for each change and reader; reads make none" {
	pawl config set serve.max_connections 6
	serve
	http 400 "$url/v1/events?wake=2"
	wake first
	follower=$!
	soon changes_are first 1
	wake second
	second=$!
	soon changes_are second 1
	waiters_are 2
	for _ in 1 2 3; do
		api 200 list
	done
	api 200 create '{"title":"One"}'
	soon changes_are first 2
	soon changes_are second 2
	pawl create Two -q # beside the server
	soon changes_are first 3
	soon changes_are second 3
	same "$(grep -cx 'event: change' first) $(grep -cx 'event: change' second)" "3 3"
	kill -9 "$follower" # the oldest one
	soon waiters_are 1
	api 200 create '{"title":"Three"}'
	soon changes_are second 4
	api 200 claim '{"id":"t1","ttl":1}'
	soon changes_are second 6 # the lease expires
	wake first
	follower=$!
	soon changes_are first 1
	wake third
	waiter=$!
	soon changes_are third 1
	http 429 "$url/v1/events?wake=1" # half of the connections stay free
	http 200 "$url/livez"
}

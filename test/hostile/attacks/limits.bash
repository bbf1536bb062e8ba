# shellcheck shell=bash
# Attacks on a server by callers with a valid token: memory that is not theirs, and too much memory.

# shellcheck source=test/hostile/serving.bash
. "${BASH_SOURCE[0]%/*}/../serving.bash"

# A reader exports tasks whose comments are large: the server continues, and sends the comments and nothing else.
# stores: sqlite files git
# more: postgres
attack_export_of_large_comments() {
	local n
	queue
	victim 0 create one
	for n in 1 1000 100000 200000; do
		head -c "$n" /dev/zero | tr '\0' x | "$PAWL" -q comment t1 -
	done
	serving
	PAWL_SERVER_TOKEN=$(role_token reader) victim 0 --store "$url" export -o "$scratch/out.json"
	victim 0 export -o "$scratch/own.json"
	diff "$scratch/out.json" "$scratch/own.json"
	ended
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
	reader=$(role_token reader) agent=$(role_token agent)
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
# more: files git postgres
attack_callers_that_do_not_read() {
	local reader agent
	large_queue 200 250000
	serving
	reader=$(role_token reader) agent=$(role_token agent)
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

# A caller asks for a long answer from each of many queues at the same moment: all of them together need bounded memory, and
# other callers get theirs meanwhile.
# stores: sqlite
attack_long_answers_of_many_queues() {
	local reader agent
	large_queue 200 250000
	many_queues 8
	python3 - "$clone/.pawl/queue.db" <<-'END'
		import sqlite3, sys
		db = sqlite3.connect(sys.argv[1])
		columns = [c[1] for c in db.execute("PRAGMA table_info(record)")][2:]
		for (n,) in db.execute("SELECT n FROM queue WHERE name LIKE 'q%'").fetchall():
		    db.execute(f"INSERT INTO record SELECT rid + 1000 * {n}, {n}, {','.join(columns)} FROM record WHERE rid < 1000 AND status")
		    db.execute(f"INSERT INTO body SELECT rid + 1000 * {n}, title, description, acceptance, blocker_reason, unblock_action, summary, rest FROM body WHERE rid < 1000")
		db.commit()
	END
	serving
	reader=$(role_token reader) agent=$(role_token agent)
	env -u MALLOC_PERTURB_ python3 - "$url" "$server" "$reader" "$agent" "${sanitized:+sanitized}" <<-'END'
		import http.client, re, socket, sys, urllib.parse
		url, pid, reader, agent, sanitized = urllib.parse.urlsplit(sys.argv[1]), *sys.argv[2:]
		PACKED, JSON = "application/vnd.pawl.call", "application/json"
		def memory():
		    with open(f"/proc/{pid}/status") as f:
		        return int(re.search(r"VmHWM:\s+(\d+)", f.read()).group(1))
		def send(path, kind, body):
		    s = socket.create_connection((url.hostname, url.port), 100)
		    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
		    s.sendall(f"POST {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {reader}\r\nContent-Type: {kind}\r\n"
		              f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
		    return s
		def status(s):
		    head = b""
		    while b"\r\n\r\n" not in head:
		        head += s.recv(50)
		    return int(head.split()[1])
		def ask(token, path, body):
		    c = http.client.HTTPConnection(url.hostname, url.port, timeout=100)
		    c.request("POST", path, body, {"Authorization": "Bearer " + token, "Content-Type": JSON})
		    r = c.getresponse()
		    return r.status, len(r.read())
		for name, path, kind, body in (("lists", "/v1/call", PACKED, b"\0\0\0\3\xff\1\4"), ("exports", "/v1/store?do=export", PACKED, b"\0\0\0\0"),
		                               ("lists in JSON", "/v1/list", JSON, b'{"limit": 0}')):
		    sockets = [send(f"{path}{'&' if '?' in path else '?'}queue=q{i + 1}", kind, body) for i in range(8)]
		    assert ask(agent, "/v1/create?queue=q1", '{"title": "One"}')[0] == 200
		    got = [status(s) for s in sockets]
		    print(name, got, memory(), "KiB")
		    assert set(got) <= {200, 429} and 200 in got
		    assert ask(reader, "/v1/show", '{"id": "t999"}')[0] == 404 # a short answer
		    for s in sockets:
		        s.close()
		    got = (429, 0)
		    while got[0] == 429: # the server has to see that they are closed
		        got = ask(reader, "/v1/list?queue=q8", '{"limit": 0}')
		    assert got[0] == 200 and got[1] > 50000000, got
		assert memory() < (1000000 if sanitized else 400000)
	END
	ended
}

# Values that are small as text and large in memory: of bodies in many queues at once, and of `extra` in lists.
# stores: sqlite
attack_values_that_grow() {
	local reader agent
	queue
	many_queues 31
	python3 -c 'import json, sys
json.dump([{"id": f"t{i + 1}", "title": "One", "extra": {"a": [{}] * 4900}} for i in range(400)], sys.stdout)' >"$scratch/tasks.json"
	victim 0 import "$scratch/tasks.json"
	serving
	reader=$(role_token reader) agent=$(role_token agent)
	press 300000 <<-'END'
		a list with extra	reader	400	1	POST	/v1/list	{"limit": 0}
		matches with extra	reader	400	1	POST	/v1/find	{"text": "one", "limit": 0}
		a part of the list	reader	200	1	POST	/v1/list	{"limit": 30}
		a list over MCP	reader	200	1	POST	/mcp	rpc("tools/call", name="list", arguments={"limit": 0})
		a body of objects	reader	400	1	POST	/v1/list	{"limit": [{}] * 200000}
		a message of objects	reader	400	1	POST	/mcp	rpc("ping", a=[{}] * 200000)
	END
	env -u MALLOC_PERTURB_ python3 - "$url" "$server" "$agent" "$reader" "${sanitized:+sanitized}" <<-'END'
		import http.client, re, sys, threading, urllib.parse
		url, pid, agent, reader, sanitized = urllib.parse.urlsplit(sys.argv[1]), *sys.argv[2:]
		def ask(token, path, body):
		    c = http.client.HTTPConnection(url.hostname, url.port, timeout=100)
		    c.request("POST", path, body, {"Authorization": "Bearer " + token, "Content-Type": "application/json"})
		    return c.getresponse().status
		got, body = [], '{"title": [' + "{}," * 100000 + "{}]}"
		threads = [threading.Thread(target=lambda i=i: got.append(ask(agent, f"/v1/create?queue=q{i + 1}", body))) for i in range(31)]
		for t in threads:
		    t.start()
		assert ask(reader, "/v1/show", '{"id": "t1"}') == 200
		for t in threads:
		    t.join()
		with open(f"/proc/{pid}/status") as f:
		    memory = int(re.search(r"VmHWM:\s+(\d+)", f.read()).group(1))
		print(got, memory, "KiB")
		assert set(got) <= {400, 429} and 400 in got
		assert sanitized or memory < 400000
		assert ask(agent, "/v1/create", '{"title": "Two"}') == 200
	END
	ended
}

# A caller that has not read 64 MiB of answers claims: it gets the lock, and no long answer.
# stores: sqlite
# more: files git postgres
attack_claims_of_a_caller_that_does_not_read() {
	local agent
	large_queue 200 250000
	serving
	agent=$("$PAWL" token create boss --role admin -q)
	env -u MALLOC_PERTURB_ python3 - "$url" "$server" "$agent" "${sanitized:+sanitized}" <<-'END'
		import http.client, json, re, socket, struct, sys, urllib.parse
		url, pid, token, sanitized = urllib.parse.urlsplit(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4]
		def memory():
		    with open(f"/proc/{pid}/status") as f:
		        return int(re.search(r"VmHWM:\s+(\d+)", f.read()).group(1))
		PACKED, LIST = "application/vnd.pawl.call", b"\0\0\0\3\xff\1\4"
		def unread(body):
		    s = socket.create_connection((url.hostname, url.port), 100)
		    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
		    s.sendall(f"POST /v1/call HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\nContent-Type: {PACKED}\r\n"
		              f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
		    head = b""
		    while b"\r\n\r\n" not in head:
		        head += s.recv(50)
		    return s, int(head.split()[1])
		def ask(path, body, kind="application/json"):
		    c = http.client.HTTPConnection(url.hostname, url.port, timeout=100)
		    c.request("POST", path, body, {"Authorization": "Bearer " + token, "Content-Type": kind, "Accept": "application/json, text/event-stream"})
		    r = c.getresponse()
		    text = r.read()
		    print(path, r.status, len(text), text[:300])
		    return r.status, text
		held = [unread(LIST) for _ in range(6)]
		assert [h[1] for h in held] == [200, 200, 429, 429, 429, 429], [h[1] for h in held]
		status, text = ask("/v1/next", '{"claim": true}')
		answer = json.loads(text)
		assert status == 200 and answer["lock"]["token"] and answer["task"]["id"] == "t1" and answer["warnings"], text
		assert len(text) < 65536
		assert ask("/v1/done", json.dumps({"id": "t1", "token": answer["lock"]["token"], "summary": "one"}))[0] == 200
		claim = b"\xff\1\x18\1\2t2\7\x24" + b"00000000-0000-4000-8000-000000000002"
		status, text = ask("/v1/call", struct.pack(">I", len(claim)) + claim + LIST, PACKED)
		assert status == 200 and len(text) < 65536 and b"too long" in text, text[:500]
		# a refused change does not lift the limit for the reads beside it
		bad = b"\xff\1\x18\1\3t99"
		# few with sanitizers, which take seconds for each: after 30 s the server drops the answers that nobody reads
		many = [unread(struct.pack(">I", len(bad)) + bad + LIST) for _ in range(2 if sanitized else 10)]
		assert ask("/v1/list", "{}")[0] == 429
		assert ask("/mcp", '{"jsonrpc": "2.0", "id": 1, "method": "ping"}')[0] == 429
		assert ask("/v1/comment", '{"id": "t3", "text": "short"}')[0] == 200
		# a batch that continues after a refusal has changed something, so it is not told to retry
		status, text = ask("/v1/batch_remove", json.dumps({"id": ["t150"] + ["no" + "x" * 120 + str(i) for i in range(99)], "keep_going": True}))
		assert status != 429 and b"not read its earlier" not in text, text[:500]
		print(memory(), "KiB")
		assert sanitized or memory() < 400000
		for s, _ in held + many:
		    s.close()
		status = 429
		while status == 429:
		    status, text = ask("/v1/show", '{"id": "t3"}')
		assert status == 200 and len(text) > 250000
	END
	[ "$("$PAWL" show t1 --json | jq -r .task.status)" = Done ]
	victim 44 show t150
	ended
}

# A reader comes back after more events than any answer may have: it gets them all.
# stores: sqlite
# more: postgres
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
	reader=$(role_token reader)
	(curl -sN -m 100 -H "Authorization: Bearer $reader" -H 'Last-Event-ID: 1' "$url/v1/events" || true) | sed '/the last one/q' >"$scratch/events"
	grep -q 'the last one' "$scratch/events"
	[ "$(grep -c '"comment"' "$scratch/events")" = 301 ]
	not grep -q '^event: \(snapshot\|reset\)' "$scratch/events"
	ended
}

# More leases of large tasks expired, all at the same time, than an answer may have: a reader gets each of them.
# stores: sqlite
attack_more_expired_leases_than_fit() {
	local reader before
	large_queue 300 250000
	serving
	reader=$(role_token reader)
	before=$("$PAWL" log --limit 1 --json | jq -r '.events[-1].cursor')
	python3 -c 'import struct, sys
for i in range(300):
	token = b"00000000-0000-4000-8000-%012d" % i
	one = b"\xff\1\x18\1" + bytes([len(b"t%d" % (i + 1))]) + b"t%d" % (i + 1) + b"\7\x24" + token + b"\x0c\2\xd0\x0f" # claim, 1 s
	sys.stdout.buffer.write(struct.pack(">I", len(one)) + one)' >"$scratch/claims"
	[ "$(curl -s -m 60 -o "$scratch/body" -w '%{http_code}' -H "Authorization: Bearer $admin" -H 'Content-Type: application/vnd.pawl.call' \
		--data-binary "@$scratch/claims" "$url/v1/call")" = 200 ]
	[ "$("$PAWL" list --status in-progress --limit 0 --json | jq '.tasks | length')" = 300 ]
	sleep 1.2
	python3 - "$url" "$reader" "$before" <<-'END'
		import json, sys, urllib.request
		seen = set()
		s = urllib.request.urlopen(urllib.request.Request(sys.argv[1] + "/v1/events", headers={"Authorization": "Bearer " + sys.argv[2], "Last-Event-ID": sys.argv[3]}), timeout=100)
		while len(seen) < 300:
		    line = s.readline()
		    assert line, f"the stream ended after {len(seen)} leases"
		    if line.startswith(b"data: "):
		        event = json.loads(line[6:])
		        if event["event"]["event"] == "claimed":
		            continue
		        assert event["event"]["event"] == "expired" and len(event["task"]["description"]) == 250000, line[:200]
		        assert event["event"]["task"] not in seen, line[:200]
		        seen.add(event["event"]["task"])
	END
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
	# a batch that is refused as too long does not keep its token out for an hour
	who=$("$PAWL" token create long --role agent -q)
	python3 -c 'import json
print(json.dumps([{"jsonrpc": "2.0", "id": i, "method": "ping"} for i in range(5000)]))' >"$scratch/batch"
	curl -s -o "$scratch/body" -H "Authorization: Bearer $who" -H 'Content-Type: application/json' \
		-H 'Accept: application/json, text/event-stream' -d "@$scratch/batch" "$url/mcp"
	curl -s -o "$scratch/body" -D "$scratch/head" -H "Authorization: Bearer $who" -H 'Content-Type: application/json' -d '{}' "$url/v1/list"
	[ "$(sed -n 's/^Retry-After: \([0-9]*\).*/\1/p' "$scratch/head")" -lt 60 ]
	ended
}

# shellcheck shell=bash
# Attacks on a server by a caller with a valid token that takes more than its share: time, queues, sessions.

# shellcheck source=test/hostile/serving.bash
. "${BASH_SOURCE[0]%/*}/../serving.bash"

# A reader uses more queues than the server keeps open: everybody else still reaches every queue.
# stores: sqlite
attack_more_queues_than_places() {
	local i reader
	queue
	many_queues 66
	serving
	reader=$(role_token reader)
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
	reader=$(role_token reader) agent=$(role_token agent)
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

# A caller fills the worker of a queue with slow calls: another caller is served before they are done.
# stores: sqlite
attack_slow_calls_of_one_caller() {
	local reader agent i
	large_queue 100 250000
	victim 0 config set serve.burst 100000
	serving
	reader=$(role_token reader) agent=$(role_token agent)
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

# The same with commands that a turn makes before its commit.
# stores: sqlite
attack_slow_commands_of_one_caller() {
	local reader agent i
	large_queue 400 250000
	victim 0 config set serve.burst 100000
	victim 0 config set serve.max_per_address 400
	serving
	reader=$(role_token reader) agent=$(role_token agent)
	mkdir "$scratch/answers"
	for i in $(seq 300); do
		printf 'url = "%s/v1/next"\noutput = "%s"\n' "$url" "$scratch/answers/$i"
	done >"$scratch/calls"
	(curl -s -Z --parallel-max 300 --parallel-immediate -m 110 -H "Authorization: Bearer $reader" -H 'Content-Type: application/json' \
		-d '{"label":"zz"}' -K "$scratch/calls" 2>/dev/null || true) &
	until compgen -G "$scratch/answers/*" >/dev/null; do sleep 0.01; done
	python3 - "$url" "$agent" "$scratch/answers" <<-'END'
		import os, sys, urllib.request
		most = 0
		for _ in range(3):
		    before = len(os.listdir(sys.argv[3]))
		    urllib.request.urlopen(urllib.request.Request(sys.argv[1] + "/v1/create", b'{"title":"One"}',
		        {"Authorization": "Bearer " + sys.argv[2], "Content-Type": "application/json"}), timeout=100)
		    most = max(most, len(os.listdir(sys.argv[3])) - before)
		print("at most", most, "calls of the first caller were answered before one of the other")
		assert most < 20
	END
	kill -9 "$server"
	wait
}

# One caller keeps more sessions of MCP in use than the server has room for: another caller still gets one.
# stores: sqlite
attack_sessions_of_one_caller() {
	local agent other
	large_queue 40 10
	victim 0 config set serve.max_sessions 30
	victim 0 config set serve.calls_per_second 100000
	victim 0 config set serve.burst 100000
	serving
	agent=$(role_token agent) other=$("$PAWL" token create other --role agent -q)
	python3 - "$url" "$agent" "$other" <<-'END'
		import http.client, json, sys, urllib.parse
		url = urllib.parse.urlsplit(sys.argv[1])
		def claim(c, token, run, task):
		    c.request("POST", f"/mcp?run={run}", json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
		        "params": {"name": "claim", "arguments": {"id": task}, "_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28",
		        "io.modelcontextprotocol/clientInfo": {"name": "x", "version": "1"}, "io.modelcontextprotocol/clientCapabilities": {}}}}),
		        {"Authorization": "Bearer " + token, "Content-Type": "application/json", "MCP-Protocol-Version": "2026-07-28",
		         "Mcp-Method": "tools/call", "Mcp-Name": "claim", "Accept": "application/json, text/event-stream"})
		    r = c.getresponse()
		    text = r.read()
		    return r.status, text
		c = http.client.HTTPConnection(url.hostname, url.port, timeout=100)
		for i in range(36):
		    status, text = claim(c, sys.argv[2], f"r{i}", f"t{i + 1}")
		    if status == 503:
		        break
		    assert status == 200 and b"isError" not in text.replace(b'"isError":false', b""), (i, status, text)
		assert i == 30 and status == 503, (i, status, text)
		status, text = claim(c, sys.argv[3], "mine", "t40")
		assert status == 200 and b'"isError":true' not in text, (status, text)
	END
	ended
}

# A reader has hundreds of MCP sessions that follow the queue, in which many tasks are held: others still change it at once.
# stores: sqlite
attack_sessions_that_listen() {
	local reader agent
	queue
	python3 -c 'import json, sys
json.dump([{"id": f"t{i + 1}", "title": "One"} for i in range(600)], sys.stdout)' >"$scratch/tasks.json"
	victim 0 import "$scratch/tasks.json"
	victim 0 config set serve.calls_per_second 100000
	victim 0 config set serve.burst 100000
	serving
	reader=$(role_token reader) agent=$(role_token agent)
	python3 - "$url" "$reader" "$agent" "${sanitized:+sanitized}" <<-'END'
		import http.client, json, struct, sys, time, urllib.parse
		url, reader, agent, sanitized = urllib.parse.urlsplit(sys.argv[1]), *sys.argv[2:]
		c = http.client.HTTPConnection(url.hostname, url.port, timeout=100)
		def ask(token, path, body, kind="application/json", **more):
		    c.request("POST", path, body, {"Authorization": "Bearer " + token, "Content-Type": kind, "Accept": "application/json, text/event-stream", **more})
		    r = c.getresponse()
		    assert r.status == 200, (r.status, r.read()[:300])
		    return r, r.read()
		def rpc(method, **params):
		    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
		claims = b""
		for i in range(600):
		    one = b"\xff\1\x18\1" + bytes([len(b"t%d" % (i + 1))]) + b"t%d" % (i + 1) + b"\7\x24" + b"00000000-0000-4000-8000-%012d" % i
		    claims += struct.pack(">I", len(one)) + one
		for i in range(600):
		    r, _ = ask(reader, "/mcp", rpc("initialize", protocolVersion="2025-03-26", capabilities={}, clientInfo={"name": "x", "version": "1"}))
		    ask(reader, "/mcp", rpc("resources/subscribe", uri="pawl://board"), **{"MCP-Session-Id": r.getheader("MCP-Session-Id")})
		ask(agent, "/v1/call", claims, "application/vnd.pawl.call")
		took = []
		for i in range(7):
		    began = time.monotonic()
		    ask(agent, "/v1/create", '{"title": "Two"}')
		    took.append(time.monotonic() - began)
		print([f"{t:.2f}" for t in took])
		assert sanitized or sorted(took)[3] < 0.5
	END
	ended
}

# More changes come at once than one commit has memory for: all of them are made.
# stores: sqlite
attack_many_changes_at_once() {
	local reader agent
	large_queue 60 250000
	victim 0 config set serve.burst 100000
	serving
	reader=$(role_token reader) agent=$(role_token agent)
	victim 0 create small
	python3 - "$url" "$reader" "$agent" <<-'END'
		import http.client, struct, sys, time, urllib.parse
		url, reader, agent = urllib.parse.urlsplit(sys.argv[1]), sys.argv[2], sys.argv[3]
		def send(token, one, n):
		    c = http.client.HTTPConnection(url.hostname, url.port, timeout=30)
		    c.request("POST", "/v1/call", (struct.pack(">I", len(one)) + one) * n,
		              {"Authorization": "Bearer " + token, "Content-Type": "application/vnd.pawl.call"})
		    return c
		calls = [send(reader, b"\xff\x01\x04\x29\x02zz", 20)] # list, text zz: the others arrive during this call
		time.sleep(0.05)
		calls += [send(agent, b"\xff\x01\x3a\x01\x03t61\x29\x01a", 400) for _ in range(8)] # comments
		for c in calls:
		    r = c.getresponse()
		    assert r.status == 200, r.read()[:300]
	END
	[ "$("$PAWL" log t61 --limit 0 --json | jq '[.events[] | select(.event == "comment")] | length')" = 3200 ]
	ended
}

# A caller claims over MCP while the queue is busy, and another call comes right behind it: both get their answers, and the
# server continues.
# stores: sqlite
attack_claims_over_mcp_before_other_calls() {
	local reader agent text=250000
	[ -z "$sanitized" ] || text=25000 # a read is slow enough
	large_queue 60 "$text"
	victim 0 config set serve.burst 100000
	serving
	reader=$(role_token reader) agent=$(role_token agent)
	python3 - "$url" "$reader" "$agent" "$admin" <<-'END'
		import http.client, json, struct, sys, time, urllib.parse
		url, reader, agent, admin = urllib.parse.urlsplit(sys.argv[1]), *sys.argv[2:]
		JSON, PACKED = "application/json", "application/vnd.pawl.call"
		def send(token, path, body, kind=JSON, **more):
		    c = http.client.HTTPConnection(url.hostname, url.port, timeout=100)
		    c.request("POST", path, body, {"Authorization": "Bearer " + token, "Content-Type": kind, "Accept": "application/json, text/event-stream", **more})
		    return c
		def rpc(method, **params):
		    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
		r = send(agent, "/mcp", rpc("initialize", protocolVersion="2025-03-26", capabilities={}, clientInfo={"name": "x", "version": "1"})).getresponse()
		session = {"MCP-Session-Id": r.getheader("MCP-Session-Id")}
		slow = b"\xff\x01\x04\x29\x02zz" # list, text zz
		slow = (struct.pack(">I", len(slow)) + slow) * 8
		for i in range(30):
		    calls = [send(reader, "/v1/call", slow, PACKED)]
		    time.sleep(0.03)
		    calls.append(send(agent, "/mcp", rpc("tools/call", name="claim", arguments={"id": f"t{i + 1}"}), **session))
		    time.sleep(0.01)
		    calls.append(send(admin, "/v1/create", '{"title": "One"}'))
		    for c in calls:
		        r = c.getresponse()
		        text = r.read()
		        assert r.status == 200, (r.status, text[:300])
		    time.sleep(0.02) # nothing else comes to the queue
	END
	[ "$("$PAWL" list --status in-progress --limit 0 --json | jq '.tasks | length')" = 30 ]
	ended
}

# A reader fills the worker of a queue with calls and hangs up: the server ends at the second signal, without making them.
# stores: sqlite
attack_calls_that_delay_the_end() {
	local reader
	large_queue 100 250000
	victim 0 config set serve.burst 100000
	victim 0 config set serve.max_per_address 400
	serving
	reader=$(role_token reader)
	python3 - "$url" "$reader" "$server" <<-'END'
		import os, signal, socket, sys, time, urllib.parse
		url, calls = urllib.parse.urlsplit(sys.argv[1]), 300
		def find(wait):
		    s = socket.create_connection((url.hostname, url.port))
		    s.sendall((f"POST /v1/find HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {sys.argv[2]}\r\nContent-Type: application/json\r\n"
		               'Content-Length: 13\r\n\r\n{"text":"zz"}').encode())
		    if wait:
		        s.recv(100)
		    s.close()
		began = time.monotonic()
		for _ in range(4):
		    find(True)
		one = (time.monotonic() - began) / 4
		for _ in range(calls):
		    find(False)
		os.kill(int(sys.argv[3]), signal.SIGTERM)
		time.sleep(one)
		os.kill(int(sys.argv[3]), signal.SIGTERM)
		began = time.monotonic()
		while os.path.exists(f"/proc/{sys.argv[3]}") and "Z (" not in open(f"/proc/{sys.argv[3]}/status").read():
		    time.sleep(one / 10)
		took = time.monotonic() - began
		print(f"one call took {one:.3f} s, the end of {calls} of them {took:.3f} s")
		assert took < calls * one / 4
	END
	wait "$server"
}

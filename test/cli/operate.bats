#!/usr/bin/env bats
# Operating a server: units of systemd, sockets that are passed, log lines, reload, metrics, expired leases.

load common
load serving

# --- systemd ---------------------------------------------------------------------------------------

# units: the files as installed for /usr, in the folder units
units() {
	mkdir units
	sed 's,@bindir@,/usr/bin,' "$PAWL_SOURCE/dist/pawl.service.in" >units/pawl.service
	cp "$PAWL_SOURCE/dist/pawl.socket" units
	not grep -q @ units/pawl.socket
}

@test "systemd: the units are valid, and the service is confined" {
	needs systemd-analyze
	units
	systemd-analyze verify --man=no units/pawl.service units/pawl.socket 2>&1 | grep -v 'is not executable' >faults || true
	same "$(cat faults)" ""
	systemd-analyze security --offline=true --no-pager units/pawl.service >report
	level=$(sed -n 's/.*exposure level for pawl.service: \([0-9.]*\).*/\1/p' report)
	echo "exposure $level"
	awk -v level="$level" 'BEGIN { exit !(level != "" && level <= 1.5) }'
}

# allowed_calls: the system calls of the unit's filter
allowed_calls() {
	systemd-analyze syscall-filter --no-pager | awk '
		/^@/ { set = $1; next }
		/^ +[@a-z_0-9]/ { members[set] = members[set] " " $1 }
		function expand(name, into, list, n, i) {
			n = split(members[name], list, " ")
			for (i = 1; i <= n; i++)
				if (list[i] ~ /^@/) expand(list[i], into); else into[list[i]] = 1
		}
		END {
			expand("@system-service", yes); expand("@default", yes)
			expand("@privileged", no); expand("@resources", no); expand("@chown", more)
			for (name in yes) if (!(name in no) || name in more) print name
		}' | sort
}

@test "systemd: the server makes no system call that its unit forbids" {
	needs systemd-analyze
	needs strace
	strace -o /dev/null true 2>/dev/null || skip "needs strace, and the right to use it"
	not grep -q __asan_init "$PAWL" || skip "sanitizers make system calls of their own"
	same "$(sed -n 's/^SystemCallFilter=//p' "$PAWL_SOURCE/dist/pawl.service.in" | tr '\n' ' ')" \
		"@system-service ~@privileged @resources @chown "
	mkdir ../new && cd ../new
	strace -f -qq -o ../trace.init "$PAWL" init -q
	strace -f -qq -A -o ../trace.init "$PAWL" init -q # as at each start of the service
	strace -f -qq -o trace "$PAWL" serve --listen "unix:$PWD/s" 2>serve.log 3>&- &
	tracer=$!
	soon test -S s
	soon grep -q '^pawl: open' serve.log
	server=$(sed -n '1s/ .*//p' trace)
	url=http://localhost token='' api 200 create '{"title":"One"}' --unix-socket s
	url=http://localhost token='' api 200 next '{"claim":true}' --unix-socket s
	http 200 --unix-socket s http://localhost/metrics
	kill -HUP "$server"
	soon grep -q reloaded serve.log
	kill "$server"
	wait "$tracer"
	sed -n 's/^[0-9]* *\([a-z_0-9]*\)(.*/\1/p' trace ../trace.init | sort -u | grep -vx 'execve\|exit_group' >made
	allowed_calls >allowed
	[ "$(wc -l <allowed)" -gt 200 ]
	grep -qx 'accept4' made
	same "$(comm -23 made allowed)" ""
}

# activated: starts the server when the first connection comes, on a port of its own; $url
activated() {
	local port
	port=$(python3 -c 'import socket; s = socket.create_server(("127.0.0.1", 0)); print(s.getsockname()[1])')
	systemd-socket-activate -l "127.0.0.1:$port" -E HOME -E XDG_STATE_HOME -E PAWL_MODULE_DIR -E LC_ALL -E ASAN_OPTIONS \
		-E LSAN_OPTIONS "$PAWL" serve 2>"$BATS_TEST_TMPDIR/serve.log" 3>&- &
	server=$!
	url=http://127.0.0.1:$port
	soon grep -q "Listening on" "$BATS_TEST_TMPDIR/serve.log"
}

@test "systemd: the first connection starts the server, on the socket that it gets" {
	needs systemd-socket-activate
	activated
	not grep -q "pawl: open" "$BATS_TEST_TMPDIR/serve.log"
	token='' http 200 "$url/readyz"
	grep -q "pawl: open $url" "$BATS_TEST_TMPDIR/serve.log"
	# shellcheck disable=SC2034 # for api
	token=$(cat "$(state)/first-token")
	api 200 create '{"title":"One"}'
	ask 0 show t1
	kill "$server"
	wait "$server"
}

# inherit ADDRESS ARG...: becomes `serve` with a listening socket of that address as descriptor 3
inherit() {
	exec python3 - "$PAWL" "$@" <<-'END'
		import os, socket, sys
		program, address, *args = sys.argv[1:]
		family = socket.AF_INET6 if ":" in address else socket.AF_INET
		kind = socket.SOCK_DGRAM if address == "0.0.0.0u" else socket.SOCK_STREAM
		s = socket.socket(family, kind)
		s.bind((address.rstrip("u"), 0))
		if kind == socket.SOCK_STREAM and address != "127.0.0.2":
		    s.listen()
		os.dup2(s.fileno(), 3)
		os.set_inheritable(3, True)
		os.environ.update(LISTEN_FDS="1", LISTEN_PID=str(os.getpid()))
		os.execv(program, [program, "serve", *args])
	END
}

@test "systemd: a socket that others can reach needs TLS or a proxy, whoever made it" {
	export -f inherit
	refused() {
		local code=$1
		shift
		status=0
		timeout 30 bash -c 'inherit "$@"' inherit "$@" >refusal 2>&1 </dev/null || status=$?
		cat refusal
		same "$status" "$code"
	}
	refused 2 0.0.0.0
	grep -q -- --tls-cert refusal
	refused 2 ::
	refused 2 0.0.0.0 --auth none
	refused 30 0.0.0.0u
	refused 30 127.0.0.2
	grep -q 'does not listen' refusal
	inherit 0.0.0.0 --behind-proxy 2>serve.log &
	server=$!
	soon grep -q '^pawl: open http://0.0.0.0:' serve.log
}

@test "systemd: READY, RELOADING and STOPPING reach the service manager" {
	cat >manager.py <<-'END'
		import os, signal, socket, sys
		note = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
		note.bind("\0" + sys.argv[2])
		note.settimeout(60)
		os.environ["NOTIFY_SOCKET"] = "@" + sys.argv[2]
		pid = os.spawnv(os.P_NOWAIT, sys.argv[1], [sys.argv[1], "serve", "--listen", "127.0.0.1:0"])
		said = lambda: note.recv(200).decode().split("\n")
		print(*said())
		os.kill(pid, signal.SIGHUP)
		first, when = said()
		print(first, when.split("=")[0], int(when.split("=")[1]) > 0)
		print(*said())
		os.kill(pid, signal.SIGTERM)
		print(*said(), os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
	END
	same "$(python3 manager.py "$PAWL" "pawl-$$-$RANDOM" 2>manager.log)" "READY=1
RELOADING=1 MONOTONIC_USEC True
READY=1
STOPPING=1 0"
}

# --- log and reload --------------------------------------------------------------------------------

@test "log: each line is logfmt, or JSON, whatever the caller sends" {
	for form in logfmt json; do
		serve --log "$form"
		api 200 list
		token='' http 401 "$url/x%22%0a%5c\"y" --path-as-is -g
		printf 'GET /%b HTTP/1.1\r\nHost: localhost\r\n\r\n' '\xff\xfe"' | timeout 10 curl -s telnet://"${url#http://}" >/dev/null || true
		kill -HUP "$server"
		soon grep -q reloaded "$BATS_TEST_TMPDIR/serve.log"
		kill "$server"
		wait "$server"
		grep -v '^pawl: open' "$BATS_TEST_TMPDIR/serve.log" >log
		iconv -f UTF-8 -t UTF-8 log >/dev/null
		if [ "$form" = json ]; then
			same "$(jq -c 'select((.time and ((.from and .status) or (.level and .message))) | not)' log)" ""
			same "$(jq -r 'select(.path == "/v1/list") | .status' log)" 200
			same "$(jq -r 'select(.level) | .message' log | tail -1)" "ending: answering the calls that are under way"
		else
			same "$(grep -vE '^([a-z]+=("([^"\\]|\\.)*"|[0-9]+) ?)+$' log)" ""
			grep -q 'path="/v1/list" status=200 ' log
		fi
	done
}

@test "SIGHUP: new settings, limits and tokens count; bad ones do not" {
	serve
	api 200 create '{"title":"One"}'
	api 200 claim '{"id":"t1"}'
	is '.lock.ttl == 900'
	api 200 release "{\"id\":\"t1\",\"token\":\"$(get .lock.token)\"}"
	pawl config set lease 77s
	pawl config set serve.max_body 2000
	pawl config set serve.max_streams 0
	kill -HUP "$server"
	soon grep -q 'message="reloaded' "$BATS_TEST_TMPDIR/serve.log"
	api 200 claim '{"id":"t1"}'
	is '.lock.ttl == 77'
	head -c 3000 /dev/zero | tr '\0' a >big
	http 413 -H 'Content-Type: application/json' --data-binary @big "$url/v1/create"
	http 429 "$url/v1/events"
	cp .pawl/config config.good
	echo 'lease = soon' >>.pawl/config
	kill -HUP "$server"
	soon grep -q 'old settings stay' "$BATS_TEST_TMPDIR/serve.log"
	api 200 list
	http 413 -H 'Content-Type: application/json' --data-binary @big "$url/v1/create"
	cp config.good .pawl/config
	cp "$(state)/tokens" tokens.good
	echo '{' >"$(state)/tokens"
	kill -HUP "$server"
	soon grep -q 'cannot read the tokens' "$BATS_TEST_TMPDIR/serve.log"
	api 503 list
	cp tokens.good "$(state)/tokens"
	api 200 list
}

# --- expired leases --------------------------------------------------------------------------------

metric() {
	http 200 "$url/metrics"
	sed -n "s/^$1 //p" <<<"$output"
}

abandoned_is() {
	same "$(metric 'pawl_abandoned_total{queue="default"}' | tail -1)" "$1"
}

@test "a lease that expires is in the stream and in the metrics, although nobody calls" {
	short_leases
	serve
	pawl create One
	pawl create Two
	stream
	soon grep -q '^event: snapshot' stream
	api 200 claim '{"id":"t1","ttl":1}'
	soon grep -q '"event":"expired".*"t1"' stream
	api 200 claim '{"id":"t2","ttl":1}' # taken while somebody follows, and by another process
	soon grep -q '"event":"expired".*"t2"' stream
	pawl claim t2 --ttl 1s --agent other
	soon grep -q '"event":"expired".*"agent":"other"' stream
	grep '"event":"expired"' stream | sed 's/^data: //' | jq -es 'all(.[]; .task.lock.live == false and (.event.cursor | not))' >/dev/null
	last=$(sed -n 's/^id: //p' stream | tail -1)
	same "$(grep -c '"event":"expired"' stream)" 3
	kill "$follower"
	soon abandoned_is 3
	stream -H "Last-Event-ID: $last" # what expired after the last event of the log
	soon grep -q '"event":"expired".*"agent":"other"' stream
	not grep -q snapshot stream
	kill "$follower"
}

# --- metrics ---------------------------------------------------------------------------------------

@test "metrics: each has one help, one type and one group, and no line twice" {
	serve
	pawl create One
	pawl init -q --queue 'a"b\c' || pawl init -q --queue second
	api 200 next '{"claim":true}'
	http 200 -H 'Content-Type: application/json' -d '{}' "$url/v1/list?queue=default"
	http 200 "$url/metrics"
	printf '%s\n' "$output" >metrics
	python3 - metrics <<-'END'
		import re, sys
		kinds, helps, seen, group, lines = {}, set(), set(), None, set()
		for line in open(sys.argv[1], encoding="utf-8").read().splitlines():
		    if line.startswith("# "):
		        _, what, name, rest = line.split(" ", 3)
		        assert (name in helps) == (what == "TYPE"), line
		        helps.add(name)
		        if what == "TYPE":
		            kinds[name] = rest
		        continue
		    m = re.fullmatch(r'([a-z_]+)(\{([a-z]+="([^"\\]|\\.)*",?)*\})? (\S+)', line)
		    assert m, line
		    float(m[5])
		    assert (m[1], m[2]) not in lines, line
		    lines.add((m[1], m[2]))
		    name = m[1]
		    for end in "_bucket", "_sum", "_count":
		        if name.endswith(end) and kinds.get(name[:-len(end)]) == "histogram":
		            name = name[:-len(end)]
		    assert name in kinds, line
		    assert name == group or name not in seen, "in two groups: " + line
		    assert kinds[name] != "counter" or name.endswith("_total"), line
		    seen.add(name)
		    group = name
	END
	for name in pawl_queue_up pawl_tasks pawl_locks pawl_oldest_ready_seconds pawl_calls_total pawl_call_seconds_count \
		pawl_commit_calls_sum pawl_commit_seconds_sum pawl_abandoned_total pawl_lost_lock_total pawl_waiters pawl_streams \
		pawl_http_requests_total pawl_auth_failures_total pawl_log_dropped_total pawl_tls_handshakes_total pawl_tls_resumed_total process_cpu_seconds_total process_resident_memory_bytes \
		process_open_fds process_start_time_seconds; do
		grep -q "^${name}[ {]" metrics || {
			echo "no $name"
			return 1
		}
	done
	grep -q '^pawl_tasks{queue="default",status="In Progress"} 1$' metrics
}

# asked FILE...: the metrics that the expressions of alert rules or a dashboard name, each with its labels: NAME LABEL...
asked() {
	python3 - "$@" <<-'END'
		import json, re, sys
		exprs = []
		for name in sys.argv[1:]:
		    text = open(name, encoding="utf-8").read()
		    if name.endswith(".json"):
		        board = json.loads(text)
		        places = [p["gridPos"] for p in board["panels"]]
		        assert len({(g["x"], g["y"]) for g in places}) == len(places)
		        assert len({p["id"] for p in board["panels"]}) == len(places)
		        exprs += [t["expr"] for p in board["panels"] for t in p["targets"]]
		    else:
		        exprs += re.findall(r"^ +expr: (.*)$", text, re.M)
		        assert len(exprs) == text.count("- alert: ") > 5
		for expr in exprs:
		    assert expr.count("(") == expr.count(")") and expr.count("{") == expr.count("}"), expr
		    by = [l for group in re.findall(r"\bby \(([^)]*)\)", expr) for l in group.split(", ") if l != "le"]
		    for name, labels in re.findall(r"\b((?:pawl|process)_[a-z_]+)(\{[^}]*\})?", expr):
		        wanted = set(re.findall(r'([a-z]+)(?:=~|!~|!=|=)"', labels)) - {"job"} | set(by)
		        print(name, *sorted(wanted))
	END
}

@test "alert rules and the dashboard name metrics and labels that exist" {
	serve
	pawl create One
	api 200 next '{"claim":true}'
	api 409 claim '{"id":"t1"}'
	http 200 "$url/metrics"
	printf '%s\n' "$output" >metrics
	asked "$PAWL_SOURCE"/doc/example/alerts.yml "$PAWL_SOURCE"/doc/example/grafana.json | sort -u >wanted
	[ "$(wc -l <wanted)" -gt 15 ]
	while read -r name labels; do
		for label in '' $labels; do
			grep -q "^${name}[ {].*$label" metrics || {
				echo "no $name with $label"
				return 1
			}
		done
	done <wanted
	# each metric of pawl is on the dashboard
	asked "$PAWL_SOURCE"/doc/example/grafana.json | cut -d' ' -f1 | sed -E 's/_(bucket|sum|count)$//' | sort -u >shown
	same "$(sed -n 's/^# TYPE \(pawl_[a-z_]*\) .*/\1/p' metrics | sort | comm -23 - shown)" ""
	# each status, code and operation that they name
	for word in $(grep -oh 'status=~\?\\\?"[^"]*' "$PAWL_SOURCE"/doc/example/{alerts.yml,grafana.json} | sed 's/.*"//; s/\\$//; s/ /_/g; s/|/ /g'); do
		grep -q "status=\"${word//_/ }\"" metrics || {
			echo "no status $word"
			return 1
		}
	done
}

@test "changes of many clients become one commit" {
	needs_sqlite
	serve
	# holds the gate of the store while twenty clients send a change each, and counts the commits
	cat >clients.py <<-'END'
		import fcntl, http.client, json, sys, threading
		address, token, gate = sys.argv[1:]
		def call(c, name, args):
		    c.request("POST", "/v1/" + name, json.dumps(args), {"Authorization": "Bearer " + token, "Content-Type": "application/json"})
		def get(c, path):
		    c.request("GET", path, headers={"Authorization": "Bearer " + token})
		    return c.getresponse().read().decode()
		def commits(c):
		    lines = dict(l.rsplit(" ", 1) for l in get(c, "/metrics").splitlines() if l[0] != "#")
		    return int(lines["pawl_commit_calls_count"]), int(lines["pawl_commit_calls_sum"])
		clients = [http.client.HTTPConnection(address) for _ in range(20)]
		control = http.client.HTTPConnection(address)
		for c in clients:
		    get(c, "/livez")
		before = commits(control)
		held = open(gate, "r+b")
		fcntl.flock(held, fcntl.LOCK_EX)
		for i, c in enumerate(clients):
		    call(c, "create", {"title": "task %d" % i, "request_id": "r%d" % i})
		for _ in range(3): # the server has one loop: what was sent before is read by now
		    get(control, "/livez")
		fcntl.flock(held, fcntl.LOCK_UN)
		answers = [json.loads(c.getresponse().read()) for c in clients]
		after = commits(control)
		print(len({a["task"]["id"] for a in answers}), after[1] - before[1], after[0] - before[0] <= 3)
	END
	same "$(python3 clients.py "${url#http://}" "$token" .pawl/queue.db-gate)" "20 20 True"
	ask 0 list --limit 0
	is '[.tasks[].title] | length == 20 and (unique | length == 20)'
}

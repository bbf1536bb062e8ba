#!/usr/bin/env bats
# Operating a server: units of systemd, sockets that are passed, log lines, reload.

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
	strace -o /dev/null true 2>/dev/null || skip "strace cannot trace here"
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

# inherit ADDRESS ARG...: `serve` with a listening socket of that address as descriptor 3
inherit() {
	python3 - "$PAWL" "$@" <<-'END'
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
	soon grep -q 'old tokens stay' "$BATS_TEST_TMPDIR/serve.log"
	api 200 list
	cp tokens.good "$(state)/tokens"
	api 200 list
}

#!/usr/bin/env bats
# A queue behind a server: tokens, refusals, and a network that cuts, delays and repeats. PAWL_TEST_ROUNDS is the number of
# rounds for each fault of the network.

load common

rounds=${PAWL_TEST_ROUNDS:-4}

setup() {
	fresh
	needs setpriv
	served
	server=$served_url
	admin=$PAWL_SERVER_TOKEN
	unset PAWL_SERVER_TOKEN
}

teardown() {
	local pid
	for pid in ${served_pid-} ${other_pid-}; do
		kill -9 "$pid" 2>/dev/null || true
	done
}

# through FAULT: $PAWL_STORE is a proxy that breaks every second request
through() {
	setpriv --pdeathsig KILL "$PAWL_SOURCE/test/kit/cut-proxy" "${server#http://}" "$1" \
		>"$BATS_TEST_TMPDIR/proxy" 3>&- &
	other_pid=$!
	disown
	soon test -s "$BATS_TEST_TMPDIR/proxy"
	export PAWL_STORE
	PAWL_STORE=http://$(cat "$BATS_TEST_TMPDIR/proxy")
}

# token_for ROLE ARG...
token_for() {
	beside_server token create "t-$1-$RANDOM" --role "$@" -q
}

events() {
	beside_server log --limit 0 --json | jq -r '.events[].event'
}

# work N: creates, claims and completes N tasks
work() {
	local i
	for ((i = 0; i < $1; i++)); do
		ask 0 create "task $i"
		# the client cannot know that a proxy repeats its requests
		is --arg fault "$fault" '$fault == "twice" or (.repeated | not)'
		ask 0 next --claim
		is --arg fault "$fault" '$fault == "twice" or (.repeated | not)'
		ask 0 done "$(get .task.id)"
		is --arg fault "$fault" '$fault == "twice" or (.repeated | not)'
	done
}

# each_once N: N tasks, each created, claimed and completed exactly once
each_once() {
	local name
	for name in created claimed done; do
		same "$name $(events | grep -cx "$name")" "$name $1"
	done
	same "$(beside_server list --all --limit 0 --json | jq -c '[.tasks[] | select(.status == "Done" and .fence == 1 and .attempts == 1)] | length')" "$1"
	same "$(find "$XDG_STATE_HOME/pawl" -name '*pending*' | wc -l)" 0
}

# network FAULT: nothing is lost, nothing is done twice
network() {
	fault=$1
	export PAWL_SERVER_TOKEN=$admin
	through "$fault"
	work "$rounds"
	each_once "$rounds"
}

@test "network: a connection that is closed at once" {
	network refuse
}

@test "network: a cut in the middle of the request" {
	network half
}

@test "network: a cut before the answer" {
	network unanswered
}

@test "network: a cut in the head of the answer" {
	network head
}

@test "network: a cut before the last byte of the answer" {
	network body
}

@test "network: a request that arrives after its repetition" {
	network late
	# the proxy passes the last request on 0.3 s later
	sleep 0.8
	each_once "$rounds"
}

@test "network: a proxy that sends a request twice" {
	network twice
}

@test "network: answers that come late" {
	network slow
}

@test "network: a proxy that answers 502" {
	network 502
}

@test "network: batches, plans and comments are made once" {
	export PAWL_SERVER_TOKEN=$admin
	through unanswered
	ask 0 batch add one two three
	call 0 comment t1 "a remark"
	call 0 update t2 --title other
	call 0 depend t3 t1
	call 0 cancel t2 --reason "not needed"
	same "$(events | sort | uniq -c | tr -s ' \n' ' ')" " 1 canceled 1 comment 3 created 1 depends 1 updated "
}

@test "network: a server that does not come back: API_ERROR, and whether the change was made" {
	export PAWL_SERVER_TOKEN=$admin PAWL_STORE=$server
	kill -STOP "$served_pid"
	ask 30 create x --timeout 5s
	is '.error.applied == "unknown"'
	kill -9 "$served_pid"
	soon not kill -0 "$served_pid"
	ask 30 create x --timeout 0.5s
	is '.error.applied == "no" and (.error.message | contains("'"$server"'"))'
	call 30 list --timeout 0
	complains "pawl serve"
}

@test "network: kill -9 of the server under load: each task is done exactly once" {
	local i pids=() n=$((rounds * 5))
	export PAWL_SERVER_TOKEN=$admin PAWL_STORE=$server
	for ((i = 0; i < n; i++)); do
		beside_server create "task $i" -q >/dev/null
	done
	for i in 1 2 3; do
		while "$PAWL" next --claim --json -a "w$i" --timeout 20s >"got.$i" && id=$(jq -r .task.id "got.$i") &&
			"$PAWL" done "$id" -q -a "w$i" --timeout 20s >/dev/null; do
			:
		done 2>"errors.$i" 3>&- &
		pids+=($!)
	done
	for ((i = 0; i < rounds; i++)); do
		sleep 0.2
		kill -9 "$served_pid"
		soon not kill -0 "$served_pid"
		start_server "${server#http://}"
	done
	wait "${pids[@]}" || true
	cat errors.*
	for i in 1 2 3; do
		output=$(cat "got.$i")
		is '.code == "NO_TASKS"'
	done
	each_once "$n"
}

@test "token: missing, wrong, from a file; it is never an argument" {
	export PAWL_STORE=$server
	ask 40 list
	is '.error.fault == "unauthorized" and (.error.message | contains("PAWL_SERVER_TOKEN"))'
	PAWL_SERVER_TOKEN=pawl_nonsense ask 40 list
	is '.error.fault == "unauthorized" and (.error.message | contains("refuses the token"))'
	PAWL_SERVER_TOKEN=$'a b' call 40 list
	complains "PAWL_SERVER_TOKEN is not a token"
	PAWL_SERVER_TOKEN_FILE=$PWD/missing call 40 list
	complains "PAWL_SERVER_TOKEN_FILE" missing
	echo "$admin" >token
	PAWL_SERVER_TOKEN_FILE=$PWD/token call 0 list
	call 2 list --server-token x
}

@test "roles: a refusal names the role and changes nothing" {
	local reader agent
	reader=$(token_for reader --agent '*') agent=$(token_for agent --agent '*')
	export PAWL_STORE=$server
	PAWL_SERVER_TOKEN=$reader call 0 list
	PAWL_SERVER_TOKEN=$reader ask 40 create x
	is '.error.fault == "forbidden" and (.error.message | contains("agent"))'
	PAWL_SERVER_TOKEN=$agent call 0 create x
	PAWL_SERVER_TOKEN=$agent ask 40 remove t1
	is '.error.fault == "forbidden" and (.error.message | contains("admin"))'
	PAWL_SERVER_TOKEN=$agent call 40 backup b.pawl
	complains admin
	PAWL_SERVER_TOKEN=$agent call 40 clear --yes
	PAWL_SERVER_TOKEN=$agent call 0 export --output -
	same "$(events)" created
}

@test "the name of the agent is bound to the token" {
	export PAWL_STORE=$server PAWL_SERVER_TOKEN
	PAWL_SERVER_TOKEN=$(token_for agent --agent 'ci-*')
	ask 40 create x -a boss
	is '.error.fault == "forbidden" and (.error.hint | contains("ci-*"))'
	call 0 create x -a ci-7
}

@test "login: saves the token for one origin, in a private file" {
	ask 40 login "$server" <<<pawl_nonsense
	is '.error.fault == "unauthorized"'
	not test -e "$XDG_STATE_HOME/pawl/login"
	call 2 login "$server" </dev/null
	call 2 login ftp://example.com <<<x
	call 44 login "$server" --forget
	lines 44 login "$server" --forget
	call 0 login "${server/127.0.0.1/127.0.0.1}/" <<<"$admin"
	says "saved" admin
	same "$(stat -c %a "$XDG_STATE_HOME"/pawl/login/*)" 600
	call 0 list --store "$server"
	# another name of the same machine is another origin
	call 40 list --store "${server/127.0.0.1/localhost}"
	complains PAWL_SERVER_TOKEN
	lines 0 login "$server" <<<"$admin"
	chmod 644 "$XDG_STATE_HOME"/pawl/login/*
	call 40 list --store "$server"
	complains "other users can read"
	rm "$XDG_STATE_HOME"/pawl/login/*
	ask 0 login "$server" <<<"$admin"
	is '.role == "admin" and (tostring | contains("pawl_") | not)'
	call 0 login "$server" --forget
	call 40 list --store "$server"
}

@test "a redirect is not followed, and the token goes nowhere else" {
	export PAWL_SERVER_TOKEN=$admin
	python3 -c '
import http.server, sys
class H(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.send_response(307)
        self.send_header("Location", sys.argv[1] + self.path)
        self.send_header("Content-Length", "0")
        self.end_headers()
    def log_message(self, *a): pass
s = http.server.HTTPServer(("127.0.0.1", 0), H)
print(s.server_port, flush=True)
s.serve_forever()' "$server" >port 3>&- &
	other_pid=$!
	disown
	soon test -s port
	call 40 create x --store "http://127.0.0.1:$(cat port)"
	complains "is not a server"
	same "$(events)" ""
}

@test "the config of a clone that names a server needs trust" {
	export PAWL_SERVER_TOKEN=$admin
	mkdir -p clone/.pawl
	printf 'store = %s\n' "$server" >clone/.pawl/config
	call 40 -C clone list
	complains "pawl trust" "$server"
	call 0 -C clone trust
	call 0 -C clone list
}

@test "doctor: says what is wrong with a server" {
	local reader
	reader=$(token_for reader --agent '*')
	call 40 doctor --store "$server"
	says PAWL_SERVER_TOKEN
	PAWL_SERVER_TOKEN=$reader call 0 doctor --store "$server"
	says "role reader"
	PAWL_SERVER_TOKEN=$reader call 40 doctor --store "${server/http:/https:}" --timeout 0.2s
	says "no answer"
	call 40 doctor --store http://127.0.0.1:1 --timeout 0.2s
	says "no answer from http://127.0.0.1:1"
	call 40 doctor --store http://example.com:x
	PAWL_SERVER_TOKEN=$admin call 40 doctor --store "$server?queue=nowhere"
}

@test "unix: its owner needs no token" {
	(cd "$served_home" && exec setpriv --pdeathsig KILL "$PAWL" serve --listen "unix:$BATS_TEST_TMPDIR/socket" --log none) 3>&- 2>/dev/null &
	other_pid=$!
	disown
	soon test -S "$BATS_TEST_TMPDIR/socket"
	call 0 create x --store "unix:$BATS_TEST_TMPDIR/socket" -a "$(beside_server whoami --json | jq -r .agent)"
	call 0 list --store "unix:$BATS_TEST_TMPDIR/socket"
	call 30 list --store unix:/nowhere/socket --timeout 0
}

@test "https: the certificate must be trusted" {
	needs openssl
	export PAWL_SERVER_TOKEN=$admin
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout key.pem -out cert.pem -days 2 -subj /CN=localhost \
		-addext subjectAltName=DNS:localhost,IP:127.0.0.1 2>/dev/null
	(
		dir=$PWD
		cd "$served_home" && PAWL_SERVER_STATE=$served_home/state exec setpriv --pdeathsig KILL "$PAWL" serve --listen 127.0.0.1:0 \
			--log none --tls-cert "$dir/cert.pem" --tls-key "$dir/key.pem" 2>"$dir/tls.log"
	) 3>&- &
	other_pid=$!
	disown
	soon grep -q '^pawl: open ' tls.log
	secure=$(sed -n 's/^pawl: open \([^ ]*\).*/\1/p' tls.log)
	ask 30 create x --store "$secure"
	is '.error.applied == "no" and (.error.hint | contains("PAWL_SERVER_CA"))'
	PAWL_SERVER_CA=$PWD/cert.pem call 0 create x --store "$secure"
	PAWL_SERVER_CA=$PWD/missing.pem call 30 list --store "$secure" --timeout 0
	call 40 doctor --store "$secure"
	says certificate PAWL_SERVER_CA
	same "$(events)" created
}

@test "a server as a store: no server in front of it, no tokens, no repairs" {
	export PAWL_SERVER_TOKEN=$admin PAWL_STORE=$server
	call 40 serve
	complains "server already"
	call 40 token list
	complains "server's machine"
	call 40 list --store "$server?queue=nowhere"
	call 40 list --store http://
	call 40 list --store "${server/127/user:secret@127}"
}

@test "too many calls: the client waits as long as the server says" {
	PAWL_SERVE_BURST=2 PAWL_SERVE_CALLS_PER_SECOND=1 export PAWL_STORE=$server PAWL_SERVER_TOKEN=$admin
	kill -9 "$served_pid"
	soon not kill -0 "$served_pid"
	(cd "$served_home" && unset PAWL_STORE && PAWL_SERVER_STATE=$served_home/state PAWL_SERVE_BURST=2 PAWL_SERVE_CALLS_PER_SECOND=2 \
		exec setpriv --pdeathsig KILL "$PAWL" serve --listen "${server#http://}" --log none) 3>&- 2>/dev/null &
	other_pid=$!
	disown
	soon curl -fs "$server/readyz"
	for i in 1 2 3 4; do
		call 0 create "task $i"
	done
	same "$(events | wc -l)" 4
}

@test "migrate: to a server and back, nothing lost" {
	export PAWL_SERVER_TOKEN=$admin
	"$PAWL" init -q
	new one && new two --depends t1
	pawl comment t1 "a remark"
	pawl claim t1
	"$PAWL" export --output - >before.json
	call 0 migrate sqlite:.pawl/queue.db "$server"
	same "$(beside_server list --all --json | jq -c '[.tasks[].id]')" '["t1","t2"]'
	call 0 heartbeat t1 --store "$server"
	call 0 migrate "$server" "sqlite:$PWD/back.db"
	"$PAWL" export --output - --store "sqlite:$PWD/back.db" >after.json
	same "$(jq -c '[.tasks[] | del(.lock, .updated_at)]' before.json)" "$(jq -c '[.tasks[] | del(.lock, .updated_at)]' after.json)"
}

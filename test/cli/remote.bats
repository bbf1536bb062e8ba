#!/usr/bin/env bats
# A queue behind a server: tokens, roles, certificates, refusals, and moving a queue. network.bats has the faults of the
# network.

load common
load remote

# token_for ROLE ARG...
token_for() {
	beside_server token create "t-$1-$RANDOM" --role "$@" -q
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

@test "login: without TLS to another machine only with --insecure" {
	call 40 login http://queue.example.com:7295 <<<"$admin"
	complains "has no TLS" "--insecure"
	ask 40 login http://127.0.0.1.example.com:7295 <<<"$admin"
	is '.error.fault == "unauthorized"'
	PAWL_SERVER_TOKEN=$admin call 40 list --store http://192.0.2.1:7295
	complains "has no TLS"
	call 30 list --store http://127.0.0.1:1 # nothing to send
	call 0 login "$server" --insecure <<<"$admin"
	says "without TLS"
	same "$(tail -n 1 "$XDG_STATE_HOME"/pawl/login/*)" insecure
	call 0 list --store "$server"
	ask 0 login "$server" --insecure <<<"$admin"
	is '.insecure == true'
	echo more >>"$(echo "$XDG_STATE_HOME"/pawl/login/*)"
	call 40 list --store "$server"
	complains "is damaged"
	rm "$XDG_STATE_HOME"/pawl/login/*
	ask 0 login "$server" <<<"$admin"
	is 'has("insecure") | not'
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
	ends_with_test $!
	disown
	soon test -s port
	call 40 create x --store "http://127.0.0.1:$(cat port)"
	complains "did not prove"
	export PAWL_SERVER_INSECURE=1
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
	call 0 -C clone trust --sha256 "$(config_hash clone)"
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
	ends_with_test $!
	disown
	soon test -S "$BATS_TEST_TMPDIR/socket"
	call 0 create x --store "unix:$BATS_TEST_TMPDIR/socket" -a "$(beside_server whoami --json | jq -r .agent)"
	call 0 list --store "unix:$BATS_TEST_TMPDIR/socket"
	call 30 list --store unix:/nowhere/socket --timeout 0
}

# serve_tls: the queue of the server, at $secure with the certificate cert.pem
serve_tls() {
	export PAWL_SERVER_TOKEN=$admin
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout key.pem -out cert.pem -days 2 -subj /CN=localhost \
		-addext subjectAltName=DNS:localhost,IP:127.0.0.1 2>/dev/null
	(
		dir=$PWD
		cd "$served_home" && PAWL_SERVER_STATE=$served_home/state exec setpriv --pdeathsig KILL "$PAWL" serve --listen 127.0.0.1:0 \
			--log none --tls-cert "$dir/cert.pem" --tls-key "$dir/key.pem" 2>"$dir/tls.log"
	) 3>&- &
	ends_with_test $!
	disown
	soon grep -q '^pawl: open ' tls.log
	secure=$(sed -n 's/^pawl: open \([^ ]*\).*/\1/p' tls.log)
}

@test "https: the certificate must be trusted" {
	needs openssl
	serve_tls
	ask 30 create x --store "$secure"
	is '.error.applied == "no" and (.error.hint | contains("PAWL_SERVER_CA"))'
	PAWL_SERVER_CA=<(cat cert.pem) call 0 create x --store "$secure"
	PAWL_SERVER_CA=$PWD/cert.pem call 0 list --store "$secure"
	PAWL_SERVER_CA=$PWD/missing.pem call 30 list --store "$secure" --timeout 0
	call 40 doctor --store "$secure"
	says certificate PAWL_SERVER_CA
	same "$(events)" created
}

# resumed: how many connections to $secure continued a session
resumed() {
	curl -fs --cacert cert.pem -H "Authorization: Bearer $admin" "$secure/metrics" | awk '$1 == "pawl_tls_resumed_total" { print $2 }'
}

@test "https: a command continues the TLS session of the one before it" {
	needs openssl
	needs curl
	serve_tls
	export PAWL_SERVER_CA=$PWD/cert.pem
	call 0 create x --store "$secure"
	same "$(resumed)" 0
	kept=("$XDG_STATE_HOME"/pawl/tls/*)
	same "${#kept[@]}" 1
	same "$(stat -c %a "${kept[0]}")" 600
	call 0 list --store "$secure"
	call 0 claim t1 --store "$secure"
	same "$(resumed)" 2
	# another certificate to trust: the old proof does not count
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout other.key -out other.pem -days 2 -subj /CN=localhost \
		2>/dev/null
	PAWL_SERVER_CA=$PWD/other.pem call 30 list --store "$secure" --timeout 0
	chmod 644 "${kept[0]}"
	call 0 list --store "$secure"
	same "$(resumed)" 2
	same "$(stat -c %a "${kept[0]}")" 600
	call 0 list --store "$secure"
	same "$(resumed)" 3
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
	ends_with_test $!
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
	call 0 heartbeat t1 --store "sqlite:$PWD/back.db"
	"$PAWL" export --output - --store "sqlite:$PWD/back.db" >after.json
	same "$(jq -c '[.tasks[] | del(.lock, .updated_at)]' before.json)" "$(jq -c '[.tasks[] | del(.lock, .updated_at)]' after.json)"
}

@test "a saved token goes to the address for which it was saved" {
	local socket=unix:$BATS_TEST_TMPDIR/socket agent token
	(cd "$served_home" && exec setpriv --pdeathsig KILL "$PAWL" serve --listen "$socket" --log none) 3>&- 2>/dev/null &
	ends_with_test $!
	disown
	soon test -S "${socket#unix:}"
	agent=$(beside_server whoami --json | jq -r .agent)
	export PAWL_AGENT=$agent PAWL_SERVER_TOKEN=$admin
	pawl create x --store "$server"
	pawl claim t1 --store "$server"
	call 0 heartbeat t1 --store "$server/" # another spelling of the same origin
	PAWL_SERVER_TOKEN="" call 21 heartbeat t1 --store "$socket"
	token=$(sed -n 's/^token=//p' "$XDG_STATE_HOME"/pawl/*.token)
	PAWL_SERVER_TOKEN="" call 0 heartbeat t1 --store "$socket" --token "$token"
	PAWL_SERVER_TOKEN="" call 20 claim t1 --resume 1 --store "$socket"
	call 0 done t1 --store "$server"
}

# store_call DO QUEUE: a call of a remote queue without a body
store_call() {
	curl -s -X POST -H "Authorization: Bearer $admin" -H 'Content-Type: application/vnd.pawl.call' --data-binary '' \
		"$server/v1/store?do=$1&queue=$2" | tr -d '\0'
}

@test "torture and loadtest: through a server, in a queue of their own" {
	export PAWL_STORE=$server PAWL_SERVER_TOKEN=$admin TMPDIR=$BATS_TEST_TMPDIR
	ask 0 torture --only drain --agents 3 --tasks 20
	is '.torture | .violations == 0 and .done == 20 and .removed'
	ask 0 torture --seconds 0.3 --agents 3 --tasks 5 --kills 1 --stops 0
	is '.torture | .violations == 0 and .kills == 1 and .skews == 0 and .removed'
	ask 0 loadtest --processes 3 --operations 6
	is '.loadtest.succeeded == 18'
	call 2 torture --lost 3
	complains --lost "own store"
	PAWL_SERVER_TOKEN=$(token_for agent --agent '*') ask 40 torture --only drain
	is '.error.fault == "forbidden"'
	same "$(beside_server queues --json | jq -c '[.queues[].name]')" '["default"]'
	# other queues are not for callers
	[[ $(store_call create other) == *absent* ]]
	[[ $(store_call discard default) == *"only queues of"* ]]
	same "$(beside_server queues --json | jq -c '[.queues[].name]')" '["default"]'
	call 0 create x
}

# waiters_are N: calls and streams that wait at the server
waiters_are() {
	curl -s -H "Authorization: Bearer $admin" "$server/metrics" | grep -qx "pawl_waiters $1"
}

again() {
	kill -9 "$served_pid"
	soon not kill -0 "$served_pid"
	rm -f "$BATS_TEST_TMPDIR/served.log"
	start_server "${server#http://}"
}

@test "log --follow and run --wait wait at the server; they reconnect, or poll" {
	export PAWL_STORE=$server PAWL_SERVER_TOKEN=$admin
	call 0 create One
	call 0 create Two --depends t1
	call 0 claim t1
	"$PAWL" log --follow --porcelain >followed 3>&- &
	ends_with_test $!
	soon waiters_are 1
	"$PAWL" run --wait 1m -- touch ran >/dev/null 2>&1 3>&- &
	runner=$!
	ends_with_test "$runner"
	soon waiters_are 2
	call 0 done t1
	wait "$runner"
	[ -e ran ]
	soon grep -q 'event=done task=t2' followed
	again
	soon waiters_are 1
	call 0 create Three
	soon grep -q t3 followed
	set_beside_server config set serve.max_waits 0
	call 0 create Four
	soon grep -q t4 followed
	waiters_are 0
}

@test "a call that a lock of the whole queue keeps out waits at the server" {
	export PAWL_STORE=$server PAWL_SERVER_TOKEN=$admin
	call 0 lock acquire @maintenance --agent boss
	"$PAWL" create One --timeout 1m >/dev/null 2>&1 3>&- &
	runner=$!
	soon waiters_are 1
	call 0 lock release @maintenance --agent boss
	wait "$runner"
	call 0 show t1
}

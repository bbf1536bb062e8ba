#!/usr/bin/env bats
# `pawl sync` as a command: its forms and its codes, against the stand-in for Notion. test/notion/sync.py has the rest.

load common

setup() {
	fresh
	queue
	needs setpriv
	needs python3
	setpriv --pdeathsig KILL python3 -B "$PAWL_SOURCE/test/notion/standin.py" "$BATS_TEST_TMPDIR/notion" 3>&- &
	notion_pid=$!
	disown
	soon test -s "$BATS_TEST_TMPDIR/notion"
	export NOTION_TOKEN NOTION_API_BASE NOTION_RATE=0 NOTION_SETTLE_MS=0
	NOTION_TOKEN=$(jq -r .token "$BATS_TEST_TMPDIR/notion")
	NOTION_API_BASE=$(jq -r .url "$BATS_TEST_TMPDIR/notion")
	board=notion:$(jq -r .database "$BATS_TEST_TMPDIR/notion")
}

teardown() {
	kill -9 "${notion_pid-}" 2>/dev/null || true
}

@test "sync: in each form" {
	"$PAWL" create -q "Fix the parser"
	call 0 sync "$board" --check
	says "t1: gets a page: Fix the parser" "(nothing was changed)"
	ask 0 sync "$board"
	is '.sync.pages_created == 1 and .sync.check == false'
	lines 0 sync "$board"
	call 0 sync "$board" -q
	same "$output" ""
	ask 2 sync "$board" --watch --check
	ask 2 sync trello:x
}

@test "sync: one at a time, and nobody else is kept out" {
	"$PAWL" lock acquire @sync -q --agent other
	ask 20 sync "$board" --timeout 0.1s
	is '.error.message | test("@sync is held by other")'
	call 0 create "continues"
	"$PAWL" lock acquire @write -q --agent al
	"$PAWL" lock release @write -q --agent al
	"$PAWL" lock break @sync -q --reason "it is gone"
	call 0 sync "$board"
	ask 0 lock status @sync
	is '.locked == false'
}

@test "sync: the token is not shown" {
	"$PAWL" create -q one
	for form in "" --json --porcelain; do
		# shellcheck disable=SC2086
		run "$PAWL" sync "$board" $form
		[ "$status" -eq 0 ]
		[[ $output != *"$NOTION_TOKEN"* ]]
	done
	not grep -rqF "$NOTION_TOKEN" "$HOME" "$work"
}

# PAWL_SERVER_CA is for the user's own server: whoever has that certificate must not be able to be Notion, too.
@test "sync: the certificate of a pawl server does not prove Notion" {
	needs openssl
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout key.pem -out cert.pem -days 2 -subj /CN=localhost \
		-addext subjectAltName=DNS:localhost,IP:127.0.0.1 2>/dev/null
	setpriv --pdeathsig KILL python3 -c 'import os, socket, ssl
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain("cert.pem", "key.pem")
server = socket.create_server(("127.0.0.1", 0))
open("port.tmp", "w").write(str(server.getsockname()[1]))
os.rename("port.tmp", "port")
while True:
    try:
        open("heard", "ab").write(context.wrap_socket(server.accept()[0], server_side=True).recv(4096))
    except OSError:
        open("refused", "w").close()' 3>&- &
	kill -9 "$notion_pid"
	notion_pid=$!
	disown
	soon test -s port
	NOTION_API_BASE=https://localhost:$(<port)
	export PAWL_SERVER_CA=$PWD/cert.pem
	call 30 sync "$board" --timeout 2s
	complains certificate
	soon test -e refused
	[ ! -s heard ]
}

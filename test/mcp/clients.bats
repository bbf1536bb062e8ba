#!/usr/bin/env bats
# The official clients, of both eras, each through whole sessions. tools/mcp-clients gets them from
# npm.

load ../cli/common
load ../kit/npm
load ../cli/serving
load agents/scene

setup_file() {
	from_npm
}

setup() {
	needs_npm
	fresh
	queue
}

node() {
	timeout 240 "$FROM_NPM/node" "$PAWL_SOURCE/test/mcp/clients/$1.mjs" "${@:2}"
}

inspect() { # ERA ARGUMENT...
	run --separate-stderr timeout 120 "$FROM_NPM/node" \
		"$FROM_NPM/node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js" \
		--cli "$PAWL" mcp --agent alice --profile "${profile-agent}" --protocol-era "$@"
	printf '%.2000s\n%.2000s\n' "$output" "$stderr"
	[ "$status" -eq 0 ]
}

@test "client 2.x, revision 2026-07-28: a whole life" {
	node life 2026-07-28
}

@test "client 2.x finds the revision by itself" {
	node auto
}

@test "SDK 1.x, revision 2025-11-25: a whole life" {
	node life 2025-11-25
}

@test "client 2.x: small answers, harmless repeats, hints that name tools" {
	node lean 2026-07-28
}

@test "SDK 1.x: small answers, harmless repeats, hints that name tools" {
	node lean 2025-11-25
}

@test "client 2.x: survey, planning, implementation and verification in turn" {
	node turns 2026-07-28
}

@test "SDK 1.x: survey, planning, implementation and verification in turn" {
	node turns 2025-11-25
}

@test "client 2.x: two sessions and sub-agents in one checkout" {
	node sessions 2026-07-28
}

@test "SDK 1.x: two sessions and sub-agents in one checkout" {
	node sessions 2025-11-25
}

@test "20 servers, each with its own client: one winner on one task, each of 200 once" {
	node crowd 20 200
}

# afar: a server for the clients, with a token for any agent
afar() {
	export PAWL_MCP_URL PAWL_MCP_TOKEN PAWL_SERVE_CALLS_PER_SECOND=100000 PAWL_SERVE_BURST=100000 PAWL_SERVE_MAX_STREAMS=64
	serve
	PAWL_MCP_URL=$url/mcp
	PAWL_MCP_TOKEN=$("$PAWL" token create crowd --role agent --agent '*' -q)
}

@test "over HTTP, both eras: a whole life, and a client that finds the revision by itself" {
	pawl init -q --queue other
	pawl init -q --queue third
	afar
	PAWL_MCP_URL="$url/mcp?queue=other" node life 2025-11-25 3>&- &
	other=$!
	PAWL_MCP_URL="$url/mcp?queue=third" node auto 3>&- &
	third=$!
	PAWL_MCP_URL="$url/mcp?queue=default" node life 2026-07-28
	wait "$other"
	wait "$third"
}

@test "over HTTP, 20 clients: one winner on one task, each of 200 once" {
	afar
	node crowd 20 200
}

@test "over HTTP, both eras: kill -9 of the server in the middle of the work" {
	afar
	for version in 2025-11-25 2026-07-28; do
		coproc client { node restart "$version" 2>&1; }
		pid=$client_PID
		read -r line <&"${client[0]}"
		same "$line" claimed
		kill -9 "$server"
		wait "$server" || true
		listen=${url#http://} serve
		echo >&"${client[1]}"
		wait "$pid"
	done
}

@test "Claude Code: its transcript has the answers of today" {
	scene
	node ../agents/replay claude
}

@test "Codex: its transcript has the answers of today" {
	scene
	node ../agents/replay codex
}

# Each call starts the inspector again. "A whole life" has the rest of the older version.
@test "inspector --cli in both eras" {
	for version in legacy modern; do
		inspect $version --method tools/list
		is '.tools | length == 11'
		inspect $version --method tools/call --tool-name create --tool-arg id=$version title="From the inspector"
		is '.isError == false and .structuredContent.task.status == "Ready"'
	done
	inspect modern --method tools/call --tool-name claim --tool-arg id=modern
	is '.structuredContent.lock.fence == 1'
	inspect modern --method tools/call --tool-name done --tool-arg id=modern
	inspect legacy --method resources/read --uri pawl://tasks/modern
	is '.contents[0].text | fromjson | .task.status == "Done"'
	inspect modern --method prompts/get --prompt-name work
	is '.messages | length == 1'
}

@test "inspector --strict: schemas that every client can use" {
	for profile in $(sampled agent pm all); do
		inspect modern --method tools/list --strict
	done
}

@test "the agent in JavaScript of doc/guides/own-agent.md: takes what there is, and hands over what fails" {
	page=$PAWL_SOURCE/doc/guides/own-agent.md
	block() { # FILE: the block that the page saves as FILE
		awk -v note="<!-- file: $1 -->" '$0 == note { found = 1 } /^```/ && found { if (inside) exit; inside = 1; next } inside' "$page" >"$1"
		[ -s "$1" ]
	}
	block agent.mjs
	block work
	chmod +x work
	ln -s "$FROM_NPM/node_modules" node_modules
	ln -s "$PAWL" pawl
	pawl create "Sort the list"
	pawl create "Draw the logo"
	PATH=$PWD:$PATH timeout 60 "$FROM_NPM/node" agent.mjs >said
	grep -qx "working on t1" said
	grep -qx "working on t2" said
	ask 0 list --all --sort id
	is '[.tasks[] | [.status, .last_holder, .summary // .blocker_reason]]
		== [["Done", "js-agent", "done in JavaScript"], ["Blocked", "js-agent", "the script failed"]]'
}

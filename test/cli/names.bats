#!/usr/bin/env bats
# The caller: the agent's name, and the tokens that belong to it.

load common

# worktree NAME: a repository here with a linked worktree beside it
worktree() {
	git init -q -b main .
	git -c user.name=t -c user.email=t@t commit -q --allow-empty -m x
	git worktree add -q "../$1"
}

@test "a coding agent is named after itself, its host and its worktree" {
	host=$(hostname)
	ask 0 whoami
	is --arg name "tester@$host" '.agent == $name and .run == null'
	CLAUDECODE=1 ask 0 whoami
	is --arg name "claude@$host" '.agent == $name and .agent_why == "CLAUDECODE is set"'
	CODEX_THREAD_ID=019a ask 0 whoami
	is --arg name "codex@$host" '.agent == $name'
	GEMINI_CLI=1 ask 0 whoami
	is --arg name "gemini@$host" '.agent == $name'
	worktree parser
	cd ../parser
	CLAUDECODE=1 ask 0 whoami
	is --arg name "claude@$host/parser" '.agent == $name'
	CLAUDECODE=1 call 0 create x -q
	CLAUDECODE=1 call 0 claim "$output"
	same "$(field t1 .lock.holder)" "claude@$host/parser"
}

@test "whoami says why in each form" {
	CLAUDECODE=1 PAWL_RUN=one call 0 whoami
	says "claude@$(hostname)" "CLAUDECODE is set" "one" "PAWL_RUN names it"
	call 0 whoami --agent al --run two
	says "--agent names it" "--run names it"
	PAWL_AGENT=al ask 0 whoami
	is '.agent == "al" and .agent_why == "PAWL_AGENT names it"'
	pawl config set agent conf
	CLAUDECODE=1 ask 0 whoami
	is '.agent == "conf" and (.agent_why | test("config:[0-9]+ names it"))'
	lines 0 whoami --agent al
	CLAUDECODE=1 call 0 whoami -q --agent al
	exactly al
}

@test "whoami needs no queue" {
	mkdir "$BATS_TEST_TMPDIR/none"
	cd "$BATS_TEST_TMPDIR/none"
	CLAUDECODE=1 ask 0 whoami
	is '.tokens == []'
}

@test "a person and a coding agent in one folder do not share tokens" {
	new x
	pawl claim t1
	CLAUDECODE=1 unchanged 21 done t1
	CLAUDECODE=1 ask 0 whoami
	is '.tokens == []'
	call 0 done t1
}

@test "mcp: the client's own name counts, and claude-code is claude" {
	new x
	{
		echo '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"claude-code","version":"2"}}}'
		echo '{"jsonrpc":"2.0","method":"notifications/initialized"}'
		echo '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"claim","arguments":{"id":"t1"}}}'
		soon test -s "$BATS_TEST_TMPDIR/claimed"
	} | "$PAWL" mcp | while read -r line; do
		[[ $line != *'"id":2'* ]] || echo "$line" >"$BATS_TEST_TMPDIR/claimed"
	done
	"$PAWL" log t1 --json | jq -e --arg name "claude@$(hostname)" 'any(.events[]; .agent == $name)'
}

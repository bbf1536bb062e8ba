#!/usr/bin/env bats
# Claude Code and Codex themselves, each through a whole task with a scripted model: what the model gets to read is in
# test/mcp/agents/*.txt. PAWL_TEST_WRITE=1 writes these again. `tools/mcp-clients agents` gets the programs from npm; they
# speak to nothing but the model, on loopback.

load ../cli/common
load ../kit/npm
load agents/scene

setup_file() {
	from_npm agents
}

setup() {
	needs_npm
	fresh
	unset XDG_STATE_HOME XDG_CONFIG_HOME # Codex does not hand them on to its servers
	git init -q
	queue
	export NOTES=$BATS_TEST_TMPDIR/notes
	mkdir "$NOTES" "$BATS_TEST_TMPDIR/bin"
	cp "$PAWL_SOURCE/test/mcp/agents/pawl" "$BATS_TEST_TMPDIR/bin"
	printf 'PAWL=%q NOTES=%q\n' "$PAWL" "$NOTES" >"$BATS_TEST_TMPDIR/bin/pawl.env"
	PATH=$BATS_TEST_TMPDIR/bin:$PATH
	scene
}

# whole_task CLIENT
whole_task() {
	call 0 setup "$1" --hooks --yes
	timeout 240 "$FROM_NPM/node" "$PAWL_SOURCE/test/mcp/agents/run.mjs" "$1"
	ask 0 show t1
	is '.task.status == "Done" and .task.summary == "hello.txt says hello"'
	[ "$(cat hello.txt)" = hello ]
}

@test "Claude Code: a whole task, as its model sees it" {
	whole_task claude
}

@test "Codex: a whole task, as its model sees it" {
	whole_task codex
}

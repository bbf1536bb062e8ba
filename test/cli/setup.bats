#!/usr/bin/env bats
# pawl setup: the files that it writes for each client, those that it leaves alone, and that it can be
# undone to the byte.

load common
unset -f jq # the order of an object's names is looked at

clients="claude codex cursor gemini generic"

# Everything below this folder, with types, modes and contents, except the queue.
tree() {
	find . -path ./.pawl -prune -o -printf '%y %m %p %l\n' -type f -exec sha256sum {} + | sort
}

# json_file PATH: is JSON, according to jq
json_file() {
	jq -e . "$1" >/dev/null
}

# The files of a client that contain JSON.
json_of() {
	case $1 in
	claude) echo .mcp.json .claude/settings.json ;;
	codex) echo .codex/hooks.json ;;
	cursor) echo .cursor/mcp.json .cursor/hooks.json ;;
	gemini) echo .gemini/settings.json ;;
	esac
}

@test "an empty folder: once, twice, and away again" {
	for client in $clients; do
		for hooks in "" --hooks; do
			before=$(tree)
			call 0 setup $client $hooks --yes
			says "created "
			after=$(tree)
			not same "$before" "$after"
			for file in $(json_of $client); do
				[ ! -e "$file" ] || json_file "$file"
			done
			call 0 setup $client $hooks --yes
			says "nothing to do"
			same "$after" "$(tree)"
			call 0 setup $client --remove --yes
			says "deleted "
			same "$before" "$(tree)"
			call 0 setup $client --remove --yes
			says "nothing to do"
		done
	done
}

@test "setup writes the files that each client needs" {
	for client in $clients; do
		call 0 setup $client --hooks --yes
	done
	for file in .mcp.json .cursor/mcp.json .gemini/settings.json; do
		same "$(jq -c .mcpServers.pawl $file)" '{"command":"pawl","args":["mcp"]}'
	done
	grep -qx '\[mcp_servers.pawl\]' .codex/config.toml
	same "$(jq -c '[.hooks[][].hooks[].command]' .claude/settings.json)" '["pawl hook start","pawl hook beat","pawl hook end"]'
	same "$(jq -c '[.hooks[][].hooks[].command]' .gemini/settings.json)" '["pawl hook beat","pawl hook end"]'
	same "$(jq -c '[.hooks[][].hooks[].command]' .codex/hooks.json)" '["pawl hook start","pawl hook beat","pawl hook end"]'
	same "$(jq -c . .cursor/hooks.json)" '{"version":1,"hooks":{"postToolUse":[{"command":"pawl hook beat"}],"sessionEnd":[{"command":"pawl hook end"}]}}'
	for file in AGENTS.md GEMINI.md .claude/skills/pawl/SKILL.md .cursor/rules/pawl.mdc; do
		grep -q "pawl next --claim" $file
	done
	same "$(sed -n 2p .claude/skills/pawl/SKILL.md)" "name: pawl"
	# two clients use AGENTS.md, with one section
	same "$(grep -c "pawl setup begin" AGENTS.md)" 1
}

@test "without --hooks there are none" {
	for client in $clients; do
		call 0 setup $client --yes
	done
	not grep -rq "pawl hook" . --include '*.json'
}

# existing N: a folder with the user's own config and hooks, in the Nth form
existing() {
	mkdir -p .claude .codex .cursor/rules .gemini
	echo mine >.cursor/rules/mine.mdc # a folder that is empty afterwards is removed
	case $1 in
	1) # as people write it
		printf '{\n  "mcpServers": {\n    "other": {\n      "command": "x"\n    }\n  },\n  "z": 1,\n  "a": [1, 2.50, "\\u00e9"]\n}\n' | tee .mcp.json .cursor/mcp.json >.gemini/settings.json
		printf '{\n    "permissions": {"allow": ["Bash(ls:*)"]},\n    "hooks": {\n        "PostToolUse": [\n            {"matcher": "Edit", "hooks": [{"type": "command", "command": "fmt"}]}\n        ],\n        "Stop": []\n    }\n}\n' | tee .claude/settings.json >.codex/hooks.json
		printf '{"version": 1, "hooks": {"stop": [{"command": "mine"}]}}' >.cursor/hooks.json
		printf 'model = "x"\n\n[mcp_servers.other]\ncommand = "y"' >.codex/config.toml
		printf '# Ours\n\nRead this.\n' | tee AGENTS.md >GEMINI.md
		;;
	2) # tabs, no newline at the end
		printf '{\n\t"mcpServers": {},\n\t"hooks": {\n\t\t"AfterTool": []\n\t}\n}' | tee .mcp.json .cursor/mcp.json .cursor/hooks.json .claude/settings.json .codex/hooks.json >.gemini/settings.json
		printf '# no newline' | tee AGENTS.md GEMINI.md >.codex/config.toml
		;;
	3) # as short as possible
		printf '{}' | tee .mcp.json .cursor/mcp.json .cursor/hooks.json .claude/settings.json .codex/hooks.json >.gemini/settings.json
		: >AGENTS.md
		: >GEMINI.md
		: >.codex/config.toml
		;;
	4) # CRLF, blanks around
		printf '\r\n { \r\n  "mcpServers" : { "o" : { } } ,\r\n  "hooks" : { "PostToolUse" : [ ] , "x" : null }\r\n } \r\n' | tee .mcp.json .cursor/mcp.json .cursor/hooks.json .claude/settings.json .codex/hooks.json >.gemini/settings.json
		printf 'a\r\n\r\n\r\n' | tee AGENTS.md GEMINI.md >.codex/config.toml
		;;
	5) # one line; keys that resemble ours
		printf '{"a":{"mcpServers":{"pawl":1}},"mcp\\u0053ervers":{"q\\"}":{"s":"]}{,"}},"hooks":{}}\n' | tee .mcp.json .cursor/mcp.json .cursor/hooks.json .claude/settings.json .codex/hooks.json >.gemini/settings.json
		printf '\n' | tee AGENTS.md GEMINI.md >.codex/config.toml
		;;
	6) # empty, over several lines
		printf '{\n}\n' | tee .mcp.json .cursor/hooks.json .codex/hooks.json >.claude/settings.json
		printf '{\n  "mcpServers": {\n  },\n  "hooks": {\n    "AfterTool": [\n    ]\n  }\n}\n' | tee .gemini/settings.json >.cursor/mcp.json
		printf '<!-- pawl -->\n' | tee AGENTS.md GEMINI.md >.codex/config.toml
		;;
	esac
	chmod 600 .mcp.json
}

@test "existing config and hooks: all of it is kept, and --remove leaves it to the byte" {
	for form in 1 2 3 4 5 6; do
		mkdir "form$form"
		cd "form$form"
		git init -q .
		printf '#!/bin/sh\nexit 0\n' >.git/hooks/pre-push
		existing "$form"
		before=$(tree)
		cp -r . "$BATS_TEST_TMPDIR/was$form"
		for client in $clients; do
			echo "form $form, $client"
			call 0 setup $client --hooks --yes -C .
			for file in $(json_of $client); do
				json_file $file
				# the earlier content is still there, in its order
				jq -e --slurpfile was "$BATS_TEST_TMPDIR/was$form/$file" \
					'def kept($w): if $w | type == "object" then . as $n | ($w | keys_unsorted | all(. as $k | $n[$k] | kept($w[$k]))) and ($w | keys_unsorted) == ([keys_unsorted[] | select(. as $k | $w | has($k))]) elif $w | type == "array" then .[:($w | length)] == $w else . == $w end; kept($was[0])' $file >/dev/null
				grep -q pawl $file
			done
			after=$(tree)
			call 0 setup $client --hooks --yes -C .
			says "nothing to do"
			same "$after" "$(tree)"
		done
		# in another order than they were added
		for client in gemini claude cursor codex; do
			call 0 setup $client --remove --yes -C .
		done
		same "$before" "$(tree)"
		same "$(git config --get core.hooksPath)" ""
		cd ..
	done
}

@test "comments and trailing commas stay" {
	mkdir .gemini
	for text in '{\n  // servers\n  "mcpServers": {\n    "o": {}, // o\n    /* none */\n  }, // s\n}\n' '{ "x": 1 // one\r\n}' '{ /* a */ }'; do
		printf "$text" | tee .gemini/settings.json >was
		call 0 setup gemini --hooks --yes
		grep -q '"pawl": {' .gemini/settings.json
		call 0 setup gemini --hooks --yes
		says "nothing to do"
		call 0 setup gemini --remove --yes
		cmp was .gemini/settings.json
	done
}

@test "--remove keeps entries that were added after setup" {
	call 0 setup claude --hooks --yes
	jq '.mcpServers.mine = {"command": "m"}' .mcp.json >new && mv new .mcp.json
	jq '.hooks.PostToolUse += [{"hooks": []}]' .claude/settings.json >new && mv new .claude/settings.json
	call 0 setup generic --yes
	printf 'more\n' >>AGENTS.md
	call 0 setup claude --remove --yes
	call 0 setup generic --remove --yes
	same "$(jq -c . .mcp.json)" '{"mcpServers":{"mine":{"command":"m"}}}'
	same "$(jq -c . .claude/settings.json)" '{"hooks":{"PostToolUse":[{"hooks":[]}]}}'
	same "$(cat AGENTS.md)" more
}

@test "entries named pawl that setup did not write are left alone" {
	mkdir -p .claude/skills/pawl .codex
	printf '{"mcpServers": {"pawl": {"command": "/opt/pawl", "args": ["mcp", "--profile", "all"]}}}\n' >.mcp.json
	echo mine >.claude/skills/pawl/SKILL.md
	printf '[mcp_servers.pawl]\ncommand = "/opt/pawl"\n' >.codex/config.toml
	before=$(tree)
	call 0 setup claude --yes
	says "mcpServers.pawl exists already" "left unchanged"
	same "$before" "$(tree)"
	call 0 setup claude --remove --yes
	same "$before" "$(tree)"
	call 0 setup codex --yes
	says "left unchanged"
	grep -q "pawl next" AGENTS.md
	same "$(cat .codex/config.toml)" "$(printf '[mcp_servers.pawl]\ncommand = "/opt/pawl"')"
}

@test "an older section is brought up to date in its place" {
	printf 'top\n\n<!-- pawl setup begin -->\nold\n<!-- pawl setup end -->\nbottom\n' >AGENTS.md
	call 0 setup generic --yes
	same "$(head -1 AGENTS.md) $(tail -1 AGENTS.md)" "top bottom"
	grep -q "pawl next" AGENTS.md
	not grep -qx old AGENTS.md
	call 0 setup generic --remove --yes
	same "$(cat AGENTS.md)" "$(printf 'top\nbottom')"
}

@test "a file of setup's own is brought up to date, too, and keeps the user's changes" {
	call 0 setup claude --yes
	file=.claude/skills/pawl/SKILL.md
	sed -i 's/^- Take a task.*/- Take it the old way./; s/^name: pawl/name: tasks/' $file
	call 0 setup claude --yes
	grep -q "name: tasks" $file
	not grep -q "old way" $file
	grep -q "Take a task" $file
	call 0 setup claude --remove --yes
	grep -q "name: tasks" $file
	not grep -q "pawl setup" $file
}

@test "other spellings of pawl's section in Codex's TOML are left alone" {
	mkdir .codex
	while IFS= read -r text; do
		printf "$text" >.codex/config.toml
		before=$(cat .codex/config.toml)
		call 0 setup codex --yes
		says "left unchanged"
		same "$before" "$(cat .codex/config.toml)"
	done <<-'END'
		[ mcp_servers . "pawl" ]\ncommand = "x"
		[mcp_servers]\npawl = { command = "x" }
		[mcp_servers]\npawl.command = "x"
		mcp_servers.pawl.command = "x"
		[mcp_servers.pawl.env]\nA = "1"
	END
	printf '[mcp_servers]\npawls = { command = "x" }\n' >.codex/config.toml
	call 0 setup codex --yes
	grep -qx '\[mcp_servers.pawl\]' .codex/config.toml
}

@test "without --yes and without a terminal: shown, not written" {
	existing 1
	before=$(tree)
	call 2 setup claude
	says "+++ .mcp.json" '+    "pawl": {' "--- /dev/null"
	complains "nothing was written" "--yes"
	same "$before" "$(tree)"
	ask 2 setup claude
	is '.written == false and (.files | map(.action) == ["change", "create"]) and (.files[0].diff | contains("mcp"))'
	ask 0 setup claude --yes
	is '.written == true and .client == "claude"'
	lines 0 setup claude --yes
}

@test "the diff is one that patch understands" {
	needs patch
	existing 1
	mkdir other
	cp -r .mcp.json .claude other
	"$PAWL" setup claude --hooks 2>/dev/null >claude.diff || true
	patch -s -p0 -d other <claude.diff
	call 0 setup claude --hooks --yes
	diff -r .claude other/.claude
	cmp .mcp.json other/.mcp.json
}

@test "on a terminal it asks" {
	needs script
	script -qec true /dev/null </dev/null >/dev/null 2>&1 || skip "no pseudo-terminal to be had here"
	echo n | script -qec "'$PAWL' setup claude" /dev/null >shown
	grep -q '"pawl": {' shown
	grep -q 'y/N' shown
	[ ! -e .mcp.json ]
	echo y | script -qec "'$PAWL' setup claude" /dev/null >shown
	json_file .mcp.json
}

@test "a file that is not JSON, not regular, read-only or a link out of here: refused, nothing changed" {
	mkdir -p .gemini
	for text in '' '{' '[]' '{"a": 1} note' '{"a": 1, "a": 2}' $'\xff'; do
		printf '%s' "$text" >.gemini/settings.json
		before=$(tree)
		call 40 setup gemini --yes
		complains "settings.json" "nothing was changed"
		ask 40 setup gemini --remove --yes
		same "$before" "$(tree)"
	done
	echo '{"mcpServers": []}' >.gemini/settings.json
	before=$(tree)
	call 40 setup gemini --yes
	same "$before" "$(tree)"
	echo '{}' >.gemini/settings.json
	chmod 444 .gemini/settings.json
	before=$(tree)
	call 40 setup gemini --yes
	complains "read-only"
	same "$before" "$(tree)"
	rm -f .gemini/settings.json
	mkdir .gemini/settings.json
	call 40 setup gemini --yes
	complains "not a regular file"
	rmdir .gemini/settings.json
	echo '{}' >"$BATS_TEST_TMPDIR/outside"
	ln -s "$BATS_TEST_TMPDIR/outside" .gemini/settings.json
	call 40 setup gemini --yes
	complains "leads out"
	same "$(cat "$BATS_TEST_TMPDIR/outside")" "{}"
	rm -r .gemini
	mkdir "$BATS_TEST_TMPDIR/folder"
	ln -s "$BATS_TEST_TMPDIR/folder" .gemini
	call 40 setup gemini --yes
	same "$(ls "$BATS_TEST_TMPDIR/folder")" ""
	printf 'mcp_servers = { other = 1 }\n[a]\n' >config.toml
	mkdir .codex
	mv config.toml .codex
	before=$(tree)
	call 40 setup codex --yes
	same "$before" "$(tree)"
	printf '<!-- pawl setup begin -->\nno end\n' >AGENTS.md
	call 40 setup generic --yes
}

@test "a link inside of the folder is followed and stays one" {
	mkdir conf
	echo '{"x": 1}' >conf/mcp.json
	ln -s conf/mcp.json .mcp.json
	before=$(tree)
	call 0 setup claude --yes
	[ -L .mcp.json ]
	grep -q pawl conf/mcp.json
	call 0 setup claude --remove --yes
	same "$before" "$(tree)"
}

@test "a failed write changes no file" {
	echo '{"x": 1}' >.mcp.json
	before=$(tree)
	# room for the first file, but not for the second
	(
		ulimit -f 1
		call 30 setup claude --yes
		complains "SKILL.md" "nothing was changed"
	)
	same "$before" "$(tree)"
}

@test "--user: in the home folder, or where the client has been told to look" {
	before=$(cd "$HOME" && tree)
	echo '{"numStartups": 5}' >"$HOME/.claude.json"
	chmod 600 "$HOME/.claude.json"
	call 0 setup claude --user --hooks --yes
	same "$(jq -c . "$HOME/.claude.json")" '{"numStartups":5,"mcpServers":{"pawl":{"command":"pawl","args":["mcp"]}}}'
	same "$(stat -c %a "$HOME/.claude.json")" 600
	json_file "$HOME/.claude/settings.json"
	[ ! -e .mcp.json ]
	call 0 setup claude --user --remove --yes
	same "$(cat "$HOME/.claude.json")" '{"numStartups": 5}'
	rm "$HOME/.claude.json"
	same "$before" "$(cd "$HOME" && tree)"
	mkdir "$HOME/elsewhere"
	CODEX_HOME=$HOME/elsewhere call 0 setup codex --user --yes
	same "$(cd "$HOME/elsewhere" && ls)" "$(printf 'AGENTS.md\nconfig.toml')"
	call 2 setup generic --user
	call 2 setup emacs
}

@test "from a sub-folder it is the project's root; no queue is needed" {
	rm -rf .pawl
	git init -q .
	mkdir -p a/b
	cd a/b
	call 0 setup claude --yes
	[ -e ../../.mcp.json ]
	[ ! -e .mcp.json ]
	[ ! -e ../../.pawl ]
}

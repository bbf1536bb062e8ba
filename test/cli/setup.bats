#!/usr/bin/env bats
# pawl setup: the files that it writes for each client, those that it leaves alone, and that it can be
# undone to the byte.

load common
unset -f jq # the order of an object's names is looked at

clients="claude codex cursor gemini copilot vscode opencode qwen amp generic"
with_hooks="claude codex cursor gemini"

# Everything below this folder, with types, modes and contents, except the queue. (In one program: it is called often.)
tree() {
	perl -e 'sub at {
		my $p = shift;
		my $mode = (lstat $p)[2];
		printf "%o %s %s\n", $mode, $p, -l _ ? readlink $p : "";
		if (-f _) { open my $f, "<", $p or die "$p: $!"; local $/; print <$f>, "\n" }
		if (-d _) { opendir my $d, $p or die "$p: $!"; at("$p/$_") for sort grep { !/^\.(\.?|pawl)$/ } readdir $d }
	} at(".")'
}

# strict PATH...: the files as JSON without comments and trailing commas
strict() {
	perl -0777 -pe 's{("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/}{$1 // " "}gse;
		s{("(?:\\.|[^"\\])*")|,(?=\s*[\]\}])}{$1 // " "}ge; s/^\xef\xbb\xbf//' "$@"
}

# json_file PATH...: they are JSON, according to jq
json_file() {
	strict "$@" | "$quick_jq" . >/dev/null
}

# holds PATH TEXT: the file has this text, and nothing else
holds() {
	local is
	IFS= read -rd '' is <"$1" || true
	same "$is" "$2"
}

# The files of a client that contain JSON.
json_of() {
	case $1 in
	claude) echo .mcp.json .claude/settings.json ;;
	codex) echo .codex/hooks.json ;;
	cursor) echo .cursor/mcp.json .cursor/hooks.json ;;
	gemini) echo .gemini/settings.json ;;
	copilot | generic) echo .mcp.json ;;
	vscode) echo .vscode/mcp.json ;;
	opencode) echo opencode.json ;;
	qwen) echo .qwen/settings.json ;;
	amp) echo .amp/settings.json ;;
	esac
}

# The key that has a client's servers.
key_of() {
	case $1 in
	vscode) echo servers ;;
	opencode) echo mcp ;;
	amp) echo amp.mcpServers ;;
	*) echo mcpServers ;;
	esac
}

@test "an empty folder: once, twice, and away again" {
	before=$(tree)
	for client in $(sampled $clients); do
		for hooks in "" --hooks; do
			[ -z "$hooks" ] || [[ " $with_hooks " == *" $client "* ]] || continue
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
			says "nothing to do: setup has added nothing here"
		done
	done
}

@test "setup writes the files that each client needs" {
	for client in $clients; do
		call 0 setup $client --hooks --yes
	done
	for file in .mcp.json .cursor/mcp.json .gemini/settings.json .qwen/settings.json; do
		same "$(jq -c '{mcpServers}' $file)" '{"mcpServers":{"pawl":{"command":"pawl","args":["mcp"]}}}'
	done
	same "$(jq -c . .vscode/mcp.json)" '{"servers":{"pawl":{"type":"stdio","command":"pawl","args":["mcp"]}}}'
	same "$(jq -c . opencode.json)" '{"$schema":"https://opencode.ai/config.json","mcp":{"pawl":{"type":"local","command":["pawl","mcp"],"enabled":true}}}'
	same "$(jq -c . .amp/settings.json)" '{"amp.mcpServers":{"pawl":{"command":"pawl","args":["mcp"]}}}'
	grep -qx '\[mcp_servers.pawl\]' .codex/config.toml
	same "$(jq -c '[.hooks[][].hooks[].command]' .claude/settings.json)" '["pawl hook start","pawl hook beat","pawl hook end"]'
	same "$(jq -c '[.hooks[][].hooks[].command]' .gemini/settings.json)" '["pawl hook beat","pawl hook end"]'
	same "$(jq -c '[.hooks[][].hooks[].command]' .codex/hooks.json)" \
		'["env AI_AGENT=codex pawl hook start","env AI_AGENT=codex pawl hook beat","env AI_AGENT=codex pawl hook end"]'
	same "$(jq -c . .cursor/hooks.json)" '{"version":1,"hooks":{"postToolUse":[{"command":"pawl hook beat"}],"sessionEnd":[{"command":"pawl hook end"}]}}'
	for file in AGENTS.md GEMINI.md QWEN.md .claude/skills/pawl/SKILL.md .cursor/rules/pawl.mdc; do
		grep -q "pawl next --claim" $file
	done
	same "$(sed -n 2p .claude/skills/pawl/SKILL.md)" "name: pawl"
	# several clients use AGENTS.md, with one section
	same "$(grep -c "pawl setup begin" AGENTS.md)" 1
}

@test "without --hooks there are none" {
	for client in $clients; do
		call 0 setup $client --yes
	done
	not grep -rq "pawl hook" . --include '*.json'
}

# everywhere FORMAT: the text in the JSON file of every client, with the client's key for "mcpServers"
everywhere() {
	local client file
	for client in $clients; do
		for file in $(json_of $client); do
			printf "$1" | sed "s/\"mcpServers\"/\"$(key_of $client)\"/" >$file
		done
	done
}

# texts FORMAT: the text in every file that is not JSON
texts() {
	printf "$1" | tee AGENTS.md GEMINI.md QWEN.md >.codex/config.toml
}

# existing N: a folder with the user's own config and hooks, in the Nth form
existing() {
	mkdir -p .claude .codex .cursor/rules .gemini .vscode .qwen .amp
	echo mine >.cursor/rules/mine.mdc # a folder that is empty afterwards is removed
	case $1 in
	1) # as people write it
		everywhere '{\n  "mcpServers": {\n    "other": {\n      "command": "x"\n    }\n  },\n  "z": 1,\n  "a": [1, 2.50, "\\u00e9"]\n}\n'
		printf '{\n    "permissions": {"allow": ["Bash(ls:*)"]},\n    "hooks": {\n        "PostToolUse": [\n            {"matcher": "Edit", "hooks": [{"type": "command", "command": "fmt"}]}\n        ],\n        "Stop": []\n    }\n}\n' | tee .claude/settings.json >.codex/hooks.json
		printf '{"version": 1, "hooks": {"stop": [{"command": "mine"}]}}' >.cursor/hooks.json
		texts '# Ours\n\nRead this.\n'
		printf 'model = "x"\n\n[mcp_servers.other]\ncommand = "y"' >.codex/config.toml
		;;
	2) # tabs, no newline at the end
		everywhere '{\n\t"mcpServers": {},\n\t"hooks": {\n\t\t"AfterTool": []\n\t}\n}'
		texts '# no newline'
		;;
	3) # as short as possible
		everywhere '{}'
		texts ''
		;;
	4) # CRLF, blanks around
		everywhere '\r\n { \r\n  "mcpServers" : { "o" : { } } ,\r\n  "hooks" : { "PostToolUse" : [ ] , "x" : null }\r\n } \r\n'
		texts 'a\r\n\r\n\r\n'
		;;
	5) # one line; keys that resemble ours
		everywhere '{"a":{"mcpServers":{"pawl":1}},"mcp\\u0053ervers":{"q\\"}":{"s":"]}{,"}},"hooks":{}}\n'
		texts '\n'
		;;
	6) # empty, over several lines
		everywhere '{\n}\n'
		printf '{\n  "mcpServers": {\n  },\n  "hooks": {\n    "AfterTool": [\n    ]\n  }\n}\n' | tee .gemini/settings.json >.cursor/mcp.json
		texts '# <!-- pawl -->\n'
		;;
	7) # comments and trailing commas, as editors write them
		everywhere '// head\n{\n  // servers\n  "mcpServers": {\n    "o": { "url": "http://x/*y*/" }, // o\n    /* "pawl": {} */\n  }, /* s */ // t\n  "hooks": {\n    // none yet\n  },\n  "last": [\n    1, // one\n    2, // two\n  ], // end\n}\n// tail\n'
		texts '# a\n'
		;;
	8) # comments where they hurt, CRLF, a byte order mark
		everywhere '\xef\xbb\xbf/* "mcpServers": { */{ /* a */ "mcpServers" /* b */ : /* c */ { // d " }\r\n } /* e */ // f\r\n , "hooks": { "PostToolUse": [ // g\r\n], "SessionEnd": [ /* h */ ] // i\r\n} // j }\r\n}// k'
		texts '# b\r\n'
		;;
	9) # a comment behind the last value, without a comma
		everywhere '{ "x": 1 // one\n}\n'
		texts '# c'
		;;
	esac
	chmod 600 .mcp.json
}

# kept FOLDER FILE...: each is JSON that has the content and the comments of the file in FOLDER, in its order, and pawl
kept() {
	local was=("${@:2}")
	was=("${was[@]/#/"$1/"}")
	same "$(notes "${was[@]}")" "$(notes "${@:2}")"
	jq -en --slurpfile was <(strict "${was[@]}") --slurpfile is <(strict "${@:2}") --args \
		'def kept($w): if $w | type == "object" then . as $n | ($w | keys_unsorted | all(. as $k | $n[$k] | kept($w[$k]))) and ($w | keys_unsorted) == ([keys_unsorted[] | select(. as $k | $w | has($k))]) elif $w | type == "array" then .[:($w | length)] == $w else . == $w end; 
			[($was | length), ($is | length)] == [$ARGS.positional | length, length]
			and ([range($is | length) | select(. as $i | $is[$i] | (kept($was[$i]) and (tojson | test("[\" ]pawl"))) | not)]
				| . == [] or ("not kept: \(map($ARGS.positional[.]))" | halt_error))' "${@:2}" >/dev/null
}

# notes FILE...: their comments
notes() {
	perl -0777 -ne 'print "--\n"; while (m{"(?:\\.|[^"\\])*"|(//[^\n]*|/\*.*?\*/)}gs) { print "$1\n" if defined $1 }' "$@"
}

@test "existing config and hooks: all of it is kept, and --remove leaves it to the byte" {
	needs perl
	for form in $(sampled 1 2 3 4 5 6 7 8 9); do
		mkdir "form$form"
		cd "form$form"
		git init -q .
		printf '#!/bin/sh\nexit 0\n' >.git/hooks/pre-push
		existing "$form"
		before=$(tree)
		cp -r . "$BATS_TEST_TMPDIR/was$form"
		echo "form $form"
		files=
		for client in $clients; do
			call 0 setup $client --hooks --yes -C .
			files+=" $(json_of $client)"
		done
		kept "$BATS_TEST_TMPDIR/was$form" $files
		after=$(tree)
		for client in $clients; do
			call 0 setup $client --hooks --yes -C .
			says "nothing to do"
		done
		same "$after" "$(tree)"
		# in another order than they were added
		for client in gemini claude qwen cursor amp opencode vscode codex; do
			call 0 setup $client --remove --yes -C .
		done
		after=$(tree)
		diff <(echo "$before") <(echo "$after")
		same "$(git config --get core.hooksPath)" ""
		cd ..
	done
}

@test "a comment stays with the value that it follows" {
	mkdir .vscode
	printf '{\n  "servers": {\n    "a": {} // about a\n    // about nothing\n  }\n}\n' >.vscode/mcp.json
	call 0 setup vscode --yes
	same "$(head -4 .vscode/mcp.json)" "$(printf '{\n  "servers": {\n    "a": {}, // about a\n    "pawl": {')"
	same "$(tail -4 .vscode/mcp.json)" "$(printf '    }\n    // about nothing\n  }\n}')"
	# with a trailing comma, the new entry gets one
	printf '{\n  "servers": {\n    "a": {}, // about a\n  },\n}\n' >.vscode/mcp.json
	call 0 setup vscode --yes
	same "$(tail -4 .vscode/mcp.json)" "$(printf '      ]\n    },\n  },\n}')"
	# a comment that somebody wrote into setup's file keeps its place when the entry goes
	call 0 setup qwen --yes
	sed -i '1s,$, // mine,' .qwen/settings.json
	call 0 setup qwen --remove --yes
	grep -q '// mine' .qwen/settings.json
	not grep -q pawl .qwen/settings.json
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
	needs_terminal
	echo n | script -qec "'$PAWL' setup claude" /dev/null >shown
	grep -q '"pawl": {' shown
	grep -q 'y/N' shown
	[ ! -e .mcp.json ]
	echo y | script -qec "'$PAWL' setup claude" /dev/null >shown
	json_file .mcp.json
}

@test "a file that is not JSON, not regular, read-only or a link out of here: refused, nothing changed" {
	for client in $(sampled gemini vscode opencode qwen amp); do
		file=$(json_of $client)
		mkdir -p "$(dirname $file)"
		: >$file
		before=$(tree)
		for text in '' '{' '[]' '{"a": 1} x' '{"a": 1, "a": 2}' '{"a": {"b": 1, "b": 1}}' $'\xff' $'{} // \xff' '{} /* open' \
			'{"a": 1,, }' '{,}' '// only' $'{} // a\r{"b": 1}'; do
			printf '%s' "$text" >$file
			call 40 setup $client --yes
			complains "$file" "nothing was changed"
			ask 40 setup $client --remove --yes
			holds $file "$text"
		done
		for text in '[]' '"x"' null 1 true; do
			text="{\"$(key_of $client)\": $text} // other type"
			printf '%s' "$text" >$file
			call 40 setup $client --yes
			complains "$file" "$(key_of $client) must be an object" "nothing was changed"
			holds $file "$text"
		done
		: >$file
		same "$before" "$(tree)" # no other file was made or changed
		rm $file
		printf '{}\n' >$file
		truncate -s 17M $file
		call 40 setup $client --yes
		complains "$file" "larger than 16 MiB"
		rm $file
		mkfifo $file
		call 40 setup $client --yes
		complains "$file" "not a regular file"
		rm $file
		ln -s nowhere $file
		call 40 setup $client --yes
		complains "$file" "does not exist"
		rm $file
	done
	rm -rf .gemini AGENTS.md
	mkdir .gemini
	echo '{"hooks": {"AfterTool": {}}}' >.gemini/settings.json
	before=$(tree)
	call 40 setup gemini --hooks --yes
	complains "hooks must be an object of arrays"
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

@test "owner, group and mode of a file stay" {
	[ "$(id -u)" = 0 ] || skip "needs root to give files away"
	mkdir .qwen
	echo '{}' >.qwen/settings.json
	chown 12345:23456 .qwen/settings.json
	chmod 640 .qwen/settings.json
	call 0 setup qwen --yes
	same "$(stat -c '%u:%g %a' .qwen/settings.json)" "12345:23456 640"
	call 0 setup qwen --remove --yes
	same "$(stat -c '%u:%g %a' .qwen/settings.json)" "12345:23456 640"
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

@test "two names for one file: it gets the entries of both" {
	fake_client copilot code
	export PATH=$PWD/bin:$PATH
	mkdir .vscode
	printf '{\n  "x": 1\n}\n' >.mcp.json
	ln -s ../.mcp.json .vscode/mcp.json
	before=$(tree)
	call 0 setup --all --yes
	same "$(jq -c '[.mcpServers.pawl.command, .servers.pawl.command]' .mcp.json)" '["pawl","pawl"]'
	call 0 setup --all --remove --yes
	same "$before" "$(tree)"
	ln -s .mcp.json AGENTS.md
	before=$(tree)
	call 40 setup generic --yes
	complains "AGENTS.md: it is a link to a file of another format"
	same "$before" "$(tree)"
}

@test "--user without a home folder" {
	fake_client claude codex
	export PATH=$PWD/bin:$PATH
	unset HOME
	call 40 setup claude --user --yes
	complains "set HOME"
	call 40 setup --all --user --yes
	complains "set HOME"
	mkdir elsewhere
	CLAUDE_CONFIG_DIR=$PWD/elsewhere call 0 setup claude --user --yes
	CLAUDE_CONFIG_DIR=$PWD/elsewhere call 0 setup claude --user --remove --yes
	same "$(ls -A elsewhere)" ""
	# only one of two has a folder
	CLAUDE_CONFIG_DIR=$PWD/elsewhere call 40 setup --all --user --yes
	complains "set HOME"
	same "$(ls -A elsewhere)" ""
	call 0 setup --list
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
	mkdir -p "$XDG_CONFIG_HOME"
	before=$(cd "$HOME" && tree)
	for client in cursor gemini copilot vscode opencode qwen amp; do
		call 0 setup $client --user --yes
		not same "$before" "$(cd "$HOME" && tree)"
		call 0 setup $client --user --yes
		says "nothing to do"
		call 0 setup $client --user --remove --yes
		same "$before" "$(cd "$HOME" && tree)"
	done
	unset XDG_CONFIG_HOME
	for client in copilot vscode opencode qwen amp; do
		call 0 setup $client --user --yes
	done
	for file in .copilot/mcp-config.json .config/opencode/opencode.json .qwen/settings.json .config/amp/settings.json; do
		grep -q '"pawl"' "$HOME/$file"
	done
	[ "$(uname)" = Darwin ] || grep -q '"pawl"' "$HOME/.config/Code/User/mcp.json"
	COPILOT_HOME=$HOME/elsewhere call 0 setup copilot --user --yes
	grep -q '"pawl"' "$HOME/elsewhere/mcp-config.json"
}

@test "opencode.jsonc is used where it exists" {
	printf '{\n  // mine\n}\n' >opencode.jsonc
	cp opencode.jsonc was
	call 0 setup opencode --yes
	[ ! -e opencode.json ]
	grep -q '"pawl"' opencode.jsonc
	call 0 setup opencode --remove --yes
	cmp was opencode.jsonc
}

# server_of CLIENT: the agent that the client's server is started with
server_of() {
	case $1 in
	opencode) "$quick_jq" -r '.mcp.pawl.command[3]' opencode.json ;;
	codex) sed -n 's/^args = //p' .codex/config.toml | "$quick_jq" -r '.[2]' ;;
	*) "$quick_jq" -r --arg k "$(key_of $1)" '.[$k].pawl.args[2]' "$(json_of $1 | cut -d" " -f1)" ;;
	esac
}

@test "--agent NAME: the server and the hooks use it" {
	before=$(tree)
	for client in $(sampled $clients); do
		call 0 setup $client --agent ann --hooks --yes
		same "$(server_of $client)" ann
		not grep -rq "hook [a-z]*\"" . --include '*.json'
		after=$(tree)
		# the same again, and without a name: nothing changes
		call 0 setup $client --agent ann --hooks --yes
		says "nothing to do"
		call 0 setup $client --hooks --yes
		says "nothing to do"
		same "$after" "$(tree)"
		# another name, also for the hooks that exist
		call 0 setup $client --agent "bob's own" --yes
		same "$(server_of $client)" "bob's own"
		not grep -rq "ann" . --include '*.json' --include '*.toml'
		call 0 setup $client --remove --yes
		same "$before" "$(tree)"
	done
	call 0 setup claude --agent eve --yes
	call 0 setup claude --hooks --yes # later hooks get the name of the server
	same "$(server_of claude)" eve
	same "$(jq -r '.hooks[][] | .hooks[].command' .claude/settings.json)" \
		"$(printf 'pawl hook start --agent eve\npawl hook beat --agent eve\npawl hook end --agent eve')"
	call 2 setup claude --agent $'a\nb' --yes
}

@test "a hook that setup wrote for an agent runs under that name" {
	call 0 setup claude --hooks --agent "bob's own" --yes
	id=$("$PAWL" create -q "A task")
	"$PAWL" claim -q "$id" --agent "bob's own"
	PATH=$(dirname "$PAWL"):$PATH sh -c "$(jq -r '.hooks.SessionEnd[].hooks[].command' .claude/settings.json)"
	ask 0 show "$id"
	is '.task.status == "Ready"'
}

# Codex sets no variable that names it when it calls a hook.
@test "codex: a hook runs under the name of the client" {
	call 0 setup codex --hooks --yes
	id=$("$PAWL" create -q "A task")
	CODEX_THREAD_ID=1 "$PAWL" claim -q "$id"
	echo '{"session_id":"1"}' >input
	PATH=$(dirname "$PAWL"):$PATH sh -c "$(jq -r '.hooks.SessionEnd[].hooks[].command' .codex/hooks.json)" <input
	ask 0 show "$id"
	is '.task.status == "Ready"'
}

@test "a hook or a server that names an agent, but is not setup's, is left alone" {
	mkdir .claude
	printf '{"mcpServers": {"pawl": {"command": "pawl", "args": ["mcp", "--agent", "x", "--profile", "all"]}}}\n' >.mcp.json
	printf '{"hooks": {"SessionEnd": [{"hooks": [{"type": "command", "command": "pawl hook end --agent x; echo"}]}]}}\n' >.claude/settings.json
	cp .claude/settings.json was
	call 0 setup claude --hooks --yes
	says "mcpServers.pawl exists already"
	same "$(jq -c '.hooks.SessionEnd | length' .claude/settings.json)" 2
	call 0 setup claude --remove --yes
	cmp was .claude/settings.json
	grep -q profile .mcp.json
}

# fake_client PROGRAM...: programs that PATH finds
fake_client() {
	mkdir -p bin
	for program; do
		printf '#!/bin/sh\ntouch started\n' >bin/"$program"
		chmod +x bin/"$program"
	done
}

@test "--list says which clients are installed and configured" {
	fake_client codex cursor-agent
	mkdir -p "$HOME/.qwen" .vscode .amp
	export PATH=$PWD/bin:$PATH
	call 0 setup codex --agent ann --yes
	call 0 setup qwen --user --yes
	echo '{"servers": {"pawl": {"command": "/opt/pawl"}}}' >.vscode/mcp.json
	echo '{' >.amp/settings.json
	before=$(tree)
	ask 0 setup --list
	is '[.clients[].client] == ["claude", "codex", "cursor", "gemini", "copilot", "vscode", "opencode", "qwen", "amp", "generic"]'
	is '[.clients[] | select(.installed) | .client] == ["codex", "cursor", "qwen"]'
	is '[.clients[] | select(.project == "yes") | .client] == ["codex"] and [.clients[] | select(.user == "yes") | .client] == ["qwen"]'
	is '.clients[] | select(.client == "vscode") | .project == "other"'
	is '.clients[] | select(.client == "amp") | .project == "unreadable"'
	is --arg p "$PWD/bin/codex" '.clients[] | select(.client == "codex") | .found == $p'
	call 0 setup --list
	says "CLIENT" "unreadable" "$HOME/.qwen"
	[[ $output =~ generic\ +no\ +-\ +- ]]
	lines 0 setup --list
	says "CLIENT: client=codex installed=true"
	same "$before" "$(tree)" # nothing was written, no program was started
	call 2 setup --list claude
	call 2 setup --list --remove
	call 2 setup
	complains "--all" "--list"
}

@test "--all configures the clients that are installed" {
	for dir in ${PATH//:/ }; do # clients of this machine do not count
		for program in claude codex cursor cursor-agent gemini copilot code opencode qwen amp; do
			[ ! -e "$dir/$program" ] || skip "$program is installed"
		done
	done
	call 40 setup --all --yes
	complains "none of the clients is installed"
	fake_client copilot code gemini
	before=$(tree)
	export PATH=$PWD/bin:$PATH
	call 2 setup --all
	says "+++ .vscode/mcp.json" "+++ .gemini/settings.json"
	same "$before" "$(tree)"
	ask 0 setup --all --yes
	is '.selected == ["gemini", "copilot", "vscode"] and .written'
	for file in .mcp.json .vscode/mcp.json .gemini/settings.json; do
		grep -q '"pawl"' $file
	done
	[ ! -e opencode.json ]
	same "$(grep -c "pawl setup begin" AGENTS.md)" 1
	call 0 setup --all --yes
	says "nothing to do"
	call 0 setup opencode --yes
	call 0 setup --all --remove --yes # those that are not installed, too
	same "$before" "$(tree)"
	# one bad file: no client is configured
	mkdir .vscode
	echo '{' >.vscode/mcp.json
	before=$(tree)
	call 40 setup --all --yes
	same "$before" "$(tree)"
	call 2 setup claude --all
}

@test "--remove says which other client used the entry" {
	fake_client codex
	export PATH=$PWD/bin:$PATH
	call 0 setup codex --yes
	call 0 setup vscode --yes
	call 0 setup vscode --remove --yes
	says "AGENTS.md: Codex used this entry, too"
}

@test "generic prints the entry for clients that setup does not write for" {
	call 0 setup generic --yes
	says "Kiro: .kiro/settings/mcp.json" "Zed: .zed/settings.json" "Kilo Code: kilo.jsonc" "goose: ~/.config/goose/config.yaml" "Roo Code" "Junie" "Windsurf" "Cline"
	ask 0 setup generic --agent ann --yes
	is '.entries | length == 8'
	is '[.entries[] | select(.client != "goose") | .entry | fromjson | .[].pawl | [.command, .args] | flatten - [null]] | unique == [["pawl", "mcp", "--agent", "ann"]]'
	is '.entries[] | select(.client == "goose") | .entry | contains("args: [\"mcp\", \"--agent\", \"ann\"]")'
	call 0 setup generic --remove --yes
	not says "Kiro"
}

@test "a client without hooks: --hooks says so" {
	call 0 setup vscode --hooks --yes
	says "VS Code: setup has no hooks for it"
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

# entry_of CLIENT: the server in the settings of the client
entry_of() {
	strict "$(json_of "$1" | cut -d' ' -f1)" | jq -c --arg key "$(key_of "$1")" '.[$key].pawl'
}

@test "--http URL: the client calls a server, and takes the token from a variable" {
	url='https://tasks.example:7295/mcp?queue=q1'
	before=$(tree)
	for client in claude copilot generic cursor gemini opencode; do
		call 0 setup $client --http "$url" --yes
		after=$(tree)
		case $client in
		cursor) want="{\"url\":\"$url\",\"headers\":{\"Authorization\":\"Bearer \${env:PAWL_SERVER_TOKEN}\"}}" ;;
		gemini) want="{\"httpUrl\":\"$url\",\"headers\":{\"Authorization\":\"Bearer \$PAWL_SERVER_TOKEN\"}}" ;;
		opencode) want="{\"type\":\"remote\",\"url\":\"$url\",\"headers\":{\"Authorization\":\"Bearer {env:PAWL_SERVER_TOKEN}\"},\"enabled\":true}" ;;
		*) want="{\"type\":\"http\",\"url\":\"$url\",\"headers\":{\"Authorization\":\"Bearer \${PAWL_SERVER_TOKEN}\"}}" ;;
		esac
		same "$(entry_of $client)" "$want"
		call 0 setup $client --http "$url" --yes
		says "nothing to do"
		call 0 setup $client --yes # keeps the server that it has
		says "nothing to do"
		same "$after" "$(tree)"
		call 0 setup $client --agent 'a b&c' --yes
		same "$(entry_of $client)" "${want/queue=q1/"queue=q1&agent=a%20b%26c"}"
		call 0 setup $client --http "http://localhost:7295" --agent bob --yes
		[[ $(entry_of $client) == *'"http://localhost:7295/mcp?agent=bob"'* ]]
		call 0 setup $client --remove --yes
		same "$before" "$(tree)"
	done
	call 0 setup codex --agent bob --yes
	call 0 setup codex --http 'http://[::1]:7295/' --yes # the name stays
	same "$(sed -n '/^\[mcp/,/^#/p' .codex/config.toml)" "[mcp_servers.pawl]
url = \"http://[::1]:7295/mcp?agent=bob\"
bearer_token_env_var = \"PAWL_SERVER_TOKEN\"
# pawl setup end"
	call 0 setup codex --yes
	says "nothing to do"
	call 0 setup codex --remove --yes
	same "$(tree)" "$before"
}

@test "--http: hostile URLs, tokens and unfit options are refused, and nothing is written" {
	before=$(tree)
	for url in tasks.example ftp://tasks.example http://tasks.example/mcp http://10.0.0.1:7295 https:// 'https://?x' \
		https://ann:secret@tasks.example 'https://tasks.example/#x' 'https://tasks.example/mcp?x=${HOME}' \
		'https://tasks.example/mcp?x=$HOME' 'https://tasks.example/{env:HOME}' 'https://tasks.example/"x' \
		'https://tasks.example/ x' 'https://tasks.example/\x' $'https://tasks.example/\nx' 'https://tasks.example/é' \
		'https://tasks.example/<x>' 'https://tasks.example/`id`' 'http://127.evil.example@x' \
		http://127.evil.example http://127.0.0.1.evil.example:7295 http://a.localhost http://127.1 'http://[::2]' \
		'https://tasks.example/mcp?token=abc' "https://tasks.example/pawl_$(head -c 43 /dev/zero | tr '\0' a)"; do
		for client in claude codex; do
			call 2 setup $client --http "$url" --yes
		done
	done
	same "$before" "$(tree)"
	complains PAWL_SERVER_TOKEN
	for client in vscode qwen amp; do
		call 2 setup $client --http https://tasks.example --yes
	done
	call 2 setup --all --http https://tasks.example --yes
	call 2 setup --list --http https://tasks.example
	call 2 setup claude --http https://tasks.example --hooks --yes
	complains "pawl mcp"
	call 2 setup claude --http https://tasks.example --remove --yes
	same "$before" "$(tree)"
}

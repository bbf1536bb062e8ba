#!/usr/bin/env bats
# The text of a task must not reach the terminal raw; colour appears only on a terminal.

load common

escape=$'\e[31mred\e]0;owned\a'
bidi=$'\u202eevil\u202c \u2066x\u2069 \u200f \u061c'
controls=$'a\x01b\x08c\x7fd\u0085e\rf'

# clean: the output has no control character but newline, and no bidi character
clean() {
	local all=$output$'\n'$stderr
	! LC_ALL=C grep -q $'[\x01-\x08\x0b-\x1f\x7f]' <<<"$all" || {
		echo "a raw control character"
		return 1
	}
	! LC_ALL=C grep -q $'\xe2\x80[\xaa-\xae\x8e\x8f]\|\xe2\x81[\xa6-\xa9]\|\xd8\x9c\|\xc2[\x80-\x9f]' <<<"$all" || {
		echo "a raw bidi or C1 character"
		return 1
	}
}

setup() {
	fresh
	queue
	pawl create "t $escape $bidi $controls" -i bad -l $'l\e[1m\u202e' --type $'y\u202e' \
		-d "$escape$bidi$controls" --acceptance "$escape"
	pawl comment bad "$escape $bidi $controls" -a $'eve\u202e'
}

@test "the check of this file for clean text" {
	for output in "$escape" "$bidi" "$controls" $'\u202e' $'\u2066' $'\u200f' $'\u061c' $'\u0085' $'\x7f' $'\r'; do
		not clean
	done
	output=$'fine \u00e9 \u2192 \u2026 \xe2\x80\x93\n\ttoo'
	clean
}

@test "text: controls, escapes and bidi characters are spelt out everywhere" {
	for args in list "show bad" "find red" log "log bad" next "next --explain" status "claim bad" "lock list" \
		"lock status bad" "lock check bad" "status bad" "lock cleanup" "heartbeat bad"; do
		read -ra words <<<"$args"
		call 0 "${words[@]}"
		clean
	done
	call 0 show bad
	says '\x1b[31mred' '\u{202e}evil' '\x01' '\x08' '\x7f' '\u{85}'
	call 0 list
	says '\x1b[31mred' '\u{202e}'
}

@test "text: one line of a table stays one line" {
	pawl create $'two\nlines' -i two || true
	call 0 list
	clean
	pawl create x -i multi -d $'one\ntwo\tthree'
	call 0 show multi
	says "one" "two"
	clean
}

@test "messages: words that the user typed are spelt out as well" {
	call 2 create x --priority "$escape"
	clean
	call 2 "$escape"
	clean
	call 2 list "--$escape"
	clean
	call 2 list --color "$escape"
	clean
	call 2 claim "$bidi"
	clean
	call 2 list -C "$escape"
	clean
	call 40 list --store "$escape:x"
	clean
	call 2 config get "$escape"
	clean
	call 2 help "$escape"
	clean
	PAWL_LEASE=$escape call 40 list
	clean
}

@test "messages: another's name and reason" {
	pawl claim bad -a $'eve\u202e'
	call 20 claim bad
	clean
	complains '\u{202e}'
	pawl block bad -a $'eve\u202e' -r "$escape" -u "$bidi"
	call 0 show bad
	clean
}

@test "porcelain: every value stays on its line" {
	pawl claim bad
	lines 0 fail bad -r $'two\nlines\e[0m'
	exactly 'TASK_FAILED: task=bad reason=two\x0alines\x1b[0m'
	lines 0 list
	clean
	lines 0 log
	clean
	lines 0 next --explain
	clean
}

@test "JSON: the text itself, escaped" {
	needs_terminal
	ask 0 show bad
	is --arg t "$escape" '.task.acceptance == $t'
	LC_ALL=C not grep -q $'[\x01-\x08\x0b-\x1f]' <<<"$output"
	ask 0 list
	LC_ALL=C not grep -q $'[\x01-\x08\x0b-\x1f]' <<<"$output"
}

coloured() {
	[[ $1 == *$'\e['[0-9]* ]]
}

@test "colour: on a terminal, and nowhere else" {
	needs_terminal
	pawl create plain -i plain
	call 0 list
	not coloured "$output"
	coloured "$(on_terminal "'$PAWL' list")"
	not coloured "$(NO_COLOR=1 on_terminal "'$PAWL' list")"
	not coloured "$(TERM=dumb on_terminal "'$PAWL' list")"
	not coloured "$(on_terminal "'$PAWL' list --color never")"
	not coloured "$(on_terminal "'$PAWL' list --no-color")"
	not coloured "$(on_terminal "'$PAWL' list --json")"
	not coloured "$(on_terminal "'$PAWL' list --porcelain")"
	not coloured "$(PAWL_COLOR=never on_terminal "'$PAWL' list")"
	coloured "$(NO_COLOR='' on_terminal "'$PAWL' list")"
}

@test "colour: --color always beats NO_COLOR and no terminal" {
	call 0 list --color always
	coloured "$output"
	NO_COLOR=1 call 0 list --color always
	coloured "$output"
	NO_COLOR=1 PAWL_COLOR=always call 0 list
	not coloured "$output"
	PAWL_COLOR=always call 0 list
	coloured "$output"
	call 0 list --color always --json
	not coloured "$output"
	call 44 show nope
	not coloured "$stderr"
	call 44 show nope --color always
	coloured "$stderr"
}

@test "a terminal gets no raw escapes of a task, only ours" {
	needs_terminal
	seen=$(on_terminal "'$PAWL' list; '$PAWL' show bad; '$PAWL' log; '$PAWL' next")
	[[ $seen == *'\x1b[31mred'* ]]
	[[ $seen != *$'\e[31mred'* ]]
	[[ $seen != *$'\e]0;'* ]]
	[[ $seen != *$'\u202e'* ]]
}

@test "a long name does not break the rows" {
	needs_terminal
	name=$(printf 'n%.0s' {1..120})
	new "another title"
	pawl claim t1 -a "$name"
	for args in list "lock list" status "next --explain"; do
		seen=$(on_terminal "stty cols 100; '$PAWL' $args --color never" | tr -d '\r')
		echo "$seen"
		while IFS= read -r row; do
			[ "${#row}" -le 100 ]
		done <<<"$seen"
		[[ $seen == *nnn…*another* ]]
	done
	call 0 list
	says "$name"
}

@test "a narrow terminal: tables are cut, not wrapped" {
	needs_terminal
	pawl create "$(printf 'word %.0s' {1..60})" -i long
	seen=$(on_terminal "stty cols 60; '$PAWL' list --color never" | tr -d '\r')
	while IFS= read -r row; do
		[ "${#row}" -le 60 ]
	done <<<"$seen"
	[[ $seen == *…* ]]
}

@test "a terminal gets no raw character of a task in JSON, in an export, in messages" {
	local args
	needs_terminal
	for args in "show bad --json" "list --json" "log --json" "export -o - --format json" "export -o - --format csv" "show bad --color never" \
		"claim bad --agent x --color never" "claim bad --agent y --color never"; do
		echo "$args"
		output=$(on_terminal "'$PAWL' $args" | tr -d '\r') stderr=
		[ -n "$output" ]
		clean
	done
	output=$(on_terminal "'$PAWL' list --json")
	jq -e '.tasks[0].title | contains("\u202e")' <<<"$output"
	"$PAWL" export -o - --format csv >piped
	grep -qF "${bidi:0:1}" piped # into a pipe as it is
}

# Everything that pawl prints goes through base/text.c. The others write no text: a constant without memory, the
# sequence that ends curses, the streams of curses and libedit, and the protocol of MCP.
@test "no file but base/text.c writes to standard output or standard error" {
	cd "$PAWL_SOURCE"
	output=$(grep -rnE --include='*.[ch]' \
		-e '(^|[^_a-z])(printf|puts|putchar|vprintf|perror|psignal)\(' \
		-e '[^_a-z](fputs|fputc|putc|fwrite|fprintf|vfprintf|dprintf|vdprintf|write|writev|send|fs_write_all|fdopen)\(.*(stdout|stderr|STD(OUT|ERR)_FILENO)' \
		-e '[^_a-z](dprintf|write|fs_write_all)\([12],' \
		-e '(^|[^_a-z."])(stdout|stderr)([^_a-z]|$)' src |
		grep -vE '^[^:]*:[0-9]+:\s*(/?\*|//|\.(help|detail|model|summary|example))|__attribute__|".*(stdout|stderr).*"|\* .*(stdout|stderr)|/\* .*\*/$' |
		grep -vE '^src/base/(text|arena)\.c:|^src/face/board/board_term\.c:.*(leave|newterm)|^src/face/cli/line_editor\.c:.*el_init|^src/face/mcp/mcp_server\.c:.*STDOUT_FILENO') || true
	same "$output" ''
}

# code_points: the numbers in ranges "a-b" or "a", in hex, as one list
code_points() {
	while IFS=- read -r first last; do
		seq "$((16#$first))" "$((16#${last:-$first}))"
	done | sort -n
}

@test "the web board spells out the characters that the terminal spells out" {
	command -v node >/dev/null || skip "needs node"
	# tab and line feed keep their meaning in a page; half a pair of UTF-16 is not UTF-8, which C spells out as bytes
	sed -n '/^static bool text_deceives/,/^}/s/^\t\t{ 0x\([0-9a-f]*\), 0x\([0-9a-f]*\) },.*/\1-\2/p' "$PAWL_SOURCE/src/base/text.c" | code_points | grep -vx '9\|10' >terminal
	node -e 'const s = require("fs").readFileSync(process.argv[1], "utf8"), r = new RegExp(s.match(/^\t\/(\[.*\])\/gu;$/m)[1], "u");
		for (let n = 0; n < 0x110000; n++) if (r.test(String.fromCodePoint(n)) && (n < 0xd800 || n > 0xdfff)) console.log(n)' "$PAWL_SOURCE/web/dom.js" >web
	[ "$(wc -l <terminal)" -gt 4000 ]
	cmp terminal web
}

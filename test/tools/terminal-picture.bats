#!/usr/bin/env bats
# The pictures in README.md show what the program prints today.

load ../cli/common

setup() {
	trace_failures
	needs_terminal
	source=${PAWL_SOURCE:-$(cd "$BATS_TEST_DIRNAME/../.." && pwd)}
	picture=$source/tools/terminal-picture
	build=$(dirname "$PAWL")
}

@test "picture: doc/terminal.svg is up to date" {
	"$picture" "$build" >"$BATS_TEST_TMPDIR/terminal.svg"
	diff "$source/doc/terminal.svg" "$BATS_TEST_TMPDIR/terminal.svg" || {
		echo "run: make docs"
		return 1
	}
}

@test "picture: doc/board.svg is up to date" {
	needs tmux
	[ -e "$build/pawl-board.so" ] || skip "needs ncursesw"
	"$source/tools/board-picture" "$build" >"$BATS_TEST_TMPDIR/board.svg"
	diff "$source/doc/board.svg" "$BATS_TEST_TMPDIR/board.svg" || {
		echo "run: make docs"
		return 1
	}
}

@test "picture: README.md shows both boards, in pictures of modest size" {
	for file in board.svg board-light.png board-dark.png; do
		grep -q "doc/$file" "$source/README.md"
		[ "$(stat -c %s "$source/doc/$file")" -lt 120000 ]
	done
}

@test "picture: it is well formed, and follows the reader's choice of light or dark" {
	for name in terminal board; do
		python3 -c 'import sys, xml.dom.minidom; xml.dom.minidom.parse(sys.argv[1])' "$source/doc/$name.svg"
		grep -q 'prefers-color-scheme:dark' "$source/doc/$name.svg"
	done
	run "$picture" --theme dark "$build"
	[[ $output != *prefers-color-scheme* ]]
}

@test "picture: a build that is not there" {
	for tool in terminal-picture board-picture web-picture; do
		run "$source/tools/$tool" "$BATS_TEST_TMPDIR"
		[ "$status" -eq 1 ]
		[[ $output == *"build first" ]]
	done
}

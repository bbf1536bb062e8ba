#!/usr/bin/env bats
# The picture in README.md shows what the program prints today.

setup() {
	source=${PAWL_SOURCE:-$(cd "$BATS_TEST_DIRNAME/../.." && pwd)}
	picture=$source/tools/terminal-picture
	build=$(dirname "$PAWL")
	script -qec true /dev/null </dev/null >/dev/null 2>&1 || skip "no pseudo-terminal to be had here"
}

@test "picture: doc/terminal.svg is up to date" {
	"$picture" "$build" >"$BATS_TEST_TMPDIR/terminal.svg"
	diff "$source/doc/terminal.svg" "$BATS_TEST_TMPDIR/terminal.svg" || {
		echo "run: make docs"
		return 1
	}
}

@test "picture: it is well formed, and follows the reader's choice of light or dark" {
	python3 -c 'import sys, xml.dom.minidom; xml.dom.minidom.parse(sys.argv[1])' "$source/doc/terminal.svg"
	grep -q 'prefers-color-scheme:dark' "$source/doc/terminal.svg"
	run "$picture" --theme dark "$build"
	[[ $output != *prefers-color-scheme* ]]
}

@test "picture: a build that is not there" {
	run "$picture" "$BATS_TEST_TMPDIR"
	[ "$status" -eq 1 ]
	[[ $output == *"build first" ]]
}

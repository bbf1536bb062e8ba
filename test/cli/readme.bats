#!/usr/bin/env bats
# The examples of README.md, as they are typed there.

load common

setup() {
	fresh
	mkdir "$BATS_TEST_TMPDIR/bin"
	ln -s "$PAWL" "$BATS_TEST_TMPDIR/bin/pawl"
	PATH=$BATS_TEST_TMPDIR/bin:$PATH
}

# example WORD: the block of README.md that contains WORD
example() {
	awk -v word="$1" '/^```/ { if (index(text, word)) printf "%s", text; text = ""; next } { text = text $0 "\n" }' \
		"$PAWL_SOURCE/README.md" >example
	[ -s example ]
}

@test "readme: each command that it shows, with its output" {
	"$PAWL_SOURCE/test/docs/run" "$PAWL_SOURCE/README.md"
}

@test "readme: its picture and its blocks are there" {
	grep -q '^!\[.*](doc/terminal.svg)$' "$PAWL_SOURCE/README.md"
	[ "$(grep -c '^```console$' "$PAWL_SOURCE/README.md")" -eq 2 ]
	[ "$(wc -l <"$PAWL_SOURCE/README.md")" -le 150 ]
}

@test "readme: an agent's loop" {
	queue
	pawl create one -q
	pawl create two -q
	pawl create bad -q
	printf '#!/bin/sh\necho "$1" >>seen\n[ "$1" != t3 ]\n' >"$BATS_TEST_TMPDIR/bin/your-agent"
	chmod +x "$BATS_TEST_TMPDIR/bin/your-agent"
	example "next --claim -q --wait 10m"
	sed -i 's/ 10m/ 1s/' example
	run bash -ux example
	[ "$(cat seen)" = $'t1\nt2\nt3' ]
	ask 0 list --status done,in-progress
	is '[.tasks[].status] | sort == ["Done", "Done", "In Progress"]'
}

# committed STORE: the files that git would commit, in a new repository with a queue in that store
committed() {
	rm -rf repo
	git init -q repo
	(
		cd repo || exit
		pawl init -q --store "$1" && pawl create one -q && pawl claim t1 -q && pawl backup -q
		git add -A
	) >/dev/null
	git -C repo ls-files
}

@test "readme: the files that git commits, for each store" {
	settings=$'.pawl/.gitignore\n.pawl/config'
	[ "$(committed sqlite:.pawl/queue.db)" = "$settings" ]
	[ "$(committed git:.)" = "$settings" ]
	[ "$(committed files:tasks)" = "$settings"$'\ntasks/.gitignore' ]
}

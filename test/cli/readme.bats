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

@test "readme: one minute" {
	example "pawl init"
	bash -eux example
	ask 0 list --status Done
	is '[.tasks[].id] == ["t1", "t2"] and .tasks[1].attempts == 2'
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

@test "readme: in and out" {
	queue
	for title in one two three; do pawl create $title -q; done
	mkdir tasks
	printf -- '---\ntitle: four\n---\nBy hand.\n' >tasks/t9.md
	example "pawl export --output tasks.csv"
	file=$("$PAWL" backup -q)
	sed -i "s|restore FILE|restore '$file'|; s|^pawl migrate|rm -r tasks; &|" example
	bash -eux example
	grep -q two tasks.csv
	call 0 list --store files:tasks
	says one two three
	not says four # it came after the backup
}

#!/usr/bin/env bats
# tools/check-names notices a planted fault of each kind, and nothing else.

setup() {
	source=${PAWL_SOURCE:-$(cd "$BATS_TEST_DIRNAME/../.." && pwd)}
	tree=$BATS_TEST_TMPDIR/tree
	mkdir -p "$tree"/src/{cmd,store/git,face/serve}
	printf '/* next: chooses a task. */\nstatic int next_run(int era_length)\n{\n\treturn era_length;\n}\n' |
		sed 's/era_length/length/g' >"$tree/src/cmd/next.c"
	printf '/* look at the desk */\nint next_find(const char *text); /* "mend" */\n' >"$tree/src/cmd/next.h"
}

# names STATUS [TEXT...]: checks the tree; the output has one line for each TEXT, with that text in it
names() {
	local want=$1
	shift
	PAWL_ROOT=$tree run "$source/tools/check-names"
	echo "$output"
	[ "$status" -eq "$want" ]
	[ "$want" -eq 0 ] || [ "${#lines[@]}" -eq $# ]
	for text; do [[ $output == *"$text"* ]]; done
}

@test "names: a tree without faults; comments and strings are not names" {
	printf '/* x */\nconst char *said = "the desk has a seat";\nvoid next_hang_up(void);\n' >"$tree/src/cmd/said.c"
	names 0 "3 files, no fault"
}

@test "names: a static function with a name of one word" {
	printf 'static enum result run(struct session *s,\n\t\t       struct reply *out)\n{\n}\n' >>"$tree/src/cmd/next.c"
	names 1 "src/cmd/next.c:6: static run()"
	printf 'static const char *show(int n);\n' >>"$tree/src/cmd/next.h"
	names 1 "src/cmd/next.c:6: static run()" "src/cmd/next.h:3: static show()"
}

@test "names: two files with the same name" {
	cp "$tree/src/cmd/next.c" "$tree/src/store/git/next.c"
	names 1 "src/store/git/next.c:1: src/cmd/next.c has the same name"
}

@test "names: a word that the code does not use, in a name of any kind" {
	for name in desk_find MEND_ALL judged struct_seats looked_at git_way; do
		printf '/* x */\nint %s;\n' "$name" >"$tree/src/cmd/said.c"
		names 1 "src/cmd/said.c:2: $name: say "
	done
	printf '/* x */\n' >"$tree/src/cmd/said.c"
	printf '/* x */\n' >"$tree/src/cmd/census.c"
	names 1 "src/cmd/census.c:1: file census: say count"
}

@test "names: a word that one folder does not use" {
	printf '/* x */\nint turn, fold;\n' >"$tree/src/cmd/said.c"
	names 0
	printf '/* x */\nint turn;\n' >"$tree/src/face/serve/batch.c"
	names 1 "src/face/serve/batch.c:2: turn: say batch"
	rm "$tree/src/face/serve/batch.c"
	printf '/* x */\nint fold;\n' >"$tree/src/store/git/base.c"
	names 1 "src/store/git/base.c:2: fold: say compact"
}

@test "names: a file without an opening comment, and one that is too long" {
	printf '#include "x.h"\n' >"$tree/src/cmd/said.c"
	names 1 "src/cmd/said.c:1: it does not open with a comment"
	printf '/* x */\n' >"$tree/src/cmd/said.c"
	printf '\n%.0s' $(seq 600) >>"$tree/src/cmd/said.c"
	names 1 "src/cmd/said.c:600: it has 601 lines"
}

#!/usr/bin/env bats
# CONTRIBUTING.md names files, symbols, tests and targets that exist.

load places

setup() {
	source=${PAWL_SOURCE:-$(cd "$BATS_TEST_DIRNAME/../.." && pwd)}
	page=$source/CONTRIBUTING.md
}

# unknown KIND NAME...: those of NAME that the page mentions, but that are not in the list on standard input
unknown() {
	local kind=$1
	sort -u >"$BATS_TEST_TMPDIR/known"
	shift
	printf '%s\n' "$@" | sort -u | comm -23 - "$BATS_TEST_TMPDIR/known" | sed "s/^/no $kind: /"
}

@test "each step names a file and a symbol that exist" {
	[ "$(rows "$page" | wc -l)" -ge 25 ]
	[ "$(rows "$page" | wc -l)" -eq "$(grep -cE '^(\| .* \| |- .*: )\[(src|test)/' "$page")" ]
	run lost "$page"
	echo "$output"
	[ -z "$output" ]
}

@test "a file or a symbol that moved is noticed" {
	sed 's/`cmd_comment`/`cmd_comments`/; s#src/store/registry.c#src/store/register.c#g; s/`stores`/`shops`/' "$page" >"$BATS_TEST_TMPDIR/page.md"
	run lost "$BATS_TEST_TMPDIR/page.md"
	[[ $output == *"src/cmd/comment.c has no cmd_comments"* ]]
	[[ $output == *"src/store/register.c has no known"* ]]
	[[ $output == *"test/meson.build has no shops"* ]]
}

# steps SECTION: the number of rows in the tables of "Add a SECTION"
steps() {
	awk -v title="## Add a $1" '/^## / { inside = $0 == title } inside && /^\| .* \[/' "$page" | wc -l
}

@test "a field has at most four steps, an operation with its command at most six" {
	[ "$(steps field)" -ge 2 ] && [ "$(steps field)" -le 4 ]
	[ "$(steps command)" -ge 4 ] && [ "$(steps command)" -le 6 ]
	[ "$(steps store)" -ge 8 ]
}

@test "the tests and suites that are named exist" {
	meson introspect --tests "$PAWL_BUILD" >"$BATS_TEST_TMPDIR/tests.json"
	mapfile -t tests < <(grep -oE 'meson test -C build( -v)?( [a-z]+-[a-z_]+)+' "$page" | grep -oE ' [a-z]+-[a-z_]+' | tr -d ' ')
	mapfile -t suites < <(grep -oE -- '--suite [a-z]+' "$page" | sed 's/.* //')
	[ "${#tests[@]}" -ge 4 ] && [ "${#suites[@]}" -ge 1 ]
	run unknown test "${tests[@]}" < <(jq -r '.[].name' "$BATS_TEST_TMPDIR/tests.json")
	echo "$output"
	[ -z "$output" ]
	run unknown suite "${suites[@]}" < <(jq -r '.[].suite[]' "$BATS_TEST_TMPDIR/tests.json" | sed 's/.*://')
	[ -z "$output" ]
	run unknown test unit-nothing < <(jq -r '.[].name' "$BATS_TEST_TMPDIR/tests.json")
	[ "$output" = "no test: unit-nothing" ]
}

@test "the targets, steps and scripts that are named exist" {
	mapfile -t targets < <(grep -oE '`make [a-z]+' "$page" | sed 's/.* //')
	run unknown target "${targets[@]}" < <(sed -nE 's/^([a-z]+):.*/\1/p' "$source/Makefile")
	[ -z "$output" ]
	for file in $(grep -oE '\b((test/)?tools/[a-z-]+|test/(cli|docs)/[a-z.-]+)' "$page"); do
		[ -e "$source/$file" ]
	done
	for step in $(grep -oE 'tools/check [a-z]+' "$page" | sed 's/.* //'); do
		grep -q "^step_$step()" "$source/tools/check"
	done
}

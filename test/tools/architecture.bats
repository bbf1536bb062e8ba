#!/usr/bin/env bats
# The table "Where is the rule that …" of doc/architecture.md leads to places that exist.

load places

setup() {
	source=${PAWL_SOURCE:-$(cd "$BATS_TEST_DIRNAME/../.." && pwd)}
	page=$source/doc/architecture.md
}

@test "every rule of the table stands in the file that is named" {
	[ "$(rows "$page" | wc -l)" -ge 20 ]
	[ "$(rows "$page" | wc -l)" -eq "$(grep -c '^| .*](\.\./src/' "$page")" ]
	run lost "$page"
	echo "$output"
	[ -z "$output" ]
}

@test "a symbol that moved is noticed" {
	sed 's/`index_cmp`/`index_compare`/; s#src/core/counts.c#src/core/graphs.c#g' "$page" >"$BATS_TEST_TMPDIR/page.md"
	run lost "$BATS_TEST_TMPDIR/page.md"
	[[ $output == *"src/core/order.c has no index_compare"* ]]
	[[ $output == *"src/core/graphs.c has no graph_reaches"* ]]
}

@test "the folders of the page are those of src/" {
	sed -nE 's/^\| `src\/([a-z]+)` .*/\1/p' "$page" | sort >"$BATS_TEST_TMPDIR/said"
	(cd "$source/src" && find . -mindepth 1 -maxdepth 1 -type d -printf '%f\n' | grep -vx module | sort) >"$BATS_TEST_TMPDIR/there"
	diff "$BATS_TEST_TMPDIR/said" "$BATS_TEST_TMPDIR/there"
}

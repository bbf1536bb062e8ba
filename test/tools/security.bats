#!/usr/bin/env bats
# Each promise of doc/security.md is shown by a test that exists.

setup() {
	source=${PAWL_SOURCE:-$(cd "$BATS_TEST_DIRNAME/../.." && pwd)}
	page=$source/doc/security.md
	copy=$BATS_TEST_TMPDIR/page.md
}

# changed SED: checks a copy of the page that sed has changed
changed() {
	sed "$1" "$page" >"$copy"
	! cmp -s "$page" "$copy"
	run "$source/tools/check-security" "$copy"
	[ "$status" -eq 1 ]
}

@test "every promise names a test that exists" {
	run "$source/tools/check-security"
	echo "$output"
	[ "$status" -eq 0 ] && [ -z "$output" ]
	[ "$(grep -c '^| .*`[a-z_/]*\.[a-z]*: ' "$page")" -ge 40 ]
}

@test "a promise without a test is noticed, and a test or an attacker that is gone" {
	changed 's/^| \(.*\) | `hostile\/attacks\/trust.bash: an_agent_trusts`.*/| \1 | |/'
	[[ $output == *"no test shows"* ]]
	changed 's/trust.bash: an_agent_trusts/trust.bash: an_agent/'
	[[ $output == *"has no test 'an_agent'"* ]]
	changed 's/trust.bash: an_agent_trusts/trusts.bash: an_agent_trusts/'
	[[ $output == *"there is no file"* ]]
	changed 's/`hostile\/attacks\/trust.bash: an_agent_trusts`/`an_agent_trusts`/'
	[[ $output == *"is not FILE: NAME"* ]]
	changed 's/^### A proxy.*/### Nobody/'
	[[ $output == *"no promise is about: proxy"* ]]
}

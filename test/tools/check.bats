#!/usr/bin/env bats
# tools/check and its helpers: how they choose a sample, which steps it leaves out, and the report at the end.

bats_require_minimum_version 1.5.0
report=$PAWL_SOURCE/tools/test-report
attacks=$PAWL_SOURCE/test/hostile/attacks

setup() {
	unset PAWL_TEST_SAMPLE PAWL_TEST_SHARE
}

# one_log FILE: sixteen tests, the n-th of which took n seconds
one_log() {
	for n in {1..16}; do
		printf '{"name": "pawl:unit / t%d", "result": "OK", "returncode": 0, "duration": %d.0, "stdout": ""}\n' "$n" "$n"
	done >"$1"
}

# attack_names SAMPLE SHARE FILE: the attacks that test/hostile/run would try
attack_names() {
	PAWL_TEST_SAMPLE=$1 PAWL_TEST_SHARE=$2 "$PAWL_SOURCE/test/hostile/run" --list "$attacks/$3.bash"
}

@test "the ten slowest tests are printed, the slowest first" {
	one_log "$BATS_TEST_TMPDIR/tests-build-gcc.json"
	run "$report" slowest "$BATS_TEST_TMPDIR/tests-build-gcc.json"
	[ "$status" -eq 0 ]
	[ "${#lines[@]}" -eq 10 ]
	[[ ${lines[0]} == *"16.0 s  t16 (gcc)" ]]
	[[ ${lines[9]} == *"7.0 s  t7 (gcc)" ]]
}

@test "check: an unknown step is refused, and nothing runs" {
	run "$PAWL_SOURCE/tools/check" format nosuch
	[ "$status" -eq 2 ]
	[[ $output == *"no step 'nosuch'"* ]]
	[[ $output != *clang-format* ]]
}

@test "check: a step that fails is shown, with its log, and counts" {
	mkdir -p "$BATS_TEST_TMPDIR/tree/tools"
	cp "$PAWL_SOURCE"/tools/{check,test-report} "$BATS_TEST_TMPDIR/tree/tools"
	echo 'int  x ;' >"$BATS_TEST_TMPDIR/tree/bad.c"
	printf 'BasedOnStyle: LLVM\n' >"$BATS_TEST_TMPDIR/tree/.clang-format"
	run "$BATS_TEST_TMPDIR/tree/tools/check" format
	[ "$status" -eq 1 ]
	[[ $output == *"bad.c"*"failed"*"format"*"check: 0 passed, 1 failed" ]]
	echo 'int x;' >"$BATS_TEST_TMPDIR/tree/bad.c"
	run "$BATS_TEST_TMPDIR/tree/tools/check" format
	[ "$status" -eq 0 ]
	[[ $output == "ok "*"check: 1 passed, 0 failed" ]]
}

# stub_check: tools/check in $tree with steps that do nothing but what `stub_NAME` says
stub_check() {
	tree=$BATS_TEST_TMPDIR/tree
	mkdir -p "$tree/tools"
	cp "$PAWL_SOURCE"/tools/{test-report,sanitizers.bash} "$tree/tools"
	awk -v stubs="$1" '/^verbose=false/ {
			for (i = split("gcc layers docs asan fuzz format shellcheck cppcheck names coverage model words mutants", s, " "); i; i--)
				print "step_" s[i] "() { echo in " s[i] "; }"
			print stubs
		} { print }' "$PAWL_SOURCE/tools/check" >"$tree/tools/check"
	chmod +x "$tree/tools/check"
	run "$tree/tools/check"
	echo "$output"
}

@test "check: a line for each step, and a first line at once with the sample's number" {
	PAWL_TEST_SAMPLE=77 stub_check ''
	[ "$status" -eq 0 ]
	[[ ${lines[0]} == *"PAWL_TEST_SAMPLE=77" ]]
	[ "$(grep -c '^ok  *[0-9]* s  ' <<<"$output")" -eq 13 ]
	[[ $output == *"check: 13 passed, 0 failed" ]]
}

@test "check: a step that fails beside the others ends them" {
	began=$SECONDS
	stub_check 'step_model() { echo why it failed; false; }; step_gcc() { sleep 60; echo >gcc-went-on; }'
	[ "$status" -eq 1 ]
	[ $((SECONDS - began)) -lt 50 ]
	[[ $output == *"why it failed"*"failed "*"model"*"check: "*" 1 failed" ]]
	[[ $output != *" gcc "* ]]
	[ ! -e "$tree/gcc-went-on" ]
}

@test "check: a skipped step says why, and is not a failure" {
	stub_check 'step_fuzz() { echo no clang; return 77; }'
	[ "$status" -eq 0 ]
	[[ $output == *"skipped "*"fuzz"*"no clang"* ]]
	[[ $output == *"check: 12 passed, 0 failed" ]]
}

# examples SUITE...: a project in $tree whose test `once` of each suite fails the first time and passes the second time
examples() {
	local suite
	tree=$BATS_TEST_TMPDIR/tree
	mkdir -p "$tree"
	cat >"$tree/once" <<-'EOF'
		#!/bin/sh
		echo 1..2
		echo "ok 1 a steady case of $1"
		[ -e "$0.$1" ] || bad='not '
		touch "$0.$1"
		echo "${bad}ok 2 a case of $1 that is sometimes slow"
		[ -z "$bad" ] || echo "# it met $2"
	EOF
	cat >"$tree/skips" <<-'EOF'
		#!/bin/sh
		printf '1..2\nok 1 one # skip needs nginx\nok 2 two # SKIP another store\n'
	EOF
	printf '#!/bin/sh\necho 1..1\necho "# skipped: needs root to mount"\necho "not ok 1 # SKIP test_three"\n' >"$tree/cmocka"
	printf '#!/bin/sh\necho 1..1\necho not ok 1 it is broken\necho "# the cause"\n' >"$tree/broken"
	chmod +x "$tree"/{once,skips,broken,cmocka}
	{
		echo "project('pawl')"
		echo "test('fine', find_program('true'), suite: 'other')" # Meson's log names the suites if there are several
		for suite; do
			case $suite in
			broken | skips) echo "test('$suite', find_program('$suite'), protocol: 'tap', suite: 'cli')" ;;
			cmocka) echo "test('cmocka', find_program('cmocka'), suite: 'unit')" ;;
			*) echo "test('${suite%:*}-once', find_program('once'), args: ['${suite%:*}', '${suite#*:}'], protocol: 'tap', suite: '${suite%:*}')" ;;
			esac
		done
	} >"$tree/meson.build"
	meson setup "$tree/build-gcc" "$tree" >/dev/null
	stub_check 'step_gcc() { run_tests build-gcc; }'
}

@test "check: a test that passes when it runs again is unsteady, by name; it is not a failure" {
	examples cli:a-slow-disk web:a-slow-browser
	[ "$status" -eq 0 ]
	[[ $output == *"running again, alone: "*"cli-once"* ]]
	[[ $output == *"unsteady: cli-once: a case of cli that is sometimes slow"*"unsteady: web-once: a case of web "* ]]
	[ "${lines[-1]}" = "check: 15 passed, 0 failed, 2 unsteady" ]
}

@test "check: a test that fails twice has failed, and its output is shown" {
	examples broken cli:a-slow-disk
	[ "$status" -eq 1 ]
	[[ $output == *"failed: broken: it is broken"*"# the cause"* ]]
	[[ $output == *"unsteady: cli-once: "* ]]
	[ "${lines[-1]}" = "check: 14 passed, 1 failed, 1 unsteady" ]
}

@test "check: more than three unsteady tests fail" {
	examples cli:a web:b unit:c mcp:d
	[ "$status" -eq 1 ]
	[ "$(grep -c '^unsteady: ' <<<"$output")" -eq 4 ]
	[[ $output == *"check: more than 3 unsteady tests"* ]]
}

# failed_log SUITE TEXT: a log in which a test of the suite failed and said TEXT
failed_log() {
	printf '{"name": "pawl:%s / x", "result": "ERROR", "returncode": 1, "duration": 1, "stdout": "1..1\\nnot ok 1 y\\n# %s\\n"}\n' \
		"$1" "$2" >"$BATS_TEST_TMPDIR/tests-build-gcc.json"
}

@test "check: what may break a promise does not run again" {
	failed_log cli+again load
	"$report" again "$BATS_TEST_TMPDIR/tests-build-gcc.json"
	for what in race:load store:load history:load sim:load queue:load combine+again:load fault:load hostile:load \
		cli:AddressSanitizer "cli:x.c:1: runtime error: overflow" "mcp:1 violation"; do
		failed_log "${what%%:*}" "${what#*:}"
		run "$report" again "$BATS_TEST_TMPDIR/tests-build-gcc.json"
		[ "$status" -eq 1 ]
	done
	examples race:load
	[ "$status" -eq 1 ]
	[[ $output != *"running again"* ]]
	[[ ${lines[-1]} == *" 1 failed" ]]
}

@test "check: skipped tests are listed with their reasons; in CI the programs must be there" {
	unset CI
	examples skips cmocka
	[ "$status" -eq 0 ]
	[[ $output == *"check: 3 skipped:"*"  another store"*"      skips: two"*"  needs nginx"*"      skips: one"* ]]
	[[ $output == *"  needs root to mount"*"      cmocka: test_three"* ]]
	rm -rf "$tree"
	CI=1 examples skips cmocka
	[ "$status" -eq 1 ]
	[[ $output == *"skipped, although CI has what it needs: skips: one: needs nginx"* ]]
	[[ $output != *"has what it needs: cmocka: test_three"* ]]
}

@test "bare-debian: the words that it does not know are refused" {
	for words in '--nosuch' '--release sid' '--release'; do
		# shellcheck disable=SC2086
		run "$PAWL_SOURCE/tools/bare-debian" $words
		[ "$status" -eq 2 ]
		[[ $output == *"--release NAME"* ]]
	done
}

@test "check: the sample goes by the commit" {
	stub_check ''
	(cd "$tree" && git init -q && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m a)
	run "$tree/tools/check"
	one=${lines[0]}
	run "$tree/tools/check"
	[ "${lines[0]}" = "$one" ]
	(cd "$tree" && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m b)
	run "$tree/tools/check"
	[ "${lines[0]}" != "$one" ]
}

@test "check: a share of the tests, by name; the slowest stay first" {
	eval "$(sed -n '/^one_of()/,/^}/p' "$PAWL_SOURCE/tools/check")"
	some=$(printf '%s\n' web cli-b cli-d cli-a-git cli-c unit)
	[ "$(PAWL_TEST_SAMPLE=1 one_of 2 '^cli-' <<<"$some")" = "$(printf '%s\n' web cli-b cli-d unit)" ]
	[ "$(PAWL_TEST_SAMPLE=2 one_of 2 '^cli-' <<<"$some")" = "$(printf '%s\n' web cli-a-git cli-c unit)" ]
	[ "$(PAWL_TEST_SAMPLE=2 one_of 3 '^cli-' <<<"$some")" = "$(printf '%s\n' web cli-b unit)" ]
}

@test "attacks: the same sample for the same number, some of each store, and all of them in turn" {
	for file in texts shared transfer; do
		all=$(attack_names 0 1 $file | sort)
		one=$(attack_names 4 6 $file | sort)
		[ "$one" = "$(attack_names 4 6 $file | sort)" ]
		[ "$(sed 's/.* //' <<<"$one" | sort -u)" = "$(sed 's/.* //' <<<"$all" | sort -u)" ]
		[ "$(wc -l <<<"$one")" -lt "$(wc -l <<<"$all")" ]
		[ "$(for n in {0..5}; do attack_names $n 6 $file; done | sort -u)" = "$all" ]
	done
}

@test "mutants: every sample finds a mutant whose text is not in the code any more" {
	mkdir -p "$BATS_TEST_TMPDIR/tree"/{tools,test/mutants,src}
	cp "$PAWL_SOURCE/tools/check-mutants" "$BATS_TEST_TMPDIR/tree/tools"
	echo 'int x;' >"$BATS_TEST_TMPDIR/tree/src/x.c"
	printf '== stale\nby sim\nfile src/x.c\n-int y;\n' >"$BATS_TEST_TMPDIR/tree/test/mutants/a.txt"
	run "$BATS_TEST_TMPDIR/tree/tools/check-mutants" --quick --share 5
	[ "$status" -eq 1 ]
	[[ $output == *"stale: its text is 0 times in src/x.c"* ]]
}

@test "make soak runs in full the steps that make check runs in part" {
	for part in torture sim mutants sanitize combine fault stores git tests threads fuzz model; do
		grep -q "part $part " "$PAWL_SOURCE/tools/soak"
	done
	run ! grep -q 'PAWL_TEST_SHARE\|no-suite' "$PAWL_SOURCE/tools/soak-tests"
	run ! grep -q 'no-suite again' <(sed -n '/^step_gcc/,/^}/p' "$PAWL_SOURCE/tools/check")
}

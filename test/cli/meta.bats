#!/usr/bin/env bats
# The suite about itself: every command, and every code that its help names, is exercised by some test.

load common

calls() {
	cat "$BATS_TEST_DIRNAME"/*.bats
}

# tried FORM CODE NAME: is there such a call? Codes of a call in a loop over all commands count.
tried() {
	grep -qE "(^|[^a-z])($1) $2 (-[^ ]+ +[^ ]+ )?$3( |\$)" all
}

@test "there are commands" {
	[ "$(all_commands | wc -l)" -ge 40 ]
	all_commands | grep -qx claim
	all_commands | grep -qx "lock acquire"
	all_commands | grep -qx "config unset"
}

@test "every command is exercised, in each form" {
	calls >all
	missing=
	while read -r name; do
		for form in "call|unchanged|refused" ask lines; do
			tried "$form" "[0-9]+" "$name" || missing="$missing
$name: no ${form%%|*}"
		done
	done < <(all_commands)
	same "$missing" ""
}

@test "every command is exercised with every code that its help names" {
	calls >all
	missing=
	while read -r name; do
		read -ra words <<<"$name"
		# 2, 30 and 40 are tried for all commands at once in usage.bats and store.bats
		for code in $("$PAWL" help "${words[@]}" | sed -n 's/^ *\([0-9][0-9]*\) [A-Z_]\{4,\} .*/\1/p' | grep -vx '2\|30\|40'); do
			tried "call|ask|lines|unchanged" "$code" "$name" || missing="$missing
$name: $code is not tried"
		done
	done < <(all_commands)
	same "$missing" ""
}

@test "every code of the contract is known to the suite, and the other way round" {
	codes=$("$PAWL" help codes | sed -n 's/^ *\([0-9][0-9]*\) \([A-Z_]*\) .*/\1 \2/p' | sort)
	known=$(for code in "${!code_names[@]}"; do echo "$code ${code_names[$code]}"; done | sort)
	same "$codes" "$known"
}

@test "every file is listed for Meson" {
	for file in "$BATS_TEST_DIRNAME"/*.bats; do
		name=$(basename "$file" .bats)
		sed -n '/^cli_tests = \[/,/^\]/p; /^on_postgres = /,/^}/p' "$BATS_TEST_DIRNAME/../meson.build" | grep -q "'$name'" || {
			echo "$name is neither in cli_tests nor in on_postgres"
			return 1
		}
	done
}

#!/usr/bin/env bats
# The prompt with an input that is not a terminal; test/prompt tests it on a terminal.

load common

# prompt CODE OPTION...: with the lines of standard input
prompt() {
	local want=$1
	shift
	call "$want" interactive "$@"
}

@test "interactive: one command a line; quotes, comments and blank lines" {
	prompt 0 <<-'END'
		create "Fix the parser" --id p -d 'with "quotes"'
		# not a command

		pawl create two\ words --id two
		claim p
		exit
		remove p
	END
	says "created p" "created two  two words" "claimed p"
	same "$(field p .description)" 'with "quotes"'
	status_is p "In Progress"
	prompt 0 </dev/null
	exactly ""
}

@test "interactive: continues after a failure; the exit code is the first one's, and the line is named" {
	new one --id a
	prompt 44 <<-'END'
		show nobody
		clam a
		show a
	END
	says "one" "Ready"
	complains "line 1 failed with 44: show nobody" "line 2 failed with 2: clam a" "did you mean"
	prompt 2 <<<"create 'half"
	complains "a quote is not closed"
	same "$("$PAWL" list -q)" a
}

@test "interactive: its options count for every line, and a line's own before them" {
	prompt 0 --agent alice --run r1 <<-'END'
		create x --id x
		create y --id y
		claim x
		claim y --agent bob
	END
	same "$(field x .lock.holder)" alice
	same "$(field y .lock.holder)" bob
	mkdir sub
	prompt 0 -C sub --color never <<<"list -q"
	says x
	ask 0 interactive <<<"show x"
	is '.task.id == "x"'
	lines 0 interactive <<<"list"
	says "=== Active Tasks ==="
	call 2 interactive --token 11111111-1111-4111-8111-111111111111 </dev/null
	complains "apply to one call"
	call 2 interactive --agent "" </dev/null
}

@test "interactive: a command does not get the lines that follow" {
	prompt 0 <<-'END'
		create x --id x -d -
		create y --id y
	END
	same "$(field x '.description // ""')" ""
	same "$("$PAWL" list -q | sort | tr '\n' ' ')" "x y "
}

@test "interactive: refused inside itself; lines that are not text" {
	prompt 2 <<<"interactive"
	complains "pawl interactive cannot run here"
	prompt 2 < <(printf 'create \xff\n')
	complains "UTF-8"
}

@test "interactive: the holder of a lock of the whole queue does not wait for itself" {
	prompt 0 --timeout 10m <<-'END'
		lock acquire @maintenance
		create x --id x
		claim x
		done x
		lock release @maintenance
	END
	status_is x Done
}

@test "interactive: no other command pays for its library" {
	not grep -q libedit < <(ldd "$PAWL")
}

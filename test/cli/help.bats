#!/usr/bin/env bats
# help, version, completion, man pages: generated from the table, and usable.

load common

@test "help on an exit code, by its number" {
	for code in "${!code_names[@]}"; do
		call 0 help "$code"
		[ "${lines[0]}" = "${code_names[$code]}" ]
		says "Exit code $code"
	done
	call 2 help 99
	call 2 help 021x
}

@test "help: every command has usage, example, codes, and fits 80 columns" {
	while read -r name; do
		read -ra words <<<"$name"
		call 0 help "${words[@]}"
		says "usage: pawl $name" $'\nexample' $'\nexit codes' "0 SUCCESS" "2 USAGE"
		example=${output#*$'\nexample'}
		[[ ${example%%$'\nexit codes'*} == *"pawl $name"* ]]
		for line in "${lines[@]}"; do
			[ ${#line} -le 80 ] || [[ $line == '  pawl '* || $line == '  '*'$('* ]]
		done
		text=$output
		call 0 "${words[@]}" --help
		same "$text" "$output"
		call 0 "${words[@]}" -h
		same "$text" "$output"
	done < <(all_commands)
}

@test "help: lists every command once, with groups; families; topics" {
	call 0 help
	says "usage: pawl" "pawl init" create claim lock doctor
	text=$output
	call 0 --help
	same "$text" "$output"
	for family in lock config id; do
		call 0 help $family
		says "usage: pawl $family COMMAND"
		call 0 $family --help
	done
	call 0 help options
	says --store --json --porcelain --token --request-id
	call 0 help codes
	says "41 INCOMPLETE_SUBTASKS" "44 NOT_FOUND" "10 NO_TASKS"
	ask 0 help claim
	is '.text | contains("usage: pawl claim")'
	lines 0 help claim
	says "usage: pawl claim"
}

@test "help: an unknown command" {
	call 2 help clam
	complains "pawl help claim"
	call 2 help lock chek
	complains "lock check"
	ask 2 help nonsense
}

@test "help: every name under see-also exists" {
	all=$'\n'$(all_commands)$'\n' n=0
	while read -r name; do
		read -ra words <<<"$name"
		call 0 help "${words[@]}"
		[[ $output == *$'\nsee also:'* ]] || continue
		see=${output##*$'\nsee also:'}
		see=${see%%$'\n`pawl'*}
		IFS=, read -ra others <<<"${see//$'\n'/ }"
		for other in "${others[@]}"; do
			read -r other <<<"$other" # without the blanks around it
			echo "$name: see also $other"
			[[ $all == *$'\n'"$other"[$'\n ']* ]]
			n=$((n + 1))
		done
	done <<<"${all:1:-1}"
	[ "$n" -gt 50 ]
}

@test "version" {
	call 0 version
	[[ ${lines[0]} =~ ^pawl\ [0-9]+\.[0-9]+\.[0-9]+ ]]
	call 0 --version
	[[ $output == "pawl "* ]]
	ask 0 version
	is '.version and .sqlite and (.stores | index("sqlite") != null)'
	lines 0 version
	[[ $output == "SUCCESS: version="* ]]
}

@test "completion: the scripts parse" {
	call 0 completion bash
	bash -n <<<"$output"
	call 0 completion zsh
	if command -v zsh >/dev/null; then zsh -n <(echo "$output"); fi
	call 0 completion fish
	if command -v fish >/dev/null; then fish -n <(echo "$output"); fi
	ask 0 completion bash
	is '.script | length > 100'
	lines 0 completion bash
	bash -n <<<"$output"
	call 2 completion tcsh
	complains bash zsh fish
}

@test "completion: no script lacks a command or an option" {
	all_commands >names
	while read -r name; do
		read -ra words <<<"$name"
		"$PAWL" help "${words[@]}" >"help-${name// /-}"
	done <names
	options=$(sed -n 's/^  \(-[a-zA-Z], \)\?--\([a-z-]*\) .*/\2/p' help-* | sort -u)
	[ "$(wc -l <<<"$options")" -gt 50 ]
	for shell in bash zsh fish; do
		script=$("$PAWL" completion $shell)
		for word in $(cat names) $options; do
			[[ $script == *"$word"* ]] || {
				echo "$shell: $word"
				return 1
			}
		done
	done
}

# complete_words WORD...: bash's completions of the last word
complete_words() {
	bash --norc -c '
		PATH="$1:$PATH"
		source <("$2" completion bash)
		shift 2
		spec=$(complete -p pawl) || exit 1
		[[ $spec =~ -F\ ([^ ]+) ]] || exit 1
		COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
		COMP_LINE="$*" COMP_POINT=${#COMP_LINE} COMP_TYPE=9 COMP_KEY=9
		"${BASH_REMATCH[1]}" pawl "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}" 2>errors
		cat errors >&2
		printf "%s\n" "${COMPREPLY[@]}" | sed "s/ *$//"
	' bash "$BATS_TEST_TMPDIR/bin" "$PAWL" "$@"
}

offers() {
	local want=$1 got
	shift
	got=$(complete_words "$@")
	grep -qx -- "$want" <<<"$got" || {
		echo "for '$*' there is no $want in: $got"
		return 1
	}
}

@test "bash completes commands, subcommands, options, choices and ids" {
	mkdir "$BATS_TEST_TMPDIR/bin"
	ln -s "$PAWL" "$BATS_TEST_TMPDIR/bin/pawl"
	pawl create One -i Job-1
	pawl create Two -i Job-2
	offers claim pawl cl
	offers lock pawl lo
	offers acquire pawl lock a
	offers set pawl config s
	offers --ttl pawl claim Job-1 --t
	offers --json pawl list --js
	offers Job-1 pawl claim J
	offers Job-2 pawl claim ""
	offers Job-2 pawl lock status Job
	offers expedite pawl create x --class e
	offers done pawl list --status d
	offers bash pawl completion b
	offers claim pawl help c
	[ -z "$(complete_words pawl claim zzz)" ]
}

@test "bash completes labels, holders, priorities and queues" {
	mkdir "$BATS_TEST_TMPDIR/bin"
	ln -s "$PAWL" "$BATS_TEST_TMPDIR/bin/pawl"
	pawl create One -l parser -l docs
	pawl create Two -l 'two words' -l parser
	pawl claim t1 -a annabel
	mkdir other
	pawl init --force -C other --store "$(store_uri)" --queue faraway
	for option in next:--label list:-l create:--label update:--add-label update:--remove-label run:--label; do
		offers parser pawl "${option%%:*}" x "${option#*:}" p
		offers docs pawl "${option%%:*}" x "${option#*:}" ""
	done
	offers 'two\\ words' pawl next --label two
	same "$(complete_words pawl next --label p)" parser
	offers annabel pawl list --holder ann
	offers high pawl create x --priority h
	offers medium pawl update t1 -p m
	offers faraway pawl list --queue far
	pawl done t1 -a annabel
	offers t1 pawl show t
}

@test "values: one on each line, for completions; none where there is no queue" {
	pawl batch add --file - <<-'END'
		{"title": "One", "label": ["b", "esc\u001b[0m", "bidi\u202e", "a"]}
	END
	call 0 values labels
	exactly $'b\na'
	ask 0 values ids
	is '.values == ["t1"]'
	call 2 values nonsense
	[[ $("$PAWL" help) != *values* ]]
	cd /
	call 0 values labels
	exactly ""
}

@test "zsh and fish ask for the same values" {
	for shell in zsh fish; do
		script=$("$PAWL" completion $shell)
		for kind in ids labels holders queues; do
			[[ $script == *"_pawl_values $kind"* ]]
		done
	done
	needs fish
	mkdir "$BATS_TEST_TMPDIR/bin"
	ln -s "$PAWL" "$BATS_TEST_TMPDIR/bin/pawl"
	pawl create One -l '$(touch owned)' -l parser
	PATH=$BATS_TEST_TMPDIR/bin:$PATH run -0 fish -c 'pawl completion fish | source; complete -C "pawl next --label "'
	[[ $output == *parser* ]]
	[ ! -e owned ]
}

@test "bash completion is quiet where there is no queue" {
	mkdir "$BATS_TEST_TMPDIR/bin" "$BATS_TEST_TMPDIR/none"
	ln -s "$PAWL" "$BATS_TEST_TMPDIR/bin/pawl"
	cd "$BATS_TEST_TMPDIR/none"
	run --separate-stderr complete_words pawl claim ""
	same "$stderr" ""
	same "$(ls)" errors
}

@test "bash completion does not run the text of a task" {
	mkdir "$BATS_TEST_TMPDIR/bin"
	ln -s "$PAWL" "$BATS_TEST_TMPDIR/bin/pawl"
	pawl create '$(touch owned) `touch owned`; touch owned' -i x1 -l '$(touch owned)'
	complete_words pawl claim x
	complete_words pawl next --label ""
	complete_words pawl claim '$(touch owned)'
	offers '\\$\\(touch\\ owned\\)' pawl next --label '$'
	[ ! -e owned ]
}

@test "man pages: one for each command, and they render" {
	dir=${PAWL_BUILD-}/doc/man1
	[ -d "$dir" ] || skip "needs man pages, which this build does not have"
	needs man
	[ -f "$dir/pawl.1" ]
	while read -r name; do
		page=$dir/pawl-${name// /-}.1
		[ -f "$page" ] || page=$dir/pawl-${name%% *}.1
		[ -f "$page" ] || page=$dir/pawl.1
		[ -f "$page" ] || {
			echo "no page for $name"
			return 1
		}
		grep -q -- "${name##* }" "$page"
	done < <(all_commands)
	MANWIDTH=80 man --warnings -l "$dir/pawl.1" >text 2>warnings
	[ -s text ]
	# all of them at once, as man does it
	groff -t -k -man -Tutf8 -P-cbou -rLL=80n -ww "$dir"/*.1 >text 2>>warnings
	pages=("$dir"/*.1)
	same "$(grep -c '^NAME$' text)" ${#pages[@]}
	same "$(grep -v 'cannot.*break\|cannot adjust' warnings || true)" ""
}

# entries: the names of the entries in doc/troubleshooting.md
entries() {
	sed -n 's/^##* \([A-Za-z_]*\)$/\1/p' "$PAWL_SOURCE/doc/troubleshooting.md"
}

# faults: the faults that a store can have
faults() {
	sed -n 's/^\tSTORE_\([A-Z]*\) = -.*/\1/p' "$PAWL_SOURCE/src/store/store.h" | tr '[:upper:]' '[:lower:]'
	printf '%s\n' unauthorized forbidden # of a server
}

@test "troubleshooting: an entry for every code and every fault of a store, and no other" {
	codes=$("$PAWL" help codes | sed -n 's/^ *[0-9][0-9]* \([A-Z_]*\) .*/\1/p')
	[ "$(wc -w <<<"$codes")" -ge 10 ]
	[ "$(faults | wc -l)" -ge 10 ]
	same "$(entries | sort)" "$({ echo "$codes"; faults; } | sort)"
	for code in $codes; do
		number=$("$PAWL" help codes | sed -n "s/^ *\([0-9]*\) $code .*/\1/p")
		call 0 help "$code"
		says "$code" "Exit code $number" "To do"
	done
	for fault in $(faults); do
		call 0 help "$fault"
		says "$fault" "    pawl: " "To do"
		not grep -q '^#' <<<"$output"
	done
	call 0 help conflict
	not grep -q LOST_LOCK <<<"$output"
	call 0 help MISCONFIGURED
	says corrupt
}

@test "troubleshooting: every refusal names its entry" {
	pawl create one
	call 44 show t9
	complains "more: pawl help NOT_FOUND"
	pawl claim t1 -a bob
	call 20 claim t1
	complains "more: pawl help CONFLICT"
	call 40 list --store sqlite:/dev/null
	complains "more: pawl help foreign"
	call 30 list --store "$(faulty any:1:busy)"
	complains "more: pawl help busy"
	ask 30 list --store "$(faulty any:1:full)"
	is '.error.fault == "full"'
	call 2 claim
	not grep -q more: <<<"$stderr"
}

# The examples are the program's real messages, except for names and times.
@test "troubleshooting: its messages are those of the program" {
	doc=$PAWL_SOURCE/doc/troubleshooting.md
	pawl create one
	pawl create two
	pawl create three --parent t1
	said() {
		call "$@"
		line=$(head -1 <<<"$stderr" | sed "s|$work|/work|g")
		grep -qF -- "$line" "$doc" || {
			echo "not in the document: $line"
			return 1
		}
	}
	said 2 claim
	said 44 show t9
	said 20 create x --id t1
	pawl claim t1
	said 41 done t1
	pawl claim t2
	pawl done t2
	said 40 claim t2
	PAWL_LEASE=soon said 40 list
	cp .pawl/config kept
	echo 'store = sqlite:../q.db' >.pawl/config
	call 40 list
	grep -qF -- "$(head -1 <<<"$stderr" | sed "s|$work|/work|g; s|${work%/work}||g")" "$doc"
	mv kept .pawl/config
	QUEUE_LOCK_DISABLED=1 said 40 list
	said 30 list --store sqlite:/nowhere/q.db
	echo hello >notes.db
	said 40 list --store sqlite:notes.db
	printf '{"id":"x"\n' >x.jsonl
	said 40 import x.jsonl
	cd /
	said 40 list
}

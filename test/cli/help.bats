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

# candidates WORD...: what the shells offer for the last word
candidates() {
	"$PAWL" values line -- "$@" | cut -f 1
}

@test "values line: lacks no command and no option" {
	local name words
	all_commands >names
	while read -r name; do
		read -ra words <<<"$name"
		candidates "${words[@]}" | grep -qx -- "${words[-1]}" || {
			echo "$name is not offered"
			return 1
		}
		"$PAWL" help "${words[@]}" | sed -n 's/^  \(-[a-zA-Z], \)\?--\([a-z][a-z-]*\) .*/--\2/p' | sort -u >options
		[ -z "$(candidates "${words[@]}" -- | sort | comm -23 options - | tee /dev/stderr)" ]
		cat options >>all
	done <names
	[ "$(sort -u all | wc -l)" -gt 50 ]
}

@test "values line: explains commands and options, and says where folders fit" {
	call 0 values line -- cl
	[[ $output == *$'\nclaim\tclaim a task by its id\n'* ]]
	call 0 values line -- claim -
	[[ $output == *$'-t\tlength of the lease'*$'--ttl\tlength of the lease'* ]]
	call 0 values line -- -C ""
	exactly $'\tfolders'
	PAWL_FORMAT=json call 0 values line -- list --status ""
	is '(.values | index("done") != null) and (.values | length) == (.about | length) and (.folders | not)'
	call 0 values line -- run t1 -- cl
	exactly ""
	call 0 values line
	exactly ""
	mkdir broken broken/.pawl
	echo 'lease = never' >broken/.pawl/config
	cd broken
	call 0 values line -- cla
	[[ $output == *claim* ]]
	call 0 values line -- claim ""
	exactly ""
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

# in_fish LINE: what fish offers at the end of LINE
in_fish() {
	PATH=$BATS_TEST_TMPDIR/bin:$PATH fish --no-config -c 'pawl completion fish | source; complete -C $argv[1]' "$1"
}

@test "fish completes commands, options, values and folders" {
	needs fish
	mkdir "$BATS_TEST_TMPDIR/bin" some_folder
	ln -s "$PAWL" "$BATS_TEST_TMPDIR/bin/pawl"
	pawl create One -i Job-1 -l '$(touch owned)' -l parser
	same "$(in_fish 'pawl cla')" $'claim\tclaim a task by its id'
	[[ $(in_fish 'pawl lock a') == $'acquire\t'* ]]
	[[ $(in_fish 'pawl claim Job-1 --tt') == $'--ttl\t'* ]]
	same "$(in_fish 'pawl claim ')" Job-1
	same "$(in_fish 'pawl next --label pa')" parser
	[[ $(in_fish 'pawl next --label ') == *parser* ]]
	same "$(in_fish 'pawl create x --class e')" expedite
	[[ $(in_fish 'pawl -C some') == some_folder/* ]]
	[ ! -e owned ]
}

# in_zsh WORD...: what zsh's completion function offers for the last word; zsh itself compares it with the typed part
in_zsh() {
	PATH=$BATS_TEST_TMPDIR/bin:$PATH zsh -f -c '
		compdef() { :; }
		_describe() { print -rl -- "${(@P)2}"; }
		compadd() { [[ "$1 $2" = "-a --" ]] && print -rl -- "${(@P)3}"; }
		_files() { print -r -- "folders $1"; }
		source <(pawl completion zsh)
		words=("$@") CURRENT=$#
		_pawl' zsh "$@"
}

@test "zsh completes commands, options, values and folders" {
	needs zsh
	mkdir "$BATS_TEST_TMPDIR/bin"
	ln -s "$PAWL" "$BATS_TEST_TMPDIR/bin/pawl"
	pawl create One -i Job-1 -l '$(touch owned)' -l parser -l two:parts
	in_zsh pawl cla | grep -qx 'claim:claim a task by its id'
	in_zsh pawl lock a | grep -q '^acquire:'
	in_zsh pawl claim Job-1 --tt | grep -q '^--ttl:'
	same "$(in_zsh pawl claim '')" Job-1
	same "$(in_zsh pawl next --label '' | sort)" $'$(touch owned)\nparser\ntwo:parts'
	in_zsh pawl create x --class e | grep -qx expedite
	same "$(in_zsh pawl -C '')" 'folders -/'
	same "$(in_zsh pawl comment Job-1 "'a b'" '')" ''
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

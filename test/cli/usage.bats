#!/usr/bin/env bats
# Bad input: USAGE with a message that names the fault, and nothing changed.

load common

setup() {
	fresh
	queue
	pawl create "A task" -i t1
	pawl create "Held" -i held
	pawl claim held -a al
	start=$(snapshot)
}

# Intended changes are made with `may`; otherwise the queue must be unchanged.
teardown() {
	[ -n "${made-}" ] || same "$start" "$(snapshot)"
}

# may CODE ARG...: a call that changes something; the refused calls before it changed nothing
may() {
	[ -n "${made-}" ] || same "$start" "$(snapshot)"
	made=yes
	call "$@"
}

# refused TEXT ARG...: USAGE, and the message has TEXT
refused() {
	local text=$1
	shift
	call 2 "$@"
	exactly ""
	complains "pawl: " "$text"
}

@test "an unknown command, with the nearest name" {
	refused "did you mean \`pawl claim\`" clam t1
	refused "did you mean \`pawl heartbeat\`" heartbeet
	refused "did you mean \`pawl lock check\`" lock chek t1
	refused "did you mean \`pawl config unset\`" config unsset lease
	refused "no command 'frobnicate'" frobnicate
	refused "only the first word of a command" id
	refused "no command 'lock '" lock ""
	refused "no command ''" ""
	ask 2 clam t1
	lines 2 clam t1
	[[ $output == "USAGE:"* ]]
}

@test "a word with a meaning leads to the whole call" {
	refused "did you mean \`pawl status ID STATUS\`" move t1
	refused "did you mean \`pawl update ID --assignee NAME\`" assign t1
	call 2 help assign
	complains "pawl help update"
	call 2 help pick
	complains "pawl help next"
}

@test "a misspelling never suggests a command that deletes" {
	for words in remov "remvoe t1" cler cancle restor "lock brek t1" "batch remov t1" "config reste"; do
		# shellcheck disable=SC2086 # several words
		call 2 $words
		[[ $stderr != *"did you mean"* ]]
	done
	refused "did you mean \`pawl update\`" updat t1 # it replaces values, and deletes nothing
}

@test "commands of other programs" {
	while read -r word name; do
		refused "did you mean \`pawl $name\`" "$word"
		call 2 help "$word"
		complains "pawl help $name"
	done <<-END
		add create
		view show
		search find
		history log
		ready next
		new create
		delete remove
		rm remove
		start claim
		take claim
		finish done
		complete done
		close done
		ls list
	END
}

@test "lists: at most 256" {
	many=$(seq -s, 257)
	refused "at most 256" create x --label "$many"
	refused "at most 256" create x --depends "$many"
	mapfile -t words < <(seq 257)
	refused "at most 256" help "${words[@]}"
	call 2 create x --label "$(seq -s, 20000)"
	may 0 create x --label "$(seq -s, 30)"
}

@test "an unknown option, with the nearest name" {
	refused "did you mean --ttl" claim t1 --tll 5m
	refused "did you mean --priority" create x --prioritty 5
	refused "did you mean --json" list --jsn
	refused "no option -Z" list -Z
	refused "--frobnicate" --frobnicate list
	refused "no option --" claim t1 --=x
	ask 2 claim t1 --tll 5m
}

@test "every command refuses an option that it does not have" {
	while read -r name; do
		read -ra words <<<"$name"
		call 2 "${words[@]}" --no-such-option
		exactly ""
		complains --no-such-option
	done < <(all_commands)
}

@test "an option without its value, or with one too many" {
	refused "--ttl needs a value" claim t1 --ttl
	refused "--ttl needs a value" claim t1 --ttl --agent
	ask 2 claim t1 --ttl
	refused "needs a value" claim t1 -t
	refused "takes no value" next --claim=yes
	refused "takes no value" list --json=1
	refused "--agent" claim t1 --agent
}

@test "options that contradict, or are given twice" {
	refused "given twice" claim t1 --ttl 5m --ttl 6m
	refused "given twice" create x --title y
	refused "given twice" create x -p 1 --priority 2
	refused "given twice" list --agent a --agent b
	refused "cannot be used together" create x --delay 1h --not-before 2031-01-01
	unchanged 2 list --porcelain --format text
	complains "cannot be used together"
	ask 2 list --format text
	refused "cannot be used together" list --color never --no-color
	refused "--if-absent needs --id" create x --if-absent
	refused "--next-token" done held --next-token 11111111-1111-4111-8111-111111111111
}

@test "arguments missing, or too many" {
	for name in claim heartbeat release done approve retry unblock show update remove comment \
		"lock acquire" "lock release" "lock check"; do
		read -ra words <<<"$name"
		refused "$name needs ID" "${words[@]}"
	done
	refused "needs TITLE" create
	refused "claim does not take 'b'" claim t1 b
	refused "does not take" create Two words
	refused "does not take" list t1
	refused "depend needs" depend t1
	refused "comment needs TEXT" comment t1
	refused "config get needs" config get
	refused "config set needs" config set lease
	refused "completion needs" completion
	refused "find needs" find
}

@test "a missing reason, summary or action" {
	refused "review needs --summary" review held -a al
	for name in fail escalate cancel rework reopen "lock break"; do
		read -ra words <<<"$name"
		refused "$name needs --reason" "${words[@]}" held -a al
		refused "may not be empty" "${words[@]}" held -a al --reason ""
		refused "may not be empty" "${words[@]}" held -a al --reason "  "
	done
	refused "block needs --reason" block held -a al -u u
	refused "block needs --unblock-action" block held -a al -r r
	refused "may not be empty" block held -a al -r r -u ""
}

@test "ids outside the pattern" {
	long=$(printf 'a%.0s' {1..129})
	for id in ../../x a..b .x -x _x x.lock x.done x.failed x.task x. a/b /etc/passwd 'a b' ä $'a\nb' $'a\e[31m' \
		"$long" "" 'x*' 'x;y' '~' 'C:x' x.LOCK; do
		call 2 create Title "--id=$id"
		complains "--id"
		call 2 claim -- "$id"
		call 2 create Title --parent="$id"
		call 2 create Title --depends="$id"
		[[ $stderr != *$'\e'* ]]
	done
	may 0 create Title --id "${long%a}"
	may 0 create Title --id 9.x-_Z
}

@test "titles: empty, blank, too long" {
	refused "may not be empty" create ""
	refused "may not be empty" create "   "
	refused "may not be empty" update t1 --title ""
	refused "at most 500" create "$(printf 'x%.0s' {1..501})"
	# 500 bytes, not characters
	refused "at most 500" create "$(printf 'ä%.0s' {1..251})"
	may 0 create "$(printf 'x%.0s' {1..500})"
}

@test "a title of 1 MiB" {
	# On Linux one argument can have 128 KiB. Standard input has no such limit, but a title cannot come
	# from it.
	big=$(head -c 131000 /dev/zero | tr '\0' x)
	refused "131000 bytes long" create "$big"
	refused "131000 bytes long" update t1 --title "$big"
	head -c 1048576 /dev/zero | tr '\0' x >big
	call 2 create x -d - <big
	complains "longer than 262144"
}

@test "texts: 256 KiB are fine, a byte more is not" {
	head -c 262144 /dev/zero | tr '\0' x >full
	head -c 262145 /dev/zero | tr '\0' x >over
	for field in description acceptance; do
		call 2 create x --$field - <over
		call 2 update t1 --$field - <over
	done
	call 2 comment t1 - <over
	may 0 create x -i full -d - <full
	same "$(field full '.description | length')" 262144
}

@test "invalid UTF-8" {
	for text in $'\xff' $'a\xc3' $'\xc0\xaf' $'\xed\xa0\x80' $'\xf5\x80\x80\x80'; do
		refused "UTF-8" create "$text"
		refused "UTF-8" create x -d "$text"
		refused "UTF-8" comment t1 "$text"
		refused "UTF-8" create x --label "$text"
		refused "UTF-8" review held -a al -s "$text"
		run --separate-stderr "$PAWL" create x --agent "$text"
		[ "$status" -eq 2 ]
	done
}

@test "NUL in a text from standard input" {
	run "$PAWL" comment t1 - < <(printf 'a\0b')
	[ "$status" -eq 2 ]
	run "$PAWL" create x -d - < <(printf 'a\0')
	[ "$status" -eq 2 ]
}

@test "standard input can be read only once" {
	call 2 create x -d - --acceptance - <<<text
	complains "only once"
}

@test "dates and times that do not parse or overflow" {
	for time in someday 2031-02-30 2031-13-01 2031-00-10 2031-1-1 31-01-01 2031-01-01T25:00 2031-01-01T10:61 \
		2031-01-01T10:00:00+99:00 99999-01-01 1969-12-31 2031-01-01x "2031-01-01 T10:00" 20310101 -1; do
		refused "$time" create x --due="$time"
		refused "$time" create x --not-before="$time"
		refused "$time" block held -a al -r r -u u --next-check="$time"
	done
	refused "" create x --due ""
}

@test "durations that do not parse or overflow" {
	for span in abc 5x -5 -5m 1h-3m 5m5 "5 m m" 99999999999999999999 9223372036854775807 999999999999d 1e3 0x10 "" .; do
		refused "--ttl" claim t1 --ttl="$span"
		refused "--delay" create x --delay="$span"
		refused "--wait" next --wait="$span"
		refused "" list --timeout="$span"
	done
}

@test "leases below the shortest and above the longest" {
	for ttl in 0 0.5s 999ms 24h1s 25h 2d; do
		refused "" claim t1 --ttl $ttl
		refused "" next --claim --ttl $ttl
		refused "" lock acquire t1 --ttl $ttl
		refused "" heartbeat held -a al --ttl $ttl
		refused "" status t1 in-progress --ttl $ttl
	done
}

@test "priorities out of range" {
	for p in -1 1001 abc 1.5 "" 99999999999999999999 0x5 " 5x" urgent; do
		refused "priority" create x --priority="$p"
		refused "priority" update t1 --priority="$p"
	done
	may 0 create x -p 0
	may 0 create x -p 1000 --json
	is '.task.priority == 1000'
}

@test "words that are not among the choices" {
	refused "this status does not exist" create x --status nonsense
	refused "this class does not exist" create x --class nonsense
	refused "this class does not exist" next --class nonsense
	refused "this status does not exist" list --status ready,nonsense
	refused "not one of" list --format xml
	refused "not one of" list --color sometimes
	refused "" completion tcsh
	refused "no setting" config get nonsense
	refused "did you mean lease" config get leas
	refused "no setting" config set nonsense 1
}

@test "numbers" {
	refused "whole number" list --limit abc
	refused "" list --limit -1
	refused "" claim t1 --resume 0
	refused "" claim t1 --resume abc
	refused "" claim t1 --pid 0
	refused "" claim t1 --pid -1
	refused "" claim t1 --pid 99999999999
}

@test "invalid tokens and request ids" {
	refused "not a token" claim t1 --token nonsense
	refused "not a token" heartbeat held --token ""
	refused "not a token" done held --claim-next --next-token 123
	PAWL_TASK=held PAWL_TOKEN=nonsense refused "PAWL_TOKEN" heartbeat held
	refused "" create x --request-id ""
	refused "" create x --request-id "$(printf 'x%.0s' {1..5000})"
}

@test "extra that is not a JSON object" {
	for extra in '{' '[]' '"x"' 5 '{"a":1}x' '{"a":1,"a":2}' nonsense; do
		refused "--extra" create x --extra "$extra"
		refused "--extra" update t1 --extra "$extra"
	done
}

@test "names of agents, runs, queues and labels" {
	for name in "" $'a\nb' "$(printf 'x%.0s' {1..5000})"; do
		refused "" list --agent "$name"
		refused "" list --run "$name"
		refused "" list --queue "$name"
		refused "" create x --label "$name"
	done
	PAWL_AGENT=$'a\nb' call 2 create x || PAWL_AGENT=$'a\nb' call 40 create x
}

@test "cycles and unknown tasks" {
	unchanged 44 create x --parent nope
	unchanged 44 create x --depends t1,nope
	unchanged 44 depend t1 nope
	unchanged 40 depend t1 t1
	unchanged 44 update t1 --parent nope
	unchanged 40 update t1 --parent t1
}

@test "a folder for -C that is not there" {
	refused "nowhere" list -C nowhere
	refused "" list -C ""
}

@test "an answer that cannot be written is not a success" {
	[ -c /dev/full ] || skip "needs /dev/full"
	while read -r name; do
		read -ra words <<<"$name"
		rc=0
		"$PAWL" "${words[@]}" --help >/dev/full 2>err || rc=$?
		same "$rc" 30
		grep -q "cannot write the answer" err
	done < <(all_commands)
	rc=0
	"$PAWL" list >&- 2>/dev/null || rc=$?
	same "$rc" 30
}

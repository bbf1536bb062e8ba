#!/usr/bin/env bats
# shellcheck disable=SC2016 # commands are written with their variables
# pawl run --jobs on a terminal: a live line for each job, and the output of the commands above them.

load common
load background

setup() {
	needs tmux
	needs_terminal
	fresh
	queue
	short_leases
	export PAWL_AGENT=me
	TMUX_TMPDIR=$(mktemp -d /tmp/pawl-live.XXXXXX) # short: the path of a socket has a limit
	export TMUX_TMPDIR
	unset TMUX
	echo 'set -g history-limit 100000' >tmux.conf
	terminal new-session -d -x 80 -y 24 "ENV=/dev/null PS1='$ ' exec sh"
	soon screen_has '^\$'
	touch pids
}

teardown() {
	end_processes
	[ -z "${TMUX_TMPDIR-}" ] || terminal kill-server 2>/dev/null || true
	rm -rf "${TMUX_TMPDIR-}"
}

terminal() {
	tmux -u -L pawl -f "$work/tmux.conf" "$@" 3>&-
}

# screen: the lines that the terminal shows now; whole: also those that have left it
screen() {
	terminal capture-pane -p
}

whole() {
	terminal capture-pane -p -J -S -
}

screen_has() {
	screen | grep -q -- "$1"
}

# shows N PATTERN: in N rows
shows() {
	[ "$(screen | grep -c -- "$2")" -eq "$1" ]
}

screen_lacks() {
	not screen_has "$1"
}

type_line() {
	terminal send-keys -l "$1"
	terminal send-keys Enter
}

# live ARG...: types `pawl run ARG...`, and after it the exit code
live() {
	times=$((${times:-0} + 1))
	type_line "'$PAWL' run $*; echo code$times=\$?"
}

ended() {
	soon screen_has "^code$times=$1" || {
		screen
		return 1
	}
}

# agent SCRIPT: the file agent.sh, which waits for the file `go` at its end
agent() {
	printf '%s\n' 'echo $$ >>pids' "$1" 'until [ -e go ]; do sleep 0.05; done' >agent.sh
}

# block LINE...: the last lines of the screen match these patterns
block() {
	local rows row=0 line
	mapfile -t rows < <(screen | sed '/^$/d' | tail -n $#)
	for line; do
		[[ ${rows[row++]} =~ $line ]] || return 1
	done
}

lease_end=' +[0-9]:[0-9][0-9]  lease [0-9]+:[0-9][0-9]$'

@test "live: a line for each job, and the idle ones wait" {
	long=$(printf 'word %.0s' {1..40})
	new first
	new "$long"
	agent 'echo "at work on $PAWL_TASK"'
	live --loop --wait --jobs 3 --ttl 15m -- sh agent.sh
	soon block "^#1 t1 first$lease_end" "^#2 t2 word word .*…$lease_end" '^#3 waits$'
	soon screen_has '^t2 | at work on t2'
	screen | while IFS= read -r row; do
		case $row in
		'#'*) [ "${#row}" -le 79 ] ;;
		esac
	done
	soon block "^#1 t1 first +0:02  lease 14:5" '^#2 t2' '^#3 waits$'
	new third
	soon block '^#1 t1' '^#2 t2' "^#3 t3 third$lease_end"
	: >go
	ended 0
	screen_lacks '^#'
	screen_has 'pawl: t3 is Done (exit code 0)'
	screen_has 'pawl: 3 tasks: 3 succeeded, 0 failed, 0 lost'
}

@test "live: the output of three jobs comes whole, in order and with the id" {
	for i in 1 2 3; do
		new "task $i"
	done
	cat >count.sh <<'END'
seq -f "out %.0f" 9999 | awk '{ print; fflush() } NR % 1000 == 0 { print "err " NR | "cat >&2"; close("cat >&2") }'
printf 'out 10000'
END
	live --loop --jobs 3 -- sh count.sh
	ended 0
	whole >all
	for i in 1 2 3; do
		grep "^t$i | out" all >got
		seq -f "t$i | out %.0f" 10000 | cmp - got
		same "$(grep -c "^t$i | err" all)" 9
		# standard output and error keep their order
		same "$(grep -A1 "^t$i | out 1000$" <(grep "^t$i |" all) | tail -n 1)" "t$i | err 1000"
	done
	not grep -q '^#' all
}

@test "live: hostile output cannot leave its line" {
	new a
	new b
	cat >bad.sh <<'END'
printf '\033[31mred\033[0m \033[2J\033[5A\033[?1049h\033]0;owned\007 \010\177\n'
printf 'up\033[9A\rover\n\302\2335A \377 end'
until [ -e go ]; do sleep 0.05; done
END
	live --jobs 2 -- sh bad.sh
	soon block '^#1 t1 a' '^#2 t2 b'
	soon screen_has '^t1 | over'
	screen_has '^t1 | red \\x1b\[2J\\x1b\[5A\\x1b\[?1049h\\x1b\]0;owned\\x07 \\x08\\x7f$'
	screen_has '^t1 | up\\x1b\[9A$'
	terminal capture-pane -p -e | grep -q $'t1 | \e\\[31mred'
	: >go
	ended 0
	screen_has '^t2 | \\u{9b}5A \\xff end$'
}

@test "live: a new size of the terminal" {
	new "$(printf 'word %.0s' {1..40})"
	new b
	agent 'seq 5'
	live --jobs 2 -- sh agent.sh
	soon block "^#1 t1 word.*$lease_end" "^#2 t2 b$lease_end"
	soon screen_has '^t2 | 5'
	terminal resize-window -x 50 -y 20
	soon block "^#1 t1 word.{30,50}$" "^#2 t2 b.{30,50}$"
	soon shows 2 '^#\|lease'
	terminal resize-window -x 120 -y 30
	soon block "^#1 t1 word.{90,120}$" "^#2 t2 b.{90,120}$"
	soon shows 2 '^#\|lease'
	: >go
	ended 0
	same "$(whole | grep -c '^t[12] | [1-5]$')" 10
	not grep -q '^#\|lease' < <(whole)
}

@test "live: more jobs than rows" {
	terminal resize-window -x 80 -y 10
	for i in 1 2 3; do
		new "task $i"
	done
	agent ''
	live --jobs 40 -- sh agent.sh
	soon block '^#1 t1' '^#2 t2' '^#3 t3' '^#4 waits' '^#5 waits' '^… and 35 more; 3 of 40 work$'
	: >go
	ended 0
}

@test "live: Ctrl-C ends the jobs and leaves a usable terminal" {
	new a
	new b
	agent 'echo begun'
	type_line 'stty -a >before'
	live --loop --jobs 2 -- sh agent.sh
	soon screen_has '^t1 | begun'
	soon screen_has '^t2 | begun'
	soon block '^#1 t1' '^#2 t2'
	terminal send-keys C-c
	ended 130
	screen_lacks '^#'
	screen_has 'pawl: the loop ends here: signal 2'
	type_line 'stty -a >after'
	soon cmp before after
	while read -r pid; do
		gone "$pid"
	done <pids
	status_is t1 Ready
	status_is t2 Ready
}

gone() {
	not kill -0 "$1" 2>/dev/null
}

@test "live: Ctrl-Z gives the terminal to the shell, and fg shows the lines again" {
	new a
	new b
	agent 'echo begun'
	live --jobs 2 --ttl 15m -- sh agent.sh
	soon screen_has '^t2 | begun'
	soon block '^#1 t1' '^#2 t2'
	terminal send-keys C-z
	soon screen_has Stopped
	screen_lacks '^#'
	type_line 'fg'
	soon block '^#1 t1' '^#2 t2'
	soon shows 2 '^#'
	: >go
	soon screen_has 'pawl: 2 tasks: 2 succeeded'
	screen_lacks '^#'
	same "$(screen | grep -c '^t[12] | begun')" 2
}

@test "live: stopped from outside, it does not draw over the lines of the shell" {
	new a
	new b
	agent ''
	live --jobs 2 --ttl 15m -- sh agent.sh
	soon block '^#1 t1' '^#2 t2'
	kill -STOP "$(field t1 .lock.pid)"
	soon screen_has Stopped
	type_line 'fg'
	soon shows 4 '^#'
	screen_has Stopped
	screen_has '^\$ fg'
	: >go
	soon screen_has 'pawl: 2 tasks: 2 succeeded'
}

@test "live: a runner that is killed leaves a usable terminal" {
	new a
	new b
	agent 'echo begun'
	type_line 'stty -a >before'
	live --jobs 2 -- sh agent.sh
	soon block '^#1 t1' '^#2 t2'
	kill -9 "$(field t1 .lock.pid)"
	ended 137
	type_line 'stty -a >after; echo here'
	soon screen_has '^here'
	soon cmp before after
}

renewed_since() {
	[[ $(field t1 .lock.expires_at) > $1 ]]
}

@test "live: a terminal that takes no output delays the commands, not the renewals" {
	new a
	new b
	cat >flood.sh <<'END'
echo $$ >>pids
until [ -e go ]; do sleep 0.05; done
seq 50000
echo $PAWL_TASK >>written
END
	live --jobs 2 --ttl 1s -- sh flood.sh
	soon block '^#1 t1' '^#2 t2'
	terminal send-keys C-s
	screen >frozen # the key is through
	: >go
	until=$(field t1 .lock.expires_at)
	soon renewed_since "$until"
	until=$(field t1 .lock.expires_at)
	soon renewed_since "$until"
	[ ! -e written ]
	status_is t1 "In Progress"
	terminal send-keys C-q
	ended 0
	status_is t1 Done
	whole >all
	same "$(grep -c '^t[12] | [0-9]*$' all)" 100000
}

@test "live: a process that keeps the pipe open does not hold up the run" {
	new a
	new b
	live --jobs 2 -- sh -c "'setsid sh -c \"echo \\\$\\\$ >>pids; while :; do sleep 0.1; done\" & until [ -s pids ]; do sleep 0.05; done; printf last'"
	ended 0
	same "$(screen | grep -c '^t[12] | last$')" 2
	status_is t1 Done
	status_is t2 Done
}

@test "live: --plain, -q, one job and a dumb terminal: the commands write themselves" {
	writes_itself() {
		new x
		new y
		rm -f seen
		live "$@" -- sh -c "'[ -t 1 ] && [ -t 2 ] && echo x >>seen; echo raw; echo raw >&2'"
		ended 0
		same "$(wc -l <seen)" "$count"
	}
	count=2
	writes_itself --jobs 2 --plain
	writes_itself --jobs 2 -q
	count=1
	writes_itself --next
	count=2
	type_line 'TERM=dumb'
	writes_itself --jobs 2
	not grep -q '^#\| | raw' < <(whole)
}

@test "live: a file gets the standard output as it is" {
	new a
	new b
	live --jobs 2 -- sh -c "'echo raw; echo shown >&2' >out"
	ended 0
	same "$(cat out)" "raw"$'\n'"raw"
	same "$(screen | grep -c '^t[12] | shown$')" 2
}

@test "live: without a terminal nothing changes" {
	new a
	new b
	call 0 run --jobs 2 -- sh -c 'echo raw; echo err >&2'
	exactly $'raw\nraw'
	not grep -q $'\e\|^#\| | ' <<<"$stderr"
	same "$(grep -c '^err$' <<<"$stderr")" 2
	complains "pawl: t1 is Done (exit code 0)" "pawl: 2 tasks: 2 succeeded"
}

#!/usr/bin/env bats
# The terminal board, driven by keys in tmux. Each step waits for text on the screen, never for a time.

load ../cli/common

sockets=

setup() {
	needs tmux
	needs_terminal
	[ -e "$PAWL_BUILD/pawl-board.so" ] || skip "needs ncursesw"
	fresh
	queue
	sockets=$(mktemp -d /tmp/pawl-board.XXXXXX) # the path of a socket must be short
	export TMUX_TMPDIR=$sockets SHELL=/bin/sh PAWL
	unset TMUX
}

teardown() {
	[ -z "$sockets" ] && return
	tm kill-server 2>/dev/null || true
	rm -rf "$sockets"
}

# A server that was killed may still remove its socket, so each start has a socket of its own.
starts=0
tm() {
	tmux -u -L "pawl$starts" -f /dev/null "$@"
}

# board WIDTH HEIGHT [VARIABLE=VALUE...]: starts it in a terminal that outlives it
board() {
	local width=$1 height=$2
	shift 2
	starts=$((starts + 1))
	tm new-session -d -x "$width" -y "$height" "exec env $* '$BATS_TEST_DIRNAME/session'"
	sees "pawl board"
}

screen() {
	tm capture-pane -p
}

keys() {
	tm send-keys "$@"
}

# text TEXT: types it as it is
text() {
	tm send-keys -l "$1"
}

# waits COMMAND...: until it succeeds
waits() {
	local tries=0
	until "$@"; do
		((++tries < 400)) || {
			echo "waited in vain for: $*"
			screen
			return 1
		}
		sleep 0.05
	done
}

shows() {
	screen | grep -qF -- "$1"
}

hides() {
	! shows "$1"
}

# sees TEXT...: waits until each is on the screen
sees() {
	local part
	for part in "$@"; do
		waits shows "$part"
	done
}

gone() {
	waits hides "$1"
}

is_now() {
	[ "$(field "$1" .status)" = "$2" ]
}

# leaves: q ends the board, and the terminal is as before
leaves() {
	keys q
	sees "left the board"
	same "$(cat ended)" "code 0"
	same "$(cat after)" "$(cat before)"
}

# some_tasks: one in most of the statuses
some_tasks() {
	new "Fix the parser 日本語 🎉" --id parser --label bug,ui --priority 7 --class expedite --due 2026-01-01
	new "Write the docs" --id docs --depends parser
	new "Plan it" --id plan --status backlog
	new "Look at me" --id look
	"$PAWL" claim -q look --agent ann >/dev/null
	"$PAWL" review -q look --agent ann --summary "did it" >/dev/null
	new "Needs a key" --id key
	"$PAWL" claim -q key --agent bob >/dev/null
	"$PAWL" block -q key --agent bob --reason "no key" --unblock-action "add it" >/dev/null
	new "In work" --id work
	"$PAWL" claim -q work --agent carol --ttl 2h >/dev/null
}

@test "board: 80x24 shows the columns that fit and scrolls sideways" {
	some_tasks
	board 80 24
	sees "1 Backlog 1" "2 Ready 2, 1 wait" "3 In Progress 1" "parser  Expedite  p7" "日本語 🎉" "! overdue 2026-01-01" \
		"#bug #ui" "@carol 1h" "waits for parser"
	hides "6 Review"
	keys l l l
	sees "6 Review 1" "no key"
	hides "1 Backlog"
	keys h h h h
	sees "1 Backlog 1"
	leaves
}

@test "board: 120x40 and 200x50 show more columns" {
	some_tasks
	board 120 40 COLUMNS=60 LINES=10 # the terminal knows better
	sees "1 Backlog 1" "4 Blocked 1" "6 Review 1"
	tm resize-window -x 200 -y 50
	sees "Needs a key" "Look at me"
	keys 8
	sees "8 Done 0" "empty"
	keys z
	gone "8 Done 0"
	leaves
}

@test "board: keys that look: detail, why it is not next, search, filter, help" {
	some_tasks
	"$PAWL" update -q docs --description "$(printf 'first %0120d end\n\x1b[31mred' 7)" >/dev/null
	"$PAWL" comment -q docs "a comment" >/dev/null
	board 120 40
	sees "Write the docs"
	keys 2 j Enter
	sees "status      Ready" "\\x1b[31mred" "a comment" "why it is not next" "waits for 1 of its dependencies: parser"
	keys q
	gone "why it is not next"
	keys /
	sees "Search for"
	text "日本"
	keys Enter
	sees "search: 日本" "parser"
	gone "Write the docs"
	keys Escape
	sees "Write the docs"
	keys f
	sees "Filter:"
	text "nonsense"
	keys Enter
	sees "a filter has the words"
	keys C-u
	text "#ui"
	keys Enter
	sees "filter: #ui" "parser"
	gone "Write the docs"
	keys Escape
	sees "Write the docs"
	keys '?'
	sees "Keys of the board" "break the lock of the task"
	keys q
	sees "Write the docs"
	leaves
}

# at ID: the cursor is on that task; c asks for a comment on it
at() {
	keys c
	text x
	keys Enter
	sees "Comment on $1?"
	keys n
	sees "nothing changed"
}

@test "board: each key that moves the cursor" {
	for i in $(seq 12); do new "Task $i" --id "r$i"; done
	new "Later" --id later --status backlog
	new "Look" --id look
	"$PAWL" claim -q look --agent ann >/dev/null
	board 100 30
	sees "r1" "later" "look"
	at r1
	keys Down
	at r2
	keys j j Up
	at r3
	keys k
	at r2
	keys NPage
	at r7
	keys PPage
	at r2
	keys End
	at r12
	keys Home
	at r1
	keys G
	at r12
	keys g
	at r1
	keys Right
	at look
	keys Left Left
	at later
	keys Tab
	at r1
	keys l
	at look
	keys h h
	at later
	keys 3
	at look
	leaves
}

@test "board: the detail view and the help scroll with the same keys" {
	new "Long" --id long --description "$(seq -f 'line %g.' 60)"
	board 80 24
	sees "Long"
	keys Enter
	sees "line 1."
	keys G
	sees "why it is not next"
	gone "line 1."
	keys g
	sees "line 1."
	keys NPage
	gone "line 1."
	keys PPage
	sees "line 1."
	keys End
	sees "it is next"
	keys Home Space
	gone "line 1."
	keys Escape
	sees "2 Ready 1"
	keys '?' j
	sees "lines 2 to"
	keys k
	sees "lines 1 to"
	keys Escape
	sees "2 Ready 1"
	leaves
}

@test "board: keys that change a task ask first, and show the command" {
	some_tasks
	board 120 40
	keys 6 r
	sees "What is missing?"
	keys Enter
	sees "this text cannot be empty"
	text "no tests"
	keys Enter
	sees "Send back look?" "pawl rework look --reason 'no tests' --if-version"
	keys n
	sees "nothing changed"
	is_now look Review
	keys a
	sees "Approve look?" "pawl approve look --if-version"
	keys y
	sees "approve look: done (Done)"
	is_now look Done
	keys 4 u
	sees "What has changed?"
	keys Enter
	sees "pawl unblock key --if-version"
	keys y
	sees "unblock key: done (In Progress)"
	is_now key "In Progress"
	keys 1 m
	sees "Move to which status?" "1 Ready        (update)"
	keys Enter
	sees "pawl update plan --status ready --if-version"
	keys y
	sees "update plan: done (Ready)"
	is_now plan Ready
	leaves
}

@test "board: comment, new task, cancel, break a lock, pause and resume" {
	some_tasks
	board 120 40
	keys 3 c
	sees "Comment"
	text "häl 🚀"
	keys Enter
	sees "pawl comment work 'häl 🚀'"
	keys y
	sees "comment work: done"
	same "$("$PAWL" show work --json | jq -r '.comments[0].text')" "häl 🚀"
	keys b
	sees "Why is the lock broken?"
	text gone
	keys Enter
	sees "pawl lock break work --reason gone --if-version"
	keys y
	sees "lock break work: done"
	same "$(field work .lock)" null
	keys b
	sees "nobody holds this task"
	keys n
	sees "Title of the new task"
	text "Fresh one"
	keys Enter
	sees "pawl create 'Fresh one'"
	keys y
	sees "create t1: done (Ready)"
	keys 4 x
	sees "Why is it canceled?"
	text "not needed"
	keys Enter
	sees "pawl cancel key --reason 'not needed' --if-version"
	keys y
	sees "cancel key: done (Canceled)"
	keys p
	sees "Why is the queue paused?"
	text "release day"
	keys Enter
	sees "pawl pause --reason 'release day'"
	keys y
	sees "PAUSED by" "release day"
	call 10 next
	keys p
	sees "pawl resume"
	keys y
	gone "PAUSED by"
	call 0 next
	leaves
}

# mouse BUTTON COLUMN LINE [BUTTON COLUMN LINE]: sends the bytes of presses at once, each with its release
# 0: left button, 64: wheel up, 65: wheel down
mouse() {
	local bytes=() at
	while [ $# -gt 0 ]; do
		printf -v at '%x %x' $((33 + $2)) $((33 + $3))
		# shellcheck disable=SC2206 # words
		bytes+=(1b 5b 4d "$(printf %x $((32 + $1)))" $at 1b 5b 4d 23 $at)
		shift 3
	done
	tm send-keys -H "${bytes[@]}"
}

# the mode of the mouse that the board asked the terminal for: 1 or 0
has_mouse() {
	[ "$(tm display-message -p '#{mouse_any_flag}')" = "$1" ]
}

# menu_of_plan: a click on the task, and its menu. On a busy machine the bytes of a click may come in two pieces; the board
# takes them for keys then, and `waits` clicks again.
menu_of_plan() {
	mouse 0 2 3
	keys m
	sees "Move to which status?"
	shows "2 Canceled" && return
	keys Escape
	gone "Move to which status?"
	return 1
}

@test "board: a click selects, a double click opens, the wheel scrolls, t gives the mouse back" {
	some_tasks
	board 80 24
	sees "Write the docs" "1 Backlog 1"
	waits has_mouse 1
	waits menu_of_plan
	keys Escape
	sees "nothing changed"
	mouse 65 30 10
	keys c
	sees "Comment"
	text "by wheel"
	keys Enter
	sees "pawl comment docs 'by wheel'"
	mouse 0 30 12
	keys n
	sees "nothing changed"
	mouse 0 30 3 0 30 3
	sees "why it is not next" "Fix the parser"
	keys q
	sees "Write the docs"
	keys t
	sees "the mouse belongs to the terminal"
	waits has_mouse 0
	keys t
	sees "clicks come to the board"
	waits has_mouse 1
	leaves
	waits has_mouse 0
}

@test "board: board.mouse off leaves the mouse to the terminal, and a signal gives it back" {
	some_tasks
	"$PAWL" config set board.mouse off >/dev/null
	board 80 24
	sees "In work"
	has_mouse 0
	leaves
	tm kill-server
	"$PAWL" config set board.mouse on >/dev/null
	board 80 24
	sees "In work"
	waits has_mouse 1
	kill -TERM "$(cat pid)"
	sees "left the board"
	waits has_mouse 0
}

@test "board: e edits the task in \$EDITOR, and the board comes back" {
	new "Old title" --id one
	printf '#!/bin/sh\nsed -i s/Old/New/ "$1"\n' >editor
	chmod +x editor
	board 80 24 EDITOR="$PWD/editor"
	sees "Old title"
	keys e
	sees "New title" "edited one"
	same "$(field one .title)" "New title"
	leaves
}

@test "board: a resize in the middle of a dialog keeps the dialog and the text" {
	some_tasks
	board 120 40
	keys 6 r
	sees "What is missing?"
	text "half a "
	sees "> half a"
	tm resize-window -x 80 -y 24
	sees "> half a" "q quit"
	text "reason"
	tm resize-window -x 60 -y 12
	keys Enter
	sees "Send back look?" "'half a reason'"
	tm resize-window -x 200 -y 50
	sees "Send back look?" "4 Blocked 1"
	keys y
	sees "rework look: done (In Progress)"
	tm resize-window -x 20 -y 5
	sees "pawl board"
	tm resize-window -x 80 -y 24
	sees "In work"
	leaves
}

@test "board: it is live, and a change of a task that others changed is refused" {
	new "Before" --id one
	board 80 24
	sees Before
	"$PAWL" update -q one --title After >/dev/null
	sees After
	gone Before
	new "Second" --id two
	sees Second
	keys x
	sees "Why is it canceled?"
	text late
	keys Enter
	sees "Cancel one?" "--if-version 2"
	"$PAWL" update -q one --priority 9 >/dev/null
	sees p9
	keys y
	sees "refused: one has version 3, not 2: it has changed since then"
	is_now one Ready
	# the cursor stays on its task when others come before it, or it moves
	"$PAWL" create -q First --class expedite >/dev/null
	sees First
	keys Enter
	sees "one  After"
	"$PAWL" remove -q one >/dev/null
	sees "there is no task one"
	keys x
	sees "there is no task under the cursor"
	keys q
	gone "there is no task one"
	leaves
}

@test "board: a lease that expires on the screen is shown so, and cards are in the order of next" {
	printf '{"id":"%s","title":"Same"}\n' b1 a10 a2 >"$BATS_TEST_TMPDIR/same.jsonl"
	"$PAWL" import "$BATS_TEST_TMPDIR/same.jsonl" >/dev/null
	"$PAWL" lock acquire b1 --ttl 5s --agent ann >/dev/null
	board 80 40
	sees "@ann" "s left"
	sees "@ann expired"
	gone "s left"
	same "$(screen | grep -oE '\b(a10|a2|b1)\b' | tr '\n' ' ')" "a2 a10 b1 "
	keys q
	leaves
}

@test "board: the time left counts down, on the card and in the detail view" {
	new x --id one
	"$PAWL" claim -q one --ttl 1h --agent ann >/dev/null
	board 80 24
	sees "@ann"
	for where in card detail; do
		before=$(screen | grep -oE "[0-9]+m [0-9]+s" | head -1)
		[ -n "$before" ]
		gone "$before"
		[ $where = detail ] || keys Enter
		[ $where = detail ] || sees "held by ann for another"
	done
	keys q
	leaves
}

@test "board: a signal or a killed terminal ends it, and the terminal stays sane" {
	local pid
	some_tasks
	for signal in TERM HUP INT; do
		board 80 24
		sees "In work"
		keys n
		sees "Title of the new task"
		pid=$(cat pid)
		kill "-$signal" "$pid"
		sees "left the board"
		same "$(cat after)" "$(cat before)"
		same "$(cat ended)" "code $((128 + $(kill -l "$signal")))"
		tm kill-server
	done
	board 80 24
	sees "In work"
	pid=$(cat pid)
	tm kill-server
	waits ends "$pid"
}

ends() {
	! kill -0 "$1" 2>/dev/null
}

# A key that reads the queue again, until the store fails.
reads_until_it_fails() {
	keys z
	shows "NOT LIVE"
}

@test "board: a store that fails leaves the tasks in view, and the board says that they are old" {
	some_tasks
	board 120 40 "'PAWL_STORE=$(faulty any:100:fail):always'"
	sees "In work"
	waits reads_until_it_fails
	sees "NOT LIVE: injected" "In work"
	leaves
}

@test "board: texts of tasks cannot write to the terminal" {
	printf '[{"id":"evil","title":"a\\u001b]0;owned\\u0007b\\u202ec\\u009b31m","status":"Ready","labels":["x\\u001b[2J"]}]' >evil.json
	"$PAWL" import -q evil.json >/dev/null
	board 80 24
	sees 'a\x1b]0;owned\x07' '#x\x1b[2J'
	keys Enter
	sees 'b\u{202e}c'
	keys q
	leaves
}

@test "board: colours, and none with NO_COLOR" {
	some_tasks
	board 80 24
	sees "In work"
	tm capture-pane -p -e >colored
	leaves
	tm kill-server
	board 80 24 NO_COLOR=1
	sees "In work"
	tm capture-pane -p -e >plain
	grep -q $'\e\[[0-9;]*3[1-6]m' colored
	! grep -q $'\e\[[0-9;]*3[1-6]m' plain || false
	leaves
}

@test "board: a long column is read by pages, and says how many are hidden" {
	for i in $(seq 130); do printf 'Task %s\n' "$i"; done | sed 's/^/- [ ] /' >plan.md
	"$PAWL" create -q -F plan.md >/dev/null
	board 80 24
	sees "2 Ready 130" "… 123 more"
	keys End
	sees "Task 50"
	keys End End
	sees "Task 130"
	keys Home
	sees "Task 1" "… 123 more"
	leaves
}

#!/usr/bin/env bats
# The commands that people look at: list, find, show, tree, graph and the overview. Their screens are in test/cli/screens;
# PAWL_TEST_WRITE=1 writes these again.

load common

# ids CODE ARG...: the ids that `pawl ARG... -q` prints, on one line
ids() {
	local want=$1
	shift
	call 0 "$@" -q
	same "${output//$'\n'/ }" "$want"
}

# plan: a release with sub-tasks, dependencies and dates; t3 is held by bob, t8 ended
plan() {
	pawl create "Release 1.0" -i t1 -c expedite
	pawl create "Write the documentation of every command" -i t2 --parent t1 -l docs,ui --due 2020-01-02
	pawl create "Fix the parser, which fails on nested quotes in attribute values of large files" -i t3 --parent t1 -l bug
	pawl create "Publish the packages" -i t4 --parent t1 --depends t2,t3
	pawl create "Tell everybody" -i t5 --depends t4 --due 2099-12-31
	pawl create "Clean the cache" -i t6 -l ui -p 5
	pawl create "An idea" -i t7 --status backlog
	pawl create "The beginning" -i t8
	pawl claim t8 -a ann
	pawl done t8 -a ann --summary "all of it"
	pawl claim t3 -a bob
}

# --- list ---

@test "list: open tasks by status, in the order of the offer" {
	call 0 list
	exactly "no tasks yet; to create one: pawl create TITLE"
	plan
	call 0 list
	says "In Progress (1)" "Ready (" "Ready, waiting (" "Backlog (1)" "1 ended task not shown: pawl list --all"
	not says "The beginning"
	[[ ${output%%Ready*} == *"t3 "*bob*"Fix the parser"* ]]
	pawl create "More urgent" -i t9 -c expedite -p 9
	call 0 list --ready
	[[ $output == *t9*t6*t2* ]]
	call 0 next
	says t9
	call 0 list --all
	says "Done (1)" "The beginning"
	not says "not shown"
}

@test "list: --json and --porcelain have every task, as they were made" {
	plan
	pawl archive t8
	ask 0 list
	is '[.tasks[].id] == ["t1","t2","t3","t4","t5","t6","t7","t8"] and .total == 8'
	ask 0 list --status done
	is '.total == 1'
	lines 0 list
	says "=== Completed Tasks ===" "t8: "
}

@test "list --ready, --waiting: Ready is what can be taken now" {
	pawl create a -i a
	pawl create b -i b --depends a
	pawl create c -i c --delay 1h
	pawl create d -i d --status backlog
	ids "a" list --ready
	ids "b c" list --waiting
	call 0 list --waiting
	says "WAITS FOR" "Ready, waiting (2)"
	[[ $output == *$'\n'"b "*" a "*b* && $output == *$'\n'"c "*" in "*c* ]]
	ask 0 list --ready
	is '[.tasks[].id] == ["a"] and .total == 1'
	ask 0 list --waiting
	is '[.tasks[].id] == ["b","c"] and .total == 2'
	pawl claim a
	pawl done a
	ids "b" list --ready
	ids "b d" list --ready --status backlog
}

@test "list: a locked Ready task is not ready" {
	pawl create a -i a
	pawl lock acquire a -a bob
	ids "" list --ready
	ids "a" list --waiting
	call 0 status
	says "1 waiting" "(1 task)"
	not says "Ready ·"
}

@test "list --mine: what I hold, and what is planned for me" {
	pawl create a -i a
	pawl create b -i b
	pawl claim b -a ann
	ids "b" list --mine -a ann
	ids "" list --mine -a bob
	ask 0 list --mine -a ann
	is '[.tasks[].id] == ["b"]'
}

@test "list --label: all of them; --not-label: none of them; with commas" {
	pawl create a -i a -l x,y
	pawl create b -i b -l x
	pawl create c -i c -l y,z
	pawl create d -i d
	ids "a b" list --label x
	ids "a" list --label x,y
	ids "a" list --label x --label y
	ids "" list --label x --label z
	ids "b d" list --not-label y
	ids "d" list --not-label y,x
	ids "c" list --label y --not-label x
	ask 0 list --label x,y
	is '[.tasks[].id] == ["a"] and .total == 1'
	ask 0 list --label x
	is '[.tasks[].id] == ["a","b"]'
	ask 0 list --not-label x
	is '[.tasks[].id] == ["c","d"]'
}

@test "list --due, --since and the mark of what is overdue" {
	pawl create old -i old --due 2020-05-05
	pawl create soon -i soon --due 2099-05-05
	pawl create never -i never
	ids "old" list --due 2021-01-01
	ids "old soon" list --due 2099-05-05
	call 0 list
	says "2020-05-05 late" "2099-05-05"
	not says "2099-05-05 late"
	call 0 show old
	says "2020-05-05  late"
	ids "" list --since 2099-01-01
	ids "never old soon" list --since 2020-01-01 --sort id
	call 2 list --since nonsense
	call 2 list --due nonsense
}

@test "list --sort: one list, with the status of each" {
	pawl create Zoe -i t2 -p 1 --due 2099-02-02
	pawl create Amy -i t10 -p 3
	pawl create Bob -i t1 -p 2 --due 2099-01-01
	ids "t1 t2 t10" list --sort id
	ids "t2 t10 t1" list --sort created
	ids "t10 t1 t2" list --sort priority
	ids "t10 t1 t2" list --sort title
	ids "t1 t2 t10" list --sort due
	ids "t10 t1 t2" list --sort offer
	pawl update t2 --title "Zoe Z"
	call 0 list --sort updated -n 1
	says "STATUS" t2 "showing 1 of 3; for all: pawl list --sort updated --limit 0"
	call 2 list --sort nonsense
	ask 0 list --sort priority
	is '[.tasks[].id] == ["t10","t1","t2"]'
}

@test "list: the command that shows what a limit hid" {
	for i in 1 2 3; do new "x $i"; done
	pawl create "y" -l "two words",b
	call 0 list -n 2
	says "Ready (4)" "showing 2 of 4; for all: pawl list --limit 0"
	call 0 list --label "two words" --label b -n 0
	not says "showing"
	pawl create "z" -l "two words",b
	call 0 list --label "two words" --label b --class standard -n 1
	says "showing 1 of 2; for all: pawl list --label 'two words',b --class Standard --limit 0"
	eval "set -- ${output##*pawl }"
	call 0 "$@"
	says "Ready (2)"
	not says "showing"
	call 0 list --label none
	exactly "no open tasks match; with ended ones: pawl list --label none --all"
}

@test "archive: hides ended tasks from every default view" {
	plan
	pawl create "Broken" -i t9
	pawl claim t9
	pawl fail t9 --reason "no way"
	call 0 list
	says "Failed (1)" Broken
	call 0 status
	says "1 Done" "waiting for a person: 1 Failed"
	call 0 archive
	call 0 list
	not says Broken
	call 0 list --status done,failed
	exactly "no tasks match; with archived ones: pawl list --status Done,Failed --all"
	call 0 find beginning
	exactly "no tasks match; with archived ones: pawl find beginning --all"
	call 0 find beginning --all
	says t8
	call 0 list --all
	says "The beginning" Broken
	call 0 tree
	not says Broken
	call 0 graph
	not says Broken
	call 0 status
	says ", 2 archived)"
	not says Done "waiting for a person"
	call 0 prime
	says "waiting for a person 0"
	call 0 retry t9
	call 0 list
	says Broken
}

@test "archive: a failed sub-task stays visible below its parent" {
	pawl create Whole -i t1
	pawl create Broken -i t2 --parent t1
	pawl create Gone -i t3 --parent t1
	pawl claim t2
	pawl fail t2 --reason "no way"
	pawl cancel t3 --reason "not needed"
	pawl archive
	call 0 tree t1
	says Broken
	not says Gone
	call 0 list --parent t1
	says Broken
	not says Gone
	call 0 list --parent t1 --status failed,canceled --sort id
	says Broken
	not says Gone
	call 0 list
	not says Broken
}

# --- numbers ---

# ageless: replaces durations, such as `14m 56s`, and the spaces that align them
ageless() {
	sed -E 's/\b[0-9]+(ms|[smhd])\b/T/g; s/ +/ /g; s/T( T)+/T/g'
}

@test "the same numbers in prime, pawl and status; plurals" {
	pawl create a -i a
	call 0
	says "1 Ready  (1 task)"
	pawl create b -i b --depends a
	pawl create c -i c
	pawl claim c
	pawl block c --reason r --unblock-action u
	pawl create d -i d
	pawl claim d
	pawl fail d --reason r
	call 0
	says "1 Ready · 1 waiting · 1 Blocked · 1 Failed  (4 tasks)" "waiting for a person: 1 Blocked, 1 Failed"
	local alone=$output
	call 0 status
	same "$(ageless <<<"$output")" "$(ageless <<<"$alone")"
	call 0 prime
	says "Ready 1, waiting 1, in progress 0, waiting for a person 2."
	call 0 list
	says "Ready (1)" "Ready, waiting (1)"
	call 2 clear </dev/null
	complains "4 tasks"
	pawl clear --yes --force
	new x
	call 2 clear </dev/null
	complains "1 task;"
	call 0 clear --yes
	says "1 task removed" "backup: " "to take it back: pawl restore FILE --force"
}

# --- show ---

@test "show: sub-tasks, both ways of dependencies, attempts with their outcomes" {
	short_leases
	plan
	call 0 show t1
	says "sub-tasks"
	matches ".*  t2  Ready             Write the documentation.*  t3  In Progress, bob  Fix the parser.*"
	call 0 show t4
	says "depends on" "waiting for this task" "t5  Ready  Tell everybody"
	ask 0 show t4
	is '[.depends_on[].id] == ["t2","t3"] and [.dependents[].id] == ["t5"] and .depends_on[1].holder == "bob"'
	pawl fail t3 -a bob --reason "three tests fail"
	pawl retry t3
	pawl claim t3 -a cy --ttl 0.1s
	lapsed t3
	pawl claim t3 -a dan
	pawl review t3 -a dan --summary "it parses"
	pawl rework t3 --reason "no test"
	pawl claim t3 -a eve
	call 0 show t3
	matches ".*attempts.*  bob +[0-9a-z ]+ ago +failed +three tests fail.*  cy +[^a-z]*[0-9a-z ]+ ago +abandoned.*  dan .*sent back for rework +it parses.*  eve .*holds it.*comments.*no test"
	ask 0 show t3
	is '[.attempts[] | [.agent, .outcome]] == [["bob","failed"],["cy","abandoned"],["dan","rework"],["eve",null]]'
	is '.attempts[0].text == "three tests fail"'
}

@test "show: the reason and action of a block stay until the next one" {
	new x
	pawl claim t1
	pawl block t1 --reason "no network" --unblock-action "plug it in"
	call 0 show t1
	says "no network" "plug it in"
	pawl unblock t1
	call 0 show t1
	says "last reason" "no network"
	not says "plug it in"
	claim_again t1
	pawl review t1 --summary s
	pawl rework t1 --reason "again"
	call 0 show t1
	says "last reason" "no network"
	not says "plug it in"
	ask 0 show t1
	is '.task | .blocker_reason == "no network" and .unblock_action == "plug it in"'
	is '.came_back.why | contains("again") and (contains("network") | not)'
	claim_again t1
	call 0 done t1
	pawl reopen t1 --reason "not yet"
	ask 0 show t1
	is '.task | .blocker_reason == "no network" and .unblock_action == "plug it in"'
	is '.came_back.why | contains("not yet") and (contains("network") | not)'
	ask 0 log t1
	is '.events | map(select(.event == "blocked")) |
		length == 1 and .[0].text == "no network" and .[0].unblock_action == "plug it in"'
	call 0 log t1
	says "to unblock: plug it in"
	pawl claim t1
	pawl block t1 --reason "no disk" --unblock-action "buy one"
	ask 0 show t1
	is '.task | .blocker_reason == "no disk" and .unblock_action == "buy one"'
}

# claim_again ID: by the agent that had it
claim_again() {
	call 0 claim "$1"
}

# --- tree and graph ---

@test "tree: sub-tasks and dependencies, each once" {
	plan
	call 0 tree t1
	exactly "t1  Release 1.0  [Ready]
├── t2  Write the documentation of every command  [Ready]
├── t3  Fix the parser, which fails on nested quotes in attribute values of large files  [In Progress, bob]
└── t4  Publish the packages  [Ready]
    ├── depends on t2  Write the documentation of every command  [Ready]
    └── depends on t3  Fix the parser, which fails on nested quotes in attribute values of large files  [In Progress, bob]"
	call 0 tree t5
	says "└── depends on t4  Publish"
	call 0 tree
	[ "$(grep -c 'Release 1.0' <<<"$output")" -eq 1 ]
	not says "The beginning"
	call 0 tree --all
	says "The beginning"
	call 44 tree nope
	lines 0 tree t4
	says "=== Active Tasks ===" "t3: bob"
	ask 0 tree t4
	is '[.tasks[].id] | sort == ["t2","t3","t4"]'
	call 0 tree t4 -q
	[ "${#lines[@]}" -eq 3 ]
}

@test "tree: a task that is reached twice is shown once" {
	pawl create d -i d
	pawl create c -i c --depends d
	pawl create b -i b --depends c
	pawl create a -i a --depends b,c
	call 0 tree
	exactly "a  a  [Ready]
├── depends on b  b  [Ready]
│   └── depends on c  c  [Ready]
│       └── depends on d  d  [Ready]
└── depends on c  c  [Ready] (above)"
}

@test "tree and graph: end where tasks wait for each other, which only a damaged store has" {
	mkdir "$BATS_TEST_TMPDIR/other" && cd "$BATS_TEST_TMPDIR/other"
	pawl init -q --store files:locks
	pawl create A -i a
	pawl create B -i b --depends a
	sed -i 's/"priority": 2,/"priority": 2, "depends": ["b"], "parent": "b", "open_depends": 1,/' locks/a.task
	call 0 tree
	exactly "a  A  [Ready]
└── depends on b  B  [Ready]
    ├── a  A  [Ready] (above)
    └── depends on a  A  [Ready] (above)"
	call 0 tree b
	says "b  B  [Ready] (above)"
	call 0 graph b
	says "n0 -> n1;" "n1 -> n0;"
	call 0 show a
	says "depends on" "waiting for this task"
}

@test "tree: bounded, and it says what is missing" {
	pawl create last -i x0
	for i in $(seq 12); do pawl create "x $i" -i "x$i" --depends "x$((i - 1))"; done
	call 0 tree x12 -n 5
	[ "${#lines[@]}" -eq 6 ]
	says "for all: pawl tree x12 --limit 0"
	call 0 tree -n 5
	says "for all: pawl tree --limit 0"
	call 0 tree -n 0
	[ "${#lines[@]}" -eq 13 ]
}

@test "graph: dot and mermaid" {
	plan
	call 0 graph t4
	[[ ${lines[0]} == "digraph tasks {" && ${lines[-1]} == "}" ]]
	says 'label="t4: Publish the packages / Ready"' "n0 -> n1;"
	call 0 graph t1 --format mermaid
	[[ ${lines[0]} == "graph LR" ]]
	says "n0 -.-> n1" 'In Progress, bob"]'
	call 2 graph --format nonsense
	call 44 graph nope
	lines 0 graph t4
	says "t3: bob"
	ask 0 graph t4
	is '.count == 3'
	call 0 graph -n 2
	complains "the graph has the first 2 tasks; for all: pawl graph --limit 0"
}

@test "graph: no title gets out of its label" {
	pawl create 'a"]; evil -> "b\' -i a
	pawl create $'x`#quot;<b>y\e[31m\u202e|%%{init}%%' -i b --depends a
	call 0 graph
	says '"a: a\"]; evil -> \"b\\ / Ready"' '\\x1b[31m\\u{202e}'
	[ "$(grep -c -- '^	n[0-9]* -> n[0-9]*;$' <<<"$output")" -eq 1 ]
	[ "${#lines[@]}" -eq 7 ]
	if command -v dot >/dev/null; then dot -Tplain <<<"$output" | grep -q '^edge'; fi
	call 0 graph --format mermaid
	says 'a#34;#93;#59; evil -#62; #34;b#92;' '#96;#35;quot#59;#60;b#62;y#92;x1b#91;31m'
	not says '`' '%%' '<'
}

# --- screens ---

# screen NAME COLUMNS ARG...: the command on a terminal of this width shows what test/cli/screens/NAME.COLUMNS has
screen() {
	local file=$PAWL_SOURCE/test/cli/screens/$1.$2 columns=$2
	shift 2
	on_terminal "stty cols $columns rows 50; $(printf '%q ' "$PAWL" "$@" --color never)" | tr -d '\r' |
		sed -E 's/[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z/TIME/; s/(ago|in) [0-9]+[smh]( [0-9]+[smh])?/\1 AGO/; s/[0-9]+[smhd]( [0-9]+[smh])? ago/AGO/' >screen
	if [ -n "${PAWL_TEST_WRITE-}" ]; then cp screen "$file"; fi
	diff "$file" screen
	local widest
	widest=$(wc -L <screen)
	[ "$1" = show ] || [ "$widest" -le "$columns" ] || { echo "a line has $widest columns" && return 1; }
}

@test "screens: list, show and tree at 80 and 140 columns" {
	needs_terminal
	plan
	pawl comment t3 "The old lexer had the same problem." -a ann
	local columns
	for columns in 80 140; do
		screen list $columns list
		screen list-all $columns list --all
		screen list-sort $columns list --sort due
		screen tree $columns tree
		screen tree-t5 $columns tree t5
		screen show-t1 $columns show t1
		screen show-t3 $columns show t3
		screen show-t4 $columns show t4
	done
}

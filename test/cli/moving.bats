#!/usr/bin/env bats
# import --from and export --to: the tasks of other programs.

load common


gen() {
	"$PAWL_SOURCE"/test/cli/gen-foreign "$@"
}

# statuses JSON: what the last import said
statuses() {
	is ".by_status == $1"
}

@test "import --from: every status of each program becomes one of pawl's, and a second run updates" {
	while read -r program file count by_status; do
		mkdir "$program"
		cd "$program"
		gen "$program" .
		pawl init --force
		ask 0 import --from "$program" "$file"
		is ".created == $count and .from == \"$program\""
		statuses "$by_status"
		ask 0 import --from "$program" "$file" --update
		is ".created == 0 and .updated == $count"
		call 0 doctor
		cd ..
	done <<-'END'
		beads . 37 {"Backlog":7,"Ready":11,"In Progress":7,"Blocked":5,"Done":7}
		task-master . 53 {"Backlog":5,"Ready":18,"In Progress":6,"Blocked":4,"Review":5,"Done":10,"Canceled":5}
		aitasks . 37 {"Backlog":15,"Ready":7,"In Progress":7,"Done":8}
		kanban-md . 36 {"Backlog":6,"In Progress":6,"Blocked":6,"Review":6,"Done":12}
		jira jira.csv 36 {"Backlog":6,"Ready":6,"In Progress":5,"Blocked":4,"Review":5,"Done":10}
		linear linear.csv 36 {"Backlog":5,"Ready":6,"In Progress":5,"Review":5,"Done":5,"Canceled":10}
		github issues.json 36 {"Ready":18,"Done":18}
	END
}

@test "import: files of other programs are recognised by their shape" {
	for program in beads task-master aitasks kanban-md; do
		mkdir "$program"
		gen "$program" "$program"
		ask 0 import "$program" --check
		is ".from == \"$program\""
	done
	gen jira .
	gen linear .
	gen github .
	for file in jira.csv linear.csv issues.json; do
		ask 0 import "$file" --check
		is '.from'
	done
	echo '[{"id":"t1","title":"of pawl itself","status":"Ready"}]' >own.json
	ask 0 import own.json --check
	is 'has("from") | not'
}

@test "import --from --check: shows what would come in and what is wrong, and changes nothing" {
	gen beads .
	call 0 import --from beads --check
	says "bd-0" "Issue 0" "and 17 more" "37 tasks read from beads" "left out: 1"
	complains ".beads/issues.jsonl:37: bd-lost depends on bd-nowhere, which does not exist"
	same "$("$PAWL" list --all --quiet)" ""
	check_refused 44 --from beads --strict
	complains ".beads/issues.jsonl:37: bd-lost"
	echo '{"id":"bd-x","title":"a","status":"open","priority":2,"issue_type":"task"' >>.beads/issues.jsonl
	check_refused 40 --from beads
	complains ".beads/issues.jsonl:40: "
}

@test "import --from: fields, texts, links and comments arrive; the rest is kept in extra" {
	gen beads .
	pawl import --from beads --all
	ask 0 show bd-0
	is '.task | .priority == 4 and .type == "bug" and .labels == ["core", "two-words"] and .acceptance == "It works"'
	is '.task.description | contains("Text 0") and contains("## Design\n\nA design") and contains("## Notes")'
	is '.task.extra.source == {"tool": "beads", "id": "bd-0"} and .comments[0].text == "seen"'
	ask 0 show bd-8
	is '.task.depends == ["bd-4"]'
	ask 0 show bd-lost
	is '.task | .depends == [] and .extra.lost_links == ["bd-nowhere"]'
	ask 0 show bd-m1
	is '.task.type == "message"'
}

@test "import --from task-master: sub-tasks, links between them, tags" {
	gen task-master .
	pawl import --from task-master
	ask 0 show t6_3
	is '.task | .parent == "t6" and .depends == ["t6_2", "t6_1"]'
	ask 0 show t6_2
	is '.task.depends == ["t6_1"]'
	ask 0 show feature-x-2
	is '.task | .labels == ["feature-x"] and .depends == ["feature-x-1"]'
	ask 0 show t1
	is '.task | .acceptance == "Tests" and (.description | contains("## Details\n\nDetails"))'
}

@test "import --from markdown: nesting, boxes, --ordered" {
	printf -- '- [ ] one\n  text\n  - [x] a\n  - [ ] b\n- [x] two\n- three\n' >plan.md
	pawl import --from markdown plan.md --ordered
	same "$("$PAWL" list --all --sort id --json | jq -c '[.tasks[] | [.id, .title, .status, .parent, .depends]]')" \
		'[["t1","one","Ready",null,[]],["t2","a","Done","t1",[]],["t3","b","Ready","t1",["t2"]],["t4","two","Done",null,["t1"]],["t5","three","Ready",null,["t4"]]]'
}

@test "import --from: bad files are refused with their line, and nothing changes" {
	printf 'good\nbad \377\n' >todo.txt
	check_refused 40 todo.txt
	complains "todo.txt:2: not valid UTF-8"
	mkdir -p backlog/tasks
	printf -- '---\nid: TASK-1\ntitle: [\n---\n' >"backlog/tasks/task-1 - x.md"
	check_refused 40 --from backlog
	complains "task-1 - x.md:"
	ln -s /etc/passwd "backlog/tasks/task-2 - y.md"
	printf -- '---\nid: TASK-1\ntitle: x\nstatus: To Do\n---\n' >"backlog/tasks/task-1 - x.md"
	ask 0 import --from backlog
	is '.created == 1 and (.left_out | length == 1)'
	unchanged 2 import
	unchanged 2 import --from nosuch x
}

@test "export --to, import --from: the same tasks come back" {
	gen beads . 30
	pawl import --from beads
	fields='[.[] | {id, title, status, priority, labels, depends, parent, acceptance}] | sort_by(.id)'
	pawl export -o here.json
	pawl export --to beads -o out.jsonl
	mkdir there
	cd there
	pawl init --force
	pawl import --from beads ../out.jsonl
	pawl export -o there.json
	same "$(command jq -cS "$fields" there.json)" "$(command jq -cS "$fields" ../here.json)"
	echo precious >keep.txt
	unchanged 20 export --to todo-txt -o keep.txt
	same "$(cat keep.txt)" precious
}

@test "export --to github: commands of gh that make the same issues" {
	pawl create "It's \$(touch evil) \`touch evil\`" -d 'line 1
line "2"' --label bug
	pawl create "Second"
	pawl cancel t2 --reason no
	pawl export --to github -o make.sh
	mkdir bin
	printf '#!/bin/sh\nfor a; do printf "<%%s>" "$a"; done >>"$LOG"; echo >>"$LOG"; echo url-1\n' >bin/gh
	chmod +x bin/gh
	LOG=$PWD/log PATH=$PWD/bin:$PATH sh make.sh
	[ ! -e evil ]
	same "$(cat log)" "<issue><create><--title><It's \$(touch evil) \`touch evil\`><--body><line 1
line \"2\"><--label><bug>
<issue><create><--title><Second><--body><>
<issue><close><url-1><--reason><not planned>"
}

@test "Taskwarrior: made there, imported, changed, exported, read by it again" {
	command -v task >/dev/null || skip "taskwarrior is not installed"
	export TASKRC=$PWD/rc TASKDATA=$PWD/tw
	mkdir tw
	printf 'confirmation=off\nverbose=nothing\n' >rc
	task add "Fix the parser" project:core priority:H +bug due:2026-12-01 2>/dev/null
	task add "Docs for it" depends:1 2>/dev/null
	task add "Old thing" 2>/dev/null
	task 3 done 2>/dev/null
	task 1 annotate "look at this" 2>/dev/null
	task export 2>/dev/null >all.json
	ask 0 import all.json
	is '.from == "taskwarrior" and .created == 3 and .comments == 1 and .by_status == {"Ready": 2, "Done": 1}'
	id=$("$PAWL" next --quiet)
	ask 0 show "$id"
	is '.task | .title == "Fix the parser" and .priority == 3 and .labels == ["project:core", "bug"] and .due == "2026-12-01"'
	pawl done "$id" --take
	pawl create "New in pawl" --label deep
	pawl export --to taskwarrior -o back.json
	task import back.json 2>/dev/null
	same "$(task export 2>/dev/null | command jq -c 'map([.description, .status]) | sort')" \
		'[["Docs for it","pending"],["Fix the parser","completed"],["New in pawl","pending"],["Old thing","completed"]]'
	same "$(task +deep export 2>/dev/null | command jq length)" 1
	same "$(task project:core export 2>/dev/null | command jq -c 'map(.description)')" '["Fix the parser"]'
}

@test "todo.txt: written by its program, imported, changed, exported, listed by it again" {
	command -v todo-txt >/dev/null || skip "todotxt-cli is not installed"
	mkdir todo
	printf 'export TODO_DIR=%s\nexport TODO_FILE="$TODO_DIR/todo.txt"\nexport DONE_FILE="$TODO_DIR/done.txt"\nexport REPORT_FILE="$TODO_DIR/report.txt"\n' "$PWD/todo" >todo.cfg
	todo() { todo-txt -d "$PWD/todo.cfg" -p "$@"; }
	todo -t add "Fix it +core @bug due:2026-12-01"
	todo -t add "Call mum"
	todo pri 1 A
	todo -a do 2
	ask 0 import todo/todo.txt
	is '.from == "todo-txt" and .by_status == {"Ready": 1, "Done": 1}'
	ask 0 show t1
	is '.task | .title == "Fix it" and .priority == 3 and .labels == ["+core", "@bug"] and .due == "2026-12-01"'
	pawl create "From pawl"
	pawl export --to todo-txt -o todo/todo.txt --force
	run todo list
	[[ $output == *"(A) "*"Fix it +core @bug due:2026-12-01"* ]]
	[[ $output == *"From pawl"* ]]
	[[ $output == *"x "*"Call mum"* ]]
}

@test "setup --from: imports what the old program keeps in the project, and leaves it untouched" {
	for program in beads task-master; do
		mkdir "$program"
		cd "$program"
		gen "$program" .
		find . -type f -exec sha256sum {} + >../before
		pawl init --force
		call 0 setup --from "$program"
		says "tasks read from $program" "pawl export --to $program --output FILE"
		find . -type f -not -path './.pawl/*' -not -name .gitignore -exec sha256sum {} + >../after
		cmp ../before ../after
		cd ..
	done
	unchanged 2 setup claude --from beads
	unchanged 44 setup --from backlog
	complains "there is no backlog in this folder"
	unchanged 2 import --from taskwarrior
}

#!/usr/bin/env bats
# import --from and export --to: the tasks of other programs.

load common


# gen PROGRAM FOLDER: its files; they are made once
gen() {
	local made=$BATS_FILE_TMPDIR/made-$1
	[ -d "$made" ] || {
		mkdir "$made"
		"$PAWL_SOURCE"/test/cli/gen-foreign "$1" "$made"
	}
	mkdir -p "$2"
	cp -r "$made/." "$2"
}

# as_expected: the tasks of the queue are those of expected.json, which gen-foreign wrote
as_expected() {
	local sides
	rm -f out.json
	pawl export -o out.json
	mapfile -t sides < <(jq -cn --slurpfile out out.json --slurpfile want expected.json '
		def row: [.id, .status, .priority, .class, .labels, .depends, .parent, .type, .effort, .assignee, .acceptance,
			(.due | if . then .[:10] else . end), .not_before, .done_at, .blocker_reason];
		($out[0] | sort_by(.id)) as $out | ($want[0] | sort_by(.id)) as $want
		| [[range($out | length) | $want[.] as $w | $out[.] | row # not every file has a title and a time
			+ [if $w.title then .title else null end, if $w.created_at then .created_at else null end]],
			($out | map(.comments | length) | add)],
		[[$want[] | row + [.title, .created_at]], ($want | map(.comments) | add)]')
	same "${#sides[@]}" 2
	same "${sides[0]}" "${sides[1]}"
}

@test "import --from: every status, link and trap of each program, and a second run changes nothing" {
	export TZ=XXX-1
	while read -r program file warnings; do
		mkdir "$program"
		cd "$program"
		gen "$program" .
		pawl init --force
		ask 0 import --from "$program" "$file"
		is ".created == $(jq length expected.json) and .from == \"$program\" and (.warnings | length) == $warnings"
		as_expected
		ask 0 import --from "$program" "$file" --update
		is '.created == 0 and .updated == 0 and .comments == 0 and .skipped == .read'
		call 0 doctor
		cd ..
	done <<-'END'
		beads . 1
		task-master . 7
		aitasks . 1
		kanban-md . 7
		jira jira.csv 4
		linear linear.csv 6
		github issues.json 0
		taskwarrior all.json 1
		todo-txt todo.txt 0
		backlog . 6
		markdown plan.md 0
	END
}

@test "import --from: older and other shapes of the same programs" {
	gen task-master .
	ask 0 import old.json --check
	is '.from == "task-master" and .read == 61'
	gen github .
	ask 0 import rest.json
	is '.from == "github" and .by_status == {"Ready": 18, "Done": 6, "Canceled": 12} and .dropped == {"a pull request, not an issue": 1}'
}

@test "import: files of other programs are recognised by their shape, and pawl's own are not" {
	for program in beads task-master aitasks kanban-md backlog; do
		mkdir "$program"
		gen "$program" "$program"
		ask 0 import "$program" --check
		is ".from == \"$program\""
	done
	ask 0 import beads/.beads --check
	is '.from == "beads"'
	while read -r program file; do
		gen "$program" .
		ask 0 import "$file" --check
		is ".from == \"$program\""
	done <<-'END'
		jira jira.csv
		linear linear.csv
		github issues.json
		taskwarrior all.json
		todo-txt todo.txt
		markdown plan.md
	END
	echo '[{"id":"t1","title":"of pawl itself","status":"Ready","description":"Issue key Summary ID Team Title Status \"uuid\":","extra":{"issue_type":1,"number":2,"state":3,"uuid":4,"entry":5}}]' >own.json
	printf 'id,title,description\nt1,Title,"ID,Team,Title,Status and Issue key,Summary"\n' >own.csv
	printf '# Fix it\n\nSome words.\n\n- [ ] a step\n' >own.md
	for file in own.json own.csv own.md; do
		ask 0 import "$file" --check
		is '(has("from") | not) and .read == 1'
	done
	for folder in backlog mybacklog; do
		mkdir -p "own/$folder"
		cp own.md "own/$folder/t7.md"
		ask 0 import "own/$folder" --check
		is '(has("from") | not) and .read == 1'
	done
}

@test "import --from --update: takes what changed there, and keeps what changed here" {
	mkdir .beads
	lines() {
		printf '{"id":"bd-1","title":"%s","description":"d","status":"%s","priority":2,"issue_type":"task","labels":["a"]}\n' "$1" "$2"
		printf '{"id":"bd-2","title":"Two","status":"%s","priority":%s,"issue_type":"task"}\n' "$3" "$4"
	}
	lines One open open 2 >.beads/issues.jsonl
	pawl import --from beads
	pawl done bd-1 --take --summary "It is done"
	pawl update bd-1 --description "Mine" --label more
	pawl claim bd-2
	# bd-2 is held, but nothing changed there: no conflict
	lines "Uno" open open 2 >.beads/issues.jsonl
	ask 0 import --from beads --update
	is '.updated == 1 and .skipped == 1'
	ask 0 show bd-1
	is '.task | .title == "Uno" and .status == "Done" and .summary == "It is done" and .description == "Mine"'
	is '.task.labels | contains(["more"])'
	lines "Uno" open closed 2 >.beads/issues.jsonl
	unchanged 20 import --from beads --update
	complains "bd-2 is held"
	pawl release bd-2
	pawl import --from beads --update
	same "$(field bd-2 .status)" Done
	# both sides moved it: the status of pawl stays
	lines "Uno" in_progress closed 4 >.beads/issues.jsonl
	pawl import --from beads --update
	same "$(field bd-1 .status)" Done
	same "$(field bd-2 .priority)" 0
}

@test "import --from --update: does not touch a task that did not come from there" {
	pawl create "Written here"
	gen task-master .
	unchanged 20 import --from task-master
	unchanged 20 import --from task-master --update
	complains "task t1 exists already and is another task: Written here"
	ask 0 import --from task-master --skip
	is '.skipped == 1'
	same "$(field t1 .title)" "Written here"
	# the id of an item is its place: after a line was put before it, it is another task
	mkdir list
	cd list
	pawl init --force
	printf -- '- [ ] one\n- [ ] two\n' >plan.md
	pawl import --from markdown plan.md
	printf -- '- [ ] zero\n- [ ] one\n- [ ] two\n' >plan.md
	unchanged 20 import --from markdown plan.md --update
	printf -- '- [x] one\n- [ ] two\n- [ ] three\n' >plan.md
	ask 0 import --from markdown plan.md --update
	is '.created == 1 and .updated == 1'
	same "$(field t1 .status)" Done
}

@test "import --from --check: shows what would come in and what is wrong, and changes nothing" {
	gen beads .
	call 0 import --from beads --check
	says "bd-0" "Issue 0" "and 17 more" "37 tasks read from beads" "left out: 4" "left out: 1"
	complains ".beads/issues.jsonl:37: bd-lost depends on bd-nowhere, which does not exist"
	same "$("$PAWL" list --all --quiet)" ""
	check_refused 44 --from beads --strict
	complains ".beads/issues.jsonl:37: bd-lost"
	echo '{"id":"bd-x","title":"a","status":"open","priority":2,"issue_type":"task"' >>.beads/issues.jsonl
	unchanged 40 import --from beads
	complains ".beads/issues.jsonl:44: "
	unchanged 40 import --from beads --check
	complains ".beads/issues.jsonl:44: " ".beads/issues.jsonl:37: bd-lost depends on bd-nowhere, which does not exist"
}

@test "import --from --check: shows all that the import would refuse, with file and line" {
	mkdir .beads
	issue() {
		printf '{"id":"%s","title":"T","status":"open","priority":2,"issue_type":"task"%s}\n' "$@"
	}
	link() {
		printf ',"dependencies":[{"issue_id":"x","depends_on_id":"%s","type":"blocks"}]' "$1"
	}
	pawl create "There already" --id bd-1
	{
		issue bd-1
		issue bd-2 "$(link bd-3)"
		issue bd-3 "$(link bd-2)"
		issue bd-4 "$(link bd-nowhere)"
		issue bd-4
		issue bd-5 ",\"assignee\":\"$(printf 'x%.0s' {1..300})\""
		issue bd-6 "$(link bd-5)" # leads to a task that is refused itself
		issue ''
	} >.beads/issues.jsonl
	unchanged 40 import --from beads --check --strict --json
	is '[.refusals[] | split(": ")[0] | split(":")[1] | tonumber] | sort == [1, 3, 4, 5, 6, 8]'
	is '.error.message == .refusals[0] and (.warnings | length) == 5 and .warnings == .refusals[1:]'
	unchanged 40 import --from beads --check --strict
	complains "issues.jsonl:1: task bd-1 exists already" "issues.jsonl:3: bd-3 would wait for itself" \
		"issues.jsonl:4: bd-4 depends on bd-nowhere, which does not exist" "issues.jsonl:5: task bd-4 exists already" \
		"issues.jsonl:6: assignee" "issues.jsonl:8: this task has no id"
	# the import itself ends with the first of them
	unchanged 40 import --from beads --strict --json
	is 'has("refusals") | not'
}

@test "import --from: a link to a task of the queue stays; a queue that cannot be read is an error" {
	needs_sqlite
	pawl create "Before" --id bd-0
	mkdir .beads
	printf '{"id":"bd-1","title":"T","status":"open","priority":2,"issue_type":"task","dependencies":[%s]}\n' \
		'{"issue_id":"bd-1","depends_on_id":"bd-0","type":"blocks"}' >.beads/issues.jsonl
	ask 0 import --from beads --check
	is '.preview[0].depends == ["bd-0"] and (has("warnings") | not)'
	sqlite3 .pawl/queue.db "UPDATE record SET hot=x'00' WHERE id='bd-0'"
	unchanged 40 import --from beads
	complains "bd-0"
	unchanged 40 import --from beads --strict
}

@test "import --from --update: a task that only lost links blocked follows the other program" {
	mkdir .beads
	blocked() {
		printf '{"id":"bd-1","title":"T","status":"%s","priority":2,"issue_type":"task","dependencies":[%s]}\n' "$1" \
			'{"issue_id":"bd-1","depends_on_id":"bd-gone","type":"blocks"}' >.beads/issues.jsonl
	}
	blocked blocked
	pawl import --from beads
	same "$(field bd-1 .status)" Blocked
	ask 0 import --from beads --update
	is '.updated == 0 and .skipped == 1'
	blocked closed
	pawl import --from beads --update
	same "$(field bd-1 .status)" Done
	# and if the missing task comes later, the link comes with it
	blocked blocked
	pawl import --from beads --update
	same "$(field bd-1 .status)" Blocked
	echo '{"id":"bd-gone","title":"Back","status":"open","priority":2,"issue_type":"task"}' >>.beads/issues.jsonl
	pawl import --from beads --update
	same "$(field bd-1 .status)" Ready
	same "$(field bd-1 '.depends[0]')" bd-gone
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
	ask 0 show bd-message
	is '.task.type == "message"'
	ask 0 show bd-6
	is '.task.extra.links == [{"issue_id": "bd-6", "depends_on_id": "bd-2", "type": "related"}]'
}

@test "import --from task-master: sub-tasks, links between them, tags" {
	gen task-master .
	pawl import --from task-master
	ask 0 show t6_3
	is '.task | .parent == "t6" and .depends == ["t6_2", "t6_1", "t160"]'
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
	{
		echo good
		head -c 1048577 /dev/zero | tr '\0' x
		printf '\nalso good'
	} >todo.txt
	check_refused 40 todo.txt
	complains "todo.txt:2: this line is longer than 1 MiB"
	printf 'good\nalso good' >todo.txt
	ask 0 import todo.txt --check
	is '.read == 2'
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
	# Taskwarrior's ids are longer than pawl's: a link to a task that does not exist is not written. In todo.txt every task
	# gets an id and the day on which it was made.
	while read -r program from out less; do
		fields="[.[] | del(.version, .updated_at, .extra.imported, $less)] | sort_by(.id)"
		mkdir -p "$program/there"
		cd "$program"
		gen "$program" .
		pawl init --force
		pawl import --from "$program" "$from"
		pawl export -o here.json
		pawl export --to "$program" -o "$out"
		cd there
		pawl init --force
		pawl import --from "$program" "../$out"
		pawl export -o there.json
		cmp <(command jq -S "$fields" there.json) <(command jq -S "$fields" ../here.json)
		cd ../..
	done <<-'END'
		beads . out.jsonl .none
		taskwarrior all.json out.json .extra.lost_links
		todo-txt todo.txt out.txt .extra.source, .created_at
	END
	echo precious >keep.txt
	unchanged 20 export --to todo-txt -o keep.txt
	same "$(cat keep.txt)" precious
}

@test "export --to task-master: tags, sub-tasks, and links that it cannot have" {
	gen task-master .
	pawl import --from task-master
	pawl export --to task-master -o out.json
	same "$(command jq -c '[keys[], (.master.tasks | length), ."feature-x".tasks[1].dependencies, ."feature-x".tasks[1].id]' out.json)" \
		'["feature-x","master",37,[1],2]'
	same "$(command jq -c '.master.tasks[] | select(.id == 6).subtasks | map(.dependencies)' out.json)" \
		'[[],["6.1"],["6.2","6.1",160],["6.2","6.77"]]'
	pawl create "Another" --parent t24 --depends t2 --label x
	rm out.json
	ask 0 export --to task-master -o out.json
	is '.left_out.depends == 1 and .left_out.labels > 0'
}

@test "export --to backlog: file names are safe whatever the id was" {
	echo '[{"id":"a","title":"../../x","extra":{"source":{"tool":"backlog","id":"x"}}},
		{"id":"b","title":"y","extra":{"source":{"tool":"backlog","id":"../../../etc/TASK-1/../z"}}},
		{"id":"c","title":"z","extra":{"source":{"tool":"backlog","id":"////"}}}]' >in.json
	pawl import in.json --format json
	pawl export --to backlog -o back
	same "$(cd back && printf '%s\n' * | LC_ALL=C sort)" "c - z.md
etc-task-1-..-z - y.md
x - x.md"
}

@test "export --to: says what the other program has no place for" {
	pawl create "One" -d text --acceptance "it works"
	pawl create "Two" --depends t1
	pawl comment t1 "words"
	call 0 export --to todo-txt -o todo.txt
	says "2 tasks exported to todo.txt" "left out: description of 1 task" "left out: depends of 1 task" "left out: comments of 1 task"
	call 0 export --to beads -o out.jsonl
	[[ $output != *"left out"* ]]
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
	command -v task >/dev/null || skip "needs taskwarrior"
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
	command -v todo-txt >/dev/null || skip "needs todotxt-cli"
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
	mkdir -p repo/deep/er
	gen beads repo
	cd repo/deep/er
	unchanged 44 setup --from beads # not a repository: the folders above may be anybody's
	git init -q ../..
	ask 0 setup --from beads
	is '.created == 37'
	cd ../../..
	unchanged 2 import --from taskwarrior
}

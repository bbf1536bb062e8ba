#!/usr/bin/env bats
# Tasks that other programs themselves wrote: Backlog.md, and the issues in GitHub's examples. `tools/mcp-clients moving`
# gets both from npm. test/cli/moving.bats does the same with Taskwarrior and todo.txt, which Debian has.

load ../cli/common
load ../kit/npm

setup_file() {
	from_npm moving
}

setup() {
	needs_npm
	fresh
	git init -q
	queue
}

backlog() {
	PATH=$FROM_NPM:$PATH timeout 60 "$FROM_NPM/node_modules/.bin/backlog" "$@" </dev/null
}

# new_project: a project of Backlog.md with tasks of all kinds
new_project() {
	backlog init demo --defaults >/dev/null 2>&1
	backlog config set remoteOperations false >/dev/null
	backlog task create "Fix the parser: all of it" -d "It breaks. Twice." -a @ann,@bob -l core,ui --priority high --type bug \
		--due-date 2026-12-01 --ac "one" --ac "two" --dod "reviewed" --ref http://x --plain >/dev/null
	backlog task edit 1 --notes "a note" --comment "Look at this" --comment-author ann --plain >/dev/null
	backlog task create "A part" -p 1 --dep task-1 --plain >/dev/null
	backlog task create "Over" -s Done --final-summary "All good" --plain >/dev/null
	backlog task create "Running" -s "In Progress" --dep task-2 --plain >/dev/null
	backlog task create "An idea" --draft --plain >/dev/null
}

@test "Backlog.md: made there, imported, changed, exported, read by it again" {
	new_project
	find backlog -type f -exec sha256sum {} + >before
	ask 0 setup --from backlog
	is '.created == 5 and .comments == 1 and .by_status == {"Backlog": 1, "Ready": 2, "In Progress": 1, "Done": 1}'
	is '.warnings | any(contains("task-1.1 - A-part.md") and contains("link dropped"))'
	find backlog -type f -exec sha256sum {} + | cmp - before
	ask 0 show TASK-1
	is '.task | .title == "Fix the parser: all of it" and .priority == 3 and .labels == ["core", "ui"] and .type == "bug"'
	is '.task | .assignee == "ann" and .due == "2026-12-01" and (.acceptance | contains("#2 two"))'
	is '.comments[0] | .text == "Look at this" and .agent == "ann"'
	ask 0 show TASK-2
	is '.task | .status == "Done" and .summary == "All good"'
	ask 0 show TASK-1.1
	is '.task | .parent == "TASK-1" and .depends == []'
	pawl done TASK-1.1 --take --summary "Cut in two"
	pawl create "New in pawl" --depends TASK-1 --label deep
	pawl export --to backlog -o back
	rm -r backlog/tasks backlog/drafts
	mkdir backlog/tasks backlog/drafts
	mv back/draft-* backlog/drafts
	mv back/task-* backlog/tasks
	rmdir back
	run -0 backlog task list --plain
	[[ $output == *"[HIGH] [bug] TASK-1 - Fix the parser: all of it"*"(due 2026-12-01)"* ]]
	[[ $output == *"New in pawl"* ]]
	run -0 backlog task view 1.1 --plain
	[[ $output == *"Status: "*"Done"* && $output == *"Cut in two"* ]]
	run -0 backlog task view 1 --plain
	[[ $output == *"It breaks. Twice."* && $output == *"#2 two"* && $output == *"reviewed"* && $output == *"a note"* ]]
	[[ $output == *"Look at this"* && $output == *"@ann"* && $output == *"@bob"* && $output == *"http://x"* ]]
	run -0 backlog task view 3 --plain
	[[ $output == *"Status: "*"In Progress"* && $output == *"TASK-2"* ]]
	run -0 backlog draft list --plain
	[[ $output == *"An idea"* ]]
	# and once more into pawl: only the new task is new, under the id that it got there
	ask 0 import --from backlog --update
	is '.created == 1 and .skipped == 4 and .comments == 0'
	ask 0 show TASK-4
	is '.task | .title == "New in pawl" and .depends == ["TASK-1"]'
}

@test "Backlog.md: changes on both sides come together" {
	new_project
	pawl import --from backlog
	pawl claim TASK-3
	pawl done TASK-3
	pawl update TASK-1 --priority 0
	backlog task edit 3 -t "Running fast" --plain >/dev/null
	backlog task edit 1 -s "In Progress" --comment "And this" --plain >/dev/null
	ask 0 import --from backlog --update
	is '.created == 0 and .updated == 2 and .comments == 1'
	ask 0 show TASK-3
	is '.task | .status == "Done" and .title == "Running fast"'
	ask 0 show TASK-1
	is '.task | .status == "In Progress" and .priority == 0'
}

@test "GitHub: the issues of its own examples" {
	command jq '[.. | objects | .issue? | objects | select(has("number"))]
		| unique | to_entries | map(.value + {number: (.key + 1)})' \
		"$FROM_NPM/node_modules/@octokit/webhooks-examples/api.github.com/index.json" >all.json
	ask 0 import all.json --check
	is '.from == "github" and .read > 0'
	left=$(command jq '[.[] | select(has("pull_request"))] | length' all.json)
	ask 0 import all.json
	is ".created + $left == $(command jq length all.json)"
	while read -r number title; do
		same "$("$PAWL" show "gh-$number" --json | command jq -r .task.title)" "$title"
	done < <(command jq -r '.[] | select(has("pull_request") | not) | "\(.number) \(.title)"' all.json)
	call 0 doctor
}

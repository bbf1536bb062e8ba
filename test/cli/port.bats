#!/usr/bin/env bats
# export, import: tasks as files, in four formats.

load common

many() {
	case ${PAWL_TEST_STORE-} in
	'') echo "${PAWL_TEST_MANY:-10000}" ;;
	git:*) echo 60 ;;
	*) echo 300 ;;
	esac
}

# another: a folder with an empty queue of the same kind
another() {
	work=$BATS_TEST_TMPDIR/another-$1
	mkdir "$work"
	cd "$work" || return
	BATS_TEST_TMPDIR=$work queue
}

# refused LINE TEXT FILE...: refused with the file's name and that line; nothing changes
refused() {
	local line=$1 text=$2
	shift 2
	check_refused 40 "$@"
	complains "$1:$line: " "$text"
}

@test "export, import, export: the same bytes in every format, for all fields and comments" {
	"$PAWL_SOURCE"/test/cli/gen-tasks "$(many)" >in.json
	ask 0 import in.json
	is ".created == $(many) and .updated == 0 and .comments >= $(many)"
	call 0 export --output one.json
	# the export equals the import; only the order of an object's keys may differ
	command jq -S . in.json >in.sorted
	command jq -S 'sort_by(.id[1:] | tonumber) | map(if .labels == [] then del(.labels) else . end
		| if .depends == [] then del(.depends) else . end)' one.json >one.sorted
	command jq -S 'map(if .labels == [] then del(.labels) else . end)' in.json >in.sorted
	cmp in.sorted one.sorted
	for format in jsonl csv md; do
		call 0 export --output "one.$format" --format "$format"
	done
	from=$PWD
	for format in json jsonl csv md; do
		(
			another "$format"
			call 0 import "$from/one.$format"
			call 0 export --output "two.$format" --format "$format"
			diff -r "$from/one.$format" "two.$format"
			call 0 export --output again.json
			cmp "$from/one.json" again.json
		)
	done
}

@test "export: no lock and no token leaves the queue; import brings none in" {
	id=$(new x)
	pawl claim "$id"
	for format in json jsonl csv md; do
		call 0 export -o "out.$format" --format "$format"
		not grep -rqi 'token\|\bholder\|expires' "out.$format"
	done
	another x
	call 0 import ../work/out.json
	ask 0 show "$id"
	is '.task | .status == "In Progress" and .lock == null and .fence == 1'
	ask 0 claim "$id"
	is '.lock.fence == 2'
}

@test "export: a failed export leaves nothing behind" {
	pawl create x
	unchanged 2 export
	unchanged 2 export -o tasks
	complains --format
	mkdir full && touch full/x
	unchanged 20 export -o full
	complains empty
	call 30 export -o no/such/folder.json
	ask 30 export -o no/such/folder.json
	same "$(echo *)" full
	call 0 export -o done.json --status done
	same "$(jq length done.json)" 0
	ask 0 export -o done.json
	is '.exported == 1'
	lines 0 export -o done.json
	ask 20 export -o full
}

@test "import: a task that is there already" {
	a=$(new A)
	b=$(new B --depends "$a")
	pawl export -o q.json
	pawl update "$a" --title changed
	unchanged 20 import q.json
	complains "q.json:2: task $a exists already" --skip --update
	ask 20 import q.json
	ask 0 import q.json --skip
	is '.skipped == 2 and .created == 0'
	same "$(field "$a" .title)" changed
	pawl claim "$a"
	unchanged 20 import q.json --update
	complains "$a is held"
	pawl done "$a"
	fence=$(field "$a" .fence)
	ask 0 import q.json --update
	is '.updated == 2'
	same "$(field "$a" .title)" A
	same "$(field "$a" .fence)" "$fence"
	# the status went back to Ready, so B waits again
	same "$(field "$b" .open_depends)" 1
	unchanged 2 import q.json --skip --update
}

@test "import: no task is archived before it ended" {
	cat >in.json <<'END'
[{"id": "t1", "title": "x", "status": "Done", "done_at": "2026-03-02T00:00:00.000Z", "archived_at": "2026-01-01T00:00:00.000Z"},
 {"id": "t2", "title": "y", "status": "Done", "done_at": "2026-03-02T00:00:00.000Z", "archived_at": "2026-03-05T00:00:00.000Z"}]
END
	call 0 import in.json
	ask 0 show t1
	is '.task | .archived_at == .done_at and .done_at == "2026-03-02T00:00:00.000Z"'
	ask 0 show t2
	is '.task.archived_at == "2026-03-05T00:00:00.000Z"'
}

@test "import --update: comments come once" {
	id=$(new x)
	pawl comment "$id" one
	pawl export -o q.json
	pawl comment "$id" two
	pawl import q.json --update
	ask 0 show "$id"
	is '[.comments[].text] == ["one", "two"]'
}

@test "import --update: the attempts and the first start of a task do not go back" {
	id=$(new x)
	pawl claim "$id"
	pawl release "$id"
	ask 0 show "$id"
	started=$(jq -r .task.first_started_at <<<"$output")
	echo "[{\"id\": \"$id\", \"title\": \"y\"}]" >q.json
	pawl import q.json --update
	ask 0 show "$id"
	is ".task.title == \"y\" and .task.attempts == 1 and .task.first_started_at == \"$started\""
	echo "[{\"id\": \"$id\", \"title\": \"y\", \"attempts\": 5, \"first_started_at\": \"2020-01-02T03:04:05.000Z\"}]" >q.json
	pawl import q.json --update
	ask 0 show "$id"
	is '.task.attempts == 5 and .task.first_started_at == "2020-01-02T03:04:05.000Z"'
}

@test "import: the fence of a removed task, and the counter, do not go back" {
	id=$(new x)
	pawl claim "$id"
	pawl release "$id"
	pawl claim "$id"
	pawl release "$id"
	pawl remove "$id"
	echo '[{"id": "t1", "title": "again"}, {"id": "t500", "title": "far"}]' >q.json
	pawl import q.json
	ask 0 claim t1
	is '.lock.fence == 3'
	same "$(new y)" t501
}

@test "import: links may point forward; a missing task or a cycle is refused" {
	cat >q.jsonl <<'END'
{"id": "a", "title": "A", "depends": ["b", "d"], "parent": "P"}
{"id": "b", "title": "B", "status": "Done"}
{"id": "P", "title": "P"}
{"id": "d", "title": "D"}
{"id": "e", "title": "E", "depends": ["c"]}
{"id": "c", "title": "C", "status": "Canceled"}
END
	call 0 import q.jsonl
	same "$(field a .open_depends)" 1
	same "$(field p .open_subtasks)" 1
	status_is e "Needs Help"
	echo '{"id": "x", "title": "X", "depends": ["nowhere"]}' >m.jsonl
	unchanged 44 import m.jsonl
	complains "m.jsonl:1: " "dependency nowhere"
	echo '{"id": "x", "title": "X", "parent": "nowhere"}' >m.jsonl
	ask 44 import m.jsonl
	printf '%s\n' '{"id": "x", "title": "X", "depends": ["y"]}' '{"id": "y", "title": "Y", "depends": ["z"]}' \
		'{"id": "z", "title": "Z", "depends": ["x"]}' >c.jsonl
	unchanged 40 import c.jsonl
	complains "wait for itself"
	printf '%s\n' '{"id": "x", "title": "X", "parent": "y"}' '{"id": "y", "title": "Y"}' \
		'{"id": "z", "title": "Z", "parent": "x", "depends": ["y"]}' >c.jsonl
	unchanged 40 import c.jsonl
	echo '{"id": "x", "title": "X", "depends": ["X"]}' >c.jsonl
	unchanged 40 import c.jsonl
}

@test "import: malformed JSON, with file and line" {
	printf '[\n{"id": "a", "title": "A"},\n{"id": "b",\n "title": }]\n' >x.json
	refused 4 "unexpected token" x.json
	printf '[\n{"id": "a", "title": "A"},\n{"id": "b"' >x.json
	refused 3 "does not end" x.json
	printf '[\n{"id": "a", "title": "A"}\n{"id": "b", "title": "B"}]' >x.json
	refused 3 "',' or ']'" x.json
	printf '[{"id": "a", "title": "A"},\n]' >x.json
	refused 2 "an object expected" x.json
	printf '{"id": "a", "title": "A"}\n\n17\n' >x.jsonl
	refused 3 "an object expected" x.jsonl
	printf '{"id": "a", "title": "A"}\n{"id": "b", "title": "B", "title": "C"}\n' >x.jsonl
	refused 2 "duplicate" x.jsonl
	printf '{"id": "a", "title": "A"}\n{"id": "b", "title": "B", "priority": "huge"}\n' >x.jsonl
	refused 2 "priority" x.jsonl
	printf '{"id": "a/b", "title": "A"}\n' >x.jsonl
	refused 1 "an id has only letters" x.jsonl
	printf '{"id": "a"}\n' >x.jsonl
	refused 1 "a title is needed" x.jsonl
	printf '{"title": "a"}\n' >x.jsonl
	refused 1 "no id" x.jsonl
	printf '{"id": "a", "title": "A", "fence": -1}\n' >x.jsonl
	refused 1 "out of range" x.jsonl
	printf '[]' >x.json
	call 0 import x.json
	echo '{"id": "a", "title": "A"}' >1.jsonl
	call 0 import 1.jsonl x.json
	says "1 task read, 1 created"
	unchanged 30 import nosuch.json
	echo 17 >x && unchanged 2 import x
	cp x.json x && call 0 import x
}

@test "import: malformed CSV, with file and line" {
	printf 'id,title\na,A\nb,"B\n' >x.csv
	refused 3 "quote that does not end" x.csv
	printf 'id,title\na,"A"x\n' >x.csv
	refused 2 "a comma or the end" x.csv
	printf 'id,title\na,A,extra cell\n' >x.csv
	refused 2 "this row has 3 cells, but the first row has 2 names" x.csv
	printf 'id,title,id\n' >x.csv
	refused 1 "twice" x.csv
	printf 'id,,title\n' >x.csv
	refused 1 "field name in the first row is empty" x.csv
	printf 'id,title,priority\na,"A\nB",low\nb,B,none\n' >x.csv
	refused 4 "priority" x.csv
	printf 'id,title,priority\r\na,A,low\r\nb,B,none\r\n' >x.csv
	refused 3 "priority" x.csv
	printf 'id,title\na,\xff\n' >x.csv
	refused 2 "UTF-8" x.csv
	printf '\xef\xbb\xbfid,title,priority,labels,column of theirs\r\na,A,high,"x, y",z\r\n\r\n' >x.csv
	call 0 import x.csv
	ask 0 show a
	is '.task | .priority == 3 and .labels == ["x", "y"] and .extra == {"column of theirs": "z"}'
}

@test "import: malformed YAML, with file and line" {
	mkdir md
	printf -- '---\ntitle: A\n---\n\nText\n' >md/a.md
	printf -- '---\ntitle: B\nlabels: [x\n---\n' >md/b.md
	unchanged 40 import md
	complains "md/b.md:4: "
	printf -- '---\ntitle: &t B\nsummary: *t\n---\n' >md/b.md
	refused 3 "aliases" md/b.md
	printf -- '---\ntitle: B\nx: %s1%s\n---\n' "$(printf '[%.0s' {1..40})" "$(printf ']%.0s' {1..40})" >md/b.md
	refused 3 "deep" md/b.md
	printf -- '---\ntitle: B\ndue: tomorrow\n---\n' >md/b.md
	refused 3 "due" md/b.md
	rm md/b.md
	call 0 import md
	same "$(field a .description)" Text
}

@test "import: a folder as people write it" {
	mkdir tasks
	cat >tasks/t109_atomic_locks.md <<'END'
---
priority: high
effort: medium
depends: [112]
issue_type: feature
status: Implementing
labels: [aitasks, bash]
created_at: 2026-02-13 02:35
boardcol: now
---

## Problem

Two PCs pick the same task.
END
	echo '# Done before' >tasks/t112.md
	call 0 import tasks
	ask 0 show t109
	is '.task | .title == "Problem" and .priority == 3 and .depends == ["t112"] and .type == "feature"
		and .status == "In Progress" and .created_at == "2026-02-13T02:35:00.000Z"
		and .extra == {"boardcol": "now"} and (.description | startswith("## Problem\n\nTwo"))'
	same "$(field t112 .title)" "Done before"
}

@test "import: the folders in a folder; files that are left out are named" {
	mkdir -p tasks/one/two tasks/.git tasks/one/.hidden
	echo x >tasks/.b.md
	printf -- '---\nid: a\ntitle: A\n---\n' >tasks/a.md
	printf -- '---\nid: b\ntitle: B\ndepends: [a]\n---\n' >tasks/one/two/b.md
	printf 'no task' >tasks/.git/c.md
	echo x >tasks/one/notes.txt
	ln -s /etc/passwd tasks/one/d.md
	mkfifo tasks/e.md
	ask 0 import tasks
	is '.created == 2 and (.left_out | sort) == ((["e.md: it is not a regular file", "one/d.md: it is a link",
		"one/notes.txt: its name does not end in .md"] | map("tasks/" + .)) + ["2 hidden names"] | sort)'
	same "$(field b .open_depends)" 1
	printf -- '---\nid: f\ntitle: [\n---\n' >tasks/one/two/f.md
	refused 4 "" tasks/one/two/f.md
	unchanged 40 import tasks --skip
	complains "tasks/one/two/f.md:"
	rm tasks/one/two/f.md
	call 0 import tasks --update
	says "left out: tasks/one/d.md: it is a link"
}

@test "import: from a pipe, also one to which nobody has written yet" {
	mkfifo pipe.json
	(sleep 0.3 && echo '[{"id": "a", "title": "A"}]' >pipe.json) &
	call 0 import pipe.json
	wait $!
	echo '{"id": "b", "title": "B"}' >b.jsonl
	run -0 bash -c "\"$PAWL\" import <(cat b.jsonl) --format jsonl"
	run -0 bash -c "\"$PAWL\" import <(printf '\\n [{\"id\": \"c\", \"title\": \"C\"}]')"
	run -40 bash -c "\"$PAWL\" import <(printf '\\n\\n[{]')"
	[[ $output == *:3:* ]]
	call 0 list -q
	exactly $'a\nb\nc'
	ask 30 import /dev/zero --format csv
}

@test "export, backup: only an earlier one is replaced, unless --force says so" {
	pawl create x
	for format in json jsonl csv; do
		call 0 export -o "out.$format"
		call 0 export -o "out.$format"
		echo 'my notes' >"out.$format"
		unchanged 20 export -o "out.$format"
		complains --force
		same "$(cat "out.$format")" 'my notes'
		call 0 export -o "out.$format" --force
		: >"out.$format"
		call 0 export -o "out.$format"
	done
	call 0 backup one.pawl
	call 0 backup one.pawl
	echo 'my notes' >one.pawl
	call 20 backup one.pawl
	complains --force
	same "$(cat one.pawl)" 'my notes'
	ask 20 backup one.pawl
	call 0 backup one.pawl --force
	ln -s one.pawl link.pawl
	call 20 backup link.pawl
	call 0 restore link.pawl --force
	call 0 export -o /dev/stdout --format jsonl
	says '"title":"x"'
}

@test "export --output -: standard output, and nothing else on it" {
	pawl create "One, with a comma"
	pawl create Two
	for format in json jsonl csv; do
		call 0 export -o "file.$format"
		call 0 export -o - --format $format
		same "$output" "$(cat "file.$format")"
		[ -z "$stderr" ]
	done
	call 0 export -o -
	is '[.[].id] == ["t1", "t2"]'
	[ ! -e - ]
	call 0 export -o ./- --format json
	exactly "2 tasks exported to ./-"
	[ -e - ]
	call 2 export -o - --format md
	complains "cannot go to standard output"
	call 2 export -o - --json
	is '.error.code == "USAGE"'
	call 2 export -o - --porcelain
	run -30 bash -c "\"$PAWL\" export -o - >/dev/full"
	[[ $output == *"cannot write to standard output"* ]]
}

@test "export: no spreadsheet takes a cell for a formula, and it comes back as it was" {
	for title in '=1+1' '+1' '-1' '@x' "'=1" "'quoted'" "plain"; do
		new --title "$title"
	done
	call 0 export -o q.csv
	not grep -qE '(^|,)"?[=+@-]' q.csv
	call 0 export -o before.json
	another x
	call 0 import ../work/q.csv
	call 0 export -o after.json
	cmp ../work/before.json after.json
}

@test "import: several files are one change; --check changes nothing; standard input" {
	echo '{"id": "a", "title": "A", "depends": ["b"]}' >1.jsonl
	echo '{"id": "b", "title": "B"}' >2.jsonl
	unchanged 0 import 1.jsonl 2.jsonl --check
	call 0 import 1.jsonl 2.jsonl
	says "2 tasks read, 2 created"
	lines 0 import 1.jsonl --skip
	printf 'id,title\nc,C\n' | "$PAWL" import - --format csv
	same "$(field c .title)" C
	call 0 list --json
	"$PAWL" list --json >list.json
	another x
	call 0 import ../work/list.json
	same "$(field a .title)" A
}

# in_formats NAME: NAME.jsonl as NAME.csv and as the folder NAME.d of Markdown files, for tasks with id, parent and depends
in_formats() {
	local id parent depends
	echo 'id,title,parent,depends' >"$1.csv"
	mkdir "$1.d"
	while IFS='|' read -r id parent depends; do
		echo "$id,T,$parent,$depends" >>"$1.csv"
		printf -- '---\nid: %s\ntitle: T\n%s%s---\n' "$id" "${parent:+parent: $parent$'\n'}" \
			"${depends:+depends: [$depends]$'\n'}" >"$1.d/$id.md"
	done < <(jq -r '[.id, .parent // "", (.depends // [] | join(" "))] | join("|")' "$1.jsonl")
}

@test "import --check: refuses with the code and the text of the import" {
	local format
	pawl create --id t1 One
	pawl create --id t2 Two --depends t1
	pawl create --id t3 Three --parent t2
	printf '{"id": "%s", "title": "T", "depends": ["%s"]}\n' a b b a >cycle.jsonl
	echo '{"id": "a", "title": "T", "depends": ["a"]}' >self.jsonl
	echo '{"id": "a", "title": "T", "depends": ["gone"]}' >dangling.jsonl
	echo '{"id": "a", "title": "T", "parent": "gone"}' >orphan.jsonl
	echo '{"id": "t2", "title": "T"}' >there.jsonl
	for name in cycle self dangling orphan there; do
		in_formats "$name"
	done
	for format in $(sampled jsonl csv d); do
		check_refused 40 "cycle.$format"
		complains "would wait for itself"
		check_refused 40 "self.$format"
		check_refused 44 "dangling.$format"
		complains "neither in the queue nor in the import"
		check_refused 44 "orphan.$format"
		check_refused 20 "there.$format"
	done
	jq -s . cycle.jsonl >cycle.json
	check_refused 40 cycle.json
}

@test "import --check: shows all refusals of several files at once" {
	local format
	pawl create --id t1 One
	cat >1.jsonl <<-'END'
		{"id": "a", "title": "T", "depends": ["b"]}
		{"id": "b", "title": "T", "depends": ["a"]}
		{"id": "c", "title": "T", "priority": "highest of all", "due": "never"}
		{"id": "d", "title": "T", "depends": ["c", "gone"]}
		{"id": "t1", "title": "T"}
		{"id": "e", "title": "T"}
		{"id": "e", "title": "T", "parent": "away"}
		{"id": "f", "title": "T", "depends": ["f"]}
	END
	printf 'id,title,priority\ng,T,x\nh,T,1,more\ni,T,2\n' >2.csv
	mkdir 3.d
	printf -- '---\nid: j\ntitle: [\n---\n' >3.d/j.md
	printf -- '---\nid: k\ntitle: K\ndepends: [j, i, h]\n---\n' >3.d/k.md
	unchanged 40 import 1.jsonl 2.csv 3.d --check --json
	is '[.refusals[] | capture("^(?<at>[^:]+:[0-9]+)").at] == ["1.jsonl:3", "1.jsonl:3", "2.csv:2", "2.csv:3", "3.d/j.md:4",
		"1.jsonl:2", "1.jsonl:5", "1.jsonl:7", "1.jsonl:8", "1.jsonl:4"]'
	is '.error.message == .refusals[0] and .warnings == .refusals[1:]'
	unchanged 40 import 1.jsonl 2.csv 3.d --check
	complains "1.jsonl:2: b would wait for itself" "1.jsonl:8: f depends on itself" "its dependency gone is neither"
	# a file whose rest cannot be read does not hide the next one
	echo '{"id": "x", "title": "T"' >4.jsonl
	unchanged 40 import 4.jsonl 2.csv --check --json
	is '[.refusals[] | capture("^(?<at>[^:]+:[0-9]+)").at] == ["4.jsonl:1", "2.csv:2", "2.csv:3"]'
	# nor the refusals of the queue
	printf '%s\n' '{"id": "t1", "title": "T"}' '{"id": "y", "title": "T", "depends": ["y"]}' '{"id": "x", "title": "T"' >5.jsonl
	unchanged 40 import 5.jsonl --check --json
	is '[.refusals[] | capture("^(?<at>[^:]+:[0-9]+)").at] == ["5.jsonl:3", "5.jsonl:1", "5.jsonl:2"]'
	is '.error.message == .refusals[0] and .error.code == "MISCONFIGURED"'
}

@test "import --check: looks at the tasks of the queue as the import does" {
	pawl create --id t1 One
	pawl create --id t2 Two --depends t1
	pawl create --id t3 Three
	echo '{"id": "t1", "title": "T", "depends": ["t2"]}' >cycle.jsonl
	check_refused 20 cycle.jsonl
	check_refused 40 cycle.jsonl --update
	echo '{"id": "t1", "title": "T", "depends": ["gone"]}' >dangling.jsonl
	check_refused 44 dangling.jsonl --update
	unchanged 0 import dangling.jsonl --skip --check
	pawl claim t3
	echo '{"id": "t3", "title": "T"}' >held.jsonl
	check_refused 20 held.jsonl --update
	echo '{"id": "a", "title": "T", "depends": ["t1"], "parent": "t2"}' >linked.jsonl
	unchanged 0 import linked.jsonl --check
	exactly "1 task read"
	call 0 import linked.jsonl
	says "1 created"
	check_refused 20 linked.jsonl
	for i in {1..200}; do
		echo "{\"id\": \"n$i\", \"title\": \"T\", \"depends\": [\"n$((i + 1))\"]}"
	done >many.jsonl
	check_refused 44 many.jsonl
	sed -i '$s/n201/n1/' many.jsonl
	check_refused 40 many.jsonl
	sed -i '$s/n1"\]/t1"]/' many.jsonl
	unchanged 0 import many.jsonl --check
	call 0 import many.jsonl
}

@test "import --check: finds out that there is no queue, or that it may not be changed" {
	echo '{"id": "a", "title": "T"}' >one.jsonl
	pawl lock acquire @maintenance --agent boss
	unchanged 30 import one.jsonl --agent other --timeout 0.1s
	complains "@maintenance is held by boss"
	unchanged 30 import one.jsonl --agent other --timeout 0.1s --check
	complains "@maintenance is held by boss"
	pawl lock release @maintenance --agent boss
	mkdir "$BATS_TEST_TMPDIR/none"
	cd "$BATS_TEST_TMPDIR/none"
	call 40 import ../work/one.jsonl
	local said=$stderr
	call 40 import ../work/one.jsonl --check
	same "$said" "$stderr"
}

@test "import --check: the changes of others are committed during the check" {
	echo '{"id": "a", "title": "T"}' >one.jsonl
	for agent in {1..8}; do
		for i in {1..12}; do
			"$PAWL" create -q x || echo failed
		done >"made.$agent" 3>&- &
	done
	while [ -n "$(jobs -r)" ]; do
		call 0 import one.jsonl --check
	done
	wait
	cat made.* | sort -V >made
	same "$(grep -c . made)" 96
	same "$("$PAWL" list -q --limit 0 | sort -V)" "$(cat made)"
}

@test "import: a lost answer, a full disk" {
	needs_local "it breaks or watches the store itself"
	echo '{"id": "a", "title": "A"}' >1.jsonl
	call 30 import 1.jsonl --store "$(faulty modify:1:full)"
	call 44 show a
	ask 30 import 1.jsonl --store "$(faulty modify:1:lost)"
	is '.error.applied == "unknown"'
	call 0 show a
}

# nested N: an object of N levels
nested() {
	printf '{"a":%.0s' $(seq 2 "$1")
	printf '{}'
	printf '}%.0s' $(seq 2 "$1")
}

@test "extra: 64 levels come back from every format; one more is refused everywhere" {
	for n in 65 66 2000; do
		call 2 create x --extra "$(nested $n)"
		complains "at most 64 levels"
		printf '[{"id":"t1","title":"x","status":"Ready","extra":%s}]' "$(nested $n)" >deep.json
		call 40 import deep.json
		complains "64 levels"
	done
	"$PAWL" create -q x --extra "$(nested 64)"
	call 2 update t1 --extra "$(nested 65)"
	ask 0 show t1
	same "$(jq -c .task.extra <<<"$output")" "$(nested 64)"
	for format in json jsonl csv; do
		call 0 export --output "$BATS_TEST_TMPDIR/out.$format"
		another "$format"
		call 0 import "$BATS_TEST_TMPDIR/out.$format"
		ask 0 show t1
		same "$(jq -c .task.extra <<<"$output")" "$(nested 64)"
	done
	call 0 export --format md --output "$BATS_TEST_TMPDIR/out"
	another md
	call 0 import "$BATS_TEST_TMPDIR/out"
	ask 0 show t1
	same "$(jq -c .task.extra <<<"$output")" "$(nested 64)"
}

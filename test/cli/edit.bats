#!/usr/bin/env bats
# Writing tasks as text: update --append, create --file, and the editor for edit and create.

load common

@test "update --append: a paragraph at the end of the description" {
	new x
	call 0 update t1 --append "One."
	same "$(field t1 .description)" "One."
	printf 'Two,\nand more.\n' | call 0 update t1 --append -
	same "$(field t1 .description)" $'One.\n\nTwo,\nand more.'
	unchanged 2 update t1 --append x --description y
	complains "cannot be used together"
	unchanged 2 update t1 --append ""
	head -c 250000 /dev/zero | tr '\0' x | pawl update t1 --append -
	before=$(snapshot)
	head -c 20000 /dev/zero | tr '\0' x >text
	call 2 update t1 --append - <text
	complains "the description would have"
	same "$before" "$(snapshot)"
	new y
	call 0 batch update t2 --append z
	same "$(field t2 .description)" z
}

# --- create --file ----------------------------------------------------------------------------------

@test "create --file: tasks and sub-tasks from a Markdown list, in one commit" {
	cat >plan.md <<-'END'
		# Release

		Some words about it.

		- [ ] Write the parser
		      It reads *tabs*, too.

		      Second paragraph.
		  - [ ] Test it
		  - [x] Think about it
		- [x] Buy coffee
		* Ship it

		Done.
	END
	pawl create Epic
	call 0 create --file plan.md --label rel -p high --parent t1
	exactly "created t2  Write the parser  (sub-task of t1)
created t3  Test it  (sub-task of t2)
created t4  Ship it  (sub-task of t1)
3 done"
	complains "plan.md:10: skipped, because it is marked as done: Think about it" "plan.md:11: skipped"
	same "$(field t2 .description)" $'It reads *tabs*, too.\n\nSecond paragraph.'
	same "$(field t3 .parent) $(field t4 .parent) $(field t2 .parent)" "t2 t1 t1"
	same "$(field t3 '.labels[0]') $(field t4 .priority)" "rel 3"
	call 0 create --file plan.md -q
	exactly $'t5\nt6\nt7'
	ask 0 create --file plan.md
	is '[.results[].id] == ["t8", "t9", "t10"] and .results[1].parent == "t8"'
	printf -- '- One\n- Two "x"\n' | lines 0 create -F -
	call 0 list -q -n 0
	same "$(wc -l <<<"$output")" 12
}

@test "create --file: all or nothing, and errors name the line" {
	printf -- '- One\n  - Two\n-\n' >plan.md
	unchanged 2 create --file plan.md
	complains "plan.md:3: this item has no title" "nothing was created"
	{ echo "- One" && printf -- '- %0501d\n' 7; } >plan.md
	unchanged 2 create --file plan.md
	complains "plan.md:2: title"
	printf -- '- One\n- Two\n' >plan.md
	unchanged 44 create --file plan.md --depends nosuch
	complains "plan.md:1:" nosuch
	ask 44 create --file plan.md --parent nosuch
	printf -- '- [x] One\n  - [ ] Two\n' >plan.md
	unchanged 2 create --file plan.md
	complains "plan.md:2: this item is open" "(line 1) is marked as done"
	echo 'no list' >plan.md
	unchanged 2 create --file plan.md
	complains "no open item"
	printf -- '- \xff\n' >plan.md
	unchanged 2 create --file plan.md
	complains "plan.md:1: not valid UTF-8"
	unchanged 30 create --file nosuch.md
	for option in Title "--id x" "--if-absent" "--description d" "--request-id r"; do
		read -ra words <<<"$option"
		unchanged 2 create --file plan.md "${words[@]}"
	done
	call 2 create </dev/null
	complains "create needs TITLE"
	unchanged 2 batch add --file - <<<'{"title": "x", "file": "plan.md"}'
	complains "cannot have the argument 'file'"
}

# --- edit -------------------------------------------------------------------------------------------

# editor COMMANDS: EDITOR becomes a script that runs them with the text's file as $1
editor() {
	printf '#!/bin/sh\n%s\n' "$1" >editor.sh
	chmod +x editor.sh
	export EDITOR=$work/editor.sh TMPDIR=$BATS_TEST_TMPDIR/tmp
	mkdir -p "$TMPDIR"
}

# kept: the only text that is left in TMPDIR
kept() {
	set -- "$TMPDIR"/pawl-edit-*
	[ "$#" -eq 1 ] && [ -e "$1" ] && echo "$1"
}

nothing_kept() {
	same "$(find "$TMPDIR" -name 'pawl-edit*' | wc -l)" 0
}

@test "edit: title, fields and texts as one file" {
	new "Fix it" -d $'One.\n\n---\nTwo.' --acceptance $'a\nb' -l x -l w --extra '{"mine": 1, "other": {"k": [1]}}' --due 2030-01-02
	new Dep
	new Parent
	pawl depend t1 t2
	editor 'cp "$1" seen; sed -i -e "s/^title:.*/title: Mend it/" -e "s/^priority:.*/priority: high/" -e "s/^labels:.*/labels: [w, z]/" \
		-e "s/^depends:.*/depends: [t3]/" -e "s/^mine:.*/mine: 2/" -e "/^due:/d" -e "s/^status:.*/status: Backlog/" -e "s/^Two/Three/" "$1"'
	call 0 edit t1
	exactly "t1 updated"
	for line in "title: Fix it" "status: Ready" "labels: [x, w]" "depends: [t2]"; do
		grep -qxF "$line" seen
	done
	[[ $(field t1 .description) == $'One.\n\n---\nThree.' ]]
	ask 0 show t1
	is '.task | .title == "Mend it" and .priority == 3 and .labels == ["w", "z"] and .depends == ["t3"] and .extra.mine == 2
		and .extra.other == {"k": [1]} and (has("due") | not) and .status == "Backlog" and .acceptance == "a\nb"'
	nothing_kept
	editor 'sed -i -e "/^labels:/d" -e "/^depends:/d" -e "/^mine:/d" -e "/^other:/d" -e "/^status:/d" -e "s/^title:.*/&\nparent: t3/" "$1"'
	ask 0 edit t1
	is '.changed and (.task | .labels == [] and .depends == [] and (has("extra") | not) and .parent == "t3" and .status == "Backlog")'
	editor true
	lines 0 edit t1
	exactly "SUCCESS: task=t1 status=Backlog"
}

@test "edit: the assignee shows, changes and can be cleared" {
	new x --assignee al
	editor 'cp "$1" seen; sed -i "s/^assignee: al$/assignee: bo/" "$1"'
	call 0 edit t1
	grep -qx 'assignee: al' seen
	grep -q '^# Fields:.* assignee,' seen
	same "$(field t1 .assignee)" bo
	editor 'sed -i "/^assignee:/d" "$1"'
	ask 0 edit t1
	is '.changed and (.task | has("assignee") | not)'
}

@test "edit: an unchanged text changes nothing, whatever the task says" {
	new $'esc \e[31m "quoted" \'single\' # no comment' -d $'---\ntitle: other\n---\n\n\ttab\n ' --acceptance $'- a\n\n  b: c # d\n' --type 'null' --effort '0x10' -l 'true' -l ' a: b' --extra '{"k":null,"due":{"x":"---"}}'
	new '%s $(touch owned) `touch owned`' --due '2030-01-02T10:30Z' --not-before 2030-01-01T00:00:01Z
	editor true
	for id in t1 t2; do
		unchanged 0 edit $id
		exactly "$id unchanged"
	done
	editor 'echo >>"$1"; sed -i "s/^# Task/# task/" "$1"'
	call 0 edit t2
	nothing_kept
	[ ! -e owned ]
}

@test "edit: VISUAL before EDITOR, with options; no editor, or one that fails" {
	new x
	editor 'sed -i "s/^title:.*/title: by $1/" "$2"'
	export VISUAL="$EDITOR visual"
	EDITOR=false call 0 edit t1
	unset VISUAL
	same "$(field t1 .title)" "by visual"
	EDITOR=false unchanged 40 edit t1
	complains 'the editor `false` ended with exit code 1'
	nothing_kept
	unset EDITOR
	unchanged 40 edit t1 </dev/null
	complains "set EDITOR"
	editor 'echo more >>"$1"; exit 3'
	unchanged 40 edit t1
	grep -q more "$(kept)"
	complains "$(kept)"
}

@test "edit: a text that cannot be read back is kept" {
	new x
	editor 'echo mine >>"$1"; truncate -s 65M "$1"'
	unchanged 30 edit t1
	complains "File too large" "your text is in $(kept)" "pawl edit t1 --file $(kept)"
	grep -aqx mine "$(kept)"
	rm "$(kept)"
	editor 'rm "$1"'
	unchanged 30 edit t1
	[[ $stderr != *"your text is in"* ]]
}

@test "edit: errors name the line, the text is kept, and --file continues with it" {
	new x
	for fault in "s/^priority:.*/priority: urgent/|9: priority" "s/^title:.*/title:/|6: the task needs a title" \
		"/^title:/d|1: the task needs a title" "s/^title:.*/&\nlables: a/|7: there is no field 'lables'" \
		"s/^title:.*/&\nfence: 7/|7: there is no field 'fence'" "s/^title:.*/&\ndue: some day/|7: due" \
		"s/^title: x/title: [/|" "1d|1: the file must begin with front matter"; do
		editor "sed -i '${fault%%|*}' \"\$1\""
		unchanged 2 edit t1
		complains "$(kept):${fault#*|}" "pawl edit t1 --file $(kept)"
		rm "$(kept)"
	done
	editor 'printf "%0600d" 1 >long; sed -i "s/^title:.*/title: $(cat long)x/" "$1"'
	unchanged 2 edit t1
	complains "$(kept):6: title has 601 bytes"
	sed -i 's/^title:.*/title: short/' "$(kept)"
	call 0 edit t1 --file "$(kept)"
	same "$(field t1 .title)" short
	rm "$(kept)"
	editor 'sed -i -e "s/^title:.*/title: lost?\nparent: nosuch/" "$1"'
	unchanged 44 edit t1
	grep -q 'lost?' "$(kept)"
	unchanged 30 edit t1 --file nosuch.md
	ask 2 edit t1 --file - <<<'no front matter'
}

@test "edit: the task has changed since then: CONFLICT, nothing is changed, the text is kept" {
	new x
	editor '"$PAWL" update t1 -q --priority 7 >/dev/null; sed -i "s/^title:.*/title: mine/" "$1"'
	call 20 edit t1
	complains "version 2, not 1" "$(kept)" "set its version to 2" "pawl edit t1 --file"
	same "$(field t1 .title) $(field t1 .priority)" "x 7"
	grep -qx 'title: mine' "$(kept)"
	unchanged 20 edit t1 --file "$(kept)"
	sed -i -e 's/^version: 1/version: 2/' -e 's/^priority:.*/priority: 7/' "$(kept)"
	call 0 edit t1 --file "$(kept)"
	same "$(field t1 .title) $(field t1 .priority)" "mine 7"
	rm "$(kept)"
	editor '"$PAWL" update t1 -q --append more >/dev/null; sed -i "s/^title:.*/title: again/" "$1"'
	ask 20 edit t1
	is --arg file "$(kept)" '.file == $file'
	rm "$(kept)"
	lines 20 edit t1
}

@test "edit --if-version: only that version, also if links change" {
	new x
	new Dep
	pawl update t1 -q --priority 7 >/dev/null
	editor 'touch opened; sed -i "s/^title:.*/title: mine\ndepends: [t2]/" "$1"'
	unchanged 20 edit t1 --if-version 1
	complains "t1 has version 2, not 1"
	[ ! -e opened ]
	nothing_kept
	call 0 edit t1 --if-version 2
	same "$(field t1 .title) $(field t1 '.depends[0]')" "mine t2"
}

@test "edit: refuses --request-id before the editor opens" {
	new x
	editor 'touch opened; sed -i "s/^title:.*/title: mine/" "$1"'
	unchanged 2 edit t1 --request-id r1
	complains "edit makes several changes; it takes no --request-id"
	[ ! -e opened ]
	nothing_kept
}

@test "edit: a renewed lease is not a change" {
	new x
	pawl claim t1
	editor '"$PAWL" heartbeat -q t1 >/dev/null; sed -i "s/^title:.*/title: mine/" "$1"'
	call 0 edit t1
	same "$(field t1 .title)" mine
	nothing_kept
}

@test "edit: refused by a lock, a token, a cycle: nothing of it happens" {
	new x
	new y --depends t1
	editor 'sed -i -e "s/^title:.*/title: no\ndepends: [t2]/" "$1"'
	unchanged 40 edit t1
	complains "wait for itself" "$(kept)"
	rm "$(kept)"
	pawl claim t1 -a al
	unchanged 20 edit t1 -a bo
	complains "al holds t1" "$(kept)"
	rm "$(kept)"
	unchanged 21 edit t1 -a bo --token 11111111-1111-4111-8111-111111111111
	call 44 edit nosuch
	call 2 edit
}

# --- at a terminal ------------------------------------------------------------------------------------

# typing PROMPT TEXT COMMAND...: runs it on a terminal and types TEXT whenever PROMPT appears; leaves its output in out
typing() {
	cat >keys.py <<-'END'
		import os, pty, sys

		prompt, text = sys.argv[1].encode(), sys.argv[2].encode()
		pid, fd = pty.fork()
		if pid == 0:
		    os.execvp(sys.argv[3], sys.argv[3:])
		seen = b""
		while True:
		    try:
		        more = os.read(fd, 4096)
		    except OSError:
		        break
		    if not more:
		        break
		    seen += more
		    sys.stdout.buffer.write(more)
		    if prompt and prompt in seen:
		        seen = b""
		        os.write(fd, text)
		sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
	END
	timeout 30 python3 keys.py "$@" >out 3>&- || {
		local rc=$?
		cat out
		return "$rc"
	}
}

@test "edit: on a terminal an error is shown and the person continues" {
	needs python3
	needs_terminal
	new x
	editor 'n=$(cat n 2>/dev/null || echo 0); echo $((n + 1)) >n
		if [ "$n" = 0 ]; then sed -i "s/^priority:.*/priority: urgent/" "$1"; else sed -i "s/^priority:.*/priority: high/" "$1"; fi'
	typing '[Y/n] ' $'\n' "$PAWL" --no-color edit t1
	grep -q 'priority: this is not a priority' out
	grep -q 't1 updated' out
	same "$(field t1 .priority) $(cat n)" "3 2"
	nothing_kept
	rm n
	run -2 typing '[Y/n] ' $'n\n' "$PAWL" --no-color edit t1
	grep -q 'your text is in' out
	same "$(cat n)" 1
	kept
}

@test "create: without a title, on a terminal, opens the editor" {
	needs python3
	needs_terminal
	editor 'cp "$1" seen; sed -i "s/^title:.*/title: Write it/" "$1"; echo "In words." >>"$1"'
	typing '' '' "$PAWL" --no-color create -p high -l docs
	grep -q 'created t1  Write it' out
	grep -qx 'title:' seen
	grep -qx 'labels: \[docs\]' seen
	same "$(field t1 .title)|$(field t1 .description)|$(field t1 .priority)|$(field t1 '.labels[0]')" "Write it|In words.|3|docs"
	nothing_kept
	editor true
	run -2 typing '' '' "$PAWL" create
	grep -q 'nothing was created' out
	nothing_kept
	editor 'echo more >>n; [ "$(wc -l <n)" = 1 ] && sed -i "s/^title:.*/parent: nosuch\ntitle: Sub/" "$1" || sed -i "s/nosuch/t1/" "$1"'
	typing '[Y/n] ' $'\n' "$PAWL" create
	grep -q 'there is no task nosuch' out
	same "$(field t2 .parent) $(field t2 .title)" "t1 Sub"
	editor 'sed -i "s/^title:.*/nonsense: 1/" "$1"'
	run -2 typing '[Y/n] ' $'n\n' "$PAWL" create
	grep -q 'your text is in' out
	rm "$(kept)"
	editor 'echo mine >>"$1"; truncate -s 65M "$1"'
	run -30 typing '' '' "$PAWL" create
	grep -q 'your text is in' out
	grep -aqx mine "$(kept)"
	same "$("$PAWL" list -q | sort)" $'t1\nt2'
}

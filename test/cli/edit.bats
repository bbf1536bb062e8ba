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
	head -c 20000 /dev/zero | tr '\0' x >more
	call 2 update t1 --append - <more
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

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

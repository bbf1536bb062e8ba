# shellcheck shell=bash
# The queue of the scripted model: a task with a comment, and one that another agent holds.
scene() {
	call 0 create Greet -d 'Write hello to hello.txt.' --acceptance 'hello.txt says hello' --agent bob
	call 0 comment t1 'One line is enough.' --agent bob
	call 0 create Translate --agent bob
	call 0 claim t2 --agent bob
}

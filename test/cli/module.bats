# Stores and commands that live in modules.

load common

setup() {
	fresh
	export PAWL_MODULE_DIR=$PAWL_BUILD/test
}

@test "a command from a module runs, with its options, help and forms" {
	call 0 hello world
	exactly "hello, world"
	ask 0 hello world
	is '.greeted == "world"'
	call 0 help hello
	says "greet somebody" "pawl hello world"
	call 2 hello
	complains NAME
}

@test "a store from a module is opened by its scheme" {
	call 0 --store memx: init
	says "memx:"
}

@test "a module that is not there is named, with how to install it" {
	call 40 --store git:origin list
	complains "pawl-store-git.so" "make install"
	call 40 --store nosuch:x list
	complains "nosuch"
	call 2 mcpp
	complains "mcpp"
}

@test "a module of another interface, or a file that is not a module, is refused with the reason" {
	call 40 --store older:x list
	complains "built for an older pawl (module interface 1, this one has" "install the modules of version"
	call 40 --store newer:x list
	complains "built for a newer pawl"
	call 40 --store nothing:x list
	complains "is not a module of pawl"
}

@test "a relative module folder is not used" {
	cp "$PAWL_BUILD/test/pawl-face-hello.so" .
	PAWL_MODULE_DIR=. call 2 hello world
	complains "there is no command 'hello'"
}

@test "modules are found beside the program, however it is started" {
	unset PAWL_MODULE_DIR
	git init -q --bare "$work/q.git"
	"$PAWL" init -q --store "git:$work/q.git"
	"$PAWL" create -q x
	(cd "$(dirname "$PAWL")" && ./pawl list -q --store "git:$work/q.git")
	PATH=$(dirname "$PAWL"):$PATH command pawl list -q
	ln -s "$PAWL" "$work/linked"
	same "$("$work/linked" list -q)" t1
}

@test "torture without its module says which one is missing" {
	export PAWL_MODULE_DIR=$work/nothing
	mkdir "$PAWL_MODULE_DIR"
	call 40 torture --store "sqlite:$work/q.db"
	complains "pawl-proof.so" "make install"
}

# terminal_call CODE ARG...: in a terminal in which somebody types q
terminal_call() {
	local want=$1
	shift
	run "-$want" script -qec "'$PAWL' $*" /dev/null <<<q
}

# The program's symbols come first: a module would call the program's function of that name instead of its own.
@test "no module has a function with the name of one of the program's" {
	nm -D --defined-only "$PAWL" | awk '{ print $3 }' | sort >program
	for module in "$PAWL_BUILD"/pawl-*.so; do
		nm -D --defined-only "$module" | awk '{ print $3 }' | sort >module
		same "$(comm -12 program module)" ""
	done
}

# The program loads them lazily, for the sake of their libraries. A module itself must not fail at its first call, nor leave
# its table of functions writable.
@test "every module and the program bind their functions at the start" {
	for file in "$PAWL" "$PAWL_BUILD"/pawl-*.so; do
		echo "$file"
		readelf -d "$file" | grep BIND_NOW
		readelf -lW "$file" | grep GNU_RELRO
	done
}

@test "the board: only in a terminal, with its module" {
	queue
	call 2 board
	complains "the board needs a terminal" "pawl list --json"
	ask 2 board
	is '.error.message == "the board needs a terminal"'
	lines 2 board
	needs_terminal
	mkdir empty
	PAWL_MODULE_DIR=$PWD/empty terminal_call 40 board
	says "pawl-board.so: it is not installed in" "libncurses-dev"
	[ -e "$PAWL_BUILD/pawl-board.so" ] || skip "needs ncursesw"
	PAWL_MODULE_DIR=$PAWL_BUILD terminal_call 0 board
	says "pawl board"
}

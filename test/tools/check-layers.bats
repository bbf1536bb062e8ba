#!/usr/bin/env bats
# tools/check-layers is only believed once it has refused a planted fault of each kind.

check=$PAWL_SOURCE/tools/check-layers

setup() {
	tree=$BATS_TEST_TMPDIR
	export PAWL_ROOT=$tree
	mkdir -p "$tree"/src/{base,core,format,store/{files,git,sqlite},queue,proof,client,run,transfer,cmd,face/{cli,gen}} \
		"$tree"/build/src/lib{base,core,format}.a.p
	touch "$tree"/src/{base/str.h,core/{task,lease}.h,format/task_form.h,store/{store,sqlite/sqlite}.h,queue/queue.h,proof/{proof,check}.h} \
		"$tree"/src/{client/client.h,run/run_jobs.h,transfer/port.h,cmd/cmd.h,face/cli/cli.h}
}

# source FILE: standard input becomes src/FILE
source_file() {
	cat >"$tree/src/$1"
}

# include FILE HEADER...: src/FILE includes these
include() {
	local file=$1
	shift
	printf '#include "%s"\n' "$@" | source_file "$file"
}

# compile LAYER/FILE.c: into the place where Meson puts the object
compile() {
	local layer=${1%%/*}
	cc -std=gnu11 -D_GNU_SOURCE -O2 -fPIE -I"$tree/src" -c "$tree/src/$1" \
		-o "$tree/build/src/lib$layer.a.p/${1/\//_}.o"
}

refused() {
	run "$check" "$tree/build"
	echo "$output"
	[ "$status" -eq 1 ]
	[[ "$output" == *"$1"* ]]
}

accepted() {
	run "$check" "$tree/build"
	echo "$output"
	[ "$status" -eq 0 ]
	[ -z "$output" ]
}

pure() {
	echo 'int pure(int); int pure(int a) { return a + 1; }' | source_file core/pure.c
	compile core/pure.c
}

@test "includes that go down are accepted" {
	pure
	include core/task.c core/task.h base/str.h
	include store/sqlite/sqlite_store.c store/store.h base/str.h
	include queue/queue.c queue/queue.h core/task.h store/store.h
	include client/client.c client/client.h queue/queue.h store/store.h
	include cmd/claim.c cmd/cmd.h client/client.h queue/queue.h
	include face/cli/cli.c face/cli/cli.h cmd/cmd.h store/store.h
	include main.c face/cli/cli.h store/sqlite/sqlite.h
	include face/gen/gen_main.c face/cli/cli.h
	accepted
}

@test "an upward include is refused, with its line" {
	pure
	include base/str.c base/str.h core/task.h
	refused "src/base/str.c:2: base may not include core/task.h"
}

@test "HTTP knows nothing of tasks" {
	pure
	mkdir "$tree"/src/http "$tree"/src/face/serve
	touch "$tree"/src/http/server.h
	include http/http_server.c http/http_server.h base/str.h
	include face/serve/serve_main.c http/http_server.h
	accepted
	include http/http_server.c core/task.h
	refused "src/http/http_server.c:1: http may not include core/task.h"
}

@test "an upward include by a relative path is refused" {
	pure
	include queue/queue.c ../cmd/cmd.h
	refused "src/queue/queue.c:1: queue may not include cmd/cmd.h"
}

@test "core and store do not include each other" {
	pure
	include core/task.c store/store.h
	refused "src/core/task.c:1: core may not include store/store.h"
	include core/task.c core/task.h
	include store/sqlite/sqlite_store.c core/lease.h
	refused "src/store/sqlite/sqlite_store.c:1: store may not include core/lease.h: a store knows a task as data"
}

@test "a store may use formats and core's data, and no policy" {
	pure
	include store/files/files_form.c format/task_form.h core/task.h
	accepted
	include store/files/files_form.c core/lease.h
	refused "src/store/files/files_form.c:1: store may not include core/lease.h"
}

@test "an upward include through other headers is refused, with the way" {
	pure
	include format/task_form.h core/task.h core/lease.h
	include format/task_form.c format/task_form.h
	accepted
	include store/store.h format/task_form.h
	refused "src/store/store.h:1: store may not include core/lease.h through format/task_form.h"
	include store/sqlite/sqlite.h store/store.h
	include store/sqlite/sqlite_store.c store/sqlite/sqlite.h
	refused "src/store/sqlite/sqlite_store.c:1: store may not include core/lease.h through store/sqlite/sqlite.h and store/store.h and format/task_form.h"
}

@test "commands see the proof by its interface alone" {
	pure
	include cmd/torture.c proof/proof.h
	accepted
	include cmd/torture.c proof/check.h
	refused "src/cmd/torture.c:1: cmd may not include proof/check.h"
}

@test "core does not include format" {
	pure
	include core/task.c format/task_form.h
	refused "src/core/task.c:1: core may not include format/task_form.h"
}

@test "a folder that is not a layer is refused" {
	pure
	mkdir "$tree/src/extra"
	include extra/extra.c base/str.h
	refused "src/extra/extra.c:1: extra may not include base/str.h: this folder is not a layer yet"
}

@test "a face names no store" {
	pure
	include face/cli/cli.c store/sqlite/sqlite.h
	refused "src/face/cli/cli.c:1: face may not include store/sqlite/sqlite.h"
}

@test "constants and pure calls in core are accepted" {
	source_file core/task.c <<-'C'
		#include <stdio.h>
		#include <stdlib.h>
		#include <string.h>
		static const char *const names[] = { "one", "two" };
		const char *name(unsigned n);
		const char *name(unsigned n) { return names[n % 2]; }
		char *show(int n);
		char *show(int n)
		{
			char *s = malloc(40);
			if (s)
				snprintf(s, 40, "%d %s", n, name(n));
			return s;
		}
	C
	compile core/task.c
	accepted
}

@test "I/O in core is refused, with its line" {
	source_file core/task.c <<-'C'
		#include <stdio.h>
		void say(int n);
		void say(int n)
		{
			fprintf(stderr, "%d", n);
		}
	C
	compile core/task.c
	refused "src/core/task.c:5: core uses fprintf"
}

@test "files, the clock and the environment in core are refused" {
	local call
	for call in 'open("x", 0)' 'write(1, "x", 1)' 'time(NULL)' 'clock_gettime(0, NULL)' 'getenv("X") != NULL'; do
		printf '%s\n' '#include <fcntl.h>' '#include <stdlib.h>' '#include <time.h>' '#include <unistd.h>' \
			"int f(void); int f(void) { return (int)($call); }" | source_file core/task.c
		compile core/task.c
		refused "src/core/task.c:5: core uses ${call%%(*}"
	done
}

@test "a clock behind a function of base is refused, its pure neighbour is not" {
	source_file base/clock.c <<-'C'
		#include <time.h>
		long clock_now(void);
		long clock_days(long ms);
		static __attribute__((noinline)) long ask(void) { return time(NULL); }
		long clock_now(void) { return ask() + 1; }
		long clock_days(long ms) { return ms / 86400000; }
	C
	compile base/clock.c
	echo 'long clock_days(long); long f(void); long f(void) { return clock_days(7); }' | source_file core/task.c
	compile core/task.c
	accepted
	echo 'long clock_now(void); long f(void); long f(void) { return clock_now(); }' | source_file core/task.c
	compile core/task.c
	refused "core reaches clock_now -> ask -> time"
}

@test "running out of memory may end the process" {
	source_file base/arena.c <<-'C'
		#include <stdlib.h>
		#include <unistd.h>
		static __attribute__((noinline)) _Noreturn void out_of_memory(void) { write(2, "x", 1); _exit(1); }
		void *arena_alloc(size_t n);
		void *arena_alloc(size_t n) { void *p = malloc(n); if (!p) out_of_memory(); return p; }
	C
	compile base/arena.c
	echo 'void *arena_alloc(unsigned long); void *f(void); void *f(void) { return arena_alloc(7); }' | source_file core/task.c
	compile core/task.c
	accepted
}

@test "a variable in core is refused" {
	local line
	for line in 'int state;' 'int state = 7;' 'static int state; int *g(void) { return &state; }' \
		'_Thread_local int state;' 'int *g(void) { static int state; return &state; }'; do
		echo "$line" | source_file core/task.c
		compile core/task.c
		refused "src/core/task.c:1: core holds the variable state"
	done
}

@test "a build without core is an error, and no build is a warning" {
	refused "no objects of core here"
	run "$check"
	[ "$status" -eq 0 ]
	[[ "$output" == *"only includes were checked"* ]]
}

# The library as it is installed: found with pkg-config, linked both ways, and with nothing showing but pawl_*.

bats_require_minimum_version 1.5.0

setup() {
	dest=$BATS_TEST_TMPDIR/dest
	meson install -C "$PAWL_BUILD" --no-rebuild --quiet --destdir "$dest"
	prefix=$(find "$dest" -path '*/include/pawl.h')
	prefix=${prefix%/include/pawl.h}
	lib=$(dirname "$(find "$dest" -name libpawl.a)")
	export PKG_CONFIG_PATH=$lib/pkgconfig LD_LIBRARY_PATH=$lib
	export HOME=$BATS_TEST_TMPDIR/home
	unset PAWL_STORE XDG_STATE_HOME
	mkdir -p "$HOME" "$BATS_TEST_TMPDIR/work"
	cd "$BATS_TEST_TMPDIR/work" || return
	"$PAWL" init -q
	"$PAWL" create -q "A task" >/dev/null
}

# flags OPTION...: of pkg-config, for where it is and not where it will be
flags() {
	pkg-config --define-variable=prefix="$prefix" "$@" pawl
}

# works PROGRAM: the example claims and finishes t1
works() {
	"$1" | grep '^t1 (fence 1): {'
	"$PAWL" show t1 --json | jq -e '.task.status == "Done" and .task.summary == "done by the example"'
	rc=0
	"$1" || rc=$?
	[ "$rc" -eq 10 ]
	cd /
	rc=0
	"$1" || rc=$?
	[ "$rc" -eq 40 ]
}

@test "the example, built with the installed library, claims and finishes a task" {
	# shellcheck disable=SC2046
	cc -Wall -Wextra -Werror "$PAWL_SOURCE/doc/example/claim.c" $(flags --cflags --libs) -o claim
	ldd claim | grep -q 'libpawl.so.0 => '"$lib"
	works "$PWD/claim"
}

@test "the same with the archive: nothing of pawl has to be installed to run it" {
	# shellcheck disable=SC2046
	cc "$PAWL_SOURCE/doc/example/claim.c" $(flags --cflags) "$lib/libpawl.a" \
		$(pkg-config --libs sqlite3 jansson inih libsodium libutf8proc yaml-0.1) -ldl -pthread -o claim
	run ! grep -q libpawl.so <(ldd claim)
	works "$PWD/claim"
}

# from_module PROGRAM...: does the task of a queue whose store is a module
from_module() {
	export PAWL_MODULE_DIR=$PAWL_BUILD/test PAWL_STORE=sqlx:$PWD/module.db
	rm -f module.db*
	"$PAWL" init -q
	"$PAWL" create -q "A task" >/dev/null
	"$@"
	"$PAWL" show t1 --json | jq -e '.task.status == "Done"'
}

@test "stores that are modules: from the shared library, the archive, and a library that was itself loaded" {
	# shellcheck disable=SC2046
	cc "$PAWL_SOURCE/doc/example/claim.c" $(flags --cflags --libs) -o shared
	# shellcheck disable=SC2046
	cc "$PAWL_SOURCE/doc/example/claim.c" $(flags --cflags) "$lib/libpawl.a" \
		$(pkg-config --libs sqlite3 jansson inih libsodium libutf8proc yaml-0.1) -ldl -pthread -o archive
	from_module ./shared
	from_module ./archive
	cat >claim.py <<-'END'
		import ctypes, sys

		lib = ctypes.CDLL(sys.argv[1])
		queue, lock = ctypes.c_void_p(), ctypes.c_void_p()
		assert lib.pawl_open(ctypes.byref(queue), None, None) == 0
		assert lib.pawl_claim(queue, b"t1", None, ctypes.byref(lock)) == 0
		assert lib.pawl_done(queue, lock, b"from Python") == 0
		lib.pawl_close(queue)
	END
	from_module python3 claim.py "$lib/libpawl.so.0"
}

@test "the build folder: pkg-config finds header and library without an installation, and a program makes a queue" {
	cat >own.c <<-'END'
		#include <pawl.h>
		#include <stdio.h>

		int main(int argc, char **argv)
		{
			struct pawl_options o = PAWL_OPTIONS;
			struct pawl *queue;
			char *error;
			int code;

			o.dir = argc > 1 ? argv[1] : NULL;
			code = pawl_init(&queue, &o, &error);
			if (code) {
				fprintf(stderr, "%s\n", error);
				pawl_free(error);
				return code;
			}
			code = pawl_call(queue, "create", "{\"title\": \"from C\"}", NULL);
			pawl_close(queue);
			return code;
		}
	END
	unset LD_LIBRARY_PATH
	export PKG_CONFIG_PATH=$PAWL_BUILD/meson-uninstalled
	# shellcheck disable=SC2046
	cc -Wall -Wextra -Werror own.c $(pkg-config --cflags --libs pawl) -o own
	mkdir "$BATS_TEST_TMPDIR/new"
	LD_LIBRARY_PATH=$PAWL_BUILD/src ./own "$BATS_TEST_TMPDIR/new"
	LD_LIBRARY_PATH=$PAWL_BUILD/src ./own "$BATS_TEST_TMPDIR/new"
	"$PAWL" list -C "$BATS_TEST_TMPDIR/new" --json | jq -e '[.tasks[].title] == ["from C", "from C"]'
	mkdir "$BATS_TEST_TMPDIR/new/below"
	rc=0
	LD_LIBRARY_PATH=$PAWL_BUILD/src ./own "$BATS_TEST_TMPDIR/new/below" 2>said || rc=$?
	[ "$rc" -eq 40 ]
	grep -q "has a queue" said
}

@test "pkg-config knows the version, and the libraries that the archive needs" {
	[ "$(flags --modversion)" = "$("$PAWL" version --json | jq -r .version)" ]
	flags --static --libs | grep -q 'lpawl.*lsqlite3'
	run ! grep -q sqlite3 <(flags --libs)
}

@test "only pawl_* can be seen, each with its version, and all of the header is there" {
	declared=$(grep -o 'pawl_[a-z_]*(' "$prefix/include/pawl.h" | tr -d '(' | sort -u)
	nm -D --defined-only "$lib/libpawl.so" | awk '$2 == "T" { print $3 }' | sort >shown
	run ! grep -v '^pawl_[a-z_]*@@PAWL_0\.2$' shown
	[ "$(sed 's/@@.*//' shown)" = "$declared" ]
	[ "$(nm -g --defined-only "$lib/libpawl.a" | awk 'NF == 3 { print $3 }' | sort)" = "$declared" ]
}

@test "the header is C++, too" {
	command -v c++ >/dev/null || skip "needs a C++ compiler"
	echo '#include <pawl.h>
	int main() { struct pawl_options o = PAWL_OPTIONS; struct pawl *p; return o.size && !pawl_open(&p, &o, nullptr) ? 0 : 1; }' >t.cc
	# shellcheck disable=SC2046
	c++ -Wall -Wextra -Werror t.cc $(flags --cflags --libs) -o t
	./t
}
